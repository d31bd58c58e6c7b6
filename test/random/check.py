#!/usr/bin/env python3
"""Random kernels, compiled and run, against an evaluation of the language in Python.

check.py --count 10000 --seed S: kernels S, S+1, ...; a failure prints the kernel, the inputs' types and the values that differ; --seed N --count 1 repeats one.
"""
import argparse
import math
import multiprocessing.connection
import os
import secrets
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import evaluate
import generate
import library
import records
from language import Program, TypeMismatch
from values import Ambiguous, FLOATS


def to_list(array, t):
    if isinstance(t, records.Struct):
        return records.to_lists(array.reshape(-1), t, to_list)
    if t == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64).ravel().tolist()
    flat = array.astype(np.float64) if t in FLOATS else array
    return flat.ravel().tolist()


def same(got, want):
    return got == want or (got != got and want != want)


def differences(kernel, results, wanted, open_):
    found = []
    for (name, t, shape), got, want in zip(kernel.parameters, results, wanted):
        if shape is None or name[0] != "o":
            continue
        for n, (g, w) in enumerate(zip(to_list(got, t), want)):
            if n not in open_ and not all(map(same, records.leaves(g), records.leaves(w))):
                found.append(f"{name}[{', '.join(map(str, np.unravel_index(n, shape)))}]: got {g}, expected {w}")
    return found


def open_elements(kernel, open_):
    """Threads whose results are open, as the elements that they write."""
    if kernel.range_names or len(kernel.shape) == 1 or not kernel.is_straight:
        return open_
    bx, by, _ = kernel.block
    elements = set()
    for number in open_:
        block, rank = divmod(number, bx * by)
        x, y = block % kernel.grid[0] * bx + rank % bx, block // kernel.grid[0] * by + rank // bx
        elements.add(y * kernel.shape[1] + x)
    return elements


def describe(seed, kernel, what):
    types = ", ".join(f"{n}: {t}" + ("" if s is None else f"{list(s)} strides {[v // kernel.arrays[n].itemsize for v in kernel.arrays[n].strides]}") for n, t, s in kernel.parameters)
    return f"--- kernel {seed}, grid {kernel.grid}, block {kernel.block}\n{kernel.text()}# {types}\n" + "\n".join(what[:12]) + (f"\n... {len(what)} in all" if len(what) > 12 else "")


def run_one(lib, seed):
    """A word for what happened, and a text for a failure."""
    kernel, program = generate.generate(seed)
    arguments = [kernel.arrays[n] for n, _, _ in kernel.parameters]
    evaluated = [to_list(a, t)[0] if s is None else to_list(a, t) for a, (_, t, s) in zip(arguments, kernel.parameters)]
    fresh = Program(kernel.functions, program.is_strict)
    try:
        open_ = open_elements(kernel, evaluate.evaluate(kernel, fresh, evaluated))
    except Ambiguous:
        return "open", None
    except TypeMismatch:
        return "refused", None
    given = [a[0] if s is None else a for a, (_, _, s) in zip(arguments, kernel.parameters)]
    before = [(n, a.copy()) for n, a in kernel.arrays.items()]
    try:
        lib.run(kernel.text(), [(t, v) for (_, t, _), v in zip(kernel.parameters, given)], kernel.grid, kernel.block)
    except library.Failure as failure:
        return "failed", describe(seed, kernel, [str(failure)])
    found = differences(kernel, arguments, evaluated, open_)
    if found:
        inputs = [f"# {n} = {to_list(a, next(t for m, t, _ in kernel.parameters if m == n))[:8]}" for n, a in before if n[0] != "o"]
        return "failed", describe(seed, kernel, found + inputs)
    return "right", None


def worker(options, first, count, step, out):
    lib = library.Library(options.libdir, options.device, options.checks, options.debug)
    for seed in range(first, first + count * step, step):
        out.send((seed, "begun", None))
        try:
            out.send((seed, *run_one(lib, seed)))
        except Exception as error:  # of this tool: a kernel that it generates and cannot evaluate
            import traceback
            out.send((seed, "failed", f"--- kernel {seed}\n{traceback.format_exc()}"))
    out.send((None, "done", None))


class Job:
    """One process that works through every step-th kernel; started again behind a kernel that it did not survive."""

    def __init__(self, options, first, count, step):
        self.options, self.next, self.left, self.step = options, first, count, step
        self.start()

    def start(self):
        self.pipe, end = multiprocessing.Pipe(False)
        self.process = multiprocessing.get_context("fork").Process(target=worker, args=(self.options, self.next, self.left, self.step, end))
        self.process.start()
        end.close()
        self.begun, self.since = None, time.monotonic()

    def died(self, why):
        """What to report; goes on behind it."""
        self.process.kill()
        self.process.join()
        kernel, _ = generate.generate(self.begun) if self.begun is not None else (None, None)
        text = describe(self.begun, kernel, [why]) if kernel else why
        if kernel:
            self.advance(self.begun)
        else:
            self.left = 0
        if self.left:
            self.start()
        return self.begun, "failed", text

    def advance(self, seed):
        done = (seed - self.next) // self.step + 1
        self.next, self.left = self.next + done * self.step, self.left - done


def run(options, seed):
    jobs = [Job(options, seed + k, (options.count - k + options.jobs - 1) // options.jobs, options.jobs) for k in range(min(options.jobs, options.count))]
    counts, texts = {}, []
    while jobs:
        ready = multiprocessing.connection.wait([j.pipe for j in jobs], timeout=1)
        for job in list(jobs):
            message = None
            if job.pipe in ready:
                try:
                    message = job.pipe.recv()
                except EOFError:
                    job.process.join()
                    message = job.died(f"the process ended with {job.process.exitcode}")
            elif time.monotonic() - job.since > options.timeout:
                message = job.died(f"not done after {options.timeout} seconds")
            if message is None:
                continue
            number, word, text = message
            job.since = time.monotonic()
            if word == "begun":
                job.begun = number
                continue
            if number is not None and job.process.is_alive() and job.begun == number:
                job.advance(number)
                job.begun = None
            if text:
                texts.append(text)
                print(text + "\n", flush=True)
            if word != "done":
                counts[word] = counts.get(word, 0) + 1
            if word == "done" or job.left <= 0 and not job.process.is_alive():
                job.process.join()
                jobs.remove(job)
        if len(texts) >= options.failures:
            for job in jobs:
                job.process.kill()
            break
    return counts, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--checks", default="none", choices=list(library.CHECKS))
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=None, help="the number of the first kernel")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--failures", type=int, default=20, help="stop after so many")
    parser.add_argument("--timeout", type=float, default=60, help="seconds a kernel may take")
    parser.add_argument("--print", action="store_true", help="only print the kernels")
    options = parser.parse_args()
    seed = secrets.randbits(40) if options.seed is None else options.seed
    if options.print:
        for number in range(seed, seed + options.count):
            print(describe(number, generate.generate(number)[0], []))
        return 0
    print(f"{options.count} kernels on {options.device} from --seed {seed}", flush=True)
    start = time.monotonic()
    counts, texts = run(options, seed)
    print(f"{', '.join(f'{n} {word}' for word, n in sorted(counts.items()))}, {time.monotonic() - start:.1f} s, --seed {seed}")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
