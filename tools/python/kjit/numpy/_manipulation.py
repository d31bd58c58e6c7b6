"""Functions that change the shape of arrays, join arrays and split them."""

import functools
from operator import index as as_index

from .._errors import ArgumentError
from . import _beyond, _dtypes, _engine
from ._engine import Array, from_indices, normalize_axes, normalize_axis, typed
from ._errors import ShapeError
from ._funcs import Func, func
from ._indexing import broadcast_view, permuted

# This method of the C extension returns a view, or raises an error if the strides allow no view.
_view_reshaped = Array._reshape


def _complete(shape, size):
    """Returns a shape with -1 replaced by the extent that the number of elements requires. Raises
    ShapeError."""
    known, open_places = 1, [i for i, extent in enumerate(shape) if extent == -1]
    for extent in shape:
        known *= extent if extent != -1 else 1
    if any(extent < -1 for extent in shape) or len(open_places) > 1:
        raise ShapeError(f"reshape: only one extent may be -1, and no extent may be lower: {tuple(shape)}")
    if open_places and known and size % known == 0:
        shape = list(shape)
        shape[open_places[0]] = size // known
    elif open_places or known != size:
        raise ShapeError(f"cannot reshape an array of {size} elements to the shape {tuple(shape)}")
    return tuple(shape)


def reshape(x, /, shape, order="C", *, copy=None):
    """Returns the elements, in row-major order, with another shape. One extent may be -1.

    The result is a view if the strides allow it, else a copy. order: "F" reads and writes the
    elements in column-major order. copy: True always copies; False raises ValueError if a copy is
    needed.
    """
    shape = _complete(_engine.extents_of(shape), x.size)
    if is_column_major(x, order):
        return permuted(reshape(permuted(x, range(x.ndim)[::-1]), shape[::-1], copy=copy), range(len(shape))[::-1])
    if copy:
        return _view_reshaped(_engine.copied(x), shape)
    try:
        return _view_reshaped(x, shape)
    except ArgumentError:
        if copy is False:
            raise ValueError(f"reshape: the strides {tuple(x.strides)} allow no view of the shape {tuple(shape)}, but copy is False") from None
    return _view_reshaped(_engine.copied(x), shape)


@_engine.quick("reshape_method")
def _reshape_method(self, *shape, order="C", copy=None):
    """Does the same as `kjit.numpy.reshape`. The shape is a tuple or several integers."""
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def permute_dims(x, /, axes):
    """Returns a view whose dimension i is dimension axes[i] of x."""
    order = normalize_axes(tuple(axes), x.ndim, "axes")
    if len(order) != x.ndim:
        raise ShapeError(f"permute_dims: got {len(order)} axes for an array of {x.ndim} dimensions")
    return permuted(x, order)


def transpose(x, axes=None):
    """Returns a view with the dimensions in reverse order, or in the order of axes."""
    return permuted(x, range(x.ndim)[::-1]) if axes is None else permute_dims(x, axes)


def _transpose_method(self, *axes):
    """Does the same as `kjit.numpy.transpose`. axes is a tuple or several integers."""
    if len(axes) == 1 and not _engine.is_index(axes[0]):
        return transpose(self, axes[0])
    return transpose(self, axes or None)


