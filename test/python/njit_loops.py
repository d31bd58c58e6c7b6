# RUN: %kjit-python %s
"""prange loops: reductions, values after the loop, and arrays that iterations create, compared with the same functions
in Python."""
import warnings

import kjit
import numpy as np
import seeds
from kjit import njit, prange

warnings.simplefilter("error")  # the interpreter runs nothing in this test
random = seeds.fresh_generator()
x = random.standard_normal(1001)
k = random.integers(-50, 50, 301)
m = random.standard_normal((37, 5))


def check(function, *arguments, parallel=True, exact=False):
    mine, others = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    expected, result = function(*others), njit(parallel=parallel)(function)(*mine)
    both = [*zip(mine, others)]
    if expected is None:
        assert result is None
    else:
        both += [*zip(result, expected, strict=True)] if isinstance(expected, tuple) else [(result, expected)]
    for a, b in both:
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9, err_msg=function.__name__)
        assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind, (function.__name__, a, b)


# ---- variables that only some iterations of a serial loop assign, next to NumPy calls ----


def assigned_later(a):
    s = np.zeros(3)
    for i in range(len(a)):
        if i > 1:
            v = a[i]
        if i > 2:
            s[0] += v
    return s


def changed_later(n):
    s, i = np.zeros(3), 0
    while i < n:
        if i == 1:
            v, w = 2.5, i
        elif i > 1:
            s[0] += v
            s[1] += w
            v, w = v + 1, w * 2
        i += 1
    return s


def made_later(n):
    s = np.zeros(3)
    for i in range(n):
        if i >= 1:
            w = np.ones(3)
        if i >= 1:
            s[1] += i * w[1]
    return s


def read_behind(a):
    s = np.zeros(3)
    for j in range(3):
        for i in range(len(a)):
            if a[i] > j:
                large = a[i]
        s[j] = large
    return s


for _ in range(3):
    check(assigned_later, x, parallel=False)
    check(changed_later, 7, parallel=False)
    check(made_later, 5, parallel=False)
    check(read_behind, np.append(x, 9.0), parallel=False)

# ---- reductions in all their forms ----


def extremes(a):
    most, least, other, three = -1.0, 1.0, 0.0, -3.0
    for i in prange(len(a)):
        if a[i] > most:
            most = a[i]
        if least >= a[i]:
            least = a[i]
        other = -a[i] if -a[i] > other else other
        three = max(three, a[i], 0.25)
    return most, least, other, three


def smallest(a):
    last = 5
    for i in prange(len(a)):
        last = last if last < a[i] else a[i]
    return last


def chains(a):
    total, product = 1.5, 2.0
    for i in prange(len(a)):
        total = total + a[i] - 0.5
        product = (1 + a[i] / 5000) * product
        if a[i] > 0:
            total -= 1
    return total, product


def bits(a):
    every, some, odd, n = True, 0, 0, 100
    for i in prange(len(a)):
        every &= a[i] > -100
        some |= a[i]
        odd ^= a[i]
        n //= 1 if a[i] < 1000 else 2
    return every, some, odd, n


def quotient(a):
    q = 4096.0
    for i in prange(len(a)):
        q /= 1 + a[i] * 1e-3
    return q


check(extremes, x)
check(extremes, np.where(x > 1, np.nan, x))
check(smallest, k, exact=True)
check(chains, x)
check(quotient, x)


def without_quotient(a):
    every, some, odd = True, 0, 0
    for i in prange(len(a)):
        every &= a[i] > -100
        some |= a[i]
        odd ^= a[i]
    return every, some, odd


check(without_quotient, k, exact=True)


def array_sums(a, s):
    t = s
    low = np.ones((2, 2))
    n = 0
    for i in prange(len(a)):
        s += a[i]
        low -= i
        n += 1
    return s, t, low, n


def array_products(a):
    p = np.ones(a.shape[1])
    for i in prange(1, a.shape[0], 3):
        p *= a[i]
    return p


check(array_sums, m, np.ones(5))
check(array_sums, m.astype(np.float32), np.ones(5))
check(array_products, m)

# ---- values after a parallel loop: the values that a sequential loop would leave ----


def last_values(a):
    for i in prange(3, len(a), 4):
        t = a[i] * 2
        if t > 0:
            continue
        a[i] = t + 1
    return t, i


