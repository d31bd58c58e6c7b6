# RUN: %kjit-python %s
"""Loops and returns as Numba programs have them: range of floats, functions that return a value only on some paths,
divisors that a loop does not change."""
import numpy as np

from kjit import cuda, njit

random = np.random.RandomState(7)


def raises(kind, call, text=""):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


# range of floats: the fractions are dropped, as in Numba.
@njit
def counted(a, b):
    s = 0
    for i in range(a, b):
        s += i
    return s


@njit
def strided(a, b, c):
    s = 0
    for i in range(a, b, c):
        s += i * i
    return s


@njit
def near(x, width):
    first, last = np.ceil(x - width / 2), np.floor(x + width / 2)
    s = 0.0
    for i in range(first, last + 1):
        s += (i - x) ** 2
    return s


for a, b in zip(random.uniform(-20, 20, 30), random.uniform(-20, 20, 30)):
    assert counted(a, b) == sum(range(int(a), int(b))), (a, b)
    assert counted(np.float32(a), 7) == sum(range(int(np.float32(a)), 7))
    assert strided(a, b, 2.9) == sum(i * i for i in range(int(a), int(b), 2))
    assert np.isclose(near(a, 5.0), sum((i - a) ** 2 for i in range(int(np.ceil(a - 2.5)), int(np.floor(a + 2.5)) + 1)))


@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    if i < out.size:
        for k in range(x[i]):
            out[i] += k


x, out = random.uniform(-3, 9, 40), np.zeros(40)
kernel[2, 32](x, out)
assert np.array_equal(out, [sum(range(int(v))) for v in x])


# A function that returns a value only on some paths returns None on the others.
@njit
def spline(x, order):
    if abs(x) > 1:
        return 0
    if order == 0:
        return 1
    elif order == 1:
        return 1 - abs(x)


@njit
def doubled(x, order):
    return 2 * spline(x, order)


@njit
def explicit(x):
    if x < 0:
        return None
    return x + 0.5


@njit
def searched(a, wanted):
    for i in range(a.size):
        if a[i] == wanted:
            return i


for v in random.uniform(-1, 1, 10):
    assert doubled(v, 1) == 2 * (1 - abs(v)) and doubled(v, 0) == 2 and explicit(abs(v)) == abs(v) + 0.5
raises(TypeError, lambda: doubled(0.5, 2), "expected a number, got None")
assert spline(0.5, 2) is None and explicit(-1.0) is None
assert searched(np.arange(5, 9), 7) == 2
assert searched(np.arange(5, 9), 70) is None


# A call of a function without a result is None.
@njit
def set_first(a, v):
    a[0] = v


@njit
def sets_first(a, v):
    if v < 0:
        return set_first(a, -v)
    if v == 0:
        return
    return set_first(a, v)


@njit
def count_down(a, n):
    if n == 0:
        return
    a[n] = n
    return count_down(a, n - 1)


@njit
def replaced(a, v):
    r = 5.0
    if v:
        r = set_first(a, v)
    return r


seed = njit(lambda a, v: set_first(a, v))
a = np.zeros(4)
assert sets_first(a, -3) is None and a[0] == 3 and sets_first(a, 2) is None and a[0] == 2 and sets_first(a, 0) is None
assert count_down(a, 3) is None and a.tolist() == [2, 1, 2, 3]
assert replaced(a, 7) is None and a[0] == 7 and replaced(a, 0) == 5
assert seed(a, 8) is None and a[0] == 8


@cuda.jit
def sets_by_call(a):
    return set_first(a, 9)


sets_by_call[1, 1](a)
assert a[0] == 9
raises(TypeError, lambda: cuda.jit(lambda a: a[0])[1, 1](a), "a kernel cannot return a value")


@cuda.jit
def with_spline(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = spline(x[i], 1)


x, out = random.uniform(-2, 2, 40), np.zeros(40)
with_spline[2, 32](x, out)
assert np.allclose(out, np.maximum(1 - np.abs(x), 0))


# A loop-invariant divisor, real or complex, is checked once before the loop.
@njit
def quotients(z, values, out):
    for n in range(1, out.size):
        out[n] = n / z - values[n] / z


for kind in (complex, np.complex64, float, np.float32):
    z, values = kind(random.uniform(1, 2)), random.uniform(-1, 1, 20).astype(kind)
    out = np.zeros(20, np.result_type(values, z))
    quotients(z, values, out)
    assert np.allclose(out[1:], np.arange(1, 20) / z - values[1:] / z, rtol=1e-5), kind
    raises(ZeroDivisionError, lambda: quotients(kind(0), values, out))
quotients(1j, np.ones(20, complex), np.zeros(20, complex))
