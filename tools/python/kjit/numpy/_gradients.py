"""Derivatives of programs over arrays: kjit.numpy.grad and kjit.numpy.value_and_grad.

The function runs once, and its traced arguments record the operations over whole arrays. Each
record holds the function `back` of `kjit.pullback`. The derivative of the result is then propagated
backwards through the records.
"""

import functools
import itertools

import numpy

from .. import _folds, _orders, _products
from .._algorithms import map
from .._derivatives import holds_float
from .._pullback_arrays import element_name, zeros_as
from .._pullbacks import pullback
from . import _gradient_elements as elements
from ._engine import Array

_numbers = itertools.count()


class Traced(numpy.lib.mixins.NDArrayOperatorsMixin):
    """A value whose operations are recorded: an array, or a number computed from arrays."""

    __kjit_traced__ = True

    def __init__(self, value, parents=(), back=None):
        self.value, self.parents, self.back, self.number = value, parents, back, next(_numbers)

    shape = property(lambda self: numpy.shape(self.value) if not isinstance(self.value, Array) else self.value.shape)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)
    T = property(lambda self: _transpose(self))

    def __repr__(self):
        return f"<a value of kjit.numpy.grad: {self.dtype}{list(self.shape)}>"

    def __len__(self):
        return self.shape[0]

    def _refuse(self, *_):
        raise TypeError(
            "kjit.numpy.grad records operations over whole arrays, but this operation needs the value as a Python number; "
            "use kjit.numpy.where for conditions, and compute constants outside of the function"
        )

    __bool__ = __float__ = __int__ = __complex__ = __index__ = __iter__ = __array__ = _refuse

    def __getitem__(self, key):
        return _element(self, key)

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        name = ufunc.__name__
        if method == "reduce" and name in _REDUCED and not set(keywords) - {"axis", "keepdims"}:
            return _reduce(_REDUCED[name], inputs[0], keywords.get("axis", 0), keywords.get("keepdims", False))
        if method != "__call__" or keywords:
            raise _no_rule(f"{name}.{method}" if method != "__call__" else f"{name} with {', '.join(keywords)}=")
        if name == "matmul":
            return _matmul(*inputs)
        if name in elements.DISCRETE:
            return ufunc(*(x.value if isinstance(x, Traced) else x for x in inputs))
        function = elements.FUNCTIONS.get(name)
        if function is None:
            raise _no_rule(name)
        return _call(map, function, *inputs)

    def __array_function__(self, function, _, args, keywords):
        return call_traced(function.__name__, args, keywords)


def _no_rule(name):
    known = ", ".join(sorted(_FUNCTIONS))
    return TypeError(
        f"kjit.numpy.grad: {name} has no derivative over whole arrays; operators, elementwise functions and {known} have one"
    )


def call_traced(name, args, keywords):
    """Calls the function of NumPy or kjit.numpy with this name for arguments that include traced
    values."""
    rule = _FUNCTIONS.get(name)
    if rule is not None:
        return rule(*args, **keywords)
    name = elements.OTHER_NAMES.get(name, name)
    ufunc = getattr(numpy, name, None)
    if isinstance(ufunc, numpy.ufunc):
        return ufunc(*args, **keywords)
    raise _no_rule(name)


def _call(algorithm, *operands, **keywords):
    given = [x.value if isinstance(x, Traced) else x for x in operands]
    result, back = pullback(algorithm, *given, **keywords)
    return Traced(result, operands, back)


# ---- rules ----

_REDUCED = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "logaddexp": "logaddexp"}


