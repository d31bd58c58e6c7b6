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
    """Returns the epilogue of a product in the form that `perform` takes."""
    if epilogue is None:
        if operands:
            raise TypeError("epilogue_operands requires epilogue=")
        return {}
    function = function_of(epilogue, "an epilogue")
    operands = tuple(operands) if isinstance(operands, (tuple, list)) else (operands,)
    if any(x is None for x in operands):
        raise TypeError("epilogue_operands contains None: expected arrays and numbers")
    return {"epilogue": function._loaded_module(), "epilogue_operands": tuple(_operand(x) for x in operands)}


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

    options: see `kjit.reduce`; sums are computed in `accumulator`. Raises ArgumentError for the expression or shapes,
    TypingError for operands of different types or the type that the epilogue returns, and UnsupportedError for too many
    operands.
    """
    if not isinstance(expression, str):
        raise TypeError(f'an expression is a text, "ij,jk->ik", not {type(expression).__name__}: lists of axes are not taken')
    arguments = Plain(expression), Several(operands)
    own = _behind(epilogue, epilogue_operands)
    return one(perform("einsum", 1, arguments, listed(out), flags=_formats(tf32, e4m3, e5m2), options=options, **own))


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

    `kjit.csr` creates matrices; the constructor takes the arrays. Products do not check indices, and wrong indices
    would read other memory. The constructor therefore checks the indices, which waits for the device; check=False omits
    the check. Later changes to the arrays are not checked, see `check`. options of the check: see `kjit.reduce`. Raises
    ArgumentError for a wrong index or shape, and TypingError for types.
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
            return f"`indices`: entry {number} is {column}, and the matrix has {self.shape[1]} columns"
        first, end = _element_at(self.indptr, number), _element_at(self.indptr, number + 1)
        return f"`indptr`: row {number} is from {first} to {end}, and there are {self.nnz} entries: offsets ascend and are from 0 to that"

    @property
    def nnz(self):
        """The capacity for entries: the number of elements in `data`."""
        return self.data.shape[0]

    def _arguments(self):
        return self.data, self.indices, self.indptr, Plain(self.shape[0]), Plain(self.shape[1])

    def multiply(self, x, *, out=None, **options):
        """Multiplies the matrix by x with shape (columns,) or (columns, n) and the type of data. Returns an array with
        shape (rows,) or (rows, n). options: see `kjit.reduce`. Raises ArgumentError for shapes, TypingError for
        different types, and KernelError if `indptr` decreases."""
        name = "spmv" if len(x.shape) == 1 else "spmm"
        return one(perform(name, 1, (*self._arguments(), x), listed(out), options=options))

    # Makes NumPy use the operators of the matrix.
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
        """Returns the transposed matrix, which is also this matrix in compressed sparse column format. The columns of
        each row are sorted. options: see `kjit.reduce`; the results of a plan are data, indices and indptr. Raises
        KernelError for a column outside the matrix."""
        outcome = perform("csr_transpose", 3, self._arguments(), options=options)
        return outcome if isinstance(outcome, Plan) else CSR(*outcome, self.shape[::-1], check=False)

    @property
    def T(self):
        """The transposed matrix, see `transpose`."""
        return self.transpose()

    def check(self, *, sorted=False, unique=False, **options):
        """Checks that offsets ascend and are in bounds and that columns are in the matrix. With sorted, the columns of
        each row must ascend. With unique, no column may occur twice in a row. Raises ArgumentError with the wrong
        entry. The call waits. options: see `kjit.reduce`."""
        flags = (1 if sorted else 0) | (2 if unique else 0)
        perform("csr_check", 0, (*self._arguments(), Plain(flags)), (), options=options)

    def to_dense(self, *, out=None, **options):
        """Returns the matrix as an array with two axes. options: see `kjit.reduce`. Raises KernelError for a column
        outside the matrix."""
        return one(perform("csr_to_dense", 1, self._arguments(), listed(out), options=options))

    def to_coo(self, **options):
        """Returns (data, rows, columns) with the value, row and column of each entry. Elements that belong to no row in
        `indptr` are not entries. The call waits for `indptr`. options: see `kjit.reduce`; the result of a plan is rows,
        which keeps its values where there is no entry."""
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


def _is_factor(x):
    """Returns whether an object multiplies a matrix like a number."""
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
    TypingError for shapes, types or a wrong index, and KernelError for a coordinate outside the matrix.
    """
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
    """Returns element `place` of an array with one axis in any memory."""
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

