"""Products, sparse matrices and linear systems."""

import re
from operator import index
from typing import NamedTuple

from . import _kjit, _state, dtypes
from ._algorithms import (
    E4M3,
    E5M2,
    TF32,
    Plain,
    Plan,
    Several,
    _device_of,
    _operand,
    function_of,
    listed,
    new_array,
    one,
    perform,
)
from ._arrays import array
from ._errors import CLASSES

ArgumentError = CLASSES["KJIT_ERROR_ARGUMENT"]

# ---- products ----


def _formats(tf32, e4m3, e5m2):
    if e4m3 and e5m2:
        raise TypeError("bytes are floats of e4m3 or of e5m2, and both are asked for")
    return (TF32 if tf32 else 0) | (E4M3 if e4m3 else 0) | (E5M2 if e5m2 else 0)


def _behind(epilogue, operands):
    """What each element of a product goes through, for `perform`."""
    if epilogue is None:
        if operands:
            raise TypeError("epilogue_operands are those of an epilogue, and there is none")
        return {}
    function = function_of(epilogue, "an epilogue")
    operands = tuple(operands) if isinstance(operands, (tuple, list)) else (operands,)
    if any(x is None for x in operands):
        raise TypeError("one of epilogue_operands is None: an array or a number is expected")
    return {"epilogue": function._loaded_module(), "epilogue_operands": tuple(_operand(x) for x in operands)}


def einsum(
    expression, *operands, out=None, tf32=False, e4m3=False, e5m2=False, epilogue=None, epilogue_operands=(), **options
):
    """The sum of products that `expression` asks for, as `numpy.einsum`: "ij,jk->ik". operands: 1 to 10 arrays of one type of
    numbers; out: an array, or `kjit.computed`, which gets each sum once. tf32: GPUs may cut factors of f32 to 11 significant bits.
    e4m3, e5m2: the operands are u8, whose bytes are floats of 8 bits; sums are f32.

    epilogue: a function that each element goes through before it is stored: `epilogue(sum, *elements)`, of what sums are computed in
    and an element of each of epilogue_operands, up to 8 arrays and numbers that broadcast to the result, of which one may be `out`
    itself, whose elements are read before they are written:

        kjit.matmul(x, w, epilogue=lambda sum, b: max(sum + b, 0), epilogue_operands=(bias,))

    options: see `kjit.reduce`; sums are computed in `accumulator`. ArgumentError: the expression, shapes. TypingError: several
    types, what the epilogue returns. UnsupportedError: more operands."""
    if not isinstance(expression, str):
        raise TypeError(f'an expression is a text, "ij,jk->ik", not {type(expression).__name__}: lists of axes are not taken')
    arguments = Plain(expression), Several(operands)
    own = _behind(epilogue, epilogue_operands)
    return one(perform("einsum", 1, arguments, listed(out), flags=_formats(tf32, e4m3, e5m2), options=options, **own))


def matmul(x, y, *, out=None, tf32=False, e4m3=False, e5m2=False, epilogue=None, epilogue_operands=(), **options):
    """The product of matrices, as `numpy.matmul`: the last two axes are multiplied, (m, k) by (k, n), the others broadcast; an array
    of one axis is a row on the left and a column on the right. The rest: see `kjit.einsum`."""
    own = _behind(epilogue, epilogue_operands)
    return one(perform("matmul", 1, (x, y), listed(out), flags=_formats(tf32, e4m3, e5m2), options=options, **own))


# ---- sparse matrices ----


