"""Memory managers by Numba's plug-in interface: classes that give the memory of devices.

`set_memory_manager` chooses the class; each device has one manager, an object of the class. New arrays of a device come from
its manager. On a GPU the temporary memory of launches and algorithms comes from it, too: libkjit asks `WorkMemory`."""

import abc
import collections
import contextlib
import ctypes
import functools
import importlib
import math
import threading

from .. import _arrays, _kjit, _state
from . import config, driver, errors

MemoryInfo = collections.namedtuple("MemoryInfo", "free total")

_VERSION = 1  # of the interface
_PINNED, _MAPPED, _MANAGED = 1, 2, 3  # libkjit's numbers of kinds of memory


class BaseCUDAMemoryManager(abc.ABC):
    """Numba's interface of a memory manager. A manager is made with `context=`, the context whose memory it manages."""

    def __init__(self, *args, **kwargs):
        if "context" not in kwargs:
            raise RuntimeError(f"{type(self).__name__} is made without context=, the context whose memory it manages")
        self.context = kwargs.pop("context")

    @abc.abstractmethod
    def memalloc(self, size):
        """Returns a MemoryPointer to new memory of the device, of size bytes."""

    @abc.abstractmethod
    def memhostalloc(self, size, mapped, portable, wc):
        """Returns new pinned memory of the host: a MappedMemory if kernels reach it in place, else a PinnedMemory."""

    @abc.abstractmethod
    def mempin(self, owner, pointer, size, mapped):
        """Pins memory that the host has. Returns a MappedMemory if kernels reach it in place, else a PinnedMemory."""

    @abc.abstractmethod
    def initialize(self):
        """Called once before the manager is used."""

    @abc.abstractmethod
    def get_ipc_handle(self, memory):
        """Returns the IpcHandle of a MemoryPointer, for another process."""

    @abc.abstractmethod
    def get_memory_info(self):
        """Returns the MemoryInfo of the device. A manager that does not know it raises NotImplementedError."""

    @abc.abstractmethod
    def reset(self):
        """Frees all memory of the context."""

    @abc.abstractmethod
    def defer_cleanup(self):
        """Returns a context manager. Within its block no memory is given back to the driver."""

    @property
    @abc.abstractmethod
    def interface_version(self):
        """The version of the interface, 1."""


class Deallocations:
    """Functions that give memory back. They wait here while clean-up is deferred."""

    def __init__(self):
        self._pending, self._size, self._deferred = collections.deque(), 0, 0

    def add_item(self, release, handle, size=0):
        """Calls release(handle), now or when clean-up is no longer deferred."""
        self._pending.append((release, handle, size))
        self._size += size
        self.clear()

    def clear(self):
        """Gives all memory back, unless clean-up is deferred."""
        while self._pending and not self._deferred:
            release, handle, size = self._pending.popleft()
            self._size -= size
            release(handle)

    @contextlib.contextmanager
    def disable(self):
        """Within the block memory waits."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
            self.clear()

    def __len__(self):
        return len(self._pending)


class HostOnlyCUDAMemoryManager(BaseCUDAMemoryManager):
    """A base of managers that give memory of the device only: kjit gives the memory of the host."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.allocations, self.deallocations = {}, Deallocations()

    def _host_memory(self, kind, memory, size):
        own = _kjit.empty(_state.context(), max(size, 1), "u8", _arrays.device(), memory)
        return kind(self.context, own._address, size, owner=own)

    def memhostalloc(self, size, mapped=False, portable=False, wc=False):
        """New pinned memory of the host. portable and wc change nothing."""
        if mapped:
            return self._host_memory(driver.MappedMemory, _MAPPED, size)
        return self._host_memory(driver.PinnedMemory, _PINNED, size)

    def memallocmanaged(self, size, attach_global=True):
        """New memory that moves to where it is used."""
        return self._host_memory(driver.ManagedMemory, _MANAGED, size)

    def mempin(self, owner, pointer, size, mapped=False):
        """The memory as it is: kjit copies it through pinned memory of its own."""
        return (driver.MappedMemory if mapped else driver.PinnedMemory)(self.context, pointer, size, owner=owner)

    def reset(self):
        """Gives back what waits."""
        self.allocations.clear()
        self.deallocations.clear()

    def defer_cleanup(self):
        """A block in which nothing is given back."""
        return self.deallocations.disable()


