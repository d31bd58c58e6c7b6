"""Writes out loops over literal_unroll whose items kernels cannot hold, such as strings, functions and None: each item gets a copy of
the loop's body, with the item in place of the loop's variable.

A tuple with such items, and a list of constants for literal_unroll, exist only at compile time. Their variable is assigned once, in the
outermost block, and the function only reads single items. Other uses stay, and the translation of expressions reports them."""

import ast
import sys

from .scope import copied
from .static import UNKNOWN, fold_literals

_WORDS = "kjit.cuda.words"
_OF_NUMBA = ("numba.misc.special", "literal_unroll")  # the function that programs import from numba itself
_MOST = 1000  # items, Numba's limit for tuples


def written(body, names):
    """Returns the statements without these loops and variables, or the same list if there are none. names: static.Names."""
    found = _Found(body, names)
    return _Writer(found).block(copied(body)) if found.is_needed else body


def _constant(value, like):
    if isinstance(value, tuple):
        made = ast.Tuple([_constant(item, like) for item in value], ast.Load())
    else:
        made = ast.Constant(value)
    return ast.copy_location(made, like)


def _is_constant(node):
    return isinstance(node, ast.Constant) or isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def _is_display(node):
    return isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) <= _MOST and not any(isinstance(n, ast.Starred) for n in node.elts)


def _items_inside(node):
    """Returns the items in a tuple that is an item of a virtual tuple, or None."""
    if not isinstance(node, ast.Tuple):
        return None
    expressions = (n for n in ast.walk(node) if isinstance(n, ast.expr))
    return node.elts if all(_is_constant(n) or isinstance(n, (ast.Name, ast.Tuple)) for n in expressions) else None


