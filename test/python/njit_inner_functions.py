# REQUIRES: numba
# RUN: %numba-python %s
"""Inner functions that return nothing and whose calls are statements: njit gives the results of Numba, also if Python runs the outer
function in part, and kernels of kjit.cuda give the results of Python."""
import inspect
import os
import pathlib
import tempfile

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np
from kjit import cuda


def constants(a, s):
    def put(i, v):
        a[i] = v

    put(0, 1.5)
    put(1, s)


def scalars(a, s):
    k = s * 2

    def put(i, v):
        a[i] = v + k

    for j in range(3):
        put(j, 1.0)
    k = 7
    put(3, s)


def branches(a, s):
    def put(i, v):
        if v < 0:
            a[i] -= 1
            return
        a[i] = v
        if v > 1:
            return
        a[i] += 0.25

    for i in range(4):
        put(i, i - 1.0)


def nested(a, k):
    def put(i, v):
        a[i] += v + k

    def both(m, v):
        i = m + 1
        put(m, v)
        put(i, 2 * v)
        return None

    i = 0
    both(i, k)
    if k > 2:
        both(i + 2, k + 0.5)
    a[i] += k


def loops(a, s):
    t = 1.5

    def add(n):
        for j in range(n):
            a[j] += t
        n += 1
        a[3] += n

    n = 2
    add(n)
    t = 2.5
    add(s)
    a[0] += n


def other_array(a, s):
    def copy(to, of):
        for i in range(len(to)):
            to[i] = of[i] * s

    copy(a, a[::-1])


def later(a, s):
    t, u = 0.25, 0

    def add(n):
        for j in range(n):
            a[j] += t * u

    t = 1.5
    for u in range(s):
        add(u)
    t = 0.5
    add(4)


def of_nothing(a, s):
    def nothing(i):
        return

    def unused(i):
        a[i] = 3

    nothing(1)
    if s > 0:
        nothing(s)
    a[s - 2] = 4


# NumPy's functions make Python run the outer function in part.
RESULTS = ("", "a.sum()", "(np.flip(a), a[0])")


def with_result(function, result, folder):
    text = inspect.getsource(function) + (f"    return {result}\n" if result else "")
    path = pathlib.Path(folder, f"{function.__name__}_{RESULTS.index(result)}.py")
    path.write_text(text)
    space = {"np": np}
    exec(compile(text, str(path), "exec"), space)
    return space[function.__name__]


def check(name, got, wanted):
    assert type(got) is type(wanted), (name, got, wanted)
    for x, y in zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]:
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y), (name, got, wanted)


def check_function(function, folder):
    for result in RESULTS:
        made = with_result(function, result, folder)
        own, numbas = kjit.njit(made), numba.njit(made)
        for s in (3, 2):
            a, b = np.arange(4.0), np.arange(4.0)
            check((function.__name__, result, s), own(a, s), numbas(b, s))
            check((function.__name__, result, s), a, b)


def check_kernel(function):
    for s in (3, 2):
        a, b = np.arange(4.0), np.arange(4.0)
        cuda.jit(function)[1, 1](a, s)
        function(b, s)
        check((function.__name__, "kernel", s), a, b)


with tempfile.TemporaryDirectory() as folder:
    for function in (constants, scalars, branches, nested, loops, other_array, later, of_nothing):
        check_function(function, folder)
        check_kernel(function)


# An inner function that calls itself is refused by name.
def endless(a):
    def put(i):
        put(i - 1)

    put(3)
    return a.sum()


try:
    kjit.njit(endless)(np.zeros(4))
except kjit.SourceError as error:
    assert "def put(i)" in str(error), error
else:
    raise AssertionError("a recursive inner function is accepted")
