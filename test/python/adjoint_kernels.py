# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.adjoint: stencils, index arrays, numbers, sums in place and funcs, against complex steps with the same loops in
Python; the choice of parameters; pickles; and what is refused."""

import cmath
import pickle

import kjit
import kjit.cuda
import numpy as np
import seeds

rng = seeds.fresh_generator()



@kjit.func
def curve(x, y):
    return x * y + kjit.sin(x)


@kjit.jit
def spread(u, rate, p, g, total, after):
    for i, j in kjit.grid_range(u.shape):
        below, left = u[max(i - 1, 0), j], u[i, max(j - 1, 0)]
        value = curve(u[i, j], below) + rate * left
        if i > 0 and j < u.shape[1] - 1:
            value += u[i - 1, j + 1] * g[p[i, j]]
        after[i, j] = value
        total[i, j] += value * value


def spread_in_python(u, rate, p, g, total, after):
    for i, j in np.ndindex(*u.shape):
        below, left = u[max(i - 1, 0), j], u[i, max(j - 1, 0)]
        value = u[i, j] * below + cmath.sin(u[i, j]) + rate[0] * left
        if i > 0 and j < u.shape[1] - 1:
            value += u[i - 1, j + 1] * g[p[i, j]]
        after[i, j] = value
        total[i, j] += value * value


def slopes(values, number, outputs):
    """Returns the derivatives of a weighted sum of the outputs with respect to an argument; `outputs` has the
    weights."""
    found = np.zeros(values[number].shape)
    for place in np.ndindex(*found.shape):
        moved = [v.astype(complex) if v.dtype == float else v for v in values]
        moved[number][place] += 1e-30j
        spread_in_python(*moved)
        found[place] = sum((moved[k].imag * weights).sum() for k, weights in outputs.items()) / 1e-30
    return found


shape = (5, 6)
u, total, after = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape), np.zeros(shape)
p, g, rate = rng.integers(0, 4, shape).astype(np.int32), rng.uniform(-1, 1, 4), rng.uniform(-1, 1, 1)
values = [u, rate, p, g, total, after]
d_total, d_after = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape)
wanted = {number: slopes(values, number, {4: d_total, 5: d_after}) for number in (0, 1, 3)}


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


# Parameters are chosen by name, including a number. The derivatives are added to the existing values.
d_u, d_rate, d_g, kept = np.ones(shape), np.ones(1), np.ones(4), (d_total.copy(), d_after.copy())
by_names = kjit.adjoint(spread, wrt=("u", "rate", "g", "total", "after"))
by_names(u, rate[0], p, g, total, after, d_u, d_rate, d_g, d_total, d_after)
near(d_u - 1, wanted[0]), near(d_rate - 1, wanted[1]), near(d_g - 1, wanted[3])
near(d_total, kept[0]), near(d_after, kept[1])
assert (after == 0).all()

# If the parameters are chosen by number, the result is the same kernel, and the existing code is used.
assert kjit.adjoint(spread, wrt=(5, 4, 3, 1, 0)) is by_names and kjit.adjoint(spread, "u") is not by_names

# Without a choice, all float arrays are chosen. The arrays are kjit arrays, and the launch has a configuration.
for configure in (lambda k: k, lambda k: k[3, 32]):
    own = [kjit.array(x) if x.shape != (1,) else float(x[0]) for x in values]
    derivatives = [kjit.zeros(shape), kjit.zeros(4), kjit.array(d_total), kjit.array(d_after)]
    configure(kjit.adjoint(spread))(*own, *derivatives)
    near(derivatives[0].to_host(), wanted[0]), near(derivatives[1].to_host(), wanted[3])

again = pickle.loads(pickle.dumps(by_names))
assert again._numbers == by_names._numbers


# ---- refusals ----


@kjit.jit
def square(x):
    for i in kjit.grid_range(x.size):
        x[i] = x[i] * x[i]


@kjit.jit
def by_block(x):
    x[kjit.blockIdx.x] = 2 * x[kjit.blockIdx.x]


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), str(error)
        return error
    raise AssertionError(f"expected {kind.__name__}: {text}")


x = np.ones(4)
error = refused(kjit.Error, "the kernel overwrites this value", lambda: kjit.adjoint(square)(x, x.copy()))
assert error.line == square.py_func.__code__.co_firstlineno + 3, error.line
refused(kjit.Error, "all threads of a block store to the same element of `x`", lambda: kjit.adjoint(by_block)[1, 4](x, x.copy()))
refused(TypeError, "takes a kernel of kjit.jit", lambda: kjit.adjoint(curve))
refused(TypeError, "takes a kernel of kjit.jit", lambda: kjit.adjoint(by_names))
refused(TypeError, "no parameter 'v'", lambda: kjit.adjoint(spread, wrt="v"))
refused(TypeError, "chosen twice", lambda: kjit.adjoint(spread, wrt=("u", 0)))
refused(TypeError, "no array of floats", lambda: kjit.adjoint(square)(np.ones(3, np.int32)))


# ---- kernels of threads, with shared arrays and barriers ----


@kjit.cuda.jit
def product(x, a, b):
    rows = kjit.cuda.shared.array((8, 8), np.float64)
    columns = kjit.cuda.shared.array((8, 8), np.float64)
    i, j = kjit.cuda.threadIdx.x, kjit.cuda.threadIdx.y
    r, c = kjit.cuda.grid(2)
    total = 0.0
    for k in range(a.shape[1] // 8):
        rows[i, j] = a[r, k * 8 + j]
        columns[i, j] = b[k * 8 + i, c]
        kjit.cuda.syncthreads()
        for e in range(8):
            total += rows[i, e] * columns[e, j]
        kjit.cuda.syncthreads()
    x[r, c] = total


@kjit.jit
def norms(x, y):
    s = kjit.shared(16, kjit.f64)
    t = kjit.threadIdx.x
    i = kjit.blockIdx.x * 16 + t
    s[t] = y[i] * y[i] if i < y.size else 0.0
    kjit.syncthreads()
    d = 8
    while d > 0:
        if t < d:
            s[t] += s[t + d]
        kjit.syncthreads()
        d //= 2
    if t == 0:
        x[kjit.blockIdx.x] = kjit.sqrt(s[0])


a, b, d_x = rng.normal(size=(16, 24)), rng.normal(size=(24, 16)), rng.normal(size=(16, 16))
d_a, d_b = np.zeros_like(a), np.ones_like(b)
kjit.adjoint(product)[(2, 2), (8, 8)](np.zeros((16, 16)), a, b, d_x, d_a, d_b)
near(d_a, d_x @ b.T)
near(d_b, 1 + a.T @ d_x)

y, d_lengths, d_y = rng.normal(size=40), rng.normal(size=3), np.zeros(40)
lengths = np.array([np.sqrt((y[k : k + 16] ** 2).sum()) for k in (0, 16, 32)])
kjit.adjoint(norms)[3, 16](np.zeros(3), y, d_lengths, d_y)
near(d_y, np.repeat(d_lengths / lengths, 16)[:40] * y)


# ---- the list of tapes and sums ----


@kjit.jit
def powers(x, p, y):
    for i in kjit.grid_range(x.size):
        v = x[p[i]]
        for _ in range(40):
            if v > 3.0:
                break
            v = v * v + 0.5
        y[i] = v


unused = kjit.adjoint(powers)
try:
    unused.inspect("derivatives")
except ValueError as error:
    assert "launch" in str(error), error
else:
    raise AssertionError("an adjoint without a launch has no code")
values, places = np.full(8, 0.25), np.arange(8, dtype="i4")
unused(values, places, np.zeros(8), np.zeros(8), np.ones(8))
listed = unused.inspect("derivatives").splitlines()
line = powers.py_func.__code__.co_firstlineno
assert listed[0].startswith(f"{__file__}:{line + 1}:") and listed[0].endswith("360 bytes of arrays in each thread; 1 atomic sum"), listed
tape, = (one for one in listed if ": tape `tape_v`" in one)
assert tape.startswith(f"{__file__}:{line + 4}:") and "entries: 40, a range of constants; 320 bytes in each thread" in tape, tape
assert any(one.startswith(f"{__file__}:{line + 3}:") and one.endswith("sums of `x`: atomic sums in 1 place; 1 atomic sum") for one in listed), listed
chosen = kjit.adjoint(powers, wrt=("x", "y"))
ptx = chosen.inspect("ptx", "f64[:], i32[:], f64[:], f64[:], f64[:]", "sm_90", lines=False)
assert ptx.count("atom.global.add.f64") + ptx.count("red.global.add.f64") == 1, ptx
assert chosen.inspect("derivatives", "f64[:], i32[:], f64[:], f64[:], f64[:]", "sm_90").count("\n") == len(listed)
assert powers.inspect("derivatives", "f64[:], i32[:], f64[:]", "cpu") == ""
