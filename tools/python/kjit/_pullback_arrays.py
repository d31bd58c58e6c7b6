"""Arrays as the rules of `kjit.pullback` need them: zeros, numbers, sums over repeated axes, elements by places."""

from . import _folds, dtypes
from ._algorithms import computed, map, new_array, numpy_array
from ._arrays import array, zeros


def zeros_as(x, shape, element):
    """An array of zeros of the kind of x: NumPy's, or kjit's on the device of x."""
    if hasattr(x, "to_host"):
        return zeros(shape, element, device=x.device)
    made = new_array(shape, element, None)
    made[...] = 0
    return made


def index_array(x, count):
    """0 up to count - 1, where x is."""
    import numpy

    numbers = numpy.arange(count)
    return array(numbers, device=x.device) if hasattr(x, "to_host") else numbers


def element_name(x):
    return dtypes.name_of(x.dtype) or str(x.dtype)


def expanded(g, axes):
    """An array with an axis of extent 1 for each reduced one."""
    g = numpy_array(g)
    shape = list(getattr(g, "shape", ()))
    for a in axes:
        shape.insert(a, 1)
    if hasattr(g, "reshape"):
        return g.reshape(tuple(shape))
    import numpy

    return numpy.reshape(g, tuple(shape))


def reduced_to(g, shape):
    """The sum of g over the axes along which an operand of a shape was repeated."""
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


# ---- elements by places ----


def _gathered(i, g, rows, count):
    row = rows[i]
    return g[row] if row >= 0 and row < count else 0.0


def rows_of(offsets, count):
    """The segment of each element; -1 or the number of segments for an element of none."""
    return _folds.search_sorted(offsets, index_array(offsets, count), right=True) - 1


def taken_at(g, rows, count):
    return map(identity, computed(_gathered, rows.shape[0], g, rows, count))


def no_rule(name, operator, known):
    text = repr(operator) if isinstance(operator, str) else "a function"
    return TypeError(f"kjit.pullback: {name} has derivatives for the operators {known}, not for {text}")
