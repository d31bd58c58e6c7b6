# RUN: %kjit-python %s
"""Reverse derivatives of algorithms, compared with central differences in f64 along random directions, on fresh random
data."""
import kjit
import numpy as np
import seeds

seed = seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)
H = 1e-6


def host(x):
    return x.to_host() if hasattr(x, "to_host") else np.asarray(x)


def check(algorithm, *operands, by=None, call=None, make=None, result=None, **keywords):
    """by: the indices of the operands to differentiate by. call: the value; by default the algorithm's. make: returns
    operands for arrays. result: the index of the differentiated result, if there are several."""
    call, make = call or (lambda *o: host(algorithm(*o, **keywords))), make or (lambda *o: o)
    by = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray) and x.dtype == "f8"] if by is None else by
    which = result
    result, back = kjit.pullback(algorithm, *make(*operands), **keywords)
    value = np.asarray(call(*make(*operands)))
    np.testing.assert_allclose(host(result if which is None else result[which]), value, rtol=1e-12, atol=1e-12)
    g = rng.standard_normal(value.shape)
    found = back(g if g.shape else float(g))
    step = [rng.standard_normal(np.shape(x)) if i in by else None for i, x in enumerate(operands)]
    ends = [call(*make(*(x if d is None else x + h * d for x, d in zip(operands, step)))) for h in (H, -H)]
    want = float(np.sum(g * (ends[0] - ends[1]))) / (2 * H)
    got = sum(float(np.sum(host(found[i]) * step[i])) for i in by)
    assert all(host(found[i]).shape == np.shape(operands[i]) for i in by), [host(found[i]).shape for i in by]
    assert abs(got - want) <= 1e-7 * (1 + abs(want)) * max(1, value.size) ** 0.5, (algorithm, keywords, got, want)


def apart(count, most):
    """Returns numbers from -most to most that are further than a step from kinks: none is near 0 or near another one.
    count is even."""
    return (rng.permutation(count) - (count - 1) / 2 + 0.2 * rng.random(count)) * 2 * most / count


x, y = apart(280, 1.5).reshape(40, 7), apart(300, 2.5)
for operator in ("add", "mean", "logaddexp", "max", "min", "mul"):
    check(kjit.reduce, x, operator=operator, axis=1)
    check(kjit.reduce, x, operator=operator, axis=0)
    check(kjit.reduce, y[:20], operator=operator)
zeros = np.where(np.arange(9) % 4 == 1, 0.0, y[:9])
check(kjit.reduce, zeros, operator="mul")
np.testing.assert_array_equal(kjit.pullback(kjit.reduce, np.array([1.0, 3, 3]), "max")[1](2.0)[0], [0, 2, 0])
small = x.astype("f4")
small[0, 0], small[1, 1] = np.inf, -np.inf
for operator in ("add", "mean", "max", "min"):
    by_small = kjit.pullback(kjit.reduce, small, operator, axis=1)[1](np.ones(40, "f4"))[0]
    assert by_small.dtype == np.float32 and abs(by_small.sum() - 40 * (7 if operator == "add" else 1)) < 1e-4, operator
total, back = kjit.pullback(kjit.reduce, x, "logaddexp")
(dx,) = back(1.0)
np.testing.assert_allclose(dx, np.exp(x - total), rtol=1e-12)
check(kjit.scan, x), check(kjit.scan, x, axis=0, exclusive=True), check(kjit.scan, y)


def damped(a, b):
    """A user-defined operator: associative, neither linear nor commutative in its parts."""
    return a + b + 0.25 * a * b


cube = apart(66, 1.5).reshape(3, 11, 2)
for operator in ("mul", "max", "min", "logaddexp", damped):
    for exclusive in (False, True):
        if exclusive and operator != "mul":  # the others have no initial value
            continue
        check(kjit.scan, cube, operator=operator, axis=1, exclusive=exclusive)
        check(kjit.scan, y[:12], operator=operator, exclusive=exclusive)
        check(kjit.scan, y[:1], operator=operator, exclusive=exclusive)
