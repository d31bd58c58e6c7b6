#!/usr/bin/env python3
"""Computes r = a*x + y in f32 and f64, also with r in the memory of x."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "axpy.kir"), __doc__)
    n, a = 1_000_003, float(np.float32(p.rng.uniform(-3, 3)))
    for dtype, name in ((np.float32, "f32"), (np.float64, "f64")):
        x = p.array(f"x{name}", p.rng.standard_normal(n).astype(dtype))
        y = p.array(f"y{name}", p.rng.standard_normal(n).astype(dtype))
        p.array(f"s{name}", x)
        p.value(f"r{name}", f"zeros:{name}[{n}]")
        p.launch(f"axpy(r{name}, {a!r}, x{name}, y{name})")
        p.launch(f"axpy(s{name}, {a!r}, s{name}, y{name})")
        want = (a * x.astype(np.float64) + y.astype(np.float64)).astype(dtype)
        p.expect(f"r{name}", want)
        p.expect(f"s{name}", want)
    return p.run(rtol=1e-6, atol=1e-6)


sys.exit(main())
