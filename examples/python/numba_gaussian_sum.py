"""Sums of Gaussians of the distances between points: a numba.cuda program with another import,
compared with kjit.pairs."""
import math

import kjit
from kjit import cuda
from kjit.cuda import float32

import numpy as np

DIMENSIONS = 3


@cuda.jit
def gaussian_sum(x, y, weights, gamma, out):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    own = cuda.local.array(DIMENSIONS, float32)
    for k in range(DIMENSIONS):
        own[k] = x[i, k]
    total = float32(0)
    for j in range(y.shape[0]):
        d = float32(0)
        for k in range(DIMENSIONS):
            d += (own[k] - y[j, k]) ** 2
        total += math.exp(-gamma * d) * weights[j]
    out[i] = total


def gaussian(x, y, weight, i, j, gamma):
    d = 0.0
    for k in range(len(x)):
        d += (x[k] - y[k]) ** 2
    return kjit.exp(-gamma * d) * weight


random = np.random.default_rng()
x, y = random.random((400, DIMENSIONS), np.float32), random.random((700, DIMENSIONS), np.float32)
weights, gamma = random.random(700, np.float32), np.float32(2.5)
out = np.zeros(400, np.float32)
gaussian_sum[(len(x) + 63) // 64, 64](x, y, weights, gamma, out)
distances = ((x[:, None].astype(float) - y) ** 2).sum(2)
expected = np.exp(-2.5 * distances) @ weights.astype(float)
np.testing.assert_allclose(out, expected, rtol=1e-4)
np.testing.assert_allclose(kjit.pairs(gaussian, x, (y, weights), arguments=(gamma,)), expected, rtol=1e-4)
print(f"{len(x)} sums of {len(y)} Gaussians: the greatest is {expected.max():.3f}, as in NumPy")
