"""Values that may be None: variables that are None on some paths through a function, and results of
functions that return None on some paths. A bool variable for each such value says whether the value
exists. Using None as a number raises an error in the thread."""

import ast

from .._errors import remember_raise
from . import folding, named

_MISSING = "expected a number, got None"


def suspect(body, parameters):
    """Returns the names that may be None, judging only from the expressions, before the called
    functions are known."""
    assigned = folding.values(body, parameters)

    def may(node):
        if isinstance(node, ast.IfExp):
            return may(node.body) or may(node.orelse)
        return isinstance(node, ast.Call) or isinstance(node, ast.Constant) and node.value is None or isinstance(node, ast.Name)

    return {n for n, values in assigned.items() if any(v is not None and may(v) for v in values)}


def find(emitter):
    """Returns the names in a function that may be None, and sets `emitter.returns_optional`."""
    assigned = folding.values(emitter.body, emitter.parameters)
    names = emitter.static.optional = set()
    is_new = True
    while is_new:
        new = {n for n, values in assigned.items() if n not in names and any(v is not None and _may_set_none(emitter, v) for v in values)}
        is_new = bool(new)
        names |= new
    returned = [n.value for s in emitter.body for n in folding.own_nodes(s) if isinstance(n, ast.Return)]
    values = [v for v in returned if v is not None and emitter.static_value(v) is not None and not is_nothing(emitter, v)]
    is_partly = len(values) < len(returned) or not folding.ends(emitter.body)
    emitter.returns_optional = bool(values) and (is_partly or any(may_be(emitter, v) for v in values))


def may_be(emitter, node):
    """Returns whether an expression may be None."""
    if emitter.static_value(node) is None:
        return True
    if isinstance(node, ast.Name):
        return node.id in emitter.static.optional
    if isinstance(node, ast.IfExp):
        is_there = _known_by(node.test)
        parts = (node.body, ast.IsNot), (node.orelse, ast.Is)
        return any(may_be(emitter, part) and is_there != (getattr(part, "id", None), operator) for part, operator in parts)
    return isinstance(node, ast.Call) and _is_call(emitter, node)


def is_nothing(emitter, node):
    """Returns whether a node calls a function that always returns None."""
    thing = emitter.static_value(node.func) if isinstance(node, ast.Call) else None
    return named.is_called(thing, node) and emitter.builder.returns_nothing(emitter.resolve(node, thing).thing)


def _may_set_none(emitter, node):
    """Returns whether an assignment of an expression may give None."""
    return may_be(emitter, node) or is_nothing(emitter, node)


def _known_by(test):
    """Returns (name, operator) for a test `name is not None` or `name is None`, after which the
    value exists in one branch; or None."""
    is_test = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)
    other = test.comparators[0] if is_test else None
    return (test.left.id, type(test.ops[0])) if isinstance(other, ast.Constant) and other.value is None else None


def _is_call(emitter, node):
    """Returns whether a node calls a function that returns None on some paths only."""
    thing = emitter.static_value(node.func)
    return named.is_called(thing, node) and emitter.builder.returns_optional(emitter.resolve(node, thing).thing)


def flag(emitter, node):
    """Returns the text that says whether an expression that may be None has a value."""
    if emitter.static_value(node) is None:
        return ["false"]
    if not may_be(emitter, node):
        return ["true"]
    if isinstance(node, ast.Name):
        return [name_of_flag(emitter, node.id)]
    if isinstance(node, ast.IfExp):
        parts = ["(", *emitter.condition(node.test), " ? "]
        return [*parts, *flag(emitter, node.body), " : ", *flag(emitter, node.orelse), ")"]
    return [*emitter.call(node), "[1]"]


def name_of_flag(emitter, name):
    """Returns the name of the variable that says whether another variable has a value."""
    return emitter.local(name + ".is.there")


