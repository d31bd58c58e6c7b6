# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Launches of kjit.cuda in all forms in which programs write them. The first launch with arguments of some forms
decides in Python how to pass them. Later launches do this in the extension. Both must have the same effect."""

import collections
import gc
import os
import pickle
import random
import shutil
import tempfile
import threading
import warnings
import weakref

import numpy as np

import kjit
from kjit import cuda

random.seed(31)
rng = np.random.default_rng(31)


def raises(kind, text, function, *args):
    try:
        function(*args)
    except kind as error:
        assert text in str(error), (text, str(error))
        return error
    raise AssertionError(f"no {kind.__name__}: {text}")


def routes(kernel):
    return kernel._route_count


# ---- numbers: converted as NumPy's astype converts them, by the first launch and by later ones ----

KINDS = ["bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]


def same_bits(a, b):
    return a.dtype == b.dtype and (a.tobytes() == b.tobytes() or bool(np.isnan(a).any()) and bool(np.isnan(b).any()))


def values_of(kind):
    kind = np.dtype(kind)
    if kind.kind == "b":
        return [kind.type(False), kind.type(True)]
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return [kind.type(v) for v in (0, 1, 77, info.min, info.max, info.max // 3)]
    real = np.float16 if kind == np.float16 else np.float32 if kind in (np.float32, np.complex64) else np.float64
    info = np.finfo(real)
    rows = [0.0, -0.0, 1.5, -2.25, 65519.0, 65520.0, 1e-7, 5.96e-8, 2.9e-8, 1 / 3, info.max, info.tiny, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        return [kind.type(complex(v, -v) if kind.kind == "c" else v) for v in rows + list(rng.normal(size=8) * 1000)]


@cuda.jit
def give(out, x):
    out[0] = x


def python_values():
    return [0, 1, -1, 2**31, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 0.1, -1e300, True, False, 1 + 2j, 3e-8, 70000, 2**53 + 1]


def check_conversions():
    sources = [v for kind in KINDS for v in values_of(kind)] + python_values()
    for wanted in map(np.dtype, KINDS):
        kernel = cuda.jit(give.py_func)
        kernel.compile((cuda.types.from_dtype(wanted)[:], cuda.types.from_dtype(wanted)))
        kernel.disable_compile()
        configured, out = kernel[1, 1], np.zeros(1, wanted)
        refused = 0
        for value in sources:
            found = np.asarray(value).dtype
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    configured(out, value)
                except TypeError as error:
                    assert "No matching definition" in str(error)
                    assert found.kind == "c" and wanted.kind != "c" or found.kind == "f" and wanted.kind in "iu", (found, wanted)
                    refused += 1
                    continue
                first = out.copy()
                expected = np.asarray(value).astype(wanted)
                assert same_bits(first[0], expected[()]), (value, found, wanted, first, expected)
                before = routes(kernel)
                for _ in range(2):
                    out[0] = 0
                    configured(out, value)
                    assert same_bits(out[0], first[0]), (value, found, wanted, first, out)
                assert routes(kernel) == before > 0, (value, wanted)
        assert refused or wanted.kind == "c" or wanted.kind not in "iu"


check_conversions()

# Without a signature, numbers have the types that Numba gives them.
for value in [v for kind in KINDS for v in values_of(kind)[:6]] + python_values():
    kernel = cuda.jit(give.py_func)
    out = np.zeros(1, np.asarray(value).dtype)
    kernel[1, 1](out, value)
    first = out.copy()
    for _ in range(2):
        out[0] = 0
        kernel[1, 1](out, value)
        assert same_bits(out[0], first[0]) and same_bits(out[0], np.asarray(value)[()]), (value, out)
    assert routes(kernel) == 1
raises(kjit.Error, "more than 64 bits", give[1, 1], np.zeros(1), 2**64)

# Python integers that need 64 bits without a sign are another form of argument than other integers.
kernel = cuda.jit(give.py_func)
out = np.zeros(1, np.uint64)
for value in (1, 2**63, 5, 2**64 - 1, 7):
    kernel[1, 1](out, value)
    assert out[0] == value
assert routes(kernel) == 2


# ---- other forms of arguments choose their best overload again ----


@cuda.jit(["void(int32[:], int32)", "void(float32[:], float32)", "void(float64[:], float64)"])
def halve(out, x):
    out[0] = x / 2


for _ in range(3):
    for kind, value, wanted in ((np.int32, 7, 3), (np.float32, 7, 3.5), (np.float64, 5, 2.5), (np.float32, np.float32(3), 1.5), (np.float64, 3.0, 1.5)):
        out = np.zeros(1, kind)
        halve[1, 1](out, value)
        assert out[0] == wanted, (kind, value, out)
    raises(TypeError, "No matching definition for argument type(s) array(int32, 1d, C), float64", halve[1, 1], np.zeros(1, np.int32), 2.5)
    raises(TypeError, "No matching definition", halve[1, 1], np.zeros((1, 1), np.int32), 2)


@cuda.jit(["void(float64[:], int64, float64)", "void(float64[:], float64, int64)"])
def either(out, a, b):
    out[0] = a + b


for _ in range(2):
    raises(TypeError, "Ambiguous overloading", either[1, 1], np.zeros(1), 1, 2)
    out = np.zeros(1)
    either[1, 1](out, 1, 2.5)
    either[1, 1](out, 1, 2.5)
    assert out[0] == 3.5


@cuda.jit("void(float64[:], float32)")
def grown(out, x):
    out[0] = x


out = np.zeros(1)
for _ in range(2):
    grown[1, 1](out, 0.1)
    assert out[0] == np.float32(0.1)
grown.compile((cuda.float64[:], cuda.float64))  # from now on, a better match is used
for _ in range(2):
    grown[1, 1](out, 0.1)
    assert out[0] == 0.1

# Each launch compares the element orders in a signature.
@cuda.jit("void(float64[:, ::1])")
def rows_only(a):
    a[0, 0] = 1


square = np.zeros((4, 4))
for _ in range(3):
    rows_only[1, 1](square)
    rows_only[1, 1](square[1:3])
    raises(TypeError, "No matching definition", rows_only[1, 1], square.T[1:])
    raises(TypeError, "No matching definition", rows_only[1, 1], square[:, 1:])
    on_device = cuda.to_device(square)
    rows_only[1, 1](on_device)
    raises(TypeError, "No matching definition", rows_only[1, 1], on_device[:, 1:])
    raises(TypeError, "No matching definition", rows_only[1, 1], on_device.T)


# ---- arrays: each form gives the same result as NumPy ----


@cuda.jit
def add_one(a):
    i = cuda.grid(1)
    if i < a.shape[0]:
        a[i] += 1


def check_array(array, host=None):
    """Two launches add 2. host: the array through which the elements are read."""
    look = host or (lambda: array)
    before = np.array(look())
    for step in (1, 2):
        add_one[1, 64](array)
        cuda.synchronize()  # mapped and managed memory is read in place
        assert (np.array(look()) == (before + step).astype(before.dtype)).all(), (type(array), before, look())


for kind in KINDS[1:9] + KINDS[10:]:
    whole = (rng.random((6, 10)) * 50).astype(kind)
    for view in (whole[0], whole[1:, 3], whole[::-1, 2], whole[2, ::3], whole[3, 5:5], whole.T[4]):
        check_array(view)
        on_device = cuda.to_device(whole)
        check_array(on_device[2, 1:7], lambda: on_device.copy_to_host()[2, 1:7])
        check_array(on_device[:, 4], lambda: on_device.copy_to_host()[:, 4])
own = kjit.array(rng.random(9))
check_array(own, own.to_host)
for made in (cuda.mapped_array(8), cuda.pinned_array(8), cuda.managed_array(8)):
    made[:] = rng.random(8)
    check_array(made)
    check_array(made[2:])

# Arrays that do not have the machine's byte order, are not aligned or are read-only take the slow path, also after
# other arrays of the same dtype.
plain = np.zeros(5)
for _ in range(2):
    check_array(plain)
    packed = np.zeros(41, np.uint8)[1:].view(np.float64)
    assert not packed.flags.aligned
    check_array(packed)
    frozen = np.zeros(5)
    frozen.flags.writeable = False
    raises(kjit.Error, "read-only", add_one[1, 8], frozen)
    raises(kjit.Error, "byte order", add_one[1, 8], np.zeros(5, ">f8"))


def reachable(array):
    """The same elements in memory that the host and the kernel's device access at one address."""
    mapped = cuda.mapped_array(array.shape, array.dtype)
    mapped[:] = array
    return np.asarray(mapped).view(np.ndarray)


