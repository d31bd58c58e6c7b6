# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Functions over tables return objects of the table's library, with its types and its index. Operations that row
functions do not support are rejected with the line and the name."""

import math

import kjit
import numpy as np

pandas = polars = pyarrow = None
try:
    import pandas
except ImportError:
    print("without pandas: its results are not tested")
try:
    import polars
except ImportError:
    print("without polars: its results are not tested")
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its results are not tested")

NA = kjit.NA
LIMIT = 2.5
STEPS = np.array([10.0, 20.0, 30.0])


def refused(call, text, kind=kjit.SourceError):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


def lists(table):
    """Returns the columns of a dictionary of NumPy arrays as lists."""
    return {name: column.tolist() for name, column in table.items()}


def close(got, want):
    assert len(got) == len(want) and all(
        a is b if a is None or b is None else math.isclose(a, b, abs_tol=1e-12) for a, b in zip(got, want)
    ), (got, want)


# ---- forms of functions ----

rows = {
    "a": np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0]),
    "b": np.array([0.5, 1.5, 2.5, 3.5]),
    "s": np.array(["x", "y", "x", ""]),
}
t = kjit.table(rows)


def helper(row, factor=2, *, extra=1.0):
    return row.a * factor + extra


def twice(x):
    return x + x


def loops(row):
    total, i = 0.0, 0
    for k in range(1, 4):
        if k == 2:
            continue
        total += k * row.b
    while i < 3:
        i += 1
    return total + i


def unpacks(row):
    low, high = (row.a, row.b) if row.a is not NA and row.a < row.b else (row.b, row.a)
    return high - low


def ends_without_return(row):
    if row.b > LIMIT:
        return row.b


def two_missing(row):
    x = NA
    if row.b > 2:
        x = row.b
    return x


def assigns(x):
    if x is NA:
        return -1
    x += 1
    x = x * 2
    return x


def mixes(row):
    x = row.s
    if row.b > 1:
        x = 1
    return x


def returns_both(row):
    if row.b > 1:
        return row.s
    return row.b


def text_of(row):
    return row.s


def is_one_of(x, y):
    return x == y or x == "z"


def chosen(row):
    text, other = row.s, "z"
    if row.a is NA:
        text = NA
    elif row.b > 3:
        text = other
    return text


def returns_tuple(row):
    both = row.a, row.b
    return both


for function, want in (
    (lambda row: helper(row) + helper(row, 3, extra=row.b), [6.5, None, 18.5, 24.5]),
    (lambda row: twice(row.a) + twice(1), [4, None, 8, 10]),
    (loops, [5.0, 9.0, 13.0, 17.0]),
    (unpacks, [0.5, None, 0.5, 0.5]),
    (ends_without_return, [None, None, None, 3.5]),
    (two_missing, [None, None, 2.5, 3.5]),
    (
        lambda row: math.sqrt(row.b) + np.maximum(row.b, 1.0) + math.pi,
        [math.sqrt(b) + max(b, 1) + math.pi for b in (0.5, 1.5, 2.5, 3.5)],
    ),
    (lambda row: STEPS[1] + STEPS[int(row.b) % 3], [30.0, 40.0, 50.0, 30.0]),
    (lambda row: int(row.b) if row.s in ("x", "") else -1, [0, -1, 2, 3]),
    (lambda row: "x" == row.s and row.b > 1, [False, False, True, False]),
    (lambda row: row.s == "not there" or row.s != row.s, [False] * 4),
    (lambda row: min(row.b, 2.0) if 1 < row.b <= 2.5 else max(row.b, 7), [7, 1.5, 2.0, 7]),
    (lambda row: kjit.isna(row.a) | (row["b"] > 3), [False, True, False, True]),
    (lambda row: 7, [7] * 4),
    (lambda row: (y := row.a + 1) * y, [4, None, 16, 25]),
    (lambda row: float(row.a) // 2, [0.0, None, 1.0, 2.0]),
    (lambda row: row.a % 0 + row.a // 0, [0, None, 0, 0]),
):
    close(t.apply(function).tolist(), want)

assert t.apply(lambda row, v, w=2: row.b * v + w, args=(2,)).tolist() == [3, 5, 7, 9]
assert t.apply(lambda row, v, *, w=2: row.b * v + w, args=(2,)).tolist() == [3, 5, 7, 9]
assert t["b"].apply(lambda x, y: x * y, args=(4,)).tolist() == [2, 6, 10, 14] and t["a"].apply(twice).tolist() == [
    2,
    None,
    6,
    8,
]
assert lists(t.filter(lambda row: row.a > 1)) == {"a": [3, 4], "b": [2.5, 3.5], "s": ["x", ""]}
assert lists(t.assign(a=lambda row: row.b, c=lambda row: -row.a)) == {
    **lists(rows),
    "a": [0.5, 1.5, 2.5, 3.5],
    "c": [-0.5, -1.5, -2.5, -3.5],
}
assert lists(t.assign(k=3, z=lambda row: row.k + row.a, n=NA)) == {
    **lists(rows),
    "k": [3] * 4,
    "z": [4, None, 6, 7],
    "n": [None] * 4,
}
assert (
    t.apply(lambda row: row.b, axis=1).tolist()
    == t.apply(lambda row: row.b, axis="columns").tolist()
    == [0.5, 1.5, 2.5, 3.5]
)
named = kjit.table(
    {"count": np.arange(3), "name": np.arange(3), "a b": np.arange(3), "index": np.arange(3), "columns": np.arange(3)}
)
assert named.apply(lambda row: row.count + row.name + row["a b"] + row.index + row.columns).tolist() == [0, 5, 10]
assert t.columns == ["a", "b", "s"] and len(t) == 4 and "4 rows" in repr(t)
assert t.apply(lambda row: row.b).dtype == "f8" and not isinstance(t.apply(lambda row: row.b), np.ma.MaskedArray)

assert t["a"].apply(assigns).tolist() == [4, -1, 8, 10] and t.apply(lambda row: assigns(row.b)).tolist() == [3, 5, 7, 9]

# Strings as values.
pairs = kjit.table({**rows, "z": np.ma.array(["y", "y", "x", "z"], mask=[0, 0, 0, 1])})
for function, want in (
    (lambda row: row.s, ["x", "y", "x", ""]),
    (lambda row: "constant", ["constant"] * 4),
    (chosen, ["x", None, "x", "z"]),
    (lambda row: row.z if row.b > 1 else row.s, ["x", "y", "x", None]),
    (lambda row: row.s == row.z, [False, True, True, None]),
    (lambda row: (row.s if row.b > 1 else row.z) == "y", [True, True, False, False]),
    (lambda row: is_one_of(row.s, "x") or is_one_of("q", row.s), [True, False, True, False]),
):
    assert pairs.apply(function).tolist() == want, (pairs.apply(function), want)
assert lists(pairs.assign(k=lambda row: row.z, n=lambda row: row.k != "x", q="q")) == {
    **lists(pairs._native), "k": ["y", "y", "x", None], "n": [True, True, False, None], "q": ["q"] * 4
}  # fmt: skip
assert pairs.sort(lambda row: row.z)["b"].tolist() == [2.5, 0.5, 1.5, 3.5]

# Dates: NaT is a value of NumPy's dates, and isna() detects it.
dates = kjit.table({"d": np.array(["2020-01-01", "NaT", "2020-03-01"], "M8[D]"), "n": np.array([1, 2, 3])})
moved = dates.apply(lambda row: row.d + np.timedelta64(row.n, "D"))
assert moved.dtype == "M8[D]" and moved.astype("U").tolist() == ["2020-01-02", "NaT", "2020-03-04"]
assert dates.apply(lambda row: kjit.isna(row.d) or row.d > np.datetime64("2020-02-01")).tolist() == [False, True, True]

# ---- rejected functions ----

refused(lambda: t.apply(lambda row: row.bb), "the table has no column 'bb'; did you mean 'b'?")
refused(lambda: t.apply(lambda row: row.s + "x"), "column 's' has texts")
refused(lambda: t.apply(lambda row: row.s if row.b > 1 else 2), "one branch of the conditional expression is a string")
refused(lambda: t.apply(lambda row: -row.s), "column 's' has texts")
refused(lambda: t.apply(lambda row: row.a if row.s else 1), "column 's' has texts")
refused(lambda: t.apply(lambda row: math.sqrt(row.s)), "column 's' has texts")
refused(lambda: t.apply(lambda row: row.s == row.b), "a text cannot be compared with another value")
refused(lambda: t.apply(mixes), "`x` holds texts, but is assigned another value here")
refused(lambda: t.apply(returns_both), "this function returns a text here")
refused(lambda: t.apply(lambda row: text_of(row)), "only the row function itself returns texts")
refused(lambda: t.apply(lambda row: (row.a, row.b)), "a row function returns one value")
refused(lambda: t.apply(returns_tuple), "returns a tuple for a row", TypeError)
refused(lambda: t.apply(lambda row: print(row.a)), "a row function cannot call print()")
refused(lambda: t.apply(lambda row: np.sort(row.b)), "table_results.py")
refused(lambda: t.apply(lambda row: row.a, axis=0), "axis=0 is not supported", ValueError)
refused(lambda: t.apply(lambda row: row), "the row `row` as a value")
refused(lambda: t.apply(lambda row: [row.a]), "kernels have no lists")
refused(lambda: t.apply(lambda row: row.a.clip(1)), "has no methods")
refused(lambda: t.apply(lambda row: row.s < "x"), "==, != and `in` only")
refused(lambda: t.apply(lambda row: unknown), "`unknown` is not defined")  # noqa: F821
refused(lambda: t.apply(lambda row, v: row.a), "the row and 0 more were given", TypeError)
refused(lambda: t.apply(lambda row, v: row.a, args=("x",)), "a value for all rows must be a number, not str", TypeError)
refused(lambda: t.filter(lambda row: row.b), "must return a bool for each row, not float64", TypeError)
refused(lambda: t.apply(lambda row: row.a > 0 and row.b > 0), "element 1: boolean value of NA is ambiguous", TypeError)
refused(lambda: t.apply(lambda row: max(row.a, 1)), "expected a value, got NA", TypeError)
refused(
    lambda: kjit.table({"o": np.array([None])}).apply(lambda row: row.o),
    "column 'o': Python objects are not supported",
)
refused(lambda: kjit.table([1, 2]), "not list", TypeError)
refused(lambda: kjit.table({"a": np.zeros(2), "b": np.zeros(3)}), "has 3 elements", ValueError)

# ---- pandas ----

if pandas:
    frame = pandas.DataFrame(
        {
            "a": pandas.array([1, None, 3], "Int64"),
            "x": [1.5, np.nan, 3.5],
            "s": pandas.Categorical(["u", None, "v"]),
            "n": [1, 2, 3],
        },
        index=[7, 5, 3],
    )
    t = kjit.table(frame)
    for function, dtype in (
        (lambda row: row.a * row.x, "Float64"),
        (lambda row: row.n + row.x, "float64"),
        (lambda row: row.n * 2, "int64"),
        (lambda row: row.a > 1, "boolean"),
        (lambda row: row.n > 1, "bool"),
        (lambda row: row.n if row.n > 1 else NA, "Int64"),
    ):
        got = t.apply(function)
        want = frame.apply(lambda row, f=function: f(row), axis=1)
        assert got.dtype == dtype and got.index.equals(frame.index), (got, dtype)
        assert [pandas.isna(v) for v in got] == [pandas.isna(v) or v is NA for v in want], (got, want)
        assert all(a == b for a, b in zip(got, want) if not pandas.isna(a)), (got, want)
    for question in (pandas.isna, pandas.isnull):
        assert t.apply(lambda row, ask=question: ask(row.x)).tolist() == [False, True, False]
    assert t.apply(lambda row: pandas.notna(row.a) & pandas.notnull(row.x) & ~np.isnan(row.x)).tolist() == [
        True,
        False,
        True,
    ]
    both = pandas.DataFrame([[1, 2]], columns=pandas.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert kjit.table(both).apply(lambda row: row["a", "x"] + row["a", "y"]).tolist() == [3]
    assert kjit.table(pandas.DataFrame(index=[1, 2])).apply(lambda row: 1).tolist() == [1, 1]
    made = t.assign(y=lambda row: row.x > 2, n=lambda row: row.s is not NA and row.s == "v")
    assert (
        list(made) == ["a", "x", "s", "n", "y"]
        and made.n.tolist() == [False, False, True]
        and made.y.tolist() == [False, False, True]
    )
    pandas.testing.assert_frame_equal(t.filter(lambda row: row.n > 1), frame[frame.n > 1])
    assert (
        t["x"].apply(lambda x: x + 1).name == "x"
        and kjit.table(frame.x).apply(lambda x: x is NA).tolist() == [False] * 3
    )
    assert kjit.table(pandas.DataFrame(np.arange(4).reshape(2, 2))).apply(lambda row: row[0] + row[1]).tolist() == [
        1,
        5,
    ]
    for kind in ("string", "category", object):
        texts = pandas.DataFrame({"s": pandas.Series(["u", None, "v"], [7, 5, 3], dtype=kind)})
        got = kjit.table(texts).apply(lambda row: NA if row.s is NA else row.s if row.s == "u" else "other")
        assert [None if pandas.isna(x) else x for x in got] == ["u", None, "other"] and got.index.equals(
            texts.index
        ), got
    assert kjit.table(frame, nan_is_missing=True).apply(lambda row: row.x is NA).tolist() == [False, True, False]
    refused(
        lambda: kjit.table(pandas.DataFrame({"t": pandas.date_range("2020", periods=2, tz="UTC")})).apply(
            lambda row: row.t
        ),
        "time zone",
    )

# ---- pyarrow ----

if pyarrow:
    days = pyarrow.array([0, None, 3], pyarrow.int32()).cast(pyarrow.date32())
    data = pyarrow.table(
        {
            "d": days,
            "t": days.cast(pyarrow.timestamp("us")),
            "b": [True, None, False],
            "z": pyarrow.nulls(3),
            "f": pyarrow.array([1.5, None, 2], pyarrow.float32()),
        }
    )
    for x in (data, data.slice(1), data.to_batches()[0], data.slice(0, 0)):
        t = kjit.table(x)
        got = t.assign(
            later=lambda row: row.t + np.timedelta64(1, "D"),
            d=lambda row: row.d,
            none=lambda row: row.z is None,
            f=lambda row: -row.f,
        )
        assert type(got) is type(x) and got.schema.names == ["d", "t", "b", "z", "f", "later", "none"]
        assert (
            got.column(0).equals(x.column(0))
            and got.column(0).type == pyarrow.date32()
            and got.column(5).type == pyarrow.timestamp("us")
        )
        assert got.column(4).type == pyarrow.float32() and got.column(6).to_pylist() == [True] * len(x)
        assert t.filter(lambda row: row.b).column(2).to_pylist() == [True] * x.column(2).to_pylist().count(True)
    chunked = pyarrow.chunked_array(
        [pyarrow.array(["a", None]).dictionary_encode(), pyarrow.array(["b", "a"]).dictionary_encode()]
    )
    got = kjit.table(pyarrow.table({"s": chunked})).apply(lambda row: row.s)
    assert got.equals(pyarrow.chunked_array([["a", None, "b", "a"]])), got
    assert kjit.table(pyarrow.array([1, None])).apply(twice).equals(pyarrow.array([2, None]))
    shifted = pyarrow.py_buffer(b"x" + np.arange(5.0).tobytes()).slice(1)  # unaligned elements
    unaligned = pyarrow.table({"x": pyarrow.Array.from_buffers(pyarrow.float64(), 5, [None, shifted])})
    assert kjit.table(unaligned).apply(lambda row: row.x + 1).to_pylist() == [1, 2, 3, 4, 5]
    assert kjit.table(unaligned).groupby("x").size().num_rows == 5
    decimals = pyarrow.table({"m": pyarrow.array([None], pyarrow.decimal128(38, 2))})
    refused(
        lambda: kjit.table(decimals).apply(lambda row: row.m),
        "column 'm': decimals with 38 digits and the scale 2 are not supported",
    )

    class Other:
        """An object of another library."""

        def __arrow_c_stream__(self, schema=None):
            return data.__arrow_c_stream__()

    assert kjit.table(Other()).apply(lambda row: row.f + 1).to_pylist() == [2.5, None, 3.0]

# ---- polars ----

if polars:
    frame = polars.DataFrame({"a": [1, None, 3], "s": ["u", None, "v"], "b": [True, None, False]})
    frame = polars.concat([frame, frame.slice(1)], rechunk=False)
    t = kjit.table(frame)
    assert t.apply(lambda row: row.a + 0.5).to_list() == [1.5, None, 3.5, None, 3.5]
    assert t.assign(c=lambda row: NA if row.s is NA else row.s == "u")["c"].to_list() == [
        True,
        None,
        False,
        None,
        False,
    ]
    assert t.apply(lambda row: row.s).to_list() == ["u", None, "v", None, "v"]
    assert t.filter(lambda row: row.b).to_dict(as_series=False) == {"a": [1], "s": ["u"], "b": [True]}
    got = t.groupby("s").agg(total=("a", "sum"))
    assert isinstance(got, polars.DataFrame) and got.to_dict(as_series=False) == {"s": ["u", "v"], "total": [1, 6]}
