#!/usr/bin/env python3
"""algorithms_cpu.py BIN_DIR [--exponents 12,16,20,24] [--rounds 5] [--rows WORDS] [--median] [--peers PROGRAM] [--cores
N]: compares kjit's algorithms on the CPU with OpenMP loops, C++17's parallel algorithms with oneTBB, and NumPy, on the
same cores. BIN_DIR is the folder of kjit-run. The program needs g++ (gcc -O3 -march=native -fopenmp), and libtbb-dev
for the parallel algorithms. It reports missing peers and leaves them out. In each round, all libraries run in turn for
each row. The program prints the minimum time of all rounds, or with --median the minimum of the medians, for a quiet
machine. NumPy uses one core and allocates its results in each call."""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np

from report import HERE, compile_with_kjit, output_of, print_table, processor_name, say

REDUCTIONS = ["sum f32", "max f32", "argmax f32", "sum of rows of 4096 f32", "sum over the first axis, rows of 4096 f32", "sum of rows of 16 f32", "sum over the first axis, rows of 16 f32"]
MAPS = ["map a * x + y f32", "map exp f32", "map a[:, None] * b[None] + c, rows of 4096 f32"]
OTHERS = ["inclusive scan i32", "inclusive scan f64", "select half of u32", "unique, 256 values", "histogram, 256 bins of u32", "histogram, 256 bins of f32"]
SORTS = ["radix sort u32", "radix sort u64", "radix sort f32", "merge sort u32, own comparison", "argsort u32"]
PEERS = ["OpenMP", "C++", "NumPy"]


