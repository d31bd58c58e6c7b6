#!/usr/bin/env python3
"""python.py PYTHON_FOLDER [--device cuda|cpu] [--no-peers]: what the package for Python takes, beside CuPy, Numba, PyTorch and Triton where they are installed, in one run: from the start of the interpreter to the end of the first
kernel, the second kernel, the host's time of a launch by kind of argument, launches from eight threads, memory after a million launches, bytes a second of axpy. PYTHON_FOLDER holds the package
kjit, such as build/ci/python."""
import argparse
import functools
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from gpu_peers import is_installed
from report import print_table, processor_name, say

FIRST = """
import time
start = time.perf_counter()
import kjit
imported = time.perf_counter()
@kjit.jit
def axpy(r, a, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = a * x[i] + y[i]
@kjit.jit
def other(r, a, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = a * x[i] - 3 * y[i] * y[i]
a = kjit.zeros(1000, "f32")
axpy(a, 2, a, a)
kjit.synchronize()
first = time.perf_counter()
other(a, 2, a, a)
kjit.synchronize()
print(imported - start, first - start, time.perf_counter() - first)
"""
# Starts everything that each program has to wait for: the driver, its context on the GPU, and its PTX compiler.
DRIVER_FIRST = r"""
import ctypes, time
start = time.perf_counter()
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
TEXT = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) { .reg .b64 %r<3>; .reg .b32 %a<2>; ld.param.u64 %r1, [p]; ld.global.u32 %a1, [%r1]; add.s32 %a1, %a1, NUMBER; st.global.u32 [%r1], %a1; ret; }"
def run(number):
    assert not cuda.cuModuleLoadData(ctypes.byref(module), TEXT.replace("NUMBER", str(number)).encode())
    assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")
    assert not cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, (ctypes.c_void_p * 1)(ctypes.addressof(address)), None)
    assert not cuda.cuCtxSynchronize()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4000))
run(1)
first = time.perf_counter()
run(2)
print(0, first - start, time.perf_counter() - first)
"""
PEER_FIRST = {
    "numba": """
import time
start = time.perf_counter()
import numpy
if not hasattr(numpy, "row_stack"): numpy.row_stack = numpy.vstack
from numba import cuda
imported = time.perf_counter()
def kernel(sign):
    @cuda.jit
    def axpy(r, a, x, y):
        i = cuda.grid(1)
        if i < r.shape[0]:
            r[i] = a * x[i] + sign * y[i]
    return axpy
a = cuda.to_device(numpy.zeros(1000, numpy.float32))
kernel(1)[4, 256](a, 2, a, a)
cuda.synchronize()
first = time.perf_counter()
kernel(-3)[4, 256](a, 2, a, a)
cuda.synchronize()
print(imported - start, first - start, time.perf_counter() - first)
""",
    "cupy": """
import time
start = time.perf_counter()
import cupy
imported = time.perf_counter()
a = cupy.zeros(1000, cupy.float32)
def run(name, text):
    cupy.RawKernel("extern \\"C\\" __global__ void " + name + "(float *r, float a, float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) r[i] = " + text + "; }", name)((4,), (256,), (a, cupy.float32(2), a, a, 1000))
    cupy.cuda.get_current_stream().synchronize()
run("axpy", "a * x[i] + y[i]")
first = time.perf_counter()
run("other", "a * x[i] - 3 * y[i] * y[i]")
print(imported - start, first - start, time.perf_counter() - first)
""",
}
ROUNDS, LAUNCHES = 40, 250


