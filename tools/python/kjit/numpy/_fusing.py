"""Fusion: decides which recorded operations become one kernel and when this kernel is compiled, and
implements `kjit.explain`.

The extension records element-wise operations as expressions (tools/python/src/expression.c). When
it computes an expression, it asks `choose` for a func. An expression's key consists of its
operations, their operands' positions, and the array layouts.
"""

import atexit
import functools
import os
import sys
import threading
from typing import Any

from .. import _kjit, _state
from .._errors import Error
from ..frontend.words import Text
from . import _dtypes, _engine, _operands
from ._dtypes import KIND
from ._engine import Array
from ._funcs import Func

NEVER, LATER, NOW = range(3)
_MODES = {False: NEVER, True: LATER, "now": NOW}
_WORDS = {"": LATER, "1": LATER, "on": LATER, "0": NEVER, "off": NEVER, "now": NOW}
# An expression is compiled when it is computed for the second time. At most 16 expressions wait for
# the compiler.
_SIGHTINGS, _MOST_WAITING = 2, 16

# The compiled func of each expression, by the expression's key, which is a tuple for a reduction. A
# func is a pair (module, name), or a Line of the extension for an element-wise expression on the
# CPU. The extension reads this dictionary.
FUNCTIONS: dict[bytes | tuple, Any] = {}
_expressions: dict[bytes | tuple, "Expression"] = {}


class Expression:
    """An expression: its operations, the number of times it was computed, and its func."""

    def __init__(self, nodes, inputs):
        self.nodes = nodes
        self.inputs = [_describe(x) for x in inputs]
        # For the index of each input that is a Python number: the type that the operation gives to this number.
        self.scalars = {
            i: next(kernel.scalar for kernel, *places in nodes if i in places) for i, x in enumerate(inputs) if type(x) in (int, float)
        }
        self.sightings = 0
        self.state = "not compiled: an expression is compiled when it is computed for the second time"
        self.is_waiting = False
        self.is_given_up = False

    def typed(self, inputs):
        """Returns the inputs with each Python number converted to a scalar of its operation's type.
        """
        inputs = list(inputs)
        for i, scalar in self.scalars.items():
            inputs[i] = _engine.typed(inputs[i], scalar)
        return inputs

    def lines(self):
        """Yields the operations as lines in the kernel IR."""
        for i, (kernel, *places) in enumerate(self.nodes):
            names = [f"x{place}" if place >= 0 else f"t{-1 - place}" for place in places]
            yield f"let t{i} = {kernel.expression(names)}"

    def func(self):
        """Returns the func that computes one element from the elements of the inputs."""
        names = ", ".join(f"x{i}" for i in range(len(self.inputs)))
        return self._func("fused", names, [])

    def computed(self, rank, inputs):
        """Returns the func that computes the element at given indices. inputs: arrays of that rank,
        and numbers."""
        indices = ", ".join(f"i{n}" for n in range(rank))
        loaded = [f"let x{i} = a{i}[{indices}]" for i, x in enumerate(inputs) if isinstance(x, Array)]
        names = [f"{'a' if isinstance(x, Array) else 'x'}{i}" for i, x in enumerate(inputs)]
        return self._func("computed", ", ".join([indices, *names] if rank else names), loaded)

    def has_line(self, inputs):
        """Returns whether the extension can compute the expression by a C function: its operations
        have the same bits in all code, and its inputs are arrays and Python numbers."""
        numbers = (self.scalars.get(i) for i, x in enumerate(inputs) if not isinstance(x, Array))
        return all(kernel.is_exact for kernel, *_ in self.nodes) and all(scalar in ("f32", "f64") or scalar and KIND[scalar] in "iu" for scalar in numbers)

    def line(self, texts):
        """Returns the func of the extension's C function: a loop over arrays without gaps. texts: the
        element types of the inputs."""
        given = [f"p{i}[i]" if i not in self.scalars else f"x{i}" for i in range(len(texts))]
        lines = ["let n = i64(a[0])", f"let r = bitcast({self.nodes[-1][0].result}*, a[1])"]
        for i, text in enumerate(texts):
            lines.append(_input_of_line(i, text, i in self.scalars))
        lines.append(f"for i in range(n) {{ r[i] = fused({', '.join(given)}) }}")
        body = "".join(f"  {line}\n" for line in lines)
        return Func("line", f"func line(a: const u64*) @strict {{\n{body}}}", (_as_text(self.func()),))

    def _func(self, name, parameters, before):
        body = "".join(f"  {line}\n" for line in [*before, *self.lines(), f"return t{len(self.nodes) - 1}"])
        needs = {need.__name__: need for kernel, *_ in self.nodes for need in kernel.needs}
        return Func(name, f"func {name}({parameters}) @strict {{\n{body}}}", tuple(needs.values()))


