"""Derivatives of reductions over pairs in programs, to any order.

The derivatives of a sum over pairs are sums over pairs themselves, which `slopes` computes. The derivatives of `slopes` need the
function's derivative along a direction for each pair, and the result is a sum over pairs again. Reductions with another operator
are first rewritten as sums.
"""

import math

from . import _pairs
from ._algorithms import function_of, map
from ._derivatives import is_array
from ._functions import Function
from ._pullback_linear import cut, placed
from ._traced import is_traced, recorded, without_traces

# ---- functions of pairs ----


class _PairFunction(Function):
    """A func of pairs that calls another func of pairs. write: maps the name of the called func to (parameters,
    lines in the body)."""

    def __init__(self, of, word, parameters, write):
        for name in ("py_func", "_options", "_bits", "_device", "_rules", "is_typed", "__module__"):
            setattr(self, name, getattr(of, name))
        self.__name__, self.__qualname__ = f"{word}_{of.__name__}", f"{word}_{of.__qualname__}"
        self.attributes, self._made, self._loaded = "", None, None
        self._of, self._names, self._body = of, parameters, write

    def _write(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed)
        builder.arrays_by = self._arrays_by
        name = self.write_callee(builder)
        builder.write_all()
        return builder.finish(name)

    def write_callee(self, builder):
        """Writes the func into a module, and returns its name there."""
        lines = [f"func NAME({', '.join(self._names)}) {{", *self._body(builder.function(self._of)), "}"]
        return builder.generated(self.__name__, [[line] for line in lines])

    def _parameters(self):
        return tuple(self._names)


def _made(function, key, make):
    """Returns the func that `make` makes for a function and a key. The func is an attribute of the
    function, so that it is compiled only once."""
    known = function.__dict__.setdefault("_of_pairs", {})
    if key not in known:
        known[key] = make()
    return known[key]


def _names(count, more):
    """Returns the names of the parameters of a func of pairs with `count` rows and `more` arguments."""
    return [*(f"x{n}" for n in range(count)), "i", "j", *(f"s{n}" for n in range(more))]


def _along(of, rows, more, numbers, is_row):
    """Returns the func for the derivative along directions of the chosen parameters. The direction of a parameter follows the
    parameter. The direction of the first row is the second half of the row."""
    own = _names(rows, more)
    directions = [f"d{number}" for number in numbers]
    parameters = [n for k, name in enumerate(own) for n in ((name, f"d{k}") if k in numbers and k else (name,))]

    def write(callee):
        values, along, lines = [*own], [*directions], []
        if 0 in numbers:
            lines = ["let half = x0.size >> 1"] if is_row else []
            values[0], along[0] = ("x0[:half]", "x0[half:]") if is_row else ("x0[0]", "x0[1]")
        word = f"jvp({', '.join([callee, *(str(number) for number in numbers)])})"
        return [*lines, f"return {word}({', '.join([*values, *along])})[1]"]

    return _made(of, ("along", rows, more, numbers, is_row), lambda: _PairFunction(of, "along", parameters, write))


def _with_row_value(of, rows, more, word, form):
    """Returns a func with an additional argument: an array with an element for each row of x. form: the text of the new func's
    result, in terms of the func's value `v()` and the element `of_row`."""
    own = _names(rows, more)

    def write(callee):
        call = f"{callee}({', '.join(own)})"
        return ["let of_row = by_row[i]", f"return {form.replace('v()', call)}"]

    return _made(of, (word, rows, more), lambda: _PairFunction(of, word, [*own, "by_row"], write))


# ---- operators as sums ----


def _scaled(x, factor):
    return x * factor


def _shifted_log(q, c):
    return c + math.log(q)


def _quotient(g, q):
    return g / q


def as_number(x):
    """Returns an argument without dimensions as a number, because funcs of pairs compute with
    numbers."""
    if is_traced(x) or not is_array(x) or tuple(x.shape):
        return x
    return (x.to_host() if hasattr(x, "to_host") else x)[()]


