"""Runs row functions over the columns in a table."""

from .. import _algorithms
from .._errors import CLASSES, KernelError
from .columns import Bits
from .missing import is_missing_object
from .row_functions import rewrite
from .strings import Dictionary, TextOperand

TypingError = CLASSES["KJIT_ERROR_TYPE"]
_MOST_VARIANTS = 64  # number of rewritten functions that are kept for each Python function


class Result:
    """A new column.

    there: a NumPy array of bools, True for elements that are not missing, or None if no element is missing

    kind: see Data

    texts: the dictionary of strings, if the values are codes for strings

    decimal: the Decimal, if the values are the integers that represent decimal numbers
    """

    def __init__(self, values, there, kind, texts=None, decimal=None):
        self.values, self.there, self.kind, self.texts, self.decimal = values, there, kind, texts, decimal

    def texts_with(self, missing, dtype):
        """Returns the strings as a NumPy array of a dtype, with the given object in place of
        missing strings."""
        import numpy

        codes = self.values if self.there is None else numpy.where(self.there, self.values, len(self.texts))
        return numpy.array([*self.texts, missing], dtype)[codes.astype("i8")]

    def __len__(self):
        return len(self.values)


class _Seen(dict):
    """Records the columns that a rewriting has asked for."""

    def __init__(self, columns):
        super().__init__(columns)
        self.asked = {}

    def __getitem__(self, name):
        column = super().__getitem__(name)
        self.asked[name] = column
        return column


def _variant(function, columns, count, is_row):
    """Returns the rewritten function for columns with these layouts. It is stored in the Python
    function, with the layouts on which it depends."""
    python = getattr(function, "py_func", function)
    known = getattr(python, "__dict__", {}).setdefault("__kjit_rows__", [])
    for entry in known:
        layouts, others, made = entry
        is_same = others == (count, is_row, None if is_row else next(iter(columns)))
        if is_same and all(name in columns and columns[name].layout == layout for name, layout in layouts.items()):
            return made
    seen = _Seen(columns)
    made = rewrite(function, seen, count, is_row)
    layouts = {name: column.layout for name, column in seen.asked.items()}
    known.insert(0, (layouts, (count, is_row, None if is_row else next(iter(columns))), made))
    del known[_MOST_VARIANTS:]
    return made


def _segments(used, length):
    """Yields the ranges of rows in which no column changes its chunk: (first row, end, tuple of the
    columns' chunks)."""
    ends = sorted({0, length} | {end for column in used for end in _ends(column)})
    cursors = [_Cursor(column.data.chunks) for column in used]
    for start, end in zip(ends, ends[1:]):
        yield start, end, tuple(cursor.take(end - start) for cursor in cursors)


def _ends(column):
    total = 0
    for chunk in column.data.chunks:
        total += chunk.count
        yield total


class _Cursor:
    def __init__(self, chunks):
        self.chunks, self.at, self.inside = chunks, 0, 0

    def take(self, count):
        while self.inside == self.chunks[self.at].count:
            self.at, self.inside = self.at + 1, 0
        part = self.chunks[self.at].part(self.inside, self.inside + count)
        self.inside += count
        return part


def _empty(column):
    """Returns an empty chunk with the column types."""
    chunk = column.data.chunks[0]
    return chunk.part(0, 0)


def _operands(operands, columns, chunks, args, dictionary):
    """Returns the map's operands for one range of rows."""
    import numpy

    given = list(args)
    for key in operands:
        if isinstance(key, TextOperand):
            given.append(numpy.int64(dictionary.code(key.text)))
            continue
        column, chunk = columns[key], chunks[key]
        given.append(_array(chunk.values) if column.texts is None else dictionary.mapped(key, chunk.values))
        if column.may_be_missing:
            missing = numpy.broadcast_to(numpy.bool_(not column.flags_missing), chunk.count)
            given.append(missing if chunk.flags is None else _array(chunk.flags))
    return given


def _array(values):
    if isinstance(values, Bits):
        return values.operand()
    return values.view("i8") if values.dtype.kind in "mM" else values


def _row_number(i):
    return i


def _scalar(value):
    """Returns an argument of a call as a typed number. Raises TypeError for other objects."""
    import numpy

    kinds = {bool: numpy.bool_, int: numpy.int64, float: numpy.float64, complex: numpy.complex128}
    if type(value) in kinds:
        return kinds[type(value)](value)
    if isinstance(value, numpy.generic) and value.dtype.kind in "biufcmM":
        return value
    raise TypeError(f"a value for all rows must be a number, not {type(value).__name__}")


def constant(value, length):
    """Returns a column with one repeated number, or with missing values for NA."""
    import numpy

    if isinstance(value, str):
        return Result(numpy.zeros(length, "i8"), None, "numpy", [value])
    if is_missing_object(value):
        return Result(numpy.zeros(length, bool), numpy.zeros(length, bool), "masked")
    return Result(numpy.full(length, _scalar(value)), None, "numpy")


def run(function, columns, length, args=(), is_row=True, device=None):
    """Applies a function to each row and returns a Result. columns: name -> Column."""
    import numpy

    args = tuple(_scalar(value) for value in args)
    made, operands, may_be_missing, is_text = _variant(function, columns, len(args), is_row)
    names = [key for key in operands if not isinstance(key, TextOperand)]
    used = [columns[name] for name in names]
    dictionary = Dictionary({name: columns[name] for name in names if columns[name].texts is not None})
    kinds = {column.data.kind for column in used}
    kind = next((kind for kind in ("arrow", "masked") if kind in kinds), "masked" if may_be_missing else "numpy")
    parts = list(_segments(used, length)) or [(0, 0, tuple(_empty(column) for column in used))]
    if not used:
        parts = [(0, length, ())]
    out = None
    for start, end, chunks in parts:
        given = _operands(operands, columns, dict(zip(names, chunks)), args, dictionary)
        if not used:
            given.append(_algorithms.computed(_row_number, end - start))
        where = None if out is None else tuple(array[start:end] for array in out)
        try:
            results = _algorithms.map(made, *given, out=where, device=device)
        except KernelError as error:
            raise _of_row(error, made, given, start) from None
        except TypingError as error:
            if "which an array cannot hold" not in str(error):
                raise
            raise TypeError(
                f"{made.__name__}() returns a tuple for a row, but a row function returns one value"
            ) from None
        if len(parts) == 1:
            out = results
        elif out is None:
            out = tuple(numpy.empty(length, array.dtype) for array in results)
            for array, part in zip(out, results):
                array[start:end] = part
    values, there = out
    return Result(values, there if may_be_missing else None, kind, list(dictionary.codes) if is_text else None)


def _of_row(error, made, given, start):
    """Returns the error that a thread raised, with the number of the thread's row in the
    message."""
    import numpy

    from .._errors import name_element

    plain = [x if isinstance(x, (numpy.ndarray, numpy.generic)) else None for x in given]
    element = None
    if not any(x is None for x in plain):
        found = _algorithms.find_failing(lambda *o: _algorithms.map(made, *o), plain)
        element = None if found is None else (start + found[0],)
    return name_element(error, made.__name__, element).with_traceback(None)
