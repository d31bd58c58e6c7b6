# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# Sums of integers that start from a literal have 64 bits in kjit.jit and kjit.func; other variables keep their types.
import kjit
import numpy as np

n = 100000


@kjit.jit
def squares(r, n, x):
    for i in kjit.grid_range(1):
        s = 0
        for j in range(n):
            s += j * j
        t = 0
        for j in range(n):
            t = t + j * x[0]
        product = 1
        for k in range(1, 21):
            product *= k
        power = 1
        k = 0
        while k < 40:
            power *= 2
            k += 1
        below = 0
        for j in range(n):
            below -= (j + 1) * j
        r[0] = s
        r[1] = t
        r[2] = product
        r[3] = power
        r[4] = below


r = np.zeros(5, "i8")
squares(r, n, np.array([70000], "i4"))
whole = np.arange(n)
np.testing.assert_array_equal(r, [(whole**2).sum(), (whole * 70000).sum(), 2432902008176640000, 2**40, -((whole + 1) * whole).sum()])

# Sums of elements: integers of all types are summed in 64 bits, and floats in their own type.


@kjit.jit
def total(r, x):
    for i in kjit.grid_range(1):
        s = 0
        for v in x:
            s += v
        r[0] = s
        r[1] = kjit.sizeof(s.dtype)


for kind, size in [("i1", 8), ("u2", 8), ("i4", 8), ("u4", 8), ("i8", 8), ("u8", 8), ("f4", 4), ("f8", 8)]:
    x = np.full(1000, 100, kind)
    r = np.zeros(2, "f8" if kind[0] == "f" else kind[0] + "8")
    total(r, x)
    assert r.tolist() == [100000, size], (kind, r)
x = np.full(70000, 2**31 - 1, "i4")
r = np.zeros(2, "i8")
total(r, x)
assert r[0] == x.sum()


# The types of three kinds of variables do not change: a variable that counts by a literal, a variable that holds bits,
# and a variable with an annotation.


@kjit.jit
def narrow(r, x):
    for i in kjit.grid_range(1):
        count = 0
        bits = 0
        said: kjit.i32 = 0
        for j in range(len(x)):
            count += 1
            bits = bits * 31
            bits ^= x[j]
            said += x[j]
        r[0] = kjit.sizeof(count.dtype)
        r[1] = kjit.sizeof(bits.dtype)
        r[2] = kjit.sizeof(said.dtype)


r = np.zeros(3, "i8")
narrow(r, np.arange(5, dtype="i4"))
assert r.tolist() == [4, 4, 4], r


@kjit.func
def triangle(n):
    s = 0
    for j in range(n):
        s += j
    return s


assert triangle(100000) == 4999950000
