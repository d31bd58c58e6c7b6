"""Expressions of whole arrays, such as `a[i] * 2 + b`, which are computed without temporary arrays.

Only the compiler, which knows the types, can tell whether `a[i]` is an array or a number. The
emitter therefore writes such an expression as a func of the kernel IR that computes one element of
the result: `func elements(at, l0, l1)`. The leaves l0 and l1 are the arrays and numbers in the
expression; the caller evaluates them once. An operator between numbers follows the rules of
scalars. An operator with an array has Numba's types, which element_types.py describes.
"""

import ast

from .. import dtypes
from .._errors import remember_raise
from . import array_texts as texts
from . import element_types, enums, library, module, optional, static, ufuncs, words
from .element_types import OPERATORS

WRONG_SIZE = "cannot assign slice from input of different size"
OVERLAP = (
    "the assigned value and its target overlap in memory, and the value needs more temporary memory than a thread has: "
    "write the result to another array"
)
_MISMATCH = "the arrays of an expression have shapes that do not fit together"

_WHERE = words.Text(
    "array_where",
    """
func array_where(c, a, b) {
  return np_truth(c) ? dtype(array_common(a, b))(a) : dtype(array_common(a, b))(b)
}""",
    (ufuncs.TRUTH, element_types.COMMON),
)


def is_of_numpy(thing, name):
    """Returns whether an object is the NumPy function with this name. NumPy need not be imported."""
    return getattr(thing, "__module__", None) == "numpy" and getattr(thing, "__name__", None) == name


class Operation:
    """An operation that is computed element by element.

    numbers: returns the result's text from the operands' texts if all operands are numbers.
    elements: returns the text if an operand is an array; None means the same text as for numbers.
    kinds: returns the text of a value that has NumPy's result type, from such texts for the
    operands. If kinds is None, the operands are converted to NumPy's types first, and the result
    keeps its type.
    """

    def __init__(self, operands, numbers, elements=None, kinds=None):
        self.operands, self.numbers, self.elements, self.kinds = operands, numbers, elements, kinds


