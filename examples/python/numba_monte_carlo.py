"""Estimates pi from random points: a numba.cuda program with another import."""
from kjit import cuda
from kjit.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

import numpy as np


@cuda.jit
def compute_pi(rng_states, iterations, out):
    """Each thread estimates pi: 4 times the fraction of random points that lie in a quarter circle."""
    thread_id = cuda.grid(1)
    inside = 0
    for _ in range(iterations):
        x = xoroshiro128p_uniform_float32(rng_states, thread_id)
        y = xoroshiro128p_uniform_float32(rng_states, thread_id)
        if x**2 + y**2 <= 1.0:
            inside += 1
    out[thread_id] = 4.0 * inside / iterations


threads_per_block, blocks, iterations = 64, 24, 2000
rng_states = create_xoroshiro128p_states(threads_per_block * blocks, seed=1)
out = np.zeros(threads_per_block * blocks, dtype=np.float32)
compute_pi[blocks, threads_per_block](rng_states, iterations, out)
error = abs(out.mean() - np.pi)
spread = np.sqrt(np.pi * (4 - np.pi) / (out.size * iterations))
assert error < 6 * spread and len(np.unique(out)) > 50, (error, spread)
print(f"pi: {out.mean():.5f}, {error:.5f} away, {spread:.5f} is usual")
