"""Assigns a number to each group of rows with equal keys: 0, 1 and so on in the order of the keys.
The rows are not sorted. A table indexed by the integer key, or a hash table, finds the distinct
keys, and only these are sorted."""

import functools
import os

from .columns import Bits

_MOST_RANGE = 1 << 22  # maximum range of keys for which a direct table is used for any number of rows
_LEAST_EXTENT = 1 << 12  # the same limit if folds compute a result for each number of the range
_NAT = -(2**63)  # the integer that represents NaT


def whole(column):
    """Returns (the values of all chunks in a column, an array of bools that is True for elements
    that are not missing, or None if no element is missing)."""
    import numpy

    chunks = column.data.chunks
    values = _joined([_unpacked(chunk.values) for chunk in chunks])
    if all(chunk.flags is None for chunk in chunks):
        return values, None
    flags = [numpy.full(c.count, not column.flags_missing) if c.flags is None else _unpacked(c.flags) for c in chunks]
    there = _joined(flags)
    return values, ~there if column.flags_missing else there


def _unpacked(array):
    return array.unpacked() if isinstance(array, Bits) else array


def _joined(arrays):
    import numpy

    return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)


def in_order(texts, is_ordered):
    """Returns the distinct strings in order. is_ordered: whether they are already in order."""
    return list(dict.fromkeys(texts)) if is_ordered else sorted(set(texts))


def ranked(values, there, texts, is_ordered=False):
    """Returns (the values' codes, the sorted strings). The code of a string is its index in the
    sorted strings."""
    import numpy

    ordered = in_order(texts, is_ordered)
    ranks = {text: i for i, text in enumerate(ordered)}
    table = numpy.array([ranks[text] for text in texts] or [0])
    codes = values.astype("i8") if there is None else numpy.where(there, values, 0).astype("i8")
    return numpy.take(table, codes, mode="clip"), ordered


class Groups:
    """The groups of rows. codes: the group of each row, or -1 for a row without a key; keys: the
    keys of the groups in ascending order. A fold over the rows computes `extent` results, one for
    each slot. `slots` is the triple (index, is_key, low) from which the kernels of fold_kernels
    compute a row's slot."""

    def __init__(self, codes, keys):
        self.codes, self.keys = codes, keys

    def __len__(self):
        return len(self.keys)

    @property
    def slots(self):
        return self.codes, None, 0

    @property
    def extent(self):
        return len(self)

    def of_groups(self, results):
        """Converts an array with an element for each slot to one with an element for each group."""
        return results

    def of_slots(self, results):
        """Converts an array with an element for each group to one with an element for each slot."""
        return results


class RangeGroups:
    """Groups of integer keys in a small range. A key's slot is its distance from `low`, the
    smallest key.

    dtype: the type of the keys
    ranks: for each number in the range, its position in the order of the groups, or None if the groups are in ascending order
    rows: for each number in the range, its number of rows, if a fold has counted the rows already
    """

    def __init__(self, index, is_key, low, extent, dtype, ranks=None):
        self.index, self.is_key, self.low, self.extent, self.dtype = index, is_key, low, extent, dtype
        self.ranks, self.rows = ranks, None

    def __len__(self):
        return len(self.found)

    @property
    def slots(self):
        return self.index, self.is_key, self.low

    @functools.cached_property
    def found(self):
        """Returns the slots with rows, in the order of the groups."""
        import numpy

        seen = self.rows
        if seen is None:
            seen = numpy.zeros(self.extent, bool)
            if len(self.index):
                _kernels().mark(self.index, self.is_key, self.low, seen)
        found = numpy.flatnonzero(seen)
        return found if self.ranks is None else found[numpy.argsort(self.ranks[found])]

    @functools.cached_property
    def keys(self):
        numbers = self.found + self.low if self.ranks is None else self.ranks[self.found]
        return numbers.view(self.dtype) if self.dtype.kind in "mM" else numbers.astype(self.dtype)

    @functools.cached_property
    def codes(self):
        import numpy

        return _codes_of_range(self.index, self.is_key, self.low, self.found, numpy.empty(self.extent, code_type(len(self))))

    def _is_whole(self):
        return self.ranks is None and len(self) == self.extent

    def of_groups(self, results):
        return results if self._is_whole() else results[..., self.found]

    def of_slots(self, results):
        import numpy

        if self._is_whole():
            return results
        made = numpy.zeros(self.extent, results.dtype)
        made[self.found] = results
        return made


def find(values, there):
    """Returns the Groups of keys, which are numbers, bools or dates. NaN and NaT are no keys, as in
    pandas. Raises TypeError for complex numbers."""
    import numpy

    kind = values.dtype.kind
    if kind == "c":
        raise TypeError("groupby(): a key column has complex numbers, which cannot be keys")
    if kind == "f":
        is_key = values == values
        there = is_key if there is None else there & is_key
        there = None if there.all() else there
        # adding 0.0 turns -0.0 into 0.0, which is an equal key
        wide = values.astype(numpy.float64) + 0.0
        found = _of_integers(wide.view(numpy.int64), there, numpy.dtype("i8"))
        return _ordered(found.codes, found.keys.view(numpy.float64).astype(values.dtype))
    index = values.view(numpy.int64) if kind in "mM" else values.view("u1") if kind == "b" else values
    index = numpy.ascontiguousarray(index.view("i8") if index.dtype == "u8" else index)
    if kind in "mM" and len(index) and bounds(index, there)[0] == _NAT:
        is_key = values == values
        there = is_key if there is None else there & is_key
    return _of_integers(index, there, values.dtype)


