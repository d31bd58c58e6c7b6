"""The methods of kjit.Array, which `attach` adds to the class. The extension itself implements the
operators except powers and products."""

import builtins

from .. import _kjit, _state
from .._arrays import array
from .._errors import CLASSES
from . import _beyond, _creation, _dtypes, _engine
from ._elementwise import FUNCTIONS
from ._engine import Array, elementwise, quick
from ._errors import ShapeError
from ._operands import operator_operands
from ._table import CASTS, ROWS

_EXPONENTS = {2: "square", 0.5: "sqrt", 1: "positive"}


NoDeviceError = CLASSES["KJIT_ERROR_NO_DEVICE"]


def _power(self, other):
    if type(other) in (int, float) and other in _EXPONENTS and _dtypes.KIND[self.dtype.text] in "fc":
        return elementwise(ROWS[_EXPONENTS[other]], (self,))
    found = operator_operands("__rpow__", (self, other))
    return NotImplemented if found is None else FUNCTIONS["pow"](*found)


def _reflected_power(self, other):
    found = operator_operands("__pow__", (other, self))
    return NotImplemented if found is None else FUNCTIONS["pow"](*found)


def _power_in_place(self, other):
    if self._is_scalar:  # `x **= y` binds x to a new array, as in NumPy
        return _power(self, other)
    found = operator_operands("__rpow__", (self, other))
    return NotImplemented if found is None else FUNCTIONS["pow"](*found, self)


