"""Memory managers with Numba's plug-in interface (External Memory Management).

`set_memory_manager` chooses the class of managers. Each device has one manager, an object of that
class, which allocates the memory of new arrays. On a GPU libkjit also allocates the temporary
memory of launches and algorithms from the manager, through `WorkMemory`.
"""

import abc
import collections
import contextlib
import ctypes
import functools
import importlib
import math
import threading
import weakref

from .. import _arrays, _kjit, _state
from . import config, driver, errors

MemoryInfo = collections.namedtuple("MemoryInfo", "free total")

_VERSION = 1  # version of the plug-in interface
_PINNED, _MAPPED, _MANAGED = 1, 2, 3  # the numbers of the kinds of memory in libkjit


class BaseCUDAMemoryManager(abc.ABC):
    """Numba's interface of a memory manager. A manager is constructed with `context=`, the context
    whose memory it manages."""

    def __init__(self, *args, **kwargs):
        if "context" not in kwargs:
            raise RuntimeError(f"{type(self).__name__} needs context=, the context whose memory it manages")
        self.context = kwargs.pop("context")

    @abc.abstractmethod
    def memalloc(self, size):
        """Allocates `size` bytes of device memory and returns a MemoryPointer."""

    @abc.abstractmethod
    def memhostalloc(self, size, mapped, portable, wc):
        """Allocates pinned host memory. Returns a MappedMemory if kernels can access it in place
        (mapped), else a PinnedMemory."""

    @abc.abstractmethod
    def mempin(self, owner, pointer, size, mapped):
        """Pins existing host memory. Returns a MappedMemory if kernels can access it in place
        (mapped), else a PinnedMemory."""

    @abc.abstractmethod
    def initialize(self):
        """Initializes the manager. kjit calls this method once before it uses the manager."""

    @abc.abstractmethod
    def get_ipc_handle(self, memory):
        """Returns the IpcHandle of a MemoryPointer, which another process can open."""

    @abc.abstractmethod
    def get_memory_info(self):
        """Returns the MemoryInfo (free and total bytes) of the device. Raises NotImplementedError
        if the manager does not know it."""

    @abc.abstractmethod
    def reset(self):
        """Frees all memory of the context."""

    @abc.abstractmethod
    def defer_cleanup(self):
        """Returns a context manager within which the manager frees no memory."""

    @property
    @abc.abstractmethod
    def interface_version(self):
        """The version of the interface, an integer; must be 1."""


class Deallocations:
    """A queue of functions that free memory. The functions wait while deallocation is deferred."""

    def __init__(self):
        self._pending, self._size, self._deferred = collections.deque(), 0, 0

    def add_item(self, release, handle, size=0):
        """Calls release(handle) now, or at the end of the deferral. size: in bytes."""
        self._pending.append((release, handle, size))
        self._size += size
        self.clear()

    def clear(self):
        """Calls all waiting functions, unless deallocation is deferred."""
        while self._pending and not self._deferred:
            release, handle, size = self._pending.popleft()
            self._size -= size
            release(handle)

    @contextlib.contextmanager
    def disable(self):
        """Returns a context manager that defers deallocation."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
            self.clear()

    def __len__(self):
        return len(self._pending)


class HostOnlyCUDAMemoryManager(BaseCUDAMemoryManager):
    """A base class for managers that allocate device memory only. kjit allocates the host memory."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.allocations, self.deallocations = {}, Deallocations()

    def _host_memory(self, kind, memory, size):
        own = _kjit.empty(_state.context(), max(size, 1), "u8", _arrays.device(), memory)
        return kind(self.context, own._address, size, owner=own)

    def memhostalloc(self, size, mapped=False, portable=False, wc=False):
        """Allocates pinned host memory. portable and wc have no effect."""
        if mapped:
            return self._host_memory(driver.MappedMemory, _MAPPED, size)
        return self._host_memory(driver.PinnedMemory, _PINNED, size)

    def memallocmanaged(self, size, attach_global=True):
        """Allocates managed memory, which the driver moves to the processor that uses it."""
        return self._host_memory(driver.ManagedMemory, _MANAGED, size)

    def mempin(self, owner, pointer, size, mapped=False):
        """Returns the memory without pinning it: kjit copies it through pinned buffers of its own."""
        return (driver.MappedMemory if mapped else driver.PinnedMemory)(self.context, pointer, size, owner=owner)

    def reset(self):
        """Frees the memory whose deallocation was deferred."""
        self.allocations.clear()
        self.deallocations.clear()

    def defer_cleanup(self):
        """Returns a context manager within which no memory is freed."""
        return self.deallocations.disable()


