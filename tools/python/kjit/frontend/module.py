"""Builds a kernel IR module from Python functions. A Builder collects the functions that a kernel calls, translates each of them once, and
joins the texts."""

import ast
import math
import re
import types

from .. import dtypes
from .._errors import SourceError, add_caller
from .._phrases import remember_name
from . import source as sources
from . import element_types, folding, static, ufuncs, words
from .emit import Emitter

# A limit against endless specialization.
MOST_FUNCTIONS = 1000


class Made:
    """A finished module.

    name: the kernel or func that the module was made for

    title: the module's name in libkjit's messages

    text: the module's kernel IR, with line directives

    plain: the same kernel IR without line directives

    sources: the Python sources that the line directives name

    arrays: a dictionary from a name to a constant array

    lines: for each line in `plain`, its location in the Python source as (file, line, column), or None
    """

    def __init__(self, name, title, text, plain, sources, arrays, lines, kept=(), has_grid_group=False, returns_optional=False, returned=()):
        self.returns_optional = returns_optional  # whether the func returns (value, whether a value exists)
        self.kept, self.has_grid_group = kept, has_grid_group  # kept: keeps the objects alive that the text refers to
        self.returned = returned  # see Builder.returned, for this function
        self.name, self.title, self.text, self.plain = name, title, text, plain
        self.sources, self.arrays, self.lines = sources, arrays, lines
        self.externals = {}  # name of an extern func -> words.External

    def quoted(self):
        """Returns (file, text) for each source. libkjit quotes these texts in messages."""
        return tuple((printable(source.file), "".join(source.lines)) for source in self.sources if source.lines)


