"""Comprehensions and calls of map and filter whose items are consumed at once become loops: `sum([x * x for x in a])`,
`max(f(x) for x in a)`, `for y in map(f, a)`. No list is made.

A list comprehension in a loop's head is a loop of its own in Python, which ends before the loop's body begins. It becomes
part of the loop only if the body cannot change the values that the comprehension reads."""

import ast

_CONSUMERS = (sum, min, max, len, any, all)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_NUMBERS = (*_CONSUMERS, abs, bool, complex, float, int, round)  # calls of these functions make no array
_NEW = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare)  # these expressions make a number or a new array
_SCOPES = (ast.Lambda, ast.FunctionDef, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


class Found:
    """The consumers in a function: the calls and loops whose comprehensions become loops. calls: calls by the id of their node.
    loops: the same for loops. displays: the same for calls whose argument is a list of expressions. names: static.Names. unset:
    variables that the loops set before they read them. new: variables whose arrays share no memory with other variables."""

    def __init__(self, names=None):
        self.names, self.calls, self.loops, self.displays, self.unset = names, {}, {}, {}, set()
        self.new = set()

    def __bool__(self):
        return bool(self.calls or self.loops or self.displays)

    def kind(self, node):
        """Returns the builtin that a node calls, or None."""
        value = self.names.value(node.func) if isinstance(node, ast.Call) else None
        return value if any(value is kind for kind in (*_CONSUMERS, map, filter, zip, enumerate, range)) else None

    def copied(self, node, names):
        """Returns a copy of a tree in which variables have other names. names: the new name of each variable."""
        if isinstance(node, list):
            return [self.copied(item, names) for item in node]
        if not isinstance(node, ast.AST):
            return node
        inner = {n: new for n, new in names.items() if n not in _bound(node)}
        fields = {f: self.copied(v, inner) for f, v in ast.iter_fields(node)}
        if isinstance(node, ast.Name):
            fields["id"] = names.get(node.id, node.id)
        made = type(node)(**fields)
        if isinstance(node, (*_COMPREHENSIONS, ast.SetComp, ast.DictComp)):  # the first iterable is evaluated outside
            made.generators[0].iter = self.copied(node.generators[0].iter, names)
        for table in (self.calls, self.displays):
            if id(node) in table:
                table[id(made)] = made
        return ast.copy_location(made, node) if hasattr(node, "lineno") else made


NONE = Found()


def _bound(node):
    """Returns the names that a lambda or a comprehension binds for the expressions inside it."""
    if isinstance(node, ast.Lambda):
        return {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    return {n for g in getattr(node, "generators", ()) for n in _names(g.target)}


def _names(target):
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def find(body, names):
    """Returns the consumers in a function's body. names: static.Names of the function."""
    found = Found(names)
    found.new = _new_variables(body, names)
    for statement in body:
        _find(statement, found)
    return found


def _new_variables(body, names):
    """Returns the variables to which the function assigns only numbers and new arrays. No other variable refers to
    these arrays."""
    new, stores, others = set(), set(), set()
    for node in (n for s in body for n in ast.walk(s)):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
        called = names.value(node.value.func) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
        is_number = any(called is function for function in _NUMBERS)
        if isinstance(target, ast.Name) and (isinstance(node, ast.Assign) and isinstance(node.value, _NEW) or is_number):
            new.add(target.id)
            stores.add(id(target))
        elif isinstance(target, ast.Name) and isinstance(node, ast.AugAssign):
            stores.add(id(target))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in stores:
            others.add(node.id)
    return new - others


def _find(node, found):
    if isinstance(node, ast.Call) and _is_of_display(node, found):
        found.displays[id(node)] = node
    if isinstance(node, ast.Call) and _is_consumer(node, found):
        found.calls[id(node)] = node
        _find_inside(node.args[0], found)
        for other in [*node.args[1:], *node.keywords]:
            _find(other, found)
        return
    if isinstance(node, ast.For) and _is_consuming_loop(node, found):
        found.loops[id(node)] = node
        _find_inside(node.iter, found)
        for statement in [*node.body, *node.orelse]:
            _find(statement, found)
        return
    for child in () if isinstance(node, _SCOPES) else ast.iter_child_nodes(node):
        _find(child, found)


def _find_inside(node, found):
    """Finds the consumers in an expression that becomes a loop."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda):
            _find(child.body, found)
        elif isinstance(child, (ast.comprehension, *_COMPREHENSIONS)) or found.kind(child) in (map, filter, zip, enumerate):
            _find_inside(child, found)
        else:
            _find(child, found)


def _is_consumer(call, found):
    kind = found.kind(call)
    if kind not in _CONSUMERS or not call.args or isinstance(call.args[0], ast.Starred):
        return False
    is_start = kind is sum and len(call.args) + len(call.keywords) == 2 and all(k.arg == "start" for k in call.keywords)
    if not is_start and (len(call.args) > 1 or call.keywords):
        return False
    if kind is len:
        return isinstance(call.args[0], ast.ListComp) and _is_lazy(call.args[0], found)
    return _is_lazy(call.args[0], found)


def _is_of_display(call, found):
    """Returns whether a call of sum, min, max or len has a list of expressions as its argument."""
    is_list = call.args and isinstance(call.args[0], ast.List) and call.args[0].elts
    return is_list and not any(isinstance(e, ast.Starred) for e in call.args[0].elts) and found.kind(call) in (sum, min, max, len)


def _is_lazy(node, found):
    """Returns whether an expression is a comprehension, or a call of map or filter, that can become a loop."""
    if isinstance(node, _COMPREHENSIONS):
        return not any(g.is_async for g in node.generators)
    if found.kind(node) not in (map, filter) or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return False
    return len(node.args) == 2 if found.kind(node) is filter else len(node.args) >= 2


def _is_consuming_loop(loop, found):
    node = loop.iter
    is_left = loop.orelse or any(isinstance(n, ast.Break) for n in ast.walk(loop))
    if is_left and not _is_one_loop(node, found):  # a break would only leave the innermost of the loops
        return False
    if isinstance(node, _COMPREHENSIONS):
        return _is_lazy(node, found) and (isinstance(node, ast.GeneratorExp) or not _may_change(loop, found))
    is_eager = any(isinstance(n, ast.ListComp) for n in ast.walk(node))
    return (_is_lazy(node, found) or _has_map(node, found)) and not (is_eager and _may_change(loop, found))


def _is_one_loop(node, found):
    """Returns whether an expression becomes a single loop. A comprehension has a loop for each `for`."""
    if isinstance(node, _COMPREHENSIONS):
        return len(node.generators) == 1 and _is_one_loop(node.generators[0].iter, found)
    return not _is_lazy(node, found) or all(_is_one_loop(items, found) for items in node.args[1:])


def _has_map(node, found):
    """Returns whether zip or enumerate has an argument that is a call of map."""
    if found.kind(node) not in (zip, enumerate) or any(isinstance(a, ast.Starred) for a in node.args):
        return False
    items = node.args if found.kind(node) is zip else node.args[:1]
    return any(_is_map(a, found) or _has_map(a, found) for a in items)


def _is_map(node, found):
    """Returns whether an expression is a call of map, or the equivalent comprehension without a condition. Such an
    expression has an item for each item of its arguments, so no argument can be a filter call or a comprehension with a
    condition."""
    if isinstance(node, _COMPREHENSIONS):
        is_plain = len(node.generators) == 1 and not node.generators[0].ifs
        return is_plain and _is_lazy(node, found) and _is_source(node.generators[0].iter, found)
    return found.kind(node) is map and _is_lazy(node, found) and all(_is_source(a, found) for a in node.args[1:])


def _is_source(node, found):
    return _is_map(node, found) or not _is_lazy(node, found)


def _may_change(loop, found):
    """Returns whether a loop's body may change the values that the list comprehension in its head reads."""
    reads = [n for n in ast.walk(loop.iter) if isinstance(n, (ast.Subscript, ast.Attribute, ast.Call))]
    is_of_memory = any(found.kind(n) is not range for n in reads)
    is_of_memory |= any(found.kind(g.iter) is not range for n in ast.walk(loop.iter) for g in getattr(n, "generators", ()))
    names = {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
    for node in (n for s in loop.body for n in ast.walk(s)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            return True
        if isinstance(node, ast.Name) and is_of_memory and not isinstance(node.ctx, ast.Load) and node.id in names:
            return True
        is_write = isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store)
        is_call = isinstance(node, ast.Call) and not isinstance(found.names.value(node.func), type(len))
        is_in_place = isinstance(node, ast.AugAssign) and getattr(node.target, "id", None) not in found.new  # it changes an array
        if is_of_memory and (is_write or is_call or is_in_place):
            return True
    return False


# ---- the statements ----


def _at(statements, like):
    for node in (n for s in statements for n in ast.walk(s)):
        if isinstance(node, (ast.expr, ast.stmt)) and not hasattr(node, "lineno"):
            ast.copy_location(node, like)
    return statements


def _load(name):
    return ast.Name(name, ast.Load())


def _set(name, value):
    return ast.Assign([ast.Name(name, ast.Store())], value)


class Nest:
    """Writes the loops for an expression. found: Found of the function; temporary: returns a new name."""

    def __init__(self, found, temporary):
        self.found, self.temporary = found, temporary

    def loops(self, node, target, body, orelse=()):
        """Returns the statements that assign each item of an expression to the target and then run the body."""
        if isinstance(node, _COMPREHENSIONS):
            return self.of_comprehension(node, target, body, orelse)
        kind = self.found.kind(node)
        if kind is map or kind is filter:
            names = [self.temporary() for _ in node.args[1:]]
            value = self.called(node.args[0], names)
            if kind is map:
                body = [ast.Assign([target], value), *body]
            else:
                body = [ast.If(value, [ast.Assign([target], _load(names[0])), *body], [])]
            return self.loops(self.items(node), self.targets(names), body, orelse)
        if _has_map(node, self.found):
            before = []
            node, target = self.without_map(node, target, before)
            body = [*before, *body]
        return [ast.For(target, node, body, list(orelse))]

    @staticmethod
    def items(call):
        """Returns the iterable for a call of map or filter: the argument, or zip of several arguments."""
        if len(call.args) == 2:
            return call.args[1]
        return _at([ast.copy_location(ast.Call(ast.Name("zip", ast.Load()), call.args[1:], []), call)], call)[0]

    @staticmethod
    def targets(names):
        stores = [ast.Name(name, ast.Store()) for name in names]
        return stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())

    def called(self, function, names):
        """Returns the expression for a call with variables as arguments. filter takes None in place of a function."""
        if isinstance(function, ast.Constant) and function.value is None:
            return _load(names[0])
        arguments = getattr(function, "args", None)
        is_plain = isinstance(function, ast.Lambda) and not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults)
        if is_plain and len(arguments.args) == len(names) and not arguments.posonlyargs:
            return self.found.copied(function.body, dict(zip((a.arg for a in arguments.args), names)))
        return ast.Call(self.found.copied(function, {}), [_load(name) for name in names], [])

    def of_comprehension(self, node, target, body, orelse):
        new = {n: self.temporary() for g in node.generators for n in _names(g.target)}
        body = [ast.Assign([target], self.found.copied(node.elt, new)), *body]
        for i, generator in reversed(list(enumerate(node.generators))):
            for test in reversed(generator.ifs):
                body = [ast.If(self.found.copied(test, new), body, [])]
            items = self.found.copied(generator.iter, new) if i else generator.iter
            body = self.loops(items, self.found.copied(generator.target, new), body, () if i else orelse)
        return body

    def without_map(self, node, target, before):
        """Returns (iterable, target) without calls of map. before: a list, to which the statements that assign the results of
        these calls are appended, inner calls first."""
        kind = self.found.kind(node)
        if not _is_map(node, self.found) and not _has_map(node, self.found):
            return node, target
        if isinstance(node, _COMPREHENSIONS):
            generator = node.generators[0]
            new = {n: self.temporary() for n in _names(generator.target)}
            found = self.without_map(generator.iter, self.found.copied(generator.target, new), before)
            before.append(ast.Assign([target], self.found.copied(node.elt, new)))
            return found
        if kind is map:
            names = [self.temporary() for _ in node.args[1:]]
            found = self.without_map(self.items(node), self.targets(names), before)
            before.append(ast.Assign([target], self.called(node.args[0], names)))
            return found
        count = 2 if kind is enumerate else len(node.args)
        inner, after = [], []
        targets = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == count else None
        if targets is None:
            names = [self.temporary() for _ in range(count)]
            targets = [ast.Name(name, ast.Store()) for name in names]
            after = [ast.Assign([target], ast.Tuple([_load(name) for name in names], ast.Load()))]
        arguments, stores = list(node.args), list(targets)
        for i in [0] if kind is enumerate else range(count):
            at = 1 if kind is enumerate else i
            arguments[i], stores[at] = self.without_map(arguments[i], stores[at], inner)
        before += [*inner, *after]
        call = ast.copy_location(ast.Call(node.func, arguments, node.keywords), node)
        return call, ast.copy_location(ast.Tuple(stores, ast.Store()), node)


def loop(statement, found, temporary):
    """Returns the statements for a loop over a comprehension, or over calls of map and filter."""
    return _at(Nest(found, temporary).loops(statement.iter, statement.target, statement.body, statement.orelse), statement)


def consume(call, found, temporary):
    """Returns (statements, expression) that give the value of a call of sum, min, max, len, any or all."""
    kind, items = found.kind(call), call.args[0]
    item, result = temporary(), temporary()
    if kind is min or kind is max:
        return _at(_extremum(kind, items, item, result, Nest(found, temporary), temporary()), call), _at([_load(result)], call)[0]
    if kind is any or kind is all:
        first = ast.Constant(kind is all)
        test = _load(item) if kind is any else ast.UnaryOp(ast.Not(), _load(item))
        is_left = not isinstance(items, ast.ListComp)  # any and all read a list only after it is complete
        body = [ast.If(test, [_set(result, ast.Constant(kind is any)), *([ast.Break()] if is_left else [])], [])]
    else:
        others = [*call.args[1:], *[k.value for k in call.keywords]]
        first = others[0] if others else ast.Constant(0)
        count = ast.AugAssign(ast.Name(result, ast.Store()), ast.Add(), ast.Constant(1))
        body = [count] if kind is len else [_set(result, ast.BinOp(_load(result), ast.Add(), _load(item)))]
    loops = Nest(found, temporary).loops(items, ast.Name(item, ast.Store()), body)
    if kind in (any, all) and is_left:
        _leave(loops, lambda: _load(result) if kind is any else ast.UnaryOp(ast.Not(), _load(result)))
    return _at([_set(result, first), *loops], call), _at([_load(result)], call)[0]


def _leave(loops, known):
    """Adds a break after each loop that is inside another loop: the break of the inner loop does not leave the outer one. known:
    returns the condition that any or all has its result."""
    for loop in loops:
        loop.body = _left(loop.body, known)


def _left(statements, known):
    made = []
    for statement in statements:
        made.append(statement)
        if isinstance(statement, (ast.For, ast.If)):
            statement.body = _left(statement.body, known)
        if isinstance(statement, ast.For):
            made.append(ast.If(known(), [ast.Break()], []))
    return made


def _extremum(kind, items, item, result, nest, is_first):
    """Returns the statements for min and max. As in Numba, the first item stays unless a later one is smaller or larger, so a
    NaN in first place stays, too."""
    nest.found.unset.add(result)
    operator = ast.Lt() if kind is min else ast.Gt()
    better = ast.If(ast.Compare(_load(item), [operator], [_load(result)]), [_set(result, _load(item))], [])
    begin = [_set(result, _load(item)), _set(is_first, ast.Constant(False))]
    loops = nest.loops(items, ast.Name(item, ast.Store()), [ast.If(_load(is_first), begin, [better])])
    error = ast.Call(ast.Constant(ValueError), [ast.Constant(f"{kind.__name__}() arg is an empty sequence")], [])
    return [_set(is_first, ast.Constant(True)), *loops, ast.If(_load(is_first), [ast.Raise(error, None)], [])]
