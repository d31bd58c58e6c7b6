"""Matrix decompositions by cuSOLVER, for arrays on a GPU. The module has the functions of _lapack.

cuSOLVER's matrices are column-major: it reads the memory of a row-major matrix as the transposed
matrix. Each function says how it handles that. cuSOLVER decomposes the matrices of a stack one after the
other.
"""

import ctypes
import functools

import numpy

from . import _creation, _engine, _nvidia
from ._dtypes import KIND, PART
from ._engine import elementwise
from ._errors import LibraryError
from ._manipulation import matrix_transpose
from ._table import ROWS

_LETTERS = {"f32": "S", "f64": "D", "c64": "C", "c128": "Z"}
_UPPER, _TRANSPOSED = 1, 1
_NONE, _VECTORS = 0, 1
_ALL, _SOME, _NO = (ctypes.c_byte(ord(letter)) for letter in "ASN")


class Calls:
    """cuSOLVER's functions for one element type and one device."""

    def __init__(self, x):
        self.library = _nvidia.library("cuSOLVER", "linalg")
        self.text, self.device, self.place = x.dtype.text, x.device, _nvidia.place(x.device)
        self.handle = _handle(x.device)

    def function(self, name, *arguments):
        """Calls a cuSOLVER function. name: the name without the prefix and the type's letter, such
        as "potrf". Raises LibraryError if it fails."""
        full = f"cusolverDn{_LETTERS[self.text]}{name}"
        _nvidia.check(getattr(self.library, full)(self.handle, *arguments), full)

    def work(self, name, *arguments):
        """Returns (workspace for a function, its number of elements)."""
        count = ctypes.c_int()
        self.function(f"{name}_bufferSize", *arguments, ctypes.byref(count))
        return _engine.new((max(count.value, 1),), self.text, self.device), count

    def info(self, matrices):
        """Returns an array of zeros with one element for each matrix. A function of cuSOLVER stores
        each matrix's status in this array."""
        return _creation.zeros((max(_count(matrices), 1),), dtype="i32", device=self.device)


@functools.cache
def _handle(device):
    library, handle, place = _nvidia.library("cuSOLVER", "linalg"), ctypes.c_void_p(), _nvidia.place(device)
    with place.calls():
        _nvidia.check(library.cusolverDnCreate(ctypes.byref(handle)), "cusolverDnCreate")
        _nvidia.check(library.cusolverDnSetStream(handle, ctypes.c_void_p(place.stream.handle)), "cusolverDnSetStream")
    return handle


class Checked:
    """Gives access to the functions in this module; any other attribute raises LibraryError. what:
    the operation name, for the message."""

    def __init__(self, what):
        _nvidia.library("cuSOLVER", "linalg")
        self._what = what

    def __getattr__(self, name):
        if name not in FUNCTIONS:
            raise LibraryError(f"linalg.{self._what}: this decomposition is not supported on a GPU; use x.to_device('cpu')")
        return FUNCTIONS[name]


def checked(what):
    """Returns the functions in this module. Raises LibraryError if cuSOLVER is not installed."""
    return Checked(what)


def _count(matrices):
    count = 1
    for extent in matrices.shape[:-2]:
        count *= extent
    return count


def _matrix(x, i):
    """Returns the address of matrix i in a stack."""
    return _nvidia.address(x, i * x.shape[-1] * x.shape[-2])


def _line(x, i):
    """Returns the address of row i in an array of vectors."""
    return _nvidia.address(x, i * x.shape[-1])


def _real(text):
    return PART.get(text, text)


def _refuse(info, reason):
    """Raises numpy.linalg.LinAlgError with the reason if the decomposition of a matrix failed."""
    if numpy.any(info.to_host() > 0):
        raise numpy.linalg.LinAlgError(reason)


# ---- linear equations ----


def _factored(x):
    """Returns (LU factors of the transposed matrices, their pivots, the status of getrf for each
    matrix)."""
    factors, n = _engine.copied(x), x.shape[-1]
    calls = Calls(x)
    pivots, info = _creation.zeros((*x.shape[:-2], n), dtype="i32", device=x.device), calls.info(x)
    if factors.size:
        with calls.place.calls():
            work, _ = calls.work("getrf", n, n, _matrix(factors, 0), n)
            for i in range(_count(x)):
                arguments = n, n, _matrix(factors, i), n, _nvidia.address(work), _line(pivots, i), _nvidia.address(info, i)
                calls.function("getrf", *arguments)
            calls.place.stream.synchronize()
    return factors, pivots, info


