# RUN: %kjit-python %s
"""Every NumPy ufunc in kernels, compared with NumPy itself: special and random values of every type, in each front
end."""
import os
import sys

os.environ.setdefault("KJIT_DEVICE", "cpu")
import warnings

import kjit
import numpy as np
import seeds
from kjit import cuda, njit

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import share

warnings.simplefilter("ignore")
np.seterr(all="ignore")

# Ufuncs that kernels lack, each with its reason. The test tries every other ufunc of the installed NumPy.
MISSING = {
    "isnat": "kernels have no dates",
    "matmul": "it is a product of matrices and no function of elements",
    "matvec": "it is a product of matrices and no function of elements",
    "vecdot": "it is a product of vectors and no function of elements",
    "vecmat": "it is a product of matrices and no function of elements",
}
TYPES = [np.dtype(t) for t in "?bBhHiIqQefdFD"]
# Maximum difference of a math function from NumPy's, in units in the last place of the type in which both compute.
ULPS = 8


def values_of(dtype):
    rng = seeds.fresh_generator()
    if dtype.kind == "b":
        return np.array([False, True] * 10)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        near = [0, 1, 2, 3, 5, 7, 8, 31, limits.max, limits.max - 1, limits.min, limits.min + 1]
        near += [-1, -2, -3] if dtype.kind == "i" else []
        return np.concatenate([np.array(near, dtype), rng.integers(limits.min, limits.max, 12, dtype), rng.integers(0, 9, 8).astype(dtype)])
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        near = [0, 1, 2, 0.5, 1.5, 2.5, np.pi, np.inf, limits.max, limits.tiny, limits.eps, 7, 10]
        near = np.array(near, dtype)
        rest = rng.standard_normal(10).astype(dtype) * dtype.type(10)
        return np.concatenate([near, -near, rest, np.array([np.nan], dtype)])
    part = values_of(np.dtype({8: "f", 16: "d"}[dtype.itemsize]))
    rng.shuffle(part)
    ordinary = rng.standard_normal(24) + 1j * rng.standard_normal(24)
    some = part[:12].astype(dtype) + 0
    some.imag = part[12:24]
    return np.concatenate([some, ordinary.astype(dtype), np.array([0, 1, -1, 1j, -1j], dtype)])


def operands(ufunc, dtype):
    values = values_of(dtype)
    if ufunc.__name__ == "reciprocal" and dtype.kind in "iu":
        values = values[values != 0]  # C does not define the result
    if ufunc.nin == 1:
        return (values,)
    # NumPy has its own formula for powers of infinite complex numbers
    if dtype.kind == "c" and "power" in ufunc.__name__:
        values = values[-29:-5]
    a, b = (x.ravel().copy() for x in np.meshgrid(values, values))
    name = ufunc.__name__
    if name == "power" and dtype.kind in "iu":
        b = np.abs(b) % 9  # NumPy rejects negative exponents
    if name == "ldexp":
        b = seeds.fresh_generator().integers(-40, 40, len(b)).astype("i4")
    if name in ("left_shift", "right_shift") and dtype.kind in "iu":
        b = b % (dtype.itemsize * 8 + 3)
    if name in ("gcd", "lcm") and dtype.kind == "i":
        keep = (np.abs(a.astype(object)) <= np.iinfo(dtype).max) & (np.abs(b.astype(object)) <= np.iinfo(dtype).max)
        a, b = a[keep.astype(bool)], b[keep.astype(bool)]
    return a, b


def expected(ufunc, arguments):
    """Returns NumPy's results, and which of them Numba computes in single precision; or None if NumPy has no loop for
    the type."""
    try:
        result = ufunc(*arguments)
    except TypeError:
        return None
    results = result if isinstance(result, tuple) else (result,)
    # NumPy computes functions of small integers in half or single precision (divide: in double), Numba in single precision, and
    # kjit.jit in double.
    is_narrow = arguments[0].dtype.kind in "biu" and arguments[0].dtype.itemsize <= 2 and ufunc.__name__ != "float_power"
    is_single = tuple(is_narrow and r.dtype.kind == "f" for r in results)
    is_small = arguments[0].dtype.kind in "biu" and any(r.dtype.kind == "f" for r in results)
    if is_small:
        wide = ufunc(*(x.astype("d") if i == 0 or ufunc.__name__ != "ldexp" else x for i, x in enumerate(arguments)))
        wide = wide if isinstance(wide, tuple) else (wide,)
        results = tuple(w if r.dtype.kind == "f" else r for r, w in zip(results, wide))
    return results, is_single


# For two zeros with different signs, NumPy's result depends on the processor's vectors. For f16, NumPy returns the
# other zero.
ANY_ZERO = ("maximum", "minimum", "fmax", "fmin", "nextafter")


# Complex functions whose infinities and NaNs have to be NumPy's for infinite and NaN operands, too.
ALGEBRAIC = ("add", "subtract", "multiply", "divide", "true_divide", "square", "reciprocal")


def parts(values):
    return np.stack([np.asarray(values).real, np.asarray(values).imag])


def differ_specially(got, want, arguments):
    """At which positions a complex result is infinite or NaN and NumPy's is not, or the other way round. Finite
    operands whose products could overflow are left out: a fused product rounds them in another way."""
    tame = np.logical_and.reduce([~np.isfinite(p) | (np.abs(p) < 1e15) for x in arguments for p in parts(x)])
    g, w = parts(got), parts(want)
    alike = (np.isnan(g) == np.isnan(w)) & (np.isposinf(g) == np.isposinf(w)) & (np.isneginf(g) == np.isneginf(w))
    return tame & ~alike.all(axis=0)


