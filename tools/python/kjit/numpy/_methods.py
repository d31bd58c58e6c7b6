"""Methods of kjit.Array, which `attach` puts on the class. The extension has the operators but for powers and products."""

from .. import _kjit, _state
from .._errors import CLASSES
from . import _creation, _dtypes, _engine
from ._engine import Array, elementwise
from ._table import ROWS

_EXPONENTS = {2: "square", 0.5: "sqrt", 1: "positive"}


NoDeviceError = CLASSES["KJIT_ERROR_NO_DEVICE"]


def _power(self, other):
    if type(other) in (int, float) and other in _EXPONENTS and _dtypes.KIND[self.dtype.text] in "fc":
        return elementwise(ROWS[_EXPONENTS[other]], (self,))
    return elementwise(ROWS["pow"], (self, other)) if _engine.is_operand(other) else NotImplemented


def _reflected_power(self, other):
    return elementwise(ROWS["pow"], (other, self)) if _engine.is_operand(other) else NotImplemented


def _power_in_place(self, other):
    return elementwise(ROWS["pow"], (self, other), self) if _engine.is_operand(other) else NotImplemented


# ---- numbers of Python ----


def _to_bool(self):
    if self.size != 1:
        raise ValueError(
            f"the truth value of an array of {self.size} elements is ambiguous; use kjit.numpy.any(x) or kjit.numpy.all(x)"
        )
    return bool(self.item())


def _to_float(self):
    return float(_one_number(self, "float"))


def _to_int(self):
    return int(_one_number(self, "int"))


def _to_complex(self):
    return complex(_one_number(self, "complex"))


def _one_number(self, what):
    value = self.item()
    if isinstance(value, complex) and what != "complex":
        raise TypeError(f"a complex number does not convert to {what}")
    return value


def _to_index(self):
    if self.ndim or _dtypes.KIND[self.dtype.text] not in "iu":
        raise TypeError("only an array of integers without dimensions is an index")
    return int(self.item())


# ---- conversions, copies, devices ----


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to a data type. copy: False: the array itself if it has the type. Complex numbers are not converted to
    real ones."""
    text = _dtypes.dtype_of(dtype).text
    if _dtypes.KIND[x.dtype.text] == "c" and _dtypes.KIND[text] not in "cb":
        raise TypeError("astype: complex numbers are not converted to real ones; take x.real")
    if device is not None and _engine.device_name(device) != x.device:
        x = to_device(x, device)
    if x.dtype.text == text:
        return _engine.copied(x) if copy else x
    return _engine.cast(x, text)


def to_device(self, device, /, *, stream=None):
    """The array itself if it is on the device, else a copy there."""
    place = _engine.device_name(device)
    return self if place == self.device else _kjit.copy_of(_state.context(), self, place)


def copy(self, order="C"):
    """A new array with the same elements, in row-major order."""
    if order not in ("C", "K", "A"):
        raise ValueError(f'copy: order is "C", not {order!r}')
    return _engine.copied(self)


def fill(self, value):
    """Sets every element to a number."""
    _engine.assign(self, value)


def tolist(self):
    """The elements as nested lists of numbers of Python, or as one number."""
    return self.to_host().tolist()


def _iterate(self):
    if not self.ndim:
        raise TypeError("iteration over an array without dimensions")
    return (self[i] for i in range(self.shape[0]))


def _contains(self, value):
    from . import _reductions

    return bool(_reductions.any(elementwise(ROWS["equal"], (self, value))))


def _no_deletion(self, key):
    raise TypeError("elements of an array cannot be deleted")


def _namespace(self, /, *, api_version=None):
    """The namespace of functions for the array: kjit.numpy."""
    from . import namespace

    return namespace(api_version)


def _array_ufunc(self, ufunc, method, *inputs, **keywords):
    """Runs a ufunc of NumPy on the device where the array is."""
    from ._protocols import array_ufunc

    return array_ufunc(self, ufunc, method, *inputs, **keywords)


def _array_function(self, func, types, args, kwargs):
    """Runs a function of NumPy on the device where the array is."""
    from ._functions import array_function

    return array_function(self, func, types, args, kwargs)


def _pickled(self):
    return _unpickled, (self.to_host(), self.device)


def _unpickled(elements, device):
    """An array that was pickled, on its device, or if there is no such device on the default one."""
    try:
        return _creation.asarray(elements, device=device)
    except NoDeviceError:
        return _creation.asarray(elements)


def _deep_copied(self, memo):
    return _engine.copied(self)


def _flags(self):
    return {"writeable": not self.is_read_only}


_FIELDS = {
    "nbytes": (lambda self: self.size * self.dtype.itemsize, "size of the elements in bytes"),
    "itemsize": (lambda self: self.dtype.itemsize, "size of an element in bytes"),
    "strides": (lambda self: tuple(n * self.dtype.itemsize for n in self._strides), "bytes from one element to the next along each axis"),
    "real": (lambda self: elementwise(ROWS["real"], (self,)), "the real parts, a new array"),
    "imag": (lambda self: elementwise(ROWS["imag"], (self,)), "the imaginary parts, a new array"),
}


def methods():
    """The methods by their names."""
    from . import _indexing, _manipulation, _orders, _printing, _products, _reductions

    found = {
        "__pow__": _power, "__rpow__": _reflected_power, "__ipow__": _power_in_place,
        "__bool__": _to_bool, "__float__": _to_float, "__int__": _to_int, "__complex__": _to_complex, "__index__": _to_index,
        "__iter__": _iterate, "__contains__": _contains, "__array_namespace__": _namespace, "__reduce__": _pickled,
        "__deepcopy__": _deep_copied, "__copy__": _engine.copied, "astype": astype, "to_device": to_device, "copy": copy, "fill": fill,
        "tolist": tolist, "__repr__": _printing.represent, "__str__": _printing.show, "__format__": _printing.formatted,
        "_repr_html_": _printing.as_html, "__getitem__": _indexing.get_item, "__setitem__": _indexing.set_item, "__delitem__": _no_deletion,
        "__matmul__": _products.operator, "__rmatmul__": _products.reflected, "__imatmul__": _products.in_place,
    }  # fmt: skip
    found |= {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}
    found |= _manipulation.METHODS | _reductions.METHODS | _orders.METHODS
    return found


def attach():
    """Puts operators, methods and properties on kjit.Array."""
    for name, method in methods().items():
        setattr(Array, name, method)
    for name, (get, doc) in _FIELDS.items():
        setattr(Array, name, property(get, doc=doc))
    from . import _manipulation

    for name, get in _manipulation.FIELDS.items():
        setattr(Array, name, property(get, doc=get.__doc__))
