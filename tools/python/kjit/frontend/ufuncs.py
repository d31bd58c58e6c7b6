"""NumPy's ufuncs as funcs in the kernel IR, for all front ends.

A kernel that calls `np.maximum(a, b)` gets NumPy's result: NumPy's special values, integer results
for integers, and float results of math functions for integers. The funcs follow the rules of the
kernel IR, not Numba's, so that the same text serves kjit.jit, kjit.vectorize, njit and kjit.cuda.
"""

import sys

from .words import Text

_COMMON = Text(
    "np_common",
    """
func np_common(a, b) {
  if dtype(a) == dtype(b) { return zero(dtype(a)) }
  if is_struct(dtype(a)) and is_struct(dtype(b)) { return a + (b - a) }
  if is_integer(dtype(a)) and is_integer(dtype(b)) {
    if dtype(a) == u64 and is_signed(dtype(b)) or dtype(b) == u64 and is_signed(dtype(a)) { return 0f64 }
  }
  var common
  common = a
  common = b
  return common
}""",
)
# Powers of 0 as NumPy and Numba define them: 1 for the exponent 0, 0 for a positive real exponent, and NaN
# for others.
COMPLEX_POWER = Text(
    "np_complex_power",
    """
func np_complex_power(x, y) {
  if x == 0 and y != 0 and not (y.real > 0 and y.imag == 0) { return dtype(x)(nan, nan) }
  return pow(x, y)
}""",
)
# Converts an integer or bool to a float, because NumPy's math functions have loops for floats only.
FLOAT = Text(
    "np_float",
    """
func np_float(a) {
  if is_integer(dtype(a)) or dtype(a) == bool { return f64(a) }
  return a
}""",
)
_LESS = Text(
    "np_is_less",
    """
func np_is_less(a, b) {
  if is_complex(dtype(a)) or is_complex(dtype(b)) {
    let x = c128(a)
    let y = c128(b)
    return x.real < y.real and not isnan(x.imag) and not isnan(y.imag) or x.real == y.real and x.imag < y.imag
  }
  return a < b
}""",
)
# Dates are structs with a count; the lowest count is NaT.
_IS_NAT = Text("np_isnat", "\nfunc np_isnat(a) { return a.count == -9223372036854775808i64 }")
_IS_NAN = Text(
    "np_isnan",
    """
func np_isnan(a) {
  if is_struct(dtype(a)) { return np_isnat(a) }
  if is_complex(dtype(a)) { return isnan(a.real) or isnan(a.imag) }
  if is_float(dtype(a)) { return isnan(a) }
  return false
}""",
    (_IS_NAT,),
)
_IS_FINITE = Text(
    "np_isfinite",
    """
func np_isfinite(a) {
  if is_struct(dtype(a)) { return not np_isnat(a) }
  if is_complex(dtype(a)) { return isfinite(a.real) and isfinite(a.imag) }
  if is_float(dtype(a)) { return isfinite(a) }
  return true
}""",
    (_IS_NAT,),
)
_IS_INF = Text(
    "np_isinf",
    """
func np_isinf(a) {
  if is_complex(dtype(a)) { return isinf(a.real) or isinf(a.imag) }
  if is_float(dtype(a)) { return isinf(a) }
  return false
}""",
)
# Whether a number is nonzero.
TRUTH = Text(
    "np_truth",
    """
func np_truth(a) {
  if is_tuple(a) { return len(a) != 0 }
  if is_complex(dtype(a)) { return a.real != 0 or a.imag != 0 }
  if dtype(a) == bool { return a }
  return a != 0
}""",
)
# A quotient without a check for division by zero: NumPy's floats have infinities and NaNs. NumPy divides complex numbers by
# Smith's method.
_QUOTIENT = Text(
    "np_quotient",
    """
func np_quotient(x, y) {
  if is_complex(dtype(x)) {
    if y == 0 { return dtype(x)(quotient(x.real, abs(y.real)), quotient(x.imag, abs(y.real))) }
    if abs(y.real) >= abs(y.imag) {
      let r = quotient(y.imag, y.real)
      let s = quotient(dtype(r)(1), y.real + y.imag * r)
      return dtype(x)((x.real + x.imag * r) * s, (x.imag - x.real * r) * s)
    }
    let r = quotient(y.real, y.imag)
    let s = quotient(dtype(r)(1), y.imag + y.real * r)
    return dtype(x)((x.real * r + x.imag) * s, (x.imag * r - x.real) * s)
  }
  return quotient(x, y)
}""",
)
# The floor quotient, and the remainder with the divisor's sign, as NumPy's npy_divmod defines them.
_DIVMOD = Text(
    "np_divmod",
    """
func np_divmod(a, b) {
  if is_struct(dtype(a)) or is_struct(dtype(b)) { return a // b, a % b }
  let x = dtype(np_common(a, b))(a)
  let y = dtype(np_common(a, b))(b)
  if dtype(x) == bool { return i8(x) // (y ? i8(1) : i8(1)) * (y ? i8(1) : i8(0)), i8(0) }
  if is_integer(dtype(x)) {
    if y == 0 { return dtype(x)(0), dtype(x)(0) }
    return dtype(x)(x // y), dtype(x)(x % y)
  }
  if y == 0 { return np_quotient(x, y), dtype(x)(nan) }
  var m = fmod(x, y)
  var q = (x - m) / y
  if m != 0 {
    if (y < 0) != (m < 0) {
      m += y
      q -= 1
    }
  } else {
    m = copysign(dtype(x)(0), y)
  }
  if q == 0 { return copysign(dtype(x)(0), x / y), m }
  let whole = floor(q)
  return q - whole > dtype(x)(0.5) ? whole + 1 : whole, m
}""",
    (_COMMON, _QUOTIENT),
)


