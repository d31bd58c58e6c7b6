#!/usr/bin/env python3
"""Compares kjit_reduce with NumPy for random shapes, axes, strides, types and operators. Prints the seed; --seed repeats a
run."""
import argparse
import os
import secrets
import sys
import warnings

import numpy as np

from calls import Algorithms, Failure

OPERATORS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
             "logaddexp": np.logaddexp}
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
TYPES = {"add": INTEGERS + ["f2", "f4", "f8", "c8", "c16", "?"], "mul": INTEGERS + ["f4", "f8", "c8", "?"], "logaddexp": ["f4", "f8"]}
ORDERED = INTEGERS + ["f2", "f4", "f8"]
SHAPES = [(), (1,), (7,), (100003,), (1000, 300), (3, 70001), (70001, 3), (50, 60, 70), (5, 1, 20000), (257, 16), (16, 257), (2, 3, 4, 5), (64, 129, 33), (0,), (0, 5), (5, 0, 3), (1, 1, 9), (4096, 12)]
MODULE = """
func last(x, y) { return y != 0 ? y : x }
func product(i, j, x, y) { return x[i] * y[j] }
func twice(i, j, v, r) { r[j, i] = 2 * v }
"""


def values_of(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.7
    if dtype.kind in "iu":
        low, high = max(np.iinfo(dtype).min, -100), min(np.iinfo(dtype).max, 100)
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(dtype)
    return (rng.integers(-64, 65, shape) / 8).astype(dtype)


def strided(rng, values):
    """Returns the same values with other strides: axes are reversed, reordered, or have gaps."""
    if not values.ndim or rng.random() < 0.4:
        return values
    order = rng.permutation(values.ndim)
    steps = [int(rng.choice([1, 1, 2, 3])) for _ in order]
    room = np.zeros([values.shape[axis] * step + 1 for axis, step in zip(order, steps)], values.dtype)
    view = room[tuple(slice(1, 1 + values.shape[axis] * step, step) for axis, step in zip(order, steps))].transpose(np.argsort(order))
    view = view[tuple(slice(None, None, int(rng.choice([1, -1]))) for _ in order)]
    view[...] = values
    return view


def axes_of(rng, rank):
    """Returns the axes as kjit takes them, and as a tuple for NumPy."""
    if rng.random() < 0.2:
        return None, tuple(range(rank))
    axes = tuple(int(axis) for axis in rng.permutation(rank)[:rng.integers(0, rank + 1)])
    return [axis - rank if rng.random() < 0.5 else axis for axis in axes], axes


def empty(rng, shape, dtype):
    return strided(rng, np.full(shape, 77).astype(dtype))


def compare(title, got, want, dtype):
    tolerance = {"f2": 2e-3, "f4": 1e-5, "c8": 1e-5}.get(np.dtype(dtype).str[1:], 1e-12)
    exact = np.dtype(dtype).kind in "iub"
    same = np.array_equal(got, want) if exact else np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not same:
        where = np.flatnonzero(~np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True).reshape(-1))
        raise SystemExit(f"WRONG: {title}: {where.size} of {want.size}, first at {where[0]}: {got.reshape(-1)[where[0]]}, expected {want.reshape(-1)[where[0]]}")


def expected(operator, x, axes, keeps, initial, dtype):
    """Returns NumPy's result, computed with higher precision if the operator rounds."""
    wide = {"f2": "f4"}.get(np.dtype(dtype).str[1:], dtype) if operator != "logaddexp" else np.float64
    options = {} if initial is None else {"initial": initial}
    with np.errstate(all="ignore"):
        return OPERATORS[operator].reduce(x.astype(wide) if wide != dtype else x, axis=axes, keepdims=keeps, **(options | {"dtype": wide if np.dtype(dtype).kind != "b" else None}))


