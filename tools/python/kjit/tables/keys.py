"""Keys of groups as numbers 0, 1 and so on in the order of the keys. Keys are not sorted: a table of the range of integer keys, or a
hash table, finds the different ones, and only these are sorted."""

import functools

from .columns import Bits

_MOST_RANGE = 1 << 22  # extents of a direct table that are worth it for any number of rows


def whole(column):
    """(values, which elements are there or None) of all chunks of a column, as NumPy arrays."""
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


def ranked(values, there, texts):
    """(codes of texts in the order of the texts, the texts in order)."""
    import numpy

    ordered = sorted(set(texts))
    ranks = {text: i for i, text in enumerate(ordered)}
    table = numpy.array([ranks[text] for text in texts] or [0])
    codes = values.astype("i8") if there is None else numpy.where(there, values, 0).astype("i8")
    return numpy.take(table, codes, mode="clip"), ordered


class Groups:
    """codes: the group of each row, or -1 for a row without a key; keys: the keys of the groups in ascending order."""

    def __init__(self, codes, keys):
        self.codes, self.keys = codes, keys

    def __len__(self):
        return len(self.keys)


def find(values, there):
    """The Groups of keys: numbers, bools or dates. A NaN or NaT is no key, as in pandas."""
    import numpy

    kind = values.dtype.kind
    if kind == "c":
        raise TypeError("complex numbers are no keys of groups")
    if kind in "fmM":
        is_key = values == values
        there = is_key if there is None else there & is_key
        there = None if there.all() else there
    if kind == "f":
        wide = values.astype(numpy.float64) + 0.0  # -0.0 and 0.0 are one key
        found = _of_integers(wide.view(numpy.int64), there)
        keys = found.keys.view(numpy.float64).astype(values.dtype)
    else:
        wide = values.astype(numpy.int64) if kind in "bui" and values.dtype.itemsize < 8 else values.view(numpy.int64)
        found = _of_integers(numpy.ascontiguousarray(wide), there)
        keys = (
            found.keys.astype(values.dtype)
            if kind in "bui" and values.dtype.itemsize < 8
            else found.keys.view(values.dtype)
        )
    return _ordered(found.codes, keys)


def _ordered(codes, keys):
    """Groups in the order of their keys, which the bits of floats and of unsigned numbers do not have."""
    import numpy

    order = numpy.argsort(keys, kind="stable")
    if (order[1:] > order[:-1]).all():
        return Groups(codes, keys)
    ranks = numpy.empty(len(order) + 1, codes.dtype)
    ranks[order] = numpy.arange(len(order))
    ranks[-1] = -1
    return Groups(ranks[codes], keys[order])


def _code_type(count):
    """The type of codes of groups: 32 bits if that is enough, since each pass over the rows reads them."""
    import numpy

    return numpy.int32 if count < 2**31 else numpy.int64


def _of_integers(keys, there):
    import numpy

    if not len(keys) or there is not None and not there.any():
        return Groups(numpy.full(len(keys), -1, numpy.int64), numpy.empty(0, numpy.int64))
    low, high = _bounds(keys, there)
    if high - low < max(_MOST_RANGE, 2 * len(keys)):
        return _by_range(keys, there, low, high - low + 1)
    found = None if low == -(2**63) else _by_hash(keys, there, low - 1)
    return found or _by_sorting(keys, there)


def _bounds(keys, there):
    if there is None:
        return int(keys.min()), int(keys.max())
    return int(keys.min(where=there, initial=2**63 - 1)), int(keys.max(where=there, initial=-(2**63)))


def _by_range(keys, there, low, extent):
    import numpy

    seen = numpy.zeros(extent, bool)
    _kernels().mark(keys, there, low, seen)
    found = numpy.flatnonzero(seen)
    ranks = numpy.empty(extent, _code_type(len(found)))
    ranks[found] = numpy.arange(len(found))
    codes = numpy.empty(len(keys), ranks.dtype)
    _kernels().rank(keys, there, low, ranks, codes)
    return Groups(codes, found + low)


def _by_hash(keys, there, empty):
    """None if a table of a fifth of the rows has no place for all keys. empty: a number that is no key."""
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
    ranks = numpy.zeros(len(table), _code_type(len(places)))
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
