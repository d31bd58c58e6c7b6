"""Types of variables in functions that the interpreter runs.

If a variable is an int64 in one branch and a float64 in the other branch, Numba makes the variable a float64 after the
branches. The same holds for the iterations of a loop and for results. The interpreter would keep the integer, and `//`
or the result would differ. This pass inserts conversions at the points where Numba converts. It knows the types of
literals and arguments, and of expressions that combine them. A variable with an unknown type is converted only if it
meets a float64."""

import ast
import math
import sys

from .. import _kjit
from .._errors import Error
from . import static

# An int64, a float64, a float of unknown width, any other type. The kind of an array is a tuple with the kind of its elements.
INT, FLOAT, REAL, OTHER = "int", "float", "real", "other"
_KINDS_OF_DTYPES = {"int64": INT, "float64": FLOAT, "float32": REAL, "float16": REAL}
_FLOAT_FUNCTIONS = frozenset(
    """acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees dist erf erfc exp expm1 fabs fmod gamma hypot ldexp lgamma log log10
    log1p log2 pow radians sin sinh sqrt tan tanh""".split()
)
_FLOAT_UFUNCS = frozenset(
    """arccos arccosh arcsin arcsinh arctan arctanh cbrt cos cosh deg2rad degrees exp exp2 expm1 log log10 log1p log2 rad2deg radians sin sinh
    sqrt tan tanh""".split()
)
# NumPy's functions by their result's type for an array: the element type or a float.
_OF_ELEMENTS, _OF_FLOATS = frozenset("sum prod max min amax amin dot".split()), frozenset("mean std var".split())
_SAME_ARRAY = frozenset("copy ravel flatten reshape transpose".split())
_MADE = frozenset("zeros ones empty full".split())
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_INTEGERS = (int, len, ord)


def joined(value):
    """Converts integers and floats to float64. Returns other values unchanged, such as arrays."""
    import numpy

    is_number = isinstance(value, (int, float, numpy.integer, numpy.floating)) and not isinstance(value, bool)
    return float(value) if is_number else value


def kind_of_value(value):
    """Returns the kind of an argument."""
    if type(value) is int:
        return INT
    if type(value) is float:
        return FLOAT
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return OTHER
    if isinstance(value, numpy.ndarray):
        return (_KINDS_OF_DTYPES.get(value.dtype.name, OTHER),)
    return _KINDS_OF_DTYPES.get(value.dtype.name, OTHER) if isinstance(value, numpy.generic) else OTHER


