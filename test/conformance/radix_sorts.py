import numpy as np
import orders_of_keys as orders
from rows import row

WIDE = np.dtype([("a", "u8"), ("b", "u4"), ("c", "u8", (2,))], align=True)


def keys_of(r, rng, kind, n):
    """Creates the key arrays x, out and spare. out and spare start with values that no sort of x contains. Returns
    x."""
    x = orders.make(rng, kind, n)
    first = x[:1].view(f"u{x.itemsize}")
    other = (x[:1] == 0 if kind == "bool" else (first ^ (0xFFFF0000 if kind == "bf16" else ~(first & 0))).view(x.dtype)).repeat(n)
    if kind == "bf16":
        r.vectors_of("bf16", x=x, out=other, spare=other)
    else:
        r.arrays_of(x=x, out=other, spare=other)
    return x


def range_of(rng, kind):
    """Returns some of an integer's bits, or all bits."""
    bits = orders.bits_of(kind)
    if kind[0] in "iu" and rng.random() < 0.4:
        begin = int(rng.integers(0, bits - 1))
        return begin, int(rng.integers(begin + 1, bits + 1))
    return 0, bits


def flag(value):
    return "true" if value else "false"


def count(rng, n):
    """Returns the number as one of the types that can represent it."""
    return f"{n}{rng.choice(['i32', 'i64'])}"


def few_row(kind):
    @row(f"radix sort of few {kind}")
    def _(r, rng):
        threads = int(rng.choice([32, 96, 256]))
        n = int(rng.choice([1, 2, threads - 1, threads + 1, 2 * threads, 5 * threads - 7]))
        x = keys_of(r, rng, kind, n)
        (begin, end), descending = range_of(rng, kind), bool(rng.integers(2))
        order = orders.order_of(x, descending, begin, end)
        r.arrays_of(at=np.full(n, -1, np.int32))
        r.launch("few", f"1, {threads}", "out", "at", "x", count(rng, n), str(threads), "5", str(begin), str(end), flag(descending))
        r.expect("at", order)
        r.verify(["out"], orders.same_bits(x[order]))


for kind in orders.KINDS:
    few_row(kind)


def launch_histogram(r, rng, number, begin, end, descending):
    most = 32 if end - begin <= 32 else 16  # a GPU block has about 200 KiB
    r.launch("histogram", f"{rng.integers(1, 4)}, 256", "x", "bins", "tickets", "status", number, str(begin), str(end), flag(descending), str(rng.choice([1, 4, most])))


