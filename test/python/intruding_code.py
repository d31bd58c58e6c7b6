# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Code that runs inside of calls of kjit: other threads, finalizers of the garbage collector, forked processes, and methods of
arguments. Each test ended the process, hung or computed something else before kjit was mended. No test depends on how fast a thread
is: a rare interleaving that does not happen only makes the test weaker."""

import functools
import gc
import itertools
import operator
import os
import signal
import sys
import threading
import time

import numpy as np

import kjit
import kjit.numpy as kp
from kjit import _kjit, _state, cuda

SECONDS = 2.0
SWITCHES = 1e-6


def run_threads(*functions):
    """Runs the functions in threads that take turns very often. Raises an exception that one of them raises."""
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCHES)
    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    if failures:
        raise failures[0]


def test_incomplete_operations():
    """A thread computes all pending arrays while others record operations whose numbers Python code converts."""
    x, y, end = kp.ones(100, dtype="f4"), kp.ones(100, dtype="f4"), time.monotonic() + SECONDS

    def record():
        while time.monotonic() < end:
            assert float((x * np.float32(3) + y)[0]) == 4

    def compute():
        while time.monotonic() < end:
            _kjit.compute_all()

    run_threads(record, record, compute)


def test_updates_in_place():
    """A thread computes all pending arrays while others update arrays. The operation of an update is pending for a moment, and is
    not an error if the update stores its elements first."""
    end = time.monotonic() + SECONDS

    def update():
        x, y, count = kp.zeros(50, dtype="float32"), kp.ones(50, dtype="float32"), 0
        while time.monotonic() < end:
            x += y * 2
            x -= y
            count += 1
        assert float(x[7]) == count

    def compute():
        while time.monotonic() < end:
            _kjit.compute_all()

    run_threads(update, update, compute, compute)


def test_plans_of_threads():
    """Only one thread at a time can run a plan; other threads get an exception."""
    x = kp.asarray(np.arange(5000)[::-1].copy())
    plan, end, refused = kjit.sort(x, plan=True), time.monotonic() + SECONDS, []

    def run():
        while time.monotonic() < end:
            try:
                plan.run()
            except kjit.Error as error:
                assert "another thread is running the plan" in str(error), error
                refused.append(error)

    run_threads(run, run, run, run)
    plan.run()
    assert (plan.result.to_host() == np.arange(5000)).all()


def test_fork_of_a_computation():
    """The thread that computes an array does not exist in a forked child, which must not wait for it."""
    x = kp.ones(1 << 20)
    for i in range(25):
        y = kp.sin(x * float(i)) + kp.cos(x)
        thread = threading.Thread(target=_kjit.compute, args=(y,))
        thread.start()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            try:
                _kjit.compute(y)
            except kjit.Error as error:
                os._exit(0 if "before a fork" in str(error) else 2)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        thread.join()
        assert status == 0, status


class Finalized:
    """An object in a reference cycle, whose finalizer runs a function and leaves another such object."""

    is_active = False

    def __init__(self, function):
        self.cycle, self.function = self, function

    def __del__(self):
        if Finalized.is_active:
            self.function()
            Finalized(self.function)


def with_finalizers(function, call, count):
    """Returns the results of `count` calls. Nearly each allocation in them runs a finalizer that calls `function`."""
    results, before = [None] * count, gc.get_threshold()
    gc.collect()
    gc.disable()
    Finalized.is_active = True
    Finalized(function)
    gc.set_threshold(1, 1, 1)
    gc.enable()
    try:
        for i in range(count):
            results[i] = call()
    finally:
        Finalized.is_active = False
        gc.set_threshold(*before)
    return results


def test_finalizers_that_compute():
    """A finalizer computes the array whose shape and strides are being read."""
    x = kp.ones((2, 3, 4))
    for i in range(5):
        for name, expected in ("shape", (2, 3, 4)), ("_strides", (12, 4, 1)):
            y = x * (i + 2.0)

            def compute():
                _kjit.compute(y)
                compute.memory = [b"\xff" * size for size in range(16, 600, 8)]

            # Python reuses the memory of freed tuples without running the collector, so many tuples are made
            found = with_finalizers(compute, functools.partial(operator.attrgetter(name), y), 3000)
            assert set(found) == {expected}, set(found)


def test_finalizers_that_fail():
    """A finalizer makes a call that fails while the diagnostics of another call are being read."""
    context = _state.context()
    numbers = itertools.count()

    def make(name):
        try:
            _kjit.empty(context, 3, name)
        except kjit.Error as error:
            return str(error)
        raise AssertionError(name)

    def call():
        name = f"unknown{next(numbers)}"
        return name in make(name)

    assert all(with_finalizers(lambda: make("another"), call, 300))


memory = np.zeros(8, "f4")


class Clearing:
    """An extent whose conversion empties the dictionary that contains it."""

    def __init__(self, dictionary):
        self.dictionary = dictionary

    def __index__(self):
        self.dictionary.clear()
        gc.collect()
        self.garbage = [(i, i + 1, i + 2) for i in range(2000)]
        return 2


class Described:
    """An array with an interface that changes while kjit reads it, if is_changing is set."""

    is_changing = False

    @property
    def __cuda_array_interface__(self):
        found = {"typestr": "<f4", "version": 3}
        found["shape"] = (Clearing(found) if self.is_changing else 2, 2, 2)
        found["strides"] = (16, 8, 4)
        found["data"] = (memory.ctypes.data, False)
        return found


@cuda.jit
def set_first(a):
    a[0, 0, 0] = a[0, 0, 0] + 1


def test_interface_that_changes():
    array = Described()
    for _ in range(3):
        set_first[1, 1](array)
    array.is_changing, memory[0] = True, 0
    for _ in range(20):
        set_first[1, 1](array)
    assert memory[0] == 20, memory[0]


class Exporting:
    """An array that runs a function when kjit asks for its memory."""

    def __init__(self, function):
        self.function, self.array = function, np.ones(8)

    def __dlpack__(self, **options):
        self.function()
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@kjit.jit
def set_all(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = 100.0


@kjit.njit
def set_in_loop(r, x):
    for i in range(len(r)):
        r[i] = 100.0


@kjit.func
def hundred(x):
    return x + 99.0


def test_operations_recorded_by_arguments():
    """A method of an argument records an operation on another argument, to which the call then writes. The operation has the
    elements from before the call."""
    calls = {
        "kernel": lambda x, other: set_all[1, 32](x, other),
        "njit": lambda x, other: set_in_loop(x, other),
        "copy": lambda x, other: x.copy_from(other),
        "map": lambda x, other: kjit.map(hundred, other, out=x),
    }
    for name, call in calls.items():
        for _ in range(3):
            x = kp.full(8, 3.0)
            recorded = []
            call(x, Exporting(lambda: recorded.append(x * 2 + 1)))
            assert float(recorded[0][0]) == 7, (name, float(recorded[0][0]))
            assert float(x[0]) in (1, 100), name


def test_end_of_a_capture_that_has_not_begun():
    stream = kjit.device("cpu").stream()
    for graph in stream.capture(), stream.capture():
        try:
            graph.__exit__(None, None, None)
        except kjit.Error as error:
            assert "not being captured" in str(error), error
        else:
            raise AssertionError
    x = kp.ones(4)
    assert _kjit.is_pending(x + 1)
    with stream.capture() as graph:
        assert not _kjit.is_pending(x + 1)
    assert _kjit.is_pending(x + 1)


def test_updates_of_a_graph():
    """Threads launch a graph while another thread replaces its operations."""
    a, end = kp.zeros(64), time.monotonic() + SECONDS
    streams = [kjit.device("cpu").stream() for _ in range(3)]

    def capture(value):
        with streams[0].capture() as graph:
            fill_with[1, 32, streams[0]](a, value)
        return graph

    graph = capture(1.0)

    def launch(stream):
        while time.monotonic() < end:
            graph.launch(stream)

    def update():
        while time.monotonic() < end:
            graph.update(capture(2.0))

    run_threads(lambda: launch(streams[1]), lambda: launch(streams[2]), update)
    assert float(a[0]) in (1, 2)


@kjit.jit
def fill_with(r, value):
    for i in kjit.grid_range(len(r)):
        r[i] = value


@cuda.jit
def set_x(a):
    i = cuda.grid(1)
    if i < a.shape[0]:
        a[i]["x"] = 7.0


def test_records_described_by_threads():
    """Two threads launch kernels with new record types, whose fields have different offsets."""
    count, meeting = 40, threading.Barrier(2)

    def describe(order, number):
        fields = [("x", "f4"), (f"y{order}_{number}", "f4")]
        return np.dtype(fields[::-1] if order else fields)

    def launch(order):
        for number in range(count):
            meeting.wait()
            set_x[1, 32](np.zeros(8, describe(order, number)))

    warm = np.zeros(3, np.dtype([("x", "f4")]))
    for _ in range(2):
        set_x[1, 32](warm)
    run_threads(lambda: launch(0), lambda: launch(1))
    for number in range(count):
        for order in 0, 1:
            a = np.zeros(8, describe(order, number))
            set_x[1, 32](a)
            set_x[1, 32](a)
            assert (a["x"] == 7).all(), a


def test_large_results():
    """A func returns a record that is larger than the memory for results on the stack."""
    for extent in 1, 2047, 2048, 2049, 6000:
        given = np.zeros(2, np.dtype([("a", "f8", (extent,)), ("b", "i8")]))
        given["a"][1], given["b"][1] = np.arange(extent), 5
        for _ in range(2):
            result = get_last(given)
            assert (result["a"] == np.arange(extent)).all() and result["b"] == 5, extent


@kjit.njit
def get_last(records):
    return records[1]


def test_exceptions_of_options():
    class Failing:
        def __bool__(self):
            raise ValueError("from the program")

    try:
        kp.ones(4).__dlpack__(copy=Failing())
    except ValueError as error:
        assert "from the program" in str(error)
    else:
        raise AssertionError


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
