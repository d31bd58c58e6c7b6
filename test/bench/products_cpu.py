#!/usr/bin/env python3
"""products_cpu.py BIN_DIR [--cores N] [--rounds 7] [--rows WORDS] [--kinds f32,f64] [--cpu-time] [--tune]: kjit_matmul on the CPU beside OpenBLAS, by the NumPy that runs this, on the same number of cores.
BIN_DIR is the folder of kjit-run. Both take turns, row by row, several rounds; printed is the least time of all. --cpu-time counts the processor's time instead of the clock's, of one core, where other processes have
the machine, too. OpenBLAS chooses kernels by the processor's name, and takes those for AVX2 where it does not know it: OPENBLAS_CORETYPE=SkylakeX makes it take those for AVX-512. The first call of a shape includes
its compilation, if KJIT_NO_CACHE or an empty cache makes that necessary; it is the first one in this process that is slow for other reasons.
--tune times other choices of lib/library/product_cpu.kir's table, for products of 1024 x 1024 matrices, in place of all this."""
import argparse
import os
import re
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "lib", "library", "product_cpu.kir")
KINDS = {"f32": "f4", "f64": "f8", "c64": "c8", "i32": "i4"}
# Name, shapes, and which operands are transposed.
ROWS = [
    ("1024 cubed", (1024, 1024), (1024, 1024), ""),
    ("1024 cubed, x.T", (1024, 1024), (1024, 1024), "x"),
    ("1024 cubed, y.T", (1024, 1024), (1024, 1024), "y"),
    ("2048 cubed", (2048, 2048), (2048, 2048), ""),
    ("127 x 4096 x 333", (127, 333), (333, 4096), ""),
    ("127 x 333 x 4096", (127, 4096), (4096, 333), ""),
    ("256 times 128 cubed", (256, 128, 128), (256, 128, 128), ""),
    ("65536 x 64 x 64", (65536, 64), (64, 64), ""),
    ("4096 x 1 x 4096", (4096, 4096), (4096, 1), ""),
    ("1 x 4096 x 4096", (1, 4096), (4096, 4096), ""),
]
LEAST_S = 0.05  # of a measurement

TUNED = """import "./tuned.kir"
func left_at(g, i, l, x) @inline { return x[i, l] }
func right_at(g, j, l, y) @inline { return y[l, j] }
func put(g, i, j, v, z) @inline { z[i, j] = v }
kernel tuned(z, x: const dtype(x)[:, :], y: const dtype(y)[:, :], const THREADS) @block(THREADS) {
  product_packed(bind_back(left_at, x), bind_back(right_at, y), bind_back(put, z), 1, i32(z.shape[0]), i32(z.shape[1]), i32(x.shape[1]), zero(dtype(z)), 1024, 1024, true, false)
}
"""


def random_matrix(np, rng, shape, kind, is_transposed):
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind[0] == "c" else 0)
    x = (10 * x if kind[0] == "i" else x).astype(KINDS[kind])
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2) if is_transposed else x


def seconds(call, clock):
    count, start = 0, clock()
    while True:
        call()
        count += 1
        passed = clock() - start
        if passed > LEAST_S:
            return passed / count


