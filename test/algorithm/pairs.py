"""Reductions over pairs of rows, with one value and with several values, for sizes around the tile sizes: sums, minima and
maxima by name, a user-defined operator, the k smallest values, and funcs as operands and results."""
import numpy as np

from cases import Case, cases, some_cases
from product_data import EPSILON, SUMS, expect_kind, of_kind, to_kind

FLOATS = ["bf16", "f2", "f4", "f8", "c8", "c16"]
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
# Returns the number of rows in x, the number of rows in y, and their width. Each can be 0, 1, or close to the number that a
# thread or a block processes at a time.
SHAPES = [(1, 1, 1), (2, 3, 2), (16, 1, 3), (17, 255, 3), (63, 256, 1), (64, 257, 4), (65, 700, 2), (128, 33, 7), (129, 512, 5), (300, 1030, 3), (513, 40, 30), (5, 90, 200)]


def rows(rng, count, width, kind):
    """Creates an array with random strides. Its columns are sometimes contiguous in memory."""
    shape = (count, width) if rng.random() < 0.7 else (width, count)
    x = rng.integers(0 if kind[0] == "u" else -9, 10, shape) if kind[0] in "iu" else rng.standard_normal(shape)
    x = to_kind(x + 1j * rng.standard_normal(shape) if kind[0] == "c" else x, kind)
    return x if x.shape == (count, width) else x.T


def squares(x, y, kind="f8"):
    return ((x.astype(kind)[:, None, :] - y.astype(kind)[None]) ** 2).sum(2)


@some_cases(16)
def sums(rng):
    for m, n, d in SHAPES + [(0, 5, 2), (4, 0, 2), (0, 0, 1)]:
        for kind in ("f4", "f8"):
            x, y = rows(rng, m, d, kind), rows(rng, n, d, kind)
            want = np.exp(-0.5 * squares(x, y)).sum(1)
            case = Case(f"gauss {m} {n} {d} {kind}", "{r} = pairs(gauss(0.5%s), {x}, add, {y})" % kind.replace("f4", "f32").replace("f8", "f64"), x=x, y=y)
            yield case.expect("r", want.astype(kind), atol=float(want.max(initial=1)) * (d + 20 + n) * EPSILON[kind])


@some_cases(16)
def numbers(rng):
    """Operands with one axis, in all numeric types. Integers are added as in NumPy; f16 and bf16 numbers are added in f32."""
    for kind in FLOATS + INTEGERS:
        for m, n, _ in SHAPES:
            x, y = rows(rng, m, 1, kind)[:, 0], rows(rng, n, 1, kind)[:, 0]
            case = Case(f"product {m} {n} {kind}", "{r} = pairs(product, {x}, add, {y})", x=x, y=y)
            if kind[0] in "iu":
                wide = "u8" if kind in ("u4", "u8") else "i8"  # products of smaller types are i32
                yield case.expect("r", np.multiply.outer(x.astype(wide), y.astype(wide)).sum(1))
                continue
            wide = "c16" if kind[0] == "c" else "f8"
            all_pairs = np.multiply.outer(x.astype(wide), y.astype(wide))
            size = float(np.abs(all_pairs).sum(1).max())
            yield expect_kind(of_kind(case, kind), all_pairs.sum(1), kind, atol=size * ((n + 4) * SUMS[kind] + EPSILON[kind]))  # products and the result are rounded, too


@some_cases(14)
def several(rng):
    """One pass with several results: each operator, in one piece, in chunks and on several devices; also vectors and structs of
    numbers."""
    for m, n, d in SHAPES:
        if d < 2:
            continue
        for end in ("", ", chunk=37", ", devices=2"):
            x, y = rows(rng, m, d, "f8"), rows(rng, n, d, "f8")
            w = np.exp(-0.5 * squares(x, y))
            parts = {"q": w, "r": w * (x[:, None, 0] - y[None, :, 0]), "s": np.multiply.outer(np.arange(m), np.arange(n)) % 7}
            for name, make in (("add", np.sum), ("max", np.max), ("argmin", np.argmin), ("mean", np.mean)):
                case = Case(f"several {name} {m} {n} {d}{end}", "{q}, {r}, {s} = pairs(several(0.5f64), {x}, %s, {y}%s)" % (name, end), x=x, y=y)
                for key, part in parts.items():
                    case = case.expect(key, make(part, axis=1), rtol=1e-12, atol=1e-12 * n)
                yield case
        x, y = rows(rng, m, d, "f4"), rows(rng, n, d, "f4")
        w = np.exp(-0.5 * squares(x, y))
        j, both = np.broadcast_to(np.arange(n) % 5, w.shape), np.add.outer(np.arange(m), np.arange(n)) % 3
        four = [w, w * y[:, 0], w * y[:, 1], j]
        nine = [w, *four, w, w * x[:, :1], w * x[:, 1:2], both]
        call = "{q}, put_seven({r})[%d], put_four({s})[%d] = pairs(composed(0.5f32), {x}, added, {y})" % (m, m)
        case = Case(f"composed {m} {n} {d}", call, x=x, y=y, r=np.zeros((m, 9)), s=np.zeros((m, 4)))
        sums = {"r": np.stack([part.sum(1) for part in nine], 1), "s": np.stack([part.sum(1) for part in four], 1)}
        size = 8 * float(np.abs(x).max() + np.abs(y).max() + 1) * (n + d + 20) * EPSILON["f4"]
        case = case.expect("q", w.sum(1).astype("f4"), atol=n * size).expect("s", sums["s"], atol=n * size)
        yield case.expect("r", sums["r"], atol=n * size)


