"""Computes the rows of rolling windows, for windows that are spans of time, such as "3s", and for
windows of a fixed number of rows with open or closed ends."""

import datetime
import math
import re

import numpy

from . import keys, rolling_kernels
from .columns import aligned, find_column

# Unit names of pandas, including those of its older versions -> nanoseconds.
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "D": 86400 * 10**9, "W": 7 * 86400 * 10**9}
_OLD = {"N": "ns", "U": "us", "L": "ms", "S": "s", "T": "min", "H": "h", "d": "D"}
_PART = re.compile(r"\s*(\d*)\s*([a-zA-Z]+)\s*")


def span_of(window):
    """Returns the nanoseconds of a window that is a span of time: a string such as "3s" or "1h30min",
    a timedelta of Python, NumPy or pandas, or a fixed offset of pandas. Returns None for other objects.
    Raises ValueError for other strings and for spans that are not positive."""
    if isinstance(window, str):
        found = _of_text(window)
    elif hasattr(window, "nanos"):
        found = window.nanos
    elif isinstance(window, datetime.timedelta):
        value = getattr(window, "value", None)  # of pandas
        found = value if value is not None else window // datetime.timedelta(microseconds=1) * 1000
    elif isinstance(window, numpy.timedelta64):
        if numpy.datetime_data(window.dtype)[0] in ("Y", "M", "generic"):
            raise ValueError(f"rolling(): a window of {window!r} has no fixed length")
        found = int(window.astype("m8[ns]").astype("i8"))
    else:
        return None
    if found <= 0:
        raise ValueError(f"rolling(): the window must be a positive span of time, not {window!r}")
    return found


def _of_text(text):
    parts, at = [], 0
    while at < len(text):
        part = _PART.match(text, at)
        unit = part and _OLD.get(part[2], part[2])
        if not part or unit not in _UNITS or (parts and not part[1]):
            raise ValueError(
                f"rolling(): {text!r} is not a window; write a number of rows, or a span of time such as '3s' or '1h30min' "
                f"with the units {', '.join(_UNITS)}"
            )
        parts.append(int(part[1] or 1) * _UNITS[unit])
        at = part.end()
    return sum(parts)


def times_of(table, on, span):
    """Returns the times of the rows as a NumPy array of dates. on: their column's name, or None for the
    index of a pandas table."""
    if span is None:
        raise TypeError(f"rolling(): on={on!r} needs a window that is a span of time, such as '3s'")
    if on is None:
        index = getattr(table._native, "index", None)
        values = getattr(index, "values", None)
        if getattr(getattr(values, "dtype", None), "kind", "") not in ("M", "m"):
            raise TypeError('rolling(): a window that is a span of time needs a time column, rolling("3s", on="time")')
        return aligned(values)
    from .grouping import usable

    column = usable(find_column(table._columns, on))
    values, there = keys.whole(column)
    if column.texts is not None or values.dtype.kind not in "mM":
        raise TypeError(f"rolling(): the time column {on!r} must have dates, not {'texts' if column.texts is not None else values.dtype}")
    if there is not None and not there.all():
        raise ValueError(f"rolling(): the time column {on!r} has missing values")
    return values


def _in_one_unit(times, span):
    """Returns (the times, the span in nanoseconds) as integers of the longest unit that divides the
    times' unit and the span."""
    unit, step = numpy.datetime_data(times.dtype)
    length = _UNITS.get({"m": "min"}.get(unit, unit))
    if length is None:
        raise ValueError(f"rolling(): times with the unit {unit} are not supported; use one of {', '.join(_UNITS)}")
    common = math.gcd(length * step, span)
    whole, factor = times.astype("i8", copy=False), length * step // common
    if len(whole) and max(abs(int(whole.min())), abs(int(whole.max()))) * factor >= 2**63:
        raise OverflowError(f"rolling(): the times in {unit} do not fit into 64 bits in the unit of the window, {common} ns")
    return whole * factor, span // common


def ranges(times, span, is_centered, closed, rows, offsets, on):
    """Returns (the first rows, the ends) of the windows, as positions in the order of the rows. rows,
    offsets: see rolling._Windows. Raises ValueError unless the times of each group are in order."""
    name = "the index" if on is None else f"the time column {on!r}"
    times = times if rows is None else times[rows]
    if numpy.isnat(times).any():
        raise ValueError(f"rolling(): {name} has missing values")
    whole, length = _in_one_unit(times, span)
    starts, stops = numpy.zeros(len(whole), "i8"), numpy.zeros(len(whole), "i8")
    is_sorted = numpy.ones(len(offsets) - 1, bool)
    is_split = is_centered and length % 2 == 1  # pandas then closes both ends
    left, right = closed in ("left", "both") or is_split, closed in ("right", "both") or is_split
    before, after = (length // 2, length // 2) if is_centered else (length, 0)
    if len(whole):
        rolling_kernels.time_bounds(whole, offsets, before, after, is_centered, left, right, starts, stops, is_sorted)
    if not is_sorted.all():
        where = "" if len(offsets) == 2 else " in each group"
        raise ValueError(f"rolling(): {name} must be in order{where}; sort() orders the rows")
    return starts, stops


def of_rows(window, is_centered, closed, offsets):
    """Returns (the first rows, the ends) of windows with a fixed number of rows. As in pandas,
    closed="left" and "both" add the row before the window, and "left" and "neither" leave out its last
    row."""
    lengths = numpy.diff(offsets)
    firsts, ends, rows = numpy.repeat(offsets[:-1], lengths), numpy.repeat(offsets[1:], lengths), numpy.arange(offsets[-1])
    last = rows + ((window - 1) // 2 if is_centered else 0)
    starts = numpy.maximum(firsts, last - window + (0 if closed in ("left", "both") else 1))
    stops = numpy.minimum(ends, last + (0 if closed in ("left", "neither") else 1))
    return numpy.minimum(starts, ends), numpy.maximum(stops, firsts)
