import cmath
import math

import numpy as np
from rows import row

KINDS = {np.complex64: (np.float32, 2e-6), np.complex128: (np.float64, 2e-14)}


def random_complex(rng, n, dtype, size=3.0):
    return (rng.uniform(-size, size, n) + 1j * rng.uniform(-size, size, n)).astype(dtype)


def close(name, tolerance):
    """Errors are relative to the absolute value of the complex number."""
    def check(want):
        def verify(got):
            want_ = np.asarray(want).astype(np.complex128)
            got_ = got.astype(np.complex128)
            distance = abs(got_ - want_)
            bad = ~(distance <= tolerance * np.maximum(abs(want_), 1e-3))
            assert not bad.any(), f"{name}: {int(bad.sum())} differ, the first at {np.argwhere(bad)[0]}: got {got_[bad][0]}, expected {want_[bad][0]}"
        return verify
    return check


@row("complex: arithmetic")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        n, k = 60, np.dtype(dtype).name
        x, y = random_complex(rng, n, dtype), random_complex(rng, n, dtype)
        y[::7] = x[::7]
        s = (rng.uniform(0.5, 2, n) * rng.choice([-1, 1], n)).astype(part)
        X, Y, S = x.astype(np.complex128), y.astype(np.complex128), s.astype(np.float64)
        want = [X + Y, X - Y, X * Y, X / Y, -X, S * X, X / S, S - X, X + 1, 1 / X, X.conj(), X ** 3, X ** -2, S + 0j, X, np.where(X != Y, X, Y + 1), X.imag + 1j * X.real, 2.5 - X * 2]
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"s{k}": s, f"o{k}": np.zeros((len(want), n), dtype)})
        r.launch("arithmetic", "1, 64", f"o{k}", f"x{k}", f"y{k}", f"s{k}")
        r.verify([f"o{k}"], close(k, tolerance)(np.stack(want)))


def is_infinite(z):
    return math.isinf(z.real) or math.isinf(z.imag)


@row("complex: products and quotients at infinity, of large and small numbers")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        info = np.finfo(part)
        edge = [0.0, 1.0, -2.5, math.inf, -math.inf]
        values = [complex(a, b) for a in edge for b in edge]
        pairs = [(a, b) for a in values for b in values]
        x, y = np.array([p[0] for p in pairs], dtype), np.array([p[1] for p in pairs], dtype)

        def check(got, pairs=pairs):
            for i, (a, b) in enumerate(pairs):
                product, quotient = complex(got[2, i]), complex(got[3, i])
                zero_a, zero_b = a == 0, b == 0
                if (is_infinite(a) and not zero_b) or (is_infinite(b) and not zero_a):
                    assert is_infinite(product), f"{a} * {b} is {product}"
                elif not is_infinite(a) and not is_infinite(b):
                    assert product == a * b, f"{a} * {b} is {product}"
                if is_infinite(a) and not is_infinite(b):
                    assert is_infinite(quotient), f"{a} / {b} is {quotient}"
                elif is_infinite(b) and not is_infinite(a):
                    assert quotient == 0, f"{a} / {b} is {quotient}"
                elif zero_b and not zero_a and not is_infinite(a):
                    assert is_infinite(quotient), f"{a} / {b} is {quotient}"

        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"s{k}": np.ones(len(pairs), part), f"o{k}": np.zeros((18, len(pairs)), dtype)})
        r.launch("arithmetic", "4, 64", f"o{k}", f"x{k}", f"y{k}", f"s{k}")
        r.verify([f"o{k}"], check)
        big, small = float(info.max) / 4, float(info.tiny) * 16
        a = np.array([big * (1 + 1j), small * (3 + 4j), big * (2 - 1j), small * (1 + 1j), big * 1j], dtype)
        b = np.array([big * (1 - 1j), small * (4 - 3j), big * (1 + 2j), small * (1 - 1j), big * (1 + 0j)], dtype)
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"t{k}": np.ones(5, part), f"p{k}": np.zeros((18, 5), dtype)})
        r.launch("arithmetic", "1, 32", f"p{k}", f"a{k}", f"b{k}", f"t{k}")
        r.verify([f"p{k}"], lambda got, t=tolerance: np.testing.assert_allclose(got[3], [1j, 1j, -1j, 1j, 1j], rtol=t, atol=t))


