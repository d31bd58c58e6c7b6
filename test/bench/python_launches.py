#!/usr/bin/env python3
"""python_launches.py [--device cpu|cuda] [--repeat N]: the host's time of one launch of a kernel of kjit.cuda, by the form in which a program writes it: with signatures
and without, with arrays of the device, their slices, arrays of the host, numbers of Python and of NumPy, records, tuples, arrays of CuPy and PyTorch, and with
configurations that are kept or not. On a GPU the same programs run with numba-cuda, and CuPy's RawKernel stands beside them, where they are installed. The package kjit
has to be on PYTHONPATH. The kernels do nothing, so that a launch costs what the host does for it; of several rounds the fastest one counts."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from gpu_peers import is_installed
from report import print_table, processor_name, say

LAUNCHES = 200
FOLDER = tempfile.TemporaryDirectory()


def fastest_ns(launch, wait, rounds):
    """Returns the time of one launch in the fastest round."""
    launch()
    wait()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(LAUNCHES):
            launch()
        best = min(best, (time.perf_counter_ns() - start) / LAUNCHES)
        wait()
    return best


def make_function(cuda, count):
    """Returns a function with this number of parameters that does nothing."""
    names = ", ".join(f"p{i}" for i in range(count))
    scope = {"cuda": cuda}
    text = f"def nothing({names}):\n    return\n"
    path = os.path.join(FOLDER.name, f"nothing_{count}.py")  # both packages read the source of their kernels from a file
    with open(path, "w") as file:
        file.write(text)
    exec(compile(text, path, "exec"), scope)
    return scope["nothing"]


RECORD = np.dtype([("x", np.float32), ("y", np.float32)])


def usual(cuda, arrays, numbers):
    """Device arrays and Python numbers, as a program with many arguments has them."""
    return [cuda.to_device(np.zeros(64)) for _ in range(arrays)] + [i if i % 2 else 0.5 * i for i in range(numbers)]


def signature_of(cuda, arrays, numbers):
    kinds = [cuda.float64[:]] * arrays + [cuda.int64 if i % 2 else cuda.float64 for i in range(numbers)]
    return tuple(kinds)


def signature_text(arrays, numbers):
    kinds = ["float64[:]"] * arrays + ["int64" if i % 2 else "float64" for i in range(numbers)]
    return f"void({', '.join(kinds)})"


class Types:
    """Makes the types of both packages available under the same names, next to the names in the module cuda."""

    def __init__(self, cuda, types):
        self._cuda, self._types = cuda, types

    def __getattr__(self, name):
        return getattr(self._types if name in ("float64", "float32", "int64", "int32") else self._cuda, name)


def forms(cuda):
    """Returns [(form, function that returns the callable for one launch)]."""

    def launch(jit, given, *configuration):
        kept = jit(make_function(cuda, len(given)))[configuration or (1, 1)]
        return lambda: kept(*given)

    def anew(jit, given, *configuration):
        kernel, configuration = jit(make_function(cuda, len(given))), configuration or (1, 1)
        return lambda: kernel[configuration](*given)

    def for_all(given):
        kernel = cuda.jit(make_function(cuda, len(given)))
        return lambda: kernel.forall(64)(*given)

    def slices(count):
        return [cuda.to_device(np.zeros((8, 64)))[i % 8, 2:60] for i in range(count)]

    def views(count):
        return [cuda.to_device(np.zeros((8, 64)))[:, ::2] for _ in range(count)]

    def records(count):
        return [cuda.to_device(np.zeros(8, RECORD)) for _ in range(count)]

    several = [signature_of(cuda, 4, 4), (cuda.float32[:],) * 4 + (cuda.int32,) * 4, (cuda.int32[:],) * 4 + (cuda.int64,) * 4]
    scalars = [np.float32(1), np.int32(2), np.float64(3), np.int64(4), np.uint8(5), np.bool_(True)]
    yield "1 array", lambda: launch(cuda.jit, usual(cuda, 1, 0))
    yield "1 array, configuration anew", lambda: anew(cuda.jit, usual(cuda, 1, 0))
    yield "1 array, configuration of tuples anew", lambda: anew(cuda.jit, usual(cuda, 1, 0), (1, 1, 1), (1, 1, 1))
    yield "4 arrays, 4 numbers", lambda: launch(cuda.jit, usual(cuda, 4, 4))
    yield "4 arrays, 4 numbers, configuration anew", lambda: anew(cuda.jit, usual(cuda, 4, 4))
    yield "4 arrays, 4 numbers, on a stream", lambda: launch(cuda.jit, usual(cuda, 4, 4), 1, 1, cuda.stream())
    yield "4 arrays, 4 numbers, on a stream, configuration anew", lambda: anew(cuda.jit, usual(cuda, 4, 4), 1, 1, cuda.stream())
    yield "4 arrays, 4 numbers, forall", lambda: for_all(usual(cuda, 4, 4))
    yield "4 arrays, 4 numbers, debug", lambda: launch(cuda.jit(debug=True, opt=False), usual(cuda, 4, 4))
    yield "4 arrays, 4 numbers, a signature", lambda: launch(cuda.jit(signature_of(cuda, 4, 4)), usual(cuda, 4, 4))
    yield "4 arrays, 4 numbers, three signatures", lambda: launch(cuda.jit(several), usual(cuda, 4, 4))
    yield "13 arrays, 13 numbers", lambda: launch(cuda.jit, usual(cuda, 13, 13))
    yield "13 arrays, 13 numbers, a signature", lambda: launch(cuda.jit(signature_of(cuda, 13, 13)), usual(cuda, 13, 13))
    yield "13 arrays, 13 numbers, a signature as text, anew", lambda: anew(cuda.jit(signature_text(13, 13)), usual(cuda, 13, 13))
    yield "6 scalars of NumPy", lambda: launch(cuda.jit, scalars)
    yield "6 scalars of NumPy, converted by a signature", lambda: launch(cuda.jit((cuda.float64,) * 6), [np.float32(1), 2, np.int64(4), 3.5, np.uint8(5), True])
    yield "4 slices", lambda: launch(cuda.jit, slices(4))
    yield "4 views with gaps", lambda: launch(cuda.jit, views(4))
    yield "2 arrays of records", lambda: launch(cuda.jit, records(2))
    yield "1 record of the device", lambda: launch(cuda.jit, [records(1)[0][0]])
    yield "1 tuple of 3 numbers, 1 array", lambda: launch(cuda.jit, [(1, 2.0, 3), *usual(cuda, 1, 0)])
    yield "1 tuple of 2 arrays", lambda: launch(cuda.jit, [tuple(usual(cuda, 2, 0))])
    yield "2 mapped arrays", lambda: launch(cuda.jit, [cuda.mapped_array(64), cuda.mapped_array(64)])
    yield "4 arrays of the host", lambda: launch(cuda.jit, [np.zeros(64) for _ in range(4)])
    yield "4 slices of arrays of the host", lambda: launch(cuda.jit, [np.zeros((64, 4))[1:-1, 2] for _ in range(4)])


def foreign_forms(cuda, on_gpu):
    """Returns the same with arrays of other libraries, or with a class that has their interface."""

    class Other:
        """An array of another library that has only the CUDA array interface."""

        def __init__(self):
            self.kept = cuda.to_device(np.zeros(64))
            self.__cuda_array_interface__ = dict(self.kept.__cuda_array_interface__)

    made = {"of a class with the CUDA array interface": Other}
    if on_gpu and is_installed("cupy"):
        import cupy

        made["of CuPy"] = lambda: cupy.zeros(64)
    if on_gpu and is_installed("torch"):
        import torch

        made["of PyTorch"] = lambda: torch.zeros(64, device="cuda", dtype=torch.float64)

    def launch(jit, given, *configuration):
        kept = jit(make_function(cuda, len(given)))[configuration or (1, 1)]
        return lambda: kept(*given)

    for name, make in made.items():
        yield f"4 arrays {name}", lambda make=make: launch(cuda.jit, [make() for _ in range(4)])
        yield f"4 arrays {name}, a signature", lambda make=make: launch(cuda.jit((cuda.float64[:],) * 4), [make() for _ in range(4)])
        yield f"4 arrays {name}, on a stream", lambda make=make: launch(cuda.jit, [make() for _ in range(4)], 1, 1, cuda.stream())


def measure(cuda, on_gpu, rounds, wanted):
    """Returns {form: ns}. If a form fails, the program reports it and leaves it out."""
    found = {}
    for name, make in [*forms(cuda), *foreign_forms(cuda, on_gpu)]:
        if wanted not in name:
            continue
        try:
            found[name] = fastest_ns(make(), cuda.synchronize, rounds)
        except Exception as error:  # of a package beside kjit it is no failure of this program
            say(f"{name}: {type(error).__name__}: {error}")
    return found


def measure_numba(rounds, wanted):
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # numba-cuda expects a name that NumPy 2.5 dropped
    import numba
    from numba import cuda

    return measure(Types(cuda, numba), True, rounds, wanted)


def measure_cupy(rounds):
    """CuPy's own kernels, which take arrays and NumPy scalars directly."""
    import cupy

    found = {}
    for name, arrays, numbers in (("1 array", 1, 0), ("4 arrays, 4 numbers", 4, 4), ("13 arrays, 13 numbers", 13, 13)):
        parameters = [f"double *a{i}" for i in range(arrays)] + [f"{'long long' if i % 2 else 'double'} n{i}" for i in range(numbers)]
        kernel = cupy.RawKernel(f'extern "C" __global__ void nothing({", ".join(parameters)}) {{}}', "nothing")
        given = tuple([cupy.zeros(64) for _ in range(arrays)] + [i if i % 2 else 0.5 * i for i in range(numbers)])
        found[name] = fastest_ns(lambda: kernel((1,), (1,), given), cupy.cuda.Device().synchronize, rounds)
    return found


