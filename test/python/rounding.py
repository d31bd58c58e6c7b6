# RUN: %kjit-python %s
"""On the CPU, njit, vectorize and guvectorize round products and sums separately, as Numba and NumPy do: results equal
NumPy's to the last bit."""
import numpy as np
import seeds

from kjit import guvectorize, njit, vectorize

rng = seeds.fresh_generator()
x, y, z = rng.standard_normal((3, 5000))
wanted = x * y + z
# a fused operation would give another result
assert np.any(np.array([float(np.longdouble(a) * b + c) for a, b, c in zip(x, y, z)]) != wanted)


@njit
def of_numbers(a, b, c):
    return a * b + c


@njit
def of_loops(a, b, c, r):
    for i in range(len(a)):
        r[i] = a[i] * b[i] + c[i]


@njit
def inner(a, b):
    return a * b


@njit
def of_calls(a, b, c, r):
    for i in range(len(a)):
        r[i] = inner(a[i], b[i]) + c[i]


@njit(parallel=True)
def of_arrays(a, b, c):
    return a * b + c


@vectorize(["float64(float64, float64, float64)"])
def of_elements(a, b, c):
    return a * b + c


@guvectorize(["void(float64[:], float64[:], float64[:], float64[:])"], "(n),(n),(n)->(n)")
def of_rows(a, b, c, r):
    for i in range(len(a)):
        r[i] = a[i] * b[i] + c[i]


assert all(of_numbers(a, b, c) == w for a, b, c, w in zip(x[:500], y, z, wanted))
for function in (of_loops, of_calls):
    r = np.zeros_like(x)
    function(x, y, z, r)
    assert np.array_equal(r, wanted), function
assert np.array_equal(of_arrays(x, y, z), wanted)
assert np.array_equal(of_elements(x, y, z), wanted)
assert np.array_equal(of_rows(x, y, z), wanted)

# fastmath allows one rounding
fast = njit(fastmath=True)(of_loops.py_func)
r = np.zeros_like(x)
fast(x, y, z, r)
assert np.allclose(r, wanted)


# A quotient of a small integer or a bool and a float32 is a float32, as a sum of both is.
divided = njit(lambda a, b: a / b)
for kind in (np.int8, np.uint8, np.int16, np.bool_, np.float32):
    for a, b in zip(rng.integers(0, 2, 20).astype(kind), rng.standard_normal(20).astype(np.float32)):
        assert divided(a, b) == float(np.float32(a) / b), (kind, a, b)
        assert divided(np.int32(a), b) == float(a) / float(b), (kind, a, b)
