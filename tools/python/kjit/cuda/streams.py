"""Streams and events with Numba's names."""

import contextlib
import operator
import weakref

from .. import _arrays, _errors, _kjit, _state
from . import callbacks

# The existing CPU streams by number, because CPU streams have no handle of the driver.
_of_cpu: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class Stream:
    """A queue for one device's launches and copies."""

    def __init__(self, own=None, kind="created"):
        self._own, self._kind = own, kind
        if isinstance(own, _kjit.Stream) and not own.handle:
            _of_cpu[id(own)] = self

    @property
    def external(self):
        """Whether the stream belongs to another library."""
        return self._kind == "external"

    @property
    def handle(self):
        """The CUstream as an integer; for a CPU stream a number of kjit's."""
        return int(self)

    def synchronize(self):
        """Waits for all queued work, and for the calls of functions that add_callback() has queued
        so far."""
        self._waitable().synchronize()
        callbacks.wait(self)

    def _waitable(self):
        if self._own is None:
            return _arrays.device()
        if isinstance(self._own, _kjit.Stream):
            return self._own
        _check_handle(self._own)
        device = _arrays.device()
        return _kjit.open_stream(_state.context(), int(self), device) if device.kind == "cuda" else device

    def __cuda_stream__(self):
        return 0, int(self)

    @contextlib.contextmanager
    def auto_synchronize(self):
        """Returns a context manager that waits for the stream at the end of the block."""
        yield self
        self.synchronize()

    def add_callback(self, callback, arg=None):
        """Calls callback(stream, status, arg) after the work that is queued now. status is 0, or
        the driver's error number.

        A kjit thread makes the calls. Neither this method nor work that is queued later waits
        for the call. Exceptions of the callback go to sys.unraisablehook. Raises TypeError if
        callback is not callable.
        """
        if not callable(callback):
            raise TypeError(f"add_callback takes a function, not {type(callback).__name__}")
        _check_handle(self._own)
        callbacks.add(self, callback, arg)

    def async_done(self):
        """Returns an awaitable that completes after the work that is queued now. Its result is the
        stream."""
        # imported here, because importing asyncio takes half as long as importing all of kjit.cuda
        import asyncio

        _check_handle(self._own)
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve(stream, status, arg):
            try:
                loop.call_soon_threadsafe(_resolve, future, stream, status)
            except RuntimeError:
                # a closed loop causes an error, which is ignored because its futures can no longer be awaited
                if not loop.is_closed():
                    raise

        callbacks.add(self, resolve, None)
        return future

    def __bool__(self):
        return True

    def __int__(self):
        if self._own is None:
            return {"legacy": 1, "per-thread": 2}.get(self._kind, 0)
        return self._own.__cuda_stream__()[1] or id(self._own)

    def __repr__(self):
        words = {
            "default": "Default CUDA stream",
            "legacy": "Legacy default CUDA stream",
            "per-thread": "Per-thread default CUDA stream",
            "external": "External CUDA stream",
        }
        return f"<{words.get(self._kind, 'CUDA stream')} on {self._device()}>"

    def _device(self):
        """Returns the stream's device. Default streams and streams of other libraries belong to the
        current device."""
        return self._own.device if isinstance(self._own, _kjit.Stream) else _arrays.device()


class Foreign:
    """A stream of another library, by its handle. It belongs to the device that is current when the
    object is made."""

    def __init__(self, handle, device_id):
        self.handle, self.device_id = handle, device_id

    def __cuda_stream__(self):
        return 0, self.handle


def _resolve(future, stream, status):
    if future.done():  # cancelled
        return
    if status:
        future.set_exception(RuntimeError(f"Stream error {status}"))
    else:
        future.set_result(stream)


def unwrap(stream):
    """Returns kjit's stream for a stream argument, or None for the default stream. Raises TypeError
    if the argument is not a stream."""
    if stream is None or type(stream) is int and stream == 0:
        return None
    if isinstance(stream, Stream):
        _check_handle(stream._own)
        return stream._own
    if isinstance(stream, _kjit.Stream) or hasattr(stream, "__cuda_stream__"):
        return stream
    raise TypeError(f"a stream must be a cuda.stream() or 0, not {type(stream).__name__}")


