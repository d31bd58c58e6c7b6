# RUN: %kjit-python %s
"""Variables that are assigned values of several types. Each function returns Python's value and type if Numba does so,
too."""
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import numpy as np
import seeds
from kjit import cuda, njit

FLAG = True


def becomes_float(x, n):
    k = 0
    for i in range(8):
        if i == n:
            k = i
    v = x[k]
    if v == 0:
        k = k + 4.5
    return k


def stays_integer(x, n):
    y = n // 2
    n = n / 2
    return y, n


def other_rank(x, n):
    x = x.reshape(2, 4)
    x = x[1]
    x = x[n % 4]
    return x


def in_branches(x, n):
    if n > 2:
        a = x[1:]
        a = a[n]
    else:
        a = n
        a = a / 2
    return a


def of_a_loop(x, n):
    total = 0
    for i in range(n):
        i = i * 2
        total += i
        total = total + 1
    return total, i


def index_then_value(x, n):
    i = 0
    while i < n:
        j = i
        j = x[j] * 0.5
        i += 1
        if j > 1:
            break
    else:
        i = -1
    return i, j


def leaves_early(x, n):
    a = n
    for i in range(5):
        if i == 1:
            continue
        if i == 3:
            a = i
            break
        b = x[a]
        a = i + 1
    return a, b


def returns_early(x, n):
    a = n
    if n > 5:
        a = 1.5
        return a
    a = a + 1
    return a * 1.0


def swapped(x, n):
    a, b = n, x[1]
    a, b = b, a
    return x[b] + a


def accumulated(x, n):
    s = 0
    for v in x:
        s += v
    t = s
    t //= 2
    s = n
    s *= n
    return t, s


def nested(x, n):
    m = 0
    for i in range(n):
        for j in range(i):
            m = m + j
            if m > 3:
                m = m - 3
        m = m + i
    k = m
    m = m * 0.5
    return k, m


def reused(x, n):
    v = x[0]
    for v in x:
        if v > 2:
            break
    w = v
    for v in range(n):
        w += v
    return w, v


def one_branch(x, n):
    if FLAG:
        a = x[:2]
    else:
        a = n
    return a[1]


def conditional_update(x, n):
    v = x[n]
    if v > 2:
        v = 2
    u = n
    if u > 2:
        u = 2
    return v, u


def in_place(x, n):
    a = x[:2]
    a += 1
    a = a[0]
    a += n
    return a


def parameter(x, n):
    n += 1
    n = x[n]
    n += 0.5
    return n


CASES = [v for v in list(globals().values()) if getattr(v, "__module__", "") == "__main__"]
rng = seeds.fresh_generator()


def plain(value):
    return tuple(map(plain, value)) if isinstance(value, tuple) else value.item() if hasattr(value, "item") else value


for case in CASES:
    compiled = njit(case)
    for n in (1, 2, 3, 5):
        x = np.where(rng.random(8) < 0.3, 0.0, rng.integers(-5, 5, 8) * 1.0)
        want, have = plain(case(x.copy(), n)), compiled(x.copy(), n)
        want, have = (v if isinstance(v, tuple) else (v,) for v in (want, have))
        # A variable with values of two numeric types is a float in compiled code.
        assert all(a == b and (type(b) is type(a) or type(b) is float) for a, b in zip(want, have)), (case.__name__, n, want, have)
    assert not compiled.runs_in_python or case is other_rank, case.__name__

assert [type(v) for v in njit(stays_integer)(x, 3)] == [int, float]
assert [type(v) for v in njit(accumulated)(x, 3)] == [float, int]
assert [type(v) for v in njit(nested)(x, 3)] == [int, float]
assert [type(v) for v in njit(of_a_loop)(x, 3)] == [int, int]


@cuda.jit
def array_of_a_branch(r, x):
    if FLAG:
        tile = cuda.local.array(4, np.float64)
    else:
        tile = cuda.local.array((2, 2), np.float64)
    tile[:] = x[:4]
    k = 0
    if tile[k] == tile[0]:
        k = k + 0.5
    r[0] = k + tile[3]

    def second(a):
        a = a[1]
        return a[0]

    square = cuda.local.array((2, 2), np.float64)
    square[1, 0] = 7
    r[1] = second(square)


r, x = np.zeros(2), rng.standard_normal(8)
array_of_a_branch[1, 1](r, x)
assert list(r) == [0.5 + x[3], 7]
