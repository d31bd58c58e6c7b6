#!/usr/bin/env python3
"""beyond_memory.py [--points N]: sums a Gaussian kernel at 64 positions over points in host memory that do not fit in
the memory of the first GPU. kjit processes the points in chunks; CuPy's sums over chunks are the comparison.
7,333,333,333 points have 88 GB. With --points, the program also runs on the CPU and compares with NumPy, to test the
program itself. `import kjit` must find the package."""
import argparse
import concurrent.futures
import math
import os
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--points", type=int, default=None)
POINTS = parser.parse_args().points
os.environ["KJIT_DEVICE"] = DEVICE = "cpu" if POINTS else "cuda"

import kjit
import numpy as np

from report import print_table

PARTS, PLACES, CHUNK, PIECE = 64, 64, 50_000_000, 20_000_000


def gauss(a, b, i, j):
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return math.exp(-8 * (x * x + y * y + z * z))


def fill(flat, part):
    length = -(-flat.size // PARTS)
    own = flat[part * length:(part + 1) * length]
    np.random.Generator(np.random.SFC64()).random(out=own, dtype=np.float32)
    own -= np.float32(0.5)


def main():
    n = POINTS or 7_333_333_333
    points = np.empty((n, 3), np.float32)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda part: fill(points.reshape(-1), part), range(PARTS)))
    places, sums, times = np.random.default_rng().uniform(-0.5, 0.5, (PLACES, 3)).astype(np.float32), np.zeros(PLACES), []
    for _ in range(3):
        start = time.perf_counter()
        kjit.pairs(gauss, places, points, "add", out=sums, chunk=min(CHUNK, -(-n // 7)))
        times.append(time.perf_counter() - start)
    if POINTS:
        peer = np
    else:
        import cupy as peer
    wanted, there = peer.zeros(PLACES), peer.asarray(places)
    for first in range(0, n, PIECE):
        piece = peer.asarray(points[first:first + PIECE])
        for k in range(PLACES):
            wanted[k] += peer.exp(-8 * ((piece - there[k]) ** 2).sum(1)).sum(dtype="f8")
    wanted = wanted.get() if hasattr(wanted, "get") else wanted
    row = [str(n), f"{points.nbytes / 1e9:.1f}", f"{min(times):.2f}", f"{points.nbytes / min(times) / 1e9:.1f}", f"{np.abs(sums / wanted - 1).max():.1e}"]
    print_table("Sums at 64 places", kjit.device(DEVICE).name, ["points", "GB", "s", "GB/s", "largest relative difference"], [row])


if __name__ == "__main__":
    main()
