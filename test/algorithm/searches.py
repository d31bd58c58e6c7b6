"""Searches in sorted elements, histograms between edges."""
import numpy as np

import values
from cases import Case, cases, some_cases

REAL = [kind for kind in values.TYPES if kind not in ("bf16", "?", "c8", "c16")]


@some_cases(40)
def searches(rng):
    for kind in REAL:
        x, y = np.sort(values.small_numbers(rng, 700, kind)), values.small_numbers(rng, (20, 55), kind)
        yield Case(f"left {kind}", "{r} = search_sorted({x}, {y})", x=x, y=y).expect("r", np.searchsorted(x, y))
        yield Case(f"right {kind}", "{r} = search_sorted({x}, {y}, right=true)", x=x, y=y).expect("r", np.searchsorted(x, y, "right"))


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
    """Bins of equal width of elements at their edges, beside these, outside, and of no value; more than a core takes at a time."""
    for kind, bins in (("f2", 10), ("f4", 256), ("f4", 1000), ("f8", 256)):
        low = float(rng.normal())
        high = low + float(rng.uniform(0.5, 3))
        edges = np.linspace(low, high, bins + 1).astype(kind)
        some = np.array([low - 1, high + 1, np.nan, np.inf, -np.inf], kind)
        x = np.concatenate([edges, np.nextafter(edges, edges.dtype.type(-9)), np.nextafter(edges, edges.dtype.type(9)), some, rng.uniform(low, high, 1500).astype(kind)])
        rng.shuffle(x)
        yield Case(f"at edges {kind} {bins}", f"{{r}} = histogram({{x}}, {bins}, {low!r}, {high!r})", x=x).expect("r", np.histogram(x[np.isfinite(x)], edges)[0])
