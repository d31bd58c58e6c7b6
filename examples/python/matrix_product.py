"""Matrix product of any size: with one thread for each element, and with tiles in shared memory."""
import kjit
import numpy as np

TILE = 16


@kjit.jit
def product(c, a, b):
    for i, j in kjit.grid_range(c.shape):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@kjit.jit(block=(TILE, TILE))
def tiled_product(c, a, b):
    left = kjit.shared((TILE, TILE + 1), a.dtype)
    right = kjit.shared((TILE, TILE + 1), b.dtype)
    x, y = kjit.threadIdx.x, kjit.threadIdx.y
    j, i = kjit.grid(2)
    total = 0.0
    for first in range(0, a.shape[1], TILE):
        left[y, x] = a[i, first + x] if i < a.shape[0] and first + x < a.shape[1] else 0
        right[y, x] = b[first + y, j] if first + y < b.shape[0] and j < b.shape[1] else 0
        kjit.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        kjit.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


random = np.random.default_rng()
a, b = random.standard_normal((150, 90), np.float32), random.standard_normal((90, 70), np.float32)
expected = a @ b
for name, kernel in [("one thread an element", product), ("tiles", tiled_product[(-(-70 // TILE), -(-150 // TILE)), (TILE, TILE)])]:
    c = np.zeros((150, 70), np.float32)
    kernel(c, a, b)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    print(f"product of 150x90 and 90x70, {name}: right")
