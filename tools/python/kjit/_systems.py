"""Linear systems: conjugate gradients, least squares with LSMR, and their results."""

from operator import index
from typing import NamedTuple

from . import _kjit, _state, dtypes
from ._algorithms import _device_of, _operand, new_array
from ._products import CSR, ArgumentError, _check_matrix, csr, matmul

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
