# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Memory by its addresses, host memory that kernels reach, streams by their handles, warnings and settings of kjit.cuda; also
on a GPU, with KJIT_DEVICE=cuda."""
import ctypes
import gc
import pickle
import warnings

import numpy as np
import seeds

import kjit
from kjit import cuda

random = seeds.fresh_generator()
ON_GPU = kjit.device().kind == "cuda"


def fails(kind, text, function, *args, **keywords):
    try:
        function(*args, **keywords)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}: {text}")


# ---- memory at given addresses ----

driver, context = cuda.cudadrv.driver, cuda.current_context()
host = random.integers(0, 2**32, 100, dtype=np.uint32)
one, two, back = context.memalloc(host.nbytes), context.memalloc(host.nbytes), np.zeros_like(host)
driver.host_to_device(one, host, host.nbytes)
driver.device_to_device(two, one, host.nbytes)
driver.device_to_host(back, two, host.nbytes)
assert (back == host).all()
driver.device_memset(two.view(4, 8), 0x5A, 4)
driver.device_to_host(back, two, host.nbytes)
assert back[1] == 0x5A5A5A5A and (np.delete(back, 1) == np.delete(host, 1)).all()
part = one.view(8, 16)
assert part.device_pointer_value == one.device_pointer_value + 8 and part.size == 8 and one.refct == 2 and part.owner is one
del part
assert one.refct == 1
fails(ValueError, "bytes 4 to 500 are out of bounds for memory of 400 bytes", one.view, 4, 500)
fails(TypeError, "Not a CUDA memory object", driver.device_memory_size, host)
seen = []
pointer = driver.MemoryPointer(context, ctypes.c_void_p(1234), 40, finalizer=lambda: seen.append(1))
owned = pointer.own()
del owned
assert not seen
del pointer
gc.collect()
assert seen == [1]
assert driver.host_memory_size(host) == host.nbytes and driver.host_memory_size(ctypes.c_double(1)) == 8
device = cuda.to_device(host)
assert device.gpu_data == device.view(np.int32).gpu_data != cuda.to_device(host).gpu_data
free, total = context.get_memory_info()
assert 0 < free <= total
assert len(context.device.uuid) == 40 and context.device.uuid.startswith("GPU-")

# ---- strides of a new array ----

gaps = cuda.device_array((3, 4), np.int16, strides=(16, 4))
values = random.integers(-1000, 1000, (3, 4), dtype=np.int16)
gaps[:] = values
assert (gaps.copy_to_host() == values).all() and gaps.strides == (16, 4)
relaxed = cuda.cudadrv.devicearray.DeviceNDArray((1, 10), (800, 8), np.float64)
assert relaxed.flags["C_CONTIGUOUS"] and relaxed.flags["F_CONTIGUOUS"]
columns = np.asfortranarray(random.random((3, 4, 5)))
rows = cuda.to_device(np.ascontiguousarray(columns) * 0)
rows.copy_to_device(columns)
assert (rows.copy_to_host() == columns).all()
assert cuda.device_array(np.array([2, 3])).shape == (2, 3)
flipped = cuda.kernels.transpose.transpose(cuda.to_device(values))
assert (flipped.copy_to_host() == values.T).all()

# ---- memory of the host ----


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


for make in (cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
    array = make(50, np.float32)
    array[:] = random.random(50)
    wanted = 2 * array
    double[1, 64](array)
    cuda.synchronize()
    assert (array == wanted).all()
    array[10:20] = 1
    double[1, 64](array[10:20])  # a view
    cuda.synchronize()
    assert (array[10:20] == 2).all() and (array[:10] == wanted[:10]).all()
    fortran = make((3, 4), np.int64, order="F")
    assert fortran.flags.f_contiguous and not fortran.flags.c_contiguous
    kept = make((2, 3))[1:]
    gc.collect()
    kept[:] = 3
    assert (kept == 3).all() and make(0).size == 0
stream = cuda.stream()
mapped = cuda.mapped_array(10, stream=stream)
assert mapped.__cuda_array_interface__["stream"] == stream.handle == int(stream) != 0
assert mapped.__cuda_array_interface__["data"] == (mapped.ctypes.data, False)
assert not hasattr(cuda.pinned_array(3), "__cuda_array_interface__")

# ---- streams of other libraries ----


class Foreign:
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


array = cuda.device_array(10, stream=stream)
taken = cuda.as_cuda_array(Foreign(array))
assert taken.stream.external and int(taken.stream) == int(stream) and not stream.external
taken.stream.synchronize()
assert cuda.as_cuda_array(Foreign(cuda.device_array(3))).stream == 0
dummy = cuda.external_stream(0x12345678)
assert int(dummy.handle) == 0x12345678 == int(cuda.external_stream(ctypes.c_void_p(0x12345678)))
assert int(cuda.external_stream(ctypes.c_void_p())) == 0
for handle, kind in ((-1, ValueError), (1 << 64, ValueError), (2.0, TypeError), (None, TypeError)):
    fails(kind, "the handle of a stream", cuda.external_stream, handle)
if not ON_GPU:  # on a GPU the driver checks the handle
    uses = (dummy.synchronize, lambda: cuda.to_device(np.zeros(3)).copy_to_host(stream=dummy), lambda: cuda.event().record(dummy),
            lambda: cuda.event().wait(dummy), lambda: dummy.add_callback(print), lambda: cuda.jit(lambda x: None)[1, 1, dummy](np.zeros(3)))
    for use in uses:
        fails(kjit.ArgumentError, "the handle 0x12345678 is no stream", use)
assert bool(cuda.default_stream()) and int(cuda.legacy_default_stream()) == 1


@cuda.jit(debug=True, opt=False)
def checked(x):
    x[cuda.grid(1)] += 1


counts = np.zeros(4)
checked[1, 4, stream](counts)  # a kernel with checks has its own context
assert (counts == 1).all()
# one thread, so the order does not matter
fails(IndexError, "index 4 of", lambda: (checked[1, 5, stream](counts), cuda.synchronize()))

# ---- other processes ----

if ON_GPU:
    own = cuda.to_device(host)
    sent = pickle.loads(pickle.dumps(own.get_ipc_handle()))
    assert sent._ipc_handle.size == host.nbytes and sent._description == {"shape": (100,), "dtype": host.dtype, "strides": (4,)}
else:
    fails(Exception, "KJIT_MEMORY_SHARED", cuda.to_device(host).get_ipc_handle)
handle = pickle.loads(pickle.dumps(cuda.IpcHandle(None, b"x" * 320, 80)))
assert handle.handle.reserved == b"x" * 320 and handle.size == 80 and handle.base is None
fails(Exception, "handle", handle.open_array, context, 10, np.int64)
fails(ValueError, "not opened", handle.close)

# ---- warnings ----


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [(w.category.__name__, str(w.message)) for w in found]


found = caught(lambda: cuda.jit(double.py_func)[1, 64](counts))
if ON_GPU:
    assert ["low occupancy" in found[0][1], "copy overhead" in found[1][1], len(found)] == [True, True, 2], found
else:
    assert found == []  # with few blocks the CPU is busy and copies nothing
cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS = cuda.config.CUDA_WARN_ON_IMPLICIT_COPY = 1
assert caught(lambda: double[2, 64])[0][0] == "NumbaPerformanceWarning"
assert caught(lambda: double[128, 64]) == []
one_more = cuda.jit(double.py_func)
assert "copy overhead" in caught(lambda: one_more[128, 64](counts))[0][1]
assert caught(lambda: one_more[128, 64](cuda.to_device(counts))) == []
assert caught(lambda: cuda.jit(double.py_func)[128, 64](cuda.mapped_array(4))) == []
cuda.config.DISABLE_PERFORMANCE_WARNINGS = 1
assert caught(lambda: double[3, 64]) == []
assert "not supported by CUDA" in caught(lambda: cuda.jit(debug=True))[0][1]
assert caught(lambda: cuda.jit(debug=True, opt=False)) == []
assert "mutually exclusive" in caught(lambda: cuda.jit(debug=True, opt=False, lineinfo=True))[0][1]

# ---- arrays from numpy.broadcast_to keep their strides, also empty ones ----

for core in (random.standard_normal((4, 5)), np.asfortranarray(random.standard_normal((4, 5)))):
    for axis in range(3):
        wide = np.broadcast_to(np.expand_dims(core, axis), core.shape[:axis] + (6,) + core.shape[axis:])
        on_device = cuda.to_device(wide)
        assert on_device.strides[axis] == 0 and cuda.types.typeof(on_device).layout == "A"
        np.testing.assert_array_equal(on_device.copy_to_host(), wide)
        other = np.broadcast_to(np.expand_dims(core * 2, axis), wide.shape)
        on_device.copy_to_device(other)
        np.testing.assert_array_equal(on_device.copy_to_host(), other)
assert cuda.to_device(np.ndarray((0,), np.int8, strides=(0,))).strides == (0,)
packed, aligned = (np.dtype([("x", "f2"), ("y", "f2")], align=a) for a in (False, True))
assert cuda.types.from_dtype(packed) != cuda.types.from_dtype(aligned) == cuda.types.from_dtype(aligned)

# ---- arrays that repeat their elements ----

random = seeds.fresh_generator()
for shape, core in (((3, 4), (4,)), ((3, 4), ()), ((2, 3, 4), (3, 1)), ((1, 4), (4,)), ((2, 0), (0,))):
    small = random.random(core)
    host = np.broadcast_to(small, shape)
    device = cuda.to_device(host)
    np.testing.assert_array_equal(device.copy_to_host(), host)
    np.testing.assert_array_equal(cuda.cudadrv.devicearray.array_core(host), host[tuple(slice(None) if s else 0 for s in host.strides)] if host.size else host)
    assert cuda.cudadrv.devicearray.array_core(device).size == (small.size if host.size else 0)
    device.copy_to_device(np.broadcast_to(small + 1, shape))
    np.testing.assert_array_equal(device.copy_to_host(), host + 1)
free, total = driver.driver.cuMemGetInfo()
assert 0 < free <= total and driver.driver.get_device_count() == len(cuda.gpus)

# ---- attributes of a device ----

device = cuda.get_current_device()
assert device.MULTIPROCESSOR_COUNT >= 1 and device.WARP_SIZE == 32 and device.MAX_SHARED_MEMORY_PER_BLOCK >= 48 * 1024
assert (device.COMPUTE_CAPABILITY_MAJOR, device.COMPUTE_CAPABILITY_MINOR) == device.compute_capability
for name in cuda.cudadrv.devices._ATTRIBUTES:
    assert isinstance(getattr(device, name), int), name
fails(AttributeError, "have no attribute 'MULTIPROCESSORS'", lambda: device.MULTIPROCESSORS)

# Arrays with unaligned elements are copied.
whole = np.arange(10.0)
odd = np.ndarray(9, buffer=whole.view("u1")[4:-4], dtype="f8")
for given in (odd, odd.reshape(3, 3), odd.reshape(3, 3).T):
    np.testing.assert_array_equal(cuda.to_device(given).copy_to_host(), given)
    moved = cuda.device_array_like(given)
    moved.copy_to_device(given)
    np.testing.assert_array_equal(moved.copy_to_host(), given)

# The memory of a record.
records = np.zeros(2, np.dtype([("a", np.int32), ("b", np.float64)], align=True))
one, other = cuda.to_device(records[0]), cuda.to_device(records[0])
assert one.gpu_data != other.gpu_data and one.gpu_data == one.gpu_data and one.gpu_data.size == 16

# ---- a part of a device record is not an argument by itself ----
part = np.dtype([("x", np.int32), ("b", np.float64)])
nested = np.zeros(2, np.dtype([("x", np.int64), ("part", part), ("v", np.float32, 3)]))
nested["x"], nested["part"] = 7, (3, 4.5)
on_device = cuda.to_device(nested)


@cuda.jit
def first_of_part(r, p):
    r[0] = p.part.x
    p.part.b = 11


r = np.zeros(1)
first_of_part[1, 1](r, on_device[1])
assert r[0] == 3 and on_device.copy_to_host()["part"]["b"].tolist() == [4.5, 11]
for alone in (on_device[1]["part"], on_device[1]["v"]):
    try:
        first_of_part[1, 1](r, alone)
        raise AssertionError("a part of a record is taken")
    except NotImplementedError as error:
        assert "not only its field" in str(error), error

# ---- like functions keep the order of the strides, without gaps, as numpy.empty_like does ----

for shape in ((6,), (4, 6), (3, 4, 6), (1, 5), (5, 1, 3), ()):
    whole = random.random(shape)
    order = tuple(random.permutation(len(shape)))
    for host in (whole, whole[tuple(slice(None, None, 2) for _ in shape)], whole.transpose(order), np.asfortranarray(whole)):
        device = cuda.device_array(shape, host.dtype) if host is whole else cuda.to_device(host)
        for made in (cuda.device_array_like(host), cuda.device_array_like(device), cuda.pinned_array_like(host), cuda.mapped_array_like(host)):
            wanted = np.empty_like(host)
            differing = [at for at, extent in enumerate(host.shape) if extent > 1 and made.strides[at] != wanted.strides[at]]
            assert made.shape == host.shape and not differing, (host.shape, host.strides, made.strides, wanted.strides)
        repeated = np.broadcast_to(host, (3, *host.shape))
        assert cuda.cudadrv.devicearray.is_contiguous(host) == host.flags.c_contiguous == cuda.cudadrv.devicearray.is_contiguous(repeated)

# ---- arguments of a wrong type are rejected by name, and never rounded or ignored ----

host = np.arange(8.0)
for create in (cuda.device_array, cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
    for order in ("Q", "A", "", None):
        fails(ValueError, f"order must be 'C' or 'F', not {order!r}", create, (2, 4), order=order)
for order in ("Q", "K", ""):
    fails(ValueError, f"order must be 'C' or 'F' or 'A', not {order!r}", cuda.to_device(host).reshape, 2, 4, order=order)
    fails(ValueError, f"order must be 'C' or 'F' or 'A', not {order!r}", cuda.to_device(host.reshape(2, 4)).ravel, order=order)
assert cuda.to_device(np.asfortranarray(host.reshape(2, 4))).reshape(4, 2, order="A").copy_to_host().tolist() == host.reshape(2, 4).reshape((4, 2), order="F").tolist()
for stream in ("x", 1.0, 7, object()):
    text = f"a stream must be a cuda.stream() or 0, not {type(stream).__name__}"
    for function, *arguments in ((cuda.to_device, host), (cuda.device_array, 3), (cuda.device_array_like, host), (cuda.mapped_array, 3),
                                 (cuda.managed_array, 3), (cuda.to_device(host).copy_to_host,), (cuda.to_device(host).copy_to_device, host)):
        fails(TypeError, text, function, *arguments, stream=stream)
    fails(TypeError, text, cuda.to_device, host, stream, to=cuda.device_array(8))
for size in (1.5, "16", None):
    fails(TypeError, f"the size of shared memory must be an integer, not {size!r}", double.configure, 1, 8, 0, size)
    fails(TypeError, f"the number of tasks must be an integer, not {size!r}", double.forall, size)
assert double[1, 8, 0, np.int64(16)] is double[1, 8, 0, 16]
for priority in (1.5, "high"):
    fails(TypeError, f"the priority of a stream must be an integer, not {priority!r}", cuda.stream, priority)
fails(TypeError, "the elapsed time needs two events made by cuda.event(), not 3", cuda.event_elapsed_time, cuda.event(), 3)
fails(TypeError, "the elapsed time needs two events made by cuda.event(), not None", cuda.event().elapsed_time, None)
for peer in ("0", 0.5, None):
    for function in (context.can_access_peer, context.enable_peer_access, context.disable_peer_access):
        fails(TypeError, f"the number of a device must be an integer, not {peer!r}", function, peer)
for handle in (None, "x" * 64, 64):
    fails(TypeError, f"the handle of an array consists of bytes, not of {type(handle).__name__}", cuda.open_ipc_array, handle, (2,), "f8")
fails(ValueError, "an extent of an array must not be negative: the shape is (-2,)", cuda.open_ipc_array, bytes(64), (-2,), "f8")


# ---- elements as arguments: numbers, which a kernel cannot change ----


@cuda.jit
def add_number(r, number):
    r[0] = number + 1


@cuda.jit
def set_element(element):
    element[()] = 9


line = kjit.array(np.arange(4.0))
for source in (line, cuda.to_device(np.arange(4.0)), np.arange(4.0)):
    for _ in range(2):  # the first launch, and one after it
        result = np.zeros(1)
        add_number[1, 1](result, source[3])
        assert result[0] == 4
        fails(kjit.TypingError, "only arrays, tuples, vectors and pointers can be indexed", set_element[1, 1], source[3])
for _ in range(2):
    set_element[1, 1](line[3, ...])
    assert line[3] == 9
    line[3] = 3

# ---- assignments to an element ----

for shape, key in (((4,), 2), ((4,), (-1,)), ((2, 3), (1, 2)), ((), ())):
    wanted = np.zeros(shape)
    device = cuda.to_device(wanted)
    device[key] = wanted[key] = 9
    np.testing.assert_array_equal(device.copy_to_host(), wanted)
