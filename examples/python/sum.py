"""The sum of an array with shared memory: each block sums its part and adds it to the result with
an atomic."""
import kjit
import numpy as np

THREADS = 256


@kjit.jit(block=THREADS)
def total(result, x):
    part = kjit.shared(THREADS, x.dtype)
    t = kjit.threadIdx.x
    mine = 0.0
    for i in range(kjit.grid(1), len(x), kjit.gridsize(1)):
        mine += x[i]
    part[t] = mine
    kjit.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        kjit.syncthreads()
        half //= 2
    if t == 0:
        kjit.atomic_add(result[0], part[0])


x = np.random.default_rng().random(300_000)
result = np.zeros(1)
total[32](result, x)
np.testing.assert_allclose(result[0], x.sum(), rtol=1e-10)
print(f"sum of {len(x)} elements: {result[0]:.3f}, NumPy's {x.sum():.3f}")
