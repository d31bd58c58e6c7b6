# RUN: %kjit-python %s
"""Ctrl-C ends launches of interruptible kernels, calls of funcs, and compilations with KeyboardInterrupt. Everything
works afterwards."""
import os
import signal
import subprocess
import sys
import threading

import kjit
import numpy as np

PROGRAM = '''
import signal, sys, threading, kjit, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests may ignore it

@kjit.jit(interruptible=True)
def endless(r, n):
    total = 0
    k = 0
    while k < n or n < 0:
        k += 1
        total = (total * 5 + k) % 1000003
    r[kjit.threadIdx.x] = total + k

@kjit.njit(interruptible=True)
def call(n):
    k = 0
    while k < n or n < 0:
        k += 2
    return k

def long_to_compile(r):
{lines}

kernel = kjit.jit(long_to_compile)
r = np.zeros(1)
endless[1, 1](r, 3)
assert call(3) == 4
before = signal.getsignal(signal.SIGINT)
for what in (lambda: endless[1, 1](r, -1), lambda: call(-1), {compiles}):
    try:
        print("ready", flush=True)
        what()
        print("it ended", flush=True)
    except KeyboardInterrupt as error:
        print("interrupted", flush=True)
    assert signal.getsignal(signal.SIGINT) is before
    endless[1, 1](r, 3)
    assert r[0] > 0 and call(3) == 4
print("handled by the program's own handler", flush=True)
def own(number, frame):
    raise ZeroDivisionError
signal.signal(signal.SIGINT, own)
try:
    print("ready", flush=True)
    endless[1, 1](r, -1)
except ZeroDivisionError:
    print("interrupted", flush=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("ready", flush=True)
    while True:
        endless[1, 1](r, 3)
except KeyboardInterrupt:
    print("interrupted", flush=True)
'''
# Enough statements for a compilation of several seconds, for which this test does not wait.
lines = "\n".join(f"    r[{i} % len(r)] = kjit.sin(r[{i + 1} % len(r)]) * {i + np.random.default_rng().random()} + kjit.cos(r[0])" for i in range(1500))
program = PROGRAM.replace("{lines}", lines).replace("{compiles}", "lambda: kernel[1, 1](r)")
process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "KJIT_DEVICE": "cpu"})
timer, seen = None, []
last = threading.Timer(300, process.kill)
last.start()
for line in process.stdout:
    seen.append(line.strip())
    if timer:
        timer.cancel()
    if seen[-1] == "ready":
        timer = threading.Timer(0.4, lambda: process.send_signal(signal.SIGINT))
        timer.start()
error = process.stderr.read()
last.cancel()
assert process.wait(100) == 0, (seen, error)
assert seen == ["ready", "interrupted"] * 3 + ["handled by the program's own handler"] + ["ready", "interrupted"] * 2, (seen, error)

# Signals do not affect other threads, or kernels that are not interruptible.


@kjit.jit(interruptible=True)
def fill(r, v):
    for i in kjit.grid_range(len(r)):
        r[i] = v


r = np.zeros(10)
fill(r, 2)
thread = threading.Thread(target=fill, args=(r, 3))
thread.start()
thread.join()
assert (r == 3).all()

# Ctrl-C while numpy.asarray computes an array of kjit.numpy raises KeyboardInterrupt, although NumPy discards the exceptions of
# the buffer protocol. The signal may also arrive before or after the computation.
PROGRAM_OF_ARRAYS = """
import os, signal, sys, threading, time, kjit.numpy as knp, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
x = knp.linspace(0, 1, 4_000_000)
for convert in (np.asarray, np.array, memoryview, lambda y: y.__array__()):
    y = x
    for _ in range(40):
        y = knp.sin(y) + knp.cos(y) * 1.5
    try:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        convert(y)
        time.sleep(200)
        sys.exit("Ctrl-C is lost")
    except KeyboardInterrupt:
        pass
    first = np.asarray(y[:1])  # computes the array again, without Ctrl-C
    assert first.shape == (1,) and np.isfinite(first).all() and y.__array__().shape == x.shape
"""
environment = {**os.environ, "KJIT_DEVICE": "cpu"}
done = subprocess.run([sys.executable, "-c", PROGRAM_OF_ARRAYS], env=environment, stderr=subprocess.PIPE, text=True, timeout=280)
assert done.returncode == 0, done.stderr
