"""Sorts, selections and set operations on whole arrays, with Python functions for orders."""

from . import dtypes
from ._algorithms import DESCENDING, Plain, Plan, axes_of, computed, equal_of, less_of, listed, numpy_array, one, perform, perform_with_omitted, perhaps
from ._folds import counted, search_sorted
from ._traced import recorded

# ---- sorts ----


def _order(descending, begin_bit=0, end_bit=0):
    """Returns the order in the form that `perform` takes."""
    return {"flags": DESCENDING if descending else 0, "begin_bit": begin_bit, "end_bit": end_bit}


@recorded
def sort(x, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Sorts the elements along one axis, by default the last. Returns an array with the shape and type of x; `out` can
    be x itself.

    less(a, b) returns whether a comes before b and must be a strict ordering, like <. Without it, numbers ascend and
    NaNs come last. With descending, the order is reversed. The sort is stable. With begin_bit and end_bit, only these
    bits of integers are compared. options: see `kjit.reduce`. Raises ArgumentError for invalid axes or shapes, and
    TypingError for elements that cannot be compared.
    """
    own = _order(descending, begin_bit, end_bit)
    return one(perform("sort", 1, (x, Plain(less_of(less))), listed(out), axes=axes_of(axis), options=options, **own))


@recorded
def sort_pairs(x, values, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Sorts x and moves the elements of values with it; returns (sorted x, values). Both have the same shape. out is a
    tuple of two arrays, which can be x and values. Other parameters: see `kjit.sort`."""
    arguments = x, values, Plain(less_of(less))
    return perform("sort_pairs", 2, arguments, out, axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit))


