#!/usr/bin/env python3
"""Compares the results of nearest with NumPy, for chunks of several sizes. The coordinates have few bits, so that distances are
exact and many distances are equal."""
import argparse
import os
import secrets
import subprocess
import sys
import tempfile

import numpy as np


def expected(queries, points, k):
    """Returns the nearest points for a few queries at a time. Among equal distances, earlier points come first."""
    places, distances = [], []
    for first in range(0, len(queries), 16):
        d = ((queries[first:first + 16, None].astype("f8") - points) ** 2).sum(2)
        places.append(np.argsort(d, axis=1, kind="stable")[:, :k])
        distances.append(np.take_along_axis(d, places[-1], 1))
    return np.concatenate(places), np.concatenate(distances).astype("f4")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = np.random.default_rng(options.seed)
    width, k = int(rng.integers(1, 9)), int(rng.integers(1, 33))
    queries, points = (rng.integers(-30, 31, (n, width)).astype("f4") for n in (options.queries, options.points))
    want_places, want_distances = expected(queries, points, k)
    with tempfile.TemporaryDirectory() as folder:
        file = lambda name: os.path.join(folder, name)
        queries.tofile(file("queries"))
        points.tofile(file("points"))
        for chunk in (options.points // 7 + 1, options.points - 1, 2 * options.points):
            subprocess.run([options.program, options.device, file("queries"), file("points"), str(width), str(k), str(chunk), file("places"), file("distances")], check=True)
            places, distances = np.fromfile(file("places"), "i8").reshape(-1, k), np.fromfile(file("distances"), "f4").reshape(-1, k)
            if not np.array_equal(distances, want_distances) or not np.array_equal(places, want_places):
                wrong = np.argwhere(places != want_places)
                sys.exit(f"by {chunk}: {len(wrong)} places are wrong, the first of query and rank {wrong[:1].tolist()}")
            print(f"by {chunk}: right")


if __name__ == "__main__":
    main()
