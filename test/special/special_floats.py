"""Expressions of float operands a, b, c: the result type of each, its accuracy, and reference values that the test
computes independently."""
import collections
import math
from fractions import Fraction

from special_values import FLOATS, decode, encode, infinity, nan_of, sign_bit, size_of

# result: T (the operands' type), a float type, or i (an integer or bool, compared as an i64)
# exact: the same bits however it is computed; else constants may differ from run-time values by the ULP of the accuracy table where the target has more than one
# version of a function
Expression = collections.namedtuple("Expression", "text result exact types reference")
OPEN = object()  # of a reference: the language leaves this value open

EVERY, WIDE = tuple(FLOATS), ("f32", "f64")


def finite(*values):
    return all(map(math.isfinite, values))


def rounded(function):
    """The reference of an operation that is exact on fractions, with IEEE 754's results if an operand is infinite or
    NaN."""
    def reference(t, *values):
        exact = finite(*values) and function(*map(Fraction, values))
        if exact is False or exact is None or exact == 0:
            return encode(t, float(function(*values)))
        return encode(t, exact)
    return reference


def divide(x, y):
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, math.copysign(1, x) * math.copysign(1, y))
    return x / y


def quotient(t, x, y):
    return encode(t, Fraction(x) / Fraction(y)) if finite(x, y) and x and y else encode(t, divide(x, y))


