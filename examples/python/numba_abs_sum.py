"""The sum of absolute values, on the cores of the CPU and on a GPU: Numba programs with another
import."""
from kjit import cuda, njit, prange

import numpy as np


@njit(parallel=True)
def abs_sum_on_cpu(a):
    total = 0.0
    for i in prange(len(a)):
        total += abs(a[i])
    return total


@cuda.jit
def abs_sum_on_gpu(result, a):
    mine = 0.0
    for i in range(cuda.grid(1), len(a), cuda.gridsize(1)):
        mine += abs(a[i])
    cuda.atomic.add(result, 0, mine)


a = np.random.default_rng().standard_normal(200_000)
result = cuda.to_device(np.zeros(1))
abs_sum_on_gpu[8, 128](result, cuda.to_device(a))
on_gpu, on_cpu = result.copy_to_host()[0], abs_sum_on_cpu(a)
np.testing.assert_allclose([on_gpu, on_cpu], abs(a).sum(), rtol=1e-10)
print(f"the sum of {len(a)} absolute values is {on_cpu:.3f} on the CPU, {on_gpu:.3f} by numba.cuda's program")
