"""Array operations for the rules of `kjit.pullback`: zeros, index arrays, and sums over repeated axes."""

from . import _folds, dtypes
from ._algorithms import new_array, numpy_array
from ._arrays import array, zeros
from ._traced import raw


def zeros_as(x, shape, element):
    """Returns an array of zeros of the same kind as x: a NumPy array, or a kjit array on the device
    of x."""
    x = raw(x)
    if hasattr(x, "to_host"):
        return zeros(shape, element, device=x.device)
    made = new_array(shape, element, None)
    made[...] = 0
    return made


def beside(x, like):
    """Returns x in the same kind of memory as `like`: as a NumPy array, or as a kjit array on the device of `like`.
    Operations with a NumPy array run on the host or on the default device, so that operands and
    derivatives of one operation can be in different memories. Returns any other object unchanged."""
    import numpy

    like = raw(like)
    place, other = (getattr(a, "device", "cpu") if hasattr(a, "to_host") else "cpu" for a in (like, x))
    is_of_kjit = hasattr(x, "to_host")
    if not (is_of_kjit or isinstance(x, numpy.ndarray)) or not (hasattr(like, "to_host") or isinstance(like, numpy.ndarray)):
        return x
    if isinstance(like, numpy.ndarray):
        return x.to_host() if is_of_kjit and other != "cpu" else x
    if place == other:
        return x
    return x.to_device(place) if is_of_kjit else array(x, device=place)


def index_array(x, count):
    """Returns the integers from 0 to count - 1, as an array of the same kind as x."""
    import numpy

    numbers = numpy.arange(count)
    x = raw(x)
    return array(numbers, device=x.device) if hasattr(x, "to_host") else numbers


def element_name(x):
    x = raw(x)
    return dtypes.name_of(x.dtype) or str(x.dtype)


def expanded(g, axes):
    """Returns the array with an axis of extent 1 inserted for each reduced axis."""
    g = numpy_array(g)
    shape = list(getattr(g, "shape", ()))
    for a in axes:
        shape.insert(a, 1)
    if hasattr(g, "reshape"):
        return g.reshape(tuple(shape))
    import numpy

    return numpy.reshape(g, tuple(shape))


def reduced_to(g, shape):
    """Returns the sum of g over the axes along which an operand of this shape was repeated."""
    extra = len(g.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, extent in enumerate(shape) if extent == 1 and g.shape[i + extra] != 1))
    if axes:
        g = _folds.reduce(g, "add", axis=axes)
    return g.reshape(tuple(shape)) if tuple(getattr(g, "shape", ())) != tuple(shape) else g


def identity(x):
    return x


def repeated(_, g):
    return g


def times(x, g):
    return x * g


# ---- segments ----


def rows_of(offsets, count):
    """Returns the segment of each element. For an element outside all segments it is -1 or the
    number of segments."""
    return _folds.search_sorted(offsets, index_array(offsets, count), right=True) - 1


def no_rule(name, operator, known):
    text = repr(operator) if isinstance(operator, str) else "a function"
    return TypeError(f"kjit.pullback: {name} has derivatives for the operators {known}, not for {text}")
