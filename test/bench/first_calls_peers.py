#!/usr/bin/env python3
"""first_calls_peers.py [--rounds N]: the first calls of first_calls.py by CuPy, JAX, PyTorch and cuda.compute (where they are installed) on the first GPU, in milliseconds. Each library runs in
processes of its own, once with empty disk caches and once with the caches that this process has filled. JAX's persistent cache is on. The driver's cache is off. Each process has called another
operation before, and a call ends when the device is idle. Times are the median of the rounds. A dash means that the library has no such function."""
import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time

from report import print_table

N = 1_000_000
CALLS = ("reduce, add, f32", "reduce, add, f64", "scan, add, i64", "sort, f32", "sort, i64", "argsort, f64", "unique, i32", "bincount, i32, 256 bins", "matmul, f32, 1024")


def cupy_calls():
    import cupy

    made = {t: cupy.zeros(N, t) for t in ("float32", "float64", "int64", "int32")}
    matrix = cupy.zeros((1024, 1024), "float32")
    cupy.zeros(1000, "uint8") ^ cupy.uint8(1)
    calls = (
        lambda: cupy.sum(made["float32"]), lambda: cupy.sum(made["float64"]), lambda: cupy.cumsum(made["int64"]), lambda: cupy.sort(made["float32"]), lambda: cupy.sort(made["int64"]),
        lambda: cupy.argsort(made["float64"]), lambda: cupy.unique(made["int32"]), lambda: cupy.bincount(made["int32"], minlength=256), lambda: matrix @ matrix,
    )
    return calls, cupy.cuda.Device().synchronize


def torch_calls():
    import torch

    made = {t: torch.zeros(N, dtype=getattr(torch, t), device="cuda") for t in ("float32", "float64", "int64", "int32")}
    matrix = torch.zeros((1024, 1024), device="cuda")
    torch.zeros(1000, dtype=torch.uint8, device="cuda") ^ 1
    calls = (
        lambda: torch.sum(made["float32"]), lambda: torch.sum(made["float64"]), lambda: torch.cumsum(made["int64"], 0), lambda: torch.sort(made["float32"]), lambda: torch.sort(made["int64"]),
        lambda: torch.argsort(made["float64"]), lambda: torch.unique(made["int32"]), lambda: torch.bincount(made["int32"], minlength=256), lambda: matrix @ matrix,
    )
    return calls, torch.cuda.synchronize


def jax_calls():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", os.environ["XDG_CACHE_HOME"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    import jax.numpy as jnp

    made = {t: jnp.zeros(N, t) for t in ("float32", "float64", "int64", "int32")}
    matrix = jnp.zeros((1024, 1024), "float32")
    last = [jax.jit(lambda x: x ^ 1)(jnp.zeros(1000, "uint8"))]

    def keep(call):
        return lambda: last.__setitem__(0, call())

    calls = (
        lambda: jnp.sum(made["float32"]), lambda: jnp.sum(made["float64"]), lambda: jnp.cumsum(made["int64"]), lambda: jnp.sort(made["float32"]), lambda: jnp.sort(made["int64"]),
        lambda: jnp.argsort(made["float64"]), lambda: jnp.unique(made["int32"]), lambda: jnp.bincount(made["int32"], length=256), lambda: matrix @ matrix,
    )
    return [keep(call) for call in calls], lambda: jax.block_until_ready(last[0])


def compute_calls():
    import cuda.compute as compute
    import cupy
    import numpy as np

    made = {t: cupy.zeros(N, t) for t in ("float32", "float64", "int64")}
    one = {t: cupy.zeros(1, t) for t in made}
    like = {t: cupy.zeros(N, t) for t in made}
    compute.reduce_into(d_in=cupy.zeros(1000, "uint8"), d_out=cupy.zeros(1, "uint8"), op=compute.OpKind.BIT_XOR, num_items=1000, h_init=np.zeros(1, "uint8"))

    def reduce(t):
        return lambda: compute.reduce_into(d_in=made[t], d_out=one[t], op=compute.OpKind.PLUS, num_items=N, h_init=np.zeros(1, t))

    def sort(t):
        return lambda: compute.radix_sort(d_in_keys=made[t], d_out_keys=like[t], order=compute.SortOrder.ASCENDING, num_items=N)

    scan = lambda: compute.inclusive_scan(d_in=made["int64"], d_out=like["int64"], op=compute.OpKind.PLUS, init_value=np.zeros(1, "int64"), num_items=N)  # noqa: E731
    return (reduce("float32"), reduce("float64"), scan, sort("float32"), sort("int64"), None, None, None, None), cupy.cuda.Device().synchronize


PEERS = {"cupy": ("CuPy", cupy_calls), "jax": ("JAX", jax_calls), "torch": ("PyTorch", torch_calls), "cuda.compute": ("cuda.compute", compute_calls)}


def measure(module):
    """Runs in a separate process: prints the time of each call."""
    calls, wait = PEERS[module][1]()
    wait()
    for call in calls:
        if call is None:
            print("nan")
            continue
        start = time.perf_counter()
        try:
            call()
            wait()
            print(1e3 * (time.perf_counter() - start))
        except (AttributeError, TypeError, ValueError) as error:  # another version of the library
            print(f"{module}: {error}", file=sys.stderr)
            print("nan")


def run(module, cache):
    environment = dict(os.environ, CUDA_CACHE_DISABLE="1", XDG_CACHE_HOME=cache, CUPY_CACHE_DIR=os.path.join(cache, "cupy"), HOME=cache)
    command = [sys.executable, os.path.abspath(__file__), "--once", module]
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    return list(map(float, finished.stdout.split())) if finished.returncode == 0 else []


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def main(rounds):
    columns = {}
    for _ in range(rounds):
        for module, (name, _) in PEERS.items():
            if not is_installed(module):
                continue
            with tempfile.TemporaryDirectory() as cache:
                for state in ("new", "cached"):
                    times = run(module, cache)
                    if len(times) == len(CALLS):
                        columns.setdefault(f"{name}, {state}", []).append(times)
    medians = [[statistics.median(times) for times in zip(*rounds)] for rounds in columns.values()]
    rows = [[name, *("-" if t != t else f"{t:.2f}" for t in times)] for name, *times in zip(CALLS, *medians)]
    print_table("First calls of other libraries, ms", "cuda", ["call", *columns], rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--once", choices=PEERS, help=argparse.SUPPRESS)
    given = options.parse_args()
    measure(given.once) if given.once else main(given.rounds)
