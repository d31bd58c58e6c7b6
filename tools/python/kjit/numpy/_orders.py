"""Sorting, searching and set functions."""

import math
import os
from typing import NamedTuple

from .. import _folds, _kjit, _state
from .._kjit import Array
from ..frontend import ufuncs
from . import _beyond, _dtypes, _engine, _indexing
from ._dtypes import KIND
from ._engine import from_indices, normalize_axis, typed
from ._errors import PromotionError, ShapeError
from ._funcs import Func, func

_DESCENDING, _RIGHT = 2, 16
# The order of complex numbers is NumPy's: by the real part, then by the imaginary part, with NaNs
# last.
_LESS_COMPLEX = Func(
    "before",
    "func before(a, b) {\n  if np_isnan(b) { return not np_isnan(a) }\n  return np_is_less(a, b)\n}",
    (ufuncs.BY_NAME["maximum"],),
)


def _less(text):
    return _LESS_COMPLEX.pair() if KIND[text] == "c" else None


def _run(name, results, arguments, axis, descending=False):
    flags = _DESCENDING if descending else 0
    _kjit.run_algorithm(_state.context(), name, (*results, *arguments), axes=(axis,), flags=flags, device=results[0].device)


# NumPy sorts arrays on the CPU with vector instructions, on one core. For more than _MOST_BY_NUMPY elements,
# kjit's sort on many cores takes less time. NumPy is also faster at finding the indices that sort elements
# without ties, for up to _FEW elements of 4 bytes.
_CORES = len(os.sched_getaffinity(0))
_MOST_BY_NUMPY = 2**20 if _CORES > 8 else 2**62
_FEW, _FEW_STABLE = 2**14, 2**8
_PLAIN = frozenset(text for text, kind in KIND.items() if kind in "biuf" and text != "bf16")


def is_numpys(x, most):
    """Returns whether NumPy orders the elements in less time than kjit."""
    return x.device == "cpu" and 0 < x.size <= most and x.dtype.text in _PLAIN


def _sort_without_ties(host):
    """Returns the indices that sort a one-dimensional array, or None if elements are equal, because
    NumPy's fast sort does not keep their order. Few elements are sorted by NumPy's stable sort, which
    is as fast for them."""
    if host.size <= _FEW_STABLE:
        return host.argsort(kind="stable")
    found = host.argsort()
    ordered = host[found]
    if (ordered[1:] == ordered[:-1]).any() or ordered[-2] != ordered[-2]:
        return None
    return found


def sort(x, /, axis=-1, *, descending=False, stable=True):
    """Returns a sorted copy of x along an axis. NaNs come last, and every sort is stable. axis=None
    flattens x first."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalize_axis(axis, x.ndim)
    if not descending and is_numpys(x, _MOST_BY_NUMPY):
        out = _engine.copied(x)
        _engine.host_view(out).sort(axis)
        return out
    out = _engine.new(tuple(x.shape), x.dtype.text, x.device)
    if x.size:
        _run("sort", (out,), (x, _less(x.dtype.text)), axis, descending)
    return out


def argsort(x, /, axis=-1, *, descending=False, stable=True):
    """Returns the indices that sort x along an axis, as int64. axis=None flattens x first."""
    if axis is None or not x.ndim:
        x, axis = x.reshape(-1), axis or 0
    axis, out = normalize_axis(axis, x.ndim), _engine.new(tuple(x.shape), "i64", x.device)
    most = _MOST_BY_NUMPY if x.dtype.itemsize == 8 else _FEW if x.dtype.itemsize == 4 else 0
    if not descending and x.ndim == 1 and x.size > 1 and is_numpys(x, most):
        found = _sort_without_ties(_engine.host_view(x))
        if found is not None:
            _engine.host_view(out)[...] = found
            return out
    if x.size:
        _run("argsort", (out,), (x, _less(x.dtype.text)), axis, descending)
    return out


def check_kind(kind):
    """Raises ShapeError, which is a ValueError, if NumPy has no sort of this kind. All kinds give the same result."""
    if kind is not None and (not isinstance(kind, str) or kind[:1].lower() not in tuple("qhms")):
        raise ShapeError(f"sort: kind must be 'quicksort', 'heapsort', 'mergesort', 'stable' or None, not {kind!r}")


def _sort_method(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sorts the elements in place along an axis. Every sort is stable."""
    check_kind(kind)
    if order is not None:
        raise ShapeError("sort: order names fields, but the elements of the array have none")
    _engine.assign(self, sort(self, axis=axis))


def _find_extreme(x, operator, axis, keepdims):
    text = _dtypes.text_of(x)
    if KIND[text] == "c":  # the standard does not define this case; NumPy compares the real parts first
        return _beyond.method(operator)(x, axis, keepdims=keepdims)
    axes = _engine.reduced_axes(axis, x.ndim)
    if any(x.shape[i] == 0 for i in axes):
        raise ShapeError(f"{operator}: x has the shape {tuple(x.shape)}, so there is no element to choose from")
    return _engine.reduce_axes(x, operator, axes, "i64", keepdims)


