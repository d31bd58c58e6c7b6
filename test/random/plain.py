#!/usr/bin/env python3
"""Random sums, products and functions of floats, compiled as plain code and as the best code: kjit_config.plain_code says which kernels give the same bits in both.

plain.py --count 200 --seed S: kernels S, S+1, ... A failure prints the kernel and the first values that differ. Data have all digits, so that another rounding is seen.
At the end the number of kernels that had plain code: some have, and some do not.
"""
import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library

SUMS = ["({} + {})", "({} - {})"]
PRODUCTS = ["({} * {})", "({} / {})"]
EXACT = ["sqrt(abs({}))", "abs({})", "floor({})", "-{}", "trunc({})", "({} < {} ? {} : {})", "TYPE(i32({}) >> 2)", "TYPE({} != {})"]
OTHERS = ["sin({})", "min({}, {})", "exp({})", "max({}, {})"]
LEAVES = ["x[i]", "y[i]", "s", "1.7", "4", "x[(i * 3 + k) % len(x)]"]
COUNT = 300


def expression(draw, forms, depth):
    if not depth or draw.random() < 0.15:
        return draw.choice(LEAVES)
    form = draw.choice(forms)
    return form.format(*(expression(draw, forms, depth - 1) for _ in range(form.count("{}"))))


def kernel(seed):
    """Returns the text of a kernel, and the types of its arrays."""
    draw = random.Random(seed)
    forms = EXACT + 4 * draw.choice([SUMS, PRODUCTS, SUMS + PRODUCTS, SUMS + PRODUCTS, SUMS + OTHERS])
    mode = draw.choice(["", "", "", " @strict", " @fastmath"])
    t = draw.choice(["f32", "f32", "f64", "f16"])
    lines = [f"      s = {expression(draw, forms, draw.randint(1, 4))}"]
    if draw.random() < 0.4:
        lines.append(f"      if {expression(draw, forms, 2)} > 1 {{ s = {expression(draw, forms, 2)} }}")
    body = "\n".join(lines).replace("TYPE", t)
    text = f"""kernel k(r: {t}[:], x: {t}[:], y: {t}[:]){mode} {{
  for i in grid_range(len(r)) {{
    var s = y[i]
    for k in range({draw.randint(1, 20)}) {{
{body}
    }}
    r[i] = s
  }}
}}
"""
    return text, t


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--seed", type=int, default=random.randrange(10**12))
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    used = library.Library(options.libdir, "cpu", plain="equal")
    plain = refused = 0
    for seed in range(options.seed, options.seed + options.count):
        text, t = kernel(seed)
        draw = np.random.default_rng(seed)
        arrays = [draw.normal(size=COUNT).astype(library.NUMPY[t]) for _ in range(3)]
        try:
            used.run(text, [(t, array) for array in arrays], (0, 0, 0), (0, 0, 0))
        except library.Failure as failure:
            if "plain code" in str(failure):
                print(f"{text}# --seed {seed}\n{failure}")
                return 1
            refused += 1  # an operand without the type that its function needs
            continue
        plain += used.plain_runs
    print(f"{options.count} kernels from --seed {options.seed}: {plain} had plain code, {refused} were refused")
    return 0 if plain >= options.count // 10 and plain + refused < options.count and refused < options.count // 4 else 1


if __name__ == "__main__":
    sys.exit(main())
