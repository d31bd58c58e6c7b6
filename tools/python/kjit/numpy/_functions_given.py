"""Arguments of NumPy's functions, and how their results are returned."""

import numpy

from . import _creation, _dtypes, _engine
from ._engine import Array
from ._protocols import device_of, promoted, result_of
from ._table import ROWS

_NO_VALUE = getattr(numpy, "_NoValue", None)
# What functions return that make several arrays.
_SEVERAL = list if numpy.__version__.startswith("1.") else tuple


def array_of(x, device=None):
    """An argument as an array: lists and numbers, too."""
    return x if isinstance(x, Array) else _creation.asarray(x, device=device)


def arrays_of(items):
    """The arrays of a sequence, on the device of the first one, in the type that NumPy promotes theirs to."""
    items = list(items)
    device = device_of([x for x in items if isinstance(x, Array)], "a sequence of arrays")
    return promoted(*(array_of(x, device) for x in items))


def _dtype(dtype):
    return None if dtype is None else numpy.dtype(dtype)


def _stored(made, out, what):
    """The result, or the array of out= with it."""
    if out is None:
        return made
    return result_of(out, made.device, what).take(made)


def _is_complex(x):
    return _dtypes.KIND[x.dtype.text] == "c"


def _keep(function, *names):
    """A function of the namespace for calls of NumPy's function with no other options than these."""
    parameters = ", ".join(f"{name}={default}" for name, default in (each.split("=") for each in names))
    call = ", ".join(f"{each.split('=')[0]}={each.split('=')[0]}" for each in names)
    space = {"function": function, "array_of": array_of}
    exec(f"def kept(a, {parameters}):\n    return function(array_of(a), {call})\n", space)
    return space["kept"]


def like_numpy(device, *operands):
    """Arrays of the type that NumPy promotes operands to, which may be numbers of Python."""
    from ._loops import numpy_type, weak_texts

    words = ["?" + _dtypes.scalar_kind(x) if _dtypes.is_scalar(x) else _dtypes.text_of(array_of(x, device)) for x in operands]
    texts = weak_texts(words)
    text = _dtypes.dtypes.name_of(numpy.result_type(*map(numpy_type, texts)))
    return [
        _creation.asarray(x, dtype=text, device=device) if not isinstance(x, Array) else _engine.converted(x, text) for x in operands
    ]


def chosen(condition, x, y):
    """The elements of x where a condition is true, else those of y, in the type that NumPy promotes theirs to."""
    condition = array_of(condition)
    x, y = like_numpy(condition.device, x, y)
    return _engine.elementwise(ROWS["where"], (_engine.converted(condition, "bool"), x, y))
