"""Numba's names of errors and warnings, as classes derived from kjit's and Python's."""

from .. import _errors


class NumbaWarning(Warning):
    """The base class of kjit.cuda's warnings."""


class NumbaPerformanceWarning(NumbaWarning):
    """Warns of a slow use, such as a copy of a host array in each launch."""


class NumbaDebugInfoWarning(NumbaWarning):
    """Warns of debug information."""


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """Warns of a form that will be removed."""


class NumbaInvalidConfigWarning(NumbaWarning):
    """Warns of a setting that has no effect."""


NumbaError = _errors.Error
TypingError = _errors.Error
LoweringError = _errors.Error
UnsupportedError = _errors.Error
CudaAPIError = _errors.Error


class CudaSupportError(_errors.Error):
    """Raised if no device can be used. `msg` says why."""

    @property
    def msg(self):
        """The reason why no device can be used."""
        return self.message



class LinkerError(RuntimeError):
    """Raised if a file to be linked cannot be read, or if no linked code defines a declared
    function."""


class KernelRuntimeError(RuntimeError):
    """The name that Numba's programs catch for a failed kernel."""


class DeprecationError(TypeError):
    """Raised for a form that Numba has removed."""
