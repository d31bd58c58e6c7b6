"""Splits functions of kjit.njit that cannot be compiled as a whole, because they contain loops over prange or need NumPy.

Such a function remains a Python function. Each of its loops without NumPy becomes a call of compiled code: a kernel for a loop over prange,
a func for any other loop. Python runs the loops around these loops and the statements between them.
"""

import ast
import itertools

from . import source as sources
from . import comprehensions, constant_lists, lifting, loop_kernels, static, unrolling, walrus, words
from .reductions import Reductions
from .scope import COMPOUND, Scope, blocks
from .temporaries import Temporaries
from .whole_arrays import WholeArrays

class Loop:
    """A loop that becomes compiled code.

    node: the compiled function

    inputs: the names whose values the loop reads

    outputs: the names that the loop assigns

    unset: the inputs that a serial loop also assigns and that may have no value before the loop

    parts: the data for the kernel, if this is a loop over prange

    bounds: the loop's start, stop and step

    temporaries: the arrays that the loop creates
    """

    def __init__(self, statement, node, inputs, outputs, parts=None, bounds=None, temporaries=(), unset=()):
        self.statement, self.node, self.inputs, self.outputs, self.unset = statement, node, inputs, outputs, unset
        self.parts, self.bounds, self.temporaries = parts, bounds, list(temporaries)