class CSR:
    """A matrix in compressed sparse rows: row i has the entries indptr[i] up to indptr[i + 1] - 1, of which entry k is data[k] in
    column indices[k]. `data`, `indices` and `indptr` are arrays, in place, as SciPy names them; `shape` is (rows, columns). Entries
    of one place are added. Made by `kjit.csr`, or of its arrays. Products read what the indices say: whoever makes a matrix of
    arrays has these looked at once, which waits for the device; check=False leaves that out, for indices that are known to be right,
    and wrong ones then read memory that is not the matrix's. What is changed in the arrays later is not looked at: see `check`.
    options: of the check, see `kjit.reduce`. ArgumentError: an index that is wrong, shapes. TypingError: types."""

    def __init__(self, data, indices, indptr, shape, *, check=True, **options):
        self.data, self.indices, self.indptr = (_no_list(part) for part in (data, indices, indptr))
        self.shape = _shape_of_matrix(shape)
        if check:
            self._check_made(options)

    def _check_made(self, options):
        """Says which entry of a matrix that a user has made of arrays is wrong."""
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
            return f"`indices`: entry {number} is {column}, and the matrix has {self.shape[1]} columns"
        first, end = _element_at(self.indptr, number), _element_at(self.indptr, number + 1)
        return f"`indptr`: row {number} is from {first} to {end}, and there are {self.nnz} entries: offsets ascend and are from 0 to that"

    @property
    def nnz(self):
        """The room for entries: the number of elements of `data`."""
        return self.data.shape[0]

    def _arguments(self):
        return self.data, self.indices, self.indptr, Plain(self.shape[0]), Plain(self.shape[1])

    def multiply(self, x, *, out=None, **options):
        """The product with x, of shape (columns,) or (columns, n), of the type of data: an array of shape (rows,) or (rows, n).
        options: see `kjit.reduce`. ArgumentError: shapes. TypingError: several types. KernelError: `indptr` descends."""
        name = "spmv" if len(x.shape) == 1 else "spmm"
        return one(perform(name, 1, (*self._arguments(), x), listed(out), options=options))

    # NumPy leaves operators between its arrays and matrices to the matrices.
    __array_ufunc__ = None

    def __matmul__(self, x):
        return self.multiply(x) if hasattr(x, "shape") and not isinstance(x, CSR) else NotImplemented

    def __rmatmul__(self, x):
        if not hasattr(x, "shape") or len(x.shape) > 2:
            return NotImplemented
        if len(x.shape) == 1:
            return self.T.multiply(x)
        return self.T.multiply(x.T).T

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

    def __getitem__(self, rows):
        from . import sparse

        return sparse.taken(self, rows)

    def transpose(self, **options):
        """The transposed matrix, which is this one in compressed sparse columns. Its columns are sorted in each row. options: see
        `kjit.reduce`; the results of a plan are data, indices and indptr. KernelError: a column outside of the matrix."""
        outcome = perform("csr_transpose", 3, self._arguments(), options=options)
        return outcome if isinstance(outcome, Plan) else CSR(*outcome, self.shape[::-1], check=False)

    @property
    def T(self):
        """The transposed matrix, see `transpose`."""
        return self.transpose()

    def check(self, *, sorted=False, unique=False, **options):
        """Looks whether all indices are right: offsets ascend and lead to entries, columns are in the matrix; sorted: columns ascend
        in each row; unique: and none comes twice. ArgumentError: says which one is wrong. It waits. options: see `kjit.reduce`."""
        flags = (1 if sorted else 0) | (2 if unique else 0)
        perform("csr_check", 0, (*self._arguments(), Plain(flags)), (), options=options)

    def to_dense(self, *, out=None, **options):
        """The matrix as an array of two axes. options: see `kjit.reduce`. KernelError: a column outside of the matrix."""
        return one(perform("csr_to_dense", 1, self._arguments(), listed(out), options=options))

    def to_coo(self, **options):
        """(data, rows, columns): of each entry its value, row and column. What `indptr` has in no row is no entry. It waits for
        `indptr`. options: see `kjit.reduce`; the result of a plan is rows, which stays as it was for what is no entry."""
        outcome = perform("csr_to_coo", 1, self._arguments(), options=options)
        if isinstance(outcome, Plan):
            return outcome
        entries = slice(int(_element_at(self.indptr, 0)), int(_element_at(self.indptr, -1)))
        return self.data[entries], outcome[0][entries], self.indices[entries]

    def to_scipy(self):
        """A `scipy.sparse.csr_array` of the matrix in the host's memory."""
        from scipy.sparse import csr_array

        parts = (part.to_host() if hasattr(part, "to_host") else part for part in (self.data, self.indices, self.indptr))
        return csr_array(tuple(parts), shape=self.shape)

    def __repr__(self):
        return f"<kjit.CSR {self.data.dtype}, shape {self.shape}, {self.nnz} entries>"


def _is_factor(x):
    """Whether a matrix is multiplied by an object as by a number."""
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == () and hasattr(x, "dtype")


