"""The functions and values of kjit.cuda, and functions of Python and NumPy, for the current thread."""

import functools
import math
import operator
import types

import numpy

from .. import dtypes
from ..cuda import arrays, cg
from ..cuda import types as cuda_types
from ..cuda import words
from ..frontend import words as language
from . import computed, conversions, threads, together
from .threads import NOW

_UINT32, _INT64 = numpy.uint32, numpy.int64

_PLACES = {id(word): name for name, word in words.PLACES.items()}


def place(thing):
    """Returns the attribute of NOW for a value such as cuda.threadIdx, or None."""
    return _PLACES.get(id(thing))


# ---- positions ----


def _positions(count):
    first, place = NOW.first, NOW.threadIdx.wide
    if count == 1:
        return first[0] + place[0]
    return _first(count, tuple(map(operator.add, first, place)), "grid")


def _extents(count):
    n = NOW
    pairs = ((n.gridDim.x, n.blockDim.x), (n.gridDim.y, n.blockDim.y), (n.gridDim.z, n.blockDim.z))
    return _first(count, tuple(_INT64(g) * b for g, b in pairs), "gridsize")


def _first(count, found, name):
    if count not in (1, 2, 3):
        raise ValueError(f"cuda.{name}() takes a literal value: 1, 2 or 3")
    return found[0] if count == 1 else found[:count]


# ---- shared and local arrays ----


def _unset(shape, dtype, alignment=None):
    """Returns a new array with recognizable contents: NaN for floats, and the bytes 0xCD for all
    other types. alignment: the alignment of its address,
    a power of two, or None."""
    count, step = math.prod(shape) * dtype.itemsize, _alignment(alignment)
    memory = numpy.full(count + step - 1, 0xFF if dtype.kind in "fc" else 0xCD, numpy.uint8)
    first = -memory.ctypes.data % step if step > 1 else 0
    return records_by_name(memory[first : first + count].view(dtype).reshape(shape))


def _alignment(alignment):
    if alignment is None:
        return 1  # NumPy's alignment, which suffices for all types
    step = operator.index(alignment)
    if step < 1 or step & (step - 1):
        raise ValueError(f"Alignment must be a positive power of two, not {step}")
    return step


def records_by_name(array):
    """Returns a view of an array of records whose elements have their fields as attributes."""
    return array.view(numpy.recarray) if array.dtype.names else array


def _shape_of(shape):
    return tuple(int(e) for e in shape) if isinstance(shape, tuple) else (int(shape),)


def _shared_array(site, shape, dtype, alignment=None):
    shared = NOW.thread.block.shared
    if site not in shared:
        shared[site] = _new_shared(shared, _shape_of(shape), arrays.element_of(dtype)[0], alignment)
    return shared[site]


def _new_shared(shared, shape, dtype, alignment):
    if shape != (0,):
        return _unset(shape, dtype, alignment)
    # all arrays in dynamic shared memory begin at the same address
    memory = shared.setdefault("dynamic", numpy.full(NOW.thread.block.launch.shared_bytes, 0xCD, numpy.uint8))
    return memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)


def _local_array(shape, dtype, alignment=None):
    return _unset(_shape_of(shape), arrays.element_of(dtype)[0], alignment)


def needs_site(thing):
    """Returns whether all threads in a block share the array that a call of this function creates.
    Such an array belongs to the call's location."""
    return thing is words.shared.array


# ---- atomics: no other thread runs between the read and the write ----


def _atomic(change):
    def apply(ary, index, value):
        index = tuple(index) if isinstance(index, tuple) else index
        old = ary[index]
        ary[index] = change(old, value if type(value) is type(old) else numpy.asarray(value).astype(ary.dtype)[()])
        return old

    return apply


# Returns the element after atomic.max. As on all targets, a NaN stays in the array, and a NaN does
# not replace a number.
def _largest(old, value):
    return value if value > old else old


def _least(old, value):
    return value if value < old else old


_ATOMICS = {
    "add": operator.add,
    "sub": operator.sub,
    "max": _largest,
    "min": _least,
    "nanmax": numpy.fmax,
    "nanmin": numpy.fmin,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "inc": lambda old, value: old.dtype.type(0) if old >= value else old.dtype.type(old + 1),
    "dec": lambda old, value: value if old == 0 or old > value else old.dtype.type(old - 1),
    "exch": lambda old, value: value,
}


