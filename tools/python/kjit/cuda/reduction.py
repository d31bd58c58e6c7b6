"""`reduce` and `vectorize`: functions of elements, applied to arrays."""

import functools
import types as python_types
import warnings

import numpy

from .. import _algorithms, _arrays, _folds, _functions, _kjit, _ufuncs, dtypes
from .._errors import KernelError
from .._type_words import in_python as in_python_types
from ..frontend import words as frontend_words
from . import arrays, compiled, dispatcher, ordered, types


class _Func(_functions.Function):
    """A device function with Numba's type rules."""

    is_typed = True


def _func(thing, is_strict=False):
    return _Func(getattr(thing, "py_func", thing), numba=True, strict=is_strict)


def is_device(value):
    return isinstance(value, arrays.DeviceNDArray) or hasattr(value, "__cuda_array_interface__")


def on_host(array):
    return arrays.as_cuda_array(array).copy_to_host() if is_device(array) else numpy.asarray(array)


def as_device(value):
    return arrays.as_cuda_array(value) if arrays.has_interface(value) else value


class Reduce:
    """Reduces a one-dimensional array with an associative function of two values; made by
    `@cuda.reduce`."""

    def __init__(self, functor):
        self._func = _func(functor)

    def __call__(self, arr, size=None, res=None, init=0, stream=0):
        """Reduces arr, an array of one dimension, and returns a NumPy scalar.

        size: the number of leading elements to reduce; None means all. init: the first operand of
        the reduction. res: a device array whose first element receives the result; the call then
        returns None. Raises TypeError if arr has several dimensions or res has another dtype.
        """
        if arr.ndim != 1:
            raise TypeError("only support 1D array")
        count = arr.shape[0] if size is None else size
        if res is not None and res.dtype != arr.dtype:
            raise TypeError(f"the result has elements of type {res.dtype}, but the array has elements of type {arr.dtype}")
        first = numpy.dtype(arr.dtype).type(init)
        if count <= 0:
            result = init if res is None else first  # init is returned without a conversion, as in Numba
        else:
            own = (arrays.as_cuda_array(arr) if is_device(arr) else arr)[:count]
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


def check_options(options, what="vectorize"):
    unknown = sorted(set(options) - _OPTIONS)
    if unknown and what == "guvectorize":
        raise TypeError(f"The following target options are not supported: {', '.join(map(repr, unknown))}")
    if unknown:
        raise KeyError(f"Unrecognized options. Unrecognized option: {unknown[0]!r}; known are {sorted(_OPTIONS)}")
    if not options.get("nopython", True):
        raise TypeError("nopython flag must be True")


def check_target(options, what="vectorize"):
    """Checks the options of a decorator of kjit.cuda. Raises NotImplementedError for a target other
    than "cuda"."""
    check_options(options, what)
    if "nopython" in options and what == "vectorize":
        warnings.warn("nopython kwarg for cuda target is redundant", RuntimeWarning, stacklevel=3)
    if options.get("target") not in (None, "cuda"):
        raise NotImplementedError(
            f"kjit.cuda.vectorize(target={options['target']!r}) is not supported: use kjit.vectorize, which supports both the CPU and GPUs"
        )


def _result_of(function, signature):
    """Returns the result type that a signature declares, or else the inferred one. Raises TypeError
    if the function's result is not a number."""
    if signature.return_type not in (None, types.void):
        return signature.return_type
    samples = [numpy.zeros((), types.as_dtype(a))[()] for a in signature.args]
    if any(s.dtype.kind in "mM" for s in samples):  # NumPy decides, because the difference of two dates is not a date
        return types.from_dtype(numpy.asarray(function(*samples)).dtype)
    made = dispatcher.Dispatcher(function, [], {"device": True})._function
    text = made.find_result(compiled.device_text(signature.args))
    kind = types.of_text(text)
    if kind in (None, types.void):
        raise TypeError(f"{function.__name__} has no result for {signature.args} that is a number: {in_python_types(text)}")
    return kind


