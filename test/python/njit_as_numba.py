# REQUIRES: numba
# RUN: %numba-python %s
"""Functions for which njit once returned other results than Numba without an error. Each call returns Numba's value,
type and layout, or both reject it."""
import os
import warnings

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba.np import extensions  # noqa: E402
from numpy.lib.stride_tricks import sliding_window_view  # noqa: E402

warnings.simplefilter("ignore")
NUMBERS = 3.5, np.float32(2), True, np.int8(3), 1j
DATES = [kind(value, unit) for kind in (np.datetime64, np.timedelta64) for unit in "Ds" for value in ("NaT", 5, -1, 2**61 + 7, -(2**62))]
RECORDS = np.array([(b"ab", 3, "xy"), (b"cd", 4, "z")], [("a", "S5"), ("b", "i4"), ("c", "U3")])
NESTED = np.array([(1.5, 2, [3, 4]), (5.5, 6, [7, 8])], [("x", "f8"), ("n", "i4"), ("v", "f4", (2,))])
TITLED = np.array([(1, 2.0), (3, 4.0)], {"names": ["a", "b"], "formats": ["i4", "f8"], "titles": ["first", "second"]})
ROW, MATRIX = np.array([1.0, 2.0]), np.array([[3, 5], [4, 7]])
GRID = np.arange(6.0).reshape(2, 3)


def nothing(x):
    """stands for a function of Numba that only its compiler implements"""


nothing.__module__ = "numba.np.made"


def converted(x, v):
    return type(x)(v)


def converted_in_python(x, v):
    return type(x)(v), np.zeros(2)


def hash_of(date):
    return hash(date)


def hash_of_pair(date):
    return hash((date, 3))


cross2d = getattr(extensions, "cross2d", None)  # newer versions of Numba do not have it


def product(a, b):
    return cross2d(a, b)


def products_in_a_loop(a, b):
    total = 0.0
    for _ in range(3):
        total += cross2d(a, b)[()]
    return total


def field(records):
    return records[0].a


def fields(records):
    return records[1].c, records[0].b, records["a"][0]


def record_in_python(record):
    record.b = 7
    return record.b, record["b"], record.c, np.zeros(2)


def field_arrays(record):
    record.x = 9.5
    record.v[1] = 8
    return record.v, record.x, record.n


def same_records(records):
    made = np.zeros(2, records.dtype)
    made[0].x = 3
    made[1] = records[1]
    return made


def titled(records):
    return records[0].a + records[1].b, records[1]["b"]


def places(x):
    return np.nonzero(x), np.where(x), x.nonzero()


def strides(x):
    return np.nonzero(x)[0].strides, np.where(x)[0].strides, x.nonzero()[0].strides


def set_before_the_loop(n):
    if n > 100:
        v = 1.0
    made = np.zeros(3)
    for i in range(n):
        v = i * 0.5
    return v, made


def kept_for_the_next_run(x):
    total = 0.0
    for k in range(3):
        for i in range(0 if k > 0 else len(x)):
            v = i + x[i]
        total += v + np.cumsum(x)[-1]
    return total


def set_in_an_earlier_loop(n):
    made = np.zeros(3)
    if n > 2:
        v, w = 7, 2.5
    for i in range(n):
        for j in range(i):
            v = i * j
        if i % 2:
            w = v / 2
    for _ in range(n):
        made[0] += v + w
    return v, w, made


def enumerated(x, start):
    total = 0.0
    for i, v in enumerate(x, start):
        total += i * v
    return total


def imaginary_part(x):
    return x.imag


def imaginary(x):
    return x.imag, np.imag(x).sum()


def layouts(x):
    total = 0
    for i in range(3):
        if x.flags.c_contiguous:
            total += i
    return total, x.flags.f_contiguous, x[::2].flags.contiguous


def layout_of_argument(x):
    return x.flags.contiguous


def has_type(x):
    return x.dtype == np.dtype("int64"), np.zeros(2, np.dtype("f4")).dtype == np.dtype(np.float32)


def is_int64(x):
    return x.dtype == np.dtype("int64")


def windows_written(x, n):
    windows = sliding_window_view(x, n)
    windows[0, 1] = 7
    return windows, x


def as_float(x):
    return float(x)


def as_int(x):
    return int(x), np.zeros(1)


def call_of_a_stub(x):
    return nothing(x)


def call_of_a_stub_in_python(x):
    return nothing(x), np.zeros(2)


