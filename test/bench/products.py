#!/usr/bin/env python3
"""products.py BIN_DIR: the matrix products of the examples on the first GPU beside cuBLAS (through PyTorch), 4096 x 4096 x 4096, in one run: f32 without tensor cores, bf16 with them.
BIN_DIR is the folder of kjit-run. --all also times the other tunings of each kernel."""
import argparse
import os
import statistics

from report import kjit_bench, output_of, print_table, say

SIZE = 4096
GOALS = {"f32": 0.9, "bf16": 0.6}
# Compile-time parameters: the first one is the example's own choice.
F32 = ["4, 2", "2, 2", "2, 3", "4, 3"]
BF16 = [""]


def teraflops(us):
    return 2 * SIZE**3 / us / 1e6


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
    parser.add_argument("--kind", choices=list(GOALS), default=None)
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    kjit_run = os.path.join(arguments.bin_dir, "kjit-run")
    device = next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
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
