# RUN: %kjit-python %s
"""Compares reductions, scans, sorts and maps that use Python functions with NumPy."""
import math

import kjit
import numpy as np
import seeds

random = seeds.fresh_generator()
x = random.standard_normal((20, 30))
n = random.integers(0, 100, 500).astype(np.int32)
close = np.testing.assert_allclose

close(kjit.reduce(x), x.sum())
close(kjit.reduce(x, "max", axis=0), x.max(0))
close(kjit.reduce(x, lambda a, b: min(a, b), axis=(0, 1)), x.min())
close(kjit.reduce(x[:, ::2], lambda a, b: a + b, axis=-1, initial=5), x[:, ::2].sum(-1) + 5)
for initial in 5, 5.0, np.float32(5), np.array(5.0), kjit.reduce(kjit.array(np.full(5, 1.0), device="cpu")):
    close(kjit.reduce(x, initial=initial), x.sum() + 5)
try:
    kjit.reduce(x, initial=np.ones(1))
    raise SystemExit("an array was taken for a value")
except TypeError as error:
    assert "initial must be a single value, not an array of the shape (1,)" in str(error), error
try:
    kjit.histogram(x, 10)
    raise SystemExit("a histogram without a range")
except TypeError as error:
    assert "a histogram of 10 bins takes low and high" in str(error), error
close(kjit.reduce([0.5, 1, 0.25], lambda a, b: a + b + a * b), 2.75)
assert kjit.reduce(n, "add") == n.sum() and kjit.reduce(n, "add").dtype == np.int64
close(kjit.scan(x), np.cumsum(x, -1))
close(kjit.scan(x, "mul", axis=0), np.cumprod(x, 0))
np.testing.assert_array_equal(kjit.scan(n, lambda a, b: max(a, b)), np.maximum.accumulate(n))
np.testing.assert_array_equal(kjit.scan(n, exclusive=True)[1:], np.cumsum(n)[:-1])
np.testing.assert_array_equal(kjit.sort(n), np.sort(n))
np.testing.assert_array_equal(kjit.sort(x, axis=0, descending=True), np.sort(x, 0)[::-1])
np.testing.assert_array_equal(kjit.argsort(n), np.argsort(n, kind="stable"))
ends = kjit.sort(n, lambda a, b: a % 10 < b % 10)
np.testing.assert_array_equal(ends, n[np.argsort(n % 10, kind="stable")])


@kjit.vectorize
def difference(a, b):
    return 2 * abs(a - b) / (abs(a) + abs(b)) + math.exp(-a * a)


expected = 2 * abs(x - x[0]) / (abs(x) + abs(x[0])) + np.exp(-x * x)
close(difference(x, x[0]), expected)
out = np.empty_like(x)
assert difference(x, 2.5, out=out) is out
close(out, 2 * abs(x - 2.5) / (abs(x) + 2.5) + np.exp(-x * x))
own = kjit.array(x, device="cpu")
got = difference(own, own[0])
assert isinstance(got, kjit.Array)
close(got.to_host(), expected)
close(kjit.reduce(own, "add", axis=1).to_host(), x.sum(1))
total = kjit.reduce(own, "add")
assert total.item() == float(total) == total.to_host() and type(total.item()) is float, total
assert int(kjit.array(np.array([[7]], "i8"))) == 7 and kjit.array(np.array(3 - 1j)).item() == 3 - 1j
assert [bool(kjit.array(np.array(v))) for v in (0.0, 0.5, True)] == [False, True, True]
for convert in (float, int, lambda array: array.item()):
    for array in (kjit.zeros(2, "f32"), kjit.empty((3, 0), "f32")):
        try:
            convert(array)
            raise AssertionError("an array of several elements is a number")
        except (ValueError, TypeError) as error:
            assert f"an array of {array.size} elements " in str(error) and isinstance(error, TypeError) is (convert in (float, int)), error

