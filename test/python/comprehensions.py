# REQUIRES: numba
# RUN: %numba-python %s
# ruff: noqa: B020, C416, C417, C419
"""Comprehensions whose items a call or a loop consumes, map and filter, and lists that are only read: as numba.njit runs them, and
as Python runs the forms that Numba rejects (generator expressions, any and all). Kernels run the same functions."""
import math
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np
from kjit import cuda, njit, prange

SCALE = 3


def sums(a, n):
    return sum([v * v for v in a]), sum([i * n for i in range(n) if i % 2]), sum([v for v in a], 10), sum([1.5 for v in a], start=0.5)


def extrema(a, n):
    return max([abs(v - n) for v in a]), min([v for v in a if v > 1]), len([v for v in a if v > n]), max([a[0], n, 3]), sum([a[1], n])


def mixed_types(a, n):
    return max([i * 0.5 if i > 2 else i for i in range(n)]), sum([v > 1 for v in a])


def inner_scopes(a, n):
    v = 100.0
    return sum([sum([v * SCALE for v in a[: int(v)]]) for v in a]) + v


def bump(a):
    a[0] += 1
    return a[0]


def order(a, n):
    return step(a) * 100 + sum([step(a) for i in range(3)]) + step(a) * 1000


def choices(a, n):
    return sum([v for v in a]) if n > 2 else max([v for v in a]), n > 3 and max([v / n for v in a]) > 0.1


def repeated(a, n):
    count = 0
    while sum([v for v in a]) < 50 and count < 100:
        a[0] += 3
        count += 1
    return count


def indices(a, n):
    a[min([i for i in range(2, n)])] = sum([v for v in a])
    a[max([0, 1])] += sum([1.0 for v in a])
    return a[2], a[1]


def loops(a, n):
    s = 0.0
    for x in [v * v for v in a if v > 0]:
        if x > 100:
            break
        s += x
    else:
        s += 1000
    for i, x in enumerate([v * 2 for v in a]):
        s += i * x
    for y, x in zip(a, [v * n for v in a]):
        s += y * x
    for i, j in [(i, i * j) for i in range(n) for j in range(i)]:
        s += i * j
    return s, x


def maps(a, n):
    s = 0.0
    for v in map(square, a):
        s += v
    for v in filter(lambda x: x > 2, a):
        s = s * 2 + v
    for v in filter(None, a):
        s += 1
    for i, v in enumerate(map(lambda x, y: x * y + SCALE, a, a)):
        if i == 1:
            continue
        s += i * v
    for pair in zip(map(lambda x: x * 2, a), a):
        s += pair[0] * pair[1]
    for i, v in enumerate(map(square, map(lambda x: x + 1, a))):
        s = s / 2 + i * v
    return s


def pythons(a, n):
    """Numba rejects these forms."""
    s = sum(v * w for v in a for w in a if v > w) + max(v * 2 for v in a) + sum(map(lambda x: x * n, a))
    for i, (v, w) in enumerate(zip((v + 1 for v in (w * 10 for w in a)), map(lambda x, y: x - y, a, map(lambda x: x * 2, a)))):
        s = s * 3 + i + v * w
    s += sum([y for v in a if (y := v * 2) > 2]) + sum(map(lambda x: x * n, filter(lambda x: x > 1, a)))
    return s, any(v > 2 for v in a), all(v > 2 for v in a), any([v > n for v in a]), all([v < 50 for v in a])


def same(got, want):
    for g, w in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert type(g) is type(w) and math.isclose(g, w, rel_tol=1e-13) or g != g and w != w, (got, want)


def outcome(compiled, function, a):
    """Returns the result and the changed array. The same compiler compiles the called functions."""
    global step, square
    step, square = compiled(bump), compiled(plain_square)
    return compiled(function)(a, 4), a


def plain_square(x):
    return x * x


arrays = [np.arange(5.0), np.arange(5), np.array([2.5, 1.5, 7.0], np.float32), np.arange(4, dtype=np.uint8)]
for function in sums, extrema, mixed_types, inner_scopes, order, choices, repeated, indices, loops, maps:
    for a in arrays:
        got, want = outcome(njit, function, a.copy()), outcome(numba.njit, function, a.copy())
        same(got[0], want[0])
        assert (got[1] == want[1]).all(), (function, a)
got, want = njit(pythons)(arrays[0], 4), pythons(arrays[0], 4)
same(got, tuple(getattr(value, "item", lambda: value)() for value in want))

