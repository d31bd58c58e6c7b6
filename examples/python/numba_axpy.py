"""axpy with a grid-stride loop on a stream: a numba.cuda program with another import."""
from kjit import cuda

import numpy as np

BLOCKS = 32  # this is enough to keep a GPU busy; each thread computes many elements


@cuda.jit
def axpy(r, a, x, y):
    for i in range(cuda.grid(1), r.size, cuda.gridsize(1)):
        r[i] = a * x[i] + y[i]


n = 300_001
x, y = np.random.default_rng().standard_normal((2, n))
stream = cuda.stream()
with stream.auto_synchronize():
    d_x, d_y = cuda.to_device(x, stream=stream), cuda.to_device(y, stream=stream)
    d_r = cuda.device_array_like(d_x, stream=stream)
    axpy[BLOCKS, 256, stream](d_r, 2.5, d_x, d_y)
    r = d_r.copy_to_host(stream=stream)
np.testing.assert_allclose(r, 2.5 * x + y, rtol=1e-12, atol=1e-12)
print(f"axpy of {n} elements by {BLOCKS} blocks of 256 threads: as NumPy has it")
