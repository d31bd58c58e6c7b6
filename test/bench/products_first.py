#!/usr/bin/env python3
"""products_first.py: measures first calls of kjit.matmul from Python with new types and shapes, and the same calls from
kjit's disk cache in the next process, in ms of wall time. The driver's own cache is off. `import kjit` must find the
package. Each process has computed one f64 product before. If no_driver.c replaces the driver, the time is that of kjit
alone."""
import os
import subprocess
import sys
import tempfile

from report import print_table

CALLS = [("f32", 4096, 4096, 4096), ("f16", 4096, 4096, 4096), ("f16", 1000, 1000, 1000), ("f64", 4096, 4096, 4096), ("f32", 100, 300, 7)]


def measure():
    """Runs in a separate process: prints a time for each call."""
    import time

    import kjit
    device = kjit.device("cuda")
    small = kjit.zeros((64, 64), "f64", device=device)
    kjit.matmul(small, small)
    device.synchronize()
    for element, rows, terms, columns in CALLS:
        x, y = kjit.zeros((rows, terms), element, device=device), kjit.zeros((terms, columns), element, device=device)
        device.synchronize()
        start = time.perf_counter()
        kjit.matmul(x, y)
        device.synchronize()
        print(1e3 * (time.perf_counter() - start))


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CUDA_CACHE_DISABLE="1", XDG_CACHE_HOME=folder, KJIT_DEVICE="cuda")
        times = [subprocess.run([sys.executable, os.path.abspath(__file__), "--once"], env=environment, check=True, capture_output=True, text=True).stdout.split() for _ in range(2)]
    import kjit
    rows = [[f"`matmul`, {element}, {m} x {k} x {n}", *(f"{float(t):.1f}" for t in found)] for (element, m, k, n), *found in zip(CALLS, *times)]
    print_table("First calls of a product", kjit.device("cuda").name, ["call", "first, ms", "from disk, ms"], rows)


if __name__ == "__main__":
    measure() if "--once" in sys.argv else main()
