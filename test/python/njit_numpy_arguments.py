# REQUIRES: numba
# RUN: %numba-python %s
"""Arguments of NumPy functions in njit functions: a wrong type is an error of the compilation, as in Numba, and right ones pass. NumPy is
the judge of the results, and Numba of the first wrong arguments of each function."""
import os
import warnings

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402
import numpy.polynomial.polynomial as poly  # noqa: E402

warnings.simplefilter("ignore")
x, ordered, square = np.array([3.0, 1.0, 2.0, 2.0]), np.arange(6.0), np.arange(9.0).reshape(3, 3)
CALLS = [
    (lambda a, b: np.append(a, b), [(x, 2.5), (x, x)], [(x, None), (None, x), ("text", x)]),
    (lambda a, b: np.append(a, a, axis=b), [(x, 0)], [(x, 0.0)]),
    (lambda a, b: np.array_equal(a, b), [(x, x), (x, (1.0, 2.0))], [(x, None), (None, x)]),
    (lambda a, b: np.diagflat(a, b), [(x, 1), (x, -1)], [(x, 1.0), ("abc", 1), (x, "abc")]),
    (lambda a, b: np.linspace(a, b, 4), [(1, 2.5)], [("abc", 2), (1, "abc")]),
    (lambda a, b: np.logspace(0, 1, a), [(3, 0)], [("abc", 0)]),
    (lambda a, b: np.rot90(a, b), [(square, 2)], [("abc", 1), (square, "abc"), (x, 1)]),
    (lambda a, b: np.setdiff1d(a, b), [(x, x[:2])], [("foo", x), (x, "foo")]),
    (lambda a, b: np.intersect1d(a, x, b), [(x[:3], True)], [(x, "foo")]),
    (lambda a, b: np.isin(a, b), [(x, x[:1])], [("foo", x), (x, "foo")]),
    (lambda a, b: np.tri(3, 4, a), [(1, 0)], [(1.5, 0), (True, 0)]),
    (lambda a, b: np.tril(a, b), [(square, 1)], [(square, 1.5)]),
    (lambda a, b: np.triu_indices_from(a, b), [(square, 1)], [(x, 1), (square, 0.5)]),
    (lambda a, b: np.hanning(a), [(5, 0), (0, 0)], [(1.1, 0), ("a", 0), (1j, 0)]),
    (lambda a, b: np.kaiser(a, b), [(5, 2.5), (5, 3)], [(5, "a"), (5.5, 1.0)]),
    (lambda a, b: np.hsplit(a, b), [(square, 3)], [(1, 2), ("abc", 2), (square, "abc")]),
    (lambda a, b: np.partition(a, b), [(ordered, 2)], [(4, 0), ("text", 0), (np.array(1.0), 0)]),
    (lambda a, b: np.nan_to_num(a), [(x, 0), (2.5, 0)], [("text", 0)]),
    (lambda a, b: np.fliplr(a), [(square, 0)], [(x, 0)]),
    (lambda a, b: np.trim_zeros(a), [(ordered, 0)], [(square, 0), (3, 0)]),
    (lambda a, b: np.sinc(a), [(x, 0), (0.5, 0)], [("text", 0)]),
    (lambda a, b: poly.polyadd(a, b), [(x, ordered), (x, (1.0, 2.0))], [("abc", x), (x, square)]),
    (lambda a, b: poly.polyint(a, b), [(x, 1)], [("abc", 1), (x, "abc")]),
]


def is_rejected(package, function, args, kind):
    try:
        package.njit(function)(*args)
    except kind as error:
        return error
    return None


def flat(value):
    return [part for item in value for part in flat(item)] if isinstance(value, (list, tuple)) else [np.asarray(value)]


for function, right, wrong in CALLS:
    for args in right:
        got, expected = flat(kjit.njit(function)(*args)), flat(function(*args))
        assert len(got) == len(expected), (function.__code__.co_names, args)
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=str(function.__code__.co_names))
    for i, args in enumerate(wrong):
        what = function.__code__.co_names, args
        assert i or is_rejected(numba, function, args, numba.TypingError), what
        error = is_rejected(kjit, function, args, kjit.ProgramError)
        assert error and error.line == function.__code__.co_firstlineno and error.file == __file__ and "^" in str(error), what
