# REQUIRES: numba
# RUN: %numba-python %s
"""Forms of functions that programs use, as kjit.njit and numba.njit run them: both return the same values, types and
memory layouts, and leave the same values in the arguments. A pair of results that Numba does not give is not compared."""
import copy
import os
import warnings

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")


def of_array(value):
    return value.dtype, value.shape, value.flags.c_contiguous, value.flags.f_contiguous


def same(got, want):
    if isinstance(want, np.ndarray):
        equal = isinstance(got, np.ndarray) and of_array(got) == of_array(want)
        return equal and np.allclose(got, want, rtol=1e-12, atol=0, equal_nan=True)
    if isinstance(want, (tuple, list)):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, (float, complex)):
        return type(got) is type(want) and np.allclose(got, want, rtol=1e-12, atol=0, equal_nan=True)
    return type(got) is type(want) and got == want


def outcome(decorate, function, args):
    """The result and the arguments after a call; an exception of the program counts as its result."""
    args = copy.deepcopy(args)
    try:
        result = decorate(function)(*args)
    except (ValueError, IndexError, ZeroDivisionError, AttributeError) as error:
        return (type(error).__name__ if not isinstance(error, kjit.Error) else type(error).__mro__[1].__name__), args
    return result, args


def check(function, *args):
    want, got = outcome(numba.njit, function, args), outcome(kjit.njit, function, args)
    assert same(got[0], want[0]), (function.__code__, args, got[0], want[0])
    assert all(same(a, b) for a, b in zip(got[1], want[1]) if isinstance(b, np.ndarray)), (function.__code__, got[1], want[1])


# ---- the lowest integer, divided by -1 ----

LOWEST = -(2**63)
for x, y in [(LOWEST, -1), (LOWEST, 1), (LOWEST, -2), (LOWEST + 1, -1), (2**63 - 1, -1), (0, -1), (7, -2)]:
    check(lambda x, y: x // y, x, y)
    check(lambda x, y: divmod(x, y), x, y)
    check(lambda x, y: x % y, x, y)
    check(lambda x: x // -1, x)
for kind in (np.int8, np.int32, np.int64):
    check(lambda x, y: x // y, kind(np.iinfo(kind).min), kind(-1))

# ---- complex numbers ----

PARTS = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
NUMBERS = np.array([complex(a, b) for a in PARTS for b in PARTS])
LEFT, RIGHT = (part.ravel().copy() for part in np.meshgrid(NUMBERS, NUMBERS))
check(lambda x, y: np.multiply(x, y), LEFT, RIGHT)
check(lambda x, y: np.add(x, y), LEFT, RIGHT)
check(lambda x, y: np.subtract(x, y), LEFT, RIGHT)
check(lambda x, y: np.equal(x, y), LEFT, RIGHT)
check(lambda x, y: np.divide(x, y), LEFT[:8] + 1, RIGHT[:8] + 1)
for name in ("isnan", "isinf", "isfinite", "square", "conjugate", "rint", "negative"):
    space = {"np": np}
    check(eval(f"lambda x: np.{name}(x)", space), NUMBERS)
    check(eval(f"lambda x: np.{name}(x)", space), 1.5 - 2j)
for y in (1 + 1j, -1j, 2 + 0j, 0j, 2.5 + 0j, complex(1, np.inf)):
    check(lambda x, y: x**y, 0j, y)
    check(lambda x, y: np.power(x, y), np.array([0j, 1 + 1j]), np.array([y, y]))

print("as Numba")
