"""Types with Numba's names, such as `int32`, `float32[:, ::1]` and `void(int32[:], float64)`."""

import functools

from .. import _missing, dtypes


class Type(dtypes.DType):
    """A scalar type. For a type t, `t[:]` is the type of an array with elements of type t, `t(x)`
    converts a value to t, and `t(int32, int32)` is a signature with the result type t."""

    __slots__ = ("name",)

    def __init__(self, text="", name=None):
        super().__init__(text)
        self.name = name or text

    def __getitem__(self, key):
        return Array.of_key(self, key if isinstance(key, tuple) else (key,))

    def __call__(self, *values):
        if all(isinstance(v, dtypes.DType) for v in values):
            return Signature(self, values)
        if len(values) != 1:
            raise TypeError(f"{self.name}(x) converts one value, {self.name}(int32, ...) is a signature of types")
        return super().__call__(values[0])

    def __repr__(self):
        return self.name

    __str__ = __repr__

    @property
    def bitwidth(self):
        return 8 if self.text == "bool" else int(self.text.lstrip("iufc"))


class Array(Type):
    """An array type: `t[:, :]` accepts any strides, `t[:, ::1]` is C-contiguous, and `t[::1, :]` is
    F-contiguous."""

    __slots__ = ("dtype", "ndim", "layout")

    def __init__(self, dtype, ndim, layout="A", readonly=False, name=None, aligned=True):
        """readonly, name and aligned are accepted, as by numba.types.Array, and have no effect."""
        self.dtype, self.ndim, self.layout = dtype, ndim, layout
        super().__init__(
            dtypes.DType.__getitem__(dtype, (slice(None),) * ndim).text, f"array({dtype.name}, {ndim}d, {layout})"
        )

    @classmethod
    def of_key(cls, dtype, key):
        """Returns the array type `dtype[key]`, such as `dtype[:, ::1]`. Raises TypeError for other
        subscripts."""
        for part in key:
            if not isinstance(part, slice) or part.start is not None or part.stop is not None:
                raise TypeError(f"an array type is written {dtype}[:], with one colon for each dimension, or {dtype}[:, ::1]")
        return cls(dtype, len(key), "C" if key[-1].step == 1 else "F" if key[0].step == 1 else "A")

    def __eq__(self, other):
        return isinstance(other, Array) and (self.dtype, self.ndim, self.layout) == (
            other.dtype,
            other.ndim,
            other.layout,
        )

    def __hash__(self):
        return hash((self.text, self.layout))

    def __repr__(self):
        return f"Array({self.dtype!r}, {self.ndim}, {self.layout!r}, False, aligned=True)"

    def __str__(self):
        return self.name

    def copy(self, dtype=None, ndim=None, layout=None):
        return Array(dtype or self.dtype, self.ndim if ndim is None else ndim, layout or self.layout)


class Number(Type):
    """A number's type."""

    __slots__ = ()


class Boolean(Type):
    """The type bool."""

    __slots__ = ()


class Integer(Number):
    """An integer type."""

    __slots__ = ()

    @property
    def signed(self):
        return self.text[0] == "i"


class Float(Number):
    """A floating-point type."""

    __slots__ = ()


class Complex(Number):
    """A complex type."""

    __slots__ = ()

    @property
    def underlying_float(self):
        return BY_TEXT["f32" if self.text == "c64" else "f64"]


class _Date(Type):
    """A date or a time difference with a unit, such as "D" or "25s". An empty unit means NumPy's
    generic unit."""

    __slots__ = ("unit",)
    _word = ""

    def __init__(self, unit=""):
        self.unit = unit
        super().__init__(f"{self._word}_{unit or 'generic'}", f"{self._word}[{unit}]" if unit else self._word)

    @property
    def dtype(self):
        import numpy

        return numpy.dtype(self.name)

    def __eq__(self, other):
        return isinstance(other, _Date) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


class NPDatetime(_Date):
    """NumPy's datetime64."""

    __slots__ = ()
    _word = "datetime64"


class NPTimedelta(_Date):
    """NumPy's timedelta64."""

    __slots__ = ()
    _word = "timedelta64"


