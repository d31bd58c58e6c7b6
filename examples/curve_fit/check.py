#!/usr/bin/env python3
"""Compares the fit of curve_fit with a fit in NumPy, whose derivatives are complex steps, and the gradients that the program prints with each other."""
import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile

import numpy as np


def wave(t, parameters):
    a, k, w = parameters
    return a * np.exp(-k * t) * np.cos(w * t)


def fit(t, y, parameters):
    """Fits the curve by Gauss-Newton steps from a first guess close to the solution."""
    for _ in range(50):
        step = 1e-30j * np.eye(3)
        slopes = np.stack([wave(t, parameters + one).imag / 1e-30 for one in step], axis=1)
        change = np.linalg.lstsq(slopes, y - wave(t, parameters), rcond=None)[0]
        parameters = parameters + change
    return parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    parser.add_argument("--count", type=int, default=20_000)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = np.random.default_rng(options.seed)
    true = np.array([rng.uniform(1, 3), rng.uniform(0.2, 0.8), rng.uniform(2, 5)])
    t = np.sort(rng.uniform(0, 6, options.count))
    y = wave(t, true) + rng.normal(0, 0.1, options.count)
    guess = true * rng.uniform(0.9, 1.1, 3)
    with tempfile.TemporaryDirectory() as folder:
        times, values = os.path.join(folder, "times"), os.path.join(folder, "values")
        t.tofile(times)
        y.tofile(values)
        done = subprocess.run([options.program, options.device, times, values, *map(repr, map(float, guess))], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="")
    found = np.array([float(one) for one in re.search(r"fit: (.*)", done.stdout)[1].split()])
    of_func, of_differences = map(float, re.search(r"func (\S+) differences (\S+)", done.stdout).groups())
    if not of_func <= 1e-11 or not of_differences <= 1e-7:
        sys.exit("the gradients differ")
    want = fit(t, y, true)
    if not np.allclose(found, want, rtol=1e-8, atol=0):
        sys.exit(f"the fit is {want}, the program found {found}")
    print("right")


if __name__ == "__main__":
    main()