def work_of(r, rng, n, each, digits, number):
    """Creates the arrays bins, tickets and status for tiles of 256 threads."""
    word = np.uint32 if number.endswith("i32") else np.uint64
    r.arrays_of(bins=np.zeros((2, digits, 256), word), tickets=np.zeros(digits + 1, np.uint32),
                status=rng.integers(0, 2**32, (2, -(-n // (256 * each)), 256)).astype(word))


def one_sweep_row(kind):
    @row(f"radix sort of {kind}")
    def _(r, rng):
        n = int(rng.choice([1, 255, 256, 257, 3000, 5000]))
        each = int(rng.choice([1, 2, 3, 5]))
        x = keys_of(r, rng, kind, n)
        (begin, end), descending = range_of(rng, kind), bool(rng.integers(2))
        order = orders.order_of(x, descending, begin, end)
        digits = -(-(end - begin) // 8)
        number = count(rng, n)
        wide, late = rng.random() < 0.3, flag(rng.random() < 0.5)
        values = np.arange(n).astype(rng.choice(["u1", "u2", "i4", "f8"]))
        if wide:
            values = np.zeros(n, WIDE)
            for name in ("a", "b"):
                values[name] = rng.integers(1, 2**32, n)
            values["c"] = rng.integers(1, 2**63, (n, 2))
        (lambda **v: r.structs_of("wide", **v) if wide else r.arrays_of(**v))(xv=values, outv=np.zeros_like(values), sparev=np.zeros_like(values))
        work_of(r, rng, n, each, digits, number)
        names = ["x"] + (["out"] if digits % 2 else ["spare", "out"]) + ["spare", "out"] * 4
        pairs = values.dtype != np.float64
        for _ in range(2):  # the workspace must have its required contents after the call
            launch_histogram(r, rng, number, begin, end, descending)
            for k in range(digits):
                numbers = [str(k), str(begin + 8 * k), str(end), "256", str(each), flag(descending)]
                moved = [names[k + 1] + "v", names[k] + "v", late] if pairs else []
                r.launch("pairs" if pairs else "keys", "", names[k + 1], names[k], "bins", "tickets", "status", number, *numbers, *moved)
        r.verify(["out"], orders.same_bits(x[order]))
        if pairs and n > 1:
            r.expect("outv", values[order])


for kind in orders.KINDS:
    one_sweep_row(kind)


def packed_row(kind, value):
    @row(f"radix sort of {kind} packed with {value}")
    def _(r, rng):
        n, each = int(rng.choice([2, 255, 257, 3000, 5000])), int(rng.choice([1, 3]))
        x = keys_of(r, rng, kind, n)
        (begin, end), descending = range_of(rng, kind), bool(rng.integers(2))
        if end - begin <= 8:  # a single digit needs only one pass, which packs nothing
            begin, end = 0, 32
        order = orders.order_of(x, descending, begin, end)
        digits = -(-(end - begin) // 8)
        number = count(rng, n)
        values = rng.integers(0, 2**32, n, np.uint32).view(value) if value != "f4" else rng.standard_normal(n).astype("f4")
        r.arrays_of(xv=values, outv=np.zeros_like(values), one=np.zeros(n, np.uint64), other=np.zeros(n, np.uint64))
        work_of(r, rng, n, each, digits, number)
        words = ["one", "other"] * 2
        launch_histogram(r, rng, number, begin, end, descending)
        for k in range(digits):
            first = ["pack", words[k], "x", "xv"] if not k else ["unpack", "out", "outv", words[k - 1]] if k == digits - 1 else ["packed", words[k], words[k - 1], "x"]
            numbers = [number, str(k), str(begin + 8 * k), str(end), "256", str(each), flag(descending)]
            r.launch(first[0], "", *first[1:], "bins", "tickets", "status", *numbers)
        r.verify(["out"], orders.same_bits(x[order]))
        r.expect("outv", values[order])


for kind, value in (("u32", "u4"), ("i32", "f4"), ("f32", "i4")):
    packed_row(kind, value)


def pieces_row(kind):
    @row(f"radix sort of {kind} in pieces")
    def _(r, rng):
        n, pieces = int(rng.choice([1, 2, 100, 1000, 3000])), int(rng.integers(1, 8))
        x = keys_of(r, rng, kind, n)
        (begin, end), descending = range_of(rng, kind), bool(rng.integers(2))
        order = orders.order_of(x, descending, begin, end)
        number = count(rng, n)
        values = np.arange(1, n + 1).astype(np.int32)
        r.arrays_of(xv=values, outv=np.zeros(n, np.int32), sparev=np.zeros(n, np.int32),
                    counts=rng.integers(0, 99, (pieces, 256)).astype(np.uint32 if number.endswith("i32") else np.uint64))
        digits = -(-(end - begin) // 8)
        names = ["x"] + (["out"] if digits % 2 else ["spare", "out"]) + ["spare", "out"] * 4
        for k in range(digits):
            numbers = [number, str(begin + 8 * k), str(end), flag(descending)]
            r.launch("counts", f"{pieces}, 1", names[k], "counts", *numbers)
            r.launch("scatter", f"{pieces}, 1", names[k + 1], names[k], "counts", *numbers, names[k + 1] + "v", names[k] + "v")
        r.expect("outv", values[order])
        r.verify(["out"], orders.same_bits(x[order]))


for kind in orders.KINDS:
    pieces_row(kind)
