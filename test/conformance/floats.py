import math

import numpy as np
from rows import row

FLOATS = {np.float32: 2e-6, np.float64: 2e-13}


def each(function, *columns):
    """An element-wise reference in double precision, from Python's own math."""
    return np.array([function(*[float(v) for v in values]) for values in zip(*columns)])


UNARY = [math.sin, math.cos, math.tan, math.atan, math.sinh, math.cosh, math.tanh, math.asinh, math.exp, lambda v: 2.0**v, math.expm1, math.erf, math.erfc, lambda v: 10.0**v,
         lambda v: math.copysign(abs(v) ** (1 / 3), v), abs, math.floor, math.ceil, math.trunc, lambda v: math.copysign(math.floor(abs(v) + 0.5), v), np.rint, math.sin, math.cos]
POSITIVE = [math.log, math.log2, math.log10, math.log1p, math.sqrt, lambda v: 1 / math.sqrt(v), math.lgamma, math.gamma, lambda v: math.acosh(v + 1), lambda v: math.frexp(v)[1] - 1, lambda v: math.frexp(v)[1] - 1]
UNIT = [math.asin, math.acos, math.atanh]
BINARY = [math.atan2, math.hypot, lambda x, y: abs(x) ** y, math.copysign, lambda x, y: max(x - y, 0.0), min, max]


@row("70, 75 math functions of one argument on linspace")
def _(r, rng):
    for dtype, tolerance in FLOATS.items():
        k = np.dtype(dtype).name
        shift = dtype(rng.uniform(0, 0.01))
        x = np.linspace(-5, 5, 50).astype(dtype) + shift
        p = np.linspace(0.1, 20, 50).astype(dtype) + shift
        u = np.linspace(-0.98, 0.98, 50).astype(dtype) + shift
        r.arrays_of(**{f"x{k}": x, f"p{k}": p, f"u{k}": u, f"ox{k}": np.zeros((len(UNARY), 50), dtype), f"op{k}": np.zeros((len(POSITIVE), 50), dtype), f"ou{k}": np.zeros((3, 50), dtype)})
        r.launch("unary", "1, 64", f"ox{k}", f"x{k}")
        r.launch("positive", "1, 64", f"op{k}", f"p{k}")
        r.launch("unit", "1, 64", f"ou{k}", f"u{k}")
        r.expect(f"ox{k}", np.stack([each(f, x) for f in UNARY]), rtol=tolerance, atol=tolerance / 10)
        r.expect(f"op{k}", np.stack([each(f, p) for f in POSITIVE]), rtol=tolerance, atol=tolerance)
        r.expect(f"ou{k}", np.stack([each(f, u) for f in UNIT]), rtol=tolerance, atol=tolerance)


@row("70 math functions of two arguments")
def _(r, rng):
    for dtype, tolerance in FLOATS.items():
        k = np.dtype(dtype).name
        x, y = np.linspace(-5, 5, 50).astype(dtype), rng.uniform(-3, 3, 50).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"o{k}": np.zeros((len(BINARY), 50), dtype)})
        r.launch("binary", "1, 64", f"o{k}", f"x{k}", f"y{k}")
        r.expect(f"o{k}", np.stack([each(f, x, y) for f in BINARY]), rtol=tolerance)


@row("70, 71, 72 exact functions with special values")
def _(r, rng):
    for dtype in FLOATS:
        k = np.dtype(dtype).name
        special = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -7.25, 1e-40, np.inf, -np.inf, np.nan, 3.5e10], dtype)
        more = (rng.standard_normal(12) * 100).astype(dtype)
        values = np.concatenate([special, more])
        x, y = np.repeat(values, len(values)), np.tile(values, len(values))
        with np.errstate(all="ignore"):
            remainder = each(lambda a, b: math.nan if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0 else math.remainder(a, b), x, y)
            wanted = [np.fmod(x, y), remainder.astype(dtype), np.nextafter(x, y), np.fmin(x, y), np.fmax(x, y), x / y, x / y]
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"o{k}": np.zeros((len(wanted), len(x)), dtype), f"v{k}": values, f"t{k}": np.zeros((4, len(values)), np.int32)})
        r.launch("exact_binary", "2, 128", f"o{k}", f"x{k}", f"y{k}")
        r.launch("tests", "1, 32", f"t{k}", f"v{k}")
        r.expect(f"o{k}", np.stack(wanted))
        finite = np.isfinite(values)
        # the sign of a NaN may be anything
        r.verify([f"t{k}"], lambda t, values=values, finite=finite: np.testing.assert_array_equal(np.where(np.isnan(values), [[1], [0], [0], [0]], t), [np.isnan(values), np.isinf(values), finite, np.signbit(values) & ~np.isnan(values)]))


