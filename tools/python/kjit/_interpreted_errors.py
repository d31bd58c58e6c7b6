"""Errors about types in functions that Python's interpreter runs. Numba finds such an error at compile time and raises a TypingError.
In kjit, NumPy or Python raises a TypeError at run time, and this module adds the location in the function."""

import dis
import os

from ._errors import Error, SourceTypeError, show

_RAISE = dis.opmap["RAISE_VARARGS"]
_KJIT = os.path.dirname(__file__) + os.sep


def of_types(error, code, source):
    """Returns the SourceTypeError for a TypeError that an operation in a function has raised. Returns None for an error of kjit, and
    for an error that the program itself has raised. code: the code object of the function; source: its source."""
    if isinstance(error, Error):
        return None
    frames, own = [], None
    place = error.__traceback__
    while place is not None:
        frames.append(place)
        if place.tb_frame.f_code.co_filename == code.co_filename and place.tb_frame.f_code.co_name == code.co_name:
            own = place
        place = place.tb_next
    if own is None or not _is_of_operation(frames[-1], own):
        return None
    where = code.co_filename, own.tb_lineno, _column(own)
    message = str(error)
    made = SourceTypeError(show("error", message, where, source.quote(own.tb_lineno)), "KJIT_ERROR_TYPE", message, *where)
    return made


def _is_of_operation(last, own):
    """Returns whether NumPy, kjit or an operation in the function raised the error, and not a `raise` of the program."""
    if last is own:
        return last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE
    file = last.tb_frame.f_code.co_filename
    module = last.tb_frame.f_globals.get("__name__", "")
    return file.startswith(_KJIT) or file == "<expression>" or str(module).partition(".")[0] == "numpy"


def _column(place):
    """Returns the column of the operation, from 1, or None if this version of Python has no
    columns."""
    code = place.tb_frame.f_code
    if not hasattr(code, "co_positions"):  # before Python 3.11
        return None
    column = list(code.co_positions())[place.tb_lasti // 2][2]
    return None if column is None else column + 1
