"""reduce, accumulate and at of the ufuncs that `kjit.vectorize` makes for the CPU.

As in NumPy and Numba, each method applies the function to one element after the other. The function
therefore need not be associative or commutative.
"""

import math

import numpy

from .. import _njit
from .._errors import SourceTypeError, SourceValueError
from . import arrays


class Loops:
    """The compiled loops that apply a function of two elements, or of one element, in order."""

    def __init__(self, func, kind):
        """func: the function as compiled code calls it. kind: its first parameter's NumPy type."""

        def reduce_all(x, r):
            value = r[0]
            for i in range(x.shape[0]):
                value = func(value, x[i, 0])
            r[0] = value

        def reduce_rows(x, r):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    r[j] = func(r[j], x[i, j])

        def accumulate_rows(x, r):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    r[i + 1, j] = func(r[i, j], x[i, j])

        def update(x, places, values):
            for i in range(places.size):
                x[places[i]] = func(kind(x[places[i]]), values[i])

        def update_alone(x, places):
            for i in range(places.size):
                x[places[i]] = func(kind(x[places[i]]))

        for loop in (reduce_all, reduce_rows, accumulate_rows, update, update_alone):
            setattr(self, loop.__name__, _njit.Njit(loop, {"error_model": "numpy"}))


def _axes(axis, rank):
    """Returns the reduced axes in ascending order. axis: an integer, a tuple, or None for all axes."""
    from ..numpy._axis_errors import AxisError

    if axis is None:
        return tuple(range(rank))
    found = []
    for each in axis if isinstance(axis, tuple) else (axis,):
        if not -rank <= each < rank and not (rank == 0 and each in (0, -1)):
            raise AxisError(f"Invalid axis: axis {each} is out of bounds for array of dimension {rank}")
        if rank:
            found.append(each % rank)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def reduce(ufunc, x, axis, dtype, out, keepdims, initial):
    """Reduces axes of a NumPy array; see `DeviceUfunc.reduce`."""
    _check_elements(x)
    axes = _axes(axis, x.ndim)
    if len(axes) > 1 and not ufunc.is_reorderable:
        raise SourceValueError(f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified")
    loops, result, kind = ufunc.operator_in_order(x.dtype, dtype)
    if initial is None and isinstance(ufunc.identity, int):
        initial = ufunc.identity
    kept = [extent for i, extent in enumerate(x.shape) if i not in axes]
    rows = numpy.moveaxis(x, axes, range(len(axes))).reshape(math.prod(x.shape[i] for i in axes), *kept)
    columns = numpy.ascontiguousarray(rows, kind).reshape(rows.shape[0], math.prod(kept))
    made = numpy.empty(columns.shape[1], result)
    if initial is not None:
        made[...] = initial
    elif not rows.shape[0]:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    else:
        made[...] = numpy.ascontiguousarray(rows[0]).reshape(-1)
        columns = columns[1:]
    if columns.size:
        (loops.reduce_all if columns.shape[1] == 1 else loops.reduce_rows)(columns, made)
    shape = tuple(1 if i in axes else extent for i, extent in enumerate(x.shape)) if keepdims else tuple(kept)
    return _finished(made.reshape(shape), out)


def _check_elements(x):
    if x.dtype.kind in "USO":
        raise SourceTypeError(f'The first argument "array" must be array-like with elements that are numbers, not {x.dtype}')


def accumulate(ufunc, x, axis, dtype, out):
    """Computes the partial reductions along an axis; see `DeviceUfunc.accumulate`."""
    _check_elements(x)
    if not x.ndim:
        raise TypeError("cannot accumulate on a scalar")
    axes = _axes(axis, x.ndim)
    if len(axes) != 1:
        raise ValueError(f"{ufunc.__name__}.accumulate: axis must be one axis, not {axis!r} of an array of dimension {x.ndim}")
    place = axes[0]
    loops, result, kind = ufunc.operator_in_order(x.dtype, dtype)
    rows = numpy.moveaxis(x, place, 0)
    made = numpy.empty((rows.shape[0], rows[:1].size), result)
    if made.size:
        made[0] = rows[0].reshape(-1)
        rest = numpy.ascontiguousarray(rows[1:], kind).reshape(rows.shape[0] - 1, made.shape[1])
        loops.accumulate_rows(rest, made)
    return _finished(numpy.ascontiguousarray(numpy.moveaxis(made.reshape(rows.shape), 0, place)), out)


def _finished(made, out):
    """Returns a result, or stores it in the array that the call passes."""
    out = out[0] if isinstance(out, tuple) else out
    if out is None:
        return made if made.shape else made[()]
    if out.shape != made.shape:
        raise ValueError(f"out has the shape {out.shape}, but the result has the shape {made.shape}")
    if not numpy.can_cast(made.dtype, numpy.dtype(out.dtype), "same_kind"):
        raise TypeError(f"out has elements of the type {out.dtype}, to which {made.dtype} is not converted")
    return store(out, made)


def store(array, host):
    """Copies the elements of `host` to an array that the caller passed, and returns that array."""
    host = host.reshape(array.shape)
    if isinstance(array, arrays.DeviceNDArray):
        array.copy_to_device(host.astype(array.dtype))
    else:
        array[...] = host
    return array


def update_at(ufunc, x, indices, values):
    """Applies a function to elements of a NumPy array in place; see `DeviceUfunc.at`."""
    if (values is None) != (ufunc.nin == 1):
        reason = "second operand provided when ufunc is unary" if ufunc.nin == 1 else "second operand needed for ufunc"
        raise SourceValueError(reason)
    try:
        operands = [x] if values is None else [x, values if _is_number(values) else numpy.asarray(values)]
    except ValueError as error:  # values is a list whose items have different lengths
        raise SourceValueError(str(error)) from None
    found = [numpy.asarray(operand).dtype for operand in operands]
    loops, kinds = ufunc.function_in_order(operands, found)
    indices = tuple(map(_as_index, indices)) if isinstance(indices, tuple) else _as_index(indices)
    places = _places(indices, x.shape)
    flat = numpy.ascontiguousarray(x).reshape(-1)
    if values is None:
        loops.update_alone(flat, places.reshape(-1))
    else:
        given = numpy.array(numpy.broadcast_to(operands[1], places.shape), kinds[1])  # a copy, which x does not overlap
        loops.update(flat, places.reshape(-1), given.reshape(-1))
    if not numpy.may_share_memory(flat, x):
        x[...] = flat.reshape(x.shape)


def _places(indices, shape):
    """Returns the positions in row-major order of the elements that the indices select."""
    is_plain = isinstance(indices, (int, numpy.integer, numpy.ndarray)) and numpy.asarray(indices).dtype.kind == "i"
    if is_plain and len(shape) == 1:  # no array of all positions is needed
        places = numpy.asarray(indices, numpy.intp)
        wrong = (places < -shape[0]) | (places >= shape[0])
        if wrong.any():
            raise IndexError(f"index {places[wrong][0]} is out of bounds for axis 0 with size {shape[0]}")
        return numpy.where(places < 0, places + shape[0], places)
    return numpy.asarray(numpy.arange(math.prod(shape)).reshape(shape)[indices])


def _is_number(value):
    return isinstance(value, (bool, int, float, complex, numpy.generic))


def _as_index(index):
    """Returns a list of indices as an array. An empty list is one of integers."""
    if not isinstance(index, list):
        return index
    return numpy.asarray(index) if index else numpy.empty(0, numpy.intp)
