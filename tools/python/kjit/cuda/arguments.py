"""Converts a launch's arguments into values that kernels take, and defines `In`, `Out` and `InOut`.
"""

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
    """A host array that the kernel only reads. A launch on a GPU copies the array to the device and
    does not copy it back."""


class Out(_Argument):
    """A host array that the kernel only writes."""


class InOut(_Argument):
    """A host array that the kernel reads and writes. A launch on a GPU copies the array to the
    device and back."""


def warn_of_copies(args):
    """Warns (NumbaPerformanceWarning) once for each host array in args, because a launch on a GPU
    copies it to the device and back."""
    for value in args:
        if isinstance(value, numpy.ndarray) and not isinstance(value, host_arrays.MappedNDArray):
            text = "Host array used in CUDA kernel will incur copy overhead to/from device."
            warnings.warn(text, errors.NumbaPerformanceWarning, stacklevel=5)


def _characters(value):
    """Returns a view of a string array as an array of characters, with one more dimension. Raises
    TypeError if the array is not C-contiguous or not in the machine's byte order."""
    size = 1 if value.dtype.kind == "S" else 4
    if not value.flags.c_contiguous or not value.dtype.itemsize or not value.dtype.isnative:
        raise TypeError(f"the array of {value.dtype} has gaps or another byte order than the machine; copy it first")
    return value.view(f"u{size}").reshape(*value.shape, value.dtype.itemsize // size)


def wrap_arg(value, default=InOut):
    """Wraps a NumPy array in `default`, one of In, Out and InOut. Returns any other value
    unchanged."""
    return value if isinstance(value, _Argument) or not isinstance(value, numpy.ndarray) else default(value)


def align(values, after):
    """Returns the values with an aligned copy in place of each unaligned NumPy array, or None if
    all arrays are aligned. Appends to `after` a function for each writable array; the function
    copies the elements back after the launch."""
    if all(not isinstance(v, numpy.ndarray) or v.flags.aligned for v in values):
        return None
    aligned = []
    for value in values:
        if isinstance(value, numpy.ndarray) and not value.flags.aligned:
            made = value.copy()
            if value.flags.writeable:
                after.append(functools.partial(_write_back, value, made))
            # a read-only array stays read-only, so that a kernel that writes it is rejected
            made.flags.writeable = value.flags.writeable
            value = made
        aligned.append(value)
    return aligned


def _write_back(array, copy):
    _arrays.device().synchronize()
    array[...] = copy


def _is_followed(kind):
    """Returns whether a launch without a stream uses the stream of an array of this class. This
    holds for CuPy's arrays and for arrays of libraries with DLPack's exchange API."""
    return hasattr(kind, "__dlpack_c_exchange_api__") or kind.__module__.partition(".")[0] == "cupy"


def wait_for_stream(value, has_stream):
    """Waits for the stream that an array names in its CUDA array interface, as the interface
    requires.

    If the launch itself uses the array's stream, the function does not wait. has_stream: whether
    the program chose a stream for the launch. Raises NotImplementedError for an array with a mask.
    """
    if not config.CUDA_ARRAY_INTERFACE_SYNC or not has_stream and _is_followed(type(value)):
        return
    described = value.__cuda_array_interface__
    if described.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    handle = described.get("stream")
    if handle is not None:
        streams.external_stream(handle).synchronize()


def take(value, after, has_stream=False):
    """Converts an argument of a launch into a value that the C extension accepts.

    after: a list of functions that the caller calls after the launch. has_stream: whether the
    program chose a stream for the launch. Raises TypeError for a list.
    """
    kind = type(value)
    if kind is numpy.ndarray:
        return value if value.dtype.kind not in "SU" else _characters(value)
    if kind is int or kind is float:
        return value
    if kind is _kjit.Array and value._is_element and value.dtype.text != "bf16":  # NumPy has no bfloat16
        return value.to_host()[()]  # a copied element is passed as a number, like an element of a NumPy array
    if isinstance(value, host_arrays.MappedNDArray):
        return value.view(numpy.ndarray) if value._own is None else value._own
    if isinstance(value, In) and isinstance(value.value, (numpy.ndarray, numpy.void)):
        # the kernel gets a copy, so the program does not see the elements that the kernel writes
        value = value.value.copy()
    if isinstance(value, _Argument):
        value = value.value
    if isinstance(value, arrays.DeviceNDArray):
        return value._own
    if isinstance(value, (records.DeviceRecord, records.Field)):
        return value.own()
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, (list,)):
        raise TypeError("a kernel cannot take a list; pass numpy.array(values)")
    if arrays.has_interface(value) and not isinstance(value, _kjit.Array):
        if _arrays.device().kind == "cpu":
            return arrays.as_cuda_array(value)._own
        wait_for_stream(value, has_stream)
    if isinstance(value, tuple):
        items = [take(v, after, has_stream) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
