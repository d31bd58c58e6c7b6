# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Results of 32 MiB and more, which loops write past the caches where they can: every byte is NumPy's, no byte next to the result
changes, and small results run other code.

    KJIT_TEST_SEED=7 python3 test/python/large_results.py     # repeats a run"""
import platform
import random

import kjit
import kjit.numpy as knp
import numpy as np
import seeds

LARGE = 1 << 25
seed = seeds.seed
print("seed", seed)
choice, generator = random.Random(seed), np.random.default_rng(seed)
GUARD = 256
memory = {name: np.empty(LARGE + (1 << 20) + 2 * GUARD, np.uint8) for name in "rsxy"}
for each in memory.values():
    each[:] = np.resize(generator.integers(0, 256, 1 << 20, dtype=np.uint8), each.size)


@kjit.jit
def add(r, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + y[i]


@kjit.jit
def add_rows(r, x, y):
    for i, j in kjit.grid_range(r.shape):
        r[i, j] = x[i, j] + y[i, j]


@kjit.jit
def two(r, s, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + x[i]
        s[i] = x[i] * x[i]


@kjit.jit
def double(r):
    for i in kjit.grid_range(len(r)):
        r[i] = r[i] + r[i]


def array(name, dtype, count):
    """Returns an array in this kind of memory, at a random multiple of the element size."""
    size = np.dtype(dtype).itemsize
    whole = memory[name]
    at = GUARD + -(whole.ctypes.data + GUARD) % size + size * choice.randrange(1 + GUARD // 2 // size)
    return whole[at : at + count * size].view(dtype)


def count_of(dtype):
    """Returns a number of elements with at least LARGE bytes, sometimes the smallest one."""
    size = np.dtype(dtype).itemsize
    return -(-LARGE // size) + choice.choice((0, choice.randrange(200), choice.randrange((1 << 19) // size)))


def check(call, results):
    """Makes each call and compares its result, and the bytes around the result, with a copy that NumPy has changed."""
    expected = {}
    for name, (result, values) in results.items():
        whole = memory[name].copy()
        at = result.ctypes.data - memory[name].ctypes.data
        whole[at : at + result.nbytes] = values.reshape(-1).view(np.uint8)
        expected[name] = whole
    call()
    for name, whole in expected.items():
        assert np.array_equal(memory[name], whole), (name, results[name][0].dtype, results[name][0].shape)


DTYPES = [np.uint8, np.int16, np.float32, np.float64, np.int64]


def finite(x):
    """Replaces numbers that are not finite, because sums of NaNs may have other bits."""
    if x.dtype.kind == "f":
        np.nan_to_num(x, copy=False)
    return x


with np.errstate(all="ignore"):
    for dtype in choice.sample(DTYPES, 3):
        n = count_of(dtype)
        r, x, y = array("r", dtype, n), finite(array("x", dtype, n)), finite(array("y", dtype, n))
        check(lambda: add(r, x, y), {"r": (r, x + y)})
        assert np.array_equal(np.asarray(knp.asarray(x) + knp.asarray(y)), x + y), dtype
        small = r[: choice.randrange(1, 5000)]
        check(lambda: add(small, x, y), {"r": (small, x[: len(small)] + y[: len(small)])})
        check(lambda: double(x), {"x": (x, x + x)})

    # Rows whose length is not a multiple of a vector, and a result that is also an argument.
    dtype = choice.choice(DTYPES)
    width = choice.randrange(3000, 5000)
    rows = LARGE // np.dtype(dtype).itemsize // width + 1
    r, x, y = (finite(array(name, dtype, rows * width)).reshape(rows, width) for name in "rxy")
    check(lambda: add_rows(r, x, y), {"r": (r, x + y)})
    x, y = x.reshape(-1), y.reshape(-1)
    check(lambda: add(x, x, y), {"x": (x, x + y)})
    n = count_of(np.float32)
    r, s, x = array("r", np.float32, n), array("s", np.float32, n + 3), finite(array("x", np.float32, n))
    check(lambda: two(r, s, x), {"r": (r, x + x), "s": (s[:n], x * x)})

    # Formulas write to out=.
    n = count_of(np.float64)
    r, x, y = array("r", np.float64, n), finite(array("x", np.float64, n)), finite(array("y", np.float64, n))
    check(lambda: kjit.eval("where(a > b, a, b)", {"a": x, "b": y}, out=r), {"r": (r, np.where(x > y, x, y))})



def code_after(n):
    """The facts and the assembly of a new kernel after its first launch, with n elements."""

    @kjit.jit
    def triple(r, x):
        for i in kjit.grid_range(len(r)):
            r[i] = x[i] * 3

    r, x = np.empty(n, np.float32), np.ones(n, np.float32)
    triple(r, x)
    assert (r == 3).all()
    return triple.specializations[-1]["facts"], triple.inspect("asm", lines=False)


facts, text = code_after(LARGE // 4)
is_x86 = platform.machine() == "x86_64"
assert ("large(r)" in facts and "large(r, x)" not in facts) == is_x86, facts
assert ("movnt" in text and "sfence" in text) == is_x86, text
facts, text = code_after(LARGE // 4 - 1)
assert "large" not in facts and "movnt" not in text, facts

# A launch runs the code for its own size, also after launches of the other size, with arrays of NumPy and of kjit. An argument that
# the kernel only reads makes no difference.
@kjit.jit
def copy(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i]


x = np.ones(LARGE // 4, np.float32)
for make in (lambda a: a, knp.asarray):
    before = sum(each["launches"] for each in copy.specializations)
    results = [make(np.zeros(n, np.float32)) for n in (len(x), 100)]
    given = make(x)
    for _ in range(5):
        for r in results:
            copy(r, given)
    assert all((np.asarray(r) == 1).all() for r in results)
    launches = {"large" in each["facts"]: each["launches"] for each in copy.specializations}
    assert sum(launches.values()) == before + 10, copy.specializations
    if is_x86:
        assert len(copy.specializations) == 2 and launches[True] == launches[False], copy.specializations
print("large results: ok")
