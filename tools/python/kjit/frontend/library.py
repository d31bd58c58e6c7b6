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


def _logical_and(a, b):
    return bool(a) & bool(b)


def _logical_or(a, b):
    return bool(a) | bool(b)


def _logical_xor(a, b):
    return bool(a) ^ bool(b)


_OPERATORS = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "truediv": _truediv,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "and_": _and,
    "or_": _or,
    "xor": _xor,
    "lshift": _lshift,
    "rshift": _rshift,
    "neg": _neg,
    "not_": _not,
    "invert": _invert,
    "eq": _eq,
    "ne": _ne,
    "lt": _lt,
    "le": _le,
    "gt": _gt,
    "ge": _ge,
    "iadd": _add,
    "isub": _sub,
    "imul": _mul,
    "itruediv": _truediv,
    "ifloordiv": _floordiv,
    "imod": _mod,
    "ipow": _pow,
    "iand": _and,
    "ior": _or,
    "ixor": _xor,
    "ilshift": _lshift,
    "irshift": _rshift,
}
_TABLE = {(id(getattr(operator, name)), None): function for name, function in _OPERATORS.items()}
_TABLE |= {
    (id(math.radians), None): _radians,
    (id(math.degrees), None): _degrees,
    (id(math.log), 2): _log_base,
    (id(cmath.phase), None): _BUILTINS["arg"],
    (id(cmath.polar), None): _polar,
    (id(cmath.rect), None): _rect,
    (id(cmath.isfinite), None): _complex_isfinite,
    (id(cmath.isnan), None): _complex_isnan,
    (id(cmath.isinf), None): _complex_isinf,
    (id(cmath.log), 2): _log_base,
    (id(complex), 2): words.Form("complex", "real imag", "c128({real}, {imag})"),
    (id(round), 2): _round_digits,
}
_TABLE |= {
    (id(getattr(cmath, name)), count): _BUILTINS[name]
    for name in dir(cmath)
    if name in _names.BUILTINS and callable(getattr(cmath, name)) and not name.startswith("is")
    for count in (1,)
}


# Of NumPy's ufuncs, by name: those that are no built-ins.
_UFUNCS = {
    "add": _add,
    "subtract": _sub,
    "multiply": _mul,
    "divide": _truediv,
    "true_divide": _truediv,
    "floor_divide": _floordiv,
    "remainder": _mod,
    "bitwise_and": _and,
    "bitwise_or": _or,
    "bitwise_xor": _xor,
    "invert": _invert,
    "bitwise_not": _invert,
    "left_shift": _lshift,
    "right_shift": _rshift,
    "negative": _neg,
    "equal": _eq,
    "not_equal": _ne,
    "less": _lt,
    "less_equal": _le,
    "greater": _gt,
    "greater_equal": _ge,
    "logical_and": _logical_and,
    "logical_or": _logical_or,
    "logical_xor": _logical_xor,
    "logical_not": _not,
    "deg2rad": _radians,
    "radians": _radians,
    "rad2deg": _degrees,
    "degrees": _degrees,
    "fmax": _BUILTINS["max"],
    "fmin": _BUILTINS["min"],
}

# A ufunc of NumPy with the array that it fills.
_FILL = {
    1: words.Text(
        "ufunc_fill_1",
        """
func ufunc_fill_1(f: func, a, r) @numba {
  if is_array(a) { for at in range(r.shape) { r[at] = f(a[at]) } } else { for at in range(r.shape) { r[at] = f(a) } }
}""",
    ),
    2: words.Text(
        "ufunc_fill_2",
        """
func ufunc_fill_2(f: func, a, b, r) @numba {
  for at in range(r.shape) {
    if is_array(a) and is_array(b) { r[at] = f(a[at], b[at]) } else if is_array(a) { r[at] = f(a[at], b) }
    else if is_array(b) { r[at] = f(a, b[at]) } else { r[at] = f(a, b) }
  }
}""",
    ),
}


def fill_of(thing, count):
    """(the func that fills an array with a ufunc of NumPy, what the ufunc is for an element), where it is called with one
    argument more than it takes; or None."""
    if type(thing).__name__ != "ufunc" or count != thing.nin + 1 or thing.nout != 1 or thing.nin not in _FILL:
        return None
    return _FILL[thing.nin], instead(thing, thing.nin)


def instead(thing, count):
    """What a function of Python's own is in a kernel, given so many arguments; the thing itself where nothing is known."""
    if type(thing).__name__ == "ufunc" and thing.__name__ in _UFUNCS and count == thing.nin:
        return _UFUNCS[thing.__name__]
    return _TABLE.get((id(thing), count)) or _TABLE.get((id(thing), None)) or thing
