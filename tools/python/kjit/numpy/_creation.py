"""Functions that create arrays."""

import functools
import operator

from .. import _arrays, _kjit, _state
from . import _dtypes, _engine
from ._dtypes import DEFAULTS, KIND
from ._engine import Array, elementwise, from_indices, quick, shape_of, typed
from ._errors import DevicesError, ElementTypeError, PromotionError, ShapeError
from ._funcs import Func, func
from ._table import ROWS


def _text(dtype, default="f64"):
    return default if dtype is None else _dtypes.dtype_of(dtype).text


@quick("asarray")
def asarray(obj, /, dtype=None, order=None, *, device=None, copy=None):
    """Returns a kjit array with the elements in an array, a number, or nested sequences of numbers.

    dtype: the data type of the result; None keeps the elements' type. device: the result's device;
    None means the device of `obj`, or the default device for other objects. copy: True always
    copies, False raises ValueError if a copy is needed, None copies only if needed. order: "F" for
    column-major order, as in NumPy. Raises TypeError if complex numbers would have to become real
    ones.
    """
    made = _as_array(obj, dtype, device, copy)
    return made if order in _ANY_ORDER else _in_order(made, order, copy)


# The values of order= that keep the order of an array, and the values that mean row-major order for a new array.
_ANY_ORDER = (None, "K", "A")
_ROW_MAJOR = (*_ANY_ORDER, "C")


def _in_order(x, order, copy):
    """Returns the array in row-major order for "C" or in column-major order for "F", as a copy if it has another order.
    Raises ValueError if copy is False and a copy is needed."""
    from . import _manipulation

    if order in ("C", "F") and _manipulation.is_dense(x, order=order):
        return x
    made = _new(tuple(x.shape), x.dtype.text, x.device, order)
    if copy is False:
        raise ValueError(f"asarray: the array has another order than {order!r} and needs a copy, but copy is False")
    _engine.assign(made, x)
    return made


def _new(shape, text, device, order):
    """Returns a new array with undefined contents, in row-major order, or in column-major order for
    "F". Raises ValueError for another order."""
    if order in _ROW_MAJOR:
        return _engine.new(shape, text, device) if shape else _kjit.empty(_state.context(), (), text, device)
    if order != "F":
        raise ValueError(f'order must be "C" or "F", not {order!r}')
    return _engine.new(shape[::-1], text, device).T


def _as_array(obj, dtype, device, copy):
    place = None if device is None else _engine.device_name(device)
    text = None if dtype is None else _dtypes.dtype_of(dtype).text
    if isinstance(obj, Array):
        return _as_own(obj, text, place, copy)
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_struct__"):
        return _as_own(from_dlpack(obj), text, place, copy)
    if copy is False:
        raise ValueError(f"asarray: the elements of a {type(obj).__name__} must be copied to kjit's memory, but copy is False")
    return _from_host(obj, text, place if place is not None else _engine.default_device())


def _as_own(x, text, place, copy):
    has_type, is_here = text is None or x.dtype.text == text, place is None or x.device == place
    if has_type and is_here:
        return _engine.copied(x) if copy else x[...] if x._is_scalar else x
    if copy is False:
        own, wanted = f"{x.dtype.name} on {x.device}", f"{_dtypes.BY_TEXT[text].name if text else x.dtype.name} on {place or x.device}"
        raise ValueError(f"asarray: the array is {own}; {wanted} needs a copy, but copy is False")
    if not has_type:
        if KIND[x.dtype.text] == "c" and KIND[text] != "c":
            raise TypeError("asarray: complex numbers cannot be converted to real ones; use x.real")
        x = _engine.cast(x, text)
        # operators such as += change this array in place, even if it has no dimensions
        x = x._mark_array()
    return x if is_here else _kjit.copy_of(_state.context(), x, place)


