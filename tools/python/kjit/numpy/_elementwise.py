"""The element-wise functions of the namespace, generated from the table."""

from . import _beyond, _dtypes, _engine
from ._dtypes import KIND
from ._engine import elementwise
from ._errors import ShapeError
from ._table import ROWS

_OTHER_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "conjugate": "conj", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
    "right_shift": "bitwise_right_shift", "true_divide": "divide", "mod": "remainder", "radians": "deg2rad",
    "degrees": "rad2deg",
}  # fmt: skip


def _unary(row):
    def function(x, /, out=None, *, where=None, **options):
        if options or out is not None and not isinstance(out, _engine.Array):
            return _by_ufunc(row, (x,), out, where, options)
        return elementwise(row, (x,), out, where)

    return function


def _binary(row):
    check = _EXPONENTS.get(row.name)

    def function(x1, x2, /, out=None, *, where=None, **options):
        if options or out is not None and not isinstance(out, _engine.Array):
            return _by_ufunc(row, (x1, x2), out, where, options)
        if check is not None:
            check(x1, x2)
        return elementwise(row, (x1, x2), out, where)

    return function


def _by_ufunc(row, operands, out, where, options):
    """Computes an operation with options that only NumPy's ufunc accepts. Raises TypeError if the
    operation has no NumPy ufunc."""
    import numpy

    if row.ufunc is None:
        raise TypeError(f"{row.name}() got an unexpected keyword argument {next(iter(options), 'out')!r}")
    options |= {} if out is None else {"out": out}
    options |= {} if where is None else {"where": where}
    return _beyond.by_numpy(getattr(numpy, row.ufunc), _engine.ready_operands(operands), options)


def check_exponent(base, exponent):
    """Rejects negative integer exponents of integers, as NumPy does. Exponents on a GPU are not
    checked, because the check would wait; the results are then undefined."""
    if type(exponent) is float or _kind(base) not in "biu" or _kind(exponent) != "i":
        return
    if isinstance(exponent, _engine.Array):
        if exponent.device != "cpu" or not exponent.size:
            return
        exponent = _engine.reduce_axes(exponent, "min", tuple(range(exponent.ndim)), exponent.dtype.text).item()
    elif hasattr(exponent, "ndim"):
        exponent = exponent.min() if exponent.size else 0
    if exponent < 0:
        raise ShapeError("Integers to negative integer powers are not allowed: convert the base to floats")


def _kind(x):
    if _dtypes.is_scalar(x):
        return _dtypes.scalar_kind(x)
    return KIND.get(_dtypes.dtypes.name_of(x.dtype), "?") if hasattr(x, "dtype") else "?"


_EXPONENTS = {"pow": check_exponent}


def _named(row):
    function = (_unary if row.count == 1 else _binary)(row)
    function.__name__ = function.__qualname__ = row.name
    function.__module__ = "kjit.numpy"
    if row.ufunc is not None:
        _beyond.add_ufunc_methods(function, row.ufunc, row.count)
    function.__doc__ = (
        f"The element-wise function `{row.name}`; operands are arrays and numbers, which broadcast. out: an array that the result is "
        "written to. where: an array of bool; other elements of `out` stay as they were."
    )
    if row.name in _EXPONENTS:
        return function
    return _engine.quick("unary" if row.count == 1 else "binary", row.index)(function)


FUNCTIONS = {name: _named(row) for name, row in ROWS.items() if row.count < 3}
FUNCTIONS |= {name: FUNCTIONS[same] for name, same in _OTHER_NAMES.items()}


def imag(x, /):
    """Returns the imaginary parts of a complex array, and zeros for a real array. Without dimensions
    the result is x.imag, as in NumPy."""
    return x.imag if isinstance(x, _engine.Array) and not x.ndim else elementwise(ROWS["imag"], (x,))


def real(x, /, out=None, *, where=None):
    """Returns the real parts of an array. Without dimensions the result is x.real, as in NumPy.
    out: an array that the result is written to. where: an array of bool; other elements of `out`
    stay as they were."""
    is_plain = isinstance(x, _engine.Array) and not x.ndim and out is None and where is None
    return x.real if is_plain else elementwise(ROWS["real"], (x,), out, where)


