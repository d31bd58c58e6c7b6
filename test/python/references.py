# RUN: %kjit-python %s
"""A record of an array is a reference, as in NumPy. Each function runs in Python and compiled, and both leave the same
elements in the arrays."""
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numpy as np
import seeds
from kjit import cuda, njit

INNER = np.dtype([("u", "f4"), ("v", "i8")])
RECORD = np.dtype([("x", "f8"), ("n", "i4"), ("inner", INNER), ("t", "i2", 3)])
rng = seeds.fresh_generator()



def filled(shape):
    made = np.zeros(shape, RECORD)
    made["x"] = rng.standard_normal(shape)
    made["n"] = rng.integers(-9, 9, shape)
    made["inner"]["u"] = rng.integers(-9, 9, shape)
    made["inner"]["v"] = rng.integers(-9, 9, shape)
    made["t"] = rng.integers(-9, 9, (*shape, 3))
    return made


def change(p, by):
    p.x += by
    p["n"] -= 1
    p.t[1] = by


def both(p, q):
    change(p, 1)
    change(q, 2)
    p.x = q.x + p.inner.u


def named(a, b):
    for i in range(len(a)):
        p = a[i]
        p.x = p.x * 2
        p["n"] += 1
        p.t[2] = p.n
    b[0, 0].x = a[0].x


def handed_over(a, b):
    change(a[1], 3)
    q = b[1, 2]
    change(q, 4)
    both(a[0], b[0, 1])
    both(q, q)


def nested(a, b):
    p = a[2]
    inner = p.inner
    inner.u += 1
    b[0, 0].inner.v = 7
    other = b[0, 0].inner
    other.v += p.n


def read_later(a, b):
    p = a[0]
    a[0].x = 50
    b[1, 1].x = p.x


def renamed(a, b):
    best = a[0]
    for i in range(1, len(a)):
        if a[i].x < best.x:
            best = a[i]
    best.n = 1000
    row = b[1]
    p = row[2]
    p.n = 2000


def exchanged(a, b):
    t = a[0]
    a[0] = a[1]
    a[1] = t
    b[0, 0] = a[2]
    p = b[0, 0]
    p.x = -1


def gone_through(a, b):
    for p in a:
        p.x = p.x + 1
        p.n = 3
    for row in b:
        for p in row:
            p["n"] += 5


def in_tuples(a, b):
    t = (a[0], b[1, 1], 5)
    t[0].x = t[2]
    u = t
    u[1].n += 2
    p, q, r = a[1], b[0, 2], a[2]
    p.x = q.x
    q.x = 7
    r.n = 3
    for s in (a[3], b[1, 0]):
        s.x = s.n


def chosen(a, b):
    p = a[0] if a[1].n > 0 else a[2]
    p.x = 99
    q = p if p.n > 2 else b[0, 1]
    q.x = -1
    change(a[3] if b[0, 0].n > 0 else a[4], 2)
    n = a[0].n if a[1].n > 0 else a[1].n
    a[0].n = 50
    b[1, 1].n = n


def smaller(a, i, j):
    if a[i].x < a[j].x:
        return a[i]
    return a[j]


def ends_of(a):
    return a[0], a[4]


def returned(a, b):
    p = smaller(a, 1, 2)
    p.n = 1000
    smaller(b[0], 0, 1).x = 8
    q, r = ends_of(a)
    q.n = 4
    r.n = q.n


def gone_through_by_functions(a, b):
    last = a[0]
    for p in a:
        change(p, 3)
        a[2].x += 1
        if p.x > last.x:
            last = p
    last.n = 77
    for i, p in enumerate(a):
        a[i].x = i
        p.n += i
    for p, q in zip(b[0], b[1][::-1]):
        p.n = q.n
        q.x = p.x


FUNCTIONS = [named, handed_over, nested, read_later, renamed, exchanged, gone_through, in_tuples, chosen, returned]
FUNCTIONS += [gone_through_by_functions]


def in_python(function):
    """In Python, records need numpy.record to have attributes for their fields."""

    def run(a, b):
        return function(a.view(np.recarray), b.view(np.recarray))

    return run


def as_kernel(decorate):
    def made(function):
        inner = decorate.inner(function)

        def run(a, b):
            inner(a, b)

        return decorate.kernel(run)

    return made


class Cuda:
    inner = staticmethod(lambda f: cuda.jit(device=True)(f))
    kernel = staticmethod(lambda f: cuda.jit(f)[1, 1])


class Jit:
    inner = staticmethod(lambda f: f)
    kernel = staticmethod(kjit.jit(block=1, grid=1))


