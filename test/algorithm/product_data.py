"""Data that the product families share: operands in all kinds of layouts, and the rounding for each type."""
import numpy as np

EPSILON = {"bf16": 2.0**-7, "f2": 2.0**-10, "f4": 2.0**-23, "f8": 2.0**-52, "c8": 2.0**-22, "c16": 2.0**-51}
SUMS = {"bf16": 2.0**-23, "f2": 2.0**-23, **{k: EPSILON[k] for k in ("f4", "f8", "c8", "c16")}}


def numpy_kind(kind):
    """NumPy has no bf16. The test holds bf16 numbers as f4, and kjit-run saves them as f4, too."""
    return "f4" if kind == "bf16" else kind


def to_kind(x, kind):
    """Rounds to the nearest numbers of this type, ties to even. For bf16, the numbers must be finite or NaN."""
    if kind != "bf16":
        return x.astype(kind)
    bits = np.atleast_1d(np.asarray(x, "f4")).view("u4")
    rounded = ((bits + (0x7fff + (bits >> np.uint32(16) & np.uint32(1)))) & np.uint32(0xffff0000)).astype("u4").view("f4")
    return np.where(np.isnan(x), np.float32(np.nan), rounded.reshape(np.shape(x)))


def of_kind(case, kind):
    """kjit-run converts the arrays of this type to bf16 when it reads them."""
    if kind == "bf16":
        case.kinds.update({name: kind for name in case.arrays})
    return case


def expect_kind(case, value, kind, **tolerance):
    """The result has this type."""
    return case.expect("r", value.astype(numpy_kind(kind)), kind="bf16" if kind == "bf16" else None, **tolerance)


def draw(rng, shape, kind):
    """Creates elements with random strides. The array is sometimes transposed in memory."""
    order = rng.permutation(len(shape))
    x = rng.standard_normal([shape[i] for i in order])
    if kind[0] == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    if kind[0] in "iu":
        x = rng.integers(0 if kind[0] == "u" else -9, 10, x.shape)
    return np.transpose(to_kind(x, kind), np.argsort(order))


def lay_out(rng, x, kind):
    """Creates the matrices in row-major or column-major order, sometimes as a part of a larger array."""
    kind = numpy_kind(kind)
    room = np.zeros([*x.shape[:-2], *(n + int(rng.choice([0, 8])) for n in x.shape[-2:])], kind)
    if rng.random() < 0.5:
        room = np.swapaxes(np.zeros([*x.shape[:-2], *room.shape[:-3:-1]], kind), -1, -2)
    place = room[..., :x.shape[-2], :x.shape[-1]]
    place[...] = x
    return place
