# REQUIRES: build
# RUN: %cc -shared -fPIC %S/../unit/Inputs/nvtx_recorder.c -o %t.so -lpthread && env KJIT_DEVICE=cpu NVTX_INJECTION64_PATH=%t.so %kjit-python %s %t.so
# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Ranges of a program and of compilations, recorded by a library in place of a profiler. Without such a library, ranges
have no effect."""
import ctypes
import sys
import threading

import kjit
import numpy as np
from kjit import cuda


@kjit.jit
def scale(r, a):
    for i in kjit.grid_range(len(r)):
        r[i] *= a


@kjit.profile_range("decorated")
def decorated():
    scale(r, 2)


r = np.ones(100)
with kjit.profile_range("outer, \u00e9"):
    scale(r, 2)
    decorated()
    scale(np.ones(10, np.float32), 2)
try:
    with kjit.profile_range("fails"):
        raise KeyError("x")
except KeyError:
    pass


def other():
    with kjit.profile_range("thread"):
        scale(r, 2)


thread = threading.Thread(target=other)
thread.start()
thread.join()
assert (r == 8).all()

for name in (3, None):
    try:
        with kjit.profile_range(name):
            raise AssertionError("the name was taken")
    except TypeError:
        pass
kjit.start_profiler()
kjit.stop_profiler("cpu")
with cuda.profiling():
    cuda.profile_start()
    cuda.profile_stop()

if len(sys.argv) > 1:
    recorder = ctypes.CDLL(sys.argv[1])
    recorder.nvtx_recorder_text.restype = ctypes.c_char_p
    lines = [line.split(" ", 1) for line in recorder.nvtx_recorder_text().decode().splitlines()]
    main = [what for number, what in lines if number == lines[0][0]]
    code = ["push kjit: code of scale", "pop"]
    assert main == ["push outer, \u00e9", *code, "push decorated", "pop", *code, "pop", "push fails", "pop"], main
    assert [what for number, what in lines if number != lines[0][0]] == ["push thread", "pop"], lines
print("profiler: passed")
