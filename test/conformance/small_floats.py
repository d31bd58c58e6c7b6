from fractions import Fraction

import numpy as np
from rows import row


def code_value(code, mantissa, bias, has_infinity):
    """Returns the number that a code without its sign represents, or None for NaN."""
    exponent, fraction = code >> mantissa, code & (1 << mantissa) - 1
    if has_infinity and exponent == 31:
        return None if fraction else np.inf
    if not has_infinity and code == 127:
        return None
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - mantissa)
    return (fraction + (1 << mantissa)) * 2.0 ** (exponent - bias - mantissa)


E4M3 = [code_value(c, 3, 7, False) for c in range(128)]
E5M2 = [code_value(c, 2, 15, True) for c in range(128)]


def decoded(values):
    size = np.array([np.nan if v is None else v for v in values])
    return np.concatenate([size, -size])


def encoded(values, x):
    """Rounds to nearest, ties to even, and saturates."""
    finite = np.array([v for v in values if v is not None and np.isfinite(v)])
    codes = []
    for v in x:
        if np.isnan(v):
            codes.append(-1)
            continue
        size = min(abs(v), finite[-1])
        above = int(np.searchsorted(finite, size))
        below = max(above - 1, 0)
        low, high = size - finite[below], finite[above] - size
        code = above if finite[above] == size or high < low or (high == low and above % 2 == 0) else below
        codes.append(code + (128 if np.signbit(v) else 0))
    return np.array(codes)


def same_codes(want):
    def check(got):
        is_nan = want < 0
        np.testing.assert_array_equal(got[~is_nan], want[~is_nan])
        np.testing.assert_array_equal(got[is_nan] & 127, 127)
    return check


@row("fp8: every code")
def _(r, rng):
    r.arrays_of(codes=np.arange(256, dtype=np.uint8), four=np.zeros(256, np.float32), five=np.zeros(256, np.float32))
    r.launch("decode", "1, 256", "four", "five", "codes")
    r.expect("four", decoded(E4M3))
    r.expect("five", decoded(E5M2))
    r.verify(["four"], lambda got: np.testing.assert_array_equal(np.signbit(got[128:255]), True))


