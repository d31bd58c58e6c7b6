# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Mistakes in kernels of kjit.cuda that a GPU ignores or at which it hangs. On the CPU, indices are checked, Ctrl-C
ends a launch, and a thread fails if it waits in a loop for another thread of its block."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

os.environ["KJIT_DEVICE"] = "cpu"  # a GPU has these checks only if a program requests them
import kjit
from kjit import cuda

HINT = "cuda.jit(boundscheck=False), or NUMBA_BOUNDSCHECK=0 in the environment, switches that off"


def fails(kind, *texts):
    """A context that expects a launch to fail with these texts."""

    class Expected:
        def __enter__(self):
            return self

        def __exit__(self, found, error, trace):
            assert found is not None and issubclass(found, kind), (found, error)
            self.error = error
            for text in texts:
                assert text in str(error), (text, str(error))
            return True

    return Expected()


# ---- indices ----


@cuda.jit
def add_one(a):
    i = cuda.grid(1)
    a[i] += 1


@cuda.jit
def read(a, i, out):
    out[0] = a[i]


@cuda.jit
def count(a, i):
    cuda.atomic.add(a, i, 1)


@cuda.jit
def place(a, i, j):
    a[i, j] = 7


@cuda.jit
def share(out, i):
    s = cuda.shared.array(8, np.float64)
    s[i] = 3
    out[0] = s[i]


@cuda.jit(device=True)
def inner(a, i):
    return a[i]


@cuda.jit
def through(a, i, out):
    out[0] = inner(a, i)


array, out, square = np.zeros(100), np.zeros(1), np.zeros((4, 5))
for given in (array, cuda.to_device(array)):
    with fails(IndexError, "careful.py", "a[i] += 1", "index 100 of -100..99", "tid=[36, 0, 0] ctaid=[1, 0, 0]", HINT) as expected:
        add_one[2, 64](given)  # a single block fails, whichever block runs first
    assert isinstance(expected.error, kjit.KernelError) and expected.error.line == add_one.py_func.__code__.co_firstlineno + 3
    for i in (0, 99, -1, -100):
        read[1, 1](given, i, out)
        count[1, 1](given, i)
        through[1, 1](given, i, out)
    for i in (100, -101, 2**40):
        for kernel in (read, through):
            with fails(IndexError, HINT):
                kernel[1, 1](given, i, out)
        with fails(IndexError, HINT):
            count[1, 1](given, i)
for i, j in ((4, 0), (0, 5), (-5, 0), (0, 7)):
    with fails(IndexError, HINT):
        place[1, 1](square, i, j)
place[1, 1](square, -1, -1)
assert square[3, 4] == 7 and square.sum() == 7
with fails(IndexError, HINT):
    share[1, 1](out, 8)
share[1, 1](out, 7)
assert out[0] == 3

# Device records and streams reach kernels with checks as they reach other kernels.
records = np.zeros(3, [("x", np.float32), ("y", np.float64)])


@cuda.jit
def shift(r):
    r[cuda.grid(1)].y += 1


on_device, stream = cuda.to_device(records), cuda.stream()
for configured in (shift[1, 3], shift[1, 3, stream]):
    for _ in range(2):
        configured(on_device)
        configured(records)
    with fails(IndexError, HINT):
        configured(on_device[1:])
assert on_device.copy_to_host()["y"][0] == 4 and list(records["y"]) == [4, 4, 4], (on_device.copy_to_host(), records)


# Device dates, too.
days = np.array(["2024-01-01", "2024-02-03", "NaT"], "datetime64[D]")


@cuda.jit
def copy_days(a, b):
    i = cuda.grid(1)
    b[i] = a[i]


for first, second in ((days, np.zeros_like(days)), (cuda.to_device(days), cuda.device_array(3, days.dtype))):
    for _ in range(2):
        copy_days[1, 3](first, second)
        found = second if isinstance(second, np.ndarray) else second.copy_to_host()
        assert (found[:2] == days[:2]).all() and np.isnat(found[2])


# ---- switched off ----


@cuda.jit(boundscheck=False)
def unchecked(a, i):
    a[i] = 5


unchecked[1, 1](array[10:20], 15)
assert array[25] == 5


@cuda.jit(boundscheck=True)
def checked(a, i):
    a[i] = 5


with fails(IndexError, "index 15 of -10..9") as expected:
    checked[1, 1](array[10:20], 15)
assert HINT not in str(expected.error)

