#!/usr/bin/env python3
"""compile_scale.py BIN_DIR: measures the compile time of generated kernels with 10 to 10,000 statements, for a GPU and
for this CPU, and compares it with NVRTC if NVRTC is installed. Prints a table, and how the time per statement changes
from 100 statements on. Writes compile_scale.svg into the --out folder. BIN_DIR is the folder of kjit-run."""
import argparse
import math
import os
import tempfile

from plot import write_plot
from report import compile_with_kjit, output_of, print_table, processor_name, say


def measure(program, target, most, repetitions, facts, checks):
    """{form: [(statements, ms)]}"""
    say(target)
    found = {}
    for line in output_of([program, target, str(most), str(repetitions), facts, checks]).splitlines()[1:]:
        form, _, statements, ms, _ = line.split()
        found.setdefault(form, []).append((int(statements), float(ms)))
    return found


def exponent(points):
    """Returns the exponent with which the time grows with the size, from 100 statements on, by least squares on
    logarithms. Linear growth gives 1."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x >= 100]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--targets", default="sm_90,cpu,nvrtc")
    parser.add_argument("--most", type=int, default=10000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--facts", default="all", help="what kjit may assume: none or all")
    parser.add_argument("--checks", default="none", help="what kjit's code checks: none or usual")
    parser.add_argument("--out", default=".", help="folder of the plot")
    options = parser.parse_args()
    series = {}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "compile_scale")
        compile_with_kjit("compile_scale.c", program, options.bin_dir, "-ldl")
        for target in options.targets.split(","):
            try:
                series |= {f"{target}, {form}": points for form, points in measure(program, target, options.most, options.repetitions, options.facts, options.checks).items()}
            except RuntimeError as error:
                say(f"{target} is left out: {error}")
    sizes = sorted({x for points in series.values() for x, _ in points})
    rows = [[name, *(f"{dict(points)[x]:.1f}" if x in dict(points) else "" for x in sizes), f"{exponent(points):.2f}"] for name, points in series.items()]
    print_table("Compile time in ms by number of statements; last: the power of the size that it grows with from 100 on", processor_name(), ["target, form", *map(str, sizes), "power"], rows)
    write_plot(os.path.join(options.out, "compile_scale.svg"), f"Compile time of generated kernels, {processor_name()}", "statements", "ms", series, log_x=True, log_y=True)


if __name__ == "__main__":
    main()
