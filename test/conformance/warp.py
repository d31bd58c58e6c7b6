import numpy as np
from rows import row

LANE = np.arange(32)


def by_warp(x):
    return np.asarray(x).reshape(-1, 32)


def ballot(bits):
    return sum(1 << i for i, b in enumerate(bits) if b)


@row("19 to 21 shuffles")
def _(r, rng):
    x = rng.integers(-1000, 1000, 32).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros((5, 32), np.int32), lane=np.arange(32, dtype=np.int32), o2=np.zeros((5, 32), np.int32), w=np.zeros((4, 32), np.int32))
    r.launch("shuffles", "1, 32", "out", "x")
    r.launch("shuffles", "1, 32", "o2", "lane")
    r.launch("shuffle_widths", "1, 32", "w", "x")
    sources = np.stack([np.full(32, 4), np.where(LANE >= 4, LANE - 4, LANE), np.where(LANE + 4 < 32, LANE + 4, LANE), LANE ^ 16, LANE % 7])
    r.expect("out", x[sources])
    r.expect("o2", sources)
    widths = np.stack([LANE // 8 * 8 + 3, np.where(LANE % 16 >= 1, LANE - 1, LANE), np.where(LANE % 8 + 3 < 8, LANE + 3, LANE), LANE ^ 1])
    r.expect("w", x[widths])


@row("22 shuffles of every type")
def _(r, rng):
    values = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64}
    special = {"i32": -1, "u32": 2**32 - 1, "i64": 1 << 42, "u64": 2**64 - 1, "f32": np.pi, "f64": np.pi}
    for name, dtype in values.items():
        x = (rng.standard_normal(32) * 1000).astype(dtype) if name[0] == "f" else rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 32, dtype=dtype)
        x[5] = special[name]
        r.arrays_of(**{f"x{name}": x, f"o{name}": np.zeros(32, dtype)})
        r.launch("shuffle_type", "1, 32", f"o{name}", f"x{name}")
        r.expect(f"o{name}", x[LANE ^ 5])


@row("23, 24 votes")
def _(r, rng):
    x = np.ones((5, 32), np.int32)
    x[1, rng.integers(32)] = 0
    x[2] = 0
    x[3] = 0
    x[3, rng.integers(32)] = 1
    x[4] = rng.integers(0, 2, 32)
    x[4, :2] = [0, 1]
    r.arrays_of(x=x.reshape(-1), out=np.zeros((4, 160), np.int64))
    r.launch("votes", "1, 160", "out", "x")
    all_, any_ = x.all(axis=1), x.any(axis=1)
    r.expect("out", np.stack([np.repeat(v, 32) for v in (all_, any_, all_ | ~any_, np.array([ballot(w) for w in x]))]))


@row("24 votes on bits")
def _(r, rng):
    for name, dtype in {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}.items():
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 32, dtype=dtype)
        few = rng.integers(0, 4, 32).astype(dtype)
        for kind, values in {"any": x, "few": x & ~dtype(255) | few, "none": x & ~dtype(4)}.items():
            r.arrays_of(**{f"x{name}{kind}": values, f"o{name}{kind}": np.zeros((4, 32), np.uint32)})
            r.launch("voted_bits", "1, 32", f"o{name}{kind}", f"x{name}{kind}")
            bits = np.array([int(v) & 255 for v in values])
            same = [ballot(bits == b) for b in bits]
            clear = ballot(bits & 4 == 0)
            sides = np.where(bits & 4 != 0, clear ^ 0xffffffff, clear) if np.any(bits & 4) else np.zeros(32, np.int64)
            branch = np.where((bits & 64 != 0) & np.any(bits & 64 == 0), clear, 7)
            r.expect(f"o{name}{kind}", np.array([same, same, sides, branch], np.uint32))


@row("30 syncwarp")
def _(r, rng):
    r.array("out", np.zeros(32, np.int32))
    r.launch("useful_syncwarp", "1, 32", "out")
    r.expect("out", np.full(32, 42))


