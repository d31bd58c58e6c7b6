# RUN: %kjit-python %s
# ruff: noqa: E711, E721, E731, PLE0643
"""Python syntax in kernels of kjit.cuda, each compared with the same function in Python, and in kernels of kjit.jit."""

import cmath
import enum
import math
import operator
from collections import namedtuple

import kjit
import numpy as np
from kjit import cuda


def t(function, *arguments):
    result, wanted = np.zeros(8), np.zeros(8)
    function(wanted, *arguments)
    cuda.jit(function)[1, 1](result, *arguments)
    assert np.array_equal(result, wanted, equal_nan=True), (function.__name__, arguments, result, wanted)


P = namedtuple("P", "x y")
Q = namedtuple("Q", "a p")
CFG = P(3, 2.5)
NEST = Q(2, P(1, 4.5))
TUP = ((1, 2), (3.5, 4))


class C(enum.IntEnum):
    a = 1
    b = 2


class S(enum.Enum):
    a = 1
    b = 2


MODE = "x"


def dev(p):
    return p.x * p.y


def dev2(t):
    return t[0][1] + t[1][0]


def k1(r):
    r[0] = CFG.x
    r[1] = dev(CFG)
    r[2] = NEST.p.y + NEST[1][0]
    r[3] = dev2(TUP)
    r[4] = len(TUP)
    r[5] = TUP[-1][-1]
    r[7] = dev2(((1, 2), (3, 4)))


t(k1)


def k2(r, p, q):
    r[0] = p.x
    r[1] = dev(p)
    r[2] = q.p.y + q[1][0] + q.a
    r[3] = dev(q.p)
    x, y = p
    r[4] = x - y
    r[5] = p[-1]
    r[6] = len(q)
    r[7] = p == q.p


t(k2, CFG, NEST)


def k3b(r, t):
    for i in range(len(t)):
        for j in range(2):
            r[i * 2 + j] = t[i][j]
    for v in t:
        r[4] += v[0]


t(k3b, ((1, 2), (3, 4)))


def k4(r, n):
    if MODE == "x" and n > 0:
        r[0] = 1
    if n > 0 and MODE != "x":
        r[1] = 1
    elif MODE in ("x", "y"):
        r[1] = 2
    r[2] = 5 if MODE == "x" else "no"
    s = "abc"
    r[3] = len(s) if False else 7


t(k4, 1)


def k5(r, n):
    op = operator.add if n is not None else operator.sub
    r[1] = op(n, 2)
    g = math.sqrt
    r[2] = g(n)


t(k5, 1.5)


def k6(r, n, flag=True, *, scale=3.0):
    r[0] = n * scale if flag else -n


t(k6, 2)
t(k6, 2, False)


def k7(r, *a):
    s = 0
    for v in a:
        s += v
    r[0] = s
    r[1] = len(a)
    if len(a) > 1:
        r[2] = a[1]
    r[3] = mx(*a, 3)
    r[4] = mx(1, *(2, 5))


def mx(*v):
    m = v[0]
    for x in v:
        m = max(m, x)
    return m


t(k7, 1, 2.5, 7)
t(k7)


def k8(r, x):
    y = x if x is not None else np.float64(2)
    r[0] = y
    z = None if x is None else x * 2
    r[1] = -1 if z is None else z
    if x:
        r[2] = 1
    if not x:
        r[3] = 1
    r[4] = x or 9
    r[5] = (x is None) + (x != None) * 2


t(k8, None)
t(k8, 3.0)
t(k8, 0.0)


def helper(x, y=None, z=None):
    if y is None:
        y = 1.0
    if z is not None:
        return x * y + z
    return x * y


def k9(r, n):
    r[0] = helper(n)
    r[1] = helper(n, 2)
    r[2] = helper(n, z=3)
    r[3] = helper(n, None, 4)
    w = None
    r[4] = helper(n, w, w)


t(k9, 3.0)


def first(a, v):
    for i in range(a.shape[0]):
        if a[i] == v:
            return i
    return None


