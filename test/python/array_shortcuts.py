# RUN: %kjit-python %s
"""Repeated calls of functions of kjit.numpy, which the extension runs without Python code: results, errors and attributes are those of the first call."""
import inspect
import os
import random
import threading

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402
from kjit import _kjit  # noqa: E402

seed = seeds.seed
generator = np.random.default_rng(seed)
algorithms = []  # the algorithms that Python code has called
run_algorithm = _kjit.run_algorithm


def counted(context, name, *args, **options):
    algorithms.append(name)
    return run_algorithm(context, name, *args, **options)


_kjit.run_algorithm = counted


def numbers(shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.random(shape) < 0.5
    if kind == "c":
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return generator.integers(-5 if kind == "i" else 0, 6, shape).astype(dtype) if kind in "iu" else generator.standard_normal(shape).astype(dtype)


def same(got, expected, what):
    host, expected = np.asarray(got), np.asarray(expected)
    assert isinstance(got, kjit.Array) and host.shape == expected.shape and host.dtype == expected.dtype, (seed, what, host, expected)
    bound = {"f4": 1e-4, "c8": 1e-4}.get(host.dtype.str[1:], 1e-11)
    assert np.allclose(host, expected, rtol=bound, atol=bound, equal_nan=True), (seed, what, host, expected)


def repeated(call, expected, what):
    """Checks three calls with new data each; the last one must not have run Python code."""
    for turn in range(3):
        before = len(algorithms)
        given, wanted = expected()
        got = call(*given)
        same(got, wanted, (what, turn))
        ran = len(algorithms) - before
        assert turn < 2 or ran == 0, (seed, what, turn, algorithms[before:])


# ---- reductions: types, shapes, strides, axes ----

REDUCTIONS = "sum prod max min mean var std any all count_nonzero argmax argmin".split()
SHAPES = [(1,), (7,), (1000,), (3, 5), (17, 1), (4, 3, 2)]
for name in REDUCTIONS:
    for dtype in ("f4", "f8", "i4", "i8", "u1", "bool", "f2", "c8"):
        if dtype == "c8" and name not in ("sum", "prod", "mean", "any", "all", "count_nonzero"):
            continue
        if dtype == "f2" or dtype == "bool" and name in ("max", "min", "argmax", "argmin", "prod"):
            continue
        shape = random.Random(seed + len(name)).choice(SHAPES)
        for axis in (None, 0, -1):
            if name == "count_nonzero":
                def function(x, axis=None):
                    return np.asarray(np.count_nonzero(x, axis=axis), "i8")
            else:
                function = getattr(np, name)

            def make():
                x = numbers(shape, dtype)
                if name == "prod" and dtype == "c8":
                    x /= abs(x)  # products of 1000 complex numbers overflow to infinities and NaNs in any order
                return (knp.asarray(x),), function(x, axis=axis)

            repeated(lambda x: getattr(knp, name)(x, axis=axis), make, (name, dtype, shape, axis))

for name in ("sum", "max", "mean", "argmin"):
    for axis in (0, 1):
        def make():
            x = numbers((6, 8), "f4")
            return (knp.asarray(x)[::2, ::-1],), getattr(np, name)(x[::2, ::-1], axis=axis)

        repeated(lambda x: getattr(knp, name)(x, axis=axis), make, (name, "strided", axis))


def make_kept():
    x = numbers((3, 4, 5), "f8")
    return (knp.asarray(x),), np.sum(x, axis=(0, 2), keepdims=True)


repeated(lambda x: knp.sum(x, axis=(0, 2), keepdims=True), make_kept, "keepdims")
repeated(lambda x: x.sum((0, 2), keepdims=True), make_kept, "method")
special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "f4")
for name in ("sum", "max", "min", "mean", "prod", "any", "all"):
    with np.errstate(all="ignore"):
        repeated(getattr(knp, name), lambda: ((knp.asarray(special),), getattr(np, name)(special)), (name, "special"))

# ---- products, cumulative sums ----

for dtype in ("f4", "f8", "i8", "c16"):
    def vectors():
        x, y = numbers(300, dtype), numbers(300, dtype)
        return (knp.asarray(x), knp.asarray(y)), np.dot(x, y)

    repeated(knp.dot, vectors, ("dot", dtype))
    repeated(knp.matmul, vectors, ("matmul", dtype))
    repeated(lambda x, y: x @ y, vectors, ("@", dtype))
    if dtype != "c16":
        repeated(knp.vecdot, vectors, ("vecdot", dtype))

    def matrices():
        x, y = numbers((4, 7), dtype), numbers((7, 3), dtype)
        return (knp.asarray(x), knp.asarray(y)), x @ y

    repeated(lambda x, y: x @ y, matrices, ("matrices", dtype))

    def line():
        x = numbers(500, dtype)
        return (knp.asarray(x),), np.cumsum(x)

    repeated(knp.cumulative_sum, line, ("cumulative_sum", dtype))
    repeated(knp.cumsum, line, ("cumsum", dtype))
    repeated(lambda x: x.cumsum(), line, (".cumsum", dtype))

