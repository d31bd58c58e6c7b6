"""kjit.eval: formulas in the syntax of numexpr over columns with nulls, see docs/howto/formulas.md."""

import functools
import re
import sys

from . import _formula_forms as formula_forms
from . import _kjit, _state, dtypes

_NULLABLE, _BITS, _TEXT = 1, 2, 512
# The formats of the Arrow C data interface, and their types in the kernel IR.
_ARROW = {"b": "bool", "c": "i8", "C": "u8", "s": "i16", "S": "u16", "i": "i32", "I": "u32", "l": "i64", "L": "u64"}
_ARROW |= {"e": "f16", "f": "f32", "g": "f64"}
_EXPECTED = "a formula takes bools, integers, floats, dates, times and strings"
# Flags for timestamps and durations, and for their units in NumPy.
_TIMESTAMP, _DURATION = 4, 8
_UNITS = {"D": 16, "s": 32, "ms": 64, "us": 128, "ns": 256}
_ARROW_DATES = {"tdD": ("i32", _TIMESTAMP | 16), "tdm": ("i64", _TIMESTAMP | 64)}
_ARROW_UNITS = {"s": 32, "m": 64, "u": 128, "n": 256}
_NAME = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|`([^`\n]*)`|(?<![\w.@])(@?[A-Za-z_]\w*)(?!\w*\s*\()")


def eval(formula, table=None, /, *, out=None, device=None, **columns):
    """Computes a formula such as `"a * sin(b) + where(c > 0, c, 0)"` for each row of its columns.
    The syntax is numexpr's and pandas'.

    table: a pandas or polars data frame, a pyarrow table or record batch, or a dictionary of
    columns. Further columns are passed as keyword arguments. Any other name in the formula refers
    to the caller's variable of that name, if it is an array, as in numexpr. A column is a NumPy
    array, a number, a masked array, a pandas Series, or an object with the Arrow PyCapsule
    interface; all columns have the same shape. As in pandas, `@x` is the caller's variable x: a
    column, a number or a string, and after `in` a list. out: a NumPy array for the result. device:
    the device that computes; the default is the CPU.

    As in numexpr, a whole formula can be a reduction: `sum(...)`, `prod(...)`, `min(...)` or
    `max(...)`, with an axis as the second argument. As in pandas, `"d = a + b"` returns the table with
    a new column d.

    The result is a NumPy array if all columns are NumPy arrays or numbers. A pandas data frame or
    Series gives a Series. Arrow columns give a pyarrow array, or a masked array if pyarrow is not
    installed. A null in a row gives a null. Raises kjit.Error with the position in the formula,
    TypeError for unsupported column types, and ValueError for different shapes.
    """
    if not isinstance(formula, str):
        raise TypeError(f"kjit.eval takes a formula as a string, not {type(formula).__name__}")
    return _evaluated(formula, table, out, device, columns, sys._getframe(1))


def _evaluated(formula, table, out, device, columns, frame):
    name, inner = formula_forms.assigned(formula)
    if name is not None and table is not None:
        if out is not None:
            raise TypeError(f"kjit.eval: the formula assigns to the column `{name}`, so it has no `out`")
        return formula_forms.with_column(table, name, _evaluated(inner, table, None, device, columns, frame))
    how, axis, inner = formula_forms.reduced(formula)
    if how is not None:
        values = _evaluated(inner, table, None, device, columns, frame)
        return formula_forms.reduce(values, how, axis, out)
    formula = formula_forms.with_constants(formula, frame)
    found = _find_columns(formula, table, columns, frame)
    rows = _common_shape(found)
    _share_dictionary([column for column in found.values() if column.flags & _TEXT])
    kinds = tuple((name, column.type, column.flags, column.texts) for name, column in found.items())
    made = _make(_state.context(), formula, kinds)
    return _Run(made, list(found.values()), rows, device or _state.device() or "cpu").result(out, table)


@functools.lru_cache(maxsize=256)
def _make(context, formula, kinds):
    made = _kjit.make_formula(context, formula, kinds)
    return made, *made.info()


# ---- columns ----


class _Column:
    """The rows in a column as a list of chunks: (address of the values, address of the validity
    bitmap or 0, offset, number of rows). keeper: the object that keeps the memory alive."""

    index = None  # the index of a pandas Series
    texts = ()  # the dictionary of a column of strings

    def __init__(self, type, chunks, shape, kind, keeper, flags=0):
        self.type, self.chunks, self.shape, self.kind, self.keeper, self.flags = (
            type,
            chunks,
            shape,
            kind,
            keeper,
            flags,
        )


def _find_columns(formula, table, columns, frame):
    """Returns the columns that a formula names, in the order of their first use."""
    found = {}
    for match in _NAME.finditer(formula):
        name = match[1] if match[1] is not None else match[2]
        if name is None or name in found:  # None means a string literal
            continue
        value = _find(name, table, columns, frame)
        if value is not None:
            found[name] = _column_of(name, value)
            found[name].index = value.index if _is_of_pandas(value) else None
    _check_indices(found)
    return found


def _find(name, table, columns, frame):
    if name[0] == "@":
        return formula_forms.variable(name[1:], frame)
    if name in columns:
        if columns[name] is None:
            raise TypeError(f"column `{name}` is None; {_EXPECTED}")
        return columns[name]
    if table is not None:
        names = getattr(table, "column_names", None) or (
            table if isinstance(table, dict) else getattr(table, "columns", ())
        )
        return table[name] if name in names else None
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    return value if _is_column(value) else None


def _check_indices(found):
    """Raises ValueError for pandas columns with different indices. pandas would align their rows,
    but a formula takes rows in their order."""
    first = None
    for name, column in found.items():
        if first is None:
            first = column.index
        elif column.index is not None and column.index is not first and not column.index.equals(first):
            raise ValueError(
                f"column `{name}` has another index than the preceding columns: use reindex or reset_index"
            )


def _is_column(value):
    return hasattr(value, "dtype") or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _column_of(name, value):
    import numpy

    if _is_of_pandas(value):
        if type(value.dtype).__name__ in ("CategoricalDtype", "StringDtype") or value.dtype.kind == "O":
            return _of_texts(name, value, "pandas")
        if isinstance(value.dtype, numpy.dtype):
            return _of_numpy(name, value.to_numpy(), "pandas")
        element = getattr(value.dtype, "numpy_dtype", None)
        if getattr(element, "kind", "O") == "O":
            raise TypeError(f"column `{name}` has the type {value.dtype}; {_EXPECTED}")
        mask = value.isna().to_numpy()
        return _of_numpy(name, numpy.ma.MaskedArray(value.to_numpy(element, na_value=0), mask), "pandas")
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return _of_arrow(name, value)
    return _of_numpy(name, value, "masked" if isinstance(value, numpy.ma.MaskedArray) else "numpy")


def _of_texts(name, value, kind):
    """Returns a column of strings as indices into a dictionary of its strings. kjit's tables make
    the dictionary."""
    import numpy

    from . import tables
    from .tables import keys

    table = tables.table({None: value} if isinstance(value, numpy.ndarray) else value)
    column = next(iter(table._columns.values()))
    if column.refusal or column.texts is None:
        raise TypeError(f"column `{name}` has the type {getattr(value, 'dtype', getattr(value, 'type', None))}; {_EXPECTED}")
    codes, there = keys.whole(column)
    made = _of_numpy(name, codes if there is None else numpy.ma.MaskedArray(codes, ~there), kind)
    made.flags, made.texts = made.flags | _TEXT, tuple(column.texts)
    made.codes, made.there = codes, there
    return made


def _share_dictionary(columns):
    """Gives several columns of strings a common dictionary in ascending order, so that comparing indices compares strings. A single
    column keeps its own dictionary."""
    import numpy

    if len(columns) < 2:
        return
    texts = tuple(sorted({text for column in columns for text in column.texts}, key=str.encode))
    places = {text: i for i, text in enumerate(texts)}
    for column in columns:
        codes = numpy.take(numpy.array([places[text] for text in column.texts] or [0]), column.codes, mode="clip")
        made = _of_numpy("", codes if column.there is None else numpy.ma.MaskedArray(codes, ~column.there), column.kind)
        column.type, column.chunks, column.keeper, column.texts = made.type, made.chunks, made.keeper, texts


def _is_of_pandas(value):
    return str(type(value).__module__).partition(".")[0] == "pandas"


def _of_numpy(name, value, kind):
    import numpy

    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**64:
            raise OverflowError(f"column `{name}` is an integer that does not fit into 64 bits")
        value = numpy.asarray(value, numpy.int64 if value < 2**63 else numpy.uint64)
    array = numpy.asanyarray(value)
    mask = numpy.ma.getmaskarray(array) if isinstance(array, numpy.ma.MaskedArray) else None
    if array.dtype.kind in "UT" and array.ndim == 1:
        return _of_texts(name, value, kind)
    data = numpy.ascontiguousarray(array)
    data = data if data.flags.aligned else data.copy()
    dates = 0
    if data.dtype.kind in "mM":
        dates = _date_flags(name, data.dtype)
        nowhere = numpy.isnat(data)  # NaT is a null
        if nowhere.any():
            mask = nowhere if mask is None else mask | nowhere
        data = data.view(numpy.int64)
    text = dtypes.name_of(data.dtype) if data.dtype.isnative else None
    if text is None or text[0] == "c":
        raise TypeError(f"column `{name}` has the type {data.dtype}; {_EXPECTED}")
    bitmap = None if mask is None else numpy.packbits(~mask.reshape(-1), bitorder="little")
    chunk = data.ctypes.data, bitmap.ctypes.data if mask is not None and data.size else 0, 0, data.size
    flags = dates | (0 if mask is None else _NULLABLE)
    return _Column(text, [chunk], numpy.shape(value), kind, (data, bitmap), flags)


def _date_flags(name, dtype):
    """Returns the flags for a datetime64 or timedelta64 dtype. Raises TypeError for an unsupported
    unit."""
    import numpy

    unit, count = numpy.datetime_data(dtype)
    if unit not in _UNITS or count != 1 or not dtype.isnative:
        raise TypeError(f"column `{name}` has the type {dtype}; a formula supports the units {', '.join(_UNITS)}")
    return (_TIMESTAMP if dtype.kind == "M" else _DURATION) | _UNITS[unit]


def _date_type(flags):
    """Returns the NumPy dtype for the flags of timestamps and durations, or None."""
    units = [unit for unit, flag in _UNITS.items() if flags & flag]
    return f"{'M' if flags & _TIMESTAMP else 'm'}8[{units[0]}]" if units else None


def _arrow_type(format):
    """Returns (type, flags) for a format of the Arrow C data interface, or (None, 0) if it is not
    supported."""
    if format in _ARROW_DATES:
        return _ARROW_DATES[format]
    if format[:2] in ("ts", "tD") and format[2:3] in _ARROW_UNITS:
        return "i64", (_TIMESTAMP if format[1] == "s" else _DURATION) | _ARROW_UNITS[format[2]]
    return _ARROW.get(format), 0


def _of_arrow(name, value):
    from .tables import capsules

    held = (capsules.Stream if hasattr(value, "__arrow_c_stream__") else capsules.Single)(value)
    format = held.schema.struct.format.decode()
    text, dates = _arrow_type(format)
    if held.schema.struct.dictionary or format in ("u", "U", "vu"):
        return _of_texts(name, value, "arrow")
    if text is None:
        raise TypeError(f"column `{name}` has the type {getattr(value, 'type', 'of no number')}; {_EXPECTED}")
    chunks = []
    for array in (item.struct for item in held.arrays):
        validity = array.buffers[0] if array.null_count else None
        chunks.append((array.buffers[1] or 0, validity or 0, array.offset, array.length))
    flags = dates | (_NULLABLE if any(chunk[1] for chunk in chunks) else 0) | (_BITS if text == "bool" else 0)
    return _Column(text, chunks, (sum(chunk[3] for chunk in chunks),), "arrow", held, flags)


def _common_shape(found):
    """Returns the common shape of all columns, and repeats numbers to columns of this shape. Raises
    ValueError for different shapes."""
    shape = ()
    for name, column in found.items():
        if column.shape and shape and column.shape != shape:
            raise ValueError(f"column `{name}` has the shape {column.shape}, but the preceding columns have the shape {shape}")
        shape = shape or column.shape
    for column in found.values():
        if not column.shape and shape:
            _repeat(column, shape)
    return shape


def _repeat(column, shape):
    """Repeats a number to a column of the given shape."""
    import numpy

    data = numpy.full(shape, column.keeper[0].reshape(()))
    column.chunks, column.keeper = [(data.ctypes.data, 0, 0, data.size)], (data,)


# ---- runs ----


def _cut(columns, rows):
    """Yields (first row, number of rows, [chunk]) so that the rows lie in a single chunk of each
    column."""
    starts = {0, rows}
    for column in columns:
        at = 0
        for chunk in column.chunks:
            at += chunk[3]
            starts.add(at)
    bounds = sorted(starts)
    for first, last in zip(bounds, bounds[1:]):
        yield first, last - first, [_part(column, first) for column in columns]


def _part(column, first):
    at = 0
    for values, validity, offset, count in column.chunks:
        if first < at + count:
            return values, validity, offset + first - at
        at += count
    raise AssertionError("a column has fewer rows than the formula")


class _Run:
    def __init__(self, made, columns, shape, device):
        self.formula, self.type, self.flags, self.used, self.texts = made
        self.columns, self.shape, self.device = columns, shape, device

    def _compute(self, values):
        """Computes the formula into values, a one-dimensional array. Returns a bool for each row,
        which is false for a null, or None if the result has no nulls."""
        import numpy

        used = [column for column, is_used in zip(self.columns, self.used) if is_used]
        flags = numpy.empty(len(values), bool) if self.flags & _NULLABLE else None
        for first, count, parts in _cut(used, len(values)):
            rest = iter(parts)
            chunks = tuple(next(rest) if is_used else None for is_used in self.used)
            bits = numpy.empty((count + 7) // 8, numpy.uint8) if flags is not None else None
            address = values.ctypes.data + first * values.itemsize
            result = address, bits.ctypes.data if bits is not None else 0, 0
            self.formula.run(chunks, result, count, self.device)
            if flags is not None:
                flags[first : first + count] = numpy.unpackbits(bits, count=count, bitorder="little").view(bool)
        return flags

    def result(self, out, table):
        import numpy

        shape = self.shape
        if out is not None and self._writes_to(out):
            self._compute(out.reshape(-1))
            return out
        values = numpy.empty(shape, dtypes.SCALARS[self.type].dtype)
        flags = self._compute(values.reshape(-1))
        if self.flags & _TEXT:
            return self._of_texts(values.reshape(-1), flags, out, table)
        dates = _date_type(self.flags)
        if dates:
            values = values.astype(numpy.int64, copy=False).view(dates)
            if flags is not None and not flags.all():
                values[~flags.reshape(shape)] = "NaT"
        kinds = {column.kind for column in self.columns}
        if out is not None:
            return self._store(out, values, flags)
        if "pandas" in kinds or _is_of_pandas(table):
            indices = [column.index for column in self.columns if column.index is not None]
            return _to_pandas(values, flags, indices[0] if indices else table.index)
        if "arrow" in kinds:
            return _to_arrow(values, flags)
        return (
            values
            if flags is None or (dates and "masked" not in kinds)
            else numpy.ma.MaskedArray(values, ~flags.reshape(shape))
        )

    def _writes_to(self, out):
        """Returns whether the formula can write its values directly to `out`, without a temporary
        array: `out` has the result layout, and no column overlaps it. A column may have exactly the
        memory of `out`, because each row is read before it is written."""
        import numpy

        if type(out) is not numpy.ndarray or self.flags & (_NULLABLE | _TEXT | _TIMESTAMP | _DURATION):
            return False
        if out.dtype != dtypes.SCALARS[self.type].dtype or out.shape != tuple(self.shape) or not out.flags.carray:
            return False
        begin, end = out.ctypes.data, out.ctypes.data + out.nbytes
        for column, is_used in zip(self.columns, self.used):
            bits = 1 if column.flags & _BITS else 8 * dtypes.SCALARS[column.type].dtype.itemsize
            for values, validity, offset, count in column.chunks if is_used else ():
                is_same = values + offset * bits // 8 == begin and bits == 8 * out.itemsize and count == out.size
                for first, width in ((values, bits), (validity, 1)):
                    low, high = first + offset * width // 8, first + ((offset + count) * width + 7) // 8
                    if first and low < end and begin < high and not (first == values and is_same):
                        return False
        return True

    def _of_texts(self, codes, flags, out, table):
        """Returns a result of strings in the form that kjit's tables return for the columns'
        library."""
        import numpy

        from .tables import of_arrow, of_pandas
        from .tables.running import Result

        if out is not None:
            raise TypeError("the formula returns strings, which `out` cannot hold")
        kinds = {column.kind for column in self.columns}
        result = Result(codes, flags, "arrow" if "arrow" in kinds else "numpy", self.texts)
        if "pandas" in kinds or _is_of_pandas(table):
            import pandas

            result.kind = "numpy"
            indices = [column.index for column in self.columns if column.index is not None]
            return pandas.Series(of_pandas.array_of(result), index=indices[0] if indices else table.index, copy=False)
        if "arrow" in kinds and "pyarrow" in sys.modules:
            return of_arrow.array_of(result)
        texts = result.texts_with("", "U").reshape(self.shape)
        return texts if flags is None else numpy.ma.MaskedArray(texts, ~flags.reshape(self.shape))

    def _store(self, out, values, flags):
        import numpy

        if flags is not None and not flags.all() and values.dtype.kind not in "mM":
            raise ValueError("the result has nulls, which `out` cannot hold")
        numpy.copyto(out, values)
        return out


def _to_pandas(values, flags, index):
    import pandas

    if flags is None or values.dtype.kind in "mM":
        return pandas.Series(values, index=index)
    kinds = {"b": pandas.arrays.BooleanArray, "f": pandas.arrays.FloatingArray}
    kind = kinds.get(values.dtype.kind, pandas.arrays.IntegerArray)
    return pandas.Series(kind(values, ~flags), index=index)


def _to_arrow(values, flags):
    try:
        import pyarrow
    except ImportError:
        import numpy

        return values if flags is None else numpy.ma.MaskedArray(values, ~flags)
    return pyarrow.array(values, mask=None if flags is None else ~flags)
