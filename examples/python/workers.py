"""Sends a kernel to several processes in a pickle; each runs it on a part of an array, like the
workers of a cluster. The first process compiles, and the others load the code if they share the
cache directory."""
import concurrent.futures
import multiprocessing

import kjit
import numpy as np

SCALE = 0.25


def curve(v):
    return np.exp(-v * v) * SCALE


@kjit.jit
def over(r, x, power):
    for i in kjit.grid_range(len(r)):
        r[i] = curve(x[i]) ** power


def work(kernel, part, power):
    result = np.empty_like(part)
    kernel(result, part, power)
    return result


if __name__ == "__main__":
    x = np.random.default_rng().standard_normal(100_000)
    parts = np.array_split(x, 7)
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(work, [over] * len(parts), parts, [3] * len(parts)))
    np.testing.assert_allclose(np.concatenate(results), (np.exp(-x * x) * SCALE) ** 3, rtol=1e-12)
    print(f"{len(parts)} parts in 2 processes: right")
