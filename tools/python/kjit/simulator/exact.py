"""Functions of numbers that the interpreter computes without compiled code, with the results of the
CPU target to the last bit. Machine code for the CPU calls the same functions of the C library. All
other functions here are exact, or rounded correctly once."""

import ctypes
import functools
import math
import operator

import numpy

from ..cuda import words
from . import conversions

_F16, _F32, _F64 = numpy.float16, numpy.float32, numpy.float64
_I32, _I64, _U64 = numpy.int32, numpy.int64, numpy.uint64
_to_i32, _to_i64, _to_u64 = map(conversions.converter, (_I32, _I64, _U64))
_FLOATS = (_F64, _F32, _F16)
_SIGNED, _UNSIGNED = (numpy.int8, numpy.int16, _I32, _I64), (numpy.uint8, numpy.uint16, numpy.uint32, _U64)
_INTEGERS = (*_SIGNED, *_UNSIGNED)
# Python has bool for comparisons and constants.
_BOOLS = (numpy.bool_, bool)


@functools.cache
def _library():
    """Returns the C library with the functions of floats, or None if the system has no file of the
    expected name."""
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        return None


@functools.cache
def _of_library(name, count, c_type):
    function = getattr(_library(), name)
    function.argtypes, function.restype = (c_type,) * count, c_type
    return function


# ---- functions of the C library ----


def _library_function(name, count, of_several=(_F64, _F32)):
    """Returns the rule for a function of the C library with `count` arguments of one type. A function
    of float16 is computed in float32, and that of an integer in float64. of_several: the types if
    there are several arguments."""

    def find(*kinds):
        kind = kinds[0]
        if _library() is None or any(k is not kind for k in kinds):
            return None
        if count > 1 and kind not in of_several:
            return None
        if kind is _F32 or kind is _F16:
            single = _of_library(name + "f", count, ctypes.c_float)
            return lambda *values: kind(single(*values))
        double = _of_library(name, count, ctypes.c_double)
        return lambda *values: _F64(double(*values))

    return find


# ---- rules by the kind of the argument ----


def _by_kind(of_float=None, of_integer=None, of_bool=None):
    """Returns the rule for a function of one number. of_float, of_integer and of_bool take the type
    of the number and return the function for this type. None means that functions of such numbers
    have to be compiled."""

    def find(kind):
        rule = of_float if kind in _FLOATS else of_integer if kind in _INTEGERS else of_bool if kind in _BOOLS else None
        return rule and rule(kind)

    return find


def _always(function):
    return lambda kind: function


def _same(value):
    return value


def _rounded(function):
    """Returns the rule for a function such as math.floor, whose result is an integer. As in Numba,
    integers are converted to float64 and back."""
    return _by_kind(
        lambda kind: lambda x: _to_i64(function(x)),
        lambda kind: (lambda x: _to_u64(_F64(x))) if kind in _UNSIGNED else lambda x: _to_i64(_F64(x)),
        _always(_to_i64),
    )


def _absolute(kind):
    return _same if kind in _UNSIGNED else numpy.absolute


def _predicate(function, of_integers):
    constant = numpy.bool_(of_integers)
    return _by_kind(_always(function), *(_always(lambda x: constant) for _ in range(2)))


def _choice(is_second_better):
    """Returns the rule for min or max of two numbers of one type."""

    def find(a, b):
        if a is not b or a not in (*_FLOATS, *_INTEGERS):
            return None
        return lambda x, y: y if is_second_better(x, y) else x

    return find


def _nearest_remainder(kind, other):
    """Returns the function that computes math.remainder for two types, or None. C libraries differ
    in the sign of a result that is 0; here it is the sign of x, as in the CPU target."""
    rule = _library_function("remainder", 2)(kind, other)
    if rule is None:
        return None

    def remainder(x, y):
        rest = rule(x, y)
        return numpy.copysign(rest, x) if rest == 0 else rest

    return remainder


def _of_floats(function, kinds=(_F64, _F32)):
    """Returns the rule for a function that NumPy computes exactly."""
    return lambda *given: function if given[0] in kinds and len(set(given)) == 1 else None


def _half(function):
    """Returns the rule for a function of float16 that NumPy computes in float32 and rounds once."""
    return _of_floats(function, (_F16,))


def _half_of_library(name):
    rule = _library_function(name, 1)
    return lambda kind: rule(kind) if kind is _F16 else None


def _parts(value):
    fraction, exponent = numpy.frexp(value)
    return fraction, _I32(exponent)


def _times(factor):
    return _by_kind(lambda kind: (lambda x: x * kind(factor)) if kind is not _F16 else None)


# ---- bits of integers ----


def _bits_of(kind):
    """Returns (number of bits, mask of these bits) of the integer to which a function of bits
    converts its argument, which has 32 or 64 bits."""
    bits = 64 if kind in (_I64, _U64) else 32
    return bits, (1 << bits) - 1


