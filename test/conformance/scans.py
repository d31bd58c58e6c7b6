"""Rows for scans.kir."""
import monoids
import numpy as np
from rows import row, some

SMALL = ("add_i1", "add_u2", "add_i4", "last_i8", "add_f2", "last_f2", "add_f4", "min_f4", "add_f8", "add_c8", "add_c16", "then", "multiply", "last_tagged")
INDEX = ("i32", "i64")


def words(m):
    """64-bit words in an entry of the workspace."""
    return -(-np.dtype(m.dtype).itemsize // 4)


def expected(m, x, init):
    """(inclusive, exclusive) scans."""
    inclusive, _, rest, _ = monoids.scans(m, x)
    values = rest.tolist()
    exclusive = [init] + [m.combine(init, v) for v in values[1:]]
    return inclusive, np.array(exclusive, m.dtype)


def work_of(m, tiles, sequences=1):
    return np.zeros(16 + sequences * words(m) * (tiles + -(-tiles // 32)), np.uint64)


def launch_tiles(r, rng, m, name, n, threads, each, lanes, chunks, exclusive, times=2, in_place=False, index=None):
    x = m.make(rng, n)
    init = m.make(rng, 1)
    want = expected(m, x, init.tolist()[0])[exclusive]
    tiles = -(-n // (threads * each * chunks))
    if in_place:
        times = 1
    monoids.arrays_of(r, m, **{f"x{name}": x, f"i{name}": init, f"r{name}": monoids.unlike(want)})
    r.array(f"w{name}", work_of(m, tiles))
    index = index or rng.choice(INDEX)
    result = f"x{name}" if in_place else f"r{name}"
    for _ in range(times):
        r.launch("tiles", f"{tiles}, {threads}", result, f"x{name}", f"i{name}", f"w{name}", f"{n}{index}", m.op, str(bool(exclusive)).lower(), str(threads), str(each), str(lanes), str(chunks))
    r.expect(result, want)


@row("scan: tiles of every kind of element")
def _(r, rng):
    for number, name in enumerate(some(rng, SMALL, 7)):
        m = monoids.BY_NAME[name]
        threads, lanes = int(rng.choice([32, 64, 128])), int(rng.choice([1, 2, 4]))
        each = lanes * int(rng.integers(1, 4))
        n = int(rng.integers(1, 6 * threads * each)) if m.kind else int(rng.integers(1, 20 * threads * each))
        launch_tiles(r, rng, m, f"{number}", n, threads, each, lanes, int(rng.integers(1, 4)), number % 2, in_place=number % 3 == 0)


@row("scan: many tiles")
def _(r, rng):
    for number, name in enumerate(("then", "add_u8", "last_i1")):
        for chunks in (1, 2):
            n = 32 * int(rng.integers(66, 160)) + int(rng.integers(32))
            launch_tiles(r, rng, monoids.BY_NAME[name], f"{number}{chunks}", n, 32, 1, 1, chunks, int(rng.integers(2)))


@row("scan: sizes around those of tiles and groups of tiles")
def _(r, rng):
    m = monoids.BY_NAME["then"]
    ways = [(*(int(v) for v in rng.integers(1, 3, 2)), int(rng.integers(2)), rng.choice(INDEX)) for _ in range(2)]  # each a compilation
    for n in (1, 2, 31, 32, 33, 63, 64, 65, 64 * 31, 64 * 32 - 1, 64 * 32, 64 * 32 + 1, 64 * 64 + 1):
        lanes, chunks, exclusive, index = ways[rng.integers(2)]
        launch_tiles(r, rng, m, f"{n}", n, 32, 2, lanes, chunks, exclusive, index=index)


@row("scan: pieces of every kind of element", targets=("cpu",))
def _(r, rng):
    for number, name in enumerate(some(rng, SMALL, 10)):
        m, exclusive, index = monoids.BY_NAME[name], int(rng.integers(2)), rng.choice(INDEX)
        for n in {1, int(rng.integers(2, 40)), int(rng.integers(40, 3000))}:
            grid, in_place = int(rng.choice([1, 2, 7])), rng.random() < 0.3
            x, init = m.make(rng, n), m.make(rng, 1)
            want = expected(m, x, init.tolist()[0])[exclusive]
            key = f"{number}_{n}"
            monoids.arrays_of(r, m, **{f"x{key}": x, f"i{key}": init, f"r{key}": monoids.unlike(want), f"t{key}": np.zeros(8 * grid, m.dtype)})
            length = f"{n}{index}"
            result = f"x{key}" if in_place and not np.array_equal(x, want) else f"r{key}"
            if grid > 1:
                r.launch("totals", f"{grid}, 1", f"x{key}", f"t{key}", length, m.op)
            r.launch("pieces", f"{grid}, 1", result, f"x{key}", f"i{key}", f"t{key}", length, m.op, str(bool(exclusive)).lower())
            r.expect(result, want)


def fused(r, rng, n):
    x, y = rng.integers(-128, 128, n, np.int8), rng.integers(-1000, 1000, n, np.int32)
    r.arrays_of(x=x, y=y, r=np.full(n, 1 << 62))
    r.expect("r", np.cumsum(x.astype(np.int64) * y) >> 1)


@row("scan: of what is computed from several arrays, tiles", targets=("cuda",))
def _(r, rng):
    n = int(rng.integers(20000, 50000))
    fused(r, rng, n)
    tiles = -(-n // 1024)
    r.array("w", work_of(monoids.BY_NAME["add_i8"], tiles))
    r.launch("fused", f"{tiles}, 128", "r", "x", "y", "w", f"{n}i32", "128", "8", "4")


@row("scan: of what is computed from several arrays, pieces", targets=("cpu",))
def _(r, rng):
    n = int(rng.integers(20000, 50000))
    fused(r, rng, n)
    r.arrays_of(w=np.zeros(24, np.int64))
    r.launch("fused_totals", "3, 1", "x", "y", "w", f"{n}i32")
    r.launch("fused", "3, 1", "r", "x", "y", "w", f"{n}i32", "1", "1", "1")


def by_key(r, rng, name, n, pieces):
    """Returns the launches of one scan by key, with tiles or with this number of chunks."""
    m = monoids.BY_NAME[name]
    pair = {"add_i1": "pair_i8", "add_f8": "pair_f8", "then": "pair_affine"}[name]
    x, init = m.make(rng, n), m.make(rng, 1)
    keys = np.cumsum(rng.random(n) < rng.choice([0.01, 0.3, 1])).astype(np.int16)
    exclusive = int(rng.integers(2))
    want = np.empty(n, m.dtype)
    for key in np.unique(keys):
        want[keys == key] = expected(m, x[keys == key], init.tolist()[0])[exclusive]
    struct = np.dtype([("head", "?"), ("value", np.dtype(np.dtype(m.dtype).descr if m.kind else m.dtype, align=True))], align=True)
    monoids.arrays_of(r, m, **{f"x{name}": x, f"i{name}": init, f"r{name}": monoids.unlike(want)})
    r.array(f"k{name}", keys)
    r.structs_of(pair, **{f"p{name}": np.zeros(1, struct)})
    common = (f"x{name}", f"k{name}", f"i{name}", f"p{name}")
    way = str(bool(exclusive)).lower()
    if pieces:
        r.structs_of(pair, **{f"w{name}": np.zeros(8 * pieces, struct)})
        r.launch("by_key_totals", f"{pieces}, 1", *common, f"w{name}", f"{n}i32", m.op, way)
        r.launch("by_key", f"{pieces}, 1", f"r{name}", *common, f"w{name}", f"{n}i32", m.op, way, "1", "1", "1")
    else:
        tiles = -(-n // 256)
        r.array(f"w{name}", work_of(m._replace(dtype=struct), tiles))
        r.launch("by_key", f"{tiles}, 64", f"r{name}", *common, f"w{name}", f"{n}i64", m.op, way, "64", "4", "2")
    r.expect(f"r{name}", want)


@row("scan: by key, tiles", targets=("cuda",))
def _(r, rng):
    for name in ("add_i1", "add_f8", "then"):
        by_key(r, rng, name, int(rng.integers(5000, 20000)), 0)


@row("scan: by key, pieces", targets=("cpu",))
def _(r, rng):
    for name in ("add_i1", "add_f8", "then"):
        by_key(r, rng, name, int(rng.integers(1, 5000)), int(rng.integers(2, 6)))


def launch_rows(r, rng, m, key, kernel, configuration, rows, n, work, *constants):
    x, init = m.make(rng, rows * n), m.make(rng, 1)
    exclusive = int(rng.integers(2))
    want = np.concatenate([expected(m, part, init.tolist()[0])[exclusive] for part in np.split(x, rows)])
    monoids.arrays_of(r, m, **{f"x{key}": x.reshape(rows, n), f"i{key}": init, f"r{key}": monoids.unlike(want).reshape(rows, n)})
    if work is not None:
        r.array(f"w{key}", work)
    for _ in range(2):
        r.launch(kernel, configuration, f"r{key}", f"x{key}", f"i{key}", *([f"w{key}"] if work is not None else []), f"{n}{rng.choice(INDEX)}", m.op, str(bool(exclusive)).lower(), *constants)
    r.expect(f"r{key}", want.reshape(rows, n))


@row("scan: rows, a warp or a block for each, or tiles of them")
def _(r, rng):
    for number, name in enumerate(some(rng, ("add_u2", "last_i8", "add_f4", "then", "last_tagged"), 3)):
        m = monoids.BY_NAME[name]
        threads, lanes = int(rng.choice([32, 64, 96])), int(rng.choice([1, 2]))
        each = 2 * lanes
        for way in (0, 1):
            rows, n = int(rng.integers(1, 12)), int(rng.choice([1, 31, 32 * each, 1 + 32 * each, 3 * threads * each + 5]))
            launch_rows(r, rng, m, f"{number}{way}", "row_teams", f"{rng.integers(1, 4)}, {threads}", rows, n, None, str(way), str(threads), str(each), str(lanes))
        rows, n = int(rng.integers(1, 5)), int(rng.integers(1, 40 * threads * each)) if not m.kind else int(rng.integers(1, 5 * threads * each))
        tiles = -(-n // (threads * each))
        launch_rows(r, rng, m, f"{number}t", "row_tiles", f"{rows * tiles}, {threads}", rows, n, work_of(m, tiles, rows), str(threads), str(each), str(lanes))


@row("scan: rows, pieces", targets=("cpu",))
def _(r, rng):
    for number, name in enumerate(("add_u2", "last_f8", "then")):
        for rows in (int(rng.integers(1, 8)), int(rng.integers(8, 100))):
            launch_rows(r, rng, monoids.BY_NAME[name], f"{number}_{rows}", "rows", f"{rng.integers(1, 6)}, 1", rows, int(rng.choice([1, 2, 57])), None)


def launch_columns(r, rng, m, key, kernel, configuration, *constants):
    shape = int(rng.integers(1, 4)), int(rng.choice([1, 2, 30, 200])), int(rng.choice([1, 31, 32, 33, 100]))
    outer, n, inner = shape
    x, init = m.make(rng, outer * n * inner).reshape(shape), m.make(rng, 1)
    exclusive = int(rng.integers(2))
    want = x.copy()
    for o in range(outer):
        for c in range(inner):
            want[o, :, c] = expected(m, x[o, :, c], init.tolist()[0])[exclusive]
    monoids.arrays_of(r, m, **{f"x{key}": x, f"i{key}": init, f"r{key}": monoids.unlike(want)})
    r.launch(kernel, configuration, f"r{key}", f"x{key}", f"i{key}", f"{n}{rng.choice(INDEX)}", m.op, str(bool(exclusive)).lower(), *constants)
    r.expect(f"r{key}", want)


@row("scan: columns")
def _(r, rng):
    for number, name in enumerate(("add_u2", "last_f8", "then", "multiply")):
        threads = int(rng.choice([32, 64, 128]))
        launch_columns(r, rng, monoids.BY_NAME[name], f"{number}", "strips", f"{rng.integers(1, 6)}, {threads}", str(threads), str(rng.integers(1, 6)))


@row("scan: columns, pieces", targets=("cpu",))
def _(r, rng):
    for number, name in enumerate(("add_u2", "last_f8", "then")):
        launch_columns(r, rng, monoids.BY_NAME[name], f"{number}", "columns", f"{rng.integers(1, 6)}, 1")
