"""Linear operations over arrays for the rules of `kjit.pullback`. Each operation is recorded in
programs, and its rule uses only operations in this file. Derivatives of the rules therefore exist
to any order."""

import math

from . import _folds
from ._algorithms import computed, map
from ._pullback_arrays import beside, element_name, identity, index_array, repeated, times, zeros_as
from ._traced import recorded

# ---- slices ----


def reversed_along(x, axis):
    return x[tuple(slice(None, None, -1) if i == axis else slice(None) for i in range(len(x.shape)))]


def cut(x, axis, part):
    """Returns a slice of x along an axis."""
    return x[tuple(part if i == axis else slice(None) for i in range(len(x.shape)))]


@recorded
def placed(part, count, axis, where, fill=0.0):
    """Returns an array with `count` elements along an axis. It has the elements of `part` in the
    slice `where` of this axis, and the number `fill` elsewhere."""
    made = zeros_as(part, tuple(count if i == axis else n for i, n in enumerate(part.shape)), element_name(part))
    if fill:
        made[...] = fill
    if math.prod(part.shape):
        map(identity, part, out=cut(made, axis, where))
    return made


def rule_of_placed(part, count, axis, where, fill=0.0):
    return placed(part, count, axis, where, fill), lambda g: (cut(g, axis, where), None, None, None, None)


# ---- gathers and sums by index ----


def _element_at(i, g, places, count):
    place = places[i]
    return g[place] if place >= 0 and place < count else 0.0


@recorded
def taken_at(g, places, count):
    """Returns g[places] for an array g with one axis of `count` elements, and 0 for indices outside
    of it."""
    return map(identity, computed(_element_at, places.shape[0], g, beside(places, g), count))


def rule_of_taken_at(g, places, count):
    return taken_at(g, places, count), lambda h: (added_at(h, places, count), None, None)


def _place_within(place, count):
    return place if place >= 0 and place < count else count


@recorded
def added_at(g, places, count):
    """Returns an array of `count` elements to which each element of g is added at its index. Elements
    of g with an index out of bounds are dropped."""
    made = zeros_as(g, (count + 1,), element_name(g))
    if places.shape[0]:
        _folds.update_at(made, map(_place_within, beside(places, g), count), map(identity, g))
    return made[:count]


def rule_of_added_at(g, places, count):
    return added_at(g, places, count), lambda h: (taken_at(h, places, count), None, None)


def _flat_place(place, outer, inner, count, width):
    return (outer * count + place) * width + inner


def scattered(g, places, shape, axis=0):
    """Returns an array of zeros with the given shape, to which g is added at the given indices
    along an axis."""
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if not math.prod(places.shape):
        return zeros_as(g, tuple(shape), element_name(g))
    blocks = places.reshape((outer, places.shape[axis], inner))
    rows, columns = index_array(places, outer).reshape((outer, 1, 1)), index_array(places, inner).reshape((1, 1, inner))
    flat = map(_flat_place, blocks, rows, columns, shape[axis], inner)
    count = math.prod(flat.shape)
    return added_at(map(identity, g).reshape((count,)), flat.reshape((count,)), math.prod(shape)).reshape(tuple(shape))


# ---- recurrences ----

# A scan of affine functions: a complex number holds the factor and a function's term.


def _affine(first, second):
    return complex(first.real * second.real, second.real * first.imag + second.imag)


def _pair(factor, term):
    return complex(factor, term)


def _imaginary(z):
    return z.imag


@recorded
def recurrence(factors, terms, axis):
    """Returns y with y[i] = factors[i] * y[i - 1] + terms[i] along an axis. The first factor has no
    effect."""
    if "c" in (element_name(factors)[0], element_name(terms)[0]):
        raise TypeError("kjit.pullback: a scan of complex numbers has a derivative for the operator add only")
    return map(_imaginary, _folds.scan(map(_pair, factors, terms), _affine, axis=axis))


def rule_of_recurrence(factors, terms, axis):
    y = recurrence(factors, terms, axis)
    count, early, late = terms.shape[axis], slice(None, -1), slice(1, None)

    def back(g):
        by_terms = back_of_recurrence(cut(factors, axis, late), g, axis)
        by_factors = placed(map(times, cut(by_terms, axis, late), cut(y, axis, early)), count, axis, late)
        return by_factors, by_terms, None

    return y, back


def back_of_recurrence(factors, g, axis):
    """Returns u with u[i] = factors[i] * u[i + 1] + g[i] along an axis: the derivatives with respect to a
    recurrence's terms. factors: the factors of the recurrence without the first one."""
    count = g.shape[axis]
    if count < 2:
        return map(repeated, g, g)
    whole = placed(factors, count, axis, slice(None, -1))
    return reversed_along(recurrence(reversed_along(whole, axis), reversed_along(g, axis), axis), axis)


RULES = {placed: rule_of_placed, taken_at: rule_of_taken_at, added_at: rule_of_added_at, recurrence: rule_of_recurrence}