@row("fp8: to nearest even from every width")
def _(r, rng):
    tables = np.concatenate([decoded(E4M3), decoded(E5M2)])
    finite = np.unique(tables[np.isfinite(tables)])
    ties = (finite[1:] + finite[:-1]) / 2
    some = np.concatenate([finite, ties, rng.standard_normal(300), rng.uniform(-500, 500, 200), rng.uniform(-1, 1, 200) * 2.0 ** rng.integers(-20, 18, 200), [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 464, 61440]])
    wide = np.concatenate([some, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    for dtype, values in ((np.float64, wide), (np.float32, wide), (np.float16, some)):
        k = np.dtype(dtype).name
        with np.errstate(over="ignore"):
            x = values.astype(dtype)
        n = len(x)
        r.arrays_of(**{f"x{k}": x, f"a{k}": np.zeros(n, np.uint8), f"b{k}": np.zeros(n, np.uint8)})
        r.launch("encode", "3, 128", f"a{k}", f"b{k}", f"x{k}")
        r.verify([f"a{k}"], same_codes(encoded(E4M3, x.astype(np.float64))))
        r.verify([f"b{k}"], same_codes(encoded(E5M2, x.astype(np.float64))))


@row("fp8: vectors")
def _(r, rng):
    x = rng.uniform(-600, 600, (50, 4)).astype(np.float32)
    r.vectors_of("f32x4", x=x, back=np.zeros((50, 4), np.float32))
    r.vectors_of("u8x4", out=np.zeros((50, 4), np.uint8))
    r.launch("lanes", "1, 64", "out", "back", "x")
    codes = encoded(E4M3, x.ravel().astype(np.float64)).reshape(50, 4)
    r.expect("out", codes)
    r.expect("back", decoded(E4M3)[codes])


def nearest_half(value):
    """Returns the f16 number nearest to an extended number, ties to even. On some machines, NumPy's own conversion goes
    through f32 and therefore rounds twice."""
    value = np.asarray(value, np.longdouble)
    exponent = np.maximum(np.frexp(value)[1] - 1, -14)
    return np.ldexp(np.rint(np.ldexp(value, 10 - exponent)), exponent - 10).astype(np.float16)


@row("f16: each operation rounded once")
def _(r, rng):
    n = 3000
    x, y, z = (rng.standard_normal(n) * 2.0 ** rng.integers(-14, 7, n) for _ in range(3))
    x, y, z = (v.astype(np.float16) for v in (x, y, z))
    y[y == 0] = 1
    z[:500] = (rng.choice([-1, 1], 500) * 2.0 ** rng.integers(-24, -15, 500)).astype(np.float16)
    X, Y, Z = (v.astype(np.float64) for v in (x, y, z))
    with np.errstate(all="ignore"):
        fused = X.astype(np.longdouble) * Y + Z  # exact with a 64-bit significand
        want = np.stack([nearest_half(v) for v in (X + Y, X - Y, X * Y, X / Y, fused)])
    r.arrays_of(x=x, y=y, z=z, out=np.zeros((5, n), np.float16))
    r.launch("half", "4, 128", "out", "x", "y", "z")
    r.expect("out", want)


def brain_bits(value):
    """Returns the bits of the bf16 number nearest to a fraction, ties to even."""
    if value == 0:
        return 0
    sign, size = (0x8000, -value) if value < 0 else (0, value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, -126)
    scaled = size / Fraction(2) ** (exponent - 7)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    bits = ((exponent + 126) << 7) + whole
    return sign | min(bits, 0x7F80)


@row("bf16: each operation rounded once")
def _(r, rng):
    n = 600
    def draw():
        return rng.integers(0, 1 << 16, n).astype(np.uint16) & 0x87FF | (rng.integers(0x38, 0x46, n) << 8 & 0x7800).astype(np.uint16)
    x, y, z = draw(), draw(), draw()
    z[:300] &= 0x8FFF  # far smaller than the product, so the result differs only if fma rounds once
    number = [[Fraction(float(v)) for v in (a.astype(np.uint32) << 16).view(np.float32)] for a in (x, y, z)]
    want = np.zeros((5, n), np.uint16)
    for i, (a, b, c) in enumerate(zip(*number)):
        b = b or Fraction(1)
        want[:, i] = [brain_bits(a + b), brain_bits(a - b), brain_bits(a * b), brain_bits(a / b), brain_bits(a * b + c)]
    y[[v == 0 for v in number[1]]] = 0x3F80
    r.arrays_of(x=x, y=y, z=z, out=np.zeros((7, n), np.uint16))
    r.launch("brain", "2, 128", "out", "x", "y", "z")

    def check(got):
        a, b = got[:5].astype(np.int64), want.astype(np.int64)
        zero = (a & 0x7FFF == 0) & (b & 0x7FFF == 0)
        np.testing.assert_array_equal(a[~zero], b[~zero])

    r.verify(["out"], check)
    def rounded(f):
        return Fraction(float((np.array([brain_bits(f)], np.uint32) << 16).view(np.float32)[0]))
    lanes = np.array([[brain_bits(rounded(a * (b or 1)) + c), brain_bits(rounded((b or Fraction(1)) * c) + a)] for a, b, c in zip(*number)]).T
    r.verify(["out"], lambda got: np.testing.assert_array_equal(np.where(lanes & 0x7FFF, lanes, 0), np.where(got[5:] & 0x7FFF, got[5:], 0)))


@row("bf16 of wider floats: ties, subnormal numbers, what is too large, NaNs; f64 rounded once; differences of ones and zeros")
def _(r, rng):
    upper = np.concatenate([rng.integers(0, 0x7F80, 300), [0, 1, 0x7F, 0x80, 0x7F7F, 0x3F80]]).astype(np.uint32)
    # half of bf16's last bit, and the adjacent f32 and f64 numbers; f32 would round these f64 numbers to the half
    size = np.concatenate([upper << 16 | low for low in (0, 0x7FFF, 0x8000, 0x8001)]).view(np.float32)
    x = np.concatenate([size, -size, np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFF80FFFF], np.uint32).view(np.float32)])
    with np.errstate(over="ignore", invalid="ignore"):
        y = x.astype(np.float64) * (1 + rng.integers(-1, 2, len(x)) * 2.0**-40)
    def bits(value):
        if np.isnan(value):
            return 0x7FC0
        sign = 0x8000 if np.signbit(value) else 0
        return sign | (0x7F80 if np.isinf(value) else brain_bits(Fraction(abs(float(value)))))
    of_x, of_y = np.array([bits(v) for v in x]), np.array([bits(v) for v in y])
    r.arrays_of(x=x, y=y, out=np.zeros((7, len(x)), np.uint16))
    r.launch("to_brain", "3, 128", "out", "x", "y")

    def check(got):
        got = np.where(got & 0x7FFF > 0x7F80, 0x7FC0, got)
        for n in range(3):
            np.testing.assert_array_equal(got[n], of_x)
        np.testing.assert_array_equal(got[3], of_y)
        code = np.array([0xBF80, 0, 0x3F80])  # of -1, 0, 1
        a, b = (x > 0).astype(int), (y > 0).astype(int)
        for n, want in ((4, a - b), (5, -b), (6, a - b)):
            np.testing.assert_array_equal(np.where(got[n] & 0x7FFF, got[n], 0), code[want + 1])

    r.verify(["out"], check)
