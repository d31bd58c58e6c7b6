"""Aggregations of the values of groups: sums, counts, extrema and others in one pass over the rows, without sorting."""

import os
import typing

import numpy

from .. import _algorithms
from .._functions import Function, jit
from ..dtypes import SCALARS, const
from ..frontend.words import ALL
from . import keys
from .running import Result

f64, i64 = SCALARS["f64"], SCALARS["i64"]
grid_range, static = ALL["grid_range"], ALL["static"]
# As _fold compares them. TOTAL is the sum as a float, which does not overflow.
SUM, COUNT, LEAST, GREATEST, FIRST, TOTAL, LAST = range(7)
_MOST_PARTIAL = 1 << 22  # partial results of all threads together


@jit(device="cpu")
@typing.no_type_check
def _fold(codes, values, there, kinds: const, partial, chunks):
    """Each thread folds a chunk of the rows into arrays of its own."""
    for c in grid_range(chunks):
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = codes[i]
            is_there = True if there is None else there[i]
            if k >= 0 and is_there:
                for j in static(range(len(partial))):
                    if kinds[j] == 0:
                        partial[j][c, k] += values[i]
                    elif kinds[j] == 1:
                        partial[j][c, k] += 1
                    elif kinds[j] == 2:
                        partial[j][c, k] = min(partial[j][c, k], values[i])
                    elif kinds[j] == 3:
                        partial[j][c, k] = max(partial[j][c, k], values[i])
                    elif kinds[j] == 4:
                        partial[j][c, k] = min(partial[j][c, k], i)
                    elif kinds[j] == 5:
                        partial[j][c, k] += f64(values[i])
                    else:
                        partial[j][c, k] = max(partial[j][c, k], i)


@jit(device="cpu")
def _deviations(codes, values, there, means, partial, chunks):
    for c in grid_range(chunks):
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = codes[i]
            is_there = True if there is None else there[i]
            if k >= 0 and is_there:
                d = f64(values[i]) - means[k]
                partial[c, k] += d * d


@jit(device="cpu")
def _gather(codes, values, there, places, by_group, chunks):
    """Copies the values group by group. places[c, k]: where the values of group k in chunk c begin."""
    for c in grid_range(chunks):
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = codes[i]
            is_there = True if there is None else there[i]
            if k >= 0 and is_there:
                by_group[places[c, k]] = values[i]
                places[c, k] += 1


class Typed(Function):
    """A function that numbers have Numba's types in."""

    is_typed = True


