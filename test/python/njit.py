# RUN: %kjit-python %s
"""CPU functions as Numba users write them, compared with the same functions in Python."""
import math
import os

import kjit
import numpy as np
import seeds
from kjit import njit, prange

random = seeds.fresh_generator()
x = random.standard_normal(1001)
f = x.astype(np.float32)
k = random.integers(-1000, 1000, 1001).astype(np.int32)
SCALE = 3
checked = 0


def check(function, *arguments, exact=True, **options):
    """The compiled function returns Python's values with the same types, and changes arrays in the same way."""
    global checked
    checked += 1
    mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    others = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    expected, result = function(*others), njit(**options)(function)(*mine)

    def compare(a, b):
        if isinstance(b, tuple):
            assert isinstance(a, tuple) and len(a) == len(b), (function.__name__, a, b)
            for p, q in zip(a, b):
                compare(p, q)
        elif b is None:
            assert a is None, (function.__name__, a)
        else:
            np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-5, err_msg=function.__name__)
            assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind, (function.__name__, a, b)
    compare(result, expected)
    for a, b in zip(mine, others):
        compare(a, b)


def scalars(a, n):
    total = 0
    for i in range(n):
        total += a * i
    if total > 100:
        return total / 2, n // 3, n / 3, n % 7 == 0
    return 2.0, 1, 0.5, True


for n in (0, 3, 50, -4):
    check(scalars, 3, n)
    check(scalars, 2.5, n)


def pi(n):
    s = 0.0
    for i in prange(n):
        v = (i + 0.5) / n
        s += 4 / (1 + v * v)
    return s / n


check(pi, 100000, exact=False)
check(pi, 100000, exact=False, parallel=True)
check(pi, 1, parallel=True)
assert abs(njit(parallel=True)(pi)(10**6) - math.pi) < 1e-9


def many(x, k):
    total, product, least, most, bits, count = 10, 1.0, np.inf, x[0], 0, 0
    for i in prange(len(k)):
        if k[i] < 0:
            continue
        total += k[i]
        product *= 1 + x[i] / 1000
        least = min(least, x[i])
        most = max(x[i], most)
        bits |= k[i]
        count = count + 1
    return total, product, least, most, bits, count


def many_in_python(x, k):
    return many(x, [int(v) for v in k])


expected, result = many_in_python(x, k), njit(parallel=True)(many)(x, k)
np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
assert result[0] == expected[0] and type(result[0]) is int and result[4:] == expected[4:]
assert njit(parallel=True)(many)(x, k) == result  # the same with any number of threads
kjit.set_num_threads(1)
assert kjit.get_num_threads() == 1 and njit(parallel=True)(many)(x, k) == result
kjit.set_num_threads(len(os.sched_getaffinity(0)))


@njit(parallel=True, nopython=True)
def many_by_one(x, k):
    before = kjit.get_num_threads()
    kjit.set_num_threads(1)
    made = many(x, k), kjit.get_num_threads()
    kjit.set_num_threads(before)
    return made


before = kjit.get_num_threads()
assert many_by_one(x, k) == (result, 1) and kjit.get_num_threads() == before


def strided(r, x, lo, hi, step):
    for i in prange(lo, hi, step):
        r[i] = x[i] * 2 + i
    for i in prange(len(r)):
        part = r[i]
        for j in range(3):
            part += j
        r[i] = part


for bounds in ((0, 1001, 1), (5, 900, 7), (900, 4, -3), (7, 7, 1)):
    check(strided, x, x, *bounds, parallel=True)


def relax(u, steps, limit):
    """Loops around prange loops, and serial loops between them."""
    v = np.zeros_like(u)
    worst = 2 * limit
    done = 0
    while worst > limit and done < steps:
        worst = 0.0
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
            worst = max(worst, abs(v[i, 3] - u[i, 3]))
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = v[i, j]
        done += 1
    last = 0
    for i in range(3):
        last = i * SCALE
    return worst, done, last, v, v.sum()


check(relax, random.standard_normal((20, 9)), 30, 1e-3, parallel=True, exact=False)


def rows(m):
    out = np.empty(m.shape[0], m.dtype)
    for i in prange(m.shape[0]):
        best = m[i, 0]
        for j in range(1, m.shape[1]):
            if m[i, j] > best:
                best = m[i, j]
        out[i] = best + m[i, -1]
    return out


