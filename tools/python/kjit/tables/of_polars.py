"""Tables of polars: their columns through the Arrow interface, and results as polars objects."""

from . import capsules
from .columns import Column, Data, Refused


def columns_of(frame):
    """Returns the columns of a DataFrame or Series by name."""
    if hasattr(frame, "columns"):
        return {name: _column(frame.get_column(name)) for name in frame.columns}
    return {frame.name: _column(frame)}


def _column(series):
    return Column(series.name, lambda: _read(series))


def _read(series):
    import polars

    if series.dtype == polars.Null:
        made = capsules.read(series.cast(polars.Boolean))
        made.is_null = True
        return made
    if series.dtype == polars.Enum:  # texts of an Enum have the order of its categories
        codes, texts = capsules.read(series.to_physical()), series.dtype.categories.to_list()
        return Data(codes.chunks, "arrow", texts=texts, is_ordered=True)
    if series.dtype in (polars.String, polars.Categorical):
        texts = series.cast(polars.String)
        different = texts.unique().drop_nulls()
        codes = capsules.read(texts.cast(polars.Enum(different)).to_physical())
        return Data(codes.chunks, "arrow", texts=different.to_list())
    if series.dtype == polars.Object:
        raise Refused("Python objects are not supported: convert the column to a type of numbers, dates or texts")
    return capsules.read(series)


def series_of(result, frame, name=None):
    """Returns a result as a Series."""
    import numpy
    import polars

    if result.texts is not None:
        return polars.Series(name or "", result.texts_with(None, object).tolist(), polars.String)
    values = result.values
    if result.decimal is not None:
        return _of_decimals(result, name or "")
    if values.dtype.kind == "c":
        raise TypeError("polars has no complex numbers: return the real and the imaginary part as two columns")
    if values.dtype.kind in "mM":
        unit, step = numpy.datetime_data(values.dtype)
        if step != 1 or unit not in ("D", "ms", "us", "ns") or values.dtype.kind == "m" and unit == "D":
            values = values.astype(
                f"{values.dtype.kind}8[{'ms' if unit in ('Y', 'M', 'W', 'D', 'h', 'm', 's') else 'ns'}]"
            )
    made = polars.Series(name or "", values)
    if result.there is None or result.there.all():
        return made
    both = polars.DataFrame({"value": made, "there": result.there})
    return both.select(polars.when("there").then("value")).to_series().alias(name or "")


def _of_decimals(result, name):
    import decimal

    import polars

    there = [True] * len(result) if result.there is None else result.there.tolist()
    exact = decimal.Context(prec=40)
    values = [exact.scaleb(v, -result.decimal.scale) if t else None for v, t in zip(map(decimal.Decimal, result.values.tolist()), there)]
    return polars.Series(name, values, polars.Decimal(result.decimal.precision, result.decimal.scale))


def assign(frame, made):
    return frame.with_columns([series.alias(name) for name, series in made.items()])


def keep(frame, mask):
    import polars

    return frame.filter(polars.Series(mask))


def take(frame, order):
    """Returns the rows with the numbers in `order`, in this order."""
    return frame[order]


def column(frame, name):
    return frame.get_column(name)


def picked(series, picks):
    """Returns the elements in the rows that `picks`, a join_rows.Picks, selects; the row -1 gives a
    missing value."""
    import polars

    if picks.numbers is None:
        return series
    if not picks.has_gaps:
        return series.gather(polars.Series(picks.numbers))
    numbers = polars.DataFrame({"row": picks.numbers})
    return series.gather(numbers.select(polars.when(polars.col("row") >= 0).then("row")).to_series())


def stacked(first, second):
    """Returns the elements in one column followed by those of another one, in the common type of
    both."""
    import polars

    return polars.concat([first.to_frame(), second.alias(first.name).to_frame()], how="vertical_relaxed").to_series()


def made_of(frame, columns):
    """Returns a table of these columns."""
    import polars

    return polars.DataFrame([series.alias(name) for name, series in columns.items()])


def groups_of(frame, labels, made):
    """Returns the aggregations as a DataFrame. The first columns are the keys."""
    import polars

    keys = [series_of(k, frame, name) for name, k in labels.items()]
    return polars.DataFrame([*keys, *(series_of(result, frame, name) for name, result in made.items())])


def only_column(made, name, is_named=True):
    """Returns the table `made` unchanged. Without pandas, the aggregations of one column are a
    table that also has the keys."""
    return made