class GetIpcHandleMixin:
    """Implements get_ipc_handle for managers whose memory the driver allocates."""

    def get_ipc_handle(self, memory):
        """Returns the IpcHandle of device memory."""
        own = memory._keeps if isinstance(memory._keeps, _kjit.Array) else driver.bytes_at(memory.device_pointer_value, memory.size)
        return driver.export_memory(own, memory.size)


class KjitMemoryManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """kjit's own memory manager, the default."""

    def initialize(self):
        """Does nothing."""

    def memhostalloc(self, size, mapped=False, portable=False, wc=False):
        """Returns new pinned host memory as an array of bytes. portable and wc have no effect."""
        from . import host_arrays

        return (host_arrays.mapped_array if mapped else host_arrays.pinned_array)(size, "u1")

    def memallocmanaged(self, size, attach_global=True):
        """Returns new managed memory as an array of bytes."""
        from . import host_arrays

        return host_arrays.managed_array(size, "u1")

    def memalloc(self, size):
        """Allocates device memory from kjit's pool."""
        return driver.allocate(self.context, size)

    def get_memory_info(self):
        """Returns the free and the total bytes of the device's memory, or of the machine's memory
        on the CPU."""
        return MemoryInfo(*self.context.device._own.memory_info())

    @property
    def interface_version(self):
        return _VERSION


# ---- the manager of a device ----

_lock = threading.RLock()
_plugin = None  # the class of managers; None means the one in the environment, or kjit's own
_managers: dict[int, BaseCUDAMemoryManager] = {}  # device number -> manager
_given: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # (device number, address) -> the MemoryPointer of a manager
_ADDRESSES = 1 << 64


def set_memory_manager(mm_plugin):
    """Chooses the class of memory managers, which then allocate the memory of new arrays.

    On a GPU the managers also allocate the temporary memory of kernels and algorithms, if the call
    precedes the first use of the GPU. Raises RuntimeError if the class implements another version
    of the interface.
    """
    global _plugin
    if not isinstance(mm_plugin, type) or not issubclass(mm_plugin, BaseCUDAMemoryManager):
        raise TypeError(f"set_memory_manager takes a class that derives from BaseCUDAMemoryManager, not {mm_plugin!r}")
    _check_version(mm_plugin(context=None))
    with _lock:
        _plugin = mm_plugin
        _managers.clear()
        _use_for_work()


def _check_version(manager):
    version = manager.interface_version
    if version != _VERSION:
        raise RuntimeError(f"{type(manager).__name__} has version {version} of the plug-in interface: version {_VERSION} required")


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
    """Returns the memory manager of a context's device."""
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
    if not isinstance(manager, BaseCUDAMemoryManager):
        raise TypeError(f"a memory manager must be an object of a class that derives from BaseCUDAMemoryManager, not {type(manager).__name__}")
    _check_version(manager)
    if not isinstance(manager, KjitMemoryManager):
        _use_for_work()
    manager.initialize()
    _managers[context.device.id] = manager


def chosen():
    """Returns the manager of the current device, or None if it is kjit's own."""
    from . import devices

    found = manager_of(devices.get_current_device().get_primary_context())
    return None if isinstance(found, KjitMemoryManager) else found


# ---- allocation through a manager ----


