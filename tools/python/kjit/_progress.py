"""The line that shows what a long compilation, launch or wait is doing, in notebooks and on terminals. A thread polls the running
calls of libkjit, and sleeps if no call is running."""

import atexit
import functools
import importlib
import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from . import _kjit, _state

_PERIOD = 0.25  # seconds between two polls
_PATIENCE = 1.0  # seconds until a call gets a line
_IDLE = 8  # the number of polls without a running call after which the thread sleeps

# The stage that a compilation is producing -> the stage name in the line.
_STAGES = {
    "kir": "kernel IR",
    "typed": "types",
    "llvm": "LLVM IR",
    "llvm-opt": "optimization",
    "ptx": "PTX",
    "asm": "machine code",
    "object": "machine code",
    "cubin": "machine code of the driver's",
    "derivatives": "derivatives",
}

_asked: bool | None = None  # argument of set_progress
_guard = allocate_lock()  # protects the next two variables
_is_watching = False
_alarm = allocate_lock()  # held by the thread; other threads release it to wake the thread
_looking = allocate_lock()  # held by the thread during a poll, and not released any more when the interpreter ends


# ---- where the line is shown ----


class _Terminal:
    """A terminal. The extension writes the line and erases it before the call returns."""

    def __init__(self, stream):
        self.file = stream.fileno()

    def show(self, number, text, seconds):
        columns = os.get_terminal_size(self.file).columns or 80
        text = f"{text}: {seconds} s"[: columns - 1]
        _kjit.show_call(number, self.file, f"\r{text}\033[K".encode())

    def end(self):
        pass


class _Log:
    """An output that is not a terminal: it receives a line after 1, 2, 4, 8 seconds and so on."""

    def __init__(self, stream):
        self.stream, self.number, self.next = stream, 0, 1

    def show(self, number, text, seconds):
        if number != self.number:
            self.number, self.next = number, 1
        if seconds >= self.next and _kjit.show_call(number, -1, b""):
            self.next = 2 * seconds
            self.stream.write(f"{text}: {seconds} s\n")
            self.stream.flush()

    def end(self):
        pass


class _Notebook:
    """An output of the notebook cell, cleared at the end of the call. All calls of a cell share it."""

    def __init__(self, shell):
        self.shell, self.handle, self.cell, self.is_open = shell, None, None, False

    def show(self, number, text, seconds):
        if not _kjit.show_call(number, -2, b""):
            return
        cell, bundle = getattr(self.shell, "execution_count", None), {"text/plain": f"{text}: {seconds} s"}
        self.is_open = True
        if self.handle is not None and self.cell == cell:
            self.handle.update(bundle, raw=True)
            return
        display = importlib.import_module("IPython.display").display
        self.handle, self.cell = display(bundle, raw=True, display_id=True), cell

    def end(self):
        if self.is_open and self.handle is not None:
            self.is_open = False
            self.handle.update({"text/plain": ""}, raw=True)


