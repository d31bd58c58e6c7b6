#!/usr/bin/env python3
"""algorithms_cupy.py BIN_DIR [--calls 2]: compares, in one run, kjit's algorithms with CuPy on the first GPU, and the
first call with a new operator with cuda.compute (CUB, compiled at run time). BIN_DIR is the folder of kjit-run. The
program needs gcc, CuPy, and for the first calls the wheel cuda-cccl. It reports missing peers and leaves them out.
Arrays have 2^24 elements unless a row gives another number. Times are medians between two GPU events around several
calls. --calls: the number of first calls with cuda.compute, which take seconds each; the minimum counts."""
import argparse
import os
import tempfile
import time

os.environ["CUDA_CACHE_DISABLE"] = "1"

import numpy as np
import cupy as cp

from algorithms_cpu import Answers
from gpu import device_name
from report import compile_with_kjit, output_of, print_table, say

EXPONENT = 24
N = 1 << EXPONENT
BATCH = 5


def median_us(call):
    for _ in range(3):
        call()
    times = []
    for _ in range(15):
        first, last = cp.cuda.Event(), cp.cuda.Event()
        first.record()
        for _ in range(BATCH):
            call()
        last.record()
        last.synchronize()
        times.append(cp.cuda.get_elapsed_time(first, last) * 1e3 / BATCH)
    return sorted(times)[len(times) // 2]


def cupy_rows():
    """(title, row of algorithms.c, the call in CuPy). The arrays contain the same numbers as in algorithms.c."""
    words = cp.random.randint(0, 1 << 32, N, dtype=cp.uint32)
    x, y = (cp.random.random(N, dtype=cp.float32) for _ in range(2))
    few, many, wide = words & 255, words & 0xFFFFF, x.astype(cp.float64)
    square, narrow = x.reshape(4096, 4096), x.reshape(-1, 16)
    generator = cp.random.Generator(cp.random.Philox4x3210(7))
    column, row = x[:4096, None], x[None, :4096]
    return [
        ("sum", "sum f32", lambda: x.sum()),
        ("max", "max f32", lambda: x.max()),
        ("argmax", "argmax f32", lambda: x.argmax()),
        ("sum of 2^20 x 16 over axis 0", "sum over the first axis, rows of 16 f32", lambda: narrow.sum(0)),
        ("sum of 2^20 x 16 over axis 1", "sum of rows of 16 f32", lambda: narrow.sum(1)),
        ("sum of 4096 x 4096 over axis 0", "sum over the first axis, rows of 4096 f32", lambda: square.sum(0)),
        ("sum of 4096 x 4096 over axis 1", "sum of rows of 4096 f32", lambda: square.sum(1)),
        ("variance of 4096 x 4096 over axis 0", "variance over the first axis, rows of 4096 f32", lambda: square.var(0)),
        ("cumsum, i32", "inclusive scan i32", lambda: cp.cumsum(words, dtype=cp.uint32)),
        ("cumsum, f64", "inclusive scan f64", lambda: cp.cumsum(wide)),
        ("sort, f32", "radix sort f32", lambda: cp.sort(x)),
        ("argsort, u32", "argsort u32", lambda: cp.argsort(words)),
        ("x[x > 0.5]", "select above 0.5 of f32", lambda: x[x > 0.5]),
        ("unique, 2^20 values", "sort and unique, 2^20 values", lambda: cp.unique(many)),
        ("bincount, 256 bins of u32", "histogram, 256 bins of u32", lambda: cp.bincount(few, minlength=256)),
        ("histogram, 256 bins of f32", "histogram, 256 bins of f32", lambda: cp.histogram(x, 256, (0, 1))),
        ("uniform, Philox", "uniform f32", lambda: generator.random(x.size, dtype=cp.float32)),
        ("standard_normal, Philox", "normal f32", lambda: generator.standard_normal(x.size, dtype=cp.float32)),
        ("2.5 * x + y", "map a * x + y f32", lambda: cp.float32(2.5) * x + y),
        ("a[:, None] * b[None] + c, 4096 x 4096", "map a[:, None] * b[None] + c, rows of 4096 f32", lambda: column * row + square),
    ]


def compare(kjit):
    rows = []
    for title, row, call in cupy_rows():
        try:
            peer = median_us(call)
        except Exception as error:
            say(f"CuPy, {title}: {error}")
            continue
        own = kjit.ask(row, EXPONENT)[0]
        rows.append([title, f"{own:.1f}", f"{peer:.1f}", f"{peer / own:.1f}"])
    return rows


# ---- first calls ----

PRODUCT = "(a, b): return a * b + np.float32(NUMBER.5)"


def operator(text, number):
    """Returns a new Python function."""
    names = {"np": np}
    exec(f"def f{number}{text.replace('NUMBER', str(number))}", names)
    return names[f"f{number}"]


class FirstRows:
    """Calls that need a new compilation, by the names of algorithms_first.c. The operator is a new Python function or,
    if cuda.compute cannot compile such a function, one of its own operators on another type."""

    def __init__(self, cc, compiles_funcs):
        self.cc, self.compiles_funcs = cc, compiles_funcs
        self.n, self.length = 1 << 20, 1024
        self.types = [cp.float32, cp.uint32, cp.int32, cp.uint64, cp.int64, cp.float64]
        self.arrays = {t: [cp.zeros(self.n, t) for _ in range(4)] for t in self.types}
        self.count = cp.zeros(1, cp.uint64)
        self.starts = cp.arange(0, self.n, self.length).astype(cp.int64)
        self.rows = {"reduce": self.reduce, "segmented reduce": self.segmented_reduce, "scan": self.scan, "radix sort": self.radix_sort, "merge sort": self.merge_sort, "unique by key": self.unique_by_key, "histogram": self.histogram, "transform": self.transform}

    def choose(self, k, text, kind):
        """Returns (operator, element type) for call k."""
        if self.compiles_funcs:
            return operator(text, k), cp.float32
        return getattr(self.cc.OpKind, kind), self.types[k % 6]

    def reduce(self, k):
        op, t = self.choose(k, PRODUCT, "PLUS")
        self.cc.reduce_into(d_in=self.arrays[t][0], d_out=self.arrays[t][1], op=op, num_items=self.n, h_init=np.zeros(1, t))

    def segmented_reduce(self, k):
        op, t = self.choose(k, PRODUCT, "PLUS")
        self.cc.segmented_reduce(d_in=self.arrays[t][0], d_out=self.arrays[t][1], num_segments=self.n // self.length, start_offsets_in=self.starts, end_offsets_in=self.starts + self.length, op=op, h_init=np.zeros(1, t))

    def scan(self, k):
        op, t = self.choose(k, PRODUCT, "PLUS")
        self.cc.inclusive_scan(d_in=self.arrays[t][0], d_out=self.arrays[t][1], op=op, num_items=self.n, init_value=np.zeros(1, t))

    def radix_sort(self, k):
        keys, result, *_ = self.arrays[self.types[k % 6]]
        self.cc.radix_sort(d_in_keys=keys, d_out_keys=result, num_items=self.n, order=self.cc.SortOrder.ASCENDING)

    def merge_sort(self, k):
        op, t = self.choose(k, "(a, b): return a + np.float32(NUMBER.5) < b + np.float32(NUMBER.5)", "LESS")
        self.cc.merge_sort(d_in_keys=self.arrays[t][0], d_out_keys=self.arrays[t][1], num_items=self.n, op=op)

    def unique_by_key(self, k):
        op, t = self.choose(k, "(a, b): return a + np.float32(NUMBER.5) == b + np.float32(NUMBER.5)", "EQUAL_TO")
        keys, items, out_keys, out_items = self.arrays[t]
        self.cc.unique_by_key(d_in_keys=keys, d_in_items=items, d_out_keys=out_keys, d_out_items=out_items, d_out_num_selected=self.count, op=op, num_items=self.n)

    def histogram(self, k):
        t = self.types[k % 6]
        self.cc.histogram_even(d_samples=self.arrays[t][0], d_histogram=cp.zeros(256, cp.int32), num_output_levels=257, lower_level=t(0), upper_level=t(256), num_samples=self.n)

    def transform(self, k):
        op, t = self.choose(k, PRODUCT, "PLUS")
        x, y, r, _ = self.arrays[t]
        self.cc.binary_transform(d_in1=x, d_in2=y, d_out=r, op=op, num_items=self.n)


def measure_first(calls):
    """Returns {name: minimum ms of a first call} for cuda.compute."""
    try:
        import cuda.compute as cc
    except ImportError as error:
        say(f"no cuda.compute: {error}")
        return {}
    least, rows = {}, FirstRows(cc, True)
    try:
        rows.reduce(100)  # loads everything that is loaded only once
    except Exception as error:
        say(f"cuda.compute compiles no func of Python here ({type(error).__name__}: {error}): its own operators, each on a type that was never seen")
        rows = FirstRows(cc, False)
        rows.reduce(0)
    for name, call in rows.rows.items():
        for k in range(calls):
            try:
                cp.cuda.Device().synchronize()
                start = time.perf_counter()
                call(k + 1)
                cp.cuda.Device().synchronize()
                took = (time.perf_counter() - start) * 1e3
            except Exception as error:
                say(f"cuda.compute, {name}: {type(error).__name__}: {error}")
                break
            say(f"cuda.compute, {name}: {took:.0f} ms")
            least[name] = min(took, least.get(name, took))
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--calls", type=int, default=2)
    arguments = parser.parse_args()
    machine = device_name(os.path.join(arguments.bin_dir, "kjit-run"))
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for name in ("algorithms", "algorithms_first"):
            programs[name] = os.path.join(folder, name)
            compile_with_kjit(name + ".c", programs[name], arguments.bin_dir)
        say("kjit and CuPy")
        kjit = Answers([programs["algorithms"], "cuda", "ask", str(EXPONENT)])
        rows = compare(kjit)
        kjit.close()
        print_table(f"Algorithms on 2^{EXPONENT} elements, us", f"{machine}, CuPy {cp.__version__}", ["", "kjit", "CuPy", "times as fast"], rows)
        say("first calls")
        firsts = [line.split("\t") for line in output_of([programs["algorithms_first"], "cuda"]).splitlines()]
    compute = measure_first(arguments.calls)
    cells = lambda name, ms: ["-", "-"] if name not in compute else [f"{compute[name]:.0f}", f"{compute[name] / float(ms):.0f}"]
    print_table("First call with an operator never seen, ms", machine, ["", "kjit, compiled", "kjit, from the disk cache", "kjit, first in a process", "cuda.compute", "times as fast"], [[name, ms, disk, first, *cells(name, ms)] for name, ms, disk, first in firsts])


if __name__ == "__main__":
    main()
