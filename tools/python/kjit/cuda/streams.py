"""Streams and events."""

import asyncio
import contextlib

from .. import _arrays, _kjit


class Stream:
    """A queue of launches and copies of one device."""

    def __init__(self, own=None, kind="created"):
        self._own, self._kind = own, kind

    def synchronize(self):
        """Waits for all that is queued."""
        (self._own or _arrays.device()).synchronize()

    @contextlib.contextmanager
    def auto_synchronize(self):
        """At the end of the block waits for all that is queued."""
        yield self
        self.synchronize()

    def add_callback(self, callback, arg=None):
        """callback(stream, status, arg) after what is queued; here it is waited for."""
        self.synchronize()
        callback(self, 0, arg)

    def async_done(self):
        """An awaitable that is done after what is queued, with the stream as its result."""
        future = asyncio.get_running_loop().create_future()
        self.synchronize()
        future.set_result(self)
        return future

    def __bool__(self):
        return self._own is not None or self._kind in ("legacy", "per-thread")

    def __int__(self):
        return (
            {"legacy": 1, "per-thread": 2}.get(self._kind, 0) if self._own is None else self._own.__cuda_stream__()[1]
        )

    def __repr__(self):
        words = {
            "default": "Default CUDA stream",
            "legacy": "Legacy default CUDA stream",
            "per-thread": "Per-thread default CUDA stream",
            "external": "External CUDA stream",
        }
        return f"<{words.get(self._kind, 'CUDA stream')} on {_arrays.device()}>"


def unwrap(stream):
    """The stream of kjit, or None."""
    if stream is None or type(stream) is int and stream == 0:
        return None
    if isinstance(stream, Stream):
        return stream._own
    if isinstance(stream, _kjit.Stream) or hasattr(stream, "__cuda_stream__"):
        return stream
    raise TypeError(f"a stream is one of cuda.stream() or 0, not {type(stream).__name__}")


def stream():
    """A new stream."""
    return Stream(_arrays.device().stream())


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

    class Foreign:
        def __cuda_stream__(self):
            return 0, ptr

    return Stream(Foreign(), "external")


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
    """Waits for all that is queued on the current device."""
    _arrays.device().synchronize()
