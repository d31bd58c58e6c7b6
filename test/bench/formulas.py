#!/usr/bin/env python3
"""Formulas of kjit.eval beside numexpr, DuckDB and a loop in C with OpenMP, on the same data in one process, taking turns: the least wall
time of each call, in ms, and that of all threads' CPU time. Each call writes a column of f64. The last columns are kjit's first call in a new
process, for 10,000 rows and without a disk cache, after a call that has loaded the compiler. All results are compared.

    PYTHONPATH=build/release/python python3 test/bench/formulas.py

Libraries that are not installed are left out, and so is the loop without cc."""

import argparse
import ctypes
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date

import kjit
import numpy as np


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"without {name}", file=sys.stderr)
        return None


numexpr, duckdb, pyarrow = map(imported, ("numexpr", "duckdb", "pyarrow"))

# The formula, and the same in SQL and in C, where each name is an element of a column.
FORMULAS = [
    ("a * 0.5 + b", "a * 0.5 + b", "a * 0.5 + b"),
    ("a * sin(b) + where(c > 0, c, 0)", "a * sin(b) + case when c > 0 then c else 0 end", "a * sin(b) + (c > 0 ? c : 0)"),
    ("sqrt(a * a + b * b) / (1 + abs(c))", "sqrt(a * a + b * b) / (1 + abs(c))", "sqrt(a * a + b * b) / (1 + fabs(c))"),
    ("where(a > 0, log1p(a), exp(b))", "case when a > 0 then ln(1 + a) else exp(b) end", "a > 0 ? log1p(a) : exp(b)"),
    ("a * b + c * a - b * c + a / (1 + b * b)",) * 3,
]
FIRST = """
import sys, time, numpy as np, kjit
x = {n: np.linspace(-1, 1, 10000) for n in "abc"}
kjit.eval("a + 1", x)
start = time.perf_counter(), time.process_time()
kjit.eval(sys.argv[1], x)
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""


def loops(folder):
    """Returns a C function for each formula, compiled for this machine, or nothing without a compiler."""
    if not shutil.which("cc"):
        return None
    source = "#include <math.h>\n" + "".join(
        f"void f{i}(double *restrict r, const double *restrict pa, const double *restrict pb, const double *restrict pc, long n) {{\n"
        f"#pragma omp parallel for simd\nfor (long i = 0; i < n; i++) {{ double a = pa[i], b = pb[i], c = pc[i]; (void)c; r[i] = {text}; }}\n}}\n"
        for i, (_, _, text) in enumerate(FORMULAS)
    )
    path = os.path.join(folder, "loops.so")
    command = ["cc", "-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-lm"]
    subprocess.run(command, input=source, text=True, check=True)
    return ctypes.CDLL(path)


def turns(rounds, calls):
    """Returns the minimum wall and CPU time of each call in ms. The first call of each does not count."""
    clocks = (time.perf_counter, time.process_time)
    least = {name: [float("inf")] * 2 for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = [clock() for clock in clocks]
            call()
            took = [1000 * (clock() - begin) for clock, begin in zip(clocks, start)]
            if turn:
                least[name] = list(map(min, least[name], took))
    return least


def calls_of(number, columns, database, library, out):
    """The calls by name, which return their values. All of them except DuckDB write to out, because the pages of an array
    decide how fast memory is."""
    text, sql, _ = FORMULAS[number]
    calls = {"kjit": lambda: kjit.eval(text, columns, out=out)}
    if numexpr:
        calls["numexpr"] = lambda: numexpr.evaluate(text, columns, out=out)
    if database:
        calls["DuckDB"] = lambda: database.sql(f"select {sql} as r from t").to_arrow_table()["r"]
    if library:
        address = lambda x: ctypes.c_void_p(x.ctypes.data)
        function = getattr(library, f"f{number}")

        def of_c():
            function(address(out), *map(address, columns.values()), ctypes.c_long(len(columns["a"])))
            return out

        calls["C, OpenMP"] = of_c
    return calls


def compare(calls, text):
    expected = None
    for name, call in calls.items():
        found = call()
        values = found.copy() if isinstance(found, np.ndarray) else found.to_numpy()
        expected = values if expected is None else expected
        assert np.allclose(expected, values, rtol=1e-13), (name, text)


def first_call(text, processes):
    """Least wall and CPU time in ms of the first call in new processes."""
    environment = {**os.environ, "XDG_CACHE_HOME": "none", "HOME": "none"}  # no absolute path, so there is no disk cache
    runs = [
        list(map(float, subprocess.run([sys.executable, "-c", FIRST, text], env=environment, capture_output=True, text=True, check=True).stdout.split()))
        for _ in range(processes)
    ]
    return [1000 * min(each) for each in zip(*runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processes", type=int, default=7)
    options = parser.parse_args()
    rng, cores = np.random.default_rng(1), len(os.sched_getaffinity(0))
    columns = {name: rng.normal(size=options.rows) for name in "abc"}
    out = np.empty(options.rows)
    database = None
    if duckdb and pyarrow:
        database = duckdb.connect()
        given = pyarrow.table(columns)
        database.register("given", given)
        database.execute("create table t as select * from given")
    with tempfile.TemporaryDirectory() as folder:
        library = loops(folder)
        versions = [f"{module.__name__} {module.__version__}" for module in (numexpr, duckdb) if module]
        print(f"{date.today()}, {platform.node()}, {cores} cores, {options.rows} rows, {', '.join(versions)}\n")
        names = list(calls_of(0, columns, database, library, out))
        heads = [*(f"{name} | CPU" for name in names), "first call | CPU"]
        print(f"| formula | {' | '.join(heads)} |\n|{'---|' * (1 + 2 * len(heads))}")
        for number, (text, _, _) in enumerate(FORMULAS):
            calls = calls_of(number, columns, database, library, out)
            found = turns(options.rounds, calls)
            compare(calls, text)
            cells = [f"{value:.1f}" for name in names for value in found[name]]
            cells += [f"{value:.1f}" for value in first_call(text, options.processes)]
            print(f"| `{text}` | {' | '.join(cells)} |", flush=True)


main()
