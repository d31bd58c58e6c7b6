# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=2 %kjit-python %s
"""Second derivatives of programs with kjit's algorithms: products of the second derivatives with a direction, against the same programs in
NumPy. A complex step gives the first derivative of NumPy's program, and a central difference of it the second one. Where JAX is installed,
it derives the third derivatives, which are expected, too."""

import sys

import kjit
import kjit.numpy as knp
import numpy as np
import seeds

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
except ImportError:
    jax = None
    print("JAX is not installed: second derivatives have differences as the reference, and third ones are not checked")

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
rng = np.random.default_rng(SEED)
print("seed", SEED)
N = 7


def gap(values):
    return np.min(np.diff(np.sort(values, axis=-1)))


def points():
    """Draws numbers whose order, and the order of whose distances, does not change within a step."""
    while True:
        a, b = rng.uniform(0.3, 1.5, N), rng.standard_normal(5)
        if gap(a) > 0.01 and gap(np.abs(a[:, None] - b)) > 0.01:
            return a, b


x, y = points()
c = rng.standard_normal(5)
rows, others, scales = rng.uniform(0.3, 1.5, (4, 3)), rng.standard_normal((5, 3)), rng.uniform(0.1, 0.5, 3)
offsets, keys = np.array([0, 2, 5, 7]), np.array([0, 0, 1, 1, 1, 2, 2])
matrix = rng.standard_normal((N, N))
matrix = matrix @ matrix.T + N * np.eye(N)
sparse = kjit.csr(np.where(np.add.outer(np.arange(N), np.arange(N)) % 3 > 0, matrix, 0))
pattern = np.where(np.add.outer(np.arange(N), np.arange(N)) % 3 > 0, matrix, 0)
full = kjit.csr(matrix)
EXACT = {"residual_tolerance": 1e-14}


def damped(a, b):
    """An associative operator that is neither linear nor a product of its operands."""
    return a + b + 0.25 * a * b


def distance(u, v, factor, i, j, s):
    total = 0.0
    for k in range(len(u)):
        total += (u[k] - v[k]) ** 2 * s[k]
    return kjit.exp(-total) * factor


def gauss(u, v, i, j, s):
    return kjit.exp(-s * (u - v) ** 2)


# ---- the programs, with m as NumPy or JAX ----


def parts(m, values):
    return [values[a:b] for a, b in zip(offsets, offsets[1:])]


def logsumexp(m, values, axis=-1):
    """The result does not depend on the shift, so the shift is not differentiated."""
    shift = float(np.max(np.real(values))) if m is np else 0.0
    return m.log(m.sum(m.exp(values - shift), axis=axis)) + shift


def extreme(m, values, sign):
    """Returns the largest or smallest element of each row, by the real part."""
    places = m.argmax(sign * m.real(values), axis=-1)
    return m.take_along_axis(values, places[..., None], axis=-1)[..., 0]


def running(m, values):
    places = [int(np.argmax(np.real(values[: i + 1]))) for i in range(N)] if m is np else None
    return values[np.array(places)] if m is np else jax.lax.cummax(values)


def cumulative(m, values):
    return m.stack([logsumexp(m, values[: i + 1]) for i in range(N)])


def kernel(m, u, v, s):
    return m.exp(-s * (u[:, None] - v[None]) ** 2)


def cube(values):
    return (values * values * values).sum()


def pairs_by(operator):
    return lambda x, y, s: cube(kjit.pairs(gauss, x, y, operator, arguments=(s,)))


