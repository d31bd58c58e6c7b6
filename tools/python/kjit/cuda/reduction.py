"""reduce, vectorize and guvectorize: functions of elements as functions of arrays."""

import linecache
import math
import types as python_types
import warnings

import numpy

from .. import _algorithms, _folds, _functions
from . import arrays, dispatcher, types


class _Func(_functions.Function):
    """A func with Numba's rules."""

    is_typed = True


def _func(thing):
    return _Func(getattr(thing, "py_func", thing), numba=True)


def _is_device(value):
    return isinstance(value, arrays.DeviceNDArray) or hasattr(value, "__cuda_array_interface__")


def _known_size(array):
    return math.prod(array.shape)


def _ends_with(found, wanted, core):
    """Whether the dimensions of the small arrays are the same; those of the loop may be joined or have extents of 1."""
    count = len(core)
    return len(found) >= count and tuple(found[len(found) - count :]) == tuple(wanted[len(wanted) - count :])


def _as_device(value):
    return arrays.as_cuda_array(value) if arrays._has_interface(value) else value


class Reduce:
    """A function of two values that is associative over all elements of an array of one dimension."""

    def __init__(self, functor):
        self._func = _func(functor)

    def __call__(self, arr, size=None, res=None, init=0, stream=0):
        """The result, as a scalar of NumPy; or None with res, an array of the device whose first element becomes it. size: of
        the elements at the front only. init: what the result begins with."""
        if arr.ndim != 1:
            raise TypeError("only support 1D array")
        count = arr.shape[0] if size is None else size
        if res is not None and res.dtype != arr.dtype:
            raise TypeError(f"the result's elements are {res.dtype}, the array's {arr.dtype}")
        first = numpy.dtype(arr.dtype).type(init)
        if count <= 0:
            result = first
        else:
            own = (arrays.as_cuda_array(arr) if _is_device(arr) else arr)[:count]
            own = own._own if isinstance(own, arrays.DeviceNDArray) else numpy.ascontiguousarray(own)
            found = _folds.reduce(own, self._func, initial=first)
            result = found.to_host()[()] if hasattr(found, "to_host") else found
        if res is None:
            return result
        res[0:1] = result
        return None


reduce = Reduce


# ---- vectorize ----

_OPTIONS = {"target", "nopython", "cache", "identity", "fastmath", "inline"}


def _check_options(options, what="vectorize"):
    unknown = sorted(set(options) - _OPTIONS)
    if unknown and what == "guvectorize":
        raise TypeError(f"The following target options are not supported: {', '.join(map(repr, unknown))}")
    if unknown:
        raise KeyError(f"Unrecognized options. Unrecognized option: {unknown[0]!r}; known are {sorted(_OPTIONS)}")
    if not options.get("nopython", True):
        raise TypeError("nopython flag must be True")
    if "nopython" in options and what == "vectorize":
        warnings.warn("nopython kwarg for cuda target is redundant", RuntimeWarning, stacklevel=3)
    if options.get("target") not in (None, "cuda"):
        raise NotImplementedError(
            f"kjit.cuda.vectorize(target={options['target']!r}): kjit.vectorize is for both sides"
        )


def _result_of(function, signature):
    """The type of the result that a signature says, or else the function."""
    if signature.return_type not in (None, types.void):
        return signature.return_type
    made = dispatcher.Dispatcher(function, [], {"device": True})._function
    text = made.find_result(dispatcher._device_text(signature.args))
    kind = types.of_text(text)
    if kind in (None, types.void):
        raise TypeError(f"{function.__name__} has no result for {signature.args} that is a number: {text}")
    return kind


def _counts(array):
    """Dates as counts of their unit."""
    return array.view(numpy.int64) if array.dtype.kind in "mM" else array