def check_numpy(rng, kjit):
    operator = str(rng.choice(list(OPERATORS)))
    dtype = str(rng.choice(TYPES.get(operator, INTEGERS + ["?"] if operator in ("and", "or", "xor") else ORDERED)))
    shape = SHAPES[rng.integers(len(SHAPES))]
    x = np.asarray(values_of(rng, dtype, shape))
    if x.dtype.kind == "f" and x.size and rng.random() < 0.3:
        x.reshape(-1)[rng.integers(0, x.size, 3)] = np.nan
    if operator == "mul" and x.dtype.kind in "fc":
        x[...] = np.where(rng.random(shape) < 1 - min(0.001, 20 / max(x.size, 1)), 1, x)  # keeps the result finite
    axes, numpy_axes = axes_of(rng, len(shape))
    keeps = bool(rng.integers(2))
    initial = values_of(rng, dtype, ())[()] if rng.random() < 0.3 else None
    title = f"{operator} of {dtype}{list(shape)}, axes {axes}, initial {initial}"
    reduced = int(np.prod([shape[axis] for axis in numpy_axes]))
    has_identity = operator in ("add", "mul", "and", "or", "xor", "logaddexp")
    kjit.begin()
    view = kjit.array(strided(rng, x))
    result_type, result_shape = kjit.describe_reduce(view, operator, axes=axes, initial=initial)
    numpy_type = OPERATORS[operator].reduce(np.ones(2, dtype)).dtype
    if result_type != numpy_type or result_shape != tuple(n for axis, n in enumerate(shape) if axis not in numpy_axes):
        raise SystemExit(f"WRONG: {title}: the result would be {result_type}{list(result_shape)}")
    kept_shape = [1 if axis in numpy_axes else n for axis, n in enumerate(shape) if keeps or axis not in numpy_axes]
    if operator in ("add", "mul") and np.dtype(result_type).kind in "iu" and rng.random() < 0.3:
        result_type = np.dtype(rng.choice(INTEGERS))  # the low bits of the same sum
    r = empty(rng, kept_shape, result_type)
    if not reduced and initial is None and not has_identity and r.size:
        try:
            kjit.reduce(kjit.array(r), view, operator, axes=axes)
        except Failure as failure:
            assert "no identity" in str(failure), failure
            return
        raise SystemExit(f"WRONG: {title}: is not refused")
    kjit.reduce(kjit.array(r), view, operator, axes=axes, initial=initial)
    compare(title, r, expected(operator, x, numpy_axes, keeps, initial, result_type), result_type)


def named(name, lines, dtype):
    """Returns NumPy's result over the last axis."""
    if name in ("any", "all", "argmin", "argmax"):
        return getattr(lines, name)(axis=-1)
    if name == "count_nonzero":
        return np.count_nonzero(lines, axis=-1)
    return getattr(lines, name)(axis=-1, dtype="c16" if lines.dtype.kind == "c" else "f8").astype(dtype)


def check_named(rng, kjit):
    """Reductions that need more than one operator."""
    name = str(rng.choice(["any", "all", "count_nonzero", "argmin", "argmax", "mean", "var", "std"]))
    dtype = str(rng.choice(ORDERED + ["?"] + (["c8", "c16"] if name in ("any", "all", "count_nonzero", "mean") else [])))
    shape = SHAPES[rng.integers(len(SHAPES))]
    x = np.asarray(values_of(rng, dtype, shape))
    if name in ("any", "all", "count_nonzero"):
        x[rng.random(shape) < rng.choice([0, 0.5, 0.9999, 1])] = 0
    if x.dtype.kind == "f" and x.size and rng.random() < 0.3:
        x.reshape(-1)[rng.integers(0, x.size, 3)] = np.nan
    if dtype == "f2" and name in ("var", "std", "mean"):
        x = np.asarray(np.clip(x, -2, 2)).astype(dtype)
    axes, numpy_axes = axes_of(rng, len(shape))
    title = f"{name} of {dtype}{list(shape)}, axes {axes}"
    kept = [axis for axis in range(x.ndim) if axis not in numpy_axes]
    reduced = int(np.prod([shape[axis] for axis in numpy_axes]))
    lines = x.transpose(kept + sorted(numpy_axes)).reshape([shape[axis] for axis in kept] + [reduced])
    kjit.begin()
    view = kjit.array(strided(rng, x))
    result_type, result_shape = kjit.describe_reduce(view, name, axes=axes)
    numpy_type = np.dtype("i8") if name == "count_nonzero" else getattr(np.ones(2, dtype), name)().dtype
    if result_type != numpy_type or result_shape != lines.shape[:-1]:
        raise SystemExit(f"WRONG: {title}: the result would be {result_type}{list(result_shape)}")
    r = empty(rng, lines.shape[:-1], result_type)
    if not reduced and name.startswith("arg") and r.size:
        try:
            kjit.reduce(kjit.array(r), view, name, axes=axes)
        except Failure as failure:
            assert "is undefined" in str(failure), failure
            return
        raise SystemExit(f"WRONG: {title}: is not refused")
    kjit.reduce(kjit.array(r), view, name, axes=axes)
    if r.size:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(title, r, named(name, lines, result_type), "f2" if dtype == "f2" and result_type.kind == "f" else "f4" if result_type.kind in "fc" else result_type)


def several_of(rng, dtype, reduced, functions):
    """Returns operators for an element type: names, and sometimes a func that is not commutative."""
    names = [name for name in ("add", "min", "max", "fmin", "fmax", "and", "or", "xor") if dtype in TYPES.get(name, INTEGERS + ["?"] if name in ("and", "or", "xor") else ORDERED)]
    names += ["any", "all", "count_nonzero", "mean"] + (["argmin", "argmax", "var", "std"] if dtype != "c8" else [])
    if not reduced:
        names = [name for name in names if name not in ("min", "max", "fmin", "fmax", "argmin", "argmax")]
    chosen = [str(name) for name in rng.choice(names, rng.integers(1, 6))]
    if reduced and dtype in ("i4", "f8") and rng.random() < 0.5:
        chosen.insert(int(rng.integers(len(chosen) + 1)), functions["last"])
    return chosen


