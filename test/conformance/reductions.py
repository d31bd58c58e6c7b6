import monoids
import numpy as np
from rows import TARGETS, row

COMMUTING = ("add", "max", "min")


def row_of_each_target(name):
    """Blocks have one thread on the CPU, so each target has its own row."""
    def register(describe):
        for target in TARGETS:
            row(f"{name}, {target}", (target,))(lambda r, rng, target=target: describe(r, rng, target))
    return register


def threads_of(tile, target):
    return 1 if target == "cpu" else tile[0]


def total_of(m, x):
    """Returns the result of a plain loop."""
    total = x.tolist()[0]
    for v in x.tolist()[1:]:
        total = m.combine(total, v)
    return np.array([total], m.dtype)


def tile_of(rng):
    """(threads, elements for each thread, adjacent elements among them)"""
    neighbours = int(rng.choice([1, 2, 4, 3]))
    return int(rng.choice([32, 64, 256])), neighbours * int(rng.choice([1, 2, 4])), neighbours


def sizes_around(rng, tile):
    """Cases with different sizes. The arrays of a row are named after their size."""
    return list(dict.fromkeys([1, 2, 31, 33, tile - 1, tile, tile + 1, 3 * tile + 5, int(rng.integers(1, 20 * tile))]))


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


def commuting(rng, m):
    return m.op.startswith(COMMUTING) and bool(rng.integers(2))


def launch_axis(r, name, kernel, m, x, axis, blocks, threads, partials, counters, sizes, commutes, constants):
    """x is reduced along `axis`. sizes: the extents that the kernel takes, with one index type. constants: the const
    parameters."""
    last = np.moveaxis(x, axis, -1)
    want = np.concatenate([total_of(m, values) for values in last.reshape(-1, last.shape[-1])])
    names = [f"r_{name}", f"x_{name}", f"p_{name}", f"d_{name}"]
    monoids.arrays_of(r, m, **dict(zip(names, (monoids.unlike(want), x, np.resize(monoids.unlike(want), partials)))))
    r.arrays_of(**{names[3]: np.zeros(counters, np.uint32)})
    for _ in range(2):
        r.launch(kernel, f"{blocks}, {threads}", *names, *sizes, m.op, str(commutes).lower(), *map(str, constants))
    r.expect(names[0], want)
    r.expect(names[3], np.zeros(counters, np.uint32), unchanged=True)


def rows_of(rng, target, way):
    """(rows, elements in each row, blocks for each row, blocks, const parameters)"""
    threads, neighbours = int(rng.choice([32, 64, 256])), int(rng.choice([1, 2, 4]))
    each, lanes = neighbours * int(rng.choice([1, 2, 4])), int(rng.choice([1, 2, 4, 8, 16, 32]))
    rows, parts, at_a_time = int(rng.choice([1, 3, 70])), 1, 0
    if way == "short":
        at_a_time, n = int(rng.choice([1, 2, 3])), neighbours * int(rng.integers(1, lanes * each // neighbours + 1))
        blocks = int(rng.choice([1, 2, 40]))
    elif way == "lanes":
        n, blocks = int(rng.integers(1, 5 * lanes * each + 1)), -(-rows * lanes // threads)
    else:
        lanes, parts, rows = threads, int(rng.choice([1, 2, 5])), int(rng.choice([1, 5]))
        n, blocks = int(rng.integers(1, 8 * threads * each + 1)), rows * parts
    if target == "cpu" and parts == 1:
        blocks = int(rng.choice([1, 4]))
    return rows, n, parts, blocks, (threads, lanes, at_a_time, each, neighbours)


@row_of_each_target("reduce rows")
def _(r, rng, target):
    for number, m in enumerate(monoids.MONOIDS):
        rows, n, parts, blocks, constants = rows_of(rng, target, ("short", "lanes", "blocks")[number % 3])
        index = rng.choice(["i32", "i64"])
        launch_axis(r, f"{number}", "rows", m, m.make(rng, rows * n).reshape(rows, n), 1, blocks, threads_of(constants, target), rows * parts, rows,
                    [f"{size}{index}" for size in (rows, n, parts)], commuting(rng, m), constants)


@row_of_each_target("reduce columns")
def _(r, rng, target):
    for number, m in enumerate(monoids.MONOIDS):
        threads, neighbours, parts = int(rng.choice([32, 64, 256])), int(rng.choice([1, 2, 4])), int(rng.choice([1, 1, 2, 5]))
        group = min(threads, int(rng.choice([1, 2, 4, 8, 16, 32, 64])))
        outer, inner = int(rng.choice([1, 1, 3])), neighbours * int(rng.integers(1, rng.choice([4, 2 * group + 2])))
        n = int(rng.integers(1, 300 if inner * outer < 60 else 30))
        units = outer * -(-inner // (group * neighbours))
        blocks = int(rng.choice([1, 4])) if target == "cpu" and parts == 1 else units * parts
        constants = (threads, group, int(rng.choice([1, 2, 4, 8])), neighbours)
        index = rng.choice(["i32", "i64"])
        launch_axis(r, f"{number}", "columns", m, m.make(rng, outer * n * inner).reshape(outer, n, inner), 1, blocks, threads_of(constants, target),
                    outer * parts * inner, units, [f"{size}{index}" for size in (outer, n, inner, parts)], commuting(rng, m), constants)
