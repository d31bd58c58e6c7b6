# RUN: %kjit-python %s
"""Compares Python code in kernels with the same code in Python itself and in NumPy."""
import enum
import math

import kjit
import numpy as np
import seeds
from kjit import f32, grid_range

random = seeds.fresh_generator()
x = random.standard_normal(100).astype(np.float32)
y = random.standard_normal(100).astype(np.float32)
SCALE, PAIR, TABLE, FLAG = 3, (2, 0.5), np.array([[1.5, 2.5], [3.5, 4.5]], np.float32), False


class Mode(enum.IntEnum):
    DOUBLE = 2


def plain(v, k=SCALE):
    """A function without a decorator."""
    return v * k


@kjit.func
def both(a, b):
    return a + b, a - b


add = lambda a, b: a + b; mul = lambda a, b: a * b  # noqa: E731, E702


@kjit.func
def fib(n: kjit.i32) -> kjit.i64:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@kjit.jit
def axpy(r, a, x, y):
    for i in grid_range(len(r)):
        r[i] = a * x[i] + y[i]


r = np.empty_like(x)
axpy(r, 2.5, x, y)
np.testing.assert_allclose(r, 2.5 * x + y, rtol=1e-6, atol=1e-6)
axpy(r, y=y, x=x, a=np.float32(2))
np.testing.assert_allclose(r, 2 * x + y, rtol=1e-6, atol=1e-6)


@kjit.jit
def words(r, x, y, n=1):
    "A doc string."
    i = kjit.grid(1)
    if i >= len(r):
        return
    a, b = x[i], y[i]
    a, b = b, a                       # a swap
    s, d = both(a, b)
    if a > b:
        c = a
    elif a == b:
        c = 0
    else:
        c = math.sqrt(abs(b))
    total = 0.0
    j = 0
    while True:
        j += 1
        if j == 2:
            continue
        if j > 4:
            break
        total += j * s
    for k in range(10, 0, -3):
        k = k + 1  # the loop variable is assigned in the loop
        total -= k
    for k in kjit.unroll(range(2)):
        total += TABLE[k, 1] * PAIR[1]
    if FLAG:
        total = undefined_name(total)  # noqa: F821
    u = v = total
    inside = -1 < a <= 1 != b
    total += (1 if inside and not b < 0 else 2) + add(mul(u, 2), v) + plain(d) + plain(d, k=Mode.DOUBLE) + min(a, b, c) + n
    n = n + 1  # a parameter is assigned as well
    r[i] = total + n + PAIR[0]


def words_in_python(x, y, n=1):
    a, b = float(y), float(x)
    s, d = a + b, a - b
    c = a if a > b else 0 if a == b else math.sqrt(abs(b))
    total = sum(j * s for j in (1, 3, 4)) - sum(k + 1 for k in range(10, 0, -3)) + 0.5 * (2.5 + 4.5)
    u = v = total
    inside = -1 < a <= 1 != b
    total += (1 if inside and not b < 0 else 2) + 2 * u + v + 3 * d + 2 * d + min(a, b, c) + n
    return total + n + 1 + 2


words[4, 32](r, x, y)
np.testing.assert_allclose(r, [words_in_python(*v) for v in zip(x, y)], rtol=1e-4, atol=1e-4)


@kjit.jit
def sums(out, x):
    tile = kjit.shared(64, x.dtype)
    t = kjit.threadIdx.x
    i = kjit.grid(1)
    tile[t] = x[i] if i < len(x) else 0
    kjit.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
        kjit.syncthreads()
        step //= 2
    if t == 0:
        kjit.atomic_add(out[0], tile[0])


out = np.zeros(1, np.float32)
sums[2, 64](out, x)
np.testing.assert_allclose(out[0], x.sum(dtype=np.float64), rtol=1e-4, atol=1e-4)


@kjit.jit
def dynamic(r):
    room = kjit.shared(0, f32)
    room[kjit.threadIdx.x] = kjit.threadIdx.x
    kjit.syncthreads()
    r[kjit.threadIdx.x] = room[len(r) - 1 - kjit.threadIdx.x]


small = np.zeros(8, np.float32)
dynamic[1, 8, None, 32](small)
assert small.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@kjit.jit
def shapes(r: f32[:, :], n: kjit.const):
    keep = kjit.local((2, n), kjit.i32)
    for p in range(n):
        keep[0, p] = p
    row = r[1]
    for i, j in grid_range(r.shape):
        r[i, j] = i * 10 + j + keep[0, n - 1]
    for at in grid_range(r.shape):
        r[at] += 1
    r.T[0, 1] = row.size


m = np.zeros((2, 3), np.float32)
shapes[1, 1](m, 3)
assert m.tolist() == [[3, 4, 5], [3, 14, 15]], m


@kjit.jit
def shown(x):
    print("x:", x[0], len(x), (1, 2.5))
    print()


import contextlib  # noqa: E402
import io  # noqa: E402

