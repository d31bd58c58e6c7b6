"""Indexing and assignment with integers, slices, None, ..., integer arrays, masks and mixtures of
these, as in NumPy."""

import functools

from .. import _kjit, _state
from . import _dtypes, _engine
from ._dtypes import KIND
from ._engine import Array, from_indices, to_indices, typed
from ._errors import BoundsError, DevicesError, ShapeError
from ._funcs import IDENTITY, Func
from ._operands import is_array_like

# Returns an index that may be negative as an index from 0. An index out of bounds raises in the
# thread. For indices in CPU memory the bounds are checked before the launch.
_AT = """func at(i, n) {
  let j = i64(i) < 0 ? i64(i) + n : i64(i)
  if j < 0 or j >= n { raise "an index is out of bounds" }
  return j
}
"""


class Basic:
    """The part of a key that selects a view: the view's extents, and its strides and offset in
    elements.

    `picks` has (dimension of the view, indices) for each integer array in the key. `place` is the
    result's dimension at which the dimensions of these arrays begin.
    """

    def __init__(self):
        self.shape, self.strides, self.offset = [], [], 0
        self.picks, self.place = [], 0

    def add(self, extent, stride):
        self.shape.append(extent)
        self.strides.append(stride)


def _items(x, key):
    """Returns the items in a key with ... expanded: integers, slices, None, bools, and arrays of
    integers or bools. Raises BoundsError for too many indices."""
    items = [_item(x, item) for item in (key if isinstance(key, tuple) else (key,))]
    used = sum(_dimensions(item) for item in items)
    if used > x.ndim:
        raise BoundsError(f"too many indices: the array has {x.ndim} dimensions, but {used} are indexed")
    whole = [slice(None)] * (x.ndim - used)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(places) > 1:
        raise BoundsError("an index has at most one ellipsis ('...')")
    at = places[0] if places else len(items)
    return items[:at] + whole + items[at + 1 :]


def _item(x, item):
    if item is None or item is Ellipsis or type(item) in (int, slice, bool):
        return item
    if isinstance(item, (Array, *_engine.LISTS)) or hasattr(item, "__array_interface__"):
        return _array_item(x, item)
    if isinstance(item, slice):
        return item
    if hasattr(item, "__index__"):
        return item.__index__()
    raise BoundsError(
        f"an index must be an integer, a slice, ..., None or an array of integers or bools, not {type(item).__name__}"
    )


def _array_item(x, item):
    if not isinstance(item, Array):
        import numpy

        if isinstance(item, _engine.LISTS) and not item:
            item = numpy.empty(0, "i8")
        host = numpy.asarray(item)
        if host.dtype.kind not in "biu":
            raise BoundsError(f"an index array must have integers or bools, not {host.dtype}")
        if not host.ndim:
            return bool(host) if host.dtype.kind == "b" else int(host)
        return _kjit.copy_of(_state.context(), host, x.device)
    if KIND.get(item.dtype.text) not in ("b", "i", "u"):
        raise BoundsError(f"an index array must have integers or bools, not {item.dtype.name}")
    if not item.ndim:
        return bool(item.item()) if item.dtype.text == "bool" else int(item.item())
    if item.device != x.device:
        raise DevicesError(f"the indices are on {item.device}, but the array is on {x.device}")
    return item


def _is_mask(item):
    return isinstance(item, Array) and item.dtype.text == "bool"


