#!/usr/bin/env python3
"""`@numba`: the types of all operators on all pairs of types, and random kernels, compiled and run, against Numba's rules as this file says them.

The rules here are formulas (which integers are 64 bits wide, which float holds an integer), NumPy's promotion for what a variable joins to, and the numbers are Python's.
They share nothing with lib/typing/numba.def, which is made by asking Numba, and are compared with that, too. --seed N --count 1 repeats a kernel; without --seed it draws new ones.
"""
import argparse
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library
import pool
import values
from values import Ambiguous, BITS, FLOATS, ROUND, UNSIGNED, limits, wrap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
INTEGERS = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
COMPLEX = ("c64", "c128")
ALL = INTEGERS + ("f16", "f32", "f64") + COMPLEX
ARITHMETIC, BITWISE, SHIFTS, COMPARE = ("+", "-", "*", "/", "//", "%"), ("&", "|", "^"), ("<<", ">>"), ("==", "!=", "<", "<=", ">", ">=")
NUMPY = {**{t: {"i": "int", "u": "uint", "f": "float", "c": "complex"}[t[0]] + t[1:] for t in ALL if t != "bool"}, "bool": "bool"}
OF_NUMPY = {v: k for k, v in NUMPY.items()}


# ---- ---- the rules: for each operator, the types to which operands are converted, and the result type; None if Numba
# lacks it ---- ----

def convert(x, source, target):
    """A float is converted to an integer of 8 or 16 bits through 32 bits."""
    if source in FLOATS and target in ("i8", "u8", "i16", "u16"):
        return wrap(values.convert(x, source, "i32"), target)
    return values.convert(x, source, target)


def wide(t): return "u64" if t in UNSIGNED else "i64"


def float_bits(t, least):
    """Returns the smallest float in which Numba computes with a number, or with a part of a complex number."""
    needed = {"bool": 16, "i8": 16, "i16": 32, "u8": 32, "c64": 32, "c128": 64}.get(t, 64 if t in INTEGERS else 0)
    return max(least, needed or BITS[t])


def floating(a, b, least=16):
    bits = max(float_bits(a, least), float_bits(b, least))
    return f"c{2 * max(bits, 32)}" if a in COMPLEX or b in COMPLEX else f"f{bits}"


def of_integers(a, b):
    return wide(a), wide(b), "u64" if a in UNSIGNED and b in UNSIGNED else "i64"


def join(a, b):
    if "bool" in (a, b):
        return b if a == "bool" else a
    return OF_NUMPY[str(np.promote_types(NUMPY[a], NUMPY[b]))]


def signature(op, a, b):
    are_integers, has_complex = a in INTEGERS and b in INTEGERS, a in COMPLEX or b in COMPLEX
    if op in BITWISE and a == b == "bool":
        return ("bool",) * 3
    if op in SHIFTS:
        return ("i8" if a == "bool" else a, "u64" if b == "bool" else wide(b), wide(a)) if are_integers else None
    if op in BITWISE and not are_integers or has_complex and op not in ("+", "-", "*", "/", "**", "==", "!="):
        return None
    if op in COMPARE:
        t = join(a, b) if are_integers else floating(a, b)
        return t, t, "bool"
    if op == "**" and (a, b) == ("bool", "i32"):  # as Numba's search for the nearest signature gives it
        return "f32", "i32", "f32"
    if op == "**" and a in FLOATS and b in INTEGERS:
        t = "f64" if a == "f64" else "f32"
        return t, "i32" if b in ("bool", "i8", "i16", "i32") else wide(b), t
    if are_integers:
        x, y, t = of_integers(a, b)
        return x, y, "f64" if op == "/" else t
    t = floating(a, b, 32 if op in ("//", "%", "**") else 16)
    return t, t, t


def unary(op, t):
    if op == "~":
        return "bool" if t == "bool" else wide(t) if t in INTEGERS else None
    return wide(t) if t in INTEGERS else t


