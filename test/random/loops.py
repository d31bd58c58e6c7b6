#!/usr/bin/env python3
"""loops.py: random loops for test/run/hoisted_loops.c, which compares loops in two versions, with their checks and without, with loops whose checks are made in every iteration.

Values count as right where both ways agree on them, on how the thread fails and on what it did before.
"""
import argparse
import random
import subprocess
import sys
import tempfile


class Loops:
    """Statements over r (results), x, y, b (12 elements), m (4 x 5), t (2 x 3 x 4) and first, stop, by, c of one integer type."""

    def __init__(self, draw):
        self.draw, self.count = draw, 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def index(self, names, depth=2):
        d = self.draw
        if depth == 0 or d.random() < 0.4:
            return d.choice(names) if d.random() < 0.85 else str(d.randint(0, 5))
        a, b = self.index(names, depth - 1), self.index(names, depth - 1)
        kind = d.choice(["+", "+", "-", "*", "//", "%", "%n", "&", ">>", "min", "max", "cond", "i32", "i64", "u32", "clamp"])
        if kind in "+-":
            return f"({a} {kind} {b})"
        if kind == "*":
            return f"({a} * {d.choice([b, str(d.randint(2, 5))])})"
        if kind in ("//", "%"):
            return f"({a} {kind} {d.randint(1, 12)})"
        if kind == "%n":
            return f"({a} % {b})"
        if kind == "&":
            return f"({a} & {d.choice([3, 7])})"
        if kind == ">>":
            return f"({a} >> {d.randint(0, 3)})"
        if kind == "cond":
            return f"({a} < {b} ? {a} : {b})"
        if kind == "clamp":
            return f"min(max({a}, {d.randint(0, 3)}), {d.randint(4, 12)})"
        return f"{kind}({a})" if kind in ("i32", "i64", "u32") else f"{kind}({a}, {b})"

    def access(self, names):
        d = self.draw
        i, j, k = (self.index(names, d.randint(0, 2)) for _ in range(3))
        return d.choice([f"x[{i}]", f"x[{i}]", f"m[{i}, {j}]", f"t[{i}, {j}, {k}]", f"at(x, {i})", f"sum_of(m, {i})", f"y[{i}]", f"x[b[{i}]]", f"s[{i}]", f"g[{i}]"])

    def loop(self, names):
        k, d = self.name("k"), self.draw
        first, stop = d.choice(["first", "0", "c", self.index(names, 1)]), d.choice(["stop", "stop", "4", "by", "b[1]", "len(x)", self.index(names, 1)])
        ends = d.choice([f"{first}, {stop}", f"{first}, {stop}", f"{first}, {stop}, {d.randint(2, 4)}", f"{first}, {stop}, by"])
        header = f"for {k} in range({ends}) {{\n"
        if d.random() < 0.15:
            header = f"for {k} in range(6, -2, -{d.randint(1, 3)}) {{\n"
        return header + "n += 1\nif n > 60 { return }\n" + self.statements(names + [k], d.randint(1, 3)) + "}\n"

    def statements(self, names, count):
        d, text = self.draw, ""
        for _ in range(count):
            kind = d.choice(["load", "load", "load", "store", "let", "if", "loop", "row", "leave", "divide", "walk"])
            if kind == "let":
                name = self.name("v")
                text += f"let {name} = {self.index(names)}\n"
                names = names + [name]
            elif kind == "if":
                text += f"if {self.index(names, 1)} < {self.index(names, 1)} {{\n{self.statements(names, 1)}}}\n"
            elif kind == "loop" and len(names) < 8:
                text += self.loop(names)
            elif kind == "row":
                row = self.name("row")
                text += f"let {row} = m[{self.index(names, 1)}]\nr[1] += {row}[{self.index(names, 1)}]\n"
            elif kind == "store":
                text += f"y[{self.index(names, 1)}] += {self.access(names)}\n"
            elif kind == "leave":
                text += f"if {d.choice(names)} == {d.choice(['by', 'c', '2'])} {{ {d.choice(['break', 'continue', 'return'])} }}\n" if len(names) > 4 else ""
            elif kind == "divide":
                text += f"r[1] += i32(60 {d.choice(['//', '%'])} {self.index(names, 1)})\n"
            elif kind == "walk":
                text += f"p += {d.randint(1, 3)}\nr[1] += x[p]\n"
            else:
                text += f"r[0] += 1\nr[1] += {self.access(names)}\n"
        return text

    def body(self):
        return "var n = 0\nvar p = -1\nlet s = x[2:9]\nlet g = x[1::2]\n" + self.loop(["first", "stop", "by", "c"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(2**31) if arguments.seed is None else arguments.seed
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        bodies = [Loops(random.Random(f"{seed} {i}")).body() for i in range(arguments.count)]
        file.write("---\n".join(bodies))
        file.flush()
        done = subprocess.run([arguments.program, arguments.device, file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    print(f"seed {seed}\n{done.stdout}")
    if done.returncode:
        for i, body in enumerate(bodies):
            if f"loop{i}," in done.stdout or done.returncode < 0:
                print(f"loop{i}:\n{body}")
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
