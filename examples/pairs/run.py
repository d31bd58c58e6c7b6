#!/usr/bin/env python3
"""Sums of a Gaussian kernel over points, in one piece and in chunks; nearest neighbours, in chunks; and attention with one head.
None of them stores the matrix of all pairs."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program

program = Program(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.kir"), __doc__,
                  lambda parser: parser.add_argument("--points", type=int, default=2000, help="of y; a fifth as many of x"))
m, n = program.options.points // 5, program.options.points
rng = program.rng

x = program.array("x", rng.standard_normal((m, 3), dtype="f4"))
y = program.array("y", rng.standard_normal((n, 3), dtype="f4"))
w = program.array("w", rng.standard_normal(n, dtype="f4"))
squared = ((x.astype("f8")[:, None] - y.astype("f8")) ** 2).sum(2)
program.call("density = pairs(gauss(2f32), x, add, y)")
program.expect("density", np.exp(-2 * squared).sum(1))
program.call("smooth = pairs(weighted(2f32), x, add, y, w)")
program.expect("smooth", np.exp(-2 * squared) @ w)
# The same sums with y in seven chunks and a remainder, as for a y that is larger than the device's memory.
piece = max(1, n // 7 - 1)
program.call(f"density_by_pieces = pairs(gauss(2f32), x, add, y, chunk={piece})")
program.expect("density_by_pieces", np.exp(-2 * squared).sum(1))
program.call(f"smooth_by_pieces = pairs(weighted(2f32), x, add, y, w, chunk={piece})")
program.expect("smooth_by_pieces", np.exp(-2 * squared) @ w)

# The coordinates have few bits, so that equal distances are equal in f32. Among points at equal distances, the first
# points are chosen.
grid, points = rng.integers(0, 64, (m, 3)), rng.integers(0, 64, (n, 3))
program.array("grid", grid.astype("f4"))
program.array("points", points.astype("f4"))
distances = ((grid[:, None] - points) ** 2).sum(2)
nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
program.call(f"distance, place = pairs_smallest(squared, grid, 10, points, chunk={n // 3})")
program.expect("distance", np.take_along_axis(distances, nearest, 1).astype("f4"))
program.expect("place", nearest)

query = program.array("query", rng.standard_normal((m, 32), dtype="f4"))
key = program.array("key", rng.standard_normal((n, 32), dtype="f4"))
value = program.array("value", rng.standard_normal((n, 16), dtype="f4"))
program.array("head", np.zeros((m, 16), "f4"))
scores = query.astype("f8") @ key.T / np.sqrt(32)
weights = np.exp(scores - scores.max(1, keepdims=True))
program.call(f"put(head)[{m}] = pairs(attend({1 / np.sqrt(32):.9g}f32), query, both, key, value)")
program.expect("head", weights @ value / weights.sum(1, keepdims=True))
program.run(rtol=1e-4, atol=1e-3)
