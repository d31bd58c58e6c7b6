"""Compactions: by flags, by indices, partitions, the first element of each run of equal neighbours, and run lengths."""
import itertools

import numpy as np

import values
from cases import Case, cases, large_case, some_cases

OF_ELEMENTS = "abrt"  # results that contain elements of x


def numbers(rng, n, kind):
    """Some elements are 0, and some are equal to their neighbours."""
    x = values.small_numbers(rng, n, kind)
    return np.where(rng.random(n) < 0.3, np.roll(x, 1), x).astype(x.dtype)


def front(kept, start):
    """Returns the expected contents of a result array. Elements after the kept elements do not change."""
    made = start.copy()
    made[:len(kept)] = kept
    return made


def starts(x):
    return np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if len(x) else np.zeros(0, "i8")


def case(name, call, x, results, kind=None, **arrays):
    """results: the expected first elements of each result array; the rest of the array must not change. n: the number of kept
    elements. kind: the type of x and of the kept elements."""
    made = Case(name, call, **arrays).array("x", x, values.as_kind(kind))
    for key, kept in results.items():
        start = np.full(max(x.size, 1) if key != "n" else 1, 5).astype(kept.dtype)
        own = values.as_kind(kind) if key in OF_ELEMENTS else None
        made.array(key, start, own).expect(key, front(kept, start), kind=own)
    return made


def count(n):
    return np.array([n], "i8")


def flags_of(rng, n):
    """Flags with some density, or in runs that are longer than the chunk that a core takes at a time."""
    if rng.random() < 0.5:
        return rng.random(n) < rng.choice([0.02, 0.5, 0.97])
    return np.repeat(rng.random(n // 300 + 1) < 0.5, rng.integers(300, 700, n // 300 + 1))[:n]


def by_flags(rng, kind, n, label):
    x, flags = numbers(rng, n, kind), flags_of(rng, n) * 3
    f = flags.astype(str(rng.choice(["u1", "i4", "u8", "f2", "f4", "f8", "?"])))
    yield case(f"{label} select {kind} {n}", "{r}, {n} = select({x}, {f})", x, {"r": x[flags != 0], "n": count((flags != 0).sum())}, kind, f=f)
    parts = {"r": x[flags != 0], "t": x[flags == 0], "n": count((flags != 0).sum())}
    yield case(f"{label} partition {kind} {n}", "{r}, {t}, {n} = partition({x}, {f})", x, parts, kind, f=f)
    yield case(f"{label} nonzero {kind} {n}", "{p}, {n} = nonzero({x})", x, {"p": np.flatnonzero(x), "n": count(np.count_nonzero(x))}, kind)


def in_three(rng, kind, n, label):
    x = numbers(rng, n, kind)
    classes = rng.choice(3, n, p=rng.dirichlet([0.4, 0.4, 0.4])).astype(str(rng.choice(["u1", "i1", "i4", "u8", "i8"])))
    parts = {name: x[classes == c] for c, name in enumerate("abr")}
    made = case(f"{label} in three {kind} {n}", "{a}, {b}, {r}, {n} = partition_three({x}, {c})", x, parts, kind, c=classes)
    counts = np.array([(classes == 0).sum(), (classes == 1).sum()], "i8")
    yield made.array("n", np.zeros(2, "i8")).expect("n", counts)


def by_runs(rng, kind, n, label):
    x, y = numbers(rng, n, kind), rng.standard_normal(n)
    at = starts(x)
    yield case(f"{label} unique {kind} {n}", "{r}, {n} = unique({x})", x, {"r": x[at], "n": count(len(at))}, kind)
    yield case(f"{label} unique_pairs {kind} {n}", "{r}, {v}, {n} = unique_pairs({x}, {y})", x, {"r": x[at], "v": y[at], "n": count(len(at))}, kind, y=y)
    found = {"r": x[at], "l": np.diff(np.append(at, n)), "s": at, "n": count(len(at))}
    yield case(f"{label} run_lengths {kind} {n}", "{r}, {l}, {s}, {n} = run_lengths({x})", x, found, kind)


@some_cases(24)
def all_types(rng):
    for kind, make in itertools.product(values.TYPES, (by_flags, in_three, by_runs)):
        yield from make(rng, kind, int(rng.integers(1, 4000)), "type")


@some_cases(40)
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield from by_flags(rng, "i4", n, "size")
        yield from in_three(rng, "i2", n, "size")
        yield from by_runs(rng, "u1", n, "size")


@cases
def funcs(rng):
    x = values.any_numbers(rng, 3001, "f8")
    kept = x[x > 0.25]
    yield case("by a func", "{r}, {n} = select({x}, above({x}, 0.25f64)[3001])", x, {"r": kept, "n": count(len(kept))})
    sign = (x > 0.25) * 1 + (x > -0.25) * 1
    parts = {name: x[sign == c] for c, name in enumerate("abr")}
    made = case("in three by a func", "{a}, {b}, {r}, {n} = partition_three({x}, side({x}, 0.25f64)[3001])", x, parts)
    yield made.array("n", np.zeros(2, "i8")).expect("n", np.array([(sign == 0).sum(), (sign == 1).sum()], "i8"))
    near = np.sort(x)
    at = [0]
    for i in range(1, len(near)):
        if not abs(near[i - 1] - near[i]) < 0.01:
            at.append(i)
    yield case("unique by a func", "{r}, {n} = unique({x}, near)", near, {"r": near[at], "n": count(len(at))})
    matrix = values.small_numbers(rng, (40, 50), "i2")
    flat = matrix.T[::-1].reshape(-1)
    yield case("of a view", "{r}, {n} = select({x}.T[::-1], {x}.T[::-1])", matrix, {"r": flat[flat != 0], "n": count((flat != 0).sum())})


@large_case
def large(rng, n):
    return list((by_flags, in_three, by_runs)[rng.integers(3)](rng, str(rng.choice(["u1", "i4", "f8"])), n, "large"))[0]
