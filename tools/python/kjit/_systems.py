"""Linear systems: conjugate gradients, least squares with LSMR, and their results."""

import math
from operator import index
from typing import NamedTuple

from . import _kjit, _state, dtypes
from ._algorithms import _device_of, _operand, map, new_array
from ._arrays import array, empty, synchronize
from ._products import CSR, ArgumentError, _check_matrix, csr, einsum, matmul
from ._traced import recorded

# Numbers with the same effect as no tolerance and no limit.
_LEAST, _GREATEST = 2.0**-1022, 2.0**1023


class LinearOperator:
    """A matrix given by functions. `multiply(result, x)` stores the product of the matrix and x in result. result and x
    are kjit arrays on the solver's device, with shapes (rows,) and (columns,). `multiply_transposed` does the same for
    the transposed matrix, for `kjit.lsmr`. The functions must queue their work on the solver's stream, by default the
    default stream of the device."""

    def __init__(self, shape, multiply, multiply_transposed=None):
        self.shape = tuple(shape)
        _check_matrix(self)
        self.multiply, self.multiply_transposed = multiply, multiply_transposed


class Solution(NamedTuple):
    """Result of `kjit.cg` and `kjit.lsmr`. x is the best solution found, an array like b. status tells why the solver
    stopped, and text describes it:

    - 0: the residual is within the tolerances,

    - 1: no x has a residual within the tolerances, and this x minimizes the residual,

    - 2: the matrix is too ill-conditioned,

    - 3: the iteration limit is reached,

    - 4: the matrix is not positive definite,

    - 5: a value is no longer finite.

    Norms are Euclidean: residual_norm is the norm of b - A x, and solution_norm is the norm of x. lsmr also estimates
    the norm of A^T (b - A x) - damp^2 x, and the norm and condition of the matrix.
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
    """Converts an option's number for the extension. In Python 0 turns the option off, but for the extension 0 means
    the default, so `none` replaces 0."""
    try:
        return float(given) or none
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {given!r}") from None


def _check_array(name, x):
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"`{name}` must be an array, not {type(x).__name__}")


def _matrix_of(a):
    if hasattr(a, "tocsr"):
        return csr(a)
    return _operator_of(a) if hasattr(a, "matvec") and hasattr(a, "shape") else a


def _operator_of(a):
    """Wraps a SciPy LinearOperator, whose functions take and return NumPy arrays. On a GPU each
    product copies its vectors to the host and back."""
    if getattr(getattr(a, "dtype", None), "kind", "f") == "c":
        raise TypeError("the solvers take real matrices, but the LinearOperator is complex")

    def stored(name):
        def multiply(result, x):
            synchronize(x.device)
            given = x.to_host()
            found = getattr(a, name)(given)
            if tuple(found.shape) != tuple(result.shape):
                raise ArgumentError(f"{name} of the LinearOperator returned the shape {tuple(found.shape)}, not {tuple(result.shape)}")
            result[...] = array(found.astype(given.dtype, copy=False), device=result.device)
            synchronize(x.device)

        return multiply

    return LinearOperator(a.shape, stored("matvec"), stored("rmatvec"))


def _transposed_of(a):
    a = _matrix_of(a)
    if not isinstance(a, CSR):
        raise TypeError(f"`transposed` must be a sparse matrix, a.T or a SciPy matrix, not {type(a).__name__}")
    return _packed(a)


def _limit_of(iterations, name="iteration_limit"):
    if iterations is None:
        return 0
    if not hasattr(iterations, "__index__"):
        raise TypeError(f"{name} must be an integer or None, not {iterations!r}")
    if not 1 <= index(iterations) < 2**63:
        raise ArgumentError(f"{name} must be from 1 to 2^63 - 1, or None, not {iterations}")
    return index(iterations)


def _solve(name, a, b, out, transposed, numbers, limit, device, stream):
    """Solves a system with options that are checked already. limit: the number of iterations, 0 for the default."""
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
        limit,
        device if device is not None else _state.device_for((b, out)),
        stream,
    )
    return Solution(out, *told)


@recorded
def cg(a, b, *, residual_tolerance=1e-5, iteration_limit=None, out=None, device=None, stream=None):
    """Solves A x = b for a symmetric positive definite matrix with conjugate gradients, starting from zeros, and
    returns a `kjit.Solution`. a is a SciPy matrix or LinearOperator, `kjit.csr`, an array with two axes or a
    `kjit.LinearOperator`, and is square. b is an array with the element type of the matrix, f32 or f64.

    The solver stops when |b - A x| is at most `residual_tolerance` |b|, or after `iteration_limit` iterations, by
    default 10 for each row. out is an array for x. If the system does not converge, no exception is raised: see
    `status`. Raises ArgumentError for shapes or tolerances, TypingError for other types, and exceptions from the
    functions of a LinearOperator.
    """
    numbers = _number("residual_tolerance", residual_tolerance, _LEAST), 0.0, 0.0, 0.0, 0.0
    return _solve("cg", a, b, out, None, numbers, _limit_of(iteration_limit), device, stream)


# ---- least squares ----


def _identity(x):
    return x


def _difference(x, y):
    return x - y


def _sum(x, y):
    return x + y


def _norm(x, options):
    """Returns the Euclidean norm of an array as a Python float. The call waits for the device."""
    square = einsum("i,i->", x, x, **options)
    return math.sqrt(float(square.to_host() if hasattr(square, "to_host") else square))


def _product(a, x, b, options):
    """Returns A x, where a is a matrix or a LinearOperator. b has the type and the memory of the
    result."""
    if isinstance(a, CSR):
        return a.dot(x, **options)
    if not isinstance(a, LinearOperator):
        return matmul(a, x, **options)
    is_own = isinstance(b, _kjit.Array)
    place = b.device if is_own else options.get("device") or _state.device()
    result = empty((a.shape[0],), b.dtype if is_own else dtypes.name_of(b.dtype), device=place)
    x = array(x, device=place)
    if "stream" in options:
        synchronize(place)
    a.multiply(result, x)
    return result


def _from_start(a, b, x0, numbers, limit, transposed, out, options):
    """Solves for the difference from x0. The tolerance for b stays relative to b, not to the smaller b - A x0."""
    a, b, x0 = _matrix_of(a), _operand(b), _operand(x0)
    _check_array("b", b)
    _check_array("x0", x0)
    if not isinstance(a, (CSR, LinearOperator)):
        a = _operand(a)
        _check_array("a", a)
        _check_matrix(a)
    if tuple(x0.shape) != (a.shape[1],):
        raise ArgumentError(f"`x0` has the shape {tuple(x0.shape)}: expected ({a.shape[1]},)")
    x0 = map(_identity, x0, **options) if out is not None else x0
    rest = map(_difference, b, _product(a, x0, b, options), **options)
    of_rest = _norm(rest, options)
    *others, of_b, condition = numbers
    if of_rest:
        of_b = min(max(of_b * _norm(b, options) / of_rest, _LEAST), _GREATEST)
    device, stream = options.get("device"), options.get("stream")
    found = _solve("lsmr", a, rest, out, transposed, (*others, of_b, condition), limit, device, stream)
    x = map(_sum, found.x, x0, out=found.x, **options)
    return found._replace(x=x, solution_norm=_norm(x, options))


def _either(name, given, default, own_name, own):
    """Returns the name and the value of an option with two names."""
    if own is None:
        return name, given
    if given != default:
        raise TypeError(f"{name} and {own_name} are two names of the same option, but both are given")
    return own_name, own


def lsmr(
    a,
    b,
    damp=0.0,
    atol=1e-6,
    btol=1e-6,
    conlim=1e8,
    maxiter=None,
    show=False,
    x0=None,
    *,
    matrix_tolerance=None,
    b_tolerance=None,
    condition_limit=None,
    iteration_limit=None,
    transposed=None,
    out=None,
    device=None,
    stream=None,
):
    """Minimizes |b - A x|^2 + damp^2 |x - x0|^2 for a matrix of any shape with LSMR and returns a `kjit.Solution`. The
    iteration starts from x0, by default zeros. The parameters up to x0 are those of `scipy.sparse.linalg.lsmr`, and the
    results have other names than in SciPy.

    atol, btol and conlim are also called matrix_tolerance, b_tolerance and condition_limit; 0 turns them off, and the
    solver continues to the limit of rounding. maxiter is also called iteration_limit; the default is the smaller
    extent. damp can be an array of factors, for example for an L-curve. One pass over the matrix then serves all
    factors. x has a row for each factor, and the other fields of the solution are NumPy arrays or, for text, a list
    of strings.

    show prints why the solver stopped; unlike in SciPy, it prints no line for each iteration. transposed is the
    transposed matrix, `a.T`, which is computed if it is not given. Other parameters: see `kjit.cg`.
    """
    matrix = _either("atol", atol, 1e-6, "matrix_tolerance", matrix_tolerance)
    of_b = _either("btol", btol, 1e-6, "b_tolerance", b_tolerance)
    condition = _either("conlim", conlim, 1e8, "condition_limit", condition_limit)
    name, most = _either("maxiter", maxiter, None, "iteration_limit", iteration_limit)
    if _has_axis(damp):
        numbers = _number(*matrix), _number(*of_b), _number(*condition, _GREATEST)
        return _for_each_damp(a, b, damp, numbers, _limit_of(most, name), x0, transposed, out, device, stream, show)
    numbers = 0.0, _number("damp", damp), _number(*matrix, _LEAST), _number(*of_b, _LEAST), _number(*condition, _GREATEST)
    limit = _limit_of(most, name)
    if x0 is None:
        found = _solve("lsmr", a, b, out, transposed, numbers, limit, device, stream)
    else:
        options = {key: value for key, value in (("device", device), ("stream", stream)) if value is not None}
        found = _from_start(a, b, x0, numbers, limit, transposed, out, options)
    if show:
        _show("", found.text, found.iterations, found.residual_norm, found.solution_norm)
    return found


def _has_axis(damp):
    return isinstance(damp, (list, tuple)) or bool(getattr(damp, "ndim", len(getattr(damp, "shape", ()))))


def _show(damp, text, iterations, residual_norm, solution_norm):
    print(f"lsmr{damp}: {text}; {iterations} iterations, |b - A x| = {residual_norm:.6g}, |x| = {solution_norm:.6g}")


def _for_each_damp(a, b, damp, numbers, limit, x0, transposed, out, device, stream, show):
    from . import _dampings

    damps = _dampings.checked_damps(damp)
    options = {key: value for key, value in (("device", device), ("stream", stream)) if value is not None}
    found = _dampings.solve(a, b, damps, numbers, limit, x0, transposed, out, options)
    if show:
        for each, *told in zip(damps, found.text, found.iterations, found.residual_norm, found.solution_norm):
            _show(f", damp {each:g}", *told)
    return found
