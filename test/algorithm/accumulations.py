"""Scans along each axis, inclusive and exclusive, with named operators and with funcs. The operands are arrays with any
strides, or funcs."""
import itertools

import numpy as np

import operators
import values
from cases import Case, cases, large_case, some_cases
from orders import KEYS, keys

IDENTITY = {"add": 0, "mul": 1, "or": 0, "xor": 0}


def scanned(name, x, kind, axis, exclusive=False, initial=None):
    dtype = operators.expected_type(name, kind)
    wide = x.astype("f4") if kind == "f2" else x
    with np.errstate(all="ignore"):
        if name in ("add", "mul"):
            made = operators.NAMED[name].accumulate(wide, axis=axis, dtype="f4" if kind == "f2" else dtype)
        else:
            made = operators.NAMED[name].accumulate(wide, axis=axis)
        if exclusive:
            start = IDENTITY[name] if initial is None else initial
            made = np.moveaxis(made, axis, 0)
            first = np.full(made.shape[1:], start, made.dtype)
            rest = made[:-1] if initial is None else operators.NAMED[name](first, made[:-1])
            made = np.moveaxis(np.concatenate([first[None], rest])[:len(made)].astype(made.dtype), 0, axis)
        if kind == "bf16" and name in ("add", "mul"):
            made = values.as_bf16(made)
    return made.astype(dtype)


def named_case(rng, name, kind, shape, axis, label, view=False):
    x = operators.numbers_for(rng, name, shape, kind)
    exclusive = name in IDENTITY and kind != "?" and rng.random() < 0.5
    text, seen = values.random_view(rng, x) if view else ("", x)
    option = f", axis={axis}" + (", exclusive=true" if exclusive else "")
    case = Case(f"{label} {name} {kind} {shape}{text}{option}", f"{{r}} = scan({{x}}{text}, {name}{option})").array("x", x, values.as_kind(kind))
    return case.expect("r", scanned(name, seen, kind, axis, exclusive), kind=values.as_kind(kind))


@some_cases(20)
def all_types(rng):
    for name, kind in itertools.product(("add", "mul", "min", "max", "fmin", "fmax", "and", "or", "xor"), values.TYPES):
        if operators.takes(name, kind):
            yield named_case(rng, name, kind, (int(rng.integers(1, 4000)),), -1, "type")


@cases
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield named_case(rng, "add", "i4", (n,), 0, "size")
        yield named_case(rng, "max", "f4", (n,), 0, "size")
        x = rng.integers(0, 2**64, n, np.uint64)
        products = fold(operators.product, x)
        yield Case(f"size of products {n}", "{r} = scan({x}, product)", x=x).expect("r", products)
        after = np.concatenate([[operators.UNIT], products])[:n].astype("u8")
        yield Case(f"size of exclusive products {n}", "{r} = scan({x}, product, exclusive=true)", x=x).expect("r", after)


def fold(combine, x):
    """Computes all prefixes by doubling, which requires an associative operator."""
    x, step = x.copy(), 1
    while step < len(x):
        x = np.concatenate([x[:step], combine(x[:-step], x[step:])])
        step *= 2
    return x


@some_cases(24)
def axes(rng):
    for _ in range(40):
        shape = tuple(max(e, 1) for e in values.random_shape(rng, int(rng.integers(1, 5))))
        axis = int(rng.integers(-len(shape), len(shape)))
        name, kind = [("add", "i2"), ("add", "f8"), ("max", "u1"), ("xor", "u8"), ("fmin", "f4")][rng.integers(5)]
        yield named_case(rng, name, kind, shape, axis, "axes", view=rng.random() < 0.5)


@cases
def long_rows(rng):
    for shape, axis in (((3, 70001), 1), ((2, 5000), 1), ((70001, 3), 0), ((2000, 40), 0), ((500, 60), 1)):
        yield named_case(rng, "add", "i4", shape, axis, "rows")


@cases
def structs(rng):
    x = operators.affines(rng, (70, 30))
    columns = np.stack([fold(operators.then, x[:, i]) for i in range(30)], axis=1)
    yield Case("struct along columns", "{r} = scan({x}, then, axis=0)").array("x", x, "Affine").expect("r", columns)
    for n in (1, 2, 257, 4097, 40001):
        y = operators.tagged(rng, n)
        yield Case(f"struct of 40 bytes {n}", "{r} = scan({x}[::-1], later)").array("x", y, "Tagged").expect("r", fold(operators.later, y[::-1]))
        x = operators.affines(rng, n)
        want = fold(operators.then, x)
        yield Case(f"struct {n}", "{r} = scan({x}, then)").array("x", x, "Affine").expect("r", want)
        own = Case(f"struct {n}, exclusive, from the identity", "{r} = scan({x}, then, exclusive=true)").array("x", x, "Affine")
        yield own.expect("r", np.concatenate([operators.NO_CHANGE[None], want[:-1]]))
        after = np.concatenate([x[:1], operators.then(np.repeat(x[:1], n - 1), want[:-1])])
        exclusive = Case(f"struct {n}, exclusive", "{r} = scan({x}, then, exclusive=true, initial={f}[0])")
        yield exclusive.array("x", x, "Affine").array("f", x[:1], "Affine").expect("r", after)


