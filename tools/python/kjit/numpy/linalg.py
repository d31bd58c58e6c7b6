"""Linear algebra: the extension `linalg` of the Python array API standard.

kjit computes products, norms, traces and diagonals itself. NumPy (LAPACK) computes decompositions
on the CPU, and cuSOLVER on a GPU. All functions accept stacks of matrices: the last two dimensions
are the matrices.
"""

import typing

import numpy

from .._kjit import Array
from . import _beyond, _creation, _dtypes, _engine, _manipulation, _products, _reductions
from ._dtypes import KIND
from ._engine import elementwise, normalize_axes, normalize_axis
from ._errors import PromotionError, ShapeError
from ._manipulation import matrix_transpose
from ._products import matmul, tensordot, vecdot
from ._table import ROWS


class LinAlgError(ShapeError, numpy.linalg.LinAlgError):
    """Raised if a decomposition cannot handle a matrix: it is not square, singular or not positive
    definite."""

    __module__ = "kjit.numpy.linalg"


class EighResult(typing.NamedTuple):
    """The result of `eigh`: the eigenvalues, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(typing.NamedTuple):
    """The result of `eig`: the eigenvalues, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(typing.NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(typing.NamedTuple):
    """The result of `slogdet`: the determinant's sign, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVDResult(typing.NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


# ---- operands ----


def _library(x, what):
    """Returns the module with the decompositions for the array's device."""
    if x.device.startswith("cpu"):
        from . import _lapack

        return _lapack
    from . import _cusolver

    return _cusolver.checked(what)


def _matrices(x, what, is_square=False):
    """Returns matrices converted to floats or complex numbers. Raises LinAlgError for less than two
    dimensions, and with is_square for matrices that are not square."""
    if x.ndim < 2:
        raise LinAlgError(f"{what}: x has {x.ndim} dimensions, but must have at least two")
    if is_square and x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"{what}: the matrices are not square: {x.shape[-2]} rows and {x.shape[-1]} columns")
    return _floats(x, what)


def _floats(x, what):
    text = _dtypes.text_of(x)
    if text in ("f16", "bf16"):
        raise PromotionError(f"{what}: {_dtypes.BY_TEXT[text].name} has no decompositions; convert with x.astype(kjit.numpy.float32)")
    return x if KIND[text] in "fc" else _engine.cast(x, "f64")


def _call(x, what, name, *arguments):
    try:
        return getattr(_library(x, what), name)(x, *arguments)
    except numpy.linalg.LinAlgError as error:
        raise LinAlgError(f"{what}: {error}") from None


def _adjoint(x):
    return elementwise(ROWS["conj"], (matrix_transpose(x),)) if KIND[x.dtype.text] == "c" else matrix_transpose(x)


# ---- decompositions ----


def cholesky(x, /, *, upper=False):
    """Returns the lower triangular matrices L with x = L @ L.T.conj(), for Hermitian positive
    definite matrices. upper: returns the adjoint of L."""
    made = _call(_matrices(x, "cholesky", True), "cholesky", "cholesky")
    return _engine.copied(_adjoint(made)) if upper else made


def eigh(x, /):
    """Returns the eigenvalues in ascending order and the eigenvectors of symmetric or Hermitian
    matrices. Only the lower triangle is read."""
    return EighResult(*_call(_matrices(x, "eigh", True), "eigh", "eigh"))


def eigvalsh(x, /):
    """Returns the eigenvalues of symmetric or Hermitian matrices in ascending order."""
    return _call(_matrices(x, "eigvalsh", True), "eigvalsh", "eigvalsh")


def eig(x, /):
    """Returns the eigenvalues and eigenvectors of square matrices as complex numbers. Supported on
    the CPU only; on a GPU it raises kjit.numpy.LibraryError."""
    return EigResult(*map(_as_complex, _call(_matrices(x, "eig", True), "eig", "eig")))


def eigvals(x, /):
    """Returns the eigenvalues of square matrices as complex numbers. Supported on the CPU only; on
    a GPU it raises kjit.numpy.LibraryError."""
    return _as_complex(_call(_matrices(x, "eigvals", True), "eigvals", "eigvals"))


def _as_complex(x):
    return _engine.converted(x, _dtypes.WHOLE.get(x.dtype.text, x.dtype.text))


