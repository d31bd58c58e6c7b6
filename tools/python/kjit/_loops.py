"""Compiled parts of a function made by kjit.njit that stays in Python: its loops and expressions."""

import ast

from . import _aligned, _functions, _kjit, _overloading, _state, dtypes
from ._composed import Composed
from ._errors import Error, NotCompiledError
from ._shapes import Known, shape_of, take_apart

# Number of parts of a loop with reductions. It is fixed, so that sums do not depend on the number of threads.
MOST_PARTS = 128
_PART_BYTES = 16
_CLASSES = {0: "i", 1: "u", 2: "f", 4: "bf", 5: "c"}  # DLPack's type codes


class Uncompiled(Exception):
    """The loop cannot be compiled for these types, so Python runs it."""


class _Part(_functions._Compiled):
    """The code of a part of a function. node is the Python function created for the part."""

    is_typed = is_njit = True
    __name__ = "loop"

    def __init__(self, whole, node):
        self.py_func, self.node = whole.py_func, node
        self.attributes, self._bits, self._rules = whole.attributes, whole._bits, " @numba"
        known = {**whole.__dict__.get("known", {}), **whole._splitter.functions}
        own = {argument.arg for argument in node.args.args}
        self.known = {name: value for name, value in known.items() if name not in own}
        self._made = None

    def _plain_parameters(self):
        return tuple(a.arg for a in self.node.args.args)

    def _copy(self):
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _made=None)
        for name in ("_variants", "_newest"):
            copy.__dict__.pop(name, None)
        return copy


class SerialPart(_Part, Composed, _kjit.Function):
    """A loop that one thread runs, or an expression."""

    _kind = "func"
    runs_in_python = False

    def _parameters(self):
        return self._flat_parameters() if self._given else self._plain_parameters()

    def _load(self):
        module, name = self._module()
        return module, name, self._parameters(), (), True, True

    def _call_otherwise(self, args, error):
        """The extension calls this after a compiled call has failed."""
        if _overloading.learn(error):
            self._made = None
            self._forget()
            return self(*args)
        return _aligned.call_again(self, args, error)

    def _write(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed, True)
        if self._given:
            return builder.finish(self._write_variant(builder))
        name = builder.function(self, self._kind)
        builder.write_all()
        return builder.finish(name)


