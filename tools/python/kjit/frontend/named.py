"""Named tuples and enum members that a function creates, stores and returns. In the kernel IR they
are tuples and numbers; the front end tracks their classes."""

import ast
import enum
import types

from .. import _overloading, _shapes
from .._shapes import Member, Shape, named
from . import folding, library, static


def values_with_parts(body, parameters):
    """Like folding.values, but also returns expressions where folding.values returns None for a
    name in `a, b = value` or for a loop variable. The expression is an item of the value."""
    found = folding.values(body, parameters)
    parts = {}
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            parts.setdefault(node.target.id, []).append(_item(node.iter, ast.Name("an index", ast.Load()), node))
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Tuple):
            for target in (t for t in node.targets if isinstance(t, (ast.Tuple, ast.List))):
                for i, name in enumerate(target.elts):
                    if isinstance(name, ast.Name):
                        parts.setdefault(name.id, []).append(_item(node.value, ast.Constant(i), node))
    for name, items in parts.items():
        if found.get(name, []).count(None) == len(items):
            found[name] = [value for value in found[name] if value is not None] + items
    return found


def _item(value, index, place):
    return ast.fix_missing_locations(ast.copy_location(ast.Subscript(value, index, ast.Load()), place))


class NamedTuples:
    """The part of the emitter for classes of named tuples and enumerations."""

    def find_shapes(self, assigned):
        """Finds the shapes of names that are not parameters. Returns whether it has found new ones."""
        is_new = False
        for name, values in assigned.items():
            shape = None if name in self.shapes or None in values else self.joined(values)
            if isinstance(shape, Shape) and shape.has_fields():
                self.shapes[name], is_new = shape, True
        return is_new

    def joined(self, nodes):
        """Returns the common shape of several expressions, ignoring None, or None if they differ."""
        shapes = {self.shape_of(node) for node in nodes if self.static_value(node) is not None}
        return shapes.pop() if len(shapes) == 1 else None

    def shape_of(self, node):
        """Returns the Shape of an expression that is a named tuple or contains one, the Member of
        an enumeration member, or None for other expressions."""
        value = self.static_value(node)
        if isinstance(value, enum.Enum) and _has_numbers(value.value):
            return Member(type(value))
        if value is not static.UNKNOWN:
            shape = _shapes.shape_of(value) if isinstance(value, (enum.Enum, tuple)) else None
            return shape if isinstance(shape, (Shape, Member)) and shape.has_fields() else None
        if isinstance(node, ast.Name):
            kind = self.enums.get(node.id)
            return Member(kind) if kind is not None else self.shapes.get(node.id)
        if isinstance(node, ast.Call):
            return self.shape_of_call(node)
        if isinstance(node, ast.IfExp):
            return self.joined((node.body, node.orelse))
        if isinstance(node, ast.Tuple):
            items = [self.shape_of(item) for item in node.elts]
            return Shape(items) if any(item is not None for item in items) else None
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        shape = self.shape_of(node.value)
        if not isinstance(shape, Shape):
            return None
        if isinstance(node, ast.Attribute):
            return shape[shape.fields.index(node.attr)] if node.attr in (shape.fields or ()) else None
        return self._shape_of_item(shape, node.slice)

    def _shape_of_item(self, shape, place):
        index = self.static_value(place)
        if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
            index = self.static_value(place.operand)
            index = -index if type(index) is int else index
        if type(index) is int:
            return shape[index] if -len(shape) <= index < len(shape) else None
        return shape[0] if not isinstance(place, ast.Slice) and len(set(shape)) == 1 else None

    def named_class(self, node):
        """Returns the class of named tuples that a call constructs, or None."""
        kind = self.static_value(node.func) if isinstance(node, ast.Call) and self.is_typed else None
        return kind if isinstance(kind, type) and named(kind)[1] else None

    def shape_of_call(self, node):
        """Returns the shape of a call's result, or None."""
        kind = self.named_class(node)
        if kind is not None:
            return Shape((self.shape_of(item) for item in self.named_items(node, kind)), *named(kind))
        thing = self.static_value(node.func)
        if not is_called(thing, node):
            return None
        return self.builder.result_shape(self.resolve(node, thing).thing)

    def named_items(self, node, kind):
        """Returns the expressions of a named tuple's items, in order."""
        fields, defaults = kind._fields, kind._field_defaults
        given = dict(zip(fields, node.args)) | {k.arg: k.value for k in node.keywords if k.arg in fields}
        is_wrong = len(node.args) > len(fields) or any(k.arg not in fields[len(node.args) :] for k in node.keywords)
        missing = [field for field in fields if field not in given and field not in defaults]
        if is_wrong or missing:
            raise self.error(node, f"{kind.__name__}() takes the items {', '.join(fields)}")
        return [
            given[field] if field in given else ast.copy_location(ast.Constant(defaults[field]), node) for field in fields
        ]

    def named_tuple(self, node, kind):
        """Writes a call of a named tuple's class as a tuple."""
        items = [ast.copy_location(item, node) if not hasattr(item, "lineno") else item for item in self.named_items(node, kind)]
        if not items:
            raise self.error(node, f"{kind.__name__} has no items")
        return self.of_Tuple(ast.copy_location(ast.Tuple(items, ast.Load()), node))

    def shape_of_result(self, node):
        """Returns the shape of a returned value if it contains named tuples or enum members, else
        None."""
        shape = self.shape_of(node)
        return shape if shape is not None and shape.has_fields() else None

    def shape_of_results(self):
        """Returns the common shape of all values that the function returns, or None."""
        returned = [n.value for s in self.body for n in folding.own_nodes(s) if isinstance(n, ast.Return) and n.value is not None]
        shape = self.joined([node for node in returned if not self._is_own_call(node)])
        return shape if shape is not None and shape.has_fields() else None

    def _is_own_call(self, node):
        """Returns whether an expression is a recursive call of the function."""
        thing = self.static_value(node.func) if isinstance(node, ast.Call) else None
        return getattr(thing, "py_func", thing) is self.python


def _has_numbers(value):
    """Returns whether the value of an enumeration member is a number or a tuple of numbers."""
    items = value if isinstance(value, tuple) else (value,)
    return bool(items) and all(isinstance(item, (bool, int, float, complex)) for item in items)


def is_called(thing, node):
    """Returns whether the call `node` of `thing` runs a Python function that kjit has to compile."""
    if _overloading.function_of(thing) is not None:
        return False
    python = getattr(thing, "py_func", thing)
    is_derivative = hasattr(thing, "write_callee") or getattr(thing, "makes_derivative", False)
    is_other = getattr(thing, "is_kjit_kernel", False) or is_derivative
    if not isinstance(python, types.FunctionType) or is_other:
        return False
    # not replaced by a func of the kernel IR
    return library.instead(thing, len(node.args) + len(node.keywords)) is thing
