"""The game of life with a stencil that reads a tile and its halo from shared memory: a numba.cuda
program with another import."""
from kjit import cuda
from kjit.cuda import int32

import numpy as np

TILE = 16


@cuda.jit(device=True)
def rule(tile, i, j):
    """Returns the next state of a cell from its eight neighbours."""
    around = -tile[i, j]
    for di in range(-1, 2):
        for dj in range(-1, 2):
            around += tile[i + di, j + dj]
    return 1 if around == 3 or (around == 2 and tile[i, j] == 1) else 0


@cuda.jit
def step(old, new):
    tile = cuda.shared.array((TILE + 2, TILE + 2), int32)
    rows, columns = old.shape
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    # Each thread loads several cells, because the tile with its halo has more cells than the block
    # has threads.
    flat = cuda.threadIdx.y * TILE + cuda.threadIdx.x
    while flat < (TILE + 2) * (TILE + 2):
        i, j = flat // (TILE + 2), flat % (TILE + 2)
        y, x = top + i - 1, left + j - 1
        tile[i, j] = old[y, x] if 0 <= y < rows and 0 <= x < columns else 0
        flat += TILE * TILE
    cuda.syncthreads()
    y, x = top + cuda.threadIdx.y, left + cuda.threadIdx.x
    if y < rows and x < columns:
        new[y, x] = rule(tile, cuda.threadIdx.y + 1, cuda.threadIdx.x + 1)


world = np.random.default_rng().integers(0, 2, (57, 90)).astype(np.int32)
expected = world.copy()
old, new = cuda.to_device(world), cuda.device_array_like(world)
for _ in range(15):
    step[((90 + TILE - 1) // TILE, (57 + TILE - 1) // TILE), (TILE, TILE)](old, new)
    old, new = new, old
    framed = np.pad(expected, 1)
    around = sum(framed[1 + di : 58 + di, 1 + dj : 91 + dj] for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj)
    expected = ((around == 3) | ((around == 2) & (expected == 1))).astype(np.int32)
np.testing.assert_array_equal(old.copy_to_host(), expected)
print(f"life: {expected.sum()} of {expected.size} live after 15 steps, as in NumPy")
