"""Functions of a group, `groupby(key).apply(f)`: the function reads the columns in its group as
arrays.

The rewriting works on the syntax tree. A column that the function reads becomes a parameter with
the group's values, and a reduction such as `.sum()` becomes a call of a function below, which has
pandas' rules for missing values and for `var` and `std`.
"""

import ast
import difflib
import math
from typing import NamedTuple

import numpy

from .. import _algorithms
from ..frontend import source as sources
from ..frontend import static, words
from ..frontend.scope import copied
from . import keys
from .aggregating import Values
from .columns import find_column
from .forms import Callee
from .row_functions import RowFunction
from .running import Result, _scalar

_OWN_ROWS = "group.rows"  # the parameter with the number of rows
_MOST_VARIANTS = 64  # number of rewritten functions that are kept for each Python function


# The statements of a reduction. VALUE is the element with the number `e.i`, FIRST is the first
# element, and COUNTED is the condition under which the element counts. A group has at least one row.
_SUM = """
e.total = ZERO(FIRST)
for e.i in range(group.rows):
    if COUNTED:
        e.total += VALUE
return e.total
"""
_MEAN = """
e.total, e.count = 0.0, 0
for e.i in range(group.rows):
    if COUNTED:
        e.total, e.count = e.total + VALUE, e.count + 1
return e.total / e.count if e.count else NAN
"""
_COUNT = """
e.count = 0
for e.i in range(group.rows):
    if COUNTED:
        e.count += 1
return e.count
"""
_EXTREMUM = """
e.found = FIRST
for e.i in range(group.rows):
    e.v = VALUE
    if e.v < e.found or SKIPS and e.found != e.found:
        e.found = e.v
return e.found
"""
# The minimum or maximum of integers, at least one of which is not missing.
_EXTREMUM_OF_COUNTED = """
e.found, e.count = FIRST, 0
for e.i in range(group.rows):
    if COUNTED:
        e.v = VALUE
        if e.count == 0 or e.v < e.found:
            e.found = e.v
        e.count += 1
return e.found
"""
# The extremum of the values that count; NaN if no value counts.
_EXTREMUM_OR_NAN = """
e.found, e.count = 0.0 * FIRST, 0
for e.i in range(group.rows):
    if COUNTED:
        e.v = 1.0 * VALUE
        if e.count == 0 or e.v < e.found:
            e.found = e.v
        e.count += 1
return e.found if e.count else NAN
"""
_VARIANCE = """
e.mean, e.squares, e.count = 0.0, 0.0, 0
for e.i in range(group.rows):
    if COUNTED:
        e.count += 1
        e.d = VALUE - e.mean
        e.mean += e.d / e.count
        e.squares += e.d * (VALUE - e.mean)
return ROOT(e.squares / (e.count - DDOF)) if e.count > DDOF else NAN
"""
_TEMPLATES = {"sum": _SUM, "mean": _MEAN, "count": _COUNT, "var": _VARIANCE, "std": _VARIANCE}
_NAMES = ("sum", "mean", "min", "max", "count", "var", "std")
_NEED_VALUES = ("mean", "min", "max", "var", "std")  # a group without values has no result
_OF_NUMPY = {numpy.sum: "sum", numpy.mean: "mean", numpy.min: "min", numpy.max: "max", min: "min", max: "max", sum: "sum"}
_ZERO = Callee(words.Text("zero_of_sum", "\nfunc zero_of_sum(a) @numba @inline { return zero(dtype(a + a + 0i64)) }"))


def _itself(x):
    return x


class _Joined(ast.NodeTransformer):
    """Replaces each dotted name, such as `e.count`, by one name that contains the dot, which no
    variable of a program can have. Replaces each name in the dictionary `known` by the expression
    in it."""

    def __init__(self, known=()):
        self.known = dict(known)

    def visit_Attribute(self, node):
        return ast.Name(ast.unparse(node), node.ctx)

    def visit_Name(self, node):
        return copied(self.known[node.id]) if node.id in self.known else node


def _statements(text, place, known=()):
    """Returns the statements in a text. place: the node whose location they get; known: see
    _Joined."""
    made = [_Joined(known).visit(statement) for statement in ast.parse(text).body]
    for statement in made:
        for node in ast.walk(statement):
            ast.copy_location(node, place)
    return made


