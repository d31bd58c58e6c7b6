#!/usr/bin/env python3
"""thread_adjoints.py: adjoints of random kernels with shared arrays and barriers, against complex steps in Python.

The threads of a block stage values in shared arrays and load those of their neighbours: tiles in loops of run-time length, trees and scans with log(n) steps, atomic sums into shared and global arrays,
halos by block_range, local arrays, branches that all threads of a block take alike, and branches of single threads. Python runs each block as one generator for each thread, which stops at barriers,
with complex numbers, once for each element of the inputs: the imaginary part of the result is the derivative by this element.
"""
import argparse
import cmath
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

STEP = 1e-30
THREADS, BLOCKS, TILES = 8, 3, 3
# inputs, a scalar, a sum by atomics, outputs, and an array that is changed in place
FLOATS = ["a", "w", "c", "k", "g", "r", "q", "m"]
ORDER = ["a", "w", "c", "k", "p", "g", "r", "q", "m"]
NUMBERS = ", ".join(str(i) for i, name in enumerate(ORDER) if name in FLOATS)
KNOWN = {"sin": cmath.sin, "exp": cmath.exp, "sqrt": cmath.sqrt, "max": max, "min": min}


class Writer:
    """A kernel as source text in the kernel IR and in Python. All threads run the same statements between barriers, so
    all threads reach every barrier."""

    def __init__(self, draw, name):
        self.draw, self.name = draw, name
        self.kir, self.python, self.depth, self.count = [], [], 1, 0
        self.values, self.own = ["k"], []
        self.arrays = {"s": THREADS, "h": THREADS + 2, "u": THREADS}  # u: only for the loops over tiles
        self.read = set()  # shared arrays that the kernel has read since the last barrier
        self.filled = set()
        self.loops = []

    def line(self, kir, python=None):
        self.kir.append("  " * self.depth + kir)
        self.python.append("  " * self.depth + (kir if python is None else python))

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def barrier(self):
        self.line("syncthreads()", "yield")
        self.read = set()

    def leaf(self):
        draw, kind = self.draw, self.draw.random()
        shared = sorted(self.filled)
        if shared and kind < 0.45:
            array = draw.choice(shared)
            self.read.add(array)
            size = self.arrays[array]
            place = draw.choice(["t", f"(t + {draw.randint(1, 7)}) % {THREADS}", f"{THREADS - 1} - t", str(draw.randint(0, size - 1))] + [f"t + {d}" for d in range(size - THREADS + 1)])
            if self.loops:
                place = draw.choice([place, f"(t + {self.loops[-1]}) % {THREADS}", self.loops[-1]])
            return f"{array}[{place}]"
        if kind < 0.55:
            return "a[i]"
        if kind < 0.65:
            return f"a[(i * 5 + {draw.randint(0, 4)}) % {THREADS * BLOCKS}]"
        if kind < 0.72:
            return draw.choice([f"w[{draw.randint(0, 2)}]", "w[t % 3]"])
        if kind < 0.77:
            return "c[b]"
        return draw.choice(self.values)

    def value(self, depth=2):
        draw = self.draw
        if depth == 0 or draw.random() < 0.2:
            return (self.leaf(),) * 2
        x, y = self.value(depth - 1), self.value(depth - 1)
        kind = draw.choice(["+", "-", "*", "*", "/", "sin", "sqrt", "?"])
        if kind in "+-*":
            return tuple(f"({u} {kind} {v})" for u, v in zip(x, y))
        if kind == "/":
            return tuple(f"({u} / (1.5 + {v} * {v}))" for u, v in zip(x, y))
        if kind == "sqrt":
            return tuple(f"sqrt(1.25 + {u} * {u})" for u in x)
        if kind == "?":
            return f"({x[0]} < 0.3 ? {y[0]} : {x[0]})", f"({y[1]} if ({x[1]}).real < 0.3 else {x[1]})"
        return tuple(f"sin({u})" for u in x)

    def let(self, text=None):
        name, value = self.new(), text or self.value()
        self.line(f"var {name} = {value[0]} * 1.0", f"{name} = {value[1]} * 1.0")
        return name

    def store(self, array, place, kir, python=None):
        """Lets all threads store to their own elements, with a barrier if loads precede or follow."""
        if array in self.read or self.draw.random() < 0.2:
            self.barrier()
        self.line(f"{array}[{place}] = {kir}", f"{array}[{place}] = {python or kir}")
        self.barrier()
        self.filled.add(array)

    # ---- statements that all threads reach ----

    def write_let(self):
        self.values.append(self.let())

    def write_stage(self):
        value = self.let()
        self.store("s", self.draw.choice(["t", f"{THREADS - 1} - t", f"(t + 3) % {THREADS}"]), value)

    def write_halo(self):
        if "h" in self.read:
            self.barrier()
        shift, factor = self.draw.randint(-1, 0), self.let((f"k * {self.draw.uniform(-1, 1):.3f}",) * 2)
        size = self.arrays["h"]
        place = f"max(min(b * {THREADS} + e + {shift + 1} - 1, {THREADS * BLOCKS - 1}), 0)"
        self.line(f"for e in block_range({size}) {{", f"for e in range(t, {size}, {THREADS}):")
        self.line(f"  h[e] = a[{place}] * {factor} + sin(a[{place}])")
        self.line("}", "pass")
        self.barrier()
        self.filled.add("h")

    def write_tree(self):
        self.write_stage()
        op = self.draw.choice(["s[t] + s[t + d]", "s[t] * s[t + d]", "s[t] * 0.5 + sin(s[t + d])", "max"])
        kir = op if op != "max" else "s[t] < s[t + d] ? s[t + d] : s[t]"
        python = op if op != "max" else "s[t + d] if s[t].real < s[t + d].real else s[t]"
        self.line("for l in range(3) {", "for l in range(3):")
        self.line("  let d = 4 >> l", "  d = 4 >> l")
        self.line(f"  if t < d {{ s[t] = {kir} }}", f"  if t < d: s[t] = {python}")
        self.line("  syncthreads()", "  yield")
        self.line("}", "pass")
        self.read = set()

    def write_scan(self):
        self.write_stage()
        name = self.new()
        self.line("for l in range(3) {", "for l in range(3):")
        self.line(f"  var {name} = 0.0", f"  {name} = 0.0")
        self.line(f"  if t >= (1 << l) {{ {name} = s[t - (1 << l)] }}", f"  if t >= (1 << l): {name} = s[t - (1 << l)]")
        self.line("  syncthreads()", "  yield")
        self.line(f"  s[t] = s[t] {self.draw.choice(['+', '*'])} (1.0 + {name} * 0.25)", None)
        self.line("  syncthreads()", "  yield")
        self.line("}", "pass")
        self.read = set()

    def write_tiles(self):
        """A product of tiles: p determines the number of iterations."""
        if "u" in self.read:
            self.barrier()
        total, inner = self.let(("0.5", "0.5")), self.draw.random() < 0.6
        keeps = not inner and self.draw.random() < 0.7  # then it can load elements that later statements overwrite
        saved, filled = list(self.values), set(self.filled)
        self.line(f"for o in range(i32(p[24])){' @most(4)' if keeps else ''} {{", "for o in range(p[24]):")
        self.depth += 1
        self.filled = filled - {"u"} if keeps else set()
        self.loops.append("o")
        stage = self.let(tuple(f"a[(o * {THREADS} + t * 3) % {THREADS * BLOCKS}] * k + {value}" for value in self.value(1)))
        self.loops.pop()
        self.store("u", "t", stage)
        if inner:
            self.line(f"for e in range({THREADS}) {{ {total} += u[e] * w[(t + e) % 3] * u[(t + e) % {THREADS}] }}", f"for e in range({THREADS}): {total} += u[e] * w[(t + e) % 3] * u[(t + e) % {THREADS}]")
        else:
            value = self.value()
            self.line(f"{total} += u[{THREADS - 1} - t] * u[t] * {value[0]}", f"{total} += u[{THREADS - 1} - t] * u[t] * {value[1]}")
        self.barrier()
        self.depth -= 1
        self.line("}", "pass")
        self.values, self.filled = saved + [total], filled | {"u"}

    def write_bins(self):
        """Sums into shared elements by several threads."""
        value = self.let()
        self.store("s", "t", "0.25 * k" if self.draw.random() < 0.5 else "0.0")
        word, sign = self.draw.choice([("add", "+"), ("sub", "-")])
        place = self.draw.choice([f"p[i] % {THREADS}", f"t // 2", "2"])
        self.line(f"atomic_{word}(s[{place}], {value})", f"s[{place}] {sign}= {value}")
        self.barrier()

    def write_uniform_if(self):
        if self.depth > 2:
            return
        self.line("if c[b] < 0.5 {", "if c[b].real < 0.5:")
        saved, filled = list(self.values), set(self.filled)
        self.depth += 1
        self.write_stage()
        self.statement()
        self.line("", "pass")
        self.depth -= 1
        self.line("}", "pass")
        self.values, self.filled = saved, filled
        self.barrier()

    def write_thread_if(self):
        name, value = self.let((f"k * {self.draw.uniform(-1, 1):.3f}",) * 2), self.value()
        self.line(f"if t < {self.draw.randint(1, 7)} {{ {name} = {name} + {value[0]} }}".replace("{{", "{"), None)
        self.python[-1] = "  " * self.depth + self.kir[-1].strip().split("{")[0].rstrip() + f": {name} = {name} + {value[1]}"
        self.values.append(name)

    def write_local(self):
        name, other = self.new(), self.let()
        total = self.let(("0.1", "0.1"))
        self.line(f"local {name}: f64[4]", f"{name} = [0.0] * 4")
        self.line(f"for e in range(4) {{ {name}[e] = {other} * (e + 1.0) + a[(i + e) % {THREADS * BLOCKS}] }}", f"for e in range(4): {name}[e] = {other} * (e + 1.0) + a[(i + e) % {THREADS * BLOCKS}]")
        self.line(f"for e in range(1, 4) {{ {name}[e] = {name}[e] * {name}[e - 1] }}", f"for e in range(1, 4): {name}[e] = {name}[e] * {name}[e - 1]")
        self.line(f"for e in range(4) {{ {total} += {name}[e] }}", f"for e in range(4): {total} += {name}[e]")
        self.values.append(total)

    def write_sum(self):
        value = self.value()
        self.line(f"atomic_add(g[p[i]], {value[0]})", f"g[p[i]] += {value[1]}")

    def write_change(self):
        value = self.value(1)
        self.line(f"m[i] = m[i] * 0.5 + {value[0]}", f"m[i] = m[i] * 0.5 + {value[1]}")

    def statement(self):
        kinds = ["let", "stage", "halo", "tree", "scan", "tiles", "bins", "uniform_if", "thread_if", "local", "sum", "change"]
        if self.depth > 1:
            kinds = ["let", "stage", "thread_if", "sum", "bins"]
        getattr(self, "write_" + self.draw.choice(kinds))()

    def write(self):
        self.line("shared s: f64[8]", "pass")
        self.line("shared h: f64[10]", "pass")
        self.line("shared u: f64[8]", "pass")
        self.line("let t = threadIdx.x", "pass")
        self.line("let b = blockIdx.x", "pass")
        self.line("let i = b * blockDim.x + t", "i = b * 8 + t")
        self.write_stage()
        for _ in range(self.draw.randint(3, 6)):
            self.statement()
        value = self.value()
        self.line(f"r[i] = {value[0]}", f"r[i] = {value[1]}")
        value = self.value()
        self.line(f"if t == 0 {{ q[b] = {value[0]} }}", f"if t == 0: q[b] = {value[1]}")
        names = ", ".join(ORDER)
        shadows = ", ".join("d" + name for name in FLOATS)
        kir = f"kernel {self.name}({names}) {{\n" + "\n".join(self.kir) + "\n}\n"
        kir += f"kernel d_{self.name}({names}, {shadows}) {{\n  adjoint({self.name}, {NUMBERS})({names}, {shadows})\n}}\n"
        python = f"def {self.name}({names}, s, h, u, b, t):\n  k = k[0]\n" + "\n".join(self.python) + "\n  yield\n"
        return kir, python


