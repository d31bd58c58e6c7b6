"""Tuples and functions as arguments: what is known of one when a kernel is compiled, and a tuple's items one after the other."""

import enum
import sys
import types


_PLAIN = (bool, int, float, complex, str, type(None))
# Functions around functions that are compared by what they are made of.
_DEEPEST = 4


class Shape(tuple):
    """The shapes of a tuple's items, None for what is no tuple; fields: the names of a named tuple's items, or None; kind: the
    class of a named tuple, or None."""

    def __new__(cls, items, fields=None, kind=None):
        made = super().__new__(cls, items)
        made.fields, made.kind = fields, kind
        return made

    def __eq__(self, other):
        is_alike = isinstance(other, Shape) and self.fields == other.fields and self.kind is other.kind
        return is_alike and tuple.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.fields, tuple.__hash__(self)))

    def type_text(self):
        """The type of a parameter that takes it, whose items have any types."""
        return "(" + ", ".join("_" if item is None else item.type_text() for item in self) + ")"

    def has_fields(self):
        return self.fields is not None or any(item is not None and item.has_fields() for item in self)

    def compose(self, names):
        """The tuple as text of the kernel IR, whose items have the names that the iterator gives."""
        items = [next(names) if item is None else item.compose(names) for item in self]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def give_names(self, value):
        """A tuple that code has returned, as the named tuples that it is made of."""
        items = [part if item is None else item.give_names(part) for item, part in zip(self, value)]
        return tuple(items) if self.kind is None else self.kind._make(items)

    def names(self, name):
        """What its items are called in messages."""
        for i, item in enumerate(self):
            own = f"{name}.{self.fields[i]}" if self.fields else f"{name}[{i}]"
            yield from [own] if item is None else item.names(own)


class Member:
    """A member of an enumeration among the arguments: its class is known when a kernel is compiled, its value is an argument."""

    fields = None

    def __init__(self, enumeration):
        self.enumeration = enumeration

    def __eq__(self, other):
        return isinstance(other, Member) and self.enumeration is other.enumeration

    def __hash__(self):
        return hash(self.enumeration)

    def type_text(self):
        return "_"

    def compose(self, names):
        """The value of the member, in a tuple or by itself."""
        return next(names)

    def has_fields(self):
        return True

    def give_names(self, value):
        """The member that has a value which code has returned."""
        return self.enumeration(value)

    def names(self, name):
        return (name,)


class Known:
    """A function among the arguments of a launch, which is compiled into the kernel. Two are the same where they are one object,
    or functions of Python with the same code, in the same module, with the same values around it: such as a lambda makes each
    time that it is evaluated."""

    def __init__(self, function):
        self.function = function
        self.kept = []  # whose identity is a part of the key
        self.key = self._key(function, 0)

    def _key(self, thing, depth):
        if isinstance(thing, _PLAIN):
            return type(thing), repr(thing)
        self.kept.append(thing)
        if not isinstance(thing, types.FunctionType) or thing.__kwdefaults__ or thing.__annotations__ or depth > _DEEPEST:
            return id(thing)
        around = [self._key(value, depth + 1) for value in thing.__defaults__ or ()]
        for cell in thing.__closure__ or ():
            try:
                around.append(self._key(cell.cell_contents, depth + 1))
            except ValueError:
                around.append("not assigned yet")
        return id(thing.__code__), id(thing.__globals__), tuple(around)

    def __eq__(self, other):
        return isinstance(other, Known) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def names(self, name):
        """It is none of the parameters of the kernel IR."""
        return ()


def shape_of(value, takes_types=False, takes_constants=False):
    """The shape of an argument; None: it is neither a tuple nor a function, nor a type or a constant (a text, an empty tuple) where
    those are taken."""
    if isinstance(value, enum.Enum) and all(isinstance(m.value, (bool, int, float, complex)) for m in type(value)):
        return Member(type(value))
    is_constant = takes_constants and (isinstance(value, str) or type(value) is tuple and not value)
    if value is None or isinstance(value, enum.Enum) or is_constant:
        return Known(value)
    if not isinstance(value, tuple):
        is_known = callable(value) and (is_function(value) or takes_types and is_type(value))
        return Known(value) if is_known else None
    return Shape((shape_of(item) if isinstance(item, (tuple, enum.Enum)) else None for item in value), *named(type(value)))


def named(kind):
    """(the names of the items, the class) of a class of named tuples; of any other class (None, None)."""
    fields = getattr(kind, "_fields", None)
    return (fields, kind) if fields is not None and issubclass(kind, tuple) else (None, None)


def is_type(value):
    """Whether it is a type of elements, such as numpy.float32, for which a kernel is compiled."""
    from . import dtypes

    return isinstance(value, (type, dtypes.DType)) and dtypes.name_of(value) is not None


def is_function(value):
    """Whether it is something that a kernel can call: a function of Python, a func, a built-in of the kernel IR by any of its names."""
    if isinstance(value, types.FunctionType):
        return True
    if not callable(value) or isinstance(value, type):
        return False
    from .frontend import module, words

    return module.is_function(value) or words.builtin_name(value) is not None


def take_apart(value, items, after):
    """Adds what an argument is made of to items; after: functions to be called behind the launch. A record is an array of
    one, in place where its memory is an array's."""
    if isinstance(value, tuple):
        for item in value:
            if item is None or is_function(item) or is_type(item):
                raise TypeError("None, a function or a type among the items of a tuple: a kernel takes it as an argument of its own")
            take_apart(item, items, after)
        return
    if isinstance(value, enum.Enum):
        return items.append(value.value)
    if is_record(value):
        import numpy

        array = numpy.asarray(value)
        if value.flags.owndata or not array.flags.writeable:
            array = array.copy()
            after.append(lambda: write_back(value, array))
        items.append(array)
        return
    items.append(value)


def is_record(value):
    """Whether it is a scalar of NumPy that has fields."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.void):
        return False
    if value.dtype.names is None:
        raise TypeError("bytes without a type (numpy.void) are no argument of a kernel")
    return True


def write_back(record, array):
    """What a kernel has made of the copy of a record. Of one that is read-only nothing must have changed."""
    if not record.flags.writeable:
        if record.tobytes() != array.tobytes():
            raise ValueError("the kernel has written to a record that is read-only")
        return
    for name in record.dtype.names:
        record[name] = array[name]
