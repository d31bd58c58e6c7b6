# RUN: %kjit-python %s
# RUN: %kjit-python %s stand-in
# RUN: env KJIT_CPU_DEVICES=2 %kjit-python %s elsewhere
"""kjit.numpy.linalg and kjit.numpy.fft against NumPy, on random stacks of matrices and arrays, views among them. With the argument
stand-in the calls of cuSOLVER and cuFFT, which arrays of a GPU have, are made to a stand-in in the memory of the host. With the
argument elsewhere the arrays are on a second CPU device, and so have to be the results."""
import os
import random
import sys

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import nvidia_standin  # noqa: E402

if "stand-in" in sys.argv:
    nvidia_standin.install()
seed = seeds.seed
choice, generator = random.Random(seed), np.random.default_rng(seed)
DEVICE = "cpu:1" if "elsewhere" in sys.argv else "cpu"
BOUNDS = {"f": 2e-3, "d": 1e-9, "F": 2e-3, "D": 1e-9}


def numbers(shape, code):
    made = generator.standard_normal(shape)
    return (made + 1j * generator.standard_normal(shape) if code in "FD" else made).astype(code)


def host(x):
    return x.to_host() if isinstance(x, kjit.Array) else np.asarray(x)


def near(got, expected, what, code):
    assert not isinstance(got, kjit.Array) or got.device == DEVICE, (what, got.device)
    got, expected = host(got), np.asarray(expected)
    assert got.shape == expected.shape, (seed, what, got.shape, expected.shape)
    bound = BOUNDS[code] * (1 + np.abs(expected).max(initial=0))
    assert np.abs(got.astype("D") - expected).max(initial=0) <= bound, (seed, what, code, got, expected)


def there(x):
    return kjit.array(x, device=DEVICE)


def own(x):
    """Returns a kjit array with the same elements, sometimes as a view with other strides."""
    if x.ndim > 1 and choice.random() < 0.5:
        return knp.matrix_transpose(there(np.ascontiguousarray(np.swapaxes(x, -1, -2))))
    return there(x)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


# ---- decompositions: the product of the factors is the matrix ----

for code in "fdFD" if os.environ.get("KJIT_TEST_ALL") else choice.sample("fdFD", 2):
    n, m = choice.randrange(2, 7), choice.randrange(2, 7)
    # In single precision the matrices are far from singular, because the inverses of nearly singular ones have few
    # correct digits.
    shift = 3 * max(n, m) if code in "fF" else 0
    a = numbers((3, n, n), code) + (shift or n) * np.eye(n, dtype=code)
    wide, hermitian = numbers((2, n, m), code) + shift * np.eye(n, m, dtype=code), a + np.swapaxes(a.conj(), -1, -2)
    definite = a @ np.swapaxes(a.conj(), -1, -2) + np.eye(n, dtype=code)
    x = own(a)
    near(knp.linalg.inv(x), np.linalg.inv(a), "inv", code)
    near(knp.linalg.det(x), np.linalg.det(a), "det", code)
    sign, logarithm = knp.linalg.slogdet(x)
    near(sign * knp.exp(logarithm), np.linalg.det(a), "slogdet", code)
    near(knp.linalg.cholesky(own(definite)), np.linalg.cholesky(definite), "cholesky", code)
    upper = knp.linalg.cholesky(own(definite), upper=True)
    near(knp.conj(knp.matrix_transpose(upper)) @ upper, definite, "cholesky upper", code)
    values, vectors = knp.linalg.eigh(own(hermitian))
    near(values, np.linalg.eigvalsh(hermitian), "eigh", code)
    near(there(hermitian) @ vectors, host(vectors) * host(values)[:, None, :], "eigenvectors", code)
    near(knp.linalg.eigvalsh(own(hermitian)), np.linalg.eigvalsh(hermitian), "eigvalsh", code)
    for mode in ("reduced", "complete"):
        q, r = knp.linalg.qr(own(wide), mode=mode)
        near(q @ r, wide, ("qr", mode), code)
        near(knp.triu(r), host(r), "R", code)
        assert tuple(q.shape) == np.linalg.qr(wide[0], mode=mode)[0].shape[:0] + (2, n, n if mode == "complete" else min(n, m))
    u, s, vh = knp.linalg.svd(own(wide), full_matrices=False)
    near((u * knp.expand_dims(s, axis=-2)) @ vh, wide, "svd", code)
    assert tuple(knp.linalg.svd(own(wide)).U.shape) == (2, n, n)
    near(knp.linalg.svdvals(own(wide)), np.linalg.svd(wide, compute_uv=False), "svdvals", code)
    near(knp.linalg.pinv(own(wide)), np.linalg.pinv(wide), "pinv", code)
    near(knp.linalg.eigvals(x).sum(axis=-1), np.trace(a, axis1=-2, axis2=-1), "eigvals", code)
    values, vectors = knp.linalg.eig(x)
    near(knp.astype(x, values.dtype) @ vectors, host(vectors) * host(values)[:, None, :], "eig", code)
    low = wide[:, :, :1] @ numbers((2, 1, m), code)
    assert host(knp.linalg.matrix_rank(own(low))).tolist() == [1, 1]
    sides, line = numbers((3, n, 2), code), numbers(n, code)
    near(knp.linalg.solve(x, own(sides)), np.linalg.solve(a, sides), "solve", code)
    near(knp.linalg.solve(x, there(line)), np.linalg.solve(a, np.stack([line[:, None]] * 3))[..., 0], "solve for a vector", code)
    near(knp.linalg.solve(x[0], own(sides)), np.linalg.solve(a[:1], sides), "solve that broadcasts", code)
    for power in (-2, 0, 1, 5):
        near(knp.linalg.matrix_power(x, power), np.linalg.matrix_power(a, power), ("matrix_power", power), code)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        near(knp.linalg.matrix_norm(own(wide), ord=order), np.linalg.norm(wide, order, axis=(-2, -1)), ("matrix_norm", order), code)
    for order in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
        near(knp.linalg.vector_norm(own(wide), axis=1, ord=order), np.linalg.norm(wide, order, axis=1), ("vector_norm", order), code)
    near(knp.linalg.vector_norm(own(wide), keepdims=True), np.linalg.norm(wide.ravel()).reshape(1, 1, 1), "vector_norm of all", code)
    three = numbers((4, 3), code)
    near(knp.linalg.cross(there(three), there(three[::-1].copy())), np.cross(three, three[::-1]), "cross", code)
    offset = choice.randrange(-4, 5)
    near(knp.linalg.diagonal(own(wide), offset=offset), np.diagonal(wide, offset, 1, 2), ("diagonal", offset), code)
    near(knp.linalg.trace(own(wide), offset=offset), np.trace(wide, offset, 1, 2), ("trace", offset), code)
    assert host(knp.linalg.inv(x)).dtype == code and host(knp.linalg.svd(x).S).dtype == {"F": "f", "D": "d"}.get(code, code)
