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
        # 100 is bound, as the variable was changed before the second func was made
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
