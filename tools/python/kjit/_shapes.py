"""Tuples and functions as arguments: their compile-time properties, and the items in a tuple as separate arguments."""

import enum
import sys
import types


_PLAIN = (bool, int, float, complex, str, type(None))
# Maximum depth of functions in functions that are compared by their contents.
_DEEPEST = 4


class Shape(tuple):
    """The shapes of the items in a tuple; None stands for an item that is not a tuple. fields has the item names of a
    named tuple, and kind its class; both can be None."""

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
        """Returns a parameter's type for the tuple, whose items can have any types."""
        return "(" + ", ".join("_" if item is None else item.type_text() for item in self) + ")"

    def has_fields(self):
        return self.fields is not None or any(item is not None and item.has_fields() for item in self)

    def compose(self, names):
        """Returns the tuple as kernel IR text; the iterator provides its items' names."""
        items = [next(names) if item is None else item.compose(names) for item in self]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def give_names(self, value):
        """Converts a tuple returned by compiled code to the original named tuples."""
        items = [part if item is None else item.give_names(part) for item, part in zip(self, value)]
        return tuple(items) if self.kind is None else self.kind._make(items)

    def names(self, name):
        """Yields the names that messages use for the items in the tuple `name`."""
        for i, item in enumerate(self):
            own = f"{name}.{self.fields[i]}" if self.fields else f"{name}[{i}]"
            yield from [own] if item is None else item.names(own)


class Member:
    """An enumeration member as an argument. Its class is known at compile time, and its value is an argument."""

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
        """Returns the member's value, in a tuple or alone."""
        return next(names)

    def has_fields(self):
        return True

    def give_names(self, value):
        """Returns the member of the enumeration that has a value returned by compiled code."""
        return self.enumeration(value)

    def names(self, name):
        return (name,)


class Known:
    """A function among a launch's arguments, which is compiled into the kernel. Two such functions are equal if they
    are the same object, or Python functions with the same code in the same module with the same captured values, like
    a lambda that is evaluated twice."""

    def __init__(self, function):
        self.function = function
        self.kept = []  # keeps objects alive whose identity is part of the key
        self.key = self._key(function, 0)

    def _key(self, thing, depth):
        if isinstance(thing, _PLAIN):
            return type(thing), repr(thing)
        if type(thing) is tuple:
            return tuple(self._key(item, depth) for item in thing)
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
        """Returns no names: a function is not a parameter of the kernel IR."""
        return ()


def _is_known(value):
    """Returns whether a value exists only at compile time: a constant, a function, or a tuple of such values. A tuple of numbers
    exists at run time, unless it is empty."""
    if not isinstance(value, tuple):
        return isinstance(value, _PLAIN) or is_function(value)
    return all(map(_is_known, value)) and not all(map(_is_number, value)) or not value


def _is_number(value):
    return all(map(_is_number, value)) if isinstance(value, tuple) else isinstance(value, (bool, int, float, complex))


def shape_of(value, takes_types=False, takes_constants=False):
    """Returns an argument's shape, or None if it is an ordinary argument. With takes_types and takes_constants,
    types and constants (a string, an empty tuple) have shapes as well."""
    if isinstance(value, enum.Enum) and all(isinstance(m.value, (bool, int, float, complex)) for m in type(value)):
        return Member(type(value))
    is_constant = takes_constants and (isinstance(value, str) or type(value) is tuple and _is_known(value))
    if value is None or isinstance(value, enum.Enum) or is_constant:
        return Known(value)
    if not isinstance(value, tuple):
        is_known = callable(value) and (is_function(value) or takes_types and is_type(value))
        return Known(value) if is_known else None
    return Shape((shape_of(item) if isinstance(item, (tuple, enum.Enum)) else None for item in value), *named(type(value)))


def named(kind):
    """Returns (item names, class) of a named tuple class, or (None, None) for another class."""
    fields = getattr(kind, "_fields", None)
    return (fields, kind) if fields is not None and issubclass(kind, tuple) else (None, None)


def is_type(value):
    """Returns whether a value is an element type, such as numpy.float32, for which a kernel is
    compiled."""
    from . import dtypes

    return isinstance(value, (type, dtypes.DType)) and dtypes.name_of(value) is not None


def is_function(value):
    """Returns whether a kernel can call a value: a Python function, a func, or a built-in of the
    kernel IR by any of its names."""
    if isinstance(value, types.FunctionType):
        return True
    if not callable(value) or isinstance(value, type):
        return False
    from .frontend import module, words

    return module.is_function(value) or words.builtin_name(value) is not None


def take_apart(value, items, after):
    """Appends the parts of an argument to items. after is a list, to which functions to call after the launch are
    appended. A record becomes an array with one element. This array shares the record's memory if the memory belongs to
    an array and is writable; otherwise it is a copy."""
    if isinstance(value, tuple):
        for item in value:
            if item is None or is_function(item) or is_type(item):
                raise TypeError("a tuple contains None, a function or a type: pass it to the kernel as a separate argument")
            take_apart(item, items, after)
        return
    if isinstance(value, enum.Enum):
        return items.append(value.value)
    if is_record(value):
        import numpy

        array = numpy.asarray(value)
        if value.flags.owndata or not array.flags.writeable:
            # as without the copy, the array's base is a record
            array = numpy.asarray(array.copy()[()])
            after.append(lambda: write_back(value, array))
        items.append(array)
        return
    items.append(value)


def is_record(value):
    """Returns whether a value is a NumPy scalar with fields."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.void):
        return False
    if value.dtype.names is None:
        raise TypeError("a kernel cannot take bytes without a type (numpy.void)")
    return True


def write_back(record, array):
    """Writes the changes of a kernel back to a record. A read-only record must be unchanged."""
    if not record.flags.writeable:
        if record.tobytes() != array.tobytes():
            raise ValueError("the kernel has written to a record that is read-only")
        return
    for name in record.dtype.names:
        record[name] = array[name]