# the same array for both operands, and another one afterwards
for _ in range(3):
    x, y = numbers(64, "f8"), numbers(64, "f8")
    kx, ky = knp.asarray(x), knp.asarray(y)
    before = len(algorithms)
    same(knp.dot(kx, kx), x @ x, "one array twice")
    same(knp.dot(kx, ky), x @ y, "two arrays")
    same(knp.dot(ky, kx), x @ y, "two arrays in the other order")
    same(ky @ ky, y @ y, "one array twice by an operator")
assert len(algorithms) == before, algorithms[before:]

# ---- calls that Python handles ----

x = numbers((5, 6), "f4")
kx = knp.asarray(x)
for _ in range(3):
    same(knp.sum(kx * 2 + 1), (x * 2 + 1).sum(), "an expression")
    same(knp.sum(kx, dtype=knp.float64), x.sum(dtype="f8"), "dtype")
    same(knp.std(kx, correction=1.0), x.std(ddof=1), "correction")
    same(knp.sum(x), x.sum(), "NumPy's array")
    same(knp.max([1.0, 3.0]), np.max([1.0, 3.0]), "a list")
    out = knp.zeros(6, dtype=knp.float32)
    assert knp.sum(kx, axis=0, out=out) is out
    same(out, x.sum(0), "out")
    same(np.sum(kx), x.sum(), "NumPy's function")
    same(knp.sum(kx, initial=3.0), x.sum(initial=3.0), "initial")
    assert knp.grad(lambda v: knp.sum(v * v))(kx).shape == (5, 6)

# a pending array that reads the operand keeps its value, and the result is writable
before = kx + 1
total = knp.sum(kx, axis=0)
total += 1
kx[...] = 0
same(before, x + 1, "a pending array")
same(total, x.sum(0) + 1, "a written result")
same(knp.sum(kx, axis=0), np.zeros(6, "f4"), "after a write")


def refused(call, kind, text):
    for _ in range(3):
        try:
            call()
        except kind as error:
            assert text in str(error), (text, str(error))
        else:
            raise AssertionError(f"not refused: {text}")


empty = knp.zeros(0, dtype=knp.float32)
refused(lambda: knp.max(empty), ValueError, "without elements there is no maximum; pass initial=")
refused(lambda: knp.sum(kx, axis=2), IndexError, "axis 2 is out of bounds for array of dimension 2")
refused(lambda: knp.dot(kx, kx), ValueError, "do not fit")
refused(lambda: knp.sum(kx, axis=True, axes=1), TypeError, "axes")
refused(lambda: knp.sum(), TypeError, "argument")
for _ in range(3):
    same(knp.sum(empty), np.float32(0), "nothing")
    same(knp.sum(kx, axis=1), np.zeros(5, "f4"), "axis 1")
    refused(lambda: knp.sum(kx, axis=1.0), TypeError, "integer")

# more shapes than a function keeps, then the first ones again
for size in [*range(1, 200), *range(1, 200)]:
    values = np.arange(size)
    assert int(knp.sum(knp.asarray(values))) == values.sum(), size

# ---- attributes ----

assert knp.sum.__name__ == "sum" and "sum of the elements" in knp.sum.__doc__
assert list(inspect.signature(knp.sum).parameters) == ["x", "axis", "dtype", "out", "keepdims", "initial"]
assert "function sum" in repr(knp.sum) and callable(knp.sum)
bound = kx.sum
assert float(bound()) == 0 and float(kjit.Array.sum(kx)) == 0
refused(lambda: knp.sum.nothing, AttributeError, "nothing")

# ---- threads ----

failures = []


def work(number):
    try:
        own = np.random.default_rng(number)
        for turn in range(300):
            x = own.integers(-9, 9, 50 + turn % 3)
            if int(knp.sum(knp.asarray(x))) != x.sum() or int(knp.argmax(knp.asarray(x))) != x.argmax():
                failures.append((number, turn))
    except Exception as error:
        failures.append(error)


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures

# ---- a forked child makes its own context ----

child = os.fork()
if not child:
    status = 1
    try:
        fresh = knp.asarray(np.arange(10.0))
        if all(float(knp.sum(fresh)) == 45 for _ in range(3)):
            refused(lambda: knp.sum(kx), kjit.Error, "before a fork")
            status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
