# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Functions of <math.h> over contiguous arrays give equal elements equal results, wherever the elements stand: vectorized loops compute
their last elements by the same function of libmvec."""
import kjit
import kjit.numpy as knp
import numpy as np
import seeds

ONE = (
    "cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh"
).split()
TWO = ("power", "arctan2", "hypot")
COPIES = 19
generator = seeds.fresh_generator()


def check(name, results):
    rows = np.asarray(results).reshape(-1, COPIES)
    differ = (rows != rows[:, :1]) & ~(np.isnan(rows) & np.isnan(rows[:, :1]))
    assert not differ.any(), (name, rows.dtype, rows[differ.any(1)])


for dtype in (np.float32, np.float64):
    x, y = (np.repeat(generator.uniform(0.01, 0.99, 37).astype(dtype), COPIES) for _ in range(2))
    for name in ONE:
        check(name, getattr(knp, name)(knp.asarray(x)))
    for name in TWO:
        check(name, getattr(knp, name)(knp.asarray(x), knp.asarray(y)))
    special = np.repeat(np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e30, 1e-40, -2], dtype), COPIES)
    for name in ONE:
        check(name, getattr(knp, name)(knp.asarray(special)))
    check("a formula", knp.sin(knp.asarray(x)) * knp.cos(knp.asarray(y)) + knp.exp(knp.asarray(x)))


@kjit.jit
def two_loops(r, s, x):
    for i in kjit.grid_range(len(x)):
        r[i] = np.tan(x[i])
        s[i] = np.tan(x[i]) + np.exp(np.float32(x[i]))


x = np.repeat(generator.uniform(0, 1, 37), COPIES)
r, s = np.empty_like(x), np.empty_like(x)
two_loops(r, s, x)
check("two_loops", r)
check("two_loops", s)