def _dimensions(item):
    """Returns the number of dimensions that an item indexes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.ndim if _is_mask(item) else 1


def position(index, extent, axis):
    """Returns an index as a non-negative number. Raises BoundsError if the index is out of bounds."""
    found = index + extent if index < 0 else index
    if not 0 <= found < extent:
        raise BoundsError(f"index {index} is out of bounds for axis {axis} with size {extent}")
    return found


def _read(x, key):
    """Returns the Basic for a key."""
    made = Basic()
    items = _items(x, key)
    has_arrays = any(isinstance(item, (Array, bool)) for item in items)
    axis = 0
    arranged = []  # for each item, whether it is an array index
    for item in items:
        by_array = isinstance(item, (Array, bool)) or has_arrays and isinstance(item, int)
        if by_array and True not in arranged:
            made.place = len(made.shape)
        arranged.append(by_array)
        axis = _add_item(made, x, item, axis)
    first, last = (arranged.index(True), len(arranged) - arranged[::-1].index(True)) if True in arranged else (0, 0)
    if not all(arranged[first:last]):
        made.place = 0
    return made


def _add_item(made, x, item, axis):
    """Adds an item to a Basic, and returns the next axis of x."""
    if item is None:
        made.add(1, 0)
        return axis
    if isinstance(item, bool):
        made.picks.append((len(made.shape), _engine.cast(_full_line(int(item), x.device), "i64"), False))
        made.add(1, 0)
        return axis
    if _is_mask(item):
        extents = tuple(x.shape[axis : axis + item.ndim])
        if any(n not in (m, 0) for n, m in zip(item.shape, extents)):
            raise BoundsError(f"a mask of the shape {tuple(item.shape)} does not fit dimensions of the shape {extents}")
        for index in nonzero(item):
            made.picks.append((len(made.shape), index, False))
            made.add(x.shape[axis], x._strides[axis])
            axis += 1
        return axis
    extent, stride = x.shape[axis], x._strides[axis]
    if isinstance(item, Array):
        made.picks.append((len(made.shape), item, True))
        made.add(extent, stride)
    elif isinstance(item, slice):
        first, last, step = item.indices(extent)
        count = len(range(first, last, step))
        made.offset += first * stride if count else 0
        # with a step beyond the extent, there is at most one element, so the stride is arbitrary
        made.add(count, stride * step if abs(step) <= extent else stride)
    else:
        made.offset += position(item, extent, axis) * stride
    return axis + 1


def _full_line(count, device):
    made = _engine.new((count,), "bool", device)
    _engine.assign(made, False)
    return made


# ---- selections by arrays ----


@functools.cache
def _gather(picks, broadcast, rest):
    """Returns the func that reads an element at given indices."""
    given, at = _place(picks, broadcast, rest)
    return Func("take", f"{_AT}func take({given}) {{ return x[{at}] }}")


@functools.cache
def _scatter(picks, broadcast, rest):
    """Returns the func that stores an element at given indices."""
    given, at = _place(picks, broadcast, rest, "v, ")
    return Func("put", f"{_AT}func put({given}) {{ x[{at}] = v }}")


def _place(picks, broadcast, rest, value=""):
    places, others = [f"b{i}" for i in range(broadcast)], [f"r{i}" for i in range(rest)]
    indices = [f"j{i}" for i in range(picks)]
    at = [f"at({name}[{', '.join(places)}], x.shape[{i}])" for i, name in enumerate(indices)]
    return f"{', '.join(places + others)}, {value}x, {', '.join(indices)}", ", ".join(at + others)


class Selection:
    """The elements that integer arrays select.

    source: a view of the array; its first dimensions are the indexed ones

    indices: the index arrays, which all have the same shape

    shape: the result's shape

    order: a permutation of the result's dimensions that puts the dimensions of the index arrays first

    may_repeat: whether an element can be selected twice; a mask selects each element once
    """

    def __init__(self, x, made):
        view = x._view(made.shape, made.strides, made.offset)
        axes = [axis for axis, _, _ in made.picks]
        rest = [axis for axis in range(view.ndim) if axis not in axes]
        self.source = permuted(view, axes + rest)
        try:
            common = _engine.broadcast([tuple(index.shape) for _, index, _ in made.picks], "shape mismatch: indices")
        except ShapeError as error:
            raise BoundsError(str(error)) from None
        self.indices = [broadcast_view(index, common) for _, index, _ in made.picks]
        self.common, self.rest = common, tuple(view.shape[axis] for axis in rest)
        before = self.rest[: made.place]
        self.shape = before + common + self.rest[made.place :]
        inner = list(range(made.place, made.place + len(common)))
        self.order = inner + [i for i in range(len(self.shape)) if i not in inner]
        self.may_repeat = any(is_given for _, _, is_given in made.picks)
        for axis, index, is_given in made.picks:
            if is_given:
                check_bounds(index, view.shape[axis], axis)

    def _words(self):
        return len(self.indices), len(self.common), len(self.rest)

    def read(self):
        """Returns a new array with the selected elements."""
        out = _engine.new(self.shape, self.source.dtype.text, self.source.device)
        if not out.size:
            return out
        ordered = permuted(out, self.order)
        arguments = (self.source, *self.indices)
        from_indices(_gather(*self._words()), ordered.shape, None, arguments, out.device, ordered)
        return out

    def write(self, value):
        """Stores a number, or an array that broadcasts, in the selected elements."""
        target = self.source.dtype.text
        if _dtypes.is_scalar(value):
            values = _engine.typed_for_store(value, target)
        else:
            values = self._values(value, target)
        if not _size(self.shape):
            return
        if self.may_repeat and self.source.device == "cpu" and isinstance(values, Array):
            return self._write_in_order(values)
        shape = self.common + self.rest
        to_indices(_scatter(*self._words()), shape, values, (self.source, *self.indices), self.source.device)

    def _write_in_order(self, values):
        """Stores values on the CPU by NumPy, one after the other: the last value for an index remains. Threads of a kernel
        store in any order."""
        source = self.source
        if source.dtype.text == "bf16":  # a type that NumPy has only with another package; the bits are copied
            source, values = source.view("u16"), values.view("u16")
        _engine.host_view(source)[tuple(map(_engine.host_view, self.indices))] = _engine.host_view(values)

    def _values(self, value, target):
        from . import _creation

        value = value if isinstance(value, Array) else _creation.asarray(value, device=self.source.device)
        if value.device != self.source.device:
            raise DevicesError(f"the values are on {value.device}, but the array is on {self.source.device}")
        _engine.check_conversion(value, target)
        value = _engine.copied(value) if value._relation(self.source) and value.dtype.text == target else _engine.converted(value, target)
        shape = tuple(value.shape)
        while len(shape) > len(self.shape) and shape[0] == 1:
            value, shape = value[0], shape[1:]
        if _engine.broadcast([self.shape, shape], "indexed elements and values for them") != self.shape:
            raise ShapeError(f"values of the shape {shape} do not fit indexed elements of the shape {self.shape}")
        return permuted(broadcast_view(value, self.shape), self.order)


def _size(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


def check_bounds(index, extent, axis):
    """Raises BoundsError if an index array on the CPU has an index out of bounds. On a GPU the
    thread that reads the index raises instead."""
    if index.device != "cpu" or not index.size:
        return
    low, high = (int(_engine.reduce_axes(index, word, tuple(range(index.ndim)), index.dtype.text).item()) for word in ("min", "max"))
    if low < -extent or high >= extent:
        raise BoundsError(f"index {low if low < -extent else high} is out of bounds for axis {axis} with size {extent}")


def permuted(x, order):
    made = x._view([x.shape[i] for i in order], [x._strides[i] for i in order], 0)
    return made._mark_result() if x._is_scalar else made


def broadcast_view(x, shape):
    """Returns a read-only view of x, broadcast to a shape."""
    missing = len(shape) - x.ndim
    strides = [0] * missing + [s if n == m else 0 for s, n, m in zip(x._strides, x.shape, shape[missing:])]
    return x._view(shape, strides, 0, True)


# ---- masks ----


def _computed(algorithm, x, text, arguments):
    """Returns an algorithm's operand. A pending array is computed in the same pass if the algorithm
    is compiled for it. text: the type of the algorithm's other elements; arguments(operand):
    returns the algorithm's arguments."""
    if not _kjit.is_pending(x):
        return x
    from ._fusing import computed

    device = x.device

    def prepare(operand):
        _kjit.run_algorithm(_state.context(), algorithm, arguments(operand), device=device, plan=True)

    operand = computed(x, (algorithm, text), prepare)
    return x if operand is None else operand


