import math
from statistics import NormalDist

import numpy as np
from rows import row

FLOATS = {np.float32: 1e-6, np.float64: 2e-15}
M32 = (1 << 32) - 1


def each(function, *columns):
    return np.array([function(*[v.item() for v in values]) for values in zip(*columns)])


def bytes_of(word, signed):
    values = [(int(word) >> 8 * i) & 0xff for i in range(4)]
    return [v - 256 if signed and v > 127 else v for v in values]


def dot(x, y, c, x_signed, y_signed):
    return int(c) + sum(a * b for a, b in zip(bytes_of(x, x_signed), bytes_of(y, y_signed)))


def permuted(x, y, s):
    both = y << 32 | x
    return sum(((both >> 8 * ((s >> 4 * i) & 7)) & 0xff) << 8 * i for i in range(4))


def swapped(x, size):
    return int.from_bytes(int(x).to_bytes(size, "little"), "big")


@row("words: bytes, funnel shifts, dot products, differences")
def _(r, rng):
    x, y, s = (rng.integers(0, 1 << 32, 200, dtype=np.uint32) for _ in range(3))
    s[:33] = np.arange(33)
    x[:4], y[:4] = [0, M32, 0x80808080, 1], [M32, 0, 0x80808080, 1 << 31]
    X, Y, S = ([int(v) for v in a] for a in (x, y, s))
    want = [[permuted(*v) for v in zip(X, Y, S)],
            [((b << 32 | a) << n % 32) >> 32 & M32 for a, b, n in zip(X, Y, S)],
            [(b << 32 | a) >> n % 32 & M32 for a, b, n in zip(X, Y, S)],
            [((b << 32 | a) << min(n % 40, 32)) >> 32 & M32 for a, b, n in zip(X, Y, S)],
            [(b << 32 | a) >> min(n % 40, 32) & M32 for a, b, n in zip(X, Y, S)],
            [dot(a, b, c, False, False) & M32 for a, b, c in zip(X, Y, S)],
            [(abs(a - b) + c) & M32 for a, b, c in zip(X, Y, S)],
            [swapped(a, 4) for a in X]]
    r.arrays_of(x=x, y=y, s=s, out=np.zeros((8, 200), np.uint32))
    r.launch("words", "2, 128", "out", "x", "y", "s")
    r.expect("out", np.array(want, dtype=np.uint32))
    i, j = x.view(np.int32), y.view(np.int32)
    signed = [[dot(a, b, c, True, True) & M32 for a, b, c in zip(X, Y, S)],
              [dot(a, b, c, True, False) & M32 for a, b, c in zip(X, Y, S)],
              [dot(a, b, 7, False, True) & M32 for a, b in zip(X, Y)],
              [(abs(int(a) - int(b)) + c) & M32 for a, b, c in zip(i, j, S)],
              [swapped(a, 4) for a in X]]
    r.arrays_of(i=i, j=j, signed=np.zeros((5, 200), np.int32))
    r.launch("signed_words", "2, 128", "signed", "i", "j", "s")
    r.expect("signed", np.array(signed, dtype=np.uint32).view(np.int32))
    wide = rng.integers(0, 1 << 64, 50, dtype=np.uint64)
    r.arrays_of(wide=wide, owide=np.zeros(50, np.uint64))
    r.launch("swap64", "1, 64", "owide", "wide")
    r.expect("owide", wide.byteswap())


@row("sinpi, cospi, rcbrt with special values")
def _(r, rng):
    for dtype, tolerance in FLOATS.items():
        k = np.dtype(dtype).name
        x = np.concatenate([np.arange(-8, 8.25, 0.25), rng.uniform(-3, 3, 60), [1e-30, 1e6 + 0.5, np.inf, -np.inf, np.nan]]).astype(dtype)

        def sine(v, quarter):
            if not math.isfinite(v):
                return math.nan
            n = round(2 * math.fmod(v, 2))
            angle = math.pi * (math.fmod(v, 2) - n / 2)
            n += quarter
            return [math.sin(angle), math.cos(angle), -math.sin(angle), -math.cos(angle)][n % 4]

        root = each(lambda v: math.nan if math.isnan(v) else 1 / np.cbrt(v) if v else math.inf, x.astype(np.float64))
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((3, len(x)), dtype)})
        r.launch("of_pi", "1, 64", f"o{k}", f"x{k}")
        r.expect(f"o{k}", np.stack([each(lambda v: sine(v, 0), x), each(lambda v: sine(v, 1), x), root]), rtol=tolerance)


