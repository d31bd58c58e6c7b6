"""Reductions over all elements and along axes, with named operators and with funcs. The operands are arrays with any strides,
or funcs."""
import itertools

import numpy as np

import operators
import values
from cases import Case, cases, large_case, some_cases

def reference(name, x, kind, axis=None):
    dtype = operators.expected_type(name, kind)
    axis = tuple(range(x.ndim)) if axis is None else axis
    if name == "logaddexp" and x.size == 0:
        return np.full(np.sum(x, axis=axis).shape, -np.inf, dtype)
    with np.errstate(all="ignore"):
        wide = x.astype("f4") if kind == "f2" else x
        if name in ("add", "mul", "logaddexp"):
            return operators.NAMED[name].reduce(wide, axis=axis, dtype=dtype if kind != "f2" else "f4").astype(dtype)
        return operators.NAMED[name].reduce(wide, axis=axis).astype(dtype)


def named_case(rng, name, kind, shape, label, axis=None, option="", view=""):
    x = operators.numbers_for(rng, name, shape, kind)
    if name in ("min", "max", "fmin", "fmax") and x.dtype.kind == "f" and rng.random() < 0.5:
        x = values.with_nan(rng, x, 3 / max(x.size, 1))
    text, seen = ("", x) if not view else values.random_view(rng, x)
    case = Case(f"{label} {name} {kind} {x.shape}{text}{option}", f"{{r}} = reduce({{x}}{text}, {name}{option})")
    case.array("x", x, values.as_kind(kind))
    tolerance = {"rtol": 1e-5 if kind == "f4" else 1e-12} if name == "logaddexp" else {}
    return case.expect("r", reference(name, seen, kind, axis), kind=values.as_kind(kind), **tolerance)


# ---- over all elements ----

@some_cases(24)
def all_types(rng):
    for name, kind in itertools.product(operators.NAMED, values.TYPES):
        if operators.takes(name, kind):
            yield named_case(rng, name, kind, (int(rng.integers(1, 5000)),), "type")


@cases
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        yield named_case(rng, "add", "i4", (n,), "size")
        yield named_case(rng, "xor", "u1", (n,), "size")
        if n:
            yield named_case(rng, "max", "f4", (n,), "size")
            x = rng.integers(0, 2**64, n, np.uint64)
            yield Case(f"size product {n}", "{r} = reduce({x}, product)", x=x).expect("r", fold(operators.product, x))


@cases
def real_sums(rng):
    """The order of additions is not specified. The result must be near the exact sum, and the same in each run."""
    for kind, n in itertools.product(("f4", "f8", "c8"), (1000, 100003)):
        x = values.any_numbers(rng, n, kind)
        bound = 2e-6 if kind != "f8" else 1e-14
        exact = np.sum(x.astype("c16" if kind == "c8" else "f8"))
        yield Case(f"sum of reals {kind} {n}", "{r} = reduce({x}, add)", x=x).expect("r", exact.astype(kind), atol=bound * float(np.sum(np.abs(x))))


@cases
def views(rng):
    for rank in (1, 1, 2, 2, 3, 4, 5):
        for name, kind in (("add", "i2"), ("fmax", "f8")):
            shape = tuple(max(e, 1) for e in values.random_shape(rng, rank))
            yield named_case(rng, name, kind, shape, "view", view=True)


@some_cases(12)
def axes(rng):
    for _ in range(14):
        rank = int(rng.integers(1, 6))
        name, kind = [("add", "i1"), ("add", "f4"), ("max", "u8"), ("min", "f8"), ("xor", "u2"), ("add", "c8"), ("and", "?")][rng.integers(7)]
        shape, chosen = values.random_shape(rng, rank), values.random_axes(rng, rank)
        if name in ("max", "min"):
            shape = tuple(max(e, 1) for e in shape)
        option = f", axis={chosen[0]}" if len(chosen) == 1 else f", axes=({', '.join(map(str, chosen))})"
        yield named_case(rng, name, kind, shape, "axes", chosen, option)


@cases
def axes_in_order(rng):
    """Reductions along an axis with operators that are not commutative."""
    for shape in ((int(rng.integers(1, 500)), 12), (5, int(rng.integers(1, 3000))), (2, int(rng.integers(1, 60)), 9)):
        x = operators.affines(rng, shape)
        axis = int(rng.integers(len(shape)))
        case = Case(f"struct {shape} along {axis}", f"{{r}} = reduce({{x}}, then, axis={axis - len(shape)})").array("x", x, "Affine")
        yield case.expect("r", fold(operators.then, np.moveaxis(x, axis, 0)))


# ---- user-defined operators ----

