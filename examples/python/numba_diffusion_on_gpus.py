"""Heat in a plate that is divided over all GPUs. Each GPU has a strip of rows and one row of each
neighbour, which copies between the GPUs update after each step. A numba.cuda program with another
import. Without GPUs, KJIT_CPU_DEVICES=2 in the environment creates two CPU devices."""
from kjit import cuda

import numpy as np


@cuda.jit
def step(new, old, c):
    i, j = cuda.grid(2)
    if 0 < i < old.shape[0] - 1 and 0 < j < old.shape[1] - 1:
        new[i, j] = old[i, j] + c * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - 4 * old[i, j])


class Strip:
    """The rows of the plate on one GPU, with one additional row before and after them."""

    def __init__(self, gpu, rows):
        self.gpu = gpu
        with gpu:
            self.old, self.new = cuda.to_device(rows), cuda.to_device(rows)

    def step(self, c):
        rows, columns = self.old.shape
        with self.gpu:
            step[((rows + 7) // 8, (columns + 15) // 16), (8, 16)](self.new, self.old, c)
        self.old, self.new = self.new, self.old


def exchange_rows(strips):
    """Copies the first and last own row of each strip to its neighbours."""
    for upper, lower in zip(strips, strips[1:]):
        lower.old[:1].copy_to_device(upper.old[-2:-1])
        upper.old[-1:].copy_to_device(lower.old[1:2])


def diffuse(plate, steps, c):
    bounds = np.linspace(1, len(plate) - 1, len(cuda.gpus) + 1).astype(int)
    strips = [Strip(gpu, plate[first - 1 : end + 1]) for gpu, first, end in zip(cuda.gpus, bounds, bounds[1:])]
    for upper, lower in zip(strips, strips[1:]):  # with peer access, copies go directly from GPU to GPU
        for one, other in ((upper, lower), (lower, upper)):
            context = one.gpu.get_primary_context()
            if context.can_access_peer(other.gpu.id):
                context.enable_peer_access(other.gpu.get_primary_context())
    for _ in range(steps):
        for strip in strips:
            strip.step(c)
        exchange_rows(strips)
    result = plate.copy()
    for strip, first, end in zip(strips, bounds, bounds[1:]):
        result[first:end] = strip.old.copy_to_host()[1:-1]
    return result


def expected(plate, steps, c):
    plate = plate.copy()
    for _ in range(steps):
        inner = plate[1:-1, 1:-1]
        plate[1:-1, 1:-1] = inner + c * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * inner)
    return plate


plate = np.zeros((130, 160))
plate[30:100, 40:110] = np.random.default_rng().uniform(50, 100, (70, 70))
end = diffuse(plate, 300, 0.2)
np.testing.assert_allclose(end, expected(plate, 300, 0.2), rtol=1e-10, atol=1e-12)
print(f"300 steps on {len(cuda.gpus)} device(s): the warmest place has {end.max():.3g}, as in NumPy")
