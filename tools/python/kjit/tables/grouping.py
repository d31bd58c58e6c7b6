"""`Table.groupby`: groups of rows with equal keys, and their aggregations."""

import numpy

from . import aggregating, keys
from .columns import find_column
from .running import Result


class GroupBy:
    """The rows in a table, grouped by the values of one or several columns, see `Table.groupby`."""

    def __init__(self, table, by, selected=None):
        self._selected = (
            # the columns that `sum()` and related methods aggregate: a name, a list of names, or
            # None for all other columns
            selected
        )
        self._names = list(by) if isinstance(by, (list, tuple)) else [by]
        if not self._names:
            raise ValueError("groupby() takes the name of a column or a list of names, not an empty list")
        for name in self._names:
            find_column(table._columns, name)
        self._table, self._found = table, None

    @classmethod
    def of_all(cls, table):
        """Returns a single group of all rows, without keys."""
        made = cls.__new__(cls)
        made._selected, made._names, made._table = None, [], table
        made._found = keys.Groups(numpy.zeros(len(table), "i4"), numpy.zeros(1, "i8")), list
        return made

    def agg(self, how=None, **aggregations):
        """Returns a table with one row for each key, in ascending order, and a column for each
        keyword `name=(column, aggregation)`.

        An aggregation is one of the names "sum", "mean", "median", "var", "std", "min", "max",
        "count", "first", "last" and "nunique", or a pair such as ("quantile", 0.9). It can also be a
        function of the array of a group's values, such as `lambda x: x.max() - x.min()`. column: a
        name, or a function of a row as in `Table.apply`. how: a dictionary from columns to
        aggregations, or one aggregation for all columns that are not keys; it replaces the keywords.

        Missing values are ignored, and rows with a missing key belong to no group. A group without
        values has a missing result, except for "sum", "count" and "nunique", which are 0.

        Raises TypeError and ValueError for invalid arguments, KeyError for unknown columns, and the
        functions' errors.
        """
        if (how is None) == (not aggregations):
            raise TypeError('agg() takes keywords such as total=("price", "sum"), a dictionary, or one aggregation')
        if how is not None:
            chosen = how if isinstance(how, dict) else dict.fromkeys(self._columns(), how)
            aggregations = {column: (column, each) for column, each in chosen.items()}
        made = self._aggregated(aggregations)
        is_one = how is not None and not isinstance(how, dict) and not isinstance(self._selected, (list, type(None)))
        return self._table._home.only_column(made, self._selected) if is_one else made

    def __iter__(self):
        raise TypeError("groups cannot be iterated over; agg() calls a function with the array of each group's values")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"kjit's groups have no attribute {name!r}; use agg() with the name of an aggregation or with a function that takes an array")

    def __getitem__(self, columns):
        """Selects the columns to aggregate: one column, whose results are a Series in pandas, or a
        list of columns."""
        for name in columns if isinstance(columns, list) else [columns]:
            find_column(self._table._columns, name)
        made = GroupBy(self._table, self._names, columns)
        made._found = self._found
        return made

    def size(self):
        """Returns the number of rows in each group: a Series in pandas, otherwise a table with the
        column `size`."""
        self._forget()
        groups, labels = self._find()
        counts = numpy.bincount(groups.codes[groups.codes >= 0], minlength=len(groups)).astype("i8")
        home, kind = self._table._home, self._table._columns[self._names[0]].data.kind
        made = {"size": Result(counts, None, "arrow" if kind == "arrow" else "numpy")}
        return home.only_column(home.groups_of(self._table._native, dict(zip(self._names, labels())), made), "size", False)

    def apply(self, function, *args):
        """Calls `function(group, *args)` for each group and returns the results: a Series in pandas,
        otherwise a table with the keys and the column `result`.

        The function reads the group's values of a column as an array, `group.a` or `group["a"]`,
        and its number of rows as `len(group)`. The reductions `sum`, `mean`, `min`, `max`, `count`,
        `var` and `std` leave out missing values, with `ddof=1` as in pandas. args: numbers. With a
        selected column, `groupby("k")["a"].apply(f)`, the function receives the array of the values
        that are not missing.

        Raises TypeError if the function uses a column that has neither numbers nor bools, or if it
        uses a column with missing values without a reduction. Raises SourceError for Python code
        that cannot be compiled. Errors that the function raises are passed on.
        """
        from . import group_functions

        if self._selected is not None:
            return self._selected_apply(function, args)
        self._forget()
        groups, labels = self._find()
        made = {"result": group_functions.apply(self._table, groups, function, args)}
        home = self._table._home
        return home.only_column(home.groups_of(self._table._native, dict(zip(self._names, labels())), made), "result", False)

    def _selected_apply(self, function, args):
        if args or not callable(function):
            raise TypeError("apply() of selected columns takes only a function, which it calls with the array of a group's values")
        return self.agg(function)

    def rolling(self, window, min_periods=None, center=False, *, on=None, closed=None):
        """Returns rolling windows within each group, see `Table.rolling`. The results are in the
        order of the table's rows, and missing for rows that belong to no group."""
        from .rolling import Rolling

        return Rolling(self._table, window, min_periods, center, on, closed, self, self._selected)

    def _columns(self):
        if self._selected is None:
            return [name for name in self._table._columns if name not in self._names]
        return self._selected if isinstance(self._selected, list) else [self._selected]

    def _aggregated(self, aggregations):
        for name, pair in aggregations.items():
            _check(name, pair)
        self._forget()
        groups, labels = self._find()  # kept in variables, because another thread may call _forget before the end
        # (column or function of a row, whether its decimals are computed as integers) -> the folds
        # and the functions of groups that its aggregations need
        wanted = {}
        for column, how in aggregations.values():
            folds = aggregating.NAMED[how][0] if isinstance(how, str) else (how,) if callable(how) else ()
            wanted.setdefault((column, aggregating.is_exact(how)), set()).update(folds)
            if callable(how) and self._decimal(column) is not None:
                self._decimal(column).check_digits(column)
        values, one_pass = {}, aggregating.Folds(groups)
        for (column, is_exact), folds in wanted.items():
            decimal = self._decimal(column)
            if decimal is None and (column, not is_exact) in values:
                continue
            if decimal is None:
                folds = folds.union(wanted.get((column, not is_exact), ()))
            made = self._values(column, one_pass, folds, is_exact)
            values[column, is_exact] = made
            if decimal is None:
                values[column, not is_exact] = made
        made = {}
        for name, (column, how) in aggregations.items():
            if name in self._names:
                raise ValueError(f"agg({name}=...): a key column already has this name")
            made[name] = aggregating.of(name, column, values[column, aggregating.is_exact(how)], how)
        return self._table._home.groups_of(self._table._native, dict(zip(self._names, labels())), made)

    def _forget(self):
        """Forgets groups that read their keys in the table's memory. The program may have changed
        the keys since then, and a key outside of the old range would be an invalid index."""
        found = self._found
        if found and len(self._names) == 1 and isinstance(found[0], keys.RangeGroups):
            self._found = None

    def _find(self):
        """Returns (the groups, a function that returns their keys)."""
        found = self._found
        if found is None:
            (groups, labels), *others = [_groups_of(usable(self._table._columns[name])) for name in self._names]
            for other, own in others:
                groups, labels = _paired(groups, labels, other, own)
            found = self._found = groups, labels
        return found

    def _groups(self):
        return self._find()[0]

    def _labels(self):
        """Returns the keys of the groups as a Result for each column. After an aggregation this
        needs no pass over the rows."""
        return self._find()[1]()

    def _decimal(self, column):
        """Returns the Decimal of a column, or None for functions and for columns of other types."""
        return None if callable(column) else getattr(self._table._columns.get(column), "decimal", None)

    def _values(self, column, one_pass, folds, is_exact):
        decimal, is_ordered = None, False
        if callable(column):
            made = self._table._run(column, ())
            values, there, texts, kind = made.values, made.there, made.texts, made.kind
        else:
            found = usable(find_column(self._table._columns, column))
            (values, there), texts, kind, decimal = keys.whole(found), found.texts, found.data.kind, found.decimal
            is_ordered = found.is_ordered
        if texts is not None:
            values, texts = keys.ranked(values, there, texts, is_ordered)
        if decimal is not None and not is_exact:
            values, decimal = decimal.floats(values), None
        return aggregating.Values(one_pass.groups, values, there, kind, folds, texts, decimal, one_pass)


