# RUN: %kjit-python %s
"""The progress line of a long compilation, launch or wait: on a terminal, in a log, in a notebook. The line disappears,
and short calls and scripts have none. The kernels run until the test has seen the line and stops them."""
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import types
import unittest.mock

os.environ["KJIT_DEVICE"] = "cpu"
import kjit
import numpy as np
from kjit import _kjit, _progress

PROGRAM = '''
import os, signal, sys, threading
import kjit, numpy as np
from kjit import _kjit
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests may ignore it

@kjit.jit(interruptible=True)
def spin(flag):
    while kjit.atomic_add(flag[0], 0) == 0:
        pass

@kjit.jit
def short(r):
    r[0] = 1

flag, r = np.zeros(1, np.int32), np.zeros(1)
def stop_later():
    # what is under way ends when the test says so
    def wait():
        os.read(0, 1)
        flag[0] = 1
    flag[0] = 0
    threading.Thread(target=wait, daemon=True).start()
'''

TERMINAL = PROGRAM + '''
print("first", flush=True)
try:
    spin[1, 1](flag)
except KeyboardInterrupt:
    print("interrupted", flush=True)
for i in range(1000):
    short[1, 1](r)
stop_later()
spin[1, 1](flag)
print("second", flush=True)
# The end of the interpreter, while another thread's launch has a line. Its error is not to be printed: Python aborts where
# it stops a thread that has begun to write to stderr.
def run():
    try:
        spin[1, 1](flag)
    except kjit.Error:
        pass
flag[0] = 0
threading.Thread(target=run, daemon=True).start()
os.read(0, 1)
'''

LOG = PROGRAM + '''
stop_later()
spin[1, 1](flag)
assert _kjit.list_calls()[0] == 0  # nobody looks at it
kjit.set_progress(True)
def run():
    stop_later()
    spin[1, 1](flag)
    print("stopped", file=sys.stderr, flush=True)
run()
child = os.fork()
run() if child == 0 else os.waitpid(child, 0)
'''
# The number of seconds depends on the other work of the machine. On a busy machine, the preceding compilation has a
# line, too.
NAMED = r"kjit: spin \(<string>:7\): running on cpu: [1-9][0-9]* s"
COMPILING = r"kjit: spin \(<string>:7\): compiling[^\r\n]*: [1-9][0-9]* s"
ERASED = "\r\33\\[K"


def start(program, **streams):
    # Python 3.12 warns of forks in programs with threads, on stderr.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **streams)
    process.end = threading.Timer(250, os.killpg, (process.pid, signal.SIGKILL))  # its children, too
    process.end.daemon = True
    process.end.start()
    return process


def finish(process):
    code = process.wait()
    assert code == 0, (code, seen[-1000:], os.read(master, 10000))
    process.end.cancel()


def tell(process):
    process.stdin.write(b"x")
    process.stdin.flush()


# A terminal: one line, written over, erased before the program goes on. "\r" and "\n" arrive as they are written.
master, terminal = pty.openpty()
process = start(TERMINAL, stdout=terminal, stderr=terminal)
os.close(terminal)
seen = ""


def read_until(pattern, after=0):
    """Waits until the text appears after the position `after`."""
    global seen
    while not re.search(pattern, seen[after:]):
        try:
            got = os.read(master, 4096)
        except OSError:  # the other end is closed
            got = b""
        assert got, seen[-400:]
        seen += got.decode()


read_until(f"first\r\n(\r{COMPILING}\33\\[K)*({ERASED})?\r{NAMED}\33\\[K")
process.send_signal(signal.SIGINT)
read_until(f"{ERASED}interrupted\r\n")
place = len(seen)
read_until(f"\r{NAMED}\33\\[K\r{NAMED}", place)
tell(process)
read_until(f"{ERASED}second\r\n")
assert re.match(f"\r{NAMED}", seen[place:]), seen  # no text of the short calls
place = len(seen)
read_until(f"^\r{NAMED}", place)
tell(process)
finish(process)
read_until(f"{NAMED}\33\\[K{ERASED}", place)
os.close(master)