class Joins:
    """Inserts conversions into a function's body, which changes in place. names: static.Names of the function. convert(node) returns the
    call that converts a node's value."""

    def __init__(self, names, convert):
        self.names, self.convert = names, convert
        self.is_changing = False
        self.returned = {}  # id of a return statement -> (the statement, the kinds of variables there)
        self.leaves = []  # for each loop around a statement: its (break or continue, the block around it, kinds there)

    def apply(self, body, parameters):
        """Inserts the conversions. parameters: the parameters' kinds by name."""
        self.is_changing = True
        self._block(body, dict(parameters))
        self._returns(list(self.returned.values()))

    # ---- kinds ----

    def kind(self, node, kinds):
        """Returns INT for an int64, FLOAT for a float64, and OTHER if the type is unknown or different."""
        if isinstance(node, ast.Constant):
            return {int: INT, float: FLOAT}.get(type(node.value), OTHER)
        if isinstance(node, ast.Name):
            value = kinds.get(node.id)
            return value or {int: INT, float: FLOAT}.get(type(self.names.value(node)), OTHER)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
            return self.kind(node.operand, kinds)
        if isinstance(node, ast.BinOp):
            return self._binary(type(node.op), self.kind(node.left, kinds), self.kind(node.right, kinds))
        if isinstance(node, ast.IfExp):
            return _join([self.kind(node.body, kinds), self.kind(node.orelse, kinds)])
        if isinstance(node, ast.Call):
            return self._call(node, kinds)
        if isinstance(node, ast.Subscript):
            base = self.kind(node.value, kinds)
            is_part = any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))
            return base if isinstance(base, tuple) and is_part else base[0] if isinstance(base, tuple) else OTHER
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self.kind(node.value, kinds)
        return OTHER

    def _call(self, node, kinds):
        thing = self.names.value(node.func)
        if thing is float:
            return REAL if [self.kind(argument, kinds) for argument in node.args] == [REAL] else FLOAT
        if thing is static.UNKNOWN:
            return self._reduced(node.func.attr, self.kind(node.func.value, kinds)) if isinstance(node.func, ast.Attribute) else OTHER
        if any(thing is known for known in _INTEGERS):
            return INT
        if getattr(thing, "is_njit", False):
            return self._result_of(thing, [self.kind(argument, kinds) for argument in node.args] + [OTHER] * len(node.keywords))
        name, module = getattr(thing, "__name__", None), getattr(thing, "__module__", None)
        if module == "math" and name in _FLOAT_FUNCTIONS and thing is getattr(math, name, None):
            return FLOAT
        if type(thing).__name__ == "ufunc" and name in _FLOAT_UFUNCS and len(node.args) == 1:
            return self._binary(ast.Div, self.kind(node.args[0], kinds), INT)
        if module != "numpy" or not node.args:
            return OTHER
        if name in _MADE:
            return self._made(name, node, kinds)
        return self._reduced(name, self.kind(node.args[0], kinds))

    @staticmethod
    def _result_of(function, arguments):
        """Returns the kind of the result of a function made by njit for arguments that are int64 or float64."""
        texts = {INT: "i64", FLOAT: "f64"}
        if not all(kind in texts for kind in arguments) or function.runs_in_python:
            return OTHER
        try:
            found = _kjit.get_result_type(*function._module(), ", ".join(texts[kind] for kind in arguments))
        except Error:
            return OTHER
        return {"i64": INT, "f64": FLOAT, "f32": REAL}.get(found, OTHER)

    def _made(self, name, node, kinds):
        """Returns the kind of an array that a function such as np.zeros makes."""
        places = 2 if name == "full" else 1
        dtype = next((k.value for k in node.keywords if k.arg == "dtype"), node.args[places] if len(node.args) > places else None)
        if dtype is None:
            return (self.kind(node.args[1], kinds) if name == "full" and len(node.args) > 1 else FLOAT,)
        found = self.names.value(dtype)
        return ({float: FLOAT, int: INT}.get(found) or _KINDS_OF_DTYPES.get(getattr(found, "__name__", None), OTHER),)

    @staticmethod
    def _reduced(name, kind):
        """Returns the kind of the result of an array's method or a function of an array. kind: the
        kind of the array."""
        if not isinstance(kind, tuple):
            return OTHER
        if name in _SAME_ARRAY:
            return kind
        return kind[0] if name in _OF_ELEMENTS else REAL if name in _OF_FLOATS else OTHER

    @staticmethod
    def _binary(operator, left, right):
        if isinstance(left, tuple) or isinstance(right, tuple):
            of_elements = [kind[0] if isinstance(kind, tuple) else kind for kind in (left, right)]
            return (Joins._binary(operator, *of_elements),)
        is_float = operator in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
        found = {left, right}
        if FLOAT in found or REAL in found and INT in found or operator is ast.Div and INT in found:
            return FLOAT if is_float else OTHER  # a number of unknown type, such as a parameter, also gives a float64
        if operator is ast.Div or found == {REAL}:
            return REAL if is_float else OTHER
        return OTHER if found != {INT} or operator is ast.Pow else INT

    # ---- statements ----

    def _conversion(self, name, like):
        value = self.convert(ast.Name(name, ast.Load()))
        made = ast.Assign([ast.Name(name, ast.Store())], value)
        made.is_made = True
        for node in ast.walk(made):
            ast.copy_location(node, like)
        return made

    def _block(self, body, kinds):
        """Converts variables in a block. kinds: kinds of variables before the block. Returns the kinds after the block, or None if the
        program never reaches its end."""
        for statement in list(body):
            if isinstance(statement, ast.If):
                kinds = self._if(statement, kinds)
            elif isinstance(statement, (ast.For, ast.While)):
                kinds = self._loop(statement, kinds, body)
            elif isinstance(statement, ast.Try):
                kinds = self._try(statement, kinds)
            else:
                before = dict(kinds)
                self._simple(statement, kinds)
                if self.is_changing:
                    self._choices(statement, before)
            if isinstance(statement, ast.Return) and statement.value is not None:
                self.returned[id(statement)] = statement, dict(kinds)
            if isinstance(statement, (ast.Break, ast.Continue)) and self.leaves:
                self.leaves[-1].append((statement, body, dict(kinds)))
            if kinds is None or isinstance(statement, _LEAVES):
                return None
        return kinds

    def _choices(self, statement, kinds):
        """If one alternative of a conditional expression in a statement is a float64, converts the other alternative if it is
        an integer. An alternative of unknown type is converted, too, if the conditional expression is the statement's value.
        """
        changes = []
        for choice in [n for n in _walk(statement) if isinstance(n, ast.IfExp)]:
            converted = (INT, OTHER) if choice is getattr(statement, "value", None) else (INT,)
            for word, other in (("body", "orelse"), ("orelse", "body")):
                if self.kind(getattr(choice, word), kinds) in converted and self.kind(getattr(choice, other), kinds) == FLOAT:
                    changes.append((choice, word, getattr(choice, word)))
        for choice, word, value in changes:
            is_number = isinstance(value, ast.Constant)
            setattr(choice, word, ast.copy_location(ast.Constant(joined(value.value)) if is_number else self.convert(value), value))

    def _simple(self, statement, kinds):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign):
            found = self.kind(value, kinds)
            items = value.elts if isinstance(value, ast.Tuple) else None
            item_kinds = [self.kind(item, kinds) for item in items] if items else None
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    kinds[target.id] = found
                elif isinstance(target, (ast.Tuple, ast.List)):
                    is_paired = item_kinds and len(target.elts) == len(item_kinds)
                    for inner, kind in zip(target.elts, item_kinds if is_paired else [OTHER] * len(target.elts)):
                        self._set_all(inner, kind, kinds)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            kinds[name] = self._binary(type(statement.op), kinds.get(name, OTHER), self.kind(value, kinds))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and value is not None:
            kinds[statement.target.id] = self.kind(value, kinds)
        else:  # compiled loops, try
            for name in _stores(statement):
                kinds[name] = OTHER

    def _set_all(self, target, kind, kinds):
        for name in _stores(target):
            kinds[name] = kind if isinstance(target, ast.Name) else OTHER

    def _if(self, statement, kinds):
        blocks = (statement.body, statement.orelse)
        return self._merge([(block, self._block(block, dict(kinds))) for block in blocks], _stores(statement), statement)

    def _try(self, statement, kinds):
        """An exception may leave the body anywhere, so nothing is known of its variables in the handlers."""
        stored = _stores(statement)
        end = self._block(statement.body, dict(kinds))
        if end is not None and statement.orelse:
            end = self._block(statement.orelse, end)
        begin = {name: OTHER if name in stored else kind for name, kind in kinds.items()}
        # the handler runs a loop that cannot be compiled; the body has then changed no variable
        if getattr(statement, "is_of_loop", False):
            begin = dict(kinds)
        ends = [(statement.orelse or statement.body, end)]
        ends += [(handler.body, self._block(handler.body, dict(begin))) for handler in statement.handlers]
        result = self._merge(ends, stored, statement)
        return result if result is None else self._block(statement.finalbody, result)

    def _merge(self, ends, stored, like):
        """Returns the kinds after several blocks, exactly one of which runs, and appends conversions to the blocks. ends: (block,
        the kinds at its end, or None). stored: the variables that the blocks assign."""
        ends = [(block, end) for block, end in ends if end is not None]
        if not ends:
            return None
        result = {}
        for name in sorted(set.intersection(*(set(end) for _, end in ends))):
            found = [end[name] for _, end in ends]
            result[name] = _join(found)
            if _is_float(found) and name in stored and self.is_changing:
                for block, end in ends:
                    if end[name] != FLOAT:
                        block.append(self._conversion(name, like))
        return result

    def _round(self, body, begin):
        """Returns the kinds after one round of a loop, and the statements that leave the round with the kinds there."""
        self.leaves.append([])
        return self._block(body, dict(begin)), self.leaves.pop()

    def _loop(self, statement, kinds, around):
        """Converts a loop's variables. If a variable is a float64 at the end of one round, it is a float64 at every round's start. If it
        is a float64 at a break, or at the end of the last round, it is a float64 after the loop."""
        stored, was_changing, begin = _stores(statement) & set(kinds), self.is_changing, dict(kinds)
        if isinstance(statement, ast.For):
            over = self.kind(statement.iter, kinds)
            is_range = isinstance(statement.iter, ast.Call) and self.names.value(statement.iter.func) is range
            self._set_all(statement.target, INT if is_range else over[0] if isinstance(over, tuple) else OTHER, begin)
        self.is_changing = False
        becoming = stored
        while becoming:
            end, leaves = self._round(statement.body, begin)
            rounds = [end or {}, *(found for leaf, _, found in leaves if isinstance(leaf, ast.Continue))]
            becoming = [n for n in stored if begin[n] != FLOAT and any(_is_float((begin[n], found.get(n))) for found in rounds)]
            begin.update(dict.fromkeys(becoming, FLOAT))
        self.is_changing = was_changing
        end, leaves = self._round(statement.body, begin)
        if was_changing:
            self._convert_rounds(statement, [n for n in sorted(stored) if begin[n] == FLOAT], kinds, end, leaves, around)
        after = self._block(statement.orelse, {name: begin[name] for name in kinds})
        ends = [after] * (after is not None) + [found for leaf, _, found in leaves if isinstance(leaf, ast.Break)]
        if not ends:
            return None
        result = {}
        for name in kinds:
            found = [end.get(name, OTHER) for end in ends]
            result[name] = _join(found)
            if _is_float(found) and name in stored and was_changing and set(found) != {FLOAT}:
                around.insert(around.index(statement) + 1, self._conversion(name, statement))
        return result

    def _convert_rounds(self, statement, floats, kinds, end, leaves, around):
        """Converts variables that are a float64 at each round's start. The conversions are before the loop and at each end of a
        round."""
        for name in floats:
            if kinds[name] != FLOAT:
                around.insert(around.index(statement), self._conversion(name, statement))
            if end is not None and end.get(name) != FLOAT:
                statement.body.append(self._conversion(name, statement))
            for leaf, block, found in leaves:
                if isinstance(leaf, ast.Continue) and found.get(name) != FLOAT:
                    block.insert(block.index(leaf), self._conversion(name, leaf))

    # ---- results ----

    def _returns(self, found):
        """Converts the values of all return statements if one of them is a float64. found: the statements with the kinds of variables
        there."""
        self._convert_results([(statement, "value", kinds) for statement, kinds in found])
        values = [statement.value for statement, _ in found]
        if not values or not all(isinstance(v, ast.Tuple) and len(v.elts) == len(values[0].elts) for v in values):
            return
        for i in range(len(values[0].elts)):
            self._convert_results([(statement.value.elts, i, kinds) for statement, kinds in found])

    def _convert_results(self, places):
        """Converts the values at these places if one of them is a float64. places: (object or list,
        attribute or index of the node in it, the kinds of variables there)"""
        nodes = [holder[key] if isinstance(holder, list) else getattr(holder, key) for holder, key, _ in places]
        found = [self.kind(node, kinds) for node, (_, _, kinds) in zip(nodes, places)]
        if not _is_float(found):
            return
        for node, kind, (holder, key, _) in zip(nodes, found, places):
            if kind == FLOAT:
                continue
            converted = ast.copy_location(self.convert(node), node)
            if isinstance(holder, list):
                holder[key] = converted
            else:
                setattr(holder, key, converted)


def _stores(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _is_float(kinds):
    """Returns whether a variable is a float64 if it may have a value of each of these kinds."""
    return FLOAT in kinds or INT in kinds and REAL in kinds


def _join(kinds):
    """Returns the common kind for a variable or value that can have several kinds."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    return FLOAT if _is_float(found) and not any(isinstance(kind, tuple) for kind in found) else OTHER


def _walk(statement):
    """Yields the nodes of a statement without the bodies of inner functions."""
    yield statement
    if not isinstance(statement, (ast.FunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(statement):
            yield from _walk(child)