@cases
def options(rng):
    x = values.small_numbers(rng, (50, 70), "f4")
    yield Case("initial", "{r} = scan({x}, add, axis=0, initial=7)", x=x).expect("r", np.cumsum(x, axis=0) + np.float32(7))
    yield Case("accumulator", "{r} = scan({x}, add, accumulator=f64)", x=x).expect("r", np.cumsum(x, axis=1, dtype="f8"))
    yield Case("into f64", "{r} = scan({x}, add)", x=x, r=np.zeros((50, 70))).expect("r", np.cumsum(x, axis=1, dtype="f8"))
    yield Case("last", "{r} = scan({x}, last)", x=x).expect("r", x)
    yield Case("first", "{r} = scan({x}, first)", x=x).expect("r", np.broadcast_to(x[:, :1], x.shape).copy())
    yield Case("exclusive with a value", "{r} = scan({x}, max, exclusive=true, initial=1)", x=x).expect("r", scanned("max", x, "f4", 1, True, 1))
    yield Case("in place", "scan({x}, add)", x=x).expect("x", np.cumsum(x, axis=1))
    yield Case("of a func", "{r} = scan(square[3000], add)").expect("r", np.cumsum(np.arange(3000, dtype="i8") ** 2))
    yield Case("empty", "{r} = scan({x}, add)", x=np.zeros((4, 0), "f8")).expect("r", np.zeros((4, 0)))


# ---- the running maximum and minimum with their indices ----


def found_so_far(name, x, axis):
    """Returns (values, indices). The index changes at each element that is a new extremum, and at the first NaN."""
    line = np.moveaxis(x, axis, -1)
    best = operators.NAMED[name].accumulate(line, axis=-1)
    before = best[..., :-1]
    is_better = line[..., 1:] > before if name == "max" else line[..., 1:] < before
    is_better |= (line[..., 1:] != line[..., 1:]) & (before == before)
    first = np.zeros((*line.shape[:-1], 1), bool)
    steps = np.where(np.concatenate([first, is_better], axis=-1)[..., : line.shape[-1]], np.arange(line.shape[-1]), 0)
    return np.moveaxis(best, -1, axis), np.moveaxis(np.maximum.accumulate(steps, axis=-1), -1, axis)


def index_case(rng, kind, shape, axis, label, view=False):
    name = ("max", "min")[rng.integers(2)]
    x = keys(rng, shape, kind)
    if x.dtype.kind == "f" and rng.random() < 0.5:
        x[rng.random(shape) < 1 / max(x.size, 1)] = np.nan
    text, seen = values.random_view(rng, x) if view else ("", x)
    case = Case(f"{label} index {name} {kind} {shape}{text} {axis}", f"{{r}}, {{p}} = scan_with_index({{x}}{text}, {name}, axis={axis})")
    best, places = found_so_far(name, seen, axis)
    return case.array("x", x, values.as_kind(kind)).expect("r", best, kind=values.as_kind(kind)).expect("p", places)


@some_cases(20)
def indices_of_types(rng):
    for kind in KEYS:
        yield index_case(rng, kind, (int(rng.integers(1, 4000)),), -1, "type")
        yield index_case(rng, kind, (int(rng.integers(1, 60)), int(rng.integers(1, 60))), int(rng.integers(2)), "type")


@cases
def indices_of_sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield index_case(rng, ("i4", "f8", "u1")[rng.integers(3)], (n,), 0, "size")
    for shape, axis in (((3, 70001), 1), ((2, 5000), 1), ((70001, 3), 0), ((2000, 40), 0), ((500, 60), 1)):
        yield index_case(rng, "f4", shape, axis, "rows")


@some_cases(24)
def indices_of_axes(rng):
    for _ in range(40):
        shape = tuple(max(e, 1) for e in values.random_shape(rng, int(rng.integers(1, 5))))
        yield index_case(rng, ("i2", "f8", "f2")[rng.integers(3)], shape, int(rng.integers(-len(shape), len(shape))), "axes", rng.random() < 0.5)


@cases
def indices_by_options(rng):
    x = values.small_numbers(rng, (50, 70), "f4")
    best, places = found_so_far("max", x, 1)
    yield Case("value only", "{r} = scan_with_index({x}, max)", x=x).expect("r", best)
    yield Case("into f64 and i16", "{r}, {p} = scan_with_index({x}, max)", x=x, r=np.zeros((50, 70)), p=np.zeros((50, 70), "i2")) \
        .expect("r", best.astype("f8")).expect("p", places.astype("i2"))
    yield Case("into x", "{x}, {p} = scan_with_index({x}, max)", x=x).expect("x", best).expect("p", places)
    yield Case("index of a func", "{r}, {p} = scan_with_index(square[3000], min)").expect("r", np.zeros(3000, "i8")).expect("p", np.zeros(3000, "i8"))
    yield Case("empty with index", "{r}, {p} = scan_with_index({x}, max)", x=np.zeros((4, 0), "f8")).expect("r", np.zeros((4, 0))).expect("p", np.zeros((4, 0), "i8"))


@large_case
def large(rng, n):
    name, kind = [("add", "i4"), ("max", "f4"), ("xor", "u1"), ("add", "u8")][rng.integers(4)]
    x = values.any_numbers(rng, n, kind)
    return Case(f"large {name} {kind}", f"{{r}} = scan({{x}}, {name})", x=x).expect("r", scanned(name, x, kind, 0))
