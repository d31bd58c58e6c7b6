#!/usr/bin/env python3
"""rules.py: the derivative of each function of lib/derive/derivatives.def, at random points, in f64, f32, f16 and bf16, forward and reverse.

The judge is MPFR (references.py), which does not use the rules. A row of the table without a domain here, or without a reference, is an error.

An error is measured in units: 2^-p times the size of the derivative, where the type has p significant bits. The bound is 8 units in each type. It follows from the rules: a rule has
at most five operations, which add half a unit each; the functions that it calls have errors of up to 2 units; and rules with exp(-x^2) or exp(-x^2 / 2) multiply the rounding of
the exponent by at most 4.5 in the domains here. The functions in CANCELS subtract numbers near 1 (in their domains), so their errors are relative to 1 + |derivative|.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import references

# By function: one interval for each operand; "n" is an integer. The intervals do not contain kinks or poles.
UNIT, WIDE, POSITIVE = (-0.8, 0.8), (-3, 3), (0.6, 4)
DOMAINS = {
    "abs": [(0.5, 3)], "min": [(0.2, 1), (1.5, 3)], "max": [(0.2, 1), (1.5, 3)], "no_diff": [WIDE],
    "sqrt": [POSITIVE], "rsqrt": [POSITIVE], "cbrt": [POSITIVE], "rcbrt": [POSITIVE], "exp": [WIDE], "exp2": [WIDE], "exp10": [(-1, 1)], "expm1": [WIDE],
    "log": [POSITIVE], "log2": [POSITIVE], "log10": [POSITIVE], "log1p": [(-0.3, 3)], "sin": [WIDE], "cos": [WIDE], "tan": [(-1, 1)], "asin": [(-0.6, 0.6)],
    "acos": [(-0.6, 0.6)], "atan": [WIDE], "sinh": [WIDE], "cosh": [WIDE], "tanh": [(-2, 2)], "asinh": [WIDE], "acosh": [(1.6, 4)], "atanh": [(-0.6, 0.6)],
    "erf": [(-2, 2)], "erfc": [(-2, 2)], "erfinv": [(-0.6, 0.6)], "erfcinv": [(0.4, 1.6)], "erfcx": [(-1, 3)], "normcdf": [WIDE], "normcdfinv": [(0.2, 0.8)],
    "sinpi": [WIDE], "cospi": [WIDE], "j0": [(0.5, 9)], "j1": [(0.5, 9)], "y0": [(1, 9)], "y1": [(1, 9)], "jn": ["n", (0.5, 9)], "yn": ["n", (1.5, 9)],
    "tgamma": [(-1.8, -1.2)], "lgamma": [POSITIVE],
    "pow": [POSITIVE, WIDE], "atan2": [(0.5, 3), (0.5, 3)], "hypot": [(0.5, 3), (-3, -0.5)], "fmod": [(5.2, 5.8), (2, 2.4)], "remainder": [(5.4, 5.8), (2, 2.1)],
    "remquo": [(5.4, 5.8), (2, 2.1)], "copysign": [(0.5, 3), (-3, -0.5)], "nextafter": [WIDE, (9, 10)], "fdim": [(2, 3), (0.5, 1.5)], "quotient": [WIDE, POSITIVE], "fma": [WIDE] * 3,
    "fma_rz": [WIDE] * 3, "fma_ru": [WIDE] * 3, "fma_rd": [WIDE] * 3, "ldexp": [WIDE, "n"], "frexp": [(0.55, 0.95)], "modf": [(1.2, 1.8)], "sincos": [WIDE],
    "sincospi": [WIDE], "saturate": [(0.1, 0.9)], "floor": [(0.2, 0.8)], "ceil": [(0.2, 0.8)], "trunc": [(0.2, 0.8)], "round": [(0.6, 1.4)], "rint": [(0.6, 1.4)],
    "logb": [(1.2, 1.8)], "ilogb": [WIDE], "isnan": [WIDE], "isinf": [WIDE], "isfinite": [WIDE], "isnormal": [WIDE], "signbit": [WIDE], "lround": [WIDE], "lrint": [WIDE],
    "fast_sin": [WIDE], "fast_cos": [WIDE], "fast_tan": [(-1, 1)], "fast_exp": [WIDE], "fast_exp10": [(-1, 1)], "fast_log": [POSITIVE], "fast_log2": [POSITIVE],
    "fast_log10": [POSITIVE], "fast_pow": [POSITIVE, WIDE], "fast_divide": [WIDE, POSITIVE],
}  # fmt: skip
EXACT = {"fma_rz", "fma_ru", "fma_rd"}  # functions that support only f32 and f64
# results that are not floats
NO_VALUE = {"ilogb", "isnan", "isinf", "isfinite", "isnormal", "signbit", "lround", "lrint"}
POINTS = 16
BOUND = 8  # units
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
FAST = 1000  # factor of the bound for the fast functions on a GPU, which have fewer digits
# The errors of these functions on a GPU are bounded absolutely in docs/ir.md, and in units these are many.
ABSOLUTE_ON_GPU = {"jn": {"f64": 5e-12, "f32": 2.2e-6}, "yn": {"f64": 5e-12, "f32": 2.2e-6}}
CANCELS = {"j0", "j1", "y0", "y1", "jn", "yn", "lgamma", "tgamma", "erfcx", "tanh", "expm1"}
OPERATORS = {"op_add": "x + y", "op_sub": "x - y", "op_mul": "x * y", "op_div": "x / y", "op_mod": "x % y", "op_pow": "x ** y", "op_neg": "-x", "op_cube": "x ** 3", "op_whole": "x ** n"}
OPERATOR_DOMAINS = {name: [(5.2, 5.8), (2, 2.4)] for name in OPERATORS} | {"op_neg": [WIDE], "op_cube": [WIDE], "op_whole": [WIDE, "n"]}


def read_rows(path):
    """Returns (kind, name) for each row in the table."""
    with open(path) as file:
        text = file.read().split("*/", 1)[1]
    return [(kind, name.lower()) for kind, name in re.findall(r"^(ONE|TWO|THREE|PAIR_TWO|PAIR|DISCRETE)\((\w+)", text, re.M)]


class Case:
    """Returns a func of floats and its operands. The kernel has one column for its value and one column for each
    derivative."""

    def __init__(self, name, body, domains):
        self.name, self.body, self.domains = name, body, domains
        self.letters = "xn" if " n" in body else "xyz"[: len(domains)]
        self.floats = [i for i, domain in enumerate(domains) if domain != "n"]

    def source(self):
        return f"func f_{self.name}({', '.join(self.letters)}) {{ return {self.body} }}\n"

    def arguments(self):
        return ", ".join("i32(n[i])" if domain == "n" else f"{letter}[i, {{0}}]" for letter, domain in zip(self.letters, self.domains))

    def draw(self, rng):
        return [rng.integers(2, 5, POINTS).astype(float) if domain == "n" else rng.uniform(*domain, POINTS) for domain in self.domains]


def make_cases(rows):
    cases = []
    for kind, name in rows:
        if name not in DOMAINS:
            sys.exit(f"rules.py: `{name}` of derivatives.def has no domain in DOMAINS")
        if name in NO_VALUE:
            continue
        letters = ", ".join("xyz"[: len(DOMAINS[name])])
        for item in (0, 1) if kind == "PAIR" and name != "frexp" else (0,) if kind.startswith("PAIR") else (None,):
            body = f"{name}({letters})" + ("" if item is None else f"[{item}]")
            cases.append(Case(name if item is None else f"{name}{item}", body, DOMAINS[name]))
    cases += [Case(name, body, OPERATOR_DOMAINS[name]) for name, body in OPERATORS.items()]
    for case in cases:
        if case.name not in references.REFERENCES:
            sys.exit(f"rules.py: `{case.name}` has no reference in references.py")
    return cases


def make_source(cases, type_name):
    narrow = type_name in ("f16", "bf16")
    lines = [case.source() for case in cases]
    lines.append("kernel values(x, y, z, n, r) {\n  for i in grid_range(x.shape[0]) {\n")
    lines += [f"    r[i, {j}] = f_{case.name}({case.arguments().format(j)})\n" for j, case in enumerate(cases)]
    lines.append("  }\n}\nkernel derivatives(x, y, z, n, r) {\n  for i in grid_range(x.shape[0]) {\n")
    for j, case in enumerate(cases):
        if narrow and case.name in EXACT:
            continue
        lines += [f"    r[i, {j}, {k}] = jvp(f_{case.name}, {k})({case.arguments().format(j)}, 1.0)[1]\n" for k in case.floats]
    lines.append("  }\n}\nkernel reverse(x, y, z, n, r) {\n  for i in grid_range(x.shape[0]) {\n")
    for j, case in enumerate(cases):
        if narrow and case.name in EXACT:
            continue
        lines += [f"    r[i, {j}, {k}] = vjp(f_{case.name}, {k})({case.arguments().format(j)}, 1.0)[1]\n" for k in case.floats]
    return "".join(lines + ["  }\n}\n"])


def run(options, folder, cases, launch, arrays):
    with open(os.path.join(folder, "rules.kir"), "w") as file:
        file.write(make_source(cases, options.type))
    command = [options.kjit_run, os.path.join(folder, "rules.kir"), "--no-cache", "--quiet", "--device", options.device, "--launch", launch]
    for name, array in arrays.items():
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, array)
        kind = {"bf16": ":as=bf16"}.get(options.type, "") if array.dtype == np.float32 else ""
        command += ["--arg", f"{name}=@{path}{kind}"]
    command += ["--save", f"r={folder}/out.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"rules.py: {' '.join(command)}\n{done.stdout}")
    return np.load(os.path.join(folder, "out.npy"))


def stack(cases, points, letter, dtype):
    columns = [points[j][case.letters.index(letter)] if letter in case.letters else np.ones(len(points[0][0])) for j, case in enumerate(cases)]
    return np.stack(columns, 1).astype(dtype)


def evaluate(options, folder, launch, cases, points, dtype, shape):
    arrays = {letter: stack(cases, points, letter, dtype) for letter in "xyz"}
    arrays["n"] = points[[case.name for case in cases].index("jn")][0].astype(np.int32)
    arrays["r"] = np.zeros(shape, dtype)
    return run(options, folder, cases, f"{launch}(x, y, z, n, r)", arrays)


def expect(cases, points):
    """Returns the derivatives by MPFR, by case and operand."""
    result = np.zeros((POINTS, len(cases), 3))
    for j, case in enumerate(cases):
        for k in case.floats:
            result[:, j, k] = [references.derivative(case.name, [float(v[i]) for v in points[j]], k) for i in range(POINTS)]
    return result


def check(cases, have, want, points, what, device):
    failures = 0
    for j, case in enumerate(cases):
        for k in case.floats:
            if what in ("f16", "bf16") and case.name in EXACT:
                continue
            size = np.abs(want[:, j, k]) + (case.name in CANCELS)
            error = np.abs(have[:, j, k] - want[:, j, k]) * 2.0 ** DIGITS[what]
            units = np.where(error == 0, 0, error / np.where(size == 0, 1, size))
            worst = int(np.argmax(np.where(np.isnan(units), np.inf, units)))
            bound = BOUND * (FAST if case.name.startswith("fast_") and device != "cpu" else 1)
            if device != "cpu" and case.name in ABSOLUTE_ON_GPU:
                bound = max(bound, ABSOLUTE_ON_GPU[case.name].get(what, 0) * 2.0 ** DIGITS[what])
            if not units[worst] <= bound:
                failures += 1
                at = [float(v[worst]) for v in points[j]]
                print(f"{what}: {case.body} by operand {k} at {at}: {have[worst, j, k]!r}, MPFR has {want[worst, j, k]!r}: {units[worst]:.3g} units, the bound is {bound}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.type = "f64"
    rng = np.random.default_rng(options.seed)
    cases = make_cases(read_rows(options.table))
    # arguments that every type can represent exactly: f64 and narrow types are compared at the same points
    points = [[np.round(v * 64) / 64 for v in case.draw(rng)] for case in cases]
    integers = points[[case.name for case in cases].index("jn")][0]
    points = [[integers if domain == "n" else v for v, domain in zip(values, case.domains)] for values, case in zip(points, cases)]
    shape = (POINTS, len(cases), 3)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        expected = expect(cases, points)
        for options.type, dtype in ("f64", np.float64), ("f32", np.float32), ("f16", np.float16), ("bf16", np.float32):
            for launch in "derivatives", "reverse":
                have = evaluate(options, folder, launch, cases, points, dtype, shape)
                failures += check(cases, have.astype(float), expected, points, options.type, options.device)
    print(f"{sum(len(case.floats) for case in cases)} derivatives, {failures} failures")
    sys.exit(failures > 0)


main()
