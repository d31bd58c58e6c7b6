#!/usr/bin/env python3
"""cpu_threads.py BIN_DIR [--cores N] [--kernels add,exp,rows,blocks,histogram] [--exponents 2-7] [--seconds 1.5]
[--only idle|loaded] [--program PROGRAM]: measures CPU launches on one thread, on all threads (an OpenMP team with
passive waiting), and on the number of threads that kjit chooses. It measures on the machine as it is, and next to one
busy process for each core. BIN_DIR is the folder of kjit-run. PROGRAM is the program compiled from cpu_threads.c.
Prints a table of medians and 99th percentiles for each kernel, and the largest ratios."""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

from report import compile_with_kjit, output_of, print_table, processor_name, say

KERNELS = ["add", "exp", "rows", "blocks", "histogram"]


class Load:
    """Starts a busy process for each core."""

    def __init__(self, count):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: signal.alarm(1200)) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(program, kernel, options):
    lines = output_of([program, kernel, str(options.cores), *options.exponents.split("-"), options.seconds], env={**os.environ, "OMP_WAIT_POLICY": "passive"}).splitlines()
    return [[float(word) for word in line.split()[1:]] for line in lines]


def rows_of(kernel, load, figures):
    for elements, one, one99, all_, all99, own, own99 in figures:
        yield [kernel, load, f"{elements:.0f}", *(f"{us:.2f}" for us in (one, all_, own)), f"{own / min(one, all_):.2f}", *(f"{us:.1f}" for us in (one99, all99, own99)), f"{own99 / all99:.2f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--exponents", default="2-7")
    parser.add_argument("--seconds", default="1.5")
    parser.add_argument("--program")
    parser.add_argument("--only", choices=["idle", "loaded"])
    options = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        program = options.program or os.path.join(folder, "cpu_threads")
        if not options.program:
            compile_with_kjit("cpu_threads.c", program, options.bin_dir)
        for load in ("idle", "loaded"):
            if options.only and load != options.only:
                continue
            with Load(options.cores if load == "loaded" else 0):
                for kernel in options.kernels.split(","):
                    say(f"{kernel}, {load}")
                    table += rows_of(kernel, load, measure(program, kernel, options))
    print_table("A launch on the CPU, us: on one thread, on all by OpenMP (passive), as kjit spreads it", f"{processor_name()}, {options.cores} cores",
                ["kernel", "machine", "elements", "one", "all", "kjit", "kjit / better", "one p99", "all p99", "kjit p99", "p99 kjit / all"], table)
    for load in ("idle", "loaded"):
        ratios = [(float(row[6]), row[0], row[2]) for row in table if row[1] == load]
        if ratios:
            print(f"{load}: kjit / better of both: most {max(ratios)}, over 1.2 in {sum(r > 1.2 for r, *_ in ratios)} of {len(ratios)}")


main()
