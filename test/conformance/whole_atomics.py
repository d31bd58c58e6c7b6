import numpy as np

from rows import row

small = np.dtype([("low", "u2"), ("high", "i2")])
status = np.dtype([("flag", "u4"), ("value", "u4")])
wide = np.dtype([("flag", "u8"), ("value", "u8")])
pair = np.dtype([("a", "u8"), ("b", "u8")])
sums = np.dtype([("state", "u4"), ("count", "u4"), ("value", "f8")])
nested = np.dtype([("inner", [("a", "i2"), ("b", "u1", (2,))]), ("x", "f4"), ("v", "f2", (4,))])
tight = np.dtype([("a", "u1"), ("b", "f8"), ("c", "u1", (3,)), ("d", "f4")])
holder = np.dtype([("head", "u8"), ("before", "u8"), ("place", wide)])
FACTOR, MASK = 0x9E3779B97F4A7C15, 0x5555555555555555
# the array's type, and the number of NumPy elements in one element
VECTORS = {"u8x4": ("u1", 4), "f16x2": ("f2", 2), "u32x2": ("u4", 2), "f32x2": ("f4", 2), "i8x8": ("i1", 8), "f16x4": ("f2", 4), "u64x2": ("u8", 2), "f64x2": ("f8", 2), "f32x4": ("f4", 4), "i32x4": ("i4", 4),
           "u16x8": ("u2", 8), "i8x16": ("i1", 16)}
STRUCTS = {"Small": small, "Status": status, "Wide": wide, "Sum": sums}


def mixed(k):
    return k.astype(np.uint64) * np.uint64(FACTOR) ^ np.uint64(MASK)


def random_bytes(rng, dtype, count):
    dtype = np.dtype(dtype)
    return np.frombuffer(rng.integers(0, 256, count * dtype.itemsize, dtype="u1").tobytes(), dtype).copy()


def bytes_of(array):
    return np.ascontiguousarray(array).view("u1").reshape(len(array), -1)


def expect_bytes(r, name, wanted):
    """Compares bit by bit: two NaNs can differ, and 0 differs from -0."""
    wanted = bytes_of(wanted).copy()
    r.verify([name], lambda got: np.testing.assert_array_equal(bytes_of(got), wanted, err_msg=name))


@row("a struct as an integer, and back")
def _(r, rng):
    x = random_bytes(rng, status, 777)
    r.structs_of("Status", x=x, back=np.zeros(777, status))
    r.array("words", np.zeros(777, np.uint64))
    r.launch("cast_status", "", "words", "back", "x")
    words = x.view(np.uint64)
    r.expect("words", words)
    expect_bytes(r, "back", words ^ np.uint64(0xFF00000001))


@row("nested structs with arrays and vectors as vectors, and as other structs")
def _(r, rng):
    x = random_bytes(rng, nested, 500)
    x["x"], x["v"] = rng.standard_normal(500), rng.standard_normal((500, 4))
    r.structs_of("Nested", x=x, back=np.zeros(500, nested))
    r.vectors_of("u64x2", words=np.zeros((500, 2), np.uint64))
    r.vectors_of("f16x8", numbers=np.ones((500, 8), np.float16))
    r.launch("cast_nested", "", "words", "numbers", "back", "x")
    words = x.view(np.uint64).reshape(500, 2)
    r.expect("words", words)
    expect_bytes(r, "numbers", x)
    expect_bytes(r, "back", np.ascontiguousarray(words[:, ::-1]))


@row("packed structs as bytes, and back")
def _(r, rng):
    x = random_bytes(rng, tight, 321)
    x["b"], x["d"] = rng.standard_normal(321), rng.standard_normal(321)
    r.structs_of("Tight", x=x, back=np.zeros(321, tight))
    r.vectors_of("u8x16", words=np.zeros((321, 16), np.uint8))
    r.launch("cast_tight", "", "words", "back", "x")
    r.expect("words", bytes_of(x))
    back = x.copy()
    back["a"] += 1
    expect_bytes(r, "back", back)


@row("pointers in structs are addresses")
def _(r, rng):
    x = rng.integers(0, 100, 64).astype(np.float32)
    r.arrays_of(x=x, r=np.full(64, -5, np.float32))
    r.launch("cast_link", "2, 32", "r", "x")
    r.expect("r", x + np.arange(64))


@row("structs of literals")
def _(r, rng):
    r.structs_of("Status", r=random_bytes(rng, status, 3))
    r.launch("cast_literals", "1, 1", "r")
    want = np.array([(2, 1), (2**32 - 1, 2**32 - 1), (0, 0)], status)
    want[2:] = np.array([1, -2], np.float32).view(status)
    expect_bytes(r, "r", want)


