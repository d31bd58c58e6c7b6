"""Launch configurations: `kernel[grid, block, stream, shared]` and `kernel.forall(n)`."""

import operator
import pickle

from .. import _arrays, _errors, _kjit, _state
from . import arrays

_ArgumentError = _errors.CLASSES["KJIT_ERROR_ARGUMENT"]
_KernelError, _LaunchError = _errors.KernelError, _errors.CLASSES["KJIT_ERROR_LAUNCH"]

_BOUNDS_HINT = (
    "\nOn the CPU, kernels of kjit.cuda check their indices. cuda.jit(boundscheck=False), or NUMBA_BOUNDSCHECK=0 in the "
    "environment, switches that off"
)


def whole_number(value, name):
    """Returns the value as an integer. Raises TypeError for a value that is not an integer; the message
    begins with `name`."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None


def is_no_kernel(dispatcher):
    name = dispatcher.py_func.__name__
    return RuntimeError(f"Cannot compile a device function as a kernel: kernels call {name}")


class _BeforeLaunch:
    """Waits for a CPU stream before a launch of a kernel with its own context. Such a launch cannot
    use the stream itself."""

    def __init__(self, stream):
        self._stream = stream

    def synchronize(self):
        """Waits for the stream. Raises kjit.Error if the stream belongs to another device than the
        launch."""
        here, there = (f"{d.kind}:{d.ordinal}" for d in (_arrays.device(), self._stream.device))
        if here != there:
            raise _ArgumentError(f"the launch is on {here}, but its stream is on {there}", "KJIT_ERROR_ARGUMENT")
        self._stream.synchronize()


class _CurrentDevice:
    """The thread's current device, as a device of the kernel's context. bits: the options that
    select the context."""

    def __init__(self, bits):
        self._bits = bits

    def synchronize(self):
        """Waits for all work that is queued on the device."""
        _state.context(*self._bits).device(_arrays.device()).synchronize()


class Configured(_kjit.Configured):
    """A dispatcher with a launch configuration. The C extension launches repeated calls with the
    same argument types directly."""

    _launched_kernel = None  # the kernel that the launcher launches

    def __init__(self, dispatcher, key, griddim, blockdim, stream):
        self.griddim, self.blockdim, self.stream, self.sharedmem = key[0], key[1], stream, key[3]
        self._key = key
        self.pre_launch_callbacks = []

    def _launch_anew(self, *args, **keywords):
        """Launches with arguments for which the extension has no stored conversion."""
        if self.dispatcher._is_device:
            raise is_no_kernel(self.dispatcher)
        try:
            if self._launcher is None:
                self._set_launcher(*self._make_launcher())
            for callback in self.pre_launch_callbacks:
                callback(self.dispatcher, self)
            self.dispatcher._launch(self, args, keywords, self._key[2] is not None)
        except (_KernelError, _LaunchError) as error:
            self._explain(error)
            raise

    def _explain(self, error):
        """Adds Numba's description to the message of a failed launch."""
        if isinstance(error, _KernelError):
            error._replace_text(lambda text: f"{text}{self._numba_text(error)}")
        elif isinstance(error, _LaunchError) and _arrays.device().kind == "cuda":
            error._replace_text(lambda text: f"{text}\nThe driver's name for it is CUDA_ERROR_INVALID_VALUE.")

    def _numba_text(self, error):
        """Describes the position of the failed thread in Numba's words: function, file, line,
        thread and block."""
        if error.thread is None or error.block is None:
            return ""
        name, said = self.dispatcher.py_func.__name__, f": {error.text}" if error.text else ""
        where = f"In function {name!r}, file {error.file}, line {error.line}"
        hint = _BOUNDS_HINT if isinstance(error, IndexError) and self.dispatcher._kernel.is_careful else ""
        return f"\n{where}\ntid={list(error.thread)} ctaid={list(error.block)}{said}{hint}"

    def __reduce__(self):
        if self.pre_launch_callbacks:
            raise pickle.PicklingError("Cannot pickle configured launches with pre-launch callbacks")
        grid, block, stream, shared = self._key
        if stream is not None:
            raise pickle.PicklingError("Cannot pickle configured launches with a stream")
        return _configured, (self.dispatcher, grid, block, shared)

    def _make_launcher(self):
        """Returns five values: the kjit launcher; the objects to synchronize before and after each
        launch, either of which may be None; whether the launch has a stream; and whether it runs on
        the CPU."""
        kernel, (grid, block, stream, shared) = self.dispatcher._kernel, self._key
        self._launched_kernel = kernel
        on_cpu, before, after = arrays.is_on_cpu(), None, None
        current = _CurrentDevice(kernel._bits)
        # A kernel with checks or debug information has its own context. On a GPU this context opens
        # the stream by its handle. A CPU stream has no handle, so the launch waits for the stream
        # instead.
        if stream is not None and any(kernel._bits):
            handle = stream.handle if hasattr(stream, "handle") else stream.__cuda_stream__()[1]
            if not handle:
                before, after = _BeforeLaunch(stream), current
            place = getattr(stream, "device", None)
            stream = _kjit.open_stream(_state.context(*kernel._bits), handle, place) if handle else None
        # A failing kernel with checks raises at its launch, as in Numba. On a GPU the launch
        # therefore waits for the kernel.
        if kernel._bits[0] and not on_cpu:
            after = current
        return kernel[grid, block, stream, shared], before, after, self._key[2] is not None, on_cpu

    def _launch_with(self, *values, **named):
        """Launches with values that kjit's kernels accept."""
        if self._launched_kernel is not self.dispatcher._kernel:  # the kernel was translated again
            self._set_launcher(*self._make_launcher())
        if self._before is not None:
            self._before.synchronize()
        self._launcher(*values, **named)
        if self._after is not None:
            self._after.synchronize()


def _configured(dispatcher, grid, block, shared):
    return dispatcher[grid, block, 0, shared]


class ForAll:
    """A launch configuration for at least `ntasks` threads; tpb is the number of threads in a
    block, 0 for 128."""

    def __init__(self, dispatcher, ntasks, tpb, stream, sharedmem):
        self.dispatcher, self.ntasks, self.thread_per_block, self.stream, self.sharedmem = (
            dispatcher,
            ntasks,
            tpb,
            stream,
            sharedmem,
        )

    def __call__(self, *args, **keywords):
        if self.ntasks == 0:
            return
        block = self.thread_per_block or 128
        self.dispatcher[(self.ntasks + block - 1) // block, block, self.stream, self.sharedmem](*args, **keywords)


def normalize(griddim, blockdim):
    """Returns the extents of grid and block as two tuples of three integers. Raises ValueError
    unless each has one to three integers."""
    def check(dim, name):
        if not isinstance(dim, (tuple, list)):
            dim = [dim]
        if len(dim) > 3 or len(dim) < 1:
            raise ValueError(f"{name} must be a sequence of 1, 2 or 3 integers, got {list(dim)!r}")
        try:
            dim = tuple(operator.index(d) for d in dim)
        except TypeError:
            raise TypeError(f"{name} must be a sequence of integers, got {list(dim)!r}") from None
        return dim + (1,) * (3 - len(dim))

    return check(griddim, "griddim"), check(blockdim, "blockdim")
