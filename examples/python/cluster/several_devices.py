"""One process uses several GPUs. Each GPU has a part of the points and sums Gaussians of the
distances to all points. The kernel is compiled once for each kind of GPU, and launches on different
devices run concurrently. Without GPUs the CPU computes all parts."""
import kjit
import numpy as np


@kjit.jit
def sums(r, x, y, gamma):
    for i in kjit.grid_range(len(r)):
        total = 0.0
        for j in range(len(y)):
            d = x[i] - y[j]
            total += kjit.exp(-gamma * d * d)
        r[i] = total


gpus = [device for device in kjit.devices() if device.kind == "cuda"] if kjit.device().kind == "cuda" else []
places = [f"cuda:{gpu.ordinal}" for gpu in gpus] or ["cpu", "cpu"]
x, y = np.random.default_rng().standard_normal((2, 3000))
work = []
for place, part in zip(places, np.array_split(x, len(places))):
    on_device = kjit.array(part, device=place), kjit.array(y, device=place)
    result = kjit.empty(len(part), "f64", place)
    sums(result, *on_device, 2.0)  # returns at once on a GPU, because the arrays are device arrays
    work.append((result, on_device))
together = np.concatenate([result.to_host() for result, _ in work])
np.testing.assert_allclose(together, np.exp(-2 * (x[:, None] - y) ** 2).sum(1), rtol=1e-10)
print(f"{len(x)} sums on {', '.join(places)}: as NumPy has them")
