"""Reductions, scans, sorts and maps over whole arrays, with functions of Python for operators."""
import functools
import types

from . import _kjit, _state, dtypes
from ._functions import Function

_EXCLUSIVE, _DESCENDING = 1, 2


def _operator(thing, names=True):
    """What the extension takes: a name of kjit's, (module, name of the func), None."""
    if names and isinstance(thing, str):
        return thing
    if isinstance(thing, types.FunctionType):
        # Compiled once: the func goes with the function, which it is in a circle with.
        known = thing.__dict__.get("__kjit_func__")
        if known is None:
            known = thing.__kjit_func__ = Function(thing)
        thing = known
    if not isinstance(thing, Function):
        raise TypeError(f"an operator is a function of Python{', a kjit.func or a name that kjit has' if names else ' or a kjit.func'}, not {type(thing).__name__}")
    return thing._loaded_module()


def _run(name, out, inputs, operator, axis=None, flags=0, initial=None):
    context, device = _state.context(), _state.device()
    axes = None if axis is None else axis if isinstance(axis, tuple) else (axis,)
    is_own = any(isinstance(x, _kjit.Array) for x in inputs)
    if not is_own:
        import numpy
        inputs = tuple(numpy.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs)
    run = functools.partial(_kjit.run_algorithm, context, name)
    if out is not None:
        run(out, inputs, operator, axes, flags, initial, device)
        return out
    element, shape = run(None, inputs, operator, axes, flags, initial, device)
    if is_own:
        place = next(x.device for x in inputs if isinstance(x, _kjit.Array))
        made = _kjit.empty(context, shape, element, place)
        run(made, inputs, operator, axes, flags, initial, device)
        return made
    made = numpy.empty(shape, dtypes._NUMPY[element])
    run(made, inputs, operator, axes, flags, initial, device)
    return made[()]


def reduce(x, operator="add", *, axis=None, initial=None, out=None):
    """operator over all elements of an array, or along axes. operator: an associative function of two values, or a name:
    "add", "mul", "min", "max" ... (docs/algorithms.md)."""
    return _run("reduce", out, (x,), _operator(operator), axis, 0, initial)


def scan(x, operator="add", *, axis=None, exclusive=False, initial=None, out=None):
    """operator over the elements up to each one, along one axis, by default the last; exclusive: over those before it."""
    return _run("scan", out, (x,), _operator(operator), axis, _EXCLUSIVE if exclusive else 0, initial)


def sort(x, less=None, *, axis=None, descending=False, out=None):
    """The elements in order, along one axis, by default the last. less(a, b): whether a comes before b."""
    return _run("sort", out, (x,), None if less is None else _operator(less, names=False), axis, _DESCENDING if descending else 0)


def argsort(x, less=None, *, axis=None, descending=False, out=None):
    """Where along the axis the elements are in their order."""
    return _run("argsort", out, (x,), None if less is None else _operator(less, names=False), axis, _DESCENDING if descending else 0)


def vectorize(function):
    """A function of elements as one of arrays, which broadcast: `vectorize(f)(x, 2.5, out=r)`."""
    made = function if isinstance(function, Function) else Function(function)

    @functools.wraps(made.py_func)
    def over_arrays(*operands, out=None):
        return _run("map", out, operands, _operator(made))
    return over_arrays