def _as_text(func):
    """Returns the Text of a Func, so that another Func can list it among the funcs that it
    calls."""
    return Text(func.name, func.text)


def _input_of_line(i, text, is_number):
    """Returns the line of kernel IR that reads input i of a C function: an address, or the bits of a
    number."""
    word = f"a[{i + 2}]"
    if not is_number:
        return f"let p{i} = bitcast(const {text}*, {word})"
    return f"let x{i} = " + (f"bitcast(f32, u32({word}))" if text == "f32" else f"bitcast(f64, {word})" if text == "f64" else f"{text}({word})")


def _describe(x):
    if not isinstance(x, Array):
        return f"the number {x!r}"
    return f"{x.dtype.name}{list(x.shape)}"


def _find(key, nodes, inputs):
    found = _expressions.get(key)
    if found is None:
        found = _expressions[key] = Expression(nodes, inputs)
    return found


def choose(expression, result):
    """Returns the func of an expression as (module, name).

    If the result is None, the caller must run the operations one by one. If it is a function, the caller
    must do the same and call the function afterwards; it starts the compilation.
    """
    key, nodes, inputs = expression
    found = _find(key, nodes, inputs)
    if len(nodes) == 1:
        FUNCTIONS[key] = _with_line(found, nodes[0][0].func.pair_in(_state.context()), inputs, result)
        return FUNCTIONS[key]

    def prepare(pair):
        given = tuple(found.typed(inputs))
        _kjit.run_algorithm(_state.context(), "map", ((result,), pair, given), device=result.device, plan=True)

    return _ready(found, key, found.func, prepare, lambda pair: _with_line(found, pair, inputs, result))


def _with_line(found, pair, inputs, result):
    """Returns the Line of an expression on the CPU, or the func itself if there is none."""
    if result.device != "cpu" or not found.has_line(inputs):
        return pair
    texts = [x.dtype.text if isinstance(x, Array) else found.scalars[i] for i, x in enumerate(inputs)]
    return _kjit.make_line(_state.context(), pair, found.nodes[-1][0].result, lambda line: _compile_line(found, texts, line))


def _ready(found, key, make, prepare, finish=lambda pair: pair):
    """Returns the func of an expression in the mode NOW; its first run compiles it. In the mode
    LATER, returns a function that starts the compilation on another thread. Returns None if nothing
    is to be compiled. prepare(pair) compiles the func. finish(pair) returns the entry of the func in
    FUNCTIONS."""
    found.sightings += 1
    if _mode == NEVER or found.is_given_up:
        return None
    if _mode == NOW:
        try:
            pair = FUNCTIONS[key] = finish(make().pair())
        except Error as error:
            return _give_up(found, error)
        found.state = "one kernel"
        return pair
    if found.sightings >= _SIGHTINGS and not found.is_waiting:
        return functools.partial(_compile_later, found, functools.partial(_compile_kernel, found, key, make, prepare, finish))
    return None


def fail(key, error):
    """Records that a func could not be run. The caller then runs the operations one by one."""
    found = _expressions.get(key)
    FUNCTIONS.pop(key, None)
    if found is None:
        return
    wait()  # compilations in progress hold references to arrays, so waiting for their end frees memory
    if isinstance(error, (MemoryError, _kjit_class("KJIT_ERROR_MEMORY"))):
        found.state = f"run one by one, as memory was short: {error}"
        return
    _give_up(found, error)


def _kjit_class(name):
    from .._errors import CLASSES

    return CLASSES[name]


def _give_up(found, error):
    import logging

    found.is_given_up = True
    found.state = f"run one by one, as the kernel was not compiled: {error}"
    logging.getLogger("kjit.numpy").debug("an expression was not fused: %s", error)


# ---- compilation on another thread ----

_lock = threading.Lock()
_waiting: list = []
_is_working = _is_leaving = False
_is_idle = threading.Condition(_lock)


