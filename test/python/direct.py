# REQUIRES: build
# RUN: mkdir -p %t && %cc -shared -fPIC -O1 -D_GNU_SOURCE= -I%srcdir/include -I%srcdir/lib -I%srcdir/runtime %S/Inputs/fake_driver.c -o %t/libcuda.so.1
# RUN: env LD_LIBRARY_PATH=%t %kjit-python %s
"""Launches on a GPU, on a driver that only notes what it is given: arrays of CuPy and of libraries with DLPack's exchange API
are read where they are, follow their library's stream, and leave nothing behind."""
import ctypes
import struct
import sys
import threading
import types

import numpy as np
import seeds

driver = ctypes.CDLL("libcuda.so.1")
DEVICES = 2
driver.fake_set_devices(DEVICES)

import kjit  # noqa: E402
import kjit.numpy  # noqa: E402


class Seen(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("launches", "allocations", "events", "streams", "orders")] + [
        ("stream", ctypes.c_uint64), ("ordered", ctypes.c_uint64 * 2), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("parameter_bytes", ctypes.c_int64), ("parameters", ctypes.c_char * 1024), ("shared_bytes", ctypes.c_int64)]


def look():
    seen = Seen()
    driver.fake_look(ctypes.byref(seen))
    return seen


def words(seen):
    """Returns the parameters of the last launch as 64-bit numbers."""
    data = ctypes.string_at(ctypes.addressof(seen) + Seen.parameters.offset, seen.parameter_bytes // 8 * 8)
    return struct.unpack(f"<{len(data) // 8}Q", data)


# ---- CuPy, as far as a launch uses it ----

class MemoryPointer:
    __slots__ = ("ptr", "device_id")  # attributes that are descriptors, as in CuPy

    def __init__(self, ptr, device_id):
        self.ptr, self.device_id = ptr, device_id


class ndarray:
    """A CuPy array over the memory of a NumPy array, with the attributes that a launch reads."""

    __slots__ = ("array", "data", "dtype", "ndim", "size", "strides", "_c_contiguous", "__dict__")  # the shape is no descriptor
    dlpacks = 0

    def __init__(self, array, device=0):
        self.array, self.dtype, self.ndim, self.size, self.shape, self.strides = array, array.dtype, array.ndim, array.size, array.shape, array.strides
        self._c_contiguous = array.flags.c_contiguous
        self.data = MemoryPointer(array.ctypes.data, device)

    def __dlpack_device__(self):
        ndarray.dlpacks += 1
        return 2, self.data.device_id

    def __dlpack__(self, **options):
        raise BufferError("no capsule today")


class Derived(ndarray):
    pass


class Stream:
    def __init__(self, ptr):
        self.ptr = ptr


current, asked = {0: 0, 1: 0}, []


def get_current_stream(device_id=-1):
    asked.append(device_id)
    return Stream(current[device_id])


cupy = types.ModuleType("cupy")
cupy.ndarray, cupy.cuda = ndarray, types.SimpleNamespace(get_current_stream=get_current_stream)
ndarray.__module__ = "cupy"
sys.modules["cupy"] = cupy


@kjit.jit
def axpy(r, a, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = a * x[i] + y[i]


@kjit.jit
def scale(m, n):
    for i, j in kjit.grid_range(m.shape):
        m[i, j] *= n


def refused(kind, call, text=""):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"{kind.__name__} was not raised")


rng, choice = seeds.fresh_generator(), seeds.fresh_choice()
for kind in ("f4", "f8", "i4", "u2", "f2", "c8"):
    for device in range(DEVICES):
        n = int(rng.integers(1, 5000))
        arrays = [ndarray(np.zeros(n, kind), device) for _ in range(3)]
        before, asked[:] = look(), []
        axpy(arrays[0], 2, arrays[1], arrays[2])
        after = look()
        assert after.launches == before.launches + 1 and asked == [device] and not after.stream
        assert [a.data.ptr for a in arrays] == [w for w in words(after) if w in {a.data.ptr for a in arrays}]

# Shapes and strides: the tuples of contiguous arrays are not read, those of other arrays are.
for _ in range(30):
    rows, columns = (int(n) for n in rng.integers(1, 40, 2))
    whole = np.zeros((2 * rows, 3 * columns), choice.choice(("f4", "f8")))
    part = choice.choice((whole, whole[::2], whole[:, ::3], whole.T, whole[::-1], whole[:rows, :columns]))
    before = look()
    scale(ndarray(part), 3)
    after = look()
    assert after.launches == before.launches + 1 and part.ctypes.data in words(after)
    numbers = {part.size, *part.shape} | {s // part.itemsize % 2**32 for s in part.strides}
    halves = {w >> shift & 0xFFFFFFFF for w in words(after) for shift in (0, 32)} | set(words(after))
    assert any(n in halves for n in numbers), (part.shape, part.strides, words(after))
assert not ndarray.dlpacks

# The launch uses the library's current stream on that GPU. Arrays on two GPUs are rejected.
x = [ndarray(np.zeros(10, "f4"), 1) for _ in range(3)]
for handle in (0x1000, 0x2000, 0, 0x1000):
    current[1] = handle
    axpy(x[0], 2, x[1], x[2])
    assert look().stream == handle, (hex(look().stream), hex(handle))
current[1] = 0x3000
streams = look().streams
stream = kjit.device("cuda:1").stream()
axpy[1, 32, stream](x[0], 2, x[1], x[2])  # the message says how to move the array
assert look().stream == stream.handle and look().streams == streams + 1
refused(kjit.Error, lambda: axpy(x[0], 2, ndarray(np.zeros(10, "f4"), 0), x[2]))
current[1] = "no number"
refused(TypeError, lambda: axpy(x[0], 2, x[1], x[2]))
current[1] = 0

# Objects whose attributes are wrong, and objects that only look like CuPy's, go through the protocols, which report the
# error.
for name, lie in [("data", None), ("data", MemoryPointer("a", 0)), ("data", MemoryPointer(4096, 2**40)), ("data", MemoryPointer(0, 0)), ("dtype", "f4"), ("dtype", np.dtype("M8[s]")),
                  ("dtype", np.dtype([("x", "f4")])), ("ndim", 9), ("ndim", -1), ("ndim", None), ("size", -1), ("size", "3"), ("size", 2**70)]:
    bad = ndarray(np.zeros(10, "f4"))
    setattr(bad, name, lie)
    refused(kjit.ArgumentError, lambda bad=bad: axpy(bad, 2, bad, bad))
for shape, strides in [((3,), (4,)), ((-3, 2), (8, 4)), (3, 4), (("a", 2), (8, 4)), ((2**40, 2**40), (8, 4)), ((3, 2), (7, 4)), ((3, 2), (8,)), ((3, 2), None)]:
    bad = ndarray(np.zeros((6, 8), "f4")[::2, ::2])
    bad.shape, bad.strides = shape, strides
    refused(kjit.ArgumentError, lambda bad=bad: scale(bad, 2))
missing = ndarray(np.zeros(10, "f4"))
del missing._c_contiguous
refused(kjit.ArgumentError, lambda: axpy(missing, 2, missing, missing), "no capsule today")
refused(kjit.ArgumentError, lambda: axpy(Derived(np.zeros(3)), 2, x[1], x[2]), "no capsule today")
assert ndarray.dlpacks

# ---- a library with the exchange API ----


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


LOOK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p), ("allocate", ctypes.c_void_p), ("take", ctypes.c_void_p), ("give", ctypes.c_void_p),
                ("look", LOOK), ("stream", STREAM)]


