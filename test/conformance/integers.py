import numpy as np
from rows import row, wrap

SIGNED, UNSIGNED = (np.int32, np.int64), (np.uint32, np.uint64)
WORDS = SIGNED + UNSIGNED


def floor_div(a, b):
    return 0 if b == 0 else a // b


def floor_mod(a, b):
    return 0 if b == 0 else a % b


def trunc_div(a, b):
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def trunc_rem(a, b):
    return 0 if b == 0 else a - b * trunc_div(a, b)


def up_div(a, b):
    return 0 if b == 0 else -(-a // b)


def interesting(rng, dtype, count=24):
    info = np.iinfo(dtype)
    edges = [v for v in (0, 1, 2, 3, 7, 8, 10, -1, -2, -3, -7, -8, 46341, 65536, info.min, info.min + 1, info.max, info.max - 1) if info.min <= v <= info.max]
    return np.concatenate([np.array(edges, dtype), rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True), rng.integers(max(info.min, -50), 50, count).astype(dtype)])


def literal(value, dtype):
    """Returns the argument: an untyped number if i32 can represent it (larger ones count as floats), otherwise a number
    with its type."""
    return str(value) if -(2**31) <= value < 2**31 else f"{value}{'i' if np.dtype(dtype).kind == 'i' else 'u'}{8 * np.dtype(dtype).itemsize}"


def pairs(rng, dtype, other=None):
    a, b = interesting(rng, dtype), interesting(rng, other or dtype)
    return np.repeat(a, len(b)), np.tile(b, len(a))


def apply(function, *columns, dtype):
    return wrap([function(*values) for values in zip(*[c.tolist() for c in columns])], dtype)


@row("58, 60, 62 the tables of division")
def _(r, rng):
    tables = [
        (np.int32, [-6, -5, -4, -3, -2, -1, 0, 1, 6, -6, 6, 7, -7], [5] * 9 + [-5, -5, -3, 3], [-2, -1, -1, -1, -1, -1, 0, 0, 1, 1, -2, -3, -3], [4, 0, 1, 2, 3, 4, 0, 1, 1, -1, -4, -2, 2]),
        (np.int32, [-6, -5, -1, 0, 6, -7, 7, -2**31], [5, 5, 5, 5, 5, 3, -3, 7], [-2, -1, -1, 0, 1, -3, -3, -306783379], None),
        (np.uint32, [4294967290, 7, 4294967295, 10], [5, 5, 5, 3], [858993458, 1, 858993459, 3], [0, 2, 0, 1]),
    ]
    for k, (dtype, a, b, floor, mod) in enumerate(tables):
        zeros = {f"{name}{k}": np.zeros(len(a), dtype) for name in ("floor", "mod", "quot", "rem", "up")}
        r.arrays_of(**{f"a{k}": np.array(a, dtype), f"b{k}": np.array(b, dtype)}, **zeros)
        r.launch("divide", "1, 32", *zeros, f"a{k}", f"b{k}")
        r.expect(f"floor{k}", floor)
        if mod is not None:
            r.expect(f"mod{k}", mod)


@row("65 division of every sign, by zero, of the minimum by -1")
def _(r, rng):
    for dtype in WORDS:
        k = np.dtype(dtype).name
        a, b = pairs(rng, dtype)
        outputs = {"floor": floor_div, "mod": floor_mod, "quot": trunc_div, "rem": trunc_rem, "up": up_div}
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"fi{k}": a.copy(), f"mi{k}": a.copy()}, **{name + k: np.zeros(len(a), dtype) for name in outputs})
        r.launch("divide", "3, 64", *[name + k for name in outputs], f"a{k}", f"b{k}")
        r.launch("divide_in_place", "", f"fi{k}", f"b{k}")
        r.launch("modulo_in_place", "", f"mi{k}", f"b{k}")
        for name, function in outputs.items():
            r.expect(name + k, apply(function, a, b, dtype=dtype))
        r.expect(f"fi{k}", apply(floor_div, a, b, dtype=dtype))
        r.expect(f"mi{k}", apply(floor_mod, a, b, dtype=dtype))


