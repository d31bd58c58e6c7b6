"""The first k elements: numbers and elements that a func compares, along any axis, in both orders, with and without indices."""
import numpy as np

import values
from cases import Case, cases, some_cases
from orders import KEYS, PLACE, keys, order_of


def first(order, k, axis):
    return np.take(order, np.arange(k), axis)


def top_case(rng, x, kind, k, label, axis=-1, view="", seen=None):
    seen = x if seen is None else seen
    descending = bool(rng.random() < 0.5)
    options = (f", axis={axis}" if axis != -1 else "") + (", descending=true" if descending else "")
    places = first(order_of(seen, axis, descending), k, axis)
    as_kind = values.as_kind(kind)
    case = Case(f"{label} {kind} {x.shape}{view} {k}{options}", f"{{r}}, {{p}} = top_k({{x}}{view}, {k}{options})").array("x", x, as_kind)
    return case.expect("r", np.take_along_axis(seen, places, axis), kind=as_kind).expect("p", places.astype("i8"))


@some_cases(5)
def all_types(rng):
    for kind in KEYS:
        n = int(rng.integers(1, 5000))
        yield top_case(rng, keys(rng, n, kind), kind, int(rng.integers(0, n // 2 + 1)), "type")
        yield top_case(rng, keys(rng, n, kind), kind, int(rng.integers(0, n + 1)), "any type")


@some_cases(8)
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        for k in (1, 5, 32, 100, 300, 1000, 1025, 8000, n):
            if k <= n:
                yield top_case(rng, keys(rng, n, "u4"), "u4", k, "size")


@cases
def orders(rng):
    """Each element comes before all earlier elements, equals the earlier elements, or comes after them."""
    n = 300001
    for name, x in (("falling", np.arange(n, 0, -1, "i4")), ("rising", np.arange(n, dtype="f8")), ("equal", np.zeros(n, "u2")), ("few", rng.integers(0, 3, n, np.uint8))):
        k = int(rng.integers(1, 600))
        yield Case(f"{name} {k}", f"{{r}}, {{p}} = top_k({{x}}, {k})", x=x).expect("r", np.sort(x)[:k]).expect("p", order_of(x)[:k])
        # For several rows, and for one row with few kept elements, a GPU also uses lists.
        yield Case(f"{name} 7", "{r} = top_k({x}, 7)", x=x).expect("r", np.sort(x)[:7])
        two = np.stack([x, x[::-1]])
        yield Case(f"{name} in rows {k}", f"{{r}}, {{p}} = top_k({{x}}, {k})", x=two).expect("r", np.sort(two)[:, :k]).expect("p", order_of(two)[:, :k])
    x = values.with_nan(rng, values.any_numbers(rng, 3000, "f4"), 0.1)
    yield Case("nan", "{r} = top_k({x}, 30, descending=true)", x=x).expect("r", x[order_of(x, descending=True)][:30])


@cases
def rows(rng):
    grid = keys(rng, (37, 129), "u2")
    yield top_case(rng, grid, "u2", 7, "axis", axis=0)
    yield top_case(rng, grid, "u2", 20, "transposed", view=".T", seen=grid.T)
    yield top_case(rng, grid, "u2", 100, "most", view="[:, ::-1]", seen=grid[:, ::-1])
    yield top_case(rng, keys(rng, (3, 70000), "f8"), "f8", 50, "long rows")
    yield top_case(rng, keys(rng, (2, 30000), "i8"), "i8", 20000, "long rows")
    yield top_case(rng, keys(rng, (0, 7), "i4"), "i4", 3, "no rows")
    yield top_case(rng, keys(rng, (2, 5), "i4"), "i4", 0, "none")


@cases
def results(rng):
    x = rng.integers(0, 2**32, 20000, np.uint32)
    begin, end = sorted(rng.choice(33, 2, replace=False))
    part = x.astype("u8") >> np.uint64(begin) & np.uint64((1 << int(end - begin)) - 1)
    order = np.argsort(part, kind="stable")[:40]
    yield Case(f"bits {begin} to {end}", f"{{r}} = top_k({{x}}, 40, begin_bit={begin}, end_bit={end})", x=x).expect("r", x[order])
    yield Case("into other arrays", "{r}[::2], {p} = top_k({x}, 40)", x=x, r=np.zeros(80, "u4"), p=np.zeros(40, "u2")).expect("p", order_of(x)[:40].astype("u2"))


@cases
def by_funcs(rng):
    for n, k in ((1, 1), (33, 10), (1025, 400), (90011, 60), (90011, 70000)):
        x = np.zeros(n, PLACE)
        x["row"], x["name"], x["weight"] = rng.integers(-9, 10, n), rng.integers(0, 3, n), rng.standard_normal(n)
        order = np.lexsort((x["name"], -x["row"]))[:k]
        yield Case(f"structs {n} {k}", f"{{r}}, {{p}} = top_k({{x}}, {k}, before)").array("x", x, "Place").expect("r", x[order]).expect("p", order)
    y = values.any_numbers(rng, 5003, "f8")
    order = np.argsort(-np.abs(y), kind="stable")[:17]
    yield Case("by size", "{r}, {p} = top_k({x}, 17, less=smaller, descending=true)", x=y).expect("p", order).expect("r", y[order])