class _Columns(NamedTuple):
    """The columns that a function reads: name -> parameter."""

    whole: dict  # columns that the function uses outside of reductions
    elements: dict  # columns that reductions read, including their missing elements
    flags: dict  # for each column in `elements` with missing values: which elements are not missing


class _Group(ast.NodeTransformer):
    """Rewrites the body of a function of the group `name`. facts: name of a column -> its Fact.
    needed: the columns of reductions that are NaN if the group has too few values in the column.
    required: the columns of integers whose minimum or maximum does not exist if the group has no
    values in the column."""

    def __init__(self, function, source, name, own, facts):
        self.python, self.source, self.name, self.facts = function, source, name, facts
        self.static = static.Names(function, own, None, True)
        self.own, self.columns, self.needed, self.required = own, _Columns({}, {}, {}), set(), set()
        self.arrays = {}  # variables that stand for a column or for an expression of columns

    def find_arrays(self, tree, parameters):
        """Finds the variables that are assigned only once, to an expression of columns. The
        variables in this expression must not change either."""
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for node in ast.walk(tree):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            others = {other for other in used & {*stored} if other not in self.arrays}
            # a statement of the function itself, not of a loop or branch
            is_whole = isinstance(tree, ast.FunctionDef) and node in tree.body
            changing = {other for other in others if not is_whole or stored.count(other) != 1}
            if stored.count(name) == 1 and name not in parameters and not changing and self.reads_columns(node.value):
                self.arrays[name] = node.value

    def error(self, node, message):
        return self.source.error(node, message)

    def is_group(self, node):
        return isinstance(node, ast.Name) and node.id == self.name

    def column_of(self, node):
        """Returns the name of the column that an expression reads, or None."""
        if isinstance(node, ast.Name) and node.id in self.arrays:
            return self.column_of(self.arrays[node.id])
        if isinstance(node, ast.Attribute) and self.is_group(node.value):
            return node.attr
        if isinstance(node, ast.Subscript) and self.is_group(node.value):
            name = self.static.value(node.slice)
            if not isinstance(name, (str, int, tuple)):
                raise self.error(node.slice, "the name of a column must be a text or an integer that is known when the function is compiled")
            return name
        return None

    def parameter(self, node, table, name, word):
        if name not in self.facts.columns:
            near = difflib.get_close_matches(str(name), [n for n in self.facts.columns if isinstance(n, str)], 1, 0.65)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self.error(node, f"the table has no column {name!r}{hint}")
        return ast.copy_location(ast.Name(table.setdefault(name, f"{word}.n{len(table)}"), ast.Load()), node)

    # ---- reductions ----

    def reduction(self, node):
        """Returns (name, operand) if a call is a reduction of columns in the group, or None."""
        if not isinstance(node, ast.Call):
            return None
        called = self.static.value(node.func)
        if called is static.UNKNOWN:
            is_one = isinstance(node.func, ast.Attribute) and node.func.attr in _NAMES and not node.args
            found = (node.func.attr, node.func.value) if is_one else None
        else:
            how = next((how for function, how in _OF_NUMPY.items() if function is called), None)
            found = (how, node.args[0]) if how and len(node.args) == 1 else None
        return found if found and self.reads_columns(found[1]) else None

    def reads_columns(self, node):
        """Returns whether an expression has a column outside of reductions."""
        if self.column_of(node) is not None or isinstance(node, ast.Name) and node.id in self.arrays:
            return True
        return self.reduction(node) is None and any(map(self.reads_columns, ast.iter_child_nodes(node)))

    def ddof(self, node, how):
        """Returns the constant for ddof= of `var` and `std`."""
        given = {k.arg: self.static.value(k.value) for k in node.keywords}
        if how not in ("var", "std") and given:
            raise self.error(node, f"{how}() of a group takes no keyword arguments")
        if not given.keys() <= {"ddof"} or not isinstance(given.get("ddof", 1), int):
            raise self.error(node, f"{how}() of a group takes only ddof=, an integer constant")
        return given.get("ddof", 1)

    def reduced(self, node, how, operand):
        """Returns the call of a func that computes a reduction."""
        element = _Element(self)
        value, counted = element.selected(operand)
        is_selected = bool(counted)
        is_exact = how in ("min", "max") and is_selected and not element.is_masked and not element.has_floats
        if how in _NEED_VALUES:
            (self.required if is_exact else self.needed).update(element.flagged)
        if element.skips_nan and (is_selected or how not in ("min", "max")):
            counted.append(ast.Compare(value, [ast.Eq()], [value]))
        test = ast.BoolOp(ast.And(), counted) if len(counted) > 1 else counted[0] if counted else ast.Constant(True)
        first = _Joined({"e.i": ast.Constant(0)}).visit(copied(value))
        template = _TEMPLATES.get(how) or (_EXTREMUM_OF_COUNTED if is_exact else _EXTREMUM_OR_NAN if is_selected else _EXTREMUM)
        if how == "max":
            template = template.replace("e.v < e.found", "e.v > e.found")
        known = {
            "VALUE": value, "FIRST": first, "COUNTED": test, "SKIPS": ast.Constant(element.skips_nan),
            "NAN": ast.Constant(math.nan), "ZERO": ast.Constant(_ZERO), "DDOF": ast.Constant(self.ddof(node, how)),
            "ROOT": ast.Constant(math.sqrt if how == "std" else float),
        }  # fmt: skip
        names = [_OWN_ROWS, *element.given]
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
        made = ast.FunctionDef(how, arguments, _statements(template, node, known), [])
        for inner in ast.walk(made):
            ast.copy_location(inner, node)
        function = RowFunction(self.python, ast.fix_missing_locations(made), tuple(names))
        values = [ast.Name(_OWN_ROWS, ast.Load()), *element.given.values()]
        call = ast.Call(ast.Constant(Callee(function)), values, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    # ---- the tree ----

    def visit_Call(self, node):
        called = self.static.value(node.func)
        if called is len and len(node.args) == 1 and (self.is_group(node.args[0]) or self.column_of(node.args[0]) is not None):
            return self.rows(node)
        found = self.reduction(node)
        return self.generic_visit(node) if found is None else self.reduced(node, *found)

    def rows(self, node):
        return ast.copy_location(ast.Name(_OWN_ROWS, ast.Load()), node)

    def visit_Attribute(self, node):
        if node.attr == "size" and self.column_of(node.value) is not None:
            return self.rows(node)
        return self.whole_or_inner(node)

    def visit_Subscript(self, node):
        return self.whole_or_inner(node)

    def whole_or_inner(self, node):
        name = self.column_of(node)
        if name is None:
            return self.generic_visit(node)
        made = self.parameter(node, self.columns.whole, name, "whole")
        if self.facts[name].has_missing:
            raise self.error(
                node,
                f"the column {name!r} has missing values, so a function of a group can only reduce it, as in {self.name}.{name}.sum(); "
                "filter() leaves out rows, and assign() replaces missing values",
            )
        return made

    def visit_Name(self, node):
        if self.is_group(node):
            shown = f'{self.name}.name or {self.name}["name"]'
            raise self.error(node, f"the group `{self.name}` is not a value; use its columns, {shown}, and len({self.name})")
        if node.id in self.arrays and self.column_of(node) is None:
            raise self.error(node, f"`{node.id}` is an array of the group's rows, which reductions such as {node.id}.sum() can use")
        return node if node.id not in self.arrays else self.whole_or_inner(node)

    def visit_Assign(self, node):
        is_array = isinstance(node.targets[0], ast.Name) and node.targets[0].id in self.arrays
        return ast.copy_location(ast.Pass(), node) if is_array else self.generic_visit(node)


class _Element:
    """Rewrites a reduction's operand as an expression of one row. given: the parameters of the
    reduction's func, and the expressions that the call passes."""

    def __init__(self, group):
        self.group, self.given, self.flagged = group, {}, {}
        self.has_choice = self.is_masked = self.has_floats = self.skips_nan = False

    def selected(self, node):
        """Returns (a row's value, the conditions under which it counts)."""
        conditions = []
        while isinstance(node, ast.Name) and node.id in self.group.arrays:
            node = self.group.arrays[node.id]
        if isinstance(node, ast.Subscript) and self.group.column_of(node) is None:
            self.is_masked = True
            conditions.append(self.of(node.slice))
            value = self.of(node.value)
        else:
            value = self.of(node)
        if self.flagged and self.has_choice:
            raise self.group.error(node, f"np.where() of a column with missing values, {next(iter(self.flagged))!r}, is not supported in a function of a group")
        return value, [*self.flagged.values(), *conditions]

    def take(self, made):
        """Returns a name for the reduction's func, and records that the call passes the expression
        under this name."""
        self.given[made.id] = made
        return ast.Name(made.id, ast.Load())

    def element(self, array):
        return ast.Subscript(self.take(array), ast.Name("e.i", ast.Load()), ast.Load())

    def column(self, node, name):
        columns = self.group.columns
        made = self.element(self.group.parameter(node, columns.elements, name, "elements"))
        self.skips_nan |= self.group.facts[name].is_numpy
        self.has_floats |= self.group.facts[name].is_float
        if self.group.facts[name].has_missing:
            self.flagged[name] = self.element(self.group.parameter(node, columns.flags, name, "flags"))
        return made

    def of(self, node):
        group, name = self.group, self.group.column_of(node)
        if name is not None:
            return self.column(node, name)
        if isinstance(node, ast.Name) and node.id in group.arrays:
            return self.of(group.arrays[node.id])
        if group.static.value(node) is not static.UNKNOWN:
            return node
        if not group.reads_columns(node):  # one value for all rows
            self.given[f"value.n{len(self.given)}"] = group.visit(copied(node))
            return ast.Name(list(self.given)[-1], ast.Load())
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self.of(node.left), node.op, self.of(node.right))
        if isinstance(node, ast.UnaryOp):
            # `~` of an array of bools negates each element
            is_not = isinstance(node.op, ast.Invert)
            return ast.UnaryOp(ast.Invert() if is_not else node.op, self.of(node.operand))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return ast.Compare(self.of(node.left), node.ops, [self.of(node.comparators[0])])
        if isinstance(node, ast.Call) and not node.keywords:
            called = group.static.value(node.func)
            if called is numpy.where and len(node.args) == 3:
                self.has_choice = True
                return ast.IfExp(*(self.of(argument) for argument in node.args))
            if called is abs or type(called).__name__ == "ufunc":
                return ast.Call(node.func, [self.of(argument) for argument in node.args], [])
        shown = "operators, comparisons, NumPy's ufuncs, np.where and a selection such as x[y > 0]"
        raise group.error(node, f"the operand of a reduction can consist only of {shown}, not of {ast.unparse(node)!r}")