def _renew():
    """Replaces the lock in a forked child, because a thread of the parent may hold it, and forgets
    the waiting expressions. The child has no compiling thread."""
    global _lock, _is_idle, _is_working
    _lock = threading.Lock()
    _is_idle = threading.Condition(_lock)
    _is_working = False
    _waiting.clear()


os.register_at_fork(after_in_child=_renew)


@atexit.register
def _leave():
    """Prevents further jobs from beginning at exit. `_state` interrupts the running job afterwards, because exit
    handlers that were registered earlier run later."""
    global _is_leaving
    with _lock:
        _is_leaving = True
        del _waiting[1:]


def _enqueue(job):
    """Lets the compiling thread call job(). Returns False if too many jobs wait, or at exit."""
    global _is_working
    with _lock:
        if _is_leaving or len(_waiting) >= _MOST_WAITING:
            return False
        _waiting.append(job)
        if not _is_working:
            _is_working = True
            threading.Thread(target=_work, name="kjit-fuse", daemon=True).start()
    return True


def _compile_later(found, job):
    found.is_waiting, before = True, found.state
    found.state = "being compiled"
    if not _enqueue(job):
        found.is_waiting, found.state = False, before


def _compile_kernel(found, key, make, prepare, finish):
    try:
        pair = make().pair()
        prepare(pair)
        found.state = "one kernel"
        FUNCTIONS[key] = finish(pair)
    except Exception as error:
        # any failure is acceptable here, because without compiled code the operations run one by one
        _give_up(found, error)


def _compile_line(found, texts, line):
    """Compiles the C function of a Line on another thread. Returns False if too many jobs wait; the
    extension then has to ask again."""
    context = _state.context()

    def compile_function():
        try:
            _kjit.set_line(line, context, found.line(texts).pair_in(context))
        except Exception as error:  # any failure is acceptable here, because the func computes the same result
            import logging

            logging.getLogger("kjit.numpy").debug("an expression has no C function: %s", error)

    return _enqueue(compile_function)


def _work():
    global _is_working
    while True:
        with _lock:
            if not _waiting:
                _is_working = False
                _is_idle.notify_all()
                return
            job = _waiting[0]
        job()
        del job  # frees the arrays that the job holds
        with _lock:
            if _waiting:
                _waiting.pop(0)


def wait():
    """Waits until no expression is being compiled."""
    with _lock:
        while _is_working and threading.current_thread().name != "kjit-fuse":
            _is_idle.wait()


# ---- reductions ----


class Reduced:
    """A pending array as a reduction's operand, which computes the expression in the same pass.
    axes: this operand's axes to reduce."""

    def __init__(self, operand, axes):
        self.operand, self.axes = operand, axes


def computed(x, kind, prepare):
    """Returns an operand that an algorithm computes element by element from a pending array, or
    None if the array has to be computed first.

    kind: a tuple that identifies the algorithm and its types. prepare(operand): compiles the
    algorithm for the operand.
    """
    if not x.size or not x.ndim or _mode == NEVER:
        return None
    collected = _kjit.collect(x)
    if collected is None:
        return None
    key, nodes, inputs = collected
    shape = x.shape
    arrays = _arrays(_find(key, nodes, inputs), inputs, shape)
    operand = _in_one_pass((key, *kind, len(shape)), nodes, inputs, shape, arrays, prepare)
    if operand is not None:
        _kjit.mark(x)
    return operand


def _arrays(found, inputs, shape):
    """Returns an expression's inputs as arrays broadcast to a shape, and typed numbers."""
    return [_spread(each, shape) if isinstance(each, Array) else each for each in found.typed(inputs)]


def _in_one_pass(key, nodes, inputs, shape, arrays, prepare):
    """Returns the operand that computes an expression in one pass, or None while the algorithm is
    not yet compiled for it."""
    found = _find(key, nodes, inputs)
    pair = FUNCTIONS.get(key)
    if pair is None:
        pair = _ready(
            found, key, lambda: found.computed(len(shape), arrays), lambda pair: prepare((*pair, shape, tuple(arrays)))
        )
        if not isinstance(pair, tuple):
            if pair is not None:
                pair()
            return None
    return (*pair, shape, tuple(arrays))


