"""Calls functions in the program after the work that a stream contains now. A kjit thread calls the
functions one after the other."""

import atexit
import os
import re
import threading

from .. import _arrays, _errors, _kjit, _state

# the time after which the waiting thread tests whether a device was lost; a lost device completes no work
_PATIENCE_MS = 500
_UNKNOWN = 999  # CUDA_ERROR_UNKNOWN
_EXIT_SECONDS = 1.0  # the time that the interpreter waits at exit for a function that is still running

_DeviceError = _errors.CLASSES["KJIT_ERROR_DEVICE"]


class _Entry:
    """A function that waits for its call. place: the stream of libkjit, or None."""

    def __init__(self, stream, place, function, arg):
        self.stream, self.place, self.function, self.arg = stream, place, function, arg

    def failure(self):
        """Returns the error if the device was lost, else None."""
        try:
            if self.place is not None:
                self.place.query()
        except _DeviceError as error:
            return error
        except _errors.Error:
            pass  # the stream cannot be queried while a graph is captured
        return None

    def call(self, status):
        _kjit.call_reporting(self.function, self.stream, status, self.arg)


def _status_of(error):
    """Returns the CUDA driver's number of an error, which the error's message has in
    parentheses."""
    found = re.search(r"\((\d+)\)", str(error))
    return int(found[1]) if found else _UNKNOWN


class _Callbacks:
    """All functions that wait for their call, by number. The thread exists as long as at least one
    function waits."""

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
            if number is False:  # the interpreter is exiting
                return
            if number is None:
                self.call_lost()
            elif number in self.pending:
                self.pending[number].call(0)
                self.finish(number)

    def call_lost(self):
        """Calls the waiting functions of streams whose device was lost, with the error as their
        status."""
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
        """Waits for the functions that were added before this call. stream: waits only for functions
        of this stream; None means all streams."""
        if not self.pending or self.thread is threading.current_thread():
            return
        with self.changed:
            last = self.added

            def is_done():
                return self.is_closed or not any(n <= last and stream in (None, e.stream) for n, e in self.pending.items())

            self.changed.wait_for(is_done)

    def close(self):
        """Ends the calls: afterwards no function is called any more."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        _kjit.close_posted()
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_EXIT_SECONDS)


_all = _Callbacks()


def _renew():
    """Drops the parent's waiting functions in a forked child. The child does not have the thread
    that would call them."""
    global _all
    _all = _Callbacks()


os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _all.close())


def add(stream, function, arg):
    """Calls function(stream, status, arg) after the work that the stream contains now. status is 0,
    or the driver's error number."""
    device, own = _arrays.device(), stream._own
    if isinstance(own, _kjit.Stream):
        device = own.device
    elif device.kind == "cuda":
        own = _kjit.open_stream(_state.context(), int(stream), device)
    else:
        own = None
    _all.add(_Entry(stream, own, function, arg), device)


def wait(stream=None):
    """Waits for the functions that were added before this call. stream: waits only for functions of this
    stream; None means all streams."""
    _all.wait(stream)
