"""Tables in files that are larger than memory, see `kjit.scan_table`. Arrow reads batches on its
own threads while kjit computes."""

import os
import sys
import time

from .. import _progress
from . import Table, of_arrow, running
from .readers import batches_of
from .strings import TextOperand

_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".feather": "feather", ".arrow": "arrow", ".ipc": "arrow"}


def scan_table(source, *, format=None, batch_rows=131072, device=None):
    """Returns a `Scan` of the rows of files. The files are read in batches, so they may be larger
    than memory.

    source: the path of a file or directory, a list of paths, or a pyarrow dataset. format:
    "parquet", "csv" or "arrow"; the default follows from the file name's suffix, and is "parquet"
    for a directory. batch_rows: the maximum number of rows in a batch. device: the device on which
    row functions run.

    Raises ImportError without pyarrow, FileNotFoundError for missing files, and TypeError or
    ValueError for other sources.
    """
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("kjit.scan_table needs pyarrow, which is not installed") from None
    if isinstance(batch_rows, bool) or not hasattr(batch_rows, "__index__") or batch_rows < 1:
        raise ValueError(f"scan_table(): batch_rows must be a number of rows, not {batch_rows!r}")
    if not isinstance(source, pyarrow.dataset.Dataset):
        source = pyarrow.dataset.dataset(*_paths(source, format))
    return Scan(source, (), int(batch_rows), device)


def _paths(source, format):
    """Returns the arguments of pyarrow's dataset()."""
    paths = [os.fspath(path) for path in (source if isinstance(source, (list, tuple)) else [source])]
    if not paths:
        raise ValueError("scan_table() takes at least one path")
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(f"scan_table(): no file {path!r}")
    if format is None:
        suffix = os.path.splitext(paths[0])[1].lower()
        if suffix not in _SUFFIXES and not os.path.isdir(paths[0]):
            raise ValueError(f'scan_table(): the format of {paths[0]!r} is not known: write format="parquet" or "csv"')
        format = _SUFFIXES.get(suffix, "parquet")
    return (paths[0] if len(paths) == 1 else paths), None, format


class Scan:
    """The rows of files after steps such as `filter` and `assign`, see `scan_table`. A method that
    returns a Scan reads no file."""

    def __init__(self, dataset, steps, batch_rows, device):
        self._dataset, self._steps, self._batch_rows, self._device = dataset, steps, batch_rows, device

    def filter(self, function, args=()):
        """Returns a Scan of the rows for which `function(row, *args)` is true, like `Table.filter`."""
        return self._after("filter", function, args=args)

    def assign(self, **functions):
        """Returns a Scan with new or replaced columns, like `Table.assign`."""
        return self._after("assign", **functions)

    def _after(self, method, *arguments, **keywords):
        return Scan(self._dataset, (*self._steps, (method, arguments, keywords)), self._batch_rows, self._device)

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(Table, name):
            raise AttributeError(f"a scan has no {name}(), which needs all rows at once: collect() makes a table in memory")
        raise AttributeError(f"a scan has no attribute {name!r}")

    # ---- methods that read the files ----

    def batches(self):
        """Yields the rows as nonempty pyarrow RecordBatches."""
        yield from self._batches(None, ())

    def collect(self):
        """Returns all rows as a pyarrow Table in memory."""
        import pyarrow

        first = self._run(self._empty())
        return pyarrow.Table.from_batches([first, *self.batches()]) if self._steps else self._dataset.to_table()

    def apply(self, function, axis=1, args=()):
        """Returns the results of a function of each row as a pyarrow ChunkedArray, like
        `Table.apply`."""
        import pyarrow

        first = self._table(self._run(self._empty())).apply(function, axis, args)
        parts = [self._table(batch).apply(function, axis, args) for batch in self._batches([], [(function, args)])]
        return pyarrow.chunked_array([first, *parts])

    def to_parquet(self, path):
        """Writes the rows to a Parquet file, batch by batch, and returns the number of rows."""
        import pyarrow.parquet

        count, first = 0, self._run(self._empty())
        with pyarrow.parquet.ParquetWriter(path, first.schema) as writer:
            for batch in self.batches():
                writer.write_batch(batch)
                count += batch.num_rows
        return count

    def count(self):
        """Returns the number of rows."""
        if not self._steps:
            return self._dataset.count_rows()
        return sum(batch.num_rows for batch in self._batches([], ()))

    def top_k(self, k, by, *, smallest=False):
        """Returns the k rows with the largest values of a column or of a function of a row, like
        `Table.top_k`, as a pyarrow Table."""
        import pyarrow

        found = pyarrow.Table.from_batches([self._run(self._empty())])
        found = self._table(found).top_k(k, by, smallest=smallest)
        for batch in self.batches():
            both = pyarrow.concat_tables([found, pyarrow.Table.from_batches([batch])])
            found = self._table(both.unify_dictionaries()).top_k(k, by, smallest=smallest)
        return found

    def groupby(self, by):
        """Groups the rows for `groupby(...).agg(...)`, see `ScanGroups.agg`. Raises KeyError for an
        unknown column."""
        names = list(by) if isinstance(by, (list, tuple)) else [by]
        if not names:
            raise ValueError("groupby() takes the name of a column or a list of names, not an empty list")
        self._check(names)
        return ScanGroups(self, names)

    def agg(self, **aggregations):
        """Returns a dictionary with an aggregation of all rows for each keyword `name=(column,
        aggregation)`, see `ScanGroups.agg`. A missing result is None."""
        made = _aggregated(self, [], aggregations)
        return {name: made.column(name)[0].as_py() for name in aggregations}

    # ---- batches ----

    def _empty(self):
        """Returns a batch without rows, with the names and types of the files' columns."""
        import pyarrow

        schema = self._dataset.schema
        return pyarrow.RecordBatch.from_arrays([pyarrow.array([], field.type) for field in schema], schema=schema)

    def _table(self, native):
        return Table(native, of_arrow, of_arrow.columns_of(native, has_flags=True), native.num_rows, self._device)

    def _run(self, batch):
        """Applies all steps of the scan to a batch and returns the result."""
        for method, arguments, keywords in self._steps:
            batch = getattr(self._table(batch), method)(*arguments, **keywords)
        return batch

    def _check(self, names):
        schema = self._run(self._empty()).schema
        for name in names:
            if name not in schema.names:
                raise KeyError(f"the files have no column {name!r}: they have {', '.join(map(repr, schema.names))}")

    def _batches(self, names, functions):
        """Yields the batches after all steps. names: the columns that the caller uses, None for
        all; functions: the caller's row functions, each with its additional arguments. Other
        columns are not read."""
        columns = None if names is None else self._used(names, functions)
        line = _Line()
        try:
            for batch in batches_of(self._dataset, columns, self._batch_rows):
                line.show(batch.num_rows)
                made = self._run(batch) if batch.num_rows else batch
                if made.num_rows:
                    yield made
        finally:
            line.end()

    def _used(self, names, functions):
        """Returns the columns in the files that the steps and the caller use, at least one."""
        batch, made, used = self._empty(), set(), set()
        for method, arguments, keywords in self._steps:
            if method == "filter":
                used |= self._operands(batch, arguments[0], keywords["args"]) - made
                continue
            for name, function in keywords.items():
                used |= self._operands(batch, function, ()) - made if callable(function) else set()
                batch = self._table(batch).assign(**{name: function})
                made.add(name)
        for function, args in functions:
            used |= self._operands(batch, function, args) - made
        used |= {*names} - made
        return [name for name in self._dataset.schema.names if name in used] or self._dataset.schema.names[:1]

    def _operands(self, batch, function, args):
        _, operands, *_ = running._variant(function, self._table(batch)._columns, len(args), True)
        return {key for key in operands if not isinstance(key, TextOperand)}

    def __repr__(self):
        return f"<kjit.Scan of {', '.join(self._dataset.schema.names)}, {len(self._steps)} steps>"


