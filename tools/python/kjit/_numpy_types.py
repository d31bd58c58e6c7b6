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

    if len(operands) != 2 or not any(
        isinstance(operand, numpy.ndarray) and operand.shape for operand in (condition, *operands)
    ):
        return numpy.where(condition, *operands)
    x, y = map(numpy.asarray, operands)
    if "biufc".find(x.dtype.kind) < 0 or "biufc".find(y.dtype.kind) < 0:
        return numpy.where(condition, x, y)
    dtype = numpy.promote_types(x.dtype, y.dtype)
    return numpy.where(condition, x.astype(dtype), y.astype(dtype))


def are_identical(a, b):
    """`a is b`: in Numba, views of the same elements with the same type are identical."""
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
        """Computes the scan without widening unsigned integers."""
        import numpy

        is_unsigned = isinstance(array, numpy.ndarray) and array.dtype.kind == "u" and not args and not keywords
        return getattr(numpy, name)(array, *args, **keywords, **({"dtype": array.dtype} if is_unsigned else {}))

    return scan


def _moment(name):
    def moment(array, *args, **keywords):
        """Computes the moment with 64-bit differences and sums of 32-bit elements."""
        import numpy

        is_plain = isinstance(array, numpy.ndarray) and array.dtype.kind == "f" and not args and not keywords
        return getattr(numpy, name)(array.astype(numpy.float64, copy=False) if is_plain else array, *args, **keywords)

    return moment


def _quantile(name):
    def quantile(array, *args, **keywords):
        """Computes quantiles of integers and bools as floats, also those that are elements of the array."""
        import numpy

        is_integer = isinstance(array, numpy.ndarray) and array.dtype.kind in "biu"
        return getattr(numpy, name)(array.astype(numpy.float64) if is_integer else array, *args, **keywords)

    return quantile


def _as_int(*values):
    """Python's int, which leaves the type of a NumPy integer as it is."""
    numpy = sys.modules.get("numpy")
    is_integer = (
        len(values) == 1
        and numpy is not None
        and isinstance(values[0], numpy.integer)
        and not isinstance(values[0], numpy.timedelta64)
    )
    return values[0] if is_integer else int(*values)


def _as_float(*values):
    """Python's float, which leaves the type of a float of NumPy as it is."""
    numpy = sys.modules.get("numpy")
    is_float = len(values) == 1 and numpy is not None and isinstance(values[0], numpy.floating)
    return values[0] if is_float else float(*values)


CONVERSIONS = {int: _as_int, float: _as_float}
_FUNCTIONS = {"where": _where}
_FUNCTIONS |= {name: _scan(name) for name in ("cumsum", "cumprod")}
_FUNCTIONS |= {name: _moment(name) for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd")}
_FUNCTIONS |= {name: _quantile(name) for name in ("percentile", "quantile", "nanpercentile", "nanquantile")}
_FUNCTIONS |= {name: _made(name) for name in ("empty", "zeros", "ones", "full")}
METHODS = frozenset(("cumsum", "cumprod", "mean", "var", "std"))


def function_of(thing):
    """Returns Numba's variant of a NumPy function, or None if both are the same."""
    name = getattr(thing, "__name__", None)
    is_there = name in _FUNCTIONS and thing is getattr(sys.modules.get("numpy"), name, None)
    return _FUNCTIONS[name] if is_there else None


def method_of(name):
    """Returns a function that calls the method of an object; for an array and a method in METHODS
    it is Numba's variant."""

    def call(self, *args, **keywords):
        import numpy

        function = _FUNCTIONS[name] if type(self) is numpy.ndarray else None
        return function(self, *args, **keywords) if function else getattr(self, name)(*args, **keywords)

    return call
