# RUN: %kjit-python %s
"""Numba's rules that njit and kjit.cuda follow: annotations have no effect, integers have 64 bits, math.floor returns
an integer."""
import math
import os
import random
from typing import Any, Optional

os.environ.setdefault("KJIT_DEVICE", "cpu")
import functools

import kjit
import numpy as np
import seeds
from kjit import cuda, njit
from kjit.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32, xoroshiro128p_uniform_float64


# ---- annotations ----


def annotated(n: int, m: "no type at all", x: np.ndarray, o: Optional[int] = 3) -> int:  # noqa: F722, UP007
    half: int = n / 2
    rest: Any
    rest = 0.25
    x[0] = half
    return half + rest + m


for n in (3, 3.7, np.float32(0.5)):
    x = np.zeros(1)
    assert njit(annotated)(n, 1, x) == annotated(n, 1, x), n


@cuda.jit(device=True)
def third(a: int, b: float) -> int:
    return a / 3 + b


@cuda.jit
def annotated_kernel(r: np.float32, n: int, m: "list[int]") -> None:
    s: int = n + 0.5
    t: "an array of the block" = cuda.shared.array(4, dtype=np.float64)  # noqa: F722
    t[0] = m
    r[0] = s
    r[1] = third(n, m)
    r[2] = t[0]


r = np.zeros(3)
annotated_kernel[1, 1](r, 2.25, 0.5)
np.testing.assert_allclose(r, [2.75, 1.25, 0.5], rtol=1e-15)


# ---- integers have 64 bits, also the elements of small arrays ----


def integers(a, b):
    total = 0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total, a[0] << 20, a[0] ** 2, a[0] - b[0]


rng = seeds.fresh_generator()
for dtype in "bhilBHI":
    limits = np.iinfo(dtype)
    a, b = (rng.integers(max(limits.min, -30000), min(limits.max, 30000), 50).astype(dtype) for _ in range(2))
    a[0] = 101
    exact = [int(v) for v in a], [int(v) for v in b]
    mask = (1 << 64) - 1
    assert [int(v) & mask for v in njit(integers)(a, b)] == [v & mask for v in integers(*exact)], dtype

f = np.float32([1.1])
assert njit(lambda f, i: f[0] * i)(f, 3) == float(f[0]) * 3  # f32 and an integer give f64
assert njit(lambda f, i: f[0] * i)(f, np.int8(3)) == float(f[0] * np.int8(3))
assert [njit(lambda a: (~a[0], -a[0]))(np.array([200], t)) for t in ("u1", "i2")] == [(55, 56), (-201, -200)]


# ---- whole numbers ----


def whole(a, x):
    s = 0
    for i in range(math.ceil(x)):
        s += i
    return a[math.floor(x)], a[math.ceil(x)], a[math.trunc(x)], a[round(x)], math.floor(x) << 2, math.floor(x) % 3, s, math.floor(x) // 2


a = np.arange(10.0)
for x in (0.0, 2.5, 2.6, 7.999, np.float32(3.5)):
    assert njit(whole)(a, x) == whole(a, float(x)), x
assert njit(lambda x: math.floor(x) + 1)(2.0**53 + 2) == 2**53 + 3
assert njit(lambda x: math.floor(x))(7) == 7
for rounding in (np.floor, np.ceil, np.trunc, np.rint):  # before NumPy 2.1 these functions return floats for integers
    for value in (np.uint64(2**60 + 1), np.int64(-(2**60) - 1), np.int32(7), np.uint8(200), np.float32(2.5), -3.7):
        got = njit(lambda x, rounding=rounding: rounding(x))(value)
        is_integer = isinstance(rounding(value), np.integer)
        expected = int(value) if is_integer else rounding(float(value))
        assert isinstance(got, (int, np.integer) if is_integer else (float, np.floating)) and got == expected, (rounding, value, got)
# Numba converts an integer to float64 for these functions, and so does kjit.
for n in (2**62 + 1, -(2**53) - 1, 2**53 + 1, random.randrange(-(2**62), 2**62)):
    assert njit(lambda x: (math.floor(x), math.ceil(x), math.trunc(x)))(n) == (int(float(n)),) * 3
assert njit(lambda x: math.floor(x))(np.uint64(2**63 + 5)) == 2**63
rounded = njit(lambda x: np.rint(x))(2**53 + 1)
assert type(rounded) is float and rounded == 2.0**53
# A float is converted to a small integer through 32 bits, as in Numba's CPU code.
@njit
def store_number(r, v):
    r[0] = v


for x in (3.9, -3.9, 200.5, 300.5, 70000.7, -70000.7, random.uniform(-2e9, 2e9)):
    for kind in (np.int8, np.uint8, np.int16, np.uint16):
        stored = np.zeros(1, kind)
        assert njit(lambda v, kind=kind: kind(v))(x) == np.int64(int(x)).astype(kind), (x, kind)
        store_number(stored, x)
        assert stored[0] == np.int64(int(x)).astype(kind), (x, kind)


@cuda.jit
def whole_kernel(r, a, x):
    r[0] = a[math.floor(x)]
    r[1] = math.floor(-x) << 1


