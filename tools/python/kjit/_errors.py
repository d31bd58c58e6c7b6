"""Errors and warnings of libkjit as exceptions, at places of the Python source."""

import warnings

from . import _kjit, _phrases, _state


class Error(Exception):
    """What every failure of kjit is. `status` is libkjit's name of it, and `code` its name for one of the errors that
    kjit itself treats in a way of its own, such as "ARRAY_AS_NUMBER", or None; `file`, `line`, `column` (from 1) the place in the
    Python source, or None; `message` the sentence alone, which str() gives with place, source line and caret. Of a
    thread that failed (KernelError) `block` and `thread` are its positions in x, y and z, else None (`thread` also where
    all of a block failed), and `text` what the kernel's raise or assert says, or None. `args` of an exception that the
    program raises are the program's own."""

    __module__ = "kjit"
    block = thread = text = code = None
    _shown = None  # what str() gives, where args are the program's own

    def __init__(self, text="", status=None, message=None, file=None, line=None, column=None, notes=()):
        super().__init__(text)
        self.status, self.message, self.file, self.line, self.column = status, message or text, file, line, column
        self.notes = tuple(notes)

    def __str__(self):
        return super().__str__() if self._shown is None else self._shown

    def _replace_text(self, change):
        """change: a function of the text that str() gives."""
        if self._shown is None:
            self.args = (change(self.args[0]), *self.args[1:])
        else:
            self._shown = change(self._shown)


class SourceError(Error):
    """Python that no kernel can have; the message says what to write instead."""

    __module__ = "kjit"


class SourceTypeError(SourceError, TypeError):
    """The same, of what Python calls a type error."""

    __module__ = "kjit"


class SourceValueError(SourceError, ValueError):
    """The same, of what Python calls a value error."""

    __module__ = "kjit"


class NotCompiledError(SourceError):
    """A call of a function of NumPy that Python can run and compiled code does not have."""


class KjitWarning(UserWarning):
    """Something in a kernel that was probably not meant."""

    __module__ = "kjit"


def name_element(error, name, element):
    """The same error, of a function of elements that a kernel of kjit's own has called. element: its index, or None."""
    error.message = _phrases.of_element(error.message, name, element)
    error._replace_text(lambda text: _phrases.of_element(text, name, element))
    return error


def add_caller(error, source, node, name):
    """The same error with a note, behind its text, on the call that leads to the function it is in."""
    place, quoted = source.place(node), source.quote(node.lineno)
    note = show("note", f"in function `{name}`, which is called here", place, quoted)
    error.notes += (note,)
    error._replace_text(lambda text: f"{text}\n{note}")


def _define(name, status, *bases, doc):
    return type(name, (Error, *bases), {"__doc__": doc, "__module__": "kjit", "status": status})


# libkjit's statuses, each with its class; test/python/errors.py checks that none is missing.
CLASSES = {
    row[1]: _define(row[0], *row[1:-1], doc=row[-1])
    for row in [
        ("MisuseError", "KJIT_ERROR_MISUSE", "The call itself is wrong."),
        ("ParseError", "KJIT_ERROR_SYNTAX", "The text is not kernel IR."),
        ("TypingError", "KJIT_ERROR_TYPE", "The types of an expression, a call or a signature do not fit."),
        ("UnknownNameError", "KJIT_ERROR_NAME", "A name is unknown or declared twice."),
        ("ArgumentError", "KJIT_ERROR_ARGUMENT", TypeError, "The arguments do not fit the kernel."),
        ("UnsupportedError", "KJIT_ERROR_UNSUPPORTED", "kjit, the target or the architecture lacks it."),
        ("CompileError", "KJIT_ERROR_COMPILE", "The backend, the assembler or the driver refused the code."),
        ("LaunchError", "KJIT_ERROR_LAUNCH", "A limit of the device was exceeded."),
        ("KernelError", "KJIT_ERROR_KERNEL", "A thread failed: raise, assert or a check."),
        ("DeviceError", "KJIT_ERROR_DEVICE", "A fault on the device."),
        ("NoDeviceError", "KJIT_ERROR_NO_DEVICE", "No such device, or no driver for it."),
        ("NoCompilerError", "KJIT_ERROR_NO_COMPILER", "libkjit-compiler could not be loaded."),
        ("HostMemoryError", "KJIT_ERROR_MEMORY", MemoryError, "Out of host memory."),
        ("DeviceMemoryError", "KJIT_ERROR_DEVICE_MEMORY", MemoryError, "Out of device memory."),
        ("FileError", "KJIT_ERROR_IO", "A file could not be read or written."),
        ("ForkedError", "KJIT_ERROR_FORKED", "The object belongs to the process that this one was forked from."),
        ("InterruptError", "KJIT_ERROR_INTERRUPTED", "A launch or a compilation was interrupted."),
        ("RefusedError", "KJIT_ERROR_REFUSED", "A guest's source asks for what guests may not do."),
        ("CompilerLostError", "KJIT_ERROR_COMPILER_LOST", "The child process that was compiling has ended."),
        ("LimitError", "KJIT_ERROR_LIMIT", "A compilation went over one of its limits."),
    ]
}
KernelError, ArgumentError = CLASSES["KJIT_ERROR_KERNEL"], CLASSES["KJIT_ERROR_ARGUMENT"]