def find_texts(codes, there, texts, is_ordered=False):
    """Returns (Groups, strings) for a column of strings. The keys of the Groups are indices into
    the returned strings, which are sorted. codes: for each row an index into `texts`."""
    import numpy

    ordered = in_order(texts, is_ordered)
    is_small = 0 < len(texts) <= max(_LEAST_EXTENT, len(codes) // 4)
    if len(ordered) < len(texts) or not is_small or codes.dtype == "u8":
        codes, ordered = ranked(codes, there, texts, is_ordered)
        return find(codes, there), ordered
    _check_codes(codes, there, len(texts))
    places = {text: i for i, text in enumerate(ordered)}
    ranks = numpy.array([places[text] for text in texts])
    return RangeGroups(numpy.ascontiguousarray(codes), there, 0, len(texts), ranks.dtype, ranks), ordered


def _check_codes(codes, there, count):
    """Raises ValueError if a code is outside of its dictionary. Arrow's arrays can have such codes,
    because nothing has checked them, and the folds use codes as indices."""
    low, high = bounds(codes, there) if len(codes) else (0, -1)
    if low <= high and (low < 0 or high >= count):
        raise ValueError(f"a column of texts has the index {low if low < 0 else high}, but its dictionary has {count} texts")


def _ordered(codes, keys):
    """Returns the Groups in the order of their keys. The bit patterns of floats and unsigned
    numbers have another order."""
    import numpy

    order = numpy.argsort(keys, kind="stable")
    if (order[1:] > order[:-1]).all():
        return Groups(codes, keys)
    ranks = numpy.empty(len(order) + 1, codes.dtype)
    ranks[order] = numpy.arange(len(order))
    ranks[-1] = -1
    return Groups(ranks[codes], keys[order])


def code_type(count):
    """Returns the type of group codes: 32 bits if they suffice, because each pass over the rows
    reads the codes."""
    import numpy

    return numpy.int32 if count < 2**31 else numpy.int64


def _of_integers(keys, there, dtype):
    """Returns the groups with their integer keys converted to the type dtype."""
    import numpy

    if not len(keys) or there is not None and not there.any():
        return Groups(numpy.full(len(keys), -1, numpy.int64), numpy.empty(0, dtype))
    low, high = bounds(keys, there)
    extent = high - low + 1
    # whether signed integers with the keys' bits have the order of the keys
    is_ordered = dtype != "u8" or low >= 0
    if is_ordered and extent <= max(_LEAST_EXTENT, len(keys) // 4):
        return RangeGroups(keys, there, low, extent, dtype)
    keys = keys.astype(numpy.int64, copy=False)
    if extent <= max(_MOST_RANGE, 2 * len(keys)):
        found = _by_range(keys, there, low, extent)
    else:
        found = None if low == -(2**63) else _by_hash(keys, there, low - 1)
        found = found or _by_sorting(keys, there)
    made = found.keys.astype(dtype) if dtype.itemsize < 8 else found.keys.view(dtype)
    return found if is_ordered and dtype == "i8" else _ordered(found.codes, made)


def bounds(keys, there):
    """Returns the smallest and the largest key. there: an array of bools, True for the rows that
    have a key, or None if all rows have a key."""
    import numpy

    from .fold_kernels import bounds as of_chunks

    limits = numpy.iinfo(numpy.int64)
    chunks = max(1, min(4 * len(os.sched_getaffinity(0)), len(keys) // 4096))
    found = numpy.repeat(numpy.array([[limits.max], [limits.min]]), chunks, axis=1)
    of_chunks(keys, there, found, chunks)
    return int(found[0].min()), int(found[1].max())


def _by_range(keys, there, low, extent):
    import numpy

    seen = numpy.zeros(extent, bool)
    _kernels().mark(keys, there, low, seen)
    found = numpy.flatnonzero(seen)
    return Groups(_codes_of_range(keys, there, low, found, numpy.empty(extent, code_type(len(found)))), found + low)


def _codes_of_range(keys, there, low, found, ranks):
    """Returns the group of each row. found: key - low for each distinct key, in ascending order.
    ranks: an array that receives the group of each key at the index key - low."""
    import numpy

    ranks[found] = numpy.arange(len(found))
    codes = numpy.empty(len(keys), ranks.dtype)
    _kernels().rank(keys, there, low, ranks, codes)
    return codes


def _by_hash(keys, there, empty):
    """Returns the Groups, or None if the keys have too many distinct values for a hash table.
    empty: an integer that is not a key."""
    import numpy

    bits, most = 12, max(12, (max(len(keys), 1) // 4).bit_length())
    while bits <= most:
        table = numpy.full(1 << bits, empty, numpy.int64)
        is_full = numpy.zeros(1, numpy.int64)
        _kernels().insert(keys, there, table, bits, empty, is_full)
        if not is_full[0]:
            break
        bits += 4
    else:
        return None
    places = numpy.flatnonzero(table != empty)
    places = places[numpy.argsort(table[places])]
    ranks = numpy.zeros(len(table), code_type(len(places)))
    ranks[places] = numpy.arange(len(places))
    codes = numpy.empty(len(keys), ranks.dtype)
    _kernels().find(keys, there, table, bits, ranks, codes)
    return Groups(codes, table[places])


def _by_sorting(keys, there):
    import numpy

    codes = numpy.full(len(keys), -1, numpy.int64)
    if there is None:
        found, codes = numpy.unique(keys, return_inverse=True)
    else:
        found, codes[there] = numpy.unique(keys[there], return_inverse=True)
    return Groups(codes.astype(numpy.int64, copy=False), found)


@functools.cache
def _kernels():
    from . import key_kernels

    return key_kernels
