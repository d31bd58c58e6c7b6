import numpy as np
from rows import row, wrap

CORNERS = [(x, y) for x in (-10, 0, 10) for y in (-10, 0, 10)]


def loop_range(x, y):
    return sum(i * 2 + 1 for i in range(x))


def loop_nested(x, y):
    return sum(i * j + 1 for i in range(x) for j in range(i, y))


def loop_break(x, y):
    s = 0
    for i in range(x + 7):
        s += i
        if s > y + 5:
            break
        s += 1
    return s


def loop_continue(x, y):
    s = 0
    for i in range(x + y):
        if i % 3 == 0 or i % 5 == 4:
            continue
        s = (s + i) * 2
    return s


def loop_while(x, y):
    s = 0
    while x > 0 and (s < 50 or y > 0):
        s += x
        x -= 1
        if s == y:
            break
    return s * 100 + x


def loop_steps(x, y):
    s = sum(range(x, 40, 7))
    for i in range(20, y, -3):
        s = s * 3 + i
    return s


def if_chain(x, y):
    if x > 0 and y > 0:
        return x + y
    if x > 0:
        return x - y
    if x != 0 or y > 3:
        return 7 if y == 0 else -x * y if y < 0 else 11
    return -1


def function_returns(x, y):
    if x < 0:
        return -1 - y
    for i in range(x):
        if i * i > y + 20:
            return i
        if y >= 0 and y < i and (i - y) % 2 == 0:
            return 1000 + i
    return 500


def nested_conditionals(x, y):
    return (1 if x < 0 else 2) if x < y else 3 if x == y else 4 if y < 0 else 5


def swap(x, y):
    return y * 1000000 + x * 1000 + 1 + 30 + 103 + 4


@row("79 loops, branches, break, continue, return, swaps")
def _(r, rng):
    p = np.concatenate([CORNERS, rng.integers(-12, 13, (80, 2))]).astype(np.int32)
    r.array("p", p)
    for function in (loop_range, loop_nested, loop_break, loop_continue, loop_while, loop_steps, if_chain, function_returns, nested_conditionals, swap):
        name = f"out_{function.__name__}"
        r.array(name, np.zeros(len(p), np.int32))
        r.launch(function.__name__, "2, 50", name, "p")
        r.expect(name, wrap([function(x, y) for x, y in p.tolist()], np.int32))
    x = rng.integers(-3, 4, 9).astype(np.int32)
    r.arrays_of(x=x, out_lazy=np.zeros(len(p), np.int32))
    r.launch("lazy", "2, 50", "out_lazy", "p", "x")
    r.expect("out_lazy", [(1 if x[i] > 0 else 2) + 10 * x[i] if 0 <= i < 9 else -8 for i in p[:, 0]])


@row("precedence and literals")
def _(r, rng):
    x, y = int(rng.integers(1, 50)), int(rng.integers(1, 50))
    r.array("out", np.zeros(14, np.int32))
    r.launch("precedence", "1, 1", "out", f"{x}i32", f"{y}i32")
    r.expect("out", [x + y * 2, -x**2, 512, x << 2, 1 if x & 6 == 4 else 0, x | y ^ x & y, -x // y, -x % y, x != y, x - y - 1, ~x & 255, x * y // 2 % 5, 1 < x < 100 or y < 0, 255 + 5 + 1000])


@row("92 module constants")
def _(r, rng):
    q = np.arange(1, 6).astype(np.float64)
    i, j, k = (int(v) for v in (rng.integers(2), rng.integers(3), rng.integers(2)))
    r.arrays_of(q=q, out=np.zeros(5), t=np.zeros(7))
    r.launch("revenue", "1, 5", "out", "q")
    r.launch("tables", "1, 1", "t", f"{i}", f"{j}", f"{k}")
    r.expect("out", [10.8, 54, 16.2, 64.8, 162], rtol=1e-12)
    deep = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8.5]]])
    r.expect("t", [1 + 3 * i + j, 6, deep[i, k, k], 7, 5, 6, deep.sum()])


def items_of(t, at):
    total = 0.0
    for v in t:
        if isinstance(v, np.ndarray):
            total += v[at]
        elif isinstance(v, tuple):
            total += items_of(v, at)
        elif v < 0:
            break
        else:
            total = 2 * total + v
    return total


def sum_until(a, most):
    total = 0
    for v in a.ravel().tolist():
        if v % 7 == 0:
            continue
        if v == most:
            break
        total = 3 * total + v
    return total


@row("through tuples and positions")
def _(r, rng):
    x, y = (rng.integers(-20, 60, 40).astype(np.int32) for _ in range(2))
    f = rng.integers(-9, 9, 40).astype(np.float64)
    cube, plane = (rng.integers(-20, 60, shape).astype(np.int64) for shape in ((2, 3, 2), (1, 9)))
    r.arrays_of(out=np.zeros((40, 6)), x=x, y=y, f=f, cube=cube, plane=plane)
    r.launch("through_tuples", "", "out", "x", "y", "f", "cube", "plane")
    a, b = x.tolist(), y.tolist()
    rows = [[items_of((a[i], (f, b[i]), f, a[(i + 1) % 40]), i), (a[i], b[i], 5)[(i + 4) % 3], (a[i] % 3, b[i] % 3, i) < (b[i] % 3, a[i] % 3, 30), (a[i] % 3, f[i] > 0) == (b[i] % 3, True),
             sum_until(cube, a[i]) + 2 * sum_until(plane, b[i]), 4] for i in range(40)]
    r.expect("out", np.array(rows, np.float64))


