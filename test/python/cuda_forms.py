# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Forms of Python and names of Numba in kernels of kjit.cuda: variables that change their types, texts, vectors, `and` and `or` of
calls, signatures of device functions, extensions."""
import cmath
import contextlib
import io
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import seeds

import kjit
from kjit import cuda
from kjit.cuda import bf16, float32, float64, int32

random = seeds.fresh_generator()


def fails(kind, text, function, *args, **keywords):
    try:
        function(*args, **keywords)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}: {text}")


# ---- variables that are assigned values of other types ----


@cuda.jit
def turn(r, a, n):
    for i in range(n):
        a = a.reshape(6)
        a = a.reshape(3, 2)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            r[i, j] += a[i, j]
    value = a[0]
    value = value[1]
    r[0, 0] += value


rows = random.random((3, 2))
result = np.zeros((3, 2))
turn[1, 1](result, rows, 2)
wanted = rows.copy()
wanted[0, 0] += rows[0, 1]
assert np.allclose(result, wanted)


@cuda.jit
def same_name(r, n):
    for t in range(n):
        for k in range(2):
            t = r
            if k == 1:
                t[0] += 1
    x = 1
    while x < 10:
        x = x * 2.5
        if x > 5:
            break
        x = x + 1
    r[1] = x


result = np.zeros(2)
same_name[1, 1](result, 3)
assert result[0] == 3 and result[1] == 8.75, result

# ---- extents that the others leave ----


@cuda.jit
def shapes(a, r):
    b = a.reshape(-1, 4)
    c = a.reshape((2, -1))
    d = a.reshape(-1)
    r[0], r[1], r[2], r[3], r[4] = b.shape[0], b.shape[1], c.shape[0], c.shape[1], d.shape[0]


result = np.zeros(5, np.int64)
shapes[1, 1](np.arange(24), result)
assert list(result) == [6, 4, 2, 12, 24]

# ---- texts ----
names = np.zeros(4, np.dtype([("n", np.int32), ("wide", "<U8"), ("narrow", "S5")]))
texts, plain = np.array(["unchanged"] * 3), np.array([b"123456"] * 3)


@cuda.jit
def write(a, t, b):
    i = cuda.grid(1)
    if i < len(t):
        a[i]["wide"] = "Zürich"
        a[i]["narrow"] = b"ab"
        t[i] = "XYZ"
        b[i] = b""


write[1, 2](names, texts, plain)
assert list(names["wide"]) == ["Zürich", "Zürich", "", ""] and list(names["narrow"]) == [b"ab", b"ab", b"", b""]
assert list(texts) == ["XYZ", "XYZ", "unchanged"] and list(plain) == [b"", b"", b"123456"]
fails(TypeError, "copy it first", write[1, 1], names, texts[::2], plain)

# ---- fields that are arrays ----
nested = np.zeros(2, np.dtype([("n", np.int16), ("a", np.float32, (3,)), ("b", np.int16, (2, 2))], align=True))


@cuda.jit
def fill(record, a, b):
    record["a"] = a
    record["b"] = b
    n = b[0, 0]
    record["n"] = n


three, four = random.random(3), random.integers(-100, 100, (2, 2))
fill[1, 1](nested[1], three, four)
assert (nested["a"][1] == three.astype(np.float32)).all() and (nested["b"][1] == four).all() and nested["n"][1] == four[0, 0]
assert not nested["a"][0].any()

# ---- vectors ----


@cuda.jit
def vectors(r, x):
    one = cuda.float32x1(x[0])
    two = cuda.float2(one, x[1])
    four = cuda.float32x4(two, x[2], one)
    small = cuda.short3(10, 11, -12)
    r[0], r[1], r[2], r[3], r[4], r[5] = four.x, four.y, four.z, four.w, small.z, one.x
    total = cuda.float4(0.0, 0.0, 0.0, 0.0)
    for v in (four, four):
        total += v
    r[6] = total.y


values, result = random.random(3).astype(np.float32), np.zeros(7)
vectors[1, 1](result, values)
x, y, z = values.astype(float)
assert np.allclose(result, [x, y, z, x, -12, x, 2 * y])
assert cuda.float4 is cuda.float32x4 and cuda.int64x2 is cuda.long2 is cuda.longlong2
fails(TypeError, "only in a kernel", cuda.float4, 1, 2, 3, 4)

# ---- and, or of calls; device functions whose signature says the types ----


@cuda.jit(device=True)
def is_small(x):
    return x < 0.5


@cuda.jit(device=True)
def count(a, x):
    a[0] += 1
    return x > 0.25


@cuda.jit("int32(int32, float32)", device=True)
def whole(a, b):
    return a & 7


@cuda.jit
def both(r, x, n):
    r[0] = is_small(x[0]) and count(n, x[0])
    r[1] = is_small(x[0]) or count(n, x[0])
    r[2] = whole(x[1], x[0])


for first, second in ((0.1, 9.75), (0.3, 3.5), (0.7, 15.0)):
    result, calls = np.zeros(3), np.zeros(1, np.int64)
    both[1, 1](result, np.array([first, second]), calls)
    assert list(result) == [0.25 < first < 0.5, first < 0.5 or first > 0.25, int(second) & 7]
    assert calls[0] == 1  # calls the second operand only if it determines the value

# ---- functions that are defined in kernels, and any number of arguments ----
OFFSET = 100


@cuda.jit(device=True)
def apply(function, *values):
    return function(*values)


@cuda.jit(device=True)
def total(*values):
    s = 0.5 * len(values)
    for v in values:
        s += v
    return s


@cuda.jit
def closures(r, x):
    k = 3

    def inner(a, b=2):
        def deeper(c):
            return c * k

        return deeper(a) + b + OFFSET

    r[0], r[1], r[2] = inner(x[0]), apply(inner, x[0], 5), inner(b=7, a=x[0])
    r[3], r[4], r[5] = total(), total(x[0]), total(x[0], 1, 2.5)


@cuda.jit
def captures(r, x):
    z = x[0]

    def inner(a):
        return a + z

    r[0] = inner(1)


result, x = np.zeros(6), random.random(1)
captures[1, 1](result, x)
assert result[0] == 1 + x[0], result
closures[1, 1](result, x)
assert np.allclose(result, [3 * x[0] + 102, 3 * x[0] + 105, 3 * x[0] + 107, 0, x[0] + 0.5, x[0] + 5]), result

# ---- a function and its arguments are passed to a function without a signature, which calls it ----


@cuda.jit
def consumer(function, *values):
    return function(*values)


@cuda.jit
def hands_over(x):
    def nothing():
        return 10

    def both(a, b):
        return a - b

    return consumer(nothing) + consumer(both, x, 2)


@cuda.jit
def hand_over(r, x):
    r[0] = hands_over(x)


result = np.zeros(1)
hand_over[1, 1](result, 7.5)
assert result[0] == 15.5

# ---- bfloat16 ----


@cuda.jit
def halves(r, x, n):
    for i in range(x.size):
        r[0, i] = bf16.float32_to_bfloat16_rn(x[i])
        r[1, i] = bf16.float32_to_bfloat16_rz(x[i])
        r[2, i] = bf16.float32_to_bfloat16_rd(x[i])
        r[3, i] = bf16.float32_to_bfloat16_ru(x[i])
        r[4, i] = bf16.int64_to_bfloat16_rn(n[i])
        r[5, i] = bf16.int64_to_bfloat16_rz(n[i])
        r[6, i] = bf16.int64_to_bfloat16_rd(n[i])
        r[7, i] = bf16.int64_to_bfloat16_ru(n[i])
        r[8, i] = bf16.bfloat16_to_int32_ru(bf16.bfloat16(x[i] % 100.0))
        r[9, i] = bf16.hmax_nan(x[i], float("nan")) if i == 0 else bf16.hadd_sat(x[i], 0.5)


def neighbours(value):
    """Returns the bfloat16 numbers below and above a fraction, twice the same number if the fraction is one."""
    if value == 0:
        return 0.0, 0.0
    size = abs(value)
    exponent = max(int(np.floor(np.log2(float(size)))), -126)
    while Fraction(2) ** exponent > size and exponent > -126:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    step = Fraction(2) ** (exponent - 7)
    low, high = size // step * step, -(-size // step) * step
    return (float(low), float(high)) if value > 0 else (-float(high), -float(low))


def nearest(value, low, high):
    if low == high or abs(value - Fraction(low)) != abs(value - Fraction(high)):
        return low if low == high or abs(value - Fraction(low)) < abs(value - Fraction(high)) else high
    bits = np.array([low], np.float32).view(np.uint32)[0] >> 16
    return low if bits % 2 == 0 else high


amount = 200
x = (random.standard_normal(amount) * 10.0 ** random.integers(-30, 30, amount)).astype(np.float32)
x[:6] = 1.00390625, -1.00390625, 3e-41, -1.5, 1.01171875, 0
n = random.integers(-(2**63), 2**63, amount) >> random.integers(0, 63, amount)
n[:3] = 2**63 - 1, -(2**63), 257
result = np.zeros((10, amount))
halves[1, 1](result, x, n)
for first, values in ((0, [Fraction(float(v)) for v in x]), (4, [Fraction(int(v)) for v in n])):
    for i, value in enumerate(values):
        low, high = neighbours(value)
        zero = low if value > 0 else high
        assert list(result[first : first + 4, i]) == [nearest(value, low, high), zero, low, high], (value, result[:, i])
assert np.isnan(result[9, 0]) and ((result[9, 1:] >= 0) & (result[9, 1:] <= 1)).all()

# ---- signatures of kernels ----


@cuda.jit(["(float64[::1], float32, float64)", "(float64[::1], float64, float32)"])
def add(r, x, y):
    r[0] = x + y


result = np.zeros(1)
add[1, 1](result, np.float32(0.5), 2.0)
assert result[0] == 2.5
fails(TypeError, "Ambiguous overloading", add[1, 1], result, 1.0, 2.0)
one = cuda.jit("(float64[::1], int64)")(lambda r, n: None)
fails(TypeError, "No matching definition", one[1, 1], result, 1.5)
fails(TypeError, "must have void return type", cuda.compile_ptx, lambda x: x[0], (float32[:],))
fails(RuntimeError, "Cannot compile a device function as a kernel", is_small[1, 1])

# ---- code for other programs ----
ptx, kind = cuda.compile(lambda x, y: x * y, float32(float32, float32), abi_info={"abi_name": "product"})
assert "product(" in ptx and ".visible .func" in ptx and kind == float32
[ptx], kind = cuda.compile_all(is_small.py_func, (float64,), cc=(9, 0, "a"))
assert ".target sm_90a" in ptx and kind == cuda.types.boolean
ptx, kind = cuda.compile_ptx(add.py_func, (float64[::1], int32, int32), lineinfo=True, launch_bounds=(128, 2))
assert ".maxntid 128" in ptx and ".minnctapersm 2" in ptx and ".loc" in ptx and kind == cuda.types.void
fails(NotImplementedError, "C ABI is not supported for kernels", cuda.compile_ptx, add.py_func, "void(f8[::1], i4, i4)", abi="c")
fails(NotImplementedError, "Unsupported output type: cubin", cuda.compile, is_small.py_func, (float32,), output="cubin")
fails(NotImplementedError, "LTO-IR", cuda.compile, is_small.py_func, (float32,), output="ltoir")

# ---- arguments that extensions change ----


class Tables:
    def prepare_args(self, kind, value, stream=None, retr=None):
        retr.append(lambda: retrieved.append(kind))
        return (kind, value * 2) if isinstance(value, int) else (kind, value)


retrieved = []


@cuda.jit(extensions=[Tables()])
def store(r, n):
    r[0] = n


store[1, 1](result, 21)
assert result[0] == 42 and retrieved[1] == cuda.types.int64

# ---- functions that call themselves ----


@cuda.jit(device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@cuda.jit(device=True)
def runaway(n):
    return runaway(n)


@cuda.jit(device=True)
def wavering(n):
    if n < 2:
        return n
    return wavering(n - 1) * 0.5


result = np.zeros(3)
for function in (fibonacci, runaway, wavering):

    @cuda.jit
    def caller(r, n):
        r[0] = function(n)

    if function is runaway:
        fails(cuda.errors.TypingError, "runaway recursion", caller[1, 1], result, 12)
    else:
        caller[1, 1](result, 12)
        assert result[0] == (144 if function is fibonacci else 0.5**11)

# ---- addresses, bytes as other elements, arrays that are not aligned, membership ----


@cuda.jit("void(CPointer(float32), CPointer(float32), int64)")
def copy(r, x, n):
    i = cuda.grid(1)
    if i < n:
        r[i] = 2 * x[i]


values = random.random(40).astype(np.float32)
source, target = cuda.to_device(values), cuda.to_device(values * 0)
copy[1, 64](target.device_ctypes_pointer.value, source.device_ctypes_pointer.value, 40)
assert (target.copy_to_host() == 2 * values).all()
fails(TypeError, "No matching definition", copy[1, 64], target, source, 40)


@cuda.jit
def reinterpret(r, b, first):
    r[0] = b[first : first + 8].view(np.int32)[1]
    r[1] = first in (4, 8)
    r[2] = first not in (4, 8)


data, result = random.integers(0, 255, 64, dtype=np.uint8), np.zeros(3, np.int64)
reinterpret[1, 1](result, data, 8)
assert list(result) == [data[8:16].view(np.int32)[1], 1, 0]
raw = np.zeros(8 * 8 + 4, np.uint8)
crooked = raw[4:].view(np.float64)
assert not crooked.flags.aligned


@cuda.jit
def count_up(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += i


count_up[1, 16](crooked)
count_up[1, 16](crooked)
assert list(crooked) == [0, 2, 4, 6, 8, 10, 12, 14]
crooked.flags.writeable = False
for flawed in (crooked, SimpleNamespace(__cuda_array_interface__={"shape": (3,), "typestr": "<f8", "data": (0, False), "version": 3})):
    try:
        count_up[1, 16](flawed)
    except (kjit.ArgumentError, ValueError):
        continue
    raise AssertionError("an array that cannot be written is taken")

# ---- errors during a launch, and before it ----


@cuda.jit(debug=True, opt=False)
def stop(x):
    if x[0] > 0:
        raise ValueError("too much")


fails(ValueError, "In function 'stop', file", stop[1, 1], np.ones(1))
fails(ValueError, "tid=[0, 0, 0] ctaid=[0, 0, 0]: too much", stop[1, 1], np.ones(1))
fails(cuda.errors.CudaAPIError, "has 64 threads per block", cuda.jit(launch_bounds=32)(lambda: None)[1, 64])
try:
    cuda.jit(launch_bounds=32)(lambda: None)[1, 64]()
except cuda.errors.CudaAPIError as error:
    assert ("CUDA_ERROR" in str(error)) != cuda.arrays.is_on_cpu()  # the driver is not used for the CPU
seen, configured = [], count_up[2, 8]
configured.pre_launch_callbacks.append(lambda kernel, launch: seen.append((kernel, launch.griddim)))
configured(np.zeros(3))
assert seen == [(count_up, (2, 1, 1))]
fails(pickle.PicklingError, "pre-launch callbacks", pickle.dumps, configured)
ptx, _ = cuda.compile_ptx(lambda x, y, z: x * y + z, (float64, float64, float64), device=True, opt=False)
assert "fma" not in ptx and "mul" in ptx
program = "from kjit import cuda\nassert not cuda.is_available() and 'NUMBA_DISABLE_CUDA' in cuda.cuda_error()\ncuda.device_array(1)"
done = subprocess.run(
    [sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_CUDA": "1"}, capture_output=True, text=True
)
assert done.returncode == 1 and "CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1" in done.stderr, done.stderr

# ---- dates ----
days = np.arange("2005-02", "2006-02", dtype="datetime64[D]")
kind = cuda.types.from_dtype(days.dtype)
difference = cuda.vectorize([(kind, kind)])(lambda start, end: end - start)
assert (difference(days, days + 5) == np.timedelta64(5, "D")).all()

# ---- bools and positions are printed as Python prints them ----


@cuda.jit
def say(x):
    print(x == 0, True, cuda.threadIdx)


with contextlib.redirect_stdout(io.StringIO()) as out:
    say[1, 2](0)
    say[1, 1](1)
    cuda.synchronize()
assert out.getvalue().split("\n") == ["True True (0, 0, 0)", "True True (1, 0, 0)", "False True (0, 0, 0)", ""], out.getvalue()

# ---- invalid names and numbers ----


@cuda.jit
def unknown(r):
    r[0] = floor(r[0])  # noqa: F821


@cuda.jit
def no_literal(r):
    r[0] = cuda.grid(r.size)


@cuda.jit
def no_type(r):
    s = cuda.shared.array(4, dtype="int33")
    r[0] = s[0]


@cuda.jit
def no_power(r):
    s = cuda.shared.array(4, dtype=float32, alignment=3)
    r[0] = s[0]


fails(cuda.errors.TypingError, "NameError: name 'floor' is not defined", unknown[1, 1], result)
fails(cuda.errors.TypingError, "RequireLiteralValue", no_literal[1, 1], result)
fails(cuda.errors.TypingError, "Invalid NumPy dtype specified: 'int33'", no_type[1, 1], result)
fails(ValueError, "Alignment must be a positive power of two", no_power[1, 1], result)

# ---- types as arguments ----


@cuda.jit
def through(r, x, kind):
    tile = cuda.shared.array(4, kind)
    mine = cuda.local.array(2, kind)
    tile[0] = x[0]
    mine[1] = x[1]
    cuda.syncthreads()
    r[0], r[1] = tile[0], mine[1]


given = random.standard_normal(2) * 100
for kind in (np.int32, np.float32, np.float64, np.complex128, float32, int):
    result = np.zeros(2, np.complex128)
    through[1, 1](result, given, kind)
    plain = np.dtype(cuda.types.as_dtype(kind) if isinstance(kind, cuda.types.Type) else kind)
    np.testing.assert_array_equal(result, given.astype(plain).astype(np.complex128))
assert [str(s[2]) for s in through.signatures] == [
    "class(int32)", "class(float32)", "class(float64)", "class(complex128)", "class(int64)"
]  # float32 of NumPy and of kjit.cuda is one
special = through.specialize(result, given, np.float32)
special[1, 1](result, given, np.float32)
np.testing.assert_array_equal(result, given.astype("f4"))
fails(TypeError, "No matching definition", lambda: special[1, 1](result, given, np.float64))
fails(Exception, "no type", lambda: through[1, 1](result, given, list))
fails(TypeError, "a tuple contains None, a function or a type", lambda: through[1, 1](result, (given, np.int32), np.int32))

# ---- properties of a kernel that are known without a GPU ----

table = random.integers(0, 9, 33)


@cuda.jit
def spends(r, n):
    tile = cuda.shared.array((5, 7), float32)
    flags = cuda.shared.array(3, np.int8)
    mine = cuda.local.array(1000, r.dtype)
    known = cuda.const.array_like(table)
    for i in range(1000):
        mine[i] = known[i % 33] * i
    tile[n, 0], flags[n] = n, 1
    cuda.syncthreads()
    r[0] = mine[n * 7] + tile[n, 0] + flags[n]


if cuda.get_current_device().name != b"GPU" and os.environ.get("KJIT_DEVICE") == "cpu":
    assert cuda.get_current_device().compute_capability == (9, 0)
    for element in (np.float32, np.float64):
        signature = cuda.types.void(cuda.types.from_dtype(np.dtype(element))[::1], cuda.types.int64)
        spends.compile(signature)
        assert 140 + 3 <= spends.get_shared_mem_per_block(signature) <= 143 + 16
        assert 0 <= spends.get_local_mem_per_thread(signature) - 1000 * np.dtype(element).itemsize < 64
        assert spends.get_const_mem_size(signature) >= table.nbytes
        kinds = spends.overloads[signature.args].variable_types
        assert kinds["tile"] == float32[:, ::1] and kinds["mine"].dtype == cuda.types.from_dtype(np.dtype(element))
        assert kinds["flags"] == cuda.types.int8[::1] and kinds["n"] == cuda.types.int64

# ---- both values of selp; halves are rounded once; unused expressions ----


@cuda.jit
def chosen(r, x, n):
    i = cuda.grid(1)
    x[n]
    r[i] = cuda.selp(x[i] > 4, x[i], n)


values, result = random.integers(0, 9, 32), np.zeros(32, np.int64)
chosen[1, 32](result, values, 3)
np.testing.assert_array_equal(result, np.where(values > 4, values, 3))
signature = (cuda.int64[:], cuda.int64[:], cuda.int64)
chosen.compile(signature)
assert "bra" not in chosen.inspect_asm(signature)
checked = cuda.jit(debug=True, opt=False)(chosen.py_func)
fails(IndexError, "3", lambda: checked[1, 1](result[:1], values[:1], 3))


@cuda.jit
def fused(r, a, b, c):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = cuda.fp16.hfma(a[i], b[i], c[i])


# The first number is 2^-31 below the middle between two f16 numbers. If it were rounded to float32 first, it would be
# the middle and be rounded up.
a, b, c = np.array([1 + 2.0**-10], "f2"), np.array([2.0**-11 * (1 - 2.0**-10)], "f2"), np.array([1 + 2.0**-10], "f2")
wide = random.standard_normal((3, 4000)).astype("f2")
a, b, c = (np.concatenate([one, more]) for one, more in zip((a, b, c), wide))
result = np.zeros(len(a), "f2")
fused[40, 128](result, a, b, c)
exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c)]
for got, want in zip(result, exact):
    near = [np.nextafter(got, np.float16(s), dtype=np.float16) for s in (-np.inf, np.inf)]
    distance = abs(Fraction(float(got)) - want)
    assert all(not np.isfinite(n) or distance <= abs(Fraction(float(n)) - want) for n in near), (got, float(want))
assert "fma.rn.f16" in fused.inspect_asm((cuda.float16[::1],) * 4) if cuda.get_current_device().compute_capability[0] >= 8 else True

# ---- atomics with NaN; complex numbers as in cmath ----


@cuda.jit
def extremes(r, m, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(r, i % 3, x[i])
        cuda.atomic.min(m, (i % 2, -1), x[i])


for kind in (np.float32, np.float64):
    x = random.standard_normal(1000).astype(kind)
    x[::17] = np.nan
    r, m = np.array([-9, np.nan, -9], kind), np.array([[9, 9], [9, np.nan]], kind)
    extremes[8, 128](r, m, x)
    wanted = [np.nanmax(x[0::3]), np.nan, np.nanmax(x[2::3])]
    np.testing.assert_array_equal(r, np.array(wanted, kind))
    np.testing.assert_array_equal(m, np.array([[9, np.nanmin(x[::2])], [9, np.nan]], kind))


@cuda.jit
def plane(r, q, z, w, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = cmath.rect(x[i], y[i])
        q[i] = cmath.log(z[i], w[i])


parts = [0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, *random.standard_normal(3)]
pairs = [(p, q) for p in parts for q in parts]
x, y = (np.array(v) for v in zip(*pairs))
z = random.permutation(x + 1j * np.zeros(len(x))) + 0
z.imag = random.permutation(y)
w = random.permutation(z)
r, q = np.zeros(len(x), complex), np.zeros(len(x), complex)
plane[2, 64](r, q, z, w, x, y)
for got, function, one, two in [(r, cmath.rect, x, y)] + ([(q, cmath.log, z, w)] if sys.version_info < (3, 14) else []):
    for g, first, second in zip(got, one, two):
        try:
            want = function(complex(first) if function is cmath.log else first, complex(second) if function is cmath.log else second)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        np.testing.assert_allclose([g.real, g.imag], [want.real, want.imag], rtol=1e-13, atol=1e-15, err_msg=f"{function.__name__}{first, second}")

fails(ValueError, "Can't create ForAll with negative task count", count_up.forall, -1)