check(kjit.scan, np.where(np.arange(9) % 4 == 1, 0.0, y[:9]), operator="mul")
check(kjit.reduce, y[:15], operator=damped), check(kjit.reduce, x, operator=damped, axis=0)
# Among equal elements, the first one has the derivative.
(equal,) = kjit.pullback(kjit.scan, np.array([1.0, 3, 3, 2, 3, 4]), "max")[1](np.arange(1.0, 7))
np.testing.assert_array_equal(equal, [1, 14, 0, 0, 0, 6])


def formula(a, b, s):
    return a * kjit.exp(-s * b * b) if a > 0 else a * s


check(kjit.map, formula, x, y[:7], 0.7, by=[1, 2])
check(kjit.map, formula, x[:, :1], y[None, :30], y[30:60], by=[1, 2, 3])
check(kjit.map, formula, x, y[:40, None], 0.7, by=[1, 2, 3])
a, b, c = (rng.standard_normal(shape) for shape in ((5, 6), (6, 8), (3, 8, 4)))
for factors in ((a, b), (b, c), (a[0], b), (c, c[0, 0]), (a[0], a[1])):
    check(kjit.matmul, *factors)
check(kjit.einsum, "ij,jk,ljm->ikl", a, b, rng.standard_normal((2, 6, 3)))
check(kjit.einsum, "ij->i", a), check(kjit.einsum, "...j,j->...", c[:, 0], y[:4]), check(kjit.einsum, "ij,kj->", a, a)
bias = rng.standard_normal(8)
value, back = kjit.pullback(kjit.matmul, a, b, epilogue=lambda t, s: kjit.tanh(t + s), epilogue_operands=(bias,))
g = rng.standard_normal((5, 8))
dz = g * (1 - np.tanh(a @ b + bias) ** 2)
for got, want in zip(back(g), (dz @ b.T, a.T @ dz, dz.sum(0)), strict=True):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
offsets = np.sort(rng.integers(0, 280, 20)) + 5
offsets[3] = offsets[4]
for operator in ("add", "logaddexp", "max", "min"):
    whole = offsets if operator == "add" else np.unique(offsets)
    check(kjit.reduce_segments, y, whole, operator=operator)
for line in (y[:50], np.round(y[:50], 1)):
    _, back = kjit.pullback(kjit.reduce_segments, np.sort(line), np.array([0, 50]), "min")
    np.testing.assert_array_equal(back(np.ones(1))[0], np.arange(50) == 0)
keys = np.sort(rng.integers(0, 12, 300))
for operator in ("add", "logaddexp", "max", "min"):
    check(kjit.reduce_by_key, keys, y, operator=operator, call=lambda k, v: kjit.reduce_by_key(k, v, operator)[1], result=1)
halves = lambda a, b: a // 2 == b // 2  # noqa: E731
check(kjit.reduce_by_key, keys, y, equal=halves, call=lambda k, v: kjit.reduce_by_key(k, v, equal=halves)[1], result=1)
for exclusive in (False, True):
    check(kjit.scan_by_key, keys, y, exclusive=exclusive)
    ends = np.array([0, 40, 40, 120, 300])
    check(kjit.scan_segments, y, ends, exclusive=exclusive)
_, back = kjit.pullback(kjit.scan_segments, y, np.array([7, 20, 250]))
assert not np.any(host(back(np.ones(300))[0])[[0, 6, 250, 299]])
check(kjit.bincount, rng.integers(0, 9, 40), 9, y[:40])
for descending in (False, True):
    check(kjit.sort, y, descending=descending), check(kjit.sort, cube, axis=1, descending=descending), check(kjit.sort, x, axis=0)
    check(kjit.top_k, y, 5, descending=descending, call=lambda x, k: kjit.top_k(x, k, descending=descending)[0])
    way = "max" if descending else "min"
    check(kjit.scan_with_index, y, way, call=lambda x, way: kjit.scan_with_index(x, way)[0])
    check(kjit.scan_with_index, cube, way, axis=1, call=lambda x, way: kjit.scan_with_index(x, way, axis=1)[0])
    check(kjit.top_k, cube, 4, axis=1, descending=descending, call=lambda x, k: kjit.top_k(x, k, axis=1, descending=descending)[0])
