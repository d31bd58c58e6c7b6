#!/usr/bin/env python3
"""functions.py: derivatives of random funcs, against complex steps in Python.

A func has ifs, loops whose trips a number decides, breaks, continues, early returns, calls, tuples, vectors, structs, arrays of the thread and arrays that it is handed. Statements
anywhere in it read and change these arrays: elements, fields, lanes, parts of an array that a call changes, elements at an index that another array holds. Python evaluates the same
func with complex numbers: the imaginary part of f(x + i h) is h f'(x), without a difference. Complex numbers are compared by their real parts.
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
HEADER = """struct pair { a: f64; n: i32; b: f64 }
func twice(v) { return v + v * v }
func early(v, w) {
  if v > w { return v * w }
  let u = sin(v - w)
  if u > 0.5 { return u }
  return u * w + v
}
func steep(v, w) @jvp(steep_rule) { return tanh(v) * w }
func steep_rule(v, w, dv, dw) {
  let t = tanh(v)
  return (steep(v, w), (1.0 - t * t) * w * dv + t * dw)
}
func wave(v) @jvp(wave_rule) @vjp(wave_back) { return sin(v) }
func wave_rule(v, dv) { return (sin(v), cos(v) * dv) }
func wave_back(v, dr) { return (sin(v), cos(v) * dr) }
func both(v, w) { return (v * w, cos(v) + w) }
func fill(p, v) {
  for i in range(p.shape[0]) @most(4) { p[i] = v * f64(i) + p[i] * 0.5 }
}
func mix(p, v) {
  for i in range(1, p.shape[0]) @most(4) {
    p[i] = tanh(p[i - 1] * v) + 0.5 * p[i]
    if p[i] > 0.75 { p[i - 1] = p[i] * p[i - 1] }
  }
}
"""


def real(v):
    return v.real


def maximum(a, b):
    return a if real(a) > real(b) else b


def minimum(a, b):
    return a if real(a) < real(b) else b


def absolute(a):
    return a if real(a) > 0 else -a


def early(v, w):
    if real(v) > real(w):
        return v * w
    u = cmath.sin(v - w)
    return u if real(u) > 0.5 else u * w + v


def fill(p, v):
    for i in range(len(p)):
        p[i] = v * i + p[i] * 0.5


def mix(p, v):
    for i in range(1, len(p)):
        p[i] = cmath.tanh(p[i - 1] * v) + 0.5 * p[i]
        if real(p[i]) > 0.75:
            p[i - 1] = p[i] * p[i - 1]


class Part:
    """A part of a list, as the kernel IR slices an array: a store changes the list."""

    def __init__(self, of, first):
        self.of, self.first = of, first

    def __len__(self):
        return len(self.of) - self.first

    def __getitem__(self, i):
        return self.of[self.first + i]

    def __setitem__(self, i, value):
        self.of[self.first + i] = value


KNOWN = {
    "sin": cmath.sin, "cos": cmath.cos, "tanh": cmath.tanh, "exp": cmath.exp, "sqrt": cmath.sqrt, "log": cmath.log, "max": maximum, "min": minimum, "abs": absolute,
    "twice": lambda v: v + v * v, "early": early, "wave": cmath.sin, "steep": lambda v, w: cmath.tanh(v) * w, "both": lambda v, w: (v * w, cmath.cos(v) + w), "fill": fill, "mix": mix, "Part": Part, "real": real, "f64": lambda v: v,
}  # fmt: skip


class Writer:
    """A func as source text in the kernel IR and in Python, line by line."""

    def __init__(self, draw, name, is_reverse):
        self.draw, self.name, self.is_reverse = draw, name, is_reverse
        self.kir, self.python, self.depth, self.loops, self.count = [], [], 1, 0, 0
        self.names, self.indices, self.has_arrays = ["x", "y"], ["n"], False

    def line(self, kir, python):
        self.kir.append("  " * self.depth + kir)
        self.python.append("  " * self.depth + python)

    def new(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def value(self, depth=2):
        """Returns (kernel IR, Python) for an expression whose value stays small."""
        d = self.draw
        if depth == 0 or d.random() < 0.25:
            if self.has_arrays and d.random() < 0.3:
                return self.element()
            name = d.choice(self.names)
            return (name, name) if d.random() < 0.85 else (f"{d.uniform(-2, 2):.3f}",) * 2
        a, b = self.value(depth - 1), self.value(depth - 1)
        kind = d.choice(["+", "-", "*", "/", "sin", "cos", "tanh", "exp", "sqrt", "log", "max", "min", "abs", "?", "twice", "early", "steep", "wave", "index", "cube", "select"])
        if kind in "+-*":
            return tuple(f"({u} {kind} {v})" for u, v in zip(a, b))
        if kind == "/":
            return tuple(f"({u} / (1.5 + {v} * {v}))" for u, v in zip(a, b))
        if kind in ("sin", "cos", "tanh", "wave"):
            return tuple(f"{kind}({u})" for u in a)
        if kind == "exp":
            return tuple(f"exp(tanh({u}))" for u in a)
        if kind in ("sqrt", "log"):
            return tuple(f"{kind}(1.25 + {u} * {u})" for u in a)
        if kind == "abs":
            return tuple(f"abs({u})" for u in a)
        if kind in ("max", "min", "early", "steep"):
            return tuple(f"{kind}({u}, {v})" for u, v in zip(a, b))
        if kind == "twice":
            return tuple(f"twice(tanh({u}))" for u in a)
        if kind == "cube":
            return tuple(f"tanh({u}) ** 3" for u in a)
        if kind == "select":
            return f"select({a[0]} < {b[0]}, {b[0]}, {a[0]} * 0.5)", f"({b[1]} if real({a[1]}) < real({b[1]}) else {a[1]} * 0.5)"
        if kind == "index":
            index = d.choice(self.indices)
            return f"({a[0]} * f64({index} % 3))", f"({a[1]} * ({index} % 3))"
        c = self.value(depth - 1)
        return f"({a[0]} < {b[0]} ? {c[0]} : {a[0]})", f"({c[1]} if real({a[1]}) < real({b[1]}) else {a[1]})"

    def index(self, most):
        """The same text is an index in both languages."""
        if self.has_arrays and most == 4 and self.draw.random() < 0.3:
            return f"p0[{self.index(3)}]"
        return f"({self.draw.choice(self.indices)} + {self.draw.randint(0, 3)}) % {most}"

    def element(self):
        """Returns a float in one of the arrays: an element, a field or a lane of a vector."""
        kind = self.draw.choice("aazzmqw")
        if kind in "az":
            return (f"a0[{self.index(4)}]" if kind == "a" else f"z[{self.index(2)}]",) * 2
        if kind == "m":
            i, j = self.index(2), self.index(3)
            return f"m0[{i}, {j}]", f"m0[{i}][{j}]"
        i, part = self.index(2), self.draw.randint(0, 1)
        return f"{kind}0[{i}].{('ab' if kind == 'q' else 'xy')[part]}", f"{kind}0[{i}][{part}]"

    def small(self):
        """Returns a value that a loop can store to an array repeatedly."""
        a, b = self.value(1), self.element()
        return self.draw.choice([tuple(f"tanh({u})" for u in a), tuple(f"({v} * 0.5 + sin({u}))" for u, v in zip(a, b)), tuple(f"({v} * 0.25 + tanh({u} * {v}))" for u, v in zip(a, b))])

    def condition(self):
        if self.draw.random() < 0.4:
            index, number = self.draw.choice(self.indices), self.draw.randint(0, 2)
            return f"{index} % 3 == {number}", f"{index} % 3 == {number}"
        a, b = self.value(1), self.value(1)
        return f"{a[0]} > {b[0]}", f"real({a[1]}) > real({b[1]})"

    def block(self, count):
        saved, outer = list(self.names), list(self.indices)
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.line("", "pass")
        self.depth -= 1
        self.names, self.indices = saved, outer

    def statement(self):
        d = self.draw
        kinds = ["assign"] * 3 + ["let", "swap", "if", "if"] + (["for", "while", "local", "tuple", "vector", "struct", "call"] if self.depth < 4 else [])
        kinds += ["element", "element", "exchange", "permute", "part", "sweep"] if self.has_arrays else []
        kinds += ["break", "continue"] if self.loops else []
        kinds += ["return"] if self.depth > 1 and d.random() < 0.3 else []
        getattr(self, "write_" + d.choice(kinds))()

    def variables(self):
        return [name for name in self.names if name.startswith("v")]

    def write_assign(self):
        name, value = self.draw.choice(self.variables()), self.value()
        self.line(f"{name} = {value[0]}", f"{name} = {value[1]}")

    def write_let(self):
        name, value = self.new("v"), self.value()
        self.line(f"var {name} = f64({value[0]})", f"{name} = {value[1]}")
        self.names.append(name)

    def write_swap(self):
        a, b, t = self.draw.choice(self.variables()), self.draw.choice(self.variables()), self.new("t")
        self.line(f"let {t} = {a}", f"{t} = {a}")
        self.line(f"{a} = {b}", f"{a} = {b}")
        self.line(f"{b} = {t}", f"{b} = {t}")

    def write_if(self):
        condition = self.condition()
        self.line(f"if {condition[0]} {{", f"if {condition[1]}:")
        self.block(self.draw.randint(1, 3))
        self.line("} else {", "else:")
        self.block(self.draw.randint(0, 2))
        self.line("}", "pass")

    def keep(self, head):
        """Lets some loops without an inner loop keep their values. head: the loop's line in self.kir."""
        inner = "".join(self.kir[head + 1 :])
        if self.is_reverse and not any(word in inner for word in ("for ", "while ", "fill(", "mix(")) and self.draw.random() < 0.5:
            self.kir[head] = self.kir[head][:-1] + "@keep {"

    def write_for(self):
        index, trips = self.new("i"), self.draw.choice(["n", "3", "n + 2"])
        most = " @most(6)" if self.is_reverse and trips != "3" else ""
        self.line(f"for {index} in range({trips}){most} {{", f"for {index} in range({trips}):")
        self.loops += 1
        self.indices.append(index)
        head = len(self.kir) - 1
        self.block(self.draw.randint(1, 3))
        self.keep(head)
        self.indices.remove(index)
        self.loops -= 1
        self.line("}", "pass")

    def write_while(self):
        """Writes a loop that ends, because each iteration adds to the counter first. A value determines the number of
        iterations."""
        index, value = self.new("k"), self.value(1)
        self.line(f"var {index} = 0", f"{index} = 0")
        most = " @most(4)" if self.is_reverse else ""
        self.line(f"while {index} < 4 and {value[0]} < 1.5{most} {{", f"while {index} < 4 and real({value[1]}) < 1.5:")
        head = len(self.kir) - 1
        self.line(f"  {index} += 1", f"  {index} += 1")
        self.loops += 1
        self.indices.append(index)
        self.block(self.draw.randint(1, 3))
        self.keep(head)
        self.indices.remove(index)
        self.loops -= 1
        self.line("}", "pass")

    def write_local(self):
        name, place = self.new("a"), self.draw.choice(self.indices)
        self.line(f"local {name}: f64[3]", f"{name} = [0] * 3")
        for i in range(3):
            value = self.value(1)
            self.line(f"{name}[{i}] = {value[0]}", f"{name}[{i}] = {value[1]}")
        if self.draw.random() < 0.5:
            value = self.value(1)
            self.line(f"fill({name}, {value[0]})", f"fill({name}, {value[1]})")
        value = self.value(1)
        self.line(f"{name}[{place} % 3] += {value[0]}", f"{name}[{place} % 3] += {value[1]}")
        to = self.draw.choice(self.variables())
        self.line(f"{to} = {name}[({place} + 1) % 3] * {name}[{place} % 3]", f"{to} = {name}[({place} + 1) % 3] * {name}[{place} % 3]")

    def write_arrays(self):
        """Arrays that live as long as the func. p0 contains indices."""
        self.line("local a0: f64[4]", "a0 = [0] * 4")
        self.line("local p0: i32[3]", f"p0 = {(order := self.draw.sample(range(4), 3))}")
        self.line("local m0: f64[2, 3]", "m0 = [[0] * 3, [0] * 3]")
        self.line("local q0: pair[2]", "q0 = [0] * 2")
        self.line("local w0: f64x2[2]", "w0 = [0] * 2")
        for i in range(4):
            value = self.value(1)
            self.line(f"a0[{i}] = {value[0]}", f"a0[{i}] = {value[1]}")
        for i in range(3):
            self.line(f"p0[{i}] = {order[i]}", "pass")
            self.line(f"m0[0, {i}] = x * {i}.5", f"m0[0][{i}] = x * {i}.5")
            self.line(f"m0[1, {i}] = y - {i}.25", f"m0[1][{i}] = y - {i}.25")
        for i in range(2):
            a, b = self.value(1), self.value(1)
            self.line(f"q0[{i}] = pair({a[0]}, {i}, {b[0]})", f"q0[{i}] = [{a[1]}, {b[1]}]")
            self.line(f"w0[{i}] = f64x2({b[0]}, {a[0]})", f"w0[{i}] = [{b[1]}, {a[1]}]")
        self.has_arrays = True

    def write_element(self):
        to, value = self.element(), self.small()
        self.line(f"{to[0]} = {value[0]}", f"{to[1]} = {value[1]}")

    def write_exchange(self):
        a, b, t = self.element(), self.element(), self.new("t")
        self.line(f"let {t} = {a[0]}", f"{t} = {a[1]}")
        self.line(f"{a[0]} = {b[0]}", f"{a[1]} = {b[1]}")
        self.line(f"{b[0]} = {t}", f"{b[1]} = {t}")

    def write_permute(self):
        a, b, t = self.index(3), self.index(3), self.new("t")
        self.line(f"let {t} = p0[{a}]", f"{t} = p0[{a}]")
        self.line(f"p0[{a}] = p0[{b}]", f"p0[{a}] = p0[{b}]")
        self.line(f"p0[{b}] = {t}", f"p0[{b}] = {t}")

    def write_part(self):
        name, value = self.draw.choice(["fill", "mix"]), self.value(1)
        first = f"({self.draw.choice(self.indices)} + {self.draw.randint(0, 1)}) % 3"
        self.line(f"{name}(a0[{first}:], tanh({value[0]}))", f"{name}(Part(a0, {first}), tanh({value[1]}))")

    def write_sweep(self):
        """A recurrence over an array's elements, in either direction."""
        i, value = self.new("i"), self.value(1)
        head = self.draw.choice([f"for {i} in range(1, 4)", f"for {i} in range(3, 0, -1)"])
        self.line(f"{head} {{", f"{head}:")
        for side in 0, 1:
            text = f"  a0[{i}] = a0[{i} - 1] * 0.5 + tanh({value[side]} * a0[{i}])"
            (self.kir, self.python)[side].append("  " * self.depth + text)
        self.line("}", "pass")

    def write_tuple(self):
        name, a, b = self.new("p"), self.value(1), self.value(1)
        to = self.draw.choice(self.variables())
        self.line(f"let {name} = both({a[0]}, {b[0]})", f"{name} = both({a[1]}, {b[1]})")
        self.line(f"{to} = {name}[0] - {name}[1] * 0.5", f"{to} = {name}[0] - {name}[1] * 0.5")

    def write_vector(self):
        name, a, b, c = self.new("w"), self.value(1), self.value(1), self.value(1)
        to = self.draw.choice(self.variables())
        self.line(f"var {name} = f64x2({a[0]}, {b[0]})", f"{name} = [{a[1]}, {b[1]}]")
        self.line(f"{name} = {name} * f64x2({c[0]}, 0.5) / (1.5 + {name} * {name}) + {name}.yx", f"{name} = [v * c / (1.5 + v * v) + o for v, c, o in zip({name}, [{c[1]}, 0.5], {name}[::-1])]")
        self.line(f"{name}.x = sin({name}.y)", f"{name}[0] = sin({name}[1])")
        self.line(f"{to} = {name}.x + {name}.y", f"{to} = {name}[0] + {name}[1]")

    def write_struct(self):
        name, a, b, c = self.new("s"), self.value(1), self.value(1), self.value(1)
        to = self.draw.choice(self.variables())
        self.line(f"var {name} = pair({a[0]}, 2, {b[0]})", f"{name} = [{a[1]}, {b[1]}]")
        self.line(f"{name}.b = {name}.a * {c[0]} + {name}.b", f"{name}[1] = {name}[0] * {c[1]} + {name}[1]")
        self.line(f"{to} = {name}.b * f64({name}.n) + {name}.a", f"{to} = {name}[1] * 2 + {name}[0]")

    def write_call(self):
        value, index = self.value(1), self.draw.choice(self.indices)
        to = self.draw.choice(self.variables())
        self.line(f"z[{index} % 2] = z[{index} % 2] * 0.5 + {value[0]}", f"z[{index} % 2] = z[{index} % 2] * 0.5 + {value[1]}")
        self.line(f"{to} = {to} * 0.5 + sin(z[1])", f"{to} = {to} * 0.5 + sin(z[1])")

    def write_break(self):
        condition = self.condition()
        self.line(f"if {condition[0]} {{ break }}", f"if {condition[1]}: break")

    def write_continue(self):
        condition = self.condition()
        self.line(f"if {condition[0]} {{ continue }}", f"if {condition[1]}: continue")

    def write_return(self):
        condition, value = self.condition(), self.value()
        self.line(f"if {condition[0]} {{ return f64({value[0]}) }}", f"if {condition[1]}: return {value[1]}")

    def write(self, count):
        self.depth = 1
        self.line("var v0 = x * 1.0", "v0 = x * 1.0")
        self.names.append("v0")
        if self.draw.random() < 0.7:
            self.write_arrays()
        for _ in range(count):
            self.statement()
        total = " + ".join(self.variables())
        if self.has_arrays:
            self.line("let q = a0[1] + a0[p0[0]] * m0[0, 1] + m0[1, 2] + q0[1].a * w0[0].y", "q = a0[1] + a0[p0[0]] * m0[0][1] + m0[1][2] + q0[1][0] * w0[0][1]")
            total += " + q"
        self.line(f"return {total} + z[0]", f"return {total} + z[0]")
        return f"func {self.name}(x: f64, y: f64, n: i32, z) {{\n" + "\n".join(self.kir) + "\n}\n", f"def {self.name}(x, y, n, z):\n" + "\n".join(self.python) + "\n"