@LOOK
def look_at(owner, tensor):
    owner.shape = (ctypes.c_int64 * 1)(owner.array.size)
    tensor[0] = Tensor(owner.array.ctypes.data, 2, owner.device, 1, 2, 32, 1, owner.shape, None, 0)
    return 0


asks, others_stream = 0, 0x7000


@STREAM
def stream_of(kind, number, out):
    global asks
    asks += 1
    if others_stream is None:
        return -1
    out[0] = others_stream
    return 0


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes, new_capsule.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
table = Table(1, 3, None, None, None, None, look_at, stream_of)


class Library:
    __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)

    def __init__(self, array, device=0):
        self.array, self.device = array, device


mine = [Library(np.zeros(100, "f4")) for _ in range(3)]
axpy(mine[0], 2, mine[1], mine[2])
assert asks == 1 and look().stream == 0x7000  # once for all three
# Arrays of two libraries: the launch waits for the queued work of both libraries, and later work of both libraries
# waits for the launch.
before = look()
theirs = ndarray(np.zeros(100, "f4"))
current[0] = 0x9000
axpy(mine[0], 2, theirs, mine[2])
after = look()
assert after.stream == 0x7000 and after.orders == before.orders + 2 and after.events == before.events, (after.stream, after.orders - before.orders)
current[0] = 0
others_stream = None
refused(kjit.ArgumentError, lambda: axpy(mine[0], 2, mine[1], mine[2]), "returned no stream")
others_stream = 0

