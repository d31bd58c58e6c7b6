#!/usr/bin/env python3
"""interrupt_cost.py [EXAMPLE...]: what interruptible code costs, for the example programs: least time of kjit-run --bench in microseconds without and with it, taken in turn, their ratio, and what a launch takes of the host; the geometric mean last."""
import argparse
import math
import os
import re
import subprocess

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def rows(n, side, bodies, steps, product):
    """Of arrays with n elements, pictures and matrices of side x side, products of product x product."""
    vectors = f"r=zeros:f32[{n}] x=rand:f32[{n}] y=rand:f32[{n}]"
    matrices = f"C=zeros:f32[{product},{product}] A=rand:f32[{product},{product}] B=rand:f32[{product},{product}]"
    halves = matrices.replace("f32", "bf16")
    square = f"f32[{side},{side}]"
    m = n // 8
    options = f"call=zeros:f32[{m}] put=zeros:f32[{m}] s=rand:f32[{m}]:low=5:high=30 x=rand:f32[{m}]:low=1:high=100 t=rand:f32[{m}]:low=0.25:high=10"
    blocks = (product + 15) // 16
    return {
        "axpy": ("axpy", vectors + " a=2.5f32", "axpy", None),
        "vector_add": ("vector_add", vectors, "vector_add(r, x, y)", None),
        "vector_add_stride": ("vector_add", vectors, "vector_add_stride[1000,256](r, x, y)", None),
        "vector_add_guard": ("vector_add", vectors, f"vector_add_guard[{(n + 255) // 256},256](r, x, y)", None),
        "abs_sum": ("abs_sum", f"total=zeros:f32[1] x=rand:f32[{n}]", "abs_sum[1056,256](total, x)", None),
        "histogram256": ("histogram", f"bins=zeros:u32[256] data=randint:u8[{2 * n}]:high=256", "histogram256[1056,256](bins, data)", None),
        "black_scholes": ("black_scholes", options, "black_scholes(call, put, s, x, t, 0.02f32, 0.3f32)", None),
        "diffusion": ("diffusion", f"next=zeros:{square} field=rand:{square}", f"diffusion[{side // 8}x{side // 8},8x8](next, field, 8)", None),
        "mandelbrot": ("mandelbrot", f"steps=zeros:i32[{side},{side}]", f"mandelbrot(steps, -2.0f64, 1.0f64, {2.0 / side}f64, {steps})", None),
        "normalize_rows": ("normalize_rows", f"out=zeros:{square} A=rand:{square}", f"normalize_rows[{side},256](out, A)", None),
        "transpose": ("transpose", f"out=zeros:{square} in_=rand:{square}", "transpose(out, in_)", None),
        "matmul_naive": ("matmul", matrices, f"matmul_naive[{blocks}x{blocks},16x16](C, A, B)", None),
        "matmul": ("matmul", matrices, "matmul(C, A, B)", None),
        "nbody": ("nbody", f"acc=zeros:f32x4[{bodies}] pos=rand:f32x4[{bodies}]", "accelerate(acc, pos, 0.01f32)", None),
        "product_f32": ("product_f32", matrices, "product_f32(C, A, B)", "cuda"),
        "product_bf16": ("product_bf16", halves, "product_bf16(C, A, B)", "cuda"),
    }


def command_of(arguments, row, is_interruptible, repetitions):
    folder, arrays, launch, _ = row
    command = [arguments.kjit_run, "-q", "--device", arguments.device, "--interruptible", "yes" if is_interruptible else "no", os.path.join(EXAMPLES, folder, folder + ".kir"), "--launch", launch, "--bench", str(repetitions)]
    for array in arrays.split():
        command += ["--arg", array]
    return command


def measure(arguments, row, is_interruptible):
    """Microseconds: of the launch on the device, the least; of the host, for a launch, the median."""
    done = subprocess.run(command_of(arguments, row, is_interruptible, arguments.repetitions), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"min ([0-9.]+) (ns|us|ms|s)\b.*host ([0-9.]+) us", done.stdout)
    if not found:
        print(f"{row[2]}: {done.stdout.strip()[:600]}")
    return (float(found.group(1)) * UNITS[found.group(2)], float(found.group(3))) if found else (math.inf, math.inf)


def count(arguments, row, is_interruptible):
    """Thousands of instructions of a launch on the CPU, by valgrind, on one core: of some launches more. The code comes from the disk cache, where the first run has put it, made for the processor that valgrind shows. valgrind cannot read the libraries' own debug information: strip a copy of them."""
    counts = []
    for repetitions in (1, 1, 4):
        watch = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        command = ["taskset", "-c", "0", *watch, *command_of(arguments, row, is_interruptible, repetitions)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = re.search(r"I\s+refs:\s+([0-9,]+)", done.stdout)
        counts.append(int(found.group(1).replace(",", "")) if found else 0)
        if done.returncode:
            print(f"{row[2]}: {done.stdout.strip()[:600]}")
            return math.inf
    return (counts[2] - counts[1]) / 3 / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*")
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--instructions", action="store_true", help="CPU: thousands of instructions instead of microseconds, which other processes do not change; smaller arrays")
    arguments = parser.parse_args()
    sizes = (1 << 26, 4096, 32768, 1000, 4096) if arguments.device != "cpu" else (100000, 200, 512, 50, 96) if arguments.instructions else (2000000, 1000, 2048, 200, 256)
    all_rows = rows(*sizes)
    ratios = []
    print(f"{'example':20}{'plain':>14}{'interruptible':>18}{'ratio':>8}{'host':>8}{'':>8}", flush=True)
    for name in arguments.examples or all_rows:
        row = all_rows[name]
        if row[3] and not arguments.device.startswith(row[3]):
            continue
        least, host = [math.inf, math.inf], [math.inf, math.inf]
        for _ in range(1 if arguments.instructions else arguments.rounds):
            for way in range(2):
                found = (count(arguments, row, way == 1), math.nan) if arguments.instructions else measure(arguments, row, way == 1)
                least[way], host[way] = min(least[way], found[0]), min(host[way], found[1])
        if max(least) == math.inf:
            print(f"{name:20}{'was not measured':>40}", flush=True)
            continue
        ratios.append(least[1] / least[0])
        print(f"{name:20}{least[0]:14.1f}{least[1]:18.1f}{ratios[-1]:8.3f}{host[0]:8.1f}{host[1]:8.1f}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, most {max(ratios):.3f}")


if __name__ == "__main__":
    main()
