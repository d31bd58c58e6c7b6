"""Evaluates values that are known at compile time: global variables, variables of enclosing
functions, and expressions of these."""

import ast
import builtins
import enum
import numbers
import operator
import types

from .. import _missing, _names, _ufuncs, dtypes
from . import words

UNKNOWN = object()
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
# attributes that are constants, unlike `types`, to which calls add types
_OF_UFUNCS = ("nin", "nout", "nargs", "identity", "signature")
# Attributes of NumPy arrays outside the function, which are constants.
_OF_ARRAYS = ("shape", "size", "ndim", "itemsize", "nbytes", "strides", "dtype")
PLAIN = (bool, int, float, complex, str, type(None))


class GivenText(str):
    """A string that is the argument of an njit parameter. Numba compares it at run time."""


def _is_text(left, right):
    """Returns whether `left in right` can be decided at compile time: for strings, or for
    constants."""
    is_listed = isinstance(right, (tuple, frozenset)) and all(isinstance(item, (*PLAIN, enum.Enum)) for item in right)
    return isinstance(left, str) and isinstance(right, str) or isinstance(left, (*PLAIN, enum.Enum)) and is_listed


_FOLDED = {
    **_ARITHMETIC,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


def _is_special(item):
    """Returns whether an item in a tuple cannot be an item of a kernel's tuple."""
    return item is None or isinstance(item, str) or callable(item)


def _fields_of(thing):
    """Returns the names of the fields of a NumPy record, and none for other objects."""
    is_record = type(thing).__module__ == "numpy" and type(thing).__name__ in ("void", "record")
    return is_record and thing.dtype.names or ()


def _is_limits(thing):
    """Returns whether an object is NumPy's class finfo or iinfo."""
    return isinstance(thing, type) and thing.__module__.startswith("numpy") and thing.__name__ in ("finfo", "iinfo")


def _is_class_of_dtypes(thing):
    return isinstance(thing, type) and thing.__module__ == "numpy" and thing.__name__ == "dtype"


def _number_type(maker, given):
    """Returns np.dtype(given), if it is a type of numbers, or UNKNOWN. maker: np.dtype."""
    if not isinstance(given, (str, type, maker)):
        return UNKNOWN
    try:
        made = maker(given)
    except TypeError:
        return UNKNOWN
    return made if dtypes.name_of(made) else UNKNOWN


def fold_literals(node):
    """Returns the number that CPython's compiler computes for an operation on literals, or UNKNOWN. Numba sees this number: `10 ** -3` is
    0.001, not a power of integers."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float, complex) else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
        value = fold_literals(node.operand)
        if value is UNKNOWN or isinstance(node.op, ast.Invert) and type(value) is not int:
            return UNKNOWN
        return -value if isinstance(node.op, ast.USub) else ~value
    if not isinstance(node, ast.BinOp) or type(node.op) not in _FOLDED:
        return UNKNOWN
    left, right = fold_literals(node.left), fold_literals(node.right)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(node.op, (ast.Pow, ast.LShift)) and type(right) is int and abs(right) > 128:
        return UNKNOWN
    try:
        return _FOLDED[type(node.op)](left, right)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


class Names:
    """The names in a Python function that are not its local variables."""

    def __init__(self, function, own, known=None, is_typed=False):
        """known: values of parameters. is_typed: only the program's own names are known, as in Numba."""
        self.function, self.own, self.is_typed = function, own, is_typed
        self.optional = set()  # names that may be None
        self.around = {}
        self.around.update(known or {})
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.around[name] = cell.cell_contents
            except ValueError:
                pass  # the variable has no value yet

    def look_up(self, name):
        if name in self.own:
            return UNKNOWN
        for table in (self.around, self.function.__globals__, vars(builtins)):
            if name in table:
                return table[name]
        if name == self.function.__name__:
            return self.function  # while the decorator runs, the name is not yet bound
        if self.is_typed:
            return UNKNOWN
        # as in the kernel IR: `for i in grid_range(n)` works without an import
        for table in (words.LOOPS, words.ARRAYS, words.BUILTINS):
            if name in table:
                return table[name]
        if name in _names.TYPES:
            from ..dtypes import SCALARS

            return SCALARS[name]
        return UNKNOWN

    def value(self, node):
        """Returns the object to which an expression evaluates, or UNKNOWN. This runs no code of the program except
        attribute access on modules."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.look_up(node.id)
        if isinstance(node, ast.Attribute):
            base = self.value(node.value)
            if base is UNKNOWN or isinstance(base, words.Word):
                return UNKNOWN
            if isinstance(base, enum.Enum) and node.attr in ("value", "name"):
                return getattr(base, node.attr)
            if _missing.text_of(base) and isinstance(base, type):
                return base
            if isinstance(base, (types.ModuleType, type, types.SimpleNamespace)):
                return getattr(base, node.attr, UNKNOWN)
            if node.attr in ("real", "imag") and isinstance(base, numbers.Number):
                return getattr(base, node.attr)
            if node.attr in _OF_ARRAYS and type(base).__module__ == "numpy" and type(base).__name__ == "ndarray":
                return getattr(base, node.attr)
            if isinstance(base, tuple) and node.attr in getattr(base, "_fields", ()):
                return getattr(base, node.attr)
            if node.attr in _fields_of(base):
                return base[node.attr]
            if _is_limits(type(base)) or isinstance(base, _ufuncs.Attributes) and node.attr in _OF_UFUNCS:
                return getattr(base, node.attr, UNKNOWN)
            return UNKNOWN
        if isinstance(node, ast.Subscript):
            base, literal = self.value(node.value), fold_literals(node.slice)
            key = self.value(node.slice) if literal is UNKNOWN else literal
            if isinstance(key, str) and key in _fields_of(base):
                return base[key]
            if isinstance(base, tuple) and type(key) is int and -len(base) <= key < len(base):
                return base[key] if any(map(_is_special, base)) else UNKNOWN  # for example a field's name
            is_member = isinstance(base, enum.EnumMeta) and isinstance(key, str)
            return base.__members__.get(key, UNKNOWN) if is_member else UNKNOWN
        if isinstance(node, ast.Call) and node.args and not node.keywords:
            maker = self.value(node.func)
            if getattr(maker, "makes_derivative", False):
                given = [self.value(item) for item in node.args]
                is_known = hasattr(given[0], "_loaded_module") or isinstance(given[0], types.FunctionType)
                return maker(*given) if is_known and all(type(n) is int for n in given[1:]) else UNKNOWN
            if _is_limits(maker) and len(node.args) == 1 and dtypes.name_of(self.value(node.args[0])):
                try:
                    return maker(self.value(node.args[0]))
                except (TypeError, ValueError):  # for example np.iinfo of a float
                    return UNKNOWN
            if _is_class_of_dtypes(maker):
                return _number_type(maker, self.value(node.args[0])) if len(node.args) == 1 else UNKNOWN
        if isinstance(node, ast.Tuple):
            values = tuple(self.value(item) for item in node.elts)
            return values if values and all(isinstance(v, PLAIN) and v is not None for v in values) else UNKNOWN
        if isinstance(node, ast.Call) and len(node.args) == 1 and self.is_typed and self.value(node.func) is len:
            items = self.value(node.args[0])
            return len(items) if isinstance(items, (tuple, str)) else UNKNOWN
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = self.value(node.left), self.value(node.right)
            # only integers are folded, because kernels compute exactly the same integers
            if (
                type(left) is int
                and type(right) is int
                and not (right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod)))
            ):
                result = _ARITHMETIC[type(node.op)](left, right)
                return result if abs(result) < 2**62 else UNKNOWN
            return UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand)
            return not value if isinstance(value, PLAIN) else UNKNOWN
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BoolOp):
            return self.choice(node)
        return UNKNOWN

    def comparison(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            return UNKNOWN
        left, right = self.value(node.left), self.value(node.comparators[0])
        is_identity = isinstance(node.ops[0], (ast.Is, ast.IsNot))
        if not is_identity and isinstance(left, GivenText) | isinstance(right, GivenText):
            return UNKNOWN
        return self._comparison(node, left, right, is_identity)

    def comparison_of_text(self, node):
        """Returns the result of a comparison with a string parameter, or UNKNOWN for other comparisons."""
        values = [self.value(operand) for operand in (node.left, *node.comparators)]
        if len(values) != 2 or not any(isinstance(value, GivenText) for value in values) or type(node.ops[0]) not in _COMPARE:
            return UNKNOWN
        return self._comparison(node, *values, False)

    def _comparison(self, node, left, right, is_identity):
        kinds = (*PLAIN, enum.Enum, type) if is_identity or isinstance(node.ops[0], (ast.Eq, ast.NotEq)) else PLAIN
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and isinstance(left, tuple) != isinstance(right, tuple):
            if all(isinstance(value, (*PLAIN, tuple)) for value in (left, right)):
                return isinstance(node.ops[0], ast.NotEq)  # a tuple and a value of another class are never equal
        if (
            isinstance(left, kinds)
            and isinstance(right, kinds)
            or isinstance(node.ops[0], (ast.In, ast.NotIn))
            and _is_text(left, right)
        ):
            try:
                return _COMPARE[type(node.ops[0])](left, right)
            except TypeError:
                return UNKNOWN
        if (
            (left is None or right is None)
            and is_identity
            and (left is not UNKNOWN or self.is_never_none(node.left))
            and (right is not UNKNOWN or self.is_never_none(node.comparators[0]))
        ):
            return isinstance(node.ops[0], ast.IsNot)
        return UNKNOWN

    def choice(self, node):
        """Evaluates `and` and `or` if the first operands decide the result, or if all operands are known."""
        stops = isinstance(node.op, ast.Or)
        for operand in node.values:
            value = self.value(operand)
            if not isinstance(value, PLAIN):
                return UNKNOWN
            if bool(value) == stops:
                return value
        return value

    def is_never_none(self, node):
        """Returns whether an expression with an unknown value is certainly not None and has no side
        effects."""
        if isinstance(node, ast.Name):
            return node.id in self.own and node.id not in self.optional
        return isinstance(node, (ast.Subscript, ast.BinOp, ast.Tuple)) and not any(
            isinstance(n, ast.Call) for n in ast.walk(node)
        )
