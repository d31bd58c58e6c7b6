"""Functions of Python's own modules under Numba's types, as funcs that kernels call and as
built-ins of the kernel IR."""

import cmath
import math
import operator

from . import array_texts, element_types, ufuncs, words

_BUILTINS = words.BUILTINS
_rint = words.BUILTINS["rint"]


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


def _pos(a):
    return +a


def _contains(items, x):
    return x in items


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


def _log_base(x, base):
    return math.log(x) / math.log(base)


def _complex_log_base(x, base):
    return _complex_quotient(cmath.log(x), cmath.log(base))


def _polar(z):
    return abs(z), cmath.phase(z)


def _rect(r, phi):
    # Infinities and NaNs give CPython's results.
    if r == 0 and not math.isfinite(phi):
        return complex(0.0, 0.0)
    if phi == 0 and not math.isfinite(r):
        return complex(r, abs(phi) if math.isnan(r) else -phi if r < 0 else phi)
    if math.isinf(r) and not math.isfinite(phi):
        return complex(abs(r), phi - phi)
    return complex(r * math.cos(phi), r * math.sin(phi))


def _complex_isfinite(z):
    return math.isfinite(z.real) & math.isfinite(z.imag)


def _complex_isnan(z):
    return math.isnan(z.real) | math.isnan(z.imag)


def _complex_isinf(z):
    return math.isinf(z.real) | math.isinf(z.imag)


_as_float_of = words.Text(
    "as_float_of",
    "\nfunc as_float_of(x, like) @numba {\n  if is_float(dtype(like)) { return dtype(like)(x) }\n  return x\n}",
)


def _round_digits(x, n):
    # Scales, rounds to even and scales back, because kernels lack CPython's decimal strings. A
    # float32 is scaled as a float64, as in numba.cuda, and the result is a float32. (Numba's njit
    # scales it as a float32.)
    if not math.isfinite(x):
        return x
    if n >= 0:
        scale = 10.0**n
        y = x * scale
        if not math.isfinite(y):
            return x
        return _as_float_of(_rint(y) / scale, x)
    scale = 10.0 ** (-n)
    return _as_float_of(_rint(x / scale) * scale, x)


# CPython's complex quotient before version 3.14: Smith's algorithm, without the rules for
# infinities in Annex G of the C standard.
_complex_quotient = words.Text(
    "complex_quotient",
    """
func complex_quotient(a, b) @numba {
  if not is_complex(dtype(a)) or not is_complex(dtype(b)) { return a / b }
  if abs(b.real) >= abs(b.imag) {
    let ratio = b.imag / b.real
    let denominator = b.real + b.imag * ratio
    return dtype(a)((a.real + a.imag * ratio) / denominator, (a.imag - a.real * ratio) / denominator)
  }
  if abs(b.imag) >= abs(b.real) {
    let ratio = b.real / b.imag
    let denominator = b.real * ratio + b.imag
    return dtype(a)((a.real * ratio + a.imag) / denominator, (a.imag * ratio - a.real) / denominator)
  }
  return dtype(a)(nan, nan)
}""",
)


def _integer_of(name):
    """Returns math.floor and similar functions, which give integers. Numba converts an integer to
    float64 first, which loses digits above 2**53."""
    return words.Text(
        f"math_{name}",
        f"""
func math_{name}(x) @numba {{
  if is_integer(dtype(x)) and not is_signed(dtype(x)) {{ return u64(f64(x)) }}
  if is_integer(dtype(x)) or dtype(x) == bool {{ return i64(f64(x)) }}
  return i64({name}(x))
}}""",
    )


def _extremum(name, operator):
    """Returns Python's min or max: the second operand if it compares less (or greater) than the
    first. This never holds for NaN."""
    return words.Text(
        f"python_{name}", f"\nfunc python_{name}(a, b) @numba {{ return b {operator} a ? b : a }}"
    )


