"""Reads columns of Parquet and Arrow files by kjit-run, and compares them with the columns that pyarrow reads.

Usage: arrow_check.py FOLDER KJIT_RUN..."""

import csv
import math
import subprocess
import sys

import numpy
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

folder, command = sys.argv[1], sys.argv[2:]


def of_pyarrow(path):
    if path.endswith(".parquet"):
        return pyarrow.parquet.read_table(path)
    opened = pyarrow.ipc.open_stream if path.endswith(".arrows") else pyarrow.ipc.open_file
    with open(path, "rb") as file:
        return opened(file).read_all()


def of_kjit(path, names, through_pipe):
    """Returns the cells' texts by column. An empty quoted cell is an empty string, and an empty cell is a null; the csv
    module cannot distinguish them."""
    arguments = []
    for i, name in enumerate(names):
        arguments += ["--arg", f"c{i}=@{'-' if through_pipe else path}:{name}", "--save", f"c{i}=-:{name}"]
    made = subprocess.run([*command, *arguments], capture_output=True, stdin=open(path, "rb") if through_pipe else None)
    assert made.returncode == 0, (path, made.stderr)
    rows = list(csv.reader(made.stdout.decode().splitlines(keepends=True)))
    assert rows[0] == names, rows[0]
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(names)}


def is_same(text, value):
    if value is None or value == "":
        return text == ""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, str):
        return text == value
    if isinstance(value, int):
        return text == str(value)
    return math.isclose(float(text), float(value), rel_tol=1e-15)


for name in ("none", "some", "all", "empty"):
    for ending in (".parquet", "-plain.parquet", ".arrow", ".arrows", ".feather"):
        path = f"{folder}/{name}{ending}"
        table = of_pyarrow(path)
        made = of_kjit(path, table.column_names, ending == ".arrow")
        for column in table.column_names:
            want, got = table.column(column).to_pylist(), made[column]
            kind = table.column(column).type
            if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date32(kind):  # in NumPy's notation
                unit = "D" if pyarrow.types.is_date32(kind) else kind.unit
                counts = table.column(column).cast(pyarrow.int32() if unit == "D" else pyarrow.int64()).to_pylist()
                want = [None if n is None else str(numpy.datetime64(n, unit)) for n in counts]
            if pyarrow.types.is_duration(kind):
                want = table.column(column).cast(pyarrow.int64()).to_pylist()
            if column == "f4":  # kjit-run prints the fewest digits that identify the 32-bit float
                got = [text and str(float(numpy.float32(text))) for text in got]
            assert len(got) == len(want) and all(map(is_same, got, want)), (path, column, got, want)
print("the same columns")

# Files with random changes must give values or an error, and never a crash.
random = numpy.random.default_rng(3)
for ending in (".parquet", "-plain.parquet", ".arrow", ".arrows"):
    data = bytearray(open(f"{folder}/some{ending}", "rb").read())
    for trial in range(12):
        changed = data.copy()
        for _ in range(int(random.integers(1, 4))):
            changed[int(random.integers(6, len(changed)))] = int(random.integers(0, 256))
        with open(f"{folder}/changed{ending}", "wb") as file:
            file.write(changed)
        arguments = [part for name in ("i8", "text", "dictionary") for part in ("--arg", f"{name}=@{folder}/changed{ending}:{name}", "--print", name)]
        made = subprocess.run([*command, *arguments], capture_output=True)
        assert made.returncode in (0, 2, 4, 5), (ending, trial, made.returncode, made.stderr)
print("damaged files are refused")
