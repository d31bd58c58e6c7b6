"""The source of functions: text and syntax tree of their file, and their place in it."""
import ast
import linecache

from .._errors import SourceError, character_column, show

_sources = {}  # by file


class Source:
    def __init__(self, file, lines):
        self.file, self.lines = file, lines
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

    def error(self, node, message):
        place, quoted = self.place(node), self.quote(node.lineno)
        column = character_column(quoted, place[2])
        return SourceError(show("error", message, place, quoted), "KJIT_ERROR_SYNTAX", message, *place[:2], column)

    def operator_place(self, left, right, text):
        """Where between two operands their operator stands."""
        if left.end_lineno == right.lineno:
            line = (self.quote(right.lineno) or "").encode("utf-8", "replace")
            at = line.find(text.encode(), left.end_col_offset)
            if at >= 0:
                return self.file, right.lineno, at + 1
        return self.place(left)


def remember(function):
    """The source as it is now: the file may be another one when the function is compiled."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    known = _sources.get(file)
    if not known or known.lines != lines:
        known = _sources[file] = Source(file, lines)
    return known


def find(function, source):
    """The function's node in the tree of its source."""
    code = function.__code__
    missing = SourceError(f"the source of {function.__qualname__} is not to be found ({code.co_filename}): kjit reads it; "
                          "define the function in a file, or in a cell of a notebook", "KJIT_ERROR_SYNTAX")
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
        elif isinstance(node, ast.AsyncFunctionDef) and node.lineno == code.co_firstlineno and node.name == code.co_name:
            raise source.error(node, "an async function cannot be compiled: write a plain one")
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            if node.lineno == code.co_firstlineno and (node.body.lineno, node.body.col_offset) in positions:
                return node
    raise missing
