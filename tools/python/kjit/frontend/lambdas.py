"""Finds the lambda expression in a source to which a code object belongs. A code object has only
its first line, and several lambdas can begin on one line.

Since Python 3.11, code objects have the columns of their instructions, which distinguish the
lambdas on a line. Without columns, the source is compiled again with one lambda moved to a unique
line, and the code for this line is compared.
"""

import __future__

import ast
import types

from .. import _kjit

_NO_LINE = 1 << 28  # a line number that is larger than that of every source line


def recompile(source, code):
    """Compiles a string or tree with the compiler flags of `code`. Returns None if it cannot be
    compiled."""
    mode = "eval" if isinstance(source, ast.Expression) else "single" if isinstance(source, ast.Interactive) else "exec"
    try:
        return compile_own(source, code.co_filename, mode, code.co_flags & __future__.annotations.compiler_flag)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def compile_own(source, file, mode="exec", flags=0):
    """Compiles a string or tree of kjit's, which is not kept with the program's strings and trees."""
    _kjit.set_deaf(True)
    try:
        return compile(source, file, mode, flags, True)
    finally:
        _kjit.set_deaf(False)


def find(tree, nodes, code):
    """Returns the lambda expression of the code, or None. nodes: the functions and lambda expressions
    of the tree that begin on the line of the code."""
    if code.co_name != "<lambda>":
        return None
    nodes = [n for n in nodes if isinstance(n, ast.Lambda) and _has_parameters(n, code)]
    exact = [node for node in nodes if _is_at(node, code)]
    if exact:
        return exact[0]
    # Lambda expressions with equal text are equivalent for a kernel.
    if len({ast.dump(node) for node in nodes}) > 1:
        print_of_code = _fingerprint(code)
        nodes = [node for node in nodes if print_of_code in _fingerprints_of(tree, node, code)]
    elif nodes and not _can_be(nodes[0], code):
        return None
    return nodes[0] if nodes else None


def find_code(tree, node, codes):
    """Returns the code object of the lambda expression, or None."""
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
    """Returns the lines and columns of a code's instructions; empty before Python 3.11."""
    find_all = getattr(code, "co_positions", None)
    return {(line, column) for line, _, column, _ in find_all() if line is not None} if find_all else set()


def _is_at(node, code):
    return (node.body.lineno, node.body.col_offset) in _positions(code)


def _can_be(node, code):
    """Returns whether the code can belong to the lambda, whose columns it does not have. Since Python
    3.12, this is possible for code with columns only if the lambda returns a constant, because the
    instruction for a constant has no columns."""
    if not any(column is not None for _, column in _positions(code)):
        return True
    body = node.body
    return isinstance(body, ast.Constant) and any(type(c) is type(body.value) and c == body.value for c in (*code.co_consts, None))


def _fingerprint(code):
    """Returns everything in a code object that determines its result, without locations in the
    source."""
    constants = tuple(_fingerprint(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_flags


def _codes_at(code, line):
    """Yields the outermost code objects that begin on the line."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_firstlineno == line:
                yield constant
            else:
                yield from _codes_at(constant, line)


def _fingerprints_of(tree, node, code):
    """Returns the fingerprints of the code objects for the lambda expression. There can be several,
    because Python compiles a `finally` block more than once."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and (n.lineno, n.col_offset) == (node.lineno, node.col_offset)]
    if not found:
        return []
    # The whole expression moves, because Python 3.12 adds an instruction for a body that is not on
    # the first line of its lambda.
    moved = [n for n in ast.walk(found[0]) if isinstance(n, (ast.expr, ast.arg, ast.keyword))]
    places = [(n.lineno, n.end_lineno) for n in moved]
    distance = _NO_LINE - node.lineno
    for n, (first, last) in zip(moved, places):
        n.lineno, n.end_lineno = first + distance, last + distance
    try:
        whole = recompile(tree, code)
    finally:
        for n, place in zip(moved, places):
            n.lineno, n.end_lineno = place
    return [_fingerprint(c) for c in _codes_at(whole, _NO_LINE)] if whole else []
