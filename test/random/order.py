#!/usr/bin/env python3
"""Random kernels with an effect in every operand position, against an evaluation in Python: the order of the effects, how often each happens, and what the operands around them read.

A node is a text and a function that evaluates it. The functions evaluate as docs/ir.md says: operands from left to right, the right side of an assignment before its places, each place once. An
effect writes its number to the array `c`, so that two effects in another order, twice or never show, and changes memory that operands around it read.
"""
import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library

LOG = 4096  # numbers of effects
COUNT = 8  # number of elements in each array

HEAD = """
struct P {{ a: i32; v: i32x4; t: i32[4]; z: c64 }}
func t(c, id, x) {{ c[0] += 1; c[c[0] & {mask}] = id; return x }}
func pick(c, id, w) {{ c[0] += 1; c[c[0] & {mask}] = id; return w }}
func bump(w, i, x) {{ w[i] = w[i] * 3 + x; return w[i] }}
func lane(w, i, k, x) {{ w[i][k] += x; return w[i][k] }}
func pair(c, id, x) {{ c[0] += 1; c[c[0] & {mask}] = id; return i32x2(x, x + 1) }}
func items(c, id, x) {{ c[0] += 1; c[c[0] & {mask}] = id; return x, x + 1, x + 2, x + 3 }}
func number(c, id, x) {{ c[0] += 1; c[c[0] & {mask}] = id; return f32(x & 15) }}
func three(x, y, z = 5) {{ return x * 2 + y * 3 + z }}
func plain(w, i) {{ return w[i] + 1 }}
kernel k(c: i32[:], g: i32[:], h: i32[:], gv: i32x4[:], gw: i32x3[:]) @grid(1) @block(1) {{
  shared s: i32[8] @align(16)
  shared sv: i32x4[8]
  shared bar: u64[1]
  local a: i32[8]
  local av: i32x4[8]
  local p: P[4]
  for i in range(8) {{ s[i] = i; a[i] = i + 20; sv[i] = i32x4(i, i + 1, i + 2, i + 3); av[i] = i32x4(i + 3, i, i, i) }}
  for i in range(4) {{ p[i] = P(i, i32x4(i), (i, i + 1, i + 2, i + 3), c64(f32(i), 1)) }}
  var n = 3; var v = i32x4(1, 2, 3, 4); var q = P(1, i32x4(2), (3, 4, 5, 6), c64(7, 8))
"""
TAIL = """
  for i in range(8) {{ h[i] = s[i]; h[8 + i] = a[i]; for k in range(4) {{ h[16 + 4 * i + k] = sv[i][k]; h[48 + 4 * i + k] = av[i][k] }} }}
  for i in range(4) {{
    h[80 + i] = v[i]; h[84 + i] = q.v[i]; h[88 + i] = q.t[i]; h[92 + i] = p[i].a; h[96 + i] = i32(p[i].z.real); h[100 + i] = i32(p[i].z.imag)
    for k in range(4) {{ h[104 + 4 * i + k] = p[i].v[k]; h[120 + 4 * i + k] = p[i].t[k] }}
  }}
  h[136] = n; h[137] = q.a; h[138] = i32(q.z.real); h[139] = i32(q.z.imag)
}}
"""


def wrap(x):
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


class Record:
    def __init__(self, a, v, t, z):
        self.a, self.v, self.t, self.z = a, v, t, z

    def values(self):
        return [self.a, *self.v, *self.t, *self.z]


class State:
    def __init__(self, arrays):
        self.c = [0] * LOG
        self.g, self.gv, self.gw = arrays["g"].tolist(), arrays["gv"].tolist(), arrays["gw"].tolist()
        self.s, self.a = list(range(8)), [i + 20 for i in range(8)]
        self.sv = [[i, i + 1, i + 2, i + 3] for i in range(8)]
        self.av = [[i + 3, i, i, i] for i in range(8)]
        self.p = [Record(i, [i] * 4, [i, i + 1, i + 2, i + 3], [i, 1]) for i in range(4)]
        self.n, self.v, self.q = 3, [1, 2, 3, 4], Record(1, [2] * 4, [3, 4, 5, 6], [7, 8])

    def log(self, number):
        self.c[0] += 1
        self.c[self.c[0] & (LOG - 1)] = number

    def kept(self):
        h = self.s + self.a + sum(self.sv, []) + sum(self.av, []) + self.v + self.q.v + self.q.t + [r.a for r in self.p] + [r.z[0] for r in self.p] + [r.z[1] for r in self.p]
        return h + sum((r.v for r in self.p), []) + sum((r.t for r in self.p), []) + [self.n, self.q.a, *self.q.z]


