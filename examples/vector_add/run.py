#!/usr/bin/env python3
"""Adds vectors of integers and floats in three forms, for several lengths."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "vector_add.kir"), __doc__)
    for n in (1, 1000, 1_000_003):
        for dtype in (np.float32, np.int64):
            tag = f"{n}_{np.dtype(dtype).name}"
            x = p.array(f"x{tag}", p.rng.integers(-(2**20), 2**20, n).astype(dtype))
            y = p.array(f"y{tag}", p.rng.integers(-(2**20), 2**20, n).astype(dtype))
            for kernel, configuration in (("vector_add", ""), ("vector_add_stride", "[64, 128]"), ("vector_add_guard", f"[{-(-n // 256)}, 256]")):
                r = f"r_{kernel}_{tag}"
                p.value(r, f"zeros:{'f32' if dtype is np.float32 else 'i64'}[{n}]")
                p.launch(f"{kernel}{configuration}({r}, x{tag}, y{tag})")
                p.expect(r, x + y)
    return p.run()


sys.exit(main())
