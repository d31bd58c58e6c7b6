# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# `is True`, round() of float32, and vectorize without signatures in numba's place.
import pickle

import kjit
import numpy as np
import seeds
from kjit import njit

random = seeds.fresh_choice()


@njit
def tests(x):
    return x is True, x is not True, x is False, x is not False


for value in (True, False, np.bool_(True), np.bool_(False)):
    assert tests(value) == (bool(value), not value, not value, bool(value)), value
for value in (1, 0, 1.0, 0.0, np.int64(1), np.uint8(0)):
    assert tests(value) == (False, True, False, True), value


@njit
def rounded(x, n):
    return round(x, n)


def expected(x, n):
    """numba.cuda's rule for the type of x."""
    kind = type(x)
    scale = 10.0 ** abs(n)
    scaled = float(x) * scale if n >= 0 else float(x) / scale
    return float(kind(float(np.rint(scaled)) / scale if n >= 0 else float(np.rint(scaled)) * scale))


for _ in range(300):
    for kind in (np.float32, np.float64):
        x = kind(round(random.uniform(-100, 100), 2))
        n = random.randint(-1, 3)
        assert rounded(x, n) == expected(x, n), (x, n, rounded(x, n), expected(x, n))
assert rounded(np.float32(0.3425), 3) == float(np.float32(0.343))

with kjit.as_numba():
    from numba import vectorize


@vectorize
def add(x, y):
    return x + y


@vectorize
def half(x):
    return x / 2


for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
    x = np.array([100, 1, 120], kind)
    sum_ = add(x, x)
    assert sum_.dtype == kind[0] + "8" and sum_.tolist() == [200, 2, 240], (kind, sum_)
    assert half(x).dtype == "f8" and half(x).tolist() == [50, 0.5, 60], kind


# For gufuncs, and for ufuncs on all cores, the signature with the types of the arguments is chosen, at any position in the list. For a
# ufunc on one core, NumPy takes the first signature that fits.
@kjit.guvectorize(["(float64[:], float64[:])", "(float32[:], float32[:])", "(int32[:], int32[:])"], "(n)->()")
def head(x, r):
    r[0] = x[0] + 1


def plus_one(x):
    return x + 1


SIGNATURES = ["float64(float64)", "float32(float32)", "int32(int32)"]
with kjit.as_numba():
    from numba import vectorize as numba_vectorize
spread = numba_vectorize(SIGNATURES, target="parallel")(plus_one)
single = numba_vectorize(SIGNATURES)(plus_one)
for kind, expected in {"i1": "f8", "i4": "i4", "i8": "f8", "f4": "f4", "f8": "f8"}.items():
    x = np.array([1, 2], kind)
    assert head(x).dtype == expected and head(x) == 2, kind
    assert spread(x).dtype == expected and single(x).dtype == "f8", kind
assert type(spread(np.float32(1))) is np.float32 and type(spread(1.5)) is np.float64
assert pickle.loads(pickle.dumps(head))(np.array([1], "f4")).dtype == "f4" and pickle.loads(pickle.dumps(spread))(np.array([1], "f4")).dtype == "f4"


@njit
def of_bools(x):
    return -x, np.negative(x), np.conjugate(x)


for result in of_bools(np.array([True, False])):
    assert result.dtype == "i1" and abs(result).tolist() == [1, 0], result

# The reduction of no elements is its initial value.
total = kjit.cuda.reduce(lambda a, b: a + b)
assert type(total(np.zeros(0), init=3)) is int and total(np.zeros(0), init=3) == 3 and type(total(np.zeros(1), init=3)) is np.float64

# carray and farray: the memory at a pointer as an array.
with kjit.as_numba():
    from numba import carray, farray
pointed = kjit.cuda.to_device(np.arange(6, dtype=np.float32))


@kjit.cuda.jit("void(CPointer(float32), int64)")
def at_pointer(p, n):
    a = carray(p, (n, 3), dtype=np.float32)
    b = farray(p, (3, n))
    c = carray(p, 6)
    a[1, 0] += 100
    b[0, 1] += 1000
    c[5] = b[1, 0] + a.shape[0] + b.shape[0] * 10 + c.size * 1000


at_pointer[1, 1](int(pointed.gpu_data.device_pointer), 2)
assert pointed.copy_to_host().tolist() == [0, 1, 2, 1103, 4, 6033]


# A gufunc of numba.cuda converts host values to types with fewer bits, but does not convert device arrays.
@kjit.cuda.guvectorize(["void(int32, int32[:], int32[:])"], "(),(t)->(t)", target="cuda")
def scaled(a, b, out):
    for i in range(b.size):
        out[i] = a * b[i]


b = np.arange(5).astype(np.int32)
assert (scaled(np.int64(2), b) == 2 * b).all()
try:
    scaled(kjit.cuda.to_device(np.array(2)), b)
except TypeError as error:
    assert "does not support .astype()" in str(error), error
else:
    raise AssertionError("an array on the device was converted")