_NUMBERS = (bool, int, float, complex)


_RANKS = {bool: 0, int: 1, float: 2, complex: 3}
_RANKS_OF_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _is_safe(value, found, wanted):
    """Returns whether NumPy 2 converts an argument to a type under the rule "safe". A Python number
    can be converted to every type of its kind and of higher kinds."""
    rank = _RANKS.get(type(value))
    if rank is not None:
        return rank <= _RANKS_OF_KINDS.get(wanted.kind, 1)  # an int can also be converted to a timedelta
    return numpy.can_cast(found, wanted, "safe")


def _check_number(value, wanted):
    """Raises OverflowError for a Python int that the signature's type cannot hold, as NumPy 2 does."""
    if type(value) is int and wanted.kind in "iu":
        limits = numpy.iinfo(wanted)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python integer {value} out of bounds for {wanted}")


def _is_equal(value, found, wanted):
    return found == wanted


def _fits_array(value, found, wanted):
    """Returns whether the types are equal, or the value is a Python number. Such a number takes the
    signature's type, as in numba.cuda."""
    is_real = found.kind != "c" or wanted.kind == "c"
    return found == wanted or isinstance(value, _NUMBERS) and is_real


def _fits_safely(value, found, wanted):
    return _fits_array(value, found, wanted) or _is_safe(value, found, wanted)


def _is_exact(value, found, wanted):
    """Returns whether an argument already has the wanted type. Python numbers have no type of their
    own."""
    return found == wanted and type(value) not in _RANKS


# The rules that all arguments have to meet for a signature to fit, tried in this order. On the CPU
# these are NumPy's own rules. A Numba ufunc takes the first signature that fits. A gufunc or a
# ufunc with target="parallel" prefers the signature that has exactly the types of the arguments.
# kjit.cuda also accepts the conversions of numba.cuda.
OF_NUMPY = (_is_safe,)
OF_EXACT = (_is_exact, _is_safe)
OF_CUDA = (_is_equal, _fits_array, _is_safe, _fits_safely)
_RULES = (OF_NUMPY, OF_EXACT, OF_CUDA)
_RULES_OF_TARGETS = {"cuda": OF_CUDA, "parallel": OF_EXACT}


def choose_row(rows, name, args, found, rules):
    """Returns the first row of types (inputs, ...) to which all arguments can be converted. The
    rules are tried in order. Raises TypeError if no row fits."""
    if all(type(a) in _RANKS for a in args):  # all arguments are Python numbers, so no argument determines the type
        args = [numpy.asarray(a)[()] for a in args] if rules is not OF_CUDA else args
    for fits in rules:
        for row in rows:
            if all(map(fits, args, found, row[0])):
                return row
    raise TypeError(f"no matching signature of {name} for elements {', '.join(map(str, found))}")


def check_out(name, result, out, casting="same_kind"):
    if not numpy.can_cast(result, out.dtype, casting):
        raise TypeError(
            f"{name}: out has elements of type {out.dtype}, but casting={casting!r} does not allow results of type {result} to be converted to it"
        )


def _takes(name, wanted):
    """Returns the kernel IR condition that a value's type can be converted safely to the wanted
    type."""
    safe = [text for text, other in dtypes._NUMPY.items() if wanted.kind not in "mM" and numpy.can_cast(other, wanted, "safe")]
    listed = safe or [types.from_dtype(wanted).text]
    return f"({' or '.join(f'dtype({name}) == {text}' for text in listed)})"


def codes_of(inputs, results):
    """Returns NumPy's type characters of the inputs and of the results."""
    return "".join(dtype.char for dtype in inputs), "".join(dtype.char for dtype in results)


# For each value of casting=, the rules that compare the argument's type with the signature's type.
_CASTING_RULES = {"no": (_is_equal,), "equiv": (_is_equal,)}


def rules_for(casting, rules):
    """Returns the rules by which a call chooses a signature. casting="unsafe" and "same_kind"
    concern the conversion of results only, as in NumPy."""
    _ufuncs.check_casting(casting)
    return _CASTING_RULES.get(casting, rules)


