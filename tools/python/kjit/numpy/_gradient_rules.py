"""The operations that kjit.grad records: ufuncs, functions of NumPy and of kjit.numpy, and kjit's
algorithms. The rules of functions that only move elements are in _gradient_moves."""

import functools
import math

import numpy

from .. import _folds, _orders, _pullbacks, _systems
from .._algorithms import map
from .._elementwise import Elementwise
from .._traced import is_traced, raw, without_traces
from . import _gradient_elements as elements
from . import _gradient_moves as moves
from ._tape import Traced, as_array, at_level, by, call, is_at_level, level_of, needed_of, take_part

# ---- algorithms ----

# Algorithms whose results are integers or flags, which have no derivative.
_DISCRETE_ALGORITHMS = {_orders.argsort, _orders.nonzero, _folds.search_sorted, _folds.histogram}
_DISCRETE_OPERATORS = {"argmax", "argmin", "any", "all", "count"}


def record(algorithm, operands, keywords):
    """Calls a kjit algorithm with traced operands, and records the call."""
    if algorithm in _DISCRETE_ALGORITHMS or algorithm is _folds.reduce and _operator(operands, keywords) in _DISCRETE_OPERATORS:
        return algorithm(*without_traces(operands), **{word: without_traces(x) for word, x in keywords.items()})
    if algorithm is map and not keywords:
        return _map(*operands)
    if algorithm is _systems.cg:
        return _solved(*operands, **keywords)
    if algorithm is _orders.sort and len(operands) == 1 and not keywords.keys() - {"axis", "descending"}:
        return _sort(operands[0], **{**keywords, "axis": _last(keywords.get("axis"))})
    if algorithm is _folds.scan_with_index and not keywords.keys() - {"operator", "axis"}:
        places = algorithm(*without_traces(operands), **keywords)[1]
        return moves.FUNCTIONS["take_along_axis"](operands[0], places, axis=_last(keywords.get("axis"))), places
    if algorithm is _orders.top_k and len(operands) == 2 and not keywords.keys() - {"axis", "descending"}:
        places = algorithm(*without_traces(operands), **keywords)[1]
        return moves.FUNCTIONS["take_along_axis"](operands[0], places, axis=_last(keywords.get("axis"))), places
    node = call(algorithm, *operands, **keywords)
    if algorithm is _folds.reduce_by_key:
        return node.value[0], take_part(node, 1)
    return tuple(take_part(node, i) for i in range(len(node.value))) if isinstance(node.value, tuple) else node


def _solved(a, b, **keywords):
    """Records a solution by cg. Only the solution has a derivative."""
    level = level_of((a, b))
    solution, back = _pullbacks.rule_of_cg(at_level(a, level), at_level(b, level), needed=needed_of((a, b), level), **keywords)
    return solution._replace(x=Traced(solution.x, level, (a, b), back))


def _last(axis):
    return -1 if axis is None else axis


def _operator(operands, keywords):
    found = operands[1] if len(operands) > 1 else keywords.get("operator")
    return found if isinstance(found, str) else None


def _elementwise(function):
    """Returns the Elementwise of a function. The Elementwise keeps compiled code and lives as long as the
    function."""
    known = getattr(function, "__dict__", {})
    if "__kjit_elementwise__" not in known:
        known["__kjit_elementwise__"] = Elementwise(function, "kjit.grad")
    return known["__kjit_elementwise__"]


def _map(function, *operands):
    """Records a map. Only the derivatives with respect to traced operands are computed."""
    level = level_of(operands)
    chosen = tuple(i for i, x in enumerate(operands) if is_at_level(x, level))
    given = tuple(as_list(at_level(x, level)) for x in operands)
    result, back = _pullbacks.rule_of_map(_elementwise(function), given, chosen)
    node = Traced(result, level, operands, lambda g: back(g)[1:])
    return tuple(take_part(node, i) for i in range(len(result))) if isinstance(result, tuple) else node


def as_list(x):
    return numpy.asarray(x) if isinstance(x, (list, tuple)) else x


# ---- ufuncs ----

_REDUCED = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "logaddexp": "logaddexp"}


def call_ufunc(ufunc, method, inputs, keywords):
    """Calls a NumPy ufunc with traced operands."""
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCED and not set(keywords) - {"axis", "keepdims"}:
        return _reduce(_REDUCED[name], inputs[0], keywords.get("axis", 0), keywords.get("keepdims", False))
    if method == "accumulate" and name in ("add", "multiply") and not set(keywords) - {"axis"}:
        return _scan(_REDUCED[name])(inputs[0], keywords.get("axis", 0))
    if method != "__call__" or keywords:
        return _call_other(ufunc, method, inputs, keywords)
    if name == "matmul":
        return _matmul(*inputs)
    if name in elements.DISCRETE:
        return ufunc(*without_traces(inputs))
    function = elements.FUNCTIONS.get(name)
    if function is None:
        raise no_rule(name)
    return _map(function, *inputs)