class ParallelLoop(_Part, _kjit.Kernel):
    """A loop over prange."""

    _kind = "kernel"
    _shapes = ()

    def __init__(self, whole, loop):
        super().__init__(whole, loop.node)
        self.loop, self.whole, self.is_uncompiled = loop, whole, False

    def _parameters(self):
        names = self._plain_parameters()
        if not self._shapes:
            return names
        listed = zip(names, self._shapes)
        return tuple(one for name, shape in listed for one in ([name] if shape is None else shape.names(name)))

    def _named_shapes(self):
        return {n: s for n, s in zip(self._plain_parameters(), self._shapes) if s is not None and not isinstance(s, Known)}

    def _begin(self):
        return _state.context(*self._bits), self._parameters(), (), "cpu", True, _functions.BY_OPTION

    def _load(self):
        return self._module()

    def _take_apart(self, args):
        raise TypeError("the tuples that a loop over prange uses can contain only numbers, arrays, records and tuples")

    def _launch(self, *args):
        """Launches the kernel. If a call in it needs an overload, kjit chooses the overload and
        translates the kernel again."""
        _overloading.resolving(lambda: self.__dict__.get("_newest", self)._launch_once(*args), self._renew)

    def _renew(self):
        self.__dict__["_newest"] = self._copy()

    def _launch_once(self, *args):
        """Launches the kernel with the items of tuples as separate arguments, and functions and constants as part of
        the code."""
        aligned = _aligned.copies(args)
        if aligned is not None:
            self._launch_once(*aligned[0])
            aligned[1]()
            return
        shapes = tuple(shape_of(value, True, True) for value in args)
        if not any(shape is not None for shape in shapes):
            if not any(_is_record(value) for value in args):
                return self(*args)
        items, after = [], []
        for value, shape in zip(args, shapes):
            if not isinstance(shape, Known):
                take_apart(value, items, after)
        self._variant(shapes)(*items)
        for finish in after:
            finish()

    def _variant(self, shapes):
        if not any(shape is not None for shape in shapes):
            return self
        with _state.lock():
            variants = self.__dict__.setdefault("_variants", {})
            made = variants.pop(shapes, None)
            if made is None:
                made = self._copy()
                names = self._plain_parameters()
                known = {name: shape.function for name, shape in zip(names, shapes) if isinstance(shape, Known)}
                made.__dict__.update(_shapes=shapes, known={**self.known, **known})
                while len(variants) >= _functions._MOST_VARIANTS:
                    del variants[next(iter(variants))]
            variants[shapes] = made  # moves the last used variant to the end
            return made

    def run(self, *arguments):
        """Runs the loop, see _run. If it calls a NumPy function that compiled code does not have, Python runs the loop."""
        if not self.is_uncompiled:
            try:
                return self._run(*arguments)
            except NotCompiledError as error:
                reason = f"Python's interpreter runs this loop on one core: {error.message}"
                self.whole.warn_of_interpreter(self.loop.statement, reason, error)
                self.is_uncompiled = True
        raise Uncompiled

    def _run(self, start, stop, step, *values):
        """Runs the loop and returns its outputs. values are, in this order: the initial values of the loop's
        reductions, functions that return the values of its other outputs before the loop, a (shape, type) for each
        array that it creates, and its inputs."""
        bounds = range(start, stop, step)
        count, inside = len(bounds), self.loop.parts
        firsts, rest = values[: len(inside.reductions)], values[len(inside.reductions) :]
        before, rest = rest[: len(inside.lasts)], rest[len(inside.lasts) :]
        made, inputs = rest[: len(inside.temporaries)], rest[len(inside.temporaries) :]
        if not count:
            return _one_or_all([*firsts, *map(_before, before)])
        if not inside.makes_parts:
            return self._launch(count, start, step, *inputs)
        import numpy

        kinds_of = dict(zip(inside.reductions, firsts))
        arrays = tuple(name for name, first in kinds_of.items() if isinstance(first, numpy.ndarray) and first.shape)
        parts = self._count_parts(count, made)
        begins = [
            _begin_array(first, begin, operator, parts) if name in arrays else first if begin is None else type(first)(begin)
            for first, (name, (operator, begin)) in zip(firsts, inside.reductions.items())
        ]
        slots = inside.slots(arrays)
        raw, kinds = numpy.empty(parts * len(slots) * _PART_BYTES, numpy.uint8), numpy.zeros(max(1, len(slots)), numpy.int64)
        pools = _make_pools(parts, made)
        self._for_arrays(arrays)._launch(raw, kinds, parts, count, start, step, *begins, *pools, *inputs)
        kept = raw.reshape(parts, len(slots), _PART_BYTES)
        columns = {name: _values(kept[:, i], int(kinds[i])) for i, name in enumerate(slots)}
        outputs = []
        for first, start_of, (name, (operator, begin)) in zip(firsts, begins, inside.reductions.items()):
            if name in arrays:
                outputs.append(_join_arrays(first, start_of, operator, begin))
            else:
                outputs.append(_join(first, columns[name], operator, begin))
        for (name, is_flagged), get in zip(inside.lasts.items(), before):
            flags = columns[inside.flags[name]] if is_flagged else None
            outputs.append(_last(columns[name], flags, get))
        return _one_or_all(outputs)

    def _count_parts(self, count, made):
        """Returns the number of parts. If the loop's result depends on the number of parts, this number does not
        depend on the number of threads."""
        from ._njit import get_num_threads

        parts = min(count, MOST_PARTS)
        return min(parts, 4 * get_num_threads()) if made and not self.loop.parts.reductions else parts

    def _for_arrays(self, arrays):
        """Returns the kernel in which some of the reductions are arrays."""
        if not arrays:
            return self
        with _state.lock():
            made = self.__dict__.setdefault("_of_arrays", {})
            if arrays not in made:
                copy = self._copy()
                copy.__dict__["node"] = self.whole._splitter.kernel_node(self.loop, arrays)
                made[arrays] = copy
            return made[arrays]


# Types of values with which only Python can run a loop.
_OF_PYTHON = {set: "a set", frozenset: "a set", slice: "a slice", type(...): "an ellipsis"}