near(knp.linalg.inv(knp.eye(3, dtype="i32", device=DEVICE)), np.eye(3), "integers", "d")
assert knp.linalg.inv(knp.empty((0, 3, 3))).shape == (0, 3, 3) and knp.linalg.det(knp.empty((2, 0, 0))).shape == (2,)
refused(lambda: knp.linalg.inv(knp.zeros((2, 2), device=DEVICE)), np.linalg.LinAlgError, "inv: Singular matrix")
refused(lambda: knp.linalg.inv(knp.zeros((2, 3))), kjit.Error, "inv: the matrices are not square: 2 rows and 3 columns")
refused(lambda: knp.linalg.cholesky(-knp.eye(2, device=DEVICE)), knp.linalg.LinAlgError, "cholesky: Matrix is not positive definite")
refused(lambda: knp.linalg.solve(knp.eye(2), knp.ones(3)), ValueError, "solve: x1 has the shape (2, 2), so x2 needs 2 rows, but has the shape (3,)")
refused(lambda: knp.linalg.svd(knp.ones((2, 2), dtype="f16")), TypeError, "svd: float16 has no decompositions")
refused(lambda: knp.linalg.qr(knp.eye(2), mode="raw"), ValueError, 'qr: mode must be "reduced", "complete" or "r"')

# ---- transforms ----

for code in "fdFD" if os.environ.get("KJIT_TEST_ALL") else choice.sample("fdFD", 2):
    shape = tuple(choice.randrange(2, 9) for _ in range(3))
    a, axis, norm = numbers(shape, code), choice.randrange(-3, 3), choice.choice(["backward", "ortho", "forward"])
    n = choice.choice([None, choice.randrange(1, 12)])
    x, options = own(a), {"n": n, "axis": axis, "norm": norm}
    names = ["fft", "ifft", "hfft", "irfft"] + ["rfft", "ihfft"] * (code in "fd")
    for name in names:
        made = getattr(knp.fft, name)(x, **options)
        near(made, getattr(np.fft, name)(a, **options), (name, options), code)
        assert made.dtype.itemsize == np.dtype(code).itemsize * (1 + (code in "fd")) // (1 + (name in ("hfft", "irfft"))), (name, code)
    axes = choice.sample(range(3), 2)
    s = choice.choice([None, (3, 6)])
    for name in ["fftn", "ifftn", "irfftn"] + ["rfftn"] * (code in "fd"):
        options = {"s": s, "axes": axes, "norm": norm}
        near(getattr(knp.fft, name)(x, **options), getattr(np.fft, name)(a, **options), (name, options), code)
    near(knp.fft.fftn(x), np.fft.fftn(a), "fftn of all axes", code)
    near(knp.fft.fftshift(x, axes=axes), np.fft.fftshift(a, axes=axes), "fftshift", code)
    near(knp.fft.ifftshift(x), np.fft.ifftshift(a), "ifftshift", code)
for n in (1, 2, 7, 8):
    near(knp.fft.fftfreq(n, d=0.3, device=DEVICE), np.fft.fftfreq(n, 0.3), ("fftfreq", n), "d")
    near(knp.fft.rfftfreq(n, d=0.3, device=DEVICE), np.fft.rfftfreq(n, 0.3), ("rfftfreq", n), "d")
assert knp.fft.fftfreq(4, dtype=knp.float32).dtype == "f32"
near(knp.fft.fft(knp.arange(5, device=DEVICE)), np.fft.fft(np.arange(5)), "integers", "d")
refused(lambda: knp.fft.fft(knp.ones(3), n=0), ValueError, "fft: a transform must have at least one element, not 0")
refused(lambda: knp.fft.rfft(knp.ones(3, dtype="c64")), TypeError, "rfft does not support arrays of complex64")
refused(lambda: knp.fft.fft(knp.ones(3), norm="all"), ValueError, 'fft: norm must be "backward", "ortho" or "forward"')
refused(lambda: knp.fft.fft(knp.ones(3), axis=1), ValueError, "axis 1 is out of bounds")