def make_kernel(names, is_reverse):
    """Every second func gets thread arrays for z and for its derivative; the others get parts of arrays in memory."""
    lines = ["kernel derivatives(x, n, zs, dzs, r) {", "  for i in grid_range(x.shape[0]) {", "    local tz: f64[2]", "    local tdz: f64[2]"]
    for j, name in enumerate(names):
        z, dz = ("tz", "tdz") if j % 2 else (f"zs[i, {j}]", f"dzs[i, {j}]")
        at = (lambda array, k: f"{array}[{k}]") if j % 2 else (lambda array, k: f"{array[:-1]}, {k}]")
        lines += [f"    {at(z, k)} = x[i, {2 + k}]" for k in range(2)] + [f"    {at(dz, k)} = x[i, {6 + k}]" for k in range(2)]
        handed = f"x[i, 0], x[i, 1], n[i], {z}, x[i, 4]"
        lines += [f"    let p{j} = vjp({name})({handed}, {dz})" if is_reverse else f"    let p{j} = jvp({name})({handed}, x[i, 5], {dz})"]
        values = [f"p{j}[0]", f"p{j}[1]", at(z, 0), at(z, 1), at(dz, 0), at(dz, 1)] + ([f"p{j}[2]"] if is_reverse else [])
        lines += [f"    r[i, {j}, {k}] = {value}" for k, value in enumerate(values)]
    return "\n".join([*lines, "  }", "}", ""])


