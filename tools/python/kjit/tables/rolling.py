"""Rolling windows: aggregates the rows around each row, in a whole table or in each group."""

import os

import numpy

from .. import _algorithms
from . import keys, rolling_kernels, rolling_times
from .aggregating import Typed, Values
from .columns import find_column
from .grouping import usable
from .rolling_kernels import COUNT, DEVIATION, GREATEST, LEAST, MEAN, NEEDS, PARTS, SUM, VARIANCE
from .running import Result

# Name of an aggregation -> its number in the kernel and the minimum number of values that it needs.
NAMED = {
    "sum": (SUM, 0),
    "mean": (MEAN, 1),
    "min": (LEAST, 1),
    "max": (GREATEST, 1),
    "count": (COUNT, 0),
    "var": (VARIANCE, 2),
    "std": (DEVIATION, 2),
}
_SHORTEST_TASK = 8192  # rows


class Rolling:
    """Windows of rows or of times around each row, see `Table.rolling`. selected: the columns to
    aggregate: a name, a list of names, or None for all columns that are neither keys nor times."""

    def __init__(self, table, window, min_periods, center, on, closed, grouped=None, selected=None):
        self._span = rolling_times.span_of(window)
        self._window = None if self._span is not None else _number(window, "window", 1)
        if closed not in (None, "right", "left", "both", "neither"):
            raise ValueError(f'rolling(): closed must be "right", "left", "both" or "neither", not {closed!r}')
        self._least = (self._window or 1) if min_periods is None else _number(min_periods, "min_periods", 0)
        if self._window and self._least > self._window:
            raise ValueError(f"rolling(): min_periods={min_periods} is more than the {window} rows of a window")
        self._table, self._center, self._grouped, self._selected = table, bool(center), grouped, selected
        self._on, self._closed = on, closed or "right"
        self._arguments = window, min_periods, center, on, closed
        self._times = rolling_times.times_of(table, on, self._span) if self._span is not None or on is not None else None
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
        the functions' errors.
        """
        if (how is None) == (not aggregations):
            raise TypeError('agg() takes keywords such as smooth=("price", "mean"), a dictionary, or one aggregation')
        if how is not None:
            chosen = how if isinstance(how, dict) else dict.fromkeys(self._columns(), how)
            aggregations = {column: (column, each) for column, each in chosen.items()}
        made = self._aggregated(aggregations)
        home, native = self._table._home, self._table._native
        if not hasattr(self._table, "columns"):
            return home.series_of(*made.values(), native, *made)
        columns = {name: home.series_of(result, native, name) for name, result in made.items()}
        table = home.made_of(native, columns if how is None or self._grouped else self._with_times(columns))
        is_one = how is not None and not isinstance(how, dict) and not isinstance(self._selected, (list, type(None)))
        return home.only_column(table, self._selected) if is_one else table

    def _with_times(self, made):
        """Returns the columns and, as pandas does, the column of the times: at its position in the
        table, or last if columns are selected."""
        if self._on is None or self._on in made:
            return made
        times = self._table._home.column(self._table._native, self._on)
        if self._selected is not None:
            return {**made, self._on: times}
        return {name: times if name == self._on else made[name] for name in self._table._columns if name in made or name == self._on}

    def apply(self, function):
        """Returns the results of a function that takes the array of a window's values, see `agg`.
        Raises TypeError if function is not callable."""
        if not callable(function):
            raise TypeError(f"apply() takes a function that is called with the array of a window's values, not {type(function).__name__}")
        return self.agg(function)

    def _columns(self):
        if self._selected is not None:
            return self._selected if isinstance(self._selected, list) else [self._selected]
        others = [*(self._grouped._names if self._grouped else ()), *([] if self._on is None else [self._on])]
        return [name for name in self._table._columns if name not in others]

    def _aggregated(self, aggregations):
        """Returns name -> Result. One pass computes all named aggregations of a column."""
        by_column, made = {}, dict.fromkeys(aggregations)
        for name, pair in aggregations.items():
            column, how = _checked(name, pair)
            by_column.setdefault(column, {})[name] = how
        rows, offsets, ranges = self._segments()
        for column, chosen in by_column.items():
            values = self._values(column, chosen)
            windows = _Windows(*values, rows, offsets, self._window, self._center) if ranges is None else _Ranges(*values, rows, offsets, ranges)
            named = {name: how for name, how in chosen.items() if isinstance(how, str)}
            if named:
                made.update(zip(named, windows.named(named.values(), self._least)))
            made.update((name, windows.own(how, max(self._least, 1))) for name, how in chosen.items() if name not in named)
        return made

    def _segments(self):
        """Returns three values: the rows group by group, or None for all rows in order; the offsets
        of the groups and the end of the last group; and the first rows and the ends of the windows,
        or None if all windows have the same number of rows."""
        if self._layout is None:
            rows, offsets = None, numpy.array([0, len(self._table)])
            if self._grouped:
                self._grouped._forget()
                groups = self._grouped._groups()
                numbers = Values(groups, numpy.arange(len(self._table)), None, "numpy", ())
                _, offsets, rows = numbers.side_by_side()
            self._layout = rows, offsets, self._ranges(rows, offsets)
        return self._layout

    def _ranges(self, rows, offsets):
        if self._span is not None:
            return rolling_times.ranges(self._times, self._span, self._center, self._closed, rows, offsets, self._on)
        return None if self._closed == "right" else rolling_times.of_rows(self._window, self._center, self._closed, offsets)

    def _values(self, column, chosen):
        """Returns (the values, an array of bools that is True for values that are not missing or
        None, the column's kind). chosen: the column's aggregations by name."""
        if callable(column) and hasattr(self._table, "columns"):
            made = self._table._run(column, ())
            values, there, texts, kind = made.values, made.there, made.texts, made.kind
        else:
            found = usable(find_column(self._table._columns, column))
            (values, there), texts, kind = keys.whole(found), found.texts, found.data.kind
            if found.decimal is not None:
                if any(map(callable, chosen.values())):
                    found.decimal.check_digits(column)
                values = found.decimal.floats(values)
        if texts is not None or values.dtype.kind not in "biuf":
            what = {"m": "time differences", "M": "dates", "c": "complex numbers"}.get(values.dtype.kind, "texts")
            what = "texts" if texts is not None else what
            raise TypeError(f"agg({next(iter(chosen))}=...): rolling windows support only numbers, but column {column!r} has {what}")
        return values.view("u1") if values.dtype.kind == "b" else values, there, kind


def _checked(name, pair):
    """Returns the column and the aggregation of `name=(column, aggregation)`."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f'agg({name}=...) takes a pair such as ("price", "mean"), not {pair!r}')
    column, how = pair
    if isinstance(how, str) and how not in NAMED:
        raise ValueError(f"agg({name}=...): windows have no aggregation {how!r}; use {', '.join(NAMED)} or a function")
    if not isinstance(how, str) and not hasattr(how, "__code__"):
        raise TypeError(f"agg({name}=...): an aggregation must be a name or a Python function, not {type(how).__name__}")
    return pair


def _number(value, name, least):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"rolling(): {name} must be a number of rows, not {value!r}")
    if value < least:
        raise ValueError(f"rolling(): {name} must be at least {least}, not {value}")
    return int(value)


