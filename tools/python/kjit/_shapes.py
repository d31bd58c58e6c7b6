"""Tuples as arguments: what is known of one when a kernel is compiled, and its items one after the other."""

import sys


class Shape(tuple):
    """The shapes of a tuple's items, None for what is no tuple; fields: the names of a named tuple's items, or None."""

    def __new__(cls, items, fields=None):
        made = super().__new__(cls, items)
        made.fields = fields
        return made

    def __eq__(self, other):
        return isinstance(other, Shape) and self.fields == other.fields and tuple.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.fields, tuple.__hash__(self)))

    def type_text(self):
        """The type of a parameter that takes it, whose items have any types."""
        return "(" + ", ".join("_" if item is None else item.type_text() for item in self) + ")"

    def has_fields(self):
        return self.fields is not None or any(item is not None and item.has_fields() for item in self)

    def names(self, name):
        """What its items are called in messages."""
        for i, item in enumerate(self):
            own = f"{name}.{self.fields[i]}" if self.fields else f"{name}[{i}]"
            yield from [own] if item is None else item.names(own)


def shape_of(value):
    """The shape of an argument; None: it is no tuple."""
    if not isinstance(value, tuple):
        return None
    return Shape((shape_of(item) for item in value), getattr(type(value), "_fields", None))


def take_apart(value, items, after):
    """Adds what an argument is made of to items; after: functions to be called behind the launch. A record is an array of
    one, in place where its memory is an array's."""
    if isinstance(value, tuple):
        for item in value:
            take_apart(item, items, after)
        return
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
