#!/usr/bin/env python3
"""Estimates pi from random numbers, one estimate in each thread, and compares with NumPy for the
same numbers."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

THREADS, ITERATIONS = 64, 10_000
JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)


def rotate(x, k):
    return x << np.uint64(k) | x >> np.uint64(64 - k)


def advance(s):
    """Computes xoroshiro128+ for all states at once."""
    result, t = s[0] + s[1], s[0] ^ s[1]
    s[0], s[1] = rotate(s[0], 55) ^ t ^ t << np.uint64(14), rotate(t, 36)
    return result


def states(seed):
    """Like Numba's create_xoroshiro128p_states: each state is 2**64 numbers after the previous
    one."""
    mask = (1 << 64) - 1
    z = seed + 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    z ^= z >> 31
    state, made = np.array([z, z], np.uint64), []
    for _ in range(THREADS):
        made.append(state.copy())
        jumped = np.zeros(2, np.uint64)
        for word in JUMP:
            for bit in range(64):
                jumped ^= state * np.uint64(word >> bit & 1)
                advance(state)
        state = jumped
    return np.stack(made, 1)


def uniform(s):
    return (advance(s) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def main():
    p = Program(beside(__file__, "compute_pi.kir"), __doc__)
    seed = int(p.rng.integers(0, 2**63))
    s, inside = states(seed), np.zeros(THREADS, int)
    with np.errstate(over="ignore"):
        for _ in range(ITERATIONS):
            x, y = uniform(s).astype(np.float64), uniform(s).astype(np.float64)
            inside += x * x + y * y <= 1
    estimate = 4.0 * inside / ITERATIONS
    print(f"pi is {estimate.mean():.5f}")
    p.value("states", f"zeros:xoroshiro128p[{THREADS}]")
    p.array("out", np.zeros(THREADS, np.float32))
    p.launch(f"seed_states(states, {seed}u64)")
    p.launch(f"compute_pi(states, {ITERATIONS}, out)")
    p.expect("out", estimate.astype(np.float32))
    return p.run(atol=4.0 / ITERATIONS + 1e-6)  # a point on the circle may fall to either side


if __name__ == "__main__":
    sys.exit(main())
