"""Columns of tables as operands of compiled functions. Their memory belongs to the table's library.
"""

import functools
from typing import NamedTuple

from .._algorithms import computed


class Bits:
    """Bools stored as single bits, as in Arrow: `count` bits, beginning with bit `first` of the
    bytes."""

    def __init__(self, data, first, count):
        self.data, self.first, self.count = data, first, count

    def operand(self):
        """Returns an operand that computes the bools from the bits."""
        return computed(_bit, self.count, self.data, self.first)

    def unpacked(self):
        """Returns the bits as a NumPy array of bools."""
        import numpy

        low, shift = self.first // 8, self.first % 8
        bits = numpy.unpackbits(self.data[low : low + (shift + self.count + 7) // 8], bitorder="little")
        return bits[shift : shift + self.count].view(bool)

    def part(self, start, end):
        return Bits(self.data, self.first + start, end - start)


def _bit(i, bits, first):
    at = i + first
    return (bits[at >> 3] >> (at & 7)) & 1 != 0


class Chunk:
    """A part of a column. values: a NumPy array or Bits; flags: a NumPy array or Bits with a flag
    for each element, or None if no element is missing."""

    def __init__(self, values, flags, count):
        self.values, self.flags, self.count = values, flags, count

    def part(self, start, end):
        if start == 0 and end == self.count:
            return self
        return Chunk(_part(self.values, start, end), _part(self.flags, start, end), end - start)


def _part(array, start, end):
    if array is None:
        return None
    return array.part(start, end) if isinstance(array, Bits) else array[start:end]


# decimals with at most this number of digits can be converted to floats and stay different from each other
MOST_DIGITS = 15


class Decimal(NamedTuple):
    """A decimal type whose elements are stored as integers: the number of digits, how many follow
    the decimal point, and Arrow's number of bits."""

    precision: int
    scale: int
    bits: int = 128

    def check_digits(self, name):
        """Raises TypeError for decimals with more digits than the floats that functions receive.
        name: the column, for the message."""
        if self.precision > MOST_DIGITS:
            limit = f"functions receive decimals as floats, which hold {MOST_DIGITS} digits"
            raise TypeError(f"column {name!r} has decimals with {self.precision} digits: {limit}")

    def floats(self, values):
        """Returns the integers as the nearest floats."""
        return values / 10.0**self.scale


class Data:
    """A column's data.

    texts: a sequence of the strings that the codes stand for, if this is a column of strings

    kind: "numpy", "masked" or "arrow". It determines how a function's results for this column are stored.

    is_ordered: whether the strings compare in the dictionary's order, as ordered categories do

    flags_missing: whether a true flag means a missing element

    decimal: the Decimal, if this is a column of decimals

    is_null: whether the column has Arrow's type null; all elements are then missing

    has_none: whether the table's library represents a missing string by None or NaN, which equals no string
    """

    is_null = has_none = False

    def __init__(self, chunks, kind, *, may_be_missing=None, flags_missing=False, texts=None, decimal=None, is_ordered=False):
        self.is_ordered = is_ordered
        self.chunks, self.kind, self.flags_missing, self.texts, self.decimal = chunks, kind, flags_missing, texts, decimal
        has_flags = any(chunk.flags is not None for chunk in chunks)
        self.may_be_missing = has_flags if may_be_missing is None else may_be_missing
        dtype = getattr(chunks[0].values, "dtype", None)
        # if the values are dates, functions receive them as counts in this dtype's unit
        self.date = dtype if getattr(dtype, "kind", "") in ("m", "M") else None


class Refused(Exception):
    """Raised for a column whose type compiled functions do not support; the message names the type."""


class Column:
    """A column, which is read at its first use."""

    def __init__(self, name, read):
        self.name, self._read = name, read

    @functools.cached_property
    def _outcome(self):
        try:
            return self._read(), None
        except Refused as problem:
            return None, str(problem)

    @property
    def refusal(self):
        """The reason why functions cannot use the column, or None."""
        return self._outcome[1]

    @property
    def data(self):
        return self._outcome[0]

    @property
    def texts(self):
        return self.data.texts if self.data else None

    @property
    def is_ordered(self):
        return self.data.is_ordered

    @property
    def date(self):
        return self.data.date

    @property
    def decimal(self):
        return self.data.decimal if self.data else None

    @property
    def may_be_missing(self):
        return self.data.may_be_missing

    @property
    def flags_missing(self):
        return self.data.flags_missing

    @property
    def layout(self):
        """The properties of the column on which the code of a row function depends."""
        if self.data is None:
            return None
        kinds = self.data.is_null, self.data.has_none
        return self.may_be_missing, self.flags_missing, self.texts is not None, self.data.date, self.decimal, kinds


def find_column(columns, name):
    """Returns the column with a name. Raises KeyError, which lists all columns, for an unknown
    name, and TypeError for an object that cannot be a name."""
    try:
        return columns[name]
    except TypeError:
        raise TypeError(f"the name of a column must be a string or another hashable object, not {name!r}") from None
    except KeyError:
        known = ", ".join(map(repr, columns)) or "no columns"
        hint = "; groups by a function: assign() makes a column of its results" if callable(name) else ""
        raise KeyError(f"the table has no column {name!r}: it has {known}{hint}") from None


def of_result(name, result):
    """Returns the column for a Result."""
    chunks = [Chunk(result.values, result.there, len(result))]
    return Column(name, lambda: Data(chunks, result.kind, texts=result.texts, decimal=result.decimal))


def check_numpy(values):
    """Returns a NumPy array if functions can use its type. An array whose elements are not aligned is
    copied; another process may have sent such an array. Raises Refused for other types."""
    import numpy

    dtype = values.dtype
    if dtype.kind not in "biufcmM" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise Refused(f"elements of the type {dtype} are not supported; use numbers, bools, dates or texts")
    if not dtype.isnative:
        raise Refused(f"elements of the type {dtype} are not in the byte order of the machine")
    if dtype.kind in "mM" and numpy.datetime_data(dtype)[0] == "generic":
        raise Refused(f"dates of the type {dtype} have no unit")
    return aligned(values)


def aligned(values):
    return values if values.flags.aligned else values.copy()