class VectorType(Type):
    """A CUDA vector type such as `cuda.float32x4` or `cuda.float4`. Kernels construct it from
    numbers and vectors and read its lanes .x, .y, .z and .w. A vector of one lane is a number."""

    __slots__ = ("base_type", "num_elements", "aliases")

    def __init__(self, base, count, aliases):
        self.base_type, self.num_elements = base, count
        self.aliases = [f"{alias}{count}" for alias in aliases]
        super().__init__(base.text if count == 1 else f"{base.text}x{count}", f"{base.name}x{count}")

    @property
    def user_facing_object(self):
        return self

    def __call__(self, *values):
        raise TypeError(f"cuda.{self.name} can be called only in a kernel")


class Record(Type):
    """A record type: the elements of a NumPy dtype with fields."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        from .. import _records

        self.dtype = dtype
        super().__init__(_records.name_of(dtype), f"Record({', '.join(dtype.names)})")

    def __eq__(self, other):
        # NumPy compares dtypes with and without align=True as equal.
        return isinstance(other, Record) and self.text == other.text and self._is_aligned == other._is_aligned

    def __hash__(self):
        return hash(self.text)

    @property
    def _is_aligned(self):
        return self.dtype.isalignedstruct

    @property
    def size(self):
        return self.dtype.itemsize

    @property
    def bitwidth(self):
        return 8 * self.dtype.itemsize

    def typeof(self, name):
        """Returns a field's type."""
        return from_dtype(self.dtype[name])


class BaseTuple(Type):
    """A tuple of items with the given types."""

    __slots__ = ("types",)

    def __init__(self, kinds, name=None):
        self.types = tuple(kinds)
        inner = ", ".join(kind.text for kind in self.types)
        super().__init__(f"({inner})", name or f"Tuple({', '.join(map(str, self.types))})")

    def __len__(self):
        return len(self.types)

    def __iter__(self):
        return iter(self.types)

    @property
    def count(self):
        return len(self.types)

    def shape(self):
        """Returns the Shape of an argument of this type, which describes how its tuples are
        nested."""
        from .._shapes import Shape

        items = (k.shape() if isinstance(k, BaseTuple) else None for k in self.types)
        return Shape(items, getattr(self, "fields", None), getattr(self, "instance_class", None))


class Tuple(BaseTuple):
    """A tuple of items of different types."""

    __slots__ = ()


class UniTuple(BaseTuple):
    """A tuple of `count` items of one type."""

    __slots__ = ("dtype",)

    def __init__(self, dtype, count):
        self.dtype = dtype
        super().__init__((dtype,) * count, f"UniTuple({dtype}, {count})")


class NamedTuple(BaseTuple):
    """A named tuple of the class `cls` with items of the given types."""

    __slots__ = ("instance_class", "fields")

    def __init__(self, kinds, cls):
        self.instance_class, self.fields = cls, tuple(cls._fields)
        super().__init__(kinds, f"{cls.__name__}({', '.join(map(str, kinds))})")


class NamedUniTuple(NamedTuple):
    """A named tuple of the class `cls` with `count` items of one type."""

    __slots__ = ("dtype",)

    def __init__(self, dtype, count, cls):
        self.dtype = dtype
        super().__init__((dtype,) * count, cls)


class NumberClass(Type):
    """A type as an argument, such as `class(float32)`. The kernel is compiled for this type."""

    __slots__ = ("dtype", "given")

    def __init__(self, given):
        self.given, self.dtype = given, given if isinstance(given, Type) else from_dtype(_dtype_of(given))
        super().__init__("", f"class({self.dtype})")

    def shape(self):
        """Returns the Known of an argument of this type, which has the class as a compile-time
        value."""
        from .._shapes import Known

        return Known(self.given)

    def __eq__(self, other):
        return isinstance(other, NumberClass) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.name)


def _dtype_of(given):
    import numpy

    return numpy.dtype(given)


class Void(Type):
    """The result type of a kernel."""

    __slots__ = ()

    def __call__(self, *values):
        return Signature(self, values)


