# REQUIRES: numba
# RUN: %numba-python %s
"""Forms of functions that programs use, run by kjit.njit and by numba.njit. Both return the same values, types and
memory layouts, and leave the same values in the arguments. Results that Numba does not return are not compared."""
import copy
import functools
import os
import warnings

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")


RAISED = (ValueError, IndexError, ZeroDivisionError, AttributeError)


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


@functools.cache
def compiled(decorate, function):
    return decorate(function)


def outcome(decorate, function, args):
    """Returns the result and the arguments after a call. An exception of the program counts as its result."""
    args = copy.deepcopy(args)
    try:
        result = compiled(decorate, function)(*args)
    except RAISED as error:
        return next(kind for kind in RAISED if isinstance(error, kind)).__name__, args
    return result, args


def check(function, *args):
    want, got = outcome(numba.njit, function, args), outcome(kjit.njit, function, args)
    assert same(got[0], want[0]), (function.__code__, args, got[0], want[0])
    assert all(same(a, b) for a, b in zip(got[1], want[1]) if isinstance(b, np.ndarray)), (function.__code__, got[1], want[1])


# ---- the lowest integer, divided by -1 ----

LOWEST = -(2**63)


def quotients(x, y):
    return x // y, x % y, divmod(x, y), x // -1


for x, y in [(LOWEST, -1), (LOWEST, 1), (LOWEST, -2), (LOWEST + 1, -1), (2**63 - 1, -1), (0, -1), (7, -2)]:
    check(quotients, x, y)
for kind in (np.int8, np.int32):
    check(quotients, kind(np.iinfo(kind).min), kind(-1))

# ---- complex numbers ----

PARTS = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
NUMBERS = np.array([complex(a, b) for a in PARTS for b in PARTS])
LEFT, RIGHT = (part.ravel().copy() for part in np.meshgrid(NUMBERS, NUMBERS))
check(lambda x, y: np.multiply(x, y), LEFT, RIGHT)
check(lambda x, y: np.add(x, y), LEFT, RIGHT)
check(lambda x, y: np.subtract(x, y), LEFT, RIGHT)
check(lambda x, y: np.equal(x, y), LEFT, RIGHT)
check(lambda x, y: np.divide(x, y), LEFT[:8] + 1, RIGHT[:8] + 1)


def of_one(x):
    return np.isnan(x), np.isinf(x), np.isfinite(x), np.square(x), np.conjugate(x), np.rint(x), np.negative(x)


check(of_one, NUMBERS)
check(of_one, 1.5 - 2j)


def powers(x, y, z):
    return x**y, np.power(z, y)


for y in (1 + 1j, -1j, 2 + 0j, 0j, 2.5 + 0j, complex(1, np.inf)):
    check(powers, 0j, y, np.array([0j, 1 + 1j]))

# ---- ufuncs with an output array ----


def fill(x, y, r):
    np.add(x, y, r)


def fill_in_loop(x, y, r):
    for i in range(2):
        np.multiply(x, y + i, r)


def returned(x, y, r):
    return np.subtract(x, y, r)


ROWS, ROW = np.arange(6.0).reshape(2, 3), np.array([1.0, -2, 3])
for x, y, shape in [(ROWS, ROWS, (2, 3)), (ROW, ROWS, (2, 3)), (ROWS, 2.5, (2, 3)), (ROW, ROW, (2, 3)), (ROW[:1], ROW[:1], (4,)), (1.5, 2, (3,))]:
    check(fill, x, y, np.zeros(shape))
    check(returned, x, y, np.zeros(shape))
    check(fill, x, y, np.zeros(shape, np.float32))
    if isinstance(y, np.ndarray):
        check(fill_in_loop, x, y, np.zeros(shape))
for result in (np.zeros(2), np.zeros(5), np.zeros((2, 2))):  # Numba reads and writes beyond the end
    assert outcome(kjit.njit, fill, (ROW, ROW, result))[0] == "ValueError"


def two_results(x, y):
    quotient, remainder = np.divmod(x, y)
    return quotient, remainder, np.divmod(x, y)[1].sum()


def filled_pair(x, y, quotient, remainder):
    np.divmod(x, y, quotient, remainder)
    return quotient.sum()


for kind in (np.int8, np.uint16, np.int64, np.float32, np.float64):
    x, y = np.array([7, 5, 3, 0], kind), np.array([2, 3, 4, 5], kind)
    check(two_results, x, y)
    check(filled_pair, x, y, np.zeros(4, kind), np.zeros(4, kind))
for one in (lambda x: np.modf(x), lambda x: np.frexp(x)):  # Numba does not have them
    got = kjit.njit(one)(ROWS + 0.25)
    assert all(map(same, got, one(ROWS + 0.25))), got

# ---- slices and ellipses as arguments and variables ----


def element(x, at):
    return x[at]


def stored(x, at):
    x[at] = 7
    return x[at] * 2


