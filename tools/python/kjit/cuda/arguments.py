"""Arguments of kernels: what a launch makes of them, and In, Out and InOut of the program."""

import enum
import functools
import warnings

import numpy

from .. import _arrays, _kjit
from . import arrays, config, errors, host_arrays, records, streams


class _Argument:
    def __init__(self, value):
        self.value = value


class In(_Argument):
    """An array that a kernel only reads."""


class Out(_Argument):
    """An array that a kernel only writes."""


class InOut(_Argument):
    """An array that a kernel reads and writes."""


def warn_of_copies(args):
    """Of arrays of the host that a launch on a GPU copies there and back."""
    for value in args:
        if isinstance(value, numpy.ndarray) and not isinstance(value, host_arrays.MappedNDArray):
            text = "Host array used in CUDA kernel will incur copy overhead to/from device."
            warnings.warn(text, errors.NumbaPerformanceWarning, stacklevel=5)


def _characters(value):
    """Texts as arrays of their characters: one dimension more."""
    size = 1 if value.dtype.kind == "S" else 4
    if not value.flags.c_contiguous or not value.dtype.itemsize or not value.dtype.isnative:
        raise TypeError(f"an array of {value.dtype} with gaps, or in another order of bytes: copy it first")
    return value.view(f"u{size}").reshape(*value.shape, value.dtype.itemsize // size)


def wrap_arg(value, default=InOut):
    """An array of the host as an argument of a kind; anything else as it is."""
    return value if isinstance(value, _Argument) or not isinstance(value, numpy.ndarray) else default(value)


def align(values, after):
    """The values with copies of arrays of NumPy whose elements are not aligned, which after writes back; None: all are."""
    if all(not isinstance(v, numpy.ndarray) or v.flags.aligned for v in values):
        return None
    aligned = []
    for value in values:
        if isinstance(value, numpy.ndarray) and not value.flags.aligned:
            made = value.copy()
            if value.flags.writeable:
                after.append(functools.partial(_write_back, value, made))
            made.flags.writeable = value.flags.writeable  # a kernel that writes it is refused as with any other
            value = made
        aligned.append(value)
    return aligned


def _write_back(array, copy):
    _arrays.device().synchronize()
    array[...] = copy


def _is_followed(kind):
    """Whether a launch without a stream goes to the stream of such arrays: those of CuPy and of libraries with DLPack's exchange
    API."""
    return hasattr(kind, "__dlpack_c_exchange_api__") or kind.__module__.partition(".")[0] == "cupy"


def wait_for_stream(value, has_stream):
    """An array that names its stream is waited for before a launch, as the CUDA array interface wants it, unless the launch
    goes to that stream. has_stream: the launch has one of its own. Raises NotImplementedError for an array with a mask."""
    if not config.CUDA_ARRAY_INTERFACE_SYNC or not has_stream and _is_followed(type(value)):
        return
    described = value.__cuda_array_interface__
    if described.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    handle = described.get("stream")
    if handle is not None:
        streams.external_stream(handle).synchronize()


def take(value, after, has_stream=False):
    """A kernel's argument as the extension takes it. after: functions to be called after the launch; has_stream: the launch
    has a stream of its own."""
    kind = type(value)
    if kind is numpy.ndarray:
        return value if value.dtype.kind not in "SU" else _characters(value)
    if kind is int or kind is float:
        return value
    if isinstance(value, host_arrays.MappedNDArray):
        return value.view(numpy.ndarray) if value._own is None else value._own
    if isinstance(value, In) and isinstance(value.value, (numpy.ndarray, numpy.void)):
        value = value.value.copy()  # what the kernel makes of it is nobody's
    if isinstance(value, _Argument):
        value = value.value
    if isinstance(value, arrays.DeviceNDArray):
        return value._own
    if isinstance(value, (records.DeviceRecord, records.Field)):
        return value.own()
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, (list,)):
        raise TypeError("a list is no argument of a kernel: numpy.array(values)")
    if arrays.has_interface(value) and not isinstance(value, _kjit.Array):
        if _arrays.device().kind == "cpu":
            return arrays.as_cuda_array(value)._own
        wait_for_stream(value, has_stream)
    if isinstance(value, tuple):
        items = [take(v, after, has_stream) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
