"""Records of operations over whole arrays, from which kjit.grad computes derivatives.

A program runs once with traced arguments. Each operation with a traced operand makes a traced
result. The result holds its operands and the function `back`, which maps the derivative with respect to the
result to the derivatives with respect to the operands. `go_back` applies these functions in the opposite order.

Derivatives can be nested: each call of a derivative has a level of its own. The value of a traced
array can be a traced array of a lower level, because the function `back` uses only operations that
can be recorded, too.
"""

import itertools

import numpy

from .. import _pullbacks
from .._pullback_arrays import beside, element_name, zeros_as
from .._traced import begin, is_traced, raw
from ._engine import Array

_numbers = itertools.count()
_levels = itertools.count(1)


class Traced(numpy.lib.mixins.NDArrayOperatorsMixin):
    """A value whose operations are recorded: an array, or a number computed from arrays. parents: the operation's operands.
    back: the function that returns the derivatives with respect to the parents, or None for an argument."""

    __kjit_traced__ = True

    def __init__(self, value, level, parents=(), back=None):
        self.value, self.level, self.parents, self.back = value, level, parents, back
        self.number = next(_numbers)

    shape = property(lambda self: tuple(numpy.shape(raw(self))) if not hasattr(raw(self), "shape") else tuple(raw(self).shape))
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: numpy.prod(self.shape, dtype=int).item())
    dtype = property(lambda self: getattr(raw(self), "dtype", numpy.dtype(float)))

    def __repr__(self):
        return f"<a value of kjit.grad: {self.dtype}{list(self.shape)}>"

    def __len__(self):
        if not self.shape:
            raise TypeError("a number has no len()")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def _refuse(self, *_):
        raise TypeError(
            "kjit.grad records operations over whole arrays, but this operation needs the value as a Python number; "
            "use kjit.numpy.where for conditions, and compute constants outside of the function"
        )

    __bool__ = __float__ = __int__ = __complex__ = __index__ = __array__ = item = tolist = _refuse

    def __setitem__(self, key, value):
        raise TypeError("kjit.grad: a value whose operations are recorded cannot be changed in place; make a new array by kjit.numpy.where")


def level_of(operands):
    """Returns the highest level of the traced arrays among operands, which can be tuples and lists."""
    inner = (level_of(x) if isinstance(x, (tuple, list)) else getattr(x, "level", 0) if is_traced(x) else 0 for x in operands)
    return max(inner, default=0)


def at_level(x, level):
    """Returns an operand in which values replace the traced arrays of this level."""
    if isinstance(x, (tuple, list)):
        return type(x)(at_level(item, level) for item in x)
    return x.value if is_traced(x) and x.level == level else x


def is_at_level(x, level):
    return is_traced(x) and not isinstance(x, (tuple, list)) and x.level == level


def as_array(x):
    """Converts an array or a number to an array with the methods that the derivative rules use."""
    return x if isinstance(x, (Array, Traced)) else numpy.asarray(x)


def by(x, compute, back):
    """Records an operation with one operand. compute: maps the operand's value to the result's value. back: maps the
    derivative with respect to the result to the derivative with respect to the operand."""
    return Traced(compute(as_array(x.value)), x.level, (x,), lambda g: (back(as_array(g)),))


def take_part(node, index):
    """Returns an item of an operation whose result is a tuple."""
    count = len(node.value)
    return Traced(node.value[index], node.level, (node,), lambda g: (tuple(g if i == index else None for i in range(count)),))


# ---- the backward pass ----


def zeros(x):
    """Returns zeros with the shape and type of a value."""
    return zeros_as(raw(x), x.shape, element_name(x))


def _sum(a, b):
    if isinstance(a, tuple):
        return tuple(map(_sum, a, b))
    return a if b is None else b if a is None else _add(a, b)


def _add(a, b):
    return as_array(a) + as_array(b)


def _completed(node, g):
    """Returns the derivative with respect to a result. If the result is a tuple, zeros replace the
    derivatives of items that the program has not used."""
    if not isinstance(node.value, tuple):
        return g
    return tuple(zeros(as_array(x)) if item is None else item for x, item in zip(node.value, g, strict=True))


def _collect(parents, derivatives):
    """Yields each traced parent with its derivative."""
    for x, g in zip(parents, derivatives):
        if isinstance(x, (tuple, list)) and g is not None:
            yield from _collect(x, g)
        elif g is not None and is_traced(x):
            yield x, g


