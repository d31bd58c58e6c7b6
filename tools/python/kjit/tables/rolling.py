"""Rolling windows: aggregates the rows around each row, in a whole table or in each group."""

import numpy

from .. import _algorithms
from . import keys, rolling_kernels
from .aggregating import Typed, Values
from .columns import find_column
from .grouping import usable
from .rolling_kernels import COUNT, GREATEST, LEAST, MEAN, MOMENT, SUM
from .running import Result

# Name of an aggregation -> the partial results that it needs in addition to the count.
NAMED = {
    "sum": (SUM,),
    "mean": (SUM,),
    "min": (LEAST,),
    "max": (GREATEST,),
    "count": (),
    "var": (MEAN, MOMENT),
    "std": (MEAN, MOMENT),
}


class Rolling:
    """Windows of rows around each row, see `Table.rolling`."""

    def __init__(self, table, window, min_periods, center, grouped=None, selected=None):
        self._window, self._least = _number(window, "window", 1), window if min_periods is None else min_periods
        if _number(self._least, "min_periods", 0) > window:
            raise ValueError(f"rolling(): min_periods={min_periods} is more than the {window} rows of a window")
        self._table, self._center, self._grouped, self._selected = table, bool(center), grouped, selected
        self._arguments = window, min_periods, center
        self._layout = None

    def __getitem__(self, columns):
        """Selects the columns to aggregate: one column, whose results are a Series in pandas, or a
        list of columns."""
        for name in columns if isinstance(columns, list) else [columns]:
            find_column(self._table._columns, name)
        return Rolling(self._table, *self._arguments, self._grouped, columns)

    def agg(self, how=None, **aggregations):
        """Returns a table with a row for each row of the original table, in its order, and a column
        for each keyword `name=(column, aggregation)`.

        An aggregation is a name: "sum", "mean", "min", "max", "count", "var" or "std"; or a
        function of the array of the non-missing values in a window, such as `lambda x: x.max() -
        x.min()`. column: a name, or a function of a row. Instead of keywords, how is a dictionary
        from columns to aggregations, or one aggregation for all columns that are not group keys.

        Raises TypeError and ValueError for other aggregations, KeyError for unknown columns, and
        the errors of the functions.
        """
        if (how is None) == (not aggregations):
            raise TypeError('agg() takes keywords such as smooth=("price", "mean"), a dictionary, or one aggregation')
        if how is not None:
            chosen = how if isinstance(how, dict) else dict.fromkeys(self._columns(), how)
            aggregations = {column: (column, each) for column, each in chosen.items()}
        made = {name: self._aggregated(name, pair) for name, pair in aggregations.items()}
        home, native = self._table._home, self._table._native
        if not hasattr(self._table, "columns"):
            return home.series_of(*made.values(), native, *made)
        table = home.made_of(native, {name: home.series_of(result, native, name) for name, result in made.items()})
        is_one = how is not None and not isinstance(how, dict) and not isinstance(self._selected, (list, type(None)))
        return home.only_column(table, self._selected) if is_one else table

    def apply(self, function):
        """Returns the results of a function of the array of a window's values, see `agg`. Raises
        TypeError if function is not callable."""
        if not callable(function):
            raise TypeError(f"apply() takes a function of the array of the values of a window, not {type(function).__name__}")
        return self.agg(function)

    def _columns(self):
        if self._selected is not None:
            return self._selected if isinstance(self._selected, list) else [self._selected]
        keys_of_groups = self._grouped._names if self._grouped else ()
        return [name for name in self._table._columns if name not in keys_of_groups]

    def _aggregated(self, name, pair):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f'agg({name}=...) takes a pair such as ("price", "mean"), not {pair!r}')
        column, how = pair
        if isinstance(how, str) and how not in NAMED:
            raise ValueError(f"agg({name}=...): windows have no aggregation {how!r}; use {', '.join(NAMED)} or a function")
        if not isinstance(how, str) and not hasattr(how, "__code__"):
            raise TypeError(f"agg({name}=...): an aggregation must be a name or a Python function, not {type(how).__name__}")
        values, there, kind = self._values(name, column, how)
        rows, offsets = self._segments()
        if rows is not None:
            values, there = values[rows], None if there is None else there[rows]
        blocks = _blocks(offsets, self._window)
        after = (self._window - 1) // 2 if self._center else 0
        windows = _Windows(values, there, blocks, self._window - 1 - after, after)
        least = max(self._least, {"sum": 0, "count": 0, "var": 2, "std": 2}.get(how, 1) if isinstance(how, str) else 1)
        found, is_there = windows.named(how, least) if isinstance(how, str) else windows.own(how, least)
        return _result(found, is_there, kind, rows, len(self._table))

    def _segments(self):
        """Returns (the rows group by group, or None for all rows in order; the offsets of the
        groups and the end)."""
        if self._layout is None:
            rows, offsets = None, numpy.array([0, len(self._table)])
            if self._grouped:
                self._grouped._forget()
                groups = self._grouped._groups()
                numbers = Values(groups, numpy.arange(len(self._table)), None, "numpy", ())
                _, offsets, rows = numbers.side_by_side()
            self._layout = rows, offsets
        return self._layout

    def _values(self, name, column, how):
        """Returns (the values as float64, which of them are there or None, the kind of the column)."""
        if callable(column) and hasattr(self._table, "columns"):
            made = self._table._run(column, ())
            values, there, texts, kind = made.values, made.there, made.texts, made.kind
        else:
            found = usable(find_column(self._table._columns, column))
            (values, there), texts, kind = keys.whole(found), found.texts, found.data.kind
            if found.decimal is not None:
                if callable(how):
                    found.decimal.check_digits(column)
                values = found.decimal.floats(values)
        if texts is not None or values.dtype.kind not in "biuf":
            what = {"m": "time differences", "M": "dates", "c": "complex numbers"}.get(values.dtype.kind, "texts")
            raise TypeError(f"agg({name}=...): rolling windows support only numbers, but column {column!r} has {'texts' if texts is not None else what}")
        if kind == "numpy" and values.dtype.kind == "f":
            is_value = values == values
            there = is_value if there is None else there & is_value
        return numpy.ascontiguousarray(values, "f8"), None if there is None or there.all() else there, kind


