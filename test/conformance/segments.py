"""Rows for segments.kir."""
import monoids
import numpy as np
from rows import row

KINDS = {"add_i8": ("pair_add", "i32"), "then": ("pair_then", "i64")}


def pair_of(m):
    value = np.dtype(np.dtype(m.dtype).descr if m.kind else m.dtype, align=True)
    return np.dtype([("state", "i4"), ("value", value)], align=True)


def some_lengths(rng, most):
    """Returns the lengths of segments: all of one kind, several empty segments in sequence or at either end, and one
    segment with nearly all elements."""
    made = [rng.integers(0, 4, rng.integers(1, 40)), np.zeros(rng.integers(0, most // 2), "i8"), rng.integers(0, most // 4 + 2, rng.integers(1, 6)), np.array([rng.integers(0, 2 * most)]),
            rng.integers(0, 12, rng.integers(0, 30)), np.zeros(rng.integers(0, 3), "i8")]
    made = np.concatenate([made[i] for i in rng.choice(len(made), rng.integers(1, len(made) + 1), replace=False)])
    return made if len(made) else np.ones(1, "i8")


def draw(r, rng, name, key, most=400, lengths=None):
    """Returns (monoid, x, offsets, result of an empty segment). Elements before the first segment and after the last
    one belong to no segment."""
    m = monoids.BY_NAME[name]
    lengths = some_lengths(rng, most) if lengths is None else np.asarray(lengths, "i8")
    before, behind = (int(rng.integers(0, 5)) * int(rng.integers(0, 2)) for _ in range(2))
    offsets = before + np.concatenate([[0], np.cumsum(lengths)])
    x, empty = m.make(rng, max(int(offsets[-1]) + behind, 1)), m.make(rng, 1)
    r.array(f"o{key}", offsets.astype("i4" if m.kind else "u8"))
    monoids.arrays_of(r, m, **{f"x{key}": x, f"e{key}": empty})
    r.structs_of(KINDS[name][0], **{f"p{key}": np.zeros(1, pair_of(m))})
    return m, x, offsets, empty


def reduced(m, x, offsets, empty):
    values, made = x.tolist(), []
    for a, b in zip(offsets[:-1], offsets[1:]):
        total = values[a] if b > a else empty.tolist()[0]
        for v in values[a + 1:b]:
            total = m.combine(total, v)
        made.append(total)
    return np.array(made, m.dtype)


def scanned(m, x, offsets, init, exclusive, after):
    values, made = x.tolist(), monoids.unlike(x).tolist()
    start = init.tolist()[0]
    for a, b in zip(offsets[:-1], offsets[1:]):
        total = None
        for i in range(a, b):
            upto = values[i] if total is None else m.combine(total, values[i])
            given = total if exclusive else upto
            made[i] = start if given is None else m.combine(start, given) if after else given
            total = upto
    return np.array(made, m.dtype)


def work_of(m, steps, threads, each):
    tiles = -(-steps // (threads * each))
    words = -(-pair_of(m).itemsize // 4)
    return tiles, np.zeros(16 + words * (tiles + -(-tiles // 32)), np.uint64)


def constants(way):
    return [str(bool(v)).lower() for v in way]


def launch_tiles(r, rng, name, key, way, lengths=None, most=400, threads=64, each=3):
    """way: whether scans are exclusive, and whether a value is combined before the first element."""
    m, x, offsets, empty = draw(r, rng, name, key, most, lengths)
    s, n, index = len(offsets) - 1, len(x), KINDS[name][1]
    tiles, work = work_of(m, n + s, threads, each)
    want = reduced(m, x, offsets, empty)
    exclusive, after = way
    scan = scanned(m, x, offsets, empty, exclusive, after)
    r.array(f"w{key}", work)
    monoids.arrays_of(r, m, **{f"r{key}": monoids.unlike(want), f"s{key}": monoids.unlike(x)})
    sizes = (f"{n}{index}", f"{s}{index}", m.op)
    for _ in range(2):
        r.launch("tiles_reduced", f"{tiles}, {threads}", f"r{key}", f"x{key}", f"o{key}", f"e{key}", f"p{key}", f"w{key}", *sizes, str(threads), str(each))
        r.launch("tiles_scanned", f"{tiles}, {threads}", f"s{key}", f"x{key}", f"o{key}", f"e{key}", f"p{key}", f"w{key}", *sizes, *constants(way), str(threads), str(each))
    r.expect(f"r{key}", want)
    if len(x) and offsets[-1] > offsets[0]:
        r.expect(f"s{key}", scan)


def some_way(rng):
    return tuple(int(v) for v in rng.integers(0, 2, 2))


@row("segments: tiles")
def _(r, rng):
    way = some_way(rng)
    lengths = ([int(rng.integers(1, 3000))], [1] * int(rng.integers(1, 600)), [0] * int(rng.integers(1, 600)), [0] * int(rng.integers(2200, 4000)) + [2500], [0, 1], [1, 0], [0], None, None,
               # more tiles than a group has
               np.concatenate([some_lengths(rng, 500), [64 * 3 * 40], some_lengths(rng, 300)]))
    for number, given in enumerate(lengths):
        launch_tiles(r, rng, "then", str(number), way, given)


@row("segments: tiles of another kind")
def _(r, rng):
    way = some_way(rng)
    for number in range(3):
        launch_tiles(r, rng, "add_i8", str(number), way, threads=128, each=5)


@row("segments: teams")
def _(r, rng):
    """Segments that end at the borders between the teams of long segments, or one element beside them; a segment with
    nearly all elements between empty segments."""
    for number in range(8):
        key, chunk, (threads, team) = str(number), int(rng.choice([64, 128, 500])), ((64, 32), (64, 64), (32, 32))[number % 3]
        lengths = (None, [chunk] * 5, [chunk - 1, 1, chunk, 3 * chunk, 0, chunk + 1, 2 * chunk - 1, 0], [0] * 70 + [40 * chunk + 3] + [0] * 90, [1] * 300)[int(rng.integers(5))]
        m, x, offsets, empty = draw(r, rng, "add_i8", key, 3000, lengths)
        s, n = len(offsets) - 1, len(x)
        chunks, teams = -(-n // chunk), threads // team
        blocks = -(-chunks // teams) + -(-s // teams)
        want = reduced(m, x, offsets, empty)
        monoids.arrays_of(r, m, **{f"r{key}": monoids.unlike(want)})
        r.structs_of("pair_add", **{f"q{key}": np.zeros(chunks, pair_of(m))})
        r.array(f"w{key}", np.zeros(1 + chunks, np.uint64))
        for _ in range(2):
            r.launch("teams_reduced", f"{blocks}, {threads}", f"r{key}", f"x{key}", f"o{key}", f"e{key}", f"p{key}", f"q{key}", f"w{key}", f"{n}i32", f"{s}i32", f"{chunk}i32", f"{chunks}i32", m.op, str(threads), str(team),
                     str(int(rng.choice([1, 4, 5]))))
        r.expect(f"r{key}", want)


@row("segments: pieces", targets=("cpu",))
def _(r, rng):
    exclusive, after = some_way(rng)
    for number in range(10):
        key, name = str(number), ("add_i8", "then")[number % 2]
        m, x, offsets, empty = draw(r, rng, name, key)
        s, n, index, grid = len(offsets) - 1, len(x), KINDS[name][1], int(rng.choice([1, 2, 7, 40]))
        want = reduced(m, x, offsets, empty)
        scan = scanned(m, x, offsets, empty, exclusive, after)
        monoids.arrays_of(r, m, **{f"r{key}": monoids.unlike(want), f"s{key}": monoids.unlike(x)})
        r.structs_of(KINDS[name][0], **{f"w{key}": np.zeros(2 * grid, pair_of(m))})
        r.array(f"d{key}", np.zeros(1, "u4"))
        common, sizes = (f"x{key}", f"o{key}"), (f"{n}{index}", f"{s}{index}", m.op)
        for _ in range(2):
            r.launch("pieces_reduced", f"{grid}, 1", f"r{key}", *common, f"e{key}", f"p{key}", f"w{key}", f"d{key}", *sizes)
        r.launch("pieces_totals", f"{grid}, 1", *common, f"p{key}", f"w{key}", *sizes)
        r.launch("pieces_scanned", f"{grid}, 1", f"s{key}", *common, f"e{key}", f"p{key}", f"w{key}", *sizes, *constants((exclusive, after)))
        r.expect(f"r{key}", want)
        if offsets[-1] > offsets[0]:
            r.expect(f"s{key}", scan)


# ---- by key ----

COUNTED = {"add_i8": ("counted_add", "i4", "i32"), "then": ("counted_then", "i8", "i64")}


def draw_by_key(r, rng, name, key, n, way, equal):
    """(monoid, index type, dtype of the carried value). The row expects the results of the calls."""
    m, (struct, count, index) = monoids.BY_NAME[name], COUNTED[name]
    x, init = m.make(rng, n), m.make(rng, 1)
    keys = (np.cumsum(rng.random(n) < rng.choice([0, 0.01, 0.3, 1])) * rng.integers(1, 3)).astype("i4")
    apart = np.abs(np.diff(keys)) >= (1 if equal == "by_key_equal" else 2)
    offsets = np.concatenate([[0], np.flatnonzero(apart) + 1, [n]])
    sums = reduced(m, x, offsets, x)
    value = np.dtype(np.dtype(m.dtype).descr if m.kind else m.dtype, align=True)
    dtype = np.dtype([("count", count), ("value", value)], align=True)
    start = monoids.unlike(x)
    want = start.copy()
    want[:len(sums)] = sums
    monoids.arrays_of(r, m, **{f"x{key}": x, f"r{key}": start})
    r.expect(f"r{key}", want)
    want = ~keys
    want[:len(sums)] = keys[offsets[:-1]]
    r.arrays_of(**{f"k{key}": keys, f"q{key}": ~keys, f"n{key}": np.full(1, -1)})
    r.expect(f"q{key}", want)
    r.expect(f"n{key}", np.array([len(sums)]))
    r.structs_of(struct, **{f"p{key}": np.zeros(1, dtype)})
    monoids.arrays_of(r, m, **{f"i{key}": init, f"s{key}": monoids.unlike(x)})
    r.expect(f"s{key}", scanned(m, x, offsets, init, *way))
    return m, index, dtype


@row("by key: tiles")
def _(r, rng):
    ways, equals = [some_way(rng) for _ in range(2)], [str(rng.choice(["by_key_equal", "near"])) for _ in range(2)]
    for number, n in enumerate((1, 63, int(rng.integers(64, 3000)), 192 * int(rng.integers(1, 50)), 64 * 3 * 40)):
        key, name, threads, each = str(number), ("add_i8", "then")[number % 2], 64, 3
        way, equal = ways[number % 2], equals[number % 2]
        m, index, dtype = draw_by_key(r, rng, name, key, n, way, equal)
        tiles = -(-n // (threads * each))
        r.array(f"w{key}", np.zeros(16 + -(-dtype.itemsize // 4) * (tiles + -(-tiles // 32)), np.uint64))
        common = (f"x{key}", f"k{key}")
        for _ in range(2):
            r.launch("tiles_by_key", f"{tiles}, {threads}", f"r{key}", f"q{key}", f"n{key}", *common, f"p{key}", f"w{key}", f"{n}{index}", equal, m.op, str(threads), str(each))
            r.launch("tiles_scanned_by_key", f"{tiles}, {threads}", f"s{key}", *common, f"i{key}", f"p{key}", f"w{key}", f"{n}{index}", equal, m.op, *constants(way), str(threads), str(each))


@row("by key: pieces", targets=("cpu",))
def _(r, rng):
    ways, equals = [some_way(rng) for _ in range(2)], [str(rng.choice(["by_key_equal", "near"])) for _ in range(2)]
    for number, n in enumerate((1, 5, int(rng.integers(64, 3000)), int(rng.integers(64, 3000)))):
        key, name, grid = str(number), ("add_i8", "then")[number % 2], int(rng.choice([1, 2, 7, 40]))
        way, equal = ways[number % 2], equals[number % 2]
        m, index, dtype = draw_by_key(r, rng, name, key, n, way, equal)
        r.structs_of(COUNTED[name][0], **{f"w{key}": np.zeros(grid, dtype)})
        common = (f"x{key}", f"k{key}")
        if grid > 1:
            r.launch("pieces_by_key_totals", f"{grid}, 1", *common, f"p{key}", f"w{key}", f"{n}{index}", equal, m.op)
        r.launch("pieces_by_key", f"{grid}, 1", f"r{key}", f"q{key}", f"n{key}", *common, f"p{key}", f"w{key}", f"{n}{index}", equal, m.op)
        r.launch("pieces_scanned_by_key", f"{grid}, 1", f"s{key}", *common, f"i{key}", f"p{key}", f"w{key}", f"{n}{index}", equal, m.op, *constants(way))