def printable(text):
    """Returns text that can be encoded. File names can contain bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode()


_OF_ALGORITHMS = tuple(f"kjit._{name}" for name in ("algorithms", "folds", "orders", "products", "pairs"))


def is_algorithm(thing):
    """Returns whether the object is a kjit function that works on whole arrays."""
    is_function = isinstance(thing, types.FunctionType) or type(thing).__name__ == "Shortcut"
    is_public = is_function and not thing.__name__.startswith("_")
    return is_public and (thing.__module__ in _OF_ALGORITHMS or str(thing.__module__).startswith("kjit.numpy"))


class Builder:
    """Builds the kernel IR of a module from Python functions.

    symbols: a dictionary from a function's id to its name in the module

    pending: the functions that are not translated yet

    arrays: a dictionary from a name to a constant array

    rules: the attributes, as kernel IR, for every function without a kjit decorator

    is_typed: whether Python numbers in these functions are i64 and f64, as in Numba

    makes_arrays: whether np.zeros and similar functions create an array for each thread
    """

    def __init__(self, rules="", is_typed=False, makes_arrays=False):
        self.rules, self.is_typed, self.makes_arrays = rules, is_typed, makes_arrays
        self.names, self.symbols, self.pending, self.kept = set(words.RESERVED), {}, [], []
        self.lines, self.constants, self.arrays, self.sources, self.specialized = [], [], {}, {}, {}
        self.records, self.optional, self.nothing, self.nodes, self.results = set(), {}, {}, {}, {}
        self.result_shapes = {}  # id of a function -> its result's shape
        self.returned = {}  # name of a function -> the shapes of the tuples that it returns; None for other values
        self.generated_lines, self.made = [], {}  # made: the lines of funcs that emitters have made -> their names
        self.externals = {}  # name of an extern func -> words.External
        self.has_grid_group = False  # whether threads in the whole grid wait for each other
        # chains: for each function's name in the module, the Python functions through which it was reached,
        # including itself.
        self.chains, self.callers, self.things, self.writing = {}, {}, {}, None
        self.arrays_by = "kjit.local(shape, dtype)"  # for messages: the function that creates arrays
        self.inner = {}  # inner functions, by the outer function and location
        # Whether a comparison with a string parameter is treated as a run-time comparison, as in
        # Numba: the statements under both outcomes contribute to the types. texts: the names of
        # these parameters.
        self.joins_texts, self.texts = False, []

    def new_name(self, wanted):
        wanted = "".join(c if c.isascii() and c.isalnum() or c == "_" else "_" for c in wanted) or "f"
        if wanted[0].isdigit():
            wanted = "_" + wanted
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        return name

    def import_module(self, name):
        """Imports a module of the kernel IR library."""
        line = [f'import "{name}"']
        if line not in self.constants:
            self.constants.insert(0, line)

    def outside(self, name, dtype, owner):
        """Returns a variable's name in constant memory, which keeps its name in the module. The program that loads the code sets its
        value."""
        if id(owner) not in self.symbols:
            if name in self.names:
                raise SourceError(f"two objects of the module have the name `{name}`, which is the name of launch parameters")
            self.names.add(name)
            self.symbols[id(owner)] = name
            self.kept.append(owner)
            self.constants.append([f"extern const {name}: {self.record(dtype)}"])
        return self.symbols[id(owner)]

    def record(self, dtype):
        """Returns the struct name for a NumPy dtype with fields and declares the struct. Returns None for other dtypes."""
        from .. import _records

        name = _records.name_of(dtype)
        self.declare(name)
        return name

    def declare(self, record):
        if record is None or record in self.records:
            return
        from .. import _records

        self.records.add(record)
        for inner in _records.inner(record):
            self.declare(inner)
        self.constants.append([_records.declaration(record)])

    def function(self, thing, kind="func", where=None, shapes=None):
        """Returns a function's name in the module; the function is translated later. where: the source and the node that use it;
        shapes: the shapes of kernel parameters that take tuples."""
        thing = (element_types.text_of(thing) if self.is_typed else ufuncs.text_of(thing)) or thing
        if hasattr(thing, "write_callee"):  # a derivative
            return thing.write_callee(self)
        if id(thing) not in self.symbols:
            wanted = _python_name(thing)
            name = self.new_name("lambda_" if wanted == "<lambda>" else wanted)
            self.symbols[id(thing)] = name
            self.things[name] = thing
            self.callers[name] = where and (*where, self.writing)
            remember_name(name, wanted)
            self.chains[name] = self.chains.get(self.writing, frozenset()) | {getattr(thing, "py_func", thing)}
            self.kept.append(thing)
            if not isinstance(thing, Specialized):  # a recursive function finds itself
                self.symbols.setdefault(id(getattr(thing, "py_func", thing)), name)
            if isinstance(thing, words.External):
                extern = self.new_name(thing.symbol)
                self.externals[extern] = thing
                self.constants.append([thing.write(self, extern).replace(f"func {thing.__name__}(", f"func {name}(")])
            elif isinstance(thing, words.Text):
                self.constants.append([self.text_of(thing, name)])
            else:
                self.pending.append((name, thing, kind, where, shapes))
        return self.symbols[id(thing)]

    def is_under_way(self, python):
        """Returns whether the function is being translated, or calls the function that is being
        translated."""
        return python in self.chains.get(self.writing, ())

    def text_of(self, thing, name):
        """Returns the declaration of a func that is written in kernel IR. It uses the names that the func and its callees have in this
        module."""
        text = thing.text.replace(f"func {thing.__name__}(", f"func {name}(")
        for needed in thing.needs:
            text = re.sub(rf"\b{needed.__name__}\b", self.function(needed), text)
        return text

    def generated(self, wanted, lines):
        """Returns the name of a func that an emitter has made for one place of a function. lines are lists of parts, where NAME stands for
        the name. Equal lines make only one func, because a function can be translated twice."""
        key = tuple(tuple(line) for line in lines)
        if key not in self.made:
            name = self.made[key] = self.new_name(wanted)
            first = [part.replace("func NAME(", f"func {name}(") if isinstance(part, str) else part for part in lines[0]]
            self.generated_lines += [first, *lines[1:]]
        return self.made[key]

    def specialize(self, thing, known, shapes=(), spread=None, functions=(), ranges=()):
        """Returns a function in which some parameters have known values: numbers, types, functions or strings. The function treats them as
        constants, like its global variables.

        shapes: the shapes of parameters that take named tuples
        spread: the number of arguments that *args takes
        functions: the parameters that take functions which read variables of the caller
        ranges: the parameters that take ranges
        """
        python = getattr(thing, "py_func", thing)
        known = {n: v for n, v in known.items() if not hasattr(v, "shape") or v.shape == ()}
        shapes = dict(shapes)
        if not (known or shapes or functions or ranges or spread is not None) or not isinstance(python, types.FunctionType):
            return thing
        values = tuple((n, type(v), repr(v) if isinstance(v, PLAIN) else id(v)) for n, v in known.items())
        key = id(thing), spread, functions, ranges, tuple(shapes.items()), values
        if key not in self.specialized:
            self.specialized[key] = Specialized(thing, python, known, shapes, spread)
            self.specialized[key].functions, self.specialized[key].ranges = functions, ranges
        return self.specialized[key]

    def returns_optional(self, thing):
        """Returns whether a function returns None on some paths and a value on others."""
        python = getattr(thing, "py_func", thing)
        if not isinstance(python, types.FunctionType):
            return False
        key = id(thing)
        if key not in self.optional:
            self.optional[key], self.result_shapes[key] = False, None  # the value for a recursive call
            self.kept.append(thing)
            try:
                source, node = self.found(thing, python)
            except SourceError:  # the call itself reports this error
                return False
            if any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node)):
                emitter = self._looked_at(thing, python, source, node)
                self.optional[key], self.result_shapes[key] = emitter.returns_optional, emitter.shape_of_results()
        return self.optional[key]

    def returns_nothing(self, thing):
        """Returns whether a function always returns None: its return statements have no value, or call other functions that return
        None."""
        python = getattr(thing, "py_func", thing)
        if not isinstance(python, types.FunctionType):
            return False
        key = id(python)
        if key not in self.nothing:
            self.nothing[key] = True  # the value for a recursive call
            self.kept.append(python)
            try:
                _, node = self.found(thing, python)
            except SourceError:  # the call itself reports this error
                node = None
            self.nothing[key] = isinstance(node, ast.FunctionDef) and self._gives_nothing(python, node)
        return self.nothing[key]

    def _gives_nothing(self, python, node):
        """Returns whether all results are None. Recursive calls are ignored."""
        names = static.Names(python, {a.arg for a in node.args.args}, {}, True)
        values = [n.value for statement in node.body for n in folding.own_nodes(statement) if isinstance(n, ast.Return)]
        called = [names.value(value.func) if isinstance(value, ast.Call) else None for value in values]
        others = [value for value, thing in zip(values, called) if getattr(thing, "py_func", thing) is not python]
        return (bool(others) or not folding.ends(node.body)) and all(
            value is None
            or isinstance(value, ast.Constant) and value.value is None
            or isinstance(value, ast.Call) and self.returns_nothing(names.value(value.func))
            for value in others
        )

    def result_shape(self, thing):
        """Returns the shape of the function's result if all return statements have the same one, otherwise None."""
        self.returns_optional(thing)
        return self.result_shapes.get(id(thing))

    def _looked_at(self, thing, python, source, node):
        """Returns the emitter of a function that the current function calls."""
        caller, key = self.writing, ("looked at", id(thing))
        self.writing = key
        self.chains[key] = self.chains.get(caller, frozenset()) | {python}
        try:
            is_typed = getattr(thing, "is_typed", self.is_typed)
            return Emitter(self, python, source, node, set(), is_typed, thing, getattr(thing, "shapes", None))
        finally:
            self.writing = caller

    def found(self, thing, python):
        """Returns (source, node) of a function."""
        source, node = sources.of(python), getattr(thing, "node", None)
        if node is None:
            key = id(python.__code__), source.file
            if key not in self.nodes:
                self.nodes[key] = sources.find(python, source)
            node = self.nodes[key]
        return source, node

    def array(self, value, name):
        if id(value) not in self.symbols:
            element = dtypes.name_of(value.dtype) or self.record(value.dtype)
            if element is None:
                return None
            symbol = self.new_name(name)
            self.symbols[id(value)] = symbol
            self.kept.append(value)
            self.arrays[symbol] = value
            self.constants.append([f"extern const {symbol}: {element}[{', '.join(map(str, value.shape))}]"])
        return self.symbols[id(value)]

    def write_all(self):
        written = 0
        while self.pending:
            written += 1
            name, thing, kind, where, shapes = self.pending.pop(0)
            python = getattr(thing, "py_func", thing)
            try:
                source, node = self.found(thing, python)
            except SourceError as error:
                if error.file is None and where:  # the error is in the call
                    error = where[0].error(where[1], error.message)
                raise error from None
            if written > MOST_FUNCTIONS:
                raise source.error(node, f"a kernel can call at most {MOST_FUNCTIONS} functions")
            self.writing = name
            try:
                self._write_function(name, thing, python, kind, source, node, shapes or getattr(thing, "shapes", None))
            except RecursionError:
                raise source.error(node, "an expression or statement is nested too deeply") from None

    def _write_function(self, name, *details):
        try:
            self._write(name, *details)
        except SourceError as error:
            own = self.callers.get(name)
            while own and own[2] is not None:
                source, node, caller = own
                add_caller(error, source, node, _python_name(self.things[name]))
                name, own = caller, self.callers.get(caller)
            raise

    def _write(self, name, thing, python, kind, source, node, shapes):
        attributes, is_typed = getattr(thing, "attributes", self.rules), getattr(thing, "is_typed", self.is_typed)
        if getattr(thing, "is_njit", False) and not self.makes_arrays:
            # the func converts floats to integers in the same way as its kernel
            attributes = attributes.replace(" @indefinite", "")
        # a function without a caller returns its value to Python, so it must return a copy
        if getattr(thing, "copies_records", False) and not self.callers.get(name):
            attributes += " @record_copies"
        for word, rule in getattr(thing, "own_rules", {}).items():
            attributes += f" @{word}({self.function(rule)})"
        avoid = set()
        while True:
            emitter = Emitter(self, python, source, node, avoid, is_typed, thing, shapes)
            emitter.result = getattr(thing, "result", None)
            lines = emitter.write(name, kind, attributes, getattr(thing, "pointers", ()))
            self.results[name] = emitter.returns_optional
            clash = emitter.used & set(emitter.renamed.values())
            if not clash:
                break
            avoid |= clash
        self.lines += lines
        self.returned[name] = emitter.returned
        self.sources[source.file] = source

    def finish(self, name):
        """Returns the translated module as a Made. Each location in a line becomes a line directive before the text that follows it."""
        texts, plains, lines = [], [], []
        known, file = None, None
        for parts in self.constants + self.generated_lines + self.lines:
            text, plain, place, first = [], [], None, None
            for part in parts:
                if isinstance(part, tuple):
                    place = part
                    continue
                if place and place != known and part.strip():
                    of = "" if place[0] == file else f", {quote(printable(place[0]))}"
                    text.append(f"@line({place[1]}, {place[2]}{of}) ")
                    known, file = place, place[0]
                first = first or place
                text.append(part)
                plain.append(part)
            texts.append("".join(text))
            plains.append("".join(plain))
            lines.append(first)
        made = Made(
            name,
            f"<kjit {name}>",
            "\n".join(texts) + "\n",
            "\n".join(plains) + "\n",
            list(self.sources.values()),
            self.arrays,
            lines,
            self.kept,
            self.has_grid_group,
            self.results.get(name, False),
            self.returned.get(name, ()),
        )
        made.externals = self.externals
        return made


