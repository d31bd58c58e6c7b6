# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.grad and its kin on the host: numbers, arrays, maps, reductions, kernels, second derivatives and derivatives of
derivatives, against complex steps with the same functions in NumPy; kjit.gradcheck, which finds wrong rules and tells kinks
apart; and what is refused."""

import pickle

import kjit
import numpy as np
import seeds

rng = seeds.fresh_generator()


def formula(m, x, y):
    return m.sin(x) * y * y + m.exp(x * y)


@kjit.func
def wave(x, y):
    return kjit.sin(x) * y * y + kjit.exp(x * y)


@kjit.func
def pair(x, y, n=2):
    return x * y * n, kjit.sin(x) + y * y


@kjit.func
def energy(x, scale):
    total = 0.0
    for i in range(5):
        total = total + scale * x[i] * x[i] * x[(i + 1) % 5]
    return total


def energy_of_numpy(x, scale):
    return (scale * x * x * np.roll(x, -1)).sum()


def near(found, expected):
    return np.allclose(np.asarray(found), np.asarray(expected), rtol=1e-12, atol=1e-12)


def step(f, *args):
    """Returns the derivatives with respect to all arguments, by complex steps."""
    made = []
    for i in range(len(args)):
        moved = [complex(a) for a in args]
        moved[i] += 1e-30j
        made.append(f(*moved).imag / 1e-30)
    return made


def check_numbers():
    x, y, u, v = map(float, rng.uniform(-1, 1, 4))
    value, by = formula(np, x, y), step(lambda x, y: formula(np, x, y), x, y)
    e = np.exp(x * y)
    xx, xy, yy = -np.sin(x) * y * y + y * y * e, 2 * np.cos(x) * y + (1 + x * y) * e, 2 * np.sin(x) + x * x * e
    assert near(kjit.grad(wave)(x, y), by) and near(kjit.grad(wave, 1)(x, y), by[1])
    assert near(kjit.value_and_grad(wave)(x, y), [value, *by])
    assert near(kjit.jvp(wave)(x, y, u, v), [value, u * by[0] + v * by[1]])
    assert near(kjit.vjp(wave)(x, y, u), [value, u * by[0], u * by[1]])
    assert near(kjit.hvp(wave)(x, y, u, v), [u * xx + v * xy, u * xy + v * yy])
    assert near(kjit.hvp(wave, 0)(x, y, u), u * xx)
    assert near(kjit.jacobian(wave)(x, y), by) and near(kjit.hessian(wave)(x, y), [[xx, xy], [xy, yy]])
    assert near(kjit.hessian(wave, 1)(x, y), yy)
    assert near(kjit.jvp(kjit.grad(wave, 0))(x, y, 1, 0), [by[0], xx])
    assert near(kjit.vjp(kjit.grad(wave))(x, y, (u, v))[1:], [u * xx + v * xy, u * xy + v * yy])
    assert near(kjit.jacobian(pair)(x, y), [[2 * y, 2 * x], [np.cos(x), 2 * y]])
    assert near(kjit.vjp(pair)(x, y, 2, (u, v))[1:], [2 * u * y + v * np.cos(x), 2 * u * x + v * 2 * y])
    assert near(kjit.grad(lambda x, n: x**n)(x, 3), 3 * x * x)
    assert kjit.grad(wave)(np.float32(x), np.float32(y)) == tuple(np.float32(d) for d in kjit.grad(wave)(np.float32(x), np.float32(y)))


def check_arrays():
    x, direction, scale = rng.uniform(-1, 1, 5), rng.uniform(-1, 1, 5), float(rng.uniform(1, 2))
    by = np.array(step(lambda *x: energy_of_numpy(np.array(x), scale), *x))
    beside = np.diag(2 * x) @ np.roll(np.eye(5), 1, 1)
    matrix = scale * (np.diag(2 * np.roll(x, -1)) + beside + beside.T)
    found, by_scale = kjit.grad(energy)(x, scale)
    assert near(found, by) and near(by_scale, energy_of_numpy(x, 1.0))
    value, only = kjit.value_and_grad(energy, 0)(x, scale)
    assert near(value, energy(x, scale)) and near(only, by)
    assert near(kjit.jvp(energy, 0)(x, scale, direction)[1], by @ direction)
    assert near(kjit.vjp(energy, 0)(x, scale, 2)[1], 2 * by)
    assert near(kjit.hvp(energy, 0)(x, scale, direction), matrix @ direction)
    both, mixed = kjit.hvp(energy)(x, scale, direction, 0)
    assert near(both, matrix @ direction) and near(mixed, by @ direction / scale)
    assert near(kjit.hessian(energy, 0)(x, scale), matrix) and near(kjit.jacobian(energy, 0)(x, scale), by)
    assert near(kjit.grad(energy, 0)(kjit.array(x), scale).to_host(), by)


def check_calls():
    x, y, r = rng.uniform(-1, 1, 50), rng.uniform(-1, 1, 50), np.zeros((50, 3))
    by_x, by_y = np.array([step(lambda x, y: formula(np, x, y), a, b) for a, b in zip(x, y)]).T
    assert near(kjit.map(kjit.grad(wave), x, y), [by_x, by_y])
    assert near(kjit.map(kjit.value_and_grad(wave, 1), x, y), [formula(np, x, y), by_y])
    assert near(kjit.map(kjit.hvp(lambda x: x * x * x), x, y), 6 * x * y)
    gradient, product = kjit.grad(wave, 0), kjit.hvp(lambda x: x * x * x)

    @kjit.jit
    def kernel(r, x, y):
        for i in kjit.grid_range(len(x)):
            r[i, 0] = gradient(x[i], y[i])
            r[i, 1] = product(x[i], 2.0)
            r[i, 2] = applied(gradient, x[i], y[i]) + kjit.value_and_grad(wave, 1)(x[i], y[i])[1]

    kernel(r, x, y)
    assert near(r.T, [by_x, 12 * x, by_x + by_y])
    again = pickle.loads(pickle.dumps(kjit.grad(wave)))
    assert again(0.5, 2.0) == kjit.grad(wave)(0.5, 2.0)


@kjit.func
def applied(f, x, y):
    return f(x, y)


def fails(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(text)


@kjit.func
def half(x, y):
    return x * kjit.no_diff(x) + y


@kjit.func
def of_array(x):
    return x[0] * x[1] + x[2] * kjit.no_diff(x[2])


def check_gradcheck():
    x, y = map(float, rng.uniform(0.5, 1, 2))
    assert kjit.gradcheck(wave, x, y) and kjit.gradcheck(pair, x, y, 3) and kjit.gradcheck(kjit.grad(wave), x, y)
    assert kjit.gradcheck(energy, rng.uniform(-1, 1, 5).astype("f4"), x) and kjit.gradcheck(lambda x, y: max(x, y) * x, x, x + 1e-5)
    error = fails(kjit.GradientError, "argument 0 (`x`)", lambda: kjit.gradcheck(half, x, y))
    assert not error.is_discrete and near(error.computed, x) and abs(error.expected - 2 * x) < 1e-9
    assert kjit.gradcheck(half, x, y, parameters=(1,))
    place = np.array([x, y, x])
    error = fails(kjit.GradientError, "(`x`), element 2", lambda: kjit.gradcheck(of_array, place, modes=["reverse"]))
    assert error.element == (2,)
    for f in (lambda x: x * kjit.floor(x), lambda x: x if x > 2 else 3 * x):
        assert fails(kjit.GradientError, "kink or a jump", lambda: kjit.gradcheck(f, 2.0)).is_discrete
        assert kjit.gradcheck(f, 2.00003)
    fails(TypeError, "no argument is a float", lambda: kjit.gradcheck(wave, 1, 2))
    fails(TypeError, "takes real arguments", lambda: kjit.gradcheck(wave, 1j, 2.0))


def potential(x, y):
    return kjit.pairs(lambda x, y, i, j: kjit.exp(-((x - y) ** 2)), x, y)


def potential_derivative(x, y, by):
    return kjit.pairs_gradient(lambda x, y, i, j: kjit.exp(-((x - y) ** 2)), x, y, cotangents=by)


def wrong_derivative(x, y, by):
    by_x, by_y = potential_derivative(x, y, by)
    by_y[3] *= 1.01
    return by_x, by_y


def check_gradcheck_of_calls():
    x, y = rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 5)
    assert kjit.gradcheck(potential, x, y, derivative=potential_derivative)
    error = fails(kjit.GradientError, "argument 1 (`y`), element 3", lambda: kjit.gradcheck(potential, x, y, derivative=wrong_derivative))
    assert error.element == (3,) and not error.is_discrete
    assert kjit.gradcheck(lambda x: kjit.reduce(x * x), x, derivative=lambda x, by: 2 * x * by)
    cube = np.arange(6) == 0  # both results are differentiated, the second one with respect to the first element
    assert kjit.gradcheck(lambda x, n: (x * n, x[0] ** 3), x, 2, derivative=lambda x, n, by: n * by[0] + 3 * x * x * by[1] * cube)
    fails(TypeError, "returns 1 derivatives", lambda: kjit.gradcheck(potential, x, y, derivative=lambda x, y, by: x))


# Quotients with divisor 0, whose slope is infinite or NaN. Divisors such as 1 + x * x are never 0.
QUOTIENTS = (
    (lambda c, x: c / x, 0.0), (lambda c, x: c / (x * x), 0.0), (lambda c, x: c / (1.0 - x * x), 1.0), (lambda c, x: c / (-1.0 + x * x), 1.0),
    (lambda c, x: c / (1.0 + x), -1.0), (lambda c, x: c / (1.0 + x * c), -0.5), (lambda c, x: c / abs(x), 0.0), (lambda c, x: c / kjit.sqrt(x), 0.0),
    (lambda c, x: c * kjit.log1p(x), -1.0), (lambda c, x: c * kjit.log(x * x), 0.0), (lambda c, x: c * kjit.sqrt(abs(x)), 0.0),
    (lambda c, x: c / (0.0 + x * x), 0.0), (lambda c, x: kjit.rsqrt(x * x + 0.0) * c, 0.0),
)  # fmt: skip


def check_quotients():
    """If the derivative with respect to the result is 0, the derivative with respect to the divisor is 0, too."""
    for number, (f, zero) in enumerate(QUOTIENTS):
        assert kjit.vjp(f)(2.0, zero, 0.0)[2] == 0, (number, kjit.vjp(f)(2.0, zero, 0.0))
    for f in (lambda x: x / 3.0, lambda x: 2.0 / (1.0 + x * x), lambda x: 1.0 / (1.0 + kjit.exp(-x)), lambda x: kjit.sqrt(0.5 + abs(x)),
              lambda x: kjit.log(2.0 + x * x), lambda x: kjit.log1p(kjit.exp(x)), lambda x: kjit.rsqrt(abs(x) + x * x + 1.0)):  # fmt: skip
        for x in (*rng.uniform(-3, 3, 4), 0.25):
            assert kjit.gradcheck(f, float(x))
    assert kjit.gradcheck(lambda z: abs(1.0 / (1.0 + kjit.complex128(z, 1.0) * kjit.complex128(z, 1.0))), 0.5)


@kjit.jit
def inside(r):
    r[0] = kjit.hvp(lambda v: v * v)(r[0], 1.0)


def check_refusals():
    fails(kjit.SourceError, "takes the name of a function", lambda: inside[1, 1](np.zeros(1)))
    fails(TypeError, "lacks an argument for `y`", lambda: kjit.grad(wave)(1.0))
    fails(TypeError, "no argument that is a float", lambda: kjit.grad(wave)(1, 2))
    fails(TypeError, "differentiates with respect to `y`, but 2 is not a float", lambda: kjit.grad(wave, 1)(1.0, 2))
    fails(TypeError, "has no parameter 2", lambda: kjit.grad(wave, 2))
    fails(TypeError, "chosen twice", lambda: kjit.hessian(wave, 1, 1))
    fails(TypeError, "takes 4 arguments", lambda: kjit.jvp(wave)(1.0, 2.0, 1.0))
    fails(TypeError, "no keyword arguments", lambda: kjit.grad(wave)(1.0, y=2.0))
    fails(TypeError, "not int", lambda: kjit.grad(3))
    fails(TypeError, "second derivatives with respect to arrays", lambda: kjit.grad(kjit.grad(energy, 1))(np.zeros(5), 1.0))
    fails(kjit.TypingError, "returns one float", lambda: kjit.grad(pair)(1.0, 2.0))
    fails(kjit.Error, "returns (float64, float64)", lambda: kjit.map(kjit.grad(pair), np.ones(2), 2.0, 2))


check_numbers()
check_arrays()
check_calls()
check_gradcheck()
check_gradcheck_of_calls()
check_quotients()
check_refusals()
