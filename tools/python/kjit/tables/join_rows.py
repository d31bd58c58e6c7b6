"""Finds the pairs of rows for a join from the key values. The keys of the right table are numbered
0, 1 and so on by a direct table or a hash table, in which the left rows look up their numbers."""

import functools
import os

import numpy

from .. import _orders
from . import join_kernels, key_kernels, keys
from .aggregating import Values

_LEAST_TAKEN = 1 << 14  # minimum number of elements for which a kernel call is faster
_MOST_RANGE = 1 << 16  # maximum range of keys for which a direct table is used for any number of rows
# maximum elements in a table that stays in a cache; with such a table each column looks up its rows again
_MOST_REPEATED = 1 << 16


class Side:
    """The keys of one table.

    integers: an integer for each row. Rows have the same integer exactly if their keys are equal.

    can_match: an array of bools, True for rows that can have a match, or None if all rows can have one

    missing: an array of bools, True for rows whose key is missing, or None if no key is missing

    ordered: values that sort in the same order as the keys

    missing_first: whether an outer join puts rows with missing keys first
    """

    missing_first = False

    def __init__(self, integers, can_match, missing, ordered):
        self.integers, self.missing, self.ordered = numpy.ascontiguousarray(integers), missing, ordered
        if missing is not None:
            can_match = ~missing if can_match is None else can_match & ~missing
        self.can_match = can_match

    def __len__(self):
        return len(self.integers)


def _missing(values, there):
    """Returns an array of bools that is True for missing keys, or None if no key is missing. NaN
    and NaT are missing, as in pandas."""
    missing = None if there is None else ~there
    if values.dtype.kind in "fmM":
        is_nan = values != values
        missing = is_nan if missing is None else missing | is_nan
    return missing if missing is not None and missing.any() else None


def sides(left, right, what, ordered_texts=None, missing_first=False):
    """Returns the two sides of one key. Raises TypeError for keys that cannot be equal.

    left, right: the columns, each as (values, an array of bools for the values that are not missing or None, texts or None,
    Decimal or None)
    what: the names of the keys, for messages
    ordered_texts: the texts of both columns if the texts have another order than strings
    """
    made = _sides(left, right, what, ordered_texts)
    made[0].missing_first = missing_first
    return made


def _sides(left, right, what, ordered_texts):
    (a, a_there, a_texts, _), (b, b_there, b_texts, _) = left, right
    kinds = [_kind(values, *rest) for values, _, *rest in (left, right)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"merge(): {what} cannot be equal: the left column has {kinds[0]}, but the right column has {kinds[1]}")
    gone = _missing(a, a_there), _missing(b, b_there)
    if a_texts is not None:
        texts = ordered_texts or sorted({*a_texts, *b_texts})
        return [Side(x, None, m, x) for x, m in zip((_ranks(a, a_texts, texts), _ranks(b, b_texts, texts)), gone)]
    if kinds[0] in ("dates", "time differences"):
        common = _common_unit(a.dtype, b.dtype, what)
        whole = [_in_unit(x, m, common, what).view("i8") for x, m in zip((a, b), gone)]
        return [Side(x, None, m, x) for x, m in zip(whole, gone)]
    return _of_numbers(a, b, gone)


def _kind(values, texts, decimal):
    if texts is not None:
        return "texts"
    if decimal is not None:
        return f"decimals with {decimal.scale} digits after the point"
    kind = {"b": "bools", "M": "dates", "m": "time differences", "c": "complex numbers"}.get(values.dtype.kind, "numbers")
    if kind == "complex numbers":
        raise TypeError("merge(): complex numbers cannot be keys")
    return kind


def _ranks(codes, texts, ordered):
    """Converts codes of strings to indices into the sorted strings of both tables. Codes of missing
    strings are arbitrary."""
    places = {text: i for i, text in enumerate(ordered)}
    return numpy.take(numpy.array([places[text] for text in texts] or [0]), codes.astype("i8"), mode="clip")


def _common_unit(a, b, what):
    try:
        return numpy.promote_types(a, b)
    except TypeError:
        raise TypeError(f"merge(): {what} have the units {a} and {b}, which have no common unit") from None


def _in_unit(values, missing, dtype, what):
    made = values.astype(dtype)
    back = made.astype(values.dtype) != values
    if (back if missing is None else back & ~missing).any():
        raise OverflowError(f"merge(): {what} have dates that the common unit {dtype} cannot hold")
    return made


