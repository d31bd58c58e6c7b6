"""Data types: their kinds, their promotion by the array API standard, and their limits."""

import functools
import math
from dataclasses import dataclass

from .. import dtypes
from .._arrays import hint_of
from .._kjit import Array
from ._errors import PromotionError

_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
# The data types of the array API standard by name, and the further data types of kjit.
STANDARD = {name: dtypes.ELEMENTS[text] for name, text in _NAMES.items()}
FURTHER = {"float16": dtypes.ELEMENTS["f16"], "bfloat16": dtypes.ELEMENTS["bf16"]}
DTYPES = STANDARD | FURTHER
# The data types by their names in the kernel IR.
BY_TEXT = {dtype.text: dtype for dtype in DTYPES.values()}



class _Kinds(dict):
    def __missing__(self, text):
        raise PromotionError(f"kjit.numpy has no operations for arrays with elements of type {text}")


# The kind and the number of bits of each type that has operators. The kinds are b(ool), i(nteger),
# u(nsigned), f(loat) and c(omplex).
KIND = _Kinds({"bool": "b", "bf16": "f", "f16": "f", "c64": "c", "c128": "c", "f32": "f", "f64": "f"})
BITS = {"bool": 8, "bf16": 16}
for _text in BY_TEXT:
    KIND.setdefault(_text, _text[0])
    BITS.setdefault(_text, int(_text.strip("iufc")) if _text[0] in "iufc" else 8)

DEFAULTS = {"b": "bool", "i": "i64", "u": "u64", "f": "f64", "c": "c128"}
# The real type of a complex type, and the complex type for a float type.
PART = {"c64": "f32", "c128": "f64"}
WHOLE = {"f16": "c64", "bf16": "c64", "f32": "c64", "f64": "c128"}

_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def dtype_of(thing):
    """Returns the data type that an object names: a data type of kjit, NumPy or Python, or a name.
    A name may be kjit's or NumPy's, except "i8" and "u8", which mean different types in kjit and
    NumPy and are rejected."""
    if isinstance(thing, dtypes.DType) and thing.text in BY_TEXT:
        return thing
    if isinstance(thing, str):
        return _dtype_of_text(thing)
    text = dtypes.name_of(thing)
    if text not in BY_TEXT:
        raise PromotionError(f"{thing!r} is not a data type of arrays, such as kjit.numpy.float32, \"f32\", numpy.float32{hint_of(thing)}")
    return BY_TEXT[text]


def lasting_text(thing):
    """Returns the name of the data type that an object names, or None if the object may name
    another type later."""
    is_numpys = type(thing).__module__.split(".")[0] == "numpy" or isinstance(thing, type) and thing.__module__ == "numpy"
    return dtype_of(thing).text if isinstance(thing, (str, dtypes.DType)) or thing in (bool, int, float, complex) or is_numpys else None


@functools.cache
def _dtype_of_text(thing):
    if thing in ("i8", "u8"):
        name = "int" if thing == "i8" else "uint"
        raise PromotionError(f'{thing!r} has 8 bits in kjit and 8 bytes in NumPy; write "{name}8" or "{name}64"')
    text = dtypes.name_of(thing) or dtypes.name_of_numpy_text(thing)
    if text not in BY_TEXT:
        raise PromotionError(f"{thing!r} is not a data type of arrays, such as kjit.numpy.float32, \"f32\", numpy.float32")
    return BY_TEXT[text]


# The smallest float type to which an integer type promotes, by the number of bits of the integer.
_FLOAT_OF_INTEGER = {8: "f16", 16: "f32", 32: "f64", 64: "f64"}


@functools.cache
def common(a, b):
    """Returns the name of the type that two types promote to, or None for bfloat16 with an integer
    type. The rules are the standard's; for types of different kinds, where the standard has no
    rule, they are NumPy's."""
    if a == b:
        return a
    kinds = {KIND[a], KIND[b]}
    if "b" in kinds:
        return b if KIND[a] == "b" else a
    wide, narrow = (a, b) if BITS[a] >= BITS[b] else (b, a)
    if len(kinds) == 1:
        return "f32" if BITS[wide] == BITS[narrow] else wide  # float16 and bfloat16
    if kinds == {"i", "u"}:
        signed, unsigned = (a, b) if KIND[a] == "i" else (b, a)
        if BITS[signed] > BITS[unsigned]:
            return signed
        return f"i{2 * BITS[unsigned]}" if BITS[unsigned] < 64 else "f64"
    if kinds == {"f", "c"}:
        real, whole = (a, b) if KIND[a] == "f" else (b, a)
        return "c128" if real == "f64" else whole
    integer, other = (a, b) if KIND[a] in "iu" else (b, a)
    return None if other == "bf16" else common(_FLOAT_OF_INTEGER[BITS[integer]], other)


def promote(texts, what="the operation"):
    """Returns the name of the type that all types promote to. Raises PromotionError if there is no
    such type. what: the operation name, for the message."""
    result = texts[0]
    for text in texts[1:]:
        found = common(result, text)
        if found is None:
            names = f"{BY_TEXT[result].name} and {BY_TEXT[text].name}"
            raise PromotionError(f"{what}: {names} have no common data type; convert one array with x.astype(...)")
        result = found
    return result


_SCALARS = ((bool, "b"), (int, "i"), (float, "f"), (complex, "c"))
_ORDER = "biufc"


