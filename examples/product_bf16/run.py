#!/usr/bin/env python3
"""Computes a product of bf16 matrices on tensor cores, and compares with NumPy's product of the same rounded inputs."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def bf16(values):
    """Returns the numbers rounded to the nearest bf16 (ties to even), stored as f32."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def main():
    p = Program(beside(__file__, "product_bf16.kir"), __doc__)
    m, n, k = int(p.rng.integers(1, 300)), 8 * int(p.rng.integers(1, 80)), 8 * int(p.rng.integers(1, 80))
    a, b = bf16(p.rng.standard_normal((m, k))), bf16(p.rng.standard_normal((k, n)))
    p.array("a_bits", (a.view(np.uint32) >> 16).astype(np.uint16))
    p.array("b_bits", (b.view(np.uint32) >> 16).astype(np.uint16))
    for name, shape in (("a", (m, k)), ("b", (k, n)), ("c", (m, n))):
        p.value(name, f"zeros:bf16[{shape[0]}, {shape[1]}]")
    p.array("result", np.zeros((m, n), np.float32))
    p.launch("from_bits(a, a_bits)")
    p.launch("from_bits(b, b_bits)")
    p.launch("product_bf16(c, a, b)")
    p.launch("to_f32(result, c)")
    p.expect("result", (a.astype(np.float64) @ b).astype(np.float32))
    return p.run(rtol=2**-8, atol=1e-3)


if __name__ == "__main__":
    sys.exit(main())
