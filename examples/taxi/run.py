#!/usr/bin/env python3
"""Makes a table of taxi trips with missing values, as those of New York's taxis are, runs trips.sh over it, which only calls kjit-run, and compares with NumPy. With pyarrow the script also reads the table as a Parquet file, if kjit-run can read Parquet files; otherwise a line tells the reason."""

import argparse
import csv
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

ROWS = 5000


def make_table(rng, folder):
    hour = rng.integers(0, 24, ROWS)
    fare, miles, minutes = rng.gamma(3, 5, ROWS).round(2), rng.gamma(2, 1.5, ROWS).round(1), rng.integers(0, 60, ROWS)
    tip = rng.gamma(1, 2, ROWS).round(2)
    known = {name: rng.random(ROWS) > missing for name, missing in (("fare", 0.05), ("tip", 0.4), ("miles", 0.1), ("minutes", 0.1))}
    columns = {"hour": hour, "fare": fare, "trip distance": miles, "minutes": minutes, "tip": tip, "zone": rng.integers(1, 265, ROWS)}
    valid = {name: known.get("miles" if name == "trip distance" else name, np.ones(ROWS, bool)) for name in columns}
    if pyarrow:
        table = pyarrow.table({name: pyarrow.array(values, mask=~valid[name]) for name, values in columns.items()})
        pyarrow.parquet.write_table(table, folder / "taxi.parquet", row_group_size=ROWS // 3)
    with open(folder / "taxi.csv", "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=str(rng.choice([",", ";", "\t"])), quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(columns)
        for i in range(ROWS):
            writer.writerow([values[i].item() if valid[name][i] else "" for name, values in columns.items()])
    return hour, *(np.where(known[name], values, np.nan) for name, values in (("fare", fare), ("miles", miles), ("minutes", minutes), ("tip", tip)))


def read_columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]]


def run_script(table, folder, environment):
    script = pathlib.Path(__file__).with_name("trips.sh")
    return subprocess.run(["sh", script, table, folder], env=environment, capture_output=True, text=True)


def check(columns, table, folder, environment):
    hour, fare, miles, minutes, tip = columns
    done = run_script(table, folder, environment)
    assert done.returncode == 0, done.stderr
    cost = fare + np.nan_to_num(tip)
    speed = np.where(minutes > 0, miles / (minutes / 60), np.nan)
    for found, expected in zip(read_columns(folder / "trips.csv"), (cost, speed)):
        assert np.allclose(found, expected, rtol=1e-12, equal_nan=True)
    trips, income = read_columns(folder / "hours.csv")
    assert np.array_equal(trips, np.bincount(hour, minlength=24))
    assert np.allclose(income, np.bincount(hour, np.nan_to_num(cost), 24), rtol=1e-9)
    is_good = (fare > 0) & (miles > 0)
    prices = np.sort(np.where(is_good, fare / miles, np.inf))
    assert np.allclose(np.load(folder / "prices.npy"), prices, rtol=1e-12)
    assert f"good: i64[] = {is_good.sum()}" in done.stdout, done.stdout


def check_parquet(columns, table, folder, environment):
    """Returns the outcome as text. A kjit-run without the module for Arrow's C++ library has to say so."""
    if not pyarrow:
        return "skipped, because pyarrow is not installed, which writes the file"
    reads_parquet = subprocess.run([environment["KJIT_RUN"], "--arg", f"x=@{table}:fare", "--print", "x[:1]"], capture_output=True, text=True)
    if reads_parquet.returncode:
        assert "kjit-arrow.so" in reads_parquet.stderr, reads_parquet.stderr
        return "skipped, because kjit-run has no module for Arrow's C++ library"
    check(columns, table, folder, environment)
    return "right"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print("seed", options.seed)
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        environment = os.environ | {"KJIT_RUN": options.kjit_run, "KJIT_DEVICE": options.device}
        files, results = pathlib.Path(folder), [pathlib.Path(folder, kind) for kind in ("csv", "parquet")]
        for made in results:
            made.mkdir()
        columns = make_table(np.random.default_rng(options.seed), files)
        check(columns, files / "taxi.csv", results[0], environment)
        print("taxi.parquet:", check_parquet(columns, files / "taxi.parquet", results[1], environment))
    print("taxi: right")


if __name__ == "__main__":
    main()
