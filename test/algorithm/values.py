"""Random arrays of every element type, and the sizes, shapes and views that the families' cases use."""
import numpy as np

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
HALFS = ("f2", "bf16")
FLOATS = ("f4", "f8")
COMPLEX = ("c8", "c16")
TYPES = ("?", *INTEGERS, *HALFS, *FLOATS, *COMPLEX)

# sizes around warps, blocks and tiles of both targets
BORDERS = (0, 1, 2, 3, 31, 32, 33, 63, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097)
LARGE = (16383, 16385, 65537, 100003, 1000003)


def numpy_type(kind):
    """NumPy holds bf16 numbers as f32; the values are representable in bf16."""
    return np.dtype("f4" if kind == "bf16" else kind)


def as_kind(kind):
    return "bf16" if kind == "bf16" else None


def small_numbers(rng, shape, kind):
    """Creates whole numbers whose sums and short products are exact in the type in which they are added."""
    if kind == "?":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if kind.startswith("u") else -3
    made = rng.integers(low, 4, shape)
    if kind in COMPLEX:
        made = made + 1j * rng.integers(-3, 4, shape)
    return made.astype(numpy_type(kind))


def any_numbers(rng, shape, kind):
    """Creates numbers from the type's whole range. Floats have many magnitudes, and some are equal."""
    dtype = numpy_type(kind)
    if kind == "?":
        return small_numbers(rng, shape, kind)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if kind in COMPLEX:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    made = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, shape))).astype("f4")
    if kind == "bf16":
        return (made.view("u4") & np.uint32(0xFFFF0000)).view("f4").reshape(shape)
    return made.astype(dtype)


def as_bf16(made):
    """Rounds finite f32 numbers to the nearest bf16 numbers, ties to even."""
    bits = np.asarray(made, "f4").view("u4")
    return ((bits + (bits >> np.uint32(16) & np.uint32(1)) + np.uint32(0x7FFF)) & np.uint32(0xFFFF0000)).view("f4")


def with_nan(rng, made, share=0.01):
    return np.where(rng.random(made.shape) < share, np.nan, made).astype(made.dtype)


def random_shape(rng, rank, most=5000):
    """Returns extents that start at 0 or 1, with at most `most` elements."""
    shape, left = [], most
    for _ in range(rank):
        extent = int(rng.choice([1, 2, 3, int(rng.integers(1, 70)), int(rng.integers(1, 1200))]))
        extent = max(1, min(extent, left))
        left //= extent
        shape.append(extent)
    if rank and rng.random() < 0.05:
        shape[rng.integers(rank)] = 0
    rng.shuffle(shape)
    return tuple(shape)


def random_view(rng, value):
    """Returns the subscripts of a view as kjit-run takes them, and the view itself. Steps can be negative, and the view is
    sometimes transposed."""
    subscripts = []
    for _ in range(value.ndim):
        subscripts.append(str(rng.choice([":", ":", "::-1", "::2", "::-3"])))
    text, view = "", value
    if subscripts and any(s != ":" for s in subscripts):
        text += "[" + ", ".join(subscripts) + "]"
        view = view[tuple(slice(None, None, int(s[2:])) if s != ":" else slice(None) for s in subscripts)]
    if value.ndim > 1 and rng.random() < 0.4:
        text, view = text + ".T", view.T
    return text, view


def random_axes(rng, rank):
    """Returns some of the axes; some of them count from the end."""
    count = int(rng.integers(1, rank + 1))
    axes = [int(a) for a in rng.choice(rank, count, replace=False)]
    return tuple(a - rank if rng.random() < 0.4 else a for a in axes)
