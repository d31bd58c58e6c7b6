"""Translates expressions to kernel IR text: lists of strings and of locations (file, line, column).
A location applies to the text that follows it."""

import ast
import enum
import types

from .. import _overloading, _records, dtypes
from . import module as modules
from . import dates, enums, library, mathematics, optional, overloaded, ranges, static, words
from .array_values import PARTS, is_array_of_numpy
from .forms import Forms

_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
# Array attributes, which are not fields of records.
_OF_ARRAYS = ("shape", "strides", "size", "ndim", "T", "dtype")
_OF_PYTHON = ("abs", "min", "max", "len", "range", "sum", "round", "pow", "enumerate", "zip", "print")


def _near(name, names):
    """Returns the end of a message about an unknown name, which suggests a similar name."""
    import difflib  # imported here, because only errors need it

    found = difflib.get_close_matches(name, names, 1, 0.65)
    return f"; did you mean `{found[0]}`?" if found else ""


class Expressions(Forms):
    """The part of the emitter for expressions."""

    def static_value(self, node):
        return self.static.value(node)

    def expression(self, node):
        value = self.static_value(node)
        if value is not static.UNKNOWN and not isinstance(node, ast.Constant):
            return [self.source.place(node), *self.known(value, node)]
        method = getattr(self, "of_" + type(node).__name__, None)
        if isinstance(node, (ast.Name, ast.Call, ast.IfExp)) and not isinstance(getattr(node, "ctx", None), ast.Store):
            if ranges.is_range(self, node):
                raise ranges.refuse(self, node)
            if optional.may_be(self, node):
                return self.optional_value(node)
        if not method:
            raise self.error(node, f"a kernel has no expression of this kind ({type(node).__name__})")
        return method(node)

    def optional_value(self, node):
        if not isinstance(node, ast.IfExp):
            return optional.value(self, node)
        raise self.error(node, "this value may be None: assign it to a variable first and test it with `is None`")

    def known(self, value, node):
        """Returns the text for a Python object that is known at compile time."""
        text = modules.literal(value, self.is_typed)
        if text is not None:
            return [text]
        if dates.is_scalar(value):
            return dates.constant(self, value)
        name = words.builtin_name(value)
        if name is not None:
            return [name]
        if (
            not isinstance(value, str)
            and not any(value is kind for kind in (int, float, complex))
            and dtypes.name_of(value)
        ):
            return [dtypes.name_of(value)]
        if getattr(value, "is_kjit_kernel", False):
            raise self.error(node, "a kernel cannot call a kernel; make the called function a kjit.func")
        if modules.is_function(value):
            symbol = self.builder.function(value, where=(self.source, node))
            self.used.add(symbol)
            return [symbol]
        if type(value).__module__ == "numpy" and hasattr(value, "shape") and not isinstance(value, type):
            symbol = self.builder.array(value, node.id if isinstance(node, ast.Name) else "constant")
            if symbol:
                self.used.add(symbol)
                return [symbol]
        if isinstance(value, enum.Enum):
            return self.known(value.value, node)
        if self.is_captured(value):
            return self.captured(value, node)
        if isinstance(value, tuple):  # a tuple of arrays or functions
            parts = ["("]
            for i, item in enumerate(value):
                parts += ([", "] if i else []) + self.known(item, node)
            return [*parts, ",)" if len(value) == 1 else ")"]
        reason = words.refusal(value, self.builder.arrays_by)
        if reason:
            raise self.error(node, reason)
        reason = mathematics.refusal(value)
        if reason:
            raise self.error(node, reason)
        what = (
            "None" if value is None else "a string" if isinstance(value, str) else f"an object of {type(value).__name__}"
        )
        if self.is_typed and isinstance(node, ast.Name):
            what = f"Untyped global name '{node.id}': {what}"
        raise self.error(
            node,
            f"{what} cannot be used in a kernel; kernels can use numbers, tuples of numbers, NumPy arrays, functions "
            "and kjit's own functions and types",
        )

    def is_captured(self, value):
        """Returns whether a value is a device array, which Numba's kernels access in place."""
        return self.is_typed and not isinstance(value, type) and hasattr(value, "__cuda_array_interface__")

    def captured(self, value, node):
        """Returns the text for a device array. Its address becomes a part of the code."""
        import numpy

        described = value.__cuda_array_interface__
        dtype, shape, strides = numpy.dtype(described["typestr"]), described["shape"], described.get("strides")
        name = dtypes.name_of(dtype)
        expected = tuple(dtype.itemsize * int(numpy.prod(shape[i + 1 :])) for i in range(len(shape)))
        if name is None or strides is not None and tuple(strides) != expected or 0 in shape:
            raise self.error(node, "a device array that a kernel uses as a global variable must hold numbers and be C-contiguous")
        self.builder.kept.append(value)
        extents = ", ".join(map(str, shape or (1,)))
        return [f"view({name}[{extents}], bitcast({name}*, {described['data'][0]}u64))"]

    def of_Constant(self, node):
        return [self.source.place(node), *self.known(node.value, node)]

    def of_Name(self, node):
        if node.id in self.scope.names or node.id in self.parameters or node.id in self.kept:
            parts = [self.source.place(node), self.local(node.id)]
            return self.widen(parts) if self.widens and node.id in self.sums.counters else parts
        raise self.not_defined(node)

    def not_defined(self, node):
        numba = f"NameError: name '{node.id}' is not defined: " if self.is_typed else ""
        own = [name for name in (*self.parameters, *self.scope.names) if name != node.id]
        return self.error(node, f"{numba}`{node.id}` is not defined{_near(node.id, [*own, *words.ALL, *_OF_PYTHON])}")

    def no_attribute(self, node, module):
        names = words.ALL if module.__name__ == "kjit" else dir(module)
        return self.error(node, f"the module {module.__name__} has no `{node.attr}`{_near(node.attr, names)}")

    def of_Attribute(self, node):
        base = self.static_value(node.value)
        if isinstance(base, words.Word):
            return [self.source.place(node), f"{base.name}.{node.attr}"]
        if isinstance(base, types.ModuleType):
            raise self.no_attribute(node, base)
        if hasattr(type(base), "kernel_attribute"):
            return base.kernel_attribute(self, node)
        if is_array_of_numpy(base):
            base = static.UNKNOWN
        if base is not static.UNKNOWN:
            if self.kind == "kernel" and isinstance(node.value, ast.Name) and node.value.id in self.given:
                given = "None" if base is None else "a function"
                raise self.error(node, f"parameter `{node.value.id}`: {given} was given, which has no `{node.attr}`")
            raise self.error(
                node,
                f"a kernel cannot use the attribute `{node.attr}` of {type(base).__name__}; give it a name outside of the kernel",
            )
        overloads = _overloading.attribute_of(node.attr)
        if overloads is not None and isinstance(node.ctx, ast.Load):
            return overloaded.call(self, node, overloads, node.value)
        kind = enums.class_of(self, node.value)
        if kind is not None:
            return enums.attribute(self, node, kind)
        if ranges.is_range(self, node.value):
            return ranges.attribute(self, node)
        if node.attr in PARTS and isinstance(node.ctx, ast.Load):
            return [self.source.place(node), *self.call_library(PARTS[node.attr], self.expression(node.value))]
        if self.is_typed and node.attr == "data" and isinstance(node.value, ast.Attribute) and node.value.attr == "ctypes":
            symbol = self.builder.function(library.ADDRESS)
            self.used.add(symbol)
            return [self.source.place(node), f"{symbol}(", *self.expression(node.value.value), ")"]
        if node.attr == "x" and self.is_single(node.value):
            return self.expression(node.value)
        shape = self.shape_of(node.value)
        if shape is not None and shape.fields and node.attr in shape.fields:
            place = self.source.place(node)
            return [*self.expression(node.value), place, f"[{shape.fields.index(node.attr)}]"]
        if node.attr == "dtype":
            return [self.source.place(node), "dtype(", *self.expression(node.value), ")"]
        computed = self.array_attribute(node) if self.is_typed else None
        if computed is not None:
            return computed
        if node.attr == "strides":
            raise self.error(
                node, "a kernel cannot use strides, which count bytes in NumPy but elements in kjit; index the array"
            )
        return [*self.expression(node.value), ".", _records.field_name(node.attr)]

    def is_single(self, node):
        """Returns whether an expression is a vector with one lane, which is a number in kernels."""
        if isinstance(node, ast.Name):
            node = self.values.get(node.id)
        called = self.static_value(node.func) if isinstance(node, ast.Call) else None
        return getattr(called, "num_elements", None) == 1

    def of_Subscript(self, node):
        return self.narrowly(self.subscript, node)

    def subscript(self, node):
        name = self.static_value(node.slice)
        if self.is_captured(self.static_value(node.value)) and isinstance(node.slice, ast.Tuple) and not node.slice.elts:
            return [self.source.place(node), *self.expression(node.value), "[0]"]
        if isinstance(name, str):  # a field in a record
            return [*self.expression(node.value), self.source.place(node), f".{_records.field_name(name)}"]
        if ranges.is_range(self, node.value):
            return ranges.item(self, node)
        parts = self.array_index(node) if self.is_typed else None
        if parts is not None:
            return parts
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [*self.expression(node.value), "["]
        for i, item in enumerate(items):
            parts += ([", "] if i else []) + (self.slice(item) if isinstance(item, ast.Slice) else self.index(item))
        return [self.source.place(node), *parts, "]"]

    def reference(self, node, parts):
        """Returns a value's text for a name or parameter. A record that is an element or field in
        an array is a reference, as in NumPy, also inside a tuple or a conditional expression.
        parts: the node's text."""
        if not self.has_reference(node):
            return parts
        if isinstance(node, ast.Tuple):
            return self.tuple_of(node, self.referred)
        if isinstance(node, ast.IfExp):
            return self.conditional(node, self.referred)
        return [self.source.place(node), "refer(", *parts, ")"]

    def referred(self, node):
        return self.reference(node, self.expression(node))

    def has_reference(self, node):
        """Returns whether a value may be or contain a record of an array."""
        if isinstance(node, ast.Tuple):
            return any(map(self.has_reference, node.elts))
        if isinstance(node, ast.IfExp):
            is_decided = isinstance(self.static_value(node.test), static.PLAIN)
            return not is_decided and (self.has_reference(node.body) or self.has_reference(node.orelse))
        if not isinstance(node, (ast.Subscript, ast.Attribute)) or self.static_value(node) is not static.UNKNOWN:
            return False
        return not isinstance(node, ast.Attribute) or node.attr not in _OF_ARRAYS

    def index(self, node):
        value = self.static_value(node)
        if value is None or value is ...:
            raise self.error(node, "an index in a kernel must be an integer or a slice; None and ... are not supported")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            # a negative literal is an index that counts from the end
            return [self.source.place(node), "-", *self.expression(node.operand)]
        return self.expression(node)

    def slice(self, node):
        parts = [] if node.lower is None else self.index(node.lower)
        parts += [":"] + ([] if node.upper is None else self.index(node.upper))
        return parts + ([] if node.step is None else [":", *self.expression(node.step)])

    def of_Tuple(self, node):
        if not node.elts:
            return [self.source.place(node), "()"]
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return self.expression(_joined(node))
        return self.tuple_of(node, self.expression)

    def tuple_of(self, node, text_of):
        parts = [self.source.place(node), "("]
        for i, item in enumerate(node.elts):
            parts += ([", "] if i else []) + text_of(item)
        return [*parts, ",)" if len(node.elts) == 1 else ")"]

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return [self.source.place(node), "(not ", *self.condition(node.operand), ")"]
        if self.is_typed and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            # the literal has the type of the negative number: -2**63 is an int64
            return [self.source.place(node), *self.known(-node.operand.value, node)]
        return [self.source.place(node), f"({_UNARY[type(node.op)]}", *self.expression(node.operand), ")"]

    def of_BinOp(self, node):
        folded = static.fold_literals(node) if self.is_typed else static.UNKNOWN
        if folded is not static.UNKNOWN:
            return self.expression(ast.copy_location(ast.Constant(folded), node))
        operator = words.BINARY.get(type(node.op))
        exponent = self.static_value(node.right) if operator == "**" and self.is_typed else None
        if exponent is static.UNKNOWN:
            exponent = static.fold_literals(node.right)  # such as -1
        if type(exponent) is int and -(2**63) <= exponent < 0:
            symbol = self.use_at(library.power_below_zero(exponent), node)
            return [self.source.operator_place(node.left, node.right, operator), f"{symbol}(", *self.expression(node.left), ")"]
        is_known = isinstance(exponent, (int, float, complex)) and not (type(exponent) is int and exponent < 0)
        if operator == "**" and self.is_typed and not is_known:
            place = self.source.operator_place(node.left, node.right, operator)
            symbol = self.use_at(library.POWER, node)
            return [place, f"{symbol}(", *self.expression(node.left), ", ", *self.expression(node.right), ")"]
        if not operator and self.is_typed:
            symbol = self.builder.function(library.DOT)
            self.used.add(symbol)
            return [self.source.place(node), f"{symbol}(", *self.expression(node.left), ", ", *self.expression(node.right), ")"]
        if not operator:
            raise self.error(node, "kernels do not support the matrix product of arrays; write the loops")
        place = self.source.operator_place(node.left, node.right, operator)
        return ["(", *self.expression(node.left), " ", place, operator, " ", *self.expression(node.right), ")"]


def _joined(node):
    """Returns a sum of tuples for a tuple display with starred items: `(1, *t)` is `(1,) + tuple(t)`."""
    parts = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            parts.append(ast.Call(ast.Constant(tuple), [item.value], []))
        elif parts and isinstance(parts[-1], ast.Tuple):
            parts[-1].elts.append(item)
        else:
            parts.append(ast.Tuple([item], ast.Load()))
    whole = parts[0]
    for part in parts[1:]:
        whole = ast.BinOp(whole, ast.Add(), part)
    for inner in ast.walk(whole):
        if not hasattr(inner, "lineno"):
            ast.copy_location(inner, node)
    return whole
