# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""The functions of einops (PyPI) on kjit arrays have the same results as on NumPy arrays: einops.array_api, and einops
itself with kjit.einops."""

import sys

import kjit.numpy as knp
import numpy as np
import seeds

try:
    import einops
    import einops.array_api
except ImportError as error:
    print("skipped:", error)
    sys.exit()
seed = seeds.seed
generator = np.random.default_rng(seed)


def same(got, expected, what):
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), (seed, what)
        for each, wanted in zip(got, expected):
            same(each, wanted, what)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert isinstance(got, knp.ndarray), (seed, what, type(got))
        host = np.asarray(got)
        assert host.shape == expected.shape and host.dtype == expected.dtype, (seed, what, host.shape, expected.shape, host.dtype)
        assert np.allclose(host, expected, rtol=1e-5, atol=1e-6), (seed, what, host, expected)
    else:
        assert got == expected, (seed, what, got, expected)


def own(x):
    return knp.asarray(x) if isinstance(x, np.ndarray) else [knp.asarray(each) for each in x]


def check(call, *arrays, namespaces):
    expected = call(einops, *arrays)
    for namespace in namespaces:
        same(call(namespace, *map(own, arrays)), expected, namespace.__name__)


x = generator.random((2, 3, 4, 6)).astype("f4")
numbers = generator.integers(0, 9, (4, 6, 8))


def check_all(*namespaces):
    for pattern in ("b c h w -> b h w c", "b c h w -> (b c) (h w)", "... -> (...)", "b c h w -> b 1 c h w", "b c h w -> w h c b"):
        check(lambda e, a: e.rearrange(a, pattern), x, namespaces=namespaces)
    check(lambda e, a: e.rearrange(a, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3), x, namespaces=namespaces)
    check(lambda e, a: e.rearrange(a, "b h w -> h b w"), [x[0, 0], x[1, 1], x[0, 2]], namespaces=namespaces)
    for reduction in ("mean", "max", "min", "sum", "prod"):
        check(lambda e, a: e.reduce(a, "b c (h p) (w q) -> b c h w", reduction, p=2, q=2), x, namespaces=namespaces)
        check(lambda e, a: e.reduce(a, "b c h w ->", reduction), x, namespaces=namespaces)
    for reduction in ("max", "min", "sum", "prod"):
        check(lambda e, a: e.reduce(a, "a b c -> a 1 c", reduction), numbers, namespaces=namespaces)
    for reduction in ("any", "all"):
        check(lambda e, a: e.reduce(a, "a b c -> c a", reduction), numbers > 1, namespaces=namespaces)
    check(lambda e, a: e.repeat(a, "b c h w -> b c (h 2) (w r)", r=3), x, namespaces=namespaces)
    check(lambda e, a: e.repeat(a, "a b c -> n a b c", n=5), numbers, namespaces=namespaces)
    check(lambda e, a, b: e.pack([a, b], "h w *"), x[0, 0][:, :, None] * np.ones(3, "f4"), x[0, 1], namespaces=namespaces)
    check(lambda e, a: e.unpack(a, [(3,), (), (2, 2)], "h * w"), generator.random((4, 8, 5)), namespaces=namespaces)


check_all(einops.array_api)
try:
    einops.rearrange(knp.asarray(x), "b c h w -> b (c h w)")
except RuntimeError as error:
    assert "unknown to einops" in str(error), error
else:
    raise AssertionError("einops has a backend for kjit: kjit.einops and its documentation are not needed")

import kjit.einops  # noqa: E402, F401

check_all(einops, einops.array_api)
check(lambda e, a, b: e.einsum(a, b, "b c h w, a w k -> b a k"), x, numbers[:, :, :5].astype("f4"), namespaces=[einops])
check(lambda e, a: e.einsum(a, "b c h w -> w b"), x, namespaces=[einops])
check(lambda e, a: e.einsum(a, a, "i j k, i j k -> "), numbers, namespaces=[einops])
assert einops.parse_shape(knp.asarray(x), "b c h w") == {"b": 2, "c": 3, "h": 4, "w": 6}
same(einops.asnumpy(knp.asarray(x)) is not None, True, "asnumpy")
