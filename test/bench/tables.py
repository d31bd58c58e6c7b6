#!/usr/bin/env python3
"""Tables of kjit beside pandas, polars, pyarrow and DuckDB on the same data in one process, taking turns: the least wall time of each call, in
ms, and that of kjit's first call, which compiles. Libraries that are not installed are left out.

    PYTHONPATH=build/release/python python3 test/bench/tables.py --rows 1000000 10000000 --keys 1000

Group-bys have sum and mean, and with `own` a function of the group: kjit gets a lambda, the other libraries `max - min` as an expression."""

import argparse
import importlib
import os
import platform
import sys
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


pandas, polars, pyarrow, duckdb = map(imported, ("pandas", "polars", "pyarrow", "duckdb"))


def turns(rounds, calls):
    """name -> (first time, minimum time of the other calls), in ms."""
    first, least = {}, dict.fromkeys(calls, float("inf"))
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            took = 1000 * (time.perf_counter() - start)
            if turn:
                least[name] = min(least[name], took)
            else:
                first[name] = took
    return {name: (first[name], least[name]) for name in calls}


def spread(x):
    return x.max() - x.min()


def data(rows, keys):
    rng = np.random.default_rng(1)
    return {"k": rng.integers(0, keys, rows), "x": rng.normal(size=rows), "y": rng.normal(size=rows)}


def groups(columns, frame, lazy, arrow, own):
    """Sum and mean by key and, with `own`, the difference between maximum and minimum."""
    also = {"r": ("x", spread)} if own else {}
    calls = {"kjit": lambda: kjit.table(columns).groupby("k").agg(s=("x", "sum"), m=("y", "mean"), **also)}
    if pandas:

        def of_pandas():
            grouped = frame.groupby("k")
            made = grouped.agg(s=("x", "sum"), m=("y", "mean"))
            return made.assign(r=grouped["x"].max() - grouped["x"].min()) if own else made

        calls["pandas"] = of_pandas
    if polars:
        column = polars.col
        more = [(column("x").max() - column("x").min()).alias("r")] if own else []
        calls["polars"] = (
            lambda: lazy.group_by("k").agg(column("x").sum().alias("s"), column("y").mean(), *more).collect()
        )
    if pyarrow:
        more_of_arrow = [("x", "max"), ("x", "min")] if own else []
        calls["pyarrow"] = lambda: arrow.group_by("k").aggregate([("x", "sum"), ("y", "mean"), *more_of_arrow])
    if duckdb and pyarrow:
        text = "select k, sum(x), avg(y)" + (", max(x) - min(x)" if own else "") + " from arrow group by k"
        database = duckdb.connect()
        database.register("arrow", arrow)
        calls["duckdb"] = lambda: database.query(text).to_arrow_table()
    return calls


def joins(columns, frame, lazy, arrow, keys):
    """The inner join with a table that contains each key once."""
    rng = np.random.default_rng(2)
    other = {"k": rng.permutation(keys), "z": rng.normal(size=keys)}
    calls = {"kjit": lambda: kjit.table(columns).merge(other, on="k")}
    if pandas:
        frame_of_keys = pandas.DataFrame(other)
        calls["pandas"] = lambda: frame.merge(frame_of_keys, on="k")
    if polars:
        lazy_keys = polars.DataFrame(other).lazy()
        calls["polars"] = lambda: lazy.join(lazy_keys, on="k").collect()
    if pyarrow:
        arrow_keys = pyarrow.table(other)
        calls["pyarrow"] = lambda: arrow.join(arrow_keys, "k", join_type="inner")
    if duckdb and pyarrow:
        database = duckdb.connect()
        database.register("arrow", arrow)
        database.register("arrow_keys", arrow_keys)
        calls["duckdb"] = lambda: database.query("select * from arrow join arrow_keys using (k)").to_arrow_table()
    return calls


def windows(columns, frame, lazy, length):
    """The mean and the standard deviation in rolling windows."""
    calls = {"kjit": lambda: kjit.table(columns).rolling(length).agg(m=("x", "mean"), s=("x", "std"))}
    if pandas:
        calls["pandas"] = lambda: (frame["x"].rolling(length).mean(), frame["x"].rolling(length).std())
    if polars:
        column = polars.col("x")
        both = column.rolling_mean(length).alias("m"), column.rolling_std(length).alias("s")
        calls["polars"] = lambda: lazy.select(*both).collect()
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--keys", type=int, nargs="+", default=[1000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    versions = [f"{module.__name__} {module.__version__}" for module in (pandas, polars, pyarrow, duckdb) if module]
    print(f"{date.today()}, {platform.node()}, {len(os.sched_getaffinity(0))} cores, {', '.join(versions)}\n")
    names = ["kjit", *(module.__name__ for module in (pandas, polars, pyarrow, duckdb) if module)]
    print(f"| rows | call | {' | '.join(names)} | kjit's first call |\n|{'---|' * (len(names) + 3)}")
    for rows in options.rows:
        for keys in options.keys:
            columns = data(rows, keys)
            frame = pandas.DataFrame(columns) if pandas else None
            lazy = polars.DataFrame(columns).lazy() if polars else None
            arrow = pyarrow.table(columns) if pyarrow else None
            for title, calls in {
                f"group by {keys} keys: sum, mean": groups(columns, frame, lazy, arrow, False),
                f"group by {keys} keys: sum, mean, own": groups(columns, frame, lazy, arrow, True),
                f"join with {keys} keys": joins(columns, frame, lazy, arrow, keys),
                "windows of 100 rows: mean, std": windows(columns, frame, lazy, 100),
            }.items():
                found = turns(options.rounds, calls)
                cells = [f"{found[name][1]:.1f}" if name in found else "" for name in names]
                print(f"| {rows} | {title} | {' | '.join(cells)} | {found['kjit'][0]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