def reduced(x, name, axes, text, options):
    """Returns the Reduced of a pending array, or None if the array has to be computed first. name, axes, options: the
    reduction's arguments; text: its type."""
    if not x.size or not x.ndim or not isinstance(name, str) or _mode == NEVER:
        return None
    collected = _kjit.collect(x)
    if collected is None:
        return None
    key, nodes, inputs = collected
    found = _find(key, nodes, inputs)
    shape = x.shape
    arrays = _arrays(found, inputs, shape)
    if 1 < len(axes) == len(shape) and all(_is_dense(each, shape) for each in arrays if isinstance(each, Array)):
        arrays = [each._view((x.size,), (1,), 0, True) if isinstance(each, Array) else each for each in arrays]
        shape, axes = (x.size,), (0,)
    device = x.device

    def prepare(operand):
        out = _engine.new(tuple(n for i, n in enumerate(shape) if i not in axes), text, device)
        _kjit.run_algorithm(_state.context(), "reduce", (out, operand, name), axes=axes, device=device, plan=True, **options)

    operand = _in_one_pass((key, name, text, axes, len(shape), *options), nodes, inputs, shape, arrays, prepare)
    if operand is None:
        return None
    _kjit.mark(x)
    return Reduced(operand, axes)


def _spread(x, shape):
    from ._indexing import broadcast_view

    return x if x.shape == shape else broadcast_view(x, shape)


def _is_dense(x, shape):
    stride = 1
    for extent, own in zip(reversed(shape), reversed(x._strides)):
        if extent > 1 and own != stride:
            return False
        stride *= extent
    return True


# ---- the switch ----


def _mode_of_environment():
    word = os.environ.get("KJIT_FUSE", "").lower()
    if word not in _WORDS:
        raise ValueError(f"KJIT_FUSE must be 0, 1 or now, not {word!r}")
    return _WORDS[word]


_mode = _mode_of_environment()


class fuse:
    """Sets when operations are computed; usable in a `with` statement, whose end restores the
    earlier mode.

    fuse(False) computes each operation at its call. fuse(True), the default, records operations and
    computes an expression when its elements are needed; a repeated expression is compiled to one
    kernel on another thread. fuse("now") compiles an expression at its first use and waits for the
    compiler. The environment variable KJIT_FUSE (0, 1 or now) sets the initial mode. Raises
    ValueError for another mode.

    As a decorator, in CuPy's forms `@fuse`, `@fuse()` and `@fuse(kernel_name="f")`, it sets the mode
    during the calls of the function.
    """

    def __new__(cls, mode=True, kernel_name=None):
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __call__(self, function):
        if not callable(function):
            raise TypeError(f"fuse: a decorator takes a function, not {function!r}")
        self.__exit__()

        @functools.wraps(function)
        def call(*args, **options):
            with fuse(self._name):
                return function(*args, **options)

        return call

    def __init__(self, mode=True, kernel_name=None):
        global _mode
        if mode not in _MODES:
            raise ValueError(f'fuse: the mode must be True, False or "now", not {mode!r}')
        self._before, self._name = _mode, mode
        _mode = _MODES[mode]
        _kjit.set_fusing(_mode)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        global _mode
        _mode = self._before
        _kjit.set_fusing(_mode)


def compute(*arrays):
    """Computes the pending operations of the arrays, or of all arrays if none is given. It does not
    wait for a GPU."""
    for x in arrays:
        _kjit.compute(x)
    if not arrays:
        _kjit.compute_all()


# ---- explain ----


def _bytes(inputs):
    return sum(x.size * x.dtype.itemsize for x in inputs if isinstance(x, Array))


def explain(x):
    """Returns a text that explains how an array is computed, and computes nothing.

    The text has the operations, whether they form one kernel and if not the reason, the number of
    launched kernels, and the numbers of bytes that they read and write.
    """
    is_pending, key, launches, was_fused, is_element = _kjit.tell(x)
    head = f"{x.dtype.name}{list(x.shape)} on {x.device}"
    if is_element:
        return f"{head}: a copy of one element, made when it is needed or before the element is overwritten"
    if is_pending:
        key, nodes, inputs = _kjit.collect(x)
        found = _expressions.get(key) or Expression(nodes, inputs)
        will = key in FUNCTIONS or _mode == NOW or len(nodes) == 1
        state = "one kernel" if will else found.state
        count = 1 if will else len(nodes)
        lines = [
            f"{head}: not computed yet, an expression of {len(nodes)} operations",
            f"{state}; {count} launch{'es' if count > 1 else ''} when it is needed",
            f"as one kernel it reads {_bytes(inputs)} bytes and writes {x.size * x.dtype.itemsize}",
        ]
    elif key is None:
        return f"{head}: computed by one call, not from an expression"
    else:
        found = _expressions[key]
        kind = "one kernel" if was_fused or launches == 1 else "operations one by one"
        lines = [f"{head}: computed, {kind}, {launches} launch{'es' if launches != 1 else ''}"]
        if launches > 1:
            lines.append(f"the expression is now: {found.state}")
    lines += [f"  x{i}: {text}" for i, text in enumerate(found.inputs)]
    lines += [f"  {line}" for line in found.lines()]
    return "\n".join(lines)


