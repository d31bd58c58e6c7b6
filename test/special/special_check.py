#!/usr/bin/env python3
"""special_check.py floats|integers --kjit-run PROGRAM [--device cpu|cuda] [--types f32,f64]

Every expression of special_floats.py or special_integers.py at all pairs of special values of its type, computed in several ways that must agree bit for bit: from memory,
in a loop that is vectorized and one element at a time; behind a condition that tells the compiler what the operands are not; with one operand a constant; of constants only,
written as literals, as constants of the module, and given as const parameters. What one element at a time gives is also compared with the value that the table knows.
Each value is stored with what the program finds out about it (isnan, < 0 and so on), which shows where the compiler believes something of it that is not so.
"""
import argparse
import itertools
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import special_floats as floats
import special_integers as integers
from share import share_of
from special_values import FLOATS, INTEGERS, class_of, decode, infinity, integer, is_nan, literal, read_npy, sign_bit, size_of, specials, ulps, write_npy

SETS = {"floats": (floats, FLOATS), "integers": (integers, INTEGERS)}
# The number of special values that are combined with all other values, where one of both is a constant. The same number is combined if all operands are constants. The
# second number is for expressions with three operands.
CONSTANTS, TRIPLES = 12, 8
PAIRS = {"literals": 10, "weak": 10, "constants": 6, "parameters": 6}
STATEMENTS = 250  # number of constants in one kernel
NEAR = 16          # ULP between two versions of one function, about the largest of docs/ir.md
# x ** n of a constant n is multiplied out: up to an ULP for each factor; a product of so many that others overflow or are a power of two. With an n that is not constant, pow.
PRODUCTS = {"a ** -2": 4, "a ** -3": 6, "a ** -7": 14, "a ** -140": 280, "a ** i32(b)": 600}

COMMON = """
func put(r, q, k, bits, v) {
  r[k] = bits
  q[k] = (v < 0 ? u64(1) : u64(0)) | (v > 0 ? u64(2) : u64(0)) | (v == 0 ? u64(4) : u64(0)) | (v == v ? u64(8) : u64(0))
}
func put_float(r, q, k, bits, v) {
  put(r, q, k, bits, v)
  q[k] = q[k] | (isnan(v) ? u64(16) : u64(0)) | (isinf(v) ? u64(32) : u64(0)) | (isfinite(v) ? u64(64) : u64(0))
}
"""


def store(expression, t, k, text, is_constant=False):
    """The statements that keep the value of an expression and, unless it is of constants only, what the program finds out about it as element k."""
    result = t if expression.result == "T" else expression.result
    if is_constant:
        return f"r[{k}] = u64(i64({text}))" if result == "i" else f"r[{k}] = u64(bitcast(u{8 * size_of(result)}, {text}))"
    if result == "i":
        return f"let v{next(NUMBERS)} = i64({text}); put(r, q, {k}, u64(v{LAST[0]}), v{LAST[0]})"
    name = f"v{next(NUMBERS)}"
    return f"let {name} = {text}; put_float(r, q, {k}, u64(bitcast(u{8 * size_of(result)}, {name})), {name})"


LAST = [0]


def numbers():
    while True:
        LAST[0] += 1
        yield LAST[0]


NUMBERS = numbers()


def insert(expression, **operands):
    return re.sub(r"\b[abc]\b", lambda found: operands.get(found[0], found[0]), expression.text)


def flags(result, bits):
    """Returns the properties that put finds for a value with these bits."""
    if result == "i":
        value = integer("i64", bits)
        return (1 if value < 0 else 2 if value > 0 else 4) | 8
    if is_nan(result, bits):
        return 16
    value = decode(result, bits)
    return (1 if value < 0 else 2 if value > 0 else 4) | 8 | (32 if math.isinf(value) else 64)


class Way:
    """One way to compute: a kernel's text, its launch, and the point of the expression that each element of its output
    belongs to. A point is None if a condition excludes it."""

    def __init__(self, name, body, launch, elements, parameters="", arguments=""):
        self.name, self.elements = name, elements
        self.is_constant = name.split("_")[0] in PAIRS
        self.text = f"kernel {name}(r, q{parameters}) {{\n{body}\n}}\n"
        self.launch = f"{name}{launch}(r_{name}, q_{name}{arguments})"


