"""Elements of sparse matrices: elementwise products, sums along axes, extrema and diagonals.

The results are computed in the matrix's memory: with NumPy for NumPy arrays, otherwise with kjit.numpy on the device."""

from operator import index

from ._errors import ArgumentError
from ._folds import reduce_segments
from ._products import CSR, _is_factor, _no_list, csr
from .sparse import COO, _wide, arrays_in_place, coo, scaled


def _entries(matrix):
    """Returns the module that computes with the arrays (NumPy or kjit.numpy), and the values, rows,
    columns and row offsets of the entries."""
    xp, (data, rows, columns, indptr) = arrays_in_place(*matrix.to_coo(), matrix.indptr)
    return xp, data, rows, columns, indptr - indptr[:1]


def canonical(matrix):
    """Returns the matrix with the columns in each row sorted and unique: itself, or a new matrix that adds entries."""
    try:
        matrix.check(sorted=True, unique=True)
    except ArgumentError:
        data, rows, columns = matrix.to_coo()
        return csr((data, (rows, columns)), matrix.shape)
    return matrix


def _axis_of(axis, what):
    """Returns an axis as 0, 1 or None."""
    if axis is None:
        return None
    if not hasattr(axis, "__index__"):
        raise TypeError(f"{what}: axis must be 0, 1, -1, -2 or None, not {axis!r}")
    if not -2 <= index(axis) < 2:
        raise IndexError(f"{what}: axis {axis} is out of bounds for a matrix with two axes")
    return index(axis) % 2


# ---- sums ----


def _sum_type(xp, data):
    """Returns the type that NumPy gives to the sum of such values."""
    return {"b": xp.int64, "i": xp.int64, "u": xp.uint64}.get(data.dtype.kind, data.dtype)


def summed(matrix, axis, dtype=None, what="sum"):
    """Returns the sum of all elements, or the sums along an axis."""
    axis = _axis_of(axis, what)
    if axis == 0:
        return summed(matrix.T, 1, dtype)
    xp, (data, indptr) = arrays_in_place(matrix.data, matrix.indptr)
    data = data.astype(_sum_type(xp, data) if dtype is None else dtype)
    sums = reduce_segments(data, indptr, "add").astype(data.dtype)
    return sums if axis == 1 else xp.sum(sums, dtype=sums.dtype)


def mean(matrix, axis, dtype=None):
    """Returns the mean of all elements, or the means along an axis."""
    axis = _axis_of(axis, "mean")
    count = matrix.shape[0] * matrix.shape[1] if axis is None else matrix.shape[axis]
    _, (data,) = arrays_in_place(matrix.data)
    if dtype is None and data.dtype.kind in "biu":
        dtype = "float64"
    sums = summed(matrix, axis, dtype)
    return (sums / count).astype(sums.dtype)


def diagonal(matrix, k=0):
    """Returns the elements (i, i + k) as an array."""
    k = index(k)
    rows, columns = matrix.shape
    xp, data, of_row, of_column, offsets = _entries(matrix)
    of_row, of_column = _wide(xp, of_row, of_column)
    chosen = xp.where(of_column - of_row == k, data, xp.zeros_like(data))
    sums = reduce_segments(chosen, offsets, "or" if data.dtype.kind == "b" else "add").astype(data.dtype)
    first, count = max(-k, 0), max(min(rows + min(k, 0), columns - max(k, 0)), 0)
    return sums[first : first + count]


# ---- values ----


def absolute(matrix):
    """Returns a matrix with the absolute values of the elements."""
    matrix = canonical(matrix)
    xp, (data,) = arrays_in_place(matrix.data)
    return CSR(xp.abs(data), matrix.indices, matrix.indptr, matrix.shape, check=False)


def converted(matrix, dtype):
    """Returns a matrix with the elements converted to a type."""
    matrix = canonical(matrix)
    _, (data,) = arrays_in_place(matrix.data)
    return CSR(data.astype(dtype), matrix.indices, matrix.indptr, matrix.shape, check=False)


def copied(matrix):
    """Returns a matrix with copies of the three arrays."""
    _, parts = arrays_in_place(matrix.data, matrix.indices, matrix.indptr)
    return CSR(*(part.copy() for part in parts), matrix.shape, check=False)


def _lowest(xp, data, name):
    """Returns the identity of the maximum or the minimum: the value that is not larger, or not
    smaller, than any other."""
    kind, is_max = data.dtype.kind, name == "max"
    if kind == "f":
        return -float("inf") if is_max else float("inf")
    limits = xp.iinfo(data.dtype)
    return int(limits.min if is_max else limits.max)


