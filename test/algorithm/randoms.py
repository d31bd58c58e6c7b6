"""Compares random numbers for a seed with an independent Philox4x32-10 in NumPy. Uniform numbers, integers and permutations
must have equal bits. Other numbers may differ by the rounding of log, sqrt, sin and cos."""
import numpy as np

import values
from cases import Case, cases, some_cases

FLOATS = ("f2", "bf16", "f4", "f8")
DROPS = {"f2": 21, "bf16": 24, "f4": 8}
WORD = 0xFFFFFFFF


def philox(counters, seed):
    """Applies ten rounds to an (n, 4) array of u64 numbers below 2**32."""
    c, k = [counters[:, i].astype(np.uint64) for i in range(4)], [seed & WORD, seed >> 32]
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [q >> 32 ^ c[1] ^ np.uint64(k[0]), q & WORD, p >> 32 ^ c[3] ^ np.uint64(k[1]), p & WORD]
        k = [k[0] + 0x9E3779B9 & WORD, k[1] + 0xBB67AE85 & WORD]
    return np.stack(c, 1)


def words(seed, first, count):
    """Returns the words [first, first + count) for a seed."""
    numbers = [first + i for i in range(count)]
    blocks = [(n >> 2 & WORD, n >> 34, 0, 0) for n in numbers]
    found = philox(np.array(blocks, np.uint64).reshape(-1, 4), seed)
    return found[np.arange(count), [n & 3 for n in numbers]]


def wide(seed, first, count):
    pairs = words(seed, 2 * first, 2 * count).reshape(-1, 2)
    return pairs[:, 1] << np.uint64(32) | pairs[:, 0]


def fraction(kind, seed, first, count):
    if kind == "f8":
        return (wide(seed, first, count) >> np.uint64(11)) * 2.0**-53
    return (words(seed, first, count) >> np.uint64(DROPS[kind])) * 2.0 ** (DROPS[kind] - 32)


def above_0(kind, seed, first, count):
    if kind == "f8":
        return (wide(seed, first, count) >> np.uint64(11)) * 2.0**-53 + 2.0**-54
    return (words(seed, first, count).astype("f4").astype("f8") * 2.0**-32 + 2.0**-33).astype("f4").astype("f8")


def normal(kind, seed, first, count):
    """Computes numbers 2 * k and 2 * k + 1 from the uniform numbers 2 * k and 2 * k + 1."""
    even, pairs = first // 2 * 2, count // 2 + 1
    radius = np.sqrt(-2 * np.log(above_0(kind, seed, even, 2 * pairs)[::2]))
    angle = 2 * np.pi * fraction("f8" if kind == "f8" else "f4", seed, even, 2 * pairs)[1::2]
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    return both[first - even:][:count]


def integers(bits, seed, first, least, greatest, count):
    """Uses Python integers, and loops for numbers that are drawn again."""
    many = greatest - least + 1
    made = []
    for i, word in enumerate((wide if bits == 64 else words)(seed, first, count).tolist()):
        n, attempt = first + i, 0
        while word * many % 2**bits < 2**bits % many:
            block = n >> (1 if bits == 64 else 2)
            again = philox(np.array([[block & WORD, block >> 32, attempt, WORD]], np.uint64), seed)[0].tolist()
            word = again[2 * (n & 1)] | again[2 * (n & 1) + 1] << 32 if bits == 64 else again[n & 3]
            attempt += 1
        made.append(least + (word * many >> bits))
    return made


def seeded(rng):
    """Returns a seed and an offset, small or large, at any position in a block of words."""
    return int(rng.integers(0, 2**63)), int(rng.choice([0, 1, 2, 3, 7, 2**31 + 5, 2**34 - 3, 2**61 + 2])) + int(rng.integers(0, 3))


TOLERANCE = {"f2": 2e-3, "bf16": 1.6e-2, "f4": 4e-6, "f8": 1e-14}


def filled(label, kind, call, want, shape, **how):
    x = np.zeros(shape, values.numpy_type(kind))
    want = np.asarray(want).astype(values.numpy_type(kind)).reshape(shape)
    return Case(label, call).array("x", x, values.as_kind(kind)).expect("x", want, kind=values.as_kind(kind), **how)


@cases
def floats(rng):
    for kind in FLOATS:
        for n in (0, 1, int(rng.integers(2, 9)), int(rng.integers(9, 3000))):
            seed, at = seeded(rng)
            head = f"{{x}}, seed={seed}, offset={at}"
            loose = {"rtol": TOLERANCE[kind], "atol": TOLERANCE[kind]}
            yield filled(f"uniform {kind} {n}", kind, f"random_uniform({head})", fraction(kind, seed, at, n), n)
            shifted = {} if kind == "f4" else loose
            yield filled(f"from to {kind} {n}", kind, f"random_uniform({head}, low=-3, high=-0.5)", fraction(kind, seed, at, n) * 2.5 - 3, n, **shifted)
            yield filled(f"normal {kind} {n}", kind, f"random_normal({head})", normal(kind, seed, at, n), n, **loose)
            yield filled(f"moved {kind} {n}", kind, f"random_normal({head}, mean=1.5, deviation=0.5)", normal(kind, seed, at, n) * 0.5 + 1.5, n, **loose)
            waits = -np.log(above_0(kind, seed, at, n))
            yield filled(f"exponential {kind} {n}", kind, f"random_exponential({head}, scale=2)", 2 * waits, n, **loose)


