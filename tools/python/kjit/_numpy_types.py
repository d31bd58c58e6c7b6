"""NumPy's functions and assignments as Numba has them, for functions made by kjit.njit that stay in Python. The differences are in the
types: a number of Python is an int64 or a float64, and an assignment converts a number that the array's type does not hold."""

import functools
import random
import sys


def stored(target, value):
    """The value of an assignment to elements of `target`: a number is converted as compiled code does it. NumPy rejects some
    numbers that do not fit."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(target, numpy.ndarray) or target.dtype.kind not in "biuf":
        return value
    if not isinstance(value, (bool, int, float, numpy.bool_, numpy.integer, numpy.floating)):
        return value
    is_outside = isinstance(value, (float, numpy.floating)) and not 0 <= value < 2.0 ** (8 * target.itemsize)
    if is_outside and target.dtype.name in ("uint32", "uint64"):
        return target.dtype.type(_conversion(target.dtype.type)(value))
    with numpy.errstate(all="ignore"):
        return numpy.asarray(value).astype(target.dtype)


@functools.cache
def _conversion(kind):
    """The compiled conversion to an unsigned type. Its result for numbers that do not fit depends on the processor."""
    from ._njit import njit

    def convert(value):
        return kind(value)

    return njit(convert)


def _where(condition, *operands):
    import numpy

    if len(operands) != 2 or not any(isinstance(operand, numpy.ndarray) and operand.shape for operand in (condition, *operands)):
        return numpy.where(condition, *operands)
    x, y = map(numpy.asarray, operands)
    if "biufc".find(x.dtype.kind) < 0 or "biufc".find(y.dtype.kind) < 0:
        return numpy.where(condition, x, y)
    dtype = numpy.promote_types(x.dtype, y.dtype)
    return numpy.where(condition, x.astype(dtype), y.astype(dtype))


def _scan(name):
    def scan(array, *args, **keywords):
        """Unsigned integers are not widened."""
        import numpy

        is_unsigned = isinstance(array, numpy.ndarray) and array.dtype.kind == "u" and not args and not keywords
        return getattr(numpy, name)(array, *args, **keywords, **({"dtype": array.dtype} if is_unsigned else {}))

    return scan


def _moment(name):
    def moment(array, *args, **keywords):
        """Elements of 32 bits are summed in 64 bits."""
        import numpy

        is_plain = isinstance(array, numpy.ndarray) and array.dtype.kind == "f" and not args and not keywords
        return getattr(numpy, name)(array, *args, **keywords, **({"dtype": numpy.float64} if is_plain else {}))

    return moment


_FUNCTIONS = {"where": _where}
_FUNCTIONS |= {name: _scan(name) for name in ("cumsum", "cumprod")}
_FUNCTIONS |= {name: _moment(name) for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd")}
METHODS = frozenset(("cumsum", "cumprod", "mean", "var", "std"))


def function_of(thing):
    """Numba's form of a function of NumPy, or None: NumPy's own is the same."""
    name = getattr(thing, "__name__", None)
    is_there = name in _FUNCTIONS and thing is getattr(sys.modules.get("numpy"), name, None)
    return _FUNCTIONS[name] if is_there else None


def method_of(name):
    """What calls a method of an object, if METHODS has it: that of an array is Numba's."""

    def call(self, *args, **keywords):
        import numpy

        function = _FUNCTIONS[name] if type(self) is numpy.ndarray else None
        return function(self, *args, **keywords) if function else getattr(self, name)(*args, **keywords)

    return call


def is_of_random(thing):
    """Whether an object is a function of Python's module random."""
    return isinstance(getattr(thing, "__self__", None), random.Random)
