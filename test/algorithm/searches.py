"""Searches in sorted elements, and histograms by integer, with bins of equal width and with given edges."""
import numpy as np

import values
from cases import Case, cases, large_case, some_cases
from orders import KEYS, keys

def search_case(rng, kind, n, shape, label):
    """About half of the searched values occur in the sorted elements."""
    x, y = np.sort(keys(rng, n, kind)), keys(rng, shape, kind)
    if n:
        y = np.where(rng.random(shape) < 0.5, rng.choice(x, shape), y).astype(x.dtype)
    side, option = (("left", ""), ("right", ", right=true"))[rng.integers(2)]
    case = Case(f"{label} {side} {kind} {n} {shape}", f"{{r}} = search_sorted({{x}}, {{y}}{option})")
    case.array("x", x, values.as_kind(kind)).array("y", y, values.as_kind(kind))
    return case.expect("r", np.searchsorted(x, y, side))


@some_cases(20)
def searches(rng):
    for kind in KEYS:
        for shape in ((20, 55), int(rng.integers(1, 3000))):
            yield search_case(rng, kind, int(rng.integers(1, 2000)), shape, "type")


@some_cases(10)
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield search_case(rng, "i4", n, int(rng.choice(values.BORDERS)), "size")
        yield search_case(rng, "f8", int(rng.choice(values.BORDERS)), n, "size")


@cases
def nothing(rng):
    """No elements, or no searched values."""
    yield search_case(rng, "f4", 0, 500, "nothing")
    yield search_case(rng, "bf16", 500, (0, 3), "nothing")


@cases
def by_less(rng):
    x, y = np.sort(rng.integers(0, 50, 200)), rng.integers(-5, 55, 3000)
    yield Case("less", "{r} = search_sorted({x}[::-1], {y}, greater)", x=x, y=y).expect("r", np.searchsorted(-x[::-1], -y))


@cases
def histograms(rng):
    for n in [1, 511, 70001]:
        x, y, w = rng.normal(size=n), np.unique(rng.normal(size=200)), rng.integers(0, 50, n)
        yield Case(f"edges {n}", "{r} = histogram_edges({x}, {y})", x=x, y=y).expect("r", np.histogram(x, y)[0])
        yield Case(f"weights {n}", "{r} = histogram_edges({x}, {y}, {w})", x=x, y=y, w=w).expect("r", np.histogram(x, y, weights=w)[0])


# ---- histograms ----

def summed(w):
    """Returns the sum as NumPy computes it; f16 numbers are added in the type that kjit uses."""
    return "f8" if w.dtype.kind == "f" else "u8" if w.dtype.kind == "u" else "i8"