@some_cases(30)
def names(rng):
    makers = {"min": np.min, "max": np.max, "argmin": np.argmin, "argmax": np.argmax, "any": np.any, "all": np.all, "count_nonzero": np.count_nonzero}
    for kind in ("f4", "f8", "i2", "i8", "u4"):
        for name, make in makers.items():
            m, n, _ = SHAPES[int(rng.integers(0, len(SHAPES)))]
            x, y = rows(rng, m, 1, kind)[:, 0], rows(rng, n, 1, kind)[:, 0]
            if kind[0] == "f" and rng.random() < 0.5:
                y[int(rng.integers(0, n))] = np.nan
            all_pairs = np.abs(np.subtract.outer(x, y)) if kind[0] != "u" else np.maximum.outer(x, y) - np.minimum.outer(x, y)
            yield Case(f"{name} {m} {n} {kind}", "{r} = pairs(difference, {x}, %s, {y})" % name, x=x, y=y).expect("r", make(all_pairs, axis=1))
    for m, n, d in SHAPES:
        for kind in ("f4", "f8"):
            x, y = rows(rng, m, d, kind), rows(rng, n, d, kind)
            wide = squares(x, y)
            loose = (d + 30) * EPSILON[kind]
            for name, want in (("mean", wide.mean(1)), ("std", wide.std(1)), ("logaddexp", None)):
                if want is None:
                    most = wide.max(1)
                    want = most + np.log(np.exp(wide - most[:, None]).sum(1))
                yield Case(f"{name} {m} {n} {d} {kind}", "{r} = pairs(squared, {x}, %s, {y})" % name, x=x, y=y).expect("r", want.astype(kind), rtol=loose + n * EPSILON[kind], atol=loose * float(wide.max()))
            yield Case(f"nearest {m} {n} {d} {kind}", "{r} = pairs(squared, {x}, argmin, {y})", x=x, y=y).expect("r", np.argmin(wide, 1)) if kind == "f8" else Case(f"least {m} {n} {d}", "{r} = pairs(squared, {x}, min, {y})", x=x, y=y).expect("r", wide.min(1).astype(kind), rtol=loose)


@cases
def extremes_of_logaddexp(rng):
    """Single values that overflow, infinities and NaN."""
    x = np.array([0.0, 1000.0, -np.inf, np.inf, np.nan])
    y = rng.standard_normal(300)
    with np.errstate(invalid="ignore"):
        want = np.array([np.logaddexp.reduce(v + y) for v in x])
    yield Case("logaddexp of far values", "{r} = pairs(places({s}), {x}, logaddexp, {y})", x=x, y=y, s=np.zeros(2)).expect("r", want, rtol=1e-12)


