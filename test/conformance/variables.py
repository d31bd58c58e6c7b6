import numpy as np
from rows import row


@row("read above where it is assigned")
def _(r, rng):
    for name, n in (("i", 7), ("f", "2.5f32")):
        x = rng.integers(0, 9, 6).astype(np.float32)
        r.arrays_of(**{f"x{name}": x, f"r{name}": np.zeros(50)})
        expected = np.zeros(50)
        for i in range(50):
            scale = 2.5 if name == "f" else 7
            for k in range(1, 6):
                scale *= 0.5
                expected[i] += (x[k - 1] + i) * scale
        r.launch("previous", "1, 64", f"r{name}", f"x{name}", n)
        r.expect(f"r{name}", expected)


@row("buffers that take turns")
def _(r, rng):
    for n, order in ((3, "CC"), (4, "CF"), (5, "FF"), (0, "FC")):
        shapes = [tuple(rng.integers(1, 7, 2)) for _ in range(2)]
        x, y = (np.array(rng.integers(-9, 9, s), np.int32, order=o) for s, o in zip(shapes, order))
        r.arrays_of(**{f"x{n}": x, f"y{n}": y})
        r.launch("turns", "1, 1", f"x{n}", f"y{n}", n)
        a, b = x.copy(), y.copy()
        expected = [a, b]
        rows, columns = (min(p, q) for p, q in zip(*shapes))
        for t in range(n):
            b[:rows, :columns] = a[:rows, :columns] * 3 + t
            a, b = b, a
        r.expect(f"x{n}", expected[0], unchanged=n < 2)
        r.expect(f"y{n}", expected[1], unchanged=n < 1)


@row("variables and arguments are the same memory")
def _(r, rng):
    for name, is_same in (("apart", False), ("same", True)):
        x, y = (rng.integers(0, 9, 2).astype(np.int32) for _ in range(2))
        second = f"x{name}" if is_same else f"y{name}"
        r.arrays_of(**{f"x{name}": x, f"y{name}": y, f"r{name}": np.zeros(12, np.int32)})
        r.launch("aliased", "1, 1", f"r{name}", f"x{name}", second)
        p = x.copy()
        q = p if is_same else y.copy()
        a, expected = p, np.zeros(12, np.int32)
        for k in range(6):
            a[0] += 1
            expected[2 * k] = p[0]
            p[1] = 10 * k
            q[1] = k
            expected[2 * k + 1] = a[1]
            a = q if k % 2 == 0 else p
        r.expect(f"r{name}", expected)
        r.expect(f"x{name}", p)


@row("local arrays across barriers")
def _(r, rng):
    r.array("out", np.zeros((24, 4), np.int32))
    r.launch("local_turns", "3, 8", "out")
    expected = np.zeros((24, 4), np.int32)
    for thread in range(24):
        i = thread % 8
        a, b = np.arange(4) + i, -np.arange(4)
        for step in range(3):
            a += b + (i + step) % 8
            if (i + step) % 2 == 0:
                a, b = b, a
        expected[thread] = a * 100 + b
    r.expect("out", expected)


@row("shared tiles that take turns")
def _(r, rng):
    for dtype in (np.int32, np.float64):
        x = rng.integers(-99, 99, 96).astype(dtype)
        name = np.dtype(dtype).name
        r.arrays_of(**{f"x{name}": x, f"r{name}": np.zeros(96, dtype)})
        r.launch("tiles", "3, 32", f"r{name}", f"x{name}")
        r.expect(f"r{name}", np.cumsum(x.reshape(3, 32), axis=1).reshape(96))


@row("layouts are joined")
def _(r, rng):
    x = rng.integers(-9, 9, (5, 4)).astype(np.int64)
    y = np.array(rng.integers(-9, 9, (4, 5)), np.int64, order="F")
    r.arrays_of(x=x, y=y, out=np.zeros(60, np.int64))
    r.launch("layouts", "2, 32", "out", "x", "y")
    expected = np.zeros(60, np.int64)
    for i in range(60):
        a = y.T if i % 2 == 0 else x
        a = a[1:] if i % 3 == 0 else a
        k, j = np.indices(a.shape)
        expected[i] = (a * (k + 1) + j).sum() + a[:, 0].sum() + a[0, 1]
    r.expect("out", expected)


@row("arguments and results of funcs")
def _(r, rng):
    x, y = (rng.integers(1, 9, n).astype(np.int32) for n in (20, 9))
    r.arrays_of(x=x, y=y, out=np.zeros(20, np.int32))
    r.launch("calls", "1, 32", "out", "x", "y")
    expected = np.zeros(20, np.int64)
    for i in range(20):
        a = x[: i + 1]
        sums = [a.sum() + i]
        for k in (1, 2):
            a = a if len(a) > len(y[k:]) else y[k:]
            sums.append(a.sum() + i)
        expected[i] = (sums[1] + 1) * 1000 + sums[2] + (i + 3) * 7 + 2 + 4 + a[0]
    r.expect("out", expected)
