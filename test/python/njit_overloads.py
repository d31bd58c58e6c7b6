# RUN: %kjit-python %s
"""The argument types with which an njit function was called: overloads, signatures and nopython_signatures, as in
Numba."""
import gc
from collections import namedtuple

import numpy as np

from kjit import _overloading, keep_sources, njit, types
from kjit.cuda import boolean, complex128, float32, float64, int32, int64

Pair = namedtuple("Pair", "x y")


@njit
def add(a, b):
    return a + b


assert add.signatures == [] and add.overloads == {}
add(1, 2)
add(3, 4)
add(1.5, 2)
add(np.int32(1), True)
add(np.float32(1), np.float32(2))
wanted = [(int64, int64), (float64, int64), (int32, boolean), (float32, float32)]
assert add.signatures == wanted, add.signatures
assert [s.return_type for s in add.nopython_signatures] == [int64, float64, int64, float32]
add(np.arange(3.0), 1)  # Python runs this call
add(np.zeros((2, 2), order="F"), 1j)
assert add.signatures[4:] == [(float64[::1], int64), (float64[::1, :], complex128)], add.signatures
assert [s.return_type for s in add.nopython_signatures[4:]] == [float64[::1], complex128[::1, :]]
assert add.overloads[int64, int64].signature == int64(int64, int64)
assert add(np.zeros((2, 3), order="F"), np.ones((2, 3), order="F")).flags.f_contiguous


@njit
def first(t, other=None):
    return t[0]


rows = np.arange(12).reshape(3, 4)
for argument in ((1, 2.5), (1, 2), Pair(1, 2), np.arange(6), np.arange(6)[::2], rows[0], (3, 4), np.arange(5)):
    first(argument)
names = [str(s[0]) for s in first.signatures]
assert names == ["Tuple(int64, float64)", "UniTuple(int64, 2)", "Pair(int64, int64)", "array(int64, 1d, C)", "array(int64, 1d, A)"], names
assert {s[1] for s in first.signatures} == {types.none}
assert {s.return_type for s in first.nopython_signatures} == {int64}


@njit("float64(float64, int32)")
def fixed(a, b):
    return a + b


assert fixed.signatures == [(float64, int32)] and fixed(1, 2) == 3.0 and fixed.signatures == [(float64, int32)]
assert fixed.overloads[float64, int32].signature == float64(float64, int32)


@njit([(int64,), (float64,)])
def twice(a):
    return a * 2


assert [s.return_type for s in twice.nopython_signatures] == [int64, float64]


@njit
def pair(a):
    return a[0], 1, len(a)


pair(np.arange(3, dtype=np.float32))
assert str(pair.nopython_signatures[0].return_type) == "Tuple(float32, int64, int64)", pair.nopython_signatures


@njit
def wrong(a):
    return a.nothing


try:
    wrong(1)
except Exception:
    pass
assert wrong.signatures == []

many = njit(lambda a: a.ndim)
for rank in range(1, 8):
    for dtype in ("i1", "i2", "i4", "i8", "f4", "f8"):
        assert many(np.zeros((1,) * rank, dtype)) == rank
        many(np.zeros((1,) * rank, dtype))
assert len(many.signatures) == 42

# If a function has several signatures, the signature includes the forms of its calls.
def called_forms():
    gc.collect()
    return len(_overloading._calls)


def add_forms(count):
    keep_sources()
    halved = njit(["int64(int64, int64)", "float64(float64, float64)"])(lambda v, n: v / n)
    found = {}
    for n in range(1, count + 1):
        exec(f"def f(v):\n    return halved(v, {n}.0)", {"halved": halved}, found)
        assert njit(found["f"])(6.0) == 6.0 / n
    assert called_forms() >= before + count


before = called_forms()
add_forms(3)
assert called_forms() == before, (called_forms(), before)
