"""Functions that are defined inside of a function. Each becomes a separate function of the module.
A variable of the outer function that the inner function reads is either a constant of the inner
function, or an additional parameter: a call then passes the variable's current value."""

import ast
import copy
import types

from . import lambdas, static, words

# The prefix of the keyword with which a call passes a captured variable.
CAPTURED = "captured "


class Inner:
    """A function that is defined inside of another function. captured: the names of the outer
    variables that are parameters; known: constants and functions around it, by name."""

    def __init__(self, python, node, captured, known):
        self.py_func, self.node, self.captured, self.known = python, node, captured, known


class _Bind(words.Form):
    """A function value with its captured variables bound to it."""

    def expand(self, emitter, call):
        function, *names = call.args
        parts = [emitter.source.place(call), "bind_back(", *emitter.known(emitter.static_value(function), function)]
        for name in names:
            parts += [", ", *emitter.expression(name)]
        return [*parts, ")"]


BIND = _Bind("a function that is defined in a kernel", "", "")


def bound_of(node):
    """Returns (function, captured variables) for a node that binds variables to an inner function,
    or None for other nodes."""
    is_bound = isinstance(node, ast.Call) and isinstance(node.func, ast.Constant) and node.func.value is BIND
    return (node.args[0], node.args[1:]) if is_bound else None


def make(emitter, node, known):
    """Returns the function for a definition or a lambda. known: the known values of names at that
    point."""
    name = getattr(node, "name", "<lambda>")
    if getattr(node, "decorator_list", ()):
        raise emitter.error(node.decorator_list[0], "a function that is defined in a kernel cannot have decorators")
    key = id(emitter.python), node.lineno, node.col_offset, tuple(sorted((n, id(v)) for n, v in known.items()))
    cache = emitter.builder.inner
    if key not in cache:
        cache[key] = _make(emitter, node, name, known)
    return cache[key]


def reads(node):
    """Returns the names that a function, including functions inside of it, reads but neither
    assigns nor takes as parameters."""
    arguments = node.args
    own = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    own |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    names, body = set(), [node.body] if isinstance(node, ast.Lambda) else node.body
    waiting = list(body)
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, (ast.Lambda, ast.FunctionDef)):
            names |= reads(inner)
            waiting += inner.args.defaults
            own |= {inner.name} if isinstance(inner, ast.FunctionDef) else set()
            continue
        if isinstance(inner, ast.Name):
            (names if isinstance(inner.ctx, ast.Load) else own).add(inner.id)
        waiting += ast.iter_child_nodes(inner)
    return names - own


def _code_of(emitter, node, name):
    """Returns the function's code object, which is among the constants of the outer function's
    code."""
    codes = [c for c in emitter.python.__code__.co_consts if isinstance(c, types.CodeType)]
    if isinstance(node, ast.Lambda):
        return lambdas.find_code(emitter.source.tree, node, codes)
    return next((c for c in codes if c.co_name == name and c.co_firstlineno == node.lineno), None)


def _is_captured(cell):
    """Returns whether a variable of an outer function has no value yet, so that it is a parameter of the inner function."""
    return cell == types.CellType()


def _make(emitter, node, name, known):
    python = emitter.python
    code = _code_of(emitter, node, name)
    if code is None:
        raise emitter.error(node, "define the function outside of the kernel, which may call it")
    around = dict(zip(python.__code__.co_freevars, python.__closure__ or ()))
    cells, captured, inside = [], [], {}
    for free in code.co_freevars:
        is_constant = free in around and not _is_captured(around[free])
        cells.append(around[free] if is_constant else types.CellType())
        if is_constant or free == name:
            continue
        value = known.get(free, static.UNKNOWN)
        if isinstance(value, Inner) and value.captured:
            inside[free] = value
            captured += value.captured
        elif value is not static.UNKNOWN and emitter.stored.get(free, 0) <= 1:
            cells[-1].cell_contents = value
        elif free in emitter.numbers:
            cells[-1].cell_contents = emitter.numbers[free]
        else:
            captured.append(free)
    captured = tuple(dict.fromkeys(captured))
    function = types.FunctionType(code, python.__globals__, name, _defaults(emitter, node.args.defaults), tuple(cells))
    function.__kwdefaults__ = dict(zip((a.arg for a in node.args.kwonlyargs), _defaults(emitter, node.args.kw_defaults) or ()))
    changed = copy.copy(node)
    changed.args = copy.copy(node.args)
    changed.args.kwonlyargs = [*node.args.kwonlyargs, *(ast.copy_location(ast.arg(n), node) for n in captured)]
    return Inner(function, changed, captured, inside)


def _defaults(emitter, nodes):
    values = []
    for default in nodes:
        value = static.UNKNOWN if default is None else emitter.static.value(default)
        if value is static.UNKNOWN:
            raise emitter.error(default or emitter.node, "a default of a function that is defined in a kernel must be a constant")
        values.append(value)
    return tuple(values) or None


def constants(body):
    """Returns a dictionary from each name that is assigned exactly once, as a literal, to the value
    of the literal."""
    names, stored = {}, {}
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] = stored.get(node.id, 0) + 1
    for node in (n for statement in body for n in ast.walk(statement)):
        is_one = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if is_one and isinstance(node.value, ast.Constant) and stored[node.targets[0].id] == 1:
            names[node.targets[0].id] = node.value.value
    return names
