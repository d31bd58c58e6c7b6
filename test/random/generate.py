"""Random kernels that the language accepts, with inputs. Kinds: straight ones (each thread its element), and blocks that work together."""
import math
import random
import re

import numpy as np

import far
import language as l
import parts
import records
import tuples
from language import Array, Bound, Function, Program, Touch, Translator, Typed, TypeMismatch, block_text, is_float, is_weak, text_of
from library import NUMPY
from values import BITS, FLOATS, INTEGERS, PRECISION, ROUND, SCALARS, limits

NUMBERS = ("i32", "f32", "i64", "u32", "f64", "i16", "u8", "f16", "i32", "f32")
COMMON = ("i32", "i64", "u32", "f32", "f64", "i32", "f32")


# numbers a little above ties of bf16 and f32; an f64 between them and the ties does not distinguish them
TIES = ((1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 38) + 1, -(1 << 60) - (1 << 36) - 1)


# for built-ins that do not take exactly one number
ARITY = {"fma": 3, "select": 3, "min": 2, "max": 2, "ceil_div": 2, "div_trunc": 2, "rem_trunc": 2, "mulhi": 2, "copysign": 2, "fmod": 2, "fdim": 2, "quotient": 2}


def lit(value, ty=None):
    weak = ty or ("wf" if isinstance(value, float) else "wi")
    return ("lit", value, repr(value) if not ty else f"{value!r}{ty}", weak)


def var(name): return ("var", name)
def call(name, *args): return ("call", name, list(args))


# The ways in which a kernel receives its numbers. The numbers are the same each time, so the results must be the same
# as well.
WAYS = ("parameters", "literals", "const parameters", "constants", "mixed")


class Kernel:
    def __init__(self):
        self.parameters = []  # (name, type, shape or None)
        self.arrays = {}
        self.body, self.functions = [], []
        self.grid = self.block = (1, 1, 1)
        self.shape, self.range_names, self.is_straight = (), [], True
        self.attributes = ""
        self.wrapper = None
        self.declarations, self.annotations = [], {}
        self.per_thread = {}  # array -> the number of elements that belong to each thread
        self.shares_records = False
        self.touches = []  # funcs that change an element of these arrays
        self.poked = None  # the array that an extern func changes, which the kernel's code does not show
        self.before, self.far = [], None  # lines before all others; a view through a pointer: name, type, shape
        self.ways = {}  # name of a number that is not a plain parameter -> one of WAYS

    def give(self, way):
        """Sets how the numbers are passed from now on; mixed: each in its own way. A const parameter is one of the
        numbers."""
        names = [n for n, t, s in self.parameters if s is None and not isinstance(t, far.Pointer)]
        self.ways = {}
        draw = random.Random(self.text())
        self.ways = {n: draw.choice(WAYS[:4]) if way == "mixed" else way for n in names}
        self.ways = {n: w for n, w in self.ways.items() if w != "parameters" and (w != "const parameters" or isinstance(self.type_of(n), str))}

    def type_of(self, name):
        return next(t for n, t, _ in self.parameters if n == name)

    def is_argument(self, name):
        return self.ways.get(name) not in ("literals", "constants")

    def value_text(self, name):
        """Returns the number as the kernel would write it."""
        return records.literal_text(self.arrays[name][0], self.type_of(name))

    def environment(self):
        env = {n: self.parameter(n, t, shape) for n, t, shape in self.parameters if not isinstance(t, far.Pointer)}
        if self.far:
            env[self.far[0]] = Array("p_fp", *self.far[1:])
        for name in self.range_names:
            env[name] = Typed("i64", name)
        return env

    def is_output(self, name): return name[0] == "o" or name in self.per_thread

    def parameter(self, name, t, shape):
        if name in self.ways:
            py = records.python_text(self.arrays[name][0], t)
            return records.Record(t, py, False, True) if isinstance(t, records.Struct) else Typed(t, py, is_const=l.CERTAIN)
        if isinstance(t, records.Struct):
            return records.Record(t, "p_" + name, False) if shape is None else records.Records("p_" + name, t, shape, name[0] == "o")
        return Typed(t, "p_" + name) if shape is None else Array("p_" + name, t, shape)

    def python_names(self):
        return ["p_" + n for n, _, _ in self.parameters]

    def text(self):
        lines = self.declarations + [f.text() for f in self.functions] + [f.text() for f, _ in self.touches]
        lines += [f"const {n}: {self.type_of(n)} = {self.value_text(n)}" for n, way in self.ways.items() if way == "constants"]
        names = ["const " * (n in self.ways) + n + self.annotations.get(n, "") for n, _, _ in self.parameters if self.is_argument(n)]
        lines.append(f"kernel k({', '.join(names)}){self.attributes} {{")
        begin = len(lines)
        lines += ["  " + line for line in self.before]
        if self.range_names:
            lines.append(f"  for {', '.join(self.range_names)} in grid_range({self.wrapper}) {{")
            lines += block_text(self.body, 2) + ["  }"]
        else:
            lines += block_text(self.body, 1)
        for n, way in self.ways.items():
            if way == "literals":
                lines[begin:] = [re.sub(rf"\b{n}\b", self.value_text(n), line) for line in lines[begin:]]
        return "\n".join(lines + ["}", ""])


