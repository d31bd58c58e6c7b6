"""Sorts, selections and sets over whole arrays, with functions of Python for orders."""

from . import dtypes
from ._algorithms import DESCENDING, Plain, Plan, axes_of, computed, equal_of, less_of, listed, numpy_array, one, perform, perhaps
from ._folds import counted, search_sorted

# ---- sorts ----


def _order(descending, begin_bit=0, end_bit=0):
    """What the order is, for `perform`."""
    return {"flags": DESCENDING if descending else 0, "begin_bit": begin_bit, "end_bit": end_bit}


def sort(x, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """The elements in order, along one axis, by default the last: an array of the shape and type of x, which `out` may be.
    less(a, b): whether a comes before b, a strict order as that of <; without it numbers ascend, NaNs last. descending: that order the other way
    around. Equal elements keep their order. begin_bit, end_bit: only these bits of integers are looked at. options: see `kjit.reduce`. ArgumentError: axes,
    shapes. TypingError: elements without an order."""
    own = _order(descending, begin_bit, end_bit)
    return one(perform("sort", 1, (x, Plain(less_of(less))), listed(out), axes=axes_of(axis), options=options, **own))


def sort_pairs(x, values, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """(x sorted, values each where its element of x comes to be); both have the same shape. out: a tuple of two arrays, which may
    be x and values. The rest: see `kjit.sort`."""
    arguments = x, values, Plain(less_of(less))
    return perform("sort_pairs", 2, arguments, out, axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit))


def argsort(x, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """Where along the axis the elements are in their order: integers of the shape of x. The rest: see `kjit.sort`."""
    arguments = x, Plain(less_of(less))
    return one(perform("argsort", 1, arguments, listed(out), axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit)))


def merge(x, y, less=None, *, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """The elements of x and y, arrays of one dimension that are sorted, in order; of equal ones those of x first. The rest: see
    `kjit.sort`."""
    arguments = x, y, Plain(less_of(less))
    return one(perform("merge", 1, arguments, listed(out), options=options, **_order(descending, begin_bit, end_bit)))


def top_k(x, k, less=None, *, axis=None, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """(elements, places): the first k that `kjit.sort` would put along one axis, by default the last, and where along the axis
    they are in x; both have the shape of x with k elements along the axis. descending: the greatest. out: a tuple of two arrays,
    one of which may be None. ArgumentError: k is negative or more than there are. The rest: see `kjit.sort`."""
    arguments = x, Plain(k), Plain(less_of(less))
    if out is not None:
        arguments = *(perhaps(result) for result in out), *arguments
        outcome = perform("top_k", 0, arguments, (), axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit))
        return outcome if isinstance(outcome, Plan) else out
    return perform("top_k", 2, arguments, None, axes=axes_of(axis), options=options, **_order(descending, begin_bit, end_bit))


def sort_segments(x, offsets, values=None, less=None, *, descending=False, out=None, begin_bit=0, end_bit=0, **options):
    """The segments of x, an array of one dimension, each sorted by itself: segment i has the elements offsets[i] up to
    offsets[i + 1] - 1; elements in no segment stay where they are. With `values` a pair, as `kjit.sort_pairs`. out: an array, with
    values a tuple of two. KernelError: offsets that descend or lead out of x. The rest: see `kjit.sort`."""
    own = _order(descending, begin_bit, end_bit) | {"options": options}
    last = x, perhaps(values), offsets, Plain(less_of(less))
    if values is None:
        return one(perform("sort_segments", 1, (Plain(None), *last), listed(out), **own))
    return perform("sort_segments", 2, last, out, **own)


# ---- selections ----


def select_where(x, flags, *, out=None, **options):
    """The elements of x for which flags, as many, are not 0, in the row-major order of x: an array of one dimension. flags: an
    array, or `kjit.computed`. It waits for their number, except with out=(result, count), an array with room for all and one of
    one integer, which are the result then. options: see `kjit.reduce`. ArgumentError: shapes, results that overlap x."""
    return counted(perform("select", 2, (x, flags), out, options=options), out)


def partition(x, flags, *, out=None, **options):
    """(elements whose flags are not 0, the others), each in the order of x. out: (result, rest, count). The rest: see
    `kjit.select_where`."""
    outcome = perform("partition", 3, (x, flags), out, options=options)
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    kept, rest, count = outcome
    number = _number(count)
    return kept[:number], rest[: kept.shape[0] - number]


def partition_three(x, classes, *, out=None, **options):
    """(elements of class 0, of class 1, of class 2): classes has as many integers as x elements. out: (first, second, rest,
    counts), counts an array of two integers. KernelError: another class. The rest: see `kjit.select_where`."""
    outcome = perform("partition_three", 4, (x, classes), out, options=options)
    if isinstance(outcome, Plan) or out is not None:
        return outcome
    *parts, counts = outcome
    numbers = [int(n) for n in (counts.to_host() if hasattr(counts, "to_host") else counts)]
    numbers.append(parts[0].shape[0] - sum(numbers))
    return tuple(part[:number] for part, number in zip(parts, numbers))


def _number(count):
    return int(count.to_host() if hasattr(count, "to_host") else count)


def nonzero(x, *, out=None, **options):
    """The places of the elements of x that are not 0, in x as one line: integers. out: (result, count). The rest: see
    `kjit.select_where`."""
    return counted(perform("nonzero", 2, (x,), out, options=options), out)


def unique_consecutive(x, values=None, equal=None, *, out=None, **options):
    """The first element of each run of equal neighbours of x, an array of one dimension. equal(a, b) compares two elements; by
    default == does. With `values`, as many elements, a pair: also the elements of `values` at the same indices. out:
    (result, count) or (result, values, count). The rest: see `kjit.select_where`."""
    if values is None:
        return counted(perform("unique", 2, (x, Plain(equal_of(equal))), out, options=options), out)
    return counted(perform("unique_pairs", 3, (x, values, Plain(equal_of(equal))), out, options=options), out)


def _is_same(a, b):
    return a == b or (a != a and b != b)


def _index(i):
    return i


def unique(x, return_index=False, return_inverse=False, return_counts=False, *, equal_nan=True, **options):
    """The different elements of x, an array of any shape, in ascending order, as `numpy.unique` returns them. With return_index,
    return_inverse or return_counts a tuple: also the index of the first occurrence of each result in the flattened x, the
    index in the result of each element of x (an array of the shape of x), and the number of occurrences of each result.
    equal_nan: all NaNs are one element. It sorts x and waits for the number of results; `kjit.unique_consecutive` removes
    equal neighbours without sorting. options: see `kjit.reduce`; there is no `plan`. TypingError: elements without an order."""
    for name in ("plan", "out"):
        if options.get(name) is not None:
            raise TypeError(f"unique takes no {name}: it is several algorithms; use kjit.sort and kjit.unique_consecutive")
    x = numpy_array(x)
    shape = getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"unique: x is an array, not {type(x).__name__}")
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
    """(elements, lengths, starts) of the runs of equal neighbours of x. out: (elements, lengths, starts, count). The rest: see
    `kjit.unique_consecutive`."""
    return counted(perform("run_lengths", 4, (x, Plain(equal_of(equal))), out, options=options), out)


# ---- sets ----


def _set(name, x, y, less, descending, out, options):
    outcome = perform(name, 2, (x, y, Plain(less_of(less))), out, options=options, **_order(descending))
    return counted(outcome, out)


def set_union(x, y, less=None, *, descending=False, out=None, **options):
    """The union of two sorted arrays of one dimension, sorted: of m equal elements of x and n of y max(m, n), as C++'s
    `std::set_union`. less and descending: the order that both have, see `kjit.sort`. It waits for the number, except with
    out=(result, count): an array with room for all of x and y and one of one integer. options: see `kjit.reduce`. ArgumentError:
    room, shapes. TypingError: x and y of different types."""
    return _set("set_union", x, y, less, descending, out, options)


def set_intersection(x, y, less=None, *, descending=False, out=None, **options):
    """What both have, min(m, n) times. out has room for the shorter one. The rest: see `kjit.set_union`."""
    return _set("set_intersection", x, y, less, descending, out, options)


def set_difference(x, y, less=None, *, descending=False, out=None, **options):
    """What x has and y has not, max(m - n, 0) times. out has room for x. The rest: see `kjit.set_union`."""
    return _set("set_difference", x, y, less, descending, out, options)


def set_symmetric_difference(x, y, less=None, *, descending=False, out=None, **options):
    """What one of them has only, abs(m - n) times. The rest: see `kjit.set_union`."""
    return _set("set_symmetric_difference", x, y, less, descending, out, options)
