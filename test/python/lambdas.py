# RUN: %kjit-python %s
# RUN: env PYTHONNODEBUGRANGES=1 %kjit-python %s
"""Lambda expressions that share a line: each one is found by the columns of its instructions, and without columns, as in Python 3.10, by
what its code does."""

import numpy as np
import seeds

import kjit

random = seeds.fresh_choice()
x = np.array([random.uniform(-9, 9) for _ in range(100)])
n, m = random.randint(2, 9), random.randint(10, 99)


def check(funcs):
    for func in funcs:
        result = np.asarray(kjit.map(func, x))
        np.testing.assert_allclose(result, [func(v) for v in x], rtol=1e-12)


# Different bodies, different constants, different names, other conditions, a default in the same place.
check([lambda v: v + 1, lambda v: v - 1, lambda v: v * 3 + 1, lambda v: 1 + v * 3])
check([lambda v: v * 2.0, lambda v: v * 3.0, lambda v: v * 2, lambda w: w * 5.0])
check([lambda v: v * n, lambda v: v * m, lambda v: n * v + m, lambda v: m * v + n])
check([lambda v: 1.0 if v > 0 else 2.0, lambda v: 1.0 if v < 0 else 2.0, lambda v: 7.0, lambda v: 8.0])
# The same text twice is one expression to a kernel.
check([lambda v: v * v, lambda v: v * v])
# Lambdas in lambdas of one line.
make = lambda a: (lambda v: v + n, lambda v: v - a)  # noqa: E731
check(make(4.0))
# Lambdas that begin on one line and end on others.
check([lambda v: v + (
    2 * v), lambda v: v + (
    3 * v)])
try:
    raise ValueError
except ValueError:
    pass
finally:
    check([lambda v: v * 11, lambda v: v * 12])  # Python compiles this block twice


@kjit.njit
def inside(v, k):
    f = lambda a: a + k; g = lambda a: a - k; h = lambda a: a * k  # noqa: E702, E731
    return f(v), g(v), h(v)


assert inside(7, 3) == (10, 4, 21)
