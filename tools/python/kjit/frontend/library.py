"""What functions of Python's own modules are where numbers of Python have types, as functions that kernels call, and as
built-ins of the kernel IR."""

import cmath
import math
import operator

from .. import _names
from . import words

_RADIAN = math.pi / 180
_BUILTINS = words.BUILTINS


def _add(a, b):
    return a + b


def _sub(a, b):
    return a - b


def _mul(a, b):
    return a * b


def _truediv(a, b):
    return a / b


def _floordiv(a, b):
    return a // b


def _mod(a, b):
    return a % b


def _pow(a, b):
    return a**b


def _and(a, b):
    return a & b


def _or(a, b):
    return a | b


def _xor(a, b):
    return a ^ b


def _lshift(a, b):
    return a << b


def _rshift(a, b):
    return a >> b


def _neg(a):
    return -a


def _not(a):
    return not a


def _invert(a):
    return ~a


def _eq(a, b):
    return a == b


def _ne(a, b):
    return a != b


def _lt(a, b):
    return a < b


def _le(a, b):
    return a <= b


def _gt(a, b):
    return a > b


def _ge(a, b):
    return a >= b


def _radians(x):
    return x * _RADIAN


def _degrees(x):
    return x / _RADIAN


def _log_base(x, base):
    return math.log(x) / math.log(base)


def _polar(z):
    return abs(z), cmath.phase(z)


def _rect(r, phi):
    return complex(r * math.cos(phi), r * math.sin(phi))


def _complex_isfinite(z):
    return math.isfinite(z.real) and math.isfinite(z.imag)


def _complex_isnan(z):
    return math.isnan(z.real) or math.isnan(z.imag)


def _complex_isinf(z):
    return math.isinf(z.real) or math.isinf(z.imag)


def _round_digits(x, n):
    # As CPython does without its decimal strings: scaled, rounded to even, scaled back.
    if not math.isfinite(x):
        return x
    if n >= 0:
        scale = 10.0**n
        y = x * scale
        if not math.isfinite(y):
            return x
        return _BUILTINS["rint"](y) / scale
    scale = 10.0 ** (-n)
    return _BUILTINS["rint"](x / scale) * scale


_OPERATORS = {
    "add": _add, "sub": _sub, "mul": _mul, "truediv": _truediv, "floordiv": _floordiv, "mod": _mod, "pow": _pow,
    "and_": _and, "or_": _or, "xor": _xor, "lshift": _lshift, "rshift": _rshift, "neg": _neg, "not_": _not,
    "invert": _invert, "eq": _eq, "ne": _ne, "lt": _lt, "le": _le, "gt": _gt, "ge": _ge,
    "iadd": _add, "isub": _sub, "imul": _mul, "itruediv": _truediv, "ifloordiv": _floordiv, "imod": _mod, "ipow": _pow,
    "iand": _and, "ior": _or, "ixor": _xor, "ilshift": _lshift, "irshift": _rshift,
}
_TABLE = {(id(getattr(operator, name)), None): function for name, function in _OPERATORS.items()}
_TABLE |= {
    (id(math.radians), None): _radians, (id(math.degrees), None): _degrees, (id(math.log), 2): _log_base,
    (id(cmath.phase), None): _BUILTINS["arg"], (id(cmath.polar), None): _polar, (id(cmath.rect), None): _rect,
    (id(cmath.isfinite), None): _complex_isfinite, (id(cmath.isnan), None): _complex_isnan,
    (id(cmath.isinf), None): _complex_isinf, (id(cmath.log), 2): _log_base,
    (id(complex), 2): words.Form("complex", "real imag", "c128({real}, {imag})"),
    (id(round), 2): _round_digits,
}
_TABLE |= {
    (id(getattr(cmath, name)), count): _BUILTINS[name]
    for name in dir(cmath) if name in _names.BUILTINS and callable(getattr(cmath, name)) and not name.startswith("is")
    for count in (1,)
}


def instead(thing, count):
    """What a function of Python's own is in a kernel, given so many arguments; the thing itself where nothing is known."""
    return _TABLE.get((id(thing), count)) or _TABLE.get((id(thing), None)) or thing