def wait_for(stream):
    """Waits for the work that a stream contains now; the default stream needs no waiting. A copy
    with a stream argument calls this function first, because copies are not queued on streams.
    Raises TypeError if the argument is not a stream."""
    own = unwrap(stream)
    if own is None:
        return
    if not isinstance(own, _kjit.Stream):
        device = _arrays.device()
        if device.kind != "cuda":
            return
        if isinstance(own, Foreign):
            device = _arrays.device(f"cuda:{own.device_id}")
        own = _kjit.open_stream(_state.context(), own.__cuda_stream__()[1], device)
    own.synchronize()


def stream(priority=0, non_blocking=False):
    """Returns a new stream. Lower numbers mean a higher priority; a number outside the device's
    range means the nearest one in the range. non_blocking: the stream is not ordered with the
    default stream."""
    if not hasattr(priority, "__index__"):
        raise TypeError(f"the priority of a stream must be an integer, not {priority!r}")
    return Stream(_arrays.device().stream(priority=priority, non_blocking=non_blocking))


def default_stream():
    """Returns the default stream, which calls without a stream use."""
    return Stream(None, "default")


def legacy_default_stream():
    """Returns the legacy default stream, which waits for all other streams of the device."""
    return Stream(None, "legacy")


def per_thread_default_stream():
    """Returns the default stream of the thread that launches."""
    return Stream(None, "per-thread")


def external_stream(ptr):
    """Returns a stream for the handle of another library's stream. 0, 1 and 2 are the default, the
    legacy and the per-thread default stream.

    On a GPU the driver checks the handle when the stream is used. On the CPU only the handles of
    kjit's own streams are valid; the use of a stream with another handle raises kjit.ArgumentError.
    Raises TypeError if ptr is not an integer, and ValueError if it has more than 64 bits or is
    negative.
    """
    handle = _handle_of(ptr)
    if handle in (0, 1, 2):
        return Stream(None, ("default", "legacy", "per-thread")[handle])
    if handle in _of_cpu:
        return Stream(_of_cpu[handle]._own, "external")
    return Stream(Foreign(handle, _arrays.device().ordinal), "external")


def _handle_of(ptr):
    value = getattr(ptr, "value", ptr)  # a ctypes object has its integer as `value`; for NULL, `value` is None
    if value is None and ptr is not None:
        return 0
    if not hasattr(value, "__index__"):
        raise TypeError(f"external_stream takes the handle of a stream, an integer, not {ptr!r}")
    handle = operator.index(value)
    if not 0 <= handle < 1 << 64:
        raise ValueError(f"external_stream takes the handle of a stream, which has 64 bits and no sign, not {handle}")
    return handle


def _check_handle(own):
    """Raises ArgumentError for a stream of another library if the device is a CPU, because all CPU
    streams are kjit's own."""
    if isinstance(own, Foreign) and _arrays.device().kind != "cuda":
        text = f"the handle {own.handle:#x} is no stream: on the CPU, only the handles of cuda.stream() are streams"
        raise _errors.CLASSES["KJIT_ERROR_ARGUMENT"](text, "KJIT_ERROR_ARGUMENT")


class Event:
    """A point in a stream, whose time is recorded."""

    def __init__(self, timing=True):
        self._own, self.timing = _arrays.device().event(), timing

    def record(self, stream=0):
        own = unwrap(stream)
        self._own.record(own) if own is not None else self._own.record()

    def synchronize(self):
        """Waits for the work before the event."""
        self._own.synchronize()

    def query(self):
        """Returns whether the work before the event is done."""
        return self._own.query()

    def wait(self, stream=0):
        """Makes work that is queued in the stream from now on wait for the event."""
        own = unwrap(stream)
        own.wait(self._own) if own is not None else self._own.synchronize()

    def elapsed_time(self, evtend):
        return event_elapsed_time(self, evtend)


def event(timing=True):
    """Returns a new event."""
    return Event(timing)


def event_elapsed_time(evtstart, evtend):
    """Returns the time between two events in milliseconds. Raises TypeError for other objects."""
    for given in (evtstart, evtend):
        if not isinstance(given, Event):
            raise TypeError(f"the elapsed time needs two events made by cuda.event(), not {given!r}")
    return evtend._own.since(evtstart._own) * _MILLISECONDS


_MILLISECONDS = 1000.0


def synchronize():
    """Waits for all work that is queued on the current device, and for the calls of functions that
    add_callback() has queued so far."""
    _arrays.device().synchronize()
    callbacks.wait()
