# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Aggregations of groups have the values that a loop over the rows in Python has, for keys of all types with missing values at
random, in tables of NumPy, pandas and pyarrow. With pandas and pyarrow installed, their own group-by is compared, too."""

import math
import statistics
import sys

import kjit
import numpy as np
import seeds
from kjit.tables import own_folds

pandas = pyarrow = None
try:
    import pandas
except ImportError:
    print("without pandas: its tables are not tested")
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its tables are not tested")

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)


def keys_of(kind, count):
    """Keys of few values, also such as need a hash table."""
    if kind == "texts":
        return np.array(["b", "a", "", "long text"])[rng.integers(0, 4, count)]
    if kind == "bools":
        return rng.random(count) < 0.5
    if kind == "dates":
        return rng.integers(-20, 20, count).astype("M8[s]")
    few = rng.integers(1, 300)
    values = {
        "small": rng.integers(-100, 100, few).astype("i2"),
        "wide": rng.integers(-(2**63), 2**63 - 1, few),
        "unsigned": rng.integers(0, 2**64, few, dtype="u8"),
        "floats": np.concatenate([[-0.0, 0.0], rng.normal(size=few)]),
        "distinct": rng.integers(-(2**62), 2**62, count + 1),
    }[kind]
    return values[rng.integers(0, len(values), count)]


def masked(values):
    missing = rng.random(len(values)) < rng.choice([0, 0.2, 1], p=[0.4, 0.5, 0.1])
    return np.ma.array(values, mask=missing)


def spread(x):
    return x.max() - x.min()


def loop(table):
    """Group by group: key -> name -> value, None where it is missing."""
    groups = {}
    for row in zip(*(table[name].tolist() for name in ("k", "x", "i", "w"))):
        if row[0] is not None:
            groups.setdefault(row[0], []).append(row[1:])
    found = {}
    for key in sorted(groups):
        x, i, w = ([row[at] for row in groups[key] if row[at] is not None] for at in range(3))
        mean = math.fsum(x) / len(x) if x else None
        found[key] = {
            "total": math.fsum(x),
            "mean": mean,
            "var": math.fsum((v - mean) ** 2 for v in x) / (len(x) - 1) if len(x) > 1 else None,
            "low": min(x, default=None),
            "high": max(i, default=None),
            "number": len(i),
            "sum": sum(i),
            "first": i[0] if i else None,
            "last": i[-1] if i else None,
            "different": len(set(i)),
            "middle": statistics.median(x) if x else None,
            "most": float(np.quantile(x, 0.9)) if x else None,
            "own": max(x) - min(x) if x else None,
            "product": math.fsum(a * b for a, b, _ in groups[key] if a is not None and b is not None),
            "mean_of_wide": sum(w) / len(w) if w else None,
            "var_of_wide": float(statistics.variance(w)) if len(w) > 1 else None,
        }
    return found


AGGREGATIONS = {
    "total": ("x", "sum"),
    "mean": ("x", "mean"),
    "var": ("x", "var"),
    "low": ("x", "min"),
    "high": ("i", "max"),
    "number": ("i", "count"),
    "sum": ("i", "sum"),
    "first": ("i", "first"),
    "last": ("i", "last"),
    "different": ("i", "nunique"),
    "middle": ("x", "median"),
    "most": ("x", ("quantile", 0.9)),
    "own": ("x", spread),
    "product": (lambda row: row.x * row.i, "sum"),
    "mean_of_wide": ("w", "mean"),
    "var_of_wide": ("w", "var"),
}


def with_arrow(table):
    """Columns in two chunks, of which the first one is a slice."""
    made = {}
    for name, column in table.items():
        array = pyarrow.array(
            column.tolist(), pyarrow.string() if column.dtype.kind == "U" else pyarrow.from_numpy_dtype(column.dtype)
        )
        front = pyarrow.concat_arrays([array[:2], array[: len(array) // 3]]).slice(min(2, len(array)))
        made[name] = pyarrow.chunked_array([front, array[len(array) // 3 :]])
    return pyarrow.table(made)


def with_pandas(table):
    frame = {}
    for name, column in table.items():
        values, missing = np.ma.getdata(column).copy(), np.ma.getmaskarray(column).copy()
        if values.dtype.kind == "U":
            frame[name] = pandas.array(
                [pandas.NA if m else x for x, m in zip(values.tolist(), missing)], dtype="string"
            )
        elif values.dtype.kind == "M":
            values[missing] = np.datetime64("NaT")
            frame[name] = values.astype("M8[ns]")
        else:
            kinds = {"b": pandas.arrays.BooleanArray, "f": pandas.arrays.FloatingArray}
            frame[name] = kinds.get(values.dtype.kind, pandas.arrays.IntegerArray)(values, missing)
    return pandas.DataFrame(frame)


def columns_of(made, kind):
    """The result as lists, name -> list."""
    if kind is with_pandas:
        made = made.reset_index()
        return {name: [None if x is pandas.NA else x for x in made[name].tolist()] for name in made}
    return made.to_pydict() if kind is with_arrow else {name: column.tolist() for name, column in made.items()}


def same(got, want):
    if got is None or want is None:
        return got is want
    return got == want or isinstance(want, float) and math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)


MAKERS = [dict, *([with_pandas] if pandas else []), *([with_arrow] if pyarrow else [])]
trial = int(rng.integers(0, 3))
for kind in ("texts", "bools", "dates", "small", "wide", "unsigned", "floats", "distinct"):
    for count in (0, int(rng.integers(1, 60)), 13000):
        trial += 1
        maker = MAKERS[trial % len(MAKERS)]
        table = {
            "k": masked(keys_of(kind, count)),
            "x": masked(rng.normal(size=count)),
            "i": masked(rng.integers(-9, 9, count).astype("i4")),
            "w": masked(rng.integers(2**61, 2**63 - 1, count)),  # sums do not fit into 64 bits
        }
        want = loop(table)
        native = maker(table)
        got = columns_of(kjit.table(native).groupby("k").agg(**AGGREGATIONS), maker)
        keys = [k.to_pydatetime() if hasattr(k, "to_pydatetime") else k for k in got.pop("k")]
        assert keys == list(want), (seed, kind, count, maker, keys, list(want))
        for name, column in got.items():
            for key, value in zip(keys, column):
                assert same(value, want[key][name]), (seed, kind, count, maker, name, key, value, want[key][name])

# Other forms: a dictionary, one aggregation, selected columns, sizes.
for maker in MAKERS:
    native = maker({"k": np.array([2, 1, 2]), "x": np.array([0.5, 1.5, 2.5]), "i": np.array([1, 2, 3])})
    grouped = kjit.table(native).groupby("k")
    sums = {"k": [1, 2], "x": [1.5, 3.0], "i": [2, 4]}
    for got in (grouped.sum(), grouped.agg("sum"), grouped.agg({"x": "sum", "i": "sum"}), grouped[["x", "i"]].sum()):
        assert columns_of(got, maker) == sums, got
    assert columns_of(grouped.agg({"x": lambda x: x.max()}), maker) == {"k": [1, 2], "x": [1.5, 2.5]}
    one, size = grouped["x"].mean(), grouped.size()
    if maker is with_pandas:
        assert (
            isinstance(one, pandas.Series)
            and one.equals(native.groupby("k")["x"].mean())
            and size.tolist() == [1, 2]
            and size.name is None
        )
        assert isinstance(grouped[["x"]].mean(), pandas.DataFrame)
    else:
        assert columns_of(one, maker) == {"k": [1, 2], "x": [1.5, 1.5]} and columns_of(size, maker) == {
            "k": [1, 2],
            "size": [1, 2],
        }

# Sums of small numbers and of bools.
for kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "?"):
    k, x = rng.integers(0, 3, 500), rng.integers(0, 2 if kind == "?" else 120, 500).astype(kind)
    got = kjit.table({"k": k, "x": x}).groupby("k").agg(s=("x", "sum"), m=("x", "mean"), v=("x", "var"), high=("x", "max"))
    wide = [x[k == key].astype("f8") for key in range(3)]
    assert got["s"].tolist() == [w.sum() for w in wide] and got["s"].dtype == ("u8" if kind[0] == "u" else "i8"), kind
    assert got["high"].tolist() == [w.max() for w in wide] and got["high"].dtype == kind
    assert np.allclose(got["m"], [w.mean() for w in wide]) and np.allclose(got["v"], [w.var(ddof=1) for w in wide])

# Functions that need only folds of the values have the same results as for the whole array, also if there are NaNs among
# the values.
def above(x):
    high = np.max(x)
    if high > 10:
        high = high - min(x)
    return high


of_folds = (
    lambda x: x.max() - x.min(),
    lambda x: x.sum() / len(x),
    lambda x: x.mean() * 2 + x.size,
    lambda x: max(x) - np.min(x) * 2,
    lambda x: math.sqrt(abs(x.min())),
    above,
)
of_elements = (lambda x: x[-1] - x.min(), lambda x: (x * x).sum(), lambda x: x.sum(dtype=np.float64))
assert all(own_folds.of(f) for f in of_folds) and not any(own_folds.of(f) for f in of_elements)
for kind in ("f8", "f4", "i1", "i4", "i8", "u1", "u4", "u8"):
    for maker in MAKERS:
        x = (rng.normal(size=9000) * 50 if kind[0] != "u" else rng.integers(0, 99, 9000)).astype(kind)
        if kind[0] == "f" and maker is not with_pandas:
            x[rng.integers(0, 9000, 5)] = np.nan
        native = maker({"k": masked(rng.integers(-3, 9, 9000)), "x": masked(x)})
        for function in of_folds:
            asked = {name: ("x", (lambda f: lambda x: f(x))(function) if name == "whole" else function) for name in ("folded", "whole")}
            got = columns_of(kjit.table(native).groupby("k").agg(**asked), maker)
            for a, b in zip(got["folded"], got["whole"]):
                assert same(a, b) or a != a and b != b or math.isclose(a, b, rel_tol=1e-4 if kind == "f4" else 1e-9), (seed, kind, maker, a, b)
for kind in ("i1", "u1", "u2", "i4", "u4", "i8", "u8"):
    x = np.array([1, 2, 100], kind)
    made = kjit.table({"k": np.array([0, 1, 0]), "x": x}).groupby("k").agg(sum=("x", lambda x: x.sum()), high=("x", lambda x: x.max()))
    assert made["sum"].dtype == x.sum().dtype and made["high"].dtype == x.dtype and made["sum"].tolist() == [101, 2], made

# Texts of groups.
for maker in MAKERS:
    texts = np.ma.array(["b", "a", "c", "", ""], mask=[0, 0, 0, 1, 1])
    native = maker({"k": np.array([2, 1, 2, 1, 3]), "s": texts})
    got = (
        kjit.table(native)
        .groupby("k")
        .agg(low=("s", "min"), high=("s", "max"), first=("s", "first"), last=("s", "last"), n=("s", "count"), u=("s", "nunique"))
    )
    got = {
        name: [None if x is None or x != x else x for x in column] for name, column in columns_of(got, maker).items()
    }
    assert got == {
        "k": [1, 2, 3],
        "low": ["a", "b", None],
        "high": ["a", "c", None],
        "first": ["a", "b", None],
        "last": ["a", "c", None],
        "n": [1, 2, 0],
        "u": [1, 2, 0],
    }, got

# Groups of several columns.
for maker in MAKERS:
    count = 700
    table = {
        "k": masked(keys_of("texts", count)),
        "j": masked(keys_of("small", count)),
        "b": masked(keys_of("bools", count)),
        "i": np.arange(count),
    }
    names = ["k", "j", "b"][: int(rng.integers(2, 4))]
    want: dict = {}
    for i, key in enumerate(zip(*(table[name].tolist() for name in names))):
        if None not in key:
            want[key] = [want.get(key, [0])[0] + i, want.get(key, [0, i])[1]]
    got = columns_of(kjit.table(maker(table)).groupby(names).agg(total=("i", "sum"), first=("i", "first")), maker)
    found = dict(zip(zip(*(got[name] for name in names)), map(list, zip(got["total"], got["first"]))))
    assert found == want and list(found) == sorted(found), (seed, maker, names)

# Categories of pandas keep their order and their type. A column of texts without missing values gives bools that cannot be missing.
if pandas:
    texts = rng.choice(["z", "x", "yy"], 300)
    frame = pandas.DataFrame({"k": pandas.Categorical(texts, ["z", "unused", "x", "yy"], ordered=True), "j": rng.integers(0, 3, 300), "s": texts})
    for names in ("k", ["k", "j"], ["j", "k"]):
        got, want = kjit.table(frame).groupby(names).agg(n=("j", "sum")), frame.groupby(names, observed=True).agg(n=("j", "sum"))
        pandas.testing.assert_frame_equal(got, want[want.index.isin(got.index)])
        assert len(got) == len(frame[["k", "j"] if isinstance(names, list) else ["k"]].drop_duplicates())
    pandas.testing.assert_frame_equal(kjit.table(frame).sort("k"), frame.sort_values("k", kind="stable"))
    assert kjit.table(frame).apply(lambda row: row.s == "x").dtype == bool == kjit.table(frame).apply(lambda row: row.k != "x").dtype

# Orders: missing values come last, and equal values keep their order.
for maker in MAKERS:
    for kind in ("texts", "bools", "small", "floats", "dates"):
        count = int(rng.integers(0, 500))
        table = {"k": masked(keys_of(kind, count)), "i": np.arange(count)}
        keys, native = table["k"].tolist(), maker(table)
        t = kjit.table(native)
        there, missing = [i for i in range(count) if keys[i] is not None], [i for i in range(count) if keys[i] is None]
        up = sorted(there, key=keys.__getitem__)
        down = sorted(there, key=lambda i: (-sorted({k for k in keys if k is not None}).index(keys[i]), i))
        for got, want in (
            (t.sort("k"), up + missing),
            (t.sort("k", descending=True), down + missing),
            (t.top_k(7, "k"), (down + missing)[:7]),
            (t.top_k(count + 5, "k", smallest=True), up + missing),
            (t.sort(lambda row: -row.i), list(range(count))[::-1]),
        ):
            assert columns_of(got, maker)["i"] == want, (seed, maker, kind)
        counted = columns_of(t.value_counts("k"), maker)
        found = dict(
            zip((k.to_pydatetime() if hasattr(k, "to_pydatetime") else k for k in counted["k"]), counted["count"])
        )
        assert found == {k: keys.count(k) for k in set(keys) - {None}} and counted["count"] == sorted(
            counted["count"], reverse=True
        ), (seed, maker, kind)

# What is wrong is refused by name.
table = kjit.table({"k": np.arange(3), "s": np.array(["a", "b", "c"]), "d": np.arange(3).astype("M8[s]")})
for call, kind, text in (
    (lambda: table.groupby("none"), KeyError, "none"),
    (lambda: table.groupby("k").agg(x=("k", "mode")), ValueError, "there is no aggregation 'mode'; the aggregations are sum, mean"),
    (lambda: table.groupby("k").agg(x="sum"), TypeError, "takes a pair"),
    (lambda: table.groupby(lambda row: row.k), KeyError, "groups by a function: assign()"),
    (lambda: table.sort(["k", "s"]), TypeError, "the name of a column must be a string or another hashable object, not ['k', 's']"),
    (lambda: table["none"], KeyError, "the table has no column 'none': it has 'k', 's', 'd'"),
    (lambda: table[["k"]], TypeError, "takes one name"),
    (lambda: table.k, AttributeError, 'the column is table["k"]'),
    (lambda: table.join, AttributeError, "merge() joins tables"),
    (lambda: table["k"].mean, AttributeError, "a kjit.Series has no attribute 'mean'"),
    (lambda: table.groupby("k").transform, AttributeError, "use agg() with the name of an aggregation"),
    (lambda: list(table.groupby("k")), TypeError, "groups cannot be iterated over"),
    (lambda: table.assign(x=np.arange(3)), TypeError, "assign(x=...) takes a function of a row or one value"),
    (lambda: table.groupby("k").agg(x=("s", "mean")), TypeError, "agg(x=...): 's' has texts, whose only aggregations are min, max"),
    (lambda: table.groupby("k").agg(x=("t", "sum")), KeyError, "t"),
    (lambda: table.groupby("k").agg({"d": ["min", "max"]}), TypeError, "several aggregations of column 'd'"),
    (lambda: table.groupby("k").sum(), TypeError, "'s' has texts"),
    (lambda: table.groupby("k")["none"], KeyError, "none"),
    (lambda: table.groupby("k").agg(k=("d", "min")), ValueError, "a key column already has this name"),
    (lambda: table.groupby("k").agg(q=("d", ("quantile", 2))), ValueError, "q must be a number from 0 to 1, not 2"),
    (lambda: table.groupby("k").agg(), TypeError, "agg() takes keywords"),
    (lambda: table.top_k(-1, "k"), ValueError, "the number of rows"),
    (lambda: table.groupby("k").agg(x=("d", "sum")), TypeError, "the sum of dates"),
):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")

# Keys that change between two aggregations, and indices outside of a dictionary, which Arrow's arrays can have: groups are
# indices of results, so that such a key could write outside of them.
for use, changed in (
    (lambda groups, rolling: groups.agg(n=("v", "count"))["k"].tolist(), 10**9),
    (lambda groups, rolling: groups.size()["k"].tolist(), -(10**9)),
    (lambda groups, rolling: rolling.sum()["v"].tolist() and [], -(2**63)),
):
    keys = np.arange(50000) % 7
    groups = kjit.table({"k": keys, "v": np.arange(50000)}).groupby("k")
    rolling = groups.rolling(3)
    assert groups.size()["k"].tolist() == [*range(7)]
    keys[5] = changed
    assert use(groups, rolling) in ([], sorted([*range(7), changed]))
if pyarrow:
    for index in (2, 40_000_000, -3):
        codes = np.zeros(50000, "i4")
        codes[rng.integers(0, len(codes))] = index
        codes_of_all = np.append(codes, 0)
        wrong = pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes), pyarrow.array(["a", "b"]), safe=False)
        whole = pyarrow.table({"k": pyarrow.chunked_array([wrong[:0], wrong, wrong[:1]]), "v": codes_of_all})
        right = pyarrow.table({"k": pyarrow.array(["b", "a"]).dictionary_encode()})
        frame = pandas and pandas.DataFrame({"k": pandas.arrays.ArrowExtensionArray(whole["k"])})
        for use in (
            lambda: kjit.table(whole).groupby("k").sum(),
            lambda: kjit.table(whole).merge(right),
            lambda: kjit.table(right).merge(whole, how="outer"),
            lambda: kjit.table(whole).sort("k"),
            lambda: kjit.table(whole).top_k(2, "k"),
            lambda: kjit.table(whole).value_counts("k"),
            lambda: kjit.table(whole).apply(lambda row: row.k),
            lambda: kjit.table(whole).filter(lambda row: row.k == "c"),
            lambda: kjit.table(whole["k"]).apply(lambda k: k == "a"),
            lambda: kjit.table(frame).sort("k") if pandas else kjit.table(whole).sort("k"),
            lambda: kjit.eval("k == 'a'", k=whole["k"]),
        ):
            try:
                use()
            except ValueError as error:
                assert f"has the index {index}, but its dictionary has 2 elements" in str(error), error
                assert "column 'k'" in str(error) or "a column of texts" in str(error), error
            else:
                raise AssertionError(f"not refused: index {index}")
