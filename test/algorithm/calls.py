"""Calls the functions of kjit/algorithm.h through ctypes on NumPy arrays."""
import ctypes as c
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "random"))
from library import CODE, NUMPY, TYPE, Arg, Failure, Library, Tensor  # noqa: F401, the callers' too

CODES = CODE | {"c64": (5, 64), "c128": (5, 128)}
TYPES = TYPE | {"c64": 14, "c128": 15}
NAMES = {np.dtype(t): name for name, t in NUMPY.items() if name != "bf16"} | {np.dtype("c8"): "c64", np.dtype("c16"): "c128"}
FUNC = 17  # KJIT_FUNC follows the scalar types.
DTYPES = {number: np.dtype(dtype) for dtype, name in NAMES.items() for number in [TYPES[name]]}


class Operand(c.Structure):
    _fields_ = [("argument", Arg), ("arrays", c.POINTER(Arg)), ("array_count", c.c_size_t), ("shape", c.POINTER(c.c_int64)), ("rank", c.c_uint32)]


class Operator(c.Structure):
    _fields_ = [("name", c.c_char_p), ("function", c.c_void_p), ("commutes", c.c_int)]


class Result(c.Structure):
    _fields_ = [("element", c.c_uint32), ("rank", c.c_uint32), ("shape", c.c_int64 * 8)]


class Options(c.Structure):
    _fields_ = [("size_bytes", c.c_uint32), ("device", c.c_void_p), ("stream", c.c_void_p), ("axes", c.POINTER(c.c_int32)), ("axis_count", c.c_uint32), ("accumulator", c.c_uint32),
                ("initial", c.POINTER(Arg)), ("flags", c.c_uint32), ("plan", c.c_void_p), ("work_bytes", c.c_void_p), ("work", c.c_void_p), ("results", c.POINTER(Result)), ("result_count", c.c_size_t),
                ("begin_bit", c.c_uint32), ("end_bit", c.c_uint32)]


class Algorithms(Library):
    """A context and its calls. It keeps the objects that arguments point to alive until the next call has been made."""

    def array(self, values):
        """Returns an operand for an array with any strides, or for a number, which is passed as a value."""
        name = NAMES[values.dtype]
        shape = (c.c_int64 * max(values.ndim, 1))(*values.shape)
        strides = (c.c_int64 * max(values.ndim, 1))(*[s // values.itemsize for s in values.strides])
        tensor = Tensor(values.ctypes.data, 1, 0, values.ndim, *CODES[name], 1, shape, strides, 0)
        self.keep.append((tensor, shape, strides, values))
        return Operand(Arg(3, 0, 0, 0, c.addressof(tensor)))

    def function(self, function, arrays, shape):
        """Returns an operand that is a func with array arguments."""
        arguments = (Arg * max(len(arrays), 1))(*[self.array(values).argument for values in arrays])
        extents = (c.c_int64 * max(len(shape), 1))(*shape)
        self.keep.append((arguments, extents))
        return Operand(Arg(5, 0, 0, FUNC, function), arguments, len(arrays), extents, len(shape))

    def options(self, axes=None, initial=None, **others):
        made = Options(size_bytes=c.sizeof(Options), device=self.device)
        if axes is not None:
            made.axes, made.axis_count = (c.c_int32 * max(len(axes), 1))(*axes), len(axes)
        if initial is not None:
            cell = np.array([initial])
            self.keep.append(cell)
            made.initial = c.pointer(Arg(6, 0, 0, TYPES[NAMES[cell.dtype]], cell.ctypes.data))
        for name, value in others.items():
            setattr(made, name, value)
        return made

    def begin(self):
        self.keep = []

    def operator(self, name):
        return Operator(name.encode(), None, 0) if isinstance(name, str) else Operator(None, name, 0)

    def reduce(self, result, x, operator, **options):
        """Calls kjit_reduce. result and x are operands. The operator is a name or a func."""
        self.require(self.c.kjit_reduce(self.context, c.byref(result), c.byref(x), c.byref(self.operator(operator)), c.byref(self.options(**options))))

    def reduce_several(self, results, x, operators, **options):
        """Calls kjit_reduce_several. results and x are operands. Each operator is a name or a func."""
        made = (Operator * len(operators))(*map(self.operator, operators))
        self.require(self.c.kjit_reduce_several(self.context, (Operand * len(results))(*results), c.byref(x), made, c.c_size_t(len(operators)), c.byref(self.options(**options))))

    def describe_several(self, x, operators, **options):
        """Returns (element type, shape) of the array that each result needs."""
        infos, made = (Result * len(operators))(), self.options(**options)
        made.results, made.result_count = infos, len(operators)
        self.require(self.c.kjit_reduce_several(self.context, None, c.byref(x), (Operator * len(operators))(*map(self.operator, operators)), c.c_size_t(len(operators)), c.byref(made)))
        return [(DTYPES[info.element], tuple(info.shape[:info.rank])) for info in infos]

    def describe_reduce(self, x, operator, **options):
        """Returns (element type, shape) of the array that the result needs."""
        info = Result()
        made = self.options(**options)
        made.results, made.result_count = c.pointer(info), 1
        self.require(self.c.kjit_reduce(self.context, None, c.byref(x), c.byref(self.operator(operator)), c.byref(made)))
        return DTYPES[info.element], tuple(info.shape[:info.rank])

    def find(self, module, name):
        """Returns a func of a module."""
        found = c.c_void_p()
        self.require(self.c.kjit_get_function(module, name.encode(), c.byref(found)))
        return found.value
