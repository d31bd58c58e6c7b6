"""NumPy's ufuncs for kjit arrays (`__array_ufunc__`): `numpy.sin(a)`, `numpy.add.reduce(a)` and so
on run on the array's device, with NumPy's types and conversions. NumPy's functions are in
_functions."""

import functools

import numpy

from .. import _kjit, _state
from ..frontend import ufuncs
from . import _dtypes, _engine, _folding
from ._engine import Array
from ._errors import DevicesError, ElementTypeError, PromotionError, ShapeError
from ._loops import HAS_FUNC, find_loop
from ._operands import compared_in_range

_NUMBERS = (bool, int, float, complex, numpy.generic)


def is_foreign(x):
    """Returns whether an object belongs to another library with the same protocol. NumPy then asks
    that library."""
    return not isinstance(x, (Array, numpy.ndarray, *_NUMBERS)) and getattr(type(x), "__array_ufunc__", None) is not None


def array_ufunc(self, ufunc, method, *inputs, **keywords):
    """Computes a method of a NumPy ufunc for operands that include a kjit array."""
    out = keywords.pop("out", ())
    out = out if isinstance(out, tuple) else (out,)
    if any(map(is_foreign, (*inputs, *out))):
        return NotImplemented
    if ufunc.__name__ == "matmul" and method == "__call__" and not keywords:
        return _matmul(*inputs, out=out[0] if out else None)
    found = _METHODS.get(method)
    if found is None or not _is_own(ufunc) or _has_bfloat(inputs) and method != "__call__":
        return on_host(f"numpy.{ufunc.__name__}", getattr(ufunc, method), inputs, keywords | ({"out": out} if out else {}))
    return found(ufunc, inputs, out, **keywords)


def _is_own(ufunc):
    return ufunc.__name__ in HAS_FUNC and getattr(numpy, ufunc.__name__, None) is ufunc


def _has_bfloat(inputs):
    return any(isinstance(x, Array) and x.dtype.text == "bf16" for x in inputs)


# ---- operands ----


def operand(x):
    """Returns an operand: a kjit or NumPy array, or a number. Nested lists are converted to a NumPy
    array."""
    return x if isinstance(x, (Array, numpy.ndarray, *_NUMBERS)) else numpy.asarray(x)


def own(x, device):
    """Returns an operand as a kjit array on the device. A NumPy array is used in place if the
    device is the CPU; for a GPU it raises DevicesError."""
    if isinstance(x, Array):
        if x.device != device:
            raise DevicesError(f"the arrays are on {device} and on {x.device}; move one with x.to_device({device!r})")
        return x
    host = numpy.asarray(x)
    if host.ndim and device != "cpu":
        raise DevicesError(f"the operands are an array on {device} and a NumPy array; move one with kjit.numpy.asarray(x, device={device!r})")
    return shared(host, device)


def shared(host, device="cpu"):
    """Returns a kjit array for a NumPy array. The elements are shared, unless they are unaligned, in
    another byte order, or the device is not the first CPU device. Raises PromotionError for types
    that kjit arrays do not have."""
    if _dtypes.dtypes.name_of(host.dtype) not in _dtypes.KIND:
        raise ElementTypeError(f"a NumPy array has the dtype {host.dtype}, and kjit has no arrays of this type")
    if device == "cpu" and host.flags.aligned and host.dtype.isnative:
        return _kjit.wrap_buffer(_state.context(), host)
    return _kjit.copy_of(_state.context(), numpy.require(host, host.dtype.newbyteorder("="), "A"), device)


def device_of(operands, what):
    return _engine.common_device([x for x in operands if isinstance(x, (Array, numpy.ndarray))], what)


class Result:
    """An array that the caller passes for a result. `target` is the kjit array that is written."""

    def __init__(self, given, device, what):
        self.given = given
        if isinstance(given, numpy.ndarray):
            if not given.flags.writeable or not given.flags.aligned or not given.dtype.isnative:
                raise ShapeError(f"{what}: the array for the result must be writeable, aligned and in the byte order of the machine")
            if device != "cpu":
                raise DevicesError(f"{what}: the operands are on {device}, but the result array is a NumPy array")
        elif not isinstance(given, Array):
            raise TypeError(f"{what}: out must be an array, not {type(given).__name__}")
        self.target, self.what = own(given, device), what

    def take(self, made):
        """Copies a computed result to the caller's array, and returns the caller's array. Raises ShapeError for another shape."""
        if tuple(self.target.shape) != tuple(made.shape):
            raise ShapeError(f"{self.what}: the result has the shape {tuple(made.shape)}, but out has the shape {tuple(self.target.shape)}")
        _engine.assign(self.target, made)
        return self.given