# The GPU code is the same as without checks.
signature = (cuda.float64[:],)
plain = cuda.jit(boundscheck=False)(add_one.py_func)
plain.compile(signature)
add_one[1, 64](array)
assert add_one.inspect_asm(add_one.signatures[0]).count("setp") == plain.inspect_asm(plain.signatures[0]).count("setp")

PROGRAM = """
import numpy as np
from kjit import cuda
array = np.zeros(100)
def store(a, i):
    a[i] = 5
for said in (None, False):
    try:
        cuda.jit(store, boundscheck=said)[1, 1](array[10:20], 15)
        print("passes")
    except IndexError as error:
        print("switches" in str(error))
"""
for setting, wanted in ((None, ["True", "passes"]), ("0", ["passes", "passes"]), ("1", ["False", "False"])):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_BOUNDSCHECK"} | ({"NUMBA_BOUNDSCHECK": setting} if setting else {})
    program = "import kjit; kjit.keep_sources()\nexec(compile(" + repr(PROGRAM) + ", 'program', 'exec'))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == wanted, (setting, done.stdout, done.stderr)


# ---- Ctrl-C ----

signal.signal(signal.SIGINT, signal.default_int_handler)  # SIGINT is ignored if the tests run in the background


@cuda.jit
def endless(a):
    i = 0
    while a[0] >= 0:
        a[1] = i
        i += 1


def interrupted(launch):
    try:
        threading.Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGINT))).start()
        launch()
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C does not end it")


for configured in (endless[1, 1], endless[7, 33], endless[1, 1, stream]):
    interrupted(lambda: configured(array))
add_one[1, 64](array)  # goes on


# ---- threads that wait for each other in a loop ----


@cuda.jit
def chain(lock, out):
    t = cuda.threadIdx.x
    last = cuda.blockDim.x - 1
    if t < last:
        while cuda.atomic.add(lock, t + 1, 0) == 0:
            pass
    out[t] = last - t
    cuda.atomic.add(lock, t, 1)


@cuda.jit
def chain_backwards(lock, out):
    t = cuda.threadIdx.x
    if t > 0:
        while cuda.atomic.add(lock, t - 1, 0) == 0:
            pass
    out[t] = t
    cuda.atomic.add(lock, t, 1)


@cuda.jit
def by_break(lock):
    if cuda.threadIdx.x == 0:
        while True:
            seen = cuda.atomic.cas(lock, 0, 1, 2)
            if seen == 1:
                break
            cuda.nanosleep(20)
    else:
        cuda.atomic.exch(lock, 0, 1)


@cuda.jit(device=True)
def is_set(lock, i):
    return cuda.atomic.max(lock, i, 0) > 0


@cuda.jit
def by_function(lock):
    while not is_set(lock, 0):
        cuda.threadfence()


@cuda.jit
def by_load(lock):
    while lock[0] == 0:
        pass


waits = "deadlock: this loop waits for another thread, but the CPU runs the threads of a block one after the other"
zeros = np.zeros
for launch, line in (
    (lambda: chain[1, 4](zeros(5, np.int32), zeros(4)), "while cuda.atomic.add(lock, t + 1, 0) == 0:"),
    (lambda: by_break[1, 2](zeros(1, np.int32)), "while True:"),
    (lambda: by_function[1, 2](zeros(1, np.int32)), "while not is_set(lock, 0):"),
    (lambda: by_load[1, 2](zeros(1, np.int32)), "while lock[0] == 0:"),
):
    with fails(kjit.KernelError, "careful.py", waits, line) as expected:
        launch()
out = zeros(64)
chain_backwards[1, 64](zeros(64, np.int32), out)  # code that has already run is not waited for
assert (out == np.arange(64)).all()


# Loops that end without another thread can have as many iterations as they need.
MANY = 1 << 23


@cuda.jit
def counts(a, n):
    while cuda.atomic.add(a, 0, 1) < n:
        pass


@cuda.jit
def probes(table, n, out):
    i = 0
    while cuda.atomic.cas(table, i, 0, 1) != 0:
        i += 1
    out[0] = i


@cuda.jit
def fills(a, n):
    i = 0
    while a[i] == 0:
        a[i] = 1
        i += 1


@cuda.jit
def locked(lock, out):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    out[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


counter = zeros(1, np.int64)
counts[1, 1](counter, MANY)
assert counter[0] == MANY + 1
table = np.ones(MANY, np.int32)
table[-1] = 0
probes[1, 1](table, MANY, out)
assert out[0] == MANY - 1
table[:] = 0
table[-1] = 1
fills[1, 1](table, MANY)
assert table.all()
out[:] = 0
locked[50, 64](zeros(1, np.int32), out)
assert out[0] == 3200