class GetIpcHandleMixin:
    """get_ipc_handle for managers whose memory is the driver's own."""

    def get_ipc_handle(self, memory):
        """The IpcHandle of memory of the device."""
        own = memory._keeps if isinstance(memory._keeps, _kjit.Array) else driver.bytes_at(memory.device_pointer_value, memory.size)
        return driver.export_memory(own, memory.size)


class KjitMemoryManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """kjit's own memory, which is used if a program chooses no manager."""

    def initialize(self):
        """Nothing to be done."""

    def memhostalloc(self, size, mapped=False, portable=False, wc=False):
        """New pinned memory of the host, as an array of bytes. portable and wc change nothing."""
        from . import host_arrays

        return (host_arrays.mapped_array if mapped else host_arrays.pinned_array)(size, "u1")

    def memallocmanaged(self, size, attach_global=True):
        """New memory that moves to where it is used, as an array of bytes."""
        from . import host_arrays

        return host_arrays.managed_array(size, "u1")

    def memalloc(self, size):
        """New memory from kjit's pool."""
        return driver.allocate(self.context, size)

    def get_memory_info(self):
        """Free and total bytes of the device, on the CPU those of the machine."""
        return MemoryInfo(*self.context.device._own.memory_info())

    @property
    def interface_version(self):
        return _VERSION


# ---- which manager a device has ----

_lock = threading.RLock()
_plugin = None  # the class of managers; None: the environment's, or kjit's own
_managers: dict[int, BaseCUDAMemoryManager] = {}  # by the number of the device


def set_memory_manager(mm_plugin):
    """Chooses the class of memory managers. Arrays that are made from now on come from managers of this class. On a GPU the
    temporary memory of kernels and algorithms comes from them, too, if the call precedes the first use of the GPU."""
    global _plugin
    version = mm_plugin(context=None).interface_version
    if version != _VERSION:
        raise RuntimeError(f"{mm_plugin.__name__} has version {version} of the plug-in interface: version {_VERSION} required")
    with _lock:
        _plugin = mm_plugin
        _managers.clear()
        _use_for_work()


def _of_environment():
    name = config.CUDA_MEMORY_MANAGER
    if name == "default":
        return KjitMemoryManager
    try:
        set_memory_manager(importlib.import_module(name)._numba_memory_manager)
    except Exception as error:
        raise RuntimeError(f"NUMBA_CUDA_MEMORY_MANAGER={name}: {type(error).__name__}: {error}") from error
    return _plugin


def manager_of(context):
    """The manager of a context's device."""
    number = context.device.id
    found = _managers.get(number)
    if found is None:
        with _lock:
            found = _managers.get(number)
            if found is None:
                found = (_plugin or _of_environment())(context=context)
                put_manager(context, found)
    return found


def put_manager(context, manager):
    """Sets the memory manager of a context's device."""
    if not isinstance(manager, KjitMemoryManager):
        _use_for_work()
    manager.initialize()
    _managers[context.device.id] = manager


def chosen():
    """The manager of the current device, or None if it is kjit's own."""
    from . import devices

    found = manager_of(devices.get_current_device().get_primary_context())
    return None if isinstance(found, KjitMemoryManager) else found


# ---- memory from a manager ----