PLAIN = (bool, int, float, complex, str, type(None))


def _python_name(thing):
    return getattr(getattr(thing, "node", None), "name", None) or getattr(thing, "py_func", thing).__name__


class Specialized:
    """A function with known values for some parameters. `known` has these values by parameter name,
    and `shapes` the shapes of parameters that are tuples."""

    functions: tuple = ()
    ranges: tuple = ()

    def __init__(self, thing, python, known, shapes, spread):
        self.spread = getattr(thing, "spread", None) if spread is None else spread
        self.py_func, self.known, self.shapes = python, {**getattr(thing, "known", {}), **known}, shapes
        for name in ("attributes", "own_rules", "is_typed", "result", "parameter_texts", "node", "captured", "local_types", "copies_records"):
            if hasattr(thing, name):
                setattr(self, name, getattr(thing, name))


def quote(text):
    """Returns a string literal of the kernel IR."""
    text = printable(text)
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", ""), ("\0", "")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def literal(value, is_typed=False):
    """Returns the kernel IR text for a known number or tuple, or None. is_typed: Python numbers have types, as in Numba."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        text = str(int(value)) + (("i64" if value < 2**63 else "u64") if is_typed else "")
        return f"({text})" if value < 0 else text
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "shape", None) == ():
        name, plain = dtypes.name_of(value.dtype), value.item()
        if name is None or not isinstance(plain, (bool, int, float, complex)):
            return None
        return (
            literal(plain)
            if name in ("bool", "c128")
            else f"{name}({literal(plain)})"
            if name != "c64"
            else f"c64({literal(plain.real)}, {literal(plain.imag)})"
        )
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            text = "nan" if math.isnan(value) else "inf" if value > 0 else "(-inf)"
            return f"f64({text})" if is_typed else text
        text = repr(abs(float(value))) + ("f64" if is_typed else "")
        return f"(-{text})" if math.copysign(1, value) < 0 else text
    if isinstance(value, complex):
        return f"c128({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, tuple):
        items = [literal(item, is_typed) for item in value]
        return None if None in items else "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    return None


def is_function(thing):
    """Returns whether a kernel can call the object: a Python function, the kjit.func of one, or a NumPy
    ufunc."""
    return (
        isinstance(thing, (types.FunctionType, words.Text))
        or isinstance(getattr(thing, "py_func", None), types.FunctionType)
        or ufuncs.text_of(thing) is not None
    )