def _other_device(values):
    """Returns the device of the first device array if it is not the current device, else None."""
    if not _kjit.has_several_devices():
        return None
    place = next((v._own.device for v in values if isinstance(v, arrays.DeviceNDArray)), None)
    device = None if place is None else _arrays.device(place)
    here = _arrays.device()
    return None if device is None or (device.kind, device.ordinal) == (here.kind, here.ordinal) else device


def _result_like(operands, shape, dtype):
    """Returns an array for the results of host operands, in the memory order that NumPy's ufuncs choose."""
    if not all(x.flags.c_contiguous for x in operands):
        accesses = [["readonly"]] * len(operands) + [["writeonly", "allocate"]]
        kinds = [None] * len(operands) + [dtype]
        made = numpy.nditer((*operands, None), ["zerosize_ok"], accesses, op_dtypes=kinds).operands[-1]
        if made.shape == shape:  # false if where= has more dimensions than the operands
            return made
    return numpy.empty(shape, dtype)


class DeviceUfunc(_ufuncs.Folds):
    """A ufunc: applies a function of elements to arrays, which broadcast. `ufunc(x, y, out=r)`,
    `ufunc.reduce(x)`."""

    def __init__(self, function, signatures, device=None, rules=OF_CUDA, identity=None):
        """identity: 0, 1, None or "reorderable". The last means that the function has no identity,
        but that the order of the operands does not matter."""
        functools.update_wrapper(self, function, updated=())
        del self.__wrapped__
        self._device, self._rules, self._signatures = device, rules, list(signatures)
        self.is_reorderable, self._given_identity = identity is not None, identity
        self.identity = None if identity == "reorderable" else identity
        self._loops = {}  # the loops of ordered.py by function and type
        self.py_func = function
        # on the CPU, a*b+c is rounded twice, as in Numba and NumPy; on a GPU, it may be computed as one fused
        # operation, as in Numba
        is_strict = rules is not OF_CUDA
        self._func = _func(function, is_strict)
        self._rows = [self._row(function, s, is_strict) for s in signatures]
        self.nin = function.__code__.co_argcount
        self.nout, self.signature = 1, None
        self._codes = tuple(codes_of(inputs, [result]) for inputs, result, _ in self._rows)

    def __reduce__(self):
        reduced = dispatcher.Dispatcher(self.py_func, [], {"device": True})._kernel.__reduce__()
        signatures = [(s.return_type, s.args) for s in self._signatures]
        return _remake_ufunc, (reduced, signatures, self._device, _RULES.index(self._rules), self._given_identity)

    @staticmethod
    def _row(function, signature, is_strict):
        """Returns (types of the inputs, type of the result, the device function with that result)."""
        kind = _result_of(function, signature)
        func = _func(function, is_strict)
        func.result = kind.text
        return [types.as_dtype(a) for a in signature.args], types.as_dtype(kind), func

    @functools.cached_property
    def as_function(self):
        """The function that kernels and other functions call. With signatures, it calls the
        function with the types of the first signature to which all arguments can be converted
        safely."""
        if not self._rows:
            return self._func
        names = [f"v{i}" for i in range(self.nin)]
        lines, needs = [], []
        for number, (inputs, _, func) in enumerate(self._rows):
            func.__name__ = f"vectorized_{number}"
            needs.append(func)
            tests = " and ".join(map(_takes, names, inputs))
            values = ", ".join(f"{types.from_dtype(dtype).text}({name})" for name, dtype in zip(names, inputs))
            lines.append(f"  if {tests} {{ return vectorized_{number}({values}) }}\n")
        refusal = f'  raise "no signature of {self.__name__} takes arguments of these types"\n'
        head = f"\nfunc vectorized({', '.join(names)}) @numba {{\n"
        return frontend_words.Text("vectorized", f"{head}{''.join(lines)}{refusal}}}", tuple(needs))

    def _choose(self, args, found, casting="same_kind", dtype=None):
        if not self._rows:  # the arguments determine the types
            sample = tuple(numpy.zeros(1, f) for f in found)
            result = numpy.asarray(_algorithms.map(self._func, *sample)).dtype
            code = codes_of(found, [result])
            if code not in self._codes:
                self._codes += (code,)
            return found, result, self._func
        rules, rows = rules_for(casting, self._rules), self._rows
        if dtype is not None:
            # only signatures with this result type fit; casting= decides which conversions of operands are allowed
            rows = [row for row in rows if row[1] == numpy.dtype(dtype)]
            rules = (lambda value, own, wanted: numpy.can_cast(own, wanted, casting),)
        return choose_row(rows, self.__name__, args, found, rules)

    @_ufuncs.with_overrides
    def __call__(self, *args, out=None, where=None, casting="same_kind", dtype=None, stream=0):
        if len(args) == self.nin + 1 and out is None:
            args, out = args[:-1], args[-1]
        if isinstance(out, tuple) and len(out) == 1:
            out = out[0]
        out = arrays.as_cuda_array(out) if out is not None and is_device(out) else out
        if len(args) != self.nin:
            raise _algorithms.wrong_count(self.__name__, self.nin, len(args))
        is_on_device = any(is_device(a) for a in args) or is_device(out)
        given = [arrays.as_cuda_array(a) if is_device(a) else numpy.asarray(a) for a in args]
        other = _other_device([*given, out]) if is_on_device else None
        if other is not None:
            with other:
                return self(*args, out=out, where=where, casting=casting, dtype=dtype, stream=stream)
        inputs, result, func = self._choose(args, [g.dtype for g in given], casting, dtype)
        operands = []
        for value, dtype in zip(args, inputs):
            _check_number(value, dtype)
        for g, dtype in zip(given, inputs):
            if isinstance(g, arrays.DeviceNDArray):
                operands.append(g._own if g.dtype == dtype else arrays.to_device(g.copy_to_host().astype(dtype))._own)
            else:
                g = numpy.ascontiguousarray(g, dtype).reshape(g.shape)
                operands.append(arrays.to_device(g)._own if is_on_device else g)
        masks = () if where is None or where is True else (where if is_device(where) else numpy.asarray(where),)
        shape = numpy.broadcast_shapes(*(g.shape for g in (*given, *masks)))
        if out is None:
            made = arrays.device_array(shape, result) if is_on_device else _result_like(given, shape, result)
        else:
            check_out(self.__name__, result, out, casting)
            made = out
        target = arrays.as_cuda_array(made)._own if is_device(made) else made
        if made.size:
            try:
                _algorithms.map(func, *operands, out=target, where=self._mask(masks, is_on_device), device=self._device)
            except KernelError as error:
                raise _algorithms.of_element(error, self.__name__, func, operands, device=self._device) from None
        return made if out is not None or is_on_device or shape else made[()]

    @staticmethod
    def _mask(masks, is_on_device):
        """Returns the array of where= in the memory in which the operands are, or None. Raises
        TypeError if it is not an array of bool."""
        if not masks:
            return None
        if is_device(masks[0]):
            return arrays.as_cuda_array(masks[0])._own
        if masks[0].dtype != bool:
            raise TypeError(f"where= must be an array of bool, not of {masks[0].dtype}")
        return arrays.to_device(masks[0])._own if is_on_device else masks[0]

    def _operator(self, dtype, widens=False):
        """Returns (the device function, its type) for a reduction of elements of type dtype.
        widens: whether a ufunc without signatures may reduce in its result's type, such as int64
        for int8."""
        func, kinds, result = self._operator_row(dtype, dtype, widens)
        if kinds[1] != result:
            raise self._unfit(kinds, result)
        return func, result

    def _unfit(self, kinds, result):
        return TypeError(f"{self.__name__}: a reduction needs a signature of one type, not {kinds} with the result {result}")

    def _operator_row(self, first, second, widens):
        """Returns (the device function, its operands' types, its result's type) for a reduction
        that combines a value of type `first` with an element of type `second`. The first operand
        has the result type. widens: see `_operator`."""
        if self.nin != 2:
            raise ValueError("reduce only supports binary functions")
        found = [first, second]
        args = [numpy.zeros(1, dtype) for dtype in found]
        rows = [row for row in self._rows if row[0][0] == row[1]] or self._rows
        kinds, result, func = choose_row(rows, self.__name__, args, found, self._rules) if rows else self._choose(args, found)
        if widens and not self._signatures and result != first and result.kind in "iuf":
            kinds, result, func = self._choose([numpy.zeros(1, result)] * 2, [result] * 2)
        if kinds[0] != result:
            raise self._unfit(kinds, result)
        return func, kinds, result

    def _loops_of(self, func, kind):
        key = id(func), kind
        if key not in self._loops:
            self._loops[key] = ordered.Loops(func, numpy.dtype(kind.name).type)
        return self._loops[key]

    def operator_in_order(self, found, dtype):
        """Returns (the loops of ordered.py, the result type, the type of the elements) for a
        reduction. found: the array type. dtype: the type that the call asks for, or None."""
        wanted = numpy.dtype(found if dtype is None else dtype)
        try:
            func, kinds, result = self._operator_row(wanted, wanted, dtype is None)
        except TypeError:
            if wanted == found:
                raise
            # a signature such as float64(float64, int64) may fit
            func, kinds, result = self._operator_row(wanted, found, False)
        return self._loops_of(func, result), result, kinds[1]

    def function_in_order(self, operands, found):
        """Returns (the loops of ordered.py, the types of the operands) for a call with these
        operands. found: the types that the operands have."""
        kinds, _, func = self._choose(operands, found)
        return self._loops_of(func, kinds[0]), kinds

    def _is_in_order(self):
        """Returns whether the methods apply the function to one element after the other, as on the
        CPU in NumPy and Numba."""
        return self._device == "cpu"

    @_ufuncs.with_overrides
    def reduce(self, arg, axis=0, dtype=None, out=None, keepdims=False, initial=None, stream=0):
        """Reduces the elements along an axis, like NumPy's `ufunc.reduce`. On the CPU the function
        is applied to one element after the other. On a GPU it must be associative."""
        host = on_host(arg)
        if self._is_in_order():
            return ordered.reduce(self, host, axis, dtype, out, keepdims, initial)
        func, result = self._operator(numpy.dtype(dtype or host.dtype), widens=dtype is None)
        if initial is None and isinstance(self.identity, int):
            initial = self.identity
        initial = None if initial is None else result.type(initial)
        shape, given = host.shape, axis
        if axis is None or host.ndim == 1:
            host, axis = host.reshape(-1), None
        made = _folds.reduce(numpy.ascontiguousarray(host, result), func, axis=axis, initial=initial, out=out, device=self._device)
        return _ufuncs.with_kept(made, shape, given) if keepdims and out is None else made

    @_ufuncs.with_overrides
    def accumulate(self, arg, axis=0, dtype=None, out=None):
        """Returns the partial reductions along an axis, like NumPy's `ufunc.accumulate`. On a GPU
        the function must be associative."""
        if self._is_in_order():
            return ordered.accumulate(self, on_host(arg), axis, dtype, out)
        func, result = self._operator(numpy.dtype(dtype or numpy.asarray(arg).dtype), widens=dtype is None)
        return _folds.scan(numpy.ascontiguousarray(arg, result), func, axis=axis, out=out, device=self._device)

    @_ufuncs.with_overrides
    def outer(self, x, y, **options):
        """Applies the function to each pair of elements of x and y. The result has the shape
        x.shape + y.shape. options: keyword arguments, as for a call of the function."""
        x, y = numpy.asarray(x), numpy.asarray(y)
        return self(x.reshape(x.shape + (1,) * y.ndim), y, **options)

    @_ufuncs.with_overrides
    def at(self, x, places, values=None):
        """Sets `x[places[i]]` to `function(x[places[i]], values[i])` for each i, like NumPy's
        `ufunc.at`. An index that occurs several times is updated several times. As in Numba, a
        result is converted to the array's type even if that loses digits. On a GPU the function
        must have two operands and be commutative, and places must be integers."""
        if self._is_in_order():
            if not isinstance(x, (numpy.ndarray, _kjit.Array)) and not is_device(x):
                raise TypeError(f"{self.__name__}.at: x must be an array, not {type(x).__name__}")
            host = on_host(x)  # x itself if it is a NumPy array, or a copy of a device array
            ordered.update_at(self, host, places, values)
            if is_device(x):
                ordered.store(x, host)
            return
        if values is None:
            raise TypeError(f"{self.__name__}.at: values must be an array or a number, not None")
        func, result = self._operator(x.dtype)
        values = numpy.broadcast_to(numpy.asarray(values, result), numpy.shape(places) + x.shape[1:])
        _folds.update_at(x, places, numpy.ascontiguousarray(values), func, commutes=True, device=self._device)