@row("65 division with a constant operand")
def _(r, rng):
    for dtype in WORDS:
        info = np.iinfo(dtype)
        a = interesting(rng, dtype)
        r.array(f"a{info.dtype}", a)
        for d in (0, 1, 2, 3, 7, 8, 10, 1000003, info.max, -1, -2, -3, -7, -8, info.min):
            if info.min <= d <= info.max:
                k = f"_{info.dtype}_{d}".replace("-", "m")
                outputs = {"floor": floor_div, "mod": floor_mod, "quot": trunc_div, "rem": trunc_rem}
                r.arrays_of(**{name + k: np.full(len(a), 85, dtype) for name in outputs})
                r.launch("divide_by", "1, 64", *[name + k for name in outputs], f"a{info.dtype}", literal(d, dtype))
                for name, function in outputs.items():
                    r.expect(name + k, apply(function, a, np.full_like(a, d), dtype=dtype))
        for n in (0, 1, 100, info.max, -1, info.min):
            if info.min <= n <= info.max:
                k = f"n_{info.dtype}_{n}".replace("-", "m")
                r.arrays_of(**{f"floor{k}": np.full(len(a), 85, dtype), f"mod{k}": np.full(len(a), 85, dtype)})
                r.launch("divide_const", "1, 64", f"floor{k}", f"mod{k}", f"a{info.dtype}", literal(n, dtype))
                r.expect(f"floor{k}", apply(floor_div, np.full_like(a, n), a, dtype=dtype))
                r.expect(f"mod{k}", apply(floor_mod, np.full_like(a, n), a, dtype=dtype))


@row("comparison of any two integers is exact")
def _(r, rng):
    for first, second in ((np.int64, np.uint64), (np.uint64, np.int64), (np.int32, np.uint32), (np.uint32, np.int32), (np.int32, np.uint64), (np.uint32, np.int64), (np.uint8, np.int32), (np.int8, np.uint64), (np.int64, np.int64)):
        k = f"{np.dtype(first).name}{np.dtype(second).name}"
        a, b = pairs(rng, first, second)
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"o{k}": np.zeros((6, len(a)), np.int32)})
        r.launch("compare", "2, 64", f"o{k}", f"a{k}", f"b{k}")
        both = list(zip(a.tolist(), b.tolist()))
        r.expect(f"o{k}", np.array([[x == y for x, y in both], [x != y for x, y in both], [x < y for x, y in both], [x > y for x, y in both], [x <= y for x, y in both], [x >= y for x, y in both]]))


@row("the common type of two integers")
def _(r, rng):
    commons = [(np.int32, np.uint32, np.int64), (np.uint32, np.int64, np.int64), (np.int32, np.int64, np.int64), (np.int8, np.int8, np.int32), (np.uint8, np.uint16, np.int32), (np.int16, np.uint32, np.int64), (np.uint32, np.uint32, np.uint32), (np.int32, np.int32, np.int32)]
    for first, second, common in commons:
        k = f"{np.dtype(first).name}{np.dtype(second).name}"
        a, b = pairs(rng, first, second)
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"o{k}": np.zeros((3, len(a)), np.int64)})
        r.launch("widen", "2, 64", f"o{k}", f"a{k}", f"b{k}")
        r.expect(f"o{k}", np.stack([apply(f, a, b, dtype=common).astype(np.int64) for f in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y)]))


@row("integer arithmetic wraps around")
def _(r, rng):
    for dtype in WORDS:
        k, bits = np.dtype(dtype).name, np.dtype(dtype).itemsize * 8
        a, b = pairs(rng, dtype)
        functions = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: -x, lambda x, y: ~x, lambda x, y: x**3, lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, min, max, lambda x, y: (x * y) >> bits, lambda x, y: abs(x)]
        r.arrays_of(**{f"a{k}": a, f"b{k}": b, f"o{k}": np.zeros((len(functions), len(a)), dtype)})
        r.launch("wrap_around", "2, 64", f"o{k}", f"a{k}", f"b{k}")
        r.expect(f"o{k}", np.stack([apply(f, a, b, dtype=dtype) for f in functions]))