class Elements:
    """Writes the func for one element of an expression. leaves: the texts of the arrays and numbers
    that the func takes."""

    def __init__(self, emitter):
        self.emitter, self.lines, self.leaves, self.known, self.count = emitter, [], [], {}, 0
        self.is_of_arrays = False  # whether the expression calls a function that only arrays have

    def symbol(self, text):
        name = self.emitter.builder.function(text)
        self.emitter.used.add(name)
        return name

    def leaf(self, node, parts):
        key = ast.dump(node) if isinstance(node, ast.Name) else None
        if key in self.known:
            return self.known[key]
        number = len(self.leaves)
        self.leaves.append(parts)
        self.lines.append(["  ", f"let e{number} = {self.symbol(texts.LOAD)}(at, l{number})"])
        result = [f"e{number}"], [f"e{number}"], frozenset([number])
        if key:
            self.known[key] = result
        return result

    def take(self, node):
        """Returns (text, typed, leaves) for a node. text is source text that computes one element
        of the expression. typed is source text for some value of the type that NumPy gives the
        element. leaves is the set of numbers of the leaves in the node."""
        emitter = self.emitter
        value = emitter.static_value(node)
        if value is static.UNKNOWN and emitter.is_typed:
            value = static.fold_literals(node)
        if value is not static.UNKNOWN:
            text = None if isinstance(value, tuple) else module.literal(value, emitter.is_typed)
            return ([text], [text], frozenset()) if text is not None else self.leaf(node, emitter.known(value, node))
        operation = self.operation(node)
        if operation is None:
            return self.leaf(node, emitter.expression(node))
        taken = [self.take(operand) for operand in operation.operands]
        leaves = frozenset().union(*(found for _, _, found in taken))
        if operation.kinds is None:
            values = [self.converted(value, kind) for value, kind, _ in taken]
        else:
            values = [value for value, _, _ in taken]
        made = self.choose(node, leaves, operation.numbers(*values), operation.elements and operation.elements(*values))
        if operation.kinds is None or not leaves:
            return made, made, leaves
        return made, self.kind(made, leaves, operation.kinds(*(kind for _, kind, _ in taken))), leaves

    def choose(self, node, leaves, of_numbers, of_arrays):
        """Returns a value's name: the operation on numbers if all leaves are numbers, otherwise the
        operation on elements."""
        name = f"v{self.count}"
        self.count += 1
        place = self.emitter.source.place(node)
        if of_arrays is None or not leaves:  # both operations are the same
            self.lines.append(["  ", place, f"let {name} = ", *of_numbers])
        else:
            self.lines.append(["  ", place, f"let {name} = (({self.has_array(leaves)}) ? ", *of_arrays, " : ", *of_numbers, ")"])
        return [name]

    def kind(self, value, leaves, of_arrays):
        """Returns the name of a value whose type is the result type of a NumPy operator. The value
        itself is not the operator's result."""
        name = f"k{self.count}"
        self.count += 1
        self.lines.append(["  ", f"let {name} = (({self.has_array(leaves)}) ? zero(dtype(", *of_arrays, ")) : ", *value, ")"])
        return [name]

    @staticmethod
    def has_array(leaves):
        return " or ".join(f"is_array(l{i})" for i in sorted(leaves))

    def converted(self, value, kind):
        """Returns the text of an element converted to NumPy's type."""
        return value if value == kind else [f"{self.symbol(element_types.CAST)}(", *kind, ", ", *value, ")"]

    # ---- element-wise operations ----

    def operation(self, node):
        """Returns the Operation for an expression, or None if the expression is a leaf."""
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            function = self.ufunc(OPERATORS[type(node.op)])
            if getattr(node, "is_in_place", False):  # the ufunc itself, as in Numba
                return Operation([node.left, node.right], self.binary(node), function)
            return Operation([node.left, node.right], self.binary(node), self.division(node), function)
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            sign = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
            return Operation([node.operand], lambda x: [f"({sign}", *x, ")"], None, self.ufunc(OPERATORS[type(node.op)]))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS and self.is_of_numbers(node):
            name = OPERATORS[type(node.ops[0])]
            sign = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}[name]
            numbers = lambda x, y: ["(", *x, f" {sign} ", *y, ")"]  # noqa: E731
            return Operation([node.left, *node.comparators], numbers, None, self.ufunc(name))
        return self.call(node) if isinstance(node, ast.Call) else None

    def is_of_numbers(self, node):
        """Returns whether a comparison is between numbers. Comparisons of None, strings, types or
        enum members are made for the whole operand."""
        for operand in (node.left, *node.comparators):
            value = self.emitter.static_value(operand)
            is_number = value is static.UNKNOWN or isinstance(value, (bool, int, float, complex))
            is_other = optional.may_be(self.emitter, operand) or enums.class_of(self.emitter, operand)
            if not is_number and not hasattr(value, "dtype") or is_other:
                return False
        return True

    def call(self, node):
        emitter = self.emitter
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            return None
        thing = emitter.static_value(node.func)
        if ufuncs.is_ufunc(thing) and len(node.args) == thing.nin and thing.nout == 1:
            emitter.ufunc(node, thing)
            numbers = self.symbol(library.instead(thing, thing.nin))
            function = self.ufunc(thing.__name__)
            return Operation(node.args, lambda *x: [f"{numbers}(", *self.join(x), ")"], function, function)
        if thing is abs and len(node.args) == 1:
            return Operation(node.args, lambda x: ["abs(", *x, ")"], self.ufunc("absolute"))
        if is_of_numpy(thing, "where") and len(node.args) == 3:
            where, self.is_of_arrays = self.symbol(_WHERE), True
            return Operation(node.args, lambda *x: [f"{where}(", *self.join(x), ")"])
        is_method = isinstance(node.func, ast.Attribute) and thing is static.UNKNOWN
        if is_method and node.func.attr == "astype" and len(node.args) == 1:
            kind = dtypes.name_of(emitter.numpy_dtype(emitter.static_value(node.args[0])))
            if kind is None:
                raise emitter.error(node, "array.astype(dtype) takes a type that is known when the kernel is compiled")
            self.is_of_arrays = True
            return Operation([node.func.value], lambda x: [f"{kind}(", *x, ")"])
        return None

    def binary(self, node):
        """Returns the function that writes a binary operator on numbers."""
        emitter, operator = self.emitter, words.BINARY[type(node.op)]
        place = emitter.source.operator_place(node.left, node.right, operator)

        def text(x, y):
            return ["(", *x, " ", place, operator, " ", *y, ")"]

        return text

    def division(self, node):
        """Returns the function that writes a division of elements, in which a division by zero is
        no error. None means that numbers and elements use the same operator."""
        text = element_types.DIVISIONS.get(type(node.op)) if self.emitter.is_typed else None
        function = text and self.symbol(text)
        return text and (lambda x, y: [f"{function}(", *x, ", ", *y, ")"])

    def ufunc(self, name):
        """Returns the function that writes a ufunc on array elements with Numba's types. Returns
        None without Numba's types, because kernels then follow the rules of the kernel IR."""
        if not self.emitter.is_typed:
            return None
        return lambda *x: [f"{self.symbol(element_types.ufunc(name, len(x)))}(", *self.join(x), ")"]

    @staticmethod
    def join(values):
        parts = []
        for i, value in enumerate(values):
            parts += ([", "] if i else []) + value
        return parts

    # ---- the funcs ----

    def function(self, node):
        """Returns the name of the func that computes one element."""
        value, kind, _ = self.take(node)
        value = self.converted(value, kind)
        head = self.head(node, ["at", *self.names()])
        return self.finish(f"elements_{node.lineno}", [head, *self.lines, ["  return ", *value], ["}"]])

    def names(self):
        return [f"l{i}" for i in range(len(self.leaves))]

    def rules(self):
        return " @numba" if self.emitter.is_typed else ""

    def loaded(self, symbol):
        """Returns the text of a function value that loads an element. Its last arguments are bound to
        the expression's leaves."""
        return f"bind_back({', '.join([symbol, *self.names()])})" if self.leaves else symbol

    def shape(self):
        """Returns (the text of the expression's shape, whether the leaves' shapes may not
        broadcast)."""
        parts = [f"{self.symbol(texts.SHAPE)}({name})" for name in self.names()] or ["()"]
        result = parts[0]
        for part in parts[1:]:
            result = f"{self.symbol(texts.JOIN)}({result}, {part})"
        return result, len(parts) > 1

    def head(self, node, parameters):
        return [self.emitter.source.place(node), f"func NAME({', '.join(parameters)}){self.rules()} {{"]

    def finish(self, wanted, lines):
        name = self.emitter.builder.generated(wanted, lines)
        self.emitter.used.add(name)
        return name

    def failing(self, node, condition, message, kind):
        """Returns a line that raises a Python exception. A location can have only one exception
        class, and another `raise` may use the location of the statement itself. The line therefore
        uses a location inside of the statement."""
        inner = node.elts[-1] if isinstance(node, (ast.Tuple, ast.List)) else getattr(node, "slice", node)
        place = self.emitter.source.place(inner if hasattr(inner, "lineno") else node)
        remember_raise(place, kind)
        return ["  ", condition, " { ", place, f"raise {module.quote(message)} }}"]

    def assignment(self, node, target, load):
        """Returns the lines that assign the elements that `load` computes to the array `target`.
        `load` may read elements of the target."""
        others = [name for name in self.names() if name != target]
        fill = self.symbol(texts.FILL if self.emitter.is_typed else texts.FILL_PLAIN)
        if not others and target not in self.names():
            return [["  ", f"{fill}({target}, {load})"]]
        fits = " and ".join(f"{self.symbol(texts.FITS)}({name}, {target}.shape)" for name in others) or "true"
        reach = f"{self.symbol(texts.REACH)}({target}, {self.names()[0]})"
        for name in self.names()[1:]:
            reach = f"{self.symbol(texts.LATER)}({reach}, {self.symbol(texts.REACH)}({target}, {name}))"
        is_array = " or ".join(f"is_array({name})" for name in self.names())
        assign = self.symbol(texts.ASSIGN if self.emitter.is_typed else texts.ASSIGN_PLAIN)
        return [
            self.failing(node, f"if not ({fits})", WRONG_SIZE, ValueError),
            [f"  if {is_array} {{"],
            self.failing(node, f"if not {assign}({target}, {load}, {reach})", OVERLAP, ValueError),
            [f"  }} else {{ {fill}({target}, {load}) }}"],
        ]


