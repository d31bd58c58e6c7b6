"""What a profiler such as Nsight Systems or Nsight Compute is told: what to record, and the names of ranges."""

import contextlib

from . import _arrays, _state


def start_profiler(device=None):
    """Makes a profiler that is attached to the process start recording a device. device: see `kjit.empty`. Without a profiler,
    and on the CPU, the call has no effect."""
    _arrays.device(device).start_profiler()


def stop_profiler(device=None):
    """Makes the profiler stop recording a device. device: see `kjit.empty`."""
    _arrays.device(device).stop_profiler()


@contextlib.contextmanager
def profile_range(name):
    """A `with` block, or a decorated function, that profilers show as a range with this name on the thread's time line.

    Profilers that show NVTX ranges, such as Nsight Systems, receive the range. kjit adds the ranges "kjit: code of KERNEL", in
    which it compiles a kernel or reads its code. Without such a profiler the block runs as it is. Raises TypeError if name is no
    text."""
    context = _state.context()
    context.begin_range(name)
    try:
        yield
    finally:
        context.end_range()
