import numpy as np
from rows import TARGETS, row

THREADS = {"cpu": 1, "cuda": 64}
EACH = {"cpu": (8, 50), "cuda": (1, 4)}
ENTRY = np.dtype([("key", "i4"), ("tag", "u1"), ("words", "u8", (3,))], align=True)


def keys(rng, kind, n):
    """Keys, and the values by which they are ordered."""
    if kind == "entry":
        x = np.zeros(n, ENTRY)
        x["key"], x["tag"] = rng.integers(-5, 5, n), rng.integers(0, 256, n)
        x["words"] = rng.integers(0, 2**63, (n, 3))
        return x, x["key"]
    x = rng.integers(0, 100 if kind == "u1" else 2**31 - 1, n).astype(kind)
    return x, x


def order_of(name, by, rows):
    by = by.reshape(rows, -1)
    if name == "less_low":
        by = by & 7
    if name == "greater":
        order = (by.shape[1] - 1 - np.argsort(by[:, ::-1], axis=1, kind="stable"))[:, ::-1]
    else:
        order = np.argsort(by, axis=1, kind="stable")
    return (order + np.arange(rows)[:, None] * by.shape[1]).reshape(-1)


def arrays_of(r, kind, **values):
    (lambda **v: r.structs_of("entry", **v) if kind == "entry" else r.arrays_of(**v))(**values)


def unlike(x):
    return (~np.frombuffer(x[:1].tobytes(), np.uint8)).view(x.dtype).repeat(len(x))


def number(rng, n):
    return f"{n}{rng.choice(['i32', 'i64'])}"


def blocks(rng, target, tiles):
    return str(tiles if target == "cuda" or THREADS["cpu"] > 1 else rng.integers(1, 6))


def sort_row(target, kind, less):
    @row(f"merge sort of {kind} by {less}", targets=(target,))
    def _(r, rng):
        threads, each = THREADS[target], int(rng.choice(EACH[target]))
        tile = threads * each
        length = int(rng.choice([1, tile - 1 or 1, tile, tile + 1, 2 * tile, 7 * tile + 3, 900]))
        rows = int(rng.choice([1, 1, 3]))
        n = rows * length
        x, by = keys(rng, kind, n)
        order = order_of(less, by, rows)
        empty = np.full(n, -1, np.int32)
        arrays_of(r, kind, x=x, out=unlike(x), spare=unlike(x))
        r.arrays_of(outv=empty, sparev=empty)
        runs = []
        while tile << len(runs) < length:
            runs.append(tile << len(runs))
        names = (["spare", "out"] if len(runs) % 2 else ["out", "spare"]) * 8
        count = number(rng, n)
        numbers = [less, count, f"{length}{count[-3:]}"]
        r.arrays_of(splits=np.full(rows * -(-length // tile), -7, np.int32 if count.endswith("i32") else np.int64))
        r.launch("tiles", "", names[0], names[0] + "v", "x", *numbers, str(tile), str(threads), str(each))
        for k, run in enumerate(runs):
            arrays = [names[k + 1], names[k + 1] + "v", names[k], names[k] + "v"]
            grid = blocks(rng, target, rows * -(-length // tile))
            split = rng.random() < 0.5
            if split:
                r.launch("splits", "2, 32", "splits", names[k], *numbers, f"{run}{count[-3:]}", str(tile))
            r.launch("pass", f"{grid}, {threads}", *arrays, *numbers, f"{run}{count[-3:]}", "splits", "true" if split else "false", str(threads), str(each))
        r.expect("out", x[order])
        r.expect("outv", order)


def row_by_four(target, kind, less):
    @row(f"merge sort of {kind} by {less}, by fours", targets=(target,))
    def _(r, rng):
        threads, each = THREADS[target], int(rng.choice((1, 4, 5)))
        tile = (threads - 1) * each
        length = int(rng.choice([tile, tile + 1, 2 * tile, 4 * tile, 5 * tile - 1, 17 * tile + 3, 900]))
        rows = int(rng.choice([1, 1, 3]))
        n = rows * length
        x, by = keys(rng, kind, n)
        order = order_of(less, by, rows)
        empty = np.full(n, -1, np.int32)
        arrays_of(r, kind, x=x, out=unlike(x), spare=unlike(x))
        r.arrays_of(outv=empty, sparev=empty)
        runs = []
        while tile << 2 * len(runs) < length:
            runs.append(tile << 2 * len(runs))
        names = (["spare", "out"] if len(runs) % 2 else ["out", "spare"]) * 8
        count = number(rng, n)
        numbers = [less, count, f"{length}{count[-3:]}"]
        r.arrays_of(splits=np.full(3 * rows * -(-length // tile), -7, np.int32 if count.endswith("i32") else np.int64))
        r.launch("tiles", "", names[0], names[0] + "v", "x", *numbers, str(tile), str(threads), str(each))
        for k, run in enumerate(runs):
            arrays = [names[k + 1], names[k + 1] + "v", names[k], names[k] + "v"]
            r.launch("splits_by_four", "2, 32", "splits", names[k], *numbers, f"{run}{count[-3:]}", str(threads), str(each))
            r.launch("pass_by_four", "", *arrays, *numbers, f"{run}{count[-3:]}", "splits", str(threads), str(each))
        r.expect("out", x[order])
        r.expect("outv", order)


def keys_row(target):
    @row("merge sort of keys alone, the tiles in place", targets=(target,))
    def _(r, rng):
        threads, each = THREADS[target], EACH[target][1]
        tile, n = threads * each, 2 * threads * each - int(rng.integers(0, 5))
        x = rng.integers(-2**62, 2**62, n)
        r.arrays_of(x=x, out=unlike(x))
        r.launch("tiles_in_place", "", "x", "less", f"{n}i32", f"{n}i32", str(threads), str(each))
        r.launch("pass_of_keys", f"2, {threads}", "out", "x", "less", f"{n}i32", f"{n}i32", f"{tile}i32", str(threads), str(each))
        r.expect("out", np.sort(x))


def merge_row(target):
    @row("merge of two sorted arrays", targets=(target,))
    def _(r, rng):
        threads, each = THREADS[target], int(rng.choice(EACH[target]))
        left, right = (int(k) for k in rng.choice([0, 1, 5, 64, 300, 1000], 2, replace=False))
        x, y = np.sort(rng.integers(0, 50, max(left, 1))), np.sort(rng.integers(0, 50, max(right, 1)))
        n, both = left + right, np.concatenate([x[:left], y[:right]])
        order = np.argsort(both, kind="stable")
        r.arrays_of(x=x, y=y, out=np.full(n, -1), at=np.full(n, -1, np.int32))
        grid = blocks(rng, target, -(-n // (threads * each)))
        count = number(rng, n)
        r.launch("merged", f"{grid}, {threads}", "out", "at", "x", "y", "less", count, f"{left}{count[-3:]}", str(threads), str(each))
        r.expect("out", both[order])
        r.expect("at", order)


for target in TARGETS:
    for kind, less in (("u1", "less"), ("i4", "greater"), ("u8", "less_low"), ("entry", "less_key")):
        sort_row(target, kind, less)
        if THREADS[target] > 1:
            row_by_four(target, kind, less)
    keys_row(target)
    merge_row(target)
