"""Launches in the simulator of kjit.cuda, or in that of Numba: simulator.py [kjit | numba]. Prints the least processor time of seven
launches of two kernels with 1,024 threads, in milliseconds: one without barriers, and one with eight barriers in each thread."""
import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np

if sys.argv[1:] == ["numba"]:
    from numba import cuda
else:
    from kjit import cuda


@cuda.jit
def double(r, x):
    i = cuda.grid(1)
    if i < x.size:
        r[i] = x[i] * 2 + 1


@cuda.jit
def total(r, x):
    s = cuda.shared.array(64, dtype=np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(r, 0, s[0])


x, r = np.arange(1024, dtype=np.float32), np.zeros(1024)
for kernel in (double, total):
    least = float("inf")
    for _ in range(7):
        r[:] = 0
        begin = time.process_time()
        kernel[16, 64](r, x)
        least = min(least, time.process_time() - begin)
    assert r[0] == (1 if kernel is double else x.sum())
    print(f"{kernel.py_func.__name__ if hasattr(kernel, 'py_func') else kernel.fn.__name__}: {1e3 * least:.2f} ms")
