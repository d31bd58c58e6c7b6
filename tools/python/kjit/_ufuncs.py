"""Properties that functions from `kjit.vectorize` and `kjit.guvectorize` share with NumPy ufuncs: attributes, calls for arrays of libraries
with `__array_ufunc__`, conversion rules, and reductions over parts of an axis."""

import functools
import sys

from . import _kjit

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def check_casting(casting):
    if casting not in CASTINGS:
        raise ValueError(f"casting must be one of {', '.join(map(repr, CASTINGS))}, not {casting!r}")


# ---- arrays of other libraries ----


@functools.lru_cache(256)
def _override(kind):
    """Returns the `__array_ufunc__` method of a class, or None if it has none or if kjit computes with its objects itself."""
    method = getattr(kind, "__array_ufunc__", _MISSING)
    if method is _MISSING or issubclass(kind, _kjit.Array):
        return None
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)):
        return None if method is getattr(numpy.ndarray, "__array_ufunc__", None) or issubclass(kind, numpy.generic) else method
    return None if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__") else method or _rejects


_MISSING = object()


def _rejects(x, ufunc, method, *operands, **options):
    raise TypeError(f"operand '{type(x).__name__}' does not support ufuncs (__array_ufunc__=None)")


def _overriding(operands):
    """Returns the operands whose classes override ufuncs, subclasses before their base classes."""
    found = []
    for x in operands:
        kind = type(x)
        if _override(kind) is None or any(type(other) is kind for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, x)
    return found


def with_overrides(method):
    """Decorates a ufunc method: if an operand's class overrides ufuncs with `__array_ufunc__`, the call goes to that class, as in NumPy."""
    name = method.__name__

    @functools.wraps(method)
    def called(self, *operands, **options):
        out = options.get("out")
        given = (*operands, *(out if isinstance(out, tuple) else (out,))) if out is not None else operands
        found = _overriding(given)
        if not found:
            return method(self, *operands, **options)
        if out is not None and not isinstance(out, tuple):
            options["out"] = (out,)
        for x in found:
            made = _override(type(x))(x, self, name, *operands, **options)
            if made is not NotImplemented:
                return made
        kinds = ", ".join(type(x).__name__ for x in found)
        raise TypeError(f"operand type(s) all returned NotImplemented from __array_ufunc__({self!r}, '{name}'): {kinds}")

    return called


# ---- attributes and methods ----


class Attributes:
    """The attributes of NumPy ufuncs. They are derived from `nin`, `nout` and `_codes`, which has a pair of strings with NumPy type codes
    for each signature: operands and results."""

    identity = None
    _codes = ()

    @property
    def nargs(self):
        """The number of operands and results."""
        return self.nin + self.nout

    @property
    def types(self):
        """The signatures in NumPy's notation, "ff->f". The list is empty if the types depend on each call."""
        return [f"{inputs}->{results}" for inputs, results in self._codes]

    @property
    def ntypes(self):
        """The number of signatures."""
        return len(self._codes)


class Folds(Attributes):
    """The methods that reduce parts of an axis, implemented with `reduce`."""

    @with_overrides
    def reduceat(self, x, indices, axis=0, dtype=None, out=None):
        """Reduces the elements from each index up to the next index, like NumPy's `ufunc.reduceat`. If the next index is not larger, the
        result is the single element at the index. The function must be associative."""
        import numpy

        if isinstance(x, (list, tuple)):
            x = numpy.asarray(x)
        x = converted(x, dtype)
        if not x.ndim:
            raise TypeError("cannot reduceat on a scalar")
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"reduceat: axis {axis} is out of bounds for an array of {x.ndim} dimensions")
        axis, places = axis % x.ndim, [int(i) for i in numpy.asarray(indices).ravel()]
        extent = x.shape[axis]
        for place in places:
            if not 0 <= place < extent:
                raise IndexError(f"index {place} out-of-bounds in {self.__name__}.reduceat [0, {extent})")
        ends = [max(end, place + 1) for place, end in zip(places, [*places[1:], extent])]
        before = (slice(None),) * axis
        parts = [self.reduce(x[(*before, slice(first, last))], axis=axis, keepdims=True) for first, last in zip(places, ends)]
        made = _joined(parts, x, axis)
        return made if out is None else _stored(made, out)


def _joined(parts, x, axis):
    """Concatenates the results for the parts of x along an axis."""
    import numpy

    if not parts:
        return x[(slice(None),) * axis + (slice(0, 0),)]
    if isinstance(x, _kjit.Array):
        from .numpy import concat

        return concat(parts, axis=axis)
    return numpy.concatenate(parts, axis=axis)


def _stored(made, out):
    out = out[0] if isinstance(out, tuple) else out
    if isinstance(out, _kjit.Array):
        out.copy_from(made)
    else:
        out[...] = made
    return out


def converted(x, dtype):
    """Converts an array to an element type; None keeps the type."""
    if dtype is None:
        return x
    if not hasattr(x, "astype"):
        raise TypeError(f"dtype= converts arrays of NumPy and kjit, not {type(x).__name__}")
    import numpy

    return x.astype(numpy.dtype(dtype))


def with_kept(made, shape, axis):
    """Returns the result of a reduction with an axis of extent 1 for each reduced axis. shape is the array shape before the
    reduction."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = {each % len(shape) for each in axes} if shape else set()
    extents = tuple(1 if i in kept else extent for i, extent in enumerate(shape))
    if isinstance(made, _kjit.Array):
        return made.reshape(extents)
    import numpy

    return numpy.asarray(made).reshape(extents)
