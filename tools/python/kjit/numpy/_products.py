"""Products of matrices and vectors, computed by kjit's algorithms."""

from .. import _kjit, _state
from . import _dtypes, _engine
from ._dtypes import KIND
from ._engine import Array, elementwise
from ._errors import ShapeError
from ._operands import operator_operands
from ._table import ROWS


def _prepared(x1, x2, what):
    """Returns (x1, x2, type): both operands as arrays of the type that they promote to. Raises
    ShapeError for operands without dimensions."""
    operands = [_engine.operand(x, what) for x in (x1, x2)]
    if any(not getattr(x, "ndim", 0) for x in operands):
        raise ShapeError(f"{what}: an operand has no dimensions; multiply with `*`")
    text = _dtypes.promote([_dtypes.text_of(x) for x in operands], what)
    from . import _creation

    device = _engine.common_device(operands, what)
    arrays = [x if isinstance(x, Array) else _creation.asarray(x, device=device) for x in operands]
    return *(_engine.converted(x, text) for x in arrays), text


def matmul(x1, x2, /, *, out=None):
    """Returns the matrix product of the last two dimensions; the other dimensions broadcast. A
    one-dimensional array is a row on the left and a column on the right. Raises ShapeError if the
    inner extents differ. An element of a bool product is true if both operands are true in at least
    one of its terms."""
    x1, x2, text = _prepared(x1, x2, "matmul")
    if text == "bool":
        return _stored_bools(matmul(*_as_numbers((x1, x2))), out)
    rows, columns = tuple(x1.shape), tuple(x2.shape)
    inner = columns[-2] if len(columns) > 1 else columns[0]
    if rows[-1] != inner:
        raise ShapeError(f"matmul: the shapes {rows} and {columns} do not fit: {rows[-1]} is not {inner}")
    shape = _engine.broadcast([rows[:-2], columns[:-2]], "matmul: operands") + rows[-2:-1] + (columns[-1:] if len(columns) > 1 else ())
    made = _engine.new(shape, text, x1.device)
    if made.size:
        if inner:
            _kjit.run_algorithm(_state.context(), "matmul", (made, x1, x2), device=x1.device)
        else:
            _engine.assign(made, 0)
    if out is None:
        return made
    _engine.check_out(out, shape, text, "matmul")
    _engine.assign(out, made)
    return out


def _as_numbers(bools):
    """Returns arrays of bools as float32. A sum of products of these numbers is 0 only if each
    product is, because no product is negative."""
    return [_engine.converted(x, "f32") for x in bools]


def _stored_bools(sums, out=None):
    return elementwise(ROWS["not_equal"], (sums, 0), out)


def tensordot(x1, x2, /, axes=2):
    """Returns the sum of products over axes of both arrays. axes: a number n, for the last n axes
    of x1 and the first n axes of x2, or a pair of axis sequences."""
    x1, x2, text = _prepared_any(x1, x2, "tensordot")
    if _engine.is_index(axes):
        count = int(axes)
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ShapeError(f"tensordot: cannot sum over {count} axes of arrays with {x1.ndim} and {x2.ndim} dimensions")
        axes = tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
    first = _engine.normalize_axes(tuple(axes[0]), x1.ndim)
    second = _engine.normalize_axes(tuple(axes[1]), x2.ndim)
    if [x1.shape[i] for i in first] != [x2.shape[i] for i in second]:
        raise ShapeError(f"tensordot: the summed axes have the extents {[x1.shape[i] for i in first]} in x1, but {[x2.shape[i] for i in second]} in x2")
    from . import _manipulation

    rows = [i for i in range(x1.ndim) if i not in first]
    columns = [i for i in range(x2.ndim) if i not in second]
    inner = 1
    for i in first:
        inner *= x1.shape[i]
    shape = tuple(x1.shape[i] for i in rows) + tuple(x2.shape[i] for i in columns)
    left = _manipulation.reshape(_manipulation.permute_dims(x1, (*rows, *first)), (_size(x1, rows), inner))
    right = _manipulation.reshape(_manipulation.permute_dims(x2, (*second, *columns)), (inner, _size(x2, columns)))
    return _manipulation.reshape(matmul(left, right), shape)._mark_result()


def _size(x, axes):
    size = 1
    for axis in axes:
        size *= x.shape[axis]
    return size


