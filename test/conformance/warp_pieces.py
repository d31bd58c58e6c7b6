import monoids
import numpy as np
from rows import row


def by_warp(x):
    return [x[first:first + 32] for first in range(0, len(x), 32)]


def expect_of(r, rng, m, threads, shape):
    """Returns (kernel, results, arguments after the results) of both kernels for random elements."""
    x, name, lane = m.make(rng, threads), f"{m.name}_{shape}", int(rng.integers(0, 32))
    kinds, others = np.zeros((5, threads), m.dtype), np.zeros((7, threads), m.dtype)
    for first in range(0, threads, 32):
        here = slice(first, min(first + 32, threads))
        inclusive, exclusive, rest, total = monoids.scans(m, x[here])
        for at, values in enumerate((total, inclusive, total, exclusive, x[here][min(lane, len(x[here]) - 1)])):
            kinds[at, here] = values
        for at, values in enumerate((np.concatenate([total, x[here][1:]]), inclusive, exclusive, total, rest, rest, total)):
            others[at, here] = values
    x_name, e_name = f"x_{name}", f"e_{name}"
    monoids.arrays_of(r, m, **{x_name: x, e_name: np.array([m.identity], m.dtype)})
    return (("kinds", kinds, (x_name, e_name, str(lane), m.op)), ("others", others, (x_name, e_name, m.op)))


def launch(r, m, shape, kernel, want, arguments):
    result = f"{kernel}_{m.name}_{shape}"
    monoids.arrays_of(r, m, **{result: monoids.unlike(want)})
    r.launch(kernel, f"1, {shape}", result, *arguments)
    r.expect(result, want)


@row("warp: every kind of element")
def _(r, rng):
    for m, threads in monoids.pick(rng, list(monoids.BY_NAME), monoids.SIZES[2:], 1):
        shape = rng.choice(monoids.shapes_of(threads))
        kinds, _ = expect_of(r, rng, m, threads, shape)
        launch(r, m, shape, *kinds)


@row("warp: every size of a block")
def _(r, rng):
    m = monoids.BY_NAME["then"]
    for threads in monoids.SIZES:
        for kernel in expect_of(r, rng, m, threads, str(threads)):
            launch(r, m, str(threads), *kernel)


@row("warp: the first lanes")
def _(r, rng):
    for name, threads in (("last_f8", 100), ("multiply", 64)):
        m = monoids.BY_NAME[name]
        x = m.make(rng, threads)
        count = rng.integers(1, 33, -(-threads // 32)).astype(np.int32)
        want = np.concatenate([np.broadcast_to(monoids.scans(m, part[:c])[3], len(part)) for part, c in zip(by_warp(x), count)])
        want = np.stack([want] * 3)
        monoids.arrays_of(r, m, **{f"x{threads}": x, f"r{threads}": monoids.unlike(want)})
        r.array(f"c{threads}", count)
        r.launch("first_lanes", f"1, {threads}", f"r{threads}", f"x{threads}", f"c{threads}", m.op)
        r.expect(f"r{threads}", want)


@row("warp: sums of real numbers")
def _(r, rng):
    for dtype, rtol in (("f4", 1e-5), ("f8", 1e-14)):
        x = rng.random(96).astype(dtype)
        r.arrays_of(**{f"x{dtype}": x, f"r{dtype}": np.zeros((5, 96), dtype), f"e{dtype}": np.zeros(1, dtype)})
        r.launch("kinds", "1, 96", f"r{dtype}", f"x{dtype}", f"e{dtype}", "0", "add")
        warps = x.reshape(3, 32).astype("f8")
        check = lambda got, rtol=rtol, warps=warps: (np.testing.assert_allclose(got[0], np.repeat(warps.sum(1), 32), rtol),
                                                      np.testing.assert_allclose(got[1], warps.cumsum(1).reshape(-1), rtol))
        r.verify([f"r{dtype}"], check)


@row("warp: ranks of flags")
def _(r, rng):
    for threads in (1, 33, 100, 1024):
        x = rng.integers(-3, 4, threads).astype(np.int32)
        want = np.concatenate([[(np.cumsum(part > 0) - (part > 0)), np.full(len(part), (part > 0).sum()), np.full(len(part), len(part))] for part in by_warp(x)], axis=1)
        r.arrays_of(**{f"x{threads}": x, f"r{threads}": np.zeros((3, threads), np.int32)})
        r.launch("ranks", f"1, {threads}", f"r{threads}", f"x{threads}")
        r.expect(f"r{threads}", want)