class Generator(parts.Generation, records.Generation, far.Generation, tuples.Generation):
    lane_types = ("f32", "i32", "f64", "u32", "f16", "bf16", "u8", "i64", "u64", "i16", "bool", "f32")

    def __init__(self, seed, is_far, is_known):
        """is_known: whether the kernel receives its numbers in each of WAYS."""
        self.is_far, self.is_known = is_far, is_known
        self.r = random.Random(seed)
        self.rng = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32])
        self.kernel = Kernel()
        self.only_divides = False
        self.is_strict = self.r.random() < 0.8
        self.is_small = not self.is_strict or self.r.random() < 0.3
        self.counter, self.given = 0, []
        self.edge_share = 0.05 if is_known and not self.is_small else 0  # for the expressions: see of_edges
        self.protected = set()
        self.declare_structs(f"S{seed}")

    def name(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"

    # -- data --

    def numbers(self, t, count):
        if isinstance(t, records.Struct):
            array = np.zeros(count, t.dtype)
            records.fill(array, t, self.numbers)
            return array
        if t == "bool":
            return self.rng.integers(0, 2, count).astype(np.bool_)
        if self.is_small:
            low = 0 if t[0] == "u" else -9
            v = self.rng.integers(low, 10, count)
            return bf16_bits(v.astype(np.float64)) if t == "bf16" else v.astype(NUMPY[t])
        if t in INTEGERS:
            low, high = limits(t)
            edges = [v for v in (low, low + 1, high, high - 1, 0, 1, 2, 3, -1, -2, 7, 31, 32, 33) if low <= v <= high]
            if self.is_known and BITS[t] == 64 and count == 1 and self.r.random() < 0.3:
                edges = [v for v in TIES if low <= v]
                return np.array([self.r.choice(edges)], NUMPY[t])
            picks = [self.r.choice(edges) if self.r.random() < 0.25 else self.r.randint(max(low, -100), min(high, 100)) if self.r.random() < 0.5 else self.r.randint(low, high) for _ in range(count)]
            return np.array(picks, NUMPY[t])
        edges = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 1e19, 65504.0, 1e-7, 2.0**31, 2.0**63, 1e-40)
        v = np.array([self.r.choice(edges) if self.r.random() < 0.2 else self.r.uniform(-100, 100) for _ in range(count)])
        if t == "bf16":
            return bf16_bits(v)
        with np.errstate(all="ignore"):
            return v.astype(NUMPY[t])

    # -- expressions --

    def scalars(self, kind=None):
        found = [n for n, v in self.tr.env.items() if isinstance(v, Typed) and (kind is None or kind(v.ty))]
        return found

    def literal(self):
        r = self.r
        if r.random() < 0.6:
            v = r.choice((0, 1, 2, 3, 5, 7, 8, 10, 16, 31, 100, -1, -2, -7))
            if not self.is_small and r.random() < 0.15:
                v = r.choice((255, 256, 65535, 65536, 2147483647, -2147483648, 1000003, 127, -128))
            return lit(v)
        if r.random() < 0.7:
            return lit(float(r.choice((0.0, 1.0, 2.0, -3.0)) if self.is_small else r.choice((0.5, 1.5, 0.1, 3.0, -2.25, 100.0, 1e-3))))
        t = r.choice(("u8", "i64", "u32", "f32", "f64", "u64", "f16", "bf16", "i16"))
        return lit(float(r.randint(0, 9)) if t in FLOATS else r.randint(0, 9), t)

    def leaf(self):
        r = self.r
        if self.far and self.far in self.tr.env and r.random() < 0.3:
            return self.far_leaf()
        given = [n for n in self.given if n in self.tr.env]
        if given and r.random() < 0.4:
            return var(r.choice(given))
        choice = r.random()
        if choice < 0.15:
            return self.literal()
        if choice < 0.55:
            arrays = [n for n, v in self.tr.env.items() if isinstance(v, Array) and n not in self.unreadable and n != self.far]
            if arrays:
                return self.element(r.choice(arrays))
        if self.structs and choice < 0.75:
            member = self.member()
            if member:
                return member
        names = [n for n in self.scalars() if n not in self.hidden]
        return var(r.choice(names)) if names else self.literal()

    def element(self, name):
        a = self.tr.env[name]
        if name in self.own:
            return ("idx", name, [self.own_index(name)])
        return ("idx", name, [self.index(extent, k, len(a.shape)) for k, extent in enumerate(a.shape)])

    def index(self, extent, k, rank):
        """An index that is in bounds whatever the values of its operands are."""
        r = self.r
        if self.places and rank and rank == len(self.places) and extent == self.extents[k] and r.random() < 0.7:
            return var(self.places[k])
        if r.random() < 0.2:
            return lit(r.randint(-extent, extent - 1))
        names = self.scalars(lambda t: t in INTEGERS and t != "u64")
        names = [n for n in names if n not in self.hidden]
        if not names:
            return lit(r.randint(0, extent - 1))
        e = var(r.choice(names))
        if r.random() < 0.3:
            e = ("bin", r.choice("+-*"), e, lit(r.randint(1, 5)))
        return ("bin", "%", e, lit(extent))

    def try_expr(self, make, wanted=None):
        for _ in range(12):
            e = make()
            try:
                t = self.tr.expr(e)
            except TypeMismatch:
                continue
            if wanted is None or wanted(t):
                return e, t
        return None, None

    def expr(self, depth, wanted=None):
        e, t = self.try_expr(lambda: self.grow(depth), wanted)
        if e is None and depth > 0:
            return self.expr(depth - 1, wanted)
        return e, t

    def value(self, depth, wanted=None):
        """An expression that has its own type."""
        test = lambda t: not is_weak(t.ty) and not t.is_const and (wanted is None or wanted(t.ty))
        e, t = self.expr(depth, test)
        if e is None:
            names = [n for n in self.scalars(wanted or (lambda ty: True)) if test(self.tr.env[n]) and n not in self.hidden]
            if not names:
                raise TypeMismatch("nothing to use")
            e = var(self.r.choice(names))
            t = self.tr.expr(e)
        return e, t

    def test(self, depth):
        return self.value(depth, lambda t: t == "bool" or t in INTEGERS)[0]

    def grow(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.08:
            return self.leaf()
        sub = lambda d=depth - 1: self.grow(r.randint(0, d))
        if r.random() < 0.08:
            return self.part_expr(depth - 1)
        if r.random() < 0.15 and self.tuples():
            return self.tuple_expr()
        if not self.is_small and r.random() < 0.08:
            return self.shifted(sub)
        if self.edge_share and r.random() < self.edge_share:
            return self.of_edges()
        k = r.random()
        if k < 0.45:
            ops = ("+", "-", "*", "+", "-", "*", "&", "|", "^", "<<", ">>", "//", "%", "/", "//", "%") if not self.is_small else ("+", "-", "*", "+", "-", "&", "|", "^", "//", "%", ">>")
            return ("bin", r.choice(ops), sub(), sub())
        if k < 0.53:
            return ("bin", r.choice(("==", "!=", "<", ">", "<=", ">=")), sub(), sub())
        if k < 0.58:
            return ("bin", r.choice(("and", "or")), sub(), sub())
        if k < 0.66:
            return ("un", r.choice(("-", "+", "~", "not", "-")), sub())
        if k < 0.73:
            return ("cond", sub(), sub(), sub())
        if k < 0.81:
            return ("cast", r.choice(SCALARS), sub())
        if k < 0.83:
            return ("bitcast", r.choice(SCALARS[1:]), sub())
        if k < 0.86:
            if self.is_known and r.random() < 0.4:
                return ("bin", "**", sub(), r.choice((lit(r.randint(-3, -1)), sub())))
            return ("bin", "**", sub(), lit(r.randint(0, 3 if r.random() < 0.5 else 6)) if r.random() < 0.8 else ("cast", r.choice(("u8", "u32")), sub()))
        if k < (0.88 if self.is_known else 0.93) or not self.kernel.functions:
            name = r.choice(("min", "max", "abs", "ceil_div", "div_trunc", "rem_trunc", "mulhi", "brev", "popc", "clz", "ctz", "ffs", "floor", "ceil", "trunc", "rint", "round", "isnan", "isinf", "isfinite", "signbit", "sqrt", "fma", "copysign",
                             "fmod", "select", "min", "max", "abs", "select", *["fdim", "quotient"] * self.is_known))
            return ("call", name, [sub() for _ in range(ARITY.get(name, 1))])
        funcs = [f for f in self.kernel.functions if f.is_single]
        f = r.choice(funcs + 3 * [f for f in funcs if self.is_known and ": func" in f.params[-1]] or [None])
        if f is None:
            return sub()
        if self.is_known and r.random() < 0.3:
            return self.identity(sub)
        return ("call", f.name, [self.handed(f, sub) if ": func" in p else sub() for p in f.params])

    def identity(self, sub):
        """Calls a func that has an identity, or one that is passed as an argument, which may have none."""
        names = [f.name for f in self.kernel.functions if f.identity] + [name for name, v in self.tr.env.items() if isinstance(v, (str, Bound))]
        return ("identity", self.r.choice(names), sub()) if names else sub()

    def handed(self, to, sub):
        """A func with as many parameters as the call has arguments, or one with more, by bind_back."""
        funcs = [f for f in self.kernel.functions if f is not to and f.is_single and not any(": func" in p for p in f.params)]
        bound = [f for f in funcs if f.count > to.taken] if self.is_known else []
        if bound and self.r.random() < 0.8:
            f = self.r.choice(bound)
            return ("bind", f.name, [sub() for _ in range(f.count - to.taken)])
        return self.r.choice([f.name for f in funcs if f.count == to.taken] or ["none"])

    # -- arrays in which a thread has several elements, funcs that store, extern funcs that write --

    def own_arrays(self):
        """Adds before the other parameters: arrays in which thread i has the elements from i * count on."""
        k, r = self.kernel, self.r
        for n in range(r.choice((1, 2) if self.only_divides else (0, 0, 1, 1, 2))):
            t, count = r.choice(NUMBERS), r.randint(2, 5)
            k.per_thread[f"e{n}"] = count
            k.parameters.append((f"e{n}", t, (math.prod(k.shape) * count,)))
        if r.random() < 0.15:
            k.per_thread["h0"] = count = r.randint(1, 4)
            k.parameters.append(("h0", "i32", (math.prod(k.shape) * count,)))
            k.poked = "h0"
            k.declarations.append("extern func poke(i: i64, v: i32) -> i32")

    def start_own(self, out):
        """The names of the thread's arrays. Some are also visible as views through pointers, which the compiler cannot
        relate to the arrays."""
        k, r = self.kernel, self.r
        self.own = dict(k.per_thread)
        for name in k.per_thread:
            if name == k.poked:
                continue
            self.writable.append(name)
            t, shape = next((t, s) for n, t, s in k.parameters if n == name)
            if r.random() < 0.4:
                alias = self.name("q")
                self.emit(out, ("alias", alias, name, t, shape[0]))
                self.own[alias] = k.per_thread[name]
                self.writable.append(alias)
            if self.only_divides or r.random() < 0.6:
                f = Touch(self.name("touch"), t, r.choice(("+", "-", "*", "max", "min")))
                k.touches.append((f, name))

    def own_index(self, name):
        count, i = self.own[name], var("i0")
        counters = [n for n in self.counters if n in self.tr.env and self.counters[n] <= count]
        k = var(self.r.choice(counters)) if counters and self.r.random() < 0.6 else lit(self.r.randint(0, count - 1))
        return ("bin", "+", ("bin", "*", i, lit(count)) if self.r.random() < 0.5 else ("bin", "*", lit(count), i), k)

    def effect(self):
        """A call that changes an element of the thread."""
        k, r = self.kernel, self.r
        if k.poked and (not k.touches or r.random() < 0.5):
            return ("poke", self.own_index(k.poked), ("cast", "i32", self.value(1)[0]))
        if not k.touches:
            raise TypeMismatch("no effect")
        f, name = r.choice(k.touches)
        name = r.choice([n for n in self.own if self.tr.env[n].py == self.tr.env[name].py])
        return ("touch", f, name, self.own_index(name), ("cast", f.ty, self.value(1)[0]))

    def call_effect(self, out, depth):
        """The same with a division before or after it, which may fail."""
        r = self.r
        effect = self.effect()
        t = self.tr.expr(effect).ty
        quotient = ("bin", r.choice(("/", "/", "//", "%") if is_float(t) else ("//", "%")), self.value(2)[0], self.value(2)[0])
        self.tr.expr(quotient)
        k = r.random()
        e = effect if k < 0.2 else ("bin", "+", effect, quotient) if k < 0.6 else ("bin", "+", quotient, effect)
        self.tr.expr(e)
        if r.random() < 0.5 or not self.own:
            self.emit(out, ("let", [self.name("t")], [e]))
            return
        name = r.choice([n for n in self.own if n != self.kernel.poked] or [None])
        if name is None:
            raise TypeMismatch("nothing to store into")
        place = ("idx", name, [self.own_index(name)])
        self.emit(out, ("let", [self.name("t")], [effect])) if r.random() < 0.5 else None
        self.emit(out, ("set", [place], "", [("cast", self.tr.env[name].element, e)]))

    def rounds(self, out, depth):
        """Stores and loads elements of one array, each from its neighbour."""
        r = self.r
        names = [n for n in self.writable if n in self.tr.env and n not in self.unreadable and n not in self.hidden and isinstance(self.tr.env[n], Array)
                 and (n in self.own or self.is_local(n)) and len(self.tr.env[n].shape) == 1 and self.tr.env[n].element in NUMBERS]
        if not names:
            raise TypeMismatch("no array")
        for _ in range(r.randint(1, 3)):
            name = r.choice(names)
            a = self.tr.env[name]
            count = self.own.get(name, a.shape[0])
            k, first = self.name("k"), r.choice((0, 1, 1))
            at = lambda e: ("idx", name, [("bin", "+", ("bin", "*", var("i0"), lit(count)), e) if name in self.own else e])
            def body(b):
                self.tr.env[k] = Typed("i32", "v_" + k)
                self.counters[k] = count
                near = at(("bin", "-", var(k), lit(1)) if first else ("bin", "-", lit(count - 1), var(k)))
                x = near if r.random() < 0.8 else self.value(1)[0]
                e = ("cast", a.element, ("bin", r.choice(("+", "-", "+", "*")), x, at(var(k))))
                self.emit(b, ("set", [at(var(k))], "", [e]))
                if r.random() < 0.3:
                    self.store_element(b, 1)
            inner = self.in_block(body)
            out.append(("for", "range", [k], [lit(first), lit(count)] if first else [lit(count)], inner, r.choice((" @unroll", " @unroll", ""))))
        if r.random() < 0.5:
            self.emit(out, ("let", [self.name("t")], [self.element(r.choice(names))]))

    def divisions(self, out):
        """Only float divisions may fail in it. The code before the division has then run once, and the code after it
        has not run. Quotients determine the loaded elements."""
        r = self.r
        floats = [n for n, v in self.tr.env.items() if isinstance(v, Array) and v.element in FLOATS and n not in self.unreadable]
        for _ in range(r.randint(2, 5)):
            k = r.random()
            if k < 0.4 and self.kernel.touches:
                self.emit(out, ("let", [self.name("t")], [self.effect()]))
                continue
            q = self.name("t")
            number = lambda: self.element(r.choice(floats)) if floats and r.random() < 0.6 else ("bin", "%", ("cast", "f32", var("i0")), lit(float(r.randint(2, 9))))
            self.emit(out, ("let", [q], [("bin", "/", number(), number())]))
            if floats and r.random() < 0.4:
                name = r.choice(floats)
                a = self.tr.env[name]
                if len(a.shape) == 1 and name not in self.own:
                    self.emit(out, ("let", [self.name("t")], [("idx", name, [("bin", "%", ("cast", "i32", var(q)), lit(a.shape[0]))])]))

    def is_local(self, name): return self.tr.env[name].py.startswith("l_")

    def may_fail(self, out, depth):
        """raise and assert, which fail in a few threads; no thread fails if asserts are not checked."""
        r = self.r
        rare = ("bin", "==", ("bin", "%", ("bin", "+", var("i0"), lit(r.randint(0, 63))), lit(r.choice((17, 33, 64)))), lit(5))
        if r.random() < 0.3:
            self.emit(out, ("if", rare, [("raise",)], []))
        else:
            self.emit(out, ("assert", ("un", "not", rare) if r.random() < 0.5 else ("bin", "or", ("un", "not", rare), self.test(1))))

    def of_edges(self):
        """Values that the compiler computes from literals, at special points of functions, and conversions of integers
        that f64 cannot represent to narrower floats."""
        r = self.r
        wide = [n for n in self.given if n in self.tr.env and self.tr.env[n].ty in ("i64", "u64")]
        if wide and r.random() < 0.3:
            return ("cast", r.choice(("bf16", "f32", "f16")), var(r.choice(wide)))
        whole = [n for n in self.given if n in self.tr.env and self.tr.env[n].ty in INTEGERS]
        if whole and r.random() < 0.25:
            return ("bin", "**", var(r.choice(whole)), r.choice((lit(r.randint(-3, -1)), var(r.choice(whole)))))
        name = r.choice(("fdim", "fdim", "quotient", "min", "max", "copysign", "fmod", "fma", "sqrt", "rint", "round", "floor", "ceil", "trunc", "abs", "/", "%", "-", "*", "<", "=="))
        operands = [lit(r.choice((math.inf, -math.inf, math.inf, math.nan, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e300, 5e-324))) for _ in range(3)]
        operands[1] = operands[0] if r.random() < 0.3 else operands[1]
        return ("bin", name, *operands[:2]) if name in l.PREC else ("call", name, operands[:ARITY.get(name, 1)])

    def shifted(self, sub):
        """Shifts by a count with a known range, which may reach and exceed the width. The results are widened
        afterwards."""
        r = self.r
        x = ("cast", r.choice(("u32", "i32", "u32", "i64", "u64", "u16")), sub())
        if r.random() < 0.5:
            x = ("bin", "&", x, lit(r.choice((255, 1023, 65535))))
        n, base = ("bin", "&", ("cast", r.choice(("i32", "i32", "u32", "i64")), sub()), lit(r.choice((1, 3, 7, 31, 63)))), lit(r.choice((0, 24, 30, 32, 32, 40, 60, 64, 65)))
        count = r.choice((n, ("bin", "+", base, n), ("bin", "-", base, n), ("bin", "-", n, base)))
        return ("cast", r.choice(("i64", "i64", "u64", "f64")), ("bin", r.choice(("<<", ">>", ">>")), x, count))

    # -- statements --

    def emit(self, out, s):
        getattr(self.tr, "stmt_" + s[0])(s, True)
        out.append(s)

    def in_block(self, make):
        """A block with its own scope."""
        env, hidden = self.tr.env, set(self.hidden)
        self.tr.env = dict(env)
        body = []
        make(body)
        self.tr.env, self.hidden = env, hidden
        self.join_again()
        return body

    def join_again(self):
        """Returns the vars with their types so far."""
        env = self.tr.env
        for name in self.tr.joins:
            if name in env and self.tr.joins[name]:
                env[name] = Typed(self.tr.joins[name], "v_" + name)

    def variables(self):
        return [n for n in self.vars if n in self.tr.env and n not in self.protected]

    def assign(self, out, depth):
        names = self.variables()
        if not names:
            return self.declare(out, depth)
        name = self.r.choice(names)
        e, t = self.expr(depth, lambda t: not t.arms)
        if e is None:
            return
        op = self.r.choice(("", "", "+", "-", "*", "^", "&", "//", "%", "<<", ">>", "/"))
        self.emit(out, ("set", [var(name)], op, [e]))

    def swap(self, out, depth):
        names = self.variables()
        if len(names) < 2:
            return self.assign(out, depth)
        a, b = self.r.sample(names, 2)
        x, _ = self.expr(depth)
        self.emit(out, ("set", [var(a), var(b)], "", [var(b), x if self.r.random() < 0.5 else var(a)]))

    def declare(self, out, depth):
        name = self.name("v")
        k = self.r.random()
        if k < 0.35:
            e = self.r.choice((lit(0), lit(1), lit(0.0), lit(1.0), lit(-3)))
            self.emit(out, ("var", name, None, e))
        elif k < 0.5:
            t = self.r.choice(SCALARS[1:])
            self.emit(out, ("var", name, t, lit(float(self.r.randint(0, 9))) if t in FLOATS and self.r.random() < 0.5 else lit(self.r.randint(0, 9))))
        else:
            e, _ = self.value(depth)
            self.emit(out, ("var", name, None, e))
        self.vars.append(name)

    def open_variable(self, out, depth):
        """A var without a value, which every path assigns."""
        name = self.name("v")
        self.emit(out, ("open", [name]))

        def assign(b):
            e = self.r.choice((lit(1), lit(0.5), lit(-3))) if self.r.random() < 0.3 else self.value(depth)[0]
            self.emit(b, ("set", [var(name)], "", [e]))

        if self.r.random() < 0.5:
            test = self.test(1)
            yes, no = (self.in_block(lambda b: (self.statements(b, self.r.randint(0, 1), depth - 1), assign(b))) for _ in range(2))
            out.append(("if", test, yes, no))
        else:
            assign(out)
        self.tr.env[name] = Typed(self.tr.joins[name], "v_" + name)
        self.vars.append(name)

    def like(self, name):
        """Returns the arrays that a var may hold in addition to this one: inputs, or the thread's own."""
        a, is_own = self.tr.env[name], self.is_own_array(name)
        return [n for n in self.holdable() if self.is_own_array(n) == is_own and (self.tr.env[n].element, self.tr.env[n].shape) == (a.element, a.shape)]

    def is_own_array(self, name): return self.held.get(name, name)[0] == "a"

    def holdable(self):
        names = [n for n, v in self.tr.env.items() if isinstance(v, Array) and n not in self.unreadable and n not in self.hidden and n not in self.own and n != self.far]
        return [n for n in names if n in self.held or n[0] == "x" or (n[0] == "a" and self.tr.env[n].py.startswith("l_"))]

    def array_variable(self, out, depth):
        """A var that holds an array, and vars that exchange their arrays."""
        names = self.holdable()
        several = [n for n in names if len(self.like(n)) > 1]
        if not names:
            return self.declare(out, depth)
        held = [n for n in names if n in self.held]
        if not held or self.r.random() < 0.4:
            name, array = self.name("h"), self.r.choice(several or names)
            self.emit(out, ("avar", name, array))
            self.held[name] = self.held.get(array, array)
            held = [name]
            if self.is_own_array(name):
                self.writable.append(name)
        name = self.r.choice(held)
        values = [self.r.choice([n for n in self.like(name) if n != name] or [name])]
        others = [n for n in self.like(name) if n in held and n != name]
        change = ("aset", [name], values)
        if others and self.r.random() < 0.5:
            other = self.r.choice(others)
            change = ("aset", [name, other], [other, self.r.choice((name, values[0]))])
        if self.r.random() < 0.6:
            out.append(("if", self.test(1), self.in_block(lambda b: self.emit(b, change)), []))
        else:
            self.emit(out, change)
        self.vars.append(self.name("v"))
        self.emit(out, ("var", self.vars[-1], None, self.element(name)))

    def let(self, out, depth):
        pairs = [f for f in self.kernel.functions if not f.is_single]
        if pairs and self.r.random() < 0.4:
            f = self.r.choice(pairs)
            self.emit(out, ("let", [self.name("t"), self.name("t")], [("call", f.name, [self.value(1)[0] for _ in f.params])]))
            return
        takers = [f for f in self.kernel.functions if self.is_known and f.is_single and ": func" in f.params[-1]]
        if takers and self.r.random() < 0.5:
            f, sub = self.r.choice(takers), lambda: self.expr(1)[0]
            e, _ = self.try_expr(lambda: ("call", f.name, [self.handed(f, sub) if ": func" in p else sub() for p in f.params]), lambda t: not (is_weak(t.ty) and t.value is None))
            if e is not None:
                self.emit(out, ("let", [self.name("t")], [e]))
            return
        count = 2 if self.r.random() < 0.15 else 1
        values = [self.expr(depth, lambda t: not (is_weak(t.ty) and t.value is None))[0] for _ in range(count)]
        if None in values:
            return
        self.emit(out, ("let", [self.name("t") for _ in values], values))

    def branch(self, out, depth):
        test = self.test(depth)
        yes = self.in_block(lambda b: self.statements(b, self.r.randint(1, 3), depth - 1))
        no = self.in_block(lambda b: self.statements(b, self.r.randint(1, 2), depth - 1)) if self.r.random() < 0.5 else []
        if yes:
            out.append(("if", test, yes, no))

    def leave(self, body, depth):
        """A break or continue with a condition."""
        if self.r.random() < 0.5:
            try:
                body.insert(self.r.randint(0, len(body)) if not body else len(body), ("if", self.test(depth), [(self.r.choice(("break", "continue")),)], []))
            except TypeMismatch:
                pass

    def loop(self, out, depth):
        r = self.r
        name = self.name("k")
        if r.random() < 0.65:
            start, step = r.randint(-2, 3), r.choice((1, 1, 2, -1, 3))
            stop = start + step * r.randint(0, 5) + r.choice((0, 1 if abs(step) > 1 else 0))
            args = [lit(stop)] if start == 0 and step == 1 else [lit(start), lit(stop)] if step == 1 else [lit(start), lit(stop), lit(step)]
            if r.random() < 0.4:
                bound, _ = self.value(1, lambda t: t in INTEGERS and t != "u64")
                args[-1 if len(args) < 3 else 1] = ("bin", "%", bound, lit(6))
            def body(b):
                self.tr.env[name] = Typed(self.tr.range_type([self.tr.expr(a) for a in args]), "v_" + name)
                self.statements(b, r.randint(1, 3), depth - 1)
                self.leave(b, depth - 1)
            inner = self.in_block(body)
            if inner:
                out.append(("for", "range", [name], args, inner, r.choice(("", "", "", " @unroll", " @unroll(2)")) if not any(a[0] == "bin" for a in args) else r.choice(("", " @unroll(2)"))))
            return
        self.emit(out, ("var", name, r.choice(("i32", "u8", "i64", None)), lit(r.randint(1, 5))))
        self.protected.add(name)
        def body(b):
            self.emit(b, ("set", [var(name)], "-", [lit(1)]))
            self.statements(b, r.randint(1, 3), depth - 1)
            self.leave(b, depth - 1)
        inner = self.in_block(body)
        test = ("bin", ">", var(name), lit(0))
        if r.random() < 0.3:
            test = ("bin", "and", test, self.test(1))
        out.append(("while", test, inner))

    def local(self, out, depth):
        name, t = self.name("a"), self.r.choice(SCALARS)
        shape = (self.r.randint(2, 5),) if self.r.random() < 0.7 else (2, self.r.randint(2, 3))
        self.emit(out, ("array", "local", name, t, shape))
        self.hidden.add(name)
        self.unreadable.add(name)
        index = [self.name("k") for _ in shape]
        def fill(names, shape_left):
            def body(b):
                self.tr.env[names[0]] = Typed("i32", "v_" + names[0])
                if len(names) > 1:
                    b.append(("for", "range", [names[1]], [lit(shape_left[1])], self.in_block(lambda c: inner(c, names[1])), ""))
                else:
                    inner(b, None)
            def inner(b, second):
                if second:
                    self.tr.env[second] = Typed("i32", "v_" + second)
                self.emit(b, ("set", [("idx", name, [var(n) for n in index])], "", [self.stored(t, 2)]))
            return self.in_block(body)
        out.append(("for", "range", [index[0]], [lit(shape[0])], fill(index, shape), ""))
        self.hidden.discard(name)
        self.unreadable.discard(name)
        self.writable.append(name)

    def stored(self, t, depth):
        """Returns a value that an element of type t accepts."""
        e, ty = self.expr(depth, lambda v: not v.arms)
        if e is None:
            e, ty = self.value(1)
        if is_weak(ty.ty) or (is_float(ty.ty) and t not in FLOATS):
            return ("cast", t, e)
        return e

    def store_element(self, out, depth):
        names = [n for n in self.writable if n in self.tr.env]
        if not names:
            return self.assign(out, depth)
        name = self.r.choice(names)
        t = self.tr.env[name].element
        op = self.r.choice(("", "", "+", "-", "*", "^", "|"))
        place = self.element(name)
        self.emit(out, ("set", [place], op, [self.stored(t, depth)]))

    def statements(self, out, count, depth):
        r = self.r
        for _ in range(count):
            makers = [self.rounds, self.call_effect] if self.own and r.random() < 0.25 else [self.may_fail] if r.random() < 0.01 and "i0" in self.tr.env else [self.let, self.let, self.declare, self.open_variable, self.array_variable, self.array_variable, self.assign, self.assign, self.swap, self.store_element, self.vector_statement, self.record_statement, self.tuple_statement, self.tuple_statement] + ([self.branch, self.loop, self.branch, self.positions] if depth > 0 else [])
            if self.tuples() and r.random() < 0.2:
                makers = [self.tuple_statement]
            if depth == self.depth:
                makers += [self.local, self.tuple_sum, self.tuple_sum] + ([self.local_records] if self.structs else [])
            for _ in range(3):
                mark, env = len(out), dict(self.tr.env)
                try:
                    r.choice(makers)(out, max(depth, 1))
                    break
                except TypeMismatch:
                    del out[mark:]
                    self.tr.env = env

    # -- kernels --

    def functions(self, program):
        for _ in range(self.r.choice((0, 2, 4, 6) if self.is_known else (0, 0, 1, 2, 3))):
            self.function(program)

    def function(self, program):
        r = self.r
        name = self.name("fn")
        params = [self.name("p") for _ in range(r.choice((1, 2, 2, 3, 4)) if self.is_known else r.randint(1, 3))]
        takes, taken = None, r.choice((1, 2)) if self.is_known else 2
        usable = [f for f in self.kernel.functions if (f.count >= taken if self.is_known else f.count == 2) and f.is_single and not any(": func" in p for p in f.params)]
        env = {p: Typed(r.choice(COMMON), "p_" + p) for p in params}
        if usable and r.random() < (0.5 if self.is_known else 0.3):
            takes = self.name("op")
            f = r.choice(usable)
            env[takes] = f.name if f.count == taken else Bound(f.name, [Typed(r.choice(COMMON), "x") for _ in range(f.count - taken)])
        self.start(Translator(program, env, is_generating=True), 1)
        body = []
        try:
            if takes:
                n = self.name("t")
                self.emit(body, ("let", [n], [("call", takes, [var(params[0]), var(params[-1])][:taken])]))
            self.statements(body, r.randint(0, 2), 1)
            is_single = r.random() < 0.8
            if is_single:
                result, t = self.value(3)
                if r.random() < 0.4:
                    early, _ = self.value(2)
                    early = ("cast", t.ty, early)
                    body.append(("if", self.test(1), [("return", [early])], []))
                body.append(("return", [result]))
            else:
                body.append(("return", [self.value(2)[0], self.value(2)[0]]))
            ones = [g.name for g in self.kernel.functions if g.count == 1 and g.is_single and not any(": func" in p for p in g.params)]
            identity = r.choice(ones) if self.is_known and len(params) > 1 and ones and r.random() < 0.7 else None
            f = Function(name, params + ([takes + ": func"] if takes else []), body, identity)
            f.is_single, f.count, f.taken = is_single, len(params), taken
            # as it will be called, once
            check = Program([*self.kernel.functions, f], self.is_strict, self.is_known)
            check.instance(name, [*[Typed(env[p].ty, "x") for p in params], *([env[takes]] if takes else [])])
            self.kernel.functions.append(f)
            program.functions[name] = f
        except TypeMismatch:
            pass

    def start(self, translator, depth):
        self.tr, self.depth = translator, depth
        self.vars, self.writable, self.places, self.extents = [], [], [], []
        self.hidden, self.unreadable, self.changeable = set(), set(), set()
        self.held = {}  # name of a var that holds an array -> an array that it may hold
        self.own, self.counters = {}, {}

    def element_type(self):
        return self.r.choice(self.structs) if self.structs and self.r.random() < 0.4 else self.r.choice(SCALARS)

    def parameters(self, shape, outputs, inputs):
        k, r = self.kernel, self.r
        if len(shape) == 1:
            self.own_arrays()
        for n in range(outputs):
            k.parameters.append((f"o{n}", self.element_type(), shape))
        for n in range(inputs):
            own = shape if r.random() < 0.8 else tuple(r.randint(1, 9) for _ in range(r.randint(1, 3)))
            k.parameters.append((f"x{n}", *((self.element_type(), own) if n == 0 or r.random() < 0.4 else k.parameters[-1][1:])))
        for n in range(r.randint(0, 2) if not self.is_known else r.randint(2, 6)):
            k.parameters.append((f"s{n}", self.element_type(), None))
        self.given = [n for n, t, s in k.parameters if s is None and isinstance(t, str)] if self.is_known else []
        r.shuffle(k.parameters)
        for n, t, s in k.parameters:
            if isinstance(t, records.Struct) and r.random() < 0.5:
                k.annotations[n] = f": {t.name}" + ("" if s is None else f"[{', '.join(':' * len(s))}]")
            if s is None:
                k.arrays[n] = self.numbers(t, 1)
            else:
                a = self.numbers(t, math.prod(s)).reshape(s)
                k.arrays[n] = a if n in k.per_thread else self.layout(a, n[0] == "o")

    def layout(self, a, is_output):
        k = self.r.random()
        if k < 0.7:
            return a
        if k < 0.8:
            return np.asfortranarray(a)
        if k < 0.9 or is_output:
            wide = np.zeros((a.shape[0] * 2, *a.shape[1:]), a.dtype)
            view = wide[::2]
            view[...] = a
            return view
        return a[::-1][::-1] if self.r.random() < 0.5 else np.ascontiguousarray(a[::-1])[::-1]

    def straight(self):
        k, r = self.kernel, self.r
        program = Program([], self.is_strict, self.is_known)
        self.functions(program)
        self.only_divides = r.random() < 0.08
        rank = 1 if self.only_divides else r.choice((1, 1, 1, 2, 3))
        shape = {1: (r.randint(20, 70),), 2: (r.randint(3, 8), r.randint(3, 9)), 3: (r.randint(2, 4), r.randint(2, 4), r.randint(2, 5))}[rank]
        outputs = r.randint(1, 3)
        inputs = r.randint(1, 3)
        if self.is_known and r.random() < 0.5:  # expressions of numbers only
            shape, outputs, inputs = (1,) * rank, 8, 0
            self.edge_share *= 5
        k.shape = shape
        self.parameters(shape, outputs, inputs)
        if self.is_far:
            self.add_far()
        names = [f"i{n}" for n in range(rank)]
        body = []
        if self.only_divides or rank == 3 or r.random() < 0.5:
            k.range_names = names
            k.wrapper = ", ".join(f"o0.shape[{n}]" for n in range(rank)) if rank > 1 or r.random() < 0.3 else "len(o0)"
            if self.is_far and rank == 1:
                k.wrapper = self.far_extent(shape[0])
            self.start(Translator(program, k.environment(), is_generating=True), 2)
            if r.random() < 0.5:
                k.grid, k.block = (0, 0, 0), (0, 0, 0)
            else:
                k.grid, k.block = (r.randint(1, 3), 1, 1), (r.choice((1, 32, 33, 64)), 1, 1)
        else:
            self.start(Translator(program, k.environment(), is_generating=True), 2)
            k.block = (16, 1, 1) if rank == 1 else (4, 4, 1)
            k.grid = (-(-shape[-1] // k.block[0]), -(-shape[0] // 4) if rank == 2 else 1, 1)
            position = lambda d: ("bin", "+", ("bin", "*", ("pos", f"blockIdx.{d}"), ("pos", f"blockDim.{d}")), ("pos", f"threadIdx.{d}"))
            self.emit(body, ("let", [names[-1]], [position("x")]))
            if rank == 2:
                self.emit(body, ("let", [names[0]], [position("y")]))
            for n in range(rank):
                self.emit(body, ("if", ("bin", ">=", var(names[n]), ("shape", "o0", n)), [("return", [])], []))
        self.places, self.extents = names, shape
        self.start_own(body)
        self.unreadable |= {n for n, t, _ in k.parameters if n[0] == "o" and isinstance(t, str)}
        if self.only_divides:
            self.attempt(body, self.divisions)
        else:
            self.statements(body, r.randint(0, 6), 2)
        for n, t, s in k.parameters:
            if n[0] != "o":
                continue
            made = [v for v, ty in self.tr.env.items() if v[0] == "t" and isinstance(ty, Typed) and not is_weak(ty.ty)]
            if self.only_divides and made and isinstance(t, str):
                self.emit(body, ("set", [("idx", n, [var(i) for i in names])], "", [("cast", t, var(r.choice(made)))]))
                continue
            for _ in range(8):
                try:
                    self.emit(body, self.result(n, t, [var(i) for i in names], r.randint(2, 5)))
                    break
                except TypeMismatch:
                    pass
        if self.is_far and math.prod(shape) <= far.WINDOW:
            number = var(names[0])
            for n, extent in zip(names[1:], shape[1:]):
                number = ("bin", "+", ("bin", "*", number, lit(extent)), var(n))
            self.attempt(body, lambda b: self.emit(b, ("set", [self.far_store(number)], "", [self.stored(k.far[1], 2)])))
        k.body = body
        self.finish()
        return k, program

    def result(self, name, t, indices, depth):
        if isinstance(t, records.Struct):
            return ("rput", ("relem", name, indices, 0), [], self.record_of(t, 2))
        return ("set", [("idx", name, indices)], "", [self.stored(t, depth)])

    def finish(self):
        self.kernel.attributes = " @strict" if self.is_strict else ""

    def together(self):
        """Blocks with shared memory, barriers, warp operations and atomics."""
        k, r = self.kernel, self.r
        k.is_straight = False
        program = Program([], self.is_strict, self.is_known)
        self.functions(program)
        size = r.choice((32, 64, 96)) if r.random() < 0.8 else r.randint(5, 70)
        self.block_size = size
        k.block, k.grid = (size, 1, 1), (r.randint(1, 2), 1, 1)
        total = size * k.grid[0]
        k.shape = (total,)
        self.parameters((total,), r.randint(1, 2), r.randint(1, 2))
        self.start(Translator(program, k.environment(), is_generating=True), 1)
        body = []
        self.emit(body, ("let", ["i0"], [("bin", "+", ("bin", "*", ("pos", "blockIdx.x"), ("pos", "blockDim.x")), ("pos", "threadIdx.x"))]))
        self.emit(body, ("let", ["t"], [("pos", "threadIdx.x")]))
        self.emit(body, ("let", ["b"], [("pos", "blockIdx.x")]))
        self.places, self.extents = ["i0"], [total]
        self.start_own(body)
        self.unreadable |= {n for n, t, _ in k.parameters if n[0] == "o" and isinstance(t, str)}
        self.uniform = ["b"] + [n for n, t, s in k.parameters if s is None and t in INTEGERS]
        self.statements(body, r.randint(0, 2), 1)
        for _ in range(r.randint(1, 3)):
            if r.random() < 0.5:
                self.attempt(body, lambda b: self.local(b, 1))
            if r.random() < 0.5:
                self.attempt(body, lambda b: self.rounds(b, 1))
            self.phase(body, 2)
            if r.random() < 0.5:
                self.attempt(body, lambda b: self.rounds(b, 1))
        for n, t, s in k.parameters:
            if n[0] == "o":
                for _ in range(8):
                    try:
                        self.emit(body, self.result(n, t, [var("i0")], r.randint(1, 3)))
                        break
                    except TypeMismatch:
                        pass
        k.body = body
        self.finish()
        return k, program

    def attempt(self, out, make):
        """Adds the lines of make to out, or nothing if the language rejects them."""
        mark, env = len(out), dict(self.tr.env)
        try:
            make(out)
        except TypeMismatch:
            del out[mark:]
            self.tr.env = env

    def phase(self, out, depth):
        makers = [self.exchange, self.exchange, self.vote, self.atomics] + ([self.exchange_records] if self.structs else [])
        if self.block_size % 32 == 0:
            makers += [self.shuffle, self.shuffle, self.divergent_warp] + ([self.shuffle_records] if self.structs else [])
        if depth > 0:
            makers += [self.uniform_loop, self.uniform_branch, self.divergent_then, self.loaded_loop]
        self.attempt(out, lambda b: self.r.choice(makers)(b, depth))

    def divergent_then(self, out, depth):
        self.branch(out, 1)
        self.phase(out, depth - 1)

    def exchange(self, out, depth):
        """Each thread writes its element; a barrier; each thread reads other elements; a barrier before the next
        write."""
        r = self.r
        name, t = self.name("h"), r.choice(SCALARS)
        self.emit(out, ("array", "shared", name, t, (self.block_size,)))
        self.unreadable.add(name)
        self.emit(out, ("set", [("idx", name, [var("t")])], "", [self.stored(t, 2)]))
        if r.random() < 0.3:
            self.attempt(out, lambda b: b.append(("if", self.test(1), self.in_block(lambda c: self.emit(c, ("set", [("idx", name, [var("t")])], "", [self.stored(t, 1)]))), [])))
        self.emit(out, ("sync", "syncthreads", None, []))
        if r.random() < 0.4:  # a tree of sums
            self.tree(out, name, t)
        shift = ("bin", "%", ("bin", "+", var("t"), lit(r.randint(0, 40))), lit(self.block_size))
        result = self.name("t")
        self.emit(out, ("let", [result], [("idx", name, [r.choice((shift, lit(0), lit(-1), ("bin", "-", lit(self.block_size - 1), var("t"))))])]))
        self.unreadable.discard(name)
        self.statements(out, r.randint(0, 2), 1)
        self.unreadable.add(name)
        self.emit(out, ("sync", "syncthreads", None, []))

    def tree(self, out, name, t):
        d = self.name("v")
        start = 1 << ((self.block_size - 1).bit_length() - 1)
        self.emit(out, ("var", d, None, lit(start)))
        self.protected.add(d)
        place = ("idx", name, [var("t")])
        other = ("idx", name, [("bin", "+", var("t"), var(d))])
        e = ("cast", t, self.r.choice((("bin", "+", place, other), ("call", "max", [place, other]), ("bin", "*", place, other))))
        body = [("if", ("bin", "and", ("bin", "<", var("t"), var(d)), ("bin", "<", ("bin", "+", var("t"), var(d)), lit(self.block_size))), [("set", [place], "", [e])], []),
                ("sync", "syncthreads", None, []), ("set", [var(d)], "//", [lit(2)])]
        self.emit(out, ("while", ("bin", ">", var(d), lit(0)), body))

    def vote(self, out, depth):
        kind = self.r.choice(("syncthreads_count", "syncthreads_and", "syncthreads_or"))
        self.emit(out, ("sync", kind, self.name("t"), [self.test(2)]))

    def atomics(self, out, depth):
        r = self.r
        name, t = self.name("h"), r.choice(("i32", "u32", "i64", "u64"))
        count = r.randint(1, min(8, self.block_size))
        op = r.choice(("atomic_add", "atomic_sub", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor"))
        self.emit(out, ("array", "shared", name, t, (count,)))
        self.unreadable.add(name)
        self.emit(out, ("if", ("bin", "<", var("t"), lit(count)), [("set", [("idx", name, [var("t")])], "", [lit(r.randint(0, 100))])], []))
        self.emit(out, ("sync", "syncthreads", None, []))
        def add(b):
            value, v = self.value(2, lambda ty: ty in INTEGERS)
            index = ("bin", "%", self.value(1, lambda ty: ty in INTEGERS and ty != "u64")[0], lit(count))
            self.emit(b, ("atomic", op, ("idx", name, [index]), value))
        if r.random() < 0.4:
            test = self.test(1)
            out.append(("if", test, self.in_block(add), []))
        else:
            add(out)
        self.emit(out, ("sync", "syncthreads", None, []))
        self.emit(out, ("let", [self.name("t")], [("idx", name, [("bin", "%", var("t"), lit(count))])]))
        self.emit(out, ("sync", "syncthreads", None, []))

    def shuffle_of(self, mask, lanes):
        r = self.r
        kind = r.choice(("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "ballot_sync", "all_sync", "any_sync", "eq_sync"))
        if not kind.startswith("shfl"):
            return ("sync", kind, self.name("t"), [lit_hex(mask), self.test(2)])
        value = self.value(2)[0]
        if kind == "shfl_sync":
            lane = lit(r.choice(lanes))
            if mask == 0xFFFFFFFF and r.random() < 0.5:
                lane = ("bin", "%", self.value(1, lambda t: t in INTEGERS and t != "u64")[0], lit(32))
        else:
            lane = lit(r.choice((0, 1, 2, 4, 8, 16, 3, 31)) if mask == 0xFFFFFFFF else r.choice((0, 1, 2, 4)))
        args = [lit_hex(mask), value, lane]
        if r.random() < 0.25:
            args.append(lit(r.choice((2, 4, 8, 16, 32))))
        return ("sync", kind, self.name("t"), args)

    def shuffle(self, out, depth):
        self.emit(out, self.shuffle_of(0xFFFFFFFF, range(32)))

    def divergent_warp(self, out, depth):
        """Warp operations among the lanes on each side of a branch."""
        low = self.r.choice((8, 16, 24, 1))
        v = self.name("v")
        self.emit(out, ("var", v, "i64", lit(0)))
        lane = ("bin", "%", var("t"), lit(32))
        sides = []
        for mask, lanes in (((1 << low) - 1, range(low)), (0xFFFFFFFF ^ ((1 << low) - 1), range(low, 32))):
            def body(b):
                s = self.shuffle_of(mask, lanes)
                self.emit(b, s)
                self.emit(b, ("set", [var(v)], "", [("cast", "i64", var(s[2]))]))
            sides.append(self.in_block(body))
        out.append(("if", ("bin", "<", lane, lit(low)), *sides))

    def uniform_test(self):
        r = self.r
        e = var(r.choice(self.uniform))
        return r.choice((("bin", "==", e, lit(0)), ("bin", "<", ("bin", "%", e, lit(5)), lit(3))))

    def uniform_loop(self, out, depth):
        r = self.r
        name = self.name("k")
        bound = r.choice((lit(r.randint(1, 3)), ("bin", "%", var(r.choice(self.uniform)), lit(4))))
        def body(b):
            self.tr.env[name] = Typed(self.tr.range_type([self.tr.expr(bound)]), "v_" + name)
            for _ in range(r.randint(1, 2)):
                self.phase(b, depth - 1)
            if r.random() < 0.4:
                self.attempt(b, lambda c: self.emit(c, ("if", self.uniform_test(), [(r.choice(("break", "continue")),)], [])))
            self.attempt(b, lambda c: self.assign(c, 2))
            if r.random() < 0.3:
                self.phase(b, depth - 1)
        inner = self.in_block(body)
        if inner:
            out.append(("for", "range", [name], [bound], inner, ""))

    def loaded_loop(self, out, depth):
        """All threads leave the loop together. The loaded values decide this, so the compiler cannot know it."""
        r = self.r
        name = self.name("k")
        inputs = [n for n, v in self.tr.env.items() if isinstance(v, Array) and n[0] == "x" and v.element in INTEGERS]
        if not inputs:
            raise TypeMismatch("nothing to load")
        def leaves():
            x = r.choice(inputs)
            e = ("idx", x, [lit(r.randint(0, extent - 1)) for extent in self.tr.env[x].shape])
            return ("if", ("bin", "==", ("bin", "%", e, lit(r.choice((2, 3)))), ("bin", "%", var(name), lit(2)) if r.random() < 0.5 else lit(1)), [(r.choice(("break", "break", "continue")),)], [])
        self.emit(out, ("var", name, "i32", lit(0)))
        self.protected.add(name)
        def body(b):
            self.emit(b, ("set", [var(name)], "+", [lit(1)]))
            if r.random() < 0.8:
                self.emit(b, leaves())
            self.phase(b, 0)
            if r.random() < 0.8:
                self.emit(b, leaves())
            self.attempt(b, lambda c: self.assign(c, 2))
        inner = self.in_block(body)
        out.append(("while", ("bin", "<", var(name), lit(r.randint(1, 4))), inner))

    def uniform_branch(self, out, depth):
        test = self.uniform_test()
        yes = self.in_block(lambda b: self.phase(b, depth - 1))
        no = self.in_block(lambda b: self.phase(b, depth - 1)) if self.r.random() < 0.4 else []
        if yes:
            self.tr.expr(test)
            out.append(("if", test, yes, no))


def lit_hex(mask): return ("lit", mask, hex(mask), "wi")


def bf16_bits(v):
    with np.errstate(all="ignore"):
        wide = np.array([ROUND["bf16"](float(x)) for x in v], np.float32)
    return (wide.view(np.uint32) >> 16).astype(np.uint16)


def generate(seed, device="cpu", is_known=False):
    """Returns the kernel of a seed and its functions, after as many tries as it takes until the language accepts one.
    Memory that mostly does not exist belongs to the host."""
    is_far = device == "cpu" and random.Random(f"far {seed}").random() < 0.08 and not is_known
    for attempt in range(50):
        g = Generator(seed * 64 + attempt, is_far, is_known)
        try:
            return g.together() if not is_far and g.r.random() < 0.35 else g.straight()
        except TypeMismatch:
            pass
    raise AssertionError("no kernel for this seed")
