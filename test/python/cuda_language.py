# RUN: %kjit-python %s
"""Python code in kernels of kjit.cuda beyond plain loops and numbers. Each kernel is compared with the same code in
Python or NumPy."""
import cmath
import enum
import math
import re
import warnings

import numpy as np
import seeds
from kjit import cuda

random = seeds.fresh_generator()


class Mode(enum.IntEnum):
    SLOW = 3
    FAST = 7


def runs(function, *arguments):
    """Returns the first argument after the kernel has run, and after Python has run."""
    mine, theirs = arguments[0].copy(), arguments[0].copy()
    cuda.jit(function)[1, 1](mine, *arguments[1:])
    function(theirs, *arguments[1:])
    np.testing.assert_array_equal(mine, theirs)


def searches(r, x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            r[0] = i
            break
    else:
        r[0] = -i
    k = 0
    while k < len(x):
        if x[k] == limit:
            break
        k += 1
    else:
        r[1] = 1
    r[2] = k


def pairs(r, x, y):
    n = 0
    for i, (a, b) in enumerate(zip(x, y), 2):
        r[i - 2] += i * a - b
        n += 1
    for i, k in enumerate(range(9, -4, -3)):
        r[i] += k
        if k == 0:
            break
    for a, k in zip(x, range(3)):
        r[k] += a
        k = 0
    r[6] = n


x, y = random.integers(0, 9, (2, 8)).astype(np.int64)
for limit in range(10):
    runs(searches, np.zeros(3), x, limit)
runs(pairs, np.zeros(8, np.int64), x, y[:7])


def sums(r, a):
    r[0], r[1], r[2], r[3] = np.sum(a), np.prod(a), np.min(a), np.max(a)
    r[4], r[5], r[6], r[7] = np.mean(a), np.var(a), np.std(a), np.count_nonzero(a)
    r[8], r[9] = np.all(a), np.any(a)
    r[10], r[11], r[12], r[13] = a.sum(), a.max(), a.mean(), a.any()
    r[14], r[15], r[16] = np.ptp(a), np.nanvar(a), np.nanstd(a)


def nans(r, a):
    r[0], r[1], r[2], r[3], r[4] = np.nansum(a), np.nanprod(a), np.nanmin(a), np.nanmax(a), np.nanmean(a)
    r[5], r[6] = np.sum(a), np.max(a)
    r[7], r[8], r[9] = np.nanvar(a), np.nanstd(a), np.ptp(a)


for a in (random.integers(-3, 4, (3, 4)), random.integers(0, 200, 9).astype(np.uint8), random.random((2, 3, 2)), np.zeros(3, np.float32)):
    got, expected = np.zeros(17), np.zeros(17)
    cuda.jit(sums)[1, 1](got, a)
    sums(expected, a)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
some = random.integers(1, 5, 9).astype(float)
some[random.integers(9)] = np.nan
for a in (some, np.full(3, np.nan)):
    got, expected = np.zeros(10), np.zeros(10)
    cuda.jit(nans)[1, 1](got, a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's warnings about slices that contain only NaN
        nans(expected, a)
    np.testing.assert_allclose(got, expected, rtol=1e-12)

# Complex numbers are ordered by their real parts first.
z = random.integers(-2, 3, (2, 30)) + 1j * random.integers(-2, 3, (2, 30))
for ufunc in (np.less, np.less_equal, np.greater, np.greater_equal, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_xor):
    r = np.zeros_like(ufunc(*z))

    @cuda.jit
    def apply(p, q, r):
        ufunc(p, q, r)

    apply[1, 1](z[0], z[1], r)
    np.testing.assert_array_equal(r, ufunc(*z))

# Device arrays that are used where they are, without being arguments.
weights = cuda.to_device(random.random(6))


@cuda.jit
def weigh(r):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = weights[i] * 2
        weights[i] = i


before, r = weights.copy_to_host(), np.zeros(6)
weigh[1, 8](r)
np.testing.assert_array_equal(r, 2 * before)
np.testing.assert_array_equal(weights.copy_to_host(), np.arange(6))


@cuda.jit
def others(r, mode, when, z):
    r[0] = mode == Mode.FAST
    r[1] = Mode["SLOW"] is mode
    r[2] = mode is None
    r[3] = (when - np.datetime64("1970-01-02")) / np.timedelta64(1, "D")
    cuda.atomic.add(z.imag, 0, 2.5)
    r[4] = r.reshape((2, 3))[1, 0]
    r[5] = round(1.26, 1)


r, z = np.zeros(6), np.ones(1, np.complex64)
others[1, 1](r, Mode.FAST, np.datetime64("1970-01-11"), z)
np.testing.assert_array_equal(r, [1, 0, 0, 9, 9, 1.3])
assert z[0] == 1 + 2.5j

# Views, dates, functions alone.
d = cuda.to_device(np.arange(12, dtype="i2").reshape(3, 4))
np.testing.assert_array_equal(d.view("i8").copy_to_host(), np.arange(12, dtype="i2").reshape(3, 4).view("i8"))
dates = np.array(["2020-02-29", "1969-12-31"], "M8[D]")
np.testing.assert_array_equal(cuda.to_device(dates).copy_to_host(), dates)


def blend(p, q):
    return 0.25 * p + q


ptx, result = cuda.compile_ptx(blend, (cuda.float32, cuda.int32), device=True, cc=(8, 0))
assert result == cuda.float64 and re.search(r"\.visible \.func +\(\.param \.b64 \w+\) blend", ptx), ptx


@cuda.jit("int64(int64)", device=True)
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@cuda.jit
def first(r):
    for i in range(len(r)):
        r[i] = fib(i)


r = np.zeros(12, np.int64)
first[1, 1](r)
assert all(r[i] == r[i - 1] + r[i - 2] for i in range(2, 12)) and r[1] == 1
for signature, message in (("void(float32)", "pointers can be indexed"), ("void(int32[:], int32)", "parameters")):
    try:
        @cuda.jit(signature)
        def wrong(r):
            r[0] = 1
    except Exception as error:
        assert message in str(error), error
    else:
        raise AssertionError(signature)

# cmath's functions at infinities and zeros, with their signs.
infinity = math.inf
numbers = [0.0, -0.0, 1.5, -2.0, infinity, -infinity, math.nan]


@cuda.jit
def specials(r, z, p, q):
    i = cuda.grid(1)
    if i < len(z):
        r[0, i], r[1, i] = cmath.exp(z[i]), cmath.rect(p[i], q[i])


def in_python(function, *arguments):
    try:
        return function(*arguments)
    except (ValueError, OverflowError):
        return None


z = np.array([complex(a, b) for a in numbers for b in numbers])
r = np.zeros((2, len(z)), complex)
specials[2, 32](r, z, z.real.copy(), z.imag.copy())
for i, value in enumerate(z):
    for got, expected in zip(r[:, i], (in_python(cmath.exp, value), in_python(cmath.rect, value.real, value.imag))):
        if expected is not None:
            np.testing.assert_allclose([got.real, got.imag], [expected.real, expected.imag], rtol=1e-14, err_msg=str(value))
            for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
                assert math.isnan(b) or math.copysign(1, a) == math.copysign(1, b), (value, got, expected)
