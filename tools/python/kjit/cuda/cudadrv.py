"""numba.cuda.cudadrv's names: `from kjit.cuda.cudadrv.devicearray import DeviceNDArray`, `from kjit.cuda.cudadrv import error`."""

import sys as _sys

from . import arrays as devicearray
from . import devices, driver
from . import errors as error

__path__: list[str] = []  # imports find the modules below by their names
for _name, _module in (("devicearray", devicearray), ("devices", devices), ("driver", driver), ("error", error)):
    _sys.modules[f"{__name__}.{_name}"] = _module