def histogram_case(rng, kind, n, label):
    """Bins of equal width whose edges every float type represents exactly. The width is 1/4, or 1 for integers."""
    step = 0.25 if values.numpy_type(kind).kind == "f" else 1
    bins = int(rng.integers(1, 200)) if kind in values.FLOATS or kind in ("i4", "u8") else int(rng.integers(1, 20))
    low = 0 if kind.startswith("u") or kind == "?" else -step * (bins // 2)
    x, call = keys(rng, n, kind), f"{{r}} = histogram({{x}}, {bins}, {low}, {low + bins * step}"
    return counted_case(rng, f"{label} histogram", call, x, kind, low + np.arange(bins + 1) * step)


def edges_case(rng, kind, n, label):
    y = np.unique(keys(rng, int(rng.integers(2, 300)), kind))
    y = np.array([0, 1], y.dtype) if len(y) < 2 else y
    return counted_case(rng, f"{label} edges", "{r} = histogram_edges({x}, {y}", keys(rng, n, kind), kind, y, y)


def counted_case(rng, label, call, x, kind, edges, y=None):
    weighted = rng.random() < 0.5
    case = Case(f"{label} {kind} {x.size}", call + (", {w})" if weighted else ")")).array("x", x, values.as_kind(kind))
    if y is not None:
        case.array("y", y, values.as_kind(kind))
    of_numbers = x.astype("u1") if kind == "?" else x
    edges = edges.astype("u1") if edges.dtype == "?" else edges
    if not weighted:
        return case.expect("r", np.histogram(of_numbers, edges)[0])
    w = values.small_numbers(rng, x.shape, str(rng.choice(["u1", "i4", "i8", "u8", "f2", "f4", "f8"])))
    return case.array("w", w).expect("r", np.histogram(of_numbers, edges, weights=w.astype(summed(w)))[0])


def bincount_case(rng, kind, n, label):
    bins = int(rng.choice([1, 2, 50, 127]))
    x = rng.integers(0, bins, n).astype(kind)
    if rng.random() < 0.5:
        return Case(f"{label} bincount {kind} {n}", f"{{r}} = bincount({{x}}, {bins})", x=x).expect("r", np.bincount(x.astype("i8"), minlength=bins))
    w = values.small_numbers(rng, n, str(rng.choice(["i2", "f4", "f8"])))
    want = np.bincount(x.astype("i8"), w, bins).astype(summed(w))
    return Case(f"{label} weighted bincount {kind} {n}", f"{{r}} = bincount({{x}}, {bins}, {{w}})", x=x, w=w).expect("r", want)


@some_cases(20)
def histograms_of_types(rng):
    for kind in KEYS:
        yield histogram_case(rng, kind, int(rng.integers(1, 4000)), "type")
        yield edges_case(rng, kind, int(rng.integers(1, 4000)), "type")
        if kind in values.INTEGERS:
            yield bincount_case(rng, kind, int(rng.integers(1, 4000)), "type")


@some_cases(15)
def histogram_sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield histogram_case(rng, str(rng.choice(["f4", "f8", "i4"])), n, "size")
        yield edges_case(rng, str(rng.choice(["f4", "f8", "i4"])), n, "size")
        yield bincount_case(rng, "i4", n, "size")


@cases
def histograms_of_nothing(rng):
    for make in (histogram_case, edges_case, bincount_case):
        yield make(rng, "i2", 0, "nothing")


@cases
def counts(rng):
    x = rng.integers(0, 50, int(rng.integers(1, 60000)), np.int32)
    w = values.small_numbers(rng, x.shape, "f8")
    yield Case("bincount", "{r} = bincount({x}, 53)", x=x).expect("r", np.bincount(x, minlength=53))
    yield Case("bincount of weights", "{r} = bincount({x}, 50, {w})", x=x, w=w).expect("r", np.bincount(x, w, minlength=50))
    y = rng.standard_normal(x.shape)
    yield Case("histogram", "{r} = histogram({x}, 16, -2, 2.5)", x=y).expect("r", np.histogram(y, 16, (-2, 2.5))[0])


@cases
def near_edges(rng):
    """Bins of equal width, with elements on edges, next to edges, out of range, and NaN. There are more elements than a core
    takes at a time."""
    for kind, bins in (("f2", 10), ("f4", 256), ("f4", 1000), ("f8", 256)):
        low = float(rng.normal())
        high = low + float(rng.uniform(0.5, 3))
        edges = np.linspace(low, high, bins + 1).astype(kind)
        some = np.array([low - 1, high + 1, np.nan, np.inf, -np.inf], kind)
        x = np.concatenate([edges, np.nextafter(edges, edges.dtype.type(-9)), np.nextafter(edges, edges.dtype.type(9)), some, rng.uniform(low, high, 1500).astype(kind)])
        rng.shuffle(x)
        yield Case(f"at edges {kind} {bins}", f"{{r}} = histogram({{x}}, {bins}, {low!r}, {high!r})", x=x).expect("r", np.histogram(x[np.isfinite(x)], edges)[0])


# ---- of many elements ----

@large_case
def large_search(rng, n):
    few = int(rng.integers(1, 100000))
    return search_case(rng, str(rng.choice(["i4", "f4", "u8"])), *[(n, few), (few, n)][rng.integers(2)], "large")


@large_case
def large_histogram(rng, n):
    make = (histogram_case, edges_case, bincount_case)[rng.integers(3)]
    return make(rng, str(rng.choice(["u1", "i4"] if make is bincount_case else ["u1", "i4", "f4"])), n, "large")
