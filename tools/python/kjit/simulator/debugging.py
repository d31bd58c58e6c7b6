"""Debuggers in kernels. pdb and other debuggers that derive from bdb.Bdb step through the program's
kernel. They do not step into kjit's functions for operators, barriers and the loop over the
threads, nor into functions of NumPy and the standard library that kjit calls."""

import ast
import bdb
import sys

# The functions that start a debugger, by the part of their name after the last dot.
STARTS = ("breakpoint", "set_trace")
Quit = bdb.BdbQuit  # raised in the line of the program where the debugger is told to quit
# patterns for the names in the modules that are hidden
_OWN = frozenset(
    "kjit kjit.* numpy numpy.* importlib importlib.* abc ast collections.* contextlib enum functools inspect operator os types weakref".split()
)


def hide():
    """Hides the functions of _OWN from a debugger that traces the current thread."""
    debugger = getattr(sys.gettrace(), "__self__", None)
    if isinstance(debugger, bdb.Bdb):
        debugger.skip = _OWN | (debugger.skip or set())


# An expression that does the same as hide(), but calls no Python function, because a debugger that
# has just been started would step into it.
_TEMPLATE = ast.parse(
    "SET(GETTRACE().__self__, 'skip', OWN | (GETTRACE().__self__.skip or EMPTY))"
    " if IS(GET(GETTRACE(), '__self__', NONE), BDB) else NONE",
    mode="eval",
).body
_NAMES = {
    "SET": setattr, "GET": getattr, "IS": isinstance, "GETTRACE": sys.gettrace, "BDB": bdb.Bdb, "OWN": _OWN, "EMPTY": frozenset(), "NONE": None,
}


class _Placed(ast.NodeTransformer):
    """Makes a copy of the template whose nodes have the location of a given node."""

    def __init__(self, rewriter, node):
        self._rewriter, self._node = rewriter, node

    def visit(self, node):
        if isinstance(node, ast.Name):
            return self._rewriter.name(_NAMES[node.id], self._node)
        made = type(node)(**{name: self._part(value) for name, value in ast.iter_fields(node)})
        return ast.copy_location(made, self._node)

    def _part(self, value):
        if isinstance(value, list):
            return [self._part(item) for item in value]
        return self.visit(value) if isinstance(value, ast.AST) else value


def hiding(rewriter, node):
    """Returns a list of statements to insert after a statement that starts a debugger. They have the statement's location, so
    that the debugger does not stop at them."""
    return [ast.copy_location(ast.Expr(_Placed(rewriter, node).visit(_TEMPLATE)), node)]