# Python's int and float. As in Numba an integer or a float keeps its type.
CONVERSIONS = {
    int: words.Text("python_int", "\nfunc python_int(x) @numba {\n  if is_integer(dtype(x)) { return x }\n  return i64(x)\n}"),
    float: words.Text("python_float", "\nfunc python_float(x) @numba {\n  if is_float(dtype(x)) { return x }\n  return f64(x)\n}"),
}
EXTREMA = {min: _extremum("min", "<"), max: _extremum("max", ">")}
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
    "pos": _pos,
    "contains": _contains,
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
_TABLE: dict[tuple[int, int | None], object] = {(id(getattr(operator, name)), None): function for name, function in _OPERATORS.items()}
_TABLE |= {(id(getattr(math, name)), 1): _integer_of(name) for name in ("floor", "ceil", "trunc")}
_TABLE |= {(id(python), 2): text for python, text in EXTREMA.items()}
_TABLE |= {
    (id(math.log), 2): _log_base,
    (id(bool), 1): ufuncs.TRUTH,
    (id(cmath.polar), None): _polar,
    (id(cmath.rect), None): _rect,
    (id(cmath.isfinite), None): _complex_isfinite,
    (id(cmath.isnan), None): _complex_isnan,
    (id(cmath.isinf), None): _complex_isinf,
    (id(cmath.log), 2): _complex_log_base,
    (id(round), 2): _round_digits,
    (id(pow), 2): _pow,
    (id(tuple), 1): words.Form("tuple", "items", "{items}"),
}


STORE_ARRAY = words.Text(
    "store_array", "\nfunc store_array(r, a) @numba { for at in range(r.shape) { r[at] = dtype(r)(a[at]) } }"
)
# Stores characters, padded with zeros.
STORE_TEXT = words.Text(
    "store_text",
    """
func store_text(r, t) @numba {
  for at in range(len(r)) { if at < len(t) { r[at] = dtype(r)(t[at]) } else { r[at] = dtype(r)(0) } }
}""",
)
ADDRESS = words.Text(
    "array_address",
    """
func array_address(a) -> u64 @numba {
  for at in range(a.shape) { return bitcast(u64, pointer(a[at])) }
  return 0u64
}""",
)
# The address of an array's first element, for functions in other languages. A pointer is returned
# unchanged.
FIRST_ELEMENT = words.Text(
    "first_element",
    """
func first_element(a) @numba {
  if is_pointer(dtype(a)) { return a } else { return array_first(a) }
}""",
    (array_texts.FIRST,),
)
COMPLEX_OF = words.Text("complex_of", "\nfunc complex_of(parts) @numba { return c128(parts[0], parts[1]) }")

# The operator ** with an integer exponent that may be negative. As in Numba, a negative power of 0 is a division by zero. If
# divisions are not checked, a negative power of the integer 0 is the lowest integer.
POWER = words.Text(
    "power_of",
    """
func power_of(a, b) @numba {
  if is_array(a) or is_array(b) { return a ** b }
  if is_integer(dtype(a)) and is_integer(dtype(b)) and is_signed(dtype(b)) {
    if b < 0 and a == 0 {
      let quotient = 1i64 // i64(a)
      return dtype(a ** b)(1u64 << u64(sizeof(dtype(a ** b)) * 8 - 1))
    }
  }
  if is_float(dtype(a)) and is_integer(dtype(b)) and is_signed(dtype(b)) {
    if b < 0 and a == 0 { return dtype(a ** b)(1) / dtype(a ** b)(a) ** -b }
  }
  return a ** b
}""",
)


# The largest magnitude of a constant exponent for which Numba writes out the products of a power.
_LONG_POWER = 0x10000


def power_below_zero(exponent):
    """Returns the function for the operator ** with a constant exponent below 0. The power of a float is the reciprocal of the positive
    power, as in Numba, so that a power of 0.0 is a division by zero. If the exponent is large, the result is that of the C function."""
    reciprocal = f"let base = dtype(a ** {-exponent})(a)\n    return dtype(base)(1) / base ** {-exponent}"
    of_float = reciprocal if -exponent <= _LONG_POWER else f"return a ** {exponent}"
    return words.Text(
        f"power_minus_{-exponent}",
        f"""
func power_minus_{-exponent}(a) @numba {{
  if is_array(a) {{ return a ** {exponent} }} else if is_float(dtype(a)) {{
    {of_float}
  }} else if is_integer(dtype(a)) {{ return power_of(a, {exponent}i64) }}
  return a ** {exponent}
}}""",
        (POWER,),
    )


