#!/usr/bin/env python3
"""bounds.py: random kernels whose indices are sums, products and quotients of positions, counters and scalars, run with bounds checks.

Each kernel is evaluated here for every thread. Where an index leaves its array the run must fail, and elsewhere it must not: checks that are taken away or hoisted because they
cannot fail are right, and no check is made that fails for nothing. Results of runs that do not fail are compared with those without checks.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np


class Kernel:
    """One kernel over x: i32[rows, cols] and r: i32[n]. Each statement is text and a function of a thread's
    variables."""

    def __init__(self, draw, name):
        self.draw, self.name = draw, name
        self.block = draw.choice([(8, 1), (32, 1), (4, 4), (16, 2), (1, 1), (7, 3)])
        self.grid = draw.choice([(1, 1), (3, 1), (2, 2), (5, 3)])
        self.shape = (draw.randint(1, 40), draw.randint(1, 40))
        self.n, self.m = draw.randint(-3, 12), draw.randint(1, 9)
        self.depth = 0
        self.lines = []
        self.body = self.statements(["tx", "ty", "bx", "by", "gx", "gy", "n", "m", "rows", "cols"], draw.randint(1, 4))

    def index(self, names, depth=2):
        """An expression as kernel IR and as Python."""
        d = self.draw
        kind = d.random()
        if depth == 0 or kind < 0.35:
            name = d.choice(names)
            return name, name
        if kind < 0.45:
            number = str(d.randint(0, 6))
            return number, number
        a, b = self.index(names, depth - 1), self.index(names, depth - 1)
        number = d.randint(1, 5)
        op = d.choice(["+", "+", "-", "*", "//", "%", "min", "max", "cond"])
        if op in ("//", "%"):
            return f"({a[0]} {op} {number})", f"({a[1]} {op} {number})"
        if op == "*":
            return f"({a[0]} * {number})", f"({a[1]} * {number})"
        if op in ("min", "max"):
            return f"{op}({a[0]}, {b[0]})", f"{op}({a[1]}, {b[1]})"
        if op == "cond":
            return f"({a[0]} > {number} ? {b[0]} : {a[0]})", f"({b[1]} if {a[1]} > {number} else {a[1]})"
        return f"({a[0]} {op} {b[0]})", f"({a[1]} {op} {b[1]})"

    def wrapped(self, names, extent):
        """The index is often in bounds."""
        text, python = self.index(names)
        if self.draw.random() < 0.75:
            return f"({text}) % {extent}", f"({python}) % {extent}"
        return text, python

    def statements(self, names, count):
        """Returns a list of (kind, Python parts)."""
        made = []
        for _ in range(count):
            kind = self.draw.choice(["load", "load", "shared", "for", "if", "let", "row", "func"]) if len(names) < 16 else "load"
            indent = "  " * (self.depth + 1)
            if kind in ("load", "row", "func"):
                i, j = self.wrapped(names, "rows"), self.wrapped(names, "cols")
                access = {"load": f"x[{i[0]}, {j[0]}]", "row": f"row_of(x, {i[0]}, {j[0]})", "func": f"at(x, {i[0]}, {j[0]})"}[kind]
                self.lines.append(f"{indent}sum += {access}")
                made.append(("load", i[1], j[1]))
            elif kind == "shared":
                i = self.wrapped(names, "24")
                self.lines.append(f"{indent}sum += s[{i[0]}]")
                made.append(("shared", i[1]))
            elif kind == "let":
                value = self.index(names)
                name = f"v{len(self.lines)}"
                self.lines.append(f"{indent}let {name} = {value[0]}")
                made.append(("let", name, value[1]))
                names = names + [name]
            elif kind == "if":
                a = self.index(names, 1)
                limit = self.draw.randint(0, 8)
                self.lines.append(f"{indent}if {a[0]} < {limit} {{")
                self.depth += 1
                made.append(("if", f"{a[1]} < {limit}", self.statements(names, 2)))
                self.depth -= 1
                self.lines.append(f"{indent}}}")
            else:
                name = f"k{len(self.lines)}"
                first, stop = self.index(["n", "m", "bx"], 1), self.index(["m", "n", "rows"], 1)
                step = self.draw.choice(["1", "1", "2", "3", "-1"])
                self.lines.append(f"{indent}for {name} in range({first[0]}, {stop[0]}, {step}) {{")
                self.depth += 1
                made.append(("for", name, first[1], stop[1], step, self.statements(names + [name], 2)))
                self.depth -= 1
                self.lines.append(f"{indent}}}")
        return made

    def text(self):
        return "\n".join([f"kernel {self.name}(r, x, n, m) {{", "  shared s: i32[24]", "  for i in block_range(24) { s[i] = 1 }", "  syncthreads()",
                          "  let rows, cols = x.shape", "  let tx = threadIdx.x", "  let ty = threadIdx.y", "  let bx = blockIdx.x", "  let by = blockIdx.y",
                          "  let gx, gy = grid(2)", "  var sum = 0", *self.lines, "  r[gy, gx] = sum", "}"])

    def leaves(self):
        """Returns whether some thread's index is out of bounds."""
        for by in range(self.grid[1]):
            for bx in range(self.grid[0]):
                for ty in range(self.block[1]):
                    for tx in range(self.block[0]):
                        names = dict(tx=tx, ty=ty, bx=bx, by=by, gx=bx * self.block[0] + tx, gy=by * self.block[1] + ty, n=self.n, m=self.m, rows=self.shape[0], cols=self.shape[1])
                        if self.run(self.body, names):
                            return True
        return False

    def run(self, body, names):
        for stmt in body:
            if stmt[0] == "load":
                if not (0 <= eval(stmt[1], {"min": min, "max": max}, names) < self.shape[0] and 0 <= eval(stmt[2], {"min": min, "max": max}, names) < self.shape[1]):
                    return True
            elif stmt[0] == "shared":
                if not 0 <= eval(stmt[1], {"min": min, "max": max}, names) < 24:
                    return True
            elif stmt[0] == "let":
                names = dict(names)
                names[stmt[1]] = eval(stmt[2], {"min": min, "max": max}, names)
            elif stmt[0] == "if":
                if eval(stmt[1], {"min": min, "max": max}, names) and self.run(stmt[2], names):
                    return True
            else:
                for k in range(eval(stmt[2], {"min": min, "max": max}, names), eval(stmt[3], {"min": min, "max": max}, names), int(stmt[4])):
                    if self.run(stmt[5], dict(names, **{stmt[1]: k})):
                        return True
        return False


