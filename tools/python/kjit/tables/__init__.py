"""Applies Python functions to the rows of tables, see `kjit.table`."""

import sys

from . import of_arrow, of_numpy, of_pandas, of_polars
from .missing import NA, Missing, isna
from .columns import find_column, of_result
from .running import constant, run

__all__ = ["NA", "Missing", "Series", "Table", "isna", "table"]


_OWN = "use the table's own library for operations that do not call a function of rows"
_INSTEAD = {"join": "merge() joins tables", "group_by": "its name is groupby()", "query": "filter() takes a function of a row"}


class _Over:
    """An object of another library and its columns."""

    def __init__(self, native, home, columns, length, device):
        self._native, self._home, self._columns, self._length, self._device = native, home, columns, length, device

    def __len__(self):
        return self._length

    def rolling(self, window, min_periods=None, center=False, *, on=None, closed=None):
        """Returns rolling windows; `rolling(7).mean()`, `rolling(7).agg(...)` and `rolling(7).apply(f)`
        aggregate them, see `kjit.tables.rolling.Rolling.agg`.

        window: a number of rows, or a span of time: a string such as "3s", "2D" or "1h30min", or a
        timedelta. on: the column of the times, which must be in order; the default for a pandas
        table is its index. min_periods: a window with fewer non-missing values has a missing
        result. The default is the window's number of rows, or 1 for a time span. For "count",
        min_periods counts rows, as in pandas. center: whether the row is in the middle of its
        window instead of at the end. closed: which ends belong to the window, "right" (the
        default), "left", "both" or "neither".

        Raises TypeError and ValueError for invalid arguments, and ValueError for times that are
        missing or not in order.
        """
        from .rolling import Rolling

        return Rolling(self, window, min_periods, center, on, closed)


class Table(_Over):
    """A table of another library, see `kjit.table`."""

    @property
    def columns(self):
        """The names of the columns, as a list."""
        return list(self._columns)

    def __getitem__(self, name):
        if isinstance(name, list):
            raise TypeError("kjit.table(...)[...] takes one name; select columns with the table's own library")
        return Series(self._native, self._home, {name: find_column(self._columns, name)}, self._length, self._device)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        hint = f'the column is table["{name}"]' if name in self.__dict__.get("_columns", ()) else _INSTEAD.get(name)
        raise AttributeError(f"a kjit.Table has no attribute {name!r}: {hint or _OWN}")

    def _run(self, function, args):
        return run(function, self._columns, self._length, args, device=self._device)

    def apply(self, function, axis=1, args=()):
        """Calls `function(row, *args)` for each row and returns the results as a column: a Series
        or array of the table's library.

        The function reads columns as `row.a` and `row["a"]`; a missing value is `kjit.NA`. axis: 1
        or "columns", as in pandas.

        Raises SourceError for Python code that cannot be compiled, TypingError for types that do
        not fit, ValueError for another axis, and the errors that the function raises.
        """
        if axis not in (1, "columns"):
            raise ValueError(f"apply() calls the function for each row, axis=1; axis={axis!r} is not supported")
        return self._home.series_of(self._run(function, args), self._native)

    def assign(self, **functions):
        """Returns the table with new or replaced columns. The value for each name is a number or a
        function of a row, as in `apply`. A function sees the columns that earlier keywords have
        added, as in pandas. Raises the same errors as `apply`."""
        made, table = {}, self
        for name, function in functions.items():
            result = table._run(function, ()) if callable(function) else _constant(name, function, self._length)
            made[name] = self._home.series_of(result, self._native, name)
            columns = {**table._columns, name: of_result(name, result)}
            table = Table(self._native, self._home, columns, self._length, self._device)
        return self._home.assign(self._native, made)

    def filter(self, function, args=()):
        """Returns the rows for which `function(row, *args)` is true. Rows with the result NA are
        left out. Raises TypeError if a result is not a bool, and the same errors as `apply`."""
        return self._home.keep(self._native, _mask(self._run(function, args)))

    def groupby(self, by):
        """Groups the rows by the values of a column or of a list of columns;
        `groupby("key").agg(...)` aggregates the groups, see `kjit.tables.grouping.GroupBy.agg`.
        Raises KeyError for an unknown column."""
        from .grouping import GroupBy

        return GroupBy(self, by)

    def sort(self, by, *, descending=False):
        """Returns the rows sorted by a column, or by the results of a function of a row.

        by: the column name, or the function. Rows with equal values keep their order, even if
        descending is true. Rows with a missing value or NaN come last. Raises KeyError for an
        unknown column, TypeError for values without an order, and the same errors as `apply`.
        """
        from . import ordering

        return ordering.sort(self, by, descending)

    def top_k(self, k, by, *, smallest=False):
        """Returns the k rows with the largest values, largest first, in the order of `sort`. The
        values are a column, or a function's results for the rows. smallest: returns the rows with
        the smallest values instead. Raises ValueError for an invalid k, and the same errors as
        `sort`."""
        from . import ordering

        return ordering.top_k(self, k, by, smallest)

    def value_counts(self, column):
        """Returns a table with the distinct values of a column and the number of rows for each,
        `count`, most frequent first. Values with equal counts are in ascending order, and missing
        values are left out. Raises KeyError for an unknown column."""
        from . import ordering

        return ordering.value_counts(self, column)

    def merge(self, right, how="inner", on=None, left_on=None, right_on=None, suffixes=("_x", "_y"), nulls_equal=True):
        """Joins the table with another table of the same library. The result has the pairs of rows
        with equal keys, in pandas' order and with pandas' column names.

        right: the other table. how: "inner", "left", "right" or "outer", as in pandas; "semi"
        returns the rows in this table that have a match, each once, and "anti" the rows that have
        none. on: the key name in both tables, or a list of names. left_on, right_on: the names in
        this and in the other table. Without these, the key is the only column that both tables
        have. suffixes: appended to the names of other columns that both tables have. nulls_equal:
        whether two missing keys are equal, as in pandas, but not in SQL and pyarrow; NaN and NaT
        count as missing.

        Raises KeyError for unknown columns. Raises ValueError for an unknown `how`, and for two
        result columns with the same name. Raises TypeError for keys of different kinds, for tables
        of different libraries, and if the names of keys are missing. Raises OverflowError for dates
        that the finer unit of both keys cannot hold.
        """
        from . import joining

        other = right if isinstance(right, Table) else table(right)
        if not isinstance(other, Table):
            raise TypeError(f"merge() takes a table, not {type(right).__name__}")
        return joining.merge(self, other, how, on, left_on, right_on, suffixes, nulls_equal)

    def __repr__(self):
        return f"<kjit.Table of {self._length} rows: {', '.join(map(str, self._columns))}>"