class _Rewritten:
    """A rewritten function: the compiled function, and the columns that it reads."""

    def __init__(self, function, facts, count):
        code = function.__code__
        if code.co_kwonlyargcount or code.co_flags & 0x0C or code.co_argcount != count + 1:  # *args, **kwargs
            raise TypeError(f"{function.__name__}() must take the group and {count} more argument{'s' * (count != 1)}")
        source = sources.remember(function)
        tree = sources.find(function, source)
        own = set(code.co_varnames) | set(code.co_cellvars)
        uses = _Group(function, source, code.co_varnames[0], own, facts)
        uses.find_arrays(tree, code.co_varnames[: code.co_argcount])
        body = [ast.Return(tree.body)] if isinstance(tree, ast.Lambda) else tree.body
        body = [uses.visit(copied(statement)) for statement in body]
        self.columns, self.needed, self.required = uses.columns, uses.needed, uses.required
        arrays = [parameter for table in uses.columns for parameter in table.values()]
        names = ["j.group", "groups.present", "rows.offsets", *code.co_varnames[1 : count + 1]]
        names += [f"{name}.values" for name in arrays]
        before = ["g.group = groups.present[j.group]"]
        before += ["g.first, g.end = rows.offsets[g.group], rows.offsets[g.group + 1]", f"{_OWN_ROWS} = g.end - g.first"]
        before += [f"{name} = {name}.values[g.first : g.end]" for name in arrays]
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
        made = ast.FunctionDef(getattr(tree, "name", "lambda_"), arguments, [*_statements("\n".join(before), tree), *body], [])
        for node in ast.walk(made):
            if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
                ast.copy_location(node, tree)
        self.function = RowFunction(function, ast.fix_missing_locations(made), tuple(names))


