"""Elementwise functions for kjit.torch and kjit.jax: the results of a function, and its derivatives
as maps."""

from . import _arrays, dtypes
from ._algorithms import function_of, map
from ._derivatives import Derivative, make


class Elementwise:
    """An elementwise function and the funcs of its derivatives. kjit.map applies them to numbers
    and arrays of one shape."""

    def __init__(self, function, word):
        self.function = function if isinstance(function, Derivative) else function_of(function, f"what {word} takes")
        self.__name__, self.__doc__ = self.function.__name__, self.function.__doc__
        self._elements = {}
        self._counts = {}

    def _count(self, operands):
        """Returns (number of results, whether they are a tuple) for operands of these types."""
        elements = self.result_elements(self.function, operands)
        return len(elements), elements.is_tuple

    def result_elements(self, func, operands):
        """Returns the element types of a func's results. operands: names of element types for
        arrays, and numbers."""
        key = (func, *((type(o), o if isinstance(o, str) else None) for o in operands))
        if key not in self._elements:
            empty = [_arrays.empty((0,), o, device="cpu") if isinstance(o, str) else o for o in operands]
            made = map(func, *empty, device="cpu")
            self._elements[key] = _Elements(made)
        return self._elements[key]

    def pullback(self, numbers, operands):
        """Returns the func that computes the derivatives with respect to the chosen parameters. Its last
        arguments are the derivatives of the results."""
        count, is_tuple = self._count(operands)
        return make("pullback", self.function, numbers).of_items(len(operands) + count, count if is_tuple else 0)

    def pullback_jvp(self, numbers, operands):
        """Returns the func that differentiates `pullback` along directions of the chosen
        parameters. Its last arguments are the directions."""
        count, is_tuple = self._count(operands)
        made = make("pullback_jvp", self.function, numbers)
        return made.of_items(len(operands) + count + len(numbers), count if is_tuple else 0)


class _Elements(tuple):
    """The names of the results' element types, and whether the results are a tuple."""

    def __new__(cls, made):
        arrays = made if isinstance(made, tuple) else (made,)
        self = super().__new__(cls, (dtypes.name_of(a.dtype) or str(a.dtype) for a in arrays))
        self.is_tuple = isinstance(made, tuple)
        return self