# any and all stop at the deciding item, also if a comprehension has several loops.
pairs = np.array([[1, 2], [0, 3]])
for function in (
    lambda x: any(10 // v > 3 for row in x for v in row),
    lambda x: all(10 // v > 30 for v in (w for row in x for w in row)),
    lambda x: any(map(lambda v: 10 // v > 3, (w for row in x if row[1] for w in row))),
):
    assert njit(function)(pairs) == function(pairs)

# A NaN in first position stays, as in Numba. An empty sequence raises an error.
for a in (np.array([np.nan, 1.0]), np.array([1.0, np.nan, 2.0, 0.5])):
    for function in (lambda a: max([v for v in a]), lambda a: min([v for v in a])):
        same(njit(function)(a), numba.njit(function)(a))
try:
    njit(lambda a: max([v for v in a]))(np.zeros(0))
    raise SystemExit("no error")
except ValueError as error:
    assert error.args == ("max() arg is an empty sequence",), error.args


# ---- a list is complete before the loop body changes the arrays from which it is made ----


def changes(a):
    for x in [v * 2 for v in a]:
        a[0] += x
    return a[0]


def changes_by_name(a):
    s = 0.0
    b = a[1:]
    for x in [v * 2 for v in a]:
        b += 1
        s += x
    return s


for function in changes, changes_by_name:
    try:
        print(njit(function)(np.arange(3.0)))
        raise SystemExit("no error")
    except kjit.SourceError as error:
        assert "list" in str(error) or "kjit.local" in str(error), error


# ---- a break leaves one loop, and zip and enumerate count filtered items; such loops are errors ----


def leaves(x):
    s = 0
    for v in filter(lambda v: v >= 0, (w for row in x for w in row)):
        if v > 1:
            break
        s += v
    return s


def has_else(x):
    s = 0
    for v in map(lambda v: v + 1, (w for row in x for w in row)):
        s += v
    else:
        s += 100
    return s


def counts(x):
    s = 0
    for i, v in enumerate(v for v in (w for w in x[0] if w > 1)):
        s += i * v
    return s


def zips(x):
    s = 0
    for v, w in zip(map(lambda v: v + 1, (w for w in x[0] if w > 1)), x[1]):
        s += v * w
    return s


def zips_one_of_two(x):
    return sum(v * w for v, w in zip(map(lambda v: v + 1, x[0]), (w for w in x[1] if w > 1)))


for function in leaves, has_else, counts, zips, zips_one_of_two:
    try:
        print(function, njit(function)(pairs))
        raise SystemExit("no error")
    except kjit.SourceError as error:
        assert "generator" in str(error), error


# ---- lists of literal numbers that a function only reads; all items have one type ----


def weights(a, n):
    w = [0.25, 1, 0.25]
    s = 0.0
    offsets = [-1, 0, 1]
    for i in range(1, len(a) - 1):
        for k in offsets:
            s += w[k + 1] * a[i + k]
    for i, x in enumerate(offsets):
        s += i * x * n
    return s, n in offsets, w[1], w[-1], max(w), len(w), sum(offsets), offsets[n - 2]


def read_in_closure(a, n):
    numbers = [1, 2.5, 4]

    def at(i):
        return numbers[i]

    return at(0) + at(n - 2), sum([x * n for x in numbers])


for function in weights, read_in_closure:
    for a in arrays:
        same(outcome(njit, function, a.copy())[0], outcome(numba.njit, function, a.copy())[0])


def changed_by_method(n):
    numbers = [1, 2]
    numbers.append(n)
    return numbers[2]


def changed_by_name(n):
    numbers = [1, 2]
    other = numbers
    other[0] = n
    return numbers[0]


def changed_item(n):
    numbers = [1, 2]
    numbers[0] += n
    return numbers[0]


def changed_in_function(n):
    numbers = [1, 2]
    changed_item(numbers)
    return numbers[0]


for function in changed_by_method, changed_by_name, changed_item, changed_in_function:
    try:
        print(function, njit(function)(3))
        raise SystemExit("no error")
    except kjit.SourceError as error:
        assert "lists" in str(error) and error.line == function.__code__.co_firstlineno + 1, error


# ---- functions that make arrays, loops over prange, kernels ----


@njit
def makes_arrays(n):
    a = np.zeros(n)
    a[:] = 3
    b = a * 2
    return max([v * w for v, w in zip(a, b)]), b


assert makes_arrays(3)[0] == 18.0 and (makes_arrays(3)[1] == 6).all()


@njit(parallel=True)
def in_parallel(a, r):
    s = 0.0
    for i in prange(len(r)):
        r[i] = min([a[i] * v for v in a]) + sum([a[i] for v in a])
        s += max([a[i] * v for v in a])
    return s


x, r = np.linspace(-2, 3, 100), np.zeros(100)
assert math.isclose(in_parallel(x, r), np.multiply.outer(x, x).max(axis=0).sum())
np.testing.assert_allclose(r, np.multiply.outer(x, x).min(axis=0) + 100 * x)


def numbers(r, x, n):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = sum([v * x[i] for v in x]) + max(abs(v - x[i]) for v in x) + min([j + i for j in range(n)])
        for a, b in zip(map(lambda v: v * 2, x), x):
            r[i] += a * b


want = [(x * v).sum() + np.abs(x - v).max() + i + (2 * x * x).sum() for i, v in enumerate(x)]
cuda.jit(numbers)[4, 32](r, x, 4)
np.testing.assert_allclose(r, want, rtol=1e-12)
assert ".entry" in cuda.compile_ptx(numbers, (cuda.float64[:], cuda.float64[:], cuda.int64), cc=(9, 0))[0]


@kjit.jit
def of_kjit(r, n):
    for i in kjit.grid_range(r.size):
        r[i] = sum([j * j for j in range(n)]) + len([j for j in range(n) if j % 3])


whole = np.zeros(4, np.int64)
of_kjit(whole, 3000)  # the sum needs 64 bits
assert (whole == sum(j * j for j in range(3000)) + 2000).all(), whole
