"""Funcs of the kernel IR, given as source text."""

import functools

from .. import _state


def _collect(text, found):
    for need in text.needs:
        _collect(need, found)
    found[text.__name__] = text.text


class Func:
    """A func of the kernel IR, which each context parses once. needs: other funcs that it calls."""

    def __init__(self, name, text, needs=()):
        found = {}
        for need in needs:
            _collect(need, found)
        self._name, self._text = name, "\n".join([*found.values(), text])
        self._context = self._pair = None

    @property
    def name(self):
        return self._name

    @property
    def text(self):
        """The source of the func and of all funcs that it calls."""
        return self._text

    def pair(self):
        """Returns (module, name), the form in which the extension takes a func."""
        return self.pair_in(_state.context())

    def pair_in(self, context):
        if self._context is not context:
            self._pair = context.parse("kjit.numpy", self._text, ()), self._name
            self._context = context
        return self._pair


@functools.cache
def func(name, text, *needs):
    return Func(name, text, needs)


IDENTITY = Func("same", "func same(a) { return a }")
