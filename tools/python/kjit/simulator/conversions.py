"""Conversions of numbers to the types of the kernel IR, with the results of the CPU target."""

import functools

import numpy

from .. import dtypes


@functools.cache
def converter(numpy_type):
    def convert(value=0):
        kind = type(value)
        return value if kind is numpy_type else _converted(value, numpy_type)

    return convert


def _converted(value, numpy_type):
    """Converts a number as a GPU does: a float out of an integer type's range becomes the nearest
    integer in range, and NaN becomes 0."""
    if isinstance(value, (float, numpy.floating)) and issubclass(numpy_type, numpy.integer):
        # types with fewer than 32 bits take the lowest bits of an int32
        limits = numpy.iinfo(numpy_type if numpy_type().itemsize >= 4 else numpy.int32)
        value = 0 if value != value else limits.max if value >= limits.max else limits.min if value <= limits.min else int(value)
        if numpy_type().itemsize >= 4:
            return numpy_type(value)
        value = numpy.int64(value)
    return numpy.asarray(value).astype(numpy_type)[()]


def of_text(text):
    """Returns the NumPy scalar type for a name in the kernel IR, or None."""
    return getattr(numpy, dtypes._NUMPY[text]) if text in dtypes._NUMPY else None