PAIRS = {"wide": ("Wide", wide, "wide_of", "agrees_wide"), "status": ("Status", status, "status_of", "agrees_status"), "vector": ("u32x4", "u4", "vector_of", "agrees_vector"), "words": ("u64x2", "u8", "words_of", "agrees_words")}


def pairs_of(name, k):
    """Returns the kernels' results for the numbers k."""
    k = np.asarray(k, np.uint64)
    m = mixed(k)
    if name == "status":
        return np.stack([k, m], 1).astype(np.uint32).view(status).reshape(-1)
    both = np.stack([k, m], 1)
    return both.view(wide).reshape(-1) if name == "wide" else both.view("u4") if name == "vector" else both


@row("loads and stores are never torn")
def _(r, rng):
    blocks, threads = 16, 32
    for name, (kind, dtype, make, agrees) in PAIRS.items():
        for order in range(3):
            k, rounds = f"{name}{order}", 10000 if order < 2 else 1000
            r.vectors_of(kind, **{f"p{k}": pairs_of(name, rng.integers(0, 2**32, 1))})
            r.arrays_of(**{f"bad{k}": np.full(blocks * threads, -1, np.int32), f"seen{k}": np.full(blocks * threads, -1, np.int32)})
            r.launch("torn", f"{blocks}, {threads}", f"bad{k}", f"seen{k}", f"p{k}", make, agrees, order, rounds)
            r.expect(f"bad{k}", np.zeros(blocks * threads, np.int32))
            r.expect(f"seen{k}", np.full(blocks * threads, rounds))


@row("exchange: each value is taken away once, whole")
def _(r, rng):
    blocks, threads = 20, 64
    for name, (kind, dtype, make, _) in PAIRS.items():
        for order in range(3):
            k = f"{name}{order}"
            first = pairs_of(name, [0])
            r.vectors_of(kind, **{f"p{k}": first, f"old{k}": np.repeat(pairs_of(name, [2**31]), blocks * threads, axis=0)})
            r.launch("hand_on", f"{blocks}, {threads}", f"old{k}", f"p{k}", make, order)
            wanted = bytes_of(pairs_of(name, np.arange(blocks * threads + 1)))

            def check(old, last, wanted=wanted):
                got = np.concatenate([bytes_of(old), bytes_of(last)])
                np.testing.assert_array_equal(got[np.lexsort(got.T)], wanted[np.lexsort(wanted.T)])

            r.verify([f"old{k}", f"p{k}"], check)


def each_type(rng, count):
    for kind, (dtype, lanes) in VECTORS.items():
        yield kind, lambda kind=kind, dtype=dtype, lanes=lanes: random_bytes(rng, dtype, count * lanes).reshape(count, lanes)
    for kind, dtype in STRUCTS.items():
        yield kind, lambda kind=kind, dtype=dtype: random_bytes(rng, dtype, count)


def settled(made):
    """Leaves out signalling NaNs, because some registers may change their bits."""
    def settle(part):
        if part.dtype.names:
            for name in part.dtype.names:
                settle(part[name])
        elif part.dtype.kind == "f":
            part[np.isnan(part)] = np.nan
    settle(made)
    return made


@row("exchange of every kind")
def _(r, rng):
    for kind, make in each_type(rng, 96):
        x, v = settled(make()), settled(make())
        for kernel in ("exchange", "exchange_range", "exchange_scopes"):
            k = kind + kernel
            r.vectors_of(kind, **{f"x{k}": x, f"v{k}": v, f"old{k}": np.zeros_like(x)})
            r.launch(kernel, "" if kernel == "exchange_range" else "3, 32", f"old{k}", f"x{k}", f"v{k}")
            expect_bytes(r, f"x{k}", v)
            expect_bytes(r, f"old{k}", x)