NoneType = Void


class Callable(Type):
    """A function's type."""

    __slots__ = ()


class Dispatcher(Callable):
    """The type of a Python function or of a function made by njit or cuda.jit, as an argument of an
    overload."""

    __slots__ = ("dispatcher",)

    def __init__(self, dispatcher):
        self.dispatcher = dispatcher
        super().__init__("", f"type({dispatcher!r})")

    def __eq__(self, other):
        return isinstance(other, Dispatcher) and self.dispatcher is other.dispatcher

    def __hash__(self):
        return id(self.dispatcher)


class Signature:
    """A signature. `args`: the types of the parameters; `return_type`: the result type, or None if
    it is not given."""

    def __init__(self, return_type, args):
        self.return_type, self.args = return_type, tuple(args)

    def __iter__(self):
        return iter(self.args)

    def __eq__(self, other):
        return isinstance(other, Signature) and self.args == other.args and self.return_type == other.return_type

    def __hash__(self):
        return hash(self.args)

    def __repr__(self):
        return f"{self.args} -> {self.return_type or 'none'}"


_NAMES = {
    "bool": "boolean",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
_CLASSES = {"b": Boolean, "i": Integer, "u": Integer, "f": Float, "c": Complex}
BY_TEXT = {text: _CLASSES[text[0]](text, name) for text, name in _NAMES.items()}
_OTHERS = {
    "bool_": "bool",
    "byte": "u8",
    "char": "i8",
    "uchar": "u8",
    "short": "i16",
    "ushort": "u16",
    "intc": "i32",
    "uintc": "u32",
    "int_": "i64",
    "uint": "u64",
    "long_": "i64",
    "ulong": "u64",
    "longlong": "i64",
    "ulonglong": "u64",
    "intp": "i64",
    "uintp": "u64",
    "ssize_t": "i64",
    "size_t": "u64",
    "float_": "f32",
    "double": "f64",
    "b1": "bool",
    "i1": "i8",
    "i2": "i16",
    "i4": "i32",
    "i8": "i64",
    "u1": "u8",
    "u2": "u16",
    "u4": "u32",
    "u8": "u64",
    "f2": "f16",
    "f4": "f32",
    "f8": "f64",
    "c8": "c64",
    "c16": "c128",
}
bfloat16 = Float("bf16", "bfloat16")
void = none = Void("void", "none")


class UnicodeType(Type):
    """The type of a string, which is known when a function is compiled."""

    __slots__ = ()


unicode_type = UnicodeType("", "unicode_type")
NAMES = {kind.name: kind for kind in BY_TEXT.values()} | {name: BY_TEXT[text] for name, text in _OTHERS.items()}
NAMES |= {"void": void, "none": none, "bfloat16": bfloat16}
_COMPOSED = {"Tuple": Tuple, "UniTuple": UniTuple}
globals().update(NAMES)


def __getattr__(name):
    if name in _missing.TYPES:
        return _missing.TYPES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


signed_domain = frozenset(BY_TEXT[t] for t in ("i8", "i16", "i32", "i64"))
unsigned_domain = frozenset(BY_TEXT[t] for t in ("u8", "u16", "u32", "u64"))
integer_domain = signed_domain | unsigned_domain
real_domain = frozenset(BY_TEXT[t] for t in ("f32", "f64"))
complex_domain = frozenset(BY_TEXT[t] for t in ("c64", "c128"))
number_domain = integer_domain | real_domain | complex_domain


class Literal(Type):
    """The type that an overload sees for an argument whose value is a constant. literal_value: the
    constant. literal_type: the type that the argument would have if it were not a constant."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Literal) and repr(self.literal_value) == repr(other.literal_value)

    def __hash__(self):
        return hash(repr(self.literal_value))


def _literal(name, kind, base):
    """Returns the subclass of Literal for constants of the type `kind`."""

    def __init__(self, value):
        self.literal_value, self.literal_type = value, kind
        base.__init__(self, kind.text, f"Literal[{type(value).__name__}]({value})")

    slots = ("literal_value", "literal_type")
    return type(name, (Literal, base), {"__slots__": slots, "__init__": __init__, "__doc__": f"The type of a constant {kind}."})


IntegerLiteral = _literal("IntegerLiteral", BY_TEXT["i64"], Integer)
BooleanLiteral = _literal("BooleanLiteral", BY_TEXT["bool"], Boolean)
StringLiteral = _literal("StringLiteral", unicode_type, UnicodeType)
LITERALS = {int: IntegerLiteral, bool: BooleanLiteral, str: StringLiteral}


def unliteral(kind):
    """Returns the type of a constant without its value, and other types unchanged."""
    return kind.literal_type if isinstance(kind, Literal) else kind


# CUDA's names of vector types, by their lanes' type.
_VECTORS = {
    "int8": ["char"],
    "int16": ["short"],
    "int32": ["int"],
    "int64": ["long", "longlong"],
    "uint8": ["uchar"],
    "uint16": ["ushort"],
    "uint32": ["uint"],
    "uint64": ["ulong", "ulonglong"],
    "float32": ["float"],
    "float64": ["double"],
}
VECTORS = {
    made.name: made
    for base, aliases in _VECTORS.items()
    for made in (VectorType(NAMES[base], count, aliases) for count in (1, 2, 3, 4))
}


class CPointer(Type):
    """A C pointer in a signature. A kernel takes the address in device memory, an integer."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__("u64", f"{dtype}*")

    @property
    def pointer(self):
        """The pointer type in the kernel IR."""
        return f"{self.dtype.text}*"

    def __eq__(self, other):
        return isinstance(other, CPointer) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.name)


