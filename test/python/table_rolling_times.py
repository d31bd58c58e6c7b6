# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Windows of spans of time, and windows of rows with open and closed ends, have the values that a loop over all pairs of rows has, in
whole tables and in groups, in tables of NumPy, pandas, pyarrow and polars. With pandas, its own windows are compared, too."""

import datetime
import math
import sys

import kjit
import numpy as np
import seeds

pandas = polars = pyarrow = None
try:
    import pandas
except ImportError:
    print("without pandas: its tables are not tested")
try:
    import polars
except ImportError:
    print("without polars: its tables are not tested")
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its tables are not tested")

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)
NANOSECONDS = {"D": 86400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
WINDOWS = {"1s": 10**9, "2500ms": 2_500_000_000, "1min": 60 * 10**9, "3h": 3 * 3600 * 10**9, "2D": 2 * 86400 * 10**9}


def variance(x):
    mean = math.fsum(x) / len(x)
    return math.fsum((v - mean) ** 2 for v in x) / (len(x) - 1)


def spread(x):
    return x.max() - x.min()


# Name of an aggregation: the function of the values that are not missing, and the minimum number of such values.
HOW = {
    "sum": (math.fsum, 0),
    "mean": (lambda x: math.fsum(x) / len(x), 1),
    "min": (min, 1),
    "max": (max, 1),
    "count": (len, 0),
    "var": (variance, 2),
    "std": (lambda x: math.sqrt(variance(x)), 2),
    spread: (lambda x: max(x) - min(x), 1),
}


def is_inside(at, other, times, span, center, closed):
    """Returns whether a row is in the window of another row, by their positions and their times in nanoseconds."""
    ahead = abs(times[other] - times[at]) if other >= at else -abs(times[at] - times[other])
    if not center and (other > at or closed in ("left", "neither") and ahead == 0):
        return False
    low, high = (-span, 0) if not center else (-span / 2, span / 2)
    return (low < ahead or low == ahead and closed in ("left", "both")) and (
        ahead < high or ahead == high and closed in ("right", "both") or not center and other <= at and closed in ("right", "both")
    )


def loop(values, keys, times, span, min_periods, center, closed, how):
    function, needed = HOW[how]
    made: list = [None] * len(values)
    for key in {k for k in keys if k is not None}:
        rows = [i for i, k in enumerate(keys) if k == key]
        for at, row in enumerate(rows):
            inside = [r for other, r in enumerate(rows) if is_inside(at, other, [times[r] for r in rows], span, center, closed)]
            there = [values[i] for i in inside if values[i] is not None]
            enough = len(inside) if how == "count" else len(there)
            if enough >= max(min_periods, 0 if how == "count" else needed):
                made[row] = function(there)
    return made


def with_pandas(table):
    frame = {n: np.ma.getdata(c) if n == "t" else pandas.array(c.tolist(), "Int64" if c.dtype.kind == "i" else "Float64") for n, c in table.items()}
    return pandas.DataFrame(frame)


def with_arrow(table):
    made = {}
    for name, column in table.items():
        array = pyarrow.array(column.data, mask=np.ma.getmaskarray(column)) if name == "t" else pyarrow.array(column.tolist())
        third = len(array) // 3
        made[name] = pyarrow.chunked_array([array[:third], array[:0], array[third:]])
    return pyarrow.table(made)


def listed(column):
    to_list = next(getattr(column, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    return [None if x is None or pandas and x is pandas.NA or x != x else x for x in to_list()]


def same(got, want):
    if got is None or want is None:
        return got is want
    return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)


MAKERS = [dict, *([with_pandas] if pandas else []), *([with_arrow] if pyarrow else [])]
if polars and pyarrow:
    MAKERS.append(lambda table: polars.from_arrow(with_arrow(table)))
for trial in range(40):
    count = int(rng.choice([0, 1, 6, 40]))
    unit, (window, span) = str(rng.choice(list(NANOSECONDS))), list(WINDOWS.items())[trial % len(WINDOWS)]
    step = max(NANOSECONDS[unit], int(span * rng.choice([0.1, 0.5, 1])))
    counts = np.sort(rng.integers(-5 * count, 5 * count + 1, count)) * (step // NANOSECONDS[unit])
    counts = counts[::-1].copy() if trial % 5 == 4 else counts
    table = {
        "k": np.ma.array(rng.integers(0, 3, count), mask=rng.random(count) < 0.1),
        "t": np.ma.array(counts.astype(f"M8[{unit}]"), mask=False),
        "x": np.ma.array(rng.normal(1e6, 1, count), mask=rng.random(count) < 0.3),
        "i": np.ma.array(rng.integers(-9, 9, count), mask=rng.random(count) < rng.choice([0, 1])),
    }
    times = [int(n) * NANOSECONDS[unit] for n in counts]
    closed, center, in_groups = [str(rng.choice(["right", "left", "both", "neither"])), bool(trial % 2), bool(rng.integers(0, 2))]
    min_periods = None if rng.random() < 0.5 else int(rng.integers(0, 4))
    maker = MAKERS[trial % len(MAKERS)]
    if maker is not dict and unit == "D":
        table["t"] = table["t"].astype("M8[s]")
    t = kjit.table(maker(table))
    rolled = (t.groupby("k") if in_groups else t).rolling(window, min_periods, center, on="t", closed=closed)
    made = rolled.agg(**{f"{c}{n}": (c, how) for n, how in enumerate(HOW) for c in "xi"})
    keys = table["k"].tolist() if in_groups else [0] * count
    for n, how in enumerate(HOW):
        for column in "xi":
            least = 1 if min_periods is None else min_periods
            want = loop(table[column].tolist(), keys, times, span, least, center, closed, how)
            where = seed, trial, window, unit, closed, center, in_groups, min_periods, how
            assert all(map(same, listed(made[f"{column}{n}"]), want)), (where, listed(made[f"{column}{n}"]), want)

# Windows of rows with other ends.
x = rng.normal(size=30)
for window in (1, 4, 50):
    for closed in ("right", "left", "both", "neither"):
        for center in (False, True):
            after = (window - 1) // 2 if center else 0
            made = kjit.table({"x": x}).rolling(window, 0, center, closed=closed).sum()["x"]
            for row, got in enumerate(made):
                first = row + after - window + (0 if closed in ("left", "both") else 1)
                end = row + after + (0 if closed in ("left", "neither") else 1)
                assert same(got, math.fsum(x[max(0, first) : max(0, end)])), (seed, window, closed, center, row)

# pandas' own windows, over a column and over an index, and long ones, which several threads compute.
if pandas:
    for count in (1, 300, 40_000):
        seconds = np.sort(rng.choice(4 * count, count, replace=False))
        frame = pandas.DataFrame({"x": rng.normal(size=count), "t": seconds.astype("M8[s]").astype("M8[ns]"), "y": rng.normal(size=count)})
        frame.loc[rng.random(count) < 0.2, "x"] = np.nan
        indexed = frame.set_index("t")
        for window in ("7s", "1h30min", datetime.timedelta(minutes=10), np.timedelta64(20, "s"), pandas.Timedelta("3s")):
            for how in ("sum", "max", "count"):
                closed = str(rng.choice(["right", "left", "both", "neither"]))
                got = getattr(kjit.table(frame).rolling(window, on="t", closed=closed), how)()
                window_of_pandas = pandas.Timedelta(window)
                want = getattr(frame.rolling(window_of_pandas, on="t", closed=closed), how)()
                pandas.testing.assert_frame_equal(got, want, rtol=1e-6, atol=1e-6, check_dtype=False)
                got = getattr(kjit.table(indexed).rolling(window, closed=closed), how)()
                want = getattr(indexed.rolling(window_of_pandas, closed=closed), how)()
                pandas.testing.assert_frame_equal(got, want, rtol=1e-6, atol=1e-6, check_dtype=False, check_freq=False)
        got, want = kjit.table(frame).rolling("7s", on="t")[["y"]].sum(), frame.rolling("7s", on="t")[["y"]].sum()
        assert list(got) == list(want) and np.allclose(got.y, want.y)
        got, want = kjit.table(frame).rolling("7s", on="t")["y"].mean(), frame.rolling("7s", on="t")["y"].mean()
        assert got.name == want.name and np.allclose(got, want)

# Times whose distance does not fit in a signed 64-bit integer.
far = np.array([-(2**63) + 1, 0, 2**63 - 1]).astype("M8[ns]")
assert kjit.table({"t": far, "x": np.ones(3)}).rolling("1h", on="t").sum()["x"].tolist() == [1, 1, 1]

t = kjit.table({"t": np.arange(3).astype("M8[s]"), "w": np.array([2, 1, 3], "M8[s]"), "n": np.array([1, 2, "NaT"], "M8[s]"), "x": np.arange(3.0)})
masked = kjit.table({"t": np.ma.array(np.arange(3).astype("M8[s]"), mask=[0, 1, 0]), "x": np.arange(3.0)})
for call, kind, text in (
    (lambda: t.rolling("3x", on="t"), ValueError, "'3x' is not a window"),
    (lambda: t.rolling("", on="t"), ValueError, "must be a positive span of time"),
    (lambda: t.rolling("0s", on="t"), ValueError, "must be a positive span of time, not '0s'"),
    (lambda: t.rolling(np.timedelta64(1, "M"), on="t"), ValueError, "has no fixed length"),
    (lambda: t.rolling("3s", on="x"), TypeError, "the time column 'x' must have dates, not float64"),
    (lambda: t.rolling("3s", on="z"), KeyError, "z"),
    (lambda: t.rolling(3, on="t"), TypeError, "on='t' needs a window that is a span of time"),
    (lambda: t.rolling("3s", on="t", closed="open"), ValueError, "closed must be"),
    (lambda: t.rolling("3s", -1, on="t"), ValueError, "min_periods must be at least 0"),
    (lambda: t.rolling("3s", on="w")["x"].sum(), ValueError, "the time column 'w' must be in order; sort()"),
    (lambda: t.rolling("3s", on="n")["x"].sum(), ValueError, "the time column 'n' has missing values"),
    (lambda: masked.rolling("3s", on="t"), ValueError, "the time column 't' has missing values"),
    (lambda: kjit.table({"t": np.array([2**60], "M8[s]"), "x": np.ones(1)}).rolling("1ns", on="t")["x"].sum(), OverflowError, "do not fit into 64 bits in the unit of the window, 1 ns"),
):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")
