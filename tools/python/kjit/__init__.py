"""kjit: functions of Python as kernels for GPUs and the CPU.

    import kjit, numpy as np

    @kjit.jit
    def axpy(r, a, x, y):
        for i in kjit.grid_range(len(r)):
            r[i] = a * x[i] + y[i]

    r, x, y = np.empty(1000), np.arange(1000.), np.ones(1000)
    axpy(r, 2, x, y)
"""
from . import _kjit
from ._algorithms import argsort, reduce, scan, sort, vectorize
from ._arrays import array, device, devices, empty, from_dlpack, full, statistics, synchronize, zeros
from ._errors import CLASSES as _CLASSES
from ._errors import Error, KjitWarning, SourceError
from ._functions import Function, Kernel, func, jit
from ._kjit import Array, Device, Stream
from .dtypes import DType, const
from .dtypes import SCALARS as _SCALARS
from .frontend import words as _words

__version__ = _kjit.version()
globals().update({kind.__name__: kind for kind in _CLASSES.values()})
globals().update({name: kind for name, kind in _SCALARS.items() if name != "bool"})
globals().update(_words.BUILTINS)
globals().update(_words.LOOPS)
globals().update(_words.ARRAYS)

# What `from kjit import *` brings: not what would hide Python's own functions.
_HIDDEN = {"len", "min", "max", "abs", "pow", "round", "print", "bool", "any", "all", "zip", "range", "map", "filter", "sum"}
__all__ = sorted({"Array", "DType", "Device", "Error", "Function", "Kernel", "KjitWarning", "SourceError", "Stream", "argsort", "array", "const",
                  "device", "devices", "empty", "from_dlpack", "full", "func", "jit", "reduce", "scan", "sort", "statistics", "synchronize", "vectorize", "zeros",
                  *(kind.__name__ for kind in _CLASSES.values()), *_SCALARS, *_words.BUILTINS, *_words.LOOPS, *_words.ARRAYS} - _HIDDEN)
