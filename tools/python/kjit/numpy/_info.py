"""The inspection API of the array API standard."""

from .. import _arrays
from . import _dtypes, _engine


class Info:
    """The capabilities of kjit.numpy, as described by the standard's inspection API."""

    def capabilities(self):
        """Returns the optional capabilities: boolean masks, results whose shape depends on data,
        and the maximum number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _engine.MOST_RANK}

    def default_device(self):
        """Returns the device name for new arrays."""
        return _engine.default_device()

    def devices(self):
        """Returns the names of all devices, GPUs first."""
        return [_engine.device_name(device) for device in _arrays.devices()]

    def default_dtypes(self, *, device=None):
        """Returns the default data types of new arrays, by kind."""
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: _dtypes.STANDARD[name] for kind, name in names.items()}

    def dtypes(self, *, device=None, kind=None):
        """Returns the standard's data types of a kind, by name. kind: as in isdtype(); None means
        all."""
        return _dtypes.dtypes_of_kind(kind)
