"""Derivatives of algorithms: `kjit.pullback`, with a rule for each algorithm that has one.

A rule takes the operands and keywords of its algorithm. It returns the result and a function that takes the derivative of some
number by the result, and returns the derivatives of this number by the operands: None for operands without a derivative."""

import inspect
import math

from . import _folds, _orders, _pairs, _products, dtypes
from ._algorithms import computed, map, new_array, numpy_array
from ._arrays import array, zeros
from ._derivatives import holds_float, is_array
from ._elementwise import Elementwise

# ---- arrays ----


def _like(x, shape, element):
    """An array of zeros of the kind of x: NumPy's, or kjit's on the device of x."""
    if hasattr(x, "to_host"):
        return zeros(shape, element, device=x.device)
    made = new_array(shape, element, None)
    made[...] = 0
    return made


def _numbers(x, count):
    """0 up to count - 1, where x is."""
    import numpy

    numbers = numpy.arange(count)
    return array(numbers, device=x.device) if hasattr(x, "to_host") else numbers


def _element(x):
    return dtypes.name_of(x.dtype) or str(x.dtype)


def _axes(axis, rank):
    """The reduced axes, from 0 on, in ascending order."""
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(a % rank for a in axes))


def _expanded(g, axes):
    """An array with an axis of extent 1 for each reduced one."""
    g = numpy_array(g)
    shape = list(getattr(g, "shape", ()))
    for a in axes:
        shape.insert(a, 1)
    if hasattr(g, "reshape"):
        return g.reshape(tuple(shape))
    import numpy

    return numpy.reshape(g, tuple(shape))


def _reduced_to(g, shape):
    """The sum of g over the axes along which an operand of a shape was repeated."""
    extra = len(g.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, extent in enumerate(shape) if extent == 1 and g.shape[i + extra] != 1))
    if axes:
        g = _folds.reduce(g, "add", axis=axes)
    return g.reshape(tuple(shape)) if tuple(getattr(g, "shape", ())) != tuple(shape) else g


def _reversed(x, axis):
    return x[tuple(slice(None, None, -1) if i == axis else slice(None) for i in range(len(x.shape)))]


# ---- reductions and scans ----


def _second(_, g):
    return g


def _share(_, g, count):
    return g / count


def _of_exponential(x, r, g):
    return g * math.exp(x - r)


def _at_place(x, i, place, g):
    return g if i == place else 0.0


def _product(a, b, g):
    return a * b * g


def _reduce(x, operator="add", *, axis=None):
    if operator not in ("add", "mean", "mul", "max", "min", "logaddexp"):
        raise _no_rule("kjit.reduce", operator, "add, mean, mul, max, min and logaddexp")
    axes = _axes(axis, len(x.shape))
    if operator == "mul":
        return _reduce_products(x, axes)
    if operator in ("max", "min"):
        return _reduce_extremes(x, operator, axis, axes)
    result = _folds.reduce(x, operator, axis=axis)
    if operator == "add":
        return result, lambda g: (map(_second, x, _expanded(g, axes)),)
    if operator == "mean":
        count = float(math.prod(x.shape[a] for a in axes))
        return result, lambda g: (map(_share, x, _expanded(g, axes), count),)
    return result, lambda g: (map(_of_exponential, x, _expanded(result, axes), _expanded(g, axes)),)


def _one_axis(x, axes, operator):
    """(x with the reduced axes as one, that axis)."""
    if len(axes) == 1:
        return x, axes[0]
    if len(axes) == len(x.shape):
        return x.reshape((math.prod(x.shape),)), 0
    raise TypeError(f"kjit.pullback: reductions by {operator!r} have a derivative over one axis or over all")


def _reduce_products(x, axes):
    line, axis = _one_axis(x, axes, "mul")
    result = _folds.reduce(line, "mul", axis=axis)

    def back(g):
        before = _folds.scan(line, "mul", axis=axis, exclusive=True)
        after = _reversed(_folds.scan(_reversed(line, axis), "mul", axis=axis, exclusive=True), axis)
        return (map(_product, before, after, _expanded(g, (axis,))).reshape(x.shape),)

    return result, back


def _reduce_extremes(x, operator, axis, axes):
    line, at = _one_axis(x, axes, operator)
    result = _folds.reduce(x, operator, axis=axis)

    def back(g):
        place = _folds.reduce(line, f"arg{operator}", axis=at)
        shape = tuple(line.shape[at] if i == at else 1 for i in range(len(line.shape)))
        numbers = _numbers(x, line.shape[at]).reshape(shape)
        return (map(_at_place, line, numbers, _expanded(place, (at,)), _expanded(g, (at,))).reshape(x.shape),)

    return result, back


def _scan(x, operator="add", *, axis=None, exclusive=False):
    if operator != "add":
        raise _no_rule("kjit.scan", operator, "add")
    at = (-1 if axis is None else axis) % len(x.shape)
    result = _folds.scan(x, "add", axis=at, exclusive=exclusive)
    return result, lambda g: (_reversed(_folds.scan(_reversed(g, at), "add", axis=at, exclusive=exclusive), at),)


