# RUN: %kjit-python %s
"""Operators and rows of sparse matrices, and matrices that are built from others, compared with dense NumPy matrices,
for NumPy arrays and kjit arrays."""
import os
import random

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.sparse  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
choice, generator = random.Random(seed), np.random.default_rng(seed)


def dense(shape, code="d"):
    values = generator.integers(-9, 10, shape) if np.dtype(code).kind == "i" else generator.standard_normal(shape)
    return np.where(generator.random(shape) < 0.4, values, 0).astype(code)


def matrix(x, is_own):
    made = kjit.csr(x)
    return kjit.csr(made, device="cpu") if is_own else made


def host(x):
    x = x.to_dense() if isinstance(x, (kjit.CSR, kjit.sparse.COO)) else x
    return x.to_host() if isinstance(x, kjit.Array) else np.asarray(x)


def same(got, expected, what):
    found = host(got)
    assert found.shape == expected.shape and found.dtype == expected.dtype, (seed, what, found.shape, found.dtype, expected.shape, expected.dtype)
    assert np.allclose(found, expected, rtol=1e-4 if found.dtype.itemsize == 4 else 1e-12), (seed, what, found, expected)
    if isinstance(got, kjit.CSR):
        got.check(sorted=True)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


for is_own in (False, True):
    rows, columns = choice.randrange(3, 9), choice.randrange(3, 9)
    x, y = dense((rows, columns)), dense((rows, columns), choice.choice("fd"))
    a, b = matrix(x, is_own), matrix(y, is_own)
    assert isinstance(a.data, kjit.Array) == is_own and isinstance((a + b).data, kjit.Array) == is_own
    same(a + b, x + y, "+")
    same(a - b, x - y, "-")
    same(a - a, x - x, "a difference of nothing")
    same(a * 2.5, x * 2.5, "* on the left")
    same(-2 * b, -2 * y, "* on the right")
    same(np.float64(3) * a, 3 * x, "a number of NumPy")
    same(a / 4, x / 4, "/")
    same(-a, -x, "negative")
    same(a.T, x.T, "T")
    for left in (generator.standard_normal(rows), generator.standard_normal((2, rows))):
        given = kjit.array(left) if is_own else left
        made = given @ a
        assert isinstance(made, kjit.Array) == is_own, type(made)
        same(made, left @ x, "@ from the left")
    for right in (generator.standard_normal(columns), generator.standard_normal((columns, 2))):
        same(a @ (kjit.array(right) if is_own else right), x @ right, "@ from the right")
    first, last = sorted(choice.sample(range(rows + 1), 2))
    keys = [slice(first, last), slice(None, None, 2), slice(None, None, -1), slice(2, 1), [0, -1, 0], generator.integers(-rows, rows, 7), x[:, 0] != 0, []]
    for key in keys:
        same(a[key], x[np.asarray(key, int) if isinstance(key, list) else key], ("rows", key))
    if is_own:
        same(a[kjit.array(np.array([1, 0, -1]))], x[[1, 0, -1]], "rows by an array of kjit")
    z = dense((rows, 2), "f")
    c = matrix(z, is_own)
    same(kjit.sparse.hstack([a, c, b]), np.hstack([x, z, y]), "hstack")
    same(kjit.sparse.vstack([a, b, a[:1]]), np.vstack([x, y, x[:1]]), "vstack")
    values = generator.standard_normal(4)
    for k in (0, 2, -3):
        same(kjit.sparse.diag(kjit.array(values) if is_own else values, k), np.diag(values, k), ("diag", k))
    triple = kjit.sparse.coo(a)
    same(triple, x, "coo")
    same(triple.T, x.T, "T of coordinates")
    same(kjit.csr(triple) + triple, 2 * x, "a sum with coordinates")
    assert triple.nnz == a.nnz and "kjit.sparse.COO" in repr(triple)
for k in (-1, 0, 3, 9):
    same(kjit.sparse.eye(4, 6, k=k, dtype="f32"), np.eye(4, 6, k, "f"), ("eye", k))
double = kjit.sparse.COO(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([1, 1, 0]), (2, 2))
same(double, np.array([[0, 3.0], [4.0, 0]]), "entries of one place")
a = kjit.csr(np.eye(3))
refused(lambda: a + kjit.csr(np.eye(2)), kjit.ArgumentError, "matrices of the shapes (3, 3) and (2, 2) cannot be added")
refused(lambda: kjit.sparse.vstack([a, kjit.csr(np.eye(2))]), kjit.ArgumentError, "vstack: the matrices have different numbers of columns: [3, 2]")
refused(lambda: kjit.sparse.hstack([]), kjit.ArgumentError, "hstack: at least one matrix is needed")
refused(lambda: a[[3]], IndexError, "a row is out of bounds for a matrix of 3 rows")
refused(lambda: a[np.array([True])], IndexError, "a mask of the shape (1,)")
refused(lambda: kjit.sparse.diag(np.ones(2), 0, (3, 3)), kjit.ArgumentError, "diag: 2 values do not fit diagonal 0")
refused(lambda: kjit.sparse.COO(np.ones(2), np.ones(1, int), np.ones(2, int), (3, 3)), kjit.ArgumentError, "one length")
refused(lambda: a * np.ones(3), TypeError, "operand 'CSR' does not support ufuncs")
refused(lambda: a + 1, TypeError, "unsupported operand")

try:
    import scipy.sparse
except ImportError:
    print("skipped: SciPy is not installed")
else:
    x = dense((4, 5))
    same(kjit.sparse.coo(scipy.sparse.csc_array(x)), x, "a matrix of SciPy")
    assert (kjit.sparse.coo(kjit.csr(x)).to_scipy().toarray() == x).all()
