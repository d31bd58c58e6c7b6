# RUN: %kjit-python %s
"""njit functions that the interpreter runs, because they create or return arrays, have the types of compiled code. Also
fields of all elements in arrays of records."""
import math
import os
import random

os.environ.setdefault("KJIT_DEVICE", "cpu")
import numpy as np
import seeds
from kjit import njit, prange

rng = seeds.fresh_generator()


def check(got, wanted, dtype=None):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert np.array_equal(got, wanted, equal_nan=wanted.dtype.kind in "fc"), (got, wanted)
    assert dtype is None or got.dtype == dtype, (got.dtype, dtype)


# Conversions and assignments: like those of compiled code (njit_conversions.py).
@njit
def narrow(v, w):
    made = np.zeros(3, np.int32)
    made[0] = v
    made[1] += w
    made[2] = 2**32 + 5
    return made, np.int8(w), np.uint16(w), np.int32(v)


for v in (1e10, -1e10, math.nan, 7.9, -7.9, np.float32(1e20), np.float64(-1e20), np.int8(5)):
    w = int(rng.integers(-1000, 1000))
    made, byte, word, whole = narrow(v, w)
    expected = int(v) if abs(v) < 2**31 else -(2**31)
    check(made, [expected, w, 5], np.int32)
    assert (byte, word, whole) == ((w + 128) % 256 - 128, w % 2**16, expected), (v, w)


@njit
def whole(v):
    made = np.zeros(2, np.uint32)
    made[0] = v
    return made


@njit
def unsigned(v):
    return np.uint32(v)


for v in (-3.7, 1e10, math.nan, np.float32(-9.0), 7.9):
    check(whole(v), [unsigned(v), 0], np.uint32)


@njit
def chosen(a, b):
    return a if a > b else b, divmod(b, a), b and a, np.zeros(1)


larger, (quotient, rest), other, _ = chosen(7, -2.5)
assert type(larger) is type(other) is float and larger == other == 7.0 and (quotient, rest) == divmod(-2.5, 7)


@njit
def loops(n):
    s = 0
    for i in range(n):
        s += i
    for i in range(3):
        s += i
    return s, i, np.zeros(2)


assert loops(5)[:2] == (13, 2)


# A division of floats by zero under NumPy's error model, in compiled and interpreted functions.
@njit(error_model="numpy")
def divided(a, b):
    return a // b, a % b, divmod(a, b)


@njit(error_model="numpy")
def divided_in_python(a, b):
    return a // b, a % b, divmod(a, b), np.zeros(1)


for a in (7.5, -7.5, 0.0, math.nan, math.inf):
    quotient = a * math.inf
    for got in (divided(a, 0.0), divided_in_python(a, 0.0)):
        check([*got[:2], *got[2]], [quotient, math.nan, quotient, math.nan])


# Functions of NumPy.
@njit
def functions(x):
    return np.where(x > 2, x, 0), np.where(x > 2, 1.5, x), np.cumsum(x), x.cumprod(), np.var(x), x.std(), x.mean()


for name in "i1 i4 u2 u8 f4 f8".split():
    x = rng.integers(0, 9, 20).astype(name)
    zeros, halves, sums, products, variance, deviation, mean = functions(x)
    wide = np.promote_types(x.dtype, "i8")
    check(zeros, np.where(x > 2, x.astype(wide), 0), wide)
    check(halves, np.where(x > 2, 1.5, x.astype("f8")), np.promote_types(x.dtype, "f8"))
    scanned = x.dtype if x.dtype.kind in "uf" else np.dtype("i8")
    check(sums, np.cumsum(x, dtype=scanned), scanned)
    check(products, np.cumprod(x, dtype=scanned), scanned)
    exact = np.var(x.astype("f8"))
    assert np.isclose(mean, np.mean(x.astype("f8")), 1e-14) and np.isclose(variance, exact, 1e-14) and np.isclose(deviation, math.sqrt(exact), 1e-14)


# Limits of types.
@njit
def limits(x):
    return np.finfo(np.float32).eps, np.iinfo(np.uint8).max, np.iinfo(np.int64).min


assert limits(np.ones(1)) == (np.finfo("f4").eps, 255, -(2**63))


# True and False as operands.
@njit
def with_truths(x, a):
    return x * True, x + False, np.maximum(a, True), min(a, True)


product, total_of, largest, least = with_truths(np.array([3, 4], "i4"), -2)
check(product, [3, 4], np.int32)
check(total_of, [3, 4], np.int32)
assert (largest, least) == (1, -2)


@njit
def common_divisors(a, b):
    return math.gcd(a, b), math.lcm(a, b), divmod(a, b)


for a, b in rng.integers(1, 1000, (10, 2)):
    gcd, lcm, (quotient, rest) = common_divisors(np.uint64(a), np.int64(b))
    assert (gcd, lcm) == (math.gcd(a, b), math.lcm(a, b)) and type(gcd) is int
    assert type(quotient) is float and (quotient, rest) == divmod(float(a), float(b))


# Fields of arrays of records. In packed records they are not aligned.
@njit
def total(x):
    s = 0.0
    for v in x:
        s += v
    x[0] = -1
    return s


@njit
def fields(a, v):
    before = total(a.x) + total(a["y"])
    a.x[1:] += v
    return before, a.x * 2 + a.y, a.x[::-1], a.y[a.y > 1], a.x.shape


@njit
def doubled(x):
    for i in range(x.size):
        x[i] *= 2
    return x.sum()


@njit(parallel=True)
def doubled_in_parallel(x):
    s = 0.0
    for i in prange(x.size):
        x[i] *= 2
        s += x[i]
    return s


for is_aligned in (False, True):
    a = np.zeros(6, np.dtype([("x", "f8"), ("y", "i4")], align=is_aligned))
    a["x"], a["y"] = rng.integers(0, 9, 6), rng.integers(0, 4, 6)
    wanted = a.copy()
    wanted["x"][0] = wanted["y"][0] = -1
    wanted["x"][1:] += 2.5
    before = a["x"].sum() + a["y"].sum()
    got = fields(a, 2.5)
    assert got[0] == before and got[4] == (6,) and np.array_equal(a, wanted), (got, a)
    check(got[1], wanted["x"] * 2 + wanted["y"], np.float64)
    check(got[2], wanted["x"][::-1])
    check(got[3], wanted["y"][wanted["y"] > 1])
    for function in (doubled, doubled_in_parallel):
        wanted["x"] *= 2
        assert function(a["x"]) == wanted["x"].sum() and np.array_equal(a, wanted)


# The module random.
@njit
def thrown(n):
    return random.randint(1, 6) + n


assert 1 <= thrown(0) <= 6


@njit
def drawn(n):
    return np.random.random() + np.random.randint(n)


assert 0 <= drawn(1) < 1 and 0 <= drawn(5) < 5


@njit
def seeded():
    random.seed(1)
    return random.random()


assert seeded() == 0.417022004702574


# ---- lambdas in functions that make arrays ----


@njit
def with_lambda(x, k):
    y = np.zeros_like(x)
    g = lambda v: v + k  # noqa: E731
    for i in prange(len(x)):
        y[i] = g(x[i])
    return y


assert with_lambda(np.arange(4.0), 0.5).tolist() == [0.5, 1.5, 2.5, 3.5]


@njit
def with_unnamed_lambdas(x):
    apply = lambda f, v: f(v) * 2  # noqa: E731
    return np.sort(x), (lambda v: v + x[1])(x[0]), apply(lambda v: v + 1, x[0])


assert with_unnamed_lambdas(np.arange(3.0, 5.0))[1:] == (7.0, 8.0)
