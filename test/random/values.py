"""What the operators and built-ins of kernel IR give, on single values: integers as Python ints, floats of every width as Python floats that the width holds.

Written from the language's description alone, so that it can disagree with the compiler. Where the description leaves a result open (the sign of a NaN,
which zero `min` gives, whether a*b + c fuses) Ambiguous is raised, and what depends on it is not compared.
"""
import ctypes
import math
import struct

BITS = {"bool": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
BYTES = {name: max(bits, 8) // 8 for name, bits in BITS.items()}
FLOATS = ("f16", "bf16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
SCALARS = ("bool",) + INTEGERS + FLOATS
PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
LEAST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponent of the smallest subnormal
MOST = {"f16": 65504.0, "bf16": float.fromhex("0x1.fep127"), "f32": float.fromhex("0x1.fffffep127"), "f64": float.fromhex("0x1.fffffffffffffp1023")}


class Ambiguous(Exception):
    """The language does not define this result."""


class Inexact(float):
    """A rounded product. If it is added to a number, the product may be fused and is then not rounded."""


# ---- rounding ----

def round_float(x, name):
    """Rounds to the nearest value of the type, ties to even, in one step."""
    if x == 0 or x != x or x - x != 0 or name == "f64":
        return x
    if name == "f32":
        return ctypes.c_float(x).value
    exponent = max(math.frexp(x)[1] - PRECISION[name], LEAST[name])
    rounded = math.ldexp(round(math.ldexp(x, -exponent)), exponent)
    if rounded == 0 or abs(rounded) > MOST[name]:
        return math.copysign(math.inf if rounded else 0.0, x)
    return rounded


def r_f64(x): return x
def r_f32(x): return ctypes.c_float(x).value
def r_f16(x): return round_float(x, "f16")
def r_bf16(x): return round_float(x, "bf16")


ROUND = {"f64": r_f64, "f32": r_f32, "f16": r_f16, "bf16": r_bf16}


def int_to_float(x, name):
    x = int(x)
    if name == "f64" or abs(x) < 2**53:
        return ROUND[name](float(x))
    # 60 bits and a sticky bit round like the whole number
    shift = max(abs(x).bit_length() - 52, 0)
    kept = abs(x) >> shift | (abs(x) & ((1 << shift) - 1) != 0)
    y = math.ldexp(ROUND["f64"](float(kept)), shift)
    return math.copysign(ROUND[name](y), x)


def wrap(x, name):
    if name == "bool":
        return x != 0
    bits = BITS[name]
    x &= (1 << bits) - 1
    return x - (1 << bits) if name[0] == "i" and x >> (bits - 1) else x


def limits(name):
    bits = BITS[name]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "i" else (0, (1 << bits) - 1)


def float_to_int(x, name):
    low, high = limits(name)
    if x != x:
        return 0
    if x >= high:
        return high
    if x <= low:
        return low
    return int(x)


def convert(x, source, target):
    if source == target:
        return x
    if target == "bool":
        return x != 0
    if target in FLOATS:
        return ROUND[target](float(x)) if source in FLOATS else int_to_float(x, target)
    return float_to_int(x, target) if source in FLOATS else wrap(int(x), target)


# ---- integers ----

def floor_div(a, b): return a // b if b else 0
def floor_mod(a, b): return a % b if b else 0
def trunc_div(a, b): return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0
def trunc_rem(a, b): return a - b * trunc_div(a, b) if b else 0
def ceil_div(a, b): return -(-a // b) if b else 0


def int_pow(a, b, bits):
    if b < 0:
        return 0 if abs(a) != 1 else a if b % 2 else 1
    return pow(a, b, 1 << bits)


def mulhi(a, b, bits): return a * b >> bits
def popc(a, bits): return (a & ((1 << bits) - 1)).bit_count()
def clz(a, bits): return bits - (a & ((1 << bits) - 1)).bit_length()
def ctz(a, bits): return (a & -a).bit_length() - 1 if a else bits
def ffs(a, bits): return (a & -a).bit_length()
def brev(a, bits): return int(format(a & ((1 << bits) - 1), f"0{bits}b")[::-1], 2)


# ---- floats ----

def fadd(a, b):
    if type(a) is Inexact or type(b) is Inexact:
        raise Ambiguous
    return a + b


def fmul_open(a, b, name):
    """A product that may be fused, in which case it neither is rounded nor overflows."""
    product = ROUND[name](a * b)
    if product - product != 0:
        return Inexact(product) if a - a == 0 and b - b == 0 else product
    if name != "f64":
        exact = product == a * b
    else:
        n, d = a.as_integer_ratio()
        m, e = b.as_integer_ratio()
        p, q = product.as_integer_ratio()
        exact = n * m * q == p * d * e
    return product if exact else Inexact(product)


def round_open(x, name):
    """Converts to a narrower float. The rounded number may be a product that is fused."""
    rounded = ROUND[name](x)
    return Inexact(rounded) if rounded != x and x - x == 0 else rounded


def fneg(a): return Inexact(-a) if type(a) is Inexact else -a


def fdiv(a, b):
    if b == 0:
        return math.nan if a != a or a == 0 else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def fmod(a, b):
    if a != a or b != b or b == 0 or a - a != 0:
        return math.nan
    return math.fmod(a, b)


def float_mod(a, b, name):
    """Python's %: the remainder has the sign of the divisor."""
    r = fmod(a, b)
    if r != r:
        return r
    if r == 0:
        return math.copysign(0.0, b)
    return ROUND[name](r + b) if (r < 0) != (b < 0) else r


def float_floor_div(a, b, name):
    if b == 0 or a - a != 0 or b - b != 0 or a != a or b != b:
        raise Ambiguous
    n, d = a.as_integer_ratio()
    m, e = b.as_integer_ratio()
    q = (n * e) // (d * m)
    if abs(q) >= 1 << (PRECISION[name] - 3):
        raise Ambiguous  # the quotient itself is rounded
    return float(q) if q else math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))


def fdim(a, b):
    return math.nan if a != a or b != b else a - b if a > b else 0.0


def fmin(a, b):
    if a != a or b != b:
        return b if a != a else a
    if a == 0 and b == 0 and math.copysign(1, a) != math.copysign(1, b):
        raise Ambiguous
    return min(a, b)


def fmax(a, b):
    if a != a or b != b:
        return b if a != a else a
    if a == 0 and b == 0 and math.copysign(1, a) != math.copysign(1, b):
        raise Ambiguous
    return max(a, b)


def fsqrt(a):
    return math.nan if a != a or a < 0 else math.sqrt(a)


def fsqrt_of(a, name): return ROUND[name](fsqrt(a))


def whole(function, a):
    return a if a != a or a - a != 0 or a == 0 else math.copysign(float(function(a)), a)


def ffloor(a): return whole(math.floor, a)
def fceil(a): return whole(math.ceil, a)
def ftrunc(a): return whole(math.trunc, a)
def frint(a): return whole(round, a)
def fround(a): return whole(lambda v: math.copysign(math.floor(abs(v)) + (abs(v) - math.floor(abs(v)) >= 0.5), v), a)


def copysign(a, b):
    if b != b:
        raise Ambiguous
    return math.copysign(a, b)


def signbit(a):
    if a != a:
        raise Ambiguous
    return math.copysign(1.0, a) < 0


def fma(a, b, c, name):
    if not (a - a == 0 and b - b == 0 and c - c == 0):
        return a * b + c
    n, d = a.as_integer_ratio()
    m, e = b.as_integer_ratio()
    p, q = c.as_integer_ratio()
    top, bottom = n * m * q + p * d * e, d * e * q
    if top == 0:
        return a * b + c  # its sign
    return round_ratio(top, bottom, name)


def round_ratio(top, bottom, name):
    """The divisor is a power of two."""
    size, scale = abs(top).bit_length(), bottom.bit_length() - 1
    exponent = max(size - scale - PRECISION[name], LEAST[name])
    shift = exponent + scale
    value = abs(top)
    if shift > 0:
        rest, half = value & ((1 << shift) - 1), 1 << (shift - 1)
        value >>= shift
        value += rest > half or (rest == half and value & 1)
    else:
        value <<= -shift
    try:
        rounded = math.ldexp(value, exponent)
    except OverflowError:
        rounded = math.inf
    return math.copysign(math.inf if rounded > MOST[name] else rounded, 1 if top > 0 else -1)


# ---- bits ----

def bits_of(x, name):
    if type(x) is Inexact:
        raise Ambiguous
    if name in INTEGERS:
        return x & ((1 << BITS[name]) - 1)
    if x != x:
        raise Ambiguous
    if name == "bf16":
        return struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    code = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[name]
    return struct.unpack(code[1], struct.pack(code[0], x))[0]


def of_bits(bits, name):
    if name not in FLOATS:
        return wrap(bits, name)
    if name == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    code = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[name]
    return struct.unpack(code[0], struct.pack(code[1], bits))[0]


def literal_text(bits, name):
    """Returns a literal of the type for the value with these bits, in parentheses if it needs them before a subscript
    or a field."""
    bits &= (1 << BITS[name]) - 1
    if name == "bool":
        return "true" if bits else "false"
    value = of_bits(bits, name)
    if name in FLOATS and value - value != 0:
        return f"bitcast({name}, {bits}u{BITS[name]})"
    if name in ("i8", "i16") and value >= 0:
        return f"{name}({value})"  # with a `-` before it, the literal would be a different number and not an i32
    text = f"{value!r}{name}"
    return f"({text})" if text[0] == "-" else text


def bitcast(x, source, target): return of_bits(bits_of(x, source), target)
