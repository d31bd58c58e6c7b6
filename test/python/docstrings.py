# RUN: %kjit-python %s
"""Every public name in kjit and kjit.cuda, and every public member of their classes, has a docstring. The docstring of
a kjit function describes each parameter by its name."""
import inspect
import re
import types

import numpy as np

import kjit
import kjit.cuda
import kjit.cuda.random


def own_text(thing):
    """Returns the object's own docstring, not its class's."""
    text = thing.__doc__ if isinstance(thing, (type, types.FunctionType, types.ModuleType)) or callable(thing) else getattr(thing, "__doc__", None)
    return text if text and (isinstance(thing, type) or text != type(thing).__doc__) else None


def members(kind):
    for name, value in vars(kind).items():
        if not name.startswith("_"):
            yield name, value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def is_described(value):
    """The class or its docstring describes data and values."""
    return callable(value) or isinstance(value, property) or inspect.isgetsetdescriptor(value)


PLAIN = (np.dtype, kjit.DType, type(kjit.const), type(kjit.cuda.gpus), str, int, float, bool, tuple)
missing, unsaid = [], []
for package, names in ((kjit, kjit.__all__), (kjit.cuda, {n for n in dir(kjit.cuda) if n[0] != "_"} | {"Reduce", "cg", "guvectorize", "reduce", "vectorize"}), (kjit.cuda.random, dir(kjit.cuda.random))):
    for name in sorted(names):
        thing = getattr(package, name)
        if name.startswith("_") or isinstance(thing, PLAIN) or isinstance(thing, types.ModuleType) and not thing.__name__.startswith("kjit"):
            continue
        if isinstance(thing, kjit.cuda.types.Type):
            continue  # int32 and so on have the docstring of types.Type
        said = f"{package.__name__}.{name}"
        if isinstance(thing, types.SimpleNamespace):
            missing += [f"{said}.{key}" for key, value in vars(thing).items() if not own_text(value) and not isinstance(value, types.SimpleNamespace)]
            continue
        if not own_text(thing) and not (isinstance(thing, type) and thing.__doc__):
            missing.append(said)
        if isinstance(thing, type) and thing.__module__.startswith("kjit"):
            missing += [f"{said}.{key}" for key, value in members(thing) if is_described(value) and not getattr(value, "__doc__", None)]
        if package is kjit and isinstance(thing, types.FunctionType) and thing.__module__ in ("kjit._folds", "kjit._orders", "kjit._products", "kjit._systems", "kjit._random", "kjit._arrays"):
            # The text of another docstring counts if this docstring names it.
            text, known = own_text(thing) or "", set()
            while new := set(re.findall(r"`kjit\.([a-z]\w*)`", text)) - known:
                known |= new
                text += "".join(own_text(getattr(kjit, other)) or "" for other in new)
            unsaid += [f"{said}: {p}" for p in inspect.signature(thing).parameters if not re.search(rf"\b{p}\b", text)]
assert not missing, f"no docstring: {', '.join(missing)}"
assert not unsaid, f"parameters that the docstring does not name: {', '.join(unsaid)}"