@row("powers with an integer exponent known at run time")
def _(r, rng):
    for dtype in WORDS:
        k = np.dtype(dtype).name
        a = interesting(rng, dtype)
        n = rng.integers(0, 40, len(a)).astype(np.int32)
        n[:3] = [0, 0, 1]
        r.arrays_of(**{f"a{k}": a, f"n{k}": n, f"o{k}": np.zeros(len(a), dtype)})
        r.launch("power", "1, 64", f"o{k}", f"a{k}", f"n{k}")
        r.expect(f"o{k}", apply(lambda x, y: x**y, a, n, dtype=dtype))


@row("a shift count is taken modulo the width")
def _(r, rng):
    for dtype in WORDS:
        k, bits = np.dtype(dtype).name, np.dtype(dtype).itemsize * 8
        a, n = pairs(rng, dtype, np.int32)
        n[::3] = rng.integers(0, 2 * bits, len(n[::3]))
        r.arrays_of(**{f"a{k}": a, f"n{k}": n, f"l{k}": np.zeros(len(a), dtype), f"r{k}": np.zeros(len(a), dtype)})
        r.launch("shift", "2, 64", f"l{k}", f"r{k}", f"a{k}", f"n{k}")
        r.expect(f"l{k}", apply(lambda x, y: x << (y % bits), a, n, dtype=dtype))
        r.expect(f"r{k}", apply(lambda x, y: x >> (y % bits), a, n, dtype=dtype))


@row("10, 11, 12 bits")
def _(r, rng):
    for dtype in WORDS:
        k, bits = np.dtype(dtype).name, np.dtype(dtype).itemsize * 8
        given = [v for v in (0xFF, 0xFFFF, 0xFFFFFFFF, 2**64 - 1, 0x00100000, 0x10000, 0x30F0, 0x000030F0000030F0) if v <= np.iinfo(dtype).max]
        a = np.concatenate([np.array(given, dtype), interesting(rng, dtype)])
        plain = [v & ((1 << bits) - 1) for v in a.tolist()]
        r.arrays_of(**{f"a{k}": a, f"o{k}": np.zeros((4, len(a)), np.int32), f"v{k}": np.zeros(len(a), dtype)})
        r.launch("bits", "1, 64", f"o{k}", f"a{k}")
        r.launch("reverse_bits", "1, 64", f"v{k}", f"a{k}")
        r.expect(f"o{k}", [[bin(v).count("1") for v in plain], [bits - v.bit_length() for v in plain], [(v & -v).bit_length() for v in plain],
                               [(v & -v).bit_length() - 1 if v else bits for v in plain]])
        r.expect(f"v{k}", wrap([int(f"{v:0{bits}b}"[::-1], 2) for v in plain], dtype))
    r.arrays_of(a=np.array([0x30F0], np.uint32), b=np.array([0x000030F0000030F0], np.uint64), ra=np.zeros(1, np.uint32), rb=np.zeros(1, np.uint64))
    r.launch("reverse_bits", "1, 1", "ra", "a")
    r.launch("reverse_bits", "1, 1", "rb", "b")
    r.expect("ra", np.array([0x0F0C0000], np.uint32))
    r.expect("rb", np.array([0x0F0C00000F0C0000], np.uint64))


INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


@row("stores and casts between integers wrap around")
def _(r, rng):
    for source in (np.int32, np.int64, np.uint64, np.int8, np.uint16):
        x = interesting(rng, source)
        r.array(f"x{np.dtype(source).name}", x)
        for target in INTEGERS:
            k = f"{np.dtype(source).name}{np.dtype(target).name}"
            r.arrays_of(**{f"s{k}": np.zeros(len(x), target), f"c{k}": np.zeros(len(x), target)})
            r.launch("store", "1, 64", f"s{k}", f"x{np.dtype(source).name}")
            r.launch("cast", "1, 64", f"c{k}", f"x{np.dtype(source).name}")
            r.expect(f"s{k}", wrap(x.tolist(), target))
            r.expect(f"c{k}", wrap(x.tolist(), target))


