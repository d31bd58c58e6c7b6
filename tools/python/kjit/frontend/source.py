"""The source of functions: text and syntax tree of their file, and their place in it."""

import ast
import os
import sys
import types

from .. import _kjit
from .._errors import SourceError, character_column, show
from . import lambdas

_sources: dict[str, object] = {}  # by file


class Source:
    """is_fixed: it came with the function, from another process. tree: the syntax tree, where there never was a text."""

    def __init__(self, file, lines, is_fixed=False, tree=None):
        self.file, self.lines, self.is_fixed, self.is_tree = file, lines, is_fixed, tree is not None
        self._tree = tree

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
    lines = _lines(file, function.__globals__)
    recovered = None if lines else _recover(function)
    known = _sources.get(file)
    if recovered is not None and (not known or known.lines != recovered.lines or recovered.is_tree):
        known = _sources[file] = recovered
    elif recovered is None and (not known or known.lines != lines):
        known = _sources[file] = Source(file, lines)
    return known


# ---- texts of files ----

_files: dict = {}  # name -> (time of its last change, its size, its lines)


def _lines(file, names):
    """The lines of a file as it is now, as linecache has them, which also knows cells of notebooks and archives. An import of it
    takes as long as compiling a small function: where nobody has done so, files are read here."""
    if file == "<string>":
        return []  # linecache of Python 3.13 has the text of -c under this name, which other texts have, too
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


# ---- texts and syntax trees without a file ----


def keep_sources():
    """From now on texts and syntax trees that are compiled (exec, eval, compile) are kept, the latest 1000, so that functions in
    them can be kernels: such a function knows no file to read its source from. The imports of kjit.cuda and of kjit.njit do the
    same. It cannot be undone in this process."""
    if not _kjit.listen():
        raise RuntimeError("this Python interpreter does not report compilations (PySys_AddAuditHook)")


def _contains(code, wanted):
    return any(isinstance(c, types.CodeType) and (c == wanted or _contains(c, wanted)) for c in code.co_consts)


def _recover(function):
    """The source of a text or tree that was kept, or of the text that Python was started with (-c), whose code the function is; or
    None."""
    code = function.__code__
    kept = [source for source, file in reversed(_kjit.heard()) if file in (code.co_filename, None)]
    if code.co_filename == "<string>" and "-c" in sys.orig_argv[:-1]:
        kept.append(sys.orig_argv[sys.orig_argv.index("-c") + 1])
    for source in kept:
        if isinstance(source, bytes):
            source = source.decode("utf-8", "replace")
        whole = lambdas.recompile(source, code)
        if whole is None or not _contains(whole, code):
            continue
        if isinstance(source, str):
            return Source(code.co_filename, source.splitlines(keepends=True))
        return Source(code.co_filename, [], tree=source)
    return None


def find(function, source):
    """The function's node in the tree of its source."""
    code = function.__code__
    missing = SourceError(
        f"the source of {function.__qualname__} is not to be found ({code.co_filename}): kjit reads it; "
        "define the function in a file or in a cell of a notebook, or call kjit.keep_sources() before the text is compiled",
        "KJIT_ERROR_SYNTAX",
    )
    if not source.lines and not source.is_tree:
        raise missing
    try:
        tree = source.tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise missing from None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if code.co_firstlineno == min([node.lineno, *(d.lineno for d in node.decorator_list)]):
                return node
        elif (
            isinstance(node, ast.AsyncFunctionDef) and node.lineno == code.co_firstlineno and node.name == code.co_name
        ):
            raise source.error(node, "an async function cannot be compiled: write an ordinary function")
    node = lambdas.find(tree, code)
    if node is None:
        raise missing
    return node