def value(emitter, node):
    """Returns the text of an expression that may be None, used as a number. None raises an error in
    the thread."""
    place = emitter.source.place(node)
    symbol = emitter.builder.new_name(f"value_of_{emitter.node.lineno}")
    emitter.used.add(symbol)
    remember_raise(place, TypeError)
    head = f"{emitter.rules} {{ if not is_there {{ "
    if isinstance(node, ast.Name):
        emitter.lifted.append([place, f"func {symbol}(v, is_there)", head, f'raise "{_MISSING}" }}; return v }}'])
        return [place, f"{symbol}({emitter.local(node.id)}, ", *flag(emitter, node), ")"]
    head = head.replace("is_there", "v[1]")
    emitter.lifted.append([place, f"func {symbol}(v)", head, f'raise "{_MISSING}" }}; return v[0] }}'])
    return [place, f"{symbol}(", *emitter.call(node), ")"]


def condition(emitter, node):
    """Returns the truth value of a name that may be None; None is false."""
    return ["(", *flag(emitter, node), f" and {emitter.local(node.id)})"]


def assign(emitter, statement, target, node, depth):
    """Writes an assignment to a name that may be None."""
    if target.id in emitter.scope.declare.get(id(statement), ()):
        emitter.declare(depth, target, target.id)
    _assign(emitter, emitter.local(target.id), name_of_flag(emitter, target.id), node, depth)


def has_one(emitter, target, node):
    """Returns whether one of several names that are assigned together may be None."""
    return isinstance(node, ast.Tuple) and any(isinstance(t, ast.Name) and t.id in emitter.static.optional for t in target.elts)


def assign_all(emitter, statement, target, depth):
    """Assigns values to the same number of names, one after the other."""
    read = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    if any(not isinstance(t, ast.Name) or t.id in read for t in target.elts):
        raise emitter.error(statement, "assign values that may be None in separate statements, without a swap")
    for name in target.elts:
        if name.id in emitter.scope.declare.get(id(statement), ()):
            emitter.declare(depth, name, name.id)
    for name, value in zip(target.elts, statement.value.elts):
        if name.id in emitter.static.optional:
            _assign(emitter, emitter.local(name.id), name_of_flag(emitter, name.id), value, depth)
        else:
            emitter.put(depth, [emitter.source.place(name)], f"{emitter.local(name.id)} = ", emitter.expression(value))


def _assign(emitter, text, is_there, node, depth):
    """Assigns an expression's value to the variable `text`, and whether the value exists to the
    variable `is_there`."""
    place = [emitter.source.place(node)]
    if emitter.static_value(node) is None:
        return emitter.put(depth, place, f"{is_there} = false")
    if is_nothing(emitter, node):
        emitter.put(depth, place, emitter.call(node))
        return emitter.put(depth, place, f"{is_there} = false")
    if not may_be(emitter, node):
        emitter.put(depth, place, f"{text} = ", emitter.expression(node))
        return emitter.put(depth, place, f"{is_there} = true")
    if isinstance(node, ast.Name):
        emitter.put(depth, place, f"{text} = {emitter.local(node.id)}")
        return emitter.put(depth, place, f"{is_there} = ", flag(emitter, node))
    if isinstance(node, ast.IfExp):
        emitter.put(depth, place, "if ", emitter.condition(node.test), " {")
        _assign(emitter, text, is_there, node.body, depth + 1)
        emitter.put(depth, "} else {")
        _assign(emitter, text, is_there, node.orelse, depth + 1)
        return emitter.put(depth, "}")
    both = emitter.temporary()
    emitter.put(depth, place, f"let {both} = ", emitter.call(node))
    emitter.put(depth, place, f"{text} = {both}[0]")
    return emitter.put(depth, place, f"{is_there} = {both}[1]")


_RESULT = "what.is.returned"


def begin(emitter, depth):
    """Declares the variables that say whether values exist."""
    for name in sorted(emitter.static.optional & emitter.scope.names):
        emitter.put(depth, f"var {name_of_flag(emitter, name)} = false")
    if emitter.returns_optional:
        emitter.put(depth, f"var {emitter.local(_RESULT)}")
        emitter.put(depth, f"var {name_of_flag(emitter, _RESULT)} = false")


def give_back(emitter, node, depth):
    """Writes a return statement in a function that may return None. node: the returned value, or
    None."""
    text, is_there = emitter.local(_RESULT), name_of_flag(emitter, _RESULT)
    if node is None:
        return emitter.put(depth, f"return ({text}, false)")
    _assign(emitter, text, is_there, node, depth)
    return emitter.put(depth, f"return ({text}, {is_there})")
