"""The functions that rewritten row functions call. The front end translates these calls to kernel
IR text."""

import ast

from .._errors import remember_raise
from ..frontend import words
from . import operators


class Callee(words.Form):
    """A func that the rewritten syntax tree calls with pairs."""

    def __init__(self, thing):
        self.thing, self.name = thing, thing.__name__

    def expand(self, emitter, call):
        symbol = emitter.builder.function(self.thing)
        emitter.used.add(symbol)
        return [emitter.source.place(call), symbol, *emitter.positional(call)]


class Demand(words.Form):
    """Takes the value out of a pair where the program needs a value that is not missing, such as a
    condition. A missing value raises TypeError at the expression's location."""

    def __init__(self, name, message, condition="v[0]"):
        self.name, self.message, self.condition = name, message, condition

    def expand(self, emitter, call):
        place = emitter.source.place(call.args[0])
        symbol = emitter.builder.new_name(f"{self.name}_{emitter.node.lineno}")
        emitter.used.add(symbol)
        remember_raise(place, TypeError)
        raises = f'{{ if not v[1] {{ raise "{self.message}" }}; return {self.condition} }}'
        emitter.lifted.append([place, f"func {symbol}(v)", f"{emitter.rules} {raises}"])
        return [place, f"{symbol}(", *emitter.expression(call.args[0]), ")"]


TRUTH = Demand("truth", "boolean value of NA is ambiguous", "v[0] ? true : false")
RAW = Demand("value", "expected a value, got NA")
KNOWN = {
    text: Callee(text) for table in (operators.BINARY, operators.UNARY, operators.COMPARE) for text in table.values()
}
IS_MISSING = Callee(operators.IS_MISSING)
CALLS = {count: Callee(text) for count, text in operators.CALLS.items()}


def is_there(made):
    """Returns whether a pair is written as (value, True)."""
    return isinstance(made, ast.Tuple) and len(made.elts) == 2 and getattr(made.elts[1], "value", None) is True


def is_known_truth(made):
    """Returns whether a pair is written as (condition, True), with a condition that is a bool
    expression."""
    if not is_there(made):
        return False
    value = made.elts[0]
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return True
    return (
        isinstance(value, (ast.BoolOp, ast.Subscript))
        or isinstance(getattr(value, "value", None), bool)
        or _is_question(value)
    )


def _is_question(value):
    return isinstance(value, ast.Call) and getattr(value.func, "value", None) in (IS_MISSING, TRUTH)
