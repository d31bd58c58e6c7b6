"""njit: what of a function is compiled whole, and the parts of one whose loops run on all cores or that needs NumPy.

Such a function stays a function of Python, in which each loop without NumPy is a call of compiled code: a kernel for a
loop over prange, a func for any other. Loops that hold such loops, and what is between them, run in Python."""

import ast

from . import source as sources
from . import static, ufuncs, words
from .scope import COMPOUND, Scope, blocks

# Reductions: operator of `acc += e` -> (operator that joins the parts, what each part begins with; None: what acc is).
_AUGMENTED = {
    ast.Add: ("add", 0),
    ast.Sub: ("add", 0),
    ast.Mult: ("multiply", 1),
    ast.Div: ("multiply", 1),
    ast.BitOr: ("bitwise_or", None),
    ast.BitAnd: ("bitwise_and", None),
    ast.BitXor: ("bitwise_xor", 0),
}
_LEFT_ONLY = (ast.Sub, ast.Div)  # acc = e - acc is none
# Python's min and max ignore a NaN that is compared with a number, NumPy's minimum and maximum keep it.
_CHOICES = {
    "min": ("fmin", None),
    "max": ("fmax", None),
    "minimum": ("minimum", None),
    "maximum": ("maximum", None),
}


class Loop:
    """A loop of its own. node: the function that it became; inputs: names whose values it takes; outputs: those that it
    gives; reductions: of a loop over prange, name -> (operator, begin)."""

    def __init__(self, statement, node, inputs, outputs, reductions=None, bounds=None):
        self.statement, self.node, self.inputs, self.outputs = statement, node, inputs, outputs
        self.reductions, self.bounds = reductions, bounds


