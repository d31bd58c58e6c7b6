# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: env KJIT_DEVICE=cpu:1 KJIT_CPU_DEVICES=2 %kjit-python %s 25
"""kjit.grad of random programs over whole arrays: broadcasting, reductions along axes, indices, products, choices, orders, joins. The same text
runs in NumPy, and a central difference of it along a random direction is the expected derivative. Where JAX is installed, its gradients and
its products with second derivatives are expected, too. An argument is the number of programs, and a second one the seed."""

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
    print("JAX is not installed: differences are the only reference")

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 40
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else seeds.seed
rng = np.random.default_rng(SEED)
print("seed", SEED)


class Program:
    """A random program as source text. values: (name, shape) of all arrays so far."""

    def __init__(self):
        self.lines, self.values, self.used = [], [], set()
        self.names = []

    def pick(self, rank=None):
        chosen = [v for v in self.values if rank is None or len(v[1]) == rank]
        return chosen[rng.integers(len(chosen))] if chosen else None

    def add(self, text, shape):
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        self.values.append((name, shape))

    def step(self):
        kind = STEPS[rng.integers(len(STEPS))]
        kind(self)


def unary(p):
    x, shape = p.pick()
    texts = ["m.sin({0})", "m.tanh({0})", "m.exp(-{0} * {0})", "{0} / (2.0 + {0} * {0})", "m.sqrt({0} * {0} + 1.5)", "m.log1p({0} ** 2)",
             "m.maximum({0}, 0.1)", "m.where({0} > 0.2, {0} * {0}, m.cos({0}))", "abs({0})", "m.clip({0}, -0.6, 0.7)", "m.arctan(-{0}) * 2",
             "m.hypot({0}, 0.5 + m.square({0}))", "1.0 - {0}", "m.logaddexp({0}, 0.3)"]  # fmt: skip
    p.add(texts[rng.integers(len(texts))].format(x), shape)


def binary(p):
    (x, a), (y, b) = p.pick(), p.pick()
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return
    if np.prod(shape) < 200:
        p.add(["{0} * {1}", "{0} - {1}", "{0} + m.sin({1})", "{0} / (1.5 + {1} ** 2)", "m.minimum({0}, {1})", "m.arctan2({0}, 2.0 + {1} * {1})"][rng.integers(6)].format(x, y), shape)  # fmt: skip


def reduction(p):
    x, shape = p.pick()
    if not shape:
        return
    axis = None if rng.random() < 0.2 else int(rng.integers(-len(shape), len(shape))) if rng.random() < 0.7 else tuple(range(len(shape)))[: rng.integers(1, len(shape) + 1)]
    keep = bool(rng.random() < 0.4)
    result = np.sum(np.empty(shape), axis=axis, keepdims=keep).shape
    kinds = ["sum", "mean", "prod", "max", "min", "var", "std"]
    # the deviation of one element is at a kink
    name = kinds[rng.integers(len(kinds) if np.prod(shape) > np.prod(result) else len(kinds) - 1)]
    form = "m.{1}({0}, axis={2}, keepdims={3})" if name == "prod" or rng.random() < 0.5 else "{0}.{1}(axis={2}, keepdims={3})"
    source = f"m.sin({x} + 0.01 * m.reshape(m.arange({float(np.prod(shape))}), {shape}))"  # has no two equal elements
    p.add(form.format(f"({source})", name, axis, keep), result)


def scan(p):
    x, shape = p.pick()
    if shape:
        axis = int(rng.integers(-len(shape), len(shape)))
        texts = ["m.cumsum({0}, axis={1})", "m.cumprod({0}, axis={1})", "m.sort(m.sin({0} + 0.01 * m.reshape(m.arange({2}), {3})), axis={1})", "m.flip({0}, axis={1})",
                 "m.roll({0}, 2, axis={1})", "m.diff(m.concatenate([{0}, {0} * {0}], axis={1}), axis={1})[..., :1]", "m.repeat({0}, 2, axis={1})"]  # fmt: skip
        text = texts[rng.integers(len(texts))].format(x, axis, float(np.prod(shape)), shape)
        p.add(text, eval_shape(text, x, shape))


def eval_shape(text, name, shape):
    return eval(text, {"m": np, name: np.ones(shape)}).shape


