"""NumPy dates in functions: constants, `np.timedelta64(n, "s")` and `x.astype("datetime64[D]")`. A
date is a struct with a count of its unit; the compiler implements its operators."""

import sys

from .. import _records
from . import static


def is_scalar(value):
    """Returns whether an object is a NumPy date or time difference."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.datetime64, numpy.timedelta64))


def constant(emitter, value):
    """Returns the text of a date that is known at compile time."""
    return [f"{emitter.builder.record(value.dtype)}({int(value.view('i8'))}i64)"]


def is_class(thing):
    """Returns whether an object is NumPy's class datetime64 or timedelta64."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and (thing is numpy.datetime64 or thing is numpy.timedelta64)


def call(emitter, node, thing):
    """Writes np.timedelta64(...) or np.datetime64(...): a constant for known arguments, otherwise a
    count of a known unit. Returns None for other calls."""
    if not is_class(thing):
        return None
    place = emitter.source.place(node)
    values = [emitter.static_value(argument) for argument in node.args]
    if node.keywords or not 1 <= len(values) <= 2:
        raise emitter.error(node, f"np.{thing.__name__} takes a value and a unit in a kernel")
    if not any(value is static.UNKNOWN for value in values):
        try:
            return [place, *constant(emitter, thing(*values))]
        except (TypeError, ValueError) as problem:
            raise emitter.error(node, f"np.{thing.__name__}: {problem}") from None
    if len(values) == 1 or not isinstance(values[1], str):
        raise emitter.error(node, f'np.{thing.__name__}(n, "s") takes a unit that is known when the kernel is compiled')
    return [place, _struct(emitter, node, f"{thing.__name__}[{values[1]}]"), "(", *emitter.expression(node.args[0]), ")"]


def astype(emitter, node):
    """Writes date.astype("datetime64[D]"), which converts a date to another unit."""
    import numpy

    wanted = emitter.static_value(node.args[0])
    dtype = None
    if wanted is not static.UNKNOWN and not node.keywords:
        try:
            dtype = numpy.dtype(wanted)
        except TypeError:
            pass
    if not _records.is_date(dtype):
        raise emitter.error(node, "astype() in a kernel converts dates to a compile-time dtype such as datetime64[D]; for a number write the type: float32(x)")
    return [emitter.source.place(node), _struct(emitter, node, dtype), "(", *emitter.expression(node.func.value), ")"]


def _struct(emitter, node, dtype):
    import numpy

    try:
        return emitter.builder.record(numpy.dtype(dtype))
    except TypeError as problem:
        raise emitter.error(node, str(problem)) from None
