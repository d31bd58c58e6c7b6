"""Tuples in random kernels: items by a number or an index of run time, comparisons, loops through them, and loops over all positions of a shape.

Numbers: ("titem", name, k), ("tdyn", name, index), ("tcmp", op, name, name). Statements: ("tlet", name, expressions), ("each", variable, name, body), ("positions", names, extents, body).
A loop through a tuple is its body once for each item, with what the item is; every declaration in it is another one each time.
"""
from parts import Restart, TypeMismatch


def lit(value): return ("lit", value, repr(value), "wf" if isinstance(value, float) else "wi")


NUMBERS = ("titem", "tdyn", "tcmp")
STATEMENTS = ("tlet", "each", "positions")
MOST_COPIES = 64  # maximum number of statements in loops over tuples, because a compilation has limits


class Tuple:
    """A name for a tuple in the translator's environment, with a name for each item."""

    def __init__(self, items):
        self.items = items


def text(e, text_of):
    if e[0] == "titem":
        return f"{e[1]}[{e[2]}]"
    return f"{e[1]}[{text_of(e[2])}]" if e[0] == "tdyn" else f"({e[2]} {e[1]} {e[3]})"


def statement_lines(s, pad, text_of, body_lines):
    if s[0] == "tlet":
        return [f"{pad}let {s[1]} = ({', '.join(text_of(e) for e in s[2])},)"]
    head = f"{s[1]} in {s[2]}" if s[0] == "each" else f"{', '.join(s[1])} in range(({', '.join(text_of(e) for e in s[2])},))"
    return [f"{pad}for {head} {{", *body_lines(s[3]), pad + "}"]


class Translation:
    path, left = "", None  # the copies that are being translated, and the flag that a `break` out of one sets

    def items(self, name):
        found = self.env.get(name)
        if not isinstance(found, Tuple):
            raise TypeMismatch("no tuple")
        return found.items

    def expr_titem(self, name, k):
        return self.items(name)[k]

    def expr_tdyn(self, name, index):
        items = self.items(name)
        if any(e.py is None or e.ty != items[0].ty for e in items):
            raise TypeMismatch("items of several types")
        return self.typed(items[0].ty, f"({', '.join(e.py for e in items)},)[{self.index_code(self.expr(index))}]")

    def expr_tcmp(self, op, a, b):
        pairs = list(zip(self.items(a), self.items(b), strict=True))
        if any(x.py is None and y.py is None for x, y in pairs):
            raise TypeMismatch("literals")
        truths = [(self.compare("==", x, y, 0).py, self.compare(op, x, y, 0).py) for x, y in pairs]
        if op == "!=":
            return self.typed("bool", f"(not ({' and '.join(t for t, _ in truths)}))")
        code = truths[-1][1]
        for same, differs in reversed(truths[:-1]):
            code = f"({code} if {same} else {differs})"
        return self.typed("bool", code)

    def stmt_tlet(self, s, _):
        values = [self.expr(e) for e in s[2]]
        if any(e.value is None if e.py is None else e.is_const for e in values):
            raise TypeMismatch("constant items")
        names = [f"v_{s[1]}_{k}" for k in range(len(values))]
        self.env[s[1]] = Tuple([e if e.py is None else self.typed(e.ty, n) for e, n in zip(values, names)])
        return [f"{n} = {e.py}" for e, n in zip(values, names) if e.py is not None]

    def stmt_each(self, s, is_thread):
        outer, path, left = dict(self.env), self.path, self.left
        while True:
            try:
                return self.copies(s, path, is_thread)
            except Restart:  # a var of a copy was assigned another type, so all code that reads it is translated again
                if path or not self.is_generating:
                    raise
            finally:
                self.env, self.path, self.left = dict(outer), path, left

    def copies(self, s, path, is_thread):
        name, items, body = s[1], self.items(s[2]), s[3]
        flag = f"left_{name}{path.replace('.', '_')}"
        lines = [f"{flag} = False"]
        for k, item in enumerate(items):
            self.env[name], self.path, self.left = item, f"{path}.{k}", flag
            lines += [f"for once_ in range(0 if {flag} else 1):", *self.inner(body, is_thread)]
        return lines

    def stmt_positions(self, s, is_thread):
        extents, outer = [self.expr(e) for e in s[2]], dict(self.env)
        for n in s[1]:
            self.env[n] = self.typed("i64", "v_" + n)
        left, self.left = self.left, None
        lines = [f"for {', '.join('v_' + n for n in s[1])}, in product({', '.join(f'range({self.index_code(e)})' for e in extents)}):", *self.inner(s[3], is_thread)]
        self.env, self.left = outer, left
        return lines


