# REQUIRES: greenlet
# RUN: %kjit-python %s
"""Debuggers in kernels of the simulator: pdb's commands, pytest's debugger, Ctrl-C, and the errors that a learner meets: a warp operation
whose mask lacks the calling lane, and statements that change variables outside of the kernel."""
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile

failures = 0
PROGRAM = '''\
import numpy as np
from kjit import cuda

@cuda.jit(device=True)
def square(v):
    w = v * v
    return w

@cuda.jit
def kernel(r, x):
    s = cuda.shared.array(4, np.float64)
    i = cuda.grid(1)
    if i == 1:
        breakpoint()
    s[i] = square(x[i])
    cuda.syncthreads()
    r[i] = s[3 - i] + 1

def test_kernel():
    r = np.zeros(4)
    kernel[1, 4](r, np.arange(4.0))
    print(r)

if __name__ == "__main__":
    test_kernel()
'''


# Since Python 3.13 breakpoint() stops at its own line instead of the next one.
TO_NEXT_LINE, LINE_OF_STOP = ("n\n", 14) if sys.version_info >= (3, 13) else ("", 15)
OF_LIBRARIES = ("importlib._bootstrap", "/numpy/", "functools.py", "_collections_abc", "/os.py", "os>")
OF_DEBUGGERS = ("PYTHONBREAKPOINT", "PYTEST_ADDOPTS", "PYTHONSAFEPATH")


