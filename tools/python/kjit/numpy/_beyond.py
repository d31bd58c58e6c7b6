"""NumPy's functions and arguments that the array API standard lacks, and lists and numbers in place
of arrays.

A call of such a function goes to NumPy's function of the same name. If it gets kjit arrays, NumPy
calls back into kjit's function in `_functions`, or computes on the host. Arrays on a GPU are
rejected if only the host could compute the result.
"""

import collections.abc
import functools
import inspect
import sys

from .. import _kjit
from .._traced import is_traced
from . import _dtypes, _operands
from ._engine import LISTS, Array
from ._errors import ElementTypeError


def _numpy():
    import numpy

    return numpy


# ---- the arguments of functions ----

# Functions with several array arguments that also accept numbers for them.
_OF_NUMBERS = ("broadcast_arrays", "isin", "meshgrid", "outer")
# The number of leading arguments that are arrays; 1 for a function that is not listed. _ALL: every
# argument is an array. _MANY: the first argument is a sequence of arrays.
_ALL, _MANY = 99, -1
_COUNTS = {
    "searchsorted": 2, "dot": 2, "outer": 2, "tensordot": 2, "matmul": 2, "vecdot": 2, "where": 3, "isin": 2, "take_along_axis": 2,
    "cross": 2, "solve": 2, "broadcast_arrays": _ALL, "meshgrid": _ALL, "concat": _MANY, "stack": _MANY, "hstack": _MANY, "vstack": _MANY,
    "broadcast_shapes": 0, "einsum": 0, "fftfreq": 0, "rfftfreq": 0,
}  # fmt: skip


def _device_of(args):
    """Returns the device of the first kjit array among the arguments, or None."""
    for x in args:
        found = x.device if isinstance(x, Array) else _device_of(x) if isinstance(x, (list, tuple)) else None
        if found is not None:
            return found
    return None


def _array(x, device, takes_numbers):
    """Converts an argument to a kjit array. A list or tuple is copied to the device; a NumPy array
    is used in place, on the CPU. takes_numbers: whether numbers are converted as well. Raises
    TypeError for a traced value of kjit.grad."""
    from . import _creation, _protocols

    if getattr(type(x), "__kjit_traced__", False):
        raise TypeError("a value of kjit.grad, whose operations are recorded")
    if isinstance(x, LISTS) or takes_numbers and _dtypes.is_scalar(x):
        return _creation.asarray(x, device=device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray) or takes_numbers and numpy is not None and isinstance(x, numpy.generic):
        return _protocols.own(x, "cpu" if x.ndim else device or "cpu")
    return _creation.asarray(x, device=device) if _operands.is_array_like(x) else x


def _call_traced(name, args, options):
    from ._gradient_rules import call_traced

    return call_traced(name, args, options)


def _arrays(name, args):
    """Returns the positional arguments with a kjit array in each place where the function takes an
    array."""
    count = _COUNTS.get(name, 1)
    if not args or count > 0 and all(type(x) is Array for x in args[:count]):
        return args
    if count == _MANY and type(args[0]) in (list, tuple) and all(type(x) is Array for x in args[0]):
        return args
    device = _device_of(args)
    if count == _MANY:
        first = args[0] if isinstance(args[0], Array) else [_array(x, device, True) for x in args[0]]
        return (first, *args[1:])
    takes_numbers = count == 1 or name in _OF_NUMBERS
    return (*(_array(x, device, takes_numbers) for x in args[:count]), *args[count:])


# The functions that run a single algorithm. The shapes and types of the arrays determine the
# algorithm, not their elements. The extension repeats such a call without Python code.
_REPEATED = frozenset(
    "sum prod max min mean var std any all count_nonzero argmax argmin cumulative_sum cumulative_prod cumsum cumprod matmul vecdot dot searchsorted".split()
)