def _shell():
    """Returns the shell of Jupyter if the program runs in a notebook cell."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get() if get is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def _choose(before):
    """Returns where to show the line: `before` if it is still valid, or None for nowhere."""
    if _asked is False:
        return None
    shell, stream = _shell(), sys.stderr
    if shell is not None:
        return before if isinstance(before, _Notebook) and before.shell is shell else _Notebook(shell)
    if stream is None or stream.closed:
        return None
    if stream.isatty():
        return _Terminal(stream)
    if not _asked:
        return None
    return before if isinstance(before, _Log) and before.stream is stream else _Log(stream)


# ---- the text of the line ----


def _name(compiled):
    """Returns the name and the place of a function, "axpy (program.py:12)". For a loop of a
    function, the line is that of the loop."""
    code, loop = compiled.py_func.__code__, getattr(compiled, "loop", None)
    line = code.co_firstlineno if loop is None else loop.statement.lineno
    return f"{compiled.py_func.__name__} ({os.path.basename(code.co_filename)}:{line})"


def _describe(number):
    """Returns (the activity, whether it is a compilation), or None if the call is over."""
    described = _kjit.describe_call(number)
    if described is None:
        return None
    what, name, compiled, device, stages, launched = described
    if what == "wait":
        where = device or "an event"
        after = f", {_name(launched)} was launched last" if launched is not None else ""
        return f"kjit: waiting for {where}{after}", False
    if what == "copy":
        return "kjit: copying" + (f", to or from an array on {device}" if device else ""), False
    if what == "write":
        return f"kjit: {_name(compiled)}: compiling, {_STAGES['kir']}", True
    if compiled is not None:
        made = compiled._made
        stage, name = stages.get(made.name) if made is not None else None, _name(compiled)
    else:
        stage = stages.get(name) if what == "compile" else next(iter(stages.values()), None)
    if stage is not None or what == "compile":
        return f"kjit: {name}: compiling" + (f", {_STAGES.get(stage, stage)}" if stage else ""), True
    return f"kjit: {name}: running" + (f" on {device}" if device else ""), False


class _Watch:
    """The state of the thread that shows the line: when the running calls began, and when each began to
    compile or to run its kernel."""

    def __init__(self):
        self.since, self.doing, self.last, self.place, self.shown = {}, {}, 0, None, None

    def look(self):
        """Shows, updates or ends the line. Returns whether there was a call since the last poll."""
        now = time.monotonic()
        last, numbers = _kjit.list_calls()
        was_busy, self.last = bool(numbers) or last != self.last, last
        self.since = {number: self.since.get(number, now) for number in numbers}
        self.doing = {number: doing for number, doing in self.doing.items() if number in self.since}
        long = [number for number in numbers if now - self.since[number] >= _PATIENCE]
        described = _describe(long[0]) if long else None
        if described is None:
            self.end()
            return was_busy
        text, is_compiling = described
        phase, since = self.doing.get(long[0], (is_compiling, self.since[long[0]]))
        if phase != is_compiling:
            since = now
        self.doing[long[0]] = is_compiling, since
        place = _choose(self.place)
        if place is not self.place and isinstance(self.place, _Notebook):
            self.end()
        shown = long[0], text, int(now - since)
        if place is not None and shown != self.shown:
            place.show(*shown)
        self.place, self.shown = place, shown
        return was_busy

    def end(self):
        self.shown = None
        if self.place is not None:
            self.place.end()


def _sleep():
    """Sleeps until the next call. Returns False if progress was turned off; the thread then ends."""
    global _is_watching
    with _guard:
        _is_watching = _kjit.arm_progress(_alarm.release)
        if not _is_watching:
            return False
    _alarm.acquire()
    return True


def watch():
    """Body of the thread. A failure, such as a stream that cannot be written, ends the thread and the line."""
    global _is_watching
    with _guard:
        if _is_watching:
            return
        _is_watching = True
        _alarm.acquire(False)
    try:
        watch, idle, pause = _Watch(), 0, 0.0
        while idle < _IDLE or _sleep():
            ended = _kjit.await_end(pause if idle < _IDLE else 0)
            with _looking:
                is_busy = watch.look()
            idle, pause = 0 if is_busy or idle == _IDLE else idle + 1, _PERIOD
            _kjit.confirm_end(ended)
    except Exception:
        _kjit.set_progress(False, None)
        with _guard:
            _is_watching = False


def set_progress(show=None):
    """Selects whether a line shows what a compilation, launch or wait of more than a second is doing. show is True,
    False, or None (the initial value), which shows the line in notebooks and if stderr is a terminal. The line
    disappears at the end of the call. With True, any other stderr receives lines after 1, 2, 4, 8 seconds and so on.
    Calls that already run are not shown."""
    global _asked
    if show is not None and not isinstance(show, bool):
        raise TypeError(f"set_progress takes True, False or None, not {type(show).__name__}")
    with _guard:
        _asked = show
        is_on = _state.is_interactive() if show is None else show
        _kjit.set_progress(is_on, (_alarm.release if _is_watching else _start) if is_on else None)


def _renew():
    """Clears the state in a forked child, which does not have the parent's threads."""
    global _guard, _alarm, _looking, _is_watching
    _guard, _alarm, _looking, _is_watching = allocate_lock(), allocate_lock(), allocate_lock(), False
    _kjit.arm_progress(_start)


# Starts the thread. This object runs no Python code when it is called. In Python code a signal
# handler could raise an exception, which would end the call of libkjit that wakes the thread.
_start = functools.partial(start_new_thread, watch, ())
os.register_at_fork(after_in_child=_renew)


@atexit.register
def _end():
    """Stops the thread before the interpreter does. The interpreter aborts if it stops a thread that is writing to a
    stream."""
    _kjit.set_progress(False, None)
    _looking.acquire(timeout=2)
