import monoids
import numpy as np
from rows import TARGETS, row

COMMUTING = ("add", "max", "min")


def row_of_each_target(name):
    """Blocks have one thread on the CPU: a row for each target."""
    def register(describe):
        for target in TARGETS:
            row(f"{name}, {target}", (target,))(lambda r, rng, target=target: describe(r, rng, target))
    return register


def threads_of(tile, target):
    return 1 if target == "cpu" else tile[0]


def total_of(m, x):
    """What a plain loop gives."""
    total = x.tolist()[0]
    for v in x.tolist()[1:]:
        total = m.combine(total, v)
    return np.array([total], m.dtype)


def tile_of(rng):
    """(threads, elements a thread, neighbours among them)"""
    neighbours = int(rng.choice([1, 2, 4, 3]))
    return int(rng.choice([32, 64, 256])), neighbours * int(rng.choice([1, 2, 4])), neighbours


def sizes_around(rng, tile):
    return [1, 2, 31, 33, tile - 1, tile, tile + 1, 3 * tile + 5, int(rng.integers(1, 20 * tile))]


def reduce_all(r, target, name, m, x, index, commutes, grid, tile):
    want = total_of(m, x)
    names = [f"r_{name}", f"x_{name}", f"p_{name}", f"d_{name}"]
    monoids.arrays_of(r, m, **dict(zip(names, (monoids.unlike(want), x, monoids.unlike(np.repeat(want, grid))))))
    r.arrays_of(**{names[3]: np.zeros(1, np.uint32)})
    for _ in range(2):
        r.launch("all", f"{grid}, {threads_of(tile, target)}", *names, f"{len(x)}{index}", m.op, str(commutes).lower(), *map(str, tile))
    r.expect(names[0], want)
    r.expect(names[3], np.zeros(1, np.uint32), unchanged=True)


@row_of_each_target("reduce all: every kind of element")
def _(r, rng, target):
    for number, m in enumerate(monoids.MONOIDS):
        tile = tile_of(rng)
        n = int(rng.choice(sizes_around(rng, tile[0] * tile[1])))
        commutes = m.op.startswith(COMMUTING) and bool(rng.integers(2))
        reduce_all(r, target, f"{number}", m, m.make(rng, max(n, 1)), rng.choice(["i32", "i64"]), commutes, int(rng.choice([1, 3, 40])), tile)


@row_of_each_target("reduce all: every size")
def _(r, rng, target):
    for name, commutes in (("then", False), ("add_i4", True), ("add_u1", True)):
        m, tile = monoids.BY_NAME[name], (64, 8, 4)
        for n in sizes_around(rng, 512):
            reduce_all(r, target, f"{name}_{n}", m, m.make(rng, n), "i32", commutes, int(rng.integers(1, 12)), tile)


@row_of_each_target("reduce all: more partial results than threads")
def _(r, rng, target):
    for name, commutes in (("multiply", False), ("add_f8", True)):
        m = monoids.BY_NAME[name]
        for blocks in (33, 300):
            reduce_all(r, target, f"{name}_{blocks}", m, m.make(rng, blocks * 32 - 7), "i64", commutes, blocks, (32, 1, 1))
