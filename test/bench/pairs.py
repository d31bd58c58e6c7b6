#!/usr/bin/env python3
"""pairs.py BIN_DIR: measures reductions over pairs of rows without their matrix (kjit_pairs) on f32 points in 3
dimensions. On the first GPU it compares with PyTorch and, if it is installed, KeOps. With --device cpu it compares with
a loop in C (gcc -O3 -march=native -ffast-math -fopenmp) and with NumPy on blocks of rows. BIN_DIR is the folder of
kjit-run. Times are medians in ms."""
import argparse
import os
import re
import statistics
import tempfile
import time

from report import EXAMPLES, HERE, output_of, print_table, processor_name, say

CALLS = {
    "sum of exp(-d^2)": "r = pairs(gauss(1f32), x, add, y)",
    "nearest": "r = pairs(squared, x, argmin, y)",
    "10 nearest": "r, p = pairs_smallest(squared, x, 10, y)",
}


def measure_kjit(arguments, call):
    shapes = [f"x=rand:f32[{arguments.rows}, 3]", f"y=rand:f32[{arguments.points}, 3]"]
    command = [os.path.join(arguments.bin_dir, "kjit-run"), os.path.join(EXAMPLES, "pairs", "pairs.kir"), "--device", arguments.device, "--quiet", "--bench", str(arguments.repetitions), "--call", call]
    for shape in shapes:
        command += ["--arg", shape]
    return float(re.search(r"median ([0-9.]+) us", output_of(command)).group(1)) / 1e3


def torch_calls(arguments):
    """PyTorch computes the matrix, here in parts of as many rows as fit in memory; KeOps does not compute it."""
    import torch
    x, y = (torch.rand(n, 3, device="cuda") for n in (arguments.rows, arguments.points))
    parts = x.split(max(1, 2**31 // arguments.points))
    squared = lambda part: sum((part[:, k, None] - y[None, :, k]).square_() for k in range(3))
    peers = {"PyTorch": {
        "sum of exp(-d^2)": lambda: torch.cat([squared(part).neg_().exp_().sum(1) for part in parts]),
        "nearest": lambda: torch.cat([squared(part).argmin(1) for part in parts]),
        "10 nearest": lambda: [squared(part).topk(10, dim=1, largest=False) for part in parts],
    }}
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        say("no KeOps")
        return peers
    lazy = ((LazyTensor(x[:, None]) - LazyTensor(y[None])) ** 2).sum(-1)
    peers["KeOps"] = {"sum of exp(-d^2)": lambda: (-lazy).exp().sum(1), "nearest": lambda: lazy.argmin(1), "10 nearest": lambda: lazy.Kmin_argKmin(10, dim=1)}
    return peers


def measure_gpu(arguments):
    try:
        import torch
        peers = torch_calls(arguments)
    except ImportError:
        say("no PyTorch")
        return {}
    found = {}
    for peer, calls in peers.items():
        found[peer] = {}
        for name, call in calls.items():
            times = []
            for _ in range(arguments.repetitions + 2):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                call()
                end.record()
                torch.cuda.synchronize()
                times.append(start.elapsed_time(end))
            found[peer][name] = statistics.median(times[2:])
    return found


def measure_attention(arguments):
    """Returns a row of the table: one head of examples/pairs, with softmax, and PyTorch's call for it in f32. The
    results are compared."""
    import numpy as np
    n = arguments.keys
    rng = np.random.default_rng()
    inputs = {"query": rng.standard_normal((n, 32), dtype="f4"), "key": rng.standard_normal((n, 32), dtype="f4"), "value": rng.standard_normal((n, 16), dtype="f4"), "head": np.zeros((n, 16), "f4")}
    title = f"attention of one head, {n} queries and keys of 32, values of 16"
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "saved.npy")
        command = [os.path.join(arguments.bin_dir, "kjit-run"), os.path.join(EXAMPLES, "pairs", "pairs.kir"), "--device", arguments.device, "--quiet", "--bench", str(arguments.repetitions), "--save", f"head={saved}"]
        for name, value in inputs.items():
            np.save(os.path.join(folder, name), value)
            command += ["--arg", f"{name}=@{os.path.join(folder, name)}.npy"]
        output = output_of([*command, "--call", f"put(head)[{n}] = pairs(attend({32**-0.5:.9g}f32), query, both, key, value)"])
        mine, head = float(re.search(r"median ([0-9.]+) us", output).group(1)) / 1e3, np.load(saved)
    try:
        import torch
    except ImportError:
        say("no PyTorch")
        return [title, f"{mine:.2f}", "", ""]
    torch.backends.cuda.matmul.allow_tf32 = False
    query, key, value = (torch.from_numpy(inputs[name]).to("cuda" if arguments.device == "cuda" else "cpu")[None, None] for name in ("query", "key", "value"))
    times = []
    for _ in range(arguments.repetitions + 2):
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        result = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    if not np.allclose(head, result[0, 0].cpu().numpy(), rtol=1e-3, atol=1e-4):
        raise SystemExit("attention: the results differ")
    theirs = statistics.median(times[2:])
    return [title, f"{mine:.2f}", f"{theirs:.2f}", f"{theirs / mine:.2f}"]


def measure_numpy(arguments):
    """Runs once, in blocks whose matrix fits in the cache."""
    import numpy as np
    rng = np.random.default_rng()
    x, y = (rng.random((n, 3), dtype="f4") for n in (arguments.rows, arguments.points))
    start = time.perf_counter()
    for first in range(0, len(x), 16):
        d = sum((x[first:first + 16, k, None] - y[:, k]) ** 2 for k in range(3))
        np.exp(-d).sum(1)
    return 1e3 * (time.perf_counter() - start)


def measure_cpu(arguments):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "pairs_loop")
        output_of(["gcc", "-O3", "-march=native", "-ffast-math", "-fopenmp", os.path.join(HERE, "pairs_loop.c"), "-o", program, "-lm"])
        sums, places = output_of([program, str(arguments.rows), str(arguments.points), str(arguments.repetitions)]).split()[:2]
    return {"C": {"sum of exp(-d^2)": float(sums), "nearest": float(places)}, "NumPy": {"sum of exp(-d^2)": measure_numpy(arguments)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--points", type=int, default=100000)
    parser.add_argument("--keys", type=int, default=8192, help="of attention, and as many queries")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    found = measure_cpu(arguments) if arguments.device == "cpu" else measure_gpu(arguments)
    rows = []
    for name, call in CALLS.items():
        ms = measure_kjit(arguments, call)
        cells = [name, f"{ms:.2f}"]
        for times in found.values():
            cells += [f"{times[name]:.2f}", f"{times[name] / ms:.2f}"] if name in times else ["", ""]
        rows.append(cells)
    devices = output_of([os.path.join(arguments.bin_dir, "kjit-run"), "--devices"]).splitlines()
    machine = processor_name() if arguments.device == "cpu" else next((line for line in devices if line.startswith("cuda")), "no GPU")
    peers = [cell for peer in found for cell in (f"{peer}, ms", f"{peer} / kjit")]
    print_table(f"{arguments.rows} rows with {arguments.points} points in 3 dimensions, f32", machine, ["reduction", "kjit, ms", *peers], rows)
    print_table("One head, f32", machine, ["", "kjit, ms", "PyTorch, ms", "PyTorch / kjit"], [measure_attention(arguments)])


if __name__ == "__main__":
    main()
