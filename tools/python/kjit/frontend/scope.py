"""Chooses where to declare variables. A Python variable belongs to its function, a variable of the kernel IR to a block. A variable is
declared by its first assignment if that block contains all uses. Otherwise it is declared before the statement that contains all uses."""

import ast

COMPOUND = (ast.If, ast.For, ast.While)


def copied(node):
    """Returns a copy of a syntax tree. Objects that the tree contains as constants are not copied."""
    if isinstance(node, list):
        return [copied(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{field: copied(value) for field, value in ast.iter_fields(node)})
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made


def blocks(statement):
    """Returns the blocks of a compound statement."""
    return [statement.body, statement.orelse] if isinstance(statement, ast.If) or statement.orelse else [statement.body]


def header(statement):
    return statement.iter if isinstance(statement, ast.For) else statement.test


def loop_names(statement):
    return [n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)]


def _targets_of(statement):
    return loop_names(statement) if isinstance(statement, ast.For) else []


def _flat(target):
    """Returns the targets in a tuple of targets, which may be nested."""
    is_tuple = isinstance(target, (ast.Tuple, ast.List))
    return [t for inner in target.elts for t in _flat(inner)] if is_tuple else [target]


def targets(statement):
    """Returns the expressions to which a simple statement assigns."""
    if isinstance(statement, ast.Assign):
        return [t for target in statement.targets for t in _flat(target)]
    return [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []


class Scope:
    """The variables that a function body assigns, and the statements that declare them in the kernel IR.

    declare: a dictionary from a statement's id to the names that the statement declares

    hoist: a dictionary from a statement's id to the names that are declared before the statement

    stores: a dictionary from a name to the number of its assignments

    types: a dictionary from a name to its annotations

    outer: a set with (id(loop), name) for each loop whose variable is also used after the loop

    unassigned: the nodes of names that are never assigned
    """

    def __init__(self, body, parameters):
        self.mentions, self.stores, self.types = {}, {}, {}
        self.declare, self.hoist, self.outer, self.unassigned = {}, {}, set(), []
        self._fields = {}  # name -> how many of its assignments are to its fields
        for statement in body:
            self._collect(statement)
        for name, count in self._fields.items():  # assigning a field of an outer value binds no name
            if count == self.stores[name] and name not in parameters:
                del self.stores[name]
        self.names = set(self.stores)
        for name in sorted(self.names - set(parameters)):
            self._place(body, name)
        for name in self.names & set(parameters):
            self._mark_loops(body, name)

    def _collect(self, statement):
        names = set()
        if isinstance(statement, COMPOUND):
            names |= self._names(header(statement))
            if isinstance(statement, ast.For):
                for name in loop_names(statement):
                    self._store(name)
                    names.add(name)
            for block in blocks(statement):
                for inner in block:
                    names |= self._collect(inner)
        else:
            names |= self._names(statement)
            if isinstance(statement, ast.Try):  # the Python interpreter runs this statement without changes
                for name in {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}:
                    self._store(name)
            for target in targets(statement):
                base = target.value if isinstance(target, ast.Attribute) else target
                if isinstance(base, ast.Name):
                    self._store(base.id)
                    self._fields[base.id] = self._fields.get(base.id, 0) + (base is not target)
                    if isinstance(statement, ast.AnnAssign) and base is target:
                        self.types.setdefault(base.id, []).append(statement.annotation)
        self.mentions[id(statement)] = names
        return names

    @staticmethod
    def _names(node):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    def _store(self, name):
        self.stores[name] = self.stores.get(name, 0) + 1

    def first(self, body, name):
        """Returns the first use of a name in a block: "assigned" on all paths, "read" on at least one path, "maybe" assigned, or "none"."""
        outcome = "none"
        for statement in body:
            if name not in self.mentions[id(statement)]:
                if isinstance(statement, (ast.Return, ast.Raise)):
                    return "assigned" if outcome == "none" else outcome
                continue
            if isinstance(statement, COMPOUND):
                found = self._first_of_compound(statement, name)
            elif self._assigns(statement, name):
                found = "assigned"
            elif isinstance(statement, ast.AnnAssign) and statement.value is None:
                found = "maybe"
            else:
                found = "read"
            if found in ("assigned", "read"):
                return found
            outcome = "maybe"
        return outcome

    def _first_of_compound(self, statement, name):
        if name in self._names(header(statement)):
            return "read"
        if isinstance(statement, ast.For) and name in loop_names(statement):
            return "maybe"
        found = [self.first(block, name) for block in blocks(statement)]
        if "read" in found:
            return "read"
        if isinstance(statement, ast.If) and all(f == "assigned" for f in found):
            return "assigned"
        return "maybe"

    def _assigns(self, statement, name):
        """Returns whether the statement is a plain assignment to the name whose value does not use the
        name."""
        return (
            isinstance(statement, (ast.Assign, ast.AnnAssign))
            and statement.value is not None
            and any(isinstance(t, ast.Name) and t.id == name for t in targets(statement))
            and name not in self._names(statement.value)
            and all(isinstance(t, ast.Name) or name not in self._names(t) for t in targets(statement))
        )

    def _place(self, body, name):
        found = [s for s in body if name in self.mentions[id(s)]]
        if not found:
            return
        loops = [
            s
            for s in found
            if isinstance(s, ast.For)
            and name in loop_names(s)
            and name not in self._names(s.iter)
            and not any(name in self.mentions[id(inner)] for inner in s.orelse)
        ]
        others = [s for s in found if s not in loops]
        if all(
            isinstance(s, COMPOUND) and self._first_of_compound(s, name) != "read" and name not in _targets_of(s)
            for s in others
        ):
            for statement in others:
                for block in blocks(statement):
                    self._place(block, name)
            return  # each loop has its own variable
        first = found[0]
        if self._assigns(first, name):
            self.declare.setdefault(id(first), []).append(name)
        elif isinstance(first, ast.AnnAssign) and first.value is None and isinstance(first.target, ast.Name):
            self.declare.setdefault(id(first), []).append(name)
        elif isinstance(first, COMPOUND) and name not in self._names(header(first)):
            self.hoist.setdefault(id(first), []).append(name)
        else:
            node = next(n for n in ast.walk(first) if isinstance(n, ast.Name) and n.id == name)
            self.unassigned.append((node, name))
        self._mark_loops(found, name)

    def _mark_loops(self, body, name):
        """Records that loops in these statements assign to the name and do not declare a variable, because the name is declared outside."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.For) and name in loop_names(node):
                    self.outer.add((id(node), name))
