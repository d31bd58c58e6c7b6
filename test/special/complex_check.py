#!/usr/bin/env python3
"""complex_check.py --kjit-run PROGRAM [--device cpu|cuda] [--all]

The functions of complex numbers at all pairs of zeros, ones, infinities and NaNs as their parts, f32 and f64, in a loop, one at a time, and as constants: against cmath and
Annex G, and with each other. Products, quotients and powers, for which Annex G gives no table, with each other only."""
import argparse
import itertools
import math
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import special_complex
from special_values import COMPLEX, decode, encode, is_nan, literal, read_npy, sign_bit, write_npy

NUMBERS = (0.0, -0.0, 1.0, -1.0, 1.5, -3.5, math.inf, -math.inf, math.nan)
FEW = (0.0, -1.0, 1.5, -math.inf, math.nan)
ONE = [f"{name}(z)" for name in special_complex.NAMES] + ["c(abs(z), arg(z))", "conj(z)", "-z", "z ** 2", "z ** -2", "c(z.real, z.imag)"]
TWO = ["z + w", "z - w", "z * w", "z / w", "pow(z, w)", "c(z == w ? 1 : 0, z != w ? 1 : 0)"]
FUSED = ("z ** -2",)  # 1 / z is rounded; then x * x - y * y is 0 or, if one product is fused into the difference, a rest of either sign
TOLERANCE = {"c64": 4e-6, "c128": 1e-14}


def same(part, got, want, tolerance, free, is_fused):
    """The same bits, but for signs that are free; where the real functions that it is made of have several versions, a number as near as the accuracy table says, by the size of
    the whole. Zeros have their sign even where a product may be fused; a difference that is left there need not."""
    size = math.hypot(*(decode(part, w) for w in want))
    for g, w, name in zip(got, want, "xy"):
        if name in free:
            g, w = g & ~sign_bit(part), w & ~sign_bit(part)
        if g == w or is_nan(part, g) and is_nan(part, w):
            continue
        x, y = decode(part, g), decode(part, w)
        if not tolerance or not abs(x - y) <= tolerance * size or math.isinf(size):
            return False
        if math.copysign(1, x) != math.copysign(1, y) and not (is_fused and x != y):
            return False
    return True


def points_of(arity):
    one = [complex(x, y) for x, y in itertools.product(NUMBERS if arity == 1 else FEW, repeat=2)]
    return list(itertools.product(one, repeat=arity))


