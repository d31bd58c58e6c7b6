# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.numpy.grad: programs over arrays of NumPy and of kjit, against complex steps of the same programs in NumPy, and what is refused."""

import kjit
import kjit.numpy as knp
import numpy as np

rng = np.random.default_rng()


def steps(program, args, number):
    """The derivatives by an argument, by complex steps in NumPy."""
    found = np.zeros(args[number].shape)
    for place in np.ndindex(*found.shape):
        moved = [x.astype(complex) for x in args]
        moved[number][place] += 1e-30j
        found[place] = complex(program(*moved)).imag / 1e-30
    return found


a, b, w = rng.uniform(0.2, 1.5, (5, 4)), rng.uniform(-1, 1, (4, 3)), rng.uniform(0.5, 2, 4)
PROGRAMS = [
    (lambda x: knp.sum(knp.exp(-x * x)), lambda x: np.sum(np.exp(-x * x)), (a,)),
    (lambda x: knp.log(knp.sum(knp.exp(x))) + x.mean(), lambda x: np.log(np.sum(np.exp(x))) + x.mean(), (w,)),
    (lambda x, y: knp.sum(knp.tanh(x @ y) ** 2), lambda x, y: np.sum(np.tanh(x @ y) ** 2), (a, b)),
    (lambda x, y: knp.sum(knp.cumsum(x, axis=1) * y / 3.0), lambda x, y: np.sum(np.cumsum(x, axis=1) * y / 3.0), (a, w)),
    (lambda x: knp.sum((x - knp.mean(x, axis=0, keepdims=True)) ** 2), lambda x: np.sum((x - np.mean(x, axis=0, keepdims=True)) ** 2), (a,)),
    (lambda x: knp.sqrt(knp.sum(x[1:] * x[:-1])) + x[0, 1], lambda x: np.sqrt(np.sum(x[1:] * x[:-1])) + x[0, 1], (a,)),
    (lambda x, y: knp.einsum("ij,jk->", x, y) + knp.prod(y.T.reshape(-1)), lambda x, y: np.einsum("ij,jk->", x, y) + np.prod(y), (a, b)),
    (lambda x: np.sum(np.sin(x) * np.sqrt(x)) + np.dot(x, x), lambda x: np.sum(np.sin(x) * np.sqrt(x)) + np.dot(x, x), (w,)),
]
for ours, theirs, args in PROGRAMS:
    for convert in (lambda x: x, knp.asarray):
        given = [convert(x) for x in args]
        value, *found = knp.value_and_grad(ours)(*given)
        np.testing.assert_allclose(float(value), float(theirs(*args)), rtol=1e-13)
        for number, got in enumerate(found):
            assert type(got) is type(given[number]), type(got)
            got = got.to_host() if hasattr(got, "to_host") else got
            np.testing.assert_allclose(got, steps(theirs, args, number), rtol=1e-11, atol=1e-13)

# Orders, choices and extrema are not complex.
order = rng.uniform(0, 1, 4)
np.testing.assert_allclose(knp.grad(lambda x: knp.sum(knp.sort(x) * order))(w), order[np.argsort(np.argsort(w))])
np.testing.assert_allclose(knp.grad(lambda x: knp.sum(knp.where(x > 1.0, x * x, 3.0 * x)))(w), np.where(w > 1, 2 * w, 3.0))
np.testing.assert_allclose(knp.grad(lambda x: knp.max(x) - x.min())(w), (w == w.max()) * 1.0 - (w == w.min()))
x, y = knp.grad(lambda x, y: knp.sum(knp.maximum(x, y)))(w, w[::-1].copy())
np.testing.assert_allclose(x, (w > w[::-1]) * 1.0)
np.testing.assert_allclose(knp.grad(lambda x, y: knp.sum(x * y), 1)(w, order), w)
single = knp.grad(lambda x: knp.sum(x * x))(w.astype(np.float32))
assert single.dtype == np.float32
np.testing.assert_allclose(single, 2 * w, rtol=1e-6)


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"expected {kind.__name__}: {text}")


refused(TypeError, "unique has no derivative", lambda: knp.grad(lambda x: knp.sum(np.unique(x)))(w))
refused(TypeError, "not one number", lambda: knp.grad(lambda x: x * 2.0)(w))
refused(TypeError, "as a Python number", lambda: knp.grad(lambda x: x.sum() if x.sum() > 0 and bool(x[0]) else x[0])(w))
refused(TypeError, "does not depend", lambda: knp.grad(lambda x: 1.0)(w))
refused(TypeError, "derivative of a derivative", lambda: knp.grad(lambda x: knp.sum(knp.grad(lambda y: knp.sum(y * y))(x)))(w))
refused(TypeError, "there is no argument 1", lambda: knp.grad(lambda x: knp.sum(x), 1)(w))
refused(TypeError, "indices must be numbers or slices", lambda: knp.grad(lambda x: knp.sum(x[np.array([0, 0])]))(w))
refused(kjit.Error, "kjit.numpy.sum() works on whole arrays", lambda: kjit.grad(lambda x: knp.sum(x))(w))
refused(kjit.Error, "kjit.reduce() works on whole arrays", lambda: kjit.grad(lambda x: kjit.reduce(x))(w))