# For dates, the operators of the kernel IR give NumPy's results.
_DATES = "  if is_struct(dtype(a)) or is_struct(dtype(b)) {{ return a {operator} b }}\n"


def _text(name, parameters, body, *needs):
    return Text(f"np_{name}", f"\nfunc np_{name}({parameters}) {{\n{body}\n}}", needs)


def _arithmetic(name, operator):
    """Returns an operator whose result has the common type of its operands, also for integers of 8
    and 16 bits."""
    return _text(
        name,
        "a, b",
        f"  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        f"  return dtype(x)(x {operator} y)",
        _COMMON,
    )


# A product of complex numbers by the formula that NumPy and Numba use. The kernel IR's operator instead follows Annex G
# of the C standard, in which a product with an infinity is an infinity.
_PRODUCT = Text(
    "np_product",
    """
func np_product(x, y) {
  return dtype(x)(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
}""",
)
_OF_COMPLEX = "  if is_complex(dtype(x)) {{ return {call} }}\n"


def _logic(name, operator, of_bool, of_complex="", *needs):
    """Returns add or multiply, which are `or` and `and` for bools."""
    return _text(
        name,
        "a, b",
        f"{_DATES.format(operator=operator)}  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        f"  if dtype(x) == bool {{ return x {of_bool} y }}\n{of_complex}  return dtype(x)(x {operator} y)",
        _COMMON,
        *needs,
    )


def _unary(name, call):
    """Returns a math function of one operand, which converts integers to floats."""
    return _text(name, "a", f"  let x = np_float(a)\n  return {call}", FLOAT)


def _binary(name, call, *needs):
    return _text(
        name,
        "a, b",
        "  let x = np_float(dtype(np_common(a, b))(a))\n  let y = np_float(dtype(np_common(a, b))(b))\n"
        f"  return {call}",
        _COMMON,
        FLOAT,
        *needs,
    )


def _order(name, expression):
    """Returns a comparison. Complex numbers are compared by their real parts, then by their
    imaginary parts."""
    return _text(name, "a, b", f"  return {expression}", _LESS, _IS_NAN)


