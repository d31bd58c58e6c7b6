"""NumPy functions and assignments with Numba's types, for njit functions that stay in Python. In
Numba a Python number is an int64 or a float64, and an assignment converts a number even if the
array's type cannot hold it."""

import functools
import sys


def stored(target, value):
    """Returns the value for an assignment to elements of `target`. Numbers are converted as in
    compiled code; NumPy would reject some of them."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(target, numpy.ndarray) or target.dtype.kind not in "biuf":
        return value
    if isinstance(value, (complex, numpy.complexfloating)):
        raise TypeError(f"a complex number cannot be stored in an array of {target.dtype}")
    if not isinstance(value, (bool, int, float, numpy.bool_, numpy.integer, numpy.floating)):
        return value
    is_outside = isinstance(value, (float, numpy.floating)) and not 0 <= value < 2.0 ** (8 * target.itemsize)
    if is_outside and target.dtype.name in ("uint32", "uint64"):
        return target.dtype.type(_conversion(target.dtype.type)(value))
    with numpy.errstate(all="ignore"):
        return numpy.asarray(value).astype(target.dtype)


@functools.cache
def _conversion(kind):
    """Returns the compiled conversion to an unsigned type. Its result for numbers out of range
    depends on the processor."""
    from ._njit import njit

    def convert(value):
        return kind(value)

    return njit(convert)


def _where(condition, *operands):
    import numpy

    if not operands:
        return _FUNCTIONS["nonzero"](condition)
    if len(operands) != 2 or not any(
        isinstance(operand, numpy.ndarray) and operand.shape for operand in (condition, *operands)
    ):
        return numpy.where(condition, *operands)
    x, y = map(numpy.asarray, operands)
    if "biufc".find(x.dtype.kind) < 0 or "biufc".find(y.dtype.kind) < 0:
        return numpy.where(condition, x, y)
    dtype = numpy.promote_types(x.dtype, y.dtype)
    return numpy.where(condition, x.astype(dtype), y.astype(dtype))


def _contiguous_places(name):
    def places(*args, **keywords):
        """Returns the indices as contiguous arrays. NumPy instead returns columns of a single
        array."""
        import numpy

        found = getattr(numpy, name)(*args, **keywords)
        return tuple(map(numpy.ascontiguousarray, found))

    return places


def _windows(x, window_shape, axis=None):
    """Replaces numpy.lib.stride_tricks.sliding_window_view. The result is writable if the array is.
    """
    from numpy.lib.stride_tricks import sliding_window_view

    return sliding_window_view(x, window_shape, axis, writeable=True)


def cross2d(a, b):
    """Returns the cross products of vectors with two components. Replaces
    numba.np.extensions.cross2d."""
    import numpy

    if any(isinstance(value, (set, frozenset, dict, str, bytes, type(None))) for value in (a, b)):
        raise TypeError("cross2d: Inputs must be array-like.")
    a, b = numpy.asarray(a), numpy.asarray(b)
    if not a.shape or not b.shape or a.shape[-1] != 2 or b.shape[-1] != 2:
        raise ValueError("Incompatible dimensions for 2D cross product\n(dimension must be 2 for both inputs)")
    return numpy.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def is_cross2d(thing):
    """Returns whether an object is kjit's or Numba's cross2d. Numba's function has an empty body, because Numba's compiler implements
    it."""
    is_numbas = getattr(thing, "__name__", None) == "cross2d" and str(thing.__module__).startswith("numba.np.")
    return thing is cross2d or is_numbas


def _in_c_order(name):
    def function(*args, **keywords):
        """Returns a new array in C order, as Numba does. NumPy's diag is a read-only view, and diff and sort keep Fortran order."""
        import numpy

        result = getattr(numpy, name)(*args, **keywords)
        return numpy.array(result, order="C") if result.base is not None else numpy.ascontiguousarray(result)

    return function


def are_identical(a, b):
    """Returns the result of `a is b` in Numba, where views of the same elements with the same type
    are identical."""
    numpy = sys.modules.get("numpy")
    if a is b or numpy is None or not (type(a) is type(b) is numpy.ndarray):
        return a is b
    described, other = a.__array_interface__, b.__array_interface__
    return a.dtype == b.dtype and a.strides == b.strides and all(described[k] == other[k] for k in ("data", "shape"))


