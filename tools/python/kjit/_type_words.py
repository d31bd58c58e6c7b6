"""Translates types of the kernel IR in messages to Python's terms: `f32[:] C` becomes "a C-contiguous
array of float32 with one dimension"."""

import re

_NAMES = {"bf16": "bfloat16", "bool": "bool"}
_NAMES |= {f"{letter}{bits}": f"{word}{bits}" for letter, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}
_NAMES |= {"f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}
_COUNTS = ("no dimensions", "one dimension", *(f"{count} dimensions" for count in ("two", "three", "four", "five", "six", "seven", "eight")))
_SCALAR = r"(?:bf16|[iu](?:8|16|32|64)|f(?:16|32|64)|c(?:64|128))"
_DATE = r"(?:datetime64|timedelta64)_\w+"
_RECORD = r"record_\w+_[0-9a-f]{12}"

# Types of the kernel IR. An attribute such as kjit.f32 is already a name in Python, and a part of a path such as
# /data/f32 is not a type.
_VECTOR = re.compile(rf'(?<![\w."@])({_SCALAR})(?:x([234]))?\b(?![\w"])')
_IN_PROSE = re.compile(rf"(?<![\w.\"@/'])({_SCALAR})(?:x([234]))?\b(?![\w/]|\.\w|'(?!s))")
_STRUCT = re.compile(rf"\b(?:{_RECORD}|{_DATE})\b")
_ARRAY = re.compile(
    rf'(?<![\w."@])(shared |local )?(const )?({_SCALAR}(?:x[234])?|bool|{_RECORD}|{_DATE})\[((?::(?:, :)*)?|\d+(?:, \d+)*)\](?: ([CF])\b)?(?!")'
)

_CALL = re.compile(rf'(?<![\w."@])({_SCALAR})\(')
# Text from the program, such as the expression of einsum, and the program's own names, such as a variable `f32`, do not change.
_STRING = re.compile(r'"[^"]*"')
_OWN_NAME = re.compile(rf"{_SCALAR}(?:x[234])?")
_OF_TYPE = re.compile(rf"\b(has|have) the type ({_ARRAY.pattern})")


def _element(text):
    """Returns the name of an element type."""
    if text.startswith("record_"):
        from . import _records

        dtype = _records.known_dtype(text)
        return "record" if dtype is None else f"record ({', '.join(dtype.names)})"
    if text.startswith(("datetime64_", "timedelta64_")):
        word, _, unit = text.partition("_")
        return f"{word}[{unit}]"
    return _VECTOR.sub(lambda found: _NAMES[found[1]] + (f"x{found[2]}" if found[2] else ""), text)


def _array(found):
    """Returns the words for an array type."""
    space, is_const, element, extents, layout = found.groups()
    order = {"C": "C-contiguous ", "F": "F-contiguous "}.get(layout, "")
    kind = f"{'read-only ' if is_const else ''}{space or ''}{order}array"
    rank = extents.count(":")
    shape = f"the shape ({extents}{',' if ',' not in extents else ''})" if extents and not rank else _COUNTS[rank]
    return f"{'an' if kind[0] in 'aF' else 'a'} {kind} of {_element(element)} with {shape}"


def _outside_strings(text, translate):
    """Returns the text after applying `translate` to the parts outside of quoted strings."""
    strings = _STRING.findall(text)
    return "".join(translate(part) + string for part, string in zip(_STRING.split(text), [*strings, ""]))


def _in_code(code):
    """Returns quoted code with Python's names of types, or words for a quoted array type."""
    if _OWN_NAME.fullmatch(code):
        return f"`{code}`"
    whole = _ARRAY.fullmatch(code)
    if whole and (whole[1] or whole[2] or whole[5] or whole[4][:1].isdigit()):
        return _array(whole)
    own = _outside_strings(code, lambda part: _VECTOR.sub(lambda found: f"kjit.{found[0]}", part))
    return f"`{own}`"


def _in_prose(text):
    """Returns a sentence, without quoted code and strings, with NumPy's names of types and words for array types."""
    text = _CALL.sub(r"kjit.\1(", text)
    text = _OF_TYPE.sub(lambda found: f"{'is' if found[1] == 'has' else 'be'} {_array(_ARRAY.match(found[2]))}", text)
    text = _ARRAY.sub(_array, text)
    text = _STRUCT.sub(lambda found: _element(found[0]), text)
    return _IN_PROSE.sub(lambda found: _element(found[0]), text)


def in_python(message):
    """Returns a message with Python's names of types: NumPy's in sentences, and kjit's in quoted code."""
    parts = message.split("`")
    if len(parts) % 2 == 0:
        return message
    for i, part in enumerate(parts):
        parts[i] = _in_code(part) if i % 2 else _outside_strings(part, _in_prose)
    return "".join(parts)
