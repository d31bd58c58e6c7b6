# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: env KJIT_DEVICE=cpu:1 KJIT_CPU_DEVICES=2 %kjit-python %s
"""kjit.numpy.grad: programs over arrays of NumPy and of kjit, against complex steps of the same programs in NumPy, and what is refused."""

import kjit
import kjit.numpy as knp
import numpy as np
import seeds

rng = seeds.fresh_generator()


def steps(program, args, number):
    """Returns the derivatives with respect to an argument, by complex steps in NumPy."""
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

# Orders, choices and extrema do not support complex numbers.
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


# kjit.grad differentiates a function that uses whole arrays in the same way. Other forms of the function have
# derivatives as well.
def energy(x):
    total = 0.0
    for i in range(2):
        total += knp.sum(knp.sin(x) * x) * (i + 1)
    return total


def curve(x):
    return knp.cumsum(knp.sin(x) * x)


slope, bend = np.sin(w) + w * np.cos(w), 2 * np.cos(w) - w * np.sin(w)
lower, near = np.tril(np.ones((4, 4))), np.testing.assert_allclose
along = rng.standard_normal(4)
for convert in (lambda x: x, knp.asarray):
    x, d = convert(w), convert(along)
    back = lambda x: x.to_host() if hasattr(x, "to_host") else x  # noqa: E731
    near(back(kjit.grad(energy)(x)), 3 * slope, rtol=1e-12)
    value, by = kjit.value_and_grad(energy)(x)
    near(float(value), 3 * np.sum(np.sin(w) * w)), near(back(by), 3 * slope, rtol=1e-12)
    near(back(kjit.hvp(energy)(x, d)), 3 * bend * along, rtol=1e-11, atol=1e-12), near(back(kjit.hessian(energy)(x)), np.diag(3 * bend), rtol=1e-11, atol=1e-12)
    value, by = kjit.vjp(curve)(x, d)
    near(back(value), np.cumsum(np.sin(w) * w)), near(back(by), slope * (lower.T @ along), rtol=1e-11, atol=1e-12)
    value, by = kjit.jvp(curve)(x, d)
    near(back(value), np.cumsum(np.sin(w) * w)), near(back(by), lower @ (slope * along), rtol=1e-11, atol=1e-12)
    near(back(kjit.jacobian(curve)(x)), lower * slope, rtol=1e-11, atol=1e-12)
    near(back(kjit.jvp(kjit.grad(energy))(x, d)[1]), 3 * bend * along, rtol=1e-11, atol=1e-12)
    # The derivatives of different calls stay separate: y is a constant in the inner call.
    near(back(kjit.grad(lambda y: knp.sum(kjit.grad(lambda x: knp.sum(x * x * y))(y)))(x)), 4 * w, rtol=1e-12)
    near(back(knp.grad(lambda x: knp.sum(knp.grad(lambda y: knp.sum(y * y * y))(x)))(x)), 6 * w, rtol=1e-12)
    # kjit's algorithms, values from outer levels, captured arrays, and numbers.
    near(back(kjit.grad(lambda x: kjit.reduce(kjit.map(lambda v, s: v * v * s, x, 0.5)))(x)), w, rtol=1e-12)
    near(back(kjit.grad(lambda x: knp.sum(kjit.top_k(x, 2)[0]))(x)), (w <= np.sort(w)[1]) * 1.0)
    near(back(kjit.grad(lambda x: knp.sum(kjit.sort_pairs(x, x * x)[1] * order))(x)), 2 * w * order[np.argsort(np.argsort(w))], rtol=1e-12)
    near(back(kjit.grad(lambda x: knp.sum(kjit.pairs(lambda a, b, i, j: a * b, x, x)))(x)), np.full(4, 2 * w.sum()), rtol=1e-12)
    near(back(kjit.grad(lambda x: knp.sum(x * d) + d[1] * x[2])(x)), along + [0, 0, along[1], 0], rtol=1e-12, atol=1e-13)
    by_array, by_number = kjit.grad(lambda x, s: knp.sum(x * x) * s)(x, 3.0)
    near(back(by_array), 6 * w, rtol=1e-12), near(by_number, np.sum(w * w), rtol=1e-12)
    assert type(by_number) is float
half = w.astype(np.float16)
assert kjit.grad(lambda x: knp.sum(x * x))(half).dtype == np.float16
z = w + 1j * along
near(kjit.grad(lambda x: knp.sum(knp.sort(x, axis=None)[:2]))(w.reshape(2, 2)), ((w <= np.sort(w)[1]) * 1.0).reshape(2, 2))
near(kjit.hessian(lambda x: knp.sum(knp.sort(x) ** 3 * order))(w), np.diag(6 * w * order[np.argsort(np.argsort(w))]), rtol=1e-11)
near(kjit.vjp(lambda z: knp.sum(z * z))(z, 1.0)[1], 2 * z, rtol=1e-12, atol=1e-13)


def assigned(x):
    x[0] = 1.0
    return x


def increased(x):
    x += 1.0
    return x


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
refused(TypeError, "there is no argument 1", lambda: knp.grad(lambda x: knp.sum(x), 1)(w))
refused(TypeError, "a scan of complex numbers", lambda: kjit.vjp(lambda z: knp.sum(knp.cumprod(z)))(z, 1.0))
refused(TypeError, "an index depends on the derived arguments", lambda: knp.grad(lambda x: knp.sum(x[x]))(w))
refused(TypeError, "in place", lambda: knp.grad(lambda x: knp.sum(assigned(x)))(w))
refused(TypeError, "write x = x + y", lambda: knp.grad(lambda x: knp.sum(increased(x)))(w))
refused(TypeError, "complex number", lambda: knp.grad(lambda x: knp.sum(x * x))(w * 1j))
refused(TypeError, "kjit.computed has no derivative", lambda: kjit.grad(lambda x: kjit.reduce(kjit.computed(lambda i, x: x[i], 4, x)))(w))
refused(TypeError, "has the shape (3,)", lambda: kjit.vjp(lambda x: knp.cumsum(x))(w, np.ones(3)))
refused(TypeError, "a direction for each", lambda: kjit.jvp(lambda x: knp.cumsum(x))(w))
refused(TypeError, "choose the argument by its position", lambda: kjit.hessian(lambda x, y: knp.sum(x * y))(w, w))
refused(TypeError, "does not hold floats", lambda: kjit.grad(lambda x, n: knp.sum(x) * n, 1)(w, 2))
refused(kjit.Error, "kjit.numpy.sum() works on whole arrays", lambda: kjit.map(lambda x: knp.sum(x), w))
refused(kjit.Error, "kjit.numpy.sum() works on whole arrays", lambda: kjit.map(kjit.grad(lambda x: knp.sum(x)), w))
