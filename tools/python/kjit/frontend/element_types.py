"""Numba's types in expressions of arrays.

Numba computes an element of `a * b + c` like an expression of numbers, so a product of two int32
has 64 bits. NumPy's ufuncs determine only the result type, to which the element is converted. A
division by zero gives NumPy's result. A function that is not a ufunc, such as np.where, receives
arrays whose elements were converted before.
"""

import ast
import functools
import sys

from . import ufuncs, words

# The NumPy ufunc for each operator.
OPERATORS = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Invert: "invert",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
# Converts a number to another number's type.
CAST = words.Text("cast_like", "\nfunc cast_like(a, b) @numba { return dtype(a)(b) }")
# The common type of two values.
COMMON = words.Text(
    "array_common",
    """
func array_common(a, b) @numba {
  if dtype(a) == dtype(b) { return zero(dtype(a)) }
  var common
  common = a
  common = b
  return common
}""",
)


def _division(operator, ufunc):
    """Returns a function for a division of array elements. Its result has the type that the
    operator has for numbers, but a division by zero raises no error."""
    kind = f"dtype(a {operator} b)"
    return words.Text(
        f"element_{ufunc}",
        f"\nfunc element_{ufunc}(a, b) @numba {{\n"
        f"  if is_struct(dtype(a)) or is_struct(dtype(b)) {{ return a {operator} b }}\n"
        f"  return np_{ufunc}({kind}(a), {kind}(b))\n}}",
        (ufuncs.BY_NAME[ufunc],),
    )


# The operators whose results for elements differ from those for numbers.
DIVISIONS = {
    ast.Div: _division("/", "divide"),
    ast.FloorDiv: _division("//", "floor_divide"),
    ast.Mod: _division("%", "remainder"),
}


# The type of the loop that Numba chooses for two operands. An integer does not widen a float or
# complex operand.
_LOOP = words.Text(
    "array_loop",
    """
func array_loop(a, b) @numba {
  if (is_float(dtype(a)) or is_complex(dtype(a))) and (is_integer(dtype(b)) or dtype(b) == bool) { return zero(dtype(a)) }
  if (is_float(dtype(b)) or is_complex(dtype(b))) and (is_integer(dtype(a)) or dtype(a) == bool) { return zero(dtype(b)) }
  return array_common(a, b)
}""",
    (COMMON,),
)
# The float type to which functions of floats convert integers and bools: 32 bits for integers of 8
# and 16 bits.
_FLOAT = words.Text(
    "array_float",
    """
func array_float(a) {
  if dtype(a) == i8 or dtype(a) == i16 or dtype(a) == u8 or dtype(a) == u16 or dtype(a) == bool { return f32(a) }
  if is_integer(dtype(a)) { return f64(a) }
  return a
}""",
)
_FLOAT_LOOP = words.Text(
    "array_float_loop",
    """
func array_float_loop(a, b) {
  let both = array_loop(a, b)
  if is_integer(dtype(both)) or dtype(both) == bool { return array_loop(array_float(a), array_float(b)) }
  return both
}""",
    (_LOOP, _FLOAT),
)
# Dates, time differences and numbers have no common type, so the ufunc itself handles them.
_DATES = "  if is_struct(dtype(a)) or is_struct(dtype(b)) {{ return {}(a, b) }}\n"
# Ufuncs that convert their operands themselves.
_OF_OWN_TYPES = ("float_power",)
_ROUNDINGS = ("ceil", "floor", "trunc")
# Ufuncs with two results. Compiled code has them for numbers only.
_PAIRS = ("divmod", "modf", "frexp")


def _rejected(*operands):
    """Returns statements that do not compile for arrays, because they use the operands as numbers. In
    an njit function NumPy then computes the call."""
    return "".join(f"  if is_array({operand}) {{ return {operand} + 0, {operand} }}\n" for operand in operands)


def _has_float_loops_only(name):
    """Returns whether a rounding function converts integers to floats. NumPy has loops of integers
    for all but rint since version 2.1, and Numba takes the loops of the NumPy that is installed."""
    if name not in _ROUNDINGS:  # operators do not need NumPy, which the program may not have imported
        return name == "rint"
    return tuple(map(int, sys.modules["numpy"].__version__.split(".")[:2])) < (2, 1)


def text_of(thing):
    """Returns the func for a NumPy ufunc under Numba's types, or None if kjit lacks the ufunc."""
    return ufunc(thing.__name__, thing.nin) if ufuncs.text_of(thing) is not None else None


@functools.cache
def ufunc(name, count):
    """Returns the func for a ufunc with `count` operands. The operands are converted to the types
    of Numba's loop: two operands to their common type, and integers to floats if the ufunc has
    loops for floats only."""
    plain = ufuncs.of_installed(name)
    if name in _OF_OWN_TYPES:
        return plain
    has_floats = _has_float_loops_only(name) or ufuncs.FLOAT in plain.needs
    if name == "ldexp":
        return words.Text("array_ldexp", "\nfunc array_ldexp(a, b) { return np_ldexp(array_float(a), b) }", (plain, _FLOAT))
    if count == 2:
        loop = _FLOAT_LOOP if has_floats else _LOOP
        operands = "".join(f", dtype({loop.__name__}(a, b))({operand})" for operand in "ab")
        body = f"{_rejected('a', 'b') if name in _PAIRS else ''}{_DATES.format(plain.__name__)}  return {plain.__name__}({operands[2:]})"
        return words.Text(f"array_{name}", f"\nfunc array_{name}(a, b) {{\n{body}\n}}", (plain, loop))
    if not has_floats:
        return plain
    body = f"{_rejected('a') if name in _PAIRS else ''}  return {plain.__name__}(array_float(a))"
    return words.Text(f"array_{name}", f"\nfunc array_{name}(a) {{\n{body}\n}}", (plain, _FLOAT))
