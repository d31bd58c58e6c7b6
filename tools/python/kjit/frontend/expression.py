"""Expressions of a function as text of the kernel IR: lists of texts and of places (file, line, column), which say where in
Python the text behind them comes from."""

import ast
import enum
import types

from .. import _missing, _records, dtypes
from .._errors import NotCompiledError
from . import module as modules
from . import closures, dates, enums, library, mathematics, optional, pyvalues, ranges, static, ufuncs, whole_arrays, words
from .array_values import PARTS, is_array_of_numpy
from .forms import Forms

_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
# Properties of arrays, which are no fields of records.
_OF_ARRAYS = ("shape", "strides", "size", "ndim", "T", "dtype")
_OF_PYTHON = ("abs", "min", "max", "len", "range", "sum", "round", "pow", "enumerate", "zip", "print")


def _near(name, names):
    """The end of a sentence on a name that there is not."""
    import difflib  # which only errors need

    found = difflib.get_close_matches(name, names, 1, 0.65)
    return f"; did you mean `{found[0]}`?" if found else ""


class Resolved:
    """A call of a function of Python. thing: the function, specialized for the known arguments. arguments: the values by name.
    spread: the name of *args, and items: the arguments for *args. ranged: the names of parameters that take ranges."""

    def __init__(self, thing, arguments, spread, items, ranged):
        self.thing, self.arguments, self.spread, self.items, self.ranged = thing, arguments, spread, items, ranged


