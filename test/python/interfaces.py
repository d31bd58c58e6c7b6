# REQUIRES: build
# RUN: mkdir -p %t && %cc -shared -fPIC -O1 -D_GNU_SOURCE= -I%srcdir/include -I%srcdir/lib -I%srcdir/runtime %S/Inputs/fake_driver.c -o %t/libcuda.so.1
# RUN: env LD_LIBRARY_PATH=%t %kjit-python %s 1
# RUN: env LD_LIBRARY_PATH=%t %kjit-python %s 2
"""Launches on a GPU with arrays of which only the CUDA array interface is known, on a driver that only notes what it is given. With one
GPU a repeated launch reads the interface without any Python code. With two GPUs the address decides which one is meant. An array with
a stream or a read-only array takes the general path each time."""
import ctypes
import os
import struct
import sys

import numpy as np

os.environ["NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"] = "0"
driver = ctypes.CDLL("libcuda.so.1")
driver.fake_set_devices(int(sys.argv[1]))

from kjit import cuda  # noqa: E402


class Seen(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("launches", "allocations", "events", "streams", "orders")] + [
        ("stream", ctypes.c_uint64), ("ordered", ctypes.c_uint64 * 2), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("parameter_bytes", ctypes.c_int64), ("parameters", ctypes.c_char * 1024), ("shared_bytes", ctypes.c_int64)]


def last_launch():
    """Returns the number of launches so far, and the parameters of the last one as numbers of 64 bits."""
    seen = Seen()
    driver.fake_look(ctypes.byref(seen))
    data = ctypes.string_at(ctypes.addressof(seen) + Seen.parameters.offset, seen.parameter_bytes // 8 * 8)
    return seen.launches, struct.unpack(f"<{len(data) // 8}Q", data)


class Described:
    """An array of another library, of which only the interface is known."""

    def __init__(self, array, read_only=False, **changes):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": None if array.flags.c_contiguous else array.strides, "typestr": array.dtype.str,
            "data": (array.ctypes.data, read_only), "version": 3, **changes}


def add(r, x, n):
    i = cuda.grid(1)
    if i < n:
        r[i] += x[i]


general = []  # the launches that Python code has prepared
prepare = cuda.dispatcher.Dispatcher._launch
cuda.dispatcher.Dispatcher._launch = lambda self, *args: (general.append(args), prepare(self, *args))[1]

host = np.arange(24.0)
contiguous, gaps = Described(host[:6]), Described(host[6::3])
is_one = sys.argv[1] == "1"
for jit in (cuda.jit, cuda.jit("void(float64[:], float64[:], int64)")):
    kernel = jit(add)[1, 32]
    for r, x in ((contiguous, Described(host[6:12])), (contiguous, Described(host[12:18], stream=None))):
        del general[:]
        for count in range(3):
            before, _ = last_launch()
            kernel(r, x, 6)
            launches, parameters = last_launch()
            assert launches == before + 1 and {v.array.ctypes.data for v in (r, x)} <= set(parameters), (r, x, parameters)
        assert len(general) <= 1 if is_one else len(general) == 3, (len(general), is_one)
    # An address that changes is read at each launch, and so is a shape.
    r = Described(host[:6])
    kernel(r, contiguous, 6)
    for i in range(1, 4):
        r.__init__(host[i : 6 + i])
        kernel(r, contiguous, 6)
        assert host[i:].ctypes.data in last_launch()[1]
    del general[:]
    for i in range(3):
        kernel(Described(host[:6], stream=1), contiguous, 6)
    assert len(general) == 3
    for wrong in (Described(host[:6], stream=0), Described(host[:6], version=1), Described(host[:6], data=(0, False)), Described(host[:6], shape=[6])):
        for _ in range(2):
            before, _ = last_launch()
            try:
                kernel(contiguous, wrong, 6)
                raise SystemExit(f"{wrong.__cuda_array_interface__} is taken")
            except (TypeError, ValueError):
                pass
            assert last_launch()[0] == before
    for _ in range(2):  # a kernel writes r
        try:
            kernel(Described(host[:6], read_only=True), contiguous, 6)
            raise SystemExit("a read-only array is written")
        except (TypeError, ValueError):
            pass
kernel = cuda.jit(add)[1, 32]
kernel(contiguous, gaps, 6)
kernel(contiguous, gaps, 6)
assert {host.ctypes.data, gaps.array.ctypes.data} <= set(last_launch()[1])


class Interrupted:
    """An array whose interface raises an exception the first time."""

    def __init__(self, exception):
        self.exception = exception

    @property
    def __cuda_array_interface__(self):
        if self.exception:
            exception, self.exception = self.exception, None
            raise exception
        return contiguous.__cuda_array_interface__


# Ctrl-C inside a property of an argument is not lost.
kernel(Interrupted(None), contiguous, 6)
for exception in (KeyboardInterrupt, SystemExit):
    before, _ = last_launch()
    try:
        kernel(Interrupted(exception), contiguous, 6)
        raise AssertionError(f"{exception} is lost")
    except exception:
        assert last_launch()[0] == before
print("ok")
