#!/usr/bin/env python3
"""first_calls.py BUILD [--device cpu]: first calls of algorithms from Python, ms by the clock: from nothing, from the file of compiled kernels
that ships with kjit, and from the user's disk cache in the next process. BUILD is a build tree with the target kjit-kernels built. The driver's
own cache is off. Each process has called another algorithm before. With no_driver.c in place of the driver the times are kjit's part alone."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from report import print_table

N = 1_000_000
CALLS = {
    "reduce, add, f32": ("f32", N, lambda kjit, x: kjit.reduce(x, "add")),
    "reduce, add, f64": ("f64", N, lambda kjit, x: kjit.reduce(x, "add")),
    "scan, add, i64": ("i64", N, lambda kjit, x: kjit.scan(x, "add")),
    "sort, f32": ("f32", N, lambda kjit, x: kjit.sort(x)),
    "sort, i64": ("i64", N, lambda kjit, x: kjit.sort(x)),
    "argsort, f64": ("f64", N, lambda kjit, x: kjit.argsort(x)),
    "unique, i32": ("i32", N, lambda kjit, x: kjit.unique(x)),
    "bincount, i32, 256 bins": ("i32", N, lambda kjit, x: kjit.bincount(x, 256)),
    "matmul, f32, 1024": ("f32", (1024, 1024), lambda kjit, x: kjit.matmul(x, x)),
}


def measure(device):
    """In a process of its own: prints a line for each call, its time, and how often kjit compiled in the end."""
    import time

    import kjit
    from kjit import _state
    kjit.reduce(kjit.zeros(1000, "u8", device=kjit.device(device)), "xor")
    compiled = _state.context().statistics()["compilations"]
    for element, shape, call in CALLS.values():
        x = kjit.zeros(shape, element, device=kjit.device(device))
        kjit.device(device).synchronize()
        start = time.perf_counter()
        call(kjit, x)
        kjit.device(device).synchronize()
        print(1e3 * (time.perf_counter() - start))
    print(_state.context().statistics()["compilations"] - compiled)


def run(package, cache, device):
    environment = dict(os.environ, CUDA_CACHE_DISABLE="1", XDG_CACHE_HOME=cache, KJIT_DEVICE=device, PYTHONPATH=package)
    command = [sys.executable, os.path.abspath(__file__), "--once", "--device", device, "."]
    *times, compiled = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return list(map(float, times)), int(compiled)


def main(build, device):
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        for folder in ("python", "lib"):
            shutil.copytree(build / folder, tree / folder, symlinks=True)
        from_nothing, compiled = run(tree / "python", tree / "cache", device)
        from_disk, _ = run(tree / "python", tree / "cache", device)
        folder, = (tree / "lib").glob("kjit-*")
        shutil.copy(build / "kernels/kernels.kjit", folder)
        shipped, missed = run(tree / "python", tree / "other", device)
    rows = [[name, *(f"{t:.2f}" for t in times)] for name, *times in zip(CALLS, from_nothing, shipped, from_disk)]
    print_table("First calls", device, ["call", "from nothing, ms", "shipped, ms", "user's cache, ms"], rows)
    print(f"{compiled} kernels were compiled from nothing, {missed} with the file that ships")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--device", default="cuda")
    options.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    measure(given.device) if given.once else main(given.build, given.device)
