"""What sorts and their kin are compared with: orders, keys, and elements with an order of their own."""
import numpy as np

import values

PLACE = np.dtype([("row", "i4"), ("name", "u1"), ("weight", "f8")], align=True)
KEYS = tuple(kind for kind in values.TYPES if kind not in values.COMPLEX)


def order_of(x, axis=-1, descending=False):
    """The places of a stable sort; elements that are equal stay in their order in either direction."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def keys(rng, shape, kind):
    """Half of the arrays have many keys that are equal."""
    return values.any_numbers(rng, shape, kind) if rng.random() < 0.5 else values.small_numbers(rng, shape, kind)