def _of_bits(function):
    """Returns the rule for a function of the bits of an integer. function(value, bits): value is
    the argument as an unsigned integer with this number of bits."""

    def of_integer(kind):
        bits, mask = _bits_of(kind)
        return lambda x: _I32(function(int(x) & mask, bits))

    return _by_kind(None, of_integer)


def _bit_reverse(kind):
    if kind not in (_I32, _I64, numpy.uint32, _U64):
        return None
    bits, mask = _bits_of(kind)
    unsigned = _U64 if bits == 64 else numpy.uint32
    return lambda x: unsigned(int(f"{int(x) & mask:0{bits}b}"[::-1], 2)).astype(kind)


# The rules by the function and its number of arguments.
_RULES: dict = {
    (abs, 1): _by_kind(_always(numpy.absolute), _absolute),
    (int, 1): _by_kind(_always(_to_i64), _always(_same), _always(_to_i64)),
    (float, 1): _by_kind(_always(_same), _always(_F64), _always(_F64)),
    (bool, 1): _by_kind(*(_always(lambda x: numpy.bool_(x != 0)) for _ in range(3))),
    (min, 2): _choice(lambda x, y: y < x),
    (max, 2): _choice(lambda x, y: y > x),
    (math.floor, 1): _rounded(numpy.floor),
    (math.ceil, 1): _rounded(numpy.ceil),
    (math.trunc, 1): _rounded(numpy.trunc),
    (math.isnan, 1): _predicate(numpy.isnan, False),
    (math.isinf, 1): _predicate(numpy.isinf, False),
    (math.isfinite, 1): _predicate(numpy.isfinite, True),
    (words.FORMS["popc"], 1): _of_bits(lambda x, bits: x.bit_count()),
    (words.FORMS["clz"], 1): _of_bits(lambda x, bits: bits - x.bit_length()),
    (words.FORMS["ffs"], 1): _of_bits(lambda x, bits: (x & -x).bit_length()),
    (words.FORMS["brev"], 1): _by_kind(None, _bit_reverse),
    (math.gamma, 1): _library_function("tgamma", 1),
    (words.FORMS["cbrt"], 1): _library_function("cbrt", 1),
    (words.FORMS["fma"], 3): _library_function("fma", 3),
    (math.remainder, 2): _nearest_remainder,
    (math.frexp, 1): _of_floats(_parts),
    (math.modf, 1): _of_floats(numpy.modf),
    (math.degrees, 1): _times(180 / math.pi),
    (math.radians, 1): _times(math.pi / 180),
    (round, 1): _by_kind(_always(lambda x: _to_i64(numpy.rint(x)))),
}
# Functions of kjit.cuda's fp16, which begin with an h.
_HALF = {
    ("hadd", 2): _half(operator.add),
    ("hsub", 2): _half(operator.sub),
    ("hmul", 2): _half(operator.mul),
    ("hdiv", 2): _half(operator.truediv),
    ("hneg", 1): _half(operator.neg),
    ("habs", 1): _half(numpy.absolute),
    ("hrcp", 1): _half(lambda x: _F16(1) / x),
    ("hceil", 1): _half(numpy.ceil),
    ("hfloor", 1): _half(numpy.floor),
    ("htrunc", 1): _half(numpy.trunc),
    ("hrint", 1): _half(numpy.rint),
    ("hrsqrt", 1): _half(lambda x: _F16(_F32(1) / numpy.sqrt(_F32(x)))),
    ("hfma", 3): _library_function("fma", 3, (_F16,)),
    **{(f"h{name}", 2): _half(getattr(operator, name)) for name in ("eq", "ne", "ge", "gt", "le", "lt")},
    **{(f"h{name}", 1): _half_of_library(name) for name in ("sin", "cos", "log", "log2", "log10", "sqrt", "exp", "exp2", "exp10")},
}
_RULES |= {(getattr(words.fp16, name), count): rule for (name, count), rule in _HALF.items()}
_OF_ONE = """acos acosh asin asinh atan atanh cos cosh erf erfc exp expm1 fabs lgamma log log10 log1p log2 sin sinh sqrt tan
    tanh""".split()
_OF_TWO = "copysign fmod nextafter pow".split()
_RULES |= {(getattr(math, name), 1): _library_function(name, 1) for name in _OF_ONE}
_RULES |= {(getattr(math, name), 2): _library_function(name, 2) for name in _OF_TWO}
_RULES |= {(getattr(math, name), 2): _library_function(name, 2, (_F64, _F32, _I64, _U64)) for name in ("atan2", "hypot")}
if hasattr(math, "exp2"):  # Python has it since version 3.11
    _RULES[math.exp2, 1] = _library_function("exp2", 1)


def find(function, kinds):
    """Returns the function that computes `function` for arguments of these types, or None if it has
    to be compiled. kinds: the classes of NumPy's scalars."""
    rule = _RULES.get((function, len(kinds)))
    return rule and rule(*kinds)