def measure(arguments):
    import ctypes

    import numpy as np

    sys.path.insert(0, os.path.join(HERE, "..", "algorithm"))
    from calls import Algorithms
    from report import library_folder, print_table, processor_name, say

    library = Algorithms(library_folder(arguments.bin_dir), "cpu")
    clock = time.process_time if arguments.cpu_time else time.perf_counter

    def multiply(result, x, y):
        library.begin()
        operands = [library.array(values) for values in (result, x, y)]
        library.require(library.c.kjit_matmul(library.context, *[ctypes.byref(operand) for operand in operands], ctypes.byref(library.options())))

    rng, table, ratios = np.random.default_rng(1), [], []
    for kind in arguments.kinds.split(","):
        for name, of_x, of_y, transposed in ROWS:
            if arguments.rows and not any(word in name for word in arguments.rows.split(",")):
                continue
            say(f"{name} {kind}")
            x, y = random_matrix(np, rng, of_x, kind, transposed == "x"), random_matrix(np, rng, of_y, kind, transposed == "y")
            result = np.zeros((*of_x[:-1], of_y[-1]), KINDS[kind])
            start = time.perf_counter()
            multiply(result, x, y)
            first = time.perf_counter() - start
            peer = np.matmul(x, y)
            size = float(np.max(np.abs(peer)))
            if not np.allclose(result, peer, rtol=0, atol=size * 1e-4 if kind in ("f32", "c64") else size * 1e-11):
                raise RuntimeError(f"{name} {kind}: another result than NumPy's")
            own, others = [], []
            for _ in range(arguments.rounds):
                own.append(seconds(lambda: multiply(result, x, y), clock))
                others.append(seconds(lambda: np.matmul(x, y, out=peer), clock))
            work = 2e-9 * (4 if kind[0] == "c" else 1) * float(np.prod(of_x)) * of_y[-1]
            ratio = min(others) / min(own)
            ratios.append(ratio)
            table.append([f"{name} {kind}", f"{1e3 * min(own):.2f}", f"{work / min(own):.0f}", f"{1e3 * min(others):.2f}", f"{work / min(others):.0f}", f"{ratio:.2f}", f"{1e3 * first:.0f}"])
    print_table(f"Products on {arguments.cores} core{'s' if arguments.cores > 1 else ''}, beside OpenBLAS", processor_name(), ["product", "kjit, ms", "GFLOP/s", "OpenBLAS, ms", "GFLOP/s", "OpenBLAS / kjit", "first call, ms"], table)
    if ratios:
        print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


def used_seconds(kjit_run, folder, kind, repetitions):
    """The processor time of kjit-run, that is, of a process that does more than the products."""
    import resource

    from report import output_of

    square = f"{kind}[1024, 1024]"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of([kjit_run, "tuned_product.kir", "--device", "cpu", "--quiet", "--arg", f"x=rand:{square}", "--arg", f"y=rand:{square}", "--arg", f"z=zeros:{square}", "--bench", str(repetitions), "--launch", "tuned[36](z, x, y, 1)"], cwd=folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def tune(arguments):
    from report import print_table, processor_name, say

    with open(LIBRARY) as file:
        text = file.read()
    with open("/proc/cpuinfo") as file:
        table = "PRODUCT_WIDE" if " avx512bw " in file.read() else "PRODUCT_NARROW"
    entry = re.compile(rf"const {table} = \(([0-9, ]+)\)")
    chosen = [int(number) for number in entry.search(text).group(1).split(",")]
    others = {0: [6, 8, 10, 12, 14], 2: [chosen[2] // 2, chosen[2] * 3 // 4], 3: [256, 512, 768, 1024], 4: [128, 192, 256, 320]}
    choices = [chosen] + [[*chosen[:at], number, *chosen[at + 1:]] for at, numbers in others.items() for number in numbers if number != chosen[at] and (at > 0 or table == "PRODUCT_WIDE" or number < 8)]
    kjit_run, kinds, rows = os.path.abspath(os.path.join(arguments.bin_dir, "kjit-run")), arguments.kinds.split(","), []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "tuned_product.kir"), "w") as file:
            file.write(TUNED)
        for choice in choices:
            choice = [*choice[:2], choice[2] // choice[0] * choice[0], *choice[3:]]
            say(f"{table} = {tuple(choice)}")
            with open(os.path.join(folder, "tuned.kir"), "w") as file:
                file.write(entry.sub(f"const {table} = ({', '.join(map(str, choice))})", text))
            row = [str(tuple(choice))]
            for kind in kinds:
                try:
                    times = [(used_seconds(kjit_run, folder, kind, 42) - used_seconds(kjit_run, folder, kind, 2)) / 40 for _ in range(arguments.rounds)]
                    row.append(f"{2e-9 * 1024**3 / min(times):.0f}")
                except RuntimeError as error:
                    say(str(error))
                    row.append("")
            rows.append(row)
    print_table("Products of 1024 x 1024 matrices on one core, GFLOP/s, the table's own choice first", processor_name(), [table, *kinds], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--cores", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", default="")
    parser.add_argument("--kinds", default="f32,f64")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    usable = sorted(os.sched_getaffinity(0))
    arguments.cores = 1 if arguments.cpu_time or arguments.tune else min(arguments.cores or len(usable), len(usable))
    os.sched_setaffinity(0, usable[: arguments.cores])
    os.environ["OPENBLAS_NUM_THREADS"] = str(arguments.cores)  # must be set before NumPy is loaded
    if arguments.tune:
        tune(arguments)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