r = np.zeros(2)
whole_kernel[1, 1](r, a, 2.5)
assert r.tolist() == [2, -6]


# ---- operations on literals have the values that CPython's compiler gives them ----


def literals(r):
    r[0], r[1], r[2] = 10**-3, 2**-1 + 1 / 3, (-2) ** -2
    r[3], r[4], r[5] = 1 << 62, 7 // 2 * -3 % 5, 2**0.5
    r[6], r[7], r[8] = (-8) ** 3, 5 & 3 | 8 ^ ~1, 1 << 63
    r[9], r[10] = 2**64 - 1, 1e3 // 7


found, expected = np.zeros((2, 11)), np.zeros(11)
cuda.jit(literals)[1, 1](found[0])
njit(literals)(found[1])
literals(expected)
np.testing.assert_array_equal(found, [expected, expected])


# ---- min and max of NaN are Python's, maximum and minimum NumPy's ----

nan = math.nan
for x, y in ((nan, 1.0), (1.0, nan), (2.0, 1.0), (1.0, 2.0)):
    for function in (lambda x, y: min(x, y), lambda x, y: max(x, y), lambda x, y: min(x, y, 5.0), lambda x, y: max(0.5, x, y)):
        np.testing.assert_equal(njit(function)(x, y), function(x, y))
    for function in (lambda x, y: np.maximum(x, y), lambda x, y: np.minimum(x, y), lambda x, y: np.fmax(x, y)):
        np.testing.assert_equal(njit(function)(x, y), function(x, y))


# ---- the loop variable is assigned in the loop ----


def digits(n):
    c = 0
    for t in range(n):
        t = t // 10
        c += t
        t = t % 3
        c += t
    for t in (5, 7):
        t = t * 2
        t += 1
        c += t
    return c


assert njit(digits)(57) == digits(57)


# ---- functions with defaults, functions from functools.partial, and NumPy functions ----

x = rng.standard_normal(100)
for c in (2, 3):
    np.testing.assert_allclose(kjit.map(lambda v, c=c: v * c, x), x * c)
    np.testing.assert_allclose(kjit.map(lambda v, c=c: v * c, x, x), x * x)
    np.testing.assert_allclose(kjit.vectorize(lambda v, c=c: v * c)(x), x * c)
    np.testing.assert_allclose(kjit.vectorize(lambda v, c=c: v * c)(x, x), x * x)
    np.testing.assert_allclose(kjit.reduce(x, lambda a, b, c=c: max(a * c, b * c) / c), x.max())
    np.testing.assert_array_equal(kjit.sort(x, lambda a, b, c=c: a * -c < b * -c), np.sort(x)[::-1])
    np.testing.assert_allclose(kjit.pairs(lambda u, v, i, j, c=c: u * v * c, x[:5], x), x[:5] * x.sum() * c)
    np.testing.assert_allclose(kjit.map(functools.partial(lambda a, b: a - b, c), x), c - x)
    np.testing.assert_allclose(kjit.map(functools.partial(lambda a, b: a - b, b=c), x), x - c)
np.testing.assert_allclose(kjit.map(np.hypot, x, 2.0), np.hypot(x, 2.0))
assert kjit.reduce(x, np.maximum) == x.max()
for wrong in (functools.partial(lambda a: a, 1, 2), functools.partial(lambda a: a, z=2), np.matmul):
    try:
        kjit.map(wrong, x)
        raise AssertionError(wrong)
    except TypeError:
        pass


# ---- uniform numbers are below 1 ----


@cuda.jit
def uniform(states, r, w):
    i = cuda.grid(1)
    if i < len(r):
        r[i] = xoroshiro128p_uniform_float32(states, i)
        w[i] = xoroshiro128p_uniform_float64(states, i)


# The next number of this state is 2^64 - 1, which is rounded to 1 in 24 bits.
states = create_xoroshiro128p_states(64, seed=1)
host = states.copy_to_host()
host["s0"], host["s1"] = 2**64 - 1, 0
states.copy_to_device(host)
r, w = np.zeros(64, np.float32), np.zeros(64)
uniform[1, 64](states, r, w)
assert (r < 1).all() and (r > 0.9999999).all(), r


# ---- dtypes as strings have NumPy's meaning ----


@cuda.jit
def texts(x):
    s = cuda.shared.array(4, "int")
    t = cuda.shared.array(4, "f4")
    u = cuda.local.array(3, "i8")
    s[0] = 2**40
    t[0] = 0.1
    u[0] = 2**40
    x[0], x[1], x[2] = s[0], t[0], u[0]


x = np.zeros(3)
texts[1, 1](x)
assert x.tolist() == [2**40, float(np.float32(0.1)), 2**40]

# ---- names from numba ----

from kjit import boolean, config, float32, guvectorize, int32, prange, types, vectorize, void  # noqa: E402, F401

assert float32 is types.float32 and repr(void(float32[:], int32)) == repr(types.void(types.float32[:], types.int32))


@cuda.jit(void(float32[:], int32))
def with_types(x, n):
    x[0] = float32(n) / 2


x = np.zeros(1, np.float32)
with_types[1, 1](x, 3)
assert x[0] == 1.5
