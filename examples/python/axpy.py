"""r = a*x + y on kjit arrays, which stay on the device, and on NumPy arrays, which a launch on a
GPU copies."""
import kjit
import numpy as np


@kjit.jit
def axpy(r, a, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = a * x[i] + y[i]


n = 1_000_000
x, y = np.random.default_rng().standard_normal((2, n), np.float32)
here = np.empty_like(x)
axpy(here, 2.5, x, y)

r, dx, dy = kjit.empty(n, kjit.f32), kjit.array(x), kjit.array(y)
for _ in range(10):
    axpy(r, 2.5, dx, dy)  # 2.5 becomes a float32 here, like the elements of x and y
there = r.to_host()

expected = np.float32(2.5) * x + y
np.testing.assert_allclose(here, expected, rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(there, expected, rtol=1e-5, atol=1e-5)
print(f"axpy of {n} elements on {r.device}: right")
