import numpy as np
from rows import row


@row("slices with bounds and steps of any sign")
def _(r, rng):
    x = rng.integers(-99, 99, 67).astype(np.int32)
    r.array("x", x)
    cases = [(0, 67, 1), (0, 0, 1), (67, 67, 1), (66, -1, -1), (5, 40, 7), (40, 5, 1), (5, 40, -2), (66, 0, -66), (3, 4, 100)]
    for _ in range(6):
        step = int(rng.integers(1, 9)) * int(rng.choice([-1, 1]))
        cases.append((int(rng.integers(0, 67)), int(rng.integers(0, 67)), step))
    for n, (first, stop, step) in enumerate(cases):
        expected = x[[*range(first, stop, step)]]
        result = np.full(70, -1, np.int32)  # differs from every length, and from every value of x after the end
        r.array(f"o{n}", result)
        r.launch("copy_slice", "2, 48", f"o{n}", "x", first, stop, step)
        result[0] = len(expected)
        result[1 : 1 + len(expected)] = expected
        r.expect(f"o{n}", result)


@row("literal bounds count from the end")
def _(r, rng):
    for n in (12, 31):
        x = rng.standard_normal(n)
        expected = np.zeros((8, 40))
        slices = [x[3:-2], x[::2], x[::-1], x[-3::-3], x[:4], x[-5:-1:3], x[2:][::2][1:-1], x[9:3:-2]]
        for i, s in enumerate(slices):
            expected[i, : len(s)] = s
        r.arrays_of(**{f"x{n}": x, f"out{n}": np.zeros((8, 40)), f"s{n}": np.repeat(x, 3), f"t{n}": np.zeros((8, 40), order="F")})
        r.launch("literal_slices", "1, 64", f"out{n}", f"x{n}")
        r.launch("literal_slices", "1, 64", f"t{n}", f"s{n}[1::3]")
        r.expect(f"out{n}", expected)
        r.expect(f"t{n}", expected)


@row("slices and indices together, in every layout")
def _(r, rng):
    A = rng.integers(-9, 9, (12, 15)).astype(np.int32)
    B = rng.integers(-9, 9, (4, 5, 6)).astype(np.float32)
    for order in "CF":
        r.arrays_of(**{f"A{order}": np.array(A, order=order), f"b{order}": np.zeros((12, 7), np.int32), f"B{order}": np.array(B, order=order), f"m{order}": np.zeros((4, 6), np.float32, order=order)})
        r.launch("blocks", "4, 32", f"b{order}", f"A{order}", 3, 7)
        r.launch("middle", "2, 32", f"m{order}", f"B{order}", 2)
        expected = np.zeros((12, 7), np.int32)
        for i in range(4):
            a = A[i * 3 : (i + 1) * 3, 1::2]
            expected[i * 3 : (i + 1) * 3] = a + 100 * a[::-1, :1]
        r.expect(f"b{order}", expected)
        r.expect(f"m{order}", B[:, 2, ::-1] + B[1, 1:][0] * 10)


@row("transposed")
def _(r, rng):
    A = rng.integers(-9, 9, (7, 9)).astype(np.float32)
    expected = A.copy()
    expected[:, 1:] += 1000 * A[:, 1:]
    for order in "CF":
        r.arrays_of(**{f"A{order}": np.array(A, order=order), f"o{order}": np.zeros((7, 9), np.float32, order=order)})
        r.launch("transposed", "2, 40", f"o{order}", f"A{order}")
        r.expect(f"o{order}", expected)


@row("reshaped")
def _(r, rng):
    n, x = 6, rng.integers(-9, 9, 30).astype(np.int64)
    c = x[n:].reshape(4, n)
    i = np.arange(30)
    r.arrays_of(x=x, out=np.zeros((3, 10), np.int64))
    r.launch("reshaped", "1, 64", "out", "x", n)
    r.expect("out", (x + 10 * c[i % 4, i % n]).reshape(3, 10))


@row("views as arguments and results")
def _(r, rng):
    A, x = rng.integers(-9, 9, (6, 8)).astype(np.int32), rng.integers(-9, 9, 11).astype(np.int32)
    expected = np.zeros((6, 9), np.int32)
    for i in range(6):
        other = x[::2] if i % 3 == 0 else A[i]
        chosen = x if i % 3 == 0 else x[1:]
        expected[i, :5] = [
            A[i].sum() + 1000 * A[i, ::2].sum(),
            A[:, i % 8].sum(),
            x[i:].sum() + x[1:][::-1][2:].sum(),
            x[1:].sum() if i % 2 == 0 else x[:-1].sum(),
            chosen[2] + 100 * other.sum(),
        ]
        expected[i, 5:7] = i
        expected[i, 7:] = -i
    for order in "CF":
        r.arrays_of(**{f"A{order}": np.array(A, order=order), f"o{order}": np.zeros((6, 9), np.int32, order=order), f"x{order}": np.repeat(x, 2)})
        r.launch("through_functions", "1, 32", f"o{order}", f"x{order}[::2]", f"A{order}")
        r.expect(f"o{order}", expected)
    r.arrays_of(y=x, calls=np.zeros(6, np.int32))
    r.launch("through_calls", "1, 32", "calls", "y")
    r.expect("calls", [x[i : i + 3].sum() + 100 * x[i::2][1] + 10000 * len(x[i::2]) for i in range(6)])