def qr(x, /, *, mode="reduced"):
    """Factors matrices into Q, with orthonormal columns, and an upper triangular R. mode: "reduced",
    "complete", or "r" for R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode must be "reduced", "complete" or "r", not {mode!r}')
    if mode == "r":
        return qr(x).R
    return QRResult(*_call(_matrices(x, "qr"), "qr", "qr", mode))


def svd(x, /, *, full_matrices=True):
    """Returns the singular value decomposition U * S @ Vh, with the largest singular value first.
    full_matrices: whether U and Vh are square."""
    return SVDResult(*_call(_matrices(x, "svd"), "svd", "svd", full_matrices))


def svdvals(x, /):
    """Returns the singular values, largest first."""
    return _call(_matrices(x, "svdvals"), "svdvals", "svdvals")


# ---- linear equations ----


def inv(x, /):
    """Returns the inverses of square matrices. Raises LinAlgError for a singular matrix."""
    return _call(_matrices(x, "inv", True), "inv", "inv")


def det(x, /):
    """Returns the determinants of square matrices."""
    return _call(_matrices(x, "det", True), "det", "det")


def slogdet(x, /):
    """Returns the determinants' signs, and the logarithms of their absolute values, for square
    matrices."""
    return SlogdetResult(*_call(_matrices(x, "slogdet", True), "slogdet", "slogdet"))


def solve(x1, x2, /):
    """Solves x1 @ x = x2. x2: one right-hand side if it has one dimension, else matrices of
    right-hand sides. Raises LinAlgError for a singular matrix."""
    x1, x2 = _matrices(x1, "solve", True), _floats(x2, "solve")
    _engine.common_device((x1, x2), "solve")
    text = _dtypes.promote([x1.dtype.text, x2.dtype.text], "solve")
    x1, x2 = _engine.converted(x1, text), _engine.converted(x2, text)
    is_vector = x2.ndim == 1
    sides = x2.reshape((x2.shape[0], 1)) if is_vector else x2
    if sides.ndim < 2 or sides.shape[-2] != x1.shape[-1]:
        raise ShapeError(f"solve: x1 has the shape {tuple(x1.shape)}, so x2 needs {x1.shape[-1]} rows, but has the shape {tuple(x2.shape)}")
    _engine.broadcast([tuple(x1.shape[:-2]), tuple(sides.shape[:-2])], "solve: matrices and right sides")
    if sides.ndim < x1.ndim:
        sides = sides.reshape((1,) * (x1.ndim - sides.ndim) + tuple(sides.shape))
    made = _call(x1, "solve", "solve", sides)
    return made.reshape(tuple(made.shape[:-1])) if is_vector else made


def _limit(values, shape, rtol):
    """Returns for each matrix the bound below which a singular value counts as zero."""
    if rtol is None:
        rtol = max(shape[-2:]) * _dtypes.finfo(values.dtype).eps
    if isinstance(rtol, Array):
        rtol = _manipulation.expand_dims(_engine.converted(rtol, values.dtype.text), axis=-1)
    return elementwise(ROWS["multiply"], (_reductions.max(values, axis=-1, keepdims=True), rtol))


def pinv(x, /, *, rtol=None):
    """Returns the pseudo-inverses. rtol: singular values up to rtol times the largest one count as
    zero; the default is the larger extent times the machine epsilon."""
    x = _matrices(x, "pinv")
    if not x.size:
        return _creation.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype, device=x.device)
    left, values, right = svd(x, full_matrices=False)
    is_kept = elementwise(ROWS["greater"], (values, _limit(values, x.shape, rtol)))
    inverse = elementwise(ROWS["where"], (is_kept, elementwise(ROWS["reciprocal"], (values,)), 0.0))
    scaled = elementwise(ROWS["multiply"], (_adjoint(right), _manipulation.expand_dims(inverse, axis=-2)))
    return matmul(scaled, _adjoint(left))


def matrix_rank(x, /, *, rtol=None):
    """Returns each matrix's rank: the number of singular values above rtol times the largest one.
    With less than two dimensions the rank is 1 if an element is not 0, else 0."""
    if x.ndim < 2:
        return _engine.cast(_reductions.any(elementwise(ROWS["not_equal"], (x, 0))), "i64")
    x = _matrices(x, "matrix_rank")
    values = svdvals(x)
    if not values.shape[-1]:
        return _creation.zeros(x.shape[:-2], dtype="i64", device=x.device)
    return _reductions.count_nonzero(elementwise(ROWS["greater"], (values, _limit(values, x.shape, rtol))), axis=-1)


def matrix_power(x, n, /):
    """Returns the n-th power of square matrices. A negative n inverts the matrices first."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"matrix_power: the matrices are not square: the shape is {tuple(x.shape)}")
    if n < 0:
        x, n = inv(x), -n
    made = None
    while n:
        if n & 1:
            made = x if made is None else matmul(made, x)
        n >>= 1
        x = matmul(x, x) if n else x
    if made is None:
        made = _creation.empty(x.shape, dtype=x.dtype, device=x.device)
        _engine.assign(made, _creation.eye(x.shape[-1], dtype=x.dtype, device=x.device))
        return made
    return _engine.copied(made) if made is x else made


