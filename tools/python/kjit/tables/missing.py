"""The missing value kjit.NA, and kjit.isna."""


class Missing:
    """The type of `kjit.NA`. Outside of compiled functions it behaves like pandas' NA."""

    __array_ufunc__ = None  # makes NumPy's scalars leave operators to this class
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = object.__new__(cls)
        return cls._only

    def __repr__(self):
        return "<NA>"

    def __reduce__(self):
        return "NA"

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __hash__(self):
        return 2**61 - 1

    def _propagate(self, *others):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _propagate
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _propagate
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _propagate
    __neg__ = __pos__ = __abs__ = __invert__ = __xor__ = __rxor__ = _propagate

    def __pow__(self, other):
        return 1 if other is not self and other == 0 else self

    def __rpow__(self, other):
        return 1 if other == 1 else self

    def __and__(self, other):
        return False if other is False else self

    def __or__(self, other):
        return True if other is True else self

    __rand__, __ror__ = __and__, __or__


NA = Missing()
NA.__doc__ = (
    "The missing value of functions over tables, see `kjit.table`. In such a function `x is kjit.NA` asks for it."
)


def isna(value):
    """Returns whether a value is missing: NA, None, a float NaN or a NaT. Row functions of
    `kjit.table` can call it."""
    return value is NA or value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def is_missing_object(thing):
    """Returns whether an object stands for a missing value in Python: kjit.NA, pandas' NA, or None."""
    return (
        thing is NA or thing is None or type(thing).__name__ == "NAType" and type(thing).__module__.startswith("pandas")
    )
