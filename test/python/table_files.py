# REQUIRES: pyarrow
# RUN: env KJIT_DEVICE=cpu PYTHONPATH=%builddir/python %pyarrow-python %s
"""Files that are read in batches have the results of pyarrow's and kjit's tables in memory: for batches that are empty, have other
dictionaries, or have a column without any value."""

import contextlib
import io
import math
import os
import sys
import tempfile
import types

import kjit
import kjit.tables.scanning as scanning
import numpy as np
import seeds
import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)


def with_nulls(values, kind, share):
    missing = rng.random(len(values)) < share
    return pyarrow.array([None if m else v for v, m in zip(values.tolist(), missing)], kind)


def part(count, number):
    """Returns a table. If number is 2, one column has no value, and the table has strings that no other table has."""
    share = 0 if number == 1 else 0.2
    texts = np.array(["a", "b", f"only {number}", ""])[rng.integers(0, 4, count)]
    return pyarrow.table(
        {
            "k": with_nulls(rng.integers(-3, 4, count), pyarrow.int32(), share),
            "x": with_nulls(1e6 + rng.normal(size=count), pyarrow.float64(), 1 if number == 2 else share),
            "i": with_nulls(rng.integers(-(2**40), 2**40, count), pyarrow.int64(), share),
            "s": with_nulls(texts, pyarrow.string(), share).dictionary_encode(),
            "d": with_nulls(rng.integers(0, 10**6, count).astype("M8[ms]"), pyarrow.timestamp("ms"), share),
            "m": with_nulls(rng.integers(-(10**6), 10**6, count), pyarrow.int64(), share).cast(pyarrow.decimal128(20, 0)).cast(pyarrow.decimal128(12, 2), safe=False),
            "b": with_nulls(rng.random(count) < 0.5, pyarrow.bool_(), share),
            "unused": pyarrow.array([[1, 2]] * count, pyarrow.list_(pyarrow.int64())),
        }
    )  # fmt: skip


def limited(row, most):
    return row.i < most


def scaled(row):
    if row.x is kjit.NA:
        return kjit.NA
    return row.x * 2 + 1


def same(got, want):
    if isinstance(want, float):
        return got is not None and math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)
    return got == want


def check(got, want):
    assert got.column_names == want.column_names, (got.column_names, want.column_names)
    for name in got.column_names:
        a, b = got.column(name).to_pylist(), want.column(name).to_pylist()
        assert len(a) == len(b) and all(map(same, a, b)), (seed, name, a, b)
        assert got.column(name).type == want.column(name).type, (name, got.column(name).type, want.column(name).type)


AGGREGATIONS = {
    **{how: ("x", how) for how in ("sum", "mean", "var", "std", "min", "max", "count", "first", "last")},
    "total": ("i", "sum"),
    "mean_of_wide": ("i", "mean"),
    "low": ("s", "min"),
    "earliest": ("d", "min"),
    "latest": ("d", "last"),
    "price": ("m", "sum"),
    "cheapest": ("m", "min"),
    "price_mean": ("m", "mean"),
    "truths": ("b", "sum"),
    "own": (lambda row: row.x - row.i, "mean"),
}

for trial in range(3):
    with tempfile.TemporaryDirectory() as folder:
        counts = [0, 500, int(rng.integers(1, 300)), 0, int(rng.integers(1, 900))] if trial else [0, 0]
        parts = [part(count, number) for number, count in enumerate(counts)]
        for number, table in enumerate(parts):
            pyarrow.parquet.write_table(table, os.path.join(folder, f"{number}.parquet"), row_group_size=130)
        whole = pyarrow.concat_tables(parts).unify_dictionaries()
        scan, table = kjit.scan_table(folder, batch_rows=int(rng.integers(1, 200))), kjit.table(whole)
        assert scan.count() == whole.num_rows and scan.collect().to_pylist() == whole.to_pylist()
        assert sum(batch.num_rows for batch in scan.batches()) == whole.num_rows
        for by in ("k", "s", ["b", "k"], "d"):
            chosen = {name: pair for name, pair in AGGREGATIONS.items() if by != "d" or pair[0] != "d"}
            check(scan.groupby(by).agg(**chosen), table.groupby(by).agg(**chosen))
        # pyarrow's own aggregations.
        found = scan.groupby("k").agg(t=("i", "sum"), n=("i", "count"), m=("x", "mean"), low=("m", "min"))
        want = whole.filter(whole.column("k").is_valid()).group_by("k").aggregate([("i", "sum"), ("i", "count"), ("x", "mean"), ("m", "min")]).sort_by("k")  # fmt: skip
        for name, other in {"t": "i_sum", "n": "i_count", "m": "x_mean", "low": "m_min"}.items():
            a, b = found.column(name).to_pylist(), want.column(other).to_pylist()
            assert all(map(same, a, [0 if name == "t" and v is None else v for v in b])), (seed, name, a, b)
        # Steps, and aggregations of all rows.
        steps = scan.filter(limited, args=(2**38,)).assign(
            y=scaled, is_a=lambda row: row.s == "a", z=lambda row: row.y + 1
        )
        in_memory = kjit.table(table.filter(limited, args=(2**38,))).assign(y=scaled, is_a=lambda row: row.s == "a")
        in_memory = kjit.table(in_memory).assign(z=lambda row: row.y + 1)
        check(steps.collect(), in_memory)
        t = kjit.table(in_memory)
        check(
            steps.groupby("s").agg(z=("z", "sum"), a=("is_a", "sum")),
            t.groupby("s").agg(z=("z", "sum"), a=("is_a", "sum")),
        )
        assert (
            steps.apply(lambda row, v: row.z + v, args=(1.5,)).to_pylist()
            == t.apply(lambda row, v: row.z + v, args=(1.5,)).to_pylist()
        )
        assert steps.count() == in_memory.num_rows
        z = [v for v in in_memory.column("z").to_pylist() if v is not None]
        got = steps.agg(sum=("z", "sum"), n=("z", "count"), max=("z", "max"), mean=("z", "mean"))
        assert same(got["sum"], math.fsum(z)) and got["n"] == len(z) and got["max"] == max(z, default=None)
        assert same(got["mean"], math.fsum(z) / len(z)) if z else got["mean"] is None, got
        check(steps.top_k(5, "i"), t.top_k(5, "i"))
        check(steps.top_k(5, lambda row: row.x, smallest=True), t.top_k(5, lambda row: row.x, smallest=True))
        # The files that a scan writes are scanned again, also as a dataset.
        path = os.path.join(folder, "made.parquet")
        assert steps.to_parquet(path) == in_memory.num_rows
        check(kjit.scan_table(pyarrow.dataset.dataset(path)).collect(), pyarrow.parquet.read_table(path))
        assert pyarrow.parquet.read_table(path).to_pylist() == in_memory.to_pylist()
        # CSV, with empty cells.
        path, plain = os.path.join(folder, "t.csv"), whole.select(["k", "x", "i", "b"])
        if whole.num_rows:
            pyarrow.csv.write_csv(plain.combine_chunks(), path)
            read, csv = pyarrow.csv.read_csv(path), kjit.scan_table(path, batch_rows=70)
            check(csv.collect(), read)
            chosen = {"x": ("x", "mean"), "i": (lambda row: row.i + row.x, "sum"), "b": ("b", "max")}
            check(csv.groupby("k").agg(**chosen), kjit.table(read).groupby("k").agg(**chosen))
            check(kjit.scan_table([path, path]).groupby("k").agg(n=("x", "count")), kjit.table(pyarrow.concat_tables([read, read])).groupby("k").agg(n=("x", "count")))  # fmt: skip