# ---- norms ----


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Returns vector norms of order ord along axes, by default of all elements. ord=0 counts the
    nonzero elements."""
    x = _floats(x, "vector_norm") if KIND[_dtypes.text_of(x)] in "biu" else x
    axes, sizes = normalize_axes(axis, x.ndim), elementwise(ROWS["abs"], (x,))
    options = {"axis": axes, "keepdims": keepdims}
    if ord == float("inf"):
        return _reductions.max(sizes, **options) if sizes.size else _reductions.sum(sizes, **options)
    if ord == -float("inf"):
        return _reductions.min(sizes, **options)
    if ord == 0:
        return _engine.cast(_reductions.count_nonzero(sizes, **options), sizes.dtype.text)
    if ord == 1:
        return _reductions.sum(sizes, **options)
    if ord == 2:
        return elementwise(ROWS["sqrt"], (_reductions.sum(elementwise(ROWS["square"], (sizes,)), **options),))
    total = _reductions.sum(elementwise(ROWS["pow"], (sizes, float(ord))), **options)
    return elementwise(ROWS["pow"], (total, 1.0 / ord))


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Returns matrix norms. ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    x = _matrices(x, "matrix_norm")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        function = {2: _reductions.max, -2: _reductions.min, "nuc": _reductions.sum}[ord]
        values = svdvals(x)
        found = function(values, axis=-1) if values.shape[-1] else _reductions.sum(values, axis=-1)
    elif ord in (1, -1, float("inf"), -float("inf")):
        sums = _reductions.sum(elementwise(ROWS["abs"], (x,)), axis=-2 if abs(ord) == 1 else -1)
        function = _reductions.max if ord > 0 else _reductions.min
        found = function(sums, axis=-1) if sums.shape[-1] else _reductions.sum(sums, axis=-1)
    else:
        raise ValueError(f'matrix_norm: ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf, not {ord!r}')
    return found.reshape((*found.shape, 1, 1)) if keepdims else found


# ---- products, diagonals ----


def cross(x1, x2, /, *, axis=-1):
    """Returns the cross products of vectors with three elements along an axis."""
    _engine.common_device((x1, x2), "cross")
    rank = min(x1.ndim, x2.ndim)
    place = axis if -rank <= axis < 0 else normalize_axis(axis, rank) - rank
    if x1.shape[place] != 3 or x2.shape[place] != 3:
        raise ShapeError(f"cross: vectors must have three elements, not {x1.shape[place]} and {x2.shape[place]}")
    a, b = (_manipulation.unstack(x, axis=place) for x in (x1, x2))
    multiply, subtract = ROWS["multiply"], ROWS["subtract"]
    parts = [
        elementwise(subtract, (elementwise(multiply, (a[i], b[k])), elementwise(multiply, (a[k], b[i]))))
        for i, k in ((1, 2), (2, 0), (0, 1))
    ]
    return _manipulation.stack(parts, axis=place)


def outer(x1, x2, /):
    """Returns the product of each element of x1 with each element of x2. Both have one dimension,
    otherwise ShapeError is raised."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: the arrays must have one dimension, not {x1.ndim} and {x2.ndim}")
    return _products.outer(x1, x2)


def diagonal(x, /, *, offset=0):
    """Returns a read-only view of the diagonals of matrices. offset: 0 for the main diagonal,
    positive above it, negative below it."""
    if x.ndim < 2:
        raise ShapeError(f"diagonal: x has {x.ndim} dimensions, but must have at least two")
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(x.shape[-2] - row, x.shape[-1] - column), 0)
    strides = x._strides
    first = row * strides[-2] + column * strides[-1] if count else 0
    return x._view([*x.shape[:-2], count], [*strides[:-2], strides[-2] + strides[-1]], first, True)


def trace(x, /, *, offset=0, dtype=None):
    """Returns the sums of the diagonals of matrices. offset: as in `diagonal`."""
    return _reductions.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


__all__ = (
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm", "LinAlgError",
)  # fmt: skip


def _numpys():
    return numpy.linalg


for _name in __all__:
    if not isinstance(globals()[_name], type):
        globals()[_name] = _beyond.widened(globals()[_name], _numpys)


def __getattr__(name):
    return _beyond.attribute(__name__, name, _numpys)