FOLDS = [
    ("cumprod", lambda x: knp.sum(knp.sin(knp.cumprod(x)) * x), lambda m: lambda x: m.sum(m.sin(m.cumprod(x)) * x), (x,)),
    ("cumprod along an axis", lambda x: knp.sum(knp.sin(knp.cumprod(x, axis=0))), lambda m: lambda x: m.sum(m.sin(m.cumprod(x, axis=0))), (rows,)),
    ("exclusive products", lambda x: cube(kjit.scan(x, "mul", exclusive=True)), lambda m: lambda x: cube(m.cumprod(x)[:-1]) + 1.0, (x,)),
    ("prod", lambda x: knp.prod(x) * knp.prod(x), lambda m: lambda x: m.prod(x) ** 2, (x,)),
    ("scan logaddexp", lambda x: knp.sum(kjit.scan(x * x, "logaddexp") * x), lambda m: lambda x: m.sum(cumulative(m, x * x) * x), (x,)),
    ("scan max", lambda x: cube(kjit.scan(x * x, "max")), lambda m: lambda x: cube(running(m, x * x)), (x,)),
    ("scan with index", lambda x: cube(kjit.scan_with_index(x * x)[0]), lambda m: lambda x: cube(running(m, x * x)), (x,)),
    ("scan by a function", lambda x: knp.sum(kjit.scan(x * x, damped) * x), lambda m: lambda x: m.sum(4 * (m.cumprod(1 + x * x / 4) - 1) * x), (x,)),
    ("reduce by a function", lambda x: kjit.reduce(x * x, damped) ** 2, lambda m: lambda x: (4 * (m.prod(1 + x * x / 4) - 1)) ** 2, (x,)),
    ("segments", lambda x: cube(kjit.reduce_segments(x * x, offsets)), lambda m: lambda x: cube(m.stack([p.sum() for p in parts(m, x * x)])), (x,)),
    ("segments logaddexp", lambda x: cube(kjit.reduce_segments(x * x, offsets, "logaddexp")), lambda m: lambda x: cube(m.stack([logsumexp(m, p) for p in parts(m, x * x)])), (x,)),
    ("segments max", lambda x: cube(kjit.reduce_segments(x * x, offsets, "max")), lambda m: lambda x: cube(m.stack([extreme(m, p, 1) for p in parts(m, x * x)])), (x,)),
    ("by key", lambda x: cube(kjit.reduce_by_key(keys, x * x)[1]), lambda m: lambda x: cube(m.stack([p.sum() for p in parts(m, x * x)])), (x,)),
    ("by key min", lambda x: cube(kjit.reduce_by_key(keys, x * x, "min")[1]), lambda m: lambda x: cube(m.stack([extreme(m, p, -1) for p in parts(m, x * x)])), (x,)),
    ("scan by key", lambda x: cube(kjit.scan_by_key(keys, x * x)), lambda m: lambda x: sum(cube(m.cumsum(p)) for p in parts(m, x * x)), (x,)),
    ("scan of segments", lambda x: cube(kjit.scan_segments(x * x, offsets)), lambda m: lambda x: sum(cube(m.cumsum(p)) for p in parts(m, x * x)), (x,)),
    ("bincount", lambda x: cube(kjit.bincount(keys, 3, x * x)), lambda m: lambda x: cube(m.stack([p.sum() for p in parts(m, x * x)])), (x,)),
    ("select", lambda x: cube(kjit.select_where(x * x, keys > 0)), lambda m: lambda x: cube((x * x)[2:]), (x,)),
    ("top k", lambda x: cube(kjit.top_k(x * x, 2)[0]), lambda m: lambda x: cube((x * x)[np.argsort(globals()["x"])[:2]]), (x,)),
    ("sort pairs", lambda x: knp.sum(kjit.sort_pairs(x, x * x * x)[1] * x), lambda m: lambda x: m.sum((x**3)[np.argsort(globals()["x"])] * x), (x,)),
]  # fmt: skip


def symmetric(a):
    return 0.5 * (a + a.T)


SYSTEMS = [
    ("cg", lambda a, b: cube(kjit.cg(symmetric(a), b * b, **EXACT).x), lambda m: lambda a, b: cube(m.linalg.solve(symmetric(a), b * b)), (matrix, x)),
    ("cg of a sparse matrix", lambda b: cube(kjit.cg(full, b * b, **EXACT).x), lambda m: lambda b: cube(m.linalg.solve(matrix, b * b)), (x,)),
    ("sparse product", lambda b: cube(sparse.dot(b * b)), lambda m: lambda b: cube(m.asarray(pattern) @ (b * b)), (x,)),
]  # fmt: skip
PAIRS = [
    ("pairs add", pairs_by("add"), lambda m: lambda x, y, s: cube(kernel(m, x, y, s).sum(1)), (x, y, 0.7)),
    ("pairs mean", pairs_by("mean"), lambda m: lambda x, y, s: cube(kernel(m, x, y, s).mean(1)), (x, y, 0.7)),
    ("pairs max", pairs_by("max"), lambda m: lambda x, y, s: cube(extreme(m, kernel(m, x, y, s), 1)), (x, y, 0.7)),
    ("pairs min", pairs_by("min"), lambda m: lambda x, y, s: cube(extreme(m, kernel(m, x, y, s), -1)), (x, y, 0.7)),
    ("pairs logaddexp", pairs_by("logaddexp"), lambda m: lambda x, y, s: cube(logsumexp(m, kernel(m, x, y, s), 1)), (x, y, 0.7)),
    ("pairs of rows", lambda u, v, f, s: cube(kjit.pairs(distance, u, (v, f), arguments=(s,))),
     lambda m: lambda u, v, f, s: cube((m.exp(-((u[:, None] - v[None]) ** 2 * s).sum(-1)) * f).sum(1)), (rows, others, c, scales)),
    ("pairs with a computed argument", lambda x, y: cube(kjit.pairs(gauss, x, y, arguments=(knp.sum(y * y),))),
     lambda m: lambda x, y: cube(kernel(m, x, y, (y * y).sum()).sum(1)), (x, y)),
]  # fmt: skip


