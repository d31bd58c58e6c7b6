import math

import numpy as np
from rows import row

MASK = (1 << 64) - 1
JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)
XOROSHIRO = np.dtype([("s0", "u8"), ("s1", "u8")])
PHILOX = np.dtype({"names": ["counter", "key", "left", "words"], "formats": [("u4", (4,)), ("u4", (2,)), "u4", ("u4", (4,))], "offsets": [0, 16, 24, 28], "itemsize": 48})


def mix64(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


class Xoroshiro:
    """xoroshiro128+ of 2016, with the states that Numba creates: each state is 2**64 numbers further than the previous
    one."""

    def __init__(self, seed):
        self.s0 = self.s1 = mix64(seed + 0x9E3779B97F4A7C15 & MASK)

    def next(self):
        result, t = self.s0 + self.s1 & MASK, self.s0 ^ self.s1
        rotate = lambda x, k: (x << k | x >> 64 - k) & MASK
        self.s0, self.s1 = rotate(self.s0, 55) ^ t ^ (t << 14 & MASK), rotate(t, 36)
        return result

    def jump(self):
        s0 = s1 = 0
        for word in JUMP:
            for bit in range(64):
                if word >> bit & 1:
                    s0, s1 = s0 ^ self.s0, s1 ^ self.s1
                self.next()
        self.s0, self.s1 = s0, s1


def philox(counter, key):
    c, k = [int(v) for v in counter], [int(v) for v in key]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


@row("Philox4x32-10: the vectors of Random123, and random ones")
def _(r, rng):
    published = [([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
                 ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
                 ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]
    counters = np.concatenate([[p[0] for p in published], rng.integers(0, 2**32, (200, 4))]).astype(np.uint32)
    keys = np.concatenate([[p[1] for p in published], rng.integers(0, 2**32, (200, 2))]).astype(np.uint32)
    want = np.array([philox(c, k) for c, k in zip(counters, keys)], np.uint32)
    np.testing.assert_array_equal(want[:3], np.array([p[2] for p in published], np.uint32))
    r.arrays_of(counters=counters, keys=keys, r=np.zeros((203, 4), np.uint32))
    r.launch("blocks", "", "r", "counters", "keys")
    r.expect("r", want)


@row("xoroshiro128+: Numba's states, jumps of any length, numbers that go on from launch to launch")
def _(r, rng):
    seed, count = int(rng.integers(0, 2**63)), 40
    state, want, words = Xoroshiro(seed), np.zeros(count, XOROSHIRO), np.zeros((count, 6), np.uint64)
    states = []
    for i in range(count):
        want[i] = (state.s0, state.s1)
        one = Xoroshiro(0)
        one.s0, one.s1 = state.s0, state.s1
        words[i] = [one.next() for _ in range(6)]
        states.append((one.s0, one.s1))
        state.jump()
    r.structs_of("xoroshiro128p", states=np.zeros(count, XOROSHIRO), same=np.zeros(count - 5, XOROSHIRO))
    r.arrays_of(first=np.zeros((count, 4), np.uint64), then=np.zeros((count, 2), np.uint64))
    r.launch("seed_xoroshiro", "", "states", f"{seed}u64", "0u64")
    r.launch("seed_xoroshiro", "", "same", f"{seed}u64", "5u64")
    r.launch("words64", f"1, {count}", "first", "states")
    r.launch("words64", f"1, {count}", "then", "states")
    r.expect("first", words[:, :4])
    r.expect("then", words[:, 4:])
    r.verify(["states"], lambda got: np.testing.assert_array_equal(np.stack([got["s0"], got["s1"]], 1), np.array(states, np.uint64)))
    r.verify(["same"], lambda got: np.testing.assert_array_equal(np.stack([got["s0"], got["s1"]], 1), np.stack([want["s0"], want["s1"]], 1)[5:]))


@row("Philox: sequences of a seed")
def _(r, rng):
    seed, first, count = int(rng.integers(0, 2**63)), int(rng.integers(2**31, 2**40)), 50
    key = (seed & 0xFFFFFFFF, seed >> 32)
    want = np.array([sum((philox((block, 0, first + i & 0xFFFFFFFF, first + i >> 32), key) for block in range(3)), [])[:11] for i in range(count)], np.uint32)
    r.structs_of("philox", states=np.zeros(count, PHILOX))
    r.arrays_of(one=np.zeros((count, 5), np.uint32), two=np.zeros((count, 6), np.uint32), mine=np.zeros(count, np.uint64))
    r.launch("seed_philox", "", "states", f"{seed}u64", f"{first}u64")
    r.launch("words32", f"1, {count}", "one", "states")
    r.launch("words32", f"1, {count}", "two", "states")
    r.launch("local_state", f"1, {count}", "mine", f"{seed}u64")
    r.expect("one", want[:, :5])
    r.expect("two", want[:, 5:])
    own = [philox((0, 0, i, 0), key) for i in range(count)]
    r.expect("mine", np.array([w[1] << 32 | w[0] for w in own], np.uint64))


def looks_uniform(values):
    """Limits for a chance of a false alarm of one in several million."""
    x = np.asarray(values, np.float64).reshape(-1)
    n = x.size
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 5.5 / math.sqrt(12 * n)
    bins = np.bincount((x * 64).astype(int), minlength=64)
    chi = ((bins - n / 64) ** 2 / (n / 64)).sum()
    assert 63 - 5 * math.sqrt(126) < chi < 63 + 6.5 * math.sqrt(126), chi
    neighbours = values.astype(np.float64) - 0.5
    along = (neighbours[:, 1:] * neighbours[:, :-1]).mean() * 12
    across = (neighbours[1:] * neighbours[:-1]).mean() * 12
    assert abs(along) < 5.5 / math.sqrt(n * 0.95) and abs(across) < 5.5 / math.sqrt(n * 0.95), (along, across)


def looks_normal(values):
    x = np.sort(np.asarray(values, np.float64).reshape(-1))
    n = x.size
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 5.5 / math.sqrt(n) and abs(x.var() - 1) < 5.5 * math.sqrt(2 / n)
    assert abs((x**4).mean() - 3) < 5.5 * math.sqrt(96 / n)
    distribution = 0.5 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in x]))
    distance = np.abs(distribution - (np.arange(n) + 0.5) / n).max()
    assert distance * math.sqrt(n) < 2.9, distance


