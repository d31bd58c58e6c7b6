"""Builds the functions that loops become: a func for an ordinary loop, or a kernel for a loop over prange. The kernel runs parts of the
loop in parallel."""

import ast

from . import words
from .temporaries import FILL

# Stores a part's value as bytes, and its type as a number: DLPack's type code times 256 plus the
# number of bits.
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
# `acc += x` for all elements in an array.
_INTO = {
    name: words.Text(
        f"{name}_into",
        f"""
func {name}_into(a, x) @numba {{
  if is_array(x) {{
    assert x.ndim == a.ndim
    for at in range(a.shape) {{ a[at] {operator}= dtype(a)(x[at]) }}
  }} else {{ for at in range(a.shape) {{ a[at] {operator}= dtype(a)(x) }} }}
}}""",
    )
    for name, operator in {
        "add": "+", "sub": "-", "mult": "*", "div": "/", "bitor": "|", "bitand": "&", "bitxor": "^",
    }.items()
}


def load(name):
    return ast.Name(name, ast.Load())


def _assign(name, value):
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _binary(left, kind, right):
    return ast.BinOp(left, kind(), right)


def _call(text, *arguments):
    return ast.Call(ast.Constant(text), list(arguments), [])


def _item(name, index):
    return ast.Subscript(load(name), index, ast.Load())