class _Read:
    """The values of a column of numbers or bools."""

    def __init__(self, columns, name):
        from .grouping import usable

        found = usable(find_column(columns, name))
        (self.values, self.there), self.kind = keys.whole(found), found.data.kind
        if found.decimal is not None:
            found.decimal.check_digits(name)
            self.values = found.decimal.floats(self.values)
        if found.texts is not None or self.values.dtype.kind not in "biufc":
            what = "texts" if found.texts is not None else "dates"
            raise TypeError(f"apply(): the column {name!r} has {what}; a function of a group reads numbers and bools")


class Fact(NamedTuple):
    """The properties of a column on which the code depends. is_numpy: whether NaN is a missing
    value, as in columns of NumPy."""

    has_missing: bool
    is_numpy: bool
    is_float: bool


class _Facts(dict):
    """The Fact of each column that a rewriting asks for. read: the values of these columns."""

    def __init__(self, columns):
        super().__init__()
        self.columns, self.read = columns, {}

    def __missing__(self, name):
        read = self.read[name] = _Read(self.columns, name)
        self[name] = Fact(read.there is not None and not read.there.all(), read.kind == "numpy", read.values.dtype.kind in "fc")
        return self[name]


def _rewritten(function, facts, count):
    """Returns the rewritten function. The Python function stores it with the facts on which it
    depends."""
    known = function.__dict__.setdefault("__kjit_groups__", [])
    for others, given, made in known:
        if count == given and all(name in facts.columns and facts[name] == fact for name, fact in others.items()):
            return made
    made = _Rewritten(function, facts, count)
    known.insert(0, (dict(facts), count, made))
    del known[_MOST_VARIANTS:]
    return made