@cases
def calls(rng):
    x, y, b = rows(rng, 70, 3, "f4"), rows(rng, 600, 3, "f4"), rng.standard_normal(600).astype("f4")
    kernel = np.exp(-0.25 * squares(x, y))
    size = float((kernel @ np.abs(b.astype("f8"))).max())
    yield Case("weights", "{r} = pairs(weighted(0.25f32), {x}, add, {y}, {b})", x=x, y=y, b=b).expect("r", (kernel @ b.astype("f8")).astype("f4"), atol=size * (600 + 23) * EPSILON["f4"])
    yield Case("f64 on request", "{r} = pairs(weighted(0.25f32), {x}, add, {y}, {b}, accumulator=f64)", x=x, y=y, b=b).expect("r", kernel @ b.astype("f8"), atol=size * 23 * EPSILON["f4"])
    x, y, scale = rng.integers(0, 9, 40).astype("i4"), rng.integers(0, 9, 333).astype("i4"), rng.integers(1, 99, 2).astype("f8")
    both = np.add.outer(x, y) + np.arange(40)[:, None] * scale[0] + np.arange(333) * scale[1]
    yield Case("places", "{r} = pairs(places({s}), {x}, add, {y})", x=x, y=y, s=scale).expect("r", both.sum(1))
    for n in (1, 256, 257, 2000):
        x, y = rng.integers(0, 9, 40).astype("i8"), rng.integers(1, 999, n)
        want = [next((int(y[j]) for j in range(n - 1, -1, -1) if (i + j) % 3 == 0), 0) for i in range(40)]
        yield Case(f"last of {n}", "{r} = pairs(either, {x}, last, {y})", x=x, y=y).expect("r", np.array(want))
    x, y = rows(rng, 33, 4, "f8"), rows(rng, 290, 4, "f8")
    yield Case("funcs", "put({r})[33] = pairs(squared, row({x})[33, 4], max, {y})", x=x, y=y, r=np.zeros(33)).expect("r", squares(2 * x, y).max(1), rtol=1e-13)
    r = np.zeros(66)
    r[::-2] = squares(x, y[::-1]).sum(1)
    yield Case("views", "{r}[::-2] = pairs(squared, {x}, add, {y}[::-1])", x=x, y=y, r=np.zeros(66)).expect("r", r, rtol=1e-12)


@some_cases(20)
def least(rng):
    for m, n, d in SHAPES:
        for kind in ("bf16", "f4", "f8", "i4", "u1"):
            for k in sorted({1, min(n, 5), min(n, 16), min(n, 33)}):
                x, y = rows(rng, m, 1, kind)[:, 0], rows(rng, n, 1, kind)[:, 0]
                if kind == "bf16":  # differences of numbers with this few bits are exact
                    x, y = np.rint(9 * x), np.rint(9 * y)
                if kind[0] not in "iu" and rng.random() < 0.4:
                    y[rng.integers(0, n, 3)] = np.nan
                all_pairs = np.maximum.outer(x, y) - np.minimum.outer(x, y)
                places = np.argsort(all_pairs, axis=1, kind="stable")[:, :k]
                case = Case(f"{k} least {m} {n} {kind}", "{r}, {p} = pairs_smallest(difference, {x}, %d, {y})" % k, x=x, y=y)
                yield expect_kind(of_kind(case, kind), np.take_along_axis(all_pairs, places, 1), kind).expect("p", places)
    x, y = rows(rng, 90, 3, "f8"), rows(rng, 800, 3, "f8")
    yield Case("values alone", "{r} = pairs_smallest(squared, {x}, 7, {y})", x=x, y=y).expect("r", np.sort(squares(x, y), 1)[:, :7], rtol=1e-13)


@some_cases(24)
def pieces(rng):
    """Processing y in chunks gives the same results as processing it at once. The chunks have about the size of a tile, a
    single row, or more rows than y."""
    for m, n in ((40, 700), (1, 513), (129, 90)):
        for chunk in (1 if n < 100 else 37, 256, 257, n - 1, n, 3 * n):
            x, y = rows(rng, m, 3, "f8"), rows(rng, n, 3, "f8")
            wide, end = squares(x, y), ", {y}, chunk=%d)" % chunk
            arrays = {"x": x, "y": y}
            name = f"{m} {n} by {chunk}"
            yield Case(f"sums {name}", "{r} = pairs(gauss(0.5f64), {x}, add" + end, **arrays).expect("r", np.exp(-0.5 * wide).sum(1), rtol=1e-12)
            yield Case(f"means {name}", "{r} = pairs(squared, {x}, mean" + end, **arrays).expect("r", wide.mean(1), rtol=1e-12)
            yield Case(f"nearest {name}", "{r} = pairs(squared, {x}, argmin" + end, **arrays).expect("r", wide.argmin(1))
            yield Case(f"logaddexp {name}", "{r} = pairs(squared, {x}, logaddexp" + end, **arrays).expect("r", np.logaddexp.reduce(wide, axis=1), rtol=1e-12)
            k = min(n, 9)
            least = np.argsort(wide, axis=1, kind="stable")[:, :k]
            yield Case(f"{k} least {name}", "{r}, {p} = pairs_smallest(squared, {x}, %d" % k + end, **arrays).expect("r", np.take_along_axis(wide, least, 1), rtol=1e-13).expect("p", least)
            a, b, scale = rng.integers(0, 9, m).astype("i4"), rng.integers(0, 9, n).astype("i4"), rng.integers(1, 99, 2).astype("f8")
            both = np.add.outer(a, b) + np.arange(m)[:, None] * scale[0] + np.arange(n) * scale[1]
            yield Case(f"places {name}", "{r} = pairs(places({s}), {x}, add" + end, x=a, y=b, s=scale).expect("r", both.sum(1))
            c = rng.integers(1, 999, n)
            want = [next((int(c[j]) for j in range(n - 1, -1, -1) if (i + j) % 3 == 0), 0) for i in range(m)]
            yield Case(f"last {name}", "{r} = pairs(either, {x}, last" + end, x=a.astype("i8"), y=c).expect("r", np.array(want))
            w = rng.standard_normal(n)
            yield Case(f"weights {name}", "{r} = pairs(weighted(0.5f64), {x}, add, {y}[::-1], {w}, chunk=%d)" % chunk, w=w, **arrays).expect("r", np.exp(-0.5 * wide)[:, ::-1] @ w, atol=1e-11)