def _made(name):
    def made(*args, **keywords):
        """Makes an array; the error for a negative extent has Numba's text."""
        import numpy

        shape = args[0] if args else keywords.get("shape")
        extents = shape if isinstance(shape, tuple) else (shape,)
        if any(isinstance(n, (int, numpy.integer)) and n < 0 for n in extents):
            raise ValueError("negative dimensions not allowed")
        return getattr(numpy, name)(*args, **keywords)

    return made


def _scan(name):
    def scan(array, *args, **keywords):
        """Computes cumsum or cumprod without widening unsigned integers."""
        import numpy

        is_unsigned = isinstance(array, numpy.ndarray) and array.dtype.kind == "u" and not args and not keywords
        return getattr(numpy, name)(array, *args, **keywords, **({"dtype": array.dtype} if is_unsigned else {}))

    return scan


def _moment(name):
    def moment(array, *args, **keywords):
        """Computes the mean, variance or standard deviation of floats in float64, also for float32.
        """
        import numpy

        is_plain = isinstance(array, numpy.ndarray) and array.dtype.kind == "f" and not args and not keywords
        return getattr(numpy, name)(array.astype(numpy.float64, copy=False) if is_plain else array, *args, **keywords)

    return moment


def _quantile(name):
    def quantile(array, *args, **keywords):
        """Computes quantiles of integers and bools as floats, also if a quantile is an element in the array."""
        import numpy

        is_integer = isinstance(array, numpy.ndarray) and array.dtype.kind in "biu"
        return getattr(numpy, name)(array.astype(numpy.float64) if is_integer else array, *args, **keywords)

    return quantile


def _refuse_array(word, values):
    """Raises an error for the conversion of an array to a number, which Numba rejects also for arrays with one element."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(isinstance(value, numpy.ndarray) for value in values):
        raise TypeError(f"{word}() of an array: index its element, a[0] or a[()]")


def _as_int(*values):
    """Replaces Python's int. It returns a NumPy integer unchanged."""
    numpy = sys.modules.get("numpy")
    _refuse_array("int", values)
    is_integer = (
        len(values) == 1
        and numpy is not None
        and isinstance(values[0], numpy.integer)
        and not isinstance(values[0], numpy.timedelta64)
    )
    return values[0] if is_integer else int(*values)


def _as_float(*values):
    """Replaces Python's float. It returns a NumPy float unchanged."""
    numpy = sys.modules.get("numpy")
    _refuse_array("float", values)
    is_float = len(values) == 1 and numpy is not None and isinstance(values[0], numpy.floating)
    return values[0] if is_float else float(*values)


def _type_of(*values):
    """Replaces Python's type. Raises TypeError for an array, because its type cannot be called to convert a number."""
    numpy = sys.modules.get("numpy")
    if len(values) == 1 and numpy is not None and isinstance(values[0], numpy.ndarray):
        raise TypeError("type() of an array is not supported: `x.dtype.type(v)` converts to the type of its elements")
    return type(*values)


CONVERSIONS = {int: _as_int, float: _as_float, type: _type_of}
_FUNCTIONS = {"where": _where, "nonzero": _contiguous_places("nonzero")}
_FUNCTIONS |= {name: _in_c_order(name) for name in ("diag", "diff", "sort")}
_FUNCTIONS |= {name: _scan(name) for name in ("cumsum", "cumprod")}
_FUNCTIONS |= {name: _moment(name) for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd")}
_FUNCTIONS |= {name: _quantile(name) for name in ("percentile", "quantile", "nanpercentile", "nanquantile")}
_FUNCTIONS |= {name: _made(name) for name in ("empty", "zeros", "ones", "full")}
METHODS = frozenset(("cumsum", "cumprod", "mean", "var", "std", "nonzero"))


def function_of(thing):
    """Returns Numba's variant of a NumPy function, or None if both are the same."""
    if is_cross2d(thing):
        return cross2d
    if getattr(thing, "__name__", None) == "sliding_window_view" and str(thing.__module__).startswith("numpy."):
        return _windows
    name = getattr(thing, "__name__", None)
    is_there = name in _FUNCTIONS and thing is getattr(sys.modules.get("numpy"), name, None)
    return _FUNCTIONS[name] if is_there else None


def method_of(name):
    """Returns a function that calls an object's method. For an array and a method in METHODS, the
    function calls Numba's variant."""

    def call(self, *args, **keywords):
        import numpy

        function = _FUNCTIONS.get(name) if type(self) is numpy.ndarray else None
        return function(self, *args, **keywords) if function else getattr(self, name)(*args, **keywords)

    return call
