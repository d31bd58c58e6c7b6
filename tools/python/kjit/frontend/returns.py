"""Functions that return a value on some ways through them and None on the others, as Numba allows it.

Numba gives such a function an optional type, and raises a TypeError where None is used as a number. A function of the kernel IR
has one type, so that the TypeError comes where the function would return None."""

import ast

from .._errors import remember_raise


class Returns:
    """Mixin of the emitter."""

    def may_return_none(self):
        """Whether the function is one of Numba's types that returns a value somewhere."""
        return self.is_typed and self.kind != "kernel" and any(not _is_none(r.value) for r in _returns(self.body))

    def raise_none(self, depth, node):
        place = self.source.place(node)
        remember_raise(place, TypeError)
        self.put(depth, [place], 'raise "expected a number, got None: the function ends here without a value"')

    def end_without_value(self):
        """The end of the body, where a function without `return` returns None."""
        if self.may_return_none() and _goes_on(self.body):
            self.raise_none(1, self.node)


def _returns(body):
    return [n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Return)]


def _is_none(value):
    return value is None or isinstance(value, ast.Constant) and value.value is None


def _goes_on(body):
    """Whether the end of a block can be reached, as far as its statements tell."""
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return False
    if isinstance(last, ast.If):
        return _goes_on(last.body) or not last.orelse or _goes_on(last.orelse)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
        return any(isinstance(n, ast.Break) for n in ast.walk(last))
    return True
