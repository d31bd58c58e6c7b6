# RUN: %kjit-python %s
# ruff: noqa: E731, PIE790
"""Python syntax that njit functions and kernels support. Each function returns Python's value."""

import cmath
import enum
import math

import kjit
import numpy as np
import seeds
from kjit import cuda, njit

random = seeds.fresh_generator()


def is_same(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    is_equal = a == b or (a != a and b != b) or isinstance(a, complex) and abs(a - b) < 1e-14
    return is_equal and (a is None) == (b is None)


def t(function, *calls):
    compiled = njit(function)
    for arguments in calls or [()]:
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        want, got = function(*arguments), compiled(*arguments)
        assert is_same(want, got), (function.__name__, arguments, want, got)


def chain(a, b, n):
    return 0.0 < abs(n) < 1.0, a < len((1, 2, 3)) <= b, a <= max(a, b) < 7 != n


t(chain, (1, 3, 0.5), (1, 2, 3.0), (5, 9, -0.5))


def inl(n):
    return (
        n in [1, 2, 3],
        n in (1.5, 2),
        n not in [4],
        n + 1 in {3, 4},
        (n * 2) in (n, n + n),
        n in [],
        abs(n) in [abs(n)],
    )


t(inl, 1, 2, 2.0, 5)


def inr(n):
    return 5 in range(1, n, 2), n in range(10, 0, -3), 2.5 in range(n), 2.0 in range(n), n not in range(3)


t(inr, 20, 7, 1, 0, -3)


def ors(a, b, c):
    return (a or b or c), (a and b and c), (a or (b and c)), (not a or b)


t(ors, (0, 0, 0), (0, 2, 0), (1, 2, 3), (1, 0, 5))


def ors2(a, b):
    return a or b + 1, a and b - 1, abs(a) or abs(b), abs(a) and abs(b) or 7


t(ors2, (0, 0), (0, 2), (3, 1), (-1, -4))


def inc(x):
    return x + 1


def ors3(a, b):
    return inc(a) or inc(b) or 9, inc(a) and inc(b) and 2.5


t(ors3, (-1, -1), (-1, 3), (2, -1), (2, 2))


def orn(a, b):
    return a or 2.5 * b


t(orn, (0, 3), (4, 3))


def parts(a):
    return a.real, a.imag, a.conjugate()


t(parts, 3, 2.5, 1 + 2j)


def cx(a, b):
    return complex(a), complex(a, b), cmath.sqrt(a), cmath.exp(b), cmath.phase(complex(a, b))


t(cx, (3, 4), (2.5, -1.5), (0.0, 2))


def dm(a, b):
    return divmod(a, b)


t(dm, (7, 2), (-7, 2), (7.5, -2.0), (7, 2.5))


def lr(n):
    return len(range(n)), len(range(1, n, 3)), len(range(n, 0, -2)), len(range(3, n))


t(lr, 20, 1, 0, -4)


def rv(n):
    r = range(2, n, 3)
    s = 0
    for i in r:
        s = s * 7 + i
    for i in reversed(r):
        s = s * 7 + i
    for j, i in enumerate(reversed(range(n))):
        s += i * j
    return s, len(r), r.start, r.stop, r.step


t(rv, 20, 3, 2)


def rv2(n, c):
    r = range(2, n, 3) if c else range(n, 0, -1)
    if n > 5:
        r = range(4)
    return r[0], r[-1], 3 in r


t(rv2, (4, True), (4, False), (9, True))


def unp():
    a, b, c = range(3)
    return a + b * 10 + c * 100


t(unp)


def lst(n):
    s = 0
    for d in [16, 8, 4]:
        if d < n:
            break
        s = s * 3 + d
    for d in [n, n + 1]:
        s = s * 5 + d
    for d in (1, 2.5):
        s += d
    return s


t(lst, 3, 9, 20)


def revt(n):
    s = 0
    for i in reversed((1, 2, n)):
        s = s * 10 + i
    return s


t(revt, 4)


def kw(x, *, y=2):
    return x + y


def wal(x):
    if (y := x + 1) > 3:
        return y
    return -y


t(wal, 4, 1)


def walw(x):
    s = 0
    while (x := x - 1) > 0:
        if x == 2:
            continue
        s += x
    return s


t(walw, 9)


def wal2(a, b):
    r = 0
    if a > 0 and (c := b * 2) > 3:
        r = c
    z = (d := a + 1) + (d := d * 2) + d
    w = (e := 5) if a else (e := 6)
    return r, z, w, e, 0 < (q := b) < 5 and q


t(wal2, (1, 2), (1, 1), (0, 9), (-3, 3))


def ife(c):
    return (1 if c else 2.5), ((1, 2.5) if c else (0.5, 1))


t(ife, True, False)


def mn(a, b):
    return min((a, b)), max((a, b, 7)), min(a, b, 3), max(a, b)


t(mn, (1, 2), (1, 2.5), (9.5, 8.0))


def ii(x):
    return (
        isinstance(x, int),
        isinstance(x, float),
        isinstance(x, (int, float)),
        isinstance(x, complex),
        isinstance(x, tuple),
        isinstance(x, str),
    )


t(ii, 3, 2.5, 1j)


def strs(x, k):
    mode = "fast" if k else "slow"
    return x


def strs2(x):
    mode = "fast"
    if mode == "fast":
        r = x
    else:
        r = -x
    name = "abc"
    if "b" in name and name != "x":
        r += 10
    if mode in ("fast", "b"):
        r += 100
    return r


t(strs2, 3)


def none1(x):
    z = None
    return x == z, z == x, x != z, z is None, z is not None, x is None, (1 if z is None else 2), not z


t(none1, 3)


def lam(n):
    f = lambda v: v * n
    n = n + 4
    g = lambda a, b=2: f(a) + b

    def h(a, *, k=3):
        t = a
        for i in range(3):
            t += f(i) * k
        return t

    return f(2), g(3), g(3, b=1), h(2), h(2, k=1), (lambda q: q + n)(4)


t(lam, 3, 2.5)


def app(f, x):
    return f(x) + f(x + 1)


def app2(f, x):
    return app(f, x) * 2


def lam2(n):
    m = 4
    f = lambda v: v * n
    return app(lambda v: v * m, 5), app(lambda v: v * 2, 5), app(f, 5), app2(f, 2), app(math.sqrt, 9.0), app2(inc, 1)


t(lam2, 3, 2.5)


def lam3(n):
    f = math.sin
    g = inc
    a = f(n) + g(n)
    f = math.cos
    return a + f(n)


t(lam3, 3)


def lam4(n):
    if n > 3:

        def g(v):
            return v + n

        r = g(1)
    else:
        r = 2
    s = 0
    for i in range(4):
        h = lambda v: v * i
        s += h(n)
    return r, s


t(lam4, 3, 5)


def tups(t):
    return t[-1], t[0], len(t), t + (1,), t[1:], t == t, t < t


def tup2(x):
    t = (x, 2.5)
    return t[-1], t[0], len(t), t + (1,), t[1:], t == (1,), t < (1, 2, 3), t != (1, 2.0), t[::-1], (t, 3)[0][1]


t(tup2, 1, 3)


def rf(n):
    s = 0
    for i in range(int(n)):
        s += i
    return s


t(rf, 3.9)


def asr(x):
    assert x > 0, "positive"
    pass
    return x


t(asr, 3)


def vf(x, *a):
    return x + len(a)


def vg(x, y=2):
    return x - y


def vk(x, *, y=2):
    return x - y


def vb(x):
    return vf(x, 1, 2), vf(x), vf(*(x, 2, 3)), vg(y=x, x=3), vg(x), vk(x), vk(x, y=7)


t(vb, 1)


def early(x):
    y = None
    if y is None:
        y = x * 2
    return x + y


t(early, 3)


def sw(x):
    a, b = None, None
    if a is None:
        a = 1
    b = 2
    return a + b + x


t(sw, 3)


def rngf(r, k):
    return 0


def total(r):
    s = 0
    for i in r:
        s += i
    return s


def rngarg(n):
    return total(range(n)) + total(reversed(range(2, n)))


t(rngarg, 6)


# ---- ---- operands of `and`, `or` and chained comparisons are evaluated once, and only if Python evaluates them ----
# ----


@cuda.jit(device=True)
def counts(calls, i, value):
    calls[i] += 1
    return value


def counted(calls, r, a, b, c):
    r[0] = counts(calls, 0, a) < counts(calls, 1, b) < counts(calls, 2, c)
    r[1] = counts(calls, 3, a) or counts(calls, 4, b) or counts(calls, 5, c)
    r[2] = counts(calls, 6, a) and counts(calls, 7, b) and counts(calls, 8, c)
    r[3] = counts(calls, 9, a) in (counts(calls, 10, b), counts(calls, 11, c))


def counts_in_python(calls, i, value):
    calls[i] += 1
    return value


for _ in range(6):
    a, b, c = (int(v) for v in random.integers(0, 3, 3))
    calls, r, wanted_calls, wanted = np.zeros(12), np.zeros(4), np.zeros(12), np.zeros(4)
    cuda.jit(counted)[1, 1](calls, r, a, b, c)
    compiled, counts = counts, counts_in_python
    counted(wanted_calls, wanted, a, b, c)
    counts = compiled
    np.testing.assert_array_equal(calls, wanted_calls)
    np.testing.assert_array_equal(r, wanted)

# ---- None, enumerations, *args and keyword-only parameters as a kernel's arguments ----


class Color(enum.IntEnum):
    RED = 1
    GREEN = 2


class Shape(enum.Enum):
    CIRCLE = 2
    SQUARE = 5


class Other(enum.Enum):
    CIRCLE = 2


class Word(enum.Enum):
    YES = "yes"
    NO = "no"


@cuda.jit
def none_given(r, x=None):
    if x is None:
        r[0] = -1
    else:
        r[0] = x[0]


@cuda.jit
def members(r, c, s):
    r[0] = c.value + c
    r[1] = 1 if s == Shape.SQUARE else 0
    r[2] = 1 if s is Shape.SQUARE else 0
    r[3] = s == Other.CIRCLE or s is Other.CIRCLE
    r[4] = s.value * 10 + (Color.RED if r[0] > 3 else Color.GREEN).value
    r[5] = picks(c, s)
    best = Shape.CIRCLE
    if c == Color.GREEN:
        best = s
    r[6] = best.value + (best != Shape.CIRCLE) * 100 + (c in (Color.RED, 7)) * 1000
    r[7] = Color.GREEN


@cuda.jit(device=True)
def picks(c, s):
    return s.value * 100 + (c == Color.RED) + (s in (Shape.SQUARE, Other.CIRCLE)) * 10


def members_in_python(c, s):
    best = s if c == Color.GREEN else Shape.CIRCLE
    first = c.value + c
    return [
        first,
        s == Shape.SQUARE,
        s is Shape.SQUARE,
        0,
        s.value * 10 + (1 if first > 3 else 2),
        s.value * 100 + (c == Color.RED) + (s is Shape.SQUARE) * 10,
        best.value + (best != Shape.CIRCLE) * 100 + (c in (Color.RED, 7)) * 1000,
        2,
    ]


@cuda.jit
def words(r, w):
    r[0] = 1 if w == Word.YES else 2


@cuda.jit
def rest(r, first, *xs, scale=2):
    r[0] = len(xs) * scale
    for x in xs:
        r[1] += x
    r[2] = first + sums(*xs)


@cuda.jit(device=True)
def sums(*xs):
    total = 0
    for x in xs:
        total += x
    return total


@kjit.jit
def rest_of_kjit(r, *xs, scale=2):
    r[0] = len(xs) * scale


r = np.zeros(1)
none_given[1, 1](r, None)
assert r[0] == -1
none_given[1, 1](r, np.array([7.5]))
assert r[0] == 7.5
none_given[1, 1](r)
assert r[0] == -1
for c in Color:
    for s in Shape:
        r = np.zeros(8)
        members[1, 1](r, c, s)
        assert r.tolist() == members_in_python(c, s), (c, s, r)
for w in Word:
    words[1, 1](r, w)
    assert r[0] == (1 if w is Word.YES else 2)
for given in [(), (1.5,), (1, 2.5, 3)]:
    r = np.zeros(3)
    rest[1, 1](r, 4, *given)
    assert r.tolist() == [len(given) * 2, sum(given), 4 + sum(given)], (given, r)
rest[1, 1](r, 4, 1, 2, scale=7)
assert r[0] == 14
rest_of_kjit[1, 1](r, 1, 2.5)
assert r[0] == 4

# ---- values that can be None ----


def maybe(x):
    if x > 0:
        return x * 2.5
    return None


def falls(x):
    for i in range(3):
        if i == x:
            return i


def pair(x):
    if x > 2:
        return x, 2.5
    return None


def uses(x):
    y, z, w = maybe(x), falls(x), pair(x)
    s = 0.0
    if y is not None:
        s += y
    if z is not None:
        s += z * 100
    if w is not None:
        s += w[0] * w[1] * 1000
    return s, y is None, z == None, w is not None  # noqa: E711


def least(a):
    best = None
    for v in a:
        if best is None or v < best:
            best = v
    return best if best is not None else -1.0


def chosen(x):
    v = x if x > 1 else None
    w = v
    if x == 3:
        w = None
    return v is None, w is None, (v if v is not None else 7) + (0 if w is None else w)


t(uses, -1, 0, 1, 2, 3, 4)
t(least, np.array([3.0, 1.0, 2.0]), np.zeros(0))
t(chosen, 0, 1, 2, 3)
t(maybe, 1, -1, 2.5)
t(falls, 1, 2, 9)


@njit
def missing(x):
    y = maybe(x)
    return y + 1


assert missing(2) == 6
try:
    missing(-2)
except TypeError as error:
    assert "expected a number, got None" in str(error)
else:
    raise AssertionError("None was added to a number")

# Numba's types of complex numbers: float32 gives complex64, whose squares are rounded to float32.
for function, value, kind in [
    (lambda v: complex(v) * complex(v), np.float32(0.1), np.complex64),
    (lambda v: complex(v, v) * complex(v), np.float32(0.1), np.complex64),
    (lambda v: complex(v) * complex(v), 0.1, np.complex128),
    (lambda v: cmath.sqrt(v) * cmath.sqrt(v), np.float32(0.1), np.complex64),
    (lambda v: cmath.sqrt(v) * cmath.sqrt(v), np.int8(3), np.complex64),
    (lambda v: cmath.sqrt(v) * cmath.sqrt(v), 3, np.complex128),
]:
    got = njit(function)(value)
    is_narrow = complex(np.complex64(got)) == got
    assert is_narrow == (kind is np.complex64), (value, kind, got)


# ---- `is` of members: members of two enumerations are never the same, even if they are equal integers ----


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Grade(enum.IntEnum):
    GOOD = 1
    BAD = 2


def compared(a, b, out):
    out[0] = a == b
    out[1] = a != b
    out[2] = a is b
    out[3] = a is not b
    out[4] = b is Level.HIGH


for one in (*Level, *Grade):
    for other in (*Level, *Grade):
        expected = np.zeros(5, bool)
        compared(one, other, expected)
        for compiled in (kjit.jit(block=1, grid=1)(compared), njit(compared), cuda.jit(compared)[1, 1]):
            got = np.zeros(5, bool)
            compiled(one, other, got)
            assert got.tolist() == expected.tolist(), (one, other, got, expected)
