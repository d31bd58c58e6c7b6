"""Sorts and merges: of keys, keys with values, and indices; in both orders, along any axis, in place, by bits, and by a
func."""
import numpy as np

import values
from cases import Case, cases, large_case, some_cases
from orders import KEYS, PLACE, keys, order_of


def sort_cases(rng, x, kind, label, axis=-1, view="", seen=None):
    seen = x if seen is None else seen
    descending = bool(rng.random() < 0.5)
    options = (f", axis={axis}" if axis != -1 else "") + (", descending=true" if descending else "")
    order = order_of(seen, axis, descending)
    as_kind = values.as_kind(kind)
    name = f"{label} {kind} {x.shape}{view}{options}"
    want = np.take_along_axis(seen, order, axis)
    yield Case(f"sort {name}", f"{{r}} = sort({{x}}{view}{options})").array("x", x, as_kind).expect("r", want, kind=as_kind)
    yield Case(f"argsort {name}", f"{{r}} = argsort({{x}}{view}{options})").array("x", x, as_kind).expect("r", order.astype("i8"))


@some_cases(16)
def all_types(rng):
    for kind in KEYS:
        yield from sort_cases(rng, keys(rng, int(rng.integers(1, 5000)), kind), kind, "type")


@cases
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield from list(sort_cases(rng, keys(rng, n, "u4"), "u4", "size"))[:1]
        yield from list(sort_cases(rng, keys(rng, n, "f4"), "f4", "size"))[1:]
        x, v = keys(rng, n, "i8"), np.arange(n, dtype="u2")
        order = order_of(x)
        yield Case(f"size of pairs {n}", "{k}, {w} = sort({x}, {v})", x=x, v=v).expect("k", x[order]).expect("w", v[order])


@cases
def pairs_of_types(rng):
    """In place. Keys of 4 bytes and values of 4 bytes are sorted as one 64-bit word."""
    kinds = [("f8", "c16"), ("i1", "f2"), ("?", "u8"), ("u2", "?"), (str(rng.choice(["u4", "i4", "f4"])), str(rng.choice(["u4", "i4", "f4"])))]
    for kind, value in kinds:
        n = int(rng.integers(1, 40000))
        x, v = keys(rng, n, kind), values.any_numbers(rng, n, value)
        order = order_of(x, descending=True)
        yield Case(f"pairs {kind} {value} {n}", "{x}, {v} = sort({x}, {v}, descending=true)", x=x, v=v).expect("x", x[order]).expect("v", v[order])


@cases
def many(rng):
    """Tiles are larger from 2^22 elements on."""
    n = 2**22 + int(rng.integers(100000))
    kind, value = (str(rng.choice(kinds)) for kinds in (["u4", "i8", "u8"], ["u2", "u4", "f8"]))
    x, v = rng.integers(0, 2**15, n).astype(kind), rng.integers(0, 2**16, n).astype(value)
    x *= np.array(65537, kind)
    order = np.argsort((x & np.array(2**15 - 1, kind)).astype("u2"), kind="stable")
    yield Case(f"many pairs {kind} {value} {n}", "{k}, {w} = sort({x}, {v})", x=x, v=v).expect("k", x[order]).expect("w", v[order])


@cases
def places(rng):
    """NaNs come last. Tests sorts in place, views and axes."""
    x = values.with_nan(rng, values.any_numbers(rng, 3000, "f4"), 0.1)
    yield Case("nan", "{r} = sort({x})", x=x).expect("r", np.sort(x))
    yield Case("in place", "{x} = sort({x})", x=x).expect("x", np.sort(x))
    x = keys(rng, 4001, "i4")
    yield from sort_cases(rng, x, "i4", "view", view="[::-2]", seen=x[::-2])
    grid = keys(rng, (37, 129), "u2")
    yield from sort_cases(rng, grid, "u2", "axis", axis=0)
    yield from sort_cases(rng, grid, "u2", "transposed", view=".T", seen=grid.T)
    yield from list(sort_cases(rng, keys(rng, (5, 300, 4), "f8"), "f8", "axis", axis=-2))[:1]
    yield from list(sort_cases(rng, keys(rng, (0, 7), "i4"), "i4", "empty"))[:1]


