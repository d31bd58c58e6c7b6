"""Functions that are called when the work that is on a stream now is done. A thread of kjit's calls them one after the other."""

import atexit
import os
import re
import threading

from .. import _arrays, _errors, _kjit, _state

_PATIENCE_MS = 500  # until the thread looks whether the device was lost, which calls nothing any more
_UNKNOWN = 999  # CUDA_ERROR_UNKNOWN
_EXIT_SECONDS = 1.0  # that the interpreter waits at its end for a function that is running

_DeviceError = _errors.CLASSES["KJIT_ERROR_DEVICE"]


class _Entry:
    """A function that is to be called. place: the stream of libkjit, or None."""

    def __init__(self, stream, place, function, arg):
        self.stream, self.place, self.function, self.arg = stream, place, function, arg

    def failure(self):
        """The error of a device that was lost, or None."""
        try:
            if self.place is not None:
                self.place.query()
        except _DeviceError as error:
            return error
        except _errors.Error:
            pass  # it cannot be asked now: captures are under way
        return None

    def call(self, status):
        _kjit.call_reporting(self.function, self.stream, status, self.arg)


def _status_of(error):
    """The driver's number of an error."""
    found = re.search(r"\((\d+)\)", str(error))
    return int(found[1]) if found else _UNKNOWN


class _Callbacks:
    """All functions that are to be called, by their numbers. The thread lives as long as there are any."""

    def __init__(self):
        self.changed = threading.Condition()
        self.pending = {}
        self.added, self.thread, self.is_closed = 0, None, False

    def add(self, entry, device):
        with self.changed:
            self.added += 1
            number = self.added
            self.pending[number] = entry
            if self.thread is None and not self.is_closed:
                self.thread = threading.Thread(target=self.run, name="kjit-callbacks", daemon=True)
                self.thread.start()
        try:
            _kjit.post_after(device, entry.place, number)
        except BaseException:
            self.finish(number)
            raise

    def run(self):
        while True:
            with self.changed:
                if not self.pending:
                    self.thread = None
                    return
            number = _kjit.take_posted(_PATIENCE_MS)
            if number is False:  # the interpreter ends
                return
            if number is None:
                self.call_lost()
            elif number in self.pending:
                self.pending[number].call(0)
                self.finish(number)

    def call_lost(self):
        """Calls the functions of streams whose device was lost."""
        for number, entry in list(self.pending.items()):
            failure = entry.failure()
            if failure is not None:
                entry.call(_status_of(failure))
                self.finish(number)

    def finish(self, number):
        with self.changed:
            self.pending.pop(number, None)
            self.changed.notify_all()

    def wait(self, stream=None):
        """Waits for the functions that were added so far: of the stream, or of all."""
        if not self.pending or self.thread is threading.current_thread():
            return
        with self.changed:
            last = self.added

            def is_done():
                return self.is_closed or not any(n <= last and stream in (None, e.stream) for n, e in self.pending.items())

            self.changed.wait_for(is_done)

    def close(self):
        """No function is called any more."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        _kjit.close_posted()
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_EXIT_SECONDS)


_all = _Callbacks()


def _renew():
    """A forked child has none of its parent's functions, and no thread."""
    global _all
    _all = _Callbacks()


os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _all.close())


def add(stream, function, arg):
    """function(stream, status, arg) is called after what is on the stream now; status is 0, or the driver's error."""
    device, own = _arrays.device(), stream._own
    if isinstance(own, _kjit.Stream):
        device = own.device
    elif device.kind == "cuda":
        own = _kjit.open_stream(_state.context(), int(stream), device)
    else:
        own = None
    _all.add(_Entry(stream, own, function, arg), device)


def wait(stream=None):
    """Waits for the functions that were added so far: of the stream, or of all."""
    _all.wait(stream)