class Splitter:
    def __init__(self, function, is_parallel):
        self.function, self.is_parallel = function, is_parallel
        self.source = sources.of(function)
        self.node = sources.find(function, self.source)
        self.loops = []
        if not isinstance(self.node, ast.FunctionDef):
            self.node = None  # a lambda has no statements
            return
        arguments = self.node.args
        self.parameters = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
        self.scope = Scope(self.node.body, self.parameters)
        self.locals = self.scope.names | set(self.parameters)
        self.static = static.Names(function, self.locals)

    # ---- what is what ----

    def is_prange(self, statement):
        return (
            self.is_parallel
            and isinstance(statement, ast.For)
            and isinstance(statement.iter, ast.Call)
            and getattr(self.static.value(statement.iter.func), "kjit_loop", None) == "prange"
        )

    def needs_python(self, node):
        """Whether there is a loop over prange in it, or a call of NumPy's or of an array that no kernel has."""
        for inner in ast.walk(node):
            if self.is_prange(inner):
                return True
            if not isinstance(inner, ast.Call):
                continue
            thing = self.static.value(inner.func)
            if thing is static.UNKNOWN:
                if isinstance(inner.func, ast.Attribute) and inner.func.attr != "dtype":
                    return True
            elif getattr(thing, "runs_in_python", False):
                return True
            elif not isinstance(thing, type) and words.builtin_name(thing) is None and ufuncs.text_of(thing) is None and _is_of_numpy(thing):
                return True
        return False

    def is_whole(self):
        return self.node is None or not any(self.needs_python(s) for s in self.node.body)

    # ---- splitting ----

    def split(self):
        """The body of the function that stays in Python, whose statements of the class Loop are to become calls."""
        for inner in ast.walk(self.node):
            name = type(inner).__name__
            if (
                name
                in (
                    "Try",
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
        return self._block(self.node.body, [])

    def _block(self, body, behind):
        """behind: the statements that follow the block, in their order."""
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
                    raise self.source.error(statement.orelse[0], "a loop here has no else")
                result.append(copied)
            else:
                result.append(statement)
        return result

    def _loads(self, statement, name):
        return self.scope.first([statement], name) == "read"

    def _forbid(self, statement, kinds, what):
        """Statements of some kinds that would leave the loop."""
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
        outputs = [n for n in mentioned if n in stored and self.scope.first(behind, n) == "read"]
        inputs = [
            n for n in mentioned if self._loads(statement, n) or n in outputs and self._is_set_before(statement, n)
        ]
        body = [statement]
        if outputs:
            values = [ast.Name(n, ast.Load()) for n in outputs]
            body.append(ast.Return(values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())))
        return self._keep(Loop(statement, self._function(statement, "loop", inputs, body), inputs, outputs))

    def _is_set_before(self, statement, name):
        """Whether the name may have a value before: then it keeps that where the loop assigns nothing."""
        inside = {id(n) for n in ast.walk(statement)}
        return name in self.parameters or any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and id(n) not in inside
            for n in ast.walk(self.node)
        )

    def _keep(self, loop):
        self.loops.append(loop)
        return loop

    # ---- loops over prange ----

    def _parallel(self, statement, behind):
        call, target = statement.iter, statement.target
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.source.error(call, "prange(stop), prange(start, stop) or prange(start, stop, step)")
        if not isinstance(target, ast.Name) or statement.orelse:
            raise self.source.error(statement, "a loop over prange has one variable and no else")
        leaves = "a loop over prange cannot be left: its iterations run at once"
        self._forbid(statement, (ast.Return,), leaves)
        self._forbid(statement, (ast.Break,), leaves)
        stored = set().union(*(_stores(s) for s in statement.body)) - {target.id}
        reductions, private = {}, {target.id}
        for name in sorted(stored):
            found = self._reduction(statement, name)
            if found:
                reductions[name] = found
            else:
                self._check_private(statement, name)
                private.add(name)
        for name in sorted(private):
            if self.scope.first(behind, name) == "read":
                raise self.source.error(
                    statement,
                    f"`{name}` is used behind the loop over prange, each of whose iterations has its own: only what is "
                    "summed up (+=, *=, min, max and their kin) is there behind it",
                )
        mentioned = sorted(set().union(*(self.scope.mentions[id(s)] for s in statement.body)) & self.locals)
        inputs = [n for n in mentioned if n not in private and n not in reductions]
        bounds = call.args if len(call.args) > 1 else [ast.copy_location(ast.Constant(0), call), call.args[0]]
        node = self._kernel(statement, target, inputs, reductions)
        return self._keep(
            Loop(
                statement,
                node,
                inputs,
                list(reductions),
                reductions,
                [*bounds, *[ast.copy_location(ast.Constant(1), call)][len(bounds) - 2 :]],
            )
        )

    def _check_private(self, statement, name):
        if self.scope.first(statement.body, name) == "read":
            raise self.source.error(
                statement,
                f"`{name}` goes from one iteration of prange to the next, which run at once: only sums, products, min, "
                "max and bit operations do (`acc += x`), which the loop does nothing else with",
            )

    def _reduction(self, statement, name):
        """(operator, begin) if all that the loop does with a name is to sum something up in it."""
        found, names = set(), 0
        for inner in [n for s in statement.body for n in ast.walk(s)]:
            if isinstance(inner, ast.Name) and inner.id == name:
                names += 1
            if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name) and inner.target.id == name:
                found.add((_AUGMENTED.get(type(inner.op)), 1, id(inner)))
            elif (
                isinstance(inner, ast.Assign)
                and len(inner.targets) == 1
                and isinstance(inner.targets[0], ast.Name)
                and inner.targets[0].id == name
            ):
                found.add((self._assigned_reduction(inner.value, name), 2, id(inner)))
        kinds = {kind for kind, _, _ in found}
        if len(kinds) != 1 or None in kinds or sum(count for _, count, _ in found) != names:
            return None
        return kinds.pop()

    def _assigned_reduction(self, value, name):
        def is_it(node):
            return isinstance(node, ast.Name) and node.id == name

        if isinstance(value, ast.BinOp) and (
            is_it(value.left) or is_it(value.right) and not isinstance(value.op, _LEFT_ONLY)
        ):
            return _AUGMENTED.get(type(value.op))
        if isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords and any(map(is_it, value.args)):
            thing = self.static.value(value.func)
            if ufuncs.is_ufunc(thing):
                return _CHOICES.get(thing.__name__)
            return _CHOICES.get(None if thing is static.UNKNOWN else words.builtin_name(thing))
        return None

    def _fresh(self, name):
        while name in self.locals or name in self.function.__globals__:
            name += "_"
        return name

    def _kernel(self, statement, target, inputs, reductions):
        """Without reductions each iteration is one of a grid_range; with them the grid_range is over parts of the loop, each
        of which sums up one after the other, so that the result does not depend on how many threads there are."""
        count, start, step, at = (self._fresh(n) for n in ("count", "start", "step", "at"))

        def load(name):
            return ast.Name(name, ast.Load())

        def binary(left, kind, right):
            return ast.BinOp(left, kind(), right)

        place = binary(load(start), ast.Add, binary(load(at), ast.Mult, load(step)))
        body = [ast.Assign([ast.Name(target.id, ast.Store())], place), *statement.body]
        grid = ast.Constant(words.LOOPS["grid_range"])
        if not reductions:
            loop = ast.For(
                target=ast.Name(at, ast.Store()), iter=ast.Call(grid, [load(count)], []), body=body, orelse=[]
            )
            return self._function(statement, "prange", [count, start, step, *inputs], [loop])
        raw, kinds, parts, part = (self._fresh(n) for n in ("raw", "kinds", "parts", "part"))
        first = {name: self._fresh(name + "_first") for name in reductions}

        def bound(extra):
            number = binary(load(part), ast.Add, ast.Constant(1)) if extra else load(part)
            return binary(binary(number, ast.Mult, load(count)), ast.FloorDiv, load(parts))

        inner = ast.For(
            target=ast.Name(at, ast.Store()),
            iter=ast.Call(ast.Constant(range), [bound(0), bound(1)], []),
            body=body,
            orelse=[],
        )
        begin = [ast.Assign([ast.Name(n, ast.Store())], load(first[n])) for n in reductions]
        keep = [
            ast.Expr(
                ast.Call(
                    ast.Constant(KEEP),
                    [load(raw), load(kinds), load(part), ast.Constant(i), ast.Constant(len(reductions)), load(n)],
                    [],
                )
            )
            for i, n in enumerate(reductions)
        ]
        outer = ast.For(
            target=ast.Name(part, ast.Store()),
            iter=ast.Call(grid, [load(parts)], []),
            body=[*begin, inner, *keep],
            orelse=[],
        )
        return self._function(
            statement, "prange", [raw, kinds, parts, count, start, step, *first.values(), *inputs], [outer]
        )