# The functions whose frequent calls run in C, each with the name of the C function and the number
# that the C function receives.
_QUICK = {
    "reshape": ("reshape", 0), "ravel": ("ravel", 0), "flatten": ("flatten", 0), "transpose": ("transpose", 0), "squeeze": ("squeeze", 0),
    "expand_dims": ("expand_dims", 0), "concat": ("concat", 0), "hstack": ("concat", 1), "vstack": ("concat", 2), "stack": ("stack", 0),
    "nonzero": ("nonzero", 0), "take": ("take", 0), "where": ("choice", None), "sort": ("sort", 0), "argsort": ("sort", 1),
    "argmin": ("find_extreme", 0), "argmax": ("find_extreme", 1),
}  # fmt: skip


def _quick(made, name):
    """Returns a function's shortcut in _QUICK, which runs frequent calls in C. If the number in
    _QUICK is None, the C function receives the row of the operation in _table."""
    from ._table import ROWS

    quick, number = _QUICK[name]
    return _kjit.shortcut(made, quick, ROWS[name].index if number is None else number, name in _REPEATED)


def widened(function, module=_numpy):
    """Wraps a function of the namespace so that it also accepts lists, numbers and NumPy arrays. If
    the arguments do not fit the function, the wrapper calls NumPy's function of the same name.
    module: a function that returns NumPy's module."""
    made = _widened(function, module)
    if function.__name__ in _QUICK:
        return _quick(made, function.__name__)
    return _kjit.shortcut(made) if function.__name__ in _REPEATED else made


def _widened(function, module=_numpy):
    name = function.__name__
    signature = functools.cache(lambda: inspect.signature(function))

    @functools.wraps(function)
    def call(*args, **options):
        given = args
        try:
            args = _arrays(name, args)
            return function(*args, **options)
        except TypeError as error:
            if is_traced(args):
                return _call_traced(name, args, options)
            found = getattr(module(), name, None)
            if isinstance(error, ElementTypeError):  # strings, objects and dates: NumPy computes with them
                args = given
            elif _binds(signature(), args, options):
                found = None
            if found is None:
                raise
        return by_numpy(found, args, options)

    return call


def widened_method(function):
    """Wraps a function as widened() does, for use as a method with the arguments of NumPy's method."""
    wide = _widened(function)

    def call(self, *args, **options):
        return wide(self, *args, **options)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    if function.__name__ in _QUICK:
        return _quick(call, function.__name__)
    return _kjit.shortcut(call) if function.__name__ in _REPEATED else call


def _binds(signature, args, options):
    try:
        signature.bind(*args, **options)
    except TypeError:
        return False
    return True


# ---- calls of NumPy ----


def by_numpy(function, args, options):
    """Calls a NumPy function. New arrays and scalars in its result are returned as kjit arrays; arrays
    that were arguments are returned as they are."""
    numpy = _numpy()
    options = {name: numpy.dtype(x.dtype) if isinstance(x, _dtypes.dtypes.DType) else x for name, x in options.items()}
    args = tuple(numpy.dtype(x.dtype) if isinstance(x, _dtypes.dtypes.DType) else x for x in args)
    given = [x for x in (*args, *options.values()) if isinstance(x, numpy.ndarray)]
    return _own(function(*args, **options), _device_of((*args, *options.values())), given)


def _own(x, device, given):
    """Returns a result with kjit arrays in place of new NumPy arrays. given: the NumPy arrays among
    the arguments."""
    from . import _creation, _engine

    numpy = _numpy()
    if isinstance(x, numpy.ndarray):
        is_own = any(x is each for each in given) or _dtypes.dtypes.name_of(x.dtype) not in _dtypes.KIND or x.ndim > _engine.MOST_RANK
        return x if is_own else _creation.asarray(x, order="F" if x.flags.fnc else None, device=device)
    if isinstance(x, numpy.generic):
        return _creation.asarray(x, device=device)._mark_result() if _dtypes.dtypes.name_of(x.dtype) in _dtypes.KIND else x
    if isinstance(x, (list, tuple)):
        items = [_own(item, device, given) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return Archive(x) if type(x).__name__ == "NpzFile" else x


class Archive(collections.abc.Mapping):
    """The arrays of an .npz file by name, as `load` returns them. Indexing the archive with a name
    reads the array of this name and returns a kjit array. files: the names."""

    def __init__(self, file):
        self._file = file
        self.files = file.files

    def __getitem__(self, name):
        return _own(self._file[name], None, [])

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)

    def close(self):
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()

    def __repr__(self):
        return repr(self._file)


