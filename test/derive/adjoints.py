#!/usr/bin/env python3
"""adjoints.py: adjoints of random kernels, against complex steps in Python.

A kernel has loops over a grid_range of 1 to 3 dimensions: stencils with bounds checks, clamped indices, periodic indices and interior ranges, elements through index arrays, weights in inner loops,
scalars, sums in place. A loop after a grid_sync() reads what the loop before has stored, and a loop without one reads the same inputs. Python runs the same loops with complex numbers, once for each
element of the inputs: the imaginary part of the result is the derivative by this element, without a difference.
"""
import argparse
import cmath
import itertools
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

STEP = 1e-30
NAMES = {1: ["i"], 2: ["j", "i"], 3: ["l", "j", "i"]}
FLOATS = ["a", "b", "c", "w", "g", "q", "r", "s", "m", "k", "u", "v", "z"]  # k: a scalar; u: stored by one loop and read by the next one
ORDER = ["a", "b", "c", "w", "g", "q", "p", "r", "s", "m", "k", "u", "v", "z"]
NUMBERS = ", ".join(str(i) for i, name in enumerate(ORDER) if name in FLOATS)
KNOWN = {"sin": cmath.sin, "cos": cmath.cos, "exp": cmath.exp, "tanh": cmath.tanh, "sqrt": cmath.sqrt, "f64": lambda v: v, "size": abs}