def run(text, commands="", *arguments):
    """The output of a program, which reads the commands. A program that does not end writes the lines in which its threads are."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test_program.py")
        with open(path, "w") as file:
            file.write(text)
        # the user's .pdbrc is not read
        environment = {n: v for n, v in os.environ.items() if n not in OF_DEBUGGERS} | {"KJIT_DEVICE": "python", "HOME": folder}
        with subprocess.Popen([sys.executable, "-X", "faulthandler", *arguments, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) as child:
            try:
                return "".join(child.communicate(commands, timeout=200))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGABRT)
                return "".join(child.communicate()) + "\nthe program had not ended after 200 s"


def expect(title, found, *wanted, absent=()):
    """The texts must occur in this order."""
    global failures
    at = 0
    for text in wanted:
        place = found.find(text, at)
        if place < 0:
            failures += 1
            print(f"{title}: {text!r} is not in\n{found[at:]}")
            return
        at = place + len(text)
    for text in absent:
        if text in found:
            failures += 1
            print(f"{title}: {text!r} is in\n{found}")


def check_pdb():
    # s steps into the device function, then to the next lines: operators, barriers and stores are not stepped into
    found = run(PROGRAM, TO_NEXT_LINE + "display i\ns\ns\np v\ns\ns\nup\np i\ndown\ns\ns\nc\n")
    expect("step", found, "-> s[i] = square(x[i])", "display i: np.int64(1)" if "np.int64" in found else "display i: 1", "--Call--", "-> def square(v):",
           "-> w = v * v", "1.0", "-> return w", "--Return--", "-> s[i] = square(x[i])", "1", "-> return w", "-> cuda.syncthreads()",
           "[10.  5.  2.  1.]", absent=("kjit/simulator/arithmetic.py(", "kjit/simulator/together.py("))
    # names of kjit.cuda have their values in the thread in which the debugger stops
    found = run(PROGRAM, TO_NEXT_LINE + "p cuda.threadIdx, cuda.threadIdx.x, cuda.blockDim.x, cuda.grid(1)\np cuda.syncthreads()\nn\nn\nn\nc\n")
    found = re.sub(r"np\.int\d+\((\d+)\)", r"\1", found)
    expect("words", found, "((1, 0, 0), 1, 4, 1)", "TypeError: cuda.syncthreads can be used in a kernel only", "-> cuda.syncthreads()", "-> r[i] = s[3 - i] + 1",
           "[10.  5.  2.  1.]")
    # a debugger that traces the program from its start
    found = run(PROGRAM.replace("        breakpoint()\n", "        pass\n"), "b 6\nc\nb 17, i == 2\nclear 1\nc\np i, s.tolist()\ns\ns\nc\nq\n", "-m", "pdb")
    expect("python -m pdb", found, "-> w = v * v", "-> r[i] = s[3 - i] + 1", "[0.0, 1.0, 4.0, 9.0])", "[10.  5.  2.  1.]",
           absent=("kjit/simulator/arithmetic.py(", "kjit/simulator/words.py("))
    # neither s at an array in shared memory nor n at the end of a kernel enters NumPy or the standard library
    found = run(PROGRAM.replace("        breakpoint()\n", "        pass\n"), "b 11\nc\nclear 1\ns\ns\nc\nq\n", "-m", "pdb")
    expect("step over an array", found, "-> s = cuda.shared.array", "-> i = cuda.grid(1)", "-> if i == 1:", "[10.  5.  2.  1.]", absent=OF_LIBRARIES)
    found = run(PROGRAM, TO_NEXT_LINE + "n\nn\nn\nn\nc\n")
    expect("next after the end", found, "-> r[i] = s[3 - i] + 1", "--Return--", "[10.  5.  2.  1.]", absent=OF_LIBRARIES)
    found = run(PROGRAM, "q\n")
    expect("quit", found, f'test_program.py", line {LINE_OF_STOP}, in kernel', "BdbQuit", absent=("In function 'kernel'",))


def check_pytest():
    if importlib.util.find_spec("pytest") is None:
        print("pytest is not installed: its debugger is not tested")
        return
    found = run(PROGRAM, TO_NEXT_LINE + "s\np v\nc\n", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    expect("pytest", found, "PDB set_trace", "-> s[i] = square(x[i])", "-> def square(v):", "1.0", "PDB continue", "1 passed")


ENDLESS = '''
import os
import signal
import threading
import time
import numpy as np
from kjit import cuda

@cuda.jit
def endless(r):
    r[1] = 1
    while r[0] == 0:
        pass

def interrupt():
    while r[1] == 0:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does, when the kernel is in its loop

r = np.zeros(2)
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt, daemon=True).start()
try:
    endless[1, 4](r)
except KeyboardInterrupt:
    print("interrupted")
r[0] = 1
endless[1, 4](r)
print("ended")
'''

MISTAKES = '''
import numpy as np
from kjit import cuda

count = 0

@cuda.jit(device=True)
def inner(a, i):
    return a[i]

@cuda.jit
def two_deep(r):
    r[0] = inner(r, cuda.threadIdx.x + 2)

@cuda.jit
def lane_outside(r):
    r[cuda.laneid] = cuda.shfl_down_sync(0x0f, 1.0, 1)

@cuda.jit
def vote_outside(r):
    if cuda.laneid < 3:
        r[0] = cuda.ballot_sync(0x3, True)

@cuda.jit
def changes_global(r):
    global count
    count = 1

def make():
    total = 0
    @cuda.jit
    def changes_outer(r):
        nonlocal total
        total = 1
    return changes_outer

@cuda.jit
def no_number(r):
    r[0] = int("x")

@cuda.jit
def no_bits(r):
    r[0] = cuda.popc("x")

for kernel in (two_deep, lane_outside, vote_outside, changes_global, changes_global, make(), no_number, no_bits):
    try:
        kernel[1, 8](np.zeros(4))
    except Exception as error:
        print(type(error).__name__, getattr(error, "line", None), getattr(error, "thread", None), str(error).replace("\\n", " / "))

@cuda.jit
def python_only(r):
    match int(r[0]):
        case 3:
            r[1] = int("5") + max([1, 2]) + float("0.5")
        case _:
            r[1] = -1

    def add():
        nonlocal sum
        sum += 2
    sum = 1
    add()
    r[2] = sum

r = np.array([3.0, 0, 0])
python_only[1, 1](r)
print(r)
'''


def check_mistakes():
    expect("interrupt", run(ENDLESS), "interrupted\nended\n")
    found = run(MISTAKES)
    expect("mistakes", found,
           "IndexError 9 (2, 0, 0) index 4 is out of bounds",
           "ValueError 17 (4, 0, 0) cuda.shfl_down_sync has the mask 0xf, and lane 4, which calls it, is not in the mask",
           "ValueError 22 (2, 0, 0) cuda.ballot_sync has the mask 0x3, and lane 2",
           "SourceError 26 None", "a kernel cannot assign to a global variable", "SourceError 26 None", "a kernel cannot assign to a global variable", "SourceError 33 None", "a kernel cannot assign to a variable of the enclosing function",
           "ValueError 39 (0, 0, 0) invalid literal for int() with base 10: 'x'", "TypeError 43 (0, 0, 0) ", "[3.  7.5 3. ]")


check_pdb()
check_pytest()
check_mistakes()
if failures:
    sys.exit(f"simulator_debugging.py: {failures} failures")
print("debuggers stop in lines of kernels")
