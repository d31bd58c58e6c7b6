import numpy as np
from rows import row


@row("grid_sync")
def _(r, rng):
    n = 64 * 6
    x = rng.integers(-100, 100, n).astype(np.int32)
    y = np.roll(x + 1, -64)
    r.arrays_of(x=x, y=np.zeros(n, np.int32), z=x)
    r.launch("grid_steps", "6, 64", "x", "y")
    r.expect("y", y)
    r.expect("x", y * 2)


@row("grid_sync in a loop")
def _(r, rng):
    n = 32 * 5
    x = rng.integers(-100, 100, n).astype(np.int32)
    r.arrays_of(x=x)
    r.launch("grid_rounds", "5, 32", "x")
    for k in range(5):
        x = np.roll(x, -33) + k
    r.expect("x", x)


@row("positions of clusters")
def _(r, rng):
    r.arrays_of(out=np.full((4 * 6, 8), -1, np.int32), flat=np.full((3, 4), -1, np.int32))
    r.launch("cluster_positions", "4x6, 32", "out")
    r.launch("no_cluster_positions", "3, 32", "flat")
    want = [[x // 2, y // 2, 221, 23, x % 2, y % 2, x % 2 + 2 * (y % 2), 4] for y in range(6) for x in range(4)]
    r.expect("out", np.array(want, np.int32))
    r.expect("flat", np.array([[b, 1, 0, 1] for b in range(3)], np.int32))


@row("distributed shared memory")
def _(r, rng):
    x = rng.integers(-20, 20, 64 * 8).astype(np.int32)
    r.arrays_of(x=x, y=np.zeros(64 * 8, np.int32))
    r.launch("cluster_exchange", "8, 64", "y", "x")
    tiles = x.reshape(2, 4, 64)
    # block b adds the tile of b + 1 to the sum of b + 3 = b - 1: the sum of b is the tile of b + 2
    sums = np.roll(tiles, -2, axis=1).sum(axis=2, keepdims=True)
    r.expect("y", (sums * 1000 + tiles).reshape(-1).astype(np.int32))


@row("named barriers")
def _(r, rng):
    x = rng.integers(-100, 100, 160).astype(np.int32)
    r.arrays_of(x=x, y=np.zeros(160, np.int32))
    r.launch("named", "1, 160", "y", "x")
    y = np.concatenate([x[:64][::-1], x[64:128][::-1], np.full(32, 7, np.int32)])
    y[:32] += x[128:] * 10
    r.expect("y", y)


@row("a ring of tiles between warps")
def _(r, rng):
    x = rng.integers(-100, 100, (7, 32)).astype(np.int32)
    r.arrays_of(x=x, y=np.zeros(64, np.int32))
    r.launch("ring", "1, 96", "y", "x")
    y = [sum(x[k, 31 - lane] * (k + w) for k in range(7)) for w in (1, 2) for lane in range(32)]
    r.expect("y", np.array(y, np.int32))


@row("tokens of phases")
def _(r, rng):
    x = rng.integers(-100, 100, 64).astype(np.int32)
    r.arrays_of(x=x, y=np.zeros((3, 64), np.int32))
    r.launch("tokens", "1, 64", "y", "x")
    r.expect("y", np.stack([x[::-1], np.ones(64, np.int32), x[::-1] + 1]))
