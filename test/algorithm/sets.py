"""Set operations on sorted arrays that can contain equal elements, compared with a merge in plain Python."""
import functools

import numpy as np

import values
from cases import Case, some_cases

KINDS = ("union", "intersection", "difference", "symmetric_difference")
NUMBERS = [kind for kind in values.TYPES if kind not in values.COMPLEX]
PLACE = np.dtype([("row", "i4"), ("name", "u1"), ("weight", "f8")], align=True)


def merged(ranks_x, ranks_y):
    """Returns (position of the merge at each step, the input that the step takes from). ranks are integers, which are equal if
    the elements are equal."""
    x, y = np.asarray(ranks_x), np.asarray(ranks_y)
    # The r-th of several equal elements corresponds to the r-th equal element of the other input.
    repeat_x = np.arange(len(x)) - np.searchsorted(x, x)
    repeat_y = np.arange(len(y)) - np.searchsorted(y, y)
    in_y = repeat_x < np.searchsorted(y, x, "right") - np.searchsorted(y, x)
    in_x = repeat_y < np.searchsorted(x, y, "right") - np.searchsorted(x, y)
    return in_y, in_x


def outcome(kind, x, y, ranks_x, ranks_y):
    in_y, in_x = merged(ranks_x, ranks_y)
    if kind == "intersection":
        return x[in_y]
    if kind == "difference":
        return x[~in_y]
    keep_x = np.full(len(x), True) if kind == "union" else ~in_y
    parts, ranks = np.concatenate([x[keep_x], y[~in_x]]), np.concatenate([ranks_x[keep_x], ranks_y[~in_x]])
    return parts[np.argsort(ranks, kind="stable")]


def room(kind, n, m):
    return {"union": n + m, "intersection": min(n, m), "difference": n, "symmetric_difference": n + m}[kind]


def case(kind, label, x, y, ranks, call="{x}, {y}", as_kind=None, sorted_x=None, sorted_y=None):
    """x and y: the inputs in memory. sorted_x and sorted_y: the inputs that the call receives. The ranks of both are computed
    as if the inputs were joined."""
    sx, sy = x if sorted_x is None else sorted_x, y if sorted_y is None else sorted_y
    kept = outcome(kind, sx, sy, ranks[:len(sx)], ranks[len(sx):])
    start = np.zeros(room(kind, len(sx), len(sy)), kept.dtype)
    want = start.copy()
    want[:len(kept)] = kept
    made = Case(f"{kind} {label}", f"{{r}}, {{n}} = set_{kind}({call})")
    made.array("x", x, as_kind).array("y", y, as_kind).array("r", start, as_kind).array("n", np.zeros(1, "i8"))
    return made.expect("r", want, kind="bf16" if as_kind == "bf16" else None).expect("n", np.array([len(kept)], "i8"))


def ranks_of(*parts):
    return np.unique(np.concatenate(parts), return_inverse=True)[1]


def two_sides(rng, kind, n, m):
    """Few different values, or many."""
    make = values.any_numbers if rng.random() < 0.5 else values.small_numbers
    x, y = make(rng, n, kind), make(rng, m, kind)
    if n and m and rng.random() < 0.7:
        y[:] = np.where(rng.random(m) < 0.5, rng.choice(x, m), y)
    return np.sort(x), np.sort(y)


@some_cases(6)
def all_types(rng):
    for element in NUMBERS:
        x, y = two_sides(rng, element, int(rng.integers(0, 3000)), int(rng.integers(0, 3000)))
        for kind in KINDS:
            yield case(kind, f"type {element}", x, y, ranks_of(x, y), as_kind=values.as_kind(element))


@some_cases(6)
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        x, y = two_sides(rng, "i4", n, int(rng.choice([0, 1, n, n // 7, 5000])))
        if rng.random() < 0.5:
            x, y = y, x
        for kind in KINDS:
            yield case(kind, f"size {len(x)} {len(y)}", x, y, ranks_of(x, y))


@some_cases(6)
def repeats(rng):
    """Runs that are longer than tiles and chunks, in one input or in both."""
    for n, m in ((70000, 70000), (70000, 20000), (3000, 90001), (40000, 1), (4000, 700)):
        x, y = np.sort(rng.integers(0, 3, n)), np.sort(rng.integers(0, 4, m))
        one, other = np.full(n, 5), np.full(m, 5)
        for kind in KINDS:
            yield case(kind, f"runs {n} {m}", x, y, ranks_of(x, y))
            yield case(kind, f"all equal {n} {m}", one, other, ranks_of(one, other))


@some_cases(9)
def orders(rng):
    """NaNs are equal to each other, and -0.0 is equal to 0.0. Tests the reversed order, views, funcs, and structs with a
    comparison func."""
    x = np.sort(values.with_nan(rng, values.small_numbers(rng, 900, "f4"), 0.1))
    y = np.sort(values.with_nan(rng, values.small_numbers(rng, 700, "f4"), 0.1))
    x[x == 0] *= rng.choice([-1, 1], (x == 0).sum())
    ranks = ranks_of(x, y)
    i, j = np.sort(rng.integers(0, 99, 2000)), np.sort(rng.integers(0, 99, 1777))
    both = ranks_of(-i[::-1], -j[::-1])
    p, q = np.zeros(1500, PLACE), np.zeros(1300, PLACE)
    for part in (p, q):
        part["row"], part["name"], part["weight"] = rng.integers(-3, 3, len(part)), rng.integers(0, 60, len(part)), rng.random(len(part))
    key = functools.partial(np.dot, np.array([-100, 1]))
    p, q = p[np.argsort(key([p["row"], p["name"]]), kind="stable")], q[np.argsort(key([q["row"], q["name"]]), kind="stable")]
    of_structs = ranks_of(key([p["row"], p["name"]]), key([q["row"], q["name"]]))
    halves = ranks_of(i // 2, j)
    for kind in KINDS:
        yield case(kind, "nan", x, y, ranks)
        yield case(kind, "descending", i[::-1], j[::-1], both, "{x}, {y}, descending=true")
        yield case(kind, "reversed views", i, j, both, "{x}[::-1], {y}[::-1], greater", sorted_x=i[::-1], sorted_y=j[::-1])
        yield case(kind, "less, descending", i, j, ranks_of(i, j), "{x}, {y}, greater, descending=true")
        yield case(kind, "func", i, j, halves, "half({x})[2000], {y}", sorted_x=i // 2)
        yield case(kind, "structs", p, q, of_structs, "{x}, {y}, before", as_kind="Place")


@some_cases(2)
def against_numpy(rng):
    """Without repeated elements, the results are the same as NumPy's."""
    x, y = (np.unique(rng.integers(0, 30000, 20000)).astype("u4") for _ in range(2))
    named = {"union": np.union1d, "intersection": np.intersect1d, "difference": np.setdiff1d, "symmetric_difference": np.setxor1d}
    for kind in KINDS:
        made = case(kind, "numpy", x, y, ranks_of(x, y))
        want = made.expected["r"].value.copy()
        kept = named[kind](x, y)
        want[:] = 0
        want[:len(kept)] = kept
        yield made.expect("r", want).expect("n", np.array([len(kept)], "i8"))
