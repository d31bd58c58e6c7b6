"""Functions of Python's modules math and cmath that are not built-ins of the kernel IR."""

import cmath
import math
import types

from . import ufuncs
from .words import Text


def _isclose(a, b, rel_tol=1e-09, abs_tol=0.0):
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    distance = abs(b - a)
    return distance <= abs(rel_tol * b) or distance <= abs(rel_tol * a) or distance <= abs_tol


def _complex_isclose(a, b, rel_tol=1e-09, abs_tol=0.0):
    if a == b:
        return True
    if math.isinf(a.real) or math.isinf(a.imag) or math.isinf(b.real) or math.isinf(b.imag):
        return False
    distance = abs(b - a)
    return distance <= rel_tol * abs(b) or distance <= rel_tol * abs(a) or distance <= abs_tol


_isclose.is_truth = _complex_isclose.is_truth = True  # type: ignore[attr-defined]

_ULP = Text(
    "math_ulp",
    """
func math_ulp(x) {
  let y = abs(f64(x))
  if isnan(y) or isinf(y) { return y }
  let next = nextafter(y, inf)
  return isinf(next) ? y - nextafter(y, 0f64) : next - y
}""",
)
_LOG_BASE = Text("math_log_base", "\nfunc math_log_base(x, base) { return log(x) / log(base) }")
# The rounded float root can be off by one.
_ISQRT = Text(
    "math_isqrt",
    """
func math_isqrt(n) {
  if is_signed(dtype(n)) {
    if n < 0 { raise "isqrt() argument must be nonnegative" }
  }
  let v = u64(n)
  var root = u64(sqrt(f64(v)))
  while root > 0u64 and root > v // max(root, 1u64) { root -= 1u64 }
  while root + 1u64 <= v // (root + 1u64) { root += 1u64 }
  return i64(root)
}""",
)
_HYPOT = Text("math_hypot", "\nfunc math_hypot(a, b) { return hypot(a, b) }")


def _of_integers(name):
    """Returns math.gcd or math.lcm: NumPy's ufunc, except that a u64 and a signed integer are
    computed as i64, as in Numba."""
    return Text(
        f"math_{name}",
        f"""
func math_{name}(a, b) {{
  if dtype(a) == u64 and is_signed(dtype(b)) or dtype(b) == u64 and is_signed(dtype(a)) {{ return np_{name}(i64(a), i64(b)) }}
  return np_{name}(a, b)
}}""",
        (ufuncs.BY_NAME[name],),
    )


_OF_TWO = {
    (math.gcd, 2): _of_integers("gcd"),
    (math.lcm, 2): _of_integers("lcm"),
    (math.log, 2): _LOG_BASE,
    (math.ldexp, 2): ufuncs.named("ldexp"),  # accepts exponents of any size
}
_OF_ONE = {
    (math.fabs, 1): ufuncs.named("fabs"),
    (math.radians, 1): ufuncs.named("deg2rad"),
    (math.degrees, 1): ufuncs.named("rad2deg"),
    (math.hypot, 1): ufuncs.named("fabs"),
    (math.ulp, 1): _ULP,
    (math.isqrt, 1): _ISQRT,
    (math.gcd, 1): ufuncs.named("absolute"),
    (math.lcm, 1): ufuncs.named("absolute"),
}
_FUNCTIONS = _OF_TWO | _OF_ONE
# Functions with any number of arguments, by the func for two arguments.
_FOLDED = {math.gcd: _of_integers("gcd"), math.lcm: _of_integers("lcm"), math.hypot: _HYPOT}
_PYTHON = {math.isclose: _isclose, cmath.isclose: _complex_isclose}
# Functions that kernels lack, with a replacement.
_REFUSED = {
    "comb": "its result soon exceeds 64 bits: write the loop, or use math.lgamma",
    "perm": "its result soon exceeds 64 bits: write the loop, or use math.lgamma",
    "factorial": "its result soon exceeds 64 bits: write the loop, or use math.gamma",
    "fsum": "write a loop, which rounds each sum",
    "prod": "write a loop",
    "sumprod": "write a loop",
    "dist": "write a loop over the coordinates, or math.hypot of the differences",
}


def of_call(thing, count):
    """Returns the func for a call of a math or cmath function with `count` arguments, or None."""
    if not isinstance(thing, types.BuiltinFunctionType):
        return None
    return _FUNCTIONS.get((thing, count)) or _PYTHON.get(thing)


def folded(thing, count):
    """Returns the func of two values that computes a function with any number of arguments, or
    None."""
    return _FOLDED.get(thing) if count > 2 and isinstance(thing, types.BuiltinFunctionType) else None


def refusal(thing):
    """Returns the reason why kernels lack a math or cmath function, or None for other objects."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__name__", None)
    if module not in ("math", "cmath") or not callable(thing):
        return None
    return f"{module}.{name}(): {_REFUSED.get(name, 'kernels do not have this function with these arguments')}"
