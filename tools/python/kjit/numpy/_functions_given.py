"""Converts the arguments of NumPy's functions, and stores their results."""

import numpy

from . import _creation, _dtypes, _engine
from ._engine import Array
from ._protocols import device_of, promoted, result_of
from ._table import ROWS

_NO_VALUE = getattr(numpy, "_NoValue", None)
# The type in which functions return several arrays: a list in NumPy 1, a tuple in NumPy 2.
_SEVERAL = list if numpy.__version__.startswith("1.") else tuple


def array_of(x, device=None):
    """Returns an argument as a kjit array. Lists and numbers are converted."""
    return x if isinstance(x, Array) else _creation.asarray(x, device=device)


def arrays_of(items):
    """Returns the arrays of a sequence, converted to the type that NumPy promotes them to, on the
    device of the first kjit array."""
    items = list(items)
    device = device_of([x for x in items if isinstance(x, Array)], "a sequence of arrays")
    return promoted(*(array_of(x, device) for x in items))


def _dtype(dtype):
    return None if dtype is None else numpy.dtype(dtype)


def _stored(made, out, what):
    """Returns the result, or stores it in the array of out= and returns that array."""
    if out is None:
        return made
    return result_of(out, made.device, what).take(made)


def _is_complex(x):
    return _dtypes.KIND[x.dtype.text] == "c"


def _keep(function, *names):
    """Returns a function that calls a function of the namespace and accepts only the named options."""
    parameters = ", ".join(f"{name}={default}" for name, default in (each.split("=") for each in names))
    call = ", ".join(f"{each.split('=')[0]}={each.split('=')[0]}" for each in names)
    space = {"function": function, "array_of": array_of}
    exec(f"def kept(a, {parameters}):\n    return function(array_of(a), {call})\n", space)
    return space["kept"]


def like_numpy(device, *operands):
    """Returns the operands, arrays or Python numbers, as arrays of the type that NumPy promotes
    them to."""
    from ._loops import numpy_type, weak_texts

    words = ["?" + _dtypes.scalar_kind(x) if _dtypes.is_scalar(x) else _dtypes.text_of(array_of(x, device)) for x in operands]
    texts = weak_texts(words)
    text = _dtypes.dtypes.name_of(numpy.result_type(*map(numpy_type, texts)))
    return [
        _creation.asarray(x, dtype=text, device=device) if not isinstance(x, Array) else _engine.converted(x, text) for x in operands
    ]


def chosen(condition, x, y):
    """Returns the elements of x where the condition is true, and those of y elsewhere, in the type
    that NumPy promotes both to."""
    condition = array_of(condition)
    x, y = like_numpy(condition.device, x, y)
    return _engine.elementwise(ROWS["where"], (_engine.converted(condition, "bool"), x, y))