# Only the columns in use are read.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "t.parquet")
    pyarrow.parquet.write_table(part(50, 1), path)
    scan = kjit.scan_table(path)
    used = scan.filter(limited, args=(1,)).assign(y=scaled)._used(["k", "y"], [(lambda row: row.s == "a", ())])
    assert used == ["k", "x", "i", "s"], used
    assert scan.assign(c=1)._used(["c"], []) == ["k"]

    # Groups that are combined several times.
    import kjit.tables.partials as partials

    partials._MOST_PENDING = 3
    got = (
        kjit.scan_table(path, batch_rows=4)
        .groupby("k")
        .agg(v=("x", "var"), m=("i", "mean"), f=("i", "first"), n=("x", "count"))
    )
    want = (
        kjit.table(pyarrow.parquet.read_table(path))
        .groupby("k")
        .agg(v=("x", "var"), m=("i", "mean"), f=("i", "first"), n=("x", "count"))
    )
    check(got, want)

    # The progress line, with a clock that each batch advances by a second.
    clock = iter(range(10**6))
    before, scanning.time = scanning.time, types.SimpleNamespace(monotonic=lambda: next(clock))
    kjit.set_progress(True)
    with contextlib.redirect_stderr(io.StringIO()) as text:
        kjit.scan_table(path, batch_rows=5).agg(n=("k", "count"))
    kjit.set_progress(None)
    scanning.time = before
    assert text.getvalue().splitlines() == [f"kjit: {5 * s} rows in {s} s" for s in (1, 2, 4, 8)], text.getvalue()

    # Wrong arguments are rejected by name.
    unknown = os.path.join(folder, "t.data")
    open(unknown, "w").close()
    for call, kind, message in (
        (lambda: kjit.scan_table(os.path.join(folder, "none.parquet")), FileNotFoundError, "no file"),
        (lambda: kjit.scan_table(unknown), ValueError, "the format of"),
        (lambda: kjit.scan_table([]), ValueError, "at least one path"),
        (lambda: kjit.scan_table(path, batch_rows=0), ValueError, "not 0"),
        (lambda: scan.sort("k"), AttributeError, "a scan has no sort(), which needs all rows at once: collect()"),
        (lambda: scan.k, AttributeError, "a scan has no attribute 'k'"),
        (lambda: scan.groupby("none"), KeyError, "the files have no column 'none': they have 'k', 'x'"),
        (lambda: scan.groupby([]), ValueError, "an empty list"),
        (lambda: scan.agg(), TypeError, "takes keywords"),
        (lambda: scan.agg(x=("none", "sum")), KeyError, "no column 'none'"),
        (lambda: scan.agg(x="sum"), TypeError, "takes a pair"),
        (lambda: scan.agg(x=("x", "median")), ValueError, "'median' needs all values of a group at once"),
        (lambda: scan.agg(x=("x", lambda x: x.max())), ValueError, "a function needs all values of a group at once"),
        (lambda: scan.groupby("k").agg(k=("x", "sum")), ValueError, "a key column already has this name"),
        (lambda: scan.filter(lambda row: row.none > 0).count(), kjit.SourceError, "the table has no column 'none'"),
    ):
        try:
            call()
        except kind as error:
            assert message in str(error), error
        else:
            raise AssertionError(f"not refused: {message}")