class Place:
    """find(state): evaluates the operands that determine the element, and returns an object with the element's key."""

    def __init__(self, text, find, is_small=False, is_atomic=False):
        self.text, self.find, self.is_small, self.is_atomic = text, find, is_small, is_atomic


class Generator:
    def __init__(self, seed, has_copies=True):
        """has_copies: whether to use asynchronous copies and barriers, which some checks do not support."""
        self.r, self.number = random.Random(seed), 0
        self.has_copies, self.has_warps = has_copies, self.r.random() < 0.3
        self.has_waits = has_copies and self.r.random() < 0.15

    def effect(self):
        self.number += 1
        return self.number

    # -- numbers: (text, evaluate) --

    def index(self, depth, count=COUNT):
        if depth <= 0 or self.r.random() < 0.3:
            k = self.r.randrange(count)
            return str(k), lambda s: k
        text, run = self.value(depth - 1)
        return (f"({text}) & {count - 1}", lambda s: run(s) & (count - 1)) if count in (2, 4, 8) else (f"(({text}) & 1023) % {count}", lambda s: (run(s) & 1023) % count)

    def array(self):
        """An array of numbers, sometimes through a func that has a side effect."""
        name = self.r.choice("ggsa")
        if self.r.random() < 0.15:
            k = self.effect()
            def run(s):
                s.log(k)
                return getattr(s, name)
            return f"pick(c, {k}, {name})", run, name
        return name, lambda s: getattr(s, name), name

    def place(self, depth):
        """An lvalue for a number: an element, a vector component by name or index, a field, a part of a complex
        number."""
        r = self.r
        k = r.random()
        if k < 0.35:
            (array, get, name), (text, at) = self.array(), self.index(depth)
            def find(s):
                w = get(s)
                return w, at(s)
            return Place(f"{array}[{text}]", find, is_atomic=name != "a")
        if k < 0.6:
            name = r.choice(("gv", "gv", "gw", "sv", "av"))
            lanes = 3 if name == "gw" else 4
            (text, at), (lane, which) = self.index(depth), self.index(depth, lanes)
            if r.random() < 0.3:
                j = r.randrange(lanes)
                return Place(f"{name}[{text}].{'xyzw'[j]}", lambda s: (getattr(s, name)[at(s)], j), is_atomic=name != "av")
            def find(s):
                w = getattr(s, name)[at(s)]
                return w, which(s)
            return Place(f"{name}[{text}][{lane}]", find, is_atomic=name != "av")
        if k < 0.7:
            lane, which = self.index(depth, 4)
            return Place(f"v[{lane}]", lambda s: (s.v, which(s)))
        if k < 0.75:
            return Place("n", lambda s: (s.__dict__, "n"))
        if r.random() < 0.5:
            text, at = self.index(depth, 4)
            base, get = f"p[{text}]", lambda s: s.p[at(s)]
        else:
            base, get = "q", lambda s: s.q
        k = r.random()
        if k < 0.2:
            return Place(f"{base}.a", lambda s: (get(s).__dict__, "a"))
        if k < 0.35:
            j = r.randrange(2)
            return Place(f"{base}.z.{('real', 'imag')[j]}", lambda s: (get(s).z, j), is_small=True)
        field, (lane, which) = r.choice("vt"), self.index(depth, 4)
        def find(s):
            w = getattr(get(s), field)
            return w, which(s)
        return Place(f"{base}.{field}[{lane}]", find)

    def load(self, depth):
        place = self.place(depth)
        def run(s):
            w, key = place.find(s)
            return w[key]
        return (f"i32({place.text})" if place.is_small else place.text), run

    def changing(self, depth):
        """A call that changes memory: a func, an atomic, or only a log entry."""
        r, k = self.r, self.r.random()
        if k < 0.45:
            number, (text, run) = self.effect(), self.value(depth - 1)
            def go(s):
                x = run(s)
                s.log(number)
                return x
            return f"t(c, {number}, {text})", go
        if k < 0.65:
            (array, get, _), (index, at), (text, run) = self.array(), self.index(depth - 1), self.value(depth - 1)
            def go(s):
                w, i, x = get(s), at(s), run(s)
                w[i] = wrap(w[i] * 3 + x)
                return w[i]
            return f"bump({array}, {index}, {text})", go
        if k < 0.8:
            name = r.choice(("gv", "sv", "av"))
            (index, at), (lane, which), (text, run) = self.index(depth - 1), self.index(depth - 1, 4), self.value(depth - 1)
            def go(s):
                i, j, x = at(s), which(s), run(s)
                w = getattr(s, name)[i]
                w[j] = wrap(w[j] + x)
                return w[j]
            return f"lane({name}, {index}, {lane}, {text})", go
        place, (text, run) = self.place(depth - 1), self.value(depth - 1)
        if not place.is_atomic:
            return self.changing(depth)
        op, combine = r.choice((("add", lambda a, b: a + b), ("max", max), ("exch", lambda a, b: b), ("xor", lambda a, b: a ^ b)))
        if r.random() < 0.3:
            other, wanted = self.value(depth - 1)
            def go(s):
                (w, key), x, y = place.find(s), wanted(s), run(s)
                old = w[key]
                w[key] = y if old == x else old
                return old
            return f"atomic_cas({place.text}, {other}, {text})", go
        def go(s):
            (w, key), x = place.find(s), run(s)
            old = w[key]
            w[key] = wrap(combine(old, x))
            return old
        return f"atomic_{op}({place.text}, {text})", go

    def value(self, depth):
        r = self.r
        if depth <= 0:
            if r.random() < 0.3:
                k = r.randint(-9, 9)
                return str(k), lambda s: k
            return self.load(0)
        k = r.random()
        if k < 0.2:
            return self.load(depth)
        if k < 0.5:
            return self.changing(depth)
        forms = (self.binary, self.binary, self.choice, self.strict_choice, self.vector, self.vector, self.complex, self.record, self.items, self.call, self.slice, self.view, self.logic, self.least, self.swizzle)
        return r.choice(forms)(depth)

    def some(self, count, depth):
        pairs = [self.value(depth - 1) for _ in range(count)]
        return [t for t, _ in pairs], lambda s: [run(s) for _, run in pairs]

    def binary(self, depth):
        op, make = self.r.choice((("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b), ("&", lambda a, b: a & b), ("^", lambda a, b: a ^ b)))
        (x, y), run = self.some(2, depth)
        return f"(({x}) {op} ({y}))", lambda s: wrap(make(*run(s)))

    def test(self, depth):
        (x, y), run = self.some(2, depth)
        def go(s):
            a, b = run(s)
            return a < b
        return f"({x}) < ({y})", go

    def choice(self, depth):
        (test, holds), (x, first), (y, second) = self.test(depth), self.value(depth - 1), self.value(depth - 1)
        return f"({test} ? {x} : {y})", lambda s: first(s) if holds(s) else second(s)

    def logic(self, depth):
        (a, first), (b, second) = self.test(depth), self.test(depth)
        if self.r.random() < 0.5:
            return f"i32({a} and {b})", lambda s: int(first(s) and second(s))
        return f"i32({a} or {b})", lambda s: int(first(s) or second(s))

    def strict_choice(self, depth):
        (test, holds), ((x, y), run) = self.test(depth), self.some(2, depth)
        def go(s):
            h, (a, b) = holds(s), run(s)
            return a if h else b
        return f"select({test}, {x}, {y})", go

    def least(self, depth):
        (x, y), run = self.some(2, depth)
        name, make = self.r.choice((("min", min), ("max", max)))
        return f"{name}({x}, {y})", lambda s: make(run(s))

    def lanes(self, depth):
        """A vector with four components."""
        k = self.r.random()
        if k < 0.4:
            texts, run = self.some(4, depth)
            return f"i32x4({', '.join(texts)})", run
        if k < 0.6:
            number, (x, first), (y, z), rest = self.effect(), self.value(depth - 1), *self.split(depth)
            def go(s):
                a, b = first(s), rest[0](s)
                s.log(number)
                return [a, b, wrap(b + 1), rest[1](s)]
            return f"i32x4({x}, pair(c, {number}, {y}), {z})", go
        if k < 0.8:
            name = self.r.choice(("gv", "sv", "av"))
            index, at = self.index(depth - 1)
            return f"{name}[{index}]", lambda s: list(getattr(s, name)[at(s)])
        x, run = self.value(depth - 1)
        return f"i32x4({x})", lambda s: [run(s)] * 4

    def split(self, depth):
        (y, first), (z, second) = self.value(depth - 1), self.value(depth - 1)
        return (y, z), (first, second)

    def vector(self, depth):
        (x, first), (y, second) = self.lanes(depth), self.lanes(depth) if self.r.random() < 0.6 else self.value(depth - 1)
        if self.r.random() < 0.3:
            (x, first), (y, second) = (y, second), (x, first)
        lane, which = self.index(depth - 1, 4) if self.r.random() < 0.5 else (None, None)
        op, make = self.r.choice((("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b), ("min", min), ("//", lambda a, b: a // (b | 1))))
        def go(s):
            a, b = first(s), second(s)
            a, b = (v if isinstance(v, list) else [v] * 4 for v in (a, b))
            j = which(s) if which else 1
            return wrap(make(a[j], b[j]))
        text = f"min({x}, {y})" if op == "min" else f"(({x}) // (({y}) | 1))" if op == "//" else f"(({x}) {op} ({y}))"
        return f"{text}[{lane}]" if lane else f"{text}.y", go

    def swizzle(self, depth):
        (x, first), (y, second) = self.lanes(depth), self.lanes(depth)
        def go(s):
            a, b = first(s), second(s)
            return wrap(a[3] + b[0])
        return f"(({x}).wy + ({y}).xz).x", go

    def complex(self, depth):
        """Small numbers, so that floats are exact."""
        r = self.r
        def small():
            k = self.r.random()
            if k < 0.4:
                number, (x, run) = self.effect(), self.value(depth - 1)
                def go(s):
                    v = run(s)
                    s.log(number)
                    return v & 15
                return f"number(c, {number}, {x})", go
            x, run = self.value(depth - 1)
            return f"f32(({x}) & 15)", lambda s: run(s) & 15
        (a, first), (b, second), (d, third) = small(), small(), small()
        kind, j = r.randrange(4), r.randrange(2)
        def go(s):
            if kind in (1, 3):
                z = third(s)
                x, y = first(s), second(s)
            else:
                x, y = first(s), second(s)
                z = third(s)
            return (x * z, y * z)[j] if kind < 2 else (x - z, y)[j] if kind == 2 else (z - x, -y)[j]
        text = (f"c64({a}, {b}) * {d}", f"{d} * c64({a}, {b})", f"c64({a}, {b}) - {d}", f"{d} - c64({a}, {b})")[kind]
        return f"i32(({text}).{('real', 'imag')[j]})", go

    def record(self, depth):
        number, (x, first), (y, second), (lanes, third) = self.effect(), self.value(depth - 1), self.value(depth - 1), self.lanes(depth)
        j = self.r.randrange(4)
        what = self.r.choice((".a", f".v[{j}]", f".t[{j}]"))
        def go(s):
            a, v, b = first(s), third(s), second(s)
            s.log(number)
            return a if what == ".a" else v[j] if what[1] == "v" else wrap(b + j)
        return f"P({x}, {lanes}, items(c, {number}, {y}), c64(1, 2)){what}", go

    def items(self, depth):
        texts, run = self.some(3, depth)
        lane, which = self.index(depth - 1, 2)
        def go(s):
            values = run(s)
            return values[which(s)]
        return f"({', '.join(texts)})[{lane}]", go

    def call(self, depth):
        texts, run = self.some(self.r.choice((2, 3)), depth)
        def go(s):
            values = run(s) + [5]
            return wrap(values[0] * 2 + values[1] * 3 + values[2])
        if self.r.random() < 0.3:
            (array, get, _), (index, at) = self.array(), self.index(depth)
            def one(s):
                w = get(s)
                return wrap(w[at(s)] + 1)
            return f"plain({array}, {index})", one
        return f"three({', '.join(texts)})", go

    def slice(self, depth):
        (array, get, _), (x, first), (y, second) = self.array(), self.index(depth - 1, 4), self.index(depth - 1, 4)
        index, at = self.index(depth - 1, 2)
        def element(s):
            w, a, _ = get(s), first(s), second(s)
            return w[a + at(s)]
        def length(s):
            get(s)
            a, b = first(s), second(s)
            return b + 4 - a
        if self.r.random() < 0.3:
            return f"i32(len({array}[{x}:({y}) + 4]))", length
        return f"{array}[{x}:({y}) + 5][{index}]", element

    def view(self, depth):
        number, (start, at), (x, first), (y, second) = self.effect(), self.index(depth - 1), self.index(depth - 1, 2), self.index(depth - 1, 4)
        def go(s):
            s.log(number)
            at(s)
            a, b = first(s), second(s)
            return s.g[a * 4 + b]
        return f"view(i32[2, t(c, {number}, 4)], pointer(g[({start}) & 0]))[{x}, {y}]", go

    # -- statements: (lines, run) --

    def statement(self, depth, level=0):
        forms = [self.store] * 4 + [self.compound] * 4 + [self.several, self.swap, self.evaluate, self.declare, self.printed, self.stage]
        forms += [self.copy] * self.has_copies + [self.wait] * 3 * self.has_waits
        if level < 2:
            forms += [self.branch, self.loop, self.repeat]
        return self.r.choice(forms)(depth, level)

    def store(self, depth, _):
        (text, run), place = self.value(depth), self.place(depth)
        def go(s):
            x = run(s)
            w, key = place.find(s)
            w[key] = x & 255 if place.is_small else x
        return [f"{place.text} = {f'f32(({text}) & 255)' if place.is_small else text}"], go

    def compound(self, depth, _):
        (text, run), place = self.value(depth), self.place(depth)
        op, make = self.r.choice((("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b), ("^", lambda a, b: a ^ b)))
        if place.is_small:
            return self.store(depth, 0)
        def go(s):
            x = run(s)
            w, key = place.find(s)
            w[key] = wrap(make(w[key], x))
        return [f"{place.text} {op}= {text}"], go

    def several(self, depth, _):
        pairs = [(self.place(depth - 1), self.value(depth - 1)) for _ in range(self.r.choice((2, 3)))]
        if any(p.is_small for p, _ in pairs):
            return self.several(depth, 0)
        def go(s):
            values = [run(s) for _, (_, run) in pairs]
            for (place, _), x in zip(pairs, values):
                w, key = place.find(s)
                w[key] = x
        return [f"{', '.join(p.text for p, _ in pairs)} = {', '.join(t for _, (t, _) in pairs)}"], go

    def swap(self, depth, _):
        a, b = self.place(depth - 1), self.place(depth - 1)
        if a.is_small or b.is_small:
            return self.swap(depth, 0)
        def go(s):
            values = []
            for place in (b, a):
                w, key = place.find(s)
                values.append(w[key])
            for place, x in zip((a, b), values):
                w, key = place.find(s)
                w[key] = x
        return [f"{a.text}, {b.text} = {b.text}, {a.text}"], go

    def evaluate(self, depth, _):
        text, run = self.changing(depth)
        return [text], run

    def declare(self, depth, _):
        name = f"x{self.effect()}"
        texts, run = self.some(2, depth)
        (op, place) = self.r.choice(("let", "var")), self.place(0)
        if place.is_small:
            return self.declare(depth, 0)
        def go(s):
            a, b = run(s)
            w, key = place.find(s)
            w[key] = wrap(a * 3 + b)
        return [f"{op} {name}, {name}b = {', '.join(texts)}", f"{place.text} = {name} * 3 + {name}b"], go

    def printed(self, depth, _):
        texts, run = self.some(2, depth)
        return [f'if c[0] < 0 {{ print("never", {", ".join(texts)}) }}'], lambda s: None

    def copy(self, depth, _):
        """To shared memory, asynchronously."""
        (to, first), (at, second) = self.index(depth), self.index(depth)
        a, b = self.effect(), self.effect()
        def go(s):
            i = first(s)
            s.log(a)
            j = second(s)
            s.log(b)
            s.s[i] = s.g[j]
        return [f"cp_async(s[t(c, {a}, {to})], g[t(c, {b}, {at})], 1)", "cp_async_commit(); cp_async_wait(0)"], go

    def wait(self, depth, _):
        """An mbarrier at which one thread arrives and waits."""
        (to, first), (at, second), (phase, third) = self.index(depth - 1, 4), self.index(depth - 1, 4), self.value(depth - 1)
        a, b, d = self.effect(), self.effect(), self.effect()
        def go(s):
            first(s)
            s.log(a)
            second(s)
            s.log(b)
            third(s)
            s.log(d)
        form = self.r.choice(("mbarrier_wait_parity(bar[{0}], {1})", "while not mbarrier_test_wait_parity(bar[{0}], {1}) {{ n += 1 }}"))
        lines = ["mbarrier_init(bar[0], 1)", f"let b{a} = mbarrier_arrive(bar[t(c, {a}, ({to}) & 0)])", form.format(f"t(c, {b}, ({at}) & 0)", f"u32(t(c, {d}, ({phase}) & 0))"), "mbarrier_inval(bar[0])"]
        return lines, go

    def stage(self, depth, _):
        """Adjacent stores to shared memory of values in global memory."""
        parts = []
        for _ in range(self.r.choice((2, 3))):
            (to, first), (at, second) = self.index(depth), self.index(depth - 1)
            test, holds = self.test(1) if self.r.random() < 0.3 else (None, None)
            parts.append((f"s[{to}] = g[{at}]", first, second, test, holds))
        def go(s):
            for _, first, second, _, holds in parts:
                if holds is None or holds(s):
                    x = s.g[second(s)]
                    s.s[first(s)] = x
        return [f"if {test} {{ {line} }}" if test else line for line, _, _, test, _ in parts], go

    def body(self, depth, level):
        parts = [self.statement(depth, level + 1) for _ in range(self.r.choice((1, 2)))]
        def go(s):
            for _, run in parts:
                run(s)
        return ["  " + line for lines, _ in parts for line in lines], go

    def branch(self, depth, level):
        (test, holds), (yes, first), (no, second) = self.test(depth), self.body(depth - 1, level), self.body(depth - 1, level)
        return [f"if {test} {{", *yes, "} else {", *no, "}"], lambda s: first(s) if holds(s) else second(s)

    def repeat(self, depth, level):
        (test, holds), (lines, run), name = self.test(depth), self.body(depth - 1, level), f"w{self.effect()}"
        def go(s):
            left = 3
            while left > 0 and holds(s):
                left -= 1
                run(s)
        return [f"var {name} = 3", f"while {name} > 0 and {test} {{", f"  {name} -= 1", *lines, "}"], go

    def loop(self, depth, level):
        (x, first), (y, second), (z, third) = self.index(depth, 2), self.index(depth, 4), self.index(depth - 1, 2)
        lines, run = self.body(depth - 1, level)
        def go(s):
            a, b, step = first(s), second(s), third(s) + 1
            for _ in range(a, b, step):
                run(s)
        return [f"for i{self.effect()} in range({x}, {y}, ({z}) + 1) {{", *lines, "}"], go

    def kernel(self):
        parts = [self.statement(self.r.choice((1, 2, 2, 3))) for _ in range(self.r.randint(3, 6))]
        text = HEAD.format(mask=LOG - 1) + "".join(f"  {line}\n" for lines, _ in parts for line in lines) + TAIL.format()
        def go(s):
            for _, run in parts:
                run(s)
        return text, go


def arrays_of(seed):
    rng = np.random.default_rng(seed)
    make = lambda *shape: rng.integers(-50, 50, shape, dtype=np.int32)
    return {"c": np.zeros(LOG, np.int32), "g": make(COUNT), "h": np.zeros(140, np.int32), "gv": make(COUNT, 4), "gw": make(COUNT, 3)}


def judge(context, seed, has_copies):
    """Returns the kernel's text and what is wrong, or None."""
    text, run = Generator(seed, has_copies).kernel()
    arrays, keep = arrays_of(seed), []
    state = State(arrays)
    run(state)
    try:
        module = context.parse(text)
        try:
            context.launch(module, "k", [library.tensor_arg(a, "i32", keep, lanes=a.shape[1] if a.ndim == 2 else 1) for a in arrays.values()])
        finally:
            context.release(module)
    except library.Failure as failure:
        return text, str(failure)
    for name, want in (("c", state.c), ("g", state.g), ("h", state.kept()), ("gv", state.gv), ("gw", state.gw)):
        got = arrays[name].tolist()
        if got != want:
            at = next(i for i, (x, y) in enumerate(zip(got, want)) if x != y)
            return text, f"{name}[{at}]: got {got[at]}, expected {want[at]}" + (f"; effects {got[1:got[0] + 1]}, expected {want[1:want[0] + 1]}" if name == "c" else "")
    return text, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--checks", default="", help="names of checks, separated by commas")
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    parser.add_argument("--interruptible", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    checks = tuple(filter(None, options.checks.split(",")))
    context = library.Library(options.libdir, options.device, checks, options.debug, options.interruptible)
    has_copies = not {"uninitialized", "races"}.intersection(checks)
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        text, what = judge(context, seed, has_copies)
        if what:
            wrong += 1
            print(f"--- kernel {seed}\n{text}{what}")
            if wrong == 5:
                break
    print(f"{options.count - wrong} of {options.count} right" if wrong < 5 else "stopped after 5 wrong kernels")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