def _compare_and_swap(ary, index, old, val):
    found = ary[index]
    if found == numpy.asarray(old).astype(ary.dtype):
        ary[index] = numpy.asarray(val).astype(ary.dtype)
    return found


# A thread lets other threads run each time its `while` loops have done this number of iterations.
_PATIENCE = 64


def give_way():
    thread = NOW.thread
    thread.turns += 1
    if thread.turns % _PATIENCE == 0:
        threads.suspend(thread, threads.GIVES_WAY)


def _nothing():
    """Replaces the fences. It does nothing, because memory accesses are always in order in the
    simulator."""


# ---- stores and conversions ----


def store(base, index, value):
    """Stores base[index] = value."""
    if isinstance(base, numpy.ndarray) and base.dtype.kind in "iu" and isinstance(value, (float, numpy.floating, numpy.integer)):
        value = conversions.converter(base.dtype.type)(value)
    base[index] = value


def change_item(function, base, index, value):
    """Stores base[index] op= value."""
    store(base, index, function(base[index], value))


def change_attribute(function, base, name, value):
    setattr(base, name, function(getattr(base, name), value))


def _numpy_type(thing):
    """Returns the NumPy scalar type to which a called type converts, or None."""
    if isinstance(thing, dtypes.DType):
        return conversions.of_text(thing.text)
    return thing if isinstance(thing, type) and issubclass(thing, (numpy.number, numpy.bool_)) else None


def converting(function, result, parameters):
    """Returns the function with conversions to its signature's types. result, parameters: names of
    types, or None for no conversion."""
    if result is None and not any(parameters or ()):
        return function
    to_result = conversions.converter(conversions.of_text(result)) if result is not None else None
    each = [t and conversions.converter(conversions.of_text(t)) for t in parameters or ()]

    @functools.wraps(function)
    def converted(*arguments):
        given = [c(a) if c else a for c, a in zip(each, arguments)] + list(arguments[len(each) :])
        value = function(*given)
        return value if to_result is None else to_result(value)

    return converted


class Vector:
    """A value of a vector type such as cuda.float4."""

    __slots__ = ("x", "y", "z", "w")

    def __init__(self, kind, parts):
        convert = conversions.converter(conversions.of_text(kind.base_type.text))
        numbers = [n for part in parts for n in (part.numbers() if isinstance(part, Vector) else [part])]
        if len(numbers) != kind.num_elements:
            raise TypeError(f"{kind.name} has {kind.num_elements} elements, not {len(numbers)}")
        for name, number in zip(self.__slots__, numbers):
            setattr(self, name, convert(number))

    def numbers(self):
        return [getattr(self, name) for name in self.__slots__ if hasattr(self, name)]


def _vector(kind):
    return lambda *parts: Vector(kind, parts)


def _no_bfloat16(thing, *arguments):
    raise NotImplementedError(f"{thing!r}: bfloat16 is not simulated, because NumPy has no such type")


def _no_float8(thing, *arguments, **keywords):
    raise NotImplementedError(f"{thing.name}: a float of 8 bits is not simulated, because NumPy has no such type")


def _no_function(thing, *arguments, **keywords):
    raise NotImplementedError(f"kjit.{thing.__name__}() works on whole arrays and is called outside of kernels")


def _no_word(thing, *arguments, **keywords):
    raise NotImplementedError(f"{thing!r} belongs to kjit.jit and is not simulated; use a function of kjit.cuda, math or NumPy")


# ---- ranges ----


class Range:
    """range() with int64 numbers."""

    def __init__(self, *bounds):
        self._range = range(*map(operator.index, bounds))

    def __iter__(self):
        return map(_INT64, self._range)

    def __reversed__(self):
        return map(_INT64, reversed(self._range))

    def __len__(self):
        return len(self._range)

    def __contains__(self, value):
        return value in self._range

    def __getitem__(self, index):
        return _INT64(self._range[operator.index(index)])


def _printed(value):
    """Converts NumPy scalars in a tuple to Python numbers, because NumPy prints scalars in tuples
    with their types."""
    if isinstance(value, tuple):
        return tuple(map(_printed, value))
    return value.item() if isinstance(value, numpy.generic) else value


def _print(*values, **keywords):
    print(*(_printed(v) if isinstance(v, tuple) else v for v in values), **keywords)


# ---- all functions by the program's name for them ----

_computed: dict = {}