def copy(node):
    """Returns a copy of a syntax tree. Constants in the tree are not copied."""
    if isinstance(node, list):
        return [copy(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    return ast.copy_location(type(node)(**{field: copy(getattr(node, field, None)) for field in node._fields}), node)


class _Body:
    """Translates a loop body's statements to a body that runs one part of the loop.

    pools maps id(statement that makes an array) to (the name of the array whose rows replace it, the expression that fills it). row is the
    expression for the row number. arrays are reductions that are arrays. flags maps a name to the variable that says whether the name is
    assigned. checked has those names in flags that an iteration must assign before it reads them.
    """

    def __init__(self, pools, row, arrays=(), flags=None, checked=()):
        self.pools, self.row, self.arrays, self.flags, self.checked = pools, row, arrays, flags or {}, set(checked)

    def block(self, body):
        result = []
        for statement in body:
            for name in sorted(self.checked & self._reads(statement)):
                result.append(self._check(statement, name))
            made = self.statement(statement)
            result += made
            for name in sorted(self._stores(statement) & set(self.flags)):
                result.append(_assign(self.flags[name], ast.Constant(True)))
        return result

    def statement(self, statement):
        if id(statement) in self.pools:
            pool, fill = self.pools[id(statement)]
            made = [_assign(statement.targets[0].id, _item(pool, copy(self.row)))]
            if fill is not None:
                made.append(ast.Expr(_call(FILL, load(statement.targets[0].id), copy(fill))))
            return made
        is_of_name = isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
        if is_of_name and statement.target.id in self.arrays:
            text = _INTO[type(statement.op).__name__.lower()]
            return [ast.Expr(_call(text, load(statement.target.id), copy(statement.value)))]
        if not isinstance(statement, (ast.If, ast.For, ast.While)):
            return [copy(statement)]
        fields = {field: copy(getattr(statement, field, None)) for field in statement._fields if field not in ("body", "orelse")}
        for field in ("body", "orelse"):
            fields[field] = self.block(getattr(statement, field))
        if isinstance(statement, ast.For):
            names = sorted({n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)} & set(self.flags))
            fields["body"] = [*(_assign(self.flags[name], ast.Constant(True)) for name in names), *fields["body"]]
        return [type(statement)(**fields)]

    def _check(self, statement, name):
        text = ast.Constant(f"`{name}` is read in an iteration of prange that has not assigned it")
        raised = ast.Raise(ast.Call(ast.Constant(UnboundLocalError), [text], []), None)
        made = ast.If(ast.UnaryOp(ast.Not(), load(self.flags[name])), [raised], [])
        for node in ast.walk(made):
            ast.copy_location(node, statement)
        return made

    @staticmethod
    def _stores(statement):
        if isinstance(statement, (ast.If, ast.For, ast.While)):
            return set()
        return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    @staticmethod
    def _reads(statement):
        node = statement
        if isinstance(statement, (ast.If, ast.While)):
            node = statement.test
        elif isinstance(statement, ast.For):
            node = statement.iter
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def serial_body(statement, pools):
    """Returns the loop itself, in which rows replace the arrays that the loop makes."""
    return _Body(pools, ast.Constant(0)).block([statement])


class Parts:
    """The data of a loop over prange from which its kernel is built. fresh(name) returns a name that the function does not use yet."""

    def __init__(self, statement, target, inputs, fresh):
        self.statement, self.target, self.inputs, self.fresh = statement, target, inputs, fresh
        self.reductions, self.lasts, self.checked, self.temporaries = {}, {}, [], []
        self.makes_parts = False

    def finish(self):
        """Chooses the names of the kernel's parameters."""
        self.pools = [self.fresh(f"pool_{i}") for i in range(len(self.temporaries))]
        self.firsts = {name: self.fresh(name + "_first") for name in self.reductions}
        flagged = [*self.checked, *(name for name, is_flagged in self.lasts.items() if is_flagged)]
        self.flags = {name: self.fresh(name + "_is_set") for name in flagged}
        self.makes_parts = bool(self.reductions or self.lasts or self.temporaries)

    def slots(self, arrays):
        """Returns the names of the variables for which each part keeps a value."""
        values = [name for name in self.reductions if name not in arrays]
        for name, is_flagged in self.lasts.items():
            values += [name, self.flags[name]] if is_flagged else [name]
        return values

    def parameters_and_body(self, arrays):
        """Returns the kernel's parameters and body. Without reductions each iteration of the loop is one iteration of a grid_range. With
        reductions the grid_range iterates over parts of the loop, and each part runs its iterations in order, so the result does not depend
        on the number of threads."""
        count, start, step, at = (self.fresh(n) for n in ("count", "start", "step", "at"))
        place = _binary(load(start), ast.Add, _binary(load(at), ast.Mult, load(step)))
        part = self.fresh("part")
        pools = {id(t.statement): (pool, t.fill) for t, pool in zip(self.temporaries, self.pools)}
        inside = _Body(pools, load(part), arrays, self.flags, self.checked).block(self.statement.body)
        body = [_assign(self.target, place), *(_assign(self.flags[n], ast.Constant(False)) for n in self.checked), *inside]
        grid = ast.Constant(words.LOOPS["grid_range"])
        if not self.makes_parts:
            loop = ast.For(ast.Name(at, ast.Store()), ast.Call(grid, [load(count)], []), body, [])
            return [count, start, step, *self.inputs], [loop]
        raw, kinds, parts = (self.fresh(n) for n in ("raw", "kinds", "parts"))

        def bound(extra):
            number = _binary(load(part), ast.Add, ast.Constant(1)) if extra else load(part)
            return _binary(_binary(number, ast.Mult, load(count)), ast.FloorDiv, load(parts))

        inner = ast.For(ast.Name(at, ast.Store()), ast.Call(ast.Constant(range), [bound(0), bound(1)], []), body, [])
        begin = [
            _assign(name, _item(first, load(part)) if name in arrays else load(first)) for name, first in self.firsts.items()
        ]
        begin += [_assign(self.flags[name], ast.Constant(False)) for name, is_flagged in self.lasts.items() if is_flagged]
        slots = self.slots(arrays)
        keep = [
            ast.Expr(_call(KEEP, load(raw), load(kinds), load(part), ast.Constant(i), ast.Constant(len(slots)), load(name)))
            for i, name in enumerate(slots)
        ]
        outer = ast.For(ast.Name(part, ast.Store()), ast.Call(grid, [load(parts)], []), [*begin, inner, *keep], [])
        return [raw, kinds, parts, count, start, step, *self.firsts.values(), *self.pools, *self.inputs], [outer]
