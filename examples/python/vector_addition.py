"""Vector addition in four forms: a grid_range, one thread for each element, a grid-stride loop, and
a kjit.func for the sum."""
import kjit
import numpy as np


@kjit.jit
def add(r, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + y[i]


@kjit.jit
def add_by_thread(r, x, y):
    i = kjit.grid(1)
    if i < len(r):
        r[i] = x[i] + y[i]


@kjit.jit
def add_by_stride(r, x, y):
    for i in range(kjit.grid(1), len(r), kjit.gridsize(1)):
        r[i] = x[i] + y[i]


@kjit.func
def total(a, b):
    return a + b


@kjit.jit
def add_by_func(r, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = total(x[i], y[i])


n = 100_000
x, y = np.random.default_rng().random((2, n), np.float32)
blocks = (n + 255) // 256
for name, launch in [("grid_range", add), ("a thread an element", add_by_thread[blocks, 256]), ("grid stride", add_by_stride[16, 256]),
                     ("a func", add_by_func)]:
    r = np.empty_like(x)
    launch(r, x, y)
    np.testing.assert_array_equal(r, x + y)
    print(f"{name}: {n} sums are NumPy's")