class Group:
    """Returns all expressions of one type with one number of operands."""

    def __init__(self, t, arity, expressions, device):
        self.t, self.arity, self.device = t, arity, device
        self.expressions = [e for e in expressions if t in e.types]
        self.values = specials(t, TRIPLES if arity == 3 else None)
        self.points = list(itertools.product(self.values, repeat=arity))
        self.ways, self.head = [], COMMON
        self.is_float = t in FLOATS

    def bits_type(self):
        return f"u{8 * size_of(self.t)}"

    def loads(self, skip=""):
        return "\n".join(f"  let {v} = bitcast({self.t}, {w}[i])" for v, w in list(zip("abc", "xyz"))[:self.arity] if v not in skip)

    def numbers(self, bits):
        return [decode(self.t, b) if self.is_float else integer(self.t, b) for b in bits]

    # ---- from memory ----

    def add_memory(self):
        every = [(e, p) for e in range(len(self.expressions)) for p in range(len(self.points))]
        count, names = len(self.points), ", ".join("xyz"[:self.arity])
        body = "\n".join("  " + store(e, self.t, f"{n * count} + i", e.text) for n, e in enumerate(self.expressions))
        self.ways.append(Way("single", f"  let i = i32(grid(1))\n{self.loads()}\n{body}", f"[{count}, 1]", every, f", {names}", f", {names}"))
        self.ways.append(Way("loop", f"  for i in grid_range({count}) {{\n{self.loads()}\n{body}\n  }}", "", every, f", {names}", f", {names}"))
        if self.arity == 2:
            guard = "b != 0 and abs(a) < inf" if self.is_float else "b != 0 and a > 0"
            met = [self.meets_guard(p) for p in self.points]
            kept = [(e, p) if met[p] else None for e, p in every]
            self.ways.append(Way("guarded", f"  let i = i32(grid(1))\n{self.loads()}\n  if {guard} {{\n{body}\n  }}", f"[{count}, 1]", kept, f", {names}", f", {names}"))

    def meets_guard(self, point):
        a, b = self.numbers(point)
        return b != 0 and (abs(a) < math.inf if self.is_float else a > 0)

    # ---- one operand is a constant ----

    def add_mixed(self):
        if self.arity != 2:
            return
        index, count = {p: n for n, p in enumerate(self.points)}, len(self.values)
        for side, other, guarded in itertools.product("ab", [""], (False, True)):
            statements, elements = [], []
            for e, c in itertools.product(range(len(self.expressions)), self.values[:CONSTANTS]):
                operand = f"{self.t}({literal(self.t, c)})"
                statements.append("  " + store(self.expressions[e], self.t, f"{len(elements)} + i", insert(self.expressions[e], **{side: operand})))
                for v in self.values:
                    meets = not guarded or self.numbers([v])[0] != 0
                    elements.append((e, index[(c, v) if side == "a" else (v, c)]) if meets else None)
            left = "b" if side == "a" else "a"
            condition = f"  if {left} != 0 {{" if guarded else "  if true {"
            load = f"  let {left} = bitcast({self.t}, w[i])"
            self.split(f"{'guarded_' if guarded else ''}constant_{side}", statements, elements, count, f"  let i = i32(grid(1))\n{load}\n{condition}\n", "\n  }", f"[{count}, 1]", ", w", ", w")

    def split(self, name, statements, elements, step, before, after, launch, parameters, arguments):
        """Returns kernels of a limited size, each with its own output."""
        for part, start in enumerate(range(0, len(statements), STATEMENTS)):
            chunk = [re.sub(r"(\(r, q, |r\[)(\d+)", lambda m: f"{m[1]}{int(m[2]) - start * step}", s) for s in statements[start:start + STATEMENTS]]
            self.ways.append(Way(f"{name}_{part}", before + "\n".join(chunk) + after, launch, elements[start * step:(start + STATEMENTS) * step], parameters, arguments))

    # ---- only constants ----

    def add_constants(self):
        index = {p: n for n, p in enumerate(self.points)}
        self.head += "".join(f"const c{n}: {self.t} = {literal(self.t, v)}\n" for n, v in enumerate(self.values))
        written = {"literals": lambda v: f"{self.t}({literal(self.t, v)})", "constants": lambda v: f"c{self.values.index(v)}", "parameters": lambda v: f"p{self.values.index(v)}"}
        if self.t == "f64":
            written["weak"] = lambda v: f"({literal(self.t, v)})"
        for name, write in written.items():
            statements, elements = [], []
            few = self.values[:(None if name == "literals" else CONSTANTS, PAIRS[name], PAIRS[name] - 4)[self.arity - 1]]
            for e, p in itertools.product(range(len(self.expressions)), itertools.product(few, repeat=self.arity)):
                if name == "weak" and (self.expressions[e].text.startswith("to_") or self.expressions[e].result in FLOATS):
                    continue  # a literal that does not fit a type is an error
                text = insert(self.expressions[e], **dict(zip("abc", map(write, p))))
                if name == "weak" and self.expressions[e].result == "T":
                    text = f"f64({text})"
                statements.append("  " + store(self.expressions[e], self.t, len(elements), text, True))
                elements.append((e, index[p]))
            is_parameter = name == "parameters"
            names = "".join(f", const p{n}: {self.t}" for n in range(len(self.values))) if is_parameter else ""
            values = "".join(f", {literal(self.t, v)}" for v in self.values) if is_parameter else ""
            self.split(name, statements, elements, 1, "", "", "[1, 1]", names, values)

    # ---- running and comparing ----

    def run(self, kjit_run):
        self.add_memory()
        self.add_mixed()
        self.add_constants()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{self.t}.kir")
            with open(path, "w") as file:
                file.write(self.head + "".join(way.text for way in self.ways))
            command = [*shlex.split(kjit_run), path, "--device", self.device, "--checks", "none"]
            for n, name in enumerate("xyz"[:self.arity]):
                write_npy(os.path.join(folder, name + ".npy"), self.t, [p[n] for p in self.points])
                command += ["--arg", f"{name}=@{folder}/{name}.npy"]
            if self.arity == 2:
                write_npy(os.path.join(folder, "w.npy"), self.t, self.values)
                command += ["--arg", f"w=@{folder}/w.npy"]
            for way in self.ways:
                for output in "rq":
                    command += ["--arg", f"{output}_{way.name}=full:u64[{len(way.elements)}]:value=12345", "--save", f"{output}_{way.name}={folder}/{output}_{way.name}.npy"]
                command += ["--launch", way.launch]
            process = subprocess.run(command, capture_output=True, text=True, errors="replace")
            if process.returncode:
                keep = os.path.join(tempfile.gettempdir(), f"special_{self.t}_{self.arity}.kir")
                os.replace(path, keep)
                return [f"{keep}: kjit-run exited with {process.returncode}\n{process.stdout[-2000:]}{process.stderr[-6000:]}"], 0
            outputs = {way.name: (read_npy(f"{folder}/r_{way.name}.npy"), read_npy(f"{folder}/q_{way.name}.npy")) for way in self.ways}
        return self.compare(outputs)

    def result_of(self, e):
        return self.t if self.expressions[e].result == "T" else self.expressions[e].result

    def allowed(self, e, way):
        """Returns the distance in ULP between the value from memory and the value that another way gives."""
        expression = self.expressions[e]
        if expression.exact:
            return 0
        # pow of literals; multiplied out if n is a constant
        is_other_power = way.startswith("weak") or expression.text == "a ** i32(b)"
        if expression.text in PRODUCTS and is_other_power and way not in ("loop", "single"):
            return PRODUCTS[expression.text]
        has_versions = self.device != "cpu" or (way == "loop" and any(name in expression.text for name in floats.VECTORIZED))
        return NEAR if has_versions else 0

    def differ(self, e, got, want, allowed):
        result = self.result_of(e)
        if result == "i":
            return got != want
        if is_nan(result, got) and is_nan(result, want) or got == want:
            return False
        if class_of(result, got) != class_of(result, want) and class_of(result, want) == "nan":
            return True
        return not allowed or ulps(result, got, want) > allowed or (got ^ want) & sign_bit(result) != 0

    def compare(self, outputs):
        failures, compared = [], 0
        single = dict(zip(self.ways[0].elements, outputs["single"][0]))
        for (e, p), got in single.items():
            numbers = self.numbers(self.points[p])
            expression = self.expressions[e]
            if not expression.reference or floats.is_open(expression, self.t, numbers, self.device):
                continue
            want = expression.reference(self.t, *numbers)
            if want is floats.OPEN:
                continue
            compared += 1
            want &= (1 << 64) - 1
            if self.differ(e, got, want, 0 if expression.exact else PRODUCTS.get(expression.text, NEAR)):
                failures.append(self.describe("the value from memory", e, p, got, "the right one", want))
        for way in self.ways:
            for n, element in enumerate(way.elements):
                got, found = outputs[way.name][0][n], outputs[way.name][1][n]
                if element is None:
                    continue
                e, p = element
                if floats.is_open(self.expressions[e], self.t, self.numbers(self.points[p]), self.device):
                    continue
                compared += 1
                if self.differ(e, got, single[element], self.allowed(e, way.name)):
                    failures.append(self.describe(way.name, e, p, got, "from memory", single[element]))
                elif not way.is_constant and found != flags(self.result_of(e), got):
                    failures.append(self.describe(way.name, e, p, got, f"but what the program finds out about it is {found}, not {flags(self.result_of(e), got)}:", got))
        return failures, compared

    def describe(self, what, e, p, got, other, want):
        result = self.result_of(e)
        show = (lambda bits: str(integer("i64", bits))) if result == "i" else (lambda bits: f"{decode(result, bits)!r} (0x{bits:x})")
        operands = ", ".join(f"{v} = {literal(self.t, bits)}" for v, bits in zip("abc", self.points[p]))
        return f"{self.t}: {self.expressions[e].text}, {operands}: {what} {show(got)}, {other} {show(want)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--types", help="only these, with commas between")
    parser.add_argument("--only", help="only expressions that contain this")
    parser.add_argument("--all", action="store_true", help="print every failure")
    options = parser.parse_args()
    table, types = SETS[options.set]
    failures, compared = [], 0
    for t in options.types.split(",") if options.types else types:
        for arity, expressions in enumerate((table.ONE, table.TWO, table.THREE), 1):
            chosen = [e for e in expressions if options.only is None or options.only in e.text]
            group = Group(t, arity, share_of(chosen, options.set, t, str(arity)), options.device)
            if group.expressions:
                found, count = group.run(options.kjit_run)
                failures += found
                compared += count
    print("\n".join(failures if options.all else failures[:40]))
    print(f"{options.set} on {options.device}: {compared} values compared, {len(failures)} failures")
    return 1 if failures or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
