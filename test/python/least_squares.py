# RUN: %kjit-python %s
"""Compares SciPy's arguments of lsmr with NumPy's least squares."""
import contextlib
import io
import os

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
generator = np.random.default_rng(seed)
tight = {"atol": 1e-13, "btol": 1e-13, "maxiter": 500}


def host(x):
    return x.to_host() if isinstance(x, kjit.Array) else x


def operator(x):
    def multiply(matrix):
        def stored(result, v):
            kjit.matmul(matrix, v, out=result)

        return stored

    own = kjit.array(x, device="cpu")
    return kjit.LinearOperator(x.shape, multiply(own), multiply(own.T))


def expected(x, b, damp, x0):
    """The minimum of |b - A x|^2 + damp^2 |x - x0|^2."""
    columns = x.shape[1]
    step = np.linalg.lstsq(np.vstack([x, damp * np.eye(columns)]), np.concatenate([b - x @ x0, np.zeros(columns)]), rcond=None)[0]
    return x0 + step


def near(got, want, what):
    assert np.allclose(host(got), want, rtol=1e-7, atol=1e-7), (seed, what, got, want)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


for rows, columns in ((9, 5), (6, 6)):
    x = np.where(generator.random((rows, columns)) < 0.7, generator.standard_normal((rows, columns)), 0) + 3 * np.eye(rows, columns)
    b, x0 = generator.standard_normal(rows), generator.standard_normal(columns)
    for name, make in (("csr", kjit.csr), ("dense", np.copy), ("functions", operator)):
        for damp in (0.0, 0.4):
            zero, what = np.zeros(columns), (name, damp, rows)
            near(kjit.lsmr(make(x), b, damp, **tight).x, expected(x, b, damp, zero), what)
            near(kjit.lsmr(make(x), b, damp, 1e-13, 1e-13, 1e8, 500, False, x0).x, expected(x, b, damp, x0), (what, "x0"))
        own = kjit.array(b, device="cpu")
        found = kjit.lsmr(kjit.csr(kjit.csr(x), device="cpu") if name == "csr" else make(x), own, x0=kjit.array(x0, device="cpu"), **tight)
        assert isinstance(found.x, kjit.Array), type(found.x)
        near(found.x, expected(x, b, 0, x0), (name, "arrays of kjit"))
        near(found.solution_norm, np.linalg.norm(host(found.x)), (name, "solution_norm"))
        near(found.residual_norm, np.linalg.norm(b - x @ host(found.x)), (name, "residual_norm"))
    out = x0.copy()
    assert kjit.lsmr(x, b, x0=out, out=out, **tight).x is out
    near(out, expected(x, b, 0, x0), "out that is x0")

x = generator.standard_normal((60, 40)) + 12 * np.eye(60, 40)
truth = generator.standard_normal(40)
b = x @ truth
cold, warm = kjit.lsmr(x, b, atol=0, btol=1e-8, maxiter=300), kjit.lsmr(x, b, atol=0, btol=1e-8, maxiter=300, x0=truth * (1 + 1e-6))
assert warm.status == cold.status == 0 and warm.iterations < cold.iterations, (seed, cold.iterations, warm.iterations)
assert kjit.lsmr(x, b, x0=truth).residual_norm < 1e-6
near(kjit.lsmr(x, np.zeros(60), x0=np.zeros(40)).x, np.zeros(40), "b that is 0")
single = kjit.lsmr(kjit.csr(x.astype("f")), b.astype("f"), x0=np.ones(40, "f"), maxiter=200)
assert single.x.dtype == np.float32 and np.allclose(single.x, truth, atol=1e-2), seed
assert kjit.lsmr(x, b, maxiter=2, atol=0, btol=0).status == 3
assert kjit.lsmr(x, b, conlim=1.001).status == 2 or kjit.lsmr(x, b, conlim=1.001).iterations < cold.iterations

shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    found = kjit.lsmr(x, b, show=True)
    kjit.lsmr(x, b)
assert shown.getvalue().count("\n") == 1 and found.text in shown.getvalue(), shown.getvalue()
refused(lambda: kjit.lsmr(x, b, atol=1e-3, matrix_tolerance=1e-4), TypeError, "atol and matrix_tolerance are two names of the same option")
refused(lambda: kjit.lsmr(x, b, maxiter=3, iteration_limit=3), TypeError, "maxiter and iteration_limit are two names of the same option")
refused(lambda: kjit.lsmr(x, b, maxiter=0), kjit.ArgumentError, "maxiter must be from 1 to 2^63 - 1, or None, not 0")
refused(lambda: kjit.lsmr(x, b, atol="low"), TypeError, "atol must be a number, not 'low'")
refused(lambda: kjit.lsmr(x, b, x0=np.ones(3)), kjit.ArgumentError, "`x0` has the shape (3,): expected (40,)")
refused(lambda: kjit.lsmr(x, b, x0=3), TypeError, "`x0` must be an array, not int")

