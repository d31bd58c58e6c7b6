"""Products and sparse matrices."""

import re
from operator import index

from . import _kjit, dtypes
from ._algorithms import (
    E4M3,
    E5M2,
    TF32,
    Plain,
    Plan,
    Several,
    _operand,
    function_of,
    listed,
    one,
    perform,
)
from ._arrays import array
from ._errors import CLASSES
from ._traced import recorded

ArgumentError = CLASSES["KJIT_ERROR_ARGUMENT"]

# ---- products ----


def _formats(tf32, e4m3, e5m2):
    if e4m3 and e5m2:
        raise TypeError("bytes can hold floats of e4m3 or of e5m2, but both were requested")
    return (TF32 if tf32 else 0) | (E4M3 if e4m3 else 0) | (E5M2 if e5m2 else 0)


def _behind(epilogue, operands):
    """Returns a product's epilogue in the form that `perform` takes."""
    if epilogue is None:
        if operands:
            raise TypeError("epilogue_operands requires epilogue=")
        return {}
    function = function_of(epilogue, "an epilogue")
    operands = tuple(operands) if isinstance(operands, (tuple, list)) else (operands,)
    if any(x is None for x in operands):
        raise TypeError("epilogue_operands contains None: expected arrays and numbers")
    return {"epilogue": function._loaded_module(), "epilogue_operands": tuple(_operand(x) for x in operands)}


@recorded
def einsum(
    expression, *operands, out=None, tf32=False, e4m3=False, e5m2=False, epilogue=None, epilogue_operands=(), **options
):
    """Computes the sum of products that `expression` describes, like `numpy.einsum`: "ij,jk->ik". There are 1 to 10
    operands, arrays with the same number type. out is an array, or a `kjit.computed` that receives each sum once. With
    tf32, GPUs may round f32 operands to 11 significant bits. With e4m3 or e5m2, the operands are u8 arrays whose bytes
    are FP8 numbers, and sums are f32.

    epilogue is a function that is applied to each sum before it is stored: `epilogue(sum, *elements)`. sum has the
    accumulator type. The elements come from epilogue_operands, up to 8 arrays and numbers that broadcast to the result.
    One of them can be `out` itself, because an element is read before it is written.

        kjit.matmul(x, w, epilogue=lambda sum, b: max(sum + b, 0), epilogue_operands=(bias,))

    options: see `kjit.reduce`; sums are computed in `accumulator`. Raises ArgumentError for an invalid expression or
    shapes that do not match, TypingError for operands of different types or an epilogue that returns an unsuitable
    type, and UnsupportedError for too many operands.
    """
    if not isinstance(expression, str):
        raise TypeError(f'an expression must be a string such as "ij,jk->ik", not {type(expression).__name__}: lists of axes are not supported')
    arguments = Plain(expression), Several(operands)
    own = _behind(epilogue, epilogue_operands)
    return one(perform("einsum", 1, arguments, listed(out), flags=_formats(tf32, e4m3, e5m2), options=options, **own))


@recorded
def matmul(x, y, *, out=None, tf32=False, e4m3=False, e5m2=False, epilogue=None, epilogue_operands=(), **options):
    """Computes the matrix product, like `numpy.matmul`. The last two axes are multiplied, (m, k) by (k, n), and the
    others broadcast. An array with one axis is a row on the left or a column on the right. Other parameters: see
    `kjit.einsum`."""
    own = _behind(epilogue, epilogue_operands)
    return one(perform("matmul", 1, (x, y), listed(out), flags=_formats(tf32, e4m3, e5m2), options=options, **own))


# ---- sparse matrices ----


