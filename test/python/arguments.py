# RUN: %kjit-python %s
"""The arguments that a kernel accepts without a copy, the arguments that it rejects with a clear message, and objects
whose protocols give wrong information."""
import mmap
import array
import ctypes
import gc
import sys

import kjit
import numpy as np
import seeds

random = seeds.fresh_generator()


@kjit.jit
def double(x):
    for at in kjit.grid_range(x.shape):
        x[at] = x[at] + x[at]


@kjit.jit
def store(r, v):
    r[0] = v


@kjit.func
def name_of(v):
    return v


def refused(function, message, kind=kjit.ArgumentError):
    try:
        function()
    except kind as error:
        assert message in str(error), (message, str(error))
    else:
        raise AssertionError("not refused: " + message)


# Every element type, and every layout in memory.
for dtype in "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split():
    values = random.integers(0, 2 if dtype == "b1" else 20, (4, 5, 6)).astype(dtype)
    if dtype != "b1":
        views = [values[::2], values[:, ::-1], values.T, values[1], values[1, 2, 3:4], values[:0], values[..., 0]]
        for view in (values, views[random.integers(len(views))], views[random.integers(len(views))]):
            expected = view + view
            double(view)
            np.testing.assert_array_equal(view, expected)
    r = np.zeros(1, dtype)
    store[1, 1](r, values[1, 1, 1])
    assert r[0] == values[1, 1, 1]
    got = name_of(values[1, 1, 1]) if dtype[0] != "c" else None
    assert got is None or got == values[1, 1, 1]
zero = np.array(3.0)
double(zero)
assert zero == 6

# Python numbers have no type of their own, but NumPy numbers do.
for value, expected in [(3, 3), (2**31 - 1, 2**31 - 1), (2**31, 2**31), (-2**63, -2**63), (2**64 - 1, 2**64 - 1), (True, True), (0.1, 0.1),
                        (float("inf"), float("inf")), (np.float32(0.1), float(np.float32(0.1))), (np.uint64(2**63), 2**63), (np.bool_(True), True),
                        (np.float16(0.1), float(np.float16(0.1)))]:
    got = name_of(value)
    assert got == expected and type(got) is type(expected), (value, got)
for value in (np.nan, np.float32(np.nan), np.float16(np.nan)):
    assert np.isnan(name_of(value))
half = np.zeros(1, np.float16)
store[1, 1](half, 0.1)
assert half[0] == np.float16(0.1)
c = np.zeros(1, np.complex128)
store[1, 1](c, 1 - 2j)
assert c[0] == 1 - 2j
refused(lambda: name_of(2**64), "more than 64 bits")
refused(lambda: name_of(-2**64), "more than 64 bits")

# The buffer protocol.
plain = array.array("d", [1, 2])
double(plain)
assert plain.tolist() == [2, 4]
room = bytearray(b"\x01\x02")
double(room)
assert room == b"\x02\x04"
for kind in (ctypes.c_float, ctypes.c_long, ctypes.c_uint8, ctypes.c_double):
    numbers = (kind * 3)(1, 2, 3)
    double(numbers)
    assert list(numbers) == [2, 4, 6], kind
double(memoryview(plain))
assert plain.tolist() == [4, 8]

# Read-only means read-only.
fixed = np.arange(4.0)
fixed.flags.writeable = False
refused(lambda: double(fixed), "parameter `x`: the kernel writes to the array")
refused(lambda: double(b"abcd"), "the kernel writes to the array")
assert fixed.tolist() == [0, 1, 2, 3]
r = np.zeros(1)


@kjit.jit
def first(r, x):
    r[0] = x[1]


for source in (fixed, b"\x05\x07", memoryview(b"\x05\x01"), fixed[::-1]):
    first[1, 1](r, source)
    assert r[0] == np.asarray(memoryview(source))[1]
before = sys.getrefcount(fixed)
for _ in range(100):
    first[1, 1](r, fixed)
gc.collect()
assert sys.getrefcount(fixed) == before

