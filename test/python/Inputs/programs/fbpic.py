"""Particles in plasmas: how they move, what fields they feel and what charge they leave, by kernels and on the cores."""
import numpy as np
from numba import cuda
from program_help import random

# it would look up the name of the GPU, which the simulator lacks
available, cuda.is_available = cuda.is_available, lambda: False
from fbpic.utils import cuda as places  # noqa: E402

cuda.is_available = available
places.compile_cupy = lambda kernel: cuda.jit(kernel)  # its own function creates CuPy launchers from them
from fbpic.particles.deposition import cuda_methods_unsorted as deposits  # noqa: E402
from fbpic.particles.gathering import cuda_methods as gathers  # noqa: E402
from fbpic.particles.gathering import threading_methods as gathers_on_cores  # noqa: E402
from fbpic.particles.push import cuda_methods as pushes  # noqa: E402
from fbpic.particles.push import numba_methods as pushes_on_cores  # noqa: E402

N, NZ, NR = 50, 12, 8


def several(count, seed=1, scale=1.0):
    return list(random(seed).uniform(-scale, scale, (count, N)))


def grids(count, seed=2):
    r = random(seed)
    return [r.uniform(-1, 1, (NZ, NR)) + 1j * r.uniform(-1, 1, (NZ, NR)) for _ in range(count)]


def check_push_x():
    a = several(7)
    pushes.push_x_gpu[2, 32](*a, 1e-12, 1.0, 1.0, 0.5)
    return a[:3]


def check_push_p():
    a = several(10)
    pushes.push_p_gpu[2, 32](*a, -1.6e-19, 9.1e-31, N, 1e-16)
    return a[:4]


def check_push_on_cores():
    a, b = several(7), several(10)
    pushes_on_cores.push_x_numba(*a, N, 1e-12, 1.0, 1.0, 0.5)
    pushes_on_cores.push_p_numba(*b, -1.6e-19, 9.1e-31, N, 1e-16)
    return a[:3], b[:4]


def gather(launch, name, suffix):
    x, y, z = several(3)
    fields = [np.zeros(N) for _ in range(6)]
    launch(x, y, z, 2.0, 5.0, -1.2, NZ, 6.0, 0.05, NR, *grids(12), *fields)
    return fields


def check_gather_linear():
    return gather(gathers.gather_field_gpu_linear[2, 32], "linear", "gpu")


def check_gather_cubic():
    return gather(gathers.gather_field_gpu_cubic[2, 32], "cubic", "gpu")


def check_gather_on_cores():
    return gather(gathers_on_cores.gather_field_numba_linear, "linear", "numba")


def check_deposit_charge():
    x, y, z = several(3)
    found = []
    for mode in (0, 1):
        rho = np.zeros((NZ, NR), "c16")
        deposits.deposit_rho_gpu_unsorted[2, 32](x, y, z, np.ones(N), -1.6, 5.0, -1.2, NZ, 6.0, 0.05, NR, rho, mode, np.zeros(NR + 1))
        found.append(rho)
    return found
