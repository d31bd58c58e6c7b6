"""Errors and warnings of libkjit as exceptions, at places of the Python source."""
import re
import warnings
import weakref

from . import _kjit


class Error(Exception):
    """What every failure of kjit is. `status` is libkjit's name of it; `file`, `line`, `column` (from 1) the place in the
    Python source, or None; `message` the sentence alone, which str() gives with place, source line and caret. Of a
    thread that failed (KernelError) `block` and `thread` are its positions in x, y and z, else None."""
    __module__ = "kjit"
    block = thread = None

    def __init__(self, text="", status=None, message=None, file=None, line=None, column=None, notes=()):
        super().__init__(text)
        self.status, self.message, self.file, self.line, self.column = status, message or text, file, line, column
        self.notes = tuple(notes)


class SourceError(Error):
    """Python that no kernel can have; the message says what to write instead."""
    __module__ = "kjit"


class KjitWarning(UserWarning):
    """Something in a kernel that was probably not meant."""
    __module__ = "kjit"


def _define(name, status, *bases, doc):
    return type(name, (Error, *bases), {"__doc__": doc, "__module__": "kjit", "status": status})


# libkjit's statuses, each with its class; test/python/errors.py checks that none is missing.
CLASSES = {row[1]: _define(row[0], *row[1:-1], doc=row[-1]) for row in [
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
]}
KernelError = CLASSES["KJIT_ERROR_KERNEL"]

# Modules of kernel IR by the name that libkjit calls them, for their line maps.
_modules = weakref.WeakValueDictionary()
# What a failing thread says: of which kernel, block and thread; of an index.
_THREAD = re.compile(r"kernel `(.*?)`, block \((\d+), (\d+), (\d+)\), thread \((\d+), (\d+), (\d+)\): ")
_BOUNDS = re.compile(r"index -?\d+ of ")
# (exception class of Python) -> class that is both it and KernelError
_both = {}


class LineMap:
    """Where each line of a module's kernel IR comes from. places[i]: of line i + 1, pairs of a column there (from 1) and
    (file, line, column) in Python. failures: line -> exception class of `raise` and `assert`."""

    def __init__(self, name, places, failures, quote):
        self.name, self.places, self.failures, self.quote = name, places, failures, quote
        _modules[name] = self

    def find(self, line, column):
        marks = self.places[line - 1] if 0 < line <= len(self.places) else []
        best = None
        for at, place in marks:
            if best is None or at <= column:
                best = place
        return best


def show(kind, message, place, quoted):
    """The text that kjit's tools print for a message: place, sentence, source line and caret."""
    if not place:
        return f"{kind}: {message}"
    file, line, column = place
    text = f"{file}:{line}:{column}: {kind}: {message}"
    if quoted is None:
        return text
    blank = re.sub(r"[^\t]", " ", quoted[:column - 1])
    return f"{text}\n  {quoted}\n  {blank}^"


def _translate(file, line, column):
    """The place in Python, the source line, and the map's exception class there."""
    module = _modules.get(file)
    if not module:
        return ((file, line, column) if file and line else None), None, None
    place = module.find(line, column)
    return place, module.quote(place), module.failures.get(line)


def _failure_class(raised, message):
    if raised is None:
        if _BOUNDS.search(message):
            raised = IndexError
        elif ": division of " in message:
            raised = ZeroDivisionError
        else:
            return KernelError
    if raised not in _both:
        try:
            _both[raised] = type(raised.__name__, (KernelError, raised), {"__module__": "kjit", "__doc__": raised.__doc__})
            _both[raised]("")
        except TypeError:  # a class whose objects are made otherwise
            _both[raised] = KernelError
    return _both[raised]


def make(status, diagnostics):
    """The exception for a status and the diagnostics of libkjit; the extension calls this."""
    texts, first, raised = [], None, None
    for severity, _, file, line, column, message, source in diagnostics:
        if severity == 2:  # a remark is advice about speed
            continue
        place, quoted, failure = _translate(file, line, column)
        kind = ("error", "warning", "remark", "note")[severity]
        texts.append(show(kind, message, place, quoted if quoted is not None else source))
        if first is None and severity == 0:
            first, raised = (message, place), failure
    message, place = first or (status, None)
    kind = CLASSES.get(status, Error)
    if kind is KernelError:
        kind = _failure_class(raised, message)
    text = "\n".join(texts) or status
    error = kind(text)
    error.status, error.message, error.notes = status, message, tuple(texts[1:])
    error.file, error.line, error.column = place or (None, None, None)
    thread = _THREAD.match(message) if isinstance(error, KernelError) else None
    if thread:
        numbers = tuple(map(int, thread.groups()[1:]))
        error.block, error.thread = numbers[:3], numbers[3:]
    return error


def warn(file, place, message):
    """A warning of libkjit; the extension calls this."""
    line, column = map(int, place.split(":"))
    found, quoted, _ = _translate(file, line, column)
    if found:
        warnings.warn_explicit(show("warning", message, found, quoted), KjitWarning, found[0], found[1])
    else:
        warnings.warn(message, KjitWarning, stacklevel=2)


_kjit.set_error_factory(make, Error)
