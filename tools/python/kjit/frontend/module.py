"""A module of kernel IR from functions of Python."""
import hashlib
import math
import types

from .. import dtypes
from .._errors import LineMap
from . import source as sources
from . import words
from .emit import Emitter

# Longer texts are no program that somebody wrote.
MOST_FUNCTIONS = 1000


class Builder:
    """symbols: id(function) -> its name in the module; pending: functions that are not written yet; arrays: name ->
    constant array."""

    def __init__(self):
        self.names, self.symbols, self.pending, self.kept = set(words.RESERVED), {}, [], []
        self.lines, self.failures, self.arrays, self.quotes = [], {}, {}, {}

    def new_name(self, wanted):
        wanted = "".join(c if c.isascii() and c.isalnum() or c == "_" else "_" for c in wanted) or "f"
        if wanted[0].isdigit():
            wanted = "_" + wanted
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        return name

    def function(self, thing, kind="func", options=None):
        """The name of a function in the module, which writes it later."""
        if id(thing) not in self.symbols:
            python = getattr(thing, "py_func", thing)
            name = self.new_name("lambda_" if python.__name__ == "<lambda>" else python.__name__)
            self.symbols[id(thing)] = name
            self.kept.append(thing)
            self.pending.append((name, python, kind, options or getattr(thing, "attributes", "")))
        return self.symbols[id(thing)]

    def array(self, value, name):
        if id(value) not in self.symbols:
            element = dtypes.name_of(value.dtype)
            if element is None:
                return None
            symbol = self.new_name(name)
            self.symbols[id(value)] = symbol
            self.kept.append(value)
            self.arrays[symbol] = value
            self.lines.append([f"extern const {symbol}: {element}[{', '.join(map(str, value.shape))}]"])
        return self.symbols[id(value)]

    def write_all(self):
        written = 0
        while self.pending:
            written += 1
            name, python, kind, attributes = self.pending.pop(0)
            source = getattr(python, "__kjit_source__", None) or sources.remember(python)
            node = sources.find(python, source)
            if written > MOST_FUNCTIONS:
                raise source.error(node, f"a kernel that calls more than {MOST_FUNCTIONS} functions")
            try:
                self._write(name, python, kind, attributes, source, node)
            except RecursionError:
                raise source.error(node, "an expression or statement is nested too deeply") from None

    def _write(self, name, python, kind, attributes, source, node):
        avoid = set()
        while True:
            emitter = Emitter(self, python, source, node, avoid)
            lines = emitter.write(name, kind, attributes)
            clash = emitter.used & set(emitter.renamed.values())
            if not clash:
                break
            avoid |= clash
        for line, raised in lines:
            self.lines.append(line)
            if raised:
                self.failures[len(self.lines)] = raised
        self.quotes[source.file] = source

    def finish(self):
        """(name, text, line map)"""
        texts, places = [], []
        for parts in self.lines:
            column, marks, text = 1, [], []
            for part in parts:
                if isinstance(part, tuple):
                    marks.append((column, part))
                else:
                    text.append(part)
                    column += len(part.encode())
            texts.append("".join(text))
            places.append(marks)
        text = "\n".join(texts) + "\n"
        digest = hashlib.sha1(repr((text, places)).encode()).hexdigest()[:12]
        quote = lambda place: self.quotes[place[0]].quote(place[1]) if place and place[0] in self.quotes else None  # noqa: E731
        name = f"<kjit {digest}>"
        return name, text, LineMap(name, places, self.failures, quote)


def literal(value):
    """The text of a number or tuple that is known, or None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"({int(value)})" if value < 0 else str(int(value))
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "shape", None) == ():
        name, plain = dtypes.name_of(value.dtype), value.item()
        if name is None or not isinstance(plain, (bool, int, float, complex)):
            return None
        return literal(plain) if name in ("bool", "c128") else f"{name}({literal(plain)})" if name != "c64" \
            else f"c64({literal(plain.real)}, {literal(plain.imag)})"
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        text = "inf" if math.isinf(value) else repr(abs(float(value)))
        return f"(-{text})" if math.copysign(1, value) < 0 else text
    if isinstance(value, complex):
        return f"c128({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, tuple):
        items = [literal(item) for item in value]
        return None if None in items else "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    return None


def is_function(thing):
    """Something that a kernel may call: a function of Python, or kjit.func's of one."""
    return isinstance(thing, types.FunctionType) or isinstance(getattr(thing, "py_func", None), types.FunctionType)
