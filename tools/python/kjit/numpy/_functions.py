"""NumPy's functions for kjit arrays (`__array_function__`), such as `numpy.sum(a)` and
`numpy.concatenate((a, b))`.

The functions in TABLE run on the arrays' device. For arrays on the CPU, NumPy itself computes every
other function, and every call with an option that kjit's function lacks. For arrays on a GPU, such
calls are rejected.
"""

import functools
import inspect
import sys

import numpy

from .. import _kjit
from . import _beyond, _creation, _dtypes, _einsum, _engine, _indexing, _manipulation, _orders, _products, _reductions
from ._elementwise import effective_bounds
from ._engine import Array
from ._errors import ElementTypeError, ShapeError
from ._functions_folds import (
    _cumulative,
    _extreme,
    _find,
    _spread,
    _truth,
    _ufunc_reduction,
    _without_nan,
    average,
    count_nonzero,
    mean,
    median,
    nanmean,
    ptp,
)
from ._functions_given import _NO_VALUE, _SEVERAL, _dtype, _keep, _stored, array_of, chosen
from ._functions_shapes import (
    _at_least,
    _flip_along,
    _put_together,
    _split_along,
    _stacked,
    array_split,
    broadcast_arrays,
    broadcast_to,
    column_stack,
    dstack,
    expand_dims,
    flip,
    pad,
    ravel,
    repeat,
    reshape,
    roll,
    sliding_window_view,
    split,
    tile,
)
from ._protocols import device_of, on_host, own, promoted


def array_function(self, func, types, args, kwargs):
    """Implements a call of a NumPy function that has a kjit array among its arguments."""
    if not all(issubclass(each, (Array, numpy.ndarray)) for each in types):
        return NotImplemented
    name = f"{func.__module__}.{func.__name__}"
    kwargs = {key: value for key, value in kwargs.items() if value is not _NO_VALUE}
    found = TABLE.get(name) or _of_extension(func, self.device)
    if found is not None and _takes(found, args, kwargs):
        device = device_of(list(_arrays_in((args, tuple(kwargs.values())))), name)
        try:
            made = found(*_own_arrays(args, device), **{key: _own_option(key, value, device) for key, value in kwargs.items()})
        except ElementTypeError:  # strings, objects and dates: NumPy computes with them
            made = NotImplemented
        if made is not NotImplemented:
            return made
    return on_host(name, func, args, kwargs)


def _of_extension(func, device):
    """Returns kjit's function for a function of numpy.linalg or numpy.fft if the arrays are on a
    GPU, else None. NumPy computes these functions on the CPU."""
    extension = {"numpy.linalg": "linalg", "numpy.fft": "fft"}.get(func.__module__)
    if device == "cpu" or extension is None:
        return None
    from importlib import import_module

    return vars(import_module(f".{extension}", __package__)).get(func.__name__)


def _takes(function, args, kwargs):
    """Returns whether kjit's function has a call's parameters."""
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@functools.cache
def _signature(function):
    return inspect.signature(function)


def _arrays_in(x):
    if isinstance(x, (Array, numpy.ndarray)):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _arrays_in(item)


def _own_arrays(x, device):
    """Returns an argument with kjit arrays in place of NumPy's."""
    if isinstance(x, (numpy.ndarray, numpy.generic)):
        return own(x, device)
    if isinstance(x, (list, tuple)) and any(True for _ in _arrays_in(x)):
        return type(x)(_own_arrays(item, device) for item in x)
    return tuple(_own_arrays(item, device) for item in x) if type(x) is tuple else x


def _own_option(name, x, device):
    return x if name == "out" else _own_arrays(x, device)


# ---- sorting and indices ----


def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    _orders.check_kind(kind)
    if order is not None:
        return NotImplemented
    a = array_of(a)
    return _orders.sort(a, axis=axis) if axis is not None else _orders.sort(_manipulation.ravel(a))


def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    _orders.check_kind(kind)
    if order is not None:
        return NotImplemented
    a = array_of(a)
    return _orders.argsort(a, axis=axis) if axis is not None else _orders.argsort(_manipulation.ravel(a))


