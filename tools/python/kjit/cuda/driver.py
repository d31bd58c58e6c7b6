"""Memory by address: the functions and classes of `numba.cuda.cudadrv.driver` that concern memory."""

import contextlib
import ctypes
import operator
import types
import weakref

import numpy

from .. import _arrays, _kjit, _state
from . import arrays, errors, streams
from .errors import LinkerError as LinkerError

CudaAPIError = errors.CudaAPIError
Stream = streams.Stream


def _integer(value, name):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"the {name} of memory must be an integer, not {value!r}") from None


class MemoryPointer:
    """Device memory: `device_pointer_value` is its address and `size` its number of bytes.

    owner: the larger memory of which this memory is a part, or None. finalizer: a function that is
    called when nothing refers to the memory any more. keeps: an object that has to live as long as
    the memory.
    """

    __cuda_memory__ = True

    def __init__(self, context, pointer, size, owner=None, finalizer=None, keeps=None):
        self.context, self.size, self._keeps = context, _integer(size, "size"), keeps
        self.handle = pointer  # the pointer as the caller passed it: an integer, or a ctypes object with a value
        self.device_pointer_value = _integer(getattr(pointer, "value", pointer) or 0, "address")
        if finalizer is not None and not callable(finalizer):
            raise TypeError(f"the finalizer of memory must be a function, not {type(finalizer).__name__}")
        self.is_freed = False  # whether free() was called
        self._whole = owner.owner if isinstance(owner, MemoryPointer) else None
        self._owner = owner
        self._parts = weakref.WeakValueDictionary()  # the existing views of the whole memory
        if self._whole is not None:
            self._whole._parts[id(self)] = self
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    @property
    def owner(self):
        """The whole memory that this view belongs to, or the object itself."""
        return self if self._whole is None else self._whole

    @property
    def refct(self):
        """The number of views of the memory, including the whole memory."""
        return 1 + len(self.owner._parts)

    @property
    def device_pointer(self):
        """The address on the device, an integer."""
        return self.device_pointer_value

    @property
    def is_managed(self):
        """Whether the memory has a finalizer."""
        return self._finalizer is not None

    def free(self):
        """Calls the finalizer, which frees the memory. Memory without a finalizer is freed when nothing
        refers to it. Raises RuntimeError if this function was called before."""
        if self.is_freed:
            raise RuntimeError("memory was freed twice")
        self.is_freed = True
        if self._finalizer is not None:
            self._finalizer()

    def memset(self, byte, count=None, stream=0):
        """Sets the first `count` bytes to `byte`; None (default) means all bytes."""
        device_memset(self, byte, self.size if count is None else count, stream)

    @property
    def device_ctypes_pointer(self):
        """The address on the device, as a ctypes.c_size_t."""
        return ctypes.c_size_t(self.device_pointer_value)

    def view(self, start, stop=None):
        """Returns the bytes from index start up to but not including stop. Raises ValueError if the
        range is out of bounds."""
        stop = self.size if stop is None else stop
        if not 0 <= start <= stop <= self.size:
            raise ValueError(f"bytes {start} to {stop} are out of bounds for memory of {self.size} bytes")
        return MemoryPointer(self.context, self.device_pointer_value + start, stop - start, self)

    def own(self):
        """Returns a new object for the same memory."""
        return self.view(0)

    def __eq__(self, other):
        return isinstance(other, MemoryPointer) and (self.device_pointer_value, self.size) == (
            other.device_pointer_value,
            other.size,
        )

    def __hash__(self):
        return hash((self.device_pointer_value, self.size))


class AutoFreePointer(MemoryPointer):
    """Memory that is freed when nothing refers to it any more. In kjit this holds for every
    MemoryPointer."""