fixed = np.zeros(())
fixed.flags.writeable = False
for bad in (lambda: kjit.reduce(x, "nothing"), lambda: kjit.reduce(x, axis=7), lambda: kjit.reduce(x, 3), lambda: kjit.reduce("text"), lambda: kjit.reduce(x, out=fixed),
            lambda: kjit.reduce(x, out=np.zeros(7)), lambda: kjit.reduce(x, lambda a: a), lambda: kjit.reduce(x, lambda a, b: (a, b)), lambda: kjit.scan(3), lambda: kjit.sort(x, "less"),
            lambda: kjit.sort(x, axis=(0, 1)), lambda: difference(x), lambda: difference(x, np.zeros(7)), lambda: difference(), lambda: kjit.vectorize(3), lambda: kjit.reduce(x, axis="a"),
            lambda: kjit.reduce(x, lambda a, b: [a]), lambda: kjit.reduce(x[:0]), lambda: kjit.reduce(x[:0], "max"), lambda: kjit.reduce(x, kjit.func(lambda a, b: a + b, checks="all"))):
    try:
        assert bad() == 0  # the sum of no elements
    except (kjit.Error, TypeError) as error:
        assert str(error)

for bad in (lambda: kjit.nonzero(x, out=np.zeros(7, "i8")), lambda: kjit.unique_consecutive(x[0], out=(np.zeros(7),))):
    try:
        bad()
        raise AssertionError("results without a place")
    except TypeError as error:
        assert "out must be a tuple of 2 arrays" in str(error), error

# ---- several results, segments, keys ----

equal = np.testing.assert_array_equal
low, high, middle = kjit.reduce_several(x, ("min", "max", "mean"), axis=0)
equal(low, x.min(0)), equal(high, x.max(0)), close(middle, x.mean(0))
assert kjit.reduce(x, "argmax") == x.argmax() and kjit.reduce(x > 0, "count_nonzero") == (x > 0).sum()
close(kjit.reduce(x.astype("f4"), accumulator="f64", out=np.zeros((), "f4")), x.sum(), rtol=1e-5, atol=1e-4)  # a sum near 0

v = random.standard_normal(300)
offsets = np.sort(random.integers(0, 301, 12)).astype(np.int32)
parts = [v[a:b] for a, b in zip(offsets, offsets[1:])]
close(kjit.reduce_segments(v, offsets), [p.sum() for p in parts], atol=1e-12)
equal(kjit.reduce_segments(v, offsets, lambda a, b: max(a, b), initial=-9.0), [max([*p, -9.0]) for p in parts])
scanned = v.copy()
kjit.scan_segments(v, offsets, out=scanned)
close(scanned, np.concatenate([v[: offsets[0]], *map(np.cumsum, parts), v[offsets[-1] :]]))

