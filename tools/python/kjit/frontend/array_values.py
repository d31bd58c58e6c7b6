"""Attributes, methods, indices and functions of arrays, for functions whose Python numbers have
Numba's types.

The methods here return "parts", the strings and locations that make up kernel IR text (see
expression.py)."""

import ast

from .. import dtypes
from . import array_expressions, library, static
from . import array_texts as texts

# Array attributes that a func computes, by name. Records may have fields with the same names.
_COMPUTED = {"strides": texts.STRIDES, "itemsize": texts.ITEM_BYTES, "nbytes": texts.BYTES}
PARTS = {"real": texts.REAL, "imag": texts.IMAG}
_REFUSED = {
    "flatten": "kernels cannot create arrays, as array.flatten() does: array.ravel() of an array without gaps is a view",
    "tolist": "kernels cannot create lists, as array.tolist() does",
    "sort": "array.sort(): a kernel does not sort arrays",
    "argsort": "kernels cannot create arrays, as array.argsort() does",
    "astype": "kernels cannot create arrays, as array.astype(dtype) does: convert each element where you use it",
    "dot": "array.dot(other): a kernel has no matrix product; write the loops",
    "fill": "array.fill(value): write array[:] = value",
}


def is_array_of_numpy(value):
    return type(value).__module__ == "numpy" and type(value).__name__ in ("ndarray", "recarray")