def _choice(name, condition, keeps_nan):
    """Returns the larger or smaller of two numbers. keeps_nan: the result is NaN if an operand is
    NaN; otherwise a NaN is ignored."""
    first, second = ("x", "y") if keeps_nan else ("y", "x")
    less = "x < y" if condition == "np_is_less(x, y)" else "y < x"
    # Conditional expressions instead of branches, so that a loop on a GPU can access several
    # elements at a time.
    keeps = f"    let takes_y = {less} or y != y\n    return x != x or not takes_y ? x : y\n"
    drops = f"    let takes_y = {less} or x != x\n    return takes_y ? y : x\n"
    return _text(
        name,
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        f"  if is_float(dtype(x)) {{\n{keeps if keeps_nan else drops}  }}\n"
        "  if is_complex(dtype(x)) or is_struct(dtype(x)) {\n"
        f"    if np_isnan(x) {{ return {first} }}\n    if np_isnan(y) {{ return {second} }}\n  }}\n"
        f"  return {condition} ? y : x",
        _COMMON,
        _LESS,
        _IS_NAN,
    )


def _rounding(name):
    """Returns a rounding function. Integers and bools are returned unchanged, except by NumPy's
    rint, which converts them to floats."""
    return _text(
        name,
        "a",
        f"  if is_integer(dtype(a)) or dtype(a) == bool {{ return {'f64(a)' if name == 'rint' else 'a'} }}\n"
        f"  if is_complex(dtype(a)) {{ return dtype(a)({name}(a.real), {name}(a.imag)) }}\n"
        f"  return {name}(a)",
    )


_MATH = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    **{name: name for name in "cbrt cos cosh exp log sin sinh sqrt tan tanh".split()},
}
_SCALED = {"log2": 1.4426950408889634, "log10": 0.4342944819032518}

