"""Which lambda expression of a source a code object belongs to. A code object knows its first line, and several lambdas can start on
one line. From Python 3.11 on, code objects have the columns of their instructions, which tell the lambdas of a line apart. Without
these columns, the source is compiled again with one lambda moved to a line of its own, and the code of that line is compared."""

import __future__

import ast
import types

from .. import _kjit

_NO_LINE = 1 << 28  # a line that no source has


def recompile(source, code):
    """Compiles a text or a tree with the settings that the code was compiled with; None: it cannot be compiled."""
    mode = "eval" if isinstance(source, ast.Expression) else "single" if isinstance(source, ast.Interactive) else "exec"
    _kjit.set_deaf(True)
    try:
        return compile(source, code.co_filename, mode, code.co_flags & __future__.annotations.compiler_flag, True)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    finally:
        _kjit.set_deaf(False)


def find(tree, code):
    """The lambda expression of the code, or None."""
    if code.co_name != "<lambda>":
        return None
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno and _has_parameters(n, code)]
    exact = [node for node in nodes if _is_at(node, code)]
    if exact:
        return exact[0]
    # Expressions with the same text are one expression to a kernel.
    if len({ast.dump(node) for node in nodes}) > 1:
        print_of_code = _fingerprint(code)
        nodes = [node for node in nodes if print_of_code in _fingerprints_of(tree, node, code)]
    elif nodes and not _can_be(nodes[0], code):
        return None
    return nodes[0] if nodes else None


def find_code(tree, node, codes):
    """Which of the code objects is the one of the lambda expression, or None."""
    codes = [c for c in codes if c.co_name == "<lambda>" and c.co_firstlineno == node.lineno and _has_parameters(node, c)]
    exact = [code for code in codes if _is_at(node, code)]
    if exact:
        return exact[0]
    if len(codes) > 1:
        prints = _fingerprints_of(tree, node, codes[0])
        codes = [code for code in codes if _fingerprint(code) in prints]
    return codes[0] if codes and _can_be(node, codes[0]) else None


def _has_parameters(node, code):
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    return names == list(code.co_varnames[: code.co_argcount])


def _positions(code):
    """The lines and columns of a code's instructions; empty before Python 3.11."""
    find_all = getattr(code, "co_positions", None)
    return {(line, column) for line, _, column, _ in find_all() if line is not None} if find_all else set()


def _is_at(node, code):
    return (node.body.lineno, node.body.col_offset) in _positions(code)


def _can_be(node, code):
    """From Python 3.12 on the code of a lambda that is a constant has no columns. Any other code that has columns has those of its
    lambda."""
    if not any(column is not None for _, column in _positions(code)):
        return True
    body = node.body
    return isinstance(body, ast.Constant) and any(type(c) is type(body.value) and c == body.value for c in (*code.co_consts, None))


def _fingerprint(code):
    """All of a code object that decides what it computes; places in the source do not."""
    constants = tuple(_fingerprint(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_flags


def _codes_within(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_within(constant)


def _fingerprints_of(tree, node, code):
    """The fingerprints of the codes that the lambda expression becomes. A `finally` block is compiled more than once."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and (n.lineno, n.col_offset) == (node.lineno, node.col_offset)]
    if not found:
        return []
    place = found[0].lineno, found[0].end_lineno
    found[0].lineno = found[0].end_lineno = _NO_LINE
    try:
        whole = recompile(tree, code)
    finally:
        found[0].lineno, found[0].end_lineno = place
    return [_fingerprint(c) for c in _codes_within(whole) if c.co_firstlineno == _NO_LINE] if whole else []
