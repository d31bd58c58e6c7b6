"""A matrix product with one thread for each element, and the sums of its columns by atomics: a
numba.cuda program with another import."""
from kjit import cuda

import numpy as np


@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


@cuda.jit
def matmul_and_sums(A, B, C, sums):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp
        cuda.atomic.add(sums, j, tmp)


random = np.random.default_rng()
A, B = random.standard_normal((93, 71)), random.standard_normal((71, 118))
threads = 16, 16
blocks = (A.shape[0] + 15) // 16, (B.shape[1] + 15) // 16
C = np.zeros((A.shape[0], B.shape[1]))
matmul[blocks, threads](A, B, C)
np.testing.assert_allclose(C, A @ B, rtol=1e-10, atol=1e-10)
again, sums = np.zeros_like(C), np.zeros(C.shape[1])
matmul_and_sums[blocks, threads](A, B, again, sums)
np.testing.assert_array_equal(again, C)
np.testing.assert_allclose(sums, (A @ B).sum(0), rtol=1e-9, atol=1e-9)
print(f"product of {A.shape} and {B.shape}, and the sums of its {C.shape[1]} columns: as NumPy has them")