class DeviceUfunc:
    """A function of elements over arrays, which broadcast. `ufunc(x, y, out=r)`; `ufunc.reduce(x)`."""

    def __init__(self, function, signatures, device=None):
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._func, self._device = _func(function), device
        self._rows = [([types.as_dtype(a) for a in s.args], types.as_dtype(_result_of(function, s))) for s in signatures]
        self.nin = function.__code__.co_argcount
        self.nout, self.nargs = 1, self.nin + 1

    def _choose(self, found):
        if not self._rows:  # the types are those of what comes
            sample = tuple(numpy.zeros(1, f) for f in found)
            return found, _algorithms.map(self._func, *sample).dtype
        for inputs, result in self._rows:
            if list(inputs) == list(found):
                return inputs, result
        for inputs, result in self._rows:
            if all(numpy.can_cast(f, i, "safe") for f, i in zip(found, inputs)):
                return inputs, result
        raise TypeError(f"no matching signature of {self.__name__} for elements {', '.join(map(str, found))}")

    def __call__(self, *args, out=None, stream=0):
        if len(args) == self.nin + 1 and out is None:
            args, out = args[:-1], args[-1]
        out = arrays.as_cuda_array(out) if out is not None and _is_device(out) else out
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arrays, {len(args)} were given")
        is_device = any(_is_device(a) for a in args) or _is_device(out)
        given = [arrays.as_cuda_array(a) if _is_device(a) else numpy.asarray(a) for a in args]
        # A plain number takes the type of what it meets.
        found = [g.dtype for g in given]
        try:
            inputs, result = self._choose(found)
        except TypeError:
            inputs, result = self._choose_weakly(args, found)
        operands = []
        for g, dtype in zip(given, inputs):
            if isinstance(g, arrays.DeviceNDArray):
                operands.append(g._own if g.dtype == dtype else arrays.to_device(g.copy_to_host().astype(dtype))._own)
            else:
                g = numpy.ascontiguousarray(g, dtype).reshape(g.shape)
                operands.append(arrays.to_device(g)._own if is_device else _counts(g))
        shape = numpy.broadcast_shapes(*(g.shape for g in given))
        if out is None:
            made = arrays.device_array(shape, result) if is_device else numpy.empty(shape, result)
        else:
            made = out
        target = arrays.as_cuda_array(made)._own if _is_device(made) else _counts(made)
        if made.size:
            _algorithms.map(self._func, *operands, out=target, device=self._device)
        return made if out is not None or is_device or shape else made[()]

    def _choose_weakly(self, args, found):
        for inputs, result in self._rows:
            if all(
                numpy.can_cast(f, i, "same_kind")
                if isinstance(a, (int, float, complex))
                else numpy.can_cast(f, i, "safe")
                for a, f, i in zip(args, found, inputs)
            ):
                return inputs, result
        raise TypeError(f"no matching signature of {self.__name__} for elements {', '.join(map(str, found))}")

    def reduce(self, arg, stream=0):
        """The function over all elements of an array of one dimension."""
        if self.nin != 2:
            raise ValueError("reduce only supports binary functions")
        if arg.ndim != 1:
            raise ValueError("reduce only supports arrays of one dimension")
        inputs, _ = self._choose([numpy.dtype(arg.dtype)] * 2)
        host = arrays.as_cuda_array(arg).copy_to_host() if _is_device(arg) else numpy.asarray(arg)
        return _folds.reduce(numpy.ascontiguousarray(host, inputs[0]), self._func, device=self._device)


def vectorize(ftylist_or_function=(), **options):
    """Makes a function of elements one of arrays. The first argument: signatures, "float32(float32, float32)", for which it is
    compiled."""
    _check_options(options)
    return _vectorize(ftylist_or_function, None)


# ---- numba.vectorize, for all targets ----

_TARGETS = {"cpu": "cpu", "parallel": "cpu", "cuda": None}  # None: where KJIT_DEVICE says, else the first GPU