def _method(name):
    def method(self):
        return self.agg(name)

    method.__name__, method.__doc__ = (
        name,
        f'Returns the aggregation "{name}" of all columns that are not keys, see `agg`.',
    )
    return method


for _name in aggregating.NAMED:
    setattr(GroupBy, _name, _method(_name))


def _check(name, pair):
    """Raises TypeError unless an argument of agg() is a pair of a column and an aggregation."""
    if isinstance(pair, tuple) and len(pair) == 2 and _is_quantile(pair[1]):
        return
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], (list, tuple)):
        raise TypeError(
            f'agg(): several aggregations of column {pair[0]!r}: write a keyword for each, as low=({pair[0]!r}, "min")'
        )
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f'agg({name}=...) takes a pair such as ("price", "sum"), not {pair!r}')
    if isinstance(pair[1], str) and pair[1] not in aggregating.NAMED:
        raise ValueError(f"agg({name}=...): there is no aggregation {pair[1]!r}; the aggregations are {', '.join(aggregating.NAMED)}")
    if not isinstance(pair[1], str) and not hasattr(pair[1], "__code__"):
        raise TypeError(
            f"agg({name}=...): an aggregation must be a name or a Python function, not {type(pair[1]).__name__}"
        )


def _is_quantile(how):
    """Returns whether an aggregation is ("quantile", q). Raises ValueError if q is not from 0 to 1."""
    if not isinstance(how, tuple) or len(how) != 2 or how[0] != "quantile":
        return False
    if isinstance(how[1], bool) or not isinstance(how[1], (int, float)) or not 0 <= how[1] <= 1:
        raise ValueError(f'("quantile", q): q must be a number from 0 to 1, not {how[1]!r}')
    return True


def usable(column):
    """Returns the column. Raises TypeError if functions cannot use its values."""
    if column.refusal:
        raise TypeError(f"column {column.name!r}: {column.refusal}")
    return column


def _groups_of(column):
    """Returns (the groups in one column, a function that returns a list with the Result of their
    keys)."""
    values, there = keys.whole(column)
    if column.texts is None:
        groups, texts = keys.find(values, there), None
    else:
        groups, texts = keys.find_texts(values, there, column.texts, column.is_ordered)
    return groups, lambda: [Result(groups.keys, None, column.data.kind, texts, column.decimal)]


def _paired(left, labels, right, own):
    """Returns (the groups of rows with equal keys in both groupings, a function that returns the
    list of their keys)."""
    width = max(1, len(right))
    a, b = left.codes, right.codes
    is_key = (a >= 0) & (b >= 0)
    found = keys.find(a.astype("i8") * width + b, None if is_key.all() else is_key)

    def of_pairs():
        at = found.keys // width, found.keys % width
        return [*(picked(label, at[0]) for label in labels()), *(picked(label, at[1]) for label in own())]

    return found, of_pairs


def picked(labels, at):
    """Returns the keys of the groups with the numbers `at`, as a Result."""
    return Result(labels.values[at], None, labels.kind, labels.texts, labels.decimal)
