# RUN: %kjit-python %s
"""kjit.numpy and the operators of kjit.Array against NumPy, on random arrays, views that share memory, and updates in place."""
import copy
import os
import pickle
import random
import sys

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
choice, generator = random.Random(seed), np.random.default_rng(seed)


def same(got, expected, what):
    """Requires equal bits for integers and bools, a small difference for floats, and equal types and shapes."""
    expected = np.asarray(expected)
    host = got.to_host() if isinstance(got, kjit.Array) else np.asarray(got)
    assert host.shape == expected.shape, (seed, what, host.shape, expected.shape)
    assert host.dtype == expected.dtype, (seed, what, host.dtype, expected.dtype)
    if host.dtype.kind in "biu":
        assert (host == expected).all(), (seed, what, host, expected)
    else:
        bound = 1e-5 if host.dtype.itemsize // (1 + (host.dtype.kind == "c")) == 4 else 1e-12
        assert np.allclose(host, expected, rtol=bound, atol=bound, equal_nan=True), (seed, what, host, expected)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


def numbers(shape, dtype):
    if np.dtype(dtype).kind == "b":
        return generator.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0 if np.dtype(dtype).kind == "u" else -100, 100, shape).astype(dtype)
    return (generator.random(shape) * 4 - 2).astype(dtype)


def pair(shape, dtype):
    host = np.asarray(numbers(shape, dtype))
    return host, kjit.array(host)


# ---- operators: types, broadcasting, numbers of Python ----

OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<": lambda a, b: a < b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, ">=": lambda a, b: a >= b,
}
INTEGERS = {"&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b}
SHAPES = [((3, 4), (3, 4)), ((3, 1), (4,)), ((1,), (2, 3)), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1))]
for first, second, result in [("i1", "i4", "i4"), ("u1", "i1", "i2"), ("u4", "i2", "i8"), ("f4", "f8", "f8"), ("f4", "f4", "f4"), ("c8", "f4", "c8"), ("?", "?", "?"),
                              ("i1", "f2", "f2"), ("i2", "f2", "f4"), ("i4", "f4", "f8"), ("u8", "i8", "f8"), ("u1", "c8", "c8"), ("?", "i2", "i2")]:
    shapes = choice.choice(SHAPES)
    (x, own_x), (y, own_y) = pair(shapes[0], first), pair(shapes[1], second)
    for name, operator in (OPERATORS | (INTEGERS if np.dtype(result).kind in "biu" else {})).items():
        if result == "?" and name == "-" or result == "c8" and name in "<>=" or result == "f2":
            continue
        same(operator(own_x, own_y), operator(x, y), (name, first, second, shapes))
for dtype, number in [("i1", 5), ("u8", 2**63 + 5), ("f4", 0.1), ("f4", 3), ("i4", 2.5), ("c8", 1.5), ("f4", 1 + 2j), ("?", True)]:
    x, own = pair((5,), dtype)
    for name in "+*":
        expected = OPERATORS[name](x, np.array(number, x.dtype if np.dtype(dtype).kind == np.array(number).dtype.kind or dtype != "i4" and dtype != "f4" else None))
        if dtype == "f4":
            expected = OPERATORS[name](x, np.complex64(number) if isinstance(number, complex) else np.float32(number))
        same(OPERATORS[name](own, number), expected, (name, dtype, number))
        same(OPERATORS[name](number, own), expected, (name, number, dtype))
