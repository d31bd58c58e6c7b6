# RUN: %kjit-python %s
"""Tuples, named tuples and records as launch arguments. Kernels compute the same values as NumPy, writes to records
reach the caller, and arguments that do not fit are rejected with a message."""
import collections

import kjit
import numpy as np
import seeds
from kjit import cuda

random = seeds.fresh_generator()
Line = collections.namedtuple("Line", "slope offset")
Pair = collections.namedtuple("Pair", "first second")
N = 41


def refused(function, message, kind=kjit.Error):
    try:
        function()
    except kind as error:
        assert message in str(error), (message, str(error))
    else:
        raise AssertionError("not refused: " + message)


# ---- tuples ----


@kjit.jit
def nested(r, box, n, none=()):
    for i in kjit.grid_range(len(r)):
        r[i] = box[0] * box[1][0][i] + box[1][-1] * n + len(box) + len(box[1]) + len(none)


def value_of(line, x):
    return line.slope * x + line.offset


def first_of(pair, x):
    return value_of(pair.first, x)


@kjit.jit
def named(r, pair, x):
    second = pair.second
    for i in kjit.grid_range(len(r)):
        r[i] = first_of(pair, x[i]) - value_of(second, x[i]) + pair[0][1] + second.offset


@kjit.jit
def places(arrays):
    for k in kjit.static(range(len(arrays))):
        for i in kjit.grid_range(len(arrays[k])):
            arrays[k][i] = arrays[k][i] + k


@kjit.jit
def constant(r, shape: kjit.const):
    tile = kjit.local(shape[0] * shape[1], r.dtype)
    for i in kjit.grid_range(len(r)):
        for k in range(shape[0] * shape[1]):
            tile[k] = k
        r[i] = tile[i % (shape[0] * shape[1])]


x, y = random.integers(-99, 99, (2, N)).astype(float)
r = np.empty(N)
for a, b, n in random.integers(-50, 50, (3, 3)):
    nested(r, (int(a), (x, float(b))), int(n))
    np.testing.assert_array_equal(r, a * x + b * n + 4)
    nested(r, (np.float32(a), (y, int(b))), n, (1, 2, 3))
    np.testing.assert_array_equal(r, a * y + b * n + 7)
    p, q = Line(int(a), float(b)), Line(float(n), 2)
    named(r, Pair(p, q), x)
    np.testing.assert_array_equal(r, (a * x + b) - (n * x + 2) + b + 2)
    named(r, Pair(second=p, first=q), y)
    np.testing.assert_array_equal(r, (n * y + 2) - (a * y + b) + 2 + b)
mine = [np.zeros(5, np.int32), np.ones(7), kjit.array(np.full(3, 2.0, np.float32))]
places[1, 8](tuple(mine))
assert (mine[0] == 0).all() and (mine[1] == 2).all() and (mine[2].to_host() == 4).all()
constant(r, (3, 2))
np.testing.assert_array_equal(r, np.arange(N) % 6)
nested(r, box=(1, (x, 0)), n=0)
np.testing.assert_array_equal(r, x + 4)


@kjit.jit
def plain(r, n: kjit.f64):
    r[0] = n


refused(lambda: plain[1, 1](r, (1, 2)), "parameter `n` has the annotation kjit.f64, but the launch passes a tuple")
refused(lambda: named(r, (Line(1, 2), Line(3, 4)), x), "has no `.second`")
refused(lambda: nested(r, (1, x), 2), "error")
refused(lambda: nested(r, (1, (x, object())), 2), "parameter `box[1][1]`")

# ---- records ----

kinds = "b1 i1 i2 i4 i8 u2 u8 f2 f4 f8 c8 c16".split()


def make(dtype, *shape):
    """Returns an array of the dtype with random bytes in fields without bools and floats, and small numbers in the
    others."""
    made = np.zeros(shape, dtype)
    for name in dtype.names:
        kind, extents = dtype[name].base, shape + dtype[name].shape
        if kind.names:
            made[name] = make(kind, *extents)
        else:
            made[name] = random.integers(0, 2 if kind.kind == "b" else 100, extents)
    return made


@kjit.jit
def exchange(r, s, one):
    for i in kjit.grid_range(len(r)):
        r[i] = s[len(s) - 1 - i]
        r[i].f1 = s[i]["f0"]
        if i == 0:
            one.f1 = s[1].f0
            one["nested"].table[2, 1] = s[3].nested["table"][1, 0]