def _reduce(operator, x, axis=None, keepdims=False):
    if isinstance(axis, list):
        axis = tuple(axis)
    result = _call(_folds.reduce, x, operator, axis=axis)
    if not keepdims:
        return result
    axes = range(x.ndim) if axis is None else {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    return _reshape(result, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def _reducing(operator):
    def rule(x, axis=None, *, keepdims=False):
        return _reduce(operator, x, axis, keepdims)

    return rule


def _variance(x, axis=None, *, keepdims=False):
    d = x - _reduce("mean", x, axis, True)
    return _reduce("mean", d * d, axis, keepdims)


def _scan(x, axis=None, **keywords):
    if axis is None and x.ndim != 1:
        raise TypeError("kjit.numpy.grad: cumsum of an array with several axes needs axis=")
    if keywords:
        raise _no_rule(f"cumsum with {', '.join(keywords)}=")
    return _call(_folds.scan, x, "add", axis=-1 if axis is None else axis)


def _sort(x, axis=-1, **keywords):
    if keywords.keys() - {"descending"} or axis is None:
        raise _no_rule("sort with other arguments than axis and descending")
    return _call(_orders.sort, x, axis=axis, **keywords)


def _matmul(a, b):
    return _call(_products.matmul, a, b)


def _dot(a, b):
    if min(len(a.shape), len(b.shape)) == 0:
        return a * b
    if len(b.shape) > 2:
        raise _no_rule("dot of an array with more than 2 axes")
    return _matmul(a, b)


def _einsum(expression, *operands):
    return _call(_products.einsum, expression, *operands)


def _where(condition, a, b):
    condition = condition.value if isinstance(condition, Traced) else condition
    return _call(map, elements.where, condition, a, b)


def _by(x, value, back):
    return Traced(value, (x,), lambda g: (back(g),))


def _reshape(x, shape, *more):
    shape = (shape, *more) if isinstance(shape, int) else tuple(shape)
    return _by(x, _as_array(x.value).reshape(shape), lambda g: _as_array(g).reshape(x.shape))


def _as_array(x):
    return x if isinstance(x, Array) else numpy.asarray(x)


def _ravel(x):
    return _reshape(x, (x.size,))


def _permuted(x, axes):
    from . import permute_dims

    return permute_dims(x, tuple(axes)) if isinstance(x, Array) else numpy.transpose(x, axes)


def _transpose(x, axes=None):
    axes = tuple(range(x.ndim))[::-1] if axes is None else tuple(a % x.ndim for a in axes)
    return _by(x, _permuted(x.value, axes), lambda g: _permuted(_as_array(g), numpy.argsort(axes)))


def _element(x, key):
    """Indexes a traced array with integers and slices, which select each element at most once."""
    for part in key if isinstance(key, tuple) else (key,):
        if not (part is Ellipsis or part is None or isinstance(part, (slice, int))):
            raise TypeError(f"kjit.numpy.grad: x[{type(part).__name__}] has no derivative; indices must be numbers or slices")

    def back(g):
        made = _zeros(x)
        made[key] = g
        return made

    return _by(x, x.value[key], back)


_FUNCTIONS = {
    "sum": _reducing("add"), "mean": _reducing("mean"), "prod": _reducing("mul"),
    "max": _reducing("max"), "amax": _reducing("max"), "min": _reducing("min"), "amin": _reducing("min"),
    "var": _variance, "cumsum": _scan, "cumulative_sum": _scan, "sort": _sort, "matmul": _matmul, "dot": _dot, "einsum": _einsum,
    "where": _where, "reshape": _reshape, "ravel": _ravel, "transpose": _transpose, "permute_dims": _transpose,
    "matrix_transpose": _transpose,
}  # fmt: skip

for _name in ("sum", "mean", "prod", "max", "min", "var", "cumsum", "dot", "reshape", "ravel", "transpose"):
    setattr(Traced, _name, _FUNCTIONS[_name])


# ---- backward pass ----


def _zeros(x):
    return zeros_as(x.value, x.shape, element_name(x.value))


def _sum(a, b):
    return map(elements.FUNCTIONS["add"], a, b)


def _go_back(result):
    """Returns the derivatives of the result by all values that it was computed from, by the number
    of the value."""
    one = numpy.float32(1) if element_name(result.value) == "f32" else 1.0
    found, waiting = {result.number: one}, {result.number: result}
    while waiting:
        number = max(waiting)
        node = waiting.pop(number)
        if node.back is None:
            continue
        by = node.back(found.pop(number))
        for x, g in zip(node.parents, by[len(by) - len(node.parents) :]):
            if not isinstance(x, Traced) or g is None:
                continue
            found[x.number] = _sum(found[x.number], g) if x.number in found else g
            waiting[x.number] = x
    return found


def _chosen(numbers, args, name):
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(args):
            raise TypeError(f"{name}: there is no argument {number!r}; the arguments are 0 to {len(args) - 1}")
    chosen = tuple(sorted(set(numbers))) if numbers else tuple(i for i, x in enumerate(args) if holds_float(x))
    if any(isinstance(x, Traced) for x in args):
        raise TypeError(f"{name}: the derivative of a derivative over whole arrays is not supported")
    if not chosen:
        raise TypeError(f"{name}: no argument holds floats")
    return chosen


def value_and_grad(function, *numbers):
    """Returns a function that computes (value, derivative by each chosen argument) of a program
    over whole arrays.

        value, dx = kjit.numpy.value_and_grad(lambda x: knp.sum(knp.exp(-x * x)))(x)

    The program uses operators and functions of kjit.numpy or NumPy, and returns one number.
    numbers: the positions of the chosen arguments; without them all arguments that hold floats are
    chosen. Each derivative has the shape of its argument.

    For functions of one element, or with loops over elements, use kjit.value_and_grad. The returned
    function raises TypeError for an operation without a derivative, and if the result is not one
    number.
    """

    @functools.wraps(function)
    def derivative(*args):
        name = "kjit.numpy.grad"
        chosen = _chosen(numbers, args, name)
        traced = [Traced(_as_array(x)) if i in chosen else x for i, x in enumerate(args)]
        result = function(*traced)
        if not isinstance(result, Traced):
            raise TypeError(f"{name}: the result of the function does not depend on the chosen arguments")
        if result.shape != ():
            raise TypeError(f"{name}: the function returns an array of shape {result.shape}, not one number")
        found = _go_back(result)
        by = (found.get(traced[i].number) for i in chosen)
        return (result.value, *(_zeros(traced[i]) if g is None else g for i, g in zip(chosen, by)))

    return derivative


def grad(function, *numbers):
    """Returns a function that computes the derivatives of a program over whole arrays: one
    derivative, or a tuple for several chosen arguments. See kjit.numpy.value_and_grad."""
    both = value_and_grad(function, *numbers)

    @functools.wraps(function)
    def derivative(*args):
        _, *found = both(*args)
        return found[0] if len(found) == 1 else tuple(found)

    return derivative
