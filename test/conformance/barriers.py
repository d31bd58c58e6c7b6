import numpy as np
from rows import row, wrap


@row("a thread returns before a barrier")
def _(r, rng):
    n = int(rng.integers(1, 50))
    r.array("out", np.full(150, -1, np.int32))
    r.launch("early_return", "3, 50", "out", f"{n}")
    t = np.tile(np.arange(50), 3)
    r.expect("out", np.where(t < n, n - 1 - t, -1))


@row("threads leave one after the other between barriers")
def _(r, rng):
    r.array("out", np.zeros(50, np.int32))
    r.launch("leave_in_loop", "1, 50", "out")
    t = np.arange(50)
    s, acc, out = np.zeros(50, np.int64), np.zeros(50, np.int64), np.zeros(50, np.int64)
    for k in range(6):
        alive = t % 6 >= k
        s[alive] = t[alive] * 10 + k
        acc[alive] += s[(t[alive] + 1) % 50]
        out[t % 6 == k] = acc[t % 6 == k]
    r.expect("out", out)


@row("a barrier that only the threads still in the kernel reach")
def _(r, rng):
    x = rng.integers(-100, 100, 60).astype(np.int32)
    for n in (60, 33, 20, 1):
        r.arrays_of(**{f"x{n}": x, f"out{n}": np.zeros(60, np.int32)})
        r.launch("barrier_in_part", "1, 60", f"out{n}", f"x{n}", n)
        r.expect(f"out{n}", np.concatenate([np.roll(x[:n], -1), -x[n:]]))


@row("blocks of any size and shape")
def _(r, rng):
    for block in ("1", "2", "31", "33", "50", "100", "1000", "1024", "7x9", "5x3x11"):
        n = int(np.prod([int(d) for d in block.split("x")]))
        x = rng.integers(-2**40, 2**40, (2, n))
        r.arrays_of(**{f"x{block}": x.reshape(-1), f"o{block}": np.zeros(2 * n, np.int64)})
        r.launch("sum_of_block", f"2, {block}", f"o{block}", f"x{block}")
        r.expect(f"o{block}", np.repeat(x.sum(axis=1), n))


@row("a barrier in a loop whose trip count is uniform but not constant")
def _(r, rng):
    x = rng.integers(-100, 100, 40).astype(np.int32)
    for n in (0, 1, 13):
        r.arrays_of(**{f"x{n}": x, f"o{n}": np.zeros(40, np.int32)})
        r.launch("barrier_in_loop", "1, 40", f"o{n}", f"x{n}", f"{n}")
        r.expect(f"o{n}", np.roll(x, n) + sum(range(n)))


@row("a barrier in a loop whose condition is in shared memory")
def _(r, rng):
    r.array("out", np.full(5 * 37, -1, np.int32))
    r.launch("barrier_in_while", "5, 37", "out")
    r.expect("out", np.repeat(np.arange(5) * 3, 37))


@row("a barrier under a condition that is uniform in the block")
def _(r, rng):
    x = rng.integers(-100, 100, (6, 36)).astype(np.int32)
    mode = rng.integers(0, 2, 6).astype(np.int32)
    mode[:2] = [0, 1]
    r.arrays_of(x=x.reshape(-1), mode=mode, out=np.zeros(216, np.int32))
    r.launch("barrier_under_condition", "6, 36", "out", "x", "mode")
    r.expect("out", np.where(mode[:, None] > 0, np.roll(x[:, ::-1], -1, axis=1), 2 * x).reshape(-1))


@row("break and continue around barriers")
def _(r, rng):
    x = rng.integers(-3, 4, 33).astype(np.int32)
    r.arrays_of(x=x, out=np.full(33, np.iinfo(np.int32).min, np.int32))
    r.launch("break_and_continue", "1, 33", "out", "x", "7")
    s, acc, k = x.astype(np.int64), 0, 0
    while True:
        v = np.roll(s, -(k % 33))
        k += 1
        if k % 3 == 0:
            continue
        s = s + v
        acc += s[0]
        if k >= 7:
            break
    r.expect("out", np.full(33, acc))


@row("values and local arrays that live across several barriers")
def _(r, rng):
    for n in (1, 32, 37, 48):
        x = rng.standard_normal(n)
        r.arrays_of(**{f"x{n}": x, f"o{n}": np.zeros(n)})
        r.launch("live_across", f"1, {n}", f"o{n}", f"x{n}")
        b = np.roll(x, -1)
        c = np.roll(x * b, -2)
        d = np.abs(c) + np.roll(c + np.abs(c), -3)
        mine = np.stack([x, b, c - x, d], axis=1)
        t = np.arange(n)
        total = sum(mine[t, (k + t) % 4] * (k + 1) for k in range(4))
        r.expect(f"o{n}", x + 2 * b + 3 * c + 5 * d + total, rtol=1e-12, atol=1e-12)


@row("39 shared arrays of device functions and of their caller")
def _(r, rng):
    x, y = rng.integers(-100, 100, 45).astype(np.int32), rng.standard_normal(45)
    r.arrays_of(x=x, y=y, out=np.zeros((45, 5)))
    r.launch("functions_with_shared", "1, 45", "out", "x", "y")
    a, b = np.roll(x, -1), np.roll(y, -1)
    r.expect("out", np.stack([a, b, np.full(45, a[-1]), np.full(45, y[-1]), x[::-1] + 1000], axis=1))


@row("global memory exchanged between threads across a barrier")
def _(r, rng):
    for n in (2, 32, 70):
        r.arrays_of(**{f"a{n}": np.zeros(n, np.int32), f"b{n}": np.zeros(n, np.int32), f"buf{n}": np.array([3], np.int32)})
        r.launch("exchange", f"1, {n}", f"a{n}", f"b{n}", f"buf{n}")
        r.expect(f"a{n}", np.full(n, 3))
        r.expect(f"b{n}", np.full(n, 7))
    x = rng.integers(-100, 100, 70).astype(np.int32)
    r.array("x", x)
    r.launch("rotate_in_global", "1, 70", "x", "5")
    r.expect("x", np.roll(x, -5) + sum(range(5)))


@row("barriers with a result in conditions and expressions")
def _(r, rng):
    x = rng.integers(0, 7, 72).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros((72, 2), np.int32))
    r.launch("counting_condition", "1, 72", "out", "x")
    r.expect("out", np.tile([x.max(), x.sum() + x.max()], (72, 1)))


@row("a tile in two dimensions, in three blocks")
def _(r, rng):
    x = rng.integers(-100, 100, (3, 7, 11)).astype(np.float32)
    r.arrays_of(x=x, out=np.zeros_like(x))
    r.launch("reverse_tile", "3, 11x7", "out", "x")
    r.expect("out", x[:, ::-1, ::-1] + x[:, -1:, -1:])


@row("shuffles and barriers in one loop")
def _(r, rng):
    x = rng.integers(-10**6, 10**6, (9, 160)).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(9, np.int32))
    r.launch("block_maximum", "1, 160", "out", "x")
    r.expect("out", x.max(axis=1))


@row("barriers in nested loops under a condition")
def _(r, rng):
    x = rng.integers(-100, 100, 30).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(30, np.int32))
    r.launch("nested_loops", "1, 30", "out", "x", "4", "6")
    s, acc = x.astype(np.int64), np.zeros(30, np.int64)
    for i in range(4):
        for j in range(i, 6):
            if j % 2 == 0:
                s = np.roll(s, -(i + j)) + j
            acc += s
        acc *= 2
    r.expect("out", wrap(acc, np.int32))