text = io.StringIO()
with contextlib.redirect_stdout(text):
    shown[1, 1](np.array([1.5]))
assert text.getvalue() == "x: 1.5 1 (1, 2.5)\n\n", text.getvalue()

# Python calls funcs.
assert fib(20) == 6765 and add.__name__ == "<lambda>"
assert kjit.func(plain)(2.5) == 7.5 and kjit.func(plain)(2, k=5) == 10
assert kjit.func(lambda a: a > 1)(2) is True
assert abs(kjit.func(lambda a: a / 3)(np.float32(1)) - 1 / 3) < 1e-7
assert kjit.func(lambda a: len(a))(np.zeros(5)) == 5


# Closures: each function has its own constants.
def scaled(k):
    @kjit.jit
    def kernel(r):
        for i in grid_range(len(r)):
            r[i] = k
    return kernel


for k in (1, 2.5, -3, np.float32(0.1), np.int8(-7), True):
    scaled(k)(r)
    assert (r == np.float32(k)).all(), (k, r[0])

for value, text in [(kjit.f32[:], "f32[:]"), (kjit.f32[:, :], "f32[:, :]"), (kjit.f32[:, ::1], "f32[:, ::1]"), (kjit.u8[::1], "u8[:] C")]:
    assert value.text == text, value.text
assert kjit.f32(0.1) == np.float32(0.1)


@kjit.jit
def value_of_or(r, a, b):
    r[0] = a or b
    r[1] = a and b


two = np.zeros(2, np.int32)
for a, b in [(0, 5), (3, 5), (0, 0), (3, 0)]:
    value_of_or[1, 1](two, np.int32(a), np.int32(b))
    assert two.tolist() == [a or b, a and b]


@kjit.jit
def carried(r):
    for i in range(len(r)):
        if i == 0:
            last = 1
        last = last * 2
        r[i] = last


carried[1, 1](small)
assert small.tolist() == [2, 4, 8, 16, 32, 64, 128, 256]


# Variables: one type for all assignments, wherever they are; arrays; the value of a loop variable after the loop.
SIZES, PAIRS = (2, 0.5, 4), ((1, 2.5), (3, 4.5))


@kjit.jit
def joined(r, n, x, y):
    a = n
    if n > 2:
        a = 2.5 * a
    rows = x
    if n > 3:
        rows = y[::2]
    typed: kjit.f32
    for k in range(n):
        typed = a + k
        if k == 5:
            break
    r[0], r[1], r[2], r[3] = a, rows[1], typed, k
    for k in range(3):
        r[4] += k
    if n > 0:
        for m in range(2 * n):
            pass
        for m in range(3, 7):
            r[5] += m
        r[6] = m
    x = y  # a parameter that is an array
    r[7] = x[3]


for n in (2, 4, 9):
    r = np.zeros(8)
    joined[1, 1](r, np.int32(n), x, y)
    a = n * 2.5 if n > 2 else n
    k = min(n - 1, 5)
    assert r.tolist() == [a, (y[2] if n > 3 else x[1]), np.float32(a + k), k, 3, 18, 6, y[3]], (n, r)


@kjit.jit
def loops(r, m, n: kjit.const):
    for v in SIZES:  # the loop has a copy of its body for each item
        r[0] += v
    for p, q in PAIRS:
        r[1] += p * q
    for i in kjit.static(range(n)):
        r[2] += PAIRS[i % 2][1] * i
    for at in range(m.shape):
        r[3] += m[at]
    for row in m:
        for v in row:
            r[4] = 2 * r[4] + v
    for v in (m[0], m[1]):
        r[5] += len(v) + v[0]


m = random.integers(0, 100, (2, 3)).astype(np.float64)
r = np.zeros(6)
loops[1, 1](r, m, 3)
folded = 0
for v in m.ravel():
    folded = 2 * folded + v
assert r.tolist() == [6.5, 16, 0 + 4.5 + 2 * 2.5, m.sum(), folded, 6 + m[0, 0] + m[1, 0]], (r, m)


def last(a, i):
    return a[i - len(a)]


@kjit.jit(wrap=True)
def wrapped(r, x, n):
    r[0], r[1] = x[n], last(x, 3)  # functions without a decorator are compiled like the kernel
    part = x[n:100]
    r[2] = len(part)
    r[-1 + n] = 5


r = np.zeros(6)
wrapped[1, 1](r, x, -2)
assert r.tolist() == [x[-2], x[3], 2, 5, 0, 0], r
assert "@wrap" in wrapped.ir and "@line" not in wrapped.ir


class Sums:
    @kjit.func
    def twice(self):
        return 2 * self


assert Sums.twice(4) == 8


# ---- one target in a tuple ----


@kjit.func
def only(x):
    return (2 * x,)


@kjit.jit
def unpacks_one(r):
    doubled, = only(3.0)
    n, = r.shape
    r[0] = doubled + n


r = np.zeros(4)
unpacks_one[1, 1](r)
assert r[0] == 10
print("language: good")
