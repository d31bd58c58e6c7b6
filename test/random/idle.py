#!/usr/bin/env python3
"""Random kernels whose threads leave early, all of a block too, and launches of grid_ranges without iterations.

What stands behind a guard has a value for live threads only: loops that do not end for others, loads outside of arrays that end at a page without access,
failures, recursion. What stands before an empty grid_range, and its extents, counts how often it is evaluated.
"""
import argparse
import ctypes
import mmap
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library
import pool

PAGE = mmap.PAGESIZE
FUNCTIONS = """
func steps(n) { var k = n; var m = 0; while k != 1 { k = k % 2 == 0 ? k // 2 : 3 * k + 1; m += 1 }; return m }
func down(n: i32) -> i32 { if n == 1 { return 0 }; return 1 + down(n - 1) }
func count(c, v) { atomic_add(c[1], 1); return v }
func quiet(n) { if n == 0 { raise "no thread is here" }; return n }
func left(i, n) { if i >= n { return 0 }; let m = steps(n); syncwarp(); return m }
"""


def steps(n):
    m = 0
    while n != 1:
        n, m = n // 2 if n % 2 == 0 else 3 * n + 1, m + 1
    return m


class Walled:
    """n elements between pages without access. The first or the last element is next to such a page."""

    def __init__(self, values, is_at_end):
        self.map = mmap.mmap(-1, 3 * PAGE)
        cells = np.frombuffer(self.map, np.int32)
        n, page = len(values), PAGE // 4
        first = 2 * page - n if is_at_end else page
        self.array = cells[first : first + n]
        self.array[:] = values
        base = cells.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for address in (base, base + 2 * PAGE):
            if protect(ctypes.c_void_p(address), PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")


class Kernel:
    """Returns a kernel, its launch, and the expected contents of r and c."""

    def __init__(self, seed):
        self.r = random.Random(f"idle {seed}")
        self.names = 0
        self.grid, self.block = self.r.randint(1, 3), self.r.choice((1, 8, 32, 40))
        self.threads = self.grid * self.block
        (self.guarded if self.r.random() < 0.6 else self.ranges)()

    def name(self):
        self.names += 1
        return f"v{self.names}"

    # -- blocks after the end --

    def guarded(self):
        r = self.r
        form = r.choice(("return", "return", "if", "continue", "break", "fails"))
        whole = [b * self.block for b in range(self.grid + 1)]
        self.n = r.choice([0, *whole] if form != "return" else [0, 0, *whole, r.randint(0, self.threads)])
        self.x, self.y = [r.randint(-9, 9) for _ in range(self.n)], [r.randint(-9, 9) for _ in range(self.threads)]
        pieces = [self.piece() for _ in range(r.randint(1, 5))]
        body = "\n".join(text for text, _ in pieces)
        total = sum(value for _, value in pieces) if self.n else 0
        times = 1
        store = "r[i] = s; atomic_add(c[0], 1)"
        if form == "return":
            body = f"if i >= n {{ return }}\n{body}"
        elif form == "fails":
            body = f"if i >= n {{ raise \"behind the end\" }}\n{body}"
        elif form == "if":
            body, store = f"if i < n {{\n{body}\n{store}\n}}", ""
        else:
            times = r.randint(1, 2)
            body = f"for z in range({times}) {{\nif i >= n {{ {form} }}\n{body}\n}}"
            store = f"if i < n {{ {store} }}"
        self.fails = form == "fails" and self.n < self.threads
        self.text = f"{FUNCTIONS}kernel k(r: i32[:], c: i32[:], x: i32[:], y: i32[:], n: i32) {{\nlet i = grid(1)\nvar s = 0\n{body}\n{store}\n}}\n"
        self.wanted_r = [total * times if i < self.n else 0 for i in range(self.threads)]
        self.wanted_c = [self.n, 0]

    def piece(self):
        """Returns a statement that adds to s, and the number that it adds in a live thread."""
        n, k, m = self.n or 1, self.name(), self.name()  # if no thread is live, any value is correct
        x, y = self.x or [0], self.y
        collatz = f"{k} = {k} % 2 == 0 ? {k} // 2 : 3 * {k} + 1"
        pieces = (
            lambda: (f"var {k} = n\nvar {m} = 0\nwhile {k} != 1 {{ {collatz}; {m} += 1 }}\ns += {m}", steps(n)),
            lambda: (f"var {k} = n\nwhile {k} != 1 {{ {collatz}; syncthreads(); s += 1 }}", steps(n)),
            lambda: (f"var {k} = n\nwhile {k} != 1 {{ {collatz}; syncwarp(); s += 1 }}\nsyncthreads()", steps(n)),
            lambda: (f"let {k} = steps(n)\nsyncthreads()\ns += {k}", steps(n)),
            lambda: ("s += down(n)\nsyncthreads()", n - 1),
            lambda: (f"var {k} = 0\nwhile {k} * n < 20 {{ {k} += 1 }}\nsyncthreads()\ns += {k}", -(-20 // n)),
            lambda: (f"var {k} = 0\nwhile steps(n) > {k} {{ {k} += 1; syncthreads() }}\ns += {k}", steps(n)),
            lambda: (f"if steps(n) >= 0 {{ syncthreads(); s += 1 }}", 1),
            lambda: (f"for {k} in range(steps(n)) {{ syncthreads(); s += 1 }}", steps(n)),
            lambda: (f"let {k} = x[n - 1]\nsyncthreads()\ns += {k}", x[n - 1]),
            lambda: (f"let {k} = y[len(y) - n]\nsyncthreads()\ns += {k}", y[len(y) - n]),
            lambda: (f"let {k} = 100 // n\nsyncthreads()\ns += {k}", 100 // n),
            lambda: (f"if n == 0 {{ raise \"no thread is here\" }}\nsyncthreads()\ns += quiet(n)", n),
            lambda: ("if n == 0 { print(\"no thread is here\"); atomic_add(c[1], 1); r[0] = 77 }\nsyncthreads()\ns += 1", 1),
            lambda: (f"s += left(i, n)\nsyncthreads()", steps(n)),
            lambda: (f"let {k} = syncthreads_count(true)\ns += {k} > 0 ? 1 : 0", 1),
        )
        return self.r.choice(pieces)()

    # -- grid_ranges --

    def ranges(self):
        """Every thread evaluates the code before a grid_range, and the range's extents, once."""
        r = self.r
        self.n, self.x, self.y, self.fails = r.choice((0, 0, 3, 17)), [], [], False
        lines, c0, c1, self.wanted_r = [], 0, 0, [0] * 64
        for _ in range(r.randint(1, 3)):
            before = r.choice(("none", "atomic", "func", "loop", "both"))
            if before in ("atomic", "both"):
                lines.append("atomic_add(c[0], 1)" if r.random() < 0.5 else f"let {self.name()} = atomic_add(c[0], 1)")
                c0 += self.threads
            if before in ("func", "both"):
                lines.append(f"let {self.name()} = count(c, n)")
                c1 += self.threads
            if before == "loop":
                times = r.randint(1, 3)
                lines.append(f"for {self.name()} in range({times}) {{ atomic_add(c[0], 1) }}")
                c0 += self.threads * times
            extent, v, i = r.choice(("n", "count(c, n)", "n, 2", "2, count(c, n)", "count(c, n), count(c, 2)", "len(x)", "n - 9")), r.randint(1, 9), self.name()
            c1 += self.threads * extent.count("count")
            rank = 1 + extent.count(", ") - extent.count("(c, ")
            size = {"len(x)": 0, "n - 9": max(self.n - 9, 0)}.get(extent, self.n * rank)
            place = i if rank == 1 else f"{i} * {'2' if extent[0] != '2' else 'n'} + {i}b"
            lines.append(f"for {i}{f', {i}b' if rank == 2 else ''} in grid_range({extent}) {{ atomic_add(r[{place}], {v}) }}")
            self.wanted_r = [w + v * (k < size) for k, w in enumerate(self.wanted_r)]
        if r.random() < 0.3:
            lines.append("if grid(1) == 0 { c[2] = 5 }")
        self.text = f"{FUNCTIONS}kernel k(r: i32[:], c: i32[:], x: i32[:], y: i32[:], n: i32) {{\n" + "\n".join(lines) + "\n}\n"
        self.wanted_c = [c0, c1]

    def describe(self, what):
        return f"--- grid {self.grid}, block {self.block}, n = {self.n}\n{self.text}{what}"


class Libraries:
    def __init__(self, options):
        self.options, self.known = options, {}

    def get(self, checks, interruptible):
        key = checks, interruptible
        if key not in self.known:
            self.known[key] = library.Library(self.options.libdir, self.options.device, checks, self.options.debug, interruptible)
        return self.known[key]


def run_one(libraries, seed):
    kernel = Kernel(seed)
    checks = ((), ("bounds", "division", "assert"))[seed // 2 % 2]
    r, c = np.zeros(max(kernel.threads, 64), np.int32), np.zeros(3, np.int32)
    walled = [Walled(kernel.x, False), Walled(kernel.y, True)]
    arguments = [("i32", a) for a in (r, c, walled[0].array, walled[1].array)] + [("i32", kernel.n)]
    failure = None
    try:
        libraries.get(checks, seed % 3 == 1).run(kernel.text, arguments, (kernel.grid, 1, 1), (kernel.block, 1, 1))
    except library.Failure as caught:
        failure = str(caught)
    if failure and not (kernel.fails and "behind the end" in failure):
        return "failed", f"{seed}: {kernel.describe(failure)}"
    if kernel.fails and not failure:
        return "failed", f"{seed}: {kernel.describe('threads should have failed')}"
    got = r.tolist()[: len(kernel.wanted_r)], c.tolist()[:2]
    if got != (kernel.wanted_r, kernel.wanted_c):
        return "failed", f"{seed}: {kernel.describe(f'got {got}, expected {kernel.wanted_r}, {kernel.wanted_c}')}"
    return "right", None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    pool.add_options(parser, 300)
    options = parser.parse_args()
    return pool.run(options, f"kernels without live threads on {options.device}", Libraries, run_one, lambda seed, options, why: f"{seed}: {Kernel(seed).describe(why)}")


if __name__ == "__main__":
    sys.exit(main())
