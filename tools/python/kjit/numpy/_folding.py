"""The methods of NumPy's ufuncs that combine elements: reduce, accumulate, reduceat and at, for
`__array_ufunc__`.

Associative ufuncs, which include all kjit operators, are reduced in parallel. For any other ufunc,
one thread computes each result and combines the elements in their order.
"""


import numpy

from .. import _kjit, _state
from . import _dtypes, _engine
from ._dtypes import KIND
from ._engine import from_indices, normalize_axes, normalize_axis, to_indices
from ._errors import ShapeError
from ._funcs import Func
from ._loops import Loop, find_loop, fold_loop, numpy_type, stored

# kjit's operator for each ufunc, and the kinds of elements for which the operator and the ufunc have the same results.
_OPERATORS = {
    "add": ("add", "iufc"), "multiply": ("mul", "iufc"), "maximum": ("max", "iuf"), "minimum": ("min", "iuf"), "logical_and": ("all", "b"),
    "logical_or": ("any", "b"), "bitwise_and": ("and", "iu"), "bitwise_or": ("or", "iu"), "bitwise_xor": ("xor", "iu"),
}  # fmt: skip
_ASSOCIATIVE = frozenset(
    "add multiply maximum minimum fmax fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm hypot "
    "logaddexp logaddexp2".split()
)
_SCANS = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}


def _operator(ufunc, loop):
    """Returns the operator of kjit's algorithms for a ufunc and a loop's types. None means that the
    elements have to be combined in their order."""
    name, kinds = _OPERATORS.get(ufunc.__name__, (None, ""))
    if KIND[loop.outputs[0]] in kinds:
        return name
    return (*loop.func(loop.outputs).pair(), True) if ufunc.__name__ in _ASSOCIATIVE else None


def _prepared(ufunc, inputs, out, dtype):
    """Returns three values: the array, converted to the type in which its elements are combined; the
    Loop; and the Result for the caller's array."""
    from . import _protocols

    x = _protocols.operand(inputs[0])
    device = _protocols.device_of([x, *(each for each in out if each is not None)], ufunc.__name__)
    x, result = _protocols.own(x, device), _protocols.result_of(out, device, ufunc.__name__)
    if dtype is None and result is not None and result.target.dtype.text != x.dtype.text and ufunc.__name__ not in _COMPARISONS:
        dtype = numpy.result_type(numpy_type(x.dtype.text), numpy_type(result.target.dtype.text))
    dtype = None if dtype is None else numpy.dtype(dtype)
    loop = fold_loop(ufunc, x.dtype.text, dtype)
    return _engine.converted(x, loop.outputs[0]), loop, result