def _is_computed(thing):
    if isinstance(thing, (language.Form, numpy.ufunc)):
        return True
    return getattr(thing, "__module__", None) in ("math", "cmath") or any(thing is function for function in _OF_PYTHON)


_OF_PYTHON = (abs, min, max, round, pow, divmod, int, float, complex, bool)

_TABLE = {
    words.FORMS["grid"]: _positions,
    words.FORMS["gridsize"]: _extents,
    words.FORMS["syncwarp"]: together.syncwarp,
    words.FORMS["activemask"]: together.activemask,
    words.FORMS["lanemask_lt"]: lambda: _UINT32((1 << NOW.thread.lane) - 1),
    words.FORMS["nanosleep"]: lambda ns: give_way(),
    words.FORMS["literal_unroll"]: lambda items: items,
    words.FORMS["selp"]: lambda a, b, c: b if a else c,
    words.shared.array: _shared_array,
    words.local.array: _local_array,
    words.const.array_like: lambda ary: records_by_name(ary),
    words.atomic.compare_and_swap: lambda ary, old, val: _compare_and_swap(ary, 0, old, val),
    words.atomic.cas: _compare_and_swap,
    cg.this_grid: together.Group,
    range: Range,
    print: _print,
}
_TABLE |= {getattr(words.atomic, name): _atomic(change) for name, change in _ATOMICS.items()}
_TABLE |= {words.FORMS[name]: _nothing for name in ("threadfence", "threadfence_block", "threadfence_system")}
_TABLE |= {words.FORMS[name]: lambda array, index: array[index] for name in ("ldca", "ldcg", "ldcs", "ldlu", "ldcv")}
_TABLE |= {words.FORMS[name]: operator.setitem for name in ("stcg", "stcs", "stwb", "stwt")}
_TABLE |= {words.FORMS[name]: together.of_block(name) for name in together.ANSWERS if name.startswith("syncthreads")}
_TABLE |= {words.FORMS[name]: together.shuffle(name) for name in together.ANSWERS if name.startswith("shfl")}
_TABLE |= {
    words.FORMS[name]: together.of_warp(name)
    for name in ("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync")
}
_INSTEAD = {id(word): function for word, function in _TABLE.items()}


def instead(thing):
    """Returns the object to call in place of a kernel function or type, or the object itself if the
    interpreter can call it."""
    found = _INSTEAD.get(id(thing))
    if found is not None:
        return found
    if isinstance(thing, cuda_types.VectorType):
        return _vector(thing)
    if getattr(thing, "text", None) == "bf16" or getattr(thing, "name", "").startswith("cuda.bf16."):
        return functools.partial(_no_bfloat16, thing)
    if getattr(thing, "name", "").startswith("cuda.fp8."):
        return functools.partial(_no_float8, thing)
    if isinstance(thing, language.Word):
        return functools.partial(_no_word, thing)
    numpy_type = _numpy_type(thing)
    if numpy_type is not None:
        return conversions.converter(numpy_type)
    if isinstance(thing, types.FunctionType) and _is_of_host(thing):
        return functools.partial(_no_function, thing)
    if _is_computed(thing):
        return _computed.setdefault(id(thing), computed.Computed(thing))
    return thing


def _in_simulator(word):
    """Returns the object that a word of kjit.cuda stands for in the thread that runs now, or None.
    Barriers and warp operations stay words, because a debugger must not wait in them."""
    if NOW.thread is None or getattr(word, "name", "").removeprefix("cuda.") in together.ANSWERS:
        return None
    if place(word):
        return getattr(NOW, place(word))
    found = instead(word) if isinstance(word, language.Form) else word
    return None if found is word else found


language.in_simulator = _in_simulator


def function_of(thing):
    """Returns the Python function inside a dispatcher or an njit function, or a plain function of
    the program. Returns None for other objects."""
    inner = getattr(thing, "py_func", None)
    function = inner if isinstance(inner, types.FunctionType) else thing
    is_programs = isinstance(function, types.FunctionType) and _package(function) not in ("numpy", "math") and not _is_of_host(function)
    return function if is_programs else None


def _package(function):
    return (function.__module__ or "").partition(".")[0]


def _is_of_host(function):
    """Returns whether a function is kjit's own and called outside of kernels, such as kjit.sort. The
    functions of kjit.cuda, such as those of random numbers, are Python code for kernels."""
    module = function.__module__ or ""
    return module.partition(".")[0] == "kjit" and not module.startswith("kjit.cuda")


