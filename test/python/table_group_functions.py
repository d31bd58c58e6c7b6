# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Functions of a group have the results of pandas' groupby().apply(), for tables of pandas, pyarrow, polars and NumPy with missing
values at random: none, some or all values of a column, and groups without a value. Without pandas only the refusals are tested."""

import sys
import warnings

import kjit
import numpy as np
import seeds

pandas = polars = pyarrow = None
try:
    import pandas
except ImportError:
    print("without pandas, which has the expected results")
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
scale = 2.5


def centred(g):
    x = g.a
    middle = x.mean()
    y = x - middle
    return (y * y).sum() + x.count()


def selected(g):
    big = g.i[g.b > 0.1]
    total = g["b"].sum() * scale
    return big.sum() * 2 + total if len(g) > 3 else -1.0


def loop(g):
    x = g.b
    best = x[0]
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
    return best


def of_pandas_loop(g):
    return g.b.max()


# Runs a function on each group, and another one for pandas if pandas cannot run the first.
FUNCTIONS = [
    (lambda g: g.a.max() - g["b"].min(), None),
    (lambda g: (g.a * g.b).sum(), None),
    (lambda g: g.a.std(), None),
    (lambda g: g.b.var(ddof=0), None),
    (lambda g: g.a.count() + len(g) + g.b.size, None),
    (lambda g: (g.b * g.i).mean(), None),
    (lambda g: (g.a - g.b).std(), None),
    (lambda g: (g.a + g.b).min(), None),
    (lambda g: (g.a + g.b).count(), None),
    (lambda g: g.n.sum(), None),
    (lambda g: g.n.max(), None),
    (lambda g: g.n.mean(), None),
    (lambda g: (g.n * 2 - g.i).sum(), None),
    (lambda g: np.sum(g.a) + np.max(g.b), None),
    (lambda g: (g.b * g.i).sum() / g.i.sum() if g.i.sum() > 0 else 0.0, None),
    (lambda g: g.b[g.i > 3].sum(), None),
    (lambda g: g.b[(g.i > 3) & (g.b < 1)].max(), None),
    (lambda g: np.where(g.i > 3, g.b, 0.5).sum(), None),
    (lambda g: (g.b - g.b.mean()).max(), None),
    (lambda g: g.t.sum(), None),
    (lambda g: (g.b > 1).sum() + (~g.t).sum(), None),
    (lambda g: g.i.max() - g.i.min(), None),
    (lambda g: np.sqrt((g.b**2).sum()) + abs(g.b).max() + np.exp(g.i * 0.1).mean(), None),
    (centred, None),
    (selected, None),
    (loop, of_pandas_loop),
]


def frame_of(count, share):
    few = max(1, count // 8)
    frame = pandas.DataFrame(
        {
            "k": rng.integers(0, few, count),
            "a": rng.normal(size=count),
            "b": rng.normal(size=count),
            "i": rng.integers(0, 9, count),
            "n": pandas.array(rng.integers(0, 50, count), "Int64"),
            "t": rng.random(count) > 0.5,
        },
        index=np.arange(count) * 2 + 1,
    )
    frame.loc[(rng.random(count) < share) | (frame.k == 1), "a"] = np.nan
    frame.loc[(rng.random(count) < share) | (frame.k == 2), "n"] = pandas.NA
    return frame


def sliced(frame):
    """Returns a pyarrow table with empty chunks, and with bitmaps that begin inside a byte."""
    whole = pyarrow.Table.from_pandas(frame, preserve_index=False)
    third = len(frame) // 3
    parts = [whole.slice(0, third), whole.slice(third, 0), whole.slice(third)]
    return pyarrow.concat_tables(parts)


def with_numpy(frame):
    kinds = {"f": "f8", "i": "i8", "b": "?"}
    columns = {name: frame[name].fillna(0).to_numpy(kinds[frame[name].dtype.kind]) for name in frame}
    return {name: np.ma.array(values, mask=frame[name].isna()) for name, values in columns.items()}


def listed(column):
    to_list = next(getattr(column, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    return [None if x is None or pandas and x is pandas.NA or x != x else float(x) for x in to_list()]


def is_same(got, want):
    if got is None or want is None:
        return got is want
    return abs(got - want) <= 1e-9 * max(1, abs(want))


def check(frame):
    makers = [lambda f: f, with_numpy, *([sliced] if pyarrow else []), *([polars.from_pandas] if polars and pyarrow else [])]
    grouped = frame.groupby("k")[["a", "b", "i", "n", "t"]]
    for number, (function, other) in enumerate(FUNCTIONS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = grouped.apply(other or function)
        for maker in makers:
            made = kjit.table(maker(frame)).groupby("k").apply(function)
            got, expected = listed(made if maker is makers[0] else made["result"]), listed(want)
            where = seed, number, getattr(maker, "__name__", maker), len(frame)
            assert len(got) == len(expected) and all(map(is_same, got, expected)), (where, got, expected)
            if maker is makers[0]:
                assert made.index.equals(want.index) and made.name == want.name, where


if pandas:
    for count, share in ((1, 0), (40, 0), (300, 0.3), (60, 1.0)):
        check(frame_of(count, share))
    frame = frame_of(100, 0.2)
    t = kjit.table(frame)
    # Arguments, two keys, a selected column, and a frame without rows.
    got = t.groupby("k").apply(lambda g, factor: g.b.sum() * factor, 3)
    assert np.allclose(got, frame.groupby("k").b.sum() * 3)
    got, want = t.groupby(["k", "t"]).apply(lambda g: g.b.sum()), frame.groupby(["k", "t"]).b.sum()
    assert got.index.equals(want.index) and np.allclose(got, want)
    got = t.groupby("k")["b"].apply(lambda x: x.max() - x.min())
    assert np.allclose(got, frame.groupby("k").b.max() - frame.groupby("k").b.min()) and got.name == "b"
    assert len(kjit.table(frame.iloc[:0]).groupby("k").apply(lambda g: g.b.sum())) == 0
    # A selected column keeps its name, whatever the name is.
    renamed = frame.rename(columns={"b": "size", "a": "result"})
    assert kjit.table(renamed).groupby("k")["size"].sum().name == "size"
    assert kjit.table(renamed).groupby("k")["result"].sum().name == "result"

# Unsupported operations are rejected by name.
t = kjit.table({"k": np.array([1, 1, 2]), "x": np.arange(3.0), "m": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "s": np.array(["a", "b", "c"])})
groups = t.groupby("k")
assert groups.apply(lambda g: g.x.sum())["result"].tolist() == [1, 2]
for function, kind, text in (
    (lambda g: g.xx.sum(), kjit.SourceError, "the table has no column 'xx'"),
    (lambda g: g, kjit.SourceError, "the group `g` is not a value"),
    (lambda g: g.m[0], kjit.SourceError, "the column 'm' has missing values"),
    (lambda g: np.where(g.x > 0, g.m, 1).sum(), kjit.SourceError, "np.where() of a column with missing values, 'm'"),
    (lambda g: g.s.count(), TypeError, "'s' has texts"),
    (lambda g: g.x.std(axis=0), kjit.SourceError, "std() of a group takes only ddof="),
    (lambda g: g.x.sum(axis=0), kjit.SourceError, "sum() of a group takes no keyword arguments"),
    (lambda g: g.x.median(), kjit.SourceError, "`median`"),
    (lambda g: (g.x if len(g) > 1 else g.x).sum(), kjit.SourceError, "the operand of a reduction can consist only of operators"),
    (lambda g, y: g.x.sum(), TypeError, "must take the group and 0 more arguments"),
    ("sum", TypeError, "apply() takes a Python function that is called with a group, not str"),
):
    try:
        groups.apply(function)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")
