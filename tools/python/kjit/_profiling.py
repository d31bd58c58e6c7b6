"""Controls profilers such as Nsight Systems and Nsight Compute: starts and stops recording, and
names ranges."""

import contextlib

from . import _arrays, _state


def start_profiler(device=None):
    """Tells an attached profiler to start recording a device. device: see `kjit.empty`. Without a
    profiler, and on the CPU, the call has no effect."""
    _arrays.device(device).start_profiler()


def stop_profiler(device=None):
    """Tells an attached profiler to stop recording a device. device: see `kjit.empty`."""
    _arrays.device(device).stop_profiler()


@contextlib.contextmanager
def profile_range(name):
    """Returns a context manager or decorator. Profilers show its block as a range with this name on
    the thread's time line.

    Profilers that show NVTX ranges, such as Nsight Systems, receive the range. kjit adds ranges
    "kjit: code of KERNEL" for the compilation of a kernel or the loading of its code. Without such
    a profiler the block runs unchanged. Raises TypeError if name is not a string.
    """
    context = _state.context()
    context.begin_range(name)
    try:
        yield
    finally:
        context.end_range()