@row("the error function's relatives")
def _(r, rng):
    for dtype, tolerance in FLOATS.items():
        k = np.dtype(dtype).name
        normal = NormalDist()
        x = np.concatenate([np.linspace(-0.99, 0.99, 67), rng.uniform(-0.3, 0.3, 20), [1e-10, 0.0]]).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"e{k}": np.zeros((2, len(x)), dtype)})
        r.launch("errors", "1, 64", f"e{k}", f"x{k}")
        inverse = each(lambda v: normal.inv_cdf((v + 1) / 2) / math.sqrt(2), x)
        r.verify([f"e{k}"], lambda e, x=x, inverse=inverse, t=tolerance: (
            np.testing.assert_allclose(e[1], x, rtol=5 * t, err_msg="erf(erfinv(x))"), np.testing.assert_allclose(e[0], inverse, rtol=5 * t, atol=5 * t, err_msg="erfinv")))
        p = np.concatenate([[0.5, 1e-30, 1e-10, 0.001, 0.02425, 0.975], rng.uniform(0.01, 0.99, 40)]).astype(dtype)
        quantile = each(normal.inv_cdf, p)
        r.arrays_of(**{f"p{k}": p, f"t{k}": np.zeros((4, len(p)), dtype)})
        r.launch("tails", "1, 64", f"t{k}", f"p{k}")
        # a change in the quantile's last bit changes a tail in proportion to the square of the quantile
        slack = 10 * tolerance * np.maximum(1, quantile * quantile)
        r.verify([f"t{k}"], lambda t, p=p, quantile=quantile, slack=slack, e=tolerance: (
            np.testing.assert_allclose(t[0], quantile, rtol=10 * e, atol=10 * e, err_msg="normcdfinv"), np.testing.assert_array_less(abs(t[1] / p - 1), slack, err_msg="normcdf"),
            np.testing.assert_array_less(abs(t[2] / p - 1), slack, err_msg="erfcinv")))
        z = np.concatenate([np.linspace(-5, 9, 57), [25.0, -9.0]]).astype(dtype)
        wanted = np.stack([each(lambda v: math.erfc(-v / math.sqrt(2)) / 2, z.astype(np.float64)),
                           each(lambda v: math.erfc(v) * math.exp(v * v) if v < 15 else (1 - 0.5 / v**2 + 0.75 / v**4 - 1.875 / v**6 + 6.5625 / v**8 - 29.53125 / v**10) / v / math.sqrt(math.pi), z.astype(np.float64))])
        wanted = wanted.astype(dtype)
        r.arrays_of(**{f"z{k}": z, f"n{k}": np.zeros((2, len(z)), dtype)})
        r.launch("normal", "1, 64", f"n{k}", f"z{k}")
        tiny = np.finfo(dtype).tiny
        r.expect(f"n{k}", wanted, rtol=3 * tolerance if dtype == np.float32 else 3e-14, atol=tiny)
        edges = np.array([1.0, -1.0, 1.5, np.nan], dtype)
        r.arrays_of(**{f"s{k}": edges, f"se{k}": np.zeros((2, 4), dtype), f"q{k}": np.array([0.0, 1.0, -0.5, 2.0], dtype), f"sq{k}": np.zeros((4, 4), dtype)})
        r.launch("errors", "1, 4", f"se{k}", f"s{k}")
        r.launch("tails", "1, 4", f"sq{k}", f"q{k}")
        r.verify([f"se{k}", f"sq{k}"], lambda e, q: (
            np.testing.assert_array_equal(e[0], [np.inf, -np.inf, np.nan, np.nan]), np.testing.assert_array_equal(q[0], [-np.inf, np.inf, np.nan, np.nan]),
            np.testing.assert_array_equal(q[3, [0, 2, 3]], [np.inf, np.nan, -np.inf])))