def go_back(results):
    """Returns a dictionary: number of a traced argument -> the derivative with respect to this argument.
    results: pairs of a traced value and the derivative with respect to this value, all of one level."""
    found, waiting = {}, {}
    for node, g in results:
        found[node.number] = _sum(found[node.number], g) if node.number in found else g
        waiting[node.number] = node
    while waiting:
        number = max(waiting)
        node = waiting.pop(number)
        if node.back is None:
            continue
        derivatives = node.back(_completed(node, found.pop(number)))
        for x, g in _collect(node.parents, derivatives):
            if x.level == node.level:
                g = g if is_traced(x.value) else beside(g, x.value)
                found[x.number] = _sum(found[x.number], g) if x.number in found else g
                waiting[x.number] = x
    return found


def run(function, args, chosen):
    """Runs a program with the chosen arguments traced. Returns (result, traced arguments)."""
    begin()
    level = next(_levels)
    traced = [Traced(_argument(x), level) if i in chosen else x for i, x in enumerate(args)]
    return function(*traced), [traced[i] for i in chosen]


def _argument(x):
    return x if isinstance(x, (float, complex)) else as_array(x)


def derivatives_of(results, traced):
    """Returns the derivatives with respect to the traced arguments. results: see go_back."""
    found = go_back(results)
    by_argument = (found.get(x.number) for x in traced)
    return tuple(zeros(x) if g is None else as_given(x, g) for x, g in zip(traced, by_argument, strict=True))


def as_given(x, g):
    """Returns a derivative as a number if the argument is a Python number, and otherwise as an array."""
    if isinstance(raw(x), numpy.ndarray) and isinstance(g, Array):
        return g.to_host()
    if isinstance(raw(x), (float, complex)) and not is_traced(g):
        return type(raw(x))(g.to_host() if hasattr(g, "to_host") else g)
    return g


def call(algorithm, *operands, **keywords):
    """Calls an algorithm and records it. The operands and keywords must contain traced arrays."""
    parents = _parents(operands, keywords)
    level = level_of(parents)
    given = [at_level(x, level) for x in operands]
    keywords = {word: at_level(x, level) for word, x in keywords.items()}
    result, back = _pullbacks.apply_rule(algorithm, given, keywords, needed_of(parents, level))
    return Traced(result, level, parents, back)


def needed_of(operands, level):
    """Returns for each operand whether a derivative with respect to it is needed: a flag, or a tuple of flags for a
    tuple or list."""
    return tuple(needed_of(x, level) if isinstance(x, (tuple, list)) else is_at_level(x, level) for x in operands)


# The keywords whose values are further operands, each with the number of positional operands that
# precede these. None means all positional operands.
_FURTHER = {"epilogue_operands": None, "arguments": 3}


def _parents(operands, keywords):
    """Returns an algorithm's operands in the order of the derivatives that kjit.pullback returns.
    The operator of `pairs` can follow its operands, and has no derivative."""
    for word, count in _FURTHER.items():
        if word in keywords:
            given = keywords[word]
            return (*operands[:count], *(given if isinstance(given, (tuple, list)) else (given,)))
    return operands


# ---- numbers and unit vectors ----


def one_like(result):
    """Returns the derivative of a number with respect to itself."""
    return numpy.float32(1) if element_name(as_array(result)) == "f32" else 1.0


def cotangent(value, g, name):
    """Returns the derivative with respect to a result that the caller passes. Raises TypeError for another shape."""
    shape = tuple(getattr(g, "shape", None) or numpy.shape(raw(g)))
    if shape != value.shape:
        raise TypeError(f"{name}: the derivative with respect to the result has the shape {shape}, but the result has the shape {value.shape}")
    return float(g) if type(g) in (int, bool) else g


def zeros_of(value):
    """Returns zeros for a result: an array, or a number."""
    value = raw(value)
    return zeros_as(value, tuple(value.shape), element_name(value)) if getattr(value, "shape", ()) else 0.0


def units(shape, like):
    """Yields arrays in which one element is 1 and all others are 0, one array for each element of
    the shape. like: determines the type and the arrays' device. Without dimensions, yields the
    number 1.0."""
    if not shape:
        yield 1.0
        return
    for place in numpy.ndindex(*shape):
        made = zeros_of(like)
        made[place] = 1
        yield made


def stacked(rows, shape):
    """Returns rows as one array, with the axes of `shape` before the rows' own axes."""
    if not shape:
        return rows[0]
    from . import stack

    made = stack(rows) if isinstance(rows[0], Array) else numpy.stack(rows)
    return made.reshape((*shape, *numpy.shape(rows[0]))) if not isinstance(rows[0], Array) else made.reshape((*shape, *rows[0].shape))
