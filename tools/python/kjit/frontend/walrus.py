"""Assignments inside of expressions, `(n := f(x))`, and comprehensions whose items a call or a loop consumes, become
statements before the statement that contains them. Python's order of evaluation is kept."""

import ast

from . import comprehensions


def _is_one(node, found):
    return isinstance(node, ast.NamedExpr) or id(node) in found.calls or id(node) in found.displays


def has_one(node, found=comprehensions.NONE):
    """Returns whether an expression contains an assignment or a consumed comprehension, outside of lambdas."""
    if isinstance(node, (ast.Lambda, ast.FunctionDef)):
        return False
    return _is_one(node, found) or any(has_one(child, found) for child in ast.iter_child_nodes(node))


def expand(body, temporary, found=comprehensions.NONE):
    """Returns the statements without assignments in expressions, or the same list if there are
    none. temporary: returns a new name. found: the comprehensions that become loops."""
    if not found.loops and not any(has_one(statement, found) for statement in body):
        return body
    return _Expansion(temporary, found).block(body)


def _at(node, like):
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.stmt)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)
    return node


# The expression of each kind of statement that Python evaluates first.
_FIRST = {ast.Assign: "value", ast.AnnAssign: "value", ast.AugAssign: "value", ast.Expr: "value", ast.Return: "value",
          ast.Assert: "test", ast.If: "test", ast.For: "iter"}  # fmt: skip


class _Expansion:
    def __init__(self, temporary, found):
        self.temporary, self.found = temporary, found

    def has_one(self, node):
        return has_one(node, self.found)

    def is_changed(self, statement):
        """Returns whether a statement contains an expression that becomes a statement."""
        return self.has_one(statement) or any(id(n) in self.found.loops for n in ast.walk(statement))

    def block(self, body):
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, statement):
        if not self.is_changed(statement):
            return [statement]
        copied = _at(type(statement)(**{f: getattr(statement, f, None) for f in statement._fields}), statement)
        for field in ("body", "orelse"):
            if getattr(copied, field, None):
                setattr(copied, field, self.block(getattr(copied, field)))
        if id(statement) in self.found.loops:
            return self.block(comprehensions.loop(copied, self.found, self.temporary))
        before = []
        if isinstance(statement, ast.While):
            return [self.loop(copied)] if self.has_one(copied.test) else [copied]
        field = _FIRST.get(type(statement))
        if isinstance(statement, ast.AugAssign):
            copied.target = self.place(copied.target, before)
        if field and self.has_one(getattr(copied, field)):
            setattr(copied, field, self.flat(getattr(copied, field), before))
        if isinstance(statement, ast.Assign) and any(map(self.has_one, statement.targets)):
            copied.value = self.keep(copied.value, before)
            copied.targets = [self.place(target, before) for target in statement.targets]
        return [*before, copied]

    def place(self, target, before):
        """Returns the target of an assignment without assignments inside of it."""
        if not self.has_one(target):
            return target
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.copy_location(ast.Tuple([self.place(item, before) for item in target.elts], ast.Store()), target)
        return self.operands(target, before)

    def loop(self, statement):
        """Returns a while loop whose condition assigns; the assignment is made at each iteration's
        start."""
        if statement.orelse:
            return statement  # the translation of the expression reports this case as an error
        before = []
        test = self.flat(statement.test, before)
        leave = ast.If(test, [ast.Pass()], [ast.Break()])
        return _at(ast.While(ast.Constant(True), [*before, _at(leave, test), *statement.body], []), statement)

    def keep(self, value, before):
        """Stores the value in a new variable, and returns the variable as a node."""
        name = self.temporary()
        before.append(_at(ast.Assign([ast.Name(name, ast.Store())], value), value))
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def flat(self, node, before):
        """Returns the expression without assignments. Appends the assignments, and the operands
        that Python evaluates before them, to `before`."""
        if not self.has_one(node):
            return node
        if isinstance(node, ast.NamedExpr):
            value = self.flat(node.value, before)
            before.append(_at(ast.Assign([ast.Name(node.target.id, ast.Store())], value), node))
            return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        if id(node) in self.found.calls:
            made, result = comprehensions.consume(node, self.found, self.temporary)
            before += self.block(made)
            return result
        if id(node) in self.found.displays:
            items = ast.copy_location(ast.Tuple(node.args[0].elts, ast.Load()), node)
            node = ast.copy_location(ast.Call(node.func, [items, *node.args[1:]], node.keywords), node)
            return self.flat(node, before)
        if isinstance(node, ast.BoolOp):
            return self.choice(node, before)
        if isinstance(node, ast.IfExp):
            test, name = self.flat(node.test, before), self.temporary()
            before.append(_at(ast.If(test, self.assigned(name, node.body), self.assigned(name, node.orelse)), node))
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self.chain(node, before)
        return self.operands(node, before)

    def assigned(self, name, value):
        inside = []
        value = self.flat(value, inside)
        return [*inside, _at(ast.Assign([ast.Name(name, ast.Store())], value), value)]

    def choice(self, node, before):
        """Writes `a and b` and `a or b`: b is evaluated only if a does not decide the result."""
        first, name = self.flat(node.values[0], before), self.temporary()
        before.append(_at(ast.Assign([ast.Name(name, ast.Store())], first), node))
        rest = node.values[1] if len(node.values) == 2 else ast.copy_location(ast.BoolOp(node.op, node.values[1:]), node)
        test = ast.Name(name, ast.Load())
        test = test if isinstance(node.op, ast.And) else ast.UnaryOp(ast.Not(), test)
        before.append(_at(ast.If(test, self.assigned(name, rest), []), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def chain(self, node, before):
        """Writes `a < b < c` as `a < b and b < c`; b is evaluated once."""
        first = self.keep(self.flat(node.left, before), before)
        second = self.keep(self.flat(node.comparators[0], before), before)
        pair = ast.copy_location(ast.Compare(first, node.ops[:1], [second]), node)
        rest = ast.copy_location(ast.Compare(second, node.ops[1:], node.comparators[1:]), node)
        return self.flat(ast.copy_location(ast.BoolOp(ast.And(), [pair, rest]), node), before)

    def operands(self, node, before):
        """Returns the expression with the operands before an assignment stored in variables."""
        places = []
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                places += [(field, i) for i, item in enumerate(value) if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                places.append((field, None))
        copied = _at(type(node)(**{f: list(v) if isinstance(v, list) else v for f, v in ast.iter_fields(node)}), node)
        inside = [(f, i, getattr(node, f) if i is None else getattr(node, f)[i]) for f, i in places]
        for at, (field, i, child) in enumerate(inside):
            later = any(self.has_one(other) for _, _, other in inside[at + 1 :])
            if isinstance(child, ast.keyword):
                new = ast.keyword(child.arg, self.operand(child.value, later, before))
            elif field == "func" or not isinstance(child, ast.expr):
                new = child
            else:
                new = self.operand(child, later, before)
            if i is None:
                setattr(copied, field, new)
            else:
                getattr(copied, field)[i] = new
        return copied

    def operand(self, node, later, before):
        new = self.flat(node, before)
        return self.keep(new, before) if later and not isinstance(new, ast.Constant) else new