def _from_host(obj, text, place):
    """Returns a kjit array made from a number, a sequence or a NumPy array."""
    import numpy

    if isinstance(obj, (list, tuple)) and _has_arrays(obj):
        obj = _on_host(obj)
    made = numpy.asarray(obj)
    if text is None:
        found = _dtypes.dtypes.name_of(made.dtype)
        if found not in KIND:
            raise ElementTypeError(f"asarray: a {type(obj).__name__} of type {made.dtype} cannot be converted: kjit has no such element type")
        text = found
    if _dtypes.KIND[text] in "iu" and made.dtype.kind not in "biu" and not made.size:
        made = made.astype("i8")
    if made.dtype.kind in "iu" and KIND[text] in "iu" and made.size and not isinstance(obj, numpy.ndarray):
        _check_range(made, text)
    wanted = numpy.dtype(_dtypes.BY_TEXT[text].dtype)
    if made.dtype != wanted:
        if made.dtype.kind == "c" and wanted.kind != "c":
            raise TypeError("asarray: complex numbers cannot be converted to real ones")
        made = made.astype(wanted)
    return _kjit.copy_of(_state.context(), numpy.require(made, requirements="A"), place)


def _check_range(made, text):
    info = _dtypes.iinfo(_dtypes.BY_TEXT[text])
    low, high = int(made.min()), int(made.max())
    if low < info.min or high > info.max:
        raise OverflowError(f"Python integer {low if low < info.min else high} out of bounds for {info.dtype.name}")


def _has_arrays(items):
    return any(isinstance(item, Array) or isinstance(item, (list, tuple)) and _has_arrays(item) for item in items)


def _on_host(items):
    """Returns nested sequences with a NumPy array in place of each kjit array."""
    return [
        item.to_host() if isinstance(item, Array) else _on_host(item) if isinstance(item, (list, tuple)) else item for item in items
    ]


@quick("array")
def array(obj, dtype=None, *, device=None, copy=True, order=None, subok=False, ndmin=0):
    """Returns an array as `asarray` does, but copies the elements by default.

    ndmin: the minimum number of dimensions; dimensions of extent 1 are added at the front. subok is
    ignored, because arrays have no subclasses.
    """
    if order is None and copy and isinstance(obj, Array) and obj.ndim > 1:
        from . import _manipulation

        order = "F" if _manipulation.is_column_major(obj, "A") else None
    made = asarray(obj, dtype, order, device=device, copy=copy)
    return made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if made.ndim < ndmin else made


def from_dlpack(x, /, *, device=None, copy=None):
    """Returns a kjit array that shares the memory of another library's array, or a copy if `device`
    is another device. Raises ValueError if a copy is needed and copy is False."""
    if isinstance(x, Array):
        made = x[...]
    # before version 1.0, DLPack could not describe read-only arrays, so a read-only array is copied
    elif getattr(getattr(x, "flags", None), "writeable", True) is False:
        made = _arrays.array(x, device="cpu")
    else:
        made = _arrays.from_dlpack(x)
    place = None if device is None else _engine.device_name(device)
    if place not in (None, made.device):
        if copy is False:
            raise ValueError(f"from_dlpack: the array is on {made.device} and must be copied to {place}, but copy is False")
        return _kjit.copy_of(_state.context(), made, place)
    return _engine.copied(made) if copy else made


@quick("empty")
def empty(shape, dtype=None, order=None, *, device=None):
    """Returns a new array with undefined contents. order: "F" for column-major order."""
    return _new(shape_of(shape), _text(dtype), _engine.device_name(device), order)


@quick("full")
def full(shape, fill_value, dtype=None, order=None, *, device=None):
    """Returns a new array in which every element is fill_value, a number or an array that
    broadcasts to the shape. order: "F" for column-major order."""
    if isinstance(fill_value, _engine.LISTS):
        fill_value = asarray(fill_value, device=device)
    if dtype is None:
        fill_value = fill_value if hasattr(fill_value, "dtype") or _dtypes.is_scalar(fill_value) else asarray(fill_value, device=device)
        is_scalar = _dtypes.is_scalar(fill_value)
        text = DEFAULTS[_dtypes.scalar_kind(fill_value)] if is_scalar else _dtypes.text_of(fill_value)
    else:
        text = _text(dtype)
    made = _new(shape_of(shape), text, _engine.device_name(device), order)
    _engine.assign(made, fill_value)
    return made


@quick("zeros")
def zeros(shape, dtype=None, order=None, *, device=None):
    """Returns a new array of zeros. order: "F" for column-major order."""
    return full(shape, 0, "f64" if dtype is None else dtype, order, device=device)


@quick("ones")
def ones(shape, dtype=None, order=None, *, device=None):
    """Returns a new array of ones. order: "F" for column-major order."""
    return full(shape, 1, "f64" if dtype is None else dtype, order, device=device)


