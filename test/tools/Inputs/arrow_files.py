"""Writes Parquet and Arrow files with random columns, and the values that kjit-run should read from them, as .npy files and CSV.

Usage: arrow_files.py FOLDER SEED"""

import decimal
import os
import sys

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet

folder, seed = sys.argv[1], int(sys.argv[2])
rng = numpy.random.default_rng(seed)
os.makedirs(folder, exist_ok=True)
TEXTS = ["b", "", 'a "quoted" text', "line\nbreak", "café", "long text " * 5]


def column(kind, count, share):
    """Returns a column with missing values."""
    mask = rng.random(count) < share
    if kind == "bool":
        return pyarrow.array(rng.random(count) < 0.5, mask=mask)
    if kind in ("text", "large", "dictionary", "view"):
        made = pyarrow.array([None if m else str(t) for t, m in zip(rng.choice(TEXTS, count), mask)], pyarrow.string())
        if kind == "dictionary":
            return made.dictionary_encode()
        return made.cast({"text": pyarrow.string(), "large": pyarrow.large_string(), "view": pyarrow.string_view()}[kind])
    if kind == "decimal":
        values = [None if m else decimal.Decimal(int(n)).scaleb(-3) for n, m in zip(rng.integers(-(10**9), 10**9, count), mask)]
        return pyarrow.array(values, pyarrow.decimal128(15, 3))
    if kind in DATES:
        limit = 10**15 if "ns" in kind or "us" in kind else 30000 if kind == "date32" else 10**9
        made = pyarrow.array(rng.integers(-limit, limit, count), mask=mask)
        return made.cast(pyarrow.int32()).cast(DATES[kind]) if kind == "date32" else made.cast(DATES[kind])
    if kind[0] == "f":
        return pyarrow.array(rng.normal(size=count).astype(kind), mask=mask)
    limits = numpy.iinfo(kind)
    return pyarrow.array(rng.integers(limits.min, limits.max, count, kind, endpoint=True), mask=mask)


DATES = {"date32": pyarrow.date32()}
DATES |= {f"time_{unit}": pyarrow.timestamp(unit) for unit in ("s", "ms", "us", "ns")}
DATES |= {"utc": pyarrow.timestamp("ms", "UTC"), "span": pyarrow.duration("us")}
KINDS = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "text", "large", "dictionary", "decimal", *DATES]


def table_of(count, share):
    names = {"i": "int", "u": "uint", "f": "float"}
    full = {k: f"{names[k[0]]}{8 * int(k[1:])}" if k[1:].isdigit() else k for k in KINDS}
    whole = pyarrow.table({kind: column(full[kind] if full[kind][0] in "iuf" else kind, count, share) for kind in KINDS})
    parts = [whole.slice(0, count // 3), whole.slice(0, 0), whole.slice(count // 3)]  # offsets within a byte, an empty chunk
    made = pyarrow.concat_tables(parts)
    return made.append_column("null", pyarrow.chunked_array([pyarrow.nulls(count)]))


def write(name, table):
    pyarrow.parquet.write_table(table, f"{folder}/{name}.parquet", row_group_size=7)
    pyarrow.parquet.write_table(table, f"{folder}/{name}-plain.parquet", use_dictionary=False, compression="none", version="2.6")
    with pyarrow.ipc.new_file(f"{folder}/{name}.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=5)
    with pyarrow.ipc.new_stream(f"{folder}/{name}.arrows", table.schema) as file:
        file.write_table(table.unify_dictionaries())
    pyarrow.feather.write_feather(table, f"{folder}/{name}.feather", compression="lz4")


for name, count, share in (("none", 40, 0), ("some", 41, 0.3), ("all", 9, 1), ("empty", 0, 0)):
    write(name, table_of(count, share))
pyarrow.parquet.write_table(pyarrow.table({"t": pyarrow.array([1, 2], pyarrow.timestamp("s", "Europe/Rome"))}), f"{folder}/zone.parquet")
views = pyarrow.table({"view": column("view", 20, 0.3)})
with pyarrow.ipc.new_file(f"{folder}/views.arrow", views.schema) as file:
    file.write_table(views)
pyarrow.parquet.write_table(
    pyarrow.table({"list": [[1], [2, 3]], "wide": pyarrow.array([decimal.Decimal(1)] * 2, pyarrow.decimal128(30, 2)), "x": [1, 2]}),
    f"{folder}/others.parquet",
)
data = open(f"{folder}/some.parquet", "rb").read()
open(f"{folder}/cut.parquet", "wb").write(data[: len(data) // 2])
open(f"{folder}/false.arrow", "wb").write(b"no Arrow file at all")
