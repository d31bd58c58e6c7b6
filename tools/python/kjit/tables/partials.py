"""Aggregates groups over batches of rows: computes partial results for each batch, which are tables
again, and combines them."""

import numpy
import pyarrow

from .grouping import GroupBy

# Aggregation -> the partial results of a batch. The parts "mean" and "m2", the sum of squared
# deviations, also need the part "count".
PARTS = {
    "sum": ("sum",),
    "count": ("count",),
    "min": ("min",),
    "max": ("max",),
    "first": ("first",),
    "last": ("last",),
    "mean": ("count", "mean"),
    "var": ("count", "mean", "m2"),
    "std": ("count", "mean", "m2"),
}
# partial result -> the aggregation that combines it over all batches, if this is not the one that computed it
_SECOND = {"count": "sum"}
_MOST_PENDING = 1 << 18  # number of rows of partial results that are combined at once


def check(name, pair):
    """Raises TypeError or ValueError for an argument of agg() that is not a pair of a column and an
    aggregation that batches support."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f'agg({name}=...) takes a pair such as ("price", "sum"), not {pair!r}')
    if not isinstance(pair[1], str) or pair[1] not in PARTS:
        what = repr(pair[1]) if isinstance(pair[1], (str, tuple)) else "a function"
        raise ValueError(
            f"agg({name}=...): {what} needs all values of a group at once, but batches support only {', '.join(PARTS)}; "
            "collect() makes a table in memory"
        )


class Partials:
    """The partial results of all batches so far. by: the keys of the groups, or an empty list for
    one group of all rows."""

    def __init__(self, by, aggregations, table_of):
        self.by, self.aggregations, self.table_of = by, aggregations, table_of
        self.pending, self.rows, self.combined_rows, self.types = [], 0, 0, None

    def add(self, batch):
        """Aggregates a batch, a Table of kjit."""
        grouped = self._grouped(batch)
        chosen = {}
        for name, (column, how) in self.aggregations.items():
            for part in PARTS[how]:
                chosen[f"{name}:{part}"] = column, "var" if part == "m2" else part
        made = _as_table(grouped.agg(**chosen))
        for at, name in enumerate(made.column_names):
            if name.endswith(":m2") and name in chosen:
                made = made.set_column(at, name, _squares(made, name[: -len(":m2")]))
        if self.types is None:
            direct = grouped.agg(**self.aggregations)
            self.types = {name: direct.schema.field(name).type for name in self.aggregations}
        self.pending.append(made)
        self.rows += made.num_rows
        if self.rows > max(_MOST_PENDING, 4 * self.combined_rows):
            self._combine()

    def result(self):
        """Returns the aggregations of all batches as a pyarrow Table."""
        self._combine()
        (table,) = self.pending
        columns = {name: table.column(name) for name in self.by}
        for name, (_, how) in self.aggregations.items():
            columns[name] = _finished(table, name, how).cast(self.types[name], safe=False)
        return pyarrow.table(columns)

    def _grouped(self, table):
        return GroupBy(table, self.by) if self.by else GroupBy.of_all(table)

    def _combine(self):
        if len(self.pending) > 1:
            table = pyarrow.concat_tables([_narrow(each) for each in self.pending], promote_options="permissive")
            self.pending = [self._combined(table.unify_dictionaries())]
        self.rows = self.combined_rows = self.pending[0].num_rows

    def _combined(self, table):
        grouped = self._grouped(self.table_of(table))
        parts = [f"{name}:{part}" for name, (_, how) in self.aggregations.items() for part in PARTS[how]]
        simple = {name: (name, second) for name in parts if (second := _second(name))}
        made = _as_table(grouped.agg(**simple))
        codes, count = grouped._groups().codes, len(grouped._groups())
        for name, (_, how) in self.aggregations.items():
            if "mean" in PARTS[how]:
                for part, values in _moments(table, name, codes, count, PARTS[how]).items():
                    made = made.append_column(f"{name}:{part}", pyarrow.array(values))
        return made.select([*self.by, *parts])


def _second(name):
    part = name.rpartition(":")[2]
    return None if part in ("mean", "m2") else _SECOND.get(part, part)


def _as_table(made):
    return pyarrow.Table.from_batches([made]) if isinstance(made, pyarrow.RecordBatch) else made


def _numbers(table, name):
    """Returns a column as floats, with 0 for missing values."""
    return table.column(name).cast(pyarrow.float64()).fill_null(0.0).to_numpy()


def _squares(made, name):
    """Returns the sums of squared deviations, computed from a batch's variances."""
    count = _numbers(made, f"{name}:count")
    found = _numbers(made, f"{name}:m2") * numpy.maximum(count - 1, 0)
    return pyarrow.array(numpy.where(count > 1, found, 0.0))


def _moments(table, name, codes, count, parts):
    """Combines groups of partial results. Returns the means, and the sums of squared deviations
    from the means."""
    is_in = codes >= 0
    codes, weights = codes[is_in], _numbers(table, f"{name}:count")[is_in]
    means = _numbers(table, f"{name}:mean")[is_in]
    total = numpy.bincount(codes, weights, count)
    with numpy.errstate(all="ignore"):
        # A group without values gets the mean 0; its weight is 0, so it does not affect further
        # batches.
        combined = numpy.where(total > 0, numpy.bincount(codes, weights * means, count) / total, 0.0)
    made = {"mean": combined}
    if "m2" in parts:
        deviations = numpy.where(weights > 0, means - combined[codes], 0.0)
        made["m2"] = numpy.bincount(codes, _numbers(table, f"{name}:m2")[is_in] + weights * deviations**2, count)
    return made


def _narrow(table):
    """Converts sums of decimals to a type that can be read again. Raises OverflowError for more
    than 18 digits."""
    for at, field in enumerate(table.schema):
        if pyarrow.types.is_decimal(field.type) and field.type.precision > 18:
            try:
                column = table.column(at).cast(pyarrow.decimal128(18, field.type.scale))
            except pyarrow.ArrowInvalid:
                raise OverflowError(f"{field.name.partition(':')[0]}: the sum of decimals has more than 18 digits") from None
            table = table.set_column(at, field.name, column)
    return table


def _finished(table, name, how):
    """Returns the results of an aggregation, computed from its parts."""
    if how not in ("mean", "var", "std"):
        return table.column(f"{name}:{how}")
    count = _numbers(table, f"{name}:count")
    if how == "mean":
        return pyarrow.array(_numbers(table, f"{name}:mean"), mask=count < 1)
    found = _numbers(table, f"{name}:m2") / numpy.maximum(count - 1, 1)
    return pyarrow.array(found if how == "var" else numpy.sqrt(found), mask=count < 2)
