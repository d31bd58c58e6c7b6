#!/usr/bin/env python3
"""Computes histograms of bytes and of floats, and compares them exactly with NumPy's counts."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def main():
    p = Program(beside(__file__, "histogram.kir"), __doc__)
    data = p.array("data", p.rng.binomial(255, 0.3, p.rng.integers(100_000, 300_000)).astype(np.uint8))
    p.array("bins", np.zeros(256, np.uint32))
    p.launch("histogram256[64, 256](bins, data)")
    p.expect("bins", np.bincount(data, minlength=256).astype(np.uint32))

    # The scale is a power of two, so every product is exact, and no value is rounded across a bin edge.
    count = 1 << int(p.rng.integers(4, 10))
    x = p.array("x", p.rng.normal(0, 1.5, 200_003).astype(np.float32))
    p.array("float_bins", np.zeros(count, np.uint32))
    p.launch(f"histogram[64, 128, {4 * count}](float_bins, x, -4.0, 4.0)")
    inside = x[(x >= -4) & (x < 4)].astype(np.float64)
    places = ((inside.astype(np.float32) + np.float32(4)) * np.float32(count / 8)).astype(np.int64)
    p.expect("float_bins", np.bincount(places[places < count], minlength=count).astype(np.uint32))
    return p.run()


if __name__ == "__main__":
    sys.exit(main())
