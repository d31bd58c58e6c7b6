"""NumPy's reductions and statistics for kjit arrays."""

import numpy

from . import _dtypes, _engine, _indexing, _manipulation, _orders, _reductions
from ._functions_given import _NO_VALUE, _dtype, _is_complex, _stored, array_of, chosen


def _ufunc_reduction(ufunc):
    """Returns the NumPy function that is a reduction by the ufunc, such as numpy.sum for add."""

    def reduction(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NO_VALUE, where=True):
        from ._folding import reduce

        return reduce(ufunc, (a,), () if out is None else (out,), axis, _dtype(dtype), keepdims, initial, where)

    return reduction


def _extreme(ufunc):
    reduction = _ufunc_reduction(ufunc)
    return lambda a, axis=None, out=None, keepdims=False, initial=_NO_VALUE, where=True: reduction(
        a, axis, None, out, keepdims, initial, where
    )


def _truth(ufunc):
    reduction = _ufunc_reduction(ufunc)
    return lambda a, axis=None, out=None, keepdims=False, *, where=True: reduction(a, axis, None, out, keepdims, _NO_VALUE, where)


def mean(a, axis=None, dtype=None, out=None, keepdims=False):
    made = _reductions.mean(array_of(a), axis=axis, dtype=_dtype(dtype), keepdims=keepdims)
    return _stored(made, out, "mean")


def _spread(function):
    def spread(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
        made = function(array_of(a), axis=axis, dtype=_dtype(dtype), correction=ddof, keepdims=keepdims)
        return _stored(made, out, function.__name__)

    return spread


def average(a, axis=None, weights=None):
    a = array_of(a)
    if weights is None:
        return _reductions.mean(a, axis=axis)
    weights = array_of(weights, a.device)
    if tuple(weights.shape) != tuple(a.shape):
        return NotImplemented
    total = numpy.sum(weights, axis=axis)
    # If the sum is 0 on a GPU, the quotient is NaN or infinite. A test of the sum would wait for
    # the device.
    if a.device == "cpu" and bool((total == 0).any()):
        raise ZeroDivisionError("average: the sum of the weights is 0, so the average is undefined")
    return numpy.divide(numpy.sum(numpy.multiply(a, weights), axis=axis), total)


def _cumulative(ufunc):
    def cumulative(a, axis=None, dtype=None, out=None):
        from ._folding import accumulate

        a = array_of(a)
        if axis is None:
            a, axis = _manipulation.ravel(a), 0
        dtype = _dtype(dtype)
        if dtype is None and out is None:
            dtype = numpy.dtype(_dtypes.BY_TEXT[_reductions._sum_type(a.dtype.text, None)].dtype)
        return accumulate(ufunc, (a,), () if out is None else (out,), axis, dtype)

    return cumulative


def ptp(a, axis=None, out=None, keepdims=False):
    a = array_of(a)
    if _is_complex(a):
        return NotImplemented
    made = numpy.subtract(_reductions.max(a, axis=axis, keepdims=keepdims), _reductions.min(a, axis=axis, keepdims=keepdims))
    return _stored(made, out, "ptp")


def count_nonzero(a, axis=None, *, keepdims=False):
    return _reductions.count_nonzero(array_of(a), axis=axis, keepdims=keepdims)


def _find(function):
    def find(a, axis=None, out=None, *, keepdims=False):
        a = array_of(a)
        return NotImplemented if _is_complex(a) else _stored(function(a, axis=axis, keepdims=keepdims), out, function.__name__)

    return find


def _without_nan(ufunc, identity):
    """Returns the NumPy function that reduces with NaNs replaced by the identity, such as
    numpy.nansum."""

    def reduction(a, axis=None, dtype=None, out=None, keepdims=False):
        a = array_of(a)
        if _dtypes.KIND[a.dtype.text] in "fc":
            a = chosen(numpy.isnan(a), numpy.dtype(_dtypes.BY_TEXT[a.dtype.text].dtype).type(identity), a)
        return _ufunc_reduction(ufunc)(a, axis, dtype, out, keepdims)

    return reduction


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False):
    a = array_of(a)
    if _dtypes.KIND[a.dtype.text] not in "fc":
        return mean(a, axis, dtype, out, keepdims)
    total = _without_nan(numpy.add, 0)(a, axis, dtype, None, keepdims)
    counted = numpy.sum(numpy.logical_not(numpy.isnan(a)), axis=axis, keepdims=keepdims)
    return _stored(_engine.converted(numpy.divide(total, counted), total.dtype.text), out, "nanmean")


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    a = array_of(a)
    if _is_complex(a) or not a.size:
        return NotImplemented
    shape = tuple(1 if axis is None or i in _engine.normalize_axes(axis, a.ndim) else n for i, n in enumerate(a.shape))
    if axis is None or isinstance(axis, tuple):
        axes = _engine.normalize_axes(axis, a.ndim)
        kept = [i for i in range(a.ndim) if i not in axes]
        a = _indexing.permuted(a, kept + list(axes)).reshape((*(a.shape[i] for i in kept), -1))
    else:
        a = _manipulation.moveaxis(a, axis, -1)
    ordered, count = _orders.sort(a, axis=-1), a.shape[-1]
    low, high = ordered[..., (count - 1) // 2], ordered[..., count // 2]
    made = low if count % 2 and _dtypes.KIND[low.dtype.text] == "f" else numpy.multiply(numpy.add(low, high), 0.5)
    if _dtypes.KIND[a.dtype.text] == "f":  # NaNs are last in sorted order; a mean of -0.0 is 0.0
        made = numpy.add(made, 0.0)
        made = chosen(numpy.isnan(ordered[..., -1]), ordered[..., -1], _engine.converted(made, a.dtype.text))
    return _stored(made.reshape(shape) if keepdims else made, out, "median")
