"""Calls kjit's algorithms. Converts operands, operators and results for the extension, and defines
plans and `map`."""

import functools
import sys
import types
from operator import index

from . import _kjit, _records, _state, dtypes
from ._arrays import element_of
from ._errors import ArgumentError, KernelError, name_element
from ._functions import Function
from ._traced import is_traced, recorded

EXCLUSIVE, DESCENDING, OUTER, RIGHT, TF32, E4M3, E5M2 = 1, 2, 8, 16, 32, 64, 128

# Options of every algorithm, in addition to its own keywords.
_OPTIONS = ("accumulator", "device", "plan", "stream")


# NumPy ufunc -> the func that computes it for one or two single elements.
_of_ufuncs: dict = {}


def _of_ufunc(ufunc, word):
    """Returns the func for a NumPy ufunc."""
    from .frontend import ufuncs

    if ufuncs.text_of(ufunc) is None:
        raise TypeError(f"{word}: kernels do not support np.{ufunc.__name__}")
    if ufunc not in _of_ufuncs:
        functions = (lambda a: ufunc(a), lambda a, b: ufunc(a, b))
        _of_ufuncs[ufunc] = Function(functions[ufunc.nin - 1])
    return _of_ufuncs[ufunc]


def _of_partial(partial, word):
    """Returns the func for a functools.partial; the arguments that it holds become constants."""
    function = function_of(partial.func, word)
    names = function._parameters()
    known = dict(zip(names, partial.args))
    if len(partial.args) > len(names) or set(partial.keywords) - set(names[len(partial.args) :]):
        raise TypeError(f"{word}: functools.partial holds an argument that {function.py_func.__name__}() does not take")
    return function._bound({**known, **partial.keywords})


def _without_defaults(function, count):
    """Returns the func for calls with `count` arguments. The defaults of the remaining parameters become constants."""
    code, defaults = function.py_func.__code__, function.py_func.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    values = dict(zip(names[len(names) - len(defaults) :], defaults))
    rest = function._parameters()[count:]
    if not rest or not all(name in values for name in rest):
        return function
    variants = function.__dict__.setdefault("_of_counts", {})
    if count not in variants:
        variants[count] = function._bound({name: values[name] for name in rest})
    return variants[count]


def function_of(thing, word="an operator", count=None):
    """Returns the func for a Python function, a NumPy ufunc or a functools.partial; None stays None. count is the
    number of arguments of a call; parameters after them keep their defaults."""
    if thing is None:
        return None
    if isinstance(thing, types.FunctionType):
        # Compiles the func once. The func lives as long as the Python function, because each refers to the other.
        known = thing.__dict__.get("__kjit_func__")
        if known is None:
            known = thing.__kjit_func__ = Function(thing)
        thing = known
    elif isinstance(thing, functools.partial):
        thing = _of_partial(thing, word)
    elif type(thing).__name__ == "ufunc":
        thing = _of_ufunc(thing, word)
    if not isinstance(thing, Function):
        raise TypeError(f"{word} must be a Python function or a kjit.func, not {type(thing).__name__}")
    if hasattr(thing, "of_count"):  # a derivative, whose code depends on the number of arguments
        return thing.of_count(count)
    return thing if count is None else _without_defaults(thing, count)


def _pair(thing, word, count=None):
    """Returns the func in the form that the extension takes: (module, name), or None."""
    function = function_of(thing, word, count)
    return None if function is None else function._loaded_module()


def less_of(less):
    return _pair(less, "`less`", 2)


def equal_of(equal):
    return _pair(equal, "`equal`", 2)


