"""The inspection API of the standard."""

from .. import _arrays
from . import _dtypes, _engine


class Info:
    """What kjit.numpy can do, as the standard's inspection API describes it."""

    def capabilities(self):
        """What may be missing in other libraries: indexing by masks, results whose shape depends on elements."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _engine.MOST_RANK}

    def default_device(self):
        """The device of arrays that are made without a device."""
        return _engine.default_device()

    def devices(self):
        """The names of all devices, GPUs first."""
        return [_engine.device_name(device) for device in _arrays.devices()]

    def default_dtypes(self, *, device=None):
        """The data types of arrays that are made without one."""
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: _dtypes.STANDARD[name] for kind, name in names.items()}

    def dtypes(self, *, device=None, kind=None):
        """The standard's data types of a kind, by name."""
        return _dtypes.dtypes_of_kind(kind)
