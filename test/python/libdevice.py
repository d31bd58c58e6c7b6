# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""cuda.libdevice: directed rounding is compared with exact fractions; conversions, bit and integer functions are
compared with Python."""
import math
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
from fractions import Fraction

import kjit
import numpy as np
import seeds
from kjit import cuda
from kjit.cuda import libdevice

random = seeds.fresh_generator()
COUNT = 200
kjit.keep_sources()  # for the source of kernels that exec creates


def compute(names, kind, *arguments):
    """Returns {name: results} of functions of libdevice over arrays. One kernel calls all of them."""
    names = list(names)
    parameters = ", ".join(f"a{k}" for k in range(len(arguments)))
    calls = ", ".join(f"a{k}[i]" for k in range(len(arguments)))
    lines = [f"        r[{row}, i] = libdevice.{name}({calls})" for row, name in enumerate(names)]
    source = f"def kernel(r, {parameters}):\n    i = cuda.grid(1)\n    if i < r.shape[1]:\n" + "\n".join(lines)
    scope = {"cuda": cuda, "libdevice": libdevice}
    exec(source, scope)
    r = np.zeros((len(names), len(arguments[0])), kind)
    cuda.jit(scope["kernel"])[-(-r.shape[1] // 64), 64](r, *arguments)
    return dict(zip(names, r))


def rounded(exact, kind, direction):
    """Returns an exact number (a Fraction) as a float, rounded in a direction."""
    with np.errstate(over="ignore"):
        nearest = kind(to_float64(exact))
    if np.isinf(nearest):
        is_below, is_above = nearest < 0, nearest > 0
    else:
        is_below, is_above = Fraction(float(nearest)) < exact, Fraction(float(nearest)) > exact
    towards = {"rd": -math.inf if is_above else None, "ru": math.inf if is_below else None}
    towards["rz"] = 0.0 if (is_above if exact > 0 else is_below) else None
    return nearest if towards[direction] is None else np.nextafter(nearest, kind(towards[direction]))


def to_float64(exact):
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf  # a float of `exact` would overflow again


def numbers(kind, spread):
    """Returns random numbers of all magnitudes, including subnormal numbers and small integers."""
    with np.errstate(over="ignore"):
        x = (random.standard_normal(COUNT) * 2.0 ** random.uniform(-spread, spread, COUNT)).astype(kind)
    x[: COUNT // 8] = random.integers(-9, 9, COUNT // 8)
    return np.where(np.isfinite(x), x, kind(1))


def root(exact, kind, direction):
    """Returns a square root as a float, rounded in a direction, computed with integers."""
    shift = 400 + (exact.denominator.bit_length() // 2) * 2
    value = math.isqrt((exact.numerator << (2 * shift)) // exact.denominator)
    is_exact = value * value * exact.denominator == exact.numerator << (2 * shift)
    result = Fraction(value, 1 << shift)
    return rounded(result if is_exact else result + Fraction(1, 1 << (shift + 8)), kind, direction)


def check_directed():
    for kind, letter, spread in ((np.float64, "d", 520), (np.float32, "f", 75)):
        x, y = numbers(kind, spread), numbers(kind, spread)
        y[-20:] = np.nextafter(x[-20:], kind(math.inf))
        subtractions = ("sub",) if letter == "f" else ()
        names = [f"{letter}{name}_{d}" for name in ("add", "mul", "div", "rcp", "sqrt", *subtractions) for d in ("rd", "ru", "rz")]
        two = compute([n for n in names if "sqrt" not in n and "rcp" not in n], kind, x, y)
        one = compute([n for n in names if "sqrt" in n or "rcp" in n], kind, x)
        for i in range(COUNT):
            a, b = Fraction(float(x[i])), Fraction(float(y[i]))
            exact = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b if b else None, "rcp": 1 / a if a else None}
            for name, values in {**two, **one}.items():
                operation, direction = name[1:].split("_")
                if operation == "sqrt":
                    expected = root(a, kind, direction) if a > 0 else None
                else:
                    expected = rounded(exact[operation], kind, direction) if exact[operation] else None
                if expected is not None:
                    assert values[i] == expected, (name, x[i], y[i], values[i], expected)
    x = np.array([1.0, -1.0, 0.0, -0.0, math.inf, math.nan, 4.0])
    y = np.array([0.0, 0.0, 0.0, 1.0, math.inf, 1.0, 0.5])
    with np.errstate(all="ignore"):
        for d in ("rd", "ru", "rz", "rn"):
            np.testing.assert_array_equal(compute([f"ddiv_{d}"], np.float64, x, y)[f"ddiv_{d}"], x / y)
            np.testing.assert_array_equal(compute([f"dsqrt_{d}"], np.float64, x)[f"dsqrt_{d}"], np.sqrt(x))
    zeros = compute(["dmul_rd", "dmul_ru", "dmul_rz", "dmul_rn"], np.float64, np.array([0.0, -0.0, 1.0]), np.array([1.0, 1.0, -0.0]))
    for values in zeros.values():
        assert list(np.signbit(values)) == [False, True, True], zeros


def check_conversions():
    wide = numbers(np.float64, 160)
    n = random.integers(-(2**63), 2**63 - 1, COUNT) >> random.integers(0, 63, COUNT)
    u = n.astype(np.uint64)
    for d in ("rd", "ru", "rz"):
        for name, values, kind in (
            ("double2float", wide, np.float32), ("ll2double", n, np.float64), ("ll2float", n, np.float32), ("ull2double", u, np.float64),
            ("ull2float", u, np.float32), ("int2float", n.astype(np.int32), np.float32), ("uint2float", n.astype(np.uint32), np.float32),
        ):
            got = compute([f"{name}_{d}"], kind, values)[f"{name}_{d}"]
            for value, result in zip(values, got):
                exact = Fraction(float(value)) if values.dtype.kind == "f" else Fraction(int(value))
                assert result == (rounded(exact, kind, d) if exact else 0), (name, d, value, result)
    x = random.standard_normal(COUNT) * 1000
    x[:6] = 0.5, 1.5, -0.5, 2.5, -3.0, 7.0
    for d, function in (("rd", np.floor), ("ru", np.ceil), ("rz", np.trunc), ("rn", np.rint)):
        for source in (np.float64, np.float32):
            for name, result in (("int", np.int32), ("ll", np.int64)):
                called = f"{'double' if source is np.float64 else 'float'}2{name}_{d}"
                values = x.astype(source)
                np.testing.assert_array_equal(compute([called], result, values)[called], function(values).astype(result))


def check_integers():
    a, b = (random.integers(-(2**31), 2**31 - 1, COUNT).astype(np.int32) for _ in range(2))
    unsigned = a.view(np.uint32), b.view(np.uint32)
    p, q = (random.integers(-(2**63), 2**63 - 1, COUNT) for _ in range(2))

    def low24(value, is_signed):
        value = int(value) & 0xFFFFFF
        return value - (1 << 24) if is_signed and value >> 23 else value

    expected = {
        "hadd": lambda x, y: (x + y) >> 1, "rhadd": lambda x, y: (x + y + 1) >> 1, "mulhi": lambda x, y: (x * y) >> 32,
        "max": max, "min": min,
    }
    for prefix, (x, y) in (("", (a, b)), ("u", unsigned)):
        got = compute([prefix + name for name in expected] + [prefix + "mul24"], np.int64, x, y)
        for name, function in expected.items():
            assert got[prefix + name].tolist() == [function(int(s), int(t)) for s, t in zip(x, y)], prefix + name
        low = [low24(s, not prefix) * low24(t, not prefix) for s, t in zip(x, y)]
        assert got[prefix + "mul24"].astype(x.dtype).tolist() == np.array([v & 0xFFFFFFFF for v in low], np.uint32).astype(x.dtype).tolist()
    high = compute(["mul64hi"], np.int64, p, q)["mul64hi"]
    assert high.tolist() == [(int(s) * int(t)) >> 64 for s, t in zip(p, q)]
    high = compute(["umul64hi"], np.uint64, p.view(np.uint64), q.view(np.uint64))["umul64hi"]
    assert high.tolist() == [(int(s) * int(t)) >> 64 for s, t in zip(p.view(np.uint64), q.view(np.uint64))]
    bits = compute(["popc", "clz", "ffs", "abs"], np.int64, a)
    assert bits["popc"].tolist() == [bin(int(v) & 0xFFFFFFFF).count("1") for v in a]
    assert bits["clz"].tolist() == [32 - (int(v) & 0xFFFFFFFF).bit_length() for v in a]
    assert bits["ffs"].tolist() == [((int(v) & -int(v)) & 0xFFFFFFFF).bit_length() for v in a]
    bits = compute(["popcll", "clzll", "ffsll"], np.int64, p)
    assert bits["popcll"].tolist() == [bin(int(v) & (2**64 - 1)).count("1") for v in p]
    assert bits["clzll"].tolist() == [64 - (int(v) & (2**64 - 1)).bit_length() for v in p]
    x = numbers(np.float64, 300)
    np.testing.assert_array_equal(compute(["double_as_longlong"], np.int64, x)["double_as_longlong"], x.view(np.int64))
    halves = compute(["double2hiint", "double2loint"], np.int32, x)
    np.testing.assert_array_equal(halves["double2hiint"], (x.view(np.int64) >> 32).astype(np.int32))
    joined = compute(["hiloint2double"], np.float64, halves["double2hiint"], halves["double2loint"])["hiloint2double"]
    np.testing.assert_array_equal(joined, x)
    small = numbers(np.float32, 10)
    np.testing.assert_array_equal(compute(["float2half_rn"], np.int16, small)["float2half_rn"], small.astype(np.float16).view(np.int16))
    assert (compute(["isnand", "isinfd", "isfinited", "signbitd"], np.int32, np.array([math.nan, -math.inf, 1.0]))["isnand"] == [1, 0, 0]).all()


def check_tuples():
    @cuda.jit
    def several(r, x):
        r[0], r[1] = libdevice.remquo(x[0], x[1])
        r[2], r[3] = libdevice.sincospi(0.5)
        r[4], r[5] = libdevice.fast_sincosf(0.0)
        r[6], r[7] = libdevice.frexp(x[0])
        r[8] = libdevice.jn(2, 1.0)
        r[9] = libdevice.nan(0)
        r[10] = libdevice.byte_perm(0x33221100, 0x77665544, 0x7531)
        r[11] = libdevice.powi(3.0, 4)
        r[12] = libdevice.ilogb(10.0)
        r[13] = libdevice.frsqrt_rn(4.0)

        r[14] = libdevice.nanf(5)

    r = np.zeros(15)
    several[1, 1](r, np.array([7.0, 2.0]))
    np.testing.assert_allclose(r, [-1, 4, 1, 0, 0, 1, 0.875, 3, 0.114903484931900, math.nan, 0x77553311, 81, 3, 0.5, math.nan], atol=1e-7)


assert len(vars(libdevice)) == 319
check_directed()
check_conversions()
check_integers()
check_tuples()
