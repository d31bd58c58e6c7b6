# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.grad of programs with complex numbers, discrete methods, remainders, einsum without a result, *args, kinks and empty arrays. Central
differences of the same program in NumPy, by the real and the imaginary part, are the expected derivatives, and JAX's ones where it is installed."""

import kjit
import kjit.numpy as knp
import numpy as np
import seeds

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
except ImportError:
    jax = None
    print("JAX is not installed: differences are the only reference")

rng = seeds.fresh_generator()
x = rng.permutation(5) * 0.4 - 0.85 + 0.1 * rng.random(5)
z, matrix = x + 1j * rng.uniform(0.5, 1.5, 5), rng.uniform(0.5, 1.5, (3, 3))
near = np.testing.assert_allclose


def differences(program, args, number):
    """Returns the derivatives with respect to an argument. For complex numbers they are dL/dx - i dL/dy."""
    found = np.zeros_like(args[number])
    for place in np.ndindex(found.shape):
        for step in (1e-6, 1e-6j) if np.iscomplexobj(found) else (1e-6,):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in args]
                moved[number][place] += sign * step
                ends.append(program(*moved))
            found[place] += (ends[0] - ends[1]) / 2e-6 * (-1j if np.iscomplexobj(step) else 1)
    return found


PROGRAMS = {
    "the real part": (lambda m: lambda z: m.sum((z * z).real), (z,)),
    "the imaginary part by a function": (lambda m: lambda z: m.sum(m.imag(z * z * z)), (z,)),
    "a conjugate": (lambda m: lambda z: m.sum(m.real(z * m.conj(z) * z)), (z,)),
    "a conjugate by a method": (lambda m: lambda z: m.sum((z * z.conj() * z).imag), (z,)),
    "real numbers in complex ones": (lambda m: lambda x: m.sum(abs(m.exp(1j * x) + 2.0)), (x,)),
    "real and complex arguments": (lambda m: lambda x, z: m.sum(abs(x * z) ** 2), (x, z)),
    "parts of real numbers": (lambda m: lambda x: m.sum(x.real * x.imag + x.real * x), (x,)),
    "a complex product": (lambda m: lambda z: abs(z @ z) ** 2, (z,)),
    "a remainder": (lambda m: lambda x, y: m.sum(x % y * x), (x, x + 1.7)),
    "argmax as a factor": (lambda m: lambda x: m.sum(x * x.argmax()), (x,)),
    "argsort as an index": (lambda m: lambda x: m.sum(x[x.argsort()] * x), (x,)),
    "round": (lambda m: lambda x: m.sum(x.round() * x), (x,)),
    "einsum without a result": (lambda m: lambda a: m.sum(m.einsum("ij,jk", a, a) ** 2), (matrix,)),
    "einsum with letters out of order": (lambda m: lambda a, b: m.sum(m.einsum("kj,ji", a, b) * a), (matrix, matrix[::-1].copy())),
    "any number of arguments": (lambda m: lambda *a: m.sum(a[0] * a[1] * a[1]), (x, x + 0.5)),
    "a loop that ends by a value": (lambda m: lambda x: halved(m, x), (x,)),
    "a condition on a sum": (lambda m: lambda x: m.sum(x * x) if m.sum(x) > 10.0 else m.sum(m.sin(x)), (x,)),
}


def halved(m, values):
    while m.sum(values * values) > 1e-2:
        values = values * 0.5
    return m.sum(values)


for name, (program, args) in PROGRAMS.items():
    for move in (lambda a: a, kjit.array):
        found = kjit.grad(program(knp), *range(len(args)))(*(move(a) for a in args))
        for number, got in enumerate(found if isinstance(found, tuple) else (found,)):
            got = got.to_host() if hasattr(got, "to_host") else got
            assert got.dtype == args[number].dtype, name
            near(got, differences(program(np), args, number), rtol=1e-7, atol=1e-7, err_msg=name)
            if jax is not None:
                near(got, jax.grad(program(jnp), number)(*map(jnp.asarray, args)), rtol=1e-11, atol=1e-12, err_msg=name)

# Programs without a random choice: empty arrays, products with zeros, the branch that is not taken.
for program in (lambda x: knp.sum(x * x), lambda x: knp.prod(x), lambda x: knp.sum(knp.cumprod(x)), lambda x: knp.sum(knp.sort(x))):
    assert kjit.grad(program)(np.zeros(0)).shape == (0,)
near(kjit.grad(lambda x: knp.sum(knp.cumprod(x)))(np.array([0.0, 2, 0, 3])), [3, 0, 0, 0])
near(kjit.grad(lambda x: knp.prod(x))(np.array([0.0, 0, 3])), [0, 0, 0])
near(kjit.grad(lambda x: knp.sum(knp.where(x > 0, knp.sqrt(x), 0.0)))(np.array([-1.0, 0, 4])), [0, 0, 0.25])
# A linear program has second derivatives, and they are 0.
near(kjit.hessian(lambda x: knp.sum(3.0 * x))(x), np.zeros((5, 5)))
near(kjit.hvp(lambda x: knp.sum(3.0 * x))(x, x), np.zeros(5))
# The program runs once for all rows of a derivative matrix.
runs = []
kjit.jacobian(lambda x: runs.append(1) or knp.cumsum(x * x))(x)
kjit.hessian(lambda x: runs.append(1) or knp.sum(x * x * x))(x)
assert len(runs) == 2, runs

# The imaginary part of an infinite real number is 0, as in NumPy.
for make in (np.asarray, kjit.array):
    value, gradient = kjit.value_and_grad(lambda x: knp.sum(knp.imag(x) + x.imag))(make(np.array([1.0, np.inf, np.nan])))
    assert value == 0 and np.asarray(gradient).tolist() == [0, 0, 0], (value, gradient)


def refused(text, call):
    try:
        call()
    except TypeError as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"expected a TypeError: {text}")


def square_sum(a):
    return knp.sum(a * a)


refused("kjit.grad has no option argnums", lambda: kjit.grad(square_sum, argnums=0))
refused("kjit.grad takes each number as a separate argument", lambda: kjit.grad(square_sum, (0, 1)))
refused("has no parameter 1", lambda: kjit.grad(square_sum, 1))
refused("there is no argument 2", lambda: kjit.grad(lambda *a: knp.sum(a[0] * a[1]), 2)(x, x))
refused("an argument is a dict", lambda: knp.grad(lambda p: knp.sum(p["a"]))({"a": x}))
refused("an argument is a tuple", lambda: kjit.grad(lambda p: knp.sum(p[0]))((x, x)))
refused("the function returns a tuple", lambda: kjit.grad(lambda a: (knp.sum(a), a))(x))
refused("the function returns None", lambda: knp.grad(lambda a: None)(x))
refused("not to tuples; pass each number", lambda: kjit.grad(lambda p: p[0] * p[1])((2.0, 3.0)))
refused("the function returns a list", lambda: kjit.vjp(lambda a: [knp.sum(a)])(x, 1.0))
refused("needs the value as a Python number", lambda: kjit.grad(lambda a: knp.sum(a) * a.sum().item())(x))
print("array_gradient_forms: good")
