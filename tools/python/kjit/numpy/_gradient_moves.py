"""The functions that move elements of arrays, as kjit.grad records them: shapes, indices, joins and
repetitions. The derivative of a move adds each element of the result to its source."""

import math

import numpy

from .. import _folds
from .._algorithms import map
from .._pullback_arrays import beside, element_name, identity, reduced_to, zeros_as
from .._traced import is_traced, raw
from ._engine import Array
from ._tape import Traced, as_array, at_level, by, level_of


def _space(x):
    """Returns the module with the functions for the value of an array: kjit.numpy or NumPy."""
    if not isinstance(raw(x), Array):
        return numpy
    from .. import numpy as kjit_numpy

    return kjit_numpy


# ---- shapes ----


def reshape(x, shape, *more):
    shape = (shape, *more) if isinstance(shape, int) else tuple(shape)
    own = x.shape
    return by(x, lambda value: value.reshape(shape), lambda g: g.reshape(own))


def ravel(x):
    return reshape(x, (math.prod(x.shape),)) if is_traced(x) else as_array(x).reshape((-1,))


def _permuted(x, axes):
    if isinstance(x, Array):
        from . import permute_dims

        return permute_dims(x, tuple(axes))
    return numpy.transpose(x, tuple(axes))


def transpose(x, axes=None, *more):
    axes = (axes, *more) if isinstance(axes, int) else axes
    axes = tuple(range(x.ndim))[::-1] if axes is None else tuple(a % x.ndim for a in axes)
    back = tuple(int(a) for a in numpy.argsort(axes))
    return by(x, lambda value: _permuted(value, axes), lambda g: _permuted(g, back))


def _matrix_transpose(x):
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _swapaxes(x, axis1, axis2):
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return transpose(x, axes)


def _moveaxis(x, source, destination):
    places = numpy.moveaxis(numpy.empty(tuple(range(1, x.ndim + 1))), source, destination).shape
    return transpose(x, tuple(n - 1 for n in places))


def _squeeze(x, axis=None):
    return reshape(x, numpy.squeeze(numpy.broadcast_to(0, x.shape), axis).shape)


def _expand_dims(x, axis):
    return reshape(x, numpy.expand_dims(numpy.broadcast_to(0, x.shape), axis).shape)


def _broadcast_to(x, shape):
    own = x.shape
    return by(x, lambda value: _space(value).broadcast_to(value, shape), lambda g: reduced_to(g, own))


# ---- indices ----


def _is_basic(key):
    """Returns whether an index selects each element at most once and without an array."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(p is Ellipsis or p is None or isinstance(p, (slice, int, numpy.integer)) for p in parts)


def element(x, key):
    """Returns x[key], where the key has integers, slices, and arrays of integers or flags."""
    key = tuple(_part(part, x) for part in key) if isinstance(key, tuple) else _part(key, x)
    if not _is_basic(key):
        return _gathered(x, lambda value: value[key])
    shape = x.shape
    return by(x, lambda value: value[key], lambda g: _placed(g, key, shape, raw(x)))


def _part(part, x):
    """Returns one part of an index of the array x. A traced part is an error, because floats are no indices."""
    if is_traced(part):
        raise TypeError("kjit.grad: an index depends on the derived arguments; indices have no derivative")
    return beside(numpy.asarray(part) if isinstance(part, list) else part, x)


def _placed(g, key, shape, like):
    """Returns zeros in the form of `like`, with g at the index `key`."""
    if is_traced(g):
        return by(g, lambda value: _placed(value, key, shape, like), lambda h: h[key])
    made = zeros_as(like, shape, element_name(like))
    made[key] = beside(g, like)
    return made


def _gathered(x, move):
    """Records move(x), which only moves elements. To find the derivative, the function also moves
    an array with the elements' positions, which gives the source of each element of the result."""
    shape = x.shape
    value = as_array(raw(x))
    numbers = _space(value).arange(math.prod(shape))
    numbers = (as_array(numbers).to_device(value.device) if isinstance(value, Array) else numbers).reshape(shape)
    places = as_array(move(numbers)).reshape((-1,))
    return by(x, move, lambda g: _scattered(g, places, shape, value))


