"""Vector addition in four forms: a numba.cuda program with another import."""
from kjit import cuda, vectorize

import numpy as np


@cuda.jit
def add_by_position(x, y, out):
    tx = cuda.threadIdx.x
    bx = cuda.blockIdx.x
    i = tx + bx * cuda.blockDim.x
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def add_by_grid(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit
def add_by_stride(x, y, out):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, out.shape[0], stride):
        out[i] = x[i] + y[i]


@vectorize(["float32(float32, float32)"], target="cuda")
def add_ufunc(x, y):
    return x + y


n = 100_000
x, y = np.random.default_rng().random((2, n), dtype=np.float32)
d_x, d_y = cuda.to_device(x), cuda.to_device(y)
threads = 128
blocks = (n + threads - 1) // threads
for name, launch in {
    "by its position": add_by_position[blocks, threads],
    "by cuda.grid": add_by_grid.forall(n),
    "by a grid stride": add_by_stride[32, threads],
}.items():
    d_out = cuda.device_array(n, dtype=np.float32)
    launch(d_x, d_y, d_out)
    np.testing.assert_array_equal(d_out.copy_to_host(), x + y)
    print(f"{name}: {n} sums are NumPy's")
np.testing.assert_array_equal(add_ufunc(x, y), x + y)
np.testing.assert_array_equal(add_ufunc(d_x, d_y).copy_to_host(), x + y)
print(f"by vectorize, on the host's arrays and the device's: {n} sums are NumPy's")
