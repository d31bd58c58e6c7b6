"""Rewrites expressions of row functions as pairs (value, whether the value is not missing)."""

import ast
import difflib
import types

from ..frontend import dates, static, words
from ..frontend.scope import copied
from . import operators
from .forms import CALLS, IS_MISSING, KNOWN, RAW, TRUTH, is_known_truth, is_there
from .missing import is_missing_object, isna
from .strings import TextOperand, Texts

_ISNA_NAMES = {"isna": False, "isnull": False, "notna": True, "notnull": True}


def _lifted(thing, count, source, call):
    """Returns a Python function that calls `thing`, in a form that can be passed to compiled funcs.
    Errors in it are reported at the program's call."""
    names = "abcd"[:count]
    shown = ast.unparse(call.func)  # the name in messages
    code = (lambda *operands: thing(*operands)).__code__.replace(co_filename=source.file, co_freevars=(shown,))
    made = types.FunctionType(code, {}, "called", None, (types.CellType(thing),))
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    node = ast.Lambda(arguments, ast.Call(ast.Name(shown, ast.Load()), [ast.Name(n, ast.Load()) for n in names], []))
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.arg)):
            ast.copy_location(inner, call)
    made.__kjit_source__, made.node = source, node
    return made


class Expressions(Texts):
    """Rewrites a function's expressions. `_Body` in row_functions.py derives from this class and
    rewrites the whole function."""

    # ---- expressions ----

    def truth(self, node):
        """Returns the truth value of an expression, as a bool."""
        if isinstance(node, ast.BoolOp):
            return self.at(node, ast.BoolOp(node.op, [self.truth(value) for value in node.values]))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.at(node, ast.UnaryOp(node.op, self.truth(node.operand)))
        made = self.number(node)
        return made.elts[0] if is_known_truth(made) else self.call(node, TRUTH, made)

    def raw(self, node):
        """Returns the value of an expression that must not be missing."""
        made = self.number(node)
        return made.elts[0] if is_there(made) else self.call(node, RAW, made)

    def number(self, node):
        """Returns the pair of an expression that is not a string."""
        self.check_number(node)
        return self.pair(node)

    def pair(self, node):
        value = self.static.value(node)
        if value is not static.UNKNOWN:
            return self.known(value, node)
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            reason = words.INSTEAD.get(
                type(node).__name__, f"a row function has no expression of this kind ({type(node).__name__})"
            )
            raise self.error(node, reason)
        return method(node)

    def known(self, value, node):
        """Returns the pair for a Python object that is known at compile time."""
        if is_missing_object(value):
            return self.missing(node)
        is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
        if isinstance(value, (bool, int, float, complex)) or is_scalar:
            return self.there(node, ast.Constant(value))
        if isinstance(value, tuple):
            return self.at(node, ast.Tuple([self.known(item, node) for item in value], ast.Load()))
        if isinstance(value, str):
            return self.variable(node, TextOperand(value))
        raise self.error(
            node,
            f"a row function cannot use a value of type {type(value).__name__}; it can use numbers, dates, functions and kjit.NA",
        )

    def of_Name(self, node):
        if node.id in self.aliases:
            return self.column(node, self.aliases[node.id])
        if node.id in self.rows:
            raise self.error(
                node, f'the row `{node.id}` is not a value; use its columns, {node.id}.name or {node.id}["name"]'
            )
        if node.id in self.own:
            return self.at(node, ast.Name(node.id, ast.Load()))
        raise self.error(node, f"`{node.id}` is not defined")

    def is_row(self, node):
        return isinstance(node, ast.Name) and node.id in self.rows

    def of_Attribute(self, node):
        if self.is_row(node.value):
            return self.column(node, node.attr)
        raise self.error(node, f"a value of a row function has no attribute `{node.attr}`")

    def of_Subscript(self, node):
        if self.is_row(node.value):
            name = self.static.value(node.slice)
            if not isinstance(name, (str, int, tuple)):
                raise self.error(
                    node.slice,
                    "the name of a column must be a text or an integer that is known when the function is compiled",
                )
            return self.column(node, name)
        base = self.static.value(node.value)
        if type(base).__module__ == "numpy" and hasattr(base, "shape"):
            return self.there(node, ast.Subscript(node.value, self.raw(node.slice), ast.Load()))
        if isinstance(self.static.value(node.slice), int):
            return self.at(node, ast.Subscript(self.pair(node.value), node.slice, ast.Load()))
        raise self.error(node, "a row function can index only tuples, with a constant, and NumPy arrays that are constants")

    def column(self, node, name):
        if name not in self.shared.columns:
            raise self.error(node, f"the table has no column {name!r}{_near(name, self.shared.columns)}")
        column = self.shared.columns[name]
        if column.refusal:
            raise self.error(node, f"column {name!r}: {column.refusal}")
        if column.decimal is not None:
            try:
                column.decimal.check_digits(name)
            except TypeError as problem:
                raise self.error(node, str(problem)) from None
        return self.variable(node, name)

    def variable(self, node, key):
        """Returns the variable that holds an operand in this function."""
        self.operands[key] = self.shared.operand(key)
        return self.at(node, ast.Name(self.operands[key], ast.Load()))

    def of_Tuple(self, node):
        return self.at(node, ast.Tuple([self.number(item) for item in node.elts], ast.Load()))

    def of_NamedExpr(self, node):
        return self.at(node, ast.NamedExpr(node.target, self.pair(node.value)))

    def of_BinOp(self, node):
        callee = KNOWN.get(operators.BINARY.get(type(node.op)))
        if callee is None:
            raise self.error(node, f"a row function has no operator of this kind ({type(node.op).__name__})")
        return self.call(node, callee, self.number(node.left), self.number(node.right))

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self.there(node, ast.UnaryOp(node.op, self.truth(node.operand)))
        return self.call(node, KNOWN[operators.UNARY[type(node.op)]], self.number(node.operand))

    def of_IfExp(self, node):
        self.check_branches(node)
        return self.at(node, ast.IfExp(self.truth(node.test), self.pair(node.body), self.pair(node.orelse)))

    def of_BoolOp(self, node):
        """Rewrites `and` and `or`: `a and b` is b if a is true, else a. Expressions have no side
        effects, so the text of `a` may occur twice."""
        made = self.number(node.values[-1])
        for value in reversed(node.values[:-1]):
            first = self.number(value)
            test = self.truth(value)
            both = (made, first) if isinstance(node.op, ast.And) else (first, made)
            made = self.at(node, ast.IfExp(test, *both))
        return made

    def column_of(self, node):
        """Returns the name of the column that an expression reads, or None."""
        name = None
        if isinstance(node, ast.Name):
            name = self.aliases.get(node.id)
        elif isinstance(node, ast.Attribute) and self.is_row(node.value):
            name = node.attr
        elif isinstance(node, ast.Subscript) and self.is_row(node.value):
            name = self.static.value(node.slice)
        return name if isinstance(name, (str, int, tuple)) and name in self.shared.columns else None

    # ---- comparisons ----

    def of_Compare(self, node):
        operands = [node.left, *node.comparators]
        pairs = [
            self.compare(self.at(node, ast.Compare(left, [operator], [right])), left, operator, right)
            for left, operator, right in zip(operands, node.ops, operands[1:])
        ]
        made = pairs[-1]
        for first in reversed(pairs[:-1]):
            test = first.elts[0] if is_known_truth(first) else self.call(node, TRUTH, first)
            made = self.at(node, ast.IfExp(test, made, copied(first)))
        return made

    def compare(self, node, left, operator, right):
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self.identity(node, left, operator, right)
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self.membership(node, left, operator, right)
        self.check_compared(node, left, operator, right)
        if isinstance(operator, (ast.Eq, ast.NotEq)) and self.has_none(left) and self.is_literal(right):
            return self.text_is(node, left, operator, right)
        if isinstance(operator, (ast.Eq, ast.NotEq)) and self.has_none(right) and self.is_literal(left):
            return self.text_is(node, right, operator, left)
        left, right = self.pair(left), self.pair(right)
        return self.call(node, KNOWN[operators.COMPARE[type(operator)]], left, right)

    def identity(self, node, left, operator, right):
        """Rewrites `x is kjit.NA` and `x is None`."""
        if is_missing_object(self.static.value(left)):
            left, right = right, left
        if not is_missing_object(self.static.value(right)):
            raise self.error(node, "`is` in a row function compares with kjit.NA or None; use == for values")
        there = self.at(node, ast.Subscript(self.pair(left), ast.Constant(1), ast.Load()))
        return self.there(node, there if isinstance(operator, ast.IsNot) else ast.UnaryOp(ast.Not(), there))

    def membership(self, node, value, operator, items):
        if not isinstance(items, (ast.Tuple, ast.List, ast.Set)):
            known = self.static.value(items)
            if not isinstance(known, (tuple, list, set, frozenset)):
                raise self.error(
                    items, "`in` of a row function needs a tuple, a list or a set that is written after it or is a constant"
                )
            items = ast.Tuple([self.at(items, ast.Constant(item)) for item in known], ast.Load())
        tests = [self.truth(self.at(node, ast.Compare(value, [ast.Eq()], [item]))) for item in items.elts]
        found = ast.BoolOp(ast.Or(), tests) if len(tests) > 1 else tests[0] if tests else ast.Constant(False)
        return self.there(node, ast.UnaryOp(ast.Not(), found) if isinstance(operator, ast.NotIn) else found)

    # ---- calls ----

    def of_Call(self, node):
        thing = self.static.value(node.func)
        if thing is static.UNKNOWN:
            where = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            name = f"`{ast.unparse(node.func)}`"
            reason = (
                "has no methods"
                if isinstance(node.func, ast.Attribute)
                else "is not known when the row function is compiled"
            )
            raise self.error(
                where, f"{name}: a value of a row function {reason}" if "methods" in reason else f"{name} {reason}"
            )
        is_pandas = str(getattr(thing, "__module__", "")).partition(".")[0] == "pandas"
        is_question = thing is isna or is_pandas and getattr(thing, "__name__", None) in _ISNA_NAMES
        if any(isinstance(a, ast.Starred) for a in node.args):
            raise self.error(node, "a call of a row function takes no *args")
        if is_question and len(node.args) == 1:
            found = self.call(node, IS_MISSING, self.pair(node.args[0]))
            return self.there(node, ast.UnaryOp(ast.Not(), found) if _ISNA_NAMES[thing.__name__] else found)
        python = getattr(thing, "py_func", thing)
        if isinstance(python, types.FunctionType) and getattr(python, "__module__", "").partition(".")[0] not in (
            "numpy",
            "kjit",
        ):
            return self.call_function(node, python)
        if node.keywords:
            raise self.error(
                node.keywords[0].value, f"{ast.unparse(node.func)}() takes no keyword arguments in a row function"
            )
        if getattr(thing, "__module__", None) == "numpy" and thing.__name__ == "where" and len(node.args) == 3:
            return self.of_IfExp(self.at(node, ast.IfExp(*node.args)))
        if dates.is_class(thing):
            return self.date(node, thing)
        if thing is print:
            raise self.error(node, "a row function cannot call print(), because many threads compute the rows")
        if thing is bool and len(node.args) == 1:
            return self.there(node, self.truth(node.args[0]))
        if thing in (min, max) and len(node.args) > 1:
            return self.there(node, ast.Call(node.func, [self.raw(a) for a in node.args], []))
        if len(node.args) not in CALLS:
            raise self.error(node, f"a row function cannot call {ast.unparse(node.func)}() with {len(node.args)} arguments")
        lifted = self.at(node.func, ast.Constant(_lifted(thing, len(node.args), self.source, node)))
        return self.call(node, CALLS[len(node.args)], lifted, *(self.number(a) for a in node.args))

    def date(self, node, thing):
        """Rewrites np.timedelta64(...) and np.datetime64(...) of constants, or of a count and a
        constant unit."""
        values = [self.static.value(argument) for argument in node.args]
        if values and static.UNKNOWN not in values:
            try:
                return self.known(thing(*values), node)
            except (TypeError, ValueError) as problem:
                raise self.error(node, f"{ast.unparse(node.func)}: {problem}") from None
        if len(values) != 2 or not isinstance(values[1], str):
            raise self.error(
                node, f"{ast.unparse(node.func)}() takes a value and a unit, which must be a constant"
            )
        unit = values[1]
        lifted = self.at(node.func, ast.Constant(lambda a: thing(a, unit)))
        return self.call(node, CALLS[1], lifted, self.number(node.args[0]))

    def is_given_text(self, value):
        return self.is_text(value) if isinstance(value, ast.AST) else isinstance(value, str)

    def call_function(self, node, python):
        """Rewrites a call of another function of the program. A row is passed as the columns that
        the other function reads."""
        import inspect

        try:
            bound = inspect.signature(python).bind(*node.args, **{k.arg: k.value for k in node.keywords})
        except TypeError as problem:
            raise self.error(node, f"{python.__name__}(): {problem}") from None
        bound.apply_defaults()
        rows = tuple(name for name, value in bound.arguments.items() if self.is_row(value))
        aliases = {
            n: self.column_of(v)
            for n, v in bound.arguments.items()
            if isinstance(v, ast.AST) and self.column_of(v) is not None
        }
        texts = frozenset(n for n, v in bound.arguments.items() if n not in aliases and self.is_given_text(v))
        key = python, rows, tuple(aliases.items()), texts
        if key not in self.shared.callees:
            self.shared.callees[key] = None  # lets a recursive call be detected
            self.shared.callees[key] = self.callee(python, rows, aliases, texts)
        if self.shared.callees[key] is None:
            raise self.error(node, f"{python.__name__}() calls itself, but row functions do not support recursion")
        callee, operands, plain = self.shared.callees[key]
        values = [bound.arguments[name] for name in plain]
        pairs = [self.pair(v) if isinstance(v, ast.AST) else self.known(v, node) for v in values]
        return self.call(node, callee, *pairs, *(self.variable(node, operand) for operand in operands))


def _near(name, names):
    found = difflib.get_close_matches(name, [n for n in names if isinstance(n, str)], 1, 0.65)
    return f"; did you mean {found[0]!r}?" if found else ""
