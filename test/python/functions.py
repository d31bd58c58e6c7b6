# RUN: %kjit-python %s
"""Functions as launch arguments: the kernel computes what NumPy computes with the same function. Equal functions share
one compiled kernel, and only a few different ones are kept. Objects that cannot be called are rejected with a message
in Python's terms."""
import functools
import gc
import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import weakref

import kjit
import kjit.cuda
import numpy as np
import seeds

random = seeds.fresh_generator()


def refused(kind, function, message):
    try:
        function()
    except kind as error:
        assert message in str(error), (message, str(error))
    else:
        raise AssertionError("not refused: " + message)


@kjit.jit
def apply(f, r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = f(x[i])


@kjit.jit
def fold(r, x, join, first=0.0, through=abs):
    if kjit.threadIdx.x == 0:
        total = first
        for i in range(len(x)):
            total = join(total, through(x[i]))
        r[0] = total


@kjit.func
def half(v):
    return v * 0.5


@kjit.njit
def third(v):
    return v / 3


def square(v):
    return v * v


def twice(f, v):
    return f(f(v))


@kjit.jit
def apply_twice(f, r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = twice(f, x[i])


def shifted(by, after=None):
    return (lambda v: v + by) if after is None else (lambda v: after(v) + by)


x, r = random.uniform(0.1, 3, 200), np.zeros(200)
for f in (square, half, third, lambda v: half(v) + 1, shifted(2), shifted(2.5, square), shifted(1, shifted(3, half)), abs):
    apply(f, r, x)
    np.testing.assert_allclose(r, [f(v) for v in x], rtol=1e-14)
for f in (math.sqrt, np.sin, np.exp, math.floor):
    apply[1, 64](f, r, x)
    np.testing.assert_allclose(r, [f(v) for v in x], rtol=1e-14)
apply(kjit.rsqrt, r, x)
np.testing.assert_allclose(r, 1 / np.sqrt(x), rtol=1e-13)
apply_twice(square, r, x)
np.testing.assert_allclose(r, x**4, rtol=1e-14)
sum_ = np.zeros(1)
fold[1, 32](sum_, -x, lambda a, b: a + b)
np.testing.assert_allclose(sum_, x.sum(), rtol=1e-13)
fold[1, 32](sum_, x, join=max, through=half, first=np.float64(-1))
np.testing.assert_allclose(sum_, x.max() / 2)
fold[1, 32](sum_, x, max, 1e9)
assert sum_[0] == 1e9

# The same code with the same captured values is the same function. With other captured values, or values of another
# type, it is another function.


@kjit.jit
def fresh(f, r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = f(x[i])


for _ in range(3):
    for k in (1, 1.0, 2, True):
        fresh(shifted(k), r, x)
        np.testing.assert_array_equal(r, x + k)
        fresh(shifted(k, shifted(k)), r, x)
        np.testing.assert_array_equal(r, x + k + k)
assert len(fresh.specializations) == 8 and fresh.specializations[0]["launches"] == 3, fresh.specializations


def around():
    number = 1

    def change(to):
        nonlocal number
        number = to
    return change, lambda v: v * number


change, scaled = around()
for to in (2, 5, 2):  # the code around a function may change
    change(to)
    fresh(scaled, r, x)
    np.testing.assert_array_equal(r, x * to)


def with_default(v, n=3):
    return v - n


fresh(with_default, r, x)
np.testing.assert_array_equal(r, x - 3)
with_default.__defaults__ = (4,)
fresh(with_default, r, x)
np.testing.assert_array_equal(r, x - 4)

# Only a few specializations are kept, and they are freed with the kernel.


@kjit.jit
def kept(f, r):
    r[0] = f(r[0])


for k in range(300):
    if k in (0, 1, 298, 299):
        kept[1, 1](shifted(k), r)
    else:
        refused(kjit.Error, lambda k=k: kept[1, 1](shifted(k, shifted("no number")), r), "")
assert len(kept._variants) == 256 and len(kept.specializations) == 2
gone = weakref.ref(kept)
del kept
gc.collect()
assert gone() is None

# Threads.
problems = []


def from_thread(k):
    try:
        mine = np.zeros(200)
        for n in range(30):
            fresh(shifted(k), mine, x)
            np.testing.assert_array_equal(mine, x + k)
    except BaseException as error:
        problems.append(error)


threads = [threading.Thread(target=from_thread, args=(k % 4 + 0.5,)) for k in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not problems, problems[0]

# Objects that are not functions, or functions that a kernel cannot call.
for thing in (3, 2.5, None, object(), functools.partial(square), [1].append, print, np.add.reduce, sorted, x, int, Exception):
    refused((kjit.Error, TypeError), lambda thing=thing: apply(thing, r, x), "")
refused(kjit.SourceError, lambda: apply(3, r, x), "`f` is called, but its argument is not a function")
refused(kjit.SourceError, lambda: apply(functools.partial(square), r, x), "`f` is called, but its argument is not a function")
refused(kjit.SourceError, lambda: apply(apply, r, x), "a kernel cannot call a kernel")
refused(kjit.TypingError, lambda: apply(max, r, x), "takes 2 arguments")
refused(TypeError, lambda: apply((square,), r, x), "pass it to the kernel as a separate argument")
refused(kjit.SourceError, lambda: apply(lambda v: open(v), r, x), "kernels reach no files")
refused(kjit.SourceError, lambda: apply(lambda v: undefined(v), r, x), "`undefined` is not defined")  # noqa: F821
refused(TypeError, lambda: apply(square, r), "missing")


@kjit.jit
def annotated(f: kjit.f32[:], g: kjit.const, r):
    r[0] = g(f[0])


annotated[1, 1](np.float32([3]), square, r)
assert r[0] == 9
refused(kjit.SourceError, lambda: annotated[1, 1](square, square, r), "but the launch passes a function")


class Callable(np.ndarray):
    def __call__(self):
        return 1


apply(square, r.view(Callable), x.view(Callable))  # is still an array
np.testing.assert_array_equal(r, x * x)

# Pickles both, and loads them in another process.
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "x"), "wb") as file:
        pickle.dump((apply, fold, half), file)
    subprocess.run([sys.executable, "-c", """
import pickle, sys, numpy as np
apply, fold, half = pickle.load(open(sys.argv[1], "rb"))
r = np.zeros(3)
apply(half, r, np.arange(3.0))
assert r.tolist() == [0, 0.5, 1]
def own(v): return v + 1
import kjit, linecache
kjit.keep_sources()
# Python 3.13 keeps the text of -c under the name <string>, which the text below has, too.
text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
linecache.cache["<string>"] = len(text), None, text.splitlines(True), "<string>"
space = {}
exec("def own(v):\\n    return v + 1\\n", space)
apply(space["own"], r, np.arange(3.0))
assert r.tolist() == [1, 2, 3]
""", os.path.join(folder, "x")], check=True)


# A process that loads a pickle again gets the same object, which is compiled once. Until the first compilation a pickle has the
# values of the globals at the time when it was made.
def make_pickled(a, decorate):
    @decorate
    def pickled(r, x):
        r[0] = x[0] + a + OFFSET

    return pickled


OFFSET = 1
for decorate in (kjit.jit, kjit.cuda.jit):
    one, other = make_pickled(5, decorate), make_pickled(6, decorate)
    first = pickle.dumps(one)
    OFFSET = 2
    second = pickle.dumps(one)
    loaded = [pickle.loads(text) for text in (first, first, second, pickle.dumps(other))]
    assert loaded[0] is loaded[1] and len({id(k) for k in loaded}) == 3 and one not in loaded
    for kernel, wanted in zip(loaded, (6, 6, 7, 8)):
        r = np.zeros(1)
        kernel[1, 1](r, np.zeros(1))
        assert r[0] == wanted, (decorate, r, wanted)
    one[1, 1](r, np.zeros(1))
    OFFSET = 1
    assert pickle.loads(pickle.dumps(one)) is pickle.loads(pickle.dumps(one))
print("functions: good", file=sys.stderr)
