"""The names of `numba.cuda.extending`. A definition without a target applies to kernels and to functions of
kjit.njit."""

from .._overloading import makers
from ..extending import __getattr__, is_jitted, register_jitable

overload, overload_method, overload_attribute = makers("generic")

__all__ = ["__getattr__", "is_jitted", "overload", "overload_attribute", "overload_method", "register_jitable"]