@row("complex: parts, size, angle, tests")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        x = np.concatenate([random_complex(rng, 40, dtype), np.array([0, complex(0, -0.0), complex(-1, 0.0), complex(-1, -0.0), complex(3e20, 4e20) if part == np.float32 else complex(3e200, 4e200)], dtype)])
        odd = np.array([complex(math.inf, 1), complex(math.nan, 1), complex(2, -math.inf), complex(1, math.nan)], dtype)
        X = x.astype(np.complex128)
        want = np.stack([X.real, X.imag, abs(X), np.angle(X), X.real + X.imag])
        n = len(x)
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((6, n), part), f"f{k}": np.zeros((4, n), np.int32), f"odd{k}": odd, f"p{k}": np.zeros((6, 4), part), f"g{k}": np.zeros((4, 4), np.int32)})
        r.launch("parts", "1, 64", f"o{k}", f"f{k}", f"x{k}")
        r.launch("parts", "1, 32", f"p{k}", f"g{k}", f"odd{k}")
        r.verify([f"o{k}"], lambda got, want=want, t=tolerance: np.testing.assert_allclose(got[:5], want, rtol=t, atol=t))
        r.verify([f"o{k}"], lambda got, want=abs(X[:40]) ** 2, t=tolerance: np.testing.assert_allclose(got[5, :40], want, rtol=8 * t))
        r.expect(f"f{k}", np.stack([np.zeros(n), np.zeros(n), np.ones(n), X == 0]))
        r.expect(f"g{k}", [[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


FUNCTIONS = [cmath.exp, cmath.log, cmath.sqrt, cmath.sin, cmath.cos, cmath.tan, cmath.sinh, cmath.cosh, cmath.tanh, cmath.asin, cmath.acos, cmath.atan, cmath.asinh, cmath.acosh, cmath.atanh, cmath.log10]


@row("complex: functions")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        x = np.concatenate([random_complex(rng, 150, dtype), random_complex(rng, 60, dtype, 0.05), random_complex(rng, 60, dtype, 30.0), np.exp(1j * rng.uniform(-3, 3, 40)).astype(dtype)])
        want = np.array([[f(complex(z)) for z in x] for f in FUNCTIONS])
        n = len(x)
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((len(FUNCTIONS), n), dtype)})
        r.launch("functions", "3, 128", f"o{k}", f"x{k}")
        r.verify([f"o{k}"], close(k, 12 * tolerance)(want))


@row("complex: branch cuts and signed zeros")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        axis = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0]
        x = np.array([complex(a, b) for a in axis for b in (0.0, -0.0)] + [complex(b, a) for a in axis[2:] for b in (0.0, -0.0)], dtype)
        skipped = {cmath.log: lambda z: z == 0, cmath.log10: lambda z: z == 0, cmath.atanh: lambda z: abs(z) == 1 and z.imag == 0, cmath.atan: lambda z: abs(z) == 1 and z.real == 0}
        want = np.array([[0 if skipped.get(f, lambda z: False)(complex(z)) else f(complex(z)) for z in x] for f in FUNCTIONS])
        known = np.array([[not skipped.get(f, lambda z: False)(complex(z)) for z in x] for f in FUNCTIONS])

        def check(got, want=want, known=known, t=tolerance, x=x):
            for f in range(len(FUNCTIONS)):
                for i in np.flatnonzero(known[f]):
                    g, w = complex(got[f, i]), want[f, i]
                    near = abs(g - w) <= 8 * t * max(1, abs(w))
                    signs = all(math.copysign(1, a) == math.copysign(1, b) or a != 0 or b != 0 for a, b in ((g.real, w.real), (g.imag, w.imag)))
                    assert near and signs, f"{FUNCTIONS[f].__name__}({x[i]}): got {g}, expected {w}"

        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((len(FUNCTIONS), len(x)), dtype)})
        r.launch("functions", "1, 64", f"o{k}", f"x{k}")
        r.verify([f"o{k}"], check)