@row("67 float to integer truncates and saturates, NaN gives 0")
def _(r, rng):
    for source in (np.float32, np.float64):
        special = [12.3, -12.3, 0.0, -0.0, 0.9, -0.9, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.5, 65535.9, 65536.0, 2.0**31, -(2.0**31), 2.0**31 - 1, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan, 5e-324]
        x = np.concatenate([np.array(special).astype(source), (rng.standard_normal(40) * 10.0 ** rng.integers(0, 22, 40)).astype(source)])
        name = np.dtype(source).name
        r.array(f"x{name}", x)
        for target in INTEGERS:
            info = np.iinfo(target)
            k = f"{name}{info.dtype}"
            r.array(f"c{k}", np.zeros(len(x), target))
            r.launch("cast", "1, 64", f"c{k}", f"x{name}")
            r.expect(f"c{k}", np.array([0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in x.tolist()], target))


@row("67 integer to float; 321 / 2")
def _(r, rng):
    for source in INTEGERS:
        x = interesting(rng, source)
        r.array(f"x{np.dtype(source).name}", x)
        for target in (np.float32, np.float64):
            k = f"{np.dtype(source).name}{np.dtype(target).name}"
            r.array(f"c{k}", np.zeros(len(x), target))
            r.launch("store", "1, 64", f"c{k}", f"x{np.dtype(source).name}")
            r.expect(f"c{k}", x.astype(target))


@row("i * i at 46341 and beyond, into i64")
def _(r, rng):
    n = 46341 + 300
    r.arrays_of(out=np.zeros(n, np.int64), far=np.zeros(1000, np.int64), x=np.arange(46000, 47000, dtype=np.int32), narrow=np.zeros(1000, np.int64))
    r.launch("squares", "", "out")
    r.launch("squares_from", "4, 256", "far", "3000000000i64")
    r.launch("squares_of_i32", "", "narrow", "x")
    i = np.arange(n, dtype=np.int64)
    r.expect("out", i * i)
    far = np.arange(1000, dtype=np.uint64) + np.uint64(3000000000)
    r.expect("far", (far * far).astype(np.int64))
    wide = np.arange(46000, 47000, dtype=np.int64)
    r.expect("narrow", (wide * wide).astype(np.int32))


@row("14 select and if")
def _(r, rng):
    r.arrays_of(a=np.arange(32, dtype=np.int32), s=np.zeros(32, np.int32), i=np.zeros(32, np.int32))
    r.launch("select_or_if", "1, 32", "s", "i", "a", "6", "17")
    r.expect("s", [3] * 5 + [17] * 27)
    r.expect("i", [3] * 5 + [17] * 27)


@row("abs of the minimum, converted to floats")
def _(r, rng):
    for dtype in (np.int32, np.int64):
        k, info = np.dtype(dtype).name, np.iinfo(dtype)
        x = np.concatenate([[info.min, info.min + 1, -1, 0, info.max], rng.integers(info.min, info.max, 40, dtype)]).astype(dtype)
        with np.errstate(over="ignore"):
            want = np.where(x < 0, -x, x)
        r.arrays_of(**{"absx" + k: x, "same" + k: np.zeros(len(x), dtype), "single" + k: np.zeros(len(x), np.float32), "double" + k: np.zeros(len(x))})
        r.launch("absolute", "2, 64", "same" + k, "single" + k, "double" + k, "absx" + k)
        r.expect("same" + k, want)
        r.expect("single" + k, want.astype(np.float32))
        r.expect("double" + k, want.astype(np.float64))


@row("mulhi of 64 bits beside 8")
def _(r, rng):
    n = 3000
    x, y = rng.integers(-2**63, 2**63, n), rng.integers(-128, 128, n).astype(np.int8)
    want = np.array([int(a) * int(b) >> 64 for a, b in zip(x, y)])
    r.arrays_of(x=x, y=y, low=np.zeros(n, np.uint16), whole=np.zeros(n, np.int64))
    r.launch("upper_halves", "4, 128", "low", "whole", "x", "y")
    r.expect("low", want.astype(np.uint16))
    r.expect("whole", want)


