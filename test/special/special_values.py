"""Types as bits: what the special values of each type are, and numbers to and from their bits.

A float is known by its bits, as an integer: that is the only form in which a signed zero or a NaN survives every step.
"""
import math
import struct
from fractions import Fraction

# precision with the hidden bit, exponent of the least and of the greatest normal number, bytes
FLOATS = {"f16": (11, -14, 15, 2), "bf16": (8, -126, 127, 2), "f32": (24, -126, 127, 4), "f64": (53, -1022, 1023, 8)}
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
COMPLEX = {"c64": "f32", "c128": "f64"}
NAMES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def size_of(t):
    return FLOATS[t][3] if t in FLOATS else int(t[1:]) // 8


def infinity(t):
    precision, least, most, _ = FLOATS[t]
    return (most - least + 2) << (precision - 1)


def sign_bit(t):
    return 1 << (8 * size_of(t) - 1)


def nan_of(t):
    return infinity(t) | 1 << (FLOATS[t][0] - 2)


def is_nan(t, bits):
    return bits & (sign_bit(t) - 1) > infinity(t)


def decode(t, bits):
    """Returns the number as a Python float, which represents every type exactly. A NaN loses its payload."""
    precision, least, _, _ = FLOATS[t]
    size = bits & (sign_bit(t) - 1)
    field, mantissa = size >> (precision - 1), size & ((1 << (precision - 1)) - 1)
    if size > infinity(t):
        return math.nan
    if size == infinity(t):
        value = math.inf
    else:
        value = math.ldexp(mantissa + (min(field, 1) << (precision - 1)), max(field, 1) - 1 + least - precision + 1)
    return -value if bits & sign_bit(t) else value


def encode(t, value):
    """Returns the bits of a float, an integer or a Fraction, rounded once to nearest, ties to even."""
    precision, least, _, _ = FLOATS[t]
    if isinstance(value, float) and math.isnan(value):
        return nan_of(t)
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    sign = sign_bit(t) if negative else 0
    if isinstance(value, float) and math.isinf(value):
        return sign | infinity(t)
    exact = abs(Fraction(value))
    if exact == 0:
        return sign
    exponent = max(exact.numerator.bit_length() - exact.denominator.bit_length() - 1, least)
    if exponent > 1100:
        return sign | infinity(t)
    if exact >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = exponent - precision + 1  # the numbers of this magnitude are multiples of 2**unit
    scaled = round(exact / Fraction(2) ** unit)  # ties to even
    return sign | min(scaled + ((exponent - least) << (precision - 1)), infinity(t))


def ulps(t, got, want):
    """Returns the distance of two numbers in units in the last place, infinite if one is NaN. Zeros with different
    signs have the distance 0."""
    if is_nan(t, got) or is_nan(t, want):
        return 0 if is_nan(t, got) and is_nan(t, want) else math.inf
    order = [(-(b & (sign_bit(t) - 1)) if b & sign_bit(t) else b) for b in (got, want)]
    return abs(order[0] - order[1])


def class_of(t, bits):
    """Returns the class that two nearby results must share: NaN, infinite (with its sign), or finite."""
    if is_nan(t, bits):
        return "nan"
    return "-inf" if bits == infinity(t) | sign_bit(t) else "inf" if bits == infinity(t) else "finite"


def specials(t, count=None):
    """Returns the bits of the special values, the most important ones first."""
    if t in INTEGERS:
        width, signed = 8 * size_of(t), t[0] == "i"
        least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        wanted = [0, 1, -1, least, most, 2, width - 1, width, 7, -7, 3, least + 1, most - 1, most // 2 + 1, width + 1, -2, 100]
        fitting = [v for v in wanted if least <= v <= most]
        return list(dict.fromkeys(v & ((1 << width) - 1) for v in fitting))[:count]
    normal = 1 << (FLOATS[t][0] - 1)
    numbers = [encode(t, v) for v in (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1.5)]
    numbers += [1, infinity(t) - 1, encode(t, -3.5), encode(t, 2.0), encode(t, 0.5), normal, sign_bit(t) | 1, sign_bit(t) | (infinity(t) - 1)]
    numbers += [encode(t, v) for v in (-2.0, 3.0, -0.5, 7.0, 300.0, -1.5, 10.0, 0.1)] + [normal - 1, sign_bit(t) | normal, encode(t, 65536.0)]
    return list(dict.fromkeys(numbers))[:count]


def integer(t, bits):
    return bits - (1 << 8 * size_of(t)) if t[0] == "i" and bits & sign_bit(t) else bits


def literal(t, bits):
    """Returns the value as it is written in a program. The context determines its type."""
    if t in INTEGERS:
        return str(integer(t, bits))
    value = decode(t, bits)
    if math.isnan(value):
        return "nan"
    return ("-inf" if value < 0 else "inf") if math.isinf(value) else repr(value)


# ---- .npy files without NumPy, which not every machine has ----

def write_npy(path, t, bits):
    """A one-dimensional array of the integers with these bits."""
    size = size_of(t)
    header = f"{{'descr': '<u{size}', 'fortran_order': False, 'shape': ({len(bits)},), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(bits)}{code}", *bits))


def read_npy(path):
    """The elements of an array of u64 in row-major order."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x93NUMPY" and b"'<u8'" in data[:128], path
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return struct.unpack_from(f"<{(len(data) - start) // 8}Q", data, start)
