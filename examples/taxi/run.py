#!/usr/bin/env python3
"""Makes a table of taxi trips with missing values, as those of New York's taxis are, runs trips.sh over it, which only calls kjit-run, and compares with NumPy."""

import argparse
import csv
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np

ROWS = 5000


def make_table(rng, path):
    hour = rng.integers(0, 24, ROWS)
    fare, miles, minutes = rng.gamma(3, 5, ROWS).round(2), rng.gamma(2, 1.5, ROWS).round(1), rng.integers(0, 60, ROWS)
    tip = rng.gamma(1, 2, ROWS).round(2)
    known = {name: rng.random(ROWS) > missing for name, missing in (("fare", 0.05), ("tip", 0.4), ("miles", 0.1), ("minutes", 0.1))}
    columns = {"hour": hour, "fare": fare, "trip distance": miles, "minutes": minutes, "tip": tip, "zone": rng.integers(1, 265, ROWS)}
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=str(rng.choice([",", ";", "\t"])), quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(columns)
        valid = {name: known.get("miles" if name == "trip distance" else name, np.ones(ROWS, bool)) for name in columns}
        for i in range(ROWS):
            writer.writerow([values[i].item() if valid[name][i] else "" for name, values in columns.items()])
    return hour, *(np.where(known[name], values, np.nan) for name, values in (("fare", fare), ("miles", miles), ("minutes", minutes), ("tip", tip)))


def read_columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]]


def check(rng, folder, environment):
    hour, fare, miles, minutes, tip = make_table(rng, folder / "taxi.csv")
    script = pathlib.Path(__file__).with_name("trips.sh")
    done = subprocess.run(["sh", script, folder / "taxi.csv", folder], env=environment, capture_output=True, text=True)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print("seed", options.seed)
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        check(np.random.default_rng(options.seed), pathlib.Path(folder), os.environ | {"KJIT_RUN": options.kjit_run, "KJIT_DEVICE": options.device})
    print("taxi: right")


if __name__ == "__main__":
    main()