# Arguments that every kernel rejects.
bad = np.zeros(8, np.uint8)[1:5].view(np.float32)
refused(lambda: double(bad), "not aligned")
refused(lambda: double(np.zeros(3, ">f4")), "byte order")
refused(lambda: double(np.zeros(3, [("a", "f4"), ("b", "i4")])), "`+` needs numbers", kjit.TypingError)
refused(lambda: double(np.zeros(3, [("a", "u1"), ("b", "f4")])["b"]), "not aligned")
double(np.zeros(3, [("a", "f4"), ("b", "i4")])["a"])
refused(lambda: double(np.zeros(3, object)), "not supported")
refused(lambda: double(np.zeros(3, "U3")), "not supported")
double(np.ones(3, "m8[s]"))  # dates: see dates.py
refused(lambda: double(np.zeros(3, np.longdouble)), "not supported")
refused(lambda: double(np.zeros((1,) * 9)), "9 dimensions")
refused(lambda: double(None), "parameter `x`: None was given, which has no `shape`", kjit.SourceError)
for thing in ("text", [1, 2], {}, object(), int, np.float32, Ellipsis, print):
    refused(lambda: double(thing), "parameter `x`")
for thing in (double, name_of, max, lambda v: v):
    refused(lambda: double(thing), "parameter `x`: a function was given, which has no `shape`", kjit.SourceError)
refused(lambda: double((1, 2)), "cannot be changed", kjit.TypingError)
refused(lambda: double(), "is missing", TypeError)
refused(lambda: double(1, 2), "double() takes 1 argument, 2 were given", TypeError)
refused(lambda: double(y=3), "no parameter `y`", TypeError)
refused(lambda: double(fixed, x=3), "two values", TypeError)
for key, message in [(0, "must be from 1"), (-1, "must be from 1"), ((1, 2, 3, 4, 5), "expected kernel["), ((1, (1, 1, 1, 1)), "1 to 3"), ((), "expected kernel["),
                     ((1, 1, "stream"), "a stream must be"), ((1, 1, None, -1), "bytes"), (1.5, "integers"), ("x", "integers"), ((1, 5000), "block"),
                     (2**40, "to 2^32 - 1"), (10**30, "to 2^32 - 1")]:
    refused(lambda: double[key](zero), message, (kjit.Error, TypeError))
refused(lambda: double[[1]](zero), "unhashable", TypeError)

# kjit's own arrays.
a = kjit.array(np.arange(12.0).reshape(3, 4), device="cpu")
double(a)
assert a.shape == (3, 4) and a.dtype == "f64" and a.size == 12 and a.ndim == 2 and a.device == "cpu" and len(a) == 3
np.testing.assert_array_equal(np.asarray(a), 2 * np.arange(12.0).reshape(3, 4))
np.asarray(a)[0, 0] = 7
assert a.to_host()[0, 0] == 7
a[1, ::2] = 5
a[2] = np.ones(4)
np.testing.assert_array_equal(a[1:, 1:].T.to_host(), np.asarray(a)[1:, 1:].T)
np.testing.assert_array_equal(a.reshape(4, -1).to_host(), np.asarray(a).reshape(4, 3))
np.testing.assert_array_equal(a[::-1, -2].to_host(), np.asarray(a)[::-1, -2])
np.testing.assert_array_equal(np.from_dlpack(a[1]), np.asarray(a)[1])
assert kjit.zeros(3, kjit.i32, "cpu").to_host().tolist() == [0, 0, 0] and kjit.full((2, 1), 2.5, "f32", "cpu").to_host().tolist() == [[2.5], [2.5]]
assert kjit.array([1, 2.5], device="cpu").to_host().tolist() == [1, 2.5] and kjit.array(np.zeros(3), kjit.f32, "cpu").dtype == "f32"
taken = kjit.from_dlpack(np.arange(3.0))
double(taken)
assert taken.to_host().tolist() == [0, 2, 4]
view = memoryview(a)
keeper = np.asarray(a[1])
shape = a.shape
del a
gc.collect()
assert view.shape == shape and keeper[0] == 5
for index, kind in [(3, IndexError), ((0, 0, 0), IndexError), ("x", IndexError), (1.0, IndexError)]:
    refused(lambda: kjit.zeros((3, 2), "f32", "cpu")[index], "", kind)
for shape in (-1, (2, -3), (1,) * 9, "x", 1.5, (2**62, 2**62), 2**70):
    refused(lambda: kjit.empty(shape, "f32", "cpu"), "", (kjit.Error, TypeError, OverflowError))
