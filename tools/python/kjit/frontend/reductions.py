"""Finds the values that a loop over prange carries from one iteration to the next, and the values that are used after the loop: reductions
and last values."""

import ast

from . import static, ufuncs, words

# Reductions: the operator of `acc += e` -> (the operator that joins the parts, the initial value of
# each part; None means the value of acc).
_AUGMENTED = {
    ast.Add: ("add", 0),
    ast.Sub: ("add", 0),
    ast.Mult: ("multiply", 1),
    ast.Div: ("multiply", 1),
    ast.BitOr: ("bitwise_or", None),
    ast.BitAnd: ("bitwise_and", None),
    ast.BitXor: ("bitwise_xor", 0),
}
_LEFT_ONLY = (ast.Sub, ast.Div)  # acc = e - acc is not a reduction
# Python's min and max ignore a NaN that is compared with a number; NumPy's minimum and maximum keep
# it.
_CHOICES = {
    "min": ("fmin", None),
    "max": ("fmax", None),
    "minimum": ("minimum", None),
    "maximum": ("maximum", None),
}
_GREATER, _LESS = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)


class Reductions:
    """The part of Splitter that analyses the names which a loop over prange assigns."""

    def reduction(self, statement, name):
        """Returns (operator, initial value) if the loop uses the name only for a reduction."""
        found, names = [], 0
        for inner in [n for s in statement.body for n in ast.walk(s)]:
            names += isinstance(inner, ast.Name) and inner.id == name
            kind, count = self._reduction_of(inner, name)
            if count:
                found.append((kind, count))
        kinds = {kind for kind, _ in found}
        if len(kinds) != 1 or None in kinds or sum(count for _, count in found) != names:
            return None
        return kinds.pop()

    def _reduction_of(self, node, name):
        """Returns (the kind of reduction, the number of uses of the name), or (None, 0) if the statement is not a reduction."""
        if isinstance(node, ast.AugAssign) and _is_name(node.target, name):
            return _AUGMENTED.get(type(node.op)), 1
        if isinstance(node, ast.If):
            kind = self._conditional(node, name)
            # The walk will also visit the assignment inside, which must not be counted twice.
            return (kind, 2) if kind else (None, 0)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_name(node.targets[0], name):
            if node.value in self._chosen:
                return None, 0
            return self._assigned(node.value, name), 1 + _count(node.value, name)
        return None, 0

    def _conditional(self, node, name):
        """Returns the kind of a conditional reduction such as `if x > acc: acc = x`, or None."""
        is_one = len(node.body) == 1 and not node.orelse and isinstance(node.body[0], ast.Assign)
        if not is_one or len(node.body[0].targets) != 1 or not _is_name(node.body[0].targets[0], name):
            return None
        kind = self._comparison(node.test, node.body[0].value, name)
        if kind:
            self._chosen.append(node.body[0].value)
        return kind

    def _comparison(self, test, value, name):
        """Returns the kind of reduction that replaces acc by a value that is larger, or smaller, than acc; None for other comparisons."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or _count(value, name):
            return None
        left, right, operator = test.left, test.comparators[0], type(test.ops[0])
        if _is_name(left, name) and ast.dump(right) == ast.dump(value):
            is_max = operator in _LESS
        elif _is_name(right, name) and ast.dump(left) == ast.dump(value):
            is_max = operator in _GREATER
        else:
            return None
        return _CHOICES["max" if is_max else "min"] if operator in _GREATER + _LESS else None

    def _assigned(self, value, name):
        if isinstance(value, ast.BinOp):
            return self._chain(value, name)
        if isinstance(value, ast.IfExp):
            if _is_name(value.orelse, name):
                return self._comparison(value.test, value.body, name)
            if _is_name(value.body, name):
                kind = self._comparison(value.test, value.orelse, name)
                return kind and _CHOICES["min" if kind == _CHOICES["max"] else "max"]
            return None
        if isinstance(value, ast.Call) and len(value.args) >= 2 and not value.keywords and _count(value, name) == 1:
            thing = self.static.value(value.func)
            if ufuncs.is_ufunc(thing):
                called = thing.__name__ if len(value.args) == 2 else None
            else:
                called = None if thing is static.UNKNOWN else words.builtin_name(thing)
            return _CHOICES.get(called) if any(_is_name(a, name) for a in value.args) else None
        return None

    def _chain(self, value, name):
        """Returns the kind of a reduction in an expression such as `acc + x - y` or `x * acc`."""
        kind = _AUGMENTED.get(type(value.op))
        if _count(value, name) != 1 or kind is None:
            return None
        if _is_name(value.left, name) or _is_name(value.right, name) and not isinstance(value.op, _LEFT_ONLY):
            return kind
        inner = value.left if isinstance(value.left, ast.BinOp) and _count(value.left, name) else None
        return kind if inner is not None and self._chain(inner, name) == kind else None

    # ---- names that are not reductions ----

    def is_read_first(self, body, name):
        """Returns whether the first statement that uses the name may read it."""
        for statement in body:
            if name in self.scope.mentions[id(statement)]:
                return self.scope.first([statement], name) == "read"
        return False

    def check_private(self, statement, name):
        """Reports a name whose value one iteration would pass to the next."""
        is_carried = self.scope.first(statement.body, name) == "read"
        if is_carried and (self.is_set_before(statement, name) or self.is_read_first(statement.body, name)):
            raise self.source.error(
                statement,
                f"`{name}` passes a value from one iteration of prange to the next, but iterations run in parallel; only sums, products, min, "
                "max and bit operations can do this (`acc += x`), if the loop uses the variable for nothing else",
            )
        return is_carried

    def check_last(self, statement, name, is_private):
        """Called for a name that is read after the loop. Reports the name if an iteration may read it before assigning it."""
        reads = [n for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
        if is_private or reads and self.scope.first(statement.body, name) != "assigned":
            raise self.source.error(
                statement,
                f"`{name}` is used after the loop over prange, whose iterations run in parallel: it must be a reduction (`acc += x`), or each iteration must assign it before reading it",
            )


def _is_name(node, name):
    return isinstance(node, ast.Name) and node.id == name


def _count(node, name):
    return sum(_is_name(inner, name) for inner in ast.walk(node))
