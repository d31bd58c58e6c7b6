# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Zeros and numbers near 0, with NumPy as the judge: the sign of sums and means of zeros, the sign of functions of zeros, and the cosine of
small angles, which is exactly 1 as far as the exact cosine rounds to 1."""
import kjit
import kjit.numpy as knp
import numpy as np
import seeds

TYPES = (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def signs(x):
    x = np.asarray(x.to_host() if hasattr(x, "to_host") else x)
    return [np.signbit(part).tolist() for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]


def check(own, expected, what):
    assert signs(own) == signs(expected), (what, own, expected)


# ---- sums start with 0.0, and cumulative sums with the first element ----

FOLDS = "sum mean nansum nanmean prod nanprod max min median average cumsum add.reduce add.accumulate"


def fold_of(space, name):
    for part in name.split("."):
        space = getattr(space, part)
    return space


for dtype in TYPES:
    is_complex = np.dtype(dtype).kind == "c"
    for count in (1, 2, 3, 8, 100, 5000, 100000):
        host = np.full(count, -0.0, dtype)
        if is_complex:
            host.imag = -0.0
        x = knp.asarray(host, copy=True)
        for name in FOLDS.split():
            if is_complex and name in ("max", "min", "median", "prod", "nanprod"):
                continue  # the signs of products depend on the order of the multiplications
            check(fold_of(np, name)(x), fold_of(np, name)(host), (name, dtype, count))
            if name in ("sum", "mean", "prod", "max", "min"):
                check(getattr(x, name)(), getattr(host, name)(), (name, dtype, count, "method"))
        check(kjit.reduce(x), np.sum(host), (dtype, count, "kjit.reduce"))
        check(kjit.reduce(x, "mean"), np.mean(host), (dtype, count, "kjit.reduce mean"))
        check(kjit.reduce_several(x, ("add", "mean"))[0], np.sum(host), (dtype, count, "kjit.reduce_several"))
        check(kjit.reduce_several(x, ("count_nonzero", "mean"))[1], np.mean(host), (dtype, count, "kjit.reduce_several mean"))
        check(kjit.scan(x), np.cumsum(host), (dtype, count, "kjit.scan"))
        check(knp.sum(x + x), np.sum(host + host), (dtype, count, "a sum of an expression"))
        check(knp.sum(x, initial=dtype(-0.0)), np.sum(host, initial=dtype(-0.0)), (dtype, count, "initial"))
    for shape in ((1, 5), (5, 1), (3, 4), (2, 3, 4), (300, 200), (0, 3)):
        host = np.full(shape, -0.0, dtype)
        x = knp.asarray(host, copy=True)
        for axis in (0, 1, -1, (0, 1), None):
            for name in ("sum", "mean") if host.size else ("sum",):
                check(getattr(knp, name)(x, axis=axis), getattr(np, name)(host, axis=axis), (name, dtype, shape, axis))
        mask = np.arange(host.size).reshape(shape) % 2 == 0
        check(np.add.reduce(x, axis=0, where=knp.asarray(mask)), np.add.reduce(host, axis=0, where=mask), (dtype, shape, "where="))
        if host.size:
            check(x[knp.asarray(mask)].sum(), host[mask].sum(), (dtype, shape, "a selection by a mask"))

# ---- functions of zeros, and the cosine near 0 ----

ODD = "sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 log1p cbrt sqrt floor ceil trunc rint negative absolute"
for dtype in (np.float32, np.float64):
    for count in (1, 3, 16, 100, 20000):
        host = np.where(np.arange(count) % 3 == 0, -0.0, 0.0).astype(dtype)
        for name in (*ODD.split(), "cos", "cosh", "exp"):
            own = getattr(knp, name)(knp.asarray(host, copy=True))
            check(own, getattr(np, name)(host), (name, dtype, count))
            assert np.array_equal(own.to_host(), getattr(np, name)(host)), (name, dtype, count)


@kjit.jit
def cosines(r, x):
    for i in kjit.grid_range(len(x)):
        r[i] = kjit.cos(x[i])


@kjit.jit
def cosines_apart(r, x):  # each thread computes one element, without vectors
    i = kjit.grid(1)
    if i < len(x):
        r[i] = kjit.cos(x[i])


# Taylor's series: 1 - x^2 / 2 <= cos(x) <= 1, and the numbers next to 1 are 2^-24 and 2^-53 below it.
for dtype, largest in ((np.float32, 2.0**-12), (np.float64, 2.0**-26.5)):
    generator = seeds.fresh_generator()
    for count in (1, 7, 50, 5000):
        exponents = generator.uniform(-30, 0, count)
        host = (largest * 2.0**exponents * generator.choice([-1, 1], count)).astype(dtype)
        host[0] = np.nextafter(dtype(largest), dtype(0))
        for x in (host, np.repeat(host, 2)[::2]):
            own = knp.asarray(x, copy=True) if x.flags.c_contiguous else knp.asarray(np.repeat(host, 2))[::2]
            results = [np.empty(count, dtype), np.empty(count, dtype), knp.cos(own).to_host(), (knp.cos(own) * 1).to_host()]
            cosines(results[0], x)
            cosines_apart[(count + 31) // 32, 32](results[1], x)
            for found in results:
                assert (found == 1).all(), (dtype, count, x[found != 1][:3], found[found != 1][:3])
    # above this range, the error stays below the documented 4 units
    host = (largest * 2.0 ** generator.uniform(0, 12, 5000)).astype(dtype)
    wide = np.cos(host.astype(np.longdouble))
    error = np.abs(knp.cos(knp.asarray(host)).to_host() - wide) / np.finfo(dtype).epsneg
    assert error.max() < 4, (dtype, error.max())
print("ok")
