"""Rows for segment_sorts.kir."""
import numpy as np
from rows import row


def lengths_of(rng, tile):
    """Segments with fewer elements than a tile, exactly a tile, one more, and many tiles; empty segments; a segment
    that ends at the end of a tile."""
    ways = ([tile, tile + 1, tile - 1, 1, 0, 2 * tile], [0, 0, 7 * tile + 3, 0, 5], [3, tile, tile, 0, tile - 3, 4 * tile, 1], rng.integers(0, 2 * tile, 12), rng.integers(0, 5, 60),
            [tile + 1] * 5, [5 * tile], [2 * tile - 1, 2, 2 * tile - 1], [0])
    return np.asarray(ways[int(rng.integers(len(ways)))], "i8")


@row("few segments")
def _(r, rng):
    for number in range(8):
        key, (threads, each) = str(number), ((64, 3), (32, 5), (64, 1))[number % 3]
        tile = threads * each
        before, behind = (int(rng.integers(0, tile)) * int(rng.integers(0, 2)) for _ in range(2))
        offsets = before + np.concatenate([[0], np.cumsum(lengths_of(rng, tile))])
        n = max(int(offsets[-1]) + behind, 1)
        x = rng.integers(0, int(rng.choice([20, 1000, 2**31])), n).astype("i4")
        at = np.arange(n)
        for a, b in zip(offsets[:-1], offsets[1:]):
            at[a:b] = a + np.argsort(x[a:b] // 10, kind="stable")
        tiles = -(-n // tile)
        in_place = bool(rng.random() < 0.3)
        r.arrays_of(**{f"x{key}": x, f"v{key}": np.arange(n), f"o{key}": offsets, f"h{key}": np.zeros(n // 32 + 1, "u4"), f"a{key}": ~x, f"b{key}": np.zeros(n, "i8")})
        r.arrays_of(**{f"r{key}": x if in_place else ~x, f"s{key}": np.arange(n) if in_place else np.full(n, -1)})
        given = (f"r{key}", f"s{key}") if in_place else (f"x{key}", f"v{key}")
        shape = (str(threads), str(each))
        r.launch("parts", f"{tiles + len(offsets) - 1}, {threads}", f"r{key}", f"s{key}", *given, f"o{key}", f"h{key}", f"a{key}", f"b{key}", *shape)
        r.launch("ranks", f"{tiles * each}, {threads}", f"r{key}", f"s{key}", f"{n}i32", f"o{key}", f"a{key}", f"b{key}", *shape)
        r.expect(f"r{key}", x[at], unchanged=in_place and np.array_equal(x[at], x))
        r.expect(f"s{key}", at, unchanged=in_place and np.array_equal(at, np.arange(n)))
        r.expect(f"h{key}", np.zeros(n // 32 + 1, "u4"), unchanged=True)
