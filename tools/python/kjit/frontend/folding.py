"""Evaluates parts of a function before the function is translated. A name is replaced by its value
if variables of a kernel cannot hold the value: None, strings, functions, types, enum members.
Branches that depend only on such values are removed, and inner functions become separate
functions."""

import ast
import enum
import types

from . import closures, static, words
from .scope import COMPOUND, copied


def is_constant(value):
    """Returns whether names with this value are replaced by the value, because a variable of the
    kernel IR cannot hold it."""
    return value is None or callable(value) or isinstance(value, (str, enum.Enum, types.ModuleType, words.Word, closures.Inner))


def own_nodes(node):
    """Yields all nodes of a statement or expression except the bodies of functions that are defined
    in it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and (child is node.args or child in _body_of(node)):
            continue
        yield from own_nodes(child)


def _body_of(node):
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def stores(body):
    """Returns the number of assignments to each name."""
    found = {}
    for statement in body:
        for node in own_nodes(statement):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            name = node.name if isinstance(node, ast.FunctionDef) else name
            if name is not None:
                found[name] = found.get(name, 0) + 1
    return found


def values(body, parameters):
    """Returns the expressions that are assigned to each name other than parameters. None stands for
    a value that no expression gives."""
    found = {}
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                is_pairwise = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                is_pairwise = is_pairwise and len(target.elts) == len(node.value.elts)
                if is_pairwise and all(isinstance(t, ast.Name) for t in target.elts):
                    for one, value in zip(target.elts, node.value.elts):
                        found.setdefault(one.id, []).append(value)
                    continue
                for name in (n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)):
                    found.setdefault(name.id, []).append(node.value if name is target else None)
        elif isinstance(node, (ast.AugAssign, ast.For)):
            for name in (n for n in ast.walk(node.target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)):
                found.setdefault(name.id, []).append(None)
    return {name: list_ for name, list_ in found.items() if name not in parameters}


def ends(body):
    """Returns whether control flow never reaches the end of a block."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    if isinstance(last, ast.While):
        is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return is_endless and not any(isinstance(n, ast.Break) for s in last.body for n in ast.walk(s))
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))