def _scattered(g, places, shape, like):
    """Returns an array like `like` with the given shape, in which each element of g is added to the zero at its index."""
    if is_traced(g):
        own = g.shape
        return by(
            g, lambda value: _scattered(as_array(value), places, shape, like), lambda h: h.reshape((math.prod(shape),))[places].reshape(own)
        )
    made = zeros_as(like, (math.prod(shape),), element_name(like))
    if places.shape[0]:
        _folds.update_at(made, places, _compact(g, like))
    return made.reshape(shape)


def _compact(g, like):
    """Returns a derivative as a new array with one axis, in the memory of `like`."""
    return map(identity, beside(g, like)).reshape((-1,))


def _moving(name):
    def rule(x, *args, **keywords):
        def move(value):
            moved = [beside(part, value) for part in args]
            return getattr(_space(value), name)(value, *moved, **{word: beside(part, value) for word, part in keywords.items()})

        return _gathered(x, move)

    return rule


def _kept(name):
    """Returns the rule of tril or triu."""

    def rule(x, k=0):
        mask = getattr(numpy, name)(numpy.ones(x.shape[-2:], bool), k)
        return x * mask

    return rule


# ---- joins ----


def _concatenate(arrays, axis=0):
    arrays = [x if is_traced(x) else as_array(x) for x in arrays]
    if axis is None:
        arrays, axis = [ravel(x) for x in arrays], 0
    level = level_of(arrays)
    values = [at_level(x, level) for x in arrays]
    like = next((x for x in values if isinstance(raw(x), Array)), values[0])
    values = [x if is_traced(x) else beside(as_array(x), like) for x in values]
    ends = numpy.cumsum([x.shape[axis] for x in values]).tolist()
    rank = len(values[0].shape)

    def back(g):
        cuts = ([slice(None)] * rank for _ in ends)
        found = []
        for cut, start, end in zip(cuts, [0, *ends[:-1]], ends, strict=True):
            cut[axis] = slice(start, end)
            found.append(g[tuple(cut)])
        return (found,)

    return Traced(_space(like).concatenate(values, axis=axis), level, (arrays,), back)


def _raised(x, axis):
    return _expand_dims(x, axis) if is_traced(x) else numpy.expand_dims(as_array(x), axis)


def _stack(arrays, axis=0):
    return _concatenate([_raised(x, axis) for x in arrays], axis)


def _flat(x):
    return reshape(x, (1,)) if len(numpy.shape(x) if not is_traced(x) else x.shape) == 0 else x


def _hstack(arrays):
    arrays = [_flat(x) if is_traced(x) else numpy.atleast_1d(x) for x in arrays]
    return _concatenate(arrays, 0 if len(arrays[0].shape) == 1 else 1)


def _vstack(arrays):
    return _concatenate([_raised(x, 0) if len(x.shape) == 1 else x for x in arrays])


def _split(x, parts, axis=0):
    extent = x.shape[axis]
    ends = [extent * (i + 1) // parts for i in range(parts - 1)] if isinstance(parts, int) else list(parts)
    if isinstance(parts, int) and extent % parts:
        raise ValueError(f"kjit.grad: {extent} elements cannot be split into {parts} equal parts")
    cut = [slice(None)] * x.ndim
    return [x[(*cut[: axis % x.ndim], slice(a, b))] for a, b in zip([0, *ends], [*ends, extent], strict=True)]


FUNCTIONS = {
    "reshape": reshape, "ravel": ravel, "transpose": transpose, "permute_dims": transpose, "matrix_transpose": _matrix_transpose,
    "swapaxes": _swapaxes, "moveaxis": _moveaxis, "squeeze": _squeeze, "expand_dims": _expand_dims, "broadcast_to": _broadcast_to,
    "concatenate": _concatenate, "concat": _concatenate, "stack": _stack, "hstack": _hstack, "vstack": _vstack, "split": _split,
    "tril": _kept("tril"), "triu": _kept("triu"),
    **{name: _moving(name) for name in ("flip", "roll", "tile", "repeat", "take", "diagonal", "take_along_axis")},
}  # fmt: skip