def k10(r, a):
    i = first(a, 3.0)
    j = first(a, 99.0)
    r[0] = i is None
    r[1] = j is None
    if i is not None:
        r[2] = a[i]
    r[3] = -1 if j is None else j
    if j is None:
        j = 0
    r[4] = j
    while i is not None and i < 5:
        i += 1
    r[5] = i


t(k10, np.array([1, 2, 3.0, 4]))


def k11(r, a):
    best = None
    arg = -1
    for i in range(len(a)):
        if best is None or a[i] > best:
            best = a[i]
            arg = i
    r[0] = arg
    if best:
        r[1] = best
    prev = None
    for v in a:
        if prev is not None:
            r[2] += v - prev
        prev = v


t(k11, np.array([1, 5, 3.0, 4]))


def k12(r, c, s):
    d = C.a if c == 2 else C.b
    r[0] = d
    r[1] = d.value
    r[2] = d is C.a
    e = S.b
    if s is S.a:
        e = S.a
    r[3] = e.value
    r[4] = e == s
    r[5] = e is not S.b
    r[6] = C["a"]
    r[7] = C.a == 1 and C.b != S.b
    if c == C.b and s != S.b:
        r[0] += 100


t(k12, C.b, S.a)
t(k12, C.a, S.b)


def k14(r, n):
    i = cuda.grid(1) if False else 0
    tot = 0
    for j in reversed(range(0, n, 2)):
        tot = tot * 3 + j
    rr = range(n) if n > 3 else range(1)
    for j in rr:
        tot += j
    r[0] = tot
    r[1] = len(rr)
    r[2] = rr[-1]
    r[3] = 2 in rr
    r[4] = max(1, n, 2)
    r[5] = min((n, 4, 2.5))
    r[6] = sum((1, 2, n)) if n else 0


t(k14, 5)
t(k14, 2)


def k15(r, n):
    if (m := n * 2) > 5 and (q := m + 1) < 20:
        r[0] = q
    r[1] = m
    r[2] = [0, 1][1] if False else 3
    while (n := n - 1) > 0:
        r[3] += n
    r[4] = (z := 4) + z


t(k15, 4)
t(k15, 1)
t(k15, 40)


def k16(r, n):
    def inner(a, b=2, *c, k=1):
        t = a * b * k
        for v in c:
            t += v
        return t + n

    f = lambda *v: len(v)
    r[0] = inner(1)
    r[1] = inner(1, 3, 4, 5)
    r[2] = inner(2, k=7)
    r[3] = f(1, 2, 3)
    n = n + 10
    r[4] = inner(1)
    g = lambda: n
    r[5] = g()

    def rec(v):
        return inner(v) + g()

    r[6] = rec(2)
    acc = 0
    for i in range(3):

        def addi(v):
            return v + i

        acc += addi(acc)
    r[7] = acc


t(k16, 4)


def k17(r, x):
    r[0] = isinstance(x, (int, float))
    r[1] = isinstance(x, float)
    r[2] = isinstance(x, np.ndarray)
    r[3] = isinstance(x, tuple)
    r[4] = isinstance(x, int | float)
    if isinstance(x, tuple):
        r[5] = x[0]
    elif isinstance(x, (float, int)):
        r[5] = x


t(k17, 3)
t(k17, 2.5)
t(k17, (4, 5))
t(k17, np.zeros(3))


def k18(r, x):
    r[0] = x.real
    r[1] = x.imag
    r[2] = x.conjugate().imag
    r[3] = complex(x).real
    r[4] = complex(1, x.real).imag
    r[5] = abs(cmath.sqrt(x))
    r[6] = x.real**2


t(k18, 3)
t(k18, 2.5)
t(k18, 1 - 2j)


def k19(r, a):
    q, m = divmod(a, 3)
    r[0] = q
    r[1] = m
    r[2] = divmod(-7, 2)[0]
    r[3] = divmod(7.5, a)[1]


t(k19, 7)
t(k19, -7)


