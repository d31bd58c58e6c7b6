"""Vectors and complex numbers in random kernels: their trees, the text of these, and what a lane or part of them is as a tree of numbers.

A vector works lane by lane and a complex number, as far as it is used here, part by part, each as numbers do: so the meaning of a lane is that of a tree of numbers.
Vectors: ("vec", type, numbers), ("vbin", op, x, y), ("vun", op, x), ("vcall", name, operands), ("vswz", x, lanes), ("vcast", type, x), ("vname", name, count); operands may be numbers.
Complex numbers: ("cplx", type, real, imaginary), ("zbin", op, x, y), ("zmul", x, number), ("zneg", x), ("conj", x), ("zcast", type, x).
Numbers made of them: ("lane", vector, lane, form), ("vdyn", name, count, index), ("part", complex, 0 or 1, form), ("zcmp", op, x, y).
"""
VECTORS = ("vec", "vbin", "vun", "vcall", "vswz", "vcast", "vname")
COMPLEX = ("cplx", "zbin", "zmul", "zneg", "conj", "zcast")
NUMBERS = ("lane", "vdyn", "part", "zcmp")
PART = {"c64": "f32", "c128": "f64"}
LETTERS = "xyzw"


class Restart(Exception):
    """A wider type was assigned to a var that starts with a literal."""


class TypeMismatch(Exception):
    pass


class Vector:
    """A name for a vector in the translator's environment."""

    def __init__(self, ty, count, is_var):
        self.ty, self.count, self.is_var = ty, count, is_var


def count_of(v):
    if v[0] == "vec":
        return len(v[2])
    if v[0] == "vname":
        return v[2]
    if v[0] == "vswz":
        return len(v[2])
    operands = v[2] if v[0] == "vcall" else v[2:]
    return next(count_of(x) for x in operands if x[0] in VECTORS)


def text(e, text_of):
    """Returns the text in parentheses if it needs them before a subscript or a field."""
    kind, inner = e[0], lambda x: text(x, text_of) if x[0] in VECTORS + COMPLEX else text_of(x, 13)
    free = lambda x: text(x, text_of) if x[0] in VECTORS + COMPLEX else text_of(x)
    if kind == "vec":
        return f"{e[1]}x{len(e[2])}({', '.join(free(x) for x in e[2])})"
    if kind == "vname":
        return e[1]
    if kind in ("vbin", "zbin"):
        return f"({inner(e[2])} {e[1]} {inner(e[3])})"
    if kind == "vun":
        return f"({e[1]} {inner(e[2])})" if e[1] == "not" else f"({e[1]}{inner(e[2])})"
    if kind == "vcall":
        return f"{e[1]}({', '.join(free(x) for x in e[2])})"
    if kind == "vswz":
        return f"{inner(e[1])}.{''.join(LETTERS[k] for k in e[2])}"
    if kind == "vcast":
        return f"{e[1]}x{count_of(e[2])}({free(e[2])})"
    if kind == "cplx":
        return f"{e[1]}({free(e[2])}, {free(e[3])})"
    if kind == "zmul":
        return f"({inner(e[1])} * {inner(e[2])})" if e[3] else f"({inner(e[2])} * {inner(e[1])})"
    if kind == "zneg":
        return f"(-{inner(e[1])})"
    if kind == "conj":
        return f"conj({free(e[1])})"
    if kind == "zcast":
        return f"{e[1]}({free(e[2])})"
    if kind == "lane":
        count = count_of(e[1])
        name = f".{LETTERS[e[2]]}" if e[3] == 0 and e[2] < 4 else f"[{e[2] - count}]" if e[3] == 2 else f"[{e[2]}]"
        return inner(e[1]) + name
    if kind == "vdyn":
        return f"{e[1]}[{text_of(e[3])}]"
    if kind == "part":
        return f"{inner(e[1])}.{('real', 'imag')[e[2]]}" if e[3] == 0 else f"{('real', 'imag')[e[2]]}({free(e[1])})"
    if kind == "zcmp":
        return f"({inner(e[2])} {e[1]} {inner(e[3])})"
    raise AssertionError(kind)