# An extent of -1 is computed from the other extents.
EXTENT = words.Text(
    "reshape_extent",
    "\nfunc reshape_extent(size, n, others) @numba { return n < 0 ? i64(size) // max(i64(others), 1i64) : i64(n) }",
)

# Reductions of an array by one thread, with NumPy's types: sums of integers and bools have 64 bits.
# The work is done by a func that reduces load(at) over the positions `at` of a shape, so
# expressions of arrays need no temporary array.
_ELEMENT = "dtype(load(len(shape) == 1 ? shape[0] : shape))"


def _reduction(name, body):
    of_elements = words.Text(
        f"elements_{name}",
        f"\nfunc elements_{name}(load: func, shape) @numba {{\n{body.replace('ELEMENT', _ELEMENT)}\n}}",
        (array_texts.SIZE, ufuncs.TRUTH),
    )
    of_array = words.Text(
        f"array_{name}",
        f"""
func array_{name}(a) {{
  if is_array(a) {{ return elements_{name}(bind_back(array_load, a), a.shape) }}
  return elements_{name}(bind_back(array_load, a), ())
}}""",
        (of_elements, array_texts.LOAD),
    )
    return of_array, of_elements


_WIDE = """  if ELEMENT == bool {{ var t = {start}i64; for at in range(shape) {{ t {op} i64(load(at)) }}; return t }}
  if is_integer(ELEMENT) and is_signed(ELEMENT) {{ var s = {start}i64; for at in range(shape) {{ s {op} i64(load(at)) }}; return s }}
  if is_integer(ELEMENT) {{ var u = {start}u64; for at in range(shape) {{ u {op} u64(load(at)) }}; return u }}
  var f = ELEMENT({start})
  for at in range(shape) {{ let v = load(at); {skip}f {op} v }}
  return f"""
_SKIP = "if isnan(v) { continue }; "
_LEAST = """  var best = ELEMENT(0)
  var is_first = true
  for at in range(shape) {{
    let v = load(at)
    {nan}if is_first or v {op} best {{ best = v }}
    is_first = false
  }}
  return {result}"""
_NAN_STOPS = "if is_float(dtype(v)) { if isnan(v) { return v } }; "
_NAN_SKIPS = "if is_float(dtype(v)) { if isnan(v) { continue } }; "
_NONE_LEFT = "is_float(dtype(best)) and is_first ? dtype(best)(nan) : best"
_MEAN = """  var s = 0f64
  var n = 0i64
  for at in range(shape) {{ let v = f64(load(at)); {skip}s += v; n += 1 }}
  {none}return s / f64(n)"""
_VARIANCE = """  var s = 0f64
  let n = f64(array_size(shape))
  for at in range(shape) {{ s += f64(load(at)) }}
  let mean = s / n
  var t = 0f64
  for at in range(shape) {{ let d = f64(load(at)) - mean; t += d * d }}
  return {result}(t / n)"""
_NAN_VARIANCE = """  var s = 0f64
  var n = 0i64
  for at in range(shape) {{ let v = f64(load(at)); if isnan(v) {{ continue }}; s += v; n += 1 }}
  if n == 0 {{ return f64(nan) }}
  let mean = s / f64(n)
  var t = 0f64
  for at in range(shape) {{ let v = f64(load(at)); if isnan(v) {{ continue }}; t += (v - mean) * (v - mean) }}
  return {result}(t / f64(n))"""
_RANGE = """  var least = ELEMENT(0)
  var most = ELEMENT(0)
  var is_first = true
  for at in range(shape) {
    let v = load(at)
    if is_float(dtype(v)) { if isnan(v) { return v } }
    if is_first or v < least { least = v }
    if is_first or v > most { most = v }
    is_first = false
  }
  return most - least"""
