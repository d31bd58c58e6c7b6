# RUN: %kjit-python %s
# RUN: %numba-python %s
"""reduce, accumulate, reduceat and at of ufuncs made by kjit.vectorize apply the function to one element after the other, whether it is
associative or not. NumPy's ufuncs are the judge, and numba.vectorize where Numba is installed."""
import importlib.util
import itertools
import os

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numpy as np  # noqa: E402

np.seterr(all="ignore")

numba = __import__("numba") if importlib.util.find_spec("numba") else None
KINDS = "int64(int64, int64)", "float64(float64, float64)"


def subtract(a, b):
    return a - b


def divide(a, b):
    return a / b


def mixed(a, b):
    return a * 3 - b


def makers():
    """Yields the function `vectorize` of each package, kjit's last."""
    return [numba.vectorize, kjit.vectorize] if numba else [kjit.vectorize]


def outcome(call):
    try:
        return call()
    except Exception as error:
        return ValueError if isinstance(error, ValueError) else TypeError if isinstance(error, (TypeError, IndexError)) else type(error)


def same(got, expected, what):
    if isinstance(expected, type) or isinstance(got, type):
        assert got is expected, (what, got, expected)
        return
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape, (what, got.dtype, expected.dtype, got.shape, expected.shape)
    np.testing.assert_array_equal(got, expected, str(what))


def compare(calls, what, judge=None):
    """Compares the outcomes of calls. The judge is NumPy's outcome if it is given, and else Numba's."""
    outcomes = [outcome(call) for call in calls]
    for expected in ([outcome(judge)] if judge else []) + outcomes[:-1]:
        same(outcomes[-1], expected, what)


def arrays():
    yield from (np.arange(n, dtype=kind) for n in (1, 2, 7, 1000, 70000) for kind in (np.int64, np.float64))
    yield np.arange(60).reshape(3, 4, 5)
    yield np.arange(60.0).reshape(3, 4, 5).transpose(2, 0, 1)
    yield np.arange(40.0)[::-2]
    yield from (np.zeros(shape) for shape in ((0,), (3, 0), (0, 3)))


# ---- reduce, accumulate, reduceat ----

