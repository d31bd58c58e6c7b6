"""What the families of products share: operands in layouts of all kinds, and the roundings of their types."""
import numpy as np

EPSILON = {"f2": 2.0**-10, "f4": 2.0**-23, "f8": 2.0**-52, "c8": 2.0**-22, "c16": 2.0**-51}
SUMS = {"f2": 2.0**-23, **{k: EPSILON[k] for k in ("f4", "f8", "c8", "c16")}}


def draw(rng, shape, kind):
    """Elements of random strides: transposed in memory, sometimes."""
    order = rng.permutation(len(shape))
    x = rng.standard_normal([shape[i] for i in order])
    if kind[0] == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    if kind[0] in "iu":
        x = rng.integers(0 if kind[0] == "u" else -9, 10, x.shape)
    return np.transpose(x.astype(kind), np.argsort(order))


def lay_out(rng, x, kind):
    """The matrices as rows or as columns, of a larger array or not."""
    room = np.zeros([*x.shape[:-2], *(n + int(rng.choice([0, 8])) for n in x.shape[-2:])], kind)
    if rng.random() < 0.5:
        room = np.swapaxes(np.zeros([*x.shape[:-2], *room.shape[:-3:-1]], kind), -1, -2)
    place = room[..., :x.shape[-2], :x.shape[-1]]
    place[...] = x
    return place