class Expressions(Forms):
    """What Emitter, which has the function's names, knows of expressions."""

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
        raise self.error(node, "a value that may be None: give it a name first, and ask `is None`")

    def known(self, value, node):
        """The text of an object of Python that is known."""
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
            raise self.error(node, "a kernel calls no kernel: make the function a kjit.func")
        if modules.is_function(value):
            symbol = self.builder.function(value, where=(self.source, node))
            self.used.add(symbol)
            return [symbol]
        if type(value).__module__ == "numpy" and hasattr(value, "shape"):
            symbol = self.builder.array(value, node.id if isinstance(node, ast.Name) else "constant")
            if symbol:
                self.used.add(symbol)
                return [symbol]
        if isinstance(value, enum.Enum):
            return self.known(value.value, node)
        if self.is_captured(value):
            return self.captured(value, node)
        if isinstance(value, tuple):  # of arrays, functions
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
            "None" if value is None else "a text" if isinstance(value, str) else f"an object of {type(value).__name__}"
        )
        if self.is_typed and isinstance(node, ast.Name):
            what = f"Untyped global name '{node.id}': {what}"
        raise self.error(
            node,
            f"{what} is nothing that a kernel can use: numbers, tuples of numbers, NumPy arrays, functions and kjit's own words are",
        )

    def is_captured(self, value):
        """Whether it is an array of a device, which Numba's kernels reach where it is."""
        return self.is_typed and not isinstance(value, type) and hasattr(value, "__cuda_array_interface__")

    def captured(self, value, node):
        """An array of a device by its address, which is a part of the code."""
        import numpy

        described = value.__cuda_array_interface__
        dtype, shape, strides = numpy.dtype(described["typestr"]), described["shape"], described.get("strides")
        name = dtypes.name_of(dtype)
        expected = tuple(dtype.itemsize * int(numpy.prod(shape[i + 1 :])) for i in range(len(shape)))
        if name is None or strides is not None and tuple(strides) != expected or 0 in shape:
            raise self.error(node, "an array of a device that a kernel reaches without an argument has numbers, row by row without gaps")
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
                node, "strides count bytes in NumPy and elements in kjit; a kernel does without them: index the array"
            )
        return [*self.expression(node.value), ".", _records.field_name(node.attr)]

    def is_single(self, node):
        """Whether it is a vector of one number, which is a number in kernels."""
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
        if isinstance(name, str):  # a field of a record
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
        """An element of an array, or a field of one, that a name or a parameter gets: a record is a reference, as in NumPy."""
        if not isinstance(node, (ast.Subscript, ast.Attribute)) or self.static_value(node) is not static.UNKNOWN:
            return parts
        if isinstance(node, ast.Attribute) and node.attr in _OF_ARRAYS:
            return parts
        return [self.source.place(node), "refer(", *parts, ")"]

    def index(self, node):
        value = self.static_value(node)
        if value is None or value is ...:
            raise self.error(node, "an index of a kernel is an integer or a slice, no None and no ...")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return [self.source.place(node), "-", *self.expression(node.operand)]  # counts from the end
        return self.expression(node)

    def slice(self, node):
        parts = [] if node.lower is None else self.index(node.lower)
        parts += [":"] + ([] if node.upper is None else self.index(node.upper))
        return parts + ([] if node.step is None else [":", *self.expression(node.step)])

    def of_Tuple(self, node):
        if not node.elts:
            raise self.error(node, "a tuple without items")
        parts = [self.source.place(node), "("]
        for i, item in enumerate(node.elts):
            parts += ([", "] if i else []) + self.expression(item)
        return [*parts, ",)" if len(node.elts) == 1 else ")"]

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return [self.source.place(node), "(not ", *self.condition(node.operand), ")"]
        if self.is_typed and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return [self.source.place(node), *self.known(-node.operand.value, node)]  # of the type of its value: -2**63 is an int64
        return [self.source.place(node), f"({_UNARY[type(node.op)]}", *self.expression(node.operand), ")"]

    def of_BinOp(self, node):
        folded = static.fold_literals(node) if self.is_typed else static.UNKNOWN
        if folded is not static.UNKNOWN:
            return self.expression(ast.copy_location(ast.Constant(folded), node))
        operator = words.BINARY.get(type(node.op))
        if not operator and self.is_typed:
            symbol = self.builder.function(library.DOT)
            self.used.add(symbol)
            return [self.source.place(node), f"{symbol}(", *self.expression(node.left), ", ", *self.expression(node.right), ")"]
        if not operator:
            raise self.error(node, "a kernel has no matrix product of arrays: write the loops")
        place = self.source.operator_place(node.left, node.right, operator)
        return ["(", *self.expression(node.left), " ", place, operator, " ", *self.expression(node.right), ")"]

    # ---- calls ----

    def spread_out(self, node):
        """The call with *args as one argument after the other."""
        arguments = []
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                arguments.append(argument)
                continue
            inner = argument.value
            count = self.spreads.get(inner.id) if isinstance(inner, ast.Name) else None
            if isinstance(inner, ast.Tuple):
                arguments += inner.elts
            elif count is not None:
                for i in range(count):
                    item = ast.Subscript(inner, ast.copy_location(ast.Constant(i), inner), ast.Load())
                    arguments.append(ast.copy_location(item, inner))
            else:
                raise self.error(argument, "*args in a call: a tuple that is written there, or the *args of this function")
        return ast.copy_location(ast.Call(node.func, arguments, node.keywords), node)

    def call(self, node):
        """The text of a call. A result that may be None is a pair."""
        value = self.static_value(node)
        return [self.source.place(node), *self.known(value, node)] if value is not static.UNKNOWN else self.of_Call(node)

    def of_Call(self, node):
        return self.narrowly(self.call_whole, node)

    def call_whole(self, node):
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            if len(node.args) == 1 and not node.keywords and self.static_value(node.func) is complex and self.is_typed:
                symbol = self.builder.function(library.COMPLEX_OF)
                self.used.add(symbol)
                return [self.source.place(node), f"{symbol}(", *self.expression(node.args[0].value), ")"]
            node = self.spread_out(node)
        thing = self.static_value(node.func)
        if thing is static.UNKNOWN:
            return self.call_unknown(node)
        if _missing.text_of(thing):
            raise self.error(node, _missing.text_of(thing))
        own = self.call_of_python(node, thing)
        if own is not None:
            return own
        if self.named_class(node):
            return self.named_tuple(node, thing)
        if self.is_typed:
            whole = self.array_function(node, thing)
            if whole is not None:
                return whole
            filled = library.fill_of(thing, len(node.args))
            if filled:
                symbol = self.builder.function(filled[0])
                self.used.add(symbol)
                _, *rest = self.positional(node)
                return [self.source.place(node), f"{symbol}(", *self.known(filled[1], node.func), ", ", *rest]
            thing = library.instead(thing, len(node.args) + len(node.keywords))
        thing = getattr(thing, "as_function", thing)  # of vectorize
        if ufuncs.is_ufunc(thing):
            thing = self.ufunc(node, thing)
        pairwise = mathematics.folded(thing, len(node.args))
        if pairwise and not node.keywords:
            return self.folded(node, pairwise)
        thing = mathematics.of_call(thing, len(node.args)) or thing
        if isinstance(thing, words.ArrayForm):
            raise self.error(node, f"{thing.name} stands alone: tile = {thing.name}(shape, dtype)")
        if isinstance(thing, words.Form):
            self.builder.has_grid_group |= getattr(thing, "is_group", False)
            return thing.expand(self, node)
        if thing in words.ARRAYS.values() if isinstance(thing, words.Word) else False:
            raise self.error(node, f"kjit.{thing.name} stands alone: tile = kjit.{thing.name}(shape, dtype)")
        if thing is print or isinstance(thing, words.Word) and thing.name not in words.BUILTINS:
            raise self.error(node, "this stands in a statement of its own, not in an expression")
        made = dates.call(self, node, thing)
        if made is not None:
            return made
        name = words.builtin_name(thing)
        conversion = words.conversion(thing) if self.is_typed and len(node.args) == 1 and not node.keywords else None
        if conversion:
            text = self.static_value(node.args[0])
            if thing is float and isinstance(text, str):
                try:
                    return [self.source.place(node), *self.known(float(text), node)]
                except ValueError:
                    raise self.error(node.args[0], f"{text!r} is no number") from None
            inner = [self.source.place(node), conversion, "(", *self.expression(node.args[0]), ")"]
            return ["i64(", *inner, ")"] if thing is round else inner
        if name is not None:
            return self.call_builtin(node, name)
        if isinstance(thing, words.Text):
            symbol = self.builder.function(thing)
            self.used.add(symbol)
            return [self.source.place(node), symbol, *self.positional(node)]
        if whole_arrays.is_pythons(thing):
            text = f"`{ast.unparse(node.func)}`: compiled code does not have this function of NumPy"
            raise self.error(node, text, NotCompiledError)
        if modules.is_function(thing) and not getattr(thing, "is_kjit_kernel", False):
            return self.call_function(node, thing)
        return [self.source.place(node), *self.known(thing, node.func), *self.positional(node)]

    def call_of_python(self, node, thing):
        """The text of a call of one of Python's own functions that the kernel IR does not have. None for any other call."""
        if thing is isinstance:
            return pyvalues.isinstance_of(self, node)
        ranged = len(node.args) == 1 and not node.keywords and ranges.is_range(self, node.args[0])
        if thing is len and ranged:
            return [*ranges.value(self, node.args[0]), "[2]"]
        if thing is reversed and len(node.args) == 1:
            return [self.source.place(node), *self.expression(node.args[0]), "[::-1]"]
        key = id(thing), len(node.args)
        is_open = self.is_typed or thing in (min, max) and node.args and isinstance(node.args[0], ast.Tuple)
        text = None if node.keywords else pyvalues.TABLE.get(key) or (pyvalues.TYPED.get(key) if is_open else None)
        return None if text is None else [self.source.place(node), self.use(text), *self.positional(node)]

    def folded(self, node, thing):
        """A function of many arguments by one of two."""
        symbol = self.builder.function(thing)
        self.used.add(symbol)
        parts = self.expression(node.args[0])
        for argument in node.args[1:]:
            parts = [self.source.place(node), f"{symbol}(", *parts, ", ", *self.expression(argument), ")"]
        return parts

    def ufunc(self, node, thing):
        """The func of the kernel IR that a ufunc of NumPy is."""
        text = ufuncs.text_of(thing)
        if text is None:
            raise self.error(node, f"np.{thing.__name__}: kernels do not have this function of NumPy")
        if len(node.args) != thing.nin or node.keywords:
            count = f"{thing.nin} argument{'s' * (thing.nin > 1)}"
            raise self.error(node, f"np.{thing.__name__} takes {count} and no keywords in a kernel")
        return text

    def call_unknown(self, node):
        if isinstance(node.func, ast.Name):
            if node.func.id not in self.parameters and node.func.id not in self.scope.names:
                raise self.not_defined(node.func)
            if self.kind == "kernel" and node.func.id in self.parameters and node.func.id not in self.scope.stores:
                raise self.error(
                    node.func,
                    f"`{node.func.id}` is called, but its argument is no function that a kernel can call: a function of Python, a kjit.func, or one of the kernel language",
                )
            return [self.source.place(node), *self.expression(node.func), *self.positional(node)]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate" and not node.args + node.keywords:
            return [self.source.place(node), f"{self.use(pyvalues.CONJUGATE)}(", *self.expression(node.func.value), ")"]
        if isinstance(node.func, ast.Attribute) and self.is_typed and node.func.attr in words.METHODS and not node.args:
            before, has_value, after = words.METHODS[node.func.attr].partition("{value}")
            value = self.expression(node.func.value) if has_value else []
            return [self.source.place(node), before, *value, after]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and len(node.args) == 1:
            return dates.astype(self, node)
        whole = self.array_method(node) if isinstance(node.func, ast.Attribute) and self.is_typed else None
        if whole is not None:
            return whole
        if isinstance(node.func, ast.Attribute) and self.is_typed and node.func.attr in library.METHODS and not node.args + node.keywords:
            symbol = self.builder.function(library.METHODS[node.func.attr])
            self.used.add(symbol)
            return [self.source.place(node), f"{symbol}(", *self.expression(node.func.value), ")"]
        if isinstance(node.func, ast.Attribute) and isinstance(self.static_value(node.func.value), types.ModuleType):
            raise self.no_attribute(node.func, self.static_value(node.func.value))
        if isinstance(node.func, ast.Attribute) and node.func.attr != "dtype":
            raise self.error(node.func, f"a kernel's arrays and numbers have no methods (`{node.func.attr}`)")
        return [self.source.place(node), *self.expression(node.func), *self.positional(node)]

    def positional(self, node):
        if node.keywords:
            raise self.error(node.keywords[0].value, "this takes no keyword arguments")
        parts = ["("]
        for i, argument in enumerate(node.args):
            parts += ([", "] if i else []) + self.text_or_value(argument)
        return [*parts, ")"]

    def call_builtin(self, node, name):
        if name in ("min", "max") and len(node.args) > 2 and not node.keywords:
            called = name
            if self.is_typed:
                called = self.builder.function(library.EXTREMA[min if name == "min" else max])
                self.used.add(called)
            parts = self.expression(node.args[0])
            for argument in node.args[1:]:
                parts = [self.source.place(node), f"{called}(", *parts, ", ", *self.expression(argument), ")"]
            return parts
        if name == "rint" and len(node.args) > 1:
            raise self.error(node, "round(x, n) with digits: a kernel rounds to whole numbers only")
        return [self.source.place(node), name, *self.positional(node)]

    def resolve(self, node, thing):
        """What a call of a function of Python calls, as a Resolved."""
        import inspect  # where no function is called nobody waits for it

        if any(isinstance(argument, ast.Starred) for argument in node.args):
            node = self.spread_out(node)
        python = getattr(thing, "py_func", thing)
        captured = {k.arg.removeprefix(closures.CAPTURED): k.value for k in node.keywords if str(k.arg).startswith(closures.CAPTURED)}
        given = {k.arg or "**": k.value for k in node.keywords if not str(k.arg).startswith(closures.CAPTURED)}
        try:
            bound = inspect.signature(python).bind(*node.args, **given)
        except TypeError as problem:
            raise self.error(node, f"{python.__name__}(): {problem}") from None
        bound.apply_defaults()
        bound.arguments.update(captured)
        values, shapes, functions, ranged = {}, {}, [], []
        code = python.__code__
        spread = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
        items = bound.arguments.get(spread, ())
        for name, value in bound.arguments.items():
            if name == spread:
                continue
            values[name] = self.handed_over(value, python)
            if not isinstance(value, ast.AST):
                continue
            shape = self.shape_of(value)
            if shape is not None and shape.has_fields() and values[name] is static.UNKNOWN:
                shapes[name] = shape
            if closures.bound_of(value) or isinstance(value, ast.Name) and value.id in self.functions:
                functions.append(name)
            if ranges.is_range(self, value):
                ranged.append(name)
        known = {n: v for n, v in values.items() if v is not static.UNKNOWN}
        count = None if spread is None else len(items)
        made = self.builder.specialize(thing, known, shapes, count, tuple(functions), tuple(ranged))
        return Resolved(made, bound.arguments, spread, items, ranged)

    def call_function(self, node, thing):
        found = self.resolve(node, thing)
        symbol = self.builder.function(found.thing, where=(self.source, node))
        self.used.add(symbol)
        inside = getattr(found.thing, "known", {})
        parts, kinds = [], self.types_of_parameters(found.thing, found.arguments)
        for name, value in found.arguments.items():
            if name in inside or name == found.spread and not found.items:
                continue
            parts += [", "] if parts else []
            if name == found.spread:
                value = ast.copy_location(ast.Tuple(list(found.items), ast.Load()), node)
            if name in found.ranged:
                text = ranges.value(self, value)
            elif isinstance(value, ast.AST):
                text = self.reference(value, self.expression(value))
            else:
                text = self.known(value, node)
            parts += [f"{kinds[name]}(", *text, ")"] if kinds.get(name) else text
        return [self.source.place(node), f"{symbol}(", *parts, ")"]

    @staticmethod
    def types_of_parameters(thing, names):
        """The types to which numbers are converted that a function takes, by name: its signature says them."""
        texts = getattr(thing, "parameter_texts", None) or ()
        return dict(zip(names, texts))

    def handed_over(self, value, python):
        """What is known of an argument of a function of Python, or UNKNOWN; where numbers of Python have no types, functions only."""
        known = self.static_value(value) if isinstance(value, ast.AST) else value
        if isinstance(known, (bool, int, float, complex)) and self.builder.is_under_way(python):
            return static.UNKNOWN  # a function that calls itself with another number each time stays one function
        is_handed_over = self.is_typed or modules.is_function(known) or words.builtin_name(known) is not None
        return known if is_handed_over else static.UNKNOWN
