#!/usr/bin/env python3
"""first_calls.py BUILD [--device cpu] [--rounds N]: first calls of algorithms from Python, milliseconds, each column in processes of its own:

- from nothing
- from a file of compiled kernels with PTX, and on a GPU from one with machine code by ptxas
- from the user's disk cache in the next process

BUILD is a build tree with kjit-cache and the Python package. The script makes the files of compiled kernels. Times are the median of the rounds.
The driver's own cache is off. Each process has called another algorithm before. Python has the bytecode of the package, as after an installation by pip. With no_driver.c in place of the driver the times are kjit's
part alone."""
import argparse
import compileall
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from report import print_table

N = 1_000_000
# The call in Python, and as a line in a list for kjit-cache build.
CALLS = {
    "reduce, add, f32": ("f32", N, lambda kjit, x: kjit.reduce(x, "add"), "r = reduce(x, add)"),
    "reduce, add, f64": ("f64", N, lambda kjit, x: kjit.reduce(x, "add"), "r = reduce(x, add)"),
    "scan, add, i64": ("i64", N, lambda kjit, x: kjit.scan(x, "add"), "r = scan(x, add)"),
    "sort, f32": ("f32", N, lambda kjit, x: kjit.sort(x), "r = sort(x)"),
    "sort, i64": ("i64", N, lambda kjit, x: kjit.sort(x), "r = sort(x)"),
    "argsort, f64": ("f64", N, lambda kjit, x: kjit.argsort(x), "r = argsort(x)"),
    "unique, i32": ("i32", N, lambda kjit, x: kjit.unique(x), "o = sort(x)\ncall r, n = unique(x)"),
    "bincount, i32, 256 bins": ("i32", N, lambda kjit, x: kjit.bincount(x, 256), "r = bincount(x, 256)"),
    "matmul, f32, 1024": ("f32", (1024, 1024), lambda kjit, x: kjit.matmul(x, x), "r = matmul(x, x)"),
}
LIST = "".join(f"arg x{i}=zeros:{element}{list(shape) if isinstance(shape, tuple) else [shape]}\ncall {line.replace('x', f'x{i}')}\n"
               for i, (element, shape, _, line) in enumerate(CALLS.values()))


def measure(device):
    """Runs in a separate process: prints a line for each call with its time, then the number of kjit's compilations."""
    import time

    import kjit
    from kjit import _state
    kjit.reduce(kjit.zeros(1000, "u8", device=kjit.device(device)), "xor")
    compiled = _state.context().statistics()["compilations"]
    for element, shape, call, _ in CALLS.values():
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


def find_target(build, device):
    """Returns the name of this machine for kjit-cache --target."""
    if device == "cpu":
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        return "x86-64-v4" if "avx512vl" in flags else "x86-64-v3" if "avx2" in flags else "x86-64-v2"
    devices = subprocess.run([build / "bin/kjit-run", "--devices"], check=True, stdout=subprocess.PIPE, text=True).stdout
    architecture = int(re.search(r"sm_(\d+)", devices)[1])
    return f"sm_{architecture}{'a' if architecture >= 90 else ''}"


def make_files(build, device, tree):
    """Creates files with the kernels of CALLS; returns their paths by column name."""
    target = find_target(build, device)
    (tree / "calls.list").write_text(LIST)
    forms = {"shipped PTX": [], "shipped machine code": ["--machine-code"]} if device == "cuda" else {"shipped": []}
    for name, options in forms.items():
        command = [build / "bin/kjit-cache", "build", tree / "calls.list", "--target", target, *options, "--output", tree / f"{name}.kjit"]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return {name: tree / f"{name}.kjit" for name in forms}


def measure_once(package, folder, file, cache, device):
    installed = folder / "kernels.kjit"
    installed.unlink(missing_ok=True)
    if file:
        shutil.copy(file, installed)
    return run(package, cache, device)


def main(build, device, rounds):
    columns, compiled = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        for name in ("python", "lib"):
            shutil.copytree(build / name, tree / name, symlinks=True)
        compileall.compile_dir(tree / "python", quiet=1)
        folder, = (tree / "lib").glob("kjit-*")
        files = {"from nothing": None, **make_files(build, device, tree)}
        for i in range(rounds):
            for name, file in [*files.items(), ("user's cache", None)]:
                # The user's cache is the cache that the first process of the same round has filled.
                cache = tree / f"cache {i} {'from nothing' if name not in files else name}"
                times, compiled[name] = measure_once(tree / "python", folder, file, cache, device)
                columns.setdefault(name, []).append(times)
    medians = [map(statistics.median, zip(*times)) for times in columns.values()]
    rows = [[name, *(f"{t:.2f}" for t in times)] for name, *times in zip(CALLS, *medians)]
    print_table("First calls", device, ["call", *(f"{name}, ms" for name in columns)], rows)
    print("kernels compiled: " + ", ".join(f"{name} {count}" for name, count in compiled.items()))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--device", default="cuda")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    measure(given.device) if given.once else main(given.build, given.device, given.rounds)