def _shared(loop):
    """Returns a loop's variable as a list if a loop inside has the same variable, or an empty list."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return []
    inside = (n.target for s in loop.body for n in ast.walk(s) if isinstance(n, ast.For))
    return [loop.target.id] if any(isinstance(t, ast.Name) and t.id == loop.target.id for t in inside) else []


def _is_read(node, target):
    return isinstance(node, ast.Name) and isinstance(target, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)


class _Found:
    """The tuples and lists of a function. displays: the tuples and lists that are assigned to names. virtual: the names of those
    that exist only at compile time."""

    def __init__(self, body, names):
        self.names = names
        nodes = [node for statement in body for node in ast.walk(statement)]
        stores = [node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        self.loads = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self.used = {*stores, *self.loads}
        self.displays = {
            statement.targets[0].id: statement.value
            for statement in body
            if isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
            and stores.count(statement.targets[0].id) == 1
            and _is_display(statement.value)
        }
        self.virtual = self._virtual(nodes)
        inside = {id(n) for loop in nodes if isinstance(loop, ast.For) for s in loop.body for n in ast.walk(s) if _is_read(n, loop.target)}
        outside = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in inside)
        # The loop variables that are read outside of their loops. They include the variable of two nested loops with the same
        # variable, because the inner loop changes it for the rest of the outer body.
        self.read_outside = {n.id for n in outside} | {name for loop in nodes for name in _shared(loop)}
        self.is_needed = bool(self.virtual) or any(isinstance(n, ast.For) and self.items_of_loop(n) for n in nodes)

    def _virtual(self, nodes):
        unrolled = {n.args[0].id for n in nodes if self.is_unroll(n) and isinstance(n.args[0], ast.Name)}
        wanted = {
            name
            for name, value in self.displays.items()
            if any(map(self.is_special, value.elts)) and isinstance(value, ast.Tuple)
            or isinstance(value, ast.List) and name in unrolled and all(map(_is_constant, value.elts))
        }
        reads = [name for node in nodes for name in self._read_by(node)]
        return {name for name in wanted if self.loads.count(name) == reads.count(name)}

    def _read_by(self, node):
        """Returns a list with the name of the tuple of which a node reads single items or the
        length, or an empty list."""
        part = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
            part = node.value
        elif self.is_unroll(node) and isinstance(node.args[0], ast.Subscript) and isinstance(node.args[0].slice, ast.Slice):
            part = node.args[0].value
        elif self.is_unroll(node) or self.is_call(node, len):
            part = node.args[0]
        return [part.id] if isinstance(part, ast.Name) else []

    def is_call(self, node, function):
        is_plain = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        return is_plain and self.names.value(node.func) is function

    def is_unroll(self, node):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            return False
        # a program that has not loaded this module cannot call its literal_unroll
        found, words = self.names.value(node.func), sys.modules.get(_WORDS)
        is_of_numba = (getattr(found, "__module__", None), getattr(found, "__name__", None)) == _OF_NUMBA
        return is_of_numba or words is not None and found is words.FORMS["literal_unroll"]

    def is_special(self, node):
        """Returns whether an item of a display is a string, None or a function, or contains one."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return any(map(self.is_special, node.elts))
        value = self.names.value(node) if isinstance(node, (ast.Constant, ast.Name, ast.Attribute)) else 0
        return value is None or isinstance(value, str) or value is not UNKNOWN and callable(value)

    def value(self, node):
        """Returns an index's value, or UNKNOWN."""
        value = fold_literals(node)
        return self.names.value(node) if value is UNKNOWN else value

    def items_of(self, node):
        """Returns the expressions of the items in a tuple or a list, or None if they are not known."""
        if isinstance(node, ast.Name) and node.id in self.displays:
            return self.displays[node.id].elts
        if _is_display(node):
            is_known = isinstance(node, ast.Tuple) or all(map(_is_constant, node.elts))
            return node.elts if is_known else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._items_of_slice(node)
        value = self.names.value(node)
        return [_constant(item, node) for item in value] if isinstance(value, tuple) and len(value) <= _MOST else None

    def _items_of_slice(self, node):
        bounds = [None if n is None else self.value(n) for n in (node.slice.lower, node.slice.upper, node.slice.step)]
        items = self.items_of(node.value)
        is_list = isinstance(node.value, ast.Name) and isinstance(self.displays.get(node.value.id), ast.List)
        is_known = all(n is None or type(n) is int for n in bounds) and bounds[2] != 0
        return items[slice(*bounds)] if items is not None and is_known and not is_list else None

    def items_of_loop(self, statement):
        """Returns the items over which a loop is written out, or their indices. Returns None for other loops: kernels have loops over
        the items of tuples of numbers and arrays."""
        head, is_counted = statement.iter, False
        if self.is_call(head, range) and self.is_call(head.args[0], len):
            head, is_counted = head.args[0].args[0], True
        if not self.is_unroll(head) or not isinstance(statement.target, ast.Name):
            return None
        items = self.items_of(head.args[0])
        if not items:
            return None
        if is_counted:
            return [_constant(i, head) for i in range(len(items))]
        is_virtual = isinstance(head.args[0], ast.List) or isinstance(head.args[0], ast.Name) and head.args[0].id in self.virtual
        return items if is_virtual or any(map(self.is_special, items)) else None