def call_type(name, types):
    if name in ("min", "max"):
        return join(*types)
    if name == "abs":
        return {"bool": "i8", "c64": "f32", "c128": "f64"}.get(types[0], types[0])
    if name == "sqrt":
        return "f64" if types[0] in INTEGERS else types[0]
    if all(t in INTEGERS for t in types) and name == "atan2":
        return "f64"
    return floating(*types, 32)  # fmod, atan2


def range_type(types):
    """The operators of one number, and of i64 with another number."""
    return "i64" if len(types) > 1 or types[0] == "i64" else "u64" if types[0] in UNSIGNED else "i32"


# ---- all pairs ----

KEYS = {"+": "ARITHMETIC", "-": "ARITHMETIC", "*": "ARITHMETIC", "/": "DIVIDE", "//": "FLOOR_DIVIDE", "%": "FLOOR_DIVIDE", "**": "POWER", "<<": "SHIFT", ">>": "SHIFT", "&": "BITS", "|": "BITS",
        "^": "BITS", "==": "EQUAL", "!=": "EQUAL", "<": "ORDER", "<=": "ORDER", ">": "ORDER", ">=": "ORDER"}


def recorded():
    """Returns {(key, operand types): (converted types, result type)} from lib/typing/numba.def."""
    found = {}
    text = open(os.path.join(ROOT, "lib/typing/numba.def"), encoding="utf-8").read()
    for count, row in re.findall(r"^N([12])\((.*)\)$", text, re.MULTILINE):
        key, *columns = [c.strip() for c in row.split(",")]
        sets = [[t.lower() for t in re.findall(r"T\((\w+)\)", c)] for c in columns[:int(count)]]
        types = tuple(t.lower() for t in columns[int(count):])
        for operands in [(a,) for a in sets[0]] if count == "1" else [(a, b) for a in sets[0] for b in sets[1]]:
            if (key, operands) in found:
                raise SystemExit(f"{key} {operands}: two rows")
            found[key, operands] = types
    return found


def expected():
    """Returns what recorded() has to be by the rules. RANGE, ANGLE, RAISE and similar rows contain only the entries
    that this file defines."""
    found = {}
    for op, key in KEYS.items():
        found.update({(key, (a, b)): s for a in ALL for b in ALL if (s := signature(op, a, b))})
    found.update({("JOIN", (a, b)): (join(a, b),) * 3 for a in ALL for b in ALL})
    for op, key in (("-", "SIGN"), ("~", "INVERT")):
        found.update({(key, (t,)): (t, unary(op, t)) for t in ALL if unary(op, t)})
    return found


def typed_lines():
    """Yields (expression, type, or None if it is rejected) for every operator and pair of types."""
    for op in KEYS:
        for a in ALL:
            for b in ALL:
                s = signature(op, a, b)
                yield f"v_{a} {op} v_{b}", s and s[2]
    for a in ALL:
        for op in ("-", "+", "~"):
            yield f"{op}v_{a}", unary(op, a)
        yield f"abs(v_{a})", call_type("abs", [a])
        if a not in COMPLEX:
            yield f"sqrt(v_{a})", call_type("sqrt", [a])
        for b in ALL:
            yield f"(v_bool ? v_{a} : v_{b})", join(a, b)
            yield f"joined(v_{a}, v_{b})", join(a, b)
            if a not in COMPLEX and b not in COMPLEX:
                yield f"min(v_{a}, v_{b})", join(a, b)
                yield f"fmod(v_{a}, v_{b})", floating(a, b, 32)
    yield from {"1": "i64", "-1": "i64", "2147483648": "i64", "9223372036854775807": "i64", "9223372036854775808": "u64", "-9223372036854775808": "i64", "1.5": "f64", "1i32": "i32", "1.5f32": "f32",
                "true": "bool", "SIZE": "i64", "HALF": "f64", "len(v_tuple)": "i64", "TABLE[v_i32]": "i64", "pi": "f64", "plain + v_i32": "i64", "v_i8 * 1": "i64", "v_f32 * 1": "f64", "v_f32 * 1.0": "f64",
                "1 / 2": "f64", "2 ** 3": "i64", "2 ** -1": "i64", "v_f32 ** 2": "f32"}.items()


