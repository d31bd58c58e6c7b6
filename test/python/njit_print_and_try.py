# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Statements that Numba compiles and that kjit's njit runs in the interpreter: print, try, and exceptions with values
of the call."""
import contextlib
import io
import random
import warnings

import kjit
import numpy as np
from kjit import njit, prange

warnings.simplefilter("ignore", kjit.KjitWarning)


@njit
def said(x):
    print("x is", x, x > 1, (x, 2))
    return x * 2


def printed(call):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = call()
    return result, out.getvalue()


assert printed(lambda: said(3)) == (6, "x is 3 True (3, 2)\n")
assert printed(lambda: said(np.float32(0.1))) == (float(np.float32(0.1)) * 2, f"x is {float(np.float32(0.1))} False ({float(np.float32(0.1))}, 2)\n")


@njit(nopython=True)
def steps(a):
    s = 0.0
    for i in range(len(a)):
        s += a[i]
        if i % 2 == 0:
            print(i, s, a[i])
    for v in a:
        s += v
    return s


a = np.array([1.5, 2.5, 3.0], np.float32)
assert printed(lambda: steps(a)) == (14.0, "0 1.5 1.5\n2 7.0 3.0\n")


@njit
def outer(a):
    s = 0.0
    for v in a:
        s += said(v)
    return s


result, text = printed(lambda: outer(np.array([1.0, 2.0])))
assert result == 6 and text == "x is 1.0 False (1.0, 2)\nx is 2.0 True (2.0, 2)\n", (result, text)


class Bad(Exception):
    pass


@njit
def checked(x, n):
    for i in range(n):
        if x > i + 10:
            raise Bad("too large", x, i)
    if n > 5:
        raise ValueError(f"n is {n}")
    if n < 0:
        raise ValueError("constant")
    return x + n


assert checked(3, 2) == 5
for arguments, kind, args in (((20, 4), Bad, ("too large", 20, 0)), ((1, 6), ValueError, ("n is 6",)), ((1, -1), ValueError, ("constant",))):
    try:
        checked(*arguments)
    except kind as error:
        assert error.args == args, error.args
    else:
        raise AssertionError("nothing was raised")


@njit
def tried(x, a):
    s = 0.0
    for v in a:
        s += v
    try:
        if x < 0:
            raise ValueError("negative")
        s += checked(x, 1)
    except Exception:
        s = -s
    else:
        s *= 2
    finally:
        s += 0.5
    return s


a = np.arange(4.0)
assert [tried(x, a) for x in (1, -1, 30)] == [16.5, -5.5, -5.5]


@njit
def first_root(a):
    found = -1
    for i in range(len(a)):
        try:
            if checked(a[i], 1) == 4:
                found = i
                break
        except Exception:
            continue
    else:
        found = -2
    return found


assert first_root(np.array([50, 3])) == 1 and first_root(np.array([50, 1])) == -2

# Each gives a warning with the line and the reason.
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")

    @njit
    def loud(n):
        for i in range(n):
            print(i)
        return n

    printed(lambda: loud(2))
assert len(seen) == 1 and "Python's interpreter runs this loop, which calls `print`" in str(seen[0].message), seen
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")

    @njit
    def careful(n):
        s = 0
        for i in range(n):
            try:
                s += i
            except Exception:
                s = 0
        return s

    assert careful(4) == 6
assert len(seen) == 1 and "this loop, which contains `try`" in str(seen[0].message), seen


# Each thread of a prange loop draws its own numbers.
@njit(parallel=True)
def hits(n):
    np.random.seed(3)
    c = 0
    for _ in prange(n):
        x = np.random.random()
        y = np.random.random()
        if x * x + y * y < 1:
            c += 1
    return c


assert abs(hits(20000) / 20000 - np.pi / 4) < 0.03


@njit(parallel=True)
def mixed(a):
    for i in prange(len(a)):
        a[i] = random.random() + np.random.rand()


a = np.zeros(50)
mixed(a)
assert 0 < a.min() and a.max() < 2 and len(set(a)) == 50