def vectorize_for(signatures, *, target="cpu", **options):
    """kjit.vectorize with signatures, as numba.vectorize has them."""
    if target not in _TARGETS:
        raise ValueError(f"vectorize(target={target!r}): known are {', '.join(_TARGETS)}")
    _check_options(options)
    if signatures is None:  # the types are those of each call
        return lambda function: DeviceUfunc(function, [], _TARGETS[target])
    return _vectorize(signatures, _TARGETS[target])


def _vectorize(ftylist_or_function, device):
    if isinstance(ftylist_or_function, python_types.FunctionType):
        return DeviceUfunc(ftylist_or_function, [], device)
    if not isinstance(ftylist_or_function, (list, tuple, str, types.Signature)):
        raise TypeError('cuda.vectorize takes signatures: @vectorize(["float32(float32, float32)"])')
    listed = (
        [ftylist_or_function] if isinstance(ftylist_or_function, (str, types.Signature)) else list(ftylist_or_function)
    )
    signatures = [types.parse(s) for s in listed]
    return lambda function: DeviceUfunc(getattr(function, "py_func", function), signatures, device)


# ---- guvectorize ----


def _parse_layout(text):
    sides = text.replace(" ", "").split("->")
    if len(sides) != 2:
        raise ValueError(f'a layout is "(m,n),(n)->(m)", not {text!r}')
    found = []
    for side in sides:
        if side[:1] != "(" or side[-1:] != ")":
            raise ValueError(f'a layout is "(m,n),(n)->(m)", not {text!r}')
        found.append([tuple(d for d in part.split(",") if d) for part in side[1:-1].split("),(")])
    return found