@row("functions, tuples, const parameters, defaults")
def _(r, rng):
    x, y = rng.integers(-100, 100, 70).astype(np.int32), rng.integers(-100, 100, 70).astype(np.int32)
    f, g = rng.standard_normal(70), rng.standard_normal(70)
    r.arrays_of(x=x, y=y, f=f, g=g, a=np.zeros(70, np.int32), b=np.zeros(70), c=np.zeros(70, np.int32), d=np.zeros(3, np.int32), e=np.zeros(3, np.int32), h=np.zeros(3, np.int32))
    r.launch("combine", "", "add", "a", "x", "y")
    r.launch("combine", "", "largest", "b", "f", "g")
    r.launch("tuples", "", "c", "x", "y")
    r.launch("with_defaults", "1, 3", "d")
    r.launch("with_defaults", "1, 3", "e", "7")
    r.launch("with_defaults", "1, 3", "h", "7", "-1")
    r.expect("a", x + 2 * y)
    r.expect("b", np.maximum(f, g))
    s, p = x.astype(np.int64) + y, x.astype(np.int64) * y
    r.expect("c", wrap((s + p - s * p).tolist(), np.int32))
    r.expect("d", np.full(3, 5020))
    r.expect("e", np.full(3, 7042))
    r.expect("h", np.full(3, 7000 - 21))


@row("94 automatic configuration, n = 0 too")
def _(r, rng):
    for n in (0, 1, 11, 13, 1000, 100003):
        x, y = rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)
        r.arrays_of(**{f"i{n}": np.arange(n, dtype=np.int32), f"x{n}": x, f"y{n}": y})
        r.launch("increment", "", f"i{n}")
        r.launch("saxpy", "", f"y{n}", "1.5", f"x{n}")
        r.expect(f"i{n}", np.arange(n) + 1, unchanged=n == 0)
        r.expect(f"y{n}", y + np.float32(1.5) * x, rtol=1e-6, atol=1e-6, unchanged=n == 0)


@row("vector addition in three forms")
def _(r, rng):
    for n in (1, 1000, 10007):
        x, y = rng.integers(-1000, 1000, n).astype(np.int32), rng.integers(-1000, 1000, n).astype(np.int32)
        r.arrays_of(**{f"x{n}": x, f"y{n}": y, f"g{n}": np.zeros(n, np.int32), f"s{n}": np.zeros(n, np.int32)})
        r.launch("guarded", f"{-(-n // 96)}, 96", f"g{n}", f"x{n}", f"y{n}")
        r.launch("strided", "3, 50", f"s{n}", f"x{n}", f"y{n}")
        r.expect(f"g{n}", x + y)
        r.expect(f"s{n}", x + y)


@row("111 the product of the documentation, naive and tiled")
def _(r, rng):
    shapes = [(np.arange(16).reshape(4, 4), np.ones((4, 4))), (np.arange(115).reshape(5, 23), np.ones((23, 7))), (rng.integers(-9, 9, (9, 1)), rng.integers(-9, 9, (1, 13))), (rng.integers(-9, 9, (33, 18)), rng.integers(-9, 9, (18, 21)))]
    for k, (a, b) in enumerate(shapes):
        for dtype in (np.float32, np.float64, np.int32):
            n = f"{k}{np.dtype(dtype).name}"
            rows, cols = a.shape[0], b.shape[1]
            r.arrays_of(**{f"a{n}": a.astype(dtype), f"b{n}": b.astype(dtype, order="F"), f"c{n}": np.zeros((rows, cols), dtype), f"t{n}": np.zeros((rows, cols), dtype)})
            r.launch("product", f"{-(-cols // 16)}x{-(-rows // 16)}, 16x16", f"a{n}", f"b{n}", f"c{n}")
            r.launch("tile_product", "", f"a{n}", f"b{n}", f"t{n}", *(() if k % 2 else ("8",)))
            r.expect(f"c{n}", a.astype(np.int64) @ b.astype(np.int64))
            r.expect(f"t{n}", a.astype(np.int64) @ b.astype(np.int64))


@row("built-ins handed over as funcs")
def _(r, rng):
    t = np.arange(32)
    r.arrays_of(out=np.zeros(64, np.int32), totals=np.zeros(5, np.int32), flags=np.zeros(2, np.uint32))
    r.launch("handed_over", "", "out", "totals", "flags")
    r.expect("out", np.tile((t ^ 3) * 100 + np.maximum(t, 16), 2))
    r.expect("totals", [2 * t[i::4].sum() for i in range(4)] + [31])
    r.expect("flags", [0xffffffff] * 2)