class CSR:
    """A sparse matrix in compressed sparse row format. Row i has the entries indptr[i] to indptr[i + 1] - 1; entry k is
    data[k] in column indices[k]. `data`, `indices` and `indptr` are arrays with SciPy's names, which are not copied;
    `shape` is (rows, columns). Entries with the same row and column are added.

    `kjit.csr` creates matrices from other forms; the constructor takes these arrays. Products do not check indices, and
    wrong indices would read memory outside of the arrays. The constructor therefore checks the indices, which waits for
    the device; check=False omits the check. Later changes to the arrays are not checked, see `check`. options of the
    check: see `kjit.reduce`. Raises ArgumentError for a wrong index or shape, and TypingError for wrong types.
    """

    def __init__(self, data, indices, indptr, shape, *, check=True, **options):
        self.data, self.indices, self.indptr = (_no_list(part) for part in (data, indices, indptr))
        self.shape = _shape_of_matrix(shape)
        if check:
            self._check_made(options)

    def _check_made(self, options):
        """Checks a matrix that a user created from arrays and reports a wrong entry."""
        arguments = *self._arguments(), Plain(0)
        try:
            perform("csr_check", 0, arguments, (), options=options)
        except ArgumentError as error:
            place = re.search(r"at (row|entry) (\d+)$", error.message)
            if not place:
                raise
            text = self._told(place[1] == "row", int(place[2]))
            wrong = ArgumentError(f"error: {text}")
            wrong.message = text
            raise wrong from None

    def _told(self, is_row, number):
        if not is_row:
            column = _element_at(self.indices, number)
            return f"`indices`: entry {number} is {column}, but the matrix has {self.shape[1]} columns"
        first, end = _element_at(self.indptr, number), _element_at(self.indptr, number + 1)
        return f"`indptr`: row {number} is from {first} to {end}, but offsets must ascend and be from 0 to {self.nnz}, the number of entries"

    @property
    def nnz(self):
        """The capacity for entries: the number of elements in `data`."""
        return self.data.shape[0]

    def _arguments(self):
        return self.data, self.indices, self.indptr, Plain(self.shape[0]), Plain(self.shape[1])

    @recorded
    def dot(self, x, *, out=None, **options):
        """Returns the matrix product with an array x, `A @ x`. x has the shape (columns,) or (columns, n) and the type of
        data; the result has the shape (rows,) or (rows, n). options: see `kjit.reduce`. If x is a sparse matrix, the result
        is a `kjit.CSR`, and there are no options. Raises ArgumentError for shapes that do not match, TypingError for
        different types, and KernelError if `indptr` decreases."""
        if _is_sparse(x):
            from ._sparse_product import product

            if out is not None or options:
                given = ", ".join(f"{name}=" for name in (*options, *(["out"] if out is not None else [])))
                raise TypeError(f"the product of two sparse matrices takes no options, but got {given}")
            return product(self, x)
        name = "spmv" if len(x.shape) == 1 else "spmm"
        return one(perform(name, 1, (*self._arguments(), x), listed(out), options=options))

    # NumPy leaves operators between an array and a matrix to the matrix.
    __array_ufunc__ = None

    def __matmul__(self, x):
        return self.dot(x) if hasattr(x, "shape") else NotImplemented

    def __rmatmul__(self, x):
        if _is_sparse(x):
            return csr(x).dot(self)
        if not hasattr(x, "shape") or len(x.shape) > 2:
            return NotImplemented
        if len(x.shape) == 1:
            return self.T.dot(x)
        return self.T.dot(x.T).T

    def __add__(self, other):
        return self._combined(other, False)

    def __sub__(self, other):
        return self._combined(other, True)

    def _combined(self, other, negative):
        from . import sparse

        return sparse.added(self, other, negative) if isinstance(other, (CSR, sparse.COO)) else NotImplemented

    def __mul__(self, factor):
        if not _is_factor(factor):
            return NotImplemented
        from . import sparse

        return sparse.scaled(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor):
        return self * (1 / divisor) if _is_factor(divisor) else NotImplemented

    def __neg__(self):
        return self * -1

    def __getitem__(self, key):
        """Returns rows and columns as a matrix: `A[i]` has the shape (1, columns), and `A[:, first:last]`, `A[rows]` and
        `A[:, columns]` take slices, arrays of integers, masks and lists. `A[i, j]` is one element: a NumPy scalar, or an
        array of rank 0 in the matrix's memory. Raises IndexError for an index out of bounds."""
        from . import sparse

        return sparse.taken(self, key)

    def multiply(self, other):
        """Returns the elementwise product as a matrix. other is a number, an array that broadcasts to the matrix shape,
        or a sparse matrix with the same shape. `A.dot(x)` is the matrix product. Elements without an entry stay 0, also
        where `other` is not finite. The call waits for the number of entries. Raises ArgumentError for shapes that do
        not match."""
        from ._sparse_elements import multiplied

        return multiplied(self, other)

    def __abs__(self):
        from ._sparse_elements import absolute

        return absolute(self)

    def sum(self, axis=None, dtype=None):
        """Returns the sum of all elements, or an array with the sums along an axis, like `numpy.sum` of the dense
        matrix. axis is 0, 1 or None."""
        from ._sparse_elements import summed

        return summed(self, axis, dtype)

    def mean(self, axis=None, dtype=None):
        """Returns the mean of all elements, or an array with the means along an axis. The mean of integers is f64."""
        from ._sparse_elements import mean

        return mean(self, axis, dtype)

    def max(self, axis=None):
        """Returns the largest element, or a dense array with the largest elements along an axis.
        Elements without an entry count as 0. The call waits for the device. Raises ValueError if
        there are no elements."""
        from ._sparse_elements import extremum

        return extremum(self, axis, "max")

    def min(self, axis=None):
        """Returns the smallest element, or a dense array with the smallest elements along an axis,
        see `max`."""
        from ._sparse_elements import extremum

        return extremum(self, axis, "min")

    def diagonal(self, k=0):
        """Returns the elements (i, i + k) as an array with one axis. The call waits for `indptr`."""
        from ._sparse_elements import diagonal

        return diagonal(self, k)

    def astype(self, dtype):
        """Returns the matrix with its elements converted to a type. Entries with the same row and
        column are added first. The call waits for the device."""
        from ._sparse_elements import converted

        return converted(self, dtype)

    def copy(self):
        """Returns a matrix with copies of `data`, `indices` and `indptr`."""
        from ._sparse_elements import copied

        return copied(self)

    def transpose(self, **options):
        """Returns the transposed matrix, which is also this matrix in compressed sparse column format. The columns in
        each row are sorted. options: see `kjit.reduce`; the results of a plan are data, indices and indptr. Raises
        KernelError for a column outside the matrix."""
        outcome = perform("csr_transpose", 3, self._arguments(), options=options)
        return outcome if isinstance(outcome, Plan) else CSR(*outcome, self.shape[::-1], check=False)

    @property
    def T(self):
        """The transposed matrix, see `transpose`."""
        return self.transpose()

    def check(self, *, sorted=False, unique=False, **options):
        """Checks that offsets ascend and are in bounds and that columns are in the matrix. With sorted, the columns in
        each row must ascend. With unique, no column may occur twice in a row. Raises ArgumentError, whose message
        names the first wrong entry. The call waits for the device. options: see `kjit.reduce`."""
        flags = (1 if sorted else 0) | (2 if unique else 0)
        perform("csr_check", 0, (*self._arguments(), Plain(flags)), (), options=options)

    def to_dense(self, *, out=None, **options):
        """Returns the matrix as an array with two axes. options: see `kjit.reduce`. Raises KernelError for a column
        outside the matrix."""
        return one(perform("csr_to_dense", 1, self._arguments(), listed(out), options=options))

    def to_coo(self, **options):
        """Returns (data, rows, columns) with the value, row and column of each entry. Elements that belong to no row in
        `indptr` are not entries. The call waits for `indptr`. options: see `kjit.reduce`. With plan=True, the result is
        only the array rows, whose elements without an entry keep their values."""
        outcome = perform("csr_to_coo", 1, self._arguments(), options=options)
        if isinstance(outcome, Plan):
            return outcome
        entries = slice(int(_element_at(self.indptr, 0)), int(_element_at(self.indptr, -1)))
        return self.data[entries], outcome[0][entries], self.indices[entries]

    def to_scipy(self):
        """Returns the matrix as a `scipy.sparse.csr_array` in host memory."""
        from scipy.sparse import csr_array

        parts = (part.to_host() if hasattr(part, "to_host") else part for part in (self.data, self.indices, self.indptr))
        return csr_array(tuple(parts), shape=self.shape)

    def __repr__(self):
        return f"<kjit.CSR {self.data.dtype}, shape {self.shape}, {self.nnz} entries>"