def found(a, wanted):
    at, is_there = -1, False
    for i in prange(len(a)):
        if a[i] == wanted:
            at = i
            is_there = True
    return at, is_there


def none(a):
    t = 3.5
    for i in prange(0):
        t = a[i]
    return t


check(last_values, x, exact=True)
for wanted in (k[17], k[-1], 1000):
    check(found, k, wanted, exact=True)
check(none, x)

# ---- variables of an iteration ----


def complementary(a, p):
    for i in prange(len(a)):
        if p:
            h = a[i]
        if not p:
            h = 2.0
        a[i] = h + 1


def nested(n):
    s = 0
    for i in prange(n):
        for j in prange(i, -1, -2):
            s += i * j
    return s


check(complementary, x, True)
check(complementary, x, False)
check(nested, 20, exact=True)

# ---- arrays that iterations create ----
SIZE = 3


def by_condition(r):
    for i in prange(len(r)):
        if i % 3:
            w = np.zeros(5)
        else:
            w = np.ones(7)
        r[i] = w.sum() + len(w)


def one_thread(a, r):
    for i in range(len(r)):
        w = np.zeros(a.shape[1])
        for j in range(len(w)):
            w[j] += a[i, j]
        r[i] = w.sum()


def products(a, b, r):
    for i in prange(len(r)):
        r[i] = np.dot(a[i], b) + (a[i] @ a[i])


def made(a, r):
    n = a.shape[1]
    s = 0.0
    for i in prange(len(r)):
        w = np.empty((n, 2), np.float32)
        u = np.ones_like(a[0])
        v = np.full(SIZE, 2.5)
        hits = np.zeros(2 * SIZE, dtype=np.int64)
        for j in range(n):
            w[j, 1] = a[i, j]
            u[j] += j
            v[j % SIZE] -= a[i, j]
            hits[(i + j) % len(hits)] += 1
        r[i] = w[n - 1, 1] + u.sum() + v.max() + hits[i % 6]
        s += v[0]
    return s


check(made, m, np.zeros(37))
check(by_condition, np.zeros(40), exact=True)
check(one_thread, m, np.zeros(37))
check(one_thread, m, np.zeros(37), parallel=False)
check(products, m, x[:5], np.zeros(37))


def scaled(v):
    w = np.full(SIZE, 1.5)
    for j in range(SIZE):
        w[j] *= v + j
    return w[0] * w[2]


def called(a):
    s = 0.0
    for i in prange(len(a)):
        s += scaled_njit(a[i])
    return s


scaled_njit = scaled
expected = called(x)
scaled_njit = njit(scaled)
np.testing.assert_allclose(njit(parallel=True)(called)(x), expected, rtol=1e-9)
assert scaled_njit(2.0) == scaled(2.0)


# ---- rejected code, with its line ----


def refused(kind, text, function, *arguments):
    try:
        njit(parallel=True)(function)(*arguments)
    except kind as error:
        assert text in str(error), (text, error)
        return error
    raise AssertionError(f"{function.__name__} was not refused")


def carried(a):
    s = 0.0
    for i in prange(len(a)):
        if a[i] > 3:
            s = a[i]
        a[i] = s


def unset(a):
    for i in prange(len(a)):
        if a[i] > 3:
            h = 1.0
        a[i] = h


def never(a):
    for i in prange(len(a)):
        if a[i] > 1e9:
            t = 1.0
    return t


def which(a):
    s, at = -1.0, 0
    for i in prange(len(a)):
        if a[i] > s:
            s = a[i]
            at = i
    return s, at


def sized(a):
    for i in prange(len(a)):
        w = np.zeros(i + 1)
        a[i] = len(w)


for function in (carried, which):
    assert refused(kjit.SourceError, "passes a value from one iteration", function, x.copy()).file == __file__
assert refused(kjit.SourceError, "the size of `w` depends on `i`", sized, x.copy()).line == sized.__code__.co_firstlineno + 2
refused(kjit.SourceError, "`n` passes a value from one iteration", bits, k)
refused(UnboundLocalError, "`h` is read in an iteration", unset, x.copy())
refused(UnboundLocalError, "no iteration assigned it", never, x)
