"""The exceptions of array operations. Each class also derives from the exception that NumPy raises
for the same mistake. _axis_errors has AxisError."""

from .._errors import Error


class ShapeError(Error, ValueError):
    """Raised if shapes, axes or values do not fit an operation."""

    __module__ = "kjit.numpy"


class PromotionError(Error, TypeError):
    """Raised if an operation does not accept a data type, or if data types have no common type."""

    __module__ = "kjit.numpy"


class ElementTypeError(PromotionError):
    """Raised if kjit has no arrays with the element type of an operand, such as strings and objects."""

    __module__ = "kjit.numpy"


class BoundsError(Error, IndexError):
    """Raised if an index is out of bounds, or if an object cannot be an index."""

    __module__ = "kjit.numpy"


class DevicesError(Error, ValueError):
    """Raised if the arrays of an operation are on different devices."""

    __module__ = "kjit.numpy"


class LibraryError(Error, ImportError):
    """Raised if an NVIDIA library is not installed, or if a call of it fails."""

    __module__ = "kjit.numpy"
