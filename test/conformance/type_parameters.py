import numpy as np
from rows import row


@row("sums in types that the caller names")
def _(r, rng):
    for k, dtype in enumerate((np.int32, np.float32, np.uint8)):
        x = rng.integers(0, 200, 96).astype(dtype)
        names = [f"{name}{k}" for name in ("wide", "narrow", "x")]
        r.arrays_of(**dict(zip(names, (np.zeros(3), np.zeros(3, np.uint8), x))))
        r.launch("sums", "3, 32", *names)
        r.expect(names[0], x.reshape(3, 32).sum(axis=1, dtype=np.float64))
        r.expect(names[1], x.reshape(3, 32).astype(np.int64).sum(axis=1).astype(np.uint8))


@row("types handed on, bound and converted to")
def _(r, rng):
    x = rng.integers(0, 100000, 50).astype(np.int32)
    r.arrays_of(out=np.zeros((50, 5), np.int32), x=x)
    r.launch("casts", "2, 32", "out", "x")
    before = np.concatenate([[0], np.cumsum(x)[:-1]]).astype(np.int16)
    r.expect("out", np.stack([(2 * x).astype(np.uint8), x.astype(np.int8), x, x.astype(np.uint16), before], axis=1).astype(np.int32))


@row("questions about types")
def _(r, rng):
    for k, (dtype, own) in enumerate(((np.int16, 12), (np.float32, 1), (np.uint64, 18))):
        r.arrays_of(**{f"out{k}": np.zeros(10, np.int32), f"x{k}": np.zeros(4, dtype)})
        r.launch("questions", "1, 1", f"out{k}", f"x{k}")
        size = np.dtype(dtype).itemsize
        r.expect(f"out{k}", [1, own, 100, 1000, 2000, 3000, 2000, 808, 1 + 100 * size, 3000])


@row("vectors of a type")
def _(r, rng):
    x = rng.integers(-500, 500, 64).astype(np.float32)
    r.arrays_of(out=np.zeros((16, 2), np.float32), x=x)
    r.launch("lanes", "2, 8", "out", "x")
    rows = x.reshape(16, 4)
    r.expect("out", np.stack([rows[:, 0] + rows[:, 3] + 2, rows[:, 0] - rows[:, 1]], axis=1))
