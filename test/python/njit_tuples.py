# RUN: %kjit-python %s
"""Tuples in njit functions and kernels: starred items, *args, truth, and names of fields in tuples; quotients of complex numbers.
`REAL=1 python3 njit_tuples.py` runs the same with Numba."""
import operator
import os

import numpy as np

REAL = os.environ.get("REAL")
if REAL:
    from numba import njit
else:
    from kjit import cuda, njit


def fails(call, *arguments):
    """Returns the text of the error that a call raises."""
    try:
        call(*arguments)
    except Exception as error:
        return str(error)
    raise AssertionError(f"no error for {arguments}")


@njit
def three(a, b, c):
    return a + b * c


@njit
def starred(a, b):
    return (1, *a), (*a, *b, 5), (*b,)


assert starred((2, 3.5), (4,)) == ((1, 2, 3.5), (2, 3.5, 4, 5), (4,))
assert starred((), (4,)) == ((1,), (4, 5), (4,))
fails(njit(lambda a: (*a, 1)), np.arange(3))

all_of = njit(lambda t: three(*t))
assert all_of((1, 2, 3.5)) == 8.0 and all_of((1, 2, 3)) == 7
fails(all_of, (1, 2, 3, 4))
fails(all_of, (1, 2))
rest_of = njit(lambda x, t: three(x, *t))
assert rest_of(7, (1, 2)) == 9
fails(rest_of, 7, (1, 2, 3))


@njit
def truth(t):
    n = 1 if t else 2
    if not t:
        n += 10
    while t:
        n += 100
        break
    return n, bool(t)


assert truth((0,)) == (101, True) and truth(()) == (12, False)
assert njit(lambda t, x: operator.contains(t, x))((1, 2), 2) is True and njit(lambda x: operator.pos(x))(3) == 3
assert njit(lambda a: getattr(a, "ndim"))(np.zeros((2, 3))) == 2  # noqa: B009

FIELDS = ("first", "second")
records = np.array([(1, 2.5), (3, 4.5)], [("first", "i4"), ("second", "f8")])


@njit
def of_fields(r):
    r[1][FIELDS[0]] = 7
    return r[0][FIELDS[1]]


assert of_fields(records) == 2.5 and records[1]["first"] == 7

# Products and quotients of complex numbers have Numba's signs of zero, infinities and NaNs.
quotient, product = njit(error_model="numpy")(lambda a, b: a / b), njit(lambda a, b: a * b)
divided = njit(lambda a, b: np.divide(a, b))
parts = (0.0, -0.0, 1.0, -2.5, np.inf, np.nan)


def parts_of(z):
    return str(complex(z).real), str(complex(z).imag)


def by_python(x, y):
    """CPython's quotient, without its exception."""
    if abs(y.real) >= abs(y.imag):
        ratio = np.float64(y.imag) / y.real
        size = y.real + y.imag * ratio
        return complex((x.real + x.imag * ratio) / size, (x.imag - x.real * ratio) / size)
    ratio = np.float64(y.real) / y.imag
    size = y.real * ratio + y.imag
    return complex((x.real * ratio + x.imag) / size, (x.imag * ratio - x.real) / size)


numbers = [complex(a, b) for a in parts for b in parts]
with np.errstate(all="ignore"):
    for x in numbers:
        for y in numbers:
            if y != 0:
                assert parts_of(quotient(x, y)) == parts_of(by_python(x, y)), (x, y, quotient(x, y), by_python(x, y))
            of_numpy = np.divide(np.complex128(x), np.complex128(y))
            # Numba's np.divide by 0 differs from NumPy's
            assert y == 0 and REAL or parts_of(divided(x, y)) == parts_of(of_numpy), (x, y, divided(x, y), of_numpy)
            expected = complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
            assert parts_of(product(x, y)) == parts_of(expected), (x, y, product(x, y), expected)

if not REAL:

    @cuda.jit
    def kernel(r, t):
        u = (*t, 2)
        r[0] = three(*u)
        r[1] = (1 if t else 0) - 1j / 1j

    r = np.zeros(2, complex)
    kernel[1, 1](r, (1, 2.5))
    assert r.tolist() == [6, 0]
print("njit_tuples: good")
