"""Derivatives of algorithms: `kjit.pullback`, with a rule for each supported algorithm.

A rule takes the operands and keywords of its algorithm. It returns the result and a function `back`. `back`
takes the derivative of some number with respect to the result, and returns the derivatives of this number
with respect to the operands, with None for operands without a derivative. A rule with the parameter `needed`
computes only the derivatives that it selects: a flag, or a tuple of flags, for each operand; None selects
all.
"""

import inspect

from . import _folds, _orders, _pairs, _products, _systems
from . import _pair_derivatives as pair_derivatives
from . import _pullback_folds as folds
from . import _pullback_linear as linear
from ._algorithms import computed, map, numpy_array
from ._derivatives import holds_float, is_array
from ._elementwise import Elementwise
from ._traced import is_traced
from ._pullback_arrays import element_name, expanded, identity, reduced_to, repeated, rows_of, times

# ---- maps ----


def _map(function, *operands):
    operands = tuple(numpy_array(x) for x in operands)
    chosen = tuple(i for i, x in enumerate(operands) if holds_float(x))
    if not chosen:
        raise TypeError("kjit.pullback of kjit.map has no operand that holds floats")
    return rule_of_map(Elementwise(function, "kjit.pullback"), operands, chosen)


def rule_of_map(made, operands, chosen):
    """A map's rule, for derivatives with respect to the chosen operands. made: the Elementwise of
    the function."""
    result = map(made.function, *operands)

    def back(g):
        cotangents = g if isinstance(g, tuple) else (g,)
        found = map(made.pullback(chosen, [element_name(x) if is_array(x) else x for x in operands]), *operands, *cotangents)
        found = iter(found if isinstance(found, tuple) else (found,))
        return (None, *(reduced_to(next(found), _shape(x)) if i in chosen else None for i, x in enumerate(operands)))

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
    """Returns the derivative with respect to an operand: the product of the other operands and g, summed over
    the letters that the operand lacks."""
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
        found = found if right else map(times, found, g)
    rank = len(_shape(found)) - len(kept)
    found = expanded(found, [rank + i for i, letter in enumerate(letters) if letter not in known])
    shape = operands[index].shape
    if any(letter not in known for letter in letters):
        found = map(repeated, operands[index], found)
    return reduced_to(found, shape)


def rule_of_einsum(expression, operands, chosen):
    """The rule of a product without an epilogue, for derivatives with respect to the chosen
    operands."""
    terms, right = _parts(expression, len(operands))

    def back(g):
        return tuple(_einsum_operand(terms, right, operands, i, g) if i in chosen else None for i in range(len(operands)))

    return _products.einsum(expression, *operands), back


def _einsum(expression, *operands, epilogue=None, epilogue_operands=()):
    product, of_product = rule_of_einsum(expression, operands, range(len(operands)))
    more = tuple(epilogue_operands) if isinstance(epilogue_operands, (tuple, list)) else (epilogue_operands,)
    result, through = (product, None) if epilogue is None else _map(epilogue, product, *more)

    def back(g):
        by_more = ()
        if through:
            _, g, *by_more = through(g)
        return (None, *of_product(g), *by_more)

    return result, back


def expression_of_product(x, y):
    """Returns the expression of the matrix product as a sum of products."""
    left, right = ("j" if len(x.shape) == 1 else "...ij"), ("j" if len(y.shape) == 1 else "...jk")
    result = ("..." if "..." in left + right else "") + ("i" if "i" in left else "") + ("k" if "k" in right else "")
    return f"{left},{right}->{result}"


def _matmul(x, y, **keywords):
    value, back = _einsum(expression_of_product(x, y), x, y, **keywords)
    return value, lambda g: back(g)[1:]


# ---- matrices ----


def _entry(k, g, x, rows, columns):
    return g[rows[k]] * x[columns[k]]


def _entry_of_columns(k, g, x, rows, columns):
    total = g[rows[k], 0] * x[columns[k], 0]
    for j in range(1, x.shape[1]):
        total += g[rows[k], j] * x[columns[k], j]
    return total


def _entries(matrix, g, x):
    """Returns the derivatives with respect to the entries in a matrix in compressed rows. g: the derivative with respect to the
    product of the matrix and x."""
    rows = rows_of(matrix.indptr, matrix.nnz)
    of = _entry if len(x.shape) == 1 else _entry_of_columns
    return map(identity, computed(of, matrix.nnz, g, x, rows, matrix.indices))


def _dot(matrix, x, needed=None):
    """The rule of CSR.dot. The derivative with respect to the matrix is the derivative with respect to its entries, `data`."""
    if _products._is_sparse(x):
        raise TypeError("the product of two sparse matrices has no derivative rule; pass the right matrix as an array, B.to_dense()")
    return matrix.dot(x), lambda g: (_entries(matrix, g, x) if needed is None or needed[0] else None, matrix.T.dot(g))


def _negative(x):
    return -x


def rule_of_cg(a, b, needed=None, **keywords):
    """The derivative rule of cg, with a `kjit.Solution` as the result. `back` takes the derivative with
    respect to the solution's x."""
    solution = _systems.cg(a, b, **keywords)

    def back(g):
        u = _systems.cg(a, g, **keywords).x
        if needed is not None and not needed[0] or not (isinstance(a, _products.CSR) or holds_float(a)):
            return None, u
        by_matrix = _entries(a, u, solution.x) if isinstance(a, _products.CSR) else _products.einsum("i,j->ij", u, solution.x)
        return map(_negative, by_matrix), u

    return solution, back