@some_cases(30)
def ranges(rng):
    """Tests ranges that often need another draw, ranges with a single number, and the whole range of the type."""
    for kind in values.INTEGERS:
        info = np.iinfo(kind)
        low, high = int(info.min), min(int(info.max), 2**63 - 1)
        a, b = sorted(int(rng.integers(low, high, endpoint=True)) for _ in range(2))
        third = low + (high - low) // 3 * 2
        for least, greatest in ((low, high), (a, b), (a, a), (low, third), (high - 2, high)):
            n = int(rng.integers(1, 400))
            seed, at = seeded(rng)
            want = integers(64 if kind[1] == "8" else 32, seed, at, least, greatest, n)
            call = f"random_integers({{x}}, seed={seed}, offset={at}, least={least}, greatest={greatest})"
            yield filled(f"{kind} {least} {greatest} {n}", kind, call, np.array(want, kind), n)


@cases
def operands(rng):
    """Tests arrays of any rank with row-major strides, funcs, and parts of a sequence that are selected by offsets."""
    seed, at = seeded(rng)
    x = np.zeros((7, 5, 9), "f4")
    seen = x.copy()
    seen[::-2, 1:4, ::3] = fraction("f4", seed, at, 4 * 3 * 3).reshape(4, 3, 3)
    yield Case("a view", f"random_uniform({{x}}[::-2, 1:4, ::3], seed={seed}, offset={at})", x=x).expect("x", seen)
    flipped = np.zeros((6, 11), "f8")
    flipped.T[...] = fraction("f8", seed, 0, 66).reshape(11, 6)
    yield Case("transposed", f"random_uniform({{x}}.T, seed={seed})", x=np.zeros((6, 11))).expect("x", flipped)
    both = fraction("f4", seed, at, 50) * 2
    yield Case("a func", f"random_uniform(put_twice({{x}})[50], seed={seed}, offset={at})", x=np.zeros(50, "f4")).expect("x", both.astype("f4"))
    yield Case("a func of f64", f"random_uniform(put_twice({{x}})[50], seed={seed}, accumulator=f64)", x=np.zeros(50)).expect("x", fraction("f8", seed, 0, 50) * 2)
    dice = integers(64, seed, at, 1, 6, 50)
    yield Case("a func of integers", f"random_integers(put_twice({{x}})[50], seed={seed}, offset={at}, least=1, greatest=6)", x=np.zeros(50, "i8")).expect("x", 2 * np.array(dice))
    large = int(rng.integers(40000, 90001))
    yield filled("many", "f4", f"random_uniform({{x}}, seed={seed}, offset={at})", fraction("f4", seed, at, large), large)


@cases
def orders(rng):
    for n in (1, 2, int(rng.integers(3, 3000))):
        seed = int(rng.integers(0, 2**63))
        yield Case(f"order of {n}", f"{{r}} = argsort(key({seed}u64)[{n}])").expect("r", np.argsort(wide(seed, 0, n), kind="stable"))


def permutation(seed, n):
    """Sorts positions by the upper bits of Philox's words. Fisher and Yates's method permutes positions with equal keys."""
    bits = min(-(-(3 + max(n - 1, 0).bit_length()) // 8) * 8, 32)
    counters = np.zeros((-(-n // 4), 4), np.uint64)
    counters[:, 0], counters[:, 3] = np.arange(len(counters)), WORD - 1
    keys = philox(counters, seed).reshape(-1)[:n] >> np.uint64(32 - bits)
    places = np.argsort(keys, kind="stable").tolist()
    keys = np.sort(keys).tolist()
    start = 0
    for i in range(1, n):
        if keys[i] != keys[i - 1]:
            start = i
            continue
        many, attempt = i - start + 1, 0
        word = int(philox(np.array([[i >> 2, 0, 1, WORD - 1]], np.uint64), seed)[0, i & 3])
        while word * many % 2**32 < 2**32 % many:
            word = int(philox(np.array([[i >> 2, 0, attempt, WORD]], np.uint64), seed)[0, i & 3])
            attempt += 1
        other = start + (word * many >> 32)
        places[i], places[other] = places[other], places[i]
    return np.array(places, "i8")


@cases
def permutations(rng):
    """Sizes around the limits at which keys get another digit, and at which another sort is used."""
    for n in (0, 1, 2, 3, 32, 33, int(rng.integers(34, 4000)), 8192, 8193, int(rng.integers(9000, 70000))):
        seed = int(rng.integers(0, 2**63))
        for kind in ("i4", "u8") if n > 33 else ("i1",):
            yield filled(f"permutation {n} {kind}", kind, f"random_permutation({{x}}, seed={seed})", permutation(seed, n), n)
    seed, n = int(rng.integers(0, 2**63)), int(rng.integers(100, 3000))
    seen = np.zeros(2 * n, "i4")
    seen[::-2] = permutation(seed, n)
    yield Case("permutation of a view", f"random_permutation({{x}}[::-2], seed={seed})", x=np.zeros(2 * n, "i4")).expect("x", seen)
    twice = 2 * permutation(seed, n)
    yield Case("permutation of a func", f"random_permutation(put_twice({{x}})[{n}], seed={seed})", x=np.zeros(n, "i8")).expect("x", twice)


@cases
def shuffles(rng):
    for shape in ((0, 3), (3, 0), (1,), (200,), (61, 5), (40, 3, 4), (9001, 2)):
        x = rng.standard_normal(shape).astype(str(rng.choice(["f4", "f8"])))
        seed = int(rng.integers(0, 2**63))
        yield Case(f"shuffle {shape}", f"{{r}} = random_shuffle({{x}}, seed={seed})", x=x).expect("r", x[permutation(seed, shape[0])])
    x = rng.standard_normal((6, 70))
    yield Case("shuffle of columns", f"{{r}} = random_shuffle({{x}}.T[::-1], seed={seed})", x=x).expect("r", x.T[::-1][permutation(seed, 70)])

