#!/usr/bin/env python3
"""Transposes a matrix through tiles in shared memory, and compares exactly with NumPy's transpose."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "transpose.kir"), __doc__)
    rows, cols = p.rng.integers(200, 900, 2)
    for name, dtype in (("f", np.float32), ("d", np.float64), ("b", np.uint8)):
        matrix = p.array(f"{name}_in", (p.rng.standard_normal((rows, cols)) * 100).astype(np.int8).astype(dtype))
        p.array(f"{name}_out", np.zeros((cols, rows), dtype))
        p.launch(f"transpose({name}_out, {name}_in)")
        p.expect(f"{name}_out", matrix.T.copy())
    return p.run()


if __name__ == "__main__":
    sys.exit(main())
