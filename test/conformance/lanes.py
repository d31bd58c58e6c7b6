import numpy as np
from rows import row

LANE = np.arange(32)
BIT = 1 << LANE.astype(np.uint64)
TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64, "i8": np.int8, "f16": np.float16}


def mask_of(lanes):
    return sum(1 << int(i) for i in lanes)


def values(rng, dtype, count):
    return (rng.standard_normal(count) * 100).astype(dtype) if np.dtype(dtype).kind == "f" else rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype=dtype)


def tree(x):
    """Returns the sum in the order in which pairs of lanes are added."""
    x = x.copy()
    with np.errstate(all="ignore"):
        while len(x) > 1:
            half = len(x) // 2
            x = x[:half] + x[half:]
    return x[0]


def serial(x):
    total = x[0]
    with np.errstate(all="ignore"):
        for v in x[1:]:
            total = total + v
    return total


@row("masks of lanes; the lane elected")
def _(r, rng):
    below = BIT - 1
    full = np.uint64(0xffffffff)
    want = [BIT, below, below | BIT, full & ~(below | BIT), full & ~below, LANE == 0, LANE == 8]
    r.array("out", np.zeros((7, 32), np.uint32))
    r.launch("masks", "1, 32", "out")
    r.expect("out", np.stack([np.asarray(w).astype(np.uint32) for w in want]))


@row("match of every type")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = values(rng, dtype, 96)
        x[:32] = x[0]
        x[32:64] = x[rng.integers(32, 36, 32)]
        x[64:] = x[64]
        x[77] = x[1] if x[1] != x[64] else dtype(3)
        bits = x.view(f"u{x.itemsize}").reshape(3, 32)
        every = np.array([[mask_of(LANE[w == v]) for v in w] for w in bits])
        same = np.repeat((bits == bits[:, :1]).all(axis=1), 32)
        parts = np.array([[mask_of([j for j in LANE if j // 4 == i // 4 and w[j] == w[i]]) for i in LANE] for w in bits])
        part_masks = np.array([0xf << i // 4 * 4 for i in LANE])
        r.arrays_of(**{f"x{name}": x, f"any{name}": np.zeros(96, np.uint32), f"all{name}": np.zeros(96, np.uint32), f"same{name}": np.zeros(96, np.bool_),
                       f"pany{name}": np.zeros(96, np.uint32), f"pall{name}": np.zeros(96, np.uint32)})
        r.launch("match", "1, 96", f"any{name}", f"all{name}", f"same{name}", f"x{name}")
        r.launch("match_parts", "1, 96", f"pany{name}", f"pall{name}", f"x{name}")
        r.expect(f"any{name}", every.reshape(-1))
        r.expect(f"all{name}", np.where(same, 0xffffffff, 0))
        r.expect(f"same{name}", same)
        r.expect(f"pany{name}", parts.reshape(-1))
        r.expect(f"pall{name}", np.where(parts == part_masks, part_masks, 0).reshape(-1))


@row("match among the lanes of a branch", targets=("cpu",))
def _(r, rng):
    x = rng.integers(-2, 3, 64).astype(np.int32)
    r.arrays_of(x=x, out=np.full(64, 5, np.uint32))
    r.launch("match_divergent", "1, 64", "out", "x")
    r.expect("out", np.array([[mask_of(LANE[w == v]) if v > 0 else 5 for v in w] for w in x.reshape(2, 32)]).reshape(-1))


@row("reductions of every type over full and partial masks")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = values(rng, dtype, 96)
        if np.dtype(dtype).kind == "f":
            x[40] = np.nan
            x[70:72] = [0.0, np.inf]
        wide = x.astype(np.int32) if name == "i8" else x
        result = wide.dtype
        warps = wide.reshape(3, 32)
        with np.errstate(all="ignore"):
            want = np.stack([np.repeat([f(w) for w in warps], 32) for f in (tree, np.fmin.reduce, np.fmax.reduce)]).astype(result)
        r.arrays_of(**{f"x{name}": x, f"o{name}": np.zeros((3, 96), result)})
        r.launch("reduce", "1, 96", f"o{name}", f"x{name}")
        r.expect(f"o{name}", want)
        split = rng.integers(0, 3, (3, 32))
        masks = np.array([[mask_of(LANE[w == g]) for g in w] for w in split]).reshape(-1)
        members = [warps[i // 32][split[i // 32] == split[i // 32, i % 32]] for i in range(96)]
        with np.errstate(all="ignore"):
            partial = np.stack([[f(m) for m in members] for f in (serial, np.fmin.reduce, np.fmax.reduce)]).astype(result)
        r.arrays_of(**{f"m{name}": masks.astype(np.uint32), f"p{name}": np.zeros((3, 96), result)})
        r.launch("reduce_parts", "1, 96", f"p{name}", f"x{name}", f"m{name}")
        r.expect(f"p{name}", partial)
    for name in ("i32", "u32", "i64", "u64"):
        x = values(rng, TYPES[name], 96)
        x[:32] |= 1
        w = x.reshape(3, 32)
        r.arrays_of(**{f"b{name}": x, f"ob{name}": np.zeros((3, 96), TYPES[name])})
        r.launch("reduce_bits", "1, 96", f"ob{name}", f"b{name}")
        r.expect(f"ob{name}", np.stack([np.repeat(f.reduce(w, axis=1), 32) for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)]))


@row("reductions in branches and in a partial warp")
def _(r, rng):
    x = rng.integers(-1000, 1000, 64).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(64, np.int32), last=np.zeros(40, np.int32))
    r.launch("reduce_branch", "1, 64", "out", "x")
    r.launch("reduce_last", "1, 40", "last", "x")
    third = LANE % 3 == 0
    r.expect("out", np.concatenate([np.where(third, w[third].sum(), -w[~third].max()) for w in x.reshape(2, 32)]))
    r.expect("last", np.where(np.arange(40) < 32, x[:32].sum(), x[32:40].sum()))
