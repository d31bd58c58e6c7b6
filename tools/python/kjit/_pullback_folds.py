"""The rules of `kjit.pullback` for reductions, scans, segments, keys and sorts."""

import math

from . import _folds, _orders
from ._algorithms import map
from ._derivatives import holds_float, make
from ._pullback_arrays import element_name, expanded, identity, index_array, no_rule, repeated, rows_of, times, zeros_as
from ._pullback_linear import back_of_recurrence, cut, placed, reversed_along, scattered, taken_at
from ._traced import raw

# ---- axes ----


def _axes(axis, rank):
    """Returns the reduced axes as non-negative integers in ascending order."""
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(a % rank for a in axes))


# ---- reductions and scans ----


def _share(_, g, count):
    return g / count


def _of_exponential(x, r, g):
    return g * math.exp(x - r)


def _at_place(x, i, place, g):
    return g if i == place else 0.0


def _product(a, b, g):
    return a * b * g


def rule_of_reduce(x, operator="add", *, axis=None):
    if isinstance(operator, str) and operator not in ("add", "mean", "mul", "max", "min", "logaddexp"):
        raise no_rule("kjit.reduce", operator, "add, mean, mul, max, min, logaddexp and functions")
    axes = _axes(axis, len(x.shape))
    if not isinstance(operator, str):
        return _reduce_steps(x, operator, axis, axes)
    if operator == "mul":
        return _reduce_products(x, axes)
    if operator in ("max", "min"):
        return _reduce_extremes(x, operator, axis, axes)
    result = _folds.reduce(x, operator, axis=axis)
    if operator == "add":
        return result, lambda g: (map(repeated, x, expanded(g, axes)),)
    if operator == "mean":
        count = float(math.prod(x.shape[a] for a in axes))
        return result, lambda g: (map(_share, x, expanded(g, axes), count),)
    return result, lambda g: (map(_of_exponential, x, expanded(result, axes), expanded(g, axes)),)


def _one_axis(x, axes, operator):
    """Returns (x with the reduced axes joined to one, the number of that axis)."""
    if len(axes) == 1:
        return x, axes[0]
    if len(axes) == len(x.shape):
        return x.reshape((math.prod(x.shape),)), 0
    raise TypeError(f"kjit.pullback: reductions by {operator!r} have a derivative only over one axis or over all axes")


def _reduce_products(x, axes):
    line, axis = _one_axis(x, axes, "mul")
    result = _folds.reduce(line, "mul", axis=axis)

    def back(g):
        before = _folds.scan(line, "mul", axis=axis, exclusive=True)
        after = reversed_along(_folds.scan(reversed_along(line, axis), "mul", axis=axis, exclusive=True), axis)
        return (map(_product, before, after, expanded(g, (axis,))).reshape(x.shape),)

    return result, back


def _reduce_extremes(x, operator, axis, axes):
    line, at = _one_axis(x, axes, operator)
    result = _folds.reduce(x, operator, axis=axis)

    def back(g):
        place = _folds.reduce(line, f"arg{operator}", axis=at)
        shape = tuple(line.shape[at] if i == at else 1 for i in range(len(line.shape)))
        numbers = index_array(x, line.shape[at]).reshape(shape)
        return (map(_at_place, line, numbers, expanded(place, (at,)), expanded(g, (at,))).reshape(x.shape),)

    return result, back


# ---- operators step by step ----

# Reductions and scans compute y[i] = f(y[i - 1], x[i]). The derivative with respect to y[i] is the given
# derivative plus the derivative with respect to y[i + 1] times the partial derivative of f with respect to its first operand.
# The derivatives are therefore a recurrence in reverse order.


def _product_steps(x, y, axis, operator):
    """Returns the partial derivatives of y[i] = f(y[i - 1], x[i]) with respect to y[i - 1] and x[i], for i
    from 1 on."""
    return cut(x, axis, slice(1, None)), cut(y, axis, slice(None, -1))


def _ratio(first, second):
    return math.exp(first - second)


def _exponential_steps(x, y, axis, operator):
    after = cut(y, axis, slice(1, None))
    return map(_ratio, cut(y, axis, slice(None, -1)), after), map(_ratio, cut(x, axis, slice(1, None)), after)


def _function_steps(x, y, axis, operator):
    return map(make("grad", operator, ()), cut(y, axis, slice(None, -1)), cut(x, axis, slice(1, None)))


