"""Simulates bodies that attract each other. One thread computes each body; it reads the positions of
the other bodies in tiles in shared memory."""
import kjit
import numpy as np

THREADS = 64
SOFTENING = 1e-3


@kjit.jit(block=THREADS)
def accelerate(a, place, mass):
    near = kjit.shared((THREADS, 4), place.dtype)
    i, t = kjit.grid(1), kjit.threadIdx.x
    n = len(mass)
    x, y, z = place[min(i, n - 1), 0], place[min(i, n - 1), 1], place[min(i, n - 1), 2]
    ax, ay, az = 0.0, 0.0, 0.0
    for first in range(0, n, THREADS):
        other = min(first + t, n - 1)
        for k in kjit.unroll(range(3)):
            near[t, k] = place[other, k]
        near[t, 3] = mass[other] if first + t < n else 0
        kjit.syncthreads()
        for j in range(THREADS):
            dx, dy, dz = near[j, 0] - x, near[j, 1] - y, near[j, 2] - z
            r2 = dx * dx + dy * dy + dz * dz + SOFTENING
            pull = near[j, 3] / (r2 * kjit.sqrt(r2))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        kjit.syncthreads()
    if i < n:
        a[i, 0], a[i, 1], a[i, 2] = ax, ay, az


random = np.random.default_rng()
n = 500
place, mass = random.standard_normal((n, 3)), random.uniform(0.5, 2, n)
a = np.zeros((n, 3))
accelerate[-(-n // THREADS)](a, place, mass)
d = place[None] - place[:, None]
r2 = (d**2).sum(2) + SOFTENING
expected = (mass[None, :, None] * d / (r2 * np.sqrt(r2))[..., None]).sum(1)
np.testing.assert_allclose(a, expected, rtol=1e-8, atol=1e-8)
print(f"{n} bodies: the strongest pull is {np.abs(a).max():.2f}, as in NumPy")
