"""Calls of funcs whose arrays are on another device than the CPU: one thread of that device runs the
func. The results are recorded in an array of that device, because their types are known only after
the compilation."""

import struct

from ._functions import Function
from .frontend.words import Text

# The maximum number of words in a record: a tuple has up to 1024 numbers, and a number takes two or
# three words.
_WORDS = 4096

# Each value in a record begins with a word that tells its kind.
_TUPLE, _INTEGER, _UNSIGNED, _BOOL, _FLOAT, _COMPLEX = range(6)

_RECORD_NUMBER = Text(
    "record_number",
    f"""
func record_number(v, at, words) {{
  if dtype(v) == bool {{
    words[at] = {_BOOL}
    words[at + 1] = v ? 1 : 0
    return at + 2
  }} else if dtype(v) == u64 {{
    words[at] = {_UNSIGNED}
    words[at + 1] = bitcast(i64, v)
    return at + 2
  }} else if is_integer(dtype(v)) {{
    words[at] = {_INTEGER}
    words[at + 1] = i64(v)
    return at + 2
  }} else if is_complex(dtype(v)) {{
    words[at] = {_COMPLEX}
    words[at + 1] = bitcast(i64, f64(real(v)))
    words[at + 2] = bitcast(i64, f64(imag(v)))
    return at + 3
  }} else {{
    words[at] = {_FLOAT}
    words[at + 1] = bitcast(i64, f64(v))
    return at + 2
  }}
}}""",
)


def _for_items(name, item):
    """Returns the text of a func that records a value. If the value is a tuple, the func calls the
    func `item` for each item."""
    return f"""
func {name}(v, at, words) {{
  if is_tuple(v) {{
    words[at] = {_TUPLE}
    words[at + 1] = len(v)
    var next = at + 2
    for part in v {{ next = {item}(part, next, words) }}
    return next
  }} else {{ return record_number(v, at, words) }}
}}"""


# A derivative returns a tuple, whose first item is a tuple if the differentiated func returns a
# tuple.
_RECORD_ITEM = Text("record_item", _for_items("record_item", "record_number"), (_RECORD_NUMBER,))
_RECORD = Text("record_value", _for_items("record_value", "record_item"), (_RECORD_ITEM, _RECORD_NUMBER))


class _Recorder(Function):
    """A func with a fixed number of arguments that calls another func with them and records the
    result."""

    def __init__(self, of, count):
        for name in ("py_func", "_options", "_bits", "_device", "_rules", "is_typed", "__name__", "__qualname__", "__module__"):
            setattr(self, name, getattr(of, name))
        self.attributes, self._made, self._loaded = "", None, None
        self._of, self._count = of, count

    def _write(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed)
        builder.arrays_by = self._arrays_by
        of = self._of
        callee = of.write_callee(builder) if hasattr(of, "write_callee") else builder.function(of)
        names = ", ".join(f"a{i}" for i in range(self._count))
        lines = [f"func NAME(i, value, words, {names}) {{", f"  {callee}({names})", "}"]
        if of._returns_value():
            lines[1] = f"  {builder.function(_RECORD)}({callee}({names}), 0, words)"
        name = builder.generated(f"{self.__name__}_elsewhere", [[line] for line in lines])
        builder.write_all()
        return builder.finish(name)

    def _parameters(self):
        return ("index", "value", "record", *self._of._parameters())


def call(function, args, device):
    """Calls a func with arrays on a device. One thread of the device runs it, and the call waits for
    the result."""
    from ._algorithms import computed, map
    from ._arrays import zeros
    from ._pullback_arrays import identity

    recorders = function.__dict__.setdefault("_recorders", {})
    if len(args) not in recorders:
        recorders[len(args)] = _Recorder(function, len(args))
    record = zeros((_WORDS,), "i64", device=device)
    start = zeros((1,), "i32", device=device)
    map(identity, start, out=computed(recorders[len(args)], 1, record, *args))
    words = record.to_host()
    return _read(words, 0)[0] if function._returns_value() else None


def _read(words, at):
    """Returns (the value that begins at this index of a record, the index after the value)."""
    kind, word = int(words[at]), int(words[at + 1])
    if kind == _TUPLE:
        items, at = [], at + 2
        for _ in range(word):
            item, at = _read(words, at)
            items.append(item)
        return tuple(items), at
    if kind == _COMPLEX:
        return complex(*struct.unpack("=dd", words[at + 1 : at + 3].tobytes())), at + 3
    if kind == _FLOAT:
        return struct.unpack("=d", words[at + 1 : at + 2].tobytes())[0], at + 2
    return bool(word) if kind == _BOOL else word % 2**64 if kind == _UNSIGNED else word, at + 2
