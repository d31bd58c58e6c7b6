# REQUIRES: numba
# RUN: %numba-python %s
# ruff: noqa: B009, C416
"""hash, hasattr and getattr, integer powers, and np.sign of complex numbers in njit functions, compared with Numba and
Python."""
import collections
import inspect
import itertools
import math
import os
import random
import struct

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np
from kjit import cuda, njit

np.seterr(all="ignore")

# ---- hash: the same values as CPython's ----

hashed = njit(lambda v: hash(v))
hashed_pair = njit(lambda a, b: (hash((a, b)), hash((a,)), hash((a, (b, a))), hash(((a, b), 2.5))))
numbers = [0, 1, -1, -2, 5, 2**61 - 1, 2**61 - 2, 1 - 2**61, 2**63 - 1, -(2**63), 0.5, -0.0, 1e300, -1.0, 5e-324, 2.0**61]
numbers += [math.inf, -math.inf, True, 3 + 4j, -1 + 0j, 1j, 2.0**-1074 * 3]
numbers += [np.uint64(2**64 - 1), np.int8(-1), np.float32(0.1), np.complex64(1.5 - 2j)]
numbers += [random.getrandbits(63) - 2**62 for _ in range(50)]
bits = [struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0] for _ in range(200)]
numbers += [value for value in bits if value == value]
for value in numbers:
    assert hashed(value) == hash(value), (value, hashed(value), hash(value))
for a, b in itertools.product(numbers[:24:3], repeat=2):
    assert hashed_pair(a, b) == (hash((a, b)), hash((a,)), hash((a, (b, a))), hash(((a, b), 2.5))), (a, b)
assert njit(lambda: hash("text"))() == hash("text")


@cuda.jit
def hash_in_kernel(r, x):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = hash(x[i])


r, x = np.zeros(8, np.int64), np.linspace(-2, 3, 8)
hash_in_kernel[1, 8](r, x)
assert r.tolist() == [hash(value) for value in x.tolist()]

# ---- attributes ----

Point = collections.namedtuple("Point", "x y")
record = np.array([(1.5, 2)], [("x", "f8"), ("shape", "i4")])


def of_anything(v):
    return hasattr(v, "shape"), hasattr(v, "real"), hasattr(v, "sum"), getattr(v, "ndim", -1), getattr(v, "size", 2.5)


def of_named(v):
    return hasattr(v, "x"), getattr(v, "x"), getattr(v, "x", 3)


def branches(v):
    if hasattr(v, "shape"):
        return v.shape[0]
    return -1


for value in (np.arange(6.0).reshape(2, 3), 3, 2.5, 1j, (1, 2)):
    assert njit(branches)(value) == numba.njit(branches)(value), value
    if not isinstance(value, tuple):  # Numba rejects some names of a tuple
        assert njit(of_anything)(value) == numba.njit(of_anything)(value), value
for value in (Point(1, 2.5), record[0]):
    assert njit(of_named)(value) == numba.njit(of_named)(value), value
assert njit(lambda v: (hasattr(v, "z"), getattr(v, "z", 4)))(Point(1, 2.5)) == (False, 4)
for wrong in (lambda v: hasattr(v, "z"), lambda v: getattr(v, "nbytes", 1), lambda v, n: getattr(v, n, 1)):
    try:
        njit(wrong)(*[record[0], 1][: wrong.__code__.co_argcount])
        raise SystemExit("no error")
    except kjit.Error as error:
        assert error.line == wrong.__code__.co_firstlineno and "^" in str(error), error

# ---- powers of integers; a power of 0 is a division by zero, which np.power and vectorize do not check ----


def outcome(function, *args):
    try:
        value = function(*args)
        return type(value), value
    except ZeroDivisionError:
        return ZeroDivisionError


kinds = [np.int8, np.int32, np.int64, np.uint8, np.uint64]
for function in (lambda a, b: a**b, lambda a, b: np.power(a, b), lambda a, b: pow(a, b)):
    own, theirs = njit(function), numba.njit(function)
    for first, second in itertools.product(kinds, repeat=2):
        for a, b in itertools.product((0, 1, 2, -1, -2), (-1, -2, -3, 0, 5)):
            if a < np.iinfo(first).min or b < np.iinfo(second).min:
                continue
            given = first(a), second(b)
            assert outcome(own, *given) == outcome(theirs, *given), (given, outcome(own, *given), outcome(theirs, *given))

