"""`guvectorize`: applies a function of small arrays to each small array inside larger ones (NumPy's
generalized ufuncs).

The dimensions that a layout such as "(m,n),(n)->(m)" names are the core dimensions. The other,
leading dimensions of the arguments broadcast and are called loop dimensions.
"""

import functools
import linecache
import math

import numpy

from .. import _ufuncs
from .._errors import KernelError, SourceValueError, name_element
from . import arrays, dispatcher, types
from .ordered import store
from .reduction import (
    OF_CUDA,
    OF_EXACT,
    TARGETS,
    as_device,
    check_options,
    check_out,
    check_target,
    checked_identity,
    choose_row,
    codes_of,
    is_device,
    on_host,
    rules_for,
)


def _parse_layout(text):
    sides = text.replace(" ", "").split("->")
    if len(sides) > 2:
        raise ValueError(f'bad token in signature: a layout must be "(m,n),(n)->(m)", not {text!r}')
    found = []
    for side in sides:
        if side[:1] != "(" or side[-1:] != ")":
            if found and not side:  # a layout such as "(n)->" has no results
                continue
            raise ValueError(f'bad token in signature: a layout must be "(m,n),(n)->(m)", not {text!r}')
        found.append([tuple(d for d in part.split(",") if d) for part in side[1:-1].split("),(")])
    return found if len(found) == 2 else [*found, []]


def _check_layout(kinds, cores):
    """Raises TypeError if a type of a signature does not have the number of dimensions in the layout.
    For a single value, `()`, a type with one dimension is accepted as well."""
    for i, (kind, core) in enumerate(zip(kinds, cores), 1):
        if not isinstance(kind, types.Array):
            if core:
                raise TypeError(f"scalar type {kind} given for non scalar argument #{i}")
        elif kind.ndim != len(core) and (core or kind.ndim != 1):
            raise TypeError(f"type and shape signature mismatch for arg #{i}")


def _ends_with(found, wanted, core):
    """Returns whether the core dimensions of two shapes are equal. The loop dimensions may differ:
    `found` may have them flattened or with extent 1."""
    count = len(core)
    return len(found) >= count and tuple(found[len(found) - count :]) == tuple(wanted[len(wanted) - count :])


def _moved(array, axes):
    """Returns a view of the array with the given axes moved to the end."""
    return numpy.moveaxis(array, axes, range(-len(axes), 0)) if axes else array


def _moved_back(array, axes):
    return numpy.moveaxis(array, range(-len(axes), 0), axes) if axes else array


class _Axes:
    """The axes of the core dimensions in a call's operands.

    `inputs` and `outputs` have a tuple of axes for each operand, or None for the last axes. `kept`
    are the axes of extent 1 that the results keep (keepdims).
    """

    def __init__(self, function, axis, axes, keepdims):
        cores, self.name = [*function._inputs, *function._outputs], function.__name__
        rows = [None] * len(cores)
        if axis is not None and axes is not None:
            raise TypeError("cannot specify both 'axis' and 'axes'")
        if axis is not None:
            names = {d for core in cores for d in core}
            if len(names) != 1 or any(len(core) > 1 for core in cores):
                raise TypeError(
                    f"{self.name}: axis can only be used with a single shared core dimension, not with the {len(names)} distinct ones "
                    f"implied by signature {function.signature}."
                )
            rows = [(axis,) if core else () for core in cores]
        elif axes is not None:
            rows = self._listed(function, axes, cores)
        self.inputs, self.outputs, self.kept = rows[: function.nin], rows[function.nin :], None
        if keepdims:
            count = len(function._inputs[0])
            if any(function._outputs) or any(len(core) != count for core in function._inputs):
                raise TypeError(
                    f"{self.name} does not support keepdims: in its signature {function.signature} results have core dimensions, or inputs "
                    "have different numbers of them"
                )
            self.kept = self.inputs[0] or tuple(range(-count, 0))

    def _listed(self, function, axes, cores):
        if not isinstance(axes, list):
            raise TypeError("axes should be a list.")
        if len(axes) == function.nin and not any(function._outputs):
            axes = [*axes, *[()] * function.nout]
        if len(axes) != len(cores):
            raise ValueError(
                f"axes should be a list with an entry for all {len(cores)} inputs and outputs; entries for outputs can only be omitted if "
                "none of them has core axes."
            )
        rows = [axis if isinstance(axis, tuple) else (axis,) for axis in axes]
        for i, (row, core) in enumerate(zip(rows, cores)):
            if len(row) != len(core):
                raise ValueError(f"{self.name}: item {i} of axes has {len(row)} axes, and ({','.join(core)}) has {len(core)}")
        return rows

    def result(self, array):
        return numpy.expand_dims(array, self.kept) if self.kept else array

    def without_kept(self, array):
        return numpy.squeeze(array, self.kept) if self.kept else array


