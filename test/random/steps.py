#!/usr/bin/env python3
"""steps.py: `range` with steps that only the run shows, of 0, negative and huge, in all integer types, against Python's range. Where divisions are checked, a step of 0 fails its thread."""
import argparse
import random
import secrets
import sys

import numpy as np

from library import NUMPY, Failure, Library

TYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
MASK = (1 << 64) - 1
COUNT = 60
FORMS = (
    "kernel k(n, s, a, b, c) {{ for t in grid_range(len(n)) {{ for i in range(a[t], b[t], c[t]) {{ n[t] += 1; s[t] += u64(i) * 3 + n[t] }} }} }}\n",
    "kernel k(n, s, a, b, c) {{ for t in grid_range(len(n)) {{ if t % 3 != 1 {{ for i in range(a[t], b[t], c[t]) {{ n[t] += 1; s[t] += u64(i) * 3 + n[t]; if n[t] == 9 {{ break }} }} }} }} }}\n",
    "func visit(n, s, t, a, b, c) {{ for i in range(a, b, c) {{ n[t] += 1; s[t] += u64(i) * 3 + n[t] }} }}\n"
    "kernel k(n, s, a, b, c) {{ let t = i32(threadIdx.x); if t < len(n) {{ visit(n, s, t, a[t], b[t], c[t]) }} }}\n",
)


def draw_loop(d, name, has_zero):
    """Returns (first, stop, step) with a few iterations."""
    info = np.iinfo(NUMPY[name])
    low, high = int(info.min), int(info.max)
    if has_zero:
        return d.randint(low, high), d.randint(low, high), 0
    step = d.choice((d.randint(low, high), d.randint(max(low, -5), 5), d.choice((low, high, 1)))) or 1
    first = d.choice((d.randint(low, high), low, high, 0))
    stop = min(max(first + step * d.randint(0, 12) + d.randint(-2, 2), low), high)
    if d.random() < 0.1:
        stop = low if step > 0 else high
    return first, stop, step


def run_python(form, loops):
    counts, sums = np.zeros(COUNT, np.uint64), np.zeros(COUNT, np.uint64)
    for t, (first, stop, step) in enumerate(loops):
        if form == 1 and t % 3 == 1 or step == 0:
            continue
        n = total = 0
        for i in range(first, stop, step):
            n += 1
            total += (i & MASK) * 3 + n
            if form == 1 and n == 9:
                break
        counts[t], sums[t] = n, total & MASK
    return counts, sums


def run_kernel(library, form, name, loops):
    columns = [np.array(column, NUMPY[name]) for column in zip(*loops)]
    counts, sums = np.zeros(COUNT, np.uint64), np.zeros(COUNT, np.uint64)
    arguments = [("u64", counts), ("u64", sums), *((name, column) for column in columns)]
    library.run(FORMS[form].format(), arguments, (1, 1, 1), (64, 1, 1))
    return counts, sums


def check(libraries, d):
    name, form, has_zero = d.choice(TYPES), d.randrange(len(FORMS)), d.random() < 0.5
    is_checked = d.random() < 0.7
    zero_at = d.randrange(COUNT) // 3 * 3
    loops = [draw_loop(d, name, has_zero and t == zero_at) for t in range(COUNT)]
    told = f"form {form} of {name}, {'checked' if is_checked else 'not checked'}, zero at {zero_at if has_zero else None}: {loops}"
    try:
        found = run_kernel(libraries[is_checked], form, name, loops)
    except Failure as failure:
        is_right = has_zero and is_checked and "the step of `range` is 0" in str(failure)
        if not is_right:
            print(f"FAILED: {failure}\n  {told}")
        return is_right
    if has_zero and is_checked:
        print(f"WRONG: a step of 0 did not fail: {told}")
        return False
    is_right = all((a == b).all() for a, b in zip(found, run_python(form, loops)))
    if not is_right:
        print(f"WRONG: {told}")
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    d = random.Random(seed)
    libraries = [Library(arguments.libdir, arguments.device, checks) for checks in (("bounds",), ("bounds", "integer-division"))]
    wrong = sum(not check(libraries, d) for _ in range(arguments.count))
    print(f"{wrong} wrong of {arguments.count}")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
