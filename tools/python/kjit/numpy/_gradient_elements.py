"""The element-wise functions that kjit.numpy.grad can differentiate, as functions of one element with
the names of NumPy's ufuncs."""

import kjit


def _exp(x):
    return kjit.exp(x)


def _exp2(x):
    return kjit.exp2(x)


def _expm1(x):
    return kjit.expm1(x)


def _log(x):
    return kjit.log(x)


def _log2(x):
    return kjit.log2(x)


def _log10(x):
    return kjit.log10(x)


def _log1p(x):
    return kjit.log1p(x)


def _sqrt(x):
    return kjit.sqrt(x)


def _cbrt(x):
    return kjit.cbrt(x)


def _sin(x):
    return kjit.sin(x)


def _cos(x):
    return kjit.cos(x)


def _tan(x):
    return kjit.tan(x)


def _sinh(x):
    return kjit.sinh(x)


def _cosh(x):
    return kjit.cosh(x)


def _tanh(x):
    return kjit.tanh(x)


def _arcsin(x):
    return kjit.asin(x)


def _arccos(x):
    return kjit.acos(x)


def _arctan(x):
    return kjit.atan(x)


def _arcsinh(x):
    return kjit.asinh(x)


def _arccosh(x):
    return kjit.acosh(x)


def _arctanh(x):
    return kjit.atanh(x)


def _negative(x):
    return -x


def _positive(x):
    return x


def _square(x):
    return x * x


def _reciprocal(x):
    return 1 / x


def _absolute(x):
    return abs(x)


def _fabs(x):
    return abs(x)


def _add(x, y):
    return x + y


def _subtract(x, y):
    return x - y


def _multiply(x, y):
    return x * y


def _divide(x, y):
    return x / y


def _power(x, y):
    return x**y


def _maximum(x, y):
    return max(x, y)


def _minimum(x, y):
    return min(x, y)


def _arctan2(x, y):
    return kjit.atan2(x, y)


def _hypot(x, y):
    return kjit.hypot(x, y)


def _logaddexp(x, y):
    return max(x, y) + kjit.log1p(kjit.exp(-abs(x - y)))


def _remainder(x, y):
    return x % y


def _real(z):
    return z.real


def _imag(z):
    return z.imag


def _conjugate(z):
    return z.conjugate()


# Functions of complex numbers that are no ufuncs.
PARTS = {"real": _real, "imag": _imag}


def where(c, x, y):
    return x if c else y


FUNCTIONS = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "log": _log, "log2": _log2, "log10": _log10, "log1p": _log1p, "sqrt":
    _sqrt, "cbrt": _cbrt, "sin": _sin, "cos": _cos, "tan": _tan, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh, "arcsin":
    _arcsin, "arccos": _arccos, "arctan": _arctan, "arcsinh": _arcsinh, "arccosh": _arccosh, "arctanh": _arctanh,
    "negative": _negative, "positive": _positive, "square": _square, "reciprocal": _reciprocal, "absolute": _absolute,
    "fabs": _fabs, "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "power": _power, "maximum":
    _maximum, "minimum": _minimum, "arctan2": _arctan2, "hypot": _hypot, "logaddexp": _logaddexp, "remainder": _remainder,
    "conjugate": _conjugate,
}  # fmt: skip

# Functions of kjit.numpy that have another name than the ufunc.
OTHER_NAMES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "pow": "power", "conj": "conjugate", "mod": "remainder",
}  # fmt: skip

# Functions of NumPy whose derivative is 0 or does not exist. Their results are constants.
DISCRETE_FUNCTIONS = {
    "argmax", "argmin", "argsort", "searchsorted", "shape", "ndim", "size", "zeros_like", "ones_like", "full_like", "empty_like",
    "all", "any", "count_nonzero", "nonzero", "isclose", "allclose", "array_equal", "round", "around", "digitize",
}  # fmt: skip

# Functions whose derivative is 0 wherever it exists.
DISCRETE = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not", "isnan",
    "isfinite", "isinf", "sign", "signbit", "floor", "ceil", "trunc", "rint", "floor_divide",
}  # fmt: skip
