"""Errors and warnings of libkjit as Python exceptions with locations in the Python source."""

import re
import warnings

from . import _kjit, _phrases, _state


class Error(Exception):
    """Base class of all kjit exceptions.

    `status` is the libkjit status name. `code` names an error that kjit itself handles, such as "ARRAY_AS_NUMBER", or
    is None. `file`, `line` and `column` (starting at 1) locate the error in the Python source, or are None. `message`
    is the message alone; str() adds the location, the source line and a caret. In a KernelError, `block` and `thread`
    are the (x, y, z) indices of the failing thread, and `text` is the message of raise or assert. `thread` is None if a
    whole block failed. In other errors all three are None. If the program raised the exception, `args` are the
    arguments that the program passed to it.
    """

    __module__ = "kjit"
    block = thread = text = code = None
    _shown = None  # the result of str() if `args` are the arguments of the program's exception
    _unresolved = None  # the call and the argument types of a func that has no implementation yet, see kjit._overloading
    _where = None  # the part of the message that names the kernel and the failing thread

    def __init__(self, text="", status=None, message=None, file=None, line=None, column=None, notes=()):
        super().__init__(text)
        self.status, self.message, self.file, self.line, self.column = status, message or text, file, line, column
        self.notes = tuple(notes)

    def __str__(self):
        return super().__str__() if self._shown is None else self._shown

    def _replace_text(self, change):
        """Replaces the text that str() returns; change is a function of the text."""
        if self._shown is None:
            self.args = (change(self.args[0]), *self.args[1:])
        else:
            self._shown = change(self._shown)


class ProgramError(Error):
    """Base class of the exceptions for programs that kjit rejects because of their code, their types or their arguments'
    types."""

    __module__ = "kjit"


class SourceError(ProgramError):
    """Python code that is not supported in kernels; the message tells what to write instead."""

    __module__ = "kjit"


class SourceTypeError(SourceError, TypeError):
    """A SourceError that Python would report as a TypeError."""

    __module__ = "kjit"


class SourceValueError(SourceError, ValueError):
    """A SourceError that Python would report as a ValueError."""

    __module__ = "kjit"


class NotCompiledError(SourceError):
    """A call of a NumPy function that compiled code does not support, but Python can run."""


class KjitWarning(UserWarning):
    """A kernel probably does something that its author did not intend."""

    __module__ = "kjit"


def name_element(error, name, element):
    """Returns the same error with a message that names an elementwise function and the failing element, in place of
    the kernel that kjit generated for it. element is the index, or None."""
    where, words = error._where, _phrases.of_element(name, element)
    if where is not None:
        error.message = error.message.replace(where, words, 1)
        error._replace_text(lambda text: text.replace(where, words, 1))
        error._where = words
    return error


def add_caller(error, source, node, name):
    """Returns the same error with a note about the call that leads to the failing function."""
    place, quoted = source.place(node), source.quote(node.lineno)
    note = show("note", f"in function `{name}`, which is called here", place, quoted)
    error.notes += (note,)
    error._replace_text(lambda text: f"{text}\n{note}")


def _define(name, status, *bases, doc):
    return type(name, bases if ProgramError in bases else (Error, *bases), {"__doc__": doc, "__module__": "kjit", "status": status})


# Status codes of libkjit and their classes; test/python/errors.py checks that the table is complete.
CLASSES = {
    row[1]: _define(row[0], *row[1:-1], doc=row[-1])
    for row in [
        ("MisuseError", "KJIT_ERROR_MISUSE", "The call is invalid."),
        ("ParseError", "KJIT_ERROR_SYNTAX", ProgramError, "The text is not kernel IR."),
        ("TypingError", "KJIT_ERROR_TYPE", ProgramError, "An expression, a call or a signature has incompatible types."),
        ("UnknownNameError", "KJIT_ERROR_NAME", ProgramError, "A name is unknown or declared twice."),
        ("ArgumentError", "KJIT_ERROR_ARGUMENT", ProgramError, TypeError, "The arguments do not match the kernel."),
        ("UnsupportedError", "KJIT_ERROR_UNSUPPORTED", ProgramError, "kjit, the target or the architecture does not support a feature."),
        ("CompileError", "KJIT_ERROR_COMPILE", ProgramError, "The backend, the assembler or the driver rejected the code."),
        ("LaunchError", "KJIT_ERROR_LAUNCH", "The launch exceeds a limit of the device."),
        ("KernelError", "KJIT_ERROR_KERNEL", "A thread failed: raise, assert or a check."),
        ("DeviceError", "KJIT_ERROR_DEVICE", "A fault on the device."),
        ("NoDeviceError", "KJIT_ERROR_NO_DEVICE", "The device or its driver does not exist."),
        ("NoCompilerError", "KJIT_ERROR_NO_COMPILER", "libkjit-compiler cannot be loaded."),
        ("HostMemoryError", "KJIT_ERROR_MEMORY", MemoryError, "Out of host memory."),
        ("DeviceMemoryError", "KJIT_ERROR_DEVICE_MEMORY", MemoryError, "Out of device memory."),
        ("FileError", "KJIT_ERROR_IO", "A file cannot be read or written."),
        ("ForkedError", "KJIT_ERROR_FORKED", "The object belongs to the parent process of this process."),
        ("InterruptError", "KJIT_ERROR_INTERRUPTED", "A launch or a compilation was interrupted."),
        ("RefusedError", "KJIT_ERROR_REFUSED", ProgramError, "A guest's source uses a feature that guests may not use."),
        ("CompilerLostError", "KJIT_ERROR_COMPILER_LOST", "The compiling child process ended or took too long."),
        ("LimitError", "KJIT_ERROR_LIMIT", ProgramError, "A compilation exceeded a limit."),
    ]
}
KernelError, ArgumentError = CLASSES["KJIT_ERROR_KERNEL"], CLASSES["KJIT_ERROR_ARGUMENT"]

