# RUN: %kjit-python %s
"""Derivatives of reductions over pairs, with respect to rows, numbers and arguments, with each operator, in one piece,
in chunks and on several devices."""
import os

import kjit
import numpy as np
import seeds

seed = seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)


def close(got, want, rtol=1e-11, terms=None):
    """terms: the sums of the absolute values of all terms. Rounding errors of a sum are relative to these sums, because
    the sum itself may be near 0."""
    got = got.to_host() if hasattr(got, "to_host") else np.asarray(got)
    want = np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    size = np.abs(want if terms is None else terms).max(initial=1e-30)
    assert np.abs(got - want).max(initial=0) <= rtol * size, np.abs(got - want).max() / size


def score(u, w, b, i, j, s, t):
    """A row of x, a row of y, a number for each row of y, both positions, a number and an array."""
    d = 0.0
    for k in range(len(u)):
        d += t[k] * (u[k] - w[k]) ** 2
    return b * kjit.exp(-s * d) + 0.01 * kjit.sin(1.0 * i + u[0]) * w[0] * kjit.cos(2.0 * j)


def matrices(x, y, b, s, t):
    """Returns the values of all pairs, and their derivatives with respect to x, y, b, s and t."""
    i, j = np.arange(len(x))[:, None], np.arange(len(y))
    e = x[:, None] - y
    d = (t * e * e).sum(2)
    g = np.exp(-s * d)
    wave, turn = 0.01 * np.sin(1.0 * i + x[:, :1]), np.cos(2.0 * j)
    dx = -2 * s * (b * g)[..., None] * t * e
    dy = -dx
    dx[..., 0] += 0.01 * np.cos(1.0 * i + x[:, :1]) * y[:, 0] * turn
    dy[..., 0] += wave * turn
    return b * g + wave * y[:, 0] * turn, (dx, dy, g, -b * g * d, -s * (b * g)[..., None] * e * e)


