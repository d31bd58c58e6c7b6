"""Kernels of lifetimes.py, for the interpreters that it starts."""
import kjit


@kjit.jit
def fill(r, v):
    for i in kjit.grid_range(len(r)):
        r[i] = v


@kjit.jit
def endless(r, n):
    k = 0
    while n > 1 and k >= 0:
        k = (k * 5 + 1) % 1000003
        r[0] = k


def make(n):
    @kjit.jit
    def kernel(r):
        for i in kjit.grid_range(len(r)):
            r[i] = r[i] * n
    return kernel


@kjit.jit
def failing(r):
    raise ValueError("always")


@kjit.jit
def printing(r):
    print("printed", r[0])
