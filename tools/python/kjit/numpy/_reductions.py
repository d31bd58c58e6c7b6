"""Reductions along axes, statistics, and cumulative sums and products."""

import builtins
import math

from .. import _kjit, _state
from . import _beyond, _dtypes, _engine
from ._dtypes import BITS, KIND, PART
from ._engine import elementwise, normalize_axis, reduce_axes, reduced_axes
from ._errors import ShapeError
from ._table import ROWS


def _sum_type(text, dtype):
    """Returns the result type of a sum or product whose elements have the type `text`."""
    if dtype is not None:
        return _dtypes.dtype_of(dtype).text
    return {"b": "i64", "i": "i64", "u": "u64"}.get(KIND[text], text)


def _stored(made, out):
    if out is None:
        return made
    _engine.check_writable(out, "a reduction")
    if tuple(out.shape) != tuple(made.shape):  # other functions broadcast their result, but reductions do not
        raise ShapeError(f"a reduction: the result has the shape {tuple(made.shape)}, but out has the shape {tuple(out.shape)}")
    # NumPy converts the result of a reduction to any type, but the result of another function only within its kind
    _engine.assign(out, made)
    return out


def _combined(x, operator, axis, dtype, keepdims, out, initial):
    text = _dtypes.text_of(x)
    result = _sum_type(text, dtype)
    if text == "bool" and result == "i64" and operator == "add" and initial is None:
        return _stored(reduce_axes(x, "count_nonzero", reduced_axes(axis, x.ndim), result, keepdims), out)
    if KIND[result] != KIND[text] or BITS[result] < BITS[text]:
        x = _engine.converted(x, result)  # float16 is not converted, because its sums are computed in float32 anyway
    axes = reduced_axes(axis, x.ndim)
    if initial is not None:
        initial = _engine.typed(initial, result)
    return _stored(reduce_axes(x, operator, axes, result, keepdims, initial=initial), out)


def sum(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None):
    """Returns the sum of the elements along the axes, by default of all. Sums of small integers
    have 64 bits."""
    return _combined(x, "add", axis, dtype, keepdims, out, initial)


def prod(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None):
    """Returns the product of the elements along the axes, by default of all. Products of small
    integers have 64 bits."""
    return _combined(x, "mul", axis, dtype, keepdims, out, initial)


def _extreme(x, operator, axis, keepdims, out, initial):
    text = _dtypes.text_of(x)
    if KIND[text] == "c":  # the standard does not define this case; NumPy compares the real parts first
        return _beyond.method(operator)(x, axis, out, keepdims, **({} if initial is None else {"initial": initial}))
    axes = reduced_axes(axis, x.ndim)
    if initial is None and _is_empty(x, axes):
        raise ShapeError(f"{operator}: x has the shape {tuple(x.shape)}, and without elements there is no {operator}imum; pass initial=")
    if text == "bool":
        return _stored(reduce_axes(x, "any" if operator == "max" else "all", axes, text, keepdims), out)
    if initial is not None:
        initial = _engine.typed(initial, text)
    return _stored(reduce_axes(x, operator, axes, text, keepdims, initial=initial), out)


def _is_empty(x, axes):
    """Returns whether the axes select no elements."""
    return builtins.any(x.shape[axis] == 0 for axis in axes)


def max(x, /, axis=None, out=None, keepdims=False, initial=None):
    """Returns the largest element along the axes, by default of all, or NaN if an element is NaN.
    Raises ShapeError for no elements without `initial`."""
    return _extreme(x, "max", axis, keepdims, out, initial)


def min(x, /, axis=None, out=None, keepdims=False, initial=None):
    """Returns the smallest element along the axes, by default of all, or NaN if an element is NaN.
    Raises ShapeError for no elements without `initial`."""
    return _extreme(x, "min", axis, keepdims, out, initial)


def _float_array(x, dtype):
    """Returns (x, converted to the type `dtype` if it is not None; the type of its mean). Means and
    variances of integers are computed in float64, without a converted copy."""
    if dtype is not None:
        text = _dtypes.dtype_of(dtype).text
        return _engine.converted(x, text), text
    text = _dtypes.text_of(x)
    return x, text if KIND[text] in "fc" else "f64"


def mean(x, /, axis=None, dtype=None, out=None, keepdims=False):
    """Returns the mean of the elements along the axes, by default of all. The mean in an integer type is the sum's
    quotient in this type, without its fraction."""
    if dtype is not None and KIND[_dtypes.dtype_of(dtype).text] in "iu":
        axes = reduced_axes(axis, x.ndim)
        count = math.prod(x.shape[i] for i in axes)
        quotients = elementwise(ROWS["divide"], (sum(x, axis, dtype, keepdims=keepdims), count))
        return _stored(_engine.converted(quotients, _dtypes.dtype_of(dtype).text), out)
    x, text = _float_array(x, dtype)
    return _stored(reduce_axes(x, "mean", reduced_axes(axis, x.ndim), text, keepdims), out)


def _spread(x, operator, axis, correction, keepdims, out, dtype):
    x, text = _float_array(x, dtype)
    axes = reduced_axes(axis, x.ndim)
    if KIND[text] == "c":
        found = _complex_variance(x, axes, keepdims)
        operator, root = "var", operator == "std"
    else:
        root = False
        found = reduce_axes(x, operator, axes, text, keepdims)
    if correction:
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        divisor = builtins.max(count - correction, 0.0)
        factor = count / divisor if divisor else float("nan") if operator == "std" and not count else float("inf")
        if operator == "std":
            factor **= 0.5
        found = elementwise(ROWS["multiply"], (found, float(factor)))
    return _stored(elementwise(ROWS["sqrt"], (found,)) if root else found, out)