def _times(x, g):
    return x * g


# ---- maps ----


def _map(function, *operands):
    made = Elementwise(function, "kjit.pullback")
    operands = tuple(numpy_array(x) for x in operands)
    chosen = tuple(i for i, x in enumerate(operands) if holds_float(x))
    if not chosen:
        raise TypeError("kjit.pullback of kjit.map has no operand that holds floats")
    result = map(made.function, *operands)

    def back(g):
        cotangents = g if isinstance(g, tuple) else (g,)
        found = map(made.pullback(chosen, [_element(x) if is_array(x) else x for x in operands]), *operands, *cotangents)
        found = iter(found if isinstance(found, tuple) else (found,))
        return (None, *(_reduced_to(next(found), _shape(x)) if i in chosen else None for i, x in enumerate(operands)))

    return result, back


def _shape(x):
    return tuple(getattr(x, "shape", ()))


# ---- products ----


def _parts(expression, count):
    text = expression.replace(" ", "")
    left, _, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != count or "->" not in text:
        raise TypeError("kjit.pullback of kjit.einsum takes an expression with a term for each operand and a result: 'ij,jk->ik'")
    for term in terms:
        letters = term.replace("...", "")
        if len(set(letters)) < len(letters):
            raise TypeError(f"kjit.pullback of kjit.einsum: the term {term!r} repeats a letter, which has no derivative yet")
    return terms, right


def _einsum_operand(terms, right, operands, index, g):
    """The derivative by an operand: the product of the others and of g, over the letters that the operand lacks."""
    others = [(terms[i], x) for i, x in enumerate(operands) if i != index]
    known = set(right).union(*(set(term) for term, _ in others))
    letters = terms[index].replace("...", "")
    kept = "".join(letter for letter in letters if letter in known)
    dots = "..." if any("..." in term for term in (*terms, right)) else ""
    if right:
        others.append((right, g))
    found = g
    if others:
        found = _products.einsum(",".join(term for term, _ in others) + "->" + dots + kept, *(x for _, x in others))
        found = found if right else map(_times, found, g)
    rank = len(_shape(found)) - len(kept)
    found = _expanded(found, [rank + i for i, letter in enumerate(letters) if letter not in known])
    shape = operands[index].shape
    if any(letter not in known for letter in letters):
        found = map(_second, operands[index], found)
    return _reduced_to(found, shape)


def _einsum(expression, *operands, epilogue=None, epilogue_operands=()):
    terms, right = _parts(expression, len(operands))
    product = _products.einsum(expression, *operands)
    more = tuple(epilogue_operands) if isinstance(epilogue_operands, (tuple, list)) else (epilogue_operands,)
    result, through = (product, None) if epilogue is None else _map(epilogue, product, *more)

    def back(g):
        by_more = ()
        if through:
            _, g, *by_more = through(g)
        return (None, *(_einsum_operand(terms, right, operands, i, g) for i in range(len(operands))), *by_more)

    return result, back


def _matmul(x, y, **keywords):
    left, right = ("j" if len(x.shape) == 1 else "...ij"), ("j" if len(y.shape) == 1 else "...jk")
    result = ("..." if "..." in left + right else "") + ("i" if "i" in left else "") + ("k" if "k" in right else "")
    value, back = _einsum(f"{left},{right}->{result}", x, y, **keywords)
    return value, lambda g: back(g)[1:]


# ---- segments and matrices ----


def _gathered(i, g, rows, count):
    row = rows[i]
    return g[row] if row >= 0 and row < count else 0.0


def _rows_of(offsets, count):
    """The segment of each element; -1 or the number of segments for an element of none."""
    return _folds.search_sorted(offsets, _numbers(offsets, count), right=True) - 1


def _take(g, rows, count):
    return map(_first, computed(_gathered, rows.shape[0], g, rows, count))


def _first(x):
    return x


def _reduce_segments(x, offsets, operator="add"):
    if operator not in ("add", "logaddexp", "max", "min"):
        raise _no_rule("kjit.reduce_segments", operator, "add, logaddexp, max and min")
    result = _folds.reduce_segments(x, offsets, operator)
    segments = offsets.shape[0] - 1

    def back(g):
        rows = _rows_of(offsets, x.shape[0])
        taken = _take(g, rows, segments)
        if operator == "add":
            return taken, None
        of_row = _take(result, rows, segments)
        if operator == "logaddexp":
            return map(_of_exponential, x, of_row, taken), None
        numbers = _numbers(x, x.shape[0])
        hits = map(_hit, x, of_row, numbers, x.shape[0])
        first = _folds.reduce_segments(hits, offsets, "min")
        return map(_at_place, x, numbers, _take(first, rows, segments), taken), None

    return result, back


def _hit(x, r, i, count):
    return i if x == r else count


def _entry(k, g, x, rows, columns):
    return g[rows[k]] * x[columns[k]]


