# REQUIRES: numba
# RUN: %numba-python %s
"""Empty tuples in njit functions: comparisons, lengths and variables give the results of Numba."""
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba


def compared(t):
    return t == (), t != (), () == t, len(t) == 0


def assigned(t):
    e = ()
    return e == t, e == (), e != (), len(e)


def returned(t):
    e = ()
    return e


def chosen(t):
    if t != ():
        return len(t)
    return -1


for function in (compared, assigned, returned, chosen):
    own, numbas = kjit.njit(function), numba.njit(function)
    for t in ((), (1,), (1, 2.5)):
        got, wanted = own(t), numbas(t)
        assert repr(got) == repr(wanted), (function.__name__, t, got, wanted)