# A log has lines if they were requested, also in a forked child.
process = start(LOG, stderr=subprocess.PIPE)
tell(process)


def read_running():
    line = process.stderr.readline().decode().rstrip()
    while re.fullmatch(COMPILING, line):
        line = process.stderr.readline().decode().rstrip()
    assert re.fullmatch(NAMED, line), line


for _ in range(2):
    read_running()
    read_running()
    tell(process)
    assert process.stderr.readline() == b"stopped\n"
assert process.stderr.read() == b""
finish(process)


# A notebook: an output that is updated and empty at the end.
@kjit.jit(interruptible=True)
def spin(flag):
    while kjit.atomic_add(flag[0], 0) == 0:
        pass


flag, shown, changed = np.zeros(1, np.int32), [], threading.Condition()
on_show = None


def record(kind, bundle, raw):
    assert raw and list(bundle) == ["text/plain"]
    with changed:
        shown.append((kind, bundle["text/plain"]))
        changed.notify_all()
    if on_show:
        on_show(bundle["text/plain"])


def await_shown(condition):
    with changed:
        assert changed.wait_for(lambda: any(condition(*one) for one in shown), 100), shown


class Handle:
    def update(self, bundle, raw):
        record("update", bundle, raw)


def display(bundle, raw, display_id):
    assert display_id is True
    record("new", bundle, raw)
    return Handle()


flag[0] = 1
spin[1, 1](flag)  # compiles here, because on a busy machine the compilation would have lines, too
shell = types.SimpleNamespace(kernel=object(), execution_count=1)
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: shell
sys.modules["IPython.display"] = types.ModuleType("IPython.display")
sys.modules["IPython.display"].display = display
kjit.set_progress()
line = rf"kjit: spin \(progress.py:{spin.py_func.__code__.co_firstlineno}\): running on cpu: [1-9][0-9]* s"


def run_until(condition):
    flag[0] = 0
    thread = threading.Thread(target=spin[1, 1], args=(flag,))
    thread.start()
    await_shown(condition)
    flag[0] = 1
    thread.join()
    assert shown[-1] == ("update", ""), shown  # before the call has returned


run_until(lambda kind, text: kind == "update")
assert [kind for kind, _ in shown] == ["new"] + ["update"] * (len(shown) - 1), shown
assert all(re.fullmatch(line, text) for _, text in shown[:-1]), shown
shown.clear()
run_until(lambda kind, text: re.fullmatch(line, text))
assert {kind for kind, _ in shown} == {"update"}, shown  # the same output of the same cell
shown.clear()
shell.execution_count = 2

# The user has seen the line and interrupts the call.
signal.signal(signal.SIGINT, signal.default_int_handler)
on_show = lambda text: len(shown) == 1 and os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
flag[0] = 0
try:
    spin[1, 1](flag)
    raise AssertionError("it was not interrupted")
except KeyboardInterrupt:
    pass
assert shown[0][0] == "new" and re.fullmatch(line, shown[0][1]) and shown[-1] == ("update", ""), shown

# A compilation, and the lines for its stages. If it ends before a line was shown, another compilation follows.
_progress._PATIENCE, _progress._PERIOD = 0, 0.002
kjit.keep_sources()
random = np.random.default_rng()
on_show = None
for _ in range(20):
    shown.clear()
    body = "".join(f"    r[{i} % len(r)] = kjit.sin(r[{i + 1} % len(r)]) * {i + random.random()}\n" for i in range(500))
    names = {"kjit": kjit}
    exec(f"def large(r):\n{body}", names)
    kjit.jit(names["large"])[1, 1](np.zeros(1))
    if [text for _, text in shown if text.startswith("kjit: large (<string>:1): compiling, ")]:
        break
