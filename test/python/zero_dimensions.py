# RUN: %kjit-python %s
"""Compares arrays without dimensions with NumPy: each function of kjit.numpy, each method of arrays and each kind of
key, called with numbers, arrays without dimensions, results, elements and vectors.

NumPy has two kinds of objects without dimensions, arrays and scalars. A kjit array without dimensions stands for one of them: an operator
in place changes an array, and it makes a new array of a scalar. The test compares this kind, the shape, the data type, whether the result
may be written, and whether it shares memory with the arguments. Names of kjit.numpy are not listed here, so a new one is tested, too."""
import os
import sys
import warnings

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402

warnings.simplefilter("ignore")
np.seterr(all="ignore")
IS_NUMPY_2 = not np.__version__.startswith("1.")

# The first argument, from a namespace.
FIRST = {
    "array": lambda xp: xp.asarray(2.0),
    "integer array": lambda xp: xp.asarray(2),
    "complex array": lambda xp: xp.asarray(2 + 1j),
    "bool array": lambda xp: xp.asarray(True),
    "view": lambda xp: xp.asarray([1.0, 2.0])[1, ...],
    "result": lambda xp: xp.sum(xp.asarray([1.0, 1.0])),
    "integer result": lambda xp: xp.sum(xp.asarray([1, 1])),
    "complex result": lambda xp: xp.sum(xp.asarray([1.0, 1.0j])),
    "element": lambda xp: xp.asarray([1.0, 2.0])[1],
    "complex element": lambda xp: xp.asarray([1.0, 2.0j])[1],
    "number": lambda xp: 2.0,
    "integer": lambda xp: 2,
    "vector": lambda xp: xp.asarray([3.0, 1.0, 2.0]),
    "integer vector": lambda xp: xp.asarray([3, 1, 2]),
    "vector of one": lambda xp: xp.asarray([1.0]),
}
# The other arguments. SAME means the first argument again.
SAME = object()
FURTHER = ((), (SAME,), (SAME, SAME), (1.0,), (0,), ((),))

# Names whose results are no arrays or are of another library, which have other effects, or which are tested elsewhere.
LEFT_OUT = frozenset(
    "show_config show_runtime test compute fuse asnumpy ndarray dtype finfo iinfo info load loadtxt genfromtxt fromregex frombuffer save savez savetxt "
    "empty empty_like format_float_positional format_float_scientific array2string array_repr array_str base_repr "
    "is_busday busday_count bmat asmatrix result_type promote_types grad value_and_grad vectorize nditer".split()
)
LEFT_OUT_METHODS = frozenset(
    "__class__ __reduce__ __reduce_ex__ __getstate__ __sizeof__ __dir__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ "
    "__setattr__ __delattr__ __repr__ __str__ __hash__ __doc__ __format__ __array__ __buffer__ __dlpack__ __dlpack_device__ __array_ufunc__ "
    "__array_function__ __array_namespace__ tofile dump dumps device flags flat dtype tobytes to_device strides __copy__ __deepcopy__".split()
)
# The differences, with their reasons. A row that is not needed fails the test.
DIFFERENT = {
    "broadcast_arrays": "NumPy warns about writes to its results, and kjit's results are read-only",
    "dot": "NumPy returns a scalar instead of the array out=",
    ".dot": "NumPy returns a scalar instead of the array out=",
    "real": "the result for a vector is a new array, and NumPy returns the vector itself",
    "imag": "the result for a vector of real numbers can be written",
    "float64": "NumPy returns the argument itself if the type fits",
    "double": "NumPy returns the argument itself if the type fits",
    "asarray_chkfinite": "NumPy's function gets the array's memory and not the array",
    "require": "NumPy's function gets the array's memory and not the array",
    "around": "bools stay bools, as in the standard",
    "round": "bools stay bools, as in the standard",
    "inner": "an empty tuple is an array of floats",
    "linalg.matrix_rank": "NumPy returns a number of Python",
    "multiply": "NumPy repeats an empty tuple",
    ".__mul__": "NumPy repeats an empty tuple",
    ".__rmul__": "NumPy repeats an empty tuple",
}

# Differences that some versions of NumPy 2 do not have.
OF_SOME_VERSIONS = {"multiply"}

# Functions whose results or errors NumPy 2 has changed; kjit's follow NumPy 2.
CHANGED = frozenset("ceil floor trunc count_nonzero from_dlpack nonzero where round round_ around .round .nonzero".split())


def is_array(x):
    return isinstance(x, (np.ndarray, np.generic, kjit.Array))


def is_scalar(x):
    """Returns whether an object without dimensions is a scalar: an operator in place does not change it."""
    return isinstance(x, np.generic) or isinstance(x, kjit.Array) and x._is_scalar


def changes_in_place(x):
    """Returns whether an operator in place keeps the array, or the error of the operator."""
    if x.ndim or x.dtype == bool:
        return None
    try:
        same = x
        same += same
        return same is x
    except Exception as error:
        return "ValueError" if isinstance(error, ValueError) else type(error).__name__


