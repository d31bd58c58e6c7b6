# RUN: %kjit-python %s
"""The ends of objects, threads and interpreters: garbage collection, threads, forks, and interpreters that end while
kernels run."""
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import kjit
import numpy as np


@kjit.jit
def add(r, x, n):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + n


@kjit.jit
def wait(flags):
    kjit.atomic_add(flags[1], 1)
    while kjit.atomic_add(flags[0], 0) == 0:
        pass


@kjit.func
def raising(n):
    if n > 2:
        raise ValueError("more than two")
    return n


def make(k):
    @kjit.jit
    def kernel(r):
        for i in kjit.grid_range(len(r)):
            r[i] = k
    return kernel


# Kernels are garbage collected like other objects, although kernels, launchers and globals refer to each other.
made = [make(k) for k in range(3)]
r = np.zeros(10)
for kernel in made:
    kernel(r)
    kernel[1, 10](r)
    kernel.itself = kernel
gone = [weakref.ref(kernel.py_func) for kernel in made]
launcher = made[0][1, 10]
del made, kernel
gc.collect()
assert [g() is None for g in gone] == [False, True, True]
launcher(r)  # keeps its kernel alive
del launcher
gc.collect()
assert gone[0]() is None

# Launches leak nothing, neither successful nor failing ones.
x = np.arange(10.0)
own = kjit.array(x, device="cpu")
fixed = x.copy()
fixed.flags.writeable = False


def launch_often(times):
    for _ in range(times):
        add[1, 32](r, x, 2)
        add(r, fixed, n=2.5)
        add(own, own, 1)
        own[2:4].T.reshape(2)
        np.from_dlpack(own)
        try:
            add(fixed, x, 1)
        except kjit.ArgumentError:
            pass
        try:
            raising(3)
        except ValueError:
            pass
        try:
            add(r, x, "text")
        except TypeError:
            pass


tracemalloc.start()
launch_often(100)
gc.collect()
counts = [sys.getrefcount(o) for o in (r, x, own, fixed, add, kjit.Array)]
before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
launch_often(2000)
gc.collect()
assert [sys.getrefcount(o) for o in (r, x, own, fixed, add, kjit.Array)] == counts
assert tracemalloc.get_traced_memory()[0] - before < 20 * 2000, tracemalloc.get_traced_memory()[0] - before
assert len(gc.get_objects()) - objects < 1000  # the interpreter keeps some tuples for later
tracemalloc.stop()

# A million launches, and half as many calls of funcs, leave the memory of the process as it is: of the smallest blocks that one call
# leaves behind, 32 bytes, half a million have 16 MB. The kernel of the system may replace some small pages by huge ones of 2 MiB.


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def launch_a_lot(times):
    small, configured = np.zeros(4), add[1, 4]
    for _ in range(times):
        add(small, x, 1)
        configured(small, x, 2)
        raising(2)


launch_a_lot(20_000)
before = resident_bytes()
launch_a_lot(500_000)
assert resident_bytes() - before < 8 << 20, resident_bytes() - before

# Python threads launch at the same time. The first thread compiles, and the interpreter continues meanwhile.
fresh = make(7)
problems = []


def many(number):
    try:
        mine = np.zeros(1000)
        for n in range(50):
            fresh(mine)
            add[4, 256](mine, mine, n)
        if not (mine == 7 + 49).all():
            problems.append(mine)
    except BaseException as error:
        problems.append(error)


threads = [threading.Thread(target=many, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not problems, problems[0]

# While a thread waits for a kernel, other threads run Python code: this thread tells the kernel when to end.
wait[1, 1](np.array([1, 0], np.int32))
flags = np.zeros(2, np.int32)
thread = threading.Thread(target=wait[1, 1], args=(flags,))
faulthandler.dump_traceback_later(300, exit=True)
thread.start()
while not flags[1]:
    time.sleep(0.001)
assert thread.is_alive()
flags[0] = 1
thread.join()
faulthandler.cancel_dump_traceback_later()


# Reading an attribute of an argument can load the kernel again, launch it, or destroy it.
class Restless:
    def __dlpack_device__(self):
        add.__init__(add.py_func)
        add(np.zeros(3), np.ones(3), 1)
        add[1, 32](np.zeros(3), np.ones(3), 1)
        add.__dict__["_made"] = None
        gc.collect()
        return 1, 0

    def __dlpack__(self, **options):
        return np.ones(10).__dlpack__()


for launch in (add, add[1, 32]):
    mine = np.zeros(10)
    launch(mine, Restless(), 4)
    assert (mine == 5).all()

# A signal handler can do the same, at any time.
handled = 0


def launch_meanwhile(*unused):
    global handled
    handled += 1
    add(np.zeros(3), x[:3], 1.0)


before = signal.signal(signal.SIGALRM, launch_meanwhile)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while handled < 20:
    add(mine, x, 1)
    add[1, 32](mine, x, 1)
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, before)

# A second import, after kjit was removed from sys.modules, has the same types, so both imports work with the same
# arrays.
taken = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "kjit"}
again = __import__("kjit")