def bessel_integral(n, x):
    """Returns the mean over a period, which converges as fast as possible."""
    t = (np.arange(4000) + 0.5) * (math.pi / 4000)
    return np.cos(n * t - x * np.sin(t)).mean()


@row("Bessel functions; their Wronskian")
def _(r, rng):
    for dtype, tolerance in {np.float32: 3e-6, np.float64: 1e-11}.items():
        k = np.dtype(dtype).name
        x = np.concatenate([np.linspace(0.5, 30, 60), rng.uniform(1, 100, 20)]).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((7, len(x)), dtype)})
        r.launch("bessel", "1, 64", f"o{k}", f"x{k}")
        first = [np.array([bessel_integral(n, float(v)) for v in x]) for n in (0, 1, 3)]

        def check(o, x=x.astype(np.float64), first=first, t=tolerance):
            for i, name in enumerate(("j0", "j1", "jn(3)")):
                np.testing.assert_allclose(o[i], first[i], atol=t, err_msg=name)
            y0, y1, y3 = o[3:6].astype(np.float64)
            np.testing.assert_allclose((o[1].astype(np.float64) * y0 - o[0].astype(np.float64) * y1) * math.pi * x / 2, np.ones(len(x)), rtol=100 * t, err_msg="y0, y1")
            np.testing.assert_allclose(y3, 4 / x * (2 / x * y1 - y0) - y1, rtol=0.01, atol=100 * t, err_msg="yn(3)")
            assert np.isnan(o[6]).all()

        r.verify([f"o{k}"], check)


@row("lround, lrint, saturate")
def _(r, rng):
    for dtype in FLOATS:
        k = np.dtype(dtype).name
        x = np.concatenate([[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, -0.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.49999997, 1.0, 0.25], rng.uniform(-1e6, 1e6, 30)]).astype(dtype)
        low, high = -1 << 63, (1 << 63) - 1

        def whole(v, rounded):
            return 0 if math.isnan(v) else low if v <= low else high if v >= high else int(rounded(v))

        away = [whole(v.item(), lambda v: math.copysign(math.floor(abs(v) + 0.5) if abs(v) != dtype(0.49999997).item() else 0.0, v)) for v in x]
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((2, len(x)), np.int64), f"s{k}": np.zeros(len(x), dtype)})
        r.launch("rounding", "1, 64", f"o{k}", f"s{k}", f"x{k}")
        r.expect(f"o{k}", np.array([away, [whole(v.item(), np.rint) for v in x]], dtype=np.int64))
        r.expect(f"s{k}", np.where(np.isnan(x), 0, np.clip(x, 0, 1)))


@row("approximations")
def _(r, rng):
    for dtype, tolerance in {np.float32: 2e-6, np.float64: 1e-14}.items():
        k = np.dtype(dtype).name
        x, y = rng.uniform(-1.5, 1.5, 60).astype(dtype), rng.uniform(0.1, 20, 60).astype(dtype)
        X, Y = x.astype(np.float64), y.astype(np.float64)
        want = [np.sin(X), np.cos(X), np.tan(X), np.exp(X), 10**X, np.log(Y), np.log2(Y), np.log10(Y), Y**X, X / Y]
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"o{k}": np.zeros((len(want), 60), dtype)})
        r.launch("approximations", "1, 64", f"o{k}", f"x{k}", f"y{k}")
        r.expect(f"o{k}", np.stack(want), rtol=5 * tolerance, atol=tolerance)


@row("funcs that are compared")
def _(r, rng):
    x = np.array([3, -7, 5, 11], np.int32)
    r.arrays_of(x=x, a=np.zeros(3, np.int32), b=np.zeros(3, np.int32), c=np.zeros(3, np.int32))
    for out, func in (("a", "max"), ("b", "min"), ("c", "twice")):
        r.launch("fold_all", "", out, "x", func)
    r.expect("a", np.full(3, 11))
    r.expect("b", np.full(3, -7))
    r.expect("c", np.array([2 * (2 * (2 * 3 - 7) + 5) + 11, 0, 0]))
