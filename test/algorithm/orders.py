"""Reference results for sorts and related algorithms: orders, keys, and elements with a user-defined order."""
import numpy as np

import values

PLACE = np.dtype([("row", "i4"), ("name", "u1"), ("weight", "f8")], align=True)
KEYS = tuple(kind for kind in values.TYPES if kind not in values.COMPLEX)


def order_of(x, axis=-1, descending=False):
    """Returns the indices that a stable sort gives. Equal elements keep their order in both directions."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def keys(rng, shape, kind):
    """Half of the arrays have many equal keys."""
    return values.any_numbers(rng, shape, kind) if rng.random() < 0.5 else values.small_numbers(rng, shape, kind)
