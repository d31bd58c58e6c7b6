# REQUIRES: numba
# RUN: %numba-python %s
"""The element order (C or Fortran) of arrays that njit functions return, and whether they are writable: as with
Numba."""
import warnings

import kjit
import numba
import numpy as np

warnings.simplefilter("ignore")
ROWS = np.linspace(0.25, 1, 20).reshape(4, 5)
COLUMNS = np.asfortranarray(ROWS)
LINE, DEEP = ROWS.reshape(5, 4).T[0], np.asfortranarray(np.arange(60.0).reshape(3, 4, 5))
PAIRS = [(COLUMNS, LINE), (LINE, COLUMNS), (COLUMNS, COLUMNS), (ROWS, COLUMNS), (COLUMNS[::2], 2.5), (2.5, COLUMNS), (DEEP, COLUMNS)]


def added(a, b):
    return np.add(a, b)


def compared(a, b):
    return a < b


def composed(a, b):
    return np.sqrt(a) * b - a


def divided(a, b):
    return -(a - b * 2) / (np.abs(b) + 1)


def in_place(a, b):
    c = a + 1
    return c * b


def diagonal(a):
    return np.diag(a[:3, :3])


def differences(a):
    return np.diff(a)


def in_order(a):
    return np.sort(a)


def described(value):
    if not isinstance(value, np.ndarray):
        return type(value)
    return value.dtype, value.shape, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable


def check(function, mine, numbas, arguments):
    expected, result = numbas(*arguments), mine(*arguments)
    assert described(result) == described(expected), (function.__name__, [described(a) for a in arguments], described(result), described(expected))
    np.testing.assert_allclose(result, expected, rtol=1e-14)


for function, pairs in ((added, PAIRS), (composed, PAIRS), (compared, PAIRS[:1]), (divided, PAIRS[:2]), (in_place, PAIRS[:1])):
    mine, numbas = kjit.njit(function), numba.njit(function)
    for arguments in pairs:
        check(function, mine, numbas, arguments)
for function in (diagonal, differences, in_order):
    mine, numbas = kjit.njit(function), numba.njit(function)
    for a in (ROWS, COLUMNS):
        check(function, mine, numbas, (a,))