_STEPS = {"mul": _product_steps, "logaddexp": _exponential_steps}


def _back_of_steps(x, y, g, axis, operator):
    """Returns the derivative with respect to x of a scan y along an axis."""
    steps = _function_steps if not isinstance(operator, str) else _STEPS[operator]
    if x.shape[axis] < 2:
        return map(repeated, x, g)
    by_sum, by_element = steps(x, y, axis, operator)
    by_y = back_of_recurrence(by_sum, map(repeated, x, g), axis)
    return map(times, by_y, placed(by_element, x.shape[axis], axis, slice(1, None), fill=1.0))


def _reduce_steps(x, operator, axis, axes):
    line, at = _one_axis(x, axes, "a function")
    result, last = _folds.reduce(x, operator, axis=axis), slice(-1, None)

    def back(g):
        by_y = placed(map(repeated, cut(line, at, last), expanded(g, (at,))), line.shape[at], at, last)
        return (_back_of_steps(line, _folds.scan(line, operator, axis=at), by_y, at, operator).reshape(x.shape),)

    return result, back


def _mark(after, before, i):
    return i if after != before and after == after else 0


def _back_of_extremes(x, y, g, axis, operator):
    """Returns the derivative with respect to x of a running maximum or minimum y. An element at which y changes
    receives the sum of the derivatives with respect to y from there to the next change."""
    count, late = x.shape[axis], slice(1, None)
    if not math.prod(x.shape):
        return zeros_as(x, x.shape, element_name(x))
    y, marks = raw(y), zeros_as(x, x.shape, "i64")
    if count > 1:
        numbers = index_array(x, count).reshape(tuple(count if i == axis else 1 for i in range(len(x.shape))))
        changes = cut(y, axis, late), cut(y, axis, slice(None, -1)), cut(numbers, axis, late)
        map(_mark, *changes, out=cut(marks, axis, late))
    return scattered(g, _folds.scan(marks, "max", axis=axis), x.shape, axis)


def rule_of_scan(x, operator="add", *, axis=None, exclusive=False):
    if isinstance(operator, str) and operator not in ("add", "max", "min", *_STEPS):
        raise no_rule("kjit.scan", operator, "add, mul, logaddexp, max, min and functions")
    at = (-1 if axis is None else axis) % len(x.shape)
    result = _folds.scan(x, operator, axis=at, exclusive=exclusive)
    if operator == "add":
        return result, lambda g: (reversed_along(_folds.scan(reversed_along(g, at), "add", axis=at, exclusive=exclusive), at),)
    back = _back_of_extremes if operator in ("max", "min") else _back_of_steps
    if not exclusive:
        return result, lambda g: (back(x, result, g, at, operator),)
    # Element i of an exclusive scan is element i - 1 of the inclusive scan.
    early, late = slice(None, -1), slice(1, None)
    return result, lambda g: (
        placed(back(cut(x, at, early), cut(result, at, late), cut(g, at, late), at, operator), x.shape[at], at, early),
    )


# ---- segments and keys ----


def rule_of_reduce_segments(x, offsets, operator="add"):
    if operator not in ("add", "logaddexp", "max", "min"):
        raise no_rule("kjit.reduce_segments", operator, "add, logaddexp, max and min")
    result = _folds.reduce_segments(x, offsets, operator)
    return result, lambda g: (_back_of_segments(x, offsets, operator, result, g), None)


def _back_of_segments(x, offsets, operator, result, g):
    rows, segments = rows_of(offsets, x.shape[0]), offsets.shape[0] - 1
    taken = taken_at(g, rows, segments)
    if operator == "add":
        return taken
    of_row = taken_at(result, rows, segments)
    if operator == "logaddexp":
        return map(_of_exponential, x, of_row, taken)
    numbers = index_array(x, x.shape[0])
    hits = map(_hit, raw(x), raw(of_row), numbers, x.shape[0])
    first = _folds.reduce_segments(hits, offsets, "min")
    return map(_at_place, x, numbers, taken_at(first, rows, segments), taken)


def _begins(keys, equal):
    """Returns for each element whether its key differs from the previous key."""
    made = zeros_as(keys, keys.shape, "bool")
    if keys.shape[0]:
        made[:1] = True
    if keys.shape[0] > 1:
        early, late = keys[:-1], keys[1:]
        if equal is None:
            map(_is_unlike, early, late, out=made[1:])
        else:
            map(_is_false, map(equal, early, late), out=made[1:])
    return made