# kjit_failure's numbers, each with the exception of Python that it is, too.
_RAISE = 1
_STEP, _RECURSION = 11, 12
FAILURES = {_RAISE: None, 2: AssertionError, 3: IndexError, 4: ZeroDivisionError, _STEP: ValueError, _RECURSION: RecursionError}
# (file, line, column) of a `raise` -> its class, and the arguments of the exception or None
_raised = {}
# (exception class of Python) -> class that is both it and KernelError
_both = {}


def remember_raise(place, kind, args=None):
    """The class of exceptions that a `raise` at a place of Python raises, and their arguments, or None for kjit's own text: kernels
    have a text only."""
    _raised[_as_shown(place)] = kind, args


def _as_shown(place):
    """A place with its file as messages of libkjit name it, which have no control characters."""
    return "".join(c if c.isprintable() else "?" for c in place[0] if c not in "\r\0"), *place[1:]


def character_column(line, column):
    """The column (from 1) of a character, from one that counts bytes of UTF-8 as libkjit's do."""
    if line is None or not column:
        return column or None
    return len(line.encode("utf-8", "replace")[: column - 1].decode(errors="replace")) + 1


def show(kind, message, place, quoted):
    """The text that kjit's tools print for a message: place, sentence, source line and caret. The column counts bytes."""
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
    """The arguments of the program's own exception, or None: of `raise ValueError("neg", 3)`, of `assert x, "text"`."""
    if failure == _RAISE:
        return _find_raise(place)[1]
    return (text,) if FAILURES.get(failure) is AssertionError and text else None


def _failure_class(failure, place):
    raised = _find_raise(place)[0] if failure == _RAISE else FAILURES.get(failure)
    if raised is None:
        return KernelError
    if raised not in _both:
        try:
            _both[raised] = type(
                raised.__name__, (KernelError, raised), {"__module__": "kjit", "__doc__": raised.__doc__}
            )
            _both[raised]("")
        except TypeError:  # a class whose objects are made otherwise
            _both[raised] = KernelError
    return _both[raised]


def make(status, diagnostics):
    """The exception for a status and the diagnostics of libkjit; the extension calls this. Each is a tuple (severity, file,
    line, column, message, source line), of a thread that failed with (number of the failure, block, thread, text) behind it,
    where thread is None if all of the block failed."""
    texts, first, failure, first_code = [], None, None, None
    for severity, file, line, column, message, quoted, code, *thread in _at_call(diagnostics):
        if severity == 2:  # a remark is advice about speed
            continue
        place = (file, line, column) if file and line else None
        if thread and thread[0] == _STEP:
            message = "range() arg 3 must not be zero"  # as Python says it
        message = _phrases.in_python(message)
        texts.append(show(("error", "warning", "remark", "note")[severity], message, place, quoted))
        if first is None and severity == 0:
            first, failure, first_code = (message, place, quoted), thread, code
    message, place, quoted = first or (status, None, None)
    kind = CLASSES.get(status, Error)
    if kind is KernelError and failure:
        kind = _failure_class(failure[0], place)
    text = "\n".join(texts) or status
    error = kind(text)
    error.status, error.code, error.message, error.notes = status, first_code, message, tuple(texts[1:])
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
    """What is wrong in a function of kjit's own library is shown where the program calls it."""
    rows = [list(row) for row in diagnostics]
    calls = [i for i, row in enumerate(rows) if row[0] == 3 and row[1] and not _phrases.is_of_library(row[1:4])]
    if rows and rows[0][0] == 0 and rows[0][1] and _phrases.is_of_library(rows[0][1:4]) and calls:
        message, rest = rows[0][4], rows[0][6:]
        rows = rows[calls[0] :]
        rows[0] = [0, *rows[0][1:4], message, rows[0][5], *rest]
    return rows


def warn(file, line, column, message, quoted):
    """A warning of libkjit; the extension calls this."""
    message = _phrases.in_python(message)
    if file and line:
        warnings.warn_explicit(show("warning", message, (file, line, column), quoted), KjitWarning, file, line)
    else:
        warnings.warn(message, KjitWarning, stacklevel=2)


_kjit.set_error_factory(make, Error)
