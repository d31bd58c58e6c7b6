#!/usr/bin/env python3
"""plain_ptx.py KJIT-RUN DRIVER [ROUNDS]: the compile time of plain code and of the best code for GPUs, without a GPU.

DRIVER is a folder with libcuda.so.1 made from no_driver.c (its head has the command). The columns have milliseconds of
processor time, the minimum of the rounds. The best code is a run of kjit-run without the time of a run that compiles a
kernel of one store; plain code is a run that compiles both codes, without the run that compiles the best code alone.
ptxas gets the PTX that the driver got, and the level that the driver gets from kjit. The last columns are the largest
number of registers of a thread.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

CALLS = {
    "reduce, add, f32": ("x=zeros:f32[1000000]", "r = reduce(x, add)"),
    "scan, add, i64": ("x=zeros:i64[1000000]", "r = scan(x, add)"),
    "sort, f32": ("x=zeros:f32[1000000]", "r = sort(x)"),
    "argsort, f64": ("x=zeros:f64[1000000]", "r = argsort(x)"),
    "unique, i32": ("x=zeros:i32[1000000]", "r, c = unique(x)"),
    "select, i32": ("x=zeros:i32[1000000]", "r, count = nonzero(x)"),
    "bincount, i32": ("x=zeros:i32[1000000]", "r = bincount(x, 256)"),
    "matmul, f32": ("x=zeros:f32[1024,1024]", "r = matmul(x, x)"),
    "matmul, f64": ("x=zeros:f64[256,256]", "r = matmul(x, x)"),
    "pairs, f32": ("x=zeros:f32[10000,3]", "r = pairs(near, x, add, x)"),
}
MODULE = """func near(x, y, i, j) {
  var s = 0f32
  for k in range(len(x)) { s = s + (x[k] - y[k]) * (x[k] - y[k]) }
  return exp(-s)
}
kernel store(z) { z[0] = 1 }
"""


def processor_ms(command, **options):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (usage.ru_utime + usage.ru_stime)

    start = used()
    result = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return used() - start, result


def run_ms(kjit_run, driver, kind, step, array, folder):
    """Returns the processor time of a run without caches. The PTX that the driver gets is in folder/code."""
    code, module = os.path.join(folder, "code"), os.path.join(folder, "module.kir")
    shutil.rmtree(code, ignore_errors=True)
    os.mkdir(code)
    with open(module, "w") as file:
        file.write(MODULE)
    environment = os.environ | {"LD_LIBRARY_PATH": driver, "LOADED_CODE": code}
    command = [kjit_run, module, "--no-cache", "--quiet", "--device", "cuda", "--arg", array, "--arg", "z=zeros:f32[8]", *step]
    return processor_ms([*command, "--plain-code", kind, "--bench", "1"], env=environment)[0]


def assemble(folder, kind, level, rounds):
    """Returns the processor time of ptxas for all files of a kind, and the largest number of registers."""
    time, registers = 0, 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(f"-{kind}.ptx"):
            continue
        path = os.path.join(folder, name)
        with open(path) as file:
            target = re.search(r"^\.target (\w+)", file.read(), re.MULTILINE)[1]
        runs = [processor_ms(["ptxas", "-v", f"-O{level}", f"-arch={target}", path, "-o", os.devnull]) for _ in range(rounds)]
        time += min(run[0] for run in runs)
        registers = max(registers, *(int(n) for n in re.findall(r"Used (\d+) registers", runs[0][1].stderr)))
    return time, registers


def main():
    kjit_run, driver = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print("| kernels of | best | plain | ratio | `ptxas`, best | plain | ratio | sum, best | plain | ratio | registers, best | plain |")
    print("|---|" + "---|" * 11)
    for name, (array, call) in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            files = os.path.join(folder, "code")
            steps = [("never", ["--launch", "store[1, 1](z)"]), ("never", ["--call", call]), ("always", ["--call", call])]
            times = [min(run_ms(kjit_run, driver, kind, step, array, folder) for _ in range(rounds)) for kind, step in steps]
            own = times[1] - times[0], times[2] - times[1]
            row = [(own[i], *assemble(files, *code, rounds)) for i, code in enumerate((("best", 3), ("plain", 1)))]
        (best, best_ptxas, best_registers), (plain, plain_ptxas, plain_registers) = row
        cells = [f"{best:.1f}", f"{plain:.1f}", f"{plain / best:.2f}", f"{best_ptxas:.0f}", f"{plain_ptxas:.0f}", f"{plain_ptxas / best_ptxas:.2f}"]
        both = best + best_ptxas, plain + plain_ptxas
        cells += [f"{both[0]:.0f}", f"{both[1]:.0f}", f"{both[1] / both[0]:.2f}", str(best_registers), str(plain_registers)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
