"""Tuples, records, functions and constants (None, strings, enum members) as arguments of functions
on the CPU."""

from . import _state
from ._errors import CLASSES
from ._shapes import Known, Member, Shape, shape_of, take_apart

# The maximum number of variants of one function for tuple shapes and constants.
_MOST_VARIANTS = 256
_ArgumentError = next(kind for kind in CLASSES.values() if kind.__name__ == "ArgumentError")


class Composed:
    """A func that Python calls with tuples, functions or constants. Each combination of tuple shapes, functions, types and
    constants has a variant, whose parameters are the items in the tuples."""

    _given = ()  # in a variant, a Shape, a Known or None for each parameter

    def _call_composed(self, args, _):
        """For the extension: calls the function with arguments that compiled code does not accept
        directly."""
        if self._given:
            bad = next(a for a in args if a is None or isinstance(a, str) or callable(a))
            raise _ArgumentError(
                f"an item of a tuple is {bad!r}, but items must be numbers, arrays, records and tuples"
            )
        shapes = tuple(shape_of(value, True, True) for value in args)
        variant = self._variant(shapes)
        if variant.runs_in_python:
            return variant._call_driver(*args)
        items, after = [], []
        for value, shape in zip(args, shapes):
            if not isinstance(shape, Known):
                take_apart(value, items, after)
        try:
            result = variant(*items)
        finally:
            for finish in after:
                finish()
        if variant is not self and variant.__dict__.pop("_is_noted", False):
            self._note_call(args, result)
        return result

    def _note_call(self, args, result):
        """The extension calls this method after the first call with arguments of these types. Njit
        overrides it."""

    def _variant(self, shapes):
        """Returns the variant for arguments of these shapes, or the function itself if no argument
        is a tuple, a function or a constant."""
        if not any(shape is not None for shape in shapes):
            return self
        with _state.lock():
            variants = self.__dict__.setdefault("_variants", {})
            found = variants.pop(shapes, None)
            if found is None:
                found = self._copy()
                found.__dict__["_given"] = shapes
                known = {name: shape.function for name, shape in self._shapes_of(shapes, Known)}
                found.__dict__["known"] = {**self.__dict__.get("known", {}), **known}
                while len(variants) >= _MOST_VARIANTS:
                    del variants[next(iter(variants))]
            variants[shapes] = found  # moves the variant that was used last to the end
        return found

    def _shapes_of(self, shapes, kind):
        names = self._plain_parameters()
        return [(name, shape) for name, shape in zip(names, shapes) if isinstance(shape, kind)]

    def _flat_parameters(self):
        """Returns the names of a variant's parameters, for messages."""
        listed = zip(self._plain_parameters(), self._given)
        return tuple(one for name, shape in listed for one in ([name] if shape is None else shape.names(name)))

    def _write_variant(self, builder):
        """Writes the function, and a func whose parameters are the items in its tuples. Returns the
        name of the second func."""
        from .frontend import module as modules

        known, shapes = self.__dict__["known"], dict(self._shapes_of(self._given, (Shape, Member)))
        code = self.py_func.__code__
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 0x04 else None
        spread = 0 if rest in known else None  # 0 if *args received no arguments
        whole = modules.Specialized(self, self.py_func, known, shapes, spread)
        name = builder.function(whole, "func")
        builder.write_all()
        entry = builder.new_name(f"{name}_of_items")
        items = [f"item_{i}" for i in range(len(self._flat_parameters()))]
        rest = iter(items)
        given = [
            next(rest) if shape is None else shape.compose(rest)
            for shape in self._given
            if not isinstance(shape, Known)
        ]
        word = "return " if builder.returned[name] else ""
        copies = " @record_copies" if getattr(self, "copies_records", False) else ""
        builder.lines.append(
            [f"func {entry}({', '.join(items)}){self.attributes}{copies} {{ {word}{name}({', '.join(given)}) }}"]
        )
        builder.returned[entry], builder.results[entry] = builder.returned[name], builder.results[name]
        return entry


def result_shape(made):
    """Returns the Shape of the named tuple that a function returns, or the Member of the
    enumeration that it returns, or None."""
    shapes = set(made.returned)
    return shapes.pop() if len(shapes) == 1 else None
