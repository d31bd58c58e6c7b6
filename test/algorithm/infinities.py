#!/usr/bin/env python3
"""infinities.py: compares named operators with NumPy's ufuncs on infinities, NaN, zeros and the operators' identities, in
reductions, inclusive and exclusive scans, segments and pairs, also with initial values."""
import argparse
import ctypes as c
import random
import secrets
import sys

import numpy as np

from calls import FUNC, Algorithms, Arg, Operand

UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax, "logaddexp": np.logaddexp}
IDENTITIES = {"add": 0.0, "mul": 1.0, "logaddexp": -np.inf}
EXCLUSIVE = 1
VALUES = (np.inf, -np.inf, 0.0, -0.0, 1.0, 2.5, -3.0, np.nan)
# The product of many numbers overflows, and an infinity times 0 is a NaN. The result would therefore depend on the order.
PRODUCTS = (np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, np.nan)


def draw(d, name, count, dtype):
    """Draws from a few kinds of values, so that each kind is combined with every other kind."""
    kinds = d.sample(PRODUCTS if name == "mul" else VALUES, d.randint(1, 4)) + [IDENTITIES.get(name, 1.0)]
    return np.array([d.choice(kinds) for _ in range(count)], dtype)


def accumulate(name, x):
    """Accumulates in order, as ufunc.accumulate is defined. NumPy computes long arrays in a different order."""
    found = [x[0]]
    for value in x[1:]:
        found.append(UFUNCS[name](found[-1], value))
    return np.array(found, x.dtype)


def fold(name, x): return accumulate(name, x)[-1:]


class Infinities(Algorithms):
    def call(self, function, *arguments, **options):
        passed = [c.byref(a) if isinstance(a, c.Structure) else a for a in arguments]
        self.require(getattr(self.c, f"kjit_{function}")(self.context, *passed, c.byref(self.options(**options))))


def run_reduce(a, d, name, dtype):
    x, r = draw(d, name, d.choice((1, 2, 3, 400)), dtype), np.zeros(1, dtype)
    a.call("reduce", a.array(r.reshape(())), a.array(x), a.operator(name))
    return r, fold(name, x)


def run_initial(a, d, name, dtype):
    x, r, first = draw(d, name, d.choice((1, 2, 3, 400)), dtype), np.zeros(1, dtype), draw(d, name, 1, dtype)
    a.call("reduce", a.array(r.reshape(())), a.array(x), a.operator(name), initial=first[0])
    return r, fold(name, np.concatenate((first, x)))


def run_scan(a, d, name, dtype):
    x = draw(d, name, d.choice((1, 5, 700)), dtype)
    r = np.zeros_like(x)
    a.call("scan", a.array(r), a.array(x), a.operator(name))
    return r, accumulate(name, x)


def run_exclusive(a, d, name, dtype):
    x = draw(d, name, d.choice((1, 5, 700)), dtype)
    r, first = np.zeros_like(x), draw(d, name, 1, dtype)
    has_initial = name not in IDENTITIES or d.random() < 0.5
    a.call("scan", a.array(r), a.array(x), a.operator(name), flags=EXCLUSIVE, **({"initial": first[0]} if has_initial else {}))
    before = first if has_initial else np.array([IDENTITIES[name]], dtype)
    return r, accumulate(name, np.concatenate((before, x[:-1])))


def run_segments(a, d, name, dtype):
    x, at = draw(d, name, 60, dtype), np.array([0, *sorted(d.sample(range(1, 60), 6)), 60], np.int32)
    r, s = np.zeros(7, dtype), np.zeros_like(x)
    a.call("reduce_segments", a.array(r), a.array(x), a.array(at), a.operator(name))
    a.call("scan_segments", a.array(s), a.array(x), a.array(at), a.operator(name))
    parts = [x[p:q] for p, q in zip(at, at[1:])]
    return np.concatenate((r, s)), np.concatenate([*(fold(name, p) for p in parts), *(accumulate(name, p) for p in parts)])


def run_pairs(a, d, name, dtype):
    x, y, r = np.zeros(3, dtype), draw(d, name, d.choice((2, 3, 300)), dtype), np.zeros(3, dtype)
    a.call("pairs", a.array(r), Operand(Arg(5, 0, 0, FUNC, a.right), None, 0, None, 0), a.array(x), a.array(y), c.c_size_t(1), a.operator(name))
    return r, np.repeat(fold(name, y), 3)


FAMILIES = {name[4:]: run for name, run in sorted(globals().items()) if name.startswith("run_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    np.seterr(all="ignore")
    d, wrong = random.Random(seed), 0
    library = Infinities(arguments.libdir, arguments.device)
    library.right = library.find(library.parse("func right(u, v, i, j) { return v }\n"), "right")
    for _ in range(arguments.rounds):
        for name in UFUNCS:
            for family, run in FAMILIES.items():
                dtype = d.choice((np.float32, np.float64))
                library.begin()
                found, expected = run(library, d, name, dtype)
                if not np.allclose(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
                    wrong += 1
                    print(f"WRONG: {family} of {name}, {np.dtype(dtype)}: {found}, expected {expected}")
    print(f"{wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
