"""Shapes and strides of device arrays, and the checks of copies between arrays."""

import operator

import numpy


def check_order(order, known="CF"):
    """Raises ValueError unless the order is one of the letters in `known`."""
    if order not in tuple(known):
        raise ValueError(f"order must be {' or '.join(map(repr, known))}, not {order!r}")


def contiguous_strides(shape, itemsize, order="C"):
    strides, step = [], itemsize
    for extent in reversed(shape) if order == "C" else shape:
        strides.append(step)
        step *= extent
    return tuple(reversed(strides) if order == "C" else strides)


def order_of(strides, shape, itemsize):
    """Returns "C" or "F" if the strides (in bytes) are contiguous in that order, else None."""
    return next((order for order in "CF" if strides == contiguous_strides(shape, itemsize, order)), None)


def shape_of(shape):
    is_sequence = isinstance(shape, (tuple, list)) or isinstance(shape, numpy.ndarray) and shape.ndim == 1
    shape = tuple(shape) if is_sequence else (shape,)
    try:
        return tuple(operator.index(s) for s in shape)
    except TypeError:
        raise TypeError(f"Invalid type for shape: {shape!r}; integers or a tuple of them") from None


def strides_like(ary):
    """Returns strides in bytes without gaps that keep the order of the array's axes, as NumPy's
    order "K"."""
    strides, width = [0] * len(ary.shape), ary.dtype.itemsize
    for at in sorted(range(len(ary.shape)), key=lambda at: (abs(ary.strides[at]), -at)):
        strides[at] = width
        width *= max(ary.shape[at], 1)
    return tuple(strides)


def is_contiguous(ary):
    """Returns whether the array is C-contiguous. Dimensions of stride 0, which repeat elements, are
    ignored."""
    wanted = ary.dtype.itemsize
    for extent, stride in zip(reversed(ary.shape), reversed(ary.strides)):
        if extent > 1 and stride:
            if stride != wanted:
                return False
            wanted *= extent
    return True


def core_index(ary):
    """Returns an index that selects each stored element once: 0 for each dimension of stride 0."""
    return tuple(slice(None) if stride else 0 for stride in ary.strides)


def array_core(ary):
    """Returns the view that numpy.broadcast_to has repeated: ary without its dimensions of stride
    0."""
    if not ary.size or all(ary.strides):
        return ary
    index = core_index(ary)
    return ary._slice(index) if hasattr(ary, "__cuda_ndarray__") else numpy.asarray(ary[index])


def check_copy(one, other):
    if other.dtype != one.dtype and numpy.dtype(other.dtype).itemsize != one.dtype.itemsize:
        raise TypeError(f"incompatible dtype: {one.dtype} vs. {other.dtype}")
    if tuple(other.shape) != tuple(one.shape):
        raise ValueError(f"incompatible shape: {one.shape} vs. {tuple(other.shape)}")


def check_strides(one, other):
    """Raises ValueError if the arrays differ in order, because a copy to a NumPy array copies all
    bytes in their order in memory."""
    ours = "F" if one.is_f_contiguous() and not one.is_c_contiguous() else "C" if one.is_c_contiguous() else "A"
    if isinstance(other, numpy.ndarray) and one.ndim > 1 and ours != "A":
        theirs = other.flags["F_CONTIGUOUS"] if ours == "F" else other.flags["C_CONTIGUOUS"]
        if not theirs:
            raise ValueError(f"incompatible strides: {one.strides} vs. {other.strides}")


def verify_cuda_ndarray_interface(obj):
    """Raises ValueError or AttributeError if an object lacks an attribute that kernels need of a
    device array."""
    if not getattr(obj, "__cuda_ndarray__", False):
        raise ValueError("require an cuda ndarray object")
    for name, kind in (("shape", tuple), ("strides", tuple), ("dtype", numpy.dtype), ("size", int)):
        if not hasattr(obj, name):
            raise AttributeError(name)
        if not isinstance(getattr(obj, name), kind):
            raise AttributeError(f"{name} must be of type {kind}")
