# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Joins of tables have the rows that two loops in Python find, in pandas' order, for keys of all types with missing values at random, in
tables of NumPy, pandas, pyarrow and polars. With pandas and pyarrow installed, their own joins are compared, too."""

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
HOW = ("inner", "left", "right", "outer", "semi", "anti")


def keys_of(kind, counts):
    """Returns the keys of two tables."""
    made = []
    limits = rng.integers(-(2**62), 2**62, 40)
    for count in counts:
        if kind == "texts":
            made.append(np.array(["b", "a", "", "long text", f"only in {len(made)}"])[rng.integers(0, 5, count)])
        elif kind == "bools":
            made.append(rng.random(count) < 0.8)
        elif kind == "dates":
            made.append(
                rng.integers(-20, 20, count).astype("M8[s]" if len(made) else "M8[ms]") + np.timedelta64(0, "ms")
            )
        elif kind == "floats":
            made.append(np.array([-0.0, 0.0, 1.5, np.inf, 2.0**60, np.pi])[rng.integers(0, 6, count)].astype("f8"))
        elif kind == "mixed":  # integers joined with floats, and with unsigned integers
            choices = (np.array([-1.0, 0.5, 3.0, 2.0**52]), np.array([-1, 0, 3, 2**52]))
            made.append(choices[len(made)][rng.integers(0, 4, count)])
        elif kind == "unsigned":
            choices = (np.array([2**63, 2**64 - 1, 0, 7], "u8"), np.array([-(2**63), -1, 0, 7]))
            made.append(choices[len(made)][rng.integers(0, 4, count)])
        elif kind == "wide":
            made.append(np.concatenate([limits, [-(2**63), 2**63 - 1]])[rng.integers(0, 42, count)])
        elif kind == "unique":
            made.append(rng.permutation(np.arange(count) * (2**50 + 7)))
        else:
            made.append(rng.integers(-9, 9, count).astype("i2" if made else "i8"))
    return made


def masked(values, share=None):
    missing = rng.random(len(values)) < (rng.choice([0, 0.2, 1], p=[0.4, 0.5, 0.1]) if share is None else share)
    return np.ma.array(values, mask=missing)


def pairs_of(left, right, how, nulls_equal, missing_first=False):
    """Returns the pairs of row numbers, with None for no row. left and right: lists of keys."""
    of_key: dict = {}
    for j, key in enumerate(right):
        of_key.setdefault(key, []).append(j)
    if how in ("semi", "anti"):
        return [
            (i, None) for i, k in enumerate(left) if (k in of_key and (nulls_equal or k is not None)) == (how == "semi")
        ]
    if how == "right":
        return [(i, j) for j, i in pairs_of(right, left, "left", nulls_equal)]
    found, matched = [], set()
    for i, key in enumerate(left):
        here = of_key.get(key, []) if nulls_equal or key is not None else []
        matched.update(here)
        found += [(i, j) for j in here] or ([] if how == "inner" else [(i, None)])
    if how == "outer":
        found += [(None, j) for j in range(len(right)) if j not in matched]
        keys = [left[i] if i is not None else right[j] for i, j in found]
        order = sorted(range(len(found)), key=lambda n: ((keys[n] is None) != missing_first, 0 if keys[n] is None else keys[n]))
        found = [found[n] for n in order]
    return found


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
            frame[name] = values
        else:
            kinds = {"b": pandas.arrays.BooleanArray, "f": pandas.arrays.FloatingArray}
            frame[name] = kinds.get(values.dtype.kind, pandas.arrays.IntegerArray)(values, missing)
    return pandas.DataFrame(frame, index=np.arange(len(missing)) * 3 + 5)


def with_arrow(table):
    """Columns in chunks, of which one is a slice and one is empty."""
    made = {}
    for name, column in table.items():
        kind = pyarrow.string() if column.dtype.kind == "U" else pyarrow.from_numpy_dtype(column.dtype)
        array = pyarrow.array(column.tolist(), kind)
        third = len(array) // 3
        front = pyarrow.concat_arrays([array[:2], array[:third]]).slice(min(2, len(array)))
        made[name] = pyarrow.chunked_array([front, array[:0], array[third:]])
    return pyarrow.table(made)


def with_polars(table):
    kinds = {"U": polars.String, "b": polars.Boolean, "M": polars.Datetime("ms")}
    frame = polars.DataFrame(
        {
            name: polars.Series(
                column.tolist(), dtype=kinds.get(c.dtype.kind) or getattr(polars, KINDS[c.dtype.str[1:]])
            )
            for name, column in table.items()
            for c in [np.ma.asarray(column)]
        }
    )
    cut = len(frame) // 3
    return polars.concat([frame[:cut], frame[cut:]], rechunk=False)


KINDS = {"i2": "Int16", "i8": "Int64", "u8": "UInt64", "f8": "Float64"}
MAKERS = [
    dict,
    *([with_pandas] if pandas else []),
    *([with_arrow] if pyarrow else []),
    *([with_polars] if polars else []),
]


def columns_of(made):
    """Returns the result as lists, name -> list with None for missing values."""
    if isinstance(made, dict):
        return {name: column.tolist() for name, column in made.items()}
    if hasattr(made, "to_pydict"):
        return made.to_pydict()
    if polars and isinstance(made, polars.DataFrame):
        return made.to_dict(as_series=False)
    return {name: [plain(x) for x in made[name].tolist()] for name in made}


def plain(value):
    return None if value is None or value is pandas.NA or value != value else value


def of_rows(column, rows):
    values = column.tolist()
    return [None if row is None else values[row] for row in rows]


trial = int(rng.integers(0, 4))
for kind in ("few", "texts", "bools", "dates", "floats", "mixed", "unsigned", "wide", "unique"):
    for counts in ((0, 7), (8, 0), (int(rng.integers(1, 50)), int(rng.integers(1, 50))), (700, 30), (0, 0), (30, 9000)):
        trial += 1
        maker = MAKERS[trial % len(MAKERS)]
        if kind == "unique" and counts[1] == 9000:
            counts = (5000, 9000)  # more keys than the first hash table has slots
        a, b = map(masked, keys_of(kind, counts))
        left = {"k": a, "v": np.arange(counts[0]), "x": masked(rng.normal(size=counts[0]))}
        right = {"v": np.arange(counts[1]), "j": b, "s": masked(np.array(["p", "q"])[rng.integers(0, 2, counts[1])])}
        for how in HOW:
            nulls_equal = bool(rng.integers(0, 2))
            is_first = kind == "dates" and maker is with_pandas  # NaT is pandas' smallest date
            want = pairs_of(a.tolist(), b.tolist(), how, nulls_equal, is_first)
            names = {"left_on": "k", "right_on": "j"}
            if is_same := bool(rng.integers(0, 2)) and (kind, how) != ("unsigned", "outer"):
                right = {"k" if name == "j" else name: column for name, column in right.items()}
                names = {"on": "k"}
            got = columns_of(kjit.table(maker(left)).merge(maker(right), how, nulls_equal=nulls_equal, **names))
            where = seed, kind, counts, how, maker, nulls_equal, is_same
            lefts, rights = [i for i, _ in want], [j for _, j in want]
            if how in ("semi", "anti"):
                assert got == {name: of_rows(column, lefts) for name, column in left.items()}, where
            else:
                keys = of_rows(a, lefts)
                if is_same:
                    other = of_rows(b, rights)
                    keys = [y if i is None else x for x, y, i in zip(keys, other, lefts)]
                assert got["k"] == keys and got["v_x"] == lefts and got["v_y"] == rights, (where, got, want)
                assert got["x"] == of_rows(left["x"], lefts) and got["s"] == of_rows(right["s"], rights), (where, got)
                assert list(got) == ["k", "v_x", "x", "v_y", *([] if is_same else ["j"]), "s"], got
                assert is_same or got["j"] == of_rows(b, rights), (where, got)
            if is_same:
                right = {"j" if name == "k" else name: column for name, column in right.items()}

# The order of pandas 2.2 and later, whose outer joins sort dates and categories by their numbers. Older ones do not sort.
if pandas:
    categories = [["z", "a", "m"], ["a", "z", "m"], ["a", "z"]]
    for left, right, want in (
        (np.array(["2020", "NaT", "1960"], "M8[ns]"), np.array(["NaT", "1990"], "M8[ns]"), ["", "1960", "1990", "2020"]),
        (np.array([5, "NaT"], "m8[s]"), np.array([-3], "m8[s]"), ["", "-1 d", "0 da"]),
        (pandas.Categorical(["a", None, "m", "z"], categories[0]), pandas.Categorical(["z"], categories[1]), ["", "z", "a", "m"]),
        (pandas.Categorical(["a", None, "m", "z"], categories[0]), pandas.Categorical(["z"], categories[2]), ["a", "m", "z", ""]),
        (pandas.array([2, None], "Int8"), pandas.array([1, 2], "Int8"), ["1", "2", ""]),
        (np.array([2.5, np.nan]), np.array([-1.5]), ["-1.5", "2.5", ""]),
    ):
        frames = pandas.DataFrame({"k": left}), pandas.DataFrame({"k": right})
        made = kjit.table(frames[0]).merge(kjit.table(frames[1]), "outer", "k")
        assert ["" if is_gone else str(key)[:4] for key, is_gone in zip(made["k"], made["k"].isna())] == want, made
        if tuple(map(int, pandas.__version__.split(".")[:2])) >= (2, 2):
            theirs = frames[0].merge(frames[1], how="outer", on="k")
            assert made["k"].astype(str).tolist() == theirs["k"].astype(str).tolist(), (made, theirs)

# Many rows, which are joined in chunks: each key once or several times in the right table, with and without rows that have no match,
# for keys far apart, and in ranges with small and with large direct tables. Some keys are missing.
LIMIT = 2**63 - 1
RANGES = {"apart": (-(2**40), 2**40), "small": (-250, 249), "large": (LIMIT - 70000, LIMIT), "least": (-LIMIT - 1, -LIMIT + 40000)}
for kind, repeats in (*((kind, 1) for kind in RANGES), ("apart", 3), ("small", 3)):
    for share in (0.5, 1):
        keys = np.unique(np.append(rng.integers(*RANGES[kind], 500, endpoint=True), RANGES[kind]))
        left = {"k": masked(keys[rng.integers(0, len(keys), 40000)], 0.1 if share < 1 else 0), "v": np.arange(40000)}
        known = rng.permutation(keys)[: int(share * len(keys))]
        right = {"k": masked(np.repeat(known, repeats), 0), "w": np.arange(repeats * len(known)) / 4}
        right["k"].mask = np.repeat(rng.random(len(known)) < (0.1 if share < 1 else 0), repeats)
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], left["k"].data), len(known) - 1)
        is_match = (known[order][at] == left["k"].data) & ~left["k"].mask & ~right["k"].mask[::repeats][order][at]
        for how in ("inner", "left", "right"):
            tables = (right, left) if how == "right" else (left, right)  # the rows of a left join, in its order
            rows = np.flatnonzero(is_match) if how == "inner" else np.arange(40000)
            rows = np.repeat(rows, np.where(is_match[rows], repeats, 1))
            firsts = np.flatnonzero(np.diff(rows, prepend=-1))
            numbers = np.arange(len(rows)) - np.repeat(firsts, np.diff(firsts, append=len(rows)))
            want = (order[at[rows]] * repeats + numbers) / 4
            for maker in MAKERS:
                got = kjit.table(maker(tables[0])).merge(maker(tables[1]), how, on="k", nulls_equal=False)
                got = columns_of(got)
                where = seed, kind, repeats, share, how, maker
                assert got["v"] == rows.tolist() and got["k"] == left["k"][rows].tolist(), where
                assert got["w"] == np.ma.array(want, mask=~is_match[rows]).tolist(), where

# Two keys.
for maker in MAKERS:
    left, right = (
        {"k": masked(rng.integers(0, 4, n)), "j": masked(keys_of("texts", (n, 1))[0]), "v": np.arange(n)}
        for n in (60, 50)
    )
    keys = [list(zip(t["k"].tolist(), t["j"].tolist())) for t in (left, right)]
    order = {key: (key[0] is None, key[0] or 0, key[1] is None, key[1] or "") for key in {*keys[0], *keys[1]}}
    for how in HOW:
        want = pairs_of(*([order[key] for key in side] for side in keys), how, True)
        got = columns_of(kjit.table(maker(left)).merge(maker(right), how, on=["k", "j"]))
        if how in ("semi", "anti"):
            assert got["v"] == [i for i, _ in want], (seed, maker, how)
        else:
            assert (got["v_x"], got["v_y"]) == ([i for i, _ in want], [j for _, j in want]), (seed, maker, how)


def check_frames(got, want):
    """Compares two DataFrames. Before version 3, pandas had other orders of rows."""
    if IS_NEW:
        pandas.testing.assert_frame_equal(got, want, check_index_type=False)
    else:
        rows = [sorted(map(repr, frame[list(got)].itertuples(index=False, name=None))) for frame in (got, want)]
        assert rows[0] == rows[1] and [*got.dtypes] == [*want[list(got)].dtypes]


# pandas' own results, with its types and its order; NaN keys match each other.
if pandas:
    IS_NEW = int(pandas.__version__.partition(".")[0]) >= 3
    empty = [(0, 3), (3, 0)] if IS_NEW else []
    for n, m in (*empty, (40, 50)):
        a, b = (rng.integers(0, 9, size).astype("f8") for size in (n, m))
        for keys in (a, b):
            keys[rng.random(len(keys)) < 0.2] = np.nan
        left = pandas.DataFrame(
            {"k": a, "v": rng.integers(0, 9, n), "b": rng.random(n) < 0.5, "o": [[i] for i in range(n)]}
        )
        right = pandas.DataFrame({"k": b, "v": rng.integers(0, 9, m), "d": rng.integers(0, 9, m).astype("M8[ns]")})
        for how in HOW[:4]:
            got, want = kjit.table(left).merge(right, how, "k"), left.merge(right, how, "k")
            check_frames(got, want)
            got = kjit.table(left).merge(kjit.table(right), how, left_on="v", right_on="k", suffixes=("", "_r"))
            check_frames(got, left.merge(right, how, left_on="v", right_on="k", suffixes=("", "_r")))

# pyarrow's own results, as sets of rows, with nulls that do not match and columns in dictionaries.
if pyarrow:
    tables = []
    for n in (50, 60):
        keys = pyarrow.array(masked(keys_of("texts", (n, 1))[0], 0.2).tolist(), pyarrow.string())
        keys = pyarrow.chunked_array([keys[:20].dictionary_encode(), keys[20:].dictionary_encode()])
        tables.append(
            pyarrow.table(
                {"k": keys, f"v{n}": pyarrow.array(range(n)), f"l{n}": pyarrow.array([[i] for i in range(n)])}
            )
        )
    plain_tables = [
        t.drop_columns(t.column_names[-1]).set_column(0, "k", t.column(0).cast(pyarrow.string())) for t in tables
    ]
    types = {
        "inner": "inner",
        "left": "left outer",
        "right": "right outer",
        "outer": "full outer",
        "semi": "left semi",
        "anti": "left anti",
    }
    for how, name in types.items():
        got = kjit.table(tables[0]).merge(tables[1], how, "k", nulls_equal=False)
        want = plain_tables[0].join(plain_tables[1], "k", join_type=name)
        rows = [sorted(map(repr, t.select(want.column_names).to_pylist())) for t in (got, want)]
        assert rows[0] == rows[1], (seed, how, rows)
        assert how in ("right", "outer") or got.column("l50").to_pylist() == [
            [v] for v in got.column("v50").to_pylist()
        ]
        batches = [t.combine_chunks().to_batches()[0] for t in plain_tables]
        made = kjit.table(batches[0]).merge(batches[1], how, "k", nulls_equal=False)
        assert (
            isinstance(made, pyarrow.RecordBatch)
            and sorted(map(repr, made.select(want.column_names).to_pylist())) == rows[1]
        ), (seed, how)

# Wrong arguments are rejected by name.
t = kjit.table(
    {"k": np.arange(3), "s": np.array(["a", "b", "c"]), "d": np.arange(3).astype("M8[s]"), "v": np.arange(3)}
)
u = {"k": np.arange(3), "v": np.arange(3), "d": np.arange(3).astype("M8[Y]")}
for call, kind, text in (
    (lambda: t.merge(u, "cross", "k"), ValueError, "one of inner, left, right, outer, semi, anti, not 'cross'"),
    (lambda: t.merge(u), TypeError, "the tables have 'k', 'd', 'v' in common"),
    (lambda: t.merge(u, on="none"), KeyError, "the left table of merge() has no column 'none': it has 'k', 's', 'd', 'v'"),
    (lambda: t.merge(u, left_on="k"), TypeError, "left_on= and right_on= together"),
    (lambda: t.merge(u, on="k", left_on="k"), TypeError, "either on= or both"),
    (lambda: t.merge(u, left_on=["k", "s"], right_on="k"), ValueError, "left_on has 2 names, and right_on has 1"),
    (lambda: t.merge(u, left_on="s", right_on="k"), TypeError, "the left column has texts, but the right column has numbers"),
    (lambda: t.merge(u, left_on="d", right_on="k"), TypeError, "the left column has dates, but the right column has numbers"),
    (lambda: t.merge({"d": np.arange(3).astype("M8[Y]"), "v_x": np.arange(3), "v": np.arange(3)}, on="d", suffixes=("_x", "")), ValueError, "be called 'v_x'"),
    (lambda: t.merge({"k": np.array([9e12]).astype("M8[Y]")}, left_on="d", right_on="k"), OverflowError, "cannot hold"),
    (lambda: t.merge({"k": np.arange(3, dtype="u8")}, "outer", "k"), TypeError, "int64 and uint64, which have no common"),
    (lambda: t.merge(np.arange(3), on="k"), TypeError, "not ndarray"),
    (lambda: kjit.table({"k": np.ones(1, "c16")}).merge({"k": np.ones(1, "c16")}, on="k"), TypeError, "complex numbers cannot be keys"),
):  # fmt: skip
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")
if pandas and pyarrow:
    try:
        kjit.table(pandas.DataFrame({"k": [1]})).merge(pyarrow.table({"k": [1]}), on="k")
    except TypeError as error:
        assert "two tables of one library, not of pandas and arrow" in str(error), error
    else:
        raise AssertionError("tables of two libraries are not refused")