def _remake_ufunc(reduced, signatures, device, rules, identity):
    function = reduced[0](*reduced[1]).py_func
    made = [types.Signature(*parts) for parts in signatures]
    return DeviceUfunc(function, made, device, _RULES[rules], identity)


def vectorize(ftylist_or_function=(), **options):
    """Decorates a function of elements so that it applies to arrays.

    The first argument is a list of signatures, such as ["float32(float32, float32)"]. Without
    signatures each call determines the types. identity: the identity of reduce, 0, 1 or None.
    """
    check_target(options)
    return _vectorize(ftylist_or_function, None, identity=options.get("identity"))


# ---- numba.vectorize for all targets ----


def checked_identity(options):
    """Returns the identity in a ufunc's options. The option "reorderable" means that the operator
    has no identity element, but that the order of its operands does not matter."""
    identity = options.get("identity")
    if identity not in (None, 0, 1, "reorderable"):
        raise ValueError(f'identity must be 0, 1, None or "reorderable", not {identity!r}')
    return identity


TARGETS = {"cpu": "cpu", "parallel": "cpu", "cuda": None}  # None: the device in KJIT_DEVICE, else the first GPU


def vectorize_for(signatures, *, target="cpu", **options):
    """Decorates a function of elements so that it applies to arrays: `kjit.vectorize` with
    signatures, with the arguments of numba.vectorize.

    signatures: a list; an empty list or None means that each call determines the types. target:
    "cpu", "parallel" or "cuda", otherwise ValueError is raised. identity: 0, 1, "reorderable" or
    None, otherwise ValueError is raised.
    """
    if target not in TARGETS:
        raise ValueError(f"vectorize(target={target!r}): the targets are {', '.join(TARGETS)}")
    check_options(options)
    given = {"rules": _RULES_OF_TARGETS.get(target, OF_NUMPY), "identity": checked_identity(options)}
    if signatures is None or isinstance(signatures, (list, tuple)) and not signatures:  # each call determines the types
        return lambda function: DeviceUfunc(function, [], TARGETS[target], **given)
    return _vectorize(signatures, TARGETS[target], **given)


def _vectorize(ftylist_or_function, device, **given):
    if isinstance(ftylist_or_function, python_types.FunctionType):
        return DeviceUfunc(ftylist_or_function, [], device, **given)
    if not isinstance(ftylist_or_function, (list, tuple, str, types.Signature)):
        raise TypeError('cuda.vectorize takes signatures: @vectorize(["float32(float32, float32)"])')
    listed = (
        [ftylist_or_function] if isinstance(ftylist_or_function, (str, types.Signature)) else list(ftylist_or_function)
    )
    signatures = [types.parse(s) for s in listed]
    return lambda function: DeviceUfunc(getattr(function, "py_func", function), signatures, device, **given)