_UFUNCS = {name: _unary(name, f"{word}(x)") for name, word in _MATH.items()}
_UFUNCS |= {
    name: _unary(
        name,
        f"is_complex(dtype(x)) ? dtype(x)(log(x).real * {factor}, log(x).imag * {factor}) : {name}(x)",
    )
    for name, factor in _SCALED.items()
}
_UFUNCS |= {name: _rounding(name) for name in ("ceil", "floor", "rint", "trunc")}
_UFUNCS |= {
    "exp2": _unary("exp2", "is_complex(dtype(x)) ? exp(x * 0.6931471805599453) : exp2(x)"),
    "expm1": _unary(
        "expm1",
        "is_complex(dtype(x)) ? dtype(x)(expm1(x.real) * cos(x.imag) - 2 * sin(x.imag / 2) * sin(x.imag / 2),"
        " exp(x.real) * sin(x.imag)) : expm1(x)",
    ),
    "log1p": _unary(
        "log1p",
        "is_complex(dtype(x)) ? log(dtype(x)(x.real + 1, x.imag)) : log1p(x)",
    ),
    "fabs": _unary("fabs", "abs(x)"),
    "signbit": _unary("signbit", "signbit(x)"),
    "spacing": _unary(
        "spacing", "isinf(x) ? dtype(x)(nan) : nextafter(x, copysign(dtype(x)(inf), x)) - x"
    ),
    "deg2rad": _unary("deg2rad", "x * dtype(x)(0.017453292519943295)"),
    "rad2deg": _unary("rad2deg", "x * dtype(x)(57.29577951308232)"),
    "arctan2": _binary("arctan2", "atan2(x, y)"),
    "copysign": _binary("copysign", "copysign(x, y)"),
    "hypot": _binary("hypot", "hypot(x, y)"),
    "nextafter": _binary("nextafter", "nextafter(x, y)"),
    "divide": _text(
        "divide",
        "a, b",
        f"{_DATES.format(operator='/')}  let x = np_float(dtype(np_common(a, b))(a))\n  let y = np_float(dtype(np_common(a, b))(b))\n"
        "  return np_quotient(x, y)",
        _COMMON,
        FLOAT,
        _QUOTIENT,
    ),
    "float_power": _text(
        "float_power",
        "a, b",
        "  if is_complex(dtype(a)) or is_complex(dtype(b)) { return np_complex_power(c128(a), c128(b)) }\n"
        "  return pow(f64(a), f64(b))",
        COMPLEX_POWER,
    ),
    "add": _logic("add", "+", "or"),
    "multiply": _logic("multiply", "*", "and", _OF_COMPLEX.format(call="np_product(x, y)"), _PRODUCT),
    "subtract": _text(
        "subtract",
        "a, b",
        f"{_DATES.format(operator='-')}  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        "  if dtype(x) == bool { return i8(x) - i8(y) }\n  return dtype(x)(x - y)",
        _COMMON,
    ),
    "bitwise_and": _arithmetic("bitwise_and", "&"),
    "bitwise_or": _arithmetic("bitwise_or", "|"),
    "bitwise_xor": _arithmetic("bitwise_xor", "^"),
    # A count of at least the width shifts all bits out. So does a negative count, which NumPy
    # treats as an unsigned number.
    "left_shift": _text(
        "left_shift",
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n  if dtype(x) == bool { return i8(x) << i8(y) }\n"
        "  return u64(i64(y)) < u64(8 * sizeof(dtype(x))) ? dtype(x)(x << y) : dtype(x)(0)",
        _COMMON,
    ),
    "right_shift": _text(
        "right_shift",
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n  if dtype(x) == bool { return i8(x) >> i8(y) }\n"
        "  let is_within = u64(i64(y)) < u64(8 * sizeof(dtype(x)))\n"
        "  if is_signed(dtype(x)) { return dtype(x)(x >> (is_within ? y : dtype(y)(8 * sizeof(dtype(x)) - 1))) }\n"
        "  return is_within ? dtype(x)(x >> y) : dtype(x)(0)",
        _COMMON,
    ),
    "invert": _text("invert", "a", "  if dtype(a) == bool { return not a }\n  return dtype(a)(~a)"),
    "negative": _text("negative", "a", "  if dtype(a) == bool { return i8(-i8(a)) }\n  return dtype(a)(-a)"),
    "positive": _text("positive", "a", "  if dtype(a) == bool { return i8(a) }\n  return a"),
    "square": _text(
        "square",
        "a",
        "  if dtype(a) == bool { return i8(a) }\n  if is_complex(dtype(a)) { return np_product(a, a) }\n  return dtype(a)(a * a)",
        _PRODUCT,
    ),
    "reciprocal": _text(
        "reciprocal",
        "a",
        "  if dtype(a) == bool { return i8(a) }\n"
        "  if is_integer(dtype(a)) { return a == 1 ? dtype(a)(1) : is_signed(dtype(a)) and a == -1 ? dtype(a)(-1) : dtype(a)(0) }\n"
        "  if is_complex(dtype(a)) {\n"
        "    if abs(a.imag) <= abs(a.real) {\n"
        "      let r = quotient(a.imag, a.real)\n"
        "      let d = a.real + a.imag * r\n"
        "      return dtype(a)(quotient(dtype(r)(1), d), quotient(-r, d))\n"
        "    }\n"
        "    let r = quotient(a.real, a.imag)\n"
        "    let d = a.real * r + a.imag\n"
        "    return dtype(a)(quotient(r, d), quotient(dtype(r)(-1), d))\n"
        "  }\n"
        "  return quotient(dtype(a)(1), a)",
    ),
    "absolute": _text("absolute", "a", "  if dtype(a) == bool { return a }\n  if is_complex(dtype(a)) { return abs(a) }\n  return dtype(a)(abs(a))"),
    "conjugate": _text("conjugate", "a", "  if dtype(a) == bool { return i8(a) }\n  return is_complex(dtype(a)) ? conj(a) : a"),
    "sign": _text(
        "sign",
        "a",
        "  if is_struct(dtype(a)) { return dtype(a)(i64(a.count > 0) - i64(a.count < 0)) }\n"  # -1 for NaT, as in NumPy
        "  if dtype(a) == bool { return i8(a) }\n  if is_complex(dtype(a)) {\n"
        "    if np_isinf(a) {\n"
        "      let x = isinf(a.real) ? copysign(dtype(a.real)(1), a.real) : dtype(a.real)(0)\n"
        "      let y = isinf(a.imag) ? copysign(dtype(a.real)(1), a.imag) : dtype(a.real)(0)\n"
        "      if x != 0 and y != 0 { return dtype(a)(nan, nan) }\n"
        "      return dtype(a)(x, y)\n"
        "    }\n"
        "    if np_isnan(a) { return dtype(a)(nan, nan) }\n"
        "    if isinf(abs(a)) { return np_sign(dtype(a)(a.real * dtype(a.real)(0.25), a.imag * dtype(a.real)(0.25))) }\n"
        "    let r = abs(a)\n"
        "    return r == 0 ? dtype(a)(0) : dtype(a)(a.real / r, a.imag / r)\n"
        "  }\n"
        "  if is_integer(dtype(a)) and not is_signed(dtype(a)) { return a > 0 ? dtype(a)(1) : dtype(a)(0) }\n"
        "  if is_integer(dtype(a)) { return dtype(a)(i32(a > 0) - i32(a < 0)) }\n"
        "  return a > 0 ? dtype(a)(1) : a < 0 ? dtype(a)(-1) : a == 0 ? dtype(a)(0) : a",
        _IS_NAN,
        _IS_INF,
    ),
    "heaviside": _binary("heaviside", "isnan(x) ? x : x < 0 ? dtype(x)(0) : x > 0 ? dtype(x)(1) : y"),
    "logaddexp": _binary(
        "logaddexp",
        "x == y ? x + dtype(x)(0.6931471805599453) : isnan(x) or isnan(y) ? x + y : max(x, y) + log1p(exp(-abs(x - y)))",
    ),
    "logaddexp2": _binary(
        "logaddexp2",
        "x == y ? x + 1 : isnan(x) or isnan(y) ? x + y"
        " : max(x, y) + log1p(exp2(-abs(x - y))) * dtype(x)(1.4426950408889634)",
    ),
    "fmod": _text(
        "fmod",
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        "  if dtype(x) == bool { return i8(0) }\n"
        "  if is_integer(dtype(x)) {\n    if y == 0 { return dtype(x)(0) }\n    return dtype(x)(rem_trunc(x, y))\n  }\n"
        "  return fmod(x, y)",
        _COMMON,
    ),
    "divmod": _DIVMOD,
    "floor_divide": _text("floor_divide", "a, b", f"{_DATES.format(operator='//')}  return np_divmod(a, b)[0]", _DIVMOD),
    "remainder": _text("remainder", "a, b", f"{_DATES.format(operator='%')}  return np_divmod(a, b)[1]", _DIVMOD),
    # Integer powers by repeated squaring, modulo 2 to the number of bits. NumPy rejects a negative exponent
    # -n. A kernel returns 1 / a ** n as an integer instead, or the lowest integer if a is 0, as in Numba.
    "power": _text(
        "power",
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        "  if dtype(x) == bool { return i8(x or not y) }\n"
        "  if is_integer(dtype(x)) {\n    if is_signed(dtype(y)) { if y < 0 and x == 0 { return dtype(x)(1u64 << u64(sizeof(dtype(x)) * 8 - 1)) } }\n"
        "    return dtype(x)(x ** y)\n  }\n"
        f"{_OF_COMPLEX.format(call='np_complex_power(x, y)')}  return pow(x, y)",
        _COMMON,
        COMPLEX_POWER,
    ),
    "gcd": _text(
        "gcd",
        "a, b",
        "  var x = dtype(np_common(a, b))(a)\n  var y = dtype(np_common(a, b))(b)\n"
        "  while y != 0 {\n    let r = dtype(x)(rem_trunc(x, y))\n    x = y\n    y = r\n  }\n  return dtype(x)(abs(x))",
        _COMMON,
    ),
    "lcm": _text(
        "lcm",
        "a, b",
        "  let x = dtype(np_common(a, b))(a)\n  let y = dtype(np_common(a, b))(b)\n"
        "  var g = x\n  var h = y\n  while h != 0 {\n    let r = dtype(x)(rem_trunc(g, h))\n    g = h\n    h = r\n  }\n"
        "  if g == 0 { return dtype(x)(0) }\n  return dtype(x)(div_trunc(dtype(x)(abs(x)), dtype(x)(abs(g))) * dtype(x)(abs(y)))",
        _COMMON,
    ),
    "ldexp": _text("ldexp", "a, b", "  return ldexp(np_float(a), i32(min(max(i64(b), -100000i64), 100000i64)))", FLOAT),
    "frexp": _unary("frexp", "frexp(x)"),
    "modf": _unary("modf", "modf(x)"),
    "isfinite": _IS_FINITE,
    "isnat": _IS_NAT,
    "isinf": _IS_INF,
    "isnan": _IS_NAN,
    "equal": _text("equal", "a, b", "  return a == b"),
    "not_equal": _text("not_equal", "a, b", "  return a != b"),
    "less": _order("less", "np_is_less(a, b)"),
    "greater": _order("greater", "np_is_less(b, a)"),
    "less_equal": _order("less_equal", "np_is_less(a, b) or a == b"),
    "greater_equal": _order("greater_equal", "np_is_less(b, a) or a == b"),
    "logical_and": _text("logical_and", "a, b", "  return np_truth(a) and np_truth(b)", TRUTH),
    "logical_or": _text("logical_or", "a, b", "  return np_truth(a) or np_truth(b)", TRUTH),
    "logical_xor": _text("logical_xor", "a, b", "  return np_truth(a) != np_truth(b)", TRUTH),
    "logical_not": _text("logical_not", "a", "  return not np_truth(a)", TRUTH),
    "maximum": _choice("maximum", "np_is_less(x, y)", True),
    "minimum": _choice("minimum", "np_is_less(y, x)", True),
    "fmax": _choice("fmax", "np_is_less(x, y)", False),
    "fmin": _choice("fmin", "np_is_less(y, x)", False),
    # counts the bits of the absolute value, in 64 bits, because a narrower type cannot hold that of its smallest
    # number
    "bitwise_count": _text(
        "bitwise_count",
        "a",
        "  if dtype(a) == bool { return u8(a) }\n  if not is_signed(dtype(a)) { return u8(popc(a)) }\n  return u8(popc(u64(abs(i64(a)))))",
    ),
}
# Further names of the same ufuncs. NumPy's first name is the ufunc's: `np.abs.__name__` is
# "absolute".
_OTHER_NAMES = {"radians": "deg2rad", "degrees": "rad2deg"}
_UFUNCS |= {name: _UFUNCS[same] for name, same in _OTHER_NAMES.items()}
BY_NAME = _UFUNCS


