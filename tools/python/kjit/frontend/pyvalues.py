"""Python's built-in functions and attributes of numbers, tuples and types, as funcs in the kernel
IR."""

import ast
import cmath
import functools
import types

from .. import _names
from . import enums, static, words

CONSTANT = words.Text("constant_behind", "\nfunc constant_behind(v, c) @numba { return c }")
# Whether a value is among the items in a tuple or the elements in an array.
CONTAINS = words.Text(
    "contains",
    """
func contains(v, items) @numba {
  if is_array(items) {
    for at in range(items.shape) { if items[at] == v { return true } }
    return false
  }
  for item in items {
    if is_tuple(item) != is_tuple(v) { continue }
    if item == v { return true }
  }
  return false
}""",
)


def compare_constants(emitter, operator, left, right):
    """Returns the result of a comparison if the kinds of its operands decide it: True, False, or
    None if only the values decide it."""
    if not isinstance(operator, (ast.Eq, ast.NotEq)):
        return None
    return enums.compare(emitter, isinstance(operator, ast.Eq), left, right)


# ---- complex numbers ----


CONJUGATE = words.Text("conjugate_of", "\nfunc conjugate_of(x) @numba { if is_complex(dtype(x)) { return conj(x) }\n  return x }")
# Numba's complex(): complex64 for a float32, complex128 for any other number.
_COMPLEX = words.Text(
    "complex_of_number",
    """
func complex_of_number(x) @numba {
  if is_complex(dtype(x)) { return c128(x) }
  if dtype(x) == f32 { return c64(x, 0f32) }
  return c128(f64(x), 0f64)
}""",
)
_COMPLEX_OF_PARTS = words.Text(
    "complex_of_parts",
    """
func complex_of_parts(x, y) @numba {
  if dtype(x) == f32 and dtype(y) == f32 { return c64(x, y) }
  return c128(f64(x), f64(y))
}""",
)
# The converted argument of a cmath function.
_WIDEN = words.Text(
    "complex_argument",
    """
func complex_argument(x) @numba {
  if is_complex(dtype(x)) { return x }
  if is_float(dtype(x)) and sizeof(dtype(x)) < 8 or not is_float(dtype(x)) and sizeof(dtype(x)) < 4 { return c64(f32(x), 0f32) }
  return c128(f64(x), 0f64)
}""",
)


@functools.cache
def _of_complex(name, word):
    """Returns a cmath function, which also accepts real numbers."""
    return words.Text(f"cmath_{name}", f"\nfunc cmath_{name}(z) @numba {{ return {word}(complex_argument(z)) }}", needs=(_WIDEN,))


# cmath's exp returns 0+0j in cases where NumPy's exp keeps the sign of an infinite imaginary part. The kernel IR's
# `exp` follows NumPy.
_EXP = words.Text(
    "cmath_exp",
    """
func cmath_exp(x) @numba {
  let z = complex_argument(x)
  if z.real == -inf and not isfinite(z.imag) { return dtype(z)(0) }
  return exp(z)
}""",
    needs=(_WIDEN,),
)
# Numba computes divmod of a uint64 and a signed integer in float64, unlike `//` and `%`.
_DIVMOD = words.Text(
    "divmod_of",
    """
func divmod_of(a, b) @numba {
  if is_integer(dtype(a)) and is_integer(dtype(b)) {
    if dtype(a) == u64 and is_signed(dtype(b)) or dtype(b) == u64 and is_signed(dtype(a)) {
      return (f64(a) // f64(b), f64(a) % f64(b))
    }
  }
  return (a // b, a % b)
}""",
)


def _least(name, operator):
    """Returns min or max over a tuple's items or a one-dimensional array's elements."""
    return words.Text(
        f"{name}_of_items",
        f"""
func {name}_of_items(items) @numba {{
  if len(items) == 0 {{ raise "{name}() arg is an empty sequence" }}
  var best
  best = items[0]
  for item in items {{ best = item {operator} best ? item : best }}
  return best
}}""",
    )