def _number(value, name, least):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"rolling(): {name} must be a number of rows, not {value!r}")
    if value < least:
        raise ValueError(f"rolling(): {name} must be at least {least}, not {value}")
    return int(value)


def _blocks(offsets, window):
    """Returns (begin, end, first row of the group, last row of the group) of the blocks of rows,
    which are as long as a window."""
    counts = numpy.diff(offsets)
    numbers = (counts + window - 1) // window
    first = numpy.repeat(offsets[:-1], numbers)
    end = numpy.repeat(offsets[1:], numbers)
    starts = numpy.cumsum(numbers) - numbers
    begins = first + (numpy.arange(len(first)) - numpy.repeat(starts, numbers)) * window
    return begins, numpy.minimum(begins + window, end), first, end - 1


class _Windows:
    """The windows over values that are already in order."""

    def __init__(self, values, there, blocks, before, after):
        self.values, self.there, self.blocks, self.before, self.after = values, there, blocks, before, after

    def named(self, how, least):
        """Returns (the results of an aggregation, which of them are there). least: the minimum
        number of values for a result."""
        counts, *found = self._partial((COUNT, *NAMED[how]))
        if how == "count":
            first, last = self._bounds()
            return counts, last - first + 1 >= least
        with numpy.errstate(all="ignore"):
            made = {"mean": lambda: found[0] / counts, "var": lambda: found[-1] / (counts - 1)}
            made["std"] = lambda: numpy.sqrt(found[-1] / (counts - 1))
            return made.get(how, lambda: found[0])(), counts >= least

    def _partial(self, kinds):
        forward, backward, out = (tuple(numpy.empty(len(self.values)) for _ in kinds) for _ in range(3))
        if len(self.values):
            rolling_kernels.scan(self.values, self.there, *self.blocks[:2], kinds, forward, backward)
            rolling_kernels.combine(*self.blocks, self.before, self.after, kinds, forward, backward, out)
        return out

    def _bounds(self):
        """Returns the first and the last row of each window."""
        begins, ends, firsts, lasts = self.blocks
        rows, lengths = numpy.arange(len(self.values)), ends - begins
        return numpy.maximum(numpy.repeat(firsts, lengths), rows - self.before), numpy.minimum(
            numpy.repeat(lasts, lengths), rows + self.after
        )

    def own(self, function, least):
        """Returns (the results of a Python function of the array of a window's values, which of
        them are there)."""
        first, last = self._bounds()
        values, starts, stops = self.values, first, last + 1
        if self.there is not None:
            places = numpy.concatenate([[0], numpy.cumsum(self.there)])
            values, starts, stops = values[self.there], places[first], places[stops]
        is_there = stops - starts >= least
        present = numpy.flatnonzero(is_there)
        known = function.__dict__
        if "__kjit_window__" not in known:
            known["__kjit_window__"] = _of_window(function)
        operand = _algorithms.computed(known["__kjit_window__"], len(present), present, values, starts, stops)
        found = _algorithms.map(_same, operand, device="cpu")
        made = numpy.zeros(len(is_there), found.dtype)
        made[present] = found
        return made, is_there


def _same(x):
    return x


def _of_window(function):
    def of_window(j, present, values, starts, stops):
        w = present[j]
        return function(values[starts[w] : stops[w]])

    return Typed(of_window, numba=True)


def _result(values, is_there, kind, rows, count):
    """Returns the results in the order of the table's rows. Rows that belong to no group have no
    result."""
    if rows is not None:
        ordered, flags = numpy.zeros(count, values.dtype), numpy.zeros(count, bool)
        ordered[rows], flags[rows] = values, is_there
        values, is_there = ordered, flags
    if kind == "numpy" and values.dtype.kind == "f":
        return Result(numpy.where(is_there, values, values.dtype.type(numpy.nan)), None, kind)
    return Result(values, None if is_there.all() else is_there, kind)


def _method(name):
    def method(self):
        return self.agg(name)

    method.__name__, method.__doc__ = name, f'Returns the aggregation "{name}" of the windows of all columns that are no keys, see `agg`.'
    return method


for _name in NAMED:
    setattr(Rolling, _name, _method(_name))