def _entry_of_columns(k, g, x, rows, columns):
    total = g[rows[k], 0] * x[columns[k], 0]
    for j in range(1, x.shape[1]):
        total += g[rows[k], j] * x[columns[k], j]
    return total


def _entries(matrix, g, x):
    """The derivatives by the entries of a matrix in compressed rows, from those by its product with x."""
    rows = _rows_of(matrix.indptr, matrix.nnz)
    of = _entry if len(x.shape) == 1 else _entry_of_columns
    return map(_first, computed(of, matrix.nnz, g, x, rows, matrix.indices))


def _multiply(matrix, x):
    """The derivative by the matrix is that by its entries, `data`."""
    return matrix.multiply(x), lambda g: (_entries(matrix, g, x), matrix.T.multiply(g))


def _negative(x):
    return -x


def _cg(a, b, **keywords):
    """The result is the solution alone."""
    x = _products.cg(a, b, **keywords).x

    def back(g):
        u = _products.cg(a, g, **keywords).x
        by_matrix = _entries(a, u, x) if isinstance(a, _products.CSR) else _products.einsum("i,j->ij", u, x)
        return map(_negative, by_matrix), u

    return x, back


# ---- orders ----


def _check_line(name, x):
    if len(x.shape) != 1:
        raise TypeError(f"kjit.pullback of {name} takes an array of one axis, not of {len(x.shape)}")


def _scattered(x, places, g):
    made = _like(x, x.shape, _element(x))
    _folds.update_at(made, places, g)
    return made


def _sort(x, *, descending=False):
    _check_line("kjit.sort", x)
    places = _orders.argsort(x, descending=descending)
    return _take(x, places, x.shape[0]), lambda g: (_scattered(x, places, g),)


def _top_k(x, k, *, descending=False):
    """The derivative is by the elements. The places are no result."""
    _check_line("kjit.top_k", x)
    values, places = _orders.top_k(x, k, descending=descending)
    return values, lambda g: (_scattered(x, places, g), None)


def _select_where(x, flags):
    _check_line("kjit.select_where", x)
    places = _orders.nonzero(flags)
    return _orders.select_where(x, flags), lambda g: (_scattered(x, places, g), None)


def _pairs_rule(function, x, y, operator="add", *, arguments=(), **keywords):
    result = _pairs.pairs(function, x, y, operator, arguments=arguments, **keywords)
    known = result if operator == "logaddexp" else None
    rows = (x, *y) if isinstance(y, tuple) else (x, y)

    def back(g):
        found = _pairs.pairs_gradient(
            function, x, y, operator, cotangents=g, result=known, arguments=arguments, by=chosen, **keywords
        )
        by = dict(zip(chosen, found))
        of_y = tuple(by.get(i) for i in range(1, len(rows)))
        further = (by.get(i) for i in range(len(rows) + 2, len(rows) + 2 + len(arguments)))
        return (None, by.get(0), of_y if isinstance(y, tuple) else of_y[0], *further)

    chosen = _pairs.chosen(None, rows, tuple(arguments))
    return result, back


# ---- the table ----

RULES = {
    _folds.reduce: _reduce,
    _folds.scan: _scan,
    _folds.reduce_segments: _reduce_segments,
    map: _map,
    _products.einsum: _einsum,
    _products.matmul: _matmul,
    _products.CSR.multiply: _multiply,
    _products.cg: _cg,
    _orders.sort: _sort,
    _orders.top_k: _top_k,
    _orders.select_where: _select_where,
    _pairs.pairs: _pairs_rule,
}


# What no derivative takes: results are new arrays, and a plan is one call.
_REFUSED = ("plan", "out")


def _no_rule(name, operator, known):
    text = repr(operator) if isinstance(operator, str) else "a function"
    return TypeError(f"kjit.pullback: {name} has derivatives for the operators {known}, not for {text}")


def pullback(algorithm, *operands, **keywords):
    """Returns `(result, back)`: the result of an algorithm, and the function that computes derivatives backwards.

    `back(g)` takes the derivative of some number by the result. It returns the derivatives of this number by the
    operands, in their order: None for an operand without a derivative. The operands of an epilogue and `arguments` of
    pairs follow the operands of the algorithm.

        total, back = kjit.pullback(kjit.reduce, x, "logaddexp")
        dx, = back(1.0)

    algorithm is kjit.reduce, scan, reduce_segments, map, einsum, matmul, CSR.multiply, cg, sort, top_k, select_where or
    pairs. operands and keywords are those of the algorithm, if its derivative takes them. Raises TypeError for an
    algorithm, an operator or a keyword without a derivative.
    """
    rule = RULES.get(algorithm)
    if rule is None:
        known = ", ".join(sorted(f.__qualname__ for f in RULES))
        raise TypeError(f"kjit.pullback: {getattr(algorithm, '__qualname__', algorithm)!s} has no rule; {known} have one")
    known = inspect.signature(rule).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    for word in keywords:
        if word in _REFUSED or not (takes_all or word in known):
            raise TypeError(f"kjit.pullback of {algorithm.__qualname__} does not take {word}=")
    return rule(*operands, **keywords)
