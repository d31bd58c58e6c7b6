"""Functions that are defined inside of a function, where numbers of Python have types: they are functions of their own, which know the
constants around them, as Numba has it."""

import ast
import types

from . import static


def take_out(emitter, body):
    """The statements without the functions that are defined among them; the functions, by name."""
    found = {}
    rest = [s for s in body if not isinstance(s, ast.FunctionDef)]
    nested = [s for s in body if isinstance(s, ast.FunctionDef)]
    constants = _constants(emitter, rest)
    for node in nested:
        if node.name in found:
            raise emitter.error(node, f"two functions are called `{node.name}`: give them names of their own")
        if node.decorator_list:
            raise emitter.error(node.decorator_list[0], "a function that is defined in a kernel has no decorators")
        found[node.name] = _make(emitter, node, {**constants, **found})
    return rest, found


def explain(emitter, node):
    """The error for a function that is defined in a block of statements."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    stores = [n.id for n in ast.walk(emitter.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in names]
    several = next((name for name in stores if stores.count(name) > 1), None)
    if several:
        return emitter.error(node, f"Cannot capture a constant value for variable '{several}': it is assigned in several places")
    return emitter.error(node, "a function is defined in a kernel among its first statements, in no block")


def _constants(emitter, body):
    """What names have that are assigned once, and a constant."""
    names, stores = {}, {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stores[node.id] = stores.get(node.id, 0) + 1
    for statement in body:
        for node in ast.walk(statement):
            is_one = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            if is_one and isinstance(node.value, ast.Constant) and stores[node.targets[0].id] == 1:
                names[node.targets[0].id] = node.value.value
    return names


def _code_of(code, node):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == node.name and constant.co_firstlineno == node.lineno:
            return constant
    return None


def _make(emitter, node, known):
    """The function of Python that the definition makes."""
    cache, key = emitter.builder.inner, (id(emitter.python), node.lineno, node.col_offset)
    if key in cache:
        return cache[key]
    python = emitter.python
    code = _code_of(python.__code__, node)
    if code is None:
        raise emitter.error(node, "define the function outside of the kernel, which may call it")
    around = dict(zip(python.__code__.co_freevars, python.__closure__ or ()))
    made = []
    for name in code.co_freevars:
        if name in around:
            made.append(around[name])
        elif name in known:
            made.append(types.CellType(known[name]))
        elif name == node.name:
            made.append(types.CellType())
        else:
            why = "Cannot capture the non-constant value associated with variable"
            raise emitter.error(node, f"{why} '{name}' in a function that is defined in a kernel: hand it over as an argument")
    defaults = []
    for default in node.args.defaults:
        value = static.Names(python, set()).value(default)
        if value is static.UNKNOWN:
            raise emitter.error(default, "a default of a function that is defined in a kernel is a constant")
        defaults.append(value)
    function = types.FunctionType(code, python.__globals__, node.name, tuple(defaults) or None, tuple(made))
    emitter.builder.kept.append(function)
    cache[key] = function
    return function
