"""Reductions, scans, segments, keys, updates, searches and histograms, with Python functions for operators."""

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
    perform_with_omitted,
    perhaps,
)
from ._traced import recorded


def counted(outcome, out):
    """Truncates results to the element count, which the algorithm returns as its last result. Reading the count waits
    for the device. A plan, or arrays given by the caller, are returned unchanged."""
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    *results, count = outcome
    number = int(count.to_host() if hasattr(count, "to_host") else count)
    cut = tuple(result[:number] for result in results)
    return cut[0] if len(cut) == 1 else cut


@recorded
def reduce(x, operator="add", *, axis=None, initial=None, out=None, commutes=False, **options):
    """Combines all elements of x, or the elements along axes, with an operator. The result is an array without these
    axes: a NumPy array for NumPy arrays, otherwise an array on the device.

    operator is an associative function of two values, or a name: "add", "mul", "min", "max", "and", "or", "xor",
    "logaddexp", "mean", "var", "std", "any", "all", "argmin", "argmax", "count_nonzero" and others
    (docs/algorithms.md). commutes promises that f(a, b) equals f(b, a), which allows faster code. axis is an integer
    or a tuple of integers; None means all axes. initial is a value that is combined before all elements. For elements
    with fields it is a record with the same dtype, as a NumPy scalar or as an array of rank 0. out is an array with
    the result shape, or with extent 1 for the axes.

    Every algorithm has these options. `stream` is the stream for the work; by default it is the stream that the library
    of the arrays uses, or the default stream of the device. `device` is "cpu" or "cuda:1"; by default it is the arrays'
    device. `accumulator` is the computation type; the default is as wide as in NumPy. With `plan=True` nothing runs,
    and the result is a `kjit.Plan`.

    Raises ArgumentError for axes or shapes that do not match, and for an empty array if there is neither an
    initial value nor an identity; TypingError if the operator returns an unsuitable type; UnknownNameError for an
    unknown operator.
    """
    return one(
        perform("reduce", 1, (x, Plain(operator_of(operator, commutes))), listed(out), axes=axes_of(axis), initial=initial, options=options)
    )


def reduce_several(x, operators, *, axis=None, out=None, **options):
    """Computes several reductions in one pass over x. operators is a tuple or a list. Returns a tuple with the result of `kjit.reduce` for
    each operator. out is a tuple of arrays. The accumulators can have at most 128 bytes together. options and errors: see `kjit.reduce`."""
    found = tuple(operator_of(each) for each in operators)
    return perform("reduce_several", len(found), (x, Plain(found)), out, together=True, axes=axes_of(axis), options=options)


@recorded
def scan(x, operator="add", *, axis=None, exclusive=False, initial=None, out=None, commutes=False, **options):
    """Computes the running reduction along one axis, by default the last: element i combines the elements up to i. With
    exclusive, it combines the elements before i. The result has the shape of x, and `out` can be x itself. options and
    errors: see `kjit.reduce`."""
    flags = EXCLUSIVE if exclusive else 0
    arguments = x, Plain(operator_of(operator, commutes))
    return one(perform("scan", 1, arguments, listed(out), axes=axes_of(axis), flags=flags, initial=initial, options=options))


@recorded
def scan_with_index(x, operator="max", *, axis=None, out=None, **options):
    """Computes the running maximum or minimum along one axis, by default the last, and its index along the axis.
    Returns (values, indices), both in the shape of x; the indices are i64. operator is "max" or "min". If several
    elements are equal, the index is that of the first element. A NaN takes precedence over numbers, and the first NaN
    over the following ones. out is a tuple with two arrays, one of which can be None. options: see `kjit.reduce`.
    Raises ArgumentError for invalid axes or shapes, TypingError for elements without an order, and UnsupportedError for
    another operator."""
    arguments = x, Plain(operator_of(operator, False))
    return perform_with_omitted("scan_with_index", arguments, out, axes=axes_of(axis), options=options)


# ---- segments and keys ----


@recorded
def reduce_segments(x, offsets, operator="add", *, initial=None, out=None, commutes=False, **options):
    """Reduces each segment of x, an array with one dimension. Segment i has the elements offsets[i] to offsets[i + 1] -
    1, so offsets has one more element than there are segments. The result of an empty segment is `initial` or the
    operator's identity. Raises KernelError if offsets decrease or are out of bounds. commutes and options: see
    `kjit.reduce`."""
    arguments = x, offsets, Plain(operator_of(operator, commutes))
    return one(perform("reduce_segments", 1, arguments, listed(out), initial=initial, options=options))