def _cg(a, b, **keywords):
    """The derivative rule of cg with the solution's x as the result."""
    solution, back = rule_of_cg(a, b, **keywords)
    return solution.x, back


# ---- pairs ----


def _pairs_rule(function, x, y, operator="add", *, arguments=(), needed=None, **keywords):
    arguments = tuple(pair_derivatives.as_number(a) for a in arguments)
    ys = y if isinstance(y, tuple) else (y,)
    first = len(ys) + 3  # the number of the function's first argument
    chosen = _needed_of_pairs(_pairs.chosen(None, (x, *ys), arguments), len(ys), len(arguments), needed)
    if is_traced((x, ys, arguments)):
        result, of_chosen = pair_derivatives.rule(function, x, y, operator, arguments, chosen, keywords)
    else:
        result = _pairs.pairs(function, x, y, operator, arguments=arguments, **keywords)
        known = result if operator == "logaddexp" else None

        def of_chosen(g):
            if is_traced(g):
                return pair_derivatives.rule(function, x, y, operator, arguments, chosen, keywords)[1](g)
            return _pairs.pairs_gradient(
                function, x, y, operator, cotangents=g, result=known, arguments=arguments, by=chosen, **keywords
            )

    def back(g):
        by = dict(zip(chosen, of_chosen(g), strict=True))
        of_y = tuple(by.get(i) for i in range(1, len(ys) + 1))
        further = (by.get(i) for i in range(first, first + len(arguments)))
        return (None, by.get(0), of_y if isinstance(y, tuple) else of_y[0], *further)

    return result, back


def _needed_of_pairs(numbers, count, further, needed):
    """Returns the numbers of the parameters with respect to which derivatives are needed. count:
    the number of operands y; further: the number of arguments."""
    if needed is None:
        return numbers
    of_y = needed[2] if isinstance(needed[2], tuple) else (needed[2],) * count
    flags = [needed[1], *of_y, False, False, *needed[len(needed) - further :]]
    return tuple(number for number in numbers if flags[number])


# ---- the table ----

RULES = {
    _folds.reduce: folds.rule_of_reduce,
    _folds.scan: folds.rule_of_scan,
    _folds.scan_with_index: folds.rule_of_scan_with_index,
    _folds.reduce_segments: folds.rule_of_reduce_segments,
    _folds.reduce_by_key: folds.rule_of_reduce_by_key,
    _folds.scan_by_key: folds.rule_of_scan_by_key,
    _folds.scan_segments: folds.rule_of_scan_segments,
    _folds.bincount: folds.rule_of_bincount,
    map: _map,
    _products.einsum: _einsum,
    _products.matmul: _matmul,
    _products.CSR.dot: _dot,
    _systems.cg: _cg,
    _orders.sort: folds.rule_of_sort,
    _orders.sort_pairs: folds.rule_of_sort_pairs,
    _orders.top_k: folds.rule_of_top_k,
    _orders.select_where: folds.rule_of_select_where,
    _pairs.pairs: _pairs_rule,
}
# Operations that only rules use.
_INNER_RULES = {**linear.RULES, pair_derivatives.slopes: pair_derivatives.rule_of_slopes}



# Options that have no derivative: results are new arrays, and a plan is a single call.
_REFUSED = ("plan", "out", "needed")


def pullback(algorithm, *operands, **keywords):
    """Returns `(result, back)`: the result of an algorithm, and the function that computes derivatives backwards.

    `back(g)` takes the derivative of some number with respect to the result. It returns the derivatives of this number
    with respect to the operands, in their order: None for an operand without a derivative. The algorithm's operands
    come first, followed by an epilogue's operands or the `arguments` of pairs.

        total, back = kjit.pullback(kjit.reduce, x, "logaddexp")
        dx, = back(1.0)

    algorithm is kjit.reduce, scan, scan_with_index, reduce_segments, scan_segments, reduce_by_key, scan_by_key, bincount, map,
    einsum, matmul, CSR.dot, cg, sort, sort_pairs, top_k, select_where or pairs. operands and keywords are the algorithm's
    arguments; its derivative must support them. Raises TypeError for an algorithm, an operator or a keyword without a
    derivative.
    """
    return apply_rule(algorithm, operands, keywords, None)


def apply_rule(algorithm, operands, keywords, needed):
    """Returns `(result, back)` of an algorithm's rule. needed: see the beginning of this file."""
    rule = RULES.get(algorithm) or _INNER_RULES.get(algorithm)
    if rule is None:
        known = ", ".join(sorted(f.__qualname__ for f in RULES))
        raise TypeError(f"kjit.pullback: {getattr(algorithm, '__qualname__', algorithm)!s} has no derivative rule; {known} have one")
    known = inspect.signature(rule).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    for word in keywords:
        if word in _REFUSED or not (takes_all or word in known):
            raise TypeError(f"kjit.pullback of {algorithm.__qualname__} does not take {word}=")
    return rule(*operands, **keywords, needed=needed) if "needed" in known else rule(*operands, **keywords)