UNRESOLVED = "unresolved_overload_"  # the name of a func without an implementation begins with this

# Number of a kjit_failure -> the Python exception class that is the second base class of the error.
_RAISE = 1
_STEP, _RECURSION = 11, 12
FAILURES = {_RAISE: None, 2: AssertionError, 3: IndexError, 4: ZeroDivisionError, _STEP: ValueError, _RECURSION: RecursionError}
# (file, line, column) of a `raise` -> its class, and the arguments of the exception or None
_raised = {}
# (Python exception class) -> class that derives from it and from KernelError
_both = {}


def remember_raise(place, kind, args=None):
    """Records the class and the arguments of the exception that the `raise` at a Python location
    raises. Kernels keep only the message. args is None if kjit itself wrote the message."""
    _raised[_as_shown(place)] = kind, args


def _as_shown(place):
    """Returns a location whose file is written as in messages of libkjit, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in place[0] if c not in "\r\0"), *place[1:]


def character_column(line, column):
    """Converts a column of libkjit, which counts UTF-8 bytes, to a column that counts characters.
    Both count from 1."""
    if line is None or not column:
        return column or None
    return len(line.encode("utf-8", "replace")[: column - 1].decode(errors="replace")) + 1


def show(kind, message, place, quoted):
    """Returns a message with location, source line and caret, as kjit's tools print it. The column counts bytes."""
    if not place:
        return f"{kind}: {message}"
    file, line, column = place[0], place[1], character_column(quoted, place[2])
    text = f"{file}:{line}:{f'{column}:' if column else ''} {kind}: {message}"
    if quoted is None:
        return text
    blank = "".join(c if c == "\t" else " " for c in quoted[: column - 1]) if column else None
    return f"{text}\n  {quoted}" + (f"\n  {blank}^" if column else "")


def _find_raise(place):
    return _raised.get(_as_shown(place), (None, None)) if place else (None, None)


def _own_arguments(failure, place, text):
    """Returns the arguments of the exception that a `raise ValueError("neg", 3)` or `assert x, "text"` of the program
    raises, or None for other failures."""
    if failure == _RAISE:
        return _find_raise(place)[1]
    return (text,) if FAILURES.get(failure) is AssertionError and text else None


def _failure_class(failure, place):
    raised = _find_raise(place)[0] if failure == _RAISE else FAILURES.get(failure)
    return KernelError if raised is None else _class_of_both(raised)


def _class_of_both(raised):
    """Returns the class that derives from KernelError and from another exception class. Returns
    KernelError if the constructor of the other class needs arguments."""
    if raised not in _both:
        try:
            _both[raised] = type(
                raised.__name__, (KernelError, raised), {"__module__": "kjit", "__doc__": raised.__doc__}
            )
            _both[raised]("")
        except TypeError:  # the class' constructor needs arguments
            _both[raised] = KernelError
    return _both[raised]


def _copy_attributes(raised, error):
    """Copies an exception's attributes to an exception of a derived class. Python's exceptions have
    some attributes, such as errno, outside of __dict__; the constructor sets them."""
    own = next(kind for kind in type(raised).__mro__ if kind.__module__ == "builtins")
    own.__init__(error, *raised.__reduce__()[1])
    error.__dict__.update(vars(raised))
    for name in {name for kind in type(raised).__mro__ for name in kind.__dict__.get("__slots__", ())} - {"__dict__", "__weakref__"}:
        if hasattr(raised, name):
            setattr(error, name, getattr(raised, name))


