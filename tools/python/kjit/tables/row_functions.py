"""Rewrites Python functions of a row as functions of pairs (value, whether the value is not missing).
The front end compiles the rewritten functions.

The rewriting works on syntax trees. A column that the function reads becomes a parameter, and an
operator becomes a call of a func in operators.py. The nodes keep their locations, so messages show
the user's lines.
"""

import ast
import types

from .. import _functions
from ..frontend import source as sources
from ..frontend import static, words
from . import operators
from .forms import KNOWN, Callee
from .row_expressions import Expressions
from .strings import TextOperand

_PASSED_ON = (ast.Pass, ast.Break, ast.Continue, ast.Raise)


class RowFunction(_functions.Function):
    """A rewritten function. node: the syntax tree of the function. names: its parameters' names, one
    for each operand that the function reads."""

    is_typed = True

    def __init__(self, python, node, names):
        self._prepare(python, {"numba": True})
        self._loaded, self.node, self._names = None, node, names

    def _parameters(self):
        return self._names


class _Callable:
    """A rewritten function that another rewritten function calls. Its parameters are pairs."""

    is_typed, attributes = True, " @numba"

    def __init__(self, python):
        self.py_func, self.__name__, self.node = python, python.__name__, None


class Rewriting:
    """The data shared by the functions of one row function: the columns by name, their operands,
    and the functions that they call."""

    def __init__(self, columns):
        self.columns = columns  # name -> Column
        self.used = {}  # operand -> parameter; an operand is a column's name or a TextOperand
        self.callees = {}
        self.makes_missing = False

    def operand(self, key):
        """Returns the parameter name for an operand."""
        if key not in self.used:
            self.used[key] = f"operand.{len(self.used)}"
        return self.used[key]


