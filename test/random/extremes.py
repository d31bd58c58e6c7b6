#!/usr/bin/env python3
"""extremes.py: indices and divisors whose least and most values are known exactly, in arrays that fit them and in ones that are too small by one element.

Each expression is evaluated here for every thread and iteration. A check that is left out because it cannot fail is right where the array fits, and is missed where it does not:
so a range that is too narrow by 1 anywhere in the compiler shows. Every value of the 8-bit types occurs, and the least and the most ones of others.
"""
import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

from language import NAMES, Program, Translator, Typed, TypeMismatch, text_of, to_type
import library
import pool
from values import limits

BLOCK, GRID = 64, 4
THREADS = BLOCK * GRID
LOADED = ("u8", "i8", "u16", "i16", "bool", "i32", "u32")  # a number of each type for each thread
POSITIONS = {"pos_threadIdx_x": "threadIdx.x", "pos_blockIdx_x": "blockIdx.x", "pos_blockDim_x": "blockDim.x", "pos_gridDim_x": "gridDim.x"}


def lit(value): return ("lit", value, repr(value), "wi")


class Case:
    """An expression of positions, loaded numbers and up to two loop counters."""

    def __init__(self, seed):
        self.seed, self.d = seed, random.Random(f"extremes {seed}")
        d = self.d
        while True:
            self.env = {"n_" + t: Typed(t, "n_" + t) for t in LOADED}
            self.loops = []
            try:
                for _ in range(d.choice((0, 1, 1, 2))):
                    self.loop()
                self.tree = self.make(d.randint(1, 3))
                if d.random() < 0.3:
                    self.tree = ("cast", d.choice(("i32", "i64", "i8", "u8", "i16")), self.tree)
                self.code = self.python(self.tree)
                self.data = self.numbers()
                values = self.values()
            except TypeMismatch:
                continue
            self.least, self.most = (min(values), max(values)) if values else (0, -1)
            if values and self.most - self.least < 3000 and max(-self.least, self.most) < 1 << 40:
                break

    def numbers(self):
        data = {}
        for t in LOADED:
            low, high = (0, 1) if t == "bool" else limits(t)
            every = list(range(low, high + 1)) if high - low < THREADS else [low, high, low + 1, high - 1, 0, 1, *(self.d.randint(low, high) for _ in range(THREADS))][:THREADS]
            data[t] = np.array((every * THREADS)[:THREADS], library.NUMPY[t])
            self.d.shuffle(data[t])
        return data

    def loop(self):
        d, name = self.d, f"k{len(self.loops)}"
        step = d.choice((1, 1, 2, 3, 5, -1, -2, -7))
        first = d.choice((lit(d.randint(-20, 20)), ("bin", d.choice(("&", "%")), self.leaf(), lit(d.choice((1, 3, 7))))))
        span = d.choice((lit(d.randint(0, 20)), ("bin", "&", self.leaf(), lit(d.choice((1, 3, 15))))))
        stop = ("bin", "+" if step > 0 else "-", first, span)
        trees = [first, stop, lit(step)]
        t = Translator(Program([], True), self.env).range_type([Translator(Program([], True), self.env).expr(e) for e in trees])
        code = [to_type(Translator(Program([], True), self.env).expr(e), t) for e in trees]
        self.loops.append((name, trees, f"range({', '.join(code)})"))
        self.env[name] = Typed(t, name)

    def leaf(self):
        d = self.d
        counters = [n for n in self.env if n[0] == "k"]
        if counters and d.random() < 0.6:
            return ("var", d.choice(counters))
        if d.random() < 0.5:
            return ("pos", d.choice(list(POSITIONS.values())))
        return ("var", "n_" + d.choice(("u8", "i8", "u8", "i8", *LOADED)))

    def make(self, depth):
        d = self.d
        if depth == 0:
            return self.leaf()
        sub = lambda: self.make(depth - 1)
        kind = d.choice(("sum", "sum", "sum", "scale", "scale", "divide", "divide", "divide", "mask", "mask", "shift", "choose", "cond", "cast", "negate", "bits", "part"))
        if kind == "sum":
            return ("bin", d.choice("+-"), sub(), d.choice((sub(), lit(d.randint(-9, 9)))))
        if kind == "scale":
            return ("bin", "*", sub(), lit(d.choice((2, 3, -1, -3, 5))))
        if kind == "divide":
            return d.choice((("bin", d.choice(("//", "%")), sub(), lit(d.choice((1, 2, 3, 7, -2, -3, 16)))),
                             ("call", d.choice(("ceil_div", "div_trunc", "rem_trunc")), [sub(), lit(d.choice((1, 2, 3, 7, -2, -3, 16)))])))
        if kind == "mask":
            return ("bin", "&", sub(), lit(d.choice((1, 3, 6, 7, 12, 31, 255))))
        if kind == "shift":
            return ("bin", d.choice(("<<", ">>", ">>")), sub(), d.choice((lit(d.randint(0, 4)), ("bin", "&", self.leaf(), lit(d.choice((1, 3)))))))
        if kind == "choose":
            return ("call", d.choice(("min", "max")), [sub(), d.choice((sub(), lit(d.randint(-20, 20))))])
        if kind == "cond":
            return ("cond", ("bin", d.choice(("<", ">=", "==")), sub(), lit(d.randint(-5, 30))), sub(), sub())
        if kind == "cast":
            return ("cast", d.choice(("i8", "u8", "i16", "u16", "i32", "u32", "i64", "bool")), sub())
        if kind == "negate":
            return d.choice((("un", d.choice("-~"), sub()), ("call", "abs", [sub()])))
        if kind == "bits":
            return ("call", d.choice(("popc", "clz", "ctz", "ffs")), [sub()])
        return ("bin", "%", sub(), d.choice((("pos", "blockDim.x"), ("pos", "gridDim.x"), ("bin", "+", ("bin", "&", self.leaf(), lit(7)), lit(1)))))

    def python(self, tree):
        """An index expression, of type i64."""
        e = Translator(Program([], True), self.env).expr(tree)
        if e.ty == "bool" or e.ty == "u64":
            raise TypeMismatch("index")
        return to_type(e, "i64")

    def values(self):
        """Returns the value of the expression in every iteration of every thread."""
        source = self.code
        inner = " ".join(f"for {name} in {code}" for name, _, code in self.loops)
        run = eval(f"lambda {', '.join([*('n_' + t for t in LOADED), *POSITIONS])}: [{source} {inner}]" if inner else f"lambda {', '.join([*('n_' + t for t in LOADED), *POSITIONS])}: [{source}]", dict(NAMES))
        found = set()
        for thread in range(THREADS):
            numbers = [bool(self.data[t][thread]) if t == "bool" else int(self.data[t][thread]) for t in LOADED]
            found.update(run(*numbers, thread % BLOCK, thread // BLOCK, BLOCK, GRID))
        return found

    def kernels(self):
        """Returns by name: the text, whether a thread has to fail, and the length of x."""
        e, size = text_of(self.tree, 10), self.most - self.least + 1
        at = lambda shift: f"{e} - {shift}" if shift >= 0 else f"{e} + {-shift}"
        own, given, quotient = (lambda shift: f"sum += s[{at(shift)}]"), (lambda shift: f"sum += x[{at(shift)}]"), (lambda shift: f"sum += i32(100 // ({at(shift)}))")
        found = {"fits": (self.kernel(size, own(self.least), given(self.least), quotient(self.least - 1)), False, size), "below": (self.kernel(size, own(self.least + 1)), True, 1),
                 "by_0": (self.kernel(1, quotient(self.least)), True, 1)}
        if size > 1:
            found["above"] = self.kernel(size - 1, own(self.least)), True, 1
            found["above_given"] = self.kernel(1, given(self.least)), True, size - 1
        return found

    def kernel(self, size, *statements):
        lines = [f"shared s: i32[{size}]", "let t = blockIdx.x * blockDim.x + threadIdx.x"]
        lines += [f"let n_{t} = d_{t}[t]" for t in LOADED] + ["var sum = 0i32"]
        lines += [f"for {name} in range({', '.join(map(text_of, trees))}) {{" for name, trees, _ in self.loops]
        return "\n  ".join([*lines, *statements, *["}"] * len(self.loops), "r[t] = sum"])

    def text(self):
        parameters = ", ".join(["r", "x", *("d_" + t for t in LOADED)])
        return "\n".join(f"kernel {name}({parameters}) @grid({GRID}) @block({BLOCK}) {{\n  {text}\n}}" for name, (text, _, _) in self.kernels().items()) + "\n"

    def describe(self, what):
        return f"--- case {self.seed}: {text_of(self.tree)} is {self.least} to {self.most}\n{self.text()}\n{what}\n"


def run_one(context, seed):
    case, wrong = Case(seed), []
    module = context.parse(case.text())
    for name, (_, fails, count) in case.kernels().items():
        keep, message = [], None
        arrays = [(np.zeros(THREADS, np.int32), "i32"), (np.zeros(count, np.int32), "i32"), *((case.data[t], t) for t in LOADED)]
        try:
            context.launch(module, name, [library.tensor_arg(a, t, keep) for a, t in arrays])
        except library.Failure as failure:
            message = str(failure)
        if bool(message) != fails or message and not message.startswith("KJIT_ERROR_KERNEL"):
            wrong.append(f"{name}: {message or 'a thread should have failed'}")
    context.release(module)
    return ("failed", case.describe("\n".join(wrong))) if wrong else ("right", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    pool.add_options(parser, 100)
    options = parser.parse_args()
    start = lambda o: library.Library(o.libdir, o.device, ("bounds", "division"), o.debug)
    return pool.run(options, f"expressions on {options.device}", start, run_one, lambda seed, _, why: Case(seed).describe(why))


if __name__ == "__main__":
    sys.exit(main())
