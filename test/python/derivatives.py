# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Compares kjit.jvp, vjp, grad and no_diff of Python functions in kernels with complex steps of the same functions."""

import cmath
import math

import kjit
import numpy as np
import seeds


@kjit.func
def series(x, y):
    total = x
    for k in range(6):
        total = math.sin(total) * y + x * k
    return total


@kjit.func
def held(x):
    return x * kjit.no_diff(x * x)


@kjit.jit
def derivatives(x, y, r):
    i = kjit.grid(1)
    if i < r.shape[0]:
        value, along = kjit.jvp(series)(x[i], y[i], 0.5, -2.0)
        same, dx, dy = kjit.vjp(series)(x[i], y[i], 1.0)
        gradient = kjit.grad(series)(x[i], y[i])
        r[i, 0] = value
        r[i, 1] = along
        r[i, 2] = same
        r[i, 3] = dx
        r[i, 4] = dy
        r[i, 5] = gradient[0] - dx
        r[i, 6] = gradient[1] - dy
        r[i, 7] = kjit.grad(held)(x[i])
        r[i, 8] = kjit.grad(series, 1)(x[i], y[i])


def expected(x, y):
    def series_of(x, y):
        total = x
        for k in range(6):
            total = cmath.sin(total) * y + x * k
        return total

    step = 1e-30
    value = series_of(x, y).real
    dx, dy = series_of(x + step * 1j, y).imag / step, series_of(x, y + step * 1j).imag / step
    return [value, 0.5 * dx - 2 * dy, value, dx, dy, 0, 0, x * x, dy]


def check_values():
    rng = seeds.fresh_generator()
    x, y, r = rng.uniform(-1, 1, 50), rng.uniform(-1, 1, 50), np.zeros((50, 9))
    derivatives[2, 32](x, y, r)
    want = np.array([expected(complex(a), complex(b)) for a, b in zip(x, y)]).real
    assert np.allclose(r, want, rtol=1e-12, atol=1e-12), (x, y, r - want)


@kjit.func
def endless(x, n):
    total = x
    for _ in range(n):
        total = total * total
    return total


@kjit.jit
def refused(r, n):
    r[0] = kjit.grad(endless)(r[1], n)


def check_refusals():
    try:
        refused[1, 1](np.zeros(2), 3)
    except kjit.Error as error:
        assert "the derivative must keep the value of `total` in each iteration" in str(error), error
    else:
        raise AssertionError("a loop without a known number of iterations has a reverse derivative")


check_values()
check_refusals()