class Values:
    """The values of one column by group. kinds: the folds that aggregations ask for, in one pass."""

    def __init__(self, groups, values, there, kind, wanted, texts=None, decimal=None):
        self.groups, self.dtype, self.kind, self.texts, self.decimal = groups, values.dtype, kind, texts, decimal
        if values.dtype.kind in "mM" or kind == "numpy" and values.dtype.kind in "fc":
            is_value = values == values
            there = is_value if there is None else there & is_value
            there = None if there.all() else there
        self.values, self.there = values, there
        self.plain = (
            values.view("u1")
            if values.dtype.kind == "b"
            else values.view("i8")
            if values.dtype.kind in "mM"
            else values
        )
        if decimal is not None and SUM in wanted:
            wanted = {*wanted, TOTAL}  # says whether the sum overflows
        self.wanted, self._folds = tuple(sorted({COUNT, *map(self._fold_of, wanted)})), None

    def _fold_of(self, kind):
        """SUM in place of TOTAL, unless the integers have 64 bits."""
        is_wide = self.dtype.kind in "iu" and self.dtype.itemsize == 8
        return SUM if kind == TOTAL and not is_wide else kind

    def _chunks(self):
        rows, most = len(self.values), 4 * len(os.sched_getaffinity(0))
        return max(1, min(most, rows // 4096, _MOST_PARTIAL // max(1, len(self.groups))))

    def _start(self, kind, shape):
        """The array of partial results for a fold, with the value from which it starts."""
        plain = self.plain.dtype
        if kind == SUM:
            return numpy.zeros(shape, {"f": "f8", "c": "c16"}.get(plain.kind, "u8" if plain == "u8" else "i8"))
        if kind == TOTAL:
            return numpy.zeros(shape)
        if kind in (COUNT, FIRST, LAST):
            return numpy.full(shape, len(self.values) if kind == FIRST else 0, "i8")
        if plain.kind == "c":
            raise TypeError("complex numbers have no minimum and no maximum")
        limits = (numpy.inf, -numpy.inf) if plain.kind == "f" else (numpy.iinfo(plain).max, numpy.iinfo(plain).min)
        return numpy.full(shape, limits[kind == GREATEST], plain)

    def fold(self, kind):
        """The result of a fold for each group."""
        if self._folds is None:
            chunks = self._chunks()
            partial = [self._start(each, (chunks, len(self.groups))) for each in self.wanted]
            if len(self.values) and len(self.groups):
                _fold(self.groups.codes, self.plain, self.there, self.wanted, tuple(partial), chunks)
            self.counts = partial[self.wanted.index(COUNT)]  # of each chunk
            joins = {SUM: numpy.add, TOTAL: numpy.add, COUNT: numpy.add, GREATEST: numpy.maximum, LAST: numpy.maximum}
            self._folds = {k: joins.get(k, numpy.minimum).reduce(p, axis=0) for k, p in zip(self.wanted, partial)}
        return self._folds[self._fold_of(kind)]

    def result(self, values, least=1):
        """A result for each group that has `least` values; it is missing in the others, which is NaN in NumPy's columns."""
        there = self.fold(COUNT) >= least
        if self.kind == "numpy" and values.dtype.kind in "fc":
            return Result(numpy.where(there, values, values.dtype.type(numpy.nan)), None, self.kind)
        return Result(values, None if there.all() else there, self.kind, self.texts, self.decimal)

    def side_by_side(self):
        """(the number of values of each group, where each group begins, and the end, the values group by group)."""
        counts = self.fold(COUNT)
        offsets = numpy.concatenate([numpy.zeros(1, "i8"), numpy.cumsum(counts)])
        places = offsets[:-1] + numpy.cumsum(self.counts, axis=0) - self.counts
        by_group = numpy.empty(offsets[-1], self.dtype)
        if len(by_group):
            _gather(self.groups.codes, self.values, self.there, places, by_group, len(places))
        return counts, offsets, by_group

    def extremum(self, kind):
        found = self.fold(kind)
        return self.result(found.view(self.dtype) if self.dtype.kind in "bmM" else found)

    def check_numbers(self, word):
        if self.dtype.kind in "mM":
            raise TypeError(f"{word} of dates is not supported: min, max, first, last, count and nunique are")


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
    """The sample variance, by the deviations from the means in a second pass."""
    values.check_numbers("the variance")
    if values.dtype.kind == "c":
        raise TypeError("the variance of complex numbers is not supported")
    chunks = values._chunks()
    partial = numpy.zeros((chunks, len(values.groups)))
    if len(values.values) and len(values.groups):
        _deviations(values.groups.codes, values.plain, values.there, _means(values), partial, chunks)
    with numpy.errstate(all="ignore"):
        found = partial.sum(axis=0) / (values.fold(COUNT) - 1)
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
    """The number of different values of each group."""
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
    """The middle value of the sorted values of a group, or the mean of the middle two."""
    return _quantile(values, 0.5)


def _quantile(values, q):
    """The value below which the fraction q of the values of a group lies, interpolated linearly, as in pandas and NumPy."""
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


# Name of an aggregation: the folds that it needs in addition to the count, and the function that makes the result.
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
_OF_DECIMALS = (*_OF_TEXTS, "sum")  # others are of the floats


def is_exact(how):
    """Whether an aggregation of decimals takes their integers and not floats."""
    return how in _OF_DECIMALS


def of(name, column, values, how):
    """The result of one aggregation, which agg() calls `name`."""
    if values.texts is not None and how not in _OF_TEXTS:
        raise TypeError(f"agg({name}=...): {column!r} has texts, which have {', '.join(_OF_TEXTS)} only")
    if isinstance(how, tuple):
        return _quantile(values, how[1])
    return NAMED[how][1](values) if isinstance(how, str) else own(values, how)


def _same(x):
    return x


def _of_group(function):
    """A function of the number of a group, of the values by groups, and of where each group begins."""

    def of_group(j, present, values, offsets):
        g = present[j]
        return function(values[offsets[g] : offsets[g + 1]])

    return Typed(of_group, numba=True)


def own(values, function):
    """The results of a function of Python that takes the array of a group's values."""
    known = function.__dict__
    if "__kjit_group__" not in known:
        known["__kjit_group__"] = _of_group(function)
    counts, offsets, by_group = values.side_by_side()
    present = numpy.flatnonzero(counts)
    operand = _algorithms.computed(known["__kjit_group__"], len(present), present, by_group, offsets)
    found = _algorithms.map(_same, operand, device="cpu")
    made = numpy.zeros(len(counts), found.dtype)
    made[present] = found
    return values.result(made)
