#!/usr/bin/env python3
"""Checks the direction of includes. The folders of lib are ordered in layers. A file may include only headers in its own layer or
a lower one, a header may declare only functions that its own folder or a lower one defines, and no two files may include each
other, directly or indirectly. Exits 1 with a line for each violation.

  check-includes.py [ROOT]
"""
import pathlib
import re
import sys

# The layers, the lowest first. Files directly in lib are listed by name: the boundary between the two libraries consists of plain
# structs and lies above ir, and the compiler's entry lies above all folders.
ORDER = [
    ["old_glibc", "support", "library"],
    ["ir"],
    ["native"],
    ["compiler.h", "cpu_levels.def", "facts.def"],
    ["typing", "derive"],
    ["pass"],
    ["lower"],
    ["target"],
    ["pipeline.c"],
]
# The runtime: the folders of lib that it may include, followed by its own. memory and stream may include each other, because an
# array has a stream, and a capture keeps arrays.
RUNTIME_SEES = {"support", "native", "library", "ir", "compiler.h", "cpu_levels.def", "facts.def"}
RUNTIME_ORDER = [["base"], ["cuda", "cpu"], ["memory", "stream"], ["report"], ["code"], ["launch"], ["algorithm"], ["formula"], ["layers.c"]]

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# clang-format puts the start of a declaration in the first column.
DECLARED = re.compile(r"^(?!static|typedef|#|return|extern)[A-Za-z_][^;{}()=]*?\b(k[a-z]_\w+)\([^;{}]*\)[^;{}]*;",
                      re.MULTILINE)
DEFINED = re.compile(r"^(?!static|typedef|#)[A-Za-z_][^;{}()=]*?\b(k[a-z]_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)


def place(path):
    """Returns the name in ORDER that a path inside lib belongs to."""
    return path.split("/")[0]


def height(path, order=ORDER):
    for level, names in enumerate(order):
        if place(path) in names:
            return level
    return None


def read(root, folder):
    """Returns a dictionary from the path of each source in the folder to its text without comments."""
    found = {}
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in (".c", ".h", ".def"):
            found[path.relative_to(root / folder).as_posix()] = COMMENT.sub("", path.read_text())
    return found


def unit(path):
    """Returns the name without its suffix, because a source and its header count as one file."""
    return path.rsplit(".", 1)[0]


def circles(edges):
    """Returns the strongly connected components with more than one node (Tarjan's algorithm)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for to in sorted(edges.get(node, ())):
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on_stack:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
                on_stack.discard(part[-1])
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def check_lib(lib):
    edges, definers = {}, {}
    for path, text in lib.items():
        if height(path) is None:
            yield f"lib/{path}: the order of folders in scripts/check-includes.py has no {place(path)}"
        for included in INCLUDE.findall(text):
            if included not in lib:
                yield f'lib/{path}: "{included}" is no file of lib'
            elif (height(included) or 0) > (height(path) or 0):
                yield f'lib/{path}: includes "{included}", which stands above {place(path)}'
            if unit(included) != unit(path):
                edges.setdefault(unit(path), set()).add(unit(included))
        if path.endswith(".c"):
            for name in DEFINED.findall(text):
                definers[name] = path
    for path, text in lib.items():
        for name in DECLARED.findall(text) if path.endswith(".h") else []:
            definer = definers.get(name)
            if definer and (height(definer) or 0) > (height(path) or 0):
                yield f"lib/{path}: declares {name}, which lib/{definer} above it defines"
    for part in circles(edges):
        yield "lib: files that include each other: " + ", ".join(part)


def check_runtime(lib, runtime):
    edges, definers = {}, {}
    for path, text in runtime.items():
        for name in DEFINED.findall(text) if path.endswith(".c") else []:
            definers[name] = path
    for path, text in runtime.items():
        level = height(path, RUNTIME_ORDER)
        if level is None:
            yield f"runtime/{path}: the order of folders in scripts/check-includes.py has no {place(path)}"
            continue
        for included in INCLUDE.findall(text):
            if included in lib and included not in runtime and place(included) not in RUNTIME_SEES:
                yield f'runtime/{path}: includes "{included}", which is the compiler\'s own'
            if included not in runtime:
                continue
            if included == "cuda/cuda.h" and place(path) not in ("cuda", "layers.c"):
                yield f'runtime/{path}: includes "{included}"; only the table in base/device.h leads to a driver'
            beside = height(included, RUNTIME_ORDER) == level and place(included) != place(path)
            if (height(included, RUNTIME_ORDER) or 0) > level or (beside and "memory" not in RUNTIME_ORDER[level]):
                yield f'runtime/{path}: includes "{included}", which does not stand below {place(path)}'
            if unit(included) != unit(path):
                edges.setdefault(unit(path), set()).add(unit(included))
        for name in DECLARED.findall(text) if path.endswith(".h") else []:
            definer = definers.get(name)
            if definer and (height(definer, RUNTIME_ORDER) or 0) > level:
                yield f"runtime/{path}: declares {name}, which runtime/{definer} above it defines"
    for part in circles(edges):
        yield "runtime: files that include each other: " + ", ".join(part)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    lib, runtime = read(root, "lib"), read(root, "runtime")
    breaches = [*check_lib(lib), *check_runtime(lib, runtime)]
    print("\n".join(breaches), end="\n" if breaches else "")
    return 1 if breaches or not lib else 0


sys.exit(main())
