"""`import kjit.einops` makes the functions of einops, such as `einops.rearrange`, accept kjit's arrays.

einops chooses its backend by the array type, and finds backends among the subclasses of
AbstractBackend. The functions of `einops.array_api` work without this module; they have no einsum.
"""

from einops import _backends

from . import numpy as _knp


class KjitBackend(_backends.AbstractBackend):
    """kjit.numpy as a backend of einops."""

    framework_name = "kjit.numpy"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, _knp.ndarray)

    def from_numpy(self, x):
        return _knp.asarray(x)

    def to_numpy(self, x):
        return x.to_host()

    def arange(self, start, stop):
        return _knp.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors):
        return _knp.stack(tensors)

    def transpose(self, x, axes):
        return _knp.permute_dims(x, axes)

    def reduce(self, x, operation, axes):
        return getattr(_knp, operation)(x, axis=tuple(axes))

    def add_axis(self, x, new_position):
        return _knp.expand_dims(x, axis=new_position)

    def tile(self, x, repeats):
        return _knp.tile(x, repeats)

    def concat(self, tensors, axis):
        return _knp.concat(tensors, axis=axis)

    def is_float_type(self, x):
        return _knp.isdtype(x.dtype, ("real floating", "complex floating"))

    def einsum(self, pattern, *x):
        return _knp.einsum(pattern, *x)