def make_again(kjit):
    @kjit.jit
    def add(r, x, n):
        for i in kjit.grid_range(len(r)):
            r[i] = x[i] + n
    return add


new_add = make_again(again)
assert again is not kjit and again.Array is kjit.Array and again.Error is not kjit.Error
new_add(own, again.array(x, device="cpu"), 3)
add(own, again.zeros(10, "f64", "cpu"), 3)
assert (own.to_host() == 3).all()
for refused, kind in ((lambda: add(own, x, "text"), again.ArgumentError), (lambda: new_add(own, x, "text"), again.ArgumentError)):
    try:
        refused()
    except kind:
        pass
    else:
        raise AssertionError("not refused")
for name in [name for name in sys.modules if name.split(".")[0] == "kjit"]:
    del sys.modules[name]
sys.modules.update(taken)
kjit._kjit.set_error_factory(kjit._errors.make, kjit.Error)  # the second import has taken it over

# A forked child has its own contexts. It rejects objects of the parent's contexts.
is_gpu = os.environ.get("KJIT_DEVICE") == "cuda"


def in_child(function):
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except BaseException as error:
            print("in the child:", repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def refuses_gpu_in_child():
    """On a GPU the driver cannot be used in a child of a process that used the driver."""
    try:
        add(np.zeros(10), x, 3)
    except kjit.ForkedError as error:
        assert "CUDA driver was in use" in str(error), error
    else:
        raise AssertionError("a child used the driver of its parent")


def child():
    if is_gpu:
        refuses_gpu_in_child()
        return
    mine = np.zeros(10)
    add(mine, x, 3)
    add[1, 32](mine, mine, 0)
    make(3)(mine)
    assert raising(1) == 1 and (mine == 3).all()
    for use in (lambda: add(own, own, 1), lambda: own.shape, lambda: memoryview(own), own.to_host, lambda: own[0]):
        try:
            use()
        except (kjit.ForkedError, BufferError):
            pass
        else:
            raise AssertionError("an array of the parent was used")
    fork_again = os.fork()
    if not fork_again:
        try:
            add(mine, x, 1)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(fork_again, 0)[1] == 0
    gc.collect()


in_child(child)
stop = threading.Event()
busy = threading.Thread(target=lambda: [add(np.zeros(10), x, 1) for _ in iter(stop.is_set, True)])
busy.start()
for _ in range(5):
    in_child(child)
stop.set()
busy.join()
add(own, own, 1)

# Interpreters end in several states: with arrays and views alive, with a daemon thread that launches or compiles, with
# reference cycles, after an exception, after sys.exit in a thread.
BEGIN = "import sys, threading, time, kjit, numpy as np\nsys.path.insert(0, %r)\nimport lifetimes_kernels as k\nr = np.zeros(1000)\n" % os.path.join(os.path.dirname(__file__), "Inputs")
ENDS = {
    "arrays": "k.fill(r, 1); a = kjit.zeros(9, 'f8' and 'f64', 'cpu'); b = a[1:]; m = memoryview(b); np.asarray(b); d = np.from_dlpack(a); c = b.__dlpack__(); sys.keep = [a, b, m, d, c]",
    "launching": "k.fill(r, 1); threading.Thread(target=lambda: [k.fill(r, 1) for _ in range(10**9)], daemon=True).start(); time.sleep(0.05)",
    "endless": "k.endless[1, 1](r, 1); threading.Thread(target=lambda: k.endless[1, 1](r, 2), daemon=True).start(); time.sleep(0.05)",
    # What a daemon thread writes while the interpreter ends can abort CPython ("could not acquire lock for stderr"), so that it says nothing of its interrupted compilation.
    "compiling": "def make(n):\n  try: k.make(n)(r)\n  except kjit.Error: pass\n[threading.Thread(target=make, args=(n,), daemon=True).start() for n in range(20)]; time.sleep(0.02)",
    "circle": "k.fill(r, 1); a = kjit.zeros(9, 'f64', 'cpu'); l = [k.fill, k.fill[1, 1], a, kjit._kjit]; l.append(l); k.fill.circle = l; del l",
    "exception": "k.fill(r, 1)\ntry:\n  k.failing[1, 1](r)\nexcept ValueError as e: sys.kept = e\nsys.exit(0)",
    "finalizer": "class F:\n  def __del__(self): k.fill(r, 1)\nf = F(); f.f = f; k.fill(r, 1)",
    "modules": "k.fill(r, 1); del sys.modules['kjit._kjit'], sys.modules['kjit']; import importlib",
    "atexit": "import atexit; atexit.register(lambda: k.fill(r, 1)); k.fill(r, 1)",
    "printing": "k.printing[1, 1](r); sys.stdout = None; k.printing[1, 1](r)",
}
running = {name: subprocess.Popen([sys.executable, "-c", BEGIN + end], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for name, end in ENDS.items()}
for name, process in running.items():
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and "Fatal" not in err, (name, process.returncode, err)
print("lifetimes: good", file=sys.stderr)
