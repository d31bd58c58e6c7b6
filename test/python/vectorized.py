# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# vectorize and guvectorize with signatures convert arguments and results as NumPy's ufuncs and Numba do.
import pickle

import kjit
import numpy as np
import seeds
from kjit import cuda, njit, vectorize


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and np.array_equal(got, want), (got, got.dtype, want, want.dtype)


def refused(function, text, kind=TypeError):
    try:
        function()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError("not refused: " + text)


# In kjit.cuda, Python numbers take the type in the signature, and results are converted.
loud = cuda.vectorize(["int16(int16, int16)"])(lambda v, t: v if v > t else 0)
same(loud(np.arange(5, dtype="i2"), 2.0), np.array([0, 0, 0, 3, 4], "i2"))
for target in ("cpu", "parallel", "cuda"):
    level = vectorize(["uint8(float32)"], target=target, nopython=True)(lambda v: v * 2.0)
    same(level(np.arange(5, dtype="f4")), np.arange(0, 10, 2, dtype="u1"))
    same(level(np.float32(3.7)), np.uint8(7))
    if target == "cuda":
        assert type(level(1.5)) is np.uint8
    else:  # a Python float alone is a float64
        refused(lambda: level(1.5), "no matching signature of <lambda> for elements float64")

# The first signature to which all arguments can be converted safely.
both = vectorize(["int64(int64, int64)", "float32(float32, float32)", "float64(float64, float64)"])(lambda a, b: a * 2 + b)
for a, b, kind in [
    (np.arange(4, dtype="i2"), np.arange(4, dtype="u4"), "i8"),
    (np.arange(4, dtype="f4"), np.arange(4, dtype="i2"), "f4"),
    (np.arange(4, dtype="f4"), np.arange(4, dtype="i4"), "f8"),
    (np.arange(4, dtype="f4"), 2.5, "f4"),
    (np.arange(4), 2, "i8"),
    (np.arange(4), 2.5, "f8"),
    (3, 4, "i8"),
    (3, 4.5, "f8"),
    (np.arange(4, dtype="f2"), True, "f4"),
]:
    same(both(a, b), (np.asarray(a, kind) * 2 + np.asarray(b, kind)).astype(kind))
refused(lambda: both(np.arange(3) * 1j, 1), "no matching signature")
refused(lambda: vectorize(["int16(int16)"])(lambda v: v)(np.arange(3.0)), "no matching signature")
refused(lambda: vectorize(["int16(int16)"])(lambda v: v)(2.5), "no matching signature")
refused(lambda: both(np.arange(4.0), 1, out=np.zeros(4, "i4")), "does not allow results of type float64")
# Python numbers take the type of a signature, and NumPy numbers have one. An int must fit, as in NumPy 2.
same(both(np.float32(1.5), 2), np.float32(3 + 2)), same(both(np.arange(3, dtype="f4"), np.float64(3)), np.arange(3) * 2.0 + 3)
small = vectorize(["int32(int32, int32)", "float64(float64, float64)"])(lambda a, b: a + b)
same(small(np.arange(3, dtype="i4"), 3), np.arange(3, 6, dtype="i4")), same(small(3, 4), 7.0)
for number in (2**31, -(2**40)):
    refused(lambda: small(np.arange(3, dtype="i4"), number), f"Python integer {number} out of bounds for int32", OverflowError)
out = np.zeros((2, 4), "f4")
assert both(np.arange(4.0), np.ones((2, 1)), out=out) is out
same(out, np.broadcast_to(np.arange(4) * 2 + 1, (2, 4)).astype("f4"))
# No signature: the call determines the types.
free = vectorize(identity=0, target="parallel")(lambda a, b: a + b)
same(free(np.arange(3, dtype="i4"), np.ones(3, "i4")), np.arange(3) + 1)
same(free(np.arange(3, dtype="f4"), np.ones(3, "f4")), np.arange(1, 4, dtype="f4"))