# Constant exponents below 0: the reciprocal of a product, which is a division by zero for 0.0.
MINUS_SEVEN = -7
for function in (lambda a: a**-1, lambda a: a**-2, lambda a: a ** (-3), lambda a: a**-17, lambda a: a**MINUS_SEVEN, lambda a: a**-65537):
    own, theirs = njit(function), numba.njit(function)
    for a in (0.0, -0.0, 0, 1, -1, 2, 0.1, 1.7, -2.5, 1e-200, 1e200, math.inf, math.nan, np.float32(0), np.float32(0.3), np.uint8(2), 3j, True):
        given, expected = outcome(own, a), outcome(theirs, a)
        assert repr(given) == repr(expected), (inspect.getsource(function), a, given, expected)


# Compound assignments, pow() and exponents that are known only at run time follow the same rules.
def raised_once(a, b):
    a **= -1
    return a


def raised_to(a, b):
    a **= b
    return a


def raised_twice(a, b):
    c = a
    c **= -2
    c **= 3
    return c


for function in (raised_once, raised_to, raised_twice, lambda a, b: pow(a, -3) + pow(b, 2), lambda a, b: pow(a, b), lambda a, b: a**b):
    own, theirs = njit(function), numba.njit(function)
    for a, b in itertools.product((0.0, 2.0, -3.5, np.float32(1.7), 3, 0, -2, np.int8(3), np.uint8(5), True, 2 + 1j), (-1, 2, 0, -2.0, 0.5, np.float32(3))):
        given, expected = outcome(own, a, b), outcome(theirs, a, b)
        if expected is ZeroDivisionError or given is ZeroDivisionError:
            assert given is expected, (function, a, b, given, expected)
            continue
        is_near = np.isclose(given[1], expected[1], rtol=1e-6, atol=0, equal_nan=True)
        assert given[0] is expected[0] and is_near, (function, a, b, given, expected)
for function in (raised_once, raised_to, raised_twice):  # arrays change in place
    x = np.array([1.0, 2.0, -4.0])
    y = x.copy()
    assert np.allclose(njit(function)(x, 2), numba.njit(function)(y, 2)) and np.allclose(x, y) and x[1] != 2, function

power = kjit.vectorize(["int64(int64, int64)"])(lambda a, b: a**b)
assert power(np.array([5, 0, 6]), np.array([1, -1, 2])).tolist() == [5, -(2**63), 36]
try:
    njit(lambda a, b: a**b)(0, -1)
except ZeroDivisionError as error:
    assert os.path.basename(__file__) in str(error) and error.line and "^" in str(error), error

# ---- np.sign of complex numbers: as in the installed NumPy version ----

special = [0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf]
points = np.array([complex(a, b) for a, b in itertools.product(special, repeat=2)])
for kind in (np.complex128, np.complex64):
    given = points.astype(kind)
    for one, want in zip(given, np.sign(given)):
        got = njit(lambda z: np.sign(z))(one)
        assert str(complex(got)) == str(complex(want)), (one, got, want)
    assert np.array_equal(njit(lambda z: np.sign(z) * 2)(given), np.sign(given) * 2, equal_nan=True)

# ---- errors: a thread's exception is not one of the compiler's, which Numba calls TypingError ----

failing = [
    (lambda v: 1 // v, 0, ZeroDivisionError, False),
    (lambda v: max([w for w in v]), np.zeros(0), ValueError, False),
    (lambda v: v.no_such_attribute, np.zeros(3), kjit.Error, True),
    (lambda v: v + no_such_name, 1, kjit.SourceError, True),  # noqa: F821
    (lambda v: v[0], 1, kjit.TypingError, True),
    (lambda v: v, object(), TypeError, True),
]
for function, value, kind, is_of_compiler in failing:
    try:
        njit(function)(value)
        raise SystemExit("no error")
    except kind as error:
        assert isinstance(error, cuda.errors.TypingError) == is_of_compiler, error
        assert isinstance(error, cuda.errors.NumbaError) == isinstance(error, kjit.ProgramError) == is_of_compiler, error

# ---- ---- functions that the interpreter runs: views of the same elements are identical, errors have Numba's text ----
# ----


def identities(a, b):
    c = a * 2
    return a is b, a is not b, c is a, c is c


matrix = np.zeros((2, 5), np.int32)
for other in (matrix, matrix[:], matrix.copy(), matrix.view("uint32"), matrix.T, matrix[:-1], matrix[:, ::-1]):
    assert njit(identities)(matrix, other) == numba.njit(identities)(matrix, other), other
for make in (lambda n: np.zeros(n), lambda n: np.empty((2, n)), lambda n: np.full(n, 1.5), lambda n: np.ones(shape=n)):
    texts = []
    for compiled in (njit, numba.njit):
        try:
            compiled(make)(-3)
        except ValueError as error:
            texts.append(error.args)
    assert len(texts) == 2 and texts[0] == texts[1], texts