def _complex_variance(x, axes, keepdims):
    """Returns the mean squared distance of complex numbers from their mean."""
    center = reduce_axes(x, "mean", axes, x.dtype.text, True)
    distance = elementwise(ROWS["abs"], (elementwise(ROWS["subtract"], (x, center)),))
    return reduce_axes(elementwise(ROWS["square"], (distance,)), "mean", axes, PART[x.dtype.text], keepdims)


def var(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=0.0):
    """Returns the variance along the axes, by default of all elements: the sum of squared distances
    from the mean, divided by the number of elements minus `correction`, which NumPy calls ddof."""
    return _spread(x, "var", axis, correction if ddof is None else ddof, keepdims, out, dtype)


def std(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=0.0):
    """Returns the standard deviation along the axes, the square root of `var`."""
    return _spread(x, "std", axis, correction if ddof is None else ddof, keepdims, out, dtype)


def any(x, /, axis=None, out=None, keepdims=False):
    """Returns whether an element along the axes is nonzero."""
    return _stored(reduce_axes(x, "any", reduced_axes(axis, x.ndim), "bool", keepdims), out)


def all(x, /, axis=None, out=None, keepdims=False):
    """Returns whether all elements along the axes are nonzero."""
    return _stored(reduce_axes(x, "all", reduced_axes(axis, x.ndim), "bool", keepdims), out)


def count_nonzero(x, /, axis=None, *, keepdims=False):
    """Returns the number of nonzero elements along the axes."""
    return reduce_axes(x, "count_nonzero", reduced_axes(axis, x.ndim), "i64", keepdims)


# ---- cumulative operations ----


def _accumulated(x, operator, axis, dtype, include_initial, identity, what):
    if axis is None:
        if x.ndim > 1:
            raise ShapeError(f"{what}: x has {x.ndim} dimensions, so axis= is needed")
        axis = 0
    x = x if x.ndim else x.reshape(1)
    axis = normalize_axis(axis, x.ndim)
    text = _sum_type(_dtypes.text_of(x), dtype)
    x = _engine.converted(x, text)
    shape = list(x.shape)
    shape[axis] += bool(include_initial)
    made = _engine.new(tuple(shape), text, x.device)
    target = made
    if include_initial:
        before = (slice(None),) * axis
        _engine.assign(made[(*before, slice(0, 1))], identity)
        target = made[(*before, slice(1, None))]
    if x.size:
        _scan(target, x, operator, axis)
    return made


def _scan(target, x, operator, axis):
    """Stores the cumulative results along an axis. A pending array is computed in the same pass."""
    operand = None
    if _kjit.is_pending(x):
        from ._fusing import computed

        shape, text, device = tuple(x.shape), target.dtype.text, x.device

        def prepare(operand):
            made = _engine.new(shape, text, device), operand, operator
            _kjit.run_algorithm(_state.context(), "scan", made, axes=(axis,), device=device, plan=True)

        operand = computed(x, ("scan", operator, text, axis), prepare)
    _kjit.run_algorithm(_state.context(), "scan", (target, x if operand is None else operand, operator), axes=(axis,), device=target.device)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Returns the cumulative sums along an axis. include_initial: the result begins with an
    additional 0."""
    return _accumulated(x, "add", axis, dtype, include_initial, 0, "cumulative_sum")


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Returns the cumulative products along an axis. include_initial: the result begins with an
    additional 1."""
    return _accumulated(x, "mul", axis, dtype, include_initial, 1, "cumulative_prod")


def _flat_accumulation(function):
    def accumulated(x, /, axis=None, dtype=None):
        x = x.reshape(-1) if (axis is None or not x.ndim) and x.ndim != 1 else x
        return function(x, axis=0 if axis is None else axis, dtype=dtype)

    accumulated.__doc__ = f"As `{function.__name__}`; axis None: of the flattened array."
    return accumulated


cumsum, cumprod = _flat_accumulation(cumulative_sum), _flat_accumulation(cumulative_prod)
cumsum.__name__, cumprod.__name__ = "cumsum", "cumprod"


def _end_of(part, x, axis):
    """Returns an operand of diff() as an array. A number is repeated along all axes but one."""
    from . import _creation, _indexing

    part = part if isinstance(part, _kjit.Array) else _creation.asarray(part, device=x.device)
    return part if part.ndim else _indexing.broadcast_view(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Returns the differences of neighbouring elements along an axis, computed n times. prepend,
    append: numbers, lists or arrays that are joined to x first. A number is an element at each end of
    the axis."""
    from . import _manipulation

    if n < 0:
        raise ShapeError(f"diff: n is {n}, but must not be negative")
    axis = normalize_axis(axis, x.ndim)
    parts = [_end_of(part, x, axis) for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = _manipulation.concat(parts, axis=axis)
    before = (slice(None),) * axis
    row = ROWS["not_equal" if x.dtype.text == "bool" else "subtract"]
    for _ in range(n):
        x = elementwise(row, (x[(*before, slice(1, None))], x[(*before, slice(None, -1))]))
    return x


METHODS = {f.__name__: _beyond.widened_method(f) for f in (sum, prod, max, min, mean, var, std, any, all, cumsum, cumprod)}
FUNCTIONS = (sum, prod, max, min, mean, var, std, any, all, count_nonzero, cumulative_sum, cumulative_prod, cumsum, cumprod, diff)
