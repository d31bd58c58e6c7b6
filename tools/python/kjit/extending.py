"""The names of `numba.extending`, for functions of kjit.njit. A definition whose target is "generic" applies in kernels of kjit.cuda, too.
"""

from . import _missing
from ._overloading import makers

overload, overload_method, overload_attribute = makers("cpu")


def register_jitable(*functions, **options):
    """Returns the function unchanged, because compiled functions can call any Python function."""
    return functions[0] if functions else lambda function: function


def is_jitted(function):
    """Returns whether a function was made by njit or cuda.jit."""
    return hasattr(function, "py_func")


def __getattr__(name):
    if name in _missing.EXTENDING:
        return _missing.EXTENDING[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["is_jitted", "overload", "overload_attribute", "overload_method", "register_jitable"]