refused(lambda: kjit.empty(3, "f33", "cpu"), "not an element type", TypeError)
refused(lambda: kjit.empty(3, "f32", "gpu"), "there is no device", kjit.NoDeviceError)
refused(lambda: kjit.empty(3, "f32", "cuda:999"), "", kjit.NoDeviceError)
brain = kjit.zeros(3, kjit.bf16, "cpu")
store[1, 1](brain, 1.0)
refused(lambda: memoryview(brain), "no format", BufferError)
refused(lambda: brain.to_host(), "NumPy has no", kjit.UnsupportedError)

# An array that belongs to another context than the kernel.
checked = kjit.jit(checks="all" if kjit.device().kind == "cpu" else "usual")(double.py_func)
b = kjit.full(3, 2.5, "f64")
checked(b)
assert b.to_host().tolist() == [5, 5, 5]


# Objects that lie.
class Dlpack:
    def __init__(self, capsule=None, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, max_version=None):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


owner = np.arange(3.0)
used = owner.__dlpack__()
taken = kjit.from_dlpack(Dlpack(used))
for lie, message in [(Dlpack(None), "no DLPack capsule"), (Dlpack(used), "already used"), (Dlpack(3), "no DLPack capsule"), (Dlpack(owner.__dlpack__(), (3, 0)), "contradict"),
                     (Dlpack(device=(9, 0)), "does not support"), (Dlpack(device=None), "(type, id)"), (Dlpack(device=(1,)), "(type, id)"), (Dlpack(device=("a", 0)), "x"),
                     (Dlpack(ZeroDivisionError("mine")), "mine"), (Dlpack(device=(2, 0)), ""), (Dlpack(device=(2**70, 0)), "")]:
    refused(lambda: double(lie), message if message != "x" else "parameter `x`")


# Memory that the CPU cannot access, such as CuPy's: the object has the buffer protocol, which raises an error, and no
# DLPack.
class Elsewhere(mmap.mmap):
    def __new__(cls, values):
        made = super().__new__(cls, -1, 4096)
        made.values = values
        made.close()
        return made

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)


values = np.arange(3.0)
for _ in range(3):
    double(Elsewhere(values))
assert values.tolist() == [0, 8, 16]
shut = mmap.mmap(-1, 4096)
shut.close()
refused(lambda: double(shut), "closed")
refused(lambda: double(Elsewhere(Dlpack(ZeroDivisionError("mine")))), "closed")


class Cuda:
    def __init__(self, **changes):
        self.__cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3} | changes


for changes, message in [({"shape": 3}, "shape"), ({"shape": (-1,)}, "negative or too large"), ({"shape": ("a",)}, "integers"), ({"shape": (2**62, 2**62)}, "negative or too large"),
                         ({"typestr": ">f4"}, "typestr"), ({"typestr": "<f99"}, "typestr"), ({"typestr": None}, "typestr"), ({"typestr": "<x4"}, "typestr"), ({"data": None}, "data"),
                         ({"data": (0, False)}, "address is 0"), ({"data": (-5, False)}, "no valid address"), ({"data": ("a", 1)}, "data"), ({"strides": (3,)}, "multiples of the element size"),
                         ({"strides": (4, 4)}, "one integer for each"), ({"version": 1}, "version"), ({"version": "3"}, "version"), ({"mask": 1}, "mask"), ({"stream": 0}, "ambiguous"),
                         ({"stream": "x"}, "stream"), ({"shape": (1,) * 9}, "8")]:
    refused(lambda: double(Cuda(**changes)), message)
if not any(d.kind == "cuda" for d in kjit.devices()):
    refused(lambda: double(Cuda()), "CUDA", kjit.NoDeviceError)
liar = Cuda()
liar.__cuda_array_interface__ = 3
refused(lambda: double(liar), "not a dictionary")

# Arrays are compared by their elements, so they have no hash, like arrays of NumPy.
one, same = kjit.zeros(3), kjit.zeros(3)
assert (one == same).to_host().all() and not (one != same).to_host().any() and not (one < same).to_host().any()
refused(lambda: one in [same], "ambiguous", ValueError)
assert one in [one, same]
refused(lambda: {one: 1}, "unhashable", TypeError)
print("arguments: good", file=sys.stderr)