CALLS = [
    (converted, [(x, 3) for x in NUMBERS] + [(np.int8(3), 3.7)], [(ROW, 3), ((1, 2), 3)]),
    (converted_in_python, [(x, 3) for x in NUMBERS], [(ROW, 3)]),
    (hash_of, [(date,) for date in DATES], []),
    (hash_of_pair, [(DATES[1],), (DATES[-1],)], []),
    *([
        (product, [(ROW, ROW[::-1]), (ROW, MATRIX), (MATRIX, MATRIX[::-1]), ((1, 2), (4, 5)), (MATRIX.astype("i4"), MATRIX)], [(GRID, GRID), (ROW, None)]),
        (products_in_a_loop, [(ROW, ROW[::-1])], []),
    ] if cross2d else []),
    (field, [(RECORDS,)], []),
    (fields, [(RECORDS,)], []),
    (record_in_python, [(RECORDS[0],), (RECORDS[1].copy(),)], []),
    (field_arrays, [(NESTED[1],), (NESTED[0].copy(),)], []),
    (same_records, [(NESTED,)], []),
    (titled, [(TITLED,)], []),
    (places, [(GRID,), (GRID.T,), (GRID > 2,)], []),
    (strides, [(GRID,), (GRID.T,)], []),
    (set_before_the_loop, [(3,), (200,)], []),
    (kept_for_the_next_run, [(ROW,)], []),
    (set_in_an_earlier_loop, [(5,), (200,)], []),
    (enumerated, [(ROW, 3), (ROW, np.uint8(7))], [(ROW, 3.5), (ROW, 1j)]),
    (imaginary_part, [(ROW,), (MATRIX,), (ROW * 1j,)], []),
    (imaginary, [(ROW,), (GRID.astype("f4"),), (ROW * 1j,)], []),
    (layouts, [(GRID,), (GRID.T,), (GRID[:, ::2],)], []),
    (layout_of_argument, [(ROW,), (GRID.T,), (GRID[:, ::2],)], []),
    (has_type, [(GRID,), (MATRIX,)], []),
    (is_int64, [(GRID,), (MATRIX,)], []),
    (windows_written, [(np.arange(6), 3)], []),
    (as_float, [(np.float32(2.5),), (3,)], [(np.ones(1),), (np.array(2.5),)]),
    (as_int, [(2.5,), (np.int8(3),)], [(np.ones(1),), (np.array(2.5),)]),
    (call_of_a_stub, [], [(3,)]),
    (call_of_a_stub_in_python, [], [(3,)]),
]


def same(got, expected):
    if isinstance(expected, tuple):
        return type(got) is tuple and len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, np.ndarray):
        is_alike = type(got) is np.ndarray and got.dtype == expected.dtype and got.strides == expected.strides
        is_alike = is_alike and got.dtype.type is expected.dtype.type  # numpy.record and numpy.void are equal dtypes
        return is_alike and np.array_equal(got, expected)
    return type(got) is type(expected) and got == expected


def error_of(package, function, args):
    try:
        package.njit(function)(*args)
    except Exception as error:
        return error
    return None


for function, right, wrong in CALLS:
    numbas, own = numba.njit(function), kjit.njit(function)
    for args in right:
        got, expected = own(*args), numbas(*args)
        assert same(got, expected), (function.__name__, args, got, expected)
    for args in wrong:
        errors = [error_of(package, function, args) for package in (numba, kjit)]
        if nothing.__name__ in function.__code__.co_names:  # to Numba it is a function without a result
            errors[0] = NotImplementedError()
        assert all(errors) and (isinstance(errors[1], kjit.Error) or type(errors[0]) is type(errors[1])), (function.__name__, args, errors)

# In Numba, a variable without a value has whatever value is in memory; in kjit it is 0.
assert same(kjit.njit(set_before_the_loop)(0), (0.0, np.zeros(3)))

if cross2d:
    with kjit.as_numba():
        from numba.np.extensions import cross2d as replaced
    assert kjit.njit(lambda a, b: replaced(a, b))(ROW, ROW[::-1]) == cross2d.__globals__["_cross2d_operation"](ROW, ROW[::-1])

for record in NESTED.copy()[1], NESTED[1].copy():  # a record of an array, and a record that owns its memory
    kjit.njit(field_arrays)(record)
    assert record["x"] == 9.5 and record["v"].tolist() == [7, 8], record

# Integers of Python are int64 to Numba when it chooses a signature. What does not fit into 64 bits is rejected after the choice, and
# narrower types drop the upper bits.
INTEGERS = 5, -1, 300, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**70
SIGNATURES = [f"{t}({t})" for t in ("int8", "int32", "int64", "uint8", "uint64", "float64")]
PAIRS = [["int64(int64)", "uint64(uint64)"], ["uint64(uint64)", "int64(int64)"], ["int64(int64)", "float64(float64)"], ["uint64(uint64)", "float64(float64)"]]


def outcome_of(package, signatures, value):
    try:
        result = package.njit(signatures)(lambda x: x)(value)
    except (OverflowError, TypeError) as error:
        return type(error)
    return type(result), result


for signatures in SIGNATURES + PAIRS:
    for value in INTEGERS:
        expected, came = (outcome_of(package, signatures, value) for package in (numba, kjit))
        assert came == expected, (signatures, value, came, expected)
try:
    kjit.njit("int64(UniTuple(int64, 2))")(lambda t: t[0])((1, 2**63))
    raise SystemExit("a tuple with 2**63 is taken")
except OverflowError as error:
    assert "9223372036854775808 does not fit into int64" in str(error), error