def measure_driver():
    """The driver's own call from C, for the forms in measure_cupy: a kernel has one 8-byte parameter for each
    argument."""
    counts = {1: "1 array", 8: "4 arrays, 4 numbers", 26: "13 arrays, 13 numbers"}
    program = os.path.join(FOLDER.name, "driver_launch")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver_launch.c")
    subprocess.run(["cc", "-O2", source, "-o", program, "-ldl"], check=True)
    printed = subprocess.run([program, *map(str, counts)], check=True, capture_output=True, text=True).stdout
    return {counts[int(count)]: float(ns) for count, ns in map(str.split, printed.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--form", default="", help="only the forms whose name has this text")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["KJIT_DEVICE"] = "cpu"
        os.environ["NUMBA_BOUNDSCHECK"] = "0"  # kernels as a GPU has them
    os.environ["NUMBA_DISABLE_PERFORMANCE_WARNINGS"] = "1"
    import kjit
    from kjit import cuda

    on_gpu = options.device == "cuda"
    if on_gpu and kjit.device().kind != "cuda":
        sys.exit("there is no GPU: --device cpu measures the CPU target")
    say("kjit.cuda")
    columns = {"kjit.cuda": measure(cuda, on_gpu, options.rounds, options.form)}
    peers = {"numba.cuda": ("numba_cuda", lambda: measure_numba(options.rounds, options.form)), "CuPy's RawKernel": ("cupy", lambda: measure_cupy(options.rounds)),
             "the driver's call from C": ("ctypes", measure_driver)}
    for name, (package, measure_peer) in peers.items():
        if on_gpu and is_installed(package):
            say(name)
            try:
                columns[name] = measure_peer()
            except Exception as error:  # if a peer fails, this program does not fail
                say(f"{name} failed: {error}")
    rows = [[form, *(f"{times[form]:.0f}" if form in times else "-" for times in columns.values())] for form in columns["kjit.cuda"]]
    print_table("The host's time of one launch from Python, ns", f"{processor_name()}, {options.device}", ["form", *columns], rows)


if __name__ == "__main__":
    main()
