# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Rolling windows have the values that a loop over the windows in Python has, for values with missing ones at random, in whole tables and in
groups, in tables of NumPy, pandas, pyarrow and polars. With pandas installed, its own windows are compared, too."""

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


def spread(x):
    return x.max() - x.min()


def weighted(x):
    """A function whose result depends on the order of the values."""
    total = 0.0
    for i in range(len(x)):
        total += (i + 1) * x[i]
    return total


def variance(x):
    mean = math.fsum(x) / len(x)
    return math.fsum((v - mean) ** 2 for v in x) / (len(x) - 1)


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
    weighted: (lambda x: math.fsum((i + 1) * v for i, v in enumerate(x)), 1),
}


def loop(values, keys, window, min_periods, center, how):
    """Returns the results as a list, None if they are missing. keys: the groups of the rows, None for a row in no
    group."""
    function, needed = HOW[how]
    after = (window - 1) // 2 if center else 0
    made: list = [None] * len(values)
    for key in {k for k in keys if k is not None}:
        rows = [i for i, k in enumerate(keys) if k == key]
        for at, row in enumerate(rows):
            inside = rows[max(0, at - (window - 1 - after)) : at + after + 1]
            there = [values[i] for i in inside if values[i] is not None]
            enough = len(inside) if how == "count" else len(there)
            if enough >= max(window if min_periods is None else min_periods, 0 if how == "count" else needed):
                made[row] = function(there)
    return made


def masked(values):
    missing = rng.random(len(values)) < rng.choice([0, 0.2, 1], p=[0.4, 0.5, 0.1])
    return np.ma.array(values, mask=missing)


def with_pandas(table):
    """Nullable columns, or NumPy columns with NaN."""
    frame = {}
    for name, column in table.items():
        values, missing = np.ma.getdata(column).copy(), np.ma.getmaskarray(column).copy()
        if values.dtype.kind == "f" and rng.random() < 0.5:
            frame[name] = np.where(missing, np.nan, values)
        else:
            kinds = {"b": pandas.arrays.BooleanArray, "f": pandas.arrays.FloatingArray}
            frame[name] = kinds.get(values.dtype.kind, pandas.arrays.IntegerArray)(values, missing)
    return pandas.DataFrame(frame, index=np.arange(len(missing)) * 3 + 5)


def with_arrow(table):
    made = {}
    for name, column in table.items():
        array = pyarrow.array(column.tolist(), pyarrow.from_numpy_dtype(column.dtype))
        third = len(array) // 3
        front = pyarrow.concat_arrays([array[:2], array[:third]]).slice(min(2, len(array)))
        made[name] = pyarrow.chunked_array([front, array[:0], array[third:]])
    return pyarrow.table(made)


def with_polars(table):
    kinds = {"f8": "Float64", "i4": "Int32", "i8": "Int64", "b1": "Boolean"}
    frame = polars.DataFrame(
        {n: polars.Series(c.tolist(), dtype=getattr(polars, kinds[c.dtype.str[1:]])) for n, c in table.items()}
    )
    return polars.concat([frame[:1], frame[1:]], rechunk=False)


def listed(column):
    """Returns a column of any library as a list with None for missing values."""
    to_list = next(getattr(column, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    return [None if x is None or pandas and x is pandas.NA or x != x else x for x in to_list()]


def same(got, want):
    if got is None or want is None:
        return got is want
    return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)


MAKERS = [
    dict,
    *([with_pandas] if pandas else []),
    *([with_arrow] if pyarrow else []),
    *([with_polars] if polars else []),
]
trial = int(rng.integers(0, 4))
for count in (0, 1, 5, 60, 300):
    for _ in range(8):
        trial += 1
        maker = MAKERS[trial % len(MAKERS)]
        window = int(rng.choice([1, 2, 3, 7, 40, 1000]))
        min_periods = None if rng.random() < 0.4 else int(rng.integers(0, min(window, 4) + 1))
        center, in_groups = bool(rng.integers(0, 2)), bool(rng.integers(0, 2))
        table = {
            "k": masked(rng.integers(0, 4, count)),
            "x": masked(rng.normal(1e6, 1, count)),
            "i": masked(rng.integers(-9, 9, count).astype("i4")),
            "b": masked(rng.random(count) < 0.5),
        }
        native = maker(table)
        t = kjit.table(native)
        rolled = (t.groupby("k") if in_groups else t).rolling(window, min_periods, center)
        chosen = {f"{c}{n}": (c, how) for n, how in enumerate(HOW) for c in "xib"[: 1 + trial % 3]}
        made = rolled.agg(**chosen)
        keys = table["k"].tolist() if in_groups else [0] * count
        for name, (column, how) in chosen.items():
            got, want = listed(made[name]), loop(table[column].tolist(), keys, window, min_periods, center, how)
            where = seed, count, window, min_periods, center, in_groups, maker, column, how
            assert len(got) == len(want) and all(map(same, got, want)), (where, got, want)
        if maker is with_pandas:
            assert made.index.equals(native.index)

# pandas' own windows, also for values that differ only a little and are far from 0.
if pandas:
    for count in (1, 50, 400):
        frame = pandas.DataFrame(
            {"k": rng.integers(0, 3, count), "x": 1e7 + rng.normal(size=count), "y": rng.normal(size=count)}
        )
        frame.loc[rng.random(count) < 0.2, "x"] = np.nan
        frame.loc[rng.random(count) < 0.1, "y"] = 1e3
        for window, min_periods, center in (
            (1, 1, False),
            (5, 2, True),
            (6, 1, True),
            (30, None, False),
            (500, 1, False),
        ):
            for how in ("sum", "mean", "min", "max", "count", "var"):
                if how == "count" and min_periods is None:
                    continue  # versions of pandas differ here
                got = getattr(kjit.table(frame).rolling(window, min_periods, center), how)()
                want = getattr(frame.rolling(window, min_periods, center), how)()
                # pandas subtracts the values that leave a window, and loses digits in later windows.
                exact = {"var": 1e-3}.get(how, 1e-6)
                pandas.testing.assert_frame_equal(got, want, rtol=1e-6, atol=exact, check_dtype=False)
                got = getattr(kjit.table(frame).groupby("k")["x"].rolling(window, min_periods, center), how)()
                want = getattr(frame.groupby("k")["x"].rolling(window, min_periods, center), how)()
                want = want.droplevel(0).sort_index()
                pandas.testing.assert_series_equal(got, want, rtol=1e-6, atol=1e-4, check_dtype=False)
        got = kjit.table(frame["y"]).rolling(4).apply(spread)
        pandas.testing.assert_series_equal(got, frame["y"].rolling(4).apply(spread, raw=True))

# Long tables, which several threads compute: rows at random, in particular at the borders of the threads' parts.
for count, window, center in ((30_000, 5, True), (30_000, 9_000, False), (40_000, 50_000, True), (70_001, 300, False)):
    values = [masked(rng.normal(1e3, 1, count)), masked(rng.integers(0, 200, count).astype("u1"))][int(rng.integers(0, 2))]
    keys = np.where(rng.random(count) < 0.97, rng.choice([1, 7]), rng.integers(0, 9000, count))
    t = kjit.table({"k": keys, "x": values})
    chosen = {how: ("x", how) for how in HOW if isinstance(how, str)}
    for grouped in (None, t.groupby("k")):
        made = (grouped or t).rolling(window, 1, center).agg(**chosen)
        after = (window - 1) // 2 if center else 0
        for row in {0, 1, 8191, 8192, count - 1, *rng.integers(0, count, 20).tolist()}:
            rows = np.flatnonzero(keys == keys[row]) if grouped else np.arange(count)
            at = int(np.searchsorted(rows, row))
            inside = rows[max(0, at - (window - 1 - after)) : at + after + 1]
            there = np.ma.array(values[inside], "f8").compressed().tolist()
            for how in chosen:
                enough = (len(inside) if how == "count" else len(there)) >= max(1, HOW[how][1])
                got = made[how][row]
                got = None if got is np.ma.masked or got != got else float(got)
                assert same(got, HOW[how][0](there) if enough else None), (seed, count, window, bool(grouped), row, how, got)

# Sums have no rounding errors that grow with the window.
x = np.exp(10 * rng.normal(size=30_000))
made = kjit.table({"x": x}).rolling(20_000).sum()["x"]
assert all(math.isclose(made[i], math.fsum(x[i - 19_999 : i + 1]), rel_tol=1e-15) for i in (19_999, 25_000, 29_999)), seed

# A large value does not change the windows that it is not in, and equal values have the variance 0.
x = np.concatenate([np.full(50, 0.1), [1e300], np.full(50, 0.1), rng.random(100)])
made = kjit.table({"x": x}).rolling(7).agg(sum=("x", "sum"), var=("x", "var"))
assert np.array_equal(made["var"][6:50], np.zeros(44)) and np.array_equal(made["var"][57:101], np.zeros(44))
want = [math.fsum(x[i - 6 : i + 1]) for i in range(6, len(x))]
assert np.allclose(made["sum"][6:], want, rtol=1e-14, atol=0) and np.isnan(made["sum"][:6]).all()
infinite = kjit.table({"x": np.array([1.0, np.inf, 2, 3])}).rolling(2).sum()["x"]
assert np.array_equal(infinite, [np.nan, np.inf, np.inf, 5.0], equal_nan=True)

# Wrong arguments are rejected by name.
t = kjit.table({"x": np.arange(3), "s": np.array(["a", "b", "c"]), "d": np.arange(3).astype("M8[s]")})
for call, kind, text in (
    (lambda: t.rolling(0), ValueError, "window must be at least 1, not 0"),
    (lambda: t.rolling("3D"), TypeError, 'a window that is a span of time needs a time column, rolling("3s", on="time")'),
    (lambda: t.rolling(3.5), TypeError, "window must be a number of rows, not 3.5"),
    (lambda: t.rolling(2, 3), ValueError, "min_periods=3 is more than the 2 rows"),
    (lambda: t.rolling(2, -1), ValueError, "min_periods must be at least 0, not -1"),
    (lambda: t.rolling(2)["none"], KeyError, "none"),
    (lambda: t.rolling(2).agg(a=("none", "sum")), KeyError, "none"),
    (lambda: t.rolling(2).agg(a=("x", "median")), ValueError, "windows have no aggregation 'median'; use sum, mean"),
    (lambda: t.rolling(2).agg(a="sum"), TypeError, 'takes a pair such as ("price", "mean"), not \'sum\''),
    (lambda: t.rolling(2).agg(a=("x", 3)), TypeError, "a name or a Python function, not int"),
    (lambda: t.rolling(2).agg(), TypeError, "agg() takes keywords"),
    (lambda: t.rolling(2).sum(), TypeError, "'s' has texts"),
    (lambda: t.rolling(2)["d"].sum(), TypeError, "'d' has dates"),
    (lambda: t.rolling(2)["x"].apply(3), TypeError, "not int"),
):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")
