#!/usr/bin/env python3
"""products.py BIN_DIR: kjit_matmul on the first GPU beside cuBLAS (through PyTorch), shapes and types in one run; --examples: the matrix products of the examples, 4096 x 4096 x 4096.
BIN_DIR is the folder of kjit-run. --all also times the other tunings of each example."""
import argparse
import math
import os
import re
import statistics

from report import kjit_bench, output_of, print_table, say

SIZE = 4096
GOALS = {"f32": 0.9, "bf16": 0.6}
# Compile-time parameters: the first one is the example's own choice.
F32 = ["4, 2", "2, 2", "2, 3", "4, 3"]
BF16 = [""]


# Of kjit_matmul: batch, rows, sum, columns.
SHAPES = [(1, 4096, 4096, 4096), (1, 8192, 8192, 8192), (1, 1000, 1000, 1000), (1, 127, 4096, 333), (256, 128, 128, 128), (1, 65536, 64, 64), (1, 4096, 4096, 1), (1, 1, 1 << 24, 1)]
CALLS = 10  # in a row, since short ones take less than it takes to start them
TYPES = {"f32": "float32", "tf32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16"}


def teraflops(us):
    return 2 * SIZE**3 / us / 1e6


def time_call(kjit_run, kind, shape, repetitions):
    """Median device time of a matmul in microseconds."""
    batch, m, k, n = shape
    lead, element = f"{batch}, " if batch > 1 else "", "f32" if kind == "tf32" else kind
    command = [kjit_run, "--device", "cuda", "--quiet", "--bench", str(repetitions), "--repeat", str(CALLS), "--arg", f"a=rand:{element}[{lead}{m}, {k}]:low=-1", "--arg", f"b=rand:{element}[{lead}{k}, {n}]:low=-1",
               "--arg", f"c=zeros:{element}[{lead}{m}, {n}]", "--call", "c = matmul(a, b)" if kind != "tf32" else "c = matmul(a, b, tf32=true)"]
    return float(re.search(r"median ([0-9.]+) us", output_of(command)).group(1)) / CALLS


def time_torch(kind, shape, repetitions):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    batch, m, k, n = shape
    lead, dtype = [batch] if batch > 1 else [], getattr(torch, TYPES[kind])
    a, b = (torch.rand(*lead, *s, device="cuda").mul_(2).sub_(1).to(dtype) for s in ((m, k), (k, n)))
    c = torch.empty(*lead, m, n, device="cuda", dtype=dtype)
    times = []
    for i in range(repetitions + 5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1000000)  # so that all are queued before the first one runs
        start.record()
        for _ in range(CALLS):
            torch.matmul(a, b, out=c)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times[5:])


def measure_calls(kjit_run, kinds, repetitions):
    rows, ratios = [], []
    for kind in kinds:
        for shape in SHAPES:
            own, peer = time_call(kjit_run, kind, shape, repetitions), time_torch(kind, shape, repetitions)
            batch, m, k, n = shape
            flops = 2e-6 * batch * m * k * n
            rows.append([kind, (f"{batch} x " if batch > 1 else "") + f"{m} x {k} x {n}", f"{own:.1f}", f"{flops / own:.1f}", f"{peer:.1f}", f"{flops / peer:.1f}", f"{peer / own:.2f}"])
            ratios.append(peer / own)
            say(" ".join(rows[-1]))
    rows.append(["geometric mean", "", "", "", "", "", f"{math.exp(statistics.mean(math.log(r) for r in ratios)):.2f}"])
    return rows


def measure_kjit(kjit_run, kind, tuning, repetitions):
    file = f"product_{kind}/product_{kind}.kir"
    square = f"{kind}[{SIZE}, {SIZE}]"
    arguments = [f"c=zeros:{square}", f"a=rand:{square}:low=-1", f"b=rand:{square}:low=-1"]
    return kjit_bench(kjit_run, "cuda", file, arguments, f"product_{kind}(c, a, b{', ' if tuning else ''}{tuning})", repetitions)[0]


def measure_cublas(kind, repetitions):
    try:
        import torch
    except ImportError:
        say("no PyTorch, so no cuBLAS")
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
    a, b = (torch.rand(SIZE, SIZE, device="cuda").mul_(2).sub_(1).to(dtype) for _ in range(2))
    times = []
    for i in range(repetitions + 5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.matmul(a, b)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times[5:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--kind", choices=list(TYPES), default=None)
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    kjit_run = os.path.join(arguments.bin_dir, "kjit-run")
    device = next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    if not arguments.examples:
        rows = measure_calls(kjit_run, [arguments.kind] if arguments.kind else list(TYPES), arguments.repetitions)
        print_table("kjit_matmul beside cuBLAS: rows x sum x columns", device, ["type", "shape", "kjit, us", "TFLOP/s", "cuBLAS, us", "TFLOP/s", "cuBLAS / kjit"], rows)
        return
    rows = []
    for kind, tunings in (("f32", F32), ("bf16", BF16)):
        if arguments.kind not in (None, kind):
            continue
        say(kind)
        peer = measure_cublas(kind, arguments.repetitions)
        for tuning in tunings if arguments.all else tunings[:1]:
            try:
                us = measure_kjit(kjit_run, kind, tuning, arguments.repetitions)
            except RuntimeError as error:
                say(str(error))
                continue
            ratio = f"{peer / us:.2f}" if peer else ""
            rows.append([f"{kind}, ({tuning})" if tuning else kind, f"{us:.0f}", f"{teraflops(us):.1f}", f"{peer:.0f}" if peer else "", f"{teraflops(peer):.1f}" if peer else "", ratio, GOALS[kind]])
    print_table(f"Products of {SIZE} x {SIZE} matrices", device, ["product", "kjit, us", "TFLOP/s", "cuBLAS, us", "TFLOP/s", "kjit / cuBLAS", "goal"], rows)


if __name__ == "__main__":
    main()
