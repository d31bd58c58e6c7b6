# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Fields of arrays of records as arguments of functions in kernels: f(a.x). The function gets the array, and its parameter names
the field. Values are compared with NumPy's on random records."""
import kjit
import numpy as np
import seeds
from kjit import cuda, njit

rng = seeds.fresh_generator()
inner = np.dtype([("p", np.int16), ("q", np.float64)])
kind = np.dtype([("x", np.float64), ("n", np.int32), ("v", np.float32, (3,)), ("of", inner), ("b", np.uint8)])


def records(n):
    a = np.zeros(n, kind)
    for name in ("x", "n", "b"):
        a[name] = rng.integers(0, 100, n)
    a["v"] = rng.integers(0, 9, (n, 3))
    a["of"]["p"], a["of"]["q"] = rng.integers(-50, 50, n), rng.integers(0, 50, n)
    return a


@cuda.jit(device=True)
def total(v):
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i]
    return s


@cuda.jit(device=True)
def through(v, w):
    return total(v) - 2 * total(w)


@cuda.jit(device=True)
def scale(v, by):
    for i in range(len(v)):
        v[i] *= by


@cuda.jit(device=True)
def last(v):
    for k in v:
        found = k
    return found + v[-1] + v.size


@cuda.jit(device=True)
def rows(v):
    s = 0.0
    for i in range(3):
        s += v[1, i]
    return s


@cuda.jit(device=True)
def either(v, w=None):
    return total(v) if w is None else total(w)


@cuda.jit
def sums(a, b, r):
    r[0] = total(a.x)
    r[1] = total(a["n"])
    r[2] = through(a.of.q, a.b)
    r[3] = through(a.x, b)
    r[4] = last(a.of.p)
    r[5] = either(a.x) + either(b, a.n)
    x = a.x
    r[6] = total(x)
    r[7] = rows(a.v)


for n in (3, 17):
    a, b, r = records(n), rng.integers(0, 9, n).astype(np.float64), np.zeros(8)
    sums[1, 1](a, b, r)
    expected = [
        a["x"].sum(), a["n"].sum(), a["of"]["q"].sum() - 2.0 * a["b"].sum(), a["x"].sum() - 2 * b.sum(), 2.0 * a["of"]["p"][-1] + n,
        a["x"].sum() + a["n"].sum(), a["x"].sum(), a["v"][1].sum(),
    ]
    assert r.tolist() == expected, (r, expected)


@cuda.jit
def scaled(a):
    scale(a.x, 3.0)
    scale(a.of.q, 2)


a = records(9)
before = a.copy()
scaled[1, 1](a)
assert (a["x"] == 3 * before["x"]).all() and (a["of"]["q"] == 2 * before["of"]["q"]).all()
assert (a["n"] == before["n"]).all() and (a["of"]["p"] == before["of"]["p"]).all()


# Two dimensions, and records in shared memory.
@cuda.jit(device=True)
def corner(v):
    return v[0, 0] * 100 + v[-1, -1] + v.shape[1]


@cuda.jit
def planes(a, r):
    r[0] = corner(a.n)


a, r = records(6).reshape(2, 3), np.zeros(1)
planes[1, 1](a, r)
assert r[0] == a["n"][0, 0] * 100.0 + a["n"][1, 2] + 3


@njit
def mean(v):
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i]
    return s / v.shape[0]


@njit
def ratio(a):
    return mean(a.x) / mean(a.n)


a = records(11)
a["n"] += 1
assert ratio(a) == a["x"].mean() / a["n"].mean()
assert not ratio.runs_in_python


# The fields of a record, by index.
@cuda.jit
def numbered(a, r):
    p = a[1]
    r[0] = p[0] + p[1]
    r[1] = a[0][-1]
    r[2] = p[2][1]
    r[3] = p[3][1]
    p[0] = 7


@njit
def by_number(p):
    return p[1] * p[0], p[-1]


a, r = records(2), np.zeros(4)
expected = [a["x"][1] + a["n"][1], a["b"][0], a["v"][1, 1], a["of"]["q"][1]]
assert by_number(a[1]) == (a["n"][1] * a["x"][1], a["b"][1])
numbered[1, 1](a, r)
assert r.tolist() == expected and a["x"][1] == 7, (r, expected)


def set_by_number(a):
    a[0][0] = 5
    a[1][1] += 2
    a[0][-1] = True
    a[1][2][1] = 4.5
    a[0][3][1] = 3
    p = a[1]
    p[0] *= 2


for each in (njit(set_by_number), cuda.jit(set_by_number)[1, 1]):
    a = records(3)
    b = a.copy()
    each(a)
    b["x"][0], b["b"][0], b["v"][1, 1], b["of"]["q"][0] = 5, True, 4.5, 3
    b["n"][1] += 2
    b["x"][1] *= 2
    assert (a == b).all(), (a, b)


@cuda.jit
def absent(a):
    a[0][0] = a[1][5]


@cuda.jit
def unknown(a, i):
    a[0].x = a[1][i]


for kernel, arguments, text in ((absent, (a,), "5 fields, and no field 5"), (unknown, (a, 1), "the index of a field must be known")):
    try:
        kernel[1, 1](*arguments)
    except kjit.Error as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