class SerialLoop(SerialPart):
    """A loop that one thread runs."""

    def __init__(self, whole, loop):
        super().__init__(whole, loop.node)
        self.loop, self.whole, self.is_uncompiled = loop, whole, False

    def run(self, *values):
        """Runs the loop. values has a pair (shape, type) for each array that the loop creates, followed
        by the loop's inputs. In place of an input that may have no value, the caller passes a function
        that returns it."""
        if self.is_uncompiled:
            raise Uncompiled
        if self.loop.unset:
            return self._run_set(values)
        return self._run(values)

    def _run_set(self, values):
        """Runs the loop without the inputs that have no value. As in Numba, such a variable is 0 if the loop does not assign it."""
        number, missing, given = len(self.loop.temporaries), [], []
        for name, value in zip(self.loop.inputs, values[number:]):
            try:
                given.append(value() if name in self.loop.unset else value)
            except NameError:
                missing.append(name)
        return self._without(tuple(missing))._run((*values[:number], *given))

    def _without(self, missing):
        """Returns the loop in which these inputs are variables without a value."""
        if not missing:
            return self
        with _state.lock():
            made = self.__dict__.setdefault("_of_missing", {})
            if missing not in made:
                copy = self._copy()
                copy.__dict__["node"] = _without_parameters(self.node, missing)
                made[missing] = copy
            return made[missing]

    def _run(self, values):
        for value in values:
            if type(value) in _OF_PYTHON:
                self._leave(f"it takes {_OF_PYTHON[type(value)]}, which compiled code does not have", None)
        number = len(self.loop.temporaries)
        try:
            return self(*_make_pools(1, values[:number]), *values[number:])
        except Error as error:
            if not self.whole.is_of_arrays(error):
                raise
            self._leave(error.message, error)

    def _leave(self, reason, error):
        """Lets Python run the loop from now on. error is the compiler's error with its location, or None."""
        splitter, statement = self.whole._splitter, self.loop.statement
        reason = f"Python's interpreter runs this loop: {reason}"
        if error is None:
            error = splitter.source.error(statement, f"{reason}, which nopython=True does not allow")
        is_allowed = self.whole.is_of_result(error) and splitter.calls_njit(statement)
        self.whole.warn_of_interpreter(statement, reason, None if is_allowed else error)
        self.is_uncompiled = True
        raise Uncompiled from None


def _without_parameters(node, names):
    """Returns the function without some of its parameters."""
    fields = dict(ast.iter_fields(node))
    fields["args"] = ast.arguments(
        posonlyargs=[], args=[a for a in node.args.args if a.arg not in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return ast.copy_location(type(node)(**fields), node)


def _one_or_all(outputs):
    """Returns a loop's outputs as one value: None if there are none, the only output, or all of
    them."""
    return None if not outputs else outputs[0] if len(outputs) == 1 else outputs


def _make_pools(rows, made):
    """Creates arrays whose rows replace the arrays that a loop creates. made has a (shape, type) for each."""
    if not made:
        return []
    import numpy

    def make(shape, dtype):
        """dtype None means float64; a number means its own type"""
        if dtype is None or isinstance(dtype, (bool, int, float, complex, numpy.number)):
            dtype = numpy.asarray(0.0 if dtype is None else dtype).dtype
        return numpy.empty((rows, *(shape if isinstance(shape, tuple) else (shape,))), dtype)

    return [make(shape, dtype) for shape, dtype in made]


def _is_record(value):
    from ._shapes import is_record

    return is_record(value)


def _values(parts, kind):
    """Returns the values of one variable that the parts of the loop have stored, in the order of
    the parts."""
    import numpy

    name = "bool" if kind >> 8 == 6 else f"{_CLASSES[kind >> 8]}{kind & 255}"
    if name not in dtypes._NUMPY:
        raise TypeError(f"NumPy has no type for a sum of {name} values: convert the summands, kjit.f32(x)")
    dtype = numpy.dtype(dtypes._NUMPY[name])
    return numpy.ascontiguousarray(parts[:, : dtype.itemsize]).view(dtype).ravel()


def _plain(value):
    """Converts a NumPy scalar to a Python number if it has the same type."""
    return value.item() if value.dtype.name in ("int64", "float64", "bool", "complex128") else value


def _join(first, values, operator, begin):
    """Returns a reduction's value: its value before the loop combined with the values of all parts, in their
    order."""
    import numpy

    joined = getattr(numpy, operator)
    with numpy.errstate(all="ignore"):  # as in the loop itself
        result = joined.reduce(values)
        if begin is not None:
            result = joined(values.dtype.type(first), result)
    return _plain(values.dtype.type(result))


def _begin_array(first, begin, operator, parts):
    """Returns the initial value of an array reduction in each part."""
    import numpy

    if begin is None:
        return numpy.broadcast_to(first, (parts, *first.shape)).copy()
    return numpy.full((parts, *first.shape), begin, first.dtype)


def _join_arrays(first, sums, operator, begin):
    """Changes the array of a reduction in place, as `+=` does, and returns the array."""
    import numpy

    joined = getattr(numpy, operator)
    with numpy.errstate(all="ignore"):
        result = joined.reduce(sums, axis=0)
        first[...] = result if begin is None else joined(first, result)
    return first


def _last(values, flags, get):
    """Returns a variable's value after the loop. values: its value after each part of the loop. flags: which parts
    assigned it. The result is the value from the last of these parts, or the value before the loop if no part assigned the
    variable."""
    if flags is None:
        return _plain(values[-1])
    known = flags.nonzero()[0]
    return _plain(values[known[-1]]) if len(known) else _before(get)


def _before(get):
    """Returns a variable's value before the loop."""
    try:
        return get()
    except NameError:
        raise UnboundLocalError("a variable is used after a loop over prange, but no iteration assigned it") from None
