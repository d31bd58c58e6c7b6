"""Pickles kernels and funcs. A kernel that can be imported is pickled by name. Any other kernel is
pickled by value: its code, its source, and the global names that its code uses.

A process that loads a pickle several times, as workers do with the tasks of one program, gets the
same object each time, so it compiles the kernel once. Each pickle contains an identity for this purpose. A kernel keeps its
identity from its first compilation on, because the compilation makes its globals constants."""

import collections
import dis
import marshal
import sys
import types
import uuid
import weakref

from .frontend import source as sources

_VERSION = sys.version_info[:2]
# Loaded kernels and funcs by their pickles' identity. The last few of them stay alive even if the program drops them
# between two pickles.
_known: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_recent: collections.deque = collections.deque(maxlen=64)


def find(module, qualname):
    """Returns the object with a qualified name in a module."""
    __import__(module)
    thing = sys.modules[module]
    for name in qualname.split("."):
        thing = getattr(thing, name)
    return thing


def is_found(thing):
    """Returns whether another process can import the same object by its module and name."""
    module, qualname = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not qualname or module == "__main__" or "<" in qualname:
        return False
    try:
        return find(module, qualname) is thing
    except (ImportError, AttributeError, KeyError):
        return False


def reduce(compiled):
    """Implements __reduce__ of kernels and funcs."""
    if is_found(compiled):
        return find, (compiled.__module__, compiled.__qualname__)
    return restore, (_VERSION, *_Packer(compiled).pack(), _identity(compiled))


def _identity(compiled):
    """Returns a pickle's identity."""
    identity = compiled.__dict__.get("_pickled_as")
    if identity is None or compiled._made is None:
        identity = uuid.uuid4().hex
        compiled.__dict__["_pickled_as"] = identity
    return identity


def _global_names(code):
    """Returns the names of the globals that code, including nested code, loads."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


class _Packer:
    """Collects the functions and kernels that are pickled by value. A value is a pair: ("function",
    number), ("compiled", number), ("module", name) or ("value", object)."""

    def __init__(self, root):
        self.functions, self.compiled, self.spaces, self.numbers, self.kept = [], [], [], {}, []
        self.root = self.value(root)

    def pack(self):
        return self.functions, self.compiled, self.spaces, self.root

    def value(self, thing):
        from ._functions import _Compiled

        if isinstance(thing, types.ModuleType):
            return "module", thing.__name__
        if isinstance(thing, tuple) and type(thing) is tuple:
            return "tuple", tuple(self.value(item) for item in thing)
        if isinstance(thing, _Compiled) and not is_found(thing):
            return "compiled", self.number(thing, self.compiled, self.pack_compiled)
        if isinstance(thing, types.FunctionType) and not is_found(thing):
            return "function", self.number(thing, self.functions, self.pack_function)
        return "value", thing

    def number(self, thing, table, pack):
        if id(thing) not in self.numbers:
            self.numbers[id(thing)] = len(table)
            self.kept.append(thing)
            table.append(None)  # reserves the number, so that cyclic references find it
            table[self.numbers[id(thing)]] = pack(thing)
        return self.numbers[id(thing)]

    def pack_compiled(self, thing):
        return type(thing), self.number(thing.py_func, self.functions, self.pack_function), thing._options

    def space(self, names):
        """Returns the number of a dictionary of globals. Functions that share a dictionary also
        share one after unpickling."""
        if id(names) not in self.numbers:
            self.numbers[id(names)] = len(self.spaces)
            self.spaces.append({"__name__": ("value", names.get("__name__", "kjit_unpickled"))})
        return self.numbers[id(names)]

    def pack_function(self, thing):
        code, space = thing.__code__, self.space(thing.__globals__)
        for name in sorted(_global_names(code)):
            if name in thing.__globals__ and name not in self.spaces[space]:
                self.spaces[space][name] = None
                self.spaces[space][name] = self.value(thing.__globals__[name])
        source = sources.of(thing)
        cells = []
        for cell in thing.__closure__ or ():
            try:
                cells.append(self.value(cell.cell_contents))
            except ValueError:
                cells.append(None)  # the variable has no value yet
        values = [self.value(v) for v in (thing.__defaults__ or ())]
        annotations = {k: self.value(v) for k, v in thing.__annotations__.items()}
        return (
            marshal.dumps(code),
            space,
            thing.__qualname__,
            thing.__doc__,
            cells,
            values,
            annotations,
            (source.file, source.lines),
        )


def restore(version, functions, compiled, spaces, root, identity=None):
    """Returns the object that this process has loaded with this identity, or restores it."""
    found = _known.get(identity)
    if found is None:
        found = _restore(version, functions, compiled, spaces, root)
        if identity is not None:
            found.__dict__["_pickled_as"] = identity
            _known[identity] = found
            _recent.append(found)
    return found


def _restore(version, functions, compiled, spaces, root):
    """Restores what _Packer has packed: first the functions, then the kernels, then the names that
    they refer to. Raises ValueError for a pickle of another Python version."""
    if version != _VERSION:
        raise ValueError(
            f"a kernel pickled by Python {version[0]}.{version[1]} cannot be read by {_VERSION[0]}.{_VERSION[1]}"
        )
    new_spaces = [{"__builtins__": __builtins__} for _ in spaces]
    new_functions = []
    for code, space, qualname, doc, cells, _, _, (file, lines) in functions:
        closure = tuple(types.CellType() for _ in cells) if cells else None
        made = types.FunctionType(marshal.loads(code), new_spaces[space], closure=closure)
        made.__qualname__, made.__doc__ = qualname, doc
        made.__kjit_source__ = sources.Source(file, lines, is_fixed=True)
        new_functions.append(made)
    new_compiled = [kind._remake(new_functions[number], options) for kind, number, options in compiled]

    def value(pair):
        kind, inner = pair
        if kind == "module":
            __import__(inner)
            return sys.modules[inner]
        if kind == "tuple":
            return tuple(value(item) for item in inner)
        return inner if kind == "value" else (new_functions if kind == "function" else new_compiled)[inner]

    for names, packed in zip(new_spaces, spaces):
        names.update({name: value(pair) for name, pair in packed.items()})
    for made, (_, _, _, _, cells, values, annotations, _) in zip(new_functions, functions):
        made.__module__ = made.__globals__["__name__"]
        made.__defaults__ = tuple(map(value, values)) or None
        made.__annotations__ = {k: value(v) for k, v in annotations.items()}
        for cell, pair in zip(made.__closure__ or (), cells):
            if pair is not None:
                cell.cell_contents = value(pair)
    return value(root)
