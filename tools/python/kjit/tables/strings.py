"""Strings in row functions. In compiled code a string is a number: its index in a dictionary for
the call. The dictionary has the strings of all columns that the function reads and the strings in
the function. The rewriting determines which expressions are strings."""

import ast
from typing import NamedTuple

from ..frontend import static
from ..frontend.scope import copied
from .missing import is_missing_object

MEANING = "a row function can compare (==, !=, in), test for NA, give to variables and return"


class TextOperand(NamedTuple):
    """The operand for a string in a function."""

    text: str


class Texts:
    """Finds the strings in a function of a row. `_Body` in row_functions.py, which rewrites the
    function, derives from this class. text_names: the function's variables that hold strings."""

    def is_text(self, node):
        """Returns whether an expression is a string or NA."""
        value = self.static.value(node)
        if value is not static.UNKNOWN:
            return isinstance(value, str)
        if isinstance(node, ast.Name) and node.id in self.text_names:
            return True
        if isinstance(node, ast.IfExp):
            return self.is_text(node.body) or self.is_text(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.is_text(node.value)
        name = self.column_of(node)
        return name is not None and self.shared.columns[name].texts is not None

    def find_text_names(self):
        """Finds all variables to which strings are assigned. Raises an error if another value is
        assigned to one of them."""
        assigned = list(self.assigned_values())
        is_new = True
        while is_new:
            new = {name for name, value in assigned if name not in self.text_names and self.is_text(value)}
            self.text_names |= new
            is_new = bool(new)
        for name, value in assigned:
            if name in self.text_names and not self.is_text(value) and not self.is_missing(value):
                raise self.error(value, f"variable `{name}` holds texts, but is assigned another value here")

    def assigned_values(self):
        """Yields (name, value) for each assignment to a variable, also for tuples of variables and
        values."""
        for node in ast.walk(self.function):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or node.value is None:
                continue
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts)
                    yield from ((one.id, value) for one, value in pairs if isinstance(one, ast.Name))

    def is_missing(self, node):
        """Returns whether an expression is NA, or a column in which all elements are missing."""
        name = self.column_of(node)
        if name is not None and self.shared.columns[name].data is not None:
            return self.shared.columns[name].data.is_null
        value = self.static.value(node)
        return value is not static.UNKNOWN and is_missing_object(value)

    def has_none(self, node, seen=()):
        """Returns whether the table's library represents a missing text of this expression by None
        or NaN, which equals no text. Otherwise a missing text is NA."""
        if isinstance(node, ast.Name) and node.id in self.text_names and self.column_of(node) is None:
            if node.id in seen:
                return True
            values = [value for name, value in self.assigned_values() if name == node.id]
            parts, seen = [] if node.id in self.parameters else values, (*seen, node.id)
            return bool(parts) and all(self.is_literal(part) or self.has_none(part, seen) for part in parts)
        if isinstance(node, ast.IfExp):
            return all(self.is_literal(part) or self.has_none(part, seen) for part in (node.body, node.orelse))
        if isinstance(node, ast.NamedExpr):
            return self.has_none(node.value, seen)
        name = self.column_of(node)
        return name is not None and self.shared.columns[name].data is not None and self.shared.columns[name].data.has_none

    def is_literal(self, node):
        return isinstance(self.static.value(node), str)

    def text_is(self, node, text, operator, literal):
        """Returns the syntax tree that compares a text, which may be None or NaN, with a
        literal."""
        value, code = self.pair(text), self.pair(literal)
        parts = [ast.Subscript(pair, ast.Constant(0), ast.Load()) for pair in (value, code)]
        there = ast.Subscript(copied(value), ast.Constant(1), ast.Load())
        made = ast.BoolOp(ast.And(), [there, ast.Compare(parts[0], [ast.Eq()], [parts[1]])])
        return self.there(node, made if isinstance(operator, ast.Eq) else ast.UnaryOp(ast.Not(), made))

    def check_number(self, node):
        """Raises an error for a string in a position that needs a number."""
        if self.is_text(node):
            name = self.column_of(node)
            what = f"column {name!r} has texts" if name is not None else f"`{ast.unparse(node)}` is a text"
            raise self.error(node, f"{what}, which {MEANING}")

    def check_branches(self, node):
        """Raises an error for a conditional expression of a string and a number."""
        kinds = [self.is_text(part) for part in (node.body, node.orelse) if not self.is_missing(part)]
        if len(set(kinds)) > 1:
            raise self.error(node, "one branch of the conditional expression is a string, and the other is not")

    def check_compared(self, node, left, operator, right):
        """Raises an error if strings are compared by order, or with a number."""
        kinds = [self.is_text(operand) for operand in (left, right)]
        if not any(kinds):
            return
        if not isinstance(operator, (ast.Eq, ast.NotEq)):
            raise self.error(node, "texts are compared with ==, != and `in` only")
        if not all(kinds) and not any(self.is_missing(operand) for operand in (left, right)):
            raise self.error(node, "a text cannot be compared with another value")


class Dictionary:
    """The strings of one call. columns: the columns of strings that the function reads."""

    def __init__(self, columns):
        self.codes, self._maps = {}, {}
        for name, column in columns.items():
            self._maps[name] = [self.code(text) for text in column.texts]

    def code(self, text):
        return self.codes.setdefault(text, len(self.codes))

    def mapped(self, name, codes):
        """Converts a column's codes to numbers of this dictionary. Codes of missing elements are
        arbitrary."""
        import numpy

        numbers = self._maps[name]
        if numbers == list(range(len(numbers))):
            return codes
        return numpy.take(numpy.array(numbers or [0]), codes, mode="clip")