# ---- kjit.cuda: a launch waits for the stream that an array names, unless the launch uses that stream ----

import unittest.mock  # noqa: E402

from kjit import cuda  # noqa: E402


class Named:
    """An array with a stream, from a library that kjit does not know."""

    def __init__(self, stream, array=None):
        array = np.zeros(8, "f4") if array is None else array
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": "<f4", "data": (array.ctypes.data, False), "version": 3, "stream": stream}
        self.array = array


@cuda.jit
def twice(r, x):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = 2 * x[i]


def waited_for(launcher, *arrays):
    with unittest.mock.patch.object(cuda.cudadrv.driver.Stream, "synchronize", autospec=True) as synchronize:
        before = look().launches
        launcher(*arrays)
        assert look().launches == before + 1
        return [int(c.args[0]) for c in synchronize.call_args_list]


own_stream = cuda.stream()
with cuda.gpus[0]:
    assert waited_for(twice[1, 8], Named(0x5000), Named(None)) == [0x5000] and look().stream == 0x5000
    assert waited_for(twice[1, 8], Named(0x5000), Named(0x6000)) == [0x5000, 0x6000]
    assert waited_for(twice[1, 8, own_stream], Named(0x5000), Named(None)) == [0x5000] and look().stream == int(own_stream)
    known = ndarray(np.zeros(8, "f4"))
    known.__cuda_array_interface__ = {**Named(0x8000, known.array).__cuda_array_interface__}
    current[0] = 0x8000
    assert waited_for(twice[1, 8], known, known) == [] and look().stream == 0x8000
    before = look()  # after the first launch with such arguments, only the stream waits, not the host
    assert waited_for(twice[1, 8, own_stream], known, known) == [] and look().stream == int(own_stream)
    assert look().orders == before.orders + 1
    twice._forget_routes()
    assert waited_for(twice[1, 8, own_stream], known, known) == [0x8000, 0x8000] and look().stream == int(own_stream)
    current[0] = 0
    cuda.config.CUDA_ARRAY_INTERFACE_SYNC = False
    assert waited_for(twice[1, 8, own_stream], Named(0x5000), known) == []
    cuda.config.CUDA_ARRAY_INTERFACE_SYNC = True

# ---- a launch waits for the streams of all its arrays, and each of these streams waits for the launch ----


@kjit.jit
def add_all(r, a, b, c, d, e, f):
    for i in kjit.grid_range(len(r)):
        r[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i]


for count in (1, 3, 4, 5, 7):
    handles = [0x5000 + 0x1000 * min(n, count - 1) for n in range(7)]
    choice.shuffle(handles)
    arrays = [Named(handle) for handle in handles]
    before = look()
    add_all(*arrays)
    after = look()
    assert after.stream == handles[0] and after.launches == before.launches + 1, (handles, after.stream)
    # Because there are several GPUs, kjit's default stream also waits for each array, and once more if the launch binds them again.
    assert (after.orders - before.orders - 2 * (count - 1)) % len(arrays) == 0, (handles, after.orders - before.orders)

# ---- eight threads, each with its own stream; nothing is leaked ----

own = [kjit.zeros(1000, "f32", "cuda") for _ in range(3)]
problems, done = [], [0] * 8
streams = [kjit.device("cuda:0").stream(non_blocking=True) for _ in range(8)]


def many(number, count):
    try:
        mine = [kjit.zeros(100, "f32", "cuda") for _ in range(3)]
        theirs = [ndarray(np.zeros(100, "f4")) for _ in range(3)]
        with_stream = axpy[1, 128, streams[number]]
        for _ in range(count):
            with_stream(mine[0], 2.5, mine[1], mine[2])
            axpy(theirs[0], 2.5, theirs[1], theirs[2])
            done[number] += 2
    except BaseException as error:
        problems.append(error)


