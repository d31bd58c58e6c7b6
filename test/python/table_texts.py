# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Missing texts in row functions and orders of categories: pandas' own apply and group-by have the same results for columns of objects,
strings and categories. Columns of Arrow's type null, in which all elements are missing, are texts and numbers alike."""

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


def through_variable(row):
    text = row.s
    if row.b > 1:
        text = "a"
    return 1 if text == "a" else 2


def through_two(row):
    first = row.s
    second = first
    for i in range(2):
        first, second = second, first
    return second != "a"


# Comparisons of strings that may be None or NaN with literals.
FUNCTIONS = [
    lambda row: row.s == "a",
    lambda row: row.s != "a",
    lambda row: "a" == row.s,
    lambda row: row.s in ("a", "long text"),
    lambda row: row.s not in ("a", ""),
    lambda row: 1.5 if row.s == "never there" else row.b,
    lambda row: row.b * 2 if row.s == "a" or row.s == "b" else -row.b,
    lambda row: (row.s if row.b > 0 else "a") == "a",
    lambda row: np.where(row.s != "b", row.b, 0.0),
    through_variable,
    through_two,
]


def forms(texts):
    """Returns the strings, with missing ones, as pandas columns."""
    objects = pandas.Series(texts, dtype=object)
    yield objects
    yield objects.where(objects.notna(), np.nan)
    yield pandas.Series(texts).astype("category")
    yield pandas.Series(texts)  # pandas' usual string type, which depends on its version


if pandas:
    for count, share in ((1, 0), (50, 0.3), (20, 1.0)):
        texts = [None if rng.random() < share else str(x) for x in rng.choice(["a", "b", "", "long text"], count)]
        for column in forms(texts):
            frame = pandas.DataFrame({"s": column, "b": rng.normal(size=count)})
            for number, function in enumerate(FUNCTIONS):
                got, want = kjit.table(frame).apply(function), frame.apply(function, axis=1)
                assert got.tolist() == want.tolist(), (seed, number, column.dtype, got.tolist(), want.tolist())
    # pandas' NA among strings is NA.
    table = kjit.table(pandas.DataFrame({"s": pandas.array(["a", None], "string")}))
    assert table.apply(lambda row: row.s == "a").tolist() == [True, pandas.NA]
    try:
        table.apply(lambda row: 1 if row.s == "a" else 2)
    except TypeError as error:
        assert "boolean value of NA is ambiguous" in str(error)
    else:
        raise AssertionError("NA has no truth")
    table = kjit.table(pandas.DataFrame({"s": pandas.Series(["a", pandas.NA], dtype=object)}))
    assert table.apply(lambda row: row.s == "a").tolist() == [True, pandas.NA]
    # Minima and maxima of categories follow the order of the categories.
    frame = pandas.DataFrame({"k": rng.integers(0, 5, 100), "c": rng.choice(["low", "mid", "high"], 100)})
    frame["c"] = pandas.Categorical(frame.c, ["low", "mid", "high"], ordered=True)
    for how in ("min", "max", "first", "last"):
        got, want = kjit.table(frame).groupby("k").agg(c=("c", how)).c, frame.groupby("k").c.agg(how)
        assert got.tolist() == want.tolist(), (seed, how)

if polars:
    frame = polars.DataFrame({"k": rng.integers(0, 5, 100), "c": rng.choice(["low", "mid", "high"], 100)})
    frame = frame.with_columns(polars.col("c").cast(polars.Enum(["low", "mid", "high"])))
    want = frame.group_by("k").agg(polars.col("c").min()).sort("k")["c"].to_list()
    assert kjit.table(frame).groupby("k").agg(c=("c", "min")).sort("k")["c"].to_list() == want
    assert kjit.table(frame).sort("c")["c"].to_list() == frame.sort("c")["c"].to_list()
    try:
        kjit.table(frame.lazy())
    except TypeError as error:
        assert "not LazyFrame; collect() makes a DataFrame of it" in str(error)
    else:
        raise AssertionError("a LazyFrame has no rows yet")

# Columns of the type null.
nulls = [None] * 4
tables = [pyarrow.table({"s": pyarrow.nulls(4), "b": [1.0, 2, 3, 4]})] if pyarrow else []
tables += [polars.DataFrame({"s": polars.Series(nulls, dtype=polars.Null), "b": [1.0, 2, 3, 4]})] if polars else []
for table in map(kjit.table, tables):
    for function, want in (
        (lambda row: row.s == "a", nulls),
        (lambda row: row.s + 1, nulls),
        (lambda row: row.s if row.b > 2 else "x", ["x", "x", None, None]),
        (lambda row: 0 if row.s is kjit.NA else row.s, [0, 0, 0, 0]),
        (lambda row: "none" if row.s is kjit.NA else row.s, ["none"] * 4),
    ):
        made = table.apply(function)
        assert (made.to_pylist() if hasattr(made, "to_pylist") else made.to_list()) == want, made

# If compiled code lacks a function, the message has the name from the program.
try:
    kjit.table({"b": np.arange(3.0)}).apply(lambda row: np.nanmedian(row.b))
except kjit.Error as error:
    assert "`np.nanmedian`" in str(error) and "thing" not in str(error), error
else:
    raise AssertionError("np.nanmedian is not compiled")
