#!/usr/bin/env python3
"""Pi, and the volume of the ball in five dimensions, by random points: one pass maps the index of each point to 0 or 1 and adds
the results. The counts are compared with NumPy's counts for the same points."""
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

POINTS = 1_000_003


def philox(counter, key):
    """Computes Philox4x32-10 (Salmon et al., 2011) for many counters at once."""
    c, k = [np.asarray(v, np.uint64) for v in counter], list(key)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [q >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), q & low, p >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), p & low]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def coordinate(word):
    return 2 * (word >> np.uint64(8)).astype(np.int64) + 1 - 2**24


def check_estimate(what, count, volume, exact):
    """Prints the estimate, and checks that its error is below a limit that a random estimate exceeds once in millions of runs."""
    chance = exact / volume
    estimate, error = volume * count / POINTS, volume * math.sqrt(chance * (1 - chance) / POINTS)
    print(f"{what}: {estimate:.6f}, off by {(estimate - exact) / error:+.2f} standard errors")
    if abs(estimate - exact) > 5.5 * error:
        sys.exit(f"{what}: the estimate is too far from {exact:.6f}")


def main():
    p = Program(beside(__file__, "monte_carlo.kir"), __doc__)
    i, zero, key = np.arange(POINTS, dtype=np.uint64), np.zeros(POINTS, np.uint64), (p.seed, 0)
    x, y, *_ = (coordinate(word) for word in philox((i, zero, zero, zero), key))
    in_circle = int((x**2 + y**2 < 2**48).sum())
    first, second = (philox((i, zero, zero + np.uint64(block), zero), key) for block in (1, 2))
    in_ball = int((sum(coordinate(word)**2 for word in [*first, second[0]]) < 2**48).sum())
    check_estimate("pi", in_circle, 4, math.pi)
    check_estimate("the ball in five dimensions", in_ball, 32, 8 * math.pi**2 / 15)
    for name, func, count in (("in_circle", "is_in_circle", in_circle), ("in_ball", "is_in_ball", in_ball)):
        p.call(f"{name} = reduce({func}({p.seed}u32)[{POINTS}], add)")
        p.expect(name, np.array(count, np.uint64))
    return p.run()


sys.exit(main())
