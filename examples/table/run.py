#!/usr/bin/env python3
"""Means, deviations, standardized values, histograms and quantiles of the columns of a table with missing values, by calls of algorithms, compared with NumPy's.
The table is temperatures.csv, monthly means of the Earth's surface temperature from 1880 to 2022, relative to those of 1951 to 1980: GISTEMP v4 of NASA's Goddard Institute for Space Studies, as published in 2022
(data.giss.nasa.gov/gistemp), a work of the United States government and in the public domain. The last months are missing. A larger table is random."""
import csv
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

QUANTILES = np.array([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
BINS = 24


def read_temperatures():
    """Returns (years, a row with twelve months for each year) from GISTEMP's file. The file has a title, a line of names, and a
    line for each year, with *** for missing values."""
    with open(beside(__file__, "temperatures.csv"), newline="") as file:
        lines = list(csv.reader(file))[2:]
    return [int(line[0]) for line in lines], np.array([[np.nan if text == "***" else float(text) for text in line[1:13]] for line in lines], np.float32)


def standardize(table):
    wide = table.astype(np.float64)
    mean, deviation = np.nanmean(wide, axis=0), np.nanstd(wide, axis=0)
    return wide, mean, deviation, ((wide - mean) / deviation).astype(np.float32)


def keep_off_edges(table):
    """Removes values that rounding could move across an edge of a bin or across the limit of nonzero."""
    while True:
        standardized = standardize(table)[3].astype(np.float64)
        bins = (standardized + 4) * (BINS / 8)
        near = (np.abs(bins - np.round(bins)) < 1e-4) | (np.abs(np.abs(standardized) - 2.5) < 1e-4)
        if not near.any():
            return table
        table[near] = np.nan


def add(p, tag, table):
    """Runs the calls for one table and compares with NumPy."""
    rows, columns = table.shape
    names = {name: f"{name}_{tag}" for name in ("table", "count", "mean", "deviation", "standardized", "histogram", "first", "sorted", "quantiles", "far", "far_count")}
    p.array(names["table"], table)
    for name, element in (("count", "i64"), ("mean", "f64"), ("deviation", "f64")):
        p.value(names[name], f"zeros:{element}[{columns}]")
    for call in (
        "put_moments({count}, {mean}, {deviation})[COLUMNS] = reduce(moments_at({table})[ROWS, COLUMNS], join, axis=0, commutes=true)",
        "{standardized} = map(standardize, {table}, {mean}, {deviation})",
        "{histogram} = histogram({standardized}, BINS, -4.0, 4.0)",
        "{first} = histogram({standardized}[:, 0], BINS, -4.0, 4.0)",
        "{sorted} = sort({table}, axis=0)",
        "{quantiles} = map(same, quantile_at({sorted}, {count}, q)[QUANTILES, COLUMNS])",
        "{far}, {far_count} = nonzero(is_far({standardized}, 2.5f32)[ROWS, COLUMNS])",
    ):
        for word, number in (("ROWS", rows), ("COLUMNS", columns), ("BINS", BINS), ("QUANTILES", len(QUANTILES))):
            call = call.replace(word, str(number))
        p.call(call.format(**names))
    wide, mean, deviation, standardized = standardize(table)
    p.expect(names["count"], (~np.isnan(table)).sum(axis=0))
    p.expect(names["mean"], mean)
    p.expect(names["deviation"], deviation)
    p.expect(names["standardized"], standardized)
    p.expect(names["quantiles"], np.nanquantile(wide, QUANTILES, axis=0))
    for name, values in (("histogram", standardized), ("first", standardized[:, 0])):
        p.expect(names[name], np.histogram(values[np.isfinite(values)].astype(np.float64), BINS, (-4, 4))[0])
    p.expect(names["far_count"], np.array((np.abs(standardized) > 2.5).sum()))
    return standardized


def main():
    p = Program(beside(__file__, "table.kir"), __doc__)
    p.array("q", QUANTILES)
    years, temperatures = read_temperatures()
    standardized = add(p, "temperatures", temperatures)
    month, year = (int(k) for k in np.unravel_index(np.nanargmax(standardized.T), standardized.T.shape))
    print(f"{len(years)} years; of all months that of year {years[year]}, month {month + 1} is furthest above its mean: by {standardized[year, month]:.2f} standard deviations")
    random = p.rng.normal(p.rng.normal(0, 30, 17), p.rng.uniform(0.1, 9, 17), (5_003, 17)).astype(np.float32)
    random[p.rng.random(random.shape) < 0.05] = np.nan
    add(p, "random", keep_off_edges(random))
    return p.run(rtol=2e-5, atol=2e-6)


if __name__ == "__main__":
    sys.exit(main())