def _by_group(groups, values):
    """Returns (the groups' offsets, the values group by group)."""
    _, offsets, made = Values(groups, values, None, "arrow", ()).side_by_side()
    return offsets, made


def apply(table, groups, function, args):
    """Calls a function of a group and of the arguments for each group. Returns the Result."""
    if not hasattr(function, "__code__"):
        raise TypeError(f"apply() takes a Python function that is called with a group, not {type(function).__name__}")
    args = tuple(map(_scalar, args))
    facts = _Facts(table._columns)
    made = _rewritten(function, facts, len(args))
    whole, elements, flags = made.columns
    read = {name: facts.read[name] for name in (*whole, *elements)}
    offsets, _ = _by_group(groups, numpy.zeros(len(table), bool))
    grouped = {name: _by_group(groups, read[name].there)[1] for name in flags}
    operands = [_by_group(groups, read[name].values)[1] for name in (*whole, *elements)]
    has_rows = numpy.diff(offsets) > 0
    counts = {name: numpy.add.reduceat(numpy.append(each, False), offsets[:-1], dtype="i8") * has_rows for name, each in grouped.items()}
    is_there = numpy.logical_and.reduce([has_rows, *(counts[name] > 0 for name in made.required)])
    numbers = numpy.flatnonzero(is_there)
    operand = _algorithms.computed(made.function, len(numbers), numbers, offsets, *args, *operands, *grouped.values())
    found = _algorithms.map(_itself, operand, device="cpu")
    values = numpy.zeros(len(groups), found.dtype)
    values[numbers] = found
    if made.needed and values.dtype.kind == "f":
        is_there &= ~(numpy.isnan(values) & numpy.logical_or.reduce([counts[name] < 2 for name in made.needed]))
    kinds = {column.kind for column in read.values()}
    kind = next((kind for kind in ("arrow", "masked") if kind in kinds), "numpy")
    if kind == "numpy" and values.dtype.kind == "f":
        return Result(numpy.where(is_there, values, values.dtype.type(numpy.nan)), None, kind)
    return Result(values, None if is_there.all() else is_there, "masked" if kind == "numpy" and not is_there.all() else kind)
