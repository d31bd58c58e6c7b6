"""The sum of an array: block by block in shared memory, and with cuda.reduce. A numba.cuda program
with another import."""
from kjit import cuda
from kjit.cuda import int64

import numpy as np

THREADS = 128


@cuda.jit
def block_sums(data, out):
    shared = cuda.shared.array(THREADS, int64)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[tid] = data[i] if i < data.size else 0
    cuda.syncthreads()
    s = 1
    while s < cuda.blockDim.x:
        if tid % (2 * s) == 0:
            shared[tid] += shared[tid + s]
        s *= 2
        cuda.syncthreads()
    if tid == 0:
        out[cuda.blockIdx.x] = shared[0]


@cuda.reduce
def sum_reduce(a, b):
    return a + b


data = np.random.default_rng().integers(-1000, 1000, 10_007)
blocks = (data.size + THREADS - 1) // THREADS
out = np.zeros(blocks, np.int64)
block_sums[blocks, THREADS](data, out)
assert out.sum() == data.sum() and out[0] == data[:THREADS].sum()
assert sum_reduce(data) == data.sum() and sum_reduce(cuda.to_device(data), init=5) == data.sum() + 5
print(f"the sum of {data.size} integers is {data.sum()}, by shared memory and by cuda.reduce")