def is_expression(emitter, node):
    """Returns whether an expression may compute an array element by element."""
    if emitter.static_value(node) is not static.UNKNOWN:
        return False
    elements = Elements(emitter)
    return elements.operation(node) is not None and len(_leaves(elements, node)) <= _MOST_LEAVES


# `bind_back` takes at most 33 arguments. An expression with more leaves is treated as an expression
# of numbers.
_MOST_LEAVES = 30


def _leaves(elements, node):
    """Returns the set of an expression's leaves; a name counts once."""
    if elements.emitter.static_value(node) is not static.UNKNOWN:
        return set()
    operation = elements.operation(node)
    if operation is None:
        return {ast.dump(node) if isinstance(node, ast.Name) else node}
    return set().union(*(_leaves(elements, operand) for operand in operation.operands))


def consume(emitter, node, function):
    """Returns a call of a library func, such as a sum, whose operand is an expression of arrays.
    The func receives a load function and the expression shape, so the elements are computed on
    demand."""
    elements = Elements(emitter)
    symbol = elements.function(node)
    consumer = elements.symbol(function)
    shape, may_differ = elements.shape()
    place = emitter.source.place(node)
    lines = [elements.head(node, elements.names()), ["  ", f"let s = {shape}"]]
    if may_differ:
        lines.append(elements.failing(node, f"if not {elements.symbol(texts.IS_SHAPE)}(s)", _MISMATCH, ValueError))
    lines += [["  ", place, f"return {consumer}({elements.loaded(symbol)}, s)"], ["}"]]
    name = elements.finish(f"{function.__name__}_{node.lineno}", lines)
    return [place, f"{name}(", *elements.join(elements.leaves), ")"]