def lane(v, k):
    """Returns a component as a tree of numbers. A number is the same in every component."""
    kind = v[0]
    if kind not in VECTORS:
        return v
    if kind == "vec":
        return ("cast", v[1], v[2][k])
    if kind == "vname":
        return ("vat", v[1], k)
    if kind == "vbin":
        return ("bin", v[1], lane(v[2], k), lane(v[3], k))
    if kind == "vun":
        return ("un", v[1], lane(v[2], k))
    if kind == "vcall":
        return ("call", v[1], [lane(x, k) for x in v[2]])
    if kind == "vswz":
        return lane(v[1], v[2][k])
    return ("cast", v[1], lane(v[2], k))


def part(z, k, type_of):
    """Returns the real (0) or imaginary (1) part as a tree of numbers. type_of: the type of such a tree."""
    kind = z[0]
    if kind == "cplx":
        return ("cast", PART[z[1]], z[2 + k])
    if kind == "zcast":
        return ("cast", PART[z[1]], part(z[2], k, type_of))
    if kind == "zneg":
        return ("un", "-", part(z[1], k, type_of))
    if kind == "conj":
        own = part(z[1], k, type_of)
        return ("un", "-", own) if k else own
    if kind == "zmul":
        return ("bin", "*", part(z[1], k, type_of), z[2])
    x, y = z[2], z[3]
    if x[0] in COMPLEX and y[0] in COMPLEX:
        return ("bin", z[1], part(x, k, type_of), part(y, k, type_of))
    is_first = x[0] in COMPLEX
    whole, number = (x, y) if is_first else (y, x)
    own = part(whole, k, type_of)
    if k == 0:
        return ("bin", z[1], own, number) if is_first else ("bin", z[1], number, own)
    wide = "f64" if "f64" in (type_of(own), type_of(number)) else "f32"
    kept = ("cast", wide, own)
    return ("un", "-", kept) if not is_first and z[1] == "-" else kept


def swizzled(v):
    """Returns the vectors whose components swizzles in this vector select."""
    if v[0] == "vswz":
        return [v[1]]
    operands = v[2] if v[0] == "vcall" else v[2:] if v[0] in ("vbin", "vun", "vcast") else []
    return [x for e in operands if e[0] in VECTORS for x in swizzled(e)]


class Translation:
    """The translator's methods for the trees of numbers above."""
    is_lane = False  # whether the tree is a vector component: a vector of integers makes a float literal f64 at once

    def type_of(self, e):
        return self.expr(e).ty

    def lanes(self, v):
        """All of them have types, also those that a swizzle drops."""
        for x in swizzled(v):
            self.lanes(x)
        outer, self.is_lane = self.is_lane, True
        try:
            return [self.perhaps(self.expr(lane(v, k))) for k in range(count_of(v))]
        finally:
            self.is_lane = outer

    def expr_lane(self, v, k, _):
        return self.lanes(v)[k]

    def expr_vat(self, name, k):
        return self.typed(self.env[name].ty, f"v_{name}[{k}]")

    def expr_vdyn(self, name, count, index):
        e = self.expr(index)
        return self.typed(self.env[name].ty, f"v_{name}[{self.index_code(e)}]")

    def expr_part(self, z, k, _):
        return self.perhaps([self.expr(part(z, j, self.type_of)) for j in (0, 1)][k])

    def expr_zcmp(self, op, x, y):
        parts = [("bin", op, part(x, k, self.type_of), part(y, k, self.type_of)) for k in (0, 1)]
        return self.perhaps(self.expr(("bin", "&" if op == "==" else "|", *parts)))

    def stmt_vlet(self, s, _):
        name, v, is_var = s[1:]
        lanes = self.lanes(v)
        if any(e.py is None for e in lanes):
            raise TypeMismatch("lanes that are literals")
        self.env[name] = Vector(lanes[0].ty, len(lanes), is_var)
        return [f"v_{name} = [{', '.join(e.py for e in lanes)}]"]

    def stmt_vset(self, s, _):
        name, place, e = s[1:]
        value = self.store(self.expr(e), self.env[name].ty)
        index = place if isinstance(place, int) else self.index_code(self.expr(place))
        return [f"v_{name}[{index}] = {value}"]


def statement_text(s, text_of):
    if s[0] == "vlet":
        return f"{'var' if s[3] else 'let'} {s[1]} = {text(s[2], text_of)}"
    place = f".{LETTERS[s[2]]}" if isinstance(s[2], int) and s[2] < 4 else f"[{s[2] if isinstance(s[2], int) else text_of(s[2])}]"
    return f"{s[1]}{place} = {text_of(s[3])}"