_BOTH = {
    "sum": _reduction("sum", _WIDE.format(op="+=", start=0, skip="")),
    "prod": _reduction("prod", _WIDE.format(op="*=", start=1, skip="")),
    "nansum": _reduction("nansum", _WIDE.format(op="+=", start=0, skip=_SKIP)),
    "nanprod": _reduction("nanprod", _WIDE.format(op="*=", start=1, skip=_SKIP)),
    "min": _reduction("min", _LEAST.format(op="<", nan=_NAN_STOPS, result="best")),
    "max": _reduction("max", _LEAST.format(op=">", nan=_NAN_STOPS, result="best")),
    "nanmin": _reduction("nanmin", _LEAST.format(op="<", nan=_NAN_SKIPS, result=_NONE_LEFT)),
    "nanmax": _reduction("nanmax", _LEAST.format(op=">", nan=_NAN_SKIPS, result=_NONE_LEFT)),
    "mean": _reduction("mean", _MEAN.format(skip="", none="")),
    "nanmean": _reduction("nanmean", _MEAN.format(skip=_SKIP, none="if n == 0 { return f64(nan) }; ")),
    "var": _reduction("var", _VARIANCE.format(result="")),
    "std": _reduction("std", _VARIANCE.format(result="sqrt")),
    "nanvar": _reduction("nanvar", _NAN_VARIANCE.format(result="")),
    "nanstd": _reduction("nanstd", _NAN_VARIANCE.format(result="sqrt")),
    "ptp": _reduction("ptp", _RANGE),
    "all": _reduction("all", "  for at in range(shape) { if not np_truth(load(at)) { return false } }\n  return true"),
    "any": _reduction("any", "  for at in range(shape) { if np_truth(load(at)) { return true } }\n  return false"),
    "count_nonzero": _reduction(
        "count_nonzero", "  var n = 0i64\n  for at in range(shape) { if np_truth(load(at)) { n += 1 } }\n  return n"
    ),
}
# np.dot and `@` for two arrays with one dimension.
DOT = words.Text(
    "array_dot",
    """
func array_dot(a, b) @numba {
  assert len(a) == len(b), "the arrays of a product differ in length"
  var s = zero(dtype(a[0] * b[0]))
  for at in range(len(a)) { s += a[at] * b[at] }
  return s
}""",
)
_PRODUCTS = {"dot": DOT, "inner": DOT}
_BOTH["amin"], _BOTH["amax"] = _BOTH["min"], _BOTH["max"]
_REDUCTIONS = {name: of_array for name, (of_array, _) in _BOTH.items()}
METHODS = {name: _REDUCTIONS[name] for name in ("sum", "prod", "min", "max", "mean", "var", "std", "all", "any")}


def reduction_of(thing, count):
    """Returns the func that reduces the elements of an expression like a NumPy function, or None."""
    name = getattr(thing, "__name__", None)
    is_one = count == 1 and getattr(thing, "__module__", None) == "numpy" and name in _BOTH
    return _BOTH[name][1] if is_one else None


def reduction_called(name):
    """Returns the func that reduces the elements of an expression like an array method, or None."""
    return _BOTH[name][1] if name in METHODS else None


def is_fill(thing, count):
    """Returns whether a call with `count` arguments is of a NumPy ufunc whose last argument is the array
    for its results."""
    return ufuncs.is_ufunc(thing) and count == thing.nin + 1 and thing.nout == 1


def instead(thing, count):
    """Returns the func or built-in that replaces a Python function in a call with `count`
    arguments, or the function itself."""
    if ufuncs.is_ufunc(thing) and count == thing.nin:
        return element_types.text_of(thing) or thing  # Numba converts the operands to a loop's types
    if count == 1 and getattr(thing, "__module__", None) == "numpy" and getattr(thing, "__name__", None) in _REDUCTIONS:
        return _REDUCTIONS[thing.__name__]
    if count == 2 and getattr(thing, "__module__", None) == "numpy" and getattr(thing, "__name__", None) in _PRODUCTS:
        return _PRODUCTS[thing.__name__]
    return _TABLE.get((id(thing), count)) or _TABLE.get((id(thing), None)) or thing