def _of_numbers(a, b, gone):
    """Returns the sides of two columns of numbers. Numbers of different types are equal if their
    values are."""
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        # adding 0.0 turns -0.0 into 0.0, which is an equal key
        wide = [x.astype("f8") + 0.0 for x in (a, b)]
        return [Side(x.view("i8"), None, m, x) for x, m in zip(wide, gone)]
    if "f" in (a.dtype.kind, b.dtype.kind):
        is_unsigned = any(x.dtype == numpy.uint64 for x in (a, b))
        return [_whole(x, is_unsigned, m) for x, m in zip((a, b), gone)]
    is_mixed = (a.dtype == numpy.uint64) != (b.dtype == numpy.uint64)
    made = []
    for x, missing in zip((a, b), gone):
        wide = x if x.dtype == numpy.uint64 else x.astype("i8", copy=False)
        # If only one side is unsigned, a negative number, or a number of 2**63 or more, has no
        # equal on the other side.
        can_match = wide.view("i8") >= 0 if is_mixed else None
        made.append(Side(wide.view("i8"), can_match, missing, wide.astype("f8") if is_mixed else wide))
    return made


def _whole(values, is_unsigned, missing):
    """Returns numbers as 64-bit integers, for a comparison with numbers of another kind. Fractions
    and numbers out of range have no equal."""
    kind = "u8" if is_unsigned else "i8"
    if values.dtype.kind != "f":
        can_match = values >= 0 if is_unsigned and values.dtype.kind == "i" else None
        return Side(values.astype(kind).view("i8"), can_match, missing, values.astype("f8"))
    low, high = (0.0, 2.0**64) if is_unsigned else (-(2.0**63), 2.0**63)
    wide = values.astype("f8")
    is_whole = (wide == numpy.floor(wide)) & (wide >= low) & (wide < high)
    return Side(numpy.where(is_whole, wide, 0).astype(kind).view("i8"), is_whole, missing, wide)


def _codes(left, right):
    """Returns (the codes of the left rows, the codes of the right rows, the number of codes). left
    and right: (integers, can_match)."""
    (a, _), (b, b_can) = left, right
    if not len(b) or b_can is not None and not b_can.any():
        return numpy.full(len(a), -1), numpy.full(len(b), -1), 0
    low, high = keys.bounds(b, b_can)
    if _is_direct(low, high, a, b):
        seen = numpy.zeros(high - low + 1, bool)
        key_kernels.mark(b, b_can, low, seen)
        found = numpy.flatnonzero(seen)
        ranks = numpy.full(len(seen), -1, keys.code_type(len(found)))
        ranks[found] = numpy.arange(len(found))
        return *(_filled(join_kernels.look_up, x, can, low, ranks) for x, can in (left, right)), len(found)
    return _hashed(left, right, _unused(b, low, high))


def _is_direct(low, high, a, b):
    """Returns whether a direct table of the keys from low to high is used for two columns."""
    return high - low < max(_MOST_RANGE, 2 * (len(a) + len(b)))


def _filled(kernel, integers, can_match, *rest):
    codes = numpy.empty(len(integers), rest[-1].dtype)
    if len(codes):
        kernel(integers, can_match, *rest, codes)
    return codes


def _unused(integers, low, high):
    """Returns an integer that is not a key."""
    if low > -(2**63):
        return low - 1
    if high < 2**63 - 1:
        return high + 1
    found = numpy.unique(integers)
    return int(found[numpy.flatnonzero(numpy.diff(found.view("u8")) != 1)[0]]) + 1


def _hashed(left, right, empty):
    (a, a_can), (b, b_can) = left, right
    bits, most = 12, max(12, len(b).bit_length() + 1)
    while True:
        table, is_full = numpy.full(1 << bits, empty), numpy.zeros(1, "i8")
        key_kernels.insert(b, b_can, table, bits, empty, is_full)
        if not is_full[0] or bits == most:
            break
        bits = min(most, bits + 4)
    if is_full[0]:  # the table is full, because many keys have the same hash value
        found = numpy.unique(b if b_can is None else b[b_can])
        return _searched(a, a_can, found), _searched(b, b_can, found), len(found)
    is_used = table != empty
    count = int(is_used.sum())
    ranks = (numpy.cumsum(is_used) - 1).astype(keys.code_type(count))
    return *(_filled(join_kernels.probe, x, can, table, bits, empty, ranks) for x, can in (left, right)), count


def _searched(integers, can_match, found):
    at = numpy.minimum(numpy.searchsorted(found, integers), len(found) - 1)
    is_found = found[at] == integers
    return numpy.where(is_found if can_match is None else is_found & can_match, at, -1)


