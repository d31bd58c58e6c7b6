import math

import numpy as np
from rows import row


@row("82 test_recursion fib")
def _(r, rng):
    want = [0, 1]
    while len(want) < 21:
        want.append(want[-1] + want[-2])
    assert want[10] == 55
    r.array("fib", np.zeros(21, np.int64))
    r.launch("fibonacci", "2, 32", "fib")
    r.expect("fib", want)


@row("two functions that call each other")
def _(r, rng):
    r.array("parity", np.zeros(50, np.int32))
    r.launch("parity", "", "parity")
    r.expect("parity", 1 - np.arange(50) % 2)


@row("a result of the argument's type")
def _(r, rng):
    x = rng.integers(-3, 4, 12).astype(np.int64)
    y = rng.integers(1, 3, 12).astype(np.float32)
    r.arrays_of(powers=np.zeros(12, np.int64), wide=np.zeros(12, np.float32), px=x, py=y)
    r.launch("powers", "", "powers", "wide", "px", "py")
    r.expect("powers", x ** np.arange(12))
    r.expect("wide", y ** np.arange(12, dtype=np.float32))


@row("gcd: each thread as deep as it needs")
def _(r, rng):
    a, b = rng.integers(0, 10**12, 100), rng.integers(0, 10**12, 100)
    r.arrays_of(gcd=np.zeros(100, np.int64), ga=a, gb=b)
    r.launch("gcds", "4, 32", "gcd", "ga", "gb")
    r.expect("gcd", [math.gcd(int(x), int(y)) for x, y in zip(a, b)])


@row("quicksort in place, nothing returned")
def _(r, rng):
    x = rng.integers(-1000, 1000, (40, 77)).astype(np.int32)
    r.array("rows", x.copy())
    r.launch("sort_rows", "2, 32", "rows")
    r.expect("rows", np.sort(x, axis=1))


@row("a tree, then a barrier")
def _(r, rng):
    x = rng.integers(0, 10, 25).astype(np.float32)

    def below(k):
        return 0 if k >= 25 else x[k] + below(2 * k + 1) + below(2 * k + 2)

    r.arrays_of(tree=np.zeros(32, np.float32), nodes=x)
    r.launch("tree", "1, 32", "tree", "nodes")
    r.expect("tree", [below(31 - t) for t in range(32)])


@row("ackermann: recursion in an argument")
def _(r, rng):
    def ackermann(m, n):
        return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))

    r.array("ackermann", np.zeros((3, 4), np.int32))
    r.launch("ackermanns", "", "ackermann")
    r.expect("ackermann", [[ackermann(m, n) for n in range(4)] for m in range(3)])


@row("literals: recursion that ends while compiling")
def _(r, rng):
    r.array("choose", np.zeros(1, np.int32))
    r.launch("constant", "", "choose")
    r.expect("choose", [math.comb(6, 2)])