@contextlib.contextmanager
def current_context(context):
    """Makes a GPU's context the driver's current context on this thread. Numba does the same before it calls a manager,
    because the libraries that managers call allocate on the current GPU."""
    if context.device._own.kind == "cpu":
        yield
        return
    if status := _library().cuCtxPushCurrent_v2(ctypes.c_void_p(context.handle)):
        raise errors.CudaAPIError(f"cuCtxPushCurrent returned the error {status}")
    try:
        yield
    finally:
        _library().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def take(manager, size, context):
    """Allocates memory of the context's device through a manager and checks the result. Raises
    CudaAPIError if the result is not a MemoryPointer of at least `size` bytes, or if an earlier
    allocation that is still in use has the same address."""
    with current_context(context):
        pointer = manager.memalloc(size)
    name = f"{type(manager).__name__}.memalloc({size})"
    if not isinstance(pointer, driver.MemoryPointer):
        raise errors.CudaAPIError(f"{name} returned {type(pointer).__name__}, not a MemoryPointer")
    address = pointer.device_pointer_value
    if not address:
        raise errors.CudaAPIError(f"{name} returned the address 0")
    if not 0 < address < _ADDRESSES - size:
        raise errors.CudaAPIError(f"{name} returned the address {address}, where no memory of {size} bytes can be")
    if pointer.owner.is_freed or pointer.is_freed:
        raise errors.CudaAPIError(f"{name} returned memory that is freed")
    if pointer.size < size:
        raise errors.CudaAPIError(f"{name} returned only {pointer.size} bytes of memory")
    with _lock:
        before = _given.get((context.device.id, address))
        if before is not None and not before.is_freed:
            raise errors.CudaAPIError(f"{name} returned the address {address:#x}, which an earlier allocation still uses")
        _given[context.device.id, address] = pointer
    return pointer


def new_array(shape, dtype, text):
    """Returns (a new kjit array in row-major order, its MemoryPointer or None). dtype: the element
    type as a NumPy dtype. text: the same type as the kernel IR names it."""
    manager = chosen()
    size = math.prod(shape) * dtype.itemsize
    # Arrays of records and dates cannot wrap a manager's memory. On a GPU their memory still comes
    # from the manager, through WorkMemory.
    is_imported = dtype.kind not in "mMV"
    if manager is None or not size or not is_imported:
        return _arrays.empty(shape, text), None
    from . import arrays, devices

    pointer = take(manager, size, devices.get_current_device().get_primary_context())
    described = {"shape": shape, "strides": None, "data": (pointer.device_pointer_value, False), "version": 3}
    described["typestr"] = dtype.str
    return arrays.import_memory(described, pointer, dtype)._own, pointer


def host_memory(size, kind):
    """Allocates host memory through a manager that implements memhostalloc itself, or returns None.
    kind: the number of the kind in libkjit."""
    manager = chosen()
    if manager is None or kind == _MANAGED or type(manager).memhostalloc is HostOnlyCUDAMemoryManager.memhostalloc:
        return None
    given = manager.memhostalloc(size, mapped=kind == _MAPPED, portable=False, wc=False)
    if not getattr(given, "host_pointer", 0) or given.size < size:
        raise errors.CudaAPIError(f"{type(manager).__name__}.memhostalloc({size}) returned no host memory of that size")
    return given


# ---- libkjit's temporary memory on a GPU ----


@functools.cache
def _library():
    return ctypes.CDLL("libcuda.so.1")


def _wait_for(stream):
    """Waits for a stream, because a manager does not order the reuse of memory by streams."""
    _library().cuStreamSynchronize(ctypes.c_void_p(stream))


def _from_driver(size):
    """Allocates memory from the driver. Used after a program has returned to kjit's own manager."""
    address = ctypes.c_uint64()
    if _library().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError(f"cuMemAlloc({size})")
    free = functools.partial(_library().cuMemFree_v2, ctypes.c_uint64(address.value))
    return driver.MemoryPointer(None, address.value, size, finalizer=free)


class WorkMemory:
    """Allocates GPU memory for libkjit, which calls the methods from any thread."""

    def __init__(self):
        self._blocks = {}  # address -> MemoryPointer
        self.failure = None  # the exception of the last failed request of a thread
        self._failures = threading.local()

    def allocate(self, ordinal, size, stream):
        """Returns the address of new memory, or 0 if the allocation failed. stream: the driver's
        handle of the first stream that uses the memory, or 0."""
        from . import devices

        try:
            context = devices.context_of(ordinal)
            manager = manager_of(context)
            pointer = _from_driver(size) if isinstance(manager, KjitMemoryManager) else take(manager, size, context)
            if stream:
                _wait_for(0)
        except Exception as error:
            self._failures.last = error
            return 0
        self._blocks[pointer.device_pointer_value] = pointer
        return pointer.device_pointer_value

    def release(self, ordinal, address, size, stream):
        """Frees memory. stream: the driver's handle of the stream that used the memory last, or 0."""
        if stream:
            _wait_for(stream)
        del self._blocks[address]

    def take_failure(self):
        """Returns the exception of this thread's last request, or None, and forgets it."""
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
