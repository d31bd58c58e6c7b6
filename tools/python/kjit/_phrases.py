"""Translates messages of libkjit, which refer to the kernel IR, into Python's terms."""

import re

# Names in the kernel IR that differ from the names in Python -> the name in Python, or None if
# several names are possible.
_names: dict[str, str | None] = {}

# Algorithms whose functions in Python have another name than in C.
_FUNCTIONS = {
    "select": "select_where", "unique": "unique_consecutive", "unique_pairs": "unique_consecutive", "pairs_several": "pairs",
    "histogram_edges": "histogram", "spmv": "CSR.dot", "spmm": "CSR.dot", "csr_transpose": "CSR.transpose", "csr_check": "CSR.check",
    "csr_to_dense": "CSR.to_dense", "csr_to_coo": "CSR.to_coo", "csr_from_coo": "csr", "csr_from_dense": "csr",
}  # fmt: skip


def _function(found):
    from . import _LATER

    name = _FUNCTIONS.get(found[1], found[1])
    return f"kjit.{name}: " if name.partition(".")[0] in _LATER else found[0]


# Patterns in messages that refer to the kernel IR, and their replacements, applied in this order.
RULES: list = [
    (r", or `func (\w+)\(\.\.\.\) -> i64 \{ \.\.\. \}`", r", or an annotation, `def \1(...) -> kjit.i64`"),
    (r"use a `local` array", "use a local array"),
    (r"iterate with `for v in t` or `for i in range\(len\(t\)\) @static`", "iterate with `for v in t`"),
    (r"the two values of `\?:` have", "the two values of a conditional expression have"),
    (r"`(\w+)` is called, so it must be a func: declare the parameter as `\1: func`", r"`\1` is called, but it is a value, not a function"),
    (r"no assignment gives it a type; declare it with a type, such as `var (\w+): f32`", r"no assignment gives it a type; assign a value to `\1` first"),
    (r"`(\w+)` starts with a literal and is then assigned (.*); give it a type, `var \1: i64 = \.\.\.`", r"`\1` starts with a number and is then assigned \2; give it a type, `\1: kjit.i64 = ...`"),
    (r"expected a value, found a type; to convert, write `f32\(x\)`", "expected a value, found a type; to convert, write `kjit.f32(x)`"),
    (r"a string is not a value; strings can only be used in `assert`, `raise` and `print`", "a string is not a value; strings can only be used in assert, raise and print()"),
    (r"or give the kernel a @block known", "or give the kernel a `block=` known"),
    (r"write `raise`, or put it under `if target == gpu`", "write `raise`"),
    (r"write `@most\(n\)` after its head", "write `for i in range(100)`, with a constant, and leave the loop with `break`"),
    (r"a smaller `@most\(n\)` keeps less", "a smaller range keeps less"),
    (r"`func \w+\([^()]*\) @(jvp|vjp)\(g\)`", r"`@kjit.func(\1=g)`"),
    (r"^kjit_([a-z_]+): ", _function),
    (r", which is an array: an index is missing", "; an index is missing"),
    (r"`?\boptions\.axes\b`?", "`axis`"),
    (r"`?\boptions\.(initial|accumulator|where|signature|devices|begin_bit|end_bit|stream|device|plan|epilogue)\b`?", r"`\1`"),
    (r"(?<![\w.@`])func(s?)\b(?!`)", r"function\1"),
]
_rules = [(re.compile(pattern), words) for pattern, words in RULES]
_quoted = re.compile(r"`(\w+)`")
_count = re.compile(r"kernel `\w+`, block \([^)]*\), (?:thread \([^)]*\)|all threads): ")


def remember_name(symbol, name):
    """Records that a Python function or variable has another name in the kernel IR."""
    if symbol != name or symbol in _names:
        _names[symbol] = name if _names.get(symbol, name) == name else None


def in_python(message, has_types=True):
    """Returns the message in Python's terms. has_types: whether names of types in it are the kernel
    IR's; in the text of a program's own exception they are not."""
    for pattern, words in _rules:
        message = pattern.sub(words, message)
    if has_types:
        from . import _type_words

        message = _type_words.in_python(message)
    return _quoted.sub(lambda found: f"`{_names.get(found[1]) or found[1]}`", message)


def is_of_library(place):
    """Returns whether a location is in source text that kjit itself has generated."""
    return place is not None and place[0].startswith("<kjit ")


def of_element(text, name, element):
    """Returns the message of a kernel that kjit has generated for an elementwise function, with the
    function's name and the index of the element in place of the kernel's."""
    of = "" if element is None else f", element {element[0] if len(element) == 1 else tuple(element)}"
    return _count.sub(lambda _: f"function `{name}`{of}: ", text, count=1)
