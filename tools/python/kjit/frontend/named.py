"""Named tuples that a function makes and returns, where numbers of Python have types: tuples of the kernel IR, of whose class the front
end keeps track."""

import ast

from .._shapes import Shape, named


class NamedTuples:
    """What Emitter, which has the function's names, knows of classes of named tuples."""

    def named_class(self, node):
        """The class of named tuples that a call makes one of, or None."""
        kind = self.static_value(node.func) if isinstance(node, ast.Call) and self.is_typed else None
        return kind if isinstance(kind, type) and named(kind)[1] else None

    def shape_of_call(self, node):
        """The shape of the named tuple that a call makes, or None."""
        kind = self.named_class(node)
        if kind is None:
            return None
        return Shape((self.shape_of(item) for item in self.named_items(node, kind)), *named(kind))

    def named_items(self, node, kind):
        """The expressions of a named tuple's items, in their order."""
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
        """The tuple that a call of a class of named tuples makes."""
        items = [ast.copy_location(item, node) if not hasattr(item, "lineno") else item for item in self.named_items(node, kind)]
        if not items:
            raise self.error(node, f"{kind.__name__} has no items")
        return self.of_Tuple(ast.copy_location(ast.Tuple(items, ast.Load()), node))

    def shape_of_result(self, node):
        """The shape of a tuple that is returned, if there are named tuples in it; else None."""
        if not isinstance(node, ast.Tuple):
            shape = self.shape_of(node)
            return shape if shape is not None and shape.has_fields() else None
        items = [self.shape_of_result(item) for item in node.elts]
        return Shape(items) if any(item is not None for item in items) else None