class GUFunc:
    """A function of small arrays over larger ones, whose first dimensions broadcast."""

    def __init__(self, function, signatures, layout):
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.signature = layout
        self._inputs, self._outputs = _parse_layout(layout)
        self._signatures = signatures
        count = len(self._inputs) + len(self._outputs)
        for signature in signatures:
            if len(signature.args) != count:
                raise TypeError(
                    f"the signature {signature} has {len(signature.args)} types, the layout {layout} {count}"
                )
            if signature.return_type not in (None, types.void):
                raise TypeError(
                    "guvectorized functions cannot return values: "
                    f"signature {signature} specifies {signature.return_type} return type"
                )
        self._kernel = _make_kernel(function, count)
        self.nin, self.nout = len(self._inputs), len(self._outputs)

    def _choose(self, given):
        rows = [
            [types.as_dtype(getattr(a, "dtype", a) if isinstance(a, types.Array) else a) for a in s.args]
            for s in self._signatures
        ]
        found = [numpy.dtype(g.dtype) for g in given]
        for cast in ("no", "safe", "same_kind"):
            for index, row in enumerate(rows):
                if all(numpy.can_cast(f, r, cast) for f, r in zip(found, row)):
                    return self._signatures[index], row
        raise TypeError(f"no matching signature of {self.__name__} for elements {', '.join(map(str, found))}")

    def __call__(self, *args, out=None, stream=0):
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(
                f"gufunc accepts {self.nin} positional arguments (when inputs only) or {self.nin + self.nout} positional "
                f"arguments (when inputs and outputs). Got {len(args)} positional argument{'s' * (len(args) != 1)}."
            )
        if len(args) > self.nin and out is not None:
            raise ValueError("cannot specify argument 'out' as both positional and keyword")
        args = [_as_device(a) for a in args]
        given_outs = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        outs = list(args[self.nin :]) or [_as_device(o) for o in given_outs]
        is_device = any(_is_device(a) for a in [*args, *outs])
        given = [
            arrays.as_cuda_array(a).copy_to_host() if _is_device(a) else numpy.asarray(a) for a in args[: self.nin]
        ]
        signature, row = self._choose(given)
        sizes, loops = {}, []
        for g, core in zip(given, self._inputs):
            if g.ndim < len(core):
                raise ValueError(f"{self.__name__}: an array of {g.ndim} dimensions for ({','.join(core)})")
            for name, extent in zip(core, g.shape[g.ndim - len(core) :]):
                if sizes.setdefault(name, extent) != extent:
                    raise ValueError(f"{self.__name__}: the dimension {name} is {sizes[name]} and {extent}")
            loops.append(g.shape[: g.ndim - len(core)])
        loop = numpy.broadcast_shapes(*loops)
        count = int(numpy.prod(loop, dtype=numpy.int64))
        flat = []
        for g, core, own, dtype, kind in zip(given, self._inputs, loops, row, signature.args):
            inner = g.shape[g.ndim - len(core) :]
            whole = numpy.broadcast_to(g, loop + inner).astype(dtype).reshape((count,) + inner)
            whole = _counts(numpy.ascontiguousarray(whole))
            flat.append(whole[:, None] if not core and isinstance(kind, types.Array) else whole)
        results = []
        for i, core in enumerate(self._outputs):
            missing = [d for d in core if d not in sizes]
            if missing and not outs:
                raise ValueError(f"{self.__name__}: the extent of {missing[0]} is known from no array: give out=")
            shape = loop + tuple(sizes[d] for d in core) if not missing else tuple(outs[i].shape)
            start = outs[i] if outs else None
            if start is not None and (_known_size(start) != math.prod(shape) or not _ends_with(start.shape, shape, core)):
                raise ValueError(f"{self.__name__}: out has the shape {tuple(start.shape)}, not {shape}")
            host = (
                numpy.zeros(shape, row[self.nin + i])
                if start is None
                else (arrays.as_cuda_array(start).copy_to_host() if _is_device(start) else numpy.array(start)).astype(
                    row[self.nin + i]
                )
            )
            whole = host.reshape((count,) + (shape[len(loop) :] or (1,)))
            results.append((host, whole))
            flat.append(whole)
        if count:
            self._kernel[(count + 63) // 64, 64](
                count, *(arrays.to_device(f) if f.size else f for f in flat[: self.nin]), *(_counts(w) for _, w in results)
            )
        finished = []
        for i, (host, whole) in enumerate(results):
            host = whole.reshape(host.shape)
            if not outs:
                finished.append(arrays.to_device(host) if is_device else host if host.shape else host[()])
            else:
                outs[i].copy_to_device(host.astype(outs[i].dtype)) if isinstance(
                    outs[i], arrays.DeviceNDArray
                ) else outs[i].__setitem__(..., host)
                finished.append(outs[i])
        return finished[0] if self.nout == 1 else tuple(finished)


def _make_kernel(function, count):
    """A kernel, each thread of which calls the function with one row of each array."""
    names = [f"a{i}" for i in range(count)]
    file = f"<kjit.cuda.guvectorize of {count}>"
    text = (
        f"def rows({', '.join(['count', *names])}):\n    i = grid(1)\n    if i < count:\n"
        f"        core({', '.join(f'{n}[i]' for n in names)})\n"
    )
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    from . import words

    space = {"core": dispatcher.Dispatcher(function, [], {"device": True}), "grid": words.FORMS["grid"]}
    exec(compile(text, file, "exec"), space)
    return dispatcher.Dispatcher(space["rows"], [], {})


def guvectorize(ftylist, signature, **options):
    """Makes a function of small arrays one of larger ones. signature: the layout, "(m,n),(n)->(m)"."""
    writable = options.pop("writable_args", None)
    if writable:
        raise TypeError("writable_args are not supported")
    _check_options(options, "guvectorize")
    listed = (
        [ftylist]
        if isinstance(ftylist, (str, types.Signature))
        or isinstance(ftylist, tuple)
        and all(isinstance(t, types.Type) for t in ftylist)
        else list(ftylist)
    )
    parsed = [types.parse(s) for s in listed]
    return lambda function: GUFunc(getattr(function, "py_func", function), parsed, signature)