def check_several(rng, kjit, functions):
    """Compares several results of one pass with kjit_reduce and with NumPy."""
    dtype = str(rng.choice(ORDERED + ["?", "c8"]))
    shape = SHAPES[rng.integers(len(SHAPES))]
    x = np.asarray(values_of(rng, dtype, shape))
    if x.dtype.kind == "f" and x.size and rng.random() < 0.3:
        x.reshape(-1)[rng.integers(0, x.size, 3)] = np.nan
    if dtype == "f2":
        x = np.asarray(np.clip(x, -2, 2)).astype(dtype)
    axes, numpy_axes = axes_of(rng, len(shape))
    reduced = int(np.prod([shape[axis] for axis in numpy_axes]))
    operators = several_of(rng, dtype, reduced, functions)
    title = f"several {operators} of {dtype}{list(shape)}, axes {axes}"
    kept = [axis for axis in range(x.ndim) if axis not in numpy_axes]
    lines = x.transpose(kept + sorted(numpy_axes)).reshape([shape[axis] for axis in kept] + [reduced])
    kjit.begin()
    view = kjit.array(strided(rng, x))
    results = [empty(rng, result_shape, result_type) for result_type, result_shape in kjit.describe_several(view, operators, axes=axes)]
    kjit.reduce_several([kjit.array(r) for r in results], view, operators, axes=axes)
    for operator, r in zip(operators, results):
        if kjit.describe_reduce(view, operator, axes=axes) != (r.dtype, r.shape) or r.shape != lines.shape[:-1]:
            raise SystemExit(f"WRONG: {title}: {operator} would be {r.dtype}{list(r.shape)}")
        digits = "f2" if dtype == "f2" and r.dtype.kind == "f" else "f4" if r.dtype.kind in "fc" else r.dtype
        if operator == functions["last"]:
            want = empty(rng, r.shape, r.dtype)
            kjit.reduce(kjit.array(want), view, operator, axes=axes)
        elif operator in OPERATORS:
            want = expected(operator, x, numpy_axes, False, None, r.dtype)
        else:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = named(operator, lines, r.dtype) if r.size else r
        compare(f"{title}: {operator}", r, want, digits)


def check_order(rng, kjit, functions):
    """An operator that is not commutative."""
    shape = [(1000, 300), (3, 70001), (70001, 3), (50, 60, 70), (100003,), (5, 400, 16)][rng.integers(6)]
    x = np.where(rng.random(shape) < 0.999, 0, rng.integers(1, 100, shape)).astype(str(rng.choice(["i4", "f8", "i1"])))
    axes, numpy_axes = axes_of(rng, len(shape))
    kept = [axis for axis in range(x.ndim) if axis not in numpy_axes]
    lines = x.transpose(kept + sorted(numpy_axes)).reshape([shape[axis] for axis in kept] + [-1])
    at = lines.shape[-1] - 1 - np.argmax(lines[..., ::-1] != 0, axis=-1)
    want = np.take_along_axis(lines, at[..., None], -1)[..., 0]
    r = empty(rng, want.shape, x.dtype)
    kjit.begin()
    kjit.reduce(kjit.array(r), kjit.array(strided(rng, x)), functions["last"], axes=axes)
    compare(f"last of {x.dtype}{list(shape)}, axes {axes}", r, want, "i8")


def check_funcs(rng, kjit, functions):
    """Funcs read the operands and write the results."""
    shape = [(1000, 300), (3, 70001), (7, 5)][rng.integers(3)]
    x, y = (values_of(rng, "f8", n) for n in shape)
    axis = int(rng.integers(2))
    r = np.full((1, shape[1 - axis])[::1 if axis else -1], -1.0)
    kjit.begin()
    source = kjit.function(functions["product"], [strided(rng, x), strided(rng, y)], shape)
    target = kjit.function(functions["twice"], [r], [1 if i == axis else n for i, n in enumerate(shape)])
    kjit.reduce(target, source, "add", axes=[axis])
    compare(f"sum of products {shape}, axis {axis}", r.T, 2 * np.outer(x, y).sum(axis=axis, keepdims=True), "f8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = secrets.randbits(31) if given.seed is None else given.seed
    print(f"reductions on {given.device}, seed {seed}", flush=True)
    kjit = Algorithms(given.libdir, given.device)
    module = kjit.parse(MODULE)
    functions = {name: kjit.find(module, name) for name in ("last", "product", "twice")}
    for number in range(given.count):
        rng = np.random.default_rng([seed, number])
        if number % 8 == 3:
            check_several(rng, kjit, functions)
        elif number % 4 == 0:
            check_numpy(rng, kjit)
        elif number % 4 == 1:
            check_named(rng, kjit)
        elif number % 4 == 2:
            check_order(rng, kjit, functions)
        else:
            (check_funcs if rng.random() < 0.3 else lambda *_: check_numpy(rng, kjit))(rng, kjit, functions)
    kjit.release(module)


if __name__ == "__main__":
    sys.exit(main())
