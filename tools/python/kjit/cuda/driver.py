"""Memory by its addresses: what numba.cuda.cudadrv.driver has of it. `cuda.cudadrv.driver` is this."""

import contextlib
import ctypes
import types
import weakref

import numpy

from .. import _arrays, _kjit, _state
from . import arrays, errors, streams
from .errors import LinkerError as LinkerError

CudaAPIError = errors.CudaAPIError
Stream = streams.Stream


class MemoryPointer:
    """Memory of a device: its address and its bytes. owner: the memory that it is a part of. finalizer: what is called when
    nothing refers to it any more."""

    __cuda_memory__ = True

    def __init__(self, context, pointer, size, owner=None, finalizer=None, keeps=None):
        self.context, self.size, self._keeps = context, size, keeps
        self.handle = pointer  # as it is given: an integer, or an object of ctypes with a value
        self.device_pointer_value = int(getattr(pointer, "value", pointer) or 0)
        self._whole = owner.owner if isinstance(owner, MemoryPointer) else None
        self._owner = owner
        self._parts = weakref.WeakValueDictionary()  # of the whole memory
        if self._whole is not None:
            self._whole._parts[id(self)] = self
        self._finalizer = None if finalizer is None else weakref.finalize(self, finalizer)

    @property
    def owner(self):
        """The whole memory that this one is a part of, or the memory itself."""
        return self if self._whole is None else self._whole

    @property
    def refct(self):
        """How many parts of the memory there are, the whole one too."""
        return 1 + len(self.owner._parts)

    @property
    def device_pointer(self):
        """The address on the device, an integer."""
        return self.device_pointer_value

    @property
    def is_managed(self):
        """Whether something is called when the memory is freed."""
        return self._finalizer is not None

    def free(self):
        """Frees the memory now. RuntimeError: it was freed before."""
        if self._finalizer is not None and not self._finalizer.alive:
            raise RuntimeError("memory is freed a second time")
        if self._finalizer is not None:
            self._finalizer()

    def memset(self, byte, count=None, stream=0):
        """Every one of the first count bytes, or of all, becomes byte."""
        device_memset(self, byte, self.size if count is None else count, stream)

    @property
    def device_ctypes_pointer(self):
        """The address on the device, as a number of ctypes."""
        return ctypes.c_size_t(self.device_pointer_value)

    def view(self, start, stop=None):
        """The bytes from start to before stop."""
        stop = self.size if stop is None else stop
        if not 0 <= start <= stop <= self.size:
            raise ValueError(f"bytes {start} to {stop} of {self.size}")
        return MemoryPointer(self.context, self.device_pointer_value + start, stop - start, self)

    def own(self):
        """Another object for the same memory."""
        return self.view(0)

    def __eq__(self, other):
        return isinstance(other, MemoryPointer) and (self.device_pointer_value, self.size) == (
            other.device_pointer_value,
            other.size,
        )

    def __hash__(self):
        return hash((self.device_pointer_value, self.size))


class AutoFreePointer(MemoryPointer):
    """Memory that is freed when nothing refers to it any more, as every MemoryPointer is here."""


class _HostMemory:
    """Memory of the host as an object with a buffer of NumPy. pointer: its address."""

    def _lie(self, pointer):
        self.host_pointer = int(getattr(pointer, "value", pointer) or 0)

    @property
    def __array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.host_pointer, False), "version": 3}

    def __buffer__(self, flags):
        """The bytes, for objects that take buffers. Python asks from version 3.12 on."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.host_pointer)).cast("B")


class PinnedMemory(_HostMemory):
    """Pinned memory of the host: its address and its bytes. owner: what the memory lives as long as."""

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.context, self.size, self.owned, self.handle = context, size, owner, pointer
        self._lie(pointer)
        self.is_managed = finalizer is not None
        if finalizer is not None:
            weakref.finalize(self, finalizer)

    def own(self):
        """The same object."""
        return self


class MappedMemory(_HostMemory, AutoFreePointer):
    """Memory of the host that kernels reach in place. pointer: its address, which is the device's, too."""

    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        super().__init__(context, pointer, size, finalizer=finalizer)
        self.owned = owner
        self._lie(pointer)


class ManagedMemory(MappedMemory):
    """Memory that moves to where it is used."""


def device_extents(memory):
    """The addresses of the first byte of an allocation of a GPU and of the one behind its last. On the CPU: of the memory given."""
    address = device_pointer(memory)
    if _arrays.device().kind == "cpu":
        return address, address + device_memory_size(memory)
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    status = ctypes.CDLL("libcuda.so.1").cuMemGetAddressRange_v2(ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address))
    if status:
        raise CudaAPIError(f"cuMemGetAddressRange: CUDA error {status}")
    return start.value, start.value + size.value


def allocate(context, size):
    """New memory of the device, contents undefined."""
    own = _arrays.empty(size, "u8")
    return MemoryPointer(context, own._address, size, keeps=own)


def memory_of(context, own, size):
    """The memory of an array of kjit's own."""
    return MemoryPointer(context, own._address if size else 0, size, keeps=own)


# ---- what objects are ----


def is_device_memory(obj):
    """Whether it is memory that kernels reach."""
    return bool(getattr(obj, "__cuda_memory__", False))


def require_device_memory(obj):
    if not is_device_memory(obj):
        raise TypeError("Not a CUDA memory object.")


def device_pointer(obj):
    """The address of memory that kernels reach."""
    if isinstance(obj, int):
        return obj
    require_device_memory(obj)
    return obj.device_ctypes_pointer.value or 0


def device_memory_size(obj):
    """Its bytes."""
    require_device_memory(obj)
    return obj.size if isinstance(obj, MemoryPointer) else obj.nbytes


