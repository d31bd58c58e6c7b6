"""Runs the operations of kjit.numpy on the device of the arrays, by kjit's algorithms.

Every element-wise operation goes through `elementwise`, every reduction through `reduce_axes`, and
every result computed from indices through `from_indices`.
"""

import functools
from collections.abc import Sequence
from operator import index

from .. import _kjit, _state
from ..frontend import ufuncs
from . import _dtypes
from ._dtypes import BY_TEXT, KIND
from ._errors import DevicesError, PromotionError, ShapeError
from ._funcs import IDENTITY, Func
from ._operands import LISTS, compared_in_range, has_ufuncs, is_numpys, learn_scalars, operand, ready_operands

Array = _kjit.Array
MOST_RANK = 8


def quick(name, number=0):
    """Returns a decorator for a function whose frequent calls run in C (tools/python/src/quick.h).
    number: the row of the table that the C function runs."""
    return lambda function: _kjit.shortcut(function, name, number)


def new(shape, text, device):
    """Returns a new array for a result, with undefined contents. Raises ShapeError for more than MOST_RANK dimensions.
    An array without dimensions stands for a NumPy scalar: operators such as += make a new array."""
    if len(shape) > MOST_RANK:
        raise ShapeError(f"an array has at most {MOST_RANK} dimensions, not {len(shape)}")
    made = _kjit.empty(_state.context(), shape, text, device)
    return made if len(shape) else made._mark_result()


def default_device():
    """Returns the device name for new arrays, such as "cpu" or "cuda:0"."""
    return _device_name(_state.device())


@functools.cache
def _device_name(device):
    return new((), "f32", device).device


def device_name(device):
    """Returns a device's name as arrays have it. None means the default device."""
    if device is None:
        return default_device()
    return _device_name(device) if isinstance(device, str) else new((), "f32", device).device


def extents_of(shape):
    """Returns a shape as a tuple of integers, which may be negative. An integer means one
    dimension."""
    if is_index(shape):
        return (index(shape),)
    if getattr(shape, "ndim", 0) == 1 and hasattr(shape, "tolist"):  # an array of kjit or of NumPy
        shape = shape.tolist()
    # a pointer of ctypes is iterable and has no end, so a test by iteration would not end
    if not isinstance(shape, Sequence):
        raise TypeError(f"a shape must be an integer or a tuple of integers, not {type(shape).__name__}")
    return tuple(index(extent) for extent in shape)


def shape_of(shape):
    """Returns a shape as a tuple of integers. Raises ShapeError if one of them is negative."""
    extents = extents_of(shape)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"negative dimensions are not allowed: {extents}")
    return extents


# ---- operands ----


@functools.cache
def _numpy():
    import numpy

    return numpy


def typed(value, text):
    """Returns a Python number as a scalar of a type. Raises OverflowError for an integer out of the
    type's range."""
    if text == "bf16":
        import ml_dtypes

        return ml_dtypes.bfloat16(value)
    check_range(value, text)
    return BY_TEXT[text](value)


@functools.cache
def _limits(text):
    if KIND[text] not in "iu":
        return None
    info = _dtypes.iinfo(BY_TEXT[text])
    return info.min, info.max


def check_range(value, text):
    """Raises OverflowError if a number is out of the range of an integer type."""
    limits = _limits(text)
    if limits is not None and not limits[0] <= value <= limits[1]:
        raise OverflowError(f"Python integer {value} is out of bounds for {BY_TEXT[text].name}")


def common_device(operands, what):
    """Returns the device of the arrays among the operands. NumPy arrays are on the CPU. Raises
    DevicesError for arrays on different devices."""
    device = None
    for x in operands:
        place = x.device if isinstance(x, Array) else "cpu" if getattr(x, "ndim", 0) else None
        if place is None:
            continue
        if device is not None and place != device:
            raise DevicesError(different_devices(what, device, place, x))
        device = place
    if device is None:
        return default_device()
    return device


def different_devices(what, device, other, x):
    """Returns the message for an operand x on another device than the operands before it. A NumPy array cannot be moved,
    and has no device of its own."""
    if isinstance(x, Array) and device != "cpu":
        return f"{what}: the arrays are on {device} and on {other}; move one with x.to_device({device!r})"
    place = device if device != "cpu" else other
    return f"{what}: one operand is on {place}, another one is a NumPy array or on the CPU; move it with kjit.numpy.asarray(x, device={place!r})"