class Generation:
    copies_around = 1  # number of copies of a loop body, for nested loops over tuples

    def tuples(self):
        return [n for n, v in self.tr.env.items() if isinstance(v, Tuple)]

    def tuple_expr(self):
        r, names = self.r, self.tuples()
        name = r.choice(names)
        count = len(self.tr.env[name].items)
        fits = [n for n in names if len(self.tr.env[n].items) == count and n != name]
        if fits and r.random() < 0.4:
            return ("tcmp", r.choice(("==", "!=", "<", "<=", ">", ">=")), name, r.choice(fits))
        return ("tdyn", name, self.index(count, None, 0)) if r.random() < 0.6 else ("titem", name, r.randrange(count))

    def tuple_statement(self, out, depth):
        r = self.r
        if not self.tuples() or r.random() < 0.35:
            kind = (lambda t: t == wanted) if r.random() < 0.6 else None
            wanted = r.choice(("i32", "f32", "i64", "f64"))
            values = [self.value(depth - 1, kind)[0] if kind or r.random() < 0.8 else self.literal() for _ in range(r.choice((1, 2, 2, 2, 3, 3)))]
            self.emit(out, ("tlet", self.name("t"), values))
            return
        name, k = r.choice(self.tuples()), self.name("v")
        count, outside = len(self.tr.env[name].items), self.copies_around
        if outside * count > MOST_COPIES:
            return
        def body(b):
            self.tr.env[k] = r.choice(self.tr.env[name].items)
            self.statements(b, r.randint(1, 2), max(depth - 2, 0))
            self.leave(b, 0)
        self.copies_around *= count
        try:
            for _ in range(4):  # code that is valid for one item's type may be invalid for another's
                try:
                    return self.whole(out, lambda: ("each", k, name, self.in_block(body)))
                except TypeMismatch:
                    pass
        finally:
            self.copies_around = outside

    def tuple_sum(self, out, depth):
        """A number that depends on the results of a loop over a tuple, a loop over positions, an index and a
        comparison. Later code uses it often."""
        r, t, u, acc, v = self.r, self.name("t"), self.name("t"), self.name("a"), self.name("v")
        is_integer = r.random() < 0.6
        kinds = ("i32", "i64", "u8", "i16") if is_integer else ("f32", "f64", "i32", "f32")
        count, wanted = r.choice((2, 3, 4, 5)), r.choice(kinds)
        item = lambda: self.value(1, (lambda k: k == wanted) if r.random() < 0.7 else (lambda k: k in kinds))[0]
        same = lambda: self.value(1, lambda k: k == wanted)[0]
        leaves = lambda low: ("if", ("bin", "<", ("bin", "%", ("var", acc), lit(5)), lit(low)), [(r.choice(("break", "continue")),)], [])
        add = lambda e, by=3: ("set", [("var", acc)], "", [("bin", "+", ("bin", "*", ("var", acc), lit(by)), e)])
        self.emit(out, ("tlet", t, [same() for _ in range(count)]))
        self.emit(out, ("tlet", u, [same() if r.random() < 0.5 else ("titem", t, k) for k in range(count)]))
        self.emit(out, ("var", acc, "i64" if is_integer else "f64", lit(r.randint(0, 9) if is_integer else 0.5)))
        many = self.name("t")
        self.emit(out, ("tlet", many, [item() if r.random() < 0.8 else lit(k + 2) for k in range(count)]))
        body = [add(("var", v))]
        for at in (0, 1):
            if r.random() < 0.8:
                body.insert(at * len(body), leaves(r.randint(1, 3)))
        if r.random() < 0.5:  # each copy has a var with its own type
            own = self.name("b")
            body = [("var", own, None, lit(1)), ("set", [("var", own)], "", [("bin", "+", ("var", own), ("var", v))]), add(("var", own)), *body]
        self.emit(out, ("each", v, many, body))
        names = [self.name("k") for _ in range(r.choice((1, 2, 2, 3)))]
        inner = [add(("cast", "i32", ("var", n)), by) for n, by in zip(names, (3, 1, 1))]
        if r.random() < 0.7:
            inner.insert(r.randint(0, len(inner)), leaves(1))
        self.emit(out, ("positions", names, [lit(r.randint(1, 3)) for _ in names], inner))
        self.emit(out, add(("tdyn", t, self.index(count, None, 0))))
        self.emit(out, add(("cond", ("tcmp", r.choice(("==", "!=", "<", "<=", ">", ">=")), t, u), lit(1), lit(2))))
        self.given.append(acc)

    def positions(self, out, depth):
        r = self.r
        names = [self.name("k") for _ in range(r.choice((1, 2, 2, 3)))]
        extents = [lit(r.choice((0, 1, 1, 2, 2, 3))) for _ in names]
        def body(b):
            for n in names:
                self.tr.env[n] = self.tr.typed("i64", "v_" + n)
            self.statements(b, r.randint(1, 2), max(depth - 1, 0))
            self.leave(b, depth - 1)
        self.whole(out, lambda: ("positions", names, extents, self.in_block(body)))

    def whole(self, out, make):
        """A statement that is typed as a whole when it is complete."""
        s = make()
        if s[3]:
            self.emit(out, s)
            self.join_again()
