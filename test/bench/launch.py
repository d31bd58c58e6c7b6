#!/usr/bin/env python3
"""launch.py BIN_DIR: measures the host time of one launch by the number of arguments, in one run with the driver's own
call and, if they are installed, with CuPy, Numba and Triton; then with 1 to 64 threads. Prints tables and writes
launch.svg and launch_threads.svg into the --out folder. BIN_DIR is the folder of kjit-run."""
import argparse
import os
import re
import tempfile
import time

from gpu_peers import is_installed
from plot import write_plot
from report import compile_with_kjit, output_of, print_table, processor_name, say

ROUNDS, LAUNCHES, COUNTS = 100, 256, [0, 1, 4, 16]


def measure_kjit(folder, bin_dir, device):
    """Returns {way: {arguments: ns}}, and the rows by the names in launch.c."""
    program = os.path.join(folder, "launch")
    say("kjit" + (" and the driver" if device == "cuda" else ""))
    compile_with_kjit("launch.c", program, bin_dir, "-ldl")
    lines = output_of([program, device, "200"]).splitlines()
    ways = re.split(r"\s{2,}", lines[1].strip())[1:]
    rows = {}
    for line in lines[2:]:
        cells = re.sub(r"\([^)]*\)", "", line[20:]).split()
        rows[line[:20].strip()] = {way: float(cell) for way, cell in zip(ways, cells) if cell != "-"}
    return rows


def median_ns(launch, wait):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(LAUNCHES):
            launch()
        times.append((time.perf_counter_ns() - start) / LAUNCHES)
        wait()
    return sorted(times)[ROUNDS // 2]


def measure_cupy(cupy, arrays):
    found = {}
    for count in COUNTS:
        names = [f"a{i}" for i in range(count)]
        code = 'extern "C" __global__ void k(' + ", ".join(f"float *{n}" for n in names) + ") { if (threadIdx.x == 1) { " + "".join(f"{n}[0] = 1;" for n in names) + " } }"
        kernel, given = cupy.RawKernel(code, "k"), tuple(arrays[:count])
        found[count] = median_ns(lambda: kernel((1,), (1,), given), cupy.cuda.Device().synchronize)
    return found


def measure_numba(cupy, arrays):
    import numpy as np
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # numba-cuda expects a name that NumPy 2.5 dropped
    from numba import cuda
    found = {}
    for count in COUNTS:
        names = [f"a{i}" for i in range(count)]
        scope = {"cuda": cuda}
        exec(f"def k({', '.join(names)}):\n    if cuda.threadIdx.x == 1:\n        " + ("; ".join(f"{n}[0] = 1" for n in names) or "pass"), scope)
        kernel, given = cuda.jit(scope["k"]), [cuda.as_cuda_array(a) for a in arrays[:count]]
        found[count] = median_ns(lambda: kernel[1, 1](*given), cuda.synchronize)
    return found


TRITON = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(%s):\n    %s\n"


def measure_triton(cupy, folder):
    import importlib.util
    import torch
    arrays, found = [torch.zeros(1024, device="cuda") for _ in range(16)], {}
    for count in COUNTS:
        names = [f"a{i}" for i in range(count)]
        path = os.path.join(folder, f"triton_{count}.py")  # Triton reads the source of its functions from a file
        with open(path, "w") as file:
            file.write(TRITON % (", ".join(names), "; ".join(f"tl.store({n}, 1.0)" for n in names) or "pass"))
        spec = importlib.util.spec_from_file_location(f"triton_{count}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[count] = median_ns(lambda: module.k[(1,)](*arrays[:count]), torch.cuda.synchronize)
    return found


def measure_peers(folder):
    """Returns {name: {arrays: ns}} for the installed libraries. If a library fails, the program reports the failure and
    leaves it out."""
    if not is_installed("cupy"):
        say("no CuPy: no peers")
        return {}
    import cupy
    arrays, found = [cupy.zeros(1024, dtype=cupy.float32) for _ in range(16)], {}
    peers = {"CuPy RawKernel": ("cupy", lambda: measure_cupy(cupy, arrays)), "Numba": ("numba", lambda: measure_numba(cupy, arrays)), "Triton": ("triton", lambda: measure_triton(cupy, folder))}
    for name, (package, measure) in peers.items():
        if not is_installed(package):
            continue
        say(name)
        try:
            found[name] = measure()
        except Exception as error:  # if a peer fails, this program does not fail
            say(f"{name} failed: {error}")
    return found


def measure_threads(folder, bin_dir, device, kind):
    program = os.path.join(folder, "launch_threads")
    say(f"threads, {kind} streams")
    compile_with_kjit("launch_threads.c", program, bin_dir, "-ldl", "-lpthread")
    lines = output_of([program, device, "64", kind]).splitlines()[1:]
    columns = list(zip(*([float(cell) for cell in line.split()] for line in lines)))
    names = ["cuLaunchKernel", "kjit_launch", "prepared"]
    return {name: list(zip(columns[0], times)) for name, times in zip(names, columns[1:]) if any(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", default=".", help="folder of the plots")
    options = parser.parse_args()
    arguments_of = {"none": 0, "1 array": 1, "3 arrays, 1 scalar": 4, "16 arrays": 16}
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_kjit(folder, options.bin_dir, options.device)
        peers = measure_peers(folder) if options.device == "cuda" else {}
        threads = {kind: measure_threads(folder, options.bin_dir, options.device, kind) for kind in ["blocking", "non-blocking"]}
    ways = list(next(iter(rows.values())))
    machine = f"{processor_name()}, {options.device}"
    print_table("Host time of one launch, ns", machine, ["arguments", *ways, *peers],
                [[name, *(f"{row.get(way, float('nan')):.0f}" for way in ways), *(f"{times.get(arguments_of.get(name), float('nan')):.0f}" for times in peers.values())] for name, row in rows.items()])
    series = {way: [(arguments_of[name], row[way]) for name, row in rows.items() if name in arguments_of and way in row] for way in ways} | {name: list(times.items()) for name, times in peers.items()}
    write_plot(os.path.join(options.out, "launch.svg"), f"Host time of one launch, {machine}", "arguments", "ns", series, log_y=True)
    for kind, ways in threads.items():
        print_table(f"The same with several threads at once, {kind} streams, 3 arrays and a scalar, ns", machine, ["threads", *ways],
                    [[int(x), *(f"{dict(points)[x]:.0f}" for points in ways.values())] for x, _ in ways["kjit_launch"]])
    write_plot(os.path.join(options.out, "launch_threads.svg"), f"Launches by several threads, {machine}", "threads", "ns of a launch, as its thread sees it", threads["blocking"], log_x=True,
               log_y=True)


if __name__ == "__main__":
    main()
