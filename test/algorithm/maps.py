"""Maps of a func over broadcast operands, with several results, masks, core dimensions, and for every pair (outer)."""
import numpy as np

import operators
import values
from cases import Case, cases, large_case, some_cases


def broadcasting(rng, shape):
    """Returns a shape that broadcasts to this shape: some extents are 1, and some leading axes are missing."""
    made = tuple(1 if rng.random() < 0.3 else e for e in shape)
    return made[int(rng.integers(0, len(made) + 1)):] if rng.random() < 0.4 else made


@some_cases(16)
def shapes(rng):
    for _ in range(16):
        shape = values.random_shape(rng, int(rng.integers(1, 6)), 3000)
        kind = str(rng.choice(["i4", "u4", "i8", "f4", "f8", "c16"]))
        a, b, c = (np.asarray(values.small_numbers(rng, broadcasting(rng, shape), kind)) for _ in range(3))
        yield Case(f"multiply_add {kind} {a.shape} {b.shape} {c.shape}", "{r} = map(multiply_add, {a}, {b}, {c})", a=a, b=b, c=c).expect("r", a * b + c)


def promoted(kind):
    """Returns the type that arithmetic on two elements has: i32 for bool and for integers with fewer bits, as in C."""
    dtype = values.numpy_type(kind)
    return np.dtype("i4") if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 4) else dtype


@some_cases(12)
def all_types(rng):
    for kind in values.TYPES:
        a, b, c = (values.small_numbers(rng, int(rng.integers(1, 3000)), kind) for _ in range(3))
        a, b, c = (x[:min(len(a), len(b), len(c))] for x in (a, b, c))
        case = Case(f"type {kind} {len(a)}", "{r} = map(multiply_add, {a}, {b}, {c})")
        for name, value in (("a", a), ("b", b), ("c", c)):
            case.array(name, value, values.as_kind(kind))
        a, b, c = (x.astype(promoted(kind)) for x in (a, b, c))
        yield case.expect("r", a * b + c, kind=values.as_kind(kind))
        if kind in values.INTEGERS:  # stored with the element type's bits, which equal the low bits of the sum
            x, y = values.any_numbers(rng, len(a), kind), values.any_numbers(rng, len(a), kind)
            yield Case(f"into {kind} {len(a)}", "{r} = map(multiply_add, {x}, {y}, {x})", x=x, y=y, r=np.zeros(len(a), kind)).expect("r", x * y + x)
        if kind not in values.COMPLEX:
            x, y = values.any_numbers(rng, (3, len(a)), kind), values.any_numbers(rng, len(a), kind)
            less = Case(f"less {kind} {len(a)}", "{r} = map(less, {x}, {y})").array("x", x, values.as_kind(kind)).array("y", y, values.as_kind(kind))
            yield less.expect("r", x < y)


@cases
def structs(rng):
    for n in (0, 1, 33, 4097):
        f, g = operators.affines(rng, n), operators.affines(rng, n)
        yield Case(f"structs {n}", "{r} = map(then, {f}, {g})").array("f", f, "Affine").array("g", g, "Affine").expect("r", operators.then(f, g))


@cases
def sizes(rng):
    for n in values.BORDERS + values.LARGE:
        x, y = values.small_numbers(rng, n, "f4"), values.small_numbers(rng, n, "f4")
        yield Case(f"size {n}", "{r} = map(multiply_add, {x}, 2f32, {y})", x=x, y=y).expect("r", 2 * x + y)


@cases
def operands(rng):
    x, y = values.any_numbers(rng, (61, 83), "f8"), values.any_numbers(rng, (83, 61), "f4")
    mask = rng.random((61, 1)) < 0.5
    yield Case("views", "{r} = map(multiply_add, {x}[::-1], {y}.T[:, ::-1], 0.5)", x=x, y=y).expect("r", x[::-1] * y.T[:, ::-1] + 0.5, rtol=1e-12, atol=1e-12)
    yield Case("two results", "{q}, {r} = map(divide, {x}, {y})", x=np.arange(1000, dtype="i4"), y=np.int32([7])).expect("q", np.arange(1000, dtype="i4") // 7).expect("r", np.arange(1000, dtype="i4") % 7)
    yield Case("in place, where", "{x} = map(multiply_add, {x}, {x}, 1, where={m})", x=x, m=mask).expect("x", np.where(mask, x * x + 1, x), rtol=1e-12)
    yield Case("outer", "{r} = map(less, {x}, {y}, outer=true)", x=x[0], y=x[1]).expect("r", np.less.outer(x[0], x[1]))
    yield Case("computed", "{r} = map(less, square[83], {x})", x=x).expect("r", np.arange(83) ** 2 < x)
    yield Case("func that writes", "put({r})[61, 83] = map(less, {x}, 0.0)", x=x, r=np.zeros((83, 61), bool)).expect("r", (x < 0).T)


@cases
def core_dimensions(rng):
    a, b = values.small_numbers(rng, (4, 1, 7, 5), "f8"), values.small_numbers(rng, (3, 5), "f8")
    yield Case("matrix times vector", '{r} = map(product, {a}, {b}, signature="(m,n),(n)->(m)")', a=a, b=b, r=np.zeros((4, 3, 7))).expect("r", np.einsum("aimn,in->aim", a, b))
    x, y = values.small_numbers(rng, (9, 300), "f4"), values.small_numbers(rng, (300,), "f4")
    yield Case("dot", '{r} = map(dot, {x}, {y}, signature="(n),(n)->()")', x=x, y=y, r=np.zeros(9, "f4")).expect("r", x @ y)


@large_case
def large(rng, n):
    kind = str(rng.choice(["i4", "f4", "f8"]))
    if rng.random() < 0.5:
        x, y = values.small_numbers(rng, n, kind), values.small_numbers(rng, n, kind)
    else:
        x, y = values.small_numbers(rng, (n // 2500, 2500), kind), values.small_numbers(rng, (n // 2500, 1), kind)
    return Case(f"large {kind} {x.shape} {y.shape}", "{r} = map(multiply_add, {x}, {y}, 2)", x=x, y=y).expect("r", x * y + np.array(2, kind))
