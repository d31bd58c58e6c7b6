#!/usr/bin/env python3
"""Computes call and put prices in f32 and f64, and compares them with the exact normal distribution."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

import math


def main():
    p = Program(beside(__file__, "black_scholes.kir"), __doc__)
    n, r, v = 20_011, 0.02, 0.3
    erfc = np.vectorize(math.erfc)
    for dtype, name in ((np.float32, "f32"), (np.float64, "f64")):
        s, x, t = (p.array(f"{key}{name}", p.rng.uniform(low, high, n).astype(dtype)) for key, low, high in (("s", 5, 30), ("x", 1, 100), ("t", 0.25, 10)))
        s, x, t = s.astype(np.float64), x.astype(np.float64), t.astype(np.float64)
        d1 = (np.log(s / x) + (r + 0.5 * v * v) * t) / (v * np.sqrt(t))
        d2 = d1 - v * np.sqrt(t)
        phi = lambda d: 0.5 * erfc(-d / math.sqrt(2))
        discounted = x * np.exp(-r * t)
        for result in ("call", "put"):
            p.value(f"{result}{name}", f"zeros:{name}[{n}]")
        p.launch(f"black_scholes(call{name}, put{name}, s{name}, x{name}, t{name}, {r}, {v})")
        p.expect(f"call{name}", (s * phi(d1) - discounted * phi(d2)).astype(dtype))
        p.expect(f"put{name}", (discounted * phi(-d2) - s * phi(-d1)).astype(dtype))
    # the approximation of the normal distribution has an error of up to 7.5e-8, relative to prices of up to 100
    return p.run(rtol=1e-5, atol=5e-5)


sys.exit(main())
