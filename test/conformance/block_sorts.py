import monoids
import numpy as np
import orders
from rows import row, some

KINDS = {"?": "bool", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "u4": "u32", "i4": "i32", "u8": "u64", "i8": "i64", "f2": "f16", "f4": "f32", "f8": "f64"}


def launch_merge(r, rng, order, threads, each, shape=None):
    x, name = order.make(rng, threads * each), f"{order.name}_{threads}_{each}"
    valid = len(x) if rng.random() < 0.3 else int(rng.integers(0, len(x) + 1))
    all_of, first_of = orders.stable(order, x), orders.stable(order, x, valid)
    orders.arrays_of(r, order, **{f"x_{name}": x, f"k_{name}": monoids.unlike(x[all_of]), f"p_{name}": monoids.unlike(x[first_of])})
    r.arrays_of(**{f"f_{name}": np.full(len(x), -1, np.int32)})
    r.launch("merge_sorts", f"1, {shape or threads}", f"k_{name}", f"p_{name}", f"f_{name}", f"x_{name}", str(valid), order.less, str(threads), str(each))
    orders.expect_bits(r, f"k_{name}", x[all_of])
    orders.expect_bits(r, f"p_{name}", x[first_of])
    r.expect(f"f_{name}", first_of)


@row("merge: sorts of every kind of element")
def _(r, rng):
    for order in some(rng, orders.ORDERS, 8):
        threads = int(rng.choice([20, 32, 64, 96, 250] if order.dtype.itemsize < 100 else [33, 64]))
        launch_merge(r, rng, order, threads, int(rng.integers(1, 6)), rng.choice(monoids.shapes_of(threads)))


