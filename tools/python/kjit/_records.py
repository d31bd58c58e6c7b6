"""NumPy dtypes that are structs in the kernel IR: records, which have fields, and dates, which
count a unit. A struct's name depends only on its dtype, so it is the same in every process."""

import re

from . import dtypes
from .frontend.words import KEYWORDS

_by_name: dict[str, object] = {}
_described: dict[object, tuple] = {}


# Matches the names of these structs in a string with types. A date is `timedelta64_25s` for NumPy's
# timedelta64[25s].
NAMES = re.compile(r"\b(?:record|datetime64|timedelta64)_\w+")
_DATE = re.compile(r"(datetime64|timedelta64)(?:_|\[)(\w+)\]?")


def is_name(text):
    """Returns whether a text is the name of such a struct."""
    return NAMES.fullmatch(text) is not None


def is_date(dtype):
    """Returns whether an object is a NumPy dtype of dates or time differences."""
    return getattr(dtype, "kind", None) in ("M", "m") and hasattr(dtype, "itemsize")


def date_name(dtype):
    """Returns the struct name for a dtype of dates."""
    word, unit = _DATE.fullmatch(dtype.name if "[" in dtype.name else f"{dtype.name}[generic]").groups()
    return f"{word}_{unit}"


def date_of(name, count):
    """Returns the NumPy scalar for a date in a kernel. count: in the date's unit."""
    import numpy

    return numpy.int64(count).view(dtype_of(name))


def is_record(dtype):
    """Returns whether an object is a NumPy dtype with fields."""
    return getattr(dtype, "names", None) is not None and hasattr(dtype, "fields")


def field_name(name):
    """Returns a field's name in the kernel IR. Names that begin with `gap_at_` are reserved for the gaps of
    _layout."""
    if name.isidentifier() and name.isascii() and not name.startswith("gap_at_"):
        return name + "_" if name in KEYWORDS else name
    return "field_" + name.encode().hex()