class Kernels:
    """The text of a module for one type and its launches: one output of two u64 for each point of each expression, for each way."""

    def __init__(self, t):
        self.t, self.part, self.bits = t, COMPLEX[t], "u32" if t == "c64" else "u64"
        self.text = f"func put(r, k, v) {{ r[2 * k] = u64(bitcast({self.bits}, v.real)); r[2 * k + 1] = u64(bitcast({self.bits}, v.imag)) }}\n"
        self.ways = []

    def number(self, z):
        return f"{self.t}({literal(self.part, encode(self.part, z.real))}, {literal(self.part, encode(self.part, z.imag))})"

    def store(self, k, text):
        return f"    put(r, {k}, {text.replace('c(', self.t + '(') if text.startswith('c(') else text})"

    def add(self, arity, expressions, points):
        count, size = len(points), len(points) * len(expressions)
        body = "\n".join([f"    let z = {self.t}(bitcast({self.part}, p[i]), bitcast({self.part}, p[i + {count}]))"]
                         + ([f"    let w = {self.t}(bitcast({self.part}, p[i + {2 * count}]), bitcast({self.part}, p[i + {3 * count}]))"] if arity == 2 else [])
                         + [self.store(f"({n * count} + i)", text) for n, text in enumerate(expressions)])
        self.kernel(f"loop{arity}", f"  for i in grid_range({count}) {{\n{body}\n  }}", "", arity, 0, size)
        self.kernel(f"single{arity}", f"  let i = i32(grid(1))\n{body}", f"[{count}, 1]", arity, 0, size)
        if arity == 2:
            return
        for n, text in enumerate(expressions):
            statements = [self.store(k, text.replace("(z", f"({self.number(p[0])}") if "(z" in text else text.replace("z", self.number(p[0]))) for k, p in enumerate(points)]
            if "z.imag" in text or "arg(z)" in text:
                statements = [self.store(k, text.replace("z", self.number(p[0]))) for k, p in enumerate(points)]
            self.kernel(f"constants{arity}_{n}", "\n".join(statements), "[1, 1]", arity, n * count, count)

    def kernel(self, name, body, launch, arity, first, count):
        self.text += f"kernel {name}(r, p) {{\n{body}\n}}\n"
        self.ways.append((name, arity, first, count, f"{name}{launch}(r_{name}, p{arity})"))

    def run(self, kjit_run, device):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{self.t}.kir")
            with open(path, "w") as file:
                file.write(self.text)
            command = [*shlex.split(kjit_run), path, "--device", device, "--checks", "none"]
            for arity in (1, 2):
                points = points_of(arity)
                parts = [encode(self.part, part(p[n])) for n in range(arity) for part in (lambda z: z.real, lambda z: z.imag) for p in points]
                write_npy(f"{folder}/p{arity}.npy", self.part, parts)
                command += ["--arg", f"p{arity}=@{folder}/p{arity}.npy"]
            for name, _, _, count, launch in self.ways:
                command += ["--arg", f"r_{name}=full:u64[{2 * count}]:value=12345", "--save", f"r_{name}={folder}/{name}.npy", "--launch", launch]
            process = subprocess.run(command, capture_output=True, text=True, errors="replace")
            if process.returncode:
                raise SystemExit(f"{self.t}: kjit-run exited with {process.returncode}\n{process.stdout[-2000:]}{process.stderr[-6000:]}")
            return {name: read_npy(f"{folder}/{name}.npy") for name, *_ in self.ways}


def compare(kernels, outputs, device):
    failures, compared, part = [], 0, kernels.part

    def show(bits):
        return f"{decode(part, bits[0])!r}, {decode(part, bits[1])!r}"

    for name, arity, first, count, _ in kernels.ways:
        points, expressions = points_of(arity), ONE if arity == 1 else TWO
        single = outputs[f"single{arity}"]
        for k in range(count):
            text, point = expressions[(first + k) // len(points)], points[(first + k) % len(points)]
            got, other = outputs[name][2 * k:2 * k + 2], single[2 * (first + k):2 * (first + k) + 2]
            compared += 1
            has_versions = device != "cpu" or name.startswith("loop")
            free = special_complex.free_signs(text, point[0])
            if not same(part, got, other, TOLERANCE[kernels.t] if has_versions else 0, free, text in FUSED):
                failures.append(f"{kernels.t}: {text} of {point}: {name} {show(got)}, from memory {show(other)}")
            function = text.partition("(")[0]
            if name != f"single{arity}" or function not in special_complex.NAMES:
                continue
            want, free = special_complex.reference(function, point[0])
            if not all(special_complex.agrees(decode(part, g), w, p in free, TOLERANCE[kernels.t]) for g, w, p in zip(got, want, "xy")):
                failures.append(f"{kernels.t}: {text} of {point[0]}: {show(got)}, the right one {want}, of either sign {free or 'none'}")
    return failures, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--all", action="store_true", help="print every failure")
    options = parser.parse_args()
    failures, compared = [], 0
    for t in COMPLEX:
        kernels = Kernels(t)
        kernels.add(1, ONE, points_of(1))
        kernels.add(2, TWO, points_of(2))
        found, count = compare(kernels, kernels.run(options.kjit_run, options.device), options.device)
        failures += found
        compared += count
    print("\n".join(failures if options.all else failures[:40]))
    print(f"complex numbers on {options.device}: {compared} values compared, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