def csr(source, shape=None, *, device=None, check=True, **options):
    """A matrix in compressed sparse rows, `kjit.CSR`, of source:

    - a matrix of SciPy, of any format; one of CSR in place,
    - (data, indices, indptr), arrays in place, with `shape` (rows, columns),
    - (data, (rows, columns)), the coordinates of entries in any order; those of one place are added, columns sorted,
    - an array of two axes, of which the elements that are not 0 are taken.

    Indices are i32 or i64. device: copies the arrays to one, "cuda"; None: they stay where they are. check: whether indices of the
    first two are looked at, see `kjit.CSR`. options: see `kjit.reduce`. ArgumentError, TypingError: shapes, types, an index that is
    wrong. KernelError: a coordinate outside of the matrix."""
    if options.get("plan"):
        raise TypeError("kjit.csr waits for the number of entries, and has no plan")
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
        raise TypeError(f"a matrix is (data, indices, indptr) or (data, (rows, columns)), not a tuple of {len(source)}")
    if shape is None:
        raise TypeError("the shape of the matrix is not known: shape=(rows, columns)")
    if len(source) == 3:
        return _moved(CSR(*source, shape, check=check, **options), device)
    return _moved(_csr_of_coordinates(*source, _shape_of_matrix(shape), options), device)


def _csr_of_coordinates(data, coordinates, shape, options):
    if not isinstance(coordinates, (tuple, list)) or len(coordinates) != 2:
        raise TypeError("the coordinates of a matrix are a tuple of two arrays: (data, (rows, columns))")
    made = perform("csr_from_coo", 3, (data, *coordinates, Plain(shape[0]), Plain(shape[1])), options=options)
    count = int(_element_at(made[2], -1))
    return CSR(made[0][:count], made[1][:count], made[2], shape, check=False)


def _no_list(x):
    return _operand(x) if isinstance(x, (list, tuple)) else x


def _element_at(x, place):
    """Element `place` of an array of one axis, wherever it lies."""
    found = x[place:] if place == -1 else x[place : place + 1]
    return array(found, device="cpu").to_host()[0]


def _shape_of_matrix(shape):
    if not isinstance(shape, (tuple, list)) or len(shape) != 2 or not all(hasattr(e, "__index__") for e in shape):
        raise TypeError(f"the shape of a matrix is a tuple of two integers, (rows, columns), not {shape!r}")
    return tuple(index(extent) for extent in shape)


def _check_matrix(x):
    if len(x.shape) != 2:
        raise TypeError(f"a matrix has two axes, not {len(x.shape)}")


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


# ---- linear systems ----

# As good as no tolerance and no limit.
_LEAST, _GREATEST = 2.0**-1022, 2.0**1023


class LinearOperator:
    """A matrix by what it does: `multiply(result, x)` stores its product with x in result, arrays of kjit on the solver's device, of
    shape (rows,) and (columns,); `multiply_transposed` that of the transposed matrix, for `kjit.lsmr`. What they queue belongs on
    the stream that the solver was given, by default the device's."""

    def __init__(self, shape, multiply, multiply_transposed=None):
        self.shape = tuple(shape)
        _check_matrix(self)
        self.multiply, self.multiply_transposed = multiply, multiply_transposed


class Solution(NamedTuple):
    """What `kjit.cg` and `kjit.lsmr` give. x: the best that was found, an array as b. status: 0 the residual is within the
    tolerances, 1 no x has such a residual and this one is the least, 2 the matrix is too ill-conditioned, 3 as many iterations as
    are allowed, 4 the matrix is not positive definite, 5 what is computed is no longer finite; text says it. Norms are Euclidean,
    in the unit of b: of b - A x, and of x; of lsmr also estimates of A^T (b - A x) - damp^2 x, of the matrix and its condition."""

    x: object
    status: int
    text: str
    iterations: int
    residual_norm: float
    normal_residual_norm: float
    matrix_norm: float
    condition: float
    solution_norm: float


def _dense(matrix, stream):
    _check_matrix(matrix)
    return LinearOperator(
        matrix.shape,
        lambda result, x: matmul(matrix, x, out=result, stream=stream),
        lambda result, x: matmul(matrix.T, x, out=result, stream=stream),
    )


