#!/usr/bin/env python3
"""known.py: random expressions whose inputs are known at different times must have the same bits each time.

Each expression is computed from scalar parameters, and again with its inputs as literals, as const parameters and as constants of the module: one of numbers, and one with vectors,
complex numbers, structs and tuples in it. An expression of integers is also an extent, of a grid_range, of @grid and of a shared array, which the host evaluates before the launch:
compared with what the kernel makes of it. A math function, of literals without a type too, is compared with numpy's, which has more bits.
known.py --count 1000 --seed S: cases S, S+1, ...; --seed N --count 1 repeats one.
"""
import argparse
import math
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

from generate import TIES
from language import TypeMismatch, arithmetic, is_float, promote
import library
from parts import PART
import pool
from values import BITS, FLOATS, INTEGERS, LEAST, MOST, PRECISION, limits, literal_text, of_bits

FORMAT = {"f16": "<e", "f32": "<f", "f64": "<d"}
WORD = {16: "u16", 32: "u32", 64: "u64"}
NANS = {"f16": (0x7E00, 0xFE00, 0x7E01, 0xFF55), "bf16": (0x7FC0, 0xFFC0, 0x7FC1, 0xFFD5), "f32": (0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFD55555),
        "f64": (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1, 0xFFF8123456789ABC)}


def bits_of(value, t):
    """Returns the nearest float's bits. For bf16, the lower bits of the f32 are dropped."""
    if t == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    value = math.copysign(math.inf, value) if t == "f16" and abs(value) >= 65520 else value
    return int.from_bytes(struct.pack(FORMAT[t], value), "little")


class Input:
    """A number as bits of its type, or as an untyped number of the host (type None)."""

    def __init__(self, d, name, t):
        self.name, self.type = name, t
        if t is None:
            self.value = d.choice((0, 1, 2, 3, 7, 20, 31, 100, 1000, 46341, 65536, 2**31 - 1, -1, -2, -7, -(2**31), d.randint(-1000, 1000)))
        elif t in FLOATS:
            numbers = (0.0, -0.0, 1.0, 1.5, -2.5, 3.0, 0.333251953125, 7.0, 100.0, 0.1, 1e-7, 65504.0, -3e4, math.inf, -math.inf)
            self.value = d.choice(NANS[t]) if d.random() < 0.2 else bits_of(d.choice(numbers), t)
        else:
            low, high = (0, 1) if t == "bool" else limits(t)
            edges = [v for v in TIES + (low, low + 1, high, high - 1, 0, 1, 2, 3, 5, 7, 20, 31, 32, 33, 64, -1, -2, -7) if low <= v <= high]
            self.value = d.choice(edges[:3] if BITS[t] == 64 and d.random() < 0.2 else edges) if d.random() < 0.7 else d.randint(low, high)

    def literal(self):
        if self.type is None:
            return f"({self.value})"
        return literal_text(self.value, self.type)

    def argument(self):
        return library.number_arg(self.value) if self.type is None else library.bits_arg(self.value, self.type)


