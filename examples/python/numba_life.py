"""The game of life on a torus, and the number of living cells, with cuda.reduce and vectorize: a
numba.cuda program with another import."""
from kjit import cuda

import numpy as np


@cuda.jit
def step(old, new):
    i, j = cuda.grid(2)
    rows, columns = old.shape
    if i < rows and j < columns:
        around = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    around += old[(i + di) % rows, (j + dj) % columns]
        if around == 3 or (around == 2 and old[i, j] == 1):
            new[i, j] = 1
        else:
            new[i, j] = 0


@cuda.reduce
def total(a, b):
    return a + b


@cuda.vectorize(["float64(int64, float64)"])
def share(count, cells):
    return 100 * count / cells


world = np.random.default_rng().integers(0, 2, (61, 83))
expected = world.copy()
old, new = cuda.to_device(world), cuda.device_array_like(world)
alive = []
for _ in range(20):
    step[(8, 11), (8, 8)](old, new)
    old, new = new, old
    alive.append(total(old.ravel()))
    around = sum(np.roll(expected, (di, dj), (0, 1)) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj)
    expected = ((around == 3) | ((around == 2) & (expected == 1))).astype(np.int64)
    assert alive[-1] == expected.sum()
np.testing.assert_array_equal(old.copy_to_host(), expected)
percent = share(np.array(alive), float(world.size))
np.testing.assert_allclose(percent, 100 * np.array(alive) / world.size)
print(f"life: {percent[0]:.1f} % alive after a step, {percent[-1]:.1f} % after 20")
