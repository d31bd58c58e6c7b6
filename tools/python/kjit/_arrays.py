"""Arrays of kjit's own, and devices."""
from . import _kjit, _state, dtypes

_kjit.set_dtype_factory(dtypes.DType)


def _place(device):
    return device if device is not None else _state.device()


def _record_name(dtype):
    """The struct that a dtype of NumPy with fields or for dates is, or None."""
    from . import _records
    if isinstance(dtype, str):
        return dtype if _records.is_name(dtype) else None
    return _records.name_of(dtype)


def hint_of(dtype):
    """Behind the message: what a text of NumPy's, whose numbers count bytes and not bits, is called here."""
    if not isinstance(dtype, str):
        return ""
    import numpy
    try:
        name = dtypes.name_of(numpy.dtype(dtype))
    except (TypeError, ValueError, SyntaxError):
        return ""
    return f"; what NumPy calls {dtype!r} is \"{name}\", numbers of kjit's names are bits" if name else ""


def element_of(dtype):
    """The kernel IR's name of an element type."""
    name = dtypes.name_of(dtype) or _record_name(dtype)
    if name is None:
        raise TypeError(f"{dtype!r} is no element type: kjit.f32, \"f32\", numpy.float32{hint_of(dtype)}")
    return name


def empty(shape, dtype="f64", device=None):
    """A new array, contents undefined. shape: its extents in elements, an integer or a tuple of up to 8. dtype: of the
    elements, kjit.f32, "f32", numpy.float32, a dtype of NumPy, also one with fields. device: "cpu", "cuda", "cuda:1", a
    Device; None: what KJIT_DEVICE names, else the first one. TypeError: no such element type. NoDeviceError: no such device.
    DeviceMemoryError: it does not fit."""
    return _kjit.empty(_state.context(), shape, element_of(dtype), _place(device))


def full(shape, value, dtype="f64", device=None):
    """A new array whose elements are all `value`, a number. shape, dtype and device: see `kjit.empty`."""
    made = empty(shape, dtype, device)
    made.copy_from(value)
    return made


def zeros(shape, dtype="f64", device=None):
    """A new array of zeros. shape, dtype and device: see `kjit.empty`."""
    if _record_name(dtype):
        import numpy
        return array(numpy.zeros(shape, dtype), device=device)
    return full(shape, False if element_of(dtype) == "bool" else 0, dtype, device)


def array(source, dtype=None, device=None):
    """A new array with the shape and elements of `source`: an array of NumPy, of kjit, one with the buffer protocol,
    __dlpack__ or __cuda_array_interface__; or a list. dtype: converts the elements, in the host's memory. device: see
    `kjit.empty`. ArgumentError: elements that kjit has not, that are not aligned, or in another byte order."""
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
    """The array of another library, in place: `source` has __dlpack__ or __cuda_array_interface__. What is read-only there is
    so here. TypeError: it has neither. ArgumentError: what it says of itself does not fit."""
    return _kjit.import_array(_state.context(), source)


def device(name=None):
    """The device called `name`, "cpu", "cuda", "cuda:1", a Device; None: see `kjit.empty`. NoDeviceError: there is none."""
    return _state.context().device(_place(name))


def devices():
    """All devices, GPUs first."""
    return _state.context().devices()


def synchronize(name=None):
    """Waits for all that is queued on the device called `name`, see `kjit.device`. Failures of kernels on a GPU arrive here, as
    KernelError."""
    device(name).synchronize()


def statistics():
    """Counts of launches, compilations and cache hits since the program began, a dictionary; `compile_time_ns` is in ns."""
    return _state.context().statistics()


# ---- operators and methods of arrays, which kjit.numpy has ----

# The extension has the others.
_OPERATORS = (
    "matmul pow rmatmul rpow imatmul ipow bool complex contains copy deepcopy float format getitem setitem index int iter delitem "
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


def _is_attached():
    return isinstance(vars(_kjit.Array).get("nbytes"), property)


if not _is_attached():
    # The import of kjit.numpy, which has them, waits until an array needs one.
    for _name in (*(f"__{word}__" for word in _OPERATORS.split()), *_METHODS.split()):
        setattr(_kjit.Array, _name, _forward(_name))
    for _name in _FIELDS.split():
        setattr(_kjit.Array, _name, _forward_field(_name))
