import numpy as np
from rows import NUMPY_OF, row, wrap

F32 = np.float32


@row("vectors: constructors from mixed parts")
def _(r, rng):
    n = 37
    a, s = rng.standard_normal((n, 2)).astype(F32), rng.standard_normal(n).astype(F32)
    r.vectors_of("f32x4", out=np.zeros((6 * n, 4), F32))
    r.vectors_of("f32x2", a=a)
    r.array("s", s)
    r.launch("construct", "2, 32", "out", "a", "s")
    want = np.zeros((n, 6, 4), F32)
    ones, twos = np.ones(n), np.full(n, 2)
    want[:, 0] = np.stack([a[:, 0], a[:, 1], s, ones], 1)
    want[:, 1] = np.stack([twos, a[:, 1], a[:, 0], s], 1)
    want[:, 2] = np.stack([a[:, 0], a[:, 0], a[:, 1], a[:, 1]], 1)
    want[:, 3] = s[:, None]
    want[:, 4] = np.stack([np.arange(n), -ones, ones / 2, ones / 2], 1)
    r.expect("out", want.reshape(6 * n, 4))


@row("vectors: swizzles and lanes")
def _(r, rng):
    n = 45
    x = rng.integers(-9, 10, (n, 4)).astype(F32)
    r.vectors_of("f32x3", out=np.zeros((n, 3), F32))
    r.vectors_of("f32x4", x=x)
    r.array("single", np.zeros(n, F32))
    r.launch("swizzle", "1, 32", "out", "x", "single")
    r.expect("out", x[:, [3, 2, 1]] + x[:, [0]] * x[:, [1]])
    r.expect("single", x @ np.array([1, 10, 100, 1000], F32))


@row("vectors: lanes by run-time index, as places")
def _(r, rng):
    for lanes in (2, 3, 4, 8, 16):
        for dtype, name in ((np.float32, "f32"), (np.int64, "i64"), (np.uint8, "u8")):
            if dtype == np.uint8 and lanes == 16:
                continue
            n = 33
            x, k = rng.integers(1, 20, (n, lanes)).astype(dtype), rng.integers(0, lanes, n).astype(np.int32)
            key = f"{name}x{lanes}"
            r.vectors_of(key, **{f"x{key}": x, f"o{key}": np.zeros_like(x)})
            r.array(f"k{key}", k)
            r.launch("lanes", "1, 64", f"o{key}", f"x{key}", f"k{key}")
            want = x.copy()
            for i in range(n):
                want[i, k[i]] += want[i, -1]
                want[i, 0] = -want[i, 0].astype(np.int64) if dtype == np.uint8 else -want[i, 0]
                want[i, 1] += 1
            r.expect(f"o{key}", want)


@row("vectors: lanes of elements as places")
def _(r, rng):
    for name, dtype in (("f32x4", F32), ("f64x4", np.float64), ("i16x4", np.int16), ("f32x8", F32)):
        x = rng.integers(-50, 50, (29, int(name[-1]))).astype(dtype)
        want = x.copy()
        want[:, 1] = x[:, 0]
        want[:, 0] += 2
        want[:, 2] = want[:, 3]
        r.vectors_of(name, **{f"p{name}": x})
        r.launch("places", "1, 32", f"p{name}")
        r.expect(f"p{name}", want)


@row("vectors: float operators and built-ins")
def _(r, rng):
    n = 40
    for lanes, dtype, name, tolerance in ((4, F32, "f32", 1e-6), (2, np.float64, "f64", 1e-13), (3, F32, "f32", 1e-6), (2, np.float16, "f16", 2e-3), (8, F32, "f32", 1e-6), (4, np.float16, "f16", 2e-3)):
        key = f"{name}x{lanes}"
        x = rng.uniform(-4, 4, (n, lanes)).astype(dtype)
        y = (rng.uniform(0.5, 3, (n, lanes)) * rng.choice([-1, 1], (n, lanes))).astype(dtype)
        z = rng.uniform(-2, 2, n).astype(dtype)
        t = z[:, None]
        w = np.float64 if dtype != np.float16 else F32
        X, Y, T = x.astype(w), y.astype(w), t.astype(w)
        want = [X + Y, X - T, T * Y, X / Y, -X, 2 * X + 0.5, X % Y, X // Y, X ** 3, np.maximum(X, Y), np.minimum(X, 0), abs(X), np.sqrt(abs(X)), np.floor(X),
                np.where(X < Y, X, Y + 1), np.where(T > 0, X, Y), X * Y + T, np.copysign(X, Y)]
        r.vectors_of(key, **{f"x{key}": x, f"y{key}": y, f"o{key}": np.zeros((len(want), n, lanes), dtype)})
        r.array(f"z{key}", z)
        r.launch("floats", "2, 32", f"o{key}", f"x{key}", f"y{key}", f"z{key}")
        r.expect(f"o{key}", np.stack(want), rtol=tolerance, atol=tolerance * 4)


