# RUN: %kjit-python %s
"""Compares kjit.numpy.random with NumPy's Generator: distributions by the Kolmogorov-Smirnov distance of two samples
and by chi-square, dtypes, shapes, bounds and refusals. All seeds are fixed, so that the outcomes are the same in each
run on one device."""
import array
import collections
import os
import pickle

import numpy as np

import kjit
from kjit.numpy.random import Generator, default_rng

COUNT = 20000
# Distances times sqrt(COUNT / 2): one of 1.95 or more has the probability 0.001 for the right distribution.
MOST = 1.95
CASES = [
    ("random", ()), ("uniform", (2.0, 5.0)), ("standard_normal", ()), ("normal", (1.0, 2.0)), ("standard_exponential", ()), ("exponential", (3.0,)),
    ("standard_gamma", (0.3,)), ("gamma", (2.5, 2.0)), ("beta", (0.5, 0.4)), ("beta", (5.0, 3.0)), ("chisquare", (3.0,)),
    ("noncentral_chisquare", (3.0, 2.0)), ("noncentral_chisquare", (0.5, 2.0)), ("f", (4.0, 6.0)), ("noncentral_f", (4.0, 6.0, 1.5)),
    ("gumbel", (1.0, 2.0)), ("laplace", (1.0, 2.0)), ("logistic", (1.0, 2.0)), ("lognormal", (0.1, 0.5)), ("pareto", (3.0,)), ("power", (3.0,)),
    ("rayleigh", (2.0,)), ("standard_cauchy", ()), ("standard_t", (5.0,)), ("triangular", (1.0, 2.0, 5.0)), ("vonmises", (1.0, 2.0)),
    ("vonmises", (0.0, 50.0)), ("wald", (2.0, 3.0)), ("weibull", (1.5,)), ("binomial", (20, 0.3)), ("binomial", (1000, 0.3)), ("binomial", (1000, 0.9)),
    ("geometric", (0.2,)), ("geometric", (1e-5,)), ("hypergeometric", (30, 40, 25)), ("hypergeometric", (300, 400, 5)),
    ("hypergeometric", (3000, 4000, 500)), ("hypergeometric", (3000, 4000, 6500)), ("logseries", (0.6,)), ("logseries", (0.999,)),
    ("negative_binomial", (5.0, 0.4)), ("poisson", (3.0,)), ("poisson", (50.0,)), ("poisson", (1e6,)), ("zipf", (2.5,)), ("zipf", (1.3,)),
]