# Has the same effect as no tolerance or no limit.
_LEAST, _GREATEST = 2.0**-1022, 2.0**1023


class LinearOperator:
    """A matrix given by functions. `multiply(result, x)` stores its product with x in result. Both are kjit arrays on
    the device of the solver, with shapes (rows,) and (columns,). `multiply_transposed` does the same for the transposed
    matrix, for `kjit.lsmr`. The functions must queue their work on the stream of the solver, by default the default
    stream of the device."""

    def __init__(self, shape, multiply, multiply_transposed=None):
        self.shape = tuple(shape)
        _check_matrix(self)
        self.multiply, self.multiply_transposed = multiply, multiply_transposed


class Solution(NamedTuple):
    """Result of `kjit.cg` and `kjit.lsmr`. x is the best solution found, an array like b. status tells why the solver
    stopped, and text describes it:

    - 0: the residual is within the tolerances,

    - 1: no x has such a residual, and this x minimizes it,

    - 2: the matrix is too ill-conditioned,

    - 3: the iteration limit is reached,

    - 4: the matrix is not positive definite,

    - 5: a value is no longer finite.

    Norms are Euclidean: residual_norm is the norm of b - A x, and solution_norm that of x. lsmr also estimates the norm
    of A^T (b - A x) - damp^2 x, and the norm and condition of the matrix.
    """

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
    """Converts a Python number, where 0 means off, for the extension, where 0 means the default. none is the number for
    off."""
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
        raise TypeError(f"`transposed` must be a sparse matrix, a.T or a SciPy matrix, not {type(a).__name__}")
    return _packed(a)


def _limit_of(iterations):
    if iterations is None:
        return 0
    if not hasattr(iterations, "__index__"):
        raise TypeError(f"iteration_limit is an integer or None, not {iterations!r}")
    if not 1 <= index(iterations) < 2**63:
        raise ArgumentError(f"iteration_limit must be from 1 to 2^63 - 1, or None, not {iterations}")
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
    """Solves A x = b for a symmetric positive definite matrix with conjugate gradients, starting from zeros, and
    returns a `kjit.Solution`. a is a SciPy matrix, `kjit.csr`, an array with two axes or a `kjit.LinearOperator`, and
    is square. b is an array of f32 or f64, the type of the matrix.

    The solver stops when |b - A x| is at most `residual_tolerance` |b|, or after `iteration_limit` iterations, by
    default 10 for each row. out is an array for x. If the system does not converge, no exception is raised: see
    `status`. Raises ArgumentError for shapes or tolerances, TypingError for other types, and exceptions from the
    functions of a LinearOperator.
    """
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
    """Minimizes |b - A x|^2 + damp^2 |x|^2 for a matrix of any shape with LSMR, starting from zeros, and returns a
    `kjit.Solution`. matrix_tolerance, b_tolerance and condition_limit are SciPy's atol, btol and conlim; 0 turns them
    off, and the solver continues to the limit of rounding. The default iteration_limit is the smaller extent.
    transposed is the transposed matrix, `a.T`, which is computed if it is not given. Other parameters: see `kjit.cg`.
    """
    tolerances = _number("matrix_tolerance", matrix_tolerance, _LEAST), _number("b_tolerance", b_tolerance, _LEAST)
    numbers = 0.0, _number("damp", damp), *tolerances, _number("condition_limit", condition_limit, _GREATEST)
    return _solve("lsmr", a, b, out, transposed, numbers, iteration_limit, device, stream)