def run_first(text, environment):
    """Returns [ms of the import, ms to the end of the first kernel, ms of the second kernel], or Nones; the minimum of
    three processes with empty caches."""
    found = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment | {"XDG_CACHE_HOME": folder, "CUPY_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"})
        if done.returncode:
            say(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed")
            return [None] * 3
        found.append([1e3 * float(seconds) for seconds in done.stdout.split()])
    return [min(times) for times in zip(*found)]


def measure_medians(tests, wait):
    """Returns [[name, us of a launch]] for tests, which are (name, text of a statement, names in it). The tests run in
    turn, so that changes of the machine's speed affect all of them. The statements are not wrapped in functions,
    because a function call would add to the time of each launch."""
    runs = []
    for _, statement, names in tests:
        scope = {}
        exec(f"def run(count, {', '.join(names)}):\n    for _ in range(count):\n        {statement}\n", scope)
        runs.append(functools.partial(scope["run"], **names))
    times = [[] for _ in tests]
    for round_ in range(ROUNDS + 1):
        for run, found in zip(runs, times):
            start = time.perf_counter_ns()
            run(LAUNCHES)
            found.append((time.perf_counter_ns() - start) / LAUNCHES / 1e3)
            wait()
    return [[name, sorted(found[1:])[ROUNDS // 2]] for (name, *_), found in zip(tests, times)]


def make_kernels(kjit):

    @kjit.jit
    def axpy(r, a, x, y):
        for i in kjit.grid_range(len(r)):
            r[i] = a * x[i] + y[i]

    @kjit.jit
    def axpy_guard(r, a, x, y):
        i = kjit.grid(1)
        if i < len(r):
            r[i] = a * x[i] + y[i]

    return axpy, axpy_guard


def measure_launches(kjit, device, peers):
    axpy, guard = make_kernels(kjit)
    n, wait = 1000, kjit.synchronize
    r, x, y = (kjit.zeros(n, "f32", device) for _ in range(3))
    tests = [("kjit, its own arrays", "f(r, 2.5, x, y)", {"f": axpy, "r": r, "x": x, "y": y}),
             ("kjit, its own arrays, kernel[4, 256]", "f[4, 256](r, 2.5, x, y)", {"f": guard, "r": r, "x": x, "y": y}),
             ("kjit, the same, kernel[4, 256] kept", "f(r, 2.5, x, y)", {"f": guard[4, 256], "r": r, "x": x, "y": y})]
    if device == "cpu":
        r, x, y = (np.zeros(n, np.float32) for _ in range(3))
        tests.append(("kjit, NumPy's arrays", "f(r, 2.5, x, y)", {"f": axpy, "r": r, "x": x, "y": y}))
    if "cupy" in peers:
        import cupy
        r, x, y = (cupy.zeros(n, cupy.float32) for _ in range(3))
        raw = cupy.RawKernel('extern "C" __global__ void axpy(float *r, float a, float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) r[i] = a * x[i] + y[i]; }', "axpy")
        tests += [("kjit, CuPy's arrays", "f(r, 2.5, x, y)", {"f": axpy, "r": r, "x": x, "y": y}),
                  ("CuPy, RawKernel", "f((4,), (256,), (r, a, x, y, 1000))", {"f": raw, "a": np.float32(2.5), "r": r, "x": x, "y": y})]
        wait = cupy.cuda.Device().synchronize
    if "torch" in peers:
        import torch
        r, x, y = (torch.zeros(n, device="cuda") for _ in range(3))
        tests.append(("kjit, PyTorch's arrays", "f(r, 2.5, x, y)", {"f": axpy, "r": r, "x": x, "y": y}))
        if "triton" in peers:
            from gpu_peers_triton import axpy as triton_axpy
            tests.append(("Triton, PyTorch's arrays", "f[(1,)](r, 2.5, x, y, 1000, BLOCK=1024)", {"f": triton_axpy, "r": r, "x": x, "y": y}))
        wait = torch.cuda.synchronize
    if "numba" in peers:
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack
        from numba import cuda

        @cuda.jit
        def theirs(r, a, x, y):
            i = cuda.grid(1)
            if i < r.shape[0]:
                r[i] = a * x[i] + y[i]

        r, x, y = (cuda.to_device(np.zeros(n, np.float32)) for _ in range(3))
        tests.append(("Numba, its own arrays", "f[4, 256](r, a, x, y)", {"f": theirs, "a": np.float32(2.5), "r": r, "x": x, "y": y}))
        wait = cuda.synchronize
    return measure_medians(tests, wait)


def measure_speed(kjit, device, peers):
    """GB/s of axpy over 2^28 f32 (CPU: 2^24)."""
    n = 1 << (28 if device != "cpu" else 24)
    axpy, axpy_guard = make_kernels(kjit)
    r, x, y = (kjit.zeros(n, "f32", device) for _ in range(3))
    gigabytes = 12 * n / 1e9

    def rate(launch):
        launch()
        kjit.synchronize()
        least = float("inf")
        where = kjit.device(device)
        for _ in range(10):
            first = where.event().record()
            launch()
            last = where.event().record()
            last.synchronize()
            least = min(least, last.since(first))
        return gigabytes / least

    rows = [["kjit, grid_range", rate(lambda: axpy(r, 2.5, x, y))], ["kjit, i = grid(1); if i < n", rate(lambda: axpy_guard[n // 256, 256](r, 2.5, x, y))]]
    del r, x, y
    if "numba" in peers:
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack
        from numba import cuda

        @cuda.jit
        def theirs(r, a, x, y):
            i = cuda.grid(1)
            if i < r.shape[0]:
                r[i] = a * x[i] + y[i]

        arrays = [cuda.device_array(n, np.float32) for _ in range(3)]
        least = float("inf")
        for _ in range(11):
            first, last = cuda.event(), cuda.event()
            first.record()
            theirs[n // 256, 256](arrays[0], np.float32(2.5), arrays[1], arrays[2])
            last.record()
            last.synchronize()
            least = min(least, cuda.event_elapsed_time(first, last) / 1e3)
        rows.append(["Numba, the same", gigabytes / least])
    return rows


def measure_threads(kjit, device):
    """Returns the us of a launch from one thread and from eight threads, each on its own stream."""
    _, axpy_guard = make_kernels(kjit)
    where = kjit.device(device)

    def run(count, streams, arrays):
        bound = axpy_guard[4, 256, streams]
        for _ in range(count):
            bound(arrays[0], 2.5, arrays[1], arrays[2])
        streams.synchronize()

    rows = []
    for threads in (1, 8):
        work = [(5000, where.stream(non_blocking=True), [kjit.zeros(1000, "f32", device) for _ in range(3)]) for _ in range(threads)]
        run(*work[0])
        all_threads = [threading.Thread(target=run, args=each) for each in work]
        start = time.perf_counter()
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        rows.append([f"{threads} threads", (time.perf_counter() - start) / (5000 * threads) * 1e6])
    return rows


def measure_leaks(kjit, device):
    axpy, _ = make_kernels(kjit)
    own = [kjit.zeros(1000, "f32", device) for _ in range(3)]

    def run(count):
        for _ in range(count):
            axpy(own[0], 2.5, own[1], own[2])
        kjit.synchronize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(100000)
    return [["most memory of the process after 100,000 launches, after 1,100,000, KiB", f"{before}, {run(1000000)}"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.folder)
    sys.path.insert(0, folder)
    peers = [] if arguments.no_peers or arguments.device == "cpu" else [name for name in ("cupy", "torch", "triton", "numba") if is_installed(name)]
    environment = os.environ | {"PYTHONPATH": folder + os.pathsep + os.environ.get("PYTHONPATH", ""), "KJIT_DEVICE": arguments.device}
    say("first kernels")
    alone = [] if arguments.device == "cpu" else [["the driver alone", *run_first(DRIVER_FIRST, environment)]]
    firsts = [["kjit", *run_first(FIRST, environment)]] + alone + [[name, *run_first(text, environment)] for name, text in PEER_FIRST.items() if name in peers]
    os.environ["KJIT_DEVICE"] = arguments.device
    import kjit
    machine = kjit.device(arguments.device).name if arguments.device == "cuda" else processor_name()
    cells = lambda rows: [[row[0], *("" if v is None else v if isinstance(v, str) else f"{v:.2f}" for v in row[1:])] for row in rows]
    print_table("To the end of the first kernel, nothing on disk, ms", machine, ["", "import", "import and first kernel", "second kernel"], cells(firsts))
    say("launches")
    print_table("The host's time of a launch, three arrays and a scalar, us", machine, ["", "us"], cells(measure_launches(kjit, arguments.device, peers)))
    print_table("Launches from threads, us for each of all", machine, ["", "us"], cells(measure_threads(kjit, arguments.device)))
    say("speed")
    print_table("axpy, GB/s", machine, ["", "GB/s"], cells(measure_speed(kjit, arguments.device, peers)))
    say("a million launches")
    print_table("Memory", machine, ["", ""], measure_leaks(kjit, arguments.device))


if __name__ == "__main__":
    main()