@row("complex: functions of large and tiny numbers, and at infinity")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        info = np.finfo(part)
        scales = [float(info.max) / 2, float(info.max) / 1024, float(info.tiny), float(info.tiny) / 32, float(info.max) ** 0.5]
        x = np.array([s * u for s in scales for u in (1 + 1j, 1 - 0.5j, -1 + 0.25j, 0.125 + 1j, -0.5 - 1j)] + [complex(math.inf, 2), complex(-math.inf, 0), complex(1, math.inf), complex(math.inf, -math.inf)], dtype)
        names = [cmath.log, cmath.sqrt, cmath.asin, cmath.acos, cmath.atan, cmath.asinh, cmath.acosh, cmath.atanh, cmath.log10, cmath.tanh]
        places = [1, 2, 9, 10, 11, 12, 13, 14, 15, 8]

        def check(got, x=x, t=tolerance, part=part):
            for f, place in zip(names, places):
                for i, z in enumerate(x):
                    try:
                        value = f(complex(z))
                    except (ValueError, OverflowError):
                        continue  # arguments for which Python has no value
                    g, w = complex(got[place, i]), np.dtype(got.dtype).type(value)
                    for a, b in ((g.real, float(w.real)), (g.imag, float(w.imag))):
                        same = a == b or (math.isnan(b) and math.isnan(a))
                        assert same or abs(a - b) <= 16 * t * abs(b) + 4 * float(np.finfo(part).smallest_subnormal), f"{f.__name__}({z}): got {g}, expected {w}"

        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((len(FUNCTIONS), len(x)), dtype)})
        r.launch("functions", "1, 64", f"o{k}", f"x{k}")
        r.verify([f"o{k}"], check)


@row("complex: logarithms and inverse functions towards both ends of what floats have")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        info = np.finfo(part)
        top, bottom = np.log2(float(info.max)), np.log2(float(info.tiny))
        # Every part is finite, but some absolute values overflow. The numbers at the other end of the range are normal.
        exponents = np.concatenate([rng.uniform(top - 4, top - 0.01, 60), rng.uniform(top / 2 - 4, top - 4, 60), rng.uniform(bottom + 4, bottom / 2, 60)])
        x = (2.0 ** exponents * (rng.uniform(-1, 1, 180) + 1j * rng.uniform(-1, 1, 180))).astype(dtype)
        x[::9] = x[::9].real
        x[4::9] = 1j * x[4::9].imag
        near = (1e38, 1e-38) if part == np.float32 else (1e308, 1e-307)
        x = np.concatenate([x, np.array([s * u for s in near for u in (1, -1, 1j, -1j, 1 + 1j, -1 + 1j, 1 - 1j, -1 - 1j)], dtype)])
        want = np.array([[f(complex(z)) for z in x] for f in FUNCTIONS[9:16] + [cmath.log]])
        n = len(x)

        def check(got, want=want, t=tolerance, x=x, least=float(info.smallest_subnormal)):
            for f, place in enumerate([*range(9, 16), 1]):
                for a, b in ((got[place].real, want[f].real), (got[place].imag, want[f].imag)):
                    # a part may be subnormal: of the angle of a large number beside the imaginary axis
                    bad = ~(np.abs(a - b) <= 8 * t * np.abs(b) + least)
                    assert not bad.any(), f"{FUNCTIONS[place].__name__}({x[bad][0]}): got {got[place][bad][0]}, expected {want[f][bad][0]}"

        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((len(FUNCTIONS), n), dtype)})
        r.launch("functions", "2, 128", f"o{k}", f"x{k}")
        r.verify([f"o{k}"], check)


@row("complex: powers")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k, n = np.dtype(dtype).name, 80
        x, y = random_complex(rng, n, dtype), random_complex(rng, n, dtype, 2.0)
        y[:4] = [0, 1, 2, 0.5]
        X, Y = x.astype(np.complex128), y.astype(np.complex128)
        want = np.stack([X ** Y, X ** Y, np.sqrt(X), X * X, 2.0 ** Y])
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"o{k}": np.zeros((5, n), dtype)})
        r.launch("powers", "1, 96", f"o{k}", f"x{k}", f"y{k}")
        r.verify([f"o{k}"], close(k, 20 * tolerance)(want))


