"""Computes rows that depend on the previous row in one launch. All blocks of the grid synchronize
after each row. This is a numba.cuda program with another import."""
from kjit import cuda

import numpy as np


@cuda.jit
def sweep(M):
    column = cuda.grid(1)
    grid = cuda.cg.this_grid()
    rows, columns = M.shape
    for row in range(1, rows):
        # another thread computes the neighbour in the previous row
        if column < columns:
            above = M[row - 1, (column + 1) % columns]
            M[row, column] += 0.5 * above
        grid.sync()


M = np.random.default_rng().random((60, 100))
expected = M.copy()
for row in range(1, len(M)):
    expected[row] += 0.5 * np.roll(expected[row - 1], -1)
d_M = cuda.to_device(M)
sweep[4, 32](d_M)
np.testing.assert_allclose(d_M.copy_to_host(), expected, rtol=1e-12)
print(f"{len(M)} rows, one after the other: the greatest element is {expected.max():.3f}, as in NumPy")
