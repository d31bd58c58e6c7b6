# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Decimals of Arrow and polars in tables: exact aggregations, comparisons, orders and joins, as Python's decimals have them, with missing
values at random in sliced and chunked columns."""

import decimal
import functools
import sys

import kjit
import numpy as np
import seeds

pyarrow = polars = None
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its decimals are not tested")
try:
    import polars
except ImportError:
    print("without polars: its decimals are not tested")

Decimal = decimal.Decimal
decimal.getcontext().prec = 60
seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
print("seed", seed)
rng = np.random.default_rng(seed)


def column(count, digits, scale, share):
    high = 10**digits
    values = [Decimal(int(v)).scaleb(-scale) for v in rng.integers(-high + 1, high, count)]
    pool = values[: max(1, count // 3)]  # equal values
    return [None if rng.random() < share else pool[rng.integers(0, len(pool))] for _ in values]


def types_of(digits, scale):
    """Yields the library's tables with a column `p` whose type has these digits."""
    if pyarrow:
        for name in ("decimal32", "decimal64", "decimal128", "decimal256"):
            if hasattr(pyarrow, name) and digits <= {"decimal32": 9}.get(name, 18):
                yield functools.partial(arrow, getattr(pyarrow, name)(digits, scale))
    if polars:
        kind = polars.Decimal(digits, scale)
        yield lambda p, k: polars.DataFrame({"k": k, "p": polars.Series("p", p, kind), "i": range(len(k))})


def arrow(kind, p, k):
    array = pyarrow.array([None, None, *p], kind).slice(2)
    third = len(p) // 3
    chunks = pyarrow.chunked_array([array[:third], array[:0], array[third:]], kind)
    return pyarrow.table({"k": k, "p": chunks, "i": pyarrow.array(range(len(k)), pyarrow.int64())})


def dictionary(made):
    return made.to_pydict() if hasattr(made, "to_pydict") else made.to_dict(as_series=False)


for digits, scale in ((4, 2), (9, 0), (15, 3), (18, 18), (18, 4)):
    for count, share in ((0, 0), (1, 1), (int(rng.integers(2, 200)), 0), (int(rng.integers(2, 200)), 0.3), (9, 1)):
        p, k = column(count, digits, scale, share), rng.integers(0, 4, count)
        where = seed, digits, scale, count
        for make in types_of(digits, scale):
            native = make(p, k)
            t = kjit.table(native)
            hows = ("min", "max", "first", "last", "count", "nunique", "mean", "median")
            got = dictionary(t.groupby("k").agg(**{how: ("p", how) for how in hows}))
            for at, key in enumerate(got["k"]):
                there = [v for v, g in zip(p, k) if g == key and v is not None]
                want = [min(there), max(there), there[0], there[-1]] if there else [None] * 4
                assert [got[how][at] for how in hows[:6]] == [*want, len(there), len(set(there))], (where, key)
                mean = float(sum(there) / len(there)) if there else None
                assert there == [] or abs(got["mean"][at] - mean) <= 1e-12 * max(map(abs, map(float, there))), where
            assert got["k"] == sorted(set(k.tolist()))
            sums = [sum((v for v, g in zip(p, k) if g == key and v is not None), Decimal(0)) for key in got["k"]]
            if all(abs(s) < 9 * 10 ** (18 - scale) for s in sums):
                made = t.groupby("k").agg(s=("p", "sum"))
                assert dictionary(made)["s"] == sums, (where, dictionary(made), sums)
                assert made["s"].type == pyarrow.decimal128(38, scale) if hasattr(made["s"], "type") else True
            # Orders, frequencies and joins.
            ordered = sorted((i for i in range(count) if p[i] is not None), key=lambda i: (p[i], i))
            assert dictionary(t.sort("p"))["i"] == ordered + [i for i in range(count) if p[i] is None], where
            counted = dictionary(t.value_counts("p"))
            assert dict(zip(counted["p"], counted["count"])) == {v: p.count(v) for v in {*p} - {None}}, where
            q = column(7, digits, scale, share)
            q[:3] = (p * 3)[:3] if count else q[:3]
            joined = dictionary(t.merge(make(q, np.arange(7)), on="p", nulls_equal=False))
            want = [(i, j) for i in range(count) for j in range(7) if p[i] is not None and p[i] == q[j]]
            assert list(zip(joined["i_x"], joined["i_y"])) == want, where
            # Functions of rows compare as decimals do.
            if digits <= 15:
                want = [None if v is None else float(v) for v in p]
                assert dictionary(t.assign(x=lambda row: row.p))["x"] == want, where
                most = dictionary(t.groupby("k").agg(x=("p", lambda x: x.max())))["x"]
                assert most == [None if v is None else float(v) for v in got["max"]], where
                limit = float(next((v for v in p if v is not None), Decimal(0)))
                equal = dictionary(t.filter(lambda row, x: row.p == x, args=(limit,)))["i"]
                assert equal == [i for i in range(count) if p[i] is not None and float(p[i]) == limit], where
                below = dictionary(t.filter(lambda row, x: row.p < x, args=(limit,)))["i"]
                assert below == [i for i in range(count) if p[i] is not None and p[i] < Decimal(repr(limit))], where


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")


for make in types_of(18, 0):
    t = kjit.table(make([Decimal(10**18 - 1)] * 10, [1] * 10))
    refused(lambda: t.groupby("k").agg(s=("p", "sum")), OverflowError, "does not fit into 64 bits")
    refused(lambda: t.apply(lambda row: row.p), kjit.SourceError, "column 'p' has decimals with 18 digits")
    refused(lambda: t.groupby("k").agg(s=("p", lambda x: x.max())), TypeError, "column 'p' has decimals with 18 digits")
    refused(lambda: t.rolling(2)["p"].apply(lambda x: x.max()), TypeError, "column 'p' has decimals with 18 digits")
for make in types_of(9, 2):
    t, u = kjit.table(make([Decimal("1.5")], [1])), next(iter(types_of(9, 3)))([Decimal("1.5")], [1])
    if type(u) is type(t._native):
        refused(lambda: t.merge(u, on="p"), TypeError, "decimals with 2 digits after the point")
if pyarrow:
    wide = kjit.table(pyarrow.table({"p": pyarrow.array([Decimal(1)], pyarrow.decimal128(19, 2))}))
    refused(lambda: wide.sort("p"), TypeError, "column 'p': decimals with 19 digits and the scale 2 are not supported")
