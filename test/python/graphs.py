# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Graphs of kernels and algorithms: captured once, launched with new values in the same arrays, and compared with NumPy."""
import os
import sys

import numpy as np

import kjit

seed = int.from_bytes(os.urandom(4), "little")
print("seed", seed)
random = np.random.default_rng(seed)
device = kjit.device()


@kjit.jit
def shift(r, x, n):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + n


def as_numpy(array):
    return array.to_host()


count = int(random.integers(1000, 30000))
host = random.integers(-1000, 1000, count)
x, y = kjit.array(host), kjit.array(np.zeros(count, np.int64))
stream = device.stream()
plans = [kjit.reduce(y, plan=True, stream=stream), kjit.scan(y, plan=True, stream=stream), kjit.sort(y, plan=True, stream=stream)]
total, sums, ordered = (plan.result for plan in plans)
with stream.capture() as graph:
    shift[None, None, stream](y, x, 3)
    for plan in plans:
        plan.run(stream)
    shift[None, None, stream](x, ordered, -5)
assert len(graph) >= 5
for _ in range(3):  # each launch reads the elements of x that the previous launch has stored
    graph.launch()
    stream.synchronize()
    shifted = host + 3
    assert as_numpy(total) == shifted.sum()
    np.testing.assert_array_equal(as_numpy(sums), np.cumsum(shifted))
    np.testing.assert_array_equal(as_numpy(ordered), np.sort(shifted))
    host = np.sort(shifted) - 5
    np.testing.assert_array_equal(as_numpy(x), host)
print("graphs: good", file=sys.stderr)
