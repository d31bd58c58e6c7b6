# REQUIRES: numba
# RUN: %numba-python %s
"""The result type of a signature: njit converts numbers and items of tuples to it and rejects other results, as Numba does."""
import collections
import warnings

import kjit
import numba
import numpy as np
from numba import types as t

warnings.simplefilter("ignore")
Point = collections.namedtuple("Point", "x y")
ONES, ROWS = np.ones(2), np.ones((2, 3))


def same(x):
    return x


def more(x):
    return x + 1


def first(x):
    return x[0], x


def nothing(x):
    return None


def branch(x):
    return (1, x) if x > 2 else (x, 2)


pair = t.UniTuple(t.int32, 2)
CASES = [
    (t.UniTuple(t.float32, 2)(pair), same, ((2**24 + 1, 5),)),
    (t.Tuple((t.float32, t.int16))(pair), same, ((4, 70000),)),
    (t.Tuple((t.float32,))(pair), same, ((4, 5),)),
    (t.Tuple((t.uint8, t.boolean))(pair), same, ((-1, 3),)),
    (t.Tuple((pair, t.int64))(t.Tuple((pair, t.float64))), same, (((1, 2), 2.75),)),
    (t.Tuple((t.int64, t.float64[:]))(t.float64[::1]), first, (ONES * 2.5,)),
    (t.Tuple((t.int64, t.int64[:]))(t.float64[::1]), first, (ONES,)),
    (t.UniTuple(t.int64, 2)(t.float64), branch, (3.5,)),
    (t.UniTuple(t.complex128, 2)(t.float64), branch, (1.5,)),
    (t.int64[:](t.float64[:]), more, (ONES,)),
    (t.float64[::1](t.float64[::1]), more, (ONES,)),
    (t.float64[:, :](t.float64[::1]), more, (ONES,)),
    (t.float64[:, ::1](t.float64[::1, :]), same, (np.asfortranarray(ROWS),)),
    (t.float64(t.float64[::1]), more, (ONES,)),
    (t.float64[:](t.float64), more, (1.0,)),
    (t.UniTuple(t.float64, 2)(t.float64), more, (1.0,)),
    (t.int8(t.int64), more, (200,)),
    (t.float32(t.float64), more, (0.1,)),
    (t.float64(t.complex128), more, (1j,)),
    (t.complex64(t.float64), more, (0.1,)),
    (t.boolean(t.float64), more, (0.5,)),
    (t.none(t.int64), more, (200,)),
    (t.none(t.int64), nothing, (200,)),
]


def outcome(jit, signature, function, arguments):
    """Returns the result, or None and the class of the error."""
    try:
        return jit(signature)(function)(*arguments), True
    except (numba.core.errors.TypingError, kjit.Error):
        return None, False


def assert_equal(result, expected, case):
    assert type(result) is type(expected), (case, result, expected)
    if isinstance(expected, tuple):
        assert len(result) == len(expected), case
        for a, b in zip(result, expected):
            assert_equal(a, b, case)
        return
    np.testing.assert_array_equal(result, expected, err_msg=case)


for signature, function, arguments in CASES:
    case = f"{function.__name__} {signature}"
    (expected, is_there), (result, is_mine) = (outcome(jit, signature, function, arguments) for jit in (numba.njit, kjit.njit))
    assert is_mine == is_there, f"{case}: Numba has {expected}, kjit {result}"
    assert_equal(result, expected, case)

# Compiled callers get the same values.


def through_caller(jit, signature, a, b):
    called = jit(signature)(same)
    return jit(lambda a, b: called((a, b)))(a, b)


for signature in (t.UniTuple(t.float32, 2)(pair), t.Tuple((t.float32, t.int16))(pair)):
    expected, result = (through_caller(jit, signature, 2**24 + 1, 70000) for jit in (numba.njit, kjit.njit))
    assert_equal(result, expected, f"a caller of {signature}")

# The class of a named tuple is kept.
assert kjit.njit(t.NamedUniTuple(t.float64, 2, Point)(t.NamedUniTuple(t.float64, 2, Point)))(same)(Point(1.0, 2.0)) == Point(1.0, 2.0)
