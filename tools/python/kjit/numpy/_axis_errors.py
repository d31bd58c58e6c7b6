"""The exception for axes, which is also NumPy's. This module imports NumPy, so kjit.numpy imports it at its first use."""

import numpy

from ._errors import ShapeError

_of_numpy = getattr(numpy, "exceptions", numpy).AxisError


class AxisError(ShapeError, _of_numpy):  # type: ignore[misc, valid-type]
    """Raised if an array does not have an axis. `axis` is the axis and `ndim` the number of dimensions of the array.

    As for NumPy's class, the arguments are the axis, ndim and a prefix of the message, or a message
    alone.
    """

    __module__ = "kjit.numpy"

    def __init__(self, axis, ndim=None, msg_prefix=None):
        prefix = f"{msg_prefix}: " if msg_prefix else ""
        text = str(axis) if ndim is None else f"{prefix}axis {axis} is out of bounds for array of dimension {ndim}"
        super().__init__(text)
        self.args = (text,)
        self._given = axis, ndim, msg_prefix
        self.axis, self.ndim = (None, None) if ndim is None else (axis, ndim)

    def __str__(self):
        return BaseException.__str__(self) if self._shown is None else self._shown

    def __reduce__(self):
        return type(self), self._given
