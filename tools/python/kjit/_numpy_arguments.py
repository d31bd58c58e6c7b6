"""Checks of the arguments that a function made by njit passes to NumPy. Numba rejects an argument of a wrong type when it compiles the
function. NumPy raises other exceptions, or accepts the argument: np.array_equal(x, None) is False."""

import functools
import math
import sys

from ._errors import SourceTypeError, SourceValueError

_ORDINALS = "first", "second", "third", "fourth"
# For each function the form in which errors name a parameter, and the parameters in their order with what they take. A `?` stands for
# an argument that can be None.
_TABLE = """
angle            named   z:complex
append           ordinal arr:array values:array axis:integer?
array_equal      quoted  a1:array a2:array
array_split      quoted  ary:array indices_or_sections:sections axis:integer
argpartition     first   a:line kth:any axis:integer
bartlett         plain   M:integer
blackman         plain   M:integer
diagflat         quoted  v:array k:integer
dsplit           quoted  ary:own indices_or_sections:sections
fliplr           plain   m:indexed2
flipud           plain   m:indexed1
geomspace        quoted  start:number stop:number num:integer
hamming          plain   M:integer
hanning          plain   M:integer
hsplit           quoted  ary:own indices_or_sections:sections
in1d             quoted  ar1:array ar2:array assume_unique:boolean invert:boolean
indices          quoted  dimensions:extents
intersect1d      quoted  ar1:array ar2:array assume_unique:boolean
isin             quoted  element:array test_elements:array assume_unique:boolean invert:boolean
kaiser           plain   M:integer beta:real
linspace         quoted  start:number stop:number num:integer
logspace         ordinal start:number stop:number num:integer
nan_to_num       first   x:values
partition        first   a:line kth:any axis:integer
rot90            ordinal m:plane k:integer
setdiff1d        quoted  ar1:array ar2:array assume_unique:boolean
setxor1d         quoted  ar1:array ar2:array assume_unique:boolean
sinc             named   x:numeric
split            quoted  ary:array indices_or_sections:sections axis:integer
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
vsplit           quoted  ary:own indices_or_sections:sections
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
    """Whether NumPy makes an array of numbers of a value without a conversion of text."""
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


def _has_texts(value):
    return isinstance(value, (list, tuple)) and any(isinstance(item, str) for item in value)


# What a parameter takes: (the condition, the words of the error).
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
    "sections": (lambda value: _is_integer(value) or _is_own(value) or isinstance(value, (list, tuple)), "must be int or 1d-array"),
}


# The dimensions that an array must have: (the smallest number, the largest number, the error for others).
_RANKS = {
    "matrix": (2, 2, "input array must be 2-d"),
    "plane": (2, math.inf, "Input must be >= 2-d."),
    "line": (1, math.inf, "The first argument must be at least 1-D (found 0-D)"),
    "coefficients": (0, 1, "Coefficient array is not 1-d"),
    "trimmed": (1, 1, "array must be 1D"),
    "indexed1": (1, math.inf, "cannot index array of 0 dimensions with 1 indices"),
    "indexed2": (2, math.inf, "cannot index array of fewer than 2 dimensions with 2 indices"),
}


def _shape_error(kind, value):
    """Returns the reason why the dimensions or the elements of an array do not fit, or None."""
    rank = len(value.shape) if hasattr(value, "shape") else 1 if isinstance(value, (list, tuple)) else 0
    is_nested = isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple)) or hasattr(item, "shape") for item in value)
    least, most, words = _RANKS.get(kind, (0, math.inf, ""))
    if not is_nested and not least <= rank <= most:
        return words
    if kind in ("numbers", "coefficients") and _has_texts(value):
        return "Input dtype must be scalar."
    return None


def _subject(form, place, name):
    if form == "plain":
        return name
    if form == "named":
        return f'Argument "{name}"'
    word = "" if form == "quoted" else f"{_ORDINALS[place]} "
    return f"The {word}argument" + ("" if form == "first" else f' "{name}"')  # "first": the position without the name


@functools.cache
def _rules():
    """Returns the rows of the table by the identity of the NumPy function."""
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


def is_checked(thing):
    """Whether the arguments of a NumPy function are checked."""
    return "numpy" in sys.modules and id(thing) in _rules()


def checked(thing, function, report):
    """Returns a function that checks its arguments as Numba does for the NumPy function `thing`, and calls `function`. report: makes
    the exception of a message and a class."""
    _, form, parameters = _rules()[id(thing)]
    name = thing.__name__

    @functools.wraps(thing)
    def call(*args, **keywords):
        for place, (parameter, kind) in enumerate(parameters):
            if place < len(args):
                value = args[place]
            elif parameter in keywords:
                value = keywords[parameter]
            else:
                continue
            if kind.endswith("?") and value is None:
                continue
            is_right, words = _KINDS[kind.removesuffix("?")]
            if not is_right(value):
                subject = _subject(form, place, parameter)
                raise report(f"np.{name}: {subject} {words}, not {type(value).__name__}", SourceTypeError)
            wrong = _shape_error(kind, value)
            if wrong:
                raise report(f"np.{name}: {wrong}", SourceValueError)
        return function(*args, **keywords)

    return call
