"""Expressions of a function that stays in Python, such as `n - 1` or `np.sqrt(a) + 1`. They are
compiled for numbers and for the elements of arrays."""

import ast
import builtins
import math

from .. import dtypes
from . import element_types, static, ufuncs
from .element_types import OPERATORS

_BUILTINS = tuple(
    getattr(builtins, name) for name in ("abs", "min", "max", "int", "float", "bool", "round", "pow", "complex", "divmod")
)
# Operators for which Python and 64-bit arithmetic agree if the operands are small.
_HARMLESS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div)
_MOST_PRODUCTS = 2


def of_elements(expression):
    """Returns the expression that computes one element of an array expression, with the conversions
    to the types that element_types.py describes."""
    return _converted(*_typed(expression.scalar))


def _converted(value, kind):
    return value if value is kind else ast.Call(ast.Constant(element_types.CAST), [kind, value], [])


def _typed(node):
    """Returns (the expression of numbers for an element, an expression with NumPy's result type)."""
    if isinstance(node, (ast.Name, ast.Constant)) or isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return node, node
    name, operands = _ufunc_of(node)
    taken = [_typed(operand) for operand in operands]

    def call(text, arguments):
        return ast.copy_location(ast.Call(ast.copy_location(ast.Constant(text), node), arguments, []), node)

    ufunc = element_types.ufunc(name, len(operands))
    if isinstance(node, ast.Call) and node.func.value is abs:
        made = call(ufunc, [_converted(*operand) for operand in taken])
        return made, made
    values, kind = [value for value, _ in taken], call(ufunc, [kind for _, kind in taken])
    if isinstance(node, ast.Call):
        return call(ufunc, values), kind
    if isinstance(node, ast.UnaryOp):
        made = ast.UnaryOp(node.op, *values)
    elif isinstance(node, ast.Compare):
        made = ast.Compare(values[0], node.ops, values[1:])
    elif type(node.op) in element_types.DIVISIONS:
        return call(element_types.DIVISIONS[type(node.op)], values), kind
    else:
        made = ast.BinOp(values[0], node.op, values[1])
    return ast.copy_location(made, node), kind


def _ufunc_of(node):
    """Returns (the name of the NumPy ufunc for an operator or call, its operands). The name is None
    if there is no ufunc."""
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)], [node.operand]
    if isinstance(node, ast.Compare):
        return OPERATORS[type(node.ops[0])], [node.left, node.comparators[0]]
    if ufuncs.is_ufunc(node.func.value):
        return node.func.value.__name__, node.args
    return "absolute" if node.func.value is abs and len(node.args) == 1 else None, node.args