class _Body(Expressions):
    """Rewrites one function. rows: the parameters that stand for a row. aliases: the parameters that
    stand for a column of the row."""

    def __init__(self, shared, python, rows, aliases=()):
        self.shared, self.python, self.rows, self.aliases = shared, python, rows, dict(aliases)
        self.source = sources.remember(python)
        self.function = sources.find(python, self.source)
        stored = {n.id for n in ast.walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        arguments = self.function.args
        if arguments.vararg or arguments.kwarg:
            raise self.error(arguments.vararg or arguments.kwarg, "a row function takes no *args and no **kwargs")
        self.parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        for name in stored & {*rows}:
            raise self.error(self.function, f"the row function assigns to its parameter `{name}`: use another name")
        # If the function assigns to a parameter that is a column, the parameter becomes a variable.
        # Its first value is the column's value.
        self.started = {name: self.aliases.pop(name) for name in sorted(stored & {*self.aliases})}
        self.stored, self.own = stored, stored | set(self.parameters)
        self.static = static.Names(python, self.own, None, True)
        # text_names: see Texts. returned_texts: whether the returned values are strings.
        self.text_names, self.returned_texts = set(), set()
        self.operands = {}  # operand -> the name of its variable, in the order of use

    def error(self, node, message):
        return self.source.error(node if hasattr(node, "lineno") else self.function, message)

    # ---- whole functions ----

    def statements(self):
        """Returns the rewritten body. If its end can be reached, it ends with `return NA`."""
        starts = [self.start(name, column) for name, column in self.started.items()]
        self.find_text_names()
        if isinstance(self.function, ast.Lambda):
            returned = self.at(self.function.body, ast.Return(self.function.body))
            return [*starts, self.at(self.function.body, self.do_Return(returned))]
        body = [*starts, *self.block(self.function.body)]
        if not _ends(self.function.body):
            body.append(ast.copy_location(ast.Return(self.missing(self.function)), self.function.body[-1]))
        return body

    def start(self, name, column):
        if self.shared.columns[column].texts is not None:
            self.text_names.add(name)
        return self.at(self.function, ast.Assign([ast.Name(name, ast.Store())], self.column(self.function, column)))

    def made(self, names, body):
        """Returns the function with these parameters and statements."""
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
        name = getattr(self.function, "name", "lambda_")
        made = ast.FunctionDef(name, arguments, body, [])
        made.lineno, made.col_offset = self.function.lineno, self.function.col_offset
        for node in ast.walk(made):
            if isinstance(node, (ast.expr, ast.stmt, ast.arg)) and not hasattr(node, "lineno"):
                ast.copy_location(node, self.function)
        return ast.fix_missing_locations(made)

    # ---- parts of the tree ----

    def at(self, node, made):
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def call(self, node, callee, *arguments):
        return self.at(node, ast.Call(ast.Constant(callee), list(arguments), []))

    def there(self, node, value):
        """Returns the pair of a value that is not missing."""
        return self.at(node, ast.Tuple([value, ast.Constant(True)], ast.Load()))

    def missing(self, node):
        self.shared.makes_missing = True
        return self.at(node, ast.Tuple([ast.Constant(False), ast.Constant(False)], ast.Load()))

    # ---- statements ----

    def block(self, body):
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, node):
        if isinstance(node, _PASSED_ON):
            return [node]
        method = getattr(self, "do_" + type(node).__name__, None)
        if method is None:
            reason = words.INSTEAD.get(
                type(node).__name__, f"a row function has no statement of this kind ({type(node).__name__})"
            )
            raise self.error(node, reason)
        made = method(node)
        return [self.at(node, one) for one in (made if isinstance(made, list) else [made])]

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, (str, type(...))):
            return []
        if isinstance(node.value, ast.Call):
            self.pair(node.value)  # reports errors inside the call first
        raise self.error(node, "a row function does not use the value of this expression")

    def do_Return(self, node):
        if isinstance(node.value, ast.Tuple):
            raise self.error(
                node.value, "a row function returns one value: use a function for each column, assign(a=..., b=...)"
            )
        if node.value is None:
            return ast.Return(self.missing(node))
        if not self.is_missing(node.value):
            self.returned_texts.add(self.is_text(node.value))
        if len(self.returned_texts) > 1:
            raise self.error(node, "this function returns a text here, but a value of another type elsewhere")
        return ast.Return(self.pair(node.value))

    def do_Assign(self, node):
        for target in node.targets:
            self.check_target(target)
        is_each = isinstance(node.value, ast.Tuple) and all(isinstance(target, ast.Tuple) for target in node.targets)
        value = (
            ast.Tuple([self.pair(item) for item in node.value.elts], ast.Load()) if is_each else self.pair(node.value)
        )
        return ast.Assign(node.targets, self.at(node.value, value))

    def check_target(self, target):
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.check_target(item)
        elif not isinstance(target, ast.Name):
            raise self.error(target, "a row function assigns to variables only: return the value of the new column")

    def do_AnnAssign(self, node):
        return ast.Pass() if node.value is None else self.do_Assign(ast.Assign([node.target], node.value))

    def do_AugAssign(self, node):
        self.check_target(node.target)
        self.check_number(self.at(node.target, ast.Name(node.target.id, ast.Load())))
        read = self.at(node.target, ast.Name(node.target.id, ast.Load()))
        return ast.Assign(
            [node.target], self.call(node, KNOWN[operators.BINARY[type(node.op)]], read, self.number(node.value))
        )

    def do_If(self, node):
        return ast.If(self.truth(node.test), self.block(node.body), self.block(node.orelse))

    def do_While(self, node):
        return ast.While(self.truth(node.test), self.block(node.body), self.block(node.orelse))

    def do_Assert(self, node):
        return ast.Assert(self.truth(node.test), node.msg)

    def do_For(self, node):
        call = node.iter
        is_range = isinstance(call, ast.Call) and self.static.value(call.func) is range and not call.keywords
        if not is_range or not isinstance(node.target, ast.Name):
            raise self.error(node.iter, "a loop of a row function goes over range(...), with one variable")
        name = node.target.id
        counter = self.at(node.target, ast.Name(name + ".count", ast.Store()))
        read = self.at(node.target, ast.Name(name + ".count", ast.Load()))
        given = self.at(node.target, ast.Assign([node.target], self.there(node.target, read)))
        iterated = self.at(call, ast.Call(call.func, [self.raw(a) for a in call.args], []))
        return ast.For(counter, iterated, [given, *self.block(node.body)], self.block(node.orelse))

    # ---- calls of other functions ----

    def callee(self, python, rows, aliases, texts):
        """Returns (the object that calls the rewritten function, the operands that the function
        reads, the names of its parameters that are neither rows nor columns)."""
        body = _Body(self.shared, python, rows, aliases)
        body.text_names |= texts
        statements = body.statements()
        if True in body.returned_texts:
            raise body.error(body.function, "only the row function itself returns texts, not a function that it calls")
        plain = [name for name in body.parameters if name not in rows and name not in aliases]
        made = _Callable(python)
        made.node = body.made([*plain, *body.operands.values()], statements)
        return Callee(made), tuple(body.operands), plain