def _is_sparse(x):
    from .sparse import COO

    return isinstance(x, (CSR, COO)) or hasattr(x, "tocsr")


def _is_factor(x):
    """Returns whether an object is a number or an array without dimensions, by which a matrix can
    be multiplied."""
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == () and hasattr(x, "dtype")


def csr(source, shape=None, *, device=None, check=True, **options):
    """Returns a matrix in compressed sparse row format, `kjit.CSR`. source is one of these:

    - a SciPy matrix in any format; a CSR matrix is not copied,

    - (data, indices, indptr), arrays that are not copied, with `shape` (rows, columns),

    - (data, (rows, columns)), coordinates in any order; entries with the same row and column are added, and columns are
    sorted,

    - an array with two axes, of which the nonzero elements become entries.

    Indices are i32 or i64. device copies the arrays to a device, "cuda"; None leaves them where they are. check enables
    the check of indices for the first two sources, see `kjit.CSR`. options: see `kjit.reduce`. Raises ArgumentError or
    TypingError for wrong shapes, types or indices, and KernelError for a coordinate outside the matrix.
    """
    if options.get("plan"):
        raise TypeError("kjit.csr does not support plan=True, because it waits for the number of entries")
    if isinstance(source, CSR):
        return _moved(source, device)
    if hasattr(source, "to_csr"):  # kjit.sparse.COO
        return _moved(source.to_csr(**options), device)
    if hasattr(source, "tocsr"):
        found = source.tocsr()
        return _moved(CSR(found.data, found.indices, found.indptr, found.shape, check=check, **options), device)
    if not isinstance(source, tuple):
        return _moved(_csr_of_dense(source, options), device)
    if len(source) not in (2, 3):
        raise TypeError(f"a matrix must be (data, indices, indptr) or (data, (rows, columns)), not a tuple of {len(source)}")
    if shape is None:
        raise TypeError("the shape of the matrix is unknown; pass shape=(rows, columns)")
    if len(source) == 3:
        return _moved(CSR(*source, shape, check=check, **options), device)
    return _moved(_csr_of_coordinates(*source, _shape_of_matrix(shape), options), device)