class _Tricks:
    """The counterpart of a NumPy object that makes arrays when it is indexed, such as `mgrid`. It makes
    kjit arrays."""

    def __init__(self, tricks):
        self._tricks = tricks

    def __getitem__(self, key):
        return by_numpy(self._tricks.__getitem__, (key,), {})


_TRICKS = ("mgrid", "ogrid", "r_", "c_")
# NumPy classes and objects that the namespace shares with NumPy.
_SAME = (
    "broadcast dtype errstate printoptions ndindex ndenumerate nditer poly1d polynomial testing s_ index_exp typing typecodes generic number integer "
    "signedinteger unsignedinteger inexact floating complexfloating"
).split()


_ELEMENTS = "elements of kjit arrays are numbers and bools"
_OTHER_ELEMENTS = "char datetime64 datetime_data is_busday busday_count busday_offset busdaycalendar object_ rec recarray record str_ bytes_ strings timedelta64 void"
# Names of NumPy and CuPy that the namespace does not have, with the reason or a replacement.
_REFUSED = {
    **dict.fromkeys(_OTHER_ELEMENTS.split(), _ELEMENTS),
    **dict.fromkeys(("longdouble", "clongdouble", "float128", "complex256"), "kjit arrays have no extended precision; use float64"),
    "ma": "kjit arrays have no masks; use where= or numpy.ma",
    "matrix": "use arrays of two dimensions",
    "memmap": "use numpy.memmap, and asarray() for the part that is computed",
    "ElementwiseKernel": "use kjit.vectorize or kjit.jit",
    "ReductionKernel": "use kjit.reduce, whose operand can be computed",
    "RawKernel": "use kjit.jit, or kjit.cuda.declare_device for functions of CUDA C",
    "RawModule": "use kjit.jit, or kjit.cuda.declare_device for functions of CUDA C",
    "cuda": "use kjit.cuda, the device= argument and kjit.synchronize()",
    "fromDlpack": "use from_dlpack",
    "scatter_add": "use add.at",
}


def _lib():
    """Returns the functions of `numpy.lib` that work on kjit arrays."""
    from types import SimpleNamespace

    from . import _manipulation

    names = ("as_strided", "broadcast_arrays", "broadcast_to", "sliding_window_view")
    return SimpleNamespace(stride_tricks=SimpleNamespace(**{name: widened(getattr(_manipulation, name)) for name in names}))


def _vectorize(*args, **options):
    """Returns a function like `numpy.vectorize`: Python calls the given function for each element, on
    the host. `kjit.vectorize` compiles functions."""
    made = _numpy().vectorize(*args, **options)

    def call(*args, **options):
        found = by_numpy(made, args, options)
        # this call has passed the function to a decorator that was made with options only
        return call if found is made else found

    call.__doc__ = made.__doc__
    return call


def _as_contiguous(a, dtype=None):
    """Returns the array itself if its elements are in row-major order without gaps, and a copy in this order otherwise. The
    result has at least one dimension."""
    from ._creation import asarray

    made = asarray(a, dtype, "C")
    return made if made.ndim else made.reshape(1)


def _as_fortran(a, dtype=None):
    """Returns the array itself if its elements are in column-major order without gaps, and a copy in this order otherwise."""
    from ._creation import asarray

    made = asarray(a, dtype, "F")
    return made if made.ndim else made.reshape(1)


def _as_any(a, dtype=None, order=None):
    """Does the same as `kjit.numpy.asarray`, because arrays have no subclasses."""
    from ._creation import asarray

    return asarray(a, dtype, order)