@row("complex: with real numbers and other widths")
def _(r, rng):
    n = 40
    z, d, m = random_complex(rng, n, np.complex64), rng.standard_normal(n), rng.integers(-9, 9, n).astype(np.int32)
    r.arrays_of(z=z, d=d, n=m, wide=np.zeros((4, n), np.complex128), narrow=np.zeros(n, np.complex64))
    r.launch("mixed", "1, 64", "wide", "narrow", "z", "d", "n")
    Z = z.astype(np.complex128)
    r.expect("wide", np.stack([Z * d, (z + m.astype(np.float32)).astype(np.complex128), d + 1j * Z.real, Z]), rtol=1e-15)
    r.expect("narrow", (Z / 3).astype(np.complex64), rtol=1e-7)


@row("complex: loops and functions")
def _(r, rng):
    x, c = random_complex(rng, 100, np.complex128, 1.5), np.array([-0.4 + 0.6j])
    count = []
    for z in x:
        n = 0
        while n < 50 and abs(z) ** 2 < 4:
            z, n = z * z + c[0], n + 1
        count.append(n)
    r.arrays_of(x=x, c=c, count=np.zeros(100, np.int32), series=np.zeros(100, np.complex128))
    r.launch("julia", "1, 128", "count", "series", "c", "x")
    # a fused sum may move a value on the edge to the other side
    r.verify(["count"], lambda got: np.testing.assert_array_less(np.sum(got != np.array(count)), 3))
    h = x * 0.25
    r.expect("series", 1 + h * (1 + h * (1 + h * (1 + h))), rtol=1e-13)


@row("complex: parts as places")
def _(r, rng):
    for dtype, part in ((np.complex64, np.float32), (np.complex128, np.float64)):
        k, n = np.dtype(dtype).name, 48
        x = (rng.integers(-9, 9, n) + 1j * rng.integers(-9, 9, n)).astype(dtype)
        r.arrays_of(**{f"x{k}": x.copy(), f"s{k}": np.zeros(1, dtype)})
        r.launch("places", "1, 64", f"x{k}", f"s{k}")
        want = (x.real + 1 - 2j * x.imag).astype(dtype)
        r.expect(f"x{k}", want)
        r.expect(f"s{k}", [want.real.sum() + 1j * n])


@row("complex: in warps and blocks")
def _(r, rng):
    x = (rng.integers(-9, 9, 192) + 1j * rng.integers(-9, 9, 192)).astype(np.complex64)
    r.arrays_of(x=x, out=np.zeros(3, np.complex64))
    r.launch("block_sum", "3, 64", "out", "x")
    r.expect("out", x.reshape(3, 64).sum(1))
    for dtype in (np.complex64, np.complex128):
        k = np.dtype(dtype).name
        v = (rng.integers(0, 3, 128) + 1j * rng.integers(0, 3, 128)).astype(dtype)
        w = v.reshape(4, 32)
        mask = (w[:, :, None] == w[:, None, :]) @ (np.uint64(1) << np.arange(32, dtype=np.uint64))
        r.arrays_of(**{f"v{k}": v, f"e{k}": np.zeros(128, dtype), f"m{k}": np.zeros(128, np.uint32)})
        r.launch("exchange", "2, 64", f"e{k}", f"m{k}", f"v{k}")
        r.expect(f"e{k}", v[np.arange(128) ^ 3])
        r.expect(f"m{k}", mask.ravel().astype(np.uint32))


@row("complex: fastmath")
def _(r, rng):
    for dtype, (part, tolerance) in KINDS.items():
        k = np.dtype(dtype).name
        x, y = random_complex(rng, 50, dtype), random_complex(rng, 50, dtype)
        X, Y = x.astype(np.complex128), y.astype(np.complex128)
        r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"o{k}": np.zeros(50, dtype)})
        r.launch("fast", "1, 64", f"o{k}", f"x{k}", f"y{k}")
        r.verify([f"o{k}"], close(k, 50 * tolerance)(X * Y / (X + Y)))
