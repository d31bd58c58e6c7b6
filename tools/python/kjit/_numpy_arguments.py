"""Checks of the arguments that a function made by njit passes to NumPy. Numba rejects an argument of a wrong type when it compiles the
function. NumPy raises other exceptions, or accepts the argument: np.array_equal(x, None) is False."""

import functools
import math
import sys

from ._errors import SourceTypeError, SourceValueError

_ORDINALS = "first", "second", "third", "fourth"
# Each row has a NumPy function, the form in which errors name a parameter (see _subject), and the parameters in their order, each
# with the kind of values that it accepts (see _KINDS). `?` after the kind means that the argument can be None, and `!` that it is
# required. `*` before a parameter means that it takes the remaining arguments.
_TABLE = """
angle            named   z:complex
arange           quoted  start:any! stop:any step:any dtype:dtype?
argmax           plain   a:any axis:integer?
argmin           plain   a:any axis:integer?
around           quoted  a:array decimals:integer out:output?
array            quoted  object:array dtype:dtype?
ascontiguousarray quoted a:array
asfortranarray   quoted  a:array
append           ordinal arr:array values:array axis:integer?
array_equal      quoted  a1:array a2:array
array_split      quoted  ary:array indices_or_sections:sections axis:integer
argpartition     first   a:line kth:any axis:integer
bartlett         plain   M:integer
blackman         plain   M:integer
broadcast_arrays named   *args:array
broadcast_shapes named   *args:extent
broadcast_to     ordinal array:any shape:shape
clip             quoted  a:array a_min:bound? a_max:bound? out:output?
column_stack     quoted  tup:stacked
concatenate      quoted  arrays:joined
diag             quoted  v:diagonal k:integer
diagflat         quoted  v:array k:integer
dsplit           quoted  ary:own indices_or_sections:sections
dstack           quoted  tup:stacked
empty            plain   shape:any! dtype:dtype?
empty_like       quoted  prototype:any dtype:dtype?
expand_dims      leading a:own axis:integer
fill_diagonal    first   a:filled val:any
eye              quoted  N:integer M:integer? k:integer dtype:dtype?
fliplr           plain   m:indexed2
flipud           plain   m:indexed1
frombuffer       named   buffer:buffer dtype:dtype?
full             quoted  shape:any fill_value:any dtype:dtype?
full_like        quoted  a:any fill_value:any dtype:dtype?
geomspace        quoted  start:number stop:number num:integer
hamming          plain   M:integer
hanning          plain   M:integer
identity         quoted  n:integer dtype:dtype?
hstack           quoted  tup:stacked
hsplit           quoted  ary:own indices_or_sections:sections
in1d             quoted  ar1:array ar2:array assume_unique:boolean invert:boolean
indices          quoted  dimensions:extents
intersect1d      quoted  ar1:array ar2:array assume_unique:boolean
isin             quoted  element:array test_elements:array assume_unique:boolean invert:boolean
kaiser           plain   M:integer beta:real
linspace         quoted  start:number stop:number num:integer
logspace         ordinal start:number stop:number num:integer
nan_to_num       first   x:values
ones             plain   shape:any! dtype:dtype?
ones_like        quoted  a:any dtype:dtype?
partition        first   a:line kth:any axis:integer
resize           quoted  a:array new_shape:new_shape
rot90            ordinal m:plane k:integer
round            quoted  a:array decimals:integer out:output?
round_           quoted  a:array decimals:integer out:output?
setdiff1d        quoted  ar1:array ar2:array assume_unique:boolean
setxor1d         quoted  ar1:array ar2:array assume_unique:boolean
shape            only    a:array
size             only    a:array
sinc             named   x:numeric
split            quoted  ary:array indices_or_sections:sections axis:integer
stack            quoted  arrays:stacked axis:integer
take             named   a:array indices:places
swapaxes         ordinal a:own axis1:integer axis2:integer
tri              plain   N:integer M:integer? k:integer
tril             plain   m:array k:integer
tril_indices     plain   n:integer k:integer m:integer?
tril_indices_from plain  arr:matrix k:integer
trim_zeros       first   filt:trimmed trim:text
triu             plain   m:array k:integer
triu_indices     plain   n:integer k:integer m:integer?
triu_indices_from plain  arr:matrix k:integer
union1d          quoted  ar1:array ar2:array
unwrap           quoted  p:array discont:scalar? axis:integer period:scalar
vstack           quoted  tup:stacked
vsplit           quoted  ary:own indices_or_sections:sections
where            quoted  condition:array x:chosen y:chosen
zeros            plain   shape:any! dtype:dtype?
zeros_like       quoted  a:any dtype:dtype?
polynomial.polynomial.polyadd quoted c1:coefficients c2:coefficients
polynomial.polynomial.polydiv quoted c1:coefficients c2:coefficients
polynomial.polynomial.polyint quoted c:numbers m:integer
polynomial.polynomial.polymul quoted c1:coefficients c2:coefficients
polynomial.polynomial.polysub quoted c1:coefficients c2:coefficients
polynomial.polynomial.polyval quoted x:array c:array tensor:boolean
polynomial.polyutils.as_series quoted alist:array trim:boolean
polynomial.polyutils.trimseq  quoted seq:coefficients
"""