@row("shuffles in divergent branches")
def _(r, rng):
    x = rng.integers(-1000, 1000, 96).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(96, np.int32))
    r.launch("divergent_branch", "1, 96", "out", "x")
    w = by_warp(x).astype(np.int64)
    low = 2 * (w + w[:, LANE ^ 8])
    high = w - w[:, LANE ^ 4]
    high = np.where(LANE >= 24, high[:, 25:26], high)
    r.expect("out", np.where(LANE < 16, low, high).reshape(-1))


@row("ballot in a divergent branch; after lanes have left")
def _(r, rng):
    x = rng.integers(-5, 5, 32).astype(np.int32)
    x[0] = 1  # at least one lane votes for it
    r.arrays_of(x=x, out=np.zeros(32, np.uint32), left=np.zeros(32, np.uint32))
    r.launch("divergent_ballot", "1, 32", "out", "x")
    r.launch("left_lanes", "1, 32", "left", "x")
    r.expect("out", np.where(LANE % 3 == 0, ballot((x > 0) & (LANE % 3 == 0)), 0))
    r.expect("left", np.where(LANE % 2 == 0, ballot((x > 0) & (LANE % 2 == 0)), 7))


@row("shuffles in a divergent loop")
def _(r, rng):
    x = rng.integers(-100, 100, 64).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(64, np.int32))
    r.launch("divergent_loop", "1, 64", "out", "x")
    v = by_warp(x).astype(np.int64)
    for k in range(4):
        v = np.where(LANE // 8 >= k, v + v[:, LANE ^ (1 << (k % 3))], v)
    r.expect("out", v.reshape(-1))


@row("a vote as the condition of a loop")
def _(r, rng):
    x = rng.integers(0, 9, 64).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(64, np.int32))
    r.launch("loop_until_none", "2, 32", "out", "x")
    r.expect("out", np.repeat(by_warp(x).max(axis=1), 32))


@row("break and continue around warp operations")
def _(r, rng):
    x = rng.integers(0, 20, 64).astype(np.int32)
    x[16:32] = 0
    r.arrays_of(x=x, out=np.zeros(64, np.int32))
    r.launch("break_out", "1, 64", "out", "x", "9")
    want = np.zeros(64, np.int64)
    for start in range(0, 64, 16):
        v, k = x[start:start + 16].astype(np.int64), 0
        while k < 9:
            total = v + v[np.arange(16) ^ 1]
            if (total > 100).any():
                break
            k += 1
            if k % 2 == 1:
                continue
            v = total
        want[start:start + 16] = v * 100 + k
    r.expect("out", want)


@row("warp sums; partial warps; warps of a two-dimensional block; values that live across")
def _(r, rng):
    x = rng.integers(-1000, 1000, 256).astype(np.int32)
    r.arrays_of(x=x, sums=np.zeros(8, np.int32), partial=np.zeros((3, 40), np.int64), flat=np.zeros(64, np.int32), live=np.zeros(256, np.int32))
    r.launch("warp_sums", "2, 128", "sums", "x")
    r.launch("partial_warp", "1, 40", "partial", "x")
    r.launch("warps_of_2d_block", "1, 8x8", "flat", "x")
    r.launch("live_across", "4, 64", "live", "x")
    r.expect("sums", by_warp(x).sum(axis=1))
    t = np.arange(40)
    bits = np.where(t < 32, ballot(x[:32] > 0), ballot(x[32:40] > 0))
    r.expect("partial", np.stack([bits, x[t ^ 1], np.where(t < 32, (x[:32] < 1000).all(), (x[32:40] < 1000).all())]))
    r.expect("flat", x[:64].reshape(2, 32)[:, ::-1].reshape(-1))
    a = by_warp(x).astype(np.int64)
    b = a[:, LANE ^ 1]
    c = 3 * a + np.where(b > a, b, 0)
    d = c[:, np.where(LANE + 2 < 32, LANE + 2, LANE)]
    r.expect("live", (a + 10 * b + 100 * c + 1000 * d).reshape(-1))
