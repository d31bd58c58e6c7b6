"""Finds the types in which NumPy's ufuncs compute, and the funcs in the kernel IR that compute the
same."""

import functools

import numpy

from .. import dtypes
from ..frontend import ufuncs
from . import _dtypes
from ._dtypes import BY_TEXT, DEFAULTS, KIND
from ._errors import PromotionError
from ._funcs import Func
from ._table import _BY_SPACING, _WIDER

# The ufuncs that kjit computes. NumPy computes every other ufunc for arrays on the CPU; for arrays
# on a GPU it is rejected.
HAS_FUNC = frozenset(ufuncs.BY_NAME) - {"isnat"}
_CODES = "?bBhHiIlLqQefdFD"


def numpy_type(text):
    """Returns NumPy's dtype for a type's name."""
    return numpy.dtype(BY_TEXT[text].dtype)


@functools.cache
def _text(code):
    return dtypes.name_of(numpy.dtype(code))


@functools.cache
def _loops(ufunc):
    """Returns a ufunc's loops whose types kjit supports, as pairs (type characters of the inputs,
    type characters of the results)."""
    split = (loop.split("->") for loop in ufunc.types)
    return [(inputs, outputs) for inputs, outputs in split if all(code in _CODES for code in inputs + outputs)]


class Loop:
    """A loop of a ufunc: the types to which the operands are converted, and the types of the
    results."""

    def __init__(self, ufunc, inputs, outputs):
        self.ufunc, self.inputs, self.outputs = ufunc, inputs, outputs
        self._funcs = {}

    def call(self, *names):
        """Returns the expression of the kernel IR that computes one element."""
        inner = self.inputs
        if self.ufunc.__name__ not in _BY_SPACING:
            inner = [_WIDER.get(text, text) for text in inner]
        if self.ufunc.__name__ == "divide" and KIND[inner[0]] in "biu":  # NumPy divides integers as floats
            inner = [self.outputs[0]] * 2
        converted = [f"{text}({name})" for text, name in zip(inner, names)]
        if self.ufunc.__name__ == "spacing" and inner[0] == "f16":  # NumPy's spacing is positive for float16 only
            converted = [f"f16(abs({converted[0]}))"]
        return f"{self.text.__name__}({', '.join(converted)})"

    @property
    def text(self):
        return ufuncs.BY_NAME[self.ufunc.__name__]

    def func(self, results):
        """Returns the func for result arrays of the given types."""
        if results not in self._funcs:
            names = [f"x{i}" for i in range(len(self.inputs))]
            found = self.call(*names)
            if len(results) == 1:
                body = f"  return {stored(found, self.outputs[0], results[0])}\n"
            else:
                items = (stored(f"r[{i}]", own, text) for i, (own, text) in enumerate(zip(self.outputs, results)))
                body = f"  let r = {found}\n  return {', '.join(items)}\n"
            self._funcs[results] = Func("element", f"func element({', '.join(names)}) {{\n{body}}}", (self.text,))
        return self._funcs[results]


def stored(expression, source, target):
    """Returns the expression that converts a value for a store in an array of another type, as
    NumPy does."""
    if KIND[source] == "c" and KIND[target] not in "cb":
        return f"{target}({expression}.real)"
    if target == "bool" and source != "bool":
        return f"({expression}) != 0"
    return f"{target}({expression})"


# ---- the types of operands ----


def weak_texts(words):
    """Returns the types of the operands.

    words: for each operand its type's name, or "?" and a kind for a Python number. A Python number
    takes the type of the arrays, as in NumPy 2.
    """
    texts = [word for word in words if word[0] != "?"]
    if not texts:
        return [DEFAULTS[word[1]] for word in words]
    common = dtypes.name_of(numpy.result_type(*map(numpy_type, texts)))
    return [_dtypes.with_scalar(common, word[1]) if word[0] == "?" else word for word in words]


@functools.lru_cache(4096)
def find_loop(ufunc, words, outs, casting, dtype, signature):
    """Returns (the Loop for the operands, the types of the arrays that it writes).

    words: see weak_texts. outs: the types of the arrays that the caller passes for results, or None
    for each new array. NumPy itself determines the result types and rejects invalid types: the
    function calls the ufunc for arrays without elements.
    """
    texts = weak_texts(words)
    options = {"casting": casting}
    if dtype is not None:
        options["dtype"] = dtype
    if signature is not None:
        options["signature"] = signature
    try:
        results = _asked(ufunc, texts, outs, options)
    except TypeError:
        # For some parameters, such as the exponent of ldexp, a Python number does not take the type of the
        # arrays and keeps its default type.
        texts = [DEFAULTS[word[1]] if word[0] == "?" else word for word in words]
        results = _asked(ufunc, texts, outs, options)
    given = [numpy_type(text) for text in texts]
    for rule in ("safe", casting):
        for inputs, outputs in _loops(ufunc):
            if tuple(map(_text, outputs)) == results and all(map(functools.partial(numpy.can_cast, casting=rule), given, inputs)):
                return Loop(ufunc, tuple(map(_text, inputs)), results), tuple(out or own for out, own in zip(outs, results))
    raise PromotionError(f"{ufunc.__name__}: kjit has no loop for {', '.join(BY_TEXT[text].name for text in texts)}")


def _asked(ufunc, texts, outs, options):
    """Returns the types of the results, from a call of NumPy's ufunc for arrays without elements."""
    found = ufunc(*(numpy.empty(0, numpy_type(text)) for text in texts), **options)
    found = found if isinstance(found, tuple) else (found,)
    if any(outs):  # NumPy raises an error if its results cannot be converted to the types of these arrays
        ufunc(
            *(numpy.empty(0, numpy_type(text)) for text in texts),
            out=tuple(numpy.empty(0, numpy_type(text)) if text else None for text in outs),
            **options,
        )
    results = tuple(dtypes.name_of(each.dtype) for each in found)
    if not all(text in KIND for text in results):
        raise PromotionError(f"{ufunc.__name__}: results of {found[0].dtype} cannot be stored in kjit arrays")
    return results


@functools.lru_cache(1024)
def fold_loop(ufunc, text, dtype):
    """Returns the Loop with which NumPy reduces an array along an axis. Its operands and its result
    have the same type."""
    options = {} if dtype is None else {"dtype": dtype}
    result = dtypes.name_of(numpy.asarray(ufunc.reduce(numpy.ones(1, numpy_type(text)), **options)).dtype)
    code = numpy_type(result).char
    for inputs, outputs in _loops(ufunc):
        if {_text(each) for each in inputs + outputs} == {result} or inputs + outputs == code * 3:
            return Loop(ufunc, (result, result), (result,))
    raise PromotionError(f"{ufunc.__name__}: kjit has no loop that combines elements of {BY_TEXT[text].name}")