# Keeps a part's sum in bytes, and its type as a number: its class as DLPack numbers it times 256, and its bits.
KEEP = words.Text(
    "keep_part",
    """
func keep_part(raw, kinds, part, i, n, value) {
  bitcast(dtype(value)*, pointer(raw[(part * n + i) * 16]))[0] = value
  if part == 0 {
    if dtype(value) == bool { kinds[i] = 6 * 256 + 8 }
    else if dtype(value) == bf16 { kinds[i] = 4 * 256 + 16 }
    else if is_float(dtype(value)) { kinds[i] = 2 * 256 + 8 * sizeof(dtype(value)) }
    else if is_complex(dtype(value)) { kinds[i] = 5 * 256 + 8 * sizeof(dtype(value)) }
    else if is_signed(dtype(value)) { kinds[i] = 8 * sizeof(dtype(value)) }
    else { kinds[i] = 256 + 8 * sizeof(dtype(value)) }
  }
}""",
)


def _is_of_numpy(thing):
    return (
        str(getattr(thing, "__module__", None) or type(thing).__module__).split(".")[0] == "numpy"
        or type(thing).__name__ == "ufunc"
    )


def _stores(statement):
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _walk_same_loop(statement):
    """What is in a statement but not in a loop of its own."""
    yield statement
    if not isinstance(statement, (ast.For, ast.While)):
        for child in ast.iter_child_nodes(statement):
            yield from _walk_same_loop(child)