def _prepared_any(x1, x2, what):
    """Returns the same as _prepared, but accepts operands without dimensions."""
    text = _dtypes.promote([_dtypes.text_of(x1), _dtypes.text_of(x2)], what)
    _engine.common_device((x1, x2), what)
    return _engine.converted(x1, text), _engine.converted(x2, text), text


def vecdot(x1, x2, /, *, axis=-1):
    """Returns the sums of products along an axis of two arrays that broadcast. For complex numbers
    x1 is conjugated."""
    x1, x2, text = _prepared(x1, x2, "vecdot")
    rank = min(x1.ndim, x2.ndim)
    if not -rank <= axis < 0:
        axis = _engine.normalize_axis(axis, rank) - rank
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: axis {axis} has the different extents {x1.shape[axis]} and {x2.shape[axis]}")
    if KIND[text] == "c":
        x1 = elementwise(ROWS["conj"], (x1,))
    if x1.ndim == x2.ndim == 1:
        return matmul(x1, x2)
    from . import _manipulation

    left = _manipulation.expand_dims(_manipulation.moveaxis(x1, axis, -1), axis=-2)
    right = _manipulation.expand_dims(_manipulation.moveaxis(x2, axis, -1), axis=-1)
    return _manipulation.squeeze(matmul(left, right), axis=(-2, -1))


def dot(x1, x2, /):
    """Returns the product of two arrays, like `numpy.dot`: for vectors and matrices `matmul`, and
    with a scalar `*`."""
    if not getattr(x1, "ndim", 0) or not getattr(x2, "ndim", 0):
        return elementwise(ROWS["multiply"], (x1, x2))
    if x2.ndim <= 2:
        return matmul(x1, x2) if x1.ndim <= 2 or x2.ndim == 2 else tensordot(x1, x2, axes=1)
    return tensordot(x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 2,)))


def outer(x1, x2, /):
    """Returns the product of each element of x1 with each element of x2. Both are flattened first."""
    return elementwise(ROWS["multiply"], (x1.reshape((x1.size, 1)), x2.reshape((1, x2.size))))


def einsum(*operands, optimize=False):
    """Returns the sum of products that the operands describe, like `numpy.einsum`: an expression
    such as "ij,jk->ik" and arrays, or arrays and their lists of axes in turn. optimize: whether
    three or more arrays are multiplied two at a time, or NumPy's name or list for the order. The
    result is a view of a single array if nothing is added up: einsum("ii->i", x)[...] = 0."""
    from . import _creation, _einsum

    expression, given = _einsum.read(operands)
    device = next((x.device for x in given if isinstance(x, Array)), None)
    arrays = [x if isinstance(x, Array) else _creation.asarray(x, device=device) for x in given]
    found = _einsum.view(expression, arrays[0]) if len(arrays) == 1 else None
    if found is not None:
        return found
    text = _dtypes.promote([_dtypes.text_of(x) for x in arrays], "einsum")
    if text == "bool":
        return _stored_bools(_einsum.compute(expression, _as_numbers(arrays), optimize))
    made = _einsum.compute(expression, [_engine.converted(x, text) for x in arrays], optimize)
    return made if made.ndim or made._is_scalar else _engine.copied_result(made)


def operator(self, other):
    found = None if _dtypes.is_scalar(other) else operator_operands("__rmatmul__", (self, other))
    return NotImplemented if found is None else matmul(*found)


def reflected(self, other):
    found = None if _dtypes.is_scalar(other) else operator_operands("__matmul__", (other, self))
    return NotImplemented if found is None else matmul(*found)


def in_place(self, other):
    found = None if _dtypes.is_scalar(other) else operator_operands("__rmatmul__", (self, other))
    if found is None:
        return NotImplemented
    if not self.ndim or getattr(found[1], "ndim", 0) < 2:
        raise ShapeError(f"x @= y: x must have at least one dimension and y at least two, but they have the shapes {self.shape} and {tuple(found[1].shape)}")
    return matmul(*found, out=self)


METHODS = {"__matmul__": _kjit.shortcut(operator), "__rmatmul__": reflected, "__imatmul__": in_place}
FUNCTIONS = (matmul, tensordot, vecdot, dot, outer, einsum)