for function in FUNCTIONS:
    for compiled in (njit, as_kernel(Cuda), as_kernel(Jit)):
        a, b = filled((5,)), filled((2, 3))
        c, d = a.copy(), b.copy()
        in_python(function)(c, d)
        compiled(function)(a, b)
        assert a.tobytes() == c.tobytes() and b.tobytes() == d.tobytes(), (function.__name__, compiled, a, c, b, d)


# ---- elements that are numbers stay the same numbers when the array changes ----


def numbers(x, z):
    first = x[0]
    x[0] = 9
    x[1] = first
    w = z[0]
    z[0] = 2j
    z[1] = w


for compiled in (njit, as_kernel(Cuda), as_kernel(Jit)):
    x, z = rng.standard_normal(3), rng.standard_normal(3) + 1j
    y, w = x.copy(), z.copy()
    numbers(y, w)
    compiled(numbers)(x, z)
    assert x.tolist() == y.tolist() and z.tolist() == w.tolist()


# ---- in shared and local memory ----


@cuda.jit
def shared_records(r):
    tile = cuda.shared.array(4, INNER)
    mine = cuda.local.array(2, INNER)
    i = cuda.threadIdx.x
    p = tile[i]
    p.u = i
    p.v = i * 10
    cuda.syncthreads()
    q = mine[1]
    q.v = tile[3 - i].v
    r[i] = mine[1].v + tile[i].u


r = np.zeros(4)
shared_records[1, 4](r)
assert r.tolist() == [30, 21, 12, 3]


# ---- swaps: the second value is read after the first one has been stored, as in NumPy and Numba ----


def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


def swap_fields(a, i, j):
    a[i].u, a[j].u = a[j].u, a[i].u


for function in (swap, swap_fields):
    for compiled in (njit(function), cuda.jit(function)[1, 1], kjit.jit(block=1, grid=1)(function)):
        x = np.zeros(4, INNER).view(np.recarray)
        x.u, x.v = rng.integers(-99, 99, (2, 4))
        y = x.copy()
        compiled(np.asarray(x).view(INNER), 1, 3)
        if function is swap:
            y[1] = y[3]
        else:
            function(y, 1, 3)
        assert x.tolist() == y.tolist(), (function, compiled)


# ---- fields of arrays of records, indexed: a.x[i] is a[i].x ----


def of_fields(a, m, r):
    for i in range(len(a)):
        r[i] = a.x[i] + a["n"][i] + a["inner"]["v"][len(a) - 1 - i] + a.t[i, 2] + m["n"][1, i % 2] + m.t[0, 1, -1]
        a.x[i] = i
        a["inner"].u[i] += 2
        a["t"][i, 0] = 7
        m.n[0, 1] -= 1


def of_arrays(a, m, r):
    r[0] = len(a.x) + 10 * len(m["n"]) + m.n.shape[1] + 100 * a["inner"].u.size + a.x.ndim + len(a.inner)
    for v in a.x:
        r[1] += v
    for k, v in enumerate(a["inner"]["v"]):
        r[2] += k * v
    x = a.x
    inner = a["inner"]
    us = inner.u
    x[1] = us[0] + inner.v[2] + x[0]
    us[3] -= 4
    for i in range(len(x)):
        r[3] += x[i] * us[i]
    for u in us:
        r[3] += u
    for v in a.n:
        r[3] += v
        a.n[2] = 5


def beyond_rank(m, r):
    r[0] = m.n[0]


def of_all(a, r):
    r[0] = a.x + 1


for compiled in (njit(of_fields), cuda.jit(of_fields)[1, 1], kjit.jit(block=1, grid=1)(of_fields)):
    x, z = filled((5,)), filled((2, 2))
    y, w = x.copy().view(np.recarray), z.copy().view(np.recarray)
    got, expected = np.zeros(5), np.zeros(5)
    compiled(x, z, got)
    of_fields(y, w, expected)
    assert got.tolist() == expected.tolist() and x.tobytes() == y.tobytes() and z.tobytes() == w.tobytes(), compiled
for compiled in (njit(of_arrays), cuda.jit(of_arrays)[1, 1], kjit.jit(block=1, grid=1)(of_arrays)):
    x, z = filled((5,)), filled((2, 3))
    y, got, expected = x.copy().view(np.recarray), np.zeros(4), np.zeros(4)
    compiled(x, z, got)
    of_arrays(y, z.view(np.recarray), expected)
    np.testing.assert_allclose(got, expected)
    assert x.tobytes() == y.tobytes(), compiled
for function in (beyond_rank, of_all):
    try:
        cuda.jit(function)[1, 1](filled((2, 2)), np.zeros(1))
    except kjit.Error as error:
        assert "of this array of structs cannot be an array" in str(error), error
    else:
        raise AssertionError(function)