def _has_elements(node):
    """Returns whether an expression consists of operators and ufuncs, so that it can be applied to
    array elements."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        return False
    name, operands = _ufunc_of(node)
    return name is not None and all(map(_has_elements, operands))


class Expression:
    """An expression as a function of its leaves.

    leaves: the nodes whose values the function takes. scalar: the expression in terms of the
    leaves. has_elements: whether the expression can be applied to array elements. is_harmless:
    whether Python computes the same for small integers and for floats. has_division: whether the
    expression contains a division.
    """

    def __init__(self, node, leaves, names, scalar):
        self.node, self.leaves, self.names, self.scalar = node, leaves, names, scalar
        self.has_elements = _has_elements(scalar)
        inside = list(ast.walk(scalar))
        binary = [n.op for n in inside if isinstance(n, ast.BinOp)]
        products = sum(isinstance(op, ast.Mult) for op in binary)
        self.is_harmless = (
            all(isinstance(op, _HARMLESS) for op in binary)
            and products <= _MOST_PRODUCTS
            and not any(isinstance(n, (ast.Call, ast.Invert, ast.IfExp, ast.BoolOp)) for n in inside)
            and all(_is_small(n.value) for n in inside if isinstance(n, ast.Constant))
        )
        self.has_division = any(isinstance(op, (ast.Div, ast.FloorDiv, ast.Mod)) for op in binary)

    def layout(self, layouts):
        """Returns the result layout. layouts: for each leaf, "C", "F", "A" or, if it is a number, ""."""
        return _layout(self.scalar, layouts)


def _layout(node, layouts):
    """Returns the layout of the array that an operator or a ufunc makes by Numba's rule: Fortran order if an operand has it and none is
    in C order."""
    if isinstance(node, ast.Name):
        return layouts[node.id]
    if isinstance(node, ast.Constant):
        return ""
    found = {_layout(operand, layouts) for operand in _ufunc_of(node)[1]} - {""}
    return ("F" if "F" in found and "C" not in found else "C") if found else ""


def _is_small(value):
    return type(value) is float or type(value) is int and abs(value) < 2**20


def _is_number(node):
    is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    operand = node.operand if is_negative else node
    return isinstance(operand, ast.Constant) and type(operand.value) in (bool, int, float, complex)


class Finder:
    """Splits expressions into operators and leaves. names: the static.Names of the function."""

    def __init__(self, names):
        self.names = names

    def is_inner(self, node):
        """Returns whether a node is an operator or function of numbers, and not a leaf."""
        if isinstance(node, ast.BinOp):
            return type(node.op) in OPERATORS
        if isinstance(node, ast.UnaryOp):
            is_number = isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
            return type(node.op) in OPERATORS and not is_number
        if isinstance(node, ast.Compare):
            return len(node.ops) == 1 and type(node.ops[0]) in OPERATORS
        return isinstance(node, ast.Call) and self.is_function(node)

    def is_function(self, node):
        if node.keywords or not node.args or any(isinstance(a, ast.Starred) for a in node.args):
            return False
        thing = self.names.value(node.func)
        if thing is static.UNKNOWN:
            return False
        if ufuncs.is_ufunc(thing):
            return ufuncs.text_of(thing) is not None and len(node.args) == thing.nin and thing.nout == 1
        if any(thing is function for function in _BUILTINS):
            return len(node.args) > 1 or thing not in (min, max)
        return getattr(math, getattr(thing, "__name__", ""), None) is thing and callable(thing)

    def is_alone(self, node):
        """Returns whether a node is an expression of numbers that cannot be applied to array
        elements and is not a part of a larger expression: a conversion, or a choice among names and
        literals."""
        choices = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values if isinstance(node, ast.BoolOp) else []
        if choices:
            return all(isinstance(operand, ast.Name) or _is_number(operand) for operand in choices)
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            return False
        thing = self.names.value(node.func)
        return thing is not static.UNKNOWN and callable(thing) and dtypes.name_of(thing) in dtypes.SCALARS

    def find(self, node):
        """Returns the Expression for a node, or None if the node is a leaf."""
        is_alone = self.is_alone(node)
        if not is_alone and not self.is_inner(node):
            return None
        leaves, names = [], {}

        def leaf(inner):
            key = ast.dump(inner) if isinstance(inner, ast.Name) else id(inner)
            if key not in names:
                names[key] = f"leaf_{len(leaves)}"
                leaves.append(inner)
            return ast.copy_location(ast.Name(names[key], ast.Load()), inner)

        scalar = self._inner(node, leaf) if is_alone else self._scalar(node, leaf)
        if not leaves:
            return None
        return Expression(node, leaves, list(names.values()), scalar)

    def _scalar(self, node, leaf):
        if _is_number(node):
            return node
        return self._inner(node, leaf) if self.is_inner(node) else leaf(node)

    def _inner(self, node, leaf):
        if isinstance(node, ast.BinOp):
            made = ast.BinOp(self._scalar(node.left, leaf), node.op, self._scalar(node.right, leaf))
        elif isinstance(node, ast.UnaryOp):
            made = ast.UnaryOp(node.op, self._scalar(node.operand, leaf))
        elif isinstance(node, ast.Compare):
            made = ast.Compare(self._scalar(node.left, leaf), node.ops, [self._scalar(node.comparators[0], leaf)])
        elif isinstance(node, ast.IfExp):
            made = ast.IfExp(*(self._scalar(part, leaf) for part in (node.test, node.body, node.orelse)))
        elif isinstance(node, ast.BoolOp):
            made = ast.BoolOp(node.op, [self._scalar(value, leaf) for value in node.values])
        else:
            function = ast.copy_location(ast.Constant(self.names.value(node.func)), node.func)
            made = ast.Call(function, [self._scalar(a, leaf) for a in node.args], [])
        return ast.copy_location(made, node)


def function_of(expression, tree, name):
    """Returns the syntax tree of a function that returns the expression."""
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=n) for n in expression.names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.FunctionDef(name=name, args=arguments, body=[ast.Return(tree)], decorator_list=[], returns=None)
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
            ast.copy_location(node, expression.node)
    return made