def searchsorted(a, v, side="left", sorter=None):
    a = array_of(a)
    v = array_of(v, a.device) if not _dtypes.is_scalar(v) else v
    if not _dtypes.is_scalar(v):
        a, v = promoted(a, v)
    return _orders.searchsorted(a, v, side=side, sorter=sorter)


# Up to this number of elements, NumPy's unique takes less time than kjit's sort.
_FEW_TO_SORT = 2**12


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True):
    if axis is not None:
        return NotImplemented
    ar = array_of(ar)
    found = _kjit.small_unique(ar, return_index, return_inverse, return_counts, equal_nan, _beyond.keeps_inverse_shape())
    if found is not None:
        return found
    if equal_nan and sorted and _orders.is_numpys(ar, _FEW_TO_SORT):
        return _beyond.by_numpy(numpy.unique, (_engine.host_view(ar), return_index, return_inverse, return_counts), {})
    runs = _orders.Runs(ar, equal_nan)
    shape = tuple(ar.shape) if _beyond.keeps_inverse_shape() else (ar.size,)
    parts = (lambda: runs.indices, return_index), (lambda: runs.inverse(shape), return_inverse), (runs.counts, return_counts)
    asked = [part() for part, is_asked in parts if is_asked]
    return (runs.values, *asked) if asked else runs.values


def nonzero(a):
    return _orders.nonzero(array_of(a))


def flatnonzero(a):
    return _indexing.nonzero_flat(array_of(a))


def argwhere(a):
    a = array_of(a)
    if not a.ndim:
        return _creation.zeros((int(bool(a)), 0), dtype="i64", device=a.device)
    return _manipulation.stack(_orders.nonzero(a), axis=1)


def take(a, indices, axis=None, out=None, mode="raise"):
    if mode != "raise":
        return NotImplemented
    a = array_of(a)
    indices = array_of(indices, a.device)
    if axis is None:
        a, axis = _manipulation.ravel(a), 0
    axis = _engine.normalize_axis(axis, a.ndim)
    return _stored(a[(slice(None),) * axis + (indices,)], out, "take")


def take_along_axis(arr, indices, axis):
    if axis is None:
        return _indexing.take_along_axis(_manipulation.ravel(arr), indices, axis=0)
    return _indexing.take_along_axis(arr, indices, axis=axis)


def compress(condition, a, axis=None):
    a = array_of(a)
    if axis is None:
        a, axis = _manipulation.ravel(a), 0
    places = _indexing.nonzero_flat(array_of(condition, a.device))
    return _indexing.take(a, places, axis=_engine.normalize_axis(axis, a.ndim))


# ---- elements ----


def where(condition, x=None, y=None):
    if (x is None) != (y is None):
        return NotImplemented  # NumPy makes an array of the object None
    return nonzero(condition) if x is None else chosen(condition, x, y)._mark_array()


def clip(a, a_min=None, a_max=None, out=None):
    made = array_of(a)
    a_min, a_max = effective_bounds(made.dtype.text, a_min, a_max)
    if a_min is not None:
        made = numpy.maximum(made, a_min)
    if a_max is not None:
        made = numpy.minimum(made, a_max)
    return _stored(_engine.copied_result(made) if made is a and out is None else made, out, "clip")


def round_(a, decimals=0, out=None):
    from . import _elementwise

    a = array_of(a)
    if a.dtype.text == "bool":
        return NotImplemented
    return _stored(_elementwise.round(a, decimals), out, "round")


def _part(name):
    def part(val):
        from . import _elementwise

        return getattr(_elementwise, name)(array_of(val))

    return part


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    near = numpy.less_equal(numpy.absolute(numpy.subtract(a, b)), numpy.add(atol, numpy.multiply(rtol, numpy.absolute(b))))
    result = numpy.logical_or(numpy.logical_and(near, numpy.isfinite(b)), numpy.equal(a, b))
    if equal_nan:
        result = numpy.logical_or(result, numpy.logical_and(numpy.isnan(a), numpy.isnan(b)))
    return result


