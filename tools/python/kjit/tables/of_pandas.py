"""Tables of pandas: their columns, and results as pandas objects with the same index."""

from . import of_arrow
from .columns import Chunk, Column, Data, Refused, aligned, check_numpy

_NO_VALUES = {
    "DatetimeTZDtype": "dates with a time zone are not supported: convert the column with .dt.tz_convert(None)",
    "PeriodDtype": "periods are not supported: convert the column with .dt.to_timestamp()",
    "IntervalDtype": "intervals are not supported",
    "SparseDtype": "sparse columns are not supported: convert the column with .sparse.to_dense()",
}


def columns_of(frame, reads_nan=False):
    """Returns the columns of a DataFrame or Series by name. reads_nan: whether a NaN in a NumPy
    column is NA. Raises TypeError for two columns with the same name."""
    if frame.ndim == 1:
        return {frame.name: Column(frame.name, lambda: _read(frame, reads_nan))}
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise TypeError(f"two columns of the table are called {twice!r}")
    return {name: _column(frame, at, name, reads_nan) for at, name in enumerate(frame.columns)}


def _column(frame, at, name, reads_nan):
    return Column(name, lambda: _read(frame.iloc[:, at], reads_nan))


def _read(series, reads_nan):
    import numpy

    dtype, count = series.dtype, len(series)
    kind = type(dtype).__name__
    if kind == "ArrowDtype":
        return of_arrow.read(series.array.__arrow_array__(), series.name)
    if isinstance(dtype, numpy.dtype) and dtype.kind != "O":
        values = check_numpy(series.to_numpy())
        is_nan = {"f": numpy.isnan, "m": numpy.isnat, "M": numpy.isnat}.get(dtype.kind) if reads_nan else None
        flags = is_nan(values) if is_nan else None
        return Data([Chunk(values, flags, count)], "numpy", flags_missing=flags is not None)
    array = series.array
    if hasattr(array, "_mask") and hasattr(array, "_data"):  # pandas' masked arrays
        return Data([Chunk(check_numpy(array._data), array._mask, count)], "masked", flags_missing=True)
    if kind == "CategoricalDtype":
        return _of_categories(array, count)
    if kind == "StringDtype" or isinstance(dtype, numpy.dtype):
        return _of_texts(series, dtype, count)
    raise Refused(_NO_VALUES.get(kind, f"columns of the type {dtype} are not supported"))


def _of_categories(array, count):
    texts = list(array.categories)
    if not all(isinstance(text, str) for text in texts):
        raise Refused(
            "only categories that are texts are supported: convert the column to the type of its categories"
        )
    made = Data([_coded(array.codes, count)], "numpy", texts=texts, is_ordered=True)
    made.has_none = True
    return made


def _coded(codes, count):
    """Returns a chunk of strings. It has flags only if a string is missing, because the result of a
    function can be missing if a column has flags."""
    is_there = codes >= 0
    return Chunk(aligned(codes), None if is_there.all() else is_there, count)


def _of_texts(series, dtype, count):
    import pandas

    if dtype.kind == "O" and pandas.api.types.infer_dtype(series, skipna=True) not in ("string", "empty"):
        raise Refused("Python objects are not supported: convert the column to a type of numbers, dates or texts")
    codes, texts = pandas.factorize(series)
    made = Data([_coded(codes, count)], "numpy", texts=[str(text) for text in texts])
    if dtype.kind == "O" and not hasattr(dtype, "na_value"):  # missing objects are None, NaN or NA
        made.has_none = all(x is not pandas.NA for x in series.to_numpy()[codes < 0])
    else:  # StringDtype has NA, and since pandas 3 also NaN
        made.has_none = dtype.na_value is not pandas.NA
    return made


def series_of(result, frame, name=None):
    """Returns a result as a Series with the frame index."""
    import pandas

    return pandas.Series(array_of(result), index=frame.index, name=name, copy=False)


def array_of(result):
    import numpy
    import pandas

    values, there, kind = result.values, result.there, result.values.dtype.kind
    if result.texts is not None and result.kind != "arrow":
        return pandas.array(result.texts_with(None, object), dtype="str" if _has_str() else object)
    if result.kind == "arrow":
        return pandas.arrays.ArrowExtensionArray(of_arrow.array_of(result))
    if there is None and result.kind == "numpy":
        return values
    missing = numpy.zeros(len(values), bool) if there is None else ~there
    if kind in "mM":
        return _with(values, missing, numpy.array("NaT", values.dtype))
    if kind == "c":
        return _with(values, missing, values.dtype.type(complex("nan+nanj")))
    if values.dtype == numpy.float16:
        values = values.astype(numpy.float32)
    kinds = {"b": pandas.arrays.BooleanArray, "f": pandas.arrays.FloatingArray}
    return kinds.get(kind, pandas.arrays.IntegerArray)(values, missing)


def _has_str():
    """Returns whether pandas has its own type for strings by default, as it does since version 3."""
    import pandas

    return int(pandas.__version__.partition(".")[0]) >= 3


def _with(values, missing, value):
    values[missing] = value
    return values


def assign(frame, made):
    return frame.assign(**made)


def keep(frame, mask):
    """Returns the rows for which the mask is true."""
    return frame[mask]


def take(frame, order):
    """Returns the rows with the numbers in `order`, in this order."""
    return frame.iloc[order]


def column(frame, name):
    return frame[name]


def order_of_keys(left, right):
    """Returns (texts in the order of an outer join or None, whether missing keys come first) for two
    columns of keys. pandas sorts dates by the integers that represent them, and two columns with the
    same categories by the categories' numbers. The integer of a missing key is the smallest. left
    and right: the columns' dtypes of NumPy or pandas."""
    import numpy

    if type(left).__name__ == "CategoricalDtype" and left == right:
        return list(left.categories), True
    return None, all(isinstance(kind, numpy.dtype) and kind.kind in "mM" for kind in (left, right))


def picked(series, picks):
    """Returns the elements in the rows that `picks`, a join_rows.Picks, selects; the row -1 gives
    pandas' missing value for the type."""
    import numpy
    import pandas

    if not isinstance(series.dtype, numpy.dtype):
        return series.array.take(picks.wide(), allow_fill=picks.has_gaps)
    if not picks.has_gaps:
        return picks.of(series.to_numpy())
    return pandas.api.extensions.take(series.to_numpy(), picks.wide(), allow_fill=True)


def stacked(first, second):
    """Returns the elements in one column followed by those of another one, in the common type of
    both."""
    import pandas

    return pandas.concat([first, second], ignore_index=True)


def made_of(frame, columns):
    """Returns a table of these columns."""
    import pandas

    return pandas.DataFrame(columns, copy=False)


def groups_of(frame, labels, made):
    """Returns the aggregations as a DataFrame whose index has the keys. labels: each column's keys,
    by name."""
    import pandas

    arrays = [_labels_of(frame[name].dtype if name in frame else None, keys) for name, keys in labels.items()]
    names = list(labels)
    index = (
        pandas.Index(arrays[0], name=names[0])
        if len(names) == 1
        else pandas.MultiIndex.from_arrays(arrays, names=names)
    )
    return pandas.DataFrame({name: array_of(result) for name, result in made.items()}, index=index)


def _labels_of(dtype, keys):
    """Returns the keys of groups as a pandas array, which is categorical if the column of the keys
    is."""
    import pandas

    made = array_of(keys)
    return pandas.Categorical(made, dtype=dtype) if isinstance(dtype, pandas.CategoricalDtype) else made


def only_column(made, name, is_named=True):
    """Returns the Series of one column of aggregations."""
    return made[name].rename(name if is_named else None)
