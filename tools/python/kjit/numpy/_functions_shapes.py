"""NumPy's functions for the shapes of kjit arrays: views, splitting and joining."""

from . import _dtypes, _manipulation
from ._engine import is_index
from ._functions_given import _SEVERAL, _stored, array_of, arrays_of


def reshape(a, newshape, order="C"):
    return _manipulation.reshape(array_of(a), newshape, order)


def ravel(a, order="C"):
    return _manipulation.ravel(array_of(a), order)


def expand_dims(a, axis):
    return _manipulation.expand_dims(array_of(a), axis=axis)


def broadcast_to(array, shape, subok=False):
    return _manipulation.broadcast_to(array_of(array), shape)


def broadcast_arrays(*args, subok=False):
    return _SEVERAL(_manipulation.broadcast_arrays(*map(array_of, args)))


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    return _manipulation.sliding_window_view(array_of(x), window_shape, axis, writeable=writeable)


def _put_together(function):
    def joined(arrays, axis=0, out=None):
        found = arrays_of(arrays)
        return _stored(function(found, axis=axis), out, function.__name__)

    return joined


def _stacked(function):
    return lambda tup: function(arrays_of(tup))


def _at_least(rank):
    def at_least(*arys):
        made = []
        for x in map(array_of, arys):
            if rank == 3 and x.ndim == 2:
                x = _manipulation.expand_dims(x, axis=-1)
            elif rank == 3 and x.ndim == 1:
                x = x.reshape((1, x.size, 1))
            while x.ndim < rank:
                x = _manipulation.expand_dims(x, axis=0)
            made.append(x)
        return made[0] if len(made) == 1 else made

    return at_least


def dstack(tup):
    return _manipulation.concat([_at_least(3)(x) for x in arrays_of(tup)], axis=2)


def column_stack(tup):
    return _manipulation.concat([x if x.ndim > 1 else x.reshape((x.size, 1)) for x in arrays_of(tup)], axis=1)


def array_split(ary, indices_or_sections, axis=0):
    ary = array_of(ary)
    if not is_index(indices_or_sections):
        return split(ary, indices_or_sections, axis)
    extent, count = ary.shape[axis], int(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    least, more = divmod(extent, count)
    ends = [(i + 1) * least + min(i + 1, more) for i in range(count - 1)]
    return _manipulation.split(ary, ends, axis=axis)


def split(ary, indices_or_sections, axis=0):
    return _manipulation.split(array_of(ary), indices_or_sections, axis=axis)


def _split_along(axis):
    def parts(ary, indices_or_sections):
        ary = array_of(ary)
        return split(ary, indices_or_sections, 0 if axis == 1 and ary.ndim == 1 else axis)

    return parts


def tile(A, reps):  # the name of NumPy's parameter # noqa: N803
    return _manipulation.tile(array_of(A), reps)


def repeat(a, repeats, axis=None):
    return _manipulation.repeat(array_of(a), repeats, axis=axis)


def roll(a, shift, axis=None):
    return _manipulation.roll(array_of(a), shift, axis=axis)


def flip(m, axis=None):
    return _manipulation.flip(array_of(m), axis=axis)


def _flip_along(axis):
    return lambda m: _manipulation.flip(array_of(m), axis=axis)


def pad(array, pad_width, mode="constant", *, constant_values=0):
    is_one = _dtypes.is_scalar(constant_values) and (is_index(pad_width) or len(pad_width) in (2, array.ndim))
    if mode != "constant" or not is_one or not is_index(pad_width) and not all(
        is_index(width) or len(width) == 2 for width in pad_width
    ):
        return NotImplemented
    return _manipulation.pad(array_of(array), pad_width, constant_values)
