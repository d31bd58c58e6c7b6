"""Reductions over pairs of rows, and their derivatives."""

from operator import index

from . import _kjit
from ._algorithms import Computed, Plain, Plan, Several, map, operator_of, perform, perhaps
from ._folds import reduce



def _rows(y):
    return Several(y if isinstance(y, tuple) else (y,))


def _further(arguments):
    if not isinstance(arguments, (tuple, list)):
        raise TypeError(f"arguments is a tuple of arrays and numbers, (x, 0.5), not {type(arguments).__name__}")
    return tuple(arguments)


def _shared(devices, options):
    """The devices that share a call, for `perform`."""
    if devices is None:
        return {}
    if options.get("device") is not None:
        raise TypeError("a call is on a device or on devices, and both are given")
    if isinstance(devices, (str, _kjit.Device)) or not hasattr(devices, "__iter__"):
        raise TypeError(f"devices is a tuple of devices, ('cuda:0', 'cuda:1'), not {devices!r}")
    return {"devices": tuple(devices)}


def _of_rows(function, y, arguments):
    """The function of pairs: it is called with a row of x, a row of each y, two positions and further arguments."""
    further = _further(arguments)
    return Computed(function, None, further, 3 + (len(y) if isinstance(y, tuple) else 1) + len(further))


def pairs(
    function, x, y, operator="add", *, arguments=(), out=None, chunk=0, devices=None, commutes=False, **options
):
    """For each i operator over all j of `function(x[i], y[j], i, j, *arguments)`, without the matrix of all pairs: an array of as
    many elements as x has rows. x and y: arrays of one axis, whose elements the function gets as numbers, or of two, whose rows it
    gets as arrays; y may be a tuple of up to 8 of them, of which the function gets a row each. operator: see `kjit.reduce`.
    arguments: further arrays and numbers. chunk: so many rows of y are read at a time, which brings them from the host's memory to
    a device that need not hold them all; 0: all. devices: several of one kind that share the rows of x, ("cuda:0", "cuda:1");
    arrays may lie anywhere, and the call returns when it is done.

        kjit.pairs(lambda x, y, i, j, s: kjit.exp(-s * (x - y) ** 2), x, y, arguments=(0.5,))

    A function that returns a tuple of up to 16 values has a result for each: the call returns a tuple of arrays, `out` is a tuple of
    that length, and one pass over the pairs computes all of them.

    options: see `kjit.reduce`. ArgumentError: shapes, no rows of y and no identity. TypingError: what the function returns.
    UnsupportedError: rows of more than 4096 bytes."""
    inner = _of_rows(function, y, arguments)
    given = inner, x, _rows(y), Plain(operator_of(operator, commutes))
    out = out if out is None or isinstance(out, tuple) else (out,)
    shared = _shared(devices, options)
    outcome = perform("pairs", None, given, out, together=True, chunk=chunk, options=options, **shared)
    return outcome[0] if not isinstance(outcome, Plan) and len(outcome) == 1 else outcome


# ---- derivatives ----

# What `result` is of: by operator, the reduction that the derivative needs.
_PAIR_RESULTS = {"add": None, "mean": None, "logaddexp": "logaddexp", "max": "argmax", "min": "argmin"}


def _is_float(x):
    """Whether derivatives are by an argument unless `by` says so: it holds floats."""
    if isinstance(x, (int, float)):
        return isinstance(x, float)
    return str(getattr(x, "dtype", "")) in ("float32", "float64", "f32", "f64")


def _chosen(by, rows, further):
    """The numbers of the function's parameters: by default those that hold floats."""
    if by is None:
        given = [*enumerate(rows), *enumerate(further, len(rows) + 2)]
        return tuple(i for i, x in given if _is_float(x))
    numbers = tuple(by) if isinstance(by, (tuple, list)) else (by,)
    if not numbers or not all(hasattr(i, "__index__") for i in numbers):
        raise TypeError(f"by has numbers of parameters, (0, 1), not {by!r}")
    return tuple(index(i) for i in numbers)


def pairs_gradient(
    function, x, y, operator="add", *, cotangents, by=None, result=None, arguments=(), chunk=0, devices=None, **options
):
    """Derivatives of `kjit.pairs`, without the matrix of all pairs: a tuple of arrays. cotangents has an element for each row of x:
    the derivative of some number by the result of that row. The outcome is the derivatives of this number.

    by: numbers of the function's parameters, in ascending order: 0 is the row of x, 1 that of y or of the first operand in the tuple
    y, and the first of `arguments` comes after the two positions. A derivative has the shape of its operand. By default they are by
    all parameters that hold floats. An array of `arguments` may have up to 64 elements.

    operator: "add", "mean", "logaddexp", "max" or "min". Of equal values the first one has the derivative of an extreme. result: for
    "logaddexp" the result of `kjit.pairs`, for "max" and "min" that of "argmax" and "argmin"; None: it is computed again.

        gx, gy = kjit.pairs_gradient(lambda x, y, i, j: kjit.exp(-((x - y) ** 2)), x, y, cotangents=np.ones(len(x)))

    chunk, devices: as `kjit.pairs` has them; derivatives by y then need no more than `chunk` rows of y on a device, either. options:
    see `kjit.reduce`. ArgumentError: shapes. TypingError: another operator, elements other than f32 and f64, a function without a
    derivative."""
    rows, further = (x, *y) if isinstance(y, tuple) else (x, y), _further(arguments)
    numbers = _chosen(by, rows, further)
    if operator not in _PAIR_RESULTS:
        known = ", ".join(_PAIR_RESULTS)
        raise TypeError(f"reductions over pairs have derivatives for the operators {known}, not for {operator!r}")
    if options.get("plan"):
        raise TypeError("kjit.pairs_gradient consists of several calls, and has no plan")
    shared = {"chunk": chunk, "devices": devices, **options}
    name = _PAIR_RESULTS[operator]
    if name is None:
        result = None
    elif result is None:
        result = pairs(function, x, y, name, arguments=further, **shared)
    inner = _of_rows(function, y, arguments)
    operator, scale = ("add", 1 / rows[1].shape[0]) if operator == "mean" else (operator, None)
    given = Plain(numbers), cotangents, perhaps(result), inner, x, _rows(y), Plain(operator)
    own = {"chunk": chunk, **_shared(devices, options)}
    found = perform("pairs_gradient", None, given, None, together=True, options=options, **own)
    first = len(rows) + 2
    found = tuple(
        reduce(g, "add", axis=0, **_of_stream(options)) if number >= first else g for number, g in zip(numbers, found)
    )
    return found if scale is None else tuple(map(lambda g: g * scale, g, **_of_stream(options)) for g in found)


def _of_stream(options):
    """The options that say where a call runs."""
    return {key: options[key] for key in ("device", "stream") if key in options}


def pairs_smallest(function, x, y, k, *, arguments=(), out=None, chunk=0, devices=None, **options):
    """(values, places): for each i the k least of `function(x[i], y[j], i, j, *arguments)` in ascending order, and the j that they
    are of; both have the shape (rows of x, k). k: 1 to 64. out: a tuple of two arrays. The rest: see `kjit.pairs`."""
    given = _of_rows(function, y, arguments), x, _rows(y), Plain(k)
    return perform("pairs_smallest", 2, given, out, chunk=chunk, options=options, **_shared(devices, options))