class Writer:
    """A kernel as source text in the kernel IR and in Python."""

    def __init__(self, draw, name, rank, has_sync):
        self.draw, self.name, self.rank, self.has_sync = draw, name, rank, has_sync
        self.loops = NAMES[rank]
        self.mode = draw.choice(["if", "clamp", "interior", "own", "round", "round"])
        self.near_arrays = "ab"
        self.kir, self.python, self.depth, self.count = [], [], 2, 0
        self.values, self.inner, self.is_near = ["k"], None, False

    def line(self, kir, python):
        self.kir.append("  " * self.depth + kir)
        self.python.append("  " * self.depth + python)

    def own(self):
        """Returns the index of the iteration, in both languages."""
        shift = " + 1" if self.mode == "interior" else ""
        return ", ".join(v + shift for v in self.loops)

    def near(self):
        draw, places = self.draw, []
        reach = 1 if self.rank > 1 or self.mode == "interior" else 2
        for d, v in enumerate(self.loops):
            offset = draw.randint(-reach, reach) if draw.random() < 0.6 else 0
            if self.mode == "round":
                less = f" - {-offset}" if offset < 0 else f" + {offset}"
                places.append(draw.choice([f"({v}{less}) % a.shape[{d}]", f"({v} + a.shape[{d}]{less}) % a.shape[{d}]"]))
            elif self.mode == "interior":
                places.append(f"{v} + {1 + offset}")
            elif self.mode == "clamp":
                at = f"{v} + {offset}" if offset >= 0 else f"{v} - {-offset}"
                places.append(f"max(min({at}, a.shape[{d}] - 1), 0)" if draw.random() < 0.5 else f"min(max(0, {at}), a.shape[{d}] - 1)")
            else:
                places.append(f"{v} + {offset}" if offset >= 0 else f"{v} - {-offset}")
        return ", ".join(places)

    def read(self):
        draw, kind = self.draw, self.draw.random()
        if self.inner and kind < 0.4:
            if self.mode == "interior" and draw.random() < 0.5:
                return f"a[{', '.join([*(v + ' + 1' for v in self.loops[:-1]), self.loops[-1] + ' + ' + self.inner])}]"
            if self.mode == "round" and draw.random() < 0.5:
                return f"a[{', '.join([*self.loops[:-1], f'({self.loops[-1]} + {self.inner} - 1) % a.shape[{self.rank - 1}]'])}]"
            return f"w[{self.inner}]"
        if kind < 0.45 and (self.is_near or self.mode in ("clamp", "interior", "round")):
            return f"{draw.choice(self.near_arrays)}[{self.near()}]"
        if kind < 0.55:
            return f"c[{self.own()}]"
        if kind < 0.62:
            return f"w[{draw.randint(0, 2)}]"
        if kind < 0.7:
            return f"g[p[{self.own()}]]"
        if kind < 0.76:
            return f"q[{self.loops[-1]}]"
        if kind < 0.82:
            return f"b[{self.own()}]"
        return draw.choice(self.values)

    def value(self, depth=2):
        draw = self.draw
        if depth == 0 or draw.random() < 0.2:
            return (self.read(),) * 2 if draw.random() < 0.9 else (f"{draw.uniform(-1, 1):.3f}",) * 2
        x, y = self.value(depth - 1), self.value(depth - 1)
        kind = draw.choice(["+", "-", "*", "*", "/", "sin", "cos", "tanh", "sqrt", "?"])
        if kind in "+-*":
            return tuple(f"({u} {kind} {v})" for u, v in zip(x, y))
        if kind == "/":
            return tuple(f"({u} / (1.5 + {v} * {v}))" for u, v in zip(x, y))
        if kind == "sqrt":
            return tuple(f"sqrt(1.25 + {u} * {u})" for u in x)
        if kind == "?":
            z = self.value(0)
            return f"({x[0]} < {z[0]} ? {y[0]} : {z[0]})", f"({y[1]} if ({x[1]}).real < ({z[1]}).real else {z[1]})"
        return tuple(f"{kind}({u})" for u in x)

    def block(self, count):
        saved = list(self.values)
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.line("", "pass")
        self.depth -= 1
        self.values = saved

    def statement(self):
        kinds = ["let", "let", "if", "store", "store", "sum"] + (["for", "total", "while", "change"] if self.depth < 5 else [])
        getattr(self, "write_" + self.draw.choice(kinds))()

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def write_let(self):
        name, value = self.new(), self.value()
        self.line(f"var {name} = {value[0]} * 1.0", f"{name} = {value[1]} * 1.0")
        self.values.append(name)

    def write_if(self):
        x, y, name = self.value(1), self.value(0), self.new()
        self.line(f"var {name} = {y[0]} * 1.0", f"{name} = {y[1]} * 1.0")
        self.line(f"if {x[0]} < {y[0]} {{", f"if ({x[1]}).real < ({y[1]}).real:")
        self.values.append(name)
        self.block(self.draw.randint(1, 2))
        self.depth += 1
        value = self.value()
        self.line(f"{name} = {value[0]}", f"{name} = {value[1]}")
        self.depth -= 1
        self.line("}", "pass")

    def write_for(self):
        name, outer = self.new(), self.inner
        if outer:
            return
        self.inner = "t"
        self.line(f"var {name} = 0.5", f"{name} = 0.5")
        self.line("for t in range(3) {", "for t in range(3):")
        value = self.value()
        self.line(f"  {name} = {name} * 0.7 + {value[0]}", f"  {name} = {name} * 0.7 + {value[1]}")
        self.line("}", "")
        self.inner = outer
        self.values.append(name)

    def write_total(self):
        """A sum over a loop whose length is a run-time number."""
        name, outer = self.new(), self.inner
        if outer:
            return
        self.inner = "t"
        first, step = self.draw.choice([(0, 1), (1, 1), (0, 2)])
        self.line(f"var {name} = 0.25", f"{name} = 0.25")
        self.line(f"for t in range({first}, i32(w.size), {step}) {{", f"for t in range({first}, w.size, {step}):")
        value = self.value()
        self.line(f"  {name} += {value[0]}", f"  {name} += {value[1]}")
        self.line("}", "")
        self.inner = outer
        self.values.append(name)

    def write_while(self):
        name, value = self.new(), self.value()
        self.line(f"var {name} = {value[0]} + 4.0", f"{name} = {value[1]} + 4.0")
        more = self.value(1)
        self.line(f"while {name} > 1.0 @most(40) {{ {name} = {name} * 0.5 + 0.1 * sin({more[0]}) }}", f"while {name}.real > 1.0: {name} = {name} * 0.5 + 0.1 * sin({more[1]})")
        self.values.append(name)

    def write_store(self):
        value = self.value()
        self.line(f"{self.result}[{self.own()}] = {value[0]}", f"{self.result}[{self.own()}] = {value[1]}")

    def write_sum(self):
        value, (op, word) = self.value(), self.draw.choice([("+", "add"), ("-", "sub")])
        kir = f"s[{self.own()}] {op}= {value[0]}" if self.draw.random() < 0.7 else f"atomic_{word}(s[{self.own()}], {value[0]})"
        self.line(kir, f"s[{self.own()}] {op}= {value[1]}")

    def write_change(self):
        if not self.changes:
            return
        value = self.value(1)
        self.line(f"m[{self.own()}] = m[{self.own()}] * 0.5 + {value[0]}", f"m[{self.own()}] = m[{self.own()}] * 0.5 + {value[1]}")

    def write_body(self, result):
        """Writes the body of a loop over the elements of a. It stores to `result` last."""
        draw = self.draw
        if self.mode == "if":
            reach = 1 if self.rank > 1 else 2
            checks = " and ".join(f"{v} >= {reach} and {v} < a.shape[{d}] - {reach}" for d, v in enumerate(self.loops))
            self.line(f"if {checks} {{", f"if {checks}:")
            self.is_near = True
            self.block(draw.randint(2, 4))
            self.is_near = False
            self.line("} else {", "else:")
            self.block(1)
            self.line("}", "pass")
        self.depth -= 1
        self.block(draw.randint(2, 4))
        self.depth += 1
        value = self.value()
        self.line(f"{result}[{self.own()}] = {value[0]}", f"{result}[{self.own()}] = {value[1]}")

    def write_loop(self, result):
        less = " - 2" if self.mode == "interior" else ""
        ranges, loops = ", ".join(f"a.shape[{d}]{less}" for d in range(self.rank)), ", ".join(self.loops)
        self.depth = 1
        self.line(f"for {loops} in grid_range({ranges}) {{", f"for {loops if self.rank > 1 else 'i,'} in itertools.product(*[range(n{less}) for n in a.shape]):")
        self.depth = 2
        self.write_body(result)
        self.depth = 1
        self.line("}", "")

    def write_later(self):
        """Writes a loop that reads the elements of u, which the previous loop has stored."""
        self.line("grid_sync()", "u += h")
        self.near_arrays, self.values, self.result = "abuu", ["k"], "v"
        self.write_loop("v")

    def write_beside(self):
        """Writes a loop that can run at the same time. It has another extent, and its inputs are also read by the other
        loops."""
        scale, other = self.draw.uniform(-1, 1), self.draw.choice(["a[o]", "c[o]", "b[o] * a[(o + 1) % a.shape[0]]"] if self.rank == 1 else ["k", "w[1]"])
        head = "z.shape[0]" if self.rank > 1 else "a.shape[0]"
        self.line(f"for o in grid_range({head}) {{", f"for o in range({head}):")
        self.line(f"  z[o] = q[o] * sin(q[o] * {scale:.3f} + w[0]) * {other}", f"  z[o] = q[o] * sin(q[o] * {scale:.3f} + w[0]) * {other}")
        self.line("}", "")

    def write(self):
        draw = self.draw
        is_two = self.has_sync and draw.random() < 0.5
        self.changes = not is_two and draw.random() < 0.3
        self.result = "u" if is_two else "r"
        self.write_loop(self.result)
        if is_two:
            self.write_later()
        if draw.random() < 0.4:
            self.write_beside()
        shadows, names = ", ".join("d" + name for name in FLOATS), ", ".join(ORDER)
        kir = f"kernel {self.name}({names}) {{\n" + "\n".join(self.kir) + "\n}\n"
        kir += f"kernel d_{self.name}({names}, {shadows}) {{\n  adjoint({self.name}, {NUMBERS})({names}, {shadows})\n}}\n"
        python = f"def {self.name}({names}, h):\n  k = k[0]\n" + "\n".join(self.python) + "\n"
        return kir, python