def _is_array(value):
    """Returns whether a value is array-like for Numba: not a string, a set, a dictionary, None or a
    function."""
    return not isinstance(value, (str, bytes, set, frozenset, dict, type(None))) and not callable(value)


def _is_own(value):
    return _is_array(value) and hasattr(value, "shape")


def _is_integer(value):
    import numpy

    return isinstance(value, (int, numpy.integer)) and not isinstance(value, (bool, numpy.timedelta64))


def _is_real(value):
    import numpy

    return isinstance(value, (int, float, numpy.integer, numpy.floating))


def _is_scalar(value):
    import numpy

    return isinstance(value, (int, float, complex, numpy.number, numpy.bool_))


def _is_boolean(value):
    import numpy

    return isinstance(value, (bool, int, numpy.bool_, numpy.integer))


def _is_extents(value):
    return isinstance(value, (tuple, list)) and all(map(_is_integer, value))


def _is_extent(value):
    return _is_integer(value) or _is_extents(value)


def _is_tuple_of_arrays(value):
    return _is_own(value) or isinstance(value, (tuple, list)) and len(value) > 0 and all(map(_is_own, value))


def _are_places(value):
    return _is_scalar(value) and _is_boolean(value) or _is_own(value) or isinstance(value, (tuple, list)) and all(map(_are_places, value))


def _is_buffer(value):
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _is_dtype(value):
    """Returns whether an argument may be an element type. Other code checks the type objects of Numba and
    kjit."""
    return not isinstance(value, (int, float, complex, tuple, list))


def _has_texts(value):
    return isinstance(value, (list, tuple)) and any(isinstance(item, str) for item in value)


# The kinds of values that parameters accept: (the condition, the words of the error).
_KINDS = {
    "any": (lambda value: True, ""),
    "array": (_is_array, "must be array-like"),
    "values": (_is_array, "must be a scalar or an array-like"),
    "complex": (_is_array, "must be a complex or Array[complex]"),
    "numeric": (_is_array, "must be a Number or array-like"),
    "indexed1": (_is_array, "must be an array"),
    "indexed2": (_is_array, "must be an array"),
    "text": (lambda value: isinstance(value, str), "must be a string"),
    "line": (lambda value: _is_own(value) or isinstance(value, (list, tuple)), "must be an array-like"),
    "own": (lambda value: _is_own(value) or isinstance(value, (list, tuple)), "must be an array"),
    "plane": (lambda value: _is_own(value) or isinstance(value, (list, tuple)), "must be an array"),
    "trimmed": (lambda value: _is_own(value) or isinstance(value, (list, tuple)), "must be an array"),
    "matrix": (_is_array, "must be array-like"),
    "numbers": (_is_array, "must be array-like"),
    "coefficients": (_is_array, "must be array-like"),
    "number": (_is_array, "must be a number"),
    "scalar": (_is_scalar, "must be a scalar"),
    "real": (_is_real, "must be an integer or float"),
    "integer": (_is_integer, "must be an integer"),
    "boolean": (_is_boolean, "must be boolean"),
    "extents": (_is_extents, "must be a tuple of integers"),
    "extent": (_is_extent, "must be either an int or tuple[int]"),
    "places": (_are_places, "must be an integer, or an array or tuple of integers"),
    "shape": (_is_extent, "must be a tuple of integers"),
    "new_shape": (_is_extent, "must be an integer or a tuple of integers"),
    "bound": (lambda value: _is_scalar(value) or _is_own(value), "must be a number"),
    "buffer": (_is_buffer, "must be buffer-like"),
    "chosen": (lambda value: _is_array(value), "must be array-like if provided"),
    "diagonal": (_is_array, "must be array-like"),
    "dtype": (_is_dtype, "must be a data-type if it is provided"),
    "filled": (_is_array, "must be an array"),
    "joined": (_is_tuple_of_arrays, "must be a tuple of arrays: expecting a non-empty tuple of arrays"),
    "output": (_is_own, "must be an array if it is provided"),
    "stacked": (_is_tuple_of_arrays, "must be a tuple of arrays: expecting a non-empty tuple of arrays"),
    "sections": (lambda value: _is_integer(value) or _is_own(value) or isinstance(value, (list, tuple)), "must be int or 1d-array"),
}