def items_of(rng, threads):
    """Returns the number of keys for each thread. A block has at most 2048 keys, because the keys, values and positions
    of one block are in shared memory."""
    return int(rng.integers(1, min(8, 2048 // threads) + 1))


@row("merge: sorts in blocks of every size")
def _(r, rng):
    for threads in some(rng, orders.SIZES, 5):
        launch_merge(r, rng, orders.BY_NAME[rng.choice(["less_i4", "dated"])], threads, items_of(rng, threads))


@row("merge: sorts of the first items")
def _(r, rng):
    for name, threads, each in (("less_f4", 96, 4), ("packed", 50, 3), ("greater_u2", 256, 2)):
        order = orders.BY_NAME[name]
        x = order.make(rng, threads * each)
        for valid in (0, 1, int(rng.integers(2, len(x))), len(x) - 1):
            want = x[orders.stable(order, x, valid)]
            orders.arrays_of(r, order, **{f"x_{name}": x, f"k_{name}_{valid}": monoids.unlike(want)})
            r.launch("merge_guarded", f"1, {threads}", f"k_{name}_{valid}", f"x_{name}", str(valid), order.less, str(threads), str(each))
            orders.expect_bits(r, f"k_{name}_{valid}", want)


@row("merge: paths")
def _(r, rng):
    for number, (first, second) in enumerate([(0, 5), (7, 0), (40, 30), (3, 100)]):
        x = np.concatenate([np.sort(rng.integers(0, 20, first)), np.sort(rng.integers(0, 20, second))]).astype(np.int32)
        r.arrays_of(**{f"x{number}": x, f"r{number}": np.full(len(x) + 1, -1, np.int32)})
        r.launch("paths", "", f"r{number}", f"x{number}", str(first))
        r.expect(f"r{number}", np.concatenate([[0], np.cumsum(np.argsort(x, kind="stable") < first)]))


def keys_of(rng, dtype, count):
    """Like orders.numbers. Floats also contain NaNs with both signs and with other payload bits."""
    x = orders.numbers(dtype)(rng, count)
    if x.dtype.kind == "f":
        word, quiet = f"u{x.itemsize}", np.array([np.nan, -np.nan], x.dtype)
        odd = (quiet.view(word) | np.array([5, 9], word)).view(x.dtype)
        x = np.where(rng.random(count) < 0.2, rng.choice(np.concatenate([quiet, odd]), count), x)
    return x


def sorted_by(ranks, descending, valid=None):
    """Returns the source indices of a stable sort of the first `valid` elements by their integer ranks."""
    valid = len(ranks) if valid is None else valid
    dense = np.unique(ranks[:valid], return_inverse=True)[1].reshape(-1)
    return np.concatenate([np.argsort(-dense if descending else dense, kind="stable"), np.arange(valid, len(ranks))]).astype(np.int64)


def launch_radix(r, rng, dtype, threads, each, like=None):
    x, descending = keys_of(rng, dtype, threads * each), bool(rng.integers(2))
    if like == "bf16":
        x = np.where(np.isnan(x), np.float32(np.nan), (x.view("u4") & 0xFFFF0000).view("f4"))
    name = f"{like or KINDS[dtype]}_{threads}_{each}"
    from_ = sorted_by(x, descending)
    r.arrays_of(**{f"x_{name}": x, f"k_{name}": monoids.unlike(x[from_]), f"p_{name}": monoids.unlike(x[from_]), f"f_{name}": np.full(len(x), -1, np.int32)})
    r.scalars[f"l_{name}"] = f"zeros:{like or KINDS[dtype]}[1]"
    r.launch("radix_sorts", f"1, {threads}", f"k_{name}", f"p_{name}", f"f_{name}", f"x_{name}", f"l_{name}", "0", "64", str(threads), str(each), str(descending).lower())
    # the conversion of NaNs to bf16 is not tested here
    expect = r.expect if like == "bf16" else lambda *a: orders.expect_bits(r, *a)
    expect(f"k_{name}", x[from_])
    expect(f"p_{name}", x[from_])
    r.expect(f"f_{name}", from_)


@row("radix: sorts of every type")
def _(r, rng):
    for dtype in some(rng, KINDS, 7):
        launch_radix(r, rng, dtype, int(rng.choice([20, 32, 64, 100, 256])), int(rng.integers(1, 6)))
    launch_radix(r, rng, "f4", 64, 3, "bf16")


@row("radix: sorts in blocks of every size")
def _(r, rng):
    for threads in some(rng, orders.SIZES, 5):
        launch_radix(r, rng, rng.choice(["f4", "u2", "i8"]), threads, items_of(rng, threads))


@row("radix: sorts of the first items")
def _(r, rng):
    for dtype, order, threads, each in (("f4", "packed", 96, 3), ("i2", "dated", 256, 2), ("u8", "large", 33, 1)):
        x, order = keys_of(rng, dtype, threads * each), orders.BY_NAME[order]
        y = order.make(rng, len(x))
        for valid in (0, 1, int(rng.integers(2, len(x)))):
            name, descending = f"{dtype}_{valid}", bool(rng.integers(2))
            from_ = sorted_by(x, descending, valid)
            r.arrays_of(**{f"x_{name}": x, f"k_{name}": monoids.unlike(x[from_]), f"p_{name}": monoids.unlike(x[from_])})
            orders.arrays_of(r, order, **{f"y_{name}": y, f"r_{name}": monoids.unlike(y[from_])})
            r.launch("radix_guarded", f"1, {threads}", f"k_{name}", f"p_{name}", f"r_{name}", f"x_{name}", f"y_{name}", str(valid), str(threads), str(each), str(descending).lower())
            orders.expect_bits(r, f"k_{name}", x[from_])
            orders.expect_bits(r, f"p_{name}", x[from_])
            orders.expect_bits(r, f"r_{name}", y[from_])


@row("radix: sorts by some of the bits")
def _(r, rng):
    for dtype in ("u4", "i8", "u1"):
        width = 8 * np.dtype(dtype).itemsize
        begin, end = sorted(rng.choice(width + 1, 2, replace=False).tolist())
        threads, each, descending = 64, 4, bool(rng.integers(2))
        x = orders.numbers(dtype)(rng, threads * each)
        unsigned = x.view(f"u{width // 8}").astype("u8") ^ np.uint64(2 ** (width - 1) if dtype[0] == "i" else 0)
        from_ = sorted_by((unsigned >> np.uint64(begin)) & np.uint64(2 ** (end - begin) - 1), descending)
        r.arrays_of(**{f"x_{dtype}": x, f"k_{dtype}": monoids.unlike(x[from_]), f"p_{dtype}": monoids.unlike(x[from_]), f"f_{dtype}": np.full(len(x), -1, np.int32)})
        r.launch("radix_sorts", f"1, {threads}", f"k_{dtype}", f"p_{dtype}", f"f_{dtype}", f"x_{dtype}", f"x_{dtype}", str(begin), str(end), str(threads), str(each), str(descending).lower())
        r.expect(f"k_{dtype}", x[from_])
        r.expect(f"p_{dtype}", x[from_])
        r.expect(f"f_{dtype}", from_)


@row("radix: ranks of digits")
def _(r, rng):
    launch_ranks(r, rng, ((1, 1, 8), (17, 3, 4), (100, 2, 5)))


@row("radix: ranks in large blocks")
def _(r, rng):
    launch_ranks(r, rng, ((32, 8, 8), (256, 5, 8), (1024, 2, 8), (96, 2, 10)))


def launch_ranks(r, rng, blocks):
    for threads, each, width in blocks:
        digits = rng.integers(0, 2 ** rng.integers(0, width + 1), threads * each).astype(np.int32)
        ranks = np.zeros(len(digits), np.int64)
        ranks[np.argsort(digits, kind="stable")] = np.arange(len(digits))
        counts = np.bincount(digits, minlength=2**width)
        name = f"{threads}"
        r.arrays_of(**{f"d{name}": digits, f"r{name}": np.full((2, len(digits)), -1, np.int32), f"c{name}": np.full((2, 2**width), -1, np.int32), f"s{name}": np.full((2, 2**width), -1, np.int32)})
        r.launch("ranks", f"1, {threads}", f"r{name}", f"c{name}", f"s{name}", f"d{name}", name, str(each), str(width))
        r.expect(f"r{name}", np.stack([ranks] * 2))
        r.expect(f"c{name}", np.stack([counts] * 2))
        r.expect(f"s{name}", np.stack([np.cumsum(counts) - counts] * 2))


@row("radix: bits")
def _(r, rng):
    for dtype in KINDS:
        x = keys_of(rng, dtype, 200)
        unsigned = f"u{x.itemsize}"
        r.arrays_of(**{f"x{dtype[-2:]}": x} if dtype != "?" else {"xb": x})
        name = "b" if dtype == "?" else dtype
        r.arrays_of(**{f"f{name}": np.full(len(x), 77, unsigned), f"b{name}": monoids.unlike(x), f"l{name}": np.full(len(x), -1, np.int32), f"h{name}": np.full(len(x), -1, np.int32)})
        r.launch("bits", "", f"f{name}", f"b{name}", f"l{name}", f"h{name}", f"x{name}")
        orders.expect_bits(r, f"b{name}", x)

        def check(found, low, high, x=x):
            number = np.ones(len(x), bool) if x.dtype.kind != "f" else ~np.isnan(x)
            rising = x[number][np.argsort(found[number], kind="stable")]
            assert np.all(rising[1:] >= rising[:-1]), "bits in another order than keys"
            if x.dtype.kind == "f":
                assert found[number].max() < found[~number].min(), "NaNs are not last"
                zeros = x[number] == 0
                assert len(set(low[number][zeros])) <= 1 and len(set(low[~number])) == 1, "digits of equal keys differ"
                assert set(np.diff(np.unique(found[number][zeros]))) <= {1}, "zeros are not neighbours"
            else:
                np.testing.assert_array_equal(low, found & 31)
                highest = 0 if x.dtype.kind == "b" else 8 * x.itemsize - 1
                np.testing.assert_array_equal(high, 1 - (found >> found.dtype.type(highest)))
        r.verify([f"f{name}", f"l{name}", f"h{name}"], check)
