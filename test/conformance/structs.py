import numpy as np

from rows import row

# f32x2 is aligned to 8 bytes, which numpy does not know
record = np.dtype({"names": ["a", "b", "c", "d"], "formats": ["f8", "i4", ("f4", (2,)), ("u1", (5,))], "offsets": [0, 8, 16, 24], "itemsize": 32})
tight = np.dtype([("a", "i4"), ("b", "f8"), ("flag", "?")])
vec3 = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")])
body = np.dtype([("position", vec3), ("velocity", vec3), ("mass", "f4"), ("id", "u1"), ("history", "f8", (3, 2)), ("counts", "i4", (2,))], align=True)
particle = np.dtype({"names": ["x", "y", "z"], "formats": ["f4"] * 3, "offsets": [0, 4, 8], "itemsize": 16})
state = np.dtype([("s0", "u8"), ("s1", "u8")])
bins = np.dtype([("count", "i4"), ("sum", "f4"), ("least", "i4"), ("pad", "u1")], align=True)


def random_of(dtype, shape, rng):
    """Fills every byte of numeric types with random values, including padding. Bytes that a kernel does not name must
    not change."""
    made = np.frombuffer(rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype="u1").tobytes(), dtype=dtype).reshape(shape).copy()
    fill(made, rng)
    return made


def fill(made, rng):
    for name in made.dtype.names:
        field = made[name]
        if field.dtype.names:
            fill(field, rng)
        elif field.dtype.kind == "f":
            field[...] = rng.integers(-8, 9, field.shape)
        elif field.dtype.kind == "b":
            field[...] = rng.integers(0, 2, field.shape)


def same_bytes(got, want):
    np.testing.assert_array_equal(np.ascontiguousarray(got).view("u1"), np.ascontiguousarray(want).view("u1"))


def same_fields(got, want):
    for name in want.dtype.names:
        if want[name].dtype.names:
            same_fields(got[name], want[name])
        else:
            np.testing.assert_array_equal(got[name], want[name], err_msg=name)


@row("85: a field changes alone, whole elements are copied")
def set_fields(r, rng):
    x = random_of(record, 5, rng)
    r.structs_of("Record", x=x)
    want = x.copy()
    want[0]["a"], want[0]["b"], want[0]["c"] = 3.1415, 123, (0, 43)
    want[1] = want[0]
    want[3]["d"][2] = 7
    want[4]["c"][1] = 5
    r.launch("set_fields", "1, 1", "x", 1, 0)
    r.verify(["x"], lambda got: same_fields(got, want))


@row("87: packed structs")
def packed(r, rng):
    x = random_of(tight, 37, rng)
    r.structs_of("Tight", x=x)
    want = x.copy()
    want["a"] = 123 * (np.arange(37) + 1)
    want["b"] += 0.5
    want["flag"] = ~want["flag"]
    r.launch("set_packed", "2, 32", "x")
    r.verify(["x"], lambda got: same_bytes(got, want))


@row("nested structs, arrays inside them, functions that take and give them")
def step(r, rng):
    x = random_of(body, 50, rng)
    r.structs_of("Body", x=x)
    want = x.copy()
    i = np.arange(50)
    for axis in "xyz":
        want["position"][axis] += x["velocity"][axis] * np.float32(0.5)
    want["mass"] *= 2
    want["history"][i, i % 3, 1] += x["history"][i, (i + 1) % 3, 0]
    want["counts"] = x["counts"][:, ::-1]
    r.launch("step", "", "x", "0.5f32")
    r.verify(["x"], lambda got: same_fields(got, want))


@row("variables of struct type: a part changes, the original does not")
def copies(r, rng):
    n = 21
    x = random_of(body, n, rng)
    x["counts"] %= 1000
    r.structs_of("Body", x=x)
    r.array("out", np.zeros((n, 6)))
    want = np.zeros((n, 6))
    for i in range(n):
        h, counts, position = x[i]["history"].copy(), x[i]["counts"].copy(), x[i]["position"]["x"]
        for by in ([0.5, 1] if i % 2 else [1]):
            position += by
            h[2, 1] = by
            counts[x[i]["id"] % 2] = -1
        want[i] = position, h.sum(), x[i]["history"].sum(), counts[0] * 10 + counts[1], 302, h[i % 3, 1]
    r.launch("copies", "1, 32", "x", "out")
    r.expect("out", want)
    r.verify(["x"], lambda got: same_bytes(got, x), unchanged=True)


