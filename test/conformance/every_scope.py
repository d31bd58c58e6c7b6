import numpy as np
from rows import row


@row("every atomic for a block and for the system")
def _(r, rng):
    blocks, threads = 4, 96
    for name, dtype in (("u32", np.uint32), ("i32", np.int32), ("u64", np.uint64), ("i64", np.int64)):
        x = rng.integers(0, 2**20, (blocks, threads)).astype(dtype)
        y = rng.standard_normal((blocks, threads)).astype(np.float32)
        y[rng.random((blocks, threads)) < 0.2] = np.nan
        start = rng.integers(0, 2**20, (blocks, 13)).astype(dtype)
        start[:, 7:9] %= 7
        with np.errstate(over="ignore"):
            wanted = start.copy()
            wanted[:, 0] += x.sum(1, dtype=dtype)
            wanted[:, 1] -= x.sum(1, dtype=dtype)
            wanted[:, 2] = np.minimum(start[:, 2], x.min(1))
            wanted[:, 3] = np.maximum(start[:, 3], x.max(1))
            for column, operation in ((4, np.bitwise_and), (5, np.bitwise_or), (6, np.bitwise_xor)):
                wanted[:, column] = operation(start[:, column], operation.reduce(x, axis=1))
            wanted[:, 7] = (start[:, 7].astype(np.int64) + threads) % 7
            wanted[:, 8] = (start[:, 8].astype(np.int64) - threads) % 7
            wanted[:, 9:] = [6, 77, 77, 5]
        for scope in ("block", "system"):
            k = name + scope
            r.arrays_of(**{f"r{k}": start, f"f{k}": np.full((blocks, 2), np.nan, np.float32), f"x{k}": x.reshape(-1), f"y{k}": y.reshape(-1)})
            r.launch(f"for_{scope}", f"{blocks}, {threads}", f"r{k}", f"f{k}", f"x{k}", f"y{k}")
            r.expect(f"r{k}", wanted)
            r.expect(f"f{k}", np.stack([np.nanmin(y, 1), np.nanmax(y, 1)], 1))


@row("sizeof and nan")
def _(r, rng):
    for dtype in (np.float32, np.float64):
        k = np.dtype(dtype).name
        r.arrays_of(**{f"x{k}": rng.standard_normal(1).astype(dtype), f"o{k}": np.zeros(4, np.int32)})
        r.launch("types", "1, 1", f"o{k}", f"x{k}")
        r.expect(f"o{k}", [8, np.dtype(dtype).itemsize, 1, 1])