def _element(dtype):
    """Returns (the kernel IR's name of a field's type, its extents, bytes, alignment). A string is
    an array of its characters. Raises TypeError for an unsupported type."""
    extents = ()
    if dtype.subdtype is not None:
        dtype, extents = dtype.subdtype
    if is_record(dtype):
        return name_of(dtype), extents, dtype.itemsize, _layout(dtype)[3]
    if not dtype.isnative:
        raise TypeError(f"a field has the type {dtype}, whose byte order is not the machine's")
    if dtype.kind in "SU" and dtype.itemsize:
        size = 1 if dtype.kind == "S" else 4
        return f"u{8 * size}", (*extents, dtype.itemsize // size), size, size
    if dtype.kind in "Mm":
        return date_name(dtype), extents, 8, 8
    name = dtypes.name_of(dtype)
    if name is None:
        raise TypeError(f"a field has the type {dtype}, which kernels do not support; fields can be numbers, bools, strings, dates and records")
    return name, extents, dtype.itemsize, dtype.itemsize


def _layout(dtype):
    """Returns (fields as (name, type, extents, offset), whether they are packed, bytes, alignment). If C would give the
    fields other offsets, u8 arrays called `gap_at_N` fill the gaps, and the struct is packed unless all fields are aligned."""
    rows = []
    for name in dtype.names:
        kind, offset = dtype.fields[name][:2]
        rows.append((offset, field_name(name), *_element(kind), kind.itemsize))
    if len({row[1] for row in rows}) < len(rows):
        raise TypeError(f"two fields of {dtype} have the same name in kernels")
    rows.sort(key=lambda row: row[0])
    at, alignment, is_natural = 0, 1, True
    for offset, name, _, _, _, own, size in rows:
        alignment = max(alignment, own)
        is_natural = is_natural and offset == (at + own - 1) // own * own
        if offset < at:
            raise TypeError(f"the fields of {dtype} overlap: {name} begins inside the preceding field")
        at = offset + size
    if is_natural and dtype.itemsize == (at + alignment - 1) // alignment * alignment:
        return tuple((name, kind, extents, offset) for offset, name, kind, extents, *_ in rows), False, dtype.itemsize, alignment
    fields, at = [], 0
    for offset, name, kind, extents, _, _, size in rows:
        if offset > at:
            fields.append((f"gap_at_{at}", "u8", (offset - at,), at))
        fields.append((name, kind, extents, offset))
        at = offset + size
    if dtype.itemsize > at:
        fields.append((f"gap_at_{at}", "u8", (dtype.itemsize - at,), at))
    is_aligned = all(offset % own == 0 for offset, _, _, _, _, own, _ in rows) and dtype.itemsize % alignment == 0
    return tuple(fields), not is_aligned, dtype.itemsize, alignment if is_aligned else 1


def describe(dtype):
    """For the extension: returns (name, fields, whether they are packed, bytes) of the struct, or
    None if the dtype is neither a record nor a date."""
    if is_date(dtype):
        return date_name(dtype), (("count", "i64", (), 0),), False, 8
    if not is_record(dtype):
        return None
    if dtype not in _described:
        fields, is_packed, size, _ = _layout(dtype)
        if not fields:
            raise TypeError(f"{dtype} has no fields, so kernels have no record type for it")
        text = repr((fields, is_packed))
        said = "_".join(field for field, *_ in fields)[:30]  # for messages
        import hashlib  # imported here, because hashlib loads OpenSSL

        name = f"record_{said}_{hashlib.blake2s(text.encode(), digest_size=6).hexdigest()}"
        _described[dtype] = name, fields, is_packed, size
        _by_name.setdefault(name, dtype)
    return _described[dtype]


def name_of(dtype):
    """Returns the struct name for a dtype, or None."""
    described = describe(dtype)
    return described[0] if described else None


def view_plainly(array):
    """Returns a view with the buffer protocol of an array of records or dates. The elements of a view of dates are counts of the
    unit. Returns None for another array."""
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", None) not in ("M", "m", "V") or not hasattr(array, "view"):
        return None
    if dtype.kind == "V":
        return array.view(f"V{dtype.itemsize}") if is_record(dtype) else None
    return array.view("i8") if dtype.isnative else None


def dtype_of(name):
    """Returns the NumPy dtype of a struct with this name."""
    date = _DATE.fullmatch(name)
    if date:
        import numpy

        word, unit = date.groups()
        return numpy.dtype(word if unit == "generic" else f"{word}[{unit}]")
    if name not in _by_name:
        raise TypeError(f"{name} is not a record of this process")
    return _by_name[name]


def known_dtype(name):
    """Returns the NumPy dtype of a record with this name, or None if the process has not seen it."""
    return _by_name.get(name)


def describe_named(name):
    return describe(dtype_of(name))


def declaration(name):
    """Returns the text that declares the struct in a module."""
    _, fields, is_packed, _ = describe_named(name)
    rows = (f"{field}: {kind}" + (f"[{', '.join(map(str, extents))}]" if extents else "") for field, kind, extents, _ in fields)
    return f"struct {name}{' @packed' if is_packed else ''} {{ {'; '.join(rows)} }}"


def inner(name):
    """Returns the names of the records that are fields in a record."""
    return [kind for _, kind, *_ in describe_named(name)[1] if is_name(kind)]


def size_and_alignment(name):
    """Returns the bytes and the alignment of the struct."""
    dtype = dtype_of(name)
    return dtype.itemsize, dtype.itemsize if is_date(dtype) else _layout(dtype)[3]


def scalar(name, raw):
    """Returns the NumPy scalar with these bytes. A record is a numpy.record, whose fields are
    attributes as well, as in Numba's results."""
    import numpy

    dtype = dtype_of(name)
    return numpy.frombuffer(raw, dtype if is_date(dtype) else numpy.dtype((numpy.record, dtype))).copy()[0]