def nonzero_flat(x):
    """Returns the indices of the nonzero elements in the flattened array. The function waits until
    the device has counted them."""
    found, count = _engine.new((x.size,), "i64", x.device), _engine.new((), "i64", x.device)
    if not x.size:
        return found
    operand = _computed("nonzero", x, x.dtype.text, lambda operand: (found, count, operand))
    _kjit.run_algorithm(_state.context(), "nonzero", (found, count, operand), device=found.device)
    return found._view((int(count.item()),), (1,), 0)


_PART = Func("part", "func part(i, flat, stride, n) { return flat[i] // stride % n }")


def nonzero(x):
    """Returns the indices of the nonzero elements, one array for each dimension."""
    flat = nonzero_flat(x)
    if x.ndim == 1:
        return (flat,)
    result, stride = [], 1
    for extent in reversed(x.shape):
        arguments = flat, typed(stride, "i64"), typed(extent, "i64")
        result.append(from_indices(_PART, tuple(flat.shape), "i64", arguments, x.device))
        stride *= extent
    return tuple(reversed(result))


def _only_mask(x, key):
    """Returns the mask if the key is a single bool array, else None."""
    if isinstance(key, tuple):
        key = key[0] if len(key) == 1 else None
    if isinstance(key, Array) and key.dtype.text == "bool" and key.ndim:
        item = _array_item(x, key)
        return item if tuple(item.shape) == tuple(x.shape[: item.ndim]) else None
    return None


