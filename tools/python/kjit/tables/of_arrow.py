"""Tables and columns of pyarrow."""

from . import capsules
from .columns import Chunk, Column, Data, Refused


def columns_of(table, has_flags=False):
    """Returns the columns of a Table or RecordBatch by name. Raises TypeError for two columns with the same name. has_flags: assumes
    that every column may have missing elements, so that batches with and without missing elements use the same compiled code."""
    names = table.schema.names
    for name in names:
        if names.count(name) > 1:
            raise TypeError(f"two columns of the table are called {name!r}")
    return {name: _column(table, at, name, has_flags) for at, name in enumerate(names)}


def _column(table, at, name, has_flags):
    def read_column():
        data = read(table.column(at), name)
        data.may_be_missing = data.may_be_missing or has_flags
        return data

    return Column(name, read_column)


def read(column, name=None):
    """Returns the data of a ChunkedArray or Array. name: the column name, for messages. Raises
    ValueError for an index outside of its dictionary."""
    import pyarrow

    if not isinstance(column, pyarrow.ChunkedArray):
        column = pyarrow.chunked_array([column])
    kind, types = column.type, pyarrow.types
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or kind == _string_view():
        return _of_texts(column, name)
    if types.is_null(kind):
        return _of_nulls(len(column))
    return capsules.read(column)


def _string_view():
    import pyarrow

    return pyarrow.string_view() if hasattr(pyarrow, "string_view") else None


def _of_nulls(count):
    import numpy

    made = Data([Chunk(numpy.zeros(count, bool), numpy.zeros(count, bool), count)], "arrow")
    made.is_null = True
    return made


def _of_texts(column, name):
    """Returns the codes of a column of strings, with a dictionary for all chunks."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        for chunk in column.chunks:
            _check_indices(chunk, name)
    if not pyarrow.types.is_dictionary(column.type):
        column = column.cast(pyarrow.string()) if column.type == _string_view() else column
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    texts = column.chunk(0).dictionary if column.num_chunks else pyarrow.array([], column.type.value_type)
    if not (pyarrow.types.is_string(texts.type) or pyarrow.types.is_large_string(texts.type)):
        raise Refused(f"{column.type}: only dictionaries of texts are supported")
    if texts.null_count:
        raise Refused(f"{column.type}: a dictionary with a missing text is not supported")
    indices = pyarrow.chunked_array([chunk.indices for chunk in column.chunks], column.type.index_type)
    return Data(capsules.read(indices).chunks, "arrow", texts=texts.to_pylist())


def _check_indices(chunk, name):
    """Raises ValueError for an index outside of the dictionary, which pyarrow does not check unless a
    program calls `validate`."""
    import pyarrow.compute

    count = len(chunk.dictionary)
    limits = pyarrow.compute.min_max(chunk.indices).as_py()
    wrong = [index for index in limits.values() if index is not None and not 0 <= index < count]
    if wrong:
        what = "a column of texts" if name is None else f"column {name!r}"
        raise ValueError(f"{what} has the index {wrong[0]}, but its dictionary has {count} elements")


_UNITS = ("s", "ms", "us", "ns")


def array_of(result):
    """Returns a result as a pyarrow Array."""
    import numpy
    import pyarrow

    if result.texts is not None:
        missing = None if result.there is None else ~result.there
        codes = pyarrow.array(result.values, mask=missing)
        return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(result.texts, pyarrow.string())).dictionary_decode()
    values, there, count = result.values, result.there, len(result)
    validity, decimal = None, result.decimal
    if there is not None and not there.all():
        validity = pyarrow.py_buffer(numpy.packbits(there, bitorder="little"))
    if values.dtype.kind == "c":
        raise TypeError("Arrow has no complex numbers: return the real and the imaginary part as two columns")
    if values.dtype.kind in "mM":
        values = _in_unit_of_arrow(values)
    if decimal is not None:
        data, kind = _of_decimals(values, decimal)
    elif values.dtype == "M8[D]":
        data, kind = values.view("i8").astype("i4"), pyarrow.date32()
    elif values.dtype.kind == "b":
        data, kind = numpy.packbits(values, bitorder="little"), pyarrow.bool_()
    else:
        data, kind = numpy.ascontiguousarray(values), pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, count, [validity, pyarrow.py_buffer(data.view(numpy.uint8))])


def _of_decimals(values, decimal):
    """Returns (the integers of decimals in Arrow's layout, the Arrow type)."""
    import numpy
    import pyarrow

    if decimal.bits <= 64:
        kind = pyarrow.decimal64 if decimal.bits == 64 else pyarrow.decimal32
        return values.astype(f"i{decimal.bits // 8}"), kind(decimal.precision, decimal.scale)
    wide = numpy.empty((len(values), decimal.bits // 64), "i8")
    wide[:, 0], wide[:, 1:] = values, (values >> 63)[:, None]
    kind = pyarrow.decimal256 if decimal.bits == 256 else pyarrow.decimal128
    return wide.ravel(), kind(decimal.precision, decimal.scale)


def _in_unit_of_arrow(values):
    """Returns dates in a unit that Arrow's timestamps have."""
    import numpy

    unit, step = numpy.datetime_data(values.dtype)
    if step == 1 and (unit in _UNITS or values.dtype == "M8[D]"):
        return values
    return values.astype(
        f"{values.dtype.kind}8[s]" if unit in ("Y", "M", "W", "D", "h", "m") else f"{values.dtype.kind}8[ns]"
    )


def series_of(result, table, name=None):
    """Returns a result as a column: a ChunkedArray for a Table, otherwise an Array."""
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


def take(table, order):
    """Returns the rows with the numbers in `order`, in this order."""
    import pyarrow

    return table.take(pyarrow.array(order))


def column(table, name):
    return table.column(name)


def picked(column, picks):
    """Returns the elements in the rows that `picks`, a join_rows.Picks, selects; the row -1 gives a
    missing value."""
    import pyarrow

    if picks.numbers is None:
        return column
    return column.take(pyarrow.array(picks.numbers, mask=picks.numbers < 0 if picks.has_gaps else None))


def stacked(first, second):
    """Returns the elements in one column followed by those of another one, in the common type of
    both."""
    import pyarrow

    if first.type != second.type:
        first, second = (
            c.cast(c.type.value_type) if pyarrow.types.is_dictionary(c.type) else c for c in (first, second)
        )
    tables = [pyarrow.table({"stacked": each}) for each in (first, second)]
    return pyarrow.concat_tables(tables, promote_options="permissive").column(0)


def made_of(table, columns):
    """Returns a table of these columns."""
    import pyarrow

    if isinstance(table, pyarrow.Table):
        return pyarrow.Table.from_arrays(list(columns.values()), list(columns))
    arrays = [c.combine_chunks() if isinstance(c, pyarrow.ChunkedArray) else c for c in columns.values()]
    return pyarrow.RecordBatch.from_arrays(arrays, list(columns))


def groups_of(table, labels, made):
    """Returns the aggregations as a Table or RecordBatch. The first columns are the keys."""
    import pyarrow

    keys = [array_of(k) for k in labels.values()]
    kind = pyarrow.Table if isinstance(table, pyarrow.Table) else pyarrow.RecordBatch
    return kind.from_arrays([*keys, *(array_of(result) for result in made.values())], [*labels, *made])


def only_column(made, name, is_named=True):
    """Returns the table `made` unchanged. Without pandas, the aggregations of one column are a
    table that also has the keys."""
    return made
