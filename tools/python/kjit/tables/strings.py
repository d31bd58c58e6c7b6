"""Columns of texts in row functions. A text is the number of its entry in the column's dictionary. A text that the function
compares a column with becomes an operand, so that another dictionary needs no other code."""

import ast
from typing import NamedTuple

from .missing import is_missing_object


class TextOperand(NamedTuple):
    """The operand that a text is which a column is compared with."""

    column: object
    text: str


def compare(body, node, left, operator, right):
    """The two pairs that a comparison with a column of texts compares, or None if there is no such column."""
    columns = [body.column_of(operand) for operand in (left, right)]
    tables = [name is not None and body.shared.columns[name].texts is not None for name in columns]
    known = [body.static.value(operand) for operand in (left, right)]
    if not any(tables):
        return None
    if not isinstance(operator, (ast.Eq, ast.NotEq)):
        raise body.error(node, "texts of a table are compared with ==, != and `in` only")
    if all(tables):
        if columns[0] != columns[1]:
            raise body.error(
                node, f"columns {columns[0]!r} and {columns[1]!r} have texts: only one of them can be compared"
            )
        return body.compared(left), body.compared(right)
    at = tables.index(True)
    text = known[1 - at]
    if is_missing_object(text):
        return body.compared(left), body.compared(right)
    if not isinstance(text, str):
        raise body.error(
            node,
            f"column {columns[at]!r} has texts: compare it with a text that is known when the function is compiled",
        )
    operand = body.variable(node, TextOperand(columns[at], text))
    pairs = [body.compared(left) if at == 0 else operand, body.compared(right) if at == 1 else operand]
    return tuple(pairs)
