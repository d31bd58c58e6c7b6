#!/usr/bin/env python3
"""races.py: small random kernels whose races on shared memory are decided here by vector clocks, and by kjit's check.

The threads of a block read, store and use atomics at indices that depend on the thread alone, under conditions, in loops, behind early returns, with barriers that all or part of the
threads reach and with syncwarps of several masks. A vector clock for each thread says which accesses are ordered. Where two conflicting ones are not, the launch must fail with a race,
and nowhere else. In half of the kernels threads hand elements to each other without a race; the others have one change, such as a barrier less or another mask, that makes a race.
"""
import argparse
import copy
import random
import sys

import numpy as np

from library import Failure, Library

CONDITIONS = ["t == 0", "t < 16", "t >= 32", "t % 2 == 0", "t // 32 == 1", "t % 32 < 16", "t < n - 1"]
INDICES = ["t", "t", "t", "(t ^ 1) % n", "(t ^ 31) % n", "(t + 16) % n", "n - 1 - t", "t // 32", "t % 2", "0"]
MASKS = ["", "", "0xffff", "0xffff0000", "0x0f0f0f0f", "u32(t % 32 < 16 ? 0xffff : 0xffff0000)", "u32(t % 2 == 0 ? 0x55555555 : 0xaaaaaaaa)", "1u32 << u32(t % 32)"]
ACCESSES = {"read": "sum += i32(s[{}])", "write": "s[{}] = t", "add": "atomic_add(s[{}], 1)", "load": "sum += atomic_load(s[{}])", "store": "atomic_store(s[{}], t)"}
ATOMIC, WRITES = ("add", "load", "store"), ("write", "add", "store")


def python(text):
    """Returns the kernel IR expression as a Python expression."""
    if " ? " in text:
        condition, values = text.removeprefix("u32(").removesuffix(")").split(" ? ")
        return f"({values.split(' : ')[0]}) if {condition} else ({values.split(' : ')[1]})"
    return text.replace("1u32", "1").replace("u32(t % 32)", "(t % 32)")


class Kernel:
    def __init__(self, seed):
        self.draw = random.Random(f"races {seed}")
        self.n = self.draw.choice((32, 40, 64, 64, 64, 70))
        self.body = self.statements(self.draw.randint(3, 7), 0)
        model = Model(self)
        self.is_wanted = not model.is_racing and model.has_handed_over
        self.is_racing = False
        if self.is_wanted and seed.endswith(" racing"):
            self.make_race()

    def make_race(self):
        """Changes one statement so that there is a race, or gives up."""
        whole = self.body
        for _ in range(6):
            self.body = copy.deepcopy(whole)
            lists = [self.body]
            for stmts in lists:
                lists += [part for stmt in stmts for part in stmt if isinstance(part, list)]
            stmts = self.draw.choice([stmts for stmts in lists if stmts])
            at = self.draw.randrange(len(stmts))
            stmts[at:at + 1] = self.changed(stmts[at])
            self.is_racing = Model(self).is_racing
            if self.is_racing:
                return
        self.is_wanted = False

    def changed(self, stmt):
        d = self.draw
        if stmt[0] in ACCESSES:
            return [(d.choice(list(ACCESSES)), stmt[1])]
        if stmt[0] == "warp" and d.random() < 0.5:
            return [("warp", d.choice(MASKS))]
        if stmt[0] in ("warp", "barrier"):
            return d.choice(([], [("warp", "")], [("if", d.choice(CONDITIONS), [stmt], [])]))
        if stmt[0] == "return":
            return []
        return [("if", d.choice(CONDITIONS), stmt[2], [])]

    def statements(self, count, depth):
        d, made = self.draw, []
        for _ in range(count):
            kind = d.choice(["access"] * 4 + ["guarded"] * 2 + ["barrier", "barrier", "warp", "warp", "if", "for", "return", "counter"])
            if kind in ("access", "guarded"):
                access = (d.choice(["read", "read", "write", "write", *ATOMIC]), d.choice(INDICES))
                made.append(("if", d.choice(CONDITIONS), [access], []) if kind == "guarded" else access)
            elif kind == "barrier" and (depth == 0 or d.random() < 0.5):
                made.append(("barrier",))
            elif kind == "warp":
                made.append(("warp", d.choice(MASKS)))
            elif kind == "counter":  # one thread stores the initial value, and all threads count
                made += [("if", "t == 0", [("write", "0")], []), (d.choice(("barrier", "barrier", "warp")), ""), ("add", "0")]
            elif kind == "if" and depth < 2:
                made.append(("if", d.choice(CONDITIONS), self.statements(d.randint(1, 4), depth + 1), self.statements(d.choice((0, 0, 2)), depth + 1)))
            elif kind == "for" and depth < 2:
                made.append(("for", d.randint(1, 2), self.statements(d.randint(2, 4), depth + 1)))
            elif kind == "return" and d.random() < 0.3:
                made.append(("return", d.choice(CONDITIONS)))
        return made

    def lines(self, body, indent):
        for stmt in body:
            if stmt[0] in ACCESSES:
                yield indent + ACCESSES[stmt[0]].format(stmt[1])
            elif stmt[0] == "barrier":
                yield indent + "syncthreads()"
            elif stmt[0] == "warp":
                yield f"{indent}syncwarp({stmt[1]})"
            elif stmt[0] == "return":
                yield f"{indent}if {stmt[1]} {{ return }}"
            elif stmt[0] == "for":
                yield f"{indent}for k{len(indent)} in range({stmt[1]}) {{"
                yield from self.lines(stmt[2], indent + "  ")
                yield indent + "}"
            else:
                yield f"{indent}if {stmt[1]} {{"
                yield from self.lines(stmt[2], indent + "  ")
                yield indent + ("} else {" if stmt[3] else "}")
                if stmt[3]:
                    yield from self.lines(stmt[3], indent + "  ")
                    yield indent + "}"

    def text(self):
        lines = [f"kernel k(r) @grid(1) @block({self.n}) {{", f"  shared s: i32[{self.n}]", f"  let n = {self.n}", "  let t = i32(threadIdx.x)", "  var sum = 0"]
        return "\n".join([*lines, *self.lines(self.body, "  "), "  r[t] = sum", "}"])


