# RUN: %kjit-python %s
"""User-defined derivative rules, `@kjit.func(jvp=..., vjp=...)`, compared with NumPy formulas on fresh random data."""
import kjit
import numpy as np
import seeds

rng = seeds.fresh_generator()
near = np.testing.assert_allclose


def log_cosh_rule(x, dx):
    return log_cosh(x), kjit.tanh(x) * dx


@kjit.func(jvp=log_cosh_rule)
def log_cosh(x):
    return abs(x) + kjit.log1p(kjit.exp(-2 * abs(x))) - 0.6931471805599453


def clipped_back(x, y, dr):
    """The derivative of a product, at most 1 in size."""
    return x * y, max(-1.0, min(1.0, y * dr)), max(-1.0, min(1.0, x * dr))


@kjit.func(vjp=kjit.func(clipped_back))
def clipped(x, y):
    return x * y


@kjit.func
def total(x, y):
    return log_cosh(x) * y + clipped(x, y)


@kjit.jit
def slopes(x, y, by_x, by_y):
    for i in kjit.grid_range(len(x)):
        g = kjit.grad(total)(x[i], y[i])
        by_x[i] = g[0]
        by_y[i] = g[1]


x, y = rng.uniform(-3, 3, 50), rng.uniform(-3, 3, 50)
near(kjit.map(log_cosh, x), np.log(np.cosh(x)), rtol=1e-12, atol=1e-14)
near(kjit.map(kjit.grad(log_cosh), x), np.tanh(x), rtol=1e-14, atol=1e-15)
# In the forward direction the rule is called, and in the reverse direction it is transposed. At 0 the derivative of abs
# would be 0.
assert kjit.jvp(log_cosh)(1e-9, 1.0)[1] == np.tanh(1e-9) and kjit.gradcheck(log_cosh, 0.7)
by_x, by_y = kjit.map(kjit.grad(total), x, y)
want_x = np.tanh(x) * y + np.clip(y, -1, 1)
want_y = np.log(np.cosh(x)) + np.clip(x, -1, 1)
near(by_x, want_x, rtol=1e-12, atol=1e-13), near(by_y, want_y, rtol=1e-12, atol=1e-13)
got_x, got_y = np.empty(50), np.empty(50)
slopes(x, y, got_x, got_y)
# A GPU may fuse products and sums in one of the two kernels.
near(got_x, by_x, rtol=1e-13, atol=1e-14), near(got_y, by_y, rtol=1e-13, atol=1e-14)


def wrong_rule(x, dx):
    return dx


@kjit.func(jvp=wrong_rule)
def with_wrong_rule(x):
    return x * x


def kept(x, n):
    s = x
    for i in range(n):
        s = s * s
    return s


def factorial(x, n):
    return x if n <= 0 else x * factorial(x, n - 1)


for error, text, call in (
    (TypeError, "jvp and vjp are options of kjit.func", lambda: kjit.jit(vjp=kept)(kept)),
    (kjit.UnsupportedError, "the derivative rule `wrong_rule` of `with_wrong_rule` returns float64", lambda: kjit.grad(with_wrong_rule)(2.0)),
    (kjit.UnsupportedError, "write `@kjit.func(jvp=g)`, too", lambda: kjit.jvp(clipped)(1.0, 2.0, 1.0, 1.0)),
    (TypeError, "jvp must be the function that computes the derivative, not 3", lambda: kjit.func(jvp=3)(kept)),
    (kjit.UnsupportedError, "write `for i in range(100)`, with a constant, and leave the loop with `break`", lambda: kjit.grad(kept, 0)(1.5, 3)),
    (kjit.UnsupportedError, "or a rule, `@kjit.func(vjp=g)`", lambda: kjit.grad(factorial, 0)(1.5, 3)),
):
    try:
        call()
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)
print("ok")
