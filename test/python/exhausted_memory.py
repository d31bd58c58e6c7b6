# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# UNSUPPORTED: sanitizer
"""A func whose large result needs memory of its own, while there is none: the error says so, and the next call works."""

import ctypes
import resource

import numpy as np

import kjit

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


@kjit.njit
def get_last(records):
    return records[1]


def without_memory(size_bytes, call):
    """Calls the function while no block of this size can be allocated. Returns its kjit exception, or None."""
    blocks, before = [], resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, before[1]))
    try:
        while blocks[-1:] != [None]:
            blocks.append(libc.malloc(size_bytes))
        call()
    except kjit.Error as error:
        return error
    finally:
        for block in blocks:
            libc.free(block)
        resource.setrlimit(resource.RLIMIT_AS, before)
    return None


records = np.zeros(2, np.dtype([("a", "f8", (8000,)), ("b", "i8")]))
records["b"] = 4, 5
assert get_last(records)["b"] == 5
error = without_memory(records.itemsize, lambda: get_last(records))
assert isinstance(error, kjit.HostMemoryError), repr(error)
assert "the result of the function has 64008 bytes" in str(error), error
assert get_last(records)["b"] == 5
