"""Makes functions of their own of the inner functions in a function of njit that Python runs in part.

A variable of the outer function that an inner function reads becomes a parameter of the new function, before its own parameters. Each call
passes the variable's current value, which is the value that Python's inner function would read. An inner function that reads such
variables can only be called, because a value cannot carry them along.
"""

import ast

from . import closures, static, words
from . import source as sources
from .scope import copied

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Lifted:
    """node: the outer function's node without its inner functions. functions: a dictionary from the names of the inner functions to the new
    functions."""

    def __init__(self, node, functions):
        self.node, self.functions = node, functions


def _walk_own(node):
    """Yields the nodes of a function's body, with inner functions but without their bodies."""
    waiting = list(reversed(node.body))
    while waiting:
        inner = waiting.pop()
        yield inner
        if isinstance(inner, _SCOPES):
            waiting += [*inner.args.defaults, *filter(None, inner.args.kw_defaults)]
        else:
            of_comprehension = (inner.target,) if isinstance(inner, ast.comprehension) else ()  # its variable belongs to the comprehension
            waiting += reversed([n for n in ast.iter_child_nodes(inner) if n not in of_comprehension])


def _is_named(statement):
    """Returns whether a statement assigns a lambda to a name."""
    is_of_lambda = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda)
    return is_of_lambda and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)


def _stored(nodes):
    return [n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]


def _bound(function):
    """Returns the names of a function's parameters and variables."""
    names = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    if isinstance(function, ast.Lambda):
        return names
    nodes = [*_walk_own(function)]
    return names.union(_stored(nodes), (n.name for n in nodes if isinstance(n, ast.FunctionDef)))


def _find(node, parameters):
    """Returns the inner functions and lambdas by name, without functions whose name is bound in another way as well. A lambda without a name
    of its own gets a name."""
    nodes = [*_walk_own(node)]
    found, bound = {}, [*parameters, *_stored(nodes)]
    for inner in nodes:
        bound += _stored(ast.walk(inner.target)) if isinstance(inner, ast.comprehension) else ()
        bound += [inner.name] if isinstance(inner, ast.FunctionDef) else ()
    for inner in nodes:
        if isinstance(inner, ast.FunctionDef) and not inner.decorator_list and bound.count(inner.name) == 1:
            found[inner.name] = inner
        elif _is_named(inner) and bound.count(inner.targets[0].id) == 1:
            found[inner.targets[0].id] = inner.value
    named = {id(function) for function in found.values()}
    for inner in nodes:
        if isinstance(inner, ast.Lambda) and id(inner) not in named:
            found[f"lambda_{len(found)}_{inner.lineno}"] = inner
    return found


def _definition(name, function):
    """Returns the definition of a new function for an inner function or a lambda."""
    made = copied(function)
    if isinstance(function, ast.Lambda):
        body = [ast.copy_location(ast.Return(made.body), made.body)]
        made = ast.copy_location(ast.FunctionDef(name=name, args=made.args, body=body, decorator_list=[], returns=None), made)
    return made


def _of_comprehensions(node):
    """Returns the variables of the comprehensions around each lambda, by the id of the lambda."""
    found = {}
    for outer in ast.walk(node):
        targets = [generator.target for generator in getattr(outer, "generators", ())]
        names = {name for target in targets for name in _stored(ast.walk(target))}
        for inner in ast.walk(outer) if names else ():
            if isinstance(inner, ast.Lambda):
                found[id(inner)] = found.get(id(inner), set()) | names
    return found


def _reads(found):
    """Returns the names that each inner function and the inner functions that it calls read from around them."""
    reads = {name: closures.reads(definition) for name, definition in found.items()}
    for _ in found:
        for name, read in reads.items():
            reads[name] = read.union(*(reads[other] for other in read & set(found)))
    return reads


