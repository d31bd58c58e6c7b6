"""What the functions that `kjit.vectorize` and `kjit.guvectorize` make have in common with NumPy's ufuncs: their attributes, calls for
arrays of libraries with `__array_ufunc__`, rules of conversions, and reductions of parts of an axis."""

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
    """The method with which a class takes over the calls of ufuncs; None: it has none, or kjit computes with its objects."""
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
    """The operands whose classes take over, subclasses before the classes that they are derived from."""
    found = []
    for x in operands:
        kind = type(x)
        if _override(kind) is None or any(type(other) is kind for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, x)
    return found


def with_overrides(method):
    """A method of a ufunc that leaves the call to a library whose arrays take it over by `__array_ufunc__`, as NumPy's ufuncs do."""
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
    """The attributes of NumPy's ufuncs, from `nin`, `nout` and `_codes`, a pair of texts of NumPy's codes of types for each signature:
    of the operands and of the results."""

    identity = None
    _codes = ()

    @property
    def nargs(self):
        """The number of operands and results."""
        return self.nin + self.nout

    @property
    def types(self):
        """The signatures as NumPy writes them, "ff->f". There are none if the types are those of each call."""
        return [f"{inputs}->{results}" for inputs, results in self._codes]

    @property
    def ntypes(self):
        """The number of signatures."""
        return len(self._codes)


class Folds(Attributes):
    """The methods for parts of an axis, from `reduce`."""

    @with_overrides
    def reduceat(self, x, indices, axis=0, dtype=None, out=None):
        """The function between the elements from each index up to the next one, or the element at an index that the next one is not
        above, as NumPy's `ufunc.reduceat`; it has to be associative."""
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
    """Results of parts, one after the other along an axis."""
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
    """An array with elements of a type; None: its own."""
    if dtype is None:
        return x
    if not hasattr(x, "astype"):
        raise TypeError(f"dtype= converts arrays of NumPy and kjit, not {type(x).__name__}")
    import numpy

    return x.astype(numpy.dtype(dtype))


def with_kept(made, shape, axis):
    """The result of a reduction over axes with an extent of 1 for each of them. shape: of the array that was reduced."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = {each % len(shape) for each in axes} if shape else set()
    extents = tuple(1 if i in kept else extent for i, extent in enumerate(shape))
    if isinstance(made, _kjit.Array):
        return made.reshape(extents)
    import numpy

    return numpy.asarray(made).reshape(extents)
