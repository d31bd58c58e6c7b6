"""disk_cache.py BIN_DIR [REPETITIONS]: measures whole processes of kjit-run on the CPU: processes that compile, and
processes that find their kernel in the disk cache. Prints medians. The arrays are so short that no thread is started,
so the time is mostly that of obtaining the kernel."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
PROGRAMS = [
    ("axpy", "axpy/axpy.kir", ["r=zeros:f32[100]", "a=2.5f32", "x=randn:f32[100]", "y=ones:f32[100]"]),
    ("black_scholes", "black_scholes/black_scholes.kir",
     ["call=zeros:f64[100]", "put=zeros:f64[100]", "s=rand:f64[100]:low=5:high=30", "x=rand:f64[100]:low=1:high=100", "t=rand:f64[100]:low=0.25:high=10",
      "r=0.02f64", "v=0.3f64"]),
]


def run(command):
    """Returns the wall time in ms of the process, and of its first pass over the launches: lookup or compilation, load
    and launch."""
    start = time.perf_counter()
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    wall = (time.perf_counter() - start) * 1e3
    return wall, float(output.split("first pass over 1 launch ")[1].split()[0])


def main():
    kjit_run, repetitions = os.path.join(sys.argv[1], "kjit-run"), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as folder:
        for name, path, arguments in PROGRAMS:
            command = [kjit_run, os.path.join(EXAMPLES, path), "--device", "cpu", "--checks", "none", "--quiet", "--time"]
            command += [part for argument in arguments for part in ("--arg", argument)]
            ways = [("compiled", ["--no-cache"]), ("from the disk cache", ["--cache", folder])]
            run(command + ways[1][1])
            for way, options in ways:
                times = [run(command + options) for _ in range(repetitions)]
                wall, first = (statistics.median(column) for column in zip(*times))
                print(f"{name:14} {way:20} process {wall:8.2f} ms   first launch {first:8.3f} ms")


main()