def is_scalar(x):
    """Returns whether an object is a Python number, which has no type of its own. numpy.float64
    derives from float and is not counted."""
    return type(x) in (bool, int, float, complex) or (
        isinstance(x, (bool, int, float, complex)) and type(x).__module__ != "numpy"
    )


def scalar_kind(x):
    return next(kind for python, kind in _SCALARS if isinstance(x, python))


def with_scalar(text, kind):
    """Returns the name of the result type for an array and a Python number of a kind. This is the
    array's type, or NumPy's choice if the number's kind is higher."""
    own = KIND[text]
    if own == kind or kind == "b" or own in "iu" and kind == "i" or own in "fc" and kind in "if" or own == "c":
        return text
    if kind == "c":
        return WHOLE.get(text, "c128")
    return DEFAULTS[kind]  # a bool array with an int, or an integer array with a float


def text_of(x):
    """Returns the name of the element type of a kjit or NumPy array. Raises PromotionError for
    types without operators."""
    found = dtypes.name_of(x.dtype)
    if found not in BY_TEXT:
        raise PromotionError(f"kjit.numpy has no operations for arrays with elements of type {x.dtype}")
    return found


def result_type(*arrays_and_dtypes):
    """Returns the data type that arrays, data types and Python numbers promote to."""
    texts, kinds = [], []
    for x in arrays_and_dtypes:
        if is_scalar(x):
            kinds.append(scalar_kind(x))
        else:
            texts.append(text_of(x) if hasattr(x, "shape") and hasattr(x, "dtype") else dtype_of(x).text)
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or data type is needed")
    if not texts:
        return BY_TEXT[DEFAULTS[max(kinds, key=_ORDER.index)]]
    result = promote(texts, "result_type")
    for kind in kinds:
        result = with_scalar(result, kind)
    return BY_TEXT[result]


def can_cast(from_, to, /, casting="safe"):
    """Returns whether a data type, or the data type of an array, promotes to the type `to`. casting: NumPy's name of
    another rule, such as "same_kind"."""
    source = text_of(from_) if isinstance(from_, Array) else dtype_of(from_).text
    target = dtype_of(to).text
    if casting == "safe":
        return common(source, target) == target
    return can_convert(BY_TEXT[source], BY_TEXT[target], casting)


def can_convert(source, target, casting):
    """Returns whether one of NumPy's rules permits the conversion from a data type to another one."""
    import numpy

    if "bf16" in (source.text, target.text):
        if casting in ("no", "equiv"):
            return source == target
        if casting == "safe":
            return common(source.text, target.text) == target.text
    kinds = [numpy.dtype("f2" if each.text == "bf16" else each.dtype) for each in (source, target)]
    return numpy.can_cast(*kinds, casting)


def isdtype(dtype, kind):
    """Returns whether a data type has a kind. kind: a data type, a name such as "real floating", or
    a tuple of these. Raises ValueError for an unknown name."""
    text = dtype_of(dtype).text
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return KIND[text] in _KINDS[kind]
    if isinstance(kind, str) and kind not in BY_TEXT and kind not in DTYPES:
        raise ValueError(f"there is no kind of data types {kind!r}; the kinds are {', '.join(_KINDS)}")
    return dtype_of(kind).text == text


def dtypes_of_kind(kind=None):
    """Returns the standard's data types of a kind, by name. kind: as in isdtype(); None means all."""
    if kind is None:
        return dict(STANDARD)
    return {name: dtype for name, dtype in STANDARD.items() if isdtype(dtype, kind)}


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a float type, as returned by `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtypes.DType
    smallest_subnormal: float = 0.0
    precision: int = 0

    @property
    def tiny(self):
        """The smallest positive normal number, as `smallest_normal`."""
        return self.smallest_normal

    @property
    def resolution(self):
        """The decimal resolution, 10 to the power -precision."""
        return float(f"1e-{self.precision}")


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer type, as returned by `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: dtypes.DType


# The number of fraction bits, and the exponents of the largest and the smallest normal number.
_FLOATS = {"f16": (10, 15, -14), "bf16": (7, 127, -126), "f32": (23, 127, -126), "f64": (52, 1023, -1022)}


def _named(type):
    return text_of(type) if hasattr(type, "shape") and hasattr(type, "dtype") else dtype_of(type).text


def finfo(type, /):
    """Returns the limits of a float type. For a complex type, these are the limits of the real and
    imaginary parts. type: a data type or an array. Raises ValueError for other types."""
    text = _named(type)
    text = PART.get(text, text)
    if text not in _FLOATS:
        raise ValueError(f"finfo: {BY_TEXT[text].name} is not a float type")
    digits, high, low = _FLOATS[text]
    largest = (2.0 - 2.0**-digits) * 2.0**high
    precision = int(digits * math.log10(2))
    return FloatInfo(
        BITS[text], 2.0**-digits, largest, -largest, 2.0**low, BY_TEXT[text], 2.0 ** (low - digits), precision
    )


def iinfo(type, /):
    """Returns the limits of an integer type. type: a data type or an array. Raises ValueError for
    other types."""
    text = _named(type)
    if KIND[text] not in "iu":
        raise ValueError(f"iinfo: {BY_TEXT[text].name} is not an integer type")
    bits = BITS[text]
    low, high = (0, 2**bits - 1) if KIND[text] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return IntegerInfo(bits, high, low, BY_TEXT[text])