def fused(t, x, y, z):
    if not finite(x, y, z):
        return encode(t, x * y + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact:
        return encode(t, exact)
    return encode(t, x * y + z if x * y == 0 or Fraction(x * y) == Fraction(x) * Fraction(y) else 0.0)


def remainder_to_zero(x, y):
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    return math.fmod(x, y)


def modulo(t, x, y):
    rest = remainder_to_zero(x, y)
    if math.isnan(rest):
        return nan_of(t)
    if rest == 0:
        return encode(t, math.copysign(0, y))
    if (rest < 0) == (y < 0):
        return encode(t, rest)
    return encode(t, y) if math.isinf(y) else encode(t, Fraction(rest) + Fraction(y)) or encode(t, math.copysign(0, y))


def floor_quotient(t, x, y):
    if finite(x, y) and x and y:
        return encode(t, Fraction(math.floor(Fraction(x) / Fraction(y)))) if math.floor(Fraction(x) / Fraction(y)) else 0
    if y == 0 and x and not math.isnan(x):
        return encode(t, math.copysign(math.inf, x) * math.copysign(1, y))
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return OPEN if math.isinf(x) else nan_of(t)
    return encode(t, -1.0 if x and (x < 0) != (y < 0) else math.copysign(0, math.copysign(1, x) * math.copysign(1, y)))


def nearest_remainder(t, x, y):
    bad = math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0
    return nan_of(t) if bad else encode(t, math.copysign(0, x) if math.remainder(x, y) == 0 else math.remainder(x, y))


def least_of(pick):
    def reference(t, x, y):
        if math.isnan(x) or math.isnan(y):
            return encode(t, y if math.isnan(x) else x)
        return OPEN if x == y == 0 and math.copysign(1, x) != math.copysign(1, y) else encode(t, pick(x, y))
    return reference


def positive_difference(t, x, y):
    if math.isnan(x) or math.isnan(y):
        return nan_of(t)
    return 0 if x <= y else encode(t, x - y if not finite(x, y) else Fraction(x) - Fraction(y))


def next_number(t, x, y):
    if math.isnan(x) or math.isnan(y):
        return nan_of(t)
    if x == y:
        return encode(t, y)
    if x == 0:
        return 1 | (sign_bit(t) if y < 0 else 0)
    return encode(t, x) + (1 if (x < y) == (x > 0) else -1)


def whole(function):
    def reference(t, x):
        return encode(t, x) if not finite(x) or x == 0 else encode(t, math.copysign(float(function(x)), x))
    return reference


def half_away(x):
    return math.floor(x + Fraction(1, 2)) if x > 0 else math.ceil(x - Fraction(1, 2))


def root(t, x):
    if x < 0:
        return nan_of(t)
    if x == 0 or not finite(x):
        return encode(t, x)
    shift = 300 + FLOATS[t][0]  # far more bits than the type has, then rounded once; an inexact root has a sticky bit
    scaled = Fraction(x) * 4 ** (shift + 600)
    whole_root = math.isqrt(int(scaled)) * 2 + (math.isqrt(int(scaled)) ** 2 != scaled)
    return encode(t, Fraction(whole_root, 2 ** (shift + 601)))


def to_integer(name):
    """float to int truncates and saturates, NaN gives 0."""
    width, signed = int(name[1:]), name[0] == "i"
    least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def reference(t, x):
        if math.isnan(x):
            return 0
        value = (most if x > 0 else least) if math.isinf(x) else max(least, min(most, int(x)))
        return value - (1 << 64) if value >> 63 and value > 0 else value
    return reference


def scaled_by(t, x, n):
    n = to_integer("i32")(t, n)
    return encode(t, x) if not finite(x) or x == 0 else encode(t, Fraction(x) * Fraction(2) ** max(-2500, min(2500, n)))


def mantissa(t, x):
    return encode(t, math.frexp(x)[0])


def rounded_to_i64(function):
    return lambda t, x: to_integer("i64")(t, float(function(x)) if finite(x) else x)


def fraction_part(t, x):
    return encode(t, math.copysign(0 if math.isinf(x) else x - math.trunc(x), x) if x == x else x)


def power_of_reciprocal(n):
    """x ** -n of numbers that have a reciprocal. Representable results must be exact, so the test uses the exact
    value."""
    def reference(t, x):
        if not finite(x) or x == 0:
            return encode(t, divide(1.0, x ** n) if x == x else x)
        return encode(t, 1 / Fraction(x) ** n)
    return reference


def whole_power(t, x, n):
    """An integer exponent, however large, is odd or even."""
    n = to_integer("i32")(t, n)
    if not finite(x) or x == 0 or abs(x) == 1 or n == 0:
        return encode(t, 1.0 if n == 0 else x if x != x else math.copysign(abs(x) ** n if x or n > 0 else math.inf, x if n % 2 else 1.0))
    # whether the result is far outside of the type's range, or has few enough digits to be exact
    exponent = n * math.log2(abs(x))
    if abs(exponent) > 1e4:
        return encode(t, math.copysign(math.inf if exponent > 0 else 0.0, x if n % 2 else 1.0))
    return encode(t, Fraction(x) ** n)


def of_math(function):
    """The C library's value in f64, rounded: close to the correct value, and exactly correct if this is infinite, a
    zero or NaN. If Python raises an exception, the value is OPEN; test/accuracy tests it."""
    def reference(t, *values):
        try:
            return encode(t, function(*values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return OPEN
    return reference


def is_normal(t, x):
    return int(finite(x) and abs(x) >= 2.0 ** FLOATS[t][1])


def exact(text, reference=None, result="T", types=EVERY):
    return Expression(text, result, True, types, reference)


def near(text, reference=None, result="T", types=EVERY):
    return Expression(text, result, False, types, reference)


def library(name, count=1, function=None):
    function = function or getattr(math, name, None)
    return near(f"{name}({', '.join('abc'[:count])})", function and of_math(function))


ONE = [
    exact("-a", lambda t, x: encode(t, x) ^ sign_bit(t) if x == x else nan_of(t)), exact("abs(a)", lambda t, x: encode(t, abs(x))),
    exact("sqrt(a)", root), exact("floor(a)", whole(math.floor)), exact("ceil(a)", whole(math.ceil)), exact("trunc(a)", whole(math.trunc)),
    exact("round(a)", whole(lambda x: half_away(Fraction(x)))), exact("rint(a)", whole(round)),
    exact("a * a"), exact("a ** 2"), exact("a ** 3"), exact("a ** 0", lambda t, x: encode(t, 1.0)), exact("a ** -1", lambda t, x: quotient(t, 1.0, x)),
    near("a ** -2", power_of_reciprocal(2)), near("a ** -3", power_of_reciprocal(3)), near("a ** -7", power_of_reciprocal(7)), near("a ** -140", power_of_reciprocal(140)),
    exact("isnan(a)", lambda t, x: int(math.isnan(x)), "i"), exact("isinf(a)", lambda t, x: int(math.isinf(x)), "i"), exact("isfinite(a)", lambda t, x: int(finite(x)), "i"),
    exact("isnormal(a)", is_normal, "i"), exact("signbit(a)", lambda t, x: OPEN if x != x else int(math.copysign(1, x) < 0), "i"),
    exact("saturate(a)", lambda t, x: encode(t, min(x, 1.0) if x > 0 else 0.0)),
    exact("frexp(a)[0]", mantissa), exact("frexp(a)[1]", lambda t, x: math.frexp(x)[1] if finite(x) else 0, "i"),
    exact("modf(a)[0]", fraction_part), exact("modf(a)[1]", whole(math.trunc)),
    exact("ilogb(a)", lambda t, x: math.frexp(x)[1] - 1 if finite(x) and x else (1 << 31) - 1 if math.isinf(x) else -(1 << 31), "i"),
    exact("logb(a)", lambda t, x: encode(t, float(math.frexp(x)[1] - 1) if finite(x) and x else math.inf if math.isinf(x) else -math.inf if x == 0 else x)),
    exact("lround(a)", rounded_to_i64(lambda x: half_away(Fraction(x))), "i"), exact("lrint(a)", rounded_to_i64(round), "i"),
    exact("to_e4m3(a)", None, "i"), exact("to_e5m2(a)", None, "i"), exact("from_e4m3(u8(abs(a)))", None, "f32"), exact("from_e5m2(u8(abs(a)))", None, "f32"),
    exact("zero(dtype(a)) + a"), exact("bool(a)", lambda t, x: int(x != 0), "i"),
    *(exact(f"{name}(a)", to_integer(name), "i") for name in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")),
    *(exact(f"{name}(a)", lambda t, x, name=name: encode(name, x), name) for name in EVERY),
    *(library(name) for name in ("exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc")),
    library("cbrt"), library("exp2", 1, lambda x: 2.0 ** x), library("exp10", 1, lambda x: 10.0 ** x),
    library("tgamma", 1, math.gamma), library("lgamma"), library("rsqrt", 1, lambda x: 1 / math.sqrt(x)),
    *(library(name) for name in ("rcbrt", "sinpi", "cospi", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv", "j0", "j1", "y0", "y1")),
    near("jn(3, a)"), near("jn(-1, a)"), near("yn(2, a)"), near("sincos(a)[0]", of_math(math.sin)), near("sincos(a)[1]", of_math(math.cos)),
    near("sincospi(a)[0]"), near("sincospi(a)[1]"),
    *(library(name) for name in ("fast_sin", "fast_cos", "fast_tan", "fast_exp", "fast_exp10", "fast_log", "fast_log2", "fast_log10")),
]

TWO = [
    exact("a + b", rounded(lambda x, y: x + y)), exact("a - b", rounded(lambda x, y: x - y)), exact("a * b", rounded(lambda x, y: x * y)), exact("a / b", quotient), exact("quotient(a, b)", quotient),
    near("a // b", floor_quotient), exact("a % b", modulo), near("a ** b", of_math(math.pow)), near("a ** i32(b)", whole_power),
    *(exact(f"a {op} b", lambda t, x, y, compare=compare: int(compare(x, y)), "i") for op, compare in (
        ("<", lambda x, y: x < y), ("<=", lambda x, y: x <= y), (">", lambda x, y: x > y), (">=", lambda x, y: x >= y), ("==", lambda x, y: x == y), ("!=", lambda x, y: x != y))),
    exact("min(a, b)", least_of(min)), exact("max(a, b)", least_of(max)), exact("select(a < b, a, b)", lambda t, x, y: encode(t, x if x < y else y)),
    exact("select(a > b, a, b)", lambda t, x, y: encode(t, x if x > y else y)), exact("select(not (a >= b), a, b)", lambda t, x, y: encode(t, y if x >= y else x)),
    exact("fmod(a, b)", lambda t, x, y: encode(t, remainder_to_zero(x, y))), exact("remainder(a, b)", nearest_remainder),
    exact("remquo(a, b)[0]", nearest_remainder), exact("remquo(a, b)[1]", None, "i"), exact("fdim(a, b)", positive_difference),
    exact("copysign(a, b)", lambda t, x, y: OPEN if y != y else encode(t, math.copysign(x, y))), exact("nextafter(a, b)", next_number), exact("ldexp(a, i32(b))", scaled_by),
    library("pow", 2), library("atan2", 2), library("hypot", 2), near("fast_pow(a, b)"), near("fast_divide(a, b)"),
]

THREE = [
    exact("fma(a, b, c)", fused), exact("fma_rz(a, b, c)", None, types=WIDE), exact("fma_ru(a, b, c)", None, types=WIDE), exact("fma_rd(a, b, c)", None, types=WIDE),
    exact("min(max(a, b), c)"), exact("fmod(a, fmod(b, c))"), exact("a % (b % c)"), exact("sqrt(a * b) < c", None, "i"),
]

# libmvec's functions: a vectorized loop may give another number close to the correct one
VECTORIZED = ("cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "sincos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
              "acosh", "atanh", "erf", "erfc", "pow", "atan2", "hypot", "**", "rsqrt", "fast_")


def is_open(expression, t, values, device):
    """Cases in which docs/ir.md does not define the value, so that nothing is compared, each with its reason. The
    payload and the sign of a NaN are never defined."""
    text = expression.text
    both_zero = len(values) > 1 and values[0] == values[1] == 0
    if text in ("min(a, b)", "max(a, b)", "min(max(a, b), c)") and 0 in values:
        return both_zero or len(values) > 2  # either of 0 and -0
    if text == "signbit(a)" or "copysign" in text:
        return math.isnan(values[-1])  # the sign of a NaN is not specified
    if text == "remquo(a, b)[1]":
        return not math.isfinite(values[0]) or math.isnan(values[1]) or values[1] == 0  # no quotient
    return text.startswith("fast_") and device != "cpu"  # approximations, defined for an interval only; test/accuracy measures them there