def shares(x, arguments):
    """Returns for each argument whether a write to x can be seen in it. Scalars have no memory to share."""
    if is_scalar(x):
        return None
    return [is_array(each) and not is_scalar(each) and np.may_share_memory(np.asarray(x), np.asarray(each)) for each in arguments]


def described(x, arguments):
    """Returns all properties of a result that are compared. Data types of several functions follow the standard, so
    only their kind is compared."""
    if isinstance(x, (tuple, list)):
        return [described(item, arguments) for item in x]
    if not is_array(x):
        return "bool" if isinstance(x, bool) else "number" if isinstance(x, (int, float, complex)) else type(x).__name__
    host = x.to_host() if isinstance(x, kjit.Array) else np.asarray(x)
    is_writable = None if is_scalar(x) else not x.is_read_only if isinstance(x, kjit.Array) else bool(x.flags.writeable)
    kind = "float" if host.dtype.kind == "f" else host.dtype.kind + str(host.dtype.itemsize)
    return ["scalar" if is_scalar(x) else "array", host.shape, kind, is_writable, shares(x, arguments), changes_in_place(x)]


def outcome(function, first, further, xp):
    made = FIRST[first](xp)
    arguments = [made, *(made if each is SAME else each for each in further)]
    try:
        return described(function(*arguments), arguments[:1])
    except Exception as error:
        return error


def compare(name, function, numpys, wrong):
    """Adds the calls whose results differ from NumPy's."""
    for first in FIRST:
        for further in FURTHER:
            expected = outcome(numpys, first, further, np)
            got = outcome(function, first, further, knp)
            if isinstance(expected, Exception):
                continue
            is_refused = isinstance(got, Exception)
            if is_refused and (further or "complex" in first or "bool" in first or name.startswith((".", "@"))):
                continue  # types and options that kjit rejects with a reason; other tests have the errors
            if got != expected:
                shown = ["same" if each is SAME else each for each in further]
                wrong.setdefault(name, []).append(f"{first} {shown}: {got!r} instead of {expected}")


def functions():
    """Yields (name, kjit's function, NumPy's function)."""
    spaces = (("", knp, np), ("linalg.", knp.linalg, np.linalg), ("fft.", knp.fft, np.fft))
    for prefix, own, numpys in spaces:
        names = set(dir(own)) | (set(np.__all__) if not prefix and IS_NUMPY_2 else set())
        for name in sorted(names):
            known = vars(numpys).get(name)
            found = getattr(own, name, None) if known is not None and callable(known) else None
            is_class = isinstance(known, type) and not issubclass(known, np.generic)
            if found is not None and callable(found) and not is_class and not name.startswith("_") and name not in LEFT_OUT:
                yield prefix + name, found, known


def caller(name):
    return lambda x, *further: getattr(x, name)(*further)


def reader(name):
    return lambda x, *further: getattr(x, name)


def chosen(make_key):
    return lambda x, *further: x[make_key(knp if isinstance(x, kjit.Array) else np)]


def methods():
    """Yields (name, a function that calls the method or reads the attribute of its first argument)."""
    for name in dir(np.ndarray):
        if name in LEFT_OUT_METHODS or not hasattr(kjit.Array, name) or name.startswith("__i"):
            continue
        is_method = callable(getattr(np.ndarray, name))
        yield ("." if is_method else "@") + name, caller(name) if is_method else reader(name)


KEYS = {
    "[()]": lambda xp: (), "[...]": lambda xp: ..., "[None]": lambda xp: None, "[..., None]": lambda xp: (..., None), "[True]": lambda xp: True,
    "[False]": lambda xp: False, "[0]": lambda xp: 0, "[-1]": lambda xp: -1, "[0, ...]": lambda xp: (0, ...), "[[0]]": lambda xp: [0],
    "[1:]": lambda xp: slice(1, None), "[array of bool]": lambda xp: xp.asarray(True), "[array]": lambda xp: xp.asarray(0),
    "[scalar]": lambda xp: np.int64(0),
}  # fmt: skip

wrong, count = {}, 0
for name, function, numpys in functions():
    compare(name, function, numpys, wrong)
    count += 1
for name, call in methods():
    compare(name, call, call, wrong)
    count += 1
for name, make_key in KEYS.items():
    compare(f"x{name}", chosen(make_key), chosen(make_key), wrong)
    count += 1
assert count > 300, count

if len(sys.argv) > 1:  # zero_dimensions.py NAME ...: what differs for these names, or for all of "all"
    for name, lines in wrong.items():
        if name in sys.argv[1:] or sys.argv[1] == "all" and name not in DIFFERENT:
            print(name, *lines[:4], sep="\n    ")
known = DIFFERENT.keys() if IS_NUMPY_2 else DIFFERENT.keys() | CHANGED
unexpected = {name: lines[0] for name, lines in wrong.items() if name not in known}
assert not unexpected, "\n".join(f"{name}: {line}" for name, line in unexpected.items())
stale = [name for name in DIFFERENT.keys() - OF_SOME_VERSIONS if name not in wrong and hasattr(np, name.lstrip("."))]
assert not IS_NUMPY_2 or not stale, stale
print(f"{count} functions, methods and keys")