def _is_unlike(a, b):
    return a != b


def _is_false(a):
    return not a


def _offsets_of_keys(keys, equal):
    begins = _orders.nonzero(_begins(keys, equal))
    made = zeros_as(keys, (begins.shape[0] + 1,), "i64")
    if begins.shape[0]:
        map(identity, begins, out=made[:-1])
    made[-1:] = keys.shape[0]
    return made


def rule_of_reduce_by_key(keys, x, operator="add", equal=None):
    """The rule of reduce_by_key. Only the results have derivatives, not the keys."""
    if operator not in ("add", "logaddexp", "max", "min"):
        raise no_rule("kjit.reduce_by_key", operator, "add, logaddexp, max and min")
    found, result = _folds.reduce_by_key(keys, x, operator, equal)
    return (found, result), lambda g: (
        None,
        _back_of_segments(x, _offsets_of_keys(keys, equal), operator, result, g[1] if isinstance(g, tuple) else g),
    )


def rule_of_scan_by_key(keys, x, operator="add", equal=None, *, exclusive=False):
    if operator != "add":
        raise no_rule("kjit.scan_by_key", operator, "add")
    result = _folds.scan_by_key(keys, x, "add", equal, exclusive=exclusive)

    def back(g):
        found = _folds.scan_by_key(reversed_along(keys, 0), reversed_along(g, 0), "add", equal, exclusive=exclusive)
        return None, reversed_along(found, 0)

    return result, back


def _in_segments(x, row, count):
    return x if row >= 0 and row < count else 0.0


def rule_of_scan_segments(x, offsets, operator="add", *, exclusive=False):
    """The rule of scan_segments. The derivative with respect to an element outside all segments is 0."""
    if operator != "add":
        raise no_rule("kjit.scan_segments", operator, "add")
    result = _folds.scan_segments(x, offsets, "add", exclusive=exclusive)

    def back(g):
        rows, segments = rows_of(offsets, x.shape[0]), offsets.shape[0] - 1
        found = _folds.scan_by_key(reversed_along(rows, 0), reversed_along(g, 0), "add", exclusive=exclusive)
        return map(_in_segments, reversed_along(found, 0), rows, segments), None

    return result, back


def rule_of_bincount(x, bins, weights=None):
    """The rule of bincount. The derivative is with respect to the weights."""
    if weights is None:
        raise TypeError("kjit.pullback of kjit.bincount needs weights, because it differentiates with respect to them")
    return _folds.bincount(x, bins, weights), lambda g: (None, None, taken_at(g, x, bins))


def _hit(x, r, i, count):
    return i if x == r else count


# ---- sorts ----


def _check_line(name, x):
    if len(x.shape) != 1:
        raise TypeError(f"kjit.pullback of {name} takes an array with one axis, got {len(x.shape)} axes")


def rule_of_sort(x, *, axis=None, descending=False):
    at = (-1 if axis is None else axis) % len(x.shape)
    places = _orders.argsort(x, axis=at, descending=descending)
    return _orders.sort(x, axis=at, descending=descending), lambda g: (scattered(g, places, x.shape, at),)


def rule_of_sort_pairs(x, values, *, axis=None, descending=False):
    at = (-1 if axis is None else axis) % len(x.shape)
    places = _orders.argsort(x, axis=at, descending=descending)

    def back(g):
        return scattered(g[0], places, x.shape, at), scattered(g[1], places, values.shape, at) if holds_float(values) else None

    return _orders.sort_pairs(x, values, axis=at, descending=descending), back


def rule_of_top_k(x, k, *, axis=None, descending=False):
    """The rule of top_k. Only the elements have derivatives, not the indices."""
    at = (-1 if axis is None else axis) % len(x.shape)
    values, places = _orders.top_k(x, k, axis=at, descending=descending)
    return values, lambda g: (scattered(g, places, x.shape, at), None)


def rule_of_scan_with_index(x, operator="max", *, axis=None):
    """The rule of scan_with_index. Only the values have derivatives, not the indices."""
    at = (-1 if axis is None else axis) % len(x.shape)
    values, places = _folds.scan_with_index(x, operator, axis=at)
    return values, lambda g: (scattered(g, places, x.shape, at),)


def rule_of_select_where(x, flags):
    _check_line("kjit.select_where", x)
    places = _orders.nonzero(flags)
    return _orders.select_where(x, flags), lambda g: (scattered(g, places, x.shape), None)
