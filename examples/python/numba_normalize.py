"""Scales vectors to length 1, with one thread for each vector: a numba.cuda program with another
import."""
import math

from kjit import cuda

import numpy as np


@cuda.jit(device=True)
def length(v):
    total = 0.0
    for k in range(v.shape[0]):
        total += v[k] * v[k]
    return math.sqrt(total)


@cuda.jit("void(float64[:,:])")
def normalize(vectors):
    i = cuda.grid(1)
    if i < vectors.shape[0]:
        size = length(vectors[i])
        if size > 0:
            for k in range(vectors.shape[1]):
                vectors[i, k] /= size


vectors = np.random.default_rng().standard_normal((1000, 3))
vectors[7] = 0
sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
d_vectors = cuda.to_device(vectors)
normalize[(len(vectors) + 63) // 64, 64](d_vectors)
np.testing.assert_allclose(d_vectors.copy_to_host(), vectors / np.where(sizes > 0, sizes, 1), rtol=1e-12)
print(f"{len(vectors)} vectors of length 1, one of length 0: as NumPy has them")
