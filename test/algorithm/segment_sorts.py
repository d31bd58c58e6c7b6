"""Sorts of segments of all sizes: keys, and keys with values, in both orders, by bits and by a func."""
import numpy as np

import values
from cases import Case, cases, some_cases
from orders import KEYS, PLACE, keys, order_of


def offsets_of(rng, n, kind="i8"):
    """Many tiny segments including empty ones, a few segments, or one segment. There can be elements before the first segment
    and after the last one."""
    way = rng.integers(5)
    count = [n // 8 + 2, 5, 2, n // 200 + 2, 1][way]
    made = np.sort(rng.integers(0, n + 1, count))
    if rng.random() < 0.5:
        made[0], made[-1] = 0, n
    if way == 3:  # some long segments among tiny segments
        made = np.sort(np.concatenate([made, np.minimum(made + rng.integers(0, 9, count), n)]))
    return made.astype(kind if n <= np.iinfo(np.dtype(kind)).max else "i8")


def places(x, offsets, order):
    """Returns the source index of each result element. order: as for a stable sort."""
    made = np.arange(len(x))
    for first, last in zip(offsets[:-1].astype("i8"), offsets[1:].astype("i8")):
        if last - first > 1:
            made[first:last] = first + order(x[first:last])
    return made


def segment_case(rng, x, kind, label, offset_kind="i8"):
    descending = bool(rng.random() < 0.5)
    option = ", descending=true" if descending else ""
    offsets, v = offsets_of(rng, len(x), offset_kind), rng.integers(0, 2**32, len(x), np.uint32)
    at = places(x, offsets, lambda part: order_of(part, descending=descending))
    as_kind = values.as_kind(kind)
    if rng.random() < 0.5:
        case = Case(f"{label} {kind} {len(x)} {len(offsets)}{option}", f"{{r}} = sort_segments({{x}}, offsets={{o}}{option})")
        return case.array("x", x, as_kind).array("o", offsets).expect("r", x[at], kind=as_kind)
    case = Case(f"{label} pairs {kind} {len(x)} {len(offsets)}{option}", f"{{r}}, {{w}} = sort_segments({{x}}, {{v}}, {{o}}{option})")
    return case.array("x", x, as_kind).array("v", v).array("o", offsets).expect("r", x[at], kind=as_kind).expect("w", v[at])


@some_cases(5)
def all_types(rng):
    for kind in KEYS:
        yield segment_case(rng, keys(rng, int(rng.integers(1, 5000)), kind), kind, "type")


@some_cases(8)
def sizes(rng):
    for n in values.BORDERS + values.LARGE[:-1]:
        yield segment_case(rng, keys(rng, n, "u4"), "u4", "size")
        yield segment_case(rng, keys(rng, n, "f8"), "f8", "size", str(rng.choice(["i4", "u2", "u8"])))


@cases
def many(rng):
    n = 300001
    yield segment_case(rng, keys(rng, n, "i4"), "i4", "many")
    x = keys(rng, n, "i4")
    o = np.concatenate([np.arange(0, n // 2, 3), [n // 2, n // 2, n - 5000, n - 3]])
    at = places(x, o, lambda part: np.argsort(part, kind="stable"))
    yield Case("tiny and huge", "{r}, {w} = sort_segments({x}, {v}, {o})", x=x, v=np.arange(n), o=o).expect("r", x[at]).expect("w", at)


@cases
def operands(rng):
    n = 20011
    x, o = keys(rng, n, "i4"), offsets_of(rng, n)
    at = places(x, o, order_of)
    yield Case("in place", "{x}, {v} = sort_segments({x}, {v}, {o})", x=x, v=np.arange(n), o=o).expect("x", x[at]).expect("v", at)
    yield Case("views", "{r}[::-1] = sort_segments({x}[::-1], offsets={o})", x=x[::-1], o=o, r=x * 0).expect("r", x[at][::-1])
    yield Case("funcs", "put({r})[20011], put({w})[20011] = sort_segments({x}, at({v})[20011], {o})", x=x, v=np.arange(n), o=o, r=x * 0, w=np.zeros(n, "i8")).expect("r", x[at]).expect("w", at)
    part = x.view("u4") >> np.uint32(3) & np.uint32(255)
    at = places(part, o, lambda p: np.argsort(p, kind="stable"))
    yield Case("bits", "{r} = sort_segments({x}, offsets={o}, begin_bit=3, end_bit=11)", x=x.view("u4"), o=o).expect("r", x.view("u4")[at])


@cases
def by_funcs(rng):
    for n in (1, 33, 1025, 30011):
        x, o = np.zeros(n, PLACE), offsets_of(rng, n)
        x["row"], x["name"], x["weight"] = rng.integers(-9, 10, n), rng.integers(0, 3, n), rng.standard_normal(n)
        at = places(x, o, lambda part: np.lexsort((part["name"], -part["row"])))
        yield Case(f"structs {n}", "{r} = sort_segments({x}, offsets={o}, less=before)").array("x", x, "Place").array("o", o).expect("r", x[at])
