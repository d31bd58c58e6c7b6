# REQUIRES: numba
# RUN: %numba-python %s
"""Arguments of NumPy functions in njit functions: a wrong type is a compilation error, as in Numba, and correct types
are accepted. The results are compared with NumPy's, and the first wrong argument of each function with Numba's."""
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
    (lambda a, b: np.zeros(a, "f4"), [(3, 0), ((2, 3), 0)], []),
    (lambda a, b: np.zeros(a, b), [(3, np.float32)], [(3, "f4")]),
    (lambda a, b: np.ones(a, dtype=b), [(3, np.int8)], [(3, "int8")]),
    (lambda a, b: np.full(a, 2, dtype="ABCDEF"), [], [(3, 0)]),
    (lambda a, b: np.zeros_like(a, b), [(x, np.int32)], [(x, "int32")]),
    (lambda a, b: np.empty(), [], [(0, 0)]),
    (lambda a, b: np.arange(stop=a), [], [(3, 0)]),
    (lambda a, b: np.array(a, b), [((1, 2), np.float32)], [(5, 4), (None, np.float32)]),
    (lambda a, b: np.around(a, b), [(x, 1), (2.25, 1)], [(None, 1)]),
    (lambda a, b: np.ascontiguousarray(a), [(square.T, 0), (2.5, 0)], [(None, 0)]),
    (lambda a, b: np.broadcast_arrays(a, b), [(x, np.ones((2, 4)))], [(x, "text")]),
    (lambda a, b: np.broadcast_shapes(a, b), [((1, 2), (3, 1)), (3, (2, 1))], [((1, 2), ("text",)), (3.5, 1)]),
    (lambda a, b: np.broadcast_to(a, b), [(x, (2, 4)), (5.0, ())], [(x, ()), (np.zeros(1), ())]),
    (lambda a, b: np.clip(a, b, 2), [(x, 1), (x, None)], [(None, 1), (x, "text")]),
    (lambda a, b: np.concatenate(a), [((x, ordered), 0)], [((x, square), 0), ((np.array(1.0), np.array(2.0)), 0)]),
    (lambda a, b: np.stack(a), [((x, x), 0)], [((x, 1), 0)]),
    (lambda a, b: np.hstack(a), [((x, ordered), 0)], [((x, 1), 0)]),
    (lambda a, b: np.diag(a, b), [(x, 1), (square, 0)], [(None, 0), (np.ones((2, 2, 2)), 0)]),
    (lambda a, b: np.expand_dims(a, b), [(x, 0), (x, 1)], [("text", 0), (x, "text")]),
    (lambda a, b: np.frombuffer(a), [(x, 0)], [(None, 0)]),
    (lambda a, b: np.resize(a, b), [(x, (2, 3)), (x, 5)], [("abc", 2), (x, "abc")]),
    (lambda a, b: np.shape(a), [(square, 0), (1, 0)], [("a", 0)]),
    (lambda a, b: np.size(a), [(square, 0), (1.5, 0)], [("a", 0)]),
    (lambda a, b: np.take(a, b), [(x, 1), (x, (0, 2)), (x, np.array([[1, 2]]))], [(x, 1.5), (x, (0.5, 1.0))]),
    (lambda a, b: a.take(b), [(x, 1), (x, (0, 2))], [(x, 1.5), (x, (0.5, 1.0))]),
    (lambda a, b: a.argmax(b), [(square, 0), (square, 1)], [(square, "text")]),
    (lambda a, b: np.where(a, b, 3), [(x > 1, 2), (x > 1, x)], [(None, 2), (1, "text")]),
    (lambda a, b: np.argmax(a, b), [(square, 0)], [(square, "text")]),
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