def rint(x, /, out=None, *, where=None):
    """Rounds each element to the nearest integer, ties to even. Integers and bools are computed in
    float64. out: an array that the result is written to. where: an array of bool; other elements of
    `out` stay as they were."""
    if hasattr(x, "dtype") and KIND.get(_dtypes.text_of(x), "f") in "biu":
        x = elementwise(ROWS["positive"], (_engine.cast(x, "f64"),)) if isinstance(x, _engine.Array) else x.astype("f8")
    return elementwise(ROWS["round"], (float(x) if isinstance(x, int) else x,), out, where)


def clip(x, /, min=None, max=None, *, out=None):
    """Limits each element of x to the range from min to max. min, max: numbers or arrays that
    broadcast with x; None means no bound. The result has the data type of x."""
    text = _dtypes.text_of(x)
    bounds = [_bound(bound, text) for bound in effective_bounds(text, min, max)]
    if bounds[0] is None and bounds[1] is None:
        return _engine.copied_result(x) if out is None else _assigned(out, x)
    if bounds[1] is None:
        return elementwise(ROWS["maximum"], (x, bounds[0]), out)
    if bounds[0] is None:
        return elementwise(ROWS["minimum"], (x, bounds[1]), out)
    return elementwise(ROWS["clip"], (x, *bounds), out)


def effective_bounds(text, low, high):
    """Returns the bounds of clip(). None replaces a Python integer that is outside of the type's range and
    therefore limits no element."""
    if KIND[text] not in "iu":
        return low, high
    limits = _dtypes.iinfo(_dtypes.BY_TEXT[text])
    is_low = type(low) is int and low < limits.min
    is_high = type(high) is int and high > limits.max
    return None if is_low else low, None if is_high else high


def _bound(bound, text):
    """Returns a bound, converted to the data type `text` of the array."""
    if bound is None or not hasattr(bound, "shape"):
        return bound
    if KIND[_dtypes.text_of(bound)] != KIND[text] and KIND[text] not in "iu":
        _dtypes.promote([text, _dtypes.text_of(bound)], "clip")
    return _engine.converted(bound, text)


def _assigned(out, x):
    _engine.assign(out, x)
    return out


def where(condition, x1, x2, /):
    """Returns the elements of x1 where the condition is true, and those of x2 elsewhere."""
    if hasattr(condition, "dtype") and _dtypes.text_of(condition) != "bool":
        condition = elementwise(ROWS["not_equal"], (condition, 0))
    made = elementwise(ROWS["where"], (condition, x1, x2))
    return made._mark_array() if isinstance(made, _engine.Array) else made  # traced values of kjit.grad have no marks


def round(x, /, decimals=0, *, out=None):
    """Rounds each element to the nearest integer, ties to even. decimals: the number of decimal
    digits to keep; negative values round to tens, hundreds and so on."""
    if not decimals:
        return elementwise(ROWS["round"], (x,), out)
    if hasattr(x, "dtype") and KIND[_dtypes.text_of(x)] in "iu":
        return _round_integers(x, decimals, out)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return elementwise(ROWS["divide"], (elementwise(ROWS["round"], (elementwise(ROWS["multiply"], (x, scale)),)), scale), out)
    return elementwise(ROWS["multiply"], (elementwise(ROWS["round"], (elementwise(ROWS["divide"], (x, scale)),)), scale), out)


def _round_integers(x, decimals, out):
    """Rounds integers to tens, hundreds and so on. The type stays the same, as in NumPy, and the
    quotients are computed in float64."""
    text = _dtypes.text_of(x)
    if decimals > 0:
        made = _engine.copied_result(x)
    else:
        scale = float(10**-decimals)
        quotients = elementwise(ROWS["round"], (elementwise(ROWS["divide"], (x, scale)),))
        made = _engine.converted(elementwise(ROWS["multiply"], (quotients, scale)), text)
    if out is None:
        return made
    _engine.check_out(out, tuple(made.shape), text, "round")
    return _assigned(out, made)


FUNCTIONS |= {"clip": clip, "where": where, "round": round, "imag": imag, "real": real, "rint": rint}
# Functions that have more arguments in NumPy.
WIDENED = (clip, where, round, imag, real, rint)