LANES = 3


def make_interleaved_kernel(names, is_reverse, count):
    """Runs each func at several points, with one thread's arrays."""
    lines = ["kernel derivatives(x, n, zs, dzs, r) {", "  for i in grid_range(x.shape[0]) {", "    let trips = n[i]"]
    results = 7 if is_reverse else 6
    for j, name in enumerate(names):
        lines += [f"    local {a}{j}: f64[{LANES}, {width}]" for a, width in (("z", 2), ("dz", 2), ("o", results))]
        lines += [f"    for l in range({LANES}) @interleave {{", f"      let at = (i + l) % {count}"]
        lines += [f"      {a}{j}[l, {k}] = x[at, {first + k}]" for a, first in (("z", 2), ("dz", 6)) for k in range(2)]
        handed = f"x[at, 0], x[at, 1], trips, z{j}[l], x[at, 4]"
        lines += [f"      let p = vjp({name})({handed}, dz{j}[l])" if is_reverse else f"      let p = jvp({name})({handed}, x[at, 5], dz{j}[l])"]
        values = ["p[0]", "p[1]", *[f"{a}{j}[l, {k}]" for a in ("z", "dz") for k in range(2)]] + (["p[2]"] if is_reverse else [])
        lines += [f"      o{j}[l, {k}] = {value}" for k, value in enumerate(values)] + ["    }"]
        lines += [f"    for l in range({LANES}) {{ for k in range({results}) {{ r[i, {j}, l * {results} + k] = o{j}[l, k] }} }}"]
    return "\n".join([*lines, "  }", "}", ""])


