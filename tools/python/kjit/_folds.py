"""Reductions, scans, segments, keys, updates, searches and histograms, with functions of Python for operators."""

from ._algorithms import (
    EXCLUSIVE,
    RIGHT,
    Plain,
    Plan,
    axes_of,
    equal_of,
    less_of,
    listed,
    one,
    operator_of,
    perform,
    perhaps,
)


def counted(outcome, out):
    """The results of an algorithm whose last one says how much of them counts: cut to that, which waits for the number, unless
    the caller has given the arrays."""
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    *results, count = outcome
    number = int(count.to_host() if hasattr(count, "to_host") else count)
    cut = tuple(result[:number] for result in results)
    return cut[0] if len(cut) == 1 else cut


def reduce(x, operator="add", *, axis=None, initial=None, out=None, commutes=False, **options):
    """operator over all elements of x, or along axes: an array without these axes, of NumPy for its arrays and on the
    device for kjit's and others'.

    operator: an associative function of two values, or a name: "add", "mul", "min", "max", "and", "or", "xor", "logaddexp",
    "mean", "var", "std", "any", "all", "argmin", "argmax", "count_nonzero" and so on (docs/algorithms.md). commutes: f(a, b) is
    f(b, a), which is faster. axis: an integer or a tuple of them; None: all. initial: a value in front of all elements, for
    elements of a dtype with fields a record of the same dtype, of NumPy or an array without axes. out: an array of the result's shape, or with extents of 1 for the axes.

    options, which every algorithm has: `stream`, where the work is queued (default: where the arrays' library goes on, else the
    device's default stream); `device`, "cpu", "cuda:1" (default: where the arrays are); `accumulator`, the type that is computed
    in (default: wide enough, as NumPy); `plan=True`: nothing is run, and a `kjit.Plan` is the result.

    ArgumentError: axes or shapes that do not fit, no elements and neither an initial value nor an identity. TypingError: the
    operator's result. UnknownNameError: no such operator."""
    return one(
        perform("reduce", 1, (x, Plain(operator_of(operator, commutes))), listed(out), axes=axes_of(axis), initial=initial, options=options)
    )


def reduce_several(x, operators, *, axis=None, out=None, **options):
    """Several operators in one pass over x: a tuple of what `kjit.reduce` gives for each. out: a tuple of arrays. What is
    combined takes at most 128 bytes together. options and errors: see `kjit.reduce`."""
    found = tuple(operator_of(each) for each in operators)
    return perform("reduce_several", len(found), (x, Plain(found)), out, together=True, axes=axes_of(axis), options=options)


def scan(x, operator="add", *, axis=None, exclusive=False, initial=None, out=None, commutes=False, **options):
    """operator over the elements up to each one, along one axis, by default the last; exclusive: over those before it. The
    result has the shape of x, and `out` may be x itself. options and errors: see `kjit.reduce`."""
    flags = EXCLUSIVE if exclusive else 0
    arguments = x, Plain(operator_of(operator, commutes))
    return one(perform("scan", 1, arguments, listed(out), axes=axes_of(axis), flags=flags, initial=initial, options=options))


# ---- segments and keys ----


def reduce_segments(x, offsets, operator="add", *, initial=None, out=None, commutes=False, **options):
    """operator over each segment of x, an array of one dimension: segment i has the elements offsets[i] up to
    offsets[i + 1] - 1, so that there is one integer more than there are segments. Empty segments get `initial`, else the
    operator's identity. KernelError: offsets that descend or lead out of x. commutes and options: see `kjit.reduce`."""
    arguments = x, offsets, Plain(operator_of(operator, commutes))
    return one(perform("reduce_segments", 1, arguments, listed(out), initial=initial, options=options))


def scan_segments(x, offsets, operator="add", *, exclusive=False, initial=None, out=None, commutes=False, **options):
    """A scan that starts anew in each segment of x, see `kjit.reduce_segments`; exclusive: see `kjit.scan`. Elements of `out` in no segment stay as they
    were; without `out` they are undefined. options and errors: see there."""
    arguments = x, offsets, Plain(operator_of(operator, commutes))
    flags = EXCLUSIVE if exclusive else 0
    return one(perform("scan_segments", 1, arguments, listed(out), flags=flags, initial=initial, options=options))


