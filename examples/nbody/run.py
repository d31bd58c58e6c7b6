#!/usr/bin/env python3
"""Computes steps of an n-body system, and compares with the same steps in double precision in NumPy."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

EPS2, DT, STEPS = 0.01, 0.01, 3


def accelerate(pos):
    r = pos[None, :, :3] - pos[:, None, :3]
    inverse = ((r**2).sum(-1) + np.float32(EPS2))**-0.5
    return (r * (pos[None, :, 3] * inverse**3)[..., None]).sum(1)


def main():
    p = Program(beside(__file__, "nbody.kir"), __doc__)
    n = int(p.rng.integers(600, 1200))
    pos = p.rng.uniform(-1, 1, (n, 4)).astype(np.float32)
    pos[:, 3] = p.rng.uniform(0.5, 1.5, n) / n
    vel = np.zeros((n, 4), np.float32)
    vel[:, :3] = p.rng.normal(0, 0.1, (n, 3))
    exact_pos, exact_vel = pos.astype(np.float64), vel.astype(np.float64)
    for _ in range(STEPS):
        exact_vel[:, :3] += accelerate(exact_pos) * np.float32(DT)
        exact_pos[:, :3] += exact_vel[:, :3] * np.float32(DT)
    p.vectors("pos", pos)
    p.vectors("vel", vel)
    p.vectors("acc", np.zeros((n, 4), np.float32))
    for _ in range(STEPS):
        p.launch(f"accelerate(acc, pos, {EPS2})")
        p.launch(f"integrate(pos, vel, acc, {DT})")
    p.expect("pos", exact_pos.astype(np.float32))
    p.expect("vel", exact_vel.astype(np.float32))
    return p.run(rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    sys.exit(main())
