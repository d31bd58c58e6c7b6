#!/usr/bin/env python3
"""Computes a product of f32 matrices without tensor cores, and compares with NumPy's product."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "product_f32.kir"), __doc__)
    for name, tuning in (("a", "2, 2"), ("b", "4, 3")):
        m, n, k = int(p.rng.integers(1, 300)), 4 * int(p.rng.integers(1, 90)), int(p.rng.integers(1, 100))
        a = p.array(f"{name}_a", p.rng.standard_normal((m, k)).astype(np.float32))
        b = p.array(f"{name}_b", p.rng.standard_normal((k, n)).astype(np.float32))
        p.array(f"{name}_c", np.zeros((m, n), np.float32))
        p.launch(f"product_f32({name}_c, {name}_a, {name}_b, {tuning})")
        p.expect(f"{name}_c", (a.astype(np.float64) @ b).astype(np.float32))
    return p.run(rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    sys.exit(main())
