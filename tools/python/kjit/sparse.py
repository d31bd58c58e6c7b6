"""Sparse matrices in coordinate form, and functions that build matrices from others. `kjit.CSR` has the operators.

The arrays of a matrix are NumPy arrays, kjit arrays, or arrays of another library, whose memory is shared.
"""

import sys
from operator import index

from . import _kjit
from ._arrays import from_dlpack
from ._errors import ArgumentError


def arrays_in_place(*arrays):
    """Returns the namespace that computes with the arrays, NumPy or kjit.numpy, and the arrays. Arrays of other libraries become kjit
    arrays without a copy."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and all(isinstance(x, numpy.ndarray) for x in arrays):
        return numpy, arrays
    from . import numpy as knp

    own = [x if isinstance(x, _kjit.Array) else None if numpy is not None and isinstance(x, numpy.ndarray) else from_dlpack(x) for x in arrays]
    device = next(x.device for x in own if x is not None)
    return knp, tuple(knp.asarray(x, device=device) if mine is None else mine for x, mine in zip(arrays, own))


def _common(xp, first, second):
    """Converts two arrays of values to their common type."""
    kind = xp.result_type(first, second)
    return (x if x.dtype == kind else x.astype(kind) for x in (first, second))


def _wide(xp, *indices):
    """Converts indices to int64, so that no result overflows."""
    return [x if x.dtype == xp.int64 else x.astype(xp.int64) for x in indices]


class COO:
    """A matrix in coordinate form: entry k is data[k] in row rows[k] and column columns[k]. Entries with the same row and column are added.
    `data`, `rows` and `columns` are arrays, which are not copied; `shape` is (rows, columns). Raises ArgumentError if the arrays have
    different lengths."""

    __array_ufunc__ = None

    def __init__(self, data, rows, columns, shape):
        from ._products import _no_list, _shape_of_matrix

        self.data, self.rows, self.columns = (_no_list(part) for part in (data, rows, columns))
        self.shape = _shape_of_matrix(shape)
        shapes = [tuple(part.shape) for part in (self.data, self.rows, self.columns)]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1:
            text = f"data, rows and columns are arrays of one dimension and one length, not of the shapes {shapes}"
            raise ArgumentError(text, "KJIT_ERROR_ARGUMENT")

    @property
    def nnz(self):
        """The number of entries."""
        return self.data.shape[0]

    @property
    def T(self):
        """The transposed matrix, which shares the arrays."""
        return COO(self.data, self.columns, self.rows, self.shape[::-1])

    def to_csr(self, **options):
        """Converts the matrix to `kjit.CSR`. Entries with the same row and column are added, and the columns in each row are sorted."""
        from ._products import csr

        return csr((self.data, (self.rows, self.columns)), self.shape, **options)

    def to_dense(self):
        """Converts the matrix to a two-dimensional array."""
        return self.to_csr().to_dense()

    def to_scipy(self):
        """Returns a `scipy.sparse.coo_array` in host memory."""
        from scipy.sparse import coo_array

        data, rows, columns = (part.to_host() if hasattr(part, "to_host") else part for part in (self.data, self.rows, self.columns))
        return coo_array((data, (rows, columns)), shape=self.shape)

    def __repr__(self):
        return f"<kjit.sparse.COO {self.data.dtype}, shape {self.shape}, {self.nnz} entries>"


def coo(source):
    """Returns the coordinate form of a `kjit.CSR`, of a SciPy or CuPy matrix in any format, or of a two-dimensional array."""
    from ._products import CSR, csr

    if isinstance(source, COO):
        return source
    if hasattr(source, "tocoo"):
        found = source.tocoo()
        return COO(found.data, found.row, found.col, found.shape)
    made = source if isinstance(source, CSR) else csr(source)
    return COO(*made.to_coo(), made.shape)


# ---- matrices made of others ----


def added(first, second, negative=False):
    """Returns the sum or the difference of two matrices."""
    if first.shape != second.shape:
        raise ArgumentError(f"matrices of the shapes {first.shape} and {second.shape} cannot be added", "KJIT_ERROR_ARGUMENT")
    a, b = coo(first), coo(second)
    xp, parts = arrays_in_place(a.data, a.rows, a.columns, b.data, b.rows, b.columns)
    values, more = _common(xp, parts[0], parts[3])
    return _joined(xp, [(values, *parts[1:3]), (-more if negative else more, *parts[4:])], first.shape).to_csr()


def _joined(xp, parts, shape):
    """Concatenates the entries of several matrices."""
    columns = zip(*((data, *_wide(xp, *places)) for data, *places in parts))
    return COO(*(xp.concatenate(list(each)) for each in columns), shape)


def _stacked(matrices, axis, what):
    found = [coo(matrix) for matrix in matrices]
    if not found:
        raise ArgumentError(f"{what}: at least one matrix is needed", "KJIT_ERROR_ARGUMENT")
    if len({matrix.shape[1 - axis] for matrix in found}) > 1:
        word = ("columns", "rows")[axis]
        counts = [matrix.shape[1 - axis] for matrix in found]
        raise ArgumentError(f"{what}: the matrices have different numbers of {word}: {counts}", "KJIT_ERROR_ARGUMENT")
    xp, flat = arrays_in_place(*(part for matrix in found for part in (matrix.data, matrix.rows, matrix.columns)))
    kind, first, parts = xp.result_type(*flat[::3]), 0, []
    for matrix, data, rows, columns in zip(found, flat[::3], flat[1::3], flat[2::3]):
        rows, columns = _wide(xp, rows, columns)
        data = data if data.dtype == kind else data.astype(kind)
        parts.append((data, rows + first, columns) if axis == 0 else (data, rows, columns + first))
        first += matrix.shape[axis]
    other = found[0].shape[1 - axis]
    return _joined(xp, parts, (first, other) if axis == 0 else (other, first)).to_csr()


def vstack(matrices):
    """Stacks matrices vertically and returns a `kjit.CSR`. Raises ArgumentError if they have different numbers of columns."""
    return _stacked(matrices, 0, "vstack")


def hstack(matrices):
    """Stacks matrices horizontally and returns a `kjit.CSR`. Raises ArgumentError if they have different numbers of rows."""
    return _stacked(matrices, 1, "hstack")


def eye(rows, columns=None, *, k=0, dtype="f64", device=None):
    """Returns a `kjit.CSR` of kjit arrays with ones on diagonal k."""
    from . import numpy as knp

    columns = rows if columns is None else columns
    count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
    return diag(knp.ones(count, dtype=dtype, device=device), k, (rows, columns))


def diag(values, k=0, shape=None):
    """Returns a `kjit.CSR` with the values on diagonal k. Without shape the matrix is square and as small as possible."""
    if len(values.shape) != 1:
        raise ArgumentError(f"diag: the values have {len(values.shape)} dimensions, not one", "KJIT_ERROR_ARGUMENT")
    xp, (values,) = arrays_in_place(values)
    count = values.shape[0]
    shape = (count + abs(k),) * 2 if shape is None else tuple(shape)
    if count != max(min(shape[0] + min(k, 0), shape[1] - max(k, 0)), 0):
        raise ArgumentError(f"diag: {count} values do not fit diagonal {k} of a matrix of the shape {shape}", "KJIT_ERROR_ARGUMENT")
    place = {} if not isinstance(values, _kjit.Array) else {"device": values.device}
    places = xp.arange(count, **place)
    return COO(values, places + max(-k, 0), places + max(k, 0), shape).to_csr()


def _is_integer(key):
    """Returns whether an index is one integer. A bool is a mask in NumPy."""
    return hasattr(key, "__index__") and not getattr(key, "ndim", 0) and not isinstance(key, bool)


def _place_of(key, count, word):
    """Returns an integer index, from 0, of a row or column."""
    place = index(key)
    if not -count <= place < count:
        raise IndexError(f"{word} {place} is out of bounds for a matrix of {count} {word}s")
    return place % count


def _taken_of_both(matrix, key):
    """Returns one element, or the rows and columns that a tuple of two indices selects."""
    if len(key) != 2:
        raise IndexError(f"a sparse matrix has two axes, but {len(key)} indices are given")
    rows, columns = key
    if _is_integer(rows) and _is_integer(columns):
        from ._sparse_elements import element

        return element(matrix, _place_of(rows, matrix.shape[0], "row"), _place_of(columns, matrix.shape[1], "column"))
    if not any(isinstance(each, slice) or _is_integer(each) for each in key):
        text = "A[rows, columns] with two arrays is not supported for sparse matrices; A[rows][:, columns] has all their pairs"
        raise TypeError(text)
    made = taken(matrix, rows)
    return made if isinstance(columns, slice) and columns == slice(None) else taken(made.T, columns, "column").T


def taken(matrix, key, word="row"):
    """Returns the rows that an integer, a slice, an array of integers or bools, or a list selects. A tuple selects columns with its second
    index. word is the word for a row in error messages."""
    from ._products import CSR

    if isinstance(key, tuple):
        return _taken_of_both(matrix, key)
    if key is None or key is Ellipsis or isinstance(key, bool):
        raise TypeError(f"a sparse matrix cannot be indexed with {key}; use integers, slices, arrays of integers or masks")
    if isinstance(key, slice):
        first, last, step = key.indices(matrix.shape[0])
        if step == 1:
            return _row_range(matrix, first, max(first, last))
        key = list(range(first, last, step))
    elif _is_integer(key):
        first = _place_of(key, matrix.shape[0], word)
        return _row_range(matrix, first, first + 1)
    xp, (data, indices, indptr) = arrays_in_place(matrix.data, matrix.indices, matrix.indptr)
    rows = _rows(xp, key, matrix.shape[0], indptr, word)
    (starts, ends), kind = _wide(xp, indptr[:-1][rows], indptr[1:][rows]), indptr.dtype
    counts = ends - starts
    offsets = xp.concatenate([counts[:0], xp.cumsum(counts)])
    place = {} if not isinstance(data, _kjit.Array) else {"device": data.device}
    total = int(offsets[-1]) if rows.shape[0] else 0
    entries = xp.arange(total, **place) + xp.repeat(starts - (offsets - counts), counts)
    made = xp.concatenate([xp.zeros(1, dtype=offsets.dtype, **place), offsets]).astype(kind)
    return CSR(data[entries], indices[entries], made, (rows.shape[0], matrix.shape[1]), check=False)


def _rows(xp, key, count, indptr, word):
    """Returns the row indices, which are nonnegative, as an array of the matrix's library."""
    import numpy

    if not isinstance(key, _kjit.Array):
        key = numpy.asarray(key)
        key = key.astype(numpy.int64) if not key.size and key.dtype.kind == "f" else key
    if key.dtype == "bool":
        if tuple(key.shape) != (count,):
            raise IndexError(f"a mask of the shape {tuple(key.shape)} does not fit a matrix of {count} {word}s")
        (key,) = key.nonzero()
    if key.ndim != 1:
        raise IndexError(f"the indices of {word}s must have one dimension, not {key.ndim}")
    if xp is numpy:
        rows = numpy.asarray(key)
    else:
        rows = xp.asarray(key, device=indptr.device)
    if rows.shape[0] and not (int(rows.min()) >= -count and int(rows.max()) < count):
        raise IndexError(f"a {word} is out of bounds for a matrix of {count} {word}s")
    return xp.where(rows < 0, rows + count, rows)


def _row_range(matrix, first, last):
    from ._products import CSR, _element_at

    start, end = int(_element_at(matrix.indptr, first)), int(_element_at(matrix.indptr, last))
    _, (data, indices, indptr) = arrays_in_place(matrix.data, matrix.indices, matrix.indptr)
    return CSR(data[start:end], indices[start:end], indptr[first : last + 1] - start, (last - first, matrix.shape[1]), check=False)


def scaled(matrix, factor):
    """Returns a matrix times a number."""
    from ._products import CSR

    _, (data,) = arrays_in_place(matrix.data)
    return CSR(data * factor, matrix.indices, matrix.indptr, matrix.shape, check=False)


__all__ = ("COO", "coo", "diag", "eye", "hstack", "vstack")