def _selected(x, mask):
    """Returns the elements for which a mask of the same shape is true. The function waits until the
    device has counted them."""
    found, count = _engine.new((x.size,), x.dtype.text, x.device), _engine.new((), "i64", x.device)
    if not x.size:
        return found
    if _kjit.is_pending(mask):
        _kjit.compute(x)
        mask = _computed("select", mask, x.dtype.text, lambda operand: (found, count, x, operand))
    _kjit.run_algorithm(_state.context(), "select", (found, count, x, mask), device=found.device)
    return found._view((int(count.item()),), (1,), 0)


# ---- few elements ----

# Up to this number of indices (_FEW) or of mask elements (_FEW_OF_MASK), NumPy reads and writes
# elements on the CPU in less time than kjit's kernels. If x has several dimensions, an index can
# select a whole row, so the number of indices times the size of x must not exceed _MOST_TRIED.
_FEW, _FEW_OF_MASK, _MOST_TRIED = 2**14, 2**12, 2**20


def _is_small(x, count, text):
    return count <= _FEW_OF_MASK if text == "bool" else count <= _FEW and (x.ndim == 1 or count * x.size <= _MOST_TRIED)


def _is_small_host(x, item):
    """Returns whether an item in a key is a small NumPy array or scalar."""
    return hasattr(item, "__array_interface__") and _is_small(x, item.size, item.dtype.name)


def _few_key(x, key):
    """Returns a key with arrays in NumPy's form if x and the key have few elements on the CPU. Returns
    None for other keys, and for keys with expressions that are not computed yet."""
    if x.device != "cpu" or x.dtype.text not in KIND or x.dtype.text == "bf16":
        return None
    items, has_arrays = [], False
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, Array):
            if item.device != "cpu" or not _is_small(x, item.size, item.dtype.text) or _kjit.is_pending(item):
                return None
            item = _engine.host_view(item)
        elif isinstance(item, _engine.LISTS):
            if not _is_small(x, len(item), "bool"):
                return None
        elif not (item is None or item is Ellipsis or isinstance(item, (int, slice)) or _is_small_host(x, item)):
            return None
        has_arrays = has_arrays or isinstance(item, _engine.LISTS) or getattr(item, "ndim", 0) > 0
        items.append(item)
    return (tuple(items) if isinstance(key, tuple) else items[0]) if has_arrays else None


def _few_by_numpy(x, key):
    """Returns the few elements that a key with arrays selects, or None if the general functions are to
    select them. These functions report errors."""
    key = _few_key(x, key)
    if key is None:
        return None
    try:
        found = _engine.host_view(x)[key]
    except (IndexError, ValueError, TypeError):
        return None
    if found.ndim > _engine.MOST_RANK:
        return None
    made = _engine.new(found.shape, x.dtype.text, "cpu")
    if found.size:
        _engine.host_view(made)[...] = found
    return made


def _is_few_of_host(value, x):
    """Returns whether a value is a NumPy array with few numbers, which can be stored in x."""
    if not hasattr(value, "__array_interface__") or value.size > _FEW or value.dtype.kind not in "biufc":
        return False
    return value.dtype.kind != "c" or KIND.get(x.dtype.text) == "c"


def _few_set_by_numpy(x, key, value):
    """Stores few elements for a key with arrays. Returns True if the elements are stored. Otherwise
    the general functions have to store them or to report errors."""
    if not hasattr(value, "dtype") and is_array_like(value) and hasattr(value, "__len__") and len(value) <= _FEW:
        import numpy

        try:
            value = numpy.asarray(value)
        except (ValueError, TypeError):  # such as lists of different lengths, which the general functions report
            return False
    if isinstance(value, Array):
        if value.device != "cpu" or value.size > _FEW or value.dtype.text not in KIND or value.dtype.text == "bf16":
            return False
        if KIND[value.dtype.text] == "c" and KIND.get(x.dtype.text) != "c" or _kjit.is_pending(value):
            return False
    elif not _dtypes.is_scalar(value) and not _is_few_of_host(value, x):
        return False
    if not _dtypes.is_scalar(value) and KIND[_dtypes.text_of(value)] == "f" and KIND[x.dtype.text] in "iu":
        return False  # the results of NumPy's conversion depend on the machine if a float is out of range
    key = _few_key(x, key)
    if key is None:
        return False
    if isinstance(value, Array):
        value = _engine.host_view(value)
    elif _dtypes.is_scalar(value):  # versions of NumPy differ in the treatment of integers that are out of range
        value = _engine.typed_for_store(value, x.dtype.text)
    try:
        _engine.host_view(x)[key] = value
    except (IndexError, ValueError, TypeError, OverflowError):
        return False
    return True