def run_python(function, arrays):
    for b in range(BLOCKS):
        s, h, u = [None] * THREADS, [None] * (THREADS + 2), [None] * THREADS
        threads = [function(*[arrays[key] for key in ORDER], s, h, u, b, t) for t in range(THREADS)]
        while threads:
            threads = [thread for thread in threads if next(thread, "over") != "over"]


def make_arrays(rng):
    n = THREADS * BLOCKS
    shapes = {"w": 3, "c": BLOCKS, "k": 1, "g": 6, "q": BLOCKS}
    values = {name: rng.uniform(-1.2, 1.2, shapes.get(name, n)) for name in FLOATS}
    values["p"] = np.concatenate([rng.integers(0, 6, n), [TILES]]).astype(np.int32)
    return values, {name: rng.uniform(-1, 1, shapes.get(name, n)) for name in FLOATS}


def expect(function, values, shadows):
    """Returns the derivatives with respect to all inputs. An array that is only stored to keeps its derivatives. An
    array that is changed in place gets the derivatives with respect to its values before the call."""
    wanted = {}
    for name in FLOATS:
        if name in "rq":
            wanted[name] = shadows[name]
            continue
        slopes = np.zeros(values[name].shape)
        for place in range(slopes.size):
            moved = {key: array.astype(complex) if key != "p" else array for key, array in values.items()}
            moved[name][place] += STEP * 1j
            run_python(function, moved)
            slopes[place] = sum(np.sum(moved[key].imag * shadows[key]) for key in "grqm") / STEP
        wanted[name] = slopes + (0 if name in "gm" else shadows[name])
    return wanted


