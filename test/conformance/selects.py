"""Rows for selects.kir: each compaction with tiles, which both targets run, and on the CPU with chunks."""
import monoids
import numpy as np
from rows import row, some

# name of the monoid whose elements are used -> (name of the predicate, its function, name of the equality, the function
# that returns the compared values).
ODD = ("odd", lambda x: x & 1 != 0, "equal", lambda x: x)
BIG = ("big", lambda x: x > 0, "equal", lambda x: x)
WAYS = {
    "add_i1": ODD, "add_u2": ODD, "add_i4": ODD, "add_u8": ODD, "add_f2": BIG, "add_f4": BIG, "last_f8": BIG,
    "last_tagged": ("tagged_is", lambda x: x["tag"] != 0, "tagged_same", lambda x: x["tag"]),
    "then": ("affine_is", lambda x: x["a"] > x["b"], "affine_same", lambda x: x["applied"]),
}


def runs(rng, x, key):
    """Repeats each element of x a few times. Returns the result and the starts of the runs of equal keys."""
    x = np.repeat(x, rng.choice([1, 1, 2, 3, 40], len(x)))[:len(x)]
    keys = key(x)
    return x, np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def random_index(rng):
    return rng.choice(["i32", "i64"])


def launch(r, rng, kernel, name, n, outputs, inputs, functions, words, tile, index=None):
    """Runs with tiles of (threads, each, lanes, chunks), or with chunks of `tile` elements. Takes the results, the
    input arrays, the counted elements, the funcs and the const parameters."""
    index = f"{n}{index or random_index(rng)}"
    r.array(f"c{name}", np.full(1, -1))
    if isinstance(tile, int):
        r.array(f"w{name}", np.zeros(2 * tile, np.int64))
        pieces = {"": "pieces", "nonzero": "nonzero_pieces", "unique": "unique_pieces", "runs": "runs_pieces"}[kernel]
        r.launch(pieces.replace("pieces", "totals"), f"{tile}, 1", inputs[0], f"w{name}", index, *functions[:1])
        r.launch(pieces, f"{tile}, 1", *outputs, f"c{name}", *inputs, f"w{name}", index, *functions)
        return
    threads, each, lanes, chunks = tile
    tiles = max(1, -(-n // (threads * each * chunks)))
    words = words * (2 if index.endswith("i64") else 1)
    r.array(f"w{name}", np.zeros(16 + words * (tiles + -(-tiles // 32)), np.uint64))
    for _ in range(2):
        r.launch(f"{kernel}_tiles" if kernel else "tiles", f"{tiles}, {threads}", *outputs, f"c{name}", *inputs, f"w{name}", index, *functions, *(str(v) for v in tile))


def random_tile(rng):
    lanes = int(rng.choice([1, 2, 4]))
    return int(rng.choice([32, 64, 128])), lanes * int(rng.integers(1, 8)), lanes, int(rng.integers(1, 4))


def filled(values, size):
    """Creates an array for results. Its first elements become `values`, and the others must not change."""
    whole = np.zeros(size, values.dtype)
    whole[len(values):] = 7 if values.dtype.kind in "iuf" else np.zeros(1, values.dtype)[0]
    expected = whole.copy()
    expected[:len(values)] = values
    if len(values):
        whole[:len(values)] = monoids.unlike(values)
    return whole, expected


def results(r, kind, n, **values):
    for name, v in values.items():
        start, expected = filled(v, n)
        if kind:
            r.structs_of(kind, **{name: start})
        else:
            r.array(name, start)
        r.expect(name, expected, unchanged=len(v) == 0)


def select(r, rng, number, name, n, tile):
    m = monoids.BY_NAME[name]
    pred, is_kept, _, _ = WAYS[name]
    x = m.make(rng, n)
    kept = is_kept(x)
    rest = bool(rng.integers(2)) and 0 < kept.sum() < n
    key = f"{number}"
    monoids.arrays_of(r, m, **{f"x{key}": x})
    results(r, m.kind, n, **{f"r{key}": x[kept]})
    if rest:
        results(r, m.kind, n, **{f"s{key}": x[~kept]})
    launch(r, rng, "", key, n, [f"r{key}", f"s{key}" if rest else f"r{key}"], [f"x{key}"], [pred, str(rest).lower()], 1, tile)
    r.expect(f"c{key}", [kept.sum()])


def unique(r, rng, number, name, n, tile):
    m = monoids.BY_NAME[name]
    _, _, same, key_of = WAYS[name]
    x, at = runs(rng, m.make(rng, n), key_of)
    y = rng.standard_normal(n)
    key = f"{number}"
    monoids.arrays_of(r, m, **{f"x{key}": x})
    r.array(f"y{key}", y)
    results(r, m.kind, n, **{f"r{key}": x[at]})
    results(r, None, n, **{f"s{key}": y[at]})
    launch(r, rng, "unique", key, n, [f"r{key}", f"s{key}"], [f"x{key}", f"y{key}"], [same], 1, tile)
    r.expect(f"c{key}", [len(at)])


def lengths(r, rng, number, name, n, tile):
    m = monoids.BY_NAME[name]
    _, _, same, key_of = WAYS[name]
    x, at = runs(rng, m.make(rng, n), key_of)
    key = f"{number}"
    monoids.arrays_of(r, m, **{f"x{key}": x})
    results(r, m.kind, n, **{f"r{key}": x[at]})
    results(r, None, n, **{f"s{key}": at, f"l{key}": np.diff(np.append(at, n))})
    launch(r, rng, "runs", key, n, [f"r{key}", f"s{key}", f"l{key}"], [f"x{key}"], [same], 2, tile)
    r.expect(f"c{key}", [len(at)])


def nonzero(r, rng, number, n, tile, share, index=None):
    flags = (rng.random(n) < share) * rng.integers(1, 256, n)
    key = f"{number}"
    r.array(f"x{key}", flags.astype(np.uint8))
    results(r, None, n, **{f"r{key}": np.flatnonzero(flags)})
    launch(r, rng, "nonzero", key, n, [f"r{key}"], [f"x{key}"], [], 1, tile, index)
    r.expect(f"c{key}", [np.count_nonzero(flags)])


def sizes(rng, tile):
    count = tile[0] * tile[1] * tile[3] if isinstance(tile, tuple) else 100
    return int(rng.choice([1, 2, 31, 33, count - 1, count, count + 1])) if rng.random() < 0.4 else int(rng.integers(1, 8 * count))


def every(r, rng, ways):
    for number, name in enumerate(some(rng, WAYS, 5)):
        tile = ways()
        (select, unique, lengths)[rng.integers(3)](r, rng, number, name, sizes(rng, tile), tile)
    tile, index = ways(), random_index(rng)  # one compilation for all shares of the test
    for number, share in enumerate((0, 0.01, 0.5, 1)):
        nonzero(r, rng, f"n{number}", sizes(rng, tile), tile, share, index)


@row("select: tiles of every kind of element")
def _(r, rng):
    every(r, rng, lambda: random_tile(rng))


@row("select: many tiles")
def _(r, rng):
    for number, do in enumerate((select, unique, lengths)):
        tile = (32, 4, 4, 1 + number % 2)
        do(r, rng, number, "add_i4", int(rng.integers(70, 200)) * 256 + 5, tile)
    nonzero(r, rng, "n", 128 * 100, (32, 4, 2, 1), 0.001)


@row("select: pieces of every kind of element", targets=("cpu",))
def _(r, rng):
    every(r, rng, lambda: int(rng.choice([1, 2, 7])))