@row("shift counts of a known range at and over the width")
def _(r, rng):
    x = interesting(rng, np.int64)
    n = np.concatenate([np.array([0, 1, 7, 31], np.int32), rng.integers(0, 32, 4).astype(np.int32)])

    def values(a, c):
        u, s, a = a % 2**32, int(np.int64(a).astype(np.int32)), int(a)
        rows = [
            u >> (32 - c) % 32, (s & 65535) >> (c & 7), (a & 65535) >> (c & 7), (a & 65535) >> (60 + (c & 7)) % 64,
            (s & 1023) << (c & 3), *wrap([(s & 1023) << (30 + (c & 3)) % 32], np.int32).tolist(), (a & 1023) << (c & 3),
            (u & 65535) >> (32 - c) % 32, s >> c, *wrap([((a & 255) + 1) << c], np.int64).tolist(), u >> c,
            u >> (40 - c) % 32 if s & 3 else (u << (30 + c) % 32) % 2**32,
        ]
        return wrap(rows, np.int64)

    r.arrays_of(out=np.full((len(x) * len(n), 12), -77, np.int64), x=x, n=n)
    r.launch("shifted_ranges", "3, 64", "out", "x", "n")
    r.expect("out", np.array([values(int(a), int(c)) for a in x for c in n]))


@row("indices up to 2^31")
def _(r, rng):
    r.array("out", np.zeros(4, np.int64))
    r.launch("past_32_bits", "", "out", f"{2**31 - 1}i32")
    r.expect("out", [2**31 - 2, 2**31 - 1, 2**31 - 1, -(2**31) - 1])