class Expression:
    """Returns a tree as text with {name} for inputs, and its type. Extents leave out operations that the host does not
    evaluate."""

    def __init__(self, d, inputs, is_extent):
        self.d, self.inputs, self.is_extent = d, inputs, is_extent

    def leaf(self, wanted):
        d = self.d
        fitting = [i for i in self.inputs if wanted != "integer" or not self.is_extent or not is_float(i.type or "wi")]
        floats = [i for i in self.inputs if is_float(i.type or "wi")]
        if self.is_extent and wanted == "integer" and floats and d.random() < 0.4:
            return f"i32({{{d.choice(floats).name}}} {d.choice('*/+')} {d.choice(('3', '0.7', '1.5', '10'))})", "i32"
        if not fitting or d.random() < 0.2:
            if wanted != "integer" and d.random() < 0.5:
                return d.choice(("0.5", "3.0", "0.1", "-2.25")), "wf"
            number = d.choice((1, 2, 3, 5, 7, 10, 28, 31, 33, 64, 100))
            return str(number), "wi"
        found = d.choice(fitting)
        if found.type in FLOATS and wanted == "integer":
            return f"bitcast({WORD[BITS[found.type]]}, {{{found.name}}})", WORD[BITS[found.type]]
        return f"{{{found.name}}}", found.type or "wi"

    def make(self, depth, wanted=None):
        if depth == 0:
            return self.leaf(wanted)
        for _ in range(20):
            try:
                return self.node(depth, wanted)
            except TypeMismatch:
                pass
        return self.leaf(wanted)

    def node(self, depth, wanted):
        d = self.d
        kind = d.choice(("arithmetic", "arithmetic", "divide", "shift", "bits", "power", "call", "cast", "cond", "unary", "floats", "bitcast"))
        if wanted == "integer" and kind == "floats":
            kind = "arithmetic"
        a, t = self.make(depth - 1, "integer" if kind in ("shift", "bits", "bitcast") else wanted)
        b, u = self.make(depth - 1, "integer" if kind in ("shift", "bits", "power") else wanted)
        if kind in ("arithmetic", "divide", "bits", "call") and "{" not in a + b:
            raise TypeMismatch("a literal that may not fit what it meets")
        if kind == "arithmetic":
            return f"({a} {d.choice('+-*')} {b})", promote(t, u)
        if kind == "divide":
            both = promote(t, u)
            if both == "wf" or is_float(both) and self.is_extent:
                raise TypeMismatch("floats")
            return f"({a} {d.choice(('//', '%', '//'))} {b})", both
        if kind == "floats":
            both = promote(t, u)
            if not is_float(both) or both == "wf":
                raise TypeMismatch("not floats")
            name = d.choice(("/", "/", "fdim", "fma", "power"))
            if name == "/" or self.is_extent:
                return f"({a} / {b})", both
            if name == "power":
                if "{" not in a:
                    raise TypeMismatch("a literal")
                return f"({a} ** {d.choice((-3, -2, -1, 2, 3))})", promote(both, "wi") if t == both else t
            return f"{name}({a}, {b}{', 1.5' if name == 'fma' else ''})", both
        if kind == "shift":
            if is_float(t) or is_float(u) or t == "wi":
                raise TypeMismatch("shift")
            return f"({a} {d.choice(('<<', '>>', '>>'))} {b})", arithmetic(t)
        if kind == "bits":
            if is_float(t) or is_float(u):
                raise TypeMismatch("bits")
            return f"({a} {d.choice('&|^')} {b})", "bool" if t == u == "bool" else promote(t, u)
        if kind == "power":
            if is_float(t) or is_float(u) or t == "wi":
                raise TypeMismatch("power")
            exponent = d.choice((b, "2", "3", "-1", "-2", f"i32({b})") if "{" in b else ("0", "2", "3", "10", "-2"))
            return f"({a} ** {exponent})", arithmetic(t)
        if kind == "call":
            both = promote(t, u)
            if is_float(both):
                raise TypeMismatch("call")
            name = d.choice(("min", "max", "ceil_div", "div_trunc", "rem_trunc", "abs"))
            return (f"abs({a})", arithmetic(t)) if name == "abs" else (f"{name}({a}, {b})", both)
        if kind == "cast":
            target = d.choice(INTEGERS if wanted == "integer" or d.random() < 0.6 else FLOATS)
            return f"{target}({self.make(depth - 1)[0]})", target
        if kind == "cond":
            x, y = self.make(depth - 1), self.make(depth - 1)
            promote(x[1], y[1])
            both = t if t == u else u if t == "wi" and u != "bool" else t if u == "wi" and t != "bool" else promote(t, u)
            # only one branch has a type if the condition is a constant, as in `x ** 0`
            if self.is_extent and ("** 0" in x[0] + y[0] or "{" not in x[0] + y[0]):
                raise TypeMismatch("a constant condition")
            if not self.is_extent:
                if both in ("wi", "wf"):
                    raise TypeMismatch("literals")
                a, b = f"{both}({a})", f"{both}({b})"
            return f"({x[0]} {d.choice(('<', '>', '==', '!=', '<=', '>='))} {y[0]} ? {a} : {b})", both
        if kind == "bitcast":
            if BITS.get(t, 0) < 32 or is_float(t) or wanted == "integer":
                raise TypeMismatch("bitcast")
            if self.is_extent:
                raise TypeMismatch("bitcast")
            return f"bitcast(f{BITS[t]}, {a})", f"f{BITS[t]}"
        if t in ("bool", "wi"):
            raise TypeMismatch("unary")
        return (f"(~{a})" if not is_float(t) and t != "wi" and d.random() < 0.5 else f"(-({a}))"), arithmetic(t)


