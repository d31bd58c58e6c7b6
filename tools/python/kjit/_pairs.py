"""Reductions over pairs of rows, and their derivatives."""

from operator import index

from . import _kjit, dtypes
from ._algorithms import Computed, Plain, Plan, Several, map, operator_of, perform, perhaps
from ._derivatives import is_array
from ._folds import reduce
from ._traced import recorded



def _rows(y):
    return Several(y if isinstance(y, tuple) else (y,))


def _further(arguments):
    if not isinstance(arguments, (tuple, list)):
        raise TypeError(f"arguments must be a tuple of arrays and numbers, (x, 0.5), not {type(arguments).__name__}")
    return tuple(arguments)


def _shared(devices, options):
    """Returns the devices that share a call, for `perform`."""
    if devices is None:
        return {}
    if options.get("device") is not None:
        raise TypeError("device and devices are both given; pass one of them")
    if isinstance(devices, (str, _kjit.Device)) or not hasattr(devices, "__iter__"):
        raise TypeError(f"devices must be a tuple of devices, ('cuda:0', 'cuda:1'), not {devices!r}")
    return {"devices": tuple(devices)}


def _of_rows(function, y, arguments):
    """Returns the function of `pairs` as a func. It takes a row of x, a row of each y, two indices and further
    arguments."""
    further = _further(arguments)
    return Computed(function, None, further, 3 + (len(y) if isinstance(y, tuple) else 1) + len(further))


@recorded
def pairs(
    function, x, y, operator="add", *, arguments=(), out=None, chunk=0, devices=None, commutes=False, **options
):
    """Combines `function(x[i], y[j], i, j, *arguments)` over all j with an operator and returns an array with an
    element for each row of x. The matrix of all pairs is never stored.

    x and y have one axis, whose elements the function receives as numbers, or two axes, whose rows it receives as
    arrays. y can be a tuple of up to 8 arrays; the function then receives a row of each. operator: see `kjit.reduce`.
    arguments are further arrays and numbers.

    chunk is the number of rows of y to read at a time; 0 means all rows. With a chunk, y can be in host memory and
    larger than the device memory. devices is a tuple such as ("cuda:0", "cuda:1"). The devices have the same kind and
    share the rows of x. The arrays can be in any memory, and the call returns when the work is done.

        kjit.pairs(lambda x, y, i, j, s: kjit.exp(-s * (x - y) ** 2), x, y, arguments=(0.5,))

    If the function returns a tuple of up to 16 values, each value has its own result: the call returns a tuple of
    arrays, `out` is a tuple with the same length, and a single pass computes all results.

    options: see `kjit.reduce`. Raises ArgumentError for shapes that do not match, and if y has no rows and the operator
    has no identity; TypingError if the function returns an unsuitable type; UnsupportedError for rows of more than 4096
    bytes.
    """
    inner = _of_rows(function, y, arguments)
    given = inner, x, _rows(y), Plain(operator_of(operator, commutes))
    out = out if out is None or isinstance(out, tuple) else (out,)
    shared = _shared(devices, options)
    outcome = perform("pairs_several", None, given, out, together=True, chunk=chunk, options=options, **shared)
    return outcome[0] if not isinstance(outcome, Plan) and len(outcome) == 1 else outcome


# ---- derivatives ----

_VALUE = 0x7FFFFFFF  # KJIT_PAIRS_VALUE
# operator -> the operator of `kjit.pairs` whose result the derivative needs, or None
_PAIR_RESULTS = {"add": None, "mean": None, "logaddexp": "logaddexp", "max": "argmax", "min": "argmin"}


_FLOATS = ("float16", "bfloat16", "float32", "float64", "f16", "bf16", "f32", "f64")


def _is_float(x):
    """Returns whether derivatives are computed for an argument by default: it holds floats."""
    if isinstance(x, (int, float)):
        return isinstance(x, float)
    return str(getattr(x, "dtype", "")) in _FLOATS


def _narrow(x):
    """Returns "f16" or "bf16" for an array of such numbers, and None for anything else."""
    name = dtypes.name_of(x.dtype) if is_array(x) else None
    return name if name in ("f16", "bf16") else None


def _in_f32(x, options):
    """Returns an array of f16 or bf16 as an array of f32, and any other operand unchanged."""
    return map(_same, x, dtype="f32", **_of_stream(options)) if _narrow(x) else x


def _as_narrow(x, like, options):
    """Returns x in the type of `like` if this type is f16 or bf16, and otherwise x itself."""
    kind = _narrow(like)
    return map(_same, x, dtype=kind, **_of_stream(options)) if kind and _narrow(x) != kind else x


def _same(x):
    return x


def _times(x, factor):
    return x * factor


def chosen(by, rows, further):
    """Returns the indices of the parameters to differentiate with respect to; by default all parameters that hold floats."""
    if by is None:
        given = [*enumerate(rows), *enumerate(further, len(rows) + 2)]
        return tuple(i for i, x in given if _is_float(x))
    numbers = tuple(by) if isinstance(by, (tuple, list)) else (by,)
    if not numbers or not all(hasattr(i, "__index__") for i in numbers):
        raise TypeError(f"by must be a tuple of parameter numbers, such as (0, 1), not {by!r}")
    return tuple(index(i) for i in numbers)


