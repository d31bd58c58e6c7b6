"""Chooses the signature that fits the arguments of a launch best, and converts the arguments to its
types. The choice is made once for each combination of argument types: the C extension keeps the
result of `conversions`."""

from .. import dtypes
from . import types

# The costs of conversions: (1, 0, 0) if values can be lost, (0, 1, 0) for another kind of number, and (0, 0, 1) for a wider type.
# Costs are compared as tuples.
_UNSAFE, _SAFE, _WIDER, _EXACT = (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)


def fit_one(kind, value):
    """Returns (cost, the value converted to the type), or None if the value cannot be converted."""
    import numpy

    if isinstance(kind, types.Array):
        dtype = getattr(value, "dtype", None)
        if not isinstance(dtype, numpy.dtype) and hasattr(value, "__cuda_array_interface__"):
            found = types.typeof(value)  # an array of another library
            lies_so = kind.layout in ("A", found.layout) or found.ndim == 1 and found.layout == "C"
            return (_EXACT, value) if lies_so and (found.ndim, found.dtype) == (kind.ndim, kind.dtype) else None
        if dtype is None:
            return None
        if value.ndim != kind.ndim or types.from_dtype(dtype).text != kind.dtype.text:
            return (_UNSAFE, value) if _same_bits(value, kind) else None
        if kind.layout != "A" and types.typeof(value).layout not in (
            kind.layout,
            "C" if value.ndim == 1 else kind.layout,
        ):
            return None
        return _EXACT, value
    if isinstance(kind, types.BaseTuple):
        fits = isinstance(value, tuple) and len(value) == len(kind) and [fit_one(k, v) for k, v in zip(kind, value)]
        if fits is False or None in fits:
            return None
        items = [item for _, item in fits]
        worst = tuple(map(sum, zip(*(bad for bad, _ in fits)))) if fits else _EXACT
        return worst, type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(kind, types.NumberClass):
        is_same = isinstance(value, (type, types.Type)) and types.typeof(value) == kind
        return (_EXACT, kind.given) if is_same else None
    if isinstance(kind, types.CPointer):
        return (_EXACT, numpy.uint64(value)) if isinstance(value, (int, numpy.integer)) else None
    if isinstance(kind, types.Record):
        return (_EXACT, value) if getattr(value, "dtype", None) == kind.dtype else None
    if not isinstance(value, (bool, int, float, complex, numpy.generic)):
        return None
    found, wanted = numpy.asarray(value).dtype, types.as_dtype(kind)
    if found == wanted:
        return _EXACT, numpy.asarray(value)[()] if wanted.kind in "mM" else wanted.type(value)
    if wanted.kind in "mM" or found.kind in "mM":
        return (_SAFE, numpy.asarray(value).astype(wanted)[()]) if numpy.can_cast(found, wanted, "same_kind") else None
    if numpy.can_cast(found, wanted, "safe"):
        return _WIDER if found.kind == wanted.kind else _SAFE, wanted.type(value)
    if found.kind == "c" and wanted.kind != "c" or found.kind == "f" and wanted.kind in "iu":
        return None
    return _UNSAFE, numpy.asarray(value).astype(wanted)[()]


def _same_bits(value, kind):
    """Returns whether value is an array of integers with the signature's rank and element size.
    Signed and unsigned integers are not distinguished. The kernel is then compiled for the
    argument's type."""
    found, wanted = value.dtype, types.as_dtype(kind.dtype)
    return value.ndim == kind.ndim and found.kind in "iu" and wanted.kind in "iu" and found.itemsize == wanted.itemsize


def fit(signatures, function, args):
    """Returns the arguments, converted to the types of the signature that fits best. Raises
    TypeError if no signature fits or several fit equally well."""
    fitting = []
    for signature in signatures:
        if len(signature.args) != len(args):
            continue
        fits = [fit_one(kind, a) for kind, a in zip(signature.args, args)]
        if None not in fits:
            worst = tuple(map(sum, zip(*(f[0] for f in fits)))) if fits else ()
            fitting.append((worst, signature, [f[1] for f in fits]))
    if not fitting:
        found = ", ".join(str(types.typeof(a)) for a in args)
        raise TypeError(f"No matching definition for argument type(s) {found}: {', '.join(map(str, signatures))}")
    least = min(worst for worst, *_ in fitting)
    best = [row for row in fitting if row[0] == least]
    if len(best) > 1:
        found = tuple(types.typeof(a) for a in args)
        listed = "\n".join(str(signature) for _, signature, _ in best)
        raise TypeError(f"Ambiguous overloading for {function} {found}:\n{listed}")
    return best[0][2]


def conversions(args, fitted):
    """Returns a tuple with an entry for each argument: the type name to which a number was
    converted, or None for an unchanged argument. The entry for a tuple is a tuple of such entries.
    """
    return tuple(map(_conversion, args, fitted))


def _conversion(value, fitted):
    if isinstance(value, tuple):
        return conversions(value, fitted)
    return None if value is fitted or not hasattr(fitted, "dtype") or isinstance(fitted, type) else dtypes.name_of(type(fitted))
