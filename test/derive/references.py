"""references.py: the functions of lib/derive/derivatives.def in MPFR, with 400 bits, and their derivatives.

A derivative is a central difference of the function's values in MPFR. With a step of 2^-100 its error is about 2^-200, so no digit of a double depends on it. The differences use
values of functions alone: a wrong rule cannot agree with them. MPFR has no inverse of erf; Newton's method inverts its erf.
"""
import ctypes

PRECISION = 400


class _Number(ctypes.Structure):
    _fields_ = [("precision", ctypes.c_long), ("sign", ctypes.c_int), ("exponent", ctypes.c_long), ("digits", ctypes.c_void_p)]


_mpfr = ctypes.CDLL("libmpfr.so.6")
_mpfr.mpfr_get_d.restype = ctypes.c_double


def call(name, *operands):
    """Calls mpfr_NAME(result, operands, round to nearest). An int is a long, and a float a double."""
    result = Real()
    given = [ctypes.byref(x.number) if isinstance(x, Real) else ctypes.c_double(x) if isinstance(x, float) else ctypes.c_long(x) for x in operands]
    getattr(_mpfr, "mpfr_" + name)(ctypes.byref(result.number), *given, 0)
    return result


class Real:
    def __init__(self):
        self.number = _Number()
        _mpfr.mpfr_init2(ctypes.byref(self.number), ctypes.c_long(PRECISION))

    def __del__(self):
        _mpfr.mpfr_clear(ctypes.byref(self.number))

    def __float__(self):
        return _mpfr.mpfr_get_d(ctypes.byref(self.number), 0)

    def __add__(self, other):
        return call("add", self, real(other))

    def __sub__(self, other):
        return call("sub", self, real(other))

    def __mul__(self, other):
        return call("mul", self, real(other))

    def __truediv__(self, other):
        return call("div", self, real(other))

    def __neg__(self):
        return call("neg", self)

    def __lt__(self, other):
        return _mpfr.mpfr_less_p(ctypes.byref(self.number), ctypes.byref(real(other).number)) != 0


def real(x):
    return x if isinstance(x, Real) else call("set_d", float(x))


def power_of_2(exponent):
    return call("set_si_2exp", 1, exponent)


def one(name):
    return lambda x: call(name, x)


def of_integer(name):
    return lambda n, x: call(name, int(n), x)


def gamma_log(x):
    """log |gamma(x)|, for positive x."""
    return call("lngamma", x)


def inverse(function, slope, x, start):
    """Solves function(y) = x by Newton's method."""
    y = real(start)
    for _ in range(60):
        y = y - (function(y) - x) / slope(y)
    return y


def root_of_pi():
    pi = Real()
    _mpfr.mpfr_const_pi(ctypes.byref(pi.number), 0)
    return call("sqrt", pi)


def erf_slope(y):
    return call("exp", -(y * y)) * 2.0 / root_of_pi()


def erfinv(x):
    return inverse(one("erf"), erf_slope, x, 0.0)


def normcdf(x):
    return call("erfc", -x / call("sqrt", real(2.0))) / 2.0


def normcdfinv(x):
    return erfinv(x * 2.0 - 1.0) * call("sqrt", real(2.0))


def constant(x, *_):
    return real(0.0)


def ratio(x, y):
    return x / y


def product_and_sum(x, y, z):
    return x * y + z


def scale(x, n):
    return x * power_of_2(int(n))


def power(x, y):
    return call("pow", x, y)


def remainder_of_floor(x, y):
    return x - call("rint_floor", x / y) * y


REFERENCES = {
    "abs": one("abs"), "min": lambda x, y: call("min", x, y), "max": lambda x, y: call("max", x, y), "no_diff": constant,
    "sqrt": one("sqrt"), "rsqrt": one("rec_sqrt"), "cbrt": one("cbrt"), "rcbrt": lambda x: real(1.0) / call("cbrt", x), "exp": one("exp"), "exp2": one("exp2"), "exp10": one("exp10"),
    "expm1": one("expm1"), "log": one("log"), "log2": one("log2"), "log10": one("log10"), "log1p": one("log1p"), "sin": one("sin"), "cos": one("cos"), "tan": one("tan"),
    "asin": one("asin"), "acos": one("acos"), "atan": one("atan"), "sinh": one("sinh"), "cosh": one("cosh"), "tanh": one("tanh"), "asinh": one("asinh"), "acosh": one("acosh"),
    "atanh": one("atanh"), "erf": one("erf"), "erfc": one("erfc"), "erfinv": erfinv, "erfcinv": lambda x: erfinv(real(1.0) - x),
    "erfcx": lambda x: call("exp", x * x) * call("erfc", x), "normcdf": normcdf, "normcdfinv": normcdfinv, "sinpi": one("sinpi"), "cospi": one("cospi"),
    "j0": one("j0"), "j1": one("j1"), "y0": one("y0"), "y1": one("y1"), "jn": of_integer("jn"), "yn": of_integer("yn"), "tgamma": one("gamma"), "lgamma": gamma_log,
    "pow": power, "atan2": lambda y, x: call("atan2", y, x), "hypot": lambda x, y: call("hypot", x, y), "fmod": lambda x, y: call("fmod", x, y),
    "remainder": lambda x, y: call("remainder", x, y), "remquo0": lambda x, y: call("remainder", x, y), "copysign": lambda x, y: call("copysign", x, y),
    "nextafter": lambda x, y: x,  # of a real number, which has no next one
    "fdim": lambda x, y: call("dim", x, y), "quotient": ratio, "fma": product_and_sum, "fma_rz": product_and_sum, "fma_ru": product_and_sum, "fma_rd": product_and_sum,
    "ldexp": scale, "frexp0": lambda x: x,  # in the test's domain the exponent is 0
    "modf0": one("frac"), "modf1": one("rint_trunc"), "sincos0": one("sin"), "sincos1": one("cos"), "sincospi0": one("sinpi"), "sincospi1": one("cospi"),
    "saturate": lambda x: call("min", call("max", x, real(0.0)), real(1.0)), "floor": one("rint_floor"), "ceil": one("rint_ceil"), "trunc": one("rint_trunc"), "round": one("rint_round"),
    "rint": one("rint_roundeven"), "logb": lambda x: call("rint_floor", call("log2", x)),
    "fast_sin": one("sin"), "fast_cos": one("cos"), "fast_tan": one("tan"), "fast_exp": one("exp"), "fast_exp10": one("exp10"), "fast_log": one("log"), "fast_log2": one("log2"),
    "fast_log10": one("log10"), "fast_pow": power, "fast_divide": ratio,
    "op_add": lambda x, y: x + y, "op_sub": lambda x, y: x - y, "op_mul": lambda x, y: x * y, "op_div": ratio, "op_mod": remainder_of_floor, "op_pow": power, "op_neg": lambda x: -x,
    "op_cube": lambda x: x * x * x, "op_whole": lambda x, n: call("pow_si", x, int(n)),
}  # fmt: skip


# Operands that are integers, by function.
INTEGERS = {"jn": (0,), "yn": (0,), "ldexp": (1,), "op_whole": (1,)}


def derivative(name, operands, by):
    """Returns the derivative of a function by one operand, as a float."""
    step, ends = power_of_2(-100), []
    for sign in (1.0, -1.0):
        moved = [value if i in INTEGERS.get(name, ()) else real(value) for i, value in enumerate(operands)]
        moved[by] = moved[by] + step * sign
        ends.append(REFERENCES[name](*moved))
    return float((ends[0] - ends[1]) / (step * 2.0))
