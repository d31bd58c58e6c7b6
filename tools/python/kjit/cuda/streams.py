"""Streams and events."""

import asyncio
import contextlib
import weakref

from .. import _arrays, _kjit, _state
from . import callbacks

# Streams of the CPU, which have no handle of a driver's, by their numbers.
_of_cpu: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class Stream:
    """A queue of launches and copies of one device."""

    def __init__(self, own=None, kind="created"):
        self._own, self._kind = own, kind
        if isinstance(own, _kjit.Stream) and not own.handle:
            _of_cpu[id(own)] = self

    @property
    def external(self):
        """Whether it is one of another library."""
        return self._kind == "external"

    @property
    def handle(self):
        """The CUstream as a number; on the CPU a number of kjit's."""
        return int(self)

    def synchronize(self):
        """Waits for all that is queued, and for the functions that add_callback has added so far."""
        self._waitable().synchronize()
        callbacks.wait(self)

    def _waitable(self):
        if self._own is None:
            return _arrays.device()
        if isinstance(self._own, _kjit.Stream):
            return self._own
        device = _arrays.device()
        return _kjit.open_stream(_state.context(), int(self), device) if device.kind == "cuda" else device

    def __cuda_stream__(self):
        return 0, int(self)

    @contextlib.contextmanager
    def auto_synchronize(self):
        """At the end of the block waits for all that is queued."""
        yield self
        self.synchronize()

    def add_callback(self, callback, arg=None):
        """callback(stream, status, arg) is called on a thread of kjit's after what is queued now. status is 0, or the number of
        the driver's error. Nobody waits for it: neither this call nor what is queued later. Its exceptions go to
        sys.unraisablehook."""
        if not callable(callback):
            raise TypeError(f"add_callback takes a function, not {type(callback).__name__}")
        callbacks.add(self, callback, arg)

    def async_done(self):
        """An awaitable that is done after what is queued now, with the stream as its result."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve(stream, status, arg):
            try:
                loop.call_soon_threadsafe(_resolve, future, stream, status)
            except RuntimeError:
                if not loop.is_closed():  # whose futures nobody waits for
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
        """The device of the stream: default streams and streams of other libraries are those of the current device."""
        return self._own.device if isinstance(self._own, _kjit.Stream) else _arrays.device()


class Foreign:
    """A stream of another library by its handle, on the device that is the current one when it is made."""

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
    """The stream of kjit, or None."""
    if stream is None or type(stream) is int and stream == 0:
        return None
    if isinstance(stream, Stream):
        return stream._own
    if isinstance(stream, _kjit.Stream) or hasattr(stream, "__cuda_stream__"):
        return stream
    raise TypeError(f"a stream must be a cuda.stream() or 0, not {type(stream).__name__}")


def stream(priority=0, non_blocking=False):
    """A new stream. Lower numbers have a higher priority, and numbers out of the device's range are the nearest in it.
    non_blocking: it is not ordered with the default stream."""
    return Stream(_arrays.device().stream(priority=priority, non_blocking=non_blocking))


def default_stream():
    """The stream of what names none."""
    return Stream(None, "default")


def legacy_default_stream():
    """The default stream that waits for all others of the device."""
    return Stream(None, "legacy")


def per_thread_default_stream():
    """The default stream of the thread that launches."""
    return Stream(None, "per-thread")


def external_stream(ptr):
    """The stream of another library by its handle."""
    if ptr in (0, 1, 2):
        return Stream(None, ("default", "legacy", "per-thread")[ptr])
    if ptr in _of_cpu:
        return Stream(_of_cpu[ptr]._own, "external")

    return Stream(Foreign(ptr, _arrays.device().ordinal), "external")


class Event:
    """A point in a stream, and its time."""

    def __init__(self, timing=True):
        self._own, self.timing = _arrays.device().event(), timing

    def record(self, stream=0):
        own = unwrap(stream)
        self._own.record(own) if own is not None else self._own.record()

    def synchronize(self):
        """Waits for the work before the event."""
        self._own.synchronize()

    def query(self):
        """Whether the work before the event is done."""
        return self._own.query()

    def wait(self, stream=0):
        """What is queued in the stream from now on is done after the event."""
        own = unwrap(stream)
        own.wait(self._own) if own is not None else self._own.synchronize()

    def elapsed_time(self, evtend):
        return event_elapsed_time(self, evtend)


def event(timing=True):
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart, evtend):
    """Milliseconds between two events."""
    return evtend._own.since(evtstart._own) * _MILLISECONDS


_MILLISECONDS = 1000.0


def synchronize():
    """Waits for all that is queued on the current device, and for the functions that add_callback has added so far."""
    _arrays.device().synchronize()
    callbacks.wait()
