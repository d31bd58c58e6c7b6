"""Forces between bodies as the derivative of their energy: a kernel calls kjit.grad of the energy of two bodies. The bodies then
move, and the energy of all of them stays the same."""

import kjit
import numpy as np

SOFTENING = 0.05


@kjit.func
def energy(x, y, z, product):
    """The energy of two bodies, from their distances along the axes and the product of their
    masses."""
    return -product / kjit.sqrt(x * x + y * y + z * z + SOFTENING)


slope = kjit.grad(energy, 0, 1, 2)


@kjit.jit
def find_forces(force, potential, place, mass):
    for i in kjit.grid_range(len(mass)):
        fx, fy, fz, total = 0.0, 0.0, 0.0, 0.0
        for j in range(len(mass)):
            if j != i:
                x, y, z = place[i, 0] - place[j, 0], place[i, 1] - place[j, 1], place[i, 2] - place[j, 2]
                product = mass[i] * mass[j]
                dx, dy, dz = slope(x, y, z, product)
                fx -= dx
                fy -= dy
                fz -= dz
                total += 0.5 * energy(x, y, z, product)
        force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz
        potential[i] = total


random = np.random.default_rng()
n = 200
place, mass = random.standard_normal((n, 3)), random.uniform(0.5, 2, n) / n
speed, force, potential = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
find_forces(force, potential, place, mass)

d = place[None] - place[:, None]
expected = (mass[:, None, None] * mass[None, :, None] * d / ((d**2).sum(2) + SOFTENING)[..., None] ** 1.5).sum(1)
np.testing.assert_allclose(force, expected, rtol=1e-9, atol=1e-12)
np.testing.assert_allclose(force.sum(0), 0, atol=1e-12)  # action and reaction

first, step = potential.sum(), 1e-3
for _ in range(200):  # velocity Verlet
    speed += 0.5 * step * force / mass[:, None]
    place += step * speed
    find_forces(force, potential, place, mass)
    speed += 0.5 * step * force / mass[:, None]
kinetic = 0.5 * (mass[:, None] * speed**2).sum()
assert kinetic > 0 and abs(kinetic + potential.sum() - first) < 1e-5 * abs(first)
print(f"{n} bodies: {kinetic:.4f} of energy became motion, the sum changed by {abs(kinetic + potential.sum() - first):.1e}")