class _Windows:
    """The windows over a column's values. rows: the rows group by group, or None for all rows in
    order; offsets: the groups' offsets in rows, and the end."""

    def __init__(self, values, there, kind, rows, offsets, window, center):
        self.values, self.there, self.kind, self.rows, self.offsets = values, there, kind, rows, offsets
        self.skips_nan = kind == "numpy" and values.dtype.kind == "f"
        longest = int(numpy.diff(offsets).max(initial=1))
        after = (window - 1) // 2 if center else 0
        self.before, self.after = (min(reach, max(longest - 1, 0)) for reach in (window - 1 - after, after))

    def named(self, names, least):
        """Returns the Result of each named aggregation. least: the minimum number of values for a
        result."""
        kinds = tuple(NAMED[name][0] for name in names)
        needed = tuple(float(max(least, NAMED[name][1])) for name in names)
        count, is_flagged = len(self.values), self.kind != "numpy"
        is_whole = self.rows is None or len(self.rows) == count
        rest = 0.0 if is_flagged else numpy.nan  # the result for rows that belong to no group
        out = tuple(numpy.empty(count) if is_whole else numpy.full(count, rest) for _ in kinds)
        flags = tuple((numpy.empty if is_whole else numpy.zeros)(count, bool) for _ in kinds if is_flagged)
        if self.offsets[-1]:
            self._run(kinds, needed, out, is_flagged, flags)
        return [Result(values, _or_none(flags[j]) if is_flagged else None, self.kind) for j, values in enumerate(out)]

    def _run(self, kinds, needed, out, is_flagged, flags):
        tasks, slots = self._tasks()
        length = self.before + self.after + 1
        inverse = numpy.zeros(length + 1)
        inverse[1:] = 1 / numpy.arange(1, length + 1)
        needs = tuple(part in {NEEDS.get(kind) for kind in kinds} for part in range(4))
        ends = numpy.empty((len(slots) - 1, 2, PARTS, length))
        rolling_kernels.aggregate(
            self.values, *self._given(), tasks, slots, self.before, self.after, inverse, ends, needs, kinds,
            needed, out, is_flagged, flags,
        )  # fmt: skip

    def _given(self):
        """Returns the kernels' arguments from `there` to `skips_nan`, which describe the layout of
        the values."""
        given = (numpy.zeros(1, dtype) if x is None else x for x, dtype in ((self.there, bool), (self.rows, "i8")))
        return *given, self.there is not None, self.rows is not None, self.skips_nan

    def _tasks(self):
        """Returns the tasks and the kernel's slots. A task first computes the partial results of
        the block before its rows, which is as long as a window. To keep this cost small, a task has
        4 times the rows of a window, or fewer if this is necessary to use all cores."""
        counts, cores = numpy.diff(self.offsets), len(os.sched_getaffinity(0))
        length = self.before + self.after + 1
        rows_of_task = max(_SHORTEST_TASK, min(4 * length, -(-int(self.offsets[-1]) // cores)))
        numbers = -(-counts // rows_of_task)
        group = numpy.repeat(numpy.arange(len(counts)), numbers)
        number = numpy.arange(len(group)) - numpy.repeat(numpy.cumsum(numbers) - numbers, numbers)
        tasks = numpy.empty((len(group), 4), "i8")
        tasks[:, 2], tasks[:, 3] = self.offsets[:-1][group], self.offsets[1:][group]
        tasks[:, 0] = tasks[:, 2] + number * rows_of_task
        tasks[:, 1] = numpy.minimum(tasks[:, 0] + rows_of_task, tasks[:, 3])
        wanted = numpy.linspace(0, self.offsets[-1], min(len(tasks), 8 * cores) + 1)
        return tasks, numpy.searchsorted(numpy.append(tasks[:, 0], self.offsets[-1]), wanted)

    def _present(self):
        """Returns (the values as 64-bit floats in window order, an array of bools that is True for
        values that are not missing, or None)."""
        values = numpy.asarray(self.values, "f8")
        there = self.there
        if self.skips_nan:
            is_value = values == values
            there = is_value if there is None else there & is_value
        if self.rows is not None:
            values, there = values[self.rows], None if there is None else there[self.rows]
        return numpy.ascontiguousarray(values), None if there is None else _or_none(there)

    def _bounds(self):
        """Returns the first row of each window and the end."""
        lengths, rows = numpy.diff(self.offsets), numpy.arange(self.offsets[-1])
        firsts, ends = numpy.repeat(self.offsets[:-1], lengths), numpy.repeat(self.offsets[1:], lengths)
        return numpy.maximum(firsts, rows - self.before), numpy.minimum(ends, rows + self.after + 1)

    def own(self, function, least):
        """Returns the Result of a Python function that takes the array of a window's values."""
        (values, there), (starts, stops) = self._present(), self._bounds()
        if there is not None:
            places = numpy.concatenate([[0], numpy.cumsum(there)])
            values, starts, stops = values[there], places[starts], places[stops]
        is_there = stops - starts >= least
        present = numpy.flatnonzero(is_there)
        known = function.__dict__
        if "__kjit_window__" not in known:
            known["__kjit_window__"] = _of_window(function)
        operand = _algorithms.computed(known["__kjit_window__"], len(present), present, values, starts, stops)
        found = _algorithms.map(_same, operand, device="cpu")
        places = present if self.rows is None else self.rows[present]
        made, flags = numpy.zeros(len(self.values), found.dtype), numpy.zeros(len(self.values), bool)
        made[places], flags[places] = found, True
        if self.kind == "numpy" and made.dtype.kind == "f":
            return Result(numpy.where(flags, made, made.dtype.type(numpy.nan)), None, self.kind)
        return Result(made, _or_none(flags), self.kind)


class _Ranges(_Windows):
    """Windows with different numbers of rows. ranges: their first rows and their ends, which never
    decrease."""

    def __init__(self, values, there, kind, rows, offsets, ranges):
        super().__init__(values, there, kind, rows, offsets, 1, False)
        self.ranges = ranges

    def _bounds(self):
        starts, stops = self.ranges
        return starts, numpy.maximum(starts, stops)

    def _run(self, kinds, needed, out, is_flagged, flags):
        starts, stops = self.ranges
        longest, count = max(1, int((stops - starts).max())), len(starts)
        number = max(1, min(8 * len(os.sched_getaffinity(0)), count // max(_SHORTEST_TASK, 4 * longest)))
        slots = numpy.linspace(0, count, number + 1).astype("i8")
        needs = tuple(part in {NEEDS.get(kind) for kind in kinds} for part in range(4))
        ends = numpy.empty((number, PARTS, longest))
        rolling_kernels.aggregate_ranges(
            self.values, *self._given(), starts, stops, slots, ends, needs, kinds, needed, out, is_flagged, flags
        )


def _or_none(flags):
    """Returns None in place of flags that are all true."""
    return None if flags.all() else flags


def _same(x):
    return x


def _of_window(function):
    def of_window(j, present, values, starts, stops):
        w = present[j]
        return function(values[starts[w] : stops[w]])

    return Typed(of_window, numba=True)


def _method(name):
    def method(self):
        return self.agg(name)

    method.__name__, method.__doc__ = name, f'Returns the aggregation "{name}" of the windows of all columns that are not keys, see `agg`.'
    return method


for _name in NAMED:
    setattr(Rolling, _name, _method(_name))
