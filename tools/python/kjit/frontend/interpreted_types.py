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
        self.leaves = []  # for each loop around a statement: its (break or continue, the block around it, kinds there)

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
            return _join([self.kind(node.body, kinds), self.kind(node.orelse, kinds)])
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
            elif isinstance(statement, ast.Try):
                kinds = self._try(statement, kinds)
            else:
                before = dict(kinds)
                self._simple(statement, kinds)
                if self.is_changing:
                    self._choices(statement, before)
            if isinstance(statement, (ast.Break, ast.Continue)) and self.leaves:
                self.leaves[-1].append((statement, body, dict(kinds)))
            if kinds is None or isinstance(statement, _LEAVES):
                return None
        return kinds

    def _choices(self, statement, kinds):
        """Converts the integers in the conditional expressions of a statement that are else a float64. A value of unknown type is
        converted if it is the value of the statement."""
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
        ends = [(statement.orelse or statement.body, end)]
        ends += [(handler.body, self._block(handler.body, dict(begin))) for handler in statement.handlers]
        result = self._merge(ends, stored, statement)
        return result if result is None else self._block(statement.finalbody, result)

    def _merge(self, ends, stored, like):
        """Returns the kinds after blocks of which one runs, and appends conversions to the blocks. ends: (block, the kinds at its end,
        or None). stored: the variables that the blocks assign."""
        ends = [(block, end) for block, end in ends if end is not None]
        if not ends:
            return None
        result = {}
        for name in sorted(set.intersection(*(set(end) for _, end in ends))):
            found = [end[name] for _, end in ends]
            result[name] = _join(found)
            if FLOAT in found and name in stored and self.is_changing:
                for block, end in ends:
                    if end[name] != FLOAT:
                        block.append(self._conversion(name, like))
        return result

    def _round(self, body, begin):
        """Returns the kinds after one round of a loop, and the statements that leave the round with the kinds there."""
        self.leaves.append([])
        return self._block(body, dict(begin)), self.leaves.pop()

    def _loop(self, statement, kinds, around):
        """Converts the variables of a loop. A variable that one round leaves as a float64 is one when each round begins; one that is a
        float64 at a break, or when the last round ends, is one after the loop."""
        stored, was_changing, begin = _stores(statement) & set(kinds), self.is_changing, dict(kinds)
        if isinstance(statement, ast.For):
            self._set_all(statement.target, OTHER, begin)
        self.is_changing = False
        becoming = stored
        while becoming:
            end, leaves = self._round(statement.body, begin)
            rounds = [end or {}, *(found for leaf, _, found in leaves if isinstance(leaf, ast.Continue))]
            becoming = [n for n in stored if begin[n] != FLOAT and any(found.get(n) == FLOAT for found in rounds)]
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
            if FLOAT in found and name in stored and was_changing and set(found) != {FLOAT}:
                around.insert(around.index(statement) + 1, self._conversion(name, statement))
        return result

    def _convert_rounds(self, statement, floats, kinds, end, leaves, around):
        """Converts variables that are a float64 at the begin of each round: before the loop, and where a round ends."""
        for name in floats:
            if kinds[name] != FLOAT:
                around.insert(around.index(statement), self._conversion(name, statement))
            if end is not None and end.get(name) != FLOAT:
                statement.body.append(self._conversion(name, statement))
            for leaf, block, found in leaves:
                if isinstance(leaf, ast.Continue) and found.get(name) != FLOAT:
                    block.insert(block.index(leaf), self._conversion(name, leaf))

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


def _join(kinds):
    """Returns the kind of a variable or value that has one of several kinds."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else FLOAT if found == {INT, FLOAT} else OTHER


def _walk(statement):
    """Yields the nodes of a statement without the bodies of inner functions."""
    yield statement
    if not isinstance(statement, (ast.FunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(statement):
            yield from _walk(child)
