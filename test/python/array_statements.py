# RUN: %kjit-python %s
"""Statements and expressions on whole arrays in threads. Each function runs in Python with NumPy, in a kernel, and in
njit if njit compiles it as a whole. All three must leave the same elements in the arrays."""
import os
import shutil
import sys
import tempfile

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numpy as np
import seeds
from kjit import cuda, njit, prange

rng = seeds.fresh_generator()
W = rng.standard_normal(4)
M = rng.integers(-9, 9, (2, 3))
RECORD = np.dtype([("x", "f8"), ("real", "i4"), ("itemsize", "i4")])


# ---- targets ----

def fill_slice(a, b, s): a[1:3] = 42


def copy_slice(a, b, s): a[1:5] = b[0, :4]


def fill_all(a, b, s):
    b[:] = s
    a[...] = 3


def three_values(a, b, s): a[0:3] = s, 2, 4.5


def tuple_rows(a, b, s):
    t = (s, 1.0, 2.0)
    a[2:5] = t
    b[:, 1:4] = t
    b[0:2, 0:2] = ((1, 2), (3, s))


def one_for_all(a, b, s): a[:] = (s,)


def rows(a, b, s):
    for i in range(b.shape[0]):
        b[i] = a[:7]


def row_of_number(a, b, s): b[1] = s


def columns(a, b, s):
    b[:, 2] = s
    b[:, 3] = a[:5]
    b[..., 0] = a[5:10]
    b[..., 5:7] = s
    b[0, ...] = 2


def broadcast(a, b, s):
    b[:, :] = a[0:7]
    b[1:3] = a[2:3]
    b[:, 0:3] = b[:, 3:4]


def negative_steps(a, b, s):
    a[::-2] = b[0, :5]
    a[8:2:-1] = b[1, ::-1][:6]
    b[::-1, ::-1] = s


def augmented(a, b, s):
    a[1:3] += 1
    a[2:8] -= a[3:9]
    b[1] *= s
    b[:, 2] /= 4
    b[2:4, ::2] //= 2
    b[3] %= 5
    a[4:6] **= 2
    b += 1
    b *= a[:7]
    row = b[2]
    row -= s
    row[0] += 1


def overlapping(a, b, s):
    a[1:] = a[:-1]
    a[:-2] = a[2:]
    a[:] = a[::-1]
    a[1:-1] = (a[:-2] + a[2:]) / 2
    b[1:] = b[:-1]
    b[1:-1, 1:-1] = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
    b[:3, :3] = b[:3, :3].T
    b[1:] += b[:-1]
    a[3:9] *= a[2:8] + a[4:10]


def one_element(a, b, s):
    b[2, 2] = a[3]
    b[2][1] = a[4] or s
    b[1:3][0, 1] = s if s > 0 else a[1]
    b[1] = a[1] and s


# ---- expressions ----

def expressions(a, b, s):
    a[0:2] = a[4:6] + a[4:6]
    b[0] = b[1] * 2 - a[0:7] / (1 + s * s)
    b[:, 1] = -b[:, 2] + s
    b[2:] = np.sin(b[2:]) * np.cos(a[:7])
    b[3] = np.where(b[3] > s, b[2], 0.5)
    a[6:9] = np.maximum(a[6:9], s) ** 2
    a[2] = s * 2


def reductions(a, b, s):
    a[0] = np.sum(b[1] * 2)
    a[1] = (b[2] - b[3]).max()
    a[2] = np.min(np.abs(b))
    a[3] = np.mean(b * a[:7])
    a[4] = np.any(b[1] > s) + 2 * np.all(b < 9)
    a[5] = (b > s).sum()
    a[6] = np.sqrt(np.sum((b[0] - b[1]) ** 2))
    a[7] = b[:, 1].sum() + b.T[2].min() + b[::-1].mean()
    a[8] = np.prod(b[0] + 1)
    a[9] = np.count_nonzero(b > 0)


def of_numbers(a, b, s):
    n = len(a)
    a[1:3] = n // 3
    a[3:5] = n / 4
    b[0] = n * 2 + s


# ---- iteration and attributes ----

def attributes(a, b, s):
    a[0], a[1], a[2] = b.itemsize, b.nbytes, b.ndim
    a[3], a[4] = b.strides[0], b.T.strides[0]
    a[5] = b.dtype.itemsize + b.size
    a[6], a[7] = W.shape[0], M.size
    a[8] = M.ndim + M.strides[0] + M.nbytes + len(M)
    a[9] = M.T[2, 1] + W[1:][0]


def iteration(a, b, s):
    t = 0.0
    for v in W:
        t += v
    for row in M:
        for v in row:
            t = t * 2 + v
    for row in b:
        t += row[1]
        row += 1
    for x, y in M.T:
        t += x * y
    a[0] = t


