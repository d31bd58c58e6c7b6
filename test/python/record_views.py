# RUN: %kjit-python %s
"""A field of an array of records is a view, as in NumPy: slices and parts of it can be read and assigned, it can be passed, and
atomic operations take it. Each function runs in Python on NumPy's record arrays and compiled, and the arrays are the same."""
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numpy as np
import seeds
from kjit import cuda, njit

FIELDS = [("n", "i4"), ("v", "f8"), ("w", "f4", (2,)), ("inner", [("x", "f4"), ("y", "i4")]), ("z", "c8"), ("m", "i4", (2, 2)), ("last", "i4")]
ALIGNED, PACKED = np.dtype(FIELDS, align=True), np.dtype([("byte", "u1"), *FIELDS, ("end", "u1", 7)])
# 1 byte before the fields, so no field of PACKED is aligned; its 64 bytes are a multiple of the size of each field
assert ALIGNED.itemsize % 8 == 0 and PACKED.itemsize % 8 == 0 and PACKED.fields["v"][1] % 4 == 1, (ALIGNED, PACKED)
rng = seeds.fresh_generator()


def filled(dtype, shape):
    made = np.zeros(shape, dtype)
    made["n"], made["last"] = rng.integers(-9, 9, (2, *shape))
    made["v"] = rng.integers(-99, 99, shape) / 4
    made["w"] = rng.integers(-9, 9, (*shape, 2))
    made["inner"]["x"], made["inner"]["y"] = rng.integers(-9, 9, (2, *shape))
    made["z"] = rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)
    made["m"] = rng.integers(-9, 9, (*shape, 2, 2))
    return made


def same(a, b):
    """Whether all fields are equal. The bytes between fields may differ, because NumPy's copies leave them out."""
    return all(np.array_equal(a[name], b[name]) for name in a.dtype.names)


def slices(a, m, r):
    a.v[2:4] = 9
    a["last"][:] = a["n"][::-1]
    a.w[1:3, 0] = 5
    a.w[4, :] = a.w[0]
    a.m[:, 1, 0] = a.n
    m.v[1, :] = m.v[0]
    m.v[:, 2] = 3


def overlaps(a, m, r):
    a.v[1:] = a.v[:-1]
    a["inner"]["x"][:-2] = a["inner"]["x"][2:]
    a.z[::-1] = a.z
    a.n[:] += a.n[::-1]


def views(a, m, r):
    v, w, column = a.v[1:], a.w, m.n[:, 1]
    v[0] = 4
    w[2, 1] = 8
    column[1] = 6
    r[0] = len(v) + 10 * w.shape[1] + 100 * w.ndim + 1000 * column.size
    r[1] = a[::2].v[1] + a[::-1].n[0] + a.m[2, 1, 1] + m.T.v[1, 0]
    a[1:].inner.y[0] = 11
    m.v.T[1, 0] = 12
    for row in a.w:
        r[2] += row[0] * row[1]
    a[:0].v[:] = 1


def sums(a, m, r):
    r[0] = a.v.sum() + a["n"].max() - a.w.sum()
    r[1] = np.sum(a.v * 2) + a.m[1:].sum() + m["v"].sum()


def add_to(x, i, by):
    x[i] += by
    return x.size


def passed(a, m, r):
    r[0] = add_to(a.v[2:], 0, 1.5) + add_to(a["n"], 1, 2) + add_to(m.n[1], 2, 3) + add_to(a.w[:, 1], 3, 4)


FUNCTIONS = (slices, overlaps, views, sums, passed)
for dtype in (ALIGNED, PACKED):
    for function in FUNCTIONS:
        own = [] if function is sums else [kjit.jit(block=1, grid=1)(function)]  # kjit.jit has no sum()
        for compiled in (njit(function), cuda.jit(function)[1, 1], *own):
            x, z, got = filled(dtype, (6,)), filled(dtype, (2, 3)), np.zeros(3)
            y, w, expected = x.copy().view(np.recarray), z.copy().view(np.recarray), np.zeros(3)
            compiled(x, z, got)
            function(y, w, expected)
            assert got.tolist() == expected.tolist(), (function, compiled, got, expected)
            assert same(x, y) and same(z, w), (function, compiled, dtype)


