"""What NumPy has beyond the standard: functions, further arguments, lists and numbers in the place of arrays.

NumPy's own function of the same name does the work. With arrays of kjit it calls kjit's function of `_functions`, or it computes on
the host, which is rejected for arrays of a GPU."""

import functools
import inspect
import sys

from . import _dtypes
from ._engine import Array


def _numpy():
    import numpy

    return numpy


# ---- the arguments of functions ----

# How many of the first arguments are arrays; for other functions it is one. ALL: each argument; MANY: the first is a sequence of arrays.
_ALL, _MANY = 99, -1
_COUNTS = {
    "searchsorted": 2, "dot": 2, "outer": 2, "tensordot": 2, "matmul": 2, "vecdot": 2, "where": 3, "isin": 2, "take_along_axis": 2,
    "cross": 2, "solve": 2, "broadcast_arrays": _ALL, "meshgrid": _ALL, "concat": _MANY, "stack": _MANY, "hstack": _MANY, "vstack": _MANY,
    "broadcast_shapes": 0, "einsum": 0, "fftfreq": 0, "rfftfreq": 0,
}  # fmt: skip


def _device_of(args):
    """The device of the first array of kjit among arguments, or None."""
    for x in args:
        found = x.device if isinstance(x, Array) else _device_of(x) if isinstance(x, (list, tuple)) else None
        if found is not None:
            return found
    return None


def _array(x, device, takes_numbers):
    """An argument as an array of kjit: a list or a tuple is moved to the device, an array of NumPy stays on the host."""
    from . import _creation, _protocols

    if getattr(type(x), "__kjit_traced__", False):
        raise TypeError("a value of kjit.numpy.grad, whose operations are recorded")
    if isinstance(x, (list, tuple)) or takes_numbers and _dtypes.is_scalar(x):
        return _creation.asarray(x, device=device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray) or takes_numbers and numpy is not None and isinstance(x, numpy.generic):
        return _protocols.own(x, "cpu" if x.ndim else device or "cpu")
    return x


def is_traced(args):
    """Whether kjit.numpy.grad records operations over one of the arguments."""
    return any(getattr(type(x), "__kjit_traced__", False) for x in args)


def _call_traced(name, args, options):
    from ._gradients import call_traced

    return call_traced(name, args, options)


def _arrays(name, args):
    """Positional arguments with arrays of kjit where the function takes arrays."""
    count = _COUNTS.get(name, 1)
    if not args or count > 0 and all(type(x) is Array for x in args[:count]):
        return args
    device = _device_of(args)
    if count == _MANY:
        first = args[0] if isinstance(args[0], Array) else [_array(x, device, True) for x in args[0]]
        return (first, *args[1:])
    return (*(_array(x, device, count == 1) for x in args[:count]), *args[count:])


def widened(function, module=_numpy):
    """A function of the namespace that also takes lists, numbers and arrays of NumPy, and calls the function with its name of NumPy's
    module for arguments that it does not have."""
    name = function.__name__
    signature = functools.cache(lambda: inspect.signature(function))

    @functools.wraps(function)
    def call(*args, **options):
        try:
            args = _arrays(name, args)
            return function(*args, **options)
        except TypeError:
            if is_traced(args):
                return _call_traced(name, args, options)
            found = getattr(module(), name, None)
            if found is None or _binds(signature(), args, options):
                raise
        return by_numpy(found, args, options)

    return call


def widened_method(function):
    """A widened function as a method, whose arguments are those of NumPy's method."""
    wide = widened(function)

    def call(self, *args, **options):
        return wide(self, *args, **options)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


def _binds(signature, args, options):
    try:
        signature.bind(*args, **options)
    except TypeError:
        return False
    return True


# ---- NumPy's functions ----


def by_numpy(function, args, options):
    """Calls a function of NumPy. Arrays of the result are arrays of kjit; those that were given come back themselves."""
    numpy = _numpy()
    options = {name: numpy.dtype(x.dtype) if isinstance(x, _dtypes.dtypes.DType) else x for name, x in options.items()}
    args = tuple(numpy.dtype(x.dtype) if isinstance(x, _dtypes.dtypes.DType) else x for x in args)
    given = [x for x in (*args, *options.values()) if isinstance(x, numpy.ndarray)]
    return _own(function(*args, **options), _device_of((*args, *options.values())), given)


def _own(x, device, given):
    """A result with arrays of kjit in the place of NumPy's."""
    from . import _creation, _engine

    numpy = _numpy()
    if isinstance(x, numpy.ndarray):
        is_own = any(x is each for each in given) or _dtypes.dtypes.name_of(x.dtype) not in _dtypes.KIND or x.ndim > _engine.MOST_RANK
        return x if is_own else _creation.asarray(x, device=device)
    if isinstance(x, (list, tuple)):
        items = [_own(item, device, given) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


class _Tricks:
    """An object of NumPy that makes arrays by its index, as `mgrid`."""

    def __init__(self, tricks):
        self._tricks = tricks

    def __getitem__(self, key):
        return by_numpy(self._tricks.__getitem__, (key,), {})


_TRICKS = ("mgrid", "ogrid", "r_", "c_")
# Classes and objects of NumPy that are the namespace's as they are.
_SAME = (
    "dtype errstate printoptions ndindex ndenumerate testing s_ index_exp typing typecodes generic number integer signedinteger "
    "unsignedinteger inexact floating complexfloating"
).split()


def find(name, module=_numpy):
    """What an attribute of NumPy is in the namespace, or None."""
    thing = vars(module()).get(name)
    if thing is None or name.startswith("_"):
        return None
    if name in _SAME or isinstance(thing, (int, float)):
        return thing
    if name in _TRICKS:
        return _Tricks(thing)
    if isinstance(thing, type):
        return _dtypes.BY_TEXT.get(_dtypes.dtypes.name_of(thing)) if issubclass(thing, _numpy().generic) else None
    if not callable(thing):
        return None

    @functools.wraps(thing)
    def call(*args, **options):
        return by_numpy(thing, args, options)

    return call


def attribute(module, name, numpys):
    """For `__getattr__` of a module of the namespace: what NumPy's module with the same name has. numpys(): that module."""
    found = None if name.startswith("_") else find(name, numpys)
    if found is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return found


def method(name):
    """The method of arrays that calls the function of NumPy with the name."""

    def call(self, *args, **options):
        return by_numpy(getattr(_numpy(), name), (self, *args), options)

    call.__name__, call.__doc__ = name, f"As `numpy.{name}`."
    return call


class UfuncMethod:
    """`reduce` and the other methods of ufuncs, as an attribute of a function of the namespace."""

    def __init__(self, ufunc, name):
        self._ufunc, self.__name__ = ufunc, name

    def __call__(self, *args, **options):
        made = getattr(getattr(_numpy(), self._ufunc), self.__name__)
        return by_numpy(made, _arrays("", args), options)


def add_ufunc_methods(function, ufunc, count):
    """Gives a function of the namespace the methods of NumPy's ufunc."""
    for name in ("reduce", "accumulate", "reduceat", "outer", "at") if count == 2 else ("at",):
        setattr(function, name, UfuncMethod(ufunc, name))
    function.nin, function.nout, function.nargs = count, 1, count + 1
