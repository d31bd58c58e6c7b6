"""Expressions of integer operands a, b, c of one type, with their values according to the language reference."""
from special_floats import Expression
from special_values import FLOATS, INTEGERS, encode, size_of

WORDS = ("i32", "u32")


def arithmetic(t):
    """8- and 16-bit integers count as i32."""
    return t if size_of(t) >= 4 else "i32"


def wrapped(t, value):
    width = 8 * size_of(t)
    value &= (1 << width) - 1
    return value - (1 << width) if t[0] == "i" and value >> (width - 1) else value


def wraps(function, of=arithmetic):
    return lambda t, *values: wrapped(of(t), function(*values))


def unsigned(t, value):
    return value & ((1 << 8 * size_of(arithmetic(t))) - 1)


def floor_divide(x, y):
    return x // y if y else 0


def divide_to_zero(x, y):
    return (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0


def remainder_to_zero(x, y):
    return x - divide_to_zero(x, y) * y if y else 0


def power(t, x, y):
    if y >= 0:
        return wrapped(arithmetic(t), pow(x, y, 1 << 64) if x >= 0 else pow(x % (1 << 64), y, 1 << 64))
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


def shift(is_left):
    def reference(t, x, y):
        count = y & (8 * size_of(arithmetic(t)) - 1)
        return wrapped(arithmetic(t), x << count if is_left else x >> count)
    return reference


def reversed_bits(unit):
    def reference(t, x):
        width = 8 * size_of(arithmetic(t))
        digits = f"{unsigned(t, x):0{width}b}"
        parts = [digits[i:i + unit] for i in range(0, width, unit)]
        return wrapped(arithmetic(t), int("".join(reversed(parts)), 2))
    return reference


def leading_zeros(t, x):
    return 8 * size_of(arithmetic(t)) - unsigned(t, x).bit_length()


def word(x):
    return x & 0xffffffff


def byte(x, i):
    return word(x) >> 8 * i & 255


def permute(t, x, y, s):
    chosen = [(word(x) | word(y) << 32) >> 8 * (s >> 4 * i & 7) & 255 for i in range(4)]
    return sum(b << 8 * i for i, b in enumerate(chosen))


def funnel(is_left, is_clamped):
    def reference(t, low, high, n):
        both, count = word(high) << 32 | word(low), min(word(n), 32) if is_clamped else n & 31
        return word(both << count >> 32 if is_left else both >> count)
    return reference


def dot(t, x, y, c):
    def part(v, i):
        return byte(v, i) - (256 if t == "i32" and byte(v, i) > 127 else 0)
    return wrapped(t, c + sum(part(x, i) * part(y, i) for i in range(4)))


def expect(text, reference, types=INTEGERS, result="i"):
    return Expression(text, result, True, types, reference)


ONE = [
    expect("-a", wraps(lambda x: -x)), expect("~a", wraps(lambda x: ~x)), expect("+a", wraps(lambda x: x)), expect("abs(a)", wraps(abs)),
    expect("popc(a)", lambda t, x: bin(unsigned(t, x)).count("1")), expect("clz(a)", leading_zeros), expect("ctz(a)", lambda t, x: (x & -x).bit_length() - 1 if x else 8 * size_of(arithmetic(t))), expect("ffs(a)", lambda t, x: (x & -x).bit_length()),
    expect("brev(a)", reversed_bits(1)), expect("bswap(a)", reversed_bits(8)), expect("bool(a)", lambda t, x: int(x != 0)), expect("not a", lambda t, x: int(x == 0)),
    expect("a ** 2", wraps(lambda x: x * x)), expect("a ** 3", wraps(lambda x: x ** 3)), expect("a ** i32(-1)", lambda t, x: power(t, x, -1)), expect("a ** i32(-2)", lambda t, x: power(t, x, -2)),
    expect("a // 2", wraps(lambda x: x // 2)), expect("a % 8", wraps(lambda x: x % 8)), expect("a // 7", wraps(lambda x: x // 7)), expect("a % 7", wraps(lambda x: x % 7)),
    *(expect(f"{name}(a)", lambda t, x, name=name: wrapped(name, x)) for name in INTEGERS),
    *(expect(f"{name}(a)", lambda t, x, name=name: encode(name, x), result=name) for name in FLOATS),
]

TWO = [
    expect("a + b", wraps(lambda x, y: x + y)), expect("a - b", wraps(lambda x, y: x - y)), expect("a * b", wraps(lambda x, y: x * y)),
    expect("a // b", wraps(floor_divide)), expect("a % b", wraps(lambda x, y: x % y if y else 0)), expect("a ** b", power),
    expect("a & b", wraps(lambda x, y: x & y)), expect("a | b", wraps(lambda x, y: x | y)), expect("a ^ b", wraps(lambda x, y: x ^ y)),
    expect("a << b", shift(True)), expect("a >> b", shift(False)),
    *(expect(f"a {op} b", lambda t, x, y, compare=compare: int(compare(x, y))) for op, compare in (
        ("<", int.__lt__), ("<=", int.__le__), (">", int.__gt__), (">=", int.__ge__), ("==", int.__eq__), ("!=", int.__ne__))),
    expect("min(a, b)", wraps(min)), expect("max(a, b)", wraps(max)), expect("select(a < b, a, b)", wraps(min)),
    expect("mulhi(a, b)", lambda t, x, y: wrapped(arithmetic(t), x * y >> 8 * size_of(arithmetic(t)))),
    expect("ceil_div(a, b)", wraps(lambda x, y: -(-x // y) if y else 0)), expect("div_trunc(a, b)", wraps(divide_to_zero)), expect("rem_trunc(a, b)", wraps(remainder_to_zero)),
]

THREE = [
    expect("byte_perm(a, b, c)", permute, WORDS), expect("funnelshift_l(a, b, c)", funnel(True, False), WORDS), expect("funnelshift_r(a, b, c)", funnel(False, False), WORDS),
    expect("funnelshift_lc(a, b, c)", funnel(True, True), WORDS), expect("funnelshift_rc(a, b, c)", funnel(False, True), WORDS),
    expect("dp4a(a, b, c)", dot, WORDS), expect("sad(a, b, c)", lambda t, x, y, c: word(c + abs(x - y)), WORDS),
    expect("min(max(a, b), c)", wraps(lambda x, y, c: min(max(x, y), c))), expect("(a + b) // c", lambda t, x, y, c: wrapped(arithmetic(t), floor_divide(wrapped(arithmetic(t), x + y), c))),
]