check(rows, random.standard_normal((33, 5)).astype(np.float32), parallel=True)
check(rows, random.standard_normal((33, 5)), parallel=False)


def helper(v, w=2):
    return int(v * w) + round(v) + abs(v) / w


@njit
def compiled_helper(v):
    return helper(v, 3) - 1


def calls(x):
    s = 0.0
    for v in x:
        s += compiled_helper(v) + math.sin(v) + np.sqrt(abs(v))
    return s


assert abs(calls(x) - njit(calls)(x)) < 1e-9
assert compiled_helper(2.5) == helper(2.5, 3) - 1 and type(compiled_helper(2)) is float

# Types: Python numbers have types, and results are Python numbers, as with Numba.
assert type(njit(lambda a, b: a + b)(np.float32(1), np.float32(2))) is float
assert njit(lambda a, b: a + b)(np.float32(1), np.float32(1e-9)) == 1
assert type(njit(lambda a: a * 2.5)(np.float32(1))) is float and njit(lambda a: 2**a)(40) == 2**40
assert njit(lambda a: (a, (a > 1, a + 0.5)))(3) == (3, (True, 3.5)) and njit(lambda a: a)(2**40) == 2**40
sum32 = njit(parallel=True)(lambda a: a)
kept = []


@njit(parallel=True)
def narrow(f, acc):
    for i in prange(len(f)):
        acc += f[i]
    return acc


assert type(narrow(f, np.float32(0))) is float and type(narrow(f, 0.0)) is float
np.testing.assert_allclose(narrow(f, np.float32(0)), f.sum(), rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(narrow(f, 0.0), f.sum(dtype=np.float64), rtol=1e-12, atol=1e-12)
assert narrow(f[:0], 7) == 7 and narrow(acc=1, f=k) == 1 + int(k.sum())


# Errors of the program, and errors for unsupported code, name the line.
def refused(kind, text, function, *arguments, **options):
    try:
        njit(**options)(function)(*arguments)
    except kind as error:
        assert text in str(error), (text, error)
        return error
    raise AssertionError(f"{function.__name__} was not refused")


def carried(x):
    a = 1.0
    for i in prange(len(x)):
        x[i] = a
        a = x[i] + 1
    return a


def left(x):
    for i in prange(len(x)):
        if x[i] > 3:
            break


def returned(x):
    y = x.copy()
    for i in range(len(x)):
        if y[i] > 3:
            return i
    return 0


def allocates(x):
    for i in prange(len(x)):
        y = np.zeros(i + 3)
        x[i] = y[0]


def divides(a, b):
    return a / b


def tested(x):
    for i in prange(len(x)):
        assert x[i] < 1e9, "large"
        x[i] = 1 // (i - 5)


for function, text in ((carried, "passes a value from one iteration"), (left, "cannot be left"), (returned, "cannot return"),
                       (allocates, "the size of `y` depends on `i`")):
    error = refused(kjit.SourceError, text, function, x.copy(), parallel=True)
    assert error.file == __file__ and function.__code__.co_firstlineno < error.line < function.__code__.co_firstlineno + 6, error
def strides(first, stop, step):
    total = 0
    for i in range(first, stop, step):
        total += (i & 15) + 1
    return total


for ends in ((0, 5, 2), (7, -4, -3), (0, 5, -1), (3, 3, 2**62), (-(2**62), 2**62, 2**62), (5, 0, -(2**63))):
    check(strides, *ends)
refused(ValueError, "range() arg 3 must not be zero", strides, 0, 5, 0)
refused(ZeroDivisionError, "by zero", divides, 1.0, 0.0)
assert njit(error_model="numpy")(divides)(1.0, 0.0) == math.inf
assert refused(ZeroDivisionError, "1 // (i - 5)", tested, x.copy(), parallel=True).line == tested.__code__.co_firstlineno + 3
refused(AssertionError, "large", tested, np.full(3, 1e10), parallel=True)
refused(IndexError, "x[n]", lambda x, n: x[n], x, 5000, boundscheck=True)
refused(TypeError, "no option", divides, 1, 2, speed=3)
refused(ValueError, "error_model", divides, 1, 2, error_model="c")
for bad, kind in ((0, ValueError), (10**6, ValueError), ("a", TypeError), (True, TypeError)):
    try:
        kjit.set_num_threads(bad)
    except kind:
        continue
    raise AssertionError(bad)
assert list(prange(2, 9, 3)) == [2, 5, 8] and checked > 10
