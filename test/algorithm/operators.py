"""Operators for reductions and scans: kjit's named operators with NumPy's equivalents, and the operators of
Inputs/operators.kir with the same computation on NumPy arrays."""
import numpy as np

import values

AFFINE = np.dtype([("a", "u4"), ("b", "u4"), ("applied", "u4")])
TAGGED = np.dtype([("tag", "u1"), ("words", "u8", (3,)), ("tail", "u2")], align=True)

NAMED = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax,
         "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "logaddexp": np.logaddexp}
HAS_IDENTITY = ("add", "mul", "and", "or", "xor", "logaddexp")


def takes(name, kind):
    if name in ("and", "or", "xor"):
        return kind == "?" or kind in values.INTEGERS
    if name == "logaddexp":
        return kind in values.FLOATS
    return name in ("add", "mul") or kind not in values.COMPLEX


def expected_type(name, kind):
    """As in NumPy's reductions, sums and products of small integers have 64 bits."""
    dtype = values.numpy_type(kind)
    if name in ("add", "mul") and dtype.kind in "bi":
        return np.dtype("i8")
    return np.dtype("u8") if name in ("add", "mul") and dtype.kind == "u" else dtype


def numbers_for(rng, name, shape, kind):
    if name == "mul":  # few operands differ from 1, so the product is exact
        made = np.ones(shape, values.numpy_type(kind))
        flat = made.reshape(-1)
        flat[rng.integers(0, max(flat.size, 1), 5) if flat.size else []] = 1 if kind == "?" else 2
        return made
    if name == "add":
        return values.small_numbers(rng, shape, kind)
    return values.any_numbers(rng, shape, kind)


# ---- of one's own ----

def then(f, g):
    made = np.empty_like(f)
    made["a"], made["b"], made["applied"] = f["a"] * g["a"], f["b"] * g["a"] + g["b"], f["applied"] + g["applied"]
    return made


NO_CHANGE = np.array((1, 0, 0), AFFINE)  # the operator's `@identity`
UNIT = np.uint64(1 | 1 << 48)  # and of product


def later(x, y):
    return np.where(y["tag"] != 0, y, x)


def product(x, y):
    a, b, c, d = (x >> np.uint64(16 * i) & np.uint64(0xFFFF) for i in range(4))
    e, f, g, h = (y >> np.uint64(16 * i) & np.uint64(0xFFFF) for i in range(4))
    parts = a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h
    return sum((p & np.uint64(0xFFFF)) << np.uint64(16 * i) for i, p in enumerate(parts))


def affines(rng, n):
    made = np.zeros(n, AFFINE)
    for field in AFFINE.names:
        made[field] = rng.integers(0, 2**32, n, np.uint32)
    return made


def tagged(rng, n):
    made = np.zeros(n, TAGGED)
    made["tag"] = rng.integers(0, 256, n) * (rng.random(n) < 5 / n)
    made["words"] = rng.integers(0, 2**63, (n, 3))
    made["tail"] = rng.integers(0, 2**16, n)
    made["tag"][0] = 1
    return made
