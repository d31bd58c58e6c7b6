#!/usr/bin/env python3
"""complex.py: derivatives of complex funcs, against differences of NumPy's values.

A complex number is a pair of real numbers to the judge, which moves the real and the imaginary part of each argument. The reverse derivative follows JAX's convention: for a derivative
t by the result f, the derivative by z = x + iy is d/dx - i d/dy of the real part of t f.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

# For each name: the func as kernel IR, with complex z and w and real x, and the same func in Python.
FUNCS = {
    "product": ("z * w", lambda z, w, x: z * w), "quotient": ("z / w", lambda z, w, x: z / w), "sum": ("z - w + 2.0 * z", lambda z, w, x: 3 * z - w),
    "power": ("z ** w", lambda z, w, x: z**w), "cube": ("z ** 3 * x", lambda z, w, x: z**3 * x), "real_power": ("z ** x", lambda z, w, x: z**x),
    "conjugate": ("conj(z) * w", lambda z, w, x: np.conj(z) * w), "absolute": ("abs(z) * w", lambda z, w, x: abs(z) * w), "angle": ("arg(z) * w", lambda z, w, x: np.angle(z) * w),
    "parts": ("c128(z.imag * x, w.real * z.real)", lambda z, w, x: z.imag * x + 1j * w.real * z.real), "negative": ("-z / x + x / w", lambda z, w, x: -z / x + x / w),
    "choice": ("z.real < w.real ? z * w : w / z", lambda z, w, x: np.where(z.real < w.real, z * w, w / z)),
    "loop": ("looped(z, w)", lambda z, w, x: looped(z, w)), "arrays": ("in_array(z, w, x)", lambda z, w, x: in_array(z, w, x)),
    **{name: (f"{name}(z) * x", lambda z, w, x, f=f: f(z) * x) for name, f in {
        "exp": np.exp, "log": np.log, "log10": np.log10, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
        "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}.items()},
}  # fmt: skip
HELPERS = """func looped(z: c128, w: c128) {
  var s = z
  for i in range(3) { s = s * w + conj(s) / (2.0 + f64(i)) }
  return s
}
func in_array(z: c128, w: c128, x: f64) {
  local a: c128[3]
  a[0] = z
  a[1] = w
  a[2] = z * w
  for i in range(2) {
    a[i].imag = a[i + 1].real * x
    a[i + 1].real += a[i].imag * 0.5
    a[2] = a[2] * a[i]
  }
  return a[2] - a[1] * a[0].imag
}
"""
POINTS, STEP = 8, 1 / 256
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def looped(z, w):
    for i in range(3):
        z = z * w + np.conj(z) / (2 + i)
    return z


def in_array(z, w, x):
    a = [z, w, z * w]
    for i in range(2):
        a[i] = a[i].real + 1j * a[i + 1].real * x
        a[i + 1] = a[i + 1] + a[i].imag * 0.5
        a[2] = a[2] * a[i]
    return a[2] - a[1] * a[0].imag


def make_source():
    lines = [HELPERS] + [f"func f_{name}(z: c128, w: c128, x: f64) {{ return {body} }}\n" for name, (body, _) in FUNCS.items()]
    lines.append("kernel derivatives(z, x, r, dx) {\n  for i in grid_range(x.shape[0]) {\n")
    for j, name in enumerate(FUNCS):
        lines.append(f"    let p{j} = jvp(f_{name})(z[i, 0], z[i, 1], x[i, 0], z[i, 2], z[i, 3], x[i, 1])\n")
        lines.append(f"    let q{j} = vjp(f_{name})(z[i, 0], z[i, 1], x[i, 0], z[i, 4])\n")
        values = [f"p{j}[0]", f"p{j}[1]", f"q{j}[0]", f"q{j}[1]", f"q{j}[2]"]
        lines += [f"    r[i, {j}, {k}] = {value}\n" for k, value in enumerate(values)] + [f"    dx[i, {j}] = q{j}[3]\n"]
    return "".join([*lines, "  }\n}\n"])


def difference(function, *along):
    """Returns the directional derivative of the values, with a difference of eighth order."""
    return sum(sign * weight * function(*[sign * distance * STEP * d for d in along]) for distance, weight in WEIGHTS.items() for sign in (1, -1)) / STEP


def expect(function, z, x):
    """Returns the value, its directional derivative, the value again, and the derivatives with respect to z, w and
    x."""
    def moved(dz, dw, dx):
        return function(z[:, 0] + dz, z[:, 1] + dw, x[:, 0] + dx)

    def back(*along):
        return difference(lambda *move: (z[:, 4] * moved(*move)).real, *along)

    value = moved(0, 0, 0)
    return [value, difference(moved, z[:, 2], z[:, 3], x[:, 1]), value, back(1, 0, 0) - 1j * back(1j, 0, 0), back(0, 1, 0) - 1j * back(0, 1j, 0), back(0, 0, 1)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    radius, angle = rng.uniform(0.4, 0.7, (POINTS, 5)), np.sign(rng.uniform(-1, 1, (POINTS, 5))) * rng.uniform(0.4, 2.6, (POINTS, 5))
    z, x = radius * np.exp(1j * angle), rng.uniform(0.5, 1.5, (POINTS, 2))
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/complex.kir", "w") as file:
            file.write(make_source())
        arrays = {"z": z, "x": x, "r": np.zeros((POINTS, len(FUNCS), 5), complex), "dx": np.zeros((POINTS, len(FUNCS)))}
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        command = [options.kjit_run, f"{folder}/complex.kir", "--no-cache", "--quiet", "--device", options.device, *[f"--arg={name}=@{folder}/{name}.npy" for name in arrays]]
        done = subprocess.run([*command, f"--save=r={folder}/out.npy", f"--save=dx={folder}/by_x.npy"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"complex.py:\n{done.stdout}")
        have, by_x = np.load(f"{folder}/out.npy"), np.load(f"{folder}/by_x.npy")
    failures = 0
    for j, (name, (body, function)) in enumerate(FUNCS.items()):
        columns = [*have[:, j].T, by_x[:, j]]
        for what, got, want in zip(["value", "jvp", "value of vjp", "by z", "by w", "by x"], columns, expect(function, z, x)):
            error = np.abs(got - want) / (1 + np.abs(want))
            if not np.all(error <= 1e-8):
                failures += 1
                i = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
                print(f"{body}: {what} at {z[i].tolist()}, {x[i].tolist()}: {got[i]!r}, expected {want[i]!r}")
    print(f"{len(FUNCS)} funcs, {failures} failures")
    sys.exit(failures > 0)


main()
