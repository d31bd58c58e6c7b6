import monoids
import numpy as np
from rows import row, some


def launch(r, m, shape, kernel, want, x, *arguments):
    """Creates x and the identity. Results and arguments have separate names for each kernel, monoid and shape."""
    name = f"{kernel}_{m.name}_{shape}"
    monoids.arrays_of(r, m, **{f"x_{name}": x, f"e_{name}": np.array([m.identity], m.dtype)})
    for at, values in enumerate(want):
        monoids.arrays_of(r, m, **{f"r{at}_{name}": monoids.unlike(values)})
        r.expect(f"r{at}_{name}", values)
    r.launch(kernel, f"1, {shape}", *[f"r{at}_{name}" for at in range(len(want))], f"x_{name}", f"e_{name}", *arguments)


def launch_values(r, rng, m, threads, shape):
    x, thread = m.make(rng, threads), int(rng.integers(0, threads))
    inclusive, exclusive, _, total = monoids.scans(m, x)
    full = lambda value: np.repeat(value, threads)
    launch(r, m, shape, "values", [np.stack([full(total), inclusive, full(total), exclusive, full(x[thread:thread + 1])])], x, str(thread), m.op, str(threads))


def launch_several(r, rng, m, threads, shape):
    each = int(rng.integers(1, 6))
    x = m.make(rng, threads * each)
    inclusive, exclusive, _, total = monoids.scans(m, x)
    launch(r, m, shape, "several", [np.stack([inclusive, exclusive]), np.broadcast_to(total, (3, threads))], x, m.op, str(threads), str(each))

SHARED_BYTES = 99 << 10  # shared memory that a block can have on every GPU from sm_80 on


@row("block: every kind of element")
def _(r, rng):
    for m, threads in monoids.pick(rng, some(rng, monoids.BY_NAME, 12), monoids.SIZES[2:], 1):
        (launch_values, launch_several)[rng.integers(2)](r, rng, m, threads, rng.choice(monoids.shapes_of(threads)))


@row("block: every size")
def _(r, rng):
    m = monoids.BY_NAME["then"]
    for threads in some(rng, monoids.SIZES, 5):
        (launch_values, launch_several)[rng.integers(2)](r, rng, m, threads, str(threads))
        x = m.make(rng, threads)
        inclusive, exclusive, rest, total = monoids.scans(m, x)
        total = np.repeat(total, threads)
        launch(r, m, str(threads), "others", [np.stack([inclusive, exclusive, total, rest, rest, total])], x, m.op, str(threads))


@row("block: shared memory used again at once")
def _(r, rng):
    m = monoids.BY_NAME["multiply"]
    for threads in (int(rng.choice([33, 64, 100])), int(rng.choice([256, 1000, 1024]))):
        x = m.make(rng, threads)
        v = x.tolist()
        for k in range(4):
            _, _, rest, total = monoids.scans(m, np.array(v, m.dtype))
            common = m.combine(total.tolist()[0], rest.tolist()[(7 * k + 3) % threads])
            v = [m.combine(common, x.tolist()[(t + k) % threads]) for t in range(threads)]
        name = f"{threads}"
        want = np.array(v, m.dtype)
        monoids.arrays_of(r, m, **{f"x{name}": x, f"r{name}": monoids.unlike(want)})
        r.launch("again", f"1, {threads}", f"r{name}", f"x{name}", m.op, name)
        r.expect(f"r{name}", want)


@row("block: ranks of flags")
def _(r, rng):
    for threads in (int(n) for n in rng.choice(monoids.SIZES, 4, replace=False)):
        each = int(rng.integers(1, 5))
        x = rng.integers(-3, 4, threads * each).astype(np.int32)
        x[:2] = 1
        flags, own = x > 0, x[:threads] > 0
        r.arrays_of(**{f"x{threads}": x, f"r{threads}": np.zeros((3, threads), np.int32), f"i{threads}": np.full(threads * each, -1, np.int32)})
        r.launch("ranks", f"1, {threads}", f"r{threads}", f"i{threads}", f"x{threads}", str(threads), str(each))
        r.expect(f"r{threads}", np.stack([np.cumsum(own) - own, np.full(threads, own.sum()), np.full(threads, flags.sum())]))
        r.expect(f"i{threads}", np.cumsum(flags) - flags)


@row("block: exchanges")
def _(r, rng):
    for number, (m, threads) in enumerate(monoids.pick(rng, ["add_i1", "add_u2", "add_f4", "add_f8", "add_c16", "then", "multiply", "last_tagged"], monoids.SIZES[1:], 1)):
        each = int(rng.integers(1, 9)) if m.name != "multiply" else int(rng.integers(1, 4))
        x = m.make(rng, threads * each)
        # a GPU's tile has one more element for every 32 elements
        most = SHARED_BYTES // (x.itemsize * threads * 33 // 32 + 1)
        x, each = x[:threads * min(each, most)], min(each, most)
        monoids.arrays_of(r, m, **{f"x{number}": x, f"s{number}": monoids.unlike(x.reshape(each, threads).T), f"b{number}": monoids.unlike(x)})
        r.launch("exchange", f"1, {rng.choice(monoids.shapes_of(threads))}", f"s{number}", f"b{number}", f"x{number}", str(threads), str(each))
        r.expect(f"s{number}", x.reshape(each, threads).T)
        r.expect(f"b{number}", x)


@row("block: tiles, aligned or not, contiguous or not")
def _(r, rng):
    for dtype in ("i1", "u2", "f4", "f8", "c16"):
        for each, start in some(rng, [(4, 0), (4, 1), (8, 2), (3, 0)], 1):
            threads = int(rng.choice([32, 50, 128]))
            tile, name = threads * each, f"{dtype}_{each}_{start}"
            size = 2 * tile + int(rng.integers(1, tile))
            x = np.where(rng.random(size) < 0.1, 1, rng.integers(2, 100, size)).astype(dtype)
            want = np.concatenate([np.where(x == 1, 77, x), [77]]).astype(dtype)
            whole = lambda values: np.concatenate([np.zeros(start, dtype), values])
            r.arrays_of(**{f"x{name}": whole(x), f"b{name}": whole(np.zeros_like(want)), f"s{name}": whole(np.zeros_like(want)), f"f{name}": np.array([1, 77], dtype)})
            view = f"[{start}:]" if start else ""
            r.launch("tiles", f"3, {threads}", f"b{name}{view}", f"s{name}{view}", f"x{name}{view}", f"f{name}", str(threads), str(each))
            r.expect(f"b{name}", whole(want))
            r.expect(f"s{name}", whole(want))
    x = rng.integers(2, 100, (600, 2)).astype(np.int32)
    r.arrays_of(xt=x, bt=np.zeros(601, np.int32), st=np.zeros(601, np.int32), ft=np.array([1, 77], np.int32))
    r.launch("tiles", "3, 64", "bt", "st", "xt[:, 1]", "ft", "64", "4")
    r.expect("bt", np.concatenate([x[:, 1], [77]]))
    r.expect("st", np.concatenate([x[:, 1], [77]]))