def assign_elements(emitter, node, array, value):
    """Returns (assignment, number). assignment is the text of a call that assigns the elements of
    an expression to an array. number is the expression's text for the case that it is a number, or
    None if the plain expression can be used."""
    elements = Elements(emitter)
    symbol = elements.function(value)
    load = elements.loaded(symbol)
    lines = [elements.head(node, ["r", *elements.names()]), *elements.assignment(node, "r", load), ["}"]]
    name = elements.finish(f"assign_{node.lineno}", lines)
    number = [f"{symbol}(", *elements.join([["()"], *elements.leaves]), ")"] if elements.is_of_arrays else None
    return [emitter.source.place(node), f"{name}(", *elements.join([array, *elements.leaves]), ")"], number


def assign_value(emitter, node, array, value):
    """Returns the text of a call that assigns an array, a tuple or a number to an array."""
    elements = Elements(emitter)
    elements.leaf(None, value)
    load = f"bind_back({elements.symbol(texts.LOAD)}, l0)"
    lines = [
        elements.head(node, ["r", "l0"]),
        ["  if is_tuple(l0) {"],
        elements.failing(node, f"if not {elements.symbol(texts.TUPLE_FITS)}(r, l0)", WRONG_SIZE, ValueError),
        ["  ", f"{elements.symbol(texts.ASSIGN_TUPLE)}(r, l0)"],
        ["  } else {"],
        *elements.assignment(node, "r", load),
        ["  }"],
        ["}"],
    ]
    name = elements.finish(f"assign_{node.lineno}", lines)
    return [emitter.source.place(node), f"{name}(", *elements.join([array, value]), ")"]


def augment(emitter, node, value, is_place):
    """Returns the text of a call that does a compound assignment in place if the target is an
    array. The target is the first leaf of the expression `value`. is_place: the target is known to
    be an array; otherwise the func returns the array or the new number."""
    elements = Elements(emitter)
    symbol = elements.function(value)
    inside = elements.assignment(node, "l0", elements.loaded(symbol))
    if not is_place:
        inside = [["  if is_array(l0) {"], *inside, ["  return l0 }"], ["  return ", f"{symbol}({', '.join(['()', *elements.names()])})"]]
    lines = [elements.head(node, elements.names()), *inside, ["}"]]
    name = elements.finish(f"augment_{node.lineno}", lines)
    return [emitter.source.place(node), f"{name}(", *elements.join(elements.leaves), ")"]


def view(emitter, node, array, kind):
    """Returns the text of a view of an array whose bytes are taken as elements of another type."""
    elements = Elements(emitter)
    fits = f"{elements.symbol(texts.VIEW_FITS)}(a, i64(sizeof({kind})))"
    lines = [
        elements.head(node, ["a"]),
        elements.failing(node, f"if not {fits}", "view() of a non-contiguous array cannot change the element size", ValueError),
        [f"  return {elements.symbol(texts.view_as(kind))}(a)"],
        ["}"],
    ]
    return [emitter.source.place(node), f"{elements.finish(f'view_{node.lineno}', lines)}(", *emitter.expression(array), ")"]