for _ in range(12):
    inner = np.dtype([("n", random.choice(kinds)), ("table", random.choice(kinds), (3, 2))], align=bool(random.integers(2)))
    first = random.choice(kinds)
    dtype = np.dtype([("f0", first), ("nested", inner), ("name", "S5"), ("f1", first), ("when", "M8[s]"), ("type", random.choice(kinds))],
                     align=bool(random.integers(2)))
    if random.integers(2):  # fields at custom offsets
        offsets = np.cumsum([0] + [dtype[name].itemsize + int(random.integers(4)) for name in dtype.names])
        dtype = np.dtype({"names": dtype.names, "formats": [dtype[name] for name in dtype.names], "offsets": [int(o) for o in offsets[:-1]],
                          "itemsize": int(offsets[-1])})
    s, r = make(dtype, 9), make(dtype, 9)
    one = make(dtype, 4)
    others = one.copy()
    exchange(r, s, one[2])
    expected = s[::-1].copy()
    expected["f1"] = s["f0"]
    for name in dtype.names:
        np.testing.assert_array_equal(r[name], expected[name])
    others[2]["f1"] = s[1]["f0"]
    others[2]["nested"]["table"][2, 1] = s[3]["nested"]["table"][1, 0]
    assert one.tobytes() == others.tobytes() or (one == others).all()
    device = kjit.array(s)
    back = device.to_host()
    assert back.dtype == dtype and (back == s).all()
    exchange(device, r, one[0])
    expected = r[::-1].copy()
    expected["f1"] = r["f0"]
    assert (device.to_host() == expected).all()

point = np.dtype([("x", "f4"), ("y", "f4")])


@kjit.jit
def shear(points, by):
    tile = kjit.shared(32, point)
    for i in kjit.block_range(len(points)):
        tile[i] = points[i]
    kjit.syncthreads()
    for i in kjit.block_range(len(points)):
        points[i].x = tile[i].x + by.x * tile[i].y
        points[i].y = tile[i].y + by.y


points, by = make(point, 20), np.array((2, 3), point)[()]
before = points.copy()
shear[1, 32](points, by)
np.testing.assert_array_equal(points["x"], before["x"] + 2 * before["y"])
np.testing.assert_array_equal(points["y"], before["y"] + 3)


@cuda.jit
def fill(r, by, pair):
    i = cuda.grid(1)
    if i < r.size:
        r[i].x = by.x * i + pair.first
        r[i]["y"] = pair[1].offset


rows = cuda.to_device(make(point, N))
fill[2, 32](rows, by, Pair(7, Line(1, 4)))
np.testing.assert_array_equal(rows.copy_to_host()["x"], 2 * np.arange(N) + 7)
assert (rows.copy_to_host()["y"] == 4).all() and rows[3]["x"] == 13
rows[3]["x"] = 5
assert rows[3]["x"] == 5 and rows[4]["x"] == 15

overlapping = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2], "itemsize": 8})
refused(lambda: shear[1, 1](np.zeros(3, overlapping), by), "overlap")
refused(lambda: shear[1, 1](np.zeros(3, [("x", ">f4"), ("y", "f4")]), by), "byte order is not the machine")
refused(lambda: shear[1, 1](np.zeros(3, [("x", "O"), ("y", "f4")]), by), "reference" if np.__version__ > "2" else "object")
refused(lambda: shear[1, 1](np.zeros(3, [("a", "f4")]), by), "the value is record (a)")
frozen = points.copy()
frozen.flags.writeable = False
refused(lambda: shear[1, 1](frozen, by), "read-only")


@kjit.jit
def read_only(r, p):
    r[0] = p.x


@kjit.jit
def written(p):
    p.x = 500  # no element has this value, so the test sees that only changed bytes are copied back


refused(lambda: written[1, 1](np.void(b"abcd")), "numpy.void", TypeError)
refused(lambda: written[1, 1]((np.void(b"abcd"),)), "numpy.void", TypeError)
seen = np.zeros(1)
read_only[1, 1](seen, frozen[3])
assert seen[0] == frozen[3]["x"]
refused(lambda: written[1, 1](frozen[3]), "read-only", ValueError)
