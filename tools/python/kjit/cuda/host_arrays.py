"""NumPy arrays in pinned, mapped and managed host memory."""

import contextlib
import ctypes
import functools
import operator

import numpy

from .. import _arrays, _kjit, _state
from . import arrays, layouts, streams

# The numbers of the kinds of memory in libkjit.
_PINNED, _MAPPED, _MANAGED = 1, 2, 3


class HostArray(numpy.ndarray):
    """A NumPy array in memory that the driver has allocated. Copies between pinned memory and a GPU
    run concurrently with the host."""

    _own, stream = None, 0  # set in the array itself, not in its views


class MappedNDArray(HostArray):
    """A NumPy array that kernels access in place: mapped host memory over the bus, or managed
    memory."""

    __cuda_memory__ = True

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.ctypes.data if self.size else 0, not self.flags.writeable),
            "typestr": self.dtype.str,
            "stream": int(self.stream) or None,
            "version": 3,
        }

    @property
    def device_ctypes_pointer(self):
        return ctypes.c_size_t(self.ctypes.data)


def _host_array(kind, memory, shape, dtype, strides, order, stream=0):
    from . import memory as managers

    layouts.check_order(order)
    streams.unwrap(stream)
    shape, (dtype, text) = layouts.shape_of(shape), arrays.element_of(dtype)
    if strides is not None:
        order = layouts.order_of(layouts.shape_of(strides), shape, dtype.itemsize)
    if order is None:
        count = sum((e - 1) * s for e, s in zip(shape, layouts.shape_of(strides))) + dtype.itemsize if all(shape) else 0
    else:
        count = dtype.itemsize * functools.reduce(operator.mul, shape, 1)
    own = managers.host_memory(max(count, 1), memory)
    address = own.host_pointer if own is not None else 0
    if own is None and order is None:
        own = _kjit.empty(_state.context(), max(count, 1), "u8", _arrays.device(), memory)
    elif own is None:
        own = _kjit.empty(_state.context(), shape[::-1] if order == "F" else shape, text, _arrays.device(), memory)
        own = own.T if order == "F" else own
    if order is not None:
        strides = layouts.contiguous_strides(shape, dtype.itemsize, order)
    raw = (ctypes.c_char * max(count, 1)).from_address(address or own._address) if count else (ctypes.c_char * 1)()
    raw.keeps = own
    made = numpy.ndarray.__new__(kind, shape, dtype, raw, 0, layouts.shape_of(strides))
    made._own, made.stream = own if not address and own.shape == shape else None, stream
    return made


def pinned_array(shape, dtype=numpy.float64, strides=None, order="C"):
    """Returns a NumPy array in pinned host memory with undefined contents. Copies between it and a
    GPU run concurrently with the host."""
    return _host_array(HostArray, _PINNED, shape, dtype, strides, order)


def mapped_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0, portable=False, wc=False):
    """Returns a NumPy array in mapped host memory with undefined contents. Kernels access it in
    place, on a GPU over the bus. portable and wc have no effect."""
    return _host_array(MappedNDArray, _MAPPED, shape, dtype, strides, order, stream)


def managed_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0, attach_global=True):
    """Returns a NumPy array in managed memory with undefined contents, which the driver moves to
    the processor that uses it. Call synchronize() after a launch before the host accesses the
    array."""
    return _host_array(MappedNDArray, _MANAGED, shape, dtype, strides, order, stream)


def pinned_array_like(ary):
    """Returns a new pinned array with the shape, the dtype and the axis order of another array."""
    return pinned_array(ary.shape, ary.dtype, layouts.strides_like(ary))


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    """Returns a new mapped array with the shape, the dtype and the axis order of another array."""
    return mapped_array(ary.shape, ary.dtype, layouts.strides_like(ary), stream=stream)


@contextlib.contextmanager
def pinned(*arylist):
    """Returns a context manager within which the memory manager pins the NumPy arrays. kjit's own
    manager pins nothing: it copies through pinned buffers."""
    from . import memory

    manager = memory.chosen()
    kept = [] if manager is None else [manager.mempin(a, a.ctypes.data, a.nbytes, mapped=False) for a in arylist]
    yield
    del kept


@contextlib.contextmanager
def mapped(*arylist, **kws):
    """Returns a context manager that gives the arrays in a form that kernels accept. One array
    gives an array, several give a list."""
    yield arylist[0] if len(arylist) == 1 else list(arylist)


def defer_cleanup():
    """Returns a context manager that delays the release of memory by the application's memory
    manager until the block ends. kjit's own manager ignores it: it frees memory as soon as nothing
    uses it."""
    from . import devices

    return devices.get_current_device().get_primary_context().defer_cleanup()
