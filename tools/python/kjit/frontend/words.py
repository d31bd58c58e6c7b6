"""The meaning of Python names in a kernel: kjit's own functions and types, and functions of the standard library and of NumPy."""

import ast
import builtins
import math
import re

from .. import _names

BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
KEYWORDS = frozenset(
    """kernel func extern const struct import let var shared local if else while for in break continue return
assert raise print and or not true false range grid_range block_range type""".split()
)
RESERVED = KEYWORDS | frozenset(_names.TYPES) | frozenset(_names.BUILTINS)


def _of_no_thread(word):
    return None


# Returns the object that a word stands for in the running thread of the simulator, or None if none
# is running. A debugger evaluates `cuda.threadIdx.x` and `cuda.grid(1)` outside of the kernel's
# rewritten code. kjit.simulator replaces the function.
in_simulator = _of_no_thread


# Kernels compare `target` with these words. Programs may mistake them for functions that return a device.
_DEVICES = {"gpu": "cuda:0", "cpu": "cpu"}


class Word:
    """A function or value of the kernel language, such as `kjit.grid` or `kjit.syncthreads`. It can be used in kernels only."""

    def __init__(self, name, doc=None):
        self.name, self.__doc__ = name, doc or f"`{name}` of the kernel IR."

    def __call__(self, *args, **keywords):
        device = _DEVICES.get(self.name)
        instead = f'; kjit.device("{device}") returns a device' if device else ""
        raise TypeError(f"kjit.{self.name} can be used in a kernel only{instead}")

    def __getattr__(self, name):
        if name in ("x", "y", "z"):
            simulated = in_simulator(self)
            if simulated is not None:
                return getattr(simulated, name)
            raise TypeError(f"kjit.{self.name}.{name} can be used in a kernel only")
        raise AttributeError(name)

    def __repr__(self):
        simulated = in_simulator(self)
        return f"kjit.{self.name}" if simulated is None else repr(simulated)


class DerivativeWord(Word):
    """`kjit.grad` and related functions, which can also be called from Python with a function."""

    def __call__(self, function, *numbers, **options):
        from .. import _derivatives

        if options:
            option = next(iter(options))
            raise TypeError(f"kjit.{self.name} has no option {option}; it takes a function and parameter numbers, kjit.{self.name}(f, 0, 1)")

        return _derivatives.make(self.name, function, numbers)


class Text:
    """A func that is written in kernel IR, for modules whose functions call it. needs: the other funcs of this kind that it
    calls."""

    def __init__(self, name, text, needs=()):
        self.__name__, self.text, self.needs = name, text, needs


class External(Text):
    """A function of linked code. `symbol` is its name in that code. write(builder, extern) returns the text of a func
    that calls the linked function; `extern` is the extern func's name in this text. inputs(more) returns the code to
    link in the form that Module.bind_linked takes; more is the code that the kernel links."""

    def __init__(self, symbol):
        super().__init__(f"call_{symbol}", "")
        self.symbol = symbol

    def write(self, builder, extern):
        raise NotImplementedError

    def inputs(self, more):
        raise NotImplementedError

    def bind(self, module, extern, more):
        """Returns the module with the function bound to its extern func."""
        inputs = self.inputs(more)
        return module.bind_linked(extern, self.symbol, inputs) if inputs else module

    def check(self, more):
        """Raises an error if no linked code could define the function."""


