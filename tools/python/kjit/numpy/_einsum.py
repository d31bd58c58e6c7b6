"""NumPy's forms of einsum arguments: axis lists instead of letters, and products that combine a few
arrays at a time."""

import string

from .._errors import CLASSES
from .._products import einsum as _one_pass
from ._errors import ShapeError

_ArgumentError = CLASSES["KJIT_ERROR_ARGUMENT"]


def read(operands):
    """Returns (expression, arrays) for the operands of einsum. The operands are an expression and
    arrays, or each array followed by the list of its axes. In the second form an additional list at
    the end has the result's axes."""
    if operands and isinstance(operands[0], str):
        return operands[0].replace(" ", ""), operands[1:]
    if len(operands) < 2:
        raise ValueError("einsum takes an expression and arrays, einsum('ij,jk->ik', a, b), or each array followed by the list of its axes")
    terms = [_term(axes) for axes in operands[1::2]]
    result = "->" + _term(operands[-1]) if len(operands) % 2 else ""
    return ",".join(terms) + result, operands[: len(terms) * 2 : 2]


def _term(axes):
    """Returns the letters of a list of axes."""
    if not isinstance(axes, (list, tuple)):
        raise TypeError(f"einsum: an array is followed by the list of its axes, not by {type(axes).__name__}")
    letters = []
    for axis in axes:
        if axis is not Ellipsis and not 0 <= axis < len(string.ascii_letters):
            raise ValueError(f"einsum: an axis must be an integer from 0 to {len(string.ascii_letters) - 1} or ..., not {axis}")
        letters.append("..." if axis is Ellipsis else string.ascii_letters[axis])
    return "".join(letters)


def compute(expression, arrays, optimize=False):
    """Returns the sum of products. optimize has NumPy's meaning: whether three or more arrays are
    multiplied two at a time, or the order of the products."""
    try:
        if optimize is not False and len(arrays) > 2 and "." not in expression:
            return _in_steps(expression, list(arrays), optimize)
        return _one_pass(expression, *arrays)
    except _ArgumentError as error:
        raise ShapeError(str(error)) from None


def view(expression, x):
    """Returns the view of an array that an expression without sums describes, such as "ij->ji" and "ii->i". Returns None
    for other expressions, and for those that do not fit the array."""
    terms, result = _parts(expression)
    if len(terms) != 1 or not x.ndim:
        return None
    letters, kept = (_axes(term, x.ndim, terms[0]) for term in (terms[0], result))
    if len(letters) != x.ndim or len(set(kept)) != len(kept) or set(kept) != set(letters):
        return None
    extents, strides = {}, dict.fromkeys(letters, 0)
    for letter, extent, stride in zip(letters, x.shape, x._strides):
        if extents.setdefault(letter, extent) != extent:
            return None
        strides[letter] += stride
    return x._view([extents[letter] for letter in kept], [strides[letter] for letter in kept], 0)


def _axes(term, rank, given):
    """Returns a term's axes: its letters, and in the place of `...` a number for each axis that it stands for. rank: the
    number of axes of the operand. given: the operand's term, which determines how many axes `...` stands for."""
    before, dots, after = term.partition("...")
    missing = rank - len(given.replace("...", ""))
    return [*before, *(range(missing) if dots else ()), *after]


def _in_steps(expression, arrays, optimize):
    """Multiplies a few of the arrays at a time, in the order that NumPy chooses."""
    import numpy

    # NumPy chooses the order by the shapes.
    shapes = [numpy.broadcast_to(numpy.int8(0), tuple(x.shape)) for x in arrays]
    path = numpy.einsum_path(expression, *shapes, optimize=optimize)[0][1:]
    terms, result = _parts(expression)
    for chosen in path:
        given = [(terms.pop(i), arrays.pop(i)) for i in sorted(chosen, reverse=True)]
        used = {letter for term, _ in given for letter in term}
        made = "".join(sorted(used & set("".join(terms) + result))) if terms else result
        arrays.append(_one_pass(",".join(term for term, _ in given) + "->" + made, *(x for _, x in given)))
        terms.append(made)
    return arrays[0]


def _parts(expression):
    """Returns the terms of the operands and the result's term. If the expression has no arrow, the result term
    consists of `...`, if an operand has it, and of the letters that occur once, in alphabetical order."""
    given, arrow, result = expression.partition("->")
    if arrow:
        return given.split(","), result
    letters = given.replace(",", "").replace(".", "")
    return given.split(","), "..." * ("..." in given) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
