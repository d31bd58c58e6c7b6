# REQUIRES: numba
# RUN: %numba-python %s 20261129 60
"""Compares njit with Numba itself: operators, math functions and ufuncs on scalars and elements of every pair of types.
Results have the same type and the same value. The suite has one seed, so that a change decides and not chance;
`beside_numba.py [SEED [COUNT]]` draws others."""
import collections
import copy
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
import seeds

warnings.simplefilter("ignore")
np.seterr(all="ignore")
seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
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
FUNCTIONS = """np.where(a > 1, a, 0); np.where(a > 1, a, 0.5); np.where(a > 1, a, b); np.where(a > 1)[0]; np.where(a > 1, a, a[0])
np.cumsum(a); a.cumprod(); np.var(a); a.std(); np.sum(a); np.prod(a); a.mean(); np.full_like(a, 3); np.append(a, a); np.diff(a)
np.repeat(a, 2); np.sort(a)[::-1]; a[a > 1]; np.unique(a); a[::-2]; a[4:0:-2]; a[-2:-5:-1].sum(); np.clip(a, 1, 3); np.nonzero(a)[0]
a.astype(np.int32); a.astype(np.uint8); np.flip(a); np.argmax(a); a.reshape(5, 1).sum(axis=0); np.median(a); np.count_nonzero(a)
a[np.array([1, -1])]; np.roll(a, 1); np.bitwise_and(a, 3); np.left_shift(a, 2); np.logical_not(a); np.any(a > 2)""".replace(
    "\n", "; "
).split("; ")
CASTS = [f"np.{t}(a)" for t in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 bool_".split()]
# Expressions of numbers in functions that create arrays and therefore stay in Python.
IN_PYTHON = [*CASTS, "divmod(a, b)", "a if a > b else b", "b if a == 3 else 0", "a and b", "a or b", "int(a)", "round(a)", "min(a, b)", "abs(a) // 2", "-a"]
RECORDS = [
    "return a.x * 2 + a.y",
    "return a.x.sum() + len(a.y), a[1:].x[0]",
    "a.x[:] = b; return a.x[0]",
    "a['y'][1] += 2; a[0].x = b; return a.y",
    "return outer(a.x) + outer(a['y'])",
    "return a.x[::-1], a.y[a.y > 1], a[::-1].x",
    "return a.x.shape, a.y.size, np.sum(a.x * a.y)",
    "v = a.x; v[1] = b; return v * 2",
]
Pair = collections.namedtuple("Pair", "x y")
# Expressions for which Numba has other results, by design or by mistake, each with the reason.
KNOWN = {
    "np.sign of complex numbers": "with NumPy 2 kjit has its values, Numba those of NumPy 1",
    "np.sign of unsigned integers": "Numba 0.61 gives the largest one for what is above the half, NumPy 1",
    "shifts by more than the width": "Numba leaves the result open",
    "quotients of complex arrays by zero": "Numba raises ZeroDivisionError, kjit has NumPy's inf and nan",
    "integers ** integers beyond 53 bits": "Numba computes some of them in float64",
    "the least integer // -1": "Numba's quotient is 0",
}


def types_in(values):
    """Returns the types of numbers and arrays, also inside of tuples."""
    return [t for v in values for t in (types_in(v) if isinstance(v, tuple) else [getattr(v, "dtype", None)])]


def is_known(body, arguments):
    a, b = arguments
    if any(not isinstance(x, (np.generic, np.ndarray)) for x in arguments):
        return False
    if " / " in body and isinstance(b, np.ndarray) and "c" in a.dtype.kind + b.dtype.kind and not b.all():
        return True
    if "np.sign" in body:
        return a.dtype.kind == "u" or a.dtype.kind == "c" and not np.__version__.startswith("1.")
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
    """A function's source text, its arguments, and whether its values may differ by rounding."""
    kind = random.choice(KINDS)
    a, b = value(random.choice(TYPES)), value(random.choice(TYPES))
    if kind in OTHER_CASES:
        return OTHER_CASES[kind]()
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
    """An array expression that a compiled loop assigns to an array or sums. A value between two operators has the type
    of a number."""
    a, b = (np.array([value(t) for _ in range(6)]) for t in random.choices(TYPES, k=2))
    text = random.choice(EXPRESSIONS)
    kinds = a.dtype.kind + b.dtype.kind
    floats = any(word in text for word in (" / ", "sqrt", "0.5")) or "f" in kinds or np.uint64 in (a.dtype, b.dtype)
    kind = "c16" if "c" in kinds else "f8" if floats else random.choice(["f8", "i8"])
    text = random.choice([f"out[:] = {text}", f"out[0] = np.sum({text})"])
    return f"out = np.zeros(6, np.{np.dtype(kind).name})\n    for k in range(1):\n        {text}\n    return out", (a, b)


def case_of_functions():
    """A function of NumPy or a method of whole arrays."""
    a, b = (np.array([value(np.dtype(t)) for _ in range(5)]) for t in random.choices("i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split(), k=2))
    return f"return {random.choice(FUNCTIONS)}", (a, b)


def case_in_python():
    """An expression of numbers, or an assignment to an element, in a function that creates an array."""
    a, b = (value(np.dtype(t)) for t in random.choices("i1 i2 i4 i8 u1 u4 f4 f8".split(), k=2))
    if random.random() < 0.3:
        a = random.choice([np.float64, np.float32])(random.choice([1e10, -1e10, 1e20, -3.7, 300.5, np.nan, np.inf, 2**31]))
    if random.random() < 0.3:
        kind = random.choice("int8 int32 int64 uint8 uint32 float32 bool_".split())
        return f"r = np.zeros(2, np.{kind})\n    r[0] = a\n    r[1] += {random.choice(['1', '300', '2.5'])}\n    return r", (a, b)
    b = b or type(b)(1)
    return f"r = np.zeros(2)\n    return {random.choice([*IN_PYTHON, *CASTS])}, r", (a, b)


def case_of_zeros():
    """Divisions by zero under both error models."""
    a, b = value(np.dtype(random.choice("i4 i8 u4 f4 f8".split()))), np.dtype(random.choice("i4 i8 u4 f4 f8".split())).type(0)
    text = random.choice(["a / b", "a // b", "a % b", "divmod(a, b)", "a // (b + 1)"])
    made = random.choice(["", "r = np.zeros(1)\n    "])
    return f"{made}return {text}", (a, b), {"error_model": random.choice(["python", "numpy"])}


def case_of_records():
    """Fields of all elements of an array of records, which may be packed."""
    dtype = np.dtype([("x", random.choice(["f8", "f4", "i8"])), ("y", random.choice(["i4", "i2", "f8"]))], align=random.random() < 0.5)
    a = np.zeros(4, dtype)
    a["x"], a["y"] = rng.integers(0, 9, 4), rng.integers(0, 4, 4)
    return random.choice(RECORDS).replace("; ", "\n    "), (a, random.choice([3, 2.5]))


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


OTHER_CASES = {
    "arrays": case_of_arrays, "statement": case_of_statement, "arguments": case_of_arguments, "functions": case_of_functions,
    "in_python": case_in_python, "zeros": case_of_zeros, "records": case_of_records,
}
KINDS = ["operator"] * 3 + "element unary math ufunc variable literal".split() + [*OTHER_CASES]


def total(x):
    s = 0.0
    for v in x:
        s += v
    x[0] += 1
    return s


def result(compiled, arguments):
    """Returns (kind of the type, its bytes, value), or the class of the error."""
    try:
        got = compiled(*arguments)
    except ZeroDivisionError:
        return "ZeroDivisionError"
    except (numba.core.errors.NumbaError, kjit.Error, TypeError, AttributeError, AssertionError, NotImplementedError) as error:
        return error
    except (ValueError, OverflowError) as error:
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
    body, arguments, *options = case()
    options = options[0] if options else {}
    space = {"math": math, "np": np, "Pair": Pair}
    text = f"def f(a, b):\n    {body}\n"
    file = os.path.join(folder.name, "function.py")
    with open(file, "w") as out:
        out.write(text)
    exec(compile(text, file, "exec"), space)
    if is_known(body, arguments):
        continue
    changed = [copy.deepcopy(arguments) for _ in range(2)]
    space["outer"] = numba.njit(total)
    theirs = result(numba.njit(**options)(space["f"]), changed[0])
    if isinstance(theirs, Exception):
        refused += 1  # Numba does not have this function for these types
        continue
    tried += 1
    space["outer"] = kjit.njit(total)
    mine = result(kjit.njit(**options)(space["f"]), changed[1])
    records = [x for x in changed if isinstance(x[0], np.ndarray) and x[0].dtype.names]
    if records and not np.array_equal(*(changed_array for changed_array, _ in records)):
        wrong.append(f"{body!r}: the array becomes {records[1][0]}, Numba {records[0][0]}")
    if not same(mine, theirs, any(t in (np.float32, np.complex64) for t in types_in(arguments))):
        shown = [x if not isinstance(x, np.ndarray) else f"{x!r} {x.dtype}" for x in (mine, theirs)]
        given = ", ".join(f"{x!r}: {getattr(x, 'dtype', '')}" for x in arguments)
        wrong.append(f"{body!r} of {given}: {shown[0]}, Numba {shown[1]}")
print("\n".join(wrong))
print(f"{tried} functions, {refused} that Numba refuses, {len(wrong)} differ; seed {seed}")
assert not wrong
