"""The argument types that a function made by kjit.njit was called with, under Numba's names."""

from . import _kjit
from ._errors import Error
from .cuda import types


class Overload:
    """A function's code for one combination of argument types. `signature`: these types and the
    result type. `entry_point`: calls the function."""

    def __init__(self, signature, entry_point):
        self.signature, self.entry_point = signature, entry_point

    def __repr__(self):
        return f"<overload {self.signature}>"


def _typeof(value):
    """Returns the type of an argument or result, or None if it has none."""
    if value is None:
        return types.none
    if isinstance(value, str):
        return types.unicode_type
    try:
        return types.typeof(value)
    except (TypeError, NotImplementedError):
        return None


def note(function, args, result):
    """Records the argument types and the result type of a call."""
    kinds = tuple(map(_typeof, args))
    noted = function.__dict__.setdefault("_noted", {})
    key = tuple(map(str, kinds))  # types of different classes may be equal
    if None not in kinds and key not in noted:
        signature = types.Signature(_result_type(function, kinds) or _typeof(result), kinds)
        noted[key] = Overload(signature, function)


def _result_type(function, kinds):
    """Returns the result type of the compiled function if it is a number or a tuple of numbers, or
    None. The Python number that a call returns does not show this type."""
    if function.runs_in_python or not all(kind.text for kind in kinds):
        return None
    try:
        module, name = function._module()
        return _of_text(_kjit.get_result_type(module, name, ", ".join(kind.text for kind in kinds)))
    except Error:
        return None


def _of_text(text):
    """Returns the type of a number or of a tuple of numbers, or None."""
    if not text.startswith("(") or "(" in text[1:]:
        return types.of_text(text)
    kinds = [types.of_text(item) for item in text.strip("()").rstrip(",").split(", ")]
    if None in kinds:
        return None
    return types.UniTuple(kinds[0], len(kinds)) if len(set(kinds)) == 1 else types.Tuple(kinds)


def all_of(function):
    """Returns the overloads, in the order of the signatures or, without signatures, of the first
    calls."""
    if not function._signatures:
        return list(function.__dict__.get("_noted", {}).values())
    return [
        Overload(types.Signature(s.return_type or _result_type(function, tuple(s.args)), s.args), function)
        for s in function._signatures
    ]