def run_kjit(options, kernels, folder):
    path = os.path.join(folder, "kernels.kir")
    with open(path, "w") as file:
        file.write("".join(kernel[1] for kernel in kernels))
    command = [options.kjit_run, path, "--no-cache", "--quiet", "--device", options.device, f"--checks={options.checks}"]
    for name, _, _, values, shadows in kernels:
        for kind, arrays in (("", values), ("d", shadows)):
            for key, array in arrays.items():
                if key == "k" and not kind:
                    command.append(f"--arg={name}k={float(array[0])!r}f64")
                    continue
                np.save(f"{folder}/{name}{kind}{key}.npy", array)
                command.append(f"--arg={name}{kind}{key}=@{folder}/{name}{kind}{key}.npy")
        own = [name + key for key in ORDER]
        command += ["--launch", f"{name}[{BLOCKS}, {THREADS}]({', '.join(own)})"]
        command += ["--launch", f"d_{name}[{BLOCKS}, {THREADS}]({', '.join(own + [f'{name}d{key}' for key in FLOATS])})"]
        command += [f"--save={name}d{key}={folder}/{name}{key}.out.npy" for key in FLOATS]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--checks", default="all")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    draw, rng = random.Random(options.seed), np.random.default_rng(options.seed)
    kernels, failures = [], 0
    for number in range(options.count):
        kernels.append((f"f{number}", *Writer(draw, f"f{number}").write(), *make_arrays(rng)))
    with tempfile.TemporaryDirectory() as folder:
        done = run_kjit(options, kernels, folder)
        if done.returncode or options.show:
            print("".join(kernel[1] for kernel in kernels))
        if done.returncode:
            sys.exit(f"thread_adjoints.py: seed {options.seed}\n{done.stdout}")
        for name, kir, python, values, shadows in kernels:
            space = dict(KNOWN)
            exec(python, space)
            wanted = expect(space[name], values, shadows)
            for key in FLOATS:
                have = np.load(f"{folder}/{name}{key}.out.npy")
                error = np.abs(have - wanted[key]) / (1 + np.abs(wanted[key]))
                if np.all(error <= 1e-11):
                    continue
                failures += 1
                print(f"{kir}seed {options.seed}, {name}: the derivatives by {key}, largest error {np.max(error)}, are\n{have}\nexpected\n{wanted[key]}")
    print(f"{len(kernels)} kernels, {failures} failures")
    sys.exit(failures > 0)


main()
