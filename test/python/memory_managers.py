# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Memory managers by Numba's plug-in interface. The managers here take memory from the C library and keep books of it: every
array has to lie in a live allocation of its manager, and nothing may be left when the arrays are gone."""
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import seeds
from kjit import cuda
from kjit.cuda.cudadrv import driver

random = seeds.fresh_generator()

# A module with the interface of rmm.allocators.numba: the class is written as RMM's is, with a DeviceBuffer for each
# allocation, which the finalizer keeps until the memory is freed.
RMM = '''
import ctypes
from kjit import cuda
from kjit.cuda import HostOnlyCUDAMemoryManager, IpcHandle, MemoryPointer

live, most, fail_at, asked = {}, 0, None, 0


class DeviceBuffer:
    def __init__(self, size):
        global asked
        asked += 1
        if asked - 1 == fail_at:
            raise MemoryError(f"std::bad_alloc: out_of_memory: {size} bytes")
        self.memory = (ctypes.c_char * (size + 256))()
        self.ptr = (ctypes.addressof(self.memory) + 255) & -256
        self.size = size
        live[self.ptr] = size


def make_finalizer(ptr, buffers):
    def finalizer():
        del live[ptr]
        del buffers[ptr]

    return finalizer


class RMMNumbaManager(HostOnlyCUDAMemoryManager):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.allocations, self.initialized = {}, 0

    def initialize(self):
        self.initialized += 1

    def memalloc(self, size):
        buffer = DeviceBuffer(size=size)
        self.allocations[buffer.ptr] = buffer
        return MemoryPointer(self.context, ctypes.c_uint64(buffer.ptr), size, finalizer=make_finalizer(buffer.ptr, self.allocations))

    def get_ipc_handle(self, memory):
        start, end = cuda.cudadrv.driver.device_extents(memory)
        return memory.handle.value - start, end - start, memory.size

    def get_memory_info(self):
        raise NotImplementedError()

    @property
    def interface_version(self):
        return 1


_numba_memory_manager = RMMNumbaManager
'''
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "rmm_standin.py"), "w") as file:
    file.write(RMM)
sys.path.insert(0, folder)
import rmm_standin as rmm  # noqa: E402


@cuda.jit
def add(r, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = x[i] + y[i]


@cuda.reduce
def total(a, b):
    return a + b


def work(n):
    """Uses several kinds of arrays and compares the results with NumPy's."""
    x, y = random.random(n), random.random(n)
    d_x, d_y, d_r = cuda.to_device(x), cuda.to_device(y), cuda.device_array(n)
    add[n // 32 + 1, 32](d_r, d_x, d_y)
    np.testing.assert_array_equal(d_r.copy_to_host(), x + y)
    np.testing.assert_allclose(total(d_r), (x + y).sum())
    m = np.asfortranarray(random.integers(0, 100, (5, 7)).astype("f4"))
    d_m = cuda.to_device(m)
    np.testing.assert_array_equal(d_m.copy_to_host(), m)
    row = d_m[2]
    record = np.zeros(4, [("a", "i4"), ("b", "f8")])
    record["a"], record["b"] = random.integers(0, 9, 4), random.random(4)
    d_record = cuda.to_device(record)
    np.testing.assert_array_equal(d_record.copy_to_host(), record)
    dates = random.integers(0, 9**9, 3).astype("M8[s]")
    np.testing.assert_array_equal(cuda.to_device(dates).copy_to_host(), dates)
    for array in (d_x, d_m, row):
        address = array.__cuda_array_interface__["data"][0]
        assert any(start <= address < start + size for start, size in rmm.live.items()), array
    gap = cuda.device_array((3, 2), "i4", strides=(16, 4))
    gap.copy_to_device(np.arange(6, dtype="i4").reshape(3, 2))
    assert gap.copy_to_host().tolist() == [[0, 1], [2, 3], [4, 5]]
    del d_x, d_y, d_m, array
    gc.collect()
    np.testing.assert_array_equal(row.copy_to_host(), m[2])  # the view keeps the memory
    own = d_r._own
    del d_r
    gc.collect()
    assert own._address in rmm.live  # kjit's own array does the same
    return d_record


first = cuda.current_context().memory_manager
kept = cuda.to_device(np.arange(3))
cuda.set_memory_manager(rmm.RMMNumbaManager)
manager = cuda.current_context().memory_manager
assert type(manager) is rmm.RMMNumbaManager and manager.initialized == 1 and manager is cuda.current_context().memory_manager
work(1000)
gc.collect()
assert rmm.asked >= 5 and not rmm.live and not manager.allocations, rmm.live
assert kept.copy_to_host().tolist() == [0, 1, 2]  # memory of the previous manager

# Every allocation fails in turn. The manager's error reaches the program, and no memory is lost.
count, rmm.asked = rmm.asked, 0
for i in range(count):
    rmm.asked, rmm.fail_at = 0, i
    try:
        work(100)
        raise AssertionError(i)
    except MemoryError as error:
        assert "std::bad_alloc" in str(error)
    gc.collect()
    assert not rmm.live, (i, rmm.live)
rmm.fail_at = None

# Functions of contexts: memory by address, memory information, handles for other processes.
context = cuda.current_context()
memory = context.memalloc(100)
assert memory.size == 100 and memory.device_pointer_value in rmm.live and memory.is_managed
driver.host_to_device(memory, np.arange(100, dtype="u1"), 100)
part = memory.view(10, 20)
back = np.zeros(10, "u1")
driver.device_to_host(back, part, 10)
assert back.tolist() == list(range(10, 20)) and part.owner is memory
memory.memset(7, 12)
driver.device_to_host(back, part, 10)
assert back.tolist() == [7, 7] + list(range(12, 20))
memory.free()
assert not rmm.live
try:
    memory.free()
    raise AssertionError("freed twice")
except RuntimeError as error:
    assert "freed twice" in str(error)
array = cuda.to_device(np.arange(4))
assert array.get_ipc_handle()._ipc_handle == (0, 32, 32) and array.gpu_data.owner.size == 32
try:
    context.get_memory_info()
    raise AssertionError("get_memory_info")
except NotImplementedError:
    pass
assert cuda.pinned_array(3).shape == (3,) and context.memhostalloc(8, mapped=True).size == 8
assert cuda.device_array(0).copy_to_host().size == 0 and len(rmm.live) == 1
with cuda.defer_cleanup():
    order = []
    manager.deallocations.add_item(order.append, 1, 8)
    assert not order and len(manager.deallocations) == 1
assert order == [1]


# Managers that return wrong information are named in the message.
def freed(memory):
    memory.free()
    return memory


class Liar(rmm.RMMNumbaManager):
    answer = None

    def memalloc(self, size):
        made = super().memalloc(size)
        return self.answer(made, size)


for answer, words in [
    (lambda made, size: cuda.MemoryPointer(None, made.handle, size // 2), "Liar.memalloc(80) returned only 40 bytes of memory"),
    (lambda made, size: cuda.MemoryPointer(None, 0, size), "returned the address 0"),
    (lambda made, size: 12345, "returned int, not a MemoryPointer"),
    (lambda made, size: None, "returned NoneType, not a MemoryPointer"),
    (lambda made, size: cuda.MemoryPointer(None, -8, size), "returned the address -8, where no memory of 80 bytes can be"),
    (lambda made, size: freed(made), "Liar.memalloc(80) returned memory that is freed"),
    (lambda made, size: freed(made).view(0, size), "Liar.memalloc(80) returned memory that is freed"),
    (lambda made, size: cuda.MemoryPointer(None, 2**64 - 40, size), f"returned the address {2**64 - 40}, where no memory of 80 bytes can be"),
]:
    Liar.answer = staticmethod(answer)
    context.memory_manager = Liar(context=context)
    try:
        cuda.device_array(10)
        raise AssertionError(words)
    except cuda.errors.CudaAPIError as error:
        assert words in str(error), str(error)
for make, words in [
    (lambda: cuda.MemoryPointer(None, "abc", 8), "the address of memory must be an integer, not 'abc'"),
    (lambda: cuda.MemoryPointer(None, 1 << 40, 8.5), "the size of memory must be an integer, not 8.5"),
    (lambda: cuda.MemoryPointer(None, 1 << 40, 8, finalizer=5), "the finalizer of memory must be a function, not int"),
    (lambda: cuda.external_stream("x"), "external_stream takes the handle of a stream, an integer, not 'x'"),
    (lambda: setattr(context, "memory_manager", 5), "derives from BaseCUDAMemoryManager, not int"),
]:
    try:
        make()
        raise AssertionError(words)
    except TypeError as error:
        assert words in str(error), str(error)

# A manager returns an address twice while the first array is in use. The address can be returned again afterwards.
Liar.answer = staticmethod(lambda made, size: rmm.MemoryPointer(None, shared.ptr, size))
shared = rmm.DeviceBuffer(100)
context.memory_manager = Liar(context=context)
array = cuda.device_array(10)
try:
    cuda.device_array(5)
    raise AssertionError("one address twice")
except cuda.errors.CudaAPIError as error:
    assert f"Liar.memalloc(40) returned the address {shared.ptr:#x}, which an earlier allocation still uses" in str(error), str(error)
del array
gc.collect()
array = cuda.to_device(np.arange(5))
array.gpu_data.owner.free()
assert cuda.to_device(np.arange(7)).copy_to_host().tolist() == list(range(7))
del array

# kjit's own manager: memory that is freed twice, and missing memory information.
context.memory_manager = first
memory = context.memalloc(64)
memory.free()
try:
    memory.free()
    raise AssertionError("freed twice")
except RuntimeError as error:
    assert "freed twice" in str(error)
context.memory_manager = type("Unknowing", (rmm.RMMNumbaManager,), {"get_memory_info": lambda self: 5})(context=context)
try:
    context.get_memory_info()
    raise AssertionError("no information")
except cuda.errors.CudaAPIError as error:
    assert "Unknowing.get_memory_info() returned 5, not (free, total)" in str(error), str(error)
try:
    context.memory_manager = type("Old", (rmm.RMMNumbaManager,), {"interface_version": 0})(context=context)
    raise AssertionError("version 0")
except RuntimeError as error:
    assert "Old has version 0 of the plug-in interface: version 1 required" in str(error)
for wrong, kind, words in [
    (5, TypeError, "set_memory_manager takes a class that derives from BaseCUDAMemoryManager, not 5"),
    (int, TypeError, "derives from BaseCUDAMemoryManager, not <class 'int'>"),
    (type("Old", (rmm.RMMNumbaManager,), {"interface_version": 0}), RuntimeError, "version 1 required"),
    (cuda.HostOnlyCUDAMemoryManager, TypeError, "abstract"),
]:
    try:
        cuda.set_memory_manager(wrong)
        raise AssertionError(words)
    except kind as error:
        assert words in str(error), str(error)
try:
    rmm.RMMNumbaManager()
    raise AssertionError("no context")
except RuntimeError as error:
    assert "context=" in str(error)


# A manager that also provides host memory.
class Whole(cuda.GetIpcHandleMixin, cuda.BaseCUDAMemoryManager):
    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.calls, self.buffers = [], []

    def _take(self, kind, size, *rest):
        self.calls.append((kind.__name__, *rest))
        self.buffers.append((ctypes.c_double * (size // 8 + 1))())
        return kind(self.context, ctypes.c_void_p(ctypes.addressof(self.buffers[-1])), size)

    def memalloc(self, size):
        return self._take(cuda.MemoryPointer, size)

    def memhostalloc(self, size, mapped, portable, wc):
        return self._take(cuda.MappedMemory if mapped else cuda.PinnedMemory, size)

    def mempin(self, owner, pointer, size, mapped):
        self.calls.append(("pin", pointer, size))
        return cuda.PinnedMemory(self.context, pointer, size, owner=owner)

    def initialize(self):
        self.calls.append(("initialize",))

    def get_memory_info(self):
        return cuda.MemoryInfo(free=32, total=64)

    def reset(self):
        self.calls.append(("reset",))

    def defer_cleanup(self):
        return open(os.devnull)

    @property
    def interface_version(self):
        return 1


context.memory_manager = whole = Whole(context=context)
pinned, mapped, own = cuda.pinned_array(5), cuda.mapped_array((2, 3), "i4"), random.random(6)
pinned[:], mapped[:] = 3, 4
add[1, 32](pinned, pinned, pinned)
assert pinned.tolist() == [6.0] * 5 and mapped.sum() == 24
assert pinned.ctypes.data == ctypes.addressof(whole.buffers[0])
with cuda.pinned(own):
    np.testing.assert_array_equal(cuda.to_device(own).copy_to_host(), own)
assert tuple(context.get_memory_info()) == (32, 64)
context.reset()
assert [call[0] for call in whole.calls] == ["initialize", "PinnedMemory", "MappedMemory", "pin", "MemoryPointer", "reset"], whole.calls
assert whole.calls[3][1:] == (own.ctypes.data, own.nbytes)
context.memory_manager = first
assert cuda.to_device(own).copy_to_host().tolist() == own.tolist() and len(whole.buffers) == 3

# An environment variable chooses a manager by its module.
program = textwrap.dedent("""
    import numpy as np
    from kjit import cuda
    a = cuda.to_device(np.arange(3))
    print(type(cuda.current_context().memory_manager).__name__, a.copy_to_host().tolist())
""")


def run(name):
    environment = dict(os.environ, NUMBA_CUDA_MEMORY_MANAGER=name, PYTHONPATH=os.pathsep.join([folder, *filter(None, sys.path)]))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


assert run("rmm_standin").stdout == "RMMNumbaManager [0, 1, 2]\n", run("rmm_standin")
assert run("default").stdout == "KjitMemoryManager [0, 1, 2]\n"
wrong = run("not_there_at_all")
assert wrong.returncode == 1 and "NUMBA_CUDA_MEMORY_MANAGER=not_there_at_all: ModuleNotFoundError" in wrong.stderr, wrong.stderr
print("memory_managers: good")