def k20(r, a):
    r[0] = a[0] < a[1] < a[2]
    r[1] = 0 <= int(a[0]) < len(a) <= 8
    r[2] = a[0] == a[0] != a[1]
    r[3] = 1 < mx(a[0], a[1]) <= mx(3, 4) < 100
    r[4] = not (0 < abs(a[0]) < 1)
    r[5] = (a[0] in a) + (99.0 in a) * 2
    r[6] = a[1] not in [5, a[1]]


t(k20, np.array([1.0, 2, 3]))


def k21(r, a, n):
    v = a[n] or mx(n, 1) or 3
    w = n and a[n] and mx(2, n)
    r[0] = v
    r[1] = w
    r[2] = (n > 1 and a[n]) or -1.5
    r[3] = n if n > 1 else a[n] or 7
    ok = n == 0 or math.isnan(a[n]) or mx(a[n], 1) > 1
    r[4] = ok


t(k21, np.array([0.0, 2, math.nan]), 0)
t(k21, np.array([0.0, 2, math.nan]), 1)
t(k21, np.array([0.0, 2, math.nan]), 2)


def k22(r):
    a = b = None
    c, d = None, 5
    if a is None and b is None and c is None:
        r[0] = d
    a = 3
    r[1] = a
    if c is None:
        c = 2.5
    r[2] = c


t(k22)


def size_of(x):
    return abs(x)


def maybe(x):
    if x > 2:
        return x
    return None


def u(r, x, y=None):
    r[0] = 0 < size_of(x[0]) < 4
    r[1] = x[0] in (1, 2, 3)
    r[2] = size_of(len(x)) and 2
    f = lambda v: v * x[1]
    r[3] = f(2)
    r[4] = 1 if y is None else 2
    if (q := x[0] + 1) > 3:
        r[5] = q
    m = maybe(x[0])
    if m is not None:
        r[6] = m
    r[7] = len(range(1, 9, 3)) + (5 in range(3, 9)) + divmod(7, 2)[1]
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    r[8] = best
    k = range(3)
    for i in k:
        r[9] += i
    for d in [4, 2]:
        r[9] += d
    r[10] = min((x[0], x[1]))
    r[11] = C.a.value + (C.b if x[0] > 1 else C.a).value
    z = None
    if y is None:
        z = 3
    r[12] = z


for x in ([3, 1, 2], [1, 5, 2.5]):
    x = np.array(x, float)
    result, wanted = np.zeros(16), np.zeros(16)
    u(wanted, x, None)
    kjit.jit(u)[1, 1](result, x, None)
    np.testing.assert_array_equal(result, wanted)


def sums(r, values, n):
    r[0], r[1], r[2] = sum((1, 2.5, n)), sum(values), sum((n, n), 10)
    r[3], r[4], r[5] = any((0, n)), all((1, n)), max(values)


for n in (0, 3):
    t(sums, (1, 2), n)


def outside(r):
    r[0] = (1, 2)[2]


def outside_of_argument(r, pair):
    r[0] = pair[5]


def missing_member(r, c):
    r[0] = len(c.name)


for function, arguments, text in [
    (outside, (), "index 2 is out of bounds for a tuple of length 2"),
    (outside_of_argument, ((1, 2),), "index 5 is out of bounds for a tuple of length 2"),
    (missing_member, (C.a,), "`name` of a member of C"),
]:
    try:
        cuda.jit(function)[1, 1](np.zeros(8), *arguments)
    except kjit.Error as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


# A known operand can decide a condition that is part of another condition. The operands after it are not compiled.
def perhaps(r, flags, x):
    for i in kjit.grid_range(len(x)):
        if x[i] > 1 and (flags is None or flags[i]):
            r[i] = 1


perhaps = kjit.jit(perhaps)
for flags, want in ((None, [0, 0, 1, 1]), (np.array([True, True, False, True]), [0, 0, 0, 1])):
    r = np.zeros(4, "i8")
    perhaps(r, flags, np.arange(4))
    assert r.tolist() == want, r
