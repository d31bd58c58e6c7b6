"""Numba's names of what goes wrong, as classes of kjit's and of Python's errors."""

from .. import _errors


class NumbaWarning(Warning):
    """A warning of kjit.cuda."""


class NumbaPerformanceWarning(NumbaWarning):
    """Something that is slow."""


class NumbaDebugInfoWarning(NumbaWarning):
    """Something on debug information."""


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    """Something that goes away."""


class NumbaInvalidConfigWarning(NumbaWarning):
    """A setting that does nothing."""


NumbaError = _errors.Error
TypingError = _errors.Error
LoweringError = _errors.Error
UnsupportedError = _errors.Error
CudaAPIError = _errors.Error


class CudaSupportError(_errors.Error):
    """There is no device to use. `msg` says why."""

    @property
    def msg(self):
        """Why there is none."""
        return self.message



class LinkerError(RuntimeError):
    """Code that is to be linked is not there."""


class KernelRuntimeError(RuntimeError):
    """A kernel that failed."""


class DeprecationError(TypeError):
    """A form that Numba had once."""
