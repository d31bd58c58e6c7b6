"""Elements and associative operators for reductions and scans, as in Inputs/monoids.kir: functions that create random
elements, and the results of a plain loop."""
import collections

import numpy as np

AFFINE = np.dtype([("a", "u4"), ("b", "u4"), ("applied", "u4")])
MATRIX = np.dtype([(f"m{i}{j}", "u8") for i in range(2) for j in range(2)])
TAGGED = np.dtype([("tag", "u1"), ("words", "u8", (3,)), ("tail", "u2")])
PRIME = 2**31 - 1

# kind: the struct's name, or None. combine takes and returns elements as `tolist` gives them.
Monoid = collections.namedtuple("Monoid", "name op kind dtype make combine identity")


def integers(dtype):
    info = np.iinfo(dtype)
    return lambda rng, n: rng.integers(info.min, info.max, n, dtype, endpoint=True)


def few(dtype, share=0.7):
    """Creates small whole numbers, which are exact in every type. Most of them are 0."""
    def make(rng, n):
        made = np.where(rng.random(n) < share, 0, rng.integers(-7, 8, n))
        made[rng.integers(n)] = 5
        return made.astype(dtype)
    return make


def gaussian(dtype):
    return lambda rng, n: (rng.integers(-9, 9, n) + 1j * rng.integers(-9, 9, n)).astype(dtype)


def fields(dtype, below):
    def make(rng, n):
        made = np.zeros(n, dtype)
        for name in dtype.names:
            made[name] = rng.integers(0, below, made[name].shape, np.uint64)
        return made
    return make


def make_tagged(rng, n):
    made = fields(TAGGED, 2**16)(rng, n)
    made["words"] = rng.integers(0, 2**63, (n, 3))
    made["tag"] = np.where(rng.random(n) < 0.8, 0, rng.integers(1, 256, n))
    return made


def add(x, y):
    return x + y


def last(x, y):
    return y if y != 0 else x


def then(x, y):
    return tuple(v % 2**32 for v in (x[0] * y[0], x[1] * y[0] + y[1], x[2] + y[2]))


def multiply(x, y):
    return tuple((x[2 * i] * y[j] + x[2 * i + 1] * y[2 + j]) % PRIME for i in range(2) for j in range(2))


def wrapping(dtype):
    bits = 8 * np.dtype(dtype).itemsize
    low = np.iinfo(dtype).min
    return lambda x, y: (x + y - low) % 2**bits + low


ADDED = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
MONOIDS = [Monoid(f"add_{t}", "add", None, t, integers(t), wrapping(t), 0) for t in ADDED] + [
    Monoid("max_i1", "max", None, "i1", integers("i1"), max, -128),
    Monoid("last_i1", "last", None, "i1", few("i1"), last, 0),
    Monoid("last_i8", "last", None, "i8", few("i8"), last, 0),
    Monoid("add_f2", "add", None, "f2", few("f2"), add, 0),
    Monoid("last_f2", "last", None, "f2", few("f2"), last, 0),
    Monoid("add_f4", "add", None, "f4", few("f4", 0), add, 0),
    Monoid("min_f4", "min", None, "f4", lambda rng, n: rng.standard_normal(n).astype("f4"), min, np.inf),
    Monoid("add_f8", "add", None, "f8", few("f8", 0), add, 0),
    Monoid("last_f8", "last", None, "f8", few("f8"), last, 0),
    Monoid("add_c8", "add", None, "c8", gaussian("c8"), add, 0),
    Monoid("add_c16", "add", None, "c16", gaussian("c16"), add, 0),
    Monoid("then", "then", "affine", AFFINE, fields(AFFINE, 2**32), then, (1, 0, 0)),
    Monoid("multiply", "multiply", "matrix", MATRIX, fields(MATRIX, PRIME), multiply, (1, 0, 0, 1)),
    Monoid("last_tagged", "last_tagged", "tagged", TAGGED, make_tagged, lambda x, y: y if y[0] else x, (0, (0, 0, 0), 0)),
]
BY_NAME = {m.name: m for m in MONOIDS}
SIZES = (1, 2, 31, 32, 33, 64, 100, 256, 1000, 1024)


def scans(m, values):
    """Returns (inclusive scan, exclusive scan with the identity, exclusive scan that starts with the first value,
    total) of a sequence with at least one element, as arrays."""
    inclusive = []
    for v in values.tolist():
        inclusive.append(m.combine(inclusive[-1], v) if inclusive else v)
    arrays = [np.array(found, m.dtype) for found in (inclusive, [m.identity] + inclusive[:-1], inclusive[:1] + inclusive[:-1])]
    return *arrays, np.array([inclusive[-1]], m.dtype)


def arrays_of(r, m, **values):
    """Declares the row's arguments with the monoid's type."""
    (lambda **v: r.structs_of(m.kind, **v) if m.kind else r.arrays_of(**v))(**values)


def unlike(values):
    """Returns the initial contents of results. No byte of an element is equal to the expected byte."""
    values = np.ascontiguousarray(values)
    return (~np.frombuffer(values.tobytes(), np.uint8)).view(values.dtype).reshape(values.shape)


def shapes_of(threads):
    """Returns blocks with this number of threads in one, two and three dimensions."""
    shapes = [f"{threads}"]
    if threads % 2 == 0:
        shapes += [f"2x{threads // 2}"]
    if threads % 4 == 0 and threads // 4 <= 1024:
        shapes += [f"{threads // 4}x2x2"]
    return shapes


def pick(rng, names, sizes, each):
    """Returns (monoid, threads) pairs: each monoid with some of the sizes, so that all sizes occur in turn."""
    order = [int(n) for _ in range(len(names)) for n in rng.permutation(sizes)]
    pairs = [(name, order[i * each + k]) for i, name in enumerate(names) for k in range(each)]
    return [(BY_NAME[name], threads) for name, threads in dict.fromkeys(pairs)]