def take(manager, size):
    """Memory of the device from a manager, which has to be what the interface says."""
    pointer = manager.memalloc(size)
    name = f"{type(manager).__name__}.memalloc({size})"
    if not hasattr(pointer, "device_pointer_value"):
        raise errors.CudaAPIError(f"{name} returned {type(pointer).__name__}, not a MemoryPointer")
    if not pointer.device_pointer_value:
        raise errors.CudaAPIError(f"{name} returned the address 0")
    if pointer.size < size:
        raise errors.CudaAPIError(f"{name} returned memory of {pointer.size} bytes")
    return pointer


def new_array(shape, dtype, text):
    """A new array of kjit's own. shape: in C order; dtype: NumPy's; text: the kernel IR's name of the elements."""
    manager = chosen()
    size = math.prod(shape) * dtype.itemsize
    # kjit imports no memory of records and dates. On a GPU libkjit asks WorkMemory for theirs.
    is_imported = dtype.kind not in "mMV"
    if manager is None or not size or not is_imported:
        return _arrays.empty(shape, text), None
    from . import arrays

    pointer = take(manager, size)
    described = {"shape": shape, "strides": None, "data": (pointer.device_pointer_value, False), "version": 3}
    described["typestr"] = dtype.str
    return arrays.import_memory(described, pointer, dtype)._own, pointer


def host_memory(size, kind):
    """Memory of the host from a manager that gives it in a way of its own, or None. kind: libkjit's number."""
    manager = chosen()
    if manager is None or kind == _MANAGED or type(manager).memhostalloc is HostOnlyCUDAMemoryManager.memhostalloc:
        return None
    given = manager.memhostalloc(size, mapped=kind == _MAPPED, portable=False, wc=False)
    if not getattr(given, "host_pointer", 0) or given.size < size:
        raise errors.CudaAPIError(f"{type(manager).__name__}.memhostalloc({size}) returned no host memory of that size")
    return given


# ---- the temporary memory of libkjit on a GPU ----


@functools.cache
def _library():
    return ctypes.CDLL("libcuda.so.1")


def _wait_for(stream):
    """A manager knows no streams: what a stream has queued is done before its memory is used otherwise."""
    _library().cuStreamSynchronize(ctypes.c_void_p(stream))


def _from_driver(size):
    """Memory without a manager, after a program has gone back to kjit's own."""
    address = ctypes.c_uint64()
    if _library().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError(f"cuMemAlloc({size})")
    free = functools.partial(_library().cuMemFree_v2, ctypes.c_uint64(address.value))
    return driver.MemoryPointer(None, address.value, size, finalizer=free)


class WorkMemory:
    """Asked by libkjit for the memory of GPUs, from any thread."""

    def __init__(self):
        self._blocks = {}  # address -> MemoryPointer
        self.failure = None  # why the last request of a thread failed
        self._failures = threading.local()

    def allocate(self, ordinal, size, stream):
        """The address of new memory, or 0 if there is none; stream: the native stream that uses it first, or 0."""
        from . import devices

        try:
            manager = manager_of(devices.context_of(ordinal))
            pointer = _from_driver(size) if isinstance(manager, KjitMemoryManager) else take(manager, size)
            if stream:
                _wait_for(0)
        except Exception as error:
            self._failures.last = error
            return 0
        self._blocks[pointer.device_pointer_value] = pointer
        return pointer.device_pointer_value

    def release(self, ordinal, address, size, stream):
        """Gives memory back that stream has used last."""
        if stream:
            _wait_for(stream)
        del self._blocks[address]

    def take_failure(self):
        """Why the last request of this thread failed, or None."""
        failure = getattr(self._failures, "last", None)
        self._failures.last = None
        return failure


def _use_for_work():
    if _state.device_memory is not None:
        return
    _state.device_memory = WorkMemory()
    if _state.has_contexts() and any(device.kind == "cuda" for device in _arrays.devices()):
        import warnings

        warnings.warn(
            "the GPU was used before the memory manager was chosen: the temporary memory of kernels still comes from kjit's own pool",
            errors.NumbaWarning,
            stacklevel=3,
        )


if config.CUDA_MEMORY_MANAGER != "default":
    _use_for_work()
