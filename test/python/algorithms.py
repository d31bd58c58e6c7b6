# RUN: %kjit-python %s
"""Reductions, scans, sorts and maps with functions of Python, beside NumPy."""
import math

import kjit
import numpy as np

random = np.random.default_rng()
x = random.standard_normal((20, 30))
n = random.integers(0, 100, 500).astype(np.int32)
close = np.testing.assert_allclose

close(kjit.reduce(x), x.sum())
close(kjit.reduce(x, "max", axis=0), x.max(0))
close(kjit.reduce(x, lambda a, b: min(a, b), axis=(0, 1)), x.min())
close(kjit.reduce(x[:, ::2], lambda a, b: a + b, axis=-1, initial=5), x[:, ::2].sum(-1) + 5)
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

fixed = np.zeros(())
fixed.flags.writeable = False
for bad in (lambda: kjit.reduce(x, "nothing"), lambda: kjit.reduce(x, axis=7), lambda: kjit.reduce(x, 3), lambda: kjit.reduce("text"), lambda: kjit.reduce(x, out=fixed),
            lambda: kjit.reduce(x, out=np.zeros(7)), lambda: kjit.reduce(x, lambda a: a), lambda: kjit.reduce(x, lambda a, b: (a, b)), lambda: kjit.scan(3), lambda: kjit.sort(x, "less"),
            lambda: kjit.sort(x, axis=(0, 1)), lambda: difference(x), lambda: difference(x, np.zeros(7)), lambda: difference(), lambda: kjit.vectorize(3), lambda: kjit.reduce(x, axis="a"),
            lambda: kjit.reduce(x, lambda a, b: [a]), lambda: kjit.reduce(x[:0]), lambda: kjit.reduce(x[:0], "max"), lambda: kjit.reduce(x, kjit.func(lambda a, b: a + b, checks="all"))):
    try:
        assert bad() == 0  # the sum of nothing
    except (kjit.Error, TypeError) as error:
        assert str(error)
