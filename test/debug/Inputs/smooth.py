"""A kernel for tests of profilers. With the name of a file, the program writes the kernel's PTX for sm_90; otherwise it launches the kernel."""
import sys

import numpy as np
import kjit
from kjit import cuda


@cuda.jit(device=True)
def third(v):
    return v / np.float32(3)


@cuda.jit(lineinfo=True)
def smooth(r, x, n):
    i = cuda.grid(1)
    if 0 < i < n - 1:
        total = np.float32(0)
        for k in range(-1, 2):
            total += x[i + k]
        r[i] = third(total)


if len(sys.argv) > 1:
    array = cuda.types.float32[::1]
    text, _ = cuda.compile_ptx(smooth.py_func, (array, array, cuda.types.int64), lineinfo=True, cc=(9, 0))
    with open(sys.argv[1], "w") as file:
        file.write(text)
else:
    x = np.arange(1 << 16, dtype=np.float32)
    r = cuda.to_device(x)
    with kjit.profile_range("one step"):
        smooth[256, 256](r, cuda.to_device(x), x.size)
        cuda.synchronize()
    assert abs(r.copy_to_host()[1000] - 1000) < 1e-3
