"""kjit.numpy: the arrays and functions of the Python array API standard, version 2024.12, on GPUs and on the CPU.

import kjit.numpy as knp

x = knp.linspace(0, 1, 1000)
y = knp.sin(x) ** 2 + 0.5
print(y[y > 1].mean())
"""

import math as _math
from importlib.util import find_spec as _find_spec

from . import _beyond, _creation, _elementwise, _fusing, _indexing, _info, _manipulation, _methods, _orders, _products, _reductions
from . import _table
from ._creation import (
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._dtypes import DTYPES as _DTYPES
from ._dtypes import can_cast, finfo, iinfo, isdtype, result_type
from ._engine import Array
from ._errors import BoundsError, DevicesError, ElementTypeError, PromotionError, ShapeError
from ._fusing import compute, fuse
from ._info import Info as _Info
from ._methods import astype

asnumpy, get_array_module = _beyond.asnumpy, _beyond.get_array_module
ndarray = Array
e, inf, nan, newaxis, pi = _math.e, _math.inf, _math.nan, None, _math.pi
__array_api_version__ = "2024.12"

globals().update(_DTYPES)
globals().update(_elementwise.FUNCTIONS)
for _module in (_manipulation, _orders, _products, _reductions):
    globals().update({_function.__name__: _beyond.widened(_function) for _function in _module.FUNCTIONS})
for _function in (*_elementwise.WIDENED, _creation.meshgrid, _creation.tril, _creation.triu, _indexing.take, _indexing.take_along_axis):
    globals()[_function.__name__] = _beyond.widened(_function)
concatenate = globals()["concat"]
around = globals()["round"]
bool_ = _DTYPES["bool"]

_fusing.attach(_table.BY_INDEX)
_methods.attach()

# Submodules that are imported at their first use.
_LATER = tuple(name for name in ("fft", "linalg", "random") if _find_spec(f"{__name__}.{name}"))
# Functions and exceptions whose modules import NumPy; the modules are imported at their first use.
_OF_GRADIENTS = ("grad", "value_and_grad")
_OF_ERRORS = ("AxisError",)


def namespace(api_version=None):
    """Returns this module. Raises ValueError if api_version is not a version of the array API
    standard that kjit supports."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", __array_api_version__):
        raise ValueError(f"version {api_version!r} of the array API standard is not supported: {__array_api_version__} is")
    import sys

    return sys.modules[__name__]


def __array_namespace_info__():
    """Returns the namespace's inspection object: its devices, data types and capabilities."""
    return _Info()


def __getattr__(name):
    if name in _LATER:
        import importlib

        return importlib.import_module("." + name, __name__)
    if name in _OF_GRADIENTS:
        from . import _gradients

        return getattr(_gradients, name)
    if name in _OF_ERRORS:
        from . import _axis_errors

        return getattr(_axis_errors, name)
    return _beyond.attribute(__name__, name, _beyond._numpy)


def __dir__():
    return sorted({name for name in globals() if not name.startswith("_")} | {*_LATER, *_OF_GRADIENTS, *_OF_ERRORS})
