"""Inner functions that return nothing, in functions of njit that Python runs in part. Each call that is a statement is replaced by the
body of the inner function. The parameters and the variables of the inner function have new names there, so they remain apart from the
variables of the outer function, and each call has variables of its own."""

import ast
import itertools

from .scope import copied

# The parts of an inner function whose meaning depends on the function around them.
_BOUND = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Return, ast.Global, ast.Nonlocal),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.With, ast.Import, ast.ImportFrom),
)


def written(node, taken):
    """Returns the function's node with the bodies of such inner functions in place of their calls, or the same node if there are none.
    taken: names that the new variables must not have."""
    body = node.body
    taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | set(taken)
    # The last function is replaced first. Its body can call earlier functions. These calls are then in the outer function when the
    # earlier functions are replaced.
    for inner in reversed([s for s in node.body if isinstance(s, ast.FunctionDef)]):
        if _is_replaced(inner, node, body):
            at = body.index(inner)
            writer = _Writer(inner, taken)
            after = [writer.visit(s) for s in copied(body[at + 1 :])]
            body = [*body[:at], *(part for s in after for part in (s if isinstance(s, list) else [s]))]
    if body is node.body:
        return node
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), "body": body or [_nothing(node)]}), node)


def _nothing(node):
    return ast.copy_location(ast.Pass(), node)


def _is_return(statement):
    """Returns whether a statement is a `return` without a value."""
    if not isinstance(statement, ast.Return):
        return False
    return statement.value is None or isinstance(statement.value, ast.Constant) and statement.value.value is None


def _without_return(body):
    """Returns the statements of a block without a `return` at the end. If an `if` at the block's level ends with a `return`, the
    statements after the `if` become its else branch."""
    for i, statement in enumerate(body):
        if _is_return(statement):
            return body[:i]
        if isinstance(statement, ast.If) and not statement.orelse and _is_return(statement.body[-1]):
            left = _without_return(statement.body) or [_nothing(statement)]
            return [*body[:i], ast.copy_location(ast.If(statement.test, left, _without_return(body[i + 1 :])), statement)]
    return body


def _is_replaced(inner, node, body):
    """Returns whether the body of an inner function can stand in the place of its calls. body: the statements of the outer function."""
    arguments = inner.args
    others = [arguments.vararg, arguments.kwarg, *arguments.posonlyargs, *arguments.kwonlyargs, *arguments.defaults]
    if inner.decorator_list or any(others):
        return False
    if any(isinstance(n, _BOUND) for s in _without_return(inner.body) for n in ast.walk(s)):
        return False
    nodes = [n for s in body for n in ast.walk(s)]
    parameters = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
    functions = [n.name for n in nodes if isinstance(n, ast.FunctionDef)]
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == inner.name]
    later = [n for s in body[body.index(inner) + 1 :] for n in ast.walk(s)]
    calls = {id(n.value.func) for n in later if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and _fits(n.value, inner)}
    return inner.name not in parameters and functions.count(inner.name) == 1 and all(id(n) in calls for n in uses)


def _fits(call, inner):
    """Returns whether a call passes each parameter exactly once."""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return False
    parameters = [a.arg for a in inner.args.args]
    given = [*parameters[: len(call.args)], *(k.arg for k in call.keywords)]
    return len(call.args) <= len(parameters) and None not in given and sorted(given) == sorted(parameters)


class _Writer(ast.NodeTransformer):
    """Replaces the calls of one inner function."""

    def __init__(self, inner, taken):
        self.inner, self.taken = inner, taken
        self.parameters = [a.arg for a in inner.args.args]
        self.statements = _without_return(inner.body)
        names = (n for s in self.statements for n in ast.walk(s) if isinstance(n, ast.Name))
        self.stored = {n.id for n in names if not isinstance(n.ctx, ast.Load)}

    def visit_Expr(self, node):
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != self.inner.name:
            return node
        given = [*zip(self.parameters, call.args), *((k.arg, k.value) for k in call.keywords)]
        new, begin = {name: ast.Name(self.fresh(name)) for name in sorted(self.stored)}, []
        for name, value in given:
            if name not in self.stored and isinstance(value, (ast.Name, ast.Constant)):
                new[name] = value
                continue
            new[name] = new[name] if name in self.stored else ast.Name(self.fresh(name))
            begin.append(ast.copy_location(ast.Assign([ast.copy_location(ast.Name(new[name].id, ast.Store()), value)], value), node))
        renamer = _Renamer(new)
        return [*begin, *(renamer.visit(s) for s in copied(self.statements))] or [_nothing(node)]

    def fresh(self, name):
        names = (f"{name}_of_{self.inner.name}_{i}" for i in itertools.count())
        made = next(n for n in names if n not in self.taken)
        self.taken.add(made)
        return made


class _Renamer(ast.NodeTransformer):
    def __init__(self, new):
        self.new = new

    def visit_Name(self, node):
        new = self.new.get(node.id)
        if new is None:
            return node
        made = ast.Name(new.id, node.ctx) if isinstance(new, ast.Name) else ast.Constant(new.value)
        return ast.copy_location(made, node)
