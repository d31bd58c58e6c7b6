#!/usr/bin/env python3
"""Normalizes the rows of a matrix, including a row of zeros."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "normalize_rows.kir"), __doc__)
    for rows, cols, block in ((300, 1234, 256), (5, 7, 32), (64, 33, 1024)):
        for dtype, name in ((np.float32, "f32"), (np.float64, "f64")):
            tag = f"{rows}{name}"
            a = (p.rng.standard_normal((rows, cols)) * 50).astype(dtype)
            a[rows // 2] = 0
            p.array(f"a{tag}", a)
            p.value(f"out{tag}", f"zeros:{name}[{rows}, {cols}]")
            p.launch(f"normalize_rows[{rows}, {block}](out{tag}, a{tag})")
            wide = a.astype(np.float64)
            norm = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
            p.expect(f"out{tag}", np.divide(wide, norm, out=np.zeros_like(wide), where=norm > 0).astype(dtype))
    return p.run(rtol=2e-6, atol=1e-7)


sys.exit(main())
