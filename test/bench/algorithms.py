#!/usr/bin/env python3
"""algorithms.py BIN_DIR [--device cuda] [--exponents 12,16,20,24,28]: compares kjit's algorithms with CUB, compiled by
nvcc, in one run on the first GPU. With --device cpu, it measures kjit alone. BIN_DIR is the folder of kjit-run. --cub
PROGRAM: the program compiled from algorithms_cub.cu."""
import argparse
import collections
import os
import tempfile

from report import HERE, compile_with_kjit, output_of, print_table, processor_name, say
from gpu import device_name


def measure_cub(program, folder):
    if not program:
        program = os.path.join(folder, "cub")
        say("CUB by nvcc")
        try:
            output_of(["nvcc", "-O3", "-std=c++17", "-arch=native", os.path.join(HERE, "algorithms_cub.cu"), "-o", program])
        except (OSError, RuntimeError) as error:
            say(f"no nvcc: {error}")
            return {}
    return {(name, int(exponent)): float(us) for name, exponent, us in (line.split("\t") for line in output_of([program]).splitlines())}


def read(text):
    """Returns ({(name, exponent): us}, [(row, time)]) from the output of algorithms.c."""
    rows, others = collections.OrderedDict(), []
    for parts in (line.split("\t") for line in text.splitlines()):
        if parts[0] == "host":
            others.append((parts[1], parts[2]))
        else:
            rows[parts[0], int(parts[1])] = float(parts[2])
    return rows, others


def measure_first(bin_dir, device, folder):
    """Returns [name, ms if compiled, ms from the disk cache, ms from the disk cache as the first call of a process] for
    kjit's first calls with new operators."""
    program = os.path.join(folder, "first")
    compile_with_kjit("algorithms_first.c", program, bin_dir)
    say("first calls")
    return [line.split("\t") for line in output_of([program, device]).splitlines()]


def cell(kjit, cub):
    if kjit is None:
        return ""
    return f"{kjit:.1f}" if cub is None else f"{kjit:.1f} / {cub:.1f} = {kjit / cub:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--exponents", default="12,16,20,24,28")
    parser.add_argument("--cub")
    arguments = parser.parse_args()
    exponents = [int(e) for e in arguments.exponents.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "algorithms")
        compile_with_kjit("algorithms.c", program, arguments.bin_dir)
        say("kjit")
        rows, others = read(output_of([program, arguments.device, *map(str, exponents)]))
        firsts = measure_first(arguments.bin_dir, arguments.device, folder)
        cub = measure_cub(arguments.cub, folder) if arguments.device == "cuda" else {}
    machine = device_name(os.path.join(arguments.bin_dir, "kjit-run")) if arguments.device == "cuda" else processor_name()
    names = list(dict.fromkeys(name for name, _ in rows))
    table = [[name, *(cell(rows.get((name, e)), cub.get((name, e))) for e in exponents)] for name in names]
    print_table("Algorithms, us: kjit / CUB = ratio" if cub else "Algorithms, us", machine, ["", *(f"2^{e}" for e in exponents)], table)
    print_table("First call with an operator never seen, ms", machine, ["", "compiled", "from the disk cache", "first in a process"], firsts)
    print_table("On the host", machine, ["", "time"], [list(row) for row in others])


if __name__ == "__main__":
    main()
