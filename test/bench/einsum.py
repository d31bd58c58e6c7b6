#!/usr/bin/env python3
"""einsum.py BIN_DIR [--device cuda] [--small]: measures einsum, products with an epilogue func, and random fills in one
run, with kjit-run and, if they are installed, with CuPy and PyTorch on the first GPU, or with NumPy on the CPU. BIN_DIR
is the folder of kjit-run. The program compares sums of the results. Times are medians of consecutive calls. --small:
small extents, to test the program itself."""
import argparse
import os
import re
import statistics
import tempfile
import time

import numpy as np

from report import EXAMPLES, output_of, print_table, processor_name, say

REPETITIONS, BATCH = 15, 5

# expression, and the extents of each operand at full size and with --small
SUMS = [
    ("ij,jk->ik", {"i": 4096, "j": 4096, "k": 4096}),
    ("bij,bjk->bik", {"b": 256, "i": 128, "j": 128, "k": 128}),
    ("ijk,ilm,njm,nlk->", dict.fromkeys("ijklmn", 64)),
    ("ij,jk->k", {"i": 10000, "j": 5000, "k": 7000}),
    ("ij,ij->i", {"i": 65536, "j": 256}),
]
# the call in kjit-run, and with a generator of CuPy or NumPy
RANDOM = [
    ("random_uniform(x, seed=7)", lambda g, n, t: g.random(n, dtype=t)),
    ("random_normal(x, seed=7)", lambda g, n, t: g.standard_normal(n, dtype=t)),
    ("random_exponential(x, seed=7)", lambda g, n, t: g.standard_exponential(n, dtype=t)),
]


class Peers:
    """Returns (name, array module, wait, einsum) for each installed library. The first library has a random number
    generator."""

    def __init__(self, device):
        self.all, self.generator = [], None
        if device == "cpu":
            self.all.append((f"NumPy {np.__version__}", np.asarray, lambda: None, lambda e, *x: np.einsum(e, *x, optimize=True)))
            self.generator = np.random.Generator(np.random.Philox(7))
            return
        self.add_cupy()
        self.add_torch()

    def add_cupy(self):
        try:
            import cupy
        except ImportError as error:
            say(f"no CuPy: {error}")
            return
        self.all.append((f"CuPy {cupy.__version__}", cupy.asarray, cupy.cuda.Device().synchronize, lambda e, *x: cupy.einsum(e, *x, optimize=True)))
        self.generator = cupy.random.Generator(cupy.random.Philox4x3210(7))

    def add_torch(self):
        try:
            import torch
        except ImportError as error:
            say(f"no PyTorch: {error}")
            return
        self.all.append((f"PyTorch {torch.__version__.split('+')[0]}", lambda x: torch.from_numpy(x).cuda(), torch.cuda.synchronize, torch.einsum))

    def names(self):
        return [name for name, *_ in self.all]


def measure(call, wait):
    """Returns (median us of one of several consecutive calls, the last result)."""
    times = []
    for _ in range(REPETITIONS + 3):
        wait()
        start = time.perf_counter()
        for _ in range(BATCH):
            result = call()
        wait()
        times.append((time.perf_counter() - start) * 1e6 / BATCH)
    return statistics.median(times[3:]), result


def host(x):
    for name in ("cpu", "get"):
        x = getattr(x, name)() if hasattr(x, name) else x
    return np.asarray(x)


def kjit_median(kjit_run, device, options, call):
    command = [kjit_run, "--device", device, "--quiet", "--bench", str(REPETITIONS), "--repeat", str(BATCH), "--call", call, *options]
    return float(re.search(r"median ([0-9.]+) us", output_of(command)).group(1)) / BATCH


def row(title, mine, theirs):
    return [title, f"{mine:.0f}", *(f"{t:.0f} ({t / mine:.2f})" if t else "" for t in theirs)]


def measure_sum(kjit_run, device, folder, peers, expression, extents):
    shapes = [[extents[letter] for letter in term] for term in expression.split("->")[0].split(",")]
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape, dtype="f4") for shape in shapes]
    options, names = ["--save", f"r={os.path.join(folder, 'r.npy')}"], [f"x{i}" for i in range(len(arrays))]
    for name, x in zip(names, arrays):
        np.save(os.path.join(folder, name + ".npy"), x)
        options += ["--arg", f"{name}=@{os.path.join(folder, name + '.npy')}"]
    mine = kjit_median(kjit_run, device, options, f'r = einsum("{expression}", {", ".join(names)})')
    result, theirs = np.load(os.path.join(folder, "r.npy")), []
    for name, to_device, wait, einsum in peers.all:
        there = [to_device(x) for x in arrays]
        us, expected = measure(lambda: einsum(expression, *there), wait)
        theirs.append(us)
        expected = host(expected)
        if not np.allclose(result, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max()):
            raise SystemExit(f"{expression}: kjit and {name} differ by {np.abs(result - expected).max()}")
    return row(f"`{expression}` of {', '.join('x'.join(map(str, s)) for s in shapes)}", mine, theirs)


def measure_random(kjit_run, device, peers, call, peer, n):
    mine = kjit_median(kjit_run, device, ["--arg", f"x=zeros:f32[{n}]"], call)
    theirs = [None for _ in peers.all]
    if peers.generator:
        theirs[0] = measure(lambda: peer(peers.generator, n, np.float32), peers.all[0][2])[0]
    return row(f"`{call}`, {n} f32", mine, theirs)


def measure_layer(kjit_run, device, peers, m, n, k):
    """A product with bias and activation in the stored layout, of bf16."""
    options = [os.path.join(EXAMPLES, "layers", "layers.kir")]
    for name, shape in (("a", f"{m},{n}"), ("b", f"{n},{k}"), ("bias", f"{k}"), ("layer", f"{m},{k}")):
        options += ["--arg", f"{name}=rand:{'bf16' if name in 'ab' else 'f32'}[{shape}]:low=-1"]
    mine, theirs = kjit_median(kjit_run, device, options, f"activate(bias, layer)[{m}, {k}] = matmul(a, b)"), [None for _ in peers.all]
    for i, (name, to_device, wait, _) in enumerate(peers.all):
        if not name.startswith("PyTorch"):
            continue
        import torch
        a, b, bias = (torch.rand(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, n), (n, k), (k,)))
        theirs[i] = measure(lambda: torch.nn.functional.gelu(torch.addmm(bias, a, b)), wait)[0]
    return row(f"GELU of a bf16 product {m} x {n} x {k} and a bias, f32 result (PyTorch: addmm, gelu, bf16)", mine, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true")
    o = parser.parse_args()
    kjit_run, peers, rows = os.path.join(o.bin_dir, "kjit-run"), Peers(o.device), []
    with tempfile.TemporaryDirectory() as folder:
        for expression, extents in SUMS:
            say(expression)
            extents = {letter: min(extent, 12) for letter, extent in extents.items()} if o.small else extents
            rows.append(measure_sum(kjit_run, o.device, folder, peers, expression, extents))
    for call, peer in RANDOM:
        say(call)
        rows.append(measure_random(kjit_run, o.device, peers, call, peer, 1 << (16 if o.small else 28)))
    say("a layer")
    rows.append(measure_layer(kjit_run, o.device, peers, *((64, 64, 64) if o.small else (4096, 4096, 4096))))
    machine = processor_name() if o.device == "cpu" else next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    print_table("einsum and random numbers, us (times as fast as the peer)", machine, ["", "kjit", *peers.names()], rows)


if __name__ == "__main__":
    main()
