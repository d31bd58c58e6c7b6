"""The operators on values that may be missing, as funcs in the kernel IR.

In a compiled row function each value is a pair (value, whether the value is not missing). The
missing value NA is the pair (false, false), because every number type can hold a bool. A func
computes the result only if no operand is missing, so the undefined values of missing elements
cannot cause errors.
"""

import ast

from ..frontend.words import Text


def _two(name, value, condition="a[1] and b[1]"):
    """Returns a func of two operands whose result is missing unless the condition holds."""
    text = f"if {condition} {{ return ({value}, true) }}\n  return (zero(dtype({value})), false)"
    return Text(f"na_{name}", f"\nfunc na_{name}(a, b) @numba @inline {{\n  {text}\n}}")


def _one(name, value):
    text = f"if a[1] {{ return ({value}, true) }}\n  return (zero(dtype({value})), false)"
    return Text(f"na_{name}", f"\nfunc na_{name}(a) @numba @inline {{\n  {text}\n}}")


def _kleene(name, operator, deciding):
    """Returns `&` or `|` of bools: an operand with the deciding value decides the result even if
    the other operand is missing."""
    decides = "{0}[1] and {1}{0}[0]".replace("{1}", "" if deciding else "not ")
    result = "true" if deciding else "false"
    text = f"""
func na_{name}(a, b) @numba @inline {{
  if dtype(a[0]) == bool and dtype(b[0]) == bool {{
    if ({decides.format("a")}) or ({decides.format("b")}) {{ return ({result}, true) }}
    return (a[0] {operator} b[0], a[1] and b[1])
  }}
  return na_{name}_bits(a, b)
}}"""
    return Text(f"na_{name}", text, (_two(f"{name}_bits", f"a[0] {operator} b[0]"),))


# x ** 0 and 1 ** x are 1 for a missing x, as in pandas.
_POWER = Text(
    "na_pow",
    """
func na_pow(a, b) @numba @inline {
  if (a[1] and b[1]) { return (a[0] ** b[0], true) }
  if (b[1] and b[0] == 0) or (a[1] and a[0] == 1) { return (dtype(a[0] ** b[0])(1), true) }
  return (zero(dtype(a[0] ** b[0])), false)
}""",
)

BINARY = {
    ast.Add: _two("add", "a[0] + b[0]"),
    ast.Sub: _two("sub", "a[0] - b[0]"),
    ast.Mult: _two("mul", "a[0] * b[0]"),
    ast.Div: _two("truediv", "a[0] / b[0]"),
    ast.FloorDiv: _two("floordiv", "a[0] // b[0]"),
    ast.Mod: _two("mod", "a[0] % b[0]"),
    ast.Pow: _POWER,
    ast.LShift: _two("lshift", "a[0] << b[0]"),
    ast.RShift: _two("rshift", "a[0] >> b[0]"),
    ast.BitXor: _two("xor", "a[0] ^ b[0]"),
    ast.BitAnd: _kleene("and", "&", False),
    ast.BitOr: _kleene("or", "|", True),
}
UNARY = {ast.USub: _one("neg", "-a[0]"), ast.UAdd: _one("pos", "+a[0]"), ast.Invert: _one("invert", "~a[0]")}
COMPARE = {
    ast.Eq: _two("eq", "a[0] == b[0]"),
    ast.NotEq: _two("ne", "a[0] != b[0]"),
    ast.Lt: _two("lt", "a[0] < b[0]"),
    ast.LtE: _two("le", "a[0] <= b[0]"),
    ast.Gt: _two("gt", "a[0] > b[0]"),
    ast.GtE: _two("ge", "a[0] >= b[0]"),
}
# NaN and NaT are unequal to themselves; pandas counts both as missing.
IS_MISSING = Text("na_isna", "\nfunc na_isna(a) @numba @inline { return not a[1] or a[0] != a[0] }")


def _call(count):
    """Returns a func that calls another func with its operands' values if no operand is missing."""
    names = "abcdefgh"[:count]
    called = f"f({', '.join(f'{n}[0]' for n in names)})"
    text = f"if {' and '.join(f'{n}[1]' for n in names)} {{ return ({called}, true) }}\n  return (zero(dtype({called})), false)"
    return Text(
        f"na_call_{count}", f"\nfunc na_call_{count}(f: func, {', '.join(names)}) @numba @inline {{\n  {text}\n}}"
    )


CALLS = {count: _call(count) for count in range(1, 5)}
