# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Programs for which other libraries returned wrong derivatives without an error, according to their issue trackers:
values that a loop overwrites, early exits from loops, nested loops, updates in place, slopes of branches that do not
run, second derivatives, and f16. The expected derivatives are written by hand."""

import kjit
import numpy as np

near = np.testing.assert_allclose


def product(x):
    """Warp does not keep the values of a loop of run-time length: it returned [288, 48, 4] for [2, 3, 4]."""
    p = 1.0
    for i in range(16):
        if i >= len(x):
            break
        p = p * x[i]
    return p


near(kjit.grad(product)(np.array([2.0, 3, 4])), [12, 8, 6])


def square_before_loop(x, n):
    """The square before the loop was lost (Warp)."""
    s = x * x
    for i in range(8):
        if i >= n:
            break
        s = s * x + 1.0
    return s


near(kjit.grad(square_before_loop)(1.5, 3), 5 * 1.5**4 + 2 * 1.5 + 1)


def nested(x, n):
    """The derivative of nested loops depended on how they were compiled (Slang 13000)."""
    s = x
    for i in range(3):
        t = s
        for j in range(4):
            if j > n - i:
                break
            t = t * x
        s = t + x * s
    return s


def nested_by_hand(x, n):
    s, ds = x, 1.0
    for i in range(3):
        t, dt = s, ds
        for j in range(4):
            if j > n - i:
                break
            t, dt = t * x, dt * x + t
        s, ds = t + x * s, dt + s + x * ds
    return ds


for n in range(5):
    near(kjit.grad(nested)(1.3, n), nested_by_hand(1.3, n), rtol=1e-13)


def leaves(x, y):
    """`continue`, `break` and `return` in a loop (Warp 1552, Taichi 1074)."""
    s = x
    for i in range(10):
        if i == 1:
            continue
        if s > 40.0:
            return s * y
        if i == 4:
            break
        s = s * x
    return s - y


near(kjit.grad(leaves)(2.0, 3.0), [4 * 2.0**3, -1])  # s = x^4 at the break
near(kjit.grad(leaves)(4.0, 3.0), [3 * 3 * 4.0**2, 4.0**3])  # s = x^3 at the return


@kjit.jit
def add_in_place(v, x):
    for i in kjit.grid_range(len(v)):
        v[i] = v[i] + x[i]


# The derivative with respect to x doubled with each update in place (Warp 1697).
v, x, dv, dx = np.ones(4), np.arange(4.0), np.arange(1.0, 5), np.zeros(4)
add_in_place(v, x)
kjit.adjoint(add_in_place)(v, x, dv, dx)
near(dx, [1, 2, 3, 4])
near(dv, [1, 2, 3, 4])


def guarded(x):
    """The slope of the branch that does not run gave NaN (JAX's where; KeOps 221)."""
    return kjit.sqrt(x) if x > 0 else 0.0 * x


assert kjit.grad(guarded)(0.0) == 0 and kjit.grad(guarded)(4.0) == 0.25
near(kjit.map(kjit.grad(guarded), np.array([0.0, 4.0])), [0, 0.25])

# The second derivative treated a gradient in a kernel as a constant (Warp).
near(kjit.grad(kjit.grad(lambda x: kjit.sin(x) * x * x))(0.7), (2 - 0.49) * np.sin(0.7) + 4 * 0.7 * np.cos(0.7), rtol=1e-13)


def gauss(u, w, i, j):
    return kjit.exp(-((u - w) ** 2))


# The gradient with respect to f16 was dropped (KeOps 214).
u = np.array([0.0, 1, 2], np.float16)
(by_u,) = kjit.pairs_gradient(gauss, u, u, cotangents=np.ones(3, np.float16), by=0)
d = u[:, None].astype(float) - u
assert by_u.dtype == np.float16
near(by_u, (-2 * d * np.exp(-d * d)).sum(1), rtol=1e-3, atol=1e-6)
print("derivative_traps: good")
