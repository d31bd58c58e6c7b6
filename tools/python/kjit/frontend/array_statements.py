"""Assignments to parts of arrays, unpacking, and loops over the elements of arrays, for functions
whose Python numbers have Numba's types.

`a[i] = v` stores an element or fills a row. The emitter writes both statements, and the compiler,
which knows the types, keeps one of them.
"""

import ast

from . import array_expressions, library, words
from . import array_texts as texts


class ArrayStatements:
    """The part of the emitter for statements on arrays."""

    # ---- assignments ----

    def store_array(self, statement, target, value, depth):
        """Writes an assignment to an element or to a part of an array. Returns False if the target
        is certainly an element."""
        place = self.array_place(target) if isinstance(target, ast.Subscript) else None
        if place is None:
            return False
        array, element, is_certain = place
        self.forbid_global(target)
        if isinstance(value, (ast.BoolOp, ast.IfExp)):  # a single statement computes the value for both cases
            name = self.temporary()
            self.put(depth, [self.source.place(value)], f"let {name} = ", self.expression(value))
            return self.store_array_item(target, [name], depth)
        number = None
        if array_expressions.is_expression(self, value):
            call, number = array_expressions.assign_elements(self, target, array, value)
        else:
            call = array_expressions.assign_value(self, target, array, self.expression(value))
        if is_certain:
            self.put(depth, call)
            return True
        self.put(depth, "if is_array(", element, ") {")
        self.put(depth + 1, call)
        self.put(depth, "} else {")
        self.put(depth + 1, element, " = ", number or self.expression(value))
        self.put(depth, "}")
        return True

    def fill_array(self, call, depth):
        """Writes a statement such as `np.add(a, b, r)` as `r[...] = np.add(a, b)`, with broadcasting.
        Returns False for other calls."""
        is_plain = self.is_typed and not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
        if not is_plain or not library.is_fill(self.static_value(call.func), len(call.args)):
            return False
        whole = ast.copy_location(ast.Subscript(call.args[-1], ast.Constant(...), ast.Store()), call)
        ast.fix_missing_locations(whole)
        return self.store_array(call, whole, ast.copy_location(ast.Call(call.func, call.args[:-1], []), call), depth)

    def store_array_item(self, target, value, depth):
        """Like store_array, for a value that is already text."""
        place = self.array_place(target) if isinstance(target, ast.Subscript) else None
        if place is None:
            return False
        array, element, is_certain = place
        self.forbid_global(target)
        self.put(depth, "if is_array(", element, ") {")
        self.put(depth + 1, array_expressions.assign_value(self, target, array, value))
        if not is_certain:
            self.put(depth, "} else {")
            self.put(depth + 1, element, " = ", value)
        self.put(depth, "}")
        return True

    def array_place(self, target):
        """Returns (array, lvalue, whether the target is certainly an array): the target's text if
        it is an array, and the lvalue's text if it is one element. Returns None if the index
        certainly selects an element."""
        if isinstance(self.static_value(target.slice), str):
            return None
        if self.is_flat(target.value):
            return None
        items, has_ellipsis, has_none = self.index_kinds(target.slice)
        has_slice = any(isinstance(i, ast.Slice) for i in items)
        if not self.is_typed and not has_slice:
            return None
        if has_none:
            raise self.error(target, "an index on the left side of an assignment cannot contain None")
        if has_ellipsis:
            array, element = self.around_ellipsis(target, items)
            return array, element, has_slice or len(items) == 1
        if not has_slice and self.rank_of(target.value) == len(items):
            return None
        parts = self.expression(target)
        return parts, parts, has_slice

    def may_be_part(self, target):
        """Returns whether a target in a tuple of targets may take more than a number: a nested
        tuple, or possibly a part of an array."""
        if isinstance(target, ast.Subscript):
            return self.array_place(target) is not None
        return not isinstance(target, (ast.Name, ast.Attribute))

    def rank_of(self, node):
        """Returns the number of dimensions of an array that the function creates, or None."""
        return self.ranks.get(node.id) if isinstance(node, ast.Name) and self.scope.stores.get(node.id) == 1 else None

    def augment_array(self, statement, depth):
        """Writes a compound assignment, which changes an array in place. Returns False if the
        target is certainly a number."""
        target = statement.target
        value = ast.copy_location(ast.BinOp(target, statement.op, statement.value), statement)
        value.is_in_place = True
        if isinstance(target, ast.Name):
            if not self.is_typed or not self.may_be_array(target.id):
                return False
            if isinstance(statement.op, ast.Pow):  # powers of numbers have rules of their own
                self.augment_if_array(statement, self.expression(target), array_expressions.augment(self, statement, value, True), depth)
            else:
                self.put(depth, self.expression(target), " = ", array_expressions.augment(self, statement, value, False))
            return True
        place = self.array_place(target) if isinstance(target, ast.Subscript) else None
        if place is None:
            return False
        _, element, is_certain = place
        call = array_expressions.augment(self, target, value, True)
        if is_certain:
            self.put(depth, call)
        else:
            self.augment_if_array(statement, element, call, depth)
        return True

    def augment_if_array(self, statement, target, call, depth):
        """Writes a compound assignment to an array or a number, which the compiler decides. call: the
        text of the call that changes an array."""
        self.put(depth, "if is_array(", target, ") {")
        self.put(depth + 1, call)
        self.put(depth, "} else {")
        self.augment_number(statement, target, depth + 1)
        self.put(depth, "}")

    def may_be_array(self, name):
        """Returns whether a variable may be an array: it is a parameter, or a value that may be an
        array is assigned to it."""
        if self.array_names is None:
            self.array_names = set(self.parameters)
            pairs = self.assigned_values()
            before = -1
            while len(self.array_names) > before:
                before = len(self.array_names)
                self.array_names |= {target for target, value in pairs if value is None or self.may_make_array(value)}
        return name in self.array_names

    def assigned_values(self):
        """Returns (name, expression) for each assignment to a single name. The expression is None
        for the variable of a loop over items."""
        pairs = []
        for node in (n for s in self.body for n in ast.walk(s)):
            if isinstance(node, ast.For) and not isinstance(node.iter, ast.Call):
                pairs += [(n.id, None) for n in ast.walk(node.target) if isinstance(n, ast.Name)]
            elif isinstance(node, ast.Assign):
                value = node.value.left if getattr(node, "is_compound", False) else node.value
                pairs += [(t.id, value) for t in node.targets if isinstance(t, ast.Name)]
        return pairs

    def may_make_array(self, value):
        if isinstance(value, ast.Name):
            return value.id in self.array_names
        is_part = isinstance(value, (ast.Subscript, ast.Attribute))
        return is_part or isinstance(value, ast.Call) and self.makes_array(value)

    def makes_array(self, call):
        thing = self.static_value(call.func)
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in ("reshape", "view", "ravel", "transpose")
        is_of_numpy = getattr(thing, "__module__", None) == "numpy" and thing.__name__ in ("reshape", "ravel", "transpose")
        return is_method or is_of_numpy or isinstance(thing, words.ArrayForm) or thing in words.ARRAYS.values()

    # ---- unpacking ----

    def unpack(self, statement, target, value, depth):
        """Assigns the items in a tuple or array, given as text, to the targets in a tuple, which
        may be nested."""
        for inner in target.elts:
            if isinstance(inner, ast.Starred):
                raise self.error(inner, "`*` in the targets of an assignment is not supported: name each variable")
        items = self.temporary()
        self.put(depth, [self.source.place(target)], f"let {items} = ", self.unpacked(target, value))
        for i, inner in enumerate(target.elts):
            part = [f"{items}[{i}]"]
            if isinstance(inner, (ast.Tuple, ast.List)):
                self.unpack(statement, inner, part, depth)
            elif not self.store_array_item(inner, part, depth):
                self.store(statement, [inner], part, depth)

    def unpacked(self, target, value):
        """Returns the text of a tuple with as many items as the target: the value itself, or the
        elements in an array."""
        count = len(target.elts)
        elements = array_expressions.Elements(self)
        unpacks, unpack = elements.symbol(texts.unpacks(count)), elements.symbol(texts.unpack(count))
        lines = [
            elements.head(target, ["v"]),
            elements.failing(target, f"if not {unpacks}(v)", f"the number of elements in an unpacked array is not {count}", ValueError),
            [f"  return {unpack}(v)"],
            ["}"],
        ]
        return [self.source.place(target), f"{elements.finish(f'unpack_{target.lineno}', lines)}(", *value, ")"]

    # ---- loops ----

    def loop_of_positions(self, statement, depth):
        """Writes a loop over np.ndindex, np.ndenumerate or array.flat, or a loop that unpacks the
        items in an array. Returns False for other loops."""
        iterated, target = statement.iter, statement.target
        thing = self.static_value(iterated.func) if isinstance(iterated, ast.Call) else None
        is_indices = array_expressions.is_of_numpy(thing, "ndindex") and bool(iterated.args)
        if is_indices and isinstance(iterated.args[0], ast.Tuple) and not iterated.args[0].elts:
            raise self.error(iterated.args[0], "an empty tuple is not supported here")
        is_pairs = array_expressions.is_of_numpy(thing, "ndenumerate") and len(iterated.args) == 1
        is_unpacked = not isinstance(iterated, ast.Call) and isinstance(target, (ast.Tuple, ast.List))
        if not (is_indices or is_pairs or is_unpacked or self.is_flat(iterated)):
            return False
        at = self.temporary()
        if is_indices:
            extents = [self.expression(a) for a in iterated.args]
            shape = extents[0] if len(extents) == 1 else ["(", *array_expressions.Elements.join(extents), ")"]
            item, over = self.call_library(texts.AS_TUPLE, [at]), ["range(", *self.call_library(texts.AS_TUPLE, shape), ")"]
        elif is_unpacked and not self.is_flat(iterated):
            item, over = [at], self.expression(iterated)
        else:
            array = self.temporary()
            self.put(depth, f"let {array} = ", self.expression(iterated.args[0] if is_pairs else iterated.value))
            item, over = [f"{array}[{at}]"], [f"range({array}.shape)"]
            if is_pairs:
                item = self.call_library(texts.AS_TUPLE, [at]), item
        self.put(depth, [self.source.place(statement)], f"for {at} in ", over, " {")
        self.take_item(statement, target, item, depth + 1)
        self.block(statement.body, depth + 1)
        self.put(depth, "}")
        return True


