"""Applies a kernel and an njit function to the blocks of a Dask array on several worker processes,
which receive them in pickles. The workers share a directory of compiled code: the first worker
compiles the functions, and the other workers load them."""
import os
import tempfile

import dask.array
import kjit
import numpy as np
from dask.distributed import Client, LocalCluster

SCALE = 0.25


def curve(v):
    return np.exp(-v * v) * SCALE


@kjit.jit
def over(r, x, power):
    for i, j in kjit.grid_range(x.shape):
        r[i, j] = curve(x[i, j]) ** power


@kjit.njit
def add_rows(sums, x):
    for i in range(len(x)):
        for j in range(x.shape[1]):
            sums[i] += x[i, j]


def work(block, kernel, power):
    block = np.require(block, requirements="A")  # an array from another process may be unaligned
    result = np.empty_like(block)
    kernel(result, block, power)
    return result


def work_and_sum(block, kernel, power, add):
    sums = np.zeros(len(block))
    add(sums, work(block, kernel, power))
    return sums


def told():
    """Returns the number of compilations of a worker, and the number of loads from the shared
    directory."""
    numbers = kjit.statistics()
    return numbers["compilations"], numbers["disk_hits"]


if __name__ == "__main__":
    cache = tempfile.TemporaryDirectory()
    # a directory for the workers only, which would otherwise use the user's own directory
    os.environ["XDG_CACHE_HOME"] = cache.name
    x = np.random.default_rng().standard_normal((400, 300))
    expected = (np.exp(-x * x) * SCALE) ** 3
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        for worker in workers:
            # the workers run one after the other: the first one compiles, the second one loads its code
            client.submit(work_and_sum, x[:2], over, 3, add_rows, workers=[worker], pure=False).result()
        numbers = [client.run(told, workers=[worker])[worker] for worker in workers]
        array = dask.array.from_array(x, chunks=(50, 300))
        sums = array.map_blocks(work_and_sum, over, 3, add_rows, drop_axis=1, dtype=x.dtype)
        got, got_sums = dask.compute(array.map_blocks(work, over, 3, dtype=x.dtype), sums)
    cache.cleanup()
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_allclose(got_sums, expected.sum(1), rtol=1e-12)
    assert len(numbers) == 2 and numbers[0][0] == 2 and numbers[1] == (0, 2), numbers
    print(f"{array.npartitions} blocks in 2 processes: right; the first has compiled {numbers[0][0]} times, the second has loaded")