class Form:
    """A function of a module such as kjit.cuda whose kernel IR text is built from its arguments. parameters: their names, optionally with
    `=` and a default's text; text: contains `{name}` for each argument's text. An argument named `index` is an index or a tuple of
    indices, whose text is written between an array's brackets. needs: funcs (Text) that the text calls, each as `{its name}`."""

    is_group = False  # a group of threads, whose methods are words, too
    is_truth = False  # whether its value is a bool

    def __init__(self, name, parameters, text, doc=None, needs=()):
        self.name, self.text, self.needs = name, text, needs
        self.parameters = dict(p.split("=", 1) if "=" in p else (p, None) for p in parameters.split())
        self.__doc__ = doc or self._describe()

    def _describe(self):
        """Returns the description of the built-in that the text calls."""
        shown = re.sub(r"\{(\w+)\}", r"\1", self.text)
        called = next((name for name in re.findall(r"([a-z]\w*)\(", shown) if name not in _names.TYPES), None)
        told = f"in a kernel `{shown}` of the kernel IR. " if shown else ""
        return f"{self.name}({', '.join(self.parameters)}): {told}{_names.BUILTINS.get(called, '')}".strip(": ")

    def bind(self, call):
        """Returns for each parameter its node or its default's text, or a string with the error."""
        if len(call.args) > len(self.parameters):
            return f"{self.name}() takes {len(self.parameters)} arguments at most"
        bound = dict(zip(self.parameters, call.args))
        for keyword in call.keywords:
            if keyword.arg not in self.parameters:
                return f"{self.name}() has no parameter `{keyword.arg}`"
            if keyword.arg in bound:
                return f"{self.name}(): two values for `{keyword.arg}`"
            bound[keyword.arg] = keyword.value
        for name, default in self.parameters.items():
            if name not in bound and default is None:
                return f"{self.name}(): the argument for `{name}` is missing"
            bound.setdefault(name, default)
        return bound

    def expand(self, emitter, call):
        """Returns the parts of the call's text."""
        import re

        bound = self.bind(call)
        if isinstance(bound, str):
            raise emitter.error(call, bound)
        for text in self.needs:
            bound[text.__name__] = emitter.builder.function(text)
            emitter.used.add(bound[text.__name__])
        parts = [emitter.source.place(call)]
        for i, piece in enumerate(re.split(r"\{(\w+)\}", self.text)):
            value = bound[piece] if i % 2 else piece
            parts += [value] if isinstance(value, str) else self.argument(emitter, piece, value)
        return parts

    def argument(self, emitter, name, node):
        if name != "index":
            return emitter.expression(node)
        parts = []
        for i, item in enumerate(node.elts if isinstance(node, ast.Tuple) else [node]):
            parts += ([", "] if i else []) + emitter.index(item)
        return parts

    def __call__(self, *args, **keywords):
        simulated = in_simulator(self)
        if simulated is None:
            raise TypeError(f"{self.name} can be used in a kernel only")
        return simulated(*args, **keywords)

    def __repr__(self):
        return f"<{self.name} of kernels>"


class LiteralForm(Form):
    """A function whose arguments are numbers that must be known when the kernel is compiled."""

    def expand(self, emitter, call):
        for node in [*call.args, *(k.value for k in call.keywords)]:
            if type(emitter.static_value(node)) is not int:
                raise emitter.error(
                    node, f"{self.name}() takes a literal value: 1, 2 or 3 (Numba raises RequireLiteralValue)"
                )
        return super().expand(emitter, call)


class ArrayForm(Form):
    """A function that makes an array like kjit.shared or kjit.local. `word` is its name in kjit."""

    def __init__(self, name, word, doc=None):
        super().__init__(name, "shape dtype alignment=None", "", doc)
        self.word = word


LOOPS = {
    name: Word(name, doc)
    for name, doc in [
        ("grid_range", "for i in grid_range(n): every i below n is visited once by some thread of the grid."),
        ("block_range", "for i in block_range(n): every i below n is visited once by some thread of the block."),
        (
            "unroll",
            "for i in unroll(range(4)): repeats the loop's body instead of looping; a second argument is the unroll factor.",
        ),
        (
            "static",
            "for i in static(range(4)): makes a copy of the loop's body for each i, in which i is a constant.",
        ),
    ]
}
ARRAYS = {
    name: Word(name, doc)
    for name, doc in [
        (
            "shared",
            "tile = shared((16, 16), f32): an array of the block with extents known at compile time; with extent 0 it has the launch's shared_bytes.",
        ),
        ("local", "t = local(8, f32): an array of the thread."),
    ]
}
TRIPLES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_DERIVATIVES = ("grad", "jvp", "vjp")
BUILTINS = {name: (DerivativeWord if name in _DERIVATIVES else Word)(name, doc) for name, doc in _names.BUILTINS.items()}
ALL = {**BUILTINS, **LOOPS, **ARRAYS}

# Methods of values in functions in which Python numbers are i64 and f64.
METHODS = {
    "sync": "grid_sync()",
    "bit_count": "popc({value})",
    "item": "{value}[0]",
    "copy": "{value}",
}

# Conversions in functions in which Python numbers are i64 and f64.
_CONVERSIONS = ((int, "i64"), (float, "f64"), (round, "rint"))

# The number of items in a range.
RANGE = Text(
    "range_length",
    """
func range_length(first, last, step) {
  if step > 0 { return last > first ? (i64(last) - i64(first) + i64(step) - 1) // i64(step) : 0i64 }
  return last < first ? (i64(first) - i64(last) - i64(step) - 1) // -i64(step) : 0i64
}""",
)