def pairs_gradient(
    function,
    x,
    y,
    operator="add",
    *,
    cotangents,
    by=None,
    result=None,
    arguments=(),
    value=False,
    chunk=0,
    devices=None,
    **options,
):
    """Returns the derivatives of `kjit.pairs` as a tuple of arrays, without storing the matrix of all pairs. cotangents
    has an element for each row of x: the derivative of some number with respect to the result of that row. The results
    are derivatives of this number.

    by holds parameter indices of the function in ascending order. 0 is the row of x, and 1 is the row of y, or of the
    first operand if y is a tuple. The first of `arguments` follows the two indices i and j. By default it holds all
    parameters with floats. A derivative has its operand's shape. An array in `arguments` can have up to 64 elements.

    operator is "add", "mean", "logaddexp", "max" or "min". For max and min, the derivative belongs to the first of
    equal values. result is the result of `kjit.pairs` for "logaddexp", or the result of "argmax" or "argmin" for
    "max" and "min". If result is None, the function computes it again.

        gx, gy = kjit.pairs_gradient(lambda x, y, i, j: kjit.exp(-((x - y) ** 2)), x, y, cotangents=np.ones(len(x)))

    If value is true, the tuple begins with the result of `kjit.pairs`. For "add" and "mean" this result takes no pass
    of its own if derivatives with respect to x or an argument are computed.

    chunk and devices: see `kjit.pairs`; derivatives with respect to y also need no more than `chunk` rows of y on a
    device. options: see `kjit.reduce`. The function gets numbers of f16 and bf16 as f32; their derivatives are summed
    in f32 and rounded at the end. Raises ArgumentError for shapes that do not match, and TypingError for another
    operator, for elements other than floats, and for a function without a derivative.
    """
    rows, further = (x, *y) if isinstance(y, tuple) else (x, y), _further(arguments)
    numbers = chosen(by, rows, further)
    if operator not in _PAIR_RESULTS:
        known = ", ".join(_PAIR_RESULTS)
        raise TypeError(f"reductions over pairs have derivatives for the operators {known}, not for {operator!r}")
    if options.get("plan"):
        raise TypeError("kjit.pairs_gradient does not support plan=True, because it makes several calls")
    shared = {"chunk": chunk, "devices": devices, **options}
    name = _PAIR_RESULTS[operator]

    def reduced(by):
        """Returns the result of kjit.pairs for f32 instead of f16 and bf16, because the derivative computes with f32."""
        wide_rows, wide_arguments = (tuple(_in_f32(a, options) for a in given) for given in (rows, further))
        others = wide_rows[1:] if isinstance(y, tuple) else wide_rows[1]
        return pairs(function, wide_rows[0], others, by, arguments=wide_arguments, **shared)

    if name is None:
        result = None
    elif result is None:
        result = reduced(name)
    inner = _of_rows(function, y, arguments)
    if value and name:
        values = result if name == operator else reduced(operator)
    elif value and all(1 <= number < len(rows) for number in numbers):
        values = reduced(operator)
    else:
        values = None
        numbers = (*numbers, _VALUE) if value else numbers
    scale, given_cotangents = None, cotangents
    if operator == "mean":
        operator, scale = "add", 1 / rows[1].shape[0]
        cotangents = map(_times, _in_f32(cotangents, options), scale, **_of_stream(options))
    given = Plain(numbers), cotangents, perhaps(result), inner, x, _rows(y), Plain(operator)
    own = {"chunk": chunk, **_shared(devices, options)}
    found = perform("pairs_gradient", None, given, None, together=True, options=options, **own)
    first = len(rows) + 2
    found = tuple(
        reduce(g, "add", axis=0, **_of_stream(options)) if first <= number < _VALUE else g
        for number, g in zip(numbers, found)
    )
    if scale is not None and numbers[-1] == _VALUE:
        found = (*found[:-1], map(_times, found[-1], scale, **_of_stream(options)))
    all_given = (*rows, None, None, *further)
    types = [given_cotangents if number == _VALUE else all_given[number] for number in numbers]
    found = tuple(_as_narrow(g, x, options) for g, x in zip(found, types, strict=True))
    if not value:
        return found
    return (_as_narrow(values, given_cotangents, options), *found) if values is not None else (found[-1], *found[:-1])


def _of_stream(options):
    """Returns the options that select device and stream."""
    return {key: options[key] for key in ("device", "stream") if key in options}


def pairs_smallest(function, x, y, k, *, arguments=(), out=None, chunk=0, devices=None, **options):
    """Returns (values, indices): for each i the k smallest values of `function(x[i], y[j], i, j, *arguments)` in
    ascending order, and their j. Both have the shape (rows of x, k). k is 1 to 64. out must be a tuple of two arrays. Other
    parameters: see `kjit.pairs`."""
    given = _of_rows(function, y, arguments), x, _rows(y), Plain(k)
    return perform("pairs_smallest", 2, given, out, chunk=chunk, options=options, **_shared(devices, options))
