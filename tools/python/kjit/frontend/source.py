"""The source of functions: text and syntax tree of their file, and their place in it."""

import __future__

import ast
import collections
import os
import sys
import types
from _thread import _local

from .._errors import SourceError, character_column, show

_sources: dict[str, object] = {}  # by file


class Source:
    """is_fixed: it came with the function, from another process."""

    def __init__(self, file, lines, is_fixed=False):
        self.file, self.lines, self.is_fixed = file, lines, is_fixed
        self._tree = None

    @property
    def tree(self):
        if self._tree is None:
            self._tree = ast.parse("".join(self.lines), self.file)
        return self._tree

    def quote(self, line):
        return self.lines[line - 1].rstrip("\n") if 0 < line <= len(self.lines) else None

    def place(self, node):
        """Line and column from 1, which counts bytes of UTF-8 as libkjit's columns do."""
        return self.file, node.lineno, node.col_offset + 1

    def error(self, node, message, kind=SourceError):
        place, quoted = self.place(node), self.quote(node.lineno)
        column = character_column(quoted, place[2])
        return kind(show("error", message, place, quoted), "KJIT_ERROR_SYNTAX", message, *place[:2], column)

    def operator_place(self, left, right, text):
        """Where between two operands their operator stands."""
        if left.end_lineno == right.lineno:
            line = (self.quote(right.lineno) or "").encode("utf-8", "replace")
            at = line.find(text.encode(), left.end_col_offset)
            if at >= 0:
                return self.file, right.lineno, at + 1
        return self.place(left)


def of(function):
    """The source that is remembered of a function, else as it is now."""
    known = getattr(function, "__kjit_source__", None)
    return known if known and known.file == function.__code__.co_filename else remember(function)


def remember(function):
    """The source as it is now: the file may be another one when the function is compiled."""
    fixed = getattr(function, "__kjit_source__", None)
    if fixed and fixed.is_fixed:
        return fixed
    file = function.__code__.co_filename
    lines = _lines(file, function.__globals__) or _recover(function)
    known = _sources.get(file)
    if not known or known.lines != lines:
        known = _sources[file] = Source(file, lines)
    return known


# ---- texts of files ----

_files: dict = {}  # name -> (time of its last change, its size, its lines)


def _lines(file, names):
    """The lines of a file as it is now, as linecache has them, which also knows cells of notebooks and archives. An import of it
    takes as long as compiling a small function: where nobody has done so, files are read here."""
    lines = None if "linecache" in sys.modules else _read(file)
    if lines is None:
        import linecache

        linecache.checkcache(file)
        lines = linecache.getlines(file, names)
    return lines


def _read(file):
    """None: it is no file of its own, or its first bytes say something of its encoding."""
    try:
        status = os.stat(file)
        version = status.st_mtime_ns, status.st_size
        if file not in _files or _files[file][:2] != version:
            with open(file, "rb") as opened:
                head = opened.readline(200) + opened.readline(200)
            if b"coding" in head or head.startswith(b"\xef\xbb\xbf"):
                return None
            with open(file, encoding="utf-8") as opened:
                lines = opened.readlines()
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            _files[file] = *version, lines
        return _files[file][2]
    except (OSError, ValueError):
        return None


# ---- texts without a file ----

_MOST_TEXTS = 1000
_texts: collections.deque = collections.deque(maxlen=_MOST_TEXTS)  # (file, text) of the latest
_keeps = False
_here = _local()  # is_busy: this thread compiles a text to compare it


def keep_sources():
    """From now on texts that are compiled (exec, eval, compile) are kept, the latest 1000, so that functions in them can be
    kernels: such a function knows no file to read its source from. It cannot be undone in this process."""
    global _keeps
    if not _keeps:
        _keeps = True
        sys.addaudithook(_hear)


def _hear(event, arguments):
    if event == "compile" and not getattr(_here, "is_busy", False):
        text, file = arguments
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        if isinstance(text, str) and isinstance(file, str) and ("def " in text or "lambda" in text):
            _texts.append((file, text))


def _contains(code, wanted):
    return any(isinstance(c, types.CodeType) and (c == wanted or _contains(c, wanted)) for c in code.co_consts)


def _recover(function):
    """The lines of a text that was kept, or that Python was started with (-c), whose code the function is; or none."""
    code = function.__code__
    texts = [text for file, text in reversed(_texts) if file == code.co_filename]
    if code.co_filename == "<string>" and "-c" in sys.orig_argv[:-1]:
        texts.append(sys.orig_argv[sys.orig_argv.index("-c") + 1])
    _here.is_busy = True
    try:
        for text in texts:
            try:
                whole = compile(
                    text, code.co_filename, "exec", code.co_flags & __future__.annotations.compiler_flag, True
                )
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            if _contains(whole, code):
                return text.splitlines(keepends=True)
    finally:
        _here.is_busy = False
    return []


def find(function, source):
    """The function's node in the tree of its source."""
    code = function.__code__
    missing = SourceError(
        f"the source of {function.__qualname__} is not to be found ({code.co_filename}): kjit reads it; "
        "define the function in a file or in a cell of a notebook, or call kjit.keep_sources() before the text is compiled",
        "KJIT_ERROR_SYNTAX",
    )
    if not source.lines:
        raise missing
    try:
        tree = source.tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise missing from None
    positions = {(line, column) for line, _, column, _ in code.co_positions() if line is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if code.co_firstlineno == min([node.lineno, *(d.lineno for d in node.decorator_list)]):
                return node
        elif (
            isinstance(node, ast.AsyncFunctionDef) and node.lineno == code.co_firstlineno and node.name == code.co_name
        ):
            raise source.error(node, "an async function cannot be compiled: write a plain one")
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            if node.lineno == code.co_firstlineno and (node.body.lineno, node.body.col_offset) in positions:
                return node
    constant = _find_constant(tree, code)
    if constant is None:
        raise missing
    return constant


def _find_constant(tree, code):
    """A lambda that is a constant: from Python 3.12 on its code says no position of it. Several of a line are one and the same to a
    kernel where their texts are."""
    if code.co_name != "<lambda>":
        return None
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Constant) and node.lineno == code.co_firstlineno
        and [a.arg for a in node.args.posonlyargs + node.args.args] == list(code.co_varnames[: code.co_argcount])
        and any(type(c) is type(node.body.value) and c == node.body.value for c in (*code.co_consts, None))
    ]
    return found[0] if len({ast.dump(node) for node in found}) == 1 else None