def _divided(self, other):
    found = operator_operands("__rdivmod__", (self, other))
    return NotImplemented if found is None else (found[0] // found[1], found[0] % found[1])


def _reflected_divided(self, other):
    found = operator_operands("__divmod__", (other, self))
    return NotImplemented if found is None else (found[0] // found[1], found[0] % found[1])


# ---- conversions to Python numbers ----


@quick("bool")
def _to_bool(self):
    if self.size != 1:
        raise ValueError(
            f"the truth value of an array of {self.size} elements is ambiguous; use kjit.numpy.any(x) or kjit.numpy.all(x)"
        )
    return bool(self.item())


@quick("float")
def _to_float(self):
    return float(_one_number(self, "float"))


@quick("int")
def _to_int(self):
    return int(_one_number(self, "int"))


def _to_complex(self):
    return complex(_one_number(self, "complex"))


def _rounded(self, digits=None):
    """Implements `round(x)`, an int, and `round(x, digits)`, an array, for arrays without dimensions,
    which are scalars in NumPy."""
    if self.ndim:
        raise TypeError("round() takes an array without dimensions; x.round(decimals) rounds each element")
    return builtins.round(self.item()) if digits is None else self.round(digits)


def _one_number(self, what):
    if self.size != 1:
        raise TypeError(f"an array of {self.size} elements does not convert to {what}: only an array of one element does")
    value = self.item()
    if isinstance(value, complex) and what != "complex":
        raise TypeError(f"a complex number does not convert to {what}")
    return value


def _to_index(self):
    if self.ndim or _dtypes.KIND[self.dtype.text] not in "iu":
        raise TypeError(f"only an array of integers without dimensions can be an index, not {self.dtype.name}{list(self.shape)}")
    return int(self.item())


# ---- conversions, copies, devices ----


def astype(x, dtype, /, *, copy=True, device=None):
    """Returns a copy of the elements with another data type. copy=False returns the array itself if
    it already has the type. Raises TypeError if complex numbers would have to become real ones."""
    text = _dtypes.dtype_of(dtype).text
    if _dtypes.KIND[x.dtype.text] == "c" and _dtypes.KIND[text] not in "cb":
        raise TypeError("astype: complex numbers cannot be converted to real ones; use x.real")
    if device is not None and _engine.device_name(device) != x.device:
        x = to_device(x, device)
    if x.dtype.text == text and not copy:
        return x
    made = _engine.copied(x) if x.dtype.text == text else _engine.cast(x, text)
    # operators such as += change the copy of an array in place, even if it has no dimensions
    return made._mark_result() if x._is_scalar else made._mark_array()


@quick("astype")
def _astype_method(self, dtype, order="K", casting="unsafe", subok=True, copy=True, *, device=None):
    """Returns the elements converted to a data type, like `kjit.numpy.astype`. order and casting have
    NumPy's meaning: TypeError reports a conversion that casting does not permit."""
    if casting != "unsafe" and not _dtypes.can_convert(self.dtype, _dtypes.dtype_of(dtype), casting):
        raise TypeError(f"cannot cast an array from {self.dtype.name} to {_dtypes.dtype_of(dtype).name} by the rule {casting!r}")
    made = astype(self, dtype, copy=copy, device=device)
    return _creation.asarray(made, order=_order_of(self, order)) if made.ndim > 1 else made


def _order_of(x, order):
    """Returns "C" or "F": the order that a copy of x has, given NumPy's order argument."""
    from . import _manipulation

    if order not in ("C", "F", "K", "A"):
        raise ValueError(f'order must be "C", "F", "K" or "A", not {order!r}')
    return "F" if order == "F" or order != "C" and _manipulation.is_column_major(x, "A") else "C"


def to_device(self, device, /, *, stream=None):
    """Returns the array itself if it is on the device, else a copy on the device."""
    place = _engine.device_name(device)
    return self if place == self.device else _kjit.copy_of(_state.context(), self, place)


@quick("copy")
def copy(self, order="C"):
    """Returns a new array with the same elements, in row-major order. order: "F" means column-major
    order; "K" and "A" keep the order of the array."""
    made = _engine.copied(self.T).T if _order_of(self, order) == "F" else _engine.copied(self)
    return made._mark_result() if self._is_scalar else made


@quick("fill")
def fill(self, value):
    """Sets every element to a number."""
    _engine.assign(self, value)


@quick("item")
def item(self, *index):
    """Returns one element as a Python number: the only element in the array, or the element at an
    index. A single integer counts in row-major order."""
    if not index:
        return _one_item(self)
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    return _one_item(_flat(self)[index[0]] if len(index) == 1 else self[tuple(index)])


def _flat(x):
    from . import _manipulation

    return x if x.ndim == 1 else _manipulation.ravel(x)


def tobytes(self, order="C"):
    """Returns the bytes of the elements in row-major order, or for order="F" in column-major order."""
    return self.to_host().tobytes(order)


def tofile(self, fid, sep="", format="%s"):
    """Writes the elements in row-major order to a file, as `numpy.ndarray.tofile` does."""
    self.to_host().tofile(fid, sep, format)


def get(self):
    """Returns a NumPy array with a copy of the elements, like `to_host`."""
    return self.to_host()


def dumps(self):
    """Returns the pickled array as bytes."""
    import pickle

    return pickle.dumps(self)


def dump(self, file):
    """Pickles the array to a file, which is a path or is open for writing."""
    if hasattr(file, "write"):
        file.write(dumps(self))
        return
    with open(file, "wb") as opened:
        opened.write(dumps(self))


def conjugate(self):
    """Returns the complex conjugates. A real array returns itself."""
    return elementwise(ROWS["conj"], (self,)) if _dtypes.KIND[self.dtype.text] == "c" else self


def _reversed(self):
    return iter(self[::-1])


def partition(self, kth, axis=-1, kind="introselect", order=None):
    """Reorders the array in place so that the elements at the indices kth are as in the sorted array. Smaller elements precede
    them, and larger elements follow them."""
    _engine.assign(self, _beyond.method("partition")(self, kth, axis, kind, order))


def tolist(self):
    """Returns the elements as nested lists of Python numbers, or as one number for an array without
    dimensions."""
    return self.to_host().tolist()


@quick("iterate")
def _iterate(self):
    if not self.ndim:
        raise TypeError("an array without dimensions cannot be iterated over")
    return (self[i] for i in range(self.shape[0]))


def _contains(self, value):
    from . import _reductions

    return bool(_reductions.any(elementwise(ROWS["equal"], (self, value))))


def _namespace(self, /, *, api_version=None):
    """Returns the namespace of the array's functions, kjit.numpy."""
    from . import namespace

    return namespace(api_version)


@quick("array_ufunc")
def _array_ufunc(self, ufunc, method, *inputs, **keywords):
    """Computes a NumPy ufunc on the array's device."""
    from ._protocols import array_ufunc

    return array_ufunc(self, ufunc, method, *inputs, **keywords)


@quick("array_function")
def _array_function(self, func, types, args, kwargs):
    """Computes a NumPy function on the array's device."""
    from ._functions import array_function

    return array_function(self, func, types, args, kwargs)


def _pickled(self):
    if self.ndim > 1 and _order_of(self, "K") == "F":
        return _unpickled, (self.T.to_host(), self.device, True)
    return _unpickled, (self.to_host(), self.device, False, self._is_scalar)


def _unpickled(elements, device, is_transposed=False, is_scalar=False):
    """Returns an unpickled array on its original device, or on the default device if the original
    one does not exist. is_transposed: the pickled array had column-major order. is_scalar: it was a
    result without dimensions."""
    try:
        made = array(elements, device=device)
    except NoDeviceError:
        made = array(elements)
    return made.T if is_transposed else made._mark_result() if is_scalar else made


def _copied(self):
    return copy(self, "K")


def _deep_copied(self, memo):
    return copy(self, "K")


_refused_array = Array.__array__


def _as_numpys(self, dtype=None, *, copy=None):
    """Returns a NumPy array that shares an array's memory on the CPU. For an array on a GPU it
    raises TypeError."""
    import numpy

    if self.device != "cpu" or self.dtype.text == "bf16":
        return _refused_array(self)
    if _kjit.take_interrupt(self):  # Ctrl-C was pressed while numpy.asarray requested a buffer
        raise KeyboardInterrupt
    try:
        elements = memoryview(self)
    except KeyboardInterrupt:
        _kjit.take_interrupt(self)
        raise
    made = numpy.asarray(elements)
    if copy is False and dtype is not None and made.dtype != dtype:
        raise ValueError(f"numpy.asarray: the conversion from {made.dtype} to {dtype} needs a copy, but copy is False")
    return made.copy() if copy and (dtype is None or made.dtype == dtype) else made if dtype is None else made.astype(dtype, copy=False)


def compress(self, condition, axis=None, out=None):
    """Returns the elements, or the rows along an axis, for which the condition is true."""
    return _beyond.by_numpy(_beyond._numpy().compress, (condition, self, axis, out), {})


def clip(self, min=None, max=None, out=None):
    """Limits each element to the range from min to max."""
    return _beyond.by_numpy(_beyond._numpy().clip, (self, min, max, out), {})


def setflags(self, write=None):
    """Makes the array read-only if write is False. Other arrays with the same memory stay writable."""
    if write is not None:
        Flags(self).writeable = write


class Flags:
    """The memory layout of an array, like `numpy.ndarray.flags`."""

    def __init__(self, array):
        object.__setattr__(self, "_array", array)

    @property
    def c_contiguous(self):
        from ._manipulation import is_dense

        return is_dense(self._array)

    @property
    def f_contiguous(self):
        from ._manipulation import is_dense

        return is_dense(self._array, order="F")

    @property
    def writeable(self):
        return not self._array.is_read_only

    aligned = True
    contiguous, fortran = c_contiguous, f_contiguous
    forc = property(lambda self: self.c_contiguous or self.f_contiguous)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)

    def __setattr__(self, name, value):
        if name != "writeable":
            raise AttributeError(f"flag {name!r} of a kjit array cannot be set")
        if not value:
            self._array._protect()
        elif self._array.is_read_only:
            raise ValueError("a read-only array cannot be made writeable; copy it")

    def __getitem__(self, name):
        names = {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable", "A": "aligned"}
        found = getattr(self, names.get(name, str(name).lower()), None)
        if not isinstance(found, bool):
            raise KeyError("Unknown flag")
        return found

    def __setitem__(self, name, value):
        setattr(self, "writeable" if name == "W" else name.lower(), value)

    def __repr__(self):
        return "".join(f"  {name.upper()} : {self[name]}\n" for name in ("c_contiguous", "f_contiguous", "writeable", "aligned"))


class Flat:
    """The elements in an array in row-major order, like `numpy.ndarray.flat`."""

    def __init__(self, array):
        self.base = array

    def _line(self):
        """Returns (all elements in one dimension, whether the result is a view of the array)."""
        from . import _manipulation

        return _flat(self.base), _manipulation.is_dense(self.base)

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return iter(self._line()[0])

    def copy(self):
        """Returns the elements as a new array of one dimension."""
        return _engine.copied(self._line()[0])

    def __getitem__(self, key):
        found = self._line()[0][key]
        return _engine.copied(found) if found.ndim else found

    def __setitem__(self, key, value):
        line, is_view = self._line()
        _engine.check_writable(self.base)
        line = line if is_view else _engine.copied(line)
        line[key] = value
        if not is_view:
            _engine.assign(self.base, line.reshape(tuple(self.base.shape)))


def _set_flat(self, value):
    from . import _manipulation

    value = _creation.asarray(value, device=self.device) if not isinstance(value, Array) else value
    Flat(self)[...] = _manipulation.reshape(_beyond.method("resize")(value, (self.size,)), (self.size,)) if value.size != 1 else value.item()


def _real(self):
    """The real parts: a view of a complex array, or a real array itself."""
    text = _dtypes.PART.get(self.dtype.text)
    return self if text is None else self._part(text, 0)


def _imaginary(self):
    """The imaginary parts: a view of a complex array, or read-only zeros for a real array."""
    text = _dtypes.PART.get(self.dtype.text)
    if text is not None:
        return self._part(text, 1)
    made = _creation.zeros_like(self)
    if self._is_scalar:
        return made._mark_result()
    made._protect()
    return made


def _set_real(self, value):
    _engine.assign(_real(self), value)


def _set_imaginary(self, value):
    if self.dtype.text not in _dtypes.PART:
        raise TypeError("an array of real numbers has no imaginary parts to set")
    _engine.assign(_imaginary(self), value)


def view(self, dtype=None):
    """Returns a new array with the same memory. dtype: interprets the bytes as another data type; a
    type of another size is supported on the CPU only."""
    if dtype is None:
        made = self._view(self.shape, self._strides, 0)
        return made._mark_result() if self._is_scalar else made
    wanted = _dtypes.dtype_of(dtype)
    if wanted.itemsize == self.dtype.itemsize:
        return self._part(wanted.text, 0)
    if self.device != "cpu":
        raise ShapeError(f"view: elements of {self.dtype.itemsize} bytes on {self.device} cannot be read as {wanted.name}")
    import numpy

    from ._protocols import shared

    return shared(numpy.asarray(self).view(wanted.dtype))


# Methods that call NumPy's function of the same name.
_NUMPYS = ("argpartition", "choose", "diagonal", "dot", "put", "round", "trace")
_one_item = Array.item

_FIELDS = {
    "nbytes": (lambda self: self.size * self.dtype.itemsize, "size of the elements in bytes"),
    "itemsize": (lambda self: self.dtype.itemsize, "size of an element in bytes"),
    "strides": (lambda self: tuple(n * self.dtype.itemsize for n in self._strides), "bytes from one element to the next along each axis"),
    "real": (_real, "the real parts: a view for complex numbers, else the array itself", _set_real),
    "imag": (_imaginary, "the imaginary parts: a view for complex numbers, else zeros", _set_imaginary),
    "flags": (Flags, "how the elements lie in memory"),
    "flat": (Flat, "the elements in row-major order, for iteration, indexing and assignment", _set_flat),
}


def methods():
    """Returns the methods by name."""
    from . import _manipulation, _orders, _printing, _products, _reductions

    found = {
        "__divmod__": _divided, "__rdivmod__": _reflected_divided, "__pow__": _power, "__rpow__": _reflected_power, "__ipow__": _power_in_place,
        "__bool__": _to_bool, "__float__": _to_float, "__round__": _rounded, "__trunc__": _to_int, "__int__": _to_int,
        "__complex__": _to_complex, "__index__": _to_index,
        "__iter__": _iterate, "__contains__": _contains, "__array_namespace__": _namespace, "__reduce__": _pickled,
        "__deepcopy__": _deep_copied, "__copy__": _copied, "astype": _astype_method, "to_device": to_device, "copy": copy, "fill": fill,
        "tolist": tolist, "__repr__": _printing.represent, "__str__": _printing.show, "__format__": _printing.formatted,
        "_repr_html_": _printing.as_html,
    }  # fmt: skip
    found |= {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function, "__reversed__": _reversed}
    found |= {name: _beyond.method(name) for name in _NUMPYS}
    found |= {"conj": conjugate, "conjugate": conjugate, "item": item, "tobytes": tobytes, "partition": partition,
        "clip": clip, "compress": compress, "__array__": _as_numpys, "setflags": setflags, "view": view, "get": get, "tofile": tofile, "dump": dump, "dumps": dumps}
    found |= _manipulation.METHODS | _reductions.METHODS | _orders.METHODS | _products.METHODS
    return found


def attach():
    """Adds operators, methods and properties to kjit.Array."""
    for name, method in methods().items():
        setattr(Array, name, method)
    for name, (get, doc, *setter) in _FIELDS.items():
        setattr(Array, name, property(get, *setter, doc=doc))
    from . import _indexing, _manipulation

    _kjit.set_indexing(_indexing.get_item, _indexing.set_item)
    _kjit.set_quick_types(_dtypes.lasting_text)
    _kjit.set_quick_casts({text: row.index for text, row in CASTS.items()})

    for name, get in _manipulation.FIELDS.items():
        setattr(Array, name, property(get, doc=get.__doc__))