@row("vectors: comparisons, any and all")
def _(r, rng):
    n = 64
    x, y = rng.integers(-2, 3, (n, 2)).astype(F32), rng.integers(-2, 3, (n, 2)).astype(F32)
    r.vectors_of("f32x2", x=x, y=y)
    r.array("out", np.zeros((7, n), np.int32))
    r.launch("tests", "1, 64", "out", "x", "y")
    less, equal = x < y, x == y
    r.expect("out", np.stack([less.any(1), less.all(1), (less & ~equal).any(1), (less | ~equal).all(1), (x >= 0).any(1), less[:, 0] + 2 * less[:, 1], np.full(n, 2)]))


@row("vectors: integer operators and built-ins")
def _(r, rng):
    n = 40
    for lanes, dtype, name in ((4, np.int32, "i32"), (2, np.uint32, "u32"), (4, np.uint64, "u64"), (2, np.int64, "i64"), (3, np.int32, "i32"), (16, np.int32, "i32")):
        key = f"{name}x{lanes}"
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (n, lanes), dtype=dtype, endpoint=True)
        y = rng.integers(info.min // 4, info.max // 4, (n, lanes), dtype=dtype, endpoint=True)
        y[y == 0] = 1
        k = rng.integers(0, 31, n).astype(np.int32)
        X, Y, K = x.astype(object), y.astype(object), k.astype(object)[:, None]
        bits = info.bits
        want = [X + Y, X - 3, X * Y, X // Y, X % Y, X & Y, X | Y, X ^ 85, X << 3, X >> K, ~X, np.minimum(X, Y), X ** 2,
                np.vectorize(lambda v: bin(int(v) & (1 << bits) - 1).count("1"), otypes=[object])(X), np.vectorize(lambda v: 1 << (int(v) & 7), otypes=[object])(Y)]
        r.vectors_of(key, **{f"x{key}": x, f"y{key}": y, f"o{key}": np.zeros((len(want), n, lanes), dtype)})
        r.array(f"k{key}", k)
        r.launch("integers", "1, 64", f"o{key}", f"x{key}", f"y{key}", f"k{key}")
        r.expect(f"o{key}", np.stack([wrap(w.ravel(), dtype).reshape(n, lanes) for w in want]))


@row("vectors: conversions lane by lane")
def _(r, rng):
    n = 30
    x = rng.uniform(-300, 300, (n, 4))
    x[0] = [np.nan, np.inf, -np.inf, 1e300]
    x[1] = [0, -0.0, 1e-30, 65519.9]
    r.vectors_of("f64x4", x=x, d=np.zeros((n, 4)))
    r.vectors_of("f32x4", f=np.zeros((n, 4), F32))
    r.vectors_of("f16x4", h=np.zeros((n, 4), np.float16))
    r.vectors_of("i32x4", i=np.zeros((n, 4), np.int32))
    r.vectors_of("u8x4", u=np.zeros((n, 4), np.uint8))
    r.vectors_of("boolx4", m=np.zeros((n, 4), np.bool_))
    r.launch("convert", "1, 32", "f", "d", "h", "i", "u", "m", "x")
    with np.errstate(all="ignore"):
        f, h = x.astype(F32), x.astype(np.float16)
    info = np.iinfo(np.int32)
    i = np.trunc(np.nan_to_num(np.clip(x, info.min, info.max), nan=0)).astype(np.int64).astype(np.int32)
    r.expect("f", f)
    r.expect("d", f.astype(np.float64))
    r.expect("h", h)
    r.expect("i", i)
    r.expect("u", i.astype(np.uint8))
    r.expect("m", x != 0)


@row("vectors: functions of them, three lanes")
def _(r, rng):
    n = 50
    a, b = rng.standard_normal((n, 3)).astype(F32), rng.standard_normal((n, 3)).astype(F32)
    r.vectors_of("f32x3", a=a, b=b, out=np.full((n + 1, 3), 7, F32))
    r.array("angle", np.zeros(n, F32))
    r.launch("geometry", "2, 32", "out", "angle", "a", "b")
    c = np.cross(a.astype(float), b.astype(float))
    unit = lambda v: v / np.linalg.norm(v, axis=1, keepdims=True)
    want = np.vstack([unit(c), [[7, 7, 7]]])  # elements after the last one must not change
    r.expect("out", want, rtol=1e-4, atol=1e-5)
    r.expect("angle", (unit(a.astype(float)) * unit(b.astype(float))).sum(1), atol=1e-5)


@row("vectors: carried by a loop")
def _(r, rng):
    x = rng.integers(-100, 100, (20, 13, 4)).astype(F32)
    r.vectors_of("f32x4", x=x, out=np.zeros((40, 4), F32))
    r.launch("carry", "1, 32", "out", "x")
    r.expect("out", np.stack([x.sum(1), x.max(1)], 1).reshape(40, 4))


@row("vectors: shared and local memory, across a barrier")
def _(r, rng):
    for name, dtype in (("f32x4", F32), ("f32x3", F32), ("f64x2", np.float64), ("f16x2", np.float16), ("i32x8", np.int32)):
        n, lanes = 150, int(name[-1])
        x = rng.integers(-20, 20, (n, lanes)).astype(dtype)
        r.vectors_of(name, **{f"x{name}": x, f"o{name}": np.zeros((n, lanes), dtype)})
        r.launch("tiles", "3, 64", f"o{name}", f"x{name}")
        padded = np.zeros((192, lanes), dtype)
        padded[:n] = x
        i = np.arange(n)
        partner = i // 64 * 64 + 63 - i % 64
        r.expect(f"o{name}", padded[partner] + 1 + x * 2 + x * (i % 64 % 3)[:, None].astype(dtype))


@row("vectors: eight and sixteen lanes")
def _(r, rng):
    n = 35
    x, y = rng.integers(-99, 99, (n, 8)).astype(F32), rng.integers(-20000, 20000, (n, 16)).astype(np.int16)
    r.vectors_of("f32x8", x=x, out=np.zeros((n, 8), F32))
    r.vectors_of("i16x16", y=y, wide=np.zeros((n, 16), np.int16))
    r.launch("eights", "1, 64", "out", "wide", "x", "y")
    r.expect("out", x * 2 + np.array([1, 1, 1, 1, 2, 3, 4, 5], F32))
    r.expect("wide", (y.astype(np.int32) * 2).astype(np.int16))


@row("vectors: exchanged in a warp")
def _(r, rng):
    n = 128
    x, h = rng.standard_normal((n, 4)).astype(F32), rng.standard_normal((n, 2)).astype(np.float16)
    r.vectors_of("f32x4", x=x, out=np.zeros((n, 4), F32))
    r.vectors_of("f16x2", h=h, pairs=np.zeros((n, 2), np.float16))
    r.launch("exchange", "2, 64", "out", "pairs", "x", "h")
    i = np.arange(n)
    r.expect("out", x[i ^ 5])
    r.expect("pairs", h[np.where(i % 32 == 31, i, i + 1)])
    s = rng.integers(-50, 50, (96, 2)).astype(F32)
    r.vectors_of("f32x2", s=s, total=np.zeros((3, 2), F32))
    r.launch("sums", "3, 32", "total", "s")
    r.expect("total", s.reshape(3, 32, 2).sum(1))


@row("vectors: arrays of them with two dimensions")
def _(r, rng):
    x = rng.integers(-9, 9, (12, 12, 4)).astype(F32)
    r.vectors_of("f32x4", x=x, out=np.zeros((12, 12, 4), F32))
    r.launch("strided", "1, 64", "out", "x")
    r.expect("out", x * 2)


@row("vectors: their bits")
def _(r, rng):
    h = rng.standard_normal((41, 2)).astype(np.float16)
    r.vectors_of("f16x2", x=h, h=np.zeros_like(h))
    r.array("u", np.zeros(41, np.uint32))
    r.launch("bits", "1, 64", "u", "h", "x")
    r.expect("u", h.view(np.uint32).ravel())
    r.expect("h", h * np.array([1, -1], np.float16))


@row("vectors: exchanged in odd sizes, compared")
def _(r, rng):
    x, y = rng.integers(0, 256, (64, 3)).astype(np.uint8), rng.integers(-(2**60), 2**60, (64, 2))
    k = np.repeat(rng.integers(0, 9, (2, 1, 4)), 32, 1).reshape(64, 4).astype(np.int32)
    k[40, 3] += 1
    r.vectors_of("u8x3", x=x, three=np.zeros_like(x))
    r.vectors_of("i64x2", y=y, wide=np.zeros_like(y))
    r.vectors_of("i32x4", k=k)
    r.arrays_of(pair=np.zeros((2, 64)), all=np.zeros((2, 64), np.uint32))
    r.launch("more", "2, 32", "three", "wide", "pair", "all", "x", "y", "k")
    i = np.arange(64)
    r.expect("three", x[np.where(i % 32 < 2, i, i - 2)])
    r.expect("wide", y[i // 32 * 32 + i // 2 % 32])
    r.expect("pair", np.stack([i ^ 1, y[i ^ 1, 0].astype(np.float64)]))
    r.expect("all", np.stack([np.where(i < 32, 0xFFFFFFFF, 0), i < 32]))


@row("vectors: literals that meet them")
def _(r, rng):
    x = rng.integers(-9, 9, (40, 2)).astype(np.float64)
    r.vectors_of("f64x2", x=x, out=np.zeros((40, 2)))
    r.launch("meet", "1, 64", "out", "x")
    r.expect("out", 3 * x + 3 + (x + 0.5) ** 3 * np.where(np.arange(40) % 2, 2, 1)[:, None], rtol=1e-14)


@row("vectors: as scalar arguments")
def _(r, rng):
    v, w = rng.integers(-9, 9, 3), complex(2, -3)
    r.vectors_of("f32x3", out=np.zeros((20, 3), F32))
    r.arrays_of(z=np.zeros(20, np.complex128))
    r.scalars["v"] = f"f32x3({v[0]}, {v[1]}, {v[2]})"
    r.scalars["w"] = f"c128({w.real}, {w.imag})"
    r.launch("scalars", "1, 32", "out", "z", "v", "w")
    r.expect("out", v * np.arange(20)[:, None])
    r.expect("z", w * np.arange(20))


@row("vectors: neighbours in an array of any type")
def _(r, rng):
    for kind, result in (("f32", "f32"), ("i16", "i32"), ("u8", "u8"), ("f64", "f32")):
        x = rng.integers(1, 99, 48).astype(NUMPY_OF[kind])
        r.array(f"x_{kind}", x)
        r.array(f"r_{kind}", np.zeros(48, NUMPY_OF[result]))
        r.vectors_of(f"{kind}x2", **{f"p_{kind}": np.zeros((24, 2), NUMPY_OF[kind])})
        r.launch("neighbours", "2, 32", f"r_{kind}", f"x_{kind}", f"p_{kind}")
        r.expect(f"r_{kind}", x + 1)
        pairs = np.zeros((24, 2))
        pairs[1::2, 0] = x[3::4] + 1
        r.expect(f"p_{kind}", pairs)


@row("vectors: neighbours at any place, and whether it is aligned")
def _(r, rng):
    for k in ("f4", "i2"):
        x = rng.integers(-9, 9, 41).astype(k)
        at = np.arange(38)
        r.arrays_of(**{f"x{k}": x, f"s{k}": np.zeros(38, k), f"a{k}": np.zeros((3, 38), bool)})
        r.launch("alignments", "1, 64", f"s{k}", f"a{k}", f"x{k}")
        r.expect(f"s{k}", x[:-3] + 2 * x[1:-2] + 3 * x[2:-1] + 4 * x[3:])
        r.expect(f"a{k}", np.stack([at >= 0, at % 2 == 0, at * x.itemsize % 16 == 0]))