keys = random.integers(0, 4, 300)
starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
who, sums = kjit.reduce_by_key(keys, v)
equal(who, keys[starts]), close(sums, np.add.reduceat(v, starts), atol=1e-12)
close(kjit.scan_by_key(keys, v), np.concatenate([np.cumsum(p) for p in np.split(v, starts[1:])]))
pairs_of = kjit.reduce_by_key(keys, v, "max", lambda a, b: a // 2 == b // 2)
starts = np.flatnonzero(np.r_[True, keys[1:] // 2 != keys[:-1] // 2])
equal(pairs_of[0], keys[starts]), equal(pairs_of[1], np.maximum.reduceat(v, starts))
out = np.zeros(300, keys.dtype), np.zeros(300), np.zeros((), np.int64)
assert kjit.reduce_by_key(keys, v, out=out) is out and out[2] == len(who)

# ---- updates, search, histograms ----

counts, places = np.zeros(7), random.integers(-7, 7, 100)
expected = counts.copy()
np.add.at(expected, places, v[:100])
assert kjit.update_at(counts, places, v[:100]) is counts
close(counts, expected)
np.maximum.at(expected, places, 0.1)
close(kjit.update_at(counts, places, 0.1, lambda a, b: max(a, b)), expected)
line = np.sort(v)
equal(kjit.search_sorted(line, x), np.searchsorted(line, x))
equal(kjit.search_sorted(n[np.argsort(-n)], n, lambda a, b: a > b, right=True), np.searchsorted(np.sort(-n), -n, "right"))
equal(kjit.bincount(keys, 5), np.bincount(keys, minlength=5))
close(kjit.bincount(keys, 5, v), np.bincount(keys, v, 5))
equal(kjit.histogram(v, 9, -2, 2), np.histogram(v, 9, (-2, 2))[0])
edges = np.sort(random.standard_normal(6))
close(kjit.histogram(v, edges, weights=v * v), np.histogram(v, edges, weights=v * v)[0])

# ---- orders ----

order = np.argsort(n, kind="stable")
sorted_n, moved = kjit.sort_pairs(n, np.arange(500.0))
equal(sorted_n, n[order]), equal(moved, order)
equal(kjit.merge(np.sort(n), np.sort(n[:100])), np.sort(np.r_[n, n[:100]]))
values, where = kjit.top_k(x, 4, descending=True)
equal(values, -np.sort(-x, -1)[:, :4]), equal(np.take_along_axis(x, where, -1), values)
best, where = kjit.scan_with_index(x, "min", axis=0)
equal(best, np.minimum.accumulate(x, axis=0)), equal(np.take_along_axis(x, where, 0), best)
equal(kjit.scan_with_index(np.array([1, 5, 5, 2], "i4"))[1], [0, 1, 1, 1])
indices = np.zeros(x.shape, "i4")
assert kjit.scan_with_index(x, out=(None, indices))[0] is None
equal(indices, kjit.scan_with_index(x)[1])
only = np.zeros((20, 3))
assert kjit.top_k(x, 3, out=(only, None))[0] is only
equal(only, np.sort(x, -1)[:, :3])
inside = slice(offsets[0], offsets[-1])
equal(kjit.sort_segments(v, offsets)[inside], np.concatenate([np.sort(p) for p in parts]))
sorted_v, moved = kjit.sort_segments(v, offsets, np.arange(300), descending=True)
equal(sorted_v[inside], np.concatenate([-np.sort(-p) for p in parts])), equal(v[moved], sorted_v)

# ---- selections and sets ----

equal(kjit.select_where(x, x > 0.5), x[x > 0.5])
equal(kjit.select_where(v, kjit.computed(lambda i, v: v[i] > v[0], 300, v)), v[v > v[0]])
large, small = kjit.partition(v, v > 0)
equal(large, v[v > 0]), equal(small, v[v <= 0])
for got, number in zip(kjit.partition_three(v, keys % 3), range(3)):
    equal(got, v[keys % 3 == number])
equal(kjit.nonzero(n % 3), np.flatnonzero(n % 3))
equal(kjit.unique_consecutive(np.sort(n)), np.unique(n))
firsts, at = kjit.unique_consecutive(np.sort(n), np.arange(500))
equal(at, np.unique(np.sort(n), return_index=True)[1])
runs, lengths, begins = kjit.run_lengths(np.sort(n))
equal(lengths, np.unique(n, return_counts=True)[1]), equal(begins, at)


def check_unique():
    """sorts with unique elements, as NumPy's unique returns them."""
    some_numbers = np.random.default_rng(7)
    gaps = np.where(some_numbers.random(200) < 0.3, np.nan, some_numbers.integers(-3, 3, 200) * 0.5).astype("f4")
    for some in (n, some_numbers.integers(0, 9, (4, 30), np.uint8), n > 7, gaps, np.zeros(0, "i4"), np.array(3.5), [3, 1, 3, 2]):
        equal(kjit.unique(some), np.unique(some))
        different, first_at, inverse, counts = kjit.unique(some, True, True, True)
        for got, want in zip((different, first_at, inverse.ravel(), counts), map(np.ravel, np.unique(some, True, True, True))):
            assert got.shape == want.shape, some
            equal(got, want)
        assert inverse.shape == np.shape(some)  # as from NumPy 2 on
    equal(kjit.unique(gaps, equal_nan=False), np.unique(gaps, equal_nan=False))
    assert isinstance(kjit.unique(kjit.array(n)), kjit.Array) and [r.shape for r in kjit.unique(kjit.array(n.reshape(2, -1)), return_inverse=True)][1] == (2, 250)
    for bad in (lambda: kjit.unique(n, plan=True), lambda: kjit.unique(n, out=n), lambda: kjit.unique(3)):
        try:
            bad()
        except TypeError:
            pass
        else:
            raise AssertionError("no TypeError")


check_unique()
out = np.zeros(300), np.zeros((), np.int32)
assert kjit.select_where(v, v > 0, out=out) is out and out[1] == (v > 0).sum()
one, two = np.unique(n[:60]), np.unique(n[40:130])
for name, numpy_name in [("union", "union1d"), ("intersection", "intersect1d"), ("difference", "setdiff1d"), ("symmetric_difference", "setxor1d")]:
    equal(getattr(kjit, f"set_{name}")(one, two), getattr(np, numpy_name)(one, two))
    falling = getattr(kjit, f"set_{name}")(one[::-1], two[::-1], descending=True)
    equal(falling, getattr(np, numpy_name)(one, two)[::-1])

# ---- maps ----

whole, rest = kjit.map(lambda a, b: (a // b, a % b), n, n % 7 + 1)
equal(whole, n // (n % 7 + 1)), equal(rest, n % (n % 7 + 1))
kept = x.copy()
kjit.map(lambda a: -a, x, out=kept, where=x > 0)
equal(kept, -abs(x))


@kjit.vectorize
def larger(a, b):
    return a if a > b else b


equal(larger.outer(x[0], v), np.maximum.outer(x[0], v))
equal(larger.reduce(x), x.max(0)), equal(larger.accumulate(x, axis=1), np.maximum.accumulate(x, 1))
raised = counts.copy()
larger.at(raised, places, v[:100])
np.maximum.at(counts, places, v[:100])
equal(raised, counts)


@kjit.guvectorize("(m,k),(k)->(m)")
def product(a, b, r):
    for i in range(len(r)):
        r[i] = 0
        for j in range(len(b)):
            r[i] += a[i, j] * b[j]


stack = random.standard_normal((5, 4, 3))
close(product(stack, stack[:, 0]), np.einsum("bij,bj->bi", stack, stack[:, 0]))


@kjit.vectorize(["int64(int64, int64)", "float64(float64, float64)"], target="parallel")
def mixed(a, b):
    return a * b + 1


close(mixed(x, 2), x * 2 + 1)
assert mixed(n, n).dtype == np.int64 and mixed(np.float32(2), np.float32(0.5)) == 2.0

# ---- products and pairs ----

a, b, c = (random.standard_normal(s) for s in ((9, 13), (13, 7), (7, 5)))
close(kjit.matmul(a, b), a @ b)
close(kjit.matmul(stack, stack.transpose(0, 2, 1)), stack @ stack.transpose(0, 2, 1))
close(kjit.einsum("ij,jk,kl->il", a, b, c), a @ b @ c)
close(kjit.einsum("ii->i", a[:, :9]), np.diagonal(a[:, :9]))


def add_bias(i, j, value, r, bias):
    r[i, j] = max(value + bias[j], 0.0)


fused = np.zeros((9, 7))
kjit.matmul(a, b, out=kjit.computed(add_bias, (9, 7), fused, b[0]))
close(fused, np.maximum(a @ b + b[0], 0), atol=1e-12)
p, q = random.standard_normal((40, 3)), random.standard_normal((60, 3))


def squared(u, w, i, j, s):
    total = 0.0
    for k in range(len(u)):
        total += (u[k] - w[k]) ** 2
    return s * total


d = 0.5 * ((p[:, None] - q) ** 2).sum(-1)
close(kjit.pairs(squared, p, q, "min", arguments=(0.5,)), d.min(1))
close(kjit.pairs(lambda u, w, weight, i, j: weight * abs(u - w) if i != j else 0.0, v[:50], (v[:80], v[80:160])),
      np.where(np.eye(50, 80, dtype=bool), 0, abs(v[:50, None] - v[:80]) * v[80:160]).sum(1))
both = kjit.pairs(lambda u, w, i, j, s: (kjit.exp(-s * abs(u - w)), u * w, i + j), v[:50], v[:80], arguments=(0.5,))
close(both[0], np.exp(-0.5 * abs(np.subtract.outer(v[:50], v[:80]))).sum(1)), close(both[1], v[:50] * v[:80].sum()), equal(both[2], 80 * np.arange(50) + 80 * 79 // 2)
given = np.zeros(50), np.zeros(50)
assert kjit.pairs(lambda u, w, i, j: (u - w, u + w), v[:50], v[:80], "max", out=given)[1] is given[1]
close(given[0], v[:50] - v[:80].min()), close(given[1], v[:50] + v[:80].max())
nearest, which = kjit.pairs_smallest(squared, p, q, 5, arguments=(0.5,))
close(nearest, np.sort(d, 1)[:, :5]), equal(which, np.argsort(d, 1, kind="stable")[:, :5])
close(kjit.pairs_smallest(squared, p, q, 5, arguments=(0.5,), chunk=17)[0], nearest)

# ---- sparse matrices and systems ----

entries = random.integers(0, 200, 60)
rows, columns, weights = random.integers(0, 12, 60), random.integers(0, 20, 60).astype(np.int32), random.standard_normal(60)
dense = np.zeros((12, 20))
np.add.at(dense, (rows, columns), weights)
m = kjit.csr((weights, (rows.astype(np.int32), columns)), (12, 20))
m.check(sorted=True, unique=True)
close(m.to_dense(), dense)
close(m @ x[0, :20], dense @ x[0, :20]), close(m @ x.T[:20], dense @ x.T[:20])
close(m.T.to_dense(), dense.T)
again = kjit.csr(dense)
close(again.to_dense(), dense), equal(again.data, dense[dense != 0])
data, row_of, column_of = m.to_coo()
rebuilt = np.zeros_like(dense)
rebuilt[row_of, column_of] = data
close(rebuilt, dense)
for offsets in ([1, 2, 3], [0, 2, 2], [0, 3, 3], [2, 2, 2]):  # entries that belong to no row
    loose = kjit.CSR(np.array([1.0, 2, 3]), np.array([2, 0, 1], np.int32), np.array(offsets, np.int32), (2, 3))
    data, row_of, column_of = loose.to_coo()
    equal(row_of, np.repeat([0, 1], np.diff(offsets)))
    equal(data, np.array([1.0, 2, 3])[offsets[0] : offsets[2]]), equal(column_of, np.array([2, 0, 1])[offsets[0] : offsets[2]])
    turned = loose.T.to_coo()
    equal(np.sort(turned[0]), data), equal(np.sort(turned[2]), row_of)
own = kjit.csr(m, device="cpu")
assert isinstance(own.data, kjit.Array) and isinstance(own @ kjit.array(x[0, :20], device="cpu"), kjit.Array)
close((own @ kjit.array(x[0, :20], device="cpu")).to_host(), dense @ x[0, :20])
wrong = kjit.csr((m.data, m.indices + 20, m.indptr), (12, 20), check=False)

right = random.standard_normal(12)
definite = dense @ dense.T + np.eye(12)
solved = kjit.cg(definite, right, residual_tolerance=1e-12)
close(solved.x, np.linalg.solve(definite, right), rtol=1e-6), close(solved.residual_norm, np.linalg.norm(right - definite @ solved.x), atol=1e-9)
close(kjit.cg(kjit.csr(definite), right, residual_tolerance=1e-12).x, solved.x, rtol=1e-6)
least = kjit.lsmr(m, right, damp=0.3, matrix_tolerance=1e-12, b_tolerance=1e-12, iteration_limit=200)
close(least.x, dense.T @ np.linalg.solve(dense @ dense.T + 0.09 * np.eye(12), right), rtol=1e-5, atol=1e-8)
close(kjit.lsmr(m, right, damp=0.3, matrix_tolerance=1e-12, b_tolerance=1e-12, iteration_limit=200, transposed=m.T).x, least.x)
calls = []


def multiply(result, u):
    calls.append(u.shape)
    result.copy_from(definite @ u.to_host())


assert kjit.cg(kjit.LinearOperator((12, 12), multiply), right, iteration_limit=2).status == 3 and calls[0] == (12,)
close(kjit.cg(kjit.LinearOperator((12, 12), multiply), right, residual_tolerance=1e-12).x, solved.x, rtol=1e-6)


def refuse(result, u):
    raise KeyError("not today")


try:
    kjit.cg(kjit.LinearOperator((12, 12), refuse), right)
    raise SystemExit("an operator that raises ended nothing")
except KeyError as error:
    assert error.args == ("not today",)

try:
    import scipy.sparse
except ImportError:
    print("SciPy is not here: its matrices are not handed over")
else:
    taken = kjit.csr(scipy.sparse.coo_array(dense))
    close(taken @ x[0, :20], dense @ x[0, :20])
    close(m.to_scipy().toarray(), dense)
    close(kjit.lsmr(scipy.sparse.csc_array(dense), right, damp=0.3, matrix_tolerance=1e-12, b_tolerance=1e-12, iteration_limit=200).x, least.x)

# ---- random numbers ----

u = kjit.random_uniform((100, 50), seed=2**63 + 5, device="cpu").to_host()
assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.05 and len(np.unique(u)) == u.size
half = np.zeros(2500)
equal(kjit.random_uniform(half, 2**63 + 5, offset=2500), u.ravel()[2500:])
g = kjit.random_normal(np.zeros(20000, "f4"), 3, mean=2, deviation=3)
assert abs(g.mean() - 2) < 0.15 and abs(g.std() - 3) < 0.15
assert abs(kjit.random_exponential(np.zeros(20000), 3, scale=4).mean() - 4) < 0.3
dice = kjit.random_integers(np.zeros(6000, np.uint8), 1, 1, 6)
assert (abs(np.bincount(dice, minlength=7)[1:] - 1000) < 200).all() and dice.min() == 1
shuffled = kjit.random_permutation(1000, 9, dtype="i32", device="cpu").to_host()
equal(np.sort(shuffled), np.arange(1000))
equal(kjit.random_shuffle(x[:, :4], 9), x[:, :4][kjit.random_permutation(20, 9, device="cpu").to_host()])

# ---- plans ----

source, target = kjit.array(v), kjit.empty((), "f64")
plan = kjit.reduce(source, lambda a, b: a + b, out=target, plan=True)
assert len(plan) >= 1 and plan.result is target
target.copy_from(-1)
plan.run()
close(target.to_host(), v.sum())
source.copy_from(2 * v)
stream = kjit.device().stream()
with stream.capture() as graph:
    plan.run(stream)
graph.launch()
stream.synchronize()
close(target.to_host(), 2 * v.sum())
planned = kjit.sort_pairs(np.array([3.0, 1, 2]), np.arange(3), plan=True)  # arrays to which only the graph refers
planned.run()
equal(planned.results[0], [1, 2, 3]), equal(planned.results[1], [1, 2, 0])

# a graph with an einsum of three operands and conversions of a matrix; each launch of the graph reads the current
# elements of the arrays
factors = [kjit.array(random_part) for random_part in (v[:60].reshape(6, 10), v[60:140].reshape(10, 8), v[140:156].reshape(8, 2))]
chain = kjit.einsum("ij,jk,kl->il", *factors, plan=True)
matrix = kjit.csr(m, device=kjit.device())
turned, flat, lines = matrix.transpose(plan=True), matrix.to_dense(plan=True), matrix.to_coo(plan=True)
with stream.capture() as graph:
    for each in (chain, turned, flat, lines):
        each.run(stream)
for scale in (1, 3):
    if scale > 1:
        factors[1].copy_from(scale * factors[1].to_host())
        matrix.data.copy_from(scale * matrix.data.to_host())
    graph.launch()
    stream.synchronize()
    close(chain.result.to_host(), factors[0].to_host() @ factors[1].to_host() @ factors[2].to_host())
    close(flat.result.to_host(), scale * dense)
    close(kjit.CSR(*turned.results, (20, 12)).to_dense().to_host(), scale * dense.T)
    equal(lines.result.to_host(), np.repeat(np.arange(12), np.diff(matrix.indptr.to_host())))
assert len(flat) > 2 and len(chain) == 2

# ---- what is refused, and where ----

for kind, bad in ((kjit.ArgumentError, lambda: kjit.matmul(a, a)), (kjit.TypingError, lambda: kjit.matmul(a, b.astype("f4"))), (kjit.ArgumentError, lambda: kjit.einsum("ij,jk", a)),
                  (kjit.KernelError, lambda: kjit.bincount(keys, 2)), (kjit.KernelError, lambda: kjit.update_at(counts, np.array([9]), 1.0)), (kjit.ArgumentError, lambda: wrong.check()),
                  (kjit.KernelError, lambda: kjit.reduce_segments(v, np.array([5, 3]))), (kjit.ArgumentError, lambda: kjit.top_k(v, 301)), (kjit.ArgumentError, lambda: kjit.pairs_smallest(squared, p, q, 65, arguments=(1,))),
                  (TypeError, lambda: kjit.csr((weights, columns, rows))), (TypeError, lambda: kjit.csr(dense, plan=True)), (kjit.ArgumentError, lambda: m.check(plan=True)), (TypeError, lambda: kjit.sort(v, "less")), (TypeError, lambda: kjit.sort(v, speed=3)), (kjit.ArgumentError, lambda: kjit.scan(v, out=v[:3])),
                  (kjit.TypingError, lambda: kjit.set_union(one, two.astype(float))), (kjit.ArgumentError, lambda: kjit.random_uniform(np.zeros(3), 1, 2, 1)), (kjit.TypingError, lambda: kjit.random_uniform(n, 1)),
                  (kjit.ArgumentError, lambda: kjit.reduce(n, initial=2**63)), (kjit.ArgumentError, lambda: kjit.reduce(keys.astype("u1"), "max", initial=2**40)), (kjit.ArgumentError, lambda: kjit.scan(keys.astype("u4"), initial=np.int64(-1))),
                  (TypeError, lambda: kjit.map(lambda u: u, x, dtype="f4")), (TypeError, lambda: kjit.map(lambda u: u, x, where=x > 0)), (kjit.ArgumentError, lambda: product(stack, x)), (kjit.ArgumentError, lambda: kjit.reduce(x, plan=True, axis=9)),
                  (kjit.UnsupportedError, lambda: kjit.einsum(",".join("a" * 11), *[v] * 11)), (TypeError, lambda: kjit.histogram(v, 5, 0)), (OverflowError, lambda: kjit.random_uniform(np.zeros(3), 2**64)),
                  (kjit.ArgumentError, lambda: kjit.cg(dense, right)), (kjit.ArgumentError, lambda: kjit.cg(definite, right, residual_tolerance=-1.0)), (ValueError, lambda: kjit.vectorize(["float64(float64)"], target="tpu")),
                  (OverflowError, lambda: kjit.pairs(squared, p, q, arguments=(1,), chunk=-1)), (OverflowError, lambda: kjit.pairs(squared, p, q, arguments=(1,), chunk=2**64)), (OverflowError, lambda: kjit.sort(n, begin_bit=2**32 + 3)),
                  (OverflowError, lambda: kjit.sort(n, end_bit=2**32)), (TypeError, lambda: kjit.sort(n, end_bit=3.5)), (TypeError, lambda: kjit.csr(v)), (TypeError, lambda: kjit.cg(v, v)), (TypeError, lambda: kjit.lsmr(kjit.LinearOperator((3,), None), v))):
    try:
        bad()
    except kind as error:
        assert str(error)
    else:
        raise AssertionError(f"not refused: line {bad.__code__.co_firstlineno}, {kind}")