def _like(x, dtype, device):
    return {"dtype": x.dtype if dtype is None else dtype, "device": getattr(x, "device", None) if device is None else device}


@quick("empty_like")
def empty_like(x, /, dtype=None, order=None, subok=True, shape=None, *, device=None):
    """Returns a new array with the shape, data type and device of x, and undefined contents. shape, dtype, device: replace the
    shape, dtype and device of x."""
    x = x if hasattr(x, "shape") else asarray(x)
    return empty(x.shape if shape is None else shape, order=order, **_like(x, dtype, device))


def full_like(x, /, fill_value, dtype=None, order=None, subok=True, shape=None, *, device=None):
    """Returns an array as `empty_like` does, in which every element is fill_value."""
    x = x if hasattr(x, "shape") else asarray(x)
    return full(x.shape if shape is None else shape, fill_value, order=order, **_like(x, dtype, device))


@quick("zeros_like")
def zeros_like(x, /, dtype=None, order=None, subok=True, shape=None, *, device=None):
    """Returns an array as `empty_like` does, in which every element is 0."""
    return full_like(x, 0, dtype, order, subok, shape, device=device)


@quick("ones_like")
def ones_like(x, /, dtype=None, order=None, subok=True, shape=None, *, device=None):
    """Returns an array as `empty_like` does, in which every element is 1."""
    return full_like(x, 1, dtype, order, subok, shape, device=device)


# ---- arrays computed from indices ----


@functools.cache
def _line(text):
    """Returns the func for element i of an arithmetic sequence, computed in the common type of
    start and step."""
    return Func("line", f"func line(i, start, step) {{ return {text}(start + dtype(start)(i) * step) }}")


@quick("arange")
def arange(start, /, stop=None, step=1, dtype=None, *, device=None):
    """Returns the numbers start, start + step, ... up to but not including stop. If only one
    argument is given, it is stop, and start is 0. Raises ZeroDivisionError if step is 0."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ZeroDivisionError("arange: step must not be 0")
    is_whole = all(isinstance(x, int) or getattr(x, "dtype", None) is not None and KIND[_dtypes.text_of(x)] in "biu" for x in (start, stop, step))
    text = _text(dtype, "i64" if is_whole else "f64")
    start, stop, step = (int(x) if is_whole else float(x) for x in (start, stop, step))
    count = -((start - stop) // step) if is_whole else _count_steps(start, stop, step)
    if text == "bool" and count > 2:
        raise PromotionError(f"arange: the result has {int(count)} elements, but a range of bools has at most two")
    inner = "i64" if is_whole and KIND[text] in "biu" else "f64"
    if text == "u64" and is_whole and max(start, stop) > 2**63 - 1:
        inner = "u64"
    arguments = typed(start, inner), typed(step if inner != "u64" else step % 2**64, inner)
    return from_indices(_line(text), (max(int(count), 0),), text, arguments, _engine.device_name(device))


def _count_steps(start, stop, step):
    import math

    steps = (stop - start) / step
    if not math.isfinite(steps):
        raise ShapeError(f"arange: start {start}, stop {stop} and step {step} give no finite number of elements")
    return math.ceil(steps)


_SPACED = """func spaced(i, start, stop, step, last) {{
  if i == last {{ return {text}(stop) }}
  return {text}(start + step * {scale}(i))
}}"""


@functools.cache
def _spaced(text):
    return Func("spaced", _SPACED.format(text=text, scale="f64"))


def linspace(start, stop, /, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Returns num evenly spaced numbers from start to stop.

    endpoint: whether stop is the last number. retstep: returns (numbers, step) instead. If start or
    stop is an array, the result has one more dimension, at `axis`. Raises ShapeError if num is
    negative. For an integer dtype the numbers are rounded down.
    """
    num = operator.index(num)
    if dtype is not None and KIND[_text(dtype, None)] in "iu":
        made = linspace(start, stop, num, endpoint, retstep, None, axis, device=device)
        numbers = _engine.converted(elementwise(ROWS["floor"], (made[0] if retstep else made,)), _text(dtype, None))
        return (numbers, made[1]) if retstep else numbers
    if retstep or getattr(start, "ndim", 0) or getattr(stop, "ndim", 0) or isinstance(start, (list, tuple)) or isinstance(stop, (list, tuple)):
        return _several_lines(start, stop, num, endpoint, retstep, dtype, axis, device)
    if num < 0:
        raise ShapeError(f"linspace: the number of elements, {num}, must not be negative")
    default = "f64" if type(start) in (int, float) and type(stop) in (int, float) else _dtypes.result_type(start, stop, 1.0).text
    text, is_complex = _text(dtype, default), KIND[default] == "c"
    inner, python = ("c128", complex) if is_complex or KIND[text] == "c" else ("f64", float)
    start, stop = python(start), python(stop)
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else python(0)
    last = num - 1 if endpoint and num > 1 else -1
    arguments = typed(start, inner), typed(stop, inner), typed(step, inner), typed(last, "i64")
    return from_indices(_spaced(text), (int(num),), text, arguments, _engine.device_name(device))