def differ(name, got, want, arguments):
    """Returns the positions at which two results differ. Zeros must have NumPy's sign."""
    if want.dtype.kind in "biu":
        return got != want
    g, w = got.astype("G" if want.dtype.kind == "c" else "g"), want.astype("G" if want.dtype.kind == "c" else "g")
    limits = np.finfo(want.dtype)
    if want.dtype.kind == "c":
        # For finite operands, the result must be finite if and only if NumPy's result is.
        ordinary = np.logical_and.reduce([np.isfinite(x) for x in arguments])
        near = np.abs(g - w) <= 32 * limits.eps * np.maximum(np.abs(w), limits.tiny / limits.eps)
        wrong = ~np.where(np.isfinite(w) & np.isfinite(g), near, ~ordinary | (np.isfinite(w) == np.isfinite(g)))
        return wrong | differ_specially(got, want, arguments) if name in ALGEBRAIC else wrong
    size = np.maximum(np.abs(w), limits.tiny)
    if name.startswith("logaddexp"):  # the sum of a number and a logarithm has the rounding error of the larger one
        size = np.maximum(size, np.maximum(*(np.abs(x.astype("g")) for x in arguments)))
    near = np.abs(g - w) <= ULPS * limits.eps * size
    near |= np.isinf(g) & (np.sign(g) == np.sign(w)) & (np.abs(w) >= limits.max * (1 - ULPS * limits.eps))  # rounded up
    zeros = (g == 0) & (w == 0) & (name not in ANY_ZERO)
    return ~np.where(zeros, np.signbit(g) == np.signbit(w), near | (g == w) | np.isnan(g) & np.isnan(w))


def through_vectorize(ufunc, arguments, results):
    if len(results) > 1:
        return through_jit(ufunc, arguments, results)
    function = (lambda a: ufunc(a)) if ufunc.nin == 1 else (lambda a, b: ufunc(a, b))
    return (np.asarray(kjit.vectorize(function)(*arguments)),)


def kernels_of(ufunc, decorate):
    """Returns kernels that store one or two results of a ufunc with one or two operands."""
    if ufunc.nin == 1 and ufunc.nout == 1:

        def kernel(r, a):
            for i in range(len(r)):
                r[i] = ufunc(a[i])

    elif ufunc.nin == 2 and ufunc.nout == 1:

        def kernel(r, a, b):
            for i in range(len(r)):
                r[i] = ufunc(a[i], b[i])

    elif ufunc.nin == 1:

        def kernel(r, s, a):
            for i in range(len(r)):
                x, y = ufunc(a[i])
                r[i] = x
                s[i] = y

    else:

        def kernel(r, s, a, b):
            for i in range(len(r)):
                x, y = ufunc(a[i], b[i])
                r[i] = x
                s[i] = y

    return decorate(kernel)


def into_arrays(call, arguments, results):
    outputs = tuple(np.full_like(r, 7) for r in results)
    call(*outputs, *arguments)
    return outputs


def through_jit(ufunc, arguments, results):
    return into_arrays(kernels_of(ufunc, kjit.jit(block=1, grid=1)), arguments, results)


def through_njit(ufunc, arguments, results):
    return into_arrays(kernels_of(ufunc, njit), arguments, results)


def through_cuda(ufunc, arguments, results):
    return into_arrays(kernels_of(ufunc, cuda.jit)[1, 1], arguments, results)


WAYS = [through_vectorize, through_jit, through_njit, through_cuda]
choice = seeds.fresh_choice()
names = sorted({thing.__name__ for thing in vars(np).values() if isinstance(thing, np.ufunc)})
cases = [(name, dtype) for name in names if name not in MISSING for dtype in TYPES]
tried, wrong = set(), []
for name, dtype in share.share_of(cases, "ufuncs"):
    ufunc = getattr(np, name)
    arguments = operands(ufunc, dtype)
    known = expected(ufunc, arguments)
    if known is None:
        continue
    results, is_single = known
    if name == "sign" and dtype.kind == "c" and int(np.__version__.split(".")[0]) < 2:
        continue  # kernels have what NumPy has from 2.0 on: a / abs(a)
    if name == "spacing" and dtype == np.float16:
        continue  # NumPy's own of f16 is the distance to the other side for negative numbers
    tried.add(name)
    ways = [choice.choice(WAYS)] if share.given_share() else WAYS
    for way in ways:
        try:
            got = way(ufunc, arguments, results)
        except Exception as error:
            wrong.append(f"{name} {dtype} {way.__name__}: {type(error).__name__}: {str(error)[:400]}")
            continue
        for one, want, single in zip(got, results, is_single):
            is_numbas = single and way in (through_njit, through_cuda)
            if is_numbas:
                want = np.spacing(arguments[0].astype("f4")) if name == "spacing" else want.astype("f4")
            wrong_here = differ(name, one.astype(want.dtype), want, arguments)
            if is_numbas:  # the value has been rounded to single precision
                wrong_here |= (one.astype("f4") != one) & ~np.isnan(one)
            bad = np.flatnonzero(wrong_here)
            if len(bad):
                at = bad[0]
                wrong.append(
                    f"{name} {dtype} {way.__name__}: {len(bad)} of {len(want)} differ, {name}"
                    f"({', '.join(repr(x[at]) for x in arguments)}) = {one[at]!r}, NumPy {want[at]!r}"
                )
print("\n".join(wrong))
print(f"{len(tried)} ufuncs, {len(wrong)} wrong")
assert not wrong and tried