@recorded
def scan_segments(x, offsets, operator="add", *, exclusive=False, initial=None, out=None, commutes=False, **options):
    """Scans each segment of x separately, see `kjit.reduce_segments` and `kjit.scan`. Elements of `out` outside all
    segments stay unchanged; without `out` they are undefined. options and errors: see `kjit.reduce_segments`."""
    arguments = x, offsets, Plain(operator_of(operator, commutes))
    flags = EXCLUSIVE if exclusive else 0
    return one(perform("scan_segments", 1, arguments, listed(out), flags=flags, initial=initial, options=options))


@recorded
def reduce_by_key(keys, x, operator="add", equal=None, *, initial=None, out=None, commutes=False, **options):
    """Reduces each run of equal consecutive keys and returns (keys, results): the first key of each run and the
    reduction of its elements in x. `equal(a, b)` compares two keys; the default is ==. keys and x are one-dimensional
    and have the same length n. The call waits for the number of runs. To avoid the wait, pass out=(keys, results,
    count) with n, n and 1 elements; the function then returns these arrays. options and errors: see `kjit.reduce`."""
    arguments = keys, x, Plain(operator_of(operator, commutes)), Plain(equal_of(equal))
    return counted(perform("reduce_by_key", 3, arguments, out, initial=initial, options=options), out)


@recorded
def scan_by_key(
    keys, x, operator="add", equal=None, *, exclusive=False, initial=None, out=None, commutes=False, **options
):
    """Scans each run of equal consecutive keys separately, see `kjit.reduce_by_key` and `kjit.scan`. The result has the
    shape of x, and `out` can be x itself. options and errors: see `kjit.reduce`."""
    arguments = keys, x, Plain(operator_of(operator, commutes)), Plain(equal_of(equal))
    flags = EXCLUSIVE if exclusive else 0
    return one(perform("scan_by_key", 1, arguments, listed(out), flags=flags, initial=initial, options=options))


# ---- updates, search, histograms ----


def update_at(x, places, values, operator="add", *, commutes=True, **options):
    """Sets x[places[i]] to operator(x[places[i]], values[i]) for each i, like NumPy's `ufunc.at`, and returns x. places
    holds integer indices into the first axis of x; negative indices count from the end. values must broadcast to
    places.shape + x.shape[1:]. The operator must be commutative. On a GPU the order of floating-point additions is not
    deterministic.

    Raises ArgumentError for shapes that do not match and for an operator that is not commutative, and KernelError
    for an index out of bounds. options: see `kjit.reduce`.
    """
    if x is None or places is None or values is None:
        raise TypeError("update_at: x, places and values must be arrays or numbers, not None")
    outcome = perform("update_at", 1, (places, values, Plain(operator_of(operator, commutes))), (x,), options=options)
    return outcome if isinstance(outcome, Plan) else x


@recorded
def search_sorted(sorted, values, less=None, *, right=False, out=None, **options):
    """Returns for each element in `values` how many elements of the one-dimensional array `sorted` come before it. With right,
    equal elements count as well, as in `numpy.searchsorted`. The results are integers in the shape of values. less(a, b) is the
    order of `sorted`. options: see `kjit.reduce`. Raises TypingError for elements that cannot be compared."""
    arguments = sorted, values, Plain(less_of(less))
    return one(perform("search_sorted", 1, arguments, listed(out), flags=RIGHT if right else 0, options=options))


@recorded
def bincount(x, bins, weights=None, *, out=None, **options):
    """Counts for each integer i below bins the elements of x that equal i. x has integers and any shape. With weights,
    which have x's shape, the result is the sum of the weights of these elements. Raises KernelError for an element that
    is negative or not below bins. options: see `kjit.reduce`."""
    return one(perform("bincount", 1, (x, Plain(bins), perhaps(weights)), listed(out), options=options))


@recorded
def histogram(x, bins, low=None, high=None, weights=None, *, out=None, **options):
    """Counts the elements of x in each bin, or adds their weights, like `numpy.histogram`. bins is the number of bins
    of equal width from `low` to `high`, or an array of ascending edges. A bin includes its lower edge, and the last bin
    includes both edges. Elements outside the bins and NaN are not counted. options: see `kjit.reduce`. Raises
    ArgumentError for invalid edges or shapes."""
    if low is None and high is None:
        if getattr(bins, "shape", None) == () or isinstance(bins, (int, float)):
            raise TypeError(f"a histogram of {bins} bins takes low and high; without them bins is an array of edges")
        return one(perform("histogram_edges", 1, (x, bins, perhaps(weights)), listed(out), options=options))
    if low is None or high is None:
        raise TypeError("histogram takes a number of bins with low and high, or an array of edges")
    arguments = x, Plain(bins), Plain(low), Plain(high), perhaps(weights)
    return one(perform("histogram", 1, arguments, listed(out), options=options))


