"""A module of kernel IR from functions of Python."""
import math
import types

from .. import dtypes
from .._errors import remember_raise
from . import source as sources
from . import words
from .emit import Emitter

# Longer texts are no program that somebody wrote.
MOST_FUNCTIONS = 1000


class Made:
    """A module that is written. name: of the kernel or func in it; title: what libkjit calls the module; text: kernel IR
    with line directives; plain: without; sources: those that directives name; arrays: name -> constant array; lines: for
    each line of the plain text the place (file, line, column) of Python that it comes from, or None."""

    def __init__(self, name, title, text, plain, sources, arrays, lines):
        self.name, self.title, self.text, self.plain = name, title, text, plain
        self.sources, self.arrays, self.lines = sources, arrays, lines

    def quoted(self):
        """(file, text) of each source, for libkjit's messages."""
        return tuple((printable(source.file), "".join(source.lines)) for source in self.sources)


def printable(text):
    """Text that can be encoded: names of files may be bytes that are no UTF-8."""
    return text.encode("utf-8", "replace").decode()


class Builder:
    """symbols: id(function) -> its name in the module; pending: functions that are not written yet; arrays: name ->
    constant array. rules: attributes of all functions that have no decorator of kjit's."""

    def __init__(self, rules=""):
        self.rules = rules
        self.names, self.symbols, self.pending, self.kept = set(words.RESERVED), {}, [], []
        self.lines, self.constants, self.arrays, self.sources = [], [], {}, {}

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

    def function(self, thing, kind="func"):
        """The name of a function in the module, which writes it later."""
        if id(thing) not in self.symbols:
            python = getattr(thing, "py_func", thing)
            name = self.new_name("lambda_" if python.__name__ == "<lambda>" else python.__name__)
            self.symbols[id(thing)] = name
            self.kept.append(thing)
            self.pending.append((name, python, kind, getattr(thing, "attributes", self.rules)))
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
            self.constants.append([f"extern const {symbol}: {element}[{', '.join(map(str, value.shape))}]"])
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
        self.lines += lines
        self.sources[source.file] = source

    def finish(self, name):
        """What was written, as a Made. Each place in a line becomes a line directive before the text that follows it."""
        texts, plains, lines = [], [], []
        known, file = None, None
        for parts in self.constants + self.lines:
            text, plain, place, first = [], [], None, None
            for part in parts:
                if isinstance(part, tuple):
                    place = part
                    continue
                if place and place != known and part.strip():
                    of = "" if place[0] == file else f", {quote(printable(place[0]))}"
                    text.append(f"@line({place[1]}, {place[2]}{of}) ")
                    known, file = place, place[0]
                first = first or place
                text.append(part)
                plain.append(part)
            texts.append("".join(text))
            plains.append("".join(plain))
            lines.append(first)
        return Made(name, f"<kjit {name}>", "\n".join(texts) + "\n", "\n".join(plains) + "\n", list(self.sources.values()), self.arrays, lines)


def quote(text):
    """A string of the kernel IR."""
    text = printable(text)
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", ""), ("\0", "")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


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