class ArrayValues:
    """The part of the emitter for values of arrays."""

    def call_library(self, text, *arguments):
        """Returns the parts of a call to a kernel IR func."""
        symbol = self.builder.function(text)
        self.used.add(symbol)
        parts = [f"{symbol}("]
        for i, argument in enumerate(arguments):
            parts += ([", "] if i else []) + argument
        return [*parts, ")"]

    def array_attribute(self, node):
        """Returns the parts for an attribute that arrays of the kernel IR lack, or None for other
        attributes."""
        if isinstance(node.ctx, ast.Store):
            return None
        place = self.source.place(node)
        if node.attr == "flat":
            raise self.error(node, "array.flat can only be iterated over or indexed: `for v in a.flat`, `a.flat[i]`")
        if node.attr not in _COMPUTED:
            return None
        if isinstance(node.value, ast.Attribute) and node.value.attr == "dtype":
            return [place, "i64(sizeof(dtype(", *self.expression(node.value.value), ")))"] if node.attr == "itemsize" else None
        value = self.expression(node.value)
        is_array = ["is_array(", *value, ") and not (is_struct(dtype(", *value, ")) and ", *value, ".ndim == 0)"]
        return [place, "((", *is_array, ") ? ", *self.call_library(_COMPUTED[node.attr], value), " : ", *value, f".{node.attr})"]

    # ---- methods and functions ----

    def array_method(self, node):
        """Returns the parts for a call of an array method, or None for other calls."""
        name, array = node.func.attr, node.func.value
        reduction = library.reduction_called(name)
        if reduction and not node.args + node.keywords and array_expressions.is_expression(self, array):
            return array_expressions.consume(self, array, reduction)
        place = self.source.place(node)
        if name == "view" and len(node.args) == 1 and not node.keywords:
            kind = dtypes.name_of(self.numpy_dtype(self.static_value(node.args[0])))
            if kind is None:
                raise self.error(node, "array.view(dtype) takes a type that is known when the kernel is compiled")
            return array_expressions.view(self, node, array, kind)
        if name == "ravel" and not node.args + node.keywords:
            return [place, *self.call_library(texts.RAVEL, self.expression(array))]
        if name == "reshape" and node.args and not node.keywords:
            return self.reshaped(node, array, node.args)
        if name == "transpose" and not node.keywords:
            return self.transposed(node, array, node.args)
        if name in _REFUSED:
            raise self.error(node.func, _REFUSED[name])
        return None

    def array_function(self, node, thing):
        """Returns the parts for a call of a NumPy function of arrays, or None for other calls."""
        if getattr(thing, "__module__", None) != "numpy" or not node.args or node.keywords:
            return None
        reduction = library.reduction_of(thing, len(node.args))
        if reduction and array_expressions.is_expression(self, node.args[0]):
            return array_expressions.consume(self, node.args[0], reduction)
        is_one = len(node.args) == 1
        if thing.__name__ == "ravel" and is_one:
            return [self.source.place(node), *self.call_library(texts.RAVEL, self.expression(node.args[0]))]
        if thing.__name__ == "reshape" and len(node.args) == 2:
            return self.reshaped(node, node.args[0], node.args[1:])
        if thing.__name__ == "transpose":
            return self.transposed(node, node.args[0], node.args[1:])
        if thing.__name__ in ("shape", "ndim", "size") and is_one:
            return [self.source.place(node), *self.expression(node.args[0]), f".{thing.__name__}"]
        if thing.__name__ in ("real", "imag") and is_one:
            return [self.source.place(node), *self.call_library(PARTS[thing.__name__], self.expression(node.args[0]))]
        return None

    def reshaped(self, node, array, extents):
        """Returns the parts for `array.reshape(2, -1)` or `array.reshape((2, -1))`."""
        parts, extents = self.expression(array), list(extents)
        shape = self.shape_of(extents[0]) if len(extents) == 1 else None
        if len(extents) == 1 and isinstance(extents[0], ast.Tuple):
            extents = [self.expression(e) for e in extents[0].elts]
        elif shape is not None:
            whole = self.expression(extents[0])
            extents = [[*whole, f"[{i}]"] for i in range(len(shape))]
        elif len(extents) == 1:
            return [self.source.place(node), *self.call_library(texts.RESHAPE, parts, self.expression(extents[0]))]
        else:
            extents = [self.expression(e) for e in extents]
        result = [self.source.place(node), "reshape(", *parts]
        for i, extent in enumerate(extents):
            others = [part for k, other in enumerate(extents) if k != i for part in (" * i64(", *other, ")")]
            result += [", ", *self.call_library(library.EXTENT, [*parts, ".size"], extent, ["1i64", *others])]
        return [*result, ")"]

    def transposed(self, node, array, axes):
        """Returns the parts for `array.transpose()`, `array.transpose(1, 0, 2)` or
        `array.transpose((1, 0, 2))`."""
        if len(axes) == 1 and isinstance(axes[0], ast.Tuple):
            axes = axes[0].elts
        order = [self.static_value(a) for a in axes]
        known = self.static_value(axes[0]) if len(axes) == 1 else None
        order = list(known) if isinstance(known, tuple) else order
        if not order or order == list(range(len(order)))[::-1]:
            return [self.source.place(node), "transpose(", *self.expression(array), ")"]
        order = [i + len(order) if type(i) is int and i < 0 else i for i in order]
        if sorted(map(repr, order)) != sorted(map(repr, range(len(order)))):
            raise self.error(node, "the axes of a transposed array must be integers that are known when the kernel is compiled, and each axis must occur once")
        return [self.source.place(node), *self.call_library(texts.permuted(tuple(order)), self.expression(array))]

    # ---- indices ----

    def is_flat(self, node):
        return isinstance(node, ast.Attribute) and node.attr == "flat" and self.static_value(node) is static.UNKNOWN

    def index_kinds(self, node):
        """Returns (the items of an index, whether ... is among them, whether None is among them)."""
        items = node.elts if isinstance(node, ast.Tuple) else [node]
        values = [self.static_value(i) for i in items if not isinstance(i, ast.Slice)]
        return items, any(v is ... for v in values), any(v is None for v in values)

    def array_index(self, node):
        """Returns the parts for an index that arrays of the kernel IR lack (a.flat[i], ..., None),
        or None for other indices."""
        place = self.source.place(node)
        if self.is_flat(node.value):
            array = self.expression(node.value.value)
            if isinstance(node.slice, (ast.Slice, ast.Tuple)):
                raise self.error(node, "an index of array.flat must be an integer in a kernel")
            position = self.call_library(texts.POSITION, [*array, ".shape"], self.expression(node.slice))
            return [place, *array, "[", *position, "]"]
        items, has_ellipsis, has_none = self.index_kinds(node.slice)
        if has_none:
            return self.widened(node, items)
        return [place, *self.around_ellipsis(node, items)[0]] if has_ellipsis else None

    def indexed(self, array, items, node):
        """Returns the syntax tree of array[items]."""
        if not items:
            return array
        index = items[0] if len(items) == 1 else ast.copy_location(ast.Tuple(items, ast.Load()), node)
        return ast.copy_location(ast.Subscript(array, index, ast.Load()), node)

    def around_ellipsis(self, node, items):
        """Returns (value, lvalue) for a[i, ..., j]: its value's text, and the lvalue's text for the
        case that the index selects one element. The dimensions after ... are the first dimensions
        of the reversed array."""
        at = [i for i, item in enumerate(items) if not isinstance(item, ast.Slice) and self.static_value(item) is ...]
        if len(at) > 1:
            raise self.error(node, "an index can contain only one ...")
        before = self.expression(self.indexed(node.value, items[: at[0]], node))
        behind = items[at[0] + 1 :][::-1]
        if not behind:
            return before, before
        parts = [*before, ".T["]
        for i, item in enumerate(behind):
            parts += ([", "] if i else []) + (self.slice(item) if isinstance(item, ast.Slice) else self.index(item))
        parts.append("]")
        return self.call_library(texts.REVERSED, parts), parts

    def widened(self, node, items):
        """Writes a[:, None], which inserts a dimension of extent 1."""
        kept = [i for i in items if isinstance(i, ast.Slice) or self.static_value(i) is not None]
        while kept and isinstance(kept[-1], ast.Slice) and ast.dump(kept[-1]) == ast.dump(ast.Slice()):
            kept.pop()
        if any(not isinstance(i, ast.Slice) and self.static_value(i) is ... for i in items):
            raise self.error(node, "None and ... cannot be combined in an index of a kernel: write the slices")
        parts, before = self.expression(self.indexed(node.value, kept, node)), 0
        for item in items:
            if isinstance(item, ast.Slice):
                before += 1
            elif self.static_value(item) is None:
                parts = self.call_library(texts.widened(before), parts)
                before += 1
        return [self.source.place(node), *parts]


