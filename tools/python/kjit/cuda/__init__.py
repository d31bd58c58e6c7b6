"""The names of `numba.cuda`, for programs written for Numba: replace `from numba import cuda` by
`from kjit import cuda`.

As in Numba, Python's numbers are int64 and float64 in kernels, `/` of two integers gives a float,
and negative indices count from the end.
"""

import types as _types

from .. import _kjit
from . import arguments as _arguments
from . import arrays as _arrays
from . import compiling as _compiling
from . import devices as _devices
from . import dispatcher as _dispatcher
from . import driver as _driver
from . import host_arrays as _host_arrays
from . import libdevice as _libdevice
from . import linking as _linking
from . import memory as _memory
from . import records as _records
from . import config, cudadrv, errors, types
from . import streams as _streams
from . import words as _words

# from this call on, _kjit keeps the source of functions that exec() makes
_kjit.listen()
globals().update(types.NAMES)
globals().update({name: kind for kind in types.VECTORS.values() for name in (kind.name, *kind.aliases)})
globals().update(_words.FORMS)
globals().update(_words.PLACES)
atomic, shared, local, const = _words.atomic, _words.shared, _words.local, _words.const
fp16, libdevice = _words.fp16, _libdevice.libdevice
devicearray, kernels = _arrays, _types.SimpleNamespace(transpose=_types.SimpleNamespace(transpose=_arrays.transpose))
implementation = "kjit"
HAS_NUMBA = False

_FROM = {
    _dispatcher: "jit",
    _linking: "declare_device LinkableCode CUSource PTXSource Cubin Fatbin Object Archive LTOIR",
    _arrays: "device_array device_array_like to_device as_cuda_array from_cuda_array_interface is_cuda_array",
    _host_arrays: "pinned_array pinned_array_like mapped_array mapped_array_like managed_array pinned mapped defer_cleanup",
    _arguments: "In Out InOut",
    _streams: "stream default_stream legacy_default_stream per_thread_default_stream external_stream event event_elapsed_time "
    "synchronize",
    _devices: "gpus get_current_device current_context select_device close list_devices detect is_available cuda_error is_supported_version "
    "is_float16_supported is_bfloat16_supported profiling profile_start profile_stop require_context",
    _compiling: "compile compile_all compile_ptx compile_ptx_for_current_device compile_for_current_device",
    _driver: "open_ipc_array IpcHandle MemoryPointer MappedMemory PinnedMemory ManagedMemory",
    _memory: "set_memory_manager BaseCUDAMemoryManager HostOnlyCUDAMemoryManager GetIpcHandleMixin MemoryInfo",
    errors: "CudaSupportError",
}
for _module, _names in _FROM.items():
    globals().update({name: getattr(_module, name) for name in _names.split()})

# Names of numba.cuda that kjit.cuda does not support, and the replacement that the error suggests.
_REFUSED = {
    "CPointer": "pointers: hand over arrays",
    "Record": "records as types: pass the array",
    "intrinsic": "Numba's extension API for LLVM IR: write a function, or define one by cuda.extending.overload",
}


def refuse(name):
    """Returns a function that stands for an unsupported name of numba.cuda. Calling it raises
    NotImplementedError, which names the replacement."""

    def refused(*args, **keywords):
        raise NotImplementedError(f"kjit.cuda.{name} is not supported: {_REFUSED[name]}")

    refused.__name__ = name
    return refused


def __getattr__(name):
    if name in ("random", "cg", "reduction", "bf16", "extending", "fp8"):
        import importlib

        return importlib.import_module("." + name, __name__)
    if name == "guvectorize":
        from . import gufuncs

        return gufuncs.guvectorize
    if name in ("reduce", "Reduce", "vectorize"):
        from . import reduction

        return getattr(reduction, name)
    if name in _REFUSED:
        return refuse(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