def rewrite(python, columns, count, is_row=True):
    """Rewrites a function of a row, or of one value. Returns (function, operands in the order of
    the parameters, whether its result can be missing, whether the result is a string).

    columns: the Columns by name. count: the number of arguments after the first one. An operand that
    can be missing takes two parameters, the value and the flag; any other operand takes one
    parameter. Raises TypeError if the object is not a Python function.
    """
    if not isinstance(python, types.FunctionType):
        python = getattr(python, "py_func", python)
    if not isinstance(python, types.FunctionType):
        raise TypeError(f"a row function must be a Python function, not {type(python).__name__}")
    shared = Rewriting(columns)
    first = python.__code__.co_varnames[0] if python.__code__.co_argcount else None
    body = _Body(shared, python, (first,) if is_row else (), {} if is_row else {first: next(iter(columns))})
    rest, positional = body.parameters[1:], python.__code__.co_varnames[1 : python.__code__.co_argcount]
    defaults = python.__defaults__ or ()
    known = {
        **dict(zip(positional[max(0, len(positional) - len(defaults)) :], defaults)),
        **(python.__kwdefaults__ or {}),
    }
    if first is None or count > len(positional) or any(name not in known for name in rest[count:]):
        raise TypeError(
            f"{python.__name__}() takes {len(body.parameters)} arguments, but the row and {count} more were given"
        )
    defaulted = [name for name in rest[count:] if name in body.stored]
    for name in set(rest[count:]) - set(defaulted):  # a parameter that is never assigned is a constant
        body.static.around[name] = known[name]
        body.own.discard(name)
    statements = body.statements()
    names, before = [], []
    for name in defaulted:
        before.append(ast.Assign([ast.Name(name, ast.Store())], body.known(known[name], body.function)))
    for name in rest[:count]:
        names.append(f"{name}.given")
        read = ast.Name(names[-1], ast.Load())
        before.append(ast.Assign([ast.Name(name, ast.Store())], ast.Tuple([read, ast.Constant(True)], ast.Load())))
    may_be_missing = shared.makes_missing
    for key, parameter in body.operands.items():
        names.append(f"{parameter}.value")
        flag = ast.Constant(True)
        if not isinstance(key, TextOperand) and columns[key].may_be_missing:
            may_be_missing = True
            names.append(f"{parameter}.flag")
            flag = ast.Name(names[-1], ast.Load())
            flag = ast.UnaryOp(ast.Not(), flag) if columns[key].flags_missing else flag
        value = ast.Name(f"{parameter}.value", ast.Load())
        if not isinstance(key, TextOperand) and columns[key].date is not None:
            value = _date(columns[key].date, value)
        if not isinstance(key, TextOperand) and columns[key].decimal is not None:
            value = ast.BinOp(value, ast.Div(), ast.Constant(10.0 ** columns[key].decimal.scale))
        pair = ast.Tuple([value, flag], ast.Load())
        before.append(ast.Assign([ast.Name(parameter, ast.Store())], pair))
    if all(isinstance(key, TextOperand) for key in body.operands):
        names.append("row.number")  # an operand with the table length
    node = body.made(names, [*before, *statements])
    return RowFunction(python, node, tuple(names)), tuple(body.operands), may_be_missing, True in body.returned_texts


def _date(dtype, count):
    """Returns the expression for the date that `count` units of a NumPy date dtype represent."""
    import numpy

    unit, step = numpy.datetime_data(dtype)
    return ast.Call(ast.Constant(dtype.type), [count, ast.Constant(unit if step == 1 else f"{step}{unit}")], [])


def _ends(body):
    """Returns whether every path through the statements returns or raises."""
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return bool(last.orelse) and _ends(last.body) and _ends(last.orelse)
    return False