# Reductions and related methods.
add = vectorize(["int64(int64, int64)", "float64(float64, float64)"], identity=0)(lambda a, b: a + b)
m = np.arange(12).reshape(3, 4)
same(add.reduce(m), m.sum(0)), same(add.reduce(m, axis=1), m.sum(1)), same(add.reduce(np.zeros(0)), 0.0)
same(add.accumulate(m, axis=1), m.cumsum(1)), same(add.outer(m[0], m[1]), np.add.outer(m[0], m[1]))
same(add.reduce(m.astype("i2")), m.sum(0))
counts = np.zeros(4, "i8")
add.at(counts, np.array([1, 1, 3]), 5)
same(counts, np.array([0, 10, 0, 5]))
assert add.identity == 0 and add.nin == 2 and add.nout == 1


# In kernels and functions.
@njit
def in_njit(x, r):
    for i in range(len(x)):
        r[i] = both(x[i], 1)
    return level(1.26)


@cuda.jit
def in_kernel(x, r):
    i = cuda.grid(1)
    if i < len(x):
        r[i] = loud(np.int16(x[i]), np.int16(2)) + free(x[i], 1)


level = vectorize(["uint8(float64)"])(lambda v: v * 100)
r = np.zeros(4)
assert in_njit(np.arange(4) * 0.5, r) == 126
same(r, np.arange(4.0) + 1)
r = np.zeros(4)
in_kernel[1, 32](np.arange(4), r)
same(r, np.array([1, 2, 3, 7.0]))



# ---- guvectorize ----


def total(a, out):
    s = 0.0
    for i in range(a.size):
        s += a[i]
    out[0] = s


for made in (
    kjit.guvectorize(["void(int32[:], int32[:])", "void(float64[:], float64[:])"], "(n)->()", target="cpu"),
    kjit.guvectorize([(cuda.int32[:], cuda.int32[:]), (cuda.float64[:], cuda.float64[:])], "(n)->()", nopython=True, target="parallel"),
    cuda.guvectorize(["void(int32[:], int32[:])", "void(float64[:], float64[:])"], "(n)->()"),
):
    sums = made(total)
    same(sums(np.arange(6, dtype="i2").reshape(2, 3)), np.array([3, 12], "i4"))
    same(sums(np.arange(6).reshape(2, 3)), np.array([3.0, 12.0]))
    same(sums(np.arange(6.0).reshape(2, 3) / 4), np.array([0.75, 3.0]))
    refused(lambda: sums(np.arange(6) * 1j), "no matching signature")
    refused(lambda: sums(np.arange(6.0), out=np.zeros((), "i4")), "does not allow results of type float64")


random = seeds.fresh_generator()


# Without signatures, each call determines the types.
def weighted(a, b, s, out):
    t = 0
    for v in a:
        t += v
    for i in range(b.size):
        out[i] = b[i] * t * s


for made in (kjit.guvectorize("(n),(m),()->(m)", nopython=True), kjit.guvectorize([], "(n),(m),()->(m)", cache=True)):
    weigh = made(weighted)
    for kind, other in (("f8", "f8"), ("f4", "f8"), ("i4", "f4"), ("i8", "i8")):
        a, b, r = random.integers(0, 9, (4, 5)).astype(kind), random.integers(0, 9, 3).astype(other), np.zeros((4, 3), other)
        assert weigh(a, b, 2, r) is r
        same(r, (a.sum(axis=1)[:, None] * b * 2).astype(other))
    one = np.zeros(3)
    weigh(np.arange(4.0), np.arange(3.0), 0.5, out=one)
    same(one, np.arange(3) * 3.0)
    try:
        weigh(np.arange(4.0), np.arange(3.0), 0.5)
    except TypeError as error:
        assert "Too few arguments for function 'weighted'" in str(error)
    else:
        raise AssertionError("a call without an array for the result")

# axis, axes and keepdims have NumPy's meaning.
def pairwise(a, b, out):
    for i in range(a.size):
        out[i] = a[i] - b[i]


sums = kjit.guvectorize(["void(float64[:], float64[:])"], "(n)->()")(total)
less = kjit.guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->(n)")(pairwise)
x = random.random((2, 3, 4))
for axis in (0, 1, -1, -3):
    np.testing.assert_allclose(sums(x, axis=axis), x.sum(axis=axis), rtol=1e-14)
    np.testing.assert_allclose(sums(x, axes=[axis, ()]), x.sum(axis=axis), rtol=1e-14)
    np.testing.assert_allclose(sums(x, axes=[axis]), x.sum(axis=axis), rtol=1e-14)
    np.testing.assert_allclose(sums(x, axis=axis, keepdims=True), x.sum(axis=axis, keepdims=True), rtol=1e-14)
    out = np.zeros(x.sum(axis=axis, keepdims=True).shape)
    assert sums(x, axis=axis, keepdims=True, out=out) is out
    np.testing.assert_allclose(out, x.sum(axis=axis, keepdims=True), rtol=1e-14)
    same(less(x, x[::-1], axis=axis), x - x[::-1])
    out = np.zeros(x.shape)
    less(x, x[::-1], out, axis=axis)
    same(out, x - x[::-1])