def draw_extents(draw, rank):
    """Short arrays, in which two offsets can refer to one element."""
    return tuple(draw.choice([1, 2, 3, 4, 5] if rank > 1 else [1, 2, 3, 5, 7]) for _ in range(rank))


def make_arrays(rng, shape):
    shapes = {"w": (3,), "g": (6,), "q": (max(shape) + 1,), "z": (max(shape) + 1,), "k": (1,)}
    values = {name: rng.uniform(-1.5, 1.5, shapes.get(name, shape)) for name in FLOATS}
    values["p"] = rng.integers(0, 6, shape).astype(np.int32)
    shadows = {name: rng.uniform(-1, 1, shapes.get(name, shape)) for name in FLOATS}
    return values, shadows


def expect(function, values, shadows):
    """Returns the derivatives with respect to all inputs. An array that is only stored to keeps its derivatives. An
    array that is changed in place gets the derivatives with respect to its values before the call. The derivatives for
    u are with respect to its elements between the loops, because h is added there."""
    outputs, wanted = ("r", "s", "m", "u", "v", "z"), {}
    for name in FLOATS:
        if name in ("r", "v", "z"):
            wanted[name] = shadows[name]
            continue
        slopes = np.zeros(values[name].shape)
        for place in np.ndindex(*slopes.shape):
            moved = {key: array.astype(complex) if key != "p" else array for key, array in values.items()}
            h = np.zeros(values["u"].shape, complex)
            (h if name == "u" else moved[name])[place] += STEP * 1j
            function(*[moved[key] for key in ORDER], h)
            slopes[place] = sum(np.sum(moved[key].imag * shadows[key]) for key in outputs) / STEP
        wanted[name] = slopes + (0 if name in outputs else shadows[name])
        if name == "u" and "u += h" not in function.source:
            wanted[name] = shadows[name]
    return wanted


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
    kernels = []
    for number in range(options.count):
        rank = draw.randint(1, 3)
        written = Writer(draw, f"f{number}", rank, options.checks == "none").write()
        kernels.append((f"f{number}", *written, *make_arrays(rng, draw_extents(draw, rank))))
    source = "".join(kernel[1] for kernel in kernels)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.kir")
        with open(path, "w") as file:
            file.write(source)
        command = [options.kjit_run, path, "--no-cache", "--quiet", "--device", options.device, f"--checks={options.checks}"]
        for name, _, _, values, shadows in kernels:
            for kind, arrays in (("", values), ("d", shadows)):
                for key, array in arrays.items():
                    if key == "k" and not kind:
                        command.append(f"--arg={name}k={array[0]!r}f64".replace("np.float64(", "").replace(")", ""))
                        continue
                    np.save(f"{folder}/{name}{kind}{key}.npy", array)
                    command.append(f"--arg={name}{kind}{key}=@{folder}/{name}{kind}{key}.npy")
            own = [name + key for key in ORDER]
            command += ["--launch", f"{name}({', '.join(own)})"]
            command += ["--launch", f"d_{name}({', '.join(own + [f'{name}d{key}' for key in FLOATS])})"]
            command += [f"--save={name}d{key}={folder}/{name}{key}.out.npy" for key in FLOATS]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or options.show:
            print(source)
        if done.returncode:
            sys.exit(f"adjoints.py: seed {options.seed}\n{done.stdout}")
        for name, kir, python, values, shadows in kernels:
            space = {**KNOWN, "itertools": itertools, "max": max, "min": min}
            exec(python, space)
            space[name].source = python
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
