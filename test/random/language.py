"""Kernel IR as trees: the text of a tree, and its meaning as Python source.

A tree is a tuple whose first item names it. Translation types it by the rules of the language (docs/ir.md) and writes Python that computes it with values.py;
TypeMismatch says that the language refuses it. Threads become generators: they yield at barriers and warp operations.
"""
import math
import operator

import parts
from parts import Restart, TypeMismatch
import records
import tuples
import values
from values import Ambiguous, BITS, FLOATS, INTEGERS, PRECISION, UNSIGNED, MOST, ROUND, convert, int_to_float, limits, wrap


# ---- text ----

PREC = {"or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "**": 12}
COMPARE = ("==", "!=", "<", ">", "<=", ">=")


def text_of(e, least=0):
    text, prec = bare_text(e)
    return f"({text})" if prec < least else text


def bare_text(e):
    kind = e[0]
    if kind == "lit":
        return e[2], 11 if e[2][0] == "-" else 13
    if kind in ("var", "pos"):
        return e[1], 13
    if kind == "bin":
        op = e[1]
        prec = PREC[op]
        if op == "**":
            return f"{text_of(e[2], 13)} ** {text_of(e[3], 11)}", 12
        left = prec + 1 if op in COMPARE else prec
        return f"{text_of(e[2], left)} {op} {text_of(e[3], prec + 1)}", prec
    if kind == "un":
        return (f"not {text_of(e[2], 3)}", 3) if e[1] == "not" else (f"{e[1]}{text_of(e[2], 11)}", 11)
    if kind == "cond":
        return f"{text_of(e[1], 1)} ? {text_of(e[2])} : {text_of(e[3])}", 0
    if kind == "bind":
        return f"bind_back({', '.join([e[1], *map(text_of, e[2])])})", 13
    if kind == "identity":
        return f"identity_of({e[1]}, {text_of(e[2])})", 13
    if kind in ("call", "apply"):
        return f"{e[1]}({', '.join(a if isinstance(a, str) else text_of(a) for a in e[2])})", 13
    if kind == "cast":
        return f"{e[1]}({text_of(e[2])})", 13
    if kind == "bitcast":
        return f"bitcast({e[1]}, {text_of(e[2])})", 13
    if kind == "idx":
        return f"{e[1]}[{', '.join(text_of(i) for i in e[2])}]", 13
    if kind == "shape":
        return f"{e[1]}.shape[{e[2]}]", 13
    if kind == "len":
        return f"len({e[1]})", 13
    if kind in parts.NUMBERS:
        return parts.text(e, text_of), 13
    if kind in ("member", "rbits"):
        return records.number_text(e, text_of), 13
    if kind == "touch":
        return f"{e[1].name}({e[2]}, {text_of(e[3])}, {text_of(e[4])})", 13
    if kind == "poke":
        return f"poke({text_of(e[1])}, {text_of(e[2])})", 13
    if kind in tuples.NUMBERS:
        return tuples.text(e, text_of), 13
    if kind == "item":
        return f"{text_of(e[1], 13)}[{e[2]}]", 13
    raise AssertionError(kind)


def block_text(body, indent):
    pad, lines = "  " * indent, []
    for s in body:
        kind = s[0]
        if kind == "let":
            lines.append(f"{pad}let {', '.join(s[1])} = {', '.join(text_of(e) for e in s[2])}")
        elif kind == "var":
            lines.append(f"{pad}var {s[1]}{': ' + s[2] if s[2] else ''} = {text_of(s[3])}")
        elif kind == "open":
            lines.append(f"{pad}var {', '.join(s[1])}")
        elif kind == "avar":
            lines.append(f"{pad}var {s[1]} = {s[2]}")
        elif kind == "aset":
            lines.append(f"{pad}{', '.join(s[1])} = {', '.join(s[2])}")
        elif kind == "set":
            lines.append(f"{pad}{', '.join(text_of(p) for p in s[1])} {s[2]}= {', '.join(text_of(e) for e in s[3])}")
        elif kind == "if":
            lines.append(f"{pad}if {text_of(s[1])} {{")
            lines += block_text(s[2], indent + 1)
            if s[3]:
                lines.append(f"{pad}}} else {{")
                lines += block_text(s[3], indent + 1)
            lines.append(pad + "}")
        elif kind == "for":
            lines.append(f"{pad}for {', '.join(s[2])} in {s[1]}({', '.join(text_of(e) for e in s[3])}){s[5]} {{")
            lines += block_text(s[4], indent + 1) + [pad + "}"]
        elif kind == "while":
            lines.append(f"{pad}while {text_of(s[1])} {{")
            lines += block_text(s[2], indent + 1) + [pad + "}"]
        elif kind == "return":
            lines.append(f"{pad}return {', '.join(text_of(e) for e in s[1])}".rstrip())
        elif kind == "array":
            lines.append(f"{pad}{s[1]} {s[2]}: {s[3]}[{', '.join(map(str, s[4]))}]" if s[4] else f"{pad}{s[1]} {s[2]}: {s[3]}")
        elif kind == "sync":
            lines.append(f"{pad}{'let ' + s[2] + ' = ' if s[2] else ''}{s[1]}({', '.join(text_of(e) for e in s[3])})")
        elif kind in ("vlet", "vset"):
            lines.append(pad + parts.statement_text(s, text_of))
        elif kind in tuples.STATEMENTS:
            lines += tuples.statement_lines(s, pad, text_of, lambda inner: block_text(inner, indent + 1))
        elif kind in records.STATEMENTS:
            lines.append(pad + records.statement_text(s, text_of))
        elif kind == "alias":
            lines.append(f"{pad}let {s[1]} = view({s[3]}[{s[4]}], pointer({s[2]}[0]))")
        elif kind == "assert":
            lines.append(f"{pad}assert {text_of(s[1])}, \"no\"")
        elif kind == "raise":
            lines.append(f"{pad}raise \"no\"")
        elif kind == "atomic":
            lines.append(f"{pad}{s[1]}({text_of(s[2])}, {text_of(s[3])})")
        else:
            lines.append(pad + kind)
    return lines


# ---- types ----

def is_weak(t): return t in ("wi", "wf")
def is_float(t): return t == "wf" or t in FLOATS
def arithmetic(t): return "i32" if t in ("bool", "i8", "i16", "u8", "u16") else t


def promote(a, b):
    if is_weak(a) and is_weak(b):
        return "wf" if "wf" in (a, b) else "wi"
    if is_weak(a) or is_weak(b):
        weak, t = (a, b) if is_weak(a) else (b, a)
        return "f64" if weak == "wf" and not is_float(t) else arithmetic(t)
    if is_float(a) and is_float(b):
        return a if a == b else "f32" if {a, b} == {"f16", "bf16"} else max(a, b, key=BITS.get)
    if is_float(a) or is_float(b):
        f, i = (a, b) if is_float(a) else (b, a)
        return "f32" if BITS[i] >= 32 and BITS[f] < 32 else f
    a, b = arithmetic(a), arithmetic(b)
    if (a in UNSIGNED) == (b in UNSIGNED):
        return max(a, b, key=BITS.get)
    if "u64" in (a, b):
        raise TypeMismatch("no type can represent both")
    return "i64"


def join(a, b):
    if a == b:
        return a
    for weak, t in ((a, b), (b, a)):
        if weak == "wi" and t != "bool":
            return t
    return promote(a, b)


# Returns whether the compiler knows a value: a condition that is CERTAIN decides which code is typed. The source of
# such a value has no free variables.
NOT, PERHAPS, CERTAIN = 0, 1, 2


class Typed:
    """A typed value: Python source, a literal's value, or a choice between two values whose type is still open."""
    __slots__ = ("ty", "py", "value", "arms", "is_const")

    def __init__(self, ty, py=None, value=None, arms=None, is_const=NOT):
        self.ty, self.py, self.value, self.arms, self.is_const = ty, py, value, arms, is_const


class Array:
    __slots__ = ("py", "element", "shape", "is_const")

    def __init__(self, py, element, shape):
        self.py, self.element, self.shape = py, element, shape


def py_float(x):
    return "NAN" if x != x else ("INF" if x > 0 else "(-INF)") if x - x != 0 else f"({x!r})"


def wrap_code(py, t):
    if t in UNSIGNED:
        return f"(({py}) & {(1 << BITS[t]) - 1:#x})"
    half = 1 << (BITS[t] - 1)
    return f"(((({py}) + {half:#x}) & {2 * half - 1:#x}) - {half:#x})"


def to_type(e, t):
    """Returns the Python source of a value, converted to a type."""
    if e.ty == t:
        return e.py
    if e.arms:
        return f"({to_type(e.arms[1], t)} if {e.arms[0]} else {to_type(e.arms[2], t)})"
    if is_weak(e.ty) and e.value is None:
        return e.py  # a var that has no type yet, so this round is not final
    if is_weak(e.ty):
        if t == "bool":
            return str(e.value != 0)
        if t == "wf":
            t = "f64"  # two literals meet
        if is_float(t):
            value = int_to_float(e.value, t) if isinstance(e.value, int) else ROUND[t](e.value)
            if value - value != 0 and (isinstance(e.value, int) or e.value - e.value == 0):
                raise TypeMismatch("literal does not fit")
            return py_float(value)
        if e.ty == "wf":
            return repr(convert(e.value, "f64", t))
        low, high = limits(t)
        if not low <= e.value <= high:
            raise TypeMismatch("literal does not fit")
        return f"({e.value})"
    return convert_code(e.py, e.ty, t)


def convert_code(py, source, t):
    if t == "bool":
        return f"({py} != 0)"
    if t in FLOATS:
        if source in FLOATS:
            widens = PRECISION[t] >= PRECISION[source] and not (t == "f16")
            return py if widens else f"r_{t}({py})"
        return f"float({py})" if source == "bool" or BITS[source] <= PRECISION[t] else f"int_to_float({py}, '{t}')"
    if source in FLOATS:
        return f"float_to_int({py}, '{t}')"
    if source == "bool":
        return f"int({py})"
    low, high = limits(t)
    least, most = limits(source)
    return py if low <= least and most <= high else wrap_code(py, t)


def concrete(e):
    """Returns the type of a literal without a context."""
    if not is_weak(e.ty):
        return e
    wide = e.ty == "wi" and isinstance(e.value, int) and not -(2**31) <= e.value < 2**31
    t = "f64" if e.ty == "wf" else "i64" if wide else "i32"
    return Typed(t, to_type(e, t), is_const=e.is_const)


def condition(e):
    if is_float(e.ty) or is_weak(e.ty):
        raise TypeMismatch("condition")
    return e.py if e.ty == "bool" else f"({e.py} != 0)"


# ---- translation ----

# Computes with literals: exact integers, and f64 floats.
WEAK_OPS = {"wi": {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": values.floor_div, "%": values.floor_mod, "&": operator.and_, "|": operator.or_, "^": operator.xor},
            "wf": {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": values.fdiv, "%": lambda x, y: values.float_mod(x, y, "f64")}}
WEAK_CALLS = {"min": {"wi": min, "wf": values.fmin}, "max": {"wi": max, "wf": values.fmax}, "abs": {"wi": abs, "wf": abs}, "ceil_div": {"wi": values.ceil_div}, "div_trunc": {"wi": values.trunc_div},
              "rem_trunc": {"wi": values.trunc_rem}, "floor": {"wf": values.ffloor}, "ceil": {"wf": values.fceil}, "trunc": {"wf": values.ftrunc}, "rint": {"wf": values.frint}, "round": {"wf": values.fround},
              "sqrt": {"wf": values.fsqrt}, "copysign": {"wf": values.copysign}, "fmod": {"wf": values.fmod}, "fdim": {"wf": values.fdim}, "quotient": {"wf": values.fdiv}, "fma": {"wf": lambda x, y, z: values.fma(x, y, z, "f64")}}
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
NUMERIC = ("min", "max", "abs")
INTEGER_CALLS = {"ceil_div": 2, "div_trunc": 2, "rem_trunc": 2, "mulhi": 2, "brev": 1}
QUOTIENTS = ("ceil_div", "div_trunc", "rem_trunc")
BIT_COUNTS = ("popc", "clz", "ctz", "ffs")
FLOAT_CALLS = {"floor": "ffloor", "ceil": "fceil", "trunc": "ftrunc", "rint": "frint", "round": "fround"}
FLOAT_TESTS = {"isnan": "({0} != {0})", "isinf": "(abs({0}) == INF)", "isfinite": "({0} - {0} == 0)", "signbit": "signbit({0})"}


class Function:
    def __init__(self, name, params, body, identity=None):
        """identity: the name of a func with one parameter."""
        self.name, self.params, self.body, self.identity = name, params, body, identity

    def text(self):
        attribute = f" @identity({self.identity})" if self.identity else ""
        return "\n".join([f"func {self.name}({', '.join(self.params)}){attribute} {{", *block_text(self.body, 1), "}"])


class Touch:
    """A func that changes the element at the given index."""

    def __init__(self, name, ty, op):
        self.name, self.ty, self.op = name, ty, op

    def value(self, old, new):
        return ("cast", self.ty, ("call", self.op, [old, new]) if self.op in ("max", "min") else ("bin", self.op, old, new))

    def text(self):
        return f"func {self.name}(w, i, v) {{\n  w[i] = {text_of(self.value(('idx', 'w', [('var', 'i')]), ('var', 'v')))}\n  return w[i]\n}}"


class Bound:
    """A func with its last arguments bound. If it is passed to a func, a tuple contains their values."""

    def __init__(self, name, values):
        self.name, self.values = name, values
        self.key = ("bind_back", name, *((v.ty, v.value) for v in values))
        self.py = f"({''.join('None, ' if v.py is None else v.py + ', ' for v in values)})"

    def received(self, py):
        return Bound(self.name, [Typed(v.ty, v.py and f"{py}[{k}]", v.value, is_const=v.is_const) for k, v in enumerate(self.values)])


def is_func(a): return isinstance(a, (str, Bound))


class Program:
    """The functions of a kernel, and the functions that have been translated so far."""

    def __init__(self, functions, is_strict, has_literals=True):
        """has_literals: whether built-ins and most operators may take only literals. Kernels without such calls keep
        the seeds under which documents name them."""
        self.functions = {f.name: f for f in functions}
        self.is_strict, self.has_literals = is_strict, has_literals
        self.instances, self.lines = {}, []

    def instance(self, name, arguments):
        key = (name, tuple(a if isinstance(a, str) else a.key if isinstance(a, Bound) else (a.ty, a.value) for a in arguments))
        if key not in self.instances:
            values = [v for a in arguments for v in (a.values if isinstance(a, Bound) else [] if isinstance(a, str) else [a])]
            if any(is_weak(v.ty) and v.value is None for v in values):
                raise TypeMismatch("weak argument known at run time")
            function = self.functions[name]
            if [": func" in p for p in function.params] != [is_func(a) for a in arguments] or any(isinstance(a, str) and a not in self.functions for a in arguments):
                raise TypeMismatch("arguments")
            py_name = f"{name}_{len(self.instances)}"
            self.instances[key] = None
            names, env = [], {}
            for param, a in zip(function.params, arguments):
                param = param.split(":")[0]
                names.append("p_" + param)
                env[param] = a if isinstance(a, str) else a.received("p_" + param) if isinstance(a, Bound) else Typed(a.ty, None, a.value, is_const=a.is_const) if is_weak(a.ty) else Typed(a.ty, "p_" + param)
            try:
                t, lines = translate(self, env, function.body, False)
            except TypeMismatch:
                del self.instances[key]
                raise
            if t.result is None:
                raise TypeMismatch("no result")
            self.lines += [f"def {py_name}({', '.join(names)}):", *lines, ""]
            self.instances[key] = (py_name, t.result)
        if self.instances[key] is None:
            raise TypeMismatch("recursion")
        py_name, result = self.instances[key]
        return f"{py_name}({', '.join('None' if isinstance(a, str) or not isinstance(a, Bound) and is_weak(a.ty) else a.py for a in arguments)})", result


class Translator(parts.Translation, records.Translation, tuples.Translation):
    def __init__(self, program, env=None, joins=None, is_generating=False):
        self.program, self.env = program, dict(env or {})
        self.joins = {} if joins is None else joins
        self.is_generating, self.result, self.site = is_generating, None, 0
        self.join_keys = {}  # the keys of vars in joins: each copy of a loop over a tuple has its own vars

    # -- expressions --

    def expr(self, e):
        return getattr(self, "expr_" + e[0])(*e[1:])

    def expr_lit(self, value, text, ty):
        if is_weak(ty):
            return Typed(ty, None, value, is_const=CERTAIN)
        return Typed(ty, py_float(value) if ty in FLOATS else f"({value!r})", is_const=CERTAIN)

    def expr_var(self, name):
        v = self.env[name]
        if not isinstance(v, Typed):
            raise TypeMismatch("no number")
        return v

    def typed(self, t, py, is_const=NOT):
        return Typed(t, py, is_const=is_const)

    def perhaps(self, e):
        """Returns the same value, marked as unknown to the compiler."""
        return Typed(e.ty, e.py, e.value, e.arms, min(e.is_const, PERHAPS))

    def index_code(self, e):
        if is_float(e.ty) or e.ty == "bool":
            raise TypeMismatch("index")
        return to_type(e, "i64")

    def expr_pos(self, text):
        return Typed("i64", "pos_" + text.replace(".", "_"))

    def expr_shape(self, name, k):
        return Typed("i64", f"({self.env[name].shape[k]})")

    def expr_len(self, name):
        return Typed("i64", f"({self.env[name].shape[0]})")

    def expr_idx(self, name, indices):
        a = self.env[name]
        return Typed(a.element, f"{a.py}[{self.offset(a, indices)}]")

    def expr_touch(self, f, name, index, value):
        a, v = self.env[name], self.expr(value)
        inner = Translator(self.program, {"old": Typed(f.ty, "old_"), "new": Typed(f.ty, "new_")})
        changed = inner.expr(f.value(("var", "old"), ("var", "new"))).py
        return Typed(f.ty, f"touch({a.py}, {self.offset(a, [index])}, {to_type(v, f.ty)}, lambda old_, new_: {changed})")

    def expr_poke(self, index, value):
        a = self.env["h0"]
        return Typed("i32", f"poke({a.py}, {self.offset(a, [index])}, {to_type(self.expr(value), 'i32')})")

    def offset(self, a, indices):
        parts = []
        for extent, i in zip(a.shape, indices):
            if i[0] == "lit" and i[1] < 0:
                parts = [f"({p})*{extent}" for p in parts] + [str(i[1] + extent)]
                continue
            e = self.expr(i)
            if is_float(e.ty) or e.ty == "bool":
                raise TypeMismatch("index")
            parts = [f"({p})*{extent}" for p in parts] + [to_type(e, "i64")]
        return " + ".join(parts) or "0"

    def known(self, e):
        """Returns the value of a constant."""
        if e.py is None:
            return e.value
        try:
            return eval(e.py, NAMES)
        except Ambiguous as error:
            raise TypeMismatch("an open constant") from error

    def decided(self, test):
        """Returns the value of a constant condition, or None if the kernel must evaluate it. Generated kernels contain
        no constant conditions; they arise if an input becomes a constant."""
        if test.is_const and (self.is_generating or test.is_const == PERHAPS):
            raise TypeMismatch("constant condition")
        return bool(self.known(Typed("bool", condition(test)))) if test.is_const else None

    def tested(self, e):
        """Translates a constant condition that decides nothing."""
        if e.is_const and self.is_generating:
            raise TypeMismatch("constant condition")
        return condition(e)

    def expr_un(self, op, x):
        e = self.expr(x)
        if op == "not":
            return Typed("bool", f"(not {self.tested(e)})", is_const=e.is_const)
        if op == "~" and (is_float(e.ty) or e.ty == "bool"):
            raise TypeMismatch("~")
        if is_weak(e.ty):
            if e.arms:
                raise TypeMismatch("weak choice")
            if e.value is None:
                return self.weak_var(e.ty)
            return Typed(e.ty, None, {"-": lambda: -e.value, "+": lambda: e.value, "~": lambda: ~e.value}[op](), is_const=CERTAIN)
        t = arithmetic(e.ty)
        py = to_type(e, t)
        if op == "+":
            return Typed(t, py, is_const=e.is_const)
        if t in FLOATS:
            return Typed(t, f"fneg({py})", is_const=e.is_const)
        return Typed(t, wrap_code(f"{op}{py}", t), is_const=e.is_const)

    def stays_open(self, a, b):
        """An integer next to a var to which only float literals were assigned so far."""
        is_open = any(x.ty == "wf" and x.value is None and not x.arms and (y.ty in INTEGERS or y.ty == "bool") for x, y in ((a, b), (b, a)))
        return is_open and not self.is_lane

    def weak_var(self, ty):
        return Typed(ty, "None")

    def expr_cond(self, c, x, y):
        test = self.expr(c)
        is_true = self.decided(test)
        if is_true is not None:
            return self.expr(x if is_true else y)
        return self.choice(test, self.expr(x), self.expr(y))

    def choice(self, test, a, b):
        if self.stays_open(a, b):
            return self.weak_var("wf")
        t = join(a.ty, b.ty)
        if is_weak(t):
            if a.value is None or b.value is None:
                raise TypeMismatch("weak choice")
            return Typed(t, None, None, (condition(test), a, b))
        return Typed(t, f"({to_type(a, t)} if {condition(test)} else {to_type(b, t)})")

    def expr_cast(self, t, x):
        e = self.expr(x)
        if isinstance(t, tuple):
            t = self.env[t[1]].element
        if is_weak(e.ty) and e.arms:
            raise TypeMismatch("weak choice")
        return Typed(t, self.narrowed(e, t), is_const=e.is_const)

    def narrowed(self, e, t):
        """As to_type."""
        is_open = t in FLOATS and e.ty in FLOATS and PRECISION[t] < PRECISION[e.ty] and not self.program.is_strict
        return f"round_open({e.py}, '{t}')" if is_open else to_type(e, t)

    def expr_bitcast(self, t, x):
        e = self.expr(x)
        if is_weak(e.ty) or e.ty == "bool" or t == "bool" or BITS[e.ty] != BITS[t]:
            raise TypeMismatch("bitcast")
        return Typed(t, e.py if t == e.ty else f"bitcast({e.py}, '{e.ty}', '{t}')", is_const=e.is_const)

    def expr_bin(self, op, x, y):
        a = self.expr(x)
        if op in ("and", "or"):
            is_true = self.decided(a)
            if is_true is not None and is_true == (op == "or"):
                return Typed("bool", str(is_true), is_const=CERTAIN)
            b = self.expr(y)
            right = self.tested(b)
            return Typed("bool", f"({condition(a)} {op} {right})") if is_true is None else Typed("bool", f"bool({right})", is_const=b.is_const)
        b = self.expr(y)
        is_const = min(a.is_const, b.is_const)
        if is_weak(a.ty) and is_weak(b.ty):
            return self.weak_binary(op, a, b)
        if op in COMPARE:
            return self.compare(op, a, b, is_const)
        if op in ("+", "-", "*", "/", "//", "%", "**") and self.stays_open(a, b):
            return self.weak_var("wf")
        if op in ("<<", ">>"):
            return self.shift(op, a, b, is_const)
        if op == "**":
            return self.power(a, b, is_const)
        if op in ("&", "|", "^"):
            if is_float(a.ty) or is_float(b.ty):
                raise TypeMismatch(op)
            if a.ty == b.ty == "bool":
                return Typed("bool", f"(bool({a.py}) {op} bool({b.py}))", is_const=is_const)
        t = promote(a.ty, b.ty)
        if op == "/" and not is_float(t):
            raise TypeMismatch("/")
        is_const = self.known_quotient(b, is_const) if op in ("//", "%") else is_const
        return Typed(t, self.arithmetic_code(op, t, to_type(a, t), to_type(b, t)), is_const=min(is_const, PERHAPS) if t in FLOATS else is_const)

    def known_quotient(self, divisor, is_const):
        """A value with a check that fails is not computed in advance."""
        return PERHAPS if is_const == CERTAIN and self.known(divisor) == 0 else is_const

    def arithmetic_code(self, op, t, a, b):
        if t in FLOATS:
            if op in "+-" and not self.program.is_strict:
                return f"r_{t}(fadd({a}, {'' if op == '+' else '-'}{b}))" if op == "+" else f"r_{t}(fadd({a}, fneg({b})))"
            if op == "*" and not self.program.is_strict:
                return f"fmul_open({a}, {b}, '{t}')"
            if op in "+-*":
                return f"r_{t}({a} {op} {b})" if t != "f64" else f"({a} {op} {b})"
            return {"/": f"r_{t}(fdiv({a}, {b}))", "%": f"float_mod({a}, {b}, '{t}')", "//": f"float_floor_div({a}, {b}, '{t}')"}[op]
        if op in ("//", "%"):
            return wrap_code(f"{'floor_div' if op == '//' else 'floor_mod'}({a}, {b})", t)
        return wrap_code(f"{a} {op} {b}", t)

    def weak_binary(self, op, a, b):
        if a.value is None or b.value is None:
            if a.arms or b.arms or op in COMPARE or op in ("**", "<<", ">>", "/"):
                raise TypeMismatch("weak operator")
            return self.weak_var(promote(a.ty, b.ty))
        t = promote(a.ty, b.ty)
        if not self.program.has_literals and (op not in ("+", "-", "*") or max(abs(a.value), abs(b.value)) > 2**40):
            raise TypeMismatch("weak operator")
        if t == "wi" and max(abs(a.value), abs(b.value)) > 2**40:
            raise TypeMismatch("weak operator")
        x, y = (float(a.value), float(b.value)) if t == "wf" else (a.value, b.value)
        if op in COMPARE:
            return Typed("bool", str(COMPARISONS[op](x, y)), is_const=CERTAIN)
        if op not in WEAK_OPS[t]:
            raise TypeMismatch("weak operator")
        return Typed(t, None, self.computed(WEAK_OPS[t][op], x, y), is_const=CERTAIN)

    def computed(self, function, *values):
        try:
            return function(*values)
        except Ambiguous as error:
            raise TypeMismatch("an open literal") from error

    def compare(self, op, a, b, is_const):
        if a.ty == b.ty == "bool":
            return Typed("bool", f"({a.py} {op} {b.py})", is_const=is_const)
        try:
            t = promote(a.ty, b.ty)
            x, y = to_type(a, t), to_type(b, t)
        except TypeMismatch:
            if is_weak(a.ty) or is_weak(b.ty):
                raise
            x, y = a.py, b.py
        return Typed("bool", f"({x} {op} {y})", is_const=is_const)

    def shift(self, op, a, b, is_const):
        if is_float(a.ty) or is_float(b.ty):
            raise TypeMismatch(op)
        if is_weak(a.ty):
            raise TypeMismatch("weak shift")
        t = arithmetic(a.ty)
        count = f"({b.value})" if is_weak(b.ty) and b.value is not None else b.py or to_type(b, "i32")
        py = f"{to_type(a, t)} {op} ({count} & {BITS[t] - 1})"
        return Typed(t, wrap_code(py, t) if op == "<<" else f"({py})", is_const=is_const)

    def power(self, a, b, is_const):
        if is_float(b.ty) or is_weak(a.ty) or b.arms or (is_weak(b.ty) and b.value is None):
            raise TypeMismatch("power")
        t = arithmetic(a.ty)
        x = to_type(a, t)
        if is_float(t) or is_weak(b.ty) and b.value == 0:  # the constant 1
            is_const = PERHAPS if is_weak(b.ty) and b.value == 0 else min(is_const, PERHAPS)
        if is_float(t):
            if not is_weak(b.ty) or not 0 <= b.value <= 3:
                raise TypeMismatch("power")
            mul = lambda p, q: f"r_{t}({p} * {q})" if self.program.is_strict else f"fmul_open({p}, {q}, '{t}')"
            return Typed(t, f"({x}, 1.0)[1]" if b.value == 0 else x if b.value == 1 else f"square({x}, lambda p, q: {mul('p', 'q')}, {b.value})", is_const=is_const)
        if is_weak(b.ty) and not (-64 if self.program.has_literals else -1) < b.value < 64:
            raise TypeMismatch("power")
        n = str(b.value) if is_weak(b.ty) else b.py
        return Typed(t, wrap_code(f"int_pow({x}, {n}, {BITS[t]})", t), is_const=is_const)

    def expr_call(self, name, args):
        callee = self.env.get(name)
        last = callee.values if isinstance(callee, Bound) else []
        if is_func(callee):
            name = callee.name if isinstance(callee, Bound) else callee
        if name in self.program.functions:
            values = [self.env.get(a, a) if isinstance(a, str) else self.bound(a) if a[0] == "bind" else self.expr(a) for a in args] + last
            py, result = self.program.instance(name, values)
            if isinstance(result, tuple):
                raise TypeMismatch("a tuple")
            return Typed(result, py)
        values = [self.expr(a) for a in args]
        if name == "select":
            return self.select(*values)
        if all(is_weak(v.ty) for v in values):
            return self.weak_call(name, values)
        t = arithmetic(values[0].ty)
        for before, v in zip(values, values[1:]):
            t = "wf" if self.stays_open(before, v) else promote(t, v.ty)
        if t == "wf" and name not in BIT_COUNTS and name not in INTEGER_CALLS:
            return self.weak_var("wf")
        is_const = min(v.is_const for v in values)
        if name in BIT_COUNTS or name in INTEGER_CALLS:
            if is_float(t):
                raise TypeMismatch(name)
            is_const = min(is_const, PERHAPS) if name not in QUOTIENTS else self.known_quotient(values[1], is_const)
            return self.integer_call(name, t, [to_type(v, t) for v in values], is_const)
        if name in NUMERIC:
            return self.numeric_call(name, t, [to_type(v, t) for v in values], min(is_const, PERHAPS) if t in FLOATS else is_const)
        if not is_float(t):
            t = "f64"
        return self.float_call(name, t, [to_type(v, t) for v in values], min(is_const, PERHAPS))

    def expr_identity(self, name, like):
        callee = self.env.get(name, name)
        function = self.program.functions.get(callee.name if isinstance(callee, Bound) else callee)
        if function is None or not function.identity:
            raise TypeMismatch("no identity")
        py, result = self.program.instance(function.identity, [self.expr(like)])
        if isinstance(result, tuple):
            raise TypeMismatch("a tuple")
        return Typed(result, py)

    def bound(self, e):
        if e[1] not in self.program.functions:
            raise TypeMismatch("arguments")
        return Bound(e[1], [self.expr(a) for a in e[2]])

    def weak_call(self, name, values):
        t = "wf" if any(v.ty == "wf" for v in values) else "wi"
        if not self.program.has_literals or t not in WEAK_CALLS.get(name, ()) or any(v.value is None for v in values) or t == "wi" and max(abs(v.value) for v in values) > 2**40:
            raise TypeMismatch("weak call")
        return Typed(t, None, self.computed(WEAK_CALLS[name][t], *[float(v.value) if t == "wf" else v.value for v in values]), is_const=CERTAIN)

    def select(self, c, x, y):
        if is_float(c.ty) or is_weak(c.ty) or c.is_const and self.is_generating:
            raise TypeMismatch("select")
        if (is_weak(x.ty) and is_weak(y.ty)) or self.stays_open(x, y):
            return self.choice(c, x, y)
        t = join(x.ty, y.ty)
        return Typed(t, f"({to_type(x, t)}, {to_type(y, t)})[not {condition(c)}]", is_const=min(c.is_const, x.is_const, y.is_const, PERHAPS))

    def integer_call(self, name, t, args, is_const):
        if name in BIT_COUNTS:
            return Typed("i32", f"{name}({args[0]}, {BITS[t]})", is_const=is_const)
        py_name = {"div_trunc": "trunc_div", "rem_trunc": "trunc_rem"}.get(name, name)
        width = f", {BITS[t]}" if name in ("mulhi", "brev") else ""
        return Typed(t, wrap_code(f"{py_name}({', '.join(args)}{width})", t), is_const=is_const)

    def numeric_call(self, name, t, args, is_const):
        if t in FLOATS:
            return Typed(t, f"{'f' + name if name != 'abs' else 'abs'}({', '.join(args)})", is_const=is_const)
        py = f"{name}({', '.join(args)})"
        return Typed(t, wrap_code(py, t) if name == "abs" else py, is_const=is_const)

    def float_call(self, name, t, args, is_const):
        if name in FLOAT_CALLS:
            return Typed(t, f"{FLOAT_CALLS[name]}({args[0]})", is_const=is_const)
        if name in FLOAT_TESTS:
            return Typed("bool", f"(lambda v: {FLOAT_TESTS[name].format('v')})({args[0]})", is_const=is_const)
        if name == "sqrt":
            return Typed(t, f"r_{t}(fsqrt({args[0]}))", is_const=is_const)
        if name == "fma":
            return Typed(t, f"fma({', '.join(args)}, '{t}')", is_const=is_const)
        if name == "fdim":
            return Typed(t, f"r_{t}(fdim({', '.join(args)}))", is_const=is_const)
        if name == "quotient":
            return Typed(t, f"r_{t}(fdiv({', '.join(args)}))", is_const=is_const)
        if name in ("copysign", "fmod"):
            return Typed(t, f"{name}({', '.join(args)})", is_const=is_const)
        raise TypeMismatch(name)

    # -- statements --

    def block(self, body, indent, is_thread):
        """Returns lines of Python. is_thread: whether this is the body of a kernel, whose barriers yield."""
        outer, lines = self.env, []
        self.env = dict(outer)
        for s in body:
            lines += ["  " * indent + line for line in getattr(self, "stmt_" + s[0])(s, is_thread)]
            if lines and lines[-1].startswith(("return", "break", "continue", "raise"), 2 * indent):
                break  # the code after it is not typed
        self.env = outer
        return lines or ["  " * indent + "pass"]

    def inner(self, body, is_thread):
        return self.block(body, 1, is_thread)

    def stmt_let(self, s, _):
        if len(s[1]) > 1 and len(s[2]) == 1:  # a func that returns a tuple
            py, result = self.program.instance(s[2][0][1], [self.expr(a) for a in s[2][0][2]])
            if not isinstance(result, tuple) or len(result) != len(s[1]):
                raise TypeMismatch("no tuple")
            for name, t in zip(s[1], result):
                self.env[name] = Typed(t, "v_" + name)
            return [f"{', '.join('v_' + n for n in s[1])} = {py}"]
        values = [self.expr(e) for e in s[2]]
        lines = []
        for name, e in zip(s[1], values):
            if is_weak(e.ty):
                if e.value is None:
                    raise TypeMismatch("weak let")
                self.env[name] = e
            else:
                self.env[name] = Typed(e.ty, e.py if e.is_const == CERTAIN else "v_" + name, is_const=e.is_const)
                lines.append(f"v_{name} = {e.py}")
        return lines

    def store(self, e, t):
        if is_float(e.ty) and not is_float(t):
            raise TypeMismatch("store")
        return self.narrowed(e, t)

    def stmt_var(self, s, _):
        name, annotation, e = s[1], s[2], self.expr(s[3])
        if annotation:
            if e.ty != annotation and not (is_weak(e.ty) and e.value is not None and (e.ty == "wi" or is_float(annotation))):
                raise TypeMismatch("annotation")
            t = annotation
        elif is_weak(e.ty):
            if e.value is None:
                raise TypeMismatch("weak var")
            key = self.join_keys[name] = name + self.path
            t = self.joins.get(key, concrete(e).ty if concrete(e).ty == "i64" else e.ty)
            self.joins[key] = t
        else:
            t = e.ty
            self.join_keys.pop(name, None)
        self.env[name] = Typed(t, "v_" + name)
        return [f"v_{name} = {to_type(e, t) if not is_weak(t) else repr(e.value)}"]

    def stmt_open(self, s, _):
        """Vars without a value have the common type of their assignments, and are read only after an assignment."""
        for name in s[1]:
            key = self.join_keys[name] = name + self.path
            if self.joins.setdefault(key, None):
                self.env[name] = Typed(self.joins[key], "v_" + name)
        return [f"v_{name} = None" for name in s[1]]

    def stmt_avar(self, s, _):
        """A var that holds an array is another name for its elements."""
        a = self.env[s[2]]
        self.env[s[1]] = Array("v_" + s[1], a.element, a.shape)
        return [f"v_{s[1]} = {a.py}"]

    def stmt_aset(self, s, _):
        return [f"{', '.join(self.env[n].py for n in s[1])} = {', '.join(self.env[n].py for n in s[2])}"]

    def assign_var(self, name, e):
        key = self.join_keys.get(name)
        if key in self.joins:
            t = concrete(e).ty if e.ty == "wi" and e.value is not None and concrete(e).ty == "i64" else e.ty
            if self.joins[key] is None:
                if is_weak(t) and e.value is None:
                    raise TypeMismatch("weak var")
                joined = t
            elif self.joins[key] == "wf" and not is_float(t):
                return "None"  # another assignment may determine its float type
            elif t == "wf" and self.joins[key] in INTEGERS:
                joined = "wf"
            else:
                joined = join(self.joins[key], t)
            if joined != self.joins[key]:
                self.joins[key] = joined
                if self.path or not self.is_generating:
                    raise Restart
                self.env[name] = Typed(joined, "v_" + name)
            return to_type(e, joined) if not is_weak(joined) else "None"
        return self.store(e, self.env[name].ty)

    def place_code(self, p):
        if p[0] == "var":
            return "v_" + p[1]
        a = self.env[p[1]]
        return f"{a.py}[{self.offset(a, p[2])}]"

    def stmt_set(self, s, _):
        places, op, values = s[1:]
        if op:
            value = self.expr(("bin", op, places[0], values[0]))
            values = [value]
        else:
            values = [self.expr(v) for v in values]
        codes = [self.assign_var(p[1], e) if p[0] == "var" else self.store(e, self.env[p[1]].element) for p, e in zip(places, values)]
        return [f"{', '.join(self.place_code(p) for p in places)} = {', '.join(codes)}"]

    def stmt_if(self, s, is_thread):
        test = self.expr(s[1])
        is_true = self.decided(test)
        if is_true is not None:
            return self.block(s[2] if is_true else s[3], 0, is_thread)
        lines = [f"if {condition(test)}:", *self.inner(s[2], is_thread)]
        return lines + ["else:", *self.inner(s[3], is_thread)] if s[3] else lines

    def range_type(self, values):
        t = arithmetic(values[0].ty)
        for v in values[1:]:
            t = promote(t, v.ty)
        if is_float(t):
            raise TypeMismatch("range")
        return "i32" if t == "wi" else t

    def stmt_for(self, s, is_thread):
        kind, names, args, body = s[1:5]
        values = [self.expr(a) for a in args]
        outer, left = dict(self.env), self.left
        self.left = None
        if kind == "range":
            t = self.range_type(values)
            self.env[names[0]] = Typed(t, "v_" + names[0])
            lines = [f"for v_{names[0]} in range({', '.join(to_type(v, t) for v in values)}):", *self.inner(body, is_thread)]
        else:  # block_range: the elements of a thread, in some order
            extents = [to_type(v, "i64") for v in values]
            for name in names:
                self.env[name] = Typed("i64", "v_" + name)
            loop = f"for {', '.join('v_' + n for n in names)}, in product({', '.join(f'range({x})' for x in extents)}):"
            inner = [f"if ({flat(names, extents)}) % block_size != pos_thread_rank: continue"]
            lines = [loop, *["  " + line for line in inner], *self.inner(body, is_thread)]
        self.env, self.left = outer, left
        return lines

    def stmt_while(self, s, is_thread):
        test = self.expr(s[1])
        if self.decided(test) is False:
            return []
        left, self.left = self.left, None
        lines = [f"while {condition(test)}:", *self.inner(s[2], is_thread)]
        self.left = left
        return lines

    def stmt_break(self, s, _): return [f"{self.left} = True", "break"] if self.left else ["break"]
    def stmt_continue(self, s, _): return ["continue"]

    def stmt_return(self, s, _):
        values = [self.expr(e) for e in s[1]]
        if any(is_weak(v.ty) or v.is_const for v in values):
            raise TypeMismatch("weak result")
        if values:
            result = values[0].ty if len(values) == 1 else tuple(v.ty for v in values)
            if self.result not in (None, result):
                raise TypeMismatch("results differ")
            self.result = result
        return [f"return {', '.join(v.py for v in values)}".rstrip()]

    def stmt_array(self, s, _):
        space, name, t, shape = s[1:]
        count = math.prod(shape)
        if space == "shared":
            self.env[name] = Array(f"s_{name}", t, shape or (1,)) if shape else Array(f"s_{name}", t, ())
            return [f"s_{name} = shared.setdefault('{name}', [UNWRITTEN] * {count})"]
        self.env[name] = Array(f"l_{name}", t, shape)
        return [f"l_{name} = [UNWRITTEN] * {count}"]

    def stmt_alias(self, s, _):
        self.env[s[1]] = Array(self.env[s[2]].py, s[3], (s[4],))
        return []

    def stmt_assert(self, s, _):
        return [f"if checks_asserts and not {self.tested(self.expr(s[1]))}: raise Failed"]

    def stmt_raise(self, s, _): return ["raise Failed"]

    def stmt_sync(self, s, is_thread):
        kind, name, args = s[1:]
        self.site += 1
        values = [self.expr(a) for a in args]
        if kind == "syncthreads":
            return ["yield 'barrier', None"]
        if kind.startswith("syncthreads_"):
            self.env[name] = Typed("i32" if kind.endswith("count") else "bool", "v_" + name)
            return [f"v_{name} = yield '{kind}', {condition(values[0])}"]
        mask = to_type(values[0], "u32")
        if kind == "syncwarp":
            return [f"yield 'warp', ({self.site}, {mask}, 'syncwarp', None)"]
        if kind.startswith("shfl"):
            v = concrete(values[1])
            self.env[name] = Typed(v.ty, "v_" + name)
            lane = to_type(values[2], "i32")
            width = to_type(values[3], "i32") if len(values) > 3 else "32"
            return [f"v_{name} = yield 'warp', ({self.site}, {mask}, '{kind}', ({v.py}, {lane}, {width}))"]
        self.env[name] = Typed("u32" if kind == "ballot_sync" else "bool", "v_" + name)
        return [f"v_{name} = yield 'warp', ({self.site}, {mask}, '{kind}', bool({condition(values[1])}))"]

    def stmt_atomic(self, s, _):
        op, place, value = s[1:]
        a = self.env[place[1]]
        e = self.store(self.expr(value), a.element)
        at, old = f"{a.py}[i_]", f"{a.py}[i_]"
        new = {"atomic_add": f"{old} + {e}", "atomic_sub": f"{old} - {e}", "atomic_min": f"min({old}, {e})", "atomic_max": f"max({old}, {e})", "atomic_and": f"{old} & {e}",
               "atomic_or": f"{old} | {e}", "atomic_xor": f"{old} ^ {e}"}[op]
        return [f"i_ = {self.offset(a, place[2])}", f"{at} = {wrap_code(new, a.element)}"]


def translate(program, env, body, is_thread):
    """Translates a body repeatedly until the vars that start with a literal have their types: the common type of their
    assignments, otherwise the literal's own."""
    joins, is_final = {}, False
    while True:
        t = Translator(program, env, joins)
        try:
            lines = t.block(body, 1, is_thread)
        except Restart:
            continue
        if is_final or not any(is_weak(ty) for ty in joins.values()):
            return t, lines
        joins.update({name: {"wi": "i32", "wf": "f64"}.get(ty, ty) for name, ty in joins.items()})
        is_final = True


def flat(names, extents):
    text = ""
    for name, extent in zip(names, extents):
        text = f"({text}) * {extent} + v_{name}" if text else f"v_{name}"
    return text


def square(x, multiply, n):
    return multiply(x, x) if n == 2 else multiply(x, multiply(x, x))


# Returns the names that the Python source of a constant uses.
NAMES = {**{name: getattr(values, name) for name in dir(values) if not name.startswith("_")}, "NAN": math.nan, "INF": math.inf, "square": square}
