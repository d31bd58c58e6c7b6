"""Elements and orders for sorts, as in Inputs/orders.kir: functions that create random elements, many of them equal,
and the results of a stable sort."""
import collections

import numpy as np

DATED = np.dtype([("year", "i2"), ("day", "u1"), ("id", "u8")], align=True)
PACKED = np.dtype([("tag", "u1"), ("words", "u8", (3,)), ("tail", "u2")])
LARGE = np.dtype([("words", "u4", (31,)), ("key", "f4")])

# kind: the struct's name, or None. rank: returns integers that compare like the elements.
Order = collections.namedtuple("Order", "name less kind dtype make rank")
SIZES = (1, 2, 31, 32, 33, 64, 100, 256, 1000, 1024)


def numbers(dtype):
    """Creates few different numbers, or numbers from the type's whole range including its limits. Floats include zeros
    with both signs and infinities, but no NaN."""
    dtype = np.dtype(dtype)

    def make(rng, n):
        if rng.random() < 0.5:
            return rng.choice(special(dtype), n)
        if dtype.kind == "b":
            return rng.random(n) < 0.3
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, n, dtype, endpoint=True)
        return rng.standard_normal(n).astype(dtype)
    return make


def special(dtype):
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, info.max // 2, 1, 0], dtype)
    return np.array([np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)


def make_dated(rng, n):
    made = np.zeros(n, DATED)
    made["year"], made["day"], made["id"] = rng.integers(-2, 3, n), rng.integers(0, 6, n), rng.integers(0, 2**63, n)
    return made


def make_packed(rng, n):
    made = np.zeros(n, PACKED)
    made["tag"], made["words"], made["tail"] = rng.integers(0, 256, n), rng.integers(0, 2**63, (n, 3)), rng.integers(0, 2**16, n)
    return made


def make_large(rng, n):
    made = np.zeros(n, LARGE)
    made["words"], made["key"] = rng.integers(0, 2**32, (n, 31)), rng.integers(-9, 9, n)
    return made


def dense(values):
    return np.unique(values, return_inverse=True)[1].reshape(len(values))


NUMBERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
ORDERS = [Order(f"less_{t}", "is_less", None, np.dtype(t), numbers(t), dense) for t in NUMBERS] + [
    Order("greater_f8", "is_greater", None, np.dtype("f8"), numbers("f8"), lambda x: -dense(x)),
    Order("greater_u2", "is_greater", None, np.dtype("u2"), numbers("u2"), lambda x: -dense(x)),
    Order("dated", "is_earlier", "dated", DATED, make_dated, lambda x: 300 * x["year"].astype(int) + x["day"]),
    Order("packed", "is_lower_digit", "packed_row", PACKED, make_packed, lambda x: x["tail"] % 10),
    Order("large", "has_less_key", "large", LARGE, make_large, lambda x: dense(x["key"])),
]
BY_NAME = {order.name: order for order in ORDERS}


def stable(order, x, valid=None):
    """Returns the source indices of a stable sort of the first `valid` elements of x. The other elements keep their
    positions."""
    valid = len(x) if valid is None else valid
    return np.concatenate([np.argsort(order.rank(x[:valid]), kind="stable"), np.arange(valid, len(x))]).astype(np.int64)


def arrays_of(r, order, **values):
    """Declares the row's arguments with the order's type."""
    (lambda **v: r.structs_of(order.kind, **v) if order.kind else r.arrays_of(**v))(**values)


def expect_bits(r, name, want):
    """Compares the array exactly, including the signs of zeros."""
    want = np.ascontiguousarray(want)

    def check(got):
        different = np.flatnonzero(raw(got) != raw(want))
        if len(different):
            at = different[0]
            raise AssertionError(f"{name}: {len(different)} of {want.size} differ, first at {at}: {got.reshape(-1)[at]}, expected {want.reshape(-1)[at]}")
    r.verify([name], check)


def raw(values):
    """Returns each element's bytes as one value, without the padding between a struct's fields."""
    values = np.ascontiguousarray(values).reshape(-1)
    if values.dtype.names:
        values = values.astype(np.dtype([(name, values.dtype[name]) for name in values.dtype.names]))
    return values.view(f"V{values.dtype.itemsize}")