# ---- __getitem__ and __setitem__ ----


def get_item(self, key):
    """Returns the elements for a key with arrays, or reports what is wrong with a key."""
    found = _few_by_numpy(self, key)
    if found is not None:
        return found
    mask = _only_mask(self, key)
    if mask is not None and mask.ndim == self.ndim:
        return _selected(self, mask)
    made = _read(self, key)
    if not made.picks:
        view = self._view(made.shape, made.strides, made.offset)
        is_element = not view.ndim and not _has_ellipsis(key)
        return _engine.copied(view)._mark_element() if is_element else view
    return Selection(self, made).read()


def _has_ellipsis(key):
    return any(item is ... for item in (key if type(key) is tuple else (key,)))


def set_item(self, key, value):
    _engine.check_writable(self)
    view = self._basic(key)
    if view is not None:
        _engine.assign(view, value)
        return
    if _few_set_by_numpy(self, key, value):
        return
    value = _engine.assigned(value, self.dtype.text) if self.dtype.text in _dtypes.BY_TEXT else value
    mask = _only_mask(self, key)
    if mask is not None and (_dtypes.is_scalar(value) or getattr(value, "size", 0) == 1 and not getattr(value, "ndim", 1)):
        return _set_masked(self, mask, value)
    made = _read(self, key)
    if made.picks:
        Selection(self, made).write(value)
    else:
        _engine.assign(self._view(made.shape, made.strides, made.offset), value)


def _set_masked(x, mask, value):
    """Stores a value where a mask over the first dimensions of x is true."""
    target = x.dtype.text
    if _dtypes.is_scalar(value):
        value = _engine.typed_for_store(value, target)
    else:
        _engine.check_conversion(value, target)
        value = _engine.operand(value, "an assignment")
        if isinstance(value, Array):
            value = _engine.copied(value)
    rest = x.ndim - mask.ndim
    if not rest and x.size and _kjit.is_pending(mask) and not isinstance(value, Array):
        from ._table import ROWS

        # one pass computes the pending mask as well as the result
        _engine.elementwise(ROWS["where"], (mask, value, x), x)
        return
    mask = mask._view((*mask.shape, *([1] * rest)), (*mask._strides, *([0] * rest)), 0)
    if x.size:
        pair = IDENTITY.pair() if _dtypes.is_scalar(value) or not hasattr(value, "dtype") else _engine.cast_func(_dtypes.text_of(value), target).pair()
        _engine.run_map(pair, (value,), x, broadcast_view(mask, tuple(x.shape)))


# ---- functions ----


def take(x, indices, /, axis=None):
    """Returns the elements, or rows, of x at the indices along an axis. indices: an array of
    integers; negative indices count from the end. axis=None flattens x first."""
    if axis is None:
        if x.ndim != 1:
            x = x.reshape(-1)
        axis = 0
    axis = _engine.normalize_axis(axis, x.ndim)
    if isinstance(indices, Array) and not indices.ndim:
        return take(x, indices.reshape((1,)), axis=axis).reshape(tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :]))
    return get_item(x, (slice(None),) * axis + (indices,))


def take_along_axis(x, indices, /, *, axis=-1):
    """For each element of indices, returns the element of x with that index along the axis and the
    same indices in the other dimensions."""
    axis = _engine.normalize_axis(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(f"take_along_axis: x has {x.ndim} dimensions, but indices has {indices.ndim}")
    own, given = list(x.shape), list(indices.shape)
    own[axis] = given[axis] = 1
    shape = list(_engine.broadcast([tuple(own), tuple(given)], "take_along_axis: x and indices"))
    own, given = list(shape), list(shape)
    own[axis], given[axis] = x.shape[axis], indices.shape[axis]
    check_bounds(indices, x.shape[axis], axis)
    return from_indices(
        _along(x.ndim, axis), tuple(given), x.dtype.text, (broadcast_view(x, tuple(own)), broadcast_view(indices, tuple(given))), x.device
    )


@functools.cache
def _along(rank, axis):
    names = [f"i{n}" for n in range(rank)]
    at = list(names)
    at[axis] = f"at(j[{', '.join(names)}], x.shape[{axis}])"
    return Func("along", f"{_AT}func along({', '.join(names)}, x, j) {{ return x[{', '.join(at)}] }}")