@row("cas of every kind: what was there, changed only where all bits are those expected")
def _(r, rng):
    for kind, make in each_type(rng, 128):
        x, desired = settled(make()), settled(make())
        same = rng.integers(0, 2, 128) == 1
        # one bit differs, at any position; for 0 it is the sign
        if np.dtype(x.dtype).kind == "f":
            x[:8] = [0.0, np.nan] * (x.shape[1] // 2)
        expected = bytes_of(x).copy()
        for i in np.flatnonzero(~same):
            expected[i, rng.integers(0, expected.shape[1])] ^= 1 << rng.integers(0, 8)
        if np.dtype(x.dtype).kind == "f":
            expected[:8, x.dtype.itemsize - 1] = np.where(same[:8], 0, 0x80)
        expected = settled(expected.view(x.dtype).reshape(x.shape))
        same = (bytes_of(expected) == bytes_of(x)).all(1)
        r.vectors_of(kind, **{f"x{kind}": x, f"e{kind}": expected, f"d{kind}": desired, f"o{kind}": np.zeros_like(x)})
        r.launch("expect_cas", "4, 32", f"o{kind}", f"x{kind}", f"e{kind}", f"d{kind}")
        after = bytes_of(x).copy()
        after[same] = bytes_of(desired)[same]
        expect_bytes(r, f"o{kind}", x)
        expect_bytes(r, f"x{kind}", after)


@row("two numbers change together")
def _(r, rng):
    count = 24 * 32
    for name, kernel, kind, dtype in (("w", "add_both", "Wide", np.uint64), ("v", "add_both_words", "u32x2", np.uint32)):
        x = rng.integers(0, 2**30, count).astype(dtype)
        start = rng.integers(1, 2**30, (1, 2)).astype(dtype)
        old = np.zeros((count, 2), dtype)
        if kind == "Wide":
            start, old = start.view(wide).reshape(-1), old.view(wide).reshape(-1)
        r.vectors_of(kind, **{f"place{name}": start, f"old{name}": old})
        r.array(f"x{name}", x)
        r.launch(kernel, "24, 32", f"old{name}", f"place{name}", f"x{name}")

        def check(old, place, x=x, start=np.ascontiguousarray(start).view(dtype).reshape(2), dtype=dtype):
            old, place = (np.ascontiguousarray(a).view(dtype).reshape(-1, 2) for a in (old, place))
            order = np.argsort(old[:, 0])
            np.testing.assert_array_equal(old[order, 0], start[0] + np.arange(count, dtype=dtype))
            held = start[1] + np.concatenate([[0], np.cumsum(x[order], dtype=dtype)]).astype(dtype)
            np.testing.assert_array_equal(old[order, 1], held[:-1])
            np.testing.assert_array_equal(place[0], [start[0] + dtype(count), held[-1]])

        r.verify([f"old{name}", f"place{name}"], check)


@row("fields, and places behind pointers")
def _(r, rng):
    x = random_bytes(rng, holder, 64)
    words = rng.integers(0, 2**62, (64, 2)).astype(np.uint64)
    t = np.arange(64, dtype=np.uint64)
    hits = rng.integers(0, 2, 64) == 1
    words[hits, 0], words[hits, 1] = t[hits], 5
    r.structs_of("Holder", x=x)
    r.structs_of("Wide", old=np.zeros(64, wide))
    r.array("words", words.reshape(-1))
    r.launch("of_fields", "2, 32", "old", "x", "words")
    after = x.copy()
    after["place"]["flag"], after["place"]["value"] = t, 7
    expect_bytes(r, "x", after)
    expect_bytes(r, "old", np.ascontiguousarray(x["place"]))
    r.expect("words", np.stack([words[:, 1], words[:, 0] + np.uint64(1)], 1).reshape(-1))


@row("shared memory")
def _(r, rng):
    blocks, threads = 5, 96
    x = rng.integers(0, 2**63, blocks * threads).astype(np.uint64)
    r.array("x", x)
    r.structs_of("Pair", r=np.zeros(2 * blocks, pair))
    r.launch("in_shared", f"{blocks}, {threads}", "r", "x")

    def check(got):
        np.testing.assert_array_equal(got["a"][1::2], threads)
        np.testing.assert_array_equal(got["b"][1::2], np.bitwise_xor.reduce(x.reshape(blocks, threads), axis=1))
        assert (got["a"][::2] < threads).all(), "a status that no thread left"
        np.testing.assert_array_equal(got["b"][::2], 1)

    r.verify(["r"], check)


@row("decoupled look-back, in words of 8 and of 16 bytes")
def _(r, rng):
    tiles = 200
    for name, dtype, kind, words in (("s", np.float32, "Status", status), ("d", np.float64, "Sum", sums)):
        x = rng.integers(0, 100, 32 * tiles).astype(dtype)
        r.arrays_of(**{f"x{name}": x, f"r{name}": np.full(32 * tiles, -1, dtype), f"ticket{name}": np.zeros(1, np.int32)})
        r.structs_of(kind, **{f"w{name}": np.zeros(tiles, words)})
        r.launch("look_back", f"{tiles}, 32", f"r{name}", f"x{name}", f"w{name}", f"ticket{name}")
        r.expect(f"r{name}", np.cumsum(x, dtype=dtype))