def move(p):
    x, shape = p.pick()
    if not shape:
        return
    texts = ["{0}[1:]", "{0}[..., ::-1]", "{0}[None]", "{0}[-1]", "{0}[m.asarray([0, 0, -1])]", "m.swapaxes({0}, 0, -1)", "{0}.T", "m.reshape({0}, (-1,))",
             "m.expand_dims({0}, -1)", "m.stack([{0}, m.sin({0})], axis=-1)", "m.squeeze({0}[None], axis=0)", "m.tile({0}, 2)", "m.moveaxis({0}, 0, -1)",
             "m.take({0}, m.asarray([0, -1, 0]), axis=-1)", "m.hstack([{0}, {0} * 2.0])", "m.vstack([{0}, {0} - 1.0])",
             "m.broadcast_to({0}, (2, *{0}.shape))", "{0}.ravel()[2:5]"]  # fmt: skip
    text = texts[rng.integers(len(texts))].format(x)
    made = eval_shape(text, x, shape)
    if np.prod(made) and np.prod(made) < 200 and len(made) < 5:
        p.add(text, made)


def product(p):
    (x, a), (y, b) = p.pick(), p.pick()
    if len(a) and len(b) and a[-1] == b[-1 if len(b) == 1 else -2]:
        if len(a) < 3 and len(b) < 3:
            text = ["{0} @ {1}", "m.matmul({0}, {1})", "m.dot({0}, {1})"][rng.integers(3)].format(x, y)
            p.add(text, np.dot(np.ones(a), np.ones(b)).shape)
    elif len(a) == 2 and len(b) == 2 and a[0] == b[0]:
        p.add(["m.einsum('ij,ik->jk', {0}, {1})", "m.tensordot({0}, {1}, axes=((0,), (0,)))", "{0}.T @ {1}"][rng.integers(3)].format(x, y), (a[1], b[1]))
    elif len(a) == 1 and len(b) == 1:
        p.add(f"m.outer({x}, {y})", (a[0], b[0]))
    elif len(a) == 2:
        p.add([f"m.trace({x})", f"m.linalg.norm({x} + 2.0)"][rng.integers(2)], ())


STEPS = [unary, unary, binary, binary, reduction, scan, move, move, product]


def make():
    p = Program()
    shapes = [(4, 3), (3,), (3, 2)]
    p.values = list(zip(("x", "y", "z"), shapes, strict=True))
    for _ in range(rng.integers(4, 12)):
        p.step()
    last = [f"m.sum(m.tanh({name}) * {round(float(rng.uniform(0.5, 1.5)), 3)})" for name, _ in p.values[-4:]]
    text = "\n".join(["def program(x, y, z):", *p.lines, f"    return {' + '.join(last)}", ""])
    return text, [rng.uniform(-1, 1, shape) for shape in shapes]


def compiled(text, module):
    space = {"m": module}
    exec(text, space)
    return space["program"]


def host(x):
    return x.to_host() if hasattr(x, "to_host") else np.asarray(x)


def difference(f, args, along):
    """A central difference with Richardson's extrapolation, and its error. The one-sided differences of a smooth function are apart by
    less for a smaller step. At a kink much closer than a step they are not, although the central differences of both steps agree."""
    start = f(*args)
    sides = [[(f(*(x + h * d for x, d in zip(args, along))) - start) / h for h in (step, -step)] for step in (1e-5, 5e-6)]
    coarse, fine = ((right + left) / 2 for right, left in sides)
    apart_coarse, apart_fine = (right - left for right, left in sides)
    return (4 * fine - coarse) / 3, abs(fine - coarse) + abs(2 * apart_fine - apart_coarse)


compared = 0
for number in range(COUNT):
    text, args = make()
    along = [rng.standard_normal(x.shape) for x in args]
    expected, error = difference(compiled(text, np), args, along)
    for convert in (lambda x: x, kjit.array) if number % 4 == 0 else (lambda x: x,):
        given = [convert(x) for x in args]
        value, *found = kjit.value_and_grad(compiled(text, knp if number % 2 else np))(*given)
        assert all(type(g) is type(x) and host(g).shape == x.shape for g, x in zip(found, given, strict=True)), text
        got = sum(float(np.sum(host(g) * d)) for g, d in zip(found, along, strict=True))
        if error < 1e-4 * (1 + abs(expected)):  # no kink within a step
            compared += 1
            assert abs(got - expected) <= 1e-6 * (1 + abs(expected)) + 10 * error, (text, args, got, expected)
        if jax is None:
            continue
        theirs = compiled(text, jnp)
        for g, want in zip(found, jax.grad(theirs, (0, 1, 2))(*args), strict=True):
            np.testing.assert_allclose(host(g), want, rtol=1e-10, atol=1e-11, err_msg=text)
        second = kjit.hvp(compiled(text, knp))(*args, *along)
        wanted = jax.jvp(jax.grad(theirs, (0, 1, 2)), tuple(args), tuple(along))[1]
        for g, want in zip(second, wanted, strict=True):
            np.testing.assert_allclose(host(g), want, rtol=1e-9, atol=1e-9, err_msg=text)
assert compared > COUNT // 2, compared
print(f"{compared} derivatives compared with differences")
