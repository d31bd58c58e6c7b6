import numpy as np
from rows import row

TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


def values(rng, dtype, shape):
    """Row 51: integers in [-65535, 65535], unsigned in [0, 65535], floats."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return (rng.standard_normal(shape) * 65535).astype(dtype)
    return rng.integers(0 if kind == "u" else -65535, 65535, shape, endpoint=True).astype(dtype)


@row("46 histograms, global and shared")
def _(r, rng):
    index = rng.integers(0, 32, 2 * 96).astype(np.int32)
    r.array("index", index)
    for name, dtype in TYPES.items():
        for where in ("global", "shared"):
            r.array(f"{where}_{name}", np.zeros(32, dtype))
            r.launch(f"hist_{where}", "2, 96", f"{where}_{name}", "index")
            r.expect(f"{where}_{name}", np.bincount(index, minlength=32))


@row("47 add and sub in two dimensions")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = values(rng, dtype, (4, 8)) + dtype(1)
        for op, sign in (("add", 1), ("sub", -1)):
            for order in "CF":
                r.array(f"{op}_{name}_{order}", np.array(x, order=order))
                r.launch(f"{op}2d", "1, 4x8", f"{op}_{name}_{order}")
                r.expect(f"{op}_{name}_{order}", x + dtype(1) if sign > 0 else x - dtype(1))


@row("48 and, or, xor")
def _(r, rng):
    for name in ("i32", "u32", "i64", "u64"):
        dtype = TYPES[name]
        a, o, x = (values(rng, dtype, 32) for _ in range(3))
        r.arrays_of(**{f"a{name}": a[:, None], f"o{name}": o, f"x{name}": x})
        r.launch("bit_ops", "1, 32", f"a{name}", f"o{name}", f"x{name}", "0x5a5a")
        k = dtype(0x5A5A)
        r.expect(f"a{name}", (a & k)[:, None])
        r.expect(f"o{name}", o | k)
        r.expect(f"x{name}", x ^ k)


@row("50 exch")
def _(r, rng):
    for name, dtype in TYPES.items():
        x, v = values(rng, dtype, 64), values(rng, dtype, 64)
        r.arrays_of(**{f"x{name}": x, f"v{name}": v, f"old{name}": np.zeros(64, dtype)})
        r.launch("exchange", "2, 32", f"old{name}", f"x{name}", f"v{name}")
        r.expect(f"x{name}", v)
        r.expect(f"old{name}", x)


@row("51 max and min, global and shared")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = values(rng, dtype, (32, 32))
        r.arrays_of(**{f"x{name}": x})
        for kernel, configuration in (("extremes", "4, 64"), ("extremes_shared", "1, 100")):
            low, high = f"low_{kernel}_{name}", f"high_{kernel}_{name}"
            middle = np.sort(x, axis=None)[512:513]
            r.arrays_of(**{low: middle, high: middle})
            r.launch(kernel, configuration, low, high, f"x{name}")
            r.expect(low, [x.min()])
            r.expect(high, [x.max()])


@row("51 max and min with NaN: the number")
def _(r, rng):
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        x = values(rng, dtype, (16, 16))
        x[::3, ::2] = np.nan
        r.arrays_of(**{f"x{name}": x, f"low{name}": np.full(1, np.nan, dtype), f"high{name}": np.full(1, np.nan, dtype)})
        r.launch("extremes", "2, 64", f"low{name}", f"high{name}", f"x{name}")
        r.expect(f"low{name}", [np.nanmin(x)])
        r.expect(f"high{name}", [np.nanmax(x)])


@row("old values of add: every ticket once")
def _(r, rng):
    for name, dtype in TYPES.items():
        r.arrays_of(**{f"old{name}": np.zeros(4096, dtype), f"c{name}": np.zeros(1, dtype)})
        r.launch("tickets", "16, 256", f"old{name}", f"c{name}")
        r.verify([f"old{name}"], lambda old: np.testing.assert_array_equal(np.sort(old), np.arange(4096)))
        r.expect(f"c{name}", [4096])


def is_chain(before, place, x, better):
    """Checks the threads that changed the element. Each replaced one value by the next, and the memory really held all
    these values."""
    def check(old, after):
        changed = better(x, old)
        order = np.argsort(x[changed] if better(1, 0) else -x[changed].astype(np.float64), kind="stable")
        held = np.concatenate([before, x[changed][order]])
        np.testing.assert_array_equal(old[changed][order], held[:-1], err_msg="old values of the threads that changed the place")
        np.testing.assert_array_equal(after, held[-1:])
        assert np.isin(old, held).all(), "a value was returned that the memory never held"
    return check


@row("old values of max and min: a chain of values that the memory held")
def _(r, rng):
    for name, dtype in TYPES.items():
        for op, better in (("max", np.greater), ("min", np.less)):
            x = np.unique(values(rng, dtype, 3000))[:2048]
            x = rng.permutation(np.resize(x, 2048))
            before = x[:1].copy()
            key = f"{op}_{name}"
            r.arrays_of(**{f"x{key}": x, f"p{key}": before.copy(), f"old{key}": np.zeros(2048, dtype)})
            r.launch(f"running_{op}", "8, 256", f"old{key}", f"p{key}", f"x{key}")
            r.verify([f"old{key}", f"p{key}"], is_chain(before, f"p{key}", x, better))


@row("compare-and-swap loops")
def _(r, rng):
    for name in ("i32", "u32", "i64", "u64"):
        dtype = TYPES[name]
        r.arrays_of(**{f"old{name}": np.zeros(640, dtype), f"c{name}": np.full(1, 7, dtype)})
        r.launch("cas_tickets", "10, 64", f"old{name}", f"c{name}")
        r.verify([f"old{name}"], lambda old: np.testing.assert_array_equal(np.sort(old), np.arange(640) + 7))
        r.expect(f"c{name}", [647])
    r.array("old", np.zeros(100, np.int64))
    r.launch("cas_shared", "1, 100", "old")
    r.verify(["old"], lambda old: np.testing.assert_array_equal(np.sort(old), 100 + 3 * np.arange(100)))


@row("cas: what was there, changed only where it was expected; floats by their bits")
def _(r, rng):
    for name, dtype in TYPES.items():
        x, desired = values(rng, dtype, 64), values(rng, dtype, 64)
        expected = np.where(rng.integers(0, 2, 64) == 1, x, x + dtype(1)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[:2], expected[:2] = [0.0, np.nan], [-0.0, np.nan]
        same = x.view(f"u{x.itemsize}") == expected.view(f"u{x.itemsize}")
        r.arrays_of(**{f"x{name}": x, f"e{name}": expected, f"d{name}": desired, f"o{name}": np.zeros(64, dtype)})
        r.launch("expect_cas", "1, 64", f"o{name}", f"x{name}", f"e{name}", f"d{name}")
        r.expect(f"o{name}", x)
        r.expect(f"x{name}", np.where(same, desired, x))


@row("sums of floats")
def _(r, rng):
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        x = rng.integers(-500, 500, 5000).astype(dtype)
        r.arrays_of(**{f"x{name}": x, f"s{name}": np.zeros(1, dtype)})
        r.launch("sum_floats", "7, 50", f"s{name}", f"x{name}")
        r.expect(f"s{name}", [x.sum(dtype=np.float64)])
