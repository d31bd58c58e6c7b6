"""Passes copies of unaligned NumPy arrays to compiled code, for example of a field in packed
records."""

import sys

from ._errors import ArgumentError


def _is_aligned(array):
    return array.flags.aligned and not any(stride % array.itemsize for stride in array.strides)


def copies(values):
    """Returns (the values, with copies in place of the unaligned arrays, a function that copies the
    elements back), or None if all arrays are aligned."""
    numpy = sys.modules.get("numpy")
    if numpy is None or all(not isinstance(v, numpy.ndarray) or v.dtype.names or _is_aligned(v) for v in values):
        return None
    made, pairs = [], []
    for value in values:
        is_copied = isinstance(value, numpy.ndarray) and not value.dtype.names and not _is_aligned(value)
        made.append(value.copy() if is_copied else value)
        if is_copied and value.flags.writeable:
            pairs.append((value, made[-1]))
        elif is_copied:
            made[-1].flags.writeable = False

    def write_back():
        for array, copy in pairs:
            array[...] = copy

    return made, write_back


def call_again(function, args, error):
    """Repeats a call that failed because of unaligned arrays, with aligned copies, and returns its
    result. Returns NotImplemented if the call failed for another reason."""
    found = copies(args) if isinstance(error, ArgumentError) else None
    if found is None:
        return NotImplemented
    values, write_back = found
    try:
        return function(*values)
    finally:
        write_back()