def argmax(x, /, axis=None, *, keepdims=False):
    """Returns the index of the largest element along an axis; among equal elements the first.
    Without an axis, the index in the flattened array."""
    return _find_extreme(x, "argmax", axis, keepdims)


def argmin(x, /, axis=None, *, keepdims=False):
    """Returns the index of the smallest element along an axis; among equal elements the first.
    Without an axis, the index in the flattened array."""
    return _find_extreme(x, "argmin", axis, keepdims)


def nonzero(x, /):
    """Returns the indices of the nonzero elements, one array for each dimension, in row-major
    order. The call waits until the device has counted them."""
    if not x.ndim:
        raise ShapeError("nonzero: x must have at least one dimension")
    return _indexing.nonzero(x)


def searchsorted(x1, x2, /, side="left", sorter=None):
    """Returns for each element of x2 the index at which it can be inserted in x1, keeping x1
    sorted.

    x1: sorted, with one dimension. side: "left" inserts before equal elements, "right" after them.
    sorter: indices that sort x1, if x1 itself is not sorted.
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side must be "left" or "right", not {side!r}')
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 must have one dimension, not {x1.ndim}")
    if sorter is not None:
        x1 = _indexing.take(x1, sorter, axis=0)
    if _dtypes.is_scalar(x2):
        from . import _creation

        # not converted to the type of x1, because 2.5 lies between two integers
        x2 = _creation.asarray(x2, device=x1.device)
    text = _dtypes.promote([_dtypes.text_of(x1), _dtypes.text_of(x2)], "searchsorted")
    x1, x2 = _engine.converted(x1, text), _engine.converted(x2, text)
    out = _engine.new(tuple(x2.shape), "i64", x1.device)
    if x2.size:
        flags = _RIGHT if side == "right" else 0
        _kjit.run_algorithm(_state.context(), "search_sorted", (out, x1, x2, _less(text)), flags=flags, device=x1.device)
    return out


# ---- sets ----


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


_IS_NEW = """func is_new(i, x, order) {
  if i == 0 { return true }
  let a = x[order[i]]
  let b = x[order[i - 1]]
  return a != b
}"""
_KEEP = Func("is_new", _IS_NEW)
_KEEP_ONE_NAN = Func("is_new", _IS_NEW.replace("return a != b", "return a != b and (a == a or b == b)"))
_PUT = Func("put", "func put(i, v, x, order) { x[order[i]] = v }")


class Runs:
    """The runs of equal elements in a sorted, flattened array.

    order: the indices that sort the array

    flags: for each position in the sorted array, whether a run begins at this position

    first: the positions at which runs begin

    equal_nan: whether all NaNs form one run; otherwise each NaN is a run
    """

    def __init__(self, x, equal_nan=False):
        self.x = x.reshape((x.size,)) if x.ndim != 1 else x
        self.order = argsort(self.x)
        begins = _KEEP_ONE_NAN if equal_nan and _dtypes.KIND[x.dtype.text] in "fc" else _KEEP
        self.flags = from_indices(begins, (self.x.size,), "bool", (self.x, self.order), x.device)
        self.first = _indexing.nonzero_flat(self.flags)
        self.indices = self.order[self.first]
        self.values = self.x[self.indices]

    def counts(self):
        from . import _manipulation, _reductions

        end = _engine.new((1,), "i64", self.x.device)
        _engine.assign(end, self.x.size)
        return _reductions.diff(_manipulation.concat([self.first, end]))

    def inverse(self, shape):
        from . import _reductions

        inverse = _engine.new((self.x.size,), "i64", self.x.device)
        if self.x.size:
            runs = _reductions.cumulative_sum(self.flags, dtype="i64") - 1
            _engine.to_indices(_PUT, (self.x.size,), runs, (inverse, self.order), self.x.device)
        return inverse.reshape(shape)._mark_array()


def _unique(x, index=False, inverse=False, counts=False):
    """Returns the unique elements of x. If index, inverse or counts is true, returns a tuple with the
    unique elements and these results. NaNs count as different."""
    found = _kjit.small_unique(x, index, inverse, counts, False, True)
    if found is not None:
        return found
    runs = Runs(x)
    parts = (lambda: runs.indices, index), (lambda: runs.inverse(tuple(x.shape)), inverse), (runs.counts, counts)
    asked = [part() for part, is_asked in parts if is_asked]
    return (runs.values, *asked) if asked else runs.values


def unique_all(x, /):
    """Returns four arrays: the unique elements in ascending order, the index of each one's first
    occurrence in the flattened array, the index of each element of x among the unique elements, and
    the number of occurrences. NaNs count as different."""
    return UniqueAll(*_unique(x, True, True, True))


def unique_counts(x, /):
    """Returns the unique elements in ascending order, and the number of occurrences of each."""
    return UniqueCounts(*_unique(x, counts=True))


def unique_inverse(x, /):
    """Returns the unique elements in ascending order, and for each element of x its index among
    them."""
    return UniqueInverse(*_unique(x, inverse=True))


def unique_values(x, /):
    """Returns the unique elements in ascending order."""
    return _unique(x)


def isin(x1, x2, /, *, invert=False):
    """Returns for each element of x1 whether x2 contains it. invert: negates the result."""
    from . import _creation

    x1 = x1 if isinstance(x1, Array) else _creation.asarray(x1, device=getattr(x2, "device", None))
    x2 = x2 if isinstance(x2, Array) else _creation.asarray(x2, device=x1.device)
    text = _dtypes.promote([_dtypes.text_of(x1), _dtypes.text_of(x2)], "isin")
    x1, x2 = _engine.converted(x1, text), sort(_engine.converted(x2, text).reshape((x2.size,)))
    places = searchsorted(x2, x1)
    names = [f"i{n}" for n in range(x1.ndim)]
    at = f"places[{', '.join(names)}]"
    body = f"{at} < n and sorted[min({at}, n - 1)] == x[{', '.join(names)}]"
    if not x2.size:
        return _creation.full(tuple(x1.shape), bool(invert), device=x1.device)
    text = f"func is_in({', '.join([*names, 'x', 'sorted', 'places', 'n'])}) {{ return ({body}) != {'true' if invert else 'false'} }}"
    return from_indices(func("is_in", text), tuple(x1.shape), "bool", (x1, x2, places, typed(x2.size, "i64")), x1.device)._mark_array()


def bincount(x, /, weights=None, minlength=0):
    """Returns the number of occurrences of each integer 0, 1, ... in x, or the sums of their
    weights, in float64. x: non-negative integers. minlength: the minimum length of the result."""
    from . import _creation, _reductions

    if KIND[x.dtype.text] not in "biu" and x.size:
        raise PromotionError(f"bincount: x has the type {x.dtype.name}, but its elements must be integers")
    if x.ndim != 1:
        raise ShapeError(f"bincount: x must have one dimension, not {x.ndim}")
    if minlength < 0:
        raise ShapeError(f"bincount: minlength is {minlength}; it must not be negative")
    if x.size and KIND[x.dtype.text] == "i" and int(_reductions.min(x)) < 0:
        raise ShapeError(f"bincount: x has the negative element {int(_reductions.min(x))}")
    count = max(int(_reductions.max(x)) + 1 if x.size else 0, minlength)
    if not x.size:  # the array of an empty list has the type float64
        return _creation.zeros(count, "i64" if weights is None else "f64", device=x.device)
    return _folds.bincount(x, count, weights if weights is None else _creation.asarray(weights, dtype="f64", device=x.device))


def histogram(x, /, bins=10, range=None, weights=None):
    """Returns (counts, edges), like `numpy.histogram`.

    bins: the number of equally wide bins, an array of ascending edges, or the name of a NumPy rule
    that chooses the number. range: the lowest and the highest edge; the default is the minimum and
    maximum of x. weights: replaces the counts by sums of weights.
    """
    from . import _beyond, _creation, _reductions

    if isinstance(bins, str):
        return _beyond.method("histogram")(x, bins, range, weights=weights)
    if isinstance(bins, float):
        raise TypeError(f"histogram: the number of bins must be an integer, not {bins!r}")
    if not hasattr(bins, "__index__") or getattr(bins, "ndim", 0):
        edges = bins if isinstance(bins, Array) else _creation.asarray(bins, device=x.device)
        if edges.ndim != 1:
            raise ShapeError(f"histogram: the edges must have one dimension, not {edges.ndim}")
        if bool((edges[1:] < edges[:-1]).any()):
            raise ShapeError("histogram: the edges of the bins must be in ascending order")
        return _folds.histogram(x, edges, weights=weights), edges
    if range is not None:
        low, high = map(float, range)
    else:
        low, high = (float(_reductions.min(x)), float(_reductions.max(x))) if x.size else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ShapeError(f"histogram: the range of the bins, {low:g} to {high:g}, must be two finite numbers in ascending order")
    if bins < 1:
        raise ShapeError(f"histogram: bins is {bins}, but must be at least 1")
    if low == high:
        low, high = low - 0.5, high + 0.5
    dtype = x.dtype if _dtypes.KIND[x.dtype.text] == "f" else None
    return _folds.histogram(x, int(bins), low, high, weights), _creation.linspace(low, high, int(bins) + 1, dtype=dtype, device=x.device)


METHODS = {
    "sort": _sort_method,
    "nonzero": nonzero,
} | {f.__name__: _beyond.widened_method(f) for f in (argsort, argmax, argmin, searchsorted, _indexing.take)
}
FUNCTIONS = (
    sort, argsort, argmax, argmin, nonzero, searchsorted, unique_all, unique_counts, unique_inverse, unique_values, isin, bincount, histogram,
)  # fmt: skip