def operator_of(thing, commutes=False):
    """Returns the operator in the form that the extension takes: the name of a built-in operator, or (module, func
    name, whether the operator is commutative)."""
    if isinstance(thing, str):
        if "\0" in thing:
            raise ValueError(f"an operator's name must not contain zero bytes: {thing!r}")
        return thing
    if not isinstance(thing, (types.FunctionType, Function, functools.partial)) and type(thing).__name__ != "ufunc":
        raise TypeError(
            f"an operator must be a Python function, a kjit.func or a name that kjit has, not {type(thing).__name__}"
        )
    return (*_pair(thing, "an operator", 2), bool(commutes))


# ---- operands ----


class Computed:
    """An operand whose elements are computed on demand, see `kjit.computed`."""

    def __init__(self, function, shape, arrays, count=None):
        if function is None:
            raise TypeError("computed() needs a Python function or a kjit.func, not None")
        self.shape = shape if shape is None or isinstance(shape, tuple) else (shape,)
        self.function, self.arrays = function_of(function, "what is computed", count), arrays

    @property
    def device(self):
        """The name of the device of the first array that is on a device, or None."""
        return next((home for home in (_state.home_of(a) for a in self.arrays) if home), None)

    def packed(self):
        """Returns the operand in the form that the extension takes: (module, name, shape, arrays)."""
        import numpy

        scalars = {bool: numpy.bool_, int: numpy.int64, float: numpy.float64}
        return (
            *self.function._loaded_module(),
            self.shape,
            tuple(scalars.get(type(a), lambda a: a)(_operand(a)) for a in self.arrays),
        )


def computed(function, shape, *arrays):
    """Returns an operand whose elements are computed on demand. An algorithm that needs element (i, j) calls
    `function(i, j, *arrays)` and allocates no array. If the operand is passed as `out=`, the algorithm calls
    `function(i, j, value, *arrays)` for every result, and the function must store `value` itself.

    shape is an integer or a tuple with up to 8 integers. arrays are extra arguments, arrays or numbers; a Python int is
    passed as i64 and a float as f64.

        kjit.reduce(kjit.computed(lambda i, x, y: abs(x[i] - y[i]), len(x), x, y), "max")

    Raises TypeError if function is not a function. Errors inside the function are raised by the algorithm.
    """
    if is_traced(arrays):
        raise TypeError("kjit.grad: kjit.computed has no derivative; pass the arrays to kjit.map")
    return Computed(function, shape, arrays)


def _is_foreign(x):
    """Returns whether x is an array of another library outside host memory. An array of kjit.cuda counts as one even if its device
    is the CPU, so that a program has the same results as on a GPU."""
    if isinstance(x, _kjit.Array) or hasattr(x, "__array_struct__"):
        return False
    place = getattr(x, "__dlpack_device__", None)
    return hasattr(x, "__cuda_array_interface__") or place is not None and place()[0] != 1


def _device_of(operands):
    """Returns the device for result arrays: the device of the first array that is not a NumPy array, or None."""
    for x in operands:
        if isinstance(x, Computed):
            found = _device_of(x.arrays)
            if found:
                return found
        if isinstance(x, _kjit.Array):
            return x.device
        if _is_foreign(x):
            return _kjit.import_array(_state.context(), x).device
    return None


def numpy_array(x):
    """Converts a list or tuple to a NumPy array; returns any other object unchanged."""
    if not isinstance(x, (list, tuple)):
        return x
    import numpy

    return numpy.asarray(x)


def _counts(x):
    """Converts NumPy dates to integers that count their unit, such as days, for algorithms that
    combine or compare numbers."""
    return x.view("i8") if _records.is_date(getattr(x, "dtype", None)) and hasattr(x, "__array_struct__") else x


def _operand(x):
    if isinstance(x, Computed):
        return x.packed()
    if hasattr(x, "mask"):
        _check_mask(x)
    return numpy_array(x)


def _check_mask(x):
    """Rejects masked arrays, because kjit reads masked elements as well and the result would differ from NumPy."""
    masked = sys.modules.get("numpy.ma")
    if masked and isinstance(x, masked.MaskedArray) and masked.is_masked(x):
        raise TypeError("algorithms would also read the masked elements of a masked array; pass x.filled(value), x.compressed() or x.data")