for function, of_numpy in ((subtract, np.subtract), (divide, np.true_divide), (mixed, None)):
    made = [make([KINDS[1]] if function is divide else list(KINDS))(function) for make in makers()]
    for i, x in enumerate(arrays()):
        x = x.astype(float) if function is divide else x
        for axis in [None, 0, -1, 1, (0,), (0, 1), (0, 0)]:
            judge = (lambda: of_numpy.reduce(x, axis=axis)) if of_numpy else None
            compare([lambda f=f: f.reduce(x, axis=axis) for f in made], (function.__name__, "reduce", i, axis), judge)
            judge = (lambda: of_numpy.reduce(x, axis=axis, initial=2, keepdims=True)) if of_numpy else None
            compare([lambda f=f: f.reduce(x, axis=axis, initial=2, keepdims=True) for f in made], (function.__name__, "initial", i, axis), judge)
        for axis in (0, x.ndim - 1):
            judge = (lambda: of_numpy.accumulate(x, axis)) if of_numpy else None
            compare([lambda f=f: f.accumulate(x, axis) for f in made], (function.__name__, "accumulate", i, axis), judge)
        if x.size and x.ndim == 1:
            ends = [0, x.size // 2, 0]
            judge = (lambda: of_numpy.reduceat(x, ends)) if of_numpy else None
            compare([lambda f=f: f.reduceat(x, ends) for f in made], (function.__name__, "reduceat", i), judge)

# Without an identity a call reduces one axis; "reorderable" and numbers allow several.
x = np.arange(24).reshape(2, 3, 4)
for identity, axis in itertools.product((None, "reorderable", 0), (None, (0, 2), ())):
    made = [make(list(KINDS), identity=identity)(subtract if identity is None else (lambda a, b: a + b)) for make in makers()]
    compare([lambda f=f: f.reduce(x, axis=axis) for f in made], ("identity", identity, axis))
out = np.zeros(4, "f4")
kjit.vectorize(["float32(float32, float32)"])(subtract).reduce(np.ones((3, 4), "f4"), out=out)
same(out, np.full(4, -1, "f4"), "out")

# Arrays of kjit, device arrays, and result arrays of both.
f = kjit.vectorize(list(KINDS))(subtract)
for n, of in itertools.product((2, 7, 1000), (kjit.array, kjit.cuda.to_device)):
    x, ends = np.arange(n), [0, n // 2]
    same(f.reduce(of(x)), np.subtract.reduce(x), (n, of, "reduce"))
    same(f.accumulate(of(x)), np.subtract.accumulate(x), (n, of, "accumulate"))
    same(f.reduceat(kjit.array(x), ends), np.subtract.reduceat(x, ends), (n, "reduceat"))
    out, changed, own = of(np.zeros(n, np.int64)), of(x), x.copy()
    assert f.accumulate(x, out=out) is out
    same(np.asarray(out), np.subtract.accumulate(x), (n, of, "out"))
    f.at(changed, [1, 1, -1], 5)
    np.subtract.at(own, [1, 1, -1], 5)
    same(np.asarray(changed), own, (n, of, "at"))
for axis in (None, (0, 1), ()):
    compare([lambda: f.accumulate(np.ones((2, 3)), axis)], ("accumulate", axis), lambda: np.subtract.accumulate(np.ones((2, 3)), axis))
assert outcome(lambda: f.at([1, 2], 0, 1)) is TypeError

# A reduction whose elements have another type than its result.
made = [make(["float64(float64, int64)"])(subtract) for make in makers()]
compare([lambda f=f: f.reduce(np.arange(5), dtype=np.float64) for f in made], "elements of another type")

# ---- at ----

PLACES = [
    -5, 5, -6, np.array([-5, 4, -1], np.int8), np.int16(-2), np.array(3), np.array([[0, 1], [1, -1]]), True, np.array([1, 9]),
    [1, 1, 2], np.array([3, -1, 3]), 2, slice(1, 4), slice(None, None, -2), Ellipsis, np.array([True, False, True, False, True]),
    [], (np.array([0, 0]),), [7], np.array([0], np.uint8),
]  # fmt: skip
for function, of_numpy in ((subtract, np.subtract), (lambda a, b: a + b, np.add)):
    made = [make(list(KINDS))(function) for make in makers()]
    for kind, (i, places), value in itertools.product((np.int64, np.float64, np.int32), enumerate(PLACES), (2, 1.5, "array")):
        def update(change):
            x = np.arange(5, dtype=kind)
            given = x[places].astype(float) * 2 if value == "array" else value
            change(x, places, given)
            return x

        is_safe = np.can_cast(np.float64 if value in (1.5, "array") else np.int64, kind, "same_kind")  # NumPy rejects other casts
        judge = (lambda: update(of_numpy.at)) if is_safe else None
        compare([lambda f=f: update(f.at) for f in made], (of_numpy.__name__, "at", kind, i, value), judge)
x = np.zeros(3, np.int64)
kjit.vectorize(list(KINDS))(mixed).at(x, np.zeros(40, np.int64), np.arange(40))
expected = 0
for i in range(40):
    expected = expected * 3 - i
assert x[0] == (expected + 2**63) % 2**64 - 2**63 and not x[1:].any(), x

# Parts of arrays of more dimensions, in memory of any order.
made = [make(list(KINDS))(subtract) for make in makers()]
for places, value in (((slice(None), [1, 2, 1]), np.arange(12).reshape(4, 3)), ((0, [1, 2, 1]), np.array([1, 2, 3])), (([1, 0, 1], 0), 7), ((1, 2), 5)):
    for turned in (False, True):

        def update_parts(change):
            x = np.arange(16).reshape(4, 4)[:, ::2 if turned else 1].repeat(2 if turned else 1, axis=1)
            x = x.T if turned else x
            change(x, places, value)
            return x

        compare([lambda f=f: update_parts(f.at) for f in made], ("at", places, turned), lambda: update_parts(np.subtract.at))

# Functions of one element, and compiled code.
negative = [make(["int64(int64)"])(lambda a: -a) for make in makers()]


def update_alone(change):
    x = np.arange(6)
    change(x, [1, 1, 2, 5])
    return x


compare([lambda f=f: update_alone(f.at) for f in negative], "one element", lambda: update_alone(np.negative.at))
for make, package in zip(makers(), [numba, kjit] if numba else [kjit]):
    f = make()(lambda a, b: a**b)
    for change in (package.njit(lambda x, places, value: f.at(x, places, value)), f.at):
        x = np.arange(5)
        change(x, np.array([1, 2, 3, 2]), 3.5)
        same(x, np.array([0, 1, 4414, 46, 4]), "results are converted to the type of the array")

# ---- guvectorize: the dimensions of result arrays, and results that come before an exception ----


def scaled(x, n, r):
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError("negative")
        r[i] = x[i] * n


made = [package.guvectorize(["void(int64[:], int64, int64[:])"], "(n),()->(n)")(scaled) for package in ([numba] if numba else []) + [kjit]]
shapes = [(4,), (2, 4), (3,), (1, 4), (2, 3), (3, 4), (1, 2, 4), ()]
for given, wanted, factor in itertools.product(shapes, shapes, (2, np.array([3, 5]))):

    def filled(f):
        x, out = np.arange(np.prod(given, dtype=int)).reshape(given), np.full(wanted, -1)
        f(x, factor, out)
        return out

    compare([lambda f=f: filled(f) for f in made], ("guvectorize", given, wanted, factor))
pair = kjit.guvectorize(["void(int64[:], int64[:], int64[:])"], "(n)->(m),(m)")(lambda x, r, s: None)
assert outcome(lambda: pair(np.zeros(3, int), np.zeros(2, int), np.zeros(4, int))) is ValueError  # m has two extents
for f in made:
    for x, wanted in (([1, 2, -3, 4], [2, 4, 9, 9]), ([-1, 2, 3, 4], [9, 9, 9, 9])):
        out = np.full(4, 9)
        assert outcome(lambda: f(np.array(x), 2, out)) is ValueError, x
        assert out.tolist() == wanted, (x, out)