def result_of(out, device, what):
    """Returns the Result for out=, which is None, an array or a tuple of one array."""
    if isinstance(out, tuple):
        if len(out) > 1:
            raise TypeError(f"{what}: out has {len(out)} arrays for one result")
        out = out[0] if out else None
    return None if out is None else Result(out, device, what)


# ---- calls ----


def _called(ufunc, inputs, out, *, where=True, casting="same_kind", dtype=None, signature=None, sig=None, order="K", subok=True):
    """Computes a ufunc for the elements of operands that broadcast."""
    name = ufunc.__name__
    if not out and where is True and dtype is None and signature is None and sig is None and casting == "same_kind":
        made = _recorded(ufunc, inputs)
        if made is not None:
            return made
    if len(inputs) != ufunc.nin:
        raise TypeError(f"{name}() takes {ufunc.nin} operands, but {len(inputs)} were given")
    operands = [operand(x) for x in inputs]
    found = compared_in_range(name, operands)
    if found is not None:
        ufunc, operands = getattr(numpy, found[0]), list(found[1])
    given = _engine.Operands(operands, name)
    device, shape = given.device or device_of([*operands, *out], name), given.shape or ()
    outs = [None if x is None else Result(x, device, name) for x in (out or (None,) * ufunc.nout)]
    if "bf16" in given.words:
        return _called_standard(ufunc, operands, outs, where)
    texts = tuple(None if x is None else x.target.dtype.text for x in outs)
    dtype = None if dtype is None else numpy.dtype(dtype)
    loop, results = find_loop(ufunc, tuple(given.words), texts, casting, dtype, _hashable(signature or sig))
    _check_exponents(ufunc, loop, operands)
    values = [_engine.typed(x, text) if _dtypes.is_scalar(x) else _native(x) for x, text in zip(given.values, loop.inputs)]
    mask = None if where is True else _mask(where, device)
    if mask is not None:
        shape = _engine.broadcast([shape, tuple(mask.shape)], f"{name}: operands and where=")
    if any(outs):
        shape = _engine.broadcast([shape, *(tuple(x.target.shape) for x in outs if x)], f"{name}: operands and out=")
    targets = [_engine.new(shape, text, device) if x is None else _checked(x, shape, name) for x, text in zip(outs, results)]
    _engine.run_maps(loop.func(results).pair(), values, targets, mask)
    made = tuple(target if x is None else x.given for x, target in zip(outs, targets))
    return made if len(made) > 1 else made[0]


def _words(inputs):
    """Returns the types of operands as parts of a key; None for other objects than arrays and
    numbers."""
    words = []
    for x in inputs:
        if type(x) is Array:
            words.append(x.dtype.text)
        elif _dtypes.is_scalar(x):
            words.append("?" + _dtypes.scalar_kind(x))
        else:
            words.append(_dtypes.dtypes.name_of(x.dtype) if isinstance(x, numpy.generic) else None)
    return tuple(words)


def _quick_row(ufunc, inputs):
    """Returns the number of the row in _table that the extension may run for a ufunc and operands
    of these types, or -1 if it may run none. A power of integers is excluded, because the exponents
    have to be checked."""
    words = _words(inputs)
    row = _row_of(ufunc, words)
    if row is None or ufunc.__name__ == "power" and words[0] not in ("f32", "f64", "c64", "c128"):
        return -1
    return row.index


def _recorded(ufunc, inputs):
    """Records the namespace's operation as a part of an expression, and returns the result. Returns
    None if the operation's types or results differ from NumPy's."""
    row = _row_of(ufunc, _words(inputs))
    if row is None:
        return None
    if ufunc.__name__ == "power":
        from ._elementwise import check_exponent

        check_exponent(*inputs)
    made = _kjit.operate(row.index, *inputs)
    return None if made is NotImplemented else made


@functools.lru_cache(4096)
def _row_of(ufunc, words):
    """Returns the row of the table that computes the ufunc in the same types, or None."""
    from ._table import BY_UFUNC

    row = BY_UFUNC.get(ufunc.__name__)
    if row is None or row.text is not ufuncs.BY_NAME[ufunc.__name__] or row.count != len(words) or None in words or "bf16" in words:
        return None
    try:
        loop, results = find_loop(ufunc, words, (None,), "same_kind", None, None)
        kernel = row.kernel(words)
    except (TypeError, KeyError):
        return None
    has_types = all(text == kernel.scalar for text in loop.inputs) or ufunc.__name__ == "divide"
    return row if has_types and results == (kernel.result,) else None


def _hashable(signature):
    return tuple(signature) if isinstance(signature, list) else signature


def _native(x):
    if isinstance(x, numpy.ndarray) and not (x.flags.aligned and x.dtype.isnative):
        return numpy.require(x, x.dtype.newbyteorder("="), "A")
    return x


