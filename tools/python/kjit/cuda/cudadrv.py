"""The modules of `numba.cuda.cudadrv`, such as `from kjit.cuda.cudadrv.devicearray import
DeviceNDArray`."""

import sys as _sys

from . import arrays as devicearray
from . import devices, driver
from . import errors as error

__path__: list[str] = []  # makes this module a package, so that imports find the modules below by name
for _name, _module in (("devicearray", devicearray), ("devices", devices), ("driver", driver), ("error", error)):
    _sys.modules[f"{__name__}.{_name}"] = _module
