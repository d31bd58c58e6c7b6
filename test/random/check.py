#!/usr/bin/env python3
"""Random kernels, compiled and run, against an evaluation of the language in Python.

check.py --count 10000 --seed S: kernels S, S+1, ...; a failure prints the kernel, the inputs' types and the values that differ; --seed N --count 1 repeats one.
"""
import argparse
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import evaluate
import far
import generate
import library
import pool
import records
from language import Program, TypeMismatch
from values import Ambiguous, FLOATS


def to_list(array, t):
    if isinstance(t, far.Pointer):
        return [far.Cells(array)]
    if isinstance(t, records.Struct):
        return records.to_lists(array.reshape(-1), t, to_list)
    if t == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64).ravel().tolist()
    flat = array.astype(np.float64) if t in FLOATS else array
    return flat.ravel().tolist()


def same(got, want):
    return got == want or (got != got and want != want)


def differences(kernel, results, wanted, open_, before):
    """before: of kernels of which threads fail that are pieces, which take along what would come next: the values at the start."""
    found = []
    for (name, t, shape), got, want in zip(kernel.parameters, results, wanted):
        if isinstance(t, far.Pointer):
            found += got.differences(want, same, before is not None)
        if shape is None or not kernel.is_output(name):
            continue
        count = kernel.per_thread.get(name, 1)
        start = to_list(before[name], t) if before else want
        for n, (g, w, b) in enumerate(zip(to_list(got, t), want, start)):
            is_same = lambda v: all(map(same, records.leaves(g), records.leaves(v)))
            if n // count not in open_ and not is_same(w) and not (before and is_same(b)):
                found.append(f"{name}[{', '.join(map(str, np.unravel_index(n, shape)))}]: got {g}, expected {w}")
    return found


def open_elements(kernel, open_):
    """Returns the results of threads that are not determined, as the elements that these threads write."""
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


# vectors and complex numbers: lanes and parts that are not used divide too, and are not evaluated
COMPOSED = re.compile(r"\b([a-z]+[0-9]*x[0-9]+|c64|c128)\(")


def checks_of(options, seed):
    """Returns the checks for the kernel: those that the options name, or in turn each check, each pair, the usual
    checks and all checks."""
    if options.checks != "each":
        return {"none": (), "usual": ("bounds", "division", "assert"), "all": tuple(library.CHECKS)}.get(options.checks, tuple(options.checks.split(",")))
    names = [n for n in library.CHECKS if options.device != "cuda" or n not in library.CPU_ONLY]
    sets = [*((n,) for n in names), *itertools.combinations(names, 2), tuple(names[:3]), tuple(names)]
    return sets[seed % len(sets)]


def is_interruptible(options, seed):
    """Looks whether it was interrupted change no result: every third kernel has them, unless the options say."""
    return {"yes": True, "no": False}.get(options.interruptible, seed % 3 == 1)


def run_one(libraries, seed):
    """Returns a word for the outcome, and a text for a failure."""
    options = libraries.options
    kernel, program = generate.generate(seed, options.device, options.known)
    if kernel.poked and options.device == "cuda":
        return "of the host", None
    if not options.known:
        return run_kernel(libraries, seed, kernel, program)[:2]
    start = {n: a.copy() for n, a in kernel.arrays.items()}
    words, first = {}, None
    for way in generate.WAYS:
        for n, a in start.items():
            kernel.arrays[n][...] = a
        kernel.give(way)
        word, text, got = run_kernel(libraries, seed, kernel, program)
        if not text and got and first:
            text = describe_bits(seed, kernel, got, first)
        if text:
            return "failed", f"{text}\nnumbers are given as {way}: {kernel.ways}"
        first = first or got
        words[word] = words.get(word, 0) + 1
    return ", ".join(f"{n} x {word}" for word, n in words.items()), None


