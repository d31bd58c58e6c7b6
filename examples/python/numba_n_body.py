"""Bodies that attract each other over several steps, with tiles of positions in shared memory: a
numba.cuda program with another import."""
import math

from kjit import cuda
from kjit.cuda import float64

import numpy as np

THREADS = 32
SOFTENING = 1e-2


@cuda.jit(device=True)
def add_pull(x, y, z, tile, j):
    dx, dy, dz = tile[j, 0] - x, tile[j, 1] - y, tile[j, 2] - z
    r2 = dx * dx + dy * dy + dz * dz + SOFTENING
    pull = tile[j, 3] / (r2 * math.sqrt(r2))
    return pull * dx, pull * dy, pull * dz


@cuda.jit
def accelerate(bodies, acceleration):
    tile = cuda.shared.array((THREADS, 4), float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = bodies.shape[0]
    x = y = z = ax = ay = az = 0.0
    if i < n:
        x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
    for first in range(0, n, THREADS):
        for k in range(4):
            tile[t, k] = bodies[first + t, k] if first + t < n else 0.0
        cuda.syncthreads()
        for j in range(THREADS):
            px, py, pz = add_pull(x, y, z, tile, j)
            ax += px
            ay += py
            az += pz
        cuda.syncthreads()
    if i < n:
        acceleration[i, 0] = ax
        acceleration[i, 1] = ay
        acceleration[i, 2] = az


@cuda.jit
def move(bodies, velocity, acceleration, dt):
    i, k = cuda.grid(2)
    if i < bodies.shape[0] and k < 3:
        velocity[i, k] += dt * acceleration[i, k]
        bodies[i, k] += dt * velocity[i, k]


random = np.random.default_rng()
n, steps, dt = 150, 10, 1e-3
bodies = np.c_[random.standard_normal((n, 3)), random.uniform(0.5, 2, n)]
d_bodies, d_velocity = cuda.to_device(bodies), cuda.to_device(np.zeros((n, 3)))
d_acceleration = cuda.device_array((n, 3))
velocity = np.zeros((n, 3))
for _ in range(steps):
    accelerate[(n + THREADS - 1) // THREADS, THREADS](d_bodies, d_acceleration)
    move[(n + 31) // 32, (32, 3)](d_bodies, d_velocity, d_acceleration, dt)
    d = bodies[None, :, :3] - bodies[:, None, :3]
    r2 = (d**2).sum(2) + SOFTENING
    velocity += dt * (bodies[None, :, 3:] * d / r2[..., None] ** 1.5).sum(1)
    bodies[:, :3] += dt * velocity
np.testing.assert_allclose(d_bodies.copy_to_host(), bodies, rtol=1e-9, atol=1e-9)
print(f"{n} bodies after {steps} steps: the fastest has {np.linalg.norm(velocity, axis=1).max():.3f}, as in NumPy")
