#!/usr/bin/env python3
"""Makes a CSV file of taxi trips with empty cells, lets formulas.c compute formulas over it, and compares with NumPy.

    examples/formulas/run.py build/release/examples/formulas"""

import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("program")
parser.add_argument("--seed", type=int, default=int(time.time()))
options = parser.parse_args()
print("seed", options.seed)
rng = np.random.default_rng(options.seed)

ROWS = 2500
fare = rng.gamma(3, 5, ROWS).round(2)
distance = rng.gamma(2, 1.5, ROWS).round(1)
tip = rng.gamma(1, 2, ROWS).round(2)
has_tip, has_distance = rng.random(ROWS) > 0.4, rng.random(ROWS) > 0.1


def run(path, formula):
    done = subprocess.run([options.program, path, formula], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(path, formula, values, valid):
    status, text, errors = run(path, formula)
    assert status == 0, errors
    cells = text.split("\n")[:-1]
    assert len(cells) == ROWS and [bool(c) for c in cells] == valid.tolist(), formula
    found = np.array([float(c or 0) for c in cells])
    assert np.allclose(found[valid], values[valid], rtol=1e-12, equal_nan=True), formula


with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
    path = str(pathlib.Path(folder) / "trips.csv")
    rows = zip(fare, np.where(has_distance, distance, None), np.where(has_tip, tip, None))
    lines = ["fare,distance in miles,tip", *(",".join("" if cell is None else repr(float(cell)) for cell in row) for row in rows)]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
    every = np.ones(ROWS, bool)
    check(path, "fare + fillna(tip, 0)", fare + np.where(has_tip, tip, 0), every)
    check(path, "tip / fare", tip / fare, has_tip)
    check(path, "where(`distance in miles` > 2, fare / `distance in miles`, tip)",
          np.where(distance > 2, fare / distance, tip), has_distance & ((distance > 2) | has_tip))  # fmt: skip
    check(path, "is_null(tip) or fare > 20", ~has_tip | (fare > 20), every)
    status, _, errors = run(path, "fare * tipp")
    assert status and "did you mean `tip`?" in errors, errors
print("formulas: right")