def named(name):
    """Returns the func for the ufunc with this name."""
    return _UFUNCS[name]


def is_ufunc(thing):
    """Returns whether an object is a NumPy ufunc. NumPy need not be imported."""
    return type(thing).__name__ == "ufunc" and type(thing).__module__ == "numpy"


# NumPy 1 returns the sign of the real part. If the real part is 0, it returns the sign of the imaginary part.
_SIGN_OF_NUMPY_1 = _text(
    "sign_of_numpy_1",
    "a",
    "  if is_complex(dtype(a)) {\n    if np_isnan(a) { return dtype(a)(nan, 0) }\n"
    "    let x = a.real == 0 ? a.imag : a.real\n    return dtype(a)(dtype(x)(i32(x > 0) - i32(x < 0)), 0)\n  }\n  return np_sign(a)",
    _UFUNCS["sign"],
    _IS_NAN,
)


def of_installed(name):
    """Returns the func for a ufunc with the values of the NumPy version that the program has imported."""
    is_old = name == "sign" and sys.modules["numpy"].__version__.startswith("1.")
    return _SIGN_OF_NUMPY_1 if is_old else _UFUNCS.get(name)


def text_of(thing):
    """Returns the func of the kernel IR for a NumPy ufunc, or None if kjit lacks it."""
    return of_installed(thing.__name__) if is_ufunc(thing) else None
