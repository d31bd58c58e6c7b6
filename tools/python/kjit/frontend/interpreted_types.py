"""Types of variables in functions that the interpreter runs.

If a variable is an int64 in one branch and a float64 in the other branch, Numba makes the variable a float64 after the branches. The same
holds for the rounds of a loop and for results. The interpreter would keep the integer, and `//` or the result would differ. This pass
inserts conversions at the points where Numba converts. It knows the types of literals and of expressions of literals. A variable with an
unknown type is converted only if it meets a float64."""

import ast

from . import static

INT, FLOAT, OTHER = "int", "float", "other"
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_INTEGERS = (int, len, ord)


def joined(value):
    """Converts integers and floats to float64. Returns other values unchanged."""
    import numpy

    is_number = isinstance(value, (int, float, numpy.integer, numpy.floating)) and not isinstance(value, bool)
    return float(value) if is_number else value


class Joins:
    """Inserts conversions into the body of a function, which changes in place. names: static.Names of the function. convert(node) returns
    the call that converts the value of a node."""

    def __init__(self, names, convert):
        self.names, self.convert = names, convert
        self.is_changing = False

    def apply(self, body, parameters):
        self._returns(body)
        self.is_changing = True
        self._block(body, dict.fromkeys(parameters, OTHER))

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
            both = {self.kind(node.body, kinds), self.kind(node.orelse, kinds)}
            return both.pop() if len(both) == 1 else OTHER
        if isinstance(node, ast.Call):
            thing = self.names.value(node.func)
            return FLOAT if thing is float else INT if thing is not static.UNKNOWN and thing in _INTEGERS else OTHER
        return OTHER

    @staticmethod
    def _binary(operator, left, right):
        if OTHER in (left, right):
            return OTHER
        if operator is ast.Div or FLOAT in (left, right):
            return FLOAT if operator in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow) else OTHER
        return OTHER if operator is ast.Pow else INT

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
            else:
                self._simple(statement, kinds)
            if kinds is None or isinstance(statement, _LEAVES):
                return None
        return kinds

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
        ends = [self._block(block, dict(kinds)) for block in (statement.body, statement.orelse)]
        if None in ends:
            return ends[0] or ends[1]
        result = {}
        for name in set(ends[0]) & set(ends[1]):
            found = [end[name] for end in ends]
            if FLOAT in found and found != [FLOAT, FLOAT] and self._is_stored(statement, name):
                if self.is_changing:
                    block = (statement.body, statement.orelse)[found.index(FLOAT) == 0]
                    block.append(self._conversion(name, statement))
                result[name] = FLOAT if INT in found else OTHER
            else:
                result[name] = found[0] if found[0] == found[1] else OTHER
        return result

    @staticmethod
    def _is_stored(statement, name):
        return name in _stores(statement)

    def _loop(self, statement, kinds, around):
        """Converts variables before a loop whose rounds make them a float64."""
        stored, was_changing, begin = _stores(statement), self.is_changing, dict(kinds)
        if isinstance(statement, ast.For):
            self._set_all(statement.target, OTHER, begin)
        self.is_changing = False
        changed = True
        while changed:
            end = self._block(statement.body, dict(begin)) or {}
            becoming = [n for n in stored if begin.get(n, FLOAT) != FLOAT and end.get(n) == FLOAT and n in kinds]
            changed = bool(becoming)
            begin.update(dict.fromkeys(becoming, FLOAT))
        self.is_changing = was_changing
        self._block(statement.body, dict(begin))
        before = around.index(statement)
        result = dict(kinds)
        for name in sorted(stored & set(kinds)):
            if begin.get(name) == FLOAT != kinds[name] and was_changing:
                around.insert(before, self._conversion(name, statement))
            stays = begin.get(name) == end.get(name) and not _leaves(statement)
            result[name] = begin[name] if stays else OTHER
        if statement.orelse:
            return self._block(statement.orelse, result)
        return result

    # ---- results ----

    def _returns(self, body):
        """Converts the values of all return statements if one of them is a float64."""
        found = [n for statement in body for n in _walk(statement) if isinstance(n, ast.Return) and n.value is not None]
        kinds = _Recorded()
        values = [node.value for node in found]
        if any(self.kind(value, kinds) == FLOAT for value in values):
            for node in found:
                if self.kind(node.value, kinds) != FLOAT:
                    node.value = ast.copy_location(self.convert(node.value), node.value)
        if not values or not all(isinstance(v, ast.Tuple) and len(v.elts) == len(values[0].elts) for v in values):
            return
        for i in range(len(values[0].elts)):
            column = [value.elts[i] for value in values]
            if any(self.kind(item, kinds) == FLOAT for item in column):
                for value in values:
                    if self.kind(value.elts[i], kinds) != FLOAT:
                        value.elts[i] = ast.copy_location(self.convert(value.elts[i]), value.elts[i])


class _Recorded(dict):
    """Kinds of variables whose types are all unknown."""

    def get(self, name, default=None):
        return OTHER


def _stores(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _leaves(loop):
    return any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(loop))


def _walk(statement):
    """Yields the nodes of a statement without the bodies of inner functions."""
    yield statement
    if not isinstance(statement, (ast.FunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(statement):
            yield from _walk(child)