def _paired_codes(pairs, nulls_equal):
    """Returns the codes of the left and right rows for all keys together, and the number of codes.
    pairs: each key's sides."""
    whole = None
    for left, right in pairs:
        a, b, count = _codes((left.integers, left.can_match), (right.integers, right.can_match))
        if nulls_equal:
            for codes, side in ((a, left), (b, right)):
                if side.missing is not None:
                    codes[side.missing] = count
            count += 1
        if whole is not None:
            both = [numpy.where((x >= 0) & (y >= 0), x.astype("i8") * count + y, -1) for x, y in ((whole[0], a), (whole[1], b))]
            a, b, count = _codes(*((x, x >= 0) for x in both))
        whole = a, b, count
    return whole


def _chunks(rows):
    return max(1, min(4 * len(os.sched_getaffinity(0)), rows // 4096))


def _begins(counts):
    """Returns the index of the first pair of each chunk, and the number of pairs."""
    return numpy.concatenate([[0], numpy.cumsum(counts)])


class Lookup:
    """The right row of each left row, if no two right rows have the same key and the keys are
    integers in a small range. The kernels find a row with the key in the table `row_of`. They do so
    once for each column if the table is small, so no array of the rows is written."""

    def __init__(self, left, low, row_of):
        self.arguments = left.integers, left.can_match, low, row_of
        self.is_small = len(row_of) <= _MOST_REPEATED
        self.chunks, self.count = _chunks(len(left)), len(left)
        self.matched = numpy.zeros(self.chunks, "i8")
        if self.is_small:
            join_kernels.count_found(*self.arguments, self.matched, self.chunks)
        else:
            self.numbers = numpy.empty(self.count, row_of.dtype)
            join_kernels.find_rows(*self.arguments, self.numbers, self.matched, self.chunks)

    @functools.cached_property
    def numbers(self):
        return _filled(join_kernels.look_up, *self.arguments)

    def rows(self, keeps_all):
        """Returns (Picks of left rows, Picks of right rows), see Matches.rows."""
        if not self.is_small:
            return _of_found(self.numbers, self.matched, keeps_all)
        begins = _begins(self.matched)
        has_gaps = bool(begins[-1] < self.count)
        if keeps_all or not has_gaps:
            return Picks(None, self.count), FoundPicks(self, has_gaps)
        left, right = (numpy.empty(begins[-1], self.arguments[-1].dtype) for _ in range(2))
        join_kernels.expand_found(*self.arguments, begins, left, right, self.chunks)
        return Picks(left, len(left), False), Picks(right, len(right), False)


def _of_found(found, matched, keeps_all):
    """Returns the Picks of left and right rows. found: the right row of each left row, or -1;
    matched: the number of rows found in each chunk."""
    begins = _begins(matched)
    has_gaps = bool(begins[-1] < len(found))
    if keeps_all or not has_gaps:
        return Picks(None, len(found)), Picks(found, len(found), has_gaps)
    left, right = (numpy.empty(begins[-1], found.dtype) for _ in range(2))
    join_kernels.compact(found, begins, left, right, len(matched))
    return Picks(left, len(left), False), Picks(right, len(right), False)


def _lookup(left, right):
    """Returns a Lookup, or None if the keys do not allow one."""
    b, b_can = right.integers, right.can_match
    if not len(left) or not len(b) or b_can is not None and not b_can.any():
        return None
    low, high = keys.bounds(b, b_can)
    if not _is_direct(low, high, left, b) or b_can is None and high - low + 1 < len(b):
        return None
    row_of, is_repeated = numpy.full(high - low + 1, -1, keys.code_type(max(len(left), len(b)))), numpy.zeros(1, bool)
    join_kernels.place(b, b_can, low, row_of)
    join_kernels.find_repeated(b, b_can, low, row_of, is_repeated)
    return None if is_repeated[0] else Lookup(left, low, row_of)


class Picks:
    """The rows in a table that a result column takes. numbers: the rows, with -1 for a missing row,
    or None for all rows in order; count: the number of rows."""

    def __init__(self, numbers, count, has_gaps=None):
        self.numbers, self.count = numbers, count
        if has_gaps is None:
            has_gaps = numbers is not None and bool(len(numbers)) and bool(numbers.min() < 0)
        self.has_gaps = has_gaps

    def __len__(self):
        return self.count

    def wide(self):
        """Returns the rows in NumPy's index type."""
        return numpy.arange(self.count) if self.numbers is None else self.numbers.astype(numpy.intp, copy=False)

    def of(self, array):
        """Returns the elements of a NumPy array. No row may be -1."""
        if array.dtype.kind not in "biufcmM" or array.dtype.itemsize > 16 or not array.dtype.isnative or self.count < _LEAST_TAKEN:
            return array[self.wide()]
        made = numpy.empty(self.count, array.dtype)
        self._take(*(x.view("i8") if x.dtype.kind in "mM" else x for x in (array, made)))
        return made

    def _take(self, values, out):
        join_kernels.take(values, self.numbers, out)


class FoundPicks(Picks):
    """The right rows that a Lookup finds for all left rows."""

    def __init__(self, lookup, has_gaps):
        self.lookup, self.count, self.has_gaps = lookup, lookup.count, has_gaps

    @property
    def numbers(self):
        return self.lookup.numbers

    def _take(self, values, out):
        if self.lookup.is_small:
            # no can_match is needed, because each left row has a match
            integers, _, low, row_of = self.lookup.arguments
            join_kernels.take_found(values, integers, low, row_of, out)
        else:
            super()._take(values, out)


class Matches:
    """The matching rows in two tables."""

    def __init__(self, pairs, nulls_equal):
        self.pairs, self.nulls_equal = pairs, nulls_equal

    @functools.cached_property
    def codes(self):
        """The left rows' codes, the right rows' codes, and the number of codes."""
        return _paired_codes(self.pairs, self.nulls_equal)

    def swapped(self):
        other = Matches([(b, a) for a, b in self.pairs], self.nulls_equal)
        if "codes" in self.__dict__:
            left, right, count = self.codes
            other.codes = right, left, count
        return other

    def has_match(self):
        """Returns for each left row whether a right row matches."""
        left, right, count = self.codes
        is_there = numpy.zeros(count + 1, bool)
        is_there[right] = True
        is_there[-1] = False  # the element for the code -1
        return is_there[left]

    def rows(self, keeps_all):
        """Returns (Picks of left rows, Picks of right rows) for all pairs, ordered by left row.
        keeps_all: a left row without a match forms a pair with the right row -1."""
        lookup = self._lookup()
        return self._paired(keeps_all) if lookup is None else lookup.rows(keeps_all)

    def _lookup(self):
        (left, right), *others = self.pairs
        is_null_equal = self.nulls_equal and not (left.missing is None and right.missing is None)
        return None if others or is_null_equal else _lookup(left, right)

    def _paired(self, keeps_all):
        left_codes, right_codes, count = self.codes
        groups = Values(keys.Groups(right_codes, range(count)), numpy.arange(len(right_codes)), None, "numpy", ())
        counts, offsets, by_code = groups.side_by_side()
        chunks = _chunks(len(left_codes))
        kind = keys.code_type(max(len(left_codes), len(right_codes)))
        if not len(left_codes):
            return Picks(numpy.empty(0, kind), 0), Picks(numpy.empty(0, kind), 0)
        if not len(counts) or counts.max() <= 1:
            row_of = numpy.full(max(1, len(counts)), -1, kind)
            row_of[: len(counts)][counts > 0] = by_code
            found, matched = numpy.empty(len(left_codes), kind), numpy.zeros(chunks, "i8")
            join_kernels.pair(left_codes, row_of, found, matched, chunks)
            return _of_found(found, matched, keeps_all)
        totals = numpy.zeros(chunks, "i8")
        join_kernels.count_pairs(left_codes, counts, int(keeps_all), totals, chunks)
        begins = _begins(totals)
        left, right = numpy.empty(begins[-1], kind), numpy.empty(begins[-1], kind)
        join_kernels.expand(left_codes, counts, offsets, by_code, begins, int(keeps_all), left, right, chunks)
        return Picks(left, len(left), False), Picks(right, len(right))

    def all_rows(self):
        """Returns the pairs of all rows in both tables, in the order of the keys."""
        left, right = (each.wide() for each in self.rows(True))
        alone = numpy.flatnonzero(~self.swapped().has_match())
        left, right = numpy.append(left, numpy.full(len(alone), -1)), numpy.append(right, alone)
        order = numpy.arange(len(left))
        for a, b in reversed(self.pairs):
            order = order[_order(_chosen(a.ordered, b.ordered, left, right)[order], _gone(a, b, left, right)[order], a.missing_first)]
        return Picks(left[order], len(order)), Picks(right[order], len(order))


def _chosen(of_left, of_right, left, right):
    """Returns the values of the left rows, or of the right rows if there is no left row."""
    return numpy.concatenate([of_left, of_right])[numpy.where(left >= 0, left, right + len(of_left))]


def _gone(a, b, left, right):
    flags = [numpy.zeros(len(side), bool) if side.missing is None else side.missing for side in (a, b)]
    return _chosen(*flags, left, right)


def _order(values, is_missing, missing_first):
    there, missing = numpy.flatnonzero(~is_missing), numpy.flatnonzero(is_missing)
    if len(there):
        there = there[numpy.asarray(_orders.argsort(values[there], device="cpu"))]
    return numpy.concatenate([missing, there] if missing_first else [there, missing])