def with_wanted(kernel, wanted, open_):
    """Yields for each element of an output its numbers, and the numbers of the evaluation; None for undetermined
    ones."""
    found = {}
    for (name, t, shape), want in zip(kernel.parameters, wanted):
        if shape is not None and kernel.is_output(name):
            count = kernel.per_thread.get(name, 1)
            pairs = zip(to_list(kernel.arrays[name], t), want)
            found[name] = [None if n // count in open_ else (records.leaves(g), records.leaves(w)) for n, (g, w) in enumerate(pairs)]
    return found


def describe_bits(seed, kernel, results, others):
    """Zeros of other signs, too, where the evaluation does not find other values: an input that is a constant may give an expression another type."""
    found = []
    for name in results:
        for n, (a, b) in enumerate(zip(results[name], others[name])):
            if a and b and all(map(same, a[1], b[1])) and repr(a[0]) != repr(b[0]):
                found.append(f"{name}, element {n}: got {a[0]}, with parameters {b[0]}")
    return describe(seed, kernel, found) if found else None


def host_function(kernel):
    if not kernel.poked:
        return None
    array = kernel.arrays[kernel.poked]
    return lambda i, v: evaluate.poke(array, i, v)


def compare_open(used, seed, kernel, given, checks):
    """For a kernel whose values depend on rounding, plain code must give the bits of the best code."""
    if not used.compares or checks:
        return "open", None, None
    try:
        used.run(kernel.text(), given, kernel.grid, kernel.block, host_function(kernel))
    except library.Failure as failure:
        if "plain code" in str(failure):
            return "failed", describe(seed, kernel, [str(failure)]), None
    return "open", None, None


def run_kernel(libraries, seed, kernel, program):
    """A word for what happened, a text for a failure, and the outputs where all of them are to be as they are."""
    checks = checks_of(libraries.options, seed)
    arguments = [kernel.arrays[n] for n, _, _ in kernel.parameters]
    given = [(t, a[0] if s is None and not isinstance(t, far.Pointer) else a) for a, (n, t, s) in zip(arguments, kernel.parameters) if kernel.is_argument(n)]
    used = libraries.get(checks, is_interruptible(libraries.options, seed))
    evaluated = [to_list(a, t)[0] if s is None else to_list(a, t) for a, (_, t, s) in zip(arguments, kernel.parameters)]
    fresh = Program(kernel.functions, program.is_strict)
    try:
        open_, failing = evaluate.evaluate(kernel, fresh, evaluated, checks)
        has_open, open_ = bool(open_), open_elements(kernel, open_)
    except Ambiguous:
        return compare_open(used, seed, kernel, given, checks)
    except TypeMismatch:
        return "refused", None, None
    before = {n: a.copy() for n, a in kernel.arrays.items() if isinstance(a, np.ndarray)}
    found, has_failed = [], False
    try:
        used.run(kernel.text(), given, kernel.grid, kernel.block, host_function(kernel))
    except library.Failure as failure:
        if "the checks `uninitialized` and `races` do not" in str(failure):
            return "refused", None, None
        has_failed = str(failure).startswith("KJIT_ERROR_KERNEL")
        if has_failed and evaluate.DIVISION_CHECKS.intersection(checks) and COMPOSED.search(kernel.text()):
            return "open", None, None
        if has_failed and "uninitialized" in checks and not kernel.is_straight:
            return "open", None, None  # a thread that failed has not stored the values that others load after a barrier
        if not has_failed or not (failing or has_open):
            found = [str(failure)]
    if failing and not has_failed:
        found.append(f"threads {sorted(failing)[:8]} should have failed")
    found += differences(kernel, arguments, evaluated, open_, before if has_failed and kernel.range_names else None)
    if found:
        inputs = [f"# {n} = {to_list(a, next(t for m, t, _ in kernel.parameters if m == n))[:8]}" for n, a in before.items() if n[0] != "o"]
        return "failed", describe(seed, kernel, [f"checks: {','.join(checks) or 'none'}, interruptible: {is_interruptible(libraries.options, seed)}", *found, *inputs]), None
    right = "right, and plain code" if not has_failed and used.plain_runs else "right"
    return right if not failing else "right, a thread fails", None, None if has_failed else with_wanted(kernel, evaluated, open_)


class Libraries:
    """Keeps a context for each set of checks, for interruptible and for other code."""

    def __init__(self, options):
        self.options, self.known = options, {}

    def get(self, checks, interruptible):
        key = checks, interruptible
        if key not in self.known:
            self.known[key] = library.Library(self.options.libdir, self.options.device, checks, self.options.debug, interruptible, self.options.plain)
        return self.known[key]


def describe_lost(seed, options, why):
    return describe(seed, generate.generate(seed, options.device, options.known)[0], [why])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--checks", default="none", help="none, usual, all, names with commas, or each: in turn every check and every two")
    parser.add_argument("--known", action="store_true", help="kernels with more numbers, which come as parameters, literals, const parameters, constants of the module, and mixed: the same bits each time")
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    parser.add_argument("--plain", default="never", choices=tuple(library.PLAIN), help="plain code: equal also compares its bits with the best code, in a second launch")
    parser.add_argument("--interruptible", default="some", choices=("some", "yes", "no"), help="code that can be interrupted: every third kernel, all, none")
    pool.add_options(parser, 300)
    parser.add_argument("--print", action="store_true", help="only print the kernels")
    options = parser.parse_args()
    if options.print:
        for number in range(options.seed, options.seed + options.count):
            print(describe(number, generate.generate(number, options.device, options.known)[0], []))
        return 0
    return pool.run(options, f"kernels on {options.device}", Libraries, run_one, describe_lost)


if __name__ == "__main__":
    sys.exit(main())
