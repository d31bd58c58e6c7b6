import numpy as np

from rows import row


@row("inline PTX: sums with their carries, stores through a pointer")
def _(r, rng):
    n = 1000
    x, y = (rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(2))
    z = rng.standard_normal(n).astype(np.float32)
    r.arrays_of(x=x, y=y, low=np.zeros(n, np.uint32), high=np.zeros(n, np.uint32), z=z, s=np.zeros(n, np.float32))
    r.launch("carries", "4, 128", "low", "high", "x", "y")
    r.launch("stores", "4, 128", "s", "z")
    r.expect("low", x + y)
    r.expect("high", (x.astype(np.uint64) + y >> 32).astype(np.uint32))
    r.expect("s", z)


@row("inline PTX with several results")
def _(r, rng):
    n = 1000
    x, y = (rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(2))
    z = (rng.integers(-1000, 1000, n) / 4).astype(np.float32)
    r.arrays_of(x=x, y=y, low=np.zeros(n, np.uint32), high=np.zeros(n, np.uint32), z=z, s=np.zeros(n))
    r.launch("pairs", "4, 128", "low", "high", "x", "y")
    r.launch("mixed", "4, 128", "s", "z")
    r.expect("low", x + y)
    r.expect("high", (x.astype(np.uint64) + y >> 32).astype(np.uint32))
    r.expect("s", z.astype(np.float64) + np.rint(z) - z)
