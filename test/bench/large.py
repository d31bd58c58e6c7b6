#!/usr/bin/env python3
"""large.py [--count N]: runs algorithms over 2^33 + 5 u8 elements on the first GPU, including their compilation, and
compares the results with CuPy's results for chunks. It prints differences as wrong and then exits with status 1. With
--count, the program also runs on the CPU and compares with NumPy, to test the program itself. `import kjit` must find
the package."""
import argparse
import os
import sys
import time

import kjit

from report import print_table

PIECE = 2**28


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=None)
    count = parser.parse_args().count
    device = "cuda" if count is None else "cpu"
    if device == "cuda":
        import cupy as np
    else:
        import numpy as np
    os.environ["KJIT_DEVICE"] = device
    n = count or 2**33 + 5
    pieces = [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
    rows = []

    def number(x):
        return int(x.get() if hasattr(x, "get") else x)

    def all_pieces(compare):
        return all(bool(compare(first, end)) for first, end in pieces)

    def sum_of(of_piece):
        return sum(of_piece(first, end) for first, end in pieces)

    def measure(name, call, is_right):
        kjit.synchronize(device)
        start = time.perf_counter()
        call()
        kjit.synchronize(device)
        rows.append([name, f"{1e3 * (time.perf_counter() - start):.1f}", "right" if is_right() else "WRONG"])

    x = np.empty(n, np.uint8)
    for first, end in pieces:
        x[first:end] = ((np.arange(first, end, dtype=np.uint64) * np.uint64(2654435761)) >> np.uint64(13)) % np.uint64(251)
    x[n - 2] = 255
    total, place, result, found = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.empty(n, np.uint8), np.zeros(1, np.int64)
    wanted = sum_of(lambda first, end: number(x[first:end].sum(dtype=np.uint64)))
    counts = sum_of(lambda first, end: np.bincount(x[first:end], minlength=256))
    measure("sum", lambda: kjit.reduce(x, out=total), lambda: number(total[0]) == wanted)
    measure("argmax", lambda: kjit.reduce(x, "argmax", out=place), lambda: number(place[0]) == n - 2)

    def neighbours(compare):
        return all_pieces(lambda first, end: compare(max(first, 1), end).all())

    measure("scan", lambda: kjit.scan(x, out=result), lambda: number(result[n - 1]) == wanted % 256 and neighbours(lambda first, end: result[first:end] - result[first - 1:end - 1] == x[first:end]))
    measure("map", lambda: kjit.vectorize(lambda v: v * 3 + 1)(x, out=result), lambda: all_pieces(lambda first, end: (result[first:end] == x[first:end] * np.uint8(3) + np.uint8(1)).all()))
    measure("sort", lambda: kjit.sort(x, out=result), lambda: neighbours(lambda first, end: result[first:end] >= result[first - 1:end - 1]) and bool((sum_of(lambda first, end: np.bincount(result[first:end], minlength=256)) == counts).all()))
    bins = np.zeros(256, np.int64)
    measure("bincount", lambda: kjit.bincount(x, 256, out=bins), lambda: bool((bins == counts).all()))

    def is_selected():
        at = 0
        for first, end in pieces:
            kept = x[first:end][x[first:end] != 0]
            if not bool((result[at:at + kept.size] == kept).all()):
                return False
            at += kept.size
        return number(found[0]) == at

    measure("select", lambda: kjit.select_where(x, x, out=(result, found)), is_selected)
    print_table(f"{n} elements of u8, the first call of each", kjit.device(device).name, ["", "ms", "result"], rows)
    sys.exit(any(row[2] != "right" for row in rows))


if __name__ == "__main__":
    main()
