"""Operators on NumPy scalars with Numba's result types: integers become int64 or uint64, and a
float32 with an integer of at least 32 bits becomes a float64."""

import operator

import numpy

_INT64, _UINT64, _FLOAT64 = numpy.int64, numpy.uint64, numpy.float64
_BOOLS = (bool, numpy.bool_)
_LOWEST = numpy.iinfo(_INT64).min
# Python's own numbers come from len(), shapes and enumerations.
_OF_PYTHON = {int: _INT64, float: _FLOAT64, complex: numpy.complex128, bool: numpy.bool_}


def _kind(type_):
    """Returns NumPy's character for the kind of a number type, or None for any other type."""
    type_ = _OF_PYTHON.get(type_, type_)
    is_number = isinstance(type_, type) and issubclass(type_, (numpy.number, numpy.bool_)) and type_ is not numpy.timedelta64
    return numpy.dtype(type_).kind if is_number else None


def _integer(type_):
    """Returns the 64-bit type to which an operation converts an integer or bool."""
    return _UINT64 if _kind(type_) == "u" else _INT64


def _common(a, b):
    """Returns the type in which an operator on two numbers is computed."""
    kinds = _kind(a) + _kind(b)
    a, b = _OF_PYTHON.get(a, a), _OF_PYTHON.get(b, b)
    if set(kinds) <= set("bui"):
        return _UINT64 if kinds == "uu" else _INT64
    # Numba treats the conversion of int16 to float32 as exact, but not the conversion of uint16.
    a, b = (_INT64 if t is numpy.uint16 else t for t in (a, b))
    return numpy.promote_types(a, b).type


def _bits(a, b):
    return numpy.bool_ if _kind(a) == _kind(b) == "b" else _common(a, b)


def _conversion(type_, wanted):
    """Returns the function that converts a number. NumPy's types check the range of integers;
    Numba's conversions keep the lowest bits."""
    is_other_sign = {_kind(type_), _kind(wanted)} == {"u", "i"} and type_ not in _OF_PYTHON
    return (lambda value: value.astype(wanted)) if is_other_sign else wanted


def _quotients(a, b):
    return _FLOAT64 if set(_kind(a) + _kind(b)) <= set("bui") else _common(a, b)


def _shifts(a, b):
    return _integer(a)


def _powers(a, b):
    """Returns the type in which a power is computed. Numba has a power of a float32 and an integer,
    which it also chooses for a bool and an int32."""
    is_single = a is numpy.float32 and _kind(b) in "bui" or a in _BOOLS and b is numpy.int32
    return numpy.float32 if is_single else _common(a, b)


def _for_types(rule, function, a, b):
    """Returns the function that applies an operator to operands of two types. rule: returns the type in
    which numbers are computed."""
    if _kind(a) is None or _kind(b) is None:
        return function  # arrays, dates, records and strings are not converted
    common = rule(a, b)
    if a is b is common:
        return function
    convert_a, convert_b = _conversion(a, common), _conversion(b, common)
    return lambda x, y: function(convert_a(x), convert_b(y))


def _with(rule, function):
    known = {}  # the functions by the types of the operands

    def apply(a, b):
        found = known.get((type(a), type(b)))
        if found is None:
            found = known[type(a), type(b)] = _for_types(rule, function, type(a), type(b))
        return found(a, b)

    return apply


def _floor_quotient(a, b):
    is_lowest = isinstance(a, numpy.int64) and a == _LOWEST
    return numpy.int64(0) if is_lowest and b == -1 else a // b  # as in Numba


def _power_of_numbers(a, b):
    if isinstance(b, numpy.signedinteger) and b < 0 and isinstance(a, numpy.integer):
        if a == 0:  # a division by zero, which debug=True reports
            return type(a)(1) // a + numpy.array(1 << a.itemsize * 8 - 1, f"u{a.itemsize}").view(a.dtype)[()]
        return type(a)(1 if a == 1 or a == -1 and b % 2 == 0 else -1 if a == -1 else 0)
    return a**b


def _as_number(value):
    return _OF_PYTHON[type(value)](value) if type(value) in _OF_PYTHON else value


BINARY = {
    "Add": _with(_common, operator.add),
    "Sub": _with(_common, operator.sub),
    "Mult": _with(_common, operator.mul),
    "Div": _with(_quotients, operator.truediv),
    "FloorDiv": _with(_common, _floor_quotient),
    "Mod": _with(_common, operator.mod),
    "Pow": _with(_powers, _power_of_numbers),
    "BitAnd": _with(_bits, operator.and_),
    "BitOr": _with(_bits, operator.or_),
    "BitXor": _with(_bits, operator.xor),
    "LShift": _with(_shifts, operator.lshift),
    "RShift": _with(_shifts, operator.rshift),
    "MatMult": operator.matmul,
}


def _unary(function, of_bool):
    """Returns a unary operator for all types. Numba computes integers in the operand's own width
    and converts the result to 64 bits."""

    def apply(value):
        kind = _kind(type(value))
        if kind is None or kind in "fc":
            return function(_as_number(value))
        if kind == "b":
            return of_bool(value)
        value = _as_number(value)
        return _integer(type(value))(function(value))

    return apply


UNARY = {
    "USub": _unary(operator.neg, lambda value: -_INT64(value)),
    "UAdd": _unary(operator.pos, _INT64),
    "Invert": _unary(operator.invert, lambda value: numpy.bool_(not value)),
}


def typed(value):
    """Returns the value with its numbers, also those in a tuple, as NumPy scalars. Bools are
    unchanged."""
    if type(value) is tuple:
        return tuple(map(typed, value))
    if type(value) is int and not -(2**63) <= value < 2**63:
        return _UINT64(value)
    return value if type(value) is bool else _as_number(value)
