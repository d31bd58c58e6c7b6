import math

import numpy as np
from rows import row


@row("views that differ between threads live across a barrier")
def _(r, rng):
    n = 100
    a, b = rng.integers(0, 9, (4, 8)).astype(np.float32), rng.integers(0, 9, (4, 8)).astype(np.float32)
    t = np.arange(n)
    mine = [(a if i % 3 == 0 else b)[i % 4] for i in t]
    other = [(a if i % 2 == 0 else b)[(i + 1) % 4] for i in t]
    s = np.array([mine[i][i % 8] for i in t])
    r.arrays_of(out=np.zeros(n, np.float32), a=a, b=b)
    r.launch("views", f"1, {n}", "out", "a", "b")
    r.expect("out", np.array([s[(i + 1) % n] + mine[i][(i + 1) % 8] * 10 + other[i][i % 8] * 100 for i in t]))


@row("views and tuples made of what is loaded")
def _(r, rng):
    n = 100
    a, index = rng.integers(0, 50, (4, 2)).astype(np.int32), rng.integers(0, 4, n).astype(np.int32)
    r.arrays_of(out=np.zeros(n, np.int32), a=a, index=index)
    r.launch("loaded_views", f"1, {n}", "out", "a", "index")
    r.expect("out", a[index, 0] * 1000 + np.arange(n) + index + a[index, 1] * 7)


@row("a thread's own sum over grid_range, reduced in the block")
def _(r, rng):
    for n in (0, 1, 1000, 100003):
        x = rng.integers(1, 9, n).astype(np.float32)
        for k, configuration in enumerate(("1, 256", "3, 16x16", "5, 4x4x8", "7, 32")):
            r.arrays_of(**{f"x{n}_{k}": x, f"out{n}_{k}": np.array([3], np.float32)})
            r.launch("block_sums", configuration, f"out{n}_{k}", f"x{n}_{k}")
            r.expect(f"out{n}_{k}", np.array([3 + x.sum()]), unchanged=n == 0)


@row("grid_range in three dimensions visits every index once")
def _(r, rng):
    for shape in ((3, 4, 5), (1, 7, 33), (64, 2, 100), (0, 3, 4), (5, 1, 1)):
        i, j, k = np.indices(shape)
        for blocks, threads in ((1, 1), (3, 64), (100, 7)):
            name = "x".join(map(str, shape)) + f"_{blocks}"
            r.arrays_of(**{f"a{name}": np.zeros(shape, np.int32), f"b{name}": np.zeros(shape, np.int32), f"who{name}": np.zeros(blocks * threads, np.int32)})
            r.launch("range3", f"{blocks}, {threads}", f"a{name}")
            r.launch("range3_who", f"{blocks}, {threads}", f"b{name}", f"who{name}")
            r.expect(f"a{name}", i * 10000 + j * 100 + k, unchanged=0 in shape)
            r.expect(f"b{name}", i * 10000 + j * 100 + k, unchanged=0 in shape)
            r.verify([f"who{name}"], lambda who, size=i.size: np.testing.assert_equal(who.sum(), size), unchanged=0 in shape)


@row("a thread counts its own iterations")
def _(r, rng):
    for shape in ((30, 40), (1, 1000), (1000, 1)):
        for x, y in ((8, 4), (1, 5), (33, 1)):
            name = f"{shape[0]}_{x}"
            r.arrays_of(**{f"out{name}": np.zeros(shape, np.int32), f"who{name}": np.zeros((3, y, x), np.int32)})
            r.launch("range2_count", f"3, {x}x{y}", f"out{name}", f"who{name}")
            r.expect(f"out{name}", np.ones(shape))
            r.verify([f"who{name}"], lambda who, size=shape[0] * shape[1]: np.testing.assert_equal(who.sum(), size))


@row("block_range in two dimensions, in blocks of any shape")
def _(r, rng):
    i, j = np.indices((12, 9))
    for block in ("7", "32x2", "4x4x4", "1"):
        r.array(f"out{block}", np.zeros((2, 12, 9), np.int32))
        r.launch("block2", f"2, {block}", f"out{block}")
        r.expect(f"out{block}", np.stack([(11 - i) * 100 + (8 - j) + k for k in range(2)]))


@row("grid_range with a loaded extent; under a condition; in a loop")
def _(r, rng):
    r.arrays_of(out=np.zeros(1000, np.int32), n=np.array([700], np.int32), two=np.zeros(20, np.int32), nine=np.zeros(20, np.int32))
    r.launch("extents", "3, 64", "out", "n")
    r.launch("range_if", "3, 40", "two", 2)
    r.launch("range_if", "3, 40", "nine", 9)
    r.expect("out", np.arange(1000) < 700)
    r.expect("two", np.full(20, 30))
    r.expect("nine", np.full(20, 30) + (np.arange(20) < 9) * (np.arange(20) % 2))


@row("loops with barriers over segments of loaded bounds")
def _(r, rng):
    start, x = np.array([0, 5, 5, 300, 431], np.int32), rng.integers(0, 9, 431).astype(np.float32)
    r.arrays_of(out=np.zeros(4, np.float32), start=start, x=x)
    r.launch("segments", "4, 64", "out", "start", "x")
    r.expect("out", np.array([x[start[i]:start[i + 1]].sum() for i in range(4)]))


@row("functions that are not inlined know their thread; a trip count that a loop computes")
def _(r, rng):
    n = 50
    r.arrays_of(out=np.zeros(3 * n, np.int32), walked=np.zeros(40, np.int32), x=np.zeros(100, np.int32))
    r.launch("noinlined", f"3, {n}", "out")
    r.launch("uniform_walk", "1, 40", "walked", "x")
    r.expect("out", np.array([math.factorial((n - 1 - t) % 8) + b * 100 + t * 3 for b in range(3) for t in range(n)]))
    r.expect("walked", np.full(40, sum(i * 7 for i in range(7))))


@row("a name for each extent of a tuple")
def _(r, rng):
    out, tiles = rng.integers(0, 50, (7, 33)).astype(np.int32), rng.integers(0, 50, (3, 4, 65)).astype(np.int32)
    i, j = np.indices(out.shape)
    b, k, l = np.indices(tiles.shape)
    r.arrays_of(out=out, tiles=tiles, block=np.zeros(45, np.int32))
    r.launch("named_extents", "", "out", "tiles")
    r.launch("named_block_extents", "", "block")
    r.expect("out", out + i * 100 + j)
    r.expect("tiles", tiles + b * 10000 + k * 100 + l)
    r.expect("block", np.arange(45) // 9 * 10 + np.arange(45) % 9)
