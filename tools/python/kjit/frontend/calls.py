"""Translates calls to kernel IR text."""

import ast
import re
import sys
import types

from .. import _missing, _overloading, dtypes
from .._errors import NotCompiledError
from . import module as modules
from . import attributes, closures, dates, library, mathematics, named, overloaded, pyvalues, ranges, static, ufuncs, whole_arrays, words

_FP8 = "kjit.cuda.fp8"  # only a program that imports this module can use 8-bit floats

# Returns a tuple with `count` items. The func does not compile for another number of items, because
# `let` cannot assign them to the names.
_OF_COUNT = """
func tuple_of_{count}(items) {{
  let {names} = items
  return items
}}"""

# type(x)(v) for a number x. If x is an array, the declaration of `number` does not compile.
_OF_TYPE = words.Text("of_type", """
func of_type(x, v) @numba {
  if is_array(x) { let number: dtype(x) = x }
  return dtype(x)(v)
}""")


class Resolved:
    """A resolved call of a Python function.

    thing: the called function, specialized for the known arguments

    arguments: a dictionary from a parameter's name to the passed value

    spread: the name of the *args parameter

    items: the arguments that *args receives

    ranged: the names of the parameters that take ranges
    """

    def __init__(self, thing, arguments, spread, items, ranged):
        self.thing, self.arguments, self.spread, self.items, self.ranged = thing, arguments, spread, items, ranged


