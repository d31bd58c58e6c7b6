"""Sorts rows by a column or by a function of a row: `sort`, `top_k` and `value_counts` of tables."""

import numpy

from .. import _orders
from . import keys
from .grouping import picked, usable
from .columns import find_column
from .running import Result


def _values(table, by):
    """Returns (the values to sort the rows by, an array of bools that is True for values that are
    not missing, or None if no value is missing). Strings are represented by their position in the
    order of strings."""
    if callable(by):
        made = table._run(by, ())
        values, there, texts, is_ordered = made.values, made.there, made.texts, False
    else:
        column = usable(find_column(table._columns, by))
        (values, there), texts, is_ordered = keys.whole(column), column.texts, column.is_ordered
    return (values if texts is None else keys.ranked(values, there, texts, is_ordered)[0]), there


def _rows(table, by):
    """Returns (the rows with a value, the values, the rows without a value). Raises TypeError for
    complex numbers."""
    values, there = _values(table, by)
    if values.dtype.kind == "c":
        raise TypeError(f"column {by!r} has complex numbers, which have no order")
    if values.dtype.kind in "fmM":
        is_value = values == values
        there = is_value if there is None else there & is_value
    if values.dtype.kind in "bmM":
        values = values.view("u1" if values.dtype.kind == "b" else "i8")
    if there is None or there.all():
        return None, numpy.ascontiguousarray(values), numpy.empty(0, numpy.int64)
    rows = numpy.flatnonzero(there)
    return rows, values[rows], numpy.flatnonzero(~there)


def sort(table, by, descending):
    rows, values, last = _rows(table, by)
    order = (
        numpy.asarray(_orders.argsort(values, descending=descending, device="cpu"))
        if len(values)
        else numpy.empty(0, numpy.int64)
    )
    order = order if rows is None else rows[order]
    return table._home.take(table._native, numpy.concatenate([order, last]))


def top_k(table, k, by, smallest):
    if not hasattr(k, "__index__") or k < 0:
        raise ValueError(f"k must be the number of rows, not {k!r}")
    rows, values, last = _rows(table, by)
    found = min(int(k), len(values))
    order = numpy.empty(0, numpy.int64)
    if found:
        _, order = _orders.top_k(values, found, descending=not smallest, device="cpu")
        order = numpy.asarray(order)
    order = order if rows is None else rows[order]
    return table._home.take(table._native, numpy.concatenate([order, last[: int(k) - found]]))


def value_counts(table, name):
    """Returns the number of rows for each value of a column, most frequent first; values with equal
    counts are in ascending order."""
    grouped = table.groupby(name)
    groups, (labels,) = grouped._groups(), grouped._labels()
    counts = numpy.bincount(groups.codes[groups.codes >= 0], minlength=len(groups)).astype("i8")
    order = numpy.argsort(-counts, kind="stable")
    kind = table._columns[name].data.kind
    made = {"count": Result(counts[order], None, "arrow" if kind == "arrow" else "numpy")}
    return table._home.groups_of(table._native, {name: picked(labels, order)}, made)