def fold(combine, x):
    """Combines the elements in order. It combines neighbouring pairs first, which requires an associative operator."""
    while len(x) > 1:
        rest = x[len(x) // 2 * 2:]
        x = np.concatenate([combine(x[0:len(x) - 1:2], x[1::2]), rest])
    return x[0]


@cases
def structs(rng):
    for n in (1, 2, 255, 1025, 4097, 40001):
        x, y = operators.affines(rng, n), operators.tagged(rng, n)
        yield Case(f"struct {n}", "{r} = reduce({x}, then)").array("x", x, "Affine").expect("r", fold(operators.then, x))
        yield Case(f"struct of 40 bytes {n}", "{r} = reduce({x}, later)").array("x", y, "Tagged").expect("r", fold(operators.later, y))
        reverse = Case(f"struct {n}, backwards", "{r} = reduce({x}[::-1], then, initial={f}[0])").array("x", x, "Affine").array("f", x[:1], "Affine")
        yield reverse.expect("r", fold(operators.then, np.concatenate([x[:1], x[::-1]])))


@cases
def order(rng):
    for kind in ("u1", "i4", "f4", "f8"):
        x = values.any_numbers(rng, int(rng.integers(2, 30000)), kind)
        yield Case(f"first {kind}", "{r} = reduce({x}, first)", x=x).expect("r", x[0])
        yield Case(f"last {kind}", "{r} = reduce({x}[::-2], last)", x=x).expect("r", x[::-2][-1])


# ---- options ----

@cases
def options(rng):
    x = values.small_numbers(rng, 3001, "f4")
    yield Case("initial", "{r} = reduce({x}, add, initial=7)", x=x).expect("r", np.float32(x.sum() + 7))
    yield Case("initial of a func", "{r} = reduce({x}, plus, initial=0.5f32)", x=x).expect("r", np.float32(x.sum() + 0.5))
    yield Case("accumulator", "{r} = reduce({x}, add, accumulator=f64)", x=x).expect("r", x.sum(dtype="f8"))
    yield Case("into f64", "{r} = reduce({x}, add)", x=x, r=np.zeros((), "f8")).expect("r", x.sum(dtype="f8"))
    yield Case("commutes", "{r} = reduce({x}, plus, commutes=true)", x=x).expect("r", x.sum())
    yield Case("small accumulator", "{r} = reduce({x}, add, accumulator=u8)", x=np.arange(300, dtype="u1")).expect("r", np.arange(300, dtype="u1").sum(dtype="u1"))
    for kind, name in itertools.product(("i4", "f8"), operators.HAS_IDENTITY):
        if operators.takes(name, kind):
            yield named_case(rng, name, kind, (0,), "empty")
    yield Case("empty, by one's own operator", "{r} = reduce({x}, product)", x=np.zeros(0, "u8")).expect("r", operators.UNIT)
    nothing = Case("empty structs along an axis", "{r} = reduce({x}, then, axis=1)").array("x", operators.affines(rng, (5, 0)), "Affine")
    yield nothing.expect("r", np.repeat(operators.NO_CHANGE, 5))
    kind = str(rng.choice(["i1", "u4", "f2", "f8", "c16"]))
    yield Case(f"empty sums by one's own operator {kind}", "{r} = reduce({x}, plus, axis=0)", x=np.zeros((0, 9), kind)).expect("r", np.zeros(9, kind))
    yield Case("empty with an initial value", "{r} = reduce({x}, max, initial=-3)", x=np.zeros(0, "i2")).expect("r", np.int16(-3))


# ---- funcs as operands ----

@cases
def computed(rng):
    x, y = values.small_numbers(rng, 2011, "f8"), values.small_numbers(rng, 2011, "f8")
    n = int(rng.integers(1, 5000))
    yield Case("squares", f"{{r}} = reduce(square[{n}], add)").expect("r", np.sum(np.arange(n, dtype="i8") ** 2))
    yield Case("difference", "{r} = reduce(difference({x}, {y}[::-1])[2011], max)", x=x, y=y).expect("r", np.max(np.abs(x - y[::-1])))
    yield Case("outer", "{r} = reduce(outer({x}, {y}, 0.5f64)[2011, 17], add)", x=x, y=y).expect("r", 0.5 * np.sum(np.outer(x, y[:17])))
    yield Case("func that writes", "put_twice({r})[] = reduce({x}, add)", x=x, r=np.zeros(2)).expect("r", np.array([1, 2]) * x.sum())
    two = np.zeros((2, 3))
    yield Case("into a view", "{r}[1, ::2][1:] = reduce({x}, add)", x=x, r=two).expect("r", np.where(np.arange(6).reshape(2, 3) == 5, x.sum(), two))


# ---- several results in one pass ----

@cases
def several(rng):
    for shape in ((int(rng.integers(1, 9000)),), (int(rng.integers(1, 40)), int(rng.integers(1, 400))), (3, int(rng.integers(1, 900)), 5)):
        x = values.small_numbers(rng, shape, "f4")
        axis = int(rng.integers(len(shape)))
        case = Case(f"several {shape} along {axis}", f"{{low}}, {{sum}}, {{place}}, {{first}} = reduce_several({{x}}, min, add, argmax, first, axis={axis})", x=x)
        case.expect("low", x.min(axis=axis)).expect("sum", x.sum(axis=axis)).expect("place", x.argmax(axis=axis))
        yield case.expect("first", np.take(x, 0, axis=axis))


@large_case
def large(rng, n):
    name, kind = [("add", "i4"), ("max", "f4"), ("xor", "u8"), ("argmin", "i2"), ("product", "u8")][rng.integers(5)]
    x = values.any_numbers(rng, n, kind)
    want = {"argmin": np.argmin, "product": lambda x: fold(operators.product, x)}.get(name) or (lambda x: reference(name, x, kind))
    return Case(f"large {name} {kind}", f"{{r}} = reduce({{x}}, {name})", x=x).expect("r", want(x))