# ---- functions that the extension calls ----


def _compared_with_object(row, operands):
    """Compares an array with an object that equals no number, such as None or a text, and returns an array of
    bools, as NumPy does. Returns NotImplemented if the object's class has its own `__eq__`, and for other
    operations."""
    from . import _creation

    x, other = operands if len(operands) == 2 else (None, None)
    if row.name not in ("equal", "not_equal") or not isinstance(x, Array):
        return NotImplemented
    if not isinstance(other, (type(None), str, bytes)) and _operands.overrides(type(other), "__eq__"):
        return NotImplemented
    return _creation.full(x.shape, row.name == "not_equal", device=x.device)


# The method of the right operand that Python calls if the left operand's class does not compute the
# operator.
_REFLECTED = {
    "less": "__gt__", "greater": "__lt__", "less_equal": "__ge__", "greater_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__",
    "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "remainder": "__rmod__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "bitwise_left_shift": "__rlshift__",
    "bitwise_right_shift": "__rrshift__", "add": "__radd__",
}  # fmt: skip


def _operands_of_others(row, operands):
    """Returns an operator's operands as a tuple, with array-like objects converted. If the class of an
    operand computes the operator, returns its result or NotImplemented instead."""
    reflected = _REFLECTED.get(row.name, "")
    others = [x for x in operands if not _operands.is_operand(x)]
    if row.ufunc is not None and any(_operands.has_ufuncs(x) and not _operands.overrides(type(x), reflected) for x in others):
        import numpy

        return getattr(numpy, row.ufunc)(*operands)
    found = _operands.operator_operands(reflected, operands)
    return _compared_with_object(row, operands) if found is None else found


def attach(rows):
    """Registers the operations with the extension. rows: the rows in the table by number."""
    by_name = {row.name: row for row in rows}

    def find(number, operands):
        row = rows[number]
        given = _engine.Operands(operands, row.name)
        kernel = row.kernel(tuple(given.words))
        return kernel, kernel.scalar, kernel.result, kernel.is_cheap

    def operate(number, operands, out=None):
        if _state.context() is not _engine.context_of_expressions:
            renew_context()
        row = rows[number]
        given = operands
        if not all(map(_operands.is_operand, operands)):
            given = _operands_of_others(row, operands)
            if type(given) is not tuple:
                return given
        if row.name == "multiply" and _is_repetition(operands):
            return NotImplemented
        given = _operands.ready_operands(given)
        found = _operands.compared_in_range(row.name, given)
        if found is not None:
            row, given = by_name[found[0]], found[1]
        if given is not operands or _operands.learn_scalars(operands):
            return _engine.elementwise(row, given, out)
        return _engine.elementwise_now(row, operands, out)

    def store(out, x, where):
        _engine.run_map(_engine.cast_func(_dtypes.text_of(x), out.dtype.text).pair(), (x,), out, where)

    numbers = tuple(by_name[name].index for name in _kjit.operators)
    _engine.context_of_expressions = _state.context()
    counts_its_stack = sys.version_info < (3, 14)
    _kjit.set_operations(
        _engine.context_of_expressions, numbers, find, operate, FUNCTIONS, choose, fail, store, counts_its_stack
    )
    _kjit.set_fusing(_mode)


def _is_repetition(operands):
    """Returns whether Python repeats a list: `[0] * x[1]` has x[1] items if x[1] is an integer, as with NumPy's scalars."""
    has_list = any(isinstance(x, (list, tuple)) for x in operands)
    return has_list and any(isinstance(x, Array) and x._is_scalar and _dtypes.KIND[x.dtype.text] in "iu" for x in operands)


def renew_context():
    """Forgets the funcs in a forked child, because they belong to the parent's context, and sets
    the new context."""
    FUNCTIONS.clear()
    _expressions.clear()
    _engine.context_of_expressions = _state.context()
    _kjit.set_expression_context(_engine.context_of_expressions)
