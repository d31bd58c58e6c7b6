"""Functions of a group's values that need only folds of them, such as `lambda x: x.max() -
x.min()`. They become functions of the numbers that the pass over the rows computes for each group,
so no pass copies the values group by group."""

import ast
import builtins
import copy

import numpy

from ..frontend import source as sources
from ..frontend import static
from .fold_kernels import COUNT, GREATEST, LEAST, SUM, TOTAL
from .row_functions import RowFunction

_METHODS = {"max": GREATEST, "min": LEAST, "sum": SUM, "mean": TOTAL}
_FUNCTIONS = {
    builtins.len: COUNT,
    builtins.max: GREATEST,
    builtins.min: LEAST,
    numpy.max: GREATEST,
    numpy.min: LEAST,
    numpy.sum: SUM,
    numpy.mean: TOTAL,
}
# by dtype, the folds whose result has another type than the array's own sum()
_NOT_OF = {"f4": (SUM, TOTAL), "f2": (SUM, TOTAL)}


class _Uses(ast.NodeTransformer):
    """Replaces the folds of the parameter `name`. folds: the folds found, in the order of the new
    parameters; is_whole: whether the array is also used in another way."""

    def __init__(self, name, names):
        self.name, self.names, self.folds, self.is_whole = name, names, [], False

    def _is_array(self, node):
        return isinstance(node, ast.Name) and node.id == self.name

    def _folded(self, node, kind):
        if kind not in self.folds:
            self.folds.append(kind)
        return ast.copy_location(ast.Name(_name(kind), ast.Load()), node)

    def visit_Call(self, node):
        if not node.keywords and len(node.args) == 1 and self._is_array(node.args[0]):
            known = self.names.value(node.func)
            kind = next((kind for function, kind in _FUNCTIONS.items() if function is known), None)
            if kind is not None:
                return self._folded(node, kind)
        if not node.keywords and not node.args and isinstance(node.func, ast.Attribute) and self._is_array(node.func.value):
            if node.func.attr in _METHODS:
                return self._folded(node, _METHODS[node.func.attr])
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        return self._folded(node, COUNT) if self._is_array(node.value) and node.attr == "size" else self.generic_visit(node)

    def visit_Name(self, node):
        self.is_whole |= node.id == self.name
        return node


def _name(kind):
    return f"fold.{kind}"


def of(function):
    """Returns (folds, function of the folds' results) if a function of an array can be computed
    from folds. Returns None if it needs the elements."""
    code = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & 0x0C:  # *args, **kwargs
        return None
    try:
        tree = sources.find(function, sources.remember(function))
    except Exception as error:  # the pass over the values reports the error
        if type(error).__name__ != "SourceError":
            raise
        return None
    name, own = code.co_varnames[0], set(code.co_varnames) | set(code.co_cellvars)
    uses = _Uses(name, static.Names(function, own, None, True))
    body = [ast.Return(tree.body)] if isinstance(tree, ast.Lambda) else tree.body
    body = [uses.visit(copy.deepcopy(statement)) for statement in body]
    if uses.is_whole or not uses.folds:
        return None
    names = tuple(map(_name, uses.folds))
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    made = ast.FunctionDef(getattr(tree, "name", "lambda_"), arguments, body, [])
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
            ast.copy_location(node, tree)
    return tuple(uses.folds), RowFunction(function, ast.fix_missing_locations(made), names)


def wanted(function, dtype):
    """Returns the folds that a function of an array with this dtype needs, or () if it needs the
    elements."""
    known = function.__dict__
    if "__kjit_folds__" not in known:
        known["__kjit_folds__"] = of(function)
    found = known["__kjit_folds__"]
    is_refused = found is None or dtype.kind not in "iuf" or any(kind in _NOT_OF.get(dtype.str[1:], ()) for kind in found[0])
    return () if is_refused else found[0]
