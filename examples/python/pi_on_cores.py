"""Computes pi by the midpoint rule, and heat in a rod, on the cores of the CPU: programs in the form of Numba's njit."""
import math
import time

import kjit
import numpy as np
from kjit import njit, prange


@njit(parallel=True, error_model="numpy")
def pi(n):
    s = 0.0
    for i in prange(n):
        v = (i + 0.5) / n
        s += 4 / (1 + v * v)
    return s / n


@njit(parallel=True)
def heat(u, steps, limit):
    """Lets heat flow until no element changes by more than limit. Returns the temperatures and the
    number of steps."""
    v = np.copy(u)
    for step in range(steps):
        change = 0.0
        for i in prange(1, len(u) - 1):
            v[i] = u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1])
            change = max(change, abs(v[i] - u[i]))
        for i in prange(len(u)):
            u[i] = v[i]
        if change < limit:
            break
    return v, step + 1


n = 20_000_000
pi(10)
for threads in sorted({1, kjit.get_num_threads()}):
    kjit.set_num_threads(threads)
    began = time.perf_counter()
    result = pi(n)
    print(f"pi = {result:.12f} with {threads} threads: {1000 * (time.perf_counter() - began):.1f} ms")
    assert abs(result - math.pi) < 1e-11

rod = np.random.default_rng().random(200)
expected, steps = rod.copy(), 0
while True:
    inner = expected[1:-1] + 0.25 * (expected[:-2] - 2 * expected[1:-1] + expected[2:])
    change = np.abs(inner - expected[1:-1]).max()
    expected[1:-1] = inner
    steps += 1
    if change < 1e-4:
        break
result, taken = heat(rod.copy(), 10_000, 1e-4)
np.testing.assert_allclose(result, expected, rtol=1e-12)
assert taken == steps
print(f"heat: at rest after {taken} steps")
