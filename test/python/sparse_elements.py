# RUN: %kjit-python %s
"""Elements, sums, extrema and element-wise values of sparse matrices, compared with dense NumPy matrices, for NumPy
arrays and kjit arrays."""
import os
import random

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.sparse  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
choice, generator = random.Random(seed), np.random.default_rng(seed)


def dense(shape, code):
    """Returns a matrix in which about half of the elements, one row and one column are 0."""
    x = generator.integers(-9, 10, shape) if np.dtype(code).kind == "i" else generator.standard_normal(shape)
    x = x + 1j * generator.standard_normal(shape) if np.dtype(code).kind == "c" else x
    x = np.where(generator.random(shape) < 0.5, x, 0).astype(code)
    if min(shape) > 1:
        x[choice.randrange(shape[0])] = x[:, choice.randrange(shape[1])] = 0
    return x


def placed(x, is_own):
    return kjit.array(x, device="cpu") if is_own else x


def matrix(x, is_own, is_double=False):
    """Returns the matrix x. is_double: each entry is the exact sum of two entries with different signs, in unsorted
    columns."""
    rows, columns = np.nonzero(x)
    data = x[rows, columns]
    if is_double:
        order = np.lexsort((generator.random(2 * len(rows)), np.tile(rows, 2)))
        data, rows, columns = np.concatenate([-data, 2 * data])[order], np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=x.shape[0]))])[: x.shape[0] + 1]
    return kjit.CSR(*(placed(part, is_own) for part in (data, columns, offsets)), x.shape)


def host(x):
    x = x.to_dense() if isinstance(x, kjit.CSR) else x
    return x.to_host() if isinstance(x, kjit.Array) else np.asarray(x)


def same(got, expected, is_own, what):
    """is_own: whether the result has kjit arrays, or None for either kind."""
    parts = (got.data, got.indices, got.indptr) if isinstance(got, kjit.CSR) else (got,)
    assert is_own is None or all(isinstance(part, kjit.Array) == is_own for part in parts), (seed, what, [type(part) for part in parts])
    found, expected = host(got), np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype, (seed, what, found.shape, found.dtype, expected.shape, expected.dtype)
    is_single = np.dtype(found.dtype).char in "fF"
    assert np.allclose(found, expected, rtol=1e-4 if is_single else 1e-12, atol=1e-4 if is_single else 1e-12), (seed, what, found, expected)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


def check_indices(a, x, is_own, what):
    rows, columns = x.shape
    i, j = choice.randrange(-rows, rows), choice.randrange(-columns, columns)
    same(a[i], x[[i]], is_own, (what, "a row", i))
    same(a[i, j], x[i, j], is_own, (what, "an element", i, j))
    same(a[np.int64(i), :], x[[i]], is_own, (what, "a row of all columns", i))
    same(a[:, j], x[:, [j]], is_own, (what, "a column", j))
    first, last = sorted((choice.randrange(columns + 1), choice.randrange(columns + 1)))
    several = generator.integers(-columns, columns, 5)
    mask = generator.random(columns) < 0.5
    for key in (slice(first, last), slice(None), slice(None, None, -2), slice(3, 1), several, several.tolist(), mask, []):
        index = np.asarray(key, int) if isinstance(key, list) else key
        same(a[:, key], x[:, index], is_own, (what, "columns", key))
        same(a[i, key], x[[i]][:, index], is_own, (what, "columns of a row", i, key))
    same(a[:1, first:last], x[:1, first:last], is_own, (what, "a block"))
    same(a[[0, -1]][:, several], x[[0, -1]][:, several], is_own, (what, "a block of indices"))


def check_folds(a, x, is_own, what):
    for axis in (None, 0, 1, -1, -2):
        same(a.sum(axis), x.sum(axis), is_own, (what, "sum", axis))
        same(a.sum(axis, "complex128"), x.sum(axis, "complex128"), is_own, (what, "a sum of another type", axis))
        if x.size:
            same(a.mean(axis), x.mean(axis), is_own, (what, "mean", axis))
        if x.size and x.dtype.kind != "c":
            same(a.max(axis), x.max(axis), is_own, (what, "max", axis))
            same(a.min(axis), x.min(axis), is_own, (what, "min", axis))
    for k in (0, 1, -2, x.shape[1], -x.shape[0]):
        expected = np.diagonal(x, k) if -x.shape[0] < k < x.shape[1] else np.zeros(0, x.dtype)
        same(a.diagonal(k), expected, is_own, (what, "diagonal", k))


def check_values(a, x, is_own, what):
    same(abs(a), abs(x), is_own, (what, "abs"))
    for code in ("complex128", "float32", "int64"):
        if x.dtype.kind != "c" or code == "complex128":
            same(a.astype(code), x.astype(code), is_own, (what, "astype", code))
    copy = a.copy()
    same(copy, x, is_own, (what, "copy"))
    copy.data[...] = 0
    same(a, x, is_own, (what, "a matrix whose copy was changed"))


