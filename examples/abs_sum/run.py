#!/usr/bin/env python3
"""The sum of absolute values under several launch configurations."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "abs_sum.kir"), __doc__)
    for n in (1, 1000, 3_000_017):
        for dtype, name in ((np.float32, "f32"), (np.float64, "f64"), (np.int64, "i64")):
            x = p.array(f"x{n}{name}", (p.rng.standard_normal(n) * 1000).astype(dtype))
            for grid, block in ((1, 32), (132, 256), (7, 1024)):
                total = f"total_{n}_{name}_{grid}"
                p.value(total, f"zeros:{name}[1]")
                p.launch(f"abs_sum[{grid}, {block}]({total}, x{n}{name})")
                p.expect(total, np.array([np.abs(x).sum(dtype=np.int64 if name == "i64" else np.float64)]).astype(dtype))
    return p.run(rtol=1e-4)


sys.exit(main())