@row("63 % and // of floats as in Python")
def _(r, rng):
    for dtype in FLOATS:
        k = np.dtype(dtype).name
        a = np.concatenate([[-7.5, 7.5, -1, 5.25, 0.0, -0.0, 6, -6, 1e10], rng.standard_normal(60) * 50]).astype(dtype)
        b = np.concatenate([[3, -3, 4, 2, 3, 3, -3, 3, 7.5], np.where(rng.integers(0, 2, 60), 1, -1) * rng.uniform(0.5, 9, 60)]).astype(dtype)
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"f{k}": np.zeros(len(a), dtype), f"m{k}": np.zeros(len(a), dtype)})
        r.launch("python_division", "1, 64", f"f{k}", f"m{k}", f"a{k}", f"b{k}")
        # fmod is exact; the correction to the divisor's sign adds one rounding
        rem = np.fmod(a, b)
        mod = np.where((rem != 0) & ((rem < 0) != (b < 0)), rem + b, np.where(rem == 0, np.copysign(dtype(0), b), rem)).astype(dtype)
        r.expect(f"m{k}", mod)
        r.expect(f"f{k}", each(lambda x, y: x // y, a, b))
    r.arrays_of(a=np.array([-7.5, 7.5, -1, 5.25]), b=np.array([3.0, -3, 4, 2]), f=np.zeros(4), m=np.zeros(4))
    r.launch("python_division", "1, 32", "f", "m", "a", "b")
    r.expect("m", [1.5, -1.5, 3.0, 1.25])
    r.expect("f", [-3, -3, -1, 2])


@row("71 modf, frexp, ldexp")
def _(r, rng):
    for dtype in FLOATS:
        k = np.dtype(dtype).name
        x = np.concatenate([[np.inf, -np.inf, np.nan, 3.1415, 0.785375, -2.75, 0.0, -0.0, 1e-40, 1024.0], rng.standard_normal(20) * 1000]).astype(dtype)
        n = np.concatenate([[2, 3, 1, 0, 2, -3, 5, 5, 10, -1500], rng.integers(-20, 20, 20)]).astype(np.int32)
        names = {"frac": dtype, "whole": dtype, "mantissa": dtype, "exponent": np.int32, "scaled": dtype}
        r.arrays_of(**{f"x{k}": x, f"n{k}": n}, **{name + k: np.zeros(len(x), t) for name, t in names.items()})
        r.launch("parts", "1, 32", *[name + k for name in ("frac", "whole", "mantissa", "exponent")], f"x{k}")
        r.launch("scale", "1, 32", f"scaled{k}", f"x{k}", f"n{k}")
        frac, whole = np.modf(x)
        r.expect(f"frac{k}", frac)
        r.expect(f"whole{k}", whole)
        mantissa, exponent = np.frexp(x)
        r.expect(f"mantissa{k}", mantissa)
        finite = np.isfinite(x)
        r.expect(f"exponent{k}", np.where(finite, exponent, 0))
        with np.errstate(all="ignore"):
            r.expect(f"scaled{k}", np.ldexp(x, n))
    r.arrays_of(q=np.array([0.785375]), two=np.array([2], np.int32), s=np.zeros(1))
    r.launch("scale", "1, 1", "s", "q", "two")
    r.expect("s", [3.1415])


@row("15, 64 fma, cbrt, division by zero, literals, powers")
def _(r, rng):
    for dtype, tolerance in FLOATS.items():
        k = np.dtype(dtype).name
        r.arrays_of(**{f"x{k}": np.array([2, 6], dtype), f"o{k}": np.zeros(10, dtype)})
        r.launch("literals", "1, 1", f"o{k}", f"x{k}")
        r.expect(f"o{k}", [10, 2 ** (1 / 3), 6 ** (1 / 3), np.inf, -np.inf, np.pi, 2 * np.pi, 4, 0.25, 6**0.5], rtol=tolerance)


@row("fma rounds once; @strict rounds twice")
def _(r, rng):
    x, y = rng.standard_normal(500).astype(np.float32), rng.standard_normal(500).astype(np.float32)
    z = (-x * y).astype(np.float32)
    r.arrays_of(x=x, y=y, z=z, once=np.full(500, np.nan, np.float32), twice=np.full(500, np.nan, np.float32))
    r.launch("fused", "", "once", "x", "y", "z")
    r.launch("unfused", "", "twice", "x", "y", "z")
    # the product of two f32 numbers is exact in f64, and so is this sum, because the terms nearly cancel
    r.expect("once", (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(np.float32))
    r.expect("twice", np.zeros(500, np.float32))


@row("17 rint and round")
def _(r, rng):
    x = np.array([-3, -2.5, -2.25, -1.5, 1.5, 2.25, 2.5, 2.75])
    for dtype in FLOATS:
        k = np.dtype(dtype).name
        r.arrays_of(**{f"x{k}": x.astype(dtype), f"o{k}": np.zeros((2, 8), dtype)})
        r.launch("rounding", "1, 8", f"o{k}", f"x{k}")
        r.expect(f"o{k}", [[-3, -2, -2, -2, 2, 2, 2, 3], [-3, -3, -2, -2, 2, 2, 3, 3]])


@row("72 min and max of mixed types")
def _(r, rng):
    for dtype in FLOATS:
        for scalar in ("2f32", "2f64", "2"):
            k = f"{np.dtype(dtype).name}_{scalar}"
            a = np.arange(5).astype(dtype) + dtype(0.5)
            r.arrays_of(**{f"a{k}": a, f"l{k}": np.zeros(5), f"h{k}": np.zeros(5)})
            r.launch("minmax", "1, 32", f"l{k}", f"h{k}", f"a{k}", scalar)
            r.expect(f"l{k}", np.minimum(a, 2))
            r.expect(f"h{k}", np.maximum(a, 2))


@row("73 powers, 74 in-place division, 75 a device function")
def _(r, rng):
    r.arrays_of(a=np.arange(10.0), p=np.zeros((3, 10)), h32=np.ones(10, np.float32), h64=np.ones(10))
    r.launch("squares", "1, 32", "p", "a", "2")
    r.launch("halve", "1, 32", "h32")
    r.launch("halve", "1, 32", "h64")
    r.expect("p", np.tile(np.arange(10.0) ** 2, (3, 1)), rtol=1e-15)
    r.expect("h32", np.full(10, 0.5))
    r.expect("h64", np.full(10, 0.5))
    x, y, z = np.arange(0, 200, 2, dtype=np.int32), np.arange(50, 150, dtype=np.int32), np.arange(15, 115, dtype=np.int32)
    r.arrays_of(x=x, y=y, z=z, s=np.zeros(100, np.int32))
    r.launch("sums_of_differences", "", "s", "x", "y", "z")
    r.expect("s", abs(x - y) + z)


@row("integers with floats; weak literals")
def _(r, rng):
    i, f, d = rng.integers(-1000, 1000, 40).astype(np.int32), rng.standard_normal(40).astype(np.float32), rng.standard_normal(40)
    r.arrays_of(i=i, f=f, d=d, out=np.zeros((4, 40)))
    r.launch("mixed", "1, 64", "out", "i", "f", "d")
    r.expect("out", np.stack([(i.astype(np.float32) * f).astype(np.float64), f.astype(np.float64) + d, i / 2.0, (f * np.float32(0.1)).astype(np.float64)]))


@row("bitcast")
def _(r, rng):
    for dtype, bits in ((np.float32, np.uint32), (np.float64, np.uint64), (np.float32, np.int32)):
        k = np.dtype(bits).name
        x = np.concatenate([rng.standard_normal(30), [0.0, -0.0, np.inf, -np.inf, 1e-42]]).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"u{k}": np.zeros(35, bits), f"b{k}": np.zeros(35, dtype)})
        r.launch("bits_of", "1, 64", f"u{k}", f"b{k}", f"x{k}")
        r.expect(f"u{k}", x.view(bits))
        r.expect(f"b{k}", x)


@row("63 % and fmod of every pair of special and random values: huge, subnormal, zeros of both signs, infinities, NaN")
def _(r, rng):
    for dtype in (np.float32, np.float64):
        k, info = np.dtype(dtype).name, np.finfo(dtype)
        tiny = info.smallest_subnormal
        special = np.array([0, 1, 3, 7.5, info.max, info.max / 3, info.tiny, tiny, tiny * 71362, np.inf, np.nan, 2.0**26, 1e30, 1e-30], dtype)
        values = np.concatenate([special, -special, (rng.standard_normal(12) * 10.0 ** rng.integers(-30, 30, 12)).astype(dtype)])
        x, y = (a.ravel() for a in np.meshgrid(values, values))
        with np.errstate(all="ignore"):
            exact = np.fmod(x, y)
            # CPython's rule: the result has the sign of the divisor, also if it is zero
            mod = np.where((exact != 0) & ((exact < 0) != (y < 0)), exact + y, exact)
            mod = np.where(exact == 0, np.copysign(dtype(0), y), mod)
        zeros = np.zeros(len(x), dtype)
        r.arrays_of(**{"rx" + k: x, "ry" + k: y, "rmod" + k: zeros, "rfloor" + k: zeros.copy(), "rexact" + k: zeros.copy()})
        r.launch("remainders", "", "rmod" + k, "rfloor" + k, "rexact" + k, "rx" + k, "ry" + k)
        r.expect("rexact" + k, exact)
        r.expect("rmod" + k, mod)


@row("the low bits of a float stored as a 16-bit integer")
def _(r, rng):
    x = np.concatenate([[75.5, -3.25, 0, 8388609], rng.standard_normal(60) * 1e6]).astype(np.float32)
    r.arrays_of(bits=np.zeros(len(x), np.uint16), bx=x)
    r.launch("low_bits", "2, 64", "bits", "bx")
    r.expect("bits", (np.floor(x).view(np.uint32) & 0xffff).astype(np.uint16))


@row("clamps to [0, 1]: of a NaN the bound that is taken first")
def _(r, rng):
    for dtype in (np.float16, np.float32, np.float64):
        k = np.dtype(dtype).name
        x = np.concatenate([[np.nan, -np.nan, np.inf, -np.inf, -1, 0.25, 1, 2], rng.standard_normal(56)]).astype(dtype)
        zeros = np.zeros(len(x), dtype)
        r.arrays_of(**{"cx" + k: x, "ci" + k: zeros, "co" + k: zeros.copy(), "cw" + k: np.zeros(len(x), np.uint8)})
        r.launch("clamps", "", "ci" + k, "co" + k, "cw" + k, "cx" + k)
        low = np.where(np.isnan(x), dtype(1), np.minimum(x, dtype(1)))
        r.expect("ci" + k, np.maximum(low, dtype(0)))
        r.expect("co" + k, np.minimum(np.where(np.isnan(x), dtype(0), np.maximum(x, dtype(0))), dtype(1)))
        r.expect("cw" + k, np.maximum(low, dtype(0)).astype(np.uint8))


@row("an integer of one bit that f16 does not reach is an infinity, of a wider float too")
def _(r, rng):
    x, n = rng.integers(0, 2, 64).astype(np.int32), rng.integers(0, 9, 64).astype(np.int32)
    r.arrays_of(half=np.zeros(64), hx=x, hn=n)
    r.launch("one_bit", "", "half", "hx", "hn")
    r.expect("half", np.where(x != 0, np.inf, 0.0))