def extremum(matrix, axis, name):
    """Returns the largest or smallest element, or those along an axis. Elements without an entry
    count as 0."""
    axis = _axis_of(axis, name)
    _, (data,) = arrays_in_place(matrix.data)
    if data.dtype.kind not in "iuf":
        raise TypeError(f"{name} of a sparse matrix needs integers or floats, not {data.dtype}")
    if 0 in (matrix.shape if axis is None else matrix.shape[axis : axis + 1]):
        raise ValueError(f"{name}: a matrix of the shape {matrix.shape} has no elements along this axis")
    if axis == 0:
        return extremum(matrix.T, 1, name)
    matrix = canonical(matrix)
    xp, (data, indptr) = arrays_in_place(matrix.data, matrix.indptr)
    found = reduce_segments(data, indptr, name, initial=_lowest(xp, data, name))
    fold = xp.maximum if name == "max" else xp.minimum
    found = xp.where(indptr[1:] - indptr[:-1] < matrix.shape[1], fold(found, xp.zeros_like(found)), found)
    return found if axis == 1 else getattr(xp, name)(found)


# ---- elementwise products ----


def multiplied(matrix, other):
    """Returns the elementwise product with a number, an array that broadcasts to the matrix, or a sparse matrix."""
    if _is_factor(other):
        return scaled(matrix, other)
    if isinstance(other, (CSR, COO)) or hasattr(other, "tocsr"):
        return _by_sparse(matrix, csr(other))
    return _by_dense(matrix, _no_list(other))


def _refuse_shape(matrix, shape):
    text = f"multiply: the shape {tuple(shape)} does not broadcast to that of the matrix, {matrix.shape}; A @ x is the matrix product"
    raise ArgumentError(text, "KJIT_ERROR_ARGUMENT")


def _by_dense(matrix, x):
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"multiply: the factor must be a number, an array or a sparse matrix, not {type(x).__name__}")
    shape = (1,) * (2 - len(x.shape)) + tuple(x.shape)
    if len(shape) != 2 or any(extent not in (1, whole) for extent, whole in zip(shape, matrix.shape)):
        _refuse_shape(matrix, x.shape)
    data, rows, columns = matrix.to_coo()
    xp, (data, rows, columns, indptr, x) = arrays_in_place(data, rows, columns, matrix.indptr, x)
    places = (rows if shape[0] > 1 else rows * 0, columns if shape[1] > 1 else columns * 0)
    return CSR(data * x.reshape(shape)[places], columns, indptr - indptr[:1], matrix.shape, check=False)


def _by_sparse(matrix, other):
    """Multiplies by the entries in another matrix: finds each entry's position among the sorted
    positions of the other matrix."""
    if matrix.shape != other.shape:
        text = f"multiply: the sparse matrices have the shapes {matrix.shape} and {other.shape}, but must have the same shape"
        raise ArgumentError(text, "KJIT_ERROR_ARGUMENT")
    if matrix.shape[0] * matrix.shape[1] >= 2**63:
        raise ArgumentError(f"multiply: matrices of the shape {matrix.shape} have more than 2^63 elements", "KJIT_ERROR_ARGUMENT")
    a, b = coo(matrix), coo(canonical(other))
    xp, (data, rows, columns, factors, *places) = arrays_in_place(a.data, a.rows, a.columns, b.data, b.rows, b.columns)
    rows, columns, *places = _wide(xp, rows, columns, *places)
    mine, theirs = (first * matrix.shape[1] + second for first, second in ((rows, columns), places))
    count = theirs.shape[0]
    if not count:
        return COO(data[:0] * factors, rows[:0], columns[:0], matrix.shape).to_csr()
    found = xp.searchsorted(theirs, mine)
    found = xp.where(found < count, found, count - 1)
    hit = theirs[found] == mine
    return COO((data * factors[found])[hit], rows[hit], columns[hit], matrix.shape).to_csr()


# ---- single elements ----


def element(matrix, i, j):
    """Returns the element (i, j): a NumPy scalar, or an array of rank 0 on the matrix's device."""
    row = matrix[i : i + 1]
    xp, (data, indices) = arrays_in_place(row.data, row.indices)
    found = xp.where(indices == j, data, xp.zeros_like(data))
    return xp.any(found) if data.dtype.kind == "b" else xp.sum(found, dtype=found.dtype)
