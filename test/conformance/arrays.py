import numpy as np
from rows import row


@row("an array that is input and output at once")
def _(r, rng):
    for n in (5, 1000, 4099):
        x, y = rng.integers(-50, 50, n).astype(np.float32), rng.integers(-50, 50, n).astype(np.float32)
        for kernel, configuration in (("axpy", ""), ("axpy", "3, 40"), ("axpy_grid", f"{-(-n // 128)}, 128")):
            k = f"{kernel}{n}{len(configuration)}"
            r.arrays_of(**{f"x{k}": x, f"y{k}": y, f"z{k}": x})
            r.launch(kernel, configuration, f"x{k}", "3", f"x{k}", f"y{k}")
            r.launch(kernel, configuration, f"z{k}", "3", f"z{k}", f"z{k}")
            r.expect(f"x{k}", 3 * x + y)
            r.expect(f"z{k}", 4 * x)
    x = rng.integers(-9, 9, 70).astype(np.int32)
    r.array("s", x)
    r.launch("shift_down", "1, 70", "s", "s")
    first = np.roll(x, -1) + 1
    r.expect("s", first * 100 + np.roll(first, -2))


@row("views of one array that overlap, in grid_range nothing reads what another iteration writes")
def _(r, rng):
    x = rng.integers(-50, 50, 4100).astype(np.float32)
    # the halves do not overlap; the odd and the even elements interleave
    r.arrays_of(halves=x, steps=x, rows=x.reshape(41, 100), y=x[:2000].copy())
    r.launch("axpy", "", "halves[2000:4000]", "3", "halves[:2000]", "y")
    r.launch("axpy", "", "steps[1:4001:2]", "3", "steps[0:4000:2]", "y")
    r.launch("copy2", "", "rows[20:40, 3:90]", "rows[0:20, 3:90]")
    halves, steps, rows = x.copy(), x.copy(), x.reshape(41, 100).copy()
    halves[2000:4000] = 3 * x[:2000] + x[:2000]
    steps[1:4001:2] = 3 * x[0:4000:2] + x[:2000]
    rows[20:40, 3:90] = rows[0:20, 3:90]
    r.expect("halves", halves)
    r.expect("steps", steps)
    r.expect("rows", rows)
    # shifted by one element: every thread of a block reads before the barrier and writes after it
    s = rng.integers(-9, 9, 65).astype(np.int32)
    r.array("s", s)
    r.launch("shift_once", "1, 64", "s[1:]", "s[:64]")
    r.expect("s", np.concatenate([s[:1], s[:64] + 1]))


@row("C and F layout")
def _(r, rng):
    x = rng.standard_normal((37, 53)).astype(np.float32)
    for a in "CF":
        for b in "CF":
            r.arrays_of(**{f"x{a}{b}": np.array(x, order=a), f"c{a}{b}": np.zeros((37, 53), np.float32, order=b), f"t{a}{b}": np.zeros((53, 37), np.float32, order=b)})
            r.launch("copy2", "", f"c{a}{b}", f"x{a}{b}")
            r.launch("transpose", "7x5, 8x8", f"t{a}{b}", f"x{a}{b}")
            r.expect(f"c{a}{b}", x)
            r.expect(f"t{a}{b}", x.T)
    r.arrays_of(c=np.zeros((4, 6)), f=np.zeros((4, 6), order="F"), sc=np.zeros(6, np.int32), sf=np.zeros(6, np.int32))
    r.launch("strides", "1, 1", "sc", "c")
    r.launch("strides", "1, 1", "sf", "f")
    r.expect("sc", [2, 24, 4, 6, 6, 4006])
    r.expect("sf", [2, 24, 4, 6, 0, 4006])


@row("four dimensions")
def _(r, rng):
    x = rng.standard_normal((3, 4, 5, 6))
    for order in "CF":
        r.arrays_of(**{f"x{order}": np.array(x, order=order), f"o{order}": np.zeros((6, 5, 4, 3))})
        r.launch("rank4", "2, 32", f"o{order}", f"x{order}")
        r.expect(f"o{order}", 2 * x.T)


@row("no dimensions; extents of zero")
def _(r, rng):
    x = float(rng.integers(-50, 50))
    r.arrays_of(x=np.array(x), out=np.array(0.0), total=np.array(5, np.int32), ones=np.ones(64, np.int32), none=np.zeros(0), none2=np.zeros((0, 7)), e=np.full(3, 4.0), e2=np.zeros((0, 7)))
    r.launch("zero_rank", "1, 1", "out", "x")
    r.launch("bump_zero_rank", "2, 32", "total", "ones")
    r.launch("empty", "1, 32", "e", "none")
    r.launch("axpy", "", "none", "2", "none", "none")
    r.launch("copy2", "1, 32", "e2", "none2")
    r.expect("out", np.array(2 * x + 1))
    r.expect("total", np.array(69, np.int32))
    r.expect("e", [0, 4, 4])
    r.expect("none", np.zeros(0), unchanged=True)
    r.expect("e2", np.zeros((0, 7)), unchanged=True)


@row("a literal index counts from the end")
def _(r, rng):
    x = rng.integers(-99, 99, 17).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(5, np.int32))
    r.launch("from_the_end", "1, 1", "out", "x")
    r.expect("out", [x[-1], x[-2], x[-1], 0, x[0]])


@row("more than 2^31 elements and byte offsets beyond 2^31")
def _(r, rng):
    n = 2**31 + 200_000
    at = 2**31 - int(rng.integers(1, 50_000))
    r.zeros("big", n, "u8")
    r.zeros("wide", f"{n // 100_000}, 100000", "u8")
    r.zeros("floats", 2**29 + 1000, "f32")
    r.arrays_of(out=np.zeros(100, np.int32), rows=np.zeros(40, np.int32), matrix=np.zeros(40, np.int32), f=np.zeros(64, np.float32), blocks=np.zeros(20, np.int32))
    r.launch("far_write", "1, 128", "big", at, "100")
    r.launch("far_read", "1, 128", "out", "big", at, "100")
    r.launch("far_rows", "1, 40", "rows", "big", "50000")
    r.launch("far_matrix", "1, 40", "matrix", "wide")
    r.launch("far_blocks", f"{n // 100_000}, 1", "blocks", "wide")
    r.launch("far_blocks_read", "1, 20", "blocks", "wide")
    r.launch("far_floats", "1, 64", "f", "floats")
    r.expect("out", np.arange(100) + 1)
    r.expect("rows", np.arange(40) + 7)
    r.expect("matrix", np.arange(40) + 7)
    r.expect("blocks", (np.arange(20) + 9) * 101)
    r.expect("f", np.arange(64) + 0.5)