def expect_reverse(function, row, n):
    """Differentiates with respect to x, y and z in turn. Their derivatives determine the weights of the result and of
    z."""
    results = [expect(function, np.concatenate([row[:4], np.eye(4)[k]]), n) for k in range(4)]
    slopes = [row[4] * r[1] + row[6] * r[4] + row[7] * r[5] for r in results]
    return [results[0][0], slopes[0], *results[0][2:4], *slopes[2:], slopes[1]]


def expect(function, row, n):
    """Returns the result and its derivative, z, and the derivatives of z."""
    moved = [complex(v, STEP * t) for v, t in zip(row[:4], row[4:])]
    z = moved[2:]
    try:
        value = complex(function(moved[0], moved[1], n, z))
    except OverflowError:
        value = complex(np.nan, np.nan)  # the number is too large to compare
    z = [complex(v) for v in z]
    return [value.real, value.imag / STEP, *[v.real for v in z], *[v.imag / STEP for v in z]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--interleave", action="store_true", help="several points of a thread side by side")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    draw, rng = random.Random(options.seed), np.random.default_rng(options.seed)
    written = [Writer(draw, f"f{i}", options.reverse).write(draw.randint(3, 9)) for i in range(options.count)]
    names = [f"f{i}" for i in range(options.count)]
    space = dict(KNOWN)
    for _, python in written:
        exec(python, space)
    kernel = make_interleaved_kernel(names, options.reverse, 12) if options.interleave else make_kernel(names, options.reverse)
    source = HEADER + "".join(kir for kir, _ in written) + kernel
    lanes, results = LANES if options.interleave else 1, 7 if options.reverse else 6
    points, n = rng.uniform(-1.5, 1.5, (12, 8)), rng.integers(0, 5, 12).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "functions.kir")
        with open(path, "w") as file:
            file.write(source)
        arrays = {"x": points, "n": n, "zs": np.zeros((12, len(names), 2)), "dzs": np.zeros((12, len(names), 2)), "r": np.zeros((12, len(names), lanes * results))}
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        checks = ["--checks=usual,uninitialized"] if options.device == "cpu" else []
        command = [options.kjit_run, path, "--no-cache", "--quiet", *checks, "--device", options.device, *[f"--arg={name}=@{folder}/{name}.npy" for name in arrays]]
        done = subprocess.run([*command, f"--save=r={folder}/out.npy"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or options.show:
            print(source)
        if done.returncode:
            sys.exit(f"functions.py: seed {options.seed}, exit status {done.returncode}\n{done.stdout}")
        have = np.load(f"{folder}/out.npy")
    failures = 0
    for j, name in enumerate(names):
        judge = expect_reverse if options.reverse else expect
        want = np.array([sum([judge(space[name], points[(i + l) % 12], int(n[i])) for l in range(lanes)], []) for i in range(12)])
        error = np.where(np.isnan(want), 0, np.abs(have[:, j] - want) / (1 + np.abs(want)))
        if not np.all(error <= 1e-10):
            failures += 1
            i = int(np.argmax(np.max(np.where(np.isnan(error), np.inf, error), 1)))
            print(written[j][0], f"seed {options.seed}, {name} at {points[i].tolist()}, n = {n[i]}: {have[i, j].tolist()}, expected {want[i].tolist()}", sep="\n")
    print(f"{len(names)} funcs, {failures} failures")
    sys.exit(failures > 0)


main()