# ---- comparisons ----


def host(found):
    return found.to_host() if hasattr(found, "to_host") else np.asarray(found)


def listed(found):
    return found if isinstance(found, tuple) else (found,)


def draw(args):
    return tuple(rng.standard_normal(np.shape(a)) if np.shape(a) else float(rng.standard_normal()) for a in args)


def product_with_second(program, args, along, other):
    """The product of two directions with the second derivatives, by complex steps and differences with
    Richardson's extrapolation, and its error: slopes may be large where their differences are small."""

    def slope(h):
        return program(*(a + h * d + 1e-30j * v for a, d, v in zip(args, along, other, strict=True))).imag / 1e-30

    a, b, c = ((slope(h) - slope(-h)) / (2 * h) for h in (4e-4, 2e-4, 1e-4))
    found = (64 * c - 20 * b + a) / 45
    return found, abs(found - (4 * c - b) / 3) + 1e-11 * abs(slope(0.0))


def near(found, expected, name, tolerance=1e-9, uncertain=0.0):
    error, size = np.max(np.abs(np.asarray(found) - expected)), 1 + np.max(np.abs(expected))
    assert error <= tolerance * size + uncertain, (name, found, expected, uncertain)


def check_second(name, ours, theirs, args):
    numbers, along, other = tuple(range(len(args))), draw(args), draw(args)
    expected, uncertain = product_with_second(theirs(np), args, along, other)
    for move in (lambda a: a, lambda a: kjit.array(a, device="cpu:1") if np.shape(a) else a):
        moved, moved_along = [move(a) for a in args], [move(a) for a in along]
        found = listed(kjit.hvp(ours, *numbers)(*moved, *moved_along))
        assert all(getattr(g, "device", None) == getattr(a, "device", None) for g, a in zip(found, moved, strict=True)), name
        near(sum(np.sum(host(g) * v) for g, v in zip(found, other, strict=True)), expected, name, uncertain=uncertain)
    if "cg" not in name:
        value, slope = (host(part) for part in kjit.jvp(ours, *numbers)(*moved, *moved_along))
        complex_step = theirs(np)(*(a + 1e-30j * d for a, d in zip(args, along, strict=True)))
        near(slope, complex_step.imag / 1e-30, name, 1e-11)
        near(value, complex_step.real, name, 1e-12)


def check_third(name, ours, theirs, args):
    """Differentiates the sum of the cubes of a product with second derivatives."""
    numbers, along = tuple(range(len(args))), draw(args)

    def norm(*values):
        return sum((g * g * g).sum() if getattr(g, "shape", ()) else g * g * g for g in listed(kjit.hvp(ours, *numbers)(*values, *along)))

    def norm_of_jax(*values):
        return sum((g**3).sum() for g in jax.jvp(jax.grad(theirs(jnp), numbers), values, along)[1])

    for found, expected in zip(listed(knp.grad(norm, *numbers)(*args)), jax.grad(norm_of_jax, numbers)(*args), strict=True):
        near(host(found), expected, name, 1e-8)


for program in (*FOLDS, *SYSTEMS, *PAIRS):
    check_second(*program)
if jax is not None:
    for program in (FOLDS[0], FOLDS[4], FOLDS[7], FOLDS[9], FOLDS[12], *SYSTEMS, PAIRS[0], PAIRS[4], PAIRS[5]):
        check_third(*program)
print("second_derivatives: good")