class _HostMemory:
    """Host memory with the buffer interface of NumPy. pointer: its address."""

    def _lie(self, pointer):
        self.host_pointer = int(getattr(pointer, "value", pointer) or 0)

    @property
    def __array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.host_pointer, False), "version": 3}

    def __buffer__(self, flags):
        """Returns the bytes as a memoryview, for functions that take buffers. Python calls this
        method from version 3.12 on."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.host_pointer)).cast("B")


class PinnedMemory(_HostMemory):
    """Pinned host memory. owner: the object that keeps the memory alive. finalizer: called when
    nothing refers to the object any more."""

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.context, self.size, self.owned, self.handle = context, size, owner, pointer
        self._lie(pointer)
        self.is_managed = finalizer is not None
        if finalizer is not None:
            weakref.finalize(self, finalizer)

    def own(self):
        """Returns the object itself."""
        return self


class MappedMemory(_HostMemory, AutoFreePointer):
    """Host memory that kernels access in place. pointer: its address, which is the same on the host
    and the device."""

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        super().__init__(context, pointer, size, finalizer=finalizer)
        self.owned = owner
        self._lie(pointer)


class ManagedMemory(MappedMemory):
    """Managed memory, which the driver moves to the processor that uses it."""


def device_extents(memory):
    """Returns the first address of the allocation that contains `memory` and the address after its
    last byte. On the CPU these are the bounds of `memory` itself."""
    address = device_pointer(memory)
    if _arrays.device().kind == "cpu":
        return address, address + device_memory_size(memory)
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    status = ctypes.CDLL("libcuda.so.1").cuMemGetAddressRange_v2(ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address))
    if status:
        raise CudaAPIError(f"cuMemGetAddressRange: CUDA error {status}")
    return start.value, start.value + size.value


def allocate(context, size):
    """Allocates `size` bytes of device memory with undefined contents, and returns a MemoryPointer."""
    own = _arrays.empty(size, "u8")
    return MemoryPointer(context, own._address, size, keeps=own)


def memory_of(context, own, size):
    """Returns a MemoryPointer to the memory of a kjit array."""
    return MemoryPointer(context, own._address if size else 0, size, keeps=own)


# ---- kinds of memory ----


def is_device_memory(obj):
    """Returns whether obj is memory that kernels can access."""
    return bool(getattr(obj, "__cuda_memory__", False))


def require_device_memory(obj):
    if not is_device_memory(obj):
        raise TypeError("Not a CUDA memory object.")


def device_pointer(obj):
    """Returns the device address of obj, an integer or device memory. Raises TypeError for other
    objects."""
    if isinstance(obj, int):
        return obj
    require_device_memory(obj)
    return obj.device_ctypes_pointer.value or 0


def device_memory_size(obj):
    """Returns the number of bytes of obj. Raises TypeError if obj is not device memory."""
    require_device_memory(obj)
    return obj.size if isinstance(obj, MemoryPointer) else obj.nbytes


def host_pointer(obj):
    """Returns the address of host memory: of an array, a ctypes object or any object with a buffer.
    An integer is returned unchanged."""
    if isinstance(obj, int):
        return obj
    if isinstance(obj, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(obj)
    return (obj if isinstance(obj, numpy.ndarray) else numpy.frombuffer(obj, numpy.uint8)).ctypes.data


def host_memory_extents(obj):
    """Returns the address of the first byte of host memory and the address after the last one."""
    if isinstance(obj, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)):
        first = ctypes.addressof(obj)
        return first, first + ctypes.sizeof(obj)
    bounds = getattr(numpy, "byte_bounds", None) or numpy.lib.array_utils.byte_bounds
    return bounds(numpy.asarray(obj))


def host_memory_size(obj):
    first, end = host_memory_extents(obj)
    return end - first


# ---- copies ----


def bytes_at(address, size):
    """Returns a kjit array of `size` bytes that shares the device memory at `address`."""
    described = {"shape": (size,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3}
    return arrays.from_cuda_array_interface(described)._own


def _finish(stream):
    """Waits for all work of the current device, unless the copy has a stream."""
    if not stream:
        _arrays.device().synchronize()


def _host_bytes(obj, size):
    raw = (ctypes.c_ubyte * size).from_address(host_pointer(obj))
    raw.keeps = obj
    return numpy.frombuffer(raw, numpy.uint8)


def host_to_device(dst, src, size, stream=0):
    """Copies `size` bytes from host memory to device memory."""
    if size:
        streams.wait_for(stream)
        bytes_at(device_pointer(dst), size).copy_from(_host_bytes(src, size))


def device_to_host(dst, src, size, stream=0):
    """Copies `size` bytes from device memory to host memory."""
    if size:
        streams.wait_for(stream)
        _host_bytes(dst, size)[:] = bytes_at(device_pointer(src), size).to_host()


def device_to_device(dst, src, size, stream=0):
    """Copies `size` bytes from device memory to device memory."""
    if size:
        streams.wait_for(stream)
        bytes_at(device_pointer(dst), size).copy_from(bytes_at(device_pointer(src), size))
        _finish(stream)


def device_memset(dst, val, size, stream=0):
    """Sets `size` bytes of device memory to the lowest 8 bits of val."""
    if size:
        streams.wait_for(stream)
        bytes_at(device_pointer(dst), size).copy_from(numpy.uint8(val & 255))
        _finish(stream)


# ---- other processes ----


class _Handle:
    def __init__(self, reserved):
        self.reserved = reserved


class IpcHandle:
    """A handle of device memory that another process of this machine can open. Pickling sends the
    handle to that process.

    The exporting process has to keep its array alive. size: in bytes.
    """

    def __init__(self, base, handle, size):
        self.base, self.handle, self.size = base, _Handle(handle), size
        self._opened = None

    def open_array(self, context, shape, dtype, strides=None):
        """Opens the memory as an array. close() ends the access. Raises ValueError if the handle is
        already open."""
        if self._opened is not None:
            raise ValueError("IpcHandle is already opened")
        self._opened = _kjit.open_array(_state.context(), self.handle.reserved)
        return arrays.of_memory(self._opened, shape, dtype, strides)

    def open_staged(self, context):
        """Opens the memory as bytes and returns a MemoryPointer."""
        return memory_of(context, self.open_array(context, (self.size,), numpy.uint8)._own, self.size)

    open = open_direct = open_staged

    def close(self):
        """Ends the access to the other process's memory. Raises ValueError if the handle is not
        open."""
        if self._opened is None:
            raise ValueError("IpcHandle not opened")
        self._opened = None

    def __reduce__(self):
        return IpcHandle, (None, self.handle.reserved, self.size)


class IpcArrayHandle:
    """A handle of a device array. In another process of this machine, `with handle as array:` opens
    the array."""

    def __init__(self, ipc_handle, array_desc):
        self._ipc_handle, self._description = ipc_handle, array_desc

    def open(self):
        from . import devices

        return self._ipc_handle.open_array(devices.get_current_device().get_primary_context(), **self._description)

    def close(self):
        self._ipc_handle.close()

    def __enter__(self):
        return self.open()

    def __exit__(self, *exc):
        self.close()


def export_memory(own, size):
    """Returns the IpcHandle of a kjit array."""
    return IpcHandle(own, _kjit.export_array(own), size)


class open_ipc_array:
    """Opens the memory that the bytes of a handle refer to: `with cuda.open_ipc_array(handle,
    shape, dtype) as array:`. Raises NotImplementedError for an offset other than 0."""

    def __init__(self, handle, shape, dtype, strides=None, offset=0):
        if offset:
            raise NotImplementedError("kjit.cuda.open_ipc_array(offset=) is not supported: a handle refers to the array itself")
        dtype = numpy.dtype(dtype)
        self._description = {"shape": shape, "dtype": dtype, "strides": strides}
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        handle = getattr(handle, "reserved", handle)
        if not isinstance(handle, (bytes, bytearray, memoryview, numpy.ndarray)):
            raise TypeError(f"the handle of an array consists of bytes, not of {type(handle).__name__}")
        if size < 0:
            raise ValueError(f"an extent of an array must not be negative: the shape is {shape}")
        self._handle = IpcHandle(None, bytes(handle), size)

    def __enter__(self):
        from . import devices

        return self._handle.open_array(devices.get_current_device().get_primary_context(), **self._description)

    def __exit__(self, *exc):
        self._handle.close()


def primary_context(ordinal):
    """Returns the primary CUcontext of a GPU as an integer. The CUDA runtime, PyTorch, CuPy and
    kjit use this context."""
    library, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    status = library.cuDevicePrimaryCtxRetain(ctypes.byref(handle), ordinal)
    if status:
        raise CudaAPIError(f"cuDevicePrimaryCtxRetain: CUDA error {status}")
    library.cuDevicePrimaryCtxRelease_v2(ordinal)  # the context stays alive, because kjit retains it
    return handle.value


class Driver:
    """The functions of Numba's `cudadrv.driver.driver` that programs call directly. Functions that
    need a CUDA driver are absent."""

    @staticmethod
    def get_device_count():
        """Returns the number of devices."""
        from . import devices

        return len(devices.gpus)

    @staticmethod
    def pop_active_context():
        """Ends the thread's choice of a device. Returns the handle of that device's context, or
        None if the thread has not chosen a device."""
        from . import devices

        if _kjit.get_current_device() is None:
            return None
        handle = devices.get_current_device().get_primary_context().handle
        _kjit.set_current_device(None)
        return handle

    @staticmethod
    def get_active_context():
        """Returns a context manager for the device that the thread has chosen. The value of the
        `with` statement has `context_handle` and `devnum`; both are None if the thread has not
        chosen a device."""
        from . import devices

        device = None if _kjit.get_current_device() is None else devices.get_current_device()
        handle = device and device.get_primary_context().handle
        return contextlib.nullcontext(types.SimpleNamespace(context_handle=handle, devnum=device and device.id))

    @staticmethod
    def cuMemGetInfo():  # noqa: N802
        """Returns (free, total): the bytes of the device's memory, or of the machine's memory on
        the CPU."""
        from . import devices

        return devices.get_current_device().get_primary_context().get_memory_info()


driver = Driver()
