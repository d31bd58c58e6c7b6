"""Columns of tables as operands of compiled functions, in memory that belongs to the library that they come from."""

import functools
from typing import NamedTuple

from .._algorithms import computed


class Bits:
    """Booleans of which each is one bit, as in Arrow: `count` bits from number `first` of the bytes on."""

    def __init__(self, data, first, count):
        self.data, self.first, self.count = data, first, count

    def operand(self):
        """The bits as an operand that computes its elements."""
        return computed(_bit, self.count, self.data, self.first)

    def unpacked(self):
        """The bits as a NumPy array of bools."""
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
    """A part of a column. values: a NumPy array or Bits; flags: the same for whether elements are there, or None if all are."""

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


MOST_DIGITS = 15  # of decimals, so that their floats differ if they do


class Decimal(NamedTuple):
    """The type of decimals whose elements are integers: the number of digits, the digits after the point, and Arrow's number of bits."""

    precision: int
    scale: int
    bits: int = 128

    def check_digits(self, name):
        """Refuses decimals that functions would get as floats with fewer digits. name: the column, for the message."""
        if self.precision > MOST_DIGITS:
            limit = f"functions get decimals as floats, which hold {MOST_DIGITS}"
            raise TypeError(f"column {name!r} has decimals with {self.precision} digits: {limit}")

    def floats(self, values):
        """The integers as the nearest floats."""
        return values / 10.0**self.scale


class Data:
    """What is read of a column. texts: of a column of texts its dictionary, a sequence; kind: "numpy", "masked" or "arrow", which
    decides how results of a function of the column are stored; is_ordered: whether texts have an order of their own, that of the
    dictionary, as categories have; flags_missing: whether a flag says that the element is missing;
    decimal: the Decimal of a column of decimals."""

    def __init__(self, chunks, kind, *, may_be_missing=None, flags_missing=False, texts=None, decimal=None, is_ordered=False):
        self.is_ordered = is_ordered
        self.chunks, self.kind, self.flags_missing, self.texts, self.decimal = chunks, kind, flags_missing, texts, decimal
        has_flags = any(chunk.flags is not None for chunk in chunks)
        self.may_be_missing = has_flags if may_be_missing is None else may_be_missing
        dtype = getattr(chunks[0].values, "dtype", None)
        self.date = dtype if getattr(dtype, "kind", "") in ("m", "M") else None  # functions get counts of its unit


class Refused(Exception):
    """A column of a type that compiled functions do not have. The text says which one."""


class Column:
    """A column, which is read when a function uses it."""

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
        """Why no function can use the column, or None."""
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
        """What the code of a row function depends on of the column."""
        if self.data is None:
            return None
        return self.may_be_missing, self.flags_missing, self.texts is not None, self.data.date, self.decimal


def find_column(columns, name):
    """The column with a name. Raises KeyError with the names of all columns for an unknown one, TypeError for what is no name."""
    try:
        return columns[name]
    except TypeError:
        raise TypeError(f"a column has a name, which {name!r} is not") from None
    except KeyError:
        known = ", ".join(map(repr, columns)) or "no columns"
        hint = "; groups by a function: assign() makes a column of its results" if callable(name) else ""
        raise KeyError(f"the table has no column {name!r}: it has {known}{hint}") from None


def of_result(name, result):
    """The column that a Result is."""
    chunks = [Chunk(result.values, result.there, len(result))]
    return Column(name, lambda: Data(chunks, result.kind, texts=result.texts, decimal=result.decimal))


def check_numpy(values):
    """A NumPy array of a type that functions can use."""
    import numpy

    dtype = values.dtype
    if dtype.kind not in "biufcmM" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise Refused(f"elements of the type {dtype} are not supported: numbers, bools, dates and texts are")
    if not dtype.isnative:
        raise Refused(f"elements of the type {dtype} are not in the byte order of the machine")
    if dtype.kind in "mM" and numpy.datetime_data(dtype)[0] == "generic":
        raise Refused(f"dates of the type {dtype} have no unit")
    return values
