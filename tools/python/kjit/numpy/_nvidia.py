"""Finds and calls NVIDIA's libraries for arrays on a GPU.

A library is searched for in the toolkit that CUDA_HOME or CUDA_PATH names, in the directories of
the system's loader, in /usr/local/cuda and in NVIDIA's Python packages, in this order.
"""

import contextlib
import ctypes
import functools
import glob
import os
from importlib.util import find_spec

from .. import _arrays
from ._errors import LibraryError

# For each library: the file name, its version numbers from the newest on, and the Python packages
# for CUDA 13 and CUDA 12.
_LIBRARIES = {
    "cuFFT": ("libcufft.so", (12, 11), "nvidia-cufft", "nvidia-cufft-cu12"),
    "cuSOLVER": ("libcusolver.so", (12, 11), "nvidia-cusolver", "nvidia-cusolver-cu12"),
}


def _folders():
    """Yields the directories to search, in order. An empty string means the directories of the
    system's loader."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield from (os.path.join(os.environ[variable], each) for each in ("lib64", "lib"))
    yield ""
    yield from ("/usr/local/cuda/lib64", *sorted(glob.glob("/usr/local/cuda-*/lib64"), reverse=True))
    packages = find_spec("nvidia")
    for folder in (packages.submodule_search_locations or ()) if packages else ():
        yield from sorted(glob.glob(os.path.join(folder, "*", "lib")), reverse=True)


@functools.cache
def library(name, what):
    """Returns the library with a name. Raises LibraryError if the library is not found. what: the name
    of the function that needs the library, for the message."""
    file, versions, package, older = _LIBRARIES[name]
    reasons = []
    for folder in _folders():
        for version in versions:
            path = os.path.join(folder, f"{file}.{version}")
            if folder and not os.path.exists(path):
                continue
            try:
                return ctypes.CDLL(path)
            except OSError as error:
                if folder:
                    reasons.append(str(error))
    reason = f" ({'; '.join(reasons)})" if reasons else ""
    raise LibraryError(
        f"{what} on a GPU needs {name}, which was not found{reason}: pip install {package}, or {older} for CUDA 12; or name the toolkit "
        "with CUDA_HOME"
    )


# ---- contexts and streams ----


class Place:
    """A GPU: kjit's device, a stream for calls of libraries, and the CUDA context of these calls."""

    def __init__(self, name):
        self.device = _arrays.device(name)
        self.stream = self.device.stream()
        self._driver = ctypes.CDLL("libcuda.so.1")
        handle, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._check(self._driver.cuDeviceGet(ctypes.byref(handle), self.device.ordinal))
        self._check(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), handle))

    @staticmethod
    def _check(status):
        if status:
            raise LibraryError(f"the CUDA driver returned the error {status}")

    @contextlib.contextmanager
    def calls(self):
        """Returns a context manager in which the CUDA context is current. It first waits for the
        work that is queued on the device, and at the end for the calls in the block."""
        self.device.synchronize()
        self._check(self._driver.cuCtxPushCurrent_v2(self._context))
        try:
            yield self
            self.stream.synchronize()
        finally:
            self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.cache
def place(name):
    """Returns the Place of a GPU, such as "cuda:0"."""
    return Place(name)


def address(x, element=0):
    """Returns the address of an element of a contiguous array. element: the row-major position."""
    return ctypes.c_void_p(x.__cuda_array_interface__["data"][0] + element * x.dtype.itemsize)


def check(status, call):
    """Raises LibraryError if a library's function returned a nonzero status."""
    if status:
        raise LibraryError(f"{call} returned the status {status}")