def matrix_transpose(x, /):
    """Returns a view with the last two dimensions exchanged. Raises ShapeError for less than two
    dimensions."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: x has {x.ndim} dimensions, but must have at least two")
    return permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def moveaxis(x, source, destination, /):
    """Returns a view in which the dimensions `source` are moved to the positions `destination`."""
    source = normalize_axes(source, x.ndim, "source")
    destination = normalize_axes(destination, x.ndim, "destination")
    if len(source) != len(destination):
        raise ShapeError(f"moveaxis: source has {len(source)} axes, but destination has {len(destination)}")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return permuted(x, order)


def swapaxes(x, axis1, axis2, /):
    """Returns a view with two dimensions exchanged."""
    order = list(range(x.ndim))
    first, second = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[first], order[second] = order[second], order[first]
    return permuted(x, order)


def expand_dims(x, /, axis):
    """Returns a view with a new dimension of extent 1 at each position in axis."""
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normalize_axes(tuple(given), x.ndim + len(given))
    if x._is_scalar:  # a new array, as in NumPy
        return x[...] if not axes else reshape(x, (1,) * min(len(axes), _engine.MOST_RANK + 1))
    shape, strides = list(x.shape), list(x._strides)
    for each in sorted(axes):
        shape.insert(each, 1)
        strides.insert(each, 0)
    if len(shape) > _engine.MOST_RANK:
        raise ShapeError(f"an array has at most {_engine.MOST_RANK} dimensions, not {len(shape)}")
    return x._view(shape, strides, 0)


def as_strided(x, shape=None, strides=None, subok=False, writeable=True):
    """Returns a view with the given shape and strides in bytes. All its elements must be elements of
    x."""
    shape = tuple(x.shape) if shape is None else _engine.shape_of(shape)
    size = x.dtype.itemsize
    strides = x.strides if strides is None else _engine.extents_of(strides)
    if any(stride % size for stride in strides):
        raise ShapeError(f"as_strided: strides {strides} must be multiples of the element size, {size} bytes")
    return x._view(shape, tuple(stride // size for stride in strides), 0, not writeable)


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """Returns a view of all windows with a shape along the axes. The last dimensions of the view are
    those of the windows."""
    extents = _engine.shape_of(window_shape)
    given = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalize_axis(each, x.ndim) for each in given]  # an axis may occur twice
    if len(extents) != len(axes):
        raise ShapeError(f"sliding_window_view: the window has {len(extents)} extents, but there are {len(axes)} axes")
    shape = list(x.shape)
    for each, extent in zip(axes, extents):
        if shape[each] < extent:
            raise ShapeError(f"sliding_window_view: a window of {extent} is longer than axis {each} with size {x.shape[each]}")
        shape[each] -= extent - 1
    return x._view((*shape, *extents), (*x._strides, *(x._strides[each] for each in axes)), 0, not writeable)


def squeeze(x, /, axis=None):
    """Returns a view without the dimensions of extent 1 in axis, or by default without all of them.
    Raises ShapeError if a dimension has another extent."""
    if axis is None:
        axes = tuple(i for i, extent in enumerate(x.shape) if extent == 1)
    else:
        axes = normalize_axes(axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise ShapeError(f"squeeze: axis {each} has the extent {x.shape[each]}, not 1")
    keep = [i for i in range(x.ndim) if i not in axes]
    return permuted(x, keep)


def broadcast_to(x, /, shape):
    """Returns a read-only view with another shape, in which elements repeat."""
    shape = _engine.shape_of(shape)
    if _engine.broadcast([tuple(x.shape), shape], "broadcast_to: the array and the shape") != shape:
        raise ShapeError(f"an array of the shape {tuple(x.shape)} does not broadcast to {shape}")
    return broadcast_view(x, shape)


def broadcast_shapes(*shapes):
    """Returns the shape to which the shapes broadcast."""
    return _engine.broadcast([_engine.shape_of(shape) for shape in shapes], "shapes")


def broadcast_arrays(*arrays):
    """Returns views of the arrays, broadcast to their common shape. A view is read-only if several of its elements are the
    same element in the array."""
    shape = _engine.broadcast([tuple(x.shape) for x in arrays], "arrays")
    return [x if x.ndim and tuple(x.shape) == shape else broadcast_view(x, shape) for x in arrays]


def flip(x, /, axis=None):
    """Returns a view with the elements in reverse order along the axes, by default along all."""
    axes = normalize_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def ravel(x, /, order="C"):
    """Returns the elements in one dimension, in row-major order: a view if the strides allow it,
    else a copy. order: as in NumPy."""
    x = _in_order(x, order)
    return reshape(x, (-1,)) if x.size else reshape(x, (0,))


def flatten(x, /):
    """Returns a copy of the elements in one dimension, in row-major order."""
    return _view_reshaped(_engine.copied(x), (x.size,))


@_engine.quick("flatten")
def _flatten_method(self, order="C"):
    """Returns a copy of the elements in one dimension, in row-major order, or for order="F" in
    column-major order."""
    return flatten(_in_order(self, order))


def is_column_major(x, order):
    """Returns whether NumPy's order "C", "F" or "A" means column-major order for x."""
    if order not in ("C", "F", "A"):
        raise ValueError(f'order must be "C", "F" or "A", not {order!r}')
    return order == "F" or order == "A" and is_dense(x, order="F") and not is_dense(x)


def _in_order(x, order):
    """Returns a view whose row-major order is the given order of x; "K" means the order in memory."""
    if order == "K":
        return permuted(x, sorted(range(x.ndim), key=lambda axis: -abs(x._strides[axis])))
    return permuted(x, range(x.ndim)[::-1]) if is_column_major(x, order) else x