def _result(x):
    """Checks an array for a result. A list is rejected, because the caller would not see the result."""
    if isinstance(x, (list, tuple)):
        raise TypeError(f"a result is written to an array, not to a {type(x).__name__}")
    return _operand(x)


def _flat(arguments):
    """Returns all operands among the arguments, including operands in tuples."""
    for x in arguments:
        yield from x.items if isinstance(x, Several) else (x,)


class Several:
    """An argument that is a tuple of operands."""

    def __init__(self, items):
        self.items = tuple(items)


def _packed(x):
    return tuple(_operand(item) for item in x.items) if isinstance(x, Several) else _counts(_operand(x))


def perhaps(x):
    """Returns the form of an operand that can be omitted: the operand itself, or Plain(None) for
    None."""
    return Plain(None) if x is None else x


class Plain:
    """An argument that is not an operand: an operator, a func, a number or a string."""

    def __init__(self, value):
        self.value = value


# ---- results ----


def numpy_type(element):
    """Returns the NumPy dtype for the name of an element type."""
    if element in dtypes._NUMPY:
        return dtypes._NUMPY[element]
    if _records.is_name(element):
        return _records.dtype_of(element)
    if element == "bf16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    raise TypeError(f"NumPy has no elements of the type {element}: pass kjit arrays")


def new_array(shape, element, device):
    """Creates an array for a result: a kjit array on a device, or a NumPy array if device is None."""
    if device is not None:
        return _kjit.empty(_state.context(), shape, element, device)
    import numpy

    return numpy.empty(shape, numpy_type(element))


def finished(result):
    """Converts a result for the caller: a NumPy array without dimensions becomes a scalar."""
    return result[()] if not isinstance(result, (_kjit.Array, Computed)) and getattr(result, "shape", None) == () else result


class Plan:
    """An algorithm prepared with `plan=True`: compiled, with its memory allocated. `results` are the output arrays,
    given or created; `len(plan)` is the number of launches."""

    def __init__(self, prepared, results):
        self._prepared, self.results = prepared, results

    def run(self, stream=None):
        """Queues the launches on `stream`, or on the stream of the call that created the plan. It does not wait, so
        `with stream.capture() as graph: plan.run(stream)` captures the plan in a graph. The launches read and write the
        current contents of the arrays. Only one thread at a time may run a plan, and the program must order runs on
        different streams. Raises MisuseError if another thread is running the plan, or a function that the plan calls
        runs it again, ForkedError if the plan belongs to the parent process, and a launch's errors."""
        self._prepared.run(stream)

    @property
    def result(self):
        """The result, or a tuple of all results."""
        return self.results[0] if len(self.results) == 1 else self.results

    def __len__(self):
        return len(self._prepared)


def _check_counts(own):
    """Checks counts, which the extension stores as unsigned 64-bit and 32-bit numbers."""
    for key, bits in (("chunk", 64), ("begin_bit", 32), ("end_bit", 32)):
        value = own.get(key, 0)
        if not hasattr(value, "__index__"):
            raise TypeError(f"{key} must be an integer, not {value!r}")
        if not 0 <= index(value) < 2**bits:
            raise OverflowError(f"{key} is {value}, but must be from 0 to 2^{bits} - 1")


def _one_value(initial):
    """Returns a number unchanged, and the element of an array of rank 0. Returns a copy of a record, as an array of
    rank 0 that can be written."""
    shape = getattr(initial, "shape", ())
    if shape != ():
        raise TypeError(f"initial must be a single value, not an array of the shape {tuple(shape)}")
    if hasattr(initial, "to_host"):
        initial = initial.to_host()
    if getattr(getattr(initial, "dtype", None), "names", None) is not None:
        import numpy

        return numpy.asarray(initial).copy()  # numpy.array would not copy a record
    return initial[()] if hasattr(initial, "dtype") and not isinstance(initial, (str, bytes)) else initial


