#!/usr/bin/env python3
"""Computes matrix products with a naive and a tiled kernel, for matrices that are not square and whose sizes are not multiples of
the tile."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "matmul.kir"), __doc__)
    for m, k, n in ((1, 1, 1), (37, 50, 23), (250, 333, 177)):
        for dtype, name in ((np.float32, "f32"), (np.float64, "f64"), (np.int32, "i32")):
            tag = f"{m}{name}"
            a = p.array(f"a{tag}", p.rng.integers(-8, 9, (m, k)).astype(dtype))
            b = p.array(f"b{tag}", p.rng.integers(-8, 9, (k, n)).astype(dtype))
            want = a.astype(np.int64) @ b.astype(np.int64) # exact in f32 too
            for result, launch in (("c", f"matmul_naive[{-(-n // 16)}x{-(-m // 16)}, 16x16]({{}}, a{tag}, b{tag})"), ("t", f"matmul({{}}, a{tag}, b{tag})"), ("u", f"matmul({{}}, a{tag}, b{tag}, 8)")):
                p.value(f"{result}{tag}", f"zeros:{name}[{m}, {n}]")
                p.launch(launch.format(f"{result}{tag}"))
                p.expect(f"{result}{tag}", want.astype(dtype))
    return p.run()


sys.exit(main())
