"""Functions that create kjit arrays and find devices."""
from . import _kjit, _state, dtypes

_kjit.set_dtype_classes(dtypes.DType, dtypes.ElementType)


def _place(device):
    return device if device is not None else _state.device()


def _record_name(dtype):
    """Returns the struct name for a NumPy dtype with fields or for dates, or None."""
    from . import _records
    if isinstance(dtype, str):
        return dtype if _records.is_name(dtype) else None
    return _records.name_of(dtype)


def hint_of(dtype):
    """Returns a hint for an error message if dtype is a NumPy type name such as "f4", whose number counts bytes. The hint
    gives kjit's name, "f32", whose number counts bits. Returns "" for other types."""
    if not isinstance(dtype, str):
        return ""
    import numpy
    try:
        name = dtypes.name_of(numpy.dtype(dtype))
    except (TypeError, ValueError, SyntaxError):
        return ""
    return f"; what NumPy calls {dtype!r} is \"{name}\", because kjit's names count bits" if name else ""


def element_of(dtype):
    """Returns the kernel IR name of an element type."""
    name = dtypes.name_of(dtype) or _record_name(dtype)
    if name is None:
        raise TypeError(f"{dtype!r} is not an element type, such as kjit.f32, \"f32\", numpy.float32{hint_of(dtype)}")
    return name


def empty(shape, dtype="f64", device=None):
    """Returns a new array with undefined contents.

    shape is an integer or a tuple of up to 8 integers. dtype is the element type: kjit.f32, "f32", numpy.float32, or another NumPy dtype,
    also with fields. device is "cpu", "cuda", "cuda:1" or a Device; None means the device that KJIT_DEVICE names, or else the first device.

    Raises TypeError for an unknown element type, NoDeviceError if the device does not exist, and DeviceMemoryError if the memory does not
    suffice.
    """
    return _kjit.empty(_state.context(), shape, element_of(dtype), _place(device))


def full(shape, value, dtype="f64", device=None):
    """Returns a new array with all elements equal to the number `value`. For shape, dtype and device see `kjit.empty`."""
    made = empty(shape, dtype, device)
    made.copy_from(value)
    return made


def zeros(shape, dtype="f64", device=None):
    """Returns a new array of zeros. For shape, dtype and device see `kjit.empty`."""
    if _record_name(dtype):
        import numpy
        return array(numpy.zeros(shape, dtype), device=device)
    return full(shape, False if element_of(dtype) == "bool" else 0, dtype, device)


def _same(x):
    return x


def array(source, dtype=None, device=None):
    """Returns a new array with the shape and elements of `source`.

    source is a NumPy or kjit array, an object with the buffer protocol, __dlpack__ or __cuda_array_interface__, or a list. dtype converts
    the elements in host memory. For device see `kjit.empty`.

    Raises ArgumentError if kjit does not support the elements, or if they are not aligned or have another byte order.
    """
    if dtype is not None and element_of(dtype) in dtypes.SCALARS and element_of(dtype) not in dtypes._NUMPY:
        from ._algorithms import map  # a type that NumPy lacks: bf16

        return map(_same, array(source, None, device), dtype=dtype)
    if dtype is not None or isinstance(source, (list, tuple, int, float, complex)):
        import numpy
        source = numpy.asarray(source if not isinstance(source, _kjit.Array) else source.to_host(),
                               dtypes._NUMPY.get(element_of(dtype)) if dtype is not None else None)
    name = _record_name(getattr(source, "dtype", None))
    if name:
        made = _kjit.empty(_state.context(), source.shape, name, _place(device))
        made.copy_from(source)
        return made
    return _kjit.copy_of(_state.context(), source, _place(device))


def from_dlpack(source):
    """Returns an array that shares the memory of another library's array. `source` has __dlpack__ or __cuda_array_interface__. A read-only
    source gives a read-only array. Raises TypeError if `source` has neither method, and ArgumentError if its description is inconsistent.
    """
    return _kjit.import_array(_state.context(), source)


def device(name=None):
    """Returns a device by its name ("cpu", "cuda", "cuda:1") or a Device. None means the default device, see `kjit.empty`. Raises
    NoDeviceError if the device does not exist."""
    return _state.context().device(_place(name))


def devices():
    """Returns all devices, GPUs first."""
    return _state.context().devices()


def synchronize(name=None):
    """Waits for all work queued on a device (see `kjit.device`). Raises KernelError if a kernel on a GPU has failed."""
    device(name).synchronize()


def statistics():
    """Returns a dictionary with counts for all kernels and functions since the program started: the numbers of launches and
    compilations, and how often code was loaded from the disk cache (`disk_hits`) or from a file of compiled kernels (`imports`).
    `compile_time_ns` is in nanoseconds."""
    return _state.statistics()


# ---- operators and methods of arrays that kjit.numpy implements ----

# The extension implements all other operators and methods.
_OPERATORS = (
    "matmul pow rmatmul rpow imatmul ipow bool complex contains copy deepcopy float format index int iter "
    "reduce repr str array_namespace array_ufunc array_function"
)
_METHODS = (
    "_repr_html_ all any argmax argmin argsort astype copy cumprod cumsum fill flatten max mean min nonzero prod ravel repeat "
    "reshape searchsorted sort squeeze std sum swapaxes take to_device tolist transpose var"
)
_FIELDS = "imag itemsize mT nbytes real strides"


def _attach():
    from .numpy import _methods

    _methods.attach()


def _forward(name):
    def method(self, *args, **keywords):
        _attach()
        return getattr(type(self), name)(self, *args, **keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The method `{name}` of arrays of NumPy and of the array API standard; kjit.numpy has it."
    return method


def _forward_field(name):
    def get(self):
        _attach()
        return getattr(self, name)

    return property(get, doc=f"The attribute `{name}` of arrays of NumPy and of the array API standard; kjit.numpy has it.")


def _get_item(x, key):
    _attach()
    return x[key]


def _set_item(x, key, value):
    _attach()
    x[key] = value


def _is_attached():
    return isinstance(vars(_kjit.Array).get("nbytes"), property)


if not _is_attached():
    # kjit.numpy is imported when the program first uses one of these operators or methods.
    _kjit.set_indexing(_get_item, _set_item)
    for _name in (*(f"__{word}__" for word in _OPERATORS.split()), *_METHODS.split()):
        setattr(_kjit.Array, _name, _forward(_name))
    for _name in _FIELDS.split():
        setattr(_kjit.Array, _name, _forward_field(_name))