def perform(name, count, arguments, out=None, *, options=None, together=False, dtype=None, made=None, **own):
    """Runs an algorithm and returns a tuple of the results, or a Plan.

    arguments follow the results in the call and are operands, Several or Plain. count is the number
    of results; None means that the algorithm decides. out holds arrays for the results, or is None.
    options are the caller's options, which can contain unknown names. own holds the algorithm's own
    keywords. With together, the results are passed as one argument. made has a pair (shape,
    element) for each result array whose shape and type the caller already knows."""
    given = dict(options or {})
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; the options are {', '.join(_OPTIONS)}")
    for i, x in enumerate(_flat(arguments)):
        if x is None:
            raise TypeError(f"{name}: argument {i + 1} is None: expected an array or a number")
    _check_counts(own)
    if own.get("initial") is not None:
        own["initial"] = _one_value(own["initial"])
    if given.get("device") is None:
        given["device"] = None if own.get("devices") else _state.device_for(_flat(arguments))
    if given.get("accumulator") is not None:
        given["accumulator"] = dtypes.name_of(given["accumulator"]) or given["accumulator"]
    if own.get("where") is not None:
        own["where"] = _operand(own["where"])
    wants_plan = bool(given.pop("plan", False))
    values = tuple(x.value if isinstance(x, Plain) else _packed(x) for x in arguments)
    run = functools.partial(_kjit.run_algorithm, _state.context(), name, **given, **own)
    is_made = out is None
    if is_made:
        places = [x for x in _flat(arguments) if not isinstance(x, Plain)]
        if made is None:
            empty = (None,) if together else (None,) * count
            made = [(shape, element) for element, shape in run((*empty, *values), asked=count or 1)]
        device = _device_of(places)
        out = tuple(new_array(shape, dtype or element, device) for shape, element in made)
    elif count and count > 1 and not together and (not isinstance(out, (tuple, list)) or len(out) != count):
        raise TypeError(f"{name}: out must be a tuple of {count} arrays, not {_said(out)}")
    results = tuple(out)
    written = tuple(_result(r) for r in results)
    written = (written,) if together else tuple(_counts(r) for r in written)
    prepared = run((*written, *values), plan=wants_plan)
    if wants_plan:
        return Plan(prepared, results)
    return tuple(finished(result) for result in results) if is_made else results


def _said(out):
    """Returns the words for an unsuitable out= in a message."""
    return f"a {type(out).__name__} of {len(out)} items" if isinstance(out, (tuple, list)) else f"an object of type {type(out).__name__}"


def perform_with_omitted(name, arguments, out, **keywords):
    """Like `perform`, for algorithms with two results. If `out` is given, one of its two items can be None, and the
    function returns `out`."""
    if out is None:
        return perform(name, 2, arguments, None, **keywords)
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{name}: out must be a tuple of 2 arrays, one of which can be None, not {_said(out)}")
    outcome = perform(name, 0, (*(perhaps(result) for result in out), *arguments), (), **keywords)
    return outcome if isinstance(outcome, Plan) else out


def one(outcome):
    """Returns the result of an algorithm with one result."""
    return outcome if isinstance(outcome, Plan) else outcome[0]


def axes_of(axis):
    if axis is None:
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not all(hasattr(each, "__index__") for each in axes):
        raise TypeError(f"axis must be an integer or a tuple of integers, not {axis!r}")
    # clips the axes to limits that are invalid for every array, so an invalid axis stays invalid
    return tuple(max(-100, min(index(each), 100)) for each in axes)


def listed(out):
    """Returns `out` of an algorithm with one result as a tuple."""
    return None if out is None else (out,)


# ---- maps ----


def _outputs(signature):
    """Returns the number of results that a signature of core dimensions has, or None without a
    signature."""
    return signature.split("->")[-1].count("(") if signature else None


