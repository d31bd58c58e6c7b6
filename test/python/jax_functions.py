# RUN: env KJIT_DEVICE=cpu JAX_PLATFORMS=cpu %kjit-python %s
"""kjit.jax.function: values, gradients and second derivatives, compared with JAX's own functions, under jit and vmap,
with operands that broadcast. Skipped without JAX."""

import sys

try:
    import jax
except ImportError:
    print("JAX is not installed: nothing was checked")
    sys.exit(0)

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import kjit  # noqa: E402
import kjit.jax  # noqa: E402
import kjit.numpy  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

rng = seeds.fresh_generator()


def draw(*shape):
    return jnp.asarray(rng.uniform(0.25, 1.25, shape))


@kjit.func
def wave(x, y, n):
    return kjit.sin(x) * y * y + kjit.sqrt(y) * n


def wave_of_jax(x, y, n):
    return jnp.sin(x) * y * y + jnp.sqrt(y) * n


@kjit.func
def polar(r, angle):
    return r * kjit.cos(angle), r * kjit.sin(angle)


def near(a, b):
    return all(np.allclose(x, y, rtol=1e-12, atol=1e-13) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def check_values():
    made = kjit.jax.function(wave)
    x, y = draw(3, 1), draw(4)
    assert near(made(x, y, 2), wave_of_jax(x, y, 2)) and near(jax.jit(made)(x, y, 2), wave_of_jax(x, y, 2))
    total, expected = lambda x, y: (made(x, y, 2) ** 2).sum(), lambda x, y: (wave_of_jax(x, y, 2) ** 2).sum()
    assert near(jax.grad(total, (0, 1))(x, y), jax.grad(expected, (0, 1))(x, y))
    assert near(jax.jit(jax.grad(total, (0, 1)))(x, y), jax.grad(expected, (0, 1))(x, y))
    check_grads(lambda x, y: made(x, y, 2), (x, y), order=2, modes=["rev"])


def check_second():
    made = kjit.jax.function(wave)
    x, y = draw(4), draw(4)

    def norm(f):
        def of_gradient(x, y):
            by_x, by_y = jax.grad(lambda x, y: f(x, y, 2.0).sum(), (0, 1))(x, y)
            return (by_x * by_y).sum()

        return of_gradient

    assert near(jax.grad(norm(made), (0, 1))(x, y), jax.grad(norm(wave_of_jax), (0, 1))(x, y))


def check_minimum():
    """Second derivatives where the first ones are 0, as at the minimum of a sum of squares."""
    made = kjit.jax.function(lambda x, y: (kjit.log(x) - 1 / y + 1) ** 2 + (kjit.sqrt(x) - y) ** 2)

    def of_jax(x, y):
        return (jnp.log(x) - 1 / y + 1) ** 2 + (jnp.sqrt(x) - y) ** 2

    one = jnp.asarray(1.0)
    found = jax.jacrev(jax.grad(made, (0, 1)), (0, 1))(one, one)
    assert near(found, jax.jacrev(jax.grad(of_jax, (0, 1)), (0, 1))(one, one)), found


@kjit.func
def settled(x, y):
    """Divisions in a loop that may end early."""
    s = x
    for k in range(1, 7):
        s = s - (s * s - y) / (s + k) + x / (y + k)
        if s * y > 4:
            break
    return s / y - y / (1 + s * s)


def settled_of_jax(x, y):
    s, runs = x, True
    for k in range(1, 7):
        s = jnp.where(runs, s - (s * s - y) / (s + k) + x / (y + k), s)
        runs = runs & (s * y <= 4)
    return s / y - y / (1 + s * s)


def check_loops():
    """Second derivatives of a loop, compared with JAX's own and with differences."""
    made = kjit.jax.function(settled)
    x, y = jnp.asarray([0.3, 1.9, 0.6, 2.5]), jnp.asarray([0.9, 0.4, 1.6, 2.0])
    check_grads(made, (x, y), order=2, modes=["rev"])
    for a, b in zip(x, y):
        found, expected = (jax.jacrev(jax.grad(f, (0, 1)), (0, 1))(a, b) for f in (made, settled_of_jax))
        assert all(np.allclose(g, w, rtol=1e-10, atol=1e-12) for g, w in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True))


def check_kinks():
    """Derivatives at points where they are not unique: kjit's documented value, and JAX's, which differs for some of
    them."""
    nan, inf = float("nan"), float("inf")
    for ours, of_jax, point, expected, of_theirs in (
        (lambda x: abs(x), jnp.abs, (0.0,), (0.0,), (1.0,)),
        (lambda x: kjit.sqrt(x), jnp.sqrt, (0.0,), (inf,), (inf,)),
        (lambda x: kjit.sqrt(x) * x, lambda x: jnp.sqrt(x) * x, (0.0,), (0.0,), (nan,)),
        (lambda x, y: max(x, y), jnp.maximum, (2.0, 2.0), (0.5, 0.5), (0.5, 0.5)),
        (lambda x, y: x**y, lambda x, y: x**y, (-2.0, 2.0), (-4.0, 0.0), (-4.0, nan)),
        (lambda x, y: x**y, lambda x, y: x**y, (0.0, 2.0), (0.0, 0.0), (0.0, 0.0)),
        (lambda x, y: 1 - x / y, lambda x, y: 1 - x / y, (0.0, 4.0), (-0.25, 0.0), (-0.25, 0.0)),
    ):
        numbers = tuple(range(len(point)))
        found = jax.grad(kjit.jax.function(ours), numbers)(*point)
        assert np.array_equal(np.array(found), expected, equal_nan=True), (point, found)
        assert np.array_equal(np.array(jax.grad(of_jax, numbers)(*point)), of_theirs, equal_nan=True), point
    x = np.array([1.0, 3.0, 3.0])
    assert kjit.grad(lambda x: kjit.numpy.max(x))(kjit.array(x)).to_host().tolist() == [0.0, 1.0, 0.0]
    assert jax.grad(jnp.max)(x).tolist() == [0.0, 0.5, 0.5]


def check_tuples():
    made = kjit.jax.function(polar)
    r, angle = draw(5), draw(2, 5)
    assert near(made(r, angle), (r * jnp.cos(angle), r * jnp.sin(angle)))
    check_grads(made, (r, angle), order=2, modes=["rev"])
    check_grads(lambda r: made(r, angle)[1], (r,), order=2, modes=["rev"])


def check_vmap():
    made = kjit.jax.function(wave)
    x, y = draw(3, 4), draw(4)
    assert near(jax.vmap(made, (0, None, None))(x, y, 2), wave_of_jax(x, y, 2))
    assert near(jax.vmap(jax.grad(made), (0, 0, None))(draw(4) * 0 + y, y, 2), jax.vmap(jax.grad(wave_of_jax), (0, 0, None))(y, y, 2.0))


def check_float32():
    made = kjit.jax.function(wave)
    x, y, count = jnp.float32(draw(8)), jnp.float32(draw(8)), jnp.arange(8)
    found = jax.grad(lambda x: made(x, y, count).sum())(x)
    assert found.dtype == jnp.float32 and np.allclose(found, jnp.cos(x) * y * y, rtol=1e-5)


def check_refusals():
    made = kjit.jax.function(wave)
    for call, text in ((lambda: made(), "at least one array"), (lambda: made(draw(2) * 1j, 1.0, 2), "does not support arrays of complex128")):
        try:
            call()
        except TypeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


check_refusals()
check_values()
check_second()
check_minimum()
check_loops()
check_kinks()
check_tuples()
check_vmap()
check_float32()