_SUM = words.Text(
    "sum_of_items",
    """
func sum_of_items(items, start) @numba {
  var s
  s = start
  for item in items { s = s + item }
  return s
}""",
)
_SUM_OF = words.Text("sum_of_all_items", "\nfunc sum_of_all_items(items) @numba { return sum_of_items(items, 0) }", needs=(_SUM,))
_ANY = words.Text("any_of_items", "\nfunc any_of_items(items) @numba { for item in items { if item { return true } }\n  return false }")
_ALL = words.Text("all_of_items", "\nfunc all_of_items(items) @numba { for item in items { if not item { return false } }\n  return true }")
# hash() of numbers and tuples, as CPython computes it: numbers modulo the prime 2**61 - 1, and tuples by xxHash. A date's hash is its
# count, as in Numba.
_HASH_OF_INTEGER = words.Text(
    "hash_of_integer",
    """
func hash_of_integer(x) @numba {
  let size = x < 0 ? 0u64 - u64(x) : u64(x)
  let rest = i64(size % 2305843009213693951u64)
  return x < 0 ? (rest == 1 ? -2i64 : -rest) : rest
}""",
)
_HASH_OF_FLOAT = words.Text(
    "hash_of_float",
    """
func hash_of_float(x) @numba {
  if not isfinite(x) { return isnan(x) ? 0i64 : x > 0 ? 314159i64 : -314159i64 }
  let parts = frexp(abs(x))
  var rest = parts[0]
  var power = i64(parts[1])
  var found = 0u64
  while rest != 0 {
    found = ((found << 28u64) & 2305843009213693951u64) | found >> 33u64
    rest = rest * 268435456.0
    power = power - 28
    let whole = u64(rest)
    rest = rest - f64(whole)
    found = found + whole
    if found >= 2305843009213693951u64 { found = found - 2305843009213693951u64 }
  }
  let turn = u64(power >= 0 ? power % 61 : 60 - (-1 - power) % 61)
  found = ((found << turn) & 2305843009213693951u64) | found >> (61u64 - turn)
  return x < 0 ? (found == 1 ? -2i64 : -i64(found)) : i64(found)
}""",
)
_HASH = words.Text(
    "hash_of",
    """
func hash_of(x) @numba {
  if is_tuple(x) {
    var joined = 2870177450012600261u64
    for item in x {
      joined = joined + bitcast(u64, hash_of(item)) * 14029467366897019727u64
      joined = ((joined << 31u64) | joined >> 33u64) * 11400714785074694791u64
    }
    joined = joined + (u64(len(x)) ^ 2870177450013471926u64)
    return joined == 18446744073709551615u64 ? 1546275796i64 : bitcast(i64, joined)
  }
  if is_struct(dtype(x)) { return x.count == -1 ? -2i64 : x.count }
  if is_complex(dtype(x)) {
    let whole = hash_of_float(f64(x.real)) + hash_of_float(f64(x.imag)) * 1000003
    return whole == -1 ? -2i64 : whole
  }
  if is_float(dtype(x)) { return hash_of_float(f64(x)) }
  return hash_of_integer(dtype(x) == bool ? i64(x) : x)
}""",
    needs=(_HASH_OF_INTEGER, _HASH_OF_FLOAT),
)
# For functions whose Python numbers have types.
TYPED = {
    (id(hash), 1): _HASH,
    (id(sum), 1): _SUM_OF,
    (id(sum), 2): _SUM,
    (id(any), 1): _ANY,
    (id(all), 1): _ALL,
    (id(min), 1): _least("min", "<"),
    (id(max), 1): _least("max", ">"),
}
TABLE = {
    (id(complex), 1): _COMPLEX,
    (id(complex), 2): _COMPLEX_OF_PARTS,
    (id(divmod), 2): _DIVMOD,
    (id(cmath.phase), 1): _of_complex("phase", "arg"),
    **{
        (id(getattr(cmath, name)), 1): _of_complex(name, name)
        for name in dir(cmath)
        if name in _names.BUILTINS and callable(getattr(cmath, name)) and not name.startswith("is")
    },
    (id(cmath.exp), 1): _EXP,
}


# ---- isinstance ----

_NONE = type(None)
_TESTS = {int: "i64", float: "f64", complex: "c128", bool: "bool"}


def isinstance_of(emitter, node):
    """Writes isinstance(x, types); the compiler decides it by the type of x."""
    if len(node.args) != 2 or node.keywords:
        raise emitter.error(node, "isinstance(x, types) takes two arguments")
    value = emitter.static_value(node.args[0])
    kinds = _flat(emitter, node.args[1])
    if value is not static.UNKNOWN and not (emitter.is_typed and isinstance(value, (int, float, complex)) and type(value) in _TESTS):
        return [emitter.source.place(node), "true" if isinstance(value, tuple(k for k in kinds if isinstance(k, type))) else "false"]
    tests = [_test(emitter, node, kind) for kind in kinds]
    symbol = emitter.use(_types_func(tuple(tests)))
    return [emitter.source.place(node), f"{symbol}(", *emitter.expression(node.args[0]), ")"]


def _flat(emitter, node):
    if isinstance(node, ast.Tuple):
        return [kind for item in node.elts for kind in _flat(emitter, item)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _flat(emitter, node.left) + _flat(emitter, node.right)
    value = emitter.static_value(node)
    values = value if isinstance(value, tuple) else getattr(value, "__args__", None) if isinstance(value, types.UnionType) else (value,)
    for one in values:
        if one is static.UNKNOWN:
            raise emitter.error(node, "isinstance() needs types that are known when the kernel is compiled")
    return list(values)


def _test(emitter, node, kind):
    """Returns the text of the test whether x has a type."""
    from .. import dtypes

    if kind is None or kind is _NONE or kind in (str, bytes, list, dict, set, range, slice):
        return "false"
    if kind is tuple:
        return "is_tuple(x)"
    if getattr(kind, "__name__", "") == "ndarray":
        return "is_array(x)"
    name = _TESTS.get(kind) if isinstance(kind, type) else None
    name = name or dtypes.name_of(kind)
    if name is None:
        raise emitter.error(node.args[1], f"isinstance() in a kernel knows numbers, tuples and arrays, not {kind!r}")
    return name if emitter.is_typed or kind not in _TESTS else {int: "int", float: "float", complex: "complex", bool: "bool"}[kind]


IS_TRUE = words.Text("is_true", "\nfunc is_true(x) {\n  if dtype(x) == bool { return x }\n  return false\n}")
IS_FALSE = words.Text("is_false", "\nfunc is_false(x) {\n  if dtype(x) == bool { return not x }\n  return false\n}")

# Without Numba's rules a Python number has no specific type.
_LOOSE = {"int": "is_integer(dtype(x))", "float": "is_float(dtype(x))", "complex": "is_complex(dtype(x))"}


@functools.cache
def _types_func(tests):
    name = "isinstance_of_" + "_".join(t.partition("(")[0] for t in tests)
    is_number = "not is_array(x) and not is_tuple(x) and "
    lines = [
        f"  if {t} {{ return true }}" if "(" in t
        else "" if t == "false"
        else f"  if {is_number}{_LOOSE.get(t, f'dtype(x) == {t}')} {{ return true }}"
        for t in tests
    ]
    body = "\n".join(lines)
    return words.Text(name, f"\nfunc {name}(x) @numba {{\n{body}\n  return false\n}}")
