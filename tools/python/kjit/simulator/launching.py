"""Launches kernels of kjit.cuda in the Python interpreter."""

import enum
import math

import numpy

from .. import _arrays, _errors, _state
from ..cuda import arguments as cuda_arguments
from ..cuda import arrays, configurations, fitting, jit_options, records
from ..cuda import types as cuda_types
from . import arithmetic, rewriting, threads, together, words

_MOST_THREADS = 1024


class _Memory:
    """Describes an array's memory to NumPy, which accesses it in place."""

    def __init__(self, array, dtype):
        self._keeps = array
        self.__array_interface__ = {
            "shape": array.shape,
            "strides": array.strides,
            "data": array.__cuda_array_interface__["data"],
            "typestr": f"|V{dtype.itemsize}",
            "version": 3,
        }


def _in_place(array):
    if not array.size:
        return words.records_by_name(numpy.empty(array.shape, array.dtype))
    return words.records_by_name(numpy.asarray(_Memory(array, array.dtype)).view(array.dtype))


def _record_in_place(record):
    if record._path:
        record.own()  # raises the same exception as a launch of a compiled kernel
    whole = _Memory(arrays.DeviceNDArray._of(record._array, record._whole, ()), record._whole)
    whole.__array_interface__ |= {"data": (record._array._address, False)}
    return numpy.asarray(whole).view(record._whole).view(numpy.recarray)[()]


class _Values:
    """Converts a launch's arguments to the values that the threads see."""

    def __init__(self, rewritten):
        self._rewritten = rewritten

    def take(self, value):
        if isinstance(value, cuda_arguments.In):
            value = value.value.copy() if hasattr(value.value, "copy") else value.value
        elif isinstance(value, (cuda_arguments.Out, cuda_arguments.InOut)):
            value = value.value
        if isinstance(value, tuple):
            items = [self.take(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, numpy.ndarray):
            return words.records_by_name(value.view(numpy.ndarray))
        if isinstance(value, numpy.void):
            return numpy.asarray(value).view(numpy.recarray)[()]
        if isinstance(value, arrays.DeviceNDArray):
            return _in_place(value)
        if isinstance(value, records.DeviceRecord):
            return _record_in_place(value)
        return self._other(value)

    def _other(self, value):
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, enum.Enum):
            return arithmetic.typed(value)
        function = words.function_of(value)
        if function is not None:
            return self._rewritten.of(function, value)
        if isinstance(value, (numpy.generic, enum.Enum, str, type(None), type, cuda_types.Type)):
            return value
        if arrays.has_interface(value):
            return _in_place(arrays.as_cuda_array(value))
        if isinstance(value, _arrays._kjit.Array):
            return _in_place(arrays.as_cuda_array(value))
        raise TypeError(f"{type(value).__name__} cannot be an argument of a kernel")


def _check_homes(function, args, stream):
    """Raises kjit.ArgumentError for an array or a stream on another device than the current one,
    like a launch of a compiled kernel."""
    if not _arrays._kjit.has_several_devices():
        return
    here = f"cpu:{_arrays.device().ordinal}"
    if stream is not None and f"cpu:{stream.device.ordinal}" != here:
        text = f"the launch is on {here}, but its stream is on cpu:{stream.device.ordinal}"
        raise _errors.CLASSES["KJIT_ERROR_ARGUMENT"](text, "KJIT_ERROR_ARGUMENT")
    for name, value in zip(function.__code__.co_varnames, args):
        _check_home(name, value, here)


def _check_home(name, value, here):
    """Raises kjit.ArgumentError for an array that the device `here` cannot access. name: the
    parameter's name in the message, such as `t[0]` for an item in a tuple."""
    if isinstance(value, (cuda_arguments.In, cuda_arguments.Out, cuda_arguments.InOut)):
        value = value.value
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            _check_home(f"{name}[{i}]", item, here)
    else:
        there = _state.home_of(value) or here
        if there != here and (here, there) not in _state.peers:
            text = f"parameter `{name}`: the launch is on {here}, but the array is on {there}; copy the array to the device, or switch peer access on"
            raise _errors.CLASSES["KJIT_ERROR_ARGUMENT"](text, "KJIT_ERROR_ARGUMENT")


class Configured:
    """A kernel with a launch configuration. Its threads run in the interpreter."""

    def __init__(self, dispatcher, key, stream):
        self.dispatcher, self.stream = dispatcher, stream
        self.griddim, self.blockdim, _, self.sharedmem = key
        self.pre_launch_callbacks = []

    def __call__(self, *args, **keywords):
        if self.dispatcher._is_device:
            raise configurations.is_no_kernel(self.dispatcher)
        self._check_extents()
        function, rewritten = self.dispatcher.py_func, self._rewritten()
        args, keywords = rewritten.order(function, args, keywords)
        if self.dispatcher._is_fixed and not keywords:
            args = fitting.fit(self.dispatcher._signatures, function, args)
        _check_homes(function, args, getattr(self.stream, "_own", None))
        after = []
        if self.dispatcher.extensions:
            args = self.dispatcher._extend(args, self.stream, after)
        for callback in self.pre_launch_callbacks:
            callback(self.dispatcher, self)
        _arrays.device().synchronize()
        values = _Values(rewritten)
        taken = [values.take(a) for a in args]
        named = {name: values.take(a) for name, a in keywords.items()}
        is_debug = jit_options.is_debug(self.dispatcher.targetoptions)
        extents = self.griddim, self.blockdim
        threads.Grid(rewritten.of_kernel(function), taken, named, *extents, together.ANSWERS, self.sharedmem, is_debug).run()
        for finish in after:
            finish()
        self.dispatcher._remember(args)

    def _rewritten(self):
        """Returns the rewritten functions of the kernel. Their globals keep the values from the
        first launch."""
        known = self.dispatcher.__dict__.get("_simulated")
        if known is None:
            known = self.dispatcher._simulated = rewriting.Rewritten()
        return known

    def _check_extents(self):
        """Raises kjit.LaunchError for a configuration that GPUs do not support."""
        count = math.prod(self.blockdim)
        bounds = self.dispatcher.targetoptions.get("launch_bounds")
        most = min(_MOST_THREADS, bounds[0] if isinstance(bounds, (tuple, list)) else bounds or _MOST_THREADS)
        if min(*self.griddim, *self.blockdim) < 1 or count > most:
            text = f"a launch has at least one block and one thread, and a block at most {most} threads: " \
                f"grid {self.griddim}, block {self.blockdim}"
            raise _errors.CLASSES["KJIT_ERROR_LAUNCH"](text, "KJIT_ERROR_LAUNCH")
