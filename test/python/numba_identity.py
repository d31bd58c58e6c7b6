# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# `is True`, round() of float32, and vectorize without signatures in numba's place.
import random

import kjit
import numpy as np
from kjit import njit


@njit
def tests(x):
    return x is True, x is not True, x is False, x is not False


for value in (True, False, np.bool_(True), np.bool_(False)):
    assert tests(value) == (bool(value), not value, not value, bool(value)), value
for value in (1, 0, 1.0, 0.0, np.int64(1), np.uint8(0)):
    assert tests(value) == (False, True, False, True), value


@njit
def rounded(x, n):
    return round(x, n)


def expected(x, n):
    """numba.cuda's way, for the type of x."""
    kind = type(x)
    scale = 10.0 ** abs(n)
    scaled = float(x) * scale if n >= 0 else float(x) / scale
    return float(kind(float(np.rint(scaled)) / scale if n >= 0 else float(np.rint(scaled)) * scale))


for _ in range(300):
    for kind in (np.float32, np.float64):
        x = kind(round(random.uniform(-100, 100), 2))
        n = random.randint(-1, 3)
        assert rounded(x, n) == expected(x, n), (x, n, rounded(x, n), expected(x, n))
assert rounded(np.float32(0.3425), 3) == float(np.float32(0.343))

with kjit.as_numba():
    from numba import vectorize


@vectorize
def add(x, y):
    return x + y


@vectorize
def half(x):
    return x / 2


for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
    x = np.array([100, 1, 120], kind)
    sum_ = add(x, x)
    assert sum_.dtype == kind[0] + "8" and sum_.tolist() == [200, 2, 240], (kind, sum_)
    assert half(x).dtype == "f8" and half(x).tolist() == [50, 0.5, 60], kind