def check_products(a, x, is_own, what):
    for shape in (x.shape, (1, x.shape[1]), (x.shape[0], 1), (x.shape[1],), (1, 1), (1,)):
        y = dense(shape, choice.choice("dD")) if len(shape) == 2 else generator.standard_normal(shape)
        same(a.multiply(placed(y, is_own)), x * y, is_own, (what, "multiply", shape))
        same(a.multiply(placed(np.asfortranarray(y), is_own)), x * y, is_own, (what, "multiply in column order", shape))
    same(a.multiply(3), x * 3, is_own, (what, "multiply by a number"))
    for y in (dense(x.shape, choice.choice("fdD")), np.zeros(x.shape), x):
        for is_double in (False, True):
            same(a.multiply(matrix(y, is_own, is_double)), x * y, is_own, (what, "multiply by a matrix", is_double))
    same(a.multiply(kjit.sparse.coo(a)), x * x, is_own, (what, "multiply by coordinates"))


for is_own in (False, True):
    for code in "fdDi":
        for shape in ((choice.randrange(2, 9), choice.randrange(2, 9)), (5, 1), (1, 4)):
            is_double, x = choice.random() < 0.5, dense(shape, code)
            a, what = matrix(x, is_own, is_double), (code, shape, is_own, is_double)
            check_indices(a, x, is_own, what)
            check_folds(a, x, is_own, what)
            check_values(a, x, is_own, what)
            check_products(a, x, is_own, what)
    for shape in ((0, 3), (3, 0), (0, 0), (3, 3)):
        x = np.zeros(shape)
        check_folds(matrix(x, is_own), x, is_own, shape)
        check_values(matrix(x, is_own), x, is_own, shape)
        check_products(matrix(x, is_own), x, is_own, shape)
    negative = -np.abs(dense((4, 3), "d")) - 1
    same(matrix(negative, is_own).max(1), negative.max(1), is_own, "the maximum of full rows")
    x = dense((5, 6), "d")
    x[2, 3] = np.nan
    same(matrix(x, is_own).max(0)[:3], x.max(0)[:3], is_own, "columns beside a NaN")
    assert np.isnan(host(matrix(x, is_own).max(0))[3]) and np.isnan(host(matrix(x, is_own).min())), seed



class Foreign:
    """An array of a library with its own types, which kjit reads by DLPack."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, "a type of that library"

    def __getitem__(self, key):
        return Foreign(self.array[key])

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


for code in "di":
    x, y = dense((5, 4), code), dense((5, 4), "d")
    own = matrix(x, True)
    a = kjit.CSR(*(Foreign(part) for part in (own.data, own.indices, own.indptr)), x.shape)
    check_indices(a, x, None, ("foreign", code))
    check_folds(a, x, None, ("foreign", code))
    same(abs(a), abs(x), None, "abs of a foreign matrix")
    same(a.astype("float32"), x.astype("f"), None, "astype of a foreign matrix")
    same(a.multiply(Foreign(kjit.array(y, device="cpu"))), x * y, None, "multiply by a foreign array")
    same(a.multiply(matrix(y, True)), x * y, None, "multiply of a foreign matrix")

a = kjit.csr(np.eye(3))
refused(lambda: a[3], IndexError, "row 3 is out of bounds for a matrix of 3 rows")
refused(lambda: a[0, -4], IndexError, "column -4 is out of bounds for a matrix of 3 columns")
refused(lambda: a[:, [3]], IndexError, "a column is out of bounds for a matrix of 3 columns")
refused(lambda: a[:, np.array([True])], IndexError, "does not fit a matrix of 3 columns")
refused(lambda: a[0, 0, 0], IndexError, "a sparse matrix has two axes, but 3 indices are given")
refused(lambda: a[[0, 1], [0, 1]], TypeError, "A[rows, columns] with two arrays is not supported")
refused(lambda: a[None], TypeError, "cannot be indexed with None")
refused(lambda: a[..., 0], TypeError, "cannot be indexed with Ellipsis")
refused(lambda: a.sum(2), IndexError, "sum: axis 2 is out of bounds")
refused(lambda: a.mean((0, 1)), TypeError, "mean: axis must be 0, 1, -1, -2 or None, not (0, 1)")
refused(lambda: a.astype("complex128").max(), TypeError, "max of a sparse matrix needs integers or floats, not complex128")
refused(lambda: kjit.csr(np.zeros((0, 3))).min(0), ValueError, "min: a matrix of the shape (0, 3) has no elements along this axis")
refused(lambda: a.multiply(np.ones((3, 2))), kjit.ArgumentError, "the shape (3, 2) does not broadcast to that of the matrix, (3, 3)")
refused(lambda: a.multiply(kjit.csr(np.eye(2))), kjit.ArgumentError, "sparse matrices have the shapes (3, 3) and (2, 2)")
refused(lambda: a.multiply("text"), TypeError, "the factor must be a number, an array or a sparse matrix, not str")
refused(lambda: kjit.pullback(kjit.CSR.dot, a, a), TypeError, "the product of two sparse matrices has no derivative rule")
refused(lambda: kjit.pullback(kjit.CSR.multiply, a, np.ones(3)), TypeError, "CSR.multiply has no derivative rule")
