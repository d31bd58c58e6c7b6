"""Settings with Numba's names, such as `cuda.config.CUDA_WARN_ON_IMPLICIT_COPY = 0`. The
environment variables NUMBA_... give their initial values."""

import os

from .. import _arrays, _state


def _number(name, default):
    text = os.environ.get("NUMBA_" + name)
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment variable NUMBA_{name} must be a number, not {text!r}") from None


class _OptLevel(int):
    """An optimization level, 0 to 3 or "max". kjit only distinguishes 0 from the other levels."""

    def __new__(cls, value=3):
        return super().__new__(cls, 3 if value == "max" else int(value))


# Whether kjit warns about launches with small grids and about copies of host arrays. None means
# only on a GPU, where both cost time.
CUDA_LOW_OCCUPANCY_WARNINGS = _number("CUDA_LOW_OCCUPANCY_WARNINGS", None)
CUDA_WARN_ON_IMPLICIT_COPY = _number("CUDA_WARN_ON_IMPLICIT_COPY", None)
DISABLE_PERFORMANCE_WARNINGS = _number("DISABLE_PERFORMANCE_WARNINGS", 0)
# True if a launch waits for the stream that an array of another library names.
CUDA_ARRAY_INTERFACE_SYNC = bool(_number("CUDA_ARRAY_INTERFACE_SYNC", 1))
# Defaults of the options `debug=` and `opt=` of cuda.jit.
CUDA_DEBUGINFO_DEFAULT = _number("CUDA_DEBUGINFO", 0)
OPT = _OptLevel(os.environ.get("NUMBA_OPT") or 3)
# Whether kernels check their indices. True or False overrides `boundscheck=`; None means that
# `boundscheck=` decides, and that kernels on the CPU check indices if it is not given.
BOUNDSCHECK = _number("BOUNDSCHECK", None)
# Nonzero disables device arrays and launches (NUMBA_DISABLE_CUDA).
DISABLE_CUDA = _number("DISABLE_CUDA", 0)
# The number of cores that loops over prange use.
NUMBA_NUM_THREADS = NUMBA_DEFAULT_NUM_THREADS = max(1, len(os.sched_getaffinity(0)))
# Settings that programs read and write but that have no effect here: kjit has its own compiler,
# cache and threads.
THREADING_LAYER, THREADING_LAYER_PRIORITY = "default", ["tbb", "omp", "workqueue"]
CACHE_DIR, COLOR_SCHEME, CPU_NAME, CPU_FEATURES = "", "no_color", None, None
DEBUG = DEBUG_JIT = DEBUGINFO_DEFAULT = DEBUG_CACHE = DEBUG_ARRAY_OPT = DEBUG_TYPEINFER = PARALLEL_DIAGNOSTICS = 0
DEVELOPER_MODE = FULL_TRACEBACKS = SHOW_HELP = ENABLE_PROFILING = NRT_STATS = DUMP_ASSEMBLY = DUMP_LLVM = DUMP_IR = 0
DUMP_OPTIMIZED = DUMP_BYTECODE = DUMP_CFG = DISABLE_INTEL_SVML = USING_SVML = 0
ENABLE_AVX = LOOP_VECTORIZE = SLP_VECTORIZE = 1
CUDA_LOG_LEVEL, CUDA_LOG_SIZE, CUDA_LOG_API_ARGS, CUDA_VERBOSE_JIT_LOG = "", 1024, 0, 1
# The module whose _numba_memory_manager is the class of memory managers, or "default" for kjit's
# own.
CUDA_MEMORY_MANAGER = os.environ.get("NUMBA_CUDA_MEMORY_MANAGER") or "default"
# Directories with headers for linked CUDA C, separated by colons.
CUDA_NVRTC_EXTRA_SEARCH_PATHS = os.environ.get("NUMBA_CUDA_NVRTC_EXTRA_SEARCH_PATHS") or ""
CUDA_DRIVER, CUDA_DEALLOCS_COUNT, CUDA_DEALLOCS_RATIO = "", 10, 0.2
CUDA_PER_THREAD_DEFAULT_STREAM, CUDA_INCLUDE_PATH, FORCE_CUDA_CC = 0, "", None
# Whether kernels run thread by thread in the Python interpreter (the simulator).
ENABLE_CUDASIM = int(_state.is_simulated())
# Constants: programs read them, and setting them has no effect.
DISABLE_JIT = 0
CUDA_USE_NVIDIA_BINDING = CUDA_ENABLE_PYNVJITLINK = CUDA_ENABLE_MINOR_VERSION_COMPATIBILITY = 0
CUDA_DEFAULT_PTX_CC = (9, 0)  # the compute capability if the machine has no GPU


DISABLED = "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment"


def warns_of(name):
    """Returns whether NumbaPerformanceWarning is enabled for the setting with this name."""
    wanted = globals()[name]
    if wanted is None:
        wanted = _arrays.device().kind == "cuda"
    return bool(wanted) and not DISABLE_PERFORMANCE_WARNINGS
