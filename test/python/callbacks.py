# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Functions that streams call, and awaitable streams. Nothing here depends on how fast anything is: a thread that should not have
waited would wait for ever, and `PATIENCE` ends the test then."""
import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import seeds

from kjit import cuda

random = seeds.fresh_choice()
PATIENCE = 120
on_gpu = os.environ.get("KJIT_DEVICE") == "cuda"


def waited(event):
    assert event.wait(PATIENCE), "an event that never comes"


@cuda.jit
def fill(r, value, rounds):
    i = cuda.grid(1)
    if i < len(r):
        total = 0.0
        for k in range(rounds):
            total += value
        r[i] = total / rounds


# Neither add_callback nor later launches wait for a callback. It runs on another thread.
def check_nobody_waits():
    stream, go, done, seen = cuda.stream(), threading.Event(), threading.Event(), []

    def callback(own, status, arg):
        waited(go)
        seen.append((own is stream, status, arg, threading.current_thread() is threading.main_thread()))
        done.set()

    stream.add_callback(callback, "arg")
    r = cuda.to_device(np.zeros(64))
    for value in range(2000 if on_gpu else 20):  # more callbacks than the driver's queue can hold
        fill[1, 64, stream](r, float(value), 1)
    assert not seen
    go.set()
    waited(done)
    assert seen == [(True, 0, "arg", False)]
    stream.add_callback(lambda own, status, arg: seen.append(arg))
    stream.synchronize()  # waits for the callback
    assert seen[1:] == [None]


# A callback sees the results of earlier queued work.
def check_order():
    for stream in (cuda.stream(), cuda.default_stream(), cuda.stream(priority=-1), cuda.per_thread_default_stream()):
        source, pinned = cuda.device_array(1000), cuda.pinned_array(1000)
        pinned[:] = 0
        for value in (3.0, 5.0):
            seen = []
            fill[4, 256, stream](source, value, 20000)
            source.copy_to_host(pinned, stream=stream)
            stream.add_callback(lambda own, status, arg: seen.append(pinned.copy()))
            stream.synchronize()
            assert len(seen) == 1 and (seen[0] == value).all(), (stream, value, seen)


def check_many():
    """Callbacks on several streams, added by several threads, receive random numbers. Each number arrives once, in its
    stream's order."""
    streams = [cuda.stream() for _ in range(4)]
    seen = {id(stream): [] for stream in streams}
    counts = [random.randrange(20, 120) for _ in streams]

    def add(stream, count):
        for k in range(count):
            stream.add_callback(lambda own, status, k: seen[id(own)].append(k), k)

    threads = [threading.Thread(target=add, args=pair) for pair in zip(streams, counts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuda.synchronize()
    for stream, count in zip(streams, counts):
        assert seen[id(stream)] == list(range(count))


def check_errors():
    stream, caught = cuda.stream(), []

    def fails(own, status, arg):
        raise ValueError("of the callback")

    sys.unraisablehook, before = lambda one: caught.append((one.object, str(one.exc_value))), sys.unraisablehook
    seen = []
    stream.add_callback(fails)
    stream.add_callback(lambda own, status, arg: seen.append(1))
    stream.synchronize()
    sys.unraisablehook = before
    assert caught == [(fails, "of the callback")] and seen == [1], (caught, seen)
    try:
        stream.add_callback(3)
    except TypeError as error:
        assert "takes a function" in str(error)
    else:
        raise AssertionError("add_callback(3)")


def check_calls_inside():
    """A callback may use the device, wait, and add callbacks."""
    stream, seen, done = cuda.stream(), [], threading.Event()

    def callback(own, status, depth):
        r = np.zeros(32)
        fill[1, 32, own](r, float(depth), 4)
        own.synchronize()
        seen.append(r[7])
        if depth:
            own.add_callback(callback, depth - 1)
        else:
            done.set()

    stream.add_callback(callback, 5)
    waited(done)
    assert seen == [5, 4, 3, 2, 1, 0]


def check_lifetimes():
    class Callback:
        def __call__(self, stream, status, arg):
            pass

    callback, stream = Callback(), cuda.stream()
    alive = weakref.ref(callback)
    stream.add_callback(callback)
    del callback
    stream.synchronize()
    gc.collect()
    assert alive() is None


async def done_several():
    streams = [cuda.stream() for _ in range(3)]
    assert set(await asyncio.gather(*(stream.async_done() for stream in streams))) == set(streams)
    stream = streams[0]
    assert await asyncio.gather(*(stream.async_done() for _ in range(5))) == [stream] * 5
    first, second = stream.async_done(), stream.async_done()
    first.cancel()
    await second
    assert first.cancelled() and second.result() is stream


async def done_in_order(value):
    stream, source, result = cuda.stream(), cuda.device_array(100), cuda.pinned_array(100)
    result[:] = -1
    fill[1, 128, stream](source, value, 50000)
    source.copy_to_host(result, stream=stream)
    assert await stream.async_done() is stream
    assert (result == value).all()


async def done_while_others_run():
    """The event loop runs while a stream waits: another task lets the stream continue."""
    stream, go = cuda.stream(), threading.Event()
    stream.add_callback(lambda own, status, arg: waited(go))
    future = stream.async_done()
    await asyncio.sleep(0)
    assert not future.done()
    asyncio.get_running_loop().call_soon(go.set)
    await asyncio.wait_for(future, PATIENCE)


async def abandon():
    stream, go = cuda.stream(), threading.Event()
    stream.add_callback(lambda own, status, arg: waited(go))
    stream.async_done()
    return stream, go


def check_loops():
    async def several():
        await done_several()
        await done_while_others_run()
        await asyncio.gather(*(done_in_order(float(value)) for value in range(4)))

    failures = []

    def run():
        try:
            asyncio.run(several())
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failures
    caught = []
    sys.unraisablehook, before = caught.append, sys.unraisablehook
    stream, go = asyncio.run(abandon())  # its loop is closed when the stream finishes
    go.set()
    stream.synchronize()
    sys.unraisablehook = before
    assert not caught, caught


def check_captures():
    if not on_gpu:
        return
    import kjit

    stream = kjit.device().stream()
    with stream.capture():
        try:
            cuda.external_stream(stream.handle).add_callback(print)
        except kjit.MisuseError as error:
            assert "being captured" in str(error)
        else:
            raise AssertionError("a callback in a capture")


def check_end():
    """A process ends while a callback runs, and while callbacks wait."""
    program = """
        import threading
        from kjit import cuda
        stream, begun = cuda.stream(), threading.Event()
        def callback(own, status, arg):
            begun.set()
            threading.Event().wait()
        for _ in range(5):
            stream.add_callback(callback)
        begun.wait()
        print("end")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", ""), done


def check_lost():
    """After a kernel has destroyed its context, the driver calls no callbacks any more. They receive its error."""
    if not on_gpu:
        return
    program = """
        import threading
        import kjit
        from kjit import cuda
        @cuda.jit("void(CPointer(float64))")
        def bad(p):
            p[0] = 1.0
        stream, go, seen, done = cuda.stream(), threading.Event(), [], threading.Event()
        def callback(own, status, arg):
            seen.append(status)
            done.set()
        try:
            bad[1, 1, stream](16)
            stream.add_callback(callback)
            assert done.wait(100)
        except kjit.Error as error:  # the call is later than the fault
            seen.append(str(error))
        print(seen != [0])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.stdout == "True\n", done


def check_fork():
    """A forked child has no callbacks of its parent, and has its own thread."""
    if on_gpu:
        return
    stream, go, seen = cuda.stream(), threading.Event(), []
    stream.add_callback(lambda own, status, arg: waited(go))
    stream.add_callback(lambda own, status, arg: seen.append("parent's"))
    child = os.fork()
    if child == 0:
        try:
            own = cuda.stream()
            own.add_callback(lambda own, status, arg: seen.append("child's"))
            own.synchronize()
            os._exit(seen != ["child's"])
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    go.set()
    stream.synchronize()
    assert seen == ["parent's"]


for check in (check_nobody_waits, check_order, check_many, check_errors, check_calls_inside, check_lifetimes, check_loops, check_captures,
              check_lost, check_fork, check_end):
    check()
print("callbacks: good", file=sys.stderr)