@cases
def bits(rng):
    x = rng.integers(0, 2**32, 20000, np.uint32)
    first, last = sorted(rng.choice(33, 2, replace=False))
    part = x.astype("u8") >> np.uint64(first) & np.uint64((1 << int(last - first)) - 1)
    order = np.argsort(part, kind="stable")
    v = np.arange(len(x), dtype="f4")
    yield Case(f"pairs by bits {first} to {last}", f"{{k}}, {{w}} = sort({{x}}, {{v}}, begin_bit={first}, end_bit={last})", x=x, v=v).expect("k", x[order]).expect("w", v[order])
    yield Case(f"bits {first} to {last}", f"{{r}} = sort({{x}}, begin_bit={first}, end_bit={last})", x=x).expect("r", x[order])


@cases
def by_funcs(rng):
    for n in (1, 2, 33, 1025, 30011):
        x = np.zeros(n, PLACE)
        x["row"], x["name"], x["weight"] = rng.integers(-9, 10, n), rng.integers(0, 3, n), rng.standard_normal(n)
        want = x[np.lexsort((x["name"], -x["row"]))]
        yield Case(f"structs {n}", "{r} = sort({x}, before)").array("x", x, "Place").expect("r", want)
    y = values.any_numbers(rng, 5003, "f8")
    order = np.argsort(np.abs(y), kind="stable")
    yield Case("by size", "{r} = argsort({x}, smaller)", x=y).expect("r", order)
    yield Case("by size, of pairs", "{k}, {v} = sort({x}, {w}, less=smaller)", x=y, w=np.arange(5003)).expect("k", y[order]).expect("v", order)


# ---- merges ----

def merge_case(rng, kind, n, m, label):
    """Elements of x come before equal elements of y, in both orders."""
    descending = bool(rng.random() < 0.5)
    x, y = keys(rng, n, kind), keys(rng, m, kind)
    if n and m and rng.random() < 0.3:
        y = rng.choice(x, m)
    x, y = (part[order_of(part, descending=descending)] for part in (x, y))
    both = np.concatenate([x, y])
    as_kind, option = values.as_kind(kind), ", descending=true" if descending else ""
    case = Case(f"merge {label} {kind} {n} {m}{option}", f"{{r}} = merge({{x}}, {{y}}{option})").array("x", x, as_kind).array("y", y, as_kind)
    return case.expect("r", both[order_of(both, descending=descending)], kind=as_kind)


@some_cases(6)
def merges_of_types(rng):
    for kind in KEYS:
        yield merge_case(rng, kind, int(rng.integers(0, 4000)), int(rng.integers(0, 4000)), "type")


@some_cases(12)
def merge_sizes(rng):
    for n in values.BORDERS + values.LARGE:
        for m in (0, 1, int(rng.choice(values.BORDERS)), n):
            yield merge_case(rng, str(rng.choice(["u1", "i4", "f8"])), n, m, "size")


@cases
def merges(rng):
    """NaNs come last. Tests views, and elements that a func compares."""
    yield merge_case(rng, "f4", 0, 0, "nothing")
    x, y = (np.sort(values.with_nan(rng, values.any_numbers(rng, n, "f8"), 0.1)) for n in (700, 1300))
    yield Case("merge with nan", "{r} = merge({x}, {y})", x=x, y=y).expect("r", np.sort(np.concatenate([x, y]), kind="stable"))
    yield Case("merge of views", "{r}[::-1] = merge({x}[::3], {y}[1::2])", x=x, y=y, r=np.zeros(884)).expect("r", np.sort(np.concatenate([x[::3], y[1::2]]))[::-1])
    for n, m in ((1, 1), (300, 5), (2049, 4097), (20011, 30011)):
        made = np.zeros(n + m, PLACE)
        made["row"], made["name"], made["weight"] = rng.integers(-9, 10, n + m), rng.integers(0, 3, n + m), rng.standard_normal(n + m)
        p, q = (part[np.lexsort((part["name"], -part["row"]))] for part in (made[:n], made[n:]))
        both = np.concatenate([p, q])
        case = Case(f"merge of structs {n} {m}", "{r} = merge({x}, {y}, before)").array("x", p, "Place").array("y", q, "Place")
        yield case.expect("r", both[np.lexsort((both["name"], -both["row"]))])


@large_case
def large(rng, n):
    kind = str(rng.choice(["u1", "i4", "f4", "f8", "u8"]))
    x = values.any_numbers(rng, n, kind)
    if rng.random() < 0.5:
        return Case(f"large sort {kind}", "{r} = sort({x})", x=x).expect("r", np.sort(x))
    x, y = np.sort(x), np.sort(values.any_numbers(rng, n // 3, kind))
    return Case(f"large merge {kind}", "{r} = merge({x}, {y})", x=x, y=y).expect("r", np.sort(np.concatenate([x, y]), kind="stable"))