_COMPARISONS = ("logical_and", "logical_or", "logical_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _finished(made, result):
    return made if result is None else result.take(made)


# ---- reduce ----

_NONE = object()
_MISSING = (_NONE, getattr(numpy, "_NoValue", _NONE))


def reduce(ufunc, inputs, out, axis=0, dtype=None, keepdims=False, initial=_NONE, where=True):
    """Reduces all elements along axes with the ufunc."""
    from . import _protocols

    x, loop, result = _prepared(ufunc, inputs[:1], out or inputs[3:4], inputs[2] if len(inputs) > 2 else dtype)
    axis = inputs[1] if len(inputs) > 1 else axis
    axes = normalize_axes(axis, x.ndim) if x.ndim or axis not in (0, -1) else ()
    if len(axes) > 1:
        # NumPy's reduce raises an error if the ufunc does not allow several axes, because it is not
        # reorderable
        ufunc.reduce(numpy.ones((1, 1), numpy_type(loop.outputs[0])), axis=(0, 1))
    mask = None if where is True else _protocols._mask(where, x.device)
    first = _initial(ufunc, loop, initial, mask)
    made = _reduced(ufunc, loop, x, axes, first, mask)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return _finished(made.reshape(shape) if keepdims else made, result)


def _initial(ufunc, loop, initial, mask):
    """Returns the initial value of a reduction, or None. Raises ValueError if a mask needs one and
    the ufunc has no identity."""
    if any(initial is each for each in _MISSING):
        if mask is None or ufunc.identity is not None:
            return None if mask is None else ufunc.identity
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    return initial


def _reduced(ufunc, loop, x, axes, first, mask):
    text = loop.outputs[0]
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if not axes and mask is None and first is None:
        return _engine.copied_result(x)
    if first is None and any(x.shape[i] == 0 for i in axes):
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        first = ufunc.identity
    operator = _operator(ufunc, loop)
    if operator is None or not axes or 0 in x.shape:
        return _fold_axes(loop, x, axes, shape, first, mask)
    if mask is not None:
        x = _masked(x, mask, first if ufunc.identity is None else ufunc.identity)
    if first is None or isinstance(operator, str) and ufunc.identity == first:
        return _engine.reduce_axes(x, operator, axes, text)
    if operator in ("any", "all"):
        # any and all have no initial value, so the initial value is combined with their result afterwards
        return ufunc(_engine.reduce_axes(x, operator, axes, text), bool(first))
    return _engine.reduce_axes(x, operator, axes, text, initial=_element(first, text))


def _element(value, text):
    """Converts a number to an element as NumPy converts initial values and identities: -1 becomes
    all ones for an unsigned type."""
    with numpy.errstate(all="ignore"):
        return numpy.asarray(value).astype(numpy_type(text))[()]


def _masked(x, mask, value):
    """Returns x with `value` in place of the elements that the mask leaves out."""
    from ._table import ROWS

    shape = _engine.broadcast([tuple(x.shape), tuple(mask.shape)], "the array and where=")
    if shape != tuple(x.shape):
        raise ShapeError(f"where= has the shape {tuple(mask.shape)}, which does not broadcast to {tuple(x.shape)}, the shape of the reduced array")
    value = _element(value, x.dtype.text)
    return _engine.elementwise(ROWS["where"], (mask, x, value))


def _fold_axes(loop, x, axes, shape, first, mask):
    """Combines elements in their order, with one thread for each result."""
    from . import _indexing

    text, size = loop.outputs[0], 1
    for i in axes:
        size *= x.shape[i]
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    line = _indexing.permuted(x, order).reshape((*shape, size))
    arrays = [line]
    if mask is not None:
        whole = _indexing.broadcast_view(mask, tuple(x.shape))
        arrays.append(_indexing.permuted(whole, order).reshape((*shape, size)))
    if first is not None:
        arrays.append(_element(first, text))
    return from_indices(_fold(loop, len(shape), mask is not None, first is not None), shape, text, tuple(arrays), x.device)


def _step(loop, accumulated, element):
    return f"{accumulated} = {stored(loop.call(accumulated, element), loop.outputs[0], loop.outputs[0])}"


def _fold(loop, rank, has_mask, has_first):
    key = "fold", rank, has_mask, has_first
    if key not in loop._funcs:
        names = [f"i{n}" for n in range(rank)]
        given = [*names, "x", *["m"] * has_mask, *["first"] * has_first]
        at, end = (", ".join([*names, place]) for place in ("k", "0"))
        step = _step(loop, "acc", f"x[{at}]")
        step = f"if m[{at}] {{ {step} }}" if has_mask else step
        loop._funcs[key] = Func(
            "fold",
            f"func fold({', '.join(given)}) {{\n  var acc = {'first' if has_first else f'x[{end}]'}\n"
            f"  for k in range({0 if has_first else 1}, x.shape[{rank}]) {{ {step} }}\n  return acc\n}}",
            (loop.text,),
        )
    return loop._funcs[key]


# ---- accumulate, reduceat ----


def accumulate(ufunc, inputs, out, axis=0, dtype=None):
    """Returns the partial reductions with the ufunc along an axis."""
    axis = inputs[1] if len(inputs) > 1 else axis
    x, loop, result = _prepared(ufunc, inputs, out or inputs[3:4], inputs[2] if len(inputs) > 2 else dtype)
    if not x.ndim:
        raise TypeError("cannot accumulate on a scalar")
    axis, text = normalize_axis(axis, x.ndim), loop.outputs[0]
    made = _engine.new(tuple(x.shape), text, x.device)
    name = _SCANS.get(ufunc.__name__)
    if not x.size:
        return _finished(made, result)
    if name and KIND[text] in _OPERATORS[ufunc.__name__][1]:
        _kjit.run_algorithm(_state.context(), "scan", (made, x, name), axes=(axis,), device=x.device)
    else:
        from . import _indexing

        order = [i for i in range(x.ndim) if i != axis] + [axis]
        line, target = _indexing.permuted(x, order), _indexing.permuted(made, order)
        zero = _element(0, text)
        to_indices(_scan(loop, x.ndim - 1), (*line.shape[:-1], 1), zero, (line, target), x.device)
    return _finished(made, result)


def _scan(loop, rank):
    key = "scan", rank
    if key not in loop._funcs:
        names = [f"i{n}" for n in range(rank)]
        at, end = (", ".join([*names, place]) for place in ("k", "0"))
        step = _step(loop, "acc", f"x[{at}]")
        loop._funcs[key] = Func(
            "scan",
            f"func scan({', '.join([*names, 'one', 'v', 'x', 'r'])}) {{\n  var acc = x[{end}]\n  r[{end}] = acc\n"
            f"  for k in range(1, x.shape[{rank}]) {{\n    {step}\n    r[{at}] = acc\n  }}\n}}",
            (loop.text,),
        )
    return loop._funcs[key]


def reduceat(ufunc, inputs, out, indices=None, axis=0, dtype=None):
    """Reduces the elements from each index up to the next index. If the next index is not larger,
    the result is the element at the index."""
    from . import _indexing

    indices = inputs[1] if len(inputs) > 1 else indices
    axis = inputs[2] if len(inputs) > 2 else axis
    x, loop, result = _prepared(ufunc, inputs, out or inputs[4:5], inputs[3] if len(inputs) > 3 else dtype)
    if not x.ndim:
        raise TypeError("cannot reduceat on a scalar")
    axis = normalize_axis(axis, x.ndim)
    places = _places(indices, x, axis, ufunc)
    order = [i for i in range(x.ndim) if i != axis] + [axis]
    line = _indexing.permuted(x, order)
    made = from_indices(_segments(loop, x.ndim - 1), (*line.shape[:-1], places.size), loop.outputs[0], (line, places), x.device)
    from . import _manipulation

    return _finished(_manipulation.moveaxis(made, -1, axis), result)


def _places(indices, x, axis, ufunc):
    """Returns the indices of reduceat as a kjit array. Indices in host memory are checked. Raises
    TypeError if they are not integers."""
    from . import _protocols

    if not isinstance(indices, _engine.Array):
        indices = numpy.asarray(indices)
        if indices.dtype.kind not in "iu" and indices.size:
            raise TypeError(f"{ufunc.__name__}.reduceat: the indices must be integers, not {indices.dtype}")
        return _check_places(_kjit.copy_of(_state.context(), indices.astype("i8"), x.device), indices, x, axis, ufunc)
    indices = _engine.converted(_protocols.own(indices, x.device), "i64")
    return _check_places(indices, indices.to_host() if x.device == "cpu" else None, x, axis, ufunc)


def _check_places(places, host, x, axis, ufunc):
    if places.ndim != 1:
        raise ShapeError(f"{ufunc.__name__}.reduceat: the indices must have one dimension, not {places.ndim}")
    if host is not None and host.size and not (0 <= host.min() and host.max() < x.shape[axis]):
        wrong = int(host[(host < 0) | (host >= x.shape[axis])][0])
        raise IndexError(f"index {wrong} out-of-bounds in {ufunc.__name__}.reduceat [0, {x.shape[axis]})")
    return places


def _segments(loop, rank):
    key = "segments", rank
    if key not in loop._funcs:
        names = [f"i{n}" for n in range(rank)]
        at, start = (", ".join([*names, place]) for place in ("k", "first"))
        step = _step(loop, "acc", f"x[{at}]")
        loop._funcs[key] = Func(
            "segment",
            f"func segment({', '.join([*names, 's', 'x', 'places'])}) {{\n  let first = places[s]\n"
            f"  let last = s + 1 < len(places) ? places[s + 1] : i64(x.shape[{rank}])\n"
            '  if first < 0 or first >= x.shape[%d] or last > x.shape[%d] { raise "an index is out of bounds" }\n' % (rank, rank)
            + f"  var acc = x[{start}]\n  for k in range(first + 1, last) {{ {step} }}\n  return acc\n}}",
            (loop.text,),
        )
    return loop._funcs[key]


# ---- at ----


def at(ufunc, inputs, out):
    """Replaces each selected element by the ufunc of the element and a value, once for each
    occurrence of its index."""
    from . import _protocols

    if out or ufunc.nout != 1 or len(inputs) != 1 + ufunc.nin:
        raise TypeError(f"{ufunc.__name__}.at takes an array, indices{' and values' * (ufunc.nin > 1)}")
    x, key, *rest = inputs
    if not isinstance(x, (_engine.Array, numpy.ndarray)):
        raise TypeError("first operand must be array")
    device = _protocols.device_of([each for each in (x, *rest) if not isinstance(each, (list, tuple))], ufunc.__name__)
    target = _protocols.Result(x, device, f"{ufunc.__name__}.at").target
    _engine.check_writable(target, f"{ufunc.__name__}.at")
    places = _flat_places(target, key)
    values = [_protocols.operand(value) for value in rest]
    text = target.dtype.text
    words = (text, *(_word(value) for value in values))
    loop, _ = find_loop(ufunc, words, (text,), "same_kind", None, None)
    flat = _engine.flat_target(target) if _is_row_major(target) else _engine.copied(target).reshape(-1)
    _update(ufunc, loop, flat, places, values, text, device)
    if not _is_row_major(target):
        _engine.assign(target, flat.reshape(tuple(target.shape)))


def _word(value):
    return "?" + _dtypes.scalar_kind(value) if _dtypes.is_scalar(value) else _dtypes.text_of(value)


def _is_row_major(x):
    expected = 1
    for extent, stride in zip(reversed(x.shape), reversed(x._strides)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def _flat_places(target, key):
    """Returns the row-major positions of the elements that an index selects."""
    from . import _creation

    if target.ndim == 1 and isinstance(key, (_engine.Array, numpy.ndarray)) and key.dtype != "bool" and key.ndim:
        from . import _indexing

        places = key if isinstance(key, _engine.Array) else _kjit.copy_of(_state.context(), key, target.device)
        _indexing.check_bounds(places, target.shape[0], 0)
        return places
    if isinstance(key, tuple):
        key = tuple(numpy.asarray(k) if isinstance(k, list) else k for k in key)
    numbers = _creation.arange(target.size, device=target.device).reshape(tuple(target.shape))
    return numbers[key]


def _update(ufunc, loop, flat, places, values, text, device):
    from . import _indexing, _protocols

    shape = tuple(places.shape)
    if len(loop.inputs) == 1:
        # a ufunc of one operand is applied once for each occurrence of an index, so the update ignores
        # its second operand
        loop, values = Loop(ufunc, (loop.inputs[0],), loop.outputs), [False if text == "bool" else 0]
        func = Func("update", f"func update(x0, x1) {{ return {stored(loop.call('x0'), loop.outputs[0], text)} }}", (loop.text,))
    else:
        func = loop.func((text,))
    value = values[0]
    if _dtypes.is_scalar(value):
        value = _engine.typed(value, loop.inputs[-1] if len(loop.inputs) > 1 else text)
    value = _protocols.own(numpy.asarray(value) if not isinstance(value, _engine.Array) else value, device)
    if _engine.broadcast([shape, tuple(value.shape)], "the indices and the values") != shape:
        raise ShapeError(f"{ufunc.__name__}.at: the values have the shape {tuple(value.shape)}, which does not broadcast to {shape}, the shape of the indexed elements")
    if not places.size:
        return
    wanted = loop.inputs[-1] if len(loop.inputs) > 1 else text
    value = _engine.copied(_indexing.broadcast_view(_engine.converted(value, wanted), shape)).reshape(-1)
    if flat.device != "cpu" and not (ufunc.__name__ in _ASSOCIATIVE and {*loop.inputs, *loop.outputs} == {text}):
        _update_in_order(loop, func, flat, places.reshape(-1), value, text)
        return
    _kjit.run_algorithm(_state.context(), "update_at", (flat, places.reshape(-1), value, (*func.pair(), True)), device=device)


def _update_in_order(loop, func, flat, places, values, text):
    """Applies the updates in the order of the values, with one thread for each element. On a GPU
    kjit_update_at combines the values of an element with each other first, which requires an
    associative operator. On the CPU it applies the values in order."""
    from . import _creation, _orders
    from ._table import ROWS

    places = _engine.converted(places, "i64")
    places = _engine.elementwise(ROWS["where"], (places < 0, places + flat.size, places))
    order = _orders.argsort(places)
    elements = _creation.arange(flat.size, device=flat.device)
    ends = [_orders.searchsorted(places, elements, side=side, sorter=order) for side in ("left", "right")]
    key = "ordered", text
    if key not in loop._funcs:
        loop._funcs[key] = Func(
            "ordered",
            func.text + "\nfunc ordered(e, x, values, order, first, last) {\n  var acc = x[e]\n"
            f"  for k in range(first[e], last[e]) {{ acc = {func.name}(acc, values[order[k]]) }}\n  return acc\n}}",
        )
    made = from_indices(loop._funcs[key], (flat.size,), text, (flat, values, order, *ends), flat.device)
    _engine.assign(flat, made)