# Python's built-in functions. None means that kernels lack the function; REFUSED contains the reason.
_PYTHON = {"abs": "abs", "min": "min", "max": "max", "len": "len", "pow": "pow", "bool": "bool", "round": "rint"}
REFUSED = {
    "int": "int(x): write kjit.i32(x) or kjit.i64(x), which say how many bits there are",
    "float": "float(x): write kjit.f32(x) or kjit.f64(x), which say how many bits there are",
    "complex": "complex(x, y): write kjit.c64(x, y) or kjit.c128(x, y)",
    "sum": "sum(): write a loop",
    "any": "any(): write a loop",
    "all": "all(): write a loop",
    "enumerate": "enumerate() can be used only in the head of a loop",
    "zip": "zip() can be used only in the head of a loop",
    "map": "map(): write a loop",
    "filter": "filter(): write a loop",
    "isinstance": "isinstance(): a kernel's types are known when it is compiled: kjit.is_float(x), kjit.is_integer(x)",
    "list": "list(): write kjit.local(n, dtype)",
    "dict": "dict(): kernels have no dictionaries",
    "set": "set(): kernels have no sets",
    "str": "str(): kernels have strings only in print, assert and raise",
    "open": "open(): kernels reach no files",
    "input": "input(): kernels read no input",
    "type": "type(x): write x.dtype",
    "sorted": "sorted(): kernels have no lists",
    "iter": "iter(): write a loop",
}
# NumPy functions that create arrays.
_MAKE_ARRAYS = set("arange array asarray copy empty empty_like full full_like linspace ones ones_like zeros zeros_like".split())


def refusal(value, arrays):
    """Returns the reason why a kernel cannot use a Python or NumPy function, or None. arrays: the names of the functions that make arrays
    in a kernel."""
    name, home = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if home == "builtins":
        return REFUSED.get(name)
    if home != "numpy" or isinstance(value, type) or not callable(value):
        return None
    if name in _MAKE_ARRAYS:
        return f"np.{name}() makes an array; a kernel does so with {arrays}, where the shape is known when it is compiled"
    return f"np.{name}(): kernels do not support this NumPy function"


_MATH = {"fabs": "abs", "pow": "pow", "isfinite": "isfinite", "gamma": "tgamma"}


def _known():
    """Returns a dictionary from id(object) to the name in the kernel IR. The objects are never
    freed."""
    table = {id(getattr(builtins, name)): word for name, word in _PYTHON.items()}
    for name in dir(math):
        thing = getattr(math, name)
        word = _MATH.get(name, name)
        if callable(thing) and word in _names.BUILTINS:
            table[id(thing)] = word
    return table


_table = _known()


def builtin_name(thing):
    """Returns the built-in for a kjit function or a function of Python's math module, or None."""
    if isinstance(thing, Word):
        return thing.name if thing.name in _names.BUILTINS else None
    word = _table.get(id(thing))
    return word if word in _names.BUILTINS or word == "bool" else None


def conversion(thing):
    """Returns the built-in for a Python conversion if Python numbers have types, or None."""
    return next((word for kind, word in _CONVERSIONS if kind is thing), None)


# Statements and expressions that kernels lack, with a replacement.
INSTEAD = {
    "Try": "a kernel cannot catch exceptions: test the condition, or let the kernel raise the exception",
    "TryStar": "a kernel cannot catch exceptions: test the condition, or let the kernel raise the exception",
    "With": "a kernel has no `with`",
    "Yield": "a kernel cannot yield values: write to an array",
    "YieldFrom": "a kernel cannot yield values: write to an array",
    "Await": "a kernel does not wait for coroutines",
    "ClassDef": "a kernel cannot define a class: define the class outside of the kernel",
    "FunctionDef": "a kernel cannot define this function: define it outside of the kernel, which may call it",
    "AsyncFunctionDef": "kernels have no async functions: write an ordinary function outside of the kernel",
    "Import": "a kernel cannot import modules: import the module outside of the kernel",
    "ImportFrom": "a kernel cannot import modules: import the module outside of the kernel",
    "Global": "a kernel cannot assign to a global variable: write to an array",
    "Nonlocal": "a kernel cannot assign to a variable of the enclosing function: write to an array",
    "Delete": "a kernel cannot delete variables",
    "Match": "kernels have no match statement: write if and elif",
    "AsyncFor": "kernels have no async loops: write a plain for",
    "AsyncWith": "a kernel has no `with`",
    "List": "kernels have no lists: use a tuple, or an array made by kjit.local(n, dtype)",
    "Dict": "kernels have no dictionaries",
    "Set": "kernels have no sets",
    "ListComp": "kernels have no list comprehensions: write a loop that fills a kjit.local array",
    "DictComp": "kernels have no dictionaries",
    "SetComp": "kernels have no sets",
    "GeneratorExp": "kernels have no generator expressions here: write a loop",
    "JoinedStr": 'a kernel cannot format strings: print several values, print("x =", x)',
    "FormattedValue": 'a kernel cannot format strings: print several values, print("x =", x)',
    "NamedExpr": "the condition of a loop with an else cannot assign a variable: assign it in a separate statement",
}