def is_dense(x, order="C"):
    """Returns whether the elements are contiguous in memory in row-major order, or for "F" in
    column-major order."""
    stride = 1
    for extent, own in zip(x.shape if order == "F" else reversed(x.shape), x._strides if order == "F" else reversed(x._strides)):
        if extent > 1 and own != stride:
            return not x.size
        stride *= extent
    return True


# ---- joining and splitting ----


def concat(arrays, /, axis=0):
    """Joins arrays along an existing axis. axis=None flattens the arrays first. The arrays may
    differ in that axis' extent only, otherwise ShapeError is raised."""
    arrays = list(arrays)
    if not arrays:
        raise ShapeError("concat: at least one array is needed")
    if axis is None:
        arrays, axis = [ravel(x) for x in arrays], 0
    rank = arrays[0].ndim
    if not rank:
        raise ShapeError("concat: arrays without dimensions have no axis")
    axis = normalize_axis(axis, rank)
    for x in arrays:
        if x.ndim != rank or any(n != m for i, (n, m) in enumerate(zip(x.shape, arrays[0].shape)) if i != axis):
            raise ShapeError(f"concat: the shapes {tuple(arrays[0].shape)} and {tuple(x.shape)} differ in an axis other than {axis}")
    text = _dtypes.promote([_dtypes.text_of(x) for x in arrays], "concat")
    shape = list(arrays[0].shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    made = _engine.new(tuple(shape), text, _engine.common_device(arrays, "concat"))
    first = 0
    for x in arrays:
        last = first + x.shape[axis]
        if x.size:
            _engine.assign(made[(slice(None),) * axis + (slice(first, last),)], x)
        first = last
    return made


def stack(arrays, /, axis=0):
    """Joins arrays of one shape along a new axis. Raises ShapeError if the shapes differ."""
    arrays = list(arrays)
    if not arrays:
        raise ShapeError("stack: at least one array is needed")
    for x in arrays:
        if tuple(x.shape) != tuple(arrays[0].shape):
            raise ShapeError(f"stack: the shapes {tuple(arrays[0].shape)} and {tuple(x.shape)} differ")
    return concat([expand_dims(x, axis=axis) for x in arrays], axis=normalize_axis(axis, arrays[0].ndim + 1))


def unstack(x, /, *, axis=0):
    """Returns a tuple of views, one for each index along the axis."""
    axis = normalize_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def tile(x, repetitions, /):
    """Returns x repeated along each dimension. repetitions: the number of copies for each
    dimension."""
    times = _engine.shape_of(repetitions)
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    times = (1,) * (rank - len(times)) + times
    names = [f"i{n}" for n in range(rank)]
    at = ", ".join(f"{name} % max(x.shape[{n}], 1)" for n, name in enumerate(names))
    function = func("tiled", f"func tiled({', '.join([*names, 'x'])}) {{ return x[{at}] }}")
    result = tuple(n * m for n, m in zip(shape, times))
    return from_indices(function, result, x.dtype.text, (reshape(x, shape),), x.device)._mark_array()


def repeat(x, repeats, /, axis=None):
    """Repeats each element along an axis. repeats: a number, or an array with a number for each
    element. axis=None flattens x first."""
    from . import _indexing, _orders, _reductions

    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim)
    if isinstance(repeats, (list, tuple)):
        from . import _creation

        repeats = _creation.asarray(repeats, dtype="i64", device=x.device)
    if not isinstance(repeats, Array) or repeats.size == 1:
        count = int(repeats)
        if count < 0:
            raise ShapeError(f"repeat: the number of repeats, {count}, must not be negative")
        result = tuple(n * count if i == axis else n for i, n in enumerate(x.shape))
        return from_indices(_repeated(x.ndim, axis), result, x.dtype.text, (x, typed(max(count, 1), "i64")), x.device)
    if tuple(repeats.shape) != (x.shape[axis],):
        raise ShapeError(f"repeat: axis {axis} has {x.shape[axis]} elements, but there are {repeats.size} repeats")
    ends = _reductions.cumulative_sum(_engine.converted(repeats, "i64"))
    total = int(ends[-1]) if ends.size else 0
    places = from_indices(func("place", "func place(i) { return i }"), (total,), "i64", (), x.device)
    return _indexing.take(x, _orders.searchsorted(ends, places, side="right"), axis=axis)


@functools.cache
def _repeated(rank, axis):
    names = [f"i{n}" for n in range(rank)]
    at = ", ".join(f"{name} // count" if n == axis else name for n, name in enumerate(names))
    return Func("repeated", f"func repeated({', '.join([*names, 'x', 'count'])}) {{ return x[{at}] }}")