class _Rewriter(ast.NodeTransformer):
    """Removes the definitions of inner functions, and passes their captured variables in each call. names: the names of the new functions
    by the id of the inner function. hidden: the names that have another meaning at the present node."""

    def __init__(self, found, captured, source):
        self.captured, self.source, self.hidden = captured, source, set()
        self.names = {id(function): name for name, function in found.items()}

    def inside(self, function, nodes):
        """Returns the nodes of a function's body after the visit."""
        before, self.hidden = self.hidden, self.hidden | _bound(function)
        visited = [self.visit(node) for node in nodes]
        self.hidden = before
        return visited

    def visit_FunctionDef(self, node):
        if id(node) in self.names:
            return ast.copy_location(ast.Pass(), node)
        node.body = self.inside(node, node.body)
        return node

    def visit_Assign(self, node):
        is_removed = _is_named(node) and self.names.get(id(node.value)) == node.targets[0].id
        return ast.copy_location(ast.Pass(), node) if is_removed else self.generic_visit(node)

    def name_of(self, node):
        """Returns the name of the new function to which an expression refers, or None."""
        if isinstance(node, ast.Lambda):
            return self.names.get(id(node))
        is_name = isinstance(node, ast.Name) and node.id not in self.hidden
        return node.id if is_name and node.id in self.captured else None

    def visit_Call(self, node):
        name = self.name_of(node.func)
        if name is None:
            return self.generic_visit(node)
        own, node.keywords = [*map(self.visit, node.args)], [*map(self.visit, node.keywords)]
        node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        node.args = [*(ast.copy_location(ast.Name(n, ast.Load()), node) for n in self.captured[name]), *own]
        return node

    def visit_Name(self, node):
        return self.value(node, f"`{node.id}`")

    def visit_Lambda(self, node):
        return self.value(node, "the lambda")

    def value(self, node, what):
        """Returns the node for an expression that is not called. what: its name in messages."""
        name = self.name_of(node)
        if name is None:
            if isinstance(node, ast.Lambda):
                node.body = self.inside(node, [node.body])[0]
            return node
        if self.captured[name]:
            names = ", ".join(f"`{name}`" for name in self.captured[name])
            raise self.source.error(
                node, f"{what} reads {names} of the function around it, so it can only be called here: pass {names} to it as arguments"
            )
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _default(node, names, source):
    value = names.value(node)
    if value is static.UNKNOWN:
        raise source.error(node, "a default of a function that is defined in a function must be a constant")
    return value


def _module(found, free, captured, rewriter):
    """Returns the tree of a module with a function that defines the inner functions and returns them. Its parameters are the names that the
    inner functions read from around them."""
    definitions = []
    for name, function in found.items():
        made = _definition(name, function)
        made.body = rewriter.inside(made, made.body)
        made.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in made.args.defaults]
        made.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in made.args.kw_defaults]
        first = [ast.copy_location(ast.arg(n), function) for n in captured[name]]
        made.args.args, made.args.posonlyargs = [*first, *made.args.posonlyargs, *made.args.args], []
        definitions.append(made)
    result = ast.Return(ast.Tuple([ast.Name(name, ast.Load()) for name in found], ast.Load()))
    parameters = ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, [])
    around = ast.FunctionDef(name="around", args=parameters, body=[*definitions, result], decorator_list=[], returns=None)
    ast.copy_location(around, definitions[0])
    return ast.fix_missing_locations(ast.Module([around], []))


def lifted(node, python, known, names, wrap):
    """Returns a Lifted, or None if no inner function can be lifted.

    node: the outer function's node
    python: the outer function
    known: the objects that the outer function reads from the functions around it, by name
    names: the static.Names of the outer function
    wrap: makes a function of njit of a Python function
    """
    node, source = copied(node), sources.of(python)
    parameters = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
    found = _find(node, parameters)
    if not found:
        return None
    for inner in (n for function in found.values() for n in ast.walk(function)):
        if isinstance(inner, ast.Nonlocal):
            raise source.error(inner, words.INSTEAD["Nonlocal"])
    stored = set(_stored(_walk_own(node)))
    reads, variables = _reads(found), (stored | set(parameters)) - set(found)
    around = _of_comprehensions(node)
    captured = {name: sorted(read & (variables | around.get(id(found[name]), set()))) for name, read in reads.items()}
    rewriter = _Rewriter(found, captured, source)
    free = [name for name in known if name not in found and name not in stored and name not in parameters]
    module = _module(found, free, captured, rewriter)
    space = {}
    exec(compile(module, python.__code__.co_filename, "exec"), python.__globals__, space)
    made = space["around"](*(known[name] for name in free))
    own = sources.Source(source.file, source.lines, is_fixed=True, tree=module)
    functions = {}
    for function, (name, inner) in zip(made, found.items()):
        function.__kjit_source__, function.__module__ = own, python.__module__
        function.__qualname__ = f"{python.__qualname__}.<locals>.{name}"
        arguments = inner.args
        function.__defaults__ = tuple(_default(d, names, source) for d in arguments.defaults) or None
        given = zip(arguments.kwonlyargs, arguments.kw_defaults)
        function.__kwdefaults__ = {a.arg: _default(d, names, source) for a, d in given if d is not None} or None
        functions[name] = wrap(function)
    for function in made:  # the inner functions call the new functions
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name in functions:
                cell.cell_contents = functions[name]
    node.body = [rewriter.visit(statement) for statement in node.body]
    return Lifted(node, functions)