_COMPOSED["CPointer"] = CPointer


def of_numba(thing):
    """Returns kjit's type or signature for an object of Numba's own. Returns any other object
    unchanged. Raises TypeError for a Numba type that kjit.cuda does not have."""
    if not dtypes.is_of_numba(thing):
        return thing
    if hasattr(thing, "return_type"):
        result = of_numba(thing.return_type) if thing.return_type is not None else None
        return Signature(result, map(of_numba, thing.args))
    if hasattr(thing, "layout") and hasattr(thing, "ndim"):
        return Array(of_numba(thing.dtype), thing.ndim, thing.layout)
    if hasattr(thing, "types"):
        kinds = [of_numba(kind) for kind in thing.types]
        return UniTuple(kinds[0], len(kinds)) if kinds and all(k == kinds[0] for k in kinds) else Tuple(kinds)
    if hasattr(thing, "fields") and hasattr(thing, "dtype"):
        return Record(thing.dtype)
    name = {"bool": "boolean"}.get(thing.name, thing.name)
    if name not in NAMES:
        raise TypeError(f"Numba's type {thing} has no counterpart in kjit.cuda")
    return NAMES[name]


def parse(thing):
    """Returns a Signature for a string, a tuple of types or a Signature. The types may be Numba's
    own objects. Raises TypeError if the object is not a signature."""
    thing = of_numba(thing)
    if isinstance(thing, (tuple, list)):
        thing = tuple(map(of_numba, thing))
    if isinstance(thing, Signature):
        return thing
    if isinstance(thing, str):
        try:
            # the string is the program's own code: an expression of types
            made = eval(thing, {"__builtins__": {}}, NAMES | _COMPOSED)
        except Exception as problem:
            raise TypeError(f"{thing!r} is not a signature of types: {problem}") from None
        return parse(made)
    if isinstance(thing, dtypes.DType):
        thing = (thing,)
    if isinstance(thing, (tuple, list)):
        for kind in thing:
            if not isinstance(kind, dtypes.DType):
                raise TypeError(f"a signature must consist of types of kjit.cuda, not {kind!r}")
        return Signature(None, thing)
    raise TypeError(f"a signature must be a string or types, such as 'f8(f8)' or (float64,), not {thing!r}")


def of_text(text):
    """Returns the scalar type with this name in the kernel IR, or None."""
    return {"void": void, "bf16": bfloat16}.get(text) or BY_TEXT.get(text)


_known_dtypes: dict = {}