class Model:
    """Runs the statements for all threads. clocks[b][a]: the clock of thread a up to which thread b knows its
    operations."""

    def __init__(self, kernel):
        self.n, self.is_racing, self.has_handed_over = kernel.n, False, False
        self.clocks = np.eye(self.n, dtype=int)
        self.done = {}  # by element: (thread, its clock, kind)
        self.left = set()
        self.compiled = {}
        self.run(kernel.body, list(range(self.n)))

    def value(self, text, t):
        code = self.compiled.setdefault(text, compile(python(text), text, "eval"))
        return eval(code, {"t": t, "n": self.n})

    def meet(self, threads):
        if not threads:
            return
        self.clocks[threads] = self.clocks[threads].max(axis=0)
        self.clocks[threads, threads] += 1

    def access(self, kind, element, t):
        for who, clock, other in self.done.setdefault(element, []):
            conflicts = (kind in WRITES or other in WRITES) and not (kind in ATOMIC and other in ATOMIC)
            if who == t or not conflicts:
                continue
            if self.clocks[t][who] < clock:
                self.is_racing = True
                return
            self.has_handed_over = True
        self.done[element].append((t, self.clocks[t][t], kind))

    def run(self, body, active):
        """Returns the threads that have not left."""
        for stmt in body:
            if self.is_racing:
                return active
            if stmt[0] in ACCESSES:
                for t in active:
                    self.access(stmt[0], self.value(stmt[1], t), t)
            elif stmt[0] == "barrier":
                if active:
                    self.meet(sorted(set(active) | self.left))
            elif stmt[0] == "warp":
                groups = {}
                for t in active:
                    mask = self.value(stmt[1], t) if stmt[1] else 0xffffffff
                    groups.setdefault((t // 32, mask) if mask >> t % 32 & 1 else t, []).append(t)
                for threads in groups.values():
                    self.meet(threads)
            elif stmt[0] == "return":
                self.left |= {t for t in active if self.value(stmt[1], t)}
                active = [t for t in active if t not in self.left]
            elif stmt[0] == "for":
                for _ in range(stmt[1]):
                    active = self.run(stmt[2], active)
            else:
                holds = [t for t in active if self.value(stmt[1], t)]
                self.run(stmt[2], holds)
                self.run(stmt[3], [t for t in active if t not in holds])
                active = [t for t in active if t not in self.left]
        return active


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261128)
    arguments = parser.parse_args()
    library = Library(arguments.libdir, "cpu", ("races",))
    wrong = number = 0
    for i in range(arguments.count):
        kind = "racing" if i % 2 else "ordered"
        while not (kernel := Kernel(f"{arguments.seed} {number} {kind}")).is_wanted:
            number += 1
        number += 1
        try:
            library.run(kernel.text(), [("i32", np.zeros(kernel.n, np.int32))], (1, 1, 1), (kernel.n, 1, 1))
            verdict = ""
        except Failure as failure:
            verdict = str(failure)
        if ("a race: " in verdict) != kernel.is_racing or (verdict and "a race: " not in verdict):
            wrong += 1
            print(f"seed {arguments.seed}, kernel {number - 1} has {'a race' if kernel.is_racing else 'no race'}:\n{kernel.text()}\n{verdict or 'no failure'}\n")
    print(f"{arguments.count - wrong} of {arguments.count} right, seed {arguments.seed}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
