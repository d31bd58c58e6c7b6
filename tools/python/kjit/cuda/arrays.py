"""Device arrays with the interface of numba.cuda."""

import ctypes
import functools
import operator

import numpy

from .. import _arrays, _kjit, _state, dtypes
from .._errors import CLASSES
from . import config, errors, layouts, records, streams
from .layouts import array_core as array_core
from .layouts import is_contiguous as is_contiguous
from .layouts import verify_cuda_ndarray_interface as verify_cuda_ndarray_interface

_NoDeviceError = CLASSES["KJIT_ERROR_NO_DEVICE"]


class _OfDlpack:
    """A DLPack method that only arrays on a CPU device have, because their __cuda_array_interface__ names no device. Arrays on
    a GPU have only that interface, as in Numba. NumPy 1 reads the method from the class and passes the array as an
    argument."""

    def __init__(self, name):
        self._name = name

    def __get__(self, array, kind):
        if array is None:
            return lambda array, *args, **options: self.__get__(array, kind)(*args, **options)
        if array._own.device.startswith("cuda"):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{self._name}'")
        return getattr(array._own, self._name)


class DeviceNDArray(_kjit.Held):
    """An array in device memory with NumPy's attributes.

    `a[i]` returns a NumPy scalar if it selects one element, and a view otherwise. An array that is
    made from a shape and strides has undefined contents. strides are in bytes, as in NumPy.
    """

    def __init__(self, shape, strides, dtype, stream=0, gpu_data=None):
        made = device_array(shape, dtype, strides, stream=stream) if gpu_data is None else of_memory(gpu_data, shape, dtype, strides)
        self._fill(made._own, made.dtype, made.strides, stream, made)

    @classmethod
    def _of(cls, own, dtype, strides, stream=0, base=None):
        """Returns a DeviceNDArray for `own`, a kjit array (kjit.Array)."""
        made = cls.__new__(cls)
        made._fill(own, dtype, strides, stream, base)
        return made

    def _fill(self, own, dtype, strides, stream, base):
        self._own, self.dtype, self.strides, self.stream, self._base = (
            own,
            numpy.dtype(dtype),
            tuple(strides),
            stream,
            base,
        )
        self.shape, self.ndim = own.shape, len(own.shape)

    @property
    def size(self):
        return functools.reduce(operator.mul, self.shape, 1)

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    alloc_size = nbytes
    __cuda_memory__ = True
    __cuda_ndarray__ = True

    @property
    def is_c(self):
        return self._lies("C")

    def _lies(self, order):
        wanted = layouts.contiguous_strides(self.shape, self.dtype.itemsize, order)
        return self.size == 0 or all(e == 1 or s == w for e, s, w in zip(self.shape, self.strides, wanted))

    def is_c_contiguous(self):
        return self._lies("C")

    def is_f_contiguous(self):
        return self._lies("F")

    @property
    def flags(self):
        c, f = self._lies("C"), self._lies("F")
        return {"C_CONTIGUOUS": c, "F_CONTIGUOUS": f, "WRITEABLE": True}

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "data": (self._own._address if self.size else 0, False),
            "typestr": self.dtype.str,
            "stream": int(self.stream) or None,
            "version": 3,
        }

    __dlpack__, __dlpack_device__ = _OfDlpack("__dlpack__"), _OfDlpack("__dlpack_device__")

    @property
    def gpu_data(self):
        """The array's memory, a MemoryPointer."""
        from . import devices, driver

        base = self._base
        while isinstance(base, DeviceNDArray) and base._own._address == self._own._address:
            base = base._base
        if isinstance(base, driver.MemoryPointer):
            return base
        return driver.memory_of(devices.device_of(self._own).get_primary_context(), self._own, self.nbytes)

    def get_ipc_handle(self):
        """Returns a handle that another process of this machine can open. Pickling sends the handle
        to that process."""
        from . import devices, driver

        description = {"shape": self.shape, "dtype": self.dtype, "strides": self.strides}
        context = devices.device_of(self._own).get_primary_context()
        return driver.IpcArrayHandle(context.get_ipc_handle(self.gpu_data), description)

    @property
    def device_ctypes_pointer(self):
        return ctypes.c_uint64(self.__cuda_array_interface__["data"][0])

    @property
    def _numba_type_(self):
        from . import types

        return types.typeof(self)

    # ---- copies ----

    def copy_to_host(self, ary=None, stream=0):
        """Copies the elements to the NumPy array `ary`, or to a new one, and returns that array.
        Raises ValueError or TypeError if ary has another shape, dtype or order."""
        if ary is None:
            ary = numpy.empty(
                self.shape, self.dtype, "F" if self.is_f_contiguous() and not self.is_c_contiguous() else "C"
            )
        else:
            layouts.check_copy(self, ary)
            layouts.check_strides(self, ary)
        if self.size:
            streams.wait_for(stream)
            ary[...] = self._to_host()
        return ary

    def _to_host(self):
        return self._own.to_host()

    def copy_to_device(self, ary, stream=0):
        """Copies the elements in another array with the same shape, dtype and order into this
        array. ary may be a NumPy array or a device array. Raises ValueError or TypeError if its
        shape, dtype or order differs."""
        if ary.size == 0:
            return
        streams.wait_for(stream)
        source = (
            ary
            if isinstance(ary, DeviceNDArray)
            else numpy.asarray(ary)
            if not has_interface(ary)
            else as_cuda_array(ary)
        )
        layouts.check_copy(self, source)
        core = array_core(self)
        if core.size != self.size:
            # elements repeat along dimensions of stride 0, so the view is reduced to one copy of each element
            return core.copy_to_device(source[layouts.core_index(self)], stream)
        if isinstance(source, DeviceNDArray):
            self._own.copy_from(source._own)
        else:
            host = _dense(source).reshape(source.shape)
            self._own.copy_from(host if self.dtype.names else host.astype(self.dtype, copy=False))

    # ---- views ----

    def _view(self, own, strides, dtype=None):
        return DeviceNDArray._of(own, dtype or self.dtype, strides, self.stream, self)

    @property
    def T(self):
        return self._view(self._own.T, self.strides[::-1])

    def transpose(self, axes=None):
        if axes and tuple(axes) == tuple(range(self.ndim)):
            return self
        if axes and self.ndim == 2 and sorted(axes) != [0, 1]:
            raise ValueError(f"invalid axes list {tuple(axes)}")
        if self.ndim > 2 or axes and tuple(axes) != (1, 0):
            raise NotImplementedError("transposing a non-2D DeviceNDArray isn't supported")
        return self.T

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def _slice(self, key):
        key = key if isinstance(key, tuple) else (key,)
        count = sum(k is not Ellipsis for k in key)
        if count > self.ndim:
            raise IndexError("too many indices for array")
        if any(k is Ellipsis for k in key):
            at = next(i for i, k in enumerate(key) if k is Ellipsis)
            key = key[:at] + (slice(None),) * (self.ndim - count) + key[at + 1 :]
        key += (slice(None),) * (self.ndim - len(key))
        strides, shape = [], []
        for k, extent, stride in zip(key, self.shape, self.strides):
            if isinstance(k, slice):
                first, last, step = k.indices(extent)
                strides.append(stride * step)
                shape.append(len(range(first, last, step)))
            else:
                operator.index(k)
        # without the ellipsis, a key with an integer for each axis returns a copy of the element
        return self._view(self._own[(*key, Ellipsis)] if self.ndim else self._own, strides)

    def __getitem__(self, key):
        view = self._slice(key)
        if view.shape:
            return view
        if self.dtype.names:
            return records.DeviceRecord(self.dtype, self.stream, view._own)
        return view._to_host()[()]

    getitem = __getitem__

    def __setitem__(self, key, value):
        view = self._slice(key)
        if isinstance(value, DeviceNDArray):
            value = value.copy_to_host()
        given = numpy.asarray(value, self.dtype if self.dtype.names else None)
        if given.ndim > view.ndim:
            raise ValueError(f"Can't assign {given.ndim}-D array to {view.ndim}-D self")
        axes = range(view.ndim - 1, -1, -1)
        for extent, wanted, axis in zip(given.shape[::-1], view.shape[::-1], axes):
            if extent not in (1, wanted):
                raise ValueError(
                    f"Can't copy sequence with size {extent} to array axis {axis} with dimension {wanted}"
                )
        if view.size:
            # broadcast_to returns a read-only view, so the elements are copied.
            given = numpy.array(numpy.broadcast_to(given, view.shape), self.dtype, order="C")
            view._own.copy_from(given.reshape(view.shape))

    def setitem(self, key, value, stream=0):
        streams.wait_for(stream)
        self[key] = value

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def reshape(self, *newshape, order="C"):
        """Returns a view of the same elements with another shape. One extent may be -1. Raises
        ValueError if more than one extent is -1."""
        shape = newshape[0] if len(newshape) == 1 and isinstance(newshape[0], (tuple, list)) else newshape
        unknown = [i for i, s in enumerate(shape) if s == -1]
        if len(unknown) > 1:
            raise ValueError("can only specify one unknown dimension")
        rest = functools.reduce(operator.mul, (s for s in shape if s != -1), 1)
        if unknown and rest and self.size % rest == 0:
            shape = tuple(self.size // rest if s == -1 else s for s in shape)
        if functools.reduce(operator.mul, shape, 1) != self.size:
            raise ValueError("cannot reshape array: total size of new array must be unchanged")
        layouts.check_order(order, "CFA")
        if order == "A":
            order = "F" if self.is_f_contiguous() and not self.is_c_contiguous() else "C"
        if order == "F":
            if not self.is_f_contiguous():
                raise NotImplementedError("reshape would require copy")
            return self._view(
                self._own.T._reshape(*reversed(shape)).T, layouts.contiguous_strides(shape, self.dtype.itemsize, "F")
            )
        if not self.is_c_contiguous():
            raise NotImplementedError("reshape would require copy")
        return self._view(self._own._reshape(*shape), layouts.contiguous_strides(shape, self.dtype.itemsize))

    def ravel(self, order="C", stream=0):
        return self.reshape(self.size, order=order)

    def squeeze(self, axis=None, stream=0):
        axes = (
            [i for i, e in enumerate(self.shape) if e == 1]
            if axis is None
            else [axis]
            if isinstance(axis, int)
            else list(axis)
        )
        if any(self.shape[a] != 1 for a in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        return self._slice(tuple(0 if i in axes else slice(None) for i in range(self.ndim)))

    def split(self, section, stream=0):
        """Splits a one-dimensional array and returns a list of views with `section` elements each.
        Raises ValueError if the array does not have one dimension."""
        if self.ndim != 1:
            raise ValueError("not implemented for non-1D arrays")
        return [self[at : at + section] for at in range(0, self.size, section)]

    def view(self, dtype):
        """Returns a view of the same bytes as elements of another type. Raises ValueError if the
        size of the elements changes and the last axis is not contiguous."""
        dtype = numpy.dtype(dtype)
        if dtype == self.dtype:
            return self._view(self._own, self.strides)
        shape, strides = list(self.shape), list(self.strides)
        if dtype.itemsize != self.dtype.itemsize:
            if not self.ndim or self.shape[-1] != 1 and self.strides[-1] != self.dtype.itemsize:
                raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
            size = shape[-1] * self.dtype.itemsize
            if size % dtype.itemsize:
                raise ValueError(
                    "When changing to a larger dtype, its size must be a divisor of the total size in bytes"
                    " of the last axis of the array."
                )
            shape[-1], strides[-1] = size // dtype.itemsize, dtype.itemsize
        interface = self.__cuda_array_interface__
        described = {**interface, "typestr": dtype.str, "shape": tuple(shape), "strides": tuple(strides), "stream": None}
        if dtype.names:
            described["typestr"], described["descr"] = f"|V{dtype.itemsize}", dtype.descr
        return from_cuda_array_interface(described, owner=self, sync=False)

    def bind(self, stream=0):
        return DeviceNDArray._of(self._own, self.dtype, self.strides, stream, self)

    def __array__(self, *args, **keywords):
        if args and args[0] is not None:
            return self.copy_to_host().astype(args[0])
        return self.copy_to_host()

    def __reduce__(self):
        return _unpickled, (self.copy_to_host(), self._own.device)

    def __repr__(self):
        return f"<kjit.cuda.DeviceNDArray {self.dtype}, shape {self.shape}, on {self._own.device}>"


def _unpickled(host, place):
    """Returns an unpickled array on its original device, or on the current device if the original
    one does not exist."""
    try:
        device = _arrays.device(place)
    except _NoDeviceError:
        return to_device(host)
    if device.kind != _arrays.device().kind:
        return to_device(host)
    with device:
        return to_device(host)


def auto_device(obj, stream=0, copy=True):
    """Returns (a device array, whether the array is a copy). obj may be a device array, a record or
    a host array."""
    if isinstance(obj, DeviceNDArray) or has_interface(obj):
        return as_cuda_array(obj), False
    if isinstance(obj, records.DeviceRecord):
        return obj, False
    if isinstance(obj, numpy.void):
        return records.to_device(obj, stream), True
    return to_device(obj, stream, copy), True


def check_enabled():
    if config.DISABLE_CUDA:
        raise errors.CudaSupportError(config.DISABLED)


def is_on_cpu():
    """Returns whether launches run on the CPU."""
    return _arrays.device().kind == "cpu"


def has_interface(thing):
    return hasattr(thing, "__cuda_array_interface__")


def _numpy_dtype(kind):
    own = getattr(kind, "dtype", None)  # a record or date type has a NumPy dtype
    found = own if isinstance(own, numpy.dtype) else dtypes._NUMPY.get(kind.text)
    if found is None:
        raise NotImplementedError(f"kjit.cuda does not support arrays of {kind}: NumPy has no such type")
    return numpy.dtype(found)


def element_of(dtype):
    """Returns the NumPy dtype and kjit's name for the elements in an array. dtype: a type of kjit.cuda,
    or a dtype in any form that NumPy accepts."""
    dtype = _numpy_dtype(dtype) if isinstance(dtype, dtypes.DType) else numpy.dtype(dtype)
    text = _arrays._record_name(dtype) or dtypes.name_of(dtype)
    if text is None:
        raise NotImplementedError(
            f"kjit.cuda does not support arrays of {dtype}; elements can be numbers, bools, complex numbers and records of these"
        )
    return dtype, text


def device_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0):
    """Returns a new device array with undefined contents. strides: in bytes; None (default) means
    an array without gaps in `order`, "C" or "F"."""
    from . import memory

    check_enabled()
    layouts.check_order(order)
    streams.unwrap(stream)
    shape = layouts.shape_of(shape)
    dtype, text = element_of(dtype)
    if strides is not None:
        strides = layouts.shape_of(strides)
        order = layouts.order_of(strides, shape, dtype.itemsize)
        if order is None:
            return _strided(shape, dtype, strides, stream)
    own, pointer = memory.new_array(shape[::-1] if order == "F" else shape, dtype, text)
    own = own.T if order == "F" else own
    return DeviceNDArray._of(own, dtype, layouts.contiguous_strides(shape, dtype.itemsize, order), stream, pointer)


def _strided(shape, dtype, strides, stream):
    """Returns a new array with the given strides in bytes. The strides may leave gaps between
    elements or make elements overlap. Raises ValueError for negative strides."""
    if len(strides) != len(shape):
        raise ValueError(f"an array of the shape {tuple(shape)} needs {len(shape)} strides, not {tuple(strides)}")
    count = sum((e - 1) * abs(s) for e, s in zip(shape, strides)) + dtype.itemsize if all(shape) else 0
    if any(s < 0 for s in strides):
        raise ValueError(f"a new array cannot have negative strides: {strides}")
    from . import memory

    made = of_memory(memory.new_array((max(count, 1),), numpy.dtype("u1"), "u8")[0], shape, dtype, strides)
    made.stream = stream
    return made


def of_memory(own, shape, dtype, strides=None):
    """Returns a view of the memory of `own`, a kjit array, with another shape and dtype."""
    dtype = numpy.dtype(dtype)
    address = own.device_pointer_value if hasattr(own, "device_pointer_value") else own._address
    described = {"shape": layouts.shape_of(shape), "strides": strides, "data": (address, False), "version": 3}
    described["typestr"] = f"|V{dtype.itemsize}" if dtype.names else dtype.str
    if dtype.names:
        described["descr"] = dtype.descr
    return import_memory(described, own, dtype)


def device_array_like(ary, stream=0):
    """Returns a new device array with the shape, the dtype and the axis order of another array. The
    new array has no gaps between elements."""
    return device_array(ary.shape, ary.dtype, layouts.strides_like(ary), stream=stream)


from_array_like = device_array_like


def transpose(a, b=None):
    """Copies the transposed elements of a to b, or to a new array, and returns that array. Raises
    ValueError if b has another shape or dtype."""
    if b is None:
        b = device_array(a.shape[::-1], a.dtype)
    if b.shape != a.shape[::-1] or b.dtype != a.dtype:
        raise ValueError(f"the result of {b.dtype} with the shape {b.shape} does not fit the transpose of {a.dtype} with the shape {a.shape}")
    b._own.copy_from(a._own.T)
    return b


def _dense(host):
    """Returns the array itself if it is C-contiguous and aligned, otherwise a copy of the array in
    C order."""
    return numpy.require(host, requirements=["C", "A"])


def to_device(obj, stream=0, copy=True, to=None):
    """Copies an array to the device and returns the device array. to: an existing device array that
    is filled instead of a new one. With copy=False an array that is already on the device is
    returned without a copy."""
    streams.unwrap(stream)
    if to is not None:
        to.copy_to_device(obj, stream)
        return to
    if has_interface(obj):
        if not copy:
            return as_cuda_array(obj)
        obj = as_cuda_array(obj).copy_to_host(stream=stream)
    host = numpy.asarray(obj)
    if not all(e <= 1 or s for e, s in zip(host.shape, host.strides)) or not host.size and host.ndim:
        return _repeated(host, stream)
    made = device_array_like(host, stream) if host.ndim else device_array((), host.dtype)
    if host.size:
        if made.is_f_contiguous() and not made.is_c_contiguous():
            made._own.T.copy_from(_dense(host.T))
        else:
            made._own.copy_from(_dense(host).reshape(host.shape))
    return made


def _repeated(host, stream):
    """Copies an array made by numpy.broadcast_to, or an empty array, to the device and keeps its
    strides. Each repeated element is stored once."""
    if not host.size:
        made = DeviceNDArray._of(device_array(host.shape, host.dtype)._own, host.dtype, host.strides)
    else:
        core = array_core(host)
        dense = iter(layouts.contiguous_strides(core.shape, host.dtype.itemsize))
        strides = tuple(next(dense) if stride else 0 for stride in host.strides)
        made = of_memory(to_device(numpy.ascontiguousarray(core))._own, host.shape, host.dtype, strides)
    made.stream = stream
    return made


def as_cuda_array(obj, sync=True):
    """Returns a device array that shares the memory of another library's array. Raises TypeError if
    obj has no CUDA array interface."""
    if isinstance(obj, DeviceNDArray):
        return obj
    if not has_interface(obj):
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return from_cuda_array_interface(obj.__cuda_array_interface__, owner=obj, sync=sync)


def from_cuda_array_interface(desc, owner=None, sync=True):
    """Returns a device array for the memory that a dictionary of the CUDA array interface
    describes, without a copy. owner: the object that keeps the memory alive. Raises
    NotImplementedError for an array with a mask."""
    version = desc.get("version")
    if version is not None and version >= 1 and desc.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    made = import_memory(desc, owner, numpy.dtype(desc["typestr"]))
    if desc.get("stream") is not None:
        made.stream = streams.external_stream(desc["stream"])
        if sync and config.CUDA_ARRAY_INTERFACE_SYNC:
            made.stream.synchronize()
    return made


def _home_of(owner, address):
    """Returns the kjit device that has the memory at `address`, which `owner` keeps alive. Returns
    None for host memory, or if only one device exists."""
    from . import devices

    if isinstance(owner, _Described):
        owner = owner.owner
    if isinstance(owner, DeviceNDArray):
        owner = owner._own
    if isinstance(owner, _kjit.Array):
        return _state.context().device(owner.device) if owner.device != "cpu" else None
    context = getattr(owner, "context", None)
    if isinstance(context, devices.Context) and len(devices.gpus) > 1:
        return context.device._own
    return _kjit.locate(_state.context(), address)


def import_memory(desc, owner, dtype):
    """Returns a device array for the memory that a dictionary of the CUDA array interface
    describes. owner: the object that keeps the memory alive. Raises ValueError for negative
    extents, and for strides whose number differs from the number of dimensions."""
    shape, strides = tuple(desc["shape"]), desc.get("strides")
    if any(s < 0 for s in shape):
        raise ValueError(f"an extent of an array must not be negative: the shape is {shape}")
    strides = tuple(strides) if strides is not None else layouts.contiguous_strides(shape, dtype.itemsize)
    if len(strides) != len(shape):
        raise ValueError(f"an array of the shape {shape} needs {len(shape)} strides, not {strides}")
    if _arrays.device().kind == "cpu":
        # On the CPU, device memory is host memory, so the address can be used as it is.
        count = sum((e - 1) * abs(s) for e, s in zip(shape, strides)) + dtype.itemsize if all(shape) else 0
        pointer = desc["data"][0]
        if count and not pointer:
            raise ValueError(f"the array of shape {shape} has no memory: its address is 0")
        if not count:
            own = _kjit.copy_of(_state.context(), numpy.empty(shape, dtype), _arrays.device())
            return DeviceNDArray._of(own, dtype, strides, 0, owner)
        low = sum((e - 1) * s for e, s in zip(shape, strides) if s < 0)
        raw = (ctypes.c_char * count).from_address(pointer + low)
        raw.keeps = owner
        host = numpy.ndarray(shape, dtype, raw, -low, strides)
        if desc["data"][1]:
            host.flags.writeable = False
        home = _home_of(owner, pointer) if _state.cpu_devices() > 1 else None
        own = _import_host(host) if home is None else _kjit.place_buffer(home, host)
        return DeviceNDArray._of(own, dtype, strides, 0, owner)
    if dtype.kind in "mM":
        raise NotImplementedError(f"GPU memory of another library with elements of type {dtype} is not supported; copy it with cuda.to_device")
    foreign = _Described(desc, owner)
    return DeviceNDArray._of(_kjit.import_array(_state.context(), foreign), dtype, strides, 0, owner)


class _Described:
    def __init__(self, desc, owner):
        self.__cuda_array_interface__, self.owner = desc, owner


def _import_host(host):
    """Returns a kjit array that shares the memory of a NumPy array."""
    return _kjit.import_array(_state.context(), host)


def is_cuda_array(obj):
    """Returns whether as_cuda_array accepts the object."""
    return has_interface(obj)
