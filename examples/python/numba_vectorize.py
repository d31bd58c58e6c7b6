"""Relative differences and discounted payments with vectorize, on the cores of the CPU and on a
GPU: Numba programs with another import."""
import math

from kjit import vectorize

import numpy as np


@vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def relative_difference(x, y):
    return 2 * (x - y) / (x + y)


@vectorize(["float64(float64, float64, int64)"], target="parallel")
def discounted(payment, rate, years):
    if rate <= 0:
        return payment
    return payment * math.exp(-rate * years)


@vectorize
def rounded(v):
    return math.floor(100 * v + 0.5) / 100


random = np.random.default_rng()
x, y = random.uniform(1, 10, (2, 50_000))
np.testing.assert_allclose(relative_difference(x, y), 2 * (x - y) / (x + y), rtol=1e-12)
small = relative_difference(x.astype(np.float32), y.astype(np.float32))
assert small.dtype == np.float32
np.testing.assert_allclose(small, 2 * (x - y) / (x + y), rtol=1e-3, atol=1e-5)
payments, rates, years = random.uniform(10, 1000, 1000), random.uniform(-0.01, 0.1, (20, 1)), random.integers(1, 30, 1000)
worth = discounted(payments, rates, years)
expected = np.where(rates <= 0, payments, payments * np.exp(-rates * years))
assert worth.shape == (20, 1000)
np.testing.assert_allclose(worth, expected, rtol=1e-12)
np.testing.assert_allclose(rounded(worth), np.floor(100 * worth + 0.5) / 100)
print(f"{x.size} relative differences, {worth.size} discounted payments of {worth.mean():.2f} on average: as NumPy has them")
