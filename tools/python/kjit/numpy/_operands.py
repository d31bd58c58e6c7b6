"""The objects that operators and functions accept in place of kjit arrays: numbers, NumPy arrays,
lists, and other objects that `numpy.asarray` converts to an array of numbers."""

import array
import sys
from collections.abc import Mapping, Sequence

from .. import _kjit
from . import _dtypes
from ._dtypes import BY_TEXT, KIND
from ._errors import ElementTypeError, PromotionError

Array = _kjit.Array
# The sequence types that operators accept in place of arrays.
LISTS = (list, tuple, range)
# Classes with elements in a buffer, which have no operators for numbers.
_BUFFERS = (array.array, bytearray, memoryview)
_ARRAY_NAMES = ("__array__", "__array_interface__", "__array_struct__")


def _numpy():
    """Returns NumPy if the program has imported it. Otherwise no object belongs to NumPy."""
    return sys.modules.get("numpy")


def is_numpys(x):
    """Returns whether an object is an array or a scalar of NumPy."""
    numpy = _numpy()
    return numpy is not None and isinstance(x, (numpy.ndarray, numpy.generic))


def is_operand(x):
    """Returns whether an operator accepts an object as it is, or after `ready_operands`: a kjit or NumPy array, a number, a
    list or tuple. A class that derives from NumPy's array and has a priority, such as numpy.matrix and the masked
    arrays, has operators of its own."""
    if isinstance(x, (Array, *LISTS)) or _dtypes.is_scalar(x):
        return True
    return is_numpys(x) and getattr(x, "__array_priority__", 0) <= 0


def is_array_like(x):
    """Returns whether `numpy.asarray` converts an object of another class to an array. This is so
    if the object has a buffer or one of NumPy's array protocols, or is a sequence."""
    if isinstance(x, (str, bytes, Array)) or getattr(type(x), "__kjit_traced__", False):
        return False
    if isinstance(x, (*_BUFFERS, Sequence)) or any(hasattr(x, name) for name in _ARRAY_NAMES):
        return not is_masked(x)
    kind = type(x)
    return hasattr(kind, "__getitem__") and hasattr(kind, "__len__") and not isinstance(x, Mapping) and not hasattr(kind, "keys")


def is_masked(x):
    """Returns whether an object is a masked array of NumPy, whose mask a kjit array would lose."""
    found = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return found is not None and isinstance(x, found)


def _yields(reflected, x):
    """Returns whether the class of an operand computes operators itself: it has the reflected operator, NumPy's
    `__array_ufunc__`, or a priority over NumPy's arrays."""
    kind = type(x)
    if isinstance(x, _BUFFERS):
        return False
    return hasattr(kind, "__array_priority__") or hasattr(kind, "__array_ufunc__") or overrides(kind, reflected)


def overrides(kind, name):
    """Returns whether a class or a base defines an operator that not every Python object has. Attributes of the metaclass,
    such as type.__ror__, do not count."""
    return any(name in vars(each) for each in kind.__mro__ if each is not object)


def has_ufuncs(x):
    """Returns whether an object of another library computes NumPy's ufuncs."""
    return not isinstance(x, Array) and not is_numpys(x) and getattr(type(x), "__array_ufunc__", None) is not None


def is_plain(x):
    """Returns whether kjit reads the elements of a NumPy array in place: they are aligned and in the machine's byte
    order."""
    return x.flags.aligned and x.dtype.isnative


def _is_ready(x):
    if isinstance(x, Array) or _dtypes.is_scalar(x):
        return True
    numpy = _numpy()
    if numpy is None:
        return not isinstance(x, LISTS) and not is_array_like(x)
    return isinstance(x, numpy.generic) or type(x) is numpy.ndarray and is_plain(x)


def ready_operands(operands):
    """Returns the operands with each list, tuple and array-like object converted to an array on the device of the
    first array. NumPy arrays that are unaligned or in another byte order are copied."""
    if all(map(_is_ready, operands)):
        return operands
    device = next((x.device for x in operands if isinstance(x, Array)), None)
    return tuple(x if _is_ready(x) else _array_of(x, device) for x in operands)


def _array_of(x, device):
    from ._creation import asarray

    if is_masked(x):
        raise PromotionError("kjit arrays have no masks: use where=, numpy.ma for all operands, or x.filled(...)")
    if is_numpys(x):
        return _numpy().require(x, x.dtype.newbyteorder("="), "AE")
    return asarray(x, device=device) if isinstance(x, LISTS) or is_array_like(x) else x


def operand(x, what):
    """Returns the object if it is an operand: a kjit array, a NumPy array or scalar, or a Python
    number. Raises PromotionError for other objects."""
    if isinstance(x, Array) or _dtypes.is_scalar(x) or is_numpys(x):
        return x
    raise (ElementTypeError if x is None or isinstance(x, (str, bytes)) else PromotionError)(f"{what}: an operand must be an array or a number, not {type(x).__name__}")


def operator_operands(reflected, operands):
    """Returns an operator's operands as `ready_operands` does. None means that the class of another operand has to
    compute the operator, or that there is no such operator. reflected: the name of the reflected operator."""
    for x in operands:
        if not is_operand(x) and (_yields(reflected, x) or not is_array_like(x)):
            return None
    return ready_operands(operands)


_knows_scalars = False


def learn_scalars(operands):
    """Registers the classes of NumPy's scalars with the extension if an operand is a NumPy scalar.
    Returns True if this call has registered them; the caller must then repeat the operation."""
    global _knows_scalars
    numpy = _numpy()
    if _knows_scalars or numpy is None or not any(isinstance(x, numpy.generic) for x in operands):
        return False
    _knows_scalars = True
    _kjit.set_scalar_types({dtype.dtype.type: text for text, dtype in BY_TEXT.items() if text != "bf16"})
    return True


# ---- comparisons with integers that the array type does not have ----

# A number outside of the type's range is replaced by the largest number of the type (_ABOVE) or by the smallest
# one (_BELOW). The tables have the comparison that then gives the same results: x < 300 becomes x <= 255 for
# uint8.
_ABOVE = {"less": "less_equal", "less_equal": "less_equal", "not_equal": "less_equal", "greater": "greater", "greater_equal": "greater", "equal": "greater"}
_BELOW = {"less": "less", "less_equal": "less", "equal": "less", "greater": "greater_equal", "greater_equal": "greater_equal", "not_equal": "greater_equal"}
_MIRRORED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}


def compared_in_range(name, operands):
    """Returns (comparison, operands) if an integer array is compared with a Python integer that its
    type cannot represent, or None for other operations. The returned number is in the range."""
    if name not in _ABOVE or len(operands) != 2:
        return None
    if type(operands[0]) is int:
        name, operands = _MIRRORED.get(name, name), operands[::-1]
    x, number = operands
    if type(number) is not int or not hasattr(x, "dtype") or KIND[_dtypes.text_of(x)] not in "iu":
        return None
    limits = _dtypes.iinfo(_dtypes.BY_TEXT[_dtypes.text_of(x)])
    if limits.min <= number <= limits.max:
        return None
    return (_ABOVE[name], (x, limits.max)) if number > limits.max else (_BELOW[name], (x, limits.min))
