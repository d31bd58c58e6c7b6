# REQUIRES: numba
# RUN: %numba-python %s 20261128 40
"""njit beside Numba itself: operators, math functions and ufuncs on scalars and elements of every pair of types. Results have the
same type and the same value. The suite has one seed, so that a change decides and not chance; `beside_numba.py [SEED [COUNT]]`
draws others."""
import collections
import math
import os
import random
import sys
import tempfile
import warnings

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
random.seed(seed)
rng = np.random.default_rng(seed)
TYPES = [np.dtype(t) for t in "? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()]
BINARY = "+ - * / // % ** << >> & | ^ < <= > >= == !=".split()
UNARY = ["+a", "~a", "not a", "abs(a)", "int(a)", "float(a)", "bool(a)", "round(a)"]
MATH = "floor ceil trunc sqrt exp sin atan log1p isnan isfinite fabs".split()
UFUNCS = "add subtract multiply maximum minimum fmax fmin floor_divide remainder bitwise_and sign square negative".split()
EXPRESSIONS = """a + b; a - b; a * b; a / b; a // b; a % b; a & b; a ^ b; (a << 3) + b; (a >> 1) - b; a < b; -a + b; ~a - b; a * 2 + b
a * a + b; a * b - 3; (a + b) / 2; (a + b) // 2; (a * 3) % b; a * 0.5 + b; (a < b) * a + b; np.sqrt(a * a) + b; np.maximum(a * 2, b)
np.abs(a * 2) - b; 1 - a * b; (a + b) > 3; np.minimum(a, 100) * b; a * 200 * a""".replace("\n", "; ").split("; ")
Pair = collections.namedtuple("Pair", "x y")
# Numba computes these otherwise on purpose or by mistake, each with its reason.
KNOWN = {
    "np.sign of complex numbers": "kjit has what NumPy has from 2.0 on",
    "np.sign of unsigned integers": "Numba 0.61 gives the largest one for what is above the half, NumPy 1",
    "shifts by more than the width": "Numba leaves the result open",
    "quotients of complex arrays by zero": "Numba raises ZeroDivisionError, kjit has NumPy's inf and nan",
    "integers ** integers beyond 53 bits": "Numba computes some of them in float64",
}


def types_in(values):
    """The types of numbers and arrays, and of those in tuples."""
    return [t for v in values for t in (types_in(v) if isinstance(v, tuple) else [getattr(v, "dtype", None)])]


def is_known(body, arguments):
    a, b = arguments
    if any(not isinstance(x, (np.generic, np.ndarray)) for x in arguments):
        return False
    if " / " in body and isinstance(b, np.ndarray) and "c" in a.dtype.kind + b.dtype.kind and not b.all():
        return True
    if "np.sign" in body:
        return a.dtype.kind in "cu"
    if ("<<" in body or ">>" in body) and ("2**40" in body or "-1" in body):
        return True
    if "**" in body and a.dtype.kind in "biu":
        exponent = 2**40 if "2**40" in body else 3 if " 3" in body else int(b.real.max() if b.dtype.kind in "biu" else 0)
        return abs(int(a.max())) > 1 and exponent > 0 and abs(int(a.max())) ** min(exponent, 64) >= 2**53
    return False


def value(dtype):
    if dtype.kind == "b":
        return dtype.type(random.random() < 0.5)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        few = [0, 1, 2, 3, 7, limits.max, limits.max // 3] + ([-1, -5, limits.min + 1] if dtype.kind == "i" else [])
        return dtype.type(random.choice([*few, int(rng.integers(limits.min + 1, limits.max, dtype=dtype.type))]))
    parts = [random.choice([0.0, 1.0, -1.5, 2.5, 3.75, -7.0, random.uniform(-50, 50)]) for _ in range(2)]
    return dtype.type(complex(*parts) if dtype.kind == "c" else parts[0])


def case():
    """A function's text, its arguments, and whether its values may differ by rounding."""
    kind = random.choice("operator operator operator element unary math ufunc variable literal arrays statement arguments".split())
    a, b = value(random.choice(TYPES)), value(random.choice(TYPES))
    if kind == "arrays":
        return case_of_arrays()
    if kind == "statement":
        return case_of_statement()
    if kind == "arguments":
        return case_of_arguments()
    operator = random.choice(BINARY)
    if operator in ("<<", ">>"):
        b = np.dtype(random.choice("i1 i2 i4 i8 u1 u2 u4 u8".split())).type(random.randrange(0, 60))
    if operator == "**":
        b = value(np.dtype(random.choice("fd"))) if random.random() < 0.5 else np.int64(random.randrange(0, 5))
    if operator in ("/", "//", "%") and b == 0:
        b = type(b)(1)
    if kind == "operator":
        return f"return a {operator} b", (a, b)
    if kind == "element":
        return f"return a[0] {operator} b[0]", (np.array([a]), np.array([b]))
    if kind == "literal":
        literal = random.choice(["3", "2.5", "-1", "True", "2**40"])
        return (f"return a {operator} {literal}" if random.random() < 0.5 or operator in ("/", "//", "%", "<<", ">>", "**") else f"return {literal} {operator} a"), (a, b)
    if kind == "unary":
        return f"return {random.choice(UNARY)}", (a, b)
    if kind == "math":
        return f"return math.{random.choice(MATH)}(a)", (value(np.dtype(random.choice("i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split()))), b)
    if kind == "ufunc":
        name = random.choice(UFUNCS)
        b = type(a)(b) if b == b and a.dtype.kind != "c" and b.dtype.kind != "c" else a
        return (f"return np.{name}(a)" if getattr(np, name).nin == 1 else f"return np.{name}(a, b)"), (a, b)
    return f"s = 0\n    for i in range(3):\n        s {random.choice(['+', '-', '*'])}= a\n    return s", (a, b)


def case_of_arrays():
    """An expression of whole arrays and numbers, as a result or in a loop over its elements."""
    types = [np.dtype(t) for t in "i1 i2 i4 i8 u1 u4 f4 f8".split()]
    a, b = (np.array([value(t) for _ in range(5)]) for t in random.choices(types, k=2))
    operators = random.choices("+ - *".split(), k=2)
    third = random.choice(["a", "b", "b[1]", "3", "0.5", "np.float32(2)", "len(a)"])
    text = f"a {operators[0]} b {operators[1]} {third}"
    text = random.choice([text, f"np.maximum(a, b) {operators[0]} {third}", f"({text}) > {third}", f"-a {operators[0]} b[::-1]"])
    made = random.choice(["r = np.zeros(2)\n    ", ""])
    return f"{made}c = {text}\n    return c", (a, b)


def case_of_statement():
    """An array expression that a compiled loop assigns to an array or sums up. A value between two operators has the type of a number."""
    a, b = (np.array([value(t) for _ in range(6)]) for t in random.choices(TYPES, k=2))
    text = random.choice(EXPRESSIONS)
    kinds = a.dtype.kind + b.dtype.kind
    floats = any(word in text for word in (" / ", "sqrt", "0.5")) or "f" in kinds or np.uint64 in (a.dtype, b.dtype)
    kind = "c16" if "c" in kinds else "f8" if floats else random.choice(["f8", "i8"])
    text = random.choice([f"out[:] = {text}", f"out[0] = np.sum({text})"])
    return f"out = np.zeros(6, np.{np.dtype(kind).name})\n    for k in range(1):\n        {text}\n    return out", (a, b)


def case_of_arguments():
    """Tuples, named tuples and None as arguments."""
    a, b, c = (value(np.dtype(random.choice("i4 i8 f4 f8".split()))) for _ in range(3))
    text, arguments = random.choice([
        ("return a[0] + b[1], a", ((a, b), (b, c))),
        ("return a.x + b, Pair(b, a.y)", (Pair(a, b), c)),
        ("if b is None:\n        return a * 2\n    return a + b", (a, random.choice([None, b]))),
        ("if b == 'first':\n        return a[0]\n    return a[1]", ((a, a), random.choice(["first", "last"]))),
        ("return a[0][1] - a[1] + b[0]", (((a, b), c), np.array([a, a]))),
    ])
    return text, arguments


def result(compiled, arguments):
    """(kind of the type, its bytes, value), or the error's class."""
    try:
        got = compiled(*arguments)
    except (numba.core.errors.NumbaError, kjit.Error, TypeError) as error:
        return error
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        return type(error).__name__
    if isinstance(got, tuple):
        return type(got).__name__, *(np.asarray(item) if not isinstance(item, tuple) else (type(item).__name__, *map(np.asarray, item)) for item in got)
    return np.asarray(got, object if type(got) is int else None)


def same(mine, theirs, is_single):
    if isinstance(mine, tuple) and isinstance(theirs, tuple) and len(mine) == len(theirs):
        return all(a == b if isinstance(a, str) else same(a, b, is_single) for a, b in zip(mine, theirs))
    if not isinstance(mine, np.ndarray) or not isinstance(theirs, np.ndarray):
        return type(mine) is type(theirs) and mine == theirs
    if mine.dtype.kind != theirs.dtype.kind:
        return False
    if mine.shape != theirs.shape or mine.shape and mine.dtype != theirs.dtype:
        return False
    if mine.dtype.kind in "iubO":
        return bool(np.all(mine == theirs))
    return bool(np.allclose(mine, theirs, rtol=3e-6 if is_single else 1e-13, atol=1e-30, equal_nan=True))


folder = tempfile.TemporaryDirectory()
tried, refused, wrong = 0, 0, []
while tried < count:
    body, arguments = case()
    space = {"math": math, "np": np, "Pair": Pair}
    text = f"def f(a, b):\n    {body}\n"
    file = os.path.join(folder.name, "function.py")
    with open(file, "w") as out:
        out.write(text)
    exec(compile(text, file, "exec"), space)
    if is_known(body, arguments):
        continue
    theirs = result(numba.njit(space["f"]), arguments)
    if isinstance(theirs, Exception):
        refused += 1  # Numba has no such function of these types
        continue
    tried += 1
    mine = result(kjit.njit(space["f"]), arguments)
    if not same(mine, theirs, any(t in (np.float32, np.complex64) for t in types_in(arguments))):
        shown = [x if not isinstance(x, np.ndarray) else f"{x!r} {x.dtype}" for x in (mine, theirs)]
        given = ", ".join(f"{x!r}: {getattr(x, 'dtype', '')}" for x in arguments)
        wrong.append(f"{body!r} of {given}: {shown[0]}, Numba {shown[1]}")
print("\n".join(wrong))
print(f"{tried} functions, {refused} that Numba refuses, {len(wrong)} differ; seed {seed}")
assert not wrong