class Folder:
    """Folds the statements in one function. emitter: the function's emitter."""

    def __init__(self, emitter):
        self.emitter, self.static = emitter, emitter.static

    def fold(self, body, known):
        """Returns a folded copy of the statements. known: the values of names before the first
        statement."""
        return self.without_dead(self.block([copied(statement) for statement in body], dict(known)))

    def without_dead(self, body):
        """Returns the statements without assignments of constants to names that are never read."""
        loads = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return self._without_dead(body, loads)

    def _without_dead(self, body, loads):
        rest = []
        for statement in body:
            if isinstance(statement, COMPOUND):
                statement.body = self._without_dead(statement.body, loads) or [ast.copy_location(ast.Pass(), statement)]
                statement.orelse = self._without_dead(statement.orelse, loads)
            target = self._name_of(statement)
            if target is None or target in loads or not is_constant(self.static.value(statement.value)):
                rest.append(statement)
        return rest

    @staticmethod
    def _name_of(statement):
        """Returns the single name to which a statement assigns a value, or None."""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target = statement.target
        else:
            return None
        return target.id if isinstance(target, ast.Name) else None

    # ---- statements ----

    def block(self, body, known):
        """Returns the statements with names replaced. known: the values of names before the
        statements; it is updated to the values after them."""
        made = []
        for at, statement in enumerate(body):
            if isinstance(statement, ast.If):
                test = self.replace(statement.test, known)
                value = self.static.value(test)
                if isinstance(value, static.PLAIN) or is_constant(value) and not isinstance(value, enum.Enum):
                    return made + self.block([*(statement.body if value else statement.orelse), *body[at + 1 :]], known)
                statement.test = test
                self.branches(statement, known)
                made.append(statement)
            elif isinstance(statement, (ast.For, ast.While)):
                made.append(self.loop(statement, known))
            else:
                made += self.simple(statement, known)
            if made and isinstance(made[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                break
        return made

    def branches(self, statement, known):
        after = []
        for field in ("body", "orelse"):
            inside = dict(known)
            made = self.block(getattr(statement, field), inside)
            setattr(statement, field, made)
            if not ends(made):
                after.append(inside)
        statement.body = statement.body or [ast.copy_location(ast.Pass(), statement)]
        first = after[0] if after else {}
        both = {n: v for n, v in first.items() if all(n in other and other[n] is v for other in after)}
        known.clear()
        known.update(both)

    def loop(self, statement, known):
        for name in stores([statement]):
            known.pop(name, None)
        field = "iter" if isinstance(statement, ast.For) else "test"
        setattr(statement, field, self.replace(getattr(statement, field), known))
        for field in ("body", "orelse"):
            setattr(statement, field, self.block(getattr(statement, field), dict(known)))
        statement.body = statement.body or [ast.copy_location(ast.Pass(), statement)]
        return statement

    def simple(self, statement, known):
        if isinstance(statement, ast.FunctionDef):
            known[statement.name] = self.function(statement, known)
            return []
        made = []
        for one in self.single(statement):
            name = self._name_of(one)
            if name is not None and isinstance(one.value, ast.Lambda):
                known[name] = self.function(one.value, known)
                continue
            self.replace(one, known)
            value = self.static.value(one.value) if name is not None else static.UNKNOWN
            for stored in stores([one]):
                known.pop(stored, None)
            if name is not None and is_constant(value):
                known[name] = value
            made.append(one)
        return made

    def single(self, statement):
        """Splits an assignment of constants to several names into one assignment for each name.
        Returns any other statement unchanged."""
        if not isinstance(statement, ast.Assign) or not all(isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets):
            return [statement]
        target, value = statement.targets[0], statement.value
        if len(statement.targets) > 1 and is_constant(self.static.value(value)):
            return [ast.copy_location(ast.Assign([t], value), statement) for t in statement.targets]
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
            return [statement]
        is_plain = len(statement.targets) == 1 and all(isinstance(t, ast.Name) for t in target.elts)
        if not is_plain:
            return [statement]
        names = {t.id for t in target.elts}
        is_apart = not any(isinstance(n, ast.Name) and n.id in names for v in value.elts for n in ast.walk(v))
        if is_apart and any(is_constant(self.static.value(v)) for v in value.elts):
            return [ast.copy_location(ast.Assign([t], v), statement) for t, v in zip(target.elts, value.elts)]
        return [statement]

    # ---- expressions ----

    def replace(self, node, known):
        return _Replacement(self, known).visit(node)

    def function(self, node, known):
        return closures.make(self.emitter, node, known)


class _Replacement(ast.NodeTransformer):
    """Replaces names by their constants, and lambdas by functions, in place."""

    def __init__(self, folder, known):
        self.folder, self.known = folder, known

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or node.id not in self.known:
            return node
        return self.constant(self.known[node.id], node)

    def constant(self, value, node):
        made = ast.copy_location(ast.Constant(value), node)
        if isinstance(value, closures.Inner) and value.captured:  # a function with captured variables
            names = [self.visit(ast.copy_location(ast.Name(name, ast.Load()), node)) for name in value.captured]
            return ast.copy_location(ast.Call(ast.copy_location(ast.Constant(closures.BIND), node), [made, *names], []), node)
        return made

    def visit_Lambda(self, node):
        return self.constant(self.folder.function(node, self.known), node)

    def visit_Call(self, node):
        self.generic_visit(node)
        bound = closures.bound_of(node.func)
        if bound is not None:  # the function is called directly, so the captured variables become arguments
            node.func, names = bound
            node.keywords += [ast.keyword(closures.CAPTURED + name.id, name) for name in names]
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        value = self.folder.static.value(node.test)
        if isinstance(value, static.PLAIN):
            return node.body if value else node.orelse
        return node