def from_dtype(dtype):
    """Returns the type for a NumPy dtype. Raises NotImplementedError if kjit.cuda has no such type."""
    try:
        return _known_dtypes[dtype]
    except (KeyError, TypeError):
        found = _of_dtype(dtype)
    if getattr(dtype, "isbuiltin", 0) == 1:  # a dtype of NumPy's own
        _known_dtypes[dtype] = found
    return found


def _of_dtype(dtype):
    if getattr(dtype, "names", None):
        return Record(dtype)
    if getattr(dtype, "kind", None) in ("M", "m"):
        unit = dtype.str.partition("[")[2].rstrip("]")
        return (NPDatetime if dtype.kind == "M" else NPTimedelta)(unit)
    text = dtypes.name_of(dtype)
    if text not in BY_TEXT:
        raise NotImplementedError(f"kjit.cuda has no type for NumPy's {dtype}")
    return BY_TEXT[text]


def as_dtype(kind):
    """Returns the NumPy dtype of a scalar type."""
    import numpy

    if isinstance(kind, (Record, _Date)):
        return kind.dtype
    return numpy.dtype(dtypes._NUMPY[kind.text])


def typeof(value):
    """Returns an argument's type. Raises TypeError if kernels do not accept the object."""
    import numpy

    for plain, text in ((bool, "bool"), (int, "i64"), (float, "f64"), (complex, "c128")):
        if type(value) is plain:
            return BY_TEXT[text]
    if isinstance(value, (type, Type)) and dtypes.name_of(value):
        return NumberClass(value)
    if isinstance(value, tuple):
        kinds = [typeof(item) for item in value]
        is_one = bool(kinds) and all(kind == kinds[0] for kind in kinds)
        if hasattr(value, "_fields"):
            return NamedUniTuple(kinds[0], len(kinds), type(value)) if is_one else NamedTuple(kinds, type(value))
        return UniTuple(kinds[0], len(kinds)) if is_one else Tuple(kinds)
    if hasattr(value, "gpu_data") and value.dtype.names and value.shape == ():  # a device record
        return value._numba_type_
    if isinstance(value, numpy.generic):
        return from_dtype(value.dtype)
    if not isinstance(getattr(value, "dtype", None), numpy.dtype):
        described = getattr(value, "__cuda_array_interface__", None)
        if isinstance(described, dict):
            return _of_interface(described)
    if hasattr(value, "dtype") and hasattr(value, "ndim"):
        flags = getattr(value, "flags", None)
        if not hasattr(flags, "c_contiguous") and not hasattr(value, "is_c_contiguous"):
            return Array(from_dtype(value.dtype), value.ndim, "C")
        is_c = flags.c_contiguous if hasattr(flags, "c_contiguous") else value.is_c_contiguous()
        is_f = flags.f_contiguous if hasattr(flags, "f_contiguous") else value.is_f_contiguous()
        return Array(from_dtype(value.dtype), value.ndim, "C" if is_c else "F" if is_f else "A")
    raise TypeError(f"an object of {type(value).__name__} cannot be an argument of a kernel")


def _of_interface(described):
    """Returns an array's type by its CUDA array interface. Used for libraries whose dtypes are not
    NumPy's."""
    strides = described.get("strides")
    return _array_lying_so(described["typestr"], tuple(described["shape"]), strides if strides is None else tuple(strides))


@functools.lru_cache(maxsize=1024)
def _array_lying_so(typestr, shape, strides):
    import numpy

    dtype = numpy.dtype(typestr)
    if strides is None or not all(shape):
        return Array(from_dtype(dtype), len(shape), "C")
    layouts, forward, backward = {"C", "F"}, dtype.itemsize, dtype.itemsize
    for extent, stride, last_extent, last_stride in zip(shape, strides, reversed(shape), reversed(strides)):
        if extent != 1 and stride != forward:
            layouts.discard("F")
        if last_extent != 1 and last_stride != backward:
            layouts.discard("C")
        forward, backward = forward * extent, backward * last_extent
    return Array(from_dtype(dtype), len(shape), min(layouts, default="A"))