def _packed(matrix):
    data, indices, indptr, rows, columns = matrix._arguments()
    return data, indices, indptr, rows.value, columns.value


def _number(name, given, none=0.0):
    """A number for the extension, where 0 is the default, of one of Python's, where 0 is off: what `none` is."""
    try:
        return float(given) or none
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a number, not {given!r}") from None


def _check_array(name, x):
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"`{name}` is an array, not {type(x).__name__}")


def _matrix_of(a):
    return csr(a) if hasattr(a, "tocsr") else a


def _transposed_of(a):
    a = _matrix_of(a)
    if not isinstance(a, CSR):
        raise TypeError(f"`transposed` is a sparse matrix, a.T or one of SciPy, not {type(a).__name__}")
    return _packed(a)


def _limit_of(iterations):
    if iterations is None:
        return 0
    if not hasattr(iterations, "__index__"):
        raise TypeError(f"iteration_limit is an integer or None, not {iterations!r}")
    if not 1 <= index(iterations) < 2**63:
        raise ArgumentError(f"iteration_limit is {iterations}: it is from 1 to 2^63 - 1, or None")
    return index(iterations)


def _solve(name, a, b, out, transposed, numbers, iteration_limit, device, stream):
    a, b = _matrix_of(a), _operand(b)
    _check_array("b", b)
    if not isinstance(a, (CSR, LinearOperator)):
        a = _operand(a)
        _check_array("a", a)
        a = _dense(a, stream)
    is_matrix = isinstance(a, CSR)
    if out is None:
        element = b.dtype if isinstance(b, _kjit.Array) else dtypes.name_of(b.dtype)
        out = new_array((a.shape[1],), element, _device_of((b,)))
    told = _kjit.solve_system(
        _state.context(),
        name,
        out,
        b,
        _packed(a) if is_matrix else None,
        _transposed_of(transposed) if transposed is not None else None,
        None if is_matrix else a.multiply,
        None if is_matrix else a.multiply_transposed,
        *a.shape,
        *numbers,
        _limit_of(iteration_limit),
        device if device is not None else _state.device(),
        stream,
    )
    return Solution(out, *told)


def cg(a, b, *, residual_tolerance=1e-5, iteration_limit=None, out=None, device=None, stream=None):
    """The x that solves A x = b for a symmetric positive definite matrix, by conjugate gradients from zeros, as a `kjit.Solution`.
    a: a matrix of SciPy, `kjit.csr`, an array of two axes, or a `kjit.LinearOperator`, of as many rows as columns; b: an array of
    that many f32 or f64, the type of the matrix. It ends where |b - A x| is at most `residual_tolerance` |b|, with 0 where it is 0,
    or with `iteration_limit` iterations, 10 for each row unless given. out: an array for x. A system that does not converge is no error: see
    `status`. ArgumentError: shapes, tolerances. TypingError: other types; what a function of a LinearOperator raises."""
    numbers = _number("residual_tolerance", residual_tolerance, _LEAST), 0.0, 0.0, 0.0, 0.0
    return _solve("cg", a, b, out, None, numbers, iteration_limit, device, stream)


def lsmr(
    a,
    b,
    *,
    damp=0.0,
    matrix_tolerance=1e-6,
    b_tolerance=1e-6,
    condition_limit=1e8,
    iteration_limit=None,
    transposed=None,
    out=None,
    device=None,
    stream=None,
):
    """The x that makes |b - A x|^2 + damp^2 |x|^2 least, for a matrix of any shape, by LSMR from zeros, as a `kjit.Solution`.
    matrix_tolerance, b_tolerance, condition_limit: SciPy's atol, btol and conlim, which are off where they are 0: it goes on to what
    rounding allows. iteration_limit: the lesser extent unless given.
    transposed: the transposed matrix, `a.T`, which is made where it is not given. The rest: see `kjit.cg`."""
    tolerances = _number("matrix_tolerance", matrix_tolerance, _LEAST), _number("b_tolerance", b_tolerance, _LEAST)
    numbers = 0.0, _number("damp", damp), *tolerances, _number("condition_limit", condition_limit, _GREATEST)
    return _solve("lsmr", a, b, out, transposed, numbers, iteration_limit, device, stream)
