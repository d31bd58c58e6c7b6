"""Aggregates the values of groups, for example to sums, counts and extrema, in one pass over the rows
without sorting."""

import os

import numpy

from .. import _algorithms
from .._functions import Function
from . import fold_kernels, keys, own_folds
from .fold_kernels import COUNT, FIRST, GREATEST, LAST, LEAST, NAN, NAT, PLAIN, SUM, TOTAL
from .running import Result

# maximum number of partial results of a fold in all chunks together; the number of rows if that is larger
_MOST_PARTIAL = 1 << 22
# number of results of a fold that fit into a cache; up to this number each core gets several chunks
_MOST_EXTENT = 1 << 14
_NO_FLAGS = numpy.zeros(1, bool)

class Typed(Function):
    """A function in which numbers have Numba's types."""

    is_typed = True


def _chunks(rows, extent):
    """Returns the number of chunks into which the rows are divided. extent: the number of results
    of a fold in each chunk."""
    cores = len(os.sched_getaffinity(0))
    most = 4 * cores if extent <= _MOST_EXTENT else cores
    return max(1, min(most, rows // 4096, max(_MOST_PARTIAL, rows) // max(1, extent)))


class Folds:
    """The folds of all columns in one call of agg(). One pass over the rows computes all of
    them."""

    def __init__(self, groups):
        self.groups, self.columns, self.is_done = groups, [], False

    def add(self, values):
        self.columns.append(values)

    def compute(self):
        if not self.is_done:
            self.is_done = True
            self._compute()

    def _compute(self):
        groups, columns = self.groups, self.columns
        shape = _chunks(len(groups.slots[0]), groups.extent), groups.extent
        kinds = tuple(tuple(kind for kind in values.wanted if kind != COUNT) for values in columns)
        has_flags, skips = tuple(values.there is not None for values in columns), tuple(values.skip for values in columns)
        flags = tuple(_NO_FLAGS if values.there is None else values.there for values in columns)
        can_miss = [is_flagged or skip != PLAIN for is_flagged, skip in zip(has_flags, skips)]
        rows = numpy.zeros(shape, "i8")
        missing = tuple(numpy.zeros(shape if can else (1, 1), "i8") for can in can_miss)
        partial = tuple(tuple(values.start(kind, shape) for kind in own) for values, own in zip(columns, kinds))
        plain = tuple(values.plain for values in columns)
        if len(groups.slots[0]) and groups.extent:
            fold_kernels.fold(*groups.slots, plain, flags, has_flags, skips, kinds, rows, missing, partial, shape[0])
        if isinstance(groups, keys.RangeGroups) and groups.rows is None:
            groups.rows = rows.sum(axis=0)
        joins = {SUM: numpy.add, TOTAL: numpy.add, GREATEST: numpy.maximum, LAST: numpy.maximum}
        for values, own, gone, found, can in zip(columns, kinds, missing, partial, can_miss):
            values.counts = rows - gone if can else rows
            folds = {kind: joins.get(kind, numpy.minimum).reduce(each, axis=0) for kind, each in zip(own, found)}
            folds[COUNT] = values.counts.sum(axis=0)
            values.folds = {kind: groups.of_groups(each) for kind, each in folds.items()}


class Values:
    """The values of one column by group.

    wanted: the folds and the functions of groups that the aggregations need folds: the call's folds
    to which the values belong counts: the number of values in each chunk and slot
    """

    def __init__(self, groups, values, there, kind, wanted, texts=None, decimal=None, folds=None):
        self.groups, self.dtype, self.kind, self.texts, self.decimal = groups, values.dtype, kind, texts, decimal
        self.values, self.there = values, there
        self.skip = NAT if values.dtype.kind in "mM" else NAN if kind == "numpy" and values.dtype.kind in "fc" else PLAIN
        self.plain = (
            values.view("u1")
            if values.dtype.kind == "b"
            else values.view("i8")
            if values.dtype.kind in "mM"
            else values
        )
        wanted = self._folds_of({*wanted})
        self.wanted = tuple(sorted({COUNT, *map(self._fold_of, wanted)}))
        self._pass = folds or Folds(groups)
        self._pass.add(self)

    def _folds_of(self, wanted):
        """Returns the folds that aggregations and functions need."""
        functions = {each for each in wanted if callable(each)}
        wanted -= functions
        for function in functions:
            wanted.update(own_folds.wanted(function, self.dtype))
            if self._may_be_nan():
                # a NaN in the sum shows that a group has a NaN, which is then the group's minimum and maximum
                wanted.add(SUM)
        if self.decimal is not None and SUM in wanted:
            wanted.add(TOTAL)  # the sum of floats detects an overflow of the integer sum
        return wanted

    def _may_be_nan(self):
        return self.skip == PLAIN and self.dtype.kind == "f"

    def can_fold(self, function):
        """Returns the folds from which a function of a group can be computed, or () if it needs the
        elements."""
        kinds = own_folds.wanted(function, self.dtype)
        return () if kinds and self._may_be_nan() and numpy.isnan(self.fold(SUM)).any() else kinds

    def _fold_of(self, kind):
        """Returns the fold to compute for `kind`: SUM instead of TOTAL if the sum cannot overflow,
        which only sums of 64-bit integers can."""
        is_wide = self.dtype.kind in "iu" and self.dtype.itemsize == 8
        return SUM if kind == TOTAL and not is_wide else kind

    def start(self, kind, shape):
        """Returns the array of partial results for a fold, filled with its initial value."""
        plain = self.plain.dtype
        if kind == SUM:
            return numpy.zeros(shape, {"f": "f8", "c": "c16"}.get(plain.kind, "u8" if plain == "u8" else "i8"))
        if kind == TOTAL:
            return numpy.zeros(shape)
        if kind in (FIRST, LAST):
            return numpy.full(shape, len(self.values) if kind == FIRST else 0, "i8")
        if plain.kind == "c":
            raise TypeError("the minimum and the maximum of complex numbers are not defined")
        limits = (numpy.inf, -numpy.inf) if plain.kind == "f" else (numpy.iinfo(plain).max, numpy.iinfo(plain).min)
        return numpy.full(shape, limits[kind == GREATEST], plain)

    def fold(self, kind):
        """Returns the result of a fold for each group."""
        self._pass.compute()
        return self.folds[self._fold_of(kind)]

    def result(self, values, least=1):
        """Returns a result for each group with at least `least` values. Other groups have a missing
        result, which is NaN in NumPy columns."""
        there = self.fold(COUNT) >= least
        if self.kind == "numpy" and values.dtype.kind in "fc":
            return Result(numpy.where(there, values, values.dtype.type(numpy.nan)), None, self.kind)
        return Result(values, None if there.all() else there, self.kind, self.texts, self.decimal)

    def side_by_side(self):
        """Returns (the number of values of each group, the offsets of the groups and the end, the
        values group by group)."""
        counts = self.fold(COUNT)
        offsets = numpy.concatenate([numpy.zeros(1, "i8"), numpy.cumsum(counts)])
        places = self.groups.of_slots(offsets[:-1]) + numpy.cumsum(self.counts, axis=0) - self.counts
        by_group = numpy.empty(offsets[-1], self.plain.dtype)
        if len(by_group):
            fold_kernels.gather(*self.groups.slots, self.plain, self.there, self.skip, places, by_group, len(places))
        return counts, offsets, by_group.view(self.dtype)

    def squares(self, means):
        """Returns the sum of squared deviations from the mean for each group."""
        found = numpy.zeros(self.counts.shape)
        if len(self.values) and len(self.groups):
            at_slots = self.groups.of_slots(means)
            fold_kernels.deviations(*self.groups.slots, self.plain, self.there, self.skip, at_slots, found, len(found))
        return self.groups.of_groups(found.sum(axis=0))

    def extremum(self, kind):
        found = self.fold(kind)
        return self.result(found.view(self.dtype) if self.dtype.kind in "bmM" else found)

    def check_numbers(self, word):
        if self.dtype.kind in "mM":
            raise TypeError(f"{word} of dates is not supported; use min, max, first, last, count or nunique")


def _sum(values):
    values.check_numbers("the sum")
    found = values.fold(SUM)
    if values.decimal is not None:
        if (numpy.abs(values.fold(TOTAL)) > 9e18).any():
            raise OverflowError("the sum of decimals does not fit into 64 bits")
        return Result(found, None, values.kind, None, values.decimal._replace(precision=38, bits=128))
    kind = values.dtype if values.dtype.kind in "fc" else "u8" if values.dtype.kind == "u" else "i8"
    return Result(found.astype(kind, copy=False), None, values.kind)


def _means(values):
    with numpy.errstate(all="ignore"):
        return values.fold(TOTAL) / values.fold(COUNT)


def _mean(values):
    values.check_numbers("the mean")
    return values.result(_means(values).astype(values.dtype if values.dtype.kind in "fc" else "f8", copy=False))


def _var(values):
    """Computes the sample variance from the deviations from the means, in a second pass."""
    values.check_numbers("the variance")
    if values.dtype.kind == "c":
        raise TypeError("the variance of complex numbers is not supported")
    squares = values.squares(_means(values))
    with numpy.errstate(all="ignore"):
        found = squares / (values.fold(COUNT) - 1)
    return values.result(found.astype(values.dtype if values.dtype.kind == "f" else "f8", copy=False), 2)


def _std(values):
    found = _var(values)
    with numpy.errstate(all="ignore"):
        return Result(numpy.sqrt(found.values), found.there, found.kind)


def _count(values):
    return Result(values.fold(COUNT), None, values.kind)


def _at_row(values, kind):
    rows = numpy.minimum(values.fold(kind), max(0, len(values.values) - 1))
    return values.result(values.values[rows] if len(values.values) else numpy.zeros(len(rows), values.dtype))


def _nunique(values):
    """Computes the number of distinct values of each group."""
    found = keys.find(values.values, values.there)
    group, width = values.groups.codes, max(1, len(found))
    is_pair = (group >= 0) & (found.codes >= 0)
    pairs = group.astype("i8") * width + found.codes
    if len(values.groups) * width <= max(1 << 24, 2 * len(pairs)):
        seen = numpy.zeros(len(values.groups) * width, bool)
        keys._kernels().mark(pairs, is_pair, 0, seen)
        counts = seen.reshape(len(values.groups), width).sum(axis=1)
    else:
        counts = numpy.bincount(numpy.unique(pairs[is_pair]) // width, minlength=len(values.groups))
    return Result(counts.astype("i8"), None, values.kind if values.kind == "arrow" else "numpy")


def _median(values):
    """Computes the middle value of each group's sorted values, or the mean of the middle two."""
    return _quantile(values, 0.5)


def _quantile(values, q):
    """Computes the q-quantile of each group's values with linear interpolation, as in pandas and
    NumPy."""
    values.check_numbers("the quantile")
    if values.dtype.kind == "c":
        raise TypeError("the quantile of complex numbers is not supported")
    counts, offsets, by_group = values.side_by_side()
    wide = by_group.astype(values.dtype if values.dtype.kind == "f" else "f8")
    found = numpy.zeros(len(counts), wide.dtype)
    if len(wide):
        from .._orders import sort_segments

        ordered = numpy.asarray(sort_segments(wide, offsets, device="cpu"))
        position = q * numpy.maximum(counts - 1, 0)
        below = numpy.floor(position).astype("i8")
        first, most = numpy.minimum(offsets[:-1], len(wide) - 1), len(wide) - 1
        low, high = ordered[first + below], ordered[numpy.minimum(first + numpy.ceil(position).astype("i8"), most)]
        part = position - below
        found = numpy.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part)).astype(wide.dtype)
    return values.result(found)


# Name of an aggregation -> (the folds that it needs in addition to the count, the function that
# computes the result).
NAMED = {
    "sum": ((SUM,), _sum),
    "mean": ((TOTAL,), _mean),
    "var": ((TOTAL,), _var),
    "std": ((TOTAL,), _std),
    "median": ((), _median),
    "min": ((LEAST,), lambda values: values.extremum(LEAST)),
    "max": ((GREATEST,), lambda values: values.extremum(GREATEST)),
    "count": ((), _count),
    "first": ((FIRST,), lambda values: _at_row(values, FIRST)),
    "last": ((LAST,), lambda values: _at_row(values, LAST)),
    "nunique": ((), _nunique),
}


_OF_TEXTS = ("min", "max", "first", "last", "count", "nunique")
_OF_DECIMALS = (*_OF_TEXTS, "sum")  # for other aggregations decimals are converted to floats


def is_exact(how):
    """Returns whether an aggregation of decimals uses their integers instead of floats."""
    return how in _OF_DECIMALS


def of(name, column, values, how):
    """Returns the result of one aggregation. name: its name in agg(), for messages. Raises
    TypeError for aggregations that strings lack."""
    if values.texts is not None and how not in _OF_TEXTS:
        raise TypeError(f"agg({name}=...): {column!r} has texts, whose only aggregations are {', '.join(_OF_TEXTS)}")
    if isinstance(how, tuple):
        return _quantile(values, how[1])
    return NAMED[how][1](values) if isinstance(how, str) else own(values, how)


def _same(x):
    return x


def _of_group(function):
    """Returns a compiled function of (j, present, values, offsets) that calls `function` with the
    values of the group present[j]."""

    def of_group(j, present, values, offsets):
        g = present[j]
        return function(values[offsets[g] : offsets[g + 1]])

    return Typed(of_group, numba=True)


def own(values, function):
    """Calls a Python function with the array of values of each group, and returns the results."""
    kinds = values.can_fold(function)
    if kinds:
        present = numpy.flatnonzero(values.fold(COUNT))
        folds = [_means(values) if kind == TOTAL else values.fold(kind) for kind in kinds]
        if values.dtype.kind == "u":  # NumPy's sum of unsigned numbers is unsigned
            folds = [each.view("u8") if kind == SUM else each for kind, each in zip(kinds, folds)]
        return _of_present(values, present, _algorithms.map(function.__kjit_folds__[1], *(each[present] for each in folds), device="cpu"))
    known = function.__dict__
    if "__kjit_group__" not in known:
        known["__kjit_group__"] = _of_group(function)
    counts, offsets, by_group = values.side_by_side()
    present = numpy.flatnonzero(counts)
    operand = _algorithms.computed(known["__kjit_group__"], len(present), present, by_group, offsets)
    return _of_present(values, present, _algorithms.map(_same, operand, device="cpu"))


def _of_present(values, present, found):
    """Returns a Result for all groups. found: the results of the groups in `present`, which have
    values."""
    made = numpy.zeros(len(values.groups), found.dtype)
    made[present] = found
    return values.result(made)
