"""Tables that are dictionaries of NumPy arrays. Masked arrays have missing elements."""

from .columns import Chunk, Column, Data, Refused, check_numpy


def columns_of(arrays):
    """Returns the columns from a dictionary whose values are one-dimensional arrays with equal
    lengths. Raises TypeError for other objects."""
    import numpy

    for name, array in arrays.items():
        if not isinstance(array, numpy.ndarray) or array.ndim != 1:
            raise TypeError(f"column {name!r} of the table is not a one-dimensional NumPy array")
        if len(array) != length(arrays):
            raise ValueError(
                f"column {name!r} of the table has {len(array)} elements, and another column has {length(arrays)}"
            )
    return {name: _column(name, array) for name, array in arrays.items()}


def _column(name, array):
    return Column(name, lambda: _read(array))


def length(arrays):
    return len(next(iter(arrays.values()), ()))


def _read(array):
    import numpy

    mask = numpy.ma.getmask(array)
    values = numpy.ma.getdata(array)
    flags = None if mask is numpy.ma.nomask else mask
    kind = "numpy" if flags is None else "masked"
    if values.dtype.kind in "US":
        texts, codes = numpy.unique(values, return_inverse=True)
        texts = [text if isinstance(text, str) else text.decode() for text in texts.tolist()]
        return Data([Chunk(codes, flags, len(values))], kind, flags_missing=True, texts=texts)
    if values.dtype.kind == "O":
        raise Refused("Python objects are not supported: convert the column to a type of numbers, dates or texts")
    return Data([Chunk(check_numpy(values), flags, len(values))], kind, flags_missing=True)


def series_of(result, arrays, name=None):
    """Returns a result as an array, which is masked if elements can be missing."""
    import numpy

    if result.texts is not None:
        values = result.texts_with("", "U")
        return values if result.there is None else numpy.ma.array(values, mask=~result.there)
    return result.values if result.there is None else numpy.ma.array(result.values, mask=~result.there)


def assign(arrays, made):
    return {**arrays, **made}


def keep(arrays, mask):
    return {name: array[mask] for name, array in arrays.items()}


def take(arrays, order):
    """Returns the rows with the numbers in `order`, in this order."""
    return {name: array[order] for name, array in arrays.items()}


def column(arrays, name):
    return arrays[name]


def picked(array, picks):
    """Returns the elements in the rows that `picks`, a join_rows.Picks, selects; the row -1 gives a
    masked element."""
    import numpy

    if not picks.has_gaps:
        if not isinstance(array, numpy.ma.MaskedArray):
            return picks.of(array)
        mask = picks.of(numpy.ma.getmaskarray(array))
        return numpy.ma.array(picks.of(numpy.ma.getdata(array)), mask=mask)
    if not len(array):
        return numpy.ma.masked_all(len(picks), array.dtype)
    rows = picks.wide()
    mask = numpy.ma.getmaskarray(array)[rows] | (rows < 0)
    return numpy.ma.array(numpy.ma.getdata(array)[rows], mask=mask)


def stacked(first, second):
    """Returns the elements in one column followed by those of another one, in the common type of
    both."""
    import numpy

    is_masked = any(isinstance(array, numpy.ma.MaskedArray) for array in (first, second))
    return (numpy.ma if is_masked else numpy).concatenate([first, second])


def made_of(arrays, columns):
    """Returns a table of these columns."""
    return columns


def groups_of(arrays, labels, made):
    """Returns the aggregations as a dictionary. The first arrays are the keys."""
    keys = {name: series_of(k, arrays) for name, k in labels.items()}
    return {**keys, **{name: series_of(result, arrays) for name, result in made.items()}}


def only_column(made, name, is_named=True):
    """Returns the table `made` unchanged. Without pandas, the aggregations of one column are a
    table that also has the keys."""
    return made
