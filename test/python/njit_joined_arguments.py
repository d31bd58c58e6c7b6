# RUN: %kjit-python %s
"""Functions of njit that Python runs, because they make arrays: a variable that is an int64 in one branch and a float64 in another one is a
float64 in both, also where the types come from arguments, elements of arrays and calls. The values are those of Numba 0.61.2."""
import math
import warnings

import numpy as np

from kjit import njit

warnings.simplefilter("ignore")  # for loops that the interpreter runs


@njit
def scaled(n, k):
    a = np.zeros(2)
    if k:
        n = n * 1.5
    return n, a


@njit
def halved(n, k):
    a = np.zeros(3)
    for _ in range(k):
        a[:] = a + 1
        n = n / 2
    return n, n // 1, a


@njit
def chosen(x, y, k):
    a = np.zeros(2)
    r = x
    if k:
        r = y
    return r // 2, a


@njit
def largest(a, k):
    b = np.ones(k)
    m = 0
    if k > 1:
        m = a.max()
    return m, b


@njit
def summed(a, k):
    b = np.ones(k)
    m = 0
    if k > 1:
        for x in a:
            m += x
    return m, b


@njit
def of_elements(a, k):
    b = np.zeros(3)
    if k == 0:
        return 0, b
    if k == 1:
        return a[0], b
    return a.mean(), b


@njit
def root(x, k):
    a = np.zeros(2)
    s = x
    if k == 1:
        s = math.sqrt(x)
    if k == 2:
        s = np.sqrt(x)
    return s, a


@njit
def quarter(x):
    return x * 0.25


@njit
def called(n, k):
    a = np.zeros(2)
    s = 0
    if k:
        s = quarter(n)
    return s, a


@njit
def grown(n, k):
    a = np.ones(k)
    s = n
    for i in range(k):
        s += a[i]
        a = a + 1
    return s, a


@njit
def unchanged(n, k):
    a = np.zeros(2)
    if k:
        n = n + 1
    return n, a


f64, i64 = np.arange(3.0), np.arange(3)
f32 = f64.astype(np.float32)
CASES = [
    (scaled, [((3, 0), 3.0), ((3, 1), 4.5), ((2.5, 0), 2.5), ((3j, 1), 4.5j)]),
    (halved, [((3, 0), 3.0), ((3, 1), 1.5), ((8, 2), 2.0)]),
    (chosen, [((5, 2.5, 0), 2.0), ((5, 2.5, 1), 1.0), ((5, 3, 0), 2), ((2.5, 7, 1), 3.0)]),
    (largest, [((f64, 0), 0.0), ((f64, 2), 2.0), ((i64, 0), 0), ((i64, 2), 2), ((f32, 0), 0.0)]),
    (summed, [((f64, 0), 0.0), ((f64, 2), 3.0), ((i64, 0), 0), ((f32, 0), 0.0)]),
    (of_elements, [((f64, 0), 0.0), ((i64, 0), 0.0), ((i64, 1), 0.0), ((i64, 2), 1.0)]),
    (root, [((4, 0), 4.0), ((4, 1), 2.0), ((4, 2), 2.0), ((4.0, 0), 4.0)]),
    (called, [((4, 0), 0.0), ((4, 1), 1.0)]),
    (grown, [((3, 0), 3.0), ((3, 2), 6.0)]),
    (unchanged, [((3, 0), 3), ((3, 1), 4), ((3.5, 0), 3.5)]),
]
for function, calls in CASES:
    assert function.runs_in_python
    for arguments, wanted in calls:
        found = function(*arguments)[0]
        assert type(found) is type(wanted) and found == wanted, (function, arguments, found, wanted)
assert scaled(n=3, k=0)[0] == 3.0 and type(scaled(n=3, k=0)[0]) is float
array = np.arange(3.0)
assert scaled(array, 0)[0] is array
