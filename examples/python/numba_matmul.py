"""A matrix product with tiles in shared memory, as in Numba's documentation: a numba.cuda program
with another import."""
from kjit import cuda
from kjit.cuda import float32

import numpy as np

TPB = 16


@cuda.jit
def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x

    tmp = float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


rng = np.random.default_rng()
x_h = rng.random((115, 97), dtype=np.float32)
y_h = rng.random((97, 115), dtype=np.float32)
x_d, y_d, z_d = cuda.to_device(x_h), cuda.to_device(y_h), cuda.device_array((115, 115), np.float32)
most = max(*x_h.shape, *y_h.shape)
blocks = (most + TPB - 1) // TPB
fast_matmul[(blocks, blocks), (TPB, TPB)](x_d, y_d, z_d)
np.testing.assert_allclose(z_d.copy_to_host(), x_h @ y_h, rtol=1e-4)
print(f"product of {x_h.shape} and {y_h.shape}: as NumPy has it")
