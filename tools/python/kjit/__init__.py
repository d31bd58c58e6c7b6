"""kjit compiles Python functions to kernels for GPUs and the CPU.

    import kjit, numpy as np

    @kjit.jit
    def axpy(r, a, x, y):
        for i in kjit.grid_range(len(r)):
            r[i] = a * x[i] + y[i]

    r, x, y = np.empty(1000), np.arange(1000.), np.ones(1000)
    axpy(r, 2, x, y)
"""

from . import _kjit
from ._arrays import array, device, devices, empty, from_dlpack, full, statistics, synchronize, zeros
from ._errors import CLASSES as _CLASSES
from ._errors import Error, KjitWarning, ProgramError, SourceError
from ._functions import Function, Kernel, func, jit
from ._kjit import Array, Device, Event, Graph, Stream
from ._state import open_cache, set_plain_code, wait_background
from .dtypes import SCALARS as _SCALARS
from .dtypes import DType, const

__version__ = _kjit.version()
globals().update({kind.__name__: kind for kind in _CLASSES.values()})
globals().update({name: kind for name, kind in _SCALARS.items() if name != "bool"})

# Names that are loaded at their first use, so that importing kjit stays fast: name -> the module
# that defines it.
_LATER = {
    name: module
    for module, names in {
        "_as_numba": "as_numba",
        "_algorithms": "Plan computed map",
        "_vectorized": "Ufunc guvectorize vectorize",
        "_benchmark": "benchmark",
        "_adjoints": "AdjointKernel adjoint",
        "_derivatives": "Derivative hessian hvp jacobian value_and_grad",
        "_gradcheck": "GradientError gradcheck",
        "_folds": "bincount histogram reduce reduce_by_key reduce_segments reduce_several scan scan_by_key scan_segments "
        "scan_with_index search_sorted update_at",
        "_njit": "get_num_threads njit prange set_num_threads",
        "_orders": "argsort merge nonzero partition partition_three run_lengths select_where set_difference set_intersection "
        "set_symmetric_difference set_union sort sort_pairs sort_segments top_k unique unique_consecutive",
        "_pairs": "pairs pairs_gradient pairs_smallest",
        "_pullbacks": "pullback",
        "_products": "CSR csr einsum matmul",
        "_systems": "LinearOperator Solution cg lsmr",
        "_random": "random_exponential random_integers random_normal random_permutation random_shuffle random_uniform",
        "_profiling": "profile_range start_profiler stop_profiler",
        "_progress": "set_progress",
        "_formulas": "eval",
        "numpy._fusing": "explain",
        "tables": "NA isna scan_table table",
        "frontend.source": "keep_sources",
    }.items()
    for name in names.split()
}

# Numba's names, for programs that import them from kjit: `from kjit import njit, float32, types`.
_OF_NUMBA = ("boolean", "config", "none", "types", "void")
_SCALARS_OF_NUMBA = """int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128""".split()

# Modules that import another library, which may not be installed.
_OF_OTHERS = ("dask", "jax", "torch")

# Names that `from kjit import *` leaves out, because they would hide Python's built-in functions.
_HIDDEN = {
    "len",
    "min",
    "max",
    "abs",
    "pow",
    "round",
    "print",
    "bool",
    "any",
    "all",
    "zip",
    "range",
    "map",
    "filter",
    "sum",
    "eval",
}


def _words():
    from .frontend import words

    return words.ALL


def __getattr__(name):
    if name in _LATER:
        import importlib

        value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    elif name in _OF_NUMBA or name in _SCALARS_OF_NUMBA:
        from .cuda import config, types

        value = {"types": types, "config": config}.get(name) or types.NAMES[name]
    elif name in _OF_OTHERS:
        import importlib

        value = importlib.import_module("." + name, __name__)
    elif name == "__all__":
        own = {n for n, v in globals().items() if n[0] != "_" and type(v).__name__ != "module"}
        value = sorted((own | set(_LATER) | set(_words())) - _HIDDEN)
    else:
        # Python itself looks up names with a leading underscore; such names are never words in the kernel language.
        value = None if name.startswith("_") else _words().get(name)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER, *_words(), "__all__"})