else:
    raise AssertionError("no compilation was shown")
allowed = {f"compiling, {what}" for what in ("kernel IR", "types", "LLVM IR", "optimization", "machine code")} | {"compiling", "running on cpu"}
assert all(text.split(": ")[2] in allowed for _, text in shown if "large" in text), shown

# Python's work before a compilation is part of it. This part also ends if there is an error.
for text, is_right in (("    r[0] = 1\n", True), ("    r[0] = nobody\n", False)):
    exec(f"def small(r):\n{text}", names)
    kernel, described = kjit.jit(names["small"]), []
    write = kernel._write

    def observed():
        described.append(_progress._describe(_kjit.list_calls()[1][-1]))
        return write()

    kernel._write = observed
    try:
        kernel[1, 1](np.zeros(1))
        assert is_right
    except kjit.SourceError:
        assert not is_right
    assert described == [("kjit: small (<string>:1): compiling, kernel IR", True)] and not _kjit.list_calls()[1], described

# Progress is switched off during a call: its line disappears and does not come back.
_progress._PERIOD = _progress._PATIENCE = 0.01
shown.clear()
flag[0] = 0
thread = threading.Thread(target=spin[1, 1], args=(flag,))
thread.start()
await_shown(lambda kind, text: "running" in text)
kjit.set_progress(False)
await_shown(lambda kind, text: text == "")
number = _kjit.list_calls()[1][0]
assert _kjit.show_call(number, -1, b"") is False and _progress._describe(number) is not None
flag[0] = 1
thread.join()
kjit.set_progress(None)

# Every form of the line, for the extension's reports about a call.
where = f"spin (progress.py:{spin.py_func.__code__.co_firstlineno})"
name = spin._made.name
for said, wanted in (
    (("run", None, spin, "cuda:1", {}, None), f"kjit: {where}: running on cuda:1"),
    (("run", None, spin, "cpu", {"another": "ptx"}, None), f"kjit: {where}: running on cpu"),
    (("run", None, spin, "cuda:0", {name: "cubin"}, None), f"kjit: {where}: compiling, machine code of the driver's"),
    (("run", "sort", None, None, {}, None), "kjit: sort: running"),
    (("run", "sort", None, "cuda:0", {"merge": "ptx"}, None), "kjit: sort: compiling, PTX"),
    (("compile", "spin", None, None, {"spin": "asm"}, None), "kjit: spin: compiling, machine code"),
    (("compile", "spin", None, None, {}, None), "kjit: spin: compiling"),
    (("copy", None, None, "cuda:0", {}, spin), "kjit: copying, to or from an array on cuda:0"),
    (("wait", None, None, "cuda:0", {}, spin), f"kjit: waiting for cuda:0, {where} was launched last"),
    (("wait", None, None, None, {}, None), "kjit: waiting for an event"),
):
    with unittest.mock.patch.object(_kjit, "describe_call", lambda number, said=said: said):
        assert _progress._describe(1)[0] == wanted, (_progress._describe(1), wanted)

# Off: nothing is queried. An exception in a display ends the line and has no other effect.
kjit.set_progress(False)
count = _kjit.list_calls()[0]
flag[0] = 1
spin[1, 1](flag)
assert _kjit.list_calls() == (count, [])
kjit.set_progress(True)
spin[1, 1](flag)
assert _kjit.list_calls()[0] == count + 1


def fail(text):
    flag[0] = 1
    raise OSError


raised = []
sys.unraisablehook = raised.append
flag[0], on_show = 0, fail
spin[1, 1](flag)
while _progress._is_watching:
    time.sleep(0.001)
count = _kjit.list_calls()[0]
spin[1, 1](flag)
assert _kjit.list_calls() == (count, []) and not raised, raised
try:
    kjit.set_progress("yes")
    raise AssertionError
except TypeError as error:
    assert "True, False or None" in str(error), error
