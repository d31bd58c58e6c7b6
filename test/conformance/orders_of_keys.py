"""Keys of every type for tests of sorts, and the results of NumPy."""
import numpy as np

KINDS = ("bool", "i8", "u8", "i16", "u16", "f16", "bf16", "i32", "u32", "f32", "i64", "u64", "f64")
NUMPY = {"bool": "?", "f16": "f2", "bf16": "f4", "f32": "f4", "f64": "f8"}
BITS = {"bool": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def dtype_of(kind):
    return np.dtype(NUMPY.get(kind) or f"{kind[0]}{int(kind[1:]) // 8}")


def bits_of(kind):
    return BITS.get(kind) or int(kind[1:])


def make(rng, kind, n):
    """Creates n keys: random keys, few different keys, sorted, reversed, or extreme keys. Floats also include
    infinities, NaNs, and zeros with both signs."""
    dtype = dtype_of(kind)
    if kind == "bool":
        return rng.random(n) < rng.random()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        some = np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
    else:
        x = (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4)).astype(dtype)
        if kind == "bf16":
            x = (x.view("u4") & 0xFFFF0000).view("f4")
        some = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], dtype)
    shape = rng.integers(5)
    if shape == 1:
        x = rng.choice(some, n)
    elif shape == 2:
        x = np.where(rng.random(n) < 0.3, rng.choice(some, n), x)
    elif shape == 3:
        x = np.sort(x)[:: rng.choice([1, -1])]
    elif shape == 4:
        x = np.repeat(x[:1], n)
        x[n // 2] = some[0]
    return np.ascontiguousarray(x.astype(dtype))


def order_of(x, descending=False, begin=0, end=None):
    """Returns the keys' source indices in a stable sort. For integers, the sort can be limited to the bits from begin
    to end - 1."""
    if x.dtype.kind in "iu" and end is not None:
        bits = x.view(f"u{x.itemsize}").astype("u8")
        bits ^= np.uint64(1 << (8 * x.itemsize - 1) if x.dtype.kind == "i" else 0)
        x = bits >> np.uint64(begin) & np.uint64((1 << (end - begin)) - 1)
    if descending:
        return (len(x) - 1 - np.argsort(x[::-1], kind="stable"))[::-1]
    return np.argsort(x, kind="stable")


def same_bits(want):
    """A check that also distinguishes zeros with different signs."""
    return lambda got: np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), np.ascontiguousarray(want).view(f"u{got.itemsize}"))
