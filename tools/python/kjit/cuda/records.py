"""Records in device memory, such as one element of an array of records."""

import numpy

from .. import _arrays, _kjit, _records
from . import streams


class _Part(_kjit.Held):
    """A device record or one of its fields. `_array` holds the whole record; path has the field
    names that lead to the part."""

    def __init__(self, array, whole, path, dtype):
        self._array, self._whole, self._path, self.dtype = array, whole, path, dtype
        if not path:
            self._own = array  # kernels take this array

    def own(self):
        """Returns the array that a kernel takes. Raises NotImplementedError for a field, because
        kernels take whole records only."""
        if self._path:
            name = self._path[-1]
            raise NotImplementedError(
                f"a kernel takes a whole device record, not only its field {name!r}; pass the record, and use `.{name}` in the kernel"
            )
        return self._array

    def _read(self):
        whole = numpy.empty((), self._whole)
        whole[...] = self._array.to_host()
        return whole, self._follow(whole)

    def _follow(self, part):
        for name in self._path:
            part = part[name]
        return part

    def _change(self, key, value):
        """Copies the record to the host, changes one item, and copies the record back."""
        whole, part = self._read()
        part[key] = value
        self._array.copy_from(whole)


class Field(_Part):
    """A field that is an array. Its elements can be read and written."""

    @property
    def shape(self):
        return self.dtype.shape

    @property
    def ndim(self):
        return len(self.dtype.shape)

    def __getitem__(self, key):
        return self._read()[1][key]

    def __setitem__(self, key, value):
        self._change(key, value)

    def __len__(self):
        return self.shape[0]

    def __array__(self, *args, **keywords):
        return numpy.asarray(self._read()[1], *args, **keywords)


class DeviceRecord(_Part):
    """A record in device memory with NumPy's fields, such as `r["a"]`. DeviceRecord(dtype) makes a
    new record with undefined contents. Raises TypeError if dtype has no fields."""

    def __init__(self, dtype, stream=0, own=None, whole=None, path=()):
        dtype = numpy.dtype(dtype)
        if not _records.is_record(dtype):
            raise TypeError(f"{dtype} has no fields, so it is not the dtype of a record")
        own = _arrays.empty((), _records.name_of(dtype)) if own is None else own
        super().__init__(own, whole or dtype, path, dtype)
        self.shape = self.strides = ()
        self.ndim, self.size, self.stream = 0, 1, stream
        self.nbytes = self.alloc_size = dtype.itemsize

    __cuda_memory__ = True

    @property
    def gpu_data(self):
        """The record's memory, a MemoryPointer."""
        from . import devices, driver

        return driver.memory_of(devices.device_of(self._array).get_primary_context(), self._array, self.nbytes)

    @property
    def device_ctypes_pointer(self):
        import ctypes

        return ctypes.c_void_p(self._array._address)

    @property
    def _numba_type_(self):
        from . import types

        return types.from_dtype(self.dtype)

    def copy_to_host(self, ary=None, stream=0):
        """Returns the record as a NumPy record, or copies it to ary. Raises TypeError if ary has
        another dtype."""
        streams.wait_for(stream)
        part = self._read()[1]
        if ary is None:
            return part[()] if isinstance(part, numpy.ndarray) else part
        if ary.dtype != self.dtype:
            raise TypeError(f"incompatible dtype: {ary.dtype} vs. {self.dtype}")
        for name in self.dtype.names:
            ary[name] = part[name]
        return ary

    def copy_to_device(self, ary, stream=0):
        """Copies another record to this one. Raises TypeError if ary has another dtype."""
        streams.wait_for(stream)
        ary = ary.copy_to_host() if isinstance(ary, DeviceRecord) else ary
        if ary.dtype != self.dtype:
            raise TypeError(f"incompatible dtype: {ary.dtype} vs. {self.dtype}")
        whole, part = self._read()
        for name in self.dtype.names:
            part[name] = ary[name]
        self._array.copy_from(whole)

    def __getitem__(self, name):
        kind = self.dtype[name]
        path = (*self._path, name)
        if _records.is_record(kind):
            return DeviceRecord(kind, self.stream, self._array, self._whole, path)
        if kind.shape:
            return Field(self._array, self._whole, path, kind)
        return self._read()[1][name]

    def __setitem__(self, name, value):
        self._change(name, value)

    def __array__(self, *args, **keywords):
        return numpy.asarray(self._read()[1], *args, **keywords)

    def __repr__(self):
        return f"<kjit.cuda.DeviceRecord {self.dtype}>"


def from_record_like(rec, stream=0):
    """Returns a new device record with the dtype of another record and undefined contents."""
    return DeviceRecord(rec.dtype, stream)


def to_device(rec, stream=0):
    """Returns a copy of a record on the device."""
    made = from_record_like(rec, stream)
    made.copy_to_device(rec)
    return made
