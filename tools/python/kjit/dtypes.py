"""Element types in annotations and kernels, such as kjit.f32, kjit.f32[:, :] and
kjit.const[kjit.i32]."""
import functools

from ._names import TYPES

_NUMPY = {"bool": "bool_", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
          "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
          "c128": "complex128"}


class DType:
    """An element type. As an annotation of a parameter, `t[:]` and `t[:, :]` are arrays with any
    strides, and `t[:, ::1]` is a row-major array. In a kernel, `t(x)` converts a number; called
    from Python, it returns a NumPy scalar."""
    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text

    __iter__ = None  # the indexing of types would make them iterable otherwise

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        dims = []
        for part in parts:
            if not isinstance(part, slice) or part.start is not None or part.stop is not None or part.step not in (None, 1):
                raise TypeError(f"an array type is kjit.{self.text}[:], with a colon for each dimension, or kjit.{self.text}[:, ::1]")
            dims.append("::1" if part.step == 1 else ":")
        if len(dims) == 1:
            dims = [":" if d == ":" else ": C" for d in dims]
        return DType(f"{self.text}[{', '.join(dims)}]") if dims != [": C"] else DType(f"{self.text}[:] C")

    def __call__(self, value):
        if self.text not in _NUMPY:
            raise TypeError(f"NumPy has no scalar of the type kjit.{self.text}; in a kernel kjit.{self.text}(x) converts")
        import numpy
        return getattr(numpy, _NUMPY[self.text])(value)

    def __eq__(self, other):
        """Returns whether `other` is the same type: a kjit.DType, its name in the kernel IR, or a
        NumPy or Python type."""
        if isinstance(other, DType):
            return other.text == self.text
        if isinstance(other, str):
            return other == self.text or other not in SCALARS and name_of_text(other) == self.text
        return other is not None and name_of(other) == self.text

    def __hash__(self):
        return hash(self.text)

    def __str__(self):
        return self.text

    @property
    def dtype(self):
        """The corresponding NumPy dtype, so that `numpy.dtype(t)` works."""
        import numpy
        if self.text not in _NUMPY:
            from ._algorithms import numpy_type
            return numpy.dtype(numpy_type(self.text))
        return numpy.dtype(_NUMPY[self.text])

    @property
    def name(self):
        """NumPy's name of the type, such as "float32"."""
        return "bfloat16" if self.text == "bf16" else self.dtype.name

    @property
    def type(self):
        """NumPy's scalar class, such as numpy.float32."""
        return self.dtype.type

    @property
    def char(self):
        """NumPy's type character, such as "f"."""
        return self.dtype.char

    @property
    def str(self):
        """NumPy's type string with the byte order, such as "<f4"."""
        return self.dtype.str

    @property
    def itemsize(self):
        """An element's size in bytes."""
        return self.dtype.itemsize

    @property
    def kind(self):
        """NumPy's character for the kind of the type: "b", "i", "u", "f" or "c"."""
        return "f" if self.text == "bf16" else self.dtype.kind

    def __repr__(self):
        return f"kjit.{self.text}"


class ElementType(DType):
    """The type of the elements in an array, as `x.dtype` returns it. Its text is NumPy's name, "float32"."""

    __slots__ = ()

    def __str__(self):
        return self.name if self.text in _NUMPY or self.text == "bf16" else self.text


class Const:
    """The annotation kjit.const or kjit.const[kjit.i32] of a parameter that is a compile-time
    value."""
    __slots__ = ("type",)

    def __init__(self, type_=None):
        self.type = type_

    def __getitem__(self, type_):
        return Const(type_)

    def __repr__(self):
        return "kjit.const" if self.type is None else f"kjit.const[{self.type!r}]"


const = Const()
SCALARS = {name: DType(name) for name in TYPES}
ELEMENTS = {name: ElementType(name) for name in TYPES}
_BY_NUMPY = {numpy: name for name, numpy in _NUMPY.items()} | {"bool": "bool", "bfloat16": "bf16"}


def is_of_numba(thing):
    """Returns whether an object is one of Numba's types or signatures. Numba may be installed next
    to kjit."""
    # In Python 3.10 and earlier, the type of built-in functions has a descriptor named __module__, so the value is
    # converted to a string.
    return str(type(thing).__module__).startswith(("numba.core.types", "numba.core.typing"))


@functools.cache
def name_of_text(text):
    """Returns the kernel IR's name for a type name of kjit or NumPy, or None."""
    return name_of(text) or name_of_numpy_text(text)


def name_of_numpy_text(text):
    """Returns the kernel IR's name for a NumPy type string such as "<f4", or None."""
    import numpy
    try:
        return name_of(numpy.dtype(text))
    except (TypeError, ValueError, SyntaxError):
        return None


def name_of(thing):
    """Returns the kernel IR's name of a type, given as any Python object that means a type, or
    None."""
    if isinstance(thing, DType):
        return thing.text
    if isinstance(thing, str):
        return thing if thing in SCALARS else _BY_NUMPY.get(thing)
    for kind, text in ((bool, "bool"), (float, "f64"), (complex, "c128"), (int, "i64")):
        if thing is kind:
            return text
    if is_of_numba(thing):
        return _BY_NUMPY.get(getattr(thing, "name", None))
    is_type = isinstance(thing, type) and thing.__module__ in ("numpy", "ml_dtypes")
    if not is_type and not any(kind.__name__ == "dtype" and kind.__module__ == "numpy" for kind in type(thing).__mro__):
        return None
    name = thing.__name__ if is_type else getattr(thing, "name", None)
    return _BY_NUMPY.get(name)