@row("the greatest of a number and an absolute value")
def _(r, rng):
    for dtype in (np.int32, np.int64, np.int16):
        name, low = np.dtype(dtype).name, np.iinfo(dtype).min // 2
        x, y = rng.integers(low, -low, 64).astype(dtype), rng.integers(low // 64, -low // 64, 64).astype(dtype)
        r.arrays_of(**{"out" + name: np.zeros((64, 5), np.int64), "x" + name: x, "y" + name: y})
        r.launch("greatest_of_three", "", "out" + name, "x" + name, "y" + name)
        a, b = x.astype(np.int64), y.astype(np.int64)
        rows = [np.maximum(b, abs(a)), np.minimum(b, -abs(a)), np.maximum(b, abs(a)), np.minimum(b, -abs(a)), np.maximum(abs(b), abs(a))]
        r.expect("out" + name, np.stack(rows, 1))


@row("words of 16 bits that are negated and widened")
def _(r, rng):
    x = interesting(rng, np.int16)
    r.arrays_of(out=np.zeros((len(x), 4), np.int64), x=x, z=x.copy())
    r.launch("negated_word", "", "out", "x", "z")
    a = x.astype(np.int64)
    negated, absolute = wrap((-a).tolist(), np.int16).astype(np.int64), wrap(abs(a).tolist(), np.int16).astype(np.int64)
    r.expect("out", np.stack([negated, negated // 5, absolute, absolute], 1))


@row("words in the order of the numbers, by questions about the type")
def _(r, rng):
    for k, x in (("i", interesting(rng, np.int32)), ("u", interesting(rng, np.uint32)), ("f", rng.normal(size=50).astype(np.float32))):
        x = np.unique(x)
        bits = x.view(np.uint32)
        expected = np.where(bits >> 31 == 1, ~bits, bits | 1 << 31) if k == "f" else bits ^ np.uint32(1 << 31) if k == "i" else bits
        assert (np.diff(expected.astype(np.int64)) > 0).all()
        r.arrays_of(**{f"x{k}": x, f"r{k}": np.zeros(len(x), np.uint32)})
        r.launch("ordered_words", "1, 64", f"r{k}", f"x{k}")
        r.expect(f"r{k}", expected)


@row("bit counts that are known at compile time")
def _(r, rng):
    for k, (value, bits) in enumerate((("0i32", 32), ("-1i64", 64), ("48u8", 32), ("0u64", 64), ("-128i8", 32), ("9223372036854775808u64", 64))):
        v = int(value[:value.index("iu"[value.count("u")])]) & (1 << bits) - 1
        trailing = (v & -v).bit_length() - 1 if v else bits
        r.arrays_of(**{f"o{k}": np.zeros((2, 4), np.int32)})
        r.launch("known_counts", "1, 1", f"o{k}", value, value)
        r.expect(f"o{k}", np.array([[v.bit_count(), bits - v.bit_length(), trailing, (v & -v).bit_length()]] * 2, np.int32))


def sum_wrapped(r, rng, kernel, index, width, step=1):
    """Thread t adds this number of elements in row t of x, starting at step * t and then again at 0, and stores zeros
    there."""
    rows, count, first = 32, int(rng.integers(width // 8, width // 4 + 1)) * 4, int(rng.integers(0, 100))
    x = rng.integers(1, 100, (rows, width)).astype(np.uint32)
    left, sums = x.copy(), np.zeros(rows, np.uint32)
    for row in range(rows):
        order = (step * row + np.arange(count)) % width
        sums[row] = first + x[row, order].sum()
        left[row, order] = 0
    label = f"{index}{width}"
    r.arrays_of(**{f"x{label}": x.reshape(-1), f"out{label}": np.zeros(rows, np.uint32)})
    r.launch(kernel, "1, 32", f"out{label}", f"x{label}", f"{first}{index}", str(count), str(width))
    r.expect(f"out{label}", sums)
    r.expect(f"x{label}", left.reshape(-1))


@row("subscripts that wrap around in their last bits")
def _(r, rng):
    for index in ("i32", "u32", "i64"):
        for width in (8, 32, 64):
            sum_wrapped(r, rng, "wrapped_masks", index, width)


@row("subscripts that wrap around in a type of few bits")
def _(r, rng):
    for index in ("i32", "u32", "i64"):
        sum_wrapped(r, rng, "wrapped_bytes", index, 256, 8)


@row("subscripts of pairs that wrap around in their last bits")
def _(r, rng):
    for index in ("i32", "u32", "i64"):
        for width in (8, 32, 64):
            sum_wrapped(r, rng, "wrapped_pairs", index, width, 2)


@row("high bits of products of 16-bit numbers")
def _(r, rng):
    n = 300
    ends = np.array([-32768, 32767, -1, 0, 1], np.int16)
    a, b = (np.concatenate([rng.integers(-32768, 32768, n - 25).astype(np.int16), e]) for e in (np.repeat(ends, 5), np.tile(ends, 5)))
    d = rng.integers(-128, 128, n).astype(np.int8)
    wide = a.astype(np.int64) * b
    shifts = [17, 20, 31, 32, 40, 47, 48, 56, 63]
    expected = np.stack([(wide >> s).astype(np.int16) for s in shifts], axis=1)
    zeros = {f"r{s}": np.zeros(n, np.int16) for s in shifts}
    r.arrays_of(r=np.zeros((n, len(shifts)), np.int16), h=np.zeros(n, np.int16), c=np.zeros(n, np.int16), m=np.zeros(n, np.int16), a=a, b=b, d=d, **zeros)
    r.launch("narrow_products", "", "r", "h", "c", "m", "a", "b", "d")
    for k, s in enumerate(shifts):
        r.launch(f"narrow_product_{s}", "", f"r{s}", "a", "b")
        r.expect(f"r{s}", expected[:, k])
    r.expect("r", expected)
    r.expect("h", ((wide >> 32) * a).astype(np.int16))
    r.expect("c", ((a.astype(np.int64) * -1234) >> 21).astype(np.int16))
    r.expect("m", ((a.astype(np.int64) * d) >> 24).astype(np.int16))


@row("minima and maxima of negated numbers")
def _(r, rng):
    for t in ("i1", "i2", "i4"):
        limits = np.iinfo(t)
        a, b, c = (rng.integers(limits.min + 1, limits.max, 200, t) for _ in range(3))
        x, y, z = (v.astype(np.int64) for v in (a, b, c))
        want = [
            np.minimum(np.minimum(x, -y), z),
            np.minimum(z, np.minimum(x, -y)),
            np.maximum(np.maximum(x, -y), -z),
            np.maximum(np.maximum(-x, -y), z),
            np.minimum(x, -y),
            np.maximum(np.minimum(x, y), -y),
        ]
        r.arrays_of(**{f"r{t}": np.zeros((200, 6), np.int32), f"a{t}": a, f"b{t}": b, f"c{t}": c})
        r.launch("negated_minima", "", f"r{t}", f"a{t}", f"b{t}", f"c{t}")
        r.expect(f"r{t}", np.stack(want, axis=1))
