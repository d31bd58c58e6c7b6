import monoids
import numpy as np
import orders
from rows import row, some


def tiles(count, each):
    """Returns the warps' tiles as slices, for blocks with this number of threads."""
    return [slice(first, min(first + 32 * each, count)) for first in range(0, count, 32 * each)]


@row("warp: exchanges")
def _(r, rng):
    names = ["add_i1", "add_u2", "add_f4", "add_f8", "add_c16", "last_tagged"]
    for number, each in enumerate(rng.permutation([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 33])[:6].tolist()):
        m, threads = monoids.BY_NAME[names[rng.integers(4 if each > 8 else len(names))]], int(rng.choice([31, 32, 33, 64, 100, 128]))
        x = m.make(rng, threads * each)
        striped = np.concatenate([x[tile].reshape(each, -1).T for tile in tiles(len(x), each)])
        m = m._replace(kind="packed_row" if m.kind else None)
        monoids.arrays_of(r, m, **{f"x{number}": x, f"s{number}": monoids.unlike(striped), f"b{number}": monoids.unlike(x)})
        r.launch("exchange", f"1, {threads}", f"s{number}", f"b{number}", f"x{number}", str(each))
        r.expect(f"s{number}", striped)
        r.expect(f"b{number}", x)


def launch_sorts(r, rng, order, threads, each):
    x, name = order.make(rng, threads * each), f"{order.name}_{threads}_{each}"
    from_ = np.concatenate([tile.start + orders.stable(order, x[tile]) for tile in tiles(len(x), each)])
    start = {f"{result}_{name}": monoids.unlike(x[from_]) for result in ("a", "k", "p")}
    orders.arrays_of(r, order, **{f"x_{name}": x}, **start)
    r.arrays_of(**{f"f_{name}": np.full(len(x), -1, np.int32)})
    r.launch("sorts", f"1, {threads}", f"a_{name}", f"k_{name}", f"p_{name}", f"f_{name}", f"x_{name}", order.less, str(each))
    orders.expect_bits(r, f"k_{name}", x[from_])
    orders.expect_bits(r, f"p_{name}", x[from_])
    r.expect(f"f_{name}", from_)

    def check(got):
        np.testing.assert_array_equal(order.rank(np.concatenate([x, got]))[len(x):], order.rank(np.concatenate([x, x[from_]]))[len(x):])
        for tile in tiles(len(x), each):
            assert sorted(map(bytes, orders.raw(got[tile]))) == sorted(map(bytes, orders.raw(x[tile]))), "other elements than there were"
    r.verify([f"a_{name}"], check)


@row("warp: sorts of every kind of element")
def _(r, rng):
    for order in some(rng, orders.ORDERS, 8):
        each = int(rng.integers(1, 3 if order.dtype.itemsize > 16 else 6))
        launch_sorts(r, rng, order, int(rng.choice([7, 32, 33, 64, 100])), each)


@row("warp: sorts of many items")
def _(r, rng):
    for threads, each in some(rng, ((32, 8), (45, 7), (1024, 1), (1000, 2)), 2):
        launch_sorts(r, rng, orders.BY_NAME["less_i4"], threads, each)


@row("warp: sorts of the first items")
def _(r, rng):
    for name in ("less_f4", "less_i8", "dated", "packed"):
        order, threads, each = orders.BY_NAME[name], int(rng.choice([32, 50, 96])), int(rng.integers(1, 5))
        x = order.make(rng, threads * each)
        parts = tiles(len(x), each)
        count = [int(rng.integers(0, part.stop - part.start + 1)) for part in parts]
        from_ = np.concatenate([part.start + orders.stable(order, x[part], n) for part, n in zip(parts, count)])
        orders.arrays_of(r, order, **{f"x_{name}": x, f"k_{name}": monoids.unlike(x[from_]), f"p_{name}": monoids.unlike(x[from_])})
        r.arrays_of(**{f"f_{name}": np.full(len(x), -1, np.int32), f"c_{name}": np.array(count, np.int32)})
        r.launch("guarded", f"1, {threads}", f"k_{name}", f"p_{name}", f"f_{name}", f"x_{name}", f"c_{name}", order.less, str(each))
        orders.expect_bits(r, f"k_{name}", x[from_])
        orders.expect_bits(r, f"p_{name}", x[from_])
        r.expect(f"f_{name}", from_)