def host_pointer(obj):
    """The address of the host's memory: an array, an object of ctypes, anything with a buffer."""
    if isinstance(obj, int):
        return obj
    if isinstance(obj, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(obj)
    return (obj if isinstance(obj, numpy.ndarray) else numpy.frombuffer(obj, numpy.uint8)).ctypes.data


def host_memory_extents(obj):
    """The addresses of the first byte and of the one behind the last."""
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
    """Memory of the device as an array of kjit's own."""
    described = {"shape": (size,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3}
    return arrays.from_cuda_array_interface(described)._own


def _finish(stream):
    """What is not queued on a stream is done when the call returns."""
    if not stream:
        _arrays.device().synchronize()


def _host_bytes(obj, size):
    raw = (ctypes.c_ubyte * size).from_address(host_pointer(obj))
    raw.keeps = obj
    return numpy.frombuffer(raw, numpy.uint8)


def host_to_device(dst, src, size, stream=0):
    """Copies bytes of the host to the device."""
    if size:
        bytes_at(device_pointer(dst), size).copy_from(_host_bytes(src, size))


def device_to_host(dst, src, size, stream=0):
    """Copies bytes of the device to the host."""
    if size:
        _host_bytes(dst, size)[:] = bytes_at(device_pointer(src), size).to_host()


def device_to_device(dst, src, size, stream=0):
    """Copies bytes of the device."""
    if size:
        bytes_at(device_pointer(dst), size).copy_from(bytes_at(device_pointer(src), size))
        _finish(stream)


def device_memset(dst, val, size, stream=0):
    """Every one of the bytes becomes val."""
    if size:
        bytes_at(device_pointer(dst), size).copy_from(numpy.uint8(val & 255))
        _finish(stream)


# ---- other processes ----


class _Handle:
    def __init__(self, reserved):
        self.reserved = reserved


class IpcHandle:
    """Memory of a device for another process of this machine, which pickling sends there. It lives as long as the exporter's
    array. size: bytes."""

    def __init__(self, base, handle, size):
        self.base, self.handle, self.size = base, _Handle(handle), size
        self._opened = None

    def open_array(self, context, shape, dtype, strides=None):
        """The memory as an array; close() gives it back."""
        if self._opened is not None:
            raise ValueError("IpcHandle is already opened")
        self._opened = _kjit.open_array(_state.context(), self.handle.reserved)
        return arrays.of_memory(self._opened, shape, dtype, strides)

    def open_staged(self, context):
        """The memory, by its address."""
        return memory_of(context, self.open_array(context, (self.size,), numpy.uint8)._own, self.size)

    open = open_direct = open_staged

    def close(self):
        """Ends the view of the other process's memory. ValueError: it is not open."""
        if self._opened is None:
            raise ValueError("IpcHandle not opened")
        self._opened = None

    def __reduce__(self):
        return IpcHandle, (None, self.handle.reserved, self.size)


class IpcArrayHandle:
    """An array of a device for another process; `with handle as array:` opens it there."""

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
    """The IpcHandle of an array of kjit's own."""
    return IpcHandle(own, _kjit.export_array(own), size)


class open_ipc_array:
    """`with cuda.open_ipc_array(handle, shape, dtype) as array:` opens the memory behind a handle's bytes."""

    def __init__(self, handle, shape, dtype, strides=None, offset=0):
        if offset:
            raise NotImplementedError("kjit.cuda.open_ipc_array(offset=) is not supported: a handle refers to the array itself")
        dtype = numpy.dtype(dtype)
        self._description = {"shape": shape, "dtype": dtype, "strides": strides}
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        self._handle = IpcHandle(None, bytes(getattr(handle, "reserved", handle)), size)

    def __enter__(self):
        from . import devices

        return self._handle.open_array(devices.get_current_device().get_primary_context(), **self._description)

    def __exit__(self, *exc):
        self._handle.close()


def primary_context(ordinal):
    """The CUcontext that the CUDA runtime, PyTorch, CuPy and kjit use on a GPU, as a number."""
    library, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    status = library.cuDevicePrimaryCtxRetain(ctypes.byref(handle), ordinal)
    if status:
        raise CudaAPIError(f"cuDevicePrimaryCtxRetain: CUDA error {status}")
    library.cuDevicePrimaryCtxRelease_v2(ordinal)  # kjit keeps the context
    return handle.value


class Driver:
    """Numba's `cudadrv.driver.driver`: what programs ask the driver directly. Functions that only a CUDA driver has are not there."""

    @staticmethod
    def get_device_count():
        """Returns the number of devices."""
        from . import devices

        return len(devices.gpus)

    @staticmethod
    def pop_active_context():
        """Ends the thread's choice of a device. Returns the handle of the device's context, or None if the thread has chosen no
        device."""
        from . import devices

        if _kjit.get_current_device() is None:
            return None
        handle = devices.get_current_device().get_primary_context().handle
        _kjit.set_current_device(None)
        return handle

    @staticmethod
    def get_active_context():
        """The device that the thread has chosen, for a `with` block: `context_handle` and `devnum`, both None without a choice."""
        from . import devices

        device = None if _kjit.get_current_device() is None else devices.get_current_device()
        handle = device and device.get_primary_context().handle
        return contextlib.nullcontext(types.SimpleNamespace(context_handle=handle, devnum=device and device.id))

    @staticmethod
    def cuMemGetInfo():  # noqa: N802
        """Returns the free and the total bytes of the device, or of the machine on the CPU."""
        from . import devices

        return devices.get_current_device().get_primary_context().get_memory_info()


driver = Driver()