def _several_lines(start, stop, num, endpoint, retstep, dtype, axis, device):
    from . import _manipulation

    start, stop = (x if isinstance(x, Array) else asarray(x, device=device) for x in (start, stop))
    first, last = (_engine.converted(x, "f64") if KIND[x.dtype.text] in "biu" else x for x in (start, stop))
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else (last - first) * float("nan")
    places = arange(num, device=step.device).astype(step.dtype)
    made = first + step * places.reshape((num, *[1] * step.ndim)) if parts > 0 else first + (last - first) * 0 * places.reshape((num, *[1] * step.ndim))
    if endpoint and num > 1:
        made[-1] = last
    made = made if dtype is None else made.astype(dtype)
    made = _manipulation.moveaxis(made, 0, axis) if axis else made
    return (made, step) if retstep else made


@functools.cache
def _diagonal(text):
    return Func("diagonal", f"func diagonal(i, j, k) {{ return j - i == k ? {text}(1) : {text}(0) }}")


@quick("eye")
def eye(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """Returns a matrix with ones on diagonal k and zeros elsewhere. Positive k lie above the main
    diagonal."""
    text = _text(dtype)
    shape = shape_of((n_rows, n_rows if n_cols is None else n_cols))
    # k is limited to the first diagonal outside of the matrix, because all diagonals outside give the same result
    k = max(-shape[0], min(int(k), shape[1]))
    return from_indices(_diagonal(text), shape, text, (typed(k, "i64"),), _engine.device_name(device))


def _triangle(x, k, compare, what):
    if not x.ndim:
        raise ShapeError(f"{what}: x has no dimensions, but must have at least one")
    if x.ndim == 1:  # every row of a square matrix is x
        from . import _manipulation

        x = _manipulation.broadcast_to(x, (x.size, x.size))
    names = [f"i{n}" for n in range(x.ndim)]
    at = ", ".join(names)
    text = f"func part({at}, x, k) {{ return {names[-1]} - {names[-2]} {compare} k ? x[{at}] : dtype(x)(0) }}"
    # k is limited to the first diagonal outside of the matrix, because all diagonals outside give the same result
    k = max(-x.shape[-2] - 1, min(int(k), x.shape[-1] + 1))
    return from_indices(func("part", text), tuple(x.shape), x.dtype.text, (x, typed(k, "i64")), x.device)


def tril(x, /, k=0):
    """Returns the lower triangles of the matrices in x: elements above diagonal k are 0."""
    return _triangle(x, k, "<=", "tril")


def triu(x, /, k=0):
    """Returns the upper triangles of the matrices in x: elements below diagonal k are 0."""
    return _triangle(x, k, ">=", "triu")


def meshgrid(*arrays, indexing="xy"):
    """Returns the coordinate arrays of a grid, one for each given array. The given arrays are
    flattened. Each result has as many dimensions as there are arrays. Raises ValueError for another
    indexing than "xy" and "ij"."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", not {indexing!r}')
    lines = [x if x.ndim == 1 else x.reshape(-1) for x in arrays]
    count = len(lines)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    sizes = [x.shape[0] for x in lines]
    shape = tuple(sizes[i] for i in order)
    result = []
    for i, x in enumerate(lines):
        axis = order.index(i)
        made = _engine.new(shape, x.dtype.text, x.device)
        _engine.assign(made, x.reshape(tuple(sizes[i] if n == axis else 1 for n in range(count))))
        result.append(made)
    return result


def check_device(x, device):
    """Raises DevicesError if the array is not on the device. device=None accepts every device."""
    if device is not None and _engine.device_name(device) != x.device:
        raise DevicesError(f"the array is on {x.device}, not on {device}")