class Described:
    """An array of another library that has only the interface."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": None if array.flags.c_contiguous else array.strides, "typestr": array.dtype.str,
            "data": (array.ctypes.data, False), "version": 3, **changes}


host = reachable(np.arange(12.0).reshape(3, 4))
for given in (Described(host[1]), Described(host[:, 2]), Described(host[0], stream=1), Described(host[0], stream=None)):
    check_array(given, lambda: given.array)
raises(NotImplementedError, "Masked arrays", add_one[1, 4], Described(host[0], mask=host))


@cuda.jit("void(float64[:])")
def signed(a):
    a[0] += 1


for _ in range(3):
    signed[1, 1](Described(host[2]))
    raises(TypeError, "an object of list cannot be an argument", signed[1, 1], [1, 2])
cuda.synchronize()
assert host[2, 0] == 11



class Foreign(Described):
    """An array of a library with its own dtypes."""

    def __init__(self, array):
        super().__init__(array)
        self.dtype, self.ndim = "float", array.ndim


@cuda.jit("void(float64[:, ::1], float32[:])")
def both(a, b):
    a[0, 0] += 1
    b[0] += 1


ints, floats = reachable(np.zeros(2, np.int32)), reachable(np.zeros(2, np.float32))
host[0, 0] = 6
for step in range(1, 4):
    both[1, 1](Foreign(host), Foreign(floats))
    cuda.synchronize()
    assert host[0, 0] == 6 + step and floats[0] == step, (host, floats)
    for wrong in ((host, ints), (host.T, floats), (host[0], floats)):
        raises(TypeError, "No matching definition", both[1, 1], *map(Foreign, wrong))

# Records: arrays, elements of device arrays, elements of host arrays.
RECORD = np.dtype([("x", np.float32), ("n", np.int16), ("y", np.float64)])


@cuda.jit
def shift(r, by):
    r[0].x += by
    r[0].y -= by


@cuda.jit
def shift_one(r, by):
    r.x += by
    r.y -= by


for dtype in (RECORD, np.dtype(RECORD, align=True)):
    records = np.zeros(3, dtype)
    on_device = cuda.to_device(records)
    for step in (1, 2, 3):
        shift[1, 1](records, 2)
        shift[1, 1](on_device, 2)
        assert records[0]["x"] == 2 * step and records[0]["y"] == -2 * step
        assert (on_device.copy_to_host() == records)[:2].all()
        shift_one[1, 1](records[1], 3)
        shift_one[1, 1](on_device[1], 3)
        assert records[1]["x"] == 3 * step and on_device[1]["y"] == -3 * step
        shift[1, 1](records[2:], 1)
        assert records[2]["x"] == step


# ---- tuples, types ----
Pair = collections.namedtuple("Pair", "first second")


@cuda.jit
def take_apart(out, t):
    out[0] = t[0]
    out[1] = t[1][0]
    out[2] = t[1][1][0]


@cuda.jit
def named(out, p):
    out[0] = p.first
    out[1] = p.second[0]


for step in range(3):
    out = np.zeros(3)
    for inner in (np.array([4.5]), cuda.to_device(np.array([4.5]))):
        take_apart[1, 1](out, (step, (2.5, inner)))
        assert list(out) == [step, 2.5, 4.5]
        take_apart[1, 1](out, (2.5, (step, inner)))
        assert list(out) == [2.5, step, 4.5]
    named[1, 1](out, Pair(step, (7,)))
    assert list(out)[:2] == [step, 7]
    named[1, 1](out, Pair(1.5, np.array([8.0])))
    assert list(out)[:2] == [1.5, 8]
    raises(kjit.Error, "first", named[1, 1], out, (1, (7,)))
assert routes(take_apart) == 4 and routes(named) == 2


@cuda.jit("void(float64[:], UniTuple(float32, 2))")
def tuple_of_floats(out, t):
    out[0] = t[0] + t[1]


for _ in range(3):
    tuple_of_floats[1, 1](out, (0.1, 2))
    assert out[0] == np.float32(0.1) + np.float32(2)
    raises(TypeError, "No matching definition", tuple_of_floats[1, 1], out, (0.1, 2, 3))


@cuda.jit
def of_type(out, kind):
    out[0] = kind(30.7)


for _ in range(3):
    for kind, wanted in ((np.int8, 30), (np.float32, np.float32(30.7)), (cuda.int64, 30)):
        of_type[1, 1](out, kind)
        assert out[0] == wanted, (kind, out)


@cuda.jit
def applied(out, f):
    out[0] = f(out[0])


def adding(by):
    return lambda x: x + by


for add in range(4):  # the functions have the same code and capture other values
    out[0] = 1
    applied[1, 1](out, adding(add))
    assert out[0] == 1 + add


# ---- configurations ----


@cuda.jit
def count_threads(out):
    cuda.atomic.add(out, 0, cuda.blockDim.x * cuda.gridDim.x + cuda.blockDim.y * 1000)


def counted(*key):
    out = np.zeros(1, np.int64)
    for _ in range(2):
        count_threads[key](out)
    return out[0]


stream = cuda.stream()
for _ in range(2):
    for grid, block in ((2, 3), ((2,), (3,)), ((2, 1), (3, 1, 1)), ([2], [3]), (np.int64(2), np.int32(3))):
        for more in ((), (0,), (stream,), (0, 64), (stream, 0), (None,)):
            assert counted(grid, block, *more) == 2 * 6 * 1006, (grid, block, more)
    raises(TypeError, "must be a sequence of integers", count_threads.__getitem__, (2.0, 3))
    raises(ValueError, "1, 2 or 3 integers", count_threads.__getitem__, ((), 3))
    raises(TypeError, "a stream must be", count_threads.__getitem__, (2, 3, 0.0))
    raises(ValueError, "griddim and blockdim", count_threads.__getitem__, 2)
kept = count_threads[2, 3]
assert kept is count_threads[2, 3] is count_threads[(2, 1, 1), (3,)] and kept.griddim == (2, 1, 1) and kept.dispatcher is count_threads
assert count_threads[2, 3, stream].stream is stream
assert pickle.loads(pickle.dumps(kept)).blockdim == (3, 1, 1)
for _ in range(3):
    out = np.zeros(1, np.int64)
    count_threads.forall(7, tpb=7)(out)
    assert out[0] == 49 + 7000
    raises(ValueError, "configuration was not specified", count_threads, out)
    raises(Exception, "argument", count_threads[1, 1], out, 2)
    raises(Exception, "argument", count_threads[1, 1])

# Keywords and defaults.
@cuda.jit
def with_default(out, x, y=5):
    out[0] = x * 10 + y


for _ in range(3):
    for args, words, wanted in (((1,), {}, 15), ((1, 2), {}, 12), ((), {"x": 3}, 35), ((4,), {"y": 1}, 41)):
        with_default[1, 1](out, *args, **words)
        assert out[0] == wanted, (args, words, out)


# ---- what changes between launches ----
seen = []


class Doubling:
    def prepare_args(self, kind, value, stream=None, retr=None):
        return (kind, value * 2) if isinstance(value, int) else (kind, value)


changing = cuda.jit(give.py_func)
out = np.zeros(1, np.int64)
changing[1, 1](out, 4)
changing[1, 1](out, 4)
changing.extensions.append(Doubling())
changing[1, 1](out, 4)
assert out[0] == 8
changing.extensions.clear()
changing[1, 1](out, 4)
assert out[0] == 4
changing[1, 1].pre_launch_callbacks.append(lambda *given: seen.append(given))
changing[1, 1](out, 5)
changing[1, 1](out, 6)
assert out[0] == 6 and seen == [(changing, changing[1, 1])] * 2
assert len(changing.overloads) == 1
changing[1, 1](np.zeros(1), 5)
assert len(changing.overloads) == 2


# Debug: every launch reports failures with the same message.
@cuda.jit(debug=True, opt=False)
def outside(a, i):
    a[i] = 1


for _ in range(3):
    outside[1, 1](plain, 2)
    error = raises(kjit.Error, "In function 'outside'", outside[1, 1], plain, 7)
    assert "tid=[0, 0, 0] ctaid=[0, 0, 0]" in str(error) and str(error).count("tid=") == 1
    outside[1, 1, stream](plain, 2)
    raises(kjit.Error, "In function 'outside'", outside[1, 1, stream], cuda.to_device(plain), 7)


# ---- many arguments, threads, lifetimes, forks ----
for count in (30, 64, 70):
    names = ", ".join(f"p{i}" for i in range(count))
    path = os.path.join(tempfile.mkdtemp(), "many.py")
    text = f"def many({names}):\n    s = {' + '.join(f'p{i}' for i in range(1, count))}\n    p0[0] = s\n"
    with open(path, "w") as file:
        file.write(text)
    space = {}
    exec(compile(text, path, "exec"), space)
    many = cuda.jit(space["many"])
    numbers = [random.choice((i, i + 0.5, np.float32(i))) for i in range(1, count)]
    for _ in range(3):
        out[0] = 0
        many[1, 1](out, *numbers)
        assert out[0] == int(sum(numbers)), (count, out)
    assert routes(many) == (1 if count <= 64 else 0)
    shutil.rmtree(os.path.dirname(path))

threaded = cuda.jit(give.py_func)


def work(kind):
    out = np.zeros(1, kind)
    for i in range(300):
        threaded[1, 1](out, kind(i % 100))
        assert out[0] == i % 100
        if i % 50 == 0:
            threaded._forget_routes()


failures = []
threading.excepthook = failures.append
threads = [threading.Thread(target=work, args=(np.dtype(k).type,)) for k in KINDS[1:12] * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures


def short_lived():
    kernel = cuda.jit(give.py_func)
    out = cuda.to_device(np.zeros(1))
    for _ in range(3):
        kernel[1, 1](out, 1.5)
    return weakref.ref(kernel), weakref.ref(out)


ends = short_lived()
gc.collect()
assert [end() for end in ends] == [None, None]

out = np.zeros(1)
kernel = cuda.jit(give.py_func)
for value in (1.0, 2.0):
    kernel[1, 1](out, value)
if os.environ.get("KJIT_DEVICE") != "cuda":  # a forked child cannot use the driver if its parent has used it
    child = os.fork()
    if not child:
        status = 1
        try:
            kernel[1, 1](out, 7.0)
            kernel[1, 1](out, 8.0)
            status = 0 if out[0] == 8 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