HEAD = """default @numba
const SIZE = 4
const HALF = 0.5
const TABLE = { 1, 2, 3 }
func joined(a, b) { var r = a; r = b; return r }
"""


def all_text(lines):
    parameters = ", ".join(["out: i32[:]", "plain", *(f"v_{t}: {t}" for t in ALL)])
    return "\n".join([f"{HEAD}kernel k({parameters}) {{", "let v_tuple = (1, 2)", *lines, "}", ""])


def compiled(options, lines):
    command = [options.kjit_compile, "-", "--emit", "typed", "--signature", ", ".join(["i32[:]", "i64", *ALL])]
    done = subprocess.run(command, input=all_text(lines), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def check_types(options):
    wrong, rows, rules = [], recorded(), expected()
    wrong += [f"{key}: recorded {rows.get(key)}, expected {rule}" for key, rule in rules.items() if rows.get(key) != rule]
    keys = {key for key, _ in rules}
    wrong += [f"{key}: recorded {row}, expected none" for key, row in rows.items() if key[0] in keys and key not in rules]
    lines = list(typed_lines())
    typed = [(e, t) for e, t in lines if t]
    code, text = compiled(options, [f'if dtype({e}) != {t} {{ out[0] = {n} }}' for n, (e, t) in enumerate(typed)])
    if code:
        wrong.append(text)
    wrong += [f"{typed[int(n)][0]} is not {typed[int(n)][1]}" for n in re.findall(r"out\[0i64\] = (\d+)i32", text)]
    refused = [e for e, t in lines if not t]
    drawn = random.Random(options.seed).sample(refused, options.refused)
    for e in drawn:
        code, text = compiled(options, [f"let r = {e}"])
        if code == 0 or "Numba has no such operator" not in text:
            wrong.append(f"{e} is not refused: {text[:200]}")
    print("\n".join(wrong[:40]) or f"{len(rules)} recorded types, {len(typed)} expressions, {len(drawn)} of {len(refused)} refused ones are right")
    return len(wrong) > 0


# ---- random kernels ----

SCALARS = INTEGERS + ("f32", "f64")
COUNT = 16


def text_of(e):
    kind = e[0]
    if kind == "lit":
        return f"({e[1]!r})"
    if kind == "in":
        return f"x_{e[1]}[i]"
    if kind == "var":
        return e[1]
    if kind == "un":
        return f"({e[1]} {text_of(e[2])})"
    if kind == "cond":
        return f"({text_of(e[1])} ? {text_of(e[2])} : {text_of(e[3])})"
    if kind in ("call", "func"):
        return f"{e[1]}({', '.join(map(text_of, e[2]))})"
    return f"({text_of(e[2])} {e[1]} {text_of(e[3])})"


def power(x, n, t):
    """Multiplies step by step, as the language defines it."""
    if t not in FLOATS:
        return wrap(x**n, t)
    result = None
    while n > 1:
        result = (x if result is None else ROUND[t](result * x)) if n & 1 else result
        x, n = ROUND[t](x * x), n >> 1
    return 1.0 if n == 0 else x if result is None else ROUND[t](result * x)


def compute(op, x, y, t):
    """The operands have the result type. For shifts, the second operand is an integer."""
    if op in SHIFTS:
        return wrap(x << (y & 63) if op == "<<" else x >> (y & 63), t)
    if op in BITWISE:
        return {"&": x & y, "|": x | y, "^": x ^ y}[op] if t != "bool" else bool({"&": x and y, "|": x or y, "^": x != y}[op])
    if t not in FLOATS:
        return wrap({"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "//": lambda: values.floor_div(x, y), "%": lambda: values.floor_mod(x, y)}[op](), t)
    if op == "//":
        return values.float_floor_div(x, y, t)
    if op == "%":
        return values.float_mod(x, y, t)
    return ROUND[t]({"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: values.fdiv(x, y)}[op]())


class Machine:
    """Finds the types and runs the statements. types: the types of the variables so far."""

    def __init__(self, functions):
        self.functions, self.types, self.is_changed = functions, {}, True

    def type_of(self, e, local=None):
        kind = e[0]
        if kind == "lit":
            return "f64" if isinstance(e[1], float) else "i64"
        if kind == "in":
            return e[1]
        if kind == "var":
            return (local or self.types)[e[1]]
        if kind == "un":
            t = self.type_of(e[2], local)
            return "bool" if e[1] == "not" else unary(e[1], t)
        if kind == "cond":
            return join(self.type_of(e[2], local), self.type_of(e[3], local))
        if kind == "call":
            return call_type(e[1], [self.type_of(a, local) for a in e[2]])
        if kind == "func":
            return self.type_of(self.functions[e[1]], dict(zip("ab", [self.type_of(a, local) for a in e[2]])))
        return signature(e[1], self.type_of(e[2], local), self.type_of(e[3], local))[2]

    def value(self, e, env, local=None):
        kind = e[0]
        if kind == "lit":
            return e[1]
        if kind == "in":
            return env["in"][e[1]]
        if kind == "var":
            return env[e[1]]
        of = lambda a: (self.type_of(a, local), self.value(a, env, local))
        t = self.type_of(e, local)
        if kind == "un":
            source, v = of(e[2])
            if e[1] == "not":
                return v == 0
            v = convert(v, source, t)
            if source != "bool" and t not in FLOATS and t not in COMPLEX and e[1] != "+":
                # Numba computes it in the operand's own type and widens the result.
                return convert(wrap(~v if e[1] == "~" else -v, source), source, t)
            return (not v if t == "bool" else wrap(~v, t)) if e[1] == "~" else v if e[1] == "+" else -v if t in FLOATS else wrap(-v, t)
        if kind == "cond":
            source, v = of(e[2] if self.value(e[1], env, local) != 0 else e[3])
            return convert(v, source, t)
        if kind == "func":
            arguments = [of(a) for a in e[2]]
            return self.value(self.functions[e[1]], {**env, **dict(zip("ab", (v for _, v in arguments)))}, dict(zip("ab", (a for a, _ in arguments))))
        if kind == "call":
            args = [convert(v, source, t) for source, v in map(of, e[2])]
            if e[1] == "sqrt":
                return ROUND[t](values.fsqrt(args[0]))
            if e[1] == "abs":
                return abs(args[0]) if t in FLOATS else wrap(abs(args[0]), t)
            pick = {"min": (min, values.fmin), "max": (max, values.fmax), "fmod": (None, values.fmod)}[e[1]][t in FLOATS]
            return pick(*args)
        (a, x), (b, y), op = of(e[2]), of(e[3]), e[1]
        as_x, as_y, t = signature(op, a, b)
        x, y = convert(x, a, as_x), convert(y, b, as_y)
        if op in COMPARE:
            return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]
        if op == "**":
            return power(convert(x, as_x, t), y, t)
        return compute(op, convert(x, as_x, t), y if op in SHIFTS else convert(y, as_y, t), t)

    def infer(self, body):
        for s in body:
            if s[0] == "set":
                t = self.type_of(s[2])
                t = join(self.types[s[1]], t) if s[1] in self.types else t
                self.is_changed |= self.types.get(s[1]) != t
                self.types[s[1]] = t
            elif s[0] == "if":
                self.infer(s[2])
                self.infer(s[3])
            elif s[0] == "for":
                self.types[s[1]] = range_type([self.type_of(e) for e in s[2]])
                self.infer(s[3])

    def run(self, body, env):
        for s in body:
            if s[0] == "set":
                env[s[1]] = convert(self.value(s[2], env), self.type_of(s[2]), self.types[s[1]])
            elif s[0] == "store":
                env["out"][s[1]] = convert(self.value(s[2], env), self.type_of(s[2]), s[1])
            elif s[0] == "if":
                self.run(s[2] if self.value(s[1], env) != 0 else s[3], env)
            else:
                for k in range(*[self.value(e, env) for e in s[2]]):
                    env[s[1]] = k
                    self.run(s[3], env)


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names, self.functions, self.count = [], {}, 0
        self.functions = {f"f{n}": self.expr(2, ("a", "b")) for n in range(2)}

    def leaf(self, names):
        draw = self.r.random()
        if draw < 0.3 and names:
            return ("var", self.r.choice(names))
        if draw < 0.6:
            return ("in", self.r.choice(SCALARS))
        return ("lit", self.r.choice((0, 1, 2, 3, 7, 255, 65536, 2**31, 2**40 + 1, 2**53 + 1, 0.5, 1.5, 0.1, 3.0, 1e10)))

    def expr(self, depth, names):
        """An expression with operators that Numba has for these types; in a func, for any parameter types."""
        if depth == 0 or self.r.random() < 0.1:
            return ("var", self.r.choice(names)) if names == ("a", "b") else self.leaf(names)
        sub = lambda: self.expr(depth - 1, names)
        draw = self.r.random()
        if draw < 0.55:
            return ("bin", self.r.choice(ARITHMETIC + ("+", "-", "*", "*", "/") + COMPARE), sub(), sub())
        if draw < 0.63 and names != ("a", "b"):
            integer = lambda: self.r.choice((("in", self.r.choice(INTEGERS)), ("lit", self.r.choice((0, 1, 5, 63))), ("bin", "+", ("in", self.r.choice(INTEGERS)), ("in", self.r.choice(INTEGERS)))))
            return ("bin", self.r.choice(BITWISE + SHIFTS), integer(), integer())
        if draw < 0.68:
            return ("bin", "**", sub(), ("lit", self.r.randrange(5)))
        if draw < 0.76:
            return ("un", self.r.choice(("-", "not", "+")), sub())
        if draw < 0.84:
            return ("cond", self.test(sub(), names), sub(), sub())
        if draw < 0.92 or not self.functions:
            name = self.r.choice(("min", "max", "abs", "sqrt", "fmod"))
            return ("call", name, [sub() for _ in range(1 if name in ("abs", "sqrt") else 2)])
        return ("func", self.r.choice(list(self.functions)), [sub(), sub()])

    def test(self, e, names):
        """An expression whose value is not known at compile time. A known value would decide a condition before
        anything has a type."""
        return ("bin", self.r.choice(COMPARE), e, ("var", self.r.choice(names)) if names == ("a", "b") else ("in", self.r.choice(SCALARS)))

    def body(self, count, depth, is_top=False):
        made = []
        for _ in range(count):
            draw = self.r.random()
            if draw < 0.35 and is_top or not self.names:
                self.count += 1
                made.append(("set", f"v{self.count}", self.expr(2, self.names), "var "))
                self.names.append(f"v{self.count}")
            elif draw < 0.75 or depth == 0:
                made.append(("set", self.r.choice(self.names), self.expr(3, self.names), ""))
            elif draw < 0.88:
                made.append(("if", self.test(self.expr(2, self.names), self.names) if self.r.random() < 0.7 else ("in", self.r.choice(SCALARS)), self.body(2, depth - 1), self.body(1, depth - 1)))
            else:
                self.count += 1
                name, stop = f"k{self.count}", ("in", self.r.choice(("u8", "i16", "i64", "u64")))
                few = ("bin", "%", stop, ("lit", 4)) if self.r.random() < 0.5 else ("call", "min", [("in", "u8"), ("lit", 3)])
                made.append(("for", name, [few] if self.r.random() < 0.5 else [("lit", 1), few], self.loop(name, depth)))
        return made

    def loop(self, name, depth):
        outer, self.names = self.names, [*self.names]
        read_only = [*outer, name]
        body = [("set", self.r.choice(outer), self.expr(3, read_only), "") for _ in range(2)]
        self.names = outer
        return body


def lines_of(body, pad="  "):
    lines = []
    for s in body:
        if s[0] == "set":
            lines.append(f"{pad}{s[3]}{s[1]} = {text_of(s[2])}")
        elif s[0] == "store":
            lines.append(f"{pad}o_{s[1]}[i] = {text_of(s[2])}")
        elif s[0] == "if":
            lines += [f"{pad}if {text_of(s[1])} {{", *lines_of(s[2], pad + "  "), f"{pad}}} else {{", *lines_of(s[3], pad + "  "), pad + "}"]
        else:
            lines += [f"{pad}for {s[1]} in range({', '.join(map(text_of, s[2]))}) {{", *lines_of(s[3], pad + "  "), pad + "}"]
    return lines


def inputs(r, t):
    if t == "bool":
        return [r.random() < 0.5 for _ in range(COUNT)]
    if t in FLOATS:
        return [ROUND[t](r.choice((r.uniform(-4, 4), float(r.randrange(-9, 9)), r.uniform(-1e9, 1e9), 0.0, -0.0))) for _ in range(COUNT)]
    low, high = limits(t)
    return [min(max(r.choice((r.randrange(-9, 9), r.randrange(low, high + 1), low, high)), low), high) for _ in range(COUNT)]


def generate(seed):
    g = Generator(seed)
    body = g.body(6, 2, True)
    body += [("store", t, g.expr(2, g.names)) for t in SCALARS]
    parameters = [f"{p}_{t}" for t in SCALARS for p in "xo"]
    funcs = [f"func {n}(a, b) {{ return {text_of(e)} }}" for n, e in g.functions.items()]
    text = "\n".join(["default @numba", "default @strict", *(f.replace("x_", "no_") for f in funcs), f"kernel k({', '.join(parameters)}) {{", "  let i = grid(1)", *lines_of(body), "}", ""])
    return g, body, text


def run_one(context, seed):
    g, body, text = generate(seed)
    given = {t: inputs(g.r, t) for t in SCALARS}
    arrays = [(t, np.array(given[t] if p == "x" else [0] * COUNT, NUMPY[t])) for t in SCALARS for p in "xo"]
    machine = Machine(g.functions)
    while machine.is_changed:
        machine.is_changed = False
        machine.infer(body)
    try:
        context.run(text, arrays, (1, 1, 1), (COUNT, 1, 1))
    except library.Failure as failure:
        return "failed", f"--- kernel {seed}\n{text}{failure}"
    wrong, has_open = [], False
    for i in range(COUNT):
        env = {"in": {t: given[t][i] for t in SCALARS}, "out": {}}
        try:
            machine.run(body, env)
        except Ambiguous:
            has_open = True
            continue
        for (t, _), (_, out) in zip(arrays[::2], arrays[1::2]):
            got, want = out[i].item(), env["out"][t]
            if got != want and (got == got or want == want):
                wrong.append(f"o_{t}[{i}]: got {got!r}, expected {want!r}")
    if wrong:
        types = ", ".join(f"{n}: {t}" for n, t in machine.types.items())
        return "failed", "\n".join([f"--- kernel {seed}", text, types, *wrong[:8]])
    return "open in part" if has_open else "right", None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--types", action="store_true", help="no kernels: the types of all operators")
    parser.add_argument("--kjit-compile", help="for --types")
    parser.add_argument("--refused", type=int, default=40, help="for --types: so many of the operators that Numba does not have")
    parser.add_argument("--print", action="store_true", help="only print the kernels")
    pool.add_options(parser, 300)
    options = parser.parse_args()
    if options.types:
        return check_types(options)
    if options.print:
        for seed in range(options.seed, options.seed + options.count):
            print(generate(seed)[2])
        return 0
    return pool.run(options, f"kernels with Numba's types on {options.device}", lambda o: library.Library(o.libdir, o.device), run_one, lambda seed, o, why: f"--- kernel {seed}: {why}\n{generate(seed)[2]}")


if __name__ == "__main__":
    sys.exit(main())
