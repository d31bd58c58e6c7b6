"""Settings by Numba's names: `cuda.config.CUDA_WARN_ON_IMPLICIT_COPY = 0`. They begin as the environment's NUMBA_... say."""

import os

from .. import _arrays


def _number(name, default):
    text = os.environ.get("NUMBA_" + name)
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment's NUMBA_{name} is a number, not {text!r}") from None


class _OptLevel(int):
    """A level of optimization, 0 to 3 or "max"; kjit knows whether it is 0."""

    def __new__(cls, value=3):
        return super().__new__(cls, 3 if value == "max" else int(value))


# Whether launches of small grids and copies of the host's arrays are warned of; None: on a GPU, where they cost something.
CUDA_LOW_OCCUPANCY_WARNINGS = _number("CUDA_LOW_OCCUPANCY_WARNINGS", None)
CUDA_WARN_ON_IMPLICIT_COPY = _number("CUDA_WARN_ON_IMPLICIT_COPY", None)
DISABLE_PERFORMANCE_WARNINGS = _number("DISABLE_PERFORMANCE_WARNINGS", 0)
# Whether an array of another library that names its stream is waited for.
CUDA_ARRAY_INTERFACE_SYNC = bool(_number("CUDA_ARRAY_INTERFACE_SYNC", 1))
# What `debug=` and `opt=` of cuda.jit are where a program does not say.
CUDA_DEBUGINFO_DEFAULT = _number("CUDA_DEBUGINFO", 0)
OPT = _OptLevel(os.environ.get("NUMBA_OPT") or 3)
# Whether kernels check their indices, whatever `boundscheck=` says; None: as that says, and on the CPU where it does not say.
BOUNDSCHECK = _number("BOUNDSCHECK", None)
# The environment's: no arrays of devices, no launches.
DISABLE_CUDA = _number("DISABLE_CUDA", 0)
# What is always so.
ENABLE_CUDASIM = 0
CUDA_USE_NVIDIA_BINDING = CUDA_ENABLE_PYNVJITLINK = 0
CUDA_DEFAULT_PTX_CC = (9, 0)  # where there is no GPU to say it


DISABLED = "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment"


def warns_of(name):
    """Whether NumbaPerformanceWarning is given for what a setting names."""
    wanted = globals()[name]
    if wanted is None:
        wanted = _arrays.device().kind == "cuda"
    return bool(wanted) and not DISABLE_PERFORMANCE_WARNINGS
