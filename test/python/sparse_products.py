# RUN: %kjit-python %s cpu
# RUN: %if cuda %{ %kjit-python %s cuda %}
"""Products of two sparse matrices against dense products of NumPy, and against SciPy's where it is installed: empty rows, entries that
occur twice, zeros that cancel, integers, complex numbers and bools. Then systems with a LinearOperator as SciPy has it."""
import os
import sys

os.environ["KJIT_DEVICE"] = device = sys.argv[1]
import kjit  # noqa: E402
import kjit._sparse_product  # noqa: E402
import kjit.sparse  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

try:
    import scipy.sparse
    import scipy.sparse.linalg
except ImportError:
    scipy = None

seed = seeds.seed
rng = np.random.default_rng(seed)


def coordinates(shape, code):
    """Returns entries in any order, some of them at the same position."""
    count = int(rng.integers(0, max(1, shape[0] * shape[1] // 3) + 1)) if min(shape) else 0
    rows, columns = rng.integers(0, max(shape[0], 1), count), rng.integers(0, max(shape[1], 1), count)
    rows = np.where(rows % 3 == 1, 0, rows)  # empty rows
    values = rng.integers(0 if code[0] in "ub" else -4, 2 if code == "bool" else 5, count)
    if code[0] == "c":
        values = values + 1j * rng.integers(-4, 5, count)
    order = np.argsort(rows, kind="stable")
    return values[order].astype(code), rows[order], columns[order]


def make(shape, code):
    """Returns a kjit matrix with unsorted rows, and the dense matrix."""
    values, rows, columns = coordinates(shape, code)
    if code == "bool":  # no position occurs twice, because bools are not added
        places = np.unique(rows * shape[1] + columns) if min(shape) else np.zeros(0, int)
        rows, columns, values = places // max(shape[1], 1), places % max(shape[1], 1), rng.random(len(places)) < 0.7
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0])[: shape[0]])]).astype(np.int32)
    dense = np.zeros(shape, code)
    if code == "bool":
        dense[rows, columns] = values
    else:
        np.add.at(dense, (rows, columns), values)
    return kjit.csr((values, columns.astype(np.int32), indptr), shape), dense


def host(x):
    return x.to_host() if isinstance(x, kjit.Array) else np.asarray(x)


def check_products():
    for _ in range(30):
        kjit._sparse_product._MOST_PRODUCTS = int(rng.choice([1 << 25, 20, 1]))
        rows, inner, columns = (int(extent) for extent in rng.integers(0, 20, 3))
        codes = [str(code) for code in rng.choice(["int32", "int64", "int8", "uint8", "float32", "float64", "complex64", "complex128", "bool"], 2)]
        (a, x), (b, y) = make((rows, inner), codes[0]), make((inner, columns), codes[1])
        is_own = device != "cpu" or rng.random() < 0.5
        if is_own:
            a, b = kjit.csr(a, device=device), kjit.csr(b, device=device)
        made, expected = a @ b, x @ y
        assert isinstance(made.data, kjit.Array) == is_own
        what = seed, codes, x.shape, y.shape, is_own
        assert made.shape == expected.shape and host(made.data).dtype == expected.dtype, (what, made)
        made.check(sorted=True, unique=True)
        assert np.allclose(host(made.to_dense()), expected), (what, host(made.to_dense()), expected)
        assert np.array_equal(np.diff(host(made.indptr)), np.count_nonzero(expected, axis=1)), what
        if scipy and not is_own:
            same = a.to_scipy() @ b.to_scipy()
            assert same.dtype == made.data.dtype and same.nnz == made.nnz and np.allclose((same - made.to_scipy()).toarray(), 0), what
            assert np.allclose((a @ b.to_scipy()).to_scipy().toarray(), same.toarray()), what


def check_other_forms():
    a, x = make((7, 5), "float64")
    b, y = make((5, 6), "float64")
    for right in (kjit.sparse.coo(b), b):
        assert np.allclose(host((a @ right).to_dense()), x @ y), seed
    assert np.allclose(host(a.dot(b).to_dense()), x @ y), seed
    for call, kind, text in [(lambda: a @ a, kjit.ArgumentError, "do not match for a product"), (lambda: a.dot(b, accumulator="f64"), TypeError, "takes no options, but got accumulator=")]:
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


class Operator:
    """The parts of scipy.sparse.linalg.LinearOperator that the solvers use."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def matvec(self, x):
        return self.matrix @ x

    def rmatvec(self, x):
        return self.matrix.conj().T @ x


def check_operators():
    forms = [Operator] + ([scipy.sparse.linalg.aslinearoperator] if scipy else [])
    for form in forms:
        for code in ("float32", "float64"):
            tolerance = 1e-3 if code == "float32" else 1e-8
            wide = rng.normal(size=(30, 8)).astype(code)
            b = rng.normal(size=30).astype(code)
            given = kjit.array(b, device=device) if device != "cpu" or rng.random() < 0.5 else b
            found = kjit.lsmr(form(wide), given, atol=0, btol=0, conlim=0)
            assert np.allclose(host(found.x), np.linalg.lstsq(wide, b, rcond=None)[0], atol=tolerance), (seed, form, found)
            square = (wide.T @ wide + np.eye(8, dtype=code)).astype(code)
            right = rng.normal(size=8).astype(code)
            given = kjit.array(right, device=device) if device != "cpu" else right
            found = kjit.cg(form(square), given, residual_tolerance=tolerance * 1e-2)
            assert np.allclose(host(found.x), np.linalg.solve(square.astype("f8"), right), atol=tolerance), (seed, form, found)
    bad = Operator(np.eye(3))
    bad.matvec = lambda x: np.zeros(4)
    for operator, text in ((bad, "matvec of the LinearOperator returned the shape (4,), not (3,)"), (Operator(np.eye(3) * 1j), "is complex")):
        try:
            kjit.cg(operator, kjit.array(np.ones(3), device=device))
        except (TypeError, ValueError, kjit.Error) as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


check_products()
check_other_forms()
check_operators()
