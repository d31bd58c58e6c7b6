import numpy as np
from rows import row


def lines(x, y, s):
    return s * x + y


@row("bind_back: arrays, numbers as they were, built-ins, funcs in funcs")
def _(r, rng):
    for n in (1, 3 * 64 + 5):
        names = [f"{name}{n}" for name in ("out", "total", "x", "y")]
        x, y = (rng.integers(-100, 100, max(n, 3), dtype=np.int32) for _ in range(2))
        s = int(rng.integers(-9, 9))
        i = np.arange(n, dtype=np.int32)
        empty = np.full(n, -(10**9), np.int32)
        r.arrays_of(**dict(zip(names, (empty, empty, x, y))))
        r.launch("captures", "4, 64", *names, f"{s}i32")
        # 100 is bound, because the variable was changed before the second func was created
        r.expect(names[0], np.maximum(0, np.minimum(5000, lines(x, y, 100)))[:n].astype(np.int32))
        first = lines(x, y, s)[:3].sum()
        r.expect(names[1], (first + (2 * (2 * i + s) + s)).astype(np.int32))


@row("bind_back: literals, const parameters, tuples, shared and local arrays, recursion")
def _(r, rng):
    for dtype in (np.int32, np.int64):
        x = rng.integers(-50, 50, 128).astype(dtype)
        n, t = int(rng.integers(0, 100)), np.arange(32)
        want = [x[:32] ** 3, np.full(32, x[:32].sum()), x.reshape(32, 4).sum(axis=1),
                x[:32] * t + x[1:33], [(x[:32] >= v).sum() for v in x[:32]],
                4 * (t + n), np.minimum(t, 7)]
        out, values = f"out_{np.dtype(dtype)}", f"x_{np.dtype(dtype)}"
        r.arrays_of(**{values: x, out: np.zeros((7, 32), dtype)})
        r.launch("kinds", "1, 32", out, values, f"{n}i32")
        r.expect(out, np.array(want, dtype=dtype))


@row("identities of operators that are handed over")
def _(r, rng):
    step = np.dtype([("slope", np.int32), ("at0", np.int32)])
    n = int(rng.integers(1, 40))
    steps = np.zeros(n, step)
    steps["slope"], steps["at0"] = rng.integers(-3, 4, n), rng.integers(-9, 9, n)
    totals = np.zeros(32, step)
    for t in range(32):
        slope, at0 = 1, 0
        for f in steps[:t % n].tolist():
            slope, at0 = slope * f[0], at0 * f[0] + f[1]
        totals[t] = tuple((v + 2**31) % 2**32 - 2**31 for v in (slope, at0))
    for dtype in (np.int16, np.uint32, np.float64):
        least = 0 if dtype is np.uint32 else -100
        x = rng.integers(max(least, -50), 50, n).astype(dtype)
        floor = dtype(rng.integers(max(least, -20), 20))
        want = np.array([[max([least, *([floor] * (t % n > 0)), *x[:t % n]]) for t in range(32)], [least] * 32, [7] * 32, [7] * 32]).astype(dtype)
        name = np.dtype(dtype).name
        r.arrays_of(**{f"x_{name}": x, f"r_{name}": np.full((4, 32), 99, dtype)})
        r.structs_of("Step", **{f"s_{name}": steps, f"t_{name}": np.array([(-1, -1)] * 32, step)})
        r.launch("identities", "1, 32", f"r_{name}", f"s_{name}", f"x_{name}", f"t_{name}", f"{floor}{({'int16': 'i16', 'uint32': 'u32', 'float64': 'f64'})[name]}")
        r.expect(f"r_{name}", want)
        r.expect(f"t_{name}", totals)


@row("bind_back: structs, places of atomics")
def _(r, rng):
    line = np.dtype([("slope", np.float32), ("at0", np.float32)])
    n = int(rng.integers(1, 300))
    l = np.zeros(n, line)
    l["slope"], l["at0"] = rng.integers(-8, 8, n), rng.integers(-8, 8, n)
    x = rng.integers(-8, 8, n).astype(np.float32)
    r.arrays_of(x=x, out=np.full(n, 1e9, np.float32))
    r.structs_of("Line", l=l)
    r.launch("lines", "2, 128", "out", "x", "l")
    f = lambda v: l["slope"] * v + l["at0"]
    r.expect("out", f(f(x)))
    y = rng.integers(0, 1000, n, dtype=np.uint32)
    r.arrays_of(y=y, sum=np.zeros(1, np.uint32))
    r.launch("atomics", "2, 32", "sum", "y")
    r.expect("sum", np.array([y.sum()], np.uint32))
