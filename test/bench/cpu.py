#!/usr/bin/env python3
"""cpu.py BIN_DIR: compares kjit's CPU target with loops in C (gcc -O3 -march=native, OpenMP) and, for kernels with
barriers, with PoCL on the same kernels. Prints two tables. BIN_DIR is the folder of kjit-run. The program needs gcc.
The second table needs PoCL (packages pocl-opencl-icd, ocl-icd-opencl-dev)."""
import argparse
import os
import statistics
import tempfile

from report import EXAMPLES, HERE, compile_with_kjit, kjit_bench, output_of, print_table, processor_name, say

ROUNDS = 5


def loops(bin_dir, folder, repetitions):
    program = os.path.join(folder, "cpu_loops")
    compile_with_kjit("cpu_loops.c", program, bin_dir)
    say("axpy and Black-Scholes beside loops in C")
    rows = []
    for line in output_of([program, EXAMPLES, str(repetitions)]).splitlines():
        name, kjit, loop, difference = line.split("\t")
        rows.append([name, f"{float(kjit):.3f}", f"{float(loop):.3f}", f"{float(loop) / float(kjit):.2f}", difference])
    return rows


def barriers(kjit_run, folder, repetitions):
    program = os.path.join(folder, "pocl")
    output_of(["gcc", "-std=gnu11", "-O2", os.path.join(HERE, "pocl.c"), "-o", program, "-lOpenCL", "-lm"])
    say("diffusion and tiled product beside PoCL, taking turns")
    launches = {
        "diffusion": ("diffusion/diffusion.kir", ["a=rand:f32[2000, 2000]", "b=zeros:f32[2000, 2000]"], "diffusion[250x250, 8x8](b, a, 8)"),
        "matmul": ("matmul/matmul.kir", ["c=zeros:f32[1000, 1000]", "a=rand:f32[1000, 1000]", "b=rand:f32[1000, 1000]"], "matmul(c, a, b)"),
    }
    # Returns (median, minimum) of each round, in ms.
    kjit, pocl = {name: [] for name in launches}, {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, launch in launches.items():
            kjit[name].append([us / 1e3 for us in kjit_bench(kjit_run, "cpu", *launch, repetitions)])
        for line in output_of([program, os.path.join(HERE, "pocl.cl"), str(repetitions)]).splitlines():
            name, median_ms, least_ms = line.split("\t")[:3]
            pocl[name].append([float(median_ms), float(least_ms)])
    titles = {"diffusion": "diffusion step, 2000 x 2000 f32, 8 x 8 threads a block", "matmul": "tiled product, 1000 x 1000 f32, 16 x 16 threads a block"}
    rows = []
    for name in launches:
        medians = [statistics.median(median for median, _ in who[name]) for who in (kjit, pocl)]
        leasts = [min(least for _, least in who[name]) for who in (kjit, pocl)]
        rows.append([titles[name], *(f"{median:.3f} ({least:.3f})" for median, least in zip(medians, leasts)), f"{medians[1] / medians[0]:.2f} ({leasts[1] / leasts[0]:.2f})"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--repetitions", type=int, default=15)
    options = parser.parse_args()
    machine = f"{processor_name()}, {len(os.sched_getaffinity(0))} cores"
    with tempfile.TemporaryDirectory() as folder:
        print_table("CPU, loops: medians in one process, taking turns", machine, ["program", "kjit ms", "C loop ms", "speed of the C loop reached", "largest difference"], loops(options.bin_dir, folder, options.repetitions))
        try:
            rows = barriers(os.path.join(options.bin_dir, "kjit-run"), folder, options.repetitions)
        except RuntimeError as error:
            say(f"no comparison with PoCL: {error}")
            return
        print_table("CPU, kernels with barriers", machine, ["kernel", "kjit: median (least) ms", "PoCL: median (least) ms", "times as fast as PoCL"], rows)


if __name__ == "__main__":
    main()
