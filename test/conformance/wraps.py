import numpy as np
from rows import row


@row("loads, stores and atomics at indices of run time")
def _(r, rng):
    x = rng.integers(-99, 99, 41).astype(np.int32)
    for n, dtype in enumerate((np.int8, np.int32, np.int64)):
        at = rng.integers(-41, 41, 500).astype(dtype)
        r.arrays_of(**{"x": x, f"at{n}": at, f"o{n}": np.zeros(500, np.int32), f"s{n}": np.zeros((41, 42), np.int32)})
        r.launch("gather", "", f"o{n}", "x", f"at{n}")
        r.expect(f"o{n}", x[at])
        sums = np.zeros((41, 42), np.int32)
        np.add.at(sums, (at, at.astype(np.int64) - 1), np.arange(1, 501, dtype=np.int32))
        r.launch("scatter", "", f"s{n}", f"at{n}")
        r.expect(f"s{n}", sums)


@row("unsigned indices, and counters that are made negative")
def _(r, rng):
    x = rng.integers(-99, 99, 1000).astype(np.int32)
    at = rng.integers(0, 1000, 77).astype(np.uint32)
    r.arrays_of(x=x, at=at, o=np.zeros(77, np.int32), b=np.zeros(1000, np.int32))
    r.launch("gather", "", "o", "x", "at")
    r.launch("backwards", "", "b", "x")
    r.expect("o", x[at])
    r.expect("b", x[::-1])


@row("slices clamp at run time")
def _(r, rng):
    x = rng.integers(-99, 99, 37).astype(np.int32)
    r.arrays_of(x=x, e=x[:0])
    cases = [(-37, 37, 1), (-38, 38, 1), (-1000, 1000, 3), (1000, -1000, -4), (5, -5, 1), (-5, 5, -1), (36, -38, -1), (50, 60, 1), (-60, -50, 1), (9, 4, 1), (2**31 - 1, -(2**31), -7)]
    cases += [(int(rng.integers(-50, 50)), int(rng.integers(-50, 50)), int(rng.integers(1, 9)) * int(rng.choice([-1, 1]))) for _ in range(8)]
    for n, (first, stop, step) in enumerate(cases):
        for name, array in (("x", x), ("e", x[:0])):
            expected = array[first:stop:step]
            result = np.full(40, -1, np.int32)
            r.array(f"{name}{n}", result)
            r.launch("slice", "2, 48", f"{name}{n}", name, first, stop, step)
            result = result.copy()
            result[0] = len(expected)
            result[1 : 1 + len(expected)] = expected
            r.expect(f"{name}{n}", result)


@row("slices without a step, and without one bound")
def _(r, rng):
    x = rng.integers(-99, 99, 23).astype(np.int32)
    r.array("x", x)
    for n in range(8):
        first, stop = (int(v) for v in rng.integers(-30, 30, 2))
        v, w, u = x[first:stop], x[first:], x[:stop]
        result = np.full(30, -1, np.int32)
        r.array(f"o{n}", result)
        r.launch("part", "1, 48", f"o{n}", "x", first, stop)
        result = result.copy()
        result[:3] = len(v), len(w), len(u)
        result[3 : 3 + len(v)] = v + w[: len(v)]
        r.expect(f"o{n}", result)


@row("literal bounds clamp")
def _(r, rng):
    for n in (2, 5, 40):
        x = rng.integers(-99, 99, n).astype(np.int32)
        expected = np.zeros((6, 40), np.int32)
        for i, s in enumerate([x[-100:3], x[2:100], x[-3:], x[100::-1], x[-1:-100:-2], x[50:60]]):
            expected[i, : len(s)] = s
        r.arrays_of(**{f"x{n}": x, f"out{n}": np.zeros((6, 40), np.int32)})
        r.launch("literals", "1, 64", f"out{n}", f"x{n}")
        r.expect(f"out{n}", expected)


@row("shared and local arrays, views, vectors and tuples")
def _(r, rng):
    at = rng.integers(-32, 32, 32).astype(np.int32)
    s, t, v = np.arange(32) * 3, np.arange(4) * 5, np.array([7, 8, 9, 10])
    r.arrays_of(at=at, out=np.zeros((5, 32), np.int32))
    r.launch("within", "1, 32", "out", "at")
    r.expect("out", np.array([s[at], t[at // 8], v[at // 8], np.full(32, 2), s[4:-4][at // 4]], np.int32))