# Names of the namespace that are made from NumPy's classes and modules.
_MADE = {
    "lib": _lib, "vectorize": lambda: _vectorize, "ascontiguousarray": lambda: _as_contiguous, "asfortranarray": lambda: _as_fortran,
    "asanyarray": lambda: _as_any,
}  # fmt: skip


_FOUND: dict[tuple, tuple] = {}  # the counterparts that `find` has returned


def find(name, module=_numpy):
    """Returns the namespace's counterpart of a NumPy attribute, or None."""
    if name.startswith("_"):
        return None
    # NumPy imports some of its modules at their first use, and warns about names that it will remove, so getattr is
    # called only for the names in _SAME
    thing = getattr(module(), name, None) if name in _SAME else vars(module()).get(name)
    if thing is None:
        return None
    known = _FOUND.get((module, name))
    if known is None or known[0] is not thing:  # a program can replace NumPy functions
        known = _FOUND[module, name] = thing, _counterpart(name, thing)
    return known[1]


def _counterpart(name, thing):
    if name in _SAME or isinstance(thing, (int, float)):
        return thing
    if name in _TRICKS:
        return _Tricks(thing)
    if name in _MADE:
        return _MADE[name]()
    if isinstance(thing, type):
        is_abstract = not issubclass(thing, _numpy().generic) or issubclass(thing, _numpy().flexible) or bool(thing.__subclasses__())
        return None if is_abstract else _dtypes.BY_TEXT.get(_dtypes.dtypes.name_of(_numpy().dtype(thing)))
    if not callable(thing):
        return None

    @functools.wraps(thing)
    def call(*args, **options):
        return by_numpy(thing, args, options)

    return _kjit.shortcut(call, "unique", keeps_inverse_shape()) if thing is _numpy().unique else call


def keeps_inverse_shape():
    """Returns whether the inverse of NumPy's `unique` has the array shape, as in NumPy 2."""
    return not _numpy().__version__.startswith("1.")


def attribute(module, name, numpys):
    """Implements `__getattr__` for a module of the namespace: looks the name up in NumPy's
    corresponding module. numpys(): returns that module. Raises AttributeError if the name does not
    exist."""
    found = None if name.startswith("_") else find(name, numpys)
    if found is None and name in _REFUSED:
        raise AttributeError(f"module {module!r} has no attribute {name!r}: {_REFUSED[name]}")
    if found is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return found


def method(name):
    """Returns a method of arrays that calls NumPy's function of the same name."""

    def call(self, *args, **options):
        return by_numpy(getattr(_numpy(), name), (self, *args), options)

    call.__name__, call.__doc__ = name, f"As `numpy.{name}`."
    return call


class UfuncMethod:
    """A method of a ufunc, such as `reduce`, as an attribute of a function of the namespace."""

    def __init__(self, ufunc, name):
        self._ufunc, self.__name__ = ufunc, name

    def __call__(self, *args, **options):
        made = getattr(getattr(_numpy(), self._ufunc), self.__name__)
        return by_numpy(made, _arrays("", args), options)


# ---- CuPy's names ----


def asnumpy(x, /):
    """Returns a NumPy array: a copy of an array on any device, or `numpy.asarray(x)` of other objects."""
    return x.to_host() if isinstance(x, Array) else _numpy().asarray(x)


def get_array_module(*args):
    """Returns kjit.numpy if one of the arguments is a kjit array, else numpy."""
    return sys.modules[__package__] if any(isinstance(x, Array) for x in args) else _numpy()


def add_ufunc_methods(function, ufunc, count):
    """Adds the methods of NumPy's ufunc to a function of the namespace. count: the number of
    operands."""
    for name in ("reduce", "accumulate", "reduceat", "outer", "at") if count == 2 else ("at",):
        setattr(function, name, UfuncMethod(ufunc, name))
    function.nin, function.nout, function.nargs = count, 1, count + 1