def in_loop(x, at, n):
    for i in range(n):
        x[at] += i
    return x


def over_slice(x, at):
    total = 0.0
    for v in x[at]:
        total += v
    for i in range(at.start, at.stop):
        total += 10 * x[i]
    return total


LINE = np.arange(6.0)
SLICES = [slice(1, 4), slice(None), slice(None, None, -1), slice(-3, None, 2), slice(0, 100), slice(2, 2), slice(4, None, -2), 3]
for at in SLICES:
    check(element, LINE, at)
    check(stored, LINE, at)


def fields(x, at):
    return at.start, at.stop, at.step, x[at].sum()


for at in SLICES[:-1]:
    check(fields, LINE, at)
    check(in_loop, LINE, at, 3)
check(over_slice, LINE, slice(1, 4))
for at in [(1, slice(1, 3)), (slice(0, 1), 1), (..., 1), (slice(None), slice(0, 3, 2)), (0, ...)]:
    check(element, ROWS, at)
    check(stored, ROWS, at)
check(lambda n: slice(1, n).indices(9), 5)
check(lambda x, n: x[slice(1, n)], LINE, 4)
with warnings.catch_warnings():
    warnings.simplefilter("error")  # slices outside of loops cause no warning
    assert same(kjit.njit(nopython=True)(lambda x, n: x[slice(1, n)])(LINE, 4), LINE[1:4])
check(lambda n: (slice(n).start, slice(2, n).step, slice(n, None, -1).start), 4)

# ---- results of vectorize in NumPy's memory order ----

BLOCK = np.arange(24.0).reshape(2, 3, 4)
FORTRAN = np.asfortranarray(BLOCK)
LAYOUTS = [(FORTRAN, FORTRAN), (FORTRAN, BLOCK), (FORTRAN, 1.0), (BLOCK.T, BLOCK.T), (BLOCK.transpose(1, 0, 2), 2)]
LAYOUTS += [(BLOCK[:, ::2], BLOCK[:, ::2]), (BLOCK[::-1], BLOCK[::-1]), (BLOCK.T, BLOCK.T[0]), (FORTRAN.astype(int), 2), (BLOCK[:0].T, 1)]
for target in ("cpu", "parallel"):
    mine, theirs = (
        module.vectorize(["float64(float64, float64)"], target=target)(lambda x, y: x * 2 + y) for module in (kjit, numba)
    )
    for x, y in LAYOUTS:
        assert same(mine(x, y), theirs(x, y)), (target, x.strides, of_array(mine(x, y)), of_array(theirs(x, y)))

# ---- guvectorize ----


def scaled(x, factor, r):
    for i in range(x.shape[0]):
        r[i] = x[i] * factor


def by_module(module):
    """Returns the arrays after calls of a generalized ufunc: from Python, from a function, and from its loop."""
    signed = module.guvectorize(["(float64[:], float64, float64[:])"], "(n),()->(n)")(scaled)
    dynamic = module.guvectorize("(n),()->(n)")(scaled)

    @module.njit
    def calls(x, r):
        made = np.empty_like(x)
        signed(x, 3.0, made)
        for i in range(2):
            signed(x, i + 1.0, r[i])
        dynamic(x, 4.0, r[2])
        return made.sum()

    r, s = np.zeros((3, 4)), np.zeros(4)
    dynamic(LINE[:4], 2.0, s)
    return calls(LINE[:4], r), r, s


assert all(map(same, by_module(kjit), by_module(numba)))


def three(x, y, r):
    pass


def replaces(x, y):
    x[0] = 1


def decorated(module, function, kind, layout, **options):
    """The identity of a generalized ufunc, or the class of the error that its decorator raises."""
    try:
        return module.guvectorize([kind], layout, **options)(function).identity
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__


FORMS = [(three, "int32[:], int32[:], int32[:]", "(m,n),()->(n)", {}), (three, "int32[:], int32, int32[:]", "(n),(n)->(n)", {})]
FORMS += [(three, "int32[:,:], int32, int32[:]", "(n),()->(n)", {}), (three, "int32, int32, int32[:,:]", "(),()->()", {})]
FORMS += [(three, "int32, int32[:], int32[:]", "(),()->()", {"identity": i}) for i in (0, 1, None, "reorderable", 2)]
FORMS += [(replaces, "f8[:], f8[:]", "(t),()", {"writable_args": w}) for w in ((0,), ("x",), (5,), (-1,), ("z",), (0, 1, 1, 0))]
for function, kind, layout, options in FORMS:
    outcomes = [decorated(module, function, kind, layout, **options) for module in (kjit, numba)]
    assert outcomes[0] == outcomes[1], (kind, layout, options, outcomes)
for identity in (0, 1, None, "reorderable"):
    mine, theirs = (module.vectorize(["f8(f8, f8)"], identity=identity)(lambda x, y: x + y) for module in (kjit, numba))
    assert mine.identity == theirs.identity

print("as Numba")