x, own = pair((6,), "f8")
same(own + np.float64(2), x + 2, "a scalar of NumPy")
same(own + x, x + x, "an array of NumPy")
same(own**2, x**2, "square")
same(abs(own) ** 0.5, abs(x) ** 0.5, "root")
same(-own / 3, -x / 3, "negative")
same(own // 0.7, x // 0.7, "floor_divide")
same(own % 0.7, x % 0.7, "remainder")
same(1 - own, 1 - x, "a number on the left")
same(knp.where(own > 0, own, 0), np.where(x > 0, x, 0), "where")
same(knp.clip(own, -1, 0.5), np.clip(x, -1, 0.5), "clip")
for name in "exp sin arctan tanh log1p floor sign isnan signbit square".split():
    same(getattr(knp, name)(own / 4), getattr(np, name)(x / 4), name)
out = kjit.zeros(6)
assert knp.add(own, 1, out=out) is out
same(out, x + 1, "out")
knp.multiply(own, 2, out=out, where=own > 0)
same(out, np.where(x > 0, x * 2, x + 1), "where=")

# ---- updates in place, and operands that share memory ----


def steps(a):
    """Returns views with the same shape on an array with 24 elements."""
    return [a[:12], a[12:], a[6:18], a[::2], a[::-2], a[1::2], a[11::-1]]


for round_ in range(60):
    x, own = pair((24,), choice.choice(["i4", "f8"]))
    for _ in range(4):
        i, j, k = (choice.randrange(7) for _ in range(3))
        kind = choice.randrange(4)
        for a in (x, own):
            views = steps(a)
            if kind == 0:
                views[i][...] = views[j] + views[k]
            elif kind == 1:
                # NumPy's own assignment x[1::2] = x[6:18] reads elements after it has changed them.
                views[i][:] = views[j].copy() if a is x else views[j]
            elif kind == 2:
                views[i] += views[j]
            else:
                views[i] *= 2
        same(own, x, ("aliases", round_, kind, i, j, k))
m, own_m = pair((5, 5), "f8")
m += m.T
own_m += own_m.T
same(own_m, m, "m += m.T")
m[1:], own_m[1:] = m[:-1], own_m[:-1]
same(own_m, m, "rows that overlap")

# ---- indexing ----


def random_key(shape):
    """Returns a NumPy key for a shape: integers, slices, None, ..., integer arrays, masks."""
    key, used, has_dots = [], 0, False
    size = choice.choice([1, 2, 3])
    while used < len(shape):
        kind = choice.randrange(7)
        extent = shape[used]
        if kind == 0:
            key.append(choice.randrange(-extent, extent))
        elif kind == 1:
            step = choice.choice([1, 2, -1, -2])
            ends = [choice.choice([None, choice.randrange(-extent - 1, extent + 2)]) for _ in range(2)]
            key.append(slice(*ends, step))
        elif kind == 2:
            key.append(None)
            continue
        elif kind == 3 and not has_dots:
            key.append(Ellipsis)
            has_dots = True
            break
        elif kind == 4:
            key.append(generator.integers(-extent, extent, choice.choice([(size,), (1,), (2, size)])))
        elif kind == 5:
            mask = np.zeros(extent, bool)
            mask[generator.permutation(extent)[:size]] = True
            key.append(mask)
        else:
            break
        used += 1
    return tuple(key)


def own_key(key):
    return tuple(kjit.array(item) if isinstance(item, np.ndarray) and choice.random() < 0.7 else item for item in key)


# Keys of the same form share code. The number of key shapes is small so that the test is quick.
for round_ in range(60):
    x, own = pair((4, 3, 5), "i4")
    key = random_key(x.shape)
    try:
        expected = x[key]
    except IndexError:
        continue
    if expected.ndim > 8:  # the maximum number of dimensions of a kjit array
        continue
    same(own[own_key(key)], expected, ("get", key))
    if any(isinstance(item, np.ndarray) and item.dtype != bool for item in key):
        value = choice.randrange(100)  # an element may be selected twice
    else:
        value = numbers(expected.shape, "i4") if choice.random() < 0.5 else choice.randrange(100)
    x[key] = value
    own[own_key(key)] = kjit.array(value) if isinstance(value, np.ndarray) else value
    same(own, x, ("set", key, value))
x, own = pair((3, 4), "f8")
same(own[own > 0], x[x > 0], "a mask")
own[own > 0] = 0
x[x > 0] = 0
same(own, x, "a number through a mask")
own[own < -1] = kjit.array(np.arange(float((x < -1).sum())))
x[x < -1] = np.arange(float((x < -1).sum()))
same(own, x, "values through a mask")
same(own[[2, 0], 1:3], x[[2, 0], 1:3], "a list")
index = np.array([[0, 2, 1, 0]])
same(knp.take_along_axis(own, kjit.array(index), axis=0), np.take_along_axis(x, index, 0), "take_along_axis")
same(knp.take(own, kjit.array(np.array([-1, 0])), axis=1), np.take(x, [-1, 0], 1), "take")
own[own[:, 0] > 100] = 1  # no element
refused(lambda: own[:, 4], IndexError, "out of bounds")
refused(lambda: own[kjit.array(np.array([0, 3]))], IndexError, "out of bounds")
refused(lambda: own.__setitem__(kjit.array(np.array([-4])), 1), IndexError, "out of bounds")
same(own, x, "nothing was stored")
refused(lambda: own[kjit.array(np.zeros(4, bool))], IndexError, "mask")
refused(lambda: own[0.5], IndexError, "an index must be")
refused(lambda: own.__setitem__(0, np.zeros(3)), ValueError, "broadcast")
refused(lambda: knp.broadcast_to(own, (2, 3, 4)).__setitem__(0, 1), ValueError, "read-only")

# ---- manipulation ----

x, own = pair((2, 3, 4), "f4")
for name, function in {
    "reshape": lambda a, p: p.reshape(a, (4, -1)), "of a view": lambda a, p: p.reshape(a.transpose((2, 0, 1)), (8, 3)), "roll": lambda a, p: p.roll(a, 2, axis=1),
    "rolled whole": lambda a, p: p.roll(a, -5), "flip": lambda a, p: p.flip(a, axis=(0, 2)), "moveaxis": lambda a, p: p.moveaxis(a, 0, -1),
    "repeat": lambda a, p: p.repeat(a, 3, axis=1), "tile": lambda a, p: p.tile(a, (2, 1, 1, 2)), "stack": lambda a, p: p.stack([a, a + 1], axis=1),
    "concat": lambda a, p: p.concatenate([a, a[:1]], axis=0), "tril": lambda a, p: p.tril(a, k=1), "triu": lambda a, p: p.triu(a, k=-1), "squeeze": lambda a, p: p.squeeze(a[:, :1]),
    "expand_dims": lambda a, p: p.expand_dims(a, (0, 3)), "broadcast": lambda a, p: p.broadcast_to(a, (2, 2, 3, 4)) * 2, "diff": lambda a, p: p.diff(a, axis=1),
    "swapaxes": lambda a, p: p.swapaxes(a, 0, 2), "flatten": lambda a, p: a[:, ::-1].flatten(), "T": lambda a, p: a.T,
}.items():
    same(function(own, knp), function(x, np), name)
repeats = np.array([2, 0, 3])
same(knp.repeat(own, kjit.array(repeats), axis=1), np.repeat(x, repeats, axis=1), "repeat by an array")
assert own.reshape(6, 4)._relation(own[0]) and not own.transpose(2, 0, 1).reshape(-1)._relation(own)  # a view and a copy
view = own[0]
view[0, 0] = 7
assert own[0, 0, 0] == 7
for start, stop, step in [(3, 20, 4), (20, 3, -4), (0.5, 4, 0.25), (5, 5, 1)]:
    same(knp.arange(start, stop, step), np.arange(start, stop, step), "arange")
same(knp.linspace(0, 3, 7, dtype="f32"), np.linspace(0, 3, 7, dtype="f4"), "linspace")
same(knp.eye(3, 4, k=1, dtype="i32"), np.eye(3, 4, 1, "i4"), "eye")
for got, expected in zip(knp.meshgrid(knp.arange(3), knp.arange(2)), np.meshgrid(np.arange(3), np.arange(2))):
    same(got, expected, "meshgrid")

# ---- reductions, orders, products ----

x, own = pair((3, 4, 5), "f8")
for axis in (None, 1, (0, 2), -1):
    for name in ("sum", "mean", "max", "std", "all"):
        same(getattr(own, name)(axis=axis), getattr(x, name)(axis=axis), (name, axis))
        same(getattr(knp, name)(own, axis=axis, keepdims=True), getattr(x, name)(axis=axis, keepdims=True), (name, axis))
same(own.var(axis=1, correction=1), x.var(axis=1, ddof=1), "var")
same(kjit.array(np.full(10, 100, "i1")).sum(), np.full(10, 100, "i1").sum(), "sums of int8")
same(knp.sum(own, dtype="f32"), x.sum(dtype="f4"), "dtype")
same(knp.cumulative_sum(own, axis=1, include_initial=True)[:, 1:], x.cumsum(1), "cumulative_sum")
same(own.argmax(axis=2), x.argmax(2), "argmax")
same(knp.count_nonzero(own > 0, axis=0), np.count_nonzero(x > 0, axis=0), "count_nonzero")
refused(lambda: own[:0].max(), ValueError, "without elements")
refused(lambda: own.sum(axis=3), IndexError, "out of bounds")
refused(lambda: own.sum(axis=(0, 0)), ValueError, "twice")
x, own = pair((50,), "i1")
same(knp.sort(own), np.sort(x), "sort")
same(knp.argsort(own, descending=True), np.argsort(-x.astype("i8"), kind="stable"), "argsort")
values, first, inverse, counts = np.unique(x, True, True, True)
for got, expected in zip(knp.unique_all(own), (values, first, inverse, counts)):
    same(got, expected, "unique_all")
same(knp.searchsorted(knp.sort(own), own, side="right"), np.searchsorted(np.sort(x), x, "right"), "searchsorted")
same(knp.isin(own, own[:5]), np.isin(x, x[:5]), "isin")
same(knp.nonzero(own.reshape(5, 10))[1], np.nonzero(x.reshape(5, 10))[1], "nonzero")
z = (numbers(20, "f8").round() + 1j * numbers(20, "f8").round())
same(knp.sort(kjit.array(z)), np.sort(z), "complex numbers in order")
(a, own_a), (b, own_b) = pair((3, 4), "f8"), pair((4, 2), "f8")
same(own_a @ own_b, a @ b, "matmul")
same(own_a @ own_b[:, 0], a @ b[:, 0], "a vector")
same(knp.tensordot(own_a, own_a, axes=((0,), (0,))), np.tensordot(a, a, ((0,), (0,))), "tensordot")
same(knp.vecdot(own_a, own_a), (a * a).sum(1), "vecdot")
refused(lambda: own_b @ own_a[:, :3], ValueError, "do not fit")

# ---- types, numbers of Python, text, copies ----

x = kjit.array(np.arange(3, dtype="f4"))
assert x.dtype == knp.float32 == np.float32 and x.dtype == "f32" and np.dtype(x.dtype) == np.float32 and x.dtype.name == "float32"
assert {x.dtype: 1}["f32"] == 1 and knp.isdtype(x.dtype, "real floating") and knp.result_type(x, 1) == knp.float32
refused(lambda: x.astype("bf16") + kjit.array(np.arange(3)), TypeError, "bfloat16 and int64 have no common data type")
refused(lambda: knp.zeros(3, "i8"), TypeError, '"int8" or "int64"')
refused(lambda: x & 1, TypeError, "bitwise_and")
refused(lambda: kjit.array(np.zeros(2, "u1")) + 300, OverflowError, "out of bounds")
refused(lambda: x + kjit.zeros(4, "f32"), ValueError, "could not be broadcast together with shapes (3,) (4,)")
refused(lambda: x.__iadd__(kjit.zeros((2, 3), "f32")), ValueError, "shape")
refused(lambda: kjit.array(np.zeros(3, "i4")).__iadd__(0.5), TypeError, "cannot be cast")
refused(lambda: bool(x), ValueError, "ambiguous")
assert [float(v) for v in x] == [0, 1, 2] and len(x) == 3 and 2 in x and 5 not in x and [10, 20, 30][kjit.array(np.array(1))] == 20
assert x.nbytes == 12 and x[::2].strides == (8,) and x.tolist() == [0, 1, 2] and f"{x[1]:.2f}" == "1.00" and complex(x[2]) == 2
assert repr(x) == "array([0., 1., 2.], dtype=float32)" and str(x) == str(x.to_host()), repr(x)
large = knp.arange(10**6).reshape((1000, 1000))
assert str(large) == str(large.to_host()) and "..." in repr(large) and "<td>" in x._repr_html_()
for other in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), x.copy(), x.astype("f32")):
    assert (other == x).all() and not other._relation(x)
assert x.astype("f32", copy=False) is x and x.to_device("cpu") is x and x.astype(knp.int8).dtype == knp.int8
x.fill(3)
assert x.tolist() == [3, 3, 3] and x.__array_namespace__() is knp and "cpu" in knp.__array_namespace_info__().devices()
half = kjit.array(np.array([1, 2.5], "f2"))
same(half * 2 + 1, np.array([3, 6], "f2"), "float16")
np.asarray(x)[0] = 9
assert np.from_dlpack(x)[0] == x[0] == 9
print("array operations: good", file=sys.stderr)
