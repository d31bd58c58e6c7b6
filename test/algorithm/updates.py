"""Updates at indices, like NumPy's ufunc.at, on whole numbers, whose sums and products are exact in any order."""
import numpy as np

import values
from cases import Case, cases, some_cases

UFUNCS = {"add": np.add, "min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
OF_INTEGERS = ("and", "or", "xor")
OF_REALS = ("min", "max", "fmin", "fmax")


def places_in(rng, shape, length, kind="i8"):
    """If the index type is signed, some indices are negative and count from the end."""
    p = rng.integers(0, max(length, 1), shape).astype(kind)
    return p if kind.startswith("u") else np.where(rng.random(shape) < 0.3, p - np.array(length, p.dtype), p).astype(kind)


def updated(name, x, p, v):
    made = x.copy()
    UFUNCS[name].at(made, p, v.astype(made.dtype))
    return made


def case(label, call, x, want, kind=None, **arrays):
    made = Case(label, call).array("x", x, values.as_kind(kind)).expect("x", want, kind=values.as_kind(kind))
    for name, value in arrays.items():
        made.array(name, value)
    return made


@some_cases(14)
def all_types(rng):
    for kind in (kind for kind in values.TYPES if kind != "?"):
        for name in UFUNCS:
            if (name in OF_INTEGERS and kind not in values.INTEGERS) or (name in OF_REALS and kind in values.COMPLEX):
                continue
            n, m = int(rng.integers(1, 300)), int(rng.integers(1, 3000))
            # few enough values at each index for sums to be exact in f16
            m = min(m, 20 * n) if kind in values.HALFS else m
            x, p, v = values.small_numbers(rng, n, kind), places_in(rng, m, n), values.small_numbers(rng, m, kind)
            made = case(f"{name} {kind} {n} {m}", f"update_at({{x}}, {{p}}, {{v}}, {name})", x, updated(name, x, p, v), kind, p=p)
            yield made.array("v", v, values.as_kind(kind))


@some_cases(6)
def bools(rng):
    for name in ("and", "or", "add"):
        x, p, v = rng.random(50) < 0.5, places_in(rng, 40, 50, "i2"), rng.random(40) < 0.5
        yield case(f"bool {name}", f"update_at({{x}}, {{p}}, {{v}}, {name})", x, updated(name, x, p, v), p=p, v=v)


@some_cases(16)
def sizes(rng):
    """Indices that are all equal, few different indices, or indices over the whole array."""
    for n in values.BORDERS + values.LARGE:
        length = int(rng.choice([1, 3, 1000, 70000]))
        x, p = values.small_numbers(rng, length, "i4"), places_in(rng, n, length, str(rng.choice(["i4", "i8", "u4", "u8"])))
        v = values.small_numbers(rng, n, "i2")
        yield case(f"size {n} {length}", "update_at({x}, {p}, {v}, add)", x, updated("add", x, p, v), p=p, v=v)


@some_cases(8)
def copies(rng):
    """Many values for few elements, for which each CPU core has its own copy: all types and operators, a reversed x, NaNs, and
    values that change nothing."""
    for kind in (kind for kind in values.TYPES if kind != "?" and kind not in values.COMPLEX):
        for name in ("min", "max", "fmin", "fmax", "and", "or"):
            if name in OF_INTEGERS and kind not in values.INTEGERS:
                continue
            n, m = int(rng.choice([1, 7, 1000, 4096])), int(rng.integers(2, 5) * 32768 + rng.integers(9))
            x, p, v = values.small_numbers(rng, n, kind), places_in(rng, m, n), values.small_numbers(rng, m, kind)
            if kind in values.FLOATS:
                x, v = values.with_nan(rng, x, 0.05), values.with_nan(rng, v, rng.choice([0, 0.01, 0.9]))
            if rng.random() < 0.3:  # most elements keep the values of x
                p = np.full(m, p[0])
            elif n > 1:  # only the last value changes the last element
                p[np.isin(p, (n - 1, -1))] = 0
                p[-1], (x[0], v[-1]) = n - 1, {"n": (3, 1), "x": (1, 3), "d": (3, 1), "r": (1, 2)}[name[-1]]
            made = case(f"copies {name} {kind} {n} {m}", f"update_at({{x}}[::-1], {{p}}, {{v}}, {name})", x, updated(name, x[::-1], p, v)[::-1], kind, p=p)
            yield made.array("v", v, values.as_kind(kind))


@cases
def operands(rng):
    """Rows, values that broadcast, views, funcs, a user-defined operator, and one value for all indices."""
    x, p, v = rng.integers(0, 9, (40, 5, 3)), places_in(rng, (6, 7), 40, "i1"), rng.integers(0, 9, (6, 7, 5, 3))
    yield case("rows", "update_at({x}, {p}, {v}, add)", x, updated("add", x, p, v), p=p, v=v)
    yield case("rows that broadcast", "update_at({x}, {p}, {v}, max)", x, updated("max", x, p, v[0, 0, :, :1]), p=p, v=v[0, 0, :, :1])
    yield case("one row", "update_at({x}, {p}, {v}, add)", x[:1], updated("add", x[:1], p * 0, v), p=p * 0, v=v)
    yield case("a value for all", "update_at({x}, {p}, 3, xor)", x, updated("xor", x, p, np.array(3)), p=p)
    seen = x.copy()
    np.add.at(seen[::-1, :, 1], p[0], v[0, :, :, 0])
    yield case("views", "update_at({x}[::-1, :, 1], {p}[0], {v}[0, :, :, 0], add)", x, seen, p=p, v=v)
    y, q, w = rng.integers(0, 9, 300).astype("f4"), places_in(rng, 2000, 300), rng.integers(0, 9, 2000).astype("f4")
    doubled, most = y.copy(), y.copy()
    np.add.at(doubled, q // 2, 2 * w)
    np.maximum.at(most, q, w)
    yield case("funcs", "update_at({x}, half({p})[2000], twice({v})[2000], add)", y, doubled, p=q, v=w)
    yield case("one's own", "update_at({x}, {p}, {v}, greater, commutes=true)", y, most, p=q, v=w)
    with_nan = values.with_nan(rng, w, 0.05)
    yield case("nan", "update_at({x}, {p}, {v}, min)", y, updated("min", y, q, with_nan), p=q, v=with_nan)
    yield case("without nan", "update_at({x}, {p}, {v}, fmin)", y, updated("fmin", y, q, with_nan), p=q, v=with_nan)
    one, two = np.ones(2, "f8"), np.full(40, 2.0)
    yield case("products", "update_at({x}, {p}, {v}, mul)", one, np.array([2.0**40, 1]), p=np.zeros(40, "i4"), v=two)
    pairs = np.dtype([("most", "i4"), ("place", "i4")])
    a, b = np.zeros(20, pairs), np.zeros(900, pairs)
    a["most"], b["most"], b["place"], where = -1, rng.integers(0, 50, 900), rng.permutation(900), places_in(rng, 900, 20)
    want = a.copy()
    for i, at in enumerate(where):
        if (b[i]["most"], -b[i]["place"]) > (want[at]["most"], -want[at]["place"]):
            want[at] = b[i]
    made = case("structs", "update_at({x}, {p}, {v}, best, commutes=true)", a, want, p=where)
    made.kinds["x"] = "Best"
    yield made.array("v", b, "Best")