class Composed(Expression):
    """Adds operations on aggregates, and takes one number of the result. struct: the names and types of its fields."""

    def __init__(self, d, inputs, struct):
        super().__init__(d, inputs, False)
        self.struct = struct

    def node(self, depth, wanted):
        d = self.d
        if wanted or d.random() < 0.3:
            return super().node(depth, wanted)
        operands = [self.make(depth - 1) for _ in range(3)]
        if any("{" not in text or t in ("wi", "wf") for text, t in operands):
            raise TypeMismatch("literals")
        return d.choice((self.vector, self.vector, self.complex_number, self.complex_number, self.record, self.tuple))([text for text, _ in operands], [t for _, t in operands])

    def vector(self, x, types):
        d = self.d
        t, count = d.choice(INTEGERS + FLOATS + ("i64", "u64")), d.choice((2, 2, 3, 4, 8))
        make = lambda: f"{t}x{count}({', '.join(f'{t}({d.choice(x)})' for _ in range(count))})"
        kind, k = d.choice(("operator", "operator", "compare", "choose", "negate", "one", "one", "convert")), d.randrange(count)
        if kind == "compare":
            return f"({make()} {d.choice(('<', '>', '==', '!='))} {make()})[{k}]", "bool"
        if kind == "choose":
            return f"select({make()} {d.choice(('<', '>='))} {make()}, {make()}, {make()})[{k}]", t
        if kind == "negate":
            return f"(-{make()})[{k}]", arithmetic(t)
        if kind == "convert":
            u = d.choice(INTEGERS + FLOATS)
            return f"{u}x{count}({make()})[{k}]", u
        operator = d.choice(("+", "-", "*", "/") if t in FLOATS else ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<<", ">>"))
        other = make() if kind == "operator" else f"{t}({d.choice(x)})"
        return f"({make()} {operator} {other})[{k}]", arithmetic(t)

    def complex_number(self, x, types):
        d = self.d
        a, b = d.choice(("c64", "c128")), d.choice(("c64", "c128"))
        make = lambda c: c + "(" + ", ".join(f"{PART[c]}({e})" for e in d.sample(x, 2)) + ")"
        kind = d.choice(("operator", "operator", "real", "conj", "power", "compare"))
        which = d.choice(("real", "imag"))
        if kind == "compare":
            return f"({make(a)} {d.choice(('==', '!='))} {make(b)})", "bool"
        own = PART[a]
        if kind == "conj":
            return f"conj({make(a)}).{which}", own
        # products and quotients of a NaN, whose sign is not specified, can give a zero with either sign
        if kind == "power":
            return f"(({make(a)} ** {d.choice((2, 3, -1, -2))}).{which} + 0)", own
        if kind == "real":
            return f"(({make(a)} {d.choice('+-*/')} {own}({x[0]})).{which} + 0)", own
        return f"(({make(a)} {d.choice('+-*/')} {make(b)}).{which} + 0)", max(own, PART[b])

    def record(self, x, types):
        k = self.d.randrange(3)
        values = [f"{t}({e})" for e, (_, t) in zip(x, self.struct)]
        return f"P{self.d.choice(('', '_of'))}({values[0]}, {values[1]}, ({values[2]}, {values[2]})).{self.struct[k][0]}" + ("[1]" if k == 2 else ""), self.struct[k][1]

    def tuple(self, x, types):
        k = self.d.randrange(3)
        return f"({', '.join(x)})[{k}]", types[k]


# name: NumPy's function, operands. The bounds are those in the language reference.
MATH = {"exp": (np.exp, 1), "exp2": (np.exp2, 1), "expm1": (np.expm1, 1), "log": (np.log, 1), "log2": (np.log2, 1), "log10": (np.log10, 1), "log1p": (np.log1p, 1), "sin": (np.sin, 1), "cos": (np.cos, 1),
        "tan": (np.tan, 1), "asin": (np.arcsin, 1), "acos": (np.arccos, 1), "atan": (np.arctan, 1), "sinh": (np.sinh, 1), "cosh": (np.cosh, 1), "tanh": (np.tanh, 1), "asinh": (np.arcsinh, 1),
        "acosh": (np.arccosh, 1), "atanh": (np.arctanh, 1), "cbrt": (np.cbrt, 1), "pow": (np.power, 2), "atan2": (np.arctan2, 2), "hypot": (np.hypot, 2)}


def read_bounds():
    """By name: the ULP of f32 and f64 on the CPU, and of f32 and f64 on a GPU, for both math libraries."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "ir", "math.def")
    with open(path, encoding="utf-8") as file:
        rows = [line[5:line.rindex(")")].split(", ") for line in file if line.startswith("MATH(")]
    numbers = {row[0].lower(): [float(v) for v in row[-8:-2]] for row in rows if row[0].lower() in MATH}
    return {name: (v[:2], [max(v[2], v[4]), max(v[3], v[5])]) for name, v in numbers.items()}


class Function:
    """A math function of typed numbers, and of literals."""

    def __init__(self, d):
        self.name = d.choice(list(MATH))
        self.type = d.choice(FLOATS)
        self.inputs = [Input(d, name, self.type) for name in "uv"]
        for i in self.inputs:
            if d.random() < 0.7:
                i.value = bits_of(d.choice((d.uniform(-1, 1), d.uniform(-10, 10), d.uniform(0, 100), d.uniform(-5000, 5000))), self.type)
        self.inputs = self.inputs[:MATH[self.name][1]]
        self.text = f"{self.name}({', '.join('{' + i.name + '}' for i in self.inputs)})"

    def numbers(self):
        return [of_bits(i.value, self.type) for i in self.inputs]

    def literals(self):
        """Returns each input as a literal with its value. No literal gives a NaN with certain bits."""
        return {i.name: f"({x!r})" for i, x in zip(self.inputs, self.numbers())}

    def judge(self, results, bounds):
        """Returns what is wrong, or None. results: in each way."""
        with np.errstate(all="ignore"):
            want = MATH[self.name][0](*map(np.longdouble, self.numbers()))
            for way, got in zip(WAYS, results):
                t = self.type if way != WAYS[-1] else "f64"
                ulp = np.longdouble(2) ** max((math.frexp(want)[1] if np.isfinite(want) and want else -9999) - PRECISION[t], LEAST[t])
                bound = bounds[t == "f64"] if t in ("f32", "f64") else 1  # computed in f32
                overflows = np.isinf(got) and not np.isinf(want) and abs(want) + bound * ulp > MOST[t] and (got > 0) == (want > 0)
                is_right = np.isnan(got) if np.isnan(want) else got == want or overflows or abs(got - want) <= bound * ulp
                if not is_right:
                    return f"{self.name} of {self.numbers()} as {t}, {way}: {got!r}, {float(abs(got - want) / ulp)} ULP from {want}"
        return None


WAYS = ("parameters", "literals", "const parameters", "module constants", "literals without a type")


class Case:
    def __init__(self, seed):
        self.seed = seed
        d = self.d = random.Random(f"known {seed}")
        types = INTEGERS + FLOATS + ("bool",)
        self.inputs = [Input(d, name, d.choice(types)) for name in "abc"]
        self.value, self.type = self.typed(Expression(d, self.inputs, False), None)
        extent_types = INTEGERS * 2 + ("f16", "f32", None, None)
        self.arguments = [Input(d, name, d.choice(extent_types)) for name in "nmk"]
        self.extents = [self.bounded(Expression(d, self.arguments, True)) for _ in range(2)]
        d = self.d = random.Random(f"composed {seed}")  # the bits above the type do not change
        self.struct = [(name, d.choice(INTEGERS + FLOATS)) for name in "xyz"]
        self.composed = [self.typed(Composed(d, self.inputs, self.struct), None) for _ in range(4)]
        self.function = Function(d)

    def typed(self, expression, wanted):
        """An expression that is not a literal, whatever its inputs are."""
        if self.d.random() < 0.1:
            target = self.d.choice(FLOATS + ("bf16",))
            return f"{target}({{{self.d.choice(self.inputs).name}}})", target
        while True:
            text, t = expression.make(self.d.randint(1, 4), wanted)
            if t not in ("wi", "wf") and "{" in text:
                return text, t

    def bounded(self, expression):
        while True:
            text, t = expression.make(self.d.randint(1, 3), "integer")
            if "{" not in text or is_float(t):
                continue
            low = self.d.choice((f"min({text}, 40)", f"({text}) & 31", f"({text}) % 37", f"({text}) >> 28", text))
            return f"max(1, min(60, {low}))", f"min(60, {low})"

    def text(self):
        inputs = self.inputs + self.function.inputs
        plain = {i.name: i.name for i in inputs}
        literals = {i.name: i.literal() for i in inputs}
        const = {i.name: "c" + i.name for i in inputs}
        constants = {i.name: "M" + i.name for i in inputs}
        names = {i.name: i.name for i in self.arguments}
        (grid, inner), (shared, part) = [tuple(e.format(**names) for e in pair) for pair in self.extents]
        lines = ["func put(f, q, n, v) {", "  if is_float(dtype(v)) { f[n] = v } else { q[n] = i64(v) }", "}"]
        x, y, z = (t for _, t in self.struct)
        lines += [f"struct P{self.seed} {{ x: {x}; y: {y}; z: {z}[2] }}", f"func P{self.seed}_of(x, y, z) {{", f"  var p = zero(P{self.seed})", "  p.x = x; p.y = y; p.z = z", "  return p", "}"]
        lines += [f"const M{i.name}: {i.type} = {i.literal()}" for i in inputs]
        names = [i.name for i in inputs]
        lines.append(f"kernel values(f, q, {', '.join(names)}, {', '.join('const c' + n for n in names)}) @grid(1) @block(1) @strict {{")
        composed = [re.sub(r"\bP(?=\(|_of\()", f"P{self.seed}", text) for text, _ in self.composed]
        for n, ways in enumerate((plain, literals, const, constants)):
            lines += [f"  put(f, q, {4 * k + n}, {text.format(**ways)})" for k, text in enumerate((self.value, *composed, self.function.text))]
        lines.append(f"  put(f, q, 24, f64({self.function.text.format(**self.function.literals())}))")
        lines += ["}", "kernel range_of(q, n, m, k) @strict {", f"  for i in grid_range({inner}) {{ q[i] = 1 }}", "}",
                  f"kernel shapes(q, n, m, k) @grid({grid}) @block(1) @strict {{", f"  shared t: i8[{shared}]", "  if blockIdx.x == 0 {", "    q[0] = gridDim.x", "    q[1] = len(t)", f"    q[2] = {grid}",
                  f"    q[3] = {shared}", f"    q[4] = {inner}", "  }", "}", ""]
        return "\n".join(lines)

    def describe(self, what):
        given = ", ".join(f"{i.name} = {i.value} ({i.type or 'a number'})" for i in self.inputs + self.function.inputs + self.arguments)
        return f"--- case {self.seed}: {given}\n{self.text()}\n{what}\n"


class Runner(library.Library):
    bounds = read_bounds()

    def check(self, case):
        """Returns what is wrong, or None."""
        keep, module = [], self.parse(case.text())
        f, q = np.zeros(25, np.float64), np.zeros(25, np.int64)
        counted, shapes = np.zeros(64, np.int32), np.zeros(5, np.int64)
        try:
            inputs = [i.argument() for i in case.inputs + case.function.inputs]
            self.launch(module, "values", [library.tensor_arg(f, "f64", keep), library.tensor_arg(q, "i64", keep)] + inputs * 2)
            scalars = [i.argument() for i in case.arguments]
            self.launch(module, "shapes", [library.tensor_arg(shapes, "i64", keep)] + scalars)
            self.launch(module, "range_of", [library.tensor_arg(counted, "i32", keep)] + scalars)
        finally:
            self.release(module)
        for k, t in enumerate((case.type, *(t for _, t in case.composed))):
            wrong = self.differ(t, f[4 * k:4 * k + 4], q[4 * k:4 * k + 4])
            if wrong:
                return wrong
        return case.function.judge(f[20:], self.bounds[case.function.name][self.device_name == "cuda"]) or self.judge(counted, shapes)

    @staticmethod
    def differ(t, f, q):
        """Returns what is wrong, or None. The NaN that an operation returns is not specified."""
        words = f.view(np.uint64) if is_float(t) else q.view(np.uint64)
        if all(w == words[0] or (is_float(t) and math.isnan(f[n]) and math.isnan(f[0])) for n, w in enumerate(words)):
            return None
        return "the values differ: " + ", ".join(f"{way} {v!r} ({w:#x})" for way, v, w in zip(WAYS, f if is_float(t) else q, words))

    @staticmethod
    def judge(counted, shapes):
        if shapes[0] != shapes[2] or shapes[1] != shapes[3]:
            return f"@grid gives {shapes[0]}, the kernel has {shapes[2]}; a shared array {shapes[1]}, the kernel {shapes[3]}"
        if counted.sum() != max(0, shapes[4]):
            return f"a grid_range has {counted.sum()} elements, the kernel {shapes[4]}"
        return None


def start(options):
    return Runner(options.libdir, options.device, (), options.debug)


def run_one(runner, seed):
    case = Case(seed)
    try:
        wrong = runner.check(case)
    except library.Failure as failure:
        if is_number_out_of_range(case, str(failure)):
            return "refused", None
        wrong = str(failure)
    return ("failed", case.describe(wrong)) if wrong else ("right", None)


OUT_OF_RANGE = re.compile(r"error: parameter `(\w+)`: (-?\d+) is too (small|large) for ([iu])(\d+),.* must be at (least|most) (-?\d+)")


def is_number_out_of_range(case, failure):
    """Whether a launch is refused for a number without a type that an integer type of the kernel does not have. What the
    message says is compared with the case: the parameter, its value, and that the value is beyond the limit, which the type
    has. In `5 + m` the limit of m is smaller than that of the type."""
    found = OUT_OF_RANGE.search(failure)
    if not found:
        return False
    name, value, sign, bits, way, limit = found[1], int(found[2]), found[4], int(found[5]), found[6], int(found[7])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "i" else (0, 2**bits - 1)
    is_given = any(i.name == name and i.type is None and i.value == value for i in case.inputs + case.function.inputs + case.arguments)
    return is_given and low <= limit <= high and (value < limit if way == "least" else value > limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    pool.add_options(parser, 300)
    options = parser.parse_args()
    return pool.run(options, f"cases on {options.device}", start, run_one, lambda seed, _, why: Case(seed).describe(why))


if __name__ == "__main__":
    sys.exit(main())