@row("structs in shared and local memory and across barriers")
def exchange(r, rng):
    x = random_of(particle, 32, rng)
    r.structs_of("Particle", x=x)
    t = np.arange(32)
    y = x["y"][(t + 1) % 32]
    want = np.zeros(32, particle)
    want["x"], want["y"], want["z"] = x["z"][31 - t] + 200, y + x["z"], y[(t + 5) % 32]
    r.launch("exchange", "1, 32", "x")
    r.verify(["x"], lambda got: same_fields(got, want))


@row("atomics on fields")
def count(r, rng):
    values = rng.integers(0, 500, 1000).astype("i4")
    x = np.zeros(4, bins)
    x["least"], x["pad"] = 700, 5
    r.structs_of("Bin", bins=x)
    r.array("values", values)
    want = x.copy()
    for b in range(4):
        own = values[values % 4 == b]
        want[b] = len(own), len(own), min(own), 5
    r.launch("count", "8, 128", "bins", "values")
    r.verify(["bins"], lambda got: same_fields(got, want))


@row("random states in an array of structs, updated by a func")
def random(r, rng):
    n, mask = 40, (1 << 64) - 1
    x = random_of(state, n, rng)
    r.structs_of("State", x=x)
    r.array("out", np.zeros((n, 3), "u8"))
    want, states = np.zeros((n, 3), "u8"), x.copy()
    for i in range(n):
        s0, s1 = int(x[i]["s0"]), int(x[i]["s1"])
        for k in range(3):
            want[i, k] = (s0 + s1) & mask
            s1 ^= s0
            s0 = (((s0 << 55) | (s0 >> 9)) & mask) ^ s1 ^ ((s1 << 14) & mask)
            s1 = ((s1 << 36) | (s1 >> 28)) & mask
        states[i] = s0, s1
    r.launch("random", "2, 32", "x", "out")
    r.expect("out", want)
    r.verify(["x"], lambda got: same_bytes(got, states))


@row("99: a pointer to the elements of an array")
def increment(r, rng):
    r.array("x", np.arange(10, dtype="u1"))
    r.launch("increment", "1, 32", "x", "10u32")
    r.expect("x", np.arange(1, 11))


@row("pointers to structs, fields, shared and local memory")
def follow(r, rng):
    x = random_of(body, 3, rng)
    r.structs_of("Body", x=x)
    m = r.array("m", rng.integers(-9, 9, (2, 3)).astype("f4"))
    r.array("out", np.zeros(7, "i8"))
    want = x.copy()
    want[1]["mass"] = 9
    want[1]["position"]["y"] = want[1]["position"]["x"] + 1
    want[0]["mass"], want[2]["mass"] = x[2]["mass"], x[0]["mass"]
    changed = m.copy().reshape(3, 2)
    changed[1, 0] = 77
    changed.reshape(2, 3)[1, 2] = 78
    r.launch("follow", "1, 1", "x", "m", "out")
    r.verify(["x"], lambda got: same_fields(got, want))
    r.expect("m", changed.reshape(2, 3))
    r.expect("out", [56, x[1]["id"], 2 * body.itemsize, body.itemsize, 0, 3, x[0]["id"]])


@row("constants of struct type")
def constants(r, rng):
    r.array("out", np.zeros(6, "f4"))
    r.launch("constants", "1, 32", "out")
    r.expect("out", [2 + 6.5, 5 + 6.5] * 3)


@row("what lies behind a value is a place: pointers in structs, arrays in tuples")
def behind(r, rng):
    r.arrays_of(x=np.arange(10, dtype="i4"), y=np.arange(100, 110, dtype="i4"))
    r.structs_of("Span", spans=np.zeros(1, np.dtype([("start", "u8"), ("count", "i4")], align=True)))
    r.launch("behind", "1, 1", "x", "y", "spans")
    r.expect("x", [10, 11, 12, 33, 4, 6, 60, 70, 3, 90])
    r.expect("y", [80, 21, 111, 103, 4, 111, 106, 77, 108, 93])


