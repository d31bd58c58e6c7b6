"""Runs the threads in a grid in turn in one thread of the operating system. A greenlet runs a
thread in the grid, and keeps its frames while other threads run. A thread that waits switches to
the loop of its block, which chooses the next thread."""

import collections
import contextvars
import functools
import operator
import sys

import numpy

from .. import _errors
from . import debugging

try:
    import greenlet
except ImportError:
    raise ImportError("the simulator of kjit.cuda needs the package greenlet: pip install greenlet") from None

WARP = 32
# After this number of turns in which the threads in a block only yield, another block has its turn.
_IDLE_TURNS = 64


class Place:
    """A position, such as threadIdx. wide: the same numbers as int64, the type in which positions in
    the grid are computed."""

    __slots__ = ("x", "y", "z", "wide")

    def __init__(self, extents):
        self.x, self.y, self.z = map(numpy.int32, extents)
        self.wide = tuple(map(numpy.int64, extents))

    def __repr__(self):
        return str((int(self.x), int(self.y), int(self.z)))


class Now:
    """The thread that is running. Attributes such as threadIdx and blockIdx have its positions.
    first: the position in the grid of the first thread in the block."""

    __slots__ = ("thread", "threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize", "first")

    def __init__(self):
        self.thread = self.blockDim = self.gridDim = None
        self.warpsize = numpy.int32(WARP)


NOW = Now()
_LANES = [numpy.int32(lane) for lane in range(WARP)]


class Thread:
    """A thread in the grid.

    index: the thread's number in its block

    request: the operation that the thread waits for, as (name, group, value), or None if the thread can run

    answer: the result of the last operation

    greenlet: the greenlet that runs the thread

    turns: the number of `while` loop iterations so far

    is_listed: whether the thread is in its block's list
    """

    __slots__ = ("block", "index", "greenlet", "request", "answer", "turns", "is_listed", "is_done")

    def __init__(self, block, running):
        self.block, self.greenlet = block, running
        self.index = self.turns = 0
        self.request = self.answer = None
        self.is_listed = self.is_done = False

    @property
    def place(self):
        return self.block.launch.thread_places[self.index]

    @property
    def lane(self):
        return self.index % WARP

    @property
    def warp(self):
        return self.index // WARP


_RETURNS = "CUDA kernel must have void return type: a kernel cannot return a value: write to an array, or make it a device function"
GIVES_WAY = ("give way", None, None)


def wait(name, taking_part=None, value=None):
    """Suspends the current thread until all threads in a group have called this function, and
    returns the answer for the thread. taking_part: a mask of the warp's lanes, None for all threads
    in the block, or "grid" for all threads in the grid. Raises TypeError outside of a kernel."""
    thread = NOW.thread
    if thread is None:
        raise TypeError(f"cuda.{name} can be used in a kernel only")
    suspend(thread, (name, taking_part, value))
    return thread.answer


def suspend(thread, request):
    """Lets other threads run until the request of the current thread is answered."""
    thread.request = request
    if not thread.is_listed:
        thread.is_listed = True
        thread.block.threads.append(thread)
    thread.block.loop.switch()


# Raised if threads wait for each other and no barrier can be completed.
Deadlock = type("Deadlock", (_errors.KernelError,), {"__module__": __name__})