@row("views across barriers")
def _(r, rng):
    x = rng.integers(-9, 9, 96).astype(np.float32)
    s = x.reshape(3, 32)
    own = s[:, ::-1] + 200
    r.arrays_of(x=x, out=np.zeros(96, np.float32))
    r.launch("across", "3, 32", "out", "x")
    r.expect("out", (own + 1000 * (np.roll(s, -1, 1) + 200) + 7 * s + 3 * (s[:, ::-1] + 100)).ravel())
    y = rng.integers(0, 50, 40).astype(np.int32)
    r.arrays_of(y=y, dynamic=np.zeros(40, np.int32))
    r.launch("dynamic_shared", "1, 40, 160", "dynamic", "y")
    r.expect("dynamic", y[::-1] * 10000 + y[1::2][np.arange(40) // 2] * 100 + 20)


@row("elements of views are places")
def _(r, rng):
    x = rng.integers(0, 5, 500).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(9, np.int32))
    r.launch("places", "4, 128", "out", "x")
    r.expect("out", [0, x.sum(), *np.bincount(x, minlength=5), 0, x.max()])
    y = rng.integers(-9, 9, 33).astype(np.int32)
    expected = np.concatenate([y[:1], y[:32] + 1])
    expected[1:] += 100 * expected[::-1][:32]
    r.array("y", y)
    r.launch("shifted", "1, 32", "y")
    r.expect("y", expected)


@row("a view of aligned data is not aligned")
def _(r, rng):
    for dtype in (np.float32, np.float64, np.int8, np.int16):
        for start in range(3):
            x, k = rng.integers(-50, 50, 1010).astype(dtype), f"{np.dtype(dtype).name}{start}"
            r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros(1000, dtype)})
            r.launch("wide", "", f"o{k}", f"x{k}[{start}:]")
            r.expect(f"o{k}", x[4 + start : 1004 + start] * dtype(2))


@row("views of constants")
def _(r, rng):
    table = np.arange(1, 13).reshape(3, 4)
    r.array("out", np.zeros(12, np.int32))
    r.launch("constants", "1, 32", "out")
    i = np.arange(12)
    r.expect("out", (table[i // 4, 3 - i % 4] + 100 * table.T[i % 4, i // 4] + 10000 * table[1:, 1][i % 2]).astype(np.int32))


@row("each row by a block")
def _(r, rng):
    A = rng.standard_normal((9, 300))
    A[4] = 0
    norm = np.sqrt((A**2).sum(1, keepdims=True))
    for order in "CF":
        r.arrays_of(**{f"A{order}": np.array(A, order=order), f"o{order}": np.zeros((9, 300))})
        r.launch("normalize_rows", "9, 128", f"o{order}", f"A{order}")
        r.expect(f"o{order}", np.divide(A, norm, where=norm > 0, out=np.zeros_like(A)), rtol=1e-12)


@row("the launch finds the extents of views")
def _(r, rng):
    A = rng.integers(-99, 99, (11, 14)).astype(np.int32)
    columns = A.copy()
    columns[:, -1] = 0
    rest = A.copy().ravel()
    rest[0] = 0
    for order in "CF":
        r.arrays_of(**{f"A{order}": np.array(A, order=order), f"i{order}": np.zeros((9, 7), np.int32), f"c{order}": np.zeros((11, 14), np.int32)})
        r.launch("inner", "", f"i{order}", f"A{order}")
        r.launch("columns", "", f"c{order}", f"A{order}")
        r.expect(f"i{order}", A[1:-1, ::-2] + 9)
        r.expect(f"c{order}", columns)
    r.array("rest", np.zeros(154, np.int32))
    r.launch("all_but_first", "", "rest", "AC")
    r.expect("rest", rest)


@row("no dimensions; no elements")
def _(r, rng):
    x = rng.integers(-9, 9, 9).astype(np.int32)
    r.arrays_of(s=np.array(5, np.int32), t=np.array(0, np.int32), A=np.zeros((2, 3, 4)), x=x, none=np.zeros(0, np.int32), total=np.full(64, -999, np.int32), zero=np.ones(64, np.int32))
    r.arrays_of(e=np.zeros(6, np.int32), Z=np.zeros((0, 5), np.int32))
    r.launch("no_dimensions", "1, 1", "t", "s", "A")
    r.launch("shared_scalar", "1, 64", "total", "x")
    r.launch("shared_scalar", "1, 64", "zero", "none")
    r.launch("empty", "1, 32", "e", "x", "Z")
    r.expect("t", np.array(51305, np.int32))
    r.expect("total", np.full(64, x.sum(), np.int32))
    r.expect("zero", np.zeros(64, np.int32))
    r.expect("e", [0, 0, 0, 20, 501, 0])


@row("extents of arrays behind pointers")
def _(r, rng):
    n = 5000000000
    x = np.zeros(8, np.int8)
    r.arrays_of(x=x, far=np.zeros(27, np.int64), negative=np.ones(5, np.int64))
    r.launch("far_extents", "2, 32", "far", "x", f"{n}i64")
    r.launch("negative_extent", "2, 32", "negative", "x", "-5i64")
    r.expect("far", [n + 1, n - 7, 2 * (n - 3), n // 2, (n - 7) + 3 + (n - 1), *range(1, 11), 0, *range(1, 10), 0, 0])
    r.expect("negative", [-5, 0, 0, 1, 1])


@row("extents of arrays without elements")
def _(r, rng):
    n = 5000000000
    r.arrays_of(out=np.zeros(13, np.int64), x=np.zeros(0, np.int8))
    r.launch("wide_nothing", "2, 32", "out", "x", f"{n}i64")
    r.expect("out", [n + 1, n + 1, *range(1, 11), 0])