class GUFunc(_ufuncs.Attributes):
    """A generalized ufunc: applies a function of small arrays to larger arrays, whose loop
    dimensions broadcast."""

    runs_in_python, has_code = True, False  # Python makes the calls of a gufunc in an njit function

    def __init__(self, function, signatures, layout, device=None, writable=(), identity=None):
        """signatures: an empty list means that each call determines the types; such a call has to
        pass arrays for the results. writable: names or positions of the inputs that the function
        writes. identity: the value of the attribute `identity`."""
        functools.update_wrapper(self, function, updated=())
        del self.__wrapped__
        self.signature = layout
        self._inputs, self._outputs = _parse_layout(layout)
        self._signatures = signatures
        count = len(self._inputs) + len(self._outputs)
        for signature in signatures:
            if len(signature.args) != count:
                raise TypeError(
                    f"the signature {signature} has {len(signature.args)} types, but the layout {layout} needs {count}"
                )
            if signature.return_type not in (None, types.void):
                raise TypeError(
                    "guvectorized functions cannot return values: "
                    f"signature {signature} specifies {signature.return_type} return type"
                )
            if device == "cpu":
                _check_layout(signature.args, [*self._inputs, *self._outputs])
        self._is_on_cpu, self.identity = device == "cpu", None if identity == "reorderable" else identity
        self._kernel = _make_kernel(function, count, self._is_on_cpu)
        self._kernel._kernel._device = device
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        self._codes = tuple(self._row_codes(signature) for signature in signatures)
        names = function.__code__.co_varnames[:count]
        self._converts_back = bool(writable)
        if not self._outputs and not writable:
            # a function without results can have an effect only by writing to its inputs
            writable = [i for i, core in enumerate(self._inputs) if core]
        self._writable = self._places_of(writable, names)

    @property
    def is_dynamic(self):
        """Whether each call determines the types, because there are no signatures."""
        return not self._signatures

    def _places_of(self, writable, names):
        """Returns the positions of the inputs that writable_args lists by name or position."""
        missing = [place for place in writable if isinstance(place, str) and place not in names]
        if missing:
            raise RuntimeError(f"{self.__name__}: writable_args has {missing[0]!r}, which is not a parameter")
        places = [names.index(place) if isinstance(place, str) else place for place in writable]
        wrong = [place for place in places if not 0 <= place < self.nin]
        if wrong or len(places) > self.nin:
            raise ValueError(f"{self.__name__}: writable_args must list inputs, whose positions are 0 to {self.nin - 1}, not {writable!r}")
        return places

    def _row_codes(self, signature):
        row = [types.as_dtype(getattr(a, "dtype", a) if isinstance(a, types.Array) else a) for a in signature.args]
        return codes_of(row[: self.nin], row[self.nin :])

    def _choose(self, args, given, outs, casting="same_kind"):
        """Returns the types of the arguments twice: as types of kjit.cuda and as NumPy's dtypes.
        Raises TypeError if no signature fits."""
        if not self._signatures:
            row = [numpy.dtype(a.dtype) for a in [*given, *outs]]
            code = codes_of(row[: self.nin], row[self.nin :])
            if code not in self._codes:
                self._codes += (code,)
            cores = [*self._inputs, *self._outputs]
            kinds = [types.from_dtype(d)[(slice(None),) * len(c)] if c else types.from_dtype(d) for c, d in zip(cores, row)]
            return kinds, row
        rows = [
            ([types.as_dtype(getattr(a, "dtype", a) if isinstance(a, types.Array) else a) for a in s.args], s)
            for s in self._signatures
        ]
        rules = rules_for(casting, OF_EXACT if self._is_on_cpu else OF_CUDA)
        found = [numpy.dtype(g.dtype) for g in given]
        if rules is OF_CUDA:
            rules = (*rules, _narrows_host)
        try:
            row, signature = choose_row(rows, self.__name__, args, found, rules)
        except TypeError as error:
            if not any(map(is_device, args)):
                raise
            raise TypeError(f"{error}; an array on the device does not support .astype()") from None
        return signature.args, row

    def _split(self, args, out):
        """Splits a call's arguments into (inputs, arrays for the results)."""
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(
                f"gufunc accepts {self.nin} positional arguments (when inputs only) or {self.nin + self.nout} positional "
                f"arguments (when inputs and outputs). Got {len(args)} positional argument{'s' * (len(args) != 1)}."
            )
        if len(args) > self.nin and out is not None:
            raise ValueError("cannot specify argument 'out' as both positional and keyword")
        args = [as_device(a) for a in args]
        given = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        outs = list(args[self.nin :]) or [as_device(o) for o in given]
        if self.nout and not outs and not self._signatures:
            raise TypeError(
                f"Too few arguments for function '{self.__name__}'. Note that the pattern `out = gufunc(Arg1, Arg2, ..., ArgN)` is not "
                "allowed. Use `gufunc(Arg1, Arg2, ..., ArgN, out)` instead: guvectorize without signatures takes the types of the results "
                "from the arrays for them."
            )
        return args[: self.nin], outs

    @_ufuncs.with_overrides
    def __call__(self, *args, out=None, stream=0, axis=None, axes=None, keepdims=False, casting="same_kind"):
        args, outs = self._split(args, out)
        places = _Axes(self, axis, axes, keepdims)
        is_on_device = any(is_device(a) for a in [*args, *outs])
        given = [on_host(a) for a in args]
        kinds, row = self._choose(args, given, outs, casting)
        given = [_moved(g, own) for g, own in zip(given, places.inputs)]
        sizes, loops = self._sizes(given)
        loop = self._loop_shape(loops, outs, places, sizes)
        count = int(numpy.prod(loop, dtype=numpy.int64))
        flat = []
        for g, core, dtype, kind in zip(given, self._inputs, row, kinds):
            inner = g.shape[g.ndim - len(core) :]
            whole = numpy.broadcast_to(g, loop + inner).astype(dtype).reshape((count,) + inner)
            whole = numpy.ascontiguousarray(whole)
            flat.append(whole[:, None] if not core and isinstance(kind, types.Array) else whole)
        hosts = [self._result(i, outs, places, sizes, loop, row[self.nin + i], casting) for i in range(self.nout)]
        wholes = [host.reshape((count,) + (host.shape[len(loop) :] or (1,))) for host in hosts]
        if count:
            before = {i: flat[i].tobytes() for i in self._writable}
            inputs = [arrays.to_device(f) if f.size and not self._is_on_cpu else f for f in flat]
            try:
                self._launch(count, loop, inputs, wholes)
            except KernelError:
                # stores the elements computed before the error
                self._finish(outs, places, hosts, wholes, is_on_device)
                raise
            for i, old in before.items():
                new = on_host(inputs[i])
                if new.tobytes() != old:
                    self._write_back(args[i], given[i], new, loop, places.inputs[i])
        finished = self._finish(outs, places, hosts, wholes, is_on_device)
        return finished[0] if self.nout == 1 else tuple(finished)

    @staticmethod
    def _finish(outs, places, hosts, wholes, is_on_device):
        """Returns the results of a call, or stores them in the arrays that the call passes."""
        finished = []
        for i, (host, whole) in enumerate(zip(hosts, wholes)):
            host = places.result(_moved_back(whole.reshape(host.shape), places.outputs[i]))
            finished.append(store(outs[i], host) if outs else _made(host, is_on_device))
        return finished

    def _sizes(self, given):
        """Returns (extents by the names of the core dimensions, the loop dimensions of each input).
        Raises ValueError if two extents of one name differ."""
        sizes, loops = {}, []
        for i, (g, core) in enumerate(zip(given, self._inputs)):
            self._check_rank(f"Input operand {i}", g, core)
            for place, (name, extent) in enumerate(zip(core, g.shape[g.ndim - len(core) :])):
                if sizes.setdefault(name, extent) != extent:
                    raise self._mismatch(f"Input operand {i}", place, extent, sizes[name])
            loops.append(g.shape[: g.ndim - len(core)])
        return sizes, loops

    def _check_rank(self, operand, array, core):
        if array.ndim < len(core):
            raise SourceValueError(
                f"{self.__name__}: {operand} does not have enough dimensions (has {array.ndim}, gufunc core with signature "
                f"{self.signature} requires {len(core)})"
            )

    def _mismatch(self, operand, place, extent, other):
        return ValueError(
            f"{self.__name__}: Operand has a mismatch in one of its core dimensions: {operand} has a mismatch in its core dimension {place}, "
            f"with gufunc signature {self.signature} (size {extent} is different from {other})"
        )

    def _loop_shape(self, loops, outs, places, sizes):
        """Returns the extents of the loop dimensions. On the CPU, as in NumPy, the arrays for the
        results take part in the broadcast, and must have the resulting extents. They can lack
        leading dimensions of extent 1."""
        moved = [_moved(places.without_kept(on_host(out)), axes) for out, axes in zip(outs, places.outputs) if self._is_on_cpu]
        for i, (array, core) in enumerate(zip(moved, self._outputs)):
            self._check_rank(f"Output operand {i}", array, core)
        own, sizes = [], dict(sizes)
        for i, (array, core) in enumerate(zip(moved, self._outputs)):
            count = array.ndim - len(core)
            own.append(array.shape[:count])
            for place, (name, extent) in enumerate(zip(core, array.shape[count:])):
                if sizes.setdefault(name, extent) != extent:
                    raise self._mismatch(f"Output operand {i}", place, extent, sizes[name])
        loop = numpy.broadcast_shapes(*loops, *own)
        for i, shape in enumerate(own):
            extra = len(loop) - len(shape)
            if shape != loop[extra:] or any(extent != 1 for extent in loop[:extra]):
                raise ValueError(
                    f"{self.__name__}: Loop and array shapes are incompatible: the array for result {i} has the loop dimensions {shape}, "
                    f"and the operands broadcast to {loop}"
                )
        return loop

    def _result(self, i, outs, places, sizes, loop, dtype, casting):
        """Returns the array that the kernel fills for result i. If the call passes an array for the
        result, the returned array has a copy of its elements."""
        core = self._outputs[i]
        missing = [d for d in core if d not in sizes]
        if not outs:
            if missing:
                raise ValueError(f"{self.__name__}: no array determines the extent of {missing[0]}; pass out=")
            return numpy.zeros(loop + tuple(sizes[d] for d in core), dtype)
        start = outs[i]
        check_out(self.__name__, dtype, start, casting)
        host = on_host(start)
        host = _moved(places.without_kept(host), places.outputs[i])
        shape = loop + tuple(sizes[d] for d in core) if not missing else tuple(host.shape)
        if host.size != math.prod(shape) or not _ends_with(host.shape, shape, core):
            raise ValueError(f"{self.__name__}: out has the shape {tuple(start.shape)}, not {shape}")
        return numpy.array(host).astype(dtype).reshape(shape)

    def _write_back(self, argument, moved, new, loop, axes):
        """Writes `new`, the elements of an input after the function has changed them, to the
        caller's array. An input of another type was converted to a copy; it stays unchanged unless
        writable_args names it, as in NumPy."""
        if not isinstance(argument, (numpy.ndarray, arrays.DeviceNDArray)) or argument.dtype != new.dtype and not self._converts_back:
            return
        count = new.ndim - 1 if moved.ndim else 0
        if moved.shape[: moved.ndim - count] != tuple(loop):
            raise ValueError(f"{self.__name__} writes to an input of the shape {tuple(argument.shape)}, which the call broadcasts")
        store(argument, _moved_back(new.reshape(moved.shape), axes))

    def _without_cores(self, *operands, **options):
        raise RuntimeError("Reduction not defined on ufunc with signature")

    reduce = accumulate = reduceat = at = _without_cores

    def outer(self, *operands, **options):
        """Raises TypeError, as NumPy's generalized ufuncs do."""
        raise TypeError("method outer is not allowed in ufunc with non-trivial signature")

    def _launch(self, count, loop, inputs, outputs):
        """Launches the kernel with one thread for each index of the loop dimensions. Raises
        KernelError with the function's name and the index of a failed element."""
        try:
            self._kernel[(count + _BLOCK - 1) // _BLOCK, _BLOCK](count, *inputs, *outputs)
        except KernelError as error:
            place = error.block[0] * _BLOCK + error.thread[0] if error.block and error.thread else None
            element = None if place is None or not loop else tuple(int(i) for i in numpy.unravel_index(place, loop))
            raise name_element(error, self.__name__, element) from None


_BLOCK = 64  # threads in a block


def _make_kernel(function, count, is_strict):
    """Returns a kernel in which each thread calls the function with one row of each array."""
    names = [f"a{i}" for i in range(count)]
    file = f"<kjit.cuda.guvectorize of {count}>"
    text = (
        f"def rows({', '.join(['count', *names])}):\n    i = grid(1)\n    if i < count:\n"
        f"        core({', '.join(f'{n}[i]' for n in names)})\n"
    )
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    from . import words

    core = dispatcher.Dispatcher(function, [], {"device": True})
    if is_strict:
        core.attributes += " @strict"
    space = {"core": core, "grid": words.FORMS["grid"]}
    exec(compile(text, file, "exec"), space)
    return dispatcher.Dispatcher(space["rows"], [], {"boundscheck": False})


def _narrows_host(value, found, wanted):
    """Returns whether an argument is converted to a signature's type. As in numba.cuda, host values
    are also converted to types with fewer bits, but complex numbers are not converted to real ones.
    """
    if is_device(value):
        return found == wanted
    loses_imaginary = found.kind == "c" and wanted.kind != "c"
    return numpy.can_cast(found, wanted, "safe") or (numpy.can_cast(wanted, found, "safe") and not loses_imaginary)


def _made(host, is_on_device):
    return arrays.to_device(host) if is_on_device else host if host.shape else host[()]


def guvectorize(ftylist, signature, **options):
    """Decorates a function of small arrays so that it applies to larger arrays on the GPU.

    ftylist: a list of signatures, such as ["void(float32[:], float32, float32[:])"]. signature: the
    layout, such as "(n),()->(n)". The function writes its results to its last parameters. Raises
    TypeError for the option writable_args.
    """
    check_target({k: v for k, v in options.items() if k != "writable_args"}, "guvectorize")
    if options.get("writable_args"):
        raise TypeError("writable_args are not supported")
    return _guvectorize(ftylist, signature, None)


def guvectorize_for(ftylist, signature, *, target="cpu", writable_args=(), **options):
    """Decorates a function of small arrays so that it applies to larger arrays: `kjit.guvectorize`,
    with the arguments of numba.guvectorize.

    ftylist: a list of signatures; an empty list means that each call determines the types. target:
    "cpu", "parallel" or "cuda", otherwise ValueError is raised. writable_args: names or positions
    of the inputs that the function writes; not supported for "cuda" (TypeError).
    """
    if target not in TARGETS:
        raise ValueError(f"guvectorize(target={target!r}): the targets are {', '.join(TARGETS)}")
    check_options(options, "guvectorize")
    if writable_args and target == "cuda":
        raise TypeError("writable_args are not supported")
    return _guvectorize(ftylist, signature, TARGETS[target], writable_args, checked_identity(options))


def _guvectorize(ftylist, signature, device, writable=(), identity=None):
    is_one = isinstance(ftylist, (str, types.Signature)) or isinstance(ftylist, tuple) and ftylist and all(
        isinstance(t, types.Type) for t in ftylist
    )
    parsed = [types.parse(s) for s in ([ftylist] if is_one else list(ftylist))]
    return lambda function: GUFunc(getattr(function, "py_func", function), parsed, signature, device, writable, identity)
