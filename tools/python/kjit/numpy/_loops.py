"""Loops of NumPy's ufuncs: the types that NumPy computes in and returns, and the funcs of the kernel IR that compute the same."""

import functools

import numpy

from .. import dtypes
from ..frontend import ufuncs
from . import _dtypes
from ._dtypes import BY_TEXT, DEFAULTS, KIND
from ._errors import PromotionError
from ._funcs import Func
from ._table import _BY_SPACING, _WIDER

# Ufuncs that kjit computes; every other ufunc is NumPy's work on the CPU and is rejected on a GPU.
HAS_FUNC = frozenset(ufuncs.BY_NAME) - {"isnat"}
_CODES = "?bBhHiIlLqQefdFD"


def numpy_type(text):
    """NumPy's data type for the name of a type."""
    return numpy.dtype(BY_TEXT[text].dtype)


@functools.cache
def _text(code):
    return dtypes.name_of(numpy.dtype(code))


@functools.cache
def _loops(ufunc):
    """The loops of a ufunc that have types of kjit: the codes of the inputs and of the results."""
    split = (loop.split("->") for loop in ufunc.types)
    return [(inputs, outputs) for inputs, outputs in split if all(code in _CODES for code in inputs + outputs)]


class Loop:
    """The types that a ufunc converts its operands to, the types that it returns, and its func for types of the results."""

    def __init__(self, ufunc, inputs, outputs):
        self.ufunc, self.inputs, self.outputs = ufunc, inputs, outputs
        self._funcs = {}

    def call(self, *names):
        """The expression of the kernel IR for one element."""
        inner = self.inputs
        if self.ufunc.__name__ not in _BY_SPACING:
            inner = [_WIDER.get(text, text) for text in inner]
        if self.ufunc.__name__ == "divide" and KIND[inner[0]] in "biu":  # NumPy divides integers as floats
            inner = [self.outputs[0]] * 2
        converted = [f"{text}({name})" for text, name in zip(inner, names)]
        if self.ufunc.__name__ == "spacing" and inner[0] == "f16":  # which is positive for this type alone
            converted = [f"f16(abs({converted[0]}))"]
        return f"{self.text.__name__}({', '.join(converted)})"

    @property
    def text(self):
        return ufuncs.BY_NAME[self.ufunc.__name__]

    def func(self, results):
        """The func for arrays of the given types, one for each result."""
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
    """The expression that converts a value for an array of another type, as NumPy does."""
    if KIND[source] == "c" and KIND[target] not in "cb":
        return f"{target}({expression}.real)"
    if target == "bool" and source != "bool":
        return f"({expression}) != 0"
    return f"{target}({expression})"


# ---- the types of operands ----


def weak_texts(words):
    """The types of operands. words: for each operand the name of its type, or "?" and the kind of a number of Python, which takes the
    type of the arrays, as in NumPy 2."""
    texts = [word for word in words if word[0] != "?"]
    if not texts:
        return [DEFAULTS[word[1]] for word in words]
    common = dtypes.name_of(numpy.result_type(*map(numpy_type, texts)))
    return [_dtypes.with_scalar(common, word[1]) if word[0] == "?" else word for word in words]


@functools.lru_cache(4096)
def find_loop(ufunc, words, outs, casting, dtype, signature):
    """The Loop for operands, and the types of the arrays that it writes. words: see weak_texts; outs: the types of the arrays that the
    caller gives, or None for each array to be made. NumPy itself says which results it returns and what it rejects: for arrays
    without elements."""
    texts = weak_texts(words)
    options = {"casting": casting}
    if dtype is not None:
        options["dtype"] = dtype
    if signature is not None:
        options["signature"] = signature
    try:
        results = _asked(ufunc, texts, outs, options)
    except TypeError:
        # A number of Python with a parameter of its own type, as the exponent of ldexp.
        texts = [DEFAULTS[word[1]] if word[0] == "?" else word for word in words]
        results = _asked(ufunc, texts, outs, options)
    given = [numpy_type(text) for text in texts]
    for rule in ("safe", casting):
        for inputs, outputs in _loops(ufunc):
            if tuple(map(_text, outputs)) == results and all(map(functools.partial(numpy.can_cast, casting=rule), given, inputs)):
                return Loop(ufunc, tuple(map(_text, inputs)), results), tuple(out or own for out, own in zip(outs, results))
    raise PromotionError(f"{ufunc.__name__}: kjit has no loop for {', '.join(BY_TEXT[text].name for text in texts)}")


def _asked(ufunc, texts, outs, options):
    """The types of the results, from a call of NumPy's ufunc for arrays without elements."""
    found = ufunc(*(numpy.empty(0, numpy_type(text)) for text in texts), **options)
    found = found if isinstance(found, tuple) else (found,)
    if any(outs):  # which NumPy converts the results for, or not
        ufunc(
            *(numpy.empty(0, numpy_type(text)) for text in texts),
            out=tuple(numpy.empty(0, numpy_type(text)) if text else None for text in outs),
            **options,
        )
    results = tuple(dtypes.name_of(each.dtype) for each in found)
    if not all(text in KIND for text in results):
        raise PromotionError(f"{ufunc.__name__}: results of {found[0].dtype} are no elements of kjit's arrays")
    return results


@functools.lru_cache(1024)
def fold_loop(ufunc, text, dtype):
    """The Loop with which NumPy combines the elements of an array along an axis: its operands and its result have one type."""
    options = {} if dtype is None else {"dtype": dtype}
    result = dtypes.name_of(numpy.asarray(ufunc.reduce(numpy.ones(1, numpy_type(text)), **options)).dtype)
    code = numpy_type(result).char
    for inputs, outputs in _loops(ufunc):
        if {_text(each) for each in inputs + outputs} == {result} or inputs + outputs == code * 3:
            return Loop(ufunc, (result, result), (result,))
    raise PromotionError(f"{ufunc.__name__}: kjit has no loop that combines elements of {BY_TEXT[text].name}")