def _has_close(x):
    return _dtypes.KIND[_dtypes.text_of(x)] in "fc" if hasattr(x, "dtype") else not isinstance(x, bool)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    a, b = (x if hasattr(x, "dtype") or _dtypes.is_scalar(x) else numpy.asarray(x) for x in (a, b))
    if not (_has_close(a) or _has_close(b)):
        a = numpy.multiply(a, 1.0)
    return bool(numpy.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1, a2, equal_nan=False):
    a1, a2 = array_of(a1), array_of(a2)
    if tuple(a1.shape) != tuple(a2.shape):
        return False
    same = numpy.equal(a1, a2)
    if equal_nan and _dtypes.KIND[a1.dtype.text] in "fc" and _dtypes.KIND[a2.dtype.text] in "fc":
        same = numpy.logical_or(same, numpy.logical_and(numpy.isnan(a1), numpy.isnan(a2)))
    return bool(numpy.all(same))


def diff(a, n=1, axis=-1, prepend=None, append=None):
    options = {name: array_of(x) for name, x in (("prepend", prepend), ("append", append)) if x is not None}
    if any(x.ndim != a.ndim for x in options.values()):
        return NotImplemented
    return _reductions.diff(array_of(a), axis=axis, n=n, **options)


# ---- products ----


def _product(function, *options):
    def product(a, b, **given):
        a, b = promoted(array_of(a), array_of(b))
        return function(a, b, **given)

    return product


def dot(a, b, out=None):
    device = device_of([a, b], "dot")
    return _stored(_products.dot(*promoted(array_of(a, device), array_of(b, device))), out, "dot")


def tensordot(a, b, axes=2):
    if isinstance(axes, (tuple, list)):
        axes = tuple((each,) if _engine.is_index(each) else tuple(each) for each in axes)
    return _products.tensordot(*promoted(array_of(a), array_of(b)), axes=axes)


def inner(a, b):
    a, b = promoted(array_of(a), array_of(b))
    return _products.dot(a, b) if not a.ndim or not b.ndim else _products.tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,)))


def outer(a, b, out=None):
    a, b = (x.reshape(-1) for x in promoted(array_of(a), array_of(b)))
    return _stored(_products.outer(a, b), out, "outer")


def vdot(a, b):
    a, b = (_manipulation.ravel(x) for x in promoted(array_of(a), array_of(b)))
    return _products.vecdot(a, b)


def einsum(*operands, optimize=False, out=None):
    expression, arrays = _einsum.read(operands)
    return _stored(_products.einsum(expression, *promoted(*map(array_of, arrays)), optimize=optimize), out, "einsum")


def trace(a, offset=0, axis1=0, axis2=1):
    a = array_of(a)
    return numpy.sum(diagonal(a, offset, axis1, axis2), axis=-1)


def diagonal(a, offset=0, axis1=0, axis2=1):
    from . import linalg

    a = array_of(a)
    first, second = _engine.normalize_axes((axis1, axis2), a.ndim)
    rest = [i for i in range(a.ndim) if i not in (first, second)]
    return linalg.diagonal(_indexing.permuted(a, [*rest, first, second]), offset=offset)


def diag(v, k=0):
    v = array_of(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"diag: the array has {v.ndim} dimensions, not one or two")
    size = v.size + abs(k)
    made = _creation.zeros((size, size), dtype=v.dtype, device=v.device)
    if v.size:
        first = max(-k, 0) * size + max(k, 0)
        _engine.assign(made._view((v.size,), (size + 1,), first), v)
    return made


# ---- new arrays ----


def _new_like(function):
    def like(a, dtype=None, shape=None):
        if shape is not None:
            return NotImplemented
        return function(a, dtype=_dtype(dtype))

    return like


def full_like(a, fill_value, dtype=None):
    return _creation.full_like(a, fill_value, dtype=_dtype(dtype))


def copy(a, order="K"):
    return array_of(a).copy(order)._mark_array()


def meshgrid(*xi, indexing="xy", sparse=False, copy=True):
    return NotImplemented if sparse or not copy else _SEVERAL(_creation.meshgrid(*map(array_of, xi), indexing=indexing))


def _manipulated(name, *parameters):
    return _keep(getattr(_manipulation, name), *parameters)