def reduce_by_key(keys, x, operator="add", equal=None, *, initial=None, out=None, commutes=False, **options):
    """(keys, results): of each run of elements whose neighbouring keys are equal, by `equal(a, b)` or ==, the key of the first
    one and operator over the elements of x. Both have one dimension and as many elements. It waits for the number of runs,
    except with out=(keys, results, count) of n, n and one element, which are the result then. options and errors: see
    `kjit.reduce`."""
    arguments = keys, x, Plain(operator_of(operator, commutes)), Plain(equal_of(equal))
    return counted(perform("reduce_by_key", 3, arguments, out, initial=initial, options=options), out)


def scan_by_key(
    keys, x, operator="add", equal=None, *, exclusive=False, initial=None, out=None, commutes=False, **options
):
    """A scan that starts anew with each run of equal keys, see `kjit.reduce_by_key`; exclusive: see `kjit.scan`; the result has the shape of x, and `out` may
    be x itself. options and errors: see `kjit.reduce`."""
    arguments = keys, x, Plain(operator_of(operator, commutes)), Plain(equal_of(equal))
    flags = EXCLUSIVE if exclusive else 0
    return one(perform("scan_by_key", 1, arguments, listed(out), flags=flags, initial=initial, options=options))


# ---- updates, search, histograms ----


def update_at(x, places, values, operator="add", *, commutes=True, **options):
    """x[places[i]] becomes operator of it and values[i], for each i, as NumPy's `ufunc.at`; returns x. places: integers of any
    shape, along the first axis of x, negative ones from its end; values: of the shape of places and of a row of x, or what
    broadcasts to it. The operator has to commute. On a GPU floats are added in any order.

    ArgumentError: shapes, an operator that does not commute. KernelError: a place outside of x. options: see `kjit.reduce`."""
    if x is None or places is None or values is None:
        raise TypeError("update_at: x, places and values are arrays or numbers, not None")
    outcome = perform("update_at", 1, (places, values, Plain(operator_of(operator, commutes))), (x,), options=options)
    return outcome if isinstance(outcome, Plan) else x


def search_sorted(sorted, values, less=None, *, right=False, out=None, **options):
    """For each of `values` how many elements of `sorted`, an array of one dimension, come before it; right: come before it or
    equal it, as `numpy.searchsorted`. Integers of the shape of values. less(a, b): the order that `sorted` has. options: see
    `kjit.reduce`. TypingError: elements without an order."""
    arguments = sorted, values, Plain(less_of(less))
    return one(perform("search_sorted", 1, arguments, listed(out), flags=RIGHT if right else 0, options=options))


def bincount(x, bins, weights=None, *, out=None, **options):
    """How many elements of x, integers of any shape, are i, for i from 0 to bins - 1; or the sum of their weights, which have the
    shape of x. KernelError: an element that is no bin. options: see `kjit.reduce`."""
    return one(perform("bincount", 1, (x, Plain(bins), perhaps(weights)), listed(out), options=options))


def histogram(x, bins, low=None, high=None, weights=None, *, out=None, **options):
    """How many elements of x are in each bin, or the sum of their weights, as `numpy.histogram`. bins: how many there are, of
    equal width from `low` to `high`; or an array of the ascending edges, one more than bins. A bin has its lower edge, the last
    one both; elements outside, and NaN, are not counted. options: see `kjit.reduce`. ArgumentError: edges, shapes."""
    if low is None and high is None:
        if getattr(bins, "shape", None) == () or isinstance(bins, (int, float)):
            raise TypeError(f"a histogram of {bins} bins takes low and high; without them bins is an array of edges")
        return one(perform("histogram_edges", 1, (x, bins, perhaps(weights)), listed(out), options=options))
    if low is None or high is None:
        raise TypeError("histogram takes a number of bins with low and high, or an array of edges")
    arguments = x, Plain(bins), Plain(low), Plain(high), perhaps(weights)
    return one(perform("histogram", 1, arguments, listed(out), options=options))