class ScanGroups:
    """The rows of a scan, grouped by the values of columns."""

    def __init__(self, scan, names):
        self._scan, self._names = scan, names

    def agg(self, **aggregations):
        """Returns a pyarrow Table with one row for each key, in ascending order, and a column for
        each keyword `name=(column, aggregation)`.

        An aggregation is "sum", "mean", "min", "max", "count", "var", "std", "first" or "last", as
        for tables. column: a name, or a function of a row. The memory depends on the number of
        groups, not on the number of rows.

        Raises ValueError for aggregations that need all values of a group, TypeError for other
        arguments, KeyError for unknown columns, OverflowError for sums of decimals with more than
        18 digits, and the functions' errors.
        """
        return _aggregated(self._scan, self._names, aggregations)


def _aggregated(scan, names, aggregations):
    from .partials import Partials, check

    if not aggregations:
        raise TypeError('agg() takes keywords such as total=("price", "sum")')
    for name, pair in aggregations.items():
        check(name, pair)
        if name in names:
            raise ValueError(f"agg({name}=...): a key column already has this name")
    columns = [column for column, _ in aggregations.values()]
    named = [*names, *(column for column in columns if not callable(column))]
    scan._check(named)
    partials = Partials(names, aggregations, scan._table)
    partials.add(scan._table(scan._run(scan._empty())))
    for batch in scan._batches(named, [(column, ()) for column in columns if callable(column)]):
        partials.add(scan._table(batch))
    return partials.result()


class _Line:
    """Shows the number of rows so far: in place on a terminal, otherwise in lines after 1, 2, 4, 8
    seconds and so on, as selected by `set_progress`."""

    def __init__(self):
        asked, stream = _progress._asked, sys.stderr
        self.is_terminal = stream is not None and not stream.closed and stream.isatty()
        self.is_on = asked is not False and (self.is_terminal or bool(asked) and stream is not None)
        self.rows, self.started, self.next, self.is_shown = 0, time.monotonic(), 1.0, False

    def show(self, rows):
        self.rows += rows
        seconds = time.monotonic() - self.started
        if not self.is_on or seconds < self.next:
            return
        text = f"kjit: {self.rows} rows in {int(seconds)} s"
        self.next = seconds + 0.25 if self.is_terminal else 2 * self.next
        self.is_shown = self.is_terminal
        sys.stderr.write(f"\r{text}\033[K" if self.is_terminal else text + "\n")
        sys.stderr.flush()

    def end(self):
        if self.is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