class Calls:
    """The part of the emitter that translates calls."""

    def spread_out(self, node):
        """Returns the call with the items of *args as separate arguments."""
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
            elif self.is_typed and isinstance(inner, ast.Name) and self.static_value(node.func) in (min, max):
                # One tuple of all arguments keeps their order, on which the result depends if one of them is NaN.
                whole = inner if len(node.args) == 1 else ast.copy_location(ast.Tuple(node.args, ast.Load()), argument)
                return ast.copy_location(ast.Call(node.func, [whole], node.keywords), node)
            else:
                arguments += self.items_for(node, argument)
        return ast.copy_location(ast.Call(node.func, arguments, node.keywords), node)

    def items_for(self, node, argument):
        """Returns the items in a tuple whose type is not known yet. The tuple must have an item for each parameter of the called
        function that has no other argument."""
        others = len(node.args) - 1 + len(node.keywords)
        thing = self.static_value(node.func)
        python = getattr(thing, "py_func", thing)
        code = getattr(python, "__code__", None)
        is_one = sum(isinstance(a, ast.Starred) for a in node.args) == 1 and isinstance(argument.value, ast.Name)
        is_fixed = code is not None and not code.co_flags & 0xC and not code.co_kwonlyargcount and not python.__defaults__
        if not (self.is_typed and is_one and is_fixed and named.is_called(thing, node) and code.co_argcount > others):
            raise self.error(
                argument,
                "*args in a call must be a tuple display, the *args of this function, or the name of a tuple for a function without defaults",
            )
        count = code.co_argcount - others
        whole = self.whole_tuple(argument, count)
        return [ast.copy_location(ast.Subscript(whole, ast.copy_location(ast.Constant(i), argument), ast.Load()), argument) for i in range(count)]

    def whole_tuple(self, argument, count):
        """Returns a call whose value is the tuple. The call does not compile if the tuple has another number of
        items than `count`."""
        checked = words.Text(f"tuple_of_{count}", _OF_COUNT.format(count=count, names=", ".join(f"v{i}" for i in range(count))))
        call = ast.Call(ast.Constant(checked), [argument.value], [])
        for inner in ast.walk(call):
            if not hasattr(inner, "lineno"):
                ast.copy_location(inner, argument)
        return call

    def call(self, node):
        """Returns the kernel IR text of a call. If the result may be None, the text gives a tuple
        (value, flag), and the flag is false for None."""
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
        if thing is getattr or thing is hasattr:
            return attributes.call(self, node, thing)
        if thing is static.UNKNOWN:
            return self.call_unknown(node)
        overloads = _overloading.function_of(thing)
        if overloads is not None:
            return overloaded.call(self, node, overloads)
        if _missing.text_of(thing):
            raise self.error(node, _missing.text_of(thing))
        if thing is pow and self.is_typed and len(node.args) == 2 and not node.keywords:
            return self.expression(ast.copy_location(ast.BinOp(node.args[0], ast.Pow(), node.args[1]), node))
        if self.builder.makes_arrays:
            thing = whole_arrays.random_of(thing, node) or thing
        own = self.call_of_python(node, thing)
        if own is not None:
            return own
        if self.named_class(node):
            return self.named_tuple(node, thing)
        if self.is_typed:
            whole = self.array_function(node, thing)
            if whole is not None:
                return whole
            if library.is_fill(thing, len(node.args)):
                text = f"np.{thing.__name__} with an array for the results must be a statement: its value is that array"
                raise self.error(node, text, NotCompiledError)
            thing = library.instead(thing, len(node.args) + len(node.keywords))
        thing = getattr(thing, "as_function", thing)  # unwraps a function made by vectorize
        if ufuncs.is_ufunc(thing):
            thing = self.ufunc(node, thing)
        pairwise = mathematics.folded(thing, len(node.args))
        if pairwise and not node.keywords:
            return self.folded(node, pairwise)
        thing = mathematics.of_call(thing, len(node.args)) or thing
        if isinstance(thing, words.ArrayForm):
            raise self.error(node, f"{thing.name} must be assigned to a variable: tile = {thing.name}(shape, dtype)")
        if isinstance(thing, words.Form):
            self.builder.has_grid_group |= getattr(thing, "is_group", False)
            return thing.expand(self, node)
        if thing in words.ARRAYS.values() if isinstance(thing, words.Word) else False:
            raise self.error(node, f"kjit.{thing.name} must be assigned to a variable: tile = kjit.{thing.name}(shape, dtype)")
        if thing is print or isinstance(thing, words.Word) and thing.name not in words.BUILTINS:
            raise self.error(node, f"{ast.unparse(node.func)}() must be a separate statement, not part of an expression")
        made = dates.call(self, node, thing) or self.of_float8(node, thing)
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
                    raise self.error(node.args[0], f"{text!r} is not a number") from None
            keeping = library.CONVERSIONS.get(thing)
            word = self.use(keeping) if keeping else conversion
            inner = [self.source.place(node), word, "(", *self.expression(node.args[0]), ")"]
            return ["i64(", *inner, ")"] if thing is round else inner
        if name is not None:
            return self.call_builtin(node, name)
        if isinstance(thing, words.Text):
            symbol = self.builder.function(thing)
            self.used.add(symbol)
            return [self.source.place(node), symbol, *self.positional(node)]
        if whole_arrays.is_pythons(thing) or whole_arrays.is_random(thing):
            what = "generator" if whole_arrays.is_random(thing) else "function of NumPy"
            text = f"`{ast.unparse(node.func)}`: compiled code does not have this {what}"
            raise self.error(node, text, NotCompiledError)
        if getattr(thing, "makes_derivative", False):
            text = f"kjit.{thing.__name__}() in a kernel takes the name of a function around the kernel, and literal numbers"
            raise self.error(node, text)
        if hasattr(thing, "write_callee"):  # a derivative
            callee = thing.write_callee(self.builder, len(node.args))
            self.used |= set(re.findall(r"[A-Za-z_]\w*", callee))
            return [self.source.place(node), callee, *self.positional(node)]
        if modules.is_function(thing) and not getattr(thing, "is_kjit_kernel", False):
            return self.call_function(node, thing)
        return [self.source.place(node), *self.known(thing, node.func), *self.positional(node)]

    def of_float8(self, node, thing):
        """Returns the text of a conversion to a number type in a program with 8-bit floats, or None for other calls."""
        fp8 = sys.modules.get(_FP8)
        if fp8 is None or not self.is_typed or len(node.args) != 1 or node.keywords or self.static_value(node.args[0]) is not static.UNKNOWN:
            return None
        keeping = library.CONVERSIONS.get(thing) if isinstance(thing, type) else None
        kind = fp8.PYTHONS.get(thing) if isinstance(thing, type) else None
        kind = kind or dtypes.name_of(thing)
        if kind not in dtypes.SCALARS or kind == "bool":
            return None
        word = fp8.converter(self, kind, self.use(keeping) if keeping else kind)
        return [self.source.place(node), f"{word}(", *self.expression(node.args[0]), ")"]

    def call_of_python(self, node, thing):
        """Returns the kernel IR text for a call of a built-in Python function that the kernel IR lacks, or None for other calls."""
        if thing is isinstance:
            return pyvalues.isinstance_of(self, node)
        ranged = len(node.args) == 1 and not node.keywords and ranges.is_range(self, node.args[0])
        if thing is len and ranged:
            return [*ranges.value(self, node.args[0]), "[2]"]
        if thing is reversed and len(node.args) == 1:
            return [self.source.place(node), *self.expression(node.args[0]), "[::-1]"]
        if thing is hash and len(node.args) == 1 and isinstance(self.static_value(node.args[0]), str):
            return [self.source.place(node), *self.known(hash(str(self.static_value(node.args[0]))), node)]
        key = id(thing), len(node.args)
        is_open = self.is_typed or thing in (min, max) and node.args and isinstance(node.args[0], ast.Tuple)
        text = None if node.keywords else pyvalues.TABLE.get(key) or (pyvalues.TYPED.get(key) if is_open else None)
        if text is None:
            return None
        symbol = self.use_at(text, node, ValueError) if thing in (min, max) else self.use(text)
        return [self.source.place(node), symbol, *self.positional(node)]

    def folded(self, node, thing):
        """Translates a call with many arguments to nested calls of the function with two arguments."""
        symbol = self.builder.function(thing)
        self.used.add(symbol)
        parts = self.expression(node.args[0])
        for argument in node.args[1:]:
            parts = [self.source.place(node), f"{symbol}(", *parts, ", ", *self.expression(argument), ")"]
        return parts

    def ufunc(self, node, thing):
        """Returns the kernel IR func that implements a NumPy ufunc."""
        text = ufuncs.text_of(thing)
        if text is None:
            raise self.error(node, f"np.{thing.__name__}: kernels do not support this NumPy function")
        if len(node.args) != thing.nin or node.keywords:
            count = f"{thing.nin} argument{'s' * (thing.nin > 1)}"
            raise self.error(node, f"np.{thing.__name__} takes {count} and no keyword arguments in a kernel")
        return text

    def call_unknown(self, node):
        called = node.func
        if isinstance(called, ast.Call) and self.is_typed and self.static_value(called.func) is type and len(called.args) == 1:
            return self.of_type(node, called.args[0])
        if isinstance(node.func, ast.Name):
            if node.func.id not in self.parameters and node.func.id not in self.scope.names:
                raise self.not_defined(node.func)
            if self.kind == "kernel" and node.func.id in self.parameters and node.func.id not in self.scope.stores:
                raise self.error(
                    node.func,
                    f"`{node.func.id}` is called, but its argument is not a function that a kernel can call: expected a Python function, a kjit.func or a function of the kernel language",
                )
            return [self.source.place(node), *self.expression(node.func), *self.positional(node)]
        overloads = _overloading.method_of(node.func.attr) if isinstance(node.func, ast.Attribute) else None
        if overloads is not None and not isinstance(self.static_value(node.func.value), types.ModuleType):
            return overloaded.call(self, node, overloads, node.func.value)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "type" and getattr(node.func.value, "attr", None) == "dtype":
            return [self.source.place(node), *self.expression(node.func.value), *self.positional(node)]  # x.dtype.type(v)
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
        if isinstance(node.func, ast.Attribute) and node.func.attr == "from_buffer" and self.is_cffi(node.func.value):
            return [self.source.place(node), self.use(library.FIRST_ELEMENT), *self.positional(node)]
        if isinstance(node.func, ast.Attribute) and isinstance(self.static_value(node.func.value), types.ModuleType):
            raise self.no_attribute(node.func, self.static_value(node.func.value))
        if isinstance(node.func, ast.Attribute) and node.func.attr != "dtype":
            raise self.error(node.func, f"a kernel's arrays and numbers have no methods (`{node.func.attr}`)")
        return [self.source.place(node), *self.expression(node.func), *self.positional(node)]

    def of_type(self, node, like):
        """Returns the text of type(x)(v), a conversion to the type of the number x, which is the node `like`."""
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, f"{ast.unparse(node.func)}() in a kernel takes one number, which it converts")
        return [self.source.place(node), self.use(_OF_TYPE), "(", *self.expression(like), ", ", *self.expression(node.args[0]), ")"]

    def is_cffi(self, node):
        """Returns whether the node is an object `cffi.FFI()`, whose from_buffer passes an array's
        address to C functions."""
        return type(self.static_value(node)).__module__ in ("cffi.api", "_cffi_backend")

    def positional(self, node):
        if node.keywords:
            raise self.error(node.keywords[0].value, f"{ast.unparse(node.func)}() takes no keyword arguments in a kernel")
        parts = ["("]
        for i, argument in enumerate(node.args):
            # text_or_value would return a string, which only print takes
            is_truth = isinstance(self.static_value(argument), bool)
            parts += ([", "] if i else []) + (self.expression(argument) if is_truth else self.text_or_value(argument))
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
            raise self.error(node, "round(x, n) is not supported: a kernel rounds to whole numbers only")
        return [self.source.place(node), name, *self.positional(node)]

    def resolve(self, node, thing):
        """Returns the Resolved for a call of a Python function."""
        import inspect  # imported here, so that programs without such calls do not load it

        if modules.is_algorithm(thing):
            home = "kjit.numpy" if str(thing.__module__).startswith("kjit.numpy") else "kjit"
            text = f"{home}.{thing.__name__}() works on whole arrays and is called outside of kernels; "
            raise self.error(node, text + "kjit.pullback differentiates it, and kjit.grad a function that calls it")
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            node = self.spread_out(node)
        python = getattr(thing, "py_func", thing)
        _missing.refuse_stub(python, node, self.source)
        captured = {k.arg.removeprefix(closures.CAPTURED): k.value for k in node.keywords if str(k.arg).startswith(closures.CAPTURED)}
        given = {k.arg or "**": k.value for k in node.keywords if not str(k.arg).startswith(closures.CAPTURED)}
        try:
            bound = inspect.signature(python).bind(*node.args, **given)
        except TypeError as problem:
            raise self.error(node, f"{python.__name__}(): {problem}") from None
        except ValueError:
            raise self.error(node, f"{python.__name__}() is not written in Python, and kernels cannot call it") from None
        bound.apply_defaults()
        bound.arguments.update(captured)
        values, shapes, functions, ranged = {}, {}, [], []
        code = python.__code__
        spread = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
        items = bound.arguments.get(spread, ())
        kinds = self.types_of_parameters(thing, bound.arguments)
        for name, value in bound.arguments.items():
            if name == spread:
                continue
            # if the signature has a type for this parameter, the argument is converted, so a constant's value is not used
            values[name] = static.UNKNOWN if kinds.get(name) else self.handed_over(value, python)
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
        """Returns, by name, the types from the function's signature to which arguments are converted."""
        texts = getattr(thing, "parameter_texts", None) or ()
        return dict(zip(names, texts))

    def handed_over(self, value, python):
        """Returns the known value of an argument for a Python function, or UNKNOWN. If Python numbers have no types, only functions are
        known."""
        known = self.static_value(value) if isinstance(value, ast.AST) else value
        if isinstance(known, (bool, int, float, complex)) and self.builder.is_under_way(python):
            # a recursive call with different numbers must call the same function, so the number is not a constant
            return static.UNKNOWN
        is_handed_over = self.is_typed or modules.is_function(known) or words.builtin_name(known) is not None
        return known if is_handed_over else static.UNKNOWN
