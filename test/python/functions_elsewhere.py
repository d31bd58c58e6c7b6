# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=2 %kjit-python %s
"""Python calls funcs and their derivatives with arrays on another device than the first CPU device. They run on that
device and have the same results as with NumPy arrays. The values are compared with NumPy formulas, and the result types
are compared, too."""

import kjit
import numpy as np
import seeds

rng = seeds.fresh_generator()
x, y = rng.uniform(0.5, 1.5, 9), rng.uniform(-1, 1, (3, 4)).astype(np.float32)


def there(a):
    return kjit.array(a, device="cpu:1")


def same(found, expected):
    """Compares values of the same types; arrays are on the other device."""
    if isinstance(expected, tuple):
        assert type(found) is tuple and len(found) == len(expected), (found, expected)
        for pair in zip(found, expected, strict=True):
            same(*pair)
    elif isinstance(expected, np.ndarray):
        assert found.device == "cpu:1"
        np.testing.assert_array_equal(found.to_host(), expected)
    else:
        assert type(found) is type(expected) and found == expected, (found, expected)


@kjit.func
def energy(x, scale):
    total = 0.0
    for i in range(len(x)):
        total = total + scale * kjit.sin(x[i]) * x[(i + 1) % len(x)]
    return total


@kjit.func
def kinds(x, n):
    return x[0] > 0, n - 7, x[1] * kjit.complex64(0, 1), kjit.uint64(2**64 - 3), kjit.float32(x[2])


@kjit.func
def pair(x, y):
    return x[0] * y[0, 0], x[1] + y[1, 1]


@kjit.func
def double(x):
    for i in range(9):
        x[i] = 2 * x[i]


same(energy(there(x), 0.5), energy(x, 0.5))
assert abs(energy(there(x), 0.5) - np.sum(0.5 * np.sin(x) * np.roll(x, -1))) < 1e-12
same(kinds(there(x), 3), kinds(x, 3))
same(kjit.grad(energy)(there(x), 0.5), kjit.grad(energy)(x, 0.5))
by_x = 0.5 * (np.cos(x) * np.roll(x, -1) + np.roll(np.sin(x), 1))
np.testing.assert_allclose(kjit.grad(energy, 0)(there(x), 0.5).to_host(), by_x, rtol=1e-12, atol=1e-13)
same(kjit.value_and_grad(energy)(there(x), 0.5), kjit.value_and_grad(energy)(x, 0.5))
along = rng.standard_normal(9)
same(kjit.jvp(energy)(there(x), 0.5, there(along), 1.0), kjit.jvp(energy)(x, 0.5, along, 1.0))
same(kjit.hvp(energy, 0)(there(x), 0.5, there(along)), kjit.hvp(energy, 0)(x, 0.5, along))
same(kjit.vjp(pair)(there(x), there(y), (1.0, 2.0)), kjit.vjp(pair)(x, y, (1.0, 2.0)))
changed = there(x)
assert double(changed) is None
np.testing.assert_array_equal(changed.to_host(), 2 * x)
shadow = there(np.ones(9))
assert kjit.vjp(double)(there(x), shadow) is None
np.testing.assert_array_equal(shadow.to_host(), np.full(9, 2.0))

# Arrays on two devices are rejected. A failing argument on the first device is reported.
for call, text in ((lambda: pair(there(x), kjit.array(y, device="cpu:0")), "cpu:0"), (lambda: energy(x, "a"), "scale"), (lambda: energy(there(x)), "argument")):
    try:
        call()
    except (kjit.Error, TypeError) as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
print("functions_elsewhere: good")
