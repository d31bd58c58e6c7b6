"""Assignments to variables, elements, fields and slices, and the declarations of arrays."""

import ast

from .. import dtypes
from .._errors import SourceValueError
from . import array_expressions, library, optional, ranges, static, temporaries, words


class Assignments:
    """The part of the emitter for assignments."""

    def do_Assign(self, statement, depth):
        if self.array_declaration(statement, depth):
            return
        if len(statement.targets) > 1:
            name = self.temporary()
            self.put(depth, f"let {name} = ", self.expression(statement.value))
            for target in statement.targets:
                if isinstance(target, (ast.Tuple, ast.List)) and self.is_typed:
                    self.unpack(statement, target, [name], depth)
                elif not self.store_array_item(target, [name], depth):
                    self.store(statement, [target], [name], depth)
            return
        target = statement.targets[0]
        if isinstance(target, ast.Name) and self.scope.stores[target.id] == 1:
            self.values[target.id] = statement.value
            shape = self.shape_of(statement.value)
            if shape is not None:
                self.shapes[target.id] = shape
        if isinstance(target, ast.Name) and target.id in self.static.optional:
            return optional.assign(self, statement, target, statement.value, depth)
        if isinstance(target, ast.Name) and target.id in self.ranges:
            return self.store(statement, [target], ranges.value(self, statement.value), depth)
        if not isinstance(target, (ast.Tuple, ast.List)):
            if getattr(statement, "is_compound", False) and self.may_be_array(statement.value.left.id):
                call = array_expressions.augment(self, statement, statement.value, False)
                if isinstance(statement.value.op, ast.Pow):  # powers of numbers have rules of their own
                    call = ["is_array(", *self.expression(statement.value.left), ") ? ", *call, " : ", *self.expression(statement.value)]
                return self.store(statement, [target], call, depth)
            if self.is_typed and self.store_composed(statement, target, depth) or self.store_array(statement, target, statement.value, depth):
                return
            value = self.sum_of(statement) or self.expression(statement.value)
            if isinstance(target, ast.Name):
                value = self.reference(statement.value, value)
            return self.store(statement, [target], value, depth)
        if not target.elts:
            raise self.error(target, "an assignment needs at least one variable on its left side")
        if optional.has_one(self, target, statement.value):
            return optional.assign_all(self, statement, target, depth)
        if ranges.is_range(self, statement.value):
            return self.store(statement, target.elts, ranges.items(self, statement.value, len(target.elts), depth), depth)
        if len(target.elts) == 1 or self.is_typed and any(map(self.may_be_part, target.elts)):
            return self.unpack(statement, target, self.unpacked_value(statement.value, depth), depth)
        value = self.expression(statement.value)
        if self.is_typed and isinstance(statement.value, (ast.Name, ast.Subscript)):
            value = self.unpacked(target, value)
        if isinstance(statement.value, ast.Tuple):  # a swap: all values are evaluated before the first store
            if len(statement.value.elts) != len(target.elts):
                raise self.error(statement, f"the assignment has {len(statement.value.elts)} values, but {len(target.elts)} variables")
            value = []
            for i, item in enumerate(statement.value.elts):
                value += ([", "] if i else []) + self.swapped(item, depth)
        self.store(statement, target.elts, value, depth)

    def swapped(self, item, depth):
        """Returns a value's text in `x, y = a[i], b[j]`. Records are references, as in NumPy:
        `a[0], a[1] = a[1], a[0]` stores the same record twice, because the first store changes the
        second value before it is read."""
        value = self.expression(item)
        referred = self.reference(item, value)
        if referred is value:
            return value
        name = self.temporary()
        self.put(depth, f"let {name} = ", referred)
        return [name]

    def unpacked_value(self, value, depth):
        """Returns the value of an assignment to several targets as a tuple."""
        if not isinstance(value, ast.Tuple) or not any(isinstance(item, (ast.Subscript, ast.Attribute)) for item in value.elts):
            return self.expression(value)
        items = []
        for item in value.elts:
            items += [*self.swapped(item, depth), ", "]
        return ["(", *items[: -1 if len(value.elts) > 1 else None], ")"]

    def store_composed(self, statement, target, depth):
        """Stores a string as an array's characters, and copies an array to a field that is an
        array. Returns whether this method has translated the statement."""
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            return False
        text = self.static_value(statement.value)
        if isinstance(text, (str, bytes)):
            import numpy

            codes = numpy.array([ord(c) for c in text] if isinstance(text, str) else list(text), numpy.uint32)
            codes = codes if len(codes) else numpy.zeros(1, numpy.uint32)
            self.call_text(library.STORE_TEXT, depth, target, self.known(codes, statement.value))
            return True
        is_field = isinstance(target, ast.Attribute) or isinstance(self.static_value(target.slice), str)
        if not is_field or not isinstance(statement.value, (ast.Name, ast.Subscript, ast.Attribute)):
            return False
        self.forbid_global(target)
        value = self.temporary()
        self.put(depth, [self.source.place(statement)], f"let {value} = ", self.expression(statement.value))
        self.put(depth, f"if is_array({value}) {{")
        self.call_text(library.STORE_ARRAY, depth + 1, target, [value])
        self.put(depth, "} else {")
        self.put(depth + 1, self.expression(target), f" = {value}")
        self.put(depth, "}")
        return True

    def call_text(self, function, depth, target, value):
        symbol = self.builder.function(function)
        self.used.add(symbol)
        self.put(depth, [self.source.place(target)], f"{symbol}(", self.expression(target), ", ", value, ")")

    def store(self, statement, targets, value, depth):
        """Assigns the value to the targets. Targets that this statement declares get a let or var."""
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Subscript, ast.Attribute)):
                raise self.error(target, "cannot assign to this expression: a target must be a name, an element `a[i]` or a field `a.x`")
            self.forbid_global(target)
        new = [t for t in targets if isinstance(t, ast.Name) and t.id in self.scope.declare.get(id(statement), ())]
        place = [self.source.place(targets[0])]
        if (
            new
            and len(new) == len(targets)
            and all(self.scope.stores[t.id] == 1 and t.id not in self.scope.types for t in new)
        ):
            names = ", ".join(self.local(t.id) for t in new)
            return self.put(depth, place, f"let {names} = ", value)
        if len(targets) == 1 and new and new[0].id in self.scope.types:
            kind = self.type_parts(self.scope.types[new[0].id][0])
            return self.put(depth, place, f"var {self.local(new[0].id)}: ", kind, " = ", value)
        for target in new:
            self.declare(depth, target, target.id)
        left = []
        for i, target in enumerate(targets):
            left += ([", "] if i else []) + self.expression(target)
        self.put(depth, left, " = ", value)

    def forbid_global(self, target):
        base = target
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        is_around = isinstance(base, ast.Name) and base.id not in self.scope.names and base.id not in self.parameters
        around = self.static_value(base) if is_around and base is not target else None
        if around is not None and self.is_captured(around):
            return
        if hasattr(type(around), "kernel_attribute"):
            return around.check_assignment(self, target)
        if is_around:
            raise self.error(
                target,
                f"`{base.id}` is a variable outside of the kernel, which is a constant in the kernel; pass it as an argument",
            )

    def do_AnnAssign(self, statement, depth):
        if not isinstance(statement.target, ast.Name):
            raise self.error(
                statement, "only a variable can have a type annotation, not an element or a field: x: kjit.f32 = 0"
            )
        name = statement.target.id
        if statement.value is not None:
            self.store(statement, [statement.target], self.expression(statement.value), depth)
        elif name in self.scope.declare.get(id(statement), ()):
            self.declare(depth, statement, name)

    def do_AugAssign(self, statement, depth):
        operator = words.BINARY.get(type(statement.op))
        if not operator:
            raise self.error(statement, "kernels do not support the matrix product of arrays; write the loops")
        self.forbid_global(statement.target)
        if not self.augment_array(statement, depth):
            self.augment_number(statement, self.expression(statement.target), depth)

    def augment_number(self, statement, target, depth):
        operator = words.BINARY[type(statement.op)]
        place = self.source.operator_place(statement.target, statement.value, operator + "=")
        if operator == "/" and self.is_typed and isinstance(statement.target, ast.Name):
            return self.put(depth, target, " = ", target, " ", [place], "/ ", self.expression(statement.value))
        if operator == "**" and self.is_typed and isinstance(statement.target, ast.Name):
            base = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
            power = ast.copy_location(ast.BinOp(base, statement.op, statement.value), statement)
            return self.put(depth, target, " = ", self.expression(power))
        value = self.summand(statement) or self.expression(statement.value)
        self.put(depth, target, " ", [place], f"{operator}= ", value)

    def array_declaration(self, statement, depth):
        """Writes `tile = kjit.shared(shape, dtype)`. Returns whether the statement is such a
        declaration."""
        call = statement.value
        if not isinstance(call, ast.Call):
            return False
        if self.builder.makes_arrays and self.numpy_array(statement, depth):
            return True
        word = self.static_value(call.func)
        if isinstance(word, words.ArrayForm):
            call, word = self.plain_array_call(call, word), words.ARRAYS[word.word]
        elif not isinstance(word, words.Word) or word not in words.ARRAYS.values():
            return False
        target = statement.targets[0]
        if (
            len(statement.targets) > 1
            or not isinstance(target, ast.Name)
            or self.scope.stores[target.id] > 1
            or target.id not in self.scope.declare.get(id(statement), ())
        ):
            raise self.error(
                statement,
                f"kjit.{word.name} creates an array that must be assigned once, to one name: tile = kjit.{word.name}(shape, dtype)",
            )
        align = next((k.value for k in call.keywords if k.arg == "align"), None)
        if len(call.args) != 2 or len(call.keywords) != (align is not None):
            raise self.error(call, f"kjit.{word.name} takes a shape, a type and an optional alignment: kjit.{word.name}(shape, dtype, align=bytes)")
        shape, dtype = call.args
        if self.is_typed and dtypes.name_of(self.numpy_dtype(self.static_value(dtype))) is None:
            self.check_element(dtype, target)
        parts = [self.source.place(target), f"{word.name} {self.local(target.id)}: ", *self.element(dtype), "["]
        extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        known = self.static_value(shape)
        if isinstance(known, tuple):
            extents = [ast.copy_location(ast.Constant(e), shape) for e in known]
        if not (len(extents) == 1 and self.static_value(extents[0]) == 0 and word.name == "shared"):
            self.ranks[target.id] = len(extents)
            for i, extent in enumerate(extents):
                parts += ([", "] if i else []) + self.expression(extent)
        parts.append("]")
        if align is not None:
            parts += [" @align(", *self.expression(align), ")"]
        self.put(depth, parts)
        return True

    def numpy_array(self, statement, depth):
        """Writes `tile = np.zeros(3)`, an array of the thread with constant size. Returns whether
        the statement creates an array."""
        made = temporaries.made_by(statement, self.static, self.error)
        if made is None:
            return False
        if not temporaries.is_constant(made, self.static):
            raise self.error(
                statement,
                f"the size of `{made.name}` is not a constant; a function called in a loop can only create arrays of constant "
                "size. Create the array outside, and pass it",
            )
        if self.scope.stores[made.name] > 1 or made.name not in self.scope.declare.get(id(statement), ()):
            raise self.error(statement, f"`{made.name}` is a shared or local array and can be assigned only once")
        dtype = self.numpy_dtype(float if made.dtype is None else self.static_value(made.dtype))
        if isinstance(dtype, (bool, int, float)):
            dtype = type(dtype)
        shape = self.static_value(made.shape)
        kind = {bool: "bool", int: "i64", float: "f64", complex: "c128"}.get(dtype) or self.type_text(dtype, statement)
        extents = ", ".join(map(str, shape if isinstance(shape, tuple) else (shape,)))
        name = self.local(made.name)
        self.put(depth, [self.source.place(statement)], f"local {name}: {kind}[{extents}]")
        if made.fill is not None:
            symbol = self.builder.function(temporaries.FILL)
            self.used.add(symbol)
            self.put(depth, f"{symbol}({name}, ", self.expression(made.fill), ")")
        return True

    def plain_array_call(self, call, form):
        """Returns the call kjit.shared(shape, dtype, align=bytes) that is equivalent to a call of a
        function with other parameter names."""
        bound = form.bind(call)
        if isinstance(bound, str):
            raise self.error(call, bound)
        align = bound["alignment"]
        is_given = align != "None" and self.static_value(align) is not None
        known = self.static_value(align) if is_given else None
        if type(known) is int and (known <= 0 or known & (known - 1)):
            raise self.error(align, f"Alignment must be a positive power of two, not {known}", SourceValueError)
        if is_given and known is not static.UNKNOWN and type(known) is not int:
            raise self.error(align, f"alignment must be a constant integer, not {known!r}")
        keywords = [ast.keyword(arg="align", value=align)] if is_given else []
        return ast.copy_location(ast.Call(call.func, [bound["shape"], bound["dtype"]], keywords), call)

    def check_element(self, node, target):
        """Raises an error with Numba's words for an invalid element type, before types are
        inferred."""
        value = self.static_value(node)
        is_known = self.builder.record(value) is not None if value is not static.UNKNOWN else isinstance(node, ast.Attribute)
        if not is_known and not isinstance(value, str):
            raise self.error(node, f"Cannot infer the type of variable '{target.id}': kjit has no type for its elements")

    def numpy_dtype(self, value):
        """Returns the NumPy dtype for a string such as "f4" or "int" under Numba's rules. Returns
        any other value unchanged."""
        if not self.is_typed or not isinstance(value, str):
            return value
        import numpy

        try:
            return numpy.dtype(value)
        except TypeError:
            return value

    def element(self, node):
        value = self.numpy_dtype(self.static_value(node))
        if value is not static.UNKNOWN:
            return [self.source.place(node), self.type_text(value, node)]
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return self.expression(node)
        raise self.error(node, "expected an element type such as kjit.f32, or an array's dtype")
