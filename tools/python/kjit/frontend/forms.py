"""Translates comparisons, `in`, `is`, `and`, `or` and conditional expressions to kernel IR text.
Python evaluates each operand at most once. If the text would repeat an operand with a call, the
expression becomes a separate func."""

import ast

from .._errors import remember_raise
from . import enums, optional, pyvalues, ranges, static, words

_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
# A known bool that type inference must not use to remove branches.
_AT_RUN_TIME = words.Text("at_run_time", "\nfunc at_run_time(x) -> bool { return x }")
_DIRECT = (ast.Name, ast.Constant, ast.Attribute)  # can be repeated without side effects


def _calls(node):
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


class Forms:
    """The part of the emitter for comparisons and for logical and conditional expressions."""

    # ---- separate funcs ----

    def lift(self, node, write):
        """Makes a func and returns its call. write(depth) writes the statements in the func. The
        func's parameters are the expression's variables."""
        outer, self.lines = self.lines, []
        write(1)
        body, self.lines = self.lines, outer
        names = {n.id: None for n in ast.walk(node) if isinstance(n, ast.Name)}
        names = [self.local(n) for n in names if n in self.scope.names or n in self.parameters or n in self.kept]
        symbol = self.builder.new_name(f"expression_of_{self.node.lineno}")
        self.used.add(symbol)
        place = self.source.place(node)
        self.lifted.append([place, f"func {symbol}({', '.join(names)}){self.rules} {{"])
        self.lifted += [*body, ["}"]]
        return [place, f"{symbol}({', '.join(names)})"]

    def keep(self, node, depth):
        """Stores the expression's value in a new variable, and returns the variable as a node."""
        name = self.temporary_name()
        self.put(depth, [self.source.place(node)], f"let {self.local(name)} = ", self.expression(node))
        self.kept.add(name)
        self.static.own.add(name)
        self.values[name] = node
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    # ---- comparisons ----

    def of_Compare(self, node):
        operands = [node.left, *node.comparators]
        if len(operands) == 2:
            return self.compare(node, *operands)
        if any(_calls(middle) for middle in operands[1:-1]):
            return self.lift(node, lambda depth: self.put_chain(node, operands, depth))
        joined = ["("]
        for i, pair in enumerate(zip(operands, node.ops, operands[1:])):
            left, operator, right = pair
            part = ast.copy_location(ast.Compare(left, [operator], [right]), node)
            joined += ([" and "] if i else []) + self.expression(part)
        return [*joined, ")"]

    def put_chain(self, node, operands, depth):
        left = operands[0]
        for i, (operator, right) in enumerate(zip(node.ops, operands[1:])):
            is_last = i == len(node.ops) - 1
            left = self.keep(left, depth) if not i and _calls(left) else left
            right = self.keep(right, depth) if not is_last else right
            pair = ast.copy_location(ast.Compare(left, [operator], [right]), node)
            if is_last:
                self.put(depth, "return ", self.expression(pair))
            else:
                self.put(depth, "if not ", self.expression(pair), " { return false }")
            left = right

    def compare(self, node, left, right):
        operator = node.ops[0]
        decided = self.static.comparison_of_text(node)
        if decided is not static.UNKNOWN and not isinstance(operator, (ast.Is, ast.IsNot)):
            return [self.source.place(node), f"{self.use(_AT_RUN_TIME)}({'true' if decided else 'false'})"]
        is_none = self.static_value(left) is None or self.static_value(right) is None
        if isinstance(operator, (ast.Is, ast.IsNot)) or is_none and isinstance(operator, (ast.Eq, ast.NotEq)):
            return self.identity(node, left, right)
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self.membership(node, left, right)
        known = pyvalues.compare_constants(self, operator, left, right)
        if known is not None:
            return [self.source.place(node), "true" if known else "false"]
        text = _COMPARE[type(operator)]
        place = self.source.operator_place(left, right, text)
        return ["(", *self.expression(left), " ", place, text, " ", *self.expression(right), ")"]

    def membership(self, node, value, items):
        """Writes whether a value is among the items in a tuple, a list display, an array or a
        range."""
        known = self.static_value(items)
        if isinstance(known, str):
            raise self.error(node, "`in` with a string needs two strings that are known when the kernel is compiled")
        if ranges.is_range(self, items):
            symbol, value_text = self.use(ranges.CONTAINS), self.expression(value)
            parts = [f"{symbol}(", *value_text, ", ", *ranges.value(self, items), ")"]
        elif isinstance(items, (ast.Tuple, ast.List, ast.Set)) and any(enums.class_of(self, n) for n in (value, *items.elts)):
            parts = self.lift(node, lambda depth: self.put_search(node, value, items.elts, depth))
        else:
            if isinstance(items, (ast.List, ast.Set)):
                items = ast.copy_location(ast.Tuple(items.elts, ast.Load()), items)
            values = ["()"] if isinstance(items, ast.Tuple) and not items.elts else self.expression(items)
            parts = [f"{self.use(pyvalues.CONTAINS)}(", *self.expression(value), ", ", *values, ")"]
        is_not = isinstance(node.ops[0], ast.NotIn)
        return [self.source.place(node), "(not " if is_not else "(", *parts, ")"]

    def put_search(self, node, value, items, depth):
        """Writes the comparison of the value with each item in turn."""
        value = self.keep(value, depth)
        for item in items:
            pair = ast.copy_location(ast.Compare(value, [ast.Eq()], [item]), node)
            self.put(depth, "if ", self.expression(pair), " { return true }")
        self.put(depth, "return false")

    def identity(self, node, left, right):
        """Writes `is`. Numbers are identical if they are equal; no value of a kernel is None."""
        values = [self.static_value(operand) for operand in (left, right)]
        is_not = isinstance(node.ops[0], (ast.IsNot, ast.NotEq))
        if any(value is None for value in values):
            is_same = all(value is None for value in values)
            other = left if values[1] is None else right
            if not is_same and optional.may_be(self, other):
                return [self.source.place(node), "(" if is_not else "(not ", *optional.flag(self, other), ")"]
            if not is_same and _calls(other):  # the side effects of the call remain
                return [f"{self.use(pyvalues.CONSTANT)}(", *self.expression(other), f", {'true' if is_not else 'false'})"]
            return [self.source.place(node), "true" if is_not != is_same else "false"]
        truth = next((value for value in values if isinstance(value, bool)), None)
        if truth is not None:  # only a bool can be True or False; the number 1 is not
            other = left if values[1] is truth else right
            symbol = self.use(pyvalues.IS_TRUE if truth else pyvalues.IS_FALSE)
            return [self.source.place(node), "(not " if is_not else "(", f"{symbol}(", *self.expression(other), "))"]
        if not self.is_typed and not enums.class_of(self, left):
            raise self.error(node, "`is` needs values that are known when the kernel is compiled; compare numbers with ==")
        # members of different integer enumerations can have equal values but are never identical
        if enums.are_of_different(self, left, right):
            return [self.source.place(node), "true" if is_not else "false"]
        known = pyvalues.compare_constants(self, ast.NotEq() if is_not else ast.Eq(), left, right)
        if known is not None:
            return [self.source.place(node), "true" if known else "false"]
        sign = "!=" if is_not else "=="
        return ["(", *self.expression(left), " ", self.source.place(node), f"{sign} ", *self.expression(right), ")"]

    # ---- and, or, if else ----

    def is_truth(self, node):
        if isinstance(node, ast.Call):
            thing = self.static_value(node.func)
            if getattr(thing, "is_truth", False) or getattr(thing, "result", None) == "bool":
                return True
        if isinstance(node, ast.Compare) or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
        if isinstance(node, ast.BoolOp):
            return all(self.is_truth(v) for v in node.values)
        return isinstance(node, ast.Constant) and isinstance(node.value, bool)

    def condition(self, node):
        """Returns the text of an expression of which only the truth value is used."""
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            parts = ["("]
            for i, value in enumerate(self.undecided(node)):
                parts += ([word] if i else []) + self.condition(value)
            return [*parts, ")"]
        known = self.static_value(node)
        if isinstance(node, ast.Name) and node.id in self.static.optional:
            return optional.condition(self, node)
        if known is None or isinstance(known, str):
            return [self.source.place(node), "true" if known else "false"]
        return self.expression(node)

    def of_BoolOp(self, node):
        """Writes `and` and `or` as values, which are one of the operands: `a and b` is b if a is
        true, else a."""
        values = self.undecided(node)
        if len(values) == 1:
            return self.expression(values[0])
        left = ast.copy_location(ast.BoolOp(node.op, values), node)
        if self.is_truth(left):
            return self.condition(left)
        if not all(self.is_truth(value) or not _calls(value) if self.is_typed else isinstance(value, _DIRECT) for value in values[:-1]):
            return self.lift(left, lambda depth: self.put_choice(left, depth))
        result = self.expression(values[-1])
        for value in reversed(values[:-1]):
            first = self.expression(value)
            both = [result, first] if isinstance(node.op, ast.And) else [first, result]
            result = ["(", *first, " ? ", *both[0], " : ", *both[1], ")"]
        return result

    def undecided(self, node):
        """Returns the operands without known ones that do not affect the result. The last operand
        always stays."""
        stops = isinstance(node.op, ast.Or)
        values = []
        for value in node.values[:-1]:
            known = self.static_value(value)
            if not isinstance(known, static.PLAIN):
                values.append(value)
            elif bool(known) == stops:
                return [*values, value]
        return [*values, node.values[-1]]

    def put_choice(self, node, depth):
        for value in node.values[:-1]:
            name = self.keep(value, depth)
            truth = ["(not ", *self.expression(name), ")"] if isinstance(node.op, ast.And) else self.expression(name)
            self.put(depth, "if ", truth, " { return ", self.expression(name), " }")
        self.put(depth, "return ", self.expression(node.values[-1]))

    def of_IfExp(self, node):
        known = self.static_value(node.test)
        if isinstance(known, static.PLAIN):
            return self.expression(node.body if known else node.orelse)
        return self.conditional(node, self.expression)

    def conditional(self, node, text_of):
        parts = [self.source.place(node), "(", *self.condition(node.test), " ? ", *text_of(node.body), " : "]
        return [*parts, *text_of(node.orelse), ")"]

    def use(self, text):
        """Adds a func that is written in kernel IR to the module, and returns its name for a call
        in this function."""
        symbol = self.builder.function(text)
        self.used.add(symbol)
        return symbol

    def use_at(self, text, node, kind=None):
        """Like `use`, for a func that may raise an error, which names the node's location. kind: the exception class of its `raise`."""
        place = self.source.place(node)
        if kind:
            remember_raise(place, kind)
        lines = [[place, line] for line in self.builder.text_of(text, "NAME").strip().split("\n")]
        symbol = self.builder.generated(text.__name__, lines)
        self.used.add(symbol)
        return symbol