def broadcast(shapes, what="operands"):
    """Returns the shape to which the shapes broadcast. Raises ShapeError if they do not."""
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return first
    result = []
    for i in range(max(map(len, shapes))):
        extents = {shape[-1 - i] for shape in shapes if len(shape) > i} - {1}
        if len(extents) > 1:
            text = " ".join(str(tuple(shape)) for shape in shapes)
            raise ShapeError(f"{what} could not be broadcast together with shapes {text}")
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def is_index(x):
    """Returns whether an object can be an integer argument. `__index__` alone does not decide, because
    arrays with dimensions have it, too."""
    return hasattr(x, "__index__") and not getattr(x, "ndim", 0)


def normalize_axis(axis, rank, what="axis"):
    if not hasattr(axis, "__index__"):
        raise TypeError(f"{what} must be an integer, not {axis!r}")
    found = index(axis)
    if not -rank <= found < rank:
        from ._axis_errors import AxisError

        raise AxisError(found, rank, None if what == "axis" else what)
    return found % rank


def normalize_axes(axis, rank, what="axis"):
    """Returns the axes as a tuple of different non-negative integers. None means all axes. Raises
    AxisError or ShapeError."""
    if axis is None:
        return tuple(range(rank))
    axes = tuple(normalize_axis(each, rank, what) for each in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{what}: an axis occurs twice in {axis!r}")
    return axes


def reduced_axes(axis, rank):
    """Returns the axes of a reduction like normalize_axes. As in NumPy, an array without dimensions has the
    axes 0 and -1, along which there is nothing to reduce."""
    return () if not rank and is_index(axis) and index(axis) in (0, -1) else normalize_axes(axis, rank)


# ---- maps ----


def run_map(pair, operands, out, where=None):
    """Computes a func for the elements of the operands, which broadcast to `out`; the extension
    checks the shapes. An operand that overlaps `out` without being `out` itself is copied first, so
    that all elements are read before they are overwritten."""
    run_maps(pair, operands, (out,), where)
    return out


def run_maps(pair, operands, outs, where=None):
    """Does the same as run_map for a func with several results. outs: an array for each result."""
    for out in outs:
        operands = [_apart(x, out) for x in operands]
        where = where if where is None else _apart(where, out)
    extra = {} if where is None else {"where": where}
    _kjit.run_algorithm(_state.context(), "map", (tuple(outs), pair, tuple(operands)), device=outs[0].device, **extra)


def _apart(x, out):
    if isinstance(x, Array):
        return copied(x) if x.size and x._relation(out) == 2 else x
    if getattr(x, "ndim", 0) and out.device == "cpu":
        return x.copy() if _numpy().may_share_memory(x, _numpy().asarray(out)) else x
    return x


def copied(x):
    """Returns a copy of the array in row-major order."""
    return _kjit.copy_of(_state.context(), x, x.device)


def copied_result(x):
    """Returns a copy of the array as the result of an operation: without dimensions it is a scalar."""
    return copied(x)._mark_result()


def flat_target(out):
    """Returns a one-dimensional view of a contiguous array that receives results. For an array that
    stands for a scalar, reshape() would return a copy instead."""
    return out.reshape(-1) if out.ndim else out._view((1,), (1,), 0)


class Kernel:
    """The kernel of an operation for one combination of data types.

    scalar: the type that Python numbers get. result: the result type. takes_numbers: whether the
    arrays have the type `scalar` as well; a Python number then gets its type inside the kernel.
    call(names): returns the operation as an expression of the kernel IR, which calls the funcs in
    `needs`. is_cheap: whether recomputing the operation costs less than reading its result from
    memory. is_exact: whether all code computes the same bits.
    """

    __slots__ = ("call", "func", "is_cheap", "is_exact", "name", "needs", "result", "scalar", "takes_numbers")

    def __init__(self, name, func, scalar, result, takes_numbers, call, needs, is_cheap, is_exact):
        self.name, self.func, self.scalar, self.result, self.takes_numbers = name, func, scalar, result, takes_numbers
        self.call, self.needs, self.is_cheap, self.is_exact = call, needs, is_cheap, is_exact

    def number(self, value):
        """Returns a Python number as an operand of a map."""
        if not self.takes_numbers or KIND[self.scalar] not in "iuf":
            return typed(value, self.scalar)
        if KIND[self.scalar] == "f":
            return float(value)
        check_range(value, self.scalar)
        return int(value) if value <= _MOST_NUMBER else typed(value, self.scalar)

    def typed_number(self, value):
        """Returns a Python number as a scalar of the operation's type."""
        return typed(value, self.scalar)

    def expression(self, names):
        """Returns the operation as an expression of the kernel IR, converted to the result type."""
        return f"{self.result}({self.call(names)})"


# The largest integer that the extension accepts as an untyped number.
_MOST_NUMBER = 2**63 - 1


class Operands:
    """An operation's operands.

    words: the parts of a kernel's key that describe the operands
    values: the values of the operands
    shape, device: the shape to which the operands broadcast, and their device
    has_numbers: whether a Python number is among the operands
    """

    __slots__ = ("words", "values", "shape", "device", "has_numbers")

    def __init__(self, operands, what):
        self.words, self.values, self.shape, self.device, self.has_numbers = [], [], None, None, False
        for x in operands:
            if type(x) is Array:
                self.add(x, x.dtype.text, x.shape, x.device, what)
            elif _dtypes.is_scalar(x):
                self.words.append("?" + _dtypes.scalar_kind(x))
                self.values.append(x)
                self.has_numbers = True
            else:
                x = operand(x, what)
                self.add(x, _dtypes.text_of(x), tuple(x.shape), "cpu" if x.ndim else None, what)

    def add(self, x, text, shape, device, what):
        self.words.append(text)
        self.values.append(x)
        if self.shape is None:
            self.shape = shape
        elif self.shape != shape:
            self.shape = broadcast([self.shape, shape], f"{what}: operands")
        if self.device is None:
            self.device = device
        elif device is not None and device != self.device:
            raise DevicesError(different_devices(what, self.device, device, x))


# The context whose operations the extension records; see _fusing.
context_of_expressions = None


def elementwise(row, operands, out=None, where=None):
    """Computes an operation of the table for operands that broadcast. All element-wise operations
    and array operators end here or in the extension's `operate`.

    out: a kjit array for the result, which is converted to its data type. where: a mask that
    selects the elements to compute; it needs out, otherwise TypeError is raised.
    """
    if out is not None:
        return _elementwise_into(row, ready_operands(operands), out, where)
    if where is not None and where is not True:
        raise TypeError(f"{row.name}: where= leaves elements of the result unchanged, so it needs an existing array: pass out=")
    made = _kjit.operate(row.index, *operands)
    if made is NotImplemented:
        if any(getattr(type(x), "__kjit_traced__", False) for x in operands):
            from ._gradient_rules import call_traced

            return call_traced(row.name, operands, {})
        return _elementwise_of_others(row, operands)
    return made


def _elementwise_of_others(row, operands):
    """Computes an operation for operands that are not arrays or numbers. If the class of an operand implements NumPy's
    ufuncs, it computes the operation. Array-like objects are converted. Raises PromotionError for other objects."""
    if row.ufunc is not None and any(map(has_ufuncs, operands)):
        return getattr(_numpy(), row.ufunc)(*operands)
    ready = ready_operands(operands)
    for x in ready:
        operand(x, row.name)
    return elementwise(row, ready) if ready is not operands else NotImplemented


def elementwise_now(row, operands, out=None):
    """Computes an operation at once, for operands that the extension does not record: NumPy arrays
    and scalars, or numbers alone."""
    if out is not None:
        return _elementwise_into(row, operands, out, None)
    given = Operands(operands, row.name)
    kernel, values = _prepared(row, given)
    device = default_device() if given.device is None else given.device
    out = new(given.shape or (), kernel.result, device)
    _kjit.run_algorithm(_state.context(), "map", ((out,), kernel.func.pair(), tuple(values)), device=device)
    return out


def _prepared(row, given):
    """Returns (the Kernel for Operands, their values with Python numbers in the form that the
    kernel takes)."""
    kernel = row.kernel(tuple(given.words))
    if given.has_numbers:
        return kernel, [kernel.number(x) if _dtypes.is_scalar(x) else x for x in given.values]
    return kernel, given.values


def _elementwise_into(row, operands, out, where):
    check_writable(out, row.name)
    found = compared_in_range(row.name, operands)
    if found is not None:
        row, operands = _row_named(found[0]), found[1]
    where = _mask(where)
    given = Operands(operands, row.name)
    kernel, values = _prepared(row, given)
    check_out(out, given.shape or (), kernel.result, row.name)
    if given.device not in (None, out.device):
        raise DevicesError(f"{row.name}: the operands are on {given.device}, but the array for the result is on {out.device}")
    learn_scalars(operands)
    if where is None and _kjit.store(row.index, tuple(operands), out, None) is None:
        return out
    return run_map(kernel.func.pair(), values, out, where)


def _row_named(name):
    from ._table import ROWS

    return ROWS[name]


def _mask(where):
    """Returns the mask of where= as an operand of a map; None means all elements."""
    if where is None or where is True:
        return None
    if not isinstance(where, LISTS) and not isinstance(where, bool):
        return where
    return _numpy().asarray(where, "?")


def check_writable(x, what=None):
    """Raises TypeError if x is not an array or is a copy of an element, and ShapeError if x is read-only for another
    reason. what: the function whose result is stored in x."""
    if not isinstance(x, Array):
        raise TypeError(f"{what or 'an assignment'}: out must be a kjit array, not {type(x).__name__}")
    if not x.is_read_only:
        return
    subject = "the array" if what is None else f"{what}: the array for the result"
    if x._is_element:
        raise TypeError(f"{subject} is a copy of one element; assign to x[i], or write to the view x[i, ...]")
    raise ShapeError(f"{subject} is read-only")


def check_out(out, shape, text, what):
    """Raises an error if a result cannot be stored in the array `out`: TypeError for a copy of an
    element, ShapeError for a read-only array or another shape, PromotionError for a lossy
    conversion."""
    check_writable(out, what)
    if tuple(out.shape) != shape and broadcast([tuple(out.shape), shape]) != tuple(out.shape):
        raise ShapeError(f"{what}: the result has the shape {shape}, but the array for it has the shape {tuple(out.shape)}")
    if not can_store(text, out.dtype.text):
        raise PromotionError(f"{what}: the result has dtype {BY_TEXT[text].name}, which cannot be cast to {out.dtype.name}")


_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def can_store(source, target):
    """Returns whether a store may convert a value from one type to the other, as under NumPy's
    casting="same_kind"."""
    if KIND[source] == "i" and KIND[target] == "u":
        return False
    return _RANKS[KIND[source]] <= _RANKS[KIND[target]]


# ---- conversions ----


@functools.cache
def cast_func(source, target):
    """Returns the func that converts an element, as NumPy's astype does."""
    if source == target:
        return IDENTITY
    return Func("cast", f"func cast(a) {{ return {cast_call(source, target, 'a')} }}", cast_needs(target))


def cast_call(source, target, name):
    """Returns the conversion of an element as an expression of the kernel IR."""
    if target == "bool":
        return f"np_truth({name})"
    return f"{target}({name}.real)" if KIND[source] == "c" and KIND[target] != "c" else f"{target}({name})"


def cast_needs(target):
    return (ufuncs.TRUTH,) if target == "bool" else ()


def _is_plain_copy(value, view, target):
    """Returns whether an assignment copies elements without conversions, and no element is in both arrays."""
    is_alike = value.dtype.text == target and value.shape == view.shape and value.device == view.device
    return is_alike and not _kjit.is_pending(value) and not value._relation(view)


def host_view(x):
    """Returns a NumPy array that shares the memory of x, an array on the CPU. While the NumPy array
    exists, kjit does not record operations on x, so callers drop it soon."""
    return _numpy().asarray(memoryview(x))


def assign(view, value):
    """Copies an array or a number to a view, with broadcasting and NumPy's conversions. Raises
    ShapeError if the view is read-only."""
    check_writable(view)
    target = view.dtype.text
    if target not in BY_TEXT:  # records and similar types, which are not converted
        return view.copy_from(value)
    if _dtypes.is_scalar(value):
        view.copy_from(typed_for_store(value, target))
        return view
    if type(value) is Array and _is_plain_copy(value, view, target):
        view.copy_from(value)
        return view
    value = assigned(value, target)
    shape = tuple(value.shape)
    while len(shape) > view.ndim and shape[0] == 1:
        value, shape = value[0], shape[1:]
    if broadcast([tuple(view.shape), shape], "an array and the values for it") != tuple(view.shape):
        raise ShapeError(f"could not broadcast values of the shape {shape} to the shape {tuple(view.shape)}")
    common_device((value, view), "an assignment")
    check_conversion(value, target)
    if isinstance(value, Array) and _kjit.store(_casts()[target].index, (value,), view, None) is None:
        return view
    return run_map(cast_func(_dtypes.text_of(value), target).pair(), (value,), view)


@functools.cache
def _casts():
    from ._table import CASTS

    return CASTS


def assigned(value, target):
    """Returns an assignment's value as an operand. NumPy converts lists, None, texts and other Python
    objects to the array type, and raises an error for objects that are not numbers."""
    if isinstance(value, Array) or _dtypes.is_scalar(value):
        return value
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return operand(value, "an assignment")
    made = ready_operands((value,))[0] if is_numpys(value) else _numpy().asarray(value)
    if made.dtype.kind in "OSU":
        made = made.astype("f4" if target == "bf16" else BY_TEXT[target].dtype)
    return operand(made, "an assignment")


def check_conversion(value, target):
    """Raises TypeError if the elements are complex and the target type is real."""
    text = _dtypes.text_of(value)
    if KIND[text] == "c" and KIND[target] not in "cb":
        raise TypeError(f"{BY_TEXT[text].name} cannot be stored in an array of {BY_TEXT[target].name}; use x.real")


def typed_for_store(value, target):
    """Returns a Python number as an element of a type. A float is truncated for an integer type, as
    in NumPy. Raises TypeError for a complex number and a real type."""
    kind = KIND[target]
    if target == "bool":
        return typed(bool(value), target)
    if kind in "iu":
        if isinstance(value, complex):
            raise TypeError("a complex number cannot be stored in an array of integers")
        return typed(int(value), target)
    if kind == "f" and isinstance(value, complex):
        raise TypeError("a complex number cannot be stored in an array of floats")
    return typed(value, target)


def cast(x, text):
    """Returns a copy of x with another data type."""
    if isinstance(x, Array) and x.dtype.text in KIND:
        return _kjit.operate(_casts()[text].index, x)
    return run_map(cast_func(_dtypes.text_of(x), text).pair(), (x,), new(tuple(x.shape), text, x.device))


def converted(x, text):
    """Returns x itself if it has the data type, else a converted copy."""
    return x if _dtypes.text_of(x) == text else cast(x, text)


# ---- results computed from indices ----


def from_indices(function, shape, text, arrays, device, out=None):
    """Returns a new array whose element (i, j) is function(i, j, *arrays). arrays: kjit arrays and
    typed numbers. out: an array to fill instead."""
    out = new(shape, text, device) if out is None else out
    made = (*function.pair(), tuple(shape), tuple(arrays))
    _kjit.run_algorithm(_state.context(), "map", ((out,), IDENTITY.pair(), (made,)), device=device)
    return out


def to_indices(function, shape, values, arrays, device):
    """Calls function(i, j, value, *arrays) for each index of the shape. The function stores the
    value. values: broadcast to the shape."""
    target = (*function.pair(), tuple(shape), tuple(arrays))
    _kjit.run_algorithm(_state.context(), "map", ((target,), IDENTITY.pair(), (values,)), device=device)


# ---- reductions ----


def reduce_axes(x, operator, axes, text, keepdims=False, accumulator=None, initial=None):
    """Reduces an array along the tuple `axes` by a kjit operator, and returns a new array of
    type `text`. All reductions end here."""
    if not axes and x.ndim:  # the extension reads an empty tuple as all axes
        line = x.reshape(-1)
        rows = line._view((x.size, 1), (line._strides[0], 1), 0, True)
        return reduce_axes(rows, operator, (1,), text, False, accumulator, initial).reshape(tuple(x.shape))
    options = {} if accumulator is None else {"accumulator": accumulator}
    if initial is not None:
        options["initial"] = initial
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    shape = kept if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    out = new(shape, text, x.device)
    target = out
    if _kjit.is_pending(x):
        from ._fusing import reduced

        found = reduced(x, operator, axes, text, options)
        if found is not None:
            if found.axes != axes:
                target = out._view((), (), 0)
            x, axes = found.operand, found.axes
    _kjit.run_algorithm(_state.context(), "reduce", (target, x, operator), axes=axes, device=out.device, **options)
    return out