y = random.random(3)
same(less(x, y, axes=[1, 0, -1]), np.moveaxis(x, 1, -1) - y)
same(less(x, y, axes=[(1,), (0,), (0,)]), np.moveaxis(np.moveaxis(x, 1, -1) - y, -1, 0))
for call, kind, text in (
    (lambda: sums(x, axis=5), ValueError, "out of bounds"),
    (lambda: sums(x, axis=1, axes=[0, ()]), TypeError, "both 'axis' and 'axes'"),
    (lambda: sums(x, axes=[(0, 1), ()]), ValueError, "item 0 of axes"),
    (lambda: less(x, y, axes=[1, 0]), ValueError, "all 3 inputs and outputs"),
    (lambda: less(x, x, keepdims=True), TypeError, "keepdims"),
    (lambda: weigh(x, y, 1.0, y, axis=0), TypeError, "2 distinct ones"),
):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


# A function without results writes to its arguments.
def grouped(values, labels, out):
    out[:] = 0
    for i in range(values.size):
        out[labels[i]] += values[i]


listed = ["void(float64[:], int64[:], float64[:])"]
for layout, options in (("(a),(a),(z)", {}), ("(a),(a),(z)->", {}), ("(a),(a),(z)", {"writable_args": (2,)}), ("(a),(a),(z)", {"writable_args": ("out",)})):
    groups = kjit.guvectorize(listed, layout, nopython=True, **options)(grouped)
    values, labels, out = random.random((2, 6)), np.array([0, 1, 2, 1, 0, 0]), np.ones((2, 3))
    expected = np.stack([np.bincount(labels, row) for row in values])
    assert groups(values, labels, out) == ()
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    groups(values.T, labels, out.T, axes=[0, 0, 0])
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    narrow = np.ones((2, 3), "f4")  # converted before the call: NumPy writes the values back only if writable_args says so
    groups(values, labels, narrow)
    np.testing.assert_allclose(narrow, expected if options else np.ones((2, 3)), rtol=1e-6)
    try:
        groups(values, labels, np.ones(3))
    except ValueError as error:
        assert "which the call broadcasts" in str(error)
    else:
        raise AssertionError("a broadcast argument that is written")


# ---- the first signature to which all arguments are converted safely ----


def scaled(a, factor, out):
    for i in range(a.shape[0]):
        out[i] = a[i] * factor


both = ["void(float64[:], float64, float64[:])", "void(int64[:], int64, int64[:])"]
integers = seeds.fresh_generator().integers(-9, 9, 6)
for signatures, factor, expected in (
    (both, 2.5, integers * 2.5),
    (both, 2, integers * 2.0),
    (both[::-1], 2, integers * 2),
    (both[::-1], 2.5, integers * 2.5),
):
    same(kjit.guvectorize(signatures, "(n),()->(n)")(scaled)(integers, factor), expected)

# A vectorized function goes through pickle, as one that no module has by its name, too.


def make_scaled(factor, **options):
    @vectorize(["int64(int64)", "float32(float32)"], **options)
    def scaled(x):
        return x * factor

    return scaled


for options in ({"target": "cuda"}, {"identity": 0}):
    scaled = make_scaled(3, **options)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(scaled))))
    for given in (np.arange(5), np.arange(5, dtype="f4")):
        same(again(given), scaled(given)), same(again(given), given * 3)
    assert again.identity == scaled.identity and again.__name__ == "scaled"

# Without signatures: Numba's types in parentheses, and kjit's own without them.
numbas, own = vectorize()(lambda v: v * v), vectorize(lambda v: v * 0.5)
same(numbas(np.array([2**20, -3], "i4")), np.array([2**40, 9]))
same(own(np.ones(2, "f4")), np.full(2, 0.5, "f4"))