class Block:
    """A block. begun: the number of threads that have begun. threads: the threads that have waited at
    least once, in the order of their numbers; all other threads that have begun have ended. The
    threads in `ready` can run."""

    def __init__(self, launch, place):
        self.launch, self.place, self.shared = launch, Place(place), {}
        self.first = tuple(map(operator.mul, self.place.wide, launch.block_place.wide))
        self.begun, self.threads = 0, []
        self.ready = collections.deque()
        self.loop = None

    def run(self):
        """Runs the block until all threads have ended ("done"), wait for the grid ("grid"), or only
        yield to each other ("idle")."""
        NOW.blockIdx, NOW.first = self.place, self.first
        self.loop = greenlet.getcurrent()
        while True:
            while self.begun < len(self.launch.thread_places):
                worker = greenlet.greenlet(self._work, self.loop)
                worker.gr_context = self.launch.context.copy()
                worker.switch()
            if not self._run_ready():
                return "idle"
            waiting = [t for t in self.threads if not t.is_done]
            if not waiting:
                return "done"
            if all(t.request[1] == "grid" for t in waiting):
                return "grid"
            self._release(waiting)

    def _work(self):
        """Runs threads that have not begun, one after the other. Each greenlet runs this function. If
        a thread waits, its greenlet is suspended. When the thread has ended, the greenlet continues
        with further threads. Threads that never wait share one object, because each thread begins
        after the end of the preceding one."""
        now, launch, current = NOW, self.launch, greenlet.getcurrent()
        function, arguments, keywords, places = launch.function, launch.arguments, launch.keywords, launch.thread_places
        thread = Thread(self, current)
        try:
            while self.begun < len(places):
                thread.index = index = self.begun
                self.begun += 1
                now.thread, now.threadIdx, now.laneid = thread, places[index], _LANES[index % WARP]
                if function(*arguments, **keywords) is not None:
                    raise TypeError(_RETURNS)
                if thread.is_listed:
                    thread.is_done, thread = True, Thread(self, current)
                else:
                    thread.turns = 0
            return
        except debugging.Quit:
            raise
        except Exception as error:
            raised = error
        raise launch.located(raised, thread)

    def _run_ready(self):
        """Runs the threads that are ready. Returns False if they have only yielded to each other
        for a long time."""
        self.ready.extend(t for t in self.threads if t.request is GIVES_WAY)
        idle = 0
        while self.ready:
            thread = self.ready.popleft()
            NOW.thread, NOW.threadIdx, NOW.laneid = thread, thread.place, _LANES[thread.lane]
            thread.request = None
            thread.greenlet.parent = self.loop
            thread.greenlet.switch()
            if thread.request is not GIVES_WAY:
                idle = 0
                continue
            self.ready.append(thread)
            idle += 1
            if idle > _IDLE_TURNS * len(self.launch.thread_places):
                self.ready.clear()
                return False
        return True

    # ---- completing barriers ----

    def _release(self, waiting):
        """Makes threads ready whose barrier or warp operation is complete. Raises Deadlock if no
        operation is complete."""
        groups = [g for w in sorted({t.warp for t in waiting}) for g in self._groups_of_warp([t for t in waiting if t.warp == w])]
        if not groups and all(t.request[1] is None for t in waiting):
            groups = [waiting]
        if not groups:
            raise self._deadlock(waiting)
        for group in groups:
            self.answer(group)

    def answer(self, group):
        answers = self.launch.answers[group[0].request[0]](group)
        for thread, answer in zip(group, answers):
            thread.answer, thread.request = answer, None
            self.ready.append(thread)

    def _groups_of_warp(self, waiting):
        """Yields the groups of lanes that wait in the same warp operation with the same mask, if
        all lanes in the mask wait. As on a GPU, lanes that have ended need not wait."""
        wanted = {}
        for thread in waiting:
            if isinstance(thread.request[1], int):
                wanted.setdefault((thread.request[0], thread.request[1]), []).append(thread)
        alive = {t.lane for t in waiting}
        for (_, mask), group in wanted.items():
            if mask < 0 or {lane for lane in alive if mask >> lane & 1} <= {t.lane for t in group}:
                yield group

    def _deadlock(self, waiting):
        places = {}
        for thread in waiting:
            places.setdefault((thread.request[0], line_of(thread)), thread)
        told = "; ".join(f"thread {position(t)} at {line} in {name}()" for (name, line), t in places.items())
        return Deadlock(f"threads of block {position(self)} wait for others that do not come: {told}", "KJIT_ERROR_KERNEL")

    def stop(self):
        """Ends the threads that have begun, after a failure of the launch."""
        self.begun = len(self.launch.thread_places)
        for thread in self.threads:
            if not thread.greenlet.dead and thread.greenlet is not greenlet.getcurrent():
                thread.greenlet.parent = greenlet.getcurrent()
                thread.greenlet.throw(greenlet.GreenletExit)


def position(thing):
    return tuple(int(e) for e in (thing.place.x, thing.place.y, thing.place.z))


def _is_own(frame):
    """Returns whether a frame runs a function of kjit, or of NumPy, which computes for kjit."""
    return (frame.f_globals.get("__name__") or "").partition(".")[0] in ("kjit", "numpy")


def line_of(thread):
    """Returns the file and line of the program at which a thread waits."""
    frame = thread.greenlet.gr_frame
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def _positions(extents):
    """Yields all positions within the extents; x varies fastest."""
    x, y, z = extents
    return ((i, j, k) for k in range(z) for j in range(y) for i in range(x))


@functools.lru_cache(16)
def _thread_places(block):
    return [Place(p) for p in _positions(block)]


class Grid:
    """A launch. answers: for each operation, a function that returns the answers for the threads of
    a waiting group. shared_bytes: the size of dynamic shared memory; is_debug: whether a division
    by zero raises an error."""

    def __init__(self, function, arguments, keywords, grid, block, answers, shared_bytes=0, is_debug=False):
        self.shared_bytes, self.is_debug = shared_bytes, is_debug
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.grid, self.block, self.answers = grid, block, answers
        self.grid_place, self.block_place = Place(grid), Place(block)
        self.thread_places = _thread_places(tuple(block))

    def located(self, error, thread):
        """Returns the exception that tells where in the program, and in which thread, an exception was
        raised."""
        if isinstance(error, FloatingPointError):
            error = DivisionByZero("division by zero").with_traceback(error.__traceback__)
        places = position(thread.block), position(thread)
        return _errors.of_simulated(error, self.function.__name__, _place_of(error.__traceback__), *places)

    def run(self):
        """Runs all threads. Raises the exception of the first thread that fails, or Deadlock."""
        if sys.gettrace() is not None:
            debugging.hide()
        with numpy.errstate(all="ignore", divide="raise" if self.is_debug else "ignore"):
            # Each greenlet has its own context, which contains NumPy's error settings.
            self.context = contextvars.copy_context()
            before = NOW.thread, NOW.blockDim, NOW.gridDim
            NOW.blockDim, NOW.gridDim = self.block_place, self.grid_place
            open_ = []  # blocks that have begun and have not ended
            try:
                for position_ in _positions(self.grid):
                    open_.append(Block(self, position_))
                    if open_[-1].run() == "done":
                        open_.pop()
                while open_:
                    self._go_on(open_)
            finally:
                for block in open_:
                    block.stop()
                NOW.thread, NOW.blockDim, NOW.gridDim = before

    def _go_on(self, open_):
        """Runs each open block for one turn. If all of them wait for the grid, completes the grid
        barrier."""
        states = [(block, block.run()) for block in open_]
        open_[:] = [block for block, state in states if state != "done"]
        if open_ and all(state != "idle" for _, state in states):
            for block in open_:
                block.answer([t for t in block.threads if not t.is_done])


def _place_of(trace):
    """Returns the file and the line of the program at which a traceback ends, or None."""
    found = None
    while trace is not None:
        if not _is_own(trace.tb_frame):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


class DivisionByZero(ZeroDivisionError, FloatingPointError):
    """A division by zero in a kernel with debug=True."""
