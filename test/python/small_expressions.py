# RUN: %kjit-python %s
"""Expressions of small arrays on the CPU, which the extension computes by C functions: every result has the bits of NumPy's.

    KJIT_TEST_SEED=7 python3 test/python/small_expressions.py     # repeats a run"""
import os
import random
import threading

os.environ["KJIT_DEVICE"] = "cpu"
os.environ.pop("KJIT_FUSE", None)
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402
from kjit import _kjit  # noqa: E402

seed = seeds.seed
generator, choice = np.random.default_rng(seed), random.Random(seed)
np.seterr(all="ignore")


def numbers(size, dtype):
    """Returns random elements, including special values."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.random(size) < 0.5
    if kind in "iu":
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, 0, 1, limits.max // 2]
        x = generator.integers(limits.min, limits.max, size, dtype, endpoint=True)
    else:
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, np.finfo(dtype).tiny / 8, np.finfo(dtype).max]
        x = (generator.standard_normal(size) * 100).astype(dtype)
    places = generator.random(size) < 0.2
    return np.where(places, np.asarray(generator.choice(special, size)).astype(dtype), x)


def bits(x):
    """Returns the bits of the elements. All NaNs count as one value."""
    x = np.asarray(x)
    return np.where(np.isnan(x), np.zeros((), x.dtype), x).tobytes() + np.isnan(x).tobytes() if x.dtype.kind == "f" else x.tobytes()


def same(got, expected, what):
    host, expected = got.to_host(), np.asarray(expected)
    if "imum" in str(what):  # NumPy's choice between -0 and 0 depends on the position
        host, expected = host + 0, expected + 0
    assert host.dtype == expected.dtype and host.shape == expected.shape, (seed, what, host.dtype, expected.dtype, host.shape, expected.shape)
    assert bits(host) == bits(expected), (seed, what, host, expected)


def heat(call):
    """Repeats a call until its expression can have a C function. Returns whether it has one."""
    for _ in range(5):
        for _ in range(40):
            knp.compute(call())
        knp._fusing.wait()
    key = _kjit.collect(call())[0]
    return _kjit.has_function(knp._fusing.FUNCTIONS[key])


# Expressions that take two arrays of one type. NumPy computes the same text with the module np as xp.
FLOATS = """x + y; x - y; x * y; x / y; -x; abs(x); x < y; x == y; xp.sqrt(x); x * 2.5 - y; (x + y) * (x - y) / 3; xp.maximum(x, y); xp.minimum(x, 0.5);
xp.where(x > y, x, y * 2); xp.floor(x); xp.trunc(x) + y; xp.isnan(x); xp.isfinite(x / y); xp.copysign(x, y); xp.square(x) + 1; 1.1 - x; 0.1 / y; xp.rint(x)"""
INTEGERS = """x + y; x - y; x * y; x & y; x | 3; x ^ y; ~x; x <= y; x != 7; xp.maximum(x, y); x * 5 - y; xp.where(x > y, x, y); (x + y) * (x - y) + 1; xp.square(x) - 2"""
BOOLS = "x & y; x | y; x ^ y; ~x; x == y; xp.logical_xor(x, y); xp.where(x, y, x)"
TYPES = {"f4": FLOATS, "f8": FLOATS, "i4": INTEGERS, "i8": INTEGERS, "u1": INTEGERS, "u2": INTEGERS, "u8": INTEGERS, "i1": INTEGERS, "bool": BOOLS}
for dtype, texts in TYPES.items():
    for text in choice.sample(texts.split(";"), 5):
        text = text.strip()
        function = eval(f"lambda x, y, xp: {text}")
        x, y = numbers(90, dtype), numbers(90, dtype)
        own = knp.asarray(x, copy=True), knp.asarray(y, copy=True)
        before = function(*own, knp)
        same(before, function(x, y, np), (dtype, text, "before"))
        assert heat(lambda: function(*own, knp)), (seed, dtype, text)
        assert bits(function(*own, knp).to_host()) == bits(before.to_host()), (seed, dtype, text, "the func and the C function differ")
        for _ in range(12):
            # other sizes, gaps, orders, broadcasting, offsets
            size = choice.choice((1, 2, 3, 17, 64, 255, 1000, 1 << 14, 40000))
            a, b = numbers(size, dtype), numbers(size, dtype)
            form = choice.randrange(8)
            pair = [knp.asarray(a, copy=True), knp.asarray(b, copy=True)]
            if form == 1:
                a, pair[0] = a[::-1], pair[0][::-1]
            elif form == 2:
                b, pair[1] = b[:1], pair[1][:1]
            elif form == 3:
                a, b, pair = a[1:], b[1:], [each[1:] for each in pair]
            elif form == 4 and size % 4 == 0:
                a, b, pair = a.reshape(4, -1), b.reshape(-1, 4).T, [pair[0].reshape(4, -1), pair[1].reshape(-1, 4).T]
            elif form == 5 and size % 2 == 0:
                a, b, pair = a[::2], b[1::2], [pair[0][::2], pair[1][1::2]]
            elif form == 6 and size % 4 == 0:
                a, b, pair = a.reshape(4, 1, -1), b.reshape(4, -1), [pair[0].reshape(4, 1, -1), pair[1].reshape(4, -1)] if size < 300 else pair
                if size >= 300:
                    a, b = a.reshape(-1), b.reshape(-1)
            elif form == 7:
                b, pair[1] = a, pair[0]
            same(function(*pair, knp), function(a, b, np), (dtype, text, form, size))

# A row that broadcasts has the same key as one that does not.
a, b = numbers((4, 15), "f8"), numbers(15, "f8")
x, y = knp.asarray(a, copy=True), knp.asarray(b, copy=True)
assert heat(lambda: x[:1] - y)
same(x[:1] - y, a[:1] - b, "one row")
same(x - y, a - b, "a row for each row")

# Updates in place and results in given arrays: aliases, overlaps, other types.
x, y = numbers(100, "f8"), numbers(100, "f8")
for text in ("x += y", "x[1:] += x[:-1]", "x[::-1] += x", "x *= x", "xp.add(x, y, out=x)", "xp.multiply(x, 3, out=y)", "xp.add(x, y, out=z)", "xp.add(z, 1, out=x)",
             "x[50:] -= x[:50]", "z += z", "xp.subtract(x[1:], x[:-1], out=x[:-1])", "x[::2] *= y[1::2]", "x += x.reshape(4, 25).T.reshape(100)"):  # fmt: skip
    host = {"x": x.copy(), "y": y.copy(), "z": y.astype("f4"), "xp": np}
    mine = {"xp": knp} | {name: knp.asarray(host[name], copy=True) for name in "xyz"}
    for turn in range(150):
        if turn % 50 == 49:
            knp._fusing.wait()
        if turn in (60, 120):
            for name in "xyz":
                host[name] = numbers(100, host[name].dtype)
                mine[name] = knp.asarray(host[name], copy=True)
        exec(text, host)
        exec(text, mine)
        if turn % 29 == 0:
            for name in "xyz":
                same(mine[name], host[name], (text, turn, name))

# Numbers: limits of types, NumPy numbers, and values that change between calls.
for dtype, values in {"u8": [0, 2**63 - 1, 2**63, 2**64 - 1, np.uint64(7)], "i1": [-128, 127, np.int8(-3)], "f4": [0.1, 3, np.float32(0.1), float("nan"), 1e300, -0.0], "f8": [0.1, 2**53 + 1]}.items():
    x = numbers(50, dtype)
    own = knp.asarray(x, copy=True)
    heat(lambda: own * values[0])
    for value in values + values[::-1]:
        same(own * value, x * np.asarray(value).astype(dtype), (dtype, value))
        same(value - own, np.asarray(value).astype(dtype) - x, (dtype, value, "reflected"))

# Vectorized C library functions can differ in their last bits, so no C function computes them. Large arrays use the
# func.
x = knp.asarray(numbers(100, "f8"))
assert not heat(lambda: knp.sin(x) + 1) and not heat(lambda: knp.pow(x, 2.5))
same(knp.asarray(np.ones(300000)) + 1, np.full(300000, 2.0), "large")

# NumPy memory is read at each call; threads share a C function; empty arrays and arrays without dimensions.
host = np.zeros(20)
shared = knp.from_dlpack(host)
for i in range(200):
    host[:] = i
    same(shared + shared, host + host, "shared")
a, b = numbers(500, "f4"), numbers(500, "f4")
x, y = knp.asarray(a, copy=True), knp.asarray(b, copy=True)
failed = []


def work():
    np.seterr(all="ignore")  # of this thread
    try:
        for _ in range(300):
            same(x * y, a * b, "a thread")
    except BaseException as error:
        failed.append(error)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
empty, point = knp.zeros((3, 0), dtype=knp.float32), knp.asarray(2.0)
for _ in range(150):
    same(empty * empty, np.zeros((3, 0), "f4"), "no elements")
    same(point + point, np.asarray(4.0), "no dimensions")

# A forked process has its own context, and computes none of its parent's pending arrays.
older, newer = knp.ones(3) + 1, knp.ones(3) + 2
child = os.fork()
if not child:
    try:
        _kjit.compute_all()
        p = knp.asarray(a, copy=True)
        for _ in range(100):
            same(p * p, a * a, "a forked process")
        own = p * p
        del newer
        _kjit.compute_all()
        assert not _kjit.is_pending(own), "a pending array of the forked process"
        os._exit(0)
    except BaseException as error:
        print(error)
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
