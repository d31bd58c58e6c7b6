"""Heat spreads over a plate whose edges are kept cold: explicit steps with two arrays that are
swapped."""
import kjit
import numpy as np


@kjit.jit
def step(new, old, c):
    for i, j in kjit.grid_range(old.shape[0] - 2, old.shape[1] - 2):
        y, x = i + 1, j + 1
        new[y, x] = old[y, x] + c * (old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1] - 4 * old[y, x])


def step_in_numpy(old, c):
    new = old.copy()
    new[1:-1, 1:-1] += c * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] - 4 * old[1:-1, 1:-1])
    return new


plate = np.zeros((96, 128))
plate[30:50, 40:70] = 100
a, b, expected = kjit.array(plate), kjit.array(plate), plate
for _ in range(200):
    step(b, a, 0.2)
    a, b = b, a
    expected = step_in_numpy(expected, 0.2)
np.testing.assert_allclose(a.to_host(), expected, rtol=1e-9, atol=1e-9)
print(f"200 steps: the warmest place has {expected.max():.2f}, as in NumPy")