class Splitter(WholeArrays, Reductions, Temporaries):
    def __init__(self, function, is_parallel, wrap, known=None):
        """wrap: makes a function of njit with this function's options. known: the values of parameters that are constants."""
        self.function, self.is_parallel, self.wrap = function, is_parallel, wrap
        self.source = sources.of(function)
        self.node = sources.find(function, self.source)
        self.loops, self._chosen = [], []
        if isinstance(self.node, ast.Lambda):
            body = ast.copy_location(ast.Return(self.node.body), self.node.body)
            made = ast.FunctionDef(name="lambda_", args=self.node.args, body=[body], decorator_list=[], returns=None)
            self.node = ast.copy_location(made, self.node)
        arguments = self.node.args
        others = [a for a in (arguments.vararg, arguments.kwarg) if a]
        self.parameters = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *others]]
        self.known, self.functions = known or {}, {}
        self._set_up()

    def _set_up(self):
        """Finds the variables of the function's node, after comprehensions have become loops."""
        known = {**self.known, **self.functions}
        self.unset = ()  # variables of comprehensions that have no value before their loop, which sets them before it reads them
        self.write_comprehensions(known)
        self.scope = Scope(self.node.body, self.parameters)
        self.locals = self.scope.names | set(self.parameters)
        around = {name: value for name, value in known.items() if name not in self.scope.stores}
        self.static = static.Names(self.function, self.locals - set(around), around, True)

    def lift(self):
        """Makes functions of their own of the inner functions, if this has not been done. The names of these functions are constants of the
        function's node."""
        if self.functions:
            return
        found = lifting.lifted(self.node, self.function, self.static.around, self.static, self.wrap)
        if found:
            self.node, self.functions = found.node, found.functions
            self._set_up()

    def write_comprehensions(self, known):
        """Replaces the function's node by one in which comprehensions that are consumed at once are loops, and lists of numbers
        that the function only reads are tuples."""
        node, own = self.node, {n.id for n in ast.walk(self.node) if isinstance(n, ast.Name)}
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names = static.Names(self.function, stored | set(self.parameters) - set(known), {n: v for n, v in known.items() if n not in stored}, True)
        written = constant_lists.written(unrolling.written(node.body, names), names)
        found = comprehensions.find(written, names)
        if not found and written is node.body:
            return
        numbers = itertools.count()

        def temporary():
            names = (f"item_{i}_of_{node.lineno}" for i in numbers)
            return next(n for n in names if n not in own and n not in self.function.__globals__)

        body = walrus.expand(written, temporary, found) if found else written
        self.unset = found.unset
        self.node = ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), "body": body}), node)

    # ---- kinds of statements ----

    def is_prange(self, statement):
        return (
            self.is_parallel
            and isinstance(statement, ast.For)
            and isinstance(statement.iter, ast.Call)
            and getattr(self.static.value(statement.iter.func), "kjit_loop", None) == "prange"
        )

    def needs_python(self, node):
        """Returns whether the node contains a loop over prange, or a call of NumPy or of an array method that kernels do not
        have."""
        is_loop = isinstance(node, (ast.For, ast.While))
        made = {id(t.statement.value) for t in self.temporaries(node)} if is_loop else ()
        for inner in ast.walk(node):
            if self.is_prange(inner) or self.is_of_interpreter(inner) or self.reads_layout(inner):
                return True
            if isinstance(inner, ast.Call) and id(inner) not in made and self.calls_python(inner, is_loop):
                return True
            if not is_loop and isinstance(getattr(inner, "op", None), ast.MatMult):
                return True
        return False

    def is_whole(self):
        is_whole = self.node is None or not any(self.needs_python(s) or self.makes_arrays(s) for s in self.node.body)
        if not is_whole:
            self.lift()
        return is_whole

    def has_code(self):
        """Returns whether compiled code can call the function. This requires that the function is compiled as a whole; it may make
        arrays of constant size."""
        if self.node is None:
            return True
        own = self.own_arrays()
        for inner in ast.walk(self.node):
            is_product = isinstance(getattr(inner, "op", None), ast.MatMult)
            if self.is_prange(inner) or is_product or self.is_of_interpreter(inner) or self.reads_layout(inner):
                return False
            if isinstance(inner, ast.Call) and id(inner) not in own and self.calls_python(inner, True):
                return False
        return True

    # ---- splitting ----

    def split(self):
        """Returns the body of the function that remains in Python. Statements of the class Loop in this body become calls."""
        self.lift()
        for inner in ast.walk(self.node):
            name = type(inner).__name__
            if (
                name
                in (
                    "TryStar",
                    "With",
                    "Match",
                    "FunctionDef",
                    "AsyncFunctionDef",
                    "ClassDef",
                    "Global",
                    "Nonlocal",
                    "Yield",
                    "YieldFrom",
                    "Await",
                )
                and inner is not self.node
            ):
                raise self.source.error(inner, words.INSTEAD[name])
        body = self._block(self.node.body, [])
        self._refuse_overloads(body)
        return body

    def _refuse_overloads(self, body):
        """Rejects calls of functions that overload defines in statements that Python runs, because Python would call the original
        function instead of an implementation. body: the statements, and a Loop object in place of each compiled loop."""
        for node in (n for s in body if isinstance(s, ast.AST) for n in ast.walk(s)):
            if self.overloads_of(node) is not None:
                text = f"`{ast.unparse(getattr(node, 'func', node))}` is defined by overload, which only compiled code can use"
                raise self.source.error(node, f"{text}: move it to another njit function, which creates no arrays")

    def _block(self, body, behind):
        """Returns the statements in a block with a Loop object in place of each loop to compile.
        behind: the statements that follow the block, in order."""
        result = []
        for i, statement in enumerate(body):
            rest = [*body[i + 1 :], *behind]
            if self.is_prange(statement):
                result.append(self._parallel(statement, rest))
            elif isinstance(statement, (ast.For, ast.While)) and not self.needs_python(statement):
                result.append(self._serial(statement, rest))
            elif isinstance(statement, COMPOUND):
                again = [] if isinstance(statement, ast.If) else [statement]
                parts = [self._block(b, [*again, *rest]) for b in blocks(statement)]
                copied = ast.copy_location(
                    type(statement)(**{f: getattr(statement, f) for f in statement._fields}), statement
                )
                copied.body = parts[0]
                if isinstance(statement, ast.If):
                    copied.orelse = parts[1]
                elif statement.orelse:
                    copied.orelse = self._block(statement.orelse, rest)
                result.append(copied)
            else:
                self.refuse_displays(statement)
                result.append(statement)
        return result

    def _loads(self, statement, name):
        return self.scope.first([statement], name) == "read"

    def _forbid(self, statement, kinds, what):
        """Reports statements of these kinds if they would leave the loop."""
        for inner in statement.body:
            for node in _walk_same_loop(inner) if kinds == (ast.Break,) else ast.walk(inner):
                if isinstance(node, kinds):
                    raise self.source.error(node, what)

    def _function(self, statement, name, parameters, body):
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=p) for p in parameters], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        node = ast.FunctionDef(
            name=f"{self.node.name}_{name}_{statement.lineno}",
            args=arguments,
            body=body,
            decorator_list=[],
            returns=None,
        )
        for new in ast.walk(node):
            if isinstance(new, (ast.expr, ast.stmt, ast.arg)) and not hasattr(new, "lineno"):
                ast.copy_location(new, statement)
        return node

    def _serial(self, statement, behind):
        self._forbid(
            statement,
            (ast.Return,),
            "a loop that stands beside NumPy's calls or prange is code of its own, which cannot return from the "
            "function: assign to a variable, break, and return behind the loop",
        )
        mentioned = sorted(self.scope.mentions[id(statement)] & self.locals)
        stored = _stores(statement)
        made = self.temporaries(statement, True)
        outputs = [n for n in mentioned if n in stored and self.scope.first(behind, n) == "read"]
        inputs = [
            n
            for n in mentioned
            if n not in self.unset and (n in outputs or self._loads(statement, n)) and self.is_set_before(statement, n)
        ]
        pools = [self._fresh(f"pool_{i}") for i in range(len(made))]
        body = [statement]
        if made:
            body = loop_kernels.serial_body(statement, {id(t.statement): (pool, t.fill) for t, pool in zip(made, pools)})
        if outputs:
            values = [ast.Name(n, ast.Load()) for n in outputs]
            body = [*body, ast.Return(values[0] if len(values) == 1 else ast.Tuple(values, ast.Load()))]
        node = self._function(statement, "loop", [*pools, *inputs], body)
        unset = [n for n in inputs if n in stored and n not in self.parameters and self.scope.first(self.node.body, n) == "read"]
        return self._keep(Loop(statement, node, inputs, outputs, temporaries=made, unset=unset))

    def is_set_before(self, statement, name):
        """Returns whether the name may have a value before the loop, which it keeps if the loop assigns none. Assignments in the loop
        and after it count only if another loop contains both them and this loop."""
        inside = {id(n) for n in ast.walk(statement)}
        loops = [n for n in ast.walk(self.node) if isinstance(n, (ast.For, ast.While)) and n is not statement]
        around = [loop for loop in loops if any(n is statement for n in ast.walk(loop))]
        repeated = {id(n) for loop in around for n in ast.walk(loop)}
        begin = statement.lineno, statement.col_offset
        return name in self.parameters or any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            and (id(n) in repeated or id(n) not in inside and (n.lineno, n.col_offset) < begin)
            for n in ast.walk(self.node)
        )

    def _keep(self, loop):
        self.loops.append(loop)
        return loop

    # ---- loops over prange ----

    def _parallel(self, statement, behind):
        call, target = statement.iter, statement.target
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.source.error(call, "prange takes one to three integers: prange(stop), prange(start, stop) or prange(start, stop, step)")
        if not isinstance(target, ast.Name) or statement.orelse:
            raise self.source.error(statement, "a loop over prange must have a single variable and cannot have an else block")
        leaves = "a loop over prange cannot be left early, because its iterations run in parallel"
        self._forbid(statement, (ast.Return,), leaves)
        self._forbid(statement, (ast.Break,), leaves)
        stored = set().union(*(_stores(s) for s in statement.body)) - {target.id}
        parts = loop_kernels.Parts(statement, target.id, [], self._fresh)
        for name in sorted(stored):
            found = self.reduction(statement, name)
            if found:
                parts.reductions[name] = found
            elif name not in self.unset and self.check_private(statement, name):
                parts.checked.append(name)
        for name in sorted((stored | {target.id}) - set(parts.reductions)):
            if self.scope.first(behind, name) == "read":
                if name == target.id:
                    parts.lasts[name] = False
                    continue
                self.check_last(statement, name, name in parts.checked)
                is_always = self.scope.first(statement.body, name) == "assigned"
                parts.lasts[name] = not is_always or any(isinstance(n, ast.Continue) for n in ast.walk(statement))
        mentioned = sorted(set().union(*(self.scope.mentions[id(s)] for s in statement.body)) & self.locals)
        private = (stored | {target.id}) - set(parts.reductions)
        parts.inputs = inputs = [n for n in mentioned if n not in private and n not in parts.reductions]
        parts.temporaries = self.temporaries(statement, True)
        parts.finish()
        bounds = call.args if len(call.args) > 1 else [ast.copy_location(ast.Constant(0), call), call.args[0]]
        bounds = [*bounds, *[ast.copy_location(ast.Constant(1), call)][len(bounds) - 2 :]]
        outputs = [*parts.reductions, *parts.lasts]
        loop = Loop(statement, None, inputs, outputs, parts, bounds, parts.temporaries)
        loop.node = self.kernel_node(loop, ())
        return self._keep(loop)

    def kernel_node(self, loop, arrays):
        """Returns the kernel for a loop over prange. arrays: its reductions that are arrays."""
        return self._function(loop.statement, "prange", *loop.parts.parameters_and_body(arrays))

    def _fresh(self, name):
        while name in self.locals or name in self.function.__globals__:
            name += "_"
        return name


def _stores(statement):
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _walk_same_loop(statement):
    """Yields the nodes of a statement except those in inner loops."""
    yield statement
    if not isinstance(statement, (ast.For, ast.While)):
        for child in ast.iter_child_nodes(statement):
            yield from _walk_same_loop(child)