def _common_type(operands):
    import numpy

    found = [dtypes._NUMPY.get(x.dtype, x.dtype) if isinstance(x, _kjit.Array) else numpy.asarray(x).dtype for x in operands]
    return dtypes.name_of(numpy.result_type(*found))


@recorded
def map(function, *operands, out=None, where=None, outer=False, signature=None, dtype=None, **options):
    """Applies `function` to the corresponding elements of the operands, which broadcast as in NumPy. Returns an array,
    or a tuple of arrays if the function returns a tuple. Operands are arrays and numbers; a Python number takes the
    type of the other operands.

    out is an array, or a tuple with an array for each result, with the broadcast shape. where is a bool array that
    broadcasts; elements of `out` for which it is false stay unchanged. With outer, each element of the first operand is
    combined with each element of the second, and so on, and the result shape is the concatenated operand shapes.

    signature gives core dimensions, "(m,n),(n)->(m)". `function` then receives views of the last dimensions of operands
    and results. The results are its last arguments, which it writes. All other dimensions broadcast. A result with the
    core dimensions `()` is an array with one element. dtype is the type of new results; with core dimensions the
    default is the common type of the operands. options: see `kjit.reduce`.

    Raises ArgumentError for shapes that do not broadcast and results that overlap operands, TypingError if
    `function` returns an unsuitable type, and ParseError for an invalid signature.
    """
    if not isinstance(signature, (str, type(None))):
        raise TypeError(f'a signature must be a string such as "(n),(n)->()", not {type(signature).__name__}')
    count = _outputs(signature)
    if out is not None and not isinstance(out, tuple):
        out = (out,)
    if out is None and where is not None:
        raise TypeError("where= leaves elements of the result unchanged, so it needs an existing array: pass out=")
    element = element_of(dtype) if dtype is not None else _common_type(operands) if signature and out is None else None
    arguments = (Plain(_pair(function, "what is mapped", len(operands) + (count or 0) if signature else len(operands))), Several(operands))
    flags = OUTER if outer else 0
    outcome = perform(
        "map", count, arguments, out, together=True, dtype=element, where=where, signature=signature, flags=flags, options=options
    )
    return outcome[0] if not isinstance(outcome, Plan) and len(outcome) == 1 else outcome


def _fails(call, operands):
    try:
        call(*operands)
    except KernelError:
        return True
    return False


def find_failing(call, operands):
    """Returns the index of the first element for which an elementwise function fails. A binary
    search calls the function for parts of the arrays. Returns None if the arrays are not in host
    memory, or if no element fails in these calls."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not all(isinstance(o, (numpy.ndarray, numpy.generic, int, float, complex)) for o in operands):
        return None
    shape = numpy.broadcast_shapes(*(numpy.shape(o) for o in operands))
    flat = [numpy.broadcast_to(o, shape).ravel() if numpy.ndim(o) else o for o in operands]
    first, last = 0, int(numpy.prod(shape, dtype=numpy.int64))

    def part(start, end):
        return [o[start:end] if numpy.ndim(o) else o for o in flat]

    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if _fails(call, part(first, middle)) else (middle, last)
    if not shape or not _fails(call, part(first, last)):
        return None
    return tuple(int(i) for i in numpy.unravel_index(first, shape))


def of_element(error, name, function, operands, **options):
    """Converts a thread's error to an error of an elementwise function. operands is None if the caller does not need
    the index of the failing element."""
    element = None if operands is None else find_failing(lambda *o: map(function, *o, **options), operands)
    return name_element(error, name, element).with_traceback(None)


def wrong_count(name, expected, given):
    """Returns the error for a call with a wrong number of arrays."""
    count = f"{expected} array{'s' * (expected != 1)}"
    return ArgumentError(f"{name}() takes {count}, {given} {'was' if given == 1 else 'were'} given", "KJIT_ERROR_ARGUMENT")