class Generation:
    """Random trees for the generator."""

    def vectors(self, count=None):
        return [n for n, v in self.tr.env.items() if isinstance(v, Vector) and count in (None, v.count)]

    def vector(self, depth, count):
        r = self.r
        names = self.vectors(count)
        if names and r.random() < 0.4:
            return ("vname", r.choice(names), count)
        if depth <= 0 or r.random() < 0.25:
            return ("vec", r.choice(self.lane_types), [self.grow(r.randint(0, max(depth, 0))) for _ in range(count)])
        sub = lambda: self.vector(depth - 1, count)
        k = r.random()
        if k < 0.4:
            ops = ("+", "-", "*", "&", "|", "^", "<<", ">>", "//", "%", "/") if not self.is_small else ("+", "-", "*", "+", "-", "&", "|", "^")
            x, y = sub(), sub() if r.random() < 0.6 else self.grow(depth - 1)
            return ("vbin", r.choice(ops), x, y) if r.random() < 0.8 else ("vbin", r.choice(("+", "-", "*")), y, x)
        if k < 0.5:
            return ("vbin", r.choice(("==", "!=", "<", ">", "<=", ">=")), sub(), sub())
        if k < 0.58:
            return ("vun", r.choice(("-", "+", "~", "not")), sub())
        if k < 0.78:
            name, operands = r.choice((("min", 2), ("max", 2), ("abs", 1), ("fma", 3), ("floor", 1), ("sqrt", 1), ("select", 3), ("popc", 1), ("clz", 1), ("mulhi", 2), ("div_trunc", 2), ("copysign", 2)))
            values = [sub()] + [sub() if r.random() < 0.7 else self.grow(depth - 1) for _ in range(operands - 1)]
            return ("vcall", name, values)
        if k < 0.9:
            wide = r.choice((2, 3, 4))
            return ("vswz", self.vector(depth - 1, wide), [r.randrange(wide) for _ in range(count)]) if count <= 4 else sub()
        return ("vcast", r.choice(self.lane_types), sub())

    def complex_number(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.3:
            return ("cplx", r.choice(("c64", "c128")), self.grow(max(depth, 0)), self.grow(0))
        sub = lambda: self.complex_number(depth - 1)
        k = r.random()
        if k < 0.35:
            return ("zbin", r.choice("+-"), sub(), sub())
        if k < 0.6:
            pair = [sub(), self.grow(depth - 1)]
            r.shuffle(pair)
            return ("zbin", r.choice("+-"), *pair)
        if k < 0.75:
            return ("zmul", sub(), self.grow(depth - 1), r.random() < 0.5)
        if k < 0.9:
            return (r.choice(("zneg", "conj")), sub())
        return ("zcast", r.choice(("c64", "c128")), sub())

    def part_expr(self, depth):
        """A number that is a vector component or a part of a complex number."""
        r = self.r
        k = r.random()
        names = self.vectors()
        if names and k < 0.2:
            name = r.choice(names)
            count = self.tr.env[name].count
            return ("vdyn", name, count, self.index(count, None, 0))
        if k < 0.65:
            count = r.choice((2, 3, 4, 4, 8))
            return ("lane", self.vector(min(depth, 3), count), r.randrange(count), r.randrange(3))
        if k < 0.9:
            return ("part", self.complex_number(min(depth, 3)), r.randrange(2), r.randrange(2))
        return ("zcmp", r.choice(("==", "!=")), self.complex_number(1), self.complex_number(1))

    def vector_statement(self, out, depth):
        r = self.r
        names = [n for n in self.vectors() if self.tr.env[n].is_var]
        if names and r.random() < 0.5:
            name = r.choice(names)
            v = self.tr.env[name]
            place = r.randrange(v.count) if r.random() < 0.5 else self.index(v.count, None, 0)
            if isinstance(place, tuple) and place[0] == "lit":
                place = place[1] % v.count
            self.emit(out, ("vset", name, place, self.stored(v.ty, depth)))
            return
        self.emit(out, ("vlet", self.name("w"), self.vector(depth, r.choice((2, 3, 4, 4))), r.random() < 0.6))