def _csr_of_coordinates(data, coordinates, shape, options):
    if not isinstance(coordinates, (tuple, list)) or len(coordinates) != 2:
        raise TypeError("the coordinates of a matrix must be a tuple of two arrays: (data, (rows, columns))")
    made = perform("csr_from_coo", 3, (data, *coordinates, Plain(shape[0]), Plain(shape[1])), options=options)
    count = int(_element_at(made[2], -1))
    return CSR(made[0][:count], made[1][:count], made[2], shape, check=False)


def _no_list(x):
    return _operand(x) if isinstance(x, (list, tuple)) else x


def _element_at(x, place):
    """Returns element `place` of an array with one axis in any memory."""
    found = x[place:] if place == -1 else x[place : place + 1]
    return array(found, device="cpu").to_host()[0]


def _shape_of_matrix(shape):
    if not isinstance(shape, (tuple, list)) or len(shape) != 2 or not all(hasattr(e, "__index__") for e in shape):
        raise TypeError(f"the shape of a matrix must be a tuple of two integers, (rows, columns), not {shape!r}")
    return tuple(index(extent) for extent in shape)


def _check_matrix(x):
    if len(x.shape) != 2:
        raise TypeError(f"a matrix must have two axes, not {len(x.shape)}")


def _csr_of_dense(x, options):
    from ._folds import reduce

    x = _operand(x)
    _check_matrix(x)
    rows, columns = x.shape
    count = reduce(x, "count_nonzero", **options)
    count = int(count.to_host() if hasattr(count, "to_host") else count)
    counts = "i32" if rows * columns < 2**31 else "i64"
    element = x.dtype if isinstance(x, _kjit.Array) else dtypes.name_of(x.dtype)
    made = [((count,), element), ((count,), counts), ((rows + 1,), counts)]
    return CSR(*perform("csr_from_dense", 3, (x, Plain(rows), Plain(columns)), made=made, options=options), x.shape, check=False)


def _moved(matrix, device):
    if device is None:
        return matrix
    parts = (array(part, device=device) for part in (matrix.data, matrix.indices, matrix.indptr))
    return CSR(*parts, matrix.shape, check=False)