def positions(a, b, s):
    for i, j in np.ndindex(b.shape):
        b[i, j] += i * 10 + j
    for index in np.ndindex(2, 3):
        b[index] -= 1
    for (i,) in np.ndindex(3):
        a[i] += i
    for (i, j), v in np.ndenumerate(b):
        b[i, j] = v * 2 + i
    for index, v in np.ndenumerate(a):
        a[index] = v + index[0]


def flat(a, b, s):
    t = 0.0
    for v in b.flat:
        t = t * 0.5 + v
    for i, v in enumerate(b.T.flat):
        t += i * v
    b.flat[3] = s
    b.flat[-1] += 2
    a[0] = t + b.flat[8]


def shapes(a, b, s):
    flat = b.ravel()
    flat[5] = s
    a[0] = np.ravel(b)[6]
    c = a.reshape(2, 5)
    c[1, 2] = 1
    c = a.reshape((5, -1))
    c[0, 1] = 2
    c = np.reshape(a, (-1, 2))
    c[4, 0] = 3
    a.reshape(-1)[9] = 7
    d = b.transpose()
    d[0, 1] = 8
    np.transpose(b)[2, 3] = 9
    b.transpose(1, 0)[4, 4] = s
    b[:, None][1, 0, 2] = 11
    b[:, 3] = (b[:, np.newaxis] * 2)[:, 0, 0] if False else s
    a[1:4] = b[1:4, 0]
    b[:4, :3] = a[0:4, None] - a[None, 2:5]


def complex_parts(a, b, s):
    z = a[:4].view(np.complex128)
    z.real[1] = s
    z.imag[:] += 1
    a[9] = z.real.sum() + z[0].imag + np.imag(z)[1]
    y = a.reshape(5, 2)[1:].view(np.complex128)
    y.imag[1] = y.real[0]
    a[8] = a.real[7] + s.real + s.imag


def views(a, b, s):
    bits = b.view(np.int64)
    bits[2, 2] = bits[1, 1]
    halves = b.view(np.int32)
    halves[3, 5] = halves[0, 1]
    part = b[1:3, 1:4].view(np.uint64)
    part[0, 1] = part[1, 2]
    a[::3].view(np.int64)[1] = bits[0, 0]
    a.view(np.int64)[0] = len(halves) + halves.shape[1]


# ---- unpacking ----

def unpacking(a, b, s):
    x, y = a[3:5]
    a[0] = x + 2 * y
    (m,) = a.shape
    r, c = b.shape
    a[1] = m + r * c
    p, (q, t) = (1, (2.5, s))
    a[2] = p + q + t
    u = (v, w) = (s, 3)
    a[3] = u[0] + v * w
    i, j, k = range(3)
    a[4] = i + 10 * j + 100 * k
    d, e = range(5, 1, -2)
    a[5] = d * 10 + e
    for i, (x, y) in enumerate(zip(a, b[0])):
        a[i] += x * y
    b[0], b[1, 2] = a[:7], s
    (x, y), z = M.T[1], 3
    a[6] = x + y + z


CASES = [value for value in list(globals().values()) if getattr(value, "__module__", "") == "__main__" and callable(value)]


def whole(function):
    return kjit.njit(function).runs_in_python is False


def check(function, dtype, order):
    a, b, s = rng.standard_normal(10), rng.standard_normal((5, 7)), float(rng.standard_normal())
    if dtype == np.int64:
        a, b, s = (a * 9).astype(dtype), (b * 9).astype(dtype), 3
    b = np.asarray(b, order=order)
    wanted = a.copy(), b.copy(order="K")
    function(*wanted, s)
    for run in [cuda.jit(function)[1, 1]] + [njit(function)] * whole(function):
        given = a.copy(), b.copy(order="K")
        run(*given, s)
        for have, want in zip(given, wanted):
            np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-13, err_msg=f"{function.__name__} {order}")


FLOATS_ONLY = {complex_parts, views, expressions, reductions, augmented, overlapping, attributes, unpacking}
ROW_MAJOR = {shapes, views, complex_parts}
for case in CASES:
    check(case, np.float64, "C")
    if case not in ROW_MAJOR:
        check(case, np.float64, "F")
    if case not in FLOATS_ONLY:
        check(case, np.int64, "C")


# Operations on overlapping rows of a larger array run in order.
def relax(u):
    u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4


u = rng.standard_normal((200, 300))
v = u.copy()
relax(u)
njit(relax)(v)
np.testing.assert_array_equal(u, v)


# The operands of an operator are converted as numbers are, and the result has NumPy's type.
@njit
def wide(a, b, single, out):
    out[0, :] = a * a + b
    out[1, :] = a * a
    out[2, :] = single + b
    a += a * a


