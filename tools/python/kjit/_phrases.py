"""Messages of libkjit in Python's terms. libkjit marks phrases in its messages that refer to the kernel IR or to the C API. This
module has Python's words for these phrases."""

# Names in the kernel IR that differ from the names in Python -> the name in Python, or None if
# several names are possible.
_names: dict[str, str | None] = {}

# Algorithms whose functions in Python have another name than in C.
_FUNCTIONS = {
    "select": "select_where", "unique": "unique_consecutive", "unique_pairs": "unique_consecutive", "pairs_several": "pairs",
    "histogram_edges": "histogram", "spmv": "CSR.dot", "spmm": "CSR.dot", "csr_transpose": "CSR.transpose", "csr_check": "CSR.check",
    "csr_to_dense": "CSR.to_dense", "csr_to_coo": "CSR.to_coo", "csr_from_coo": "csr", "csr_from_dense": "csr",
}  # fmt: skip

# C API options that are parameters of the functions in Python: option -> name of the parameter.
_PARAMETERS = {"axes": "axis"} | {
    name: name
    for name in ("initial", "accumulator", "where", "signature", "devices", "begin_bit", "end_bit", "stream", "device", "plan", "epilogue")
}  # fmt: skip


def _function(text, name):
    from . import _LATER

    name = _FUNCTIONS.get(name, name)
    return f"kjit.{name}" if name.partition(".")[0] in _LATER else text


def _option(text, name):
    return f"`{_PARAMETERS[name]}`" if name in _PARAMETERS else text


def _value_type(text, kind):
    from . import _type_words

    return _with_own_names(_type_words.in_python(text))


def _failed_thread(text, name):
    return _with_own_names(text)


# Phrases of include/kjit/phrases.def -> Python's words, or a function that returns them for the text of the phrase and its
# argument. {} stands for the argument.
PHRASES = {
    "CALL": _function,
    "OPTION": _option,
    "FAILED_THREAD": _failed_thread,
    "RESULT_TYPE": "an annotation, `def {}(...) -> kjit.i64`",
    "LOCAL_ARRAY": "a local array",
    "TUPLE_LOOP": "`for v in t`",
    "CONDITIONAL": "a conditional expression",
    "FUNCTION_PARAMETER": "but it is a value, not a function",
    "FIRST_VALUE": "assign a value to `{}` first",
    "VARIABLE_TYPE": "`{}: kjit.i64 = ...`",
    "STRING_USES": "assert, raise and print()",
    "BLOCK_SIZE": "`block=`",
    "TARGET_CONDITION": "",
    "LOOP_BOUND": "write `for i in range(100)`, with a constant, and leave the loop with `break`",
    "SMALLER_BOUND": "range",
    "DERIVATIVE_RULE": "`@kjit.func({}=g)`",
    "VALUE_TYPE": _value_type,
}


def remember_name(symbol, name):
    """Records that a Python function or variable has another name in the kernel IR."""
    if symbol != name or symbol in _names:
        _names[symbol] = name if _names.get(symbol, name) == name else None


def _own_name(symbol):
    return _names.get(symbol) or symbol


def _with_own_names(text):
    """Returns text in which quoted names in the kernel IR are the names in Python."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return text
    parts[1::2] = [_own_name(part) for part in parts[1::2]]
    return "`".join(parts)


def _translate(part, has_types):
    if isinstance(part, tuple):
        name, text, argument = part
        words = PHRASES[name]
        return words.format(_own_name(argument)) if isinstance(words, str) else words(text, argument)
    if has_types:
        from . import _type_words

        part = _type_words.in_python(part)
    return _with_own_names(part)


def in_python(parts, has_types=True):
    """Returns a message in Python's terms. parts is a list of strings and phrases; a phrase is a tuple (name, text, argument).
    has_types: whether names of types in the strings are the kernel IR's; in the text of a program's own exception they are
    not."""
    return "".join(_translate(part, has_types) for part in parts)


def argument_of(parts, phrase):
    """Returns the argument of the first phrase with this name in a message, or None."""
    return next((part[2] for part in parts if isinstance(part, tuple) and part[0] == phrase), None)


def as_in_libkjit(parts):
    """Returns a message in libkjit's own words."""
    return "".join(part[1] if isinstance(part, tuple) else part for part in parts)


def failed_thread(parts):
    """Returns the part of a message that names the kernel and the failing thread, or None."""
    return next((_translate(part, False) for part in parts if part[:1] == ("FAILED_THREAD",)), None)


def is_of_library(place):
    """Returns whether a location is in source text that kjit itself has generated."""
    return place is not None and place[0].startswith("<kjit ")


def of_element(name, element):
    """Returns the words that name a failed element of an elementwise function. They replace the words that name the kernel
    and the thread, because kjit has generated that kernel."""
    of = "" if element is None else f", element {element[0] if len(element) == 1 else tuple(element)}"
    return f"function `{name}`{of}"
