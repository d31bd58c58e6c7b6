# RUN: %kjit-python %s
"""njit converts a float beyond the range of an integer type, and NaN, as the instructions of x86 do, and so does Numba: an unsigned
integer of 32 or 64 bits depends on the processor. Kernels give the nearest integer of the type on every processor."""
import math
import os

os.environ.setdefault("KJIT_DEVICE", "cpu")
import numpy as np
import seeds
from kjit import cuda, njit

random = seeds.fresh_choice()

NAMES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def signed(x, bits):
    """cvttsd2si."""
    return int(x) if math.isfinite(x) and -(2 ** (bits - 1)) <= int(x) < 2 ** (bits - 1) else -(2 ** (bits - 1))


def expected(x, kind, is_new):
    """is_new: the processor has vcvttsd2usi."""
    bits, modulus = kind.itemsize * 8, 2 ** (kind.itemsize * 8)
    if bits < 32:
        value = signed(x, 32) % modulus
        return value - modulus if kind.kind == "i" and value >= modulus // 2 else value
    if kind.kind == "i":
        return signed(x, bits)
    if is_new:
        return int(x) if math.isfinite(x) and 0 <= int(x) < modulus else modulus - 1
    if bits == 64 and math.isfinite(x) and x >= 2**63:
        return (signed(x - 2.0**63, 64) + 2**63) % modulus
    return signed(x, 64) % modulus


def nearest(x, kind):
    if x != x:
        return 0
    # integers of 8 and 16 bits are converted through int32
    limits, way = np.iinfo(kind), np.dtype("i4") if kind.itemsize < 4 else kind
    limits = np.iinfo(way)
    value = limits.max if x >= limits.max else limits.min if x <= limits.min else int(x)
    return int(np.array(value, "i8" if kind.kind == "i" or kind.itemsize < 4 else "u8").astype(kind))


def store(r, x):
    for i in range(len(x)):
        r[i] = x[i]


special = [math.nan, math.inf, -math.inf, 3e9, -3e9, 1e20, -1e20, -0.5, -1.0, 255.9, 256.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, -(2.0**63)]
values = special + [random.uniform(-1, 1) * 2.0 ** random.randrange(70) for _ in range(40)]
ways = set()
for single in (False, True):
    x = np.array(values, np.float32 if single else np.float64)
    for name in NAMES:
        kind = np.dtype(name)
        got, converted, of_kernel = np.zeros(len(x), kind), np.zeros(len(x), kind), np.zeros(len(x), kind)
        njit(store)(got, x)
        space = {"np": np}
        exec(f"def convert(r, x):\n    for i in range(len(x)):\n        r[i] = np.{name}(x[i])\n", space)
        njit(space["convert"])(converted, x)
        cuda.jit(store)[1, 1](of_kernel, x)
        assert got.tolist() == converted.tolist()
        old, new = ([expected(float(v), kind, is_new) for v in x] for is_new in (False, True))
        assert got.tolist() in (old, new), [t for t in zip(x.tolist(), got.tolist(), old, new) if t[1] not in t[2:]]
        ways |= {is_new for is_new, way in ((False, old), (True, new)) if got.tolist() == way and old != new}
        assert of_kernel.tolist() == [nearest(float(v), kind) for v in x], (name, single)
assert len(ways) == 1, ways


@njit
def functions(x):
    return int(x), math.floor(x), math.ceil(x), math.trunc(x), round(x)


for v in special:
    wanted = signed(v, 64)
    got = functions(v)
    if abs(v) < 2**53:
        assert got == (int(v), math.floor(v), math.ceil(v), math.trunc(v), round(v)), (v, got)
    else:
        assert got == (wanted,) * 5, (v, got)


# ---- int and float keep the type of an integer or of a float, as in Numba ----


def kept(x):
    return -int(x), int(x) * 2, int(x) < 0, ~int(x), float(x) * np.float32(1.1)


def kept_in_python(a):
    b = a * 1  # an array: Python runs the function
    return float(b[0]) * np.float32(1.1), int(b[0]) * 2, b[int(b[0])]


as_f64 = float(np.float32(1.1))
for value, wanted in (
    (np.uint8(3), (253, 6, False, 252, 3 * as_f64)),
    (np.uint32(7), (2**32 - 7, 14, False, 2**32 - 8, 7 * as_f64)),
    (np.uint64(2**63 + 1), (2**63 - 1, 2, False, 2**63 - 2, float(2**63 + 1) * as_f64)),
    (np.int8(-100), (100, -200, True, 99, -100 * as_f64)),
    (np.float32(2.5), (-2, 4, False, -3, float(np.float32(2.5) * np.float32(1.1)))),
    (2.5, (-2, 4, False, -3, 2.5 * as_f64)),
):
    found = njit(kept)(value)
    assert found == wanted, (value, found, wanted)
kept_in_python = njit(kept_in_python)
assert kept_in_python(np.ones(2, np.float32)) == (as_f64, 2, 1.0) and kept_in_python.runs_in_python


@njit
def latest(t):
    return np.max(t), np.sum(t)


steps = np.array([1, 4], "m8[m]")
found = latest(steps)
assert found == (steps[1], steps.sum()) and type(found[0]) is np.timedelta64, found
