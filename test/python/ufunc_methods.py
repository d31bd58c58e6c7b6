# RUN: %kjit-python %s
"""Features that functions of kjit.vectorize and kjit.guvectorize share with NumPy's ufuncs: attributes, methods,
options, and arrays of other libraries. The results are compared with np.hypot, which computes the same."""
import math
import os

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
generator = np.random.default_rng(seed)


def formula(a, b):
    return math.sqrt(a * a + b * b)


plain = kjit.vectorize(formula)
typed = kjit.vectorize(["float32(float32, float32)", "float64(float64, float64)"], identity=0)(formula)
every = {"without signatures": plain, "with signatures": typed}


@kjit.vectorize
def both(a, b):
    return a + b, a * b


@kjit.guvectorize(["void(float32[:], float32[:])", "void(float64[:], float64[:])"], "(n)->()")
def total(x, r):
    r[0] = 0
    for i in range(len(x)):
        r[0] += x[i]


def same(got, expected, what):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype, (seed, what, got, expected)
    assert np.allclose(got, expected, rtol=1e-5 if got.dtype.itemsize == 4 else 1e-12), (seed, what, got, expected)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


# ---- attributes ----

assert (plain.nin, plain.nout, plain.nargs, plain.ntypes, plain.types, plain.signature, plain.identity) == (2, 1, 3, 0, [], None, None)
assert (typed.nin, typed.nout, typed.nargs, typed.ntypes, typed.types, typed.signature) == (2, 1, 3, 2, ["ff->f", "dd->d"], None)
assert (both.nout, both.nargs) == (2, 4)
assert (total.nin, total.nout, total.nargs, total.ntypes, total.types, total.signature) == (1, 1, 2, 2, ["f->f", "d->d"], "(n)->()")

# ---- methods and options, in both forms ----

x, y = generator.random((3, 8)), generator.random(8)
mask, places = generator.random((3, 8)) < 0.5, generator.integers(0, 8, 6)
for name, f in every.items():
    for code in "fd":
        a, b = x.astype(code), y.astype(code)
        same(f(a, b), np.hypot(a, b), name)
        out = np.full((3, 8), 7, code)
        assert f(a, b, out) is out
        same(out, np.hypot(a, b), (name, "out by position"))
        out = np.full((3, 8), 7, code)
        f(a, b, out=out, where=mask)
        same(out, np.where(mask, np.hypot(a, b), np.full((3, 8), 7, code)), (name, "where"))
        same(f.reduce(a, axis=1, keepdims=True), np.hypot.reduce(a, axis=1, keepdims=True), (name, "keepdims"))
        same(f.reduce(a, None, keepdims=True), np.hypot.reduce(a, None, keepdims=True), (name, "keepdims of all"))
        same(f.reduce(a, 0, np.float32), np.hypot.reduce(a, 0, np.float32), (name, "dtype"))
        same(f.accumulate(a, 1, np.float64), np.hypot.accumulate(a, 1, np.float64), (name, "accumulate"))
        same(f.reduceat(a, places, axis=1), np.hypot.reduceat(a, places, axis=1), (name, "reduceat"))
        same(f.reduceat(a[0], places), np.hypot.reduceat(a[0], places), (name, "reduceat of a line"))
        out = np.empty((3, 6), code)
        assert f.reduceat(a, places, axis=1, out=out) is out
        same(out, np.hypot.reduceat(a, places, axis=1), (name, "reduceat with out"))
        same(f.outer(b, b), np.hypot.outer(b, b), (name, "outer"))
    refused(lambda: f.reduceat(y, [9]), IndexError, "index 9 out-of-bounds in formula.reduceat [0, 8)")
    refused(lambda: f(y, y, casting="all"), ValueError, "casting must be one of")
    small = np.empty(8, "f")
    f(y, y, out=small, casting="same_kind")
    refused(lambda: f(y, y, out=small, casting="safe"), TypeError, "formula")
    same(small, np.hypot(y, y).astype("f"), (name, "casting"))
own = kjit.array(x)
found = plain.reduceat(own, places, axis=1)
assert isinstance(found, kjit.Array)
same(found.to_host(), np.hypot.reduceat(x, places, axis=1), "reduceat of an array of kjit")
same(typed(np.arange(4), 2), np.hypot(np.arange(4), 2), "integers")
refused(lambda: typed(np.arange(4), 2, casting="no"), TypeError, "no matching signature of formula")
same(typed(y, y, dtype=np.float32, casting="same_kind"), np.hypot(y.astype("f"), y.astype("f")), "dtype of a call")
refused(lambda: typed(y, y, dtype=np.float32, casting="safe"), TypeError, "no matching signature of formula")
refused(lambda: total(np.arange(6).reshape(2, 3), casting="no"), TypeError, "no matching signature of total")
same(total(x, out=np.empty(3, "f")), x.sum(axis=1).astype("f"), "a smaller out of guvectorize")
refused(lambda: total(x, out=np.empty(3, "f"), casting="safe"), TypeError, "total: out has elements of type float32")

# ---- arrays of other libraries ----


class Labelled:
    """An array of another library, which handles calls of ufuncs itself."""

    def __init__(self, host):
        self.host = host

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        given = [each.host if isinstance(each, Labelled) else each for each in inputs]
        out = options.pop("out", None)
        made = getattr(ufunc, method)(*given, **options)
        if out is not None:
            out[0].host[...] = made
            return out[0]
        return Labelled(made)


class More(Labelled):
    """A subclass, which NumPy asks first."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "more", method


class Not:
    """An object that does not support ufuncs."""

    __array_ufunc__ = None


class Never:
    """An object that leaves all calls to other operands."""

    def __array_ufunc__(self, *inputs, **options):
        return NotImplemented


class Tagged(np.ndarray):
    """An array of NumPy with a protocol of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "tagged"


for name, f in every.items():
    made = f(Labelled(x), y)
    assert isinstance(made, Labelled), name
    same(made.host, np.hypot(x, y), (name, "another library"))
    same(f.reduce(Labelled(x), axis=1).host, np.hypot.reduce(x, axis=1), (name, "reduce of another library"))
    target = Labelled(np.empty((3, 8)))
    assert f(x, y, out=target) is target
    same(target.host, np.hypot(x, y), (name, "out of another library"))
    assert f(Labelled(x), More(y)) == ("more", "__call__") and f.accumulate(More(x)) == ("more", "accumulate")
    assert f(x, x.view(Tagged)) == "tagged"
    refused(lambda: f(x, Not()), TypeError, "operand 'Not' does not support ufuncs")
    refused(lambda: f(x, Never()), TypeError, "all returned NotImplemented from __array_ufunc__")
assert isinstance(total(Labelled(x)), Labelled)