# ---- a record's fields have numbers, which do not count the gaps between the fields ----


@cuda.jit
def by_number(a, r):
    p = a[1]
    r[0] = p[0] + p[1] * 100 + p[-1]
    p[1] = 5


GAPS = np.dtype({"names": ["n", "v", "c"], "formats": ["i4", "f8", "i2"], "offsets": [0, 12, 24], "itemsize": 40})
NAMED = np.dtype({"names": ["n", "gap_at_4", "c"], "formats": ["i4", "f8", "i2"], "offsets": [0, 12, 24], "itemsize": 40})
for dtype in (GAPS, NAMED, np.dtype([("n", "i4"), ("v", "f8"), ("c", "i2")], align=True)):
    a, r = np.zeros(2, dtype), np.zeros(1)
    a[1] = (3, 2.5, 7)
    by_number[1, 1](a, r)
    assert r[0] == 260 and a[1][1] == 5 and a[1].tolist() == (3, 5.0, 7), (dtype, r, a)


# ---- atomic operations ----


@cuda.jit
def atomics(a, where, by, old):
    i = cuda.grid(1)
    if i < by.size:
        cuda.atomic.add(a["n"], where[i], by[i])
        cuda.atomic.add(a.v, where[i], 0.5)
        cuda.atomic.max(a["last"], where[i], by[i])
        cuda.atomic.add(a["m"], (where[i], i % 2, 1), 1)
        cuda.atomic.sub(a[where[i]].w, 1, 1)
        cuda.atomic.min(a.inner.x, where[i], by[i])
        if i == 0:
            old[0] = cuda.atomic.cas(a.inner["y"], where[i], old[1], 77)
            old[2] = cuda.atomic.compare_and_swap(a["inner"]["y"][1:], old[3], 78)
            old[4] = cuda.atomic.exch(a.inner.y, 5, 79)


# Atomic operations need aligned fields. SPACED has gaps before and after the fields.
KINDS, OFFSETS = zip(*(ALIGNED.fields[name] for name in ALIGNED.names), strict=True)
SPACED = np.dtype({"names": ALIGNED.names, "formats": KINDS, "offsets": [8 + n for n in OFFSETS], "itemsize": ALIGNED.itemsize + 24})
for dtype in (ALIGNED, SPACED):
    a, where, by = filled(dtype, (6,)), rng.integers(0, 6, 50), rng.integers(-9, 9, 50).astype("i4")
    where[0] = 3
    old = np.zeros(5, np.int64)
    old[1], old[3] = a["inner"]["y"][3], a["inner"]["y"][1]
    expected, before = a.copy(), a["inner"]["y"].copy()
    atomics[2, 32](a, where, by, old)
    np.add.at(expected["n"], where, by)
    np.add.at(expected["v"], where, 0.5)
    np.maximum.at(expected["last"], where, by)
    np.add.at(expected["m"], (where, np.arange(50) % 2, 1), 1)
    np.subtract.at(expected["w"], (where, 1), 1)
    np.minimum.at(expected["inner"]["x"], where, by)
    expected["inner"]["y"][[3, 1, 5]] = 77, 78, 79
    assert same(a, expected), (dtype, a, expected)
    assert old[[0, 2, 4]].tolist() == before[[3, 1, 5]].tolist(), old

# ---- a view needs strides that are multiples of the field's size ----


def whole(a, r):
    r[0] = a.v[1:].size


try:
    cuda.jit(whole)[1, 1](np.zeros(3, [("v", "f8"), ("n", "i4")]), np.zeros(1))
    raise AssertionError("a stride of 12 bytes")
except kjit.Error as error:
    assert error.code == "ARRAY_OF_FIELDS" and "not a multiple of the field's size" in str(error), error
