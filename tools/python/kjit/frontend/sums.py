"""Sums of integers in functions whose Python numbers have no types: `s = 0` and then `s += j * j` in a loop. Integers without a type have
32 bits, which such a sum can exceed, so the summands are converted to 64 bits. Floats keep their type, and so do variables that count by
1 or hold bits."""

import ast

from . import words
from .words import Text

_GROWS = (ast.Add, ast.Sub, ast.Mult, ast.LShift, ast.Pow)
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift)
_COUNTS = (ast.Add, ast.Sub)
WIDENED = Text(
    "widened",
    """
func widened(v) {
  if is_integer(dtype(v)) and sizeof(dtype(v)) < 8 { return i64(v) }
  return v
}""",
)


def _is_integer(node):
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def _is_range(node):
    """Returns whether a loop iterates over a range whose numbers are not constants, unlike those of
    `kjit.static`."""
    called = node.func if isinstance(node, ast.Call) else None
    return called is not None and (called.attr if isinstance(called, ast.Attribute) else _name(called)) != "static"


def _name(node):
    return node.id if isinstance(node, ast.Name) else None


def added(statement):
    """Returns (variable, operator, summand) for `s += x`, `s = s + x` and `s = x + s`, or None."""
    if isinstance(statement, ast.AugAssign):
        return _name(statement.target), statement.op, statement.value
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.BinOp):
        return None
    name, value = _name(statement.targets[0]), statement.value
    if name is not None and _name(value.left) == name:
        return name, value.op, value.right
    if name is not None and _name(value.right) == name and isinstance(value.op, (ast.Add, ast.Mult)):
        return name, value.op, value.left
    return None


class Found:
    """Finds in a function the variables that accumulate sums (`names`) and the variables of loops over ranges (`counters`)."""

    def __init__(self, body):
        self.started, self.grown, self.others, self.counters = set(), set(), set(), set()
        for statement in body:
            self._search(statement, False)
        self.names = self.started & self.grown - self.others

    def _search(self, statement, is_in_loop):
        if isinstance(statement, ast.Assign) and _is_integer(statement.value):
            self.started |= {_name(target) for target in statement.targets}
        if isinstance(statement, ast.AnnAssign):  # the annotation determines the type
            self.others.add(_name(statement.target))
        found = added(statement)
        if found and isinstance(found[1], _OF_BITS):
            self.others.add(found[0])
        if found and is_in_loop and isinstance(found[1], _GROWS) and not is_count(found):
            self.grown.add(found[0])
        is_loop = isinstance(statement, (ast.For, ast.While))
        if isinstance(statement, ast.For) and _is_range(statement.iter):
            self.counters.add(_name(statement.target))
        for block in ("body", "orelse"):
            for inner in getattr(statement, block, ()) or ():
                self._search(inner, is_in_loop or is_loop)


def is_count(found):
    """Returns whether the summand is a literal number: `n += 1`."""
    return isinstance(found[1], _COUNTS) and _is_integer(found[2])


class Sums:
    """The part of Emitter that translates sums."""

    widens = False  # whether variables of loops have 64 bits in the expression

    def find_sums(self):
        self.sums = Found([] if self.is_typed else self.body)

    def summand(self, statement):
        """Returns the summand of a sum of integers in 64 bits, or None for other statements."""
        found = added(statement)
        if not found or found[0] not in self.sums.names or not isinstance(found[1], _GROWS) or is_count(found):
            return None
        self.widens = True
        try:
            parts = self.expression(found[2])
        finally:
            self.widens = False
        return self.widen(parts)

    def sum_of(self, statement):
        """Returns the value for `s = s + x` if s is a sum of integers, or None for other statements."""
        summand = self.summand(statement)
        if summand is None:
            return None
        value, operator = statement.value, words.BINARY[type(statement.value.op)]
        place = self.source.operator_place(value.left, value.right, operator)
        return [self.local(statement.targets[0].id), " ", place, f"{operator} ", *summand]

    def widen(self, parts):
        symbol = self.builder.function(WIDENED)
        self.used.add(symbol)
        return [f"{symbol}(", *parts, ")"]

    def narrowly(self, make, *nodes):
        """Returns make(*nodes), called with `widens` off, because variables in arguments and
        indices keep their types."""
        widens, self.widens = self.widens, False
        try:
            return make(*nodes)
        finally:
            self.widens = widens