HELPERS = "func at(a, i, j) { return a[i, j] }\nfunc row_of(a, i, j) {\n  let row = a[i]\n  return row[j]\n}\n"


def launch(tool, device, path, kernel, checks, save):
    grid, block = "x".join(map(str, kernel.grid)), "x".join(map(str, kernel.block))
    shape = f"{kernel.grid[1] * kernel.block[1]},{kernel.grid[0] * kernel.block[0]}"
    command = [tool, "-q", "--no-cache", "--device", device, "--checks", checks, path, "-a", f"r=zeros:i32[{shape}]", "-a", f"x=arange:i32[{kernel.shape[0]},{kernel.shape[1]}]",
               "-l", f"{kernel.name}[{grid}, {block}](r, x, {kernel.n}i32, {kernel.m}i32)", "--save", f"r={save}"]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def check(tool, device, kernel, folder):
    """Returns None, or what is wrong."""
    path = os.path.join(folder, "k.kir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HELPERS + kernel.text() + "\n")
    checked = launch(tool, device, path, kernel, "bounds", os.path.join(folder, "checked.npy"))
    wanted = kernel.leaves()
    found = checked.returncode == 5 and "index" in checked.stdout
    if checked.returncode not in (0, 5) or found != wanted:
        return f"an index {'leaves' if wanted else 'leaves no'} array, kjit-run says {checked.returncode}:\n{checked.stdout}"
    if wanted:
        return None
    plain = launch(tool, device, path, kernel, "none", os.path.join(folder, "plain.npy"))
    if plain.returncode or not np.array_equal(np.load(os.path.join(folder, "checked.npy")), np.load(os.path.join(folder, "plain.npy"))):
        return f"the results differ from those without checks\n{plain.stdout}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(2**31) if arguments.seed is None else arguments.seed
    failed = failing = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(arguments.count):
            kernel = Kernel(random.Random(f"{seed} {i}"), f"k{i}")
            problem = check(arguments.kjit_run, arguments.device, kernel, folder)
            failing += kernel.leaves()
            if problem:
                failed += 1
                print(f"seed {seed}, kernel {i}, grid {kernel.grid}, block {kernel.block}, x {kernel.shape}, n {kernel.n}, m {kernel.m}:\n{kernel.text()}\n{problem}")
    print(f"{arguments.count - failed} of {arguments.count} right, {failing} with an index out of bounds, seed {seed}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