def _call_other(ufunc, method, inputs, keywords):
    """Handles a ufunc call with keywords, or a method such as `reduce`. Only one such call is
    supported: an update of a number in place, `total += x`. Its result is a new number, as for
    Python's numbers."""
    name, out = ufunc.__name__, keywords.get("out")
    if method == "__call__" and keywords.keys() == {"out"} and is_traced(out) and out[0] is inputs[0]:
        if out[0].shape == ():
            return ufunc(*inputs)
        raise TypeError(f"kjit.grad: {name} changes an array in place; write x = x + y instead of x += y")
    raise no_rule(f"{name}.{method}" if method != "__call__" else f"{name} with {', '.join(keywords)}=")


def no_rule(name):
    known = ", ".join(sorted(FUNCTIONS))
    return TypeError(f"kjit.grad: {name} has no derivative over whole arrays; operators, elementwise functions and {known} have one")


def call_traced(name, args, keywords):
    """Calls the function of NumPy or kjit.numpy with this name for arguments that include traced
    values."""
    rule = FUNCTIONS.get(name)
    if rule is not None:
        return rule(*args, **keywords)
    if name in elements.DISCRETE_FUNCTIONS:
        return getattr(numpy, name)(*without_traces(args), **keywords)
    name = elements.OTHER_NAMES.get(name, name)
    ufunc = getattr(numpy, name, None)
    if isinstance(ufunc, numpy.ufunc):
        return ufunc(*args, **keywords)
    raise no_rule(name)


# ---- reductions and scans ----


def _axes_of(x, axis):
    return tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))


def _reduce(operator, x, axis=None, keepdims=False):
    axes = _axes_of(x, axis)
    if not axes:
        return x
    shape = x.shape
    if operator in ("mul", "max", "min") and 1 < len(axes) < len(shape):
        # The rules of these operators reduce one axis.
        kept = [a for a in range(len(shape)) if a not in axes]
        rows = tuple(shape[a] for a in kept)
        result = call(_folds.reduce, moves.reshape(moves.transpose(x, (*kept, *axes)), (*rows, -1)), operator, axis=-1)
    else:
        result = call(_folds.reduce, x, operator, axis=None if len(axes) == len(shape) else axes)
    return moves.reshape(result, tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdims else result


def _reducing(operator):
    def rule(x, axis=None, *, keepdims=False):
        return _reduce(operator, x, axis, keepdims)

    return rule


def _variance(x, axis=None, *, ddof=0, correction=None, keepdims=False):
    d = x - _reduce("mean", x, axis, True)
    count = math.prod(x.shape[a] for a in _axes_of(x, axis)) - (ddof if correction is None else correction)
    return _reduce("add", d * d, axis, keepdims) / float(count)


def _deviation(x, axis=None, **keywords):
    return numpy.sqrt(_variance(x, axis, **keywords))


def _scan(operator):
    def rule(x, axis=None, **keywords):
        if keywords:
            raise no_rule(f"a scan with {', '.join(keywords)}=")
        if axis is None:
            x, axis = moves.reshape(x, (x.size,)), 0
        return call(_folds.scan, x, operator, axis=axis)

    return rule


def _sort(x, axis=-1, **keywords):
    if keywords.keys() - {"descending"}:
        raise no_rule("sort with other arguments than axis and descending")
    if axis is None:
        x, axis = moves.ravel(x), 0
    places = _orders.argsort(raw(x), axis=axis, **keywords)
    return moves.FUNCTIONS["take_along_axis"](x, places, axis=axis)


# ---- products ----


def _with_result(expression):
    """Returns an expression of einsum with its result. If the result is not written, it has the letters
    that occur once, in alphabetical order."""
    if "->" in expression:
        return expression
    letters = expression.replace(" ", "").replace(",", "").replace("...", "")
    dots = "..." if "..." in expression else ""
    return f"{expression}->{dots}{''.join(sorted(x for x in set(letters) if letters.count(x) == 1))}"


def _einsum(expression, *operands, **keywords):
    if keywords.keys() - {"optimize"}:
        raise no_rule(f"einsum with {', '.join(keywords)}=")
    expression = _with_result(expression)
    level = level_of(operands)
    given = [at_level(x, level) for x in operands]
    chosen = [i for i, x in enumerate(operands) if is_at_level(x, level)]
    result, back = _pullbacks.rule_of_einsum(expression, given, chosen)
    return Traced(result, level, operands, back)


def _matmul(a, b):
    a, b = as_list(a), as_list(b)
    return _einsum(_pullbacks.expression_of_product(a, b), a, b)


def _dot(a, b):
    a, b = as_list(a), as_list(b)
    ranks = numpy.ndim(a) if not is_traced(a) else a.ndim, numpy.ndim(b) if not is_traced(b) else b.ndim
    if min(ranks) == 0:
        return a * b
    return _matmul(a, b) if ranks[1] < 3 else _tensordot(a, b, ((-1,), (-2,)))


def _tensordot(a, b, axes=2):
    ranks = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        axes = range(ranks[0] - axes, ranks[0]), range(axes)
    left, right = (tuple(x) if hasattr(x, "__iter__") else (x,) for x in axes)
    letters = "abcdefghijklmnopqrstuvwxyz"
    of_a, of_b = list(letters[: ranks[0]]), list(letters[ranks[0] : sum(ranks)])
    for i, j in zip(left, right, strict=True):
        of_b[j] = of_a[i]
    kept = [x for x in of_a if x not in of_b] + [x for x in of_b if x not in of_a]
    return _einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}", a, b)


