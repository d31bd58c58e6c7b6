import numpy as np
from rows import row, wrap

TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


def values(rng, dtype, count):
    """Small integers, whose sums are exact in any order."""
    return rng.integers(0 if np.dtype(dtype).kind == "u" else -100, 100, count).astype(dtype)


@row("inc and dec: every old value as often as it must be")
def _(r, rng):
    for name in ("i32", "u32", "i64", "u64"):
        dtype = TYPES[name]
        r.arrays_of(**{f"up{name}": np.full(1, 5, dtype), f"down{name}": np.full(1, 99, dtype), f"old{name}": np.zeros((2, 640), dtype)})
        r.launch("counters", "5, 128", f"up{name}", f"down{name}", f"old{name}")
        up, down, ups, downs = 5, 99, [], []
        for _ in range(640):
            ups.append(up)
            downs.append(down)
            up = 0 if up >= 6 else up + 1
            down = 6 if down == 0 or down > 6 else down - 1
        r.expect(f"up{name}", [up])
        r.expect(f"down{name}", [down])
        r.verify([f"old{name}"], lambda old, ups=ups, downs=downs: (np.testing.assert_array_equal(np.sort(old[0]), np.sort(ups)), np.testing.assert_array_equal(np.sort(old[1]), np.sort(downs))))
    r.array("shared", np.zeros(2, np.int64))
    r.launch("counters_shared", "1, 64", "shared")
    # 9 wraps to 0, then 63 steps modulo 5 follow; 64 steps down from 3 modulo 5
    r.expect("shared", [63 % 5, (3 - 64) % 5])


@row("53 nanmin and nanmax: the number, whichever side the NaN is on")
def _(r, rng):
    for name in ("f32", "f64"):
        dtype = TYPES[name]
        x = rng.standard_normal(256).astype(dtype)
        x[rng.integers(0, 256, 60)] = np.nan
        r.arrays_of(**{f"x{name}": x, f"low{name}": np.full(1, np.nan, dtype), f"high{name}": np.full(1, np.nan, dtype)})
        r.launch("nan_extremes", "4, 64", f"low{name}", f"high{name}", f"x{name}")
        r.expect(f"low{name}", [np.nanmin(x)])
        r.expect(f"high{name}", [np.nanmax(x)])


@row("add of f16 and bf16")
def _(r, rng):
    x = rng.integers(-3, 4, 192).astype(np.float16)
    x[64] = 3 if x.sum() >= x[64] else -3  # the sum is not 0
    ones = np.ones(1024, np.float16)
    r.arrays_of(x=x, sum=np.zeros(1, np.float16), less=np.zeros(1, np.float16), old=np.zeros(192, np.float16), ones=ones, count=np.zeros(1, np.float16), tickets=np.zeros(1024, np.float16),
                negative=np.zeros(1, np.float16), bsum=np.full(2, np.nan, np.float32))
    r.launch("small_sums", "3, 64", "sum", "less", "old", "x")
    r.launch("small_sums", "4, 256", "count", "negative", "tickets", "ones")
    r.launch("bf16_sum", "1, 64", "bsum", "x")
    r.expect("sum", [x.astype(np.int64).sum()])
    r.expect("less", [-x.astype(np.int64).sum()])
    r.expect("count", [1024])
    r.expect("negative", [-1024])
    r.verify(["tickets"], lambda t: np.testing.assert_array_equal(np.sort(t), np.arange(1024)))
    part = x[:64].astype(np.int64).sum()
    r.expect("bsum", [part, -part])


@row("block and system scope, memory orders")
def _(r, rng):
    for name, dtype in TYPES.items():
        for kernel in ("block_scope", "system_scope"):
            x = values(rng, dtype, 256)
            start = np.zeros((4, 6), dtype)
            start[:, 1] = 30000 if name[0] == "u" else 0
            start[:, 2] = 1000
            key = f"{kernel}_{name}"
            r.arrays_of(**{f"x{key}": x, f"r{key}": start, f"old{key}": np.zeros(256, dtype)})
            r.launch(kernel, "4, 64", f"r{key}", f"old{key}", f"x{key}")
            w = x.reshape(4, 64)
            wide = w.astype(np.float64).sum(axis=1)

            def check(got, old, w=w, wide=wide, start=start):
                np.testing.assert_array_equal(got[:, :4].astype(np.float64), np.stack([wide, start[:, 1].astype(np.float64) - wide, w.min(axis=1), w.max(axis=1).clip(0)], axis=1))
                np.testing.assert_array_equal(got[:, 5], np.full(4, 17))
                for b in range(4):
                    # every exchanged value is returned once, except the one that remains in memory; the first returned
                    # value was 0
                    np.testing.assert_array_equal(np.sort(np.append(old[b * 64:b * 64 + 64], got[b, 4])), np.sort(np.append(w[b], 0)))

            r.verify([f"r{key}", f"old{key}"], check)
    for name in ("i32", "u32", "i64", "u64"):
        dtype = TYPES[name]
        x = rng.integers(0, 1 << 31, 256).astype(dtype)
        start = np.zeros((4, 5), dtype)
        start[:, 0] = (1 << 31) - 1
        start[:, 4] = 7
        w = x.reshape(4, 64)
        r.arrays_of(**{f"x{name}": x, f"b{name}": start})
        r.launch("bits", "4, 64", f"b{name}", f"x{name}")
        r.expect(f"b{name}", np.stack([np.bitwise_and.reduce(w, axis=1) & start[:, 0], np.bitwise_or.reduce(w, axis=1), np.bitwise_xor.reduce(w, axis=1), np.full(4, 64), np.full(4, 7 - 64 + 1001)], axis=1))


@row("a message from every block to the last one")
def _(r, rng):
    for name in ("i32", "f64"):
        x = values(rng, TYPES[name], 50)
        r.arrays_of(**{f"x{name}": x, f"p{name}": np.zeros(50, TYPES[name]), f"a{name}": np.zeros(1, np.int32), f"o{name}": np.full(1, -1, TYPES[name])})
        r.launch("last_block", "50, 32", f"o{name}", f"p{name}", f"a{name}", f"x{name}")
        r.expect(f"o{name}", [2 * x.sum()])


@row("loads and stores")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = values(rng, dtype, 64)
        r.arrays_of(**{f"x{name}": x, f"o{name}": np.zeros((3, 64), dtype)})
        r.launch("loads_and_stores", "1, 64", f"o{name}", f"x{name}")
        r.expect(f"o{name}", np.stack([x, x, x]))
