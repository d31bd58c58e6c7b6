#!/usr/bin/env python3
"""Functions, filters and group-bys of columns with nulls (examples/arrow) beside pyarrow's own, on the same memory in one process, taking turns: the least wall time of each, and the least CPU time of all threads together, in ms.

    build/python/bin/python3 test/bench/columns.py build/release/examples/libcolumns.so      # pyarrow is from scripts/setup.sh --checks
"""
import argparse
import os
import sys
import time
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "arrow"))
from columns import Engine

FUNCTIONS = """
func weighted(a, b) { return a * 0.5 + b }
func distance(a, b) { return sqrt(a * a + b * b) / (1 + abs(a)) }
func coalesce(a, b) { return a[1] ? a[0] : b[0], a[1] or b[1] }
func first_quadrant(a, b) { return a > 0 and b > 0 }
"""


def turns(rounds, calls):
    """Returns the minimum wall and CPU time of each call. The first calls do not count."""
    clocks = (time.perf_counter, time.process_time)
    least = [[float("inf")] * len(clocks) for _ in calls]
    for turn in range(rounds + 1):
        for i, call in enumerate(calls):
            start = [clock() for clock in clocks]
            call()
            took = [1000 * (clock() - begin) for clock, begin in zip(clocks, start)]
            if turn:
                least[i] = list(map(min, least[i], took))
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libcolumns.so")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    n, rng, engine = options.rows, np.random.default_rng(), Engine(options.library)
    # The memory belongs to pyarrow. If it belonged to NumPy, a thread of pyarrow's pool that releases it when Python
    # ends would abort.
    column = lambda values, nulls: pa.concat_arrays([pa.array(values, mask=rng.random(n) < nulls), pa.array([], values.dtype.name)])
    a, b = column(rng.standard_normal(n), 0.1), column(rng.standard_normal(n), 0.1)
    few, many = column(rng.integers(0, 1000, n).astype(np.int32), 0.01), column(rng.integers(0, n // 4, n), 0.01)
    table = pa.table({"a": a, "b": b, "few": few, "many": many})
    x, y, by_few, by_many = map(engine.take, (a, b, few, many))
    define = lambda name, nulls="propagate": engine.define(FUNCTIONS, name, 2, nulls)
    weighted, computed, distance, coalesce, quadrant = define("weighted"), define("weighted", "computed"), define("distance", "computed"), define("coalesce", "handled"), define("first_quadrant", "computed")
    one_plus_abs = lambda: pc.add(pc.abs(a), 1.0)
    rows = [
        ("a * 0.5 + b, called where both are valid", lambda: weighted(x, y), lambda: pc.add(pc.multiply(a, 0.5), b)),
        ("a * 0.5 + b, called everywhere, as pyarrow does", lambda: computed(x, y), lambda: pc.add(pc.multiply(a, 0.5), b)),
        ("sqrt(a * a + b * b) / (1 + abs(a)), everywhere", lambda: distance(x, y),
         lambda: pc.divide(pc.sqrt(pc.add(pc.multiply(a, a), pc.multiply(b, b))), one_plus_abs())),
        ("coalesce(a, b)", lambda: coalesce(x, y), lambda: pc.coalesce(a, b)),
        ("a > 0 and b > 0, everywhere", lambda: quadrant(x, y), lambda: pc.and_(pc.greater(a, 0), pc.greater(b, 0))),
        ("rows of a, b and a key where a > 0 and b > 0", lambda: engine.filter(quadrant, [x, y], [x, y, by_few]), lambda: table.select(["a", "b", "few"]).filter(pc.and_(pc.greater(a, 0), pc.greater(b, 0)))),
        ("sum of a by a key of 1000 values (i32)", lambda: engine.group([by_few], [(x, "sum")]), lambda: table.group_by("few").aggregate([("a", "sum")])),
        (f"sum of a by a key of {n // 4} values (i64)", lambda: engine.group([by_many], [(x, "sum")]), lambda: table.group_by("many").aggregate([("a", "sum")])),
    ]
    print(f"{n} rows, {os.cpu_count()} cores, pyarrow {pa.__version__}, {date.today()}; ms, least of {options.rounds}")
    print("| | kjit | pyarrow | ratio | kjit, CPU time | pyarrow, CPU time |\n|---|---|---|---|---|---|")
    for what, *calls in rows:
        (ours, our_cpu), (theirs, their_cpu) = turns(options.rounds, calls)
        print(f"| {what} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {our_cpu:.1f} | {their_cpu:.1f} |", flush=True)


main()
