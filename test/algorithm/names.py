#!/usr/bin/env python3
"""names.py: runs algorithms in turn on several modules in one context and compares the results with loops in Python. The
modules' structs, funcs, constants, parameters and kernels have equal names, which also occur in kjit's own sources. Modules are
created and destroyed during the test."""
import argparse
import ctypes as c
import functools
import glob
import os
import random
import re
import secrets
import sys

import numpy as np

from calls import FUNC, NUMPY, TYPES, Algorithms, Arg, Failure, Operand, Tensor

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
# words of the language, which cannot be names, or which the texts below need
LANGUAGE = set("""kernel func extern const struct import let var shared local if else while for in break continue return assert raise print and or not true false range grid_range block_range
type default dtype vector len zero min max index void number""".split())
FOLDS = {"+": lambda x, y: x + y, "min": min, "max": max, "^": lambda x, y: x ^ y}


def words_of_kjit():
    """Names in the library's modules and in the texts that the algorithms write."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "lib", "library", "*.kir")):
        found.update(WORD.findall(open(path).read()))
    for path in glob.glob(os.path.join(ROOT, "runtime", "algorithm", "*.c")):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', open(path).read()):
            text = re.sub(r"\\.", " ", text)
            found.update(word for word in WORD.findall(re.sub(r"%zu|%u|%d", "0", text)))
    operands, suffixes = set(), set("01")
    for path in glob.glob(os.path.join(ROOT, "runtime", "algorithm", "*.c")):
        operands.update(re.findall(r'ka_read_\w+\(\w+, "(\w+)"', open(path).read()))
        if os.path.basename(path) == "kernel_text.c":
            suffixes.update(re.findall(r'"([a-z]{1,6})"', open(path).read()))
    found.update(f"{operand}_{suffix}" for operand in operands for suffix in suffixes)
    found.update(("hosts_0", "hosts_1", "hosts_struct_0", "hosts_struct_1", "wrapped", "pair_type"))
    types = re.compile(r"[iuf]\d+(x\d+)?|bf16(x\d+)?|c64|c128|bool(x\d+)?")
    return sorted(word for word in found if word not in LANGUAGE and not types.fullmatch(word))


class Module:
    """Its own fields, constants and operations under the shared names."""

    def __init__(self, library, d, names, count):
        self.names = names
        self.fields = [names["fields"][k] for k in range(count)]
        self.types = [d.choice(("i64", "i32")) for _ in self.fields]
        self.folds = [d.choice(sorted(FOLDS)) for _ in self.fields]
        self.by, self.is_down, self.factor = d.randrange(count), d.random() < 0.5, d.randint(2, 9)
        self.is_packed = d.random() < 0.3
        self.dtype = np.dtype([(m, NUMPY[t]) for m, t in zip(self.fields, self.types)], align=not self.is_packed)
        self.library, self.handle = library, library.parse(self.text(d))
        self.type = c.c_uint32()
        library.require(library.c.kjit_get_struct(self.handle, names["struct"].encode(), c.byref(self.type)))

    def text(self, d):
        n, (x, y, i, j) = self.names, self.names["parameters"]
        fold = {"+": "{0} + {1}", "^": "{0} ^ {1}", "min": "{0} < {1} ? {0} : {1}", "max": "{0} > {1} ? {0} : {1}"}
        values = [fold[f].format(f"{x}.{m}", f"{y}.{m}") for m, f in zip(self.fields, self.folds)]
        by, sign = self.fields[self.by], ">" if self.is_down else "<"
        sizes = "; ".join(f"{m}: {t}" for m, t in zip(self.fields, self.types))
        imports = f'import "{n["import"]}"\n' if n["import"] else ""
        return (f"{imports}struct {n['struct']}{' @packed' if self.is_packed else ''} {{ {sizes} }}\n"
                f"const {n['const']} = {self.factor}i64\n"
                f"func {n['op']}({x}, {y}) {{ return {n['struct']}({', '.join(values)}) }}\n"
                f"func {n['less']}({x}, {y}) {{ return {x}.{by} {sign} {y}.{by} }}\n"
                f"func {n['same']}({x}, {y}) {{ return {x}.{by} == {y}.{by} }}\n"
                f"func {n['map']}({x}) {{ return i64({x}.{self.fields[0]}) * {n['const']} + i64({x}.{self.fields[-1]}) }}\n"
                f"func {n['made']}({x}) {{ return {n['struct']}({', '.join(f'{t}({x}) + {k}' for k, t in enumerate(self.types))}) }}\n"
                f"func {n['pair']}({x}, {y}, {i}, {j}) {{ return i64({x}.{self.fields[0]}) * {n['const']} - i64({y}.{self.fields[-1]}) + {i} }}\n"
                f"func {n['at']}({i}, {x}) {{ return {x}[{i}] }}\n"
                f"kernel {n['kernel']}({y}, {x}, const {j}) {{ for {i} in grid_range(len({y})) {{ {y}[{i}] = {n['op']}({x}[{i}], {n['made']}({j})) }} }}\n")

    def random(self, d, count):
        values = np.zeros(count, self.dtype)
        for m in self.fields:
            values[m] = [d.randint(-20, 20) for _ in range(count)]
        return values

    def func(self, role):
        return self.library.find(self.handle, self.names[role])

    # ---- the results of the funcs ----

    def fold(self, x, y):
        return tuple(FOLDS[f](int(a), int(b)) for f, a, b in zip(self.folds, x, y))

    def key(self, x):
        return -int(x[self.by]) if self.is_down else int(x[self.by])

    def value(self, x):
        return int(x[0]) * self.factor + int(x[len(self.fields) - 1])

    def of(self, rows):
        return np.array([tuple(row) for row in rows], self.dtype)


class Names(Algorithms):
    def records(self, module, values):
        shape, strides = (c.c_int64 * 1)(len(values)), (c.c_int64 * 1)(1)
        tensor = Tensor(values.ctypes.data, 1, 0, 1, 0, 8, 1, shape, strides, 0)
        self.keep.append((tensor, shape, strides, values))
        return Operand(Arg(3, 0, 0, module.type.value, c.addressof(tensor)))

    def call(self, name, *arguments):
        """Passes operands by reference, numbers as sizes, and funcs as pointers."""
        passed = [c.byref(a) if isinstance(a, (Operand, c.Structure)) else a for a in arguments]
        self.require(getattr(self.c, f"kjit_{name}")(self.context, *passed, c.byref(self.options())))


# ---- families: (library, module, random) -> (results, expected results) ----

def folds(m, rows): return functools.reduce(m.fold, [tuple(r) for r in rows])


def running(m, rows):
    found = []
    for row in rows:
        found.append(m.fold(found[-1], tuple(row)) if found else tuple(row))
    return found


def run_reduce(a, m, d):
    x, r = m.random(d, d.choice((1, 5, 700))), m.random(d, 1)
    a.call("reduce", a.records(m, r), a.records(m, x), a.operator(m.func("op")))
    return r, m.of([folds(m, x)])


def run_scan(a, m, d):
    x = m.random(d, d.choice((1, 5, 700)))
    r = np.zeros_like(x)
    a.call("scan", a.records(m, r), a.records(m, x), a.operator(m.func("op")))
    return r, m.of(running(m, x))


def run_map(a, m, d):
    x = m.random(d, 9)
    r, s, back = np.zeros(9, np.int64), np.zeros(9, m.dtype), np.zeros(9, np.int64)
    a.call("map", a.array(r), c.c_size_t(1), c.c_void_p(m.func("map")), a.records(m, x), c.c_size_t(1))
    a.call("map", a.records(m, s), c.c_size_t(1), c.c_void_p(m.func("made")), a.array(r), c.c_size_t(1))
    a.call("map", a.array(back), c.c_size_t(1), c.c_void_p(m.func("map")), a.records(m, s), c.c_size_t(1))
    expected = [m.value(row) for row in x]
    made = [v * m.factor + v + len(m.fields) - 1 for v in expected]
    return np.concatenate((r, back)), np.concatenate((expected, made))


def run_func_operand(a, m, d):
    x, r = m.random(d, 33), m.random(d, 1)
    arrays, extents = (Arg * 1)(a.records(m, x).argument), (c.c_int64 * 1)(33)
    a.keep.append((arrays, extents))
    operand = Operand(Arg(5, 0, 0, FUNC, m.func("at")), arrays, 1, extents, 1)
    a.call("reduce", a.records(m, r), operand, a.operator(m.func("op")))
    return r, m.of([folds(m, x)])


def run_sort(a, m, d):
    x = m.random(d, d.choice((3, 60, 5000)))
    r = np.zeros_like(x)
    a.call("sort", a.records(m, r), a.records(m, x), c.c_void_p(m.func("less")))
    return r, m.of(sorted(x, key=m.key))


def run_top_k(a, m, d):
    x, k = m.random(d, 50), d.randint(1, 5)
    r = np.zeros(k, m.dtype)
    a.call("top_k", a.records(m, r), None, a.records(m, x), c.c_uint64(k), c.c_void_p(m.func("less")))
    return r, m.of(sorted(x, key=m.key)[:k])


def run_merge(a, m, d):
    x, y = (m.of(sorted(m.random(d, n), key=m.key)) for n in (20, 30))
    r = np.zeros(50, m.dtype)
    a.call("merge", a.records(m, r), a.records(m, x), a.records(m, y), c.c_void_p(m.func("less")))
    return r, m.of(sorted([*x, *y], key=m.key))


def run_select(a, m, d):
    x, flags = m.random(d, 40), np.array([d.randint(0, 1) for _ in range(40)], np.int32)
    r, count = np.zeros_like(x), np.zeros(1, np.int64)
    a.call("select", a.records(m, r), a.array(count), a.records(m, x), a.array(flags))
    return r[:count[0]], x[flags != 0]


def run_unique(a, m, d):
    x = m.of(sorted(m.random(d, 60), key=m.key))
    r, count = np.zeros_like(x), np.zeros(1, np.int64)
    a.call("unique", a.records(m, r), a.array(count), a.records(m, x), c.c_void_p(m.func("same")))
    kept = [row for k, row in enumerate(x) if not k or m.key(row) != m.key(x[k - 1])]
    return r[:count[0]], m.of(kept)


def cut(d, count, segments):
    return np.array([0, *sorted(d.sample(range(1, count), segments - 1)), count], np.int32)


def run_segments(a, m, d):
    x, at = m.random(d, 60), cut(d, 60, 7)
    r, s = np.zeros(7, m.dtype), np.zeros_like(x)
    a.call("reduce_segments", a.records(m, r), a.records(m, x), a.array(at), a.operator(m.func("op")))
    a.call("scan_segments", a.records(m, s), a.records(m, x), a.array(at), a.operator(m.func("op")))
    parts = [x[p:q] for p, q in zip(at, at[1:])]
    return np.concatenate((r, s)), m.of([*(folds(m, p) for p in parts), *sum((running(m, p) for p in parts), [])])


def run_sort_segments(a, m, d):
    x, at = m.random(d, 60), cut(d, 60, 7)
    r = np.zeros_like(x)
    a.call("sort_segments", a.records(m, r), None, a.records(m, x), None, a.array(at), c.c_void_p(m.func("less")))
    return r, m.of(sum((sorted(x[p:q], key=m.key) for p, q in zip(at, at[1:])), []))


def run_by_key(a, m, d):
    x, keys = m.random(d, 50), m.of(sorted(m.random(d, 50), key=m.key))
    rk, r, count = np.zeros_like(x), np.zeros_like(x), np.zeros(1, np.int64)
    a.call("reduce_by_key", a.records(m, rk), a.records(m, r), a.array(count), a.records(m, keys), a.records(m, x), a.operator(m.func("op")), c.c_void_p(m.func("same")))
    starts = [k for k in range(50) if not k or m.key(keys[k]) != m.key(keys[k - 1])]
    folded = [folds(m, x[p:q]) for p, q in zip(starts, [*starts[1:], 50])]
    return np.concatenate((rk[:count[0]], r[:count[0]])), np.concatenate((keys[starts], m.of(folded)))


def run_pairs(a, m, d):
    x, y = m.random(d, 6), m.random(d, 11)
    r = np.zeros(6, np.int64)
    function = Operand(Arg(5, 0, 0, FUNC, m.func("pair")), None, 0, None, 0)
    a.call("pairs", a.array(r), function, a.records(m, x), a.records(m, y), c.c_size_t(1), a.operator("add"))
    last = len(m.fields) - 1
    return r, np.array([sum(int(p[0]) * m.factor - int(q[last]) + i for q in y) for i, p in enumerate(x)])


def run_set(a, m, d):
    x, y = (m.of(sorted(m.random(d, n), key=m.key)) for n in (20, 25))
    r, count = np.zeros(45, m.dtype), np.zeros(1, np.int64)
    a.call("set_union", a.records(m, r), a.array(count), a.records(m, x), a.records(m, y), c.c_void_p(m.func("less")))
    keys = lambda rows: sorted(m.key(row) for row in rows)
    nx, ny = keys(x), keys(y)
    expected = sorted(v for key in {*nx, *ny} for v in [key] * max(nx.count(key), ny.count(key)))
    return np.array(keys(r[:count[0]])), np.array(expected)


def run_launch(a, m, d):
    x, given = m.random(d, 17), d.randint(-9, 9)
    r = np.zeros_like(x)
    arguments = [a.records(m, r).argument, a.records(m, x).argument, Arg(1, 0, 0, TYPES["i64"], given & (1 << 64) - 1)]
    a.launch(m.handle, m.names["kernel"], arguments)
    made = tuple(given + k for k in range(len(m.fields)))
    return r, m.of([m.fold(tuple(row), made) for row in x])


def run_specialize(a, m, d):
    """The module that the kernel belongs to determines which struct with this name is meant."""
    name, kernel, made, found = m.names["struct"], c.c_void_p(), c.c_void_p(), c.c_uint32()
    a.require(a.c.kjit_get_kernel(m.handle, m.names["kernel"].encode(), c.byref(kernel)))
    a.require(a.c.kjit_specialize(kernel, a.device, f"{name}[:] C, {name}[:] C, 3".encode(), c.byref(made)))
    a.require(a.c.kjit_get_result_type(c.c_void_p(m.func("op")), f"{name}, {name}".encode(), c.byref(found)))
    return np.array([found.value]), np.array([m.type.value])


FAMILIES = {name[4:]: run for name, run in sorted(globals().items()) if name.startswith("run_")}
ROLES = ("struct", "const", "op", "less", "same", "map", "made", "pair", "at", "kernel")


def draw_names(d, pool):
    """The modules begin differently. A module may import kjit modules and declare names that those modules also declare."""
    imported = d.choice((None, "operators", "scan", "random", "block", "select", "sort"))
    found = dict(zip(ROLES, d.sample(pool, len(ROLES))))
    found["fields"] = d.sample(pool, 3)
    found["parameters"] = d.sample([word for word in pool if word not in found.values()], 4)
    return found | {"import": imported}


def check(library, module, family, d):
    library.begin()
    result, expected = FAMILIES[family](library, module, d)
    result, expected = np.asarray(result), np.asarray(expected)
    if result.shape == expected.shape and result.tolist() == expected.tolist():
        return True
    print(f"WRONG: {family}\n  got {result}\n  expected {expected}")
    return False


def run_context(library, d, pool, steps):
    names = draw_names(d, pool)
    modules = [Module(library, d, names, k + 1) for k in range(3)]
    wrong = 0
    for step in range(steps):
        if step % 7 == 6:
            k = d.randrange(3)
            library.release(modules[k].handle)
            modules[k] = Module(library, d, names, k + 1)
        family, module = d.choice(sorted(FAMILIES)), d.choice(modules)
        try:
            is_right = check(library, module, family, d)
        except Failure as failure:
            is_right = False
            print(f"FAILED: {family}: {failure}")
        if not is_right:
            wrong += 1
            print("  the names: " + ", ".join(f"{role} {names[role]}" for role in (*ROLES, "fields", "parameters", "import")))
    for module in modules:
        library.release(module.handle)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=4, help="sets of names")
    parser.add_argument("--steps", type=int, default=30, help="calls of one set of names")
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    d, pool, wrong = random.Random(seed), words_of_kjit(), 0
    library = Names(arguments.library, arguments.device)
    for _ in range(arguments.rounds):
        wrong += run_context(library, d, pool, arguments.steps)
    print(f"{wrong} wrong of {arguments.rounds * arguments.steps}, with names from {len(pool)} words")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
