#!/usr/bin/env python3
"""make-stubs.py [FILE]: writes stubs for type checkers and editors, because the names of kjit.cuda are defined only
when it is imported. Run it with the package of a build tree after changes to kjit.cuda; test/python/stubs.py compares:
    PYTHONPATH=build/ci/python python3 tools/python/make-stubs.py"""

import inspect
import pathlib
import sys
import types

del sys.path[0]  # removes this folder from the path, because kjit is not built in it
import kjit.cuda  # noqa: E402

# Names that are created at their first use.
LATE = ("Reduce", "cg", "extending", "fp8", "guvectorize", "random", "reduce", "vectorize")
HEADER = '"""Types of kjit.cuda, made by tools/python/make-stubs.py."""\nfrom typing import Any\n\n'


def write_function(name, function, indent=""):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"{indent}def {name}(*args: Any, **keywords: Any) -> Any: ..."
    words, is_named = [], False
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            is_named = True
        if p.kind == p.KEYWORD_ONLY and not is_named:
            words.append("*")
            is_named = True
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        is_self = indent and p is parameters[0] and p.name in ("self", "cls")
        words.append(p.name if is_self else f"{stars}{p.name}: Any{'' if p.default is p.empty else ' = ...'}")
    return f"{indent}def {name}({', '.join(words)}) -> {'None' if name == '__init__' else 'Any'}: ..."


def write_class(name, kind, public):
    bases = [b.__name__ for b in kind.__bases__ if public.get(b.__name__) is b or b is not object and b.__module__ == "builtins"]
    rows = []
    for key, value in sorted(vars(kind).items()):
        if key.startswith("_") and key not in ("__init__", "__call__", "__getitem__", "__setitem__", "__len__", "__enter__", "__exit__"):
            continue
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(value, classmethod):
            rows.append("    @classmethod")
        if isinstance(value, staticmethod):
            rows.append("    @staticmethod")
        rows.append(write_function(key, inner, "    ") if isinstance(inner, types.FunctionType) else f"    {key}: Any")
    head = f"class {name}{'(' + ', '.join(bases) + ')' if bases else ''}:"
    return "\n".join([head, *rows]) if rows else f"{head} ..."


def write():
    package = kjit.cuda
    names = {n for n in dir(package) if not n.startswith("_")} | set(LATE)
    public = {name: getattr(package, name) for name in sorted(names)}
    lines = []
    for name, value in public.items():
        if isinstance(value, types.ModuleType):
            if value.__name__ == f"kjit.cuda.{name}":
                lines.append(f"from . import {name} as {name}")
        elif isinstance(value, type) and value.__module__.startswith("kjit.") and value.__name__ == name:
            lines.append(write_class(name, value, public))
        elif isinstance(value, types.FunctionType):
            lines.append(write_function(name, value))
        else:
            lines.append(f"{name}: Any")
    lines.sort(key=lambda line: not line.startswith("from "))
    return HEADER + "\n".join(lines) + "\n"


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "kjit/cuda/__init__.pyi"
    place.write_text(write())
