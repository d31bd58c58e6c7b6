import numpy as np
from rows import row


def index_grid(*shape):
    return np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")


@row("1 threadIdx.x")
def _(r, rng):
    r.array("out", np.full(10, -1, np.int32))
    r.launch("fill_thread", "1, 10", "out")
    r.expect("out", np.arange(10))


@row("2 three dimensions, C and F layout")
def _(r, rng):
    i, j, k = index_grid(4, 5, 6)
    for name, order in (("c", "C"), ("f", "F")):
        r.array(name, np.zeros((4, 5, 6), np.int32, order=order))
        r.launch("fill3d", "1, 4x5x6", name)
        r.expect(name, (i + 1) * (j + 1) * (k + 1))


@row("3 to 6 grid and gridsize")
def _(r, rng):
    r.arrays_of(a=np.zeros(21, np.int32), b=np.zeros((20, 18), np.int32), c=np.zeros(21, np.int32), d=np.zeros((20, 18, 2), np.int32), e=np.zeros((9, 9, 9), np.int64))
    r.launch("grid1", "7, 3", "a")
    r.launch("grid2", "5x6, 4x3", "b")
    r.launch("sizes1", "7, 3", "c")
    r.launch("sizes2", "5x6, 4x3", "d")
    r.launch("sizes3", "3x3x3, 3x3x3", "e")
    i, j = index_grid(20, 18)
    r.expect("a", np.arange(21))
    r.expect("b", i + j)
    r.expect("c", np.full(21, 21))
    r.expect("d", np.broadcast_to(np.array([20, 18]), (20, 18, 2)))
    r.expect("e", np.full((9, 9, 9), 729))


@row("7 uneven three dimensions")
def _(r, rng):
    r.array("out", np.zeros((12, 6, 8, 4), np.int32))
    r.launch("uneven3", "4x3x2, 3x2x4", "out")
    x, y, z = index_grid(12, 6, 8)
    r.expect("out", np.stack([x, y, z, np.full_like(x, 432)], axis=-1))


@row("8 more than 2^32 threads", targets=("cuda",))
def _(r, rng):
    r.arrays_of(wrong=np.zeros(1, np.int32), last=np.zeros(1, np.int64))
    r.launch("wide_grid", "22121216, 256", "wrong", "last")
    r.expect("wrong", [0], unchanged=True)
    r.expect("last", [22121216 * 256 - 1])


@row("9 laneid, warpsize, ranks")
def _(r, rng):
    r.arrays_of(**{name: np.full(96, -1, np.int32) for name in ("lane", "size", "rank", "warp")})
    r.launch("lanes", "2, 48", "lane", "size", "rank", "warp")
    t = np.tile(np.arange(48), 2)
    r.expect("lane", t % 32)
    r.expect("size", np.full(96, 32))
    r.expect("rank", t)
    r.expect("warp", t // 32)
    r.arrays_of(rank3=np.zeros((4, 5, 6), np.int32), warp3=np.zeros((4, 5, 6), np.int32))
    r.launch("ranks3", "1, 6x5x4", "rank3", "warp3")
    rank = np.arange(120).reshape(4, 5, 6)
    r.expect("rank3", rank)
    r.expect("warp3", rank // 32)


@row("grid_range: every element once under every configuration")
def _(r, rng):
    for number, (configuration, n) in enumerate([("1, 1", 100), ("1, 32", 1003), ("3, 7", 1000), ("200, 256", 1003), ("2x3, 4x5", 500), ("5, 64", 0), ("", 777), ("", 0), ("", 1)]):
        name = f"o{number}"
        r.array(name, np.full(n, 5, np.int64))
        r.launch("once1", configuration, name)
        r.expect(name, np.arange(n) + 6, unchanged=n == 0)


@row("grid_range: two and three dimensions, any rank")
def _(r, rng):
    for number, (configuration, shape) in enumerate([("1, 1", (7, 9)), ("3, 32", (33, 65)), ("4x2, 8x8", (50, 41)), ("", (19, 23)), ("", (0, 5)), ("", (5, 0))]):
        for order in "CF":
            name = f"m{number}{order}"
            r.array(name, np.zeros(shape, np.int32, order=order))
            r.launch("once2", configuration, name)
            i, j = index_grid(*shape)
            r.expect(name, i * 1000 + j + 1, unchanged=0 in shape)
    r.array("t", np.zeros((5, 7, 33), np.int32))
    r.launch("once3", "3, 40", "t")
    i, j, k = index_grid(5, 7, 33)
    r.expect("t", i * 10000 + j * 100 + k + 1)
    r.array("tf", np.zeros((5, 7, 33), np.int32, order="F"))
    r.launch("once3", "", "tf")
    r.expect("tf", i * 10000 + j * 100 + k + 1)
    for number, shape in enumerate([(37,), (6, 11), (3, 5, 9)]):
        x = rng.integers(-1000, 1000, shape).astype(np.int32)
        r.arrays_of(**{f"x{number}": x, f"y{number}": np.zeros(shape, np.int32)})
        r.launch("once_any_rank", "2, 32", f"y{number}", f"x{number}")
        r.expect(f"y{number}", 2 * x + 1)


@row("grid_range: continue; block_range")
def _(r, rng):
    r.arrays_of(a=np.zeros(1001, np.int32), b=np.zeros((3, 77), np.int32), c=np.zeros((2, 9, 13), np.int32))
    r.launch("once_skip", "2, 50", "a")
    r.launch("block_once", "3, 20", "b")
    r.launch("block_once2", "2, 5x7", "c")
    r.expect("a", np.arange(1001) % 3 != 1)
    r.expect("b", np.tile(np.arange(77) + 1, (3, 1)))
    i, j = index_grid(9, 13)
    r.expect("c", np.stack([i * 100 + j + 1] * 2))
