"""What kjit.torch and kjit.jax share: a function of elements, its results, and its derivatives as maps."""

from . import _arrays, dtypes
from ._algorithms import function_of, map
from ._derivatives import Derivative, make


class Elementwise:
    """A function of elements and the funcs of its derivatives. Each is mapped over arrays of one shape and numbers."""

    def __init__(self, function, word):
        self.function = function if isinstance(function, Derivative) else function_of(function, f"what {word} takes")
        self.__name__, self.__doc__ = self.function.__name__, self.function.__doc__
        self._elements = {}
        self._counts = {}

    def _count(self, operands):
        """(the number of results, whether they are a tuple) for the types of these operands."""
        elements = self.result_elements(self.function, operands)
        return len(elements), elements.is_tuple

    def result_elements(self, func, operands):
        """The element types of what a func returns for elements of operands: names of arrays, and numbers."""
        key = (func, *((type(o), o if isinstance(o, str) else None) for o in operands))
        if key not in self._elements:
            empty = [_arrays.empty((0,), o, device="cpu") if isinstance(o, str) else o for o in operands]
            made = map(func, *empty, device="cpu")
            self._elements[key] = _Elements(made)
        return self._elements[key]

    def pullback(self, numbers, operands):
        """The func of the derivatives by some parameters. Its last arguments are the derivatives by the results."""
        count, is_tuple = self._count(operands)
        return make("pullback", self.function, numbers).of_items(len(operands) + count, count if is_tuple else 0)

    def pullback_jvp(self, numbers, operands):
        """The func of the derivatives of `pullback` along directions of the chosen parameters. Its last arguments are the
        directions."""
        count, is_tuple = self._count(operands)
        made = make("pullback_jvp", self.function, numbers)
        return made.of_items(len(operands) + count + len(numbers), count if is_tuple else 0)


class _Elements(tuple):
    """Names of element types, and whether the results are a tuple."""

    def __new__(cls, made):
        arrays = made if isinstance(made, tuple) else (made,)
        self = super().__new__(cls, (dtypes.name_of(a.dtype) or str(a.dtype) for a in arrays))
        self.is_tuple = isinstance(made, tuple)
        return self
