"""The line that says what a long compilation, launch or wait is doing, in notebooks and on terminals. A thread looks now and
then at the calls of libkjit that are under way; it sleeps while there are none."""

import atexit
import functools
import importlib
import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from . import _kjit, _state

_PERIOD = 0.25  # seconds between two looks
_PATIENCE = 1.0  # seconds after which a call has a line
_IDLE = 8  # looks without any call until the thread sleeps

# What compilations do, by the stage that comes of it.
_STAGES = {
    "kir": "kernel IR",
    "typed": "types",
    "llvm": "LLVM IR",
    "llvm-opt": "optimization",
    "ptx": "PTX",
    "asm": "machine code",
    "object": "machine code",
    "cubin": "machine code of the driver's",
}

_asked: bool | None = None  # of set_progress
_guard = allocate_lock()  # of the next two
_is_watching = False
_alarm = allocate_lock()  # held by the thread; whoever wakes it lets it go
_looking = allocate_lock()  # held by the thread while it looks, and at the interpreter's end for good


# ---- where the line is ----


class _Terminal:
    """The extension writes the line and, before the call returns, erases it."""

    def __init__(self, stream):
        self.file = stream.fileno()

    def show(self, number, text, seconds):
        columns = os.get_terminal_size(self.file).columns or 80
        text = f"{text}: {seconds} s"[: columns - 1]
        _kjit.show_call(number, self.file, f"\r{text}\033[K".encode())

    def end(self):
        pass


class _Log:
    """Lines after 1, 2, 4, 8 seconds and so on."""

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
    """An output of the cell, which is empty again when the call is over; one for all calls of the cell."""

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
    """Jupyter's, where the program runs in one of its cells."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get() if get is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def _choose(before):
    """Where the line goes now: before, if that is still the place; None: nowhere."""
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


# ---- what it says ----


def _name(compiled):
    """"axpy (program.py:12)"; of a loop of a function, with its own line."""
    code, loop = compiled.py_func.__code__, getattr(compiled, "loop", None)
    line = code.co_firstlineno if loop is None else loop.statement.lineno
    return f"{compiled.py_func.__name__} ({os.path.basename(code.co_filename)}:{line})"


def _describe(number):
    """(what it is doing, whether that is compiling); None: it is over."""
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
    """What one thread knows of the calls under way: since when, and since when they compile or run."""

    def __init__(self):
        self.since, self.doing, self.last, self.place, self.shown = {}, {}, 0, None, None

    def look(self):
        """Whether there was a call since the last time."""
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
    """Until the next call. False: nobody wants to see progress any more, and the thread ends."""
    global _is_watching
    with _guard:
        _is_watching = _kjit.arm_progress(_alarm.release)
        if not _is_watching:
            return False
    _alarm.acquire()
    return True


def watch():
    """What the thread does. A failure (a stream that cannot be written to) is the end of it, and of the line."""
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
    """Whether a line says what a compilation, a launch or a wait that has taken a second is doing: True, False, or None, as at
    first: in notebooks and where stderr is a terminal. The line goes away with the call. With True and neither of these,
    stderr gets a line after 1, 2, 4, 8 seconds and so on. What is under way already goes on without."""
    global _asked
    if show is not None and not isinstance(show, bool):
        raise TypeError(f"set_progress takes True, False or None, not {type(show).__name__}")
    with _guard:
        _asked = show
        is_on = _state.is_interactive() if show is None else show
        _kjit.set_progress(is_on, (_alarm.release if _is_watching else _start) if is_on else None)


def _renew():
    """A forked child has none of its parent's threads."""
    global _guard, _alarm, _looking, _is_watching
    _guard, _alarm, _looking, _is_watching = allocate_lock(), allocate_lock(), allocate_lock(), False
    _kjit.arm_progress(_start)


# Functions that C implements: a call may end in no handler of a signal.
_start = functools.partial(start_new_thread, watch, ())
os.register_at_fork(after_in_child=_renew)


@atexit.register
def _end():
    """The interpreter aborts where a thread that it stops has begun to write to one of its streams."""
    _kjit.set_progress(False, None)
    _looking.acquire(timeout=2)