def roll(x, /, shift, axis=None):
    """Shifts the elements cyclically along axes. axis=None shifts the flattened array."""
    if axis is None:
        shift = sum(shift) if isinstance(shift, (tuple, list)) else shift
        return reshape(roll(flatten(x), shift, axis=0), tuple(x.shape)) if x.ndim else _engine.copied(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: got {len(shifts)} shifts for {len(axes)} axes")
    moved = [0] * x.ndim
    for each, by in zip(axes, shifts):
        place = normalize_axis(each, x.ndim)
        moved[place] = (moved[place] + as_index(by)) % max(x.shape[place], 1)
    names = [f"i{n}" for n in range(x.ndim)]
    at = ", ".join(f"({name} + x.shape[{n}] - s{n}) % x.shape[{n}]" for n, name in enumerate(names))
    given = ", ".join([*names, "x", *(f"s{n}" for n in range(x.ndim))])
    function = func("rolled", f"func rolled({given}) {{ return x[{at}] }}")
    return from_indices(function, tuple(x.shape), x.dtype.text, (x, *(typed(by, "i64") for by in moved)), x.device)


def atleast_1d(x, /):
    """Returns the array, with one dimension if it has none."""
    return x if x.ndim else reshape(x, (1,))


def atleast_2d(x, /):
    """Returns the array with at least two dimensions; new dimensions come first."""
    return x if x.ndim > 1 else reshape(x, (1, x.size))


def hstack(arrays, /):
    """Joins arrays along the second dimension, or one-dimensional arrays along their only
    dimension."""
    arrays = [atleast_1d(x) for x in arrays]
    return concat(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1)


def vstack(arrays, /):
    """Joins arrays along the first dimension. A one-dimensional array is a row."""
    return concat([atleast_2d(x) for x in arrays], axis=0)


def split(x, sections, /, axis=0):
    """Returns a list of views along an axis. sections: a number of equal parts, or the indices at
    which new parts begin. Raises ShapeError if equal parts are not possible."""
    axis = normalize_axis(axis, x.ndim)
    extent = x.shape[axis]
    if _engine.is_index(sections):
        count = as_index(sections)
        if count < 1 or extent % count:
            raise ShapeError(f"split: {extent} elements cannot be split into {count} equal parts")
        sections = [extent // count * (i + 1) for i in range(count - 1)]
    bounds = [0, *map(as_index, sections), extent]
    return [x[(slice(None),) * axis + (slice(first, last),)] for first, last in zip(bounds, bounds[1:])]


def _pairs_of_widths(widths, rank):
    """Returns the widths of a padding as a pair for each dimension. A number, a pair of numbers and a
    single pair hold for every dimension. Raises ShapeError for other widths."""
    if _engine.is_index(widths):
        return ((widths, widths),) * rank
    items = list(widths)
    if all(map(_engine.is_index, items)):
        items = [items]
    pairs = [tuple(each) * 2 if len(each) == 1 else tuple(each) for each in items]
    pairs = pairs * rank if len(pairs) == 1 else pairs
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(f"pad: the widths {widths} are not a pair for each of {rank} dimensions")
    return tuple(pairs)


def pad(x, widths, /, value=0):
    """Returns x with padding elements before and after it along each dimension. widths: a number, a
    pair (before, after), or a pair for each dimension. value: the padding value, or the name of a
    `numpy.pad` mode, for which NumPy computes the result."""
    if isinstance(value, str):
        return _beyond.method("pad")(x, widths, value)
    widths = _pairs_of_widths(widths, x.ndim)
    made = _engine.new(tuple(n + a + b for n, (a, b) in zip(x.shape, widths)), x.dtype.text, x.device)
    _engine.assign(made, value)
    _engine.assign(made[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths))], x)
    return made


METHODS = {
    "reshape": _reshape_method,
    "transpose": _transpose_method,
    "flatten": _flatten_method,
} | {f.__name__: _beyond.widened_method(f) for f in (ravel, squeeze, swapaxes, repeat)}
FIELDS = {"mT": matrix_transpose}
FUNCTIONS = (
    reshape, permute_dims, transpose, matrix_transpose, moveaxis, swapaxes, expand_dims, squeeze, broadcast_to, broadcast_shapes,
    broadcast_arrays, flip, ravel, flatten, concat, stack, unstack, tile, repeat, roll, atleast_1d, atleast_2d, hstack, vstack, split, pad,
)  # fmt: skip
