# RUN: %kjit-python %s
"""Arithmetic in njit that could easily differ from Numba's: pow, squares of complex numbers, the smallest int64."""
import numpy as np

from kjit import cuda, njit

random = np.random.RandomState(3)


@njit
def powers(x, y):
    return pow(x, y), x**y


@njit
def cubes(x):
    return pow(x, 3), pow(2, x)


for _ in range(20):
    x, y = int(random.randint(-9, 10)), int(random.randint(0, 9))
    assert powers(x, y) == (x**y, x**y) and all(type(v) is int for v in powers(x, y)), (x, y)
    assert cubes(y) == (y**3, 2**y) and all(type(v) is int for v in cubes(y))
    f = random.uniform(0.1, 3)
    assert np.allclose(powers(f, y), f**y) and all(type(v) is float for v in powers(f, y))


@njit
def squares(z):
    return z**2, z**2.0, z * z, z**3


@njit
def raised(z, n):
    return z**n


for z in (1 + 2j, complex(*random.uniform(-2, 2, 2)), np.complex64(0.5 - 0.25j)):
    first, second, product, cube = squares(z)
    assert first == second == raised(z, 2) == raised(z, 2 + 0j) == complex(z) * complex(z), z
    assert np.isclose(product, z * z) and np.isclose(cube, complex(z) ** 3) and np.isclose(raised(z, 2.5), complex(z) ** 2.5)


@njit
def is_in_mandelbrot(c):
    z = 0.0j
    for _ in range(100):
        z = z**2 + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return False
    return True


points = [0j, 1 + 0j, 1j, 1 + 1j, 0.1 + 0.1j, -1 + 0j, -2 + 0j]
assert [is_in_mandelbrot(p) for p in points] == [is_in_mandelbrot.py_func(p) for p in points]


@njit
def smallest():
    return -9223372036854775808


@njit
def most(x):
    return max(x, -9223372036854775808), -9223372036854775808 < x, x // -1, -5 % 3


assert smallest() == -(2**63) and most(4) == (4, True, -4, 1)


@cuda.jit
def kernel(x, n, out):
    i = cuda.grid(1)
    if i < n.size:
        out[0, i], out[1, i], out[2, i] = pow(n[i], 2), -9223372036854775808 < n[i], (x[i] ** 2).real


x, n, out = random.uniform(-1, 1, 20) + 1j, random.randint(-9, 9, 20), np.zeros((3, 20))
kernel[1, 32](x, n, out)
# GPUs, and NumPy 2.5 on some processors, compute the real part of a product with one rounding less.
assert np.array_equal(out[:2], [n**2, np.ones(20)])
np.testing.assert_allclose(out[2], x.real * x.real - x.imag * x.imag, rtol=0, atol=2.5e-16)


# ---- ---- ufuncs of floats convert integers of 8 and 16 bits to float32, as in Numba, and other integers to float64
# ---- ----


@njit
def of_ufuncs(x, y):
    return np.sqrt(x), np.exp(x), np.arctan2(x, y), np.hypot(x, y), np.divide(x, y), np.deg2rad(x), x / y


@cuda.jit
def as_kernel(r, x, y):
    r[0], r[1], r[2] = np.sqrt(x[0]), np.arctan2(x[0], y[0]), np.divide(x[0], y[0])


for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    kind = np.dtype(name).type
    is_single = np.dtype(name).itemsize < 4
    for v, w in random.randint(1, 80, (5, 2)):
        x, y = kind(v), kind(w)
        f, g = (np.float32(v), np.float32(w)) if is_single else (float(v), float(w))
        *got, quotient = of_ufuncs(x, y)
        expected = np.sqrt(f), np.exp(f), np.arctan2(f, g), np.hypot(f, g), f / g, np.deg2rad(f)
        assert np.allclose(got, np.array(expected, "f8"), rtol=3e-7 if is_single else 1e-14), (name, v, w, got, expected)
        if is_single:
            assert all(float(np.float32(value)) == value for value in got), (name, v, w, got)
        assert quotient == int(v) / int(w)
        r = np.zeros(3)
        as_kernel[1, 1](r, np.array([x]), np.array([y]))
        assert np.allclose(r, [got[0], got[2], got[4]], rtol=3e-7 if is_single else 1e-14), (name, r, got)