@row("constants without elements; tuples as parameters")
def of_nothing(r, rng):
    r.arrays_of(out=np.ones(5, "f4"), extra=np.arange(5, dtype="i4"), more=np.ones(5, "f4"), other=np.arange(5, dtype="i4"))
    r.launch("of_nothing", "", "out", "7", "extra")
    r.launch("of_nothing", "", "more", "7", "other", "2", "1.5", "1")
    r.expect("out", np.full(5, 1 + 7 + 1.5 + 4))
    r.expect("extra", 7 + 3 * np.arange(5))
    r.expect("more", np.full(5, 1 + 7 + 3 + 1))
    r.expect("other", 7 + 3 * np.arange(5))
    r.arrays_of(shaped=np.zeros(12), x=np.arange(5, dtype="i4"))
    r.launch("shaped", "", "shaped", "(3, 4)", "(0.5, 2.25)", "x")
    i = np.arange(12)
    r.expect("shaped", 0.5 * i + 2.25 + i % 5)


@row("questions about types")
def _(r, rng):
    r.structs_of("Vec3", r=np.zeros(2, vec3))
    r.arrays_of(out=np.full((8, 7), -1, np.int32), f=np.ones(2, np.float32), u=np.ones(2, np.uint8))
    r.launch("questions", "1, 32", "out", "r", "f", "u")
    expected = np.zeros((8, 7), np.int32)
    for at in ((0, 0), (0, 2), (1, 1), (1, 2), (2, 1), (3, 3), (4, 4), (5, 5), (6, 6)):
        expected[at] = 1
    r.expect("out", expected)


@row("shuffles of 128 bytes")
def _(r, rng):
    widest = np.dtype([("words", "u8", (15,)), ("rest", "u4"), ("half", "u2"), ("bytes", "u1", (2,))])
    x = random_of(widest, (50,), rng)
    r.structs_of("Widest", x=x, r=np.zeros(50, widest))
    r.launch("far", "1, 50", "r", "x")
    t = np.arange(50)
    r.expect("r", x[t // 32 * 32 + t % 18])


@row("references to elements")
def _(r, rng):
    n = 40
    given = random_of(record, (3 * n,), rng)
    first = (3 * rng.permutation(n)).astype("i4")
    expected = given.copy()
    for i in first:
        expected["c"][i, 1] = 2
        for at, by in ((i, 1), (i + 1, 2)):
            expected["a"][at] += by
            expected["b"][at] = np.int32(expected["d"][at, 1]) + 1
        chosen = i + 1 if expected["b"][i] > 100 else i
        expected["d"][chosen, 0] = 9
        expected[i + 2] = expected[chosen]
    r.structs_of("Record", r=given)
    r.arrays_of(first=first)
    r.launch("references", "", "r", "first")
    r.verify(["r"], lambda got: same_fields(got, expected))


@row("floats taken apart")
def _(r, rng):
    n = 70
    floats = np.dtype([("f", "f4"), ("g", "f4"), ("d", "f8")])
    cut = np.dtype([("h", "u2", (2,)), ("b", "u1", (4,)), ("s", "i2", (3,)), ("c", "i1", (2,))])
    x = rng.integers(0, 6, n).astype("u1")
    y = rng.integers(-2 ** 40, 2 ** 40, n)
    expected = []
    for f, g, d in ((x, x != 3, y), (y < 0, y, x)):
        made = np.zeros(n, floats)
        made["f"], made["g"], made["d"] = f, g, d
        expected.append(made.view(cut))
    r.structs_of("Pieces", r=np.zeros(n, cut), s=np.zeros(n, cut))
    r.arrays_of(x=x, y=y)
    r.launch("pieces", "", "r", "s", "x", "y")
    for name, want in zip("rs", expected):
        r.verify([name], lambda got, want=want: same_fields(got, want))
