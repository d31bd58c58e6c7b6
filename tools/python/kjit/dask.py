"""Applies row functions and aggregations to the partitions of Dask data frames. A worker receives
each function once and keeps it; the workers of a machine share the compiled code through the disk
cache."""

import hashlib
import pickle

from . import _functions, _portable
from ._functions import func
from .tables import Table, of_arrow, table

_received: dict = {}  # in a worker: digest -> Shipped


class Shipped:
    """A Python function that is sent to other processes by value, with its source."""

    def __init__(self, function, data=None):
        self.function = function
        self.data = pickle.dumps(_Portable(function)) if data is None else data
        self.digest = hashlib.sha256(self.data).hexdigest()

    def __reduce__(self):
        return _receive, (self.digest, self.data)

    def __dask_tokenize__(self):
        return "kjit", self.digest


class _Portable:
    """A function inside a pickle. The pickle contains the source, which the worker compiles."""

    def __init__(self, function):
        self.function = function

    def __reduce__(self):
        made = self.function if isinstance(self.function, _functions._Compiled) else func(self.function)
        made.py_func.__dict__.pop("__kjit_rows__", None)
        return _portable.reduce(made)


def _receive(digest, data):
    """Returns the function that belongs to a digest. Each process unpickles a function once."""
    if digest not in _received:
        made = pickle.loads(data)
        _received[digest] = Shipped(made.py_func, data)
    return _received[digest]


def _check(ddf, what):
    try:
        import dask.dataframe
    except ImportError:
        raise ImportError("kjit.dask needs Dask's data frames, which are not installed") from None
    if not isinstance(ddf, dask.dataframe.DataFrame):
        raise TypeError(f"kjit.dask.{what} takes a Dask DataFrame, not {type(ddf).__name__}")


def _apply(frame, shipped, args):
    return table(frame).apply(shipped.function, args=args)


def apply(ddf, function, args=()):
    """Returns the results of `function(row, *args)` for each row of a Dask DataFrame, as a lazy
    Dask Series; see `kjit.table`.

    Raises ImportError without Dask, TypeError for other data frames, and the errors that
    `Table.apply` raises for an empty partition. Errors in rows are raised when Dask computes the
    result.
    """
    _check(ddf, "apply")
    shipped, args = Shipped(function), tuple(args)
    return ddf.map_partitions(_apply, shipped, args, meta=_apply(ddf._meta, shipped, args))


def _table_of(native):
    return Table(native, of_arrow, of_arrow.columns_of(native, has_flags=True), native.num_rows, None)


def _unshipped(aggregations):
    return {name: (getattr(column, "function", column), how) for name, (column, how) in aggregations.items()}


def _partial(frame, by, aggregations):
    """Returns the partial results of a partition: (pyarrow Table, types of the results)."""
    import pyarrow

    from .tables.partials import Partials

    partials = Partials(by, _unshipped(aggregations), _table_of)
    partials.add(_table_of(pyarrow.Table.from_pandas(frame, preserve_index=False)))
    return partials.pending[0], partials.types


def agg(ddf, by=None, **aggregations):
    """Computes aggregations of a Dask DataFrame from partial results of its partitions.

    Returns a pandas DataFrame with one row for each value of the column `by`, or of the list of
    columns, in ascending order. Without `by` the result is a dictionary with the results for all
    rows.

    An aggregation is `name=(column, how)` as for scans of files. how: "sum", "mean", "min", "max",
    "count", "var", "std", "first" or "last". column: a column name or a function of a row.

    Raises ImportError without Dask or pyarrow, KeyError for unknown columns, and TypeError or
    ValueError for other aggregations.
    """
    import dask

    from .tables import partials

    _check(ddf, "agg")
    names = [] if by is None else list(by) if isinstance(by, (list, tuple)) else [by]
    if not aggregations:
        raise TypeError('agg() takes keywords such as total=("price", "sum")')
    for name, pair in aggregations.items():
        partials.check(name, pair)
    for name in (*names, *(column for column, _ in aggregations.values() if not callable(column))):
        if name not in ddf.columns:
            raise KeyError(f"the data frame has no column {name!r}: it has {', '.join(map(repr, ddf.columns))}")
    shipped = {name: (Shipped(c) if callable(c) else c, how) for name, (c, how) in aggregations.items()}
    found = dask.compute(*(dask.delayed(_partial)(part, names, shipped) for part in ddf.to_delayed()))
    made = partials.Partials(names, _unshipped(shipped), _table_of)
    made.pending, made.types = [rows for rows, _ in found], found[0][1]
    result = made.result()
    if by is None:
        return {name: result.column(name)[0].as_py() for name in aggregations}
    return result.to_pandas().set_index(names if len(names) > 1 else names[0])
