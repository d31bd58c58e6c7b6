# RUN: %kjit-python %s %t
"""8-bit floats in kernels (kjit.cuda.fp8). Values are computed from the definition of the formats, and all conversions are compared with
NVIDIA's header cuda_fp8.h, where a CUDA toolkit and a C++ compiler are installed."""
import ctypes
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from kjit import cuda
from kjit.cuda import bf16, types
from kjit.cuda.fp8 import (
    cudaRoundMode,
    cvt_bfloat16raw_to_e8m0,
    cvt_bfloat16raw_to_fp8,
    cvt_double_to_e8m0,
    cvt_double_to_fp8,
    cvt_e8m0_to_bf16raw,
    cvt_float_to_e8m0,
    cvt_float_to_fp8,
    fp8_e4m3,
    fp8_e5m2,
    fp8_e8m0,
    fp8_interpretation_t,
    saturation_t,
)

KINDS = {"e5m2": fp8_e5m2, "e4m3": fp8_e4m3, "e8m0": fp8_e8m0}
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
BYTES = np.arange(256, dtype=np.uint8)
random = np.random.default_rng(1)


def run(body, x, dtype):
    """Returns the results of a device function for each element."""

    @cuda.jit
    def kernel(r, x):
        i = cuda.grid(1)
        if i < x.size:
            r[i] = body(x[i])

    r = np.zeros(x.shape, dtype)
    kernel[(x.size + 127) // 128, 128](r, x)
    return r


def bits(kind):
    return lambda v: kind(v).bits


def through(kind, number):
    return lambda v: number(kind(v))


# ---- by definition ----


def value_of(byte, exponent_bits, bias):
    """Returns the number for 8 bits with a sign, an exponent and the rest of the fraction."""
    fraction_bits = 7 - exponent_bits
    exponent, fraction = (byte & 0x7F) >> fraction_bits, (byte & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    size = 2.0 ** (1 - bias) * fraction if exponent == 0 else 2.0 ** (exponent - bias) * (1 + fraction)
    return -size if byte & 0x80 else size


def rounded(x, values):
    """Returns the nearest of the values for bits 0, 1, 2 and so on, ties to even."""
    above = np.clip(np.searchsorted(values, np.abs(x)), 1, len(values) - 1)
    below = above - 1
    low, high = np.abs(x) - values[below], values[above] - np.abs(x)
    chosen = np.where((low < high) | (low == high) & (below % 2 == 0), below, above)
    return (np.where(np.abs(x) >= values[-1], len(values) - 1, chosen) | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


e5m2 = np.array([value_of(byte, 5, 15) for byte in range(0x7C)])
e4m3 = np.array([value_of(byte, 4, 7) for byte in range(0x7F)])
numbers = np.concatenate([random.normal(0, s, 3000) for s in (1e-6, 1e-3, 1, 30, 500, 1e5)])
middles = np.concatenate([(v[1:] + v[:-1]) / 2 for v in (e5m2, e4m3)])
middles = np.concatenate([middles, [464, 61440]])  # the value to which numbers overflow without saturation
numbers = np.concatenate([numbers, e5m2, e4m3, -e4m3, middles, -middles, np.nextafter(middles, 1e9), np.nextafter(middles, 0), [1e300, -1e300]])
for dtype in ("f8", "f4"):
    with np.errstate(over="ignore"):
        x = numbers.astype(dtype)
        for kind, values in ((fp8_e5m2, e5m2), (fp8_e4m3, e4m3)):
            np.testing.assert_array_equal(run(bits(kind), x, np.uint8), rounded(x.astype(float), values))
            back = run(through(kind, types.float64), x, np.float64)
            np.testing.assert_array_equal(back, np.copysign(values[rounded(x.astype(float), values) & 0x7F], x))
            assert run(bits(kind), np.array([np.nan], dtype), np.uint8)[0] == 0x7F
x = np.concatenate([2.0 ** np.arange(-130, 128), np.abs(numbers)])
fraction, exponent = np.frexp(np.maximum(x, 2.0**-127))
wanted = np.clip(np.where(fraction == 0.5, exponent - 1, exponent), -127, 127).astype(float)
np.testing.assert_array_equal(run(through(fp8_e8m0, types.float64), x, np.float64), 2.0**wanted)

# ---- in programs: device functions, local variables, other kinds of numbers ----


@cuda.jit(device=True)
def quantized(v):
    return fp8_e4m3(v)


@cuda.jit
def program(r, x):
    scale = fp8_e8m0(max(abs(x[0]), abs(x[1])) / 448)
    for i in range(2):
        q = quantized(x[i] / types.float32(scale))
        r[i] = types.float32(q) * types.float32(scale)
    r[2] = float(fp8_e5m2(3)) + int(fp8_e5m2(2.9))
    r[3] = types.float32(fp8_e5m2(fp8_e4m3(5.5))) + types.float32(bf16.bfloat16(fp8_e4m3(0.75)))
    r[4] = types.int8(fp8_e5m2(-57344)) + types.uint16(fp8_e5m2(-3.0))


r = np.zeros(5, np.float32)
program[1, 1](r, np.array([1000.0, 3.3], np.float32))
assert r.tolist() == [1024.0, 3.25, 6.0, 6.75, -128.0], r
assert ".entry" in cuda.compile_ptx(program.py_func, (types.float32[:], types.float32[:]), cc=(7, 5))[0]


def refused(body, text):
    try:
        run(body, np.zeros(1, np.float32), np.uint8)
    except Exception as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


refused(lambda v: cvt_float_to_fp8(v, v, fp8_interpretation_t.E5M2), "saturate")
refused(lambda v: cvt_float_to_e8m0(v, saturation_t.NOSAT, 0), "cudaRoundZero")
refused(lambda v: cvt_float_to_fp8(v, saturation_t.NOSAT), "interpretation")

# a program that has the module only through kjit.cuda, and uses it in a device function that is translated last
PROGRAM = """
import numpy as np
from kjit import cuda

@cuda.jit(device=True)
def rounded(v):
    return cuda.fp8.fp8_e5m2(v)

@cuda.jit
def kernel(r):
    r[0] = np.float32(rounded(r[0]))

r = np.array([3.3])
kernel[1, 1](r)
assert r[0] == 3.5, r
"""
with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
    file.write(PROGRAM)
    file.flush()
    subprocess.run([sys.executable, file.name], check=True)

# ---- compared with NVIDIA's header ----

headers = [os.path.dirname(path) for path in glob.glob("/usr/local/cuda*/include/cuda_fp8.h")]
compiler = shutil.which("g++") or shutil.which("clang++")
if not headers or not compiler:
    print("SKIPPED in part: no cuda_fp8.h or no C++ compiler", file=sys.stderr)
    sys.exit()
library = sys.argv[1] + ".so"
source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "float8_header.cpp")
os.makedirs(os.path.dirname(os.path.abspath(library)), exist_ok=True)
subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", f"-I{headers[-1]}", source, "-o", library], check=True)
header = ctypes.CDLL(library)


def theirs(name, x, dtype, *flags):
    r = np.zeros(x.shape, dtype)
    getattr(header, name)(x.ctypes.data_as(ctypes.c_void_p), r.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(x.size), *flags)
    return r


def compare(got, wanted, x, name):
    """In the header, NaN can have any of its bit patterns."""
    is_nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    wrong = np.flatnonzero((got != wanted) & ~is_nan)
    assert not wrong.size, (name, x[wrong[:5]], got[wrong[:5]], wanted[wrong[:5]])
    assert (got[is_nan] & 0x7F == 0x7F).all(), name


words = np.arange(65536, dtype=np.uint16)
with np.errstate(all="ignore"):
    singles = np.concatenate([random.integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32), numbers.astype(np.float32), [np.inf, -np.inf, np.nan]])
    edges = np.array([2.0**-127, np.nextafter(2.0**-127, 1), 2.0**127, np.nextafter(2.0**127, np.inf), 3e39, np.inf, 5e-324, 0, -0.0])
    doubles = np.concatenate([singles.astype(float), numbers, edges, random.integers(0, 2**63, 20000).view(np.float64)])
sources = {"float16": words.view(np.float16), "float32": singles.astype(np.float32), "float64": doubles}
for name in INTEGERS:
    if name not in ("int8", "uint8"):
        limits = np.iinfo(name)
        near = [s * 2**b + d for b in range(64) for d in (-1, 0, 1) for s in (1, -1)]
        drawn = random.integers(limits.min, limits.max, 3000, dtype=name)
        sources[name] = np.concatenate([np.array([v for v in near if limits.min <= v <= limits.max], name), drawn])
for kind, make in KINDS.items():
    for name, x in sources.items():
        compare(run(bits(make), x, np.uint8), theirs(f"make_{name}_{kind}", x, np.uint8), x, (name, kind))
    of_bf16 = run(lambda v, make=make: make(bf16.uint16_as_bfloat16(v)).bits, words, np.uint8)
    is_nan = (words & 0x7FFF) > 0x7F80
    compare(of_bf16[~is_nan], theirs(f"make_bfloat16_{kind}", words, np.uint8)[~is_nan], words[~is_nan], ("bfloat16", kind))
    values = theirs(f"back_float32_{kind}", BYTES, np.float32)
    finite = ~np.isinf(values)  # kernels create no infinite value
    for name in ("float16", "float32", "float64", *INTEGERS):
        got, wanted = run(through(make, getattr(types, name)), values, name), theirs(f"back_{name}_{kind}", BYTES, name)
        np.testing.assert_array_equal(got[finite], wanted[finite], err_msg=f"{name} {kind}")
for name, to_fp8, to_e8m0 in (("float32", cvt_float_to_fp8, cvt_float_to_e8m0), ("float64", cvt_double_to_fp8, cvt_double_to_e8m0)):
    for saturation in saturation_t:
        for format_ in fp8_interpretation_t:
            got = run(lambda v, f=to_fp8, s=saturation, k=format_: f(v, s, k), sources[name], np.uint8)
            compare(got, theirs(f"{name}_to_fp8", sources[name], np.uint8, int(saturation), int(format_)), sources[name], (name, saturation, format_))
        for mode in cudaRoundMode:
            got = run(lambda v, f=to_e8m0, s=saturation, k=mode: f(v, s, k), sources[name], np.uint8)
            compare(got, theirs(f"{name}_to_e8m0", sources[name], np.uint8, int(saturation), int(mode)), sources[name], (name, saturation, mode))
raw = run(lambda v: cvt_e8m0_to_bf16raw(v).x, BYTES, np.uint16)
assert (raw[:255].astype(np.uint32) << 16).view(np.float32).tolist() == theirs("back_float32_e8m0", BYTES, np.float32)[:255].tolist() and raw[255] == 0x7FFF
got = run(lambda v: cvt_bfloat16raw_to_fp8(cvt_e8m0_to_bf16raw(v), saturation_t.NOSAT, fp8_interpretation_t.E5M2), BYTES, np.uint8)
scales = theirs("back_float32_e8m0", BYTES, np.float32)
compare(got, theirs("float32_to_fp8", scales, np.uint8, 0, 1), scales, "bfloat16raw")
got = run(lambda v: cvt_bfloat16raw_to_e8m0(cvt_e8m0_to_bf16raw(v), saturation_t.SATFINITE, cudaRoundMode.cudaRoundZero), BYTES, np.uint8)
assert got.tolist() == BYTES.tolist()