class Answers:
    """A program that answers requests for times, so that several programs can be measured in turn."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *request):
        self.process.stdin.write("\t".join(map(str, request)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[0]} gave no answer to {request}")
        return None if line == "-\n" else tuple(map(float, line.split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class NumPy:
    """The rows in NumPy, with the same numbers."""

    def __init__(self, most):
        z = np.arange(1, (1 << most) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        self.wide = z ^ z >> np.uint64(27)
        self.words = (z >> np.uint64(32)).astype(np.uint32)
        self.few = self.words & 255
        self.reals = (self.words >> 8).astype(np.float32) / np.float32(1 << 24)
        self.wide_reals = self.reals.astype(np.float64)
        self.other_reals = 1 - self.reals
        self.generator = np.random.Generator(np.random.Philox(7))

    def calls(self, n):
        words, few, reals, wide_reals, other_reals, wide = (array[:n] for array in (self.words, self.few, self.reals, self.wide_reals, self.other_reals, self.wide))
        rows = {
            "sum f32": lambda: reals.sum(),
            "max f32": lambda: reals.max(),
            "argmax f32": lambda: reals.argmax(),
            "map a * x + y f32": lambda: np.float32(2.5) * reals + other_reals,
            "map exp f32": lambda: np.exp(reals),
            "inclusive scan i32": lambda: np.cumsum(words, dtype=np.uint32),
            "inclusive scan f64": lambda: np.cumsum(wide_reals),
            "select half of u32": lambda: words[(words & 1).astype(bool)],
            "unique, 256 values": lambda: few[np.concatenate(([True], few[1:] != few[:-1]))],
            "histogram, 256 bins of u32": lambda: np.bincount(few, minlength=256),
            "histogram, 256 bins of f32": lambda: np.histogram(reals, 256, (0, 1)),
            "uniform f32": lambda: self.generator.random(n, np.float32),
            "normal f32": lambda: self.generator.standard_normal(n, np.float32),
            "radix sort u32": lambda: np.sort(words),
            "radix sort u64": lambda: np.sort(wide),
            "radix sort f32": lambda: np.sort(reals),
            "argsort u32": lambda: np.argsort(words, kind="stable"),
        }
        for columns in (4096, 16):
            if n >= 1 << 16:
                matrix = reals.reshape(-1, columns)
                rows[f"sum of rows of {columns} f32"] = lambda matrix=matrix: matrix.sum(1)
                rows[f"sum over the first axis, rows of {columns} f32"] = lambda matrix=matrix: matrix.sum(0)
        if n >= 1 << 16:
            matrix = reals.reshape(-1, 4096)
            rows["map a[:, None] * b[None] + c, rows of 4096 f32"] = lambda: reals[:n // 4096, None] * reals[None, :4096] + matrix
        return rows

    def ask(self, row, exponent):
        call = self.calls(1 << exponent).get(row)
        if not call:
            return None
        once = 1e9
        for _ in range(3):
            start = time.perf_counter()
            call()
            once = min(once, time.perf_counter() - start)
        runs, times = max(1, min(100, int(200e-6 / once))), []
        for _ in range(1 if once > 0.1 else 5 if once > 0.01 else 15):
            start = time.perf_counter()
            for _ in range(runs):
                call()
            times.append((time.perf_counter() - start) / runs * 1e6)
        return sorted(times)[len(times) // 2], min(times)


def start_peers(program, folder, most):
    if program:
        return Answers([program, str(most)])
    program = os.path.join(folder, "algorithms_cpu")
    command = ["g++", "-std=c++17", "-O3", "-march=native", "-fopenmp", os.path.join(HERE, "algorithms_cpu.cpp"), "-o", program]
    for options in (["-DHAS_TBB", "-ltbb"], []):
        try:
            output_of(command + options)
            return Answers([program, str(most)])
        except (OSError, RuntimeError) as error:
            say(f"without {'oneTBB (libtbb-dev), so no parallel algorithms' if options else 'g++'}: {str(error)[:300]}")
    return None


def ratio(kjit, peer):
    return "-" if peer is None else f"{kjit / peer:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--exponents", default="12,16,20,24")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="", help="only the rows that have this in their name")
    parser.add_argument("--peers", help="algorithms_cpu.cpp, compiled before")
    parser.add_argument("--cores", type=int, help="how many; default: all")
    parser.add_argument("--median", action="store_true")
    arguments = parser.parse_args()
    exponents = [int(e) for e in arguments.exponents.split(",")]
    cores = arguments.cores or len(os.sched_getaffinity(0))
    os.environ["OMP_NUM_THREADS"] = str(cores)  # as for kjit; oneTBB gets the same number of threads
    least = {}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "algorithms")
        compile_with_kjit("algorithms.c", program, arguments.bin_dir)
        kjit = Answers([program, "cpu", "ask", *map(str, exponents)])
        peers, numpy = start_peers(arguments.peers, folder, max(exponents)), NumPy(max(exponents))
        rows = [(row, exponent) for row in REDUCTIONS + MAPS + OTHERS + SORTS if arguments.rows in row for exponent in exponents if exponent >= 16 or " rows of " not in row]
        for turn in range(arguments.rounds):
            say(f"round {turn + 1} of {arguments.rounds}")
            for row, exponent in rows:
                times = {"kjit": kjit.ask(row, exponent), "NumPy": numpy.ask(row, exponent)}
                for peer in PEERS[:2] if peers else []:
                    times[peer] = peers.ask(peer, row, exponent)
                for who, us in times.items():
                    if us is not None:
                        us = us[0 if arguments.median else 1]
                        least[who, row, exponent] = min(us, least.get((who, row, exponent), us))
        for program in (kjit, peers):
            if program:
                program.close()
    table = []
    for row in dict.fromkeys(row for row, _ in rows):
        cells = []
        for e in exponents:
            us = least.get(("kjit", row, e))
            cells.append("" if us is None else f"{us:.1f}: " + " ".join(ratio(us, least.get((peer, row, e))) for peer in PEERS))
        table.append([row, *cells])
    print_table("Algorithms on the CPU, us, and the ratios kjit / OpenMP, kjit / C++17 with oneTBB, kjit / NumPy", f"{processor_name()}, {cores} cores, NumPy {np.__version__}", ["", *(f"2^{e}" for e in exponents)], table)


if __name__ == "__main__":
    main()
