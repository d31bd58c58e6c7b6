"""Numba's names of errors and warnings, as classes derived from kjit's and Python's."""

from .. import _errors


class NumbaWarning(Warning):
    """The base class of kjit.cuda's warnings."""


class NumbaPerformanceWarning(NumbaWarning):
    """The category of warnings about slow code, such as a launch that copies a host array."""


class NumbaDebugInfoWarning(NumbaWarning):
    """The category of warnings about debug information. kjit issues none, but programs can filter
    them."""


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """The category of warnings about features that will be removed."""


class NumbaInvalidConfigWarning(NumbaWarning):
    """The category of warnings about settings that have no effect."""


# Errors of a compilation. An error that a thread in a kernel raises belongs to other classes, as in
# Numba.
NumbaError = _errors.ProgramError
TypingError = _errors.ProgramError
LoweringError = _errors.ProgramError
UnsupportedError = _errors.ProgramError
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
    """Raised for syntax that Numba no longer supports."""
