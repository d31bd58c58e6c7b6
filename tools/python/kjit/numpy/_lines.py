"""Unnormalized Fourier transforms along one axis: by NumPy for arrays on the CPU, by cuFFT for
arrays on a GPU."""

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
    return _engine.converted(shared(made, x.device), text)


def _by_cufft(*arguments):
    from . import _cufft

    return _cufft.transform(*arguments)


# The implementation for each kind of device.
LIBRARIES = {"cpu": _by_numpy, "cuda": _by_cufft}


def transform(kind, x, count, axis, is_inverse, what):
    """Returns a new array with the unnormalized transform along an axis.

    kind: "c2c", "r2c" or "c2r" for the types of the elements and of the result, real or complex
    x: the array, which the caller has padded or cut to the length of the transform
    count: the length of the transform
    """
    part = _dtypes.PART.get(x.dtype.text, x.dtype.text)
    text = part if kind == "c2r" else _dtypes.WHOLE[part]
    return LIBRARIES[x.device.split(":")[0]](kind, x, count, axis, is_inverse, text, what)
