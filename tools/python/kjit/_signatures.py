"""Signatures of functions made by kjit.njit, such as `float64(float64[:])`. Arguments and results
are converted to their types, as in Numba."""

from .cuda import types

# The costs of conversions. Each cost is a tuple that counts three kinds of conversions: conversions that can lose
# values, other conversions to another kind of type, and conversions to a wider type of the same kind. Costs are
# compared as tuples.
_EXACT, _WIDER, _SAFE, _UNSAFE = (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)


def is_signature(thing):
    """Returns whether an argument of njit is a signature or a list of signatures, and not a
    function."""
    return isinstance(thing, (str, tuple, list, types.Signature)) or hasattr(types.of_numba(thing), "return_type")


def parse(thing):
    """Returns the list of signatures in one argument of njit."""
    listed = thing if isinstance(thing, list) else [thing]
    return [types.parse(one) for one in listed]


def choose(signatures, args, name):
    """Returns (the signature that fits the arguments best, the arguments converted to its types).
    Raises TypeError if no signature fits, or if several fit equally well, and OverflowError for an
    integer that does not fit into 64 bits."""
    fitting = []
    for signature in signatures:
        if len(signature.args) == len(args):
            fits = [_fit(kind, value) for kind, value in zip(signature.args, args)]
            if None not in fits:
                fitting.append((_sum(fits), signature, [value for _, value in fits]))
    listed = ", ".join(map(str, signatures))
    if not fitting:
        found = ", ".join(map(_describe, args))
        raise TypeError(f"{name}(): No matching definition for argument type(s) {found}: {listed}")
    least = min(distance for distance, *_ in fitting)
    best = [row for row in fitting if row[0] == least]
    if len(best) > 1:
        raise TypeError(f"{name}(): Ambiguous overloading for {', '.join(map(_describe, args))}: {listed}")
    _, signature, converted = best[0]
    for kind, value in zip(signature.args, args):
        _check_range(kind, value)
    return signature, converted


def _check_range(kind, value):
    """Raises OverflowError if a Python integer cannot be passed as an integer of 64 bits. Bits above the width of a
    narrower type are dropped, as in Numba."""
    if isinstance(kind, types.BaseTuple):
        for item_kind, item in zip(kind, value):
            _check_range(item_kind, item)
        return
    if type(value) is not int or not isinstance(kind, types.Number):
        return
    wanted = types.as_dtype(kind)
    if wanted.kind == "u" and value < 0:
        raise OverflowError(f"{value} is negative, but the signature has {wanted}")
    limits = {"i": (-(2**63), 2**63 - 1), "u": (0, 2**64 - 1)}.get(wanted.kind)
    if limits and not limits[0] <= value <= limits[1]:
        raise OverflowError(f"{value} does not fit into {'u' * (wanted.kind == 'u')}int64, but the signature has {wanted}")


def _describe(value):
    try:
        return str(types.typeof(value))
    except (TypeError, NotImplementedError):
        return type(value).__name__


def _sum(fits):
    return tuple(map(sum, zip(*(distance for distance, _ in fits)))) if fits else _EXACT


def _fit(kind, value):
    """Returns (the cost of the conversion, the value converted to the type), or None if the value
    cannot be converted."""
    import numpy

    if isinstance(kind, types.Array):
        return _fit_array(kind, value)
    if isinstance(kind, types.BaseTuple):
        if not isinstance(value, tuple) or len(value) != len(kind):
            return None
        fits = [_fit(k, v) for k, v in zip(kind, value)]
        if None in fits:
            return None
        items = [item for _, item in fits]
        return _sum(fits), type(value)._make(items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(kind, types.Record):
        return (_EXACT, value) if getattr(value, "dtype", None) == kind.dtype else None
    if kind is types.none:
        return (_EXACT, None) if value is None else None
    if isinstance(kind, (types.Number, types.Boolean)) and isinstance(
        value, (bool, int, float, complex, numpy.number, numpy.bool_)
    ):
        return _fit_number(types.as_dtype(kind), value)
    return None


def _fit_array(kind, value):
    if not hasattr(value, "dtype") or not hasattr(value, "ndim") or value.ndim != kind.ndim:
        return None
    if types.from_dtype(value.dtype) != kind.dtype:
        return None
    layout = types.typeof(value).layout
    fits = kind.layout == "A" or layout == kind.layout or value.ndim == 1 and layout != "A"
    return (_EXACT, value) if fits else None


def _fit_number(wanted, value):
    import numpy

    is_integer = type(value) is int
    # Numba takes every integer of Python for an int64; _check_range rejects integers that do not
    # fit.
    found = numpy.dtype(numpy.int64) if is_integer else numpy.asarray(value).dtype
    if found.kind == "c" and wanted.kind != "c":
        return None
    if is_integer and wanted.kind in "iu":
        value = numpy.uint64(value % 2**64)
    made = numpy.asarray(value).astype(wanted)[()]
    if found == wanted:
        return _EXACT, made
    if numpy.can_cast(found, wanted, "safe"):
        return (_WIDER if found.kind == wanted.kind else _SAFE), made
    return (_SAFE if found.kind in "iu" and wanted == numpy.float64 else _UNSAFE), made


def convert_result(kind, value):
    """Returns the result of a function converted to the result type of its signature. Raises TypeError if Numba has no such
    conversion. Types that Python's values do not have, such as those of optional results, are not checked."""
    import numpy

    if isinstance(kind, types.BaseTuple):
        if not isinstance(value, tuple) or len(value) != len(kind):
            raise _no_conversion(kind, value)
        items = [convert_result(k, v) for k, v in zip(kind, value)]
        return type(value)._make(items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(kind, types.Array):
        if _fit_array(kind, value) is None:
            raise _no_conversion(kind, value)
    elif isinstance(kind, (types.Number, types.Boolean)):
        wanted = types.as_dtype(kind)
        if not isinstance(value, (bool, int, float, complex, numpy.number, numpy.bool_)) or isinstance(value, complex) and wanted.kind not in "cb":
            raise _no_conversion(kind, value)
        return _converted(value, wanted)
    elif kind is types.none and value is not None:
        raise _no_conversion(kind, value)
    return value


def _converted(value, wanted):
    """Converts a number to a NumPy type, and returns it as a Python number. Integers wrap, as in
    compiled code."""
    import numpy

    with numpy.errstate(all="ignore"):
        return numpy.asarray(value).astype(wanted).item()


def _no_conversion(kind, value):
    return TypeError(f"No conversion from {_describe(value)} to {kind} for the result")


def result_text(signature):
    """Returns the kernel IR's name of the result type, or None if it is neither a number nor a tuple of numbers."""
    return _text(signature.return_type)


def _text(kind):
    if isinstance(kind, types.BaseTuple):
        items = [_text(item) for item in kind]
        return f"({', '.join(items)}{',' * (len(items) == 1)})" if items and None not in items else None
    return kind.text if isinstance(kind, (types.Number, types.Boolean)) else None


def parameter_texts(signature):
    """Returns for each parameter of a signature its number type in kernel IR, or None if the parameter is not a
    number."""
    return tuple(k.text if isinstance(k, (types.Number, types.Boolean)) else None for k in signature.args)
