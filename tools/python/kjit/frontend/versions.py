"""Variables of Python that are assigned values of other types later on, `a = a.reshape(6)`, become several of the kernel IR's, which
have one type each: where a value is used in one stretch of statements only, it has a name of its own there."""

import ast

from . import scope


class _Plain(ast.NodeTransformer):
    def visit_AnnAssign(self, statement):
        plain = ast.Pass() if statement.value is None else ast.Assign([statement.target], statement.value)
        return ast.copy_location(plain, statement)


def without_annotations(body):
    """The statements with plain assignments in place of annotated ones, as a copy where there are any: Numba ignores annotations."""
    if not any(isinstance(node, ast.AnnAssign) for statement in body for node in ast.walk(statement)):
        return body
    return [_Plain().visit(scope.copied(statement)) for statement in body]


def split(body, parameters):
    """The statements, as a copy where a variable was split; its parts are called a.1, a.2 and so on."""
    found = _Search(parameters)
    found.search(body)
    if not found.parts:
        return body
    body = scope.copied(body)
    found = _Search(parameters)
    found.search(body)
    for number, (name, nodes) in enumerate(found.parts, 1):
        for node in nodes:
            node.id = f"{name}.{number}"
    return body


def _names(node, name):
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]


def _assigns_plainly(statement):
    """The name that `name = value` assigns, or None."""
    is_plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    target = statement.targets[0] if is_plain else None
    return target.id if isinstance(target, ast.Name) else None


def _ends_early(statement):
    """Whether a loop around may end in it, where its names go on being used."""
    return any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(statement))


class _Search:
    """parts: (name, its nodes in a stretch)."""

    def __init__(self, parameters):
        self.parameters, self.parts, self.taken = set(parameters), [], set()

    def search(self, body):
        self.whole = body
        self._search(body)

    def _search(self, body):
        for at, statement in enumerate(body):
            name = _assigns_plainly(statement)
            if name is not None and id(statement.targets[0]) not in self.taken:
                self._take(body, at, name)
            if isinstance(statement, scope.COMPOUND):
                for block in scope.blocks(statement):
                    self._search(block)

    def _take(self, body, at, name):
        nodes = self._until_next(body, at, name)
        if nodes is None:
            nodes = self._beside_loops(body, at, name)
        if nodes is not None:
            self.taken |= {id(n) for n in nodes}
            self.parts.append((name, nodes))

    def _until_next(self, body, at, name):
        """The nodes of a value that another one follows in the same block."""
        nodes = [body[at].targets[0]]
        for statement in body[at + 1 :]:
            mentions = _names(statement, name)
            if _assigns_plainly(statement) == name:
                return nodes + [n for n in mentions if n is not statement.targets[0]]
            if _ends_early(statement) or any(isinstance(n.ctx, ast.Store) for n in mentions):
                return None
            nodes += mentions
        return None

    def _beside_loops(self, body, at, name):
        """The nodes of a value that is used in its block only, where all others of the name are variables of loops that nobody
        uses."""
        if name in self.parameters or body is self.whole or _names(body[at].value, name):
            return None
        here = [n for statement in body[at:] for n in _names(statement, name)]
        if any(isinstance(n.ctx, ast.Store) for n in here[1:]):
            return None
        known = {id(n) for n in here}
        others = [n for statement in self.whole for n in _names(statement, name) if id(n) not in known]
        return here if others and all(isinstance(n.ctx, ast.Store) for n in others) and self._are_of_loops(others) else None

    def _are_of_loops(self, nodes):
        targets = {
            id(n) for s in self.whole for loop in ast.walk(s) if isinstance(loop, ast.For) for n in ast.walk(loop.target)
        }
        return all(id(n) in targets for n in nodes)
