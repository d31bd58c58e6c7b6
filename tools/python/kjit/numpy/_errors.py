"""The exceptions of array operations, each also the exception that NumPy raises for the same mistake."""

from .._errors import Error


class ShapeError(Error, ValueError):
    """Shapes, axes or values that do not fit the operation."""

    __module__ = "kjit.numpy"


class PromotionError(Error, TypeError):
    """Data types that the operation does not take, or that have no common type."""

    __module__ = "kjit.numpy"


class BoundsError(Error, IndexError):
    """An index that is out of bounds, or an object that is no index."""

    __module__ = "kjit.numpy"


class AxisError(ShapeError, IndexError):
    """An axis that the array does not have."""

    __module__ = "kjit.numpy"


class DevicesError(Error, ValueError):
    """Arrays on different devices in one operation."""

    __module__ = "kjit.numpy"


class LibraryError(Error, ImportError):
    """A library of NVIDIA that is not installed, or that fails."""

    __module__ = "kjit.numpy"
