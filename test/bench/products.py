#!/usr/bin/env python3
"""products.py BIN_DIR: kjit_matmul on the first GPU beside cuBLAS (through PyTorch), shapes and types in one run; --epilogues: a bias and a gelu in the product, beside the product alone, PyTorch's fused call and its three calls; --bytes: i8 and e4m3 beside torch._int_mm and torch._scaled_mm; --examples: the matrix products of the examples, 4096 x 4096 x 4096.
BIN_DIR is the folder of kjit-run. --all also times the other tunings of each example."""
import argparse
import math
import os
import re
import statistics
import tempfile

from report import kjit_bench, output_of, print_table, say

SIZE = 4096
GOALS = {"f32": 0.9, "bf16": 0.6}
# Compile-time parameters. The first set is the example's own choice.
F32 = ["4, 2", "2, 2", "2, 3", "4, 3"]
BF16 = [""]


# Extents of kjit_matmul: batch, rows, sum, columns.
SHAPES = [(1, 4096, 4096, 4096), (1, 8192, 8192, 8192), (1, 1000, 1000, 1000), (1, 127, 4096, 333), (256, 128, 128, 128), (1, 65536, 64, 64), (1, 4096, 4096, 1), (1, 1, 1 << 24, 1)]
CALLS = 10  # number of calls in a row, because a short product takes less time than its launch
TYPES = {"f32": "float32", "tf32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16"}


# rows, sum, columns
LAYERS = [(4096, 4096, 4096), (8192, 1024, 4096), (1024, 4096, 1024), (256, 4096, 4096), (127, 4096, 333)]
FUNCS = '''
func gelu_of(v) { return v * 0.5 * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v))) }
func biased_gelu(s, b) { return gelu_of(s + b) }
func biased_relu(s, b) { return max(s + b, zero(dtype(s))) }
'''


def teraflops(us):
    return 2 * SIZE**3 / us / 1e6


def time_call(kjit_run, kind, shape, repetitions):
    """Returns the median device time of a matmul in microseconds."""
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
        torch.cuda._sleep(1000000)  # so that all calls are queued before the first one runs
        start.record()
        for _ in range(CALLS):
            torch.matmul(a, b, out=c)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times[5:])


def time_queued(call, repetitions):
    """Returns the median device time of a PyTorch call in microseconds."""
    import torch
    times = []
    for i in range(repetitions + 5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1000000)  # so that all calls are queued before the first one runs
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times[5:])


def time_text(kjit_run, arguments, call, repetitions, module=None):
    command = [kjit_run, *([module] if module else []), "--device", "cuda", "--quiet", "--bench", str(repetitions), "--repeat", str(CALLS)]
    for argument in arguments:
        command += ["--arg", argument]
    return float(re.search(r"median ([0-9.]+) us", output_of([*command, "--call", call])).group(1)) / CALLS


def measure_epilogues(kjit_run, repetitions):
    import torch
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "funcs.kir")
        with open(module, "w") as file:
            file.write(FUNCS)
        for m, k, n in LAYERS:
            x, w, b = (torch.randn(*s, device="cuda").to(torch.bfloat16) for s in ((m, k), (k, n), (n,)))
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            arguments = [f"a=randn:bf16[{m}, {k}]", f"b=randn:bf16[{k}, {n}]", f"v=randn:bf16[{n}]", f"c=zeros:bf16[{m}, {n}]"]

            def three():
                torch.matmul(x, w, out=out)
                out.add_(b)
                torch.nn.functional.gelu(out, approximate="tanh")

            alone = time_text(kjit_run, arguments, "c = matmul(a, b)", repetitions)
            relu, gelu = (time_text(kjit_run, arguments, f"c = matmul(a, b, epilogue=biased_{name}(v))", repetitions, module) for name in ("relu", "gelu"))
            peers = [time_queued(call, repetitions) for call in (lambda: torch.matmul(x, w, out=out), lambda: torch._addmm_activation(b, x, w, use_gelu=False), lambda: torch._addmm_activation(b, x, w, use_gelu=True), three)]
            rows.append([f"{m} x {k} x {n}", *(f"{us:.1f}" for us in (alone, relu, gelu, *peers)), f"{peers[2] / gelu:.2f}", f"{peers[3] / gelu:.2f}"])
            say(" ".join(rows[-1]))
    return rows


def measure_bytes(kjit_run, repetitions):
    """The right operand is contiguous along the sum, as torch._int_mm and torch._scaled_mm require, or across it."""
    import torch
    rows = []
    for m, k, n in [(4096, 4096, 4096), (8192, 8192, 8192), (1024, 1024, 1024), (512, 4096, 4096), (65536, 64, 64)]:
        flops = 2e-6 * m * k * n
        one = torch.ones((), device="cuda")
        for kind, element, result, option in (("i8", "i8", "i32", ""), ("e4m3", "u8", "bf16", ", e4m3=true")):
            whole = torch.randint(-4, 5, (m, k), device="cuda"), torch.randint(-4, 5, (n, k), device="cuda")
            if kind == "i8":
                x, y = (t.to(torch.int8) for t in whole)
                peer = time_queued(lambda: torch._int_mm(x, y.t()), repetitions)
            else:
                x, y = (t.to(torch.float8_e4m3fn) for t in whole)
                peer = time_queued(lambda: torch._scaled_mm(x, y.t(), one, one, out_dtype=torch.bfloat16), repetitions)
            fill, values = f"randint:{element}", ":low=-4:high=5" if kind == "i8" else ":low=40:high=72"  # 0.25 to 3.75
            for layout, of_b, call in (("deep", f"[{n}, {k}]", f"c = einsum(\"ij,kj->ik\", a, b{option})"), ("across", f"[{k}, {n}]", f"c = matmul(a, b{option})")):
                own = time_text(kjit_run, [f"a={fill}[{m}, {k}]{values}", f"b={fill}{of_b}{values}", f"c=zeros:{result}[{m}, {n}]"], call, repetitions)
                rows.append([kind, f"{m} x {k} x {n}", layout, f"{own:.1f}", f"{flops / own:.1f}", f"{peer:.1f}", f"{flops / peer:.1f}", f"{peer / own:.2f}"])
                say(" ".join(rows[-1]))
    return rows


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
    parser.add_argument("--epilogues", action="store_true")
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--kind", choices=list(TYPES), default=None)
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    kjit_run = os.path.join(arguments.bin_dir, "kjit-run")
    device = next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    if arguments.epilogues:
        print_table("Epilogues of bf16 products: rows x sum x columns, us", device, ["shape", "kjit, product", "bias + relu", "bias + gelu", "cuBLAS, product", "cuBLASLt, bias + relu", "bias + gelu", "three calls", "cuBLASLt / kjit, gelu", "three / kjit"],
                    measure_epilogues(kjit_run, arguments.repetitions))
        return
    if arguments.bytes:
        print_table("Products of 8 bits beside PyTorch: rows x sum x columns", device, ["type", "shape", "right factor", "kjit, us", "TOP/s", "PyTorch, us", "TOP/s", "PyTorch / kjit"], measure_bytes(kjit_run, arguments.repetitions))
        return
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
