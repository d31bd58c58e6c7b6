# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Exceptions that a program raises have the program's own arguments. str() also gives the location in the source."""
import pickle

import numpy as np

import kjit
from kjit import cuda, njit


class Bad(Exception):
    pass


@njit
def fails(x):
    if x == 1:
        raise ValueError("neg", 3)
    if x == 2:
        raise ValueError("one text")
    if x == 3:
        raise IndexError
    if x == 4:
        raise Bad(-1.5, None, "last")
    if x == 5:
        raise OverflowError()
    assert x != 6, "six is not allowed"
    assert x != 7
    return 10 // (x - 8)


def caught(function, *args):
    try:
        function(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


WANTED = {1: (ValueError, ("neg", 3)), 2: (ValueError, ("one text",)), 3: (IndexError, ()), 4: (Bad, (-1.5, None, "last")), 5: (OverflowError, ()), 6: (AssertionError, ("six is not allowed",))}
for x, (kind, args) in WANTED.items():
    error = caught(fails, x)
    assert isinstance(error, kind) and isinstance(error, kjit.KernelError) and error.args == args, (x, error.args)
    assert "exceptions.py" in str(error) and str(error).count("raise ") + str(error).count("assert ") == 1, str(error)
    python = caught(fails.py_func, x)
    assert type(python) in type(error).__mro__ and python.args == error.args, (x, python.args, error.args)
assert isinstance(caught(fails, 7), AssertionError) and isinstance(caught(fails, 8), ZeroDivisionError)
assert fails(10) == 5


@cuda.jit(debug=True, opt=False)
def kernel(r):
    if cuda.grid(1) == 2:
        raise ValueError("thread", 2)


def launch():
    kernel[1, 4](np.zeros(4))
    cuda.synchronize()


error = caught(launch)
assert isinstance(error, ValueError) and error.args == ("thread", 2) and error.thread == (2, 0, 0), error.args


# The interpreter can raise an exception with run-time values; a kernel cannot.
@njit(nopython=True)
def unknown(x):
    raise ValueError("x is", x)


assert caught(unknown, 1).args == ("x is", 1)


@cuda.jit
def unknown_kernel(x):
    raise ValueError("x is", x)


error = caught(unknown_kernel[1, 1], 1)
assert "arguments of an exception must be strings and numbers that are known" in str(error), error

# The text of a compiler error does not change.
error = caught(kjit.jit(lambda r: r.nothing), np.zeros(1))
assert error.args[0] == str(error)
assert str(pickle.loads(pickle.dumps(kjit.Error("text")))) == "text"
