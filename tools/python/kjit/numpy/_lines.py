"""Fourier transforms along one axis, without factors: by NumPy for arrays of the CPU, by cuFFT for arrays of a GPU."""

import numpy

from . import _dtypes, _engine
from ._protocols import shared


def _by_numpy(kind, x, count, axis, is_inverse, text, what):
    host = numpy.asarray(x)
    if kind == "c2r":
        made = numpy.fft.irfft(host, count, axis, "forward")
    elif kind == "r2c":
        made = numpy.fft.rfft(host, count, axis, "backward")
    else:
        made = numpy.fft.ifft(host, count, axis, "forward") if is_inverse else numpy.fft.fft(host, count, axis, "backward")
    return _engine.converted(shared(made), text)


def _by_cufft(*arguments):
    from . import _cufft

    return _cufft.transform(*arguments)


# The function that computes, by the kind of the device.
LIBRARIES = {"cpu": _by_numpy, "cuda": _by_cufft}


def transform(kind, x, count, axis, is_inverse, what):
    """A new array with the transform along an axis. kind: "c2c", "r2c" or "c2r"; x: its elements along the axis are those of the
    transform; count: the number of elements that the transform is of."""
    part = _dtypes.PART.get(x.dtype.text, x.dtype.text)
    text = part if kind == "c2r" else _dtypes.WHOLE[part]
    return LIBRARIES[x.device.split(":")[0]](kind, x, count, axis, is_inverse, text, what)