def solve(x, sides):
    """Solves x @ y = sides with the LU factors of the transposed matrices. cuSOLVER solves for the
    columns of the right-hand sides, which are the rows of their transposed matrices."""
    from ._indexing import broadcast_view

    batch = _engine.broadcast([tuple(x.shape[:-2]), tuple(sides.shape[:-2])])
    factors, pivots, info = _factored(x)
    _refuse(info, "Singular matrix")
    n, columns = sides.shape[-2:]
    made = _engine.copied(matrix_transpose(broadcast_view(sides, (*batch, n, columns))))
    if not made.size:
        return _engine.copied(matrix_transpose(made))
    calls, places = Calls(x), numpy.broadcast_to(numpy.arange(_count(x)).reshape(x.shape[:-2]), batch).ravel()
    done = calls.info(made)
    with calls.place.calls():
        for i, own in enumerate(map(int, places)):
            calls.function(
                "getrs", _TRANSPOSED, n, columns, _matrix(factors, own), n, _line(pivots, own), _matrix(made, i), n, _nvidia.address(done, i)
            )
        calls.place.stream.synchronize()
    return _engine.copied(matrix_transpose(made))


def inv(x):
    """Inverts matrices by solving for the identity matrix."""
    return solve(x, _creation.eye(x.shape[-1], dtype=x.dtype, device=x.device))


def _signs(pivots):
    """Returns -1 for an odd number of row exchanges, else 1. pivots: 1-based, as getrf returns
    them."""
    from . import _reductions

    own = _creation.arange(1, pivots.shape[-1] + 1, dtype="i32", device=pivots.device)
    count = _reductions.count_nonzero(elementwise(ROWS["not_equal"], (pivots, own)), axis=-1)
    odd = elementwise(ROWS["remainder"], (count, 2))
    return elementwise(ROWS["subtract"], (1, elementwise(ROWS["multiply"], (odd, 2))))


def det(x):
    """Computes determinants: the product of each factor's diagonal, with the sign of the row
    exchanges."""
    from . import _reductions, linalg

    factors, pivots, _ = _factored(x)
    signs = _engine.cast(_signs(pivots), x.dtype.text)
    return elementwise(ROWS["multiply"], (_reductions.prod(linalg.diagonal(factors), axis=-1), signs))


def slogdet(x):
    """Returns the sign of the determinant and the logarithm of its absolute value, computed from
    the factors' diagonals."""
    from . import _reductions, linalg

    factors, pivots, _ = _factored(x)
    diagonal = linalg.diagonal(factors)
    sizes = elementwise(ROWS["abs"], (diagonal,))
    one = _engine.cast(_signs(pivots), x.dtype.text)
    sign = elementwise(ROWS["multiply"], (_reductions.prod(elementwise(ROWS["sign"], (diagonal,)), axis=-1), one))
    return sign, _reductions.sum(elementwise(ROWS["log"], (sizes,)), axis=-1)


# ---- symmetric matrices ----


def cholesky(x):
    """Returns the lower Cholesky factors. cuSOLVER reads a Hermitian matrix in row-major order as
    its conjugate. The upper factor of the conjugate in column-major order has the same elements in
    memory as the lower factor of the matrix in row-major order."""
    made, n, calls = _engine.copied(x), x.shape[-1], Calls(x)
    info = calls.info(x)
    if made.size:
        with calls.place.calls():
            work, count = calls.work("potrf", _UPPER, n, _matrix(made, 0), n)
            for i in range(_count(x)):
                calls.function("potrf", _UPPER, n, _matrix(made, i), n, _nvidia.address(work), count, _nvidia.address(info, i))
            calls.place.stream.synchronize()
    _refuse(info, "Matrix is not positive definite")
    return _creation.tril(made)


def _eigen(x, job):
    """Returns the eigenvalues, and the eigenvectors of the conjugate matrices as rows."""
    vectors, n, calls = _engine.copied(x), x.shape[-1], Calls(x)
    values = _engine.new(tuple(x.shape[:-1]), _real(x.dtype.text), x.device)
    name = "heevd" if KIND[x.dtype.text] == "c" else "syevd"
    info = calls.info(x)
    if vectors.size:
        with calls.place.calls():
            work, count = calls.work(name, job, _UPPER, n, _matrix(vectors, 0), n, _line(values, 0))
            for i in range(_count(x)):
                arguments = job, _UPPER, n, _matrix(vectors, i), n, _line(values, i), _nvidia.address(work), count, _nvidia.address(info, i)
                calls.function(name, *arguments)
            calls.place.stream.synchronize()
    _refuse(info, "Eigenvalues did not converge")
    return values, vectors


def eigh(x):
    """Returns the eigenvalues, and the eigenvectors as columns."""
    values, vectors = _eigen(x, _VECTORS)
    columns = _engine.copied(matrix_transpose(vectors))
    return values, elementwise(ROWS["conj"], (columns,)) if KIND[x.dtype.text] == "c" else columns


