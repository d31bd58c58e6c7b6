# REQUIRES: greenlet
# RUN: %kjit-python %s
"""Functions of numbers in the simulator and in compiled kernels for the CPU have the same results, bit for bit and with the same type.
The simulator computes most of them in the interpreter (kjit/simulator/exact.py); the values are all special ones of each type and
random ones. Divisions by zero and failed assertions inside of a function are those of the compiled kernel, too."""
import itertools
import math
import os
import sys

os.environ["KJIT_DEVICE"] = "cpu"
import numpy as np
import kjit
from kjit import cuda
from kjit.simulator import exact

TYPES = [np.float64, np.float32, np.float16, np.int64, np.uint64, np.int32, np.uint32, np.int8, np.uint8, np.bool_]
rng = np.random.default_rng(20261130)
failures = 0


def fail(text):
    global failures
    failures += 1
    print(text)


def values(kind):
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, 2, 3, 5, 100, limits.max // 2, limits.max // 3]
        return np.concatenate([np.array(special, dtype), rng.integers(limits.min, limits.max, 20, dtype)])
    limits = np.finfo(dtype)
    special = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e3, -1e3, 65504, 2**31, 2**32, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**64,
               np.inf, -np.inf, np.nan, limits.max, limits.min, limits.tiny, limits.smallest_subnormal, limits.eps, np.pi]
    drawn = [rng.normal(size=20), rng.normal(size=20) * 100, np.exp(rng.normal(size=20) * 20)]
    with np.errstate(over="ignore"):
        return np.concatenate([np.array(special, np.float64).astype(dtype), *(part.astype(dtype) for part in drawn)])


def kernel_of(function, count, is_pair):
    """The kernel stores the results of the function; those of frexp and modf have two parts."""
    if is_pair:
        def kernel(r, s, x, y, z):
            i = cuda.grid(1)
            r[i], s[i] = function(x[i])
    elif count == 1:
        def kernel(r, s, x, y, z):
            i = cuda.grid(1)
            r[i] = function(x[i])
    elif count == 2:
        def kernel(r, s, x, y, z):
            i = cuda.grid(1)
            r[i] = function(x[i], y[i])
    else:
        def kernel(r, s, x, y, z):
            i = cuda.grid(1)
            r[i] = function(x[i], y[i], z[i])
    return kernel


def operands(kind, count):
    one = values(kind)
    if count == 1:
        return [one, one, one]
    tuples = list(itertools.product(one[:28], repeat=2)) if count == 2 else list(itertools.product(one[:28:3], repeat=3))
    columns = [np.array(column, kind) for column in zip(*tuples)]
    return [np.concatenate([column, one[rng.permutation(len(one))]]) for column in (*columns, columns[0])[:3]]


def run(kernel, kinds, x, simulated):
    results = [np.zeros(len(x[0]), kind) for kind in kinds]
    cuda.config.ENABLE_CUDASIM = int(simulated)
    try:
        with np.errstate(all="ignore"):
            cuda.jit(kernel, opt=False)[len(x[0]), 1](*results, *x)  # opt: no product and sum are fused
    finally:
        cuda.config.ENABLE_CUDASIM = 0
    return results


def bits(array):
    """Two numbers are equal if they are the same number; all NaNs are equal."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def result_kinds(function, arguments):
    """Returns the types of the result in the interpreter."""
    with np.errstate(all="ignore"):
        result = exact.find(function, tuple(map(type, arguments)))(*arguments)
    return [type(r) for r in result] if isinstance(result, tuple) else [type(result)] * 2


def compiled_result(function, count, kind):
    """Returns the type of the result in a compiled kernel, as kernel IR."""
    names = ", ".join("abc"[:count])
    device = cuda.jit(device=True)(eval(f"lambda {names}: function({names})", {"function": function}))
    return device._function.find_result(", ".join([cuda.types.typeof(kind(1)).text] * count))


def name_of(function):
    return getattr(function, "__name__", None) or function.name


def compare():
    """Returns the number of functions and types that were compared."""
    compared = 0
    for (function, count), kind in itertools.product(exact._RULES, TYPES):
        if exact.find(function, (kind,) * count) is None:
            continue
        compared += 1
        x, text = operands(kind, count), f"{name_of(function)} of {kind.__name__}"
        is_pair = function in (math.frexp, math.modf)
        kinds = result_kinds(function, [column[0] for column in x[:count]])
        texts = [cuda.types.typeof(k(1)).text for k in kinds]
        wanted = compiled_result(function, count, kind)
        if wanted != (f"({texts[0]}, {texts[1]})" if is_pair else texts[0]):
            fail(f"{text}: the result is {texts} in the simulator and {wanted} in a compiled kernel")
            continue
        kernel = kernel_of(function, count, is_pair)
        for a, b in zip(run(kernel, kinds, x, True), run(kernel, kinds, x, False)):
            at = next((i for i in range(len(a)) if bits(a[i:i + 1]) != bits(b[i:i + 1])), None)
            if at is not None:
                fail(f"{text}: of {[column[at] for column in x[:count]]} it is {a[at]!r} in the simulator and {b[at]!r} in a compiled kernel")
    return compared


# ---- errors in a function ----


def quotients(r, x):
    r[0] = cuda.fp16.hdiv(x[0], x[1])
    r[1], r[2] = divmod(np.float32(x[0]), np.float32(x[1]))


def root(r, x):
    r[0] = math.isqrt(int(x[0]))


def outcome(function, x, simulated, **options):
    """Returns the bytes of the result, or the class of the error and its text."""
    r = np.zeros(3, np.float32)
    cuda.config.ENABLE_CUDASIM = int(simulated)
    try:
        cuda.jit(function, opt=False, **options)[1, 1](r, x)
        return bits(r)
    except kjit.KernelError as error:
        return isinstance(error, ZeroDivisionError), error.text if simulated or not isinstance(error, ZeroDivisionError) else "division by zero"
    finally:
        cuda.config.ENABLE_CUDASIM = 0


def compare_errors():
    for function, numbers in ((quotients, [1, 0]), (quotients, [0, 0]), (root, [-4]), (root, [17])):
        for debug in (False, True):
            x = np.array(numbers, np.float16)
            found, wanted = (outcome(function, x, simulated, debug=debug) for simulated in (True, False))
            if found != wanted:
                fail(f"{function.__name__} of {x}, debug={debug}: {found} in the simulator and {wanted} in a compiled kernel")


count = compare()
compare_errors()
assert count > 250, count
if failures:
    sys.exit(f"simulator_functions.py: {failures} failures")
print(f"{count} functions of one type have the same results in the simulator and on the CPU")
