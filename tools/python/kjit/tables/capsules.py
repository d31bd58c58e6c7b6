"""Reads columns of other libraries in place through the Arrow C data interface with PyCapsules,
without pyarrow. See https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html."""

import ctypes

from .columns import Bits, Chunk, Data, Decimal, Refused

_P = ctypes.c_void_p


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", _P),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _P),
    ("private_data", _P),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(_P)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _P),
    ("private_data", _P),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", _P),
    ("private_data", _P),
]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = _P, [ctypes.py_object, ctypes.c_char_p]


class _Held:
    """A struct of the interface, which is released together with this object."""

    def __init__(self, kind):
        self.struct = kind()

    def __del__(self):
        if self.struct.release:
            ctypes.CFUNCTYPE(None, _P)(self.struct.release)(ctypes.addressof(self.struct))


class Stream:
    """The chunks in a column, (schema, [array]). The arrays are valid as long as this object lives.
    Raises RuntimeError if the stream fails."""

    def __init__(self, source):
        capsule = source.__arrow_c_stream__()
        stream = ctypes.cast(_pointer_of(capsule, b"arrow_array_stream"), ctypes.POINTER(_Stream))
        self.schema, self.arrays = _Held(_Schema), []
        self._check(stream, stream.contents.get_schema(stream, ctypes.byref(self.schema.struct)))
        while True:
            held = _Held(_Array)
            self._check(stream, stream.contents.get_next(stream, ctypes.byref(held.struct)))
            if not held.struct.release:
                break
            self.arrays.append(held)

    @staticmethod
    def _check(stream, status):
        if status:
            text = stream.contents.get_last_error(stream)
            raise RuntimeError(f"the Arrow stream fails: {text.decode() if text else status}")


class _Borrowed:
    """A struct of the interface that belongs to a capsule. The object keeps the capsule alive."""

    def __init__(self, capsule, name, kind):
        self.capsule = capsule
        self.struct = ctypes.cast(_pointer_of(capsule, name), ctypes.POINTER(kind)).contents


class Single:
    """The single chunk of an array with `__arrow_c_array__`, with the same attributes as Stream."""

    def __init__(self, source):
        schema, array = source.__arrow_c_array__()
        self.schema = _Borrowed(schema, b"arrow_schema", _Schema)
        self.arrays = [_Borrowed(array, b"arrow_array", _Array)]


_NUMBERS = {
    "c": "i1",
    "C": "u1",
    "s": "i2",
    "S": "u2",
    "i": "i4",
    "I": "u4",
    "l": "i8",
    "L": "u8",
    "e": "f2",
    "f": "f4",
    "g": "f8",
}
_DATES = {"tdm": "M8[ms]", **{f"tD{unit[0]}": f"m8[{unit}]" for unit in ("s", "ms", "us", "ns")}}
_STAMPS = {f"ts{unit[0]}:": f"M8[{unit}]" for unit in ("s", "us", "ns")} | {"tsm:": "M8[ms]"}
_REFUSED = {
    "z": "bytes",
    "+": "lists and structs",
    "tt": "times of a day",
    "ti": "intervals",
    "w": "bytes",
}


def type_of(text):
    """Returns the NumPy dtype for a format of the interface, or None for bools. Raises Refused for
    unsupported formats."""
    import numpy

    if text == "b":
        return None
    known = {**_NUMBERS, **_DATES, **_STAMPS}
    if text in known:
        return numpy.dtype(known[text])
    if text[:4] in _STAMPS:
        raise Refused(f"dates with the time zone {text[4:]} are not supported; remove the zone")
    what = next((word for start, word in _REFUSED.items() if text.startswith(start)), "columns of this type")
    raise Refused(f"{what} (Arrow format {text}) are not supported")


def read(source):
    """Returns the data of a column of numbers, bools or dates, from an object with
    `__arrow_c_stream__`."""
    import numpy

    stream = Stream(source)
    text = stream.schema.struct.format.decode()
    if text.startswith("d:"):
        return _decimals(stream, text)
    if text == "tdD":
        return Data([_days(chunk) for chunk in _chunks(stream, numpy.dtype("i4"))], "arrow")
    return Data(_chunks(stream, type_of(text)), "arrow")


def _decimals(stream, text):
    """Returns decimals as 64-bit integers. For 128-bit decimals they are a copy of the lower
    halves."""
    import numpy

    precision, scale, bits = (*map(int, text[2:].split(",")), 128)[:3]
    if precision > 18 or scale < 0:
        raise Refused(f"decimals with {precision} digits and the scale {scale} are not supported; the maximum is 18 digits, and the scale must not be negative")
    dtype = numpy.dtype({32: "i4", 64: "i8"}.get(bits) or f"V{bits // 8}")
    chunks = _chunks(stream, dtype)
    for chunk in chunks:
        wide = chunk.values.view("i8")[:: bits // 64] if bits > 64 else chunk.values
        chunk.values = numpy.ascontiguousarray(wide, "i8")
    return Data(chunks, "arrow", decimal=Decimal(precision, scale, bits))


def _days(chunk):
    """Converts 32-bit days to NumPy's 64-bit dates."""
    return Chunk(chunk.values.astype("M8[D]"), chunk.flags, chunk.count)


def _chunks(stream, dtype):
    import numpy

    made = [_chunk(held, dtype) for held in stream.arrays]
    return made or [Chunk(numpy.empty(0, dtype or bool), None, 0)]


def _chunk(held, dtype):
    import numpy

    array = held.struct
    count, first, flags = array.length, array.offset, None
    if array.null_count and array.buffers[0]:
        flags = Bits(_memory(held, array.buffers[0], (first + count + 7) // 8), first, count)
    if not count or not array.buffers[1]:
        return Chunk(numpy.zeros(count, dtype or bool), flags, count)
    if dtype is None:
        return Chunk(Bits(_memory(held, array.buffers[1], (first + count + 7) // 8), first, count), flags, count)
    data = _memory(held, array.buffers[1], (first + count) * dtype.itemsize)
    values = data.view(dtype)[first:]
    # buffers from another process may be unaligned
    return Chunk(values if values.flags.aligned else values.copy(), flags, count)


class _Memory:
    """The bytes in a buffer, for NumPy. The object keeps the struct that owns the bytes alive."""

    def __init__(self, held, address, count):
        self.held = held
        self.__array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, True), "version": 3}


def _memory(held, address, count):
    import numpy

    return numpy.asarray(_Memory(held, address, count))