def _as_python(value):
    """Converts a NumPy scalar to a Python number, because the simulator computes with NumPy
    scalars. Returns any other value unchanged."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "shape", None) == () and value.dtype.kind in "biufc" else value


def of_simulated(raised, function, place, block, thread):
    """Returns the exception to report for a thread of the simulator that has raised `raised`. As for a
    compiled kernel, it is a KernelError that also has the class, the arguments and the attributes of
    `raised`. function: the kernel's name; place: the file and the line of the raise, or None."""
    kind = _class_of_both(type(raised))
    error = kind.__new__(kind)
    raised.args = tuple(_as_python(value) for value in raised.args)
    if kind is not KernelError:
        _copy_attributes(raised, error)
    error.args, error.status, error.message, error.text = raised.args, "KJIT_ERROR_KERNEL", str(raised), str(raised)
    error.file, error.line = place or (None, None)
    error.column, error.notes = None, ()
    error.block, error.thread = block, thread
    where = f"In function {function!r}" + (f", file {place[0]}, line {place[1]}" if place else "")
    said = f": {error.message}" if error.message else ""
    error._shown = f"{error.message or type(raised).__name__}\n{where}\ntid={list(thread)} ctaid={list(block)}{said}"
    error.__cause__, error.__suppress_context__ = raised.__cause__ if kind is not KernelError else raised, True
    return error.with_traceback(raised.__traceback__)


def _unresolved(parts):
    """Reads a message that `kjit._overloading` has written about a func without an implementation. Returns (the number of the
    call, its arguments' types as text), or None for other messages."""
    types = _phrases.argument_of(parts, "VALUE_TYPE")
    number = next((p.partition("`" + UNRESOLVED)[2].partition("`")[0] for p in parts if isinstance(p, str)), "")
    return (int(number), types) if number and types else None


def make(status, diagnostics):
    """Returns the exception for a status and diagnostics of libkjit; the extension calls this function.

    Each diagnostic is a tuple (severity, file, line, column, message, source line, code). The message is a list of strings
    and phrases, as _phrases.in_python takes it. If a thread failed, the tuple has four more items: failure number, block,
    thread and text. thread is None if a whole block failed.
    """
    texts, first, failure, first_code, where = [], None, None, None, None
    unresolved = next(filter(None, (_unresolved(row[4]) for row in diagnostics)), None)
    for severity, file, line, column, parts, quoted, code, *thread in _at_call(diagnostics):
        if severity == 2:  # a remark is advice about speed
            continue
        place = (file, line, column) if file and line else None
        if thread and thread[0] == _STEP:
            # Python's messages
            is_range = "`range`" in _phrases.as_in_libkjit(parts)
            parts = ["range() arg 3 must not be zero" if is_range else "slice step cannot be zero"]
        if unresolved and severity == 0:
            parts = ["a function defined by overload is supported only in njit functions and kernels of kjit.cuda"]
        message = _phrases.in_python(parts, not thread and status != "KJIT_ERROR_SYNTAX")
        texts.append(show(("error", "warning", "remark", "note")[severity], message, place, quoted))
        if first is None and severity == 0:
            first, failure, first_code, where = (message, place, quoted), thread, code, _phrases.failed_thread(parts)
    message, place, quoted = first or (status, None, None)
    kind = CLASSES.get(status, Error)
    if kind is KernelError and failure:
        kind = _failure_class(failure[0], place)
    text = "\n".join(texts) or status
    error = kind(text)
    error.status, error.code, error.message, error.notes = status, first_code, message, tuple(texts[1:])
    error._unresolved, error._where = unresolved, where
    error.file, error.line, error.column = (
        (*place[:2], character_column(quoted, place[2])) if place else (None, None, None)
    )
    if status == "KJIT_ERROR_DEVICE_MEMORY" and _state.device_memory is not None:
        error.__cause__ = _state.device_memory.take_failure()
    if failure:
        error.block, error.thread, error.text = failure[1:]
        args = _own_arguments(failure[0], place, failure[3])
        if args is not None:
            error.args, error._shown = args, text
    return error


def _at_call(diagnostics):
    """Moves an error in kjit's own library code to the call in the program. Compiler errors then
    also name the called function, because their messages refer to names inside the library."""
    rows = [list(row) for row in diagnostics]
    calls = [i for i, row in enumerate(rows) if row[0] == 3 and row[1] and not _phrases.is_of_library(row[1:4])]
    if rows and rows[0][0] == 0 and rows[0][1] and _phrases.is_of_library(rows[0][1:4]) and calls:
        message, rest = rows[0][4], rows[0][6:]
        rows = rows[calls[0] :]
        called = _called(rows[0][5], rows[0][3]) if len(rest) == 1 else None
        if called:
            message = [f"`{called}` with these arguments: ", *message]
        rows[0] = [0, *rows[0][1:4], message, rows[0][5], *rest]
    return rows


def _called(line, column):
    """Returns the name of the function that a source line calls at a column, or None."""
    start = character_column(line, column)
    found = re.match(r"[A-Za-z_][\w.]*(?=\()", line[start - 1 :]) if line and start else None
    return found and found[0]


def warn(file, line, column, message, quoted):
    """Issues a warning of libkjit; the extension calls this function."""
    message = _phrases.in_python([message])
    if file and line:
        warnings.warn_explicit(show("warning", message, (file, line, column), quoted), KjitWarning, file, line)
    else:
        warnings.warn(message, KjitWarning, stacklevel=2)


_kjit.set_error_factory(make, Error)