@some_cases(8)
def biases(rng):
    """Passes an array with one element for each row of x, and another array for y. The func must not be called with a position
    out of bounds."""
    for m, n, _ in SHAPES:
        for end in ("", ", chunk=37", ", devices=2", ", devices=3, chunk=100"):
            x, y, a, b = (rng.standard_normal(count) for count in (m, n, m, n))
            wide = np.abs(np.subtract.outer(x, y)) + a[:, None] + b
            arrays, name = {"x": x, "y": y, "a": a, "b": b}, f"{m} {n}{end}"
            yield Case(f"biased sums {name}", "{r} = pairs(biased({a}, {b}), {x}, add, {y}%s)" % end, **arrays).expect("r", wide.sum(1), atol=1e-10)
            yield Case(f"biased nearest {name}", "{r} = pairs(biased({a}, {b}), {x}, argmin, {y}%s)" % end, **arrays).expect("r", wide.argmin(1))
            k = min(n, 9)
            yield Case(f"biased least {name}", "{r} = pairs_smallest(biased({a}, {b}), {x}, %d, {y}%s)" % (k, end), **arrays).expect("r", np.sort(wide, 1)[:, :k], rtol=1e-13)


@some_cases(24)
def shares(rng):
    """Distributing x over devices gives the same results as one device. There are fewer rows than devices, the same number, or
    more, and y is processed at once or in chunks."""
    for m, n in ((1, 300), (3, 257), (40, 700), (129, 90)):
        for devices, chunk in ((1, 0), (2, 0), (3, 37), (5, 0), (3, n), (7, 100)):
            x, y = rows(rng, m, 3, "f8"), rows(rng, n, 3, "f8")
            wide, end = squares(x, y), ", {y}, devices=%d%s)" % (devices, f", chunk={chunk}" if chunk else "")
            arrays = {"x": x, "y": y}
            name = f"{m} {n} on {devices} by {chunk}"
            yield Case(f"sums {name}", "{r} = pairs(gauss(0.5f64), {x}, add" + end, **arrays).expect("r", np.exp(-0.5 * wide).sum(1), rtol=1e-12)
            yield Case(f"nearest {name}", "{r} = pairs(squared, {x}, argmin" + end, **arrays).expect("r", wide.argmin(1))
            k = min(n, 9)
            least = np.argsort(wide, axis=1, kind="stable")[:, :k]
            yield Case(f"{k} least {name}", "{r}, {p} = pairs_smallest(squared, {x}, %d" % k + end, **arrays).expect("r", np.take_along_axis(wide, least, 1), rtol=1e-13).expect("p", least)
            yield Case(f"{k} least values {name}", "{r} = pairs_smallest(squared, {x}, %d" % k + end, **arrays).expect("r", np.sort(wide, 1)[:, :k], rtol=1e-13)
            a, b, scale = rng.integers(0, 9, m).astype("i4"), rng.integers(0, 9, n).astype("i4"), rng.integers(1, 99, 2).astype("f8")
            both = np.add.outer(a, b) + np.arange(m)[:, None] * scale[0] + np.arange(n) * scale[1]
            yield Case(f"places {name}", "{r} = pairs(places({s}), {x}, add" + end, x=a, y=b, s=scale).expect("r", both.sum(1))
            c = rng.integers(1, 999, n)
            want = [next((int(c[j]) for j in range(n - 1, -1, -1) if (i + j) % 3 == 0), 0) for i in range(m)]
            yield Case(f"last {name}", "{r} = pairs(either, {x}, last" + end, x=a.astype("i8"), y=c).expect("r", np.array(want))
            views = np.zeros(2 * m)
            views[::-2] = np.exp(-0.5 * wide)[:, ::-1].sum(1)
            yield Case(f"views {name}", "{r}[::-2] = pairs(gauss(0.5f64), {x}, add" + end.replace("{y}", "{y}[::-1]"), r=np.zeros(2 * m), **arrays).expect("r", views, rtol=1e-12)