a, b = np.array([2**30, 7, -(2**31)], np.int32), np.array([2**60 + 1, -1, 5])
single, out = np.array([0.1, 2.5, 1e20], np.float32), np.zeros((3, 3))
with np.errstate(over="ignore"):
    added = a + a * a
    want = [a.astype(np.int64) ** 2 + b, a * a, (single.astype(np.float64) + b).astype(np.float32)]
wide(a, b, single, out)
np.testing.assert_array_equal(out, want)
np.testing.assert_array_equal(a, added)


@njit
def bytes_of(a, b, out):
    out[0] = np.sum((a + b).astype(np.int64)) if False else 0
    out[:] = a + b


small = rng.integers(0, 255, 6, dtype=np.uint8)
out = np.zeros(6, np.int64)
cuda.jit(lambda a, b, out: None)
bytes_of(small, small[::-1], out)
np.testing.assert_array_equal(out, small + small[::-1])


# Loops over prange.
@njit(parallel=True)
def inside(a, out, sums):
    for i in prange(a.shape[0]):
        out[i, :] = a[i, :] * 2
        sums[i] = np.sum(a[i] * 2)
        out[i, 1:3] += 1


a, out, sums = rng.standard_normal((50, 4)), np.zeros((50, 4)), np.zeros(50)
inside(a, out, sums)
want = a * 2
want[:, 1:3] += 1
np.testing.assert_array_equal(out, want)
np.testing.assert_allclose(sums, (a * 2).sum(1))


# Fields of records that are called as attributes of arrays.
@cuda.jit
def fields(records, r):
    r[0] = records[0].real + records[1].itemsize
    p = records[1]
    r[1] = p.real * 10 + p.itemsize
    r[2] = records.itemsize


records = np.zeros(2, RECORD)
records["real"], records["itemsize"] = [3, 4], [5, 6]
r = np.zeros(3)
fields[1, 1](records, r)
assert list(r) == [9, 46, RECORD.itemsize], r


# ---- kjit.jit: slices can be assigned to as well ----

@kjit.jit
def plain(a, b, s):
    for i in kjit.grid_range(1):
        a[1:3] = 42
        b[:, 2] = a[0:5] * s
        b[1:3, 3:5] += 1


a, b = rng.standard_normal(10), rng.standard_normal((5, 7))
x, y = a.copy(), b.copy()
x[1:3] = 42
y[:, 2] = x[0:5] * 3.0
y[1:3, 3:5] += 1
plain(a, b, 3.0)
np.testing.assert_allclose(a, x)
np.testing.assert_allclose(b, y)


# ---- rejected code, and failures at run time ----

def fails(function, *arguments, kind=Exception, text=""):
    try:
        cuda.jit(function)[1, 1](*arguments)
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(function.__name__)


def too_long(a): a[1:3] = a[0:3]
def wrong_row(b): b[1] = b[:, 0]
def wrong_tuple(a): a[0:2] = 1, 2, 3
def wrong_shapes(a): a[0] = np.sum(a[:3] * a[:2])
def wrong_count(a):
    x, y = a[0:3]
    a[0] = x + y
def wrong_range(a):
    x, y = range(3)
    a[0] = x + y
def starred(a):
    x, *y = (1, 2, 3)
    a[0] = x
def gaps(a): a[0] = a[::2].view(np.int32)[0]
def flattened(a): a[0] = a.flatten()[0]
def kept(a):
    b = a * 2
    a[0] = b[0]


a, b = np.arange(10.0), np.zeros((5, 7))
for function in (too_long, wrong_tuple):
    fails(function, a, kind=ValueError, text="different size")
fails(wrong_row, b, kind=ValueError, text="different size")
fails(wrong_shapes, a, kind=ValueError, text="fit together")
fails(wrong_count, a, kind=ValueError, text="unpacked")
fails(wrong_range, a, kind=ValueError, text="range")
fails(gaps, a, kind=ValueError, text="gaps")
fails(starred, a, kind=kjit.SourceError, text="not supported")
fails(flattened, a, kind=kjit.SourceError, text="flatten")
fails(kept, a, kind=kjit.TypingError)
np.testing.assert_array_equal(a, np.arange(10.0))

# ---- an expression of many numbers ----
names = [f"p{i}" for i in range(1, 61)]
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "many_numbers.py"), "w") as file:
    file.write(f"def many_numbers(r, {', '.join(names)}):\n    r[0] = {' + '.join(names)}\n")
sys.path.insert(0, folder)
import many_numbers  # noqa: E402

r = np.zeros(1)
cuda.jit(many_numbers.many_numbers)[1, 1](r, *range(1, 61))
assert r[0] == sum(range(1, 61))
shutil.rmtree(folder)
