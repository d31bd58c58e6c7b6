# RUN: %kjit-python %s
"""Streams, events and graphs; streams of other libraries; DLPack's exchange API, implemented by a library in this
test."""
import ctypes
import os

import kjit
import numpy as np
import seeds

os.environ["KJIT_DEVICE"] = "cpu"


@kjit.jit
def add(r, x, n):
    for i in kjit.grid_range(len(r)):
        r[i] += x[i] + n


@kjit.jit
def failing(r):
    raise ValueError("no")


def refused(kind, call, text=""):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"{kind.__name__} was not raised")


x = seeds.fresh_generator().standard_normal(100)
r = np.zeros(100)
device = kjit.device("cpu")
stream = device.stream(priority=-1, non_blocking=True)
assert stream.query() and stream.handle == 0 and stream.__cuda_stream__() == (0, 0) and stream.device.kind == "cpu"

first = device.event().record()
add[None, None, stream](r, x, 1)
last = device.event().record(stream)
last.synchronize()
assert last.query() and last.since(first) >= 0 and first.since(last) >= 0
stream.wait(last)
np.testing.assert_array_equal(r, x + 1)
never = device.event()
refused(kjit.MisuseError, never.synchronize)
refused(TypeError, lambda: stream.wait(stream), "kjit.Event")
refused(TypeError, lambda: last.since(3), "kjit.Event")

# Captured work does not run at the capture. Then it runs at each launch, with the captured values.
r[:] = 0
with stream.capture() as graph:
    add[None, None, stream](r, x, 1)
    add[None, None, stream](r, x, 2)
assert len(graph) == 2 and not r.any()
graph.launch()
graph.launch(stream)
np.testing.assert_allclose(r, 2 * (2 * x + 3))
with stream.capture() as other:
    add[None, None, stream](r, r, 5)
    add[None, None, stream](r, x, 7)
graph.update(other)
r[:] = 1
graph.launch()
np.testing.assert_allclose(r, 1 + 1 + 5 + x + 7)
refused(kjit.MisuseError, graph.__enter__, "already captured")
refused(kjit.MisuseError, lambda: stream.capture().launch(), "not captured")
refused(TypeError, lambda: graph.update(3))
try:
    with stream.capture() as dropped:
        add[None, None, stream](r, x, 1)
        raise KeyError("out")
except KeyError:
    pass
refused(kjit.MisuseError, dropped.launch)
with stream.capture() as bad:
    failing[1, 1, stream](r)
refused(ValueError, bad.launch, "no")


# Streams of other libraries are identified by their protocol. On the CPU, they can only be the default stream.
class Protocol:
    def __init__(self, handle):
        self.handle_ = handle

    def __cuda_stream__(self):
        return 0, self.handle_


class Attribute:
    __cuda_stream__ = (0, 0)


class Torch:
    cuda_stream = 0


class Cupy:
    ptr = 0


class Numba:
    handle = ctypes.c_void_p(1)


for other in (0, 1, 2, Protocol(0), Attribute(), Torch(), Cupy(), Numba()):
    r[:] = 0
    add[None, None, other](r, x, 1)
    np.testing.assert_array_equal(r, x + 1)
for other in (4096, Protocol(4096)):
    refused(kjit.UnsupportedError, lambda other=other: add[None, None, other](r, x, 1))
for other in ("0", -1, 1.5, Protocol("a"), object(), 2**70):
    refused(TypeError, lambda other=other: add[None, None, other](r, x, 1), "a stream must be")


# A library with DLPack's exchange API: its type has a table of C functions.
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


LOOK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("take", ctypes.c_void_p), ("give", ctypes.c_void_p), ("look", LOOK), ("stream", STREAM)]


looks = 0


@LOOK
def look(owner, tensor):
    global looks
    looks += 1
    if owner.lie == "fails":
        return -1
    array = owner.array
    owner.shape = (ctypes.c_int64 * 2)(*array.shape)
    owner.strides = (ctypes.c_int64 * 2)(*(s // array.itemsize for s in array.strides))
    tensor[0] = Tensor(array.ctypes.data, 1, 0, array.ndim, 2, 8 * array.itemsize, 1, owner.shape, owner.strides, 0)
    if owner.lie:
        setattr(tensor[0], *owner.lie)
    return 0


@STREAM
def no_stream(kind, number, out):
    raise AssertionError("of the CPU nobody asks for a stream")


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes, new_capsule.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
table = Table(1, 3, None, None, None, None, look, no_stream)
newer = Table(2, 0, ctypes.addressof(table), None, None, None, LOOK(), STREAM())


class Library:
    __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)

    def __init__(self, array, lie=None):
        self.array, self.lie = array, lie


class Newer(Library):
    __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(newer), b"dlpack_exchange_api", None)


@kjit.jit
def scale(m, n):
    for i, j in kjit.grid_range(m.shape):
        m[i, j] *= n


for kind in (Library, Newer):
    m = seeds.fresh_generator().standard_normal((6, 8))
    expected = m.copy()
    expected[::2, 1::3] *= 3
    before = looks
    scale(kind(m[::2, 1::3]), 3)
    np.testing.assert_array_equal(m, expected)
    assert looks == before + 1
for lie in ("fails", ("ndim", 9), ("ndim", -1), ("data", None), ("device_type", 7), ("code", 9), ("bits", 3)):
    refused(kjit.Error, lambda lie=lie: scale(Library(m, lie), 3))


class Wrong:
    __dlpack_c_exchange_api__ = 3


refused(kjit.ArgumentError, lambda: scale(Wrong(), 3), "neither a number nor an array")
