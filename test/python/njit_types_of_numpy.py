# REQUIRES: numba
# RUN: %numba-python %s
"""Functions of NumPy in njit functions that the interpreter runs: the types of quantiles and moments, and errors about types with their
place. Also functions inside of functions, `type(x)(v)`, and signatures of Numba's record types. Numba is the judge."""
import math
import os
import warnings

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import kjit.cuda.errors
import numba
import numpy as np
from kjit import njit

warnings.simplefilter("ignore")


def same(function, *args, judge=None):
    got, expected = njit(function)(*args), (judge or numba.njit(function))(*args)
    assert type(got) is type(expected), (function.__name__, args, got, expected)
    if isinstance(got, np.ndarray):
        assert got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=True), (function.__name__, args, got, expected)
    else:
        is_near = got == expected or isinstance(got, float) and math.isclose(got, expected, rel_tol=1e-9)
        assert is_near or got != got and expected != expected, (function.__name__, args, got, expected)


# ---- quantiles are floats, also of integers and bools ----


def largest(a):
    return np.quantile(a, 1)


def several(a):
    return np.percentile(a, (0, 50, 100))


def largest_number(a):
    return np.nanquantile(a, 1)


# functions whose compilation takes a second
several_of_numba, largest_of_numba = numba.njit(several), numba.njit(largest_number)
for function, kinds, judge in ((several, "i8 ?", several_of_numba), (largest, "u1", None), (largest_number, "i8 f4", largest_of_numba)):
    for kind in kinds.split():
        same(function, np.array([3, 0, 9, 4]).astype(kind), judge=judge)

# ---- moments of float32 have 64-bit differences: NumPy's differ in the seventh digit ----


def variance(a):
    return np.nanvar(a)


variance_of_numba = numba.njit(variance)
for numbers in ([1.1, 2.2, math.nan, 3.3, 7.7], [1000.1, 1000.2, 1000.7], list(np.sqrt(np.arange(500)) + 300)):
    same(variance, np.array(numbers, np.float32), judge=variance_of_numba)


# ---- errors about types ----


def wrong_name():
    return np.zeros(3, "ABC")


def wrong_count(x):
    y = np.zeros(3)
    return np.reshape(y, x)


def wrong_store(x):
    y = np.zeros(3)
    y[0] = x
    return y


def of_program(x):
    y = np.zeros(3)
    raise TypeError(x, y.size)


def calls(x):
    y = np.zeros(2)
    return y, wrong_count(x)


def wrong_callback(x):
    y = np.zeros(3)
    return abs(y + x[0])


for function, args, words, line in (
    (wrong_name, (), "ABC", 1),
    (wrong_count, ("x",), "integer", 2),
    (wrong_store, (2j,), "a complex number cannot be stored in an array of float64", 2),
    (wrong_callback, (5,), "subscriptable", 2),
):
    try:
        numba.njit(function)(*args)
        raise SystemExit("Numba takes it")
    except numba.TypingError:
        pass
    try:
        njit(function)(*args)
        raise SystemExit("no error")
    except kjit.SourceError as error:
        assert isinstance(error, TypeError) and isinstance(error, kjit.cuda.errors.TypingError), type(error).__mro__
        assert words in error.message and "^" in str(error) and error.file == __file__, error
        assert error.line == function.__code__.co_firstlineno + line, (error.line, error)
        assert isinstance(error.__cause__, TypeError)
with kjit.as_numba() as standin:  # the class that Numba programs use to catch it
    try:
        standin.njit(wrong_name)()
        raise SystemExit("no error")
    except standin.TypingError as error:
        assert "ABC" in error.message
try:
    njit(of_program)(7)
    raise SystemExit("no error")
except TypeError as error:
    assert type(error) is TypeError and error.args == (7, 3), error  # the program's own exception
try:
    njit(calls)("x")
    raise SystemExit("no error")
except kjit.SourceError as error:
    assert error.line == wrong_count.__code__.co_firstlineno + 2, error  # the innermost function
try:
    njit(wrong_count)(1, 2)
    raise SystemExit("no error")
except TypeError as error:
    assert "argument" in str(error), error

# ---- functions inside of functions read the variables of all functions around them ----


def three_deep(x):
    k = x * 2

    def first(y):
        def second(z):
            def third(w):
                return w * k + x + y + z

            return third(2)

        return second(y)

    return first(x) + first(k)


def passed(x):
    def inner(y):
        def innermost(z):
            return x + y + z

        return innermost(x * y)

    return inner(x * x)


for function in (three_deep, passed):
    for value in (3, 2.5):
        same(function, value)


# ---- type(x)(v) ----


def as_type(a, b):
    return type(a)(b)


for a, b in ((1, 2.5), (1.5, 2), (np.float32(1), 0.1)):
    same(as_type, a, b)

# ---- signatures with record types of Numba ----

dtype = np.dtype([("p", "f8"), ("row", "i4")])
own = numba.from_dtype(dtype)
records = np.zeros(3, dtype)
records["p"] = [1, 2, 3]


def field(a, i):
    return a[i].p


def field_of_one(record, factor):
    return record.p * factor


for signature, function, first in (
    (numba.float64(own[:], numba.uint64), field, records),
    ((own, numba.uint64), field_of_one, records[1]),
):
    ours, judge = njit(signature)(function), numba.njit(signature)(function)
    for second in (0, 1, 2, True):
        assert ours(first, second) == judge(first, second)
    for wrong, kinds in (((first, -1), (OverflowError,)), ((np.zeros(3), 1), (TypeError,))):
        for made in (ours, judge):
            try:
                made(*wrong)
                raise SystemExit("no error")
            except kinds:
                pass