def rule(function, x, y, operator, arguments, numbers, options):
    """The rule of `kjit.pairs` for traced operands: returns (result, back). back returns the
    derivatives with respect to the parameters with the given numbers."""
    ys = y if isinstance(y, tuple) else (y,)
    of = function_of(function, "what kjit.pairs combines", 3 + len(ys) + len(arguments))
    counts, factor = (1 + len(ys), len(arguments)), None
    given = arguments
    known = without_traces((x, ys, arguments))
    if operator == "mean":
        factor = 1 / ys[0].shape[0]
    elif operator in ("max", "min"):
        places = _pairs_of(of, *known, f"arg{operator}", options)
        of, given = _with_row_value(of, *counts, "chosen", "of_row == j ? v() : 0.0"), (*arguments, places)
    elif operator == "logaddexp":
        shift = _pairs_of(of, *known, operator, options)
        of, given = _with_row_value(of, *counts, "exponential", "exp(v() - of_row)"), (*arguments, shift)
    elif operator != "add":
        raise TypeError(f"kjit.grad: kjit.pairs has derivatives for the operators add, mean, logaddexp, max and min, not for {operator!r}")
    total = _pairs.pairs(of, x, ys, "add", arguments=given, **options)
    result = total if factor is None else map(_scaled, total, factor)
    if operator == "logaddexp":
        result = map(_shifted_log, total, shift)

    def back(g):
        if operator == "logaddexp":
            g = map(_quotient, g, total)
        return slopes(of, x, ys, g if factor is None else map(_scaled, g, factor), given, numbers, options)

    return result, back


def _pairs_of(of, x, ys, arguments, operator, options):
    return _pairs.pairs(of, x, ys, operator, arguments=arguments, **options)


# ---- sums ----


@recorded
def slopes(function, x, ys, g, arguments, numbers, options):
    """Returns the derivatives of sums over pairs with respect to the parameters with the given
    numbers, as `kjit.pairs_gradient` does. g: the derivative with respect to the sums."""
    arguments = tuple(as_number(a) for a in arguments)
    return _pairs.pairs_gradient(function, x, ys, "add", cotangents=g, by=numbers, arguments=arguments, **options)


def _plus(a, b):
    return a + b


def _packed(x, h):
    """Returns an array in which each row of x is followed by the row of h."""
    if len(x.shape) == 1:
        x, h = (a.reshape((a.shape[0], 1)) for a in (x, h))
    width = x.shape[1]
    return map(_plus, placed(x, 2 * width, 1, slice(0, width)), placed(h, 2 * width, 1, slice(width, None)))


def _interleaved(values, numbers, directions, first):
    """Returns the values, each followed by its direction if its parameter is chosen. first: the
    number of the first parameter."""
    found = []
    for number, x in enumerate(values, first):
        found.append(x)
        if number in numbers:
            found.append(as_number(directions[number]))
    return tuple(found)


def rule_of_slopes(function, x, ys, g, arguments, numbers, options, needed=None):
    arguments = tuple(as_number(a) for a in arguments)
    first = len(ys) + 3  # the number of the first argument

    def back(h):
        directions = dict(zip(numbers, h, strict=True))
        func = _along(function, 1 + len(ys), len(arguments), numbers, len(x.shape) == 2)
        wide = _packed(x, directions[0]) if 0 in directions else x
        rows = _interleaved(ys, numbers, directions, 1)
        more = _interleaved(arguments, numbers, directions, first)
        places = _places_along(func)
        wanted = _needed_numbers(x, ys, arguments, needed)
        along = tuple(places[number] for number in wanted)
        by = dict(zip(wanted, slopes(func, wide, rows, g, more, along, options) if wanted else (), strict=True))
        if 0 in by and 0 in directions:
            by[0] = cut(by[0], 1, slice(0, wide.shape[1] // 2)).reshape(tuple(x.shape))
        by_g = _pairs.pairs(func, wide, rows, "add", arguments=more, **options) if needed is None or needed[3] else None
        return (
            None, by.get(0), tuple(by.get(n) for n in range(1, len(ys) + 1)), by_g,
            tuple(by.get(first + n) for n in range(len(arguments))), None, None,
        )  # fmt: skip

    return slopes(function, x, ys, g, arguments, numbers, options), back


def _places_along(func):
    """Returns the positions of the parameters that are not directions."""
    return [place for place, name in enumerate(func._parameters()) if not name.startswith("d")]


def _needed_numbers(x, ys, arguments, needed):
    numbers = _pairs.chosen(None, (x, *ys), arguments)
    if needed is None:
        return numbers
    flags = dict(enumerate((needed[1], *needed[2]))) | dict(enumerate(needed[4], len(ys) + 3))
    return tuple(number for number in numbers if flags[number])
