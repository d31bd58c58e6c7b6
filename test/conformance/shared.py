import numpy as np
from rows import row


@row("32, 33 static shared memory")
def _(r, rng):
    r.arrays_of(a=np.zeros(100, np.int32), b=np.zeros((10, 20), np.float32))
    r.launch("simple_smem", "1, 100", "a")
    r.launch("coop_smem2d", "1, 10x20", "b")
    r.expect("a", np.arange(100))
    i, j = np.meshgrid(np.arange(10), np.arange(20), indexing="ij")
    r.expect("b", (i + 1).astype(np.float32) / (j + 1).astype(np.float32))


@row("34 dynamic shared memory, beside static")
def _(r, rng):
    r.arrays_of(a=np.zeros(50, np.float32), b=np.zeros((33, 2), np.int32))
    r.launch("dynamic", "1, 50, 200", "a")
    r.launch("dynamic_and_static", "1, 33, 132", "b")
    r.expect("a", 2 * np.arange(50))
    t = np.arange(33)[::-1]
    r.expect("b", np.stack([t + 1, t + 1000], axis=1))


@row("35 fences")
def _(r, rng):
    r.array("out", np.zeros(3, np.int32))
    r.launch("fences", "1, 1", "out")
    r.expect("out", [444, 444, 444])


@row("36, 37 barriers that count")
def _(r, rng):
    for dtype in (np.int32, np.int16, np.int64):
        name = np.dtype(dtype).name
        holes = np.ones(72, dtype)
        holes[[31, 42]] = 0
        for label, x in (("holes", holes), ("ones", np.ones(100, dtype)), ("zeros", np.zeros(100, dtype)), ("one", np.eye(1, 100, 57, dtype)[0]), ("some", rng.integers(0, 2, 45).astype(dtype))):
            names = {kind: f"{kind}_{label}_{name}" for kind in ("x", "count", "both", "either")}
            n = len(x)
            r.arrays_of(**{names["x"]: x, **{names[kind]: np.full(n, -1, np.int32) for kind in ("count", "both", "either")}})
            r.launch("counting", f"1, {n}", names["count"], names["both"], names["either"], names["x"])
            r.expect(names["count"], np.full(n, np.count_nonzero(x)))
            r.expect(names["both"], np.full(n, x.all()))
            r.expect(names["either"], np.full(n, x.any()))


@row("38 sizes, 43 alignment")
def _(r, rng):
    x = rng.integers(0, 100, 16).astype(np.int32)
    r.arrays_of(sizes=np.zeros(6, np.int32), x=x, out=np.zeros(16, np.int32))
    r.launch("sizes", "1, 1", "sizes")
    r.launch("aligned", "1, 16", "out", "x")
    r.expect("sizes", [2, 6, 24, 3, 3, 2])
    t = np.arange(16)
    r.expect("out", t % 3 * 2 + (t % 5 + x[t % 5]) + t % 7 + t)


@row("44 reduction in shared memory")
def _(r, rng):
    r.array("x", np.arange(1024, dtype=np.int32))
    r.launch("tree_sum", "1, 1024", "x")
    r.expect("x", np.concatenate([[523776], np.arange(1, 1024)]))


@row("89 local memory; types of shared arrays")
def _(r, rng):
    x = rng.integers(-100, 100, 70).astype(np.int32)
    r.arrays_of(a=np.zeros(1000, np.int32), i=np.arange(1000, dtype=np.int32), b=np.zeros(1000), f=rng.standard_normal(1000), x=x, c=np.zeros(70, np.int32), d=np.zeros(20))
    r.launch("copy_local", "1, 1", "a", "i")
    r.launch("copy_local", "1, 1", "b", "f")
    r.launch("local_per_thread", "2, 35", "c", "x")
    r.launch("shared_scalars_of_types", "1, 20", "d")
    r.expect("a", r.arrays["i"])
    r.expect("b", r.arrays["f"])
    t = np.arange(70)
    r.expect("c", sum(x.astype(np.int64) * (k % 5 * 3 + (k + t) % 3) * k for k in range(15)))
    t = np.arange(20)
    r.expect("d", (250 + t % 7) % 256 + t % 3 / 4 - 100 * (t % 5))


@row("several arrays of the launch's own size")
def _(r, rng):
    n = 32
    r.array("out", np.zeros((n, 3)))
    r.launch("own_arrays", f"1, {n}, {n * 12}", "out", str(n))
    other = n - 1 - np.arange(n)
    r.expect("out", np.stack([4 * (other + 1) % 256, other / 2, np.full(n, 3 * n * 10000 + 12 * n + 1.5 * n / 1000)], axis=1))


@row("shared memory of funcs, sized by the block of the kernel")
def _(r, rng):
    x = rng.integers(-99, 99, 96 * 64).astype(np.int32)
    r.arrays_of(x=x, a=np.zeros(64, np.int32), b=np.zeros(48, np.int32), c=np.zeros(192, np.int32))
    r.launch("block_sums", "64, 32x3", "a", "x")
    r.launch("block_sums_of", "48, 128", "b", "x", "128")
    r.launch("block_sums_of", "192, 32", "c", "x", "32")
    r.expect("a", x.reshape(64, -1).sum(1) + 3000)
    r.expect("b", x.reshape(48, -1).sum(1) + 1000)
    r.expect("c", x.reshape(192, -1).sum(1) + 1000)
