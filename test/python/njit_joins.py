# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""In functions that the interpreter runs, a variable has one type after branches or loop iterations, as in Numba."""
import warnings

import kjit
import numpy as np
from kjit import njit

warnings.simplefilter("ignore", kjit.KjitWarning)


def check(function, *cases):
    """cases: (arguments, the numbers in the result with their types)"""
    made = njit(function)
    for arguments, expected in cases:
        result = made(*arguments)[1:]
        assert [(type(v), v) for v in result] == [(type(v), v) for v in expected], (function.__name__, arguments, result, expected)
    assert made.runs_in_python


def branches(a, c):
    b = a * 1
    if c:
        v = 1
    else:
        v = 2.5
    return b, v, v // 2


def nested(a, c, d):
    b = a * 1
    v = 3
    if c:
        if d:
            v = v / 2
        else:
            v = 7
        w = v * 2
    else:
        w = 1
    return b, v, w


def straight(a):
    b = a * 1
    x = 1
    y = x // 2
    x = 2.5
    z = x
    x = 3
    return b, x, y, z


def rounds(a, n):
    x = 7
    y = 0
    for _ in range(n):
        t = a.copy()
        y = x // 2
        x = x * 0.5
        t[0] = y
    return a, x, x // 2


def pairs(a, n):
    x, y = 0, 1
    b = a * 2
    k = 0
    while k < n:
        x, y = y, (x + y) / 2
        b = b + np.sort(a)
        k += 1
    return b, x, y, k


def left(a, n):
    b = a * 2
    best = -1
    for i in range(n):
        m = np.sum(b[: i + 1])
        if m > 2:
            best = m / 2.0 if n < 0 else float(m)
            break
    return b, best


def elements(a, c):
    s = np.sort(a)
    v = 0.0
    if c:
        v = s[0]
    return s, v


def results(a, c):
    s = np.sort(a)
    if c:
        return s, 1
    return s, 0.5


def leaving(a, n):
    b = a * 2
    x, y = 1, 1
    for i in range(n):
        np.sort(a)
        if i == 1:
            x = 2.5
            break
        y = 3
    else:
        y = 0.5
    return b, x, y


def continuing(a, n):
    b = a * 2
    x, y = 1, 0.5
    for i in range(n):
        np.sort(a)
        y = 4
        if i == 1:
            x = 0.5
            continue
        x = 3
    return b, x // 2, x, y


def trying(a, c):
    b = np.sort(a)
    try:
        x = 1
        if c:
            x = 2.5
        y = 0.5
        if c == 2:
            raise ValueError
    except Exception:
        x, y = 3, 4
    return b, x, y


def choosing(a, c, n):
    b = np.sort(a)
    x = 1 if c else 0.5
    y = 7 if c else 2.5 if x > 2 else 3
    x = (x if c else 1) // 2 + (1 if c else 2)
    return b, x, y, (n if c else 0.5)


def before_leaving(a, c):
    for i in range(2):
        np.sort(a)
        x = 3
        if c:
            break
        else:
            continue
    if c:
        y = 1
    else:
        y = 2.5
    return a, y


a = np.arange(4) + 1
check(branches, ((a, True), (1.0, 0.0)), ((a, False), (2.5, 1.0)))
check(nested, ((a, True, True), (1.5, 3.0)), ((a, True, False), (7.0, 14.0)), ((a, False, True), (3.0, 1.0)))
check(straight, ((a,), (3, 0, 2.5)))
check(rounds, ((a, 0), (7.0, 3.0)), ((a, 1), (3.5, 1.0)), ((a, 3), (0.875, 0.0)))
check(pairs, ((a, 0), (0.0, 1.0, 0)), ((a, 2), (0.5, 0.75, 2)))
check(left, ((a, 4), (6.0,)), ((a, 0), (-1.0,)))
check(elements, ((a, True), (1.0,)), ((a.astype(np.float32) / 8, True), (0.125,)), ((a, False), (0.0,)))
check(results, ((a, True), (1.0,)), ((a, False), (0.5,)))
check(leaving, ((a, 0), (1.0, 0.5)), ((a, 1), (1.0, 0.5)), ((a, 2), (2.5, 3.0)))
check(continuing, ((a, 0), (0.0, 1.0, 0.5)), ((a, 1), (1.0, 3.0, 4.0)), ((a, 2), (0.0, 0.5, 4.0)))
check(trying, ((a, 0), (1.0, 0.5)), ((a, 1), (2.5, 0.5)), ((a, 2), (3.0, 4.0)))
check(choosing, ((a, True, 3), (1.0, 7.0, 3.0)), ((a, False, 3), (2.0, 3.0, 0.5)))
check(before_leaving, ((a, True), (1.0,)), ((a, False), (2.5,)))


@njit
def single(a, c):
    s = np.sort(a)
    if c:
        return 1
    if s[0] > 5:
        return s[0]
    return 2.5


assert [(type(v), v) for v in (single(a, True), single(a, False), single(a + 9, False))] == [(float, 1.0), (float, 2.5), (float, 10.0)]