class _Writer(ast.NodeTransformer):
    """Writes the loops out in a copy of the statements."""

    def __init__(self, found):
        self.found, self.used = found, set(found.used)
        self.items = {}  # variable of a loop that is being written out -> the item

    def fresh(self, name):
        number = 0
        while f"{name}_{number}" in self.used:
            number += 1
        self.used.add(f"{name}_{number}")
        return f"{name}_{number}"

    def block(self, body):
        made = []
        for statement in body:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made or [ast.copy_location(ast.Pass(), body[0])]

    # ---- tuples and lists that exist only at compile time ----

    def visit_Assign(self, node):
        self.generic_visit(node)
        name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else None
        if name not in self.found.virtual:
            return node
        before = []
        items = [self.kept(item, name, before) for item in node.value.elts]
        self.found.displays[name] = ast.copy_location(type(node.value)(items, ast.Load()), node.value)
        return before or ast.copy_location(ast.Pass(), node)

    def kept(self, item, name, before):
        """Returns an item as a constant or as a new variable, whose assignment is appended to `before`."""
        if _is_constant(item) or not isinstance(item, ast.Tuple) and self.found.is_special(item):
            return item
        if isinstance(item, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.kept(inner, name, before) for inner in item.elts], ast.Load()), item)
        variable = self.fresh(name)
        before.append(_assignment(variable, item, item))
        return ast.copy_location(ast.Name(variable, ast.Load()), item)

    def visit_Subscript(self, node):
        self.generic_visit(node)
        index = self.found.value(node.slice) if isinstance(node.ctx, ast.Load) else None
        is_virtual = isinstance(node.value, ast.Name) and node.value.id in self.found.virtual
        items = self.found.displays[node.value.id].elts if is_virtual else _items_inside(node.value)
        if items is not None and type(index) is int and -len(items) <= index < len(items):
            return copied(items[index])
        if is_virtual:  # the translation of the tuple reports the item that a kernel cannot hold
            node.value = copied(self.found.displays[node.value.id])
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        items = self.found.items_of(node.args[0]) if self.found.is_call(node, len) and isinstance(node.args[0], ast.Name) else None
        is_virtual = items is not None and node.args[0].id in self.found.virtual
        return ast.copy_location(ast.Constant(len(items)), node) if is_virtual else node

    def visit_Name(self, node):
        is_item = isinstance(node.ctx, ast.Load) and node.id in self.items
        return ast.copy_location(copied(self.items[node.id]), node) if is_item else node

    # ---- loops ----

    def visit_For(self, node):
        items = self.found.items_of_loop(node)
        if items is None:
            return self.generic_visit(node)
        name, made = node.target.id, []
        items = [self.kept(item, name, made) for item in items]
        left = self.fresh(f"{name}_left") if _leaving(node.body, ast.Break) else None
        if left:
            made.append(_assignment(left, ast.Constant(False), node))
        for item in items:
            made += self.copy(node, item, left)
        if node.orelse:
            orelse = self.block(node.orelse)
            made += [_at(ast.If(_unless(left), orelse, []), node)] if left else orelse
        return made

    def copy(self, node, item, left):
        """Returns the statements of one iteration. A loop of one iteration surrounds them if they contain break or continue."""
        name, body = node.target.id, copied(node.body)
        is_stored = any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for s in body for n in ast.walk(s))
        begin = [_assignment(name, item, node)] if is_stored or name in self.found.read_outside else []
        outer = self.items.pop(name, None)
        if not is_stored:
            self.items[name] = item
        is_looped = left or _leaving(body, ast.Continue)
        if is_looped:
            body = _Leaving(left).block(body)
        body = begin + self.block(body)
        self.items.pop(name, None)
        if outer is not None:
            self.items[name] = outer
        if not is_looped:
            return body
        once = ast.Call(ast.Constant(range), [ast.Constant(1)], [])
        loop = _at(ast.For(ast.Name(self.fresh(f"{name}_once"), ast.Store()), once, body, []), node)
        return [_at(ast.If(_unless(left), [loop], []), node)] if left else [loop]


class _Leaving(ast.NodeTransformer):
    """In the body of one iteration, continue leaves the loop of one iteration, and break also sets the variable `left`."""

    def __init__(self, left):
        self.left = left

    def block(self, body):
        made = []
        for statement in body:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made

    def visit_Break(self, node):
        return [_assignment(self.left, ast.Constant(True), node), node]

    def visit_Continue(self, node):
        return ast.copy_location(ast.Break(), node)

    def visit_For(self, node):
        node.orelse = self.block(node.orelse)  # break and continue in the body belong to the inner loop
        return node

    visit_While = visit_For


def _leaving(body, kind):
    """Returns whether statements of the class `kind` (break or continue) in a body belong to its loop."""
    return any(isinstance(s, kind) or any(_leaving(block, kind) for block in _blocks_of_loop(s)) for s in body)


def _blocks_of_loop(statement):
    """Returns the blocks of a statement in which break and continue belong to the loop around it."""
    if isinstance(statement, (ast.For, ast.While)):
        return [statement.orelse]
    own = [getattr(statement, field, None) or [] for field in ("body", "orelse", "finalbody")]
    return [*own, *(part.body for field in ("handlers", "cases") for part in getattr(statement, field, None) or [])]


def _unless(name):
    return ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))


def _assignment(name, value, like):
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), like)


def _at(node, like):
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.stmt)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)
    return node
