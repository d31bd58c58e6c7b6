"""Arrow columns through pyarrow."""

from .columns import Bits, Chunk, Column, Data, Refused, check_numpy


def columns_of(table):
    """The columns of a Table or a RecordBatch by name."""
    names = table.schema.names
    for name in names:
        if names.count(name) > 1:
            raise TypeError(f"two columns of the table are called {name!r}")
    return {name: _column(table, at, name) for at, name in enumerate(names)}


def _column(table, at, name):
    return Column(name, lambda: read(table.column(at)))


def read(column):
    """A ChunkedArray or an Array as the data of a column."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind) or pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return _of_texts(column)
    if pyarrow.types.is_null(kind):
        return _of_nulls(column)
    arrays = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    arrays = arrays or [pyarrow.array([], kind)]
    dtype = None if pyarrow.types.is_boolean(kind) else _numpy_type(kind)
    has_nulls = any(array.null_count for array in arrays)
    return Data([_chunk(array, dtype) for array in arrays], "arrow", may_be_missing=has_nulls)


_NUMBERS = {"halffloat": "f2", "float": "f4", "double": "f8", "date64[ms]": "M8[ms]"}
_UNITS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def _numpy_type(kind):
    """NumPy's type for the elements of an Arrow type."""
    import numpy
    import pyarrow

    types = pyarrow.types
    if types.is_integer(kind) or str(kind) in _NUMBERS:
        return numpy.dtype(_NUMBERS.get(str(kind), str(kind)))
    if types.is_timestamp(kind) and kind.tz is None:
        return numpy.dtype(f"M8[{kind.unit}]")
    if types.is_timestamp(kind):
        raise Refused(f"{kind}: dates with a time zone are not supported; cast the column to timestamp without a zone")
    if types.is_duration(kind):
        return numpy.dtype(f"m8[{kind.unit}]")
    raise Refused(f"columns of the Arrow type {kind} are not supported")


def _chunk(array, dtype):
    import numpy

    validity, data = array.buffers()
    count, first = len(array), array.offset
    flags = None
    if array.null_count and validity is not None:
        flags = Bits(numpy.frombuffer(validity, numpy.uint8), first, count)
    if data is None:
        return Chunk(numpy.zeros(count, dtype or bool), flags, count)
    if dtype is None:
        return Chunk(Bits(numpy.frombuffer(data, numpy.uint8), first, count), flags, count)
    values = numpy.frombuffer(data, dtype, count, first * dtype.itemsize)
    return Chunk(check_numpy(values), flags, count)


def _of_nulls(column):
    import numpy

    count = len(column)
    return Data([Chunk(numpy.zeros(count, bool), numpy.zeros(count, bool), count)], "arrow")


def _of_texts(column):
    """A dictionary of all chunks, and its codes."""
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries()
        chunks = column.chunks or [pyarrow.array([], column.type)]
    else:
        chunks = [column]
    texts = chunks[0].dictionary
    if not (pyarrow.types.is_string(texts.type) or pyarrow.types.is_large_string(texts.type)):
        raise Refused(f"{column.type}: dictionaries of other values than texts are not supported")
    made = [_chunk(chunk.indices, _numpy_type(column.type.index_type)) for chunk in chunks]
    return Data(made, "arrow", texts=texts.to_pylist())


def array_of(result):
    """A result as a pyarrow Array."""
    import numpy
    import pyarrow

    values, there, count = result.values, result.there, len(result)
    validity = None
    if there is not None and not there.all():
        validity = pyarrow.py_buffer(numpy.packbits(there, bitorder="little"))
    if values.dtype.kind == "c":
        raise TypeError("Arrow has no complex numbers: return the real and the imaginary part as two columns")
    if values.dtype.kind in "mM":
        values = _in_unit_of_arrow(values)
    if values.dtype.kind == "b":
        data, kind = numpy.packbits(values, bitorder="little"), pyarrow.bool_()
    else:
        data, kind = numpy.ascontiguousarray(values), pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, count, [validity, pyarrow.py_buffer(data.view(numpy.uint8))])


def _in_unit_of_arrow(values):
    """Dates in a unit that Arrow's timestamps have."""
    import numpy

    unit, step = numpy.datetime_data(values.dtype)
    if unit in _UNITS and step == 1:
        return values
    return values.astype(
        f"{values.dtype.kind}8[s]" if unit in ("Y", "M", "W", "D", "h", "m") else f"{values.dtype.kind}8[ns]"
    )


def series_of(result, table, name=None):
    """A result as the library's column: chunked for a Table."""
    import pyarrow

    array = array_of(result)
    return pyarrow.chunked_array([array]) if isinstance(table, (pyarrow.Table, pyarrow.ChunkedArray)) else array


def assign(table, made):
    import pyarrow

    names, columns = list(table.schema.names), list(table.columns)
    for name, column in made.items():
        if name in names:
            columns[names.index(name)] = column
        else:
            names, columns = [*names, name], [*columns, column]
    kind = pyarrow.Table if isinstance(table, pyarrow.Table) else pyarrow.RecordBatch
    return kind.from_arrays(columns, names)


def keep(table, mask):
    import pyarrow

    return table.filter(pyarrow.array(mask))


def groups_of(table, key, labels, made):
    """The aggregations as a Table or RecordBatch whose first column has the keys."""
    import pyarrow

    first = pyarrow.array(labels, pyarrow.string()) if isinstance(labels, list) else array_of(labels)
    kind = pyarrow.Table if isinstance(table, pyarrow.Table) else pyarrow.RecordBatch
    return kind.from_arrays([first, *(array_of(result) for result in made.values())], [key, *made])