def eigvalsh(x):
    """Returns the eigenvalues."""
    return _eigen(x, _NONE)[0]


# ---- rectangular matrices ----


def qr(x, mode):
    """Returns Q and R. The matrices are transposed first, so that cuSOLVER reads the original
    matrices."""
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    width = rows if mode == "complete" else least
    factors, batch, calls = _engine.copied(matrix_transpose(x)), tuple(x.shape[:-2]), Calls(x)
    q = _creation.zeros((*batch, width, rows), dtype=x.dtype, device=x.device)
    tau, info = _creation.zeros((*batch, max(least, 1)), dtype=x.dtype, device=x.device), calls.info(x)
    complex_name = "ungqr" if KIND[x.dtype.text] == "c" else "orgqr"
    if factors.size:
        with calls.place.calls():
            work, count = calls.work("geqrf", rows, columns, _matrix(factors, 0), rows)
            for i in range(_count(x)):
                arguments = rows, columns, _matrix(factors, i), rows, _line(tau, i), _nvidia.address(work), count, _nvidia.address(info, i)
                calls.function("geqrf", *arguments)
            calls.place.stream.synchronize()
        used = min(width, columns)
        _engine.assign(q[..., :used, :], factors[..., :used, :])
        with calls.place.calls():
            work, count = calls.work(complex_name, rows, width, least, _matrix(q, 0), rows, _line(tau, 0))
            for i in range(_count(x)):
                arguments = rows, width, least, _matrix(q, i), rows, _line(tau, i), _nvidia.address(work), count, _nvidia.address(info, i)
                calls.function(complex_name, *arguments)
            calls.place.stream.synchronize()
    return _engine.copied(matrix_transpose(q)), _creation.triu(matrix_transpose(factors)[..., :width, :])


def _decomposed(x, full_matrices, has_vectors=True):
    """Returns U, S and Vh of matrices that have at most as many rows as columns. cuSOLVER reads the
    transposed matrices: in their memory order its left vectors are Vh and its right vectors are
    U."""
    rows, columns = x.shape[-2:]
    source, batch, text, calls = _engine.copied(x), tuple(x.shape[:-2]), x.dtype.text, Calls(x)
    width = columns if full_matrices else rows
    u, s = _engine.new((*batch, rows, rows), text, x.device), _engine.new((*batch, rows), _real(text), x.device)
    vh, info = _engine.new((*batch, width, columns), text, x.device), calls.info(x)
    jobs = ((_ALL if full_matrices else _SOME), _ALL) if has_vectors else (_NO, _NO)
    more = _engine.new((max(5 * rows, 1),), _real(text), x.device)
    with calls.place.calls():
        work, count = calls.work("gesvd", columns, rows)
        for i in range(_count(x)):
            calls.function(
                "gesvd", *jobs, columns, rows, _matrix(source, i), columns, _line(s, i), _matrix(vh, i), columns, _matrix(u, i), rows,
                _nvidia.address(work), count, _nvidia.address(more), _nvidia.address(info, i),
            )  # fmt: skip
        calls.place.stream.synchronize()
    _refuse(info, "SVD did not converge")
    return u, s, vh


def svd(x, full_matrices):
    """Returns U, the singular values and the conjugate transpose of V."""
    rows, columns = x.shape[-2:]
    if not x.size:
        return _empty_svd(x, full_matrices)
    if rows <= columns:
        return _decomposed(x, full_matrices)
    u, s, vh = _decomposed(matrix_transpose(x), full_matrices)
    return _engine.copied(matrix_transpose(vh)), s, _engine.copied(matrix_transpose(u))


def _empty_svd(x, full_matrices):
    """Returns U, S and Vh of matrices without elements: U and Vh are identity matrices."""
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    shapes = ((rows, rows if full_matrices else least), (columns if full_matrices else least, columns))
    factors = []
    for shape in shapes:
        factor = _engine.new((*x.shape[:-2], *shape), x.dtype.text, x.device)
        _engine.assign(factor, _creation.eye(*shape, dtype=x.dtype, device=x.device))
        factors.append(factor)
    return factors[0], _engine.new((*x.shape[:-2], least), _real(x.dtype.text), x.device), factors[1]


def svdvals(x):
    """Returns the singular values, largest first."""
    if not x.size:
        return _empty_svd(x, False)[1]
    return _decomposed(x if x.shape[-2] <= x.shape[-1] else matrix_transpose(x), False, has_vectors=False)[1]


FUNCTIONS = {each.__name__: each for each in (solve, inv, det, slogdet, cholesky, eigh, eigvalsh, qr, svd, svdvals)}
