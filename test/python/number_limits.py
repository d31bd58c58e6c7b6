# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# A launch rejects an int that does not fit an integer type that the int meets in the kernel.
import tempfile

import kjit
import numpy as np
import seeds

random = seeds.fresh_choice()


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
    edges = [least, most, 0, -(2**31), 2**31 - 1, 2**32, 2**63 - 1, -(2**63), 2**64 - 1]
    for kernel, compute in values.items():
        kernel(np.zeros(3, kind), 20 if compute(20) >= least else 0)
        for _ in range(20):
            n = (
                random.choice(edges) + random.randint(-5, 5)
                if random.random() < 0.7
                else random.choice([random.randint(-(2**31), 2**31 - 1), random.randint(-(2**63), 2**64 - 1)])
            )
            n = min(max(n, -(2**63)), 2**64 - 1)
            r = np.zeros(3, kind)
            fits = least <= compute(n) <= most
            # a type of 32 or 64 bits is computed in this type, so the number itself must fit as well
            fits = fits and (np.dtype(kind).itemsize < 4 or least <= n <= most)
            try:
                kernel(r, n)
                assert fits, (kind, kernel, n, r)
                assert r.tolist() == [compute(n)] * 3, (kind, kernel, n, r)
            except kjit.ArgumentError as error:
                name = np.dtype(kind).name
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



# An int with more than 32 bits takes the type of the other operand. Without such a type, and in comparisons and ranges,
# it is an int64 or a uint64.
@kjit.jit
def multiply(r, x, n):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] * n


@kjit.jit
def control(r, n):
    for i in kjit.grid_range(len(r)):
        total = 0
        for j in range(n - 3, n):
            total += j
        kept = n
        r[i] = (total if i < n else -1) + (kept - n)


@kjit.jit
def choose(r, n):
    for i in kjit.grid_range(len(r)):
        wide = n if i > 0 else 7
        r[i] = wide + 1


def refuse(kernel, *arguments):
    try:
        kernel(*arguments)
    except kjit.ArgumentError as error:
        return str(error)
    raise AssertionError(arguments)


for n in [random.randint(2**31, 2**40) for _ in range(4)] + [-(2**50), 2**31, 2**60]:
    r, x = np.zeros(3, "i8"), np.array([1, -1, 0], "i8")
    multiply(r, x, n)
    assert r.tolist() == [n, -n, 0]
    f = np.zeros(3, "f4")
    multiply(f, x.astype("f4"), n)
    assert f.tolist() == (x.astype("f4") * np.float32(n)).tolist()
    assert "x[i] * n" in refuse(multiply, r, x.astype("i4"), n)
    control(r, n)
    assert r.tolist() == [3 * n - 6 if n > 0 else -1] * 3, (r, n)
    choose(r, n)
    assert r.tolist() == [8, n + 1, n + 1]
big = np.zeros(2, "u8")
multiply(big, np.ones(2, "u8"), 2**64 - 1)
assert big.tolist() == [2**64 - 1] * 2
multiply(f[:2], np.ones(2, "f4"), 2**63 + 2**62)
assert f[:2].tolist() == [float(2**63 + 2**62)] * 2
multiply(np.zeros(2, "i8"), np.ones(2, "i8"), np.int64(2**40))  # a NumPy scalar has a type
small = np.zeros(2, "i8")
multiply(small, np.ones(2, "i4"), np.int64(2**40))
assert small.tolist() == [2**40] * 2


# A direct call computes in 64 bits, and checks numbers as a launch does.
def product(x, y):
    return x * y


@kjit.func
def put(r, n):
    r[0] = n + 1


for _ in range(5):
    x, y = random.randint(-(2**31), 2**31 - 1), random.randint(-(2**31), 2**31)
    assert kjit.func(product)(x, y) == x * y, (x, y)
assert kjit.func(product)(100000, 100000) == 10**10
assert kjit.func(product)(np.float32(2), 2**40) == 2.0**41
byte = np.zeros(1, "u1")
put(byte, 254)
assert byte.tolist() == [255]
for n in (255, -2, 2**40, 2**64 - 1):
    assert "for uint8" in refuse(put, byte, n)
assert byte.tolist() == [255]

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
    assert "-5 is too small for uint32" in first and "r[i] = n" in first, first
    assert run(folder, "") == first
    moved = run(folder, "\n\n\n# more\n")
    assert "-5 is too small for uint32" in moved and ":6:" not in moved, moved
