# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# A launch rejects an int that does not fit an integer type that the int meets in the kernel.
import random
import tempfile

import kjit
import numpy as np


@kjit.func
def inner(r, i, x):
    r[i] = x - 2


@kjit.func
def outer(r, i, x):
    inner(r, i, x)


@kjit.jit
def store(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] = n


@kjit.jit
def negate(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] = -n


@kjit.jit
def shift(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] = n + 3 if r[i] < 100 else 7


@kjit.jit
def call(r, n):
    for i in kjit.grid_range(len(r)):
        outer(r, i, n)


@kjit.jit
def both(r, n, m):
    for i in kjit.grid_range(len(r)):
        r[i] = n
        if r[i] > 3:
            r[i] = m - 1


def read_limits(kind):
    return np.iinfo(kind).min, np.iinfo(kind).max


# Each launch gives the values that Python computes, or an error that names the parameter, the number and the type. The
# first launch is accepted, so that the later ones take the fast path where they can.
values = {store: lambda n: n, negate: lambda n: -n, shift: lambda n: n + 3, call: lambda n: n - 2}
for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
    least, most = read_limits(kind)
    edges = [n for n in (least, most, 0) if -(2**31) < n < 2**31]
    for kernel, compute in values.items():
        kernel(np.zeros(3, kind), 20 if compute(20) >= least else 0)
        for _ in range(12):
            n = (
                random.choice(edges) + random.randint(-5, 5)
                if random.random() < 0.7
                else random.randint(-(2**31), 2**31 - 1)
            )
            n = min(max(n, -(2**31)), 2**31 - 1)
            r = np.zeros(3, kind)
            fits = least <= compute(n) <= most
            # a type of 32 or 64 bits is computed in, and the number itself has to fit it as well
            fits = fits and (np.dtype(kind).itemsize < 4 or least <= n <= most)
            try:
                kernel(r, n)
                assert fits, (kind, kernel, n, r)
                assert r.tolist() == [compute(n)] * 3, (kind, kernel, n, r)
            except kjit.ArgumentError as error:
                name = kind[0] + str(8 * int(kind[1]))
                assert not fits, (kind, kernel, n, str(error))
                assert f"parameter `n`: {n} is too" in str(error) and f"for {name}," in str(error), str(error)
                assert "number_limits.py" in str(error), str(error)

# The message has the line where the number meets the type, and each parameter has its own limits.
r = np.zeros(2, "u1")
both(r, 5, 256)
assert r.tolist() == [255, 255]
for n, m, words in [(-1, 1, "r[i] = n\n"), (5, 257, "r[i] = m - 1\n"), (5, 0, "r[i] = m - 1\n")]:
    try:
        both(r, n, m)
        raise AssertionError((n, m))
    except kjit.ArgumentError as error:
        assert words in str(error) + "\n", str(error)


# An explicit conversion wraps around. Comparisons with small types are exact, and a float takes any int.
@kjit.jit
def convert(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] = kjit.u8(n)


@kjit.jit
def compare(r, x, n):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] > n


for n in (-3, 300, 2**31 - 1):
    r = np.zeros(3, "u4")
    convert(r, n)
    assert r.tolist() == [n & 255] * 3
    f = np.zeros(3, "f8")
    store(f, n)
    assert f.tolist() == [n] * 3
    x = np.array([0, 100, 255], "u1")
    b = np.zeros(3, "?")
    compare(b, x, n)
    assert b.tolist() == [v > n for v in x.tolist()]

# Another process gets the code from the disk cache. Lines that have moved since are not named.
source = """
import kjit, numpy as np
{lines}
@kjit.jit
def store(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] = n
r = np.zeros(3, "u4")
store(r, 5)
try:
    store(r, -5)
    print("accepted")
except kjit.ArgumentError as error:
    print(error)
"""


def run(folder, lines):
    import os
    import subprocess
    import sys

    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(source.format(lines=lines))
    environment = dict(os.environ, XDG_CACHE_HOME=folder)
    return subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, check=True).stdout


with tempfile.TemporaryDirectory() as folder:
    first = run(folder, "")
    assert "-5 is too small for u32" in first and "r[i] = n" in first, first
    assert run(folder, "") == first
    moved = run(folder, "\n\n\n# more\n")
    assert "-5 is too small for u32" in moved and ":6:" not in moved, moved