def distance(a, b):
    """Returns the maximum distance between the distribution functions of two samples, in units of sqrt(2 / COUNT)."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    gaps = np.searchsorted(a, both, side="right") / len(a) - np.searchsorted(b, both, side="right") / len(b)
    return np.abs(gaps).max() * np.sqrt(len(a) / 2)


def check_distributions():
    own, theirs = default_rng(7), np.random.default_rng(7)
    for name, parameters in CASES:
        x = getattr(own, name)(*parameters, size=COUNT).to_host()
        y = getattr(theirs, name)(*parameters, size=COUNT)
        assert x.dtype == y.dtype, (name, x.dtype, y.dtype)
        found = distance(x, y)
        assert found < MOST, (name, parameters, found)


def check_each_element():
    """Parameters that are arrays give each element its own distribution."""
    rng = default_rng(3)
    shapes = np.array([[0.5], [2.0], [30.0]])
    x = rng.gamma(shapes, [1.0, 10.0], size=(4000, 3, 2)).to_host()
    wanted = shapes * [1.0, 10.0]
    spread = np.sqrt(shapes) * [1.0, 10.0]
    assert (np.abs(x.mean(0) - wanted) < 5 * spread / np.sqrt(4000)).all(), x.mean(0)
    n = rng.poisson(kjit.array(np.array([0.0, 4.0, 400.0])), size=(4000, 3)).to_host()
    assert (n[:, 0] == 0).all() and (np.abs(n.mean(0) - [0, 4, 400]) < 5 * np.sqrt([0, 4, 400]) / np.sqrt(4000) + 1e-9).all()
    i = rng.integers([0, -5, 10], [2, 5, 1000], size=(4000, 3), dtype="int16").to_host()
    assert i.dtype == np.int16 and i.min(0).tolist() == [0, -5, 10] and i.max(0)[:2].tolist() == [1, 4] and i.max() < 1000


def chi_square(counts, expected):
    """In standard deviations from the mean."""
    counts, expected = np.asarray(counts, float).ravel(), np.asarray(expected, float).ravel()
    freedom = len(counts) - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom)


def check_integers():
    rng = default_rng(11)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, 2000, dtype, endpoint=True).to_host()
        assert x.dtype == dtype
        share = (x.astype(float) - float(limits.min)) / (float(limits.max) - float(limits.min))
        assert abs(share.mean() - 0.5) < 5 / np.sqrt(12 * 2000), dtype
        y = rng.integers(3, 10, 7000, dtype).to_host()
        assert abs(chi_square(np.bincount(y.astype(int), minlength=10)[3:], [1000] * 7)) < 5
    b = rng.integers(0, 2, 4000, bool).to_host()
    assert b.dtype == bool and abs(b.mean() - 0.5) < 0.04
    wide = rng.integers([-(2**63)] * 1000, 2**63 - 1, endpoint=True).to_host()
    assert wide.min() < -(2**62) and wide.max() > 2**62
    assert len(rng.bytes(17)) == 17


def check_sequences():
    """Lists and other sequences are shuffled in place, and arguments are checked also for no elements."""
    rng = default_rng(6)
    for kind in list, collections.deque, bytearray, lambda items: array.array("i", items):
        items = kind(range(40))
        rng.shuffle(items)
        assert list(items) != list(range(40)) == sorted(items), items
    for wrong, error in (lambda: rng.shuffle([1, 2], axis=1), NotImplementedError), (lambda: rng.choice(3, 0, p=[5, 5, 5]), ValueError):
        try:
            wrong()
        except error:
            continue
        raise AssertionError(error)


def check_orders():
    rng = default_rng(5)
    orders = collections.Counter(tuple(rng.permutation(3).to_host()) for _ in range(180))
    assert len(orders) == 6 and abs(chi_square(list(orders.values()), [30] * 6)) < 5
    host = np.arange(60.0).reshape(12, 5)
    x = kjit.array(host)
    rng.shuffle(x)
    assert not np.array_equal(x.to_host(), host) and np.array_equal(np.sort(x.to_host(), 0), host)
    assert np.array_equal(np.sort(rng.permutation(host).to_host(), 0), host)
    assert np.array_equal(np.sort(rng.permuted(host).to_host(), None), host.ravel())
    counts = np.bincount(rng.choice(3, 6000, p=[0.1, 0.2, 0.7]).to_host(), minlength=3)
    assert abs(chi_square(counts, [600, 1200, 4200])) < 5
    firsts = [tuple(rng.choice(3, 2, replace=False, p=[0.1, 0.2, 0.7]).to_host()) for _ in range(200)]
    probability = {(a, b): p[a] * p[b] / (1 - p[a]) for p in [(0.1, 0.2, 0.7)] for a in range(3) for b in range(3) if a != b}
    assert abs(chi_square([firsts.count(k) for k in probability], [200 * p for p in probability.values()])) < 5
    assert sorted(rng.choice(10, 10, replace=False).to_host()) == list(range(10))
    assert rng.choice(5, (2, 3)).shape == (2, 3)


def check_vectors():
    rng = default_rng(13)
    d = rng.dirichlet([1.0, 2.0, 3.0], 4000).to_host()
    assert np.allclose(d.sum(1), 1) and (np.abs(d.mean(0) - np.array([1, 2, 3]) / 6) < 0.02).all()
    tiny = rng.dirichlet([1e-5, 2e-5], 50).to_host()
    assert np.isfinite(tiny).all() and np.allclose(tiny.sum(1), 1)
    m = rng.multinomial(100, [0.2, 0.3, 0.5], 4000).to_host()
    assert (m.sum(1) == 100).all() and (np.abs(m.mean(0) - [20, 30, 50]) < 0.5).all()
    h = rng.multivariate_hypergeometric([10, 0, 20, 30], 12, 4000).to_host()
    mean, part = 12 * np.array([10, 0, 20, 30]) / 60, np.array([10, 0, 20, 30]) / 60
    assert (h.sum(1) == 12).all() and (h >= 0).all() and (h <= [10, 0, 20, 30]).all()
    assert (np.abs(h.mean(0) - mean) < 0.12).all() and (np.abs(h.var(0) - 12 * part * (1 - part) * 48 / 59) < 0.2).all(), (h.mean(0), h.var(0))
    whole = rng.multivariate_hypergeometric(np.array([1, 2]), 3)
    assert whole.to_host().tolist() == [1, 2] and rng.multivariate_hypergeometric([1, 2], 0, (2, 3)).to_host().sum() == 0
    for colors, count in (([1, 2], 4), ([-1, 2], 1), ([1, 2], -1)):
        try:
            rng.multivariate_hypergeometric(colors, count)
            raise AssertionError((colors, count))
        except ValueError as error:
            assert "multivariate_hypergeometric: nsample" in str(error)
    cov = np.array([[1.0, 0.5], [0.5, 2.0]])
    for method in ("svd", "eigh", "cholesky"):
        v = rng.multivariate_normal([1, 2], cov, 8000, method=method).to_host()
        assert (np.abs(v.mean(0) - [1, 2]) < 0.08).all() and (np.abs(np.cov(v.T) - cov) < 0.15).all()


def check_states():
    """set_state continues where get_state was called."""
    from kjit.numpy import random

    state = random.RandomState(5)
    state.rand(3)
    kept = state.get_state()
    before = [state.rand(4), state.normal(size=3), state.gamma(2.0, size=3), state.permutation(9)]
    state.set_state(kept)
    after = [state.rand(4), state.normal(size=3), state.gamma(2.0, size=3), state.permutation(9)]
    assert all(np.array_equal(a.to_host(), b.to_host()) for a, b in zip(before, after))
    random.seed(4)
    kept, first = random.get_state(), random.rand(3).to_host()
    random.set_state(kept)
    assert np.array_equal(random.rand(3).to_host(), first)
    try:
        state.set_state(np.random.RandomState(3).get_state())
        raise AssertionError("a state of NumPy")
    except ValueError as error:
        assert "get_state() of a kjit.numpy.random generator" in str(error)


def check_stream():
    """Parts of the stream equal the numbers of one call, and those of kjit.random_uniform. Copies of a generator
    continue in the same way."""
    a, b = default_rng(3), default_rng(3)
    pieces = np.concatenate([a.random(5).to_host(), a.uniform(0.0, 1.0, 7).to_host()])
    assert np.array_equal(pieces, b.random(12).to_host()) and np.array_equal(pieces, kjit.random_uniform(12, 3).to_host())
    assert np.array_equal(np.concatenate([a.gamma(2.0, size=5).to_host(), a.gamma(2.0, size=6).to_host()]), b.gamma(2.0, size=11).to_host())
    c = pickle.loads(pickle.dumps(a))
    assert np.array_equal(c.beta(2.0, 3.0, 9).to_host(), a.beta(2.0, 3.0, 9).to_host()) and c.device == a.device
    first, second = a.spawn(2)
    assert first.seed != second.seed and not np.array_equal(first.random(4).to_host(), second.random(4).to_host())
    assert default_rng(a) is a and isinstance(default_rng([1, 2, 3]), Generator) and default_rng(2**70).seed != default_rng(2**71).seed
    assert a.random((2, 3), "float32").to_host().dtype == np.float32 and a.random().shape == () and a.gamma(2.0, size=(0, 3)).shape == (0, 3)
    out = kjit.empty((2, 4), "f32")
    assert a.standard_normal(out=out, dtype="float32") is out and out.to_host().std() > 0
    assert a.standard_gamma(2.0, out=out, dtype="float32") is out and out.to_host().min() > 0


def refuses(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"nothing was raised: {text}")


def check_refusals():
    rng = default_rng(1)
    refuses(ValueError, "gamma: `shape` must be at least 0, but is -1.0", lambda: rng.gamma(-1.0))
    refuses(ValueError, "gamma: `shape` must be at least 0, but is nan", lambda: rng.gamma([1.0, float("nan")]))
    refuses(ValueError, "binomial: `p` must be from 0 to 1, but is from 0.5 to 2.0", lambda: rng.binomial(3, [0.5, 2.0]))
    refuses(ValueError, "(2,), which does not broadcast to size, (3,)", lambda: rng.poisson([1, 2], size=3))
    refuses(ValueError, "which do not broadcast", lambda: rng.gamma([1, 2], [1, 2, 3]))
    refuses(ValueError, "size is (2, -1)", lambda: rng.poisson(1.0, size=(2, -1)))
    refuses(ValueError, "`high`, 300, is out of bounds for uint8", lambda: rng.integers(0, 300, 3, "uint8"))
    refuses(ValueError, "low, 5, is at least high, 5", lambda: rng.integers(5, 5))
    refuses(ValueError, "an element of low is at least that of high", lambda: rng.integers([1, 2], [1, 5]))
    refuses(ValueError, "nsample, 8, is more than ngood + nbad, 7", lambda: rng.hypergeometric(3, 4, 8))
    large = np.array([2**63 + 5, 3], "u8")
    refuses(ValueError, "an element of low is at least", lambda: rng.integers(large, np.array([2**63 + 5, 9], "u8"), dtype="uint64"))
    refuses(ValueError, "an element of low is more than", lambda: rng.integers(large, [7, 9], dtype="uint64", endpoint=True))
    refuses(ValueError, "of each element must ascend", lambda: rng.triangular([0, 0], [1, 3], [2, 2]))
    refuses(ValueError, "an element of nsample is more", lambda: rng.hypergeometric([3, 3], 4, [7, 8]))
    refuses(ValueError, "5 elements without replacement are more than the 3", lambda: rng.choice(3, 5, replace=False))
    refuses(ValueError, "the sum 1", lambda: rng.choice(2, 1, p=[0.5, 0.6]))
    refuses(TypeError, "dtype is int32, but the numbers are floats", lambda: rng.random(3, "int32"))
    refuses(ValueError, "out must be an array of float64", lambda: rng.random(out=kjit.empty(3, "f32")))
    if any(d.kind == "cuda" for d in kjit.devices()) and os.environ.get("KJIT_DEVICE", "cpu") != "cpu":
        refuses(ValueError, "move `shape` with", lambda: rng.gamma(kjit.array([1.0], device="cpu")))


def check_means():
    """The means and variances of integers, with enough numbers to detect a proposal that is off by one."""
    rng, count = default_rng(11), 10**6
    laws = {
        "poisson": [((50.0,), 50.0, 50.0), ((3.0,), 3.0, 3.0)],
        "binomial": [((100, 0.4), 40.0, 24.0), ((7, 0.3), 2.1, 1.47)],
        "geometric": [((0.2,), 5.0, 20.0)],
        "negative_binomial": [((6, 0.25), 18.0, 72.0)],
        "hypergeometric": [((40, 60, 30), 12.0, 30 * 0.4 * 0.6 * 70 / 99)],
    }
    for name, rows in laws.items():
        for parameters, mean, variance in rows:
            found = getattr(rng, name)(*parameters, count).to_host()
            assert abs(found.mean() - mean) < 6 * (variance / count) ** 0.5, (name, parameters, found.mean(), mean)
            assert abs(found.var() / variance - 1) < 0.02, (name, parameters, found.var(), variance)


def check_axes():
    """Permutations along an axis, and random elements of an array."""
    rng, x = default_rng(12), np.arange(60).reshape(4, 5, 3)
    for axis in range(3):
        moved = np.moveaxis(rng.permutation(kjit.array(x), axis=axis).to_host(), axis, 0)
        rows = np.moveaxis(x, axis, 0)
        order = [int(np.flatnonzero((rows == row).all((1, 2)))[0]) for row in moved]
        assert sorted(order) == list(range(x.shape[axis]))
        each = rng.permuted(kjit.array(x), axis=axis).to_host()
        assert (np.sort(each, axis) == x).all()
        chosen = rng.choice(kjit.array(x), (2, 6), axis=axis).to_host()
        assert chosen.shape == (*x.shape[:axis], 2, 6, *x.shape[axis + 1:])
        assert all(np.isin(part, x).all() for part in chosen)


def check_older():
    """RandomState and the module's functions, which continue one generator on each device."""
    from kjit.numpy import random
    from kjit.numpy.random import RandomState, rand

    state = RandomState(5)
    first, rest = state.rand(3, 2).to_host(), state.randn(4).to_host()
    assert (first == default_rng(5).random((3, 2)).to_host()).all() and rest.shape == (4,)
    assert state.rand().shape == () and state.randint(3, size=9).dtype == np.int64 and state.random_sample(2).shape == (2,)
    other = pickle.loads(pickle.dumps(state))
    assert type(other) is RandomState and (other.rand(2).to_host() == state.rand(2).to_host()).all()
    state.seed(5)
    assert (state.rand(3, 2).to_host() == first).all()
    random.seed(5)
    assert (rand(3, 2).to_host() == first).all() and (random.randn(4).to_host() == rest).all()
    random.seed(5)
    assert (random.random((3, 2)).to_host() == first).all() and random.choice(4, 2, replace=False).shape == (2,)
    assert {"rand", "seed", "RandomState", "normal", "default_rng"} <= set(dir(random)) and not hasattr(random, "nothing")


for check in (check_older, check_means, check_axes, check_distributions, check_each_element, check_integers, check_orders, check_sequences, check_vectors, check_states, check_stream, check_refusals):
    check()