# kjit arrays, as on a GPU.
for algorithm, operands in (
    (kjit.scan, (x, "max")), (kjit.scan, (x, "mul")), (kjit.reduce_by_key, (keys, y, "max")), (kjit.scan_segments, (y, ends)), (kjit.sort, (x,))
):  # fmt: skip
    g = rng.standard_normal(operands[0].shape if algorithm is not kjit.reduce_by_key else len(np.unique(keys)))
    moved = [kjit.array(o) if isinstance(o, np.ndarray) else o for o in operands]
    wanted, got = (kjit.pullback(algorithm, *o)[1](d) for o, d in ((operands, g), (moved, kjit.array(g))))
    for a, b in zip(wanted, got, strict=True):
        assert a is b is None or np.array_equal(host(a), b.to_host()), algorithm
sorted_pairs, back = kjit.pullback(kjit.sort_pairs, x, x * x, axis=0)
g, order = rng.standard_normal(x.shape), np.argsort(x, axis=0, kind="stable")
for got, d in zip(back((g, 2 * g)), (g, 2 * g), strict=True):
    want = np.zeros_like(x)
    np.put_along_axis(want, order, d, 0)
    np.testing.assert_array_equal(host(got), want)
check(kjit.select_where, y, y > 0)

# ---- matrices, with respect to whose entries the result is differentiated ----

dense = np.where(rng.random((30, 30)) < 0.2, rng.standard_normal((30, 30)), 0)
sparse = kjit.csr(dense)
indices, indptr = sparse.indices, sparse.indptr


def matrix(data):
    return kjit.CSR(data, indices, indptr, (30, 30))


for right in (rng.standard_normal(30), rng.standard_normal((30, 4))):
    check(kjit.CSR.dot, host(sparse.data), right, make=lambda data, v: (matrix(data), v))
positive = dense @ dense.T + 5 * np.eye(30)
exact = {"residual_tolerance": 1e-13}
right = rng.standard_normal(30)
near = np.testing.assert_allclose
solution, back = kjit.pullback(kjit.cg, positive, right, **exact)
g = rng.standard_normal(30)
u = np.linalg.solve(positive, g)
by_matrix, by_right = back(g)
near(host(by_right), u, rtol=1e-8, atol=1e-10)
near(host(by_matrix), -np.outer(u, np.linalg.solve(positive, right)), rtol=1e-8, atol=1e-10)
full = kjit.csr(positive)
by_entries = host(kjit.pullback(kjit.cg, full, right, **exact)[1](g)[0])
near(by_entries, host(by_matrix)[positive != 0].reshape(-1), rtol=1e-7, atol=1e-9)


def gauss(u, w, i, j, s):
    return kjit.exp(-s * (u - w) ** 2)


for operator in ("add", "logaddexp"):
    value, back = kjit.pullback(kjit.pairs, gauss, y[:40], y[40:100], operator, arguments=(0.5,))
    g = rng.standard_normal(40)
    _, gx, gy, gs = back(g)
    wanted = kjit.pairs_gradient(gauss, y[:40], y[40:100], operator, cotangents=g, arguments=(0.5,))
    for got, want in zip((gx, gy, gs), wanted, strict=True):
        np.testing.assert_allclose(host(got), host(want), rtol=1e-12, atol=1e-13)

for error, text, call in [
    (TypeError, "kjit.pullback: histogram has no derivative rule", lambda: kjit.pullback(kjit.histogram, y, 10)),
    (TypeError, "not for 'xor'", lambda: kjit.pullback(kjit.reduce, y, "xor")),
    (TypeError, "not for 'xor'", lambda: kjit.pullback(kjit.scan, y, "xor")),
    (TypeError, "not for a function", lambda: kjit.pullback(kjit.scan_by_key, keys, y, lambda a, b: a)),
    (TypeError, "not for 'mul'", lambda: kjit.pullback(kjit.reduce_by_key, keys, y, "mul")),
    (TypeError, "needs weights", lambda: kjit.pullback(kjit.bincount, keys, 20)),
    (TypeError, "repeats a letter", lambda: kjit.pullback(kjit.einsum, "ii->i", a[:5, :5])),
    (TypeError, "takes an array with one axis", lambda: kjit.pullback(kjit.select_where, x, x > 0)),
    (TypeError, "of reduce does not take plan=", lambda: kjit.pullback(kjit.reduce, y, "add", plan=True)),
]:
    try:
        call()
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)
print("ok")