def _mask(where, device):
    mask = own(where, device)
    if mask.dtype.text != "bool":
        raise TypeError(f"where= must be an array of bool, not of {mask.dtype.name}")
    return mask


def _checked(result, shape, what):
    target = result.target
    _engine.check_writable(target, what)
    if tuple(target.shape) != shape:
        raise ShapeError(f"{what}: the result has the shape {shape}, but the array for it has the shape {tuple(target.shape)}")
    return target


def _called_standard(ufunc, operands, outs, where):
    """Computes an operation on bfloat16 arrays, whose type NumPy's ufuncs lack. The result types
    follow the array API standard."""
    from ._table import BY_UFUNC

    row = BY_UFUNC.get(ufunc.__name__)
    if row is None:
        raise PromotionError(f"{ufunc.__name__} does not support arrays of bfloat16; convert with x.astype(kjit.numpy.float32)")
    made = _engine.elementwise(row, operands, outs[0] and outs[0].target, None if where is True else where)
    return outs[0].given if outs[0] else made


def _check_exponents(ufunc, loop, operands):
    """Rejects negative integer exponents of integers, as NumPy does. Exponents on a GPU are not
    checked, because the check would wait; the results are then undefined."""
    if ufunc.__name__ != "power" or _dtypes.KIND[loop.inputs[1]] != "i":
        return
    exponent = operands[1]
    if isinstance(exponent, Array):
        if exponent.device != "cpu":
            return
        exponent = exponent.to_host()
    if numpy.any(numpy.less(exponent, 0)):
        raise ValueError("Integers to negative integer powers are not allowed.")


def _matmul(x1, x2, out):
    from . import _products

    device = device_of([x1, x2], "matmul")
    x1, x2 = promoted(*(own(x, device) for x in (x1, x2)))
    if x1.dtype.text == "bool":
        counts = _products.matmul(_engine.cast(x1, "i32"), _engine.cast(x2, "i32"))
        made = _engine.cast(counts, "bool")
    else:
        made = _products.matmul(x1, x2)
    return made if out is None else Result(out, device, "matmul").take(made)


def promoted(*arrays):
    """Returns kjit arrays, converted to the type that NumPy promotes them to."""
    texts = {x.dtype.text for x in arrays}
    if len(texts) == 1:
        return arrays
    from ._loops import numpy_type

    text = _dtypes.dtypes.name_of(numpy.result_type(*map(numpy_type, texts)))
    return tuple(_engine.converted(x, text) for x in arrays)


def _outer(ufunc, inputs, out, **keywords):
    """Computes the ufunc for each pair of elements of two operands."""
    if len(inputs) != 2 or ufunc.nin != 2:
        raise TypeError(f"{ufunc.__name__}.outer needs a ufunc with two operands")
    first, second = map(operand, inputs)
    rank = getattr(second, "ndim", 0)
    if rank and getattr(first, "ndim", 0):
        first = first.reshape(tuple(first.shape) + (1,) * rank)
    return _called(ufunc, (first, second), out, **keywords)


_METHODS = {"__call__": _called, "outer": _outer}
for _name in ("reduce", "accumulate", "reduceat", "at"):
    _METHODS[_name] = getattr(_folding, _name)


# ---- calls of NumPy on the host ----


def on_host(what, function, args, keywords):
    """Calls a NumPy function for arrays on the CPU, which it reads and writes in place. New
    arrays and scalars in the result are returned as kjit arrays; arrays that were arguments are
    returned as they are."""
    known = {}
    args, keywords = _to_host(what, args, known), _to_host(what, keywords, known)
    return _from_host(function(*args, **keywords), known)


def _to_host(what, x, known):
    if isinstance(x, Array):
        if x.device != "cpu":
            raise PromotionError(f"{what} does not run on {x.device}; call it with x.to_host(), a copy in the host's memory")
        host = numpy.asarray(x)
        if x._is_scalar:
            return host[()]
        known[id(host)] = host, x
        return host
    if isinstance(x, (list, tuple)):
        items = [_to_host(what, item, known) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {name: _to_host(what, item, known) for name, item in x.items()}
    if isinstance(x, _dtypes.dtypes.DType):
        return numpy.dtype(x.dtype)
    return x


def _from_host(x, known):
    if isinstance(x, numpy.ndarray):
        if id(x) in known:
            return known[id(x)][1]
        return shared(x) if _dtypes.dtypes.name_of(x.dtype) in _dtypes.KIND and x.ndim <= _engine.MOST_RANK else x
    if isinstance(x, numpy.generic):
        return _kjit.copy_of(_state.context(), numpy.asarray(x), "cpu")._mark_result() if _dtypes.dtypes.name_of(x.dtype) in _dtypes.KIND else x
    if isinstance(x, (list, tuple)):
        items = [_from_host(item, known) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


_kjit.set_quick_ufuncs(_quick_row)