def from_threads(count):
    threads = [threading.Thread(target=many, args=(n, count)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    kjit.synchronize()


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


from_threads(500)
before, resident, launched = look(), resident_bytes(), sum(done)
from_threads(3000)
after = look()
assert after.launches - before.launches == sum(done) - launched == 48000
# The maximum number of simultaneous ones is kept for later.
assert after.streams == before.streams and after.events <= 16 and after.allocations <= 3 * (8 + 1), (after.allocations, after.events, after.streams)
assert resident_bytes() - resident < 4 << 20, resident_bytes() - resident

# ---- rows of a gradient over pairs: in registers up to 192 bytes, and in shared memory if they are longer ----

def gauss(u, w, i, j):
    d = u[0] - u[0]
    for k in range(len(u)):
        d += (u[k] - w[k]) ** 2
    return kjit.exp(-d)


for kind, width, is_shared in (("f4", 10, 0), ("f4", 32, 0), ("f4", 48, 0), ("f4", 100, 1), ("f8", 16, 0), ("f8", 24, 0), ("f8", 64, 1)):
    rows, points = (kjit.array(np.zeros((n, width), kind), device="cuda:0") for n in (1000, 16))
    weights = kjit.array(np.ones(1000, kind), device="cuda:0")
    for by in (0, 1):
        before = look()
        kjit.pairs_gradient(gauss, rows, points, cotangents=weights, by=by)
        after = look()
        assert after.launches > before.launches
        if by == 0:
            assert after.launches == before.launches + 1 and bool(after.shared_bytes) == is_shared, (kind, width, after.shared_bytes)

# ---- Python calls a func with GPU arrays: it runs there, in one launch whose first thread does the work ----


@kjit.func
def energy(x, scale):
    total = 0.0
    for i in range(len(x)):
        total += scale * kjit.sin(x[i]) * x[i]
    return total


for kind in ("f4", "f8"):
    x = kjit.array(np.ones(5, kind), device="cuda:0")
    for call in (lambda: energy(x, 0.5), lambda: kjit.grad(energy, 0)(x, 0.5)):
        before = look()
        call()
        after = look()
        assert after.launches == before.launches + 1 and tuple(after.grid) == (1, 1, 1), (after.launches - before.launches, tuple(after.grid))
    grown = kjit.grad(lambda x: kjit.numpy.sum(kjit.numpy.sin(x) * x))(x)
    assert grown.device == "cuda:0" and grown.shape == x.shape and look().launches > after.launches

# ---- PyTorch exports a tensor while the tensor's GPU is current: import makes it current, and restores the previous one ----

gpu, calls = [0], []


class use_gpu:
    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self.previous, gpu[0] = gpu[0], self.number

    def __exit__(self, *what):
        calls.append((self.number, what))
        gpu[0] = self.previous


class Exporting:
    def __init__(self, number, problem=None):
        self.array, self.problem = kjit.zeros(7, "f32", f"cuda:{number}"), problem

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.problem:
            raise self.problem
        if gpu[0] != self.__dlpack_device__()[1]:
            raise BufferError("the tensor is on another GPU than the current one")
        return self.array.__dlpack__(**options)


Exporting.__module__ = "torch"
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].cuda = types.SimpleNamespace(device=use_gpu)
for number in range(DEVICES):
    for current_gpu in range(DEVICES):
        gpu[0], calls[:] = current_gpu, []
        made = kjit.from_dlpack(Exporting(number))
        assert made.device == f"cuda:{number}" and gpu[0] == current_gpu and calls == [(number, (None, None, None))]
        refused(MemoryError, lambda: kjit.from_dlpack(Exporting(number, MemoryError("none left"))), "none left")
        assert gpu[0] == current_gpu and len(calls) == 2
del use_gpu.__enter__
refused(AttributeError, lambda: kjit.from_dlpack(Exporting(1)), "__enter__")
del sys.modules["torch"]

# ---- arrays on a device that has failed; last, because the device does not recover ----

device = kjit.device("cuda:0")
stream = device.stream()
event = device.event().record(stream)
with stream.capture() as graph:
    axpy[1, 32, stream](own[0], 2, own[1], own[2])
view, capsule = own[0][2:5], own[1].__dlpack__(stream=1)
kjit.synchronize()
driver.fake_break_next_launch()
axpy(own[0], 2, own[1], own[2])
for use in (kjit.synchronize, lambda: axpy(own[0], 2, own[1], own[2]), lambda: axpy[1, 32, stream](own[0], 2, own[1], own[2]), own[0].to_host, lambda: own[0][0], lambda: own[0].__setitem__(0, 1), view.to_host,
            lambda: kjit.array(np.zeros(3, "f4"), device="cuda"), lambda: kjit.zeros(3, "f32", "cuda"), device.stream, stream.query, stream.synchronize, event.synchronize, graph.launch, lambda: kjit.reduce(own[0])):
    refused(kjit.DeviceError, use, "has failed")
assert device.name and own[0].shape == (1000,) and repr(own[0]) and len(kjit.devices()) == DEVICES + 1
del view, capsule, graph, event, stream
print("direct: good", file=sys.stderr)
