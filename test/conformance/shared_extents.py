import numpy as np
from rows import row


@row("run-time extents: from blockDim")
def _(r, rng):
    for label, shape, block in (("a", (37, 50), 8), ("b", (64, 64), 16), ("c", (5, 3), 4)):
        x = rng.standard_normal(shape).astype(np.float32)
        r.array("x" + label, x)
        r.array("r" + label, np.zeros(shape[::-1], np.float32))
        grid = "x".join(str(-(-n // block)) for n in shape[::-1])
        r.launch("transposed", f"{grid}, {block}x{block}", "r" + label, "x" + label)
        r.expect("r" + label, x.T)


@row("run-time extents: several arrays, and the launch's own")
def _(r, rng):
    for n, bytes_ in ((8, 10), (31, 64), (100, 2)):
        name = f"r{n}"
        r.array(name, np.zeros((n, 8), np.int32))
        r.launch("several", f"1, {n}, {bytes_}", name, str(n))
        i = np.arange(n)
        j = (i + 1) % n
        own = bytes_ // 2
        columns = [j.astype(np.uint8), j * 10 + 2, j % 4, 7 * j, 100 + i % own, 0 * i + own, 0 * i + 2 * n * 100 + 3, 0 * i + 21]
        r.expect(name, np.stack(columns, axis=1))


@row("run-time extents: handed to funcs")
def _(r, rng):
    x = rng.integers(0, 50, (9, 6)).astype(np.float32)
    r.arrays_of(x=x, out=np.zeros((9, 2), np.float32))
    r.launch("handed", "1, 9", "out", "x")
    tile = x[:, :1] + np.arange(5, dtype=np.float32)
    r.expect("out", np.stack([tile.sum(axis=1)[::-1], np.full(9, tile[:, -1].sum())], axis=1))


@row("static shared arrays of 80 KiB")
def _(r, rng):
    r.array("out", np.zeros(64, np.float32))
    r.launch("large", "2, 64, 256", "out")
    r.expect("out", 6 * np.arange(64)[::-1] + 64.5)


@row("run-time extents: none")
def _(r, rng):
    r.arrays_of(out=np.ones(4, np.int32), some=np.ones(4, np.int32))
    r.launch("empty", "1, 4", "out", "0")
    r.launch("empty", "1, 4", "some", "3")
    r.expect("out", np.zeros(4))
    r.expect("some", np.full(4, 12))