def _outer(a, b):
    return numpy.expand_dims(moves.ravel(a), 1) * moves.ravel(b)


def _inner(a, b):
    return _tensordot(a, b, ((-1,), (-1,))) if len(a.shape) and len(b.shape) else a * b


def _vdot(a, b):
    return _reduce("add", moves.ravel(a) * moves.ravel(b))


def _vecdot(a, b, *, axis=-1):
    return _reduce("add", a * b, axis)


# ---- choices and linear algebra ----


def _where(condition, a, b):
    return _map(elements.where, as_list(raw(condition)), as_list(a), as_list(b))


def _clip(x, min=None, max=None, a_min=None, a_max=None):
    low, high = a_min if min is None else min, a_max if max is None else max
    x = x if low is None else numpy.maximum(x, low)
    return x if high is None else numpy.minimum(x, high)


def _norm(x, ord=None, axis=None, keepdims=False):
    if ord is None or ord == 2 and (axis is not None and not isinstance(axis, tuple) or len(x.shape) == 1):
        return numpy.sqrt(_reduce("add", x * x, axis, keepdims))
    if ord == 1 and len(_axes_of(x, axis)) == 1:
        return _reduce("add", abs(x), axis, keepdims)
    raise no_rule(f"linalg.norm with ord={ord!r}")


def _astype(x, dtype, **keywords):
    before = x.dtype
    return by(x, lambda value: value.astype(dtype, **keywords), lambda g: g.astype(before))


def _part(name):
    """Returns the rule of real or imag. An array of real numbers is its own real part."""

    def rule(z):
        if numpy.dtype(str(raw(z).dtype)).kind == "c":
            return _map(elements.PARTS[name], z)
        return z if name == "real" else _where(False, z, 0.0)

    return rule


def _trace(x):
    return _reduce("add", moves.FUNCTIONS["diagonal"](x), -1)


def _diff(x, n=1, axis=-1):
    for _ in range(n):
        ahead, behind = ([slice(None)] * x.ndim for _ in range(2))
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        x = x[tuple(ahead)] - x[tuple(behind)]
    return x


FUNCTIONS = {
    "sum": _reducing("add"), "mean": _reducing("mean"), "prod": _reducing("mul"),
    "max": _reducing("max"), "amax": _reducing("max"), "min": _reducing("min"), "amin": _reducing("min"),
    "var": _variance, "std": _deviation,
    "cumsum": _scan("add"), "cumulative_sum": _scan("add"), "cumprod": _scan("mul"), "cumulative_prod": _scan("mul"),
    "sort": _sort, "diff": _diff, "where": _where, "clip": _clip,
    "matmul": _matmul, "dot": _dot, "einsum": _einsum, "tensordot": _tensordot, "outer": _outer, "inner": _inner, "vdot": _vdot,
    "vecdot": _vecdot, "norm": _norm, "trace": _trace, "astype": _astype,
    "real": _part("real"), "imag": _part("imag"), **moves.FUNCTIONS,
}  # fmt: skip

_METHODS = (
    "sum mean prod max min var std cumsum cumprod dot reshape ravel transpose swapaxes squeeze take repeat diagonal trace clip astype "
    "flatten sort"
)
_DISCRETE_METHODS = "argmax argmin argsort all any nonzero searchsorted round"


def _discrete(name):
    return lambda self, *args, **keywords: getattr(as_array(raw(self)), name)(*without_traces(args), **keywords)


@functools.cache
def attach():
    """Gives traced arrays the methods and operations of arrays."""
    for name in _METHODS.split():
        setattr(Traced, name, FUNCTIONS["ravel" if name == "flatten" else name])
    del Traced.sort  # the method of an array sorts in place
    for name in _DISCRETE_METHODS.split():
        setattr(Traced, name, _discrete(name))
    Traced.real, Traced.imag = property(FUNCTIONS["real"]), property(FUNCTIONS["imag"])
    Traced.conjugate = Traced.conj = lambda self: numpy.conjugate(self)
    Traced.T = property(moves.transpose)
    Traced.mT = property(FUNCTIONS["matrix_transpose"])
    Traced.copy = lambda self: self
    Traced.__getitem__ = moves.element
    Traced.__array_ufunc__ = lambda self, ufunc, method, *inputs, **keywords: call_ufunc(ufunc, method, inputs, keywords)
    Traced.__array_function__ = lambda self, function, types, args, keywords: call_traced(function.__name__, args, keywords)