TABLE = {
    "sum": _ufunc_reduction(numpy.add), "prod": _ufunc_reduction(numpy.multiply), "amax": _extreme(numpy.maximum),
    "amin": _extreme(numpy.minimum), "max": _extreme(numpy.maximum), "min": _extreme(numpy.minimum), "any": _truth(numpy.logical_or),
    "all": _truth(numpy.logical_and), "mean": mean, "var": _spread(_reductions.var), "std": _spread(_reductions.std),
    "average": average, "cumsum": _cumulative(numpy.add), "cumprod": _cumulative(numpy.multiply), "ptp": ptp,
    "count_nonzero": count_nonzero, "argmax": _find(_orders.argmax), "argmin": _find(_orders.argmin),
    "nansum": _without_nan(numpy.add, 0), "nanprod": _without_nan(numpy.multiply, 1), "nanmean": nanmean, "median": median,
    "reshape": reshape, "ravel": ravel, "transpose": _manipulated("transpose", "axes=None"),
    "moveaxis": lambda a, source, destination: _manipulation.moveaxis(array_of(a), source, destination),
    "swapaxes": lambda a, axis1, axis2: _manipulation.swapaxes(array_of(a), axis1, axis2), "expand_dims": expand_dims,
    "squeeze": _manipulated("squeeze", "axis=None"), "broadcast_to": broadcast_to, "broadcast_arrays": broadcast_arrays,
    "concatenate": _put_together(_manipulation.concat), "stack": _put_together(_manipulation.stack),
    "hstack": _stacked(_manipulation.hstack), "vstack": _stacked(_manipulation.vstack), "dstack": dstack, "column_stack": column_stack,
    "atleast_1d": _at_least(1), "atleast_2d": _at_least(2), "atleast_3d": _at_least(3), "split": split, "array_split": array_split,
    "lib.stride_tricks.sliding_window_view": sliding_window_view, "hsplit": _split_along(1), "vsplit": _split_along(0), "dsplit": _split_along(2), "tile": tile, "repeat": repeat, "roll": roll,
    "flip": flip, "flipud": _flip_along(0), "fliplr": _flip_along(1), "pad": pad, "sort": sort, "argsort": argsort,
    "searchsorted": searchsorted, "unique": unique, "nonzero": nonzero, "flatnonzero": flatnonzero, "argwhere": argwhere,
    "where": where, "take": take, "take_along_axis": take_along_axis, "compress": compress, "clip": clip, "round": round_,
    "around": round_, "round_": round_, "real": _part("real"), "imag": _part("imag"), "isclose": isclose, "allclose": allclose,
    "array_equal": array_equal, "diff": diff, "dot": dot, "tensordot": tensordot, "inner": inner, "outer": outer, "vdot": vdot,
    "einsum": einsum, "trace": trace, "diagonal": diagonal, "diag": diag, "tril": lambda m, k=0: _creation.tril(array_of(m), k=k),
    "triu": lambda m, k=0: _creation.triu(array_of(m), k=k), "empty_like": _new_like(_creation.empty_like),
    "zeros_like": _new_like(_creation.zeros_like), "ones_like": _new_like(_creation.ones_like), "full_like": full_like, "copy": copy,
    "meshgrid": meshgrid, "shape": lambda a: tuple(array_of(a).shape), "ndim": lambda a: array_of(a).ndim,
    "size": lambda a, axis=None: array_of(a).size if axis is None else array_of(a).shape[axis],
}  # fmt: skip
TABLE = {f"numpy.{name}": function for name, function in TABLE.items()}


def _quick_functions():
    """Returns a dictionary: NumPy function -> (the function that the extension may call instead,
    the arguments for which it may do so). The arguments are 0 for float arrays, 1 for a sequence of
    float arrays, and 2 for a mask and float arrays."""
    names = (
        "sum prod max min amax amin mean std var argmax argmin cumsum sort argsort dot ravel".split(),
        "concatenate hstack vstack stack".split(),
        ["where"],
    )
    own = vars(sys.modules[__package__])
    return {getattr(numpy, name): (own[_OWN_NAMES.get(name, name)], form) for form, group in enumerate(names) for name in group}


_OWN_NAMES = {"amax": "max", "amin": "min"}
_kjit.set_quick_functions(_quick_functions())