def weights(operator, values):
    if operator == "add":
        return np.ones_like(values)
    if operator == "mean":
        return np.full_like(values, 1 / values.shape[1])
    if operator == "logaddexp":
        e = np.exp(values - values.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    place = values.argmax(1) if operator == "max" else values.argmin(1)
    return (np.arange(values.shape[1]) == place[:, None]).astype(float)


def expected(operator, c, values, derivatives):
    w = c[:, None] * weights(operator, values)
    dx, dy, db, ds, dt = derivatives
    return (w[..., None] * dx).sum(1), (w[..., None] * dy).sum(0), (w * db).sum(0), (w * ds).sum(), (w[..., None] * dt).sum((0, 1))


def sizes(operator, c, values, derivatives):
    """Returns the sums of the absolute values of the terms of `expected`."""
    return expected(operator, np.abs(c), values, [np.abs(d) for d in derivatives])


def draw(m, n, width):
    x, y = rng.standard_normal((m, width)), rng.standard_normal((n, width))
    return x, y, rng.standard_normal(n), 0.1 + rng.random(), 0.2 + rng.random(width)


NUMBERS = (0, 1, 2, 5, 6)
DEVICE = os.environ.get("KJIT_DEVICE", "cpu")
CHUNKS = ({"chunk": 37}, {"devices": (DEVICE,) * 2}, {"devices": (DEVICE,) * 3, "chunk": 16})
ALL = ("add", "mean", "logaddexp", "max", "min")
for m, n, width, operators in ((70, 300, 3, ALL), (1, 65, 1, ("add",)), (300, 70, 2, ("logaddexp",))):
    x, y, b, s, t = draw(m, n, width)
    c = rng.standard_normal(m)
    values, derivatives = matrices(x, y, b, s, t)
    for operator in operators:
        want, terms = (add_up(operator, c, values, derivatives) for add_up in (expected, sizes))
        for more in ({}, *(CHUNKS if operator == "logaddexp" and width == 2 else ())):
            found = kjit.pairs_gradient(score, x, (y, b), operator, cotangents=c, arguments=(s, t), **more)
            for got, wanted, size in zip(found, want, terms, strict=True):
                close(got, wanted, 1e-12, size)
    result = kjit.pairs(score, x, (y, b), "logaddexp", arguments=(s, t))
    some = kjit.pairs_gradient(score, x, (y, b), "logaddexp", cotangents=c, arguments=(s, t), by=(1, 5), result=result)
    want, terms = (add_up("logaddexp", c, values, derivatives) for add_up in (expected, sizes))
    close(some[0], want[1], 1e-12, terms[1]), close(some[1], want[3], 1e-12, terms[3])
    # Checks that a step in a random direction changes the sum of the results by the derivatives along this direction.
    h, step = 1e-5, draw(m, n, width)
    step = (*step[:3], 0.3, step[4])
    ends = [
        kjit.pairs(score, x + e * step[0], (y + e * step[1], b + e * step[2]), arguments=(s + e * step[3], t + e * step[4]))
        for e in (h, -h)
    ]
    found = kjit.pairs_gradient(score, x, (y, b), cotangents=c, arguments=(s, t))
    slope = sum(float((np.asarray(g) * d).sum()) for g, d in zip(found, step))
    assert abs(slope - float(c @ (ends[0] - ends[1])) / (2 * h)) <= 1e-6 * (1 + abs(slope))


# Rows that are numbers, f32, and equal values: the first one has the derivative.
def distance(u, w, i, j):
    return abs(u - w)


x, y, c = (rng.standard_normal(k).astype("f4") for k in (80, 90, 80))
sign = np.sign(np.subtract.outer(x, y))
gx, gy = kjit.pairs_gradient(distance, x, y, cotangents=c)
assert gx.dtype == gy.dtype == np.float32
close(gx, c * sign.sum(1), 1e-4), close(gy, -(c[:, None] * sign).sum(0), 1e-4)
gx, gy = kjit.pairs_gradient(distance, x, np.concatenate((y, y)), "min", cotangents=c)
place = np.abs(np.subtract.outer(x, y)).argmin(1)
close(gx, c * sign[np.arange(80), place], 1e-6)
close(gy, -np.bincount(place, c * sign[np.arange(80), place], 180), 1e-5)
close(kjit.pairs_gradient(distance, x, y[:0], cotangents=c)[0], np.zeros(80))
close(kjit.pairs_gradient(distance, x[:0], y, cotangents=c[:0])[1], np.zeros(90))
wide_x, wide_y = rng.standard_normal((20, 100)), rng.standard_normal((30, 100))


def product(u, w, i, j):
    s = 0.0
    for k in range(len(u)):
        s += u[k] * w[k]
    return s


gx, gy = kjit.pairs_gradient(product, wide_x, wide_y, cotangents=c[:20])
close(gx, np.outer(c[:20], wide_y.sum(0))), close(gy, np.broadcast_to(c[:20] @ wide_x, (30, 100)))

# The example of docs/algorithms.md.
def gauss(x, y, i, j, s):
    d = 0.0
    for k in range(len(x)):
        d += (x[k] - y[k]) ** 2
    return kjit.exp(-s * d)


x, y = rng.standard_normal((40, 3)), rng.standard_normal((50, 3))
gx, gy, gs = kjit.pairs_gradient(gauss, x, y, cotangents=np.ones(len(x)), arguments=(0.5,))
e = x[:, None] - y
d = (e * e).sum(2)
close(gx, -(np.exp(-0.5 * d)[..., None] * e).sum(1)), close(gy, (np.exp(-0.5 * d)[..., None] * e).sum(0))
close(gs, -(np.exp(-0.5 * d) * d).sum())


def refused(error, text, call):
    try:
        call()
    except error as e:
        assert text in str(e), e
        return
    raise AssertionError(f"no error: {text}")


def whole(u, w, i, j):
    return i + j


x, y = wide_x, wide_y
c = np.ones(20)
refused(TypeError, "not for 'mul'", lambda: kjit.pairs_gradient(product, x, y, "mul", cotangents=c))
refused(kjit.ArgumentError, "`cotangents` has 19 rows, but `x` has 20", lambda: kjit.pairs_gradient(product, x, y, cotangents=c[:19]))
refused(kjit.TypingError, "parameter 2 of `func` is the number of a row", lambda: kjit.pairs_gradient(product, x, y, cotangents=c, by=2))
refused(kjit.ArgumentError, "`func` has no parameter 9", lambda: kjit.pairs_gradient(product, x, y, cotangents=c, by=9))
refused(kjit.ArgumentError, "must be in ascending order", lambda: kjit.pairs_gradient(product, x, y, cotangents=c, by=(1, 0)))
refused(kjit.TypingError, "`func` returns int64", lambda: kjit.pairs_gradient(whole, x, y, cotangents=c, by=0))
refused(kjit.TypingError, "derivatives are supported only with respect to floats", lambda: kjit.pairs_gradient(product, x.astype("i4"), y, cotangents=c, by=0))
large = {"cotangents": c, "arguments": (np.ones(65),)}
refused(kjit.UnsupportedError, "1 to 64 elements", lambda: kjit.pairs_gradient(lambda u, w, i, j, a: u[0] * a[j], x, y, **large))

# ---- the value in addition to the derivatives ----

x, y, b, s, t = draw(65, 40, 3)
c = rng.standard_normal(65)
values, derivatives = matrices(x, y, b, s, t)
sums = {"add": values.sum(1), "mean": values.mean(1), "logaddexp": np.log(np.exp(values).sum(1)), "max": values.max(1)}
for operator, wanted in sums.items():
    want, terms = (add_up(operator, c, values, derivatives) for add_up in (expected, sizes))
    for by in ((0,), (5,), (0, 1, 5, 6), (1, 2)):
        for more in ({}, {"chunk": 16}) if operator == "add" else ({},):
            result, *found = kjit.pairs_gradient(score, x, (y, b), operator, cotangents=c, arguments=(s, t), by=by, value=True, **more)
            close(result, wanted)
            for number, got in zip(by, found, strict=True):
                close(got, want[NUMBERS.index(number)], 1e-12, terms[NUMBERS.index(number)])


# ---- rows of f16 and bf16: sums of more terms than such numbers can count ----


def slope(u, w, i, j, s):
    d = u[0] * w[0] - u[1] * w[1]
    return kjit.exp(-s * d * d)


x, y = rng.uniform(0.5, 1, (6, 2)), rng.uniform(0.5, 1, (6000, 2))
c = rng.uniform(0.5, 1, 6)
for kind, unit in (("f16", 2.0**-10), ("bf16", 2.0**-7)):
    u, w, given = (kjit.array(a, dtype=kind) for a in (x, y, c))
    # NumPy gets the same rounded numbers.
    a, b, g = (kjit.map(lambda v: v, part, dtype="f64").to_host() for part in (u, w, given))
    d = a[:, :1] * b[:, 0] - a[:, 1:] * b[:, 1]
    e = np.exp(-0.5 * d * d)
    back = -g[:, None] * e * d
    wanted = {"x": np.stack([back @ b[:, 0], -back @ b[:, 1]], 1), "y": np.stack([back.T @ a[:, 0], -back.T @ a[:, 1]], 1)}
    value, gx, gy = kjit.pairs_gradient(slope, u, w, cotangents=given, arguments=(0.5,), by=(0, 1), value=True)
    for got, want in ((value, e.sum(1)), (gx, wanted["x"]), (gy, wanted["y"])):
        assert got.dtype.text == kind and got.device == u.device, (got.dtype, kind)
        close(kjit.map(lambda v: v, got, dtype="f64"), want, 2 * unit)
    again = kjit.pairs_gradient(slope, u, w, cotangents=given, arguments=(0.5,))
    assert [g.dtype.text if hasattr(g, "dtype") else type(g) for g in again][:2] == [kind, kind]
    _, pulled = kjit.pullback(kjit.pairs, slope, u, w, arguments=(0.5,))
    close(kjit.map(lambda v: v, pulled(given)[1], dtype="f64"), wanted["x"], 2 * unit)
    # Arguments of 16 bits: the sums over all pairs are in f32.
    s, t = kjit.array([0.5, 2.0], dtype=kind), kjit.array([0.25], dtype=kind)
    gs, gt = kjit.pairs_gradient(lambda u, w, i, j, s, t: s[0] * s[1] * u[0] * w[0] + t[0] * u[1], u, w, cotangents=given, arguments=(s, t), by=(4, 5))
    product, linear = (g * a[:, 0]).sum() * b[:, 0].sum(), (g * a[:, 1]).sum() * len(b)
    for got, want in ((gs, [2 * product, 0.5 * product]), (gt, [linear])):
        assert got.dtype.text == kind
        close(kjit.map(lambda v: v, got, dtype="f64"), want, 2 * unit)
    # The sum is above the largest f16, and the mean is not.
    (gx,) = kjit.pairs_gradient(lambda u, w, i, j: 100 * u[0] * w[0], u, w, "mean", cotangents=given, by=0)
    close(kjit.map(lambda v: v, gx, dtype="f64")[:, 0], 100 * g * b[:, 0].mean(), 2 * unit)
print("ok")
