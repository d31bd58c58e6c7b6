"""Finds the source of functions: the lines and the syntax tree of a file, and a function's position
in it."""

import ast
import collections
import os
import sys
import types

from .. import _kjit
from .._errors import SourceError, character_column, show
from . import lambdas

_sources: dict[str, object] = {}  # by file


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _first_line(node):
    return min((node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))))


def _has_line(statement, line):
    """Returns whether a statement in a file contains the line."""
    if statement.end_lineno < line:
        return False
    decorators = getattr(statement, "decorator_list", None)
    return (decorators[0].lineno if decorators else statement.lineno) <= line


def _nodes_at(tree, line):
    """Yields nodes in the order of ast.walk. Skips statements that do not contain the line, with
    all their parts, because a file can have thousands of such statements."""
    nodes = collections.deque([tree])
    while nodes:
        node = nodes.popleft()
        yield node
        for part in ast.iter_child_nodes(node):
            if not isinstance(part, ast.stmt) or _has_line(part, line):
                nodes.append(part)


class Source:
    """A file's source. is_fixed: it came with an unpickled function. tree: the syntax tree, for
    code that was compiled from a tree and never had text."""

    def __init__(self, file, lines, is_fixed=False, tree=None):
        self.file, self.lines, self.is_fixed, self.is_tree = file, lines, is_fixed, tree is not None
        self._tree, self._functions = tree, {}

    @property
    def tree(self):
        if self._tree is None:
            self._tree = ast.parse("".join(self.lines), self.file)
        return self._tree

    def functions_at(self, line):
        """Returns the functions and lambda expressions of the tree that begin on a line, in the order
        of ast.walk. A function with decorators begins at the first decorator."""
        found = self._functions.get(line)
        if found is None:
            # a tree that the program has made can contain any line numbers
            nodes = ast.walk(self.tree) if self.is_tree else _nodes_at(self.tree, line)
            found = self._functions[line] = [n for n in nodes if isinstance(n, _FUNCTIONS) and _first_line(n) == line]
        return found

    def quote(self, line):
        return self.lines[line - 1].rstrip("\n") if 0 < line <= len(self.lines) else None

    def place(self, node):
        """Returns (file, line, column). Line and column count from 1; the column counts bytes of
        UTF-8, like libkjit's columns."""
        return self.file, node.lineno, node.col_offset + 1

    def error(self, node, message, kind=SourceError):
        place, quoted = self.place(node), self.quote(node.lineno)
        column = character_column(quoted, place[2])
        return kind(show("error", message, place, quoted), "KJIT_ERROR_SYNTAX", message, *place[:2], column)

    def operator_place(self, left, right, text):
        """Returns the location of the operator between two operands."""
        if left.end_lineno == right.lineno:
            line = (self.quote(right.lineno) or "").encode("utf-8", "replace")
            at = line.find(text.encode(), left.end_col_offset)
            if at >= 0:
                return self.file, right.lineno, at + 1
        return self.place(left)


def of(function):
    """Returns the source that is stored with a function, or else the current source."""
    known = getattr(function, "__kjit_source__", None)
    return known if known and known.file == function.__code__.co_filename else remember(function)


def remember(function):
    """Returns the function's current source. It is read at decoration, because the file may change
    before the function is compiled."""
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


# ---- lines of files ----

_files: dict = {}  # name -> (time of its last change, its size, its lines)


def _lines(file, names):
    """Returns the current lines in a file. linecache also knows notebook cells and archives, but
    importing it takes as long as compiling a small function. Unless linecache is already imported,
    this module reads the files itself."""
    if file == "<string>":
        # since Python 3.13, linecache has the text of `python -c` under this name, but other texts have the same name
        return []
    lines = None if "linecache" in sys.modules else _read(file)
    if lines is None:
        import linecache

        linecache.checkcache(file)
        lines = linecache.getlines(file, names)
    return lines


def _read(file):
    """Returns a file's lines, or None if it is not a regular file or declares an encoding."""
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


# ---- strings and syntax trees without a file ----


def keep_sources():
    """Keeps the latest 1000 strings and syntax trees that exec, eval and compile process from now
    on, so that functions in them can be kernels. kjit cannot read the source of such functions
    otherwise. Importing kjit.cuda or kjit.njit has the same effect. It cannot be undone in this
    process. Raises RuntimeError if the Python interpreter does not report compilations."""
    if not _kjit.listen():
        raise RuntimeError("this Python interpreter does not report compilations (PySys_AddAuditHook)")


def _contains(code, wanted):
    return any(isinstance(c, types.CodeType) and (c == wanted or _contains(c, wanted)) for c in code.co_consts)


def _recover(function):
    """Returns the Source in which the function is defined: a string or tree that keep_sources has
    kept, or the program of `python -c`. Returns None if there is none."""
    code = function.__code__
    kept = [source for source, file in reversed(_kjit.recorded_sources()) if file in (code.co_filename, None)]
    if code.co_filename == "<string>" and "-c" in sys.orig_argv[:-1]:
        kept.append(sys.orig_argv[sys.orig_argv.index("-c") + 1])
    for source in kept:
        if isinstance(source, bytes):
            source = source.decode("utf-8", "replace")
        if isinstance(source, str) and source.isascii() and code.co_name.isidentifier() and code.co_name not in source:
            # skips the slow compilation. This is correct only for ASCII, because Python normalizes other names.
            continue
        whole = lambdas.recompile(source, code)
        if whole is None or not _contains(whole, code):
            continue
        if isinstance(source, str):
            return Source(code.co_filename, source.splitlines(keepends=True))
        return Source(code.co_filename, [], tree=source)
    return None


def find(function, source):
    """Returns the function's node in the syntax tree of its source. Raises SourceError if the
    source cannot be found."""
    code = function.__code__
    missing = SourceError(
        f"the source of {function.__qualname__} cannot be found ({code.co_filename}): kjit reads it; "
        "define the function in a file or in a cell of a notebook, or call kjit.keep_sources() before the text is compiled",
        "KJIT_ERROR_SYNTAX",
    )
    if not source.lines and not source.is_tree:
        raise missing
    try:
        nodes = source.functions_at(code.co_firstlineno)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise missing from None
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            return node
        if isinstance(node, ast.AsyncFunctionDef) and node.name == code.co_name:
            raise source.error(node, "an async function cannot be compiled: write an ordinary function")
    node = lambdas.find(source.tree, nodes, code)
    if node is None:
        raise missing
    return node