# Several damping factors: a row of x and an element of each field for each, from one pass over the matrix.
damps = np.array([0, 1e-3, 0.5, 3, 40])
for rows, columns in ((40, 17), (11, 25), (1, 1)):
    x = np.where(generator.random((rows, columns)) < 0.6, generator.standard_normal((rows, columns)), 0)
    b, x0 = generator.standard_normal(rows), generator.standard_normal(columns)
    for make in (kjit.csr, np.copy, operator):
        for start in (None, x0):
            own = generator.random() < 0.5
            found = kjit.lsmr(make(x), kjit.array(b, device="cpu") if own else b, damps, conlim=0, x0=start, **tight)
            assert isinstance(found.x, kjit.Array) == own and found.x.shape == (5, columns) and found.text[0].startswith(("the", "no", "a")), found
            zero = np.zeros(columns) if start is None else start
            for k, damp in enumerate(damps):
                alone = kjit.lsmr(make(x), b, float(damp), conlim=0, x0=start, **tight)
                what = (rows, columns, damp, start is None)
                assert np.allclose(host(found.x)[k], expected(x, b, damp, zero), rtol=1e-5, atol=1e-5), (seed, what, found, alone)
                assert np.allclose(found.residual_norm[k], alone.residual_norm, rtol=1e-5, atol=1e-7), (seed, what)
                assert np.isclose(found.solution_norm[k], np.linalg.norm(host(found.x)[k])) and abs(found.iterations[k] - alone.iterations) <= 4, (seed, what)
                assert (found.status[k] == 3) == (alone.status == 3), (seed, what)
x, b = generator.standard_normal((30, 12)), generator.standard_normal(30)
counts = [0, 0]


def counted(matrix, k):
    def stored(result, v):
        counts[k] += 1
        kjit.matmul(matrix, v, out=result)

    return stored


own = kjit.array(x, device="cpu")
functions = kjit.LinearOperator(x.shape, counted(own, 0), counted(own.T, 1))
found = kjit.lsmr(functions, b, list(damps), **tight)
assert counts == [max(found.iterations), max(found.iterations) + 1], (counts, found.iterations)
out = np.full((5, 12), np.nan)
assert kjit.lsmr(kjit.csr(x), b, damps, out=out, transposed=kjit.csr(x).T, **tight).x is out and np.allclose(out, host(found.x), atol=1e-6), seed
single = kjit.lsmr(kjit.csr(x.astype("f")), b.astype("f"), damps.astype("f"), maxiter=100).x
assert single.dtype == np.float32 and np.allclose(single, host(found.x), atol=1e-2), seed
nothing = kjit.lsmr(x, np.zeros(30), damps)
assert not nothing.x.any() and not nothing.status.any() and not nothing.iterations.any(), nothing
assert (kjit.lsmr(x, b, damps, atol=0, btol=0, maxiter=2).status[:2] == 3).all()
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    kjit.lsmr(x, b, [0.5, 2], show=True)
assert printed.getvalue().count("\n") == 2 and "lsmr, damp 0.5: " in printed.getvalue(), printed.getvalue()
refused(lambda: kjit.lsmr(x, b, [1, -1]), kjit.ArgumentError, "damp contains -1, but")
refused(lambda: kjit.lsmr(x, b, [np.nan]), kjit.ArgumentError, "damp contains nan, but its numbers must be finite")
refused(lambda: kjit.lsmr(x, b, []), kjit.ArgumentError, "nonempty one-dimensional array")
refused(lambda: kjit.lsmr(x, b, np.ones((2, 2))), kjit.ArgumentError, "not an array of the shape (2, 2)")
refused(lambda: kjit.lsmr(x, b[:3], [1]), kjit.ArgumentError, "b has the shape (3,)")
refused(lambda: kjit.lsmr(x, b, [1], x0=b), kjit.ArgumentError, "`x0` has the shape (30,)")
refused(lambda: kjit.lsmr(x, b.astype("i8"), [1]), TypeError, "float32 and float64")
refused(lambda: kjit.lsmr(kjit.LinearOperator((3, 3), operator), np.ones(3), [1]), kjit.ArgumentError, "no function multiply_transposed")