class Series(_Over):
    """One column of a table, or a Series or array of another library, see `kjit.table`."""

    def apply(self, function, args=()):
        """Calls `function(value, *args)` for each element and returns the results as a column, like
        `Table.apply`."""
        (name, column), *_ = self._columns.items()
        result = run(function, {"value": column}, self._length, args, is_row=False, device=self._device)
        return self._home.series_of(result, self._native, name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"a kjit.Series has no attribute {name!r}: it has apply() and rolling(); {_OWN}")

    def __repr__(self):
        return f"<kjit.Series of {self._length} elements: {next(iter(self._columns))}>"


def _constant(name, value, length):
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise TypeError(
            f"assign({name}=...) takes a function of a row or one value for all rows, not {type(value).__name__}; add a column of values "
            "with the table's own library"
        )
    return constant(value, length)


def _mask(result):
    if result.values.dtype.kind != "b":
        raise TypeError(f"the function of filter() must return a bool for each row, not {result.values.dtype}")
    return result.values if result.there is None else result.values & result.there


def table(x, *, nan_is_missing=False, device=None):
    """Returns a `Table` or `Series` that applies functions to the rows of x.

    x is a DataFrame or Series of pandas or polars, or a Table, RecordBatch, Array or ChunkedArray of
    pyarrow. It can also be a dictionary of NumPy arrays, or another object with the Arrow PyCapsule
    interface; the results of such an object are pyarrow objects. Columns are not copied if their
    layout allows it.

    nan_is_missing: whether functions see a NaN or NaT in a NumPy column of pandas as `kjit.NA`. By
    default they see the NaN or NaT, as in pandas. device: the device on which functions run. Raises
    TypeError for other objects, and for two columns with the same name.
    """
    pandas, polars, pyarrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(x, (pandas.DataFrame, pandas.Series)):
        kind = Table if x.ndim == 2 else Series
        return kind(x, of_pandas, of_pandas.columns_of(x, nan_is_missing), len(x), device)
    if pyarrow is not None and isinstance(x, (pyarrow.Table, pyarrow.RecordBatch)):
        return Table(x, of_arrow, of_arrow.columns_of(x), x.num_rows, device)
    if pyarrow is not None and isinstance(x, (pyarrow.Array, pyarrow.ChunkedArray)):
        from .columns import Column

        return Series(x, of_arrow, {None: Column(None, lambda: of_arrow.read(x))}, len(x), device)
    if polars is not None and isinstance(x, (polars.DataFrame, polars.Series)):
        kind = Table if isinstance(x, polars.DataFrame) else Series
        return kind(x, of_polars, of_polars.columns_of(x), len(x), device)
    if isinstance(x, dict):
        columns = of_numpy.columns_of(x)
        return Table(x, of_numpy, columns, of_numpy.length(x), device)
    if hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__"):
        return table(_of_capsules(x), device=device)
    hint = "; collect() makes a DataFrame of it" if type(x).__name__ == "LazyFrame" else ""
    raise TypeError(
        "kjit.table takes a table of pandas, polars or pyarrow, an object with the Arrow PyCapsule interface, or a dictionary of "
        f"NumPy arrays, not {type(x).__name__}{hint}"
    )


def _of_capsules(x):
    """Converts an object of another library to a pyarrow table or array."""
    try:
        import pyarrow
    except ImportError:
        raise TypeError(
            f"kjit.table needs pyarrow, which is not installed, to read {type(x).__name__} through the Arrow PyCapsule interface"
        ) from None
    if hasattr(x, "__arrow_c_stream__"):
        try:
            return pyarrow.table(x)
        except (TypeError, ValueError, pyarrow.ArrowException):
            return pyarrow.chunked_array(x)
    made = pyarrow.array(x)
    return pyarrow.RecordBatch.from_struct_array(made) if pyarrow.types.is_struct(made.type) else made


def __getattr__(name):
    """Imports `scan_table` at its first use, because the module of scan_table imports this
    module."""
    if name == "scan_table":
        from .scanning import scan_table

        return scan_table
    raise AttributeError(name)