@row("uniform and normal numbers in f32 and f64")
def _(r, rng):
    threads, each = 512, 64
    for kind, dtype in (("xoroshiro", XOROSHIRO), ("philox", PHILOX)):
        r.structs_of("xoroshiro128p" if kind == "xoroshiro" else "philox", **{f"states_{kind}": np.zeros(threads, dtype)})
        names = {f"{law}{bits}_{kind}": np.zeros((threads, each), np.float32 if bits == 32 else np.float64) for law in "un" for bits in (32, 64)}
        r.arrays_of(**names)
        r.launch(f"seed_{kind}", "", f"states_{kind}", f"{int(rng.integers(0, 2**63))}u64", "0u64")
        r.launch(f"floats_{kind}", f"4, {threads // 4}", *names, f"states_{kind}")
        for name in names:
            r.verify([name], looks_uniform if name[0] == "u" else looks_normal)


@row("numbers of a seed by their position: Philox's sequence 0")
def _(r, rng):
    seed, first, n = int(rng.integers(0, 2**63)), int(rng.integers(2**33, 2**36)), 6000
    key = (seed & 0xFFFFFFFF, seed >> 32)
    word = lambda i: philox((i >> 2 & 0xFFFFFFFF, i >> 34, 0, 0), key)[i & 3]
    w32 = np.array([word(first + i) for i in range(n)], np.uint32)
    w64 = np.array([word(2 * (first + i)) | word(2 * (first + i) + 1) << 32 for i in range(n)], np.uint64)
    r.arrays_of(w32=np.zeros(n, np.uint32), w64=np.zeros(n, np.uint64))
    floats = {f"{law}{bits}s": np.zeros((n, ), f"f{bits // 8}") for law in "une" for bits in (32, 64)}
    r.arrays_of(**floats)
    r.launch("by_position", "", "w32", "w64", *floats, f"{seed}u64", f"{first}u64")
    r.expect("w32", w32)
    r.expect("w64", w64)
    r.expect("u32s", ((w32 >> 8) * 2.0**-24).astype("f4"))
    r.expect("u64s", (w64 >> np.uint64(11)) * 2.0**-53)
    for bits in (32, 64):
        r.verify([f"n{bits}s"], looks_normal)
        r.verify([f"e{bits}s"], looks_exponential)


def looks_exponential(values):
    """Like looks_normal: Kolmogorov's distance to the distribution."""
    x = np.sort(np.asarray(values, np.float64))
    assert x.min() >= 0 and abs(x.mean() - 1) < 5.5 / math.sqrt(x.size)
    distance = np.abs(1 - np.exp(-x) - (np.arange(x.size) + 0.5) / x.size).max()
    assert distance * math.sqrt(x.size) < 2.9, distance


@row("integers without bias: a third of them more often drawn again than not")
def _(r, rng):
    n = 30000
    for name, count32, count64 in (("few", 3, 3), ("two_thirds", 2**32 // 3 * 2, 2**64 // 3 * 2), ("most", 2**31 + 1, 2**63 + 1)):
        r.arrays_of(**{f"r32_{name}": np.zeros(n, np.uint32), f"r64_{name}": np.zeros(n, np.uint64)})
        r.launch("below", "", f"r32_{name}", f"r64_{name}", f"{int(rng.integers(0, 2**63))}u64", f"{int(rng.integers(0, 2**40))}u64", f"{count32}u32", f"{count64}u64")
        for got, count in ((f"r32_{name}", count32), (f"r64_{name}", count64)):
            r.verify([got], lambda values, count=count: looks_even(values, count))


def looks_even(values, count):
    """The chi-square statistic for three equal parts, with two degrees of freedom."""
    parts = np.bincount([int(v) * 3 // count for v in values], minlength=3)
    assert parts.size == 3
    chi = ((parts - len(values) / 3) ** 2 / (len(values) / 3)).sum()
    assert chi < 32, parts
