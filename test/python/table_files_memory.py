# REQUIRES: pyarrow
# UNSUPPORTED: sanitizer
# RUN: env KJIT_DEVICE=cpu ARROW_DEFAULT_MEMORY_POOL=system PYTHONPATH=%builddir/python %pyarrow-python %s
"""A scan of a Parquet file and of a CSV file needs memory for a few batches: a file that is more than twice as large as the limit adds
less than the limit to the largest resident set. Six scans of 183 MiB add up to 56 MiB; a scan that keeps all batches adds 122 MiB for
the CSV file and 163 MiB for the Parquet file. Arrow takes the memory from the system, because its own allocator keeps freed memory."""

import os
import resource
import tempfile

import kjit
import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet

LIMIT = 72 << 20
ROWS = 100_000
rng = np.random.default_rng(7)


def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def batch(number):
    return pyarrow.record_batch(
        {"k": np.arange(ROWS) % 100, "a": rng.random(ROWS), "b": rng.random(ROWS), "c": np.full(ROWS, number)}
    )


def total(path):
    scan = kjit.scan_table(path).filter(lambda row: row.a < 0.9).assign(y=lambda row: row.a + row.b)
    found = scan.groupby("k").agg(y=("y", "sum"), v=("b", "var"), c=("c", "max"))
    assert found.num_rows == 100 and all(v is not None for v in found.column("v").to_pylist())
    return sum(found.column("y").to_pylist()), found.column("c").to_pylist()


with tempfile.TemporaryDirectory() as folder:
    for suffix, writer, groups in (
        (".parquet", pyarrow.parquet.ParquetWriter, 60),
        (".csv", pyarrow.csv.CSVWriter, 36),
    ):
        large, small = (os.path.join(folder, name + suffix) for name in ("large", "small"))
        want, options = 0.0, {"compression": "none", "use_dictionary": False} if suffix == ".parquet" else {}
        first = batch(0)
        for path, count in ((small, groups // 3), (large, groups)):
            with writer(path, first.schema, **options) as file:
                for number in range(count):
                    made = batch(number)
                    file.write_batch(made)
                    if path == large:
                        a, b = (made.column(name).to_numpy() for name in "ab")
                        want += float((a + b)[a < 0.9].sum())
        total(small)  # what the compiler, the libraries and their allocators need
        before = used()
        got, high = total(large)
        grown = used() - before
        assert abs(got - want) <= 1e-9 * want and high == [groups - 1] * 100
        assert os.path.getsize(large) > 2 * LIMIT, os.path.getsize(large)
        assert grown < LIMIT, f"{suffix}: {grown >> 20} MiB"
        print(suffix, os.path.getsize(large) >> 20, "MiB in the file,", grown >> 20, "MiB of memory")
