"""Lists of literal numbers that a function only reads, such as `weights = [0.25, 0.5, 0.25]`, are tuples for the compiler. As in
Numba, all items in a list have one type: `[1, 2.5]` holds two floats."""

import ast

from .scope import copied

_READERS = (len, sum, min, max, enumerate, zip)
_MOST = 64  # a loop over a tuple repeats its body for each item


def written(body, names):
    """Returns the statements with tuples in place of these lists, or the same list if there are none. names: static.Names."""
    lists = _found(body, names)
    if not lists:
        return body
    body = copied(body)
    for statement in (n for s in body for n in ast.walk(s)):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id in lists:
            items = [ast.copy_location(ast.Constant(v), statement.value) for v in lists[statement.targets[0].id]]
            statement.value = ast.copy_location(ast.Tuple(items, ast.Load()), statement.value)
    return body


def _found(body, names):
    """Returns the numbers in each list, by its variable's name."""
    lists, stores, reads, uses = {}, {}, {}, {}
    for node in (n for s in body for n in ast.walk(s)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            numbers = _numbers(node.value) if isinstance(node.value, ast.List) else None
            if numbers:
                lists[node.targets[0].id] = numbers
        if isinstance(node, ast.Name):
            table = reads if isinstance(node.ctx, ast.Load) else stores
            table[node.id] = table.get(node.id, 0) + 1
        for inner in _read_by(node, names):
            uses[inner.id] = uses.get(inner.id, 0) + isinstance(inner.ctx, ast.Load)
    return {n: v for n, v in lists.items() if stores[n] == 1 and reads.get(n, 0) == uses.get(n, 0)}


def _numbers(node):
    """Returns the values of literal numbers with a common type, or None for other items."""
    try:
        values = ast.literal_eval(node)
    except ValueError:
        return None
    kinds = {type(value) for value in values}
    if not values or len(values) > _MOST or not kinds <= {int, float, complex} and kinds != {bool}:
        return None
    if not all(-(2**63) <= value < 2**63 for value in values if type(value) is int):
        return None
    common = complex if complex in kinds else float if float in kinds else None
    return [common(value) for value in values] if common else values


def _read_by(node, names):
    """Returns the names whose items, but not the list itself, a node reads."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
        parts = [node.value]
    elif isinstance(node, (ast.For, ast.comprehension)):
        parts = [node.iter]
    elif isinstance(node, ast.Compare) and all(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops):
        parts = node.comparators
    elif isinstance(node, ast.Call) and any(names.value(node.func) is reader for reader in _READERS):
        parts = node.args
    else:
        parts = []
    return [part for part in parts if isinstance(part, ast.Name)]