# The dimensions that an array must have: (the smallest number, the largest number, the error for others).
_RANKS = {
    "matrix": (2, 2, "input array must be 2-d"),
    "diagonal": (1, 2, "Input must be 1- or 2-d."),
    "filled": (2, math.inf, "The first argument must be at least 2-D"),
    "plane": (2, math.inf, "Input must be >= 2-d."),
    "line": (1, math.inf, "The first argument must be at least 1-D (found 0-D)"),
    "coefficients": (0, 1, "Coefficient array is not 1-d"),
    "trimmed": (1, 1, "array must be 1D"),
    "indexed1": (1, math.inf, "cannot index array of 0 dimensions with 1 indices"),
    "indexed2": (2, math.inf, "cannot index array of fewer than 2 dimensions with 2 indices"),
}


def _shape_error(kind, value):
    """Returns the reason why the dimensions or the elements in an array do not fit, or None."""
    if kind in _RANKS:
        rank = len(value.shape) if hasattr(value, "shape") else 1 if isinstance(value, (list, tuple)) else 0
        is_nested = isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple)) or hasattr(item, "shape") for item in value)
        least, most, words = _RANKS[kind]
        if not is_nested and not least <= rank <= most:
            return words
    if kind in ("numbers", "coefficients") and _has_texts(value):
        return "Input dtype must be scalar."
    if kind == "new_shape" and any(n < 0 for n in (value if isinstance(value, (tuple, list)) else (value,))):
        return "All elements of `new_shape` must be non-negative"
    if kind == "joined" and isinstance(value, (tuple, list)):
        ranks = {len(item.shape) for item in value}
        if len(ranks) > 1:
            return "all the input arrays must have same number of dimensions"
        if ranks == {0}:
            return "zero-dimensional arrays cannot be concatenated"
        return _type_error(value)
    return None


def _type_error(arrays):
    """Returns the reason why arrays have no common element type, or None."""
    import numpy

    try:
        numpy.result_type(*(array.dtype for array in arrays))
    except TypeError:
        return f"input arrays must have compatible dtypes, not {' and '.join(str(array.dtype) for array in arrays)}"
    return None


def _type_name(value):
    """Returns Numba's name for an argument's type."""
    from .cuda import types

    try:
        return "unicode_type" if isinstance(value, str) else str(types.typeof(value))
    except TypeError:
        return type(value).__name__


def _check_text(name, value, is_constant, args, report):
    """Raises an error for a string that cannot be the element type of an array. args: all arguments of the call."""
    import numpy

    if not is_constant:
        call = f"{name}({', '.join(map(_type_name, args))})"
        words = f"If np.{name} dtype is a string it must be a string constant. The call has the types {call}"
        raise report(f"np.{name}: {words}", SourceTypeError)
    try:
        numpy.dtype(value)
    except TypeError as error:
        raise report(f"np.{name}: Invalid NumPy dtype specified: {value!r}", SourceTypeError) from error