@recorded
def argsort(x, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Returns the indices that would sort x along an axis, integers in the shape of x. Other parameters: see
    `kjit.sort`."""
    arguments = x, Plain(less_of(less))
    return one(perform("argsort", 1, arguments, listed(out), axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit)))


def merge(x, y, less=None, *, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Merges x and y, sorted arrays with one dimension. Equal elements of x come first. Other parameters: see
    `kjit.sort`."""
    arguments = x, y, Plain(less_of(less))
    return one(perform("merge", 1, arguments, listed(out), options=options, **_order(descending, begin_bit, end_bit)))


@recorded
def top_k(x, k, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Returns (elements, indices): the first k elements in the order of `kjit.sort` along one axis, by default the
    last, and their indices along the axis. Both have the shape of x with extent k along the axis. With descending, they
    are the largest elements. out is a tuple with two arrays, one of which can be None. Raises ArgumentError if k is
    negative or too large. Other parameters: see `kjit.sort`."""
    arguments = x, Plain(k), Plain(less_of(less))
    return perform_with_omitted("top_k", arguments, out, axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit))


def sort_segments(x, offsets, values=None, less=None, *, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Sorts each segment of x, an array with one dimension, separately. Segment i has the elements offsets[i] to
    offsets[i + 1] - 1. Elements outside all segments keep their positions. With `values` the result is a pair, as in
    `kjit.sort_pairs`. out is an array or, with `values`, a tuple of two arrays. Raises KernelError if offsets decrease
    or are out of bounds. Other parameters: see `kjit.sort`."""
    own = _order(descending, begin_bit, end_bit) | {"options": options}
    last = x, perhaps(values), offsets, Plain(less_of(less))
    if values is None:
        return one(perform("sort_segments", 1, (Plain(None), *last), listed(out), **own))
    return perform("sort_segments", 2, last, out, **own)


# ---- selections ----


@recorded
def select_where(x, flags, *, out=None, **options):
    """Returns the elements of x whose flag is not 0, in row-major order, as an array with one dimension. flags is an
    array with the size of x, or `kjit.computed`.

    The call waits for the number of elements. To avoid the wait, pass out=(result, count): result needs space for all
    elements of x, and count is an array with one integer. The function then returns these arrays. options: see
    `kjit.reduce`. Raises ArgumentError for shapes that do not match, and for results that overlap x.
    """
    return counted(perform("select", 2, (x, flags), out, options=options), out)


def partition(x, flags, *, out=None, **options):
    """Returns (elements whose flag is not 0, other elements), each in the order of x. out is (result, rest, count).
    Other parameters: see `kjit.select_where`."""
    outcome = perform("partition", 3, (x, flags), out, options=options)
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    kept, rest, count = outcome
    number = _number(count)
    return kept[:number], rest[: kept.shape[0] - number]


def partition_three(x, classes, *, out=None, **options):
    """Returns (elements with class 0, with class 1, with class 2). classes has an integer for each element of x. out is
    (first, second, rest, counts), where counts is an array with two integers. Raises KernelError for another class.
    Other parameters: see `kjit.select_where`."""
    outcome = perform("partition_three", 4, (x, classes), out, options=options)
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    *parts, counts = outcome
    numbers = [int(n) for n in (counts.to_host() if hasattr(counts, "to_host") else counts)]
    numbers.append(parts[0].shape[0] - sum(numbers))
    return tuple(part[:number] for part, number in zip(parts, numbers))


def _number(count):
    return int(count.to_host() if hasattr(count, "to_host") else count)


@recorded
def nonzero(x, *, out=None, **options):
    """Returns the indices of the nonzero elements in the flattened x. out is (result, count). Other parameters: see
    `kjit.select_where`."""
    return counted(perform("nonzero", 2, (x,), out, options=options), out)


def unique_consecutive(x, values=None, equal=None, *, out=None, **options):
    """Returns the first element in each run of equal consecutive elements. x has one dimension. equal(a, b) compares
    two elements; the default is ==. With `values`, an array with the same size, the result is a pair with the
    corresponding elements of values. out is (result, count) or (result, values, count). Other parameters: see
    `kjit.select_where`."""
    if values is None:
        return counted(perform("unique", 2, (x, Plain(equal_of(equal))), out, options=options), out)
    return counted(perform("unique_pairs", 3, (x, values, Plain(equal_of(equal))), out, options=options), out)


def _is_same(a, b):
    return a == b or (a != a and b != b)


def _index(i):
    return i


def unique(x, return_index=False, return_inverse=False, return_counts=False, *, equal_nan=True, **options):
    """Returns the distinct elements of x, an array with any shape, in ascending order, like `numpy.unique`. With
    return_index, return_inverse or return_counts the result is a tuple, which also has the index of each result's first
    occurrence in the flattened x, the index in the result for each element of x (an array of the shape of x), and the
    number of occurrences of each result.

    With equal_nan, all NaNs are one element. The function sorts x and waits for the number of results;
    `kjit.unique_consecutive` removes equal consecutive elements without sorting. options: see `kjit.reduce`; `plan` is
    not supported. Raises TypingError for elements that cannot be compared.
    """
    for name in ("plan", "out"):
        if options.get(name) is not None:
            raise TypeError(f"unique does not support {name}, because it runs several algorithms; use kjit.sort and kjit.unique_consecutive")
    x = numpy_array(x)
    shape = getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"unique: x must be an array, not {type(x).__name__}")
    line = x if len(shape) == 1 else x.reshape(-1)
    places = None
    if return_index:
        ordered, places = sort_pairs(line, computed(_index, line.shape), **options)
    else:
        ordered = sort(line, **options)
    equal = _is_same if equal_nan and _may_be_nan(ordered.dtype) else None
    if not (return_index or return_inverse or return_counts):
        return unique_consecutive(ordered, equal=equal, **options)
    found, lengths, _ = run_lengths(ordered, equal, **options)
    results = [found]
    if return_index:
        results.append(unique_consecutive(ordered, places, equal, **options)[1])
    if return_inverse:
        results.append(search_sorted(found, line, **options).reshape(shape))
    if return_counts:
        results.append(lengths)
    return tuple(results)


def _may_be_nan(dtype):
    name = dtypes.name_of(dtype)
    return name is not None and (name[0] in "fc" or name == "bf16")


def run_lengths(x, equal=None, *, out=None, **options):
    """Returns (elements, lengths, starts) for the runs of equal consecutive elements of x. out is (elements, lengths,
    starts, count). Other parameters: see `kjit.unique_consecutive`."""
    return counted(perform("run_lengths", 4, (x, Plain(equal_of(equal))), out, options=options), out)


# ---- sets ----


def _set(name, x, y, less, descending, out, options):
    outcome = perform(name, 2, (x, y, Plain(less_of(less))), out, options=options, **_order(descending))
    return counted(outcome, out)


def set_union(x, y, less=None, *, descending=False, out=None, **options):
    """Returns the sorted union of two sorted arrays with one dimension. If an element occurs m times in x and n times
    in y, it occurs max(m, n) times in the union, as in C++'s `std::set_union`. less and descending describe the order
    of both inputs, see `kjit.sort`.

    The call waits for the number of elements. To avoid the wait, pass out=(result, count): result needs space for all
    elements of x and y, and count is an array with one integer. The function then returns these arrays. options: see
    `kjit.reduce`. Raises ArgumentError for a wrong size or shape, and TypingError if x and y have different types.
    """
    return _set("set_union", x, y, less, descending, out, options)


def set_intersection(x, y, less=None, *, descending=False, out=None, **options):
    """Returns the elements that are in both arrays, min(m, n) times each. In out, result needs space for as
    many elements as the shorter array has. Other parameters: see `kjit.set_union`."""
    return _set("set_intersection", x, y, less, descending, out, options)


def set_difference(x, y, less=None, *, descending=False, out=None, **options):
    """Returns the elements of x that are not in y, max(m - n, 0) times each. In out, result needs space for
    as many elements as x has. Other parameters: see `kjit.set_union`."""
    return _set("set_difference", x, y, less, descending, out, options)


def set_symmetric_difference(x, y, less=None, *, descending=False, out=None, **options):
    """Returns the elements that are in only one of the arrays, abs(m - n) times each. Other parameters: see
    `kjit.set_union`."""
    return _set("set_symmetric_difference", x, y, less, descending, out, options)