def _subject(form, place, name, function):
    if form == "plain":
        return name
    if form == "only":
        return f"The argument to np.{function}"
    if form == "leading":
        return f'{"First argument" if place == 0 else "Argument"} "{name}"'
    if form == "named":
        return f'Argument "{name}"'
    word = "" if form == "quoted" else f"{_ORDINALS[place]} "
    return f"The {word}argument" + ("" if form == "first" else f' "{name}"')  # "first": the position without the name


@functools.cache
def _rules():
    """Returns the rows in the table by the identity of the NumPy function."""
    import numpy

    found = {}
    for line in _TABLE.strip().splitlines():
        path, form, *parameters = line.split()
        *modules, name = path.split(".")
        __import__(".".join(["numpy", *modules]))
        thing = getattr(functools.reduce(getattr, modules, numpy), name, None)
        if thing is not None:  # NumPy 2 has removed some functions
            found[id(thing)] = thing, form, [tuple(parameter.split(":")) for parameter in parameters]
    return found


METHODS = frozenset(("argmax", "argmin", "take"))  # methods of arrays whose arguments are checked


def is_checked(thing):
    """Returns whether the arguments of a NumPy function are checked."""
    return "numpy" in sys.modules and id(thing) in _rules()


def _given(parameters, args, keywords):
    """Yields (place, parameter, kind, value) for each argument, and (place, parameter, None, None) for a missing argument."""
    for place, (parameter, kind) in enumerate(parameters):
        if parameter.startswith("*"):
            yield from ((i, str(i), kind, args[i]) for i in range(place, len(args)))
        elif place < len(args):
            yield place, parameter, kind.rstrip("!"), args[place]
        elif parameter in keywords:
            yield place, parameter, kind.rstrip("!"), keywords[parameter]
        elif kind.endswith("!"):
            yield place, parameter, None, None


def checked(thing, function, report, constants=()):
    """Returns a function that checks its arguments as Numba does for the NumPy function `thing`, and calls `function`. report: makes
    an exception from a message and a class. constants: the positions and names of the arguments that are constants in the source."""
    _, form, parameters = _rules()[id(thing)]
    name = thing.__name__

    @functools.wraps(thing)
    def call(*args, **keywords):
        for place, parameter, kind, value in _given(parameters, args, keywords):
            if kind is None:
                raise report(f"np.{name}: the argument `{parameter}` is missing", SourceTypeError)
            if kind.endswith("?") and value is None:
                continue
            kind = kind.removesuffix("?")
            is_right, words = _KINDS[kind]
            if not is_right(value):
                subject = _subject(form, place, parameter, name)
                raise report(f"np.{name}: {subject} {words}, not {type(value).__name__}", SourceTypeError)
            wrong = _shape_error(kind, value)
            if wrong:
                raise report(f"np.{name}: {wrong}", SourceValueError)
            if kind == "dtype" and isinstance(value, str):
                is_constant = (place if place < len(args) else parameter) in constants
                _check_text(name, value, is_constant, [*args, *keywords.values()], report)
        if thing.__name__ == "broadcast_to" and _is_of_one(args, keywords):
            raise report("np.broadcast_to: Cannot broadcast a non-scalar to a scalar array", SourceTypeError)
        return function(*args, **keywords)

    return call


def checked_method(name, method, report):
    """Returns a function that calls `method` with an object and arguments. If the object is a NumPy array, it first checks
    the arguments."""
    import numpy

    of_arrays = checked(getattr(numpy, name), method, report)

    def call(self, *args, **keywords):
        function = of_arrays if type(self) is numpy.ndarray else method
        return function(self, *args, **keywords)

    return call


def _is_of_one(args, keywords):
    """Returns whether a call of np.broadcast_to has an empty tuple as the shape and an array that
    is not a number."""
    shape = args[1] if len(args) > 1 else keywords.get("shape")
    array = args[0] if args else keywords.get("array")
    return isinstance(shape, tuple) and not shape and (isinstance(array, (tuple, list)) or getattr(array, "shape", ()) != ())
